"""Edits: made one at a time; what they change says which views are drawn anew. Exports too."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

import dash
from dash import ClientsideFunction, Input, Output, State, dcc, no_update

from contrica.errors import ContricaError
from contrica.explorer._desk import Desk, desk_of
from contrica.explorer._pieces import button, joined, names_of
from contrica.explorer._session import Session, Sessions
from contrica.explorer._state import MAX_ADDRESS
from contrica.explorer._still import FORMATS, still
from contrica.report._html import Html, element

__all__ = ["FILLED", "keys_of", "notice", "register_edit", "told"]

_log = logging.getLogger("contrica.explorer")

# Views, and fields of the page that have the value of the state's.
KEYS = ("scatter", "fit", "cards", "why", "rows", "controls", "jobs")
# Places that HTML is put into.
FILLED = (
    *(
        "notices",
        "saved",
        "verdict",
        "legend",
        "scatter-words",
        "drawn",
        "background",
        "fitted",
        "jobs",
    ),
    *("order-words", "cards", "why-lead", "why-rest", "rows", "auto-l", "auto-r", "auto-pcs"),
)
FIELDS = ("colour", "card", "solver", "scale", "projection")


def notice(error: BaseException) -> Html:
    """What went wrong, and what to do, in words.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    Html
    """
    if isinstance(error, ContricaError):
        words, serious = str(error), False
    else:
        _log.error("the page could not do what was asked", exc_info=error)
        kind = type(error).__name__
        words, serious = (
            f"Something went wrong here ({kind}). The page is as it was before; the terminal says more.",
            True,
        )
    said = element("div", element("b", "That did not work. "), words)
    dismiss = button("✕", "quiet small", label="Dismiss", data_act="dismiss")
    return element("div", said, dismiss, class_="notice serious" if serious else "notice")


def told(function: Callable[..., Any]) -> Callable[..., Any]:
    """A callback whose errors are said on the page, which stays as it was.

    Parameters
    ----------
    function : callable

    Returns
    -------
    callable
    """

    @wraps(function)
    def answered(*args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            dash.set_props("html-notices", {"data": notice(error)})
            raise dash.exceptions.PreventUpdate from error

    return answered


def keys_of(desk: Desk) -> dict[str, str]:
    """What each view depends on, as text: one that is the same need not be drawn again.

    Parameters
    ----------
    desk : Desk

    Returns
    -------
    dict of str to str
    """
    state = desk.state
    fit, edits = state.fit_text, sorted(state.edits, key=lambda each: (each.fit, each.index))
    names = json.dumps([(e.fit, e.index, e.name) for e in edits if e.name])
    said = json.dumps([(e.fit, e.index, e.name, e.verdict, e.note) for e in edits])
    view = json.dumps([state.x, state.y, state.colour, state.background, state.drawn])
    done = str(desk.n_done)
    lasso = str(desk.n_lassos) if desk.lasso is not None else ""
    return {
        "scatter": "\n".join([fit, view, names]),
        "fit": "\n".join([fit, names]),
        "cards": "\n".join([fit, said, str(state.order), str(state.card), done]),
        "why": "\n".join([fit, names, str(state.card)]),
        "rows": "\n".join([fit, str(state.x), str(state.y), lasso]),
        "controls": "\n".join([state.encode()]),
        "jobs": json.dumps([desk.jobs, desk.n_done, fit]),
    }


def register_edit(app: dash.Dash, sessions: Sessions) -> None:
    """The callbacks of edits, the address, undo and exports.

    Parameters
    ----------
    app : Dash
    sessions : Sessions
    """

    @app.callback(
        Output("state", "data"),
        Output("html-notices", "data"),
        Output("html-saved", "data"),
        *(Output(f"key-{name}", "data") for name in KEYS),
        Input("edit", "data"),
        *(State(f"key-{name}", "data") for name in KEYS),
        prevent_initial_call=True,
    )
    def make(edit: Any, *known: Any) -> Any:
        if not isinstance(edit, dict):
            raise dash.exceptions.PreventUpdate
        desk = desk_of(sessions.current())
        said = Html("")
        with desk.lock:
            try:
                desk.make(edit)
            except Exception as error:
                said = notice(error)
            answer = _answer(desk, edit)
            keys = keys_of(desk)
        if edit.get("do") == "open" or (said and edit.get("do") == "set"):
            known = (None, *known[1:-2], None, None)  # fields go back to what is so
        fresh = [
            no_update if keys[name] == old else keys[name]
            for name, old in zip(KEYS, known, strict=True)
        ]
        return answer, said, joined(desk.session.saved_words), *fresh

    @app.callback(
        Output("download", "data"),
        Output("html-notices", "data", allow_duplicate=True),
        Input("export", "data"),
        prevent_initial_call=True,
    )
    def export(asked: Any) -> Any:
        kind = asked.get("kind") if isinstance(asked, dict) else None
        session = sessions.current()
        try:
            name, content = _file(session, str(kind))
        except Exception as error:
            return no_update, notice(error)
        return dcc.send_bytes(content, name), ""

    for name, output, inputs in (
        ("start", "sink", [Input("ready", "data")]),
        ("answered", "sink", [Input("state", "data")]),
        ("changed", "sink", _fields()),
        ("filled", "sink", [Input(f"html-{name}", "data") for name in FILLED]),
    ):
        app.clientside_callback(
            ClientsideFunction("contrica", name),
            Output(output, "data", allow_duplicate=True),
            *inputs,
            prevent_initial_call="initial_duplicate" if name == "start" else True,
        )


def _file(session: Session, kind: str) -> tuple[str, bytes]:
    state, explorer = session.history.now, session.explorer
    if kind in FORMATS:
        return still(explorer, state, kind, names_of(explorer, state))
    return explorer.export(kind, state)


def _fields() -> list[Input]:
    names = ("axis-x", "axis-y", "colour", "solver", "scale", "projection")
    return [Input(name, "value") for name in (*names, "knob-l", "knob-r", "knob-pcs")]


def _answer(desk: Desk, edit: dict[str, Any]) -> dict[str, Any]:
    """What the page's script is told: which edit this answers, the address, and the fields."""
    state, explorer = desk.state, desk.session.explorer
    view, history = explorer.fit(state), desk.session.history
    address = state.encode()
    if not address and state != explorer.default_state():  # another reader's page opens otherwise
        address = state.fit_text
    return {
        "id": edit.get("id"),
        "tab": edit.get("tab"),
        "address": address if len(address) <= MAX_ADDRESS else "",
        "undo": bool(history.past),
        "redo": bool(history.future),
        "order": state.order_of(view.n_kept),
        "values": {
            **{name: getattr(state, name) for name in FIELDS},
            "x": min(state.x, view.n_kept - 1),
            "y": min(state.y, view.n_kept - 1),
            "n_foreground": view.n_foreground,
            "n_background": view.n_background,
            "dimension": view.dimension,
        },
    }
