"""Algorithm 2 of the paper: contrastive ICA by three steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contrica.decompositions import METHODS, Decomposition, decompose, fastica, spm
from contrica.metrics import match_patterns
from contrica.moments.fourth import Cumulants
from contrica.moments.operators import RankOneSum, relative_norm
from contrica.solvers.deflation import shared_weights
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import check_choice

__all__ = ["Contrast", "contrast"]

SEPARATE = "spm-spm-separate"
# "spm-htd" and every other pair of decompositions for Steps 1 and 3
PAIRS = tuple(f"{first}-{third}" for first in (*METHODS, "fastica") for third in METHODS)


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
    gain : float
        As of `contrica.solvers.joint.JointFit`; NaN of all but a joint fit.
    """

    background: Decomposition
    shared_weights: np.ndarray
    foreground: Decomposition
    ratio: np.ndarray
    residual: float
    gain: float = float("nan")


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
    background_rows: np.ndarray | None = None,
) -> Contrast:
    """Separate the patterns of ``fore`` that ``back`` does not explain (Algorithm 2).

    1. Decompose ``κ₄(y) = Σ_{i≤r} λ_i a_i^{⊗4}`` by the subspace power method.
    2. Find the coefficients ``λ′_i`` of the ``a_i^{⊗4}`` in ``κ₄(x)`` and subtract.
    3. Decompose the rest, ``Σ_{j≤ℓ} ν_j b_j^{⊗4}``, by hierarchical tensor decomposition.

    The paper compares other decompositions in Steps 1 and 3; any pair can be named. `jade` in
    Step 1 whitens by the covariance of the background. `fastica` can only be Step 1, and needs the
    background's rows: what is left for Step 3 is a tensor without data. "spm-spm-separate" is the
    paper's foil: both tensors decomposed by themselves, and the r foreground patterns nearest to
    background ones dropped.

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
        "foobi-htd"; see `contrica.decompositions.METHODS`. Or "spm-spm-separate".
    deflation : str
        Estimator of Step 2, see `shared_weights`.
    max_iter, tol
        Passed to `spm`.
    background_rows : ndarray of shape (m, p), optional
        The rows behind ``back``, for "fastica-…".

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
    >>> contrast(fore, back, 5, 4, rng=np.random.default_rng(0)).foreground.vectors.shape
    (5, 4)
    """
    check_choice("method", method, (*PAIRS, SEPARATE))
    check_ranks(n_background, n_foreground, fore.n_features)
    options: dict[str, dict[str, Any]] = {
        "spm": {"max_iter": max_iter, "tol": tol},
        "jade": {"covariance": back.covariance},
    }
    if method == SEPARATE:
        return _separate(fore, back, n_background, n_foreground, rng, options["spm"])
    step_1, step_3 = method.split("-")
    if step_1 == "fastica":
        background = fastica(_rows_of(back, background_rows, method), n_background, rng=rng)
    else:
        given = options.get(step_1, {})
        background = decompose(back.fourth, n_background, step_1, rng=rng, **given)
    shared = shared_weights(fore.fourth, background.vectors, n_background + n_foreground, deflation)
    rest = fore.fourth - RankOneSum(shared, background.vectors)
    # what is left has no covariance of its own to whiten by
    given = options["spm"] if step_3 == "spm" else {}
    foreground = decompose(rest, n_foreground, step_3, rng=rng, **given)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(rest - foreground.tensor(), fore.fourth)
    return Contrast(background, shared, foreground, ratio, residual)


def _rows_of(back: Cumulants, rows: np.ndarray | None, method: str) -> np.ndarray:
    if rows is None or rows.shape[1] != back.n_features:
        came = "none came" if rows is None else f"rows of {rows.shape[1]} variables came"
        raise ValueError(
            f"method={method!r} needs the background's rows over {back.n_features} variables, and "
            f"{came}: FastICA works on data, not on a tensor. Pass background_rows."
        )
    return rows


def _separate(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    rng: np.random.Generator,
    options: dict[str, Any],
) -> Contrast:
    """Decompose both tensors by themselves and tell shared patterns by their cosine."""
    background = spm(back.fourth, n_background, rng=rng, **options)
    whole = spm(fore.fourth, n_background + n_foreground, rng=rng, **options)
    found, known = whole.vectors.shape[1], background.vectors.shape[1]
    if found <= known:
        raise ValueError(
            f"the foreground's fourth cumulant has {found} terms and the background's {known}: none is "
            "left over. Lower n_background, or use another method."
        )
    matched = match_patterns(whole.vectors, background.vectors)
    own = np.setdiff1d(np.arange(found), matched.order)[:n_foreground]
    foreground = Decomposition(whole.weights[own], whole.vectors[:, own], whole.n_iter)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(fore.fourth - whole.tensor(), fore.fourth)
    return Contrast(background, whole.weights[matched.order], foreground, ratio, residual)
