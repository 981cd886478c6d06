"""The page: one layout, and the Dash application that serves it. Everything is served from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dash
from dash import dcc, html

from contrica.explorer._callbacks_cards import register_cards
from contrica.explorer._callbacks_edit import FILLED, KEYS, register_edit
from contrica.explorer._callbacks_how_many import register_how_many
from contrica.explorer._callbacks_scatter import register_scatter
from contrica.explorer._callbacks_why import register_why
from contrica.explorer._pieces import button, helped, joined
from contrica.explorer._session import Sessions
from contrica.explorer._state import PROJECTIONS, SCALES, SOLVERS
from contrica.explorer._texts import HELP
from contrica.report._html import Html, element

__all__ = ["layout", "mount"]

# Of plots: no buttons of plotly's, whose work the page's own do. Of short lists: nothing to search.
BARE: Any = {"displayModeBar": False, "responsive": True, "displaylogo": False}
PLAIN: Any = {"clearable": False, "searchable": False, "className": "pick-fit"}
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
KEYBOARD = (
    "Keys: j and k go to the next and the previous pattern, a accepts it, r rejects it, n names it; "
    "Ctrl Z undoes, Ctrl Shift Z redoes."
)
SCATTER_KEYS = (
    "Scores of rows. Arrow keys go from row to row, plus and minus zoom, 0 shows all, Escape clears the "
    "selection."
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
            html.Header([_static("head", _head(title)), html.Div(id="busy")], className="head"),
            html.Main(
                [
                    _static("offline", element("p"), hidden=True, role="alert"),
                    html.Div(id="notices", role="alert"),
                    html.Div(id="verdict", className="verdict"),
                    html.Div([_scatter(), _side()], className="views"),
                    _patterns(),
                    _static("glossary", _glossary(), className="lower more"),
                ]
            ),
            html.Div(id="help", role="tooltip", hidden=True),
            html.P("Reading the data and fitting …", className="starting"),
            *_stores(),
        ]
    )


def _static(name: str, content: Html, **more: Any) -> Any:
    """A place for HTML that never changes: the page's script puts it there when it starts."""
    return html.Div(html.Span(content, hidden=True, className="content"), id=name, **more)


def _stores() -> list[Any]:
    names = ["edit", "state", "export", "hovered", "told", "points", "sink"]
    names += [f"key-{name}" for name in KEYS] + [f"html-{name}" for name in FILLED]
    return [
        *(dcc.Store(id=name) for name in names),
        dcc.Store(id="ready", data=True),
        dcc.Download(id="download"),
        dcc.Interval(id="tick", interval=800, disabled=True),
    ]


def _head(title: str) -> Html:
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
        element("hr")
        if each is None
        else button([each[1], element("span", each[2])], data_export=each[0])
        for each in EXPORTS
    ]
    export = element(
        "details",
        element("summary", "Export", class_="button main"),
        element("div", items),
        class_="menu",
    )
    return joined(
        element("span", element("i", aria_hidden="true"), "contrica", class_="mark"),
        element("h1", title, title=title),
        element("span", id="saved", class_="saved", role="status"),
        element("div", undo, redo, export, class_="tools"),
    )


def _pick(name: str, label: str, look: str, **more: Any) -> Any:
    field = dcc.Dropdown(id=name, clearable=False, className=look, **more)
    return html.Div([html.Label(label, htmlFor=name), field], className="field")


def _scatter() -> Any:
    told = (("Lasso", "lasso"), ("Move", "pan"), ("Zoom", "zoom"))
    modes = [
        button(text, pressed=mode == "lasso", data_act="mode", data_mode=mode)
        for text, mode in told
    ]
    tools = joined(
        element("div", modes, class_="segments", role="group", aria_label="Drag to"),
        button("Reset view", "quiet small", data_act="fit"),
        element("span", class_="grow"),
        element("div", id="drawn", class_="segments", role="group", aria_label="Draw"),
        element("div", id="background", class_="segments", role="group"),
    )
    plot = [
        html.Canvas(id="dots", **{"aria-hidden": "true"}),  # type: ignore[arg-type]
        dcc.Graph(id="scatter", className="graph", config=BARE),
        html.Div(id="tip", hidden=True),
    ]
    named: Any = {"aria-label": SCATTER_KEYS}
    return html.Section(
        [
            html.Div(
                [
                    _static("scatter-title", element("h2", helped("Scores", "score"))),
                    html.Span(className="grow"),
                    _pick("axis-x", "x", "pick-pattern", searchable=False),
                    _pick("axis-y", "y", "pick-pattern", searchable=False),
                    _pick("colour", "colour", "pick-colour"),
                ],
                className="bar",
            ),
            _static("tools", tools, className="bar"),
            html.Div(
                plot, id="stack", className="stack", tabIndex="0", role="application", **named
            ),
            html.P(id="scatter-said", className="unseen", role="status"),
            html.Div(id="legend", className="legend"),
            html.P(id="scatter-words", className="note"),
        ],
        className="panel",
    )


