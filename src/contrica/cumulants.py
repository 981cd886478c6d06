"""Mean, covariance and fourth cumulant of data, as tensor operators.

Write ``m`` for central sample moments (division by n). The paper's plug-in estimate is
``κ₄ = m_ijkl − m_ij m_kl − m_ik m_jl − m_il m_jk``; the unbiased k-statistic, exact in expectation,
is ``n²/((n−1)(n−2)(n−3)) · [(n+1) m_ijkl − (n−1)(m_ij m_kl + m_ik m_jl + m_il m_jk)]``. Both are
``moment_factor · (fourth moment) − pairing_factor · (three pairings of the covariance)``.

Two ways to hold it: *packed*, the ``p(p+1)/2``-square flattening from one pass over the rows
(`Moments`), or *matrix-free*, contracted from the rows on demand (`CumulantOperator`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg.blas import dsyrk

from contrica.blocks import Rows, block_rows, column_summary, iterate_blocks
from contrica.operators import PackedTensor, TensorOperator
from contrica.symmetric import n_packed, pair_indices, svec
from contrica.validation import check_choice, check_matrix, check_n_rows, check_width

__all__ = [
    "CumulantOperator",
    "Cumulants",
    "Estimate",
    "Moments",
    "Storage",
    "cumulants",
    "pooled",
]

Estimate = Literal["plugin", "unbiased"]
Storage = Literal["auto", "packed", "matrix-free"]

# Widest data whose flattening is written out by default: 100 variables make 204 MB of it, and a
# few times that while it is centred.
MAX_PACKED_FEATURES = 100
# Rows in each of the two blocks whose inner products are taken at a time: 8 MB of them.
PAIR_ROWS = 1024


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
    and fourth moments. One symmetric rank-k update per block of rows fills it. Moving the origin is
    linear, ``f(w + e) = L(e) f(w)``, so centring and merging are ``L G Lᵀ``.

    The origin is the mean of the first block, which keeps the sums free of cancellation when the
    mean is large against the spread.

    Parameters
    ----------
    n_features : int
        Number of variables, p. The Gram matrix has ``1 + p + p(p+1)/2`` rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).laplace(size=(1000, 3))
    >>> halves = Moments(3).update(X[:500]).merge(Moments(3).update(X[500:]))
    >>> whole = Moments(3).update(X)
    >>> bool(np.allclose(halves.cumulants().fourth.flatten(), whole.cumulants().fourth.flatten()))
    True
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.n_samples = 0
        self._shift = np.zeros(n_features)
        size = 1 + n_features + n_packed(n_features)
        # Fortran order so that dsyrk updates it in place; only the lower triangle is filled.
        self._gram = np.zeros((size, size), order="F")

    def update(self, X: np.ndarray | Rows, *, n_rows: int | None = None) -> Moments:
        """Add the rows of ``X``, ``n_rows`` at a time; returns the accumulator."""
        X = _matrix_or_rows(X, self.n_features)
        for block in iterate_blocks(X, n_rows or block_rows(self._gram.shape[0])):
            self._add_block(block)
        return self

    def _add_block(self, block: np.ndarray) -> None:
        if self.n_samples == 0:
            self._shift = block.mean(axis=0)
        p, n = self.n_features, block.shape[0]
        # Expanded rows as columns: every write below is then one contiguous product.
        expanded = np.empty((self._gram.shape[0], n))
        expanded[0] = 1.0
        W = expanded[1 : 1 + p]
        np.subtract(block.T, self._shift[:, None], out=W)
        scaled = np.sqrt(2.0) * W
        start = 1 + p
        for i in range(p):
            np.multiply(W[i], W[i], out=expanded[start])
            np.multiply(W[i], scaled[i + 1 :], out=expanded[start + 1 : start + p - i])
            start += p - i
        self._gram = dsyrk(1.0, expanded.T, trans=1, beta=1.0, c=self._gram, lower=1, overwrite_c=1)
        self.n_samples += n

    def merge(self, other: Moments) -> Moments:
        """Add another accumulator's rows to this one's; returns this accumulator."""
        if other.n_features != self.n_features:
            raise ValueError(
                f"cannot merge moments of {other.n_features} variables into moments of "
                f"{self.n_features}. Both must measure the same variables in the same order."
            )
        if self.n_samples == 0:
            self._shift = other._shift
        self._gram += other._about(self._shift)
        self.n_samples += other.n_samples
        return self

    def _about(self, origin: np.ndarray) -> np.ndarray:
        """Gram matrix of the rows about another origin, ``L(e) G L(e)ᵀ``; full, symmetric."""
        e = self._shift - origin
        p = self.n_features
        gram = np.tril(self._gram)
        gram = gram + np.tril(gram, -1).T
        rows, columns, scale = pair_indices(p)
        # svec((w+e)(w+e)ᵀ) = svec(w wᵀ) + mixed · w + svec(e eᵀ)
        mixed = np.zeros((rows.size, p))
        each = np.arange(rows.size)
        np.add.at(mixed, (each, rows), e[columns] * scale)
        np.add.at(mixed, (each, columns), e[rows] * scale)
        squares = e[rows] * e[columns] * scale
        lower = np.concatenate([e, squares])

        def shifted(G: np.ndarray) -> np.ndarray:
            G = G.copy()
            G[1 + p :] += mixed @ G[1 : 1 + p]
            G[1:] += np.outer(lower, G[0])
            return G

        return shifted(shifted(gram).T)

    def cumulants(self, estimate: Estimate = "plugin") -> Cumulants:
        """Cumulants of all rows seen so far.

        Parameters
        ----------
        estimate : {"plugin", "unbiased"}
            The paper's formula (division by n) or k-statistics.

        Returns
        -------
        Cumulants
        """
        n, p = self.n_samples, self.n_features
        two, four, pairing = _factors(n, estimate)
        mean = self._shift + self._gram[1 : 1 + p, 0] / n
        central = self._about(mean) / n
        covariance = central[1 : 1 + p, 1 : 1 + p]
        fourth = central[1 + p :, 1 + p :] * four
        fourth -= pairing * _covariance_pairings(covariance)
        return Cumulants(mean, two * covariance, PackedTensor(fourth, p), n)


def _covariance_pairings(S: np.ndarray) -> np.ndarray:
    """Flattening of ``S_ij S_kl + S_ik S_jl + S_il S_jk`` in ``svec`` coordinates."""
    rows, columns, scale = pair_indices(S.shape[0])
    first = S[np.ix_(rows, rows)] * S[np.ix_(columns, columns)]
    second = S[np.ix_(rows, columns)] * S[np.ix_(columns, rows)]
    packed = svec(S)
    return np.outer(packed, packed) + (first + second) * scale[:, None] * scale


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
    """

    def __init__(
        self, X: np.ndarray | Rows, estimate: Estimate = "plugin", *, n_rows: int | None = None
    ) -> None:
        self._rows, self._estimate = _matrix_or_rows(X), estimate
        self.n_samples, self.n_features = self._rows.shape
        two, self._moment_factor, self._pairing_factor = _factors(self.n_samples, estimate)
        self._n_rows = n_rows or block_rows(self.n_features)
        self.mean = column_summary(self._rows).mean
        self._plugin_covariance = sum(B.T @ B for B in self._blocks()) / self.n_samples
        self.covariance = two * self._plugin_covariance

    def _blocks(self, n_rows: int | None = None) -> Iterator[np.ndarray]:
        for block in iterate_blocks(self._rows, n_rows or self._n_rows):
            yield block - self.mean

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        """Contract with symmetric matrices ``(..., p, p)``, one pass over the rows."""
        stack = matrices.reshape(-1, self.n_features, self.n_features)
        moments = np.zeros(stack.shape)
        for X in self._blocks():
            for V, moment in zip(stack, moments, strict=True):
                energy = np.einsum("ti,ti->t", X @ V, X)
                moment += (X.T * energy) @ X
        S = self._plugin_covariance
        traces = np.einsum("ij,kij->k", S, stack)[:, None, None]
        pairings = traces * S + 2 * S @ stack @ S
        images = self._moment_factor * moments / self.n_samples - self._pairing_factor * pairings
        return images.reshape(matrices.shape)

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``κ₄(u, u, u, ·)`` for every column ``u``, one pass over the rows."""
        moments = np.zeros(vectors.shape)
        for X in self._blocks():
            moments += X.T @ (X @ vectors) ** 3
        S_u = self._plugin_covariance @ vectors
        energies = np.einsum("ik,ik->k", vectors, S_u)
        return self._moment_factor * moments / self.n_samples - 3 * self._pairing_factor * (
            energies * S_u
        )

    def flatten(self) -> np.ndarray:
        """Write the packed flattening out after all, by one pass over the rows."""
        return (
            Moments(self.n_features).update(self._rows).cumulants(self._estimate).fourth.flatten()
        )

    def squared_norm(self) -> float:
        """Squared Frobenius norm from all pairs of rows, ``‖E[x^{⊗4}]‖² = E_ts (x_t · x_s)⁴``.

        O(n² p) time, once, and one block of memory.
        """
        return self._squared_norm

    @cached_property
    def _squared_norm(self) -> float:
        S, n = self._plugin_covariance, self.n_samples
        pairs = sum(
            float(np.sum((X @ Y.T) ** 4))
            for X in self._blocks(PAIR_ROWS)
            for Y in self._blocks(PAIR_ROWS)
        )
        mixed = sum(float(np.sum(np.einsum("ti,ti->t", X @ S, X) ** 2)) for X in self._blocks())
        S2 = S @ S
        pairings = 3 * float(np.sum(S**2)) ** 2 + 6 * float(np.sum(S2**2))
        a, b = self._moment_factor, self._pairing_factor
        return max(a**2 * pairs / n**2 - 6 * a * b * mixed / n + b**2 * pairings, 0.0)


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
) -> Cumulants:
    """Mean, covariance and fourth cumulant of the rows of ``X``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or Rows
        Data. Cumulants are central: taken about the data's own mean.
    estimate : {"plugin", "unbiased"}
        The paper's formula, which divides by n, or unbiased k-statistics.
    storage : {"auto", "packed", "matrix-free"}
        Write the flattening out, or contract the rows on demand. "auto" packs up to 100 variables.
    n_rows : int, optional
        Rows taken at a time; the result does not depend on it, except by rounding.

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
    if storage == "packed" or (storage == "auto" and X.shape[1] <= MAX_PACKED_FEATURES):
        return Moments(X.shape[1]).update(X, n_rows=n_rows).cumulants(estimate)
    operator = CumulantOperator(X, estimate, n_rows=n_rows)
    return Cumulants(operator.mean, operator.covariance, operator, operator.n_samples)
