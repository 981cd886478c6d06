"""Where f(x) = Σ_k (xᵀ V_k x)² is largest on the sphere: power and Newton steps from many starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from contrica.rows.threads import one_thread

__all__ = ["Climb", "MixedSubspace", "Subspace", "distinct", "maximisers", "n_upper"]

# Two unit vectors with |cosine| above this are one vector found twice: converged iterates of one
# maximiser agree far better, and distinct maximisers are further apart.
SAME_COSINE = 1 - 1e-6
# Batches of starts at most, and how many of them together must bring nothing new to end the search.
MAX_BATCHES = 8
QUIET_BATCHES = 2
# Power steps before Newton steps, which cost far more each, take over.
POWER_STEPS = 60
# Every so many power steps, starts this close to each other, which are on their way to one
# maximiser, are merged.
MERGE_EVERY = 15
NEAR_COSINE = 0.99
# Newton steps this close to a maximiser that is known, or to each other, would end as one.
CLOSE_COSINE = 1 - 1e-4
# A curvature smaller than this is taken for this: where f is flat rounding must not make a step.
FLAT = 1e-6
# A slope as small as this is zero to rounding.
LEVEL = 1e-13
# A Newton step shorter than this, towards a maximiser, needs no other to compare with.
SHORT_STEP = 0.1


class Climb(NamedTuple):
    """Where starts ended: unit points as columns, f there, length of the last Newton step."""

    points: np.ndarray
    heights: np.ndarray
    steps: np.ndarray
    n_iter: int

    def joined(self, other: Climb) -> Climb:
        """Both lists in one, the highest first."""
        both = Climb(
            np.hstack([self.points, other.points]),
            np.concatenate([self.heights, other.heights]),
            np.concatenate([self.steps, other.steps]),
            self.n_iter + other.n_iter,
        )
        return both.take(np.argsort(-both.heights, kind="stable"))

    def take(self, which: Sequence[int] | np.ndarray) -> Climb:
        """Some of the points."""
        index = np.asarray(which, dtype=int)
        return Climb(self.points[:, index], self.heights[index], self.steps[index], self.n_iter)


def n_upper(heights: np.ndarray) -> int:
    """How many of a noisy round's maximisers are taken: the higher half, lest noise come early."""
    return (heights.size + 1) // 2


def maximisers(
    subspace: Subspace,
    n_starts: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    likely: np.ndarray | None = None,
) -> Climb:
    """Local maximisers of f, the highest first, from batches of starts until the list settles.

    It has settled when as many starts as `QUIET_BATCHES` have add nothing to its upper part. One rare
    maximiser can still be missed by all, so this makes dependence on the starts less frequent, not
    impossible. Points near ``likely`` maximisers take the place of a first batch.
    """
    p = subspace.n_features
    known = Climb(np.empty((p, 0)), np.empty(0), np.empty(0), 0)
    if likely is not None and likely.shape[1]:
        ends = subspace.climb(likely, max_iter, tol)
        known = known.joined(ends.take(distinct(ends.points, known.points)))
    for _ in range(MAX_BATCHES):
        number = n_starts * (QUIET_BATCHES if known.heights.size else 1)
        starts = _unit(rng.standard_normal((p, number)))
        near = subspace.approach(starts, known.points)
        fresh = subspace.climb(near, max_iter, tol, known.points)
        fresh = fresh.take(distinct(fresh.points, known.points))
        upper = known.heights[: n_upper(known.heights)]
        settled = upper.size > 0 and not np.any(fresh.heights > upper[-1])
        known = known.joined(fresh)._replace(n_iter=known.n_iter + fresh.n_iter + POWER_STEPS)
        if settled:
            break
    return known


