"""Files of a state: tables, model, report, and the script and the command that repeat it."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import DataError, ParameterError, unmarked
from contrica.explorer._card_facts import card_of
from contrica.explorer._edits import resolved
from contrica.explorer._evidence import Evidence
from contrica.explorer._fits import Fits
from contrica.explorer._repeat import command_of, script_of
from contrica.explorer._state import ViewState
from contrica.explorer._views import Card
from contrica.models import save
from contrica.report._build import checked_data, groups_of_samples
from contrica.report._material import Material, Samples
from contrica.report._page import page

__all__ = ["EXPORTS", "FILES", "cards_of", "exported", "shown"]


def shown(fits: Fits, state: ViewState) -> tuple[list[int], list[str]]:
    """Patterns in the order of the page, without those that were rejected, and what they are called.

    Parameters
    ----------
    fits : Fits
    state : ViewState

    Returns
    -------
    order : list of int
        Numbers in the fit.
    names : list of str
        No two alike.
    """
    edits, _ = resolved(fits, state)
    order = [i for i in state.order_of(len(edits)) if edits[i].verdict != "rejected"]
    if not order:
        raise DataError(
            "all-rejected",
            "all patterns are rejected",
            "a table is of those that are left",
            "Accept one.",
            "verdict",
        )
    names = [edits[i].name or f"pattern {i + 1}" for i in order]
    twice = {name for name in names if names.count(name) > 1}
    names = [
        f"{name} ({i + 1})" if name in twice else name for i, name in zip(order, names, strict=True)
    ]
    return order, names


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode()


def _patterns(fits: Fits, evidence: Evidence, state: ViewState) -> bytes:
    order, names = shown(fits, state)
    loadings = fits.of(state).components[order].T
    rows = ([name, *own] for name, own in zip(fits.data.names, loadings.tolist(), strict=True))
    return _table(["variable", *names], rows)


def _scores(fits: Fits, evidence: Evidence, state: ViewState) -> bytes:
    order, names = shown(fits, state)
    view, data = fits.of(state), fits.data
    datasets = ["foreground"] * data.n_fore
    for i, part in enumerate(data.backs, start=1):
        datasets += ["background" if len(data.backs) == 1 else f"background {i}"] * len(part)
    called = [
        own.tolist() if own is not None else list(range(len(part)))
        for part, own in zip((data.fore, *data.backs), data.row_names, strict=True)
    ]
    scores = np.vstack([view.scores_fore, view.scores_back])[:, order].tolist()
    rows = zip(datasets, (name for part in called for name in part), scores, strict=True)
    return _table(["dataset", "sample", *names], ([kind, name, *own] for kind, name, own in rows))


def _cards(fits: Fits, evidence: Evidence, state: ViewState) -> bytes:
    head = ["pattern", "name", "verdict", "note", "ratio", "stands out", "leading variables"]
    head += ["variance", "skewness", "kurtosis", "background variance", "p", "p is stale"]
    head += ["stability", "stability is stale"]
    return _table(head, map(_card_row, cards_of(fits, evidence, state)))


def cards_of(fits: Fits, evidence: Evidence, state: ViewState) -> list[Card]:
    """The cards of a state, in the order of the page.

    Parameters
    ----------
    fits : Fits
    evidence : Evidence
    state : ViewState

    Returns
    -------
    list of Card
    """
    view = fits.of(state)
    edits, _ = resolved(fits, state)
    p, stability = evidence.significance(state), evidence.stability(state)
    return [
        card_of(fits.data, view, edits[i], place, p, stability)
        for place, i in enumerate(state.order_of(view.n_kept))
    ]


def _card_row(card: Card) -> list[Any]:
    edit, above = card.edit, card.foreground
    leading = ", ".join(f"{each.name} {each.effect:+.2f}" for each in card.leading)
    return [
        *(card.index + 1, edit.name, edit.verdict, edit.note, card.ratio, card.stands_out, leading),
        *(above.variance, above.skewness, above.kurtosis, card.background.variance),
        *(_known(card.p), card.p_is_stale, _known(card.stability), card.stability_is_stale),
    ]


def _known(value: float) -> float | str:
    return "" if np.isnan(value) else value


def _model(fits: Fits, evidence: Evidence, state: ViewState) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        save(fits.of(state).model, path)
        return path.read_bytes()


def _report(fits: Fits, evidence: Evidence, state: ViewState) -> bytes:
    data, view = fits.data, fits.of(state)
    edits, _ = resolved(fits, state)
    said = {
        f"pattern {each.index + 1}": "; ".join(
            part for part in (each.name, each.verdict, each.note) if part
        )
        for each in edits
        if not each.is_empty
    }
    sizes = np.cumsum([len(part) for part in data.backs])[:-1]
    called = ["background"] if len(data.backs) == 1 else [f"background {i + 1}" for i in range(99)]
    parts = [
        Samples.of(name, scores, {each: own[each] for each in data.columns if each in own}, rows)
        for name, scores, own, rows in zip(
            ["foreground", *called],
            [view.scores_fore, *np.split(view.scores_back, sizes)],
            data.metadata,
            data.row_names,
            strict=False,
        )
    ]
    known = evidence.stability_of(state)
    rows, *backs = (_named(part, data.names) for part in (data.fore, *data.backs))
    material = Material(
        view.model,
        parts[0],
        tuple(parts[1:]),
        *groups_of_samples(parts[0], parts[1:], **data.fit_groups),
        check=fits.beside("check", lambda: checked_data(rows, backs, data.fit_groups)),
        stability="not computed on the page" if known is None else known,
        image_shape=data.image_shape,
        title=data.source.title,
        asked={"state of the explorer": state.encode() or "as it opens", **said},
    )
    return page(material).encode()


class _Named(np.ndarray):
    """An array that knows its columns."""

    columns: Any = None


def _named(rows: np.ndarray, names: Sequence[str]) -> np.ndarray:
    found = rows.view(_Named)
    found.columns = np.array(names, dtype=object)
    return found


_MADE: dict[str, tuple[str, Callable[[Fits, Evidence, ViewState], bytes]]] = {
    "patterns": ("patterns.csv", _patterns),
    "scores": ("scores.csv", _scores),
    "cards": ("cards.csv", _cards),
    "model": ("model.npz", _model),
    "report": ("report.html", _report),
    "script": (
        "repeat.py",
        lambda fits, evidence, state: script_of(fits, state, *shown(fits, state)).encode(),
    ),
    "command": (
        "repeat.sh",
        lambda fits, evidence, state: command_of(fits.data, state).encode(),
    ),
}
EXPORTS, FILES = tuple(_MADE), tuple(name for name, _ in _MADE.values())


def exported(fits: Fits, evidence: Evidence, kind: str, state: ViewState) -> tuple[str, bytes]:
    """A file by its kind.

    Parameters
    ----------
    fits : Fits
    evidence : Evidence
    kind : str
        One of `EXPORTS`.
    state : ViewState

    Returns
    -------
    name : str
    content : bytes
    """
    if kind not in _MADE:
        raise ParameterError(
            "unknown-choice",
            f"a file {unmarked(kind)} was asked for",
            f"there are {', '.join(_MADE)}",
            parameter="kind",
        )
    name, make = _MADE[kind]
    return name, make(fits, evidence, state)
