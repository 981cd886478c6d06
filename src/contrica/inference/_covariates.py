"""Covariates of rows, such as age or batch: which go along with a score, tested between groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import combinations
from math import inf, lgamma, log, nan
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError
from contrica.inference._data import SourceScores
from contrica.inference._findings import Finding, joined
from contrica.rows.groups import Groups, group_name, is_missing
from contrica.solvers.permutation_null import LEVEL

__all__ = ["covariate_findings", "explained_share", "with_rows"]

# Whole numbers of a covariate up to which they may be codes of kinds.
MAX_CODES = 20
# Permutations of groups' values that a covariate is tested by, where there are too many to try all.
N_PERMUTATIONS = 999
# Assignments of a covariate's values to groups, times groups, up to which all are tried.
MAX_ASSIGNED = 200_000
# Share of the variance over rows from which a covariate is told.
TOLD_SHARE = 0.1


class _Covariate(NamedTuple):
    """What is known of some rows: numbers, or codes of kinds."""

    values: np.ndarray
    n_kinds: int = 0

    @classmethod
    def of(cls, cells: np.ndarray) -> _Covariate:
        """Of cells that all have a value; two different numbers are two kinds."""
        values = np.array(cells.tolist())
        if values.dtype.kind == "O" and all(isinstance(each, Real | Decimal) for each in values):
            values = values.astype(float)
        if values.dtype.kind in "fiu" and np.unique(values).size > 2:
            return cls(values.astype(float))
        kinds, codes = np.unique(values.astype(str), return_inverse=True)
        return cls(codes.ravel(), len(kinds))

    def of_groups(self, groups: Groups) -> np.ndarray:
        """Of each group the mean number, or the share of each kind."""
        count = len(groups.names)
        sizes = np.bincount(groups.codes, minlength=count)[:, None]
        if not self.n_kinds:
            return np.bincount(groups.codes, self.values, count)[:, None] / sizes
        cells = groups.codes * self.n_kinds + self.values
        shares = np.bincount(cells, minlength=count * self.n_kinds).reshape(count, self.n_kinds)
        return np.asarray(shares / sizes)

    def explained(self, scores: np.ndarray) -> float:
        """Adjusted R² over rows: of a straight line, or of the means of kinds."""
        scores = scores - scores.mean()
        total = float(scores @ scores)
        if self.n_kinds:
            sums = np.bincount(self.values, scores, self.n_kinds)
            part = float(np.sum(sums**2 / np.bincount(self.values, minlength=self.n_kinds)))
        else:
            numbers = self.values - self.values.mean()
            part = float(numbers @ scores) ** 2 / max(float(numbers @ numbers), 1e-300)
        share = part / total if total > 0 else 0.0
        return _adjusted(share, scores.size, max(self.n_kinds - 1, 1))


def covariate_findings(
    scores: SourceScores,
    groups: Groups | None,
    covariates: Mapping[str, Any],
    rng: np.random.Generator,
) -> Iterator[Finding]:
    """Which covariates go along with a score, which could not be tested, and how they were taken.

    Parameters
    ----------
    scores : SourceScores
    groups : Groups or None
        Of the foreground's rows that have scores.
    covariates : mapping of str to array-like of shape (n_samples,)
    rng : numpy.random.Generator
        Permutes groups' values of covariates.

    Yields
    ------
    Finding
    """
    for name, given in covariates.items():
        cells, are_dates = _cells(name, given)
        if cells.shape != (scores.n_rows,):
            raise DataError(
                "covariate-length",
                f"covariate {name} has shape {cells.shape}",
                f"there are {scores.n_rows} rows",
                parameter="covariates",
            )
        cells = cells[scores.rows]
        known = np.flatnonzero([_has_value(each) for each in cells])
        if known.size < 2:
            continue
        own = None if groups is None else with_rows(groups.take(known))
        column = _Covariate.of(cells[known])
        if column.n_kinds == 1:
            continue  # a constant explains nothing
        yield from _as_numbers(name, column, are_dates)
        called, left_out = f"covariate {name}", cells.size - known.size
        if left_out:
            called += f" ({left_out} rows without a value left out)"
        if column.n_kinds > known.size / 2:
            yield _too_many_kinds(called, column.n_kinds, known.size)
        elif own is None:
            yield from _over_rows(called, scores.fore[known], column)
        else:
            yield from _between_groups(called, scores.fore[known], column, own, rng)


def _cells(name: str, given: Any) -> tuple[np.ndarray, bool]:
    """One value for each row, categories as text, dates and times as days; and whether these they are."""
    if str(getattr(given, "dtype", "")) == "category":
        cells = np.asarray(given, dtype=object)
        texts = [None if is_missing(each) else group_name(each) for each in cells]
        return np.array(texts, dtype=object), False
    try:
        cells = np.asarray(given)
    except ValueError:  # lists of different lengths
        cells = np.asarray(given, dtype=object)
    if cells.dtype.kind == "M":
        cells = cells.astype("datetime64[us]") - np.datetime64(0, "us")
    if cells.dtype.kind == "m":
        return cells / np.timedelta64(1, "D"), True
    if cells.dtype != object or cells.ndim != 1:
        return cells, False
    nested = [each for each in cells if isinstance(each, list | tuple | set | dict | np.ndarray)]
    if nested:
        raise DataError(
            "covariate-cells",
            f"covariate {name} has cells with a {type(nested[0]).__name__}",
            "each row needs one number or one text",
            "Make a column of each of their parts, or text of each cell.",
            "covariates",
        )
    known = [not is_missing(each) for each in cells]
    if not any(known) or not all(map(_is_date, cells[known])):
        return cells, False
    days = np.full(cells.size, nan)
    days[known] = [_days(each) for each in cells[known]]
    return days, True


def _is_date(value: Any) -> bool:
    return isinstance(value, date | timedelta | np.datetime64 | np.timedelta64) or hasattr(
        value, "start_time"
    )


def _days(value: Any) -> float:
    """A date or a time since 1970, a period by its start, or a duration."""
    value = getattr(value, "start_time", value)
    if isinstance(value, np.datetime64):
        value = value - np.datetime64(0, "D")
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "D"))
    if isinstance(value, timedelta):
        return float(value / timedelta(days=1))
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return float(value.timestamp() / 86400)


def _has_value(value: Any) -> bool:
    return not is_missing(value) and value not in (inf, -inf)


def with_rows(groups: Groups) -> Groups:
    """Those groups that have rows, by new numbers.

    Parameters
    ----------
    groups : Groups

    Returns
    -------
    Groups
    """
    numbers, codes = np.unique(groups.codes, return_inverse=True)
    return Groups(codes.ravel(), tuple(groups.names[i] for i in numbers))


def _as_numbers(name: str, column: _Covariate, are_dates: bool) -> Iterator[Finding]:
    """Say that few whole numbers, or dates, were taken as numbers, as they may be codes of kinds."""
    values = column.values
    count = np.unique(values).size
    whole = are_dates or bool((values == np.rint(values)).all())
    if column.n_kinds or not whole or not 2 < count <= min(MAX_CODES, values.size / 2):
        return
    yield Finding(
        "covariate-as-numbers",
        "note",
        f"covariate {name} has {count} different {'dates' if are_dates else 'whole numbers'} and was "
        f"taken as {'days' if are_dates else 'a number'}, to which a straight line is fitted",
        "If they are codes, of donors or batches say, give them as text or as a pandas.Categorical: each "
        "is then a kind of its own.",
    )


def _too_many_kinds(called: str, n_kinds: int, n_rows: int) -> Finding:
    return Finding(
        "covariate-not-tested",
        "note",
        f"{called} has {n_kinds} kinds in {n_rows} rows: so many explain any score",
        "Give fewer kinds, or numbers as numbers.",
    )


def _over_rows(called: str, scores: np.ndarray, column: _Covariate) -> Iterator[Finding]:
    for i, own in enumerate(scores.T):
        share = column.explained(own)
        if share > TOLD_SHARE:
            yield Finding(
                "covariate",
                "note",
                f"{called} explains {share:.0%} of the variance of score {i + 1}, over rows; not "
                "tested, since rows need not be independent",
                "Give `groups` for a test.",
            )


def _between_groups(
    called: str, scores: np.ndarray, column: _Covariate, groups: Groups, rng: np.random.Generator
) -> Iterator[Finding]:
    count, basis = len(groups.names), _basis(column.of_groups(groups))
    if not basis.size:
        return  # each group has as much of it
    if basis.shape[1] >= count - 1:
        yield Finding(
            "covariate-not-tested",
            "note",
            f"{called} has so many values that they tell all {count} groups apart: it explains whatever "
            "differs between groups, and cannot be tested",
            "Give fewer kinds, or more groups.",
        )
        return
    tests = [_tested(_means(own, groups), basis, rng) for own in scores.T]
    untested = []
    for i, each in enumerate(tests):
        if each.smallest > LEVEL:
            untested.append((each.share, f"{each.share:.0%} of the variance of score {i + 1}"))
        elif each.p <= LEVEL:
            yield Finding(
                "covariate",
                "careful",
                f"{called} explains {each.share:.0%} of the variance of score {i + 1} between {count} "
                f"groups (p = {each.p:.2g} by permutation of groups, of this one alone)",
                "The pattern may be this covariate's: compare groups that are alike in it.",
            )
    if untested:
        told = joined([words for _, words in sorted(untested, key=lambda pair: -pair[0])])
        yield Finding(
            "covariate-not-tested",
            "note",
            f"{called} explains {told} between {count} groups; with so few groups p cannot be below "
            f"{min(each.smallest for each in tests):.2g}",
            "The pattern may be this covariate's: only more groups can tell.",
        )


def _means(scores: np.ndarray, groups: Groups) -> np.ndarray:
    """Of each group that has rows, less the mean of these."""
    found = np.bincount(groups.codes, scores) / np.bincount(groups.codes)
    return np.asarray(found - found.mean())


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span these, less their means."""
    left, sizes, _ = np.linalg.svd(columns - columns.mean(axis=0), full_matrices=False)
    return np.asarray(left[:, sizes > 1e-12 * max(float(np.linalg.norm(columns)), 1e-300)])