def distinct(points: np.ndarray, taken: np.ndarray, same_cosine: float = SAME_COSINE) -> list[int]:
    """Columns of ``points`` that repeat neither an earlier one nor one of ``taken``."""
    free = np.all(np.abs(points.T @ taken) <= same_cosine, axis=1)
    apart = np.abs(points.T @ points) <= same_cosine
    kept: list[int] = []
    for i in np.flatnonzero(free):
        if free[i]:
            kept.append(int(i))
            free &= apart[i]
    return kept


class _Points(NamedTuple):
    """Unit points as rows, their images ``V_k x``, ``(n, r, p)``, ``xᵀ V_k x``, ``(n, r)``, and f."""

    points: np.ndarray
    images: np.ndarray
    coordinates: np.ndarray
    heights: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray, images: np.ndarray) -> _Points:
        """With what follows from the images."""
        coordinates = (images @ points[:, :, None])[:, :, 0]
        return cls(points, images, coordinates, np.einsum("nr,nr->n", coordinates, coordinates))

    def gradients(self) -> np.ndarray:
        """Of f/4: ``P(x xᵀ) x``."""
        return np.asarray((self.coordinates[:, None, :] @ self.images)[:, 0, :])

    def take(self, which: np.ndarray) -> _Points:
        """Some of the points."""
        return _Points(*(part[which] for part in self))


