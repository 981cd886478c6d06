"""Algorithm 2 with other decompositions in Steps 1 and 3, which the paper compares with its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.decompositions import METHODS, Decomposition, decompose, fastica, spm
from contrica.errors import DataError, ParameterError
from contrica.metrics import match_patterns
from contrica.moments.estimates import Cumulants
from contrica.moments.operators import RankOneSum, relative_norm
from contrica.solvers.algorithm2 import Contrast
from contrica.solvers.deflation import shared_weights
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import check_choice

__all__ = ["PAIRS", "SEPARATE", "contrast_by"]

SEPARATE = "spm-spm-separate"
# "spm-htd" and every other pair of decompositions for Steps 1 and 3
PAIRS = tuple(f"{first}-{third}" for first in (*METHODS, "fastica") for third in METHODS)


def contrast_by(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    method: str,
    *,
    rng: np.random.Generator,
    deflation: str = "thin",
    background_rows: np.ndarray | None = None,
) -> Contrast:
    """Algorithm 2 with any pair of decompositions in Steps 1 and 3, by name.

    `jade` in Step 1 whitens by the covariance of the background. `fastica` can only be Step 1, and
    needs the background's rows: what is left for Step 3 is a tensor without data. "spm-spm-separate" is
    the paper's foil: both tensors decomposed by themselves, and the r foreground patterns nearest to
    background ones dropped.

    Parameters
    ----------
    fore, back : Cumulants
        Of the foreground x and of the background y, over the same variables.
    n_background, n_foreground : int
        The ranks r and ℓ, with ``r + ℓ ≤ p(p+1)/2``.
    method : str
        The decompositions of Steps 1 and 3, such as "spm-htd" (`contrica.solvers.cica`) or
        "foobi-htd"; see `contrica.decompositions.METHODS`. Or "spm-spm-separate".
    rng : numpy.random.Generator
        Source of what is random in the decompositions.
    deflation : str
        Estimator of Step 2, see `shared_weights`.
    background_rows : ndarray of shape (m, p), optional
        The rows behind ``back``, for "fastica-…".

    Returns
    -------
    Contrast

    References
    ----------
    Wang, Maraj and Seigal, Section `sec:SPM HTD best`.
    """
    check_choice("method", method, (*PAIRS, SEPARATE))
    check_ranks(n_background, n_foreground, fore.n_features)
    if method == SEPARATE:
        return _separate(fore, back, n_background, n_foreground, rng)
    step_1, step_3 = method.split("-")
    background = _background_by(step_1, back, n_background, rng, background_rows)
    shared = shared_weights(fore.fourth, background.vectors, n_background + n_foreground, deflation)
    rest = fore.fourth - RankOneSum(shared, background.vectors)
    # without a covariance: what is left has none to whiten by
    foreground = decompose(rest, n_foreground, step_3, rng=rng)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(rest - foreground.tensor(), fore.fourth)
    return Contrast(background, shared, foreground, ratio, residual)


def _background_by(
    step_1: str,
    back: Cumulants,
    n_background: int,
    rng: np.random.Generator,
    rows: np.ndarray | None,
) -> Decomposition:
    """Step 1, with what the method needs beside the tensor."""
    if step_1 == "fastica":
        return fastica(_check_rows(rows, back.n_features), n_background, rng=rng)
    options: dict[str, Any] = {"covariance": back.covariance} if step_1 == "jade" else {}
    return decompose(back.fourth, n_background, step_1, rng=rng, **options)


def _check_rows(rows: np.ndarray | None, n_features: int) -> np.ndarray:
    if rows is None or rows.shape[1] != n_features:
        got = "None" if rows is None else f"of {rows.shape[1]} variables"
        raise DataError(
            "no-rows",
            f"`background_rows` is {got}",
            f"FastICA works on rows, not on a tensor, and needs those of the background over "
            f"{n_features} variables",
            "Pass `background_rows`.",
            "background_rows",
        )
    return rows


def _separate(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    rng: np.random.Generator,
) -> Contrast:
    """Decompose both tensors by themselves and tell shared patterns by their cosine."""
    background = spm(back.fourth, n_background, rng=rng)
    whole = spm(fore.fourth, n_background + n_foreground, rng=rng)
    found, known = whole.vectors.shape[1], background.vectors.shape[1]
    if found <= known:
        raise ParameterError(
            "none-left",
            f"the foreground's fourth cumulant has {found} terms and the background's {known}: none is "
            "left over",
            remedy="Lower `n_background`, or use another `method`.",
            parameter="n_background",
        )
    matched = match_patterns(whole.vectors, background.vectors)
    own = np.setdiff1d(np.arange(found), matched.order)[:n_foreground]
    foreground = Decomposition(whole.weights[own], whole.vectors[:, own], whole.n_iter)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(fore.fourth - whole.tensor(), fore.fourth)
    return Contrast(background, whole.weights[matched.order], foreground, ratio, residual)
