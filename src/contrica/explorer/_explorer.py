"""The facade that the page calls: states in, plain records out. Safe to call from several threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contrica.explorer._data import ExplorerData
from contrica.explorer._state import Edit, ViewState
from contrica.explorer._views import (
    Card,
    Colours,
    Differences,
    FitView,
    HowMany,
    JobView,
    Match,
    Points,
    Why,
)

__all__ = ["Explorer"]


class Explorer:
    """Data, and all that the page asks of them.

    Parameters
    ----------
    data : ExplorerData
    """

    def __init__(self, data: ExplorerData) -> None:
        self.data = data

    def default_state(self) -> ViewState:
        """The state that a page opens with."""
        raise NotImplementedError

    def fit(self, state: ViewState) -> FitView:
        """The fit of a state; errors of contrica say what cannot be fitted."""
        raise NotImplementedError

    def change(self, state: ViewState, **changes: Any) -> ViewState:
        """A state with other fields; where that changes the fit, edits and order follow the patterns.

        Fits the new state first, so that a refit that fails raises and the page keeps the old one.
        """
        raise NotImplementedError

    def edits(self, state: ViewState) -> tuple[list[Edit], list[Edit]]:
        """What was said of each pattern of the fit, and what waits for a fit that has its pattern."""
        raise NotImplementedError

    def compare(self, old: ViewState, new: ViewState) -> list[Match]:
        """Patterns of a new fit, each with the old one that is most like it; then old ones left alone."""
        raise NotImplementedError

    def how_many(self, state: ViewState) -> HowMany:
        """Contrast ratios with their null, and eigenvalues of both flattenings."""
        raise NotImplementedError

    def cards(self, state: ViewState) -> list[Card]:
        """The cards, in the order of the page."""
        raise NotImplementedError

    def why(self, state: ViewState, index: int) -> Why:
        """Why a pattern is not background."""
        raise NotImplementedError

    def differences(self, state: ViewState, rows: Sequence[int]) -> Differences:
        """In what foreground rows differ from the other ones, by their numbers."""
        raise NotImplementedError

    def points(self, state: ViewState, n_max: int = 200_000) -> Points:
        """Scores along both axes: of all rows, or of a sample that is the same every time."""
        raise NotImplementedError

    def colours(self, state: ViewState) -> Colours:
        """What rows are coloured by."""
        raise NotImplementedError

    def start_job(self, kind: str, state: ViewState) -> str:
        """Start "significance" or "stability" of a fit in the background; the job's id."""
        raise NotImplementedError

    def job(self, job_id: str) -> JobView:
        """How far a job is."""
        raise NotImplementedError

    def cancel(self, job_id: str) -> None:
        """Stop a job."""
        raise NotImplementedError

    def export(self, kind: str, state: ViewState) -> tuple[str, bytes]:
        """A file by its kind: "patterns", "scores", "model", "report", "script" or "command"."""
        raise NotImplementedError
