"""Moments of groups of rows, taken in the same pass as those of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from contrica.moments.operators import PackedTensor
from contrica.moments.packed import BlockMoments, Moments, moved_moments
from contrica.rows.device import single_precision_parts

__all__ = ["GroupMoments"]


class GroupMoments:
    """Accumulator of `Moments` for each of several groups, to which rows are assigned in turn.

    Parameters
    ----------
    n_features, n_groups : int
    start : int
        Number of the first row that will come, which decides its group.
    """

    def __init__(self, n_features: int, n_groups: int, start: int = 0) -> None:
        self.parts = [BlockMoments(n_features) for _ in range(n_groups)]
        self._next = start
        self._expanded: Any = None

    def update(self, block: Any) -> GroupMoments:
        """Add a block of rows."""
        count = len(self.parts)
        for i, part in enumerate(self.parts):
            for own in single_precision_parts(block[(i - self._next) % count :: count, :]):
                self._expanded = part._add_block(own, self._expanded)
        self._next += block.shape[0]
        return self

    def merge(self, other: GroupMoments) -> GroupMoments:
        """Add what another one holds."""
        for part, theirs in zip(self.parts, other.parts, strict=True):
            part.merge(theirs)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_expanded": None}

    def total(self) -> Moments:
        """Moments of all rows.

        Returns
        -------
        Moments
        """
        whole = Moments(self.parts[0].n_features)
        for part in self.parts:
            whole.merge(part)
        return whole

    def about(self, mean: np.ndarray) -> Iterator[tuple[int, np.ndarray, PackedTensor]]:
        """Of each group: its rows, and their second and fourth moments about a point.

        Parameters
        ----------
        mean : ndarray of shape (p,)

        Yields
        ------
        n_samples : int
        second : ndarray of shape (p, p)
        fourth : PackedTensor
        """
        for part in self.parts:
            yield part.n_samples, *moved_moments(part, mean)
