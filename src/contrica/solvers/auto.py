"""Which solver suits the data, and why: a joint fit where it can be relied on, the subspace elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import NamedTuple

import numpy as np

from contrica.errors import ParameterWarning, collected, warn
from contrica.moments.estimates import Storage
from contrica.moments.projection import whitening
from contrica.solvers.joint import JointProblem
from contrica.solvers.joint_solver import JointTask, fit_jointly, joint_ranks, solve_joint
from contrica.solvers.paper_solver import solve_paper
from contrica.solvers.problem import Problem, Request, Separation
from contrica.solvers.selection import RankChoice, is_near, searchable
from contrica.solvers.subspace_solver import solve_subspace
from contrica.solvers.weights import n_groups_of, smaller_by_groups

__all__ = [
    "SOLVERS",
    "Choice",
    "background_storage",
    "choose_solver",
    "n_row_groups",
    "solve",
]

# A joint fit that leaves more than this of a fourth cumulant, by squared norm, does not describe it.
MAX_LEFT = 0.5
# Foreground patterns that must be significant in a joint fit; one that finds these is nearer to the truth
# than the subspace, also in the patterns that are not.
MIN_SIGNIFICANT = 2


class Choice(NamedTuple):
    """A separation, by which solver, and why by that one."""

    solver: str
    reason: str
    separation: Separation


SOLVERS: dict[str, Callable[..., Separation]] = {
    "paper": solve_paper,
    "joint": solve_joint,
    "subspace": solve_subspace,
}


def solve(problem: Problem, request: Request, solver: str, *, rng: np.random.Generator) -> Choice:
    """Separate by the solver of a name, or by the one that suits the data.

    Parameters
    ----------
    problem : Problem
    request : Request
    solver : {"auto", "paper", "joint", "subspace"}
    rng : numpy.random.Generator

    Returns
    -------
    Choice
    """
    if solver == "auto":
        return choose_solver(problem, request, rng=rng)
    found = SOLVERS[solver](problem, request, rng=rng)
    return Choice(solver, f'solver="{solver}" was asked for', found)


def choose_solver(problem: Problem, request: Request, *, rng: np.random.Generator) -> Choice:
    """A joint fit where one can be searched for and relied on, the contrast subspace where not.

    Parameters
    ----------
    problem : Problem
    request : Request
    rng : numpy.random.Generator

    Returns
    -------
    Choice
    """
    reason = _why_not_try(problem)
    if reason:
        return _in_subspace(problem, request, reason, rng)
    whitened = JointProblem.of(*problem.datasets, rows=problem.rows)
    # nothing but the fit is left to the rows, and third cumulants, which need fewer, carry it
    few_do = _ranks_given(request) and whitened.is_skewed
    reason = _too_few(problem, whitened, order=3 if few_do else 4)
    if reason:
        return _in_subspace(problem, request, reason, rng)
    task = JointTask.of(problem, whitened)
    # what it warns of concerns the user only if it is kept
    with collected() as caught:
        ranks = joint_ranks(task, request, rng=rng)
        reason = _why_not_rely(ranks.choice)
        found = None if reason else fit_jointly(task, request, ranks, rng=rng)
    if found is None:
        return _in_subspace(problem, request, reason, rng, ranks.choice)
    if found.caveat:
        return _in_subspace(problem, request, f"{found.caveat} in a joint fit", rng, ranks.choice)
    count, total = int(np.sum(_significant(found))), found.ratio.size
    if ranks.choice is None:
        reason = f"{count} of {total} foreground patterns are significant in a joint fit"
        if count < min(total, MIN_SIGNIFICANT):
            return _in_subspace(problem, request, reason, rng)
    else:
        reason = (
            f"{_count(ranks.choice.n_foreground)} significant in a joint fit, which leaves "
            f"{ranks.choice.left.max():.2g} of a fourth cumulant by squared norm"
        )
    for warning in caught:
        warn(warning)
    ties = found.near_ties + _near_the_most_left(ranks.choice)
    return Choice("joint", reason, replace(found, near_ties=ties))


def _why_not_try(problem: Problem) -> str:
    """Why no joint fit is searched for; empty where it is."""
    p = problem.n_features
    if problem.is_grouped:
        return "rows come in groups, which its permutation null counts by"
    if not searchable(p, n_datasets=len(problem.rows)):
        return f"{p} dimensions are too many to search for a joint fit"
    if min(part.fourth.squared_norm() for part in problem.datasets) == 0:
        return "a fourth cumulant is zero"
    return ""


def _ranks_given(request: Request) -> bool:
    """Whether ranks need not be chosen, for which it takes more rows than for a fit."""
    return request.n_background is not None and request.n_foreground is not None


def _too_few(problem: Problem, whitened: JointProblem, *, order: int) -> str:
    """Why there are too few rows for a cumulant of some order; empty where there are not."""
    if whitened.whiten.shape[1] < 2:
        return "the data vary in one direction only"
    n_rows = min(part.n_samples for part in problem.datasets)
    n_dimensions = max(whitened.whiten.shape[1], _n_dimensions(problem))
    entries = comb(n_dimensions + order - 1, order)
    if n_rows < entries:
        name = {3: "third", 4: "fourth"}[order]
        return f"{n_rows} rows are fewer than the {entries} entries of a {name} cumulant"
    return ""


def _n_dimensions(problem: Problem) -> int:
    """In how many dimensions the data vary, whatever the units of the variables."""
    covariance = (problem.fore.covariance + problem.back.covariance) / 2
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    units = np.where(deviations > 0, deviations, 1.0)
    return whitening(covariance / units / units[:, None])[0].shape[1]


def _why_not_rely(choice: RankChoice | None) -> str:
    """Why a joint fit should not be relied on; empty where it should."""
    if choice is None:
        return ""
    if not choice.complete:
        return "the search for a joint fit was stopped at its limit"
    if choice.n_foreground < MIN_SIGNIFICANT:
        return f"{_count(choice.n_foreground)} significant in a joint fit, fewer than {MIN_SIGNIFICANT}"
    if choice.left.max() > MAX_LEFT:
        return (
            f"what is significant in a joint fit leaves {choice.left.max():.2g} of a fourth cumulant by "
            "squared norm"
        )
    return ""


def _count(n_patterns: int) -> str:
    return "1 foreground pattern is" if n_patterns == 1 else f"{n_patterns} foreground patterns are"


def _significant(found: Separation) -> np.ndarray:
    """Which patterns are significant; none where that was not tested."""
    return (
        np.zeros(found.ratio.size, dtype=bool) if found.significant is None else found.significant
    )


def _in_subspace(
    problem: Problem,
    request: Request,
    reason: str,
    rng: np.random.Generator,
    choice: RankChoice | None = None,
) -> Choice:
    if request.n_background is not None:
        warn(
            ParameterWarning(
                "no-effect",
                f'`n_background={request.n_background}` was not used: solver "subspace" was chosen, '
                f"because {reason}, and looks for no background patterns",
                remedy="Leave `n_background` out, or set `solver=joint`.",
                parameter="n_background",
            )
        )
    found = solve_subspace(problem, request, rng=rng)
    ties = () if choice is None else choice.near_ties + _near_the_most_left(choice)
    told = tuple(f"in the joint fit that was rejected, {tie}" for tie in ties)
    return Choice("subspace", reason, replace(found, near_ties=told + found.near_ties))


def _near_the_most_left(choice: RankChoice | None) -> tuple[str, ...]:
    if choice is None or not is_near(float(choice.left.max()), MAX_LEFT):
        return ()
    return (
        f"{choice.left.max():.2f} of a fourth cumulant is left; above {MAX_LEFT} solver "
        '"subspace" is used',
    )


def n_row_groups(solver: str, n_rows: int, n_features: int) -> int:
    """Groups of rows whose moments a joint fit will ask for, where those are smaller than the rows.

    Parameters
    ----------
    solver : str
    n_rows, n_features : int

    Returns
    -------
    int
    """
    tried = solver == "joint" or (solver == "auto" and searchable(n_features))
    return n_groups_of(n_rows) if tried and smaller_by_groups(n_rows, n_features) else 0


def background_storage(solver: str, n_features: int, n_datasets: int) -> Storage:
    """How to store the fourth cumulants of backgrounds: in a contrast subspace none is asked for.

    Parameters
    ----------
    solver : str
    n_features, n_datasets : int

    Returns
    -------
    {"auto", "matrix-free"}
    """
    certain = solver == "auto" and not searchable(n_features, n_datasets=n_datasets)
    return "matrix-free" if certain or solver == "subspace" else "auto"
