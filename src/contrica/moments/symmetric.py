"""Symmetric matrices as vectors, and the sign convention of every vector we return.

A symmetric ``p × p`` matrix has ``q = p(p+1)/2`` free entries. ``svec`` lists them, the off-diagonal
ones times √2, so that ``svec(M) · svec(N) = trace(M N)``: in these coordinates the flattening of a
symmetric order-4 tensor is a ``q × q`` symmetric matrix with the same non-zero eigenvalues as the
``p² × p²`` one of the paper, and its eigenvectors read as symmetric matrices of unit norm.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import eigh

__all__ = [
    "fix_signs",
    "largest_eigenpairs",
    "n_packed",
    "pair_indices",
    "smat",
    "svec",
    "svec_outer",
]


def n_packed(n_features: int) -> int:
    """Dimension ``p(p+1)/2`` of the space of symmetric matrices."""
    return n_features * (n_features + 1) // 2


@lru_cache(maxsize=32)
def pair_indices(n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and scale (1 on the diagonal, √2 off it) of each packed entry."""
    rows, columns = np.triu_indices(n_features)
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return rows, columns, scale


def svec(matrices: np.ndarray) -> np.ndarray:
    """Pack symmetric matrices ``(..., p, p)`` into vectors ``(..., p(p+1)/2)``, isometrically.

    Examples
    --------
    >>> import numpy as np
    >>> svec(np.eye(2))
    array([1., 0., 1.])
    """
    rows, columns, scale = pair_indices(matrices.shape[-1])
    return matrices[..., rows, columns] * scale


def smat(vectors: np.ndarray) -> np.ndarray:
    """Unpack vectors ``(..., p(p+1)/2)`` into symmetric matrices ``(..., p, p)``; inverse of ``svec``."""
    n_features = int((np.sqrt(8 * vectors.shape[-1] + 1) - 1) / 2)
    rows, columns, scale = pair_indices(n_features)
    matrices = np.empty((*vectors.shape[:-1], n_features, n_features))
    entries = vectors / scale
    matrices[..., rows, columns] = entries
    matrices[..., columns, rows] = entries
    return matrices


def svec_outer(vectors: np.ndarray) -> np.ndarray:
    """``svec(u uᵀ)`` of every column ``u`` of ``(p, k)``, as columns of ``(p(p+1)/2, k)``."""
    rows, columns, scale = pair_indices(vectors.shape[0])
    return vectors[rows] * vectors[columns] * scale[:, None]


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Flip columns so that the entry of largest magnitude in each is positive."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs) + 0.0  # no negative zeros


def largest_eigenpairs(
    matrix: np.ndarray, count: int, *, overwrite: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues of a symmetric matrix, increasing, and their vectors, by LAPACK.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        Finite.
    count : int
        At most p.
    overwrite : bool, default=False
        Whether the matrix may be lost.

    Returns
    -------
    values : ndarray of shape (count,)
    vectors : ndarray of shape (p, count)

    Examples
    --------
    >>> import numpy as np
    >>> largest_eigenpairs(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([2., 3.])
    """
    p = len(matrix)
    diagonal = matrix.diagonal().copy()
    values, vectors = eigh(matrix, subset_by_index=[p - count, p - 1], overwrite_a=overwrite)
    if values.size == count:
        return values, vectors
    # Among equal eigenvalues LAPACK's subset may be too small, without a word. What it overwrote is below
    # the diagonal and on it.
    upper = np.triu(matrix, 1)
    values, vectors = np.linalg.eigh(upper + upper.T + np.diag(diagonal))
    return values[p - count :], vectors[:, p - count :]
