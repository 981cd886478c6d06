"""What rows must be able to do, and the sums over their blocks that all else is made of.

Sums over rows are all that means, covariances, principal axes and cumulants need, so everything
downstream is an *accumulator*: it is given blocks of rows, ``update(block)``, and two of them can be put
together, ``merge(other)``. `accumulate` brings an accumulator and the rows together.

Blocks come out as float64, whatever the container's dtype, and where they live: those of a tensor on a
GPU are tensors there, and accumulators are written in the names of the array API, so that they work on
both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np

__all__ = ["Accumulator", "Rows", "accumulate", "block_rows", "iterate_blocks", "width_of"]

# Working set of one block. Large enough for BLAS to run at full speed, small enough to stay
# close to the cache and out of the memory budget.
BLOCK_BYTES = 16 * 2**20
# Entries of a block that is gone over several times, and stays in the cache.
CACHED_ENTRIES = 2**18
# On a GPU a block must keep thousands of cores busy.
DEVICE_BLOCK_BYTES = 2**30
# One that is moved there in each pass is in memory that is locked for that, twice.
MOVED_BLOCK_BYTES = 2**28


class Rows(ABC):
    """Rows that are read block by block, as often as asked.

    Attributes
    ----------
    shape : tuple of int
        Rows and variables.
    sparse : bool
        Whether products with the rows cost as much as their non-zero entries.
    """

    shape: tuple[int, int]
    sparse: bool = False
    # Whether reading them hundreds of times costs nothing but their products.
    is_in_memory: bool = False
    # Whether sums over them are taken by the workers of a cluster.
    is_on_cluster: bool = False
    # Whether `spans` reads rows without all of those before them.
    can_skip: bool = False
    # Working set of one block.
    block_bytes: int | None = None
    # Where blocks are that are tensors and stay there, such as "cuda:0".
    device: str | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of variables, for which no row is read."""
        return self.shape[1]

    @property
    def is_counted(self) -> bool:
        """Whether the number of rows is known without reading them."""
        return True

    @abstractmethod
    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, dense, float64."""

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Blocks of the rows from ``start`` to ``stop`` of each of the ``bounds``, where ``can_skip``.

        Bounds are in order, and do not overlap. Blocks may be of parts of them.
        """
        raise NotImplementedError

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks that know ``@``; sparse ones where the container is sparse."""
        return self.blocks(block_rows(self.n_columns, self))

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        """``empty(0)`` with all blocks added to it."""
        total = empty(0)
        for block in self.blocks(n_rows):
            total.update(block)
        return total


class Accumulator(Protocol):
    """A sum over rows: blocks can be added to it, and two of them put together."""

    def update(self, block: Any) -> Self:
        """Add a block of rows."""

    def merge(self, other: Self) -> Self:
        """Add what another one holds."""


def accumulate(X: np.ndarray | Rows, empty: Callable[[int], Any], n_rows: int | None = None) -> Any:
    """An accumulator that has been given all rows.

    Parameters
    ----------
    X : ndarray or Rows
    empty : callable
        Makes an accumulator without rows. It is told the number of the first row it will get, and must be
        picklable where X is a dask array on a cluster.
    n_rows : int, optional
        Rows in a block.

    Returns
    -------
    object
        What ``empty`` makes.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.rows.summary import Summary
    >>> accumulate(np.array([[1.0], [3.0]]), Summary).summary().mean
    array([2.])
    """
    size = n_rows or block_rows(width_of(X), X)
    if isinstance(X, Rows):
        return X.accumulate(empty, size)
    total = empty(0)
    for block in iterate_blocks(X, size):
        total.update(block)
    return total


def width_of(X: np.ndarray | Rows) -> int:
    """Number of variables, for which no row is read."""
    return int(X.n_columns if isinstance(X, Rows) else X.shape[1])


def block_rows(n_columns: int, X: Any = None) -> int:
    """Rows of float64 with ``n_columns`` entries that make up one block of X."""
    size = getattr(X, "block_bytes", None) or BLOCK_BYTES
    return max(256, size // (8 * max(n_columns, 1)))


def iterate_blocks(X: np.ndarray | Rows, n_rows: int) -> Iterator[Any]:
    """Yield consecutive blocks of at most ``n_rows`` rows as float64 arrays, where they live."""
    if isinstance(X, Rows):
        yield from X.blocks(n_rows)
        return
    for start in range(0, X.shape[0], n_rows):
        yield np.asarray(X[start : start + n_rows], dtype=np.float64)
