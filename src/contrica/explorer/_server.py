"""The local server: one page, one token, ended by Ctrl-C."""

from __future__ import annotations

from typing import Any

from contrica.explorer._data import ExplorerData

__all__ = ["make_app", "serve"]


def make_app(data: ExplorerData, *, token: str, host: str, port: int) -> Any:
    """The Flask application: the guard of `_security`, sessions, and the page.

    The page is the partner module ``_page``, with one function
    ``mount(server: flask.Flask, sessions: Sessions) -> dash.Dash``.

    Parameters
    ----------
    data : ExplorerData
    token, host : str
    port : int

    Returns
    -------
    flask.Flask
    """
    raise NotImplementedError


def serve(
    data: ExplorerData,
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    open_browser: bool = True,
) -> None:
    """Serve until Ctrl-C."""
    raise NotImplementedError
