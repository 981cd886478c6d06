"""Some rows and some variables of any container, chosen as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.rows.arrays import SlicedRows, numpy_doubles
from contrica.rows.compressed import CompressedRows
from contrica.rows.containers import as_rows
from contrica.rows.device import is_tensor, picked
from contrica.rows.protocol import Rows, block_rows
from contrica.rows.sparse import SparseRows

__all__ = ["SelectedRows", "select", "selected"]


class SelectedRows(Rows):
    """Some rows and some variables of other rows, picked out in the passes over these.

    Parameters
    ----------
    whole : Rows
    rows : ndarray of bool, optional
        Which ones; all by default.
    columns : ndarray of bool or int, optional
        Which variables, or their numbers; all by default.
    """

    columns: np.ndarray | None = None

    def __init__(
        self, whole: Rows, rows: np.ndarray | None = None, columns: np.ndarray | None = None
    ) -> None:
        self._whole, self._rows, self._columns = whole, rows, columns
        self.shape = (
            len(whole) if rows is None else int(rows.sum()),
            whole.n_columns if columns is None else np.arange(whole.n_columns)[columns].size,
        )
        self.sparse, self.is_in_memory = whole.sparse, whole.is_in_memory
        self.block_bytes, self.device = whole.block_bytes, whole.device
        self.can_skip = whole.can_skip and whole.device is None
        names = getattr(whole, "columns", None)
        self.columns = names if names is None or columns is None else names[columns]

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        return self._chosen(self._whole.blocks(n_rows))

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Rows from ``start`` to ``stop`` of each of the ``bounds``, as `Rows.spans` says."""
        if self._rows is None:
            yield from (picked(block, None, self._columns) for block in self._whole.spans(bounds))
            return
        numbers, size = np.flatnonzero(self._rows), block_rows(self._whole.n_columns)
        ends = [(numbers[start], numbers[stop - 1] + 1) for start, stop in bounds if stop > start]
        # those of few rows that are chosen are wide
        parts = [(i, min(i + size, stop)) for start, stop in ends for i in range(start, stop, size)]
        chosen = np.concatenate([self._rows[start:stop] for start, stop in parts])
        for block in self._whole.spans(parts):
            own, chosen = np.split(chosen, [block.shape[0]])
            yield picked(picked(block, own), None, self._columns)

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks that know ``@``, as `Rows.pieces` says."""
        if self.sparse:
            return self._chosen(self._whole.pieces())
        return self.blocks(block_rows(self.n_columns, self))

    def _chosen(self, blocks: Iterator[Any]) -> Iterator[Any]:
        start = 0
        end = np.inf if self._rows is None else np.flatnonzero(self._rows).max(initial=-1) + 1
        for block in blocks:
            if start >= end:  # nothing more is chosen
                return
            stop = start + block.shape[0]
            own = picked(block, None if self._rows is None else self._rows[start:stop])
            start = stop
            if own.shape[0]:
                yield picked(own, None, self._columns)


def selected(data: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, of a sparse matrix or of `Rows`.

    Parameters
    ----------
    data : ndarray, sparse matrix or Rows
    rows : ndarray of bool

    Returns
    -------
    ndarray, sparse matrix or SelectedRows

    Examples
    --------
    >>> import numpy as np
    >>> selected(np.array([[1, 2], [3, 4]]), np.array([False, True]))
    array([[3, 4]])
    """
    if isinstance(data, Rows):
        return SelectedRows(data, rows)
    return data.tocsr()[rows] if sp.issparse(data) else data[rows]


def select(data: Any, kept: np.ndarray, columns: np.ndarray, *, lazily: bool = False) -> Any:
    """Some rows and variables of a container, in their order.

    Parameters
    ----------
    data : array, sparse matrix, HDF5, zarr or dask array
        In memory, in a file, or on a cluster.
    kept : ndarray of bool, shape (n_rows,)
        Which rows.
    columns : ndarray of int
        Numbers of the variables.
    lazily : bool
        To pick them out of each block as it is read, also of what is in memory: for one pass.

    Returns
    -------
    ndarray or Rows

    Examples
    --------
    >>> import numpy as np
    >>> select(np.arange(6).reshape(3, 2), np.array([True, False, True]), np.array([1]))
    array([[1],
           [5]])
    """
    if isinstance(data, np.ndarray) and not isinstance(data, np.memmap):
        data = np.asarray(data)
        if not lazily:
            return data[np.ix_(kept, columns)]
        return SelectedRows(SlicedRows(data, numpy_doubles), kept, columns)
    if sp.issparse(data) and not lazily:
        return SparseRows(data.tocsr()[kept][:, columns])
    if any(each.__module__.startswith("dask.") for each in type(data).__mro__):
        data = data[:]  # of anndata's own class where it is a view
        if not lazily:
            return as_rows(data[np.flatnonzero(kept)][:, columns])
    rows = as_rows(data)
    if isinstance(rows, CompressedRows) and not lazily:
        return rows.selected(kept, columns)
    if is_tensor(data) and not lazily:
        return as_rows(picked(data, kept, columns))
    if not isinstance(rows, Rows):
        return np.asarray(rows)[np.ix_(kept, columns)]
    return SelectedRows(rows, kept, columns)
