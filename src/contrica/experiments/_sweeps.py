"""Rivals tuned as the paper tuned them: over a grid of parameters, by the score itself.

That uses labels, or the truth, which a user would not have; rows made this way say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.metrics import silhouette_score

__all__ = [
    "ALPHAS",
    "SCALES_4",
    "Tuned",
    "gammas",
    "silhouette",
    "some_rows",
    "tune",
    "tune_silhouette",
]

# "100 α between 0 and 1000", spaced evenly in the logarithm but for the zero
ALPHAS = np.concatenate([[0.0], np.geomspace(0.1, 1000, 99)])
# "100 log-evenly spaced γ between 0 and 10⁶"; these are fourth powers of our background scale
SCALES_4 = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 99)])


def gammas(largest: float) -> np.ndarray:
    """The paper's 100 evenly spaced γ′ of PCPCA, from 0 to the largest."""
    return np.linspace(0, largest, 100)


class Tuned(NamedTuple):
    """The best of a sweep.

    Attributes
    ----------
    parameter : float
    vectors : ndarray of shape (p, k)
        Of that parameter.
    score : float
    scores : ndarray
        Of all parameters.
    """

    parameter: float
    vectors: np.ndarray
    score: float
    scores: np.ndarray


def tune(
    parameters: np.ndarray, vectors: np.ndarray, score: Callable[[np.ndarray], float]
) -> Tuned:
    """The parameter whose vectors have the largest score.

    Parameters
    ----------
    parameters : ndarray of shape (n,)
    vectors : ndarray of shape (n, p, k)
        Found for each parameter.
    score : callable
        Takes vectors of shape (p, k).

    Examples
    --------
    >>> import numpy as np
    >>> tune(np.array([1.0, 2.0]), np.array([[[3.0]], [[4.0]]]), lambda v: -v.sum()).parameter
    1.0
    """
    scores = np.array([score(each) for each in vectors])
    best = int(np.nanargmax(scores))
    return Tuned(float(parameters[best]), vectors[best], float(scores[best]), scores)


def silhouette(points: np.ndarray, labels: np.ndarray, rows: np.ndarray | None = None) -> float:
    """Silhouette of labelled points, of some rows only if given."""
    if rows is not None:
        points, labels = points[rows], labels[rows]
    return float(silhouette_score(points, labels))


def tune_silhouette(
    parameters: np.ndarray,
    vectors: np.ndarray,
    X: np.ndarray,
    labels: np.ndarray,
    *,
    n_rows: int = 1000,
) -> Tuned:
    """The parameter of best silhouette of ``X · vectors``; its score is of all rows.

    Silhouettes cost the square of the rows, so the search looks at ``n_rows`` of them, spread evenly
    over the classes, and only the winner at all.

    Parameters
    ----------
    parameters : ndarray of shape (n,)
    vectors : ndarray of shape (n, p, k)
    X : ndarray of shape (n_samples, p)
    labels : ndarray of shape (n_samples,)
    n_rows : int
    """
    rows = some_rows(labels, n_rows)
    few, groups = X[rows], labels[rows]
    best = tune(parameters, vectors, lambda each: silhouette(few @ each, groups))
    return best._replace(score=silhouette(X @ best.vectors, labels))


def some_rows(labels: np.ndarray, n_rows: int) -> np.ndarray:
    """At most ``n_rows`` rows, each class in proportion; the same ones every time."""
    if len(labels) <= n_rows:
        return np.arange(len(labels))
    order = np.random.default_rng(0).permutation(len(labels))
    # a stable sort by class of shuffled rows, then every n-th of them
    by_class = order[np.argsort(labels[order], kind="stable")]
    return by_class[np.linspace(0, len(labels) - 1, n_rows).round().astype(int)]
