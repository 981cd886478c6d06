"""FOOBI: fourth-order blind identification of overcomplete mixtures."""

from __future__ import annotations

import numpy as np

from contrica.decompositions._result import Decomposition, canonical, least_squares_weights
from contrica.moments.eigen import top_eigenpairs
from contrica.moments.operators import TensorOperator, as_operator
from contrica.moments.symmetric import smat
from contrica.validation import check_rank

__all__ = ["foobi"]


def foobi(
    operator: TensorOperator | np.ndarray, rank: int, *, rng: np.random.Generator
) -> Decomposition:
    """Decompose a tensor of more terms than variables by detecting rank-one matrices linearly.

    The eigenmatrices ``V_s`` of ``Mat(T)`` span the same space as the ``a_i a_iᵀ``. The 2 × 2 minors
    are quadratic, so the symmetric W with ``Σ_st W_st Φ(V_s, V_t) = 0``, Φ the bilinear form of all
    minors, are those that are diagonal in the coordinates of the ``a_i a_iᵀ``: ``W = Q Λ Qᵀ`` with
    ``a_i a_iᵀ ∝ Σ_s Q_si V_s``. Two random ones give Q as the eigenvectors of their quotient, and
    each ``a_i`` is the leading eigenvector of its matrix. Weights are fitted by least squares.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
        The tensor.
    rank : int
        Number of terms; for generic vectors the minors tell well over 1.5 p of them apart.
    rng : numpy.random.Generator
        Source of the random combinations.

    Returns
    -------
    Decomposition

    References
    ----------
    De Lathauwer, Castaing and Cardoso, "Fourth-order cumulant-based blind identification of
    underdetermined mixtures", IEEE Transactions on Signal Processing 55, 2007.
    """
    operator = as_operator(operator)
    rank = check_rank(rank, operator.n_features)
    matrices = top_eigenpairs(operator, rank).matrices()
    kernel = _diagonal_in_the_squares(matrices)
    first, second = np.tensordot(rng.standard_normal((2, rank)), kernel, 1)
    Q = np.real(np.linalg.eig(np.linalg.solve(second.T, first.T).T)[1])
    squares = np.tensordot(Q.T, matrices, 1)
    values, axes = np.linalg.eigh(squares)
    each = np.arange(rank)
    vectors = axes[each, :, np.abs(values).argmax(axis=1)].T
    return canonical(least_squares_weights(operator, vectors), vectors)


def _diagonal_in_the_squares(matrices: np.ndarray) -> np.ndarray:
    """The symmetric W closest to ``Σ_st W_st Φ(V_s, V_t) = 0``, as many as there are V: ``(r, r, r)``.

    Φ(X, Y) lists ``X_ik Y_jl + Y_ik X_jl − X_il Y_jk − Y_il X_jk`` over rows i < j and columns k < l.
    """
    rank, p = matrices.shape[:2]
    i, j = np.triu_indices(p, 1)
    s, t = np.triu_indices(rank)
    a, b, c, d = (matrices[:, x][:, :, y] for x, y in ((i, i), (j, j), (i, j), (j, i)))
    minors = a[s] * b[t] + a[t] * b[s] - c[s] * d[t] - c[t] * d[s]
    # A pair s < t stands for both orders, as svec has it.
    scale = np.where(s == t, 1.0, np.sqrt(2.0))
    system = minors.reshape(s.size, -1).T * scale
    # The triangular factor has the same null space and is far smaller.
    null = np.linalg.svd(np.linalg.qr(system, mode="r"))[2][-rank:]
    return smat(null)
