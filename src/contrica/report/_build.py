"""A report of a fitted model and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrica.compare import Comparison, compare_methods
from contrica.errors import ParameterError, collected
from contrica.estimators._background import Background, background_labels
from contrica.inference import check as check_data
from contrica.inference import stability as resample
from contrica.inference._data import SourceScores, check_model, groups_of_scores, source_scores
from contrica.inference._findings import Report
from contrica.inference._stability import Stability
from contrica.output import output_file
from contrica.report._material import Material, Samples, check_image_shape
from contrica.report._page import page
from contrica.rows.groups import Groups
from contrica.validation import check_count

__all__ = [
    "HOW_STABILITY",
    "background_scores",
    "build",
    "checked_data",
    "compare_with",
    "groups_of_samples",
    "write",
]

# What a page says of a stability that nobody asked for.
HOW_STABILITY = "not computed; report(…, stability=100) adds it"


def build(
    model: Any,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    metadata: Any = None,
    background_metadata: Any = None,
    names: Any = None,
    background_names: Any = None,
    stability: Stability | int | None = None,
    comparison: Comparison | bool = False,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    command: str = "",
    asked: Mapping[str, str] | None = None,
) -> str:
    """A page that says what was asked and found, and lets a reader look at scores and patterns.

    One HTML file with all it needs: it asks nothing of any server.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    background : array-like of shape (n_background_samples, n_features), list of such, or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        As of ``fit``.
    metadata, background_metadata : data frame or mapping of str to array-like, optional
        What else is known of the rows of both datasets, to colour them by, and to say what goes along
        with a score; of several backgrounds a list.
    names, background_names : array-like of str, optional
        Of the rows; by default a data frame's index. Of several backgrounds a list.
    stability : Stability or int, optional
        From `contrica.inference.stability`, or how many resamples to fit.
    comparison : Comparison or bool, default=False
        From `contrica.compare.compare_methods`; ``True`` runs all methods, which may take minutes.
    image_shape : (int, int), optional
        Height and width, where patterns are images.
    title, command : str, optional
        What to call it, and the command that made it.
    asked : mapping of str to str, optional
        What else to list under what was asked.

    Returns
    -------
    str

    Examples
    --------
    >>> from contrica import ContrastiveICA
    >>> from contrica.datasets import load_digits_on_photos
    >>> data = load_digits_on_photos(400)
    >>> model = ContrastiveICA(2, random_state=0).fit(data.foreground, background=data.background)
    >>> html = build(model, data.foreground, background=data.background, image_shape=(8, 8))
    >>> html.startswith("<!DOCTYPE html>")
    True
    """
    check_model(model, background)
    shape = check_image_shape(image_shape, model.n_features_in_)
    if stability is not None and not isinstance(stability, Stability):
        check_count("stability", stability, minimum=2)
    own = background.data if isinstance(background, Background) else background
    backs = list(model._backgrounds(own).values())
    several = isinstance(own, list | tuple) and len(backs) == len(own) > 1
    fore = Samples.of("foreground", _scores(model, X), metadata, _names(X, names))
    behind = [
        Samples.of(
            "background" if not several else f"background {i + 1}",
            *(background_scores(model, X, backs, i), _each(background_metadata, i, several)),
            _names(part, _each(background_names, i, several)),
        )
        for i, part in enumerate(backs)
    ]
    labels: dict[str, Any] = {
        "groups": groups,
        "background_groups": background_labels(background, background_groups),
    }
    repeated: Stability | str = HOW_STABILITY
    if isinstance(stability, Stability):
        repeated = stability
    elif stability is not None:
        repeated = resample(
            model, X, background=own, n_resamples=stability, random_state=0, **labels
        )
    compared = comparison if isinstance(comparison, Comparison) else None
    if comparison is True:
        compared = compare_with(model, X, backs, labels)
    return page(
        Material(
            model,
            fore,
            tuple(behind),
            *groups_of_samples(fore, behind, **labels),
            check=checked_data(X, backs, labels),
            stability=repeated,
            comparison=compared,
            image_shape=shape,
            title=title,
            command=command,
            asked=dict(asked or {}),
        )
    )


def write(path: str | Path, model: Any, X: Any, *, overwrite: bool = False, **options: Any) -> None:
    """Write a page to a file; one that is there already is refused before anything is computed.

    Parameters
    ----------
    path : path
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    overwrite : bool, default=False
        Whether a file of that name may be replaced.
    **options
        ``background`` and all else of `build`.
    """
    with output_file(path, overwrite=overwrite) as file:
        file.write_text(build(model, X, **options), encoding="utf-8")


def compare_with(
    model: Any, X: Any, backs: Sequence[Any], groups: Mapping[str, Any], labels: Any = None
) -> Comparison:
    """All methods in the units and dimensions of a model; several backgrounds are stacked.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    backs : sequence of array-like of shape (n_background_samples, n_features)
    groups : mapping
        ``groups`` and ``background_groups`` as of ``fit``.
    labels : array-like of shape (n_samples,), optional

    Returns
    -------
    Comparison
    """
    behind, own = backs[0], dict(groups)
    if len(backs) > 1:
        behind = np.vstack([np.asarray(part) for part in backs])
        if own.get("background_groups") is not None:
            own["background_groups"] = np.concatenate(own["background_groups"])
    return compare_methods(
        X,
        behind,
        labels=labels,
        n_pcs=model.n_pcs,
        scale=model.scale,
        missing="error" if model.missing == "error" else "impute",
        **own,
        random_state=0,
    )


def groups_of_samples(
    fore: Samples, behind: Sequence[Samples], groups: Any = None, background_groups: Any = None
) -> tuple[Groups | None, Groups | None]:
    """Groups of the rows that have scores, of the foreground and of all backgrounds.

    Parameters
    ----------
    fore : Samples
    behind : sequence of Samples
        All backgrounds.
    groups, background_groups : array-like of shape (n_rows,), optional
        Of all rows; of several backgrounds a list.

    Returns
    -------
    tuple of (Groups or None, Groups or None)
    """
    scores = SourceScores(
        *(fore.scores, np.vstack([each.scores for each in behind]), fore.rows, fore.n_rows),
        tuple(each.rows for each in behind),
        tuple(each.n_rows for each in behind),
    )
    return groups_of_scores(scores, None, groups, background_groups)


def _scores(model: Any, rows: Any) -> np.ndarray:
    with collected():
        return np.asarray(model.transform(rows), dtype=float)


def background_scores(model: Any, X: Any, backs: Sequence[Any], number: int) -> np.ndarray:
    """Scores of a background; with ``scale="each"`` on the scale on which it was fitted.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    backs : sequence of array-like of shape (n_background_samples, n_features)
    number : int
        Of the background, from 0.

    Returns
    -------
    ndarray of shape (n_background_samples, n_components)
    """
    plain = _scores(model, backs[number])
    if model.background_spreads_ is None or model.projection_ != "filter":
        return plain
    known = source_scores(model, X, backs).back
    sizes = [len(_scores(model, part)) for part in backs]
    if sum(sizes) != len(known):  # rows without any value have no scores
        return plain
    start = sum(sizes[:number])
    return known[start : start + sizes[number]]


def _each(given: Any, number: int, several: bool) -> Any:
    if given is None or not several:
        return given
    if not isinstance(given, list | tuple) or number >= len(given):
        raise ParameterError(
            "one-for-each",
            "there are several backgrounds",
            "names and metadata must be lists with one for each",
            parameter="background_metadata",
        )
    return given[number]


def _names(rows: Any, names: Any) -> Any:
    if names is not None:
        return names
    index = getattr(rows, "obs_names", getattr(rows, "index", None))
    return None if callable(index) else index


def checked_data(X: Any, backs: Sequence[Any], labels: Mapping[str, Any]) -> Report:
    """What the data check says; of several backgrounds, against each.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Foreground.
    backs : sequence of array-like of shape (n_background_samples, n_features)
    labels : mapping
        ``groups`` and ``background_groups`` as of ``fit``.

    Returns
    -------
    Report
    """
    if len(backs) == 1:
        return check_data(X, background=backs[0], **labels)
    found = [check_data(X, background=part) for part in backs]
    unique = {str(each): each for report in found for each in report.findings}
    return Report.of(list(unique.values()), "; ".join(report.about for report in found))
