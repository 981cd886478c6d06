"""Pieces of the page that several views are made of, as HTML that is escaped by construction.

What changes is sent as text and put into its place by the page's script, not as components of Dash: a
thousand of these take the browser seconds, each time.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from contrica.explorer._explorer import Explorer
from contrica.explorer._state import ViewState
from contrica.report._html import Html, element, png_source
from contrica.report._pictures import pattern_png

__all__ = [
    "button",
    "called",
    "helped",
    "image",
    "joined",
    "names_of",
    "note",
    "signed",
    "stale",
    "track",
]


def joined(*parts: Any) -> Html:
    """Elements one after the other; what is not HTML is escaped, ``None`` left out.

    Parameters
    ----------
    *parts : Html, str, None or list of these

    Returns
    -------
    Html

    Examples
    --------
    >>> joined("a < b", None, [element("hr")])
    'a &lt; b<hr>'
    """
    return Html(element("div", *parts).removeprefix("<div>").removesuffix("</div>"))


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


def button(
    inside: Any,
    look: str = "",
    *,
    label: str = "",
    pressed: bool | None = None,
    says: dict[str, Any] | None = None,
    **more: Any,
) -> Html:
    """A button; the page's script makes the edit that it says.

    Parameters
    ----------
    inside : str, Html or list of these
    look : str
        Classes of the style sheet.
    label : str
        What it does, where that is not what it shows.
    pressed : bool, optional
        Of a switch.
    says : dict, optional
        An edit, as `contrica.explorer._desk.Desk.make` takes it.
    **more : object
        Attributes; those with hyphens have underscores here.

    Returns
    -------
    Html
    """
    named = {
        "title": label or None,
        "aria_label": label or None,
        "aria_pressed": None if pressed is None else str(pressed).lower(),
        "data_edit": None if says is None else json.dumps(says),
    }
    return element(
        "button", inside, type="button", class_=f"button {look}".strip(), **{**named, **more}
    )


def helped(text: str, key: str) -> Html:
    """A word that can be asked what it means.

    Parameters
    ----------
    text : str
    key : str
        Of `contrica.explorer._texts.HELP`.

    Returns
    -------
    Html
    """
    return element("button", text, type="button", class_="help", data_help=key)


def note(*words: Any) -> Html:
    """A remark."""
    return element("p", *words, class_="note")


def stale() -> Html:
    """The mark of what was computed of other patterns."""
    return element("span", helped("stale", "stale"), class_="stale")


def image(pattern: np.ndarray, shape: tuple[int, int], told: str) -> Html:
    """A pattern of image data.

    Parameters
    ----------
    pattern : ndarray of shape (height · width,)
    shape : (int, int)
    told : str
        What it is of.

    Returns
    -------
    Html
    """
    alt = f"{told} as an image: vermilion above zero, blue below"
    return element("img", src=png_source(pattern_png(np.asarray(pattern), shape)), alt=alt)


def track(
    value: float,
    low: float,
    reach: float,
    interval: tuple[float, float] = (float("nan"), float("nan")),
    kind: str = "",
) -> Html:
    """A bar from zero, in a track that begins at ``low`` and is ``reach`` long, and its interval.

    Parameters
    ----------
    value, low, reach : float
    interval : (float, float)
        NaN where it is not known.
    kind : str
        Its class; by default that of its sign.

    Returns
    -------
    Html
    """

    def placed(tag: str, start: float, end: float, class_: str | None = None) -> Html:
        left, width = 100 * (start - low) / reach, 100 * (end - start) / reach
        return element(tag, style=f"left:{left:.1f}%;width:{width:.1f}%", class_=class_)

    bar = placed("b", min(value, 0.0), max(value, 0.0), kind or ("minus" if value < 0 else "plus"))
    whisker = None
    if all(np.isfinite(interval)):
        whisker = placed("i", min(interval), max(interval))
    return element("div", bar, placed("u", 0.0, 0.0), whisker, class_="track", aria_hidden="true")


def signed(value: float) -> str:
    """A number with its sign and few digits.

    Parameters
    ----------
    value : float

    Returns
    -------
    str

    Examples
    --------
    >>> signed(0.53), signed(-0.0213), signed(1e-17), signed(float("nan"))
    ('+0.53', '-0.021', '0', '–')
    """
    if not np.isfinite(value):
        return "–"
    if abs(value) < 5e-4:
        return "0"
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.2g}"
