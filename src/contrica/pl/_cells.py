"""Cells: by their scores, by donor, and by the expression of leading genes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contrica import plots
from contrica.errors import ParameterError
from contrica.pl._stored import (
    Stored,
    as_numbers,
    coloured_by,
    column_of,
    expression_of,
    finished,
)
from contrica.plots._canvas import grid, one_axes
from contrica.plots._colours import BACKGROUND, DIVERGING, FOREGROUND, Labels, colour_bar
from contrica.plots._columns import pattern_numbers
from contrica.plots._groups import draw_boxes
from contrica.tl._selection import check_known

__all__ = ["cica", "groups", "heatmap"]

# Cells in a heatmap.
MAX_CELLS = 2000
# Standard deviations of expression at the ends of the scale.
MAX_DEVIATION = 2.5


def cica(
    adata: Any,
    *,
    key: str = "cica",
    color: str | Sequence[str] | None = None,
    components: Any = None,
    background: bool = True,
    layer: str | None = None,
    ax: Any = None,
    show: bool | None = None,
    save: Any = None,
) -> Any:
    """Cells of the foreground by their scores on two patterns, those of the background grey beneath.

    Parameters
    ----------
    adata : AnnData
        After `contrica.tl.cica`.
    key : str, default="cica"
        What `contrica.tl.cica` was told as ``key_added``.
    color : str or list of str, optional
        Column of ``adata.obs``, or gene; of several there is one panel each.
    components : (int, int) or str, optional
        Numbers of the patterns, from 1, ``(1, 3)`` or ``"1,3"``; the first two by default. One pattern
        alone is drawn as a histogram.
    background : bool, default=True
        Whether to draw cells of the background.
    layer : str or None, default=None
        Layer that the expression of a gene is taken from.
    ax : Axes, array of Axes or Figure, optional
        As many as there are panels. Without, a new figure of pyplot's.
    show : bool or None, default=None
        As in scanpy; where a figure is shown, nothing is returned.
    save : bool, str, path or None, default=None
        As in scanpy: text is the end of a file's name in ``sc.settings.figdir``. A path is a file.

    Returns
    -------
    Axes, or ndarray of Axes for a list of colours, or None
    """
    stored = Stored.of(adata, key)
    numbers = as_numbers(components, stored.scores.shape[1])
    drawn = pattern_numbers(numbers, stored.scores.shape[1])[:2]
    colours = [color] if color is None or isinstance(color, str) else list(color)
    every = [None if each is None else coloured_by(adata, each, layer) for each in colours]
    found = grid(ax, len(colours), panel=(5.2, 4.4), n_columns=3)
    for panel, labels in zip(found, every, strict=True):
        plots.scatter(
            stored.scores[stored.fore][:, drawn],
            None if labels is None else _some(labels, stored.fore),
            background=stored.scores[stored.back][:, drawn] if background else None,
            names=[stored.names[i] for i in drawn],
            legend=True if ax is not None else "outside",
            ax=panel,
        )
        if labels is not None:
            panel.set_title(labels.title)
    axes = found[0] if color is None or isinstance(color, str) else found
    return finished(axes, key, ax, show, save)


def _some(labels: Labels, cells: np.ndarray) -> Labels:
    """Labels of some cells."""
    if labels.values is not None:
        return labels._replace(values=labels.values[cells])
    return labels._replace(numbers=labels.numbers[cells])


def groups(
    adata: Any,
    *,
    key: str = "cica",
    component: int = 1,
    groups: str | None = None,
    condition: str | None = None,
    ax: Any = None,
    show: bool | None = None,
    save: Any = None,
) -> Any:
    """Scores on one pattern by donor and condition, of foreground and background.

    A pattern of the condition moves in every donor. One that moves in a single donor may be its own.

    Parameters
    ----------
    adata : AnnData
        After `contrica.tl.cica`.
    key : str, default="cica"
    component : int, default=1
        Number of the pattern, from 1.
    groups : str or None, default=None
        Column of ``adata.obs`` along the axis, such as the donor; ``None``: ``groups`` of the fit.
    condition : str or None, default=None
        Column of ``adata.obs`` that colours; ``None``: ``groupby`` of the fit.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's.
    show, save
        As of `cica`.

    Returns
    -------
    Axes or None
    """
    stored = Stored.of(adata, key)
    asked = stored.entry["params"]
    along = groups if groups is not None else str(asked["groups"])
    if not along:
        raise ParameterError(
            "no-groups",
            "the fit had no groups, and `groups` was not given",
            "a column of adata.obs is needed",
            "Pass `groups=donor`, or what your column is called.",
            "groups",
        )
    by = condition if condition is not None else str(asked["groupby"])
    check_known("groups", along, adata.obs.columns, "adata.obs")
    check_known("condition", by, adata.obs.columns, "adata.obs")
    (number,) = pattern_numbers([component], stored.scores.shape[1])
    cells = stored.fore | stored.back
    places, kinds = _levels(adata, along, cells), _levels(adata, by, cells)
    ax, given = one_axes(ax, figsize=(2.6 + 0.45 * len(places.names), 3.6)), ax
    draw_boxes(ax, stored.scores[cells, number], places, kinds)
    ax.set_xlabel(along)
    ax.set_ylabel(stored.names[number])
    return finished(ax, f"{key}_groups", given, show, save)


def _levels(adata: Any, column: str, cells: np.ndarray) -> Labels:
    """Levels of a column among some cells; those without any are left out."""
    import pandas as pd

    values = adata.obs[column]
    if not hasattr(values, "cat"):
        values = pd.Series(pd.Categorical(values), index=values.index)
    found = Labels.of(values, adata.n_obs)
    if found is None:  # a column always has labels
        return Labels(np.empty(0, dtype=int), ())
    colours = column_of(adata, column).colours or found.colours
    numbers = found.numbers[cells]
    used = np.unique(numbers[numbers >= 0])
    number = np.full(len(found.names) + 1, -1)
    number[used] = np.arange(used.size)
    return Labels(
        number[numbers],
        tuple(found.names[i] for i in used),
        None,
        column,
        tuple(colours[i] for i in used),
    )


def heatmap(
    adata: Any,
    *,
    key: str = "cica",
    component: int = 1,
    n_genes: int = 20,
    groupby: str | None = None,
    layer: str | None = None,
    ax: Any = None,
    show: bool | None = None,
    save: Any = None,
) -> Any:
    """Expression of the genes that lead a pattern: of cells in the order of their scores, or by level.

    Genes are standardised over the cells of foreground and background, and in the order of their effect:
    those that go up with the score above. At most 2000 cells are drawn, evenly spread over the order.

    Parameters
    ----------
    adata : AnnData
        After `contrica.tl.cica`, over genes.
    key : str, default="cica"
    component : int, default=1
        Number of the pattern, from 1.
    n_genes : int, default=20
        Genes of largest effect.
    groupby : str or None, default=None
        Column of ``adata.obs``: draw means of its levels in place of cells.
    layer : str or None, default=None
        Layer that expression is taken from; ``None``: that of the fit.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's.
    show, save
        As of `cica`.

    Returns
    -------
    Axes or None
    """
    stored = Stored.of(adata, key)
    asked = stored.entry["params"]
    if str(asked["use_rep"]):
        raise ParameterError(
            "no-genes",
            f"the fit was of `use_rep={asked['use_rep']}`, not of genes",
            "a heatmap shows genes",
            "Run contrica.tl.cica without `use_rep`.",
            "key",
        )
    if groupby is not None:
        check_known("groupby", groupby, adata.obs.columns, "adata.obs")
    (number,) = pattern_numbers([component], stored.scores.shape[1])
    effects = np.asarray(stored.entry["effects"], dtype=float)[number]
    top = np.argsort(-np.abs(effects), kind="stable")[:n_genes]
    top = top[np.argsort(-effects[top], kind="stable")]
    names = [str(stored.entry["variables"][i]) for i in top]
    cells = stored.fore | stored.back
    values = expression_of(adata, names, layer or str(asked["layer"]) or None)[cells]
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1)
    height = 1.3 + 0.19 * len(names)
    if groupby is None:
        ax, given = one_axes(ax, figsize=(6.4, height)), ax
        above = _draw_cells(ax, values, stored.scores[cells, number], stored.fore[cells])
        above.set_title(stored.names[number], fontsize=10)
    else:
        levels = _levels(adata, groupby, cells)
        ax, given = one_axes(ax, figsize=(2.6 + 0.4 * len(levels.names), height)), ax
        _draw_levels(ax, values, levels)
        ax.set_title(stored.names[number], fontsize=10)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    return finished(ax, f"{key}_heatmap", given, show, save)


def _draw_cells(ax: Any, values: np.ndarray, scores: np.ndarray, fore: np.ndarray) -> Any:
    """Cells in the order of their scores, with dataset and scores above; the axes of these."""
    order = np.argsort(scores, kind="stable")
    order = order[np.linspace(0, order.size - 1, min(order.size, MAX_CELLS)).astype(int)]
    _draw_values(ax, values[order].T)
    ax.set_xticks([])
    ax.set_xlabel(f"{order.size} of {scores.size} cells, by score")
    strip = ax.inset_axes((0, 1.01, 1, 0.04))
    strip.set_xlim(0, order.size)
    for label, own, colour in (
        ("foreground", fore[order], FOREGROUND),
        ("background", ~fore[order], BACKGROUND),
    ):
        strip.vlines(np.flatnonzero(own) + 0.5, 0, 1, color=colour, lw=0.6, label=label)
    strip.set_axis_off()
    above = ax.inset_axes((0, 1.06, 1, 0.14))
    above.plot(np.arange(order.size) + 0.5, scores[order], color="0.2", lw=1)
    above.set_xlim(0, order.size)
    above.set_xticks([])
    above.tick_params(labelsize=7)
    above.set_ylabel("score", fontsize=8)
    above.spines[["top", "right"]].set_visible(False)
    handles, shown = strip.get_legend_handles_labels()
    legend = above.legend(
        handles, shown, fontsize=7, frameon=False, loc="upper left", handlelength=1
    )
    for handle in legend.legend_handles:
        handle.set_linewidth(5)
    return above


def _draw_levels(ax: Any, values: np.ndarray, levels: Labels) -> None:
    means = np.array([values[levels.numbers == i].mean(axis=0) for i in range(len(levels.names))])
    _draw_values(ax, means.T)
    turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(levels.names)), levels.names, fontsize=8, **turned)
    ax.set_xlabel(levels.title)


def _draw_values(ax: Any, values: np.ndarray) -> None:
    limit = min(MAX_DEVIATION, float(np.abs(values).max()) or 1.0)
    drawn = ax.imshow(
        values,
        aspect="auto",
        cmap=DIVERGING,
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
    )
    colour_bar(ax, drawn, "expression, standardised")
