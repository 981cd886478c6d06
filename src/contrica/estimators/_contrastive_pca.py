"""Contrastive PCA: eigenvectors of the difference of two covariances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf

from contrica.errors import DataError, ParameterError
from contrica.estimators._transformer import Covariances, CovarianceTransformer
from contrica.moments.leading import LeadingPairs, leading_eigenpairs
from contrica.moments.symmetric import fix_signs
from contrica.validation import check_count, generator

__all__ = ["ContrastivePCA", "contrastive_pca_path"]

# The sweep of the method's authors: 0 and 40 values from 0.1 to 1000, even in the logarithm.
SWEEP = np.concatenate([[0.0], np.logspace(-1, 3, 40)])
# Orthogonal subspaces keep this affinity, so that the graph of all subspaces stays connected.
MIN_AFFINITY = 1e-6


def contrastive_pca_path(
    foreground_covariance: np.ndarray,
    background_covariance: np.ndarray,
    n_components: int,
    alphas: Sequence[float] | np.ndarray,
) -> np.ndarray:
    """Leading eigenvectors of ``C_x − α C_y`` for many α.

    Parameters
    ----------
    foreground_covariance, background_covariance : ndarray of shape (p, p)
        C_x and C_y.
    n_components : int
        Eigenvectors to keep, those of largest eigenvalue.
    alphas : array-like of shape (n_alphas,)
        Values of α ≥ 0.

    Returns
    -------
    ndarray of shape (n_alphas, p, n_components)
        Unit columns by decreasing eigenvalue, the largest entry of each positive.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.diag([9.0, 5.0, 1.0]), np.diag([8.0, 1.0, 1.0])
    >>> contrastive_pca_path(X, Y, 1, [0, 1])[:, :, 0]
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    fore, back = _check_covariances(foreground_covariance, background_covariance)
    count = _check_n_components(n_components, len(fore))
    leading = LeadingPairs(fore, back, count)
    return np.stack([leading.at(alpha)[1] for alpha in _check_alphas(alphas)])


def _check_covariances(fore: Any, back: Any) -> tuple[np.ndarray, np.ndarray]:
    fore, back = np.asarray(fore, dtype=float), np.asarray(back, dtype=float)
    if fore.ndim != 2 or fore.shape[0] != fore.shape[1] or fore.shape != back.shape:
        raise DataError(
            "shape",
            f"the covariances have shapes {fore.shape} and {back.shape}",
            "both must be (p, p) over the same variables",
        )
    if not (np.isfinite(fore).all() and np.isfinite(back).all()):
        raise DataError(
            "not-finite",
            "a covariance contains NaN or infinity",
            remedy="Drop or fill such values first.",
        )
    return fore, back


def _check_n_components(value: object, n_features: int) -> int:
    count = check_count("n_components", value)
    if count > n_features:
        raise ParameterError(
            "too-large",
            f"`n_components={count}` is more than the {n_features} variables there are",
            remedy="Lower it.",
            parameter="n_components",
        )
    return count


def _check_alphas(values: Any) -> np.ndarray:
    try:
        alphas = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        alphas = np.array([np.nan])
    if isinstance(values, bool | str) or alphas.ndim != 1 or alphas.size == 0:
        alphas = np.array([np.nan])
    if not (np.isfinite(alphas).all() and (alphas >= 0).all()):
        raise ParameterError(
            "out-of-range",
            f"`alpha` is {values!r}",
            'must be a number of at least 0, a list of such numbers to choose from, or "auto"',
            parameter="alpha",
        )
    return alphas


def subspace_affinities(frames: np.ndarray) -> np.ndarray:
    """Product of the cosines of the principal angles of every two subspaces, ``|det VᵢᵀVⱼ|``.

    Parameters
    ----------
    frames : ndarray of shape (n, p, k)
        Orthonormal columns.

    Returns
    -------
    ndarray of shape (n, n)
    """
    n, p, k = frames.shape
    rows = frames.transpose(0, 2, 1).reshape(n * k, p)
    products = (rows @ rows.T).reshape(n, k, n, k).transpose(0, 2, 1, 3)
    return np.minimum(np.abs(np.linalg.det(products)), 1.0)


