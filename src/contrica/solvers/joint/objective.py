"""All patterns of all datasets refined together: one model, of which every method here is a case.

κ₄ of dataset d is modelled as ``Σ_j W[d, j] u_j^{⊗4}``, with unit vectors ``u_j`` that all datasets share
and a mask that says which weights may differ from zero. One dataset with all weights free is ICA; a
foreground with all and a background with the first r free is cICA; more datasets add rows to the mask.

The fit minimises ``Σ_d ‖κ₄(d) − Σ_j W[d, j] u_j^{⊗4}‖² / ‖κ₄(d)‖²``. For given vectors the weights are
linear least squares and have a closed form, so only vectors are searched; by the envelope theorem the
gradient is that of fixed weights,

``∂/∂u_j = 8 Σ_d W[d, j] / ‖κ₄(d)‖² · ( Σ_k W[d, k] (u_j · u_k)³ u_k − κ₄(d)(u_j, u_j, u_j, ·) )``,

which needs no more of a tensor than its product with three vectors: O(n p) for each vector.
A ridge of 1e-6 on the weights, ``1e-6 ‖W[d]‖² / ‖κ₄(d)‖²``, keeps two vectors from running together with
huge weights of opposite sign, which fits noise and has no minimum.
L-BFGS is fast at first and may take thousands of steps to the end, where patterns nearly make one another
up; so what is not too large is ended by Newton's method, in a few steps and to rounding (`polish`). This
holds for every fit that a choice rests on, up to 1000 entries of all vectors together: a fit that stopped
on its way would depend on rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contrica.errors import DataError
from contrica.moments.operators import (
    TensorOperator,
)

__all__ = [
    "JointFit",
    "check_nonzero",
    "contrast_mask",
    "fit_weights",
    "objective_and_gradient",
    "reduced_hessian",
    "removal_losses",
]

# Of the weights, see above. From 1e-6 to 1e-4 ranks and patterns are the same; with 1e-10 fits stopped on
# the way along a valley, and the ranks chosen followed the rounding (benchmarks/rounding.py).
RIDGE = 1e-6


class JointFit(NamedTuple):
    """A joint decomposition of several tensors.

    Attributes
    ----------
    vectors : ndarray of shape (p, k)
        The ``u_j``, unit columns.
    weights : ndarray of shape (n_datasets, k)
        W; zero where the mask forbids.
    objective : float
        Sum over datasets of the squared norm of what is left, relative to the tensor's, and the ridge.
    n_iter : int
    gradient_norm : float
        Largest entry of the gradient where the search ended.
    n_evaluations : int
        Of objective and gradient.
    gain : float
        Standard errors by which a search did better than its preferred start; NaN where there was none.
    """

    vectors: np.ndarray
    weights: np.ndarray
    objective: float
    n_iter: int
    gradient_norm: float
    n_evaluations: int = 0
    gain: float = float("nan")


def contrast_mask(
    n_background: int, n_foreground: int, n_backgrounds: int = 1, n_foregrounds: int = 1
) -> np.ndarray:
    """Mask of cICA: foregrounds first, with all patterns; then backgrounds with the first r.

    Parameters
    ----------
    n_background, n_foreground : int
        r and ℓ.
    n_backgrounds, n_foregrounds : int
        Datasets of either kind, which share their patterns and have weights of their own.

    Returns
    -------
    ndarray of bool, shape (n_foregrounds + n_backgrounds, r + ℓ)

    Examples
    --------
    >>> contrast_mask(1, 2)
    array([[ True,  True,  True],
           [ True, False, False]])
    """
    mask = np.ones((n_foregrounds + n_backgrounds, n_background + n_foreground), dtype=bool)
    mask[n_foregrounds:, n_background:] = False
    return mask


def fit_weights(
    tensors: Sequence[TensorOperator], vectors: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """The weights that minimise each dataset's residual, zero where the mask forbids.

    Parameters
    ----------
    tensors : sequence of TensorOperator
    vectors : ndarray of shape (p, k)
        Unit columns.
    mask : ndarray of bool, shape (n_datasets, k)

    Returns
    -------
    ndarray of shape (n_datasets, k)
    """
    coefficients = [tensor.coefficients(vectors) for tensor in tensors]
    return _solve_weights((vectors.T @ vectors) ** 4, coefficients, mask)


def _solve_weights(
    gram: np.ndarray, coefficients: Sequence[np.ndarray], mask: np.ndarray
) -> np.ndarray:
    weights = np.zeros(mask.shape)
    for row, allowed, values in zip(weights, mask, coefficients, strict=True):
        row[allowed] = np.linalg.solve(_with_ridge(gram[np.ix_(allowed, allowed)]), values[allowed])
    return weights


def _with_ridge(gram: np.ndarray) -> np.ndarray:
    return gram + RIDGE * np.eye(len(gram))


def objective_and_gradient(
    tensors: Sequence[TensorOperator], norms: Sequence[float], vectors: np.ndarray, mask: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Objective, ridge included, at its best weights, its gradient in the unit vectors, and the weights.

    Parameters
    ----------
    tensors : sequence of TensorOperator
    norms : sequence of float
        Their squared norms.
    vectors : ndarray of shape (p, k)
        Unit columns.
    mask : ndarray of bool, shape (n_datasets, k)

    Returns
    -------
    objective : float
    gradient : ndarray of shape (p, k)
    weights : ndarray of shape (n_datasets, k)
    """
    cosines = vectors.T @ vectors
    images = [tensor.apply_vectors(vectors) for tensor in tensors]
    coefficients = [np.einsum("ik,ik->k", vectors, image) for image in images]
    weights = _solve_weights(cosines**4, coefficients, mask)
    objective, gradient = 0.0, np.zeros_like(vectors)
    for W, norm, values, image in zip(weights, norms, coefficients, images, strict=True):
        objective += (norm - W @ values) / norm  # with the ridge, whose minimum this is
        gradient += (vectors @ (W[:, None] * cosines**3) - image) * (8 * W / norm)
    return float(objective), gradient, weights


