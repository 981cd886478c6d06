"""What a browser does to its session: edits, one at a time, in the order in which they were made."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from contrica.errors import ParameterError
from contrica.explorer._session import Session
from contrica.explorer._state import FIT_FIELDS, ViewState

__all__ = ["Desk", "desk_of"]

# Corners of a lasso that are kept.
MAX_CORNERS = 2000
# Fields that an edit can set, and the whole numbers among them.
VIEW_FIELDS = ("x", "y", "card", "colour", "background", "drawn")
NUMBERS = ("x", "y", "card", "n_foreground", "n_background", "dimension")
LINES = {"l": "n_foreground", "r": "n_background", "pcs": "dimension"}
JOBS = ("significance", "stability")


@dataclass
class Desk:
    """What a session has open, beside its state.

    Attributes
    ----------
    session : Session
    lock : threading.RLock
        Taken while an edit is made: edits of two tabs follow one another.
    answered : dict of str to int
        Number of the last edit of every tab, which is not made twice.
    before : ViewState or None
        The state before the last refit, to compare with.
    lasso : ndarray of shape (n_corners, 2) or None
        Around selected rows, in scores of the axes ``lasso_axes``.
    lasso_axes : (int, int)
    jobs : dict of str to str
        The id of the last job of each kind.
    told : set of str
        Jobs whose end the page was told of.
    n_done : int
        How many these are, so that cards are drawn anew.
    """

    session: Session
    lock: threading.RLock = field(default_factory=threading.RLock)
    answered: dict[str, int] = field(default_factory=dict)
    before: ViewState | None = None
    lasso: np.ndarray | None = None
    lasso_axes: tuple[int, int] = (0, 1)
    n_lassos: int = 0
    jobs: dict[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    n_done: int = 0

    @property
    def state(self) -> ViewState:
        """The present one."""
        return self.session.history.now

    def make(self, edit: Mapping[str, Any]) -> None:
        """Make an edit, unless it was made already; errors of contrica say why it cannot be made.

        Parameters
        ----------
        edit : mapping
            ``do`` names it; ``tab`` and ``id`` number the edits of a page.
        """
        tab, number = str(edit.get("tab", ""))[:64], edit.get("id", 0)
        number = number if isinstance(number, int) else 0
        with self.lock:
            if number and number <= self.answered.get(tab, 0):
                return
            self.answered[tab] = number  # an edit that fails is not tried again either
            do = edit.get("do")
            action = _ACTIONS.get(do) if isinstance(do, str) else None
            if action is None:
                raise _unknown("do", do)
            action(self, edit)

    def go(self, state: ViewState) -> None:
        """Go on to a state, and keep what was said of its patterns.

        Parameters
        ----------
        state : ViewState
        """
        old = self.state
        self.session.history = self.session.history.then(state)
        self._arrived(old)

    def _arrived(self, old: ViewState) -> None:
        new = self.state
        if new.fit_text != old.fit_text:
            self.before = old
            self.lasso = None
        if (new.x, new.y) != self.lasso_axes:
            self.lasso = None
        if (new.edits, new.order) != (old.edits, old.order):
            self.session.save(new)

    def selected(self) -> np.ndarray:
        """Numbers of the foreground rows inside the lasso, all of them, drawn or not."""
        if self.lasso is None:
            return np.empty(0, dtype=int)
        scores = self.session.explorer.fit(self.state).scores_fore
        # as drawn: where there are fewer patterns, the last one
        drawn = np.minimum(self.lasso_axes, scores.shape[1] - 1)
        return np.flatnonzero(inside(scores[:, drawn], self.lasso))


def inside(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Which points are inside a polygon, by the number of its sides to their right.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    corners : ndarray of shape (n_corners, 2)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    x, y = points.T
    found = np.zeros(len(points), dtype=bool)
    known = np.isfinite(points).all(axis=1)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crossed = ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
        found ^= crossed
    return found & known


_desks: WeakKeyDictionary[Session, Desk] = WeakKeyDictionary()
_desks_lock = threading.Lock()


def desk_of(session: Session) -> Desk:
    """The desk of a session.

    Parameters
    ----------
    session : Session

    Returns
    -------
    Desk
    """
    with _desks_lock:
        return _desks.setdefault(session, Desk(session))


# --- edits ---


def _unknown(key: str, value: object) -> ParameterError:
    shown = str(value)[:60]
    return ParameterError(
        *("edit", f"the page asks for {key} {shown}", "there is no such thing to do"),
        "Reload the page.",
        key,
    )


def _number(edit: Mapping[str, Any], key: str) -> int:
    value = edit.get(key)
    if isinstance(value, float) and math.isfinite(value):
        value = round(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unknown(key, value)
    return value


def _pattern(desk: Desk, edit: Mapping[str, Any], key: str = "index") -> int:
    index = _number(edit, key)
    if not 0 <= index < desk.session.explorer.fit(desk.state).n_kept:
        raise _unknown("pattern", index + 1)
    return index


def _open(desk: Desk, edit: Mapping[str, Any]) -> None:
    text = str(edit.get("text") or "")
    if not text:
        return
    state = ViewState.decode(text)
    if state == desk.state:
        return
    desk.session.explorer.fit(state)  # one that cannot be fitted leaves the page as it was
    desk.go(state)


def _set(desk: Desk, edit: Mapping[str, Any]) -> None:
    name, value = edit.get("field"), edit.get("value")
    if name not in (*VIEW_FIELDS, *FIT_FIELDS):
        raise _unknown("field", name)
    if name in NUMBERS and value is not None:
        value = _number(edit, "value")
    if name in ("n_foreground", "n_background") and value == 0:
        value = None  # what is shown where there is none
    if name in ("x", "y", "card"):
        value = _pattern(desk, edit, "value")
    desk.go(desk.session.explorer.change(desk.state, **{str(name): value}))


def _line(desk: Desk, edit: Mapping[str, Any]) -> None:
    """A line was dragged: to the number left of it, within what there is."""
    name = LINES.get(str(edit.get("name")))
    at = edit.get("at")
    if name is None or not isinstance(at, int | float) or not math.isfinite(at):
        raise _unknown("line", edit.get("name"))
    largest = desk.session.explorer.how_many(desk.state).largest[name]
    number = min(max(math.floor(at), 1), largest)
    desk.go(desk.session.explorer.change(desk.state, **{name: number}))


def _say(desk: Desk, edit: Mapping[str, Any]) -> None:
    said, value = edit.get("field"), edit.get("value")
    if said not in ("name", "note", "verdict") or not isinstance(value, str):
        raise _unknown("field", said)
    desk.go(desk.state.edit(_pattern(desk, edit), **{said: value.strip()}))


def _move(desk: Desk, edit: Mapping[str, Any]) -> None:
    count = desk.session.explorer.fit(desk.state).n_kept
    desk.go(desk.state.move(_pattern(desk, edit), _number(edit, "step"), count))


def _undo(desk: Desk, edit: Mapping[str, Any]) -> None:
    old = desk.state
    history = desk.session.history
    new = history.redo() if edit["do"] == "redo" else history.undo()
    desk.session.explorer.fit(new.now)
    desk.session.history = new
    desk._arrived(old)


def _lasso(desk: Desk, edit: Mapping[str, Any]) -> None:
    path = edit.get("path")
    corners = None
    if path:
        try:
            corners = np.asarray(path, dtype=float)
        except (TypeError, ValueError) as error:
            raise _unknown("lasso", "of no corners") from error
        if corners.ndim != 2 or corners.shape[1] != 2 or not np.isfinite(corners).all():
            raise _unknown("lasso", "of no corners")
        corners = corners[:: -(-len(corners) // MAX_CORNERS)]
    desk.n_lassos += 1
    desk.lasso, desk.lasso_axes = corners, (desk.state.x, desk.state.y)


def _job(desk: Desk, edit: Mapping[str, Any]) -> None:
    kind = edit.get("kind")
    if kind not in JOBS:
        raise _unknown("job", kind)
    explorer = desk.session.explorer
    if edit["do"] == "cancel":
        if kind in desk.jobs:
            explorer.cancel(desk.jobs[kind])
        return
    desk.jobs[kind] = explorer.start_job(kind, desk.state)


_ACTIONS: dict[str, Callable[[Desk, Mapping[str, Any]], None]] = {
    "open": _open,
    "set": _set,
    "line": _line,
    "say": _say,
    "move": _move,
    "undo": _undo,
    "redo": _undo,
    "lasso": _lasso,
    "job": _job,
    "cancel": _job,
}
