"""Mean, covariance and fourth cumulant of data, as tensor operators.

Write ``m`` for central sample moments (division by n). The paper's plug-in estimate is
``κ₄ = m_ijkl − m_ij m_kl − m_ik m_jl − m_il m_jk``; the unbiased k-statistic, exact in expectation,
is ``n²/((n−1)(n−2)(n−3)) · [(n+1) m_ijkl − (n−1)(m_ij m_kl + m_ik m_jl + m_il m_jk)]``. Both are
``moment_factor · (fourth moment) − pairing_factor · (three pairings of the covariance)``.

Two ways to hold it: *packed*, the ``p(p+1)/2``-square flattening from one pass over the rows
(`Moments`), or *matrix-free*, contracted from the rows on demand (`CumulantOperator`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.linalg.blas import dsyr2k, dsyrk

from contrica.moments.operators import Congruence, PackedTensor, TensorOperator
from contrica.moments.symmetric import n_packed, pair_indices, svec
from contrica.rows.blocks import (
    Rows,
    accumulate,
    as_doubles,
    block_rows,
    chosen_rows,
    column_summary,
    iterate_blocks,
    like,
    namespace,
    same_kind,
    short,
    to_numpy,
)
from contrica.rows.memory import check_memory, memory_budget
from contrica.validation import check_choice, check_matrix, check_n_rows, check_width

__all__ = [
    "BlockMoments",
    "CumulantOperator",
    "Cumulants",
    "Estimate",
    "Moments",
    "Scatter",
    "Storage",
    "cumulants",
    "expanded_rows",
    "fits_packed",
    "packed_bytes",
    "pooled",
]

Estimate = Literal["plugin", "unbiased"]
Storage = Literal["auto", "packed", "matrix-free"]

# Widest data whose flattening is written out by default, 204 MB of it.
MAX_PACKED_FEATURES = 100
# Rows that are expanded at a time: at least so many, and twice as many if they take no more than 64 MiB.
DEEPEST, EXPANDED_BYTES = 2048, 2**26
# Flattenings that a fit holds at a time: of both datasets, of the rest, and what eigenvectors take.
WORKING_COPIES = 10
# The Gram matrix of the moments is filled in so many panels where there is no BLAS to do one triangle.
PANELS = 6
# Rows and columns of a matrix that are transposed at a time.
TILE = 256
# Multiplications that the pairs of rows of a norm may take, and rows of either side taken at a time.
PAIR_PRODUCTS, PAIR_ROWS = 10**12, 2048


@dataclass(frozen=True)
class Cumulants:
    """First, second and fourth cumulant of one dataset.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        κ₂, division by n ("plugin") or n − 1 ("unbiased").
    fourth : TensorOperator
        κ₄.
    n_samples : int
    """

    mean: np.ndarray
    covariance: np.ndarray
    fourth: TensorOperator
    n_samples: int

    @property
    def n_features(self) -> int:
        """Number of variables, p."""
        return self.mean.shape[0]

    def seen_in(self, axes: np.ndarray) -> Cumulants:
        """Cumulants of ``Uᵀx``, κ₄ written out; the rows are not looked at."""
        return Cumulants(
            axes.T @ self.mean,
            axes.T @ self.covariance @ axes,
            PackedTensor(Congruence(self.fourth, axes).flatten(), axes.shape[1]),
            self.n_samples,
        )


def pooled(datasets: Sequence[Cumulants]) -> Cumulants:
    """One dataset's cumulants to stand for several: the plain mean of each cumulant.

    Every dataset counts the same, whatever its number of rows, and differences between their means
    are not counted as variation.

    Parameters
    ----------
    datasets : sequence of Cumulants

    Returns
    -------
    Cumulants
        With the rows of all.
    """
    if len(datasets) == 1:
        return datasets[0]
    share = 1 / len(datasets)
    fourth = datasets[0].fourth * share
    for part in datasets[1:]:
        fourth = fourth + part.fourth * share
    return Cumulants(
        np.mean([part.mean for part in datasets], axis=0),
        np.mean([part.covariance for part in datasets], axis=0),
        fourth,
        sum(part.n_samples for part in datasets),
    )


def _factors(n: int, estimate: Estimate) -> tuple[float, float, float]:
    """Factors of the covariance, the fourth moment and the covariance pairings."""
    check_choice("cumulant", estimate, ("plugin", "unbiased"))
    if estimate == "plugin":
        check_n_rows(n, 2, "a fourth cumulant")
        return 1.0, 1.0, 1.0
    check_n_rows(n, 4, "an unbiased fourth cumulant", hint='use cumulant="plugin" instead')
    pairing = n**2 / ((n - 2) * (n - 3))
    return n / (n - 1), pairing * (n + 1) / (n - 1), pairing


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
        Ignored; what `contrica.rows.blocks.accumulate` tells every accumulator.

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
        # is not looked at.
        self._panels: list[Any] = []

    @property
    def _size(self) -> int:
        return 1 + self.n_features + n_packed(self.n_features)

    def _make_panels(self, block: Any) -> None:
        """Panels of the block's kind and where it is: zeros, or what was held elsewhere."""
        held = self._whole() if self._panels else None
        if isinstance(block, np.ndarray):
            self._panels = [np.zeros((self._size, self._size), order="F")]
        else:
            xp = namespace(block)
            ends = np.unique(np.linspace(0, self._size, PANELS + 1).astype(int)).tolist()
            kind = same_kind(block, xp.float64)
            self._panels = [xp.zeros((b - a, b), **kind) for a, b in pairwise(ends)]
        if held is not None:
            for panel in self._panels:
                rows, stop = panel.shape
                panel += like(panel, held[stop - rows : stop, :stop])

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
            self._shift = to_numpy(xp.mean(block, axis=0))
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
            raise ValueError(
                f"cannot merge moments of {other.n_features} variables into moments of "
                f"{self.n_features}. Both must measure the same variables in the same order."
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
        """All that is held, as plain arrays: what `from_state` makes a `Moments` of."""
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
        """G as one array of numpy's, in Fortran order; what is above the diagonal is not looked at."""
        if len(self._panels) == 1:
            return np.asfortranarray(to_numpy(self._panels[0]))
        low, start = np.zeros((self._size, self._size)), 0
        for panel in self._panels:
            stop = start + panel.shape[0]
            low[start:stop, : panel.shape[1]] = to_numpy(panel)
            start = stop
        return _mirrored(low).T

    def cumulants(self, estimate: Estimate = "plugin", *, last: bool = False) -> Cumulants:
        """Cumulants of all rows seen so far.

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
        two, four, pairing = _factors(n, estimate)
        gram = self._whole()
        head = _mirrored(gram[: 1 + p, : 1 + p] / n)
        mean, covariance = head[1:, 0], head[1:, 1:] - np.outer(head[1:, 0], head[1:, 0])
        if last:  # at once: what is left after an interrupted move is of no use
            self.n_samples, self._panels = 0, []
        fourth = _moved(gram, -mean, 1 + p, last=last)
        fourth *= four / n
        _subtract_pairings(fourth, covariance, pairing)
        flat = _mirrored(fourth).T  # symmetric: rows where columns were
        return Cumulants(self._shift + mean, two * covariance, PackedTensor(flat, p), n)


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
    """`Moments` of blocks as `contrica.rows.blocks.accumulate` has them: nothing to check or cut.

    Parameters
    ----------
    n_features, start
        As of `Moments`.
    """

    _expanded: Any = None

    def update(self, block: Any, *, n_rows: int | None = None) -> BlockMoments:
        """Add a block of rows."""
        for part in short(block):
            self._expanded = self._add_block(part, self._expanded)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_expanded": None}


class Scatter:
    """Accumulator of ``Σ (x − μ)(x − μ)ᵀ`` about a given point μ.

    Parameters
    ----------
    origin : ndarray of shape (p,)
        μ.
    start : int
        Ignored, as of `Moments`.
    """

    def __init__(self, origin: np.ndarray, start: int = 0) -> None:
        self._origin = origin
        self._total: Any = None

    def update(self, block: Any) -> Scatter:
        """Add a block of rows."""
        for part in short(block):
            centred = part - like(part, self._origin)
            product = as_doubles(centred.T @ centred)
            if self._total is None:
                self._total = product
            else:
                self._total += product
        return self

    def merge(self, other: Scatter) -> Scatter:
        """Add what another one holds."""
        if other._total is not None:
            own = 0.0 if self._total is None else to_numpy(self._total)
            self._total = own + to_numpy(other._total)
        return self

    def __getstate__(self) -> dict[str, Any]:
        total = None if self._total is None else to_numpy(self._total)
        return {"_origin": None, "_total": total}

    def matrix(self) -> np.ndarray:
        """The sum."""
        return to_numpy(self._total)


class _Contractions:
    """Accumulator of ``Σ (wᵀVw) w wᵀ`` for matrices V, or ``Σ (w·u)³ w`` for columns u; w = x − μ."""

    def __init__(self, origin: np.ndarray, operands: np.ndarray, start: int = 0) -> None:
        self._origin, self._operands = origin, operands
        self.total = np.zeros(operands.shape)
        self._here: Any = None  # the operands, where the blocks are

    def update(self, block: Any) -> _Contractions:
        for part in short(block):
            self._add(part)
        return self

    def _add(self, block: Any) -> None:
        W = block - like(block, self._origin)
        if self._here is None:
            self._here = like(block, self._operands)
            self.total = as_doubles(like(block, self.total))
        if self._operands.ndim == 2:
            along = W @ self._here
            self.total += as_doubles(W.T @ (along * along * along))
            return
        xp = namespace(block)
        for k in range(len(self._operands)):
            energy = xp.sum((W @ self._here[k, :, :]) * W, axis=1)
            self.total[k, :, :] += as_doubles((W * energy[:, None]).T @ W)

    def merge(self, other: _Contractions) -> _Contractions:
        self.total = to_numpy(self.total) + to_numpy(other.total)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"total": to_numpy(self.total), "_here": None, "_operands": None}


class CumulantOperator(TensorOperator):
    """Fourth cumulant of the rows of ``X``, contracted on demand; never p⁴ numbers.

    ``apply(V) = E[(xᵀVx) x xᵀ] − tr(ΣV) Σ − 2 Σ V Σ`` for a symmetric matrix and
    ``E[(x·u)³ x] − 3 (uᵀΣu) Σu`` for a vector, x about its mean: O(n p²) and O(n p) time.
    With k-statistics the moment and the covariance terms carry the factors of the module's header.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or Rows
    estimate : {"plugin", "unbiased"}
    n_rows : int, optional
        Rows taken at a time.
    memory_limit : int, optional
        Bytes, for the one thing that takes many: `flatten`.
    """

    def __init__(
        self,
        X: np.ndarray | Rows,
        estimate: Estimate = "plugin",
        *,
        n_rows: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self._memory_limit = memory_limit
        self._rows, self._estimate = _matrix_or_rows(X), estimate
        self.n_samples, self.n_features = self._rows.shape
        two, self._moment_factor, self._pairing_factor = _factors(self.n_samples, estimate)
        self._n_rows = n_rows
        self.mean = column_summary(self._rows).mean
        scatter = accumulate(self._rows, partial(Scatter, self.mean), n_rows)
        self._plugin_covariance = scatter.matrix() / self.n_samples
        self.covariance = two * self._plugin_covariance

    def _contracted(self, operands: np.ndarray) -> np.ndarray:
        """The fourth moment with each operand, one pass over the rows."""
        total = accumulate(self._rows, partial(_Contractions, self.mean, operands), self._n_rows)
        return to_numpy(total.total) / self.n_samples

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        """Contract with symmetric matrices ``(..., p, p)``, one pass over the rows."""
        stack = matrices.reshape(-1, self.n_features, self.n_features)
        S = self._plugin_covariance
        traces = np.einsum("ij,kij->k", S, stack)[:, None, None]
        pairings = traces * S + 2 * S @ stack @ S
        images = self._moment_factor * self._contracted(stack) - self._pairing_factor * pairings
        return images.reshape(matrices.shape)

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``κ₄(u, u, u, ·)`` for every column ``u``, one pass over the rows."""
        S_u = self._plugin_covariance @ vectors
        energies = np.einsum("ik,ik->k", vectors, S_u)
        return self._moment_factor * self._contracted(vectors) - 3 * self._pairing_factor * (
            energies * S_u
        )

    def flatten(self) -> np.ndarray:
        """Write the packed flattening out after all, by one pass over the rows."""
        check_memory(
            3 * 8 * n_packed(self.n_features + 1) ** 2,
            memory_budget(self._memory_limit),
            f"the flattened fourth cumulant of {self.n_features} variables, written out,",
            "Lower n_pcs, or the ranks n_background and n_foreground, or raise memory_limit.",
        )
        return cumulants(self._rows, self._estimate, storage="packed").fourth.flatten()

    def squared_norm(self) -> float:
        """Squared Frobenius norm from pairs of rows, ``‖E[x^{⊗4}]‖² = E_ts (x_t · x_s)⁴``.

        From all pairs, in O(n² p) time, where that takes seconds. Of more rows, the pairs of different
        rows among some that are spread evenly stand for all such pairs: of heavy-tailed data a rough
        number, so that what is relative to it is not worked out (`relative_norm`).
        """
        return self._squared_norm

    @property
    def norm_is_exact(self) -> bool:
        """Whether `squared_norm` looks at all pairs of rows."""
        return self._norm_rows == self.n_samples

    @property
    def _norm_rows(self) -> int:
        return min(self.n_samples, int((PAIR_PRODUCTS / self.n_features) ** 0.5))

    @cached_property
    def _squared_norm(self) -> float:
        S, n = self._plugin_covariance, self.n_samples
        powers = accumulate(self._rows, partial(_Powers, self.mean, S), self._n_rows)
        m = self._norm_rows
        some: np.ndarray | Rows = self._rows
        if m < n:
            some = chosen_rows(self._rows, np.linspace(0, n - 1, m).astype(int))
        pairs = own_pairs = 0.0
        for X in self._centred(some):
            own_pairs += float(np.sum(np.einsum("ti,ti->t", X, X) ** 4))
            for Y in self._centred(some):
                products = X @ Y.T
                products *= products
                pairs += float(np.vdot(products, products))
        mean_pair = (pairs - own_pairs) / (m * max(m - 1, 1))
        moment = mean_pair * (1 - 1 / n) + powers.eighth / n**2
        mixed = powers.mixed / n
        S2 = S @ S
        pairings = 3 * float(np.sum(S**2)) ** 2 + 6 * float(np.sum(S2**2))
        a, b = self._moment_factor, self._pairing_factor
        return max(a**2 * moment - 6 * a * b * mixed + b**2 * pairings, 0.0)

    def _centred(self, rows: np.ndarray | Rows) -> Iterator[np.ndarray]:
        for block in iterate_blocks(rows, PAIR_ROWS):
            yield to_numpy(block) - self.mean


class _Powers:
    """Accumulator of ``Σ ‖w‖⁸`` and ``Σ (wᵀSw)²``, w = x − μ."""

    def __init__(self, origin: np.ndarray, S: np.ndarray, start: int = 0) -> None:
        self._origin, self._S = origin, S
        self.eighth = self.mixed = 0.0

    def update(self, block: Any) -> _Powers:
        xp = namespace(block)
        W = as_doubles(block) - like(as_doubles(block), self._origin)
        self.eighth += float(xp.sum(xp.sum(W * W, axis=1) ** 4))
        self.mixed += float(xp.sum(xp.sum((W @ like(W, self._S)) * W, axis=1) ** 2))
        return self

    def merge(self, other: _Powers) -> _Powers:
        self.eighth += other.eighth
        self.mixed += other.mixed
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"eighth": self.eighth, "mixed": self.mixed}


