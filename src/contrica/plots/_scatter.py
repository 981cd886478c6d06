"""Scores of rows: a scatter, a histogram, a grid of both, and one panel for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrica.compare import Comparison
from contrica.errors import DataError
from contrica.plots._canvas import grid, one_axes, saved
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

__all__ = ["comparison", "histograms", "scatter", "scores", "small_multiples"]

# Patterns in one grid.
MAX_IN_GRID = 5
# Points from which a vector file would be too large: they are drawn as an image in it.
MAX_VECTOR = 20_000
# Share of rows, at either end, that do not set limits.
FAR = 0.002


def scatter(
    scores: Any,
    labels: Any = None,
    *,
    background: Any = None,
    label_names: Sequence[str] | None = None,
    components: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    colours: Sequence[str] | None = None,
    legend: bool | str = True,
    ax: Any = None,
    save: str | Path | None = None,
) -> Any:
    """Rows by their scores on two patterns; one pattern alone is shown as a histogram.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        Of the foreground.
    labels : list, array, Series or Categorical of length n_samples, optional
        Colour the points: text, booleans, categories and few whole numbers by group, other numbers on a
        scale with a colour bar. Rows without a label (None, NaN or empty) are grey.
    background : array-like of shape (n_background_samples, n_components), optional
        Scores of the background, drawn in grey beneath.
    label_names : sequence of str, optional
        Legend of the groups 0, 1, …, or of the sorted labels.
    components : (int, int), optional
        Numbers of the patterns, from 1; the first two by default.
    names : sequence of str, optional
        Axis labels. By default the columns of a data frame, or "pattern 1" and so on.
    colours : sequence of str, optional
        Of the groups, in the order of the legend.
    legend : bool or "outside"
        Whether to draw a legend, or a colour bar. A legend of few groups, or on axes of the caller's, is
        inside, unless "outside" is asked for.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's, which a notebook shows.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    matplotlib Axes
    """
    data = Columns.of(scores, background, components, names)
    groups = Labels.of(labels, len(data.values), label_names, colours=colours)
    own = ax is None and len(getattr(groups, "names", ())) > 2
    ax = one_axes(ax, figsize=(5, 4.6))
    drawn = _draw(ax, data, groups)
    if legend and drawn is not None and groups is not None:
        colour_bar(ax, drawn, groups.title)
    if legend:
        beside = drawn is None and (own or legend == "outside")
        _own_legend(ax, len(data.values), outside=beside)
    return saved(ax, save)


def histograms(
    scores: Any,
    labels: Any = None,
    *,
    background: Any = None,
    label_names: Sequence[str] | None = None,
    components: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    axes: Any = None,
    save: str | Path | None = None,
) -> np.ndarray:
    """Scores of both datasets on each pattern, as histograms of the same area.

    The outermost bars hold all rows that lie further out.

    Parameters
    ----------
    scores, labels, background, label_names, components, names
        As of `scatter`; by default all patterns. Labels must be groups.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (n_drawn,)
    """
    data = Columns.of(scores, background, components, names)
    groups = Labels.of(labels, len(data.values), label_names)
    if groups is not None and groups.values is not None:
        raise DataError(
            "labels-scale",
            "`labels` are numbers on a scale",
            "histograms need groups",
            "Cut them into groups, such as by pandas.cut, or use scatter.",
            "labels",
        )
    found = grid(axes, len(data.names), panel=(3.2, 2.6), room=0.4)
    for i, ax in enumerate(found):
        _draw_histogram(ax, data.some(i), groups)
        _small_text(ax)
        if i % 4:
            ax.set_ylabel("")
    _common_legend(list(found))
    return np.asarray(saved(found, save))


def scores(
    values: Any,
    labels: Any = None,
    *,
    background: Any = None,
    label_names: Sequence[str] | None = None,
    components: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    axes: Any = None,
    save: str | Path | None = None,
) -> np.ndarray:
    """Scores of several patterns: one as a histogram, two as a scatter, more as a grid.

    A grid has histograms on its diagonal and scatters of every pair below it; at most five patterns are
    drawn, by default the first.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_components)
        Scores of the foreground.
    labels, background, label_names, components, names
        As of `scatter`.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (n_drawn, n_drawn); of shape (1, 1) for one or two patterns
    """
    data = Columns.of(values, background, components, names)
    groups = Labels.of(labels, len(data.values), label_names)
    count = min(len(data.names), MAX_IN_GRID)
    if count <= 2:
        (ax,) = grid(axes, 1, panel=(5, 4.6))
        _draw(ax, data, groups)
        _legend_or_bar([ax], groups)
        return np.asarray(saved(np.array([[ax]]), save))
    found = grid(axes, count * count, panel=(2.6, 2.6), n_columns=count).reshape(count, count)
    for i, j in np.ndindex(count, count):
        cell: Any = found[i, j]
        if j > i:
            cell.set_axis_off()
            continue
        part = data.some(j) if i == j else data.some(j, i)
        _draw(cell, part, groups)
        _tidy_panel(cell, part.values, first=j == 0 or i == j)
    _legend_or_bar([ax for i, ax in enumerate(found.ravel()) if i % count <= i // count], groups)
    return np.asarray(saved(found, save))


def small_multiples(
    scores: Sequence[Any],
    titles: Sequence[str],
    labels: Any = None,
    *,
    backgrounds: Sequence[Any] | None = None,
    label_names: Sequence[str] | None = None,
    axes: Any = None,
    save: str | Path | None = None,
) -> np.ndarray:
    """The same rows by the scores of several methods, one panel each, with one legend.

    Axes differ between panels, as methods scale their scores differently. A panel's limits hold
    all foreground rows but, at either end, the outermost 0.2 %; so do not read extremes from it.

    Parameters
    ----------
    scores : sequence of array-like of shape (n_samples, n_components) or None
        Of the foreground, one per method; ``None`` leaves the panel empty but for its title.
    titles : sequence of str
    labels : list, array, Series or Categorical of length n_samples, optional
        As of `scatter`. Whole numbers below 0 are rows without a label.
    backgrounds : sequence of array-like or None, optional
        Scores of the background, one per method, drawn in grey beneath.
    label_names : sequence of str, optional
        As of `scatter`.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (n_methods,)
    """
    beneath = [None] * len(scores) if backgrounds is None else list(backgrounds)
    if not len(scores) == len(titles) == len(beneath):
        raise DataError(
            "n-methods",
            f"there are scores of {len(scores)} methods, {len(titles)} titles and {len(beneath)} "
            "backgrounds",
            remedy="Give one of each per method.",
            parameter="scores",
        )
    # first all checks, then the figure
    panels = [
        None if own is None else Columns.of(own, under, _first_two(own))
        for own, under in zip(scores, beneath, strict=True)
    ]
    every = [_groups_of(labels, panel, label_names) for panel in panels]
    found = grid(axes, len(panels), panel=(3.1, 3.3), room=0.5)
    for i, (ax, panel, groups) in enumerate(zip(found, panels, every, strict=True)):
        ax.set_title(titles[i], fontsize=9)
        if panel is None:
            ax.set_axis_off()
            continue
        _draw(ax, panel, groups)
        _tidy_panel(ax, panel.values, first=i % 4 == 0)
    drawn = [i for i, panel in enumerate(panels) if panel is not None]
    if drawn:
        _legend_or_bar([found[i] for i in drawn], every[drawn[0]])
    return np.asarray(saved(found, save))


def comparison(
    found: Comparison, *, background: bool = True, axes: Any = None, save: str | Path | None = None
) -> np.ndarray:
    """Foreground rows by the first two scores of every method compared.

    Parameters
    ----------
    found : Comparison
        From `contrica.compare.compare_methods`.
    background : bool
        Whether to draw the background's rows beneath.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (n_methods,)
    """
    return small_multiples(
        [result.scores for result in found],
        [result.title for result in found],
        found.groups,
        backgrounds=[result.background_scores for result in found] if background else None,
        label_names=found.group_names or None,
        axes=axes,
        save=save,
    )


def _first_two(scores: Any) -> list[int]:
    width = np.shape(scores)[1] if np.ndim(scores) > 1 else 1
    return [1, 2][: max(width, 1)]


def _groups_of(labels: Any, panel: Columns | None, names: Sequence[str] | None) -> Labels | None:
    """Labels of one panel; whole numbers below 0 are none."""
    if panel is None or labels is None:
        return None
    values = np.asarray(labels)
    if values.dtype.kind == "i" and names is None and values.size:
        names = [str(i) for i in range(values.max() + 1)]
    return Labels.of(labels, len(panel.values), names)


# --- drawing on given axes ---


def _draw(ax: Any, data: Columns, groups: Labels | None) -> Any:
    """Points or a histogram; what a colour bar can be made of, where labels are on a scale."""
    if len(data.names) == 1:
        _draw_histogram(ax, data, groups)
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


def _draw_histogram(ax: Any, data: Columns, groups: Labels | None) -> None:
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


def _own_legend(ax: Any, n_rows: int, *, outside: bool) -> None:
    """Beside the axes, or inside."""
    shown = ax.get_legend_handles_labels()[1]
    if shown == ["foreground"]:
        return
    scale = 1.5 * np.sqrt(14 / _size(n_rows))
    if outside:
        draw_legend(ax, [ax], loc="upper left", bbox_to_anchor=(1.01, 1), markerscale=scale)
    else:
        # searching for the best place takes seconds with many points
        draw_legend(ax, [ax], loc="best" if n_rows < 2000 else "upper right", markerscale=scale)


def _small_text(ax: Any) -> None:
    ax.tick_params(labelsize=7)
    ax.locator_params(nbins=6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(8)
        axis.get_offset_text().set_size(7)


def _tidy_panel(ax: Any, points: np.ndarray, *, first: bool) -> None:
    """Small text, and limits that a few far rows do not set."""
    _small_text(ax)
    if not first:
        ax.set_ylabel("")
    if points.shape[1] > 1:
        low, high = np.nanquantile(points[:, :2], [FAR, 1 - FAR], axis=0)
        margin = np.maximum(0.06 * (high - low), np.finfo(float).tiny)
        ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
        ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _legend_or_bar(axes: Sequence[Any], groups: Labels | None) -> None:
    """One colour bar beside all panels, or one legend beneath."""
    mapped = [part for ax in axes for part in ax.collections if part.get_array() is not None]
    if groups is not None and groups.values is not None and mapped:
        colour_bar(list(axes), mapped[0], groups.title)
    _common_legend(axes)


def _common_legend(axes: Sequence[Any]) -> None:
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
