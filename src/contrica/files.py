"""Read matrices, save and load fitted models, write folders that are never half-written."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

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
from contrica.selection import RankChoice
from contrica.validation import DelicateDataWarning, warn_user

__all__ = ["Table", "load", "output_file", "output_folder", "read_table", "save", "write_table"]

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


# --- reading ---


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
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
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


# --- writing ---


def write_table(
    path: str | Path,
    values: np.ndarray,
    columns: Sequence[str],
    index: Iterable[Any],
    index_name: str = "",
) -> None:
    """Write a csv file with a header and a row index; floats as short as they read back."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([index_name, *columns])
        for name, row in zip(index, values.tolist(), strict=True):
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
        whole[name] = RankChoice(*(fields[f"{name}.{field}"] for field in RankChoice._fields))
    return whole


def _older(name: str, parameters: dict[str, Any], learnt: dict[str, Any]) -> dict[str, Any]:
    """What a file lacks that was written before there was a choice of solvers."""
    if name != ContrastiveICA.__name__ or "solver_" in learnt:
        return {}
    ratio = learnt["contrast_ratio_"]
    return {
        "solver_": "plain" if np.isnan(ratio).all() else parameters["solver"],
        "reason_": "saved by an earlier version, which did not choose",
        "rank_choice_": None,
        "pattern_scores_": np.full(ratio.shape, np.nan),
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
        learnt = _gathered({**header["learnt"], **arrays})
        learnt |= _older(name, parameters, learnt)
    except _NO_MODEL as error:
        raise ValueError(
            f"{path} is not a model saved by contrica {__version__} or an earlier version."
        ) from error
    for key, value in learnt.items():
        setattr(model, key, value.astype(object) if key == "feature_names_in_" else value)
    return model
