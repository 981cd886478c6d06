"""Probabilistic contrastive PCA: a Gaussian model fitted to a ratio of likelihoods."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from contrica.errors import ParameterError, PatternWarning, warn
from contrica.estimators._contrastive_pca import (
    _check_covariances,
    _check_n_components,
)
from contrica.estimators._transformer import Covariances, CovarianceTransformer
from contrica.moments.estimates import Cumulants
from contrica.moments.leading import LeadingPairs, leading_eigenpairs
from contrica.moments.symmetric import fix_signs
from contrica.validation import check_choice

__all__ = ["ProbabilisticContrastivePCA", "ProbabilisticPath", "probabilistic_pca_path"]

SCALINGS = ("posterior", "loadings", "standard", "unit")


class ProbabilisticPath(NamedTuple):
    """Models of probabilistic contrastive PCA along values of gamma.

    Attributes
    ----------
    directions : ndarray of shape (n_gammas, p, n_components)
        Unit columns.
    lengths : ndarray of shape (n_gammas, n_components)
        Norms of the loadings: ``W = directions · diag(lengths)``.
    noise_variance : ndarray of shape (n_gammas,)
        σ²; where it is negative, no Gaussian model attains a maximum.
    """

    directions: np.ndarray
    lengths: np.ndarray
    noise_variance: np.ndarray

    @property
    def loadings(self) -> np.ndarray:
        """W, of shape (n_gammas, p, n_components)."""
        return self.directions * self.lengths[:, None, :]


def probabilistic_pca_path(
    foreground_covariance: np.ndarray,
    background_covariance: np.ndarray,
    n_components: int,
    gammas: Sequence[float] | np.ndarray,
    *,
    n_features: int | None = None,
) -> ProbabilisticPath:
    """Probabilistic contrastive PCA for many values of its parameter.

    With ``gamma = γ m / n`` as a fraction of its upper limit, ``n S_x − γ m S_y = n (S_x − gamma S_y)``
    and ``n − γ m = n (1 − gamma)``: the numbers of rows drop out.

    Parameters
    ----------
    foreground_covariance, background_covariance : ndarray of shape (p, p)
        S_x and S_y, division by n.
    n_components : int
        Loadings to keep.
    gammas : array-like of shape (n_gammas,)
        Fractions of n/m, each at least 0 and below 1.
    n_features : int, optional
        p of the model, where covariances are in coordinates of fewer dimensions, outside of which nothing
        varies.

    Returns
    -------
    ProbabilisticPath

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.diag([9.0, 5.0, 1.0]), np.diag([8.0, 1.0, 1.0])
    >>> probabilistic_pca_path(X, Y, 1, [0, 0.6]).loadings[:, :, 0].round(3)
    array([[2.449, 0.   , 0.   ],
           [0.   , 2.291, 0.   ]])
    """
    fore, back = _check_covariances(foreground_covariance, background_covariance)
    p, count = n_features or len(fore), _check_n_components(n_components, len(fore))
    fractions = [_check_fraction(gamma) for gamma in np.atleast_1d(np.asarray(gammas)).tolist()]
    directions = np.empty((len(fractions), len(fore), count))
    lengths = np.empty((len(fractions), count))
    noise = np.zeros(len(fractions))
    for i, gamma in enumerate(fractions):
        difference = (fore - gamma * back) / (1 - gamma)
        values, directions[i] = leading_eigenpairs(difference, count)
        if count < p:  # with nothing discarded there is no noise to estimate
            noise[i] = (np.trace(difference) - values.sum()) / (p - count)
        # what is left by rounding of covariances of lower rank is nothing
        floor = p * np.finfo(float).eps * np.abs(values).max()
        noise[i] = 0.0 if abs(noise[i]) <= floor else noise[i]
        above = values - noise[i]
        lengths[i] = np.sqrt(np.where(above > floor, above, 0.0))
    return ProbabilisticPath(directions, lengths, noise)


def _check_fraction(gamma: Any) -> float:
    number = isinstance(gamma, numbers.Real) and not isinstance(gamma, bool)
    if not (number and 0 <= float(gamma) < 1):
        raise ParameterError(
            "out-of-range",
            f"`gamma` is {gamma!r}",
            'must be "auto" or a fraction of n/m, the number of foreground rows over that of background '
            "rows, at least 0 and below 1",
            "At 1 and beyond the ratio of likelihoods has no maximum.",
            "gamma",
        )
    return float(gamma)


def _is_auto(gamma: Any) -> bool:
    return isinstance(gamma, str) and gamma == "auto"


def _largest_with_a_model(fore: np.ndarray, back: np.ndarray, n_components: int, p: int) -> float:
    """The largest of 0, 0.01, …, 0.9 at which the noise variance is not negative.

    σ²(γ)(1 − γ) is the mean of the smallest eigenvalues of a matrix linear in γ, so concave, and
    not negative at 0: once below zero it stays there, and halving finds where.
    """
    grid = np.linspace(0, 0.9, 91)
    floor = -1e-12 * np.trace(fore) / p
    # with nothing discarded there is no noise, and what is kept must have variance itself
    leading = LeadingPairs(fore, back, min(n_components, p - 1))
    low, high = 0, len(grid)
    while high - low > 1:
        middle = (low + high) // 2
        gamma = grid[middle]
        total = np.trace(fore) - gamma * np.trace(back)
        rest = (total - leading.at(gamma)[0].sum()) / max(p - n_components, 1)
        low, high = (middle, high) if rest >= floor else (low, middle)
    return float(grid[low])


class ProbabilisticContrastivePCA(CovarianceTransformer):
    """Probabilistic contrastive PCA (PCPCA), in closed form.

    A Gaussian model ``N(0, W Wᵀ + σ² I)`` with d columns in W is to fit the foreground and not the
    background: ``p(X) / p(Y)^γ`` is largest at ``W = U_d (Λ_d / (n − γm) − σ² I)^½``, where
    ``n S_x − γ m S_y = U Λ Uᵀ`` and σ² is the mean of the discarded eigenvalues over ``n − γm``.

    Parameters
    ----------
    n_components : int or None, default=2
        d, the columns of W; ``None`` keeps all variables.
    gamma : float or "auto", default="auto"
        γ as a fraction of its upper limit n/m, at least 0 and below 1. So stated it does not depend
        on the numbers of rows, and the directions are those of `ContrastivePCA` with ``alpha=gamma``
        (for covariances that divide by n). 0 is probabilistic PCA. "auto" takes the largest of 0,
        0.01, …, 0.9 at which σ² is not negative: the most contrast at which there is a model.
    scaling : {"posterior", "loadings", "standard", "unit"}, default="posterior"
        What `transform` multiplies by; see Notes. The directions are the same.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Directions of the columns of W: unit rows, the largest entry of each positive.
    contrast_ratio_ : ndarray of shape (n_components,)
        Variance along each in the foreground over that in the background; NaN without one.
    loadings_ : ndarray of shape (n_features, n_components)
        W.
    noise_variance_ : float
        σ². If gamma is so large that it is negative, no Gaussian model attains the maximum; a
        warning says so.
    gamma_ : float
        γ itself, ``gamma_fraction_ · n/m``.
    gamma_fraction_ : float
        The fraction that ``gamma`` stands for, given or chosen.
    score_scales_ : ndarray of shape (n_components,)
        What `transform` multiplies the projection on each component by.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had string column names.

    Notes
    -----
    Scores of a centred row x, up to a factor in each coordinate all ``U_dᵀ x``:

    - "posterior": ``(WᵀW + σ² I)⁻¹ Wᵀ x``, the mean of the latent variable given x, as in the method's
      own software;
    - "loadings": ``Wᵀ x``, which weighs a coordinate by the length of its loading; so the unscaled
      figures of the contrastive ICA paper are obtained (0.220 on the mouse data);
    - "standard": each coordinate over its standard deviation in the foreground, as the method's
      authors do before they compute silhouette scores (0.450 there);
    - "unit": ``U_dᵀ x``, projection onto ``components_``.

    Without a background all this is probabilistic PCA, with ``gamma_ = 0``.

    References
    ----------
    D. Li, A. Jones and B. Engelhardt, "Probabilistic contrastive principal component analysis",
    arXiv:2012.07977, 2020.

    Examples
    --------
    >>> from contrica import ProbabilisticContrastivePCA
    >>> from contrica.datasets import load_digits_on_photos
    >>> data = load_digits_on_photos(random_state=0)
    >>> model = ProbabilisticContrastivePCA(2, gamma=0.5)
    >>> model.fit_transform(data.foreground, background=data.background).shape
    (4000, 2)
    """

    _alone: ClassVar[str | None] = "probabilistic PCA"
    _ddof: ClassVar[int] = 0  # maximum likelihood

    def __init__(
        self, n_components: int | None = 2, *, gamma: Any = "auto", scaling: str = "posterior"
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.scaling = scaling

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not _is_auto(self.gamma):
            _check_fraction(self.gamma)
        check_choice("scaling", self.scaling, SCALINGS)

    def _finish(self, fore: Cumulants, back: Cumulants | None) -> None:
        per_row = 0.0 if back is None else fore.n_samples / back.n_samples
        self.gamma_ = self.gamma_fraction_ * per_row

    def _directions(self, given: Covariances, n_components: int) -> np.ndarray:
        foreground, background, p = given.foreground, given.background, given.n_features
        back = np.zeros_like(foreground) if background is None else background
        if background is None:
            gamma = 0.0
        elif _is_auto(self.gamma):
            gamma = _largest_with_a_model(foreground, back, n_components, p)
        else:
            gamma = float(self.gamma)
        self.gamma_fraction_ = gamma
        path = probabilistic_pca_path(foreground, back, n_components, [gamma], n_features=p)
        directions, lengths = path.directions[0], path.lengths[0]
        self.loadings_ = fix_signs(given.lift(directions)) * lengths
        self.noise_variance_ = float(path.noise_variance[0])
        variances = np.einsum("pk,pq,qk->k", directions, foreground, directions)
        floor = given.rounding * np.trace(foreground)
        deviations = np.sqrt(np.where(variances > floor, variances, 0.0))
        self.score_scales_ = self._score_scales(lengths, deviations)
        none = int(np.sum(lengths == 0))
        if none:
            warn(
                PatternWarning(
                    "no-loading",
                    f"{none} of {lengths.size} components have no loading at `gamma={gamma:g}`: "
                    "the background outweighs the foreground along them, and their scores are zero",
                    remedy="Lower `gamma` or `n_components`.",
                    parameter="gamma",
                )
            )
        floor = 1e-12 * np.trace(foreground) / p
        if self.noise_variance_ < -floor:
            warn(
                PatternWarning(
                    "no-model",
                    f"noise_variance_ = {self.noise_variance_:.3g} is negative: at `gamma={gamma:g}` no "
                    "Gaussian model attains the maximum",
                    remedy="The directions are still those of contrastive PCA. Lower `gamma` for a "
                    "model.",
                    parameter="gamma",
                )
            )
        return directions

    def _score_scales(self, lengths: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """What each coordinate of ``U_dᵀ x`` is multiplied by."""
        if self.scaling == "unit":
            return np.ones_like(lengths)
        if self.scaling == "loadings":
            return lengths
        # WᵀW + σ² I is diagonal
        above, below = (
            (np.ones_like(deviations), deviations)
            if self.scaling == "standard"
            else (lengths, lengths**2 + self.noise_variance_)
        )
        return np.divide(above, below, out=np.zeros_like(below), where=below != 0)

    @property
    def _axes(self) -> np.ndarray:
        return self.components_ * self.score_scales_[:, None]
