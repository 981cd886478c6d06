"""What inference shares: data read as a model's fit reads them, and refits of parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from contrica.errors import DataError, ParameterError, collected
from contrica.estimators._background import Background, GroupLabels, group_labels
from contrica.estimators._base import BaseContrastive
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.rows.dataset import Dataset, check_same_variables, read_datasets
from contrica.rows.groups import Groups
from contrica.rows.protocol import Rows
from contrica.rows.sparse import SparseRows
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.problem import Problem
from contrica.solvers.subspace_solver import MIN_DIMENSION, TO_SPARE

__all__ = ["Part", "Study", "check_model", "check_pattern", "feature_names", "read_problem"]


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
            f"there are {count} patterns, numbered from 0",
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
    labels = group_labels(background, groups, background_groups)
    background = background.data if isinstance(background, Background) else background
    with reader._at_work(), collected():
        problem: Problem = reader._read(X, None, background, labels)
    return problem


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
    """

    def __init__(
        self, model: Any, X: Any, background: Any, groups: Any, background_groups: Any
    ) -> None:
        check_model(model, background)
        labels = group_labels(background, groups, background_groups)
        background = background.data if isinstance(background, Background) else background
        datasets = [Dataset(_in_memory(X, "X"), "X")]
        datasets.append(Dataset(_in_memory(background, "background"), "background"))
        check_same_variables(datasets)
        read_datasets(datasets)
        self.fore, self.back = (_plain(part.rows) for part in datasets)
        self.groups = _groups(datasets, labels)
        self.refitted = _refitted(model)

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
        with collected():
            model.fit(self.fore[part.fore], background=self.back[part.back], **labels)
        return model

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
    if isinstance(rows, Rows):
        raise DataError(
            "not-in-memory",
            f"rows are in a {type(rows).__name__}",
            "resampling takes rows by number",
            "Give an array, a data frame or a scipy.sparse matrix; of rows on disk read a sample.",
            "X",
        )
    return rows


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
