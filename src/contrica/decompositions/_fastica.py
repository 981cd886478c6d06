"""FastICA, the one decomposition here that needs data and not only a tensor."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning as NotConverged

from contrica.decompositions._result import Decomposition, canonical, check_few_terms
from contrica.errors import ConvergenceWarning, warn
from contrica.validation import check_matrix

__all__ = ["fastica"]


def fastica(
    X: np.ndarray,
    rank: int,
    *,
    rng: np.random.Generator,
    max_iter: int = 200,
    tol: float = 1e-4,
) -> Decomposition:
    """Mixing vectors of data by scikit-learn's FastICA, with the fourth cumulants of the sources.

    FastICA maximises the non-Gaussianity of projections of the whitened rows and never forms a
    tensor, so it takes the rows where every other method takes κ₄. With mixing columns ``m_i`` and
    sources of unit variance and excess kurtosis ``c_i``, ``κ₄ ≈ Σ c_i m_i^{⊗4}``: the weights are
    ``c_i ‖m_i‖⁴``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, p)
        Rows, not a tensor.
    rank : int
        Number of sources, at most p.
    rng : numpy.random.Generator
        Source of the start.
    max_iter, tol
        As of `sklearn.decomposition.FastICA`.

    Returns
    -------
    Decomposition

    References
    ----------
    Hyvärinen, "Fast and robust fixed-point algorithms for independent component analysis", 1999.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.laplace(size=(5000, 2))
    >>> found = fastica(sources @ np.array([[1.0, 0.0], [0.6, 0.8]]), 2, rng=rng)
    >>> bool(np.all(np.max(np.abs(found.vectors.T @ [[1, 0.6], [0, 0.8]]), axis=0) > 0.99))
    True
    """
    X = check_matrix(X, "X")
    rank = check_few_terms(rank, X.shape[1])
    model = FastICA(
        rank,
        whiten="unit-variance",
        max_iter=max_iter,
        tol=tol,
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        sources = model.fit_transform(X)
    if model.n_iter_ >= max_iter:
        warn(
            ConvergenceWarning(
                "not-converged",
                f"FastICA: `max_iter={max_iter}` steps were not enough to reach `tol={tol:.2g}`",
                remedy="Raise `max_iter`.",
                parameter="max_iter",
            )
        )
    kurtosis = np.mean(sources**4, axis=0) - 3 * np.mean(sources**2, axis=0) ** 2
    return canonical(kurtosis, model.mixing_, model.n_iter_)
