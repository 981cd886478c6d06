"""The contrast subspace as a solver: its dimension from the permutation null, then ICA inside it."""

from __future__ import annotations

import logging

import numpy as np

from contrica.errors import ParameterError, PatternWarning, warn
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.permutation_null import ContrastScree, choose_dimension
from contrica.solvers.problem import Problem, Request, Separation, nothing
from contrica.solvers.ranks import Ranks
from contrica.solvers.subspace import subspace_ica
from contrica.validation import check_count

__all__ = ["check_dimension", "contrast_scree", "solve_subspace"]

logger = logging.getLogger("contrica")


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
    fore, p = problem.fore, problem.n_features
    wanted = min(request.n_components or 1, p)
    if request.n_foreground is not None:
        dimension = scree.chosen
    elif scree.chosen == 0:
        _warn_nothing_stands_out()
        dimension = wanted
    else:
        # One to spare: a direction that just fails the test still holds part of the patterns, and where
        # it does not, a source of low contrast comes out that is ranked last.
        dimension = min(max(scree.chosen + 1, wanted), p)
    kept = request.n_components or max(scree.chosen, 1)
    found = subspace_ica(
        *(fore, problem.back, problem.rows[0], dimension),
        rng=rng,
        n_kept=kept,
        **request.step_limit,
    )
    return Separation(
        foreground=found.foreground,
        background=nothing(p),
        shared_weights=np.empty(0),
        ratio=found.ratio,
        ranked_by="source_ratio",
        ranks=Ranks(0, scree.chosen),
        residual=float("nan"),
        n_iter=found.n_iter,
        near_ties=_near_ties(scree),
        scree=scree,
    )


def contrast_scree(problem: Problem, request: Request) -> ContrastScree:
    """Contrast ratios of all directions, and how many are asked for or stand out."""
    p = problem.n_features
    if request.n_foreground is not None:
        count = min(check_count("n_foreground", request.n_foreground), p)
        if count < request.n_foreground:
            _warn_of_room(request.n_foreground, p)
        back = problem.back
        ratios = contrast_axes(problem.fore.covariance, back.covariance, back.n_samples)[0]
        return ContrastScree(ratios, chosen=count, n_clear=count, n_possible=count)
    first, *backs = problem.rows
    background = backs[0]
    if len(backs) > 1:
        background = np.vstack([part - part.mean(axis=0) for part in backs])
    # permutations of their own: near the edge the dimension would otherwise change with random_state
    return choose_dimension(first, background, rng=np.random.default_rng(0))


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


def _warn_nothing_stands_out() -> None:
    warn(
        PatternWarning(
            "nothing-found",
            "no direction has a larger contrast ratio than rows permuted between the datasets have "
            "(n_foreground_ = 0)",
            remedy="The strongest candidates are returned all the same; treat them as noise, or set "
            "`n_foreground`.",
            parameter="n_foreground",
        )
    )
