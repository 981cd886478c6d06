"""What the readers of all kinds of files share: what they return, and what they say of a bad file."""

from __future__ import annotations

import glob
import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import (
    FileError,
    FileMissingError,
    PackageMissingError,
    ParameterError,
    unmarked,
)

__all__ = [
    "Names",
    "Opened",
    "Table",
    "as_text",
    "bad_file",
    "changed",
    "check_is_what_it_says",
    "check_no_key",
    "check_not_empty",
    "check_promise",
    "check_table",
    "is_pattern",
    "is_remote",
    "kind_of",
    "kind_of_store",
    "matrix_of",
    "missing_file",
    "names_in",
    "optional_module",
    "reading",
    "same_name",
    "unknown_column",
    "unknown_type",
    "unused_key",
]

# The ends of names by which files are told apart
HDF5, PARQUET = (".h5", ".hdf5", ".h5ad"), (".parquet", ".parq", ".pq")
TEXT = (".csv", ".tsv")
# An array of more bytes than this must have a thousandth of them stored.
LARGE_BYTES, MAX_RATIO = 2**30, 1000
KNOWN = "csv, tsv (also .gz), npy, npz, h5, h5ad, zarr, parquet or a 10x folder"
# What files of other kinds begin with.
MAGIC = {
    b"\x89HDF": ("an HDF5 file", HDF5),
    b"PAR1": ("a parquet file", (".parquet",)),
    b"\x93NUMPY": ("a numpy array", (".npy",)),
    b"PK\x03\x04": ("a zip archive, such as npz or a spreadsheet (xlsx)", (".npz",)),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet (xls)", ()),
    b"%PDF": ("a PDF", ()),
}


class Opened(NamedTuple):
    """Rows that were opened, with the names that they have.

    Attributes
    ----------
    rows : ndarray, Rows, dask array or dask frame
        What `fit` and `transform` take.
    columns : ndarray of str or None
        Names of the variables.
    row_names : ndarray of str, Names or None
        Names of the rows; numpy makes an array of either.
    metadata : dict of str to ndarray of str
        Columns that are no variables, such as a donor, by their names.
    """

    rows: Any
    columns: np.ndarray | None
    row_names: Any
    metadata: dict[str, np.ndarray] = {}  # noqa: RUF012 - never written to


