"""Step 2 of Algorithm 2: how much of each background pattern the foreground holds.

In population all of these but ``least_squares`` give the same λ′; under sampling noise they differ.
Write ``M = Mat(κ₄(x))`` and ``A_i = vec(a_i a_iᵀ)``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contrica.decompositions._result import least_squares_weights
from contrica.errors import PatternWarning, warn
from contrica.moments.eigen import (
    CONTAINED,
    Eigenpairs,
    add_rank_one,
    n_significant,
    top_eigenpairs,
)
from contrica.moments.fourth import packed_bytes
from contrica.moments.operators import PackedTensor, TensorOperator
from contrica.moments.symmetric import n_packed, svec_outer
from contrica.rows.memory import check_memory
from contrica.validation import check_choice

__all__ = ["DEFLATIONS", "check_deflation_budget", "shared_weights"]

# λ′ of a pattern that is there is of the order of the tensor's norm, or somewhat above it where terms
# of opposite sign cancel; where noise has brought a denominator near zero, it is far above.
WILD = 3.0


def _present(pairs: Eigenpairs, vectors: np.ndarray) -> tuple[Eigenpairs, np.ndarray]:
    """The pairs that are not zero to rounding, and which vectors can have a share in the tensor.

    A sample tensor has full rank and every vector may. An exact one whose rank falls short of the
    pairs asked for lacks some pattern: a vector outside its column space has λ′ = 0.
    """
    exact = pairs.significant()
    if exact.values.size == pairs.values.size:
        return exact, np.ones(vectors.shape[1], dtype=bool)
    return exact, exact.contain(vectors)


def thin(fore: TensorOperator, vectors: np.ndarray, rank: int) -> np.ndarray:
    """Each vector by itself: ``λ′_i = 1 / (A_iᵀ V D⁻¹ Vᵀ A_i)``, ``V D Vᵀ ≈ M`` thin of rank r + ℓ.

    The formula in the proof of `prop:iden_alg2`: the only multiple of ``A_i A_iᵀ`` whose
    subtraction lowers the rank of M.
    """
    pairs, present = _present(top_eigenpairs(fore, rank), vectors)
    return np.where(present, pairs.subtractable_weights(vectors), 0.0)


def closed_form(fore: TensorOperator, vectors: np.ndarray, rank: int) -> np.ndarray:
    """All vectors together: the diagonal of ``(Aᵀ M⁺ A)⁻¹``, ``M⁺`` thin of rank r + ℓ.

    The matrix form in the proof of `thm: unique gamma`, from Lemma `lem:unique_C`.
    """
    pairs, present = _present(top_eigenpairs(fore, rank), vectors)
    weights = np.zeros(vectors.shape[1])
    form = pairs.inverse_form(vectors[:, present])
    weights[present] = np.diag(np.linalg.pinv(form, hermitian=True))
    return weights


def sequential(fore: TensorOperator, vectors: np.ndarray, rank: int) -> np.ndarray:
    """One vector after another, each from the full-rank decomposition of what the others left.

    How the authors ran it: M starts at full rank, and every subtraction lowers it by one.
    """
    return _one_after_another(fore, vectors, n_packed(fore.n_features))


def sequential_thin(fore: TensorOperator, vectors: np.ndarray, rank: int) -> np.ndarray:
    """`sequential`, with M cut to rank r + ℓ before the first vector, r + ℓ − 1 before the next."""
    return _one_after_another(fore, vectors, rank)


def _one_after_another(fore: TensorOperator, vectors: np.ndarray, rank: int) -> np.ndarray:
    """Each λ′ as in `thin`, from M less the terms before it, cut to the rank that they leave.

    M is decomposed once. After that only its eigenvalues are followed, and the share of every vector in
    every eigenvector: both are known after a rank-one term is subtracted
    (`contrica.moments.eigen.add_rank_one`).
    """
    pairs = top_eigenpairs(PackedTensor(fore.flatten(), fore.n_features))
    values, shares = pairs.values, pairs.vectors.T @ svec_outer(vectors)
    weights = np.zeros(vectors.shape[1])
    for i in range(weights.size):
        kept = np.argsort(-np.abs(values), kind="stable")[: max(rank, 1)]
        count = n_significant(values[kept], values.size)
        exact, inside = values[kept[:count]], shares[kept[:count], i]
        # as in `_present`
        if count == kept.size or inside @ inside > CONTAINED:
            form = float(np.sum(inside**2 / exact))
            weights[i] = 1 / form if form != 0 else 0.0
            values, shares = add_rank_one(values, shares, i, -weights[i])
            rank -= 1
    return weights


def least_squares(fore: TensorOperator, vectors: np.ndarray, rank: int) -> np.ndarray:
    """The λ′ that minimise ``‖κ₄(x) − Σ λ′_i a_i^{⊗4}‖``, ignoring the foreground patterns.

    Steady under noise, but biased by nature: even in population it gives part of every ``b_j^{⊗4}``
    to the ``a_i^{⊗4}`` near it, ``(a_i · b_j)⁴ ν_j`` for a single i.
    """
    return least_squares_weights(fore, vectors)


Deflation = Callable[[TensorOperator, np.ndarray, int], np.ndarray]

DEFLATIONS: dict[str, Deflation] = {
    "thin": thin,
    "sequential": sequential,
    "sequential_thin": sequential_thin,
    "closed_form": closed_form,
    "least_squares": least_squares,
}


def check_deflation_budget(deflation: str, n_features: int, budget: int) -> None:
    """Refuse an estimator that writes the fourth cumulant out where there is no memory for it.

    Parameters
    ----------
    deflation : str
    n_features : int
    budget : int
        Bytes.
    """
    if deflation.startswith("sequential"):
        check_memory(
            packed_bytes(n_features),
            budget,
            f"`deflation={deflation}`, which writes the fourth cumulant of {n_features} variables out,",
            "Use `deflation=thin`, lower `n_pcs`, or raise `memory_limit`.",
        )


def shared_weights(
    fore: TensorOperator, vectors: np.ndarray, rank: int, deflation: str = "thin"
) -> np.ndarray:
    """Coefficients λ′ of the background patterns in κ₄ of the foreground.

    Parameters
    ----------
    fore : TensorOperator
        κ₄(x).
    vectors : ndarray of shape (n_features, r)
        Background patterns, unit columns.
    rank : int
        r + ℓ, the rank at which the thin estimators cut κ₄(x).
    deflation : {"thin", "sequential", "sequential_thin", "closed_form", "least_squares"}
        Estimator. All but the last agree on exact tensors.

    Returns
    -------
    ndarray of shape (r,)

    References
    ----------
    Wang, Maraj and Seigal, Algorithm 2, Step 2; `prop:iden_alg2` and Lemma `lem:unique_C`.
    """
    check_choice("deflation", deflation, tuple(DEFLATIONS))
    weights = DEFLATIONS[deflation](fore, vectors, rank)
    wild = ~(np.abs(weights) <= WILD * np.sqrt(fore.squared_norm()))
    if wild.any():
        warn(
            PatternWarning(
                "wild-weights",
                f"{wild.sum()} of {weights.size} shared weights exceed {WILD:g} times the norm of the "
                "whole fourth cumulant of the foreground: noise rather than patterns",
                remedy="Lower `n_background`, or use `deflation=least_squares`.",
                parameter="n_background",
            )
        )
    return weights
