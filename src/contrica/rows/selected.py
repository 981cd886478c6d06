"""Some rows and some variables of any container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.rows.arrays import SlicedRows, numpy_doubles
from contrica.rows.containers import as_rows
from contrica.rows.device import package_of
from contrica.rows.protocol import Rows
from contrica.rows.sparse import SparseRows

__all__ = ["SelectedRows", "select"]


class SelectedRows(Rows):
    """Some rows and variables of others, picked out of each block as it is read.

    Parameters
    ----------
    rows : Rows
    kept : ndarray of bool, shape (n_rows,)
        Which rows.
    columns : ndarray of int
        Numbers of the variables.
    """

    def __init__(self, rows: Rows, kept: np.ndarray, columns: np.ndarray) -> None:
        self._rows, self._kept, self._columns = rows, kept, columns
        self._all_columns = np.array_equal(columns, np.arange(rows.n_columns))
        self.shape = (int(kept.sum()), len(columns))
        self.sparse, self.is_in_memory = rows.sparse, rows.is_in_memory

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks that know ``@``, as `Rows.pieces` says."""
        start = 0
        for piece in self._rows.pieces():
            own = self._kept[start : start + piece.shape[0]]
            start += piece.shape[0]
            if own.any():
                yield piece[own] if self._all_columns else piece[own][:, self._columns]

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for piece in self.pieces():
            for start in range(0, piece.shape[0], n_rows):
                part = piece[start : start + n_rows]
                yield numpy_doubles(part.toarray() if sp.issparse(part) else part)


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
    if package_of(data) == "dask" and not lazily:
        return as_rows(data[np.flatnonzero(kept)][:, columns])
    rows = as_rows(data)
    if not isinstance(rows, Rows):
        return np.asarray(rows)[np.ix_(kept, columns)]
    return SelectedRows(rows, kept, columns)
