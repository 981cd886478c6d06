"""Compressed rows of torch or cupy: cut, multiplied and written out where they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError
from contrica.rows.device import like, namespace, package_of, place_of
from contrica.rows.protocol import DEVICE_BLOCK_BYTES, Rows, block_rows

__all__ = ["CompressedParts", "CompressedRows", "compressed_rows", "transposed_there"]

# A piece has as many entries as there are in a block, and its products with some columns, so many numbers
# for each row, are no larger than one.
MIN_SHARE = 128


class CompressedParts(NamedTuple):
    """The three arrays of compressed rows, tensors of one package in one place.

    Attributes
    ----------
    ends : array of int, shape (n + 1,)
        Where every row begins and ends.
    columns : array of int, shape (nnz,)
    entries : array of shape (nnz,)
    """

    ends: Any
    columns: Any
    entries: Any

    @classmethod
    def of(cls, matrix: Any) -> CompressedParts:
        """Of compressed rows of torch or cupyx, or, of compressed columns, their transpose's."""
        if package_of(matrix) != "torch":
            return cls(matrix.indptr, matrix.indices, matrix.data)
        if "csc" in str(matrix.layout):
            return cls(matrix.ccol_indices(), matrix.row_indices(), matrix.values())
        return cls(matrix.crow_indices(), matrix.col_indices(), matrix.values())

    def matrix(self, shape: tuple[int, int]) -> Any:
        """The compressed rows as a matrix of their package."""
        if package_of(self.entries) != "torch":
            from cupyx.scipy.sparse import csr_matrix

            return csr_matrix((self.entries, self.columns, self.ends), shape=shape)
        import torch

        return torch.sparse_csr_tensor(*self, size=shape, check_invariants=False)


class CompressedRows(Rows):
    """Compressed rows in the memory of a device.

    Blocks are written out there, which on a card takes less time than to read them; products with few
    columns are taken of the compressed rows.

    Parameters
    ----------
    parts : CompressedParts
    shape : tuple of int
    ends : ndarray of int, shape (n + 1,), optional
        Of the parts, as an array of numpy; they are fetched where it is left out.
    """

    def __init__(
        self, parts: CompressedParts, shape: tuple[int, int], ends: np.ndarray | None = None
    ) -> None:
        self.parts, self.shape = parts, shape
        self.device = place_of(parts.entries)
        if self.device not in (None, "cpu"):
            self.block_bytes = DEVICE_BLOCK_BYTES
        self._ends = _on_host(parts.ends) if ends is None else ends

    def _cut(self, start: int, stop: int) -> Any:
        """Some rows as a compressed matrix of doubles."""
        ends, columns, entries = self.parts
        xp = namespace(entries)
        own = slice(int(self._ends[start]), int(self._ends[stop]))
        # cupy's booleans and whole numbers know no products
        doubles = xp.astype(entries[own], xp.float64, copy=False)
        first = ends[start : stop + 1]
        parts = CompressedParts(first - first[0], columns[own], doubles)
        return parts.matrix((stop - start, self.shape[1]))

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for start in range(0, len(self), n_rows):
            cut = self._cut(start, min(start + n_rows, len(self)))
            yield cut.to_dense() if package_of(cut) == "torch" else cut.toarray()

    def pieces(self) -> Iterator[Any]:
        """Consecutive compressed blocks."""
        return (self._cut(start, stop) for start, stop in self._bounds())

    def pieces_both_ways(self) -> Iterator[tuple[Any, Any]]:
        """The pieces, each with its transpose in compressed rows."""
        return iter(self._both_ways)

    @cached_property
    def _both_ways(self) -> list[tuple[Any, Any]]:
        # read hundreds of times, and sorted once
        return [(piece, transposed_there(piece)) for piece in self.pieces()]

    def _bounds(self) -> Iterator[tuple[int, int]]:
        share = max(int(self._ends[-1]) // max(len(self), 1), MIN_SHARE)
        n_rows = block_rows(share, self)
        return pairwise([*range(0, len(self), n_rows), len(self)])

    def divided(self, scale: np.ndarray) -> CompressedRows:
        """The same with every variable divided by a number.

        Parameters
        ----------
        scale : ndarray of shape (p,)

        Returns
        -------
        CompressedRows
        """
        ends, columns, entries = self.parts
        xp = namespace(entries)
        doubles = xp.astype(entries, xp.float64, copy=False)
        factors = xp.take(like(doubles, 1 / scale), columns)
        return CompressedRows(
            CompressedParts(ends, columns, doubles * factors), self.shape, self._ends
        )

    def selected(self, rows: np.ndarray, columns: np.ndarray | None = None) -> CompressedRows:
        """Some rows and variables, in their order.

        Parameters
        ----------
        rows : ndarray of bool or int
        columns : ndarray of bool or int, optional
        """
        import scipy.sparse as sp

        # numbers of entries in place of entries: scipy selects on the host what is then taken here
        n, p = self.shape
        indices = _on_host(self.parts.columns)
        numbered = sp.csr_matrix((np.arange(1, indices.size + 1), indices, self._ends), (n, p))
        own = numbered[rows]
        own = own if columns is None else own[:, columns]
        xp = namespace(self.parts.entries)
        kind = {"device": self.parts.columns.device}
        ends, columns, numbers = (
            xp.asarray(part.astype(np.int64), **kind)
            for part in (own.indptr, own.indices, own.data - 1)
        )
        entries = xp.take(self.parts.entries, numbers)
        return CompressedRows(CompressedParts(ends, columns, entries), own.shape, own.indptr)


def transposed_there(matrix: Any) -> Any:
    """The transpose of compressed rows of torch or cupy, in compressed rows."""
    n, p = matrix.shape
    turned = matrix.to_sparse_csc() if package_of(matrix) == "torch" else matrix.tocsc()
    return CompressedParts.of(turned).matrix((p, n))


def compressed_rows(data: Any, name: str) -> CompressedRows:
    """Rows of a sparse tensor of torch or of a sparse matrix of cupyx.

    Parameters
    ----------
    data : tensor or matrix
        In compressed rows, or in another layout, which is then brought to these.
    name : str
        What errors call it.

    Returns
    -------
    CompressedRows
    """
    if len(data.shape) != 2:
        raise DataError(
            "dimensions",
            f"`{name}` has {len(data.shape)} dimensions",
            "a table of rows by variables is needed",
            "Reshape it.",
            name,
        )
    if package_of(data) == "torch":
        data = data.detach()
        data = data if "csr" in str(data.layout) else data.to_sparse_csr()
    else:
        data = data.tocsr()
    found = CompressedRows(CompressedParts.of(data), (int(data.shape[0]), int(data.shape[1])))
    _check(found, name)
    return found


def _check(rows: CompressedRows, name: str) -> None:
    """Refuse indices beyond the shape: compiled code would follow them out of the arrays."""
    (n, p), ends, columns = rows.shape, rows._ends, rows.parts.columns
    size = int(columns.shape[0])
    right = ends.size == n + 1 and ends[0] == 0 and ends[-1] == size and (np.diff(ends) >= 0).all()
    if right and size:
        xp = namespace(columns)
        right = int(xp.min(columns)) >= 0 and int(xp.max(columns)) < p
    if not right:
        raise DataError(
            "bad-indices",
            f"`{name}` is damaged: it points to rows, columns or entries that are not there",
            remedy="Make it anew.",
            parameter=name,
        )


def _on_host(array: Any) -> np.ndarray:
    return np.asarray(array.get() if package_of(array) == "cupy" else array.cpu().numpy())
