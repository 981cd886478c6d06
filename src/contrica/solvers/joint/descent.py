"""From a start to a minimum of the joint objective: L-BFGS, then Newton's method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from contrica.errors import ConvergenceWarning, warn
from contrica.moments.operators import TensorOperator
from contrica.solvers.joint.objective import (
    JointFit,
    _tangent,
    objective_and_gradient,
    reduced_hessian,
)
from contrica.solvers.joint.terms import Terms, as_terms
from contrica.validation import check_count, check_scale

__all__ = ["converge", "descend", "joint_fit", "polish"]

# Entries of all vectors together up to which a fit is ended by Newton's method, an equation for each;
# and the gradient, about rounding, at which it ends.
NEWTON_SIZE, NEWTON_TOL = 1000, 1e-12
# Gradient at which Newton's method takes over from L-BFGS; its steps at most (or max_iter, if more).
HANDOVER, NEWTON_STEPS = 1e-4, 300


def descend(
    terms: Terms,
    start: np.ndarray,
    mask: np.ndarray,
    max_iter: int,
    tol: float,
) -> JointFit:
    """As `joint_fit` before Newton's method takes over."""
    p, k = start.shape

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loose = flat.reshape(p, k)
        lengths = np.linalg.norm(loose, axis=0)
        vectors = loose / lengths
        value, gradient, _ = objective_and_gradient(terms, vectors, mask)
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
    value, _, weights = objective_and_gradient(terms, vectors, mask)
    reached = float(np.abs(found.jac).max())
    return JointFit(vectors, weights, value, int(found.nit), reached, int(found.nfev))


def converge(
    terms: Terms,
    start: np.ndarray,
    mask: np.ndarray,
    max_iter: int,
    tol: float,
) -> JointFit:
    """As `joint_fit`, from checked input, and says nothing of convergence."""
    if start.size > NEWTON_SIZE:
        return descend(terms, start, mask, max_iter, tol)
    fit = descend(terms, start, mask, max_iter, max(tol, HANDOVER))
    return polish(terms, fit, mask, max_iter=max(max_iter, NEWTON_STEPS))


def polish(
    terms: Terms,
    fit: JointFit,
    mask: np.ndarray,
    *,
    max_iter: int = NEWTON_STEPS,
    tol: float = NEWTON_TOL,
) -> JointFit:
    """A fit taken to its minimum by Newton's method, damped where the objective would not fall.

    Parameters
    ----------
    terms : Terms
    fit : JointFit
        Where to start.
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)
    max_iter : int
        Most steps.
    tol : float
        Largest entry of the gradient at which it ends; it also ends where no step helps.

    Returns
    -------
    JointFit
    """

    def evaluate(vectors: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, weights = objective_and_gradient(terms, vectors, mask)
        return value, _tangent(vectors, gradient), weights

    vectors, shape = fit.vectors, fit.vectors.T.shape
    value, gradient, weights = evaluate(vectors)
    damping, steps, spent = 0.0, 0, 1
    while steps < max_iter and np.abs(gradient).max() > tol:
        hessian = reduced_hessian(terms, vectors, weights, mask)
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


def joint_fit(
    tensors: Terms | Sequence[TensorOperator],
    start: np.ndarray,
    mask: np.ndarray,
    *,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> JointFit:
    """Refine vectors, and find weights, that explain several cumulants at once.

    L-BFGS over the vectors, each kept at unit length, with the weights solved exactly at every step; then
    `polish`, if p k is 1000 at most. The result is a local minimum near the start. Coordinates matter,
    since the objective is not invariant: whiten first (`contrica.moments.operators.Congruence`).

    Parameters
    ----------
    tensors : Terms or sequence of TensorOperator
        Cumulants over the same p variables; or κ₄ of every dataset, each over its own squared norm.
    start : ndarray of shape (p, k)
        Vectors to start from; their lengths do not matter.
    mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)
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
    terms = as_terms(tensors)
    terms.check_nonzero()
    fit = converge(terms, start, mask, max_iter, tol)
    if fit.n_iter >= max_iter and fit.gradient_norm > tol:
        warn(
            ConvergenceWarning(
                "not-converged",
                f"the joint fit stopped after `max_iter={max_iter}` steps with a gradient of "
                f"{fit.gradient_norm:.2g} where tol={tol:.2g} was asked for",
                remedy="Raise `max_iter`.",
                parameter="max_iter",
            )
        )
    return fit
