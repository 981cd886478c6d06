"""Rows drawn on axes that are there: points, histograms, limits and legends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contrica.plots._colours import (
    BACKGROUND,
    CONTINUOUS,
    FOREGROUND,
    NO_LABEL,
    Labels,
    colour_bar,
)
from contrica.plots._colours import (
    legend as draw_legend,
)
from contrica.plots._columns import Columns

__all__ = [
    "common_legend",
    "draw_histogram",
    "draw_rows",
    "legend_or_bar",
    "own_legend",
    "small_text",
    "tidy_panel",
]

# Points from which a vector file would be too large: they are drawn as an image in it.
MAX_VECTOR = 20_000
# Share of rows, at either end, that do not set limits.
FAR = 0.002


def draw_rows(ax: Any, data: Columns, groups: Labels | None) -> Any:
    """Points or a histogram; what a colour bar can be made of, where labels are on a scale.

    Parameters
    ----------
    ax : matplotlib Axes
    data : Columns
    groups : Labels or None

    Returns
    -------
    matplotlib PathCollection or None
    """
    if len(data.names) == 1:
        draw_histogram(ax, data, groups)
        return None
    n_rows = len(data.values)
    options: Any = {"s": _size(n_rows), "linewidths": 0, "rasterized": n_rows > MAX_VECTOR}
    if data.background is not None:
        under = data.background[:, :2].T
        ax.scatter(*under, c=BACKGROUND, label="background", **options)
    drawn = None
    if groups is not None and groups.values is not None:
        known = np.isfinite(groups.values)
        if not known.all():
            ax.scatter(*data.values[~known, :2].T, c=NO_LABEL, label="no label", **options)
        points, values = data.values[known, :2].T, groups.values[known]
        drawn = ax.scatter(*points, c=values, cmap=CONTINUOUS, alpha=0.8, **options)
    else:
        _draw_groups(ax, data.values, _parts(groups, n_rows), options)
    ax.set_xlabel(data.names[0])
    ax.set_ylabel(data.names[1])
    return drawn


def _draw_groups(ax: Any, values: np.ndarray, parts: Sequence[Any], options: Any) -> None:
    """Points of all groups in one random order, so that no group hides the others."""
    colours = np.empty(len(values), dtype=object)
    markers = np.empty(len(values), dtype=object)
    for _, rows, colour, marker in parts:
        colours[rows], markers[rows] = colour, marker
    order = np.random.default_rng(0).permutation(len(values))
    for marker in dict.fromkeys(markers.tolist()):
        own = order[markers[order] == marker]
        points, shades = values[own, :2].T, colours[own].tolist()
        ax.scatter(*points, c=shades, marker=marker, alpha=0.7, **options)
    for label, _, colour, marker in parts:  # for the legend
        ax.scatter([], [], c=colour, marker=marker, label=label, **options)


def _parts(groups: Labels | None, n_rows: int) -> list[tuple[str, np.ndarray, str, str]]:
    """Name, rows, colour and marker of every group with rows; those without a label last."""
    if groups is None or groups.values is not None:
        return [("foreground", np.ones(n_rows, dtype=bool), FOREGROUND, "o")]
    found = [
        (name, groups.numbers == i, groups.colours[i], groups.marker(i))
        for i, name in enumerate(groups.names)
    ]
    found.append(("no label", groups.numbers < 0, NO_LABEL, "o"))
    return [part for part in found if part[1].any()]


def draw_histogram(ax: Any, data: Columns, groups: Labels | None) -> None:
    """Rows by one score, both datasets, as histograms of the same area.

    Parameters
    ----------
    ax : matplotlib Axes
    data : Columns
    groups : Labels or None
    """
    parts = [
        (label, data.values[rows, 0], colour)
        for label, rows, colour, _ in _parts(groups, len(data.values))
    ]
    if data.background is not None:
        parts.insert(0, ("background", data.background[:, 0], BACKGROUND))
    parts = [(label, values[np.isfinite(values)], colour) for label, values, colour in parts]
    low, high = _limits(np.concatenate([values for _, values, _ in parts]))
    smallest = min(values.size for _, values, _ in parts)
    edges = np.linspace(low, high, int(np.clip(3 * np.sqrt(smallest), 10, 50)) + 1)
    for label, values, colour in parts:
        inside = np.clip(values, low, high)
        ax.hist(inside, edges, density=True, alpha=0.6, color=colour, label=label)
    ax.set_xlabel(data.names[0])
    ax.set_ylabel("density")


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Of all values, unless few lie so far out that they would flatten the others."""
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    inner = np.quantile(values, [0.005, 0.995], method="nearest")
    reach = inner[1] - inner[0]
    if reach > 0:
        low, high = max(low, inner[0] - 0.5 * reach), min(high, inner[1] + 0.5 * reach)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _size(n_rows: int) -> float:
    return float(np.clip(6000 / n_rows, 3, 14))


