"""What is saved of a fitted model: its parameters, and what it learnt, as json and plain arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from contrica.archive import FileKind, write_archive
from contrica.errors import ParameterError
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.ranks import Scree
from contrica.solvers.selection import RankChoice

__all__ = ["LEFT_OUT", "MODEL_FILE", "RECORDS", "model_state", "save_model"]

MODEL_FILE = FileKind(
    "header",
    "not-a-model",
    "a model saved by contrica",
    "Give a file that save wrote, or contrica fit: model.npz.",
)
# Attributes that are records of several fields.
RECORDS: dict[str, Any] = {kind.__name__: kind for kind in (RankChoice, Scree, ContrastScree)}
# Sums, which are large. Earlier versions wrote that there are none.
LEFT_OUT = ("foreground_sums_", "background_sums_")


def save_model(model: Any, path: str | Path) -> None:
    """Save a fitted model of contrica, as `contrica.save` says.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted, and not of a class that was derived from ours, which could not be loaded.
    path : path
    """
    write_archive(path, MODEL_FILE, *model_state(model))


def model_state(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is saved of a fitted model, of which `contrica.models.model_of` makes it again.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.

    Returns
    -------
    header : dict
        What json can write.
    arrays : dict of ndarray
    """
    name = type(model).__name__
    if type(model).__module__.partition(".")[0] != __name__.partition(".")[0]:
        raise ParameterError(
            "unknown-model",
            f"a {name} cannot be saved",
            remedy="Give an estimator of contrica, and not one derived from it.",
            parameter="model",
        )
    model._check_fitted()
    learnt = {
        key: value
        for key, value in vars(model).items()
        if key.endswith("_") and key not in LEFT_OUT
    }
    records = {
        key: type(value).__name__
        for key, value in learnt.items()
        if type(value) in RECORDS.values()
    }
    learnt = dict(_spread(learnt))
    arrays = {
        key: value.astype(str) if value.dtype == object else value
        for key, value in learnt.items()
        if isinstance(value, np.ndarray)
    }
    header = {
        "model": name,
        "parameters": {key: _plain(value) for key, value in model.get_params().items()},
        "learnt": {key: _plain(value) for key, value in learnt.items() if key not in arrays},
        "records": records,
    }
    return header, arrays


def _spread(learnt: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What was learnt, records as one entry for each of their fields."""
    for key, value in learnt.items():
        if type(value) in RECORDS.values():
            yield from ((f"{key}.{field}", part) for field, part in value._asdict().items())
        else:
            yield key, value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(each) for each in value]  # a sweep of parameters
    return value if isinstance(value, str | int | float | bool | None) else None
