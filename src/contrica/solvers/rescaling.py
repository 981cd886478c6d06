"""Standard deviations taken anew from rows that were permuted between two datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contrica.moments.estimates import Cumulants
from contrica.rows.device import like, namespace

__all__ = ["Rescaling"]


@dataclass(frozen=True)
class Rescaling:
    """What brings permuted rows to the scale that a fit would bring them to.

    Rows were divided by standard deviations that saw which dataset they are of. A permutation that
    does not divide anew leaves that in. In principal coordinates ``z = Uᵀx`` of rows that were divided
    once, to divide variable v by d_v is ``z ↦ Uᵀ diag(1/d) U z``, where ``d_v² = u_vᵀ C u_v + r_v``: C is
    the covariance of the permuted set in these coordinates, u_v the v-th row of U, and r_v the variance
    of v outside the axes, taken as that of all observed rows for every permutation. Without a
    basis this is exact; with one it leaves out what the division brings in from outside the axes.

    Parameters
    ----------
    scale : {"pooled", "each"}
        Whether both sets are divided by the deviations of both together, each about its own mean, or each
        by its own.
    basis : ndarray or tensor of shape (p, k), or None
        U.
    outside : ndarray or tensor of shape (p,)
        The r_v; zeros without a basis.

    Examples
    --------
    >>> import numpy as np
    >>> redo = Rescaling("each", None, np.zeros(2))
    >>> redo.covariances(np.diag([4.0, 1.0]), np.eye(2), 10, 10)[0]
    array([[1., 0.],
           [0., 1.]])
    """

    scale: str
    basis: Any
    outside: Any

    @classmethod
    def of(
        cls,
        scale: str,
        basis: np.ndarray | None,
        variances: np.ndarray,
        datasets: Sequence[Cumulants],
    ) -> Rescaling:
        """Of datasets that were divided.

        Parameters
        ----------
        scale : {"pooled", "each"}
        basis : ndarray of shape (p, k) or None
        variances : ndarray of shape (p,)
            Of every variable after the division, over all datasets, each about its own mean.
        datasets : sequence of Cumulants
            In the coordinates of the basis.

        Returns
        -------
        Rescaling
        """
        if basis is None:
            return cls(scale, None, np.zeros(variances.size))
        n_rows = np.array([part.n_samples for part in datasets], dtype=float)
        pooled = np.tensordot(n_rows / n_rows.sum(), [part.covariance for part in datasets], 1)
        inside = np.einsum("vk,vk->v", basis @ pooled, basis)
        return cls(scale, basis, np.maximum(variances - inside, 0.0))

    @property
    def price(self) -> int:
        """Multiplications that it costs to make the maps of one permutation."""
        if self.basis is None:
            return 0
        n_features, k = self.basis.shape
        return 2 * n_features * k**2 * (1 if self.scale == "pooled" else 2)

    def beside(self, array: Any) -> Rescaling:
        """The same where an array is: covariances to divide may be tensors.

        Parameters
        ----------
        array : ndarray or tensor

        Returns
        -------
        Rescaling
        """
        if isinstance(array, np.ndarray) or self.basis is None:
            return self
        return replace(self, basis=like(array, self.basis), outside=like(array, self.outside))

    def maps(
        self, fore: Any, back: Any, n_fore: float, n_back: float
    ) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """What divides a covariance, ``C ↦ M C M`` with ``M = Uᵀ diag(1/d) U``, for both sets.

        Parameters
        ----------
        fore, back : ndarray or tensor of shape (k, k)
            Covariances of a permutation.
        n_fore, n_back : float
            Their rows.

        Returns
        -------
        fore, back : callable
        """
        if self.scale == "pooled":
            both = self._map((n_fore * fore + n_back * back) / (n_fore + n_back))
            return both, both
        return self._map(fore), self._map(back)

    def covariances(self, fore: Any, back: Any, n_fore: float, n_back: float) -> tuple[Any, Any]:
        """Covariances of both sets of a permutation, divided anew.

        Parameters
        ----------
        fore, back : ndarray or tensor of shape (k, k)
        n_fore, n_back : float

        Returns
        -------
        fore, back : ndarray or tensor of shape (k, k)
        """
        one, other = self.maps(fore, back, n_fore, n_back)
        return one(fore), other(back)

    def _map(self, covariance: Any) -> Callable[[Any], Any]:
        if self.basis is None:
            factors = _inverse_roots(covariance.diagonal())
            return lambda matrix: factors[:, None] * matrix * factors
        if isinstance(covariance, np.ndarray):
            inside = np.einsum("vk,vk->v", self.basis @ covariance, self.basis)
        else:
            inside = ((self.basis @ covariance) * self.basis).sum(axis=1)
        root = (self.basis.T * _inverse_roots(inside + self.outside)) @ self.basis
        return lambda matrix: root @ matrix @ root


def _inverse_roots(variances: Any) -> Any:
    """One over standard deviations; 1 where there is no variance."""
    xp = namespace(variances)
    varies = variances > np.finfo(float).eps * max(float(variances.max()), 0.0)
    return 1 / xp.sqrt(xp.where(varies, variances, 1.0))
