"""How many threads to use: as many as BLAS may, and not on both levels at once.

What limits BLAS (``OMP_NUM_THREADS``, `threadpoolctl.threadpool_limits`, a worker of joblib or dask) so
limits contrica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

__all__ = [
    "ALONE",
    "Team",
    "few_threads",
    "n_threads",
    "one_pool",
    "one_thread",
    "team",
    "threads_for_matrix",
]

# Below this size products with a flattening are faster on one thread; on a busy machine, many times.
ONE_THREAD_SIZE = 1000
# Eigenvalues of matrices below this size come no faster with more threads, and on a busy machine later.
ONE_THREAD_MATRIX = 800


@lru_cache(maxsize=1)
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


class _Limits:
    """Limits that several threads may be under: the first sets one, and the last lifts it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = {"every": 0, "scipy's": 0}
        self._before: list[tuple[Any, int]] = []

    def enter(self, kind: str) -> None:
        with self._lock:
            if not any(self._inside.values()):
                self._before = [(pool, pool.num_threads) for pool in _blas()]
            self._inside[kind] += 1
            if self._inside[kind] == 1:
                self._set()

    def leave(self, kind: str) -> None:
        with self._lock:
            self._inside[kind] -= 1
            if self._inside[kind] == 0:
                self._set()

    def _set(self) -> None:
        few = _scipys_own() if self._inside["scipy's"] else []
        for pool, before in self._before:
            alone = self._inside["every"] > 0 or pool in few
            pool.set_num_threads(1 if alone else before)


class _Limited:
    """A context with one of the limits."""

    def __init__(self, limits: _Limits, kind: str) -> None:
        self._limits, self._kind = limits, kind

    def __enter__(self) -> None:
        self._limits.enter(self._kind)

    def __exit__(self, *_: object) -> None:
        self._limits.leave(self._kind)


_LIMITS = _Limits()
_ONE_THREAD, _ONE_POOL = (_Limited(_LIMITS, kind) for kind in ("every", "scipy's"))


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    return list(_pools().select(user_api="blas").lib_controllers)


@lru_cache(maxsize=1)
def _scipys_own() -> list[Any]:
    """The BLAS that comes with scipy, where numpy has brought another one."""
    own = [pool for pool in _blas() if _is_scipys(Path(pool.filepath))]
    return own if len(own) < len(_blas()) else []


def _is_scipys(path: Path) -> bool:
    """Whether a library lies in a folder that a wheel of scipy makes."""
    return path.parent.name == "scipy.libs" or path.parent.parts[-2:] == ("scipy", ".dylibs")


def _limit() -> Any:
    return _pools().limit(limits=1, user_api="blas")


def one_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, entered in no time."""
    return _ONE_THREAD


def one_pool() -> AbstractContextManager[None]:
    """A context in which scipy's BLAS uses one thread, and numpy's, if it is another, all of its own.

    Wheels of both bring one each. Threads of a pool wait for more work at full speed, so that where calls
    of both alternate those of one have the cores that the other's need: a sweep of cPCA over 600
    variables took six times as long with two threads as with one.
    """
    return _ONE_POOL


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
    return max((pool.num_threads for pool in _blas()), default=1)


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