class Names:
    """Names of rows that are read when they are iterated over, some at a time.

    Parameters
    ----------
    blocks : callable
        Returns an iterable of sequences of names; called for each pass.

    Examples
    --------
    >>> list(Names(lambda: [["a", "b"], ["c"]]))
    ['a', 'b', 'c']
    """

    def __init__(self, blocks: Callable[[], Iterable[Iterable[Any]]]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks():
            yield from (as_text(name) for name in block)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(list(self), dtype=dtype)


class Table(NamedTuple):
    """A matrix with what names its file gave it.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
    columns, rows : ndarray of str or None
        Column and row names.
    metadata : dict of str to ndarray of str
        Columns that are no variables, such as a donor, by their names.
    """

    values: np.ndarray
    columns: np.ndarray | None
    rows: np.ndarray | None
    metadata: dict[str, np.ndarray] = {}  # noqa: RUF012 - never written to


def as_text(value: Any) -> str:
    """A stored name as text."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(value)


def is_remote(where: str) -> bool:
    """Whether it is a URL."""
    return "://" in where


def is_pattern(where: str) -> bool:
    """Whether it stands for all files that match it."""
    return glob.has_magic(where) and not Path(where).exists()


def kind_of(path: str | Path) -> str:
    """The ending of a file's name in small letters, with its dot; that before a last ``.gz``."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"] and len(suffixes) > 1:
        return suffixes[-2]
    return "".join(suffixes[-1:])


def kind_of_store(where: str) -> str:
    """The ending that tells the kind; of a folder by what is in it."""
    path = Path(where.rstrip("/"))
    suffix = path.suffix.lower()
    if is_remote(where):
        return ".zarr" if suffix == ".zarr" else ".parquet" if suffix in ("", *PARQUET) else suffix
    if is_pattern(where):
        return ".parquet"
    if not path.exists():
        raise missing_file(where, "does not exist")
    if matrix_of(path) is not None:
        return ".mtx"
    if path.is_dir():
        marks = ("zarr.json", ".zgroup", ".zarray")
        if suffix == ".zarr" or any((path / mark).exists() for mark in marks):
            return ".zarr"
        return ".parquet"
    if suffix in PARQUET:
        return ".parquet"
    kind = kind_of(path)
    if kind not in (*HDF5, *TEXT, ".npy", ".npz"):
        raise unknown_type(where, kind, KNOWN)
    return kind


def matrix_of(path: Path) -> Path | None:
    """The matrix of a 10x folder; also where that itself is named."""
    names = ("matrix.mtx", "matrix.mtx.gz")
    found = [path / name for name in names] if path.is_dir() else [path]
    return next((each for each in found if each.is_file() and kind_of(each) == ".mtx"), None)


def check_is_what_it_says(path: Path, kind: str) -> None:
    """Raise where a file begins like one of another kind than the ending of its name says."""
    with open(path, "rb") as file:
        start = file.read(8)
    for magic, (what, kinds) in MAGIC.items():
        if start.startswith(magic) and kind not in kinds:
            raise bad_file(
                "not-what-it-says",
                path,
                f"is {what}, whatever its name says",
                remedy=f"Rename it to {path.stem}{kinds[0]}." if kinds else "Save it as csv.",
            )
    if start.startswith(b"\x1f\x8b") and path.suffix.lower() != ".gz":
        raise bad_file(
            "not-what-it-says", path, "is gzipped", remedy=f"Rename it to {path.name}.gz."
        )


def names_in(metadata: str | Sequence[str]) -> list[str]:
    """Names of columns, each once; as one text with commas between them."""
    parts = metadata.split(",") if isinstance(metadata, str) else metadata
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def check_no_key(where: str, key: str | None) -> None:
    """Raise where a key is given for a file that has none."""
    if key is not None:
        raise unused_key(where, key, "only npz, h5, h5ad and zarr files have keys")


def check_not_empty(path: Path) -> None:
    """Raise where a file has no bytes."""
    if path.stat().st_size == 0:
        raise bad_file(
            "empty",
            path,
            "is empty",
            remedy="It needs one row per sample, one column per variable.",
        )


def check_table(where: str, shape: Sequence[int] | None, dtype: np.dtype) -> None:
    """Raise where an array is not a table of numbers with some rows and columns."""
    if shape is None or len(shape) != 2 or dtype.kind not in "fiub":
        raise bad_file(
            "not-a-table",
            where,
            f"holds an array of shape {None if shape is None else tuple(shape)} and type {dtype}",
            "a two-dimensional array of real numbers is needed, one row per sample",
            "Convert it, or name another by its `key`.",
        )
    if min(shape) <= 0:
        raise bad_file(
            "no-rows",
            where,
            f"holds {shape[0]} rows of {shape[1]} variables",
            remedy="It needs some of both: was it written to its end?",
        )


def check_promise(
    where: str, shape: Sequence[int], dtype: np.dtype, n_stored: Callable[[], int]
) -> None:
    """Raise where an array says that it is far larger than the bytes that are stored of it.

    Chunks that were never written are read as zeros, so a few bytes of description can promise any
    number of rows. Numbers that were measured do not shrink like that.
    """
    promised = math.prod(int(size) for size in shape) * dtype.itemsize
    if promised <= LARGE_BYTES:
        return
    stored = n_stored()
    if promised > MAX_RATIO * max(stored, 1):
        raise bad_file(
            "damaged",
            where,
            f"says that it holds an array of shape {tuple(shape)}, {promised:.2g} bytes",
            f"only {stored} bytes of it are there",
            "Make or copy it anew.",
        )


def optional_module(module: str, what: str, extra: str = "disk") -> Any:
    """A module of a package that may not be installed, or how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise PackageMissingError(
            "package-missing",
            f"{what} need {name}",
            remedy=f"Install it: pip install 'contrica[{extra}]'.",
        ) from error


@contextmanager
def reading(where: str, what: str) -> Iterator[None]:
    """Whatever a reader of a format makes of a damaged file becomes one sentence."""
    try:
        yield
    except (ImportError, MemoryError, PermissionError, FileError, ParameterError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise bad_file(
            "damaged",
            where,
            f"could not be read as {what}: it is damaged, or something else ({unmarked(reason[:200])})",
            remedy="Make or copy it anew.",
        ) from error


def changed(where: str, got: Any, before: Any) -> FileError:
    """The error for a file that has changed since it was opened."""
    return bad_file(
        "changed",
        where,
        f"holds {got} this time",
        f"had {before} when it was opened",
        "Let nothing write to it while it is read.",
    )


def bad_file(
    code: str,
    where: str | Path,
    got: str,
    needed: str = "",
    remedy: str = "",
    parameter: str | None = None,
) -> FileError:
    """The error for what a file holds: its path, and then ``got`` as of any other error."""
    return FileError(code, f"{unmarked(where)} {got}", needed, remedy, parameter)


def missing_file(where: str | Path, got: str) -> FileMissingError:
    """The error for a path at which there is no file."""
    return FileMissingError(
        "file-missing", f"{unmarked(where)} {got}", remedy="Check the path.", filename=where
    )


def unknown_type(where: str | Path, kind: str, known: str) -> FileError:
    """The error for a file whose ending says nothing."""
    return bad_file(
        "unknown-type", where, f"is of unknown type {kind or '(none)'!r}", remedy=f"Use {known}."
    )


def same_name(where: str | Path, name: str) -> FileError:
    """The error for two columns of one name."""
    return bad_file(
        "same-names",
        where,
        f"has more than one column called {unmarked(repr(name))}",
        remedy="Rename them.",
    )


def unknown_column(where: str | Path, column: str, known: Iterable[str]) -> FileError:
    """The error for a column that a file does not have, with names that are near."""
    names = [str(name) for name in known]
    near = get_close_matches(column, names, 3, 0.5)
    more = ", …" if len(names) > 5 else ""
    told = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(names[:5])}{more}."
    return bad_file(
        "unknown-column",
        where,
        f"has no column called {unmarked(repr(column))}",
        remedy=unmarked(told) if names else "Its columns have no names.",
        parameter="metadata",
    )


def unused_key(where: str | Path, key: str, why: str) -> ParameterError:
    """The error for a key that was given for a file without keys."""
    return ParameterError(
        "unused-key",
        f"`key={unmarked(key)}` was given for {unmarked(where)}",
        why,
        "Leave `key` out.",
        "key",
    )
