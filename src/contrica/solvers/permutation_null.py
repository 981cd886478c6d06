"""How many contrast directions stand out from a permutation null."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dsygvx

from contrica.rows.protocol import block_rows
from contrica.solvers.contrast_directions import contrast_axes, floor_of, rounding_of
from contrica.solvers.rescaling import Rescaling
from contrica.validation import check_count, check_n_rows

__all__ = ["ContrastScree", "choose_dimension", "largest_ratio"]

N_PERMUTATIONS, PERMUTED_AT_ONCE = 1000, 100
# Multiplications that all permutations may cost, and how many are made in any case.
PERMUTATION_BUDGET, MIN_PERMUTATIONS = 2 * 10**10, 40
# Many rows are permuted in batches, for speed: as many batches, more where few of them would go to the
# smaller dataset, unless their products would take too much memory.
FEW_ROWS, BATCHES, MIN_PERMUTED, MAX_BATCH_ENTRIES = 2000, 1000, 50, 10**7


class ContrastScree(NamedTuple):
    """Contrast ratios, and how many of them stand out from a permutation null.

    Attributes
    ----------
    ratios : ndarray of shape (p,)
        Of all directions, decreasing (`contrast_axes`).
    chosen : int
        How many stand out.
    n_clear, n_possible : int
        How many exceed the null by four standard deviations, and how many by two.
    null_mean, null_deviation : float
        Of the largest ratio of a permutation; NaN where nothing was permuted.
    p_values : ndarray of shape (n_tested,)
        Where groups of rows were permuted (`contrica.solvers.group_null`): of the directions in turn, up
        to the first that does not stand out. They test that both datasets have one distribution.
    n_assignments : int
        Assignments of groups, the observed one among them; one over it is the smallest p there can be. 0
        where rows were permuted.
    """

    ratios: np.ndarray
    chosen: int
    n_clear: int
    n_possible: int
    null_mean: float = float("nan")
    null_deviation: float = float("nan")
    p_values: np.ndarray = np.empty(0)
    n_assignments: int = 0

    @property
    def thresholds(self) -> tuple[float, float]:
        """What a ratio must exceed to stand out possibly, and clearly; NaN where nothing was permuted."""
        return self.null_mean + 2 * self.null_deviation, self.null_mean + 4 * self.null_deviation


def choose_dimension(
    X: np.ndarray,
    background: np.ndarray,
    *,
    rng: np.random.Generator,
    n_permutations: int = N_PERMUTATIONS,
    rescaling: Rescaling | None = None,
) -> ContrastScree:
    """How many contrast directions stand out from a permutation null.

    Rows of both datasets, each about its mean, are permuted between two sets of the same sizes; the
    largest ratios of the permutations are the null. Directions that exceed the mean of these by
    four of their standard deviations count, and those that do not exceed it by two do not. Where there
    are directions in between, the count stops at the widest gap, in ratio, between two that follow one
    another, so that it does not depend on the permutations. Rows that depend on one another, such as
    cells of one donor, make the count too large. Many rows are put at random into a thousand
    batches or more, and batches are permuted.

    All permutations share the ρ of the data (`contrast_axes`). Where the foreground varies more in most
    directions, and there are not many more background rows than variables, the largest ratio of a
    permutation is then hardly smaller than those of the data, and only the strongest directions are
    counted. Where the background does not vary at all, there is nothing to permute: directions in which X
    does are counted.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    background : ndarray of shape (m, p)
    rng : numpy.random.Generator
        Permutes the rows.
    n_permutations : int
        Permutations; fewer, but at least 40, where many variables make each one expensive.
    rescaling : Rescaling, optional
        Where variables were divided by standard deviations: every permutation divides anew.

    Returns
    -------
    ContrastScree
    """
    check_count("n_permutations", n_permutations, minimum=2)
    n, m = len(X), len(background)
    check_n_rows(min(n, m), 2, "a contrast subspace")
    rows = _Stacked(X, background)
    p = X.shape[1]
    # of a permutation: products of the rows that move, eigenvalues
    price = min(n, m) * p**2 + 20 * p**3 + (0 if rescaling is None else rescaling.price)
    at_least = min(MIN_PERMUTATIONS, n_permutations)
    n_permutations = int(np.clip(PERMUTATION_BUDGET // price, at_least, n_permutations))
    fore, back = rows.products(np.arange(n)) / n, rows.products(np.arange(n, n + m)) / m
    if rescaling is not None:  # the rows may be a sample, and outside the axes both are taken alike
        fore, back = rescaling.covariances(fore, back, n, m)
    ratios = contrast_axes(fore, back, m)[0]
    # One floor for all: what is in the foreground alone is in every permuted background too, and a floor
    # that rose with it would make the ratios of the null too small.
    floor = floor_of(fore, back, m)
    if back.trace() <= rounding_of(fore):
        count = int(np.sum(ratios > 1))  # variances above the floor, which is rounding here
        return ContrastScree(ratios, count, count, count)
    permuted = _permuted_products(rows, n_permutations, rng)
    if rescaling is not None:
        permuted = (rescaling.covariances(*products, n, m) for products in permuted)
    largest = [largest_ratio(*products, floor) for products in permuted]
    chance, spread = float(np.mean(largest)), float(np.std(largest, ddof=1))
    clear, possible = (int(np.sum(ratios > chance + z * spread)) for z in (4.0, 2.0))
    chosen = _widest_gap(ratios, clear, possible, chance, spread)
    return ContrastScree(ratios, chosen, clear, possible, chance, spread)


def _widest_gap(ratios: np.ndarray, clear: int, possible: int, chance: float, spread: float) -> int:
    """Of the counts in question, the one before the widest gap, in ratio, between two directions."""
    if clear == possible:
        return clear
    # ratio k_i / k_(i+1) for each count i in question; before the first and after the last stands chance
    around = np.concatenate([[chance + 4 * spread], ratios, [chance]])
    counts = np.arange(clear, possible + 1)
    return int(counts[np.argmax(around[counts] / around[counts + 1])])


def largest_ratio(fore: np.ndarray, back: np.ndarray, floor: float) -> float:
    """First of the ratios of `contrast_axes`, and no other: a thousand permutations ask for it.

    Parameters
    ----------
    fore, back : ndarray of shape (p, p)
        Covariances.
    floor : float
        ρ.

    Returns
    -------
    float
    """
    p = len(fore)
    damped = back.copy()
    # an outlying row among few others makes rounding larger than in the data
    damped.flat[:: p + 1] += max(floor, rounding_of(back))
    # LAPACK itself: around it scipy's checks take as long as the answer
    values, *_, info = dsygvx(fore.T, damped.T, jobz="N", range="I", il=p, iu=p, overwrite_b=1)
    if info:
        raise np.linalg.LinAlgError(f"no largest ratio of variances was found (dsygvx: {info})")
    return float(values[0])


class _Stacked:
    """Rows of two datasets, each about its mean, by number; never all of them at a time."""

    def __init__(self, X: np.ndarray, background: np.ndarray) -> None:
        self._parts = [(part, part.mean(axis=0)) for part in (X, background)]
        self.n = len(X)
        self.shape = (len(X) + len(background), X.shape[1])

    def take(self, index: np.ndarray) -> np.ndarray:
        found = np.empty((index.size, self.shape[1]))
        first = index < self.n
        for (part, mean), own, start in zip(self._parts, (first, ~first), (0, self.n), strict=True):
            found[own] = part[index[own] - start] - mean
        return found

    def products(self, index: np.ndarray) -> np.ndarray:
        """``Σ w wᵀ`` over some of the rows."""
        total = np.zeros((self.shape[1],) * 2)
        step = block_rows(self.shape[1])
        for start in range(0, index.size, step):
            some = self.take(index[start : start + step])
            total += some.T @ some
        return total


def _permuted_products(
    rows: _Stacked, n_permutations: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Mean products of variables over n rows drawn at random, and over the others."""
    n, (total, p) = rows.n, rows.shape
    fewer = min(n, total - n)
    count = max(BATCHES, -(-MIN_PERMUTED * total // fewer))
    if fewer <= FEW_ROWS or count * p**2 > MAX_BATCH_ENTRIES:
        whole = rows.products(np.arange(total))
        for _ in range(n_permutations):
            part = rows.products(rng.permutation(total)[:fewer])
            sums = (part, whole - part) if fewer == n else (whole - part, part)
            yield sums[0] / n, sums[1] / (total - n)
        return
    split = np.array_split(rng.permutation(total), count)
    batches = np.array([rows.products(batch) for batch in split])
    sizes = np.array([len(batch) for batch in split], dtype=float)
    whole = batches.sum(axis=0)
    first = (np.arange(count) < round(count * n / total)).astype(float)
    for start in range(0, n_permutations, PERMUTED_AT_ONCE):
        chosen = rng.permuted(
            np.tile(first, (min(PERMUTED_AT_ONCE, n_permutations - start), 1)), axis=1
        )
        counts = chosen @ sizes
        for part, n_rows in zip(np.tensordot(chosen, batches, 1), counts, strict=True):
            yield part / n_rows, (whole - part) / (total - n_rows)
