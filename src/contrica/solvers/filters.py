"""How far the foreground's covariance is shrunk in filters where rows are few, by held-out rows."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from contrica.rows.groups import Groups
from contrica.solvers.ratio import filters_of

__all__ = ["choose_shrinkage", "shrunk"]

# Shares of the covariances that are taken away, and parts of the rows of which each is held out in turn.
AMOUNTS = (0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
FOLDS = 5
# Rows for every dimension from which on nothing is tried: what filters lose is the inverse of it.
ENOUGH_ROWS = 100
# Level of the test that shrinkage helps. Where one standard error was enough, four clusters in 5
# variables fell from a silhouette of .90 to .84; with this, most of what few rows gain elsewhere is left.
LEVEL = 0.05


def shrunk(covariance: np.ndarray, amount: float) -> np.ndarray:
    """A covariance, the entries off its diagonal nearer to zero, so that units do not matter.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
    amount : float
        From 0, where nothing changes, to 1, which leaves the diagonal alone.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> shrunk(np.array([[2.0, 1.0], [1.0, 3.0]]), 0.25)
    array([[2.  , 0.75],
           [0.75, 3.  ]])
    """
    if amount == 0:
        return covariance
    return np.where(np.eye(len(covariance), dtype=bool), covariance, (1 - amount) * covariance)


def choose_shrinkage(rows: np.ndarray, patterns: np.ndarray, groups: Groups | None = None) -> float:
    """The amount of shrinkage by which filters of given patterns do best on held-out rows.

    A filter has unit gain on its pattern, and as little variance from all else as the covariance tells.
    So an amount is judged by the variance, in logarithms and over all patterns, that filters of some rows
    have on others. It is 0 where no other is better by more than chance gives, by a t-test over the
    parts: where sources are strong, what all else adds is a small part of the variance.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
    patterns : ndarray of shape (p, k)
        Not made of the same covariance, as those of a rotation in a contrast subspace are: these make up
        for its errors, and lose by shrinkage.
    groups : Groups, optional
        Of rows that belong together: whole ones are held out.

    Returns
    -------
    float
    """
    n_rows, n_features = rows.shape
    if patterns.shape[1] == 0 or n_features < 2 or n_rows >= ENOUGH_ROWS * n_features:
        return 0.0
    units = np.arange(n_rows) if groups is None else np.unique(groups.codes, return_inverse=True)[1]
    n_parts = min(FOLDS, int(units.max()) + 1)
    if n_parts < 2:
        return 0.0
    part = units.ravel() % n_parts
    losses = np.array([_losses(rows, part == k, patterns) for k in range(n_parts)])
    if not np.isfinite(losses).all():
        return 0.0
    gains = losses[:, :1] - losses[:, 1:]
    best = int(gains.mean(axis=0).argmax())
    error = float(gains[:, best].std(ddof=1)) / n_parts**0.5
    enough = float(student.ppf(1 - LEVEL, n_parts - 1)) * error
    return AMOUNTS[best] if gains[:, best].mean() > enough else 0.0


def _losses(rows: np.ndarray, held_out: np.ndarray, patterns: np.ndarray) -> np.ndarray:
    """Mean logarithm of the filters' variance on the rows held out: of no shrinkage, and every amount."""
    kept = rows[~held_out]
    mean = kept.mean(axis=0)
    covariance = (kept - mean).T @ (kept - mean) / len(kept)
    tested = rows[held_out] - mean
    filters = [filters_of(patterns, shrunk(covariance, amount)) for amount in (0.0, *AMOUNTS)]
    with np.errstate(divide="ignore"):  # rows that are all alike
        return np.array([np.log(np.mean((tested @ f) ** 2, axis=0)).mean() for f in filters])
