"""What the shell says while a command runs: results, progress, warnings, and errors as one sentence."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from contrica.errors import ContricaError, Told

__all__ = [
    "OPTIONS",
    "WARNING",
    "err",
    "out",
    "plain_errors",
    "print_line",
    "progress",
    "say",
    "told",
]

out, err = Console(), Console(stderr=True)

# The library speaks of its parameters; the shell has options.
OPTIONS = {
    "n_components": "--components",
    "groups": "--groups",
    "background_groups": "--background-groups",
    "n_background": "--n-background",
    "n_foreground": "--n-foreground",
    "n_pcs": "--n-pcs",
    "random_state": "--seed",
    "background_scale": "--background-scale",
    "deflation": "--deflation",
    "solver": "--solver",
    "cumulant": "--cumulant",
    "projection": "--projection",
    "scale": "--scale",
    "methods": "--methods",
    "memory_limit": "--memory-limit",
    "missing": "--missing",
    "device": "--device",
    "overwrite": "--overwrite",
    "key": "--key",
    "background_key": "--background-key",
    "labels": "--labels",
    "data": "--data",
    "experiment": "experiment",
    "X": "the foreground",
}

WARNING = "[bold yellow]warning:[/]"


def told(what: object) -> str:
    """An error or a warning as one line, ours with the names of options for those of parameters.

    Parameters
    ----------
    what : object
        Of other packages its text is taken as it is.

    Returns
    -------
    str
    """
    text = what.text(OPTIONS) if isinstance(what, Told) else str(what)
    return " ".join(text.split())


def say(label: str, what: object) -> None:
    """Write one line to the standard error.

    Parameters
    ----------
    label : str
        What it is, with the markup of rich.
    what : object
        An error, a warning or a text.
    """
    err.print(f"{label} {escape(told(what))}", soft_wrap=True, highlight=False)


def print_line(text: str, *, wrap: bool = True) -> None:
    """Write a line of results to the standard output, as it is.

    Parameters
    ----------
    text : str
    wrap : bool
        Whether to break it between words. A path is better left whole.
    """
    out.print(text, highlight=False, markup=False, soft_wrap=not wrap)


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """One sentence and exit code 2 instead of a traceback, where the input is at fault.

    Parameters
    ----------
    command : callable

    Returns
    -------
    callable
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ContricaError, ValueError, OSError, ImportError, MemoryError) as error:
            say("[bold red]error:[/]", error)
            raise typer.Exit(2) from error

    return wrapped


class _StatusHandler(logging.Handler):
    """Shows the library's log messages in a spinner."""

    def __init__(self, status: Any) -> None:
        super().__init__(logging.INFO)
        self.status = status

    def emit(self, record: logging.LogRecord) -> None:
        self.status.update(record.getMessage() + " …")


@contextmanager
def progress(first: str) -> Iterator[None]:
    """A spinner that follows the library's log; warnings are said after it, each once.

    Parameters
    ----------
    first : str
        What to show before the library logs anything.
    """
    log = logging.getLogger("contrica")
    level = log.level
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with err.status(first + " …") as status:
            handler = _StatusHandler(status)
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            try:
                yield
            finally:
                log.removeHandler(handler)
                log.setLevel(level)
    for message in dict.fromkeys(told(warning.message) for warning in caught):
        say(WARNING, message)
