"""Independent rows, how they can be assigned to two datasets, and the covariances of each assignment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from contrica.moments.spectra import is_worked_on_card
from contrica.rows.device import like, namespace, picked, same_kind
from contrica.rows.moving import room_on_card, there
from contrica.rows.protocol import CACHED_ENTRIES, DEVICE_BLOCK_BYTES, block_rows
from contrica.solvers.rescaling import Rescaling
from contrica.solvers.split import Split, Splits, entries_kept

__all__ = ["RowDesign"]

# Permutations whose sums are taken in one product.
PERMUTED_AT_ONCE = 100
# Multiplications that all permutations may cost, and how many are made in any case.
PERMUTATION_BUDGET, MIN_PERMUTATIONS = 2 * 10**10, 40
# Many rows are permuted in batches, for speed: as many batches, more where few of them would go to the
# smaller dataset, unless their products would take too much memory, or a stratum would have too few. Over
# very many variables, of which each takes long, only as many as the smaller dataset needs.
FEW_ROWS, BATCHES, MIN_PERMUTED, MAX_BATCH_ENTRIES, MIN_STRATUM = 2000, 1000, 50, 10**7, 10
# Variances that differ by less than this share are of the same rows.
SAME_ROWS = 1e-9


class RowDesign:
    """Rows of a foreground and of its backgrounds, each about its mean, by number; never all at a time.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    backgrounds : sequence of ndarray of shape (m, p)
    strata : ndarray of int, shape (n + m,), optional
        Rows are permuted within these only.
    covariances : sequence of ndarray of shape (p, p), optional
        Of X and of each background, where they are known already, up to a factor near 1.
    tensors : sequence of (tensor or None), optional
        The same rows, up to their mean, as they are on a card.
    room : float
        Bytes that copies of rows, or what is made of them for speed, may take.
    """

    unit = "rows"

    def __init__(
        self,
        X: np.ndarray,
        backgrounds: Sequence[np.ndarray],
        strata: np.ndarray | None = None,
        covariances: Sequence[np.ndarray] | None = None,
        tensors: Sequence[Any] = (),
        *,
        room: float = math.inf,
    ) -> None:
        self._parts: list[tuple[Any, Any]] = [
            (part, part.mean(axis=0)) for part in (X, *backgrounds)
        ]
        self._starts = np.cumsum([0, *(len(part) for part, _ in self._parts)])
        self.n = len(X)
        self.shape = (int(self._starts[-1]), X.shape[1])
        self._covariances, self._tensors = covariances, tensors or (None,) * len(self._parts)
        self.room = room
        codes = np.zeros(self.shape[0], dtype=int) if strata is None else strata
        self._strata = [np.flatnonzero(codes == code) for code in np.unique(codes)]

    @property
    def n_fewer(self) -> int:
        """Rows of the smaller dataset."""
        return min(self.n, self.shape[0] - self.n)

    def on_card(self) -> RowDesign:
        """The same with its rows on the card that a fit works on, where they pay there and fit."""
        p = self.shape[1]
        pairs = zip(self._parts, self._tensors, strict=True)
        n_moved = sum(len(part) for (part, _), own in pairs if own is None)
        if self.is_on_card or not is_worked_on_card(p) or 2 * 8 * n_moved * p > room_on_card():
            return self
        moved = copy(self)
        moved._covariances = None  # products with the rows take no time there
        vars(moved).pop("_observed", None)
        rows = [
            there(part) if own is None else own
            for (part, _), own in zip(self._parts, self._tensors, strict=True)
        ]
        moved._parts = [(part, namespace(part).mean(part, axis=0)) for part in rows]
        return moved

    @property
    def is_on_card(self) -> bool:
        """Whether rows, and what is made of them, are tensors."""
        return not isinstance(self._parts[0][0], np.ndarray)

    def take(self, index: np.ndarray) -> Any:
        """Rows of some numbers; of tensors those of one part after the other.

        Parameters
        ----------
        index : ndarray of int

        Returns
        -------
        ndarray or tensor of shape (index.size, p)
        """
        of = np.searchsorted(self._starts, index, side="right") - 1
        if self.is_on_card:
            rows = [
                picked(part, index[of == i] - self._starts[i]) - mean
                for i, (part, mean) in enumerate(self._parts)
            ]
            return namespace(rows[0]).concat(rows)
        found = np.empty((index.size, self.shape[1]))
        for i, (part, mean) in enumerate(self._parts):
            own = of == i
            found[own] = part[index[own] - self._starts[i]] - mean
        return found

    def sums(self, index: np.ndarray) -> _Sums:
        """``Σ w`` and ``Σ w wᵀ`` over some of the rows."""
        p = self.shape[1]
        kind, first = same_kind(self._parts[0][0]), self._parts[0][0]
        total, products = (namespace(first).zeros(shape, **kind) for shape in ((p,), (p, p)))
        step = DEVICE_BLOCK_BYTES // (8 * p) if self.is_on_card else block_rows(p)
        for start in range(0, index.size, step):
            some = self.take(index[start : start + step])
            total += some.sum(axis=0)
            products += some.T @ some
        return _Sums(total, products)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows, some at a time that stay in the cache, and their numbers.

        Yields
        ------
        slice, ndarray of shape (k, p)
        """
        step = max(CACHED_ENTRIES // self.shape[1], 1)
        for (part, mean), start in zip(self._parts, self._starts[:-1], strict=True):
            for first in range(0, len(part), step):
                block = part[first : first + step] - mean
                yield slice(start + first, start + first + len(block)), block

    @cached_property
    def _observed(self) -> tuple[Split, _Sums]:
        """The observed split, and sums over all rows."""
        whole, others = both = self._sums_of_both()
        found = _split(np.array([self.n, self.shape[0] - self.n]), both)
        for own, other in zip(whole, others, strict=True):
            own += other
        return found, whole

    def _sums_of_both(self) -> list[_Sums]:
        """Sums over the rows of the foreground, and over those of all backgrounds."""
        total, known = self.shape[0], self._known_products()
        if known is None:
            return [self.sums(np.arange(self.n)), self.sums(np.arange(self.n, total))]
        back = known[1] if len(known) == 2 else np.sum(known[1:], axis=0)
        return [_Sums(np.zeros(self.shape[1]), products) for products in (known[0], back)]

    def _known_products(self) -> list[np.ndarray] | None:
        """``Σ w wᵀ`` of every dataset from its covariance, if that is of these rows."""
        if self._covariances is None:
            return None
        squares = np.zeros((len(self._parts), self.shape[1]))
        for own, block in self.blocks():
            number = int(np.searchsorted(self._starts, own.start, side="right")) - 1
            squares[number] += np.einsum("ij,ij->j", block, block)
        found = []
        for known, energy in zip(self._covariances, squares, strict=True):
            factor = energy.sum() / max(known.trace(), np.finfo(float).tiny)
            if not np.allclose(factor * np.diag(known), energy, rtol=SAME_ROWS, atol=0):
                return None
            found.append(factor * known)
        return found

    def observed(self) -> Split:
        """The observed split.

        Returns
        -------
        Split
        """
        return self._observed[0]

    @property
    def scatter(self) -> Any:
        """``Σ w wᵀ`` over all rows."""
        return self._observed[1].two

    def split_of(self, index: np.ndarray) -> Split:
        """The split with some rows in the place of those of the smaller dataset.

        Parameters
        ----------
        index : ndarray of int

        Returns
        -------
        Split
        """
        found = self.sums(index)
        parts = [found, self._observed[1] - found]
        counts = np.array([index.size, self.shape[0] - index.size])
        order = slice(None) if self.n == self.n_fewer else slice(None, None, -1)
        return _split(counts[order], parts[order])

    def assigned(
        self, count: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, RowBatches | None]:
        """Which rows random assignments take to the foreground, and in which batches, if not one by one.

        Parameters
        ----------
        count : int
            Of assignments.
        rng : numpy.random.Generator

        Returns
        -------
        in_fore : ndarray of bool, shape (count, n_batches or n + m)
        batches : RowBatches or None
        """
        batches = self._few_batches(rng)
        if batches is not None:
            return batches.permuted(count, rng) > 0, batches
        in_fewer = np.zeros((count, self.shape[0]), dtype=bool)
        for own, index in zip(in_fewer, self.draws(count, rng), strict=True):
            own[index] = True
        return in_fewer if self.n == self.n_fewer else ~in_fewer, None

    @property
    def in_batches(self) -> bool:
        """Whether `assigned` takes rows in batches."""
        return self._few_batches(np.random.default_rng(0)) is not None

    def _few_batches(self, rng: np.random.Generator) -> RowBatches | None:
        if self.n_fewer <= FEW_ROWS:
            return None
        return self.batches(-(-MIN_PERMUTED * self.shape[0] // self.n_fewer), rng)

    def draws(self, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Rows for the smaller dataset, of each stratum as many as it has there.

        Parameters
        ----------
        count : int
        rng : numpy.random.Generator

        Yields
        ------
        ndarray of int
        """
        in_smaller = (np.arange(self.shape[0]) < self.n) == (self.n == self.n_fewer)
        drawn_of = [(part, int(in_smaller[part].sum())) for part in self._strata]
        for _ in range(count):
            yield np.concatenate([rng.permutation(part)[:number] for part, number in drawn_of])

    @property
    def n_batches(self) -> int:
        """Batches that rows are permuted in; 0 where single rows are."""
        total, p = self.shape
        count = max(BATCHES, -(-MIN_PERMUTED * total // self.n_fewer))
        return count if self.n_fewer > FEW_ROWS and count * p**2 <= MAX_BATCH_ENTRIES else 0

    def n_permutations(self, wanted: int, rescaling: Rescaling | None = None) -> int:
        """Permutations to make: as many as wanted, fewer where many variables make each expensive.

        Parameters
        ----------
        wanted : int
        rescaling : Rescaling, optional

        Returns
        -------
        int
        """
        p = self.shape[1]
        # of a permutation: products of the rows that move, eigenvalues
        price = self.n_fewer * p**2 + 20 * p**3 + (0 if rescaling is None else rescaling.price)
        at_least = min(MIN_PERMUTATIONS, wanted)
        return int(np.clip(PERMUTATION_BUDGET // price, at_least, wanted))

    def splits(
        self, n_permutations: int, rng: np.random.Generator, rescaling: Rescaling | None = None
    ) -> Splits:
        """The observed split, and those of permuted rows.

        Parameters
        ----------
        n_permutations : int
        rng : numpy.random.Generator
            Permutes the rows.
        rescaling : Rescaling, optional
            As of `Splits`.

        Returns
        -------
        Splits
        """
        n_permutations = self.n_permutations(n_permutations, rescaling)
        seed = int(rng.integers(2**63))  # the same permutations whenever they are asked for
        observed, batches = self.observed(), None
        if self.n_batches:
            batches = self._summed_batches(self.n_batches, np.random.default_rng([seed, 1]))
        whole = self._observed[1]

        def make() -> Iterator[Split]:
            yield observed
            drawn = np.random.default_rng(seed)
            if batches is None:
                yield from map(self.split_of, self.draws(n_permutations, drawn))
            else:
                yield from batches.splits(n_permutations, whole, drawn)

        count, p = n_permutations + 1, self.shape[1]
        return Splits(make, count, p, rescaling, max_entries=entries_kept(self._parts[0][0]))

    def batches(self, count: int, rng: np.random.Generator) -> RowBatches | None:
        """Rows in batches, drawn at random within their strata.

        Parameters
        ----------
        count : int
            Wanted, about.
        rng : numpy.random.Generator

        Returns
        -------
        RowBatches or None
            ``None`` where a stratum of both datasets would have too few of either.
        """
        drawn: list[np.ndarray] = []
        first: list[np.ndarray] = []
        for part in self._strata:
            own = max(min(round(count * part.size / self.shape[0]), part.size), 1)
            drawn += np.array_split(rng.permutation(part), own)
            share = np.mean(part < self.n)
            in_fore = round(own * share)
            if 0 < share < 1 and (own < MIN_STRATUM or in_fore in (0, own)):
                return None
            first.append((np.arange(own) < in_fore).astype(float))
        return RowBatches(drawn, first)

    def _summed_batches(self, count: int, rng: np.random.Generator) -> _SummedBatches | None:
        batches = self.batches(count, rng)
        if batches is None:
            return None
        return _SummedBatches(batches, *_stacked([self.sums(rows) for rows in batches.rows]))


class RowBatches(NamedTuple):
    """Batches of rows, and, stratum by stratum, how many of them the foreground gets.

    Attributes
    ----------
    rows : list of ndarray of int
        Numbers of the rows of every batch.
    first : list of ndarray of shape (n_batches,)
        Of every stratum as many ones as batches of it go to the foreground.
    """

    rows: list[np.ndarray]
    first: list[np.ndarray]

    def permuted(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Which batches go to the foreground: 1 for these, 0 for others.

        Parameters
        ----------
        number : int
            Of permutations.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (number, n_batches)
        """
        each = [rng.permuted(np.tile(own, (number, 1)), axis=1) for own in self.first]
        return np.hstack(each)


class _Sums(NamedTuple):
    """``Σ w`` and ``Σ w wᵀ`` over some rows."""

    one: Any
    two: Any

    def __add__(self, other: Any) -> _Sums:
        return _Sums(self.one + other.one, self.two + other.two)

    def __sub__(self, other: _Sums) -> _Sums:
        return _Sums(self.one - other.one, self.two - other.two)


class _SummedBatches(NamedTuple):
    """Batches of rows, and the sums over each."""

    batches: RowBatches
    sums: Any
    products: Any

    def splits(self, count: int, whole: _Sums, rng: np.random.Generator) -> Iterator[Split]:
        """Splits of batches that are permuted within their strata."""
        sizes = np.array([rows.size for rows in self.batches.rows], dtype=float)
        total = sizes.sum()
        for start in range(0, count, PERMUTED_AT_ONCE):
            chosen = self.batches.permuted(min(PERMUTED_AT_ONCE, count - start), rng)
            own = like(self.sums, chosen)
            products = namespace(own).tensordot(own, self.products, axes=1)
            each = (chosen @ sizes, own @ self.sums, products)
            for n_rows, one, two in zip(*each, strict=True):
                found = _Sums(one, two)
                yield _split(np.array([n_rows, total - n_rows]), [found, whole - found])


def _split(counts: np.ndarray, parts: Sequence[_Sums]) -> Split:
    sums = namespace(parts[0].one).stack([part.one for part in parts])
    return Split.of(counts.astype(float), sums, [part.two for part in parts])


def _stacked(parts: Sequence[_Sums]) -> tuple[Any, Any]:
    stack = namespace(parts[0].one).stack
    sums, products = (stack(each) for each in zip(*parts, strict=True))
    return sums, products
