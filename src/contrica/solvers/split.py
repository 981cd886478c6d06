"""Two datasets of one assignment of rows or groups: where permuted covariances are formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from contrica.rows.device import like, namespace
from contrica.rows.moving import room_on_card
from contrica.solvers.rescaling import Rescaling

__all__ = ["Split", "Splits", "entries_kept", "group_floor"]

# Entries of covariances that are kept between the directions tested.
MAX_KEPT_ENTRIES = 2 * 10**7


def group_floor(n_rows: float, n_groups: float, total: float, explained: float) -> float:
    """ρ where rows come in groups: sampling error of a covariance, from both of its levels.

    ``tr(between)/G + tr(within)/m`` with the variance components of a one-way design. With as many groups
    as rows, or groups that do not differ, it is ``tr(Σ)/m``, as of independent rows.

    Parameters
    ----------
    n_rows, n_groups : float
        m and G.
    total : float
        Sum of squares about the mean, of all variables.
    explained : float
        What the means of the groups have of it.

    Returns
    -------
    float
    """
    within = (total - explained) / max(n_rows - n_groups, 1)
    between = max(explained / max(n_groups - 1, 1) - within, 0.0) * n_groups / n_rows
    return between / n_groups + within / n_rows


class Split(NamedTuple):
    """Covariances of a foreground and a background, each about its own mean, and what ρ needs.

    Attributes
    ----------
    fore, back : ndarray or tensor of shape (p, p)
    n_fore, n_back : float
        Rows of each.
    between : ndarray or tensor of shape (p, p), or None
        Scatter of the means of the background's groups, where rows come in groups.
    n_groups : int
        How many these are.
    spread : ndarray or tensor of shape (p,)
        Sum of squares of all rows, over the rows of the smaller dataset. One dataset's sums are what the
        other's leave of all, so this is what rounding is relative to. Of a split along some axes, that of
        all directions.
    """

    fore: Any
    back: Any
    n_fore: float
    n_back: float
    spread: Any
    between: Any = None
    n_groups: int = 0

    @classmethod
    def of(
        cls,
        counts: np.ndarray,
        sums: Any,
        products: Any,
        means: Any = None,
        n_groups: int = 0,
    ) -> Split:
        """From sums over the rows of both datasets, the foreground's first.

        Parameters
        ----------
        counts : ndarray of shape (2,)
            Rows.
        sums : ndarray or tensor of shape (2, p)
        products : ndarray or tensor of shape (2, p, p), or sequence of them
            ``Σ x xᵀ``.
        means : ndarray or tensor of shape (p, p), or None
            ``Σ m_g m_gᵀ n_g`` over the means of the background's groups.
        n_groups : int

        Returns
        -------
        Split
        """
        rows = like(sums, counts)
        centres = sums / rows[:, None]
        spread = (products[0].diagonal() + products[1].diagonal()) / float(counts.min())
        fore, back = (
            _about(product / count, centre)
            for product, count, centre in zip(products, rows, centres, strict=True)
        )
        between = None
        if means is not None:
            between = means - float(counts[1]) * (centres[1][:, None] * centres[1][None, :])
        return cls(fore, back, float(counts[0]), float(counts[1]), spread, between, n_groups)

    @property
    def floor(self) -> float:
        """ρ of the background, in the coordinates that this split is in."""
        return max(self.floor_within(None), self.rounding)

    @property
    def rounding(self) -> float:
        """What eigenvalues of the covariances are wrong by."""
        return float(len(self.spread) * np.finfo(float).eps * self.spread.sum())

    def floor_within(self, projector: Any) -> float:
        """ρ of what a projection leaves of the background; rounding aside.

        Parameters
        ----------
        projector : ndarray or tensor of shape (p, p), or None
            Orthogonal; ``None`` leaves all.

        Returns
        -------
        float
        """
        back = _within(self.back, projector)
        if self.between is None:
            return back / self.n_back
        between = _within(self.between, projector)
        return group_floor(self.n_back, self.n_groups, back * self.n_back, between)

    def rescaled(self, rescaling: Rescaling) -> Split:
        """The same with variables divided by the standard deviations of this split.

        Parameters
        ----------
        rescaling : Rescaling

        Returns
        -------
        Split
        """
        one, other = rescaling.maps(self.fore, self.back, self.n_fore, self.n_back)
        xp = namespace(self.fore)
        spreads = [each(xp.diag(self.spread)).diagonal() for each in {one, other}]
        return self._replace(
            fore=one(self.fore),
            back=other(self.back),
            # a small deviation makes what is wrong as much larger as what is right
            spread=spreads[0] if len(spreads) == 1 else xp.maximum(*spreads),
            between=None if self.between is None else other(self.between),
        )

    def inside(self, axes: Any) -> Split:
        """The same along some orthonormal axes; ρ is then that of what they leave.

        Parameters
        ----------
        axes : ndarray or tensor of shape (p, k)

        Returns
        -------
        Split
        """
        between = None if self.between is None else axes.T @ self.between @ axes
        return self._replace(
            fore=axes.T @ self.fore @ axes,
            back=axes.T @ self.back @ axes,
            between=between,
        )


def _about(products: Any, centre: Any) -> Any:
    """A mean of products, which is overwritten, less those of the centre."""
    products -= centre[:, None] * centre[None, :]
    return products


def _within(matrix: Any, projector: Any) -> float:
    """Trace of what an orthogonal projection leaves of a matrix; without one, the trace."""
    if projector is None:
        return float(matrix.trace())
    if isinstance(matrix, np.ndarray):
        return float(np.vdot(matrix, projector))
    return float(namespace(matrix).sum(matrix * projector))


def entries_kept(like_these: Any) -> float:
    """Entries of covariances to keep between the directions tested, where some arrays are.

    Parameters
    ----------
    like_these : ndarray or tensor

    Returns
    -------
    float
    """
    return MAX_KEPT_ENTRIES if isinstance(like_these, np.ndarray) else room_on_card() / 8


class Splits:
    """The observed split, and then those of permutations: the same ones, in one order, each time.

    Parameters
    ----------
    make : callable
        Gives an iterator over them.
    count : int
        How many there are, the observed one among them.
    n_features : int
    rescaling : Rescaling, optional
        Where variables were divided by standard deviations: every split divides anew.
    max_entries : float
        Entries of covariances up to which all of them are kept; others are formed anew each time.
    """

    def __init__(
        self,
        make: Callable[[], Iterator[Split]],
        count: int,
        n_features: int,
        rescaling: Rescaling | None = None,
        *,
        max_entries: float = MAX_KEPT_ENTRIES,
    ) -> None:
        if rescaling is not None:
            as_they_are = make

            def make() -> Iterator[Split]:
                parts = as_they_are()
                first = next(parts)
                there = rescaling.beside(first.fore)
                return (part.rescaled(there) for part in chain([first], parts))

        self._make = make
        self._count = count
        self._kept = list(make()) if 2 * count * n_features**2 <= max_entries else None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Split]:
        return self._make() if self._kept is None else iter(self._kept)
