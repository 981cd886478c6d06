"""Fitted models, saved to files and loaded from them."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from contrica._version import __version__
from contrica.archive import read_archive
from contrica.errors import FileError, ParameterError, unmarked
from contrica.estimators import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
    ProportionalContrastiveICA,
)
from contrica.estimators._saving import LEFT_OUT, MODEL_FILE, RECORDS
from contrica.solvers.selection import RankChoice

__all__ = ["load", "model_of", "save"]

_MODELS: dict[str, Any] = {
    model.__name__: model
    for model in (
        *(ContrastiveICA, ProportionalContrastiveICA, PlainICA, PlainPCA),
        *(ContrastivePCA, ProbabilisticContrastivePCA, GeneralizedContrastivePCA),
    )
}
# What earlier versions called otherwise.
_RENAMED = {
    "pattern_scores_": "pattern_t_values_",
    "rank_choice_.scores": "rank_choice_.t_values",
    "n_rows_held_": "n_rows_sampled_",
}
# Arrays that every use of a model needs, by the length of each of their axes: components or variables.
_SHAPES = {
    "components_": ("k", "p"),
    "mean_": ("p",),
    "filters_": ("k", "p"),
    "contrast_ratio_": ("k",),
    "source_ratio_": ("k",),
    "foreground_weights_": ("k",),
    "score_scales_": ("k",),
    "feature_names_in_": ("p",),
    "only_shifted_": ("k",),
}
_NEEDED = ("components_", "mean_", "n_features_in_", "contrast_ratio_")


def save(model: Any, path: str | Path) -> None:
    """Save a fitted model as an npz file of plain arrays and json, with checksums; no pickle.

    A ``random_state`` that is a generator, not a number, is not kept, nor are the sums of `partial_fit`,
    which `contrica.moments.DataSums.save` saves. ``model.save(path)`` does the same.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.
    path : path
        Written under a temporary name and then renamed.
    """
    if type(model) not in _MODELS.values():
        raise ParameterError(
            "unknown-model",
            f"a {type(model).__name__} cannot be saved",
            remedy=f"Give one of {', '.join(_MODELS)}.",
            parameter="model",
        )
    model.save(path)


def load(path: str | Path) -> Any:
    """Load a model that `save`, of this or of an earlier version, wrote.

    Checksums of the header and of every array are compared, sizes before memory is taken for them.
    Nothing in the file is executed, and only what a fit learns is set.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Fitted, ready to `transform`.

    Raises
    ------
    FileError
        If the file is not a model, or damaged, or of a later version.
    FileMissingError
    """
    found = read_archive(path, MODEL_FILE)
    try:
        return model_of(found.header, found.arrays)
    except Exception as error:  # whatever is made of a header that says something else
        raise FileError(
            MODEL_FILE.code,
            f"{unmarked(path)} is not a model saved by contrica {__version__} or an earlier version"
            f"{_reason(error)}",
            remedy=MODEL_FILE.remedy,
            parameter="path",
        ) from error


class _Unfit(Exception):
    """Why what a file says is not a model, in words."""


def _reason(error: Exception) -> str:
    return f": {unmarked(error)}" if isinstance(error, _Unfit) else ""


def model_of(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The model that `contrica.estimators._saving.model_state` describes; any error where that is none.

    Parameters
    ----------
    header : dict
    arrays : dict of ndarray

    Returns
    -------
    estimator
        Fitted.
    """
    name, parameters = header["model"], header["parameters"]
    made = _MODELS.get(name)
    if made is None:
        raise _Unfit(f"{name!r} is not a model that is known here")
    if name == ContrastiveICA.__name__:
        parameters.setdefault("solver", "paper")  # the only one there was
    unknown = parameters.keys() - signature(made).parameters.keys()
    if unknown:
        raise _Unfit(f"{name} has no parameter {min(unknown)!r}")
    model = made(**parameters)
    learnt = {
        _RENAMED.get(key, key): value
        for key, value in {**header["learnt"], **arrays}.items()
        if key not in LEFT_OUT
    }
    learnt = _rejoined(learnt, header.get("records", {}))
    learnt |= _older(name, parameters, learnt)
    _check_learnt(made, learnt)
    for key, value in learnt.items():
        setattr(model, key, value.astype(object) if key == "feature_names_in_" else value)
    axes = model._axes  # what rows are multiplied by, whatever the method makes them of
    if axes.shape != model.components_.shape or not np.isfinite(axes).all():
        raise _Unfit("rows cannot be scored by it")
    return model


