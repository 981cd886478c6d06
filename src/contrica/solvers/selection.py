"""Ranks from a structured fit: as many patterns as are significant.

The smallest eigenvalues of a flattened cumulant lie below the noise, so a scree cannot tell the ranks. A
joint fit can: every pattern of κ₄(y) and κ₄(x) is fitted with a free weight in both, patterns of which no
weight is significant (`contrica.solvers.weights`) are taken out, and what is most significant of the rest
(`contrica.solvers.residuals`) is tried, until neither helps. Patterns that have a fourth cumulant and no
third are fitted without. Then ``r`` counts the patterns with significant weight in a background, and
``ℓ`` those of the others whose weight in the foreground is significantly larger than in any background,
which supposes that the datasets are on one scale. What is neither is counted with r.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from contrica.moments.symmetric import n_packed
from contrica.rows.threads import few_threads
from contrica.solvers.joint import (
    JointFit,
    JointProblem,
    algorithm_2_starts,
    converge,
    fit_weights,
    nearest_pair,
    step_price,
    third_starts,
)
from contrica.solvers.residuals import strongest_left, what_is_left
from contrica.solvers.weights import (
    SAME_OBJECTIVE,
    RowGroups,
    WeightEstimates,
    critical_t_value,
    weight_t_values,
)

__all__ = [
    "RankChoice",
    "Typed",
    "by_significance",
    "choose_by_significance",
    "is_near",
    "searchable",
]

# Level of each decision, over all patterns. A vector that was fitted to the noise of these rows has a
# larger t-value than one given in advance, so that the level of the whole search is not this.
LEVEL = 0.01
# Steps of each fit, and share by which a try must lower the objective to be kept.
STEPS = 100
WORTHWHILE = 1e-2
# Multiplications that the search may cost in all; seconds of one core.
BUDGET = 5e9
# Share of a threshold within which a decision is near a tie: slightly other rows might turn it.
TIE = 0.05
# Times that patterns are found to be symmetric, or not to be, and nothing else changes.
MAX_TURNS = 4
# Entries of all vectors together whose errors are worked out at once: an equation for each.
MAX_TESTED = 1800


class RankChoice(NamedTuple):
    """Ranks, and what their choice rests on.

    Attributes
    ----------
    n_background, n_foreground : int
        r and ℓ; ℓ = 0 where no pattern of the foreground is significant.
    vectors : ndarray of shape (p, r + l)
        All patterns in the problem's coordinates, those of the background first.
    t_values : ndarray of shape (n_terms, r + l)
        Each weight over its standard error: those of κ₄, the foreground's first, then those of κ₃.
    critical : float
        What a t-value must reach.
    rejected : float
        t-value of the weakest pattern after the best one more was added; 0 where none was tried.
    left : ndarray of shape (n_datasets,)
        Squared norm of what the patterns leave of each tensor, over the tensor's.
    complete : bool
        Whether the search from the best start ended because nothing more helped, and was not cut short.
    near_ties : tuple of str
        Decisions that were within a twentieth of their threshold, in words.
    """

    n_background: int
    n_foreground: int
    vectors: np.ndarray
    t_values: np.ndarray
    critical: float
    rejected: float
    left: np.ndarray
    complete: bool
    near_ties: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """How near the ranks are to being others, in words."""
        told = [f"threshold t = {self.critical:.1f}"]
        strength = np.abs(self.t_values).max(axis=0)
        if strength.size:
            told.append(f"weakest accepted {strength.min():.1f}")
        if self.rejected > 0:
            told.append(f"strongest rejected {self.rejected:.1f}")
        if not self.complete:
            told.append("the search was stopped at its limit")
        return "; ".join(told)


class Typed(NamedTuple):
    """Patterns of given number, and which of them may have third cumulants.

    Attributes
    ----------
    vectors : ndarray of shape (k, r + l)
        In whitened coordinates, the background's first.
    skewed : ndarray of bool, shape (r + l,)
    """

    vectors: np.ndarray
    skewed: np.ndarray


def is_near(value: float, threshold: float) -> bool:
    """Whether a value is so near a threshold that slightly other rows might put it on the other side.

    Parameters
    ----------
    value, threshold : float

    Returns
    -------
    bool

    Examples
    --------
    >>> is_near(4.1, 4.0), is_near(4.5, 4.0)
    (True, False)
    """
    return abs(value - threshold) < TIE * threshold


def choose_by_significance(
    problem: JointProblem,
    groups: Sequence[RowGroups],
    start: tuple[int, int],
    *,
    wanted: int | None = None,
    rng: np.random.Generator,
) -> RankChoice:
    """The ranks r and ℓ by which patterns of a joint fit are significant.

    Parameters
    ----------
    problem : JointProblem
        Of a foreground and one or more backgrounds.
    groups : sequence of RowGroups
        The rows behind it in its coordinates, foreground first.
    start : tuple of int
        r and ℓ to start from, too many rather than too few, such as those of the scree. More patterns
        than are affordable to judge together, 60 in 30 dimensions, are cut down to that.
    wanted : int, optional
        Foreground patterns that are asked for. Where more are found, those with a weight in a
        background that is significant at the level of 5 instead of 1 % are taken for shared ones.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.

    Returns
    -------
    RankChoice

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import cumulants
    >>> from contrica.datasets import make_synthetic
    >>> from contrica.solvers.joint import JointProblem
    >>> data = make_synthetic(6, random_state=0)
    >>> rows = [data.foreground, data.background]
    >>> problem = JointProblem.of(*map(cumulants, rows))
    >>> groups = [RowGroups(part, problem.whiten) for part in rows]
    >>> choose_by_significance(problem, groups, (4, 8), rng=np.random.default_rng(0))[:2]
    (6, 5)
    """
    search = _Search(problem, groups, rng)
    r, l = _affordable(*start, problem.whiten.shape[1])  # noqa: E741 - the paper's ℓ
    with few_threads(problem.whiten.shape[1]):
        starts = chain(
            algorithm_2_starts(problem, r, l, rng=rng), third_starts(problem, r, l, rng=rng)
        )
        for guess in starts:
            search.from_start(guess)
            if search.spent > BUDGET:
                break
        return search.choice(wanted)


def by_significance(
    problem: JointProblem,
    groups: Sequence[RowGroups],
    vectors: np.ndarray,
    ranks: tuple[int, int],
    *,
    rng: np.random.Generator,
) -> Typed:
    """As many patterns as are given, by how significant they are in a fit that knows symmetric ones.

    What is not significant is taken out of the start, and what the rest leaves is added, the most
    significant first. Those with the largest t-values in a background are background patterns.

    Parameters
    ----------
    problem : JointProblem
    groups : sequence of RowGroups
        As of `choose_by_significance`.
    vectors : ndarray of shape (k, m)
        Patterns to start from, in whitened coordinates.
    ranks : tuple of int
        r and ℓ.
    rng : numpy.random.Generator

    Returns
    -------
    Typed
    """
    search = _Search(problem, groups, rng)
    r, l = ranks  # noqa: E741 - the paper's ℓ
    with few_threads(problem.whiten.shape[1]):
        found = search.without_insignificant(search.try_out(vectors))
        found, _ = search.grow(found, r + l)
        while len(found) < r + l:  # nothing more is significant, and so many are asked for
            found = next(search.with_one_more(found))
    order = search.by_role(found, r, l)
    return Typed(found.fit.vectors[:, order], found.skewed[order])


def searchable(n_features: int, *, n_datasets: int = 2) -> bool:
    """Whether ten fits of two patterns for every dimension are affordable, fewer than any search needs.

    Of two datasets they are up to 18 dimensions.

    Parameters
    ----------
    n_features, n_datasets : int

    Returns
    -------
    bool

    Examples
    --------
    >>> searchable(12), searchable(30)
    (True, False)
    """
    return 10 * STEPS * step_price(n_features, 2 * n_features, n_datasets) <= BUDGET


def _affordable(r: int, l: int, n_features: int) -> tuple[int, int]:  # noqa: E741
    l = max(l, 1)  # noqa: E741 - a scree that shows nothing is not believed
    most = min(max(MAX_TESTED // n_features, 2), n_packed(n_features))
    if r + l <= most:
        return r, l
    fewer = min(max(round(most * r / (r + l)), 1), most - 1)
    return fewer, most - fewer


class _Tried(NamedTuple):
    """A fit with all weights free but third cumulants' of symmetric patterns, and all t-values."""

    fit: JointFit
    judged: WeightEstimates
    skewed: np.ndarray

    @property
    def t_values(self) -> np.ndarray:
        return self.judged.t_values

    @property
    def strength(self) -> np.ndarray:
        """Of each pattern, the largest of its t_values."""
        return np.abs(self.t_values).max(axis=0)

    def __len__(self) -> int:
        return self.t_values.shape[1]

    def lowers(self, other: _Tried | None) -> bool:
        return other is None or self.fit.objective < other.fit.objective * (1 - WORTHWHILE)


