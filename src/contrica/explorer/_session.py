"""Sessions: every browser has its own explorer and its own state, and none sees another's."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from contrica.explorer._data import ExplorerData
from contrica.explorer._explorer import Explorer
from contrica.explorer._fits import Fits
from contrica.explorer._jobs import Jobs
from contrica.explorer._saved import Places, SavedNames, fingerprint
from contrica.explorer._security import flask_of
from contrica.explorer._state import History, ViewState

__all__ = ["Session", "Sessions"]

# Browsers that are known at a time, those that are remembered, and their cookie's name before the port.
MAX_SESSIONS, MAX_AWAY, COOKIE = 16, 256, "contrica_session"


class Session:
    """One browser's explorer, history and saved names.

    Parameters
    ----------
    session_id : str
    explorer : Explorer
    saved : SavedNames
    start : ViewState, optional
        That the page opens with, where no names are restored.

    Attributes
    ----------
    id : str
    explorer : Explorer
    history : History
    """

    def __init__(
        self,
        session_id: str,
        explorer: Explorer,
        saved: SavedNames,
        start: ViewState | None = None,
    ) -> None:
        self.id, self.explorer, self._saved = session_id, explorer, saved
        known = saved.restored()
        first = explorer.default_state() if start is None else start
        self.history = History(first if known is None or start is not None else known)

    def save(self, state: ViewState) -> None:
        """Keep names, notes and verdicts on disk, in one step; called after every edit.

        Parameters
        ----------
        state : ViewState
        """
        self._saved.save(state)

    @property
    def saved_words(self) -> str:
        """Where they are kept, or why they cannot be, for the page to show."""
        return self._saved.words

    def flush(self) -> None:
        """Keep what was said, before the server ends."""
        state = self.history.now
        if state.edits or state.order:
            self.save(state)


class Sessions:
    """All browsers of a server, at most sixteen; whoever was away longest has to make room.

    Parameters
    ----------
    data : ExplorerData
    folder : Path, optional
        For names; by default the data's.
    port : int
        Of the server, which is part of the cookie's name.
    start : ViewState, optional
        That pages open with.
    """

    def __init__(
        self,
        data: ExplorerData,
        folder: Path | None = None,
        *,
        port: int = 0,
        start: ViewState | None = None,
    ) -> None:
        self.data, self.cookie, self.start = data, f"{COOKIE}_{port}", start
        self._fits, self._jobs = Fits(data), Jobs()
        self._places = Places(folder or data.source.folder or Path(), fingerprint(data))
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Session] = OrderedDict()
        # of those that had to make room, for when they come back
        self._away: dict[str, tuple[History, SavedNames]] = {}

    def current(self) -> Session:
        """The session of the request that is being answered, by its cookie.

        Returns
        -------
        Session
        """
        flask = flask_of()
        if "contrica_session" not in flask.g:
            given = flask.request.cookies.get(self.cookie, "")
            flask.g.contrica_session = self._of(given)
        found: Session = flask.g.contrica_session
        return found

    def attach(self, app: Any) -> None:
        """Give every browser the cookie of its session with the first answer.

        Parameters
        ----------
        app : flask.Flask
        """

        def with_cookie(answer: Any) -> Any:
            flask = flask_of()
            # only a page that was let in begins a session
            if answer.status_code == 200 and flask.request.path == "/":
                self.current()
            found = flask.g.get("contrica_session")
            if found is not None and flask.request.cookies.get(self.cookie) != found.id:
                answer.set_cookie(self.cookie, found.id, httponly=True, samesite="Strict", path="/")
            return answer

        app.after_request_funcs.setdefault(None, []).append(with_cookie)

    def _of(self, session_id: str) -> Session:
        with self._lock:
            if session_id in self._known:
                self._known.move_to_end(session_id)
                return self._known[session_id]
            if session_id in self._away:
                history, saved = self._away.pop(session_id)
                found = Session(session_id, self._explorer(), saved)
                found.history = history
            else:
                found = Session(
                    *(secrets.token_urlsafe(24), self._explorer(), self._places.take(), self.start)
                )
            self._known[found.id] = found
            while len(self._known) > MAX_SESSIONS:
                old = self._known.popitem(last=False)[1]
                old.flush()
                self._away[old.id] = (old.history, old._saved)
                if len(self._away) > MAX_AWAY:
                    del self._away[next(iter(self._away))]
            return found

    def _explorer(self) -> Explorer:
        return Explorer(self.data, self._fits, self._jobs)

    def close(self) -> None:
        """Keep what was said, and end what is computed."""
        with self._lock:
            for each in self._known.values():
                each.flush()
            self._places.close()
        self._jobs.close()
