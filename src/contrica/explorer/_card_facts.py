"""Everything that a card says of a pattern, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.estimators._ranking import shifted
from contrica.estimators._summary import leading_variables
from contrica.explorer._data import ExplorerData
from contrica.explorer._evidence import Told
from contrica.explorer._state import Edit
from contrica.explorer._views import Association, Card, FitView, Leading
from contrica.inference._covariates import explained_share
from contrica.inference._patterns import explain_scores
from contrica.report._material import MAX_KINDS
from contrica.rows.groups import Groups, as_groups

__all__ = ["associations", "card_of", "groups_of", "known_rows"]

# Leading variables, and columns of metadata, that a card lists.
N_VARIABLES, N_COLUMNS = 10, 8


def groups_of(data: ExplorerData) -> Groups | None:
    """Groups of the foreground's rows.

    Parameters
    ----------
    data : ExplorerData

    Returns
    -------
    Groups or None
    """
    labels = data.groups[0]
    return None if labels is None else as_groups(labels, data.n_fore, "groups", "X")


def known_rows(scores: np.ndarray) -> np.ndarray:
    """Numbers of the rows that have scores: those without any value have none.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_kept)

    Returns
    -------
    ndarray of int
    """
    return np.flatnonzero(~np.isnan(scores).any(axis=1))


def card_of(
    data: ExplorerData, view: FitView, edit: Edit, place: int, p: Told, stability: Told
) -> Card:
    """The card of a pattern.

    Parameters
    ----------
    data : ExplorerData
    view : FitView
    edit : Edit
        Of the pattern; its number is the card's.
    place : int
        On the page.
    p, stability : Told

    Returns
    -------
    Card
    """
    i = edit.index
    rows, others = known_rows(view.scores_fore), known_rows(view.scores_back)
    groups = groups_of(data)
    own = None if groups is None else groups.take(rows)
    told = explain_scores(
        *(view.model, i, view.scores_fore[rows, i], view.scores_back[others, i], ()), groups=own
    )
    found, words = associations(data, view, i)
    return Card(
        index=i,
        place=place,
        edit=edit,
        leading=_leading(data, view.model, i, stability.intervals[i]),
        pattern=view.components[i],
        ratio=float(view.ratios[i]),
        foreground=told.foreground,
        background=told.background,
        p=float(p.values[i]),
        p_words=p.words[i],
        p_is_stale=p.is_stale,
        stability=float(stability.values[i]),
        stability_words=stability.words[i],
        stability_is_stale=stability.is_stale,
        group_share=_shares(view.model, i, told.group_share),
        associations=found,
        association_words=words,
        stands_out=told.stands_out,
        nearest_background=told.nearest_background,
        shape=told.shape,
        only_shifted=bool(shifted(view.model)[i]),
    )


def _leading(data: ExplorerData, model: Any, i: int, ends: np.ndarray) -> tuple[Leading, ...]:
    """Leading variables, with intervals of effects where those of loadings are known."""
    loadings = model.components_[i]
    effects = loadings if model.effects_ is None else model.effects_[i]
    with np.errstate(divide="ignore", invalid="ignore"):
        units = np.where(loadings == 0, 0.0, effects / loadings)
    return tuple(
        Leading(
            data.names[j], float(loadings[j]), float(effects[j]), *map(float, ends[j] * units[j])
        )
        for j in leading_variables(model, i)[:N_VARIABLES]
    )


def _shares(model: Any, i: int, told: dict[str, float]) -> dict[str, float]:
    """Shares of the groups, the largest first: the fit's own where it has them."""
    if getattr(model, "group_share_", None) is not None:
        told = dict(zip(map(str, model.groups_), map(float, model.group_share_[i]), strict=True))
    return dict(sorted(told.items(), key=lambda pair: -pair[1]))


def associations(data: ExplorerData, view: FitView, i: int) -> tuple[tuple[Association, ...], str]:
    """How much of a score's variance columns of metadata explain: an effect size, never a p.

    Where rows come in groups it is of means of groups.

    Parameters
    ----------
    data : ExplorerData
    view : FitView
    i : int
        Number of the pattern.

    Returns
    -------
    associations : tuple of Association
        The largest first.
    words : str
        What was compared and left out.
    """
    rows = known_rows(view.scores_fore)
    groups = groups_of(data)
    own = None if groups is None else groups.take(rows)
    unit = "rows" if own is None else "groups"
    found, left_out = [], 0
    for name, column in data.columns.items():
        if len(column.levels) > MAX_KINDS:
            left_out += 1
            continue
        values = data.metadata[0][name] if column.levels else column.values
        size, n_units = explained_share(
            view.scores_fore[rows, i], np.asarray(values, dtype=object)[rows], own
        )
        if np.isnan(size):
            left_out += 1
            continue
        words = f"{name} explains {size:.0%} of the variance of the score, over {n_units} {unit}"
        found.append(Association(name, size, words, n_units))
    found.sort(key=lambda each: -each.size)
    words = f"Effect sizes over {unit}, without a p: the same rows chose the pattern."
    if left_out:
        words += f" {left_out} columns with many kinds or few values are left out."
    return tuple(found[:N_COLUMNS]), " ".join([words, data.columns_left_out]).strip()
