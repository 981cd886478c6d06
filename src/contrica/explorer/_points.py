"""Rows to draw and what to colour them by."""

from __future__ import annotations

import numpy as np

from contrica.errors import ParameterError, unmarked
from contrica.explorer._data import ExplorerData
from contrica.explorer._state import ViewState
from contrica.explorer._views import Colours, FitView, Points
from contrica.report._material import Column
from contrica.validation import generator

__all__ = ["axes_of", "colours_of", "points_of"]

# Kinds that have a colour of their own.
MAX_LEVELS = 10


def axes_of(state: ViewState, view: FitView) -> tuple[int, int]:
    """The patterns on both axes: those of the state, or the nearest there are.

    Parameters
    ----------
    state : ViewState
    view : FitView

    Returns
    -------
    (int, int)
    """
    last = view.n_kept - 1
    return min(state.x, last), min(state.y, last)


def points_of(data: ExplorerData, view: FitView, state: ViewState, n_max: int) -> Points:
    """Scores along both axes, of all rows or of a random sample that is the same every time.

    Parameters
    ----------
    data : ExplorerData
    view : FitView
    state : ViewState
    n_max : int
        Rows to draw at most, of all datasets together.

    Returns
    -------
    Points
    """
    axes = list(axes_of(state, view))
    parts = [view.scores_fore[:, axes], view.scores_back[:, axes]]
    known = [np.flatnonzero(~np.isnan(part).any(axis=1)) for part in parts]
    total = sum(each.size for each in known)
    thinned = total > n_max
    if thinned:
        rng = generator(0)
        known = [
            np.sort(rng.choice(own, max(1, own.size * n_max // total), replace=False))
            for own in known
            if own.size
        ]
    drawn = sum(each.size for each in known)
    words = f"All {total:,} rows are drawn."
    if thinned:
        words = (
            f"{drawn:,} of {total:,} rows are drawn, a random sample that is the same every time; "
            "every number on the page is of all rows."
        )
    names = _row_names(data)
    above, below = ([own[i] for i in rows] for own, rows in zip(names, known, strict=True))
    return Points(
        parts[0][known[0]], parts[1][known[1]], known[0], known[1], above, below, thinned, words
    )


def _row_names(data: ExplorerData) -> tuple[list[str], list[str]]:
    found = []
    for i, (part, names) in enumerate(zip((data.fore, *data.backs), data.row_names, strict=True)):
        called = "row" if len(data.backs) == 1 or i == 0 else f"background {i}, row"
        own = names.tolist() if names is not None else [f"{called} {j}" for j in range(len(part))]
        found.append(own)
    return found[0], [name for own in found[1:] for name in own]


def colours_of(data: ExplorerData, state: ViewState) -> Colours:
    """What rows are coloured by.

    Parameters
    ----------
    data : ExplorerData
    state : ViewState

    Returns
    -------
    Colours
    """
    kind, _, name = state.colour.partition(":")
    if kind == "variable":
        if name not in data.names:
            raise _unknown("variable", name)
        j = data.names.index(name)
        return Colours(
            name, (), data.fore[:, j], np.concatenate([part[:, j] for part in data.backs])
        )
    if kind == "column":
        if name not in data.metadata[0]:
            raise _unknown("column", name)
        return _coloured(data, name, [own.get(name) for own in data.metadata])
    if kind == "groups":
        if not data.has_groups:
            raise ParameterError(
                "no-groups",
                "colours of groups were asked for",
                "the rows have none",
                "Choose another colour.",
                "colour",
            )
        return _coloured(data, "group", list(data.groups))
    levels: tuple[str, ...] = ("foreground", "background")
    if len(data.backs) > 1:
        levels = ("foreground", *(f"background {i + 1}" for i in range(len(data.backs))))
    back = np.repeat(np.arange(len(data.backs)), [len(part) for part in data.backs]) + 1
    return Colours("dataset", levels, np.zeros(data.n_fore, dtype=int), back)


def _unknown(what: str, name: str) -> ParameterError:
    return ParameterError(
        "unknown-colour",
        f"there is no {what} {unmarked(name)}",
        remedy="Choose another colour.",
        parameter="colour",
    )


def _coloured(data: ExplorerData, label: str, parts: list[np.ndarray | None]) -> Colours:
    """A column of all datasets; rows of a dataset that does not have it have no value."""
    rows = [
        np.full(len(own), None, dtype=object) if part is None else np.asarray(part, dtype=object)
        for own, part in zip((data.fore, *data.backs), parts, strict=True)
    ]
    column = Column.of(label, np.concatenate(rows))
    if column is None:
        nothing = np.full(data.n_fore, -1), np.full(data.n_back, -1)
        return Colours(label, (), *nothing, "Nearly every row has a value of its own, or none has.")
    levels, values, words = column.levels, column.values, ""
    if len(levels) > MAX_LEVELS:
        counts = np.bincount(values[values >= 0], minlength=len(levels))
        largest = np.sort(np.argsort(-counts, kind="stable")[: MAX_LEVELS - 1])
        numbers = np.full(len(levels) + 1, MAX_LEVELS - 1)
        numbers[largest], numbers[-1] = np.arange(largest.size), -1
        words = f"The {largest.size} largest of {len(levels)} kinds have a colour of their own."
        values = numbers[values]
        levels = (*(levels[i] for i in largest), "all others")
    return Colours(label, levels, values[: data.n_fore], values[data.n_fore :], words)
