"""Figures of the page, as plotly's plain dicts: pure functions of the records that the core gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from contrica.explorer._views import Colours, HowMany, Match, Points, Why

__all__ = [
    "BACK",
    "FORE",
    "KINDS",
    "colours_of",
    "how_many",
    "matches",
    "plain",
    "ranges",
    "scatter",
    "why",
]

# Of Okabe and Ito, and of Tol, which colour-blind readers tell apart; the last one is of all others.
FORE, BACK, BLUE, INK, SOFT, LINE = "#d55e00", "#9a9aa2", "#0072b2", "#1c1c1e", "#5f5f66", "#e3e3e0"
KINDS = (
    *("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#3c3c40", "#882255", "#999933", "#b9b9c0"),
)
# Characters of a label that a figure shows.
LONGEST = 34
# Cells of a density along each axis, bins of a histogram, and lines of one density.
CELLS, BINS, LEVELS = 96, 60, 7
# Places of the eigenvalues and ratios that are drawn, and powers of ten below the largest.
MAX_PLACES, MAX_DECADES = 60, 3.5

Figure = dict[str, Any]


def plain(text: object, longest: int = LONGEST) -> str:
    """A label that plotly shows as it is: it would read tags, entities and ``%{…}`` in it.

    Parameters
    ----------
    text : object
    longest : int
        Characters; the rest is an ellipsis.

    Returns
    -------
    str

    Examples
    --------
    >>> plain("<b>a & b</b>")
    '&lt;b&gt;a &amp; b&lt;/b&gt;'
    """
    shown = "".join(each if each.isprintable() else " " for each in str(text))
    shown = shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
    for mark, told in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("%{", "%\u200b{")):
        shown = shown.replace(mark, told)
    return shown


def colours_of(colours: Colours) -> tuple[str, ...]:
    """A colour for each kind of the foreground's rows; the foreground's own where there is one.

    Parameters
    ----------
    colours : Colours

    Returns
    -------
    tuple of str
    """
    count = len(colours.levels)
    if count <= 1:
        return (FORE,) * count
    return tuple(KINDS[min(i, len(KINDS) - 1)] for i in range(count))


def _layout(**more: Any) -> Figure:
    """What all figures have in common: no frame, no colour of their own, room for the labels only."""
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {
            "family": "system-ui, Segoe UI, Roboto, Arial, sans-serif",
            "size": 12,
            "color": SOFT,
        },
        "margin": {"l": 56, "r": 14, "t": 10, "b": 44, "autoexpand": False},
        "showlegend": False,
        "hoverlabel": {"bgcolor": INK, "bordercolor": INK, "font": {"color": "#fff", "size": 12}},
        "autosize": True,
        "template": None,
        **more,
    }


def _axis(title: str = "", **more: Any) -> Figure:
    return {
        "title": {"text": title, "font": {"size": 12, "color": INK}, "standoff": 8},
        "showgrid": False,
        "zeroline": False,
        "showline": True,
        "linecolor": "#c9c9c6",
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "#c9c9c6",
        "automargin": False,
        **more,
    }


# --- scores ---


def ranges(points: Points) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends of both axes: all but the outermost 0.1 % of each dataset, and some room.

    Parameters
    ----------
    points : Points

    Returns
    -------
    (low, high), (low, high)
    """
    found = []
    for axis in (0, 1):
        own = [part[:, axis] for part in (points.fore, points.back) if len(part)]
        known = [each[np.isfinite(each)] for each in own]
        ends = np.array([np.quantile(each, [0.001, 0.999]) for each in known if each.size])
        low, high = (ends.min(), ends.max()) if ends.size else (0.0, 1.0)
        room = 0.06 * (high - low) or 1.0
        found.append((float(low - room), float(high + room)))
    return found[0], found[1]


