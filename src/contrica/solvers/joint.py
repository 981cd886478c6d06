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
on its way would hang on rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment, minimize
from sklearn.exceptions import ConvergenceWarning

from contrica.decompositions import Decomposition, htd, spm
from contrica.moments.fourth import Cumulants, pooled
from contrica.moments.operators import (
    Congruence,
    PackedTensor,
    RankOneSum,
    TensorOperator,
    relative_norm,
)
from contrica.moments.projection import whitening
from contrica.moments.symmetric import fix_signs, n_packed
from contrica.rows.threads import few_threads
from contrica.solvers.algorithm2 import Contrast
from contrica.solvers.deflation import DEFLATIONS
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import check_count, check_scale, warn_user

__all__ = [
    "JointFit",
    "JointProblem",
    "algorithm_2_starts",
    "contrast_mask",
    "converge",
    "descend",
    "fit_weights",
    "joint_contrast",
    "joint_fit",
    "joint_search",
    "objective_and_gradient",
    "polish",
    "reduced_hessian",
    "removal_losses",
    "step_price",
]

# Of the weights, see above. From 1e-6 to 1e-4 ranks and patterns are the same; with 1e-10 fits stopped on
# the way along a valley, and the ranks chosen followed the rounding (benchmarks/rounding.py).
RIDGE = 1e-6
# A search goes on while it lowers the objective by more than this share.
WORTHWHILE = 1e-3
# Steps of a try by L-BFGS, and rounds of swaps.
TRY_STEPS = 100
ROUNDS = 6
# Multiplications that tries beyond the first may cost in all: seconds of one core. Every try counts as
# TRY_STEPS steps, since the steps that it really takes hang on rounding.
BUDGET = 5e9
# Entries of all vectors together up to which a fit is ended by Newton's method, an equation for each;
# and the gradient, about rounding, at which it ends.
NEWTON_SIZE, NEWTON_TOL = 1000, 1e-12
# Gradient at which Newton's method takes over from L-BFGS; its steps at most (or max_iter, if more).
HANDOVER, NEWTON_STEPS = 1e-4, 300
# Standard errors by which a search must do better than the preferred start.
MIN_GAIN = 2.0


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


@dataclass(frozen=True)
class JointProblem:
    """Cumulants of a foreground and its backgrounds in coordinates that suit a joint fit.

    Coordinates are whitened by the mean of the foreground's covariance and that of the backgrounds, so
    that a fit does not depend on the units of the variables.

    Attributes
    ----------
    fore : Cumulants
    backs : tuple of Cumulants
    tensors : tuple of TensorOperator
        Fourth cumulants in whitened coordinates, the foreground's first.
    whiten, dewhiten : ndarray of shape (p, k)
        Rows times ``whiten`` are whitened; ``dewhiten`` times a vector brings it back.
    """

    fore: Cumulants
    backs: tuple[Cumulants, ...]
    tensors: tuple[TensorOperator, ...]
    whiten: np.ndarray
    dewhiten: np.ndarray

    @classmethod
    def of(cls, fore: Cumulants, *backs: Cumulants) -> JointProblem:
        """Whiten the cumulants of a foreground and of one or more backgrounds."""
        _refuse_nothing([part.fourth for part in (fore, *backs)])
        whiten, dewhiten = whitening((fore.covariance + pooled(backs).covariance) / 2)
        tensors = tuple(_in_coordinates(part.fourth, whiten) for part in (fore, *backs))
        return cls(fore, backs, tensors, whiten, dewhiten)

    @property
    def background(self) -> TensorOperator:
        """κ₄ of the background; of several, the sum of each over its norm."""
        first, *others = self.tensors[1:]
        if not others:
            return first
        whole = first * (1 / np.sqrt(first.squared_norm()))
        for tensor in others:
            whole = whole + tensor * (1 / np.sqrt(tensor.squared_norm()))
        return whole


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


def descend(
    tensors: Sequence[TensorOperator],
    start: np.ndarray,
    mask: np.ndarray,
    max_iter: int,
    tol: float,
) -> JointFit:
    """As `joint_fit` before Newton's method takes over."""
    p, k = start.shape
    norms = [tensor.squared_norm() for tensor in tensors]

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loose = flat.reshape(p, k)
        lengths = np.linalg.norm(loose, axis=0)
        vectors = loose / lengths
        value, gradient, _ = objective_and_gradient(tensors, norms, vectors, mask)
        # through the normalisation: the part along the vector drops out
        return value, (_tangent(vectors, gradient) / lengths).ravel()

    found = minimize(
        evaluate,
        (start / np.linalg.norm(start, axis=0)).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxfun": 2 * max_iter,
            "gtol": tol,
            "ftol": 1e-14,
            "maxcor": 20,
        },
    )
    vectors = found.x.reshape(p, k)
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    value, _, weights = objective_and_gradient(tensors, norms, vectors, mask)
    reached = float(np.abs(found.jac).max())
    return JointFit(vectors, weights, value, int(found.nit), reached, int(found.nfev))


