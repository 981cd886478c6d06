"""In what selected rows differ from all others: effect sizes, since the same rows chose the pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contrica.errors import DataError
from contrica.explorer._data import ExplorerData
from contrica.explorer._views import Difference, Differences
from contrica.report._material import Column

__all__ = ["differences_of"]

# Variables and columns that are listed.
N_LISTED = 20
WHY_NO_P = (
    "Effect sizes only: the same rows gave pattern and selection, so that a p would say nothing."
)


def differences_of(data: ExplorerData, rows: Sequence[int] | np.ndarray) -> Differences:
    """Variables and metadata in which foreground rows differ from the foreground's other rows.

    Parameters
    ----------
    data : ExplorerData
    rows : sequence of int
        Their numbers.

    Returns
    -------
    Differences
    """
    chosen = _checked(data, rows)
    n_rows, n_others = int(chosen.sum()), int((~chosen).sum())
    variables = []
    sizes = _standardized(data.fore, chosen)
    for j in np.argsort(-np.abs(np.nan_to_num(sizes)), kind="stable")[:N_LISTED]:
        if np.isfinite(sizes[j]) and sizes[j] != 0:
            words = f"{sizes[j]:+.2f} sd"
            variables.append(Difference(data.names[j], float(sizes[j]), words))
    columns = []
    for name, column in data.columns.items():
        columns += _of_column(name, column, chosen)
    columns.sort(key=lambda each: -abs(each.size))
    words = (
        f"{n_rows:,} selected rows against the {n_others:,} others of the foreground. {WHY_NO_P}"
    )
    if data.has_groups:
        words += " Rows of one group are alike: look at how many groups the selection holds."
    return Differences(n_rows, n_others, tuple(variables), tuple(columns[:N_LISTED]), words)


def _checked(data: ExplorerData, rows: Sequence[int] | np.ndarray) -> np.ndarray:
    numbers = np.asarray(rows)
    whole = numbers.ndim == 1 and (numbers.size == 0 or numbers.dtype.kind in "iu")
    if not whole or (numbers.size and not 0 <= numbers.min() <= numbers.max() < data.n_fore):
        raise DataError(
            "no-such-row",
            "rows were selected that the foreground does not have",
            remedy="Select again.",
            parameter="rows",
        )
    chosen = np.zeros(data.n_fore, dtype=bool)
    chosen[numbers.astype(int)] = True
    if not 0 < chosen.sum() < data.n_fore:
        raise DataError(
            "selection",
            "all rows of the foreground are selected" if chosen.any() else "no row is selected",
            "some rows are compared with the others",
            "Draw around some of the foreground's points.",
            "rows",
        )
    return chosen


def _standardized(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Differences of means over the standard deviation within both parts; NaN without any."""
    sums = []
    for part in (values[chosen], values[~chosen]):
        known = ~np.isnan(part)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, part, 0.0).sum(axis=0) / count
        square = np.where(known, part - mean, 0.0) ** 2
        sums.append(
            (np.where(known.any(axis=0), mean, np.nan), square.sum(axis=0), known.sum(axis=0))
        )
    (one, first, n), (other, second, m) = sums
    within = np.sqrt((first + second) / np.maximum(n + m, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (one - other) / within
    return np.where(within > 1e-12 * np.maximum(np.abs(one), np.abs(other)), found, np.nan)


def _of_column(name: str, column: Column, chosen: np.ndarray) -> list[Difference]:
    if not column.levels:
        size = float(_standardized(column.values[:, None], chosen)[0])
        return [Difference(name, size, f"{size:+.2f} sd")] if np.isfinite(size) and size else []
    known = column.values >= 0
    if not (known & chosen).any() or not (known & ~chosen).any():
        return []
    shares = [
        np.bincount(column.values[part], minlength=len(column.levels)) / part.sum()
        for part in (known & chosen, known & ~chosen)
    ]
    gap = shares[0] - shares[1]
    k = int(np.argmax(np.abs(gap)))
    words = f"{shares[0][k]:.0%} of the selection, {shares[1][k]:.0%} of the others"
    return [Difference(f"{name} = {column.levels[k]}", float(gap[k]), words)] if gap[k] else []
