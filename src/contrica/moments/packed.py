"""Moments up to order four, written out from one pass over the rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyr2k, dsyrk

from contrica.errors import FeaturesError
from contrica.moments.estimates import Cumulants, Estimate, factors, third_factor
from contrica.moments.operators import Congruence, PackedTensor
from contrica.moments.symmetric import n_packed, pair_indices, smat, svec
from contrica.moments.third import ThirdTensor
from contrica.rows.device import (
    as_doubles,
    like,
    namespace,
    same_kind,
    single_precision_parts,
    to_numpy,
)
from contrica.rows.protocol import Rows, accumulate, block_rows, iterate_blocks
from contrica.validation import check_matrix, check_width

__all__ = [
    "BlockMoments",
    "Moments",
    "PointMoments",
    "expanded_rows",
    "moved_moments",
    "packed_cumulants",
]

# Rows that are expanded at a time: at least so many, and twice as many if they take no more than 64 MiB.
DEEPEST, EXPANDED_BYTES = 2048, 2**26
# The Gram matrix of the moments is filled in so many panels where there is no BLAS to do one triangle.
PANELS = 6
# Rows and columns of a matrix that are transposed at a time.
TILE = 256


class Moments:
    """Accumulator of all moments up to order four; one pass, mergeable.

    Each row ``w = x − shift`` is expanded into ``f(w) = (1, w, svec(w wᵀ))`` and the Gram matrix
    ``G = Σ f(w) f(w)ᵀ`` is all that is kept: its blocks are the count, the sum and the second, third
    and fourth moments. A few matrix products per block of rows fill its lower triangle, panel by panel.
    Moving the origin is linear, ``f(w + e) = L(e) f(w)``, so centring and merging are ``L G Lᵀ``.

    The origin is the mean of the first block, which keeps the sums free of cancellation when the
    mean is large against the spread.

    Parameters
    ----------
    n_features : int
        Number of variables, p. The Gram matrix has ``1 + p + p(p+1)/2`` rows.
    start : int
        Ignored; what `contrica.rows.protocol.accumulate` tells every accumulator.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).laplace(size=(1000, 3))
    >>> halves = Moments(3).update(X[:500]).merge(Moments(3).update(X[500:]))
    >>> whole = Moments(3).update(X)
    >>> bool(np.allclose(halves.cumulants().fourth.flatten(), whole.cumulants().fourth.flatten()))
    True
    """

    def __init__(self, n_features: int, start: int = 0) -> None:
        self.n_features = n_features
        self.n_samples = 0
        self._shift = np.zeros(n_features)
        # Rows a … b of the lower triangle with the columns before b, float64, where the blocks are; of
        # numpy's one for all, in Fortran order, which dsyrk updates in place. What is above the diagonal
        # is not used.
        self._panels: list[Any] = []

    @property
    def _size(self) -> int:
        return 1 + self.n_features + n_packed(self.n_features)

    def _make_panels(self, block: Any) -> None:
        """Panels of the block's kind and where it is: zeros, or what was summed elsewhere."""
        before = self._whole() if self._panels else None
        if isinstance(block, np.ndarray):
            self._panels = [np.zeros((self._size, self._size), order="F")]
        else:
            xp = namespace(block)
            ends = np.unique(np.linspace(0, self._size, PANELS + 1).astype(int)).tolist()
            kind = same_kind(block, xp.float64)
            self._panels = [xp.zeros((b - a, b), **kind) for a, b in pairwise(ends)]
        if before is not None:
            for panel in self._panels:
                rows, stop = panel.shape
                panel += like(panel, before[stop - rows : stop, :stop])

    def update(self, X: Any, *, n_rows: int | None = None) -> Moments:
        """Add the rows of ``X``, ``n_rows`` at a time; returns the accumulator."""
        if not isinstance(X, Rows) and (isinstance(X, np.ndarray) or not hasattr(X, "dtype")):
            X = check_matrix(X, "X", n_features=self.n_features)
        check_width(X.shape[1], self.n_features, "X")
        expanded = None
        if isinstance(X, np.ndarray | Rows):
            for block in iterate_blocks(X, n_rows or expanded_rows(self.n_features, X)):
                expanded = self._add_block(block, expanded)
        else:  # a block of another kind of array, as it stands
            self._add_block(X, expanded)
        return self

    def _add_block(self, block: Any, expanded: Any) -> Any:
        """Add a block; its expanded rows overwrite those of the block before, and are returned."""
        xp, p, n = namespace(block), self.n_features, block.shape[0]
        if n == 0:
            return expanded
        if self.n_samples == 0:
            # about the first row, so that what does not vary is at its mean exactly
            first = block[:1, :]
            self._shift = to_numpy(first[0, :] + xp.mean(block - first, axis=0))
        # Expanded rows as columns: every write below is then one contiguous product.
        if expanded is None or expanded.shape[1] != n or expanded.dtype != block.dtype:
            expanded = xp.empty((self._size, n), **same_kind(block))
        expanded[0, :] = 1.0
        # in doubles: a shift that was rounded would be another
        doubles = as_doubles(block)
        centred = (doubles - like(doubles, self._shift)).T
        if not isinstance(block, np.ndarray):
            centred = xp.astype(centred, block.dtype, copy=False)
        expanded[1 : 1 + p, :] = centred
        W = expanded[1 : 1 + p, :]
        scaled = 2.0**0.5 * W
        start = 1 + p
        for i in range(p):
            _write_product(expanded[start : start + 1, :], W[i : i + 1, :], W[i : i + 1, :])
            _write_product(expanded[start + 1 : start + p - i, :], W[i, :], scaled[i + 1 :, :])
            start += p - i
        if not self._panels or not _beside(self._panels[0], block):
            self._make_panels(block)
        for panel in self._panels:
            _add_product(panel, expanded)
        self.n_samples += n
        return expanded

    def merge(self, other: Moments) -> Moments:
        """Add another accumulator's rows to this one's; returns this accumulator."""
        if other.n_features != self.n_features:
            raise FeaturesError(
                "width",
                f"cannot merge moments of {other.n_features} variables into moments of "
                f"{self.n_features}",
                remedy="Both must measure the same variables in the same order.",
            )
        if other.n_samples == 0:
            return self
        if self.n_samples == 0:
            self._shift = other._shift
        gram = _moved(other._whole(), other._shift - self._shift)
        if self._panels:
            gram += self._whole()
        self._panels = [gram]
        self.n_samples += other.n_samples
        return self

    def state(self) -> dict[str, np.ndarray]:
        """The state, as plain arrays: what `from_state` makes a `Moments` of."""
        arrays = {"n_samples": np.array(self.n_samples), "shift": self._shift}
        return arrays | ({"gram": _mirrored(self._whole().copy("F"))} if self.n_samples else {})

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Moments:
        """The accumulator that had this `state`."""
        made = cls(state["shift"].size)
        made.n_samples, made._shift = int(state["n_samples"]), np.array(state["shift"])
        if made.n_samples:
            made._panels = [np.array(state["gram"], order="F")]  # a copy: it will be added to
        return made

    def counts_its_rows(self) -> bool:
        """Whether the sums are of as many rows, and variables, as they are said to be."""
        gram = self._panels[0] if len(self._panels) == 1 else self._whole()
        sized = tuple(gram.shape) == (self._size, self._size)
        return sized and bool(gram[0, 0] == self.n_samples) and bool(np.isfinite(gram).all())

    def __getstate__(self) -> dict[str, Any]:
        # what is sent between processes is numpy's
        return self.__dict__ | {"_panels": [self._whole()] if self._panels else []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # joblib's workers get large arrays that must not be written to; BLAS would not ask
        self._panels = [
            part if part.flags.writeable else np.array(part, order="F") for part in self._panels
        ]

    def _whole(self) -> np.ndarray:
        """G as one array of numpy's, in Fortran order; what is above the diagonal is not used."""
        if len(self._panels) == 1:
            return np.asfortranarray(to_numpy(self._panels[0]))
        low, start = np.zeros((self._size, self._size)), 0
        for panel in self._panels:
            stop = start + panel.shape[0]
            low[start:stop, : panel.shape[1]] = to_numpy(panel)
            start = stop
        return _mirrored(low).T

    def mean(self) -> np.ndarray:
        """Mean of all rows so far.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        found: np.ndarray = self._shift + self._whole()[1 : 1 + self.n_features, 0] / self.n_samples
        return found

    def cumulants(self, estimate: Estimate = "plugin", *, last: bool = False) -> Cumulants:
        """Cumulants of all rows so far.

        Parameters
        ----------
        estimate : {"plugin", "unbiased"}
            The paper's formula (division by n) or k-statistics.
        last : bool
            That no more is asked of this accumulator: its memory becomes that of the fourth cumulant, and
            it is empty afterwards.

        Returns
        -------
        Cumulants
        """
        n, p = self.n_samples, self.n_features
        two, four, pairing = factors(n, estimate)
        gram = self._whole()
        head = _mirrored(gram[: 1 + p, : 1 + p] / n)
        mean, covariance = head[1:, 0], head[1:, 1:] - np.outer(head[1:, 0], head[1:, 0])
        third = _central_third(gram[1 + p :, 1 : 1 + p] / n, head) * third_factor(n, estimate)
        if last:  # at once: what is left after an interrupted move is of no use
            self.n_samples, self._panels = 0, []
        fourth = _moved(gram, -mean, 1 + p, last=last)
        fourth *= four / n
        _subtract_pairings(fourth, covariance, pairing)
        flat = _mirrored(fourth).T  # symmetric: rows where columns were
        return Cumulants(self._shift + mean, two * covariance, PackedTensor(flat, p), n, third)


class PointMoments(NamedTuple):
    """Moments of rows about a point.

    Attributes
    ----------
    n_samples : int
    first : ndarray of shape (p,)
    second : ndarray of shape (p, p)
    third : ThirdTensor
    fourth : PackedTensor
    """

    n_samples: int
    first: np.ndarray
    second: np.ndarray
    third: ThirdTensor
    fourth: PackedTensor

    def in_unit(self, unit: float) -> PointMoments:
        """Moments of the rows times a number, about the point times that number.

        Parameters
        ----------
        unit : float

        Returns
        -------
        PointMoments
        """
        fourth = PackedTensor(unit**4 * self.fourth.flattening, self.fourth.n_features)
        return PointMoments(
            self.n_samples, unit * self.first, unit**2 * self.second, self.third * unit**3, fourth
        )

    def projected(self, axes: np.ndarray | None) -> PointMoments:
        """Moments of ``Uᵀx``; the same ones without axes."""
        if axes is None:
            return self
        flat = Congruence(self.fourth, axes).flatten()
        return PointMoments(
            self.n_samples,
            axes.T @ self.first,
            axes.T @ self.second @ axes,
            self.third.projected(axes),
            PackedTensor(flat, axes.shape[1]),
        )


def moved_moments(moments: Moments, mean: np.ndarray) -> PointMoments:
    """Moments of rows about a given point.

    Parameters
    ----------
    moments : Moments
        Of at least one row.
    mean : ndarray of shape (p,)

    Returns
    -------
    PointMoments
    """
    p = moments.n_features
    gram = _moved(moments._whole(), moments._shift - mean)
    gram /= moments.n_samples
    _mirrored(gram)
    return PointMoments(
        moments.n_samples,
        gram[1 : 1 + p, 0],
        gram[1 : 1 + p, 1 : 1 + p],
        ThirdTensor(smat(gram[1 + p :, 1 : 1 + p].T)),
        PackedTensor(gram[1 + p :, 1 + p :], p),
    )


def _central_third(packed: np.ndarray, head: np.ndarray) -> ThirdTensor:
    """``E[w w w] − 3 sym(E[w w] ⊗ m) + 2 m m m``, m being the mean of w; of ``svec(w w) w`` the mean."""
    m, second = head[1:, 0], head[1:, 1:]
    entries = smat(packed.T)
    mixed = second[:, :, None] * m
    entries -= mixed + mixed.transpose(0, 2, 1) + mixed.transpose(2, 0, 1)
    entries += 2 * m[:, None, None] * m[:, None] * m
    return ThirdTensor(entries)


def expanded_rows(n_features: int, X: Any) -> int:
    """Rows of X to expand at a time: with too few an update would wait for the Gram matrix.

    All blocks are of about one size, so that each has room where the one before it was.
    """
    width = 1 + n_features + n_packed(n_features)
    deep = 2 * DEEPEST if 2 * DEEPEST * 8 * width <= EXPANDED_BYTES else DEEPEST
    most = max(block_rows(width, X), deep)
    n = max(X.shape[0], 1)
    return -(-n // -(-n // most))


def _write_product(out: Any, left: Any, right: Any) -> None:
    if isinstance(out, np.ndarray):
        np.multiply(left, right, out=out)
    else:
        out[:, :] = left * right


def _add_product(panel: Any, expanded: Any) -> None:
    """Add ``E Eᵀ`` to rows a … b of its lower triangle, in place; ``b`` is the width of the panel."""
    if isinstance(panel, np.ndarray) and expanded.dtype == panel.dtype:
        dsyrk(1.0, expanded.T, trans=1, beta=1.0, c=panel, lower=1, overwrite_c=1)
        return
    stop = panel.shape[1]
    panel += as_doubles(expanded[stop - panel.shape[0] : stop, :] @ expanded[:stop, :].T)


def _beside(panel: Any, block: Any) -> bool:
    """Whether two arrays are of one kind and in one place."""
    if isinstance(panel, np.ndarray) or isinstance(block, np.ndarray):
        return isinstance(panel, np.ndarray) and isinstance(block, np.ndarray)
    same: bool = namespace(panel) is namespace(block) and panel.device == block.device
    return same


def _mirrored(low: np.ndarray) -> np.ndarray:
    """The lower triangle written over the upper one, in place; returned."""
    n = len(low)
    for start in range(0, n, TILE):
        stop = min(start + TILE, n)
        low[start:stop, stop:] = low[stop:, start:stop].T
        inside = low[start:stop, start:stop]
        inside[:] = np.tril(inside) + np.tril(inside, -1).T
    return low


def _moved(gram: np.ndarray, e: np.ndarray, first: int = 0, *, last: bool = False) -> np.ndarray:
    """The Gram matrix of `Moments` for ``w + e``: rows and columns from ``first`` on, lower triangle.

    With ``u = (1, w)`` the move is ``f(w + e) = f(w) + N u``, and so ``G + N Kᵀ + K Nᵀ`` is what to find,
    where ``K = Σ f uᵀ + N Σ u uᵀ / 2``: one symmetric update of rank 2 (p + 1). It is written to a new
    array or, if that is the ``last`` use of ``gram``, over it.
    """
    p = e.size
    sums = gram[:, : 1 + p].copy("F")
    gram = _without(gram, first) if last else gram[first:, first:].copy("F")
    if not e.any():
        return gram
    rows, columns, scale = pair_indices(p)
    move = np.zeros_like(sums)
    move[1 : 1 + p, 0] = e
    pairs, each = move[1 + p :], np.arange(rows.size)
    pairs[:, 0] = e[rows] * e[columns] * scale
    pairs[each, 1 + rows] = e[columns] * scale
    pairs[each, 1 + columns] += e[rows] * scale
    _mirrored(sums[: 1 + p])
    sums += move @ (sums[: 1 + p] / 2)
    return dsyr2k(1.0, move[first:], sums[first:], beta=1.0, c=gram, lower=1, overwrite_c=1)


def _without(gram: np.ndarray, first: int) -> np.ndarray:
    """Rows and columns from ``first`` on of a square array in Fortran order, moved to where it begins."""
    n = len(gram) - first
    memory = gram.reshape(-1, order="F")
    for column, own in enumerate(gram.T[first:, first:]):
        memory[column * n : (column + 1) * n] = own
    return memory[: n * n].reshape((n, n), order="F")


def _subtract_pairings(low: np.ndarray, S: np.ndarray, factor: float) -> None:
    """Take ``factor · (S_ij S_kl + S_ik S_jl + S_il S_jk)`` off, in ``svec`` coordinates.

    In place, from the lower triangle and what is beside its diagonal.
    """
    p = len(S)
    rows, columns, scale = pair_indices(p)
    firsts, seconds, packed = S[:, rows] * scale, S[:, columns], svec(S)
    start = 0
    for i in range(p):  # the pairs (i, j) of all j ≥ i, in columns
        stop = start + p - i
        pairings = firsts[i, start:] * seconds[i:, start:]
        pairings += seconds[i, start:] * firsts[i:, start:]
        pairings[1:] *= 2.0**0.5
        pairings += packed[start:stop, None] * packed[start:]
        pairings *= factor
        low.T[start:stop, start:] -= pairings
        start = stop


class BlockMoments(Moments):
    """`Moments` of blocks as `contrica.rows.protocol.accumulate` has them: nothing to check or cut.

    Parameters
    ----------
    n_features, start
        As of `Moments`.
    """

    _expanded: Any = None

    def update(self, block: Any, *, n_rows: int | None = None) -> BlockMoments:
        """Add a block of rows."""
        for part in single_precision_parts(block):
            self._expanded = self._add_block(part, self._expanded)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_expanded": None}


def packed_cumulants(
    X: np.ndarray | Rows, estimate: Estimate = "plugin", *, n_rows: int | None = None
) -> Cumulants:
    """Cumulants of rows, the fourth written out, from one pass.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or Rows
    estimate : {"plugin", "unbiased"}
    n_rows : int, optional
        Rows taken at a time.

    Returns
    -------
    Cumulants
    """
    p = X.shape[1]
    found: Moments = accumulate(X, partial(BlockMoments, p), n_rows or expanded_rows(p, X))
    return found.cumulants(estimate, last=True)
