"""Which sources vary more in the foreground than in the background, and do not only shift the mean."""

from __future__ import annotations

import numpy as np
from scipy.stats import f as f_distribution

from contrica.rows.device import like, to_numpy
from contrica.solvers.group_design import GroupDesign
from contrica.solvers.permutation_null import LEVEL, N_PERMUTATIONS
from contrica.solvers.problem import Problem
from contrica.solvers.ratio import variances_along

__all__ = ["only_shifted", "varies_more"]


def only_shifted(problem: Problem, filters: np.ndarray) -> np.ndarray:
    """Which sources differ from the background by their mean, and in their variance by chance at most.

    The shift of the mean is more than the source's own deviation: a pattern of a third of the groups,
    which some assignments give as well, is not all shift.

    Parameters
    ----------
    problem : Problem
        With a background.
    filters : ndarray of shape (p, l)

    Returns
    -------
    ndarray of bool, shape (l,)
    """
    fore = problem.fore
    shifts = (fore.mean - problem.back.mean) @ filters
    found = shifts**2 > variances_along(filters, fore.covariance)
    if found.any():
        found[found] = ~varies_more(problem, filters[:, found])
    return np.asarray(found)


def varies_more(problem: Problem, filters: np.ndarray) -> np.ndarray:
    """Which sources have a larger ratio of variances than chance gives along the same filter.

    Groups are assigned to the datasets anew, as by the permutation null; where these are too few for the
    level, a ratio that no other assignment reaches is larger. Of independent rows the ratio is compared
    with F, of as many degrees of freedom as give each variance its sampling error. Filters were found in
    the same rows: this says what is a mere shift of the mean, and is no test.

    Parameters
    ----------
    problem : Problem
        With a background.
    filters : ndarray of shape (p, l)

    Returns
    -------
    ndarray of bool, shape (l,)
    """
    if problem.is_grouped:
        p_values, smallest = _p_of_groups(problem.design, filters)
        return p_values <= max(LEVEL, smallest)
    return _p_of_rows(problem, filters) <= LEVEL


def _p_of_rows(problem: Problem, filters: np.ndarray) -> np.ndarray:
    """Upper tail of F with as many degrees of freedom as the fourth moments leave."""
    fore, *backs = (variances_along(filters, part.covariance) for part in problem.datasets)
    n_fore, *n_backs = (part.n_samples for part in problem.datasets)
    n_back, n_means = sum(n_backs), len(backs)
    back = np.average(backs, axis=0, weights=n_backs)
    free = np.array([max(n_fore - 1, 1), max(n_back - n_means, 1)])
    ratios = fore / back * (n_fore / free[0]) / (n_back / free[1])
    # the variance of n values has the variance σ⁴ (κ − 1 + 2 / (n − 1)) / n, and 2 σ⁴ / ν where it is
    # χ² with ν degrees of freedom: n − 1 for Gaussian values, fewer where tails are heavier
    excess = np.maximum(_fourth_moments(problem, filters) - 1, 0.0)
    effective = 2 * (free[:, None] + 1) / (excess + 2 / free[:, None])
    return np.asarray(f_distribution.sf(ratios, *effective))


def _fourth_moments(problem: Problem, filters: np.ndarray) -> np.ndarray:
    """E s⁴ / (E s²)² of every source over all rows, of each dataset about its mean.

    E s⁴ is κ₄ + 3 σ⁴ along the filter.
    """
    counts = [part.n_samples for part in problem.datasets]
    squares = np.array([variances_along(filters, part.covariance) for part in problem.datasets])
    fourths = [part.fourth.coefficients(filters) for part in problem.datasets] + 3 * squares**2
    square, fourth = (np.average(each, axis=0, weights=counts) for each in (squares, fourths))
    return np.asarray(fourth / np.maximum(square**2, np.finfo(float).tiny))


def _p_of_groups(design: GroupDesign, filters: np.ndarray) -> tuple[np.ndarray, float]:
    """The share of assignments with as large a ratio, along every filter, and the least there can be."""
    groups = design.groups
    axes = like(groups.sums, filters)
    sums = to_numpy(groups.sums @ axes)
    squares = np.array([to_numpy(((each @ axes) * axes).sum(0)) for each in groups.products])
    masks = design.assignments(N_PERMUTATIONS, np.random.default_rng(0)).astype(float)

    def variances(own: np.ndarray) -> np.ndarray:
        counts = (own @ groups.counts)[:, None]
        found = own @ squares / counts - (own @ sums / counts) ** 2
        return np.asarray(np.maximum(found, np.finfo(float).tiny))

    ratios = variances(masks) / variances(1 - masks)
    # the observed assignment is the first; rounding must not decide between equals
    p_values = np.asarray(np.mean(ratios >= ratios[0] * (1 - 1e-9), axis=0))
    return p_values, 1 / len(masks)
