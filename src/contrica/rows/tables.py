"""Tables of numbers in text and numpy files, read whole, with the names they carry."""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from contrica.validation import DelicateDataWarning, warn_user

__all__ = ["Table", "kind_of", "read_table"]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class Table(NamedTuple):
    """A matrix with what names its file gave it.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
    columns, rows : ndarray of str or None
        Column and row names.
    """

    values: np.ndarray
    columns: np.ndarray | None
    rows: np.ndarray | None


def read_table(path: str | Path, key: str | None = None, *, header: bool | None = None) -> Table:
    """Read a matrix from a csv, tsv, npy or npz file; csv and tsv also gzipped.

    Parameters
    ----------
    path : path
        In text files a first line with text is the header, and a first column with text, or
        without a heading, is the row index.
    key : str, optional
        Which array of an npz file; needed if it holds several.
    header : bool, optional
        Whether the first line of a text file names the columns; by default it does if it holds
        text, or counts 0, 1, 2, … as pandas does.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        Naming the row and column of a cell that cannot be read.
    FileNotFoundError
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what}. Check the path.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty. It needs one row per sample, one column per variable.")
    kind = kind_of(path)
    if key is not None and kind != ".npz":
        raise ValueError(f"a key ({key!r}) was given for {path}, but only npz files have keys.")
    if kind in _DELIMITERS:
        table = _read_text(path, _DELIMITERS[kind], header)
    elif kind in (".npy", ".npz"):
        table = Table(_read_numpy(path, key), None, None)
    else:
        raise ValueError(
            f"{path} is of unknown type {kind or '(none)'!r}. Use csv, tsv (also .gz), npy or npz."
        )
    _refuse_missing(path, table)
    _warn_of_numbering(path, table)
    return table


def kind_of(path: str | Path) -> str:
    """The ending of a file's name in small letters, with its dot; that before a last ``.gz``."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"] and len(suffixes) > 1:
        return suffixes[-2]
    return "".join(suffixes[-1:])


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, numpy and people do not


def _looks_like_header(first: list[str]) -> bool:
    """Whether a first line names columns: by text, or by the running numbers that pandas writes."""
    rest = first[1:] if len(first) > 1 else first
    if first[0].strip() == "" or not all(_is_number(cell) for cell in rest):
        return True
    # 0,1,2,… over all columns, or running numbers behind a heading of the row names
    if _is_number(first[0]):
        return len(first) > 2 and [cell.strip() for cell in first] == _counted(0, len(first))
    counted = (_counted(0, len(rest)), _counted(1, len(rest)))
    return len(rest) > 2 and [cell.strip() for cell in rest] in counted


def _counted(start: int, count: int) -> list[str]:
    return [str(i) for i in range(start, start + count)]


