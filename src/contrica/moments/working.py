"""From checked datasets to moments: the axes to work in, then cumulants and rows there in one pass."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import ParameterError
from contrica.moments.estimates import Cumulants, Estimate, Storage, centred_cumulants
from contrica.moments.fourth import cumulants
from contrica.moments.grouped import group_bytes
from contrica.moments.packed import PointMoments
from contrica.moments.projection import (
    RowEstimate,
    axes_of,
    estimate_of_rows,
    n_axes,
    project_rows,
    sampled_index,
    survey,
)
from contrica.rows.dataset import Dataset
from contrica.rows.device import Rounding, to_numpy
from contrica.rows.groups import Groups
from contrica.rows.memory import check_memory, memory_budget
from contrica.rows.moving import check_one_device, fit_blocks, on_device, settle_on
from contrica.rows.products import projected, projected_there
from contrica.rows.threads import one_pool
from contrica.validation import as_basis

__all__ = ["Working", "Workplace"]

logger = logging.getLogger("contrica")

# Of more rows than this, and more entries than this, 128 MB of them, a random sample is kept in memory to
# choose ranks and to rotate sources. In memory, there are so many copies of them.
MANY_ROWS, MAX_ENTRIES, ROW_COPIES, MIN_SAMPLED = 100_000, 2**24, 10, 2000
# Matrices of as many rows and columns as there are dimensions that a fit has in memory, and copies of the
# rows that winsorizing them takes.
MATRIX_COPIES, ROBUST_COPIES = 16, 6
# Of the budget, what moments of groups of rows may take; cumulants and sampled rows need the rest.
GROUP_SHARE = 1 / 2


class Working(NamedTuple):
    """Datasets in the coordinates worked in, foreground first.

    Attributes
    ----------
    cumulants : list of Cumulants
    rows : list of ndarray of shape (n, k)
        All rows of each, or a random sample.
    grouped : list of (list of PointMoments or None)
        Moments of groups of rows about their mean, where they were asked for, rows are a sample, and the
        memory allows it.
    groups : list of Groups or None
        Of the ``rows`` of each, where rows come in groups.
    tensors : list of (tensor or None)
        The ``rows`` of each, up to their mean, as they are on the card that the fit works on.
    """

    cumulants: list[Cumulants]
    rows: list[np.ndarray]
    grouped: list[list[PointMoments] | None]
    groups: list[Groups | None]
    tensors: list[Any]

    def about(self, own_means: bool) -> Working:
        """The same with every dataset about its own mean, where that is asked for."""
        if not own_means:
            return self
        return self._replace(
            cumulants=[centred_cumulants(part) for part in self.cumulants],
            rows=[rows - part.mean for rows, part in zip(self.rows, self.cumulants, strict=True)],
        )


@dataclass(frozen=True)
class Workplace:
    """How rows become moments: in which axes, by which estimate, with how much memory, and where.

    Parameters
    ----------
    n_pcs, basis, cumulant, memory_limit, device, dtype
        As of `contrica.ContrastiveICA`.
    own_means : bool
        Whether every dataset is taken about its own mean, as where each has units of its own; its mean is
        then zero.
    """

    n_pcs: int | str | None
    basis: Any
    cumulant: RowEstimate
    memory_limit: Any
    device: str | None
    dtype: str
    own_means: bool = False

    @cached_property
    def budget(self) -> int:
        """Bytes that a fit may take; free memory is measured once."""
        return memory_budget(self.memory_limit)

    def room(self, n_dimensions: int) -> float:
        """Bytes for what makes a fit faster, beside what it cannot do without.

        Parameters
        ----------
        n_dimensions : int

        Returns
        -------
        float
        """
        if self.memory_limit is None:  # free memory by itself decides nothing
            return math.inf
        return max(self.budget - MATRIX_COPIES * 8 * n_dimensions**2, 0) / 2

    def dimensions(self, n_features: int) -> int | None:
        """In how many dimensions to work, or ``None`` where only the rows can say.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        int or None
        """
        is_known = self.basis is not None or isinstance(self.n_pcs, Integral)
        if is_known or n_axes(self.n_pcs, n_features) is None:
            return self.max_dimensions(n_features)
        return None

    def max_dimensions(self, n_features: int) -> int:
        """The most dimensions to work in, whatever the rows are.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        int
        """
        axes = self.given_basis(n_features)
        if axes is not None:
            return axes.shape[1]
        return n_axes(self.n_pcs, n_features) or n_features

    def given_basis(self, n_features: int) -> np.ndarray | None:
        """The basis that was given, refused where it does not fit so many variables.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        ndarray of shape (n_features, k) or None
        """
        if self.basis is None:
            return None
        basis = as_basis(self.basis)
        if len(basis) != n_features or basis.shape[1] > n_features:
            raise ParameterError(
                "basis-shape",
                f"`basis` has shape {basis.shape}",
                f"rows have {n_features} variables: it needs a row for each of them and a column for "
                "each axis",
                parameter="basis",
            )
        self.check_axes(basis)
        if np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() > 1e-6:
            raise ParameterError(
                "not-orthonormal",
                "the columns of `basis` are not orthonormal",
                remedy="Pass numpy.linalg.qr(basis)[0], or principal axes as common_basis returns them.",
                parameter="basis",
            )
        return basis

    def check_axes(self, basis: np.ndarray) -> None:
        """Refuse a number of principal components beside a basis of another number of axes.

        Parameters
        ----------
        basis : ndarray of shape (n_features, k)
        """
        if isinstance(self.n_pcs, Integral) and self.n_pcs != basis.shape[1]:
            raise ParameterError(
                "basis-and-n_pcs",
                f"`n_pcs={self.n_pcs}`",
                f"`basis` has {basis.shape[1]} axes to work in",
                "Leave `n_pcs` out.",
                "n_pcs",
            )

    def check_budget(self, n_dimensions: int, n_rows: int) -> None:
        """Refuse what will not fit the memory, before any of it is computed.

        Parameters
        ----------
        n_dimensions, n_rows : int
        """
        check_memory(
            MATRIX_COPIES * 8 * n_dimensions**2,
            self.budget,
            f"working in {n_dimensions} dimensions",
            "Lower `n_pcs`, or raise `memory_limit`.",
        )
        if self.cumulant == "robust":
            check_memory(
                ROBUST_COPIES * 8 * n_dimensions * n_rows,
                self.budget,
                f'cumulant="robust", which has all {n_rows} rows in {n_dimensions} dimensions in memory,',
                "Use `cumulant=plugin`, lower `n_pcs`, or raise `memory_limit`.",
            )

    def move(self, datasets: Sequence[Dataset]) -> None:
        """Take the rows of datasets to the device, where there is one and they can be taken there.

        Parameters
        ----------
        datasets : sequence of Dataset
        """
        for part in datasets:
            moved = on_device(part.rows, self.device) if part.moved is None else part.moved
            part.rows = moved
        settle_on([part.rows for part in datasets], self.device)

    def check_places(self, datasets: Sequence[Dataset]) -> None:
        """Refuse tensors on several cards, or on one that has no memory left, before they are read.

        Parameters
        ----------
        datasets : sequence of Dataset
        """
        rows, names = [part.rows for part in datasets], [part.name for part in datasets]
        check_one_device(rows, names, self.device)
        fit_blocks(rows, names)

    def read_there(self, datasets: Sequence[Dataset]) -> None:
        """Have what is in memory moved before it is read for the first time.

        Parameters
        ----------
        datasets : sequence of Dataset
        """
        for part in datasets:
            part.to_device = partial(on_device, device=self.device)

    def axes(self, datasets: Sequence[Dataset]) -> np.ndarray | None:
        """The axes to work in: those given, or common principal ones, for which rows are read once.

        Parameters
        ----------
        datasets : sequence of Dataset

        Returns
        -------
        ndarray of shape (n_features, k) or None
        """
        given = self.given_basis(datasets[0].n_features)
        if given is not None:
            return given
        with one_pool():
            return axes_of(
                [part.rows for part in datasets],
                [part.summary for part in datasets],
                self.n_pcs,
                self.budget,
                own_means=self.own_means,
            )

    def take(
        self,
        datasets: Sequence[Dataset],
        basis: np.ndarray | None,
        *,
        storage: Storage,
        n_groups: Sequence[int],
    ) -> Working:
        """Cumulants and rows in the coordinates of a basis, in one pass over the rows.

        Parameters
        ----------
        datasets : sequence of Dataset
        basis : ndarray of shape (n_features, k) or None
        storage : {"auto", "packed", "matrix-free"}
            How to store fourth cumulants of backgrounds, and of the foreground where rows stay in memory.
        n_groups : sequence of int
            For each dataset, groups of rows whose moments to take where rows are sampled, or 0.

        Returns
        -------
        Working
        """
        n_rows = [len(part) for part in datasets]
        k = datasets[0].n_features if basis is None else basis.shape[1]
        logger.info("cumulants of %s rows", " and ".join(map(str, n_rows)))
        kept = self._max_in_memory(k)
        if sum(n_rows) <= kept or self.cumulant == "robust":
            return self._in_memory(datasets, basis, storage).about(self.own_means)
        shares = [max(kept * n // sum(n_rows), 2) for n in n_rows]
        logger.info("sampling %s rows", " and ".join(map(str, shares)))
        storages: list[Storage] = ["auto", *[storage] * (len(n_rows) - 1)]
        return self._sampled(
            datasets, basis, storages, shares, self._max_groups(k, n_groups)
        ).about(self.own_means)

    def _max_groups(self, k: int, n_groups: Sequence[int]) -> Sequence[int]:
        """As many groups as asked for, or none where their moments do not fit the memory."""
        if sum(group_bytes(k, count) for count in n_groups) <= GROUP_SHARE * self.budget:
            return n_groups
        logger.info("no room for the moments of groups of rows")
        return [0] * len(n_groups)

    def _max_in_memory(self, k: int) -> int:
        most = max(MAX_ENTRIES // k, MANY_ROWS)
        if self.memory_limit is not None:  # free memory by itself decides nothing
            most = max(min(most, self.budget // (8 * ROW_COPIES * k)), MIN_SAMPLED)
        return most

    @property
    def _estimate(self) -> Estimate:
        return estimate_of_rows(self.cumulant)

    def _in_memory(
        self,
        datasets: Sequence[Dataset],
        basis: np.ndarray | None,
        storage: Storage,
    ) -> Working:
        found, rows, tensors = [], [], []
        for data in datasets:
            there = projected_there(data.rows, basis) if self.cumulant != "robust" else None
            part = there or project_rows(data.rows, basis, self.cumulant)
            rounding = Rounding.of(data.summary, basis)
            moved = on_device(part, self.device, self.dtype, rounding)
            summed = cumulants(
                *(moved, self._estimate),
                storage=storage,
                memory_limit=self.budget,
                mean=data.summary.mean if moved is data.rows else None,
            )
            found.append(self._in_own_unit(summed, moved is not part, rounding))
            rows.append(part if isinstance(part, np.ndarray) else to_numpy(part.tensor))
            tensors.append(None if isinstance(part, np.ndarray) else part.tensor)
        groups = [part.groups for part in datasets]
        return Working(found, rows, [None] * len(rows), groups, tensors)

    def _sampled(
        self,
        datasets: Sequence[Dataset],
        basis: np.ndarray | None,
        storages: list[Storage],
        shares: list[int],
        n_groups: Sequence[int],
    ) -> Working:
        found, rows, grouped, groups = [], [], [], []
        plan = zip(datasets, storages, shares, n_groups, strict=True)
        for data, storage, share, count in plan:
            whole, rounding = projected(data.rows, basis), Rounding.of(data.summary, basis)
            moved = on_device(whole, None, self.dtype, rounding)
            # what is read anew for every pass is written out: that takes one
            again = isinstance(data.rows, np.ndarray) or data.rows.is_in_memory
            surveyed = survey(
                *(moved, self._estimate, share),
                n_groups=count,
                storage=storage if again else "auto",
                memory_limit=self.budget,
            )
            rounded, (origin, unit) = moved is not whole, rounding
            found.append(self._in_own_unit(surveyed.cumulants, rounded, rounding))
            rows.append(unit * surveyed.rows + origin if rounded else surveyed.rows)
            parts = surveyed.grouped
            grouped.append([part.in_unit(unit) for part in parts] if rounded and parts else parts)
            index = sampled_index(len(data), share)
            groups.append(None if data.groups is None else data.groups.take(index))
        return Working(found, rows, grouped, groups, [None] * len(rows))

    def _in_own_unit(self, found: Cumulants, rounded: bool, rounding: Rounding) -> Cumulants:
        """Cumulants of rows that were rounded about an origin, in a unit, as those of the rows."""
        if not (rounded and self._single):
            return found
        return found.in_unit(rounding.unit, rounding.origin)

    @property
    def _single(self) -> bool:
        return self.dtype == "float32"
