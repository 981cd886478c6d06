"""Cards of patterns, and what is computed for them in the background."""

from __future__ import annotations

from typing import Any

import dash
import numpy as np
from dash import Input, Output, html

from contrica.explorer._callbacks_edit import keys_of, told
from contrica.explorer._cards import card
from contrica.explorer._desk import desk_of
from contrica.explorer._pieces import attributes, button
from contrica.explorer._session import Sessions
from contrica.explorer._views import FitView, JobView

__all__ = ["register_cards"]

# Bins of a score's density on a card.
BINS = 48
JOBS = (("significance", "Compute p"), ("stability", "Compute stability"))


def register_cards(app: dash.Dash, sessions: Sessions) -> None:
    """The callbacks of cards and of jobs.

    Parameters
    ----------
    app : Dash
    sessions : Sessions
    """

    @app.callback(
        Output("cards", "children"),
        Output("order-words", "children"),
        Input("key-cards", "data"),
        prevent_initial_call=True,
    )
    @told
    def draw(key: Any) -> Any:
        desk = desk_of(sessions.current())
        explorer, state = desk.session.explorer, desk.state
        view, found = explorer.fit(state), explorer.cards(state)
        own = [
            card(
                each,
                symbol=view.ratio_symbol,
                chosen=each.index == state.card,
                last=len(found) - 1,
                shape=explorer.data.image_shape,
                densities=_densities(view, each.index),
            )
            for each in found
        ]
        words = "In your order." if state.order else "By contrast ratio, the largest first."
        _, waiting = explorer.edits(state)
        if waiting:
            words += f" {_waiting(len(waiting))}"
        return own, words

    @app.callback(
        Output("jobs", "children"),
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
            over = {own.id for own in found.values() if own.is_over}
            fresh = over - desk.seen
            if fresh:
                desk.seen |= fresh
                desk.n_done += len(fresh)
            keys = keys_of(desk)
        shown = [_job(kind, text, found.get(kind)) for kind, text in JOBS]
        idle = all(own.is_over for own in found.values())
        return shown, idle, keys["cards"] if fresh else dash.no_update


def _waiting(count: int) -> str:
    if count == 1:
        return (
            "What you said of 1 pattern that this fit does not have is kept for when it comes back."
        )
    which = f"{count} patterns that this fit does not have"
    return f"What you said of {which} is kept for when they come back."


def _densities(view: FitView, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = [
        own[:, index][np.isfinite(own[:, index])] for own in (view.scores_fore, view.scores_back)
    ]
    ends = [np.quantile(part, [0.002, 0.998]) for part in parts if part.size]
    low, high = (np.min(ends), np.max(ends)) if ends else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    fore, back = (np.histogram(part, edges)[0] / max(part.size, 1) for part in parts)
    return edges, fore, back


def _job(kind: str, text: str, found: JobView | None) -> Any:
    """A button that starts it, or how far it is and a button that stops it."""
    if found is None or found.is_over:
        words = found.words if found is not None and found.status != "done" else ""
        start = button(text, "small", says={"do": "job", "kind": kind})
        return html.Div(
            [html.Span(words, className="note") if words else None, start], className="job"
        )
    stop = button(
        "Cancel", "quiet small", label=f"Cancel {kind}", says={"do": "cancel", "kind": kind}
    )
    bar = html.Progress(value=str(found.progress), max="1", **attributes(aria_label=kind))
    return html.Div([html.Span(found.words or kind), bar, stop], className="job", role="status")
