"""What was computed of patterns in the background, and whether it still is of what the page shows."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from contrica.explorer._edits import resolved
from contrica.explorer._fits import ALIKE, Fits, matched
from contrica.explorer._state import ViewState
from contrica.explorer._views import FitView
from contrica.inference import Significance, Stability

__all__ = ["Evidence", "Marks", "Told"]

# Results of each kind that are kept.
MAX_RESULTS = 16


class Marks(NamedTuple):
    """What a result belongs to: a fit, the order of its patterns, and those that were rejected."""

    fit: str
    order: tuple[int, ...] = ()
    rejected: tuple[int, ...] = ()

    @classmethod
    def of(cls, fits: Fits, state: ViewState) -> Marks:
        """Of what the page shows."""
        edits, _ = resolved(fits, state)
        rejected = tuple(each.index for each in edits if each.verdict == "rejected")
        return cls(state.fit_text, state.order, rejected)


@dataclass(frozen=True)
class Told:
    """What is known of each pattern.

    Attributes
    ----------
    values : ndarray of shape (n_kept,)
        p, or stability; NaN where it is not known.
    words : tuple of str
    is_stale : bool
    intervals : ndarray of shape (n_kept, n_features, 2)
        Of loadings; NaN where they are not known.
    """

    values: np.ndarray
    words: tuple[str, ...]
    is_stale: bool
    intervals: np.ndarray


class Evidence:
    """Results of one reader's computations.

    Parameters
    ----------
    fits : Fits
    """

    def __init__(self, fits: Fits) -> None:
        self.fits = fits
        self._lock = threading.Lock()
        self._results: dict[str, list[tuple[Marks, Any]]] = {
            "significance": [],
            "stability": [],
        }

    def add(self, kind: str, marks: Marks, result: Significance | Stability) -> None:
        """Keep a result with what it belongs to.

        Parameters
        ----------
        kind : {"significance", "stability"}
        marks : Marks
        result : Significance or Stability
        """
        with self._lock:
            known = [pair for pair in self._results[kind] if pair[0] != marks]
            self._results[kind] = [*known, (marks, result)][-MAX_RESULTS:]

    def significance(self, state: ViewState) -> Told:
        """The p of every pattern of a state: of a computation, or of the fit's own permutations.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        Told
        """
        view, marks = self.fits.of(state), Marks.of(self.fits, state)
        found, stale = self._latest("significance", marks)
        if found is None or (stale and found[0].fit != marks.fit and _has_own(view)):
            words = [_p_words(value, view) for value in view.p_values]
            stale = _has_own(view) and marks != Marks(marks.fit)
            return Told(view.p_values, tuple(words), stale, _no_intervals(view))
        places, _ = self._places(found[0], view)
        result = found[1]
        values = np.array([np.nan if i is None else _at(result.p_values, i) for i in places])
        unit = "groups" if result.unit == "groups" else "rows"
        words = [
            f"{result.n_permutations} permutations of {unit}"
            if not np.isnan(value)
            else "not tested: a pattern before it does not stand out"
            if i is not None
            else "not computed for this pattern"
            for i, value in zip(places, values, strict=True)
        ]
        return Told(values, tuple(words), stale, _no_intervals(view))

    def stability(self, state: ViewState) -> Told:
        """How every pattern of a state returns when rows or groups are drawn anew.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        Told
        """
        view, marks = self.fits.of(state), Marks.of(self.fits, state)
        found, stale = self._latest("stability", marks)
        intervals, values = _no_intervals(view), np.full(view.n_kept, np.nan)
        if found is None:
            return Told(values, ("not computed",) * view.n_kept, False, intervals)
        places, signs = self._places(found[0], view)
        result = found[1]
        words = []
        for i, place in enumerate(places):
            if place is None:
                words.append("not computed for this pattern")
                continue
            values[i] = result.index[place]
            words.append(_stability_words(result, place))
            if result.intervals is not None:
                intervals[i] = np.sort(result.intervals[place] * signs[i], axis=1)
        return Told(values, tuple(words), stale, intervals)

    def stability_of(self, state: ViewState) -> Stability | None:
        """The stability of the very fit of a state, where it is known.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        Stability or None
        """
        with self._lock:
            known = [
                each for marks, each in self._results["stability"] if marks.fit == state.fit_text
            ]
        return known[-1] if known else None

    def _latest(self, kind: str, marks: Marks) -> tuple[tuple[Marks, Any] | None, bool]:
        """The result of what is shown, or the last one there is, and whether that is stale."""
        with self._lock:
            known = list(self._results[kind])
        for pair in known:
            if pair[0] == marks:
                return pair, False
        return (known[-1], True) if known else (None, False)

    def _places(self, marks: Marks, view: FitView) -> tuple[list[int | None], np.ndarray]:
        """For every pattern its number in the fit of a result, and the sign that makes them alike."""
        if marks.fit == view.key:
            return list(range(view.n_kept)), np.ones(view.n_kept)
        old = self.fits.of(ViewState.decode(marks.fit)).components
        pairs = {
            each.new: each.old
            for each in matched(old, view.components)
            if each.new is not None and each.cosine >= ALIKE
        }
        places = [pairs.get(i) for i in range(view.n_kept)]
        signs = [
            1.0 if j is None else (np.sign(old[j] @ view.components[i]) or 1.0)
            for i, j in enumerate(places)
        ]
        return places, np.array(signs)


def _has_own(view: FitView) -> bool:
    return not np.isnan(view.p_values).all()


def _no_intervals(view: FitView) -> np.ndarray:
    return np.full((*view.components.shape, 2), np.nan)


def _at(values: np.ndarray, i: int) -> float:
    return float(values[i]) if i < values.size else float("nan")


def _p_words(value: float, view: FitView) -> str:
    if not np.isnan(value):
        return "by the permutations of the fit"
    if _has_own(view):
        return "not tested: a pattern before it does not stand out"
    return "not computed"


def _stability_words(result: Stability, i: int) -> str:
    if not result.n_resamples:
        return "mean correlation over the fits without one group"
    return f"returned in {result.n_found[i]} of {result.n_resamples} resamples of {result.unit}"
