"""The paper's algorithms as solvers: ranks from the scree where none are given, then the algorithm."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from contrica.decompositions import htd
from contrica.errors import PatternWarning, warn
from contrica.moments.operators import relative_norm
from contrica.moments.projection import whitening
from contrica.moments.symmetric import n_packed
from contrica.solvers.algorithm2 import Contrast, cica
from contrica.solvers.algorithm3 import proportional_cica
from contrica.solvers.joint.twins import warn_cancelling
from contrica.solvers.problem import Problem, Request, Separation, nothing
from contrica.solvers.ranks import Ranks, Scree, choose_ranks, dense_scree

__all__ = [
    "ProportionalSeparation",
    "SoughtRanks",
    "separation_of",
    "solve_paper",
    "solve_plain",
    "solve_proportional",
    "sought_by_scree",
    "warn_nothing_found",
]

logger = logging.getLogger("contrica")


def solve_paper(problem: Problem, request: Request, *, rng: np.random.Generator) -> Separation:
    """Algorithm 2, at the ranks that were asked for or that the scree shows.

    Parameters
    ----------
    problem : Problem
        With one background.
    request : Request
    rng : numpy.random.Generator
        Source of the subspace power method's starts.

    Returns
    -------
    Separation
    """
    ranks = sought_by_scree(problem, request)
    found = cica(
        problem.fore,
        problem.back,
        *ranks.sought,
        rng=rng,
        deflation=request.deflation,
        tol=request.tol,
        **request.step_limit,
    )
    whiten = whitening((problem.fore.covariance + problem.back.covariance) / 2)[0]
    inside = whiten.T @ found.foreground.vectors
    lengths = np.maximum(np.linalg.norm(inside, axis=0), np.finfo(float).tiny)
    warn_cancelling(inside / lengths, found.foreground.weights * lengths**4)
    _warn_of_residual(found.residual)
    return separation_of(found, ranks.found, dense_scree(problem.fore, problem.back))


def separation_of(found: Contrast, ranks: Ranks, scree: Scree | None) -> Separation:
    """What an estimator stores, of what an algorithm found.

    Parameters
    ----------
    found : Contrast
    ranks : Ranks
        As chosen; a tensor of lower rank has fewer background patterns.
    scree : Scree or None

    Returns
    -------
    Separation
    """
    return Separation(
        foreground=found.foreground,
        background=found.background,
        shared_weights=found.shared_weights,
        ratio=found.ratio,
        ranked_by="contrast_ratio",
        ranks=ranks._replace(n_background=found.background.weights.size),
        residual=found.residual,
        n_iter=found.background.n_iter,
        scree=scree,
    )


@dataclass(frozen=True)
class ProportionalSeparation(Separation):
    """A separation by Algorithm 3.

    Attributes
    ----------
    scale : float
        γ.
    scale_estimates : ndarray of shape (r,)
        Each background pattern's own estimate of γ; empty where γ was given.
    """

    scale: float = 0.0
    scale_estimates: np.ndarray = field(default_factory=lambda: np.empty(0))


def solve_proportional(
    problem: Problem, request: Request, scale: float | None, *, rng: np.random.Generator
) -> ProportionalSeparation:
    """Algorithm 3, at a given γ or the one that the background patterns have.

    Parameters
    ----------
    problem : Problem
        With one background.
    request : Request
    scale : float or None
        γ; ``None`` estimates it.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.

    Returns
    -------
    ProportionalSeparation
    """
    ranks = sought_by_scree(problem, request)
    found = proportional_cica(
        problem.fore,
        problem.back,
        *ranks.sought,
        rng=rng,
        scale=scale,
        deflation=request.deflation,
        tol=request.tol,
        **request.step_limit,
    )
    _warn_of_residual(found.residual)
    step1 = found.estimated
    background = nothing(problem.n_features) if step1 is None else step1.background
    return ProportionalSeparation(
        foreground=found.foreground,
        background=background,
        shared_weights=np.empty(0) if step1 is None else step1.shared_weights,
        ratio=found.ratio,
        ranked_by="contrast_ratio",
        ranks=ranks.found._replace(n_background=background.weights.size),
        residual=found.residual,
        n_iter=background.n_iter,
        scree=dense_scree(problem.fore, problem.back),
        scale=found.scale,
        scale_estimates=np.empty(0) if step1 is None else step1.estimates,
    )


def solve_plain(problem: Problem, request: Request) -> Separation:
    """Plain ICA of the foreground, by Algorithm 1.

    Parameters
    ----------
    problem : Problem
        Without a background.
    request : Request

    Returns
    -------
    Separation
    """
    ranks = sought_by_scree(problem, request)
    found = htd(problem.fore.fourth, ranks.sought.n_foreground)
    return Separation(
        foreground=found,
        background=nothing(problem.n_features),
        shared_weights=np.empty(0),
        ratio=np.full(found.weights.size, np.nan),
        ranked_by="contrast_ratio",
        ranks=ranks.found,
        residual=relative_norm(problem.fore.fourth - found.tensor(), problem.fore.fourth),
        n_iter=1,
        scree=dense_scree(problem.fore, None),
    )


class SoughtRanks(NamedTuple):
    """Ranks as chosen, and as sought: where nothing was found, candidates are sought all the same."""

    found: Ranks
    sought: Ranks


def sought_by_scree(problem: Problem, request: Request) -> SoughtRanks:
    """The ranks r and ℓ as asked for, or from the eigenvalues of both flattenings.

    Parameters
    ----------
    problem : Problem
    request : Request

    Returns
    -------
    SoughtRanks
    """
    logger.info("choosing ranks")
    r, l = request.ranks(problem.n_features)  # noqa: E741 - the paper's ℓ
    back = problem.back if problem.backs else None
    if (l is None or (r is None and back is not None)) and not (problem.fore.fourth.is_written_out):
        _warn_slow(problem)
    found = choose_ranks(problem.fore, back, r, l)
    logger.info("separating patterns, r = %d and l = %d", *found)
    if found.n_foreground > 0:
        return SoughtRanks(found, found)
    warn_nothing_found()
    room = n_packed(problem.n_features) - found.n_background
    count = max(min(request.n_components or problem.n_features, room), 1)
    return SoughtRanks(found, found._replace(n_foreground=count))


def _warn_of_residual(residual: float) -> None:
    """Say so where the subtraction of the background has added more than it removed."""
    if residual > 1:
        warn(
            PatternWarning(
                "residual",
                "after subtracting the background the residual is larger than the foreground's fourth "
                f"cumulant (residual_ = {residual:.3g}): the background's weights are too large",
                remedy="Do not trust this fit; lower `n_background` or `background_scale`, or use "
                "`deflation=least_squares`.",
                parameter="n_background",
            )
        )


def _warn_slow(problem: Problem) -> None:
    names = "`n_background` and `n_foreground`" if problem.backs else "`n_foreground`"
    warn(
        PatternWarning(
            "slow-ranks",
            f"ranks are chosen from eigenvalues of fourth cumulants in {problem.n_features} dimensions, "
            "too many to write them out, and such eigenvalues take long to find",
            remedy=f"Set {names}, or lower `n_pcs`.",
            parameter="n_pcs",
        )
    )


def warn_nothing_found() -> None:
    """Say that no pattern stands out."""
    warn(
        PatternWarning(
            "nothing-found",
            "nothing in the foreground's fourth cumulant stands out from the background's "
            "(n_foreground_ = 0)",
            remedy="The strongest candidates are returned all the same; treat them as noise, or set "
            "`n_foreground`.",
            parameter="n_foreground",
        )
    )
