"""Patterns: the variables that lead them, images, and how alike patterns are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.estimators._ranking import ranking_ratio
from contrica.metrics import pattern_cosines
from contrica.plots._canvas import grid, one_axes, saved
from contrica.plots._colours import COLOURS, CONTINUOUS, DIVERGING
from contrica.plots._columns import pattern_numbers

__all__ = ["images", "loadings", "patterns", "similarity"]

POSITIVE, NEGATIVE = COLOURS[1], COLOURS[0]
# Inches of one bar, and characters of a name that is not cut.
BAR, MAX_NAME = 0.2, 28


def loadings(
    pattern: Any,
    names: Sequence[str] | None = None,
    *,
    n_top: int = 15,
    intervals: Any = None,
    ax: Any = None,
    save: str | Path | None = None,
) -> Any:
    """The largest entries of one pattern, by variable.

    Parameters
    ----------
    pattern : array-like of shape (n_features,)
        A row of ``components_`` or of ``effects_``.
    names : sequence of str, optional
        Of the variables; by default x0, x1 and so on.
    n_top : int
        How many to show.
    intervals : array-like of shape (n_features, 2), optional
        Drawn as lines, such as ``stability(…).intervals[0]``.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's, which a notebook shows.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    matplotlib Axes
    """
    values = _numbers(pattern, 1, "pattern")
    shown = _names(names, values.size)
    spans = _spans(intervals, values.size)
    ax = one_axes(ax, figsize=(4, 0.7 + BAR * min(n_top, values.size)))
    top = np.argsort(-np.abs(values), kind="stable")[:n_top][::-1]
    _bars(ax, values[top], [shown[i] for i in top], None if spans is None else spans[top])
    ax.set_xlabel("loading")
    return saved(ax, save)


def patterns(
    model: Any,
    names: Sequence[str] | None = None,
    *,
    n_top: int = 8,
    components: Sequence[int] | None = None,
    intervals: Any = None,
    axes: Any = None,
    save: str | Path | None = None,
) -> np.ndarray:
    """Every pattern by the variables that lead it: those that go up with the score, those that go down.

    Of a fitted model with a background bars are ``effects_``, standard deviations of the background that
    a variable moves with the source; otherwise loadings. With intervals they are loadings too.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_patterns, n_features)
    names : sequence of str, optional
        Of the variables; by default those of the fit.
    n_top : int
        Variables of each pattern, those of largest size.
    components : sequence of int, optional
        Numbers of the patterns, from 1; all by default.
    intervals : Stability, or array-like of shape (n_patterns, n_features, 2), optional
        Of the loadings, as `contrica.inference.stability` returns them.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (n_drawn,)
    """
    intervals = getattr(intervals, "intervals", intervals)
    values, unit = _values_of(model, plain=intervals is not None)
    known = getattr(model, "feature_names_in_", None) if names is None else names
    shown = _names(known, values.shape[1])
    spans = [_spans(each, values.shape[1]) for each in _each(intervals, len(values))]
    titles = _titles(model, len(values))
    drawn = pattern_numbers(components, len(values))
    size = min(n_top, values.shape[1])
    found = grid(axes, len(drawn), panel=(3.2, 0.8 + BAR * size), n_columns=3)
    for ax, i in zip(found, drawn, strict=True):
        top = np.argsort(-np.abs(values[i]), kind="stable")[:size]
        top = top[np.argsort(values[i][top], kind="stable")]  # those that go up above
        span = spans[i]
        _bars(ax, values[i][top], [shown[j] for j in top], None if span is None else span[top])
        ax.set_title(titles[i], fontsize=9)
        ax.set_xlabel(unit, fontsize=8)
        ax.tick_params(labelsize=7)
    return np.asarray(saved(found, save))


def _values_of(model: Any, *, plain: bool) -> tuple[np.ndarray, str]:
    """What is drawn of a model's patterns, and its unit."""
    if not hasattr(model, "components_"):
        return _numbers(model, 2, "model"), "loading"
    effects = None if plain else getattr(model, "effects_", None)
    if effects is None:
        return model.components_, "loading"
    return effects, "standard deviations of the background"


def _titles(model: Any, count: int) -> list[str]:
    titles = [f"pattern {i + 1}" for i in range(count)]
    if not hasattr(model, "components_"):
        return titles
    symbol, ratios = ranking_ratio(model)
    return [
        title if np.isnan(ratio) else f"{title}, {symbol} = {ratio:.3g}"
        for title, ratio in zip(titles, ratios, strict=True)
    ]


def _bars(ax: Any, values: np.ndarray, names: list[str], spans: np.ndarray | None) -> None:
    places = np.arange(len(values))
    ax.barh(places, values, color=[POSITIVE if value > 0 else NEGATIVE for value in values])
    ax.set_yticks(places, [name if len(name) <= MAX_NAME else f"{name[:26]}…" for name in names])
    if spans is not None:
        ax.hlines(places, *spans.T, color="0.2", lw=1.2)
    ax.axvline(0, color="0.3", lw=0.8)
    ax.margins(y=0.02)
    ax.spines[["top", "right"]].set_visible(False)


