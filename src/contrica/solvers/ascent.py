"""Maxima of a function of rotations, from many starts at once.

A turn of the sources ``s = Rᵀx`` by the angle ``θ_ij`` in the plane of two of them is ``R exp(θ)`` with a
skew matrix θ, whatever R is. Were the sources independent, the second derivatives of a sum over sources
by these angles would be a diagonal matrix with entries ``c_i + c_j``, and the gradient has what is needed
to know it. Divided by it, the gradient leads in a few steps to where a quasi-Newton method needs many;
the steps made so far then say what the diagonal does not (as in Picard, for likelihoods: Ablin, Cardoso
and Gramfort, "Faster independent component analysis by preconditioning with Hessian approximations",
2018). No step goes down.

All starts take their steps together, so that one product with the rows serves all of them, and each
takes those that it would take alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Heights", "Maximum", "Measure", "climb"]

# Steps that tell of second derivatives.
REMEMBERED = 10
# Second derivative at least, as a share of the largest: where the function is not concave there is none.
MIN_CURVATURE = 0.05
# Angle of the first step tried, at most.
MAX_ANGLE = 0.3
# Share of the promised gain that a step must have, and shorter ones tried until the gradient is followed.
ENOUGH, MAX_SHORTER = 1e-4, 10
# Losses below this share of the value are rounding.
ROUNDING = 1e-14


class Heights(NamedTuple):
    """What a function says of some rotations.

    Attributes
    ----------
    values : ndarray of shape (s,)
    slopes : ndarray of shape (s, d, d)
        By how much it rises where a multiple of one source is added to another: of the i-th to the j-th.
    curvatures : ndarray of shape (s, d)
        The c: second derivative by the angle between two independent sources is the sum of theirs.
    """

    values: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray


# Takes rotations, an array of shape (s, d, d).
Measure = Callable[[np.ndarray], Heights]


class Maximum(NamedTuple):
    """Where a start has led to.

    Attributes
    ----------
    turn : ndarray of shape (d, d)
    value : float
    n_iter : int
        Steps.
    gradient_norm : float
        Largest entry of the gradient, over the value.
    """

    turn: np.ndarray
    value: float
    n_iter: int
    gradient_norm: float


def climb(measure: Measure, starts: np.ndarray, *, max_iter: int, tol: float) -> list[Maximum]:
    """Up from every start to a maximum of a positive function of rotations.

    Parameters
    ----------
    measure : callable
    starts : ndarray of shape (s, d, d)
        Rotations.
    max_iter : int
        Most steps from one start.
    tol : float
        Largest entry of the gradient, over the value, at which a search ends; it also ends where the
        function rises by rounding only.

    Returns
    -------
    list of Maximum
        In the order of the starts.
    """
    way = _Ascents(starts, measure(starts))
    tops: dict[int, Maximum] = {}
    while True:
        ended = way.ended(max_iter, tol)
        tops |= {int(way.number[i]): way.top(int(i)) for i in np.flatnonzero(ended)}
        if ended.all():
            return [tops[i] for i in range(len(starts))]
        way.leave(ended)
        way.step(measure)


class _Ascents:
    """Where starts have come to, one in each entry of every array, and the step that is tried next."""

    def __init__(self, starts: np.ndarray, found: Heights) -> None:
        count, d = len(starts), starts.shape[1]
        self.number, self.n_iter, self.shorter = np.arange(count), *np.zeros((2, count), dtype=int)
        self.at_its_top = np.zeros(count, dtype=bool)
        self.turn, self.value = starts.copy(), found.values.copy()
        self.slope, self.curvature = _gradient(found), _curvature(found)
        # steps, by how much the gradient fell, and one over their product: 0 where there is none
        self.steps, self.falls = np.zeros((2, count, REMEMBERED, d, d))
        self.inverse = np.zeros((count, REMEMBERED))
        self.direction = self.slope / self.curvature
        self.length, self.rise = np.zeros((2, count))
        self._begin(np.ones(count, dtype=bool))

    @property
    def gradient_norm(self) -> np.ndarray:
        """Largest entry of each gradient, over the value."""
        largest = np.abs(self.slope).max(axis=(1, 2))
        return np.asarray(largest / np.maximum(self.value, np.finfo(float).tiny))

    def ended(self, max_iter: int, tol: float) -> np.ndarray:
        """Which starts have come to their end."""
        return self.at_its_top | (self.gradient_norm <= tol) | (self.n_iter >= max_iter)

    def top(self, i: int) -> Maximum:
        """Where one of them has come to."""
        norm = float(self.gradient_norm[i])
        return Maximum(self.turn[i], float(self.value[i]), int(self.n_iter[i]), norm)

    def leave(self, ended: np.ndarray) -> None:
        """Go on without some."""
        if ended.any():
            for name, array in list(vars(self).items()):
                setattr(self, name, array[~ended])

    def step(self, measure: Measure) -> None:
        """Try a step of each, and take those that rise as far as the slope promises."""
        moved = self.length[:, None, None] * self.direction
        turn = self.turn @ _rotation(moved)
        found = measure(turn)
        gain, promised = found.values - self.value, self.length * self.rise
        rises = gain >= ENOUGH * promised - ROUNDING * self.value
        self._remember(rises, moved, self.slope - _gradient(found))
        for own, new in (
            (self.turn, turn),
            (self.value, found.values),
            (self.slope, _gradient(found)),
            (self.curvature, _curvature(found)),
        ):
            own[rises] = new[rises]
        self.n_iter += rises
        if rises.any():
            self.direction[rises] = self._direction()[rises]
            self._begin(rises)
        if not rises.all():
            self._shorten(~rises, gain, promised)

    def _remember(self, rises: np.ndarray, moved: np.ndarray, fell: np.ndarray) -> None:
        """Keep the last steps that say how the gradient falls."""
        product = _inner(moved, fell)
        tells = rises & (product > np.finfo(float).eps * _inner(fell, fell))
        news = (
            (self.steps, moved),
            (self.falls, fell),
            (self.inverse, 1 / np.where(tells, product, 1.0)),
        )
        for kept, new in news:
            kept[tells, :-1] = kept[tells, 1:]
            kept[tells, -1] = new[tells]

    def _direction(self) -> np.ndarray:
        """The gradient over second derivatives, by the two loops of limited-memory BFGS."""
        left, shares = self.slope, []
        for k in reversed(range(REMEMBERED)):
            shares.append(self.inverse[:, k] * _inner(self.steps[:, k], left))
            left = left - shares[-1][:, None, None] * self.falls[:, k]
        found = left / self.curvature
        for k, share in enumerate(reversed(shares)):
            more = share - self.inverse[:, k] * _inner(self.falls[:, k], found)
            found = found + more[:, None, None] * self.steps[:, k]
        return np.asarray(found)

    def _begin(self, some: np.ndarray) -> None:
        """Along new directions of some: how far to go first, and what that promises."""
        if not some.any():
            return
        down = some & (_inner(self.slope, self.direction) <= 0)
        self._forget(down)
        largest = np.abs(self.direction).max(axis=(1, 2))
        first = np.minimum(1.0, MAX_ANGLE / np.maximum(largest, np.finfo(float).tiny))
        self.length[some] = first[some]
        self.rise[some] = _inner(self.slope, self.direction)[some]
        self.shorter[some] = 0
        self.at_its_top |= some & (self.rise <= np.finfo(float).eps * self.value)

    def _forget(self, some: np.ndarray) -> None:
        self.inverse[some] = 0.0
        self.direction[some] = (self.slope / self.curvature)[some]

    def _shorten(self, some: np.ndarray, gain: np.ndarray, promised: np.ndarray) -> None:
        """To where a parabola through what is known has its top; in the end, along the gradient anew."""
        top = 0.5 * promised / np.maximum(promised - gain, np.finfo(float).tiny)
        self.length[some] *= np.clip(top, 0.1, 0.5)[some]
        self.shorter += some
        lost = some & (self.shorter >= MAX_SHORTER)
        # nothing is higher along the gradient itself
        self.at_its_top |= lost & ~self.inverse.any(axis=1)
        self._forget(lost)
        self._begin(lost)


def _gradient(found: Heights) -> np.ndarray:
    """By the angles: a skew matrix each."""
    return np.asarray(found.slopes - found.slopes.transpose(0, 2, 1))


def _curvature(found: Heights) -> np.ndarray:
    """How fast the gradient falls with each angle, at least a share of where it falls fastest."""
    both = -(found.curvatures[:, :, None] + found.curvatures[:, None, :])
    size = np.abs(both)
    largest = size.max(axis=(1, 2), keepdims=True)
    return np.asarray(np.maximum(size, np.maximum(MIN_CURVATURE * largest, np.finfo(float).tiny)))


def _inner(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of angles, each of which a skew matrix has twice."""
    return np.asarray(0.5 * np.einsum("sij,sij->s", one, other))


def _rotation(angles: np.ndarray) -> np.ndarray:
    """``(I − K)⁻¹ (I + K)`` of half the angles: as exp, but for the third power of the angles."""
    half, eye = 0.5 * angles, np.eye(angles.shape[1])
    return np.linalg.solve(eye - half, eye + half)
