"""What a symmetric order-4 tensor can do.

A tensor ``T`` acts as a linear map on symmetric matrices, ``apply(V)[i, j] = Σ_kl T[i,j,k,l] V[k,l]``.
That is all the algorithms need, so a tensor may be stored as its packed flattening, as a sum of rank-one
terms, as data that yield it on demand (`contrica.moments.fourth`), or as a difference of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from contrica.errors import FeaturesError
from contrica.moments.symmetric import n_packed, pair_indices, smat, svec, svec_outer
from contrica.validation import check_symmetric_tensor

__all__ = [
    "Congruence",
    "PackedTensor",
    "RankOneSum",
    "TensorOperator",
    "as_operator",
    "relative_norm",
]


class TensorOperator(ABC):
    """A symmetric tensor of format ``p × p × p × p``; ``+``, ``-`` and a scalar ``*`` compose."""

    order = 4
    n_features: int
    # Whether the flattening is in memory: eigenvalues are then a matter of seconds at most.
    is_written_out: bool = False

    @property
    def norm_is_exact(self) -> bool:
        """Whether `squared_norm` is more than an estimate."""
        return True

    @abstractmethod
    def apply(self, matrices: np.ndarray) -> np.ndarray:
        """Contract with symmetric matrices ``(..., p, p)`` over two indices; same shape out."""

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, u, ·)`` for every column ``u`` of ``(p, k)``, as columns of ``(p, k)``."""
        return np.einsum("kij,jk->ik", self.slices(vectors), vectors)

    def slices(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, ·, ·)`` for every column ``u`` of ``(p, k)``, shape ``(k, p, p)``."""
        return self.apply(np.einsum("ik,jk->kij", vectors, vectors))

    def coefficients(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, u, u)`` for every column ``u`` of ``(p, k)``, shape ``(k,)``."""
        return np.einsum("ik,ik->k", vectors, self.apply_vectors(vectors))

    def flatten(self) -> np.ndarray:
        """The ``p(p+1)/2 × p(p+1)/2`` symmetric flattening in ``svec`` coordinates.

        Its non-zero eigenvalues are those of the paper's ``p² × p²`` matrix ``Mat(T)``.
        """
        size = n_packed(self.n_features)
        flat = np.empty((size, size))
        # a few unit matrices at a time: all of them would be p⁴/2 numbers
        for start in range(0, size, 64):
            units = np.eye(min(64, size - start), size, start)
            flat[start : start + 64] = svec(self.apply(smat(units)))
        return (flat + flat.T) / 2

    def squared_norm(self) -> float:
        """Squared Frobenius norm ``Σ T[i,j,k,l]²``."""
        return float(np.sum(self.flatten() ** 2))

    def __add__(self, other: TensorOperator) -> TensorOperator:
        return _combine(self, other, 1.0)

    def __sub__(self, other: TensorOperator) -> TensorOperator:
        return _combine(self, other, -1.0)

    def __mul__(self, scalar: float) -> TensorOperator:
        return _Combination(((float(scalar), self),))

    __rmul__ = __mul__


class PackedTensor(TensorOperator):
    """A tensor stored as its symmetric flattening in ``svec`` coordinates.

    Parameters
    ----------
    flattening : ndarray of shape (p(p+1)/2, p(p+1)/2)
        ``flattening[(i,j), (k,l)]`` is ``T[i,j,k,l]`` times √2 for each off-diagonal pair.
    n_features : int
        ``p``.
    """

    is_written_out = True

    def __init__(self, flattening: np.ndarray, n_features: int) -> None:
        self.flattening = flattening
        self.n_features = n_features

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        """Contract with symmetric matrices, one matrix product for the whole stack."""
        return smat(svec(matrices) @ self.flattening)

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``T(u, u, u, ·)`` for every column ``u``."""
        images = smat((self.flattening @ svec_outer(vectors)).T)
        return np.einsum("kij,jk->ik", images, vectors)

    def flatten(self) -> np.ndarray:
        """Return the flattening."""
        return self.flattening

    def __mul__(self, scalar: float) -> PackedTensor:
        return PackedTensor(float(scalar) * self.flattening, self.n_features)

    __rmul__ = __mul__


class RankOneSum(TensorOperator):
    """``Σ_i weights[i] · vectors[:, i]^{⊗4}``, in O(p k) memory.

    Examples
    --------
    >>> import numpy as np
    >>> RankOneSum(np.array([2.0]), np.array([[1.0], [0.0]])).apply(np.eye(2))
    array([[2., 0.],
           [0., 0.]])
    """

    is_written_out = True

    def __init__(self, weights: np.ndarray, vectors: np.ndarray) -> None:
        self.weights = np.asarray(weights, dtype=float)
        self.vectors = np.asarray(vectors, dtype=float)
        self.n_features = self.vectors.shape[0]

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        """``Σ_i weights[i] (u_iᵀ V u_i) u_i u_iᵀ``."""
        U = self.vectors
        energies = np.einsum("ik,...ij,jk->...k", U, matrices, U, optimize=True) * self.weights
        return np.einsum("...k,ik,jk->...ij", energies, U, U, optimize=True)

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``Σ_i weights[i] (u_i · v)³ u_i`` for every column ``v``."""
        cosines = self.vectors.T @ vectors
        return self.vectors @ (self.weights[:, None] * cosines**3)

    def flatten(self) -> np.ndarray:
        """``Σ_i weights[i] svec(u_i u_iᵀ) svec(u_i u_iᵀ)ᵀ``."""
        outer = svec_outer(self.vectors)
        return (outer * self.weights) @ outer.T

    def squared_norm(self) -> float:
        """``Σ_ij w_i w_j (u_i · u_j)⁴``."""
        gram = (self.vectors.T @ self.vectors) ** 4
        return float(self.weights @ gram @ self.weights)

    def __mul__(self, scalar: float) -> RankOneSum:
        return RankOneSum(float(scalar) * self.weights, self.vectors)

    __rmul__ = __mul__


