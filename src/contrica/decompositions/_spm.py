"""Subspace power method: Step 1 of Algorithm 2 of the paper."""

from __future__ import annotations

import logging

import numpy as np

from contrica.decompositions._result import Decomposition, canonical
from contrica.decompositions._spm_search import (
    Climb,
    MixedSubspace,
    Subspace,
    distinct,
    maximisers,
    n_upper,
)
from contrica.errors import ConvergenceWarning, PatternWarning, warn
from contrica.moments.eigen import Eigenpairs, top_eigenpairs
from contrica.moments.operators import TensorOperator, as_operator
from contrica.moments.symmetric import smat, svec_outer
from contrica.rows.threads import one_thread
from contrica.validation import check_count, check_rank

__all__ = ["spm"]

logger = logging.getLogger("contrica")

# A maximiser with 1 − f below this has its square in the subspace to rounding.
EXACT_GAP = 1e-12
# Components of an exact tensor are orthogonal in the form A_iᵀ M⁺ A_j, to this much of a cosine.
CLASH = 1e-3
# Rounds without a new component before an exact tensor is taken for an inexact one.
MAX_EMPTY_ROUNDS = 20
# Starts in one batch, for each vector sought, and at least.
STARTS_PER_VECTOR = 3
MIN_STARTS = 100
# Variables above which terms are first sought in fewer dimensions, so many for each; and numbers that
# are worked with at a time in all variables.
WIDE_FEATURES, WIDE = 100, 3
WIDE_ENTRIES = 2**24


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
    ``x ← P_𝒜(x xᵀ) x``, then by Newton steps on the sphere. The maximisers found are
    taken out of 𝒜 (deflation) and new starts search the rest, until there are ``rank`` vectors;
    each is finally polished in the undeflated 𝒜, unless that runs it into another. Weights are
    ``λ_i = 1 / (vec(a_i a_iᵀ)ᵀ M⁺ vec(a_i a_iᵀ))``.

    With more than 100 variables, and more than three for each term, starts climb in the dimensions that
    hold most of 𝒜, three for each term, and from where they end on in all variables. Eigenmatrices
    are then kept once: ``rank · p²`` numbers.

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
        Starts advanced together in one batch, default 100, or three for each term that is not found yet.
        Batches follow each other until two together add nothing to the maximisers that will be taken.
        Different generators then mostly, but not always, find the same vectors of a noisy tensor.
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
    _check_options(n_starts, max_iter)
    pairs = _leading_pairs(operator, rank, rank_tol)
    search = _Search(pairs, operator.n_features, n_starts, max_iter, tol, rng)
    while not search.is_over:
        found = search.maximisers()  # of f in 𝒜 without the vectors that are known
        polished = search.polish(found)  # in all of 𝒜
        search.add(*search.components(found, polished))
    search.warn_if_incomplete()
    weights = pairs.subtractable_weights(search.vectors)
    return canonical(weights, search.vectors, search.n_iter)


def _check_options(n_starts: int | None, max_iter: int) -> None:
    check_count("max_iter", max_iter)
    if n_starts is not None:
        check_count("n_starts", n_starts)


def _leading_pairs(operator: TensorOperator, rank: int | None, rank_tol: float) -> Eigenpairs:
    """What spans 𝒜: eigenpairs of the flattening, as many as terms are asked for, or as it has."""
    if rank is None:
        return top_eigenpairs(operator).significant(rank_tol)
    pairs = top_eigenpairs(operator, check_rank(rank, operator.n_features)).significant()
    if pairs.values.size < rank:
        warn(
            PatternWarning(
                "rank-deficient",
                f"the tensor has rank {pairs.values.size} to rounding, so fewer than the {rank} patterns "
                "asked for are returned",
                remedy="Lower the rank (`n_background`).",
                parameter="rank",
            )
        )
    return pairs


def _default_starts(rank: int, dimension: int) -> int:
    # The climb keeps (rank, dimension, n_starts) numbers in memory; stay within 128 MB.
    limit = 2**24 / (max(rank, 1) * dimension)
    return int(np.clip(STARTS_PER_VECTOR * rank, MIN_STARTS, max(MIN_STARTS, limit)))


