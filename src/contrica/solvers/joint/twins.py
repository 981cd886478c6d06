"""One pattern once: vectors of a joint fit that lie along one another are merged."""

from __future__ import annotations

import numpy as np

from contrica.decompositions import htd
from contrica.errors import PatternWarning, warn
from contrica.moments.operators import RankOneSum, TensorOperator
from contrica.solvers.joint.descent import converge
from contrica.solvers.joint.objective import JointFit, fit_weights, removal_losses
from contrica.solvers.joint.search import TRY_STEPS, affords_tries
from contrica.solvers.joint.terms import Terms

__all__ = ["SAME_PATTERN", "nearest_pair", "warn_cancelling", "warn_twins", "without_twins"]

# |cosine|, in whitened coordinates, above which two patterns are one.
SAME_PATTERN = 0.98


def nearest_pair(vectors: np.ndarray) -> tuple[int, int] | None:
    """The two unit columns with the largest |cosine|, where that makes them one pattern.

    Parameters
    ----------
    vectors : ndarray of shape (p, k)

    Returns
    -------
    tuple of int or None

    Examples
    --------
    >>> import numpy as np
    >>> nearest_pair(np.eye(3)), nearest_pair(np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]]))
    (None, (0, 2))
    """
    cosines = np.triu(np.abs(vectors.T @ vectors), 1)
    first, second = np.unravel_index(cosines.argmax(), cosines.shape)
    return (int(first), int(second)) if cosines[first, second] > SAME_PATTERN else None


def without_twins(
    terms: Terms, fit: JointFit, mask: np.ndarray, max_iter: int, tol: float
) -> tuple[JointFit, np.ndarray]:
    """A fit with every pattern once: of two that are one, one goes, and the rest is refitted.

    Two such patterns with weights of opposite sign are a small change of one, however large the t-value
    of each. The one that is missed less goes: of a foreground pattern and a background one along it,
    the latter, where the background has no such pattern. What is left of a cumulant takes its place,
    unless that leads to twins again, or a try is all that `joint_search` affords. The last one of a role
    stays.

    Parameters
    ----------
    terms : Terms
    fit : JointFit
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)
    max_iter, tol
        As of `contrica.solvers.joint.joint_fit`.

    Returns
    -------
    fit : JointFit
    mask : ndarray of bool
        Without the columns of what went.
    """
    tried = affords_tries(terms, mask)
    while (pair := nearest_pair(fit.vectors)) is not None:
        roles = _roles(terms, mask).sum(axis=0)
        losses = removal_losses(terms, fit.vectors, fit.weights, mask).sum(axis=0)
        alone = [np.sum(roles == roles[j]) == 1 for j in pair]
        if all(alone):
            if fit.gradient_norm > tol:  # it was left where its twins showed
                rest = converge(terms, fit.vectors, mask, max_iter, tol)
                fit = rest._replace(gain=fit.gain, n_iter=fit.n_iter + rest.n_iter)
            break
        goes = min(pair, key=lambda j: (alone[pair.index(j)], losses[j]))
        found = None
        if tried:
            start = _swapped(terms, fit.vectors, mask, goes)
            found = _refitted(terms, start, mask, max_iter, tol)
        if found is None or nearest_pair(found.vectors) is not None:
            mask = np.delete(mask, goes, axis=1)
            found = _refitted(terms, np.delete(fit.vectors, goes, axis=1), mask, max_iter, tol)
        fit = found._replace(gain=fit.gain, n_iter=fit.n_iter + found.n_iter)
    return fit, mask


def _roles(terms: Terms, mask: np.ndarray) -> np.ndarray:
    """In which datasets vectors may have weight, whatever the order: all may have fourth cumulants."""
    return terms.allowed(mask)[terms.orders == 4]


def _refitted(
    terms: Terms, start: np.ndarray, mask: np.ndarray, max_iter: int, tol: float
) -> JointFit:
    """A fit that goes to its end only if no twins show on the way: with them it is not the answer."""
    found = converge(terms, start, mask, min(TRY_STEPS, max_iter), tol)
    left = max_iter - found.n_iter
    if left <= 0 or found.gradient_norm <= tol or nearest_pair(found.vectors) is not None:
        return found
    rest = converge(terms, found.vectors, mask, left, tol)
    return rest._replace(n_iter=found.n_iter + rest.n_iter)


def _swapped(terms: Terms, vectors: np.ndarray, mask: np.ndarray, position: int) -> np.ndarray:
    """The vectors with one replaced by the strongest term of what the others leave of a κ₄."""
    dataset = np.flatnonzero(_roles(terms, mask)[:, position])[-1]
    others = np.delete(vectors, position, axis=1)
    weights = fit_weights(terms, others, np.delete(mask, position, axis=1))
    vectors = vectors.copy()
    for term, W in zip(terms, weights, strict=True):
        if term.dataset == dataset and isinstance(term.tensor, TensorOperator):
            rest = term.tensor - RankOneSum(W, others)
            vectors[:, position] = htd(rest, 1, tie_gap=0.0).vectors[:, 0]
    return vectors


def warn_twins(count: int) -> None:
    """Say that patterns were merged.

    Parameters
    ----------
    count : int
        How many fewer there are.
    """
    warn(
        PatternWarning(
            "merged",
            f"{count} of the patterns of the joint fit lay along others (|cosine| above {SAME_PATTERN}) "
            "and were merged with them",
            remedy="Lower `n_background` or `n_foreground`; with heavy tails, try `cumulant=robust`.",
            parameter="n_foreground",
        )
    )


def warn_cancelling(vectors: np.ndarray, weights: np.ndarray) -> None:
    """Say which patterns lie along another of opposite weight, and so are none by themselves.

    Parameters
    ----------
    vectors : ndarray of shape (p, k)
        Unit columns, in whitened coordinates.
    weights : ndarray of shape (k,)
        In the foreground.
    """
    both = np.abs(weights[:, None] + weights)
    smaller = np.minimum(np.abs(weights[:, None]), np.abs(weights))
    same = np.abs(vectors.T @ vectors) > SAME_PATTERN
    count = int(np.sum(np.triu(same & (both < 0.5 * smaller), 1)))
    if count:
        warn(
            PatternWarning(
                "cancelling",
                f"{count} pairs of patterns lie along one direction (|cosine| above {SAME_PATTERN}) with "
                "weights that cancel: together they fit noise",
                remedy="Lower `n_background` or `n_foreground`, or use `solver=joint`: it merges them.",
                parameter="n_foreground",
            )
        )
