"""Scores by group, such as by donor, and dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.plots._canvas import one_axes, saved
from contrica.plots._colours import FOREGROUND, Labels, legend
from contrica.plots._columns import Columns

__all__ = ["draw_boxes", "groups"]

# Points drawn of one group.
MAX_POINTS = 200


def groups(
    scores: Any,
    groups: Any,
    *,
    background: Any = None,
    background_groups: Any = None,
    component: int = 1,
    name: str | None = None,
    ax: Any = None,
    save: str | Path | None = None,
) -> Any:
    """Scores on one pattern by group, of both datasets side by side.

    Boxes are quartiles with the median; lines reach to 1.5 times their height. Dots are rows, at most 200
    of each group.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        Of the foreground.
    groups : array-like of shape (n_samples,)
        Such as the donor of every row.
    background : array-like of shape (n_background_samples, n_components), optional
    background_groups : array-like of shape (n_background_samples,), optional
        Needed with ``background``.
    component : int
        Number of the pattern, from 1.
    name : str, optional
        Of the score; by default the column of a data frame, or "pattern 1" and so on.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's, which a notebook shows.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    matplotlib Axes
    """
    data = Columns.of(scores, background, [component], None if name is None else [name])
    fore = _groups(groups, len(data.values), "groups")
    values, names, sets = [data.values[:, 0]], [fore], [np.zeros(len(fore), dtype=int)]
    if data.background is not None:
        if background_groups is None:
            raise DataError(
                "no-groups",
                "`background` was given without `background_groups`",
                "every row needs a group",
                "Pass the group of every row of the background.",
                "background_groups",
            )
        back = _groups(background_groups, len(data.background), "background_groups")
        values.append(data.background[:, 0])
        names.append(back)
        sets.append(np.ones(len(back), dtype=int))
    order = tuple(dict.fromkeys([*_ordered(groups, fore), *np.unique(np.concatenate(names))]))
    number = {each: i for i, each in enumerate(order)}
    place = np.array([number[each] for each in np.concatenate(names)])
    kinds = Labels(
        np.concatenate(sets), ("foreground", "background"), None, "", (FOREGROUND, "0.6")
    )
    ax = one_axes(ax, figsize=(2.4 + 4.2 * len(order) / (6 + 0.4 * len(order)), 3.6))
    draw_boxes(ax, np.concatenate(values), Labels(place, order), kinds)
    ax.set_ylabel(data.names[0])
    return saved(ax, save)


def _groups(given: Any, n_rows: int, parameter: str) -> np.ndarray:
    """Names of the groups of all rows."""
    found = Labels.of(_as_groups(given), n_rows, parameter=parameter)
    if found is None or (found.numbers < 0).any():
        missing = n_rows if found is None else int(np.sum(found.numbers < 0))
        raise DataError(
            "no-group",
            f"{missing} of {n_rows} rows have no group in `{parameter}`",
            "every row needs one",
            "Leave those rows out, or name their groups.",
            parameter,
        )
    return np.array(found.names, dtype=object)[found.numbers]


def _as_groups(given: Any) -> Any:
    """Numbers as text, whatever their values: they are names here. Categories keep their order."""
    if given is None or hasattr(getattr(given, "dtype", None), "categories"):
        return given
    values = np.asarray(given)
    return values.astype(str) if values.dtype.kind in "iu" else values


def _ordered(given: Any, names: np.ndarray) -> tuple[str, ...]:
    """The groups in the order of their categories, numbers or letters."""
    found = Labels.of(_as_groups(given), len(names))
    used = set(names)
    return () if found is None else tuple(name for name in found.names if name in used)


def draw_boxes(ax: Any, values: np.ndarray, places: Labels, kinds: Labels) -> None:
    """Boxes of values by place, those of several kinds side by side.

    Parameters
    ----------
    ax : matplotlib Axes
    values : ndarray of shape (n_rows,)
    places, kinds : Labels
        Of every row; a kind has a colour.
    """
    used = [k for k in range(len(kinds.names)) if (kinds.numbers == k).any()]
    pairs = set(zip(places.numbers.tolist(), kinds.numbers.tolist(), strict=True))
    paired = len(pairs) > len(places.names)  # otherwise every place has one kind, in its middle
    width = 0.8 / len(used) if paired else 0.7
    # places of dots are no chance: the same figure every time
    rng = np.random.default_rng(0)
    for i, k in enumerate(used):
        colour = kinds.colours[k]
        shift = (i - (len(used) - 1) / 2) * width * paired
        rows = [
            values[(kinds.numbers == k) & (places.numbers == g) & np.isfinite(values)]
            for g in range(len(places.names))
        ]
        at = [g for g, own in enumerate(rows) if own.size]
        ax.boxplot(
            [rows[g] for g in at],
            positions=[g + shift for g in at],
            widths=0.8 * width,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": colour, "alpha": 0.45, "linewidth": 0.8},
            medianprops={"color": "black"},
            whiskerprops={"color": "0.4"},
            capprops={"color": "0.4"},
        )
        drawn = [_some(rows[g]) for g in at]
        across = [
            g + shift + rng.uniform(-0.25, 0.25, own.size) * width
            for g, own in zip(at, drawn, strict=True)
        ]
        ax.scatter(
            *(np.concatenate(across), np.concatenate(drawn)),
            s=4,
            c=colour,
            linewidths=0,
            alpha=0.7,
            zorder=3,
            label=kinds.names[k],
        )
    longest = max(len(name) for name in places.names)
    turned = longest * len(places.names) > 24
    more: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    ax.set_xticks(range(len(places.names)), places.names, **more)
    ax.set_xlim(-0.6, len(places.names) - 0.4)
    ax.axhline(0, color="0.8", lw=0.8, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    if len(used) > 1:
        legend(ax, [ax], loc="upper left", bbox_to_anchor=(1.01, 1), markerscale=3)


def _some(values: np.ndarray) -> np.ndarray:
    """At most so many values, evenly spread over the sorted ones: the extremes are among them."""
    if values.size <= MAX_POINTS:
        return values
    return np.sort(values)[np.linspace(0, values.size - 1, MAX_POINTS).astype(int)]
