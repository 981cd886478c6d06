"""Why a pattern is not background: what its score does there, and what other methods give instead."""

from __future__ import annotations

import numpy as np

from contrica.compare import Comparison, compare_methods
from contrica.errors import ContricaError
from contrica.explorer._card_facts import groups_of, known_rows
from contrica.explorer._data import ExplorerData
from contrica.explorer._fits import Fits, model_of
from contrica.explorer._state import ViewState
from contrica.explorer._views import FitView, Nearest, Why
from contrica.inference._data import check_pattern
from contrica.inference._patterns import ScoreMoments

__all__ = ["why_not_background"]

# Bins of the densities, groups that have one of their own, and components that others may give.
N_BINS, N_GROUPS, N_OTHERS = 60, 6, 10
OTHERS = ("cpca", "ica")


def why_not_background(fits: Fits, state: ViewState, index: int) -> Why:
    """What a pattern's score does in both datasets, and the nearest that others have.

    Parameters
    ----------
    fits : Fits
    state : ViewState
    index : int
        Of the pattern, from 0.

    Returns
    -------
    Why
    """
    data, view = fits.data, fits.of(state)
    i = check_pattern(view.model, index)
    rows = known_rows(view.scores_fore)
    fore, back = view.scores_fore[rows, i], view.scores_back[known_rows(view.scores_back), i]
    edges = _edges(fore, back)
    above, below = ScoreMoments.of(fore), ScoreMoments.of(back)
    total = above.variance + below.variance
    share = below.variance / total if total > 0 else float("nan")
    nearest = _nearest_background(view, i)
    others, notes = _others(fits, state, view.components[i])
    words = [
        f"The score's variance in the foreground is {_over(above.variance, below.variance):.3g} times "
        f"that in the background, whose share of both is {share:.0%}: 50% would be no difference.",
        "The ratio k(f) counts the shift of the mean, too.",
        "No background pattern was looked for by this solver."
        if nearest is None
        else f"The nearest background pattern is number {nearest[0] + 1}, |cosine| {nearest[1]:.2f}.",
        *notes,
    ]
    return Why(
        i,
        edges,
        _density(fore, edges),
        _density(back, edges),
        _by_group(data, view, rows, i, edges),
        share,
        nearest,
        others,
        tuple(words),
    )


def _over(one: float, other: float) -> float:
    return one / max(other, float(np.finfo(float).tiny))


def _edges(fore: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Bins over all but the outermost 0.2 % of the rows of either dataset."""
    parts = [part for part in (fore, back) if part.size]
    ends = np.array([np.quantile(part, [0.002, 0.998]) for part in parts])
    low, high = float(ends.min()), float(ends.max())
    return np.linspace(low, high if high > low else low + 1.0, N_BINS + 1)


def _density(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Share of the rows in each bin, over its width; rows outside of all bins count as rows."""
    counts = np.histogram(values, edges)[0]
    return np.asarray(counts / max(values.size, 1) / np.diff(edges))


def _by_group(
    data: ExplorerData, view: FitView, rows: np.ndarray, i: int, edges: np.ndarray
) -> dict[str, np.ndarray]:
    groups = groups_of(data)
    if groups is None:
        return {}
    codes = groups.codes[rows]
    largest = np.argsort(-np.bincount(codes, minlength=len(groups.names)), kind="stable")[:N_GROUPS]
    scores = view.scores_fore[rows, i]
    return {groups.names[k]: _density(scores[codes == k], edges) for k in largest}


def _nearest_background(view: FitView, i: int) -> tuple[int, float] | None:
    known = view.model.background_components_
    if not len(known):
        return None
    cosines = np.abs(known @ view.components[i])
    return int(np.argmax(cosines)), float(cosines.max())


def _others(
    fits: Fits, state: ViewState, pattern: np.ndarray
) -> tuple[tuple[Nearest, ...], list[str]]:
    """The component of each other method that is most like a pattern; and which methods failed."""
    key = f"{state.scale} {state.dimension}"
    try:
        compared: Comparison = fits.beside(key, lambda: _compared(fits, state))
    except ContricaError as error:
        return (), [f"Other methods could not be run: {error}"]
    found, notes = [], []
    for result in compared:
        if result.model is None:
            notes.append(f"{result.name} could not be fitted: {result.error}")
            continue
        lengths = np.linalg.norm(result.model.components_, axis=1, keepdims=True)
        unit = result.model.components_ / np.maximum(lengths, np.finfo(float).tiny)
        cosines = np.abs(unit @ pattern)
        number = int(np.argmax(cosines))
        cosine = float(cosines[number])
        words = f"{result.name}: component {number + 1} of {len(unit)} is nearest, |cosine| {cosine:.2f}"
        sign = np.sign(unit[number] @ pattern) or 1.0
        found.append(Nearest(result.name, number, cosine, sign * unit[number], words))
    return tuple(found), notes


def _compared(fits: Fits, state: ViewState) -> Comparison:
    data, model = fits.data, model_of(fits.data, state)
    width = fits.of(state).dimension
    return compare_methods(
        data.fore,
        np.vstack(data.backs),
        n_components=min(N_OTHERS, width),
        methods=OTHERS,
        n_pcs=model.n_pcs,
        scale=model.scale,
        missing="error" if model.missing == "error" else "impute",
        random_state=0,
    )
