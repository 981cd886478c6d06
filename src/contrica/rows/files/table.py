"""`read_table`: a table of numbers in a text or numpy file, read whole, with the names it carries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contrica.errors import DelicateDataWarning, FileError, unmarked, warn
from contrica.rows.files.npy import read_numpy
from contrica.rows.files.shared import (
    Table,
    check_is_what_it_says,
    check_not_empty,
    kind_of,
    missing_file,
    names_in,
    unknown_column,
    unknown_type,
    unused_key,
)
from contrica.rows.files.text import DELIMITERS, read_text

__all__ = ["ID", "read_table"]

# What headings over numbers of samples end in.
ID = re.compile(
    r"(^|[\W_])(id|ids|nr|no|number|index|batch|donor|subject|patient|animal|mouse|plate|well)$",
    re.I,
)
# Those of donors, of whom each may have several rows.
DONOR = re.compile(
    r"(^|[\W_])(donor|subject|patient|animal|mouse)([\W_]*(ids?|nr|no|number))?$", re.I
)


def read_table(
    path: str | Path,
    key: str | None = None,
    *,
    header: bool | None = None,
    metadata: str | Sequence[str] = (),
    all_metadata: bool = False,
    gaps: bool = False,
) -> Table:
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
    metadata : str or sequence of str
        Headings of columns that are no variables, such as a donor; as one text with commas between.
    all_metadata : bool
        Whether other columns of text are no variables either; otherwise they are an error.
    gaps : bool
        Whether values may be missing: NaN, and in text files empty cells and NA.

    Returns
    -------
    Table

    Raises
    ------
    FileError
        Naming the row and column of a cell that cannot be read.
    ParameterError
        If a key is given for a file without keys.
    FileMissingError
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise missing_file(path, what)
    check_not_empty(path)
    kind, names = kind_of(path), names_in(metadata)
    check_is_what_it_says(path, kind)
    if key is not None and kind != ".npz":
        raise unused_key(path, key, "only npz files have keys")
    if kind in DELIMITERS:
        table = read_text(
            path, DELIMITERS[kind], header, names, all_metadata=all_metadata, gaps=gaps
        )
    elif kind in (".npy", ".npz"):
        if names:
            raise unknown_column(path, names[0], ())
        table = Table(read_numpy(path, key), None, None)
    else:
        raise unknown_type(path, kind, "csv, tsv (also .gz), npy or npz")
    if not gaps:
        _check_complete(path, table)
    _warn_of_numbering(path, table)
    return table


def _check_complete(path: Path, table: Table) -> None:
    if table.values.dtype.kind != "f":
        return
    bad = np.argwhere(~np.isfinite(table.values))
    if bad.size:
        row, column = bad[0]
        name = f" ({str(table.columns[column])!r})" if table.columns is not None else ""
        raise FileError(
            "not-finite",
            f"{unmarked(path)}: sample {row + 1}, variable {column + 1}{unmarked(name)} is "
            f"{table.values[row, column]}, one of {len(bad)} cell(s) without a finite number",
            remedy="Add `missing=impute` to a fit, or fill or drop missing values first.",
        )


def _warn_of_numbering(path: Path, table: Table) -> None:
    """A first column that counts the rows, and whole numbers under such headings, are likely names."""
    first = table.values[:, 0]
    if (
        len(first) > 2
        and first[0] in (0, 1)
        and np.array_equal(first, first[0] + np.arange(len(first)))
    ):
        name = "" if table.columns is None else f" ({str(table.columns[0])!r})"
        warn(
            DelicateDataWarning(
                "counting-column",
                f"the first column{unmarked(name)} of {unmarked(path)} counts the rows and is taken "
                "for a variable",
                remedy="If it is an index, drop it or leave its heading empty.",
            )
        )
        return
    names = [] if table.columns is None else [str(name) for name in table.columns]
    values_of = {name: table.values[:, i] for i, name in enumerate(names) if ID.search(name)}
    ids = [name for name, values in values_of.items() if _is_whole(values)]
    donors = [name for name in ids if DONOR.search(name) and _repeats(values_of[name])]
    others = [name for name in ids if name not in donors]
    for name in map(unmarked, donors):
        remedy = f"take it out with `metadata={name}`, and pass its values as `groups`."
        warn(_taken_for_numbers("donor-column", name, path, f"If it names donors, {remedy}"))
    if others:
        listed = unmarked(",".join(others))
        remedy = f"If they number or name samples, take them out, with `metadata={listed}`."
        warn(_taken_for_numbers("id-column", listed, path, remedy))


def _taken_for_numbers(code: str, listed: str, path: Path, remedy: str) -> DelicateDataWarning:
    return DelicateDataWarning(
        code,
        f"{listed} of {unmarked(path)}: whole numbers under such a heading are taken for measurements",
        remedy=remedy,
    )


def _repeats(values: np.ndarray) -> bool:
    """Whether there are several numbers, of which each is that of several rows, in the mean."""
    known = values[np.isfinite(values)]
    count = np.unique(known).size
    return 1 < count <= known.size / 2


def _is_whole(values: np.ndarray) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and (known == np.round(known)).all())
