"""Standard deviations taken anew from rows that were permuted between two datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contrica.moments.estimates import Cumulants

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
    basis : ndarray of shape (p, k) or None
        U.
    outside : ndarray of shape (p,)
        The r_v; zeros without a basis.

    Examples
    --------
    >>> import numpy as np
    >>> redo = Rescaling("each", None, np.zeros(2))
    >>> fore, back = redo.maps(np.diag([4.0, 1.0]), np.eye(2), 10, 10)
    >>> fore @ np.diag([4.0, 1.0]) @ fore
    array([[1., 0.],
           [0., 1.]])
    """

    scale: str
    basis: np.ndarray | None
    outside: np.ndarray

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

    def maps(
        self, fore: np.ndarray, back: np.ndarray, n_fore: float, n_back: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """``Uᵀ diag(1/d) U`` of both sets of a permutation.

        Parameters
        ----------
        fore, back : ndarray of shape (k, k)
            Their covariances.
        n_fore, n_back : float
            Their rows.

        Returns
        -------
        fore, back : ndarray of shape (k, k)
            Symmetric.
        """
        if self.scale == "pooled":
            both = self._map((n_fore * fore + n_back * back) / (n_fore + n_back))
            return both, both
        return self._map(fore), self._map(back)

    def covariances(
        self, fore: np.ndarray, back: np.ndarray, n_fore: float, n_back: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Covariances of both sets of a permutation, divided anew.

        Parameters
        ----------
        fore, back : ndarray of shape (k, k)
        n_fore, n_back : float

        Returns
        -------
        fore, back : ndarray of shape (k, k)
        """
        one, other = self.maps(fore, back, n_fore, n_back)
        return one @ fore @ one, other @ back @ other

    def _map(self, covariance: np.ndarray) -> np.ndarray:
        if self.basis is None:
            return np.diag(_inverse_roots(np.diag(covariance)))
        inside = np.einsum("vk,vk->v", self.basis @ covariance, self.basis)
        factors = _inverse_roots(inside + self.outside)
        return np.asarray((self.basis.T * factors) @ self.basis)


def _inverse_roots(variances: np.ndarray) -> np.ndarray:
    """One over standard deviations; 1 where there is no variance."""
    varies = variances > np.finfo(float).eps * variances.max(initial=0.0)
    return np.asarray(1 / np.sqrt(np.where(varies, variances, 1.0)))
