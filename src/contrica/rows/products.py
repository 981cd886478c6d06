"""Products of rows with matrices, and rows that are picked out, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from contrica.rows.arrays import SlicedRows, numpy_doubles
from contrica.rows.compressed import CompressedRows
from contrica.rows.device import (
    TensorRows,
    as_doubles,
    is_compressed,
    like,
    namespace,
    picked,
    to_numpy,
)
from contrica.rows.moving import MovedCompressedRows, is_on_card, room_on_card
from contrica.rows.protocol import Rows, accumulate, block_rows, iterate_blocks
from contrica.rows.sparse import SparseRows, transposed
from contrica.rows.threads import Team, team

__all__ = [
    "Chosen",
    "chosen_rows",
    "gram_times",
    "in_memory",
    "projected",
    "projected_there",
    "rows_times",
]


class ProjectedRows(Rows):
    """Rows of others in the coordinates of a basis, made when they are asked for."""

    def __init__(self, rows: Rows, basis: np.ndarray) -> None:
        self._rows, self._basis = rows, basis
        self.shape = (len(rows), basis.shape[1])
        self.block_bytes, self.is_on_cluster = rows.block_bytes, rows.is_on_cluster
        self.device = rows.device

    def blocks(self, n_rows: int) -> Iterator[Any]:
        for piece in self._rows.pieces():
            projected_piece = piece @ like(piece, self._basis)
            for start in range(0, projected_piece.shape[0], n_rows):
                yield projected_piece[start : min(start + n_rows, projected_piece.shape[0]), :]

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        if self._rows.is_on_cluster:
            inside = partial(_ProjectedAccumulator, empty, self._basis)
            return self._rows.accumulate(inside, block_rows(len(self._basis))).inner
        return super().accumulate(empty, n_rows)


class _ProjectedAccumulator:
    """An accumulator that is given rows in the coordinates of a basis."""

    def __init__(self, empty: Callable[[int], Any], basis: np.ndarray, start: int) -> None:
        self.inner, self._basis = empty(start), basis

    def update(self, block: Any) -> _ProjectedAccumulator:
        self.inner.update(block @ like(block, self._basis))
        return self

    def merge(self, other: _ProjectedAccumulator) -> _ProjectedAccumulator:
        self.inner.merge(other.inner)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # sums that travel leave behind what they were made with
        return self.__dict__ | {"_basis": None}


def projected(X: np.ndarray | Rows, basis: np.ndarray | None) -> np.ndarray | Rows:
    """``X · U`` without writing it out; X itself without a basis."""
    if basis is None:
        return X
    return ProjectedRows(X if isinstance(X, Rows) else SlicedRows(X, numpy_doubles), basis)


def projected_there(X: np.ndarray | Rows, basis: np.ndarray | None) -> TensorRows | None:
    """``X · U`` as one tensor of rows that are on the card that a fit works on; X itself without a basis.

    ``None`` where rows are elsewhere, or the card has no room.
    """
    if not (isinstance(X, Rows) and is_on_card(X)):
        return None
    if basis is None and isinstance(X, TensorRows) and X.is_of_doubles:
        return X
    n, k = len(X), X.shape[1] if basis is None else basis.shape[1]
    if 2 * 8 * n * k > room_on_card():  # while they are put together they are there twice
        return None
    if basis is None:
        parts = list(X.blocks(block_rows(k, X)))
    else:
        parts = [piece @ like(piece, basis) for piece in X.pieces()]
    whole = parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts)
    found = TensorRows(whole, as_doubles)
    found.block_bytes = X.block_bytes
    return found


def in_memory(rows: np.ndarray | Rows) -> np.ndarray:
    """All rows as one float64 array of numpy."""
    if isinstance(rows, np.ndarray):
        return rows
    return chosen_rows(rows, np.arange(len(rows)))


def chosen_rows(X: np.ndarray | Rows, index: np.ndarray) -> np.ndarray:
    """Rows of given numbers, increasing, as an array of numpy; one pass."""
    if isinstance(X, np.ndarray):
        return X[index]
    found: np.ndarray = accumulate(X, partial(Chosen, index)).rows(X.shape[1])
    return found


class Chosen:
    """Accumulator that keeps the rows of given numbers.

    Parameters
    ----------
    index : ndarray of int
        The numbers, increasing.
    start : int
        Number of the first row it will get.
    """

    def __init__(self, index: np.ndarray, start: int) -> None:
        self._index, self._start, self._next = index, start, start
        self._kept: list[tuple[int, np.ndarray]] = []

    def update(self, block: Any) -> Chosen:
        """Keep those of the block's rows that are asked for."""
        stop = self._next + block.shape[0]
        first, last = np.searchsorted(self._index, [self._next, stop])
        if last > first:
            # a copy also of all rows: the block may be part of something larger
            wanted = self._index[first:last] - self._next
            self._kept.append((self._next, to_numpy(picked(block, wanted))))
        self._next = stop
        return self

    def merge(self, other: Chosen) -> Chosen:
        """Add what another one has kept."""
        self._kept += other._kept
        return self

    def __getstate__(self) -> dict[str, Any]:
        # what a worker sends back needs no list of what it might have kept
        return self.__dict__ | ({"_index": None} if self._kept else {})

    def rows(self, n_columns: int) -> np.ndarray:
        """What was kept, in the order of the numbers; it is let go of here."""
        kept = [rows for _, rows in sorted(self._kept, key=lambda part: part[0])]
        total = np.empty((sum(map(len, kept)), n_columns))
        start = 0
        self._kept = []
        while kept:  # each is let go of once it is written
            rows = kept.pop(0)
            total[start : start + len(rows)] = rows
            start += len(rows)
        return total


