"""Fitted models, saved to files and loaded from them."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from contrica._version import __version__
from contrica.errors import FileError, FileMissingError, ParameterError, unmarked
from contrica.estimators import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
    ProportionalContrastiveICA,
)
from contrica.output import output_file
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.ranks import Scree
from contrica.solvers.selection import RankChoice

__all__ = ["load", "save"]

_MODELS: dict[str, Any] = {
    model.__name__: model
    for model in (
        *(ContrastiveICA, ProportionalContrastiveICA, PlainICA, PlainPCA),
        *(ContrastivePCA, ProbabilisticContrastivePCA, GeneralizedContrastivePCA),
    )
}
# What a file that is not a saved model, or a damaged one, can raise on the way.
_NO_MODEL = (
    *(ValueError, KeyError, OSError, EOFError, AttributeError, TypeError),
    *(zipfile.BadZipFile, zlib.error),
)


def save(model: Any, path: str | Path) -> None:
    """Save a fitted model as an npz file of plain arrays and json; no pickle.

    A ``random_state`` that is a generator, not a number, is not kept, nor are the sums of `partial_fit`,
    which `contrica.moments.DataSums.save` saves.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.
    path : path
        Written under a temporary name and then renamed.
    """
    name = type(model).__name__
    if name not in _MODELS:
        raise ParameterError(
            "unknown-model",
            f"a {name} cannot be saved",
            remedy=f"Give one of {', '.join(_MODELS)}.",
            parameter="model",
        )
    model._check_fitted()
    parameters = {key: _plain(value) for key, value in model.get_params().items()}
    learnt = {
        key: value
        for key, value in vars(model).items()
        if key.endswith("_") and key not in _LEFT_OUT
    }
    records = {
        key: type(value).__name__
        for key, value in learnt.items()
        if type(value) in _RECORDS.values()
    }
    learnt = dict(_spread(learnt))
    arrays = {
        key: value.astype(str) if value.dtype == object else value
        for key, value in learnt.items()
        if isinstance(value, np.ndarray)
    }
    numbers = {key: _plain(value) for key, value in learnt.items() if key not in arrays}
    header = {
        "model": name,
        "version": __version__,
        "parameters": parameters,
        "learnt": numbers,
        "records": records,
    }
    with output_file(path, overwrite=True) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **{"header": np.array(json.dumps(header)), **arrays})  # type: ignore[arg-type]


# Attributes that are records of several fields.
_RECORDS: dict[str, Any] = {kind.__name__: kind for kind in (RankChoice, Scree, ContrastScree)}
# Sums, which are large. Earlier versions wrote that there are none.
_LEFT_OUT = ("foreground_sums_", "background_sums_")
# What earlier versions called otherwise.
_RENAMED = {
    "pattern_scores_": "pattern_t_values_",
    "rank_choice_.scores": "rank_choice_.t_values",
    "n_rows_held_": "n_rows_sampled_",
}


def _spread(learnt: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What was learnt, records as one entry for each of their fields."""
    for key, value in learnt.items():
        if type(value) in _RECORDS.values():
            yield from ((f"{key}.{field}", part) for field, part in value._asdict().items())
        else:
            yield key, value


def _rejoined(learnt: dict[str, Any], records: dict[str, str]) -> dict[str, Any]:
    """The reverse of `_spread`; of which kind each record is stands beside it."""
    fields = {key: value for key, value in learnt.items() if "." in key}
    whole = {key: value for key, value in learnt.items() if key not in fields}
    for name in dict.fromkeys(key.partition(".")[0] for key in fields):
        # what earlier versions did not know has a default
        known = {
            key.partition(".")[2]: tuple(value) if isinstance(value, list) else value
            for key, value in fields.items()
            if key.startswith(f"{name}.")
        }
        whole[name] = _RECORDS[records.get(name, RankChoice.__name__)](**known)
    return whole


def _older(name: str, parameters: dict[str, Any], learnt: dict[str, Any]) -> dict[str, Any]:
    """What a file lacks that was written by an earlier version."""
    if name not in (ContrastiveICA.__name__, ProportionalContrastiveICA.__name__):
        return {}
    found: dict[str, Any] = {"n_rows_sampled_": tuple(learnt.get("n_rows_sampled_", ()))}
    found |= {key: learnt.get(key) for key in ("scale_", "background_spreads_")}
    ratio = learnt["contrast_ratio_"]
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
        found["foreground_skewness_weights_"] = learnt.get("foreground_skewness_weights_", unknown)
        if "solver_" not in learnt:
            found["solver_"] = "plain" if np.isnan(ratio).all() else parameters["solver"]
            found["reason_"] = "saved by an earlier version, which did not choose"
            found["rank_choice_"], found["pattern_t_values_"] = None, unknown
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(each) for each in value]  # a sweep of parameters
    return value if isinstance(value, str | int | float | bool | None) else None


def load(path: str | Path) -> Any:
    """Load a model written by `save`.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Fitted, ready to `transform`.
    """
    path = Path(path)
    if not path.is_file():
        folder = path.is_dir()
        raise FileMissingError(
            "is-a-folder" if folder else "missing",
            f"{unmarked(path)} {'is a folder' if folder else 'does not exist'}",
            remedy="Name the model.npz in it." if folder else "Check the path.",
            parameter="path",
            filename=path,
        )
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {key: stored[key] for key in stored.files if key != "header"}
        name, parameters = header["model"], header["parameters"]
        if name == ContrastiveICA.__name__:
            parameters.setdefault("solver", "paper")  # the only one there was
        model = _MODELS[name](**parameters)
        learnt = {**header["learnt"], **arrays}
        learnt = {
            _RENAMED.get(key, key): value for key, value in learnt.items() if key not in _LEFT_OUT
        }
        learnt = _rejoined(learnt, header.get("records", {}))
        learnt |= _older(name, parameters, learnt)
    except _NO_MODEL as error:
        raise FileError(
            "not-a-model",
            f"{unmarked(path)} is not a model saved by contrica {__version__} or an earlier version",
            remedy="Give a file that save wrote, or contrica fit: model.npz.",
            parameter="path",
        ) from error
    for key, value in learnt.items():
        setattr(model, key, value.astype(object) if key == "feature_names_in_" else value)
    return model