def scatter(
    points: Points,
    colours: Colours,
    names: tuple[str, str],
    *,
    drawn: str,
    background: bool,
    histogram: bool = False,
) -> Figure:
    """The frame of the scores' plot, and their densities; single points are drawn on a canvas below it.

    Parameters
    ----------
    points : Points
    colours : Colours
    names : (str, str)
        Of both axes.
    drawn : {"points", "density"}
    background : bool
        Whether the background is drawn.
    histogram : bool
        Of the first axis alone.

    Returns
    -------
    dict
    """
    if histogram:
        return _histogram(points, colours, names[0], background)
    x, y = ranges(points)
    # plotly lassoes where there is something to lasso
    corners = {"x": list(x), "y": list(y), "mode": "markers", "marker": {"size": 1, "opacity": 0}}
    data = [{"type": "scatter", "hoverinfo": "skip", **corners}]
    if drawn == "density":
        data += _densities(points, colours, x, y, background)
    layout = _layout(
        xaxis=_axis(plain(names[0]), range=list(x), zeroline=True, zerolinecolor=LINE),
        yaxis=_axis(plain(names[1]), range=list(y), zeroline=True, zerolinecolor=LINE),
        dragmode="lasso",
        hovermode=False,
        newselection={"mode": "immediate", "line": {"color": INK, "width": 1.5, "dash": "dot"}},
        uirevision=f"{names[0]}\n{names[1]}",
    )
    return {"data": data, "layout": layout}


def _kind_rows(points: Points, colours: Colours) -> list[tuple[str, str, np.ndarray]]:
    """Names, colours and drawn rows of the foreground's kinds; of numbers on a scale there is one."""
    if len(colours.levels) <= 1:
        return [("foreground", FORE, np.arange(len(points.fore)))]
    own = np.asarray(colours.fore)[points.fore_rows]
    told = zip(colours.levels, colours_of(colours), strict=True)
    return [(name, colour, np.flatnonzero(own == i)) for i, (name, colour) in enumerate(told)]


def _densities(
    points: Points, colours: Colours, x: tuple[float, float], y: tuple[float, float], behind: bool
) -> list[Figure]:
    sets = [(name, colour, points.fore[rows]) for name, colour, rows in _kind_rows(points, colours)]
    if behind:
        sets.insert(0, ("background", BACK, points.back))
    found = []
    for name, colour, rows in sets:
        if len(rows) < 5:
            continue
        counts, xs, ys = np.histogram2d(rows[:, 0], rows[:, 1], CELLS, [x, y])
        smooth = gaussian_filter(counts.T, CELLS / 48)
        top = float(smooth.max())
        if top <= 0:
            continue
        found.append(
            {
                "type": "contour",
                "x": _middles(xs).tolist(),
                "y": _middles(ys).tolist(),
                "z": np.round(smooth / top, 4).tolist(),
                "contours": {"start": 0.06, "end": 0.96, "size": 0.9 / LEVELS, "coloring": "lines"},
                "colorscale": [[0, colour], [1, colour]],
                "line": {"width": 1.3},
                "showscale": False,
                "hoverinfo": "skip",
                "name": plain(name),
            }
        )
    return found


def _middles(edges: np.ndarray) -> np.ndarray:
    return (edges[1:] + edges[:-1]) / 2


def _histogram(points: Points, colours: Colours, name: str, behind: bool) -> Figure:
    (low, high), _ = ranges(points)
    edges = np.linspace(low, high, BINS + 1)
    told = _kind_rows(points, colours)
    sets = [(kind, colour, points.fore[rows, 0]) for kind, colour, rows in told if rows.size]
    whole = max(len(points.fore), 1)
    data = [_steps(edges, np.histogram(own, edges)[0] / whole, c, kind) for kind, c, own in sets]
    if behind and len(points.back):
        share = np.histogram(points.back[:, 0], edges)[0] / len(points.back)
        data.insert(0, _steps(edges, share, BACK, "background"))
    layout = _layout(
        xaxis=_axis(plain(name), range=[low, high]),
        yaxis=_axis("share of the rows", tickformat=".0%", rangemode="tozero", fixedrange=True),
        dragmode="select",
        selectdirection="h",
        hovermode="x",
        newselection={"mode": "immediate", "line": {"color": INK, "width": 1.5, "dash": "dot"}},
        uirevision=f"{name}\n",
    )
    return {"data": data, "layout": layout}


