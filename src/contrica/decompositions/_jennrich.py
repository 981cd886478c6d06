"""Jennrich's algorithm: simultaneous diagonalisation of two random contractions."""

from __future__ import annotations

import numpy as np

from contrica.decompositions._result import (
    Decomposition,
    canonical,
    check_few_terms,
    least_squares_weights,
)
from contrica.moments.operators import TensorOperator, as_operator

__all__ = ["jennrich"]


def jennrich(
    operator: TensorOperator | np.ndarray, rank: int, *, rng: np.random.Generator
) -> Decomposition:
    """Decompose a tensor with linearly independent vectors by two random contractions.

    ``M_k = T(S_k, ·, ·) = A diag(λ_i a_iᵀ S_k a_i) Aᵀ`` for two random matrices, so the ``a_i`` are the
    eigenvectors of ``M_1 M_2⁺``. Weights are fitted by least squares.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
        The tensor.
    rank : int
        Number of terms, at most p.
    rng : numpy.random.Generator
        Source of the contractions.

    Returns
    -------
    Decomposition

    References
    ----------
    Harshman, "Foundations of the PARAFAC procedure", UCLA Working Papers in Phonetics 16, 1970. Wang,
    Maraj and Seigal, Appendix `app:comparison`.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import RankOneSum
    >>> rng = np.random.default_rng(0)
    >>> T = RankOneSum(np.array([2.0, -1.0]), rng.standard_normal((3, 2)))
    >>> found = jennrich(T, 2, rng=rng)
    >>> bool(np.allclose(found.tensor().flatten(), T.flatten()))
    True
    """
    operator = as_operator(operator)
    p = operator.n_features
    rank = check_few_terms(rank, p)
    S = rng.standard_normal((2, p, p))
    first, second = operator.apply(S + S.transpose(0, 2, 1))
    # Both live on the span of the a_i: its leading axes, so that the quotient below exists.
    values, axes = np.linalg.eigh(second)
    basis = axes[:, np.argsort(-np.abs(values), kind="stable")[:rank]]
    quotient = np.linalg.solve(basis.T @ second @ basis, basis.T @ first @ basis).T
    # Noise can make pairs of eigenvalues complex; their real parts span the same plane.
    vectors = basis @ np.real(np.linalg.eig(quotient)[1])
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    return canonical(least_squares_weights(operator, vectors), vectors)
