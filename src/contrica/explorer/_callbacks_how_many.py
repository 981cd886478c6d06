"""How many? The lines that can be dragged, the numbers beside them, and what a refit changed."""

from __future__ import annotations

from typing import Any

import dash
import numpy as np
from dash import ClientsideFunction, Input, Output

from contrica.explorer._callbacks_edit import told
from contrica.explorer._desk import Desk, desk_of
from contrica.explorer._figures import how_many, matches
from contrica.explorer._fits import ALIKE
from contrica.explorer._pieces import button, joined, names_of, note
from contrica.explorer._session import Sessions
from contrica.explorer._views import FitView, HowMany
from contrica.report._html import Html, element

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
        Output("html-verdict", "data"),
        Output("how-many", "figure"),
        Output("html-fitted", "data"),
        Output("matches", "figure"),
        Output("matches", "style"),
        Input("key-fit", "data"),
        prevent_initial_call=True,
    )
    @told
    def draw(key: Any) -> Any:
        desk = desk_of(sessions.current())
        explorer, state = desk.session.explorer, desk.state
        view, found = explorer.fit(state), explorer.how_many(state)
        words, changed = _changed(desk)
        look: Any = {"display": "none"}
        if changed:
            look = {"height": f"{changed['layout']['height']}px"}
        lead = _verdict(view, explorer.data, found.is_automatic["n_foreground"])
        return lead, how_many(found), _fitted(view, found, words), changed or dash.no_update, look

    @app.callback(
        *(Output(f"knob-{name}", "value") for name, _ in KNOBS),
        *(Output(f"knob-{name}", "max") for name, _ in KNOBS),
        *(Output(f"html-auto-{name}", "data") for name, _ in KNOBS),
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


def _auto(name: str, on: bool) -> Html:
    label = "The data choose" if on else "Let the data choose"
    says = {"do": "set", "field": name, "value": None}
    return button("auto", "auto", label=label, pressed=on, disabled=on, says=says, data_key=name)


def _verdict(view: FitView, data: Any, is_counted: bool) -> Html:
    """What was found, in one line to read first, and on what."""
    count = min(view.n_kept, view.n_foreground)
    what = {0: "No pattern", 1: "1 pattern"}.get(count, f"{count} patterns")
    how = (
        f" {'stands' if count < 2 else 'stand'} out in"
        if is_counted
        else ", as many as asked for, in"
    )
    rows = f" {data.n_fore:,} rows, set against {data.n_back:,} of background"
    lead = element("p", element("b", what), how, rows)
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
    return joined(lead, element("p", " · ".join(more), class_="soft"))


def _fitted(view: FitView, found: HowMany, changed: Html | None) -> Html:
    took = f"{view.seconds:.2f} s" if view.seconds >= 0.005 else "less than 0.01 s"
    reason = _sentence(view.reason)
    parts = [note(f"Solver {view.solver}, fitted in {took}. {reason}")]
    parts += [note(words) for words in found.notes]
    if view.warnings:
        count = len(view.warnings)
        title = element("summary", f"{count} warning{'s' if count > 1 else ''} of this fit")
        told_so = element("ul", [element("li", each) for each in view.warnings], class_="note")
        parts.append(element("details", title, told_so, class_="more"))
    return joined(parts, changed)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _changed(desk: Desk) -> tuple[Html | None, dict[str, Any]]:
    """Old and new patterns, matched, after a refit."""
    before, state, explorer = desk.before, desk.state, desk.session.explorer
    if before is None or before.fit_text == state.fit_text:
        return None, {}
    found = explorer.compare(before, state)
    old, new = (dict(enumerate(names_of(explorer, each))) for each in (before, state))
    kept = sum(each.cosine >= ALIKE for each in found)
    fresh = sum(each.old is None for each in found)
    lost = sum(each.new is None for each in found)
    words = (
        f"{kept} kept their direction (|cosine| at least {ALIKE}), {fresh} are new, {lost} gone."
    )
    lead = note("Before, at the left; now, at the right. ", words)
    return joined(element("h3", "What the refit changed"), lead), matches(found, old, new)
