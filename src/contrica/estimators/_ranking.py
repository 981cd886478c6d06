"""By which ratio the patterns of a fitted model are ranked."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ranking_ratio"]


def ranking_ratio(model: Any) -> tuple[str, np.ndarray]:
    """What a fitted model's patterns are ranked by: its symbol, "k(b)" or "k(f)", and the values.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.

    Returns
    -------
    symbol : str
    values : ndarray of shape (n_components,)
    """
    if getattr(model, "ranked_by_", "") == "source_ratio":
        return "k(f)", model.source_ratio_
    return "k(b)", model.contrast_ratio_
