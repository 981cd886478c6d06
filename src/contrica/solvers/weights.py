"""Which weights of a joint fit are significant: t-values that outlying rows do not decide.

A fit solves ``Jᵀ(κ₄ − model) = 0``, J being the derivative of the model in vectors and weights, so a
change of the data moves it by ``(JᵀJ)⁻¹Jᵀ ψ``, where ψ is what rows add to the fourth cumulant beyond
their share: their influence. Rows are divided into groups, each group's influence on every weight is
computed, and the weight is compared with the spread of these: a group jackknife to first order, in one
pass over the rows, without refitting. One outlying row of a heavy-tailed source dominates a fourth
cumulant but spoils one group only, so means and spreads are trimmed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import t as student

from contrica.moments.grouped import GroupMoments, MomentsOfGroup
from contrica.moments.operators import PackedTensor
from contrica.moments.symmetric import n_packed
from contrica.rows.protocol import block_rows, iterate_blocks
from contrica.solvers.joint.objective import JointFit

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
    that depend on one another, such as replicates, make the groups more alike than they should be, and
    t-values too large.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
    axes : ndarray of shape (p, k), optional
        Coordinates are ``rows · axes``.
    n_rows : int, optional
        How many rows there are, if these are a sample of them; what more rows than these say differs
        less.
    """

    def __init__(
        self,
        rows: np.ndarray,
        axes: np.ndarray | None = None,
        n_rows: int | None = None,
    ) -> None:
        count, n = n_groups_of(len(rows)), len(rows)
        self._moments: list[Callable[[np.ndarray], np.ndarray]] = []
        if smaller_by_groups(n, rows.shape[1]):
            sums = GroupMoments(rows.shape[1], count)
            for block in iterate_blocks(rows, block_rows(rows.shape[1])):
                sums.update(block)
            inside = np.eye(rows.shape[1]) if axes is None else axes
            self._set_moments(sums.about(sums.total().mean()), inside, n_rows)
            return
        centred = rows - rows.mean(axis=0)
        inside = centred if axes is None else centred @ axes
        groups = [np.ascontiguousarray(inside[i::count]) for i in range(count)]
        self._set_sizes(np.array([len(part) for part in groups]), n_rows)
        self._covariances = np.array([part.T @ part / len(part) for part in groups])
        self._moments = [_third_power(part) for part in groups]

    @classmethod
    def of(cls, groups: Sequence[MomentsOfGroup], axes: np.ndarray) -> RowGroups:
        """Groups of rows of which the moments are known, and the rows need not be.

        Parameters
        ----------
        groups : sequence of MomentsOfGroup
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
        self, groups: Sequence[MomentsOfGroup], axes: np.ndarray, n_rows: int | None
    ) -> None:
        sizes, second, fourth = zip(*groups, strict=True)
        self._set_sizes(np.array(sizes), n_rows)
        self._covariances = axes.T @ np.array(second) @ axes
        self._moments = [_inside(tensor, axes) for tensor in fourth]

    def _set_sizes(self, sizes: np.ndarray, n_rows: int | None) -> None:
        self.n_groups, n = sizes.size, int(sizes.sum())
        self._shares = sizes / n
        self._steadier = (n / (n_rows or n)) ** 0.5

    def influence(self, vectors: np.ndarray) -> np.ndarray:
        """What each group says of the cumulant contracted with ``u, u, u``, less what all rows say.

        ``E_b[(x·u)³ x] − 3 (uᵀΣu) Σ_b u − 3 (uᵀΣ_b u) Σu + 3 (uᵀΣu) Σu`` over the rows of group b is
        linear in the group and, where Σ is the mean of the Σ_b, has the cumulant as its mean. Σ is
        the mean of those with neither the largest nor the smallest traces here, so that an outlying
        row in one group leaves the others alone. The mean of all rows stays fixed.

        Parameters
        ----------
        vectors : ndarray of shape (p, k)

        Returns
        -------
        ndarray of shape (n_groups, p, k)
        """
        moments = np.array([moment(vectors) for moment in self._moments])
        own = self._covariances @ vectors
        by_size = np.argsort(np.trace(self._covariances, axis1=1, axis2=2), kind="stable")
        cut = int(TRIM * self.n_groups)
        steady = self._covariances[by_size[cut : self.n_groups - cut]].mean(axis=0) @ vectors
        energy = np.einsum("ik,ik->k", vectors, steady)
        said = moments - 3 * energy * own + 3 * energy * steady
        said -= 3 * np.einsum("ik,bik->bk", vectors, own)[:, None, :] * steady
        whole = np.einsum("b,bik->ik", self._shares, own)
        cumulant = np.einsum("b,bik->ik", self._shares, moments)
        cumulant -= 3 * np.einsum("ik,ik->k", vectors, whole) * whole
        return (said - cumulant) * self._steadier


def _third_power(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda vectors: rows.T @ (rows @ vectors) ** 3 / len(rows)


def _inside(tensor: PackedTensor, axes: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda vectors: axes.T @ tensor.apply_vectors(axes @ vectors)


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
    groups: Sequence[RowGroups], norms: Sequence[float], first: JointFit, second: JointFit
) -> float:
    """By how many standard errors the objective of a second fit lies below that of a first.

    At a minimum of ``Σ_d ‖κ₄(d) − M_d‖² / ‖κ₄(d)‖²`` a change ψ of the data changes the objective by
    ``2 Σ_d ⟨κ₄(d) − M_d, ψ⟩ / ‖κ₄(d)‖²``, as vectors and weights need not follow to first order. So the
    difference of two minima changes by ``2 Σ_d ⟨M′_d − M_d, ψ⟩ / ‖κ₄(d)‖²``, M′ being the second
    model, and its standard error comes from what each group of rows adds. The norms stay fixed, and
    nothing is trimmed: a wild row makes the error larger, and the t-value more careful.

    Parameters
    ----------
    groups : sequence of RowGroups
        One for every dataset, in the fits' coordinates.
    norms : sequence of float
        ``‖κ₄(d)‖²``.
    first, second : JointFit

    Returns
    -------
    float
        0 where the two are the same.
    """
    variance = 0.0  # rows of different datasets are independent
    for part, norm, before, after in zip(groups, norms, first.weights, second.weights, strict=True):
        change = sum(
            sign * np.einsum("bpk,pk,k->b", part.influence(fit.vectors), fit.vectors, weights)
            for sign, fit, weights in ((-1.0, first, before), (1.0, second, after))
        )
        variance += float(np.var(2 * change / norm, ddof=1)) / part.n_groups
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
    weights : ndarray of shape (n_datasets, k)
        Not those of the fit, but with the influence of outlying groups trimmed.
    errors : ndarray of shape (n_datasets, k)
        Their standard errors.
    """

    weights: np.ndarray
    errors: np.ndarray

    @property
    def t_values(self) -> np.ndarray:
        """Every weight over its standard error."""
        return self.weights / self.errors