def _steps(edges: np.ndarray, shares: np.ndarray, colour: str, name: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.round(_middles(edges), 6).tolist(),
        "y": shares.tolist(),
        "line": {"color": colour, "width": 1.6, "shape": "hvh"},
        "fill": "tozeroy",
        "fillcolor": _faded(colour, 0.22),
        "name": plain(name),
        "hovertemplate": "%{y:.1%}",
    }


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


# --- how many? ---


def how_many(found: HowMany) -> Figure:
    """Ratios against their null, eigenvalues and variances, with ℓ, r and the dimension as lines to drag.

    Parameters
    ----------
    found : HowMany

    Returns
    -------
    dict
        Its first shapes are, in this order, ℓ, r and the dimension; each is at its number and a half.
    """
    counts = (
        max(found.ratios[:MAX_PLACES].size, found.n_foreground + 2, 4),
        max(found.foreground_eigenvalues[:MAX_PLACES].size, found.n_background + 2, 4),
        max(found.variances.size, found.dimension + 1, 4),
    )
    values = (
        found.ratios[:MAX_PLACES],
        np.concatenate([found.foreground_eigenvalues, found.background_eigenvalues]),
        found.variances,
    )
    axes: Figure = {}
    for i, (count, shown) in enumerate(zip(counts, values, strict=True)):
        end = "" if i == 0 else str(i + 1)
        room = 0.02 * count
        across = [0.5 - room, count + 0.5 + room]
        axes[f"xaxis{end}"] = _axis(
            anchor=f"y{end}", range=across, tickformat="d", fixedrange=True, nticks=8
        )
        axes[f"yaxis{end}"] = _axis(
            anchor=f"x{end}", domain=ROWS[i], type="log", fixedrange=True, **_decades(shown)
        )
    named = (
        ("ℓ", found.n_foreground, FORE, "x", "y"),
        ("r", found.n_background, BLUE, "x2", "y2"),
        ("components", found.dimension, INK, "x3", "y3"),
    )
    lines = [(*each, count) for each, count in zip(named, counts, strict=True)]
    titles = ("contrast ratio of each direction", "eigenvalues: foreground, background", "variance")
    layout = _layout(
        **axes,
        shapes=[*(_line(*each) for each in lines), *_null(found)],
        annotations=[_heading(title, i) for i, title in enumerate(titles)],
        margin={"l": 44, "r": 12, "t": 24, "b": 24, "autoexpand": False},
        hovermode="closest",
        dragmode=False,
    )
    data = [*_ratio_dots(found), *_eigenvalue_lines(found), *_variance_line(found)]
    return {"data": data, "layout": layout}


# Where the three rows of "How many?" are, as shares of the height.
ROWS = ([0.69, 1.0], [0.345, 0.535], [0.0, 0.19])


def _heading(title: str, row: int) -> Figure:
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": ROWS[row][1], "xanchor": "left"}
    font = {"size": 12, "color": INK}
    return {
        **place,
        "yanchor": "bottom",
        "yshift": 5,
        "text": title,
        "showarrow": False,
        "font": font,
    }


