"""The scores' plot: its frame, its points, its legend, and what is known of a row."""

from __future__ import annotations

from typing import Any

import dash
import numpy as np
from dash import ClientsideFunction, Input, Output, State

from contrica.explorer._callbacks_edit import told
from contrica.explorer._desk import Desk, desk_of
from contrica.explorer._dots import kinds, packed, ramp
from contrica.explorer._explorer import Explorer
from contrica.explorer._figures import scatter
from contrica.explorer._pieces import button, called, joined, names_of
from contrica.explorer._session import Sessions
from contrica.explorer._state import ViewState
from contrica.explorer._views import Colours
from contrica.report._html import Html, element

__all__ = ["colour_options", "register_scatter"]

# Points that are drawn of all datasets together, and names that a list offers at once.
MAX_POINTS, MAX_OFFERED = 200_000, 40
# Columns of metadata that are told of a row, and points from which a slow machine draws fewer in motion.
MAX_TOLD, MANY = 6, 20_000


def colour_options(explorer: Explorer, chosen: str, search: str = "") -> list[dict[str, str]]:
    """What rows can be coloured by, of what a reader looks for: at most so many.

    Parameters
    ----------
    explorer : Explorer
    chosen : str
        Which is always among them.
    search : str

    Returns
    -------
    list of dict
        As a drop-down list takes them.
    """
    data = explorer.data
    found = {"dataset": "foreground and background"}
    if data.has_groups:
        found["groups"] = "groups"
    found |= {f"column:{name}": name for name in data.metadata[0]}
    found |= {f"variable:{name}": f"{name} (variable)" for name in data.names}
    words = search.casefold().split()
    match = [key for key, text in found.items() if all(word in text.casefold() for word in words)]
    shown = dict.fromkeys([*match[:MAX_OFFERED], chosen])
    return [{"label": found.get(key, key.partition(":")[2]), "value": key} for key in shown]


def register_scatter(app: dash.Dash, sessions: Sessions) -> None:
    """The callbacks of the scores' plot.

    Parameters
    ----------
    app : Dash
    sessions : Sessions
    """

    @app.callback(
        Output("scatter", "figure"),
        Output("points", "data"),
        Output("html-legend", "data"),
        Output("html-scatter-words", "data"),
        Input("key-scatter", "data"),
        prevent_initial_call=True,
    )
    @told
    def draw(key: Any) -> Any:
        desk = desk_of(sessions.current())
        return _drawn(desk)

    _register_fields(app, sessions)
    _register_rows(app, sessions)
    app.clientside_callback(
        ClientsideFunction("contrica", "drawn"),
        Output("sink", "data", allow_duplicate=True),
        Input("points", "data"),
        prevent_initial_call=True,
    )


def _register_fields(app: dash.Dash, sessions: Sessions) -> None:
    """Axes, colours, and switches of what is drawn."""

    @app.callback(
        Output("axis-x", "options"),
        Output("axis-y", "options"),
        Output("axis-x", "value"),
        Output("axis-y", "value"),
        Output("html-drawn", "data"),
        Output("html-background", "data"),
        Input("key-controls", "data"),
        prevent_initial_call=True,
    )
    @told
    def controls(key: Any) -> Any:
        desk = desk_of(sessions.current())
        state, explorer = desk.state, desk.session.explorer
        names = names_of(explorer, state)
        options = [
            {"label": f"{i + 1}. {name}" if name != called(i, "") else name, "value": i}
            for i, name in enumerate(names)
        ]
        last = len(names) - 1
        x, y = min(state.x, last), min(state.y, last)
        drawn = [
            button(
                *(text,),
                pressed=state.drawn == kind,
                data_key=kind,
                says={"do": "set", "field": "drawn", "value": kind},
            )
            for text, kind in (("Points", "points"), ("Density", "density"))
        ]
        shown = state.background
        turn = {"do": "set", "field": "background", "value": not shown}
        behind = button("Background", pressed=shown, says=turn, data_key="background")
        return options, options, x, y, joined(drawn if x != y else None), behind

    @app.callback(
        Output("colour", "options"),
        Output("colour", "value"),
        Input("key-controls", "data"),
        Input("colour", "search_value"),
        State("colour", "value"),
        prevent_initial_call=True,
    )
    @told
    def offered(key: Any, search: Any, chosen: Any) -> Any:
        session = sessions.current()
        state = session.history.now
        searched = dash.ctx.triggered_prop_ids.keys() == {"colour.search_value"}
        # what was just chosen is on its way, and may not be the state's yet
        kept = str(chosen) if searched and chosen else state.colour
        found = colour_options(session.explorer, kept, str(search or "")[:200])
        return found, dash.no_update if searched else kept


