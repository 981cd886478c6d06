"""Compressed rows, in memory or in a file that anndata has open; never written out beyond one block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.errors import DataError
from contrica.rows.arrays import SlicedRows
from contrica.rows.protocol import BLOCK_BYTES, Rows, block_rows

__all__ = ["BackedSparseRows", "SparseRows", "backed_rows", "check_indices", "transposed"]


def _written_out(block: Any) -> np.ndarray:
    return np.asarray(block.toarray(), dtype=np.float64)


def _compressed(kind: Any, shape: tuple[int, int], parts: tuple[np.ndarray, ...]) -> Any:
    """A sparse matrix of these very arrays: scipy's constructor copies what is part of a larger array."""
    matrix = kind(shape, dtype=parts[0].dtype)
    matrix.data, matrix.indices, matrix.indptr = parts
    return matrix


def transposed(rows: Any) -> Any:
    """Compressed rows as columns of a matrix, without a copy."""
    n, p = rows.shape
    rows = rows.tocsr()
    return _compressed(sp.csc_matrix, (p, n), (rows.data, rows.indices, rows.indptr))


def check_indices(data: Any) -> None:
    """Refuse indices beyond the shape: compiled code would follow them out of the arrays.

    Parameters
    ----------
    data : sparse matrix of scipy

    Raises
    ------
    DataError
    """
    try:
        if data.format in ("csr", "csc", "bsr"):
            data.check_format(full_check=True)
            compressed = data.shape[data.format == "csc"] // (
                data.blocksize[0] if data.format == "bsr" else 1
            )
            across = data.shape[data.format != "csc"]
            across //= data.blocksize[1] if data.format == "bsr" else 1
            low, high = data.indices.min(initial=0), data.indices.max(initial=0)
            right = data.indptr.size == compressed + 1 and low >= 0 and (high < across or not high)
            # where the last pointer is 0 check_format looks no further, and conversions follow the others
            right = right and data.indptr[0] == 0 and bool(np.all(np.diff(data.indptr) >= 0))
        elif data.format == "coo":
            right = all(
                part.min(initial=0) >= 0 and part.max(initial=0) < max(size, 1)
                for part, size in zip((data.row, data.col), data.shape, strict=True)
            )
        else:
            right = True
    except ValueError as error:
        raise _bad_indices() from error
    if not right:
        raise _bad_indices()


def _bad_indices() -> DataError:
    return DataError(
        "bad-indices",
        "a sparse matrix is damaged: it points to rows, columns or entries that are not there",
        remedy="Make it anew.",
    )


class SparseRows(Rows):
    """A scipy matrix in compressed rows."""

    sparse = is_in_memory = can_skip = True

    def __init__(self, data: Any) -> None:
        check_indices(data)
        self._data = data.tocsr()
        self.shape = self._data.shape

    @property
    def matrix(self) -> Any:
        """The rows as one matrix of scipy."""
        return self._data

    def cut(self, start: int, stop: int) -> Any:
        """Some rows; their entries are views, which those of scipy's own slices are not."""
        X = self._data
        ends = X.indptr[start : stop + 1]
        own = slice(ends[0], ends[-1])
        return _compressed(
            sp.csr_matrix,
            (ends.size - 1, X.shape[1]),
            (X.data[own], X.indices[own], ends - ends[0]),
        )

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for start in range(0, len(self), n_rows):
            yield _written_out(self.cut(start, min(start + n_rows, len(self))))

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        """Rows from ``start`` to ``stop`` of each of the ``bounds``, as `Rows.spans` says."""
        return (_written_out(self.cut(start, stop)) for start, stop in bounds)

    def pieces(self) -> Iterator[Any]:
        """Consecutive sparse blocks."""
        return iter(self._pieces)

    @cached_property
    def _pieces(self) -> list[Any]:
        """As many entries in each as there are in a block, so that what is made of them is small."""
        if len(self) == 0:
            return []
        share = max(self._data.nnz / len(self), 1.0)
        count = -(-len(self) // max(int(BLOCK_BYTES / (8 * share)), 256))
        # of one size, and as many for each of two or four threads
        count = 4 * -(-count // 4) if count > 1 else 1
        ends = np.linspace(0, len(self), count + 1).astype(int)
        return [self.cut(start, stop) for start, stop in pairwise(ends)]


class BackedSparseRows(SlicedRows):
    """Compressed rows in a file that anndata has open."""

    sparse = True

    def cut(self, start: int, stop: int) -> Any:
        """Some rows, read here."""
        cut = self._data[start:stop]
        check_indices(cut)
        return cut

    def _cut(self, start: int, stop: int) -> Any:
        return self.cut(start, stop)

    def pieces(self) -> Iterator[Any]:
        """Consecutive sparse blocks."""
        n_rows = block_rows(self.shape[1])
        for start in range(0, len(self), n_rows):
            yield self.cut(start, start + n_rows)


def backed_rows(data: Any, name: str) -> Rows:
    """Rows of a sparse dataset that anndata has open; it must be stored by rows."""
    if data.format != "csr":
        raise DataError(
            "stored-by-columns",
            f"`{name}` is in a file by compressed columns ({data.format}), of which no block of rows "
            "can be read",
            remedy="Write it as csr: adata.X = adata.X.to_memory().tocsr().",
            parameter=name,
        )
    return BackedSparseRows(data, _written_out)
