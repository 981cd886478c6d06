"""A background that cross-validation leaves alone."""

from __future__ import annotations

from typing import Any

__all__ = ["Background"]


class Background:
    """Holds a background so that scikit-learn does not slice it along with ``X``.

    Cross-validation cuts every fit argument that has as many rows as ``X`` to the training rows. A
    background with, by chance, as many rows would lose some in silence. This holder has no length
    and no shape, so it passes whole.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> Background(np.zeros((10, 3)))
    Background(10 × 3)
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        shape = getattr(self.data, "shape", None)
        return f"Background({' × '.join(map(str, shape))})" if shape else "Background(...)"
