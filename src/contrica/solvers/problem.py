"""What every solver is given, and what it gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from contrica.decompositions import Decomposition
from contrica.moments.estimates import Cumulants, pooled
from contrica.moments.packed import PointMoments
from contrica.rows.groups import Groups
from contrica.rows.moving import there
from contrica.solvers.group_design import (
    GroupDesign,
    GroupShares,
    GroupSums,
    sums_pay_on_card,
)
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.ranks import Ranks, Scree, check_room
from contrica.solvers.rescaling import Rescaling
from contrica.solvers.selection import RankChoice
from contrica.solvers.weights import RowGroups
from contrica.validation import check_rank

__all__ = ["Problem", "Request", "Separation", "nothing"]


@dataclass(frozen=True)
class Problem:
    """Cumulants and rows of a foreground and its backgrounds, in the coordinates worked in.

    Attributes
    ----------
    fore : Cumulants
    backs : tuple of Cumulants
        Of every background; empty for plain ICA.
    rows : tuple of ndarray of shape (n, p)
        Of every dataset, foreground first: all of its rows, or a random sample.
    grouped : tuple of (list of PointMoments or None)
        Moments of groups of rows about their mean, where rows are a sample and a joint fit may ask for
        them.
    groups : tuple of Groups or None
        To which animal, donor or photograph every one of the ``rows`` belongs; empty where rows are
        independent.
    rescaling : Rescaling or None
        How variables are divided by standard deviations anew where rows are permuted; ``None`` where they
        were not divided.
    room : float
        Bytes for what makes a solver faster, beside what it cannot do without.
    tensors : tuple of (tensor or None)
        The ``rows``, up to their mean, as they are on a card; empty where none are.
    device : str or None
        The card that the fit works on.
    known : dict of str to object
        What was worked out of these rows and depends on no request, for the next request.
    """

    fore: Cumulants
    backs: tuple[Cumulants, ...]
    rows: tuple[np.ndarray, ...]
    grouped: tuple[list[PointMoments] | None, ...]
    groups: tuple[Groups | None, ...] = ()
    rescaling: Rescaling | None = None
    room: float = math.inf
    tensors: tuple[Any, ...] = ()
    device: str | None = None
    known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_grouped(self) -> bool:
        """Whether rows come in groups."""
        return any(part is not None for part in self.groups)

    @cached_property
    def design(self) -> GroupDesign:
        """Groups of all datasets, where rows come in groups."""
        tensors = self.tensors or (None,) * len(self.rows)
        parts = [
            (rows, groups, own)
            for rows, groups, own in zip(self.rows, self.groups, tensors, strict=True)
            if groups is not None
        ]
        by_card = sums_pay_on_card([(rows, groups) for rows, groups, _ in parts])
        sums = [
            GroupSums.of((there(rows) if own is None else own) if by_card else rows, groups)
            for rows, groups, own in parts
        ]
        return GroupDesign(GroupSums.stacked(sums), len(sums[0].names))

    @property
    def n_features(self) -> int:
        """Dimensions worked in."""
        return self.fore.n_features

    @property
    def datasets(self) -> tuple[Cumulants, ...]:
        """Cumulants of all datasets, the foreground's first."""
        return self.fore, *self.backs

    @property
    def back(self) -> Cumulants:
        """Of the background, or what stands for several."""
        return pooled(self.backs)

    def row_groups(self, axes: np.ndarray) -> list[RowGroups]:
        """Groups of the rows of every dataset, in given coordinates; rows that belong together stay so.

        Parameters
        ----------
        axes : ndarray of shape (n_features, k)

        Returns
        -------
        list of RowGroups
        """
        labels = self.groups or (None,) * len(self.rows)
        return [
            RowGroups(rows, axes, data.n_samples, own)
            if moments is None or own is not None
            else RowGroups.of(moments, axes)
            for data, rows, moments, own in zip(
                self.datasets, self.rows, self.grouped, labels, strict=True
            )
        ]


