"""Mean, range and sum of squares of every variable, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError
from contrica.rows.device import as_doubles, namespace, to_numpy
from contrica.rows.protocol import CACHED_ENTRIES, Rows, accumulate

__all__ = ["ColumnSummary", "Summary", "column_summary", "summed_columns"]

# Rows of a block at least that it pays to have in the cache.
MIN_CACHED_ROWS = 16


class ColumnSummary(NamedTuple):
    """What one pass says of every variable.

    Attributes
    ----------
    n_rows : int
    mean, low, high : ndarray of shape (n_features,)
    energy : ndarray of shape (n_features,)
        Sum of squares about the mean.
    """

    n_rows: int
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    energy: np.ndarray


class Summary:
    """Accumulator of a `ColumnSummary`: each block's, put together about their common mean."""

    def __init__(self, start: int = 0) -> None:
        self._found: ColumnSummary | None = None

    def update(self, block: Any) -> Summary:
        """Add the rows of a block."""
        n = block.shape[0]
        if n:
            block = as_doubles(block)
            xp = namespace(block)
            # about the first row, so that a large mean costs no digits
            origin = block[0, :] + 0.0
            low, high = xp.min(block, axis=0), xp.max(block, axis=0)
            with _quiet():
                block = block - origin
                shift = xp.sum(block, axis=0) / n
                block -= shift
                energy = xp.sum(block**2, axis=0)
            self.add(ColumnSummary(n, *map(to_numpy, (origin + shift, low, high, energy))))
        return self

    def merge(self, other: Summary) -> Summary:
        """Add the rows of another one."""
        if other._found is not None:
            self.add(other._found)
        return self

    def add(self, new: ColumnSummary) -> None:
        """Add the rows of which this is the summary."""
        old = self._found
        if old is None:
            self._found = new
            return
        n = old.n_rows + new.n_rows
        with _quiet():
            apart = new.mean - old.mean
            self._found = ColumnSummary(
                n,
                old.mean + apart * (new.n_rows / n),
                np.minimum(old.low, new.low),
                np.maximum(old.high, new.high),
                old.energy + new.energy + apart**2 * (old.n_rows * new.n_rows / n),
            )

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return 0 if self._found is None else self._found.n_rows

    def summary(self) -> ColumnSummary:
        """Of all rows so far; there must be one."""
        if self._found is None:
            raise DataError("no-rows", "there are no rows", "at least one is needed")
        return self._found


def _quiet() -> np.errstate:
    """No warning of infinity, which shows in the range."""
    return np.errstate(invalid="ignore", over="ignore")


def column_summary(X: np.ndarray | Rows) -> ColumnSummary:
    """Mean, smallest and largest value and sum of squares of every variable, in one pass.

    Parameters
    ----------
    X : ndarray or Rows

    Returns
    -------
    ColumnSummary
        NaN and infinity show in ``low`` and ``high``.
    """
    return summed_columns(X).summary()


def summed_columns(X: np.ndarray | Rows) -> Summary:
    """As `column_summary`, also of no rows.

    Parameters
    ----------
    X : ndarray or Rows

    Returns
    -------
    Summary
    """
    if isinstance(X, Rows) and X.sparse:
        total = Summary()
        for piece in X.pieces():
            total.add(_sparse_summary(piece))
        return total
    found: Summary = accumulate(X, Summary, _cached_rows(X) if isinstance(X, np.ndarray) else None)
    return found


def _cached_rows(X: np.ndarray) -> int | None:
    """Rows of a block that stays in the cache, since it is gone over several times; ``None`` for few."""
    n_rows = CACHED_ENTRIES // max(X.shape[1], 1)
    return n_rows if n_rows >= MIN_CACHED_ROWS else None


def _sparse_summary(X: Any) -> ColumnSummary:
    n = X.shape[0]
    if not X.has_canonical_format:  # an entry in several parts is their sum
        X = X.copy()
        X.sum_duplicates()
    entries = X.data.astype(np.float64)
    mean = np.bincount(X.indices, entries, minlength=X.shape[1]) / n
    low, high = (
        np.asarray(extreme.toarray(), dtype=np.float64).ravel()
        for extreme in (X.min(axis=0), X.max(axis=0))
    )
    mean = np.where(low == high, low, mean)  # of equal numbers, whatever their sum is rounded to
    with _quiet():
        squares = np.bincount(X.indices, entries**2, minlength=X.shape[1])
        energy = np.where(low == high, 0.0, np.maximum(squares - n * mean**2, 0.0))
    return ColumnSummary(n, mean, low, high, energy)
