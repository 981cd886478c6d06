"""Groups of rows: sums over each, how they can be assigned to two datasets, and shares in a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from contrica.moments.spectra import is_worked_on_card
from contrica.rows.device import like, namespace, picked
from contrica.rows.groups import Groups
from contrica.rows.moving import room_on_card
from contrica.solvers.rescaling import Rescaling
from contrica.solvers.split import Split, Splits, entries_kept

__all__ = ["GroupDesign", "GroupShares", "GroupSums", "split", "sums_pay_on_card"]


class GroupSums(NamedTuple):
    """Sums over the rows of every group of a dataset, about the dataset's mean.

    Attributes
    ----------
    names : tuple of str
    counts : ndarray of shape (g,)
        Rows.
    sums : ndarray or tensor of shape (g, p)
    products : ndarray or tensor of shape (g, p, p)
        ``Σ x xᵀ``.
    """

    names: tuple[str, ...]
    counts: np.ndarray
    sums: Any
    products: Any

    @classmethod
    def of(cls, rows: Any, groups: Groups) -> GroupSums:
        """Sum the rows of every group that has some, where they are.

        Parameters
        ----------
        rows : ndarray or tensor of shape (n, p)
        groups : Groups

        Returns
        -------
        GroupSums
        """
        xp = namespace(rows)
        mean = xp.mean(rows, axis=0)
        order = np.argsort(groups.codes, kind="stable")
        counts = np.bincount(groups.codes, minlength=len(groups.names))
        parts = np.split(order, np.cumsum(counts)[:-1])
        kept = [i for i, part in enumerate(parts) if part.size]
        found = []
        for i in kept:
            centred = picked(rows, parts[i]) - mean
            found.append((xp.sum(centred, axis=0), centred.T @ centred))
        sums, products = (xp.stack(each) for each in zip(*found, strict=True))
        return cls(tuple(groups.names[i] for i in kept), counts[kept], sums, products)

    @classmethod
    def stacked(cls, parts: Sequence[GroupSums]) -> GroupSums:
        """Groups of several datasets, one after the other."""
        names = tuple(name for part in parts for name in part.names)
        counts = np.concatenate([part.counts for part in parts])
        concat = getattr(namespace(parts[0].sums), "concat", np.concatenate)
        sums, products = (
            concat([getattr(part, name) for part in parts]) for name in ("sums", "products")
        )
        return cls(names, counts, sums, products)


def sums_pay_on_card(datasets: Sequence[tuple[np.ndarray, Groups]]) -> bool:
    """Whether sums over groups, and what permutations make of them, are to be on the card of a fit.

    Parameters
    ----------
    datasets : sequence of (ndarray of shape (n, p), Groups)

    Returns
    -------
    bool
    """
    p = datasets[0][0].shape[1]
    if not is_worked_on_card(p):
        return False
    n_rows = sum(len(rows) for rows, _ in datasets)
    n_groups = sum(len(groups.names) for _, groups in datasets)
    # rows, and some of them about the mean; products, while they are put together
    return 8 * p * (2 * n_rows + 2 * p * n_groups) <= room_on_card()


@dataclass(frozen=True)
class GroupDesign:
    """Groups of a foreground and of its backgrounds; a group of both is *paired*.

    Attributes
    ----------
    groups : GroupSums
        The foreground's, then those of the backgrounds.
    n_fore : int
        How many are the foreground's.
    strata : ndarray of int, shape (g,), or None
        Groups change places within these only; a paired one whose halves are in two stays as it is.
    """

    groups: GroupSums
    n_fore: int
    strata: np.ndarray | None = None
    unit: ClassVar[str] = "groups"

    @property
    def is_on_card(self) -> bool:
        """Whether sums, and what is made of them, are tensors."""
        return not isinstance(self.groups.sums, np.ndarray)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Numbers of a group in the foreground and in the background; one background's, if in several."""
        back = {name: i for i, name in enumerate(self.groups.names) if i >= self.n_fore}
        return [
            (i, back[name])
            for i, name in enumerate(self.groups.names[: self.n_fore])
            if name in back
        ]

    @property
    def swapped(self) -> np.ndarray:
        """Which pairs can be swapped: those whose halves are in one stratum."""
        if self.strata is None:
            return np.ones(len(self.pairs), dtype=bool)
        return np.array([self.strata[i] == self.strata[j] for i, j in self.pairs], dtype=bool)

    @property
    def free(self) -> list[tuple[np.ndarray, int]]:
        """Of every stratum, the groups in one dataset only, and how many are the foreground's."""
        paired = {i for pair in self.pairs for i in pair}
        free = np.array([i for i in range(len(self.groups.names)) if i not in paired], dtype=int)
        codes = np.zeros(len(self.groups.names), dtype=int) if self.strata is None else self.strata
        parts = [free[codes[free] == code] for code in np.unique(codes)]
        return [(part, int(np.sum(part < self.n_fore))) for part in parts]

    @property
    def n_assignments(self) -> int:
        """Ways to assign groups: unpaired ones change places, halves of a paired one are swapped."""
        ways = prod(comb(part.size, n_fore) for part, n_fore in self.free)
        return int(2 ** int(self.swapped.sum()) * ways)

    @property
    def floor(self) -> float:
        """ρ of the background (`contrica.solvers.split.group_floor`)."""
        return split(self.groups, self.observed()).floor

    def observed(self) -> np.ndarray:
        """Which groups are the foreground's."""
        return np.arange(len(self.groups.names)) < self.n_fore

    def splits(
        self, n_permutations: int, rng: np.random.Generator, rescaling: Rescaling | None = None
    ) -> Splits:
        """The observed split, and those of other assignments.

        Parameters
        ----------
        n_permutations : int
            To make, where not all are made.
        rng : numpy.random.Generator
        rescaling : Rescaling, optional
            As of `Splits`.

        Returns
        -------
        Splits
        """
        masks = self.assignments(n_permutations, rng)
        p = self.groups.sums.shape[1]

        def make() -> Iterator[Split]:
            return (split(self.groups, mask) for mask in masks)

        return Splits(make, len(masks), p, rescaling, max_entries=entries_kept(self.groups.sums))

    def assignments(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Assignments, the observed one first: all of them, if these are no more than asked for.

        Parameters
        ----------
        count : int
            Besides the observed one.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of bool, shape (n, g)
            Which groups are the foreground's.
        """
        every = self.n_assignments <= count + 1
        drawn = self._all() if every else (self._random(rng) for _ in range(count))
        observed = self.observed()
        others = [each for each in drawn if not every or not np.array_equal(each, observed)]
        return np.array([observed, *others])

    def _all(self) -> Iterator[np.ndarray]:
        ways = [list(combinations(part, n_fore)) for part, n_fore in self.free]
        for swaps in product(*((False, True) if able else (False,) for able in self.swapped)):
            for chosen in product(*ways):
                yield self._mask(np.array(swaps, dtype=bool), np.array(sum(chosen, ()), dtype=int))

    def _random(self, rng: np.random.Generator) -> np.ndarray:
        swaps = (rng.random(len(self.pairs)) < 0.5) & self.swapped
        chosen = [rng.permutation(part)[:n_fore] for part, n_fore in self.free]
        return self._mask(swaps, np.concatenate(chosen))

    def _mask(self, swaps: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        mask = np.zeros(len(self.groups.names), dtype=bool)
        mask[chosen] = True
        for (fore, back), swapped in zip(self.pairs, swaps, strict=True):
            mask[back if swapped else fore] = True
        return mask


def split(groups: GroupSums, mask: np.ndarray) -> Split:
    """Assign groups to foreground and background; means, covariances and ρ are theirs.

    Parameters
    ----------
    groups : GroupSums
    mask : ndarray of bool, shape (g,)
        Which are the foreground's.

    Returns
    -------
    Split
    """
    parts = np.array([mask, ~mask], dtype=float)
    own = like(groups.sums, parts)
    roots = like(groups.sums, np.sqrt(groups.counts[~mask]))
    weighted = picked(groups.sums, ~mask) / roots[:, None]
    return Split.of(
        parts @ groups.counts,
        own @ groups.sums,
        namespace(own).tensordot(own, groups.products, axes=1),
        weighted.T @ weighted,
        int(np.sum(~mask)),
    )


class GroupShares(NamedTuple):
    """How the foreground's groups share in every pattern.

    Attributes
    ----------
    names : tuple of str
        Of the groups.
    shares : ndarray of shape (l, g)
        A group's mean square of the source, less the background's variance, over the sum of those of all
        groups: each counts the same, whatever its number of rows.
    """

    names: tuple[str, ...]
    shares: np.ndarray

    def take(self, patterns: np.ndarray) -> GroupShares:
        """Of some of the patterns."""
        return self._replace(shares=self.shares[patterns])

    @property
    def n_carrying(self) -> np.ndarray:
        """Effective number of groups that carry each pattern, one over the sum of squared shares."""
        return np.asarray(1 / np.maximum(np.sum(self.shares**2, axis=1), np.finfo(float).tiny))

    @property
    def of_few(self) -> np.ndarray:
        """Which patterns one or two groups carry."""
        return self.n_carrying < min(3.0, len(self.names) / 2)
