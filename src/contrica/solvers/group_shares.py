"""How groups of rows share in a pattern, and how it ranks without those that carry most of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contrica.rows.groups import Groups
from contrica.solvers.group_design import GroupShares
from contrica.solvers.problem import Problem, Separation
from contrica.solvers.ratio import background_variances, filters_of, variances_along

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
    vectors = found.foreground.vectors
    filters = filters_of(vectors, problem.fore.covariance)
    by_source = found.ranked_by == "source_ratio"
    directions = filters if by_source else vectors
    shift = problem.fore.mean - problem.back.mean
    present = np.bincount(groups.codes, minlength=len(groups.names)) > 0
    about = shift if by_source else np.zeros_like(shift)
    counts, squares = _mean_squares(problem.rows[0], groups, directions, about)
    below, _ = background_variances(directions, problem.fore.covariance, problem.back)
    counts = np.where(_without_largest(squares), counts[:, None], 0)
    robust = (counts * squares).sum(axis=0) / counts.sum(axis=0) / below
    squares = _mean_squares(problem.rows[0], groups, filters, shift)[1]
    excess = np.maximum(squares - variances_along(filters, problem.back.covariance), 0)
    total = np.maximum(excess.sum(axis=0), np.finfo(float).tiny)
    names = tuple(groups.names[i] for i in np.flatnonzero(present))
    return replace(found, robust_ratio=robust, shares=GroupShares(names, (excess / total).T))


def _mean_squares(
    rows: np.ndarray, groups: Groups, directions: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every group, and their mean squares along directions, about the mean less a shift."""
    along = rows @ directions
    along += (shift - rows.mean(axis=0)) @ directions
    along *= along
    counts = np.bincount(groups.codes, minlength=len(groups.names))
    found = [np.bincount(groups.codes, own, minlength=counts.size) for own in along.T]
    present = counts > 0
    return counts[present], np.array(found).T[present] / counts[present, None]


def _without_largest(squares: np.ndarray) -> np.ndarray:
    """Which groups stay when those with the largest mean squares are dropped, for every direction."""
    n_groups = len(squares)
    n_dropped = 0 if n_groups < 4 else (1 if n_groups < 7 else 2)
    ranks = np.argsort(np.argsort(-squares, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(ranks >= n_dropped)
