"""Subspace power method: Step 1 of Algorithm 2 of the paper."""

from __future__ import annotations

import logging
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from contrica.decompositions._result import Decomposition, canonical
from contrica.eigen import Eigenpairs, top_eigenpairs
from contrica.operators import TensorOperator, as_operator
from contrica.symmetric import smat, svec_outer
from contrica.validation import check_count, check_rank

__all__ = ["spm"]

logger = logging.getLogger("contrica")

# Two unit vectors with |cosine| above this are one vector found twice: converged iterates of one
# maximiser agree far better, and distinct maximisers are further apart.
SAME_COSINE = 1 - 1e-6
# A maximiser with 1 − f below this has its square in the subspace to rounding: a true component.
# False maximisers of an exact tensor come as close as 1e-10 near rank p(p−1)/2.
EXACT_GAP = 1e-12
# Rounds without a new component before an exact tensor is taken for an inexact one.
MAX_EMPTY_ROUNDS = 30
# Power steps before Newton steps, which cost far more each, take over.
POWER_STEPS = 30
# Starts closer than this after their power steps are on their way to one maximiser.
NEAR_COSINE = 0.99
# The power step's shift x ← P(x xᵀ) x + shift · x, which keeps it from overshooting.
SHIFT = 0.3


def spm(
    operator: TensorOperator | np.ndarray,
    rank: int | None = None,
    *,
    rng: np.random.Generator,
    n_starts: int | None = None,
    max_iter: int = 200,
    tol: float = 1e-8,
    rank_tol: float = 1e-8,
) -> Decomposition:
    """Decompose a symmetric order-4 tensor by the subspace power method.

    The flattening of ``T = Σ_i λ_i a_i^{⊗4}`` has column space ``𝒜 = span{a_i a_iᵀ}``, and the unit
    vectors ``x`` whose square ``x xᵀ`` lies in 𝒜 are the ``±a_i``: the maximisers of
    ``f(x) = ‖P_𝒜(x xᵀ)‖²`` with ``f = 1``. Random starts climb f together, first by power steps
    ``x ← P_𝒜(x xᵀ) x`` (plus a shift), then by Newton steps on the sphere. The maximisers found are
    taken out of 𝒜 (deflation) and new starts search the rest, until there are ``rank`` vectors;
    each is finally polished in the undeflated 𝒜, so deflation adds no error. Weights are
    ``λ_i = 1 / (vec(a_i a_iᵀ)ᵀ M⁺ vec(a_i a_iᵀ))``.

    Parameters
    ----------
    operator : TensorOperator or ndarray of shape (p, p, p, p)
        The tensor.
    rank : int, optional
        Number of terms; unique for generic tensors up to ``p(p−1)/2``. Without it the rank of an
        exact tensor is read from its eigenvalues.
    rng : numpy.random.Generator
        Source of the starts.
    n_starts : int, optional
        Starts advanced together in each round; default ``max(16, 2 · rank)``.
    max_iter : int
        Most steps of one round.
    tol : float
        A start has converged when its Newton step is shorter than this.
    rank_tol : float
        Without a rank: eigenvalues below this share of the largest count as zero.

    Returns
    -------
    Decomposition
        ``weights`` of shape ``(rank,)``; unit ``vectors`` of shape ``(n_features, rank)``.

    See Also
    --------
    htd : deterministic, and exact for orthonormal vectors only.

    References
    ----------
    Kileel and Pereira, "Subspace power method for symmetric tensor decomposition and generalized
    PCA", arXiv:1912.04007. Wang, Maraj and Seigal, Algorithm 2, Step 1.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.operators import RankOneSum
    >>> rng = np.random.default_rng(0)
    >>> T = RankOneSum(np.array([2.0, -1.0, 0.5]), rng.standard_normal((3, 3)))
    >>> found = spm(T, rng=rng)
    >>> bool(np.allclose(found.tensor().flatten(), T.flatten()))
    True
    """
    operator = as_operator(operator)
    max_iter = check_count("max_iter", max_iter)
    pairs = _leading_pairs(operator, rank, rank_tol)
    rank = pairs.values.size
    n_starts = max(16, 2 * rank) if n_starts is None else check_count("n_starts", n_starts)

    whole = _Subspace(pairs.vectors)
    vectors = np.empty((operator.n_features, 0))
    exact, n_empty, n_iter, last_step = False, 0, 0, 0.0
    while vectors.shape[1] < rank:
        starts = _unit(rng.standard_normal((operator.n_features, n_starts)))
        climb = _deflated(pairs, vectors).climb(starts, max_iter, tol)
        found = climb.distinct(vectors)
        polished = whole.climb(found.points, max_iter, tol, power_steps=0)
        n_iter += climb.n_iter + polished.n_iter
        true = polished.heights > 1 - EXACT_GAP
        exact |= bool(true.any())
        if exact and not true.any() and n_empty < MAX_EMPTY_ROUNDS:
            # All remaining terms of an exact tensor reach f = 1: other starts will find them.
            n_empty += 1
            continue
        n_empty = 0
        new = np.flatnonzero(true) if true.any() else _better_half(found.heights)
        vectors = _append(vectors, polished.points[:, new], found.points[:, new], rank)
        last_step = max(last_step, found.steps[new].max())
        logger.info("subspace power method: %d of %d patterns", vectors.shape[1], rank)
    if last_step > tol:
        warnings.warn(
            f"subspace power method: the last step was {last_step:.2g} where tol={tol:.2g} was "
            f"asked for, after max_iter={max_iter} steps. Raise max_iter or lower the rank.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return canonical(_weights(pairs, vectors), vectors, n_iter)


def _leading_pairs(operator: TensorOperator, rank: int | None, rank_tol: float) -> Eigenpairs:
    if rank is not None:
        return top_eigenpairs(operator, check_rank(rank, operator.n_features))
    pairs = top_eigenpairs(operator)
    sizes = np.abs(pairs.values)
    count = max(int(np.sum(sizes > rank_tol * sizes.max(initial=0.0))), 1)
    return Eigenpairs(pairs.values[:count], pairs.vectors[:, :count])


def _weights(pairs: Eigenpairs, vectors: np.ndarray) -> np.ndarray:
    """``1 / (Aᵀ V D⁻¹ Vᵀ A)`` for every ``A = vec(a aᵀ)``."""
    inside = pairs.vectors.T @ svec_outer(vectors)
    return 1 / np.einsum("ik,i,ik->k", inside, 1 / pairs.values, inside)


def _deflated(pairs: Eigenpairs, vectors: np.ndarray) -> _Subspace:
    """𝒜 without the vectors found: the ``V c`` with ``cᵀ D⁻¹ Vᵀ vec(a aᵀ) = 0`` for each.

    For an exact tensor ``A_iᵀ M⁺ A_j = δ_ij / λ_i``, so what remains is the span of the others.
    """
    if vectors.shape[1] == 0:
        return _Subspace(pairs.vectors)
    normals = (pairs.vectors.T @ svec_outer(vectors)) / pairs.values[:, None]
    normals /= np.linalg.norm(normals, axis=0)
    n_left = pairs.values.size - vectors.shape[1]
    # The trailing left singular vectors, so that exactly n_left directions remain.
    basis = np.linalg.svd(normals, full_matrices=True)[0][:, -n_left:]
    return _Subspace(pairs.vectors @ basis)


class _Climb(NamedTuple):
    """Where starts ended: unit points as columns, f there, length of the last Newton step."""

    points: np.ndarray
    heights: np.ndarray
    steps: np.ndarray
    n_iter: int

    def distinct(self, taken: np.ndarray) -> _Climb:
        """The maximisers, each once and none of ``taken``, the highest first."""
        order = np.argsort(-self.heights, kind="stable")
        order = order[_distinct(self.points[:, order], taken)]
        return _Climb(self.points[:, order], self.heights[order], self.steps[order], self.n_iter)


class _Subspace:
    """``f(x) = ‖P(x xᵀ)‖²`` for the projection P on a space of symmetric matrices."""

    def __init__(self, basis: np.ndarray) -> None:
        self.basis = basis
        self.matrices = smat(basis.T)

    def heights(self, points: np.ndarray) -> np.ndarray:
        return np.sum((self.basis.T @ svec_outer(points)) ** 2, axis=0)

    def climb(
        self, points: np.ndarray, max_iter: int, tol: float, power_steps: int = POWER_STEPS
    ) -> _Climb:
        """Advance all points together until their Newton steps are shorter than ``tol``."""
        for _ in range(power_steps):
            coordinates = self.basis.T @ svec_outer(points)
            images = smat((self.basis @ coordinates).T)
            points = _unit(np.einsum("kij,jk->ik", images, points) + SHIFT * points)
        if power_steps:
            # Should two maximisers share a neighbourhood, deflation leaves one to a later round.
            points = points[:, _distinct(points, points[:, :0], NEAR_COSINE)]
        points = points.copy()
        steps = np.full(points.shape[1], np.inf)
        active = np.arange(points.shape[1])
        n_iter = 0
        while active.size and n_iter < max_iter:
            points[:, active], steps[active] = self._newton_step(points[:, active])
            active = active[steps[active] > tol]
            n_iter += 1
        return _Climb(points, self.heights(points), steps, n_iter + power_steps)

    def _newton_step(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One ascent step of ``φ = f/4`` on the sphere for every point.

        ``∇φ = P(xxᵀ)x`` and ``∇²φ = P(xxᵀ) + 2 Σ_k (V_k x)(V_k x)ᵀ``; on the sphere the Hessian is
        ``Π ∇²φ Π − f I``. Curvatures enter by absolute value, so the step climbs at saddles too, and
        the best of a few step lengths and the power step is taken.
        """
        r, p = self.matrices.shape[:2]
        n = points.shape[1]
        images = (self.matrices.reshape(r * p, p) @ points).reshape(r, p, n)
        coordinates = np.einsum("kin,in->kn", images, points)
        heights = np.sum(coordinates**2, axis=0)
        gradient = np.einsum("kin,kn->in", images, coordinates)
        images = np.ascontiguousarray(images.transpose(2, 1, 0))
        hessian = np.tensordot(coordinates.T, self.matrices, 1) + 2 * images @ images.transpose(0, 2, 1)
        tangent = np.eye(p) - points.T[:, :, None] * points.T[:, None, :]
        hessian = tangent @ hessian @ tangent - heights[:, None, None] * np.eye(p)
        curvatures, axes = np.linalg.eigh(hessian)
        slopes = np.einsum("nij,in->nj", axes, gradient - heights * points)
        step = np.einsum("nij,nj->in", axes, slopes / np.maximum(np.abs(curvatures), 1e-6))
        lengths = np.linalg.norm(step, axis=0)
        step *= np.minimum(1.0, 0.5 / np.maximum(lengths, 0.5))
        candidates = [_unit(points + t * step) for t in (1.0, 0.3, 0.1)]
        candidates.append(_unit(gradient + SHIFT * points))
        reached = np.array([self.heights(candidate) for candidate in candidates])
        reached[0] += 1e-14  # at the top all are equal to rounding: keep the Newton step
        best = reached.argmax(axis=0)
        return np.choose(best, candidates), lengths


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=0)


def _distinct(
    points: np.ndarray, taken: np.ndarray, same_cosine: float = SAME_COSINE
) -> list[int]:
    """Columns of ``points`` that repeat neither an earlier one nor one of ``taken``."""
    kept: list[int] = []
    cosines = np.abs(points.T @ np.hstack([points, taken]))
    n = points.shape[1]
    for i in range(n):
        if np.all(cosines[i, [*kept, *range(n, cosines.shape[1])]] <= same_cosine):
            kept.append(i)
    return kept


def _better_half(heights: np.ndarray) -> np.ndarray:
    """The higher half of a noisy round's maximisers; the rest is sought again after deflation."""
    return np.arange((heights.size + 1) // 2)


def _append(
    vectors: np.ndarray, polished: np.ndarray, raw: np.ndarray, rank: int
) -> np.ndarray:
    """Add polished vectors, or the raw one where polishing ran into a vector already there."""
    for fine, coarse in zip(polished.T, raw.T, strict=True):
        for candidate in (fine, coarse):
            if vectors.shape[1] < rank and _distinct(candidate[:, None], vectors):
                vectors = np.column_stack([vectors, candidate])
                break
    return vectors