def _register_rows(app: dash.Dash, sessions: Sessions) -> None:
    """What is known of the row below the pointer."""

    @app.callback(Output("told", "data"), Input("hovered", "data"), prevent_initial_call=True)
    @told
    def hovered(at: Any) -> Any:
        session = sessions.current()
        if not isinstance(at, dict):
            raise dash.exceptions.PreventUpdate
        words = _row_told(
            session.explorer, session.history.now, bool(at.get("background")), at.get("row")
        )
        return {"at": at.get("at"), "text": words}

    app.clientside_callback(
        ClientsideFunction("contrica", "told"),
        Output("sink", "data", allow_duplicate=True),
        Input("told", "data"),
        prevent_initial_call=True,
    )


def _drawn(desk: Desk) -> Any:
    state, explorer = desk.state, desk.session.explorer
    points, colours = explorer.points(state, MAX_POINTS), explorer.colours(state)
    names = names_of(explorer, state)
    last = len(names) - 1
    x, y = min(state.x, last), min(state.y, last)
    figure = scatter(
        *(points, colours, (names[x], names[y])),
        drawn=state.drawn,
        background=state.background,
        histogram=x == y,
    )
    axes = "\n".join([state.fit_text, str(x), str(y)])
    content = packed(
        *(points, colours),
        key="\n".join([axes, state.colour, state.drawn, str(state.background)]),
        axes=axes,
        shown=state.drawn == "points",
        histogram=x == y,
        background=state.background,
    )
    many = len(points.fore_rows) + len(points.back_rows) > MANY
    words = [
        points.words,
        "While the plot moves fewer may be drawn." if many and content["shown"] else "",
        colours.words,
        explorer.data.columns_left_out if state.colour == "dataset" else "",
    ]
    legend = _legend(colours, state.background, can_hide=state.drawn == "points" and x != y)
    return figure, content, legend, joined(" ".join(filter(None, words)))


def _legend(colours: Colours, background: bool, *, can_hide: bool) -> Html:
    found: list[Html] = []
    scale = _scale(colours)
    if scale is not None:
        low, high = scale
        tones = f"background:linear-gradient(90deg, {', '.join(ramp(9))})"
        bar = element("span", class_="ramp", style=tones)
        found.append(
            element("span", f"{colours.label}: {low:.3g}", bar, f"{high:.3g}", class_="note")
        )
    for each in kinds(colours, background=background):
        dot = element("span", class_="dot", style=f"background:{each.colour}")
        own: dict[str, Any] = {"title": each.name, "disabled": True}
        if can_hide:
            own = {"title": f"Hide or show {each.name}", "pressed": True}
            own |= {"data_act": "kind", "data_kind": each.number}
        found.append(button([dot, element("span", each.name)], **own))
    return joined(found)


def _scale(colours: Colours) -> tuple[float, float] | None:
    if colours.levels or np.asarray(colours.fore).dtype.kind != "f":
        return None
    known = colours.fore[np.isfinite(colours.fore)]
    if not known.size:
        return None
    low, high = np.quantile(known, [0.01, 0.99])
    return float(low), float(high)


def _row_told(explorer: Explorer, state: ViewState, background: bool, row: Any) -> str:
    """Name, scores and metadata of a row."""
    data, view = explorer.data, explorer.fit(state)
    scores = view.scores_back if background else view.scores_fore
    if not isinstance(row, int) or not 0 <= row < len(scores):
        raise dash.exceptions.PreventUpdate
    names = names_of(explorer, state)
    dataset, own = 0, row
    if background:
        dataset = 1
        for part in data.backs:
            if own < len(part):
                break
            own, dataset = own - len(part), dataset + 1
    called_so = data.row_names[dataset]
    name = str(called_so[own]) if called_so is not None else f"row {own}"
    lines = [f"{name} ({'background' if background else 'foreground'})"]
    last = len(names) - 1
    for i in dict.fromkeys((min(state.x, last), min(state.y, last))):
        lines.append(f"{names[i]}: {scores[row, i]:.3g}")
    for column in list(data.metadata[dataset])[:MAX_TOLD]:
        value = data.metadata[dataset][column][own]
        if value is not None and value == value:
            lines.append(f"{column}: {value}")
    return "\n".join(lines)
