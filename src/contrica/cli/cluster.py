"""The client of a dask scheduler, for as long as a command runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from contrica import errors
from contrica.cli.console import say
from contrica.rows import ClusterLostError

__all__ = ["connected"]

# Seconds that a scheduler has to answer.
PATIENCE = 10

_LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.comm")


@contextmanager
def connected(address: str | None) -> Iterator[bool]:
    """Connect to a scheduler, if there is to be one, until the block ends.

    Parameters
    ----------
    address : str or None
        Such as ``tcp://host:8786``.

    Yields
    ------
    bool
        Whether there is one.
    """
    if address is None:
        yield False
        return
    with _quiet(*_LOGGERS):
        client = _client(address)
        try:
            if not client.nthreads():
                say("note:", f"the scheduler at {address} has no workers yet; waiting for some.")
            yield True
        except Exception as error:
            if client.status == "running" and not _is_lost(error):
                raise  # not the cluster's fault
            raise errors.ClusterLostError(
                "cluster-lost",
                f"the cluster at {address} was lost on the way ({type(error).__name__})",
                remedy="See that its scheduler and workers run and have memory enough for a partition of "
                "the rows each, and run this again.",
                parameter="scheduler",
            ) from error
        finally:
            _close(client)


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise errors.PackageMissingError(
            "package-missing",
            f"--scheduler needs {error.name}",
            remedy="Install it: pip install 'contrica[cluster]'.",
            parameter="scheduler",
        ) from error
    try:
        return Client(address, timeout=PATIENCE)
    except (OSError, ValueError, RuntimeError) as error:
        raise errors.ParameterError(
            "no-scheduler",
            f"no dask scheduler answered at {address} within {PATIENCE} s ({error})",
            remedy="Start one with 'dask scheduler', and give the address that it prints.",
            parameter="scheduler",
        ) from error


def _is_lost(error: Exception) -> bool:
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    lost = (ClusterLostError, KilledWorker, CancelledError, CommClosedError, TimeoutError)
    return isinstance(error, lost)


def _close(client: Any) -> None:
    import dask

    client.close(timeout=PATIENCE)
    dask.config.set(scheduler=None)  # a client that was lost does not take its name back


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Loggers that say nothing: what they would say, we do."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
