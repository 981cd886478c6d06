"""Contrast subspace first, then ICA inside it: a solver for data in which the model holds loosely.

On real data a fourth cumulant is often dominated by heavy-tailed background directions. The directions
in which the foreground varies most relative to the background need variances only: the leading
generalised eigenvectors of ``(Σ_x, Σ_y + ρ I)``. Inside the subspace they span, of few
dimensions, independent sources are sought with a contrast that outliers do not dominate
(`contrica.solvers.negentropy`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dsygvx
from sklearn.exceptions import ConvergenceWarning

from contrica.decompositions import Decomposition, canonical
from contrica.moments.fourth import Cumulants
from contrica.rows.blocks import block_rows, iterate_blocks
from contrica.solvers.negentropy import SKEWNESS_WEIGHT, Rotation, farthest_from_gaussian
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import PatternWarning, check_count, check_n_rows, warn_user

__all__ = [
    "Dimension",
    "SubspaceFit",
    "choose_dimension",
    "contrast_axes",
    "subspace_ica",
]

N_PERMUTATIONS, PERMUTED_AT_ONCE = 1000, 100
# Multiplications that all permutations may cost, and how many are made in any case.
PERMUTATION_BUDGET, MIN_PERMUTATIONS = 2 * 10**10, 40
# Many rows are permuted in batches, for speed: as many batches, more where few of them would go to the
# smaller dataset, unless their products would take too much memory.
FEW_ROWS, BATCHES, MIN_PERMUTED, MAX_BATCH_ENTRIES = 2000, 1000, 50, 10**7
# Weights of skewness to try as well, if they explain this much of the shift of the mean.
OTHER_SKEWNESS_WEIGHTS = (0.0, 1.0)
EXPLAINED = 0.75


class Dimension(NamedTuple):
    """How many contrast directions stand out.

    Attributes
    ----------
    chosen : int
    fewest, most : int
        How many exceed the null by four standard deviations, and how many by two.
    """

    chosen: int
    fewest: int
    most: int


class SubspaceFit(NamedTuple):
    """Sources found inside a contrast subspace.

    Attributes
    ----------
    foreground : Decomposition
        Patterns ``Σ_x f / ‖Σ_x f‖`` of the filters f, and their weights in κ₄(x).
    ratio : ndarray of shape (d,)
        What each source, ``fᵀx``, does in the foreground over what it does in the background: its mean
        square about the background's mean over the background's variance, k(f). A source that is
        present in all of the foreground and absent from the background shifts the mean, which a ratio
        of variances would miss. Along the patterns a ratio would count all else that varies there,
        which for patterns far from orthogonal is most of it.
    n_iter : int
    """

    foreground: Decomposition
    ratio: np.ndarray
    n_iter: int


def _rounding(covariance: np.ndarray) -> float:
    """What eigenvalues of a covariance are wrong by."""
    return float(len(covariance) * np.finfo(float).eps * covariance.trace())


def _floor(fore: np.ndarray, back: np.ndarray, n_background_samples: int) -> float:
    """``tr(Σ_y) / m``: the mean variance times p/m, the size of the sampling error of Σ_y."""
    # a background that does not vary, to rounding, leaves the order to the foreground
    return max(float(back.trace()) / n_background_samples, _rounding(fore))


def contrast_axes(
    fore: np.ndarray, back: np.ndarray, n_background_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Directions by foreground variance over background variance, closed form.

    Solves ``Σ_x w = k (Σ_y + ρ I) w`` with ``ρ = tr(Σ_y) / m``, so that directions in which the
    background happens not to vary in m rows are not taken for contrast.

    Parameters
    ----------
    fore, back : ndarray of shape (p, p)
        Covariances.
    n_background_samples : int
        m.

    Returns
    -------
    ratios : ndarray of shape (p,)
        k, decreasing.
    axes : ndarray of shape (p, p)
        The w, as columns.

    Examples
    --------
    >>> import numpy as np
    >>> contrast_axes(np.diag([1.0, 8.0]), np.eye(2), 10**9)[0].round(6)
    array([8., 1.])
    """
    ratios, axes = eigh(fore, back + _floor(fore, back, n_background_samples) * np.eye(len(back)))
    return ratios[::-1], axes[:, ::-1]


