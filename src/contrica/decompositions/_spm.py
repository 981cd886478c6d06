"""Subspace power method: Step 1 of Algorithm 2 of the paper."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf, dpotrs
from sklearn.exceptions import ConvergenceWarning

from contrica.decompositions._result import Decomposition, canonical
from contrica.moments.eigen import Eigenpairs, top_eigenpairs
from contrica.moments.operators import TensorOperator, as_operator
from contrica.moments.symmetric import smat, svec_outer
from contrica.rows.threads import one_thread
from contrica.validation import PatternWarning, check_count, check_rank, warn_user

__all__ = ["spm"]

logger = logging.getLogger("contrica")

# Two unit vectors with |cosine| above this are one vector found twice: converged iterates of one
# maximiser agree far better, and distinct maximisers are further apart.
SAME_COSINE = 1 - 1e-6
# A maximiser with 1 − f below this has its square in the subspace to rounding.
EXACT_GAP = 1e-12
# Components of an exact tensor are orthogonal in the form A_iᵀ M⁺ A_j, to this much of a cosine.
CLASH = 1e-3
# Rounds without a new component before an exact tensor is taken for an inexact one.
MAX_EMPTY_ROUNDS = 20
# Starts in one batch, for each vector sought, and at least.
STARTS_PER_VECTOR = 3
MIN_STARTS = 100
# Power steps before Newton steps, which cost far more each, take over.
POWER_STEPS = 60
# Every so many power steps, starts this close to each other, which are on their way to one
# maximiser, are merged.
MERGE_EVERY = 15
NEAR_COSINE = 0.99
# A curvature smaller than this is taken for this: where f is flat rounding must not make a step.
FLAT = 1e-6
# A Newton step shorter than this, towards a maximiser, needs no other to compare with.
SHORT_STEP = 0.1
# Variables above which terms are first sought in fewer dimensions, so many for each; numbers that are
# worked with at a time in all variables; and most steps of conjugate gradients there.
WIDE_FEATURES, WIDE = 100, 3
WIDE_ENTRIES, MOST_CONJUGATE = 2**24, 100
# A slope as small as this is zero to rounding.
LEVEL = 1e-13
# Batches of starts in one round at most, and how many in a row must bring nothing new to end it.
MAX_BATCHES = 8
QUIET_BATCHES = 2
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
    each is finally polished in the undeflated 𝒜, unless that runs it into another. Weights are
    ``λ_i = 1 / (vec(a_i a_iᵀ)ᵀ M⁺ vec(a_i a_iᵀ))``.

    With more than 100 variables, and more than three for each term, starts climb in the dimensions that
    hold most of 𝒜, three for each term, and from where they end on in all variables. Eigenmatrices
    are then held once: ``rank · p²`` numbers.

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
        Starts advanced together in one batch, default ``max(100, 3 · rank)``. Batches follow each other
        until two in a row add nothing to the maximisers that will be taken. Different generators
        then mostly, but not always, find the same vectors of a noisy tensor.
    max_iter : int
        Most steps of one round.
    tol : float
        A start has converged when its Newton step is shorter than this.
    rank_tol : float
        Without a rank: eigenvalues below this share of the largest count as zero.

    Returns
    -------
    Decomposition
        ``weights`` of shape ``(rank,)``; unit ``vectors`` of shape ``(n_features, rank)``. Fewer
        terms, with a warning, where the tensor has no more.

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
    >>> from contrica.moments import RankOneSum
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
    space = (_Wide if _is_wide(operator.n_features, rank) else _Narrow)(pairs)
    n_starts = (
        _default_starts(rank, space.searched)
        if n_starts is None
        else check_count("n_starts", n_starts)
    )

    vectors = np.empty((operator.n_features, 0))
    inexact, n_empty, n_iter, last_step = False, 0, 0, 0.0
    while vectors.shape[1] < rank and n_empty < 2 * MAX_EMPTY_ROUNDS:
        climb = space.maximisers(vectors, n_starts, max_iter, tol, rng)
        found = climb.take(_distinct(climb.points, vectors))
        if inexact:
            found = found.take(range(_n_upper(found.heights)))
        polished = space.polish(found.points, max_iter, tol)
        n_iter += climb.n_iter + polished.n_iter
        if not inexact:
            # All terms of an exact tensor reach f = 1: a first round that finds none of them tells
            # that it is inexact, a later one is repeated.
            true = _true_components(pairs, vectors, polished)
            inexact = not true.size and (not vectors.size or n_empty >= MAX_EMPTY_ROUNDS)
            new = range(_n_upper(found.heights)) if inexact else true
            found, polished = found.take(new), polished.take(new)
        n_empty = 0 if found.heights.size else n_empty + 1
        vectors = _append(vectors, polished.points, found.points, rank)
        last_step = max(last_step, polished.steps.max(initial=0.0))
        logger.info("subspace power method: %d of %d patterns", vectors.shape[1], rank)
    if vectors.shape[1] < rank:
        warn_user(
            f"subspace power method: {vectors.shape[1]} of {rank} patterns were found; "
            f"{2 * MAX_EMPTY_ROUNDS} rounds of {n_starts} starts showed no other. Lower the rank "
            "(n_background) or raise n_starts.",
            ConvergenceWarning,
        )
    if last_step > tol:
        warn_user(
            f"subspace power method: the last step was {last_step:.2g} where tol={tol:.2g} was "
            f"asked for, after max_iter={max_iter} steps. Raise max_iter or lower the rank.",
            ConvergenceWarning,
        )
    return canonical(pairs.subtractable_weights(vectors), vectors, n_iter)


def _leading_pairs(operator: TensorOperator, rank: int | None, rank_tol: float) -> Eigenpairs:
    if rank is None:
        return top_eigenpairs(operator).significant(rank_tol)
    pairs = top_eigenpairs(operator, check_rank(rank, operator.n_features)).significant()
    if pairs.values.size < rank:
        warn_user(
            f"the tensor has rank {pairs.values.size} to rounding, so fewer than the {rank} patterns "
            "asked for are returned. Lower the rank (n_background).",
            PatternWarning,
        )
    return pairs


def _default_starts(rank: int, dimension: int) -> int:
    # The climb holds (rank, dimension, n_starts) numbers; stay within 128 MB.
    most = 2**24 / (max(rank, 1) * dimension)
    return int(np.clip(STARTS_PER_VECTOR * rank, MIN_STARTS, max(MIN_STARTS, most)))


def _left_over(pairs: Eigenpairs, vectors: np.ndarray) -> np.ndarray:
    """𝒜 without the vectors found: c with ``cᵀ D⁻¹ Vᵀ vec(a aᵀ) = 0`` for each, as columns.

    For an exact tensor ``A_iᵀ M⁺ A_j = δ_ij / λ_i``, so ``V c`` is in the span of the others.
    """
    if vectors.shape[1] == 0:
        return np.eye(pairs.values.size)
    normals = (pairs.vectors.T @ svec_outer(vectors)) / pairs.values[:, None]
    normals /= np.linalg.norm(normals, axis=0)
    n_left = pairs.values.size - vectors.shape[1]
    # The trailing left singular vectors, so that exactly n_left directions remain.
    return np.asarray(np.linalg.svd(normals, full_matrices=True)[0][:, -n_left:])


class _Climb(NamedTuple):
    """Where starts ended: unit points as columns, f there, length of the last Newton step."""

    points: np.ndarray
    heights: np.ndarray
    steps: np.ndarray
    n_iter: int

    def joined(self, other: _Climb) -> _Climb:
        """Both lists in one, the highest first."""
        both = _Climb(
            np.hstack([self.points, other.points]),
            np.concatenate([self.heights, other.heights]),
            np.concatenate([self.steps, other.steps]),
            self.n_iter + other.n_iter,
        )
        return both.take(np.argsort(-both.heights, kind="stable"))

    def take(self, which: Sequence[int] | np.ndarray) -> _Climb:
        """Some of the points."""
        index = np.asarray(which, dtype=int)
        return _Climb(self.points[:, index], self.heights[index], self.steps[index], self.n_iter)


class _View(NamedTuple):
    """At unit points, given as rows: ``V_k x``, ``(n, r, p)``, and ``xᵀ V_k x``, ``(n, r)``."""

    points: np.ndarray
    images: np.ndarray
    coordinates: np.ndarray

    @property
    def heights(self) -> np.ndarray:
        return np.sum(self.coordinates**2, axis=1)

    @property
    def gradients(self) -> np.ndarray:
        """Of f/4: ``P(x xᵀ) x``."""
        return np.asarray((self.coordinates[:, None, :] @ self.images)[:, 0, :])

    def take(self, which: np.ndarray) -> _View:
        """Some of the points."""
        return _View(self.points[which], self.images[which], self.coordinates[which])


class _Subspace:
    """``f(x) = Σ_k (xᵀ V_k x)²`` for symmetric matrices ``V_k``.

    For orthonormal ones it is ``‖P(x xᵀ)‖²`` with the projection P on their span.

    Parameters
    ----------
    matrices : ndarray of shape (r, p, p)
    """

    def __init__(self, matrices: np.ndarray) -> None:
        self.matrices = matrices

    @property
    def n_features(self) -> int:
        return int(self.matrices.shape[1])

    def approach(self, points: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Power steps from all points together; those on one way, or on the way to a known one, merge.

        In single precision, twice as fast: they lead near a maximiser, Newton steps onto it.
        """
        single = _Subspace(self.matrices.astype(np.float32))
        points = points.astype(np.float32)
        # OpenBLAS's SkylakeX kernel for a single-precision matrix of five columns times a vector reads
        # memory that it then masks: the product is right, but "invalid value" may be raised.
        with np.errstate(invalid="ignore"):
            for step in range(1, POWER_STEPS + 1):
                here = single._look(np.ascontiguousarray(points.T))
                points = _unit(here.gradients.T + np.float32(SHIFT) * points)
                if step % MERGE_EVERY == 0:
                    # Should two maximisers share a neighbourhood, deflation leaves one to a later round.
                    points = points[:, _distinct(points, known, NEAR_COSINE)]
        return _unit(points.astype(float))

    def climb(self, points: np.ndarray, max_iter: int, tol: float) -> _Climb:
        """Newton steps from all points together until they are shorter than ``tol``."""
        ends = points.T.copy()
        heights, steps = np.empty(len(ends)), np.full(len(ends), np.inf)
        active, here = np.arange(len(ends)), self._look(ends)
        n_iter = 0
        while active.size and n_iter < max_iter:
            here, lengths = self._newton_step(here)
            ends[active], heights[active], steps[active] = here.points, here.heights, lengths
            going = lengths > tol
            if not going.all():
                active, here = active[going], here.take(going)
            n_iter += 1
        return _Climb(ends.T, heights, steps, n_iter)

    def _look(self, points: np.ndarray) -> _View:
        r, p = self.matrices.shape[:2]
        images = (points @ self.matrices.reshape(r * p, p).T).reshape(-1, r, p)
        return _View(points, images, (images @ points[:, :, None])[:, :, 0])

    def _newton_step(self, here: _View) -> tuple[_View, np.ndarray]:
        """One ascent step of ``φ = f/4`` on the sphere for every point, and its length.

        ``∇φ = P(xxᵀ)x`` and ``∇²φ = P(xxᵀ) + 2 Σ_k (V_k x)(V_k x)ᵀ``; on the sphere the Hessian is
        ``Π ∇²φ Π − f I``. Curvatures enter by absolute value, so the step climbs at saddles too; where
        all are negative, as near a maximiser, that is Newton's step itself, and a Cholesky factor gives
        it.
        """
        steps, below = self._ascent(here)
        lengths = np.linalg.norm(steps, axis=1)
        steps *= np.minimum(1.0, 0.5 / np.maximum(lengths, 0.5))[:, None]
        reached = self._look(_unit_rows(here.points + steps))
        # Near a maximiser the whole step gains what it promises, and no other can gain more.
        gains = reached.heights - here.heights
        promised = 2 * np.einsum("ni,ni->n", here.gradients, steps)
        sound = below & (lengths < SHORT_STEP) & (gains > 0.75 * promised - 1e-14)
        doubtful = np.flatnonzero(~sound)
        if doubtful.size:
            better = self._best_of_several(here.take(doubtful), steps[doubtful])
            for mine, others in zip(reached, better, strict=True):
                mine[doubtful] = others
        return reached, lengths

    def _ascent(self, here: _View) -> tuple[np.ndarray, np.ndarray]:
        """``|Hessian|⁻¹ gradient`` on the sphere, and whether all curvatures are surely negative."""
        eye = np.eye(self.n_features)
        points, images, coordinates = here
        r, p = self.matrices.shape[:2]
        heights, gradients = here.heights, here.gradients
        # minus the Hessian, f I − Π ∇²φ Π with Π = I − x xᵀ and ∇²φ x = 3 ∇φ
        minus = (-coordinates @ self.matrices.reshape(r, p * p)).reshape(-1, p, p)
        minus -= 2 * (images.transpose(0, 2, 1) @ images)
        sides = 3 * gradients - 1.5 * heights[:, None] * points
        crossed = points[:, :, None] * sides[:, None, :]
        minus += crossed
        minus += crossed.transpose(0, 2, 1)
        minus[:, np.arange(p), np.arange(p)] += heights[:, None]
        slopes = gradients - heights[:, None] * points
        steps, below = np.empty_like(points), np.zeros(len(points), dtype=bool)
        for i, (matrix, slope) in enumerate(zip(minus, slopes, strict=True)):
            below[i] = dpotrf(matrix.T - FLAT * eye, lower=1)[1] == 0
            if below[i]:
                steps[i] = dposv(matrix.T, slope, lower=1)[1]
        if not below.all():
            curvatures, axes = np.linalg.eigh(minus[~below])
            turned = np.einsum("nij,ni->nj", axes, slopes[~below])
            turned /= np.maximum(np.abs(curvatures), FLAT)
            steps[~below] = np.einsum("nij,nj->ni", axes, turned)
        return steps, below

    def _best_of_several(self, here: _View, steps: np.ndarray) -> _View:
        """The highest of a few step lengths and the power step."""
        ends = [_unit_rows(here.points + t * steps) for t in (1.0, 0.3, 0.1)]
        ends.append(_unit_rows(here.gradients + SHIFT * here.points))
        seen = [self._look(end) for end in ends]
        heights = np.array([view.heights for view in seen])
        heights[0] += 1e-14  # at the top all are equal to rounding: keep the Newton step
        best, each = heights.argmax(axis=0), np.arange(len(steps))
        return _View(*(np.array(parts)[best, each] for parts in zip(*seen, strict=True)))