def _records(lines: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Non-empty records with the number of their line."""
    reader = csv.reader(lines, delimiter=delimiter)
    for record in reader:
        if record:
            yield reader.line_num, record


def _read_text(path: Path, delimiter: str, header: bool | None) -> Table:
    try:
        with _open_text(path) as lines:
            rows = [row for (_, row), _ in zip(_records(lines, delimiter), range(2), strict=False)]
        if not rows:
            raise ValueError(f"{path} is empty. It needs one row per sample.")
        first = rows[0]
        has_header = _looks_like_header(first) if header is None else header
        if has_header and len(rows) == 1:
            raise ValueError(f"{path} has a header but no rows. It needs one row per sample.")
        body = rows[1] if has_header else first
        has_index = not _is_number(body[0]) and body[0].strip() != "" and len(body) > 1
        if has_header:
            # R leaves the heading of the index out; pandas leaves it empty.
            has_index |= first[0].strip() == "" or len(body) == len(first) + 1
        start = int(has_index)
        values, index = _parse_body(path, delimiter, has_header, start, first, len(body))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8. Save it as csv in UTF-8.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path} is a damaged gzip file ({error}). Make or copy it anew."
        ) from error
    except csv.Error as error:
        raise ValueError(
            f"{path} is no table of numbers ({error}). Check its delimiter."
        ) from error
    columns = None
    if has_header:
        columns = np.array([cell.strip() for cell in first[len(first) - (len(body) - start) :]])
        names, counts = np.unique(columns, return_counts=True)
        if counts.max() > 1:
            twice = str(names[counts.argmax()])
            raise ValueError(f"{path} has more than one column called {twice!r}. Rename them.")
    return Table(values, columns, index)


def _parse_body(
    path: Path, delimiter: str, has_header: bool, start: int, first: list[str], width: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Values and row names, the records checked for width on the way."""
    names: list[str] = []

    def body(lines: TextIO) -> Iterator[str]:
        for count, (number, record) in enumerate(_records(lines, delimiter)):
            if count == 0 and has_header:
                continue
            if len(record) != width:
                raise ValueError(_uneven(path, number, record, width))
            if start:
                names.append(record[0])
            yield delimiter.join(record[start:])

    try:
        with _open_text(path) as lines:
            values = np.loadtxt(body(lines), delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        if str(path) in str(error):  # our own words
            raise
        raise ValueError(_bad_cell(path, delimiter, has_header, start, first, width)) from error
    return values, np.array(names) if start else None


def _uneven(path: Path, number: int, row: list[str], width: int) -> str:
    return f"{path}: row {number} has {len(row)} cells where {width} are expected. Mend the row."


def _bad_cell(
    path: Path, delimiter: str, has_header: bool, start: int, first: list[str], width: int
) -> str:
    """Say where the file stops being a matrix of numbers."""
    with _open_text(path) as lines:
        for count, (number, row) in enumerate(_records(lines, delimiter)):
            if count == 0 and has_header:
                continue
            for column, cell in enumerate(row[start:], start=start):
                if not _is_number(cell):
                    heading = first[column - (width - len(first))] if has_header else ""
                    name = f" ({heading!r})" if heading else ""
                    held = repr(_shortened(cell)) if cell.strip() else "an empty cell"
                    advice = "Mend it, or fill or drop missing values first."
                    if width == 1 or ";" in cell:
                        advice = "Is it the delimiter? csv files need commas, tsv files tabs."
                    return (
                        f"{path}: row {number}, column {column + 1}{_shortened(name)} holds {held}, "
                        f"not a number. {advice}"
                    )
    return f"{path} could not be read as a matrix of numbers. Check its delimiter and its cells."


def _shortened(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _read_numpy(path: Path, key: str | None) -> np.ndarray:
    try:
        with open(path, "rb") as file:
            stored = np.load(file, allow_pickle=False)
            single = isinstance(stored, np.ndarray)
            values = stored if single else stored[_pick(path, stored.files, key)]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if str(path) in str(error):  # our own words
            raise
        raise ValueError(
            f"{path} could not be read as a numpy file of numbers: it is damaged, or holds objects. "
            "Save it with numpy.save or numpy.savez."
        ) from error
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds an array of shape {values.shape} and type {values.dtype}, but a "
            "two-dimensional array of real numbers is needed, one row per sample."
        )
    return values


def _pick(path: Path, names: list[str], key: str | None) -> str:
    if key is None:
        if len(names) != 1:
            raise ValueError(
                f"{path} holds {len(names)} arrays ({', '.join(names)}). Say which one by its key."
            )
        return names[0]
    if key not in names:
        raise ValueError(f"{path} has no array {key!r}. It holds {', '.join(names)}.")
    return key


def _refuse_missing(path: Path, table: Table) -> None:
    if table.values.dtype.kind != "f":
        return
    bad = np.argwhere(~np.isfinite(table.values))
    if bad.size:
        row, column = bad[0]
        name = f" ({str(table.columns[column])!r})" if table.columns is not None else ""
        raise ValueError(
            f"{path}: sample {row + 1}, variable {column + 1}{name} is {table.values[row, column]}, "
            f"one of {len(bad)} cell(s) without a finite number. Fill or drop missing values first."
        )


def _warn_of_numbering(path: Path, table: Table) -> None:
    """A first column that counts the rows is likely an index that was taken for a variable."""
    first = table.values[:, 0]
    if (
        len(first) > 2
        and first[0] in (0, 1)
        and np.array_equal(first, first[0] + np.arange(len(first)))
    ):
        name = "" if table.columns is None else f" ({str(table.columns[0])!r})"
        warn_user(
            f"the first column{name} of {path} counts the rows and is taken for a variable. If it is "
            "an index, drop it or leave its heading empty.",
            DelicateDataWarning,
        )
