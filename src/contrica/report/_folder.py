"""What a result folder of ``contrica fit`` holds, as the material of a report, without its rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contrica.errors import FileError, FileMissingError, unmarked
from contrica.estimators._base import BaseContrastive
from contrica.inference._findings import SEVERITIES, Finding, Report
from contrica.models import load
from contrica.report._material import MAX_POINTS, Material, Samples
from contrica.rows.groups import Groups
from contrica.validation import generator

__all__ = ["CHECK_FILE", "material_of_folder", "save_check"]

# Findings of the data check, which only a fit can make: it has the rows.
CHECK_FILE = "check.json"
NO_CHECK = (
    "The data check reads the rows, which this folder does not hold. In Python, contrica.inference.check "
    "makes it."
)


def save_check(report: Report, folder: Path) -> None:
    """Keep findings of the data check in a result folder.

    Parameters
    ----------
    report : Report
    folder : Path
    """
    text = json.dumps(asdict(report), indent=1, ensure_ascii=False)
    (folder / CHECK_FILE).write_text(text + "\n", encoding="utf-8")


def material_of_folder(folder: Path) -> Material:
    """Model, scores and metadata of a result folder.

    Scores are those of the files; of very many rows a random sample, the same every time. Folders of
    earlier versions, which have neither metadata nor scores of the background, have less to say.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    Material
    """
    for name in ("model.npz", "scores.csv"):
        if not (folder / name).is_file():
            raise FileMissingError(
                "not-a-result",
                f"{unmarked(folder)} has no {name}",
                "a folder that contrica fit wrote is needed",
                filename=folder / name,
            )
    model = load(folder / "model.npz")
    if not isinstance(model, BaseContrastive):
        raise FileError(
            "unknown-model",
            f"{unmarked(folder)} is the result of {type(model).__name__}",
            "a report is for contrastive ICA",
        )
    width = len(model.components_)
    fore = _read(folder / "scores.csv")
    tables, sizes = [("foreground", fore)], [fore.n_rows]
    if (folder / "background_scores.csv").is_file():
        back = _read(folder / "background_scores.csv")
        sizes.append(back.n_rows)
        tables.append(("background", back))
    known = _metadata(folder / "metadata.csv", [table.rows for _, table in tables], sizes)
    samples: list[Samples] = []
    for (name, table), own in zip(tables, known, strict=True):
        datasets = own.pop("dataset", None)
        samples += _samples(name, table, own, datasets, width, folder)
    first, *others = samples
    groups, behind = (_groups(each) for each in ([first], others))
    return Material(model, first, tuple(others), groups, behind, check=_saved_check(folder))


def _groups(parts: Sequence[Samples]) -> Groups | None:
    """Groups of the rows of some datasets, one below the other; a name of two is one group."""
    cells = [each.columns.get("groups", np.array([""])).astype(str) for each in parts]
    labels = np.concatenate([*cells, np.empty(0, dtype=str)])
    if not labels.size or (labels == "").any():
        return None
    names, codes = np.unique(labels, return_inverse=True)
    return Groups(codes.ravel(), tuple(map(str, names)))


class _Table(NamedTuple):
    """Some rows of a csv file: cells of text, their numbers, and how many rows there are."""

    head: list[str]
    cells: np.ndarray
    rows: np.ndarray
    n_rows: int


def _records(path: Path) -> Iterator[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        yield from csv.reader(file)


def _read(path: Path) -> _Table:
    """A csv file, or a sample of its rows: once to count them, once to read those."""
    count = sum(1 for _ in _records(path)) - 1
    if count < 1:
        raise FileError("not-a-result", f"{unmarked(path)} has no rows")
    rows = np.arange(count)
    if count > MAX_POINTS:
        rows = np.sort(generator(0).choice(count, MAX_POINTS, replace=False))
    head, cells = _taken(path, rows)
    return _Table(head, cells, rows, count)


def _taken(path: Path, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The heading, and the records of those numbers."""
    lines = _records(path)
    head, wanted = next(lines), set(rows.tolist())
    found = [line for i, line in enumerate(lines) if i in wanted]
    if any(len(line) != len(head) for line in found):
        raise FileError("not-a-result", f"{unmarked(path)} has rows of different lengths")
    return head, np.array(found, dtype=object).reshape(len(found), len(head))


def _metadata(
    path: Path, rows: Sequence[np.ndarray], sizes: Sequence[int]
) -> list[dict[str, np.ndarray]]:
    """Columns of metadata of the rows taken of each table of scores."""
    if not path.is_file():
        return [{} for _ in rows]
    count = sum(1 for _ in _records(path)) - 1
    if count != sum(sizes):
        raise FileError(
            "metadata-length",
            f"{unmarked(path)} has {count} rows",
            f"there are scores of {sum(sizes)}",
            "Fit again, or move it away.",
        )
    starts = np.cumsum([0, *sizes[:-1]])
    wanted = np.concatenate([own + start for own, start in zip(rows, starts, strict=True)])
    head, cells = _taken(path, wanted)
    parts = np.split(cells, np.cumsum([own.size for own in rows])[:-1])
    return [{name: part[:, i] for i, name in enumerate(head) if name != "sample"} for part in parts]


def _samples(
    name: str,
    table: _Table,
    columns: dict[str, np.ndarray],
    datasets: np.ndarray | None,
    width: int,
    folder: Path,
) -> Iterator[Samples]:
    """The datasets of one table of scores: several backgrounds are one below the other."""
    try:
        scores = np.where(table.cells[:, 1:] == "", "nan", table.cells[:, 1:]).astype(float)
    except ValueError as error:
        raise FileError(
            "not-a-result", f"the {name}'s scores in {unmarked(folder)} are not numbers"
        ) from error
    if scores.shape[1] != width:
        raise FileError(
            "not-a-result",
            f"there are {scores.shape[1]} scores of the {name} in {unmarked(folder)}",
            f"its model has {width} patterns",
        )
    numbered = table.head[0] == ""
    names = np.array([f"row {each}" if numbered else each for each in table.cells[:, 0]], object)
    ordered = _ordered(columns)
    kinds = np.full(len(scores), name) if datasets is None else datasets
    for kind in dict.fromkeys(kinds):
        own = np.flatnonzero(kinds == kind)
        some = {key: values[own] for key, values in ordered.items()}
        found = Samples.of(str(kind).replace("_", " "), scores[own], some, names[own])
        # sampled from all datasets of the file alike
        total = table.n_rows if own.size == kinds.size else own.size * table.n_rows // kinds.size
        yield Samples(*(found.name, found.scores, found.columns, found.names, total, found.rows))


def _ordered(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Labels first, under the name of the column that they are, and groups last."""
    rest = {name: values for name, values in columns.items() if name not in ("labels", "groups")}
    labels = columns.get("labels")
    first: dict[str, np.ndarray] = {}
    if labels is not None:
        same = [name for name, values in rest.items() if np.array_equal(values, labels)]
        first = {same[0] if same else "labels": labels}
    last = {"groups": columns["groups"]} if "groups" in columns else {}
    return {**first, **{name: rest[name] for name in rest if name not in first}, **last}


def _saved_check(folder: Path) -> Report | str:
    path = folder / CHECK_FILE
    if not path.is_file():
        return NO_CHECK
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        findings = [Finding(**{key: str(each[key]) for key in each}) for each in found["findings"]]
        if any(each.severity not in SEVERITIES for each in findings):
            raise ValueError("severity")
        return Report.of(findings, str(found["about"]))
    except (ValueError, TypeError, KeyError) as error:
        raise FileError("not-a-result", f"{unmarked(path)} is damaged") from error
