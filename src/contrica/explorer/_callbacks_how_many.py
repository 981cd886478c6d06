"""How many? The lines that can be dragged, the numbers beside them, and what a refit changed."""

from __future__ import annotations

from typing import Any

import dash
import numpy as np
from dash import ClientsideFunction, Input, Output, dcc, html

from contrica.explorer._callbacks_edit import told
from contrica.explorer._desk import Desk, desk_of
from contrica.explorer._figures import how_many, matches
from contrica.explorer._pieces import button, names_of
from contrica.explorer._session import Sessions
from contrica.explorer._views import FitView, HowMany

__all__ = ["register_how_many"]

KNOBS = (("l", "n_foreground"), ("r", "n_background"), ("pcs", "dimension"))


def register_how_many(app: dash.Dash, sessions: Sessions) -> None:
    """The callbacks of how many patterns there are.

    Parameters
    ----------
    app : Dash
    sessions : Sessions
    """

    @app.callback(
        Output("verdict", "children"),
        Output("how-many", "figure"),
        Output("fitted", "children"),
        Input("key-fit", "data"),
        prevent_initial_call=True,
    )
    @told
    def draw(key: Any) -> Any:
        desk = desk_of(sessions.current())
        explorer, state = desk.session.explorer, desk.state
        view, found = explorer.fit(state), explorer.how_many(state)
        return _verdict(view, explorer.data), how_many(found), _fitted(desk, view, found)

    @app.callback(
        *(Output(f"knob-{name}", "value") for name, _ in KNOBS),
        *(Output(f"knob-{name}", "max") for name, _ in KNOBS),
        *(Output(f"auto-{name}", "children") for name, _ in KNOBS),
        Output("solver", "value"),
        Output("scale", "value"),
        Output("projection", "value"),
        Input("key-controls", "data"),
        prevent_initial_call=True,
    )
    @told
    def knobs(key: Any) -> Any:
        session = sessions.current()
        state = session.history.now
        view, found = session.explorer.fit(state), session.explorer.how_many(state)
        return (
            *(getattr(view, name) for _, name in KNOBS),
            *(found.largest[name] for _, name in KNOBS),
            *(_auto(name, found.is_automatic[name]) for _, name in KNOBS),
            *(state.solver, state.scale, state.projection),
        )

    app.clientside_callback(
        ClientsideFunction("contrica", "dragged"),
        Output("sink", "data", allow_duplicate=True),
        Input("how-many", "relayoutData"),
        prevent_initial_call=True,
    )


def _auto(name: str, on: bool) -> Any:
    return button(
        *("auto", "auto"),
        label="The data choose" if on else "Let the data choose",
        pressed=on,
        disabled=on,
        says={"do": "set", "field": name, "value": None},
    )


def _verdict(view: FitView, data: Any) -> list[Any]:
    """What was found, in one line to read first, and on what."""
    count = min(view.n_kept, view.n_foreground)
    what = {0: "No pattern", 1: "1 pattern"}.get(count, f"{count} patterns")
    rows = f" in {data.n_fore:,} rows, set against {data.n_back:,} of background"
    lead: list[Any] = [html.B(what), f" {'stands' if count < 2 else 'stand'} out{rows}"]
    more = []
    if view.n_kept > count:
        left = view.n_kept - count
        more.append("the strongest is shown" if count + left == 1 else f"{left} more are shown")
    if view.n_kept:
        more.append(f"largest ratio {view.ratio_symbol} {view.ratios[0]:.3g}")
    known = view.p_values[np.isfinite(view.p_values)]
    if known.size:
        more.append(f"p = {known[0]:.2g} for the first")
    more.append(f"{len(data.names):,} variables")
    return [html.P(lead), html.P(" · ".join(more), className="soft")]


def _fitted(desk: Desk, view: FitView, found: HowMany) -> list[Any]:
    took = f"{view.seconds:.2f} s" if view.seconds >= 0.005 else "less than 0.01 s"
    parts: list[Any] = [
        html.P(
            [f"Solver {view.solver}, fitted in {took}. {_sentence(view.reason)}"], className="note"
        )
    ]
    parts += [html.P(words, className="note") for words in (*found.notes,)]
    if view.warnings:
        told_so = [html.Li(words) for words in view.warnings]
        title = f"{len(told_so)} warning{'s' if len(told_so) > 1 else ''} of this fit"
        parts.append(
            html.Details(
                [html.Summary(title), html.Ul(told_so, className="note")], className="more"
            )
        )
    parts += _changed(desk)
    return parts


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _changed(desk: Desk) -> list[Any]:
    """Old and new patterns, matched, after a refit."""
    before, state, explorer = desk.before, desk.state, desk.session.explorer
    if before is None or before.fit_text == state.fit_text:
        return []
    found = explorer.compare(before, state)
    old, new = (dict(enumerate(names_of(explorer, each))) for each in (before, state))
    figure = matches(found, old, new)
    kept = sum(each.cosine >= 0.8 for each in found)
    lost = sum(each.new is None for each in found)
    fresh = sum(each.old is None for each in found)
    words = f"{kept} kept their direction (|cosine| at least 0.8), {fresh} are new, {lost} gone."
    return [
        html.H3("What the refit changed"),
        html.P(["Before, at the left; now, at the right. ", words], className="note"),
        dcc.Graph(
            figure=figure,
            id="matches",
            config={"displayModeBar": False, "responsive": True},
            style={"height": f"{figure['layout']['height']}px"},
        ),
    ]