def choose_dimension(
    X: np.ndarray,
    background: np.ndarray,
    *,
    rng: np.random.Generator,
    n_permutations: int = N_PERMUTATIONS,
) -> Dimension:
    """How many contrast directions stand out from a permutation null.

    Rows of both datasets, each about its mean, are permuted between two sets of the same sizes; the
    largest ratios of the permutations are the null. Directions that exceed the mean of these by
    four of their standard deviations count, and those that do not exceed it by two do not. Where there
    are directions in between, the count stops at the widest gap, in ratio, between two that follow one
    another, so that it does not hang on the permutations. Rows that depend on one another, such as cells
    of one donor, make the count too large. Many rows are put into a thousand batches or more at random,
    and batches are permuted.

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
        Permutations; fewer, but at least 40, where each is dear because of many variables.

    Returns
    -------
    Dimension
    """
    check_count("n_permutations", n_permutations, least=2)
    n, m = len(X), len(background)
    check_n_rows(min(n, m), 2, "a contrast subspace")
    rows = _Stacked(X, background)
    p = X.shape[1]
    price = (
        min(n, m) * p**2 + 20 * p**3
    )  # of a permutation: products of the rows that move, eigenvalues
    at_least = min(MIN_PERMUTATIONS, n_permutations)
    n_permutations = int(np.clip(PERMUTATION_BUDGET // price, at_least, n_permutations))
    fore, back = rows.products(np.arange(n)) / n, rows.products(np.arange(n, n + m)) / m
    ratios = contrast_axes(fore, back, m)[0]
    # One floor for all: what is in the foreground alone is in every permuted background too, and a floor
    # that rose with it would make the ratios of the null too small.
    floor = _floor(fore, back, m)
    if back.trace() <= _rounding(fore):
        count = int(np.sum(ratios > 1))  # variances above the floor, which is rounding here
        return Dimension(count, count, count)
    permuted = _permuted_products(rows, n_permutations, rng)
    largest = [_largest_ratio(*products, floor) for products in permuted]
    chance, spread = np.mean(largest), np.std(largest, ddof=1)
    fewest, most = (int(np.sum(ratios > chance + z * spread)) for z in (4.0, 2.0))
    if fewest == most:
        return Dimension(fewest, fewest, most)
    # ratio k_i / k_(i+1) for each count i in question; before the first and after the last stands chance
    around = np.concatenate([[chance + 4 * spread], ratios, [chance]])
    counts = np.arange(fewest, most + 1)
    chosen = int(counts[np.argmax(around[counts] / around[counts + 1])])
    return Dimension(chosen, fewest, most)


def _largest_ratio(fore: np.ndarray, back: np.ndarray, floor: float) -> float:
    """First of the ratios of `contrast_axes`, and no other: a thousand permutations ask for it."""
    p = len(fore)
    damped = back.copy()
    # an outlying row among few others makes rounding larger than in the data
    damped.flat[:: p + 1] += max(floor, _rounding(back))
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


def subspace_ica(
    fore: Cumulants,
    back: Cumulants,
    X: np.ndarray,
    n_dimensions: int,
    *,
    rng: np.random.Generator,
    n_kept: int | None = None,
    warn: bool = True,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> SubspaceFit:
    """Independent sources inside the subspace of largest contrast.

    The leading ``d`` axes of `contrast_axes` are whitened by the foreground's covariance, and rotated
    until their sources are farthest from Gaussian (`contrica.solvers.negentropy`). A source found by the
    filter f appears in the variables as ``Σ_x f``, its pattern.

    Which moments separate the sources best depends on their kind. Where fewer are to be kept, three
    weights of skewness against tails are tried (`contrica.solvers.negentropy`), 1/4 first and the
    others also from where that leads. Another is taken if with it the kept sources explain three quarters
    of the shift, ``Σ δ_j²``, and the one that is shifted least is shifted by more, by a standard error at
    least: things that are in the foreground alone shift its mean, and what shifts it should not lie in
    pieces.

    Parameters
    ----------
    fore, back : Cumulants
    X : ndarray of shape (n, p)
        The foreground's rows, in the same coordinates.
    n_dimensions : int
        d, at most p.
    rng : numpy.random.Generator
        Source of the rotations to start from.
    n_kept : int, optional
        Sources to keep, those of largest ratio; all d by default.
    warn : bool
        Whether to warn where the search has not converged, or the foreground varies in fewer directions.
    max_iter, tol
        As of `contrica.solvers.negentropy.farthest_from_gaussian`.

    Returns
    -------
    SubspaceFit
        d patterns, or ``n_kept``, by decreasing weight.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import cumulants
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.laplace(size=(2000, 4))
    >>> X = rng.laplace(size=(2000, 4)) + 3 * rng.choice([-1, 1], (2000, 1)) * [1.0, 0, 0, 0]
    >>> found = subspace_ica(cumulants(X), cumulants(Y), X, 1, rng=rng)
    >>> bool(abs(found.foreground.vectors[0, 0]) > 0.99)
    True
    """
    d = check_count("n_dimensions", n_dimensions)
    if n_kept is not None:
        check_count("n_kept", n_kept)
    if d > fore.n_features:
        raise ValueError(
            f"n_dimensions={d} is more than the {fore.n_features} dimensions there are. Lower it."
        )
    _, axes = contrast_axes(fore.covariance, back.covariance, back.n_samples)
    inside = np.linalg.qr(axes[:, :d])[0]
    values, rotation = np.linalg.eigh(inside.T @ fore.covariance @ inside)
    varies = values > fore.n_features * np.finfo(float).eps * np.trace(fore.covariance)
    if not varies.any():
        raise ValueError("the foreground does not vary. There is nothing to separate.")
    if not varies.all():
        d = int(varies.sum())
        if warn:
            warn_user(
                f"the foreground varies in {d} directions of the contrast subspace only, so that many "
                "patterns are sought. Lower n_foreground.",
                PatternWarning,
            )
    whiten = inside @ (rotation[:, varies] / np.sqrt(values[varies]))
    whitened = _along(X, fore.mean, whiten)
    kept = d if n_kept is None else min(n_kept, d)
    some_are_kept = kept < d  # and the others are not
    shift = fore.mean - back.mean
    energy = replace(fore, covariance=fore.covariance + np.outer(shift, shift))

    def ratios(filters: np.ndarray) -> np.ndarray:
        """k(f), without a warning where the background does not vary."""
        fronts, backs = (
            np.einsum("pk,pq,qk->k", filters, part.covariance, filters) for part in (energy, back)
        )
        return fronts / np.maximum(backs, np.finfo(float).tiny)

    def errors(filters: np.ndarray) -> np.ndarray:
        """Variance of the shift of each source's mean, from the rows of both datasets."""
        backs = np.einsum("pk,pq,qk->k", filters, back.covariance, filters)
        return 1 / len(X) + backs / back.n_samples

    def separate(
        skewness_weight: float, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, Rotation]:
        """Filters of the sources that are kept, and the search."""
        found = farthest_from_gaussian(
            whitened,
            rng=rng,
            skewness_weight=skewness_weight,
            start=start,
            max_iter=max_iter,
            tol=tol,
        )
        filters = whiten @ found.matrix
        if not some_are_kept:
            return filters, found
        return filters[:, np.argsort(-ratios(filters), kind="stable")[:kept]], found

    filters, found = separate(SKEWNESS_WEIGHT)
    whole = whiten.T @ shift
    if some_are_kept and _is_shifted(whole, errors(whiten)):
        first = found.matrix
        for skewness_weight in OTHER_SKEWNESS_WEIGHTS:
            others = separate(skewness_weight, first)
            shifts, shifts_of_others = (np.abs(each.T @ shift) for each in (filters, others[0]))
            weakest = int(np.argmin(shifts_of_others))
            margin = np.sqrt(errors(others[0])[weakest])
            explained = np.sum(shifts_of_others**2) >= EXPLAINED * np.sum(whole**2)
            if explained and shifts_of_others[weakest] > shifts.min() + margin:
                filters, found = others
    if warn and found.gradient_norm > tol and found.n_iter >= max_iter:
        warn_user(
            f"ICA in the contrast subspace stopped after {max_iter} steps with a gradient of "
            f"{found.gradient_norm:.2g} where {tol:.2g} was asked for. Set n_foreground, the "
            "dimension of the subspace, lower.",
            ConvergenceWarning,
        )
    ratio = contrast_ratio(_unit(filters), energy, back)
    weights = fore.fourth.coefficients(filters)
    patterns = fore.covariance @ filters
    # a source of unit variance with fourth cumulant c adds c · (Σf)^{⊗4}
    order = np.argsort(-np.abs(weights) * np.linalg.norm(patterns, axis=0) ** 4, kind="stable")
    foreground = canonical(weights[order], patterns[:, order], found.n_iter)
    return SubspaceFit(foreground, ratio[order], found.n_iter)


def _along(rows: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """``(x − μ) · W`` of all rows, some at a time."""
    found = np.empty((len(rows), axes.shape[1]))
    start = 0
    for block in iterate_blocks(rows, block_rows(rows.shape[1])):
        np.matmul(block - mean, axes, out=found[start : start + len(block)])
        start += len(block)
    return found


def _is_shifted(shift: np.ndarray, variances: np.ndarray) -> bool:
    """Whether the squares of shifts add up to more than chance gives, by four standard deviations."""
    return bool(shift @ shift > variances.sum() + 4 * np.sqrt(2 * variances @ variances))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))
