"""The fourth cumulant contracted from the rows on demand; never p⁴ numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from contrica.moments.estimates import Estimate, factors, third_factor
from contrica.moments.operators import TensorOperator
from contrica.moments.packed import packed_cumulants
from contrica.moments.scatter import Scatter
from contrica.moments.symmetric import n_packed
from contrica.moments.third import SymmetricThird
from contrica.rows.device import (
    as_doubles,
    like,
    namespace,
    single_precision_parts,
    to_numpy,
)
from contrica.rows.memory import check_memory, memory_budget
from contrica.rows.products import chosen_rows
from contrica.rows.protocol import Rows, accumulate, iterate_blocks
from contrica.rows.summary import column_summary
from contrica.validation import check_matrix, check_width

__all__ = ["CumulantOperator", "ThirdOperator", "matrix_or_rows"]

# Multiplications that the pairs of rows of a norm may take, and rows of either side taken at a time.
PAIR_PRODUCTS, PAIR_ROWS = 10**12, 2048


class _Contractions:
    """Accumulator of ``Σ (wᵀVw) w wᵀ`` for matrices V, or ``Σ (w·u)^power w`` for columns; w = x − μ."""

    def __init__(
        self, origin: np.ndarray, operands: np.ndarray, start: int = 0, *, power: int = 3
    ) -> None:
        self._origin, self._operands, self._power = origin, operands, power
        self.total = np.zeros(operands.shape)
        self._here: Any = None  # the operands, where the blocks are

    def update(self, block: Any) -> _Contractions:
        for part in single_precision_parts(block):
            self._add(part)
        return self

    def _add(self, block: Any) -> None:
        W = block - like(block, self._origin)
        if self._here is None:
            self._here = like(block, self._operands)
            self.total = as_doubles(like(block, self.total))
        if self._operands.ndim == 2:
            along = W @ self._here
            self.total += as_doubles(W.T @ (along * along * (along if self._power == 3 else 1.0)))
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
    mean : ndarray of shape (n_features,), optional
        Of the rows, where it is known: it takes a pass.
    """

    def __init__(
        self,
        X: np.ndarray | Rows,
        estimate: Estimate = "plugin",
        *,
        n_rows: int | None = None,
        memory_limit: int | None = None,
        mean: np.ndarray | None = None,
    ) -> None:
        self._memory_limit = memory_limit
        self._rows, self._estimate = matrix_or_rows(X), estimate
        self.n_samples, self.n_features = self._rows.shape
        two, self._moment_factor, self._pairing_factor = factors(self.n_samples, estimate)
        self._n_rows = n_rows
        self.mean = column_summary(self._rows).mean if mean is None else mean
        self.third = ThirdOperator(
            self._rows, self.mean, third_factor(self.n_samples, estimate), n_rows
        )
        scatter = accumulate(self._rows, partial(Scatter, self.mean), n_rows)
        self._plugin_covariance = scatter.matrix() / self.n_samples
        own = self._plugin_covariance
        self.covariance = own if two == 1 else two * own

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
            "Lower `n_pcs`, or the ranks `n_background` and `n_foreground`, or raise `memory_limit`.",
        )
        return packed_cumulants(self._rows, self._estimate).fourth.flatten()

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


class ThirdOperator(SymmetricThird):
    """Third cumulant of rows, contracted on demand; never p³ numbers.

    ``E[(x·u)² x]`` and ``E[(x·u) x xᵀ]`` for a vector, x about its mean: O(n p) and O(n p²) time.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), or Rows
    mean : ndarray of shape (n_features,)
    factor : float
        Of the third moment.
    n_rows : int, optional
        Rows taken at a time.
    """

    def __init__(
        self, rows: np.ndarray | Rows, mean: np.ndarray, factor: float, n_rows: int | None
    ) -> None:
        self._rows, self._mean, self._n_rows = rows, mean, n_rows
        n_samples, self.n_features = rows.shape
        self._factor = factor / n_samples

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``κ₃(u, u, ·)`` for every column ``u``, one pass over the rows."""
        found = accumulate(
            self._rows, partial(_Contractions, self._mean, vectors, power=2), self._n_rows
        )
        return to_numpy(found.total) * self._factor

    def slices(self, vectors: np.ndarray) -> np.ndarray:
        """``κ₃(u, ·, ·)`` for every column ``u``, one pass over the rows."""
        found = accumulate(self._rows, partial(_Slices, self._mean, vectors), self._n_rows)
        return to_numpy(found.total) * self._factor

    def squared_norm(self) -> float:
        """Squared Frobenius norm, a slice for every variable, some at a time."""
        units = np.eye(self.n_features)
        parts = (self.slices(units[:, start : start + 16]) for start in range(0, len(units), 16))
        return sum(float(np.sum(part**2)) for part in parts)


class _Slices(_Contractions):
    """Accumulator of ``Σ (w·u) w wᵀ`` for columns u; w = x − μ."""

    def __init__(self, origin: np.ndarray, vectors: np.ndarray, start: int = 0) -> None:
        super().__init__(origin, vectors)
        p, k = vectors.shape
        self.total = np.zeros((k, p, p))

    def _add(self, block: Any) -> None:
        W = block - like(block, self._origin)
        if self._here is None:
            self._here = like(block, self._operands)
            self.total = as_doubles(like(block, self.total))
        along = W @ self._here
        for k in range(self._operands.shape[1]):
            self.total[k, :, :] += as_doubles((W * along[:, k : k + 1]).T @ W)


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


def matrix_or_rows(X: np.ndarray | Rows, n_features: int | None = None) -> np.ndarray | Rows:
    """Rows as they are, or a matrix of finite numbers, over so many variables.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or Rows
    n_features : int, optional

    Returns
    -------
    ndarray or Rows
    """
    if not isinstance(X, Rows):
        return check_matrix(X, "X", n_features=n_features)
    check_width(X.shape[1], n_features, "X")
    return X
