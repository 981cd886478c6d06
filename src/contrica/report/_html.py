"""HTML that is escaped by construction: text becomes HTML in one place only."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

__all__ = ["Html", "element", "json_script", "png_source"]

# Elements without content, which have no end tag.
VOID = ("br", "col", "hr", "img", "input", "meta")


class Html(str):
    """Text that is HTML already. Every other text is escaped when it becomes part of a page."""


def element(tag: str, /, *children: Any, **attributes: Any) -> Html:
    """One element with its children.

    Parameters
    ----------
    tag : str
    *children : Html, str, number, None or list of these
        What is not `Html` is escaped; ``None`` is left out.
    **attributes : str, number, bool or None
        Escaped too. An underscore stands for a hyphen, at the end it is dropped (``class_``). ``True`` is
        an attribute without a value; ``None`` and ``False`` leave it out.

    Returns
    -------
    Html

    Examples
    --------
    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    opened = tag + "".join(
        _attribute(name, value)
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    inside = "".join(_text(child) for child in children)
    return Html(f"<{opened}>" if tag in VOID else f"<{opened}>{inside}</{tag}>")


def _attribute(name: str, value: Any) -> str:
    name = name.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def _text(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, list | tuple):
        return "".join(_text(each) for each in child)
    return child if isinstance(child, Html) else html.escape(str(child))


def json_script(name: str, data: Any) -> Html:
    """Data for the page's script, as JSON that cannot end the element it is in.

    Parameters
    ----------
    name : str
        The element's id.
    data : object

    Returns
    -------
    Html
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Html(text), id=name, type="application/json")


def png_source(png: bytes) -> str:
    """A picture as the source of an ``img``.

    Parameters
    ----------
    png : bytes

    Returns
    -------
    str
    """
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
