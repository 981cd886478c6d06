"""The page: one layout, and the Dash application that serves it. Everything is served from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dash
from dash import dcc, html

from contrica.explorer._callbacks_cards import register_cards
from contrica.explorer._callbacks_edit import register_edit
from contrica.explorer._callbacks_how_many import register_how_many
from contrica.explorer._callbacks_scatter import register_scatter
from contrica.explorer._callbacks_why import register_why
from contrica.explorer._pieces import attributes, button, helped
from contrica.explorer._session import Sessions
from contrica.explorer._state import PROJECTIONS, SCALES, SOLVERS
from contrica.explorer._texts import HELP

__all__ = ["layout", "mount"]

# Of plots: no buttons of plotly's, whose work the page's own do.
BARE: Any = {"displayModeBar": False, "responsive": True, "displaylogo": False}
EXPORTS = (
    ("png", "Figure as png", "The scores as they are coloured now"),
    ("svg", "Figure as svg", "The same, for a drawing program"),
    ("patterns", "Patterns as csv", "Loadings of all variables"),
    ("scores", "Scores as csv", "Of all rows"),
    ("cards", "Cards as csv", "Names, verdicts, notes and all numbers"),
    None,
    ("report", "Report", "One HTML file to send on"),
    ("model", "Model", "To load again: contrica.models.load"),
    ("script", "Python script", "That repeats this state exactly"),
    ("command", "Shell command", "The same for the terminal"),
)


def mount(server: Any, sessions: Sessions) -> dash.Dash:
    """The page's application on a server.

    Parameters
    ----------
    server : flask.Flask
        What guards it has are its own.
    sessions : Sessions

    Returns
    -------
    dash.Dash
    """
    app = dash.Dash(
        "contrica.explorer",
        server=server,
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        title="contrica explorer",
        update_title="",
        compress=False,
        suppress_callback_exceptions=True,
    )
    app.layout = lambda: layout(sessions.data.source.title or "your data")
    register_edit(app, sessions)
    register_scatter(app, sessions)
    register_how_many(app, sessions)
    register_cards(app, sessions)
    register_why(app, sessions)
    return app


def layout(title: str) -> Any:
    """The page without what a session shows in it.

    Parameters
    ----------
    title : str
        Of the data.

    Returns
    -------
    Component
    """
    return html.Div(
        [
            html.A("Skip to the patterns", href="#patterns", className="skip"),
            _head(title),
            html.Main(
                [
                    html.Div(
                        [html.Div(html.P(), className="grow")],
                        id="offline",
                        className="notice serious",
                        hidden=True,
                        role="alert",
                    ),
                    html.Div(id="notices", role="alert"),
                    html.Div(id="verdict", className="verdict"),
                    html.Div([_scatter(), _side()], className="views"),
                    _patterns(),
                    _glossary(),
                ]
            ),
            html.Div(id="help", role="tooltip", hidden=True),
            html.P("Reading the data and fitting …", className="starting"),
            *_stores(),
        ]
    )


def _stores() -> list[Any]:
    names = ["edit", "state", "export", "hovered", "told", "points", "lasso", "sink"]
    names += [
        "key-scatter",
        "key-fit",
        "key-cards",
        "key-why",
        "key-rows",
        "key-controls",
        "key-jobs",
    ]
    return [
        *(dcc.Store(id=name) for name in names),
        dcc.Store(id="ready", data=True),
        dcc.Download(id="download"),
        dcc.Interval(id="tick", interval=800, disabled=True),
    ]


def _head(title: str) -> Any:
    undo = button(
        *("↶", "quiet icon"), label="Undo (Ctrl Z)", id="undo", disabled=True, says={"do": "undo"}
    )
    redo = button(
        *("↷", "quiet icon"),
        label="Redo (Ctrl Shift Z)",
        id="redo",
        disabled=True,
        says={"do": "redo"},
    )
    items = [
        html.Hr() if each is None else button([each[1], html.Span(each[2])], data_export=each[0])
        for each in EXPORTS
    ]
    export = html.Details(
        [html.Summary("Export", className="button main"), html.Div(items)], className="menu"
    )
    mark = html.Span([html.I(**attributes(aria_hidden="true")), "contrica"], className="mark")
    line = [
        mark,
        html.H1(title, title=title),
        html.Span(id="saved", className="saved", role="status"),
        html.Div([undo, redo, export], className="tools"),
    ]
    return html.Header([html.Div(line), html.Div(id="busy")], className="head")


def _pick(name: str, label: Any, look: str, **more: Any) -> Any:
    field = dcc.Dropdown(id=name, clearable=False, className=look, **more)
    return html.Div([label, field], className="field")


def _scatter() -> Any:
    told = (("Lasso", "lasso"), ("Move", "pan"), ("Zoom", "zoom"))
    modes = [
        button(text, pressed=mode == "lasso", data_act="mode", data_mode=mode)
        for text, mode in told
    ]
    return html.Section(
        [
            html.Div(
                [
                    html.H2(helped("Scores", "score")),
                    html.Span(className="grow"),
                    _pick(
                        "axis-x",
                        html.Label("x", htmlFor="axis-x"),
                        "pick-pattern",
                        searchable=False,
                    ),
                    _pick(
                        "axis-y",
                        html.Label("y", htmlFor="axis-y"),
                        "pick-pattern",
                        searchable=False,
                    ),
                    _pick("colour", html.Label("colour", htmlFor="colour"), "pick-colour"),
                ],
                className="bar",
            ),
            html.Div(
                [
                    html.Div(
                        modes,
                        className="segments",
                        role="group",
                        **attributes(aria_label="Drag to"),
                    ),
                    button("Reset view", "quiet small", data_act="fit"),
                    html.Span(className="grow"),
                    html.Div(
                        id="drawn",
                        className="segments",
                        role="group",
                        **attributes(aria_label="Draw"),
                    ),
                    html.Div(id="background", className="segments", role="group"),
                ],
                className="bar",
            ),
            html.Div(
                [
                    html.Canvas(id="dots", **attributes(aria_hidden="true")),
                    dcc.Graph(id="scatter", className="graph", config=BARE),
                    html.Div(id="tip", hidden=True),
                ],
                id="stack",
                className="stack",
                tabIndex="0",
                role="application",
                **attributes(
                    aria_label="Scores of rows. Arrow keys go from row to row, plus and minus zoom, "
                    "0 shows all, Escape clears the selection."
                ),
            ),
            html.P(id="scatter-said", className="unseen", role="status"),
            html.Div(id="legend", className="legend"),
            html.P(id="scatter-words", className="note"),
        ],
        className="panel",
        **attributes(aria_label="Scores"),
    )


def _side() -> Any:
    told = (
        ("tab-how", "How many?", "how"),
        ("tab-why", "Why not background?", "why"),
        ("tab-rows", "Selected rows", "rows"),
    )
    tabs = [
        html.Button(
            text,
            type="button",
            id=name,
            role="tab",
            className="button",
            tabIndex="0" if i == 0 else "-1",
            **attributes(aria_controls=panel, aria_selected=str(i == 0).lower()),
        )
        for i, (name, text, panel) in enumerate(told)
    ]
    own: tuple[Any, ...] = (_how_many(), html.Div(id="why-inside"), html.Div(id="rows-inside"))
    panels = [
        html.Div(
            inside, id=panel, role="tabpanel", hidden=i > 0, **attributes(aria_labelledby=name)
        )
        for i, ((name, _, panel), inside) in enumerate(zip(told, own, strict=True))
    ]
    return html.Section(
        [html.Div(tabs, className="segments tabs", role="tablist"), *panels],
        className="panel",
        **attributes(aria_label="How many, why, and selected rows"),
    )


def _how_many() -> list[Any]:
    knobs = []
    for name, label, key in (
        ("l", "patterns ℓ", "l"),
        ("r", "background r", "r"),
        ("pcs", "components", "pcs"),
    ):
        number = dcc.Input(id=f"knob-{name}", type="number", min=0, step=1, debounce=True)
        auto = html.Div(id=f"auto-{name}")
        knobs.append(
            html.Div(
                [
                    html.Span(helped(label, key), className="name"),
                    html.Div([number, auto], className="row"),
                ],
                className="knob",
            )
        )
    picks = [
        _pick(
            "solver",
            helped("solver", "solver"),
            "pick-fit",
            options=list(SOLVERS),
            searchable=False,
        ),
        _pick(
            "scale", helped("scaling", "scale"), "pick-fit", options=list(SCALES), searchable=False
        ),
        _pick(
            *("projection", helped("scores by", "projection"), "pick-fit"),
            options=[
                {"label": f"{each}s" if each != "auto" else each, "value": each}
                for each in PROJECTIONS
            ],
            searchable=False,
        ),
    ]
    return [
        html.P(
            [
                "Drag a line, or type a number. The grey band is the ",
                helped("permutation null", "null"),
                ".",
            ],
            className="note",
        ),
        dcc.Graph(
            id="how-many",
            config={**BARE, "edits": {"shapePosition": True}},
            style={"height": "440px"},
        ),
        html.Div(knobs, className="knobs"),
        html.Div(picks, className="bar"),
        html.Div(id="fitted", className="fitted"),
    ]


def _patterns() -> Any:
    return html.Section(
        [
            html.Div(
                [
                    html.H2("Patterns"),
                    html.P(
                        "By contrast ratio, the largest first.", className="note", id="order-words"
                    ),
                    html.Span(className="grow"),
                    html.Div(id="jobs", className="bar"),
                ],
                className="bar",
            ),
            html.Div(id="cards", className="cards"),
        ],
        id="patterns",
        className="lower",
        tabIndex="-1",
    )


def _glossary() -> Any:
    entries: list[Any] = []
    for key, told in HELP.items():
        entries.append(
            html.Div(
                [html.Dt(told.title), html.Dd([told.sentence, html.Small(told.page)])],
                id=f"meaning-{key}",
                tabIndex="-1",
                **attributes(data_sentence=told.sentence),
            )
        )
    keys = (
        "Keys: j and k go to the next and the previous pattern, a accepts it, r rejects it, n names it; "
        "Ctrl Z undoes, Ctrl Shift Z redoes."
    )
    return html.Details(
        [
            html.Summary("What do these numbers mean?"),
            html.Dl(entries, className="glossary"),
            html.P(keys, className="note"),
        ],
        id="glossary",
        className="lower more",
    )
