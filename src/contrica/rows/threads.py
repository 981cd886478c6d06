"""How many threads to use: as many as BLAS may, and not on both levels at once.

What limits BLAS (``OMP_NUM_THREADS``, `threadpoolctl.threadpool_limits`, a worker of joblib or dask) so
limits contrica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

__all__ = [
    "ALONE",
    "Team",
    "few_threads",
    "n_threads",
    "one_thread",
    "team",
    "threads_for_matrix",
]

# Below this size products with a flattening are faster on one thread; on a busy machine, many times.
ONE_THREAD_SIZE = 1000
# Eigenvalues of matrices below this size come no faster with more threads, and on a busy machine later.
ONE_THREAD_MATRIX = 300


@lru_cache(maxsize=1)
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


class _OneThread:
    """A context that several threads may be in: the first sets the limit, and the last lifts it."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _limit()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_THREAD = _OneThread()


def _limit() -> Any:
    return _pools().limit(limits=1, user_api="blas")


def one_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, entered in no time."""
    return _ONE_THREAD


def few_threads(n_features: int) -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, if tensors over so many variables are small.

    The algorithms multiply small matrices thousands of times. Threads then spend more time on
    meeting than on multiplying, and where cores are shared they wait for one another.
    """
    size = n_features * (n_features + 1) // 2  # of a flattened tensor
    return one_thread() if size < ONE_THREAD_SIZE else nullcontext()


def threads_for_matrix(size: int) -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, if eigenvalues of matrices of that size are small work.

    Parameters
    ----------
    size : int

    Returns
    -------
    context manager
    """
    return one_thread() if size < ONE_THREAD_MATRIX else nullcontext()


def n_threads() -> int:
    """Threads that BLAS may use now."""
    return max(
        (pool.num_threads for pool in _pools().select(user_api="blas").lib_controllers), default=1
    )


class Team(NamedTuple):
    """Threads that work at the same time.

    Attributes
    ----------
    size : int
    map : callable
        Takes a function and what to call it with, as `map` does; returns a list of results, in order.
    """

    size: int
    map: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


def _one_after_another(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [function(item) for item in items]


# A team of the thread that runs already
ALONE = Team(1, _one_after_another)


@contextmanager
def team(max_size: int | None = None) -> Iterator[Team]:
    """Threads for work that numpy and scipy do without holding the interpreter, on BLAS's share of cores.

    While they are there, BLAS itself uses one.

    Parameters
    ----------
    max_size : int, optional
        Threads that have something to do.

    Yields
    ------
    Team

    Examples
    --------
    >>> with team() as threads:
    ...     threads.map(len, ["a", "bc"])
    [1, 2]
    """
    size = min(n_threads(), max_size or n_threads())
    with one_thread():
        if size < 2 or n_threads() > 1:  # or BLAS does not listen to this thread
            yield ALONE
            return
        # Where BLAS counts for each thread of ours, it is told in each.
        with ThreadPoolExecutor(size, "contrica", initializer=_limit) as pool:
            yield Team(size, lambda function, items: list(pool.map(function, items)))