class Congruence(TensorOperator):
    """``T(W·, W·, W·, W·)``: the fourth cumulant of ``Wᵀx``, where T is that of x.

    Parameters
    ----------
    operator : TensorOperator
        T, over p variables.
    axes : ndarray of shape (p, k)
        W; the result is over k variables.

    Examples
    --------
    >>> import numpy as np
    >>> T = RankOneSum(np.array([1.0]), np.array([[1.0], [0.0]]))
    >>> Congruence(T, np.array([[2.0], [5.0]])).coefficients(np.eye(1))
    array([16.])
    """

    def __init__(self, operator: TensorOperator, axes: np.ndarray) -> None:
        self.operator = operator
        self.axes = axes
        self.n_features = axes.shape[1]
        self._squared_norm: float | None = None

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        """``Wᵀ T(W V Wᵀ) W``."""
        W = self.axes
        return W.T @ self.operator.apply(W @ matrices @ W.T) @ W

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """``Wᵀ T(Wu, Wu, Wu, ·)`` for every column ``u``."""
        return self.axes.T @ self.operator.apply_vectors(self.axes @ vectors)

    def squared_norm(self) -> float:
        """Squared Frobenius norm, computed once: it takes the whole flattening."""
        if self._squared_norm is None:
            self._squared_norm = super().squared_norm()
        return self._squared_norm


class _Combination(TensorOperator):
    """A linear combination of tensors, kept as an expression."""

    def __init__(self, terms: tuple[tuple[float, TensorOperator], ...]) -> None:
        self.is_written_out = all(term.is_written_out for _, term in terms)
        self.terms = terms
        self.n_features = terms[0][1].n_features

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        return sum(factor * term.apply(matrices) for factor, term in self.terms)  # type: ignore[return-value]

    def apply_vectors(self, vectors: np.ndarray) -> np.ndarray:
        return sum(factor * term.apply_vectors(vectors) for factor, term in self.terms)  # type: ignore[return-value]

    def flatten(self) -> np.ndarray:
        return sum(factor * term.flatten() for factor, term in self.terms)  # type: ignore[return-value]

    def squared_norm(self) -> float:
        """Expand the square; right to about 1e-16 of the largest term, as differences are."""
        total = sum(f * g * _inner(S, T) for f, S in self.terms for g, T in self.terms)
        return max(float(total), 0.0)

    @property
    def norm_is_exact(self) -> bool:
        return all(term.norm_is_exact for _, term in self.terms)

    def __mul__(self, scalar: float) -> _Combination:
        return _Combination(tuple((scalar * factor, term) for factor, term in self.terms))

    __rmul__ = __mul__


def _combine(left: TensorOperator, right: TensorOperator, factor: float) -> TensorOperator:
    if left.n_features != right.n_features:
        raise FeaturesError(
            "width",
            f"cannot combine tensors over {left.n_features} and {right.n_features} variables",
            remedy="Both must be of the same format.",
        )
    if isinstance(left, PackedTensor) and isinstance(right, PackedTensor | RankOneSum):
        # Once a flattening is written out, the difference costs no more memory than it does.
        return PackedTensor(left.flattening + factor * right.flatten(), left.n_features)
    return _Combination(_terms(left) + _terms(right * factor))


def _terms(operator: TensorOperator) -> tuple[tuple[float, TensorOperator], ...]:
    return operator.terms if isinstance(operator, _Combination) else ((1.0, operator),)


def _inner(left: TensorOperator, right: TensorOperator) -> float:
    """``⟨S, T⟩``; without writing a flattening where one side is a sum of rank-one terms."""
    if left is right:
        return left.squared_norm()
    if isinstance(left, RankOneSum):
        left, right = right, left
    if isinstance(right, RankOneSum):
        return float(left.coefficients(right.vectors) @ right.weights)
    return float(np.sum(left.flatten() * right.flatten()))


def as_operator(tensor: np.ndarray | TensorOperator) -> TensorOperator:
    """Take a symmetric ``p × p × p × p`` array as a tensor operator.

    Parameters
    ----------
    tensor : ndarray of shape (p, p, p, p) or TensorOperator
        An operator passes through.

    Returns
    -------
    TensorOperator
        The same tensor, packed.

    Examples
    --------
    >>> import numpy as np
    >>> u = np.array([0.6, 0.8])
    >>> operator = as_operator(np.einsum("i,j,k,l->ijkl", u, u, u, u))
    >>> operator.coefficients(u[:, None]).round(6)
    array([1.])
    """
    if isinstance(tensor, TensorOperator):
        return tensor
    tensor = check_symmetric_tensor(tensor)
    rows, columns, scale = pair_indices(tensor.shape[0])
    packed = tensor[rows[:, None], columns[:, None], rows, columns] * scale[:, None] * scale
    return PackedTensor(packed, tensor.shape[0])


def relative_norm(rest: TensorOperator, whole: TensorOperator) -> float:
    """``‖rest‖_F / ‖whole‖_F``; 0 for a zero tensor, NaN where a norm would only be estimated."""
    if not (rest.norm_is_exact and whole.norm_is_exact):
        return float("nan")
    size = whole.squared_norm()
    return float(np.sqrt(rest.squared_norm() / size)) if size > 0 else 0.0
