"""What was said of patterns, as fits come and go: an edit follows its pattern, or waits for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from contrica.errors import ContricaError
from contrica.explorer._fits import ALIKE, Fits, matched
from contrica.explorer._state import Edit, ViewState

__all__ = ["followed", "resolved"]


def resolved(fits: Fits, state: ViewState) -> tuple[list[Edit], list[Edit]]:
    """What was said of every pattern of a fit, and what was said of patterns that it does not have.

    What was said in another fit belongs to the pattern whose |cosine| with the one it was said of is
    largest, by optimal assignment, where that is at least .8 and nothing was said of that pattern here.

    Parameters
    ----------
    fits : Fits
    state : ViewState

    Returns
    -------
    edits : list of Edit
        One for each pattern, empty where nothing was said.
    waiting : list of Edit
    """
    patterns = fits.of(state).components
    found = {each.index: each for each in state.edits if not each.fit}
    waiting = [each for index, each in found.items() if index >= len(patterns)]
    past: list[tuple[Edit, np.ndarray]] = []
    for each in state.edits:
        if not each.fit:
            continue
        pattern = _pattern_of(fits, each)
        if pattern is None:
            waiting.append(each)
        else:
            past.append((each, pattern))
    free = [i for i in range(len(patterns)) if i not in found]
    for each, index in _assigned(past, patterns, free):
        if index is None:
            waiting.append(each)
        else:
            found[index] = replace(each, index=index, fit="")
    return [found.get(i, Edit(i)) for i in range(len(patterns))], waiting


def followed(fits: Fits, old: ViewState, new: ViewState) -> ViewState:
    """A state with another fit: edits, order, axes and the open card go with the patterns.

    Parameters
    ----------
    fits : Fits
    old, new : ViewState
        ``new`` has the new fit's parameters, and all else from the old one.

    Returns
    -------
    ViewState
    """
    if old.fit_text == new.fit_text:
        return new
    view = fits.of(new)  # first: where this fails, nothing changes
    edits, waiting = resolved(fits, old)
    before = [replace(each, fit=old.fit_text) for each in edits if not each.is_empty]
    before += [each if each.fit else replace(each, fit=old.fit_text) for each in waiting]
    found, left = resolved(fits, replace(new, edits=tuple(before)))
    places = {
        each.old: each.new
        for each in matched(fits.of(old).components, view.components)
        if each.old is not None and each.new is not None and each.cosine >= ALIKE
    }
    order: list[int] = []
    if old.order:
        order = [places[i] for i in old.order_of(fits.of(old).n_kept) if i in places]
        order = replace(new, order=tuple(order)).order_of(view.n_kept)
    x, y, card = (places.get(i, i) for i in (new.x, new.y, new.card))
    return replace(
        new,
        edits=tuple([*(each for each in found if not each.is_empty), *left]),
        order=() if order == list(range(view.n_kept)) else tuple(order),
        x=x,
        y=y,
        card=card,
    )


def _pattern_of(fits: Fits, edit: Edit) -> np.ndarray | None:
    """The pattern that an edit was made of; ``None`` where its fit has no such pattern."""
    try:
        patterns = fits.of(ViewState.decode(edit.fit)).components
    except ContricaError:
        return None
    return patterns[edit.index] if edit.index < len(patterns) else None


def _assigned(
    past: list[tuple[Edit, np.ndarray]], patterns: np.ndarray, free: list[int]
) -> list[tuple[Edit, int | None]]:
    """Each edit with the number of its pattern among the free ones, or none."""
    if not past or not free:
        return [(each, None) for each, _ in past]
    cosines = np.abs(np.array([pattern for _, pattern in past]) @ patterns[free].T)
    cosines[cosines < ALIKE] = 0.0
    rows, columns = linear_sum_assignment(-cosines)
    pairs = {int(i): free[j] for i, j in zip(rows, columns, strict=True) if cosines[i, j] >= ALIKE}
    return [(each, pairs.get(i)) for i, (each, _) in enumerate(past)]