def _shares(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """R² of centred values, a row for each order of them, or of the basis' rows."""
    total = np.sum(values**2, axis=-1)
    fitted = np.einsum("...g,...gr->...r", values, basis)
    return np.asarray(np.sum(fitted**2, axis=-1) / np.maximum(total, 1e-300))


def _adjusted(share: float, n_values: int, rank: int) -> float:
    """R² less what as many columns of chance explain; NaN where they explain all."""
    rest = n_values - rank - 1
    return max(1 - (1 - share) * (n_values - 1) / rest, 0.0) if rest > 0 else nan


class _Test(NamedTuple):
    """Adjusted R² between groups, its p, and the smallest p that these groups allow."""

    share: float
    p: float
    smallest: float


def _tested(means: np.ndarray, basis: np.ndarray, rng: np.random.Generator) -> _Test:
    own = float(_shares(means, basis))
    share = _adjusted(own, *basis.shape)
    kinds, codes = np.unique(np.round(basis, 9), axis=0, return_inverse=True)
    if _n_assignments(np.bincount(codes.ravel())) * means.size <= MAX_ASSIGNED:
        every = _shares(means, kinds[_assignments(codes.ravel())])
        least = [np.mean(every >= (1 - 1e-6) * size) for size in (own, every.max())]
        return _Test(share, float(least[0]), float(least[1]))
    drawn = _shares(np.array([rng.permutation(means) for _ in range(N_PERMUTATIONS)]), basis)
    total = 1 + N_PERMUTATIONS
    return _Test(share, float((1 + np.sum(drawn >= own * (1 - 1e-9))) / total), 1 / total)


def _n_assignments(counts: np.ndarray) -> float:
    """In how many orders that differ values stand that often: infinite beyond all that could be tried."""
    found = lgamma(counts.sum() + 1) - sum(lgamma(each + 1) for each in counts)
    return float(np.exp(found)) if found < log(MAX_ASSIGNED) + 1 else inf


def _assignments(codes: np.ndarray) -> np.ndarray:
    """Every different order of these numbers, a row for each."""
    orders = np.full((1, codes.size), -1)
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        found = []
        for order in orders:
            places = np.array(list(combinations(np.flatnonzero(order < 0), count)))
            more = np.repeat(order[None], len(places), axis=0)
            np.put_along_axis(more, places, code, axis=1)
            found.append(more)
        orders = np.vstack(found)
    return orders


def explained_share(
    scores: np.ndarray, column: np.ndarray, groups: Groups | None
) -> tuple[float, int]:
    """How much of a score's variance a column explains: between groups, where rows come in groups.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    column : ndarray of shape (n,)
        Numbers or kinds; rows without a value are left out.
    groups : Groups, optional

    Returns
    -------
    share : float
        Adjusted R², NaN where there are too few values, or more kinds than half as many.
    n_units : int
        Rows, or groups, that it is of.
    """
    known = np.flatnonzero([_has_value(each) for each in column])
    own = None if groups is None else with_rows(groups.take(known))
    n_units = known.size if own is None else len(own.names)
    if n_units < 3:
        return nan, n_units
    found = _Covariate.of(column[known])
    if found.n_kinds > n_units / 2:
        return nan, n_units
    if own is None:
        return found.explained(scores[known]), n_units
    basis = _basis(found.of_groups(own))
    return _adjusted(float(_shares(_means(scores[known], own), basis)), *basis.shape), n_units
