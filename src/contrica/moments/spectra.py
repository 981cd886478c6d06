"""Eigenvalues of symmetric matrices: by LAPACK, or, of large ones, by the card that a fit works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal
from scipy.linalg.lapack import dposv, dpotrf

from contrica.moments.leading import largest_eigenvalue
from contrica.moments.symmetric import largest_eigenpairs
from contrica.rows.device import (
    like,
    namespace,
    package_of,
    plus_diagonal,
    same_kind,
    to_numpy,
)
from contrica.rows.moving import card, there

__all__ = [
    "contrast_spectrum",
    "is_positive_definite",
    "is_worked_on_card",
    "lower_solve",
    "orthonormal",
    "pseudo_solve",
    "symmetric_spectrum",
    "symmetric_values",
    "top_ratio",
    "top_value",
    "varies_everywhere",
]

# Matrices from this size on are worked on by a card; smaller ones are done before they have got there.
MIN_CARD_SIZE = 256
# Lanczos: steps between looks at what was found, most steps, and the residual over the value to stop at.
STEPS, MAX_STEPS, RESIDUAL = 24, 360, 1e-8


def is_worked_on_card(size: int) -> bool:
    """Whether matrices of so many rows and columns are worked on by a card.

    Parameters
    ----------
    size : int

    Returns
    -------
    bool
    """
    return size >= MIN_CARD_SIZE and card() is not None


def symmetric_values(matrix: np.ndarray) -> np.ndarray:
    """Eigenvalues of a symmetric matrix, increasing.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)

    Returns
    -------
    ndarray of shape (p,)
    """
    if not is_worked_on_card(len(matrix)):
        return np.asarray(np.linalg.eigvalsh(matrix))
    own = there(matrix)
    return to_numpy(namespace(own).linalg.eigvalsh(own))


def top_value(matrix: np.ndarray) -> float:
    """The largest eigenvalue of a symmetric matrix that has no negative ones.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)

    Returns
    -------
    float
    """
    if not is_worked_on_card(len(matrix)):
        return largest_eigenvalue(matrix)
    return _largest(there(matrix))


def varies_everywhere(matrix: np.ndarray, n_rows: int = 0) -> bool:
    """Whether a symmetric matrix is of full rank for sure: quick, False where rounding could decide.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
    n_rows : int
        Of which it is a sum: very many have more rounding.

    Returns
    -------
    bool
    """
    if is_worked_on_card(len(matrix)):
        return _is_of_full_rank(there(matrix), n_rows)
    lowered = matrix.copy()
    lowered.flat[:: len(matrix) + 1] -= _rank_room(matrix, n_rows)
    return bool(dpotrf(lowered.T, overwrite_a=1)[1] == 0)


def _rank_room(matrix: Any, n_rows: int = 0) -> float:
    """What eigenvalues are wrong by, and less than which none counts, four times over."""
    return max(4 * matrix.shape[0], n_rows) * np.finfo(float).eps * float(matrix.trace())


def orthonormal(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns, the first k of which span the first k of those given.

    Parameters
    ----------
    columns : ndarray of shape (p, k)

    Returns
    -------
    ndarray of shape (p, k)
    """
    if not is_worked_on_card(len(columns)):
        return np.asarray(np.linalg.qr(columns)[0])
    own = there(columns)
    return to_numpy(namespace(own).linalg.qr(own)[0])


def symmetric_spectrum(
    matrix: np.ndarray, count: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of a symmetric matrix, increasing, and their eigenvectors as columns.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        It may be overwritten.
    count : int, optional
        How many; all by default.

    Returns
    -------
    values : ndarray of shape (count,)
    vectors : ndarray of shape (p, count)
    """
    p = len(matrix)
    first = max(p - (p if count is None else count), 0)
    if not is_worked_on_card(p):
        return largest_eigenpairs(matrix, p - first, overwrite=True)
    own = there(matrix)
    values, vectors = namespace(own).linalg.eigh(own)
    return to_numpy(values[first:]), to_numpy(vectors[:, first:])


def contrast_spectrum(
    fore: Any, back: Any, count: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """``Σ_x w = k Σ_y w``: the largest k, increasing, and the w as columns, with ``wᵀ Σ_y w = 1``.

    Parameters
    ----------
    fore, back : ndarray or tensor of shape (p, p)
        Symmetric, the second one positive definite; that is overwritten.
    count : int, optional
        How many; all by default.

    Returns
    -------
    ratios : ndarray of shape (count,)
    axes : ndarray of shape (p, count)
    """
    p = fore.shape[0]
    first = max(p - (p if count is None else count), 0)
    if isinstance(fore, np.ndarray):
        if not is_worked_on_card(p):
            # small ones are all found as fast as some
            some = (first, p - 1) if p >= MIN_CARD_SIZE and 2 * first > p else None
            ratios, axes = eigh(fore.T, back.T, subset_by_index=some, overwrite_b=some is None)
            if ratios.size < p - first:  # among ties LAPACK may find fewer than it was asked for
                ratios, axes = eigh(fore.T, back.T, overwrite_b=True)
            left_out = ratios.size - (p - first)
            return ratios[left_out:], axes[:, left_out:]
        fore, back = there(fore), there(back)
    xp = namespace(fore)
    root = _root(back)
    ratios, turned = xp.linalg.eigh(_whitened(root, fore))
    solved = lower_solve(root, turned[:, first:], transposed=True)
    return to_numpy(ratios[first:]), to_numpy(solved)


def pseudo_solve(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``Σ⁺ b`` for some columns b and a symmetric Σ.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
    columns : ndarray of shape (p, k)

    Returns
    -------
    ndarray of shape (p, k)
    """
    if not is_worked_on_card(len(matrix)):
        if varies_everywhere(matrix):
            return np.asarray(dposv(matrix, columns, lower=1)[1])
        return np.asarray(np.linalg.pinv(matrix, hermitian=True) @ columns)
    own = there(matrix)
    if _is_of_full_rank(own):
        root = _root(own)
        solved = lower_solve(root, lower_solve(root, like(own, columns)), transposed=True)
        return to_numpy(solved)
    values, vectors = namespace(own).linalg.eigh(own)
    sizes = to_numpy(values)
    kept = np.abs(sizes) > 1e-15 * np.abs(sizes).max()  # as numpy's
    inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=kept)
    along = (vectors.T @ like(own, columns)) * like(own, inverse)[:, None]
    return to_numpy(vectors @ along)


