"""Numbers of the patterns of a fitted model, one for each: ratio, p, kurtosis."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.solvers.permutation_null import ContrastScree

__all__ = ["SHIFT", "kurtosis_of", "order_in_words", "p_values_of", "ranking_ratio", "shifted"]

# What is said of a pattern that only shifts the mean.
SHIFT = "a shift of the mean, ranked last"


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


def shifted(model: Any) -> np.ndarray:
    """Which patterns of a fitted model only shift the mean, and are ranked last.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.

    Returns
    -------
    ndarray of bool, shape (n_components,)
    """
    found = getattr(model, "only_shifted_", None)  # which earlier versions did not save
    return np.zeros(len(model.components_), dtype=bool) if found is None else np.asarray(found)


def order_in_words(model: Any) -> str:
    """What a fitted model's patterns are ranked by, after the word "by".

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.

    Returns
    -------
    str
    """
    if shifted(model).any():
        return "contrast ratio, shifts of the mean last"
    if getattr(model, "rank_choice_", None) is not None and len(model.components_) > max(
        model.n_foreground_, 1
    ):
        return "contrast ratio, those that do not stand out last"
    return "contrast ratio"


def p_values_of(model: Any) -> np.ndarray:
    """By pattern in turn, p of the permutation null of the fit; NaN where there is none.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.

    Returns
    -------
    ndarray of shape (n_components,)
    """
    found = np.full(len(model.components_), np.nan)
    scree = getattr(model, "scree_", None)
    if isinstance(scree, ContrastScree):
        tested = scree.p_values[: found.size]
        found[: tested.size] = tested
    return found


def kurtosis_of(model: Any) -> np.ndarray | None:
    """Weights of the patterns over the squared variance of their scores, which has no units.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.

    Returns
    -------
    ndarray of shape (n_components,) or None
        ``None`` for a model of an earlier version, which did not save deviations.
    """
    deviations = vars(model).get("source_deviations_")
    if deviations is None:
        return None
    return np.asarray(model.foreground_weights_ / np.maximum(deviations, np.finfo(float).tiny) ** 4)
