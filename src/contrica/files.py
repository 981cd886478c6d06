"""Save and load fitted models, write tables and folders that are never half-written."""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from contrica._version import __version__
from contrica.estimators import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
    ProportionalContrastiveICA,
)
from contrica.rows.tables import Table, read_table
from contrica.solvers.selection import RankChoice

__all__ = [
    "Table",
    "load",
    "output_file",
    "output_folder",
    "read_table",
    "save",
    "write_blocks",
    "write_table",
]

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


# --- writing ---


def write_table(
    path: str | Path,
    values: np.ndarray,
    columns: Sequence[str],
    index: Iterable[Any],
    index_name: str = "",
) -> None:
    """Write a csv file with a header and a row index; floats as short as they read back."""
    write_blocks(path, [values], columns, index, index_name)


def write_blocks(
    path: str | Path,
    blocks: Iterable[np.ndarray],
    columns: Sequence[str],
    index: Iterable[Any],
    index_name: str = "",
) -> None:
    """Write what `write_table` would of the blocks one below the other, and hold one at a time."""
    rows = (row for block in blocks for row in block.tolist())
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([index_name, *columns])
        for name, row in zip(index, rows, strict=True):
            writer.writerow([name, *row])


@contextmanager
def output_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary file that becomes ``path`` only when the block ends without an error."""
    path = Path(path)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder. Name a file for the output.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already. Name another file, or pass --overwrite.")
    nearest = next(parent for parent in path.absolute().parents if parent.is_dir())
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=nearest)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def output_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` only when the block ends without an error.

    An existing folder is refused, or, with ``overwrite``, has those of its files replaced that were
    written anew; other files in it stay.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} exists and is a file. Name a folder for the output.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already. Name another folder, or pass --overwrite.")
    # The nearest folder that exists: parents are made only once there is something to put there.
    nearest = next(parent for parent in path.absolute().parents if parent.is_dir())
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=nearest))
    try:
        yield temporary
        if path.exists():
            for file in temporary.iterdir():
                os.replace(file, path / file.name)
        else:
            temporary.chmod(0o755)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# --- models ---


def save(model: Any, path: str | Path) -> None:
    """Save a fitted model as an npz file of plain arrays and json; no pickle.

    A ``random_state`` that is a generator, not a number, is not kept.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.
    path : path
        Written under a temporary name and then renamed.
    """
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    if name not in _MODELS:
        raise ValueError(f"a {name} cannot be saved. Give one of {', '.join(_MODELS)}.")
    check_is_fitted(model)
    parameters = {key: _plain(value) for key, value in model.get_params().items()}
    learnt = {key: value for key, value in vars(model).items() if key.endswith("_")}
    learnt = dict(_spread(learnt))
    arrays = {
        key: value.astype(str) if value.dtype == object else value
        for key, value in learnt.items()
        if isinstance(value, np.ndarray)
    }
    numbers = {key: _plain(value) for key, value in learnt.items() if key not in arrays}
    header = {"model": name, "version": __version__, "parameters": parameters, "learnt": numbers}
    with output_file(path, overwrite=True) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **{"header": np.array(json.dumps(header)), **arrays})  # type: ignore[arg-type]


# What earlier versions called otherwise.
_RENAMED = {
    "pattern_scores_": "pattern_t_values_",
    "rank_choice_.scores": "rank_choice_.t_values",
}


def _spread(learnt: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What was learnt, a choice of ranks as one entry for each of its fields."""
    for key, value in learnt.items():
        if isinstance(value, RankChoice):
            yield from ((f"{key}.{field}", part) for field, part in value._asdict().items())
        else:
            yield key, value


def _gathered(learnt: dict[str, Any]) -> dict[str, Any]:
    """The reverse of `_spread`."""
    fields = {key: value for key, value in learnt.items() if "." in key}
    whole = {key: value for key, value in learnt.items() if key not in fields}
    for name in dict.fromkeys(key.partition(".")[0] for key in fields):
        # what earlier versions did not know has a default
        known = {
            key.partition(".")[2]: value
            for key, value in fields.items()
            if key.startswith(f"{name}.")
        }
        whole[name] = RankChoice(**known)._replace(near_ties=tuple(known.get("near_ties", ())))
    return whole


def _older(name: str, parameters: dict[str, Any], learnt: dict[str, Any]) -> dict[str, Any]:
    """What a file lacks that was written by an earlier version."""
    if name != ContrastiveICA.__name__:
        return {}
    ties = {"near_ties_": tuple(learnt.get("near_ties_", ()))}
    if "solver_" in learnt:
        return ties
    ratio = learnt["contrast_ratio_"]
    return {
        "solver_": "plain" if np.isnan(ratio).all() else parameters["solver"],
        "reason_": "saved by an earlier version, which did not choose",
        "rank_choice_": None,
        "pattern_t_values_": np.full(ratio.shape, np.nan),
        **ties,
    }


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
        what = "is a folder; name the model.npz in it" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what}. Check the path.")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {key: stored[key] for key in stored.files if key != "header"}
        name, parameters = header["model"], header["parameters"]
        if name == ContrastiveICA.__name__:
            parameters.setdefault("solver", "paper")  # the only one there was
        model = _MODELS[name](**parameters)
        learnt = {**header["learnt"], **arrays}
        learnt = _gathered({_RENAMED.get(key, key): value for key, value in learnt.items()})
        learnt |= _older(name, parameters, learnt)
    except _NO_MODEL as error:
        raise ValueError(
            f"{path} is not a model saved by contrica {__version__} or an earlier version."
        ) from error
    for key, value in learnt.items():
        setattr(model, key, value.astype(object) if key == "feature_names_in_" else value)
    return model