def _medoids(affinities: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Clusters subspaces into at most ``count``; the positions of their medoids, increasing."""
    from sklearn.cluster import SpectralClustering  # slow to import, and rarely needed

    if len(affinities) <= count:
        return np.arange(len(affinities))
    labels = (
        SpectralClustering(
            count, affinity="precomputed", assign_labels="cluster_qr", random_state=seed
        )
        .fit(np.maximum(affinities, MIN_AFFINITY))
        .labels_
    )
    groups = (np.flatnonzero(labels == label) for label in np.unique(labels))
    return np.sort(
        [group[affinities[np.ix_(group, group)].sum(axis=0).argmax()] for group in groups]
    )


def _varying(given: Covariances, at_least: int) -> np.ndarray | None:
    """Orthonormal axes of the directions with variance; ``None`` for all, also if too few had any."""
    fore, back = given.foreground, given.background
    total = fore if back is None else fore + back
    # quick, and sure: rounding of the factor is less than what is subtracted
    shifted = total.copy()
    shifted.flat[:: len(total) + 1] -= 4 * given.rounding * np.linalg.norm(total)
    if dpotrf(shifted, overwrite_a=1)[1] == 0:
        return None
    values, vectors = np.linalg.eigh(total)
    varies = values > given.rounding * values[-1]
    return None if varies.all() or varies.sum() < at_least else vectors[:, varies]


class ContrastivePCA(CovarianceTransformer):
    """Contrastive PCA (cPCA): leading eigenvectors of ``Cov(X) − α Cov(Y)``.

    α = 0 is PCA of the foreground; as α grows, what varies in the background counts for less, and in
    the limit the directions are those in which the background varies least, whatever the foreground.

    Parameters
    ----------
    n_components : int or None, default=2
        Eigenvectors to keep; ``None`` keeps all.
    alpha : float, array-like of float or "auto", default="auto"
        The contrast parameter α ≥ 0. Of several values one is chosen as described in Notes. "auto"
        is a choice among 0 and 40 values from 0.1 to 1000, even in the logarithm.
    n_representatives : int, default=3
        Clusters into which the subspaces of a sweep are put.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the start of the eigenvector iteration inside spectral clustering.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows by decreasing eigenvalue, the largest entry of each positive.
    contrast_ratio_ : ndarray of shape (n_components,)
        Variance along each in the foreground over that in the background; NaN without one.
    alpha_ : float
        The α of ``components_``.
    alphas_ : ndarray of shape (n_alphas,)
        Values tried, increasing.
    sweep_components_ : ndarray of shape (n_alphas, n_components, n_features)
        Components for each of them.
    representative_alphas_ : ndarray
        α of the medoid of each cluster, increasing; what the authors would show to the eye.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had string column names.

    See Also
    --------
    ContrastiveICA : needs no contrast parameter.
    GeneralizedContrastivePCA : a ratio in place of the difference, without a parameter.

    Notes
    -----
    A sweep is summarised as its authors do it (their Algorithm 2): the affinity of two subspaces is
    the product of the cosines of their principal angles; spectral clustering puts the subspaces of
    all α > 0 into ``n_representatives`` clusters; the medoid of a cluster, of largest total
    affinity within it, represents it.

    The authors leave the last choice to the eye. Here it follows from what the ends of a sweep are:
    α = 0 looks at the foreground alone, and the largest α nearly at the background alone. So
    ``alpha_`` is the representative least like either: the one whose larger affinity, to the subspace
    of α = 0 or to that of the largest α, is smallest. No label enters. It is a guess; look at
    ``representative_alphas_`` where much depends on it.

    Directions in which neither dataset varies are left out. The eigenvalue there is 0, which for large
    α exceeds all others that are left, so that nothing would come first.

    Covariances divide by n − 1. Without a background all this is PCA, with ``alpha_ = 0``.

    References
    ----------
    A. Abid, M. J. Zhang, V. K. Bagaria and J. Zou, "Exploring patterns enriched in a dataset with
    contrastive principal component analysis", Nature Communications 9:2134, 2018.

    Examples
    --------
    >>> from contrica import ContrastivePCA
    >>> from contrica.datasets import load_digits_on_photos
    >>> data = load_digits_on_photos(random_state=0)
    >>> model = ContrastivePCA(2, alpha=1.5).fit(data.foreground, background=data.background)
    >>> model.components_.shape
    (2, 64)
    """

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        alpha: Any = "auto",
        n_representatives: int = 3,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.n_representatives = n_representatives
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_representatives", self.n_representatives)
        generator(self.random_state)
        self._sweep()

    def _sweep(self) -> np.ndarray:
        automatic = isinstance(self.alpha, str) and self.alpha == "auto"
        return SWEEP.copy() if automatic else np.unique(_check_alphas(self.alpha))

    def _directions(self, given: Covariances, n_components: int) -> np.ndarray:
        axes = _varying(given, n_components)
        fore, back = given.foreground, given.background
        back = np.zeros_like(fore) if back is None else back
        if axes is not None:
            fore, back = (axes.T @ part @ axes for part in (fore, back))
        self.alphas_ = np.zeros(1) if given.background is None else self._sweep()
        frames = contrastive_pca_path(fore, back, n_components, self.alphas_)
        chosen = self._choose(fore, frames)
        self.alpha_ = float(self.alphas_[chosen])
        frames = frames if axes is None else axes @ frames
        self.sweep_components_ = np.stack([fix_signs(given.lift(frame)).T for frame in frames])
        return frames[chosen]

    def _choose(self, foreground: np.ndarray, frames: np.ndarray) -> int:
        """Position in the sweep of the representative that is least like both of its ends."""
        contrasted = np.flatnonzero(self.alphas_ > 0)
        if contrasted.size == 0:
            self.representative_alphas_ = self.alphas_
            return 0
        principal = frames[0]
        if self.alphas_[0] > 0:
            principal = leading_eigenpairs(foreground, frames.shape[2])[1]
        affinities = subspace_affinities(np.concatenate([frames, principal[None]]))
        seed = int(generator(self.random_state).integers(2**31))
        within = affinities[np.ix_(contrasted, contrasted)]
        medoids = contrasted[_medoids(within, self.n_representatives, seed)]
        self.representative_alphas_ = self.alphas_[medoids]
        # the last row is PCA, the one before it the largest α
        return int(medoids[affinities[-2:, medoids].max(axis=0).argmin()])
