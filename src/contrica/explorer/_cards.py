"""Cards of patterns as the page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contrica.estimators._ranking import SHIFT
from contrica.explorer._pieces import (
    button,
    called,
    helped,
    image,
    note,
    signed,
    stale,
    track,
)
from contrica.explorer._state import MAX_NAME, MAX_NOTE
from contrica.explorer._views import Association, Card, Leading
from contrica.report._html import Html, element
from contrica.report._pictures import histogram_svg

__all__ = ["card"]

# Variables, groups and columns of metadata that a card lists.
N_VARIABLES, N_GROUPS, N_COLUMNS = 8, 6, 4


def card(
    found: Card,
    *,
    symbol: str,
    chosen: bool,
    last: int,
    shape: tuple[int, int] | None,
    scores: tuple[np.ndarray, np.ndarray],
) -> Html:
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
    scores : (ndarray, ndarray)
        Of the foreground and of the background.

    Returns
    -------
    Html
    """
    name = called(found.index, found.edit.name)
    looks = ["card", "chosen" if chosen else "", "" if found.stands_out else "weak"]
    looks.append(found.edit.verdict)
    drawn = f"Score of {name} in the foreground and in the background"
    return element(
        "article",
        _top(found, name),
        element(
            "div",
            image(found.pattern, shape, name) if shape else None,
            element("dl", _bars(found.leading), class_="bars"),
            class_="body",
        ),
        histogram_svg(*scores, drawn),
        element("dl", _facts(found, symbol), class_="facts"),
        _more(found),
        _note(found, name),
        _foot(found, name, last),
        class_=" ".join(filter(None, looks)),
        aria_label=name,
    )


def _top(found: Card, name: str) -> Html:
    index = found.index
    buttons = []
    for kind, mark, word in (("accepted", "✓", "Accept"), ("rejected", "✕", "Reject")):
        on = found.edit.verdict == kind
        key = word.lower()
        verdict = {"do": "say", "index": index, "field": "verdict", "value": "" if on else kind}
        label = f"{word} {name} (key {key[0]})"
        buttons.append(
            button(mark, f"icon {key}", label=label, pressed=on, says=verdict, data_key=key)
        )
    field = element(
        "input",
        value=found.edit.name,
        placeholder=f"Pattern {index + 1}",
        maxlength=MAX_NAME,
        autocomplete="off",
        spellcheck="false",
        aria_label=f"Name of pattern {index + 1}",
        data_key="name",
        data_say=json.dumps({"index": index, "field": "name"}),
    )
    show = {"do": "set", "field": "card", "value": index}
    number = button(
        *(str(index + 1), "number"),
        label=f"Show {name} in the views above",
        says=show,
        data_key="number",
    )
    weak = None if found.stands_out else element("span", "does not stand out", class_="chip")
    weak = element("span", SHIFT, class_="chip") if found.only_shifted else weak
    return element("div", number, field, weak, buttons, class_="top")


def _note(found: Card, name: str) -> Html:
    return element(
        "textarea",
        found.edit.note,
        placeholder="Add a note …",
        maxlength=MAX_NOTE,
        rows=1,
        aria_label=f"Note on {name}",
        data_key="note",
        data_say=json.dumps({"index": found.index, "field": "note"}),
    )


def _foot(found: Card, name: str, last: int) -> Html:
    def small(text: str, title: str, disabled: bool = False, **said: Any) -> Html:
        label = f"{title}: {name}"
        return button(text, "quiet small", label=label, disabled=disabled, says=said, data_key=text)

    index = found.index
    why = button(
        *("Why not background?", "quiet small"),
        data_tab="tab-why",
        data_key="why",
        says={"do": "set", "field": "card", "value": index},
    )
    return element(
        "div",
        small("←", "Move towards the first", found.place == 0, do="move", index=index, step=-1),
        small("→", "Move towards the last", found.place == last, do="move", index=index, step=1),
        element("span", class_="grow"),
        small("x axis", "Draw along x", do="set", field="x", value=index),
        small("y axis", "Draw along y", do="set", field="y", value=index),
        why,
        class_="foot",
    )


def _bars(leading: Sequence[Leading]) -> list[Html]:
    """Name, bar and number of every leading variable, with the interval where it is known."""
    shown = leading[:N_VARIABLES]
    has_effect = all(np.isfinite(each.effect) for each in shown)
    values = [each.effect if has_effect else each.loading for each in shown]
    ends = [v for each in shown for v in (each.low, each.high) if np.isfinite(v)]
    reach = [0.0, *values, *ends]
    low, high = min(reach), max(reach)
    found: list[Html] = []
    for each, value in zip(shown, values, strict=True):
        told = f"loading {each.loading:+.3g}"
        if np.isfinite(each.low):
            told += f", 90 % interval {each.low:+.2f} to {each.high:+.2f}"
        bar = track(value, low, (high - low) or 1.0, (each.low, each.high))
        found += [
            element("dt", each.name, title=each.name),
            element("dd", bar),
            element("dd", signed(value), class_="value", title=told),
        ]
    return found


def _facts(found: Card, symbol: str) -> list[Html]:
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


def _fact(label: str, key: str, value: Any, small: str = "", **more: Any) -> Html:
    told = element("small", small) if small else None
    return element(
        "div", element("dt", helped(label, key)), element("dd", value, told, **more), data_fact=key
    )


def _computed(key: str, value: float, shown: str, words: str, is_stale: bool) -> Html:
    """What is computed in the background: its value and how it was found, or why there is none."""
    if not np.isfinite(value):
        return _fact(key, key, "–", words, class_="unknown")
    return _fact(key, key, [shown, stale() if is_stale else None], title=words)


def _shift(found: Card) -> str:
    spread = found.background.variance**0.5
    return signed((found.foreground.mean - found.background.mean) / spread) if spread > 0 else "–"


def _more(found: Card) -> Html:
    parts: list[Html] = [note(f"Tails: {found.shape}.")]
    if found.group_share:
        parts.append(element("h3", helped("share by group", "share")))
        parts.append(element("dl", _shares(found.group_share), class_="bars"))
    if found.associations or found.association_words:
        parts.append(element("h3", helped("goes along with", "association")))
        parts.append(element("dl", _columns(found.associations), class_="bars"))
        parts.append(note(found.association_words))
    parts.append(
        note(helped("Bars above", "effect"), ": effects in standard deviations of the background.")
    )
    return element(
        "details", element("summary", "Groups, metadata and shape", data_key="more"), parts
    )


def _shares(shares: Mapping[str, float]) -> list[Html]:
    order = sorted(shares.items(), key=lambda pair: -pair[1])
    top = max(order[0][1], np.finfo(float).tiny)
    found: list[Html] = []
    for name, share in order[:N_GROUPS]:
        found += [
            element("dt", name, title=name),
            element("dd", track(share, 0.0, top, kind="plain")),
            element("dd", f"{share:.0%}", class_="value"),
        ]
    left = len(order) - N_GROUPS
    if left > 0:
        found += [element("dt", f"and {left} more", class_="soft"), element("dd"), element("dd")]
    return found


def _columns(associations: Sequence[Association]) -> list[Html]:
    found: list[Html] = []
    for each in associations[:N_COLUMNS]:
        found += [
            element("dt", each.column, title=f"{each.column}: {each.words}"),
            element("dd", track(each.size, 0.0, 1.0, kind="plain")),
            element("dd", f"{each.size:.2f}", class_="value", title=each.words),
        ]
    return found
