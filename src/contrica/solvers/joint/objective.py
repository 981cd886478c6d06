"""All patterns of all datasets refined together: one model, of which every method here is a case.

κ_k of dataset d is modelled as ``Σ_j W_k[d, j] u_j^{⊗k}``, with unit vectors ``u_j`` that all datasets
and orders share and a mask that says which weights may differ from zero. One dataset with all weights is
ICA; a foreground with all and a background with the first r is cICA; more datasets add rows to the mask.

The fit minimises ``Σ_t ‖κ_t − Σ_j W[t, j] u_j^{⊗k}‖² / D_t`` over terms t, each of a dataset and an order
(`Terms`). For given vectors the weights are linear least squares and have a closed form, so only vectors
are searched; by the envelope theorem the gradient is that of fixed weights,

``∂/∂u_j = 2 Σ_t k W[t, j] / D_t · ( Σ_i W[t, i] (u_j · u_i)^{k−1} u_i − κ_t(u_j, …, u_j, ·) )``,

which needs no more of a tensor than its product with k − 1 vectors: O(n p) for each vector.
A ridge of 1e-6 on the weights, ``1e-6 ‖W[t]‖² / D_t``, keeps two vectors from running together with
huge weights of opposite sign, which fits noise and has no minimum.
L-BFGS is fast at first and may take thousands of steps to the end, where patterns nearly make one another
up; so what is not too large is ended by Newton's method, in a few steps and to rounding (`polish`). This
holds for every fit that a choice rests on, up to 1000 entries of all vectors together: a fit that stopped
on its way would depend on rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.solvers.joint.terms import Terms

__all__ = [
    "JointFit",
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
    """A joint decomposition of several cumulants.

    Attributes
    ----------
    vectors : ndarray of shape (p, k)
        The ``u_j``, unit columns.
    weights : ndarray of shape (n_terms, k)
        W; zero where the mask forbids.
    objective : float
        Sum over terms of the squared norm of what is left over the term's denominator, and the ridge.
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


def fit_weights(terms: Terms, vectors: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The weights that minimise each term's residual, zero where the mask forbids.

    Parameters
    ----------
    terms : Terms
    vectors : ndarray of shape (p, k)
        Unit columns.
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)

    Returns
    -------
    ndarray of shape (n_terms, k)
    """
    coefficients = np.einsum("ik,tik->tk", vectors, terms.images(vectors))
    allowed = terms.allowed(mask)
    return _solve_weights(_grams(terms, vectors.T @ vectors, allowed), coefficients, allowed)


def _grams(terms: Terms, cosines: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Normal equations of each term's weights, ridge included; the identity where the mask forbids."""
    grams, kept = np.empty((len(terms), *cosines.shape)), allowed.astype(float)
    for order, own in terms.members.items():
        grams[own] = _power(cosines, order)
    grams *= kept[:, :, None]
    grams *= kept[:, None, :]
    np.einsum("tkk->tk", grams)[...] += np.where(allowed, RIDGE, 1.0)
    return grams


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """``base ** exponent`` for a small integer, by products: numpy takes logarithms from 3 on."""
    found = base if exponent else np.ones_like(base)
    for _ in range(exponent - 1):
        found = found * base
    return found


