"""What one pass says of rows with gaps, and rows that are kept from it."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.rows.device import to_numpy
from contrica.rows.products import Chosen
from contrica.rows.protocol import Rows, accumulate
from contrica.validation import describe_columns

__all__ = ["Observed", "check_observed", "gaps_error", "observed_columns"]


class Observed:
    """Accumulator: of every variable the number of gaps, and the mean and the spread without them.

    Parameters
    ----------
    n_features : int
    index : ndarray of int
        Numbers of the rows to keep, increasing.
    start : int
        Number of the first row it will get.

    Attributes
    ----------
    n_rows : int
    n_missing, n_infinite : ndarray of int, shape (n_features,)
    mean : ndarray of shape (n_features,)
        Of the observed entries; 0 where there are none.
    energy : ndarray of shape (n_features,)
        Sum of their squares about it.
    chosen : Chosen
        The rows that were kept.
    """

    def __init__(self, n_features: int, index: np.ndarray, start: int = 0) -> None:
        self.n_rows = 0
        self.n_missing, self.n_infinite = (np.zeros(n_features, dtype=np.int64) for _ in range(2))
        self.mean, self.energy = np.zeros(n_features), np.zeros(n_features)
        self.chosen = Chosen(index, start)

    def update(self, block: Any) -> Observed:
        """Add a block of rows."""
        rows = to_numpy(block)
        self.chosen.update(rows)
        gaps = np.isnan(rows)
        self.n_infinite += np.isinf(rows).sum(axis=0)
        counts = len(rows) - gaps.sum(axis=0)
        # about a value of each variable, so that a large mean costs no digits
        origin = rows[np.argmin(gaps, axis=0), np.arange(rows.shape[1])] if len(rows) else self.mean
        origin = np.where(np.isfinite(origin), origin, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.where(gaps, 0.0, rows - origin)
            shift = apart.sum(axis=0) / np.maximum(counts, 1)
            energy = np.sum(np.where(gaps, 0.0, apart - shift) ** 2, axis=0)
            self._add(len(rows), counts, origin + shift, energy)
        self.n_missing += gaps.sum(axis=0)
        return self

    def _add(self, n: int, counts: np.ndarray, mean: np.ndarray, energy: np.ndarray) -> None:
        before = self.n_rows - self.n_missing
        total = np.maximum(before + counts, 1)
        apart = np.where(before > 0, mean - self.mean, 0.0)
        self.energy = self.energy + energy + apart**2 * (before * counts / total)
        moved = np.where(before > 0, self.mean + apart * (counts / total), mean)
        self.mean = np.where(counts > 0, moved, self.mean)
        self.n_rows += n

    def divided(self, scale: np.ndarray) -> Observed:
        """What it would say of the variables divided by numbers; kept rows are as they were.

        Parameters
        ----------
        scale : ndarray of shape (n_features,)

        Returns
        -------
        Observed
        """
        found = copy(self)
        found.mean, found.energy = self.mean / scale, self.energy / scale**2
        return found

    def merge(self, other: Observed) -> Observed:
        """Add what another one holds."""
        self._add(other.n_rows, other.n_rows - other.n_missing, other.mean, other.energy)
        self.n_missing = self.n_missing + other.n_missing
        self.n_infinite = self.n_infinite + other.n_infinite
        self.chosen.merge(other.chosen)
        return self


def observed_columns(X: np.ndarray | Rows, index: np.ndarray | None = None) -> Observed:
    """What one pass says of rows with gaps.

    Parameters
    ----------
    X : ndarray or Rows
    index : ndarray of int, optional
        Numbers of rows to keep, increasing.

    Returns
    -------
    Observed

    Examples
    --------
    >>> import numpy as np
    >>> observed_columns(np.array([[1.0, np.nan], [3.0, 4.0]])).mean
    array([2., 4.])
    """
    chosen = np.empty(0, dtype=np.int64) if index is None else index
    width = X.n_columns if isinstance(X, Rows) else X.shape[1]
    found: Observed = accumulate(X, partial(Observed, width, chosen))
    return found


def gaps_error(X: np.ndarray | Rows, name: str, names: np.ndarray | None, remedy: str) -> DataError:
    """The error that names the variables with gaps; one more pass counts these.

    Parameters
    ----------
    X : ndarray or Rows
    name : str
        What errors call it.
    names : ndarray of str or None
        Of the variables.
    remedy : str

    Returns
    -------
    DataError
    """
    found = observed_columns(X)
    counts = found.n_missing + found.n_infinite
    told = f"`{name}` contains NaN or infinity, in {describe_columns(counts, names)}"
    if not counts.any():
        told = f"`{name}` has numbers so large that products of them are infinite"
        remedy = "Divide all datasets by one common factor."
    return DataError("not-finite", told, remedy=remedy, parameter=name)


def check_observed(found: Observed, name: str, names: np.ndarray | None) -> None:
    """Refuse infinity, and variables without any value.

    Parameters
    ----------
    found : Observed
    name : str
    names : ndarray of str or None
        Of the variables.
    """
    if found.n_infinite.any():
        raise DataError(
            "not-finite",
            f"`{name}` contains infinity, in {describe_columns(found.n_infinite, names)}",
            "a value must be a number, or missing (NaN)",
            "Write NaN in its place, or leave such rows out.",
            name,
        )
    unseen = found.n_missing == found.n_rows
    if unseen.any():
        raise DataError(
            "nothing-observed",
            f"`{name}` has no value at all in {describe_columns(found.n_missing * unseen, names)}",
            "every variable must be observed in every dataset",
            "Leave such variables out of all datasets.",
            name,
        )
