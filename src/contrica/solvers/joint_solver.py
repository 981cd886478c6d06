"""The joint fit as a solver: ranks by significance where none are given, the fit, and its t-values."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from contrica.errors import DataError, PatternWarning, collected, warn
from contrica.moments.estimates import pooled
from contrica.moments.symmetric import n_packed
from contrica.solvers.algorithm2 import Contrast
from contrica.solvers.joint import (
    JointProblem,
    contrast_mask,
    contrast_of,
    fit_weights,
    joint_contrast,
    joint_fit,
)
from contrica.solvers.joint.search import min_gain
from contrica.solvers.paper_solver import separation_of, warn_nothing_found
from contrica.solvers.problem import Problem, Request, Separation
from contrica.solvers.ranks import Ranks, choose_ranks, dense_scree
from contrica.solvers.selection import (
    LEVEL,
    RankChoice,
    by_significance,
    choose_by_significance,
    is_near,
)
from contrica.solvers.subspace import subspace_ica
from contrica.solvers.weights import RowGroups, critical_t_value, gain_t_value, weight_t_values

__all__ = ["JointRanks", "JointTask", "fit_jointly", "joint_ranks", "solve_joint"]

logger = logging.getLogger("contrica")

# Entries of all vectors together for which t-values are worked out: the equations take half a gigabyte.
MAX_TESTED_ENTRIES = 5000
# Share of the patterns that must be significant in a fit without third cumulants of symmetric ones.
MIN_SHARE = 0.8


@dataclass(frozen=True)
class JointTask:
    """A problem in whitened coordinates, and groups of its rows there."""

    problem: Problem
    whitened: JointProblem
    groups: list[RowGroups]

    @classmethod
    def of(cls, problem: Problem, whitened: JointProblem) -> JointTask:
        """Divide the rows of a problem into groups, in whitened coordinates."""
        return cls(problem, whitened, problem.row_groups(whitened.whiten))

    @property
    def n_dimensions(self) -> int:
        """In which the data vary."""
        return self.whitened.whiten.shape[1]


class JointRanks(NamedTuple):
    """Ranks as chosen, ranks as sought, and what the choice rests on where the data made it."""

    found: Ranks
    sought: Ranks
    choice: RankChoice | None


def solve_joint(problem: Problem, request: Request, *, rng: np.random.Generator) -> Separation:
    """All patterns of all datasets fitted together.

    Parameters
    ----------
    problem : Problem
    request : Request
    rng : numpy.random.Generator
        Source of the subspace power method's starts, and of those of the rotation in a subspace.

    Returns
    -------
    Separation
    """
    whitened = JointProblem.of(*problem.datasets, rows=problem.rows)
    if whitened.whiten.shape[1] < 2:
        raise DataError(
            "one-direction",
            "the data vary in one direction only",
            "a joint fit needs at least 2",
            'Use solver "subspace" or "paper", or add variables.',
        )
    _check_n_rows(problem, whitened.whiten.shape[1])
    task = JointTask.of(problem, whitened)
    found = fit_jointly(task, request, joint_ranks(task, request, rng=rng), rng=rng)
    if found.caveat:
        warn(
            PatternWarning(
                "symmetric",
                f"{found.caveat}: a joint fit of so few rows tends to miss symmetric patterns",
                remedy="Add rows, or use `solver=subspace`, which needs fewer.",
                parameter="solver",
            )
        )
    return found


def _check_n_rows(problem: Problem, n_dimensions: int) -> None:
    """Refuse as few rows as dimensions: cumulants are then those of points, whatever the data are."""
    fewest = min(data.n_samples for data in problem.datasets)
    if fewest <= n_dimensions:
        raise DataError(
            "too-few-rows",
            f"one of the datasets has {fewest} rows in {n_dimensions} dimensions",
            "a joint fit needs more rows than dimensions",
            'Use solver "subspace", lower `n_pcs`, or add rows.',
        )


def joint_ranks(task: JointTask, request: Request, *, rng: np.random.Generator) -> JointRanks:
    """The ranks as given, or by which patterns of a joint fit are significant.

    Parameters
    ----------
    task : JointTask
    request : Request
    rng : numpy.random.Generator

    Returns
    -------
    JointRanks
    """
    r, l = request.ranks(task.problem.n_features)  # noqa: E741 - the paper's ℓ
    if r is not None and l is not None:
        return JointRanks(Ranks(r, l), Ranks(r, l), None)
    logger.info("choosing ranks")
    wanted = request.n_components
    choice = choose_by_significance(
        task.whitened,
        task.groups,
        choose_ranks(task.problem.fore, task.problem.back, r, l),
        wanted=l,
        rng=rng,
    )
    found = Ranks(choice.n_background, choice.n_foreground)
    if l is not None:
        found = found._replace(n_foreground=l)
    elif r is not None:  # background patterns beyond the r given are counted as foreground
        found = Ranks(r, max(choice.n_foreground, choice.vectors.shape[1] - r))
    # as many as are asked for are sought, whether they are significant or not; what was given
    # stays, and is refused later if there is no room for it
    room = n_packed(task.n_dimensions)
    if l is None:
        at_least = 1 if wanted is None else min(wanted, room - 1)
        l = min(max(found.n_foreground, at_least), max(room - (r or 1), 1))  # noqa: E741
    if r is None:
        r = min(max(found.n_background, 1), max(room - l, 1))
    return JointRanks(found, Ranks(r, l), choice)


def fit_jointly(
    task: JointTask, request: Request, ranks: JointRanks, *, rng: np.random.Generator
) -> Separation:
    """The joint fit at given ranks, with t-values of its foreground patterns.

    Parameters
    ----------
    task : JointTask
    request : Request
    ranks : JointRanks
    rng : numpy.random.Generator

    Returns
    -------
    Separation
    """
    logger.info("joint fit, r = %d and l = %d", *ranks.sought)
    if ranks.found.n_foreground == 0:
        warn_nothing_found()
    found, weights, symmetry, caveat = _by_orders_that_tell(task, request, ranks, rng)
    near_ties = () if ranks.choice is None else ranks.choice.near_ties
    if is_near(symmetry, 1.0):
        near_ties += (
            f"whether a pattern has a third cumulant is decided by {symmetry:.2f}: above 1 it is fitted "
            "without",
        )
    t_values, significant = _tested(task, found, weights, sum(ranks.sought))
    asked = min_gain(task.whitened.terms)
    if is_near(found.gain, asked):
        near_ties += (
            f"another minimum is lower by {found.gain:.2f} standard errors; {asked:.1f} would make it "
            "the answer",
        )
    # patterns that were merged are not counted
    n_foreground = min(ranks.found.n_foreground, found.foreground.weights.size)
    counted = ranks.found._replace(n_foreground=n_foreground)
    scree = dense_scree(task.problem.fore, task.problem.back)
    return replace(
        separation_of(found, counted, scree),
        significant=significant,
        t_values=t_values,
        skewness_weights=found.skewness_weights,
        rank_choice=ranks.choice,
        near_ties=near_ties,
        caveat=caveat,
    )


class _Fit(NamedTuple):
    """A joint fit, t-values of all its weights, and what its third cumulants are worth.

    Attributes
    ----------
    found : Contrast
    weights : ndarray of shape (n_terms, r + l) or None
        t-values.
    symmetry : float
        Above 1 where some pattern is symmetric.
    caveat : str
        Why symmetric patterns are missed; empty where they are not.
    """

    found: Contrast
    weights: np.ndarray | None
    symmetry: float
    caveat: str = ""


def _by_orders_that_tell(
    task: JointTask, request: Request, ranks: JointRanks, rng: np.random.Generator
) -> _Fit:
    """A fit by third and fourth cumulants; of patterns that are symmetric by fourth ones alone."""
    guess = _guess(task, ranks, rng)
    with collected() as caught:
        found = _contrast(task, request, ranks, guess, rng)
        weights = _weight_t_values(task, found)
    symmetry, caveat = _symmetry(task, weights), ""
    if weights is not None and symmetry > 1:
        logger.info("some pattern is symmetric: its third cumulant is left out")
        with collected() as caught_again:
            typed = _typed_contrast(task, request, ranks, found, rng)
            typed_weights = _weight_t_values(task, typed)
        count, n_sought = _n_significant(task, weights), sum(ranks.sought)
        if _n_significant(task, typed_weights) >= max(count, MIN_SHARE * n_sought):
            found, weights, caught = typed, typed_weights, caught_again
        elif count < MIN_SHARE * n_sought:
            caveat = f"some pattern is symmetric, and {count} of {n_sought} are significant"
    for warning in caught:
        warn(warning)
    return _Fit(found, weights, symmetry, caveat)


def _n_significant(task: JointTask, weights: np.ndarray | None) -> int:
    if weights is None:
        return 0
    return int(np.sum(np.abs(weights).max(axis=0) >= _critical(task, weights.shape[1])))


def _typed_contrast(
    task: JointTask, request: Request, ranks: JointRanks, found: Contrast, rng: np.random.Generator
) -> Contrast:
    """A fit in which symmetric patterns have no third cumulants, from one in which all may have them."""
    fore, backs = task.problem.fore, task.problem.backs
    typed = by_significance(task.whitened, task.groups, _inside(task, found), ranks.sought, rng=rng)
    terms = task.whitened.terms
    mask = terms.allowed(contrast_mask(*ranks.sought, len(backs)), typed.skewed)
    fit = joint_fit(terms, typed.vectors, mask, **request.step_limit)
    return contrast_of(fit, mask, task.whitened, fore, backs, **request.step_limit)


def _inside(task: JointTask, found: Contrast) -> np.ndarray:
    """All patterns in whitened coordinates, unit columns, the background's first."""
    vectors = np.column_stack([found.background.vectors, found.foreground.vectors])
    inside = task.whitened.whiten.T @ vectors
    return np.asarray(inside / np.linalg.norm(inside, axis=0))


