"""Why a pattern is not background, and in what selected rows differ."""

from __future__ import annotations

from typing import Any

import dash
from dash import Input, Output

from contrica.explorer._callbacks_edit import told
from contrica.explorer._desk import desk_of
from contrica.explorer._figures import why
from contrica.explorer._pieces import (
    button,
    called,
    helped,
    image,
    joined,
    names_of,
    note,
    signed,
    track,
)
from contrica.explorer._session import Sessions
from contrica.explorer._views import Difference, Differences, Nearest, Why
from contrica.report._html import Html, element

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
        Output("html-why-lead", "data"),
        Output("why-figure", "figure"),
        Output("why-figure", "style"),
        Output("html-why-rest", "data"),
        Input("key-why", "data"),
        prevent_initial_call=True,
    )
    @told
    def draw(key: Any) -> Any:
        session = sessions.current()
        explorer, state = session.explorer, session.history.now
        names = names_of(explorer, state)
        index = min(state.card, len(names) - 1)
        found, name = explorer.why(state, index), names[index]
        figure = why(found, name)
        title = name[:1].upper() + name[1:] if name == called(index, "") else name
        said = element(
            "ul", [element("li", words) for words in found.words], class_="plain-list note"
        )
        return (
            joined(element("h2", title), said),
            figure,
            {"height": f"{figure['layout']['height']}px"},
            _rest(found, explorer.data.image_shape),
        )

    @app.callback(Output("html-rows", "data"), Input("key-rows", "data"), prevent_initial_call=True)
    @told
    def rows(key: Any) -> Any:
        desk = desk_of(sessions.current())
        explorer, state = desk.session.explorer, desk.state
        with desk.lock:
            chosen = desk.selected()
        x, y = explorer.axes(state)
        how = "Draw around some points" if x != y else "Drag across a part of the histogram"
        if desk.lasso is None:
            return _empty(how, "and see in what these rows differ from the others.")
        if not chosen.size or chosen.size == explorer.data.n_fore:
            which = "No foreground row is" if not chosen.size else "All foreground rows are"
            return _empty(f"{which} inside", f"{how}: at least one of the foreground, and not all.")
        return _differences(explorer.differences(state, chosen))


def _empty(lead: str, words: str) -> Html:
    return element("div", element("div", element("p", lead), note(words)), class_="empty")


def _rest(found: Why, shape: tuple[int, int] | None) -> Html:
    """What is below the densities: share in the background, its nearest pattern, other methods."""
    share = found.share_in_background
    rows = [
        element("dt", helped("share in the background", "background-share")),
        element("dd", track(share, 0.0, 1.0, kind="plain")),
        element("dd", f"{share:.0%}", class_="value"),
    ]
    if found.nearest_background is not None:
        number, cosine = found.nearest_background
        rows += [
            element("dt", helped(f"nearest background pattern ({number + 1})", "nearest")),
            element("dd", track(cosine, 0.0, 1.0, kind="plain")),
            element("dd", f"{cosine:.2f}", class_="value", title=f"|cosine| {cosine:.2f}"),
        ]
    parts = [element("dl", rows, class_="bars wide")]
    if found.others:
        parts.append(element("h3", helped("what other methods give instead", "others")))
        parts.append(
            element("div", [_other(each, shape) for each in found.others], class_="others")
        )
    return joined(parts)


def _other(each: Nearest, shape: tuple[int, int] | None) -> Html:
    called_so = f"{each.method} {each.number + 1}"
    drawn = image(each.component, shape, called_so) if shape else element("span")
    return element(
        "div",
        drawn,
        element("span", called_so),
        track(each.cosine, 0.0, 1.0, kind="plain"),
        element("span", f"{each.cosine:.2f}", class_="soft"),
        class_="other",
        title=each.words,
    )


def _differences(found: Differences) -> Html:
    clear = button("Clear", "quiet small", data_act="clear")
    title = element("h2", f"{found.n_rows:,} rows selected")
    parts = [
        element("div", title, element("span", class_="grow"), clear, class_="bar"),
    ]
    for heading, own, count in (
        ("Variables", found.variables, N_VARIABLES),
        ("Metadata", found.columns, N_COLUMNS),
    ):
        if own:
            parts.append(element("h3", heading))
            parts.append(element("dl", _bars(own[:count]), class_="bars wide"))
    told = (helped("What are these numbers?", "differences"), " ", found.words)
    return joined(parts, note(*told))


def _bars(found: tuple[Difference, ...]) -> list[Html]:
    sizes = [each.size for each in found]
    low, high = min(0.0, *sizes), max(0.0, *sizes)
    rows: list[Html] = []
    for each in found:
        rows += [
            element("dt", each.name, title=f"{each.name}: {each.words}"),
            element("dd", track(each.size, low, (high - low) or 1.0)),
            element("dd", signed(each.size), class_="value", title=each.words),
        ]
    return rows
