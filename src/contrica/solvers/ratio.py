"""Contrast ratio k(b): how much more a pattern varies in the foreground than in the background."""

from __future__ import annotations

import numpy as np

from contrica.moments.fourth import Cumulants
from contrica.validation import PatternWarning, warn_user

__all__ = ["contrast_ratio"]


def contrast_ratio(vectors: np.ndarray, fore: Cumulants, back: Cumulants) -> np.ndarray:
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

    Returns
    -------
    ndarray of shape (k,)

    References
    ----------
    Wang, Maraj and Seigal, equation `eqn:kb` and Appendix `app:r_and_l`.
    """
    above = np.einsum("ik,ij,jk->k", vectors, fore.covariance, vectors, optimize=True)
    below = np.einsum("ik,ij,jk->k", vectors, back.covariance, vectors, optimize=True)
    scale = float(np.linalg.eigvalsh(back.covariance)[-1])
    if scale <= 0:  # a constant background: measure against the foreground instead
        scale = max(float(np.linalg.eigvalsh(fore.covariance)[-1]), np.finfo(float).tiny)
    floor = max(back.n_samples, back.n_features) * np.finfo(float).eps * scale
    floored = below < floor
    if floored.any():
        warn_user(
            f"the background does not vary along {floored.sum()} of {below.size} patterns found: their "
            "contrast ratio is unbounded, and they are ordered by foreground variance.",
            PatternWarning,
        )
    return np.maximum(above, 0.0) / np.maximum(below, floor)
