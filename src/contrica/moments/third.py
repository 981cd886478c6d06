"""What a symmetric order-3 tensor can do, and the third cumulant as one.

κ₃ of rows about their mean is ``E[x_i x_j x_k]``: nothing is subtracted. It is stored as p³ numbers
where κ₄ is written out (`ThirdTensor`), and contracted from the rows where κ₄ is
(`contrica.moments.matrix_free.ThirdOperator`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

__all__ = ["SymmetricThird", "ThirdCongruence", "ThirdTensor"]


class SymmetricThird(ABC):
    """A symmetric tensor of format ``p × p × p``."""

    order = 3
    n_features: int
    is_written_out: bool = False

    @abstractmethod
    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, ·)`` for every column ``u`` of ``(p, k)``, as columns of ``(p, k)``."""

    @abstractmethod
    def slices(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, ·, ·)`` for every column ``u`` of ``(p, k)``, shape ``(k, p, p)``."""

    @abstractmethod
    def squared_norm(self) -> float:
        """Squared Frobenius norm ``Σ T[i,j,k]²``."""

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, u)`` for every column ``u`` of ``(p, k)``, shape ``(k,)``."""
        return np.einsum("ik,ik->k", vectors, self.apply_vectors(vectors))


class ThirdTensor(SymmetricThird):
    """A symmetric order-3 tensor of which all entries are stored.

    Parameters
    ----------
    entries : ndarray of shape (p, p, p)

    Examples
    --------
    >>> import numpy as np
    >>> ThirdTensor.of_terms(np.array([2.0]), np.array([[1.0], [0.0]])).coefficients(np.eye(2))
    array([2., 0.])
    """

    is_written_out = True

    def __init__(self, entries: np.ndarray) -> None:
        self.entries = entries
        self.n_features = len(entries)

    @classmethod
    def of_terms(cls, weights: np.ndarray, vectors: np.ndarray) -> ThirdTensor:
        """``Σ_i weights[i] · vectors[:, i]^{⊗3}``."""
        outer = np.einsum("ik,jk->kij", vectors, vectors)
        return cls(np.tensordot(vectors * weights, outer, 1))

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, ·)`` for every column ``u``."""
        return np.einsum("kij,jk->ik", self.slices(vectors), vectors)

    def slices(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, ·, ·)`` for every column ``u``."""
        return np.tensordot(vectors.T, self.entries, 1)

    def squared_norm(self) -> float:
        """Squared Frobenius norm."""
        return float(np.sum(self.entries**2))

    def projected(self, axes: np.ndarray) -> ThirdTensor:
        """``T(W·, W·, W·)`` for the columns of W, all entries written out."""
        inside = axes.T @ np.tensordot(axes.T, self.entries, 1) @ axes
        return ThirdTensor(inside)

    def __add__(self, other: ThirdTensor) -> ThirdTensor:
        return ThirdTensor(self.entries + other.entries)

    def __sub__(self, other: ThirdTensor) -> ThirdTensor:
        return ThirdTensor(self.entries - other.entries)

    def __mul__(self, scalar: float) -> ThirdTensor:
        return ThirdTensor(scalar * self.entries)


class ThirdCongruence(SymmetricThird):
    """``T(W·, W·, W·)``: the third cumulant of ``Wᵀx``, where T is that of x.

    Parameters
    ----------
    operator : SymmetricThird
        T, over p variables.
    axes : ndarray of shape (p, k)
        W; the result is over k variables.
    """

    def __init__(self, operator: SymmetricThird, axes: np.ndarray) -> None:
        self.operator, self.axes = operator, axes
        self.n_features = axes.shape[1]
        self._squared_norm: float | None = None

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``Wᵀ T(Wu, Wu, ·)`` for every column ``u``."""
        return self.axes.T @ self.operator.apply_vectors(self.axes @ vectors)

    def slices(self, vectors: np.ndarray) -> np.ndarray:
        """``Wᵀ T(Wu, ·, ·) W`` for every column ``u``."""
        return self.axes.T @ self.operator.slices(self.axes @ vectors) @ self.axes

    def squared_norm(self) -> float:
        """Squared Frobenius norm, computed once: a slice for every dimension."""
        if self._squared_norm is None:
            columns = (self.slices(unit[:, None]) for unit in np.eye(self.n_features))
            self._squared_norm = sum(float(np.sum(part**2)) for part in columns)
        return self._squared_norm
