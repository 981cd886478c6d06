"""Cards of patterns as the page shows them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dash import dcc, html

from contrica.explorer._pieces import (
    attributes,
    button,
    called,
    helped,
    image,
    signed,
    stale,
    track,
)
from contrica.explorer._state import MAX_NAME, MAX_NOTE
from contrica.explorer._views import Association, Card, Leading

__all__ = ["card", "spark"]

# Variables, groups and columns of metadata that a card lists.
N_VARIABLES, N_GROUPS, N_COLUMNS = 8, 6, 4


def spark(edges: np.ndarray, fore: np.ndarray, back: np.ndarray, told: str) -> Any:
    """Densities of a score in both datasets, as a small picture.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
    fore, back : ndarray of shape (n_bins,)
    told : str
        What a reader hears who cannot see it.

    Returns
    -------
    Component
    """
    width, height = 240, 46
    top = max(float(np.max(fore, initial=0)), float(np.max(back, initial=0))) or 1.0
    step = width / max(len(edges) - 1, 1)

    def path(values: np.ndarray) -> str:
        steps = "".join(
            f"L{i * step:.1f} {height * (1 - value / top):.1f}h{step:.2f}"
            for i, value in enumerate(values)
        )
        return f"M0 {height}{steps}V{height}Z"

    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'preserveAspectRatio="none">'
        f'<path d="{path(back)}" fill="#9a9aa2" fill-opacity=".5"/>'
        f'<path d="{path(fore)}" fill="#d55e00" fill-opacity=".4" stroke="#d55e00"/></svg>'
    )
    coded = base64.b64encode(drawn.encode()).decode("ascii")
    return html.Img(src=f"data:image/svg+xml;base64,{coded}", alt=told, className="spark")


def card(
    found: Card,
    *,
    symbol: str,
    chosen: bool,
    last: int,
    shape: tuple[int, int] | None,
    densities: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Any:
    """One card.

    Parameters
    ----------
    found : Card
    symbol : str
        Of the ratio.
    chosen : bool
        Whether the views beside are of this pattern.
    last : int
        The last place on the page.
    shape : (int, int) or None
    densities : (edges, foreground, background)
        Of the score.

    Returns
    -------
    Component
    """
    name = called(found.index, found.edit.name)
    looks = ["card", "chosen" if chosen else "", "" if found.stands_out else "weak"]
    looks.append(found.edit.verdict)
    return html.Article(
        [
            _top(found, name),
            html.Div(
                [
                    image(found.pattern, shape, name) if shape else None,
                    html.Dl(_bars(found.leading), className="bars"),
                ],
                className="body",
            ),
            spark(*densities, f"Score of {name} in the foreground and in the background"),
            html.Dl(_facts(found, symbol), className="facts"),
            _more(found),
            _note(found),
            _foot(found, name, last),
        ],
        id=f"card-{found.index}",
        key=f"card-{found.index}",
        className=" ".join(filter(None, looks)),
        **attributes(aria_label=name),
    )


def _top(found: Card, name: str) -> Any:
    index = found.index
    buttons = []
    for kind, mark, word in (("accepted", "✓", "Accept"), ("rejected", "✕", "Reject")):
        on = found.edit.verdict == kind
        verdict = {"do": "say", "index": index, "field": "verdict", "value": "" if on else kind}
        buttons.append(
            button(
                *(mark, f"icon {word.lower()}"),
                label=f"{word} {name} (key {word[0].lower()})",
                pressed=on,
                says=verdict,
            )
        )
    named = {"type": "name", "index": index}
    field = dcc.Input(
        id=named,
        value=found.edit.name,
        placeholder=f"Pattern {index + 1}",
        maxLength=MAX_NAME,
        debounce=True,
        autoComplete="off",
        spellCheck=False,
    )
    number = button(
        *(str(index + 1), "number"),
        label=f"Show {name} in the views above",
        says={"do": "set", "field": "card", "value": index},
    )
    weak = None if found.stands_out else html.Span("does not stand out", className="chip")
    label = html.Label(f"Name of pattern {index + 1}", htmlFor=_dom_id(named), className="unseen")
    return html.Div(
        [number, html.Div([label, field], **_say(index, "name")), weak, *buttons], className="top"
    )


def _dom_id(found: dict[str, Any]) -> str:
    """The id of a component as the browser has it."""
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def _say(index: int, field: str) -> dict[str, Any]:
    return {
        "data-say": json.dumps({"index": index, "field": field}),
        "style": {"flex": 1, "minWidth": 0},
    }


def _note(found: Card) -> Any:
    field = dcc.Textarea(
        id={"type": "note", "index": found.index},
        value=found.edit.note,
        placeholder="Add a note …",
        maxLength=MAX_NOTE,
        rows=1,
        title=f"Note on {called(found.index, found.edit.name)}",
    )
    return html.Div(field, **_say(found.index, "note"))


def _foot(found: Card, name: str, last: int) -> Any:
    def small(text: str, title: str, disabled: bool = False, **said: Any) -> Any:
        return button(text, "quiet small", label=f"{title}: {name}", disabled=disabled, says=said)

    index = found.index
    first = small("←", "Move towards the first", found.place == 0, do="move", index=index, step=-1)
    later = small("→", "Move towards the last", found.place == last, do="move", index=index, step=1)
    why = button(
        *("Why not background?", "quiet small"),
        data_tab="tab-why",
        says={"do": "set", "field": "card", "value": index},
    )
    return html.Div(
        [
            *(first, later, html.Span(className="grow")),
            small("x axis", "Draw along x", do="set", field="x", value=index),
            small("y axis", "Draw along y", do="set", field="y", value=index),
            why,
        ],
        className="foot",
    )


def _bars(leading: Sequence[Leading]) -> list[Any]:
    """Name, bar and number of every leading variable, with the interval where it is known."""
    shown = leading[:N_VARIABLES]
    has_effect = all(np.isfinite(each.effect) for each in shown)
    values = [each.effect if has_effect else each.loading for each in shown]
    ends = [v for each in shown for v in (each.low, each.high) if np.isfinite(v)]
    reach = [0.0, *values, *ends]
    low, high = min(reach), max(reach)
    found: list[Any] = []
    for each, value in zip(shown, values, strict=True):
        told = f"loading {each.loading:+.3g}"
        if np.isfinite(each.low):
            told += f", 90 % interval {each.low:+.2f} to {each.high:+.2f}"
        found += [
            html.Dt(each.name, title=each.name),
            html.Dd(track(value, low, (high - low) or 1.0, (each.low, each.high))),
            html.Dd(signed(value), className="value", title=told),
        ]
    return found


def _facts(found: Card, symbol: str) -> list[Any]:
    fore, back = found.foreground, found.background
    kurtosis, skewness = signed(fore.kurtosis), signed(fore.skewness)
    return [
        _fact(f"ratio {symbol}", "ratio", f"{found.ratio:.3g}"),
        _computed("p", found.p, f"{found.p:.2g}", found.p_words, found.p_is_stale),
        _computed(
            *("stability", found.stability, f"{found.stability:.2f}"),
            *(found.stability_words, found.stability_is_stale),
        ),
        _fact("kurtosis", "kurtosis", kurtosis, f"background {signed(back.kurtosis)}"),
        _fact("skewness", "skewness", skewness, f"background {signed(back.skewness)}"),
        _fact("mean shift", "shift", _shift(found), "background sd"),
    ]


def _fact(label: str, key: str, value: Any, small: str = "", **more: Any) -> Any:
    return html.Div(
        [
            html.Dt(helped(label, key)),
            html.Dd([value, html.Small(small) if small else None], **more),
        ]
    )


def _computed(key: str, value: float, shown: str, words: str, is_stale: bool) -> Any:
    """What is computed in the background: its value and how it was found, or why there is none."""
    if not np.isfinite(value):
        return _fact(key, key, "–", words, className="unknown")
    return _fact(key, key, [shown, stale() if is_stale else None], title=words)


def _shift(found: Card) -> str:
    spread = found.background.variance**0.5
    return signed((found.foreground.mean - found.background.mean) / spread) if spread > 0 else "–"


def _more(found: Card) -> Any:
    parts: list[Any] = [html.P(f"Tails: {found.shape}.", className="note")]
    if found.group_share:
        parts += [
            html.H3(helped("share by group", "share")),
            html.Dl(_shares(found.group_share), className="bars"),
        ]
    if found.associations or found.association_words:
        parts.append(html.H3(helped("goes along with", "association")))
        parts.append(html.Dl(_columns(found.associations), className="bars"))
        parts.append(html.P(found.association_words, className="note"))
    parts.append(
        html.P(
            [helped("Bars above", "effect"), ": effects in standard deviations of the background."],
            className="note",
        )
    )
    return html.Details([html.Summary("Groups, metadata and shape"), *parts])


def _shares(shares: Mapping[str, float]) -> list[Any]:
    order = sorted(shares.items(), key=lambda pair: -pair[1])
    top = max(order[0][1], np.finfo(float).tiny)
    found: list[Any] = []
    for name, share in order[:N_GROUPS]:
        found += [
            html.Dt(name, title=name),
            html.Dd(track(share, 0.0, top, kind="plain")),
            html.Dd(f"{share:.0%}", className="value"),
        ]
    left = len(order) - N_GROUPS
    return (
        [*found, html.Dt(f"and {left} more", className="soft"), html.Dd(), html.Dd()]
        if left > 0
        else found
    )


def _columns(associations: Sequence[Association]) -> list[Any]:
    found: list[Any] = []
    for each in associations[:N_COLUMNS]:
        found += [
            html.Dt(each.column, title=f"{each.column}: {each.words}"),
            html.Dd(track(each.size, 0.0, 1.0, kind="plain")),
            html.Dd(f"{each.size:.2f}", className="value", title=each.words),
        ]
    return found
