"""Algorithm 3 of the paper: proportional contrastive ICA, where z′ = γ z.

γ enters κ₂ as γ² and κ₄ as γ⁴; ``background_scale`` is always γ itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contrica.decompositions import Decomposition, htd, spm
from contrica.errors import ParameterError, PatternWarning, warn
from contrica.moments.estimates import Cumulants
from contrica.moments.operators import relative_norm
from contrica.solvers.deflation import shared_weights
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio

__all__ = [
    "BackgroundScale",
    "Proportional",
    "ScaleSweep",
    "estimate_scale",
    "mean_deviation",
    "proportional_cica",
    "scale_sweep",
]


class BackgroundScale(NamedTuple):
    """The background's scale γ in the foreground, and each pattern's own estimate of it.

    Attributes
    ----------
    scale : float
        γ, from the median of ``λ′_i / λ_i`` over the background patterns.
    estimates : ndarray of shape (r,)
        ``(λ′_i / λ_i)^¼`` of each pattern; NaN where the ratio is negative.
    background : Decomposition
        The patterns and their weights λ in the background.
    shared_weights : ndarray of shape (r,)
        Their weights λ′ in the foreground.
    """

    scale: float
    estimates: np.ndarray
    background: Decomposition
    shared_weights: np.ndarray

    @property
    def logarithms(self) -> np.ndarray:
        """``¼ log|λ′_i / λ_i|``: each pattern's estimate of log γ, whatever its sign."""
        sizes = np.abs(_ratios(self.shared_weights, self.background.weights))
        return np.log(np.maximum(sizes, np.finfo(float).tiny)) / 4

    @property
    def spread(self) -> float:
        """Mean distance of the `logarithms` from their median."""
        return mean_deviation(self.logarithms)


