"""Sums of products of two variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.rows.device import (
    as_doubles,
    like,
    single_precision_parts,
    to_numpy,
)

__all__ = ["Scatter"]


class Scatter:
    """Accumulator of ``Σ (x − μ)(x − μ)ᵀ`` about a given point μ.

    Parameters
    ----------
    origin : ndarray of shape (p,)
        μ.
    start : int
        Ignored, as of `Moments`.
    """

    def __init__(self, origin: np.ndarray, start: int = 0) -> None:
        self._origin = origin
        self._total: Any = None

    def update(self, block: Any) -> Scatter:
        """Add a block of rows."""
        for part in single_precision_parts(block):
            centred = part - like(part, self._origin)
            product = as_doubles(centred.T @ centred)
            if self._total is None:
                self._total = product
            else:
                self._total += product
        return self

    def merge(self, other: Scatter) -> Scatter:
        """Add what another one holds."""
        if other._total is not None:
            own = 0.0 if self._total is None else to_numpy(self._total)
            self._total = own + to_numpy(other._total)
        return self

    def __getstate__(self) -> dict[str, Any]:
        total = None if self._total is None else to_numpy(self._total)
        return {"_origin": None, "_total": total}

    def matrix(self) -> np.ndarray:
        """The sum."""
        return to_numpy(self._total)
