"""Who may ask the server for anything: whoever was given its address with the token, and nobody else.

A page from elsewhere cannot ask in a reader's name: the cookie is sent from this page only, requests that
change something must come from it, and the name of the host must be the one that the server has, so that
no other name can be made to point here.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from collections.abc import Callable, Sequence
from html import escape
from typing import Any
from urllib.parse import urlsplit

from contrica.errors import PackageMissingError

__all__ = ["COOKIE", "Guard", "TokenFilter", "flask_of", "is_loopback"]

# The cookie that stands for the token, bytes of a request that are read, and of its address.
COOKIE, MAX_BYTES, MAX_ADDRESS = "contrica_explorer", 4_000_000, 70_000
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What the page asks for, and nothing else.
PATHS = re.compile(
    r"/(_dash-(layout|dependencies|update-component)|_dash-component-suites/[^/]+/.+|assets/.+"
    r"|_favicon\.ico)?"
)
# What a reader sees who may not ask.
REFUSED = {
    400: "This request is not one that the explorer's page makes.",
    403: "This address needs its token. Open the whole address that contrica explore printed.",
    404: "There is nothing at this address.",
    405: "The explorer takes no uploads, and changes nothing in this way.",
    413: "This request is larger than any that the page makes.",
    414: "This address is longer than any that the page makes.",
    500: "The explorer could not answer this. Reload the page: what was named or accepted is kept.",
}


def flask_of() -> Any:
    """The package flask; what to install where it is missing.

    Returns
    -------
    module
    """
    try:
        import dash  # noqa: F401 - what the page needs as well
        import flask
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            f"the explorer needs {error.name}",
            remedy="Install it: pip install 'contrica[explorer]'.",
        ) from error
    return flask


def is_loopback(host: str) -> bool:
    """Whether a host is this machine as only itself sees it.

    Parameters
    ----------
    host : str

    Returns
    -------
    bool
    """
    return host in LOOPBACK or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


class TokenFilter(logging.Filter):
    """Leaves tokens out of lines of the log.

    Parameters
    ----------
    token : str
    """

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token

    def filter(self, record: logging.LogRecord) -> bool:
        """Write the line without the token."""
        text = record.getMessage()
        clean = re.sub(r"token=[^&\s\"']*", "token=…", text.replace(self.token, "…"))
        if clean != text:
            record.msg, record.args = clean, ()
        return True


class Guard:
    """What stands before every request to a server.

    Parameters
    ----------
    token : str
    host : str
        That the server is bound to.
    port : int
    framed : bool
        Whether pages of this machine may show the page in a frame, as notebooks do.
    """

    def __init__(self, token: str, host: str, port: int, *, framed: bool = False) -> None:
        self.token, self.host, self.port = token, host, port
        self._ancestors = "http://localhost:* http://127.0.0.1:*" if framed else "'none'"
        self._proof = hmac.new(secrets.token_bytes(32), token.encode(), "sha256").hexdigest()
        self.policy = self._policy(())

    def attach(self, app: Any) -> None:
        """Stand before and behind all requests of an application.

        Parameters
        ----------
        app : flask.Flask
        """
        app.config["MAX_CONTENT_LENGTH"] = MAX_BYTES
        app.config["MAX_FORM_MEMORY_SIZE"] = MAX_BYTES
        app.before_request_funcs.setdefault(None, []).insert(0, self._before)
        app.after_request_funcs.setdefault(None, []).append(self._after)
        for code in REFUSED:
            app.register_error_handler(code, _handler(code))

    def allow_scripts(self, hashes: Sequence[str]) -> None:
        """Allow the page's own inline scripts, and no others.

        Parameters
        ----------
        hashes : sequence of str
            As a Content-Security-Policy has them.
        """
        self.policy = self._policy(hashes)

    # --- before ---

    def _before(self) -> Any:
        flask = flask_of()
        request = flask.request
        if not self._is_our_host(request.headers.get("Host", "")):
            flask.abort(400)
        if len(request.full_path) > MAX_ADDRESS:
            flask.abort(414)
        if (request.content_length or 0) > MAX_BYTES:
            flask.abort(413)
        if not self._is_our_page(request):
            flask.abort(403)
        given = request.args.get("token")
        if given is not None:
            return self._let_in(flask, request, given)
        if not hmac.compare_digest(
            request.cookies.get(self.cookie, "").encode(), self._proof.encode()
        ):
            flask.abort(403)
        if request.method not in ("GET", "HEAD", "POST"):
            flask.abort(405)
        is_json = request.method != "POST" or request.mimetype == "application/json"
        if not is_json:  # a form, or a file
            flask.abort(405)
        path = request.path
        if (
            not PATHS.fullmatch(path)
            or ".." in path
            or "\\" in path
            or "\0" in path
            or "//" in path
        ):
            flask.abort(404)
        return None

    @property
    def cookie(self) -> str:
        """Its name: a browser sends it to servers on other ports of this machine too."""
        return f"{COOKIE}_{self.port}"

    def _let_in(self, flask: Any, request: Any, given: str) -> Any:
        """A cookie in place of the token, which does not stay in the address."""
        if request.method != "GET" or not hmac.compare_digest(given.encode(), self.token.encode()):
            flask.abort(403)
        rest = [
            part
            for part in request.query_string.decode("ascii", "replace").split("&")
            if part and not part.startswith("token=")
        ]
        place = "/" + ("?" + "&".join(rest) if rest else "")
        answer = flask.redirect(place, 303)
        if request.headers.get("Sec-Fetch-Site") == "cross-site":
            # a browser keeps the cookie back from where another page's link leads, but not from ours
            answer = flask.Response(
                f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={escape(place)}">',
                mimetype="text/html",
            )
        answer.set_cookie(self.cookie, self._proof, httponly=True, samesite="Strict", path="/")
        return answer

    def _is_our_host(self, given: str) -> bool:
        try:
            parts = urlsplit(f"//{given}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if port != self.port or parts.path or parts.username is not None:
            return False
        if self.host in ("0.0.0.0", "::"):  # any of the machine's addresses, but no name
            return name in LOOPBACK or bool(re.fullmatch(r"[0-9.]+|[0-9a-f:]+", name))
        return name == self.host or (is_loopback(self.host) and name in LOOPBACK)

    def _is_our_page(self, request: Any) -> bool:
        """Whether what changes something comes from the page itself."""
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if origin is not None and origin != f"http://{request.headers.get('Host', '')}":
            return False
        if request.method in ("GET", "HEAD"):
            return site in (None, "none", "same-origin") or self._is_visit(request)
        return origin is not None or site == "same-origin"

    def _is_visit(self, request: Any) -> bool:
        """Whether a link elsewhere was followed to the page, which shows it to the reader only."""
        return request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"

    # --- behind ---

    def _after(self, answer: Any) -> Any:
        headers = answer.headers
        headers["Content-Security-Policy"] = self.policy
        headers["Referrer-Policy"] = "no-referrer"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        if answer.mimetype in ("text/html", "application/json"):
            headers["Cache-Control"] = "no-store"
        return answer

    def _policy(self, hashes: Sequence[str]) -> str:
        scripts = " ".join(["'self'", *hashes])
        return "; ".join(
            [
                "default-src 'self'",
                f"script-src {scripts}",
                # plotly and Dash write styles of elements
                "style-src 'self' 'unsafe-inline'",
                "img-src 'self' data: blob:",
                "font-src 'self' data:",
                "connect-src 'self'",
                "worker-src 'self' blob:",
                "object-src 'none'",
                "base-uri 'none'",
                "form-action 'none'",
                f"frame-ancestors {self._ancestors}",
            ]
        )


def _handler(code: int) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        flask = flask_of()
        return flask.Response(f"{REFUSED[code]}\n", code, mimetype="text/plain")

    return answer
