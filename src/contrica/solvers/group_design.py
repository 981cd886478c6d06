"""Groups of rows: sums over each, how they can be assigned to two datasets, and shares in a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np

from contrica.rows.groups import Groups
from contrica.solvers.contrast_directions import rounding_of
from contrica.solvers.rescaling import Rescaling

__all__ = ["GroupDesign", "GroupShares", "GroupSums", "Split", "group_floor", "split"]


class GroupSums(NamedTuple):
    """Sums over the rows of every group of a dataset, about the dataset's mean.

    Attributes
    ----------
    names : tuple of str
    counts : ndarray of shape (g,)
        Rows.
    sums : ndarray of shape (g, p)
    products : ndarray of shape (g, p, p)
        ``Σ x xᵀ``.
    """

    names: tuple[str, ...]
    counts: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, groups: Groups) -> GroupSums:
        """Sum the rows of every group that has some.

        Parameters
        ----------
        rows : ndarray of shape (n, p)
        groups : Groups

        Returns
        -------
        GroupSums
        """
        mean = rows.mean(axis=0)
        order = np.argsort(groups.codes, kind="stable")
        counts = np.bincount(groups.codes, minlength=len(groups.names))
        parts = np.split(order, np.cumsum(counts)[:-1])
        kept = [i for i, part in enumerate(parts) if part.size]
        centred = [rows[parts[i]] - mean for i in kept]
        return cls(
            tuple(groups.names[i] for i in kept),
            counts[kept],
            np.array([part.sum(axis=0) for part in centred]),
            np.array([part.T @ part for part in centred]),
        )

    @classmethod
    def stacked(cls, parts: Sequence[GroupSums]) -> GroupSums:
        """Groups of several datasets, one after the other."""
        names = tuple(name for part in parts for name in part.names)
        return cls(
            names, *(np.concatenate(each) for each in zip(*(p[1:] for p in parts), strict=True))
        )

    def inside(self, axes: np.ndarray) -> GroupSums:
        """The same in other coordinates, ``x · axes``."""
        return self._replace(sums=self.sums @ axes, products=axes.T @ self.products @ axes)


def group_floor(n_rows: float, n_groups: float, total: float, explained: float) -> float:
    """ρ where rows come in groups: sampling error of a covariance, from both of its levels.

    ``tr(between)/G + tr(within)/m`` with the variance components of a one-way design. With as many groups
    as rows, or groups that do not differ, it is ``tr(Σ)/m``, as of independent rows.

    Parameters
    ----------
    n_rows, n_groups : float
        m and G.
    total : float
        Sum of squares about the mean, of all variables.
    explained : float
        What the means of the groups have of it.

    Returns
    -------
    float
    """
    within = (total - explained) / max(n_rows - n_groups, 1)
    between = max(explained / max(n_groups - 1, 1) - within, 0.0) * n_groups / n_rows
    return between / n_groups + within / n_rows


@dataclass(frozen=True)
class GroupDesign:
    """Groups of a foreground and of its backgrounds; a group of both is *paired*.

    Attributes
    ----------
    groups : GroupSums
        The foreground's, then those of the backgrounds.
    n_fore : int
        How many are the foreground's.
    """

    groups: GroupSums
    n_fore: int

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
    def free(self) -> tuple[np.ndarray, int]:
        """Numbers of the groups that are in one dataset only, and how many are the foreground's."""
        paired = {i for pair in self.pairs for i in pair}
        free = np.array([i for i in range(len(self.groups.names)) if i not in paired], dtype=int)
        return free, int(np.sum(free < self.n_fore))

    @property
    def n_assignments(self) -> int:
        """Ways to assign groups: unpaired ones change places, halves of a paired one are swapped."""
        free, n_fore = self.free
        return int(2 ** len(self.pairs) * comb(free.size, n_fore))

    @property
    def floor(self) -> float:
        """ρ of the background (`group_floor`)."""
        return split(self.groups, self.observed()).floor

    def observed(self) -> np.ndarray:
        """Which groups are the foreground's."""
        return np.arange(len(self.groups.names)) < self.n_fore

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
        free, n_fore = self.free
        for swaps in product((False, True), repeat=len(self.pairs)):
            for chosen in combinations(free, n_fore):
                yield self._mask(np.array(swaps, dtype=bool), np.array(chosen, dtype=int))

    def _random(self, rng: np.random.Generator) -> np.ndarray:
        free, n_fore = self.free
        return self._mask(rng.random(len(self.pairs)) < 0.5, rng.permutation(free)[:n_fore])

    def _mask(self, swaps: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        mask = np.zeros(len(self.groups.names), dtype=bool)
        mask[chosen] = True
        for (fore, back), swapped in zip(self.pairs, swaps, strict=True):
            mask[back if swapped else fore] = True
        return mask


class Split(NamedTuple):
    """Covariances of groups that an assignment puts into foreground and background, and ρ."""

    fore: np.ndarray
    back: np.ndarray
    floor: float


def split(groups: GroupSums, mask: np.ndarray, rescaling: Rescaling | None = None) -> Split:
    """Assign groups to foreground and background; means, covariances and ρ are theirs.

    Parameters
    ----------
    groups : GroupSums
    mask : ndarray of bool, shape (g,)
        Which are the foreground's.
    rescaling : Rescaling, optional
        Where variables were divided by standard deviations: they are divided by those of the split.

    Returns
    -------
    Split
    """
    fore, back = (_Assigned.of(groups, part) for part in (mask, ~mask))
    if rescaling is not None:
        maps = rescaling.maps(fore.covariance, back.covariance, fore.n_rows, back.n_rows)
        fore, back = (part.inside(axes) for part, axes in zip((fore, back), maps, strict=True))
    return Split(fore.covariance, back.covariance, max(back.floor, rounding_of(fore.covariance)))


class _Assigned(NamedTuple):
    """Groups that are put into one dataset: their rows, sums about its mean, and its covariance."""

    counts: np.ndarray
    sums: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, groups: GroupSums, mask: np.ndarray) -> _Assigned:
        counts, sums = groups.counts[mask], groups.sums[mask]
        n_rows = float(counts.sum())
        mean = sums.sum(axis=0) / n_rows
        products = np.tensordot(mask.astype(float), groups.products, 1) / n_rows
        return cls(counts, sums - np.outer(counts, mean), products - np.outer(mean, mean))

    @property
    def n_rows(self) -> float:
        return float(self.counts.sum())

    def inside(self, axes: np.ndarray) -> _Assigned:
        """The same in other coordinates, ``x · axes``."""
        return self._replace(sums=self.sums @ axes, covariance=axes.T @ self.covariance @ axes)

    @property
    def floor(self) -> float:
        """ρ of the covariance (`group_floor`)."""
        explained = float(np.sum(self.sums**2 / self.counts[:, None]))
        total = self.n_rows * float(self.covariance.trace())
        return group_floor(self.n_rows, len(self.counts), total, explained)


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
