"""The facade that the page calls: states in, plain records out. Safe to call from several threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from contrica.explorer._data import ExplorerData
from contrica.explorer._differences import differences_of
from contrica.explorer._edits import followed, resolved
from contrica.explorer._evidence import Evidence, Marks
from contrica.explorer._export import EXPORTS, cards_of, exported
from contrica.explorer._fits import Fits, matched, opening_state
from contrica.explorer._how_many import how_many
from contrica.explorer._jobs import Jobs
from contrica.explorer._points import axes_of, colours_of, points_of
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
from contrica.explorer._why import why_not_background

__all__ = ["MAX_POINTS", "Explorer"]

# Points that a browser draws smoothly.
MAX_POINTS = 200_000


class Explorer:
    """Data, and all that one reader asks of them.

    Fits and computations are shared with other readers of the same data; results that belong to names,
    orders and verdicts are not.

    Parameters
    ----------
    data : ExplorerData
    fits : Fits, optional
        Shared with other readers.
    jobs : Jobs, optional
        The pool of computations, shared as well; jobs themselves are each reader's own.

    Examples
    --------
    >>> from contrica.explorer._data import demo_data
    >>> explorer = Explorer(demo_data())
    >>> state = explorer.default_state()
    >>> explorer.fit(state).n_kept, [card.leading[0].name for card in explorer.cards(state)][0]
    (9, 'pixel_2_2')
    """

    def __init__(
        self, data: ExplorerData, fits: Fits | None = None, jobs: Jobs | None = None
    ) -> None:
        self.data = data
        self._fits = Fits(data) if fits is None else fits
        self._jobs = Jobs() if jobs is None else jobs
        self._own_jobs: dict[str, Marks] = {}
        self._evidence = Evidence(self._fits)

    # --- states and fits ---

    def default_state(self) -> ViewState:
        """The state that a page opens with.

        Returns
        -------
        ViewState
        """
        return opening_state(self.data)

    def fit(self, state: ViewState) -> FitView:
        """The fit of a state; errors of contrica say what cannot be fitted.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        FitView
        """
        return self._fits.of(state)

    def change(self, state: ViewState, **changes: Any) -> ViewState:
        """A state with other fields; where that changes the fit, edits and order follow the patterns.

        The new state is fitted first, so that a refit that fails raises and the page keeps the old one.
        Solver "subspace" has no background patterns, so that r is given up with it.

        Parameters
        ----------
        state : ViewState
        **changes : dict
            Fields of `ViewState`.

        Returns
        -------
        ViewState
        """
        new = replace(state, **changes)
        if new.solver == "subspace" and new.n_background is not None:
            new = replace(new, n_background=None)
        return followed(self._fits, state, new)

    def edits(self, state: ViewState) -> tuple[list[Edit], list[Edit]]:
        """What was said of each pattern of the fit, and what waits for a fit that has its pattern.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        edits : list of Edit
        waiting : list of Edit
        """
        return resolved(self._fits, state)

    def compare(self, old: ViewState, new: ViewState) -> list[Match]:
        """Patterns of a new fit, each with the old one that is most like it; then old ones left alone.

        Parameters
        ----------
        old, new : ViewState

        Returns
        -------
        list of Match
        """
        return matched(self.fit(old).components, self.fit(new).components)

    # --- what the page shows ---

    def how_many(self, state: ViewState) -> HowMany:
        """Contrast ratios with their null, and eigenvalues of both flattenings.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        HowMany
        """
        return how_many(self._fits, state)

    def cards(self, state: ViewState) -> list[Card]:
        """The cards, in the order of the page.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        list of Card
        """
        return cards_of(self._fits, self._evidence, state)

    def why(self, state: ViewState, index: int) -> Why:
        """Why a pattern is not background.

        Parameters
        ----------
        state : ViewState
        index : int
            Of the pattern in its fit, from 0.

        Returns
        -------
        Why
        """
        return why_not_background(self._fits, state, index)

    def differences(self, state: ViewState, rows: Sequence[int] | np.ndarray) -> Differences:
        """In what foreground rows differ from the other ones.

        Parameters
        ----------
        state : ViewState
        rows : sequence of int
            Their numbers in the foreground.

        Returns
        -------
        Differences
        """
        return differences_of(self.data, rows)

    def points(self, state: ViewState, n_max: int = MAX_POINTS) -> Points:
        """Scores along both axes: of all rows, or of a sample that is the same every time.

        Parameters
        ----------
        state : ViewState
        n_max : int
            Rows to draw at most.

        Returns
        -------
        Points
        """
        return points_of(self.data, self.fit(state), state, n_max)

    def axes(self, state: ViewState) -> tuple[int, int]:
        """The patterns on both axes, where a state may name more than there are.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        (int, int)
        """
        return axes_of(state, self.fit(state))

    def colours(self, state: ViewState) -> Colours:
        """What rows are coloured by.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        Colours
        """
        return colours_of(self.data, state)

    # --- computations in the background ---

    def start_job(self, kind: str, state: ViewState) -> str:
        """Start "significance" or "stability" of a fit in the background.

        Parameters
        ----------
        kind : {"significance", "stability"}
        state : ViewState

        Returns
        -------
        str
            Of the job.
        """
        view, marks = self.fit(state), Marks.of(self._fits, state)
        job_id = self._jobs.start(
            kind, self.data, view, lambda result: self._evidence.add(kind, marks, result)
        )
        self._own_jobs[job_id] = marks
        return job_id

    def job(self, job_id: str) -> JobView:
        """How far a job of this reader is.

        Parameters
        ----------
        job_id : str

        Returns
        -------
        JobView
        """
        return self._jobs.view(job_id if job_id in self._own_jobs else "")

    def jobs(self) -> list[JobView]:
        """All jobs of this reader that are known, the last one last.

        Returns
        -------
        list of JobView
        """
        return [self._jobs.view(each) for each in self._own_jobs if self._jobs.has(each)]

    def cancel(self, job_id: str) -> None:
        """Stop a job of this reader.

        Parameters
        ----------
        job_id : str
        """
        if job_id in self._own_jobs:
            self._jobs.cancel(job_id)

    # --- files ---

    @property
    def exports(self) -> tuple[str, ...]:
        """Kinds of files that `export` makes."""
        return EXPORTS

    def export(self, kind: str, state: ViewState) -> tuple[str, bytes]:
        """A file by its kind.

        Parameters
        ----------
        kind : str
            One of `exports`.
        state : ViewState

        Returns
        -------
        name : str
        content : bytes
        """
        return exported(self._fits, self._evidence, kind, state)
