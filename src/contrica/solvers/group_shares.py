"""How groups of rows share in a pattern, and how it ranks without those that carry most of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contrica.solvers.group_design import GroupShares, GroupSums
from contrica.solvers.problem import Problem, Separation
from contrica.solvers.ratio import filters_of

__all__ = ["rank_by_groups"]


def rank_by_groups(problem: Problem, found: Separation) -> Separation:
    """Rank patterns by the ratio that is left without the groups that have most of it.

    Two groups are dropped, of fewer than seven groups one, of fewer than four none. A pattern of one
    animal then ranks behind one that a third of all animals have.

    Parameters
    ----------
    problem : Problem
        With groups of rows.
    found : Separation

    Returns
    -------
    Separation
        With ``robust_ratio`` and ``shares``.
    """
    groups = problem.groups[0]
    if groups is None:
        return found
    sums = GroupSums.of(problem.rows[0], groups)
    vectors = found.foreground.vectors
    filters = filters_of(vectors, problem.fore.covariance)
    by_source = found.ranked_by == "source_ratio"
    directions = filters if by_source else vectors
    shift = problem.fore.mean - problem.back.mean
    squares = _mean_squares(sums, directions, shift if by_source else np.zeros_like(shift))
    below = _variances(directions, problem.back.covariance)
    kept = _without_largest(squares)
    counts = np.where(kept, sums.counts[:, None], 0)
    robust = (counts * squares).sum(axis=0) / counts.sum(axis=0) / below
    excess = np.maximum(
        _mean_squares(sums, filters, shift) - _variances(filters, problem.back.covariance), 0
    )
    total = np.maximum(excess.sum(axis=0), np.finfo(float).tiny)
    return replace(found, robust_ratio=robust, shares=GroupShares(sums.names, (excess / total).T))


def _variances(directions: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    found = np.einsum("pk,pq,qk->k", directions, covariance, directions, optimize=True)
    return np.maximum(found, np.finfo(float).tiny)


def _mean_squares(sums: GroupSums, directions: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Of every group, along every direction, about the dataset's mean less a shift."""
    along = shift @ directions
    squares = np.einsum("pk,gpq,qk->gk", directions, sums.products, directions, optimize=True)
    return np.asarray(
        (squares + 2 * (sums.sums @ directions) * along) / sums.counts[:, None] + along**2
    )


def _without_largest(squares: np.ndarray) -> np.ndarray:
    """Which groups stay when those with the largest mean squares are dropped, for every direction."""
    n_groups = len(squares)
    n_dropped = 0 if n_groups < 4 else (1 if n_groups < 7 else 2)
    ranks = np.argsort(np.argsort(-squares, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(ranks >= n_dropped)
