"""Some rows and some variables of a container, chosen as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.rows.protocol import Rows, block_rows

__all__ = ["SelectedRows", "selected"]


class SelectedRows(Rows):
    """Some rows and some variables of other rows, read in the passes over these.

    Parameters
    ----------
    whole : Rows
    rows, columns : ndarray of bool, optional
        Which ones; all by default.
    """

    columns: np.ndarray | None = None

    def __init__(
        self, whole: Rows, rows: np.ndarray | None = None, columns: np.ndarray | None = None
    ) -> None:
        self._whole, self._rows, self._columns = whole, rows, columns
        self.shape = (
            len(whole) if rows is None else int(rows.sum()),
            whole.n_columns if columns is None else int(columns.sum()),
        )
        self.sparse = whole.sparse
        names = getattr(whole, "columns", None)
        self.columns = names if names is None or columns is None else names[columns]

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        return self._chosen(self._whole.blocks(n_rows))

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks that know ``@``."""
        if self.sparse:
            return self._chosen(self._whole.pieces())
        return self.blocks(block_rows(self.n_columns, self))

    def _chosen(self, blocks: Iterator[Any]) -> Iterator[Any]:
        start = 0
        for block in blocks:
            stop = start + block.shape[0]
            own = block if self._rows is None else block[self._rows[start:stop]]
            start = stop
            if own.shape[0]:
                yield own if self._columns is None else own[:, self._columns]


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