class _Search:
    """The best set of patterns so far, and what was spent on it."""

    def __init__(
        self, problem: JointProblem, groups: Sequence[RowGroups], rng: np.random.Generator
    ) -> None:
        self.terms, self.groups = problem.terms, groups
        # starts of what is sought in residuals: the same each time, whatever was tried before
        self._seed = int(rng.integers(2**31))
        self.n_groups = min(part.n_groups for part in groups)
        self.most = n_packed(problem.whiten.shape[1])
        self.spent = 0.0
        # t-value of the strongest pattern that was left out, and what it needed then
        self.rejected, self.needed = 0.0, np.inf
        self.best: Any = None  # until the first start
        self.complete = False
        # objectives of pruned fits that were gone on from, and what that cost
        self.grown: list[tuple[float, float]] = []

    def critical(self, n_patterns: int, level: float = LEVEL) -> float:
        return critical_t_value(len(self.terms) * n_patterns, self.n_groups, level)

    @property
    def needed_of_third(self) -> float:
        """t-value of a third cumulant by itself, one in each dataset."""
        count = max(int(np.sum(self.terms.orders == 3)), 1)
        return critical_t_value(count, self.n_groups, LEVEL)

    def try_out(self, vectors: np.ndarray, skewed: np.ndarray | None = None) -> _Tried:
        """A fit from these vectors, and how significant each is; all may be skewed by default."""
        k = vectors.shape[1]
        free = np.ones((self.terms.n_datasets, k), dtype=bool)
        skewed = free[0] if skewed is None else skewed
        price = step_price(vectors.shape[0], k, self.terms.n_datasets)
        steps = int(np.clip(BUDGET / 2 / price, 10, STEPS))
        fit = converge(self.terms, vectors, self.terms.allowed(free, skewed), steps, 1e-6)
        self.spent += price * steps  # not what was taken, which depends on rounding
        weights = fit.weights
        if not skewed.all():  # what was left out is tested as well
            weights = fit_weights(self.terms, fit.vectors, free)
        return _Tried(fit, weight_t_values(self.groups, self.terms, fit.vectors, weights), skewed)

    def skewed(self, tried: _Tried) -> np.ndarray:
        """Which patterns have a third cumulant, or nothing that is significant.

        In a fit to skewed sources third cumulants weigh most. They say nothing of a symmetric pattern,
        which would follow their noise.
        """
        third, fourth = (
            np.abs(tried.t_values[self.terms.orders == order]).max(axis=0, initial=0.0)
            for order in (3, 4)
        )
        if 3 not in self.terms.orders:
            return tried.skewed
        return (third >= self.needed_of_third) | (fourth < self.critical(len(tried)))

    def without_insignificant(self, tried: _Tried) -> _Tried:
        """Take out the weakest patterns, some at a time, until all that are left are significant."""
        turns = 0
        while True:
            insignificant = np.flatnonzero(tried.strength < self.critical(len(tried)))
            pair = nearest_pair(tried.fit.vectors)
            if pair is not None:  # one pattern, once
                weaker = min(pair, key=lambda j: tried.strength[j])
                insignificant = np.union1d(insignificant, [weaker])
            # which patterns are symmetric need not come to rest
            skewed = self.skewed(tried) if turns < MAX_TURNS else tried.skewed
            # beyond the budget all at once
            count = max(insignificant.size // 2, 1) if self.spent < BUDGET else insignificant.size
            count = min(count, insignificant.size, len(tried) - 1)
            if count == 0 and (skewed == tried.skewed).all():
                break
            turns += count == 0
            weakest = insignificant[
                np.argsort(tried.strength[insignificant], kind="stable")[:count]
            ]
            kept = np.delete(np.arange(len(tried)), weakest)
            tried = self.try_out(tried.fit.vectors[:, kept], skewed[kept])
        return tried

    def with_one_more(self, found: _Tried) -> Iterator[_Tried]:
        """Tries with what is most significant of all that the patterns leave of a dataset."""
        rng = np.random.default_rng(self._seed)
        for shown in strongest_left(self.terms, self.groups, found.fit, rng=rng):
            is_skewed = shown.third_t_value >= self.needed_of_third
            vectors = np.column_stack([found.fit.vectors, shown.vector])
            yield self.try_out(vectors, np.append(found.skewed, is_skewed))

    def grow(self, found: _Tried, n_patterns: int) -> tuple[_Tried, bool]:
        """Add what is left as long as that helps, and whether it was not the budget that ended it."""
        while len(found) < n_patterns:
            if self.spent > BUDGET:
                return found, False
            for grown in map(self.kept, self.with_one_more(found)):
                # as many patterns, and a clearly lower objective: one was swapped for a better one
                more = len(grown) > len(found) and grown.fit.objective < found.fit.objective
                if more or (len(grown) == len(found) and grown.lowers(found)):
                    found = grown
                    break
            else:
                break
        return found, True

    def kept(self, grown: _Tried) -> _Tried:
        """What of a try is significant; the strongest that ever was not is remembered."""
        weakest, needed = float(grown.strength.min()), self.critical(len(grown))
        if weakest >= needed:
            return grown
        if weakest > self.rejected:
            self.rejected, self.needed = weakest, needed
        return self.without_insignificant(grown)

    def from_start(self, vectors: np.ndarray) -> None:
        """Prune, then add what a residual shows as long as that helps."""
        found = self.without_insignificant(self.try_out(vectors))
        objective, spent = found.fit.objective, self.spent
        for known, cost in self.grown:
            if abs(known - objective) <= SAME_OBJECTIVE:
                # paid for all the same: whether a minimum is known may depend on rounding
                self.spent += cost
                return
        found, complete = self.grow(found, self.most)
        self.grown.append((objective, self.spent - spent))
        if found.lowers(self.best):
            self.best, self.complete = found, complete

    def _larger_in_front(self, judged: WeightEstimates) -> np.ndarray:
        """Patterns whose weight in the foreground is significantly larger than any in a background.

        With few rows a weight in the background may be as large as that in the foreground, and not
        significant; that alone makes no pattern of the foreground.
        """
        sizes = np.abs(judged.weights)
        most = sizes + critical_t_value(1, self.n_groups, 0.1) * judged.errors
        larger = np.zeros(sizes.shape[1], dtype=bool)
        for own in self.terms.members.values():
            behind = self.terms.datasets[own] > 0
            larger |= sizes[own[~behind]].max(axis=0) > most[own[behind]].max(axis=0, initial=0)
        return larger

    def choice(self, wanted: int | None) -> RankChoice:
        found: _Tried = self.best
        behind = self.terms.datasets > 0
        background = np.abs(found.t_values[behind]).max(axis=0)
        n_tests = int(np.sum(behind)) * len(found)
        shared = background >= critical_t_value(n_tests, self.n_groups, LEVEL)
        shared |= ~self._larger_in_front(found.judged)
        # A pattern of the background that is weak there looks like one of the foreground.
        weak = critical_t_value(n_tests, self.n_groups, 5 * LEVEL)
        for j in np.argsort(-background):
            if wanted is None or np.sum(~shared) <= wanted or background[j] < weak:
                break
            shared[j] = True
        # what is significant in no dataset is nobody's pattern
        significant = found.strength >= self.critical(len(found))
        order = np.concatenate(
            [np.flatnonzero(shared & significant), np.flatnonzero(~shared & significant)]
        )
        vectors = found.fit.vectors[:, order]
        rest = [part.squared_norm() for part in what_is_left(self.terms, found.fit)]
        return RankChoice(
            int(np.sum(shared & significant)),
            int(np.sum(~shared & significant)),
            vectors,
            found.t_values[:, order],
            self.critical(len(found)),
            self.rejected,
            np.array(rest) / self.terms.squared_norms[self.terms.orders == 4],
            self.complete,
            tuple(self._near_ties(background[significant], n_tests)),
        )

    def by_role(self, found: _Tried, r: int, l: int) -> np.ndarray:  # noqa: E741
        """Background patterns first, by t-values there; insignificant ones fill what is left."""
        behind = np.abs(found.t_values[self.terms.datasets > 0]).max(axis=0)
        significant = found.strength >= self.critical(len(found))
        first, last = np.flatnonzero(significant), np.flatnonzero(~significant)
        first = first[np.argsort(-behind[first], kind="stable")]
        n_tests = int(np.sum(self.terms.datasets > 0)) * len(found)
        shared = int(np.sum(behind[first] >= critical_t_value(n_tests, self.n_groups, LEVEL)))
        shared = min(max(shared, first.size - l), r)
        spare = r - shared
        return np.concatenate([first[:shared], last[:spare], first[shared:], last[spare:]])

    def _near_ties(self, background: np.ndarray, n_tests: int) -> Iterator[str]:
        """Decisions that slightly other rows might turn."""
        needed, weakest = self.critical(len(self.best)), float(self.best.strength.min())
        if is_near(weakest, needed):
            yield f"the weakest pattern has t = {weakest:.2f}; {needed:.2f} is needed"
        if is_near(self.rejected, self.needed):
            yield (
                f"a pattern with t = {self.rejected:.2f} was left out; {self.needed:.2f} was needed"
            )
        shared = critical_t_value(n_tests, self.n_groups, LEVEL)
        for value in background[[is_near(value, shared) for value in background]]:
            yield (
                f"a pattern has t = {value:.2f} in a background; {shared:.2f} would make it a background "
                "pattern"
            )
