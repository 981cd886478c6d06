"""The best of many minima of the joint objective: several starts, new roles and swaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from contrica.decompositions import htd
from contrica.moments.operators import RankOneSum, TensorOperator
from contrica.moments.symmetric import n_packed
from contrica.solvers.joint.descent import converge, joint_fit
from contrica.solvers.joint.objective import JointFit, removal_losses
from contrica.solvers.joint.terms import Terms, as_terms

__all__ = ["PreferredStart", "affords_tries", "joint_search", "min_gain", "step_price"]

# A search goes on while it lowers the objective by more than this share.
WORTHWHILE = 1e-3
# Steps of a try by L-BFGS, and rounds of swaps.
TRY_STEPS = 100
ROUNDS = 6
# Multiplications that tries beyond the first may cost in all: seconds of one core. Every try counts as
# TRY_STEPS steps, since the steps that it really takes depend on rounding.
BUDGET = 5e9
# Standard errors by which a search must do better than the preferred start: with third cumulants in it
# the objective is the better judge (2 there lowers a median |cos| of .94 from 1000 rows to .91), without
# them it is not (.5 there lowers .98 of uniform sources from 10 000 rows to .93).
MIN_GAIN, MIN_GAIN_UNSKEWED = 0.5, 2.0
# Objectives that differ by less are those of one minimum, as in `contrica.solvers.weights`.
SAME_MINIMUM = 1e-12


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
    tensors: Terms | Sequence[TensorOperator],
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
    is the answer, unless the search finds one that lies lower by some standard errors of the difference
    (`min_gain`).

    Parameters
    ----------
    tensors : Terms or sequence of TensorOperator
        As of `joint_fit`.
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
    terms = as_terms(tensors)
    terms.check_nonzero()
    search = _Search(terms, mask, max_iter, tol)
    first = None if preferred is None else search.attempt(preferred.start, mask)
    drawn = iter(starts)  # no start is worked out that cannot be afforded
    while (first is None and search.best is None) or search.may_go_on():
        start = next(drawn, None)
        if start is None:
            break
        found = search.descend(start)
        if search.may_go_on():
            search.with_new_roles(found)
    for _ in range(ROUNDS):
        if not search.may_go_on() or not search.with_a_swap():
            break
        search.with_new_roles(search.best)
    best, gain = search.best, float("nan")
    if preferred is not None and first is not None:
        gain = -np.inf if best is None else preferred.gain_t_value(first, best)
        best = best if gain >= min_gain(terms) else first
    # the tries do not warn; the answer does
    fit = joint_fit(terms, best.vectors, mask, max_iter=max_iter, tol=tol)
    return fit._replace(gain=gain, n_iter=best.n_iter + fit.n_iter)


def min_gain(terms: Terms) -> float:
    """Standard errors by which another minimum must lie below that of the preferred start.

    Parameters
    ----------
    terms : Terms
        What is fitted.

    Returns
    -------
    float
    """
    return MIN_GAIN if 3 in terms.orders else MIN_GAIN_UNSKEWED


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


def affords_tries(terms: Terms, mask: np.ndarray) -> bool:
    """Whether a fit of these patterns leaves something of the budget for tries beyond the first.

    Parameters
    ----------
    terms : Terms
    mask : ndarray of bool, shape (n_datasets, k)

    Returns
    -------
    bool
    """
    price = step_price(terms.n_features, mask.shape[1], terms.n_datasets)
    return TRY_STEPS * price < BUDGET


class _Search:
    """The best fit so far, and what was spent on it."""

    def __init__(self, terms: Terms, mask: np.ndarray, max_iter: int, tol: float) -> None:
        self.terms, self.mask = terms, mask
        self.steps, self.tol = min(TRY_STEPS, max_iter), tol
        self.spent = 0.0
        self.best: Any = None  # until the first start
        self.reassigned: list[float] = []  # objectives of fits whose roles were tried anew
        self.price = step_price(terms.n_features, mask.shape[1], terms.n_datasets)

    def may_go_on(self) -> bool:
        return self.spent < BUDGET

    def attempt(self, start: np.ndarray, mask: np.ndarray) -> JointFit:
        """A fit under some mask, paid for."""
        self.spent += self.price * self.steps
        return converge(self.terms, start, mask, self.steps, self.tol)

    def descend(self, start: np.ndarray) -> JointFit:
        """A try from a start; the best is kept."""
        fit = self.attempt(start, self.mask)
        if self.best is None or fit.objective < self.best.objective:
            self.best = fit
        return fit

    def with_new_roles(self, fit: JointFit) -> None:
        if any(abs(fit.objective - known) <= SAME_MINIMUM for known in self.reassigned):
            # paid for all the same: whether a minimum is known may depend on rounding
            self.spent += 2 * self.price * self.steps
            return
        self.reassigned.append(fit.objective)
        free = np.ones_like(self.mask)
        loose = self.attempt(fit.vectors, free)
        losses = removal_losses(self.terms, loose.vectors, loose.weights, free)
        # cost of putting a vector (row) into a column of the mask: the weights it would lose there
        rows, columns = linear_sum_assignment(losses.T @ ~self.mask)
        self.descend(loose.vectors[:, rows[np.argsort(columns)]])

    def with_a_swap(self) -> bool:
        """Whether some swap lowers the objective; the first that does is kept."""
        before = self.best
        for position, vector in _swaps(self.terms, before, self.mask):
            start = before.vectors.copy()
            start[:, position] = vector
            if not self.may_go_on():
                return False
            if self.descend(start).objective < before.objective * (1 - WORTHWHILE):
                return True
        return False


def _swaps(terms: Terms, fit: JointFit, mask: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Weak vectors of each role, with what is left of a dataset in which the role has weight."""
    losses = removal_losses(terms, fit.vectors, fit.weights, mask).sum(axis=0)
    left = {
        term.dataset: htd(
            term.tensor - RankOneSum(W, fit.vectors),
            min(2, n_packed(len(fit.vectors))),
            tie_gap=0.0,
        ).vectors
        for term, W in zip(terms, fit.weights, strict=True)
        if isinstance(term.tensor, TensorOperator)
    }
    for role in np.unique(mask, axis=1).T:
        members = np.flatnonzero((mask == role[:, None]).all(axis=0))
        weak = members[np.argsort(losses[members], kind="stable")[:2]]
        # the dataset that fewest roles have a part in tells most about this one
        dataset = min(np.flatnonzero(role).tolist(), key=lambda d: mask[d].sum())
        for position in weak:
            for vector in left[dataset].T:
                yield int(position), vector