def rows_times(X: np.ndarray | Rows, matrix: np.ndarray) -> np.ndarray:
    """``X · M``, block by block, sparse where X is."""
    if isinstance(X, np.ndarray):
        return X @ matrix
    if not X.is_counted:  # to count them would take a pass
        found = [to_numpy(piece @ like(piece, matrix)) for piece in X.pieces()]
        return np.vstack([np.empty((0, matrix.shape[1])), *found])
    return in_memory(ProjectedRows(X, matrix))


def gram_times(
    X: np.ndarray | Rows,
    matrix: np.ndarray,
    origin: np.ndarray | None = None,
    threads: Team | None = None,
) -> np.ndarray:
    """``Σ (x − μ)(x − μ)ᵀ · M`` over the rows, block by block, sparse where X is; one pass.

    Sparse rows are not centred; ``(Σ x xᵀ − μ (Σx)ᵀ − (Σx) μᵀ + n μ μᵀ) M`` is taken of them. Where
    they are in memory that is done by ``threads``, or by new ones.
    """
    origin = np.zeros(X.shape[1]) if origin is None else origin
    if isinstance(X, Rows) and X.is_on_cluster:
        make = partial(_GramTimes, matrix, origin)
        found: np.ndarray = X.accumulate(make, block_rows(X.shape[1])).total
        return found
    if isinstance(X, SparseRows):
        return _gram_times_sparse(X, matrix, origin, threads)
    total = _GramTimes(matrix, origin)
    if isinstance(X, CompressedRows | MovedCompressedRows):
        for piece, turned in X.pieces_both_ways():
            total.update(piece, turned)
        return total.total
    for piece in X.pieces() if isinstance(X, Rows) else iterate_blocks(X, block_rows(X.shape[1])):
        total.update(piece)
    return total.total


def _gram_times_sparse(
    X: SparseRows, matrix: np.ndarray, origin: np.ndarray, threads: Team | None
) -> np.ndarray:
    """As `gram_times`, in threads: scipy's products with what is sparse use one each."""
    pieces = list(X.pieces())

    def sum_over(share: np.ndarray) -> _GramTimes:
        total = _GramTimes(matrix, origin)
        for number in share:
            total.update(pieces[number])
        return total

    with nullcontext(threads) if threads else team(len(pieces)) as own:
        first, *others = own.map(sum_over, np.array_split(np.arange(len(pieces)), own.size))
    for other in others:
        first.merge(other)
    found: np.ndarray = first.total
    return found


class _GramTimes:
    def __init__(self, matrix: np.ndarray, origin: np.ndarray, start: int = 0) -> None:
        self._matrix, self._origin, self.total = matrix, origin, np.zeros(matrix.shape)

    def update(self, piece: Any, turned: Any = None) -> _GramTimes:
        if is_compressed(piece):
            turned = transposed(piece) if turned is None else turned
            along = piece @ like(piece, self._matrix) - like(piece, self._origin @ self._matrix)
            total = to_numpy(namespace(piece).sum(along, axis=0))
            self.total += to_numpy(turned @ along) - np.outer(self._origin, total)
        else:
            centred = piece - like(piece, self._origin)
            self.total += to_numpy(centred.T @ (centred @ like(piece, self._matrix)))
        return self

    def merge(self, other: _GramTimes) -> _GramTimes:
        self.total += other.total
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_matrix": None, "_origin": None}
