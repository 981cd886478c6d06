"""Generalized contrastive PCA: the relative difference of two variances."""

from __future__ import annotations

import numpy as np

from contrica.errors import PatternWarning, warn
from contrica.estimators._transformer import Covariances, CovarianceTransformer
from contrica.moments.leading import leading_eigenpairs

__all__ = ["GeneralizedContrastivePCA"]


class GeneralizedContrastivePCA(CovarianceTransformer):
    """Generalized contrastive PCA (gcPCA), its symmetric version without a parameter.

    The directions w are stationary points of ``wᵀ(C_x − C_y)w / wᵀ(C_x + C_y)w``, a number from −1
    (variance in the background only) to 1 (in the foreground only). With ``M = (C_x + C_y)^½`` they
    are ``M⁻¹v`` for the eigenvectors v of ``M⁻¹(C_x − C_y)M⁻¹``. This is the fourth version of its
    authors.

    Parameters
    ----------
    n_components : int or None, default=2
        Directions to keep, those most enriched in the foreground; ``None`` keeps all there are.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows by decreasing ``contrast_``, the largest entry of each positive. They are not
        orthogonal to each other, but uncorrelated in both datasets together.
    contrast_ : ndarray of shape (n_components,)
        The relative difference of variances, in [−1, 1]; NaN without a background.
    contrast_ratio_ : ndarray of shape (n_components,)
        Variance along each in the foreground over that in the background; NaN without one.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had string column names.

    Notes
    -----
    Directions in which neither dataset varies are left out, so covariances may be singular. Where the
    background does not vary at all in more than ``n_components`` directions, as with fewer rows than
    variables, all of these have contrast 1 and which are returned is arbitrary: reduce the variables
    first. Covariances divide by n − 1. Without a background this is PCA.

    References
    ----------
    E. F. de Oliveira, P. Garg, J. Hjerling-Leffler, R. Batista-Brito and L. Sjulson, "Identifying
    patterns differing between high-dimensional datasets with generalized contrastive PCA", 2024.

    Examples
    --------
    >>> from contrica import GeneralizedContrastivePCA
    >>> from contrica.datasets import load_digits_on_photos
    >>> data = load_digits_on_photos(random_state=0)
    >>> model = GeneralizedContrastivePCA(2).fit(data.foreground, background=data.background)
    >>> bool(model.contrast_[0] > model.contrast_[1] > 0)
    True
    """

    def __init__(self, n_components: int | None = 2) -> None:
        self.n_components = n_components

    def _directions(self, given: Covariances, n_components: int) -> np.ndarray:
        foreground, background = given.foreground, given.background
        if background is None:
            self.contrast_ = np.full(n_components, np.nan)
            return leading_eigenpairs(foreground, n_components)[1]
        total = foreground + background
        variances, axes = np.linalg.eigh(total)
        varying = variances > given.rounding * variances[-1]
        if varying.sum() < n_components:
            warn(
                PatternWarning(
                    "fewer-patterns",
                    f"{n_components} components were asked for",
                    f"both datasets together vary in {varying.sum()} directions: that many are returned",
                    "Lower `n_components`.",
                    "n_components",
                )
            )
        whitening = axes[:, varying] / np.sqrt(variances[varying])
        # rounding must not leave the range of a relative difference
        values, vectors = leading_eigenpairs(
            whitening.T @ (foreground - background) @ whitening,
            min(n_components, int(varying.sum())),
        )
        self.contrast_ = np.clip(values, -1.0, 1.0)
        return whitening @ vectors
