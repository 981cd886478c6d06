"""The local server: one page, one token, ended by Ctrl-C.

werkzeug's threaded server answers it: it comes with Dash, binds to one address, and a page for one person
asks it for little. What waitress or gunicorn add is for many clients, whom the token keeps out.
"""

from __future__ import annotations

import errno
import logging
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contrica.errors import ParameterError, ParameterWarning, warn
from contrica.explorer._data import ExplorerData
from contrica.explorer._security import Guard, TokenFilter, flask_of, is_loopback
from contrica.explorer._session import Sessions
from contrica.explorer._state import ViewState

__all__ = ["Server", "make_app", "serve"]

logger = logging.getLogger("contrica")

# What writes of requests.
_LOGS = (logging.getLogger("werkzeug"), logger)
# The first port that is tried where none is given, and how many after it.
FIRST_PORT, N_PORTS = 8150, 50


class Server:
    """A server that runs in a thread, from `start` to `stop`.

    Parameters
    ----------
    data : ExplorerData
    host : str
    port : int, optional
        The next free one by default.
    folder : Path, optional
        For names.
    start : ViewState, optional
        That the page opens with.
    framed : bool
        Whether a page of this machine, such as a notebook, may show it in a frame.

    Attributes
    ----------
    address : str
        With the token.
    sessions : Sessions
    """

    def __init__(
        self,
        data: ExplorerData,
        host: str = "127.0.0.1",
        port: int | None = None,
        *,
        folder: Path | None = None,
        start: ViewState | None = None,
        framed: bool = False,
    ) -> None:
        flask_of()
        from werkzeug.serving import make_server

        bound, self.port = _bound(host, port)
        if not is_loopback(host):
            _warn_of_host(host)
        self.host, self.token = host, secrets.token_urlsafe(32)
        self._filter = _quiet(self.token)
        self.sessions = Sessions(data, folder, port=self.port, start=start)
        self.app = make_app(self.sessions, Guard(self.token, host, self.port, framed=framed))
        self._server = make_server(host, self.port, self.app, threaded=True, fd=bound.fileno())
        bound.close()  # the server has a handle of its own
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where the page is, with the token."""
        return f"{self.origin}/?token={self.token}"

    @property
    def origin(self) -> str:
        """Where the page is, without the token."""
        shown = self.host
        if shown in ("0.0.0.0", "::"):
            shown = "127.0.0.1"
        return f"http://[{shown}]:{self.port}" if ":" in shown else f"http://{shown}:{self.port}"

    def start(self) -> Server:
        """Begin to answer, in a thread.

        Returns
        -------
        Server
        """
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="contrica-explorer-server", daemon=True
        )
        self._thread.start()
        return self

    def wait(self) -> None:
        """Answer until it is interrupted."""
        try:
            while self._thread is not None and self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            pass

    def stop(self) -> None:
        """Keep what was named, end what is computed, and answer no more."""
        self.sessions.close()
        self._server.shutdown()
        self._server.server_close()
        if self._thread is not None:
            self._thread.join(5)
        for log in _LOGS:
            log.removeFilter(self._filter)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame, and its address."""
        # a notebook on another name of this machine would not be sent the cookie
        shown = self.address.replace("//127.0.0.1:", "//localhost:")
        return (
            f'<p><a href="{shown}" target="_blank" rel="noreferrer">contrica explorer</a></p>'
            f'<iframe src="{shown}" style="width:100%;height:820px;border:1px solid #ccc" '
            'title="contrica explorer"></iframe>'
        )

    def __repr__(self) -> str:
        return f"contrica explorer at {self.address}"


def make_app(sessions: Sessions, guard: Guard) -> Any:
    """The Flask application: guard, sessions, and the page.

    Parameters
    ----------
    sessions : Sessions
    guard : Guard

    Returns
    -------
    flask.Flask
    """
    flask = flask_of()
    from contrica.explorer._page import mount

    app = flask.Flask("contrica.explorer", static_folder=None)
    guard.attach(app)
    sessions.attach(app)
    page = mount(app, sessions)
    page.layout  # noqa: B018 - callbacks are registered by now
    guard.allow_scripts(page.csp_hashes())
    return app


def serve(
    data: ExplorerData,
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    open_browser: bool = True,
    start: ViewState | None = None,
    say: Callable[[str], None] = logger.info,
) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    data : ExplorerData
    host : str
    port : int, optional
    open_browser : bool
        Whether to open the page in the browser of this machine.
    start : ViewState, optional
        That the page opens with.
    say : callable
        Is given lines for the reader: first the address.
    """
    server = Server(data, host, port, start=start).start()
    try:
        say(server.address)
        say("Open this address in a browser; Ctrl-C ends it.")
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        server.wait()
    finally:
        server.stop()


def _bound(host: str, port: int | None) -> tuple[socket.socket, int]:
    """A socket on a port of its own: the one given, or the first that is free."""
    if port is not None and not 0 <= port <= 65535:
        raise ParameterError(
            "port",
            f"`port={port}` was given",
            "ports are from 1 to 65535; 0 takes any that is free",
            parameter="port",
        )
    tried = range(FIRST_PORT, FIRST_PORT + N_PORTS) if port is None else (port,)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for each in tried:
        found = socket.socket(family, socket.SOCK_STREAM)
        if sys.platform != "win32":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, each))
            found.listen(128)
            return found, found.getsockname()[1]
        except OSError as error:
            found.close()
            if port is None and error.errno == errno.EADDRINUSE:
                continue
            raise _not_bound(host, each, error) from error
    raise ParameterError(
        "no-port",
        f"no port from {FIRST_PORT} to {FIRST_PORT + N_PORTS - 1} is free",
        remedy="Give another `port`.",
        parameter="port",
    )


def _not_bound(host: str, port: int, error: OSError) -> ParameterError:
    if error.errno == errno.EADDRINUSE:
        return ParameterError(
            "port-in-use",
            f"port {port} is in use",
            remedy="Give another `port`, leave it out for the next free one, or end what uses it.",
            parameter="port",
        )
    return ParameterError(
        "no-address",
        f"nothing can be served at {host} port {port} ({error.strerror or error})",
        remedy="Give a `host` of this machine, and a port above 1023.",
        parameter="host",
    )


def _quiet(token: str) -> TokenFilter:
    """No line for each request, and never the token."""
    found = TokenFilter(token)
    for log in _LOGS:
        log.addFilter(found)
    if _LOGS[0].level == logging.NOTSET:
        _LOGS[0].setLevel(logging.WARNING)
    return found


def _warn_of_host(host: str) -> None:
    warn(
        ParameterWarning(
            "open-host",
            f"`host={host}` lets other machines reach the explorer, without encryption",
            remedy="Whoever has the address with its token sees the data. Leave `host` out, and reach "
            "this machine by a tunnel of ssh.",
            parameter="host",
        )
    )