def lower_solve(root: Any, columns: Any, *, transposed: bool = False) -> Any:
    """``L⁻¹ M``, or ``L⁻ᵀ M``, of a lower triangular tensor.

    Parameters
    ----------
    root, columns : tensor
    transposed : bool

    Returns
    -------
    tensor
    """
    if package_of(root) == "torch":  # the array API knows no triangles
        import torch

        matrix = root.mT if transposed else root
        return torch.linalg.solve_triangular(matrix, columns, upper=transposed)
    return namespace(root).linalg.solve(root.T if transposed else root, columns)


def _whitened(root: Any, fore: Any) -> Any:
    """``L⁻¹ Σ_x L⁻ᵀ``, symmetric to the last digit."""
    inside = lower_solve(root, lower_solve(root, fore).T)
    return (inside + inside.T) / 2


def _is_of_full_rank(matrix: Any, n_rows: int = 0) -> bool:
    """Whether a symmetric tensor is positive definite by more than rounding; quick."""
    return is_positive_definite(plus_diagonal(matrix, -_rank_room(matrix, n_rows)))


def is_positive_definite(matrix: Any) -> bool:
    """Whether a symmetric tensor has a Cholesky factor.

    Parameters
    ----------
    matrix : tensor of shape (p, p)

    Returns
    -------
    bool
    """
    return _factor(matrix) is not None


def _factor(matrix: Any) -> Any:
    """Cholesky's factor of a tensor, or None where there is none."""
    xp = namespace(matrix)
    try:
        root = xp.linalg.cholesky(matrix)
    except (RuntimeError, ValueError) as error:
        # every package has a class of its own; a card without memory is another matter
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    return root if bool(xp.all(xp.isfinite(root))) else None


def _root(matrix: Any) -> Any:
    """Cholesky's factor of a tensor that must have one."""
    found = _factor(matrix)
    if found is None:
        raise np.linalg.LinAlgError("a covariance to take ratios over is not positive definite")
    return found


def top_ratio(fore: Any, back: Any) -> float:
    """The largest k of ``Σ_x w = k Σ_y w``, of tensors, by Lanczos steps where they are.

    Every vector is made orthogonal to all before it, twice; the search ends where the residual is
    ``1e-8`` of the value, which is then right to the square of that over its distance to the next one.

    Parameters
    ----------
    fore, back : tensor of shape (p, p)
        Symmetric, the second one positive definite.

    Returns
    -------
    float
    """
    return _largest(_whitened(_root(back), fore))


def _largest(inside: Any) -> float:
    """The largest eigenvalue of a symmetric tensor, by Lanczos steps."""
    xp, p = namespace(inside), inside.shape[0]
    most = min(MAX_STEPS, p)
    basis = xp.zeros((most + 1, p), **same_kind(inside))
    start = np.random.default_rng(0).standard_normal(p)
    basis[0, :] = like(inside, start / np.linalg.norm(start))
    diagonal, beside = (xp.zeros(most, **same_kind(inside)) for _ in range(2))
    for step in range(most):
        along = inside @ basis[step, :]
        diagonal[step] = basis[step, :] @ along
        before = basis[: step + 1, :]
        for _ in range(2):
            along = along - before.T @ (before @ along)
        length = xp.linalg.vector_norm(along)
        beside[step] = length
        basis[step + 1, :] = along / xp.where(length > 0, length, xp.ones_like(length))
        if (step + 1) % STEPS == 0 or step + 1 == most:
            value, residual = _found(to_numpy(diagonal)[: step + 1], to_numpy(beside)[: step + 1])
            if residual <= RESIDUAL * abs(value):
                return value
    return float(xp.linalg.eigvalsh(inside)[-1])


def _found(diagonal: np.ndarray, beside: np.ndarray) -> tuple[float, float]:
    """Largest eigenvalue of a tridiagonal matrix, and the residual that it leaves in the large one."""
    last = diagonal.size - 1
    values, vectors = eigh_tridiagonal(
        diagonal, beside[:-1], select="i", select_range=(last, last), check_finite=False
    )
    return float(values[0]), float(abs(vectors[-1, 0]) * beside[-1])
