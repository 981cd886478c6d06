"""Moments from observed entries, each over the rows in which all its variables are observed.

Rows about the mean of what was observed, with 0 for a gap, are expanded as `contrica.moments.packed`
does, into ``f(w) = (1, w, svec(w wᵀ))``; whether entries were observed, 1 or 0, likewise. One Gram
matrix over the other, entry by entry, has the means of all products of up to four variables, each over
the rows in which these were observed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.moments.estimates import Cumulants
from contrica.moments.operators import PackedTensor
from contrica.moments.packed import PointMoments, expanded_rows
from contrica.moments.symmetric import n_packed, pair_indices, smat, svec
from contrica.moments.third import ThirdTensor
from contrica.rows.device import to_numpy
from contrica.rows.protocol import Rows, accumulate

__all__ = ["PairwiseMoments", "pairwise_bytes", "pairwise_moments"]

# Matrices of the size of the flattened fourth moment that are in memory at a time.
COPIES = 8
# Rows in which variables must be observed together.
MIN_TOGETHER = 2


class PairwiseMoments:
    """Accumulator of moments from observed entries, of groups to which rows are assigned in turn.

    Parameters
    ----------
    origin : ndarray of shape (p,)
        What moments are about: the mean of the observed entries.
    n_groups : int
    start : int
        Number of the first row that will come, which decides its group.
    """

    def __init__(self, origin: np.ndarray, n_groups: int = 1, start: int = 0) -> None:
        self.origin, self._next = origin, start
        size = 1 + origin.size + n_packed(origin.size)
        self._sums = np.zeros((n_groups, size, size))
        self._counts = np.zeros((n_groups, size, size))
        self._n_rows = np.zeros(n_groups, dtype=int)

    def update(self, block: Any) -> PairwiseMoments:
        """Add a block of rows."""
        rows = to_numpy(block)
        count = len(self._sums)
        for i in range(count):
            own = rows[(i - self._next) % count :: count]
            observed = ~np.isnan(own)
            wide = _expanded(np.where(observed, own - self.origin, 0.0))
            self._sums[i] += wide.T @ wide
            both = _expanded(observed.astype(np.float64), scaled=False)
            self._counts[i] += both.T @ both
            self._n_rows[i] += len(own)
        self._next += len(rows)
        return self

    def merge(self, other: PairwiseMoments) -> PairwiseMoments:
        """Add what another one holds."""
        self._sums += other._sums
        self._counts += other._counts
        self._n_rows += other._n_rows
        return self

    @property
    def n_together(self) -> int:
        """In how many rows any four variables were observed, at least."""
        return int(self._counts.sum(axis=0).min())

    def cumulants(self, name: str) -> Cumulants:
        """Cumulants of all rows; the covariance made positive semi-definite.

        Parameters
        ----------
        name : str
            What errors call the dataset.

        Returns
        -------
        Cumulants
        """
        p, counts = self.origin.size, self._counts.sum(axis=0)
        _check_together(counts, p, name)
        mean = self._sums.sum(axis=0) / counts
        second = _definite(smat(mean[0, 1 + p :]), self._n_rows.sum())
        fourth = mean[1 + p :, 1 + p :] - _pairings(second)
        return Cumulants(
            self.origin + mean[0, 1 : 1 + p],
            second,
            PackedTensor((fourth + fourth.T) / 2, p),
            int(self._n_rows.sum()),
            ThirdTensor(smat(mean[1 : 1 + p, 1 + p :])),
        )

    def groups(self) -> list[PointMoments]:
        """Moments of every group about the mean of all; what a group did not observe is as of all.

        Returns
        -------
        list of PointMoments
        """
        p = self.origin.size
        whole = self._sums.sum(axis=0) / np.maximum(self._counts.sum(axis=0), 1.0)
        found = []
        for n_rows, sums, counts in zip(self._n_rows, self._sums, self._counts, strict=True):
            mean = np.where(counts > 0, sums / np.maximum(counts, 1.0), whole)
            found.append(
                PointMoments(
                    int(n_rows),
                    mean[0, 1 : 1 + p],
                    smat(mean[0, 1 + p :]),
                    ThirdTensor(smat(mean[1 : 1 + p, 1 + p :])),
                    PackedTensor(mean[1 + p :, 1 + p :], p),
                )
            )
        return found


def pairwise_moments(
    X: np.ndarray | Rows, origin: np.ndarray, n_groups: int = 1
) -> PairwiseMoments:
    """Moments from the observed entries of rows, in one pass.

    Parameters
    ----------
    X : ndarray of shape (n, p), or Rows
        NaN where a value is missing.
    origin : ndarray of shape (p,)
        The mean of the observed entries.
    n_groups : int

    Returns
    -------
    PairwiseMoments

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 0.0], [np.nan, 4.0], [3.0, 6.0]])
    >>> pairwise_moments(X, np.nanmean(X, axis=0)).cumulants("X").covariance.round(3)
    array([[ 2.   , -1.333],
           [-1.333,  5.   ]])
    """
    found: PairwiseMoments = accumulate(
        X, partial(PairwiseMoments, origin, n_groups), expanded_rows(origin.size, X)
    )
    return found


def pairwise_bytes(n_features: int) -> int:
    """Memory that moments from observed entries take, with what cumulants make of them.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    int
    """
    return COPIES * 8 * n_packed(n_features + 1) ** 2


def _expanded(rows: np.ndarray, *, scaled: bool = True) -> np.ndarray:
    """``(1, w, svec(w wᵀ))`` of every row; without the factors √2 where these are counted."""
    first, second, scale = pair_indices(rows.shape[1])
    pairs = rows[:, first] * rows[:, second]
    if scaled:
        pairs *= scale
    return np.hstack([np.ones((len(rows), 1)), rows, pairs])


def _pairings(S: np.ndarray) -> np.ndarray:
    """``S_ij S_kl + S_ik S_jl + S_il S_jk`` in ``svec`` coordinates."""
    first, second, scale = pair_indices(len(S))
    crossed = S[np.ix_(first, first)] * S[np.ix_(second, second)]
    crossed += S[np.ix_(first, second)] * S[np.ix_(second, first)]
    return np.outer(svec(S), svec(S)) + crossed * np.outer(scale, scale)


def _definite(S: np.ndarray, n_rows: int) -> np.ndarray:
    """The matrix, its negative eigenvalues raised to the size of the sampling error, ``tr(S) / n``."""
    values, axes = np.linalg.eigh(S)
    if values[0] > 0 or values[-1] <= 0:
        return S
    return (axes * np.maximum(values, S.trace() / n_rows)) @ axes.T


def _check_together(counts: np.ndarray, p: int, name: str) -> None:
    """Refuse variables that are never observed together, of which no product has a mean."""
    least = counts.min()
    if least >= MIN_TOGETHER:
        return
    first, second, _ = pair_indices(p)
    both = [(), *((j,) for j in range(p)), *zip(first.tolist(), second.tolist(), strict=True)]
    i, j = np.unravel_index(int(counts.argmin()), counts.shape)
    columns = sorted({*both[i], *both[j]})
    raise DataError(
        "never-together",
        f"columns {', '.join(map(str, columns))} of `{name}` are observed together in {int(least)} rows",
        f"moments from observed entries need {MIN_TOGETHER} rows for every four variables",
        "Use `missing=impute`, or leave a variable out.",
        name,
    )