def _guess(task: JointTask, ranks: JointRanks, rng: np.random.Generator) -> np.ndarray:
    """Foreground patterns by the rotation in a contrast subspace."""
    fore, backs = task.problem.fore, task.problem.backs
    dimension = min(ranks.sought.n_foreground, task.n_dimensions)
    guess = subspace_ica(fore, pooled(backs), task.problem.rows[0], dimension, rng=rng, quiet=True)
    return guess.foreground.vectors


def _contrast(
    task: JointTask,
    request: Request,
    ranks: JointRanks,
    guess: np.ndarray,
    rng: np.random.Generator,
) -> Contrast:
    known = None
    if ranks.choice is not None and ranks.choice.n_background == ranks.sought.n_background:
        known = ranks.choice.vectors
    return joint_contrast(
        task.problem.fore,
        task.problem.backs,
        *ranks.sought,
        rng=rng,
        guess=guess,
        gain_t_value=partial(gain_t_value, task.groups, task.whitened.terms),
        known=known,
        problem=task.whitened,
        **request.step_limit,
    )


def _tested(
    task: JointTask, found: Contrast, weights: np.ndarray | None, n_patterns: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Every foreground pattern's weight over its standard error, and whether that is significant."""
    if weights is None:  # nothing is known to be insignificant
        return np.full(found.foreground.weights.size, np.nan), None
    terms = task.whitened.terms
    own = weights[terms.datasets == 0, found.background.weights.size :]
    # a third cumulant's sign is that of its pattern, which is arbitrary; the fourth's is not
    t_values = np.copysign(np.abs(own).max(axis=0), own[0])
    return t_values, np.abs(t_values) >= _critical(task, n_patterns)


def _critical(task: JointTask, n_patterns: int) -> float:
    n_groups = min(part.n_groups for part in task.groups)
    return critical_t_value(len(task.whitened.terms) * n_patterns, n_groups, LEVEL)


def _weight_t_values(task: JointTask, found: Contrast) -> np.ndarray | None:
    """Of every weight of every term, the background's patterns first; ``None`` if they are too many."""
    terms, inside = task.whitened.terms, _inside(task, found)
    if inside.size > MAX_TESTED_ENTRIES:
        return None
    weights = fit_weights(terms, inside, np.ones((terms.n_datasets, inside.shape[1]), dtype=bool))
    return weight_t_values(task.groups, terms, inside, weights).t_values


def _symmetry(task: JointTask, weights: np.ndarray | None) -> float:
    """Above 1 where some pattern has a significant fourth cumulant, and no third one even by itself.

    Third cumulants weigh most in a fit to skewed sources, and hold nothing of such a pattern: it would
    be spent on their noise.
    """
    orders = task.whitened.terms.orders
    if weights is None or 3 not in orders:
        return 0.0
    n_groups = min(part.n_groups for part in task.groups)
    by_itself = critical_t_value(int(np.sum(orders == 3)), n_groups, LEVEL)
    third, fourth = (np.abs(weights[orders == order]).max(axis=0) for order in (3, 4))
    shown = fourth / _critical(task, weights.shape[1])
    return float(np.max(np.minimum(shown, by_itself / np.maximum(third, 1e-9))))
