"""Largest-magnitude eigenpairs of a flattened tensor: dense when small, Lanczos when large."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from contrica.operators import PackedTensor, TensorOperator
from contrica.symmetric import n_packed, smat, svec, svec_outer
from contrica.validation import check_rank

__all__ = ["Eigenpairs", "eigenvalues", "few_threads", "top_eigenpairs"]

# Below this size of the flattening a full decomposition is faster than Lanczos iterations.
DENSE_SIZE = 2000
# Below this size products with it are faster on one thread; on a busy machine, many times.
ONE_THREAD_SIZE = 1000


def few_threads(n_features: int) -> threadpool_limits:
    """A context in which BLAS uses one thread, if tensors over so many variables are small.

    The algorithms multiply small matrices thousands of times. Threads then spend more time on
    meeting than on multiplying, and where cores are shared they wait for one another.
    """
    small = n_packed(n_features) < ONE_THREAD_SIZE
    return threadpool_limits(1 if small else None, "blas")


class Eigenpairs(NamedTuple):
    """Eigenvalues by decreasing magnitude, and orthonormal eigenvectors in ``svec`` coordinates.

    Attributes
    ----------
    values : ndarray of shape (rank,)
    vectors : ndarray of shape (p(p+1)/2, rank)
    """

    values: np.ndarray
    vectors: np.ndarray

    def matrices(self) -> np.ndarray:
        """Eigenvectors read as symmetric matrices, shape ``(rank, p, p)``."""
        return smat(self.vectors.T)

    def significant(self, tolerance: float | None = None) -> Eigenpairs:
        """Those pairs whose eigenvalue is not zero to rounding, or to ``tolerance``, relatively."""
        sizes = np.abs(self.values)
        share = self.vectors.shape[0] * np.finfo(float).eps if tolerance is None else tolerance
        count = int(np.sum(sizes > share * sizes.max(initial=0.0)))
        return Eigenpairs(self.values[:count], self.vectors[:, :count])

    def inverse_form(self, vectors: np.ndarray) -> np.ndarray:
        """``A_iᵀ V D⁻¹ Vᵀ A_j`` for all pairs of columns ``a`` of ``(p, k)``, with ``A = vec(a aᵀ)``."""
        inside = self.vectors.T @ svec_outer(vectors)
        return (inside.T / self.values) @ inside

    def contain(self, vectors: np.ndarray) -> np.ndarray:
        """Whether ``vec(a aᵀ)`` lies in the span of the eigenvectors, for every column ``a``."""
        return np.sum((self.vectors.T @ svec_outer(vectors)) ** 2, axis=0) > 1 - 1e-8

    def subtractable_weights(self, vectors: np.ndarray) -> np.ndarray:
        """``1 / (Aᵀ V D⁻¹ Vᵀ A)``: the multiple of ``a^{⊗4}`` whose subtraction lowers the rank.

        Lemma `lem:unique_C` of the paper; 0 where the form vanishes.
        """
        form = np.diag(self.inverse_form(vectors))
        return np.divide(1.0, form, out=np.zeros_like(form), where=form != 0)


def top_eigenpairs(operator: TensorOperator, rank: int | None = None) -> Eigenpairs:
    """The ``rank`` eigenpairs of ``Mat(T)`` of largest magnitude; all of them without a rank.

    Parameters
    ----------
    operator : TensorOperator
    rank : int, optional
        At most ``p(p+1)/2``.

    Returns
    -------
    Eigenpairs
    """
    size = n_packed(operator.n_features)
    rank = size if rank is None else check_rank(rank, operator.n_features)
    written_out = isinstance(operator, PackedTensor)
    if size <= DENSE_SIZE or rank > size // 4:
        values, vectors = eigh(operator.flatten(), check_finite=False, driver="evd")
    else:
        flat = operator.flatten() if written_out else _svec_operator(operator, size)
        values, vectors = eigsh(flat, k=rank, which="LM", v0=_start(operator.n_features))
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return Eigenpairs(values[order], vectors[:, order])


def eigenvalues(operator: TensorOperator, most: int | None = None) -> np.ndarray:
    """Eigenvalues of ``Mat(T)`` by decreasing magnitude, at most ``most`` of them."""
    size = n_packed(operator.n_features)
    if size <= DENSE_SIZE or (most is None and isinstance(operator, PackedTensor)):
        values = eigh(operator.flatten(), eigvals_only=True, check_finite=False)
        return values[np.argsort(-np.abs(values), kind="stable")][:most]
    return top_eigenpairs(operator, min(most or size, size)).values


def _svec_operator(operator: TensorOperator, size: int) -> LinearOperator:
    def product(vector: np.ndarray) -> np.ndarray:
        return svec(operator.apply(smat(vector.ravel())))

    return LinearOperator((size, size), matvec=product, rmatvec=product, dtype=np.float64)


def _start(n_features: int) -> np.ndarray:
    # Lanczos needs a start with a share in every eigenvector; a fixed generator keeps the
    # decomposition a function of the tensor alone.
    return np.random.default_rng(0).standard_normal(n_packed(n_features))
