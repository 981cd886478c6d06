"""Algorithm 2 of the paper: contrastive ICA by three steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.contrast._deflation import shared_weights
from contrica.contrast._ratio import contrast_ratio
from contrica.cumulants import Cumulants
from contrica.decompositions import METHODS, Decomposition, decompose
from contrica.operators import RankOneSum, relative_norm
from contrica.ranks import check_ranks
from contrica.validation import check_choice

__all__ = ["Contrast", "contrast"]

# "spm-htd" and every other pair of decompositions for Steps 1 and 3
PAIRS = tuple(f"{first}-{third}" for first in METHODS for third in METHODS)


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
    """

    background: Decomposition
    shared_weights: np.ndarray
    foreground: Decomposition
    ratio: np.ndarray
    residual: float


def contrast(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    method: str = "spm-htd",
    deflation: str = "thin",
    max_iter: int = 200,
    tol: float = 1e-8,
) -> Contrast:
    """Separate the patterns of ``fore`` that ``back`` does not explain (Algorithm 2).

    1. Decompose ``κ₄(y) = Σ_{i≤r} λ_i a_i^{⊗4}`` by the subspace power method.
    2. Find the coefficients ``λ′_i`` of the ``a_i^{⊗4}`` in ``κ₄(x)`` and subtract.
    3. Decompose the rest, ``Σ_{j≤ℓ} ν_j b_j^{⊗4}``, by hierarchical tensor decomposition.

    The paper compares other decompositions in Steps 1 and 3; any pair can be named.

    Parameters
    ----------
    fore, back : Cumulants
        Of the foreground x and of the background y, over the same variables.
    n_background, n_foreground : int
        The ranks r and ℓ, with ``r + ℓ ≤ p(p+1)/2``.
    rng : numpy.random.Generator
        Source of the subspace power method's starts, or of what else is random.
    method : str
        The decompositions of Steps 1 and 3 by name, such as "spm-htd" (the paper's) or
        "foobi-htd"; see `contrica.decompositions.METHODS`.
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
    >>> from contrica.cumulants import cumulants
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(5, random_state=0)
    >>> fore, back = cumulants(data.foreground), cumulants(data.background)
    >>> contrast(fore, back, 5, 4, rng=np.random.default_rng(0)).foreground.vectors.shape
    (5, 4)
    """
    check_choice("method", method, PAIRS)
    step_1, step_3 = method.split("-")
    check_ranks(n_background, n_foreground, fore.n_features)
    options = {"spm": {"max_iter": max_iter, "tol": tol}}
    background = decompose(back.fourth, n_background, step_1, rng=rng, **options.get(step_1, {}))
    shared = shared_weights(fore.fourth, background.vectors, n_background + n_foreground, deflation)
    rest = fore.fourth - RankOneSum(shared, background.vectors)
    foreground = decompose(rest, n_foreground, step_3, rng=rng, **options.get(step_3, {}))
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(rest - foreground.tensor(), fore.fourth)
    return Contrast(background, shared, foreground, ratio, residual)