def _side() -> Any:
    told = (
        ("tab-how", "How many?", "how"),
        ("tab-why", "Why not background?", "why"),
        ("tab-rows", "Selected rows", "selected"),
    )
    tabs = [
        button(
            text,
            id=name,
            role="tab",
            tabindex="0" if i == 0 else "-1",
            aria_controls=panel,
            aria_selected=str(i == 0).lower(),
        )
        for i, (name, text, panel) in enumerate(told)
    ]
    why = [
        html.Div(id="why-lead"),
        dcc.Graph(id="why-figure", config=BARE),
        html.Div(id="why-rest"),
    ]
    own: tuple[Any, ...] = (_how_many(), why, html.Div(id="rows"))
    panels = [
        html.Div(inside, id=panel, role="tabpanel", hidden=i > 0)
        for i, ((_, _, panel), inside) in enumerate(zip(told, own, strict=True))
    ]
    tablist = element("div", tabs, class_="segments", role="tablist")
    return html.Section([_static("tabs", tablist, className="tabs"), *panels], className="panel")


def _how_many() -> list[Any]:
    fields = [
        _knob(
            *(name, label, f"knob-{name}"),
            dcc.Input(id=f"knob-{name}", type="number", min=0, step=1, debounce=True),
            html.Div(id=f"auto-{name}"),
        )
        for name, label in (("l", "patterns ℓ"), ("r", "background r"), ("pcs", "components"))
    ]
    by = [{"label": f"{each}s" if each != "auto" else each, "value": each} for each in PROJECTIONS]
    fields += [
        _knob(name, label, name, dcc.Dropdown(id=name, options=options, **PLAIN))
        for name, label, options in (
            ("solver", "solver", list(SOLVERS)),
            ("scale", "scaling", list(SCALES)),
            ("projection", "scores by", by),
        )
    ]
    lead = joined(
        *("Drag a line, or type a number. Grey is the ", helped("permutation null", "null")),
        *("; below are ", helped("eigenvalues", "eigenvalues"), " and variances."),
    )
    return [
        _static("how-lead", lead, className="note"),
        dcc.Graph(
            id="how-many",
            config={**BARE, "edits": {"shapePosition": True}},
            style={"height": "420px"},
        ),
        html.Div(fields, className="knobs"),
        html.Div(id="fitted", className="fitted"),
        dcc.Graph(id="matches", config=BARE, style={"display": "none"}),
    ]


def _knob(key: str, text: str, field: str, *inside: Any) -> Any:
    """A field of the fit below its name, which can be asked what it means."""
    label = joined(helped(text, key), element("label", text, for_=field, class_="unseen"))
    named = _static(f"name-{key}", label, className="name")
    return html.Div([named, html.Div(list(inside), className="row")], className="knob")


def _patterns() -> Any:
    return html.Section(
        [
            html.Div(
                [
                    html.H2("Patterns"),
                    html.P(className="note", id="order-words"),
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


def _glossary() -> Html:
    entries = [
        element(
            "div",
            element("dt", told.title),
            element("dd", told.sentence, element("small", told.page)),
            id=f"meaning-{key}",
            tabindex="-1",
            data_sentence=told.sentence,
        )
        for key, told in HELP.items()
    ]
    return element(
        "details",
        element("summary", "What do these numbers mean?"),
        element("dl", entries, class_="glossary"),
        element("p", KEYBOARD, class_="note"),
    )
