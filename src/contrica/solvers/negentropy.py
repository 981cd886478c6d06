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
by a quasi-Newton method that cannot go down (`contrica.solvers.ascent`); with the squares most starts
lead to one and the same maximum, and the best of a few does.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from contrica.rows.device import like, namespace, to_numpy
from contrica.rows.moving import rows_pay_on_card, there
from contrica.rows.threads import ALONE, Team, team
from contrica.solvers.ascent import Heights, Maximum, climb
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
N_STARTS, SEARCH_ROWS = 12, 10_000
# Slope at which one maximum can be told from another; only the last search goes on to ``tol``.
ROUGHLY = 1e-3
# Entries of all rotations that are followed together: in few dimensions steps are small work.
TOGETHER = 2**16
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
    moments = kernels.mean(axis=0) - GAUSSIAN, (sources * kernels).mean(axis=0)
    return float(_distance(*moments, skewness_weight))


def _distance(tails: np.ndarray, skewness: np.ndarray, skewness_weight: float) -> np.ndarray:
    """J from both moments of every source, less those of a Gaussian."""
    parts = TAIL_CONSTANT * tails**2 + skewness_weight * SKEWNESS_CONSTANT * skewness**2
    return np.asarray(parts.sum(axis=-1))


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
    starts = np.linalg.qr(rng.standard_normal((n_starts, d, d)))[0]
    by_card = rows_pay_on_card(some.size)
    with team(THREADS if d >= THREADED_DIMENSIONS and not by_card else 1) as threads:
        rough = _CardRows(some) if by_card else None

        def search(own: np.ndarray) -> list[Maximum]:
            rows = rough or _Rows(some)
            measure = partial(rows.heights, skewness_weight=skewness_weight)
            return climb(measure, own, max_iter=max_iter, tol=max(tol, ROUGHLY))

        size = 1 if threads.size > 1 else max(TOGETHER // d**2, 1)
        parts = [starts[i : i + size] for i in range(0, n_starts, size)]
        tried = [top for tops in threads.map(search, parts) for top in tops]
        best = max(tried, key=lambda top: top.value)
        rows = _CardRows(whitened) if by_card else _Rows(whitened, threads)
        measure = partial(rows.heights, skewness_weight=skewness_weight)
        last = climb(measure, best.turn[None], max_iter=max_iter, tol=tol)[0]
    return Rotation(last.turn, last.value, best.n_iter + last.n_iter, last.gradient_norm)


def _drawn(rows: np.ndarray, limit: int) -> np.ndarray:
    """At most so many rows; the same ones whatever the starts: others would prefer other maxima."""
    if len(rows) <= limit:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), limit, replace=False)]


