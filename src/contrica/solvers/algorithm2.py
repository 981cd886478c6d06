"""Algorithm 2 of the paper: contrastive ICA by three steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.decompositions import Decomposition, htd, spm
from contrica.moments.estimates import Cumulants
from contrica.moments.operators import RankOneSum, relative_norm
from contrica.solvers.deflation import shared_weights
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio

__all__ = ["Contrast", "cica"]


class Contrast(NamedTuple):
    """``κ₄(y) ≈ Σ λ_i a_i^{⊗4}`` and ``κ₄(x) ≈ Σ λ′_i a_i^{⊗4} + Σ ν_j b_j^{⊗4}``.

    Attributes
    ----------
    background : Decomposition
        The ``λ_i`` and ``a_i``.
    shared_weights : ndarray of shape (r,)
        The ``λ′_i``.
    foreground : Decomposition
        The ``ν_j`` and ``b_j``, by decreasing ``|ν_j|``.
    ratio : ndarray of shape (l,)
        Contrast ratio ``k(b_j)``.
    residual : float
        Relative Frobenius norm of what of κ₄(x) is left unexplained.
    skewness_weights : ndarray of shape (l,) or None
        Weights of the ``b_j`` in κ₃(x), where that was fitted.
    gain : float
        As of `contrica.solvers.joint.JointFit`; NaN of all but a joint fit.
    """

    background: Decomposition
    shared_weights: np.ndarray
    foreground: Decomposition
    ratio: np.ndarray
    residual: float
    gain: float = float("nan")
    skewness_weights: np.ndarray | None = None


def cica(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    deflation: str = "thin",
    max_iter: int = 200,
    tol: float = 1e-8,
) -> Contrast:
    """Separate the patterns of ``fore`` that ``back`` does not explain (Algorithm 2).

    1. Decompose ``κ₄(y) = Σ_{i≤r} λ_i a_i^{⊗4}`` by the subspace power method.
    2. Find the coefficients ``λ′_i`` of the ``a_i^{⊗4}`` in ``κ₄(x)`` and subtract.
    3. Decompose the rest, ``Σ_{j≤ℓ} ν_j b_j^{⊗4}``, by hierarchical tensor decomposition.

    Parameters
    ----------
    fore, back : Cumulants
        Of the foreground x and of the background y, over the same variables.
    n_background, n_foreground : int
        The ranks r and ℓ, with ``r + ℓ ≤ p(p+1)/2``.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.
    deflation : str
        Estimator of Step 2, see `shared_weights`.
    max_iter, tol
        Passed to `spm`.

    Returns
    -------
    Contrast

    References
    ----------
    Wang, Maraj and Seigal, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import cumulants
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(5, random_state=0)
    >>> fore, back = cumulants(data.foreground), cumulants(data.background)
    >>> cica(fore, back, 5, 4, rng=np.random.default_rng(0)).foreground.vectors.shape
    (5, 4)
    """
    check_ranks(n_background, n_foreground, fore.n_features)
    # Step 1: A
    background = spm(back.fourth, n_background, rng=rng, max_iter=max_iter, tol=tol)
    # Step 2: κ₄(x) without the background
    shared = shared_weights(fore.fourth, background.vectors, n_background + n_foreground, deflation)
    rest = fore.fourth - RankOneSum(shared, background.vectors)
    # Step 3: B
    foreground = htd(rest, n_foreground)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(rest - foreground.tensor(), fore.fourth)
    return Contrast(background, shared, foreground, ratio, residual)
