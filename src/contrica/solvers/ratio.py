"""Contrast ratios: how much more foreground than background, along a pattern or of a source."""

from __future__ import annotations

import numpy as np

from contrica.errors import PatternWarning, warn
from contrica.moments.estimates import Cumulants
from contrica.moments.spectra import pseudo_solve, top_value

__all__ = [
    "background_variances",
    "contrast_ratio",
    "filters_of",
    "source_ratio",
    "variances_along",
]


def contrast_ratio(
    vectors: np.ndarray,
    fore: Cumulants,
    back: Cumulants,
    *,
    quiet: bool = False,
    n_features: int | None = None,
) -> np.ndarray:
    """``k(b) = bᵀκ₂(x)b / bᵀκ₂(y)b`` for every column ``b``.

    Where the background does not vary along ``b`` the ratio has no meaning beyond "very large". The
    denominator is therefore floored at ``max(m, p) · eps · λ_max(κ₂(y))``, the rounding error of the
    background covariance; floored patterns come out ordered by their foreground variance, and a
    warning names them.

    Parameters
    ----------
    vectors : ndarray of shape (n_features, k)
        Patterns, unit columns.
    fore, back : Cumulants
        Of the foreground and of the background.
    quiet : bool
        Whether to leave the warning out.
    n_features : int, optional
        p, where cumulants and patterns are in coordinates of fewer dimensions.

    Returns
    -------
    ndarray of shape (k,)

    References
    ----------
    Wang, Maraj and Seigal, equation `eqn:kb` and Appendix `app:r_and_l`.
    """
    return _ratio(vectors, fore.covariance, back, quiet, n_features or back.n_features)


def source_ratio(
    filters: np.ndarray, fore: Cumulants, back: Cumulants, *, quiet: bool = False
) -> np.ndarray:
    """``k(f) = E_x (fᵀx − fᵀμ_y)² / fᵀκ₂(y)f`` for every column ``f``: of the source ``fᵀx`` itself.

    The mean square of the source in the foreground, about the mean it has in the background, over its
    variance there. A source that is present in all of the foreground and absent from the background
    shifts the mean, which a ratio of variances would miss. Along a pattern a ratio would count all else
    that varies there, which for patterns far from orthogonal is most of it. Floored as `contrast_ratio`.

    Parameters
    ----------
    filters : ndarray of shape (n_features, k)
        Of any length.
    fore, back : Cumulants
    quiet : bool
        Whether to leave the warning out.

    Returns
    -------
    ndarray of shape (k,)
    """
    shift = fore.mean - back.mean
    energy = fore.covariance + np.outer(shift, shift)
    unit = filters / np.linalg.norm(filters, axis=0)
    return _ratio(unit, energy, back, quiet, back.n_features)


def filters_of(vectors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """``Σ⁺b / (bᵀΣ⁺b)`` for every column ``b``: unit gain on b, least variance from everything else.

    Parameters
    ----------
    vectors : ndarray of shape (p, k)
        Patterns.
    covariance : ndarray of shape (p, p)
        Σ.

    Returns
    -------
    ndarray of shape (p, k)
    """
    solved = pseudo_solve(covariance, vectors)
    gains = np.einsum("ik,ik->k", vectors, solved)
    # A pattern along which the foreground does not vary has no filter but itself.
    return np.where(gains > 0, solved / np.where(gains > 0, gains, 1.0), vectors)


def variances_along(directions: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """``fᵀΣf`` for every column ``f``; the least positive number where nothing varies.

    Parameters
    ----------
    directions : ndarray of shape (p, k)
    covariance : ndarray of shape (p, p)

    Returns
    -------
    ndarray of shape (k,)
    """
    found = np.einsum("pk,pq,qk->k", directions, covariance, directions, optimize=True)
    return np.asarray(np.maximum(found, np.finfo(float).tiny))


def _ratio(
    vectors: np.ndarray, fore: np.ndarray, back: Cumulants, quiet: bool, n_features: int
) -> np.ndarray:
    above = np.einsum("ik,ij,jk->k", vectors, fore, vectors, optimize=True)
    below, floored = background_variances(vectors, fore, back, n_features)
    if floored.any() and not quiet:
        warn(
            PatternWarning(
                "unbounded-ratio",
                f"the background does not vary along {floored.sum()} of {below.size} patterns found: "
                "their contrast ratio is unbounded, and they are ordered by foreground variance",
            )
        )
    return np.maximum(above, 0.0) / below


def background_variances(
    directions: np.ndarray, fore: np.ndarray, back: Cumulants, n_features: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``fᵀΣf`` of the background, floored where it is rounding as `contrast_ratio` says, and where.

    Parameters
    ----------
    directions : ndarray of shape (p, k)
    fore : ndarray of shape (p, p)
        What a background that does not vary at all is measured against.
    back : Cumulants
    n_features : int, optional
        As of `contrast_ratio`.

    Returns
    -------
    below : ndarray of shape (k,)
    floored : ndarray of bool, shape (k,)
    """
    below = np.einsum("ik,ij,jk->k", directions, back.covariance, directions, optimize=True)
    scale = top_value(back.covariance)
    if scale <= 0:
        scale = max(top_value(fore), np.finfo(float).tiny)
    floor = max(back.n_samples, n_features or back.n_features) * np.finfo(float).eps * scale
    lowest = np.maximum(floor * np.sum(directions**2, axis=0), np.finfo(float).tiny)
    return np.maximum(below, lowest), below < lowest