def _ratios(shared: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``λ′_i / λ_i``; 0 for a pattern that has no weight in the background."""
    return np.divide(shared, weights, out=np.zeros_like(shared), where=weights != 0)


def mean_deviation(values: np.ndarray) -> float:
    """Mean distance from the median; 0 of no values."""
    return float(np.mean(np.abs(values - np.median(values)))) if values.size else 0.0


def estimate_scale(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    deflation: str = "thin",
    max_iter: int = 200,
    tol: float = 1e-8,
) -> BackgroundScale:
    """Closed-form γ of proportional cICA (Algorithm 3, Step 1).

    ``γ⁴ λ_i = (A_iᵀ V D⁻¹ Vᵀ A_i)⁻¹`` for every background pattern i, with ``V D Vᵀ`` the thin
    eigendecomposition of ``Mat(κ₄(x))``: hence r estimates, whose median is taken. The closed form
    needs r as well as ℓ.

    Parameters
    ----------
    fore, back : Cumulants
    n_background, n_foreground : int
        The ranks r and ℓ.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.
    deflation : str
        Estimator of the numerators λ′, see `shared_weights`.
    max_iter, tol
        Passed to `spm`.

    Returns
    -------
    BackgroundScale

    References
    ----------
    Wang, Maraj and Seigal, Theorem `thm: unique gamma`.
    """
    check_ranks(n_background, n_foreground, fore.n_features, proportional=True)
    background = spm(back.fourth, n_background, rng=rng, max_iter=max_iter, tol=tol)
    shared = shared_weights(fore.fourth, background.vectors, n_background + n_foreground, deflation)
    fourth_powers = _ratios(shared, background.weights)
    median = float(np.median(fourth_powers)) if fourth_powers.size else 0.0
    if median <= 0:
        _warn_of_signs(fourth_powers)
    estimates = np.where(fourth_powers > 0, np.abs(fourth_powers), np.nan) ** 0.25
    return BackgroundScale(max(median, 0.0) ** 0.25, estimates, background, shared)


def _warn_of_signs(fourth_powers: np.ndarray) -> None:
    warn(
        PatternWarning(
            "no-scale",
            f"{np.sum(fourth_powers <= 0)} of {fourth_powers.size} background patterns have weights of "
            "opposite sign in foreground and background, or none, so no `background_scale` fits: 0 is "
            "used, which subtracts nothing",
            remedy="Give `background_scale`, or use ContrastiveICA.",
            parameter="background_scale",
        )
    )


class Proportional(NamedTuple):
    """``κ₄(x) − γ⁴ κ₄(y) ≈ Σ ν_j b_j^{⊗4}``.

    Attributes
    ----------
    scale : float
        γ.
    foreground : Decomposition
        The ``ν_j`` and ``b_j``.
    ratio : ndarray of shape (l,)
        Contrast ratio ``k(b_j)``.
    residual : float
        Relative Frobenius norm of what of κ₄(x) is left unexplained.
    estimated : BackgroundScale or None
        What γ rests on; ``None`` where it was given.
    """

    scale: float
    foreground: Decomposition
    ratio: np.ndarray
    residual: float
    estimated: BackgroundScale | None


def proportional_cica(
    fore: Cumulants,
    back: Cumulants,
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    scale: float | None = None,
    deflation: str = "thin",
    max_iter: int = 200,
    tol: float = 1e-8,
) -> Proportional:
    """Separate the patterns of ``fore`` where the background enters it at one scale (Algorithm 3).

    1. Find γ from the patterns of the background, unless it is given.
    2. Decompose ``κ₄(x) − γ⁴ κ₄(y)`` by hierarchical tensor decomposition.

    Parameters
    ----------
    fore, back : Cumulants
    n_background, n_foreground : int
        The ranks r, of Step 1 only, and ℓ.
    rng : numpy.random.Generator
        Source of the subspace power method's starts in Step 1.
    scale : float, optional
        γ, not a power of it.
    deflation, max_iter, tol
        As of `estimate_scale`.

    Returns
    -------
    Proportional

    References
    ----------
    Wang, Maraj and Seigal, Algorithm 3.
    """
    # Step 1: γ
    options: Any = {"deflation": deflation, "max_iter": max_iter, "tol": tol}
    estimated = None
    if scale is None:
        estimated = estimate_scale(fore, back, n_background, n_foreground, rng=rng, **options)
        scale = estimated.scale
    # Step 2: B
    rest = fore.fourth - back.fourth * scale**4
    foreground = htd(rest, n_foreground)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(rest - foreground.tensor(), fore.fourth)
    return Proportional(scale, foreground, ratio, residual, estimated)


class ScaleSweep(NamedTuple):
    """Proportional cICA over a grid of scales, patterns by decreasing contrast ratio.

    Attributes
    ----------
    scales : ndarray of shape (k,)
    vectors : ndarray of shape (k, n_features, l)
    weights, ratios : ndarray of shape (k, l)
    """

    scales: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray
    ratios: np.ndarray


def scale_sweep(
    fore: Cumulants, back: Cumulants, n_foreground: int, scales: np.ndarray | None = None
) -> ScaleSweep:
    """Algorithm 3 for every γ of a grid, to be judged by eye where no single γ holds.

    Parameters
    ----------
    fore, back : Cumulants
    n_foreground : int
        ℓ.
    scales : array-like, optional
        Values of γ ≥ 0; default 0 (plain ICA) and 20 values evenly spaced in the logarithm from
        0.1 to 10.

    Returns
    -------
    ScaleSweep
    """
    grid = _grid(scales)
    found = []
    for scale in grid:
        terms = htd(fore.fourth - back.fourth * float(scale) ** 4, n_foreground, tie_gap=0.0)
        ratio = contrast_ratio(terms.vectors, fore, back)
        order = np.argsort(-ratio, kind="stable")
        found.append((terms.vectors[:, order], terms.weights[order], ratio[order]))
    vectors, weights, ratios = (np.array(part) for part in zip(*found, strict=True))
    return ScaleSweep(grid, vectors, weights, ratios)


def _grid(scales: np.ndarray | None) -> np.ndarray:
    if scales is None:
        return np.concatenate([[0.0], np.geomspace(0.1, 10, 20)])
    grid = np.atleast_1d(np.asarray(scales, dtype=float))
    if grid.size == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ParameterError(
            "out-of-range",
            f"`scales` is {scales!r}",
            "must be numbers that are finite and not negative",
            parameter="scales",
        )
    return grid
