"""Small HTML for notebooks: escaped tables, bars, and text that a notebook shows as a table.

Nothing is loaded from elsewhere. Text has the colour of the notebook, dark or light.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["Markup", "Summary", "bars", "frame", "table", "text"]

# The same two colours as of plots, for what goes up and what goes down.
UP, DOWN = "#D55E00", "#2A8BC8"
STYLE = """<style>
.contrica{font-size:13px;line-height:1.4;color:inherit;max-width:70em}
.contrica table{border-collapse:collapse;margin:.4em 0;color:inherit;font-size:inherit}
.contrica th,.contrica td{text-align:left;vertical-align:middle;padding:.25em .8em .25em 0;
border-bottom:1px solid rgba(128,128,128,.35);background:transparent;color:inherit;white-space:normal}
.contrica th{font-weight:600}
.contrica td.number{text-align:right;font-variant-numeric:tabular-nums}
.contrica p{margin:.2em 0}
.contrica .faint{opacity:.65}
.contrica summary{cursor:pointer;opacity:.75}
</style>"""


class Markup(str):
    """Text that is HTML already, and is not escaped again."""


def text(value: Any) -> Markup:
    """A value as HTML: nothing for None and NaN, few digits of a number, text escaped.

    Parameters
    ----------
    value : object

    Returns
    -------
    Markup

    Examples
    --------
    >>> text("a < b"), text(1 / 3), text(None)
    ('a &lt; b', '0.333', '')
    """
    if isinstance(value, Markup):
        return value
    if value is None or value != value:
        return Markup()
    return Markup(escape(f"{value:.3g}" if isinstance(value, float) else str(value)))


def table(headings: Sequence[Any], rows: Sequence[Sequence[Any]]) -> Markup:
    """A table; numbers are at the right of their cells.

    Parameters
    ----------
    headings : sequence
        None at all for a table without.
    rows : sequence of sequence
        Escaped, but for `Markup`.

    Returns
    -------
    Markup
    """
    head = "".join(f'<th scope="col">{text(each)}</th>' for each in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if headings else ""
    return Markup(f"<table>{top}<tbody>{body}</tbody></table>")


def _cell(value: Any) -> str:
    kind = ' class="number"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{text(value)}</td>"


def bars(values: Sequence[float], names: Sequence[str], told: Sequence[str]) -> Markup:
    """Small bars about a line at zero, each with its name where the pointer is.

    Parameters
    ----------
    values : sequence of float
    names : sequence of str
    told : sequence of str
        The values in words.

    Returns
    -------
    Markup
        An image in SVG, with what it shows in words.
    """
    width, height = 9, 34
    largest = max((abs(value) for value in values), default=0.0) or 1.0
    high, low = max(0.0, *values, 0.0), -min(0.0, *values, 0.0)
    scale = (height - 2) / ((high + low) or largest)
    zero = 1 + high * scale
    parts = []
    for i, (value, name, word) in enumerate(zip(values, names, told, strict=True)):
        size = max(abs(value) * scale, 0.5)
        y = zero - size if value > 0 else zero
        parts.append(
            f'<rect x="{i * width}" y="{y:.1f}" width="{width - 2}" height="{size:.1f}" '
            f'fill="{UP if value > 0 else DOWN}"><title>{escape(f"{name} {word}")}</title></rect>'
        )
    span = width * len(parts)
    label = escape("bars: " + ", ".join(f"{n} {w}" for n, w in zip(names, told, strict=True)))
    line = f'<line x1="0" x2="{span}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="currentColor"/>'
    return Markup(
        f'<svg role="img" aria-label="{label}" width="{span}" height="{height}" '
        f'viewBox="0 0 {span} {height}">{"".join(parts)}{line}</svg>'
    )


def frame(*parts: str) -> str:
    """Parts of a page one below the other, with their style.

    Parameters
    ----------
    *parts : str
        HTML.

    Returns
    -------
    str
    """
    return f'{STYLE}<div class="contrica">{"".join(parts)}</div>'


class Summary(str):
    r"""Lines such as ``found: 2 patterns``: text everywhere, and in a notebook a table.

    Examples
    --------
    >>> told = Summary("found: 1 pattern\nsolver: joint")
    >>> told.splitlines()[1]
    'solver: joint'
    >>> "<td>joint</td>" in told._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        pairs = [line.partition(": ") for line in self.splitlines()]
        rows = [
            (Markup(f"<b>{escape(name)}</b>"), rest) if rest else ("", name)
            for name, _, rest in pairs
        ]
        return frame(table((), rows))