def weight_t_values(
    datasets: Sequence[RowGroups],
    vectors: np.ndarray,
    weights: np.ndarray,
    norms: Sequence[float],
) -> WeightEstimates:
    """Every weight, all of them free, and its standard error.

    Parameters
    ----------
    datasets : sequence of RowGroups
        In the coordinates of the fit.
    vectors : ndarray of shape (p, k)
        Of a fit near a minimum, unit columns.
    weights : ndarray of shape (n_datasets, k)
        Its weights.
    norms : sequence of float
        Squared norms of the tensors, by which the fit divides.

    Returns
    -------
    WeightEstimates
        Where a weight is zero, its t-value is about Student's t with the degrees of freedom of
        `critical_t_value`.
    """
    p, k = vectors.shape
    normal = _normal_equations(vectors, weights, norms)
    scale = np.sqrt(np.maximum(np.diag(normal), np.finfo(float).tiny))
    factor = cho_factor(normal / scale[:, None] / scale + RIDGE * np.eye(len(normal)))
    estimate, variance = weights.ravel().copy(), np.zeros(weights.size)
    for d, (rows, W, norm) in enumerate(zip(datasets, weights, norms, strict=True)):
        images = rows.influence(vectors)
        along = np.einsum("ik,bik->bk", vectors, images)
        right = np.zeros((len(normal), rows.n_groups))
        across = 4 * W * (images - vectors * along[:, None, :]) / norm
        right[: p * k] = across.transpose(2, 1, 0).reshape(p * k, -1)
        right[p * k + d * k :][:k] = along.T / norm
        moved = cho_solve(factor, right / scale[:, None])[p * k :] / scale[p * k :, None]
        centre, error = _trimmed(moved)
        estimate += centre
        variance += error
    errors = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return WeightEstimates(estimate.reshape(weights.shape), errors.reshape(weights.shape))


def _normal_equations(
    vectors: np.ndarray, weights: np.ndarray, norms: Sequence[float]
) -> np.ndarray:
    """``JᵀJ`` in the vectors, one after the other, and then in the weights of each dataset.

    A vector moves across itself only: along itself the matrix gets an identity.
    """
    p, k = vectors.shape
    cosines = vectors.T @ vectors
    # u_i across u_j, as [i, j, :]
    across = vectors.T[:, None, :] - cosines[:, :, None] * vectors.T[None, :, :]
    products = (  # (I − u_i u_iᵀ)(I − u_j u_jᵀ) as [i, :, j, :]
        np.eye(p)[None, :, None, :]
        - np.einsum("ei,fi->ief", vectors, vectors)[:, :, None, :]
        - np.einsum("ej,fj->ejf", vectors, vectors)[None]
        + np.einsum("ij,ei,fj->iejf", cosines, vectors, vectors, optimize=True)
    )
    scaled = sum(np.outer(W, W) / norm for W, norm in zip(weights, norms, strict=True))
    corner = (cosines**3 * scaled)[:, None, :, None] * products
    corner += np.einsum("ij,jie,ijf->iejf", 3 * cosines**2 * scaled, across, across, optimize=True)
    size = p * k
    normal = np.zeros((size + weights.size,) * 2)
    normal[:size, :size] = 4 * corner.reshape(size, size)
    for j, u in enumerate(vectors.T):
        normal[j * p : (j + 1) * p, j * p : (j + 1) * p] += np.outer(u, u)
    # the derivative in u_j, times the term of u_i: as [j, :, i]
    mixed = 4 * (cosines**3)[:, None, :] * across.transpose(1, 2, 0)
    for d, (W, norm) in enumerate(zip(weights, norms, strict=True)):
        part = slice(size + d * k, size + (d + 1) * k)
        block = (W[:, None, None] * mixed).reshape(size, k) / norm
        normal[:size, part], normal[part, :size] = block, block.T
        normal[part, part] = cosines**4 / norm
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