def converge(
    tensors: Sequence[TensorOperator],
    start: np.ndarray,
    mask: np.ndarray,
    max_iter: int,
    tol: float,
) -> JointFit:
    """As `joint_fit`, from checked input, and says nothing of convergence."""
    if start.size > NEWTON_SIZE:
        return descend(tensors, start, mask, max_iter, tol)
    fit = descend(tensors, start, mask, max_iter, max(tol, HANDOVER))
    return polish(tensors, fit, mask, max_iter=max(max_iter, NEWTON_STEPS))


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


def polish(
    tensors: Sequence[TensorOperator],
    fit: JointFit,
    mask: np.ndarray,
    *,
    max_iter: int = NEWTON_STEPS,
    tol: float = NEWTON_TOL,
) -> JointFit:
    """A fit taken to its minimum by Newton's method, damped where the objective would not fall.

    Parameters
    ----------
    tensors : sequence of TensorOperator
    fit : JointFit
        Where to start.
    mask : ndarray of bool, shape (n_datasets, k)
    max_iter : int
        Most steps.
    tol : float
        Largest entry of the gradient at which it ends; it also ends where no step helps.

    Returns
    -------
    JointFit
    """
    norms = [tensor.squared_norm() for tensor in tensors]

    def evaluate(vectors: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, weights = objective_and_gradient(tensors, norms, vectors, mask)
        return value, _tangent(vectors, gradient), weights

    vectors, shape = fit.vectors, fit.vectors.T.shape
    value, gradient, weights = evaluate(vectors)
    damping, steps, spent = 0.0, 0, 1
    while steps < max_iter and np.abs(gradient).max() > tol:
        hessian = reduced_hessian(tensors, norms, vectors, weights, mask)
        most = float(np.abs(hessian).max())
        while damping <= most:  # beyond it a step is as good as none
            try:
                factor = cho_factor(hessian + damping * np.eye(len(hessian)), check_finite=False)
            except np.linalg.LinAlgError:
                damping = max(10 * damping, 1e-9 * most)
                continue
            move = cho_solve(factor, gradient.T.ravel(), check_finite=False)
            tried = vectors - move.reshape(shape).T
            tried = tried / np.linalg.norm(tried, axis=0)
            found = evaluate(tried)
            spent += 1
            # near the end rounding is all that the objective shows, and the gradient shows more
            even = found[0] <= value + 1e-13 and np.abs(found[1]).max() < np.abs(gradient).max() / 2
            if found[0] < value - 1e-13 or even:
                break
            damping = max(10 * damping, 1e-9 * most)
        else:
            break
        vectors, (value, gradient, weights) = tried, found
        damping = damping / 10 if damping > 1e-9 * most else 0.0
        steps += 1
    return JointFit(
        *(vectors, weights, value, fit.n_iter + steps),
        *(float(np.abs(gradient).max()), fit.n_evaluations + spent),
    )


def _tangent(vectors: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """What of a gradient is across each unit vector: along it nothing changes."""
    return gradient - vectors * np.einsum("ik,ik->k", vectors, gradient)


def joint_fit(
    tensors: Sequence[TensorOperator],
    start: np.ndarray,
    mask: np.ndarray,
    *,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> JointFit:
    """Refine vectors, and find weights, that explain several fourth cumulants at once.

    L-BFGS over the vectors, each kept at unit length, with the weights solved exactly at every step; then
    `polish`, if p k is 1000 at most. The result is a local minimum near the start. Coordinates matter,
    since the objective is not invariant: whiten first (`contrica.moments.operators.Congruence`).

    Parameters
    ----------
    tensors : sequence of TensorOperator
        κ₄ of every dataset, over the same p variables.
    start : ndarray of shape (p, k)
        Vectors to start from; their lengths do not matter.
    mask : ndarray of bool, shape (n_datasets, k)
        Which vector may have weight in which dataset.
    max_iter : int
        Most steps, and again for the last part.
    tol : float
        Largest entry of the gradient at which the search ends; the last part goes on to rounding.

    Returns
    -------
    JointFit

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import RankOneSum
    >>> u = np.array([[1.0, 0.6], [0.0, 0.8]])
    >>> T = RankOneSum(np.array([2.0, -1.0]), u)
    >>> joint_fit([T], u + 0.1, np.ones((1, 2), dtype=bool)).weights.round(4)
    array([[ 2., -1.]])
    """
    check_count("max_iter", max_iter)
    check_scale("tol", tol)
    _refuse_nothing(tensors)
    fit = converge(tensors, start, mask, max_iter, tol)
    if fit.n_iter >= max_iter and fit.gradient_norm > tol:
        warn_user(
            f"the joint fit stopped after max_iter={max_iter} steps with a gradient of "
            f"{fit.gradient_norm:.2g} where tol={tol:.2g} was asked for. Raise max_iter.",
            ConvergenceWarning,
        )
    return fit


def _refuse_nothing(tensors: Sequence[TensorOperator]) -> None:
    if min(tensor.squared_norm() for tensor in tensors) == 0:
        raise ValueError(
            "a dataset's fourth cumulant is zero, so nothing can be fitted to it. Leave the dataset out."
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


class PreferredStart(NamedTuple):
    """A start that comes from other data than the tensors, and is left only for a good reason.

    Attributes
    ----------
    start : ndarray of shape (p, k)
    gain_t_value : callable
        By how many standard errors the objective of a second fit lies below that of a first:
        `contrica.solvers.weights.gain_t_value` with its first arguments filled in.
    """

    start: np.ndarray
    gain_t_value: Callable[[JointFit, JointFit], float]


def joint_search(
    tensors: Sequence[TensorOperator],
    starts: Iterable[np.ndarray],
    mask: np.ndarray,
    *,
    preferred: PreferredStart | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> JointFit:
    """The best joint fit that several starts, new roles and swaps lead to, by the objective alone.

    The objective has poor local minima. In most of them a vector has the wrong role, or two share
    one term while another term is missing. So each fit is also tried

    - *without the mask*: all weights are freed, the vectors refined, and then assigned anew to the
      columns of the mask, such that the weights forbidden cost least; and, for the best fit,
    - *with a weak vector swapped* for one that the residual of a dataset shows, until no swap helps.

    Such tries end when they have cost as much as a fixed number of multiplications: small problems
    are searched thoroughly, and large ones, with hundreds of patterns, hardly beyond the first start.

    A start that comes from other data than these tensors may be *preferred*: the minimum it leads to
    is the answer, unless the search finds one that lies lower by more than chance gives, by two standard
    errors of the difference.

    Parameters
    ----------
    tensors : sequence of TensorOperator
    starts : iterable of ndarray of shape (p, k)
        Drawn as long as the budget lasts.
    mask : ndarray of bool, shape (n_datasets, k)
    preferred : PreferredStart, optional
        A start, see above, and what tells the difference.
    max_iter, tol
        As of `joint_fit`.

    Returns
    -------
    JointFit
    """
    _refuse_nothing(tensors)
    search = _Search(tensors, mask, max_iter, tol)
    first = None if preferred is None else search.attempt(preferred.start, mask)
    for start in starts:
        if first is not None and not search.may_go_on():
            break
        found = search.descend(start)
        if search.may_go_on():
            search.with_new_roles(found)
        if not search.may_go_on():
            break
    for _ in range(ROUNDS):
        if not search.may_go_on() or not search.with_a_swap():
            break
        search.with_new_roles(search.best)
    best, gain = search.best, float("nan")
    if preferred is not None and first is not None:
        gain = -np.inf if best is None else preferred.gain_t_value(first, best)
        best = best if gain >= MIN_GAIN else first
    # the tries do not warn; the answer does
    fit = joint_fit(tensors, best.vectors, mask, max_iter=max_iter, tol=tol)
    return fit._replace(gain=gain)


def step_price(n_features: int, n_patterns: int, n_datasets: int) -> float:
    """Multiplications of one step of a fit: every flattened tensor times every ``svec(u uᵀ)``, twice.

    Parameters
    ----------
    n_features, n_patterns, n_datasets : int

    Returns
    -------
    float
    """
    return 2.0 * n_datasets * n_packed(n_features) ** 2 * n_patterns


class _Search:
    """The best fit so far, and what was spent on it."""

    def __init__(
        self, tensors: Sequence[TensorOperator], mask: np.ndarray, max_iter: int, tol: float
    ) -> None:
        self.tensors, self.mask = tensors, mask
        self.steps, self.tol = min(TRY_STEPS, max_iter), tol
        self.spent = 0.0
        self.best: Any = None  # until the first start
        p, k = tensors[0].n_features, mask.shape[1]
        self.price = step_price(p, k, len(tensors))

    def may_go_on(self) -> bool:
        return self.spent < BUDGET

    def attempt(self, start: np.ndarray, mask: np.ndarray) -> JointFit:
        """A fit under some mask, paid for."""
        self.spent += self.price * self.steps
        return converge(self.tensors, start, mask, self.steps, self.tol)

    def descend(self, start: np.ndarray) -> JointFit:
        """A try from a start; the best is kept."""
        fit = self.attempt(start, self.mask)
        if self.best is None or fit.objective < self.best.objective:
            self.best = fit
        return fit

    def with_new_roles(self, fit: JointFit) -> None:
        free = np.ones_like(self.mask)
        loose = self.attempt(fit.vectors, free)
        losses = removal_losses(self.tensors, loose.vectors, loose.weights, free)
        # cost of putting a vector (row) into a column of the mask: the weights it would lose there
        rows, columns = linear_sum_assignment(losses.T @ ~self.mask)
        self.descend(loose.vectors[:, rows[np.argsort(columns)]])

    def with_a_swap(self) -> bool:
        """Whether some swap lowers the objective; the first that does is kept."""
        before = self.best
        for position, vector in _swaps(self.tensors, before, self.mask):
            start = before.vectors.copy()
            start[:, position] = vector
            if not self.may_go_on():
                return False
            if self.descend(start).objective < before.objective * (1 - WORTHWHILE):
                return True
        return False


def _swaps(
    tensors: Sequence[TensorOperator], fit: JointFit, mask: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """Weak vectors of each role, with what is left of a dataset in which the role has weight."""
    losses = removal_losses(tensors, fit.vectors, fit.weights, mask).sum(axis=0)
    left = [
        htd(
            tensor - RankOneSum(W, fit.vectors), min(2, n_packed(len(fit.vectors))), tie_gap=0.0
        ).vectors
        for tensor, W in zip(tensors, fit.weights, strict=True)
    ]
    for role in np.unique(mask, axis=1).T:
        members = np.flatnonzero((mask == role[:, None]).all(axis=0))
        weak = members[np.argsort(losses[members], kind="stable")[:2]]
        # the dataset that fewest roles have a part in tells most about this one
        dataset = min(np.flatnonzero(role), key=lambda d: mask[d].sum())
        for position in weak:
            for vector in left[dataset].T:
                yield int(position), vector


def joint_contrast(
    fore: Cumulants,
    back: Cumulants | Sequence[Cumulants],
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    guess: np.ndarray | None = None,
    gain_t_value: Callable[[JointFit, JointFit], float] | None = None,
    known: np.ndarray | None = None,
    problem: JointProblem | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> Contrast:
    """Contrastive ICA with all patterns fitted together, started from Algorithm 2.

    Coordinates are whitened (`JointProblem`). The starts are those of Algorithm 2 there, for three
    estimators of its Step 2; `joint_search` does the rest. The patterns of the foreground change those of
    the background as well, which Algorithm 2 finds from the background alone. With several
    backgrounds each has weights of its own for the patterns they share.

    Parameters
    ----------
    fore : Cumulants
    back : Cumulants or sequence of Cumulants
        Of the background, or of several.
    n_background, n_foreground : int
        r and ℓ.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.
    guess : ndarray of shape (p, m), optional
        Foreground patterns found by other means, such as `contrica.solvers.subspace_ica`: a start.
    gain_t_value : callable, optional
        As of `PreferredStart`; with it the guess is a preferred start (`joint_search`).
    known : ndarray of shape (k, m), optional
        Patterns of both datasets in whitened coordinates, the background's r first: a further start,
        which spares the subspace power method.
    problem : JointProblem, optional
        The same data in whitened coordinates, where that is at hand.
    max_iter, tol
        As of `joint_fit`.

    Returns
    -------
    Contrast
        The background's weights are those in the first background.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import cumulants
    >>> from contrica.datasets import make_synthetic
    >>> from contrica.metrics import pattern_similarity
    >>> data = make_synthetic(5, random_state=0)
    >>> fore, back = cumulants(data.foreground), cumulants(data.background)
    >>> found = joint_contrast(fore, back, 5, 4, rng=np.random.default_rng(0))
    >>> pattern_similarity(found.foreground.vectors, data.B) > 0.999
    True
    """
    check_ranks(n_background, n_foreground, fore.n_features)
    backs = (back,) if isinstance(back, Cumulants) else tuple(back)
    problem = JointProblem.of(fore, *backs) if problem is None else problem
    dewhiten, held = problem.dewhiten, problem.whiten.shape[1]
    if n_background + n_foreground > n_packed(held):
        raise ValueError(
            f"n_background={n_background} and n_foreground={n_foreground} patterns are too many: the "
            f"data vary in {held} of {fore.n_features} directions only, which leaves room for "
            f"{n_packed(held)}. Lower one of the two."
        )
    x = problem.tensors[0]
    if known is None:
        shared = spm(problem.background, n_background, rng=rng).vectors
    else:
        shared = known[:, :n_background]
    r = shared.shape[1]  # a tensor of lower rank has fewer
    starts: Iterable[np.ndarray] = _starts(x, shared, n_foreground)
    if known is not None:
        starts = chain([_filled(problem, known, r, r + n_foreground)], starts)
    preferred = None
    if guess is not None:
        inside = problem.whiten.T @ guess[:, :n_foreground]
        start = _filled(problem, np.column_stack([shared, inside]), r, r + n_foreground)
        if gain_t_value is None:
            starts = chain([start], starts)
        else:
            preferred = PreferredStart(start, gain_t_value)
    mask = contrast_mask(r, n_foreground, len(backs))
    with few_threads(held):
        fit = joint_search(
            problem.tensors, starts, mask, preferred=preferred, max_iter=max_iter, tol=tol
        )
    vectors = dewhiten @ fit.vectors
    lengths = np.linalg.norm(vectors, axis=0)
    vectors, weights = fix_signs(vectors / lengths), fit.weights * lengths**4
    first = np.argsort(-np.abs(weights[1, :r]), kind="stable")
    last = r + np.argsort(-np.abs(weights[0, r:]), kind="stable")
    background = Decomposition(weights[1, first], vectors[:, first], fit.n_iter)
    foreground = Decomposition(weights[0, last], vectors[:, last], fit.n_iter)
    ratio = contrast_ratio(foreground.vectors, fore, pooled(backs))
    residual = relative_norm(fore.fourth - RankOneSum(weights[0], vectors), fore.fourth)
    return Contrast(background, weights[0, first], foreground, ratio, residual, fit.gain)


def _in_coordinates(tensor: TensorOperator, axes: np.ndarray) -> TensorOperator:
    seen = Congruence(tensor, axes)
    # written out once where the tensor is; contracted on demand where it is too large for that
    return PackedTensor(seen.flatten(), axes.shape[1]) if isinstance(tensor, PackedTensor) else seen


def algorithm_2_starts(
    problem: JointProblem, n_background: int, n_foreground: int, *, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """All patterns that Algorithm 2 finds in whitened coordinates, for three estimators of Step 2.

    Parameters
    ----------
    problem : JointProblem
    n_background, n_foreground : int
        r and ℓ.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.

    Yields
    ------
    ndarray of shape (k, r + l)
        The background's patterns first.
    """
    shared = spm(problem.background, n_background, rng=rng).vectors
    yield from _starts(problem.tensors[0], shared, n_foreground)


def _starts(
    fore: TensorOperator, background: np.ndarray, n_foreground: int
) -> Iterator[np.ndarray]:
    """Algorithm 2 in these coordinates, by estimators of Step 2 that fail on different data."""
    rank = background.shape[1] + n_foreground
    for deflation in ("least_squares", "thin", "sequential"):
        shared = DEFLATIONS[deflation](fore, background, rank)
        rest = fore - RankOneSum(shared, background)
        yield np.column_stack([background, htd(rest, n_foreground, tie_gap=0.0).vectors])


def _filled(problem: JointProblem, vectors: np.ndarray, r: int, count: int) -> np.ndarray:
    """Unit vectors, the first r of the background; what the foreground has left makes up the number."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    missing = count - vectors.shape[1]
    if missing <= 0:
        return vectors[:, :count]
    x = problem.tensors[0]
    weights = fit_weights([x], vectors, np.ones((1, vectors.shape[1]), dtype=bool))
    rest = x - RankOneSum(weights[0], vectors)
    return np.column_stack([vectors, htd(rest, missing, tie_gap=0.0).vectors])