class Request(NamedTuple):
    """What the user asked for.

    Attributes
    ----------
    n_components : int or None
        Patterns to keep; ``None`` keeps all that are found.
    n_background, n_foreground : int or None
        r and ℓ; ``None`` where the data are to choose.
    deflation, max_iter, tol
        As of the estimators.
    """

    n_components: int | None = 2
    n_background: int | None = None
    n_foreground: int | None = None
    deflation: str = "thin"
    max_iter: int | None = None
    tol: float = 1e-8

    @property
    def step_limit(self) -> dict[str, Any]:
        """``max_iter`` as an argument, where it was given."""
        return {} if self.max_iter is None else {"max_iter": self.max_iter}

    def ranks(self, n_features: int) -> tuple[int | None, int | None]:
        """The ranks r and ℓ as given, refused if so many dimensions have no room for them.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        tuple of int or None
        """
        r, l = (  # noqa: E741 - the paper's ℓ
            None if value is None else check_rank(value, n_features, name)
            for name, value in (
                ("n_background", self.n_background),
                ("n_foreground", self.n_foreground),
            )
        )
        if r is not None and l is not None:
            check_room(r, l, n_features)
        return r, l


def nothing(n_features: int) -> Decomposition:
    """A decomposition without terms.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    Decomposition
    """
    return Decomposition(np.empty(0), np.empty((n_features, 0)))


@dataclass(frozen=True)
class Separation:
    """What a solver found, in the coordinates worked in.

    Attributes
    ----------
    foreground : Decomposition
        ν and b.
    background : Decomposition
        λ and a; without terms where the solver looks for none.
    shared_weights : ndarray of shape (r,)
        λ′.
    ratio : ndarray of shape (l,)
        What the patterns are ranked by; NaN without a background.
    ranked_by : {"contrast_ratio", "source_ratio"}
        Which ratio that is: along the patterns, or along the filters.
    ranks : Ranks
        r and ℓ as the data, or the user, say; fewer or more patterns may have been sought.
    residual : float
        Norm of what is left of κ₄(x), over that of κ₄(x); NaN where a solver does not fit it.
    n_iter : int
    significant : ndarray of bool, shape (l,), or None
        Whether each pattern is significant, or more than a shift of the mean, where that was tested;
        others come last, or last of their tier.
    only_shifted : ndarray of bool, shape (l,), or None
        Which patterns only shift the mean, where that was asked.
    t_values : ndarray of shape (l,) or None
        Each weight in κ₄(x) or κ₃(x), whichever is larger, over its standard error.
    skewness_weights : ndarray of shape (l,) or None
        Each pattern's weight in κ₃(x), where that was fitted.
    rank_choice : RankChoice or None
        What the ranks rest on, where a joint fit chose them.
    near_ties : tuple of str
        Choices that slightly other rows might turn, in words.
    caveat : str
        Why a solver for fewer rows would be better; empty where none would.
    scree : Scree, ContrastScree or None
        What a reader checks the ranks by.
    tier : ndarray of int, shape (l,), or None
        Patterns of a lower tier come first, whatever their ratio.
    robust_ratio : ndarray of shape (l,) or None
        The ratio without the groups of rows in which it is largest: patterns are then ranked by it.
    shares : GroupShares or None
        How groups of rows share in every pattern.
    """

    foreground: Decomposition
    background: Decomposition
    shared_weights: np.ndarray
    ratio: np.ndarray
    ranked_by: str
    ranks: Ranks
    residual: float
    n_iter: int
    significant: np.ndarray | None = None
    only_shifted: np.ndarray | None = None
    t_values: np.ndarray | None = None
    skewness_weights: np.ndarray | None = None
    rank_choice: RankChoice | None = None
    near_ties: tuple[str, ...] = field(default=())
    caveat: str = ""
    scree: Scree | ContrastScree | None = None
    tier: np.ndarray | None = None
    robust_ratio: np.ndarray | None = None
    shares: GroupShares | None = None

    def order(self) -> np.ndarray:
        """Patterns by tier, significant ones first, by decreasing ratio; NaN leaves the order by weight.

        Returns
        -------
        ndarray of int, shape (l,)
        """
        ratio = self.ratio if self.robust_ratio is None else self.robust_ratio
        order = np.argsort(-ratio, kind="stable")
        if self.significant is not None:
            order = order[np.argsort(~self.significant[order], kind="stable")]
        return order if self.tier is None else order[np.argsort(self.tier[order], kind="stable")]