def _repeated(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows without copies of others, and how often each is there; of a resample a third are copies.

    ``None`` where none was found; rows that agree in the first column only may hide some.
    """
    order = np.argsort(rows[:, 0], kind="stable")
    same = np.diff(rows[order, 0]) == 0
    if same.any():
        ordered = rows[order]
        same &= (ordered[1:] == ordered[:-1]).all(axis=1)
    if not same.any():
        return rows, None
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    counts = np.diff(np.append(first, len(rows)))
    return ordered[first], counts.astype(float)


def _heights(
    tails: np.ndarray, skewness: np.ndarray, slopes: np.ndarray, skewness_weight: float
) -> Heights:
    """J from moments of every source, with its derivatives.

    ``slopes`` are ``E s_i [(b (1 − s_j²) − a s_j) exp(−s_j²/2)]`` with a and b of `_factors`, half of
    what J rises by where the i-th source is added to the j-th. Where sources are independent, moments
    of two factorise, and the second derivatives by angles follow from the same numbers.
    """
    a, b = _factors(tails, skewness, skewness_weight)
    own = slopes[..., range(slopes.shape[-1]), range(slopes.shape[-1])]
    curvatures = -4 * own - 2 * a * (tails + GAUSSIAN) - 4 * b * skewness
    return Heights(_distance(tails, skewness, skewness_weight), 2 * slopes, curvatures)


def _factors(tails: Any, skewness: Any, skewness_weight: float) -> tuple[Any, Any]:
    """``a = k₂ t`` and ``b = w k₁ l``."""
    return TAIL_CONSTANT * tails, skewness_weight * SKEWNESS_CONSTANT * skewness


class _Rows:
    """J of whitened rows, turned, and its derivatives: block by block, each small enough for the cache.

    A block holds its rows as columns, so that sums over rows run along memory. Of ``s = Bᵀx`` the
    moments are ``t = E exp(−s²/2) − E exp(−ν²/2)`` and ``l = E s exp(−s²/2)``.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    threads : Team
        Have a share of the blocks each.
    """

    def __init__(self, rows: np.ndarray, threads: Team = ALONE) -> None:
        self.n = len(rows)
        rows, counts = _repeated(rows)
        count = -(-len(rows) // ROWS_IN_BLOCK)
        size = -(-len(rows) // count)
        # Blocks of one size, for which rows of zeros are added. Each has a kernel of 1 and nothing else;
        # where rows are counted, it is there 0 times.
        self._added = count * size - len(rows) if counts is None else 0
        blocks = _blocks(rows, count, size)
        weights = None if counts is None else _blocks(counts[:, None], count, size)
        n_shares = min(threads.size, count)
        ends = np.linspace(0, count, n_shares + 1).astype(int)
        self._shares = [
            _Share(blocks[start:stop], None if weights is None else weights[start:stop])
            for start, stop in pairwise(ends)
        ]
        self._map = threads.map if n_shares > 1 else ALONE.map

    def heights(self, turns: np.ndarray, skewness_weight: float) -> Heights:
        """J of the sources that the columns of some matrices filter out, and what it rises by."""
        each = [self._height(turn, skewness_weight) for turn in turns]
        tails, skewness, slopes = (np.array(part) for part in zip(*each, strict=True))
        return _heights(tails, skewness, slopes, skewness_weight)

    def _height(self, turn: np.ndarray, skewness_weight: float) -> tuple[np.ndarray, ...]:
        turned = np.ascontiguousarray(turn.T)
        tails, skewness = np.sum(
            self._map(lambda share: share.moments(turned), self._shares), axis=0
        )
        tails, skewness = (tails - self._added) / self.n - GAUSSIAN, skewness / self.n
        a, b = _factors(tails, skewness, skewness_weight)
        slopes = self._map(lambda share: share.slope(a, b), self._shares)
        return tails, skewness, np.sum(slopes, axis=0).T / self.n


def _blocks(rows: np.ndarray, count: int, size: int) -> np.ndarray:
    """Rows in so many blocks of one size, as columns; with zeros where there are too few."""
    padded = np.concatenate([rows, np.zeros((count * size - len(rows), rows.shape[1]))])
    return np.ascontiguousarray(padded.reshape(count, size, -1).transpose(0, 2, 1))


class _CardRows:
    """As `_Rows`, of rows on the card that a fit works on, which has room for all of them at once.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    """

    def __init__(self, rows: np.ndarray) -> None:
        self.n = len(rows)
        rows, counts = _repeated(rows)
        self._rows = there(rows)
        self._counts = None if counts is None else there(counts[:, None])

    def heights(self, turns: np.ndarray, skewness_weight: float) -> Heights:
        """As of `_Rows`; sources of all matrices come from one product."""
        xp, (count, d, _) = namespace(self._rows), turns.shape
        sources = self._rows @ like(self._rows, turns.transpose(1, 0, 2).reshape(d, count * d))
        kernels = xp.exp(sources * sources * -0.5)
        if self._counts is not None:
            kernels = kernels * self._counts
        tails = xp.sum(kernels, axis=0) / self.n - GAUSSIAN
        skewness = xp.sum(sources * kernels, axis=0) / self.n
        a, b = _factors(tails, skewness, skewness_weight)
        weights = (b - (sources * b + a) * sources) * kernels
        # the host waits for the card once
        tails, skewness = to_numpy(xp.stack([tails, skewness])).reshape(2, count, d)
        by_turn = to_numpy(self._rows.T @ weights).reshape(d, count, d).transpose(1, 0, 2)
        slopes = turns.transpose(0, 2, 1) @ by_turn / self.n
        return _heights(tails, skewness, slopes, skewness_weight)


class _Share:
    """Blocks that one thread works on, and room for it."""

    def __init__(self, blocks: np.ndarray, counts: np.ndarray | None) -> None:
        self._blocks, self._counts = blocks, [None] * len(blocks) if counts is None else counts
        self._sources, self._kernels = np.empty((2, *blocks.shape))
        self._room = np.empty((3, *blocks.shape[1:]))

    def moments(self, turned: np.ndarray) -> np.ndarray:
        """Sums of kernels, and of sources times kernels."""
        tails, skewness = sums = np.zeros((2, len(turned)))
        ones = np.ones(self._blocks.shape[2])
        each = zip(self._blocks, self._counts, self._sources, self._kernels, strict=True)
        for block, counts, sources, kernels in each:
            np.matmul(turned, block, out=sources)
            np.multiply(sources, sources, out=kernels)
            kernels *= -0.5
            # Doubles: with singles the rounding of rows, another for every container, would show.
            np.exp(kernels, out=kernels)
            if counts is not None:
                kernels *= counts
            tails += kernels @ ones
            skewness += (sources[:, None, :] @ kernels[:, :, None])[:, 0, 0]
        return sums

    def slope(self, at: np.ndarray, bt: np.ndarray) -> np.ndarray:
        """``Σ [(b (1 − s²) − a s) exp(−s²/2)] sᵀ`` of the sources of the last `moments`."""
        # written out for a block: numpy is slow where one side of a product repeats
        a, b, weights = self._room
        a[:], b[:] = at[:, None], bt[:, None]
        slope = np.zeros((len(at), len(at)))
        for sources, kernels in zip(self._sources, self._kernels, strict=True):
            # − exp(−s²/2) ((b s + a) s − b)
            np.multiply(sources, b, out=weights)
            weights += a
            weights *= sources
            weights -= b
            weights *= kernels
            slope -= weights @ sources.T
        return slope