def _rejoined(learnt: dict[str, Any], records: dict[str, str]) -> dict[str, Any]:
    """Records of the fields that were saved; of which kind each is stands beside them."""
    fields = {key: value for key, value in learnt.items() if "." in key}
    whole = {key: value for key, value in learnt.items() if key not in fields}
    for name in dict.fromkeys(key.partition(".")[0] for key in fields):
        # what earlier versions did not know has a default
        known = {
            key.partition(".")[2]: tuple(value) if isinstance(value, list) else value
            for key, value in fields.items()
            if key.startswith(f"{name}.")
        }
        whole[name] = RECORDS[records.get(name, RankChoice.__name__)](**known)
    return whole


def _older(name: str, parameters: dict[str, Any], learnt: dict[str, Any]) -> dict[str, Any]:
    """What a file lacks that was written by an earlier version."""
    if name not in (ContrastiveICA.__name__, ProportionalContrastiveICA.__name__):
        return {}
    found: dict[str, Any] = {"n_rows_sampled_": tuple(learnt.get("n_rows_sampled_", ()))}
    found |= {key: learnt.get(key) for key in ("scale_", "background_spreads_")}
    ratio, mean = learnt["contrast_ratio_"], learnt["mean_"]
    unknown = np.full(ratio.shape, np.nan)
    if "ranked_by_" not in learnt:
        by_source = learnt.get("solver_") == "subspace"  # whose ratios were those of the sources
        found["ranked_by_"] = "source_ratio" if by_source else "contrast_ratio"
        found["contrast_ratio_"], found["source_ratio_"] = (
            (unknown, ratio) if by_source else (ratio, unknown)
        )
        found["scree_"] = None
    if name == ContrastiveICA.__name__:
        found["near_ties_"] = tuple(learnt.get("near_ties_", ()))
        found["only_shifted_"] = learnt.get("only_shifted_", np.zeros(ratio.shape, dtype=bool))
        found["left_out_shifts_"] = learnt.get("left_out_shifts_", np.empty((0, mean.size)))
        found["foreground_skewness_weights_"] = learnt.get("foreground_skewness_weights_", unknown)
        if "solver_" not in learnt:
            found["solver_"] = "plain" if np.isnan(ratio).all() else parameters["solver"]
            found["reason_"] = "saved by an earlier version, which did not choose"
            found["rank_choice_"], found["pattern_t_values_"] = None, unknown
    return found


def _check_learnt(made: Any, learnt: dict[str, Any]) -> None:
    """Refuse what a fit does not learn, and what does not fit together."""
    for name in learnt:
        # a method or a property of the class must never be replaced
        if not re.fullmatch(r"[a-z][a-z0-9_]*_", name) or hasattr(made, name):
            raise _Unfit(f"{name!r} is not what a fit learns")
    for name in _NEEDED:
        if name not in learnt:
            raise _Unfit(f"{name} is missing")
    lengths = dict(zip("kp", np.shape(learnt["components_"]), strict=True))
    if learnt["n_features_in_"] != lengths["p"]:
        raise _Unfit("components_ are not over n_features_in_ variables")
    for name, axes in _SHAPES.items():
        if name in learnt and np.shape(learnt[name]) != tuple(lengths[axis] for axis in axes):
            raise _Unfit(f"{name} has another shape than components_ ask for")
    for name in ("components_", "mean_", "filters_"):
        if name in learnt and not np.isfinite(learnt[name]).all():
            raise _Unfit(f"{name} holds what is not a finite number")
