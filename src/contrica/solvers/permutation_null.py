"""How many contrast directions stand out when rows, or whole groups of them, are permuted: one null."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dsygvx

from contrica.moments.spectra import is_positive_definite, orthonormal, top_ratio
from contrica.rows.device import like, plus_diagonal
from contrica.rows.threads import one_pool, threads_for_matrix
from contrica.solvers.contrast_directions import contrast_axes, rounding_of
from contrica.solvers.group_design import GroupDesign
from contrica.solvers.rescaling import Rescaling
from contrica.solvers.row_design import RowDesign
from contrica.solvers.split import Split, Splits
from contrica.solvers.wide_null import WideNull, is_wide
from contrica.validation import check_count, check_n_rows

__all__ = ["LEVEL", "ContrastScree", "choose_dimension", "count_directions", "largest_ratio"]

# Level of the test of each direction, and permutations to make where not all are made.
LEVEL, N_PERMUTATIONS = 0.05, 999
# By which factor p may be off the level for the count to be near a tie.
NEAR_LEVEL = 2.0


class ContrastScree(NamedTuple):
    """Contrast ratios, and how many of them stand out from a permutation null.

    Attributes
    ----------
    ratios : ndarray of shape (p,)
        Of all directions, decreasing (`contrast_axes`).
    chosen : int
        How many stand out: those with p at most .05.
    n_clear, n_possible : int
        How many have p at most half of that, and how many at most twice; where these differ, the count is
        near a tie.
    null_mean, null_deviation : float
        Of the largest ratio of a permutation; NaN where nothing was permuted.
    p_values : ndarray of shape (n_tested,)
        Of the directions in turn, up to the first that does not stand out. They test that both datasets
        have one distribution.
    n_assignments : int
        Assignments of rows or groups to the datasets, the observed one among them; one over it is the
        smallest p there can be. 0 where nothing was permuted.
    unit : {"rows", "groups"}
        What was permuted.
    null_quantile : float
        What 95 % of the permutations have a largest ratio below.
    """

    ratios: np.ndarray
    chosen: int
    n_clear: int
    n_possible: int
    null_mean: float = float("nan")
    null_deviation: float = float("nan")
    p_values: np.ndarray = np.empty(0)
    n_assignments: int = 0
    unit: str = "groups"
    null_quantile: float = float("nan")

    @property
    def n_beyond(self) -> int:
        """Directions that exceed every permutation; those that stand out where nothing was permuted."""
        if self.n_assignments == 0 or self.p_values.size == 0:
            return self.chosen
        return int(np.sum(self.p_values * self.n_assignments < 1.5))


def choose_dimension(
    X: np.ndarray,
    background: np.ndarray,
    *,
    rng: np.random.Generator,
    n_permutations: int = N_PERMUTATIONS,
) -> ContrastScree:
    """How many contrast directions of independent rows stand out (`count_directions`).

    Rows that depend on one another, such as cells of one donor, make the count too large.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    background : ndarray of shape (m, p)
    rng : numpy.random.Generator
        Permutes the rows.
    n_permutations : int
        Permutations; fewer, but at least 40, where many variables make each one expensive.

    Returns
    -------
    ContrastScree
    """
    return count_directions(RowDesign(X, [background]), rng=rng, n_permutations=n_permutations)


def count_directions(
    design: RowDesign | GroupDesign,
    *,
    rng: np.random.Generator,
    n_permutations: int = N_PERMUTATIONS,
    level: float = LEVEL,
    rescaling: Rescaling | None = None,
    each: Callable[..., Iterable[Any]] = map,
) -> ContrastScree:
    """How many contrast directions stand out when rows or groups are assigned to the datasets anew.

    Rows of each dataset are taken about its mean, so that a mere shift does not count, and assigned to
    foreground and background at random: single rows, many of them in batches; whole groups; halves of
    paired groups. Means, covariances and ρ are taken anew each time. The p-value of the first direction
    is the share of assignments, the observed one among them, whose largest ratio is at least the
    observed. For the next direction the ones before are projected out of all rows, and the largest ratio
    of what is left, observed and permuted, is compared. p never falls, and the first direction with a p
    above the level ends the count. Where the background does not vary at all, nothing is permuted:
    directions in which X does are counted.

    Parameters
    ----------
    design : RowDesign or GroupDesign
    rng : numpy.random.Generator
        Draws assignments, where there are more than are made.
    n_permutations : int
        Assignments to make besides the observed one; fewer rows are permuted fewer times where many
        variables make each one expensive.
    level : float
    rescaling : Rescaling, optional
        Where variables were divided by standard deviations: every assignment divides anew.
    each : callable
        As ``map``: may share the assignments among processes, and tell how far they are.

    Returns
    -------
    ContrastScree
    """
    check_count("n_permutations", n_permutations, minimum=2)
    if isinstance(design, RowDesign):
        check_n_rows(design.n_fewer, 2, "a contrast subspace")
    with one_pool():
        return _counted(_null_of(design, n_permutations, rng, rescaling, each), level, design.unit)


def _counted(null: CovarianceNull | WideNull, level: float, unit: str) -> ContrastScree:
    """How many ratios exceed those of the null, one after another."""
    observed = null.observed
    ratios, axes = contrast_axes(observed.fore, observed.back, floor=observed.floor)
    if observed.back.trace() <= rounding_of(observed.fore):
        count = int(np.sum(ratios > 1))  # variances above the floor, which is rounding here
        return ContrastScree(ratios, count, count, count, unit=unit)
    largest = null.largest(ratios)
    p_values = [_share(largest >= ratios[0] * (1 - 1e-9))]
    while p_values[-1] <= level and len(p_values) < ratios.size:
        exceeding = null.exceeding(ratios, axes, len(p_values))
        p_values.append(max(_share(exceeding), p_values[-1]))
    found = np.array(p_values)
    chosen, clear, possible = (
        int(np.sum(found <= limit)) for limit in (level, level / NEAR_LEVEL, level * NEAR_LEVEL)
    )
    others = largest[1:]
    return ContrastScree(
        ratios,
        *(chosen, clear, possible),
        null_mean=float(others.mean()) if others.size else float("nan"),
        null_deviation=float(others.std(ddof=1)) if others.size > 1 else float("nan"),
        p_values=found,
        n_assignments=len(null),
        unit=unit,
        null_quantile=float(np.quantile(others, 1 - level)) if others.size else float("nan"),
    )


def _share(exceeding: np.ndarray) -> float:
    """p: the observed assignment is the first, and exceeds itself."""
    return float((1 + np.sum(exceeding[1:])) / exceeding.size)


def _null_of(
    design: RowDesign | GroupDesign,
    n_permutations: int,
    rng: np.random.Generator,
    rescaling: Rescaling | None,
    each: Callable[..., Iterable[Any]],
) -> CovarianceNull | WideNull:
    """Permutations of a design, and how their largest ratios are found."""
    if isinstance(design, RowDesign):
        design = design.on_card()
        if rescaling is None and not design.is_on_card and is_wide(design, n_permutations):
            return WideNull(design, n_permutations, rng)
    # of a card one after another: what is there is not sent about
    splits = design.splits(n_permutations, rng, rescaling)
    return CovarianceNull(splits, map if design.is_on_card else each)


class CovarianceNull:
    """Largest ratios of assignments from the covariances of each.

    Parameters
    ----------
    splits : Splits
    each : callable
        As ``map``.

    Attributes
    ----------
    observed : Split
    """

    def __init__(self, splits: Splits, each: Callable[..., Iterable[Any]] = map) -> None:
        self._splits, self._each = splits, each
        self.observed = next(iter(splits))
        self._left: Any = None

    def __len__(self) -> int:
        return len(self._splits)

    def largest(self, ratios: np.ndarray) -> np.ndarray:
        """The largest ratio of every assignment, the observed one first.

        Parameters
        ----------
        ratios : ndarray of shape (p,)
            Of the observed assignment.

        Returns
        -------
        ndarray of shape (len(self),)
        """
        with threads_for_matrix(ratios.size):
            floors, found = np.array(list(self._each(_floor_and_ratio, self._splits))).T
        self._products = found * floors
        return found

    def exceeding(self, ratios: np.ndarray, axes: np.ndarray, skip: int) -> np.ndarray:
        """Which assignments have a largest ratio of at least the observed one, leading axes left out.

        A ratio along some axes, where ρ is smaller, is at most that of all directions times how many
        times smaller it is.

        Parameters
        ----------
        ratios : ndarray of shape (p,)
            Of the observed assignment in all directions.
        axes : ndarray of shape (p, p)
            Their axes.
        skip : int

        Returns
        -------
        ndarray of bool, shape (len(self),)
        """
        if self._left is None:
            # the first columns of it span the last of the axes, as many of them
            self._left = like(self.observed.back, orthonormal(axes[:, ::-1]))
        inside = self._left[:, : ratios.size - skip]  # of what the directions before leave
        observed = self.observed.inside(inside)
        # rounding must not decide between equals
        reached = largest_ratio(observed.fore, observed.back, observed.floor) * (1 - 1e-9)
        exceeds = partial(_exceeds, inside, inside @ inside.T, reached)
        return np.array(list(self._each(exceeds, self._splits, self._products)))


def _floor_and_ratio(part: Split) -> tuple[float, float]:
    """ρ of an assignment, and its largest ratio."""
    floor = max(part.floor, rounding_of(part.back))
    return floor, largest_ratio(part.fore, part.back, floor)


def _exceeds(inside: Any, projector: Any, reached: float, part: Split, bound: float) -> bool:
    """Whether an assignment reaches a ratio along some axes; its own times ρ is at most ``bound``."""
    floor = part.floor_within(projector)
    if bound < 0.999 * reached * floor or _is_below(part, reached, floor):
        return False
    return _reaches(part.inside(inside), reached)


def _reaches(part: Split, bound: float) -> bool:
    """Whether some direction reaches a ratio; of tensors by a factor, which takes less than the ratio."""
    floor = max(part.floor, rounding_of(part.back))
    if isinstance(part.fore, np.ndarray):
        return largest_ratio(part.fore, part.back, floor) >= bound
    return not is_positive_definite(bound * plus_diagonal(part.back, floor) - part.fore)


def _is_below(part: Split, bound: float, floor: float) -> bool:
    """Whether no direction at all reaches a ratio; quick, and False where rounding could decide.

    No ratio reaches k if ``k (Σ_y + ρ I) − Σ_x`` is positive definite.
    """
    rounding = rounding_of(part.fore) + bound * rounding_of(part.back)
    if rounding > 1e-7 * bound * floor:
        return False
    gap = (1 - 1e-6) * bound * part.back - part.fore
    added = (1 - 1e-6) * bound * floor
    if not isinstance(gap, np.ndarray):
        return is_positive_definite(plus_diagonal(gap, added))
    gap.flat[:: len(gap) + 1] += added
    return bool(dpotrf(gap, overwrite_a=1)[1] == 0)


def largest_ratio(fore: Any, back: Any, floor: float) -> float:
    """First of the ratios of `contrast_axes`, and no other: a thousand permutations ask for it.

    Parameters
    ----------
    fore, back : ndarray or tensor of shape (p, p)
        Covariances.
    floor : float
        ρ.

    Returns
    -------
    float
    """
    p = len(fore)
    # an outlying row among few others makes rounding larger than in the data
    floor = max(floor, rounding_of(back))
    if not isinstance(fore, np.ndarray):
        return top_ratio(fore, plus_diagonal(back, floor))
    damped = back.copy()
    damped.flat[:: p + 1] += floor
    # LAPACK itself: around it scipy's checks take as long as the answer
    values, *_, info = dsygvx(fore.T, damped.T, jobz="N", range="I", il=p, iu=p, overwrite_b=1)
    if info:
        raise np.linalg.LinAlgError(f"no largest ratio of variances was found (dsygvx: {info})")
    return float(values[0])
