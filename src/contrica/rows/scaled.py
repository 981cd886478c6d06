"""Rows whose variables are divided by numbers of their own, in the form that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.rows.compressed import CompressedRows
from contrica.rows.device import like
from contrica.rows.moving import MovedCompressedRows
from contrica.rows.protocol import Rows, iterate_blocks
from contrica.rows.sparse import SparseRows

__all__ = ["ScaledRows", "divided_rows"]

# Arrays of at most so many numbers, 128 MB, are divided at once; larger ones block by block in each pass.
MAX_COPIED = 2**24


def divided_rows(X: np.ndarray | Rows, scale: np.ndarray) -> np.ndarray | Rows:
    """Rows with every variable divided by a number; sparse ones stay sparse.

    Parameters
    ----------
    X : ndarray of shape (n, p), or Rows
    scale : ndarray of shape (p,)

    Returns
    -------
    ndarray or Rows

    Examples
    --------
    >>> import numpy as np
    >>> divided_rows(np.array([[2.0, 30.0]]), np.array([2.0, 10.0]))
    array([[1., 3.]])
    """
    if isinstance(X, SparseRows):  # in memory, and multiplied often
        return SparseRows(_divided_piece(X.matrix, 1 / scale))
    if isinstance(X, CompressedRows | MovedCompressedRows):
        return X.divided(scale)
    if isinstance(X, np.ndarray) and X.size <= MAX_COPIED:
        return X / scale
    return ScaledRows(X, scale)


class ScaledRows(Rows):
    """Rows of others, divided as they are read.

    Parameters
    ----------
    rows : ndarray of shape (n, p), or Rows
    scale : ndarray of shape (p,)
    """

    def __init__(self, rows: np.ndarray | Rows, scale: np.ndarray) -> None:
        self._rows, self._factors = rows, 1 / scale
        self.shape = (rows.shape[0], rows.shape[1])
        if isinstance(rows, Rows):
            self.sparse, self.is_on_cluster = rows.sparse, rows.is_on_cluster
            self.block_bytes, self.device = rows.block_bytes, rows.device

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for block in iterate_blocks(self._rows, n_rows):
            yield block * like(block, self._factors)

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks; sparse ones where the rows are sparse."""
        if not isinstance(self._rows, Rows):
            return super().pieces()
        return (_divided_piece(piece, self._factors) for piece in self._rows.pieces())

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        """``empty(0)`` with all blocks added to it, by the workers of a cluster if there is one."""
        if isinstance(self._rows, Rows) and self.is_on_cluster:
            return self._rows.accumulate(
                partial(_ScaledAccumulator, empty, self._factors), n_rows
            ).inner
        return super().accumulate(empty, n_rows)


class _ScaledAccumulator:
    """An accumulator that is given rows whose variables are multiplied by factors."""

    def __init__(self, empty: Callable[[int], Any], factors: np.ndarray, start: int) -> None:
        self.inner, self._factors = empty(start), factors

    def update(self, block: Any) -> _ScaledAccumulator:
        self.inner.update(block * like(block, self._factors))
        return self

    def merge(self, other: _ScaledAccumulator) -> _ScaledAccumulator:
        self.inner.merge(other.inner)
        return self


def _divided_piece(piece: Any, factors: np.ndarray) -> Any:
    """A block times factors of its columns; of compressed rows only entries are new."""
    if not sp.issparse(piece):
        return piece * like(piece, factors)
    rows = piece.tocsr()
    found = sp.csr_matrix(rows.shape, dtype=np.float64)
    found.data = rows.data * factors[rows.indices]
    found.indices, found.indptr = rows.indices, rows.indptr
    return found
