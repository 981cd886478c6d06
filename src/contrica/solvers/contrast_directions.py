"""Directions by foreground variance over background variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.moments.spectra import contrast_spectrum
from contrica.rows.device import plus_diagonal

__all__ = ["contrast_axes", "floor_of", "rounding_of"]


def rounding_of(covariance: Any) -> float:
    """What eigenvalues of a covariance are wrong by.

    Parameters
    ----------
    covariance : ndarray or tensor of shape (p, p)

    Returns
    -------
    float
    """
    return float(len(covariance) * np.finfo(float).eps * covariance.trace())


def floor_of(fore: np.ndarray, back: np.ndarray, n_background_samples: int) -> float:
    """``tr(Σ_y) / m``: the mean variance times p/m, the size of the sampling error of Σ_y.

    Parameters
    ----------
    fore, back : ndarray of shape (p, p)
        Covariances.
    n_background_samples : int
        m.

    Returns
    -------
    float
    """
    # a background that does not vary, to rounding, leaves the order to the foreground
    return max(float(back.trace()) / n_background_samples, rounding_of(fore))


def contrast_axes(
    fore: Any,
    back: Any,
    n_background_samples: int | None = None,
    *,
    floor: float | None = None,
    count: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Directions by foreground variance over background variance, closed form.

    Solves ``Σ_x w = k (Σ_y + ρ I) w`` with ``ρ = tr(Σ_y) / m``, so that directions in which the
    background happens not to vary in m rows are not taken for contrast.

    Parameters
    ----------
    fore, back : ndarray or tensor of shape (p, p)
        Covariances.
    n_background_samples : int, optional
        m.
    floor : float, optional
        ρ, in place of m.
    count : int, optional
        How many of the leading directions; all by default.

    Returns
    -------
    ratios : ndarray of shape (count,)
        k, decreasing.
    axes : ndarray of shape (p, count)
        The w, as columns.

    Examples
    --------
    >>> import numpy as np
    >>> contrast_axes(np.diag([1.0, 8.0]), np.eye(2), 10**9)[0].round(6)
    array([8., 1.])
    """
    if floor is None:
        floor = floor_of(fore, back, n_background_samples or 1)
    ratios, axes = contrast_spectrum(fore, plus_diagonal(back, floor), count)
    return ratios[::-1], axes[:, ::-1]
