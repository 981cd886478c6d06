"""Contrast subspace first, then ICA inside it: a solver for data in which the model holds loosely.

On real data a fourth cumulant is often dominated by heavy-tailed background directions. The directions
in which the foreground varies most relative to the background need variances only: the leading
generalised eigenvectors of ``(Σ_x, Σ_y + ρ I)``. Inside the subspace they span, of few
dimensions, independent sources are sought with a contrast that outliers do not dominate (log cosh).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from contrica.contrast import contrast_ratio
from contrica.cumulants import Cumulants
from contrica.decompositions import Decomposition, canonical, jade
from contrica.operators import Congruence
from contrica.validation import PatternWarning, check_count, check_n_rows, warn_user

__all__ = ["SubspaceFit", "choose_dimension", "contrast_axes", "subspace_ica"]

N_PERMUTATIONS = 40
N_RANDOM_STARTS = 4
# E log cosh ν of a standard normal ν
GAUSSIAN_LOG_COSH = 0.37456720749143803


class SubspaceFit(NamedTuple):
    """Sources found inside a contrast subspace.

    Attributes
    ----------
    foreground : Decomposition
        Patterns ``Σ_x f / ‖Σ_x f‖`` of the filters f, and their weights in κ₄(x).
    ratio : ndarray of shape (d,)
        What each source, ``fᵀx``, does in the foreground over what it does in the background: its mean
        square about the background's mean over the background's variance, k(f). A source that is
        present in all of the foreground and absent from the background shifts the mean, which a ratio
        of variances would miss. Along the patterns a ratio would count all else that varies there,
        which for patterns far from orthogonal is most of it.
    n_iter : int
    """

    foreground: Decomposition
    ratio: np.ndarray
    n_iter: int


def _ridge(covariance: np.ndarray, n_samples: int) -> float:
    """``tr(Σ) / n``: the mean variance times p/n, the size of the sampling error of Σ."""
    return float(np.trace(covariance) / n_samples)


def contrast_axes(
    fore: np.ndarray, back: np.ndarray, n_background_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Directions by foreground variance over background variance, closed form.

    Solves ``Σ_x w = k (Σ_y + ρ I) w`` with ``ρ = tr(Σ_y) / m``, so that directions in which the
    background happens not to vary in m rows are not taken for contrast.

    Parameters
    ----------
    fore, back : ndarray of shape (p, p)
        Covariances.
    n_background_samples : int
        m.

    Returns
    -------
    ratios : ndarray of shape (p,)
        k, decreasing.
    axes : ndarray of shape (p, p)
        The w, as columns.

    Examples
    --------
    >>> import numpy as np
    >>> contrast_axes(np.diag([1.0, 8.0]), np.eye(2), 10**9)[0].round(6)
    array([8., 1.])
    """
    # a background that does not vary, to rounding, leaves the order to the foreground
    rounding = len(fore) * np.finfo(float).eps * np.trace(fore)
    floor = max(_ridge(back, n_background_samples), rounding) * np.eye(len(back))
    ratios, axes = eigh(fore, back + floor)
    return ratios[::-1], axes[:, ::-1]


def choose_dimension(
    X: np.ndarray,
    background: np.ndarray,
    *,
    rng: np.random.Generator,
    n_permutations: int = N_PERMUTATIONS,
) -> int:
    """How many contrast directions are larger than rows dealt out at random would give.

    Rows of both datasets, each about its mean, are dealt anew into two sets of the same sizes; the
    largest ratio of each deal is what no contrast gives. Directions that exceed the mean of these by
    four of their standard deviations count, and those that do not exceed it by two do not. Where there
    are directions in between, the count stops at the widest gap, in ratio, between two that follow one
    another, so that it does not hang on the deals. Rows that depend on one another, such as cells of
    one donor, make the count too large.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    background : ndarray of shape (m, p)
    rng : numpy.random.Generator
        Deals the rows.
    n_permutations : int

    Returns
    -------
    int
    """
    check_count("n_permutations", n_permutations, least=2)
    n, m = len(X), len(background)
    check_n_rows(min(n, m), 2, "a contrast subspace")
    rows = np.vstack([X - X.mean(axis=0), background - background.mean(axis=0)])
    seen, unseen = rows[:n].T @ rows[:n], rows[n:].T @ rows[n:]
    whole = seen + unseen
    largest = []
    for _ in range(n_permutations):
        dealt = rows[rng.permutation(n + m)[:n]]
        part = dealt.T @ dealt
        largest.append(contrast_axes(part / n, (whole - part) / m, m)[0][0])
    ratios = contrast_axes(seen / n, unseen / m, m)[0]
    chance, spread = np.mean(largest), np.std(largest, ddof=1)
    surely, perhaps = (int(np.sum(ratios > chance + z * spread)) for z in (4.0, 2.0))
    if surely == perhaps:
        return surely
    # ratio k_i / k_(i+1) for each count i in question; before the first and after the last stands chance
    around = np.concatenate([[chance + 4 * spread], ratios, [chance]])
    counts = np.arange(surely, perhaps + 1)
    return int(counts[np.argmax(around[counts] / around[counts + 1])])


