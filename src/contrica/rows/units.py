"""Are variables on one scale? Standard deviations to divide by, and a warning where they differ much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contrica.errors import DelicateDataWarning, unmarked, warn
from contrica.rows.summary import ColumnSummary

__all__ = [
    "SCALES",
    "UnequalUnits",
    "background_deviations",
    "deviations_of",
    "divided_summary",
    "scales_of",
    "unequal_units",
    "warn_of_units",
]

# What ``scale=`` can be.
SCALES = ("none", "pooled", "each")
# How many times the spread of one variable may be that of another, and which part of its range counts as
# the spread of one that is rarely other than zero: normal ones of ten thousand rows span 8 deviations.
MAX_SPREAD_RATIO, SPREADS_IN_RANGE = 30.0, 8.0


def scales_of(scale: str, summaries: Sequence[ColumnSummary]) -> list[np.ndarray] | None:
    """What every dataset's variables are divided by.

    Parameters
    ----------
    scale : {"none", "pooled", "each"}
    summaries : sequence of ColumnSummary
        Of the foreground, then of every background.

    Returns
    -------
    list of ndarray of shape (p,), or None
        One for each dataset; 1 for a variable that does not vary.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.rows.summary import column_summary
    >>> X, Y = np.array([[0.0, 5], [4, 5]]), np.array([[1.0, 5], [1, 5]])
    >>> [each.tolist() for each in scales_of("each", [column_summary(X), column_summary(Y)])]
    [[2.0, 1.0], [1.0, 1.0]]
    """
    if scale == "none":
        return None
    if scale == "each":
        return [deviations_of([part]) for part in summaries]
    return [deviations_of(summaries)] * len(summaries)


def background_deviations(summaries: Sequence[ColumnSummary]) -> np.ndarray | None:
    """How much every variable varies in the background, and at least as much as its sampling error.

    ``√(σ² + ρ)`` with ``ρ = tr(Σ_y) / m``, as in the contrast ratio: a variable that m rows of background
    happen not to show does not lead every pattern.

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        Of the backgrounds.

    Returns
    -------
    ndarray of shape (p,) or None
        ``None`` without a background, or where it does not vary.
    """
    if not summaries:
        return None
    n_rows = sum(part.n_rows for part in summaries)
    variances = np.sum([part.energy for part in summaries], axis=0) / n_rows
    found = np.sqrt(variances + variances.sum() / n_rows)
    return found if found.all() else None


def deviations_of(summaries: Sequence[ColumnSummary]) -> np.ndarray:
    """Standard deviations of several datasets together, each about its own mean; 1 in place of 0.

    Parameters
    ----------
    summaries : sequence of ColumnSummary

    Returns
    -------
    ndarray of shape (p,)
    """
    n_rows = sum(part.n_rows for part in summaries)
    found = np.sqrt(np.sum([part.energy for part in summaries], axis=0) / n_rows)
    return np.where(_varies(found, summaries), found, 1.0)


def _varies(deviations: np.ndarray, summaries: Sequence[ColumnSummary]) -> np.ndarray:
    """Which variables vary by more than rounding."""
    size = np.max([np.maximum(np.abs(part.low), np.abs(part.high)) for part in summaries], axis=0)
    moves = np.any([part.high > part.low for part in summaries], axis=0)
    return np.asarray(moves & (deviations > 10 * np.finfo(float).eps * size))


def divided_summary(summary: ColumnSummary, scale: np.ndarray) -> ColumnSummary:
    """The summary of rows whose variables are divided by numbers.

    Parameters
    ----------
    summary : ColumnSummary
    scale : ndarray of shape (p,)

    Returns
    -------
    ColumnSummary
    """
    return ColumnSummary(
        summary.n_rows,
        summary.mean / scale,
        summary.low / scale,
        summary.high / scale,
        summary.energy / scale**2,
    )


class UnequalUnits(NamedTuple):
    """A variable that outweighs others: numbers of both, and standard deviations in the foreground.

    Attributes
    ----------
    largest : int
    smallest : int or None
        ``None`` where the median variable stands for all.
    spread, other_spread : float
    """

    largest: int
    smallest: int | None
    spread: float
    other_spread: float

    def words(self, names: np.ndarray | None) -> str:
        """What differs, with names of the variables.

        Parameters
        ----------
        names : ndarray of str or None

        Returns
        -------
        str
        """

        def name(number: int) -> str:
            return f"x{number}" if names is None else unmarked(names[number])

        other = "the median variable" if self.smallest is None else name(self.smallest)
        spread, other_spread = self.spread, self.other_spread
        return (
            f"spreads of variables differ {spread / other_spread:.0f}-fold: {name(self.largest)} has a "
            f"standard deviation of {spread:.3g} where {other} has {other_spread:.3g}, and outweighs "
            "others"
        )


def unequal_units(summaries: Sequence[ColumnSummary], *, few: bool) -> UnequalUnits | None:
    """Whether one variable outweighs another thirtyfold, as one in other units does.

    Other units change a variable in all datasets. So the larger spread is the least among datasets, and
    the smaller one the largest among them: a pattern that is strong in the foreground only is no
    reason to warn. A gene that few cells express has a small deviation in any unit; an eighth of its
    range counts in its place, where that is more. Of few variables, which are worked in as they are, the
    largest spread is compared with the smallest. Of many, principal axes follow the largest whatever the
    smallest is, so that it is compared with the median.

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        Of every dataset.
    few : bool
        Whether variables are worked in as they are.

    Returns
    -------
    UnequalUnits or None
    """
    deviations = np.array([np.sqrt(part.energy / part.n_rows) for part in summaries])
    ranges = np.array([part.high - part.low for part in summaries])
    varying = np.flatnonzero(
        np.all(
            [_varies(own, [part]) for own, part in zip(deviations, summaries, strict=True)], axis=0
        )
    )
    if not varying.size:
        return None
    large = deviations.min(axis=0)[varying]
    small = np.maximum(deviations, ranges / SPREADS_IN_RANGE).max(axis=0)[varying]
    usual = float(small.min() if few else np.median(small))
    if large.max() <= MAX_SPREAD_RATIO * usual:
        return None
    first, last = varying[large.argmax()], varying[small.argmin()] if few else None
    spreads = deviations[0]  # in words those of the foreground
    least = np.median(spreads[varying]) if last is None else spreads[last]
    return UnequalUnits(int(first), None if last is None else int(last), spreads[first], least)


def warn_of_units(
    summaries: Sequence[ColumnSummary], names: np.ndarray | None, *, few: bool
) -> None:
    """Warn where one variable outweighs another (`unequal_units`).

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        Of every dataset.
    names : ndarray of str or None
        Of the variables.
    few : bool
        Whether variables are worked in as they are.
    """
    found = unequal_units(summaries, few=few)
    if found is not None:
        warn(
            DelicateDataWarning(
                "units",
                found.words(names),
                remedy="If they are in different units, set `scale=pooled`, which divides each by its "
                "standard deviation.",
                parameter="scale",
            )
        )