class _Narrow:
    """𝒜 with its eigenmatrices written out, for each deflation anew."""

    def __init__(self, pairs: Eigenpairs) -> None:
        self.pairs = pairs
        self.whole = _Subspace(pairs.matrices())
        self.searched = self.whole.n_features

    def maximisers(
        self,
        vectors: np.ndarray,
        n_starts: int,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
    ) -> _Climb:
        """Of f in 𝒜 without the vectors found, the highest first."""
        rest = self.whole
        if vectors.shape[1] > 0:
            rest = _Subspace(smat((self.pairs.vectors @ _left_over(self.pairs, vectors)).T))
        return _maximisers(rest, n_starts, max_iter, tol, rng)

    def polish(self, points: np.ndarray, max_iter: int, tol: float) -> _Climb:
        """From points to maximisers of f in all of 𝒜."""
        return self.whole.climb(points, max_iter, tol)


class _Wide:
    """𝒜 over many variables: its maximisers are sought where the eigenmatrices have most of their mass.

    The eigenmatrices of an exact tensor are sums of ``a_i a_iᵀ``, so that all columns of theirs are in
    the span of the a_i, at most r dimensions. Of a sample tensor most is in few dimensions. So f is
    first climbed on the leading eigenvectors U of ``Σ_k μ_k² V_k²``, three for each of the r terms:
    there it is f of the matrices ``Uᵀ V_k U``. From where that leads Newton steps, by conjugate
    gradients, climb f in all variables. The eigenmatrices are held once, (r, p, p) numbers; deflation
    mixes their images.
    """

    def __init__(self, pairs: Eigenpairs) -> None:
        self.pairs = pairs
        p = int(np.sqrt(2 * pairs.vectors.shape[0]))
        self.matrices = np.empty((pairs.values.size, p, p))
        for matrix, vector in zip(self.matrices, pairs.vectors.T, strict=True):
            matrix[:] = smat(vector)
        self.axes = _leading_columns(self.matrices, pairs.values, WIDE * pairs.values.size)
        self.inside = np.array([self.axes.T @ V @ self.axes for V in self.matrices])
        self.searched = self.axes.shape[1]

    def maximisers(
        self,
        vectors: np.ndarray,
        n_starts: int,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
    ) -> _Climb:
        """Of f in 𝒜 without the vectors found, the highest first."""
        mixing = _left_over(self.pairs, vectors)
        few = _Subspace(np.tensordot(mixing.T, self.inside, 1))
        with one_thread():
            found = _maximisers(few, n_starts, max_iter, tol, rng)
        ends = self._climb(self.axes @ found.points, mixing, max_iter, tol)
        ends = ends.take(np.argsort(-ends.heights, kind="stable"))
        return ends._replace(n_iter=found.n_iter + ends.n_iter)

    def polish(self, points: np.ndarray, max_iter: int, tol: float) -> _Climb:
        """From points to maximisers of f in all of 𝒜."""
        return self._climb(points, np.eye(self.pairs.values.size), max_iter, tol)

    def _climb(self, points: np.ndarray, mixing: np.ndarray, max_iter: int, tol: float) -> _Climb:
        subspace = _MixedSubspace(self.matrices, mixing, self.axes, self.inside)
        r, p = self.matrices.shape[:2]
        size = max(WIDE_ENTRIES // (p * max(p, r)), 1)
        ends = _Climb(points[:, :0], np.empty(0), np.empty(0), 0)
        for start in range(0, points.shape[1], size):
            part = subspace.climb(points[:, start : start + size], max_iter, tol)
            ends = _Climb(
                np.hstack([ends.points, part.points]),
                np.concatenate([ends.heights, part.heights]),
                np.concatenate([ends.steps, part.steps]),
                max(ends.n_iter, part.n_iter),
            )
        return ends


class _MixedSubspace(_Subspace):
    """f of the combinations ``Σ_k B_kl V_k``, which are not written out, climbed without p × p solves.

    Parameters
    ----------
    matrices : ndarray of shape (r, p, p)
        V.
    mixing : ndarray of shape (r, l)
        B.
    axes : ndarray of shape (p, m)
        U, orthonormal columns in which the matrices have most of their mass.
    inside : ndarray of shape (r, m, m)
        ``Uᵀ V_k U``.
    """

    def __init__(
        self, matrices: np.ndarray, mixing: np.ndarray, axes: np.ndarray, inside: np.ndarray
    ) -> None:
        super().__init__(matrices)
        self.mixing, self.axes = mixing, axes
        self.inside = inside

    def _look(self, points: np.ndarray) -> _View:
        r, p = self.matrices.shape[:2]
        images = (points @ self.matrices.reshape(r * p, p).T).reshape(-1, r, p)
        images = self.mixing.T @ images
        return _View(points, images, (images @ points[:, :, None])[:, :, 0])

    def _ascent(self, here: _View) -> tuple[np.ndarray, np.ndarray]:
        """As of a subspace, by conjugate gradients; where a curvature is not negative, they stop there.

        They are preconditioned by what minus the Hessian is inside the axes, and by f outside of them.
        """
        points, images, coordinates = here
        r, p = self.matrices.shape[:2]
        m = self.axes.shape[1]
        heights, gradients = here.heights, here.gradients
        slopes = gradients - heights[:, None] * points
        steps, below = np.zeros_like(points), np.ones(len(points), dtype=bool)
        steep = np.flatnonzero(np.linalg.norm(slopes, axis=1) > LEVEL)
        if steep.size == 0:
            return steps, below
        mixed = coordinates[steep] @ self.mixing.T
        middles = (mixed @ self.matrices.reshape(r, p * p)).reshape(-1, p, p)
        few = (mixed @ self.inside.reshape(r, m * m)).reshape(-1, m, m)
        with one_thread():
            for i, middle, core in zip(steep, middles, few, strict=True):
                minus = _MinusHessian(points[i], heights[i], middle, images[i], self.axes, core)
                steps[i], below[i] = _conjugate_gradients(minus, slopes[i])
        return steps, below


class _MinusHessian:
    """``f I − Π (P(xxᵀ) + 2 Σ_k (V_k x)(V_k x)ᵀ) Π`` on the vectors tangent to the sphere at x.

    Parameters
    ----------
    point : ndarray of shape (p,)
        x.
    height : float
        f.
    middle : ndarray of shape (p, p)
        ``P(xxᵀ)``.
    sides : ndarray of shape (r, p)
        ``V_k x``.
    axes : ndarray of shape (p, m)
        U, in which the other matrices have most of their mass.
    core : ndarray of shape (m, m)
        ``Uᵀ P(xxᵀ) U``.
    """

    def __init__(
        self,
        point: np.ndarray,
        height: float,
        middle: np.ndarray,
        sides: np.ndarray,
        axes: np.ndarray,
        core: np.ndarray,
    ) -> None:
        self.point, self.height = point, height
        self.middle, self.sides, self.axes = middle, sides, axes
        inner = sides @ axes
        inside = (height + FLAT) * np.eye(len(core)) - core - 2 * inner.T @ inner
        # Π on both sides, and f for the point itself
        own = axes.T @ point
        turned = inside @ own
        inside += (own @ turned + height) * np.outer(own, own)
        inside -= np.outer(own, turned) + np.outer(turned, own)
        self._factor, self._info = dpotrf(inside, lower=1)

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Its product with a tangent vector."""
        image = self.height * vector - self.middle @ vector
        image -= 2 * (self.sides @ vector) @ self.sides
        return self._tangent(image)

    def roughly_solved(self, vector: np.ndarray) -> np.ndarray:
        """The preconditioner: its inverse inside the axes, and division by f outside of them."""
        within = self.axes.T @ vector
        solved = within / self.height
        if self._info == 0:
            solved = dpotrs(self._factor, within, lower=1)[0]
        return self._tangent((vector - self.axes @ within) / self.height + self.axes @ solved)

    def _tangent(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector - (self.point @ vector) * self.point)


def _conjugate_gradients(minus: _MinusHessian, slope: np.ndarray) -> tuple[np.ndarray, bool]:
    """Newton's step, the more exact the shorter the slope, and whether all curvatures seen are negative.

    Where one is not, it stops with what it has, which leads up.
    """
    start = float(np.linalg.norm(slope))
    enough = max(start * min(0.1, start), LEVEL)
    step, left = np.zeros_like(slope), slope.copy()
    soft = minus.roughly_solved(left)
    direction, energy = soft, float(left @ soft)
    for _ in range(MOST_CONJUGATE):
        if np.linalg.norm(left) <= enough:
            break
        image = minus.times(direction)
        curvature = float(direction @ image)
        if curvature <= FLAT * float(direction @ direction):
            return (step if step.any() else direction), False
        step = step + energy / curvature * direction
        left = left - energy / curvature * image
        soft = minus.roughly_solved(left)
        energy, before = float(left @ soft), energy
        direction = soft + energy / before * direction
    return step, True


def _is_wide(n_features: int, rank: int) -> bool:
    """Whether variables are many, and far more than the dimensions that the terms span."""
    return n_features > WIDE_FEATURES and n_features > WIDE * rank


def _leading_columns(matrices: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Leading eigenvectors of ``Σ_k μ_k² V_k²``, roughly: two rounds of subspace iteration.

    Where the matrices have no more columns than that, their span.
    """
    p = matrices.shape[1]
    weights = (values / np.abs(values).max(initial=np.finfo(float).tiny)) ** 2
    # a fixed generator: the space is a function of the tensor alone
    axes = np.random.default_rng(0).standard_normal((p, count))
    for _ in range(2):
        image = np.zeros((p, count))
        for weight, V in zip(weights, matrices, strict=True):
            image += weight * (V @ (V @ axes))
        axes = np.linalg.qr(image)[0]
    return axes


def _n_upper(heights: np.ndarray) -> int:
    """How many of a noisy round's maximisers are taken: the higher half, lest noise come early."""
    return (heights.size + 1) // 2


def _maximisers(
    subspace: _Subspace, n_starts: int, max_iter: int, tol: float, rng: np.random.Generator
) -> _Climb:
    """Local maximisers of f, the highest first, from batches of starts until the list settles.

    It has settled when `QUIET_BATCHES` in a row add nothing to its upper part. One rare maximiser can
    still be missed by all, so this makes dependence on the starts less frequent, not impossible.
    """
    p = subspace.n_features
    known = _Climb(np.empty((p, 0)), np.empty(0), np.empty(0), 0)
    n_quiet = 0
    for _ in range(MAX_BATCHES):
        starts = _unit(rng.standard_normal((p, n_starts)))
        fresh = subspace.climb(subspace.approach(starts, known.points), max_iter, tol)
        fresh = fresh.take(_distinct(fresh.points, known.points))
        upper = known.heights[: _n_upper(known.heights)]
        settled = upper.size > 0 and not np.any(fresh.heights > upper[-1])
        known = known.joined(fresh)._replace(n_iter=known.n_iter + fresh.n_iter + POWER_STEPS)
        n_quiet = n_quiet + 1 if settled else 0
        if n_quiet == QUIET_BATCHES:
            break
    return known


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=0)


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None])


