"""The one result type of every decomposition, in canonical form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.errors import ParameterError
from contrica.moments.operators import RankOneSum, TensorOperator
from contrica.moments.symmetric import fix_signs
from contrica.validation import check_rank

__all__ = ["Decomposition", "canonical", "check_few_terms", "least_squares_weights"]


class Decomposition(NamedTuple):
    """``T ≈ Σ_i weights[i] · vectors[:, i]^{⊗4}``.

    Attributes
    ----------
    weights : ndarray of shape (rank,)
        By decreasing magnitude.
    vectors : ndarray of shape (n_features, rank)
        Unit columns, the entry of largest magnitude positive.
    n_iter : int
        Iterations spent; 0 for direct methods.
    """

    weights: np.ndarray
    vectors: np.ndarray
    n_iter: int = 0

    def tensor(self) -> RankOneSum:
        """The decomposition as a tensor operator."""
        return RankOneSum(self.weights, self.vectors)


def canonical(weights: np.ndarray, vectors: np.ndarray, n_iter: int = 0) -> Decomposition:
    """Unit vectors, largest entry positive, terms by decreasing magnitude of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> canonical(np.array([1.0, -2.0]), np.array([[1.0, 0.0], [0.0, -1.0]])).vectors
    array([[0., 1.],
           [1., 0.]])
    """
    norms = np.linalg.norm(vectors, axis=0)
    weights = weights * norms**4
    order = np.argsort(-np.abs(weights), kind="stable")
    return Decomposition(weights[order], fix_signs(vectors[:, order] / norms[order]), n_iter)


def least_squares_weights(operator: TensorOperator, vectors: np.ndarray) -> np.ndarray:
    """The weights that minimise ``‖T − Σ_i w_i u_i^{⊗4}‖``: ``(u_i · u_j)⁴ w = T(u, u, u, u)``."""
    gram = (vectors.T @ vectors) ** 4
    return np.linalg.lstsq(gram, operator.coefficients(vectors), rcond=None)[0]


def check_few_terms(rank: int, n_features: int) -> int:
    """A rank for a method that finds no more terms than there are variables."""
    rank = check_rank(rank, n_features)
    if rank > n_features:
        raise ParameterError(
            "rank-too-large",
            f"`rank={rank}` is too large: this method finds at most as many terms as there are "
            f"variables, {n_features}",
            remedy="Use spm, foobi or htd for more.",
            parameter="rank",
        )
    return rank