class Subspace:
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
        single = Subspace(self.matrices.astype(np.float32))
        ends = points.T.astype(np.float32)
        # OpenBLAS's SkylakeX kernel for a single-precision matrix of five columns times a vector reads
        # memory that it then masks: the product is right, but "invalid value" may be raised.
        with np.errstate(invalid="ignore"):
            for step in range(1, POWER_STEPS + 1):
                here = single._evaluate(ends)
                ends = _unit_rows(here.gradients())
                if step % MERGE_EVERY == 0:
                    # Should two maximisers share a neighbourhood, deflation leaves one to a later round.
                    ends = ends[distinct(ends.T, known, NEAR_COSINE)]
                    if not len(ends):
                        break
        return _unit_rows(ends.astype(float)).T

    def climb(
        self, points: np.ndarray, max_iter: int, tol: float, known: np.ndarray | None = None
    ) -> Climb:
        """Newton steps from all points together until they are shorter than ``tol``.

        Where maximisers are known, points that come close to one of them, or to each other, are left out.
        """
        ends = points.T.copy()
        heights, steps = np.empty(len(ends)), np.full(len(ends), np.inf)
        active, here = np.arange(len(ends)), self._evaluate(ends)
        left_out = np.zeros(len(ends), dtype=bool)
        n_iter = 0
        while active.size and n_iter < max_iter:
            here, lengths = self._newton_step(here)
            ends[active], heights[active], steps[active] = here.points, here.heights, lengths
            going = lengths > tol
            if known is not None:
                others = distinct(here.points.T, known, CLOSE_COSINE)
                alone = np.zeros(active.size, dtype=bool)
                alone[others] = True
                left_out[active] = ~alone
                going &= alone
            if not going.all():
                active, here = active[going], here.take(going)
            n_iter += 1
        kept = ~left_out
        return Climb(ends[kept].T, heights[kept], steps[kept], n_iter)

    def _evaluate(self, points: np.ndarray) -> _Points:
        r, p = self.matrices.shape[:2]
        return _Points.of(points, (points @ self.matrices.reshape(r * p, p).T).reshape(-1, r, p))

    def _newton_step(self, here: _Points) -> tuple[_Points, np.ndarray]:
        """One ascent step of ``φ = f/4`` on the sphere for every point, and its length.

        ``∇φ = P(xxᵀ)x`` and ``∇²φ = P(xxᵀ) + 2 Σ_k (V_k x)(V_k x)ᵀ``; on the sphere the Hessian is
        ``Π ∇²φ Π − f I``. Curvatures enter by absolute value, so the step climbs at saddles too; where
        all are negative, as near a maximiser, that is Newton's step itself, and a Cholesky factor gives
        it.
        """
        gradients = here.gradients()
        steps, below = self._ascent(here, gradients)
        lengths = np.linalg.norm(steps, axis=1)
        steps *= np.minimum(1.0, 0.5 / np.maximum(lengths, 0.5))[:, None]
        reached = self._evaluate(_unit_rows(here.points + steps))
        # Near a maximiser the whole step gains what it promises, and no other can gain more.
        gains = reached.heights - here.heights
        promised = 2 * np.einsum("ni,ni->n", gradients, steps)
        sound = below & (lengths < SHORT_STEP) & (gains > 0.75 * promised - 1e-14)
        doubtful = np.flatnonzero(~sound)
        if doubtful.size:
            better = self._best_of_several(
                here.take(doubtful), gradients[doubtful], steps[doubtful], reached.take(doubtful)
            )
            for mine, others in zip(reached, better, strict=True):
                mine[doubtful] = others
        return reached, lengths

    def _ascent(self, here: _Points, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``|Hessian|⁻¹ gradient`` on the sphere, and whether all curvatures are surely negative."""
        eye = np.eye(self.n_features)
        minus = self._minus_hessians(here, gradients)
        slopes = gradients - here.heights[:, None] * here.points
        steps, below = np.empty_like(slopes), np.zeros(len(slopes), dtype=bool)
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

    def _minus_hessians(self, here: _Points, gradients: np.ndarray) -> np.ndarray:
        """``f I − Π ∇²φ Π`` with ``Π = I − x xᵀ`` and ``∇²φ x = 3 ∇φ``, ``(n, p, p)``."""
        points, images, coordinates, heights = here
        r, p = self.matrices.shape[:2]
        minus = (-coordinates @ self.matrices.reshape(r, p * p)).reshape(-1, p, p)
        minus -= 2 * (images.transpose(0, 2, 1) @ images)
        sides = 3 * gradients - 1.5 * heights[:, None] * points
        crossed = points[:, :, None] * sides[:, None, :]
        minus += crossed
        minus += crossed.transpose(0, 2, 1)
        minus[:, np.arange(p), np.arange(p)] += heights[:, None]
        return minus

    def _best_of_several(
        self, here: _Points, gradients: np.ndarray, steps: np.ndarray, whole: _Points
    ) -> _Points:
        """The highest of the ``whole`` steps' ends, of shorter steps and the power step."""
        ends = [_unit_rows(here.points + t * steps) for t in (0.3, 0.1)]
        ends.append(_unit_rows(gradients))
        tried = [whole, *(self._evaluate(end) for end in ends)]
        heights = np.array([points.heights for points in tried])
        heights[0] += 1e-14  # at the top all are equal to rounding: keep the Newton step
        best, each = heights.argmax(axis=0), np.arange(len(steps))
        return _Points(*(np.array(parts)[best, each] for parts in zip(*tried, strict=True)))


class MixedSubspace(Subspace):
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

    def _evaluate(self, points: np.ndarray) -> _Points:
        r, p = self.matrices.shape[:2]
        images = (points @ self.matrices.reshape(r * p, p).T).reshape(-1, r, p)
        return _Points.of(points, self.mixing.T @ images)

    def _ascent(self, here: _Points, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of a subspace, by conjugate gradients; where a curvature is not negative, they stop there.

        They are preconditioned by what minus the Hessian is inside the axes, and by f outside of them.
        """
        points, images, coordinates, heights = here
        r, p = self.matrices.shape[:2]
        m = self.axes.shape[1]
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
    """Newton's step, the more exact the shorter the slope, and whether all curvatures met are negative.

    Where one is not, it stops with what it has, which leads up.
    """
    start = float(np.linalg.norm(slope))
    enough = max(start * min(0.1, start), LEVEL)
    step, left = np.zeros_like(slope), slope.copy()
    soft = minus.roughly_solved(left)
    direction, energy = soft, float(left @ soft)
    for _ in range(slope.size):  # after so many they are exact
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


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=0)


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.sqrt(np.einsum("ni,ni->n", vectors, vectors))[:, None])
