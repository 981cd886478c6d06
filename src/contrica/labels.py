"""One label per row: read from a text file, checked, and numbered by group."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import (
    DataError,
    DelicateDataWarning,
    FileError,
    FileMissingError,
    unmarked,
    warn,
)

__all__ = ["group_numbers", "numbered_groups", "read_labels", "without_missing"]

_LABEL_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_NO_LABEL = ("", "NA", "NaN", "nan")


def _is_missing(label: object) -> bool:
    if isinstance(label, str):
        return label.strip() == ""
    return label is None or str(label) in ("nan", "NaT", "<NA>")


def numbered_groups(
    labels: Any, n_rows: int, *, colours: bool = False
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Number of each row's group, -1 where it has none, and the names of the groups.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Rows without one have None, NaN or an empty text.
    n_rows : int
        Rows of the foreground.
    colours : bool
        Whether errors and warnings speak of colours, which labels are for in a fit, or of the silhouette.

    Returns
    -------
    numbers : ndarray of int of shape (n_rows,)
    names : tuple of str
        In the order of numbers, where all are; by the alphabet otherwise.
    """
    values = np.asarray(labels, dtype=object)
    if values.shape != (n_rows,):
        raise DataError(
            "shape",
            f"`labels` have shape {values.shape}",
            f"there are {n_rows} foreground rows",
            "Give one label per row, in the same order.",
            "labels",
        )
    numbers, names = group_numbers(values)
    unlabelled = int(np.sum(numbers < 0))
    if not 2 <= len(names) < n_rows - unlabelled:
        raise DataError(
            "groups",
            f"`labels` name {len(names)} group(s) among {n_rows - unlabelled} labelled rows",
            f"{'colours need' if colours else 'a silhouette needs'} at least two groups, and fewer "
            "groups than rows",
            "Leave the labels out, or give others.",
            "labels",
        )
    if unlabelled:
        warn(
            DelicateDataWarning(
                "unlabelled",
                f"{unlabelled} of {n_rows} rows have no label: they are fitted like all others, but "
                + ("have no group's colour" if colours else "stay out of the silhouette"),
                parameter="labels",
            )
        )
    return numbers, names


def group_numbers(labels: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """As `numbered_groups`, of any number of groups.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)

    Returns
    -------
    numbers : ndarray of int of shape (n_rows,)
    names : tuple of str
    """
    values = np.asarray(labels, dtype=object)
    texts = ["" if _is_missing(value) else str(value).strip() for value in values]
    texts = ["" if text in _NO_LABEL else text for text in texts]
    names = _ordered(set(texts) - {""})
    number = {name: i for i, name in enumerate(names)} | {"": -1}
    return np.array([number[text] for text in texts], dtype=int), tuple(names)


def _ordered(names: set[str]) -> list[str]:
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def read_labels(path: str | Path, n_rows: int, row_names: np.ndarray | None = None) -> np.ndarray:
    """Read one label per foreground row from a csv, tsv or txt file.

    The file holds a column of labels, after an optional column of row names. One line more than
    there are rows means that the first is a heading. Empty cells, ``NA`` and ``NaN`` are rows
    without a label.

    Parameters
    ----------
    path : path
    n_rows : int
        Rows of the foreground.
    row_names : ndarray of shape (n_rows,), optional
        Names of those rows, compared with those in the file where both have them.

    Returns
    -------
    ndarray of str of shape (n_rows,)
        Empty where a row has no label.
    """
    path = Path(path)
    records = _label_records(path, n_rows)
    width = len(records[-1])
    if len(records) == n_rows + 1 and len(records[0]) in (width, width - 1):
        records = records[1:]
    uneven = [i for i, record in enumerate(records) if len(record) != width]
    if uneven or width > 2:
        cells = len(records[uneven[0]]) if uneven else width
        raise FileError(
            "columns",
            f"{unmarked(path)}: a row has {cells} cells",
            "one column of labels is needed, with at most one column of row names before it, in all rows",
            "Keep those only.",
            "labels",
        )
    if len(records) != n_rows:
        raise FileError(
            "n-labels",
            f"{unmarked(path)} has {len(records)} labels for {n_rows} rows",
            remedy="Give one per row, in the same order; a heading may come first.",
            parameter="labels",
        )
    if width == 2:
        _compare_row_names(path, [record[0].strip() for record in records], row_names)
    labels = np.array([record[-1].strip() for record in records])
    _warn_of_heading(path, labels)
    return without_missing(labels)


def without_missing(labels: np.ndarray) -> np.ndarray:
    """Labels with empty text in place of what says that there is none, such as NA.

    Parameters
    ----------
    labels : ndarray of str

    Returns
    -------
    ndarray of str
    """
    return np.where(np.isin(labels, _NO_LABEL), "", labels)


def _label_records(path: Path, n_rows: int) -> list[list[str]]:
    kind = path.suffix.lower()
    if kind not in _LABEL_DELIMITERS:
        raise FileError(
            "file-type",
            f"{unmarked(path)} is of unknown type {kind or '(none)'!r}",
            remedy="Use csv, tsv or txt.",
            parameter="labels",
        )
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileMissingError(
            "file-missing",
            f"{unmarked(path)} {what}",
            remedy="Check the path.",
            parameter="labels",
            filename=path,
        )
    try:
        with open(path, encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, delimiter=_LABEL_DELIMITERS[kind])
            records = [record or [""] for record in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(
            "unreadable",
            f"{unmarked(path)} is not a text file in UTF-8",
            remedy="Save it as csv in UTF-8.",
            parameter="labels",
        ) from error
    if not any(record != [""] for record in records):
        raise FileError(
            "empty",
            f"{unmarked(path)} is empty",
            remedy="It needs one label per foreground row.",
            parameter="labels",
        )
    if max(len(record) for record in records) > 1:
        # beside row names an empty line is not a row; in a single column it is a row without a label
        return [record for record in records if record != [""]]
    return _without_blank_end(records, n_rows)


def _without_blank_end(records: list[list[str]], n_rows: int) -> list[list[str]]:
    """Drop empty lines at the end that are more than there are rows, with or without a heading."""
    while len(records) > n_rows + 1 and records[-1] == [""]:
        records = records[:-1]
    heading = records[0] not in records[1:]
    if len(records) == n_rows + 1 and records[-1] == [""] and not heading:
        return records[:-1]
    return records


def _compare_row_names(path: Path, names: list[str], row_names: np.ndarray | None) -> None:
    if row_names is None:
        warn(
            DelicateDataWarning(
                "names-missing",
                f"{unmarked(path)} has row names but the foreground has none, so their order could not "
                "be compared",
                parameter="labels",
            )
        )
        return
    for i, (name, other) in enumerate(zip(names, row_names, strict=True), start=1):
        if name != str(other).strip():
            raise FileError(
                "order",
                f"{unmarked(path)}: row {i} is called {unmarked(repr(name))}",
                f"{unmarked(repr(str(other)))} in the foreground",
                "Bring the labels into the order of the foreground's rows.",
                "labels",
            )


def _warn_of_heading(path: Path, labels: np.ndarray) -> None:
    """A first label that no other row has may be a heading, and then one label is missing."""
    if len(labels) > 2 and not np.isin(labels[0], labels[1:]):
        warn(
            DelicateDataWarning(
                "heading",
                f"the first label of {unmarked(path)}, {unmarked(repr(str(labels[0])))}, occurs once "
                "only",
                remedy="If it is a heading, one label is missing.",
                parameter="labels",
            )
        )