def own_legend(ax: Any, n_rows: int, *, outside: bool) -> None:
    """The legend of one axes, beside or inside.

    Parameters
    ----------
    ax : matplotlib Axes
    n_rows : int
    outside : bool
    """
    shown = ax.get_legend_handles_labels()[1]
    if shown == ["foreground"]:
        return
    scale = 1.5 * np.sqrt(14 / _size(n_rows))
    if outside:
        draw_legend(ax, [ax], loc="upper left", bbox_to_anchor=(1.01, 1), markerscale=scale)
    else:
        # searching for the best place takes seconds with many points
        draw_legend(ax, [ax], loc="best" if n_rows < 2000 else "upper right", markerscale=scale)


def small_text(ax: Any) -> None:
    """Text of a panel among several.

    Parameters
    ----------
    ax : matplotlib Axes
    """
    ax.tick_params(labelsize=7)
    ax.locator_params(nbins=6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(8)
        axis.get_offset_text().set_size(7)


def tidy_panel(ax: Any, points: np.ndarray, *, first: bool) -> None:
    """Small text, and limits that a few far rows do not set.

    Parameters
    ----------
    ax : matplotlib Axes
    points : ndarray of shape (n_rows, n_drawn)
    first : bool
        Whether the panel is the first of its line, which has the label of the axis.
    """
    small_text(ax)
    if not first:
        ax.set_ylabel("")
    if points.shape[1] > 1:
        low, high = np.nanquantile(points[:, :2], [FAR, 1 - FAR], axis=0)
        margin = np.maximum(0.06 * (high - low), np.finfo(float).tiny)
        ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
        ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def legend_or_bar(axes: Sequence[Any], groups: Labels | None) -> None:
    """One colour bar beside all panels, or one legend beneath.

    Parameters
    ----------
    axes : sequence of matplotlib Axes
    groups : Labels or None
    """
    mapped = [part for ax in axes for part in ax.collections if part.get_array() is not None]
    if groups is not None and groups.values is not None and mapped:
        colour_bar(list(axes), mapped[0], groups.title)
    common_legend(axes)


def common_legend(axes: Sequence[Any]) -> None:
    """One legend beneath all panels.

    Parameters
    ----------
    axes : sequence of matplotlib Axes
    """
    if axes[0].get_legend_handles_labels()[1] == ["foreground"]:
        return
    figure = axes[0].figure
    size = max([1.0, *(part.get_sizes()[0] for ax in axes for part in ax.collections)])
    look: Any = {"markerscale": 1.5 * np.sqrt(14 / size), "fontsize": 8}
    if figure.get_layout_engine() is None:  # a caller's figure, where nothing makes room
        draw_legend(axes[0], axes, loc="upper right", **look)
        return
    count = max(len(ax.get_legend_handles_labels()[1]) for ax in axes)
    draw_legend(figure, axes, loc="outside lower center", ncols=min(count, 6), **look)