def subspace_ica(
    fore: Cumulants,
    back: Cumulants,
    X: np.ndarray,
    n_dimensions: int,
    *,
    rng: np.random.Generator | None = None,
    warn: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-5,
) -> SubspaceFit:
    """Independent sources inside the subspace of largest contrast.

    The leading ``d`` axes of `contrast_axes` are whitened by the foreground's covariance. FastICA with
    the log-cosh contrast there starts from `jade` of κ₄(x) and, where a generator is given, from the
    axes themselves and four random rotations as well: it has local optima. The answer is the one whose
    sources are farthest from Gaussian, ``Σ (E log cosh s − E log cosh ν)²`` with ν standard normal. A
    source found by the filter f appears in the variables as ``Σ_x f``, its pattern.

    Parameters
    ----------
    fore, back : Cumulants
    X : ndarray of shape (n, p)
        The foreground's rows, in the same coordinates.
    n_dimensions : int
        d, at most p.
    rng : numpy.random.Generator, optional
        Source of random starts; without one there is only the first start.
    warn : bool
        Whether to warn where FastICA has not converged, or the foreground varies in fewer directions.
    max_iter, tol
        Of FastICA.

    Returns
    -------
    SubspaceFit
        d patterns, by decreasing weight.

    References
    ----------
    Hyvärinen, "Fast and robust fixed-point algorithms for independent component analysis", 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.cumulants import cumulants
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.laplace(size=(2000, 4))
    >>> X = rng.laplace(size=(2000, 4)) + 3 * rng.choice([-1, 1], (2000, 1)) * [1.0, 0, 0, 0]
    >>> found = subspace_ica(cumulants(X), cumulants(Y), X, 1)
    >>> bool(abs(found.foreground.vectors[0, 0]) > 0.99)
    True
    """
    d = check_count("n_dimensions", n_dimensions)
    if d > fore.n_features:
        raise ValueError(
            f"n_dimensions={d} is more than the {fore.n_features} dimensions there are. Lower it."
        )
    _, axes = contrast_axes(fore.covariance, back.covariance, back.n_samples)
    inside = np.linalg.qr(axes[:, :d])[0]
    values, rotation = np.linalg.eigh(inside.T @ fore.covariance @ inside)
    varies = values > fore.n_features * np.finfo(float).eps * np.trace(fore.covariance)
    if not varies.any():
        raise ValueError("the foreground does not vary. There is nothing to separate.")
    if not varies.all():
        d = int(varies.sum())
        if warn:
            warn_user(
                f"the foreground varies in {d} directions of the contrast subspace only, so that many "
                "patterns are sought. Lower n_foreground.",
                PatternWarning,
            )
    whiten = inside @ (rotation[:, varies] / np.sqrt(values[varies]))
    starts = [jade(Congruence(fore.fourth, whiten), d, tol=1e-3).vectors]  # only a start
    if rng is not None and d > 1:
        loose = [np.linalg.pinv(whiten) @ axes[:, :d]]
        loose += [rng.standard_normal((d, d)) for _ in range(N_RANDOM_STARTS)]
        starts += [np.linalg.qr(matrix)[0] for matrix in loose]
    whitened = (X - fore.mean) @ whiten
    tried = [_log_cosh(whitened, start, max_iter, tol) for start in starts]
    filters, n_iter = max(tried, key=lambda found: _negentropy(whitened @ found[0]))
    if warn and n_iter >= max_iter:
        warn_user(
            f"FastICA in the contrast subspace did not reach tol={tol:.2g} in {max_iter} steps. Set "
            "n_foreground, the dimension of the subspace, lower.",
            ConvergenceWarning,
        )
    filters = whiten @ filters
    patterns = fore.covariance @ filters
    # a source of unit variance with fourth cumulant c adds c · (Σf)^{⊗4}
    found = canonical(fore.fourth.coefficients(filters), patterns, n_iter)
    again = np.linalg.pinv(fore.covariance, hermitian=True) @ found.vectors  # in its order
    again = again / np.linalg.norm(again, axis=0)
    shift = fore.mean - back.mean
    energy = replace(fore, covariance=fore.covariance + np.outer(shift, shift))
    return SubspaceFit(found, contrast_ratio(again, energy, back), n_iter)


def _log_cosh(
    whitened: np.ndarray, start: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, int]:
    """Orthonormal filters, as columns, that FastICA reaches from a start."""
    model = FastICA(whiten=False, fun="logcosh", w_init=start.T.copy(), max_iter=max_iter, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(whitened)
    return model.components_.T, int(model.n_iter_)


def _negentropy(sources: np.ndarray) -> float:
    """How far sources of unit variance are from Gaussian, by their mean log cosh."""
    # log cosh without overflow
    sizes = np.abs(sources)
    contrast = sizes + np.log1p(np.exp(-2 * sizes)) - np.log(2)
    return float(np.sum((contrast.mean(axis=0) - GAUSSIAN_LOG_COSH) ** 2))
