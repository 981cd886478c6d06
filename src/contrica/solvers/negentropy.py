"""ICA of whitened rows, by how far from Gaussian the sources are.

A sum of independent sources is nearer to a Gaussian than each of them, so the rotation that takes its
sources farthest from Gaussian separates them. The distance is Hyvärinen's approximation of negentropy by
two moments that outliers hardly change, ``J = Σ_j [k₂ (E g(s_j) − E g(ν))² + w k₁ (E s_j g(s_j))²]``
with ``g(s) = exp(−s²/2)`` and ν standard normal: how heavy the tails are, and how skewed. Constants
k₁ and k₂ are those of the approximation, in which w = 1. A source that is present in some rows and absent
from others, or present in varying strength, is split by a large w, and Gaussian tails leave nothing to
separate by without any: w is small (docs/ablations.md).

FastICA looks for a stationary point of ``Σ |E G(s_j) − E G(ν)|`` by fixed-point steps, which need not
raise it and on real data may never converge. Here J itself is maximised over the orthogonal matrices,
by a quasi-Newton method that cannot go down; with the squares most starts lead to one and the same
maximum, and the best of a few does.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from contrica.rows.device import like, namespace, to_numpy
from contrica.rows.moving import rows_pay_on_card, there
from contrica.rows.threads import ALONE, Team, team
from contrica.validation import check_count, check_scale

__all__ = ["Rotation", "farthest_from_gaussian", "negentropy"]

# E exp(−ν²/2) of a standard normal ν
GAUSSIAN = 2**-0.5
# k₂ and k₁
TAIL_CONSTANT, SKEWNESS_CONSTANT = 24 / (16 * 3**0.5 - 27), 36 / (8 * 3**0.5 - 9)
# w: tails decide, and skewness where tails are those of a Gaussian
SKEWNESS_WEIGHT = 0.01
# Random starts, and the rows on which they are followed; the best one goes on to the end on all rows. On
# fewer rows the highest maximum is often another one than on all.
N_STARTS, SEARCH_ROWS = 8, 10_000
# Slope at which one maximum can be told from another; only the last search goes on to ``tol``.
ROUGHLY = 1e-3
# Steps after which rotations are written about a new one.
STEPS_ABOUT_ONE = 50
# Rows in a block, which stays in the cache.
ROWS_IN_BLOCK = 1000
# Threads wait for one another while numpy keeps the interpreter, in few dimensions most of the time.
THREADS, THREADED_DIMENSIONS = 2, 40


class Rotation(NamedTuple):
    """An orthogonal matrix whose columns are filters of independent sources.

    Attributes
    ----------
    matrix : ndarray of shape (d, d)
    negentropy : float
        J of the sources.
    n_iter : int
        Steps from the start that won.
    gradient_norm : float
        Largest entry of the gradient where it ended, over J.
    """

    matrix: np.ndarray
    negentropy: float
    n_iter: int
    gradient_norm: float


def negentropy(sources: np.ndarray, skewness_weight: float = SKEWNESS_WEIGHT) -> float:
    """How far sources of mean 0 and variance 1 are from Gaussian, all together.

    Parameters
    ----------
    sources : ndarray of shape (n, d)
    skewness_weight : float
        w.

    Returns
    -------
    float
        J; 0 for Gaussian sources.

    Examples
    --------
    >>> import numpy as np
    >>> round(negentropy(np.array([[1.0], [-1.0]])), 4)
    0.3406
    """
    kernels = np.exp(-0.5 * sources**2)
    return _distance(
        kernels.mean(axis=0) - GAUSSIAN, (sources * kernels).mean(axis=0), skewness_weight
    )


def _distance(tails: np.ndarray, skewness: np.ndarray, skewness_weight: float) -> float:
    """J from both moments of every source, less those of a Gaussian."""
    return float(
        TAIL_CONSTANT * tails @ tails + skewness_weight * SKEWNESS_CONSTANT * skewness @ skewness
    )


def farthest_from_gaussian(
    whitened: np.ndarray,
    *,
    rng: np.random.Generator,
    skewness_weight: float = SKEWNESS_WEIGHT,
    n_starts: int = N_STARTS,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> Rotation:
    """The rotation of whitened rows with the largest negentropy that random starts lead to.

    Parameters
    ----------
    whitened : ndarray of shape (n, d)
        Rows of mean 0 whose columns are uncorrelated and of variance 1.
    rng : numpy.random.Generator
        Draws the starts.
    skewness_weight : float
        w.
    n_starts : int
        Random rotations. They are followed on the same 10 000 rows, and the best one to the end on all.
    max_iter : int
        Most steps from one start, and again for the last part on all rows.
    tol : float
        Largest entry of the gradient, over J, at which the search ends; it also ends where J does not
        rise any more.

    Returns
    -------
    Rotation

    References
    ----------
    Hyvärinen, "Fast and robust fixed-point algorithms for independent component analysis", 1999.
    Miettinen, Nordhausen, Oja, Taskinen and Virta, "The squared symmetric FastICA estimator", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.choice([-1.0, 1.0], (5000, 2))
    >>> turned = s @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    >>> found = farthest_from_gaussian(turned, rng=rng).matrix
    >>> np.abs(found).max(axis=0).round(1), found.shape
    (array([0.8, 0.8]), (2, 2))
    """
    check_count("n_starts", n_starts)
    check_count("max_iter", max_iter)
    check_scale("tol", tol)
    d = whitened.shape[1]
    if d == 1:
        return Rotation(np.ones((1, 1)), negentropy(whitened, skewness_weight), 0, 0.0)
    some = _drawn(whitened, SEARCH_ROWS)
    starts = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(n_starts)]
    by_card = rows_pay_on_card(some.size)
    with team(THREADS if d >= THREADED_DIMENSIONS and not by_card else 1) as threads:
        rough = _CardRows(some) if by_card else None
        tried = threads.map(
            lambda each: _ascend(
                rough or _Rows(some), each, skewness_weight, max_iter, max(tol, ROUGHLY)
            ),
            starts,
        )
        best = max(tried, key=lambda found: found.negentropy)
        rows = _CardRows(whitened) if by_card else _Rows(whitened, threads)
        last = _ascend(rows, best.matrix, skewness_weight, max_iter, tol)
    return last._replace(n_iter=best.n_iter + last.n_iter)


def _drawn(rows: np.ndarray, limit: int) -> np.ndarray:
    """At most so many rows; the same ones whatever the starts: others would prefer other maxima."""
    if len(rows) <= limit:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), limit, replace=False)]


class _Rows:
    """J of whitened rows, turned, and its derivative: block by block, each small enough for the cache.

    A block holds its rows as columns, so that sums over rows run along memory. Of ``s = Bᵀx`` the
    moments are ``t = E exp(−s²/2) − E exp(−ν²/2)`` and ``l = E s exp(−s²/2)``, and with the constants
    of J in ``a = k₂ t`` and ``b = w k₁ l`` the derivative by B is
    ``2 E x [(b (1 − s²) − a s) exp(−s²/2)]``.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    threads : Team
        Have a share of the blocks each.
    """

    def __init__(self, rows: np.ndarray, threads: Team = ALONE) -> None:
        self.n, d = rows.shape
        count = -(-self.n // ROWS_IN_BLOCK)
        size = -(-self.n // count)
        # Blocks of one size, for which rows of zeros are added. Each has a kernel of 1 and nothing else.
        self._added = count * size - self.n
        padded = np.concatenate([rows, np.zeros((self._added, d))])
        blocks = np.ascontiguousarray(padded.reshape(count, size, d).transpose(0, 2, 1))
        n_shares = min(threads.size, count)
        ends = np.linspace(0, count, n_shares + 1).astype(int)
        self._shares = [_Share(blocks[start:stop]) for start, stop in pairwise(ends)]
        self._map = threads.map if n_shares > 1 else ALONE.map

    def _moments(self, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turned = np.ascontiguousarray(turn.T)
        tails, skewness = np.sum(
            self._map(lambda share: share.moments(turned), self._shares), axis=0
        )
        return (tails - self._added) / self.n - GAUSSIAN, skewness / self.n

    def value(self, turn: np.ndarray, skewness_weight: float) -> float:
        """J of the sources that the columns of a matrix filter out."""
        return _distance(*self._moments(turn), skewness_weight)

    def slope(self, turn: np.ndarray, skewness_weight: float) -> tuple[float, np.ndarray]:
        """J, and its derivative by every entry of the matrix."""
        tails, skewness = self._moments(turn)
        a, b = TAIL_CONSTANT * tails, skewness_weight * SKEWNESS_CONSTANT * skewness
        slopes = self._map(lambda share: share.slope(a, b), self._shares)
        return _distance(tails, skewness, skewness_weight), np.sum(slopes, axis=0).T * (2 / self.n)


class _CardRows:
    """As `_Rows`, of rows on the card that a fit works on, which has room for all of them at once.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    """

    def __init__(self, rows: np.ndarray) -> None:
        self.n, self._rows = len(rows), there(rows)

    def _kernels(self, turn: np.ndarray) -> tuple[Any, Any, np.ndarray, np.ndarray]:
        """Sources, ``exp(−s²/2)`` of them, and t and l."""
        xp = namespace(self._rows)
        sources = self._rows @ like(self._rows, turn)
        kernels = xp.exp(sources * sources * -0.5)
        both = xp.stack([xp.mean(kernels, axis=0), xp.mean(sources * kernels, axis=0)])
        tails, skewness = to_numpy(both)
        return sources, kernels, tails - GAUSSIAN, skewness

    def value(self, turn: np.ndarray, skewness_weight: float) -> float:
        """J of the sources that the columns of a matrix filter out."""
        return _distance(*self._kernels(turn)[2:], skewness_weight)

    def slope(self, turn: np.ndarray, skewness_weight: float) -> tuple[float, np.ndarray]:
        """J, and its derivative by every entry of the matrix."""
        sources, kernels, tails, skewness = self._kernels(turn)
        a = like(sources, TAIL_CONSTANT * tails)
        b = like(sources, skewness_weight * SKEWNESS_CONSTANT * skewness)
        weights = ((sources * b + a) * sources - b) * kernels
        slope = to_numpy(self._rows.T @ weights) * (-2 / self.n)
        return _distance(tails, skewness, skewness_weight), slope


class _Share:
    """Blocks that one thread works on, and room for it."""

    def __init__(self, blocks: np.ndarray) -> None:
        self._blocks = blocks
        self._sources, self._kernels = np.empty((2, *blocks.shape))
        self._room = np.empty((3, *blocks.shape[1:]))

    def moments(self, turned: np.ndarray) -> np.ndarray:
        """Sums of kernels, and of sources times kernels."""
        tails, skewness = sums = np.zeros((2, len(turned)))
        ones = np.ones(self._blocks.shape[2])
        for block, sources, kernels in zip(self._blocks, self._sources, self._kernels, strict=True):
            np.matmul(turned, block, out=sources)
            np.multiply(sources, sources, out=kernels)
            kernels *= -0.5
            # Doubles: with singles the rounding of rows, another for every container, would show.
            np.exp(kernels, out=kernels)
            tails += kernels @ ones
            skewness += (sources[:, None, :] @ kernels[:, :, None])[:, 0, 0]
        return sums

    def slope(self, at: np.ndarray, bt: np.ndarray) -> np.ndarray:
        """``Σ [(b (1 − s²) − a s) exp(−s²/2)] xᵀ`` of the sources of the last `moments`."""
        # written out for a block: numpy is slow where one side of a product repeats
        a, b, weights = self._room
        a[:], b[:] = at[:, None], bt[:, None]
        slope = np.zeros((len(at), len(at)))
        for block, sources, kernels in zip(self._blocks, self._sources, self._kernels, strict=True):
            # − exp(−s²/2) ((b s + a) s − b)
            np.multiply(sources, b, out=weights)
            weights += a
            weights *= sources
            weights -= b
            weights *= kernels
            slope -= weights @ block.T
        return slope


def _ascend(
    rows: _Rows | _CardRows, start: np.ndarray, skewness_weight: float, max_iter: int, tol: float
) -> Rotation:
    """Up to a maximum of J, with rotations written anew about where the search has come to.

    Far from the rotation that others are written about, Cayley's transform makes slopes small, and a
    search can crawl towards turns that it cannot write.
    """
    n_iter, before = 0, 0.0
    while True:
        steps = min(STEPS_ABOUT_ONE, max_iter - n_iter)
        found = _about(rows, start, skewness_weight, steps, tol)
        n_iter += found.n_iter
        # where J rises by rounding only, no steps lead further up
        at_its_top = found.n_iter == 0 or found.negentropy <= before * (1 + 1e-13)
        if at_its_top or n_iter >= max_iter:
            return found._replace(n_iter=n_iter)
        start, before = found.matrix, found.negentropy


def _about(
    rows: _Rows | _CardRows, start: np.ndarray, skewness_weight: float, max_iter: int, tol: float
) -> Rotation:
    """Up from a start, with rotations written by Cayley's transform about it."""
    d = len(start)
    upper = np.triu_indices(d, 1)
    eye = np.eye(d)
    # J is measured in units of what the start has
    scale = 1 / max(rows.value(start, skewness_weight), np.finfo(float).tiny)

    def turn(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``(I − K)⁻¹ (I + K) = 2 (I − K)⁻¹ − I`` of a skew matrix K, and the inverse."""
        skew = np.zeros((d, d))
        skew[upper] = parameters / 2
        inverse = np.linalg.inv(eye - skew + skew.T)
        return 2 * inverse - eye, inverse

    def descent(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        rotation, inverse = turn(parameters)
        value, by_turn = rows.slope(start @ rotation, skewness_weight)
        # dR = 2 (I − K)⁻¹ dK (I − K)⁻¹
        by_skew = inverse.T @ (start.T @ by_turn) @ inverse.T
        return -scale * value, -scale * (by_skew - by_skew.T)[upper]

    options = {"maxiter": max_iter, "gtol": tol, "ftol": 1e-3 * tol**2, "maxcor": 20}
    found = minimize(descent, np.zeros(upper[0].size), jac=True, method="L-BFGS-B", options=options)
    slope = float(np.abs(found.jac).max() / max(-found.fun, np.finfo(float).tiny))
    turned = start @ turn(found.x)[0]
    return Rotation(turned, -float(found.fun) / scale, int(found.nit), slope)
