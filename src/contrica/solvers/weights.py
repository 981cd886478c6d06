"""Which weights of a joint fit are significant: t-values that outlying rows do not decide.

A fit solves ``Jᵀ(κ − model) = 0``, J being the derivative of the model in vectors and weights, so a
change of the data moves it by ``(JᵀJ)⁻¹Jᵀ ψ``, where ψ is what rows add to the cumulants beyond
their share: their influence. Rows are divided into groups, each group's influence on every weight is
computed, and the weight is compared with the spread of these: a group jackknife to first order, in one
pass over the rows, without refitting. One outlying row of a heavy-tailed source dominates a fourth
cumulant but spoils one group only, so means and spreads are trimmed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import t as student

from contrica.moments.grouped import GroupMoments
from contrica.moments.operators import Congruence, PackedTensor
from contrica.moments.packed import PointMoments
from contrica.moments.projection import centred
from contrica.moments.symmetric import n_packed
from contrica.rows.device import TensorRows, as_doubles, like, namespace, to_numpy
from contrica.rows.groups import Groups
from contrica.rows.moving import has_room_on_card, there
from contrica.rows.protocol import block_rows, iterate_blocks
from contrica.solvers.joint.objective import JointFit
from contrica.solvers.joint.terms import Tensor, Term, Terms

__all__ = [
    "RowGroups",
    "WeightEstimates",
    "critical_t_value",
    "gain_t_value",
    "n_groups_of",
    "smaller_by_groups",
    "weight_t_values",
]

GROUPS = 40
# share of groups trimmed at either end
TRIM = 0.2
# Objectives, at most the number of datasets, that differ by less are those of one minimum.
SAME_OBJECTIVE = 1e-12
# keeps vectors that meet from making the normal equations singular; relative to their diagonal
RIDGE = 1e-9


class RowGroups:
    """Rows of one dataset about their mean, in given coordinates, assigned to groups in turn.

    Assigning in turn needs no random numbers, and spreads rows that are sorted by some label evenly. Rows
    that depend on one another, such as replicates, would make the groups more alike than they should be,
    and t-values too large: where it is known which rows belong together, they stay together, and each
    group counts by its rows.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
    axes : ndarray of shape (p, k), optional
        Coordinates are ``rows · axes``.
    n_rows : int, optional
        How many rows there are, if these are a sample of them; what more rows than these say differs
        less.
    labels : Groups, optional
        Which rows belong together. Their groups are assigned in turn, if there are more than 40 of them.
    """

    def __init__(
        self,
        rows: np.ndarray,
        axes: np.ndarray | None = None,
        n_rows: int | None = None,
        labels: Groups | None = None,
    ) -> None:
        if labels is not None:
            index = _together_by(labels)
            self._set_rows(rows, index, axes, None)  # more rows of the same groups say no more
            sizes = np.array([part.size for part in index])
            self._counts = sizes * sizes.size / sizes.sum()
            return
        count, n = n_groups_of(len(rows)), len(rows)
        if smaller_by_groups(n, rows.shape[1]):
            sums = GroupMoments(rows.shape[1], count)
            whole = TensorRows(there(rows), as_doubles) if has_room_on_card(rows.size) else rows
            for block in iterate_blocks(whole, block_rows(rows.shape[1], whole)):
                sums.update(block)
            inside = np.eye(rows.shape[1]) if axes is None else axes
            self._set_moments(sums.about(sums.total().mean()), inside, n_rows)
            return
        self._set_rows(rows, [slice(i, None, count) for i in range(count)], axes, n_rows)

    def _set_rows(
        self, rows: np.ndarray, index: Sequence[Any], axes: np.ndarray | None, n_rows: int | None
    ) -> None:
        moved = centred(rows)
        inside = moved if axes is None else moved @ axes
        groups = [np.ascontiguousarray(inside[part]) for part in index]
        self._set_sizes(np.array([len(part) for part in groups]), n_rows)
        self._means = np.array([part.mean(axis=0) for part in groups])
        self._covariances = np.array([part.T @ part / len(part) for part in groups])
        by_card = has_room_on_card(inside.size)
        self._moments = _moments_of_rows([there(part) for part in groups] if by_card else groups)

    @classmethod
    def of(cls, groups: Sequence[PointMoments], axes: np.ndarray) -> RowGroups:
        """Groups of rows of which the moments are known, and the rows need not be.

        Parameters
        ----------
        groups : sequence of PointMoments
            About the mean of all rows.
        axes : ndarray of shape (p, k)

        Returns
        -------
        RowGroups
        """
        made = cls.__new__(cls)
        made._set_moments(groups, axes, None)
        return made

    def _set_moments(
        self, groups: Sequence[PointMoments], axes: np.ndarray, n_rows: int | None
    ) -> None:
        sizes, first, second, third, fourth = zip(*groups, strict=True)
        self._set_sizes(np.array(sizes), n_rows)
        self._means = np.array(first) @ axes
        self._covariances = axes.T @ np.array(second) @ axes
        k = axes.shape[1]
        self._moments = {
            3: _together(tensor.projected(axes) for tensor in third),
            4: _together(PackedTensor(Congruence(part, axes).flatten(), k) for part in fourth),
        }

    def _set_sizes(self, sizes: np.ndarray, n_rows: int | None) -> None:
        self.n_groups, n = sizes.size, int(sizes.sum())
        self._shares = sizes / n
        self._steadier = (n / (n_rows or n)) ** 0.5
        # rows of each group over those of an average one; about 1 where rows were assigned in turn
        self._counts = np.ones(self.n_groups)

    def influence(self, vectors: np.ndarray, order: int = 4) -> np.ndarray:
        """What each group says of a cumulant contracted with vectors u, less what all rows say.

        ``E_b[(x·u)³ x] − 3 (uᵀΣu) Σ_b u − 3 (uᵀΣ_b u) Σu + 3 (uᵀΣu) Σu`` over the rows of group b is
        linear in the group and, where Σ is the mean of the Σ_b, has the fourth cumulant as its mean; the
        mean of all rows stays fixed. ``E_b[(x·u)² x] − (uᵀΣu) μ_b − 2 (u·μ_b) Σu`` has the third, where
        the mean follows. Σ is the mean of those with neither the largest nor the smallest traces here, so
        that an outlying row in one group leaves the others alone.

        Parameters
        ----------
        vectors : ndarray of shape (p, k)
        order : {3, 4}

        Returns
        -------
        ndarray of shape (n_groups, p, k)
        """
        moments = self._moments[order](vectors)
        by_size = np.argsort(np.trace(self._covariances, axis1=1, axis2=2), kind="stable")
        cut = int(TRIM * self.n_groups)
        kept = by_size[cut : self.n_groups - cut]
        steady = np.average(self._covariances[kept], axis=0, weights=self._counts[kept]) @ vectors
        energy = np.einsum("ik,ik->k", vectors, steady)
        cumulant = np.einsum("b,bik->ik", self._shares, moments)
        if order == 3:
            said = moments - energy * self._means[:, :, None]
            said -= 2 * (self._means @ vectors)[:, None, :] * steady
            return (said - cumulant) * (self._steadier * self._counts)[:, None, None]
        own = self._covariances @ vectors
        said = moments - 3 * energy * own + 3 * energy * steady
        said -= 3 * np.einsum("ik,bik->bk", vectors, own)[:, None, :] * steady
        whole = np.einsum("b,bik->ik", self._shares, own)
        cumulant -= 3 * np.einsum("ik,ik->k", vectors, whole) * whole
        return (said - cumulant) * (self._steadier * self._counts)[:, None, None]


def _together_by(labels: Groups) -> list[np.ndarray]:
    """Numbers of the rows of each group; whole groups are put together where there are many."""
    present, codes = np.unique(labels.codes, return_inverse=True)
    count = min(GROUPS, present.size)
    return [np.flatnonzero(codes % count == i) for i in range(count)]


_Moments = dict[int, Callable[[np.ndarray], np.ndarray]]


def _moments_of_rows(groups: Sequence[Any]) -> _Moments:
    """``E_b[(x·u)^{k−1} x]`` of every group and order k, from the rows, where they are."""
    stack = namespace(groups[0]).stack

    def moments(power: int) -> Callable[[np.ndarray], np.ndarray]:
        def of(vectors: np.ndarray) -> np.ndarray:
            u = like(groups[0], vectors)
            return to_numpy(stack([part.T @ (part @ u) ** power / len(part) for part in groups]))

        return of

    return {order: moments(order - 1) for order in (3, 4)}


def _together(tensors: Iterable[Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    return Terms(Term(tensor, 1.0, 0) for tensor in tensors).images


def n_groups_of(n_rows: int) -> int:
    """Into how many groups so many rows are divided.

    Parameters
    ----------
    n_rows : int

    Returns
    -------
    int
    """
    return max(min(GROUPS, n_rows // 2), 2)


def smaller_by_groups(n_rows: int, n_features: int) -> bool:
    """Whether the fourth moments of all groups take less room than the rows.

    Parameters
    ----------
    n_rows, n_features : int

    Returns
    -------
    bool
    """
    return 2 * n_rows * n_features > n_groups_of(n_rows) * n_packed(n_features) ** 2


def gain_t_value(
    groups: Sequence[RowGroups], terms: Terms, first: JointFit, second: JointFit
) -> float:
    """By how many standard errors the objective of a second fit lies below that of a first.

    At a minimum of ``Σ_t ‖κ_t − M_t‖² / D_t`` a change ψ of the data changes the objective by
    ``2 Σ_t ⟨κ_t − M_t, ψ_t⟩ / D_t``, as vectors and weights need not follow to first order. So the
    difference of two minima changes by ``2 Σ_t ⟨M′_t − M_t, ψ_t⟩ / D_t``, M′ being the second
    model, and its standard error comes from what each group of rows adds. The denominators stay fixed,
    and nothing is trimmed: a wild row makes the error larger, and the t-value more careful.

    Parameters
    ----------
    groups : sequence of RowGroups
        One for every dataset, in the fits' coordinates.
    terms : Terms
        What the fits were fitted to.
    first, second : JointFit

    Returns
    -------
    float
        0 where the two are the same.
    """
    variance = 0.0
    for d, part in enumerate(groups):  # rows of different datasets are independent
        change = np.zeros(part.n_groups)
        for t in np.flatnonzero(terms.datasets == d):
            for sign, fit in ((-2.0, first), (2.0, second)):
                said = part.influence(fit.vectors, int(terms.orders[t]))
                along = np.einsum("bpk,pk,k->b", said, fit.vectors, fit.weights[t])
                change += sign * along / terms.denominators[t]
        variance += float(np.var(change, ddof=1)) / part.n_groups
    gain = first.objective - second.objective
    if abs(gain) <= SAME_OBJECTIVE:
        return 0.0
    return gain / variance**0.5 if variance > 0 else 0.0


def critical_t_value(n_weights: int, n_groups: int, level: float) -> float:
    """t-value that the largest of several weights that are zero exceeds with probability ``level``.

    Student's t with as many degrees of freedom as groups are left after trimming, less one, at the
    level over the number of weights (Bonferroni).

    Parameters
    ----------
    n_weights, n_groups : int
    level : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(critical_t_value(30, 40, 0.01), 2)
    4.21
    """
    freedom = max(n_groups - 2 * int(TRIM * n_groups) - 1, 1)
    return float(student.ppf(1 - level / n_weights / 2, freedom))


class WeightEstimates(NamedTuple):
    """Weights of a joint fit and their standard errors.

    Attributes
    ----------
    weights : ndarray of shape (n_terms, k)
        Not those of the fit, but with the influence of outlying groups trimmed.
    errors : ndarray of shape (n_terms, k)
        Their standard errors.
    """

    weights: np.ndarray
    errors: np.ndarray

    @property
    def t_values(self) -> np.ndarray:
        """Every weight over its standard error."""
        return self.weights / self.errors


def weight_t_values(
    datasets: Sequence[RowGroups], terms: Terms, vectors: np.ndarray, weights: np.ndarray
) -> WeightEstimates:
    """Every weight, all of them free, and its standard error.

    Parameters
    ----------
    datasets : sequence of RowGroups
        In the coordinates of the fit.
    terms : Terms
        What the fit was fitted to.
    vectors : ndarray of shape (p, k)
        Of a fit near a minimum, unit columns.
    weights : ndarray of shape (n_terms, k)
        Its weights.

    Returns
    -------
    WeightEstimates
        Where a weight is zero, its t-value is about Student's t with the degrees of freedom of
        `critical_t_value`.
    """
    p, k = vectors.shape
    normal = _normal_equations(terms.orders, terms.denominators, vectors, weights)
    scale = np.sqrt(np.maximum(np.diag(normal), np.finfo(float).tiny))
    normal /= scale[:, None]
    normal /= scale
    np.einsum("ii->i", normal)[...] += RIDGE
    # transposed, since LAPACK counts by columns: the same matrix, and it need not be copied
    factor = cho_factor(normal.T, overwrite_a=True)
    estimate, variance = weights.ravel().copy(), np.zeros(weights.size)
    for d, rows in enumerate(datasets):
        right = np.zeros((len(normal), rows.n_groups))
        for t in np.flatnonzero(terms.datasets == d):
            order, share = int(terms.orders[t]), 1 / terms.denominators[t]
            images = rows.influence(vectors, order)
            along = np.einsum("ik,bik->bk", vectors, images)
            across = order * share * weights[t] * (images - vectors * along[:, None, :])
            right[: p * k] += across.transpose(2, 1, 0).reshape(p * k, -1)
            right[p * k + t * k :][:k] = along.T * share
        moved = cho_solve(factor, right / scale[:, None])[p * k :] / scale[p * k :, None]
        centre, error = _trimmed(moved)
        estimate += centre
        variance += error
    errors = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return WeightEstimates(estimate.reshape(weights.shape), errors.reshape(weights.shape))


def _normal_equations(
    orders: np.ndarray, denominators: np.ndarray, vectors: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """``JᵀJ`` in the vectors, one after the other, and then in the weights of each term.

    A vector moves across itself only: along itself the matrix gets an identity.
    """
    p, k = vectors.shape
    cosines = vectors.T @ vectors
    # u_i across u_j, as [i, j, :]
    across = vectors.T[:, None, :] - cosines[:, :, None] * vectors.T[None, :, :]
    plain, mixed = np.zeros((2, k, k))
    for order, share, W in zip(orders, 1 / denominators, weights, strict=True):
        scaled = order * share * np.outer(W, W)
        plain += scaled * cosines ** (order - 1)
        mixed += scaled * (order - 1) * cosines ** (order - 2)
    size = p * k
    normal = np.zeros((size + weights.size,) * 2)
    sides = np.eye(p) - vectors.T[:, :, None] * vectors.T[:, None, :]
    beside_each_other = sides.transpose(1, 0, 2).reshape(p, size)
    for i, u in enumerate(vectors.T):  # the rows of u_i, as [:, j, :]
        rows = normal[i * p : (i + 1) * p]
        found = (sides[i] @ beside_each_other).reshape(p, k, p) * plain[i, :, None]
        found += (mixed[i, :, None] * across[:, i]).T[:, :, None] * across[i]
        rows[:, :size] = found.reshape(p, size)
        rows[:, i * p : (i + 1) * p] += np.outer(u, u)
    beside = across.transpose(1, 2, 0)  # the derivative in u_j, times the term of u_i: as [j, :, i]
    for t, (order, share, W) in enumerate(zip(orders, 1 / denominators, weights, strict=True)):
        part = slice(size + t * k, size + (t + 1) * k)
        powers = order * share * W[:, None] * cosines ** (order - 1)
        block = (powers[:, None, :] * beside).reshape(size, k)
        normal[:size, part], normal[part, :size] = block, block.T
        normal[part, part] = cosines**order * share
    return normal


def _trimmed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Trimmed mean of each row, and the square of its standard error (Yuen)."""
    ordered = np.sort(values, axis=1)
    count = ordered.shape[1]
    cut = int(TRIM * count)
    kept = ordered[:, cut : count - cut]
    winsorized = np.clip(ordered, kept[:, :1], kept[:, -1:])
    left = kept.shape[1]
    return kept.mean(axis=1), winsorized.var(axis=1, ddof=1) * (count - 1) / (left * (left - 1))
