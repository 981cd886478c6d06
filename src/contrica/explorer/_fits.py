"""Fits from sums that are taken once, kept by the part of a state that they depend on."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from contrica.errors import ContricaError, DataError, collected
from contrica.estimators import ContrastiveICA, ReadOnce, ranking_ratio
from contrica.explorer._data import ExplorerData
from contrica.explorer._state import ViewState
from contrica.explorer._views import FitView, Match
from contrica.metrics import match_patterns
from contrica.report._build import background_scores
from contrica.report._cards import p_value

__all__ = ["ALIKE", "Fits", "fit_state", "matched", "model_of", "opening_state", "unnamed"]

# Readings and fits that are kept: moments of 30 dimensions take some ten megabytes each.
MAX_READ, MAX_FITS = 6, 24
# |cosine| from which a pattern of another fit is the same one, for names and notes.
ALIKE = 0.8


def model_of(data: ExplorerData, state: ViewState) -> ContrastiveICA:
    """The estimator that a state asks for, not fitted.

    Parameters
    ----------
    data : ExplorerData
    state : ViewState

    Returns
    -------
    ContrastiveICA
    """
    asked: dict[str, Any] = {
        "n_components": _given(data, "n_components", state.n_components),
        "n_pcs": _given(data, "n_pcs", state.dimension),
        "n_foreground": state.n_foreground,
        "n_background": state.n_background,
        "solver": state.solver,
        "scale": state.scale,
        "projection": None if state.projection == "auto" else state.projection,
        "random_state": state.random_state,
    }
    return ContrastiveICA(**{**data.parameters, **asked})


def _given(data: ExplorerData, name: str, value: int | None) -> int | str | None:
    """A number that a state gives; without one "auto", or ``None`` where the data's parameters say so."""
    if value is not None:
        return value
    return None if data.parameters.get(name, "auto") is None else "auto"


def opening_state(data: ExplorerData) -> ViewState:
    """The state that asks for what the data's parameters say.

    Parameters
    ----------
    data : ExplorerData

    Returns
    -------
    ViewState
    """
    given = data.parameters
    seed, pcs, kept = (given.get(name) for name in ("random_state", "n_pcs", "n_components"))
    return ViewState(
        solver=given.get("solver", "auto"),
        scale=given.get("scale", "none"),
        projection=given.get("projection") or "auto",
        n_foreground=given.get("n_foreground"),
        n_background=given.get("n_background"),
        dimension=int(pcs) if isinstance(pcs, int | np.integer) else None,
        n_components=int(kept) if isinstance(kept, int | np.integer) else None,
        random_state=int(seed) if isinstance(seed, int | np.integer) else 0,
    )


def fit_state(state: ViewState) -> ViewState:
    """Only the part of a state that its fit depends on.

    Parameters
    ----------
    state : ViewState

    Returns
    -------
    ViewState
    """
    return ViewState.decode(state.fit_text)


