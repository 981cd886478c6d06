"""Whether one scale γ carries every background pattern into the foreground: a test by simulation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.errors import collected
from contrica.metrics import match_patterns
from contrica.moments.estimates import Cumulants, Estimate
from contrica.moments.fourth import cumulants
from contrica.progress import steps
from contrica.solvers.algorithm3 import (
    BackgroundScale,
    Proportional,
    estimate_scale,
    mean_deviation,
    proportional_cica,
)
from contrica.validation import check_count, check_matrix

__all__ = ["Proportionality", "proportionality_test"]


class Proportionality(NamedTuple):
    """Result of `proportionality_test`.

    Attributes
    ----------
    p_value : float
        The larger, over both nulls, of the share of null spreads at least as large as the data's;
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

    The paper suggests to check whether the estimates of γ agree over i. How far they spread when they
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
    ranks = (check_count("n_background", n_background, minimum=2), n_foreground)
    check_count("n_simulations", n_simulations)

    def scale_of(fore: Cumulants, back: Cumulants) -> BackgroundScale:
        return estimate_scale(fore, back, *ranks, rng=rng, deflation=deflation)

    fore, back = cumulants(X, estimate), cumulants(background, estimate)
    fitted = scale_of(fore, back)
    redrawn, simulated = np.empty(n_simulations), np.empty(n_simulations)
    with collected():  # what is doubtful about a simulated fit
        fit = proportional_cica(fore, back, *ranks, rng=rng, scale=fitted.scale)
        simulate = _NullModel(X, fore, back, fit)
        for i in steps(range(n_simulations), n_simulations, "proportionality test", "simulations"):
            other = cumulants(_redrawn(background, len(background), rng), estimate)
            again = scale_of(cumulants(_redrawn(X, len(X), rng), estimate), other)
            redrawn[i] = mean_deviation(_differences(again, fitted))
            rows = simulate(_redrawn(background, len(X), rng), rng)
            simulated[i] = scale_of(cumulants(rows, estimate), other).spread
    exceeding = max(np.sum(null >= fitted.spread) for null in (redrawn, simulated))
    p_value = float((1 + exceeding) / (1 + n_simulations))
    return Proportionality(p_value, fitted.spread, redrawn, simulated, fitted)


def _redrawn(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return rows[rng.integers(len(rows), size=count)]


def _differences(again: BackgroundScale, fitted: BackgroundScale) -> np.ndarray:
    """Differences of the estimates of log γ, pattern by matched pattern."""
    few, many = sorted((again, fitted), key=lambda scale: scale.background.weights.size)
    match = match_patterns(many.background.vectors, few.background.vectors)
    return many.logarithms[match.order] - few.logarithms


class _NullModel:
    """Simulates foregrounds in which the background is exactly proportional, ``γ y* + B s*``."""

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
