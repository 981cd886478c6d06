"""What inference shares: data read as a model's fit reads them, and refits of parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from contrica.errors import DataError, GroupsError, ParameterError, collected
from contrica.estimators._background import (
    Background,
    GroupLabels,
    background_labels,
    group_labels,
)
from contrica.estimators._base import BaseContrastive
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.rows.compressed import CompressedRows
from contrica.rows.dataset import Dataset, check_same_variables, read_datasets
from contrica.rows.device import TensorRows, to_numpy
from contrica.rows.groups import Groups, as_groups, split_groups
from contrica.rows.moving import copies_fit, on_device, work_on
from contrica.rows.products import in_memory, rows_times
from contrica.rows.protocol import Rows, block_rows, iterate_blocks
from contrica.rows.sparse import SparseRows
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.problem import Problem
from contrica.solvers.subspace_solver import MIN_DIMENSION, TO_SPARE
from contrica.validation import check_same_features

__all__ = [
    "Part",
    "SourceScores",
    "Study",
    "check_model",
    "check_pattern",
    "feature_names",
    "groups_of_scores",
    "read_problem",
    "source_scores",
]


def check_model(model: Any, background: Any) -> None:
    """Refuse what is not a fitted contrastive ICA, or data without a background.

    Parameters
    ----------
    model : object
    background : object
    """
    if not isinstance(model, BaseContrastive):
        raise ParameterError(
            "unknown-model",
            f"`model` is a {type(model).__name__}",
            "inference is for contrastive ICA",
            "Give a fitted ContrastiveICA or ProportionalContrastiveICA.",
            "model",
        )
    model._check_fitted()
    if background is None:
        raise DataError(
            "no-background",
            "`background` is None",
            "what is new is measured against one",
            "Pass the background that the model was fitted with.",
            "background",
        )


def check_pattern(model: Any, pattern: Any) -> int:
    """The number of a pattern of a fitted model, from 0.

    Parameters
    ----------
    model : estimator
    pattern : int

    Returns
    -------
    int
    """
    count = len(model.components_)
    whole = isinstance(pattern, int | np.integer) and not isinstance(pattern, bool)
    if not whole or not 0 <= pattern < count:
        raise ParameterError(
            "no-such-pattern",
            f"`pattern={pattern}` was asked for",
            "the only pattern is 0"
            if count == 1
            else f"patterns are numbered 0 to {count - 1} here",
            parameter="pattern",
        )
    return int(pattern)


def feature_names(model: Any) -> list[str]:
    """Names of the variables; ``x0``, ``x1``, … where they have none.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    list of str
    """
    names = getattr(model, "feature_names_in_", None)
    return (
        [f"x{i}" for i in range(model.n_features_in_)] if names is None else list(map(str, names))
    )


def read_problem(
    model: Any, X: Any, background: Any, groups: Any = None, background_groups: Any = None
) -> Problem:
    """Data as a fit of the model reads them, in the coordinates it works in; the model stays as it is.

    Parameters
    ----------
    model : estimator
    X, background, groups, background_groups : object
        As of ``fit``.

    Returns
    -------
    Problem
    """
    reader = clone(model)
    reader._check_parameters()
    labels = _labels_of(model, background, groups, background_groups)
    background = background.data if isinstance(background, Background) else background
    with reader._at_work(), collected():
        problem: Problem = reader._read(X, None, background, labels)
    return problem


def _labels_of(
    model: Any, background: Any, groups: Any, background_groups: Any
) -> GroupLabels | None:
    """Labels of groups, which a model that was fitted with groups needs again."""
    labels = group_labels(background, groups, background_groups)
    if labels is None and getattr(model, "groups_", None) is not None:
        raise GroupsError(
            "groups-forgotten",
            "the model was fitted with groups, and none were given here",
            "rows of one group are not independent, and must not be drawn or permuted as if they were",
            "Give `groups` and `background_groups` as to `fit`.",
            "groups",
        )
    return labels


class SourceScores(NamedTuple):
    """Scores of all sources, about the foreground's mean; with ``scale="each"`` each about its own.

    Attributes
    ----------
    fore, back : ndarray of shape (n_rows, n_components)
        Of the rows that have a value at all; those of several backgrounds one after the other.
    rows : ndarray of int
        Numbers of the foreground's rows among these.
    n_rows : int
        Of the foreground, with or without values.
    back_rows : tuple of ndarray of int
        Numbers of each background's rows among these.
    n_back_rows : tuple of int
        Of each background.
    """

    fore: np.ndarray
    back: np.ndarray
    rows: np.ndarray
    n_rows: int
    back_rows: tuple[np.ndarray, ...] = ()
    n_back_rows: tuple[int, ...] = ()


def source_scores(model: Any, X: Any, background: Any) -> SourceScores:
    """Scores of sources in both datasets as the fit has them, whatever the model's projection.

    Variables are divided as in the fit, and gaps are filled as there: scores of predicted values, as of
    ``transform``, vary too little.

    Parameters
    ----------
    model : estimator
    X, background : object
        As of ``fit``.

    Returns
    -------
    SourceScores
    """
    reader = clone(model)
    with reader._at_work(), collected():
        datasets = reader._open(X, None, background)
    known, n_known = getattr(model, "feature_names_in_", None), model.n_features_in_
    names, n_features = datasets[0].names, datasets[0].n_features
    check_same_features(known, names, n_known, n_features, name="what was fitted", other="X")
    kept = [np.flatnonzero(~_is_empty(part)) for part in datasets]
    found = []
    for i, (part, rows) in enumerate(zip(datasets, kept, strict=True)):
        own = i > 0 and model.background_spreads_ is not None
        filters = model._source_filters(i - 1 if i else None)
        mean = part.summary.mean if own else model.mean_
        found.append((np.asarray(rows_times(part.rows, filters.T)) - mean @ filters.T)[rows])
    sizes = tuple(map(len, datasets))
    return SourceScores(
        found[0], np.vstack(found[1:]), kept[0], sizes[0], tuple(kept[1:]), sizes[1:]
    )


def groups_of_scores(
    scores: SourceScores, background: Any, groups: Any, background_groups: Any
) -> tuple[Groups | None, Groups | None]:
    """Groups of the rows that have scores, of each dataset where they were given.

    Parameters
    ----------
    scores : SourceScores
    background, groups, background_groups : object
        As of ``fit``, but that one of the two may be alone; a name of two backgrounds is one group.

    Returns
    -------
    tuple of (Groups or None, Groups or None)
    """
    fore = back = None
    if groups is not None:
        fore = as_groups(groups, scores.n_rows, "groups", "X").take(scores.rows)
    given = background_labels(background, background_groups)
    if given is not None:
        count = len(scores.n_back_rows)
        names: list[str] = []
        for i, labels in enumerate(split_groups(given, count)):
            ends = "" if count == 1 else f"[{i}]"
            n_rows, rows = scores.n_back_rows[i], scores.back_rows[i]
            own = as_groups(labels, n_rows, f"background_groups{ends}", f"background{ends}")
            names += [own.names[code] for code in own.codes[rows]]
        kinds, codes = np.unique(names, return_inverse=True)
        back = Groups(codes.ravel(), tuple(map(str, kinds)))
    return fore, back


def _is_empty(part: Dataset) -> np.ndarray:
    """Which rows have no value at all."""
    if part.unfilled is None:
        return np.zeros(len(part), dtype=bool)
    blocks = iterate_blocks(part.unfilled, block_rows(part.n_features, part.unfilled))
    return np.concatenate([np.isnan(to_numpy(block)).all(axis=1) for block in blocks])


class Part(NamedTuple):
    """Some rows of both datasets: their numbers, and the group of each where rows come in groups."""

    fore: np.ndarray
    back: np.ndarray
    fore_groups: np.ndarray | None = None
    back_groups: np.ndarray | None = None


class Study:
    """A fitted model with its data in memory, parts of which can be fitted again.

    Parameters
    ----------
    model : estimator
        Fitted.
    X, background, groups, background_groups : object
        As of ``fit``; one background.

    Attributes
    ----------
    model : estimator
    fore, back : ndarray, scipy.sparse matrix, TensorRows or CompressedRows
        Rows as they are: every refit fills gaps by itself.
    filled : tuple of the same
        Both with gaps filled from all rows, to be scored.
    """

    def __init__(
        self, model: Any, X: Any, background: Any, groups: Any, background_groups: Any
    ) -> None:
        check_model(model, background)
        labels = _labels_of(model, background, groups, background_groups)
        background = background.data if isinstance(background, Background) else background
        datasets = [Dataset(_in_memory(X, "X"), "X")]
        datasets.append(Dataset(_in_memory(background, "background"), "background"))
        check_same_variables(datasets)
        read_datasets(datasets, fill=model._fills_gaps, remedy=model._gap_remedy)
        self.fore, self.back = (
            _plain(part.rows if part.unfilled is None else part.unfilled) for part in datasets
        )
        self.filled = tuple(
            own if part.unfilled is None else in_memory(part.rows)
            for part, own in zip(datasets, (self.fore, self.back), strict=True)
        )
        self.groups = _groups(datasets, labels)
        self.model, self.refitted = model, _refitted(model)

    def __getstate__(self) -> dict[str, Any]:
        # rows are taken to the device by whom they are sent to
        return {name: value for name, value in vars(self).items() if name != "placed"}

    @cached_property
    def placed(self) -> tuple[Any, ...]:
        """Rows of both as refits get them: on the device of the model, where they are taken once."""
        rows, device = (self.fore, self.back), self.model.device
        # gaps are filled where rows are on the host
        dense = all(isinstance(each, np.ndarray) for each in rows) and device != "cpu"
        # of all rows, and of those of a resample
        if not dense or device is None or self.model._fills_gaps or not copies_fit(rows, device, 2):
            return rows
        moved = tuple(on_device(each, device) for each in rows)
        return moved if all(isinstance(each, TensorRows) for each in moved) else rows

    def scores(self, filters: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Products of the rows of both with filters, gaps filled.

        Parameters
        ----------
        filters : sequence of ndarray of shape (k, n_features)
            For each dataset.

        Returns
        -------
        list of ndarray of shape (n, k)
        """
        with work_on(self.model.device):
            rows = self.filled if self.placed[0] is self.fore else self.placed
            return [
                np.asarray(rows_times(part, own.T) if isinstance(part, Rows) else part @ own.T)
                for part, own in zip(rows, filters, strict=True)
            ]

    @property
    def names(self) -> list[str]:
        """Names of all groups, those of the foreground first; one for a group of both."""
        if self.groups is None:
            return []
        return list(dict.fromkeys([*self.groups[0].names, *self.groups[1].names]))

    def fit(self, part: Part, seed: Sequence[int]) -> Any:
        """Fit some of the rows, at the ranks of the model.

        Parameters
        ----------
        part : Part
        seed : sequence of int

        Returns
        -------
        estimator
        """
        model = clone(self.refitted)
        model.random_state = np.random.default_rng(seed)
        labels = {}
        if part.fore_groups is not None:
            labels = {"groups": part.fore_groups, "background_groups": part.back_groups}
        with collected(), work_on(self.model.device):
            fore, back = map(_rows_at, self.placed, part[:2])
            model.fit(fore, background=back, **labels)
        return model

    def host_rows(self, dataset: int, index: np.ndarray) -> Any:
        """Some rows of a dataset, gaps filled, in the memory of the host.

        Parameters
        ----------
        dataset : {0, 1}
        index : ndarray of int

        Returns
        -------
        ndarray or scipy.sparse matrix
        """
        rows = _rows_at(self.filled[dataset], index)
        return in_memory(rows) if isinstance(rows, Rows) else rows

    @property
    def everything(self) -> Part:
        """All rows."""
        return Part(*(np.arange(rows.shape[0]) for rows in (self.fore, self.back)))

    def of_groups(self, names: Sequence[str]) -> Part:
        """Rows of some groups, in both datasets; a group that is drawn again is another one.

        Parameters
        ----------
        names : sequence of str

        Returns
        -------
        Part
        """
        found: list[np.ndarray] = []
        labels: list[np.ndarray] = []
        for groups in self.groups or ():
            rows = {name: np.flatnonzero(groups.codes == i) for i, name in enumerate(groups.names)}
            own = [(i, rows[name]) for i, name in enumerate(names) if name in rows]
            found.append(np.concatenate([np.empty(0, dtype=int), *(each for _, each in own)]))
            labels.append(
                np.concatenate([np.empty(0), *(np.full(each.size, i) for i, each in own)])
            )
        return Part(*found, *labels)