def images(
    patterns: Any,
    shape: tuple[int, int],
    titles: Sequence[str] | None = None,
    axes: Any = None,
    *,
    save: str | Path | None = None,
) -> np.ndarray:
    """Patterns of image data as images, blue to red about zero.

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, height · width), or a fitted estimator
    shape : (height, width)
    titles : sequence of str, optional
        By default "pattern 1" and so on for a fitted estimator, and none for an array.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (n_patterns,)
    """
    fitted = hasattr(patterns, "components_")
    values = patterns.components_ if fitted else _numbers(patterns, 2, "patterns")
    if len(shape) != 2 or shape[0] * shape[1] != values.shape[1]:
        raise DataError(
            "image-shape",
            f"`shape={tuple(shape)}` is of {int(np.prod(shape))} pixels",
            f"the patterns have {values.shape[1]} variables",
            "Pass (height, width) of the images.",
            "shape",
        )
    if titles is None and fitted:
        titles = [title.replace(", ", "\n") for title in _titles(patterns, len(values))]
    if titles is not None and len(titles) != len(values):
        raise _wrong_number("titles", len(titles), f"there are {len(values)} patterns")
    found = grid(axes, len(values), panel=(1.9, 2.4), n_columns=8)
    for i, (ax, pattern) in enumerate(zip(found, values, strict=True)):
        limit = np.abs(pattern).max()
        ax.imshow(pattern.reshape(shape), cmap=DIVERGING, vmin=-limit, vmax=limit)
        ax.set_axis_off()
        if titles is not None:
            ax.set_title(titles[i], fontsize=9)
    return np.asarray(saved(found, save))


def similarity(
    one: Any,
    other: Any = None,
    *,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
    ax: Any = None,
    save: str | Path | None = None,
) -> Any:
    """How alike patterns are: |cosine| of every pair, of one fit or between two.

    Parameters
    ----------
    one : fitted estimator, or array-like of shape (n_patterns, n_features)
    other : likewise, optional
        Its patterns are the columns; by default those of ``one``.
    names : pair of sequences of str, optional
        Of the patterns of each.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's, which a notebook shows.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    matplotlib Axes
    """
    rows, columns = (_patterns_of(each) for each in (one, one if other is None else other))
    if rows.shape[1] != columns.shape[1]:
        raise DataError(
            "n-variables",
            f"the patterns are over {rows.shape[1]} and {columns.shape[1]} variables",
            "both fits must be over the same variables",
            "Fit the same columns in both.",
            "other",
        )
    cosines = pattern_cosines(_unit(rows).T, _unit(columns).T)
    labels = names or tuple([f"pattern {i + 1}" for i in range(size)] for size in cosines.shape)
    for given, size in zip(labels, cosines.shape, strict=True):
        if len(given) != size:
            raise _wrong_number("names", len(given), f"there are {size} patterns")
    n_rows, n_columns = cosines.shape
    ax = one_axes(ax, figsize=(2.2 + 0.55 * n_columns, 1.4 + 0.5 * n_rows))
    drawn = ax.imshow(cosines, cmap=CONTINUOUS, vmin=0, vmax=1, aspect="auto")
    ax.set_yticks(range(n_rows), labels[0])
    turned = {} if n_columns <= 3 else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(n_columns), labels[1], **turned)
    if cosines.size <= 400:
        for (i, j), value in np.ndenumerate(cosines):
            colour = "white" if value < 0.6 else "black"
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
    ax.figure.colorbar(drawn, ax=ax, shrink=0.8).set_label("|cosine|")
    return saved(ax, save)


# --- what was given ---


def _patterns_of(given: Any) -> np.ndarray:
    return (
        np.asarray(given.components_)
        if hasattr(given, "components_")
        else _numbers(given, 2, "one")
    )


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)


def _numbers(given: Any, n_dimensions: int, parameter: str) -> np.ndarray:
    values = np.asarray(given)
    if values.dtype.kind not in "iuf" or values.ndim != n_dimensions or 0 in values.shape:
        what = (
            "a table of numbers, patterns by variables" if n_dimensions == 2 else "a row of numbers"
        )
        raise DataError(
            "pattern-shape",
            f"`{parameter}` has shape {values.shape} and type {values.dtype}",
            f"{what}, is needed" if n_dimensions == 2 else f"{what} is needed",
            "Pass components_ of a fitted model, or one of its rows.",
            parameter,
        )
    return values.astype(float)


def _names(names: Any, count: int) -> list[str]:
    if names is None:
        return [f"x{i}" for i in range(count)]
    if len(names) != count:
        raise _wrong_number("names", len(names), f"there are {count} variables")
    return [str(name) for name in names]


def _spans(intervals: Any, count: int) -> np.ndarray | None:
    if intervals is None:
        return None
    values = np.asarray(intervals, dtype=float)
    if values.shape != (count, 2):
        raise DataError(
            "intervals-shape",
            f"`intervals` of a pattern has shape {values.shape}",
            f"there are {count} variables, with a lower and an upper end each",
            "Pass intervals of what stability returned.",
            "intervals",
        )
    return values


def _each(intervals: Any, count: int) -> list[Any]:
    if intervals is None:
        return [None] * count
    if len(intervals) != count:
        raise _wrong_number("intervals", len(intervals), f"there are {count} patterns")
    return list(intervals)


def _wrong_number(parameter: str, got: int, needed: str) -> DataError:
    return DataError(
        f"n-{parameter}", f"`{parameter}` has length {got}", needed, "Give one for each.", parameter
    )