class Fits:
    """The fits of one pair of datasets, shared by all who look at them.

    Parameters
    ----------
    data : ExplorerData
    """

    def __init__(self, data: ExplorerData) -> None:
        self.data = data
        self._lock = threading.RLock()
        self._working: dict[str, threading.Lock] = {}
        self._fits: OrderedDict[str, FitView] = OrderedDict()
        self._read: list[ReadOnce] = []
        self._others: OrderedDict[str, Any] = OrderedDict()

    def of(self, state: ViewState) -> FitView:
        """The fit of a state; one that was made before, where there is one.

        Parameters
        ----------
        state : ViewState

        Returns
        -------
        FitView
        """
        return self.once(self._fits, state.fit_text, lambda: self._fit(state))

    def once(self, kept: OrderedDict[str, Any], key: str, make: Callable[[], Any]) -> Any:
        """What is kept under a key, made where it is not; two who ask at once wait for one answer."""
        with self._lock:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
            own = self._working.setdefault(f"{id(kept)} {key}", threading.Lock())
        with own:
            with self._lock:
                if key in kept:
                    return kept[key]
            found = make()
            with self._lock:
                kept[key] = found
                while len(kept) > MAX_FITS:
                    kept.popitem(last=False)
                self._working.pop(f"{id(kept)} {key}", None)
            return found

    def beside(self, key: str, make: Callable[[], Any]) -> Any:
        """What else was worked out of the data, such as other methods, under a key of its own."""
        return self.once(self._others, key, make)

    def read(self, model: ContrastiveICA) -> ReadOnce:
        """The rows as a model's fit reads them.

        Parameters
        ----------
        model : ContrastiveICA

        Returns
        -------
        ReadOnce
        """
        with self._lock:
            for each in self._read:
                if each.serves(model):
                    return each
        found = ReadOnce.of(
            model, self.data.fore, background=self.data.background, **self.data.fit_groups
        )
        with self._lock:
            self._read = [found, *self._read][:MAX_READ]
        return found

    def _fit(self, state: ViewState) -> FitView:
        start = time.perf_counter()
        asked = model_of(self.data, state)
        try:
            with collected() as warned:
                model = self.read(asked).fit(asked)
                fore = np.asarray(model.transform(self.data.fore), dtype=float)
                backs = [
                    background_scores(model, self.data.fore, self.data.backs, i)
                    for i in range(len(self.data.backs))
                ]
        except ContricaError:
            raise
        except (ValueError, ArithmeticError, MemoryError) as error:  # LinAlgError is a ValueError
            raise DataError(
                "no-fit",
                f"this fit failed ({type(error).__name__}: {error})",
                remedy="Undo, or ask for fewer patterns, fewer dimensions or another solver.",
            ) from error
        named = copy(model)
        named.feature_names_in_ = np.array(self.data.names, dtype=object)
        symbol, ratios = ranking_ratio(model)
        count = len(model.components_)
        p_values = [p_value(model, i) for i in range(count)]
        return FitView(
            key=state.fit_text,
            n_kept=count,
            scores_fore=fore,
            scores_back=np.vstack(backs),
            components=model.components_,
            filters=model.filters_,
            ratios=np.asarray(ratios),
            ratio_symbol=symbol,
            p_values=np.array([np.nan if p is None else p for p in p_values]),
            solver=model.solver_,
            reason=model.reason_,
            n_foreground=int(model.n_foreground_),
            n_background=int(model.n_background_),
            dimension=int(model.n_pcs_),
            warnings=tuple(dict.fromkeys(str(each) for each in warned)),
            seconds=time.perf_counter() - start,
            model=named,
        )


def matched(old: np.ndarray, new: np.ndarray) -> list[Match]:
    """Patterns of a new fit with those of an old one, by optimal assignment of their |cosines|.

    Parameters
    ----------
    old, new : ndarray of shape (k, n_features)

    Returns
    -------
    list of Match
        In the order of the new patterns, then old ones that have no partner.
    """
    if len(new) >= len(old):
        found = match_patterns(new.T, old.T)
        pairs = {
            int(i): (j, float(c))
            for j, (i, c) in enumerate(zip(found.order, found.cosines, strict=True))
        }
    else:
        found = match_patterns(old.T, new.T)
        pairs = {
            j: (int(i), float(c))
            for j, (i, c) in enumerate(zip(found.order, found.cosines, strict=True))
        }
    rows = [Match(i, *pairs.get(i, (None, 0.0))) for i in range(len(new))]
    taken = {each.old for each in rows}
    return [*rows, *(Match(None, j, 0.0) for j in range(len(old)) if j not in taken)]


def unnamed(model: Any) -> Any:
    """A fitted model without the names of its variables: for rows that do not have them either.

    Parameters
    ----------
    model : ContrastiveICA

    Returns
    -------
    ContrastiveICA
    """
    bare = copy(model)
    if hasattr(bare, "feature_names_in_"):
        del bare.feature_names_in_
    return bare
