"""How patterns come back when rows or groups are drawn anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.inference._stability import FOUND, Stability
from contrica.plots._canvas import grid, saved
from contrica.plots._colours import COLOURS

__all__ = ["stability"]

# Resamples drawn of one pattern.
MAX_POINTS = 300


def stability(
    result: Stability | Mapping[str, Any], *, axes: Any = None, save: str | Path | None = None
) -> np.ndarray:
    """Stability index of every pattern, over all resamples, and intervals of its ratio.

    Dots are resamples, or fits without one group, where the one that matters most is named.

    Parameters
    ----------
    result : Stability, or mapping with its fields
        From `contrica.inference.stability`; of a mapping only ``index`` is needed.
    axes : array of Axes, Figure or SubFigure, optional
        One panel, or two where ratios have intervals. Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (1,) or (2,)
    """
    fields = dict(result) if isinstance(result, Mapping) else vars(result)
    if "index" not in fields:
        raise DataError(
            "no-index",
            "`result` has no stability index",
            "what stability returned is needed",
            "Pass contrica.inference.stability(model, X, background=Y).",
            "result",
        )
    index = np.asarray(fields["index"], dtype=float)
    count = index.size
    spans = _filled(fields.get("ratio_intervals"), (count, 2))
    found = grid(axes, 1 if spans is None else 2, panel=(4.4, 1.3 + 0.35 * count))
    _draw_index(found[0], index, fields)
    if spans is not None:
        _draw_spans(found[1], spans)
    for ax in found:
        ax.set_ylim(count - 0.5, -0.5)
        ax.spines[["top", "right"]].set_visible(False)
    return np.asarray(saved(found, save))


def _filled(values: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """An array of that shape; None where there is none, or nothing in it."""
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    return array if array.shape == shape and np.isfinite(array).any() else None


def _draw_index(ax: Any, index: np.ndarray, fields: Mapping[str, Any]) -> None:
    places = np.arange(index.size)
    each = np.asarray(fields.get("similarity", ()), dtype=float)
    label = "one resample"
    if each.size == 0:
        each = np.asarray(fields.get("left_out_similarity", ()), dtype=float)
        label = "fit without one group"
        _name_groups(ax, each, fields.get("left_out", ()))
    if each.size:
        some = each[np.linspace(0, len(each) - 1, min(len(each), MAX_POINTS)).astype(int)]
        # places of dots are no chance: the same figure every time
        shift = np.random.default_rng(0).uniform(-0.25, 0.25, some.shape)
        ax.scatter(
            *(some.ravel(), (places + shift).ravel()),
            s=7,
            c=COLOURS[5],
            alpha=0.6,
            linewidths=0,
            label=label,
        )
    ax.scatter(index, places, s=60, marker="D", c=COLOURS[1], label="stability index", zorder=3)
    ax.axvline(FOUND, color="0.4", ls="--", lw=0.8, label=f"returned, from {FOUND:g}")
    low = min(index.min(), np.nanmin(each) if each.size else 1.0)
    ax.set_xlim(min(0.0, low) if low < 0.5 else 0.45, 1.02)
    ax.set_yticks(places, [f"pattern {i + 1}" for i in places])
    ax.set_xlabel("|correlation| of scores")
    ax.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _name_groups(ax: Any, each: np.ndarray, names: Any) -> None:
    """Name the group without which a pattern changes most."""
    if not len(names) or not np.isfinite(each).any(axis=0).all():
        return
    for place, column in enumerate(each.T):
        i = int(np.nanargmin(column))
        ax.annotate(
            f"without {names[i]}",
            (column[i], place),
            xytext=(0, 9),
            textcoords="offset points",
            ha="right" if column[i] > 0.85 else "left",
            fontsize=7,
            color="0.3",
        )


def _draw_spans(ax: Any, spans: np.ndarray) -> None:
    places = np.arange(len(spans))
    ax.hlines(places, *spans.T, color=COLOURS[1], lw=3)
    ax.axvline(1, color="0.4", ls="--", lw=0.8)
    if np.nanmin(spans) > 0:
        ax.set_xscale("log")
    ax.set_yticks(places, [f"pattern {i + 1}" for i in places])
    ax.set_xlabel("k(f), 90 % interval")
