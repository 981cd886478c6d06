"""Algorithm 3 of the paper: proportional contrastive ICA, where z′ = γ z.

γ enters κ₂ as γ² and κ₄ as γ⁴; ``background_scale`` is always γ itself.
"""

from __future__ import annotations

import logging
import warnings
from typing import NamedTuple

import numpy as np

from contrica.decompositions import Decomposition, htd, spm
from contrica.metrics import match_patterns
from contrica.moments.fourth import Cumulants, Estimate, cumulants
from contrica.moments.operators import relative_norm
from contrica.solvers.deflation import shared_weights
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import PatternWarning, check_count, check_matrix, warn_user

__all__ = [
    "BackgroundScale",
    "Proportional",
    "Proportionality",
    "ScaleSweep",
    "background_scale",
    "proportional_contrast",
    "proportionality_test",
    "scale_sweep",
]

logger = logging.getLogger("contrica")


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
        return _spread(self.logarithms)


def _ratios(shared: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``λ′_i / λ_i``; 0 for a pattern that has no weight in the background."""
    return np.divide(shared, weights, out=np.zeros_like(shared), where=weights != 0)


def _spread(values: np.ndarray) -> float:
    return float(np.mean(np.abs(values - np.median(values)))) if values.size else 0.0


def background_scale(
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
    """Closed-form γ of proportional cICA.

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
    ratios = _ratios(shared, background.weights)
    power = float(np.median(ratios)) if ratios.size else 0.0
    if power <= 0:
        warn_user(
            f"{np.sum(ratios <= 0)} of {ratios.size} background patterns have weights of opposite "
            "sign in foreground and background, or none, so no background_scale fits: 0 is used, "
            "which subtracts nothing. Give background_scale, or use ContrastiveICA.",
            PatternWarning,
        )
    estimates = np.where(ratios > 0, np.abs(ratios), np.nan) ** 0.25
    return BackgroundScale(max(power, 0.0) ** 0.25, estimates, background, shared)


class Proportional(NamedTuple):
    """``κ₄(x) − γ⁴ κ₄(y) ≈ Σ ν_j b_j^{⊗4}``, with contrast ratios and relative residual."""

    scale: float
    foreground: Decomposition
    ratio: np.ndarray
    residual: float


def proportional_contrast(
    fore: Cumulants, back: Cumulants, n_foreground: int, *, background_scale: float
) -> Proportional:
    """Decompose ``κ₄(x) − γ⁴ κ₄(y)`` by HTD (Algorithm 3, Step 2).

    Parameters
    ----------
    fore, back : Cumulants
    n_foreground : int
        ℓ.
    background_scale : float
        γ, not a power of it; see the function `background_scale` for its closed form.

    Returns
    -------
    Proportional

    References
    ----------
    Wang, Maraj and Seigal, Algorithm 3.
    """
    rest = fore.fourth - back.fourth * background_scale**4
    foreground = htd(rest, n_foreground)
    ratio = contrast_ratio(foreground.vectors, fore, back)
    residual = relative_norm(rest - foreground.tensor(), fore.fourth)
    return Proportional(background_scale, foreground, ratio, residual)


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
    if scales is None:
        scales = np.concatenate([[0.0], np.geomspace(0.1, 10, 20)])
    grid = np.atleast_1d(np.asarray(scales, dtype=float))
    if grid.size == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError(f"scales must be finite and not negative, but {scales!r} was given.")
    found = []
    for scale in grid:
        terms = htd(fore.fourth - back.fourth * float(scale) ** 4, n_foreground, tie_gap=0.0)
        ratio = contrast_ratio(terms.vectors, fore, back)
        order = np.argsort(-ratio, kind="stable")
        found.append((terms.vectors[:, order], terms.weights[order], ratio[order]))
    vectors, weights, ratios = (np.array(part) for part in zip(*found, strict=True))
    return ScaleSweep(grid, vectors, weights, ratios)


class Proportionality(NamedTuple):
    """Result of `proportionality_test`.

    Attributes
    ----------
    p_value : float
        The larger, over both nulls, of the share of null spreads at least as large as the one seen;
        small speaks against z′ = γ z.
    spread : float
        Mean distance of the estimates of log γ from their median.
    null_redrawn, null_simulated : ndarray of shape (n_simulations,)
        The spreads that sampling noise alone gives, by redrawing rows and by simulating data.
    scale : BackgroundScale
        γ and each pattern's estimate of it.
    """

    p_value: float
    spread: float
    null_redrawn: np.ndarray
    null_simulated: np.ndarray
    scale: BackgroundScale


def proportionality_test(
    X: np.ndarray,
    background: np.ndarray,
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    n_simulations: int = 99,
    estimate: Estimate = "plugin",
    deflation: str = "thin",
) -> Proportionality:
    """Test whether one scale γ carries every background pattern into the foreground.

    The paper suggests to see whether the estimates of γ agree over i. How far they spread when they
    should agree depends on the sample, so the null is simulated, in two ways that fail in different
    places. *Redrawn*: rows of both datasets are drawn anew, the patterns found again and matched;
    the deviations ``log γ*_i − log γ_i`` are sampling noise whether or not the γ_i differ. It misses
    the bias of weak patterns. *Simulated*: ``x* = γ y* + B s*``, with ``y*`` rows of the background,
    γ and B as fitted by Algorithm 3, and ``s*`` drawn from the scores of B's filters, scaled to
    the fitted fourth cumulants. It misses what the fit misses. The larger p-value is returned, so the
    test holds its level where either null does, at the price of power in small samples
    (`benchmarks/proportionality.py` measures both).

    Parameters
    ----------
    X, background : ndarray of shape (n, n_features), (m, n_features)
        Data; project them first if there are more than about 30 variables.
    n_background, n_foreground : int
        The ranks r ≥ 2 and ℓ.
    rng : numpy.random.Generator
        Source of the draws and of the subspace power method's starts.
    n_simulations : int
        Draws from each null. The smallest p-value that can come out is ``1 / (n_simulations + 1)``.
    estimate, deflation
        As in `cumulants` and `shared_weights`.

    Returns
    -------
    Proportionality

    References
    ----------
    Wang, Maraj and Seigal, remark after Theorem `thm: unique gamma`.
    """
    X, background = check_matrix(X, "X"), check_matrix(background, "background")
    check_count("n_background", n_background, least=2)
    check_count("n_simulations", n_simulations)

    def scale_of(fore: Cumulants, back: Cumulants) -> BackgroundScale:
        return background_scale(
            fore, back, n_background, n_foreground, rng=rng, deflation=deflation
        )

    fore, back = cumulants(X, estimate), cumulants(background, estimate)
    seen = scale_of(fore, back)
    redrawn, simulated = np.empty(n_simulations), np.empty(n_simulations)
    with warnings.catch_warnings():
        # What is doubtful about a simulated fit is no news to the user.
        warnings.simplefilter("ignore")
        fit = proportional_contrast(fore, back, n_foreground, background_scale=seen.scale)
        simulate = _NullModel(X, fore, back, fit)
        for i in range(n_simulations):
            other = cumulants(_redrawn(background, len(background), rng), estimate)
            again = scale_of(cumulants(_redrawn(X, len(X), rng), estimate), other)
            redrawn[i] = _spread(_deviations(again, seen))
            made = simulate(_redrawn(background, len(X), rng), rng)
            simulated[i] = scale_of(cumulants(made, estimate), other).spread
            logger.info("proportionality test: %d of %d simulations", i + 1, n_simulations)
    exceeding = max(np.sum(null >= seen.spread) for null in (redrawn, simulated))
    p_value = float((1 + exceeding) / (1 + n_simulations))
    return Proportionality(p_value, seen.spread, redrawn, simulated, seen)


def _redrawn(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return rows[rng.integers(len(rows), size=count)]


def _deviations(again: BackgroundScale, seen: BackgroundScale) -> np.ndarray:
    """Differences of the estimates of log γ, pattern by matched pattern."""
    few, many = sorted((again, seen), key=lambda scale: scale.background.weights.size)
    match = match_patterns(many.background.vectors, few.background.vectors)
    return many.logarithms[match.order] - few.logarithms


class _NullModel:
    """Makes foregrounds in which the background is exactly proportional, ``γ y* + B s*``."""

    def __init__(self, X: np.ndarray, fore: Cumulants, back: Cumulants, fit: Proportional) -> None:
        B, weights = fit.foreground.vectors, fit.foreground.weights
        scores = (X - fore.mean) @ (np.linalg.pinv(fore.covariance, hermitian=True) @ B)
        deviations = scores.std(axis=0)
        self.sources = scores / np.where(deviations > 0, deviations, 1.0)
        kurtosis = np.mean(self.sources**4, axis=0) - 3
        whole = np.einsum("ik,ij,jk->k", B, fore.covariance, B)
        excess = whole - fit.scale**2 * np.einsum("ik,ij,jk->k", B, back.covariance, B)
        # The size that gives a source its fitted fourth cumulant, where its shape can have that
        # sign; otherwise the size that fills the variance. Never more than there is.
        sizes = np.where(
            kurtosis * weights > 0,
            np.sqrt(np.abs(weights) / np.maximum(np.abs(kurtosis), 0.1)),
            np.maximum(excess, 0.0),
        )
        self.patterns = B * np.sqrt(np.minimum(sizes, whole))
        self.scale = fit.scale

    def __call__(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        drawn = np.column_stack([rng.choice(source, len(rows)) for source in self.sources.T])
        return self.scale * rows + drawn @ self.patterns.T