def fits_packed(n_features: int, memory_limit: int | None = None) -> bool:
    """Whether the flattening of so many variables, and what a decomposition makes of it, fits."""
    if n_features > MAX_PACKED_FEATURES:
        return False
    return packed_bytes(n_features) <= memory_budget(memory_limit)


def packed_bytes(n_features: int) -> int:
    """Memory that a fit needs with both fourth cumulants written out."""
    return WORKING_COPIES * 8 * n_packed(n_features + 1) ** 2


def _matrix_or_rows(X: np.ndarray | Rows, n_features: int | None = None) -> np.ndarray | Rows:
    if not isinstance(X, Rows):
        return check_matrix(X, "X", n_features=n_features)
    check_width(X.shape[1], n_features, "X")
    return X


def cumulants(
    X: np.ndarray | Rows,
    estimate: Estimate = "plugin",
    *,
    storage: Storage = "auto",
    n_rows: int | None = None,
    memory_limit: int | None = None,
) -> Cumulants:
    """Mean, covariance and fourth cumulant of the rows of ``X``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or Rows
        Data. Cumulants are central: taken about the data's own mean.
    estimate : {"plugin", "unbiased"}
        The paper's formula, which divides by n, or unbiased k-statistics.
    storage : {"auto", "packed", "matrix-free"}
        Write the flattening out, or contract the rows on demand. "auto" packs up to 100 variables, if
        what a decomposition makes of it fits the memory.
    n_rows : int, optional
        Rows taken at a time; the result does not depend on it, except by rounding.
    memory_limit : int, optional
        Bytes; by default a quarter of what is free.

    Returns
    -------
    Cumulants

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).laplace(size=(5000, 2))
    >>> cumulants(X).fourth.flatten().shape
    (3, 3)
    """
    X = _matrix_or_rows(X)
    check_choice("storage", storage, ("auto", "packed", "matrix-free"))
    p = X.shape[1]
    if storage == "auto":
        storage = "packed" if fits_packed(p, memory_limit) else "matrix-free"
    if storage == "packed":
        n_rows = n_rows or expanded_rows(p, X)
        found: Moments = accumulate(X, partial(BlockMoments, p), n_rows)
        return found.cumulants(estimate, last=True)
    operator = CumulantOperator(X, estimate, n_rows=n_rows, memory_limit=memory_limit)
    return Cumulants(operator.mean, operator.covariance, operator, operator.n_samples)
