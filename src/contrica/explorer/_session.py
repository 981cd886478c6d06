"""Sessions: every browser has its own explorer and its own state, and none sees another's."""

from __future__ import annotations

from contrica.explorer._data import ExplorerData
from contrica.explorer._explorer import Explorer
from contrica.explorer._state import History, ViewState

__all__ = ["Session", "Sessions"]


class Session:
    """One browser's explorer, history and saved names.

    Attributes
    ----------
    id : str
    explorer : Explorer
    history : History
    """

    def __init__(self, session_id: str, explorer: Explorer) -> None:
        self.id, self.explorer = session_id, explorer
        self.history = History(explorer.default_state())

    def save(self, state: ViewState) -> None:
        """Keep names, notes and verdicts beside the result, in one step; called after every edit."""
        raise NotImplementedError

    @property
    def saved_words(self) -> str:
        """Where they are kept, or why they cannot be, for the page to show."""
        raise NotImplementedError


class Sessions:
    """All browsers of a server, at most so many.

    Parameters
    ----------
    data : ExplorerData
    """

    def __init__(self, data: ExplorerData) -> None:
        self.data = data

    def current(self) -> Session:
        """The session of the request that is being answered, by its cookie."""
        raise NotImplementedError
