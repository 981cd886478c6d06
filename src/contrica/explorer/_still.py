"""The scores' plot as a file, png or svg, drawn as the library's own plots are."""

from __future__ import annotations

import io

import numpy as np

from contrica.errors import ParameterError, unmarked
from contrica.explorer._dots import kinds
from contrica.explorer._explorer import Explorer
from contrica.explorer._state import ViewState
from contrica.plots import histograms, scatter, without_pyplot
from contrica.plots._colours import Labels

__all__ = ["FORMATS", "still"]

FORMATS = ("png", "svg")
# Rows that are drawn, and dots per inch of a png.
MAX_ROWS, RESOLUTION = 100_000, 200


def still(explorer: Explorer, state: ViewState, kind: str, names: list[str]) -> tuple[str, bytes]:
    """What the page draws of the scores, as a file.

    Parameters
    ----------
    explorer : Explorer
    state : ViewState
    kind : {"png", "svg"}
    names : list of str
        Of all patterns.

    Returns
    -------
    name : str
    content : bytes
    """
    if kind not in FORMATS:
        raise ParameterError(
            "unknown-choice",
            f"a figure {unmarked(kind)} was asked for",
            f"there are {', '.join(FORMATS)}",
            parameter="kind",
        )
    points, colours = explorer.points(state, MAX_ROWS), explorer.colours(state)
    last = len(names) - 1
    x, y = min(state.x, last), min(state.y, last)
    own = np.asarray(colours.fore)[points.fore_rows]
    if colours.levels or own.dtype.kind != "f":
        told = [each for each in kinds(colours, background=False) if each.name != "no value"]
        shown = tuple(_literal(each.name) for each in told)
        labels = Labels(own, shown, None, _literal(colours.label), tuple(e.colour for e in told))
    else:
        labels = Labels(np.empty(0, dtype=int), (), own, _literal(colours.label))
    behind = points.back if state.background and len(points.back) else None
    axes = [_literal(names[i]) for i in (x, y)]
    with without_pyplot():
        if x == y:
            drawn = histograms(
                points.fore[:, :1],
                labels if colours.levels else None,
                background=None if behind is None else behind[:, :1],
                names=axes[:1],
            ).ravel()[0]
        else:
            drawn = scatter(points.fore, labels, background=behind, names=axes)
    file = io.BytesIO()
    drawn.figure.savefig(file, format=kind, dpi=RESOLUTION)
    return f"scores.{kind}", file.getvalue()


def _literal(name: str) -> str:
    """A name in which matplotlib reads no formula."""
    return name.replace("$", r"\$")
