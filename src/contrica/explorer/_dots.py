"""Points for the page's canvas: typed arrays as text, and the legend of their colours."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrica.explorer._figures import BACK, colours_of, ranges
from contrica.explorer._views import Colours, Points

__all__ = ["Kind", "kinds", "packed", "ramp"]

# Of several backgrounds, and of rows without a value.
BACKS, NO_VALUE = (BACK, "#6d7f91", "#b5a48a", "#c9c9ce"), "#d5d5da"
# From low to high, as viridis of matplotlib; tones of a scale of numbers.
VIRIDIS = (
    *("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c"),
    *("#28ae80", "#5ec962", "#addc30", "#e7e419"),
)
TONES = 64


@dataclass(frozen=True)
class Kind:
    """An entry of the legend.

    Attributes
    ----------
    number : int
        As points have it.
    name, colour : str
    """

    number: int
    name: str
    colour: str


def ramp(count: int = TONES) -> list[str]:
    """Colours from low to high.

    Parameters
    ----------
    count : int

    Returns
    -------
    list of str

    Examples
    --------
    >>> ramp(2)
    ['#440154', '#e7e419']
    """
    known = np.array([[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in VIRIDIS])
    at = np.linspace(0, len(known) - 1, count)
    tones = [np.interp(at, np.arange(len(known)), channel) for channel in known.T]
    return ["#{:02x}{:02x}{:02x}".format(*map(round, tone)) for tone in zip(*tones, strict=True)]


def _is_scale(colours: Colours) -> bool:
    return not colours.levels and np.asarray(colours.fore).dtype.kind == "f"


def _backs(colours: Colours) -> list[str]:
    """Names of the backgrounds, where these have a colour of their own; else all are one."""
    return list(colours.levels[1:]) if colours.label == "dataset" else ["background"]


def kinds(colours: Colours, *, background: bool) -> list[Kind]:
    """Entries of the legend, in the order of their numbers; of a scale only what is not on it.

    Parameters
    ----------
    colours : Colours
    background : bool
        Whether the background is drawn.

    Returns
    -------
    list of Kind
    """
    behind = _backs(colours)
    found = [Kind(i, name, BACKS[min(i, len(BACKS) - 1)]) for i, name in enumerate(behind)]
    first = len(found)
    found = found if background else []
    if _is_scale(colours):
        if not np.isfinite(colours.fore).all():
            found.append(Kind(first + TONES, "no value", NO_VALUE))
        return found
    own = np.asarray(colours.fore)
    levels = colours.levels[:1] if colours.label == "dataset" else colours.levels
    told = zip(levels, colours_of(colours), strict=False)
    found += [Kind(first + i, name, colour) for i, (name, colour) in enumerate(told)]
    if (own < 0).any():
        found.append(Kind(first + len(levels), "no value", NO_VALUE))
    return found


def packed(
    points: Points,
    colours: Colours,
    *,
    key: str,
    axes: str,
    shown: bool,
    histogram: bool,
    background: bool,
) -> dict[str, Any]:
    """What the page's script draws.

    Parameters
    ----------
    points : Points
    colours : Colours
    key, axes : str
        Of what is drawn, and of the scores alone: with the same key nothing is unpacked anew, with the
        same axes a selection stays.
    shown, histogram : bool
        Whether points are drawn at all, and whether both axes are one.
    background : bool

    Returns
    -------
    dict
        ``x``, ``y``, ``kind`` and ``row`` as little-endian arrays in base64, the background's points
        first and the foreground's in a random order that is the same every time, so that no group lies
        on top of the others; ``palette``, a colour for each kind.
    """
    behind = _backs(colours)
    palette = [BACKS[min(i, len(BACKS) - 1)] for i in range(len(behind))]
    order = np.random.default_rng(0).permutation(len(points.fore_rows))
    fore, rows = points.fore[order], points.fore_rows[order]
    own = np.asarray(colours.fore)[rows]
    if _is_scale(colours):
        codes = len(palette) + _tones(own)
        palette += [*ramp(), NO_VALUE]
    else:
        levels = colours.levels[:1] if colours.label == "dataset" else colours.levels
        codes = len(palette) + np.where(own < 0, len(levels), own)
        palette += [*colours_of(colours)[: len(levels)], NO_VALUE]
    back, back_rows = points.back, points.back_rows
    if not background:
        back, back_rows = back[:0], back_rows[:0]
    back_codes = np.zeros(len(back_rows), dtype=int)
    if len(behind) > 1:
        back_codes = np.asarray(colours.back)[back_rows] - 1
    both = np.concatenate([back, fore])
    x_range, y_range = ranges(points)
    return {
        "key": key,
        "axes": axes,
        "colours": colours.label,
        "n_back": len(back_rows),
        "x": _text(both[:, 0], "<f4"),
        "y": _text(both[:, 1], "<f4"),
        "kind": _text(np.concatenate([back_codes, codes]), "<u2"),
        "row": _text(np.concatenate([back_rows, rows]), "<u4"),
        "palette": palette,
        "shown": shown and not histogram,
        "histogram": histogram,
        "x_range": x_range,
        "y_range": y_range,
    }


def _tones(values: np.ndarray) -> np.ndarray:
    """The tone of each number, between the outermost 1 %; the last one without a number."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [0.01, 0.99]) if known.size else (0.0, 1.0)
    span = (high - low) or 1.0
    unit = np.clip((np.nan_to_num(values, nan=low) - low) / span, 0, 1)
    return np.where(np.isfinite(values), np.rint(unit * (TONES - 1)), TONES).astype(int)


def _text(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")
