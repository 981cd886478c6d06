"""The contrast subspace as a solver: its dimension from the permutation null, then ICA inside it."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np

from contrica.decompositions import Decomposition
from contrica.errors import GroupWarning, ParameterError, PatternWarning, warn
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.group_null import LEVEL as GROUP_LEVEL
from contrica.solvers.group_null import count_by_groups
from contrica.solvers.permutation_null import ContrastScree, choose_dimension
from contrica.solvers.problem import Problem, Request, Separation, nothing
from contrica.solvers.ranks import Ranks
from contrica.solvers.subspace import SubspaceFit, subspace_ica
from contrica.validation import check_count

__all__ = ["check_dimension", "contrast_scree", "solve_subspace"]

logger = logging.getLogger("contrica")

# Directions beyond those that stand out: one that just fails the test still has part of the patterns, and
# where it does not, a source of low contrast comes out that is ranked last. And how many at least.
TO_SPARE, MIN_DIMENSION = 1, 3


def solve_subspace(problem: Problem, request: Request, *, rng: np.random.Generator) -> Separation:
    """Independent sources inside the subspace of largest contrast ratio.

    Parameters
    ----------
    problem : Problem
    request : Request
        ``n_foreground`` is the dimension of the subspace; there are no background patterns.
    rng : numpy.random.Generator
        Source of the rotations to start from.

    Returns
    -------
    Separation
    """
    logger.info("contrast subspace")
    scree = contrast_scree(problem, request)
    if scree.chosen == 0:
        _warn_nothing_stands_out(scree)
    p = problem.n_features
    dimension = min(max(scree.chosen + TO_SPARE, MIN_DIMENSION), p)
    if request.n_foreground is not None:
        dimension = scree.chosen
    search = partial(_search, problem, rng, request.step_limit)
    found = search(dimension, 0)
    # a dimension that was given is kept to; otherwise what else is asked for is sought beyond it
    more = 0 if request.n_foreground is not None else min(request.n_components or 0, p) - dimension
    parts = [found] if more <= 0 else [found, search(more, dimension)]
    return Separation(
        foreground=Decomposition(
            np.concatenate([part.foreground.weights for part in parts]),
            np.column_stack([part.foreground.vectors for part in parts]),
        ),
        background=nothing(p),
        shared_weights=np.empty(0),
        ratio=np.concatenate([part.ratio for part in parts]),
        ranked_by="source_ratio",
        ranks=Ranks(0, scree.chosen),
        residual=float("nan"),
        n_iter=found.n_iter,
        near_ties=_near_ties(scree),
        scree=scree,
        tier=np.repeat(np.arange(len(parts)), [part.ratio.size for part in parts]),
    )


def _search(
    problem: Problem,
    rng: np.random.Generator,
    step_limit: dict[str, Any],
    dimension: int,
    skip: int,
) -> SubspaceFit:
    """Sources along some of the contrast axes."""
    floor = problem.design.floor if problem.is_grouped else None
    return subspace_ica(
        problem.fore,
        problem.back,
        problem.rows[0],
        dimension,
        rng=rng,
        skip=skip,
        floor=floor,
        **step_limit,
    )


def contrast_scree(problem: Problem, request: Request) -> ContrastScree:
    """Contrast ratios of all directions, and how many are asked for or stand out."""
    p = problem.n_features
    if request.n_foreground is not None:
        count = min(check_count("n_foreground", request.n_foreground), p)
        if count < request.n_foreground:
            _warn_of_room(request.n_foreground, p)
        if problem.is_grouped:  # the test says nothing of the number, but what it says is told
            return _tested(problem)._replace(chosen=count, n_clear=count, n_possible=count)
        back = problem.back
        ratios = contrast_axes(problem.fore.covariance, back.covariance, back.n_samples)[0]
        return ContrastScree(ratios, chosen=count, n_clear=count, n_possible=count)
    if problem.is_grouped:
        return _by_groups(problem)
    first, *backs = problem.rows
    background = backs[0]
    if len(backs) > 1:
        background = np.vstack([part - part.mean(axis=0) for part in backs])
    # permutations of their own: near the edge the dimension would otherwise change with random_state
    rng = np.random.default_rng(0)
    return choose_dimension(first, background, rng=rng, rescaling=problem.rescaling)


def _tested(problem: Problem) -> ContrastScree:
    """Directions counted by groups, by the same assignments in every fit."""
    rng = np.random.default_rng(0)
    return count_by_groups(problem.design, rng=rng, rescaling=problem.rescaling)


def _by_groups(problem: Problem) -> ContrastScree:
    design, found = problem.design, _tested(problem)
    if 1 / found.n_assignments > GROUP_LEVEL:
        warn(
            GroupWarning(
                "too-few-groups",
                f"{len(design.groups.names)} groups can be assigned to foreground and background in "
                f"{found.n_assignments} ways, so that the smallest attainable p is "
                f"{1 / found.n_assignments:.2g}: no pattern can be significant at {GROUP_LEVEL}",
                remedy="Add groups, or set `n_foreground`.",
                parameter="groups",
            )
        )
    return found


def check_dimension(request: Request, n_features: int) -> None:
    """Refuse a contrast subspace of more dimensions than there are.

    Parameters
    ----------
    request : Request
    n_features : int
    """
    if request.n_foreground is not None and request.n_foreground > n_features:
        raise ParameterError(
            "too-large",
            f"`n_foreground={request.n_foreground}` is more than the {n_features} dimensions there are",
            remedy="Lower it.",
            parameter="n_foreground",
        )


def _near_ties(scree: ContrastScree) -> tuple[str, ...]:
    if scree.n_clear == scree.n_possible:
        return ()
    return (
        f"{scree.n_clear} to {scree.n_possible} directions stand out; {scree.chosen} were counted",
    )


def _warn_of_room(n_foreground: int, n_features: int) -> None:
    warn(
        PatternWarning(
            "fewer-directions",
            f"`n_foreground={n_foreground}` is more than the {n_features} dimensions that a contrast "
            f"subspace can have: {n_features} are used",
            remedy="Lower `n_foreground`.",
            parameter="n_foreground",
        )
    )


def _warn_nothing_stands_out(scree: ContrastScree) -> None:
    what = f"groups (p = {scree.p_values[0]:.2g})" if scree.n_assignments else "rows"
    warn(
        PatternWarning(
            "nothing-found",
            f"no direction has a larger contrast ratio than {what} permuted between the datasets have "
            "(n_foreground_ = 0)",
            remedy="The strongest candidates are returned all the same, but these data do not show that "
            "they are new in the foreground: check them on other rows, or against what was not used.",
            parameter="n_foreground",
        )
    )