def _decades(values: np.ndarray) -> Figure:
    """Range and few ticks of an axis of powers of ten."""
    known = np.abs(values[np.isfinite(values) & (values != 0)])
    if not known.size:
        return {"range": [-0.5, 0.5]}
    high = np.log10(known.max())
    low = max(np.log10(known.min()), high - MAX_DECADES)
    room = 0.1 * max(high - low, 0.3)
    steps = (1,) if high - low > 1.5 else (1, 3) if high - low > 0.7 else (1, 2, 5)
    ticks = [s * 10.0**d for d in range(int(low) - 2, int(high) + 2) for s in steps]
    shown = [t for t in ticks if low - room <= np.log10(t) <= high + room]
    if len(shown) > 4:
        shown = shown[:: -(-len(shown) // 4)]
    told = [f"{t:g}" if 1e-3 <= t < 1e4 else f"10{_raised(round(np.log10(t)))}" for t in shown]
    return {"range": [low - room, high + 2 * room], "tickvals": shown, "ticktext": told}


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _line(name: str, number: int, colour: str, x: str, y: str, count: int) -> Figure:
    return {
        "type": "line",
        "name": name,
        "x0": number + 0.5,
        "x1": number + 0.5,
        "y0": 0,
        "y1": 1,
        "xref": x,
        "yref": f"{y} domain",
        "line": {"color": colour, "width": 2.5},
        "editable": True,
        "label": {
            "text": f"{name} = {number}",
            # where the curve beside it is not: eigenvalues fall from the top
            "textposition": "start" if name == "r" else "end",
            "textangle": 0,
            "xanchor": "left" if number < 0.6 * count else "right",  # within the plot
            "yanchor": "bottom" if name == "r" else "top",
            "padding": 5,
            "font": {"color": colour, "size": 12},
        },
    }


def _null(found: HowMany) -> list[Figure]:
    if not np.isfinite(found.null_quantile):
        return []
    low = found.null_mean if np.isfinite(found.null_mean) else found.null_quantile
    return [
        {
            **{"type": "rect", "xref": "x domain", "yref": "y", "x0": 0, "x1": 1, "layer": "below"},
            "y0": float(low),
            "y1": float(found.null_quantile),
            "fillcolor": "rgba(154,154,162,0.28)",
            "line": {"color": "rgba(154,154,162,0.6)", "width": 1},
            "editable": False,
        }
    ]


def _places(values: np.ndarray) -> tuple[list[int], list[float | None]]:
    shown = np.abs(np.asarray(values, dtype=float))[:MAX_PLACES]
    told = [float(v) if np.isfinite(v) and v > 0 else None for v in shown]
    return list(range(1, shown.size + 1)), told


def _ratio_dots(found: HowMany) -> list[Figure]:
    x, y = _places(found.ratios)
    tested = np.full(len(x), np.nan)
    tested[: found.p_values.size] = found.p_values[: len(x)]
    words = [f"<br>p = {p:.2g}" if np.isfinite(p) else "" for p in tested]
    beyond = [i <= found.n_foreground for i in x]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": x,
            "y": y,
            "text": words,
            "marker": {
                "size": 8,
                "color": [FORE if each else "#fff" for each in beyond],
                "line": {"color": FORE, "width": 1.5},
            },
            "hovertemplate": "direction %{x}: ratio %{y:.3g}%{text}<extra></extra>",
        }
    ]


def _eigenvalue_lines(found: HowMany) -> list[Figure]:
    told = (
        ("background", found.background_eigenvalues, BACK),
        ("foreground", found.foreground_eigenvalues, FORE),
    )
    data = []
    for name, values, colour in told:
        x, y = _places(values)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": x,
                "y": y,
                "xaxis": "x2",
                "yaxis": "y2",
                "line": {"color": colour, "width": 1},
                "marker": {"size": 4, "color": colour, "line": {"width": 0}},
                "hovertemplate": f"{name} eigenvalue %{{x}}: %{{y:.3g}}<extra></extra>",
            }
        )
    return data


def _variance_line(found: HowMany) -> list[Figure]:
    shown = np.asarray(found.variances, dtype=float)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": list(range(1, shown.size + 1)),
            "y": [float(v) if v > 0 else None for v in shown],
            "xaxis": "x3",
            "yaxis": "y3",
            "line": {"color": SOFT, "width": 1.5},
            "hovertemplate": "component %{x}: %{y:.2%} of the variance<extra></extra>",
        }
    ]


