"""Orthogonal symmetric decomposition by one random contraction."""

from __future__ import annotations

import numpy as np

from contrica.decompositions._result import Decomposition, canonical, check_few_terms
from contrica.moments.operators import TensorOperator, as_operator

__all__ = ["orthogonal"]


def orthogonal(
    operator: TensorOperator | np.ndarray, rank: int, *, rng: np.random.Generator
) -> Decomposition:
    """Decompose a tensor with orthonormal vectors by contracting it with a random matrix.

    ``T(S, ·, ·) = Σ_i λ_i (b_iᵀ S b_i) b_i b_iᵀ`` has the ``b_i`` as eigenvectors, told apart by the
    random ``S`` even where weights tie. The ``rank`` eigenvectors of largest ``|T(b, b, b, b)|``, which
    is the weight of a true one, are kept.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
        The tensor.
    rank : int
        Number of terms, at most p.
    rng : numpy.random.Generator
        Source of the contraction.

    Returns
    -------
    Decomposition

    See Also
    --------
    htd : for more than p terms, and without randomness.

    References
    ----------
    Kolda, "Symmetric orthogonal tensor decomposition is trivial", arXiv:1503.01375. Wang, Maraj and
    Seigal, Appendix `app:comparison`.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import RankOneSum
    >>> T = RankOneSum(np.array([2.0, 2.0]), np.eye(3)[:, :2])
    >>> orthogonal(T, 2, rng=np.random.default_rng(0)).weights.round(6)
    array([2., 2.])
    """
    operator = as_operator(operator)
    rank = check_few_terms(rank, operator.n_features)
    S = rng.standard_normal((operator.n_features, operator.n_features))
    vectors = np.linalg.eigh(operator.apply(S + S.T))[1]
    weights = operator.coefficients(vectors)
    keep = np.argsort(-np.abs(weights), kind="stable")[:rank]
    return canonical(weights[keep], vectors[:, keep])