def reduced_hessian(
    tensors: Sequence[TensorOperator],
    norms: Sequence[float],
    vectors: np.ndarray,
    weights: np.ndarray,
    mask: np.ndarray,
) -> np.ndarray:
    """Second derivatives of the objective at its best weights, in the unit vectors.

    With c = u_i · u_j and sums over datasets, each divided by ‖κ₄‖², fixed weights have the blocks
    ``8 W_i W_j (c³ I + 3 c² u_j u_iᵀ)`` and, for i = j, besides
    ``−24 W_i (κ₄ − Σ_k W_k u_k^{⊗4})(u_i, u_i, ·, ·)``. That the weights follow takes ``C D⁻¹ Cᵀ`` off,
    where C and D are the derivatives by a vector and a weight and by two weights.

    Parameters
    ----------
    tensors, norms, vectors
        As of `objective_and_gradient`.
    weights : ndarray of shape (n_datasets, k)
        The best ones, as that function has them.
    mask : ndarray of bool, shape (n_datasets, k)

    Returns
    -------
    ndarray of shape (k p, k p)
        Vector after vector. Along a vector itself nothing changes; there it is the identity.
    """
    p, k = vectors.shape
    u, cosines = vectors.T, vectors.T @ vectors
    each, axes = np.arange(k), np.arange(p)
    squares = u[:, :, None] * u[:, None, :]
    pairs = np.einsum("di,dj,d->ij", weights, weights, 8 / np.asarray(norms))
    # c² u_j u_iᵀ, as [i, :, j, :]
    hessian = (3 * pairs * cosines**2)[:, None, :, None] * vectors[None, :, :, None]
    hessian = hessian * u[:, None, None, :]
    # vectors stay on the sphere, and along u_i the slope is that of the ridge
    hessian[:, axes, :, axes] += pairs * cosines**3 + np.diag(RIDGE * pairs.diagonal())
    for tensor, norm, W, allowed in zip(tensors, norms, weights, mask, strict=True):
        left = tensor.apply(squares) - np.tensordot(W * cosines**2, squares, 1)
        hessian[each, :, each, :] -= left * (24 / norm * W)[:, None, None]
        by_weight = (W[:, None] * cosines**3)[:, None, :] * vectors
        by_weight[each, :, each] -= (left @ u[:, :, None])[:, :, 0]
        C = (8 / norm) * by_weight.reshape(k * p, k)[:, allowed]
        D = (2 / norm) * _with_ridge((cosines**4)[np.ix_(allowed, allowed)])
        hessian -= (C @ np.linalg.solve(D, C.T)).reshape(hessian.shape)
    tangent = np.eye(p) - squares
    # across both vectors: rows first, then, of the transpose, columns
    half = (tangent @ hessian.reshape(k, p, k * p)).reshape(k * p, k * p)
    found = (tangent @ half.T.reshape(k, p, k * p)).reshape(k, p, k, p)
    found[each, :, each, :] += squares
    found = found.reshape(k * p, k * p)
    return np.asarray((found + found.T) / 2)


def _tangent(vectors: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """What of a gradient is across each unit vector: along it nothing changes."""
    return gradient - vectors * np.einsum("ik,ik->k", vectors, gradient)


def check_nonzero(tensors: Sequence[TensorOperator]) -> None:
    """Refuse a fourth cumulant that is zero.

    Parameters
    ----------
    tensors : sequence of TensorOperator
    """
    if min(tensor.squared_norm() for tensor in tensors) == 0:
        raise DataError(
            "zero-cumulant",
            "a dataset's fourth cumulant is zero, so nothing can be fitted to it",
            remedy="Leave the dataset out.",
        )


def removal_losses(
    tensors: Sequence[TensorOperator], vectors: np.ndarray, weights: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """How much the objective would rise if a vector had no weight in a dataset, the others refitted.

    ``W[d, j]² / (G⁻¹)_jj / ‖κ₄(d)‖²`` with ``G = ((u_i · u_j)⁴)``, and the ridge, over the vectors the
    mask allows.

    Parameters
    ----------
    tensors : sequence of TensorOperator
    vectors : ndarray of shape (p, k)
    weights : ndarray of shape (n_datasets, k)
    mask : ndarray of bool, shape (n_datasets, k)

    Returns
    -------
    ndarray of shape (n_datasets, k)
    """
    gram = (vectors.T @ vectors) ** 4
    losses = np.zeros(mask.shape)
    for row, tensor, W, allowed in zip(losses, tensors, weights, mask, strict=True):
        inverse = np.linalg.inv(_with_ridge(gram[np.ix_(allowed, allowed)]))
        row[allowed] = W[allowed] ** 2 / np.diag(inverse) / tensor.squared_norm()
    return losses
