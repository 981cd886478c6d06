"""How close found patterns are to true ones, up to sign and order.

Patterns are columns, as everywhere in the core: pass ``model.components_.T``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from contrica.errors import DataError
from contrica.validation import check_choice, check_patterns

__all__ = [
    "Match",
    "match_patterns",
    "pattern_cosines",
    "pattern_similarity",
    "relative_frobenius_error",
]


class Match(NamedTuple):
    """``signs[j] · estimated[:, order[j]]`` goes with ``true[:, j]``.

    Attributes
    ----------
    order : ndarray of int
        Column of ``estimated`` for each column of ``true``.
    signs : ndarray of ±1
    cosines : ndarray
        |cosine| of each pair.
    """

    order: np.ndarray
    signs: np.ndarray
    cosines: np.ndarray


def pattern_cosines(estimated: np.ndarray, true: np.ndarray) -> np.ndarray:
    """|cosine| of every estimated with every true pattern, ``|b′_i · b_j|`` of unit columns.

    Parameters
    ----------
    estimated : ndarray of shape (n_features, k)
    true : ndarray of shape (n_features, l)

    Returns
    -------
    ndarray of shape (k, l)
    """
    return np.abs(check_patterns(estimated, "estimated").T @ check_patterns(true, "true"))


def match_patterns(estimated: np.ndarray, true: np.ndarray, method: str = "optimal") -> Match:
    """Pair every true pattern with an estimated one.

    Parameters
    ----------
    estimated : ndarray of shape (n_features, k)
        At least as many columns as ``true``.
    true : ndarray of shape (n_features, l)
    method : {"optimal", "greedy"}
        The pairing of largest total |cosine|, or the paper's: the first true pattern takes the
        estimated one nearest to it, the second the nearest of the rest, and so on.

    Returns
    -------
    Match

    Examples
    --------
    >>> import numpy as np
    >>> match_patterns(-np.eye(3)[:, [2, 0, 1]], np.eye(3)).order
    array([1, 2, 0])
    """
    check_choice("method", method, ("optimal", "greedy"))
    found, truth = check_patterns(estimated, "estimated"), check_patterns(true, "true")
    if found.shape[0] != truth.shape[0] or found.shape[1] < truth.shape[1]:
        raise DataError(
            "shape",
            f"estimated patterns of shape {found.shape} cannot be matched with true ones of shape "
            f"{truth.shape}",
            "there must be as many variables, and at least as many estimated patterns as true ones",
            "Patterns are columns: transpose them if they are swapped.",
            "estimated",
        )
    cosines = found.T @ truth
    if method == "optimal":
        rows, columns = linear_sum_assignment(-np.abs(cosines))
        order = rows[np.argsort(columns)]
    else:
        free = np.abs(cosines)
        order = np.empty(truth.shape[1], dtype=int)
        for j in range(truth.shape[1]):
            order[j] = np.argmax(free[:, j])
            free[order[j]] = -1.0
    matched = cosines[order, np.arange(truth.shape[1])]
    return Match(order, np.where(matched < 0, -1.0, 1.0), np.abs(matched))


def pattern_similarity(estimated: np.ndarray, true: np.ndarray, method: str = "optimal") -> float:
    """Mean |cosine| of matched patterns, ``(1/ℓ) Σ_j |b_j · b′_j|``.

    Parameters
    ----------
    estimated, true, method
        As in `match_patterns`.

    Returns
    -------
    float
        1 for perfect recovery.
    """
    return float(match_patterns(estimated, true, method).cosines.mean())


def relative_frobenius_error(
    estimated: np.ndarray, true: np.ndarray, method: str = "optimal"
) -> float:
    """``‖B − B′‖_F / √ℓ`` of matched unit patterns, as the paper defines it.

    Parameters
    ----------
    estimated, true, method
        As in `match_patterns`.

    Returns
    -------
    float
        0 for perfect recovery.
    """
    match = match_patterns(estimated, true, method)
    found, truth = check_patterns(estimated, "estimated"), check_patterns(true, "true")
    gap = found[:, match.order] * match.signs - truth
    return float(np.linalg.norm(gap) / np.sqrt(truth.shape[1]))