def matches(found: Sequence[Match], old: Mapping[int, str], new: Mapping[int, str]) -> Figure:
    """Old patterns at the left, new ones at the right; the thicker the line, the more alike.

    Parameters
    ----------
    found : sequence of Match
    old, new : mapping of int to str
        Names of the patterns.

    Returns
    -------
    dict
    """
    left = [each.old for each in found if each.old is not None]
    right = [each.new for each in found if each.new is not None]
    left, right = sorted(set(left)), sorted(set(right))
    data: list[Figure] = []
    for each in found:
        if each.old is None or each.new is None:
            continue
        ends = {"x": [0, 1], "y": [left.index(each.old), right.index(each.new)]}
        look = {
            "color": _faded(BLUE, 0.15 + 0.75 * each.cosine**2),
            "width": 1 + 5 * each.cosine**3,
        }
        pair = f"{plain(old[each.old])} → {plain(new[each.new])}"
        told = f"{pair}: |cosine| {each.cosine:.2f}<extra></extra>"
        data.append(
            {"type": "scatter", "mode": "lines", **ends, "line": look, "hovertemplate": told}
        )
    partnered = {each.old for each in found if each.new is not None}
    known = {each.new for each in found if each.old is not None}
    for x, own, names, kept, side in (
        (0, left, old, partnered, "middle left"),
        (1, right, new, known, "middle right"),
    ):
        data.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [x] * len(own),
                "y": list(range(len(own))),
                "text": [plain(names[i], 18) for i in own],
                "textposition": side,
                "textfont": {"size": 11.5, "color": INK},
                "marker": {
                    "size": 8,
                    "color": [BLUE if i in kept else "#fff" for i in own],
                    "line": {"color": BLUE, "width": 1.5},
                },
                "hoverinfo": "skip",
            }
        )
    bare = {"visible": False, "fixedrange": True}
    layout = _layout(
        xaxis={**bare, "range": [-0.75, 1.75]},
        yaxis={**bare, "range": [max(len(left), len(right)) - 0.5, -0.5]},
        margin={"l": 4, "r": 4, "t": 4, "b": 4, "autoexpand": False},
        height=22 * max(len(left), len(right), 2) + 16,
        hovermode="closest",
        dragmode=False,
    )
    return {"data": data, "layout": layout}


# --- why not background? ---


def why(found: Why, name: str) -> Figure:
    """Densities of a score, one above the other: background, foreground, and the foreground's groups.

    Parameters
    ----------
    found : Why
    name : str
        Of the pattern.

    Returns
    -------
    dict
    """
    sets = [("background", found.background, BACK), ("foreground", found.foreground, FORE)]
    sets += [(group, density, "#e59b66") for group, density in found.groups.items()]
    middles = np.round(_middles(found.edges), 6).tolist()
    data: list[Figure] = []
    for i, (label, density, colour) in enumerate(sets):
        level = float(len(sets) - 1 - i)
        top = float(np.max(density, initial=0.0)) or 1.0
        base = {"type": "scatter", "mode": "lines", "x": middles}
        floor = {"y": [level] * len(middles), "line": {"color": LINE, "width": 1}}
        data.append({**base, **floor, "hoverinfo": "skip"})
        data.append(
            {
                **base,
                "y": (level + 0.86 * np.asarray(density, dtype=float) / top).tolist(),
                "line": {"color": colour, "width": 1.6, "shape": "spline", "smoothing": 0.4},
                "fill": "tonexty",
                "fillcolor": _faded(colour, 0.3),
                "name": plain(label, 16),
                "hovertemplate": f"{plain(label)}: score %{{x:.3g}}<extra></extra>",
            }
        )
    labels = [plain(label, 14) for label, _, _ in sets]
    layout = _layout(
        xaxis=_axis(f"score of {plain(name)}", fixedrange=True),
        yaxis=_axis(
            *("",),
            tickvals=[len(sets) - 1 - i + 0.3 for i in range(len(sets))],
            ticktext=labels,
            showline=False,
            ticks="",
            fixedrange=True,
            range=[-0.05, len(sets) + 0.02],
        ),
        margin={"l": 98, "r": 10, "t": 4, "b": 40, "autoexpand": False},
        height=58 + 46 * len(sets),
        hovermode="closest",
        dragmode=False,
    )
    return {"data": data, "layout": layout}
