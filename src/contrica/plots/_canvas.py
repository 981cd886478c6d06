"""Where plots are drawn: axes of the caller's, of pyplot, or of a figure without a display."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import PackageMissingError, ParameterError, unmarked
from contrica.output import output_file

__all__ = ["grid", "new_figure", "one_axes", "saved", "without_pyplot"]

_pyplot: ContextVar[bool] = ContextVar("pyplot", default=True)
# Of figures that are saved, in dots per inch.
RESOLUTION = 150


def new_figure(**size: Any) -> Any:
    """A matplotlib figure that belongs to no display: pyplot does not know it.

    Parameters
    ----------
    **size
        As of ``matplotlib.figure.Figure``.

    Returns
    -------
    matplotlib Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "plots need matplotlib",
            remedy="Install it: pip install 'contrica[plots]'.",
        ) from error
    return Figure(layout="constrained", **size)


@contextmanager
def without_pyplot() -> Iterator[None]:
    """Draw on figures without a display in a block, where no axes are given.

    A script that writes many figures, or a server, needs no pyplot, which keeps every figure until it is
    closed.

    Examples
    --------
    >>> with without_pyplot():
    ...     ax = one_axes(None, figsize=(4, 3))
    >>> ax.figure.canvas.manager is None
    True
    """
    token = _pyplot.set(False)
    try:
        yield
    finally:
        _pyplot.reset(token)


def _figure(figsize: tuple[float, float]) -> Any:
    if not _pyplot.get():
        return new_figure(figsize=figsize)
    new_figure()  # says what to install where matplotlib is missing
    from matplotlib import pyplot

    # notebooks show figures of pyplot, and of nothing else
    return pyplot.figure(figsize=figsize, layout="constrained")


def one_axes(ax: Any, *, figsize: tuple[float, float]) -> Any:
    """The axes given, or new ones.

    Parameters
    ----------
    ax : matplotlib Axes or None
    figsize : (float, float)
        Of a new figure, in inches.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        return _figure(figsize).subplots()
    if not hasattr(ax, "get_xaxis"):
        raise ParameterError(
            "not-axes",
            f"`ax` is of type {type(ax).__name__}",
            "one matplotlib Axes is needed",
            "Pass what `subplots` of pyplot returned, or leave it out.",
            "ax",
        )
    return ax


def grid(
    axes: Any,
    count: int,
    *,
    panel: tuple[float, float],
    n_columns: int = 4,
    room: float = 0.0,
) -> np.ndarray:
    """As many axes as asked for: those given, or of a figure given, or new ones.

    Parameters
    ----------
    axes : array of Axes, Figure, SubFigure or None
    count : int
    panel : (float, float)
        Width and height of one panel of a new figure, in inches.
    n_columns : int
        Panels side by side, at most.
    room : float
        Height besides the panels, such as for a legend.

    Returns
    -------
    ndarray of Axes, shape (count,)
    """
    wide = min(count, n_columns)
    high = -(-count // wide)
    if axes is None:
        axes = _figure((panel[0] * wide, panel[1] * high + room))
    if hasattr(axes, "subplots"):
        axes = axes.subplots(high, wide, squeeze=False)
        for spare in axes.ravel()[count:]:
            spare.set_axis_off()
        return np.asarray(axes.ravel()[:count])
    given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if given.size < count or not all(hasattr(ax, "get_xaxis") for ax in given):
        raise ParameterError(
            "n-axes",
            f"`axes` has {given.size} element(s)",
            f"{count} matplotlib Axes are needed",
            "Pass as many, or a figure, or leave it out.",
            "axes",
        )
    return given[:count]


def saved(axes: Any, save: str | Path | None) -> Any:
    """The axes, after their figure was written where that is asked for.

    Parameters
    ----------
    axes : Axes or array of Axes
    save : path or None
        A file of that name is replaced, once the new one is complete. Its ending says the format.

    Returns
    -------
    The axes.
    """
    if save is None:
        return axes
    first = axes.ravel()[0] if isinstance(axes, np.ndarray) else axes
    figure = first.figure
    while getattr(figure, "figure", figure) is not figure:  # a part of a figure
        figure = figure.figure
    kind = Path(save).suffix.lower().lstrip(".")
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise ParameterError(
            "file-type",
            f"{unmarked(save)} ends in {f'.{kind}' if kind else 'no file type'}",
            f"figures are written as {', '.join(sorted(known))}",
            "Name such a file.",
            "save",
        )
    with output_file(save, overwrite=True) as path:
        figure.savefig(path, dpi=RESOLUTION, format=kind)
    return axes
