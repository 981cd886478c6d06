"""Cards of patterns, and what is computed for them in the background."""

from __future__ import annotations

from typing import Any

import dash
import numpy as np
from dash import Input, Output

from contrica.estimators._ranking import order_in_words
from contrica.explorer._callbacks_edit import keys_of, told
from contrica.explorer._cards import card
from contrica.explorer._desk import Desk, desk_of
from contrica.explorer._pieces import button, joined, note
from contrica.explorer._session import Sessions
from contrica.explorer._views import JobView
from contrica.report._html import Html, element

__all__ = ["register_cards"]

JOBS = (("significance", "Compute p"), ("stability", "Compute stability"))


def register_cards(app: dash.Dash, sessions: Sessions) -> None:
    """The callbacks of cards and of jobs.

    Parameters
    ----------
    app : Dash
    sessions : Sessions
    """

    @app.callback(
        Output("html-cards", "data"),
        Output("html-order-words", "data"),
        Input("key-cards", "data"),
        prevent_initial_call=True,
    )
    @told
    def draw(key: Any) -> Any:
        desk = desk_of(sessions.current())
        return _cards(desk), _order_words(desk)

    @app.callback(
        Output("html-jobs", "data"),
        Output("tick", "disabled"),
        Output("key-cards", "data", allow_duplicate=True),
        Input("key-jobs", "data"),
        Input("tick", "n_intervals"),
        prevent_initial_call=True,
    )
    @told
    def jobs(key: Any, n: Any) -> Any:
        desk = desk_of(sessions.current())
        with desk.lock:
            found = {kind: desk.session.explorer.job(own) for kind, own in desk.jobs.items()}
            fresh = {own.id for own in found.values() if own.is_over} - desk.told
            desk.told |= fresh
            desk.n_done += len(fresh)
            keys = keys_of(desk)
        shown = joined(*(_job(kind, text, found.get(kind)) for kind, text in JOBS))
        idle = all(own.is_over for own in found.values())
        return shown, idle, keys["cards"] if fresh else dash.no_update


def _cards(desk: Desk) -> list[tuple[str, Html]]:
    """Cards by the number of their pattern: the page keeps those that did not change."""
    explorer, state = desk.session.explorer, desk.state
    view, found = explorer.fit(state), explorer.cards(state)
    parts = (view.scores_fore, view.scores_back)
    known = [part[~np.isnan(part).any(axis=1)] for part in parts]
    return [
        (
            str(each.index),
            card(
                each,
                symbol=view.ratio_symbol,
                chosen=each.index == state.card,
                last=len(found) - 1,
                shape=explorer.data.image_shape,
                scores=(known[0][:, each.index], known[1][:, each.index]),
            ),
        )
        for each in found
    ]


def _order_words(desk: Desk) -> Html:
    model = desk.session.explorer.fit(desk.state).model
    words = "In your order." if desk.state.order else f"By {order_in_words(model)}."
    _, waiting = desk.session.explorer.edits(desk.state)
    if len(waiting) == 1:
        words += " What you said of 1 pattern that this fit does not have is kept for when it comes back."
    elif waiting:
        which = f"{len(waiting)} patterns that this fit does not have"
        words += f" What you said of {which} is kept for when they come back."
    return joined(words)


def _job(kind: str, text: str, found: JobView | None) -> Html:
    """A button that starts it, or how far it is and a button that stops it."""
    if found is None or found.is_over:
        words = found.words if found is not None and found.status != "done" else ""
        start = button(text, "small", says={"do": "job", "kind": kind}, data_key=kind)
        return element("div", note(words) if words else None, start, class_="job")
    stop = button(
        *("Cancel", "quiet small"),
        label=f"Cancel {kind}",
        says={"do": "cancel", "kind": kind},
        data_key=kind,
    )
    bar = element("progress", value=f"{found.progress:.3f}", max="1", aria_label=kind)
    return element("div", element("span", found.words or kind), bar, stop, class_="job")