def _distinct(points: np.ndarray, taken: np.ndarray, same_cosine: float = SAME_COSINE) -> list[int]:
    """Columns of ``points`` that repeat neither an earlier one nor one of ``taken``."""
    free = np.all(np.abs(points.T @ taken) <= same_cosine, axis=1)
    apart = np.abs(points.T @ points) <= same_cosine
    kept: list[int] = []
    for i in np.flatnonzero(free):
        if free[i]:
            kept.append(int(i))
            free &= apart[i]
    return kept


def _true_components(pairs: Eigenpairs, vectors: np.ndarray, climb: _Climb) -> np.ndarray:
    """Which maximisers are components of an exact tensor: f = 1, and at peace with each other.

    Close to rank p(p−1)/2 false maximisers come within 1e-13 of f = 1. But components satisfy
    ``A_iᵀ M⁺ A_j = 0``, while a false one is a combination of several ``A_j`` and so violates this
    with each: those with the most violations go.
    """
    p, rank = vectors.shape[0], pairs.values.size
    if rank > p * (p - 1) // 2:
        return np.empty(0, dtype=int)  # there other squares than the components' have f = 1 too
    near = np.flatnonzero(climb.heights > 1 - EXACT_GAP)
    near = near[_distinct(climb.points[:, near], vectors)]
    n_taken = vectors.shape[1]
    form = np.abs(pairs.inverse_form(np.hstack([vectors, climb.points[:, near]])))
    sizes = np.sqrt(np.diag(form))
    clash = form > CLASH * np.outer(sizes, sizes)
    np.fill_diagonal(clash, False)
    alive = np.ones(clash.shape[0], dtype=bool)
    while (counts := (clash & alive & alive[:, None]).sum(axis=1)[n_taken:]).any():
        alive[n_taken + np.flatnonzero(counts == counts.max())[-1]] = False
    return near[alive[n_taken:]]


def _append(vectors: np.ndarray, polished: np.ndarray, raw: np.ndarray, rank: int) -> np.ndarray:
    """Add polished vectors, or the raw one where polishing ran into a vector already there."""
    for fine, coarse in zip(polished.T, raw.T, strict=True):
        for candidate in (fine, coarse):
            if vectors.shape[1] < rank and _distinct(candidate[:, None], vectors):
                vectors = np.column_stack([vectors, candidate])
                break
    return vectors
