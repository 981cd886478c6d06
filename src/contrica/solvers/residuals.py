"""What patterns leave of cumulants, and where it shows more than the sampling error explains.

The largest part of what is left of a cumulant lies where its noise is largest, along its strongest
sources. So directions are compared by their t-values and not by their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contrica.decompositions import htd, third_power_method
from contrica.moments.operators import RankOneSum, TensorOperator
from contrica.moments.symmetric import n_packed
from contrica.moments.third import ThirdTensor
from contrica.solvers.joint import JointFit, Terms
from contrica.solvers.weights import RowGroups

__all__ = ["Shown", "strongest_left", "what_is_left"]

# Directions that are compared, of what is left of each fourth cumulant, and of each third one.
N_OF_FOURTH, N_OF_THIRD = 8, 2


class Shown(NamedTuple):
    """A direction in which patterns leave something of a cumulant.

    Attributes
    ----------
    vector : ndarray of shape (p,)
    t_value : float
        What is left along it over its standard error.
    third_t_value : float
        The largest t-value of what is left of a third cumulant along it; infinite where there is none.
    """

    vector: np.ndarray
    t_value: float
    third_t_value: float


def what_is_left(terms: Terms, fit: JointFit) -> list[TensorOperator]:
    """What the patterns of a fit leave of every fourth cumulant.

    Parameters
    ----------
    terms : Terms
    fit : JointFit

    Returns
    -------
    list of TensorOperator
    """
    return [
        term.tensor - RankOneSum(weights, fit.vectors)
        for term, weights in zip(terms, fit.weights, strict=True)
        if isinstance(term.tensor, TensorOperator)
    ]


def strongest_left(
    terms: Terms, groups: Sequence[RowGroups], fit: JointFit, *, rng: np.random.Generator
) -> list[Shown]:
    """Of every dataset the direction with the largest t-value of what is left of a cumulant.

    Directions that are compared are the leading ones of the hierarchical decomposition of what is left
    of a fourth cumulant, and of the power method of a third one that is written out.

    Parameters
    ----------
    terms : Terms
    groups : sequence of RowGroups
        One for every dataset, in the fit's coordinates.
    fit : JointFit
    rng : numpy.random.Generator
        Source of the power method's starts.

    Returns
    -------
    list of Shown
        One for every dataset, the largest t-value first.
    """
    p = terms.n_features
    found = [
        (htd(rest, min(N_OF_FOURTH, n_packed(p)), tie_gap=0.0).vectors, t)
        for rest, t in zip(what_is_left(terms, fit), terms.members[4].tolist(), strict=True)
    ]
    for t in terms.members.get(3, np.empty(0, dtype=int)).tolist():
        third = terms.tensors[t]
        if isinstance(third, ThirdTensor):
            rest = third - ThirdTensor.of_terms(fit.weights[t], fit.vectors)
            found.append((third_power_method(rest, N_OF_THIRD, rng=rng), t))
    vectors = np.hstack([part for part, _ in found])
    owner = np.repeat([t for _, t in found], [part.shape[1] for part, _ in found])
    t_values = _t_values(terms, groups, fit, vectors)
    own = t_values[owner, np.arange(owner.size)]
    thirds = t_values[terms.orders == 3].max(axis=0, initial=0.0 if 3 in terms.orders else np.inf)
    shown = []
    for d in range(terms.n_datasets):
        best = max(np.flatnonzero(terms.datasets[owner] == d), key=own.__getitem__)
        shown.append(Shown(vectors[:, best], float(own[best]), float(thirds[best])))
    return sorted(shown, key=lambda one: -one.t_value)


def _t_values(
    terms: Terms, groups: Sequence[RowGroups], fit: JointFit, vectors: np.ndarray
) -> np.ndarray:
    """``|κ(v, …, v) − Σ_j W_j (u_j · v)^k|`` of every term and vector, over its standard error.

    Nothing is trimmed: a wild row makes the error larger, and a direction of its own less significant.
    """
    cosines = fit.vectors.T @ vectors
    found = np.empty((len(terms), vectors.shape[1]))
    for t, (term, weights) in enumerate(zip(terms, fit.weights, strict=True)):
        order = int(terms.orders[t])
        left = term.tensor.coefficients(vectors) - weights @ cosines**order
        rows = groups[term.dataset]
        said = np.einsum("ik,bik->bk", vectors, rows.influence(vectors, order))
        error = np.sqrt(np.var(said, axis=0, ddof=1) / rows.n_groups)
        found[t] = np.abs(left) / np.maximum(error, np.finfo(float).tiny)
    return found
