"""Pieces of the page that several views are made of."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from dash import html

from contrica.explorer._explorer import Explorer
from contrica.explorer._state import ViewState
from contrica.report._html import png_source
from contrica.report._pictures import pattern_png

__all__ = [
    "attributes",
    "button",
    "called",
    "helped",
    "image",
    "names_of",
    "signed",
    "stale",
    "track",
]


def attributes(**named: Any) -> dict[str, Any]:
    """Attributes whose names have hyphens, of an element.

    Parameters
    ----------
    **named : str
        With underscores for the hyphens.

    Returns
    -------
    dict of str to object

    Examples
    --------
    >>> attributes(aria_label="Undo")
    {'aria-label': 'Undo'}
    """
    return {name.replace("_", "-"): value for name, value in named.items()}


def called(index: int, name: str) -> str:
    """A pattern's name, or its number.

    Parameters
    ----------
    index : int
        From 0.
    name : str

    Returns
    -------
    str
    """
    return name or f"pattern {index + 1}"


def button(
    inside: Any,
    look: str = "",
    *,
    label: str = "",
    pressed: bool | None = None,
    says: dict[str, Any] | None = None,
    **more: Any,
) -> Any:
    """A button; the page's script makes the edit that it says.

    Parameters
    ----------
    inside : str, component or list of these
    look : str
        Classes of the style sheet.
    label : str
        What it does, where that is not what it shows.
    pressed : bool, optional
        Of a switch.
    says : dict, optional
        An edit, as `contrica.explorer._desk.Desk.make` takes it.
    **more : object
        Of the element; names of attributes with hyphens have underscores here.

    Returns
    -------
    Component
    """
    own: dict[str, Any] = {"title": label, "aria-label": label} if label else {}
    if pressed is not None:
        own["aria-pressed"] = str(pressed).lower()
    if says is not None:
        own["data-edit"] = json.dumps(says)
    named = {name: more.pop(name) for name in list(more) if name.startswith(("aria_", "data_"))}
    classes = f"button {look}".strip()
    return html.Button(
        inside, type="button", className=classes, **{**own, **more, **attributes(**named)}
    )


def helped(text: str, key: str) -> Any:
    """A word that can be asked what it means."""
    return html.Button(text, type="button", className="help", **attributes(data_help=key))


def names_of(explorer: Explorer, state: ViewState) -> list[str]:
    """What the patterns of a fit are called.

    Parameters
    ----------
    explorer : Explorer
    state : ViewState

    Returns
    -------
    list of str
    """
    edits, _ = explorer.edits(state)
    return [called(i, each.name) for i, each in enumerate(edits)]


def stale() -> Any:
    """The mark of what was computed of other patterns."""
    return html.Span(helped("stale", "stale"), className="stale")


def image(pattern: np.ndarray, shape: tuple[int, int], told: str) -> Any:
    """A pattern of image data.

    Parameters
    ----------
    pattern : ndarray of shape (height · width,)
    shape : (int, int)
    told : str
        What it is of.

    Returns
    -------
    Component
    """
    alt = f"{told} as an image: vermilion above zero, blue below"
    return html.Img(src=png_source(pattern_png(np.asarray(pattern), shape)), alt=alt)


def track(
    value: float,
    low: float,
    reach: float,
    interval: tuple[float, float] = (float("nan"), float("nan")),
    kind: str = "",
) -> Any:
    """A bar from zero, in a track that begins at ``low`` and is ``reach`` long, and its interval."""

    def placed(start: float, end: float) -> dict[str, str]:
        return {
            "left": f"{100 * (start - low) / reach:.1f}%",
            "width": f"{100 * (end - start) / reach:.1f}%",
        }

    look = kind or ("minus" if value < 0 else "plus")
    parts: list[Any] = [html.B(className=look, style=placed(min(value, 0.0), max(value, 0.0)))]
    parts.append(html.U(style=placed(0.0, 0.0)))
    if all(np.isfinite(interval)):
        parts.append(html.I(style=placed(*sorted(interval))))
    return html.Div(parts, className="track", **attributes(aria_hidden="true"))


def signed(value: float) -> str:
    """A number with its sign and few digits."""
    if not np.isfinite(value):
        return "–"
    if abs(value) < 5e-4:
        return "0"
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.2g}"
