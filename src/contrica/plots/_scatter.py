"""Scores of rows: a scatter, a histogram, a grid of both, and one panel for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrica.compare import Comparison
from contrica.errors import DataError
from contrica.plots._canvas import grid, one_axes, saved
from contrica.plots._colours import Labels, colour_bar
from contrica.plots._columns import Columns
from contrica.plots._panels import (
    common_legend,
    draw_histogram,
    draw_rows,
    legend_or_bar,
    own_legend,
    small_text,
    tidy_panel,
)

__all__ = ["comparison", "histograms", "scatter", "scores", "small_multiples"]

# Patterns in one grid.
MAX_IN_GRID = 5


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
    drawn = draw_rows(ax, data, groups)
    if legend and drawn is not None and groups is not None:
        colour_bar(ax, drawn, groups.title)
    if legend:
        beside = drawn is None and (own or legend == "outside")
        own_legend(ax, len(data.values), outside=beside)
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
        draw_histogram(ax, data.some(i), groups)
        small_text(ax)
        if i % 4:
            ax.set_ylabel("")
    common_legend(list(found))
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
        draw_rows(ax, data, groups)
        legend_or_bar([ax], groups)
        return np.asarray(saved(np.array([[ax]]), save))
    found = grid(axes, count * count, panel=(2.6, 2.6), n_columns=count).reshape(count, count)
    for i, j in np.ndindex(count, count):
        cell: Any = found[i, j]
        if j > i:
            cell.set_axis_off()
            continue
        part = data.some(j) if i == j else data.some(j, i)
        draw_rows(cell, part, groups)
        tidy_panel(cell, part.values, first=j == 0 or i == j)
    legend_or_bar([ax for i, ax in enumerate(found.ravel()) if i % count <= i // count], groups)
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
        draw_rows(ax, panel, groups)
        tidy_panel(ax, panel.values, first=i % 4 == 0)
    drawn = [i for i, panel in enumerate(panels) if panel is not None]
    if drawn:
        legend_or_bar([found[i] for i in drawn], every[drawn[0]])
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