def _solve_weights(grams: np.ndarray, coefficients: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    right = np.where(allowed, coefficients, 0.0)
    return np.linalg.solve(grams, right[:, :, None])[:, :, 0] + 0.0  # no negative zeros


def objective_and_gradient(
    terms: Terms, vectors: np.ndarray, mask: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Objective, ridge included, at its best weights, its gradient in the unit vectors, and the weights.

    Parameters
    ----------
    terms : Terms
    vectors : ndarray of shape (p, k)
        Unit columns.
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)

    Returns
    -------
    objective : float
    gradient : ndarray of shape (p, k)
    weights : ndarray of shape (n_terms, k)
    """
    cosines, images, allowed = vectors.T @ vectors, terms.images(vectors), terms.allowed(mask)
    coefficients = np.einsum("ik,tik->tk", vectors, images)
    weights = _solve_weights(_grams(terms, cosines, allowed), coefficients, allowed)
    # with the ridge, whose minimum this is
    left = terms.squared_norms - np.einsum("tk,tk->t", weights, coefficients)
    scaled = weights * (2 * terms.orders / terms.denominators)[:, None]
    fitted = np.zeros_like(cosines)
    for order, own in terms.members.items():
        fitted += (weights[own].T @ scaled[own]) * _power(cosines, order - 1)
    gradient = vectors @ fitted - np.einsum("tik,tk->ik", images, scaled)
    return float(np.sum(left / terms.denominators)), gradient, weights


def reduced_hessian(
    terms: Terms, vectors: np.ndarray, weights: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Second derivatives of the objective at its best weights, in the unit vectors.

    With c = u_i · u_j and sums over terms, each divided by its denominator, fixed weights have the blocks
    ``2k W_i W_j (c^{k−1} I + (k−1) c^{k−2} u_j u_iᵀ)`` and, for i = j, besides
    ``−2k(k−1) W_i (κ − Σ_m W_m u_m^{⊗k})(u_i^{k−2}, ·, ·)``. That the weights follow takes ``C D⁻¹ Cᵀ``
    off, where C and D are the derivatives by a vector and a weight and by two weights.

    Parameters
    ----------
    terms, vectors
        As of `objective_and_gradient`.
    weights : ndarray of shape (n_terms, k)
        The best ones, as that function has them.
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)

    Returns
    -------
    ndarray of shape (k p, k p)
        Vector after vector. Along a vector itself nothing changes; there it is the identity.
    """
    p, k = vectors.shape
    u, cosines = vectors.T, vectors.T @ vectors
    each, axes = np.arange(k), np.arange(p)
    squares = u[:, :, None] * u[:, None, :]
    scaled = weights * (2 * terms.orders / terms.denominators)[:, None]
    plain, mixed = np.zeros((2, k, k))
    for order, own in terms.members.items():
        pairs = weights[own].T @ scaled[own]
        plain += pairs * _power(cosines, order - 1)
        mixed += pairs * (order - 1) * _power(cosines, order - 2)
    # c^{k−2} u_j u_iᵀ, as [i, :, j, :]
    hessian = mixed[:, None, :, None] * vectors[None, :, :, None]
    hessian = hessian * u[:, None, None, :]
    # vectors stay on the sphere, and along u_i the slope is that of the ridge
    ridge = RIDGE * np.einsum("ti,ti->i", weights, scaled)
    hessian[:, axes, :, axes] += plain + np.diag(ridge)
    left = terms.slices(vectors, scaled * (terms.orders - 1)[:, None])
    hessian[each, :, each, :] -= left - np.tensordot(mixed, squares, 1)
    hessian = hessian.reshape(k * p, k * p)
    C, D = _by_weights(terms, vectors, weights, terms.allowed(mask))
    hessian -= np.hstack(list(C)) @ np.vstack(list(np.linalg.solve(D, C.transpose(0, 2, 1))))
    tangent = np.eye(p) - squares
    # across both vectors: rows first, then, of the transpose, columns
    half = (tangent @ hessian.reshape(k, p, k * p)).reshape(k * p, k * p)
    found = (tangent @ half.T.reshape(k, p, k * p)).reshape(k, p, k, p)
    found[each, :, each, :] += squares
    found = found.reshape(k * p, k * p)
    return np.asarray((found + found.T) / 2)


def _by_weights(
    terms: Terms, vectors: np.ndarray, weights: np.ndarray, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of every term the derivatives by a vector and a weight, ``(k p, k)``, and by two weights."""
    p, k = vectors.shape
    cosines, images, each = vectors.T @ vectors, terms.images(vectors), np.arange(k)
    C = np.empty((len(terms), k, p, k))
    for order, own in terms.members.items():
        powers = weights[own][:, :, None] * _power(cosines, order - 1)
        C[own] = powers[:, :, None, :] * vectors
        left = images[own] - vectors @ powers
        C[own[:, None], each, :, each] -= left.transpose(0, 2, 1)
    C *= (2 * terms.orders / terms.denominators)[:, None, None, None] * allowed[:, None, None, :]
    D = _grams(terms, cosines, allowed) * (2 / terms.denominators)[:, None, None]
    return C.reshape(len(terms), k * p, k), D


def _tangent(vectors: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """What of a gradient is across each unit vector: along it nothing changes."""
    return gradient - vectors * np.einsum("ik,ik->k", vectors, gradient)


def removal_losses(
    terms: Terms, vectors: np.ndarray, weights: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """How much the objective would rise if a vector had no weight in a dataset, the others refitted.

    The sum over the dataset's terms of ``W[t, j]² / (G⁻¹)_jj / D_t`` with ``G = ((u_i · u_j)^k)``, and
    the ridge, over the vectors the mask allows.

    Parameters
    ----------
    terms : Terms
    vectors : ndarray of shape (p, k)
    weights : ndarray of shape (n_terms, k)
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)

    Returns
    -------
    ndarray of shape (n_datasets, k)
    """
    inverse = np.linalg.inv(_grams(terms, vectors.T @ vectors, terms.allowed(mask)))
    each = weights**2 / np.einsum("tkk->tk", inverse) / terms.denominators[:, None]
    losses = np.zeros((terms.n_datasets, mask.shape[1]))
    np.add.at(losses, terms.datasets, each)
    return losses