def _is_wide(n_features: int, rank: int) -> bool:
    """Whether variables are many, and far more than the dimensions that the terms span."""
    return n_features > WIDE_FEATURES and n_features > WIDE * rank


class _Search:
    """The vectors found so far, and how the search for the others goes.

    Parameters
    ----------
    pairs : Eigenpairs
        Their eigenmatrices span 𝒜; there are as many as vectors to be found.
    n_features : int
        p.
    n_starts : int or None
        Starts in one batch.
    max_iter : int
        Most steps of one climb.
    tol : float
        Length of a Newton step that ends it.
    rng : numpy.random.Generator
        Source of the starts.
    """

    def __init__(
        self,
        pairs: Eigenpairs,
        n_features: int,
        n_starts: int | None,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
    ) -> None:
        self.pairs, self.rank = pairs, pairs.values.size
        self.max_iter, self.tol, self.rng = max_iter, tol, rng
        self.space = (_Wide if _is_wide(n_features, self.rank) else _Narrow)(pairs)
        self._n_starts = n_starts
        self.vectors = self.likely = np.empty((n_features, 0))
        self.inexact = False
        self.n_empty, self.n_iter, self.last_step = 0, 0, 0.0

    @property
    def n_starts(self) -> int:
        """Starts in one batch: fewer maximisers are left where more are found."""
        n_left = self.rank - self.vectors.shape[1]
        return self._n_starts or _default_starts(n_left, self.space.searched)

    @property
    def is_over(self) -> bool:
        """All vectors are found, or many rounds in a row have found none."""
        return self.vectors.shape[1] >= self.rank or self.n_empty >= 2 * MAX_EMPTY_ROUNDS

    def maximisers(self) -> Climb:
        """Of f in what the vectors leave of 𝒜, the highest first; of an inexact tensor the upper half."""
        climb = self.space.maximisers(
            self.vectors, self.n_starts, self.max_iter, self.tol, self.rng, self.likely
        )
        self.n_iter += climb.n_iter
        found = climb.take(distinct(climb.points, self.vectors))
        if not self.inexact:
            return found
        # the others are likely maximisers still where these are taken out
        count = n_upper(found.heights)
        self.likely = found.points[:, count:]
        return found.take(range(count))

    def polish(self, found: Climb) -> Climb:
        """From maximisers in a part of 𝒜 to those in all of it."""
        polished = self.space.polish(found.points, self.max_iter, self.tol)
        self.n_iter += polished.n_iter
        return polished

    def components(self, found: Climb, polished: Climb) -> tuple[Climb, Climb]:
        """Those of both that become vectors.

        All terms of an exact tensor reach f = 1: a first round that finds none of them tells that it is
        inexact, a later one is repeated.
        """
        if self.inexact:
            return found, polished
        true = _true_components(self.pairs, self.vectors, polished)
        first = not self.vectors.size
        self.inexact = not true.size and (first or self.n_empty >= MAX_EMPTY_ROUNDS)
        new = range(n_upper(found.heights)) if self.inexact else true
        return found.take(new), polished.take(new)

    def add(self, found: Climb, polished: Climb) -> None:
        """Polished points become vectors, or the points before polishing where that led to known ones."""
        self.n_empty = 0 if found.heights.size else self.n_empty + 1
        self.vectors = _append(self.vectors, polished.points, found.points, self.rank)
        self.last_step = max(self.last_step, polished.steps.max(initial=0.0))
        logger.info("subspace power method: %d of %d patterns", self.vectors.shape[1], self.rank)

    def warn_if_incomplete(self) -> None:
        """Say so where vectors are missing, or have not converged."""
        n_found = self.vectors.shape[1]
        if n_found < self.rank:
            warn(
                ConvergenceWarning(
                    "fewer-patterns",
                    f"subspace power method: {n_found} of {self.rank} patterns were found; "
                    f"{2 * MAX_EMPTY_ROUNDS} rounds of {self.n_starts} starts showed no other",
                    remedy="Lower the rank (`n_background`) or raise `n_starts`.",
                    parameter="rank",
                )
            )
        if self.last_step > self.tol:
            warn(
                ConvergenceWarning(
                    "not-converged",
                    f"subspace power method: the last step was {self.last_step:.2g} where "
                    f"`tol={self.tol:.2g}` was asked for, after `max_iter={self.max_iter}` steps",
                    remedy="Raise `max_iter` or lower the rank.",
                    parameter="max_iter",
                )
            )