def _in_memory(data: Any, name: str) -> Any:
    if isinstance(data, list | tuple) and any(
        len(getattr(part, "shape", ())) == 2 for part in data
    ):
        raise DataError(
            "several-backgrounds",
            f"several datasets were given as `{name}`",
            "rows of one are resampled",
            "Stack them.",
            name,
        )
    return data


def _plain(rows: Any) -> Any:
    """Rows that can be taken by number."""
    if isinstance(rows, SparseRows):
        return rows.matrix
    if isinstance(rows, TensorRows | CompressedRows):
        return rows
    if isinstance(rows, Rows):
        raise DataError(
            "not-in-memory",
            f"rows are in a {type(rows).__name__}",
            "resampling takes rows by number",
            "Give an array, a data frame, a tensor or a scipy.sparse matrix; of rows on disk read a "
            "sample.",
            "X",
        )
    return rows


def _rows_at(rows: Any, index: np.ndarray) -> Any:
    """Rows of some numbers, where they are."""
    return rows.selected(index) if isinstance(rows, TensorRows | CompressedRows) else rows[index]


def _groups(
    datasets: Sequence[Dataset], labels: GroupLabels | None
) -> tuple[Groups, Groups] | None:
    if labels is None:
        return None
    for part, (name, own) in zip(datasets, labels.of_each(1), strict=True):
        part.group(own, name)
    first, second = (part.groups for part in datasets)
    return None if first is None or second is None else (first, second)


def _refitted(model: Any) -> Any:
    """The model with what its fit chose fixed: solver, dimensions and ranks."""
    found = clone(model)
    if found.basis is None:
        found.n_pcs = None if model.basis_ is None else model.n_pcs_
    if not isinstance(model, ContrastiveICA):
        return found.set_params(
            n_background=max(model.n_background_, 1), n_foreground=max(model.n_foreground_, 1)
        )
    found.solver, found.n_components = model.solver_, None
    kept = len(model.components_)
    if model.solver_ == "subspace":
        scree = model.scree_
        own = scree.n_beyond if isinstance(scree, ContrastScree) else kept
        given = model.n_foreground or max(own + TO_SPARE, MIN_DIMENSION, kept)
        return found.set_params(n_foreground=min(given, model.n_pcs_), n_background=None)
    return found.set_params(
        n_background=max(model.n_background_, 1), n_foreground=max(model.n_foreground_, kept)
    )
