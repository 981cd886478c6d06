"""Hierarchical tensor decomposition: Algorithm 1 of the paper."""

from __future__ import annotations

import numpy as np

from contrica.decompositions._result import Decomposition, canonical
from contrica.errors import PatternWarning, warn
from contrica.moments.eigen import top_eigenpairs
from contrica.moments.operators import TensorOperator, as_operator
from contrica.moments.symmetric import n_packed
from contrica.validation import check_rank

__all__ = ["TIE_GAP", "htd", "htd_error_bound"]

# Eigenvalues closer than this, relative to the larger, count as tied: their eigenvectors, and so
# the vectors read from them, are then an arbitrary rotation of one another.
TIE_GAP = 1e-3


def htd(
    operator: TensorOperator | np.ndarray, rank: int, *, tie_gap: float = TIE_GAP
) -> Decomposition:
    """Decompose a symmetric order-4 tensor by two levels of eigenvectors (Algorithm 1).

    Finds ``T ≈ Σ_i (μ_i β_i²) b_i^{⊗4}``: the leading eigenvectors of the flattened tensor, of
    eigenvalue ``μ_i``, are read as symmetric matrices, and each is replaced by its best rank-one fit
    ``β_i b_i b_iᵀ``. Exact when the true vectors are orthonormal with distinct weights; off by
    O(ε²) + O(δ) when they are within ε of orthogonal and the tensor within δ. Deterministic.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
        The tensor.
    rank : int
        Number of terms, at most ``p(p+1)/2``.
    tie_gap : float
        A warning names the terms whose eigenvalues differ by less than this, relatively: there the
        hypothesis of distinct weights fails and their vectors are determined only as a group.

    Returns
    -------
    Decomposition
        ``weights`` of shape ``(rank,)``; unit ``vectors`` of shape ``(n_features, rank)``.

    See Also
    --------
    spm : exact for tensors whose vectors are not orthogonal, but random.
    htd_error_bound : how far the decomposition can be from the tensor.

    References
    ----------
    Wang, Maraj and Seigal, "Contrastive independent component analysis", Algorithm 1,
    Proposition 3.3 (`prop:orthogonal_case`), Theorem 3.4 (`thm:nearly_orthogonal`).

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import RankOneSum
    >>> T = RankOneSum(np.array([2.0, 1.0]), np.array([[1.0, 0.0998], [0.0, 0.995]]))
    >>> htd(T, 2).weights.round(4)
    array([2.    , 0.9994])
    """
    operator = as_operator(operator)
    rank = check_rank(rank, operator.n_features)
    # one eigenvalue more than asked for: the last term may be tied with the first left out
    pairs = top_eigenpairs(operator, min(rank + 1, n_packed(operator.n_features)))
    values, matrices = pairs.values[:rank], pairs.matrices()[:rank]  # Steps 1 and 2: μ and M
    fits, axes = np.linalg.eigh(matrices)  # Step 3: of each M, the top β and its b
    each, top = np.arange(rank), np.abs(fits).argmax(axis=1)
    weights, vectors = values * fits[each, top] ** 2, axes[each, :, top].T
    _warn_of_ties(pairs.values, weights, tie_gap)
    return canonical(weights, vectors)


def _warn_of_ties(values: np.ndarray, weights: np.ndarray, tie_gap: float) -> None:
    """Name the terms, as the result numbers them, whose eigenvalues coincide."""
    rank = weights.size
    order = np.argsort(-np.abs(weights), kind="stable")
    # the term left out, where there is one, would come next
    numbers = np.append(np.argsort(order), rank) + 1
    groups = sorted(sorted(numbers[group]) for group in _tied(values, tie_gap))
    if not groups:
        return
    named = (
        ", ".join(str(i) if i <= rank else "the first one left out" for i in group)
        for group in groups
    )
    warn(
        PatternWarning(
            "tied",
            f"HTD terms with tied eigenvalues (closer than `tie_gap={tie_gap:g}`, relatively): "
            + "; ".join(named),
            remedy="The vectors of tied terms are determined only as a group, not one by one.",
        )
    )


def _tied(values: np.ndarray, tie_gap: float) -> list[np.ndarray]:
    """Groups of eigenvalues, by their places, that differ less than ``tie_gap`` from a neighbour."""
    ascending = np.argsort(values)
    ordered = values[ascending]
    larger = np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    # consecutive ties make one group
    ends = np.flatnonzero(~(np.diff(ordered) < tie_gap * larger)) + 1
    return [group for group in np.split(ascending, ends) if group.size > 1]


def htd_error_bound(operator: TensorOperator | np.ndarray, rank: int) -> float:
    """Bound on ``‖T − T′‖_F`` for the rank-``rank`` HTD approximation ``T′`` of ``T``.

    ``(Σ_{i>rank} μ_i²)^½ + Σ_{i≤rank} |μ_i| (1 + |β_i|) (Σ_{j≥2} (β_i^{(j)})²)^½``, with ``μ_i`` the
    eigenvalues of the flattening by magnitude and ``β_i^{(j)}`` those of the i-th eigenmatrix.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
    rank : int

    Returns
    -------
    float

    References
    ----------
    Wang, Maraj and Seigal, Proposition 3.2 (`prop:bound_in_general`).
    """
    operator = as_operator(operator)
    pairs = top_eigenpairs(operator, check_rank(rank, operator.n_features))
    fits = np.sort(np.abs(np.linalg.eigvalsh(pairs.matrices())), axis=1)
    left_over = max(operator.squared_norm() - float(np.sum(pairs.values**2)), 0.0)
    second_level = np.abs(pairs.values) * (1 + fits[:, -1]) * np.linalg.norm(fits[:, :-1], axis=1)
    return float(np.sqrt(left_over) + second_level.sum())
