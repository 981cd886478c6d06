"""Why a pattern is not background, and in what selected rows differ."""

from __future__ import annotations

from typing import Any

import dash
from dash import Input, Output, dcc, html

from contrica.explorer._callbacks_edit import told
from contrica.explorer._desk import desk_of
from contrica.explorer._figures import why
from contrica.explorer._pieces import button, called, helped, image, names_of, signed, track
from contrica.explorer._session import Sessions
from contrica.explorer._views import Difference, Differences, Why

__all__ = ["register_why"]

# Variables and columns in which selected rows differ.
N_VARIABLES, N_COLUMNS = 12, 6


def register_why(app: dash.Dash, sessions: Sessions) -> None:
    """The callbacks of both views at the right.

    Parameters
    ----------
    app : Dash
    sessions : Sessions
    """

    @app.callback(
        Output("why-inside", "children"), Input("key-why", "data"), prevent_initial_call=True
    )
    @told
    def draw(key: Any) -> Any:
        session = sessions.current()
        explorer, state = session.explorer, session.history.now
        names = names_of(explorer, state)
        index = min(state.card, len(names) - 1)
        return _why(explorer.why(state, index), names[index], explorer.data.image_shape)

    @app.callback(
        Output("rows-inside", "children"), Input("key-rows", "data"), prevent_initial_call=True
    )
    @told
    def rows(key: Any) -> Any:
        desk = desk_of(sessions.current())
        explorer, state = desk.session.explorer, desk.state
        with desk.lock:
            chosen = desk.selected()
        if desk.lasso is None:
            return _empty(
                "Draw around some points", "and see in what these rows differ from the others."
            )
        if not chosen.size or chosen.size == explorer.data.n_fore:
            which = "No foreground row is" if not chosen.size else "All foreground rows are"
            return _empty(f"{which} inside", "Draw around some of the foreground's points.")
        return _differences(explorer.differences(state, chosen))


def _empty(lead: str, words: str) -> Any:
    return html.Div(html.Div([html.P(lead), html.P(words, className="note")]), className="empty")


def _why(found: Why, name: str, shape: tuple[int, int] | None) -> list[Any]:
    figure = why(found, name)
    share = found.share_in_background
    parts: list[Any] = [
        html.H2(name[:1].upper() + name[1:] if name == called(found.index, "") else name),
        html.Ul([html.Li(words) for words in found.words], className="plain-list note"),
        dcc.Graph(
            figure=figure,
            id="why-figure",
            config={"displayModeBar": False, "responsive": True},
            style={"height": f"{figure['layout']['height']}px"},
        ),
        html.Dl(
            [
                html.Dt(helped("share in the background", "background-share")),
                html.Dd(track(share, 0.0, 1.0, kind="plain")),
                html.Dd(f"{share:.0%}", className="value"),
                *_nearest(found),
            ],
            className="bars wide",
        ),
    ]
    if found.others:
        parts.append(html.H3(helped("What other methods give instead", "others")))
        rows = []
        for each in found.others:
            drawn = (
                image(each.component, shape, f"{each.method} {each.number + 1}")
                if shape
                else html.Span()
            )
            rows.append(
                html.Div(
                    [
                        drawn,
                        html.Span(f"{each.method} {each.number + 1}"),
                        track(each.cosine, 0.0, 1.0, kind="plain"),
                        html.Span(f"{each.cosine:.2f}", className="soft"),
                    ],
                    className="other",
                    title=each.words,
                )
            )
        parts.append(html.Div(rows, className="others"))
    return parts


def _nearest(found: Why) -> list[Any]:
    if found.nearest_background is None:
        return []
    number, cosine = found.nearest_background
    return [
        html.Dt(helped(f"nearest background pattern ({number + 1})", "nearest")),
        html.Dd(track(cosine, 0.0, 1.0, kind="plain")),
        html.Dd(f"|cosine| {cosine:.2f}", className="value"),
    ]


def _differences(found: Differences) -> list[Any]:
    clear = button("Clear", "quiet small", says={"do": "lasso", "path": None})
    parts: list[Any] = [
        html.Div(
            [html.H2(f"{found.n_rows:,} rows selected"), html.Span(className="grow"), clear],
            className="bar",
        ),
        html.P(f"Against the {found.n_others:,} other rows of the foreground.", className="note"),
    ]
    for title, own, count in (
        ("Variables", found.variables, N_VARIABLES),
        ("Metadata", found.columns, N_COLUMNS),
    ):
        if own:
            parts += [html.H3(title), html.Dl(_bars(own[:count]), className="bars wide")]
    parts += [html.P([helped("Effect sizes", "differences"), f". {found.words}"], className="note")]
    return parts


def _bars(found: tuple[Difference, ...]) -> list[Any]:
    sizes = [each.size for each in found]
    low, high = min(0.0, *sizes), max(0.0, *sizes)
    rows: list[Any] = []
    for each in found:
        rows += [
            html.Dt(each.name, title=f"{each.name}: {each.words}"),
            html.Dd(track(each.size, low, (high - low) or 1.0)),
            html.Dd(signed(each.size), className="value", title=each.words),
        ]
    return rows