def _true_components(pairs: Eigenpairs, vectors: np.ndarray, climb: Climb) -> np.ndarray:
    """Which maximisers are components of an exact tensor: f = 1, and at peace with each other.

    Close to rank p(p−1)/2 false maximisers come within 1e-13 of f = 1. But components satisfy
    ``A_iᵀ M⁺ A_j = 0``, while a false one is a combination of several ``A_j`` and so violates this
    with each: those with the most violations go.
    """
    p, rank = vectors.shape[0], pairs.values.size
    if rank > p * (p - 1) // 2:
        return np.empty(0, dtype=int)  # there other squares than the components' have f = 1 too
    near = np.flatnonzero(climb.heights > 1 - EXACT_GAP)
    near = near[distinct(climb.points[:, near], vectors)]
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
            if vectors.shape[1] < rank and distinct(candidate[:, None], vectors):
                vectors = np.column_stack([vectors, candidate])
                break
    return vectors


class _Narrow:
    """𝒜 with its eigenmatrices written out, for each deflation anew."""

    def __init__(self, pairs: Eigenpairs) -> None:
        self.pairs = pairs
        self.whole = Subspace(pairs.matrices())
        self.searched = self.whole.n_features

    def maximisers(
        self,
        vectors: np.ndarray,
        n_starts: int,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
        likely: np.ndarray,
    ) -> Climb:
        """Of f in 𝒜 without the vectors found, the highest first."""
        rest = self.whole
        if vectors.shape[1] > 0:
            rest = Subspace(smat((self.pairs.vectors @ _left_over(self.pairs, vectors)).T))
        return maximisers(rest, n_starts, max_iter, tol, rng, likely)

    def polish(self, points: np.ndarray, max_iter: int, tol: float) -> Climb:
        """From points to maximisers of f in all of 𝒜."""
        return self.whole.climb(points, max_iter, tol)


class _Wide:
    """𝒜 over many variables: its maximisers are sought where the eigenmatrices have most of their mass.

    The eigenmatrices of an exact tensor are sums of ``a_i a_iᵀ``, so that all columns of theirs are in
    the span of the a_i, at most r dimensions. Of a sample tensor most is in few dimensions. So f is
    first climbed on the leading eigenvectors U of ``Σ_k μ_k² V_k²``, three for each of the r terms:
    there it is f of the matrices ``Uᵀ V_k U``. From where that leads Newton steps, by conjugate
    gradients, climb f in all variables. The eigenmatrices are kept once, (r, p, p) numbers; deflation
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
        likely: np.ndarray,
    ) -> Climb:
        """Of f in 𝒜 without the vectors found, the highest first."""
        mixing = _left_over(self.pairs, vectors)
        few = Subspace(np.tensordot(mixing.T, self.inside, 1))
        with one_thread():
            inside = self.axes.T @ likely
            inside /= np.linalg.norm(inside, axis=0)
            found = maximisers(few, n_starts, max_iter, tol, rng, inside)
        ends = self._climb(self.axes @ found.points, mixing, max_iter, tol)
        ends = ends.take(np.argsort(-ends.heights, kind="stable"))
        return ends._replace(n_iter=found.n_iter + ends.n_iter)

    def polish(self, points: np.ndarray, max_iter: int, tol: float) -> Climb:
        """From points to maximisers of f in all of 𝒜."""
        return self._climb(points, np.eye(self.pairs.values.size), max_iter, tol)

    def _climb(self, points: np.ndarray, mixing: np.ndarray, max_iter: int, tol: float) -> Climb:
        subspace = MixedSubspace(self.matrices, mixing, self.axes, self.inside)
        r, p = self.matrices.shape[:2]
        size = max(WIDE_ENTRIES // (p * max(p, r)), 1)
        ends = Climb(points[:, :0], np.empty(0), np.empty(0), 0)
        for start in range(0, points.shape[1], size):
            part = subspace.climb(points[:, start : start + size], max_iter, tol)
            ends = Climb(
                np.hstack([ends.points, part.points]),
                np.concatenate([ends.heights, part.heights]),
                np.concatenate([ends.steps, part.steps]),
                max(ends.n_iter, part.n_iter),
            )
        return ends


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
