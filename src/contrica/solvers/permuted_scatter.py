"""Products of the scatters of permuted foregrounds with a vector each: through rows, or by matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtrsm, sgemm, ssyrk

from contrica.rows.protocol import CACHED_ENTRIES
from contrica.rows.threads import one_thread
from contrica.solvers.row_design import RowBatches, RowDesign

__all__ = ["ByMatrices", "ByRows", "blocks_of", "n_entries", "scatters"]

# Batches whose products are kept until they are added up; sets of columns in which only the upper part of
# a matrix is kept.
BATCHES_AT_ONCE, PANELS = 20, 4


class ByRows(NamedTuple):
    """Through the rows, for all permutations at a time.

    Attributes
    ----------
    blocks : callable
        Gives an iterator over slices of rows, and these rows.
    in_fore : ndarray of bool, shape (n + m, k)
        Which rows are in the foreground.
    """

    blocks: Callable[[], Iterator[tuple[slice, np.ndarray]]]
    in_fore: np.ndarray

    def take(self, which: np.ndarray) -> ByRows:
        """Of some of the permutations."""
        return self._replace(in_fore=self.in_fore[:, which])

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """``Σ x (xᵀv)`` over every foreground, of vectors as columns."""
        image = np.zeros_like(vectors)
        for own, block in self.blocks():
            along = block @ vectors.astype(block.dtype)
            along *= self.in_fore[own]
            image += block.T @ along
        return image


class ByMatrices(NamedTuple):
    """By the matrices, where they are there.

    Attributes
    ----------
    panels : list of ndarray of shape (n_permutations, k, w)
        Of all permutations, from `scatters`: w columns of each matrix, down to the diagonal.
    which : ndarray of int, shape (k,)
        Of which permutations products are asked for.
    """

    panels: list[np.ndarray]
    which: np.ndarray

    def take(self, which: np.ndarray) -> ByMatrices:
        """Of some of the permutations."""
        return self._replace(which=self.which[which])

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """``Σ w (wᵀv)`` over every foreground, of vectors as columns."""
        each = np.ascontiguousarray(vectors.T, dtype=np.float32)
        image = np.zeros_like(each)
        # so many small products wait for memory, and with more threads for one another as well
        with one_thread():
            # a panel stays in the cache for all vectors of its permutation
            for number in np.unique(self.which):
                columns = np.flatnonzero(self.which == number)
                for panel in self.panels:
                    own = panel[number]
                    last, width = own.shape
                    first = last - width
                    for column in columns:
                        vector, out = each[column], image[column]
                        out[:last] += own @ vector[first:last]
                        out[first:last] += vector[:first] @ own[:first]
        return image.T.astype(float)


def blocks_of(rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices of rows, and these rows, some at a time that stay in the cache."""
    step = max(CACHED_ENTRIES // rows.shape[1], 1)
    for first in range(0, len(rows), step):
        yield slice(first, first + step), rows[first : first + step]


def scatters(
    design: RowDesign, batches: RowBatches, in_fore: np.ndarray, factor: np.ndarray
) -> list[np.ndarray]:
    """``Σ w wᵀ`` over permuted foregrounds, w = L⁻¹ x: of every batch once, then added up.

    With ``L Lᵀ`` near the scatter of all rows no matrix is larger than one, and in every direction the
    rounding of single precision is relative to the variance of all rows there.

    Parameters
    ----------
    design : RowDesign
    batches : RowBatches
    in_fore : ndarray of bool, shape (n_permutations, n_batches)
        Which batches are in the foreground.
    factor : ndarray of shape (p, p)
        L, lower triangular.

    Returns
    -------
    list of ndarray of shape (n_permutations, k, w)
        For `ByMatrices`.
    """
    p, n_batches = design.shape[1], len(batches.rows)
    ends = np.linspace(0, p, PANELS + 1).astype(int)
    columns = [slice(first, last) for first, last in pairwise(ends)]
    found = [_room(len(in_fore), own) for own in columns]
    some = [_room(min(BATCHES_AT_ONCE, n_batches), own) for own in columns]
    whole = np.zeros((p, p), dtype=np.float32)
    for first in range(0, n_batches, BATCHES_AT_ONCE):
        index = batches.rows[first : first + BATCHES_AT_ONCE]
        for number, rows in enumerate(index):
            whitened = dtrsm(1.0, factor, design.take(rows).T, lower=1, overwrite_b=1)
            block = whitened.T.astype(np.float32)
            # a triangle, in place: what is lower to LAPACK is upper here
            ssyrk(1.0, block.T, beta=0.0, c=whole.T, overwrite_c=1, lower=1)
            for part, own in zip(some, columns, strict=True):
                part[number] = whole[: own.stop, own]
        shares = in_fore[:, first : first + len(index)].T.astype(np.float32)
        for part, total in zip(some, found, strict=True):
            added, flat = (each.reshape(len(each), -1).T for each in (total, part[: len(index)]))
            sgemm(1.0, flat, shares, beta=1.0, c=added, overwrite_c=1)
    for total, own in zip(found, columns, strict=True):
        for block in total[:, own]:
            block += np.triu(block, 1).T
    return found


def _room(count: int, columns: slice) -> np.ndarray:
    """Zeros for some columns of matrices, down to the diagonal."""
    return np.zeros((count, columns.stop, columns.stop - columns.start), dtype=np.float32)


def n_entries(n_permutations: int, n_features: int) -> int:
    """How many numbers `scatters` has in memory at most.

    Parameters
    ----------
    n_permutations, n_features : int

    Returns
    -------
    int
    """
    share = (1 + 1 / PANELS) / 2
    beside = 4  # a batch's, L in doubles, and what leads to its coordinates
    return int((share * (n_permutations + BATCHES_AT_ONCE) + beside) * n_features**2)
