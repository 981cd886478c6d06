"""Moments of groups of rows, taken in the same pass as those of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.moments.packed import BlockMoments, Moments, PointMoments, moved_moments
from contrica.moments.symmetric import n_packed
from contrica.rows.device import single_precision_parts

__all__ = ["GroupMoments", "group_bytes"]


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

    def about(self, mean: np.ndarray) -> list[PointMoments]:
        """Moments of each group about a point; the sums are let go of, one after the other.

        Parameters
        ----------
        mean : ndarray of shape (p,)

        Returns
        -------
        list of PointMoments
        """
        found, self._expanded = [], None
        while self.parts:
            found.append(moved_moments(self.parts.pop(0), mean))
        return found


def group_bytes(n_features: int, n_groups: int) -> int:
    """Memory that the moments of so many groups take.

    Parameters
    ----------
    n_features, n_groups : int

    Returns
    -------
    int
    """
    return n_groups * 8 * n_packed(n_features + 1) ** 2
