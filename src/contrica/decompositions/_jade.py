"""JADE: joint approximate diagonalisation of eigenmatrices."""

from __future__ import annotations

import numpy as np

from contrica.decompositions._result import Decomposition, canonical, check_few_terms
from contrica.errors import ConvergenceWarning, ParameterError, warn
from contrica.moments.eigen import top_eigenpairs
from contrica.moments.operators import Congruence, TensorOperator, as_operator
from contrica.moments.projection import whitening
from contrica.validation import check_count

__all__ = ["jade"]


def jade(
    operator: TensorOperator | np.ndarray,
    rank: int,
    *,
    covariance: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-12,
) -> Decomposition:
    """Decompose a tensor with orthonormal vectors by diagonalising its eigenmatrices together.

    For orthonormal vectors the eigenmatrices of ``Mat(T)`` are all diagonal in the basis of the
    ``b_i``, also where weights tie. Plane rotations find the orthogonal basis in which the leading
    ``rank`` of them, each times its eigenvalue, are as diagonal as can be; the ``rank`` axes of largest
    ``|T(b, b, b, b)|`` are kept. Deterministic.

    A mixture ``x = A z`` of as many sources as wanted becomes orthonormal by whitening. Given the
    covariance, its leading ``rank`` eigenpairs ``E D Eᵀ`` do that: the tensor is taken in the coordinates
    ``D^{-1/2} Eᵀ x``, and a vector u found there stands for ``E D^{1/2} u``.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
        The tensor.
    rank : int
        Number of terms, at most p.
    covariance : ndarray of shape (p, p), optional
        Of the data whose cumulant the tensor is; by default the vectors are taken as orthonormal.
    max_iter : int
        Most sweeps over all pairs of axes.
    tol : float
        Largest rotation, in radians, of a sweep that ends the search.

    Returns
    -------
    Decomposition
        ``n_iter`` counts sweeps.

    References
    ----------
    Cardoso and Souloumiac, "Blind beamforming for non-Gaussian signals", IEE Proceedings F 140, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import RankOneSum
    >>> jade(RankOneSum(np.array([1.0, 3.0]), np.eye(3)[:, :2]), 2).weights.round(6)
    array([3., 1.])
    """
    operator = as_operator(operator)
    rank = check_few_terms(rank, operator.n_features)
    check_count("max_iter", max_iter)
    back = None
    if covariance is not None:
        whiten, back = whitening(covariance, rank)
        if whiten.shape[1] < rank:
            raise ParameterError(
                "rank-above-covariance",
                f"`rank={rank}` terms were asked for",
                f"the covariance has only {whiten.shape[1]} directions with variance, and whitening "
                "leaves no room for more",
                "Lower `rank`.",
                "rank",
            )
        operator = Congruence(operator, whiten)
    pairs = top_eigenpairs(operator, rank)
    axes, n_iter, last = _diagonalise(pairs.matrices() * pairs.values[:, None, None], max_iter, tol)
    if last > tol:
        warn(
            ConvergenceWarning(
                "not-converged",
                f"JADE: the last sweep turned an axis by {last:.2g} where `tol={tol:.2g}` was asked for, "
                f"after `max_iter={max_iter}` sweeps",
                remedy="Raise `max_iter`.",
                parameter="max_iter",
            )
        )
    weights = operator.coefficients(axes)
    keep = np.argsort(-np.abs(weights), kind="stable")[:rank]
    vectors = axes[:, keep] if back is None else back @ axes[:, keep]
    return canonical(weights[keep], vectors, n_iter)


def _diagonalise(matrices: np.ndarray, max_iter: int, tol: float) -> tuple[np.ndarray, int, float]:
    """Orthogonal axes in which symmetric matrices ``(k, p, p)`` are jointly closest to diagonal.

    Each pair (i, j) is turned by the angle that minimises the sum of the squared entries (i, j),
    in closed form: with ``h = (M_ii − M_jj, 2 M_ij)`` over all matrices and ``G = Σ h hᵀ``, twice the
    angle is half the direction of ``(G_11 − G_22, 2 G_12)``.
    """
    M = matrices.copy()
    p = M.shape[1]
    axes = np.eye(p)
    largest = 0.0
    # Below this, entries are rounding: planes in which all matrices vanish need no turning.
    nothing = (np.finfo(float).eps * p) ** 2 * np.sum(M**2)
    n_iter = 0
    while n_iter < max_iter and (n_iter == 0 or largest > tol):
        largest, n_iter = 0.0, n_iter + 1
        for i in range(p - 1):
            for j in range(i + 1, p):
                gap, cross = M[:, i, i] - M[:, j, j], 2 * M[:, i, j]
                on, off = gap @ gap - cross @ cross, 2 * gap @ cross
                angle = 0.5 * np.arctan2(off, on + np.hypot(on, off))
                if abs(angle) <= tol or gap @ gap + cross @ cross <= nothing:
                    continue
                largest = max(largest, abs(angle))
                c, s = np.cos(angle), np.sin(angle)
                rotation = np.array([[c, -s], [s, c]])
                M[:, :, [i, j]] = M[:, :, [i, j]] @ rotation
                M[:, [i, j], :] = rotation.T @ M[:, [i, j], :]
                axes[:, [i, j]] = axes[:, [i, j]] @ rotation
    return axes, n_iter, largest
