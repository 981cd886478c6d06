"""Data in: the foreground and its backgrounds, opened and compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contrica.cli.grouping import NamedGroups, RowLabels
from contrica.cli.options import DataOptions, RowOptions
from contrica.cli.pair import Data, Pair
from contrica.cli.selection import Selection, is_selection, split_rows
from contrica.errors import (
    ContricaError,
    DataError,
    DelicateDataWarning,
    FileError,
    ParameterError,
    collected,
    unmarked,
    warn,
)
from contrica.rows import Rows, as_rows, open_dask, open_rows
from contrica.validation import check_same_features

__all__ = ["read", "read_one", "read_pair"]

# What the library advises about a column of donors.
DONOR_REMEDY = re.compile(r"take it out with `metadata=(.*)`, and pass its values as `groups`")


def read_pair(options: DataOptions, *, shared: bool = False, gaps: bool = False) -> Pair:
    """Open the foreground and every background: two files, or rows of one.

    Parameters
    ----------
    options : DataOptions
    shared : bool
        Whether the workers of a cluster read the rows.
    gaps : bool
        Whether values may be missing.

    Returns
    -------
    Pair
    """
    backgrounds = options.background or []
    if options.data is None or not backgrounds:
        raise ParameterError(
            "no-data",
            "no data were given" if options.data is None else "no background was given",
            remedy="Give DATA and --background: another file, or column=value for rows of DATA.",
            parameter="background",
        )
    try:
        return _read_pair(options, shared=shared, gaps=gaps)
    except FileError as error:
        if not gaps and error.code in ("not-numbers", "not-finite"):
            _read_pair(options, shared=shared, gaps=True)  # a wrong name is the first thing to fix
        # of a command that has the option
        error.remedy = error.remedy.replace("`missing=impute` to a fit", "`missing=impute`")
        raise


def _read_pair(options: DataOptions, *, shared: bool, gaps: bool) -> Pair:
    backgrounds = options.background or []
    groups = NamedGroups.of(options.groups, options.background_groups, len(backgrounds))
    labels = RowLabels.of("labels", options.labels)
    selecting = options.groupby is not None or options.foreground is not None
    if selecting or any(map(is_selection, backgrounds)):
        pair = _read_rows_of_one(options, groups, labels, shared=shared, gaps=gaps)
    else:
        pair = _read_files(options, groups, labels, shared=shared, gaps=gaps)
    found = [
        replace(
            data,
            groups=None if own is None else own.read(data.metadata, len(data.values)),
            labels=_labels(labels, data, is_fore=i == 0),
        )
        for i, (own, data) in enumerate(zip(groups.each, (pair.fore, *pair.backs), strict=True))
    ]
    return replace(pair, fore=found[0], backs=found[1:])


def _labels(labels: RowLabels | None, data: Data, *, is_fore: bool) -> np.ndarray | None:
    """Labels of the rows; a file has those of the foreground only."""
    if labels is None or (labels.file is not None and not is_fore):
        return None
    names = None if data.row_names is None else np.asarray(data.row_names)
    return labels.read(data.metadata, len(data.values), names)


# --- rows of one file ---


def read_one(
    path: str, options: RowOptions, more: Sequence[str] = (), *, gaps: bool = False
) -> tuple[Data, list[str]]:
    """Open a file with everything in it: columns of text are metadata, and said to be.

    Parameters
    ----------
    path : str
    options : RowOptions
    more : sequence of str
        Columns that are no variables, beside those of --drop.
    gaps : bool
        Whether values may be missing.

    Returns
    -------
    data : Data
    notes : list of str
    """
    named = list(dict.fromkeys([*options.dropped, *more]))
    data = read(
        path,
        options.table_key,
        options.header,
        metadata=named,
        all_metadata=True,
        mask_var=options.mask_var,
        gaps=gaps,
    )
    others = [name for name in data.metadata if name not in named]
    notes = []
    if others and not path.rstrip("/").endswith((".h5ad", ".zarr")):  # obs is metadata anyway
        notes.append(f"columns of text, taken as metadata: {', '.join(others)}")
    if data.row_names is None:
        data = replace(data, row_names=_distinct(data.metadata))
    return data, notes


def _distinct(metadata: dict[str, np.ndarray]) -> np.ndarray | None:
    """The first column that has another text in every row, and so names them."""
    for cells in metadata.values():
        if np.unique(cells).size == cells.size and "" not in cells:
            return cells
    return None


def _read_rows_of_one(
    options: DataOptions,
    groups: NamedGroups,
    labels: RowLabels | None,
    *,
    shared: bool,
    gaps: bool,
) -> Pair:
    path, backgrounds = str(options.data), options.background or []
    _check_one_file(options, groups, shared)
    by = options.groupby
    fore = None
    if options.foreground is not None:
        fore = Selection.of("foreground", options.foreground, by)
    backs = [Selection.of("background", text, by) for text in backgrounds]
    chosen = [*([] if fore is None else [fore]), *backs]
    asked = {
        "groupby": [] if by is None else [by],
        **{each.option: each.columns for each in chosen if by is None},
        "groups": groups.columns(0),
        "labels": [] if labels is None or labels.column is None else [labels.column],
    }
    with _blamed(asked):
        names = [name for columns in asked.values() for name in columns]
        data, notes = read_one(path, options, names, gaps=gaps)
    rows = split_rows(fore, backs, data.metadata)
    words = "rows, all others" if fore is None else f"rows with {fore.words}"
    notes.append(
        f"foreground: {int(rows[0].sum())} {words}; background: "
        + " and ".join(
            f"{int(own.sum())} rows with {each.words}"
            for own, each in zip(rows[1:], backs, strict=True)
        )
        + _left(len(rows[0]) - int(np.sum(rows)))
    )
    first, *others = (data.at(own) for own in rows)
    columns = tuple(name for each in chosen for name in each.columns)
    return Pair(first, others, [path] * len(rows), notes, columns)


def _left(count: int) -> str:
    return f"; {count} rows in neither" if count else ""


def _check_one_file(options: DataOptions, groups: NamedGroups, shared: bool) -> None:
    """Refuse what only goes with files of their own."""
    files = [text for text in options.background or () if Path(text).exists()]
    if files and options.groupby is None:
        raise ParameterError(
            "not-together",
            f"{unmarked(files[0])} is a file",
            "--foreground and other backgrounds choose rows of one file",
            "Give two files, or rows of one.",
            "background",
        )
    wrong = None
    if shared:
        wrong = "--scheduler reads whole files"
    elif options.background_key:
        wrong = "--background-key is of a second file"
    elif options.background_groups or any(
        each is not None and each.file is not None for each in groups.each
    ):
        wrong = "--groups names a column where rows of one file are chosen"
    if wrong is not None:
        raise ParameterError("not-together", wrong, remedy="Give two files, or leave it out.")


# --- files of their own ---


def read(
    path: str,
    key: str | None,
    header: bool | None = None,
    *,
    shared: bool = False,
    **more: Any,
) -> Data:
    """Open one dataset.

    Parameters
    ----------
    path : str
    key : str or None
        Which array of a file with several.
    header : bool or None
        Whether a text file names its columns; ``None`` looks.
    shared : bool
        Whether the workers of a cluster read the rows.
    **more : dict
        As of `open_rows`.

    Returns
    -------
    Data
    """
    if not shared:
        with collected(DelicateDataWarning) as said:
            opened = open_rows(path, key, header=header, **more)
        for each in said:
            if each.code == "donor-column":  # of the shell --groups takes a column out by itself
                each.remedy = DONOR_REMEDY.sub(
                    r"pass `groups=\1`, which takes it out of the variables too; otherwise "
                    r"`metadata=\1` does",
                    each.remedy,
                )
            warn(each)
        array, values = None, as_rows(opened.rows, path)
    else:
        if more.get("metadata") or more.get("mask_var"):
            raise ParameterError(
                "column-on-cluster",
                f"a column was named: {unmarked(', '.join(more['metadata']) or more['mask_var'])}",
                "the workers of a cluster read variables only",
                "Give groups by a text file with the group of each row.",
                "groups",
            )
        opened = open_dask(path, key)
        array = opened.rows
        if hasattr(array, "to_dask_array"):
            array = array.to_dask_array(lengths=True)
        array = array.rechunk({1: -1})  # whole rows
        values = as_rows(array, path)
    if isinstance(values, Rows):
        values.columns = opened.columns  # type: ignore[attr-defined]
    return Data(values, opened.columns, opened.row_names, array, opened.metadata)


def _read_files(
    options: DataOptions,
    groups: NamedGroups,
    labels: RowLabels | None,
    *,
    shared: bool,
    gaps: bool,
) -> Pair:
    """Open the foreground and every background, and compare each with it."""
    files = [str(options.data), *(options.background or ())]
    own = [] if labels is None or labels.column is None else [labels.column]
    parts: list[Data] = []
    for i, (path, key) in enumerate(zip(files, _keys(options), strict=True)):
        more: dict[str, Any] = {"mask_var": options.mask_var, "gaps": gaps, "shared": shared}
        asked = {"groups": groups.columns(i), "metadata": options.dropped, "labels": own}
        names = [name for columns in asked.values() for name in columns]
        with _other_words("`key", "`background_key" if i else "`key"), _blamed(asked):
            try:
                part = read(path, key, options.header, metadata=names, **more)
            except FileError as error:
                if not (i and own and error.code == "unknown-column" and repr(own[0]) in error.got):
                    raise
                rest = [name for name in names if name not in own]  # labels of the foreground only
                part = read(path, key, options.header, metadata=rest, **more)
        if parts:
            _compare(files[0], parts[0], path, part, options.header)
        parts.append(part)
    return Pair(parts[0], parts[1:], files, [])


def _keys(options: DataOptions) -> list[str | None]:
    """Keys of the foreground and of every background."""
    count = len(options.background or ())
    keys: list[str | None] = list(options.background_key or ())
    if not keys and options.layer is not None:
        keys = [options.table_key]
    if len(keys) < 2:
        keys = (keys or [None]) * count
    if len(keys) != count:
        raise ParameterError(
            "number-of-keys",
            f"got {len(keys)} keys for {count} backgrounds",
            remedy="Give --background-key once, or once for each.",
            parameter="background_key",
        )
    return [options.table_key, *keys]


def _compare(foreground: str, fore: Data, path: str, back: Data, header: bool | None) -> None:
    if header is None and foreground != path:
        _check_first_lines(foreground, fore, path, back)
    check_same_features(
        *(fore.columns, back.columns, fore.n_features, back.n_features),
        name=foreground,
        other=path,
    )


@contextmanager
def _blamed(asked: dict[str, list[str]]) -> Iterator[None]:
    """Let an error about an unknown column say which option named it."""
    try:
        yield
    except FileError as error:
        if error.code == "unknown-column" and error.parameter == "metadata":
            for option, names in asked.items():
                if any(f"{unmarked(repr(name))}" in error.got for name in names):
                    error.parameter = option
            if error.parameter in ("groups", "labels"):
                error.remedy += " A text file with a line for each row is given by its path."
        raise


@contextmanager
def _other_words(old: str, new: str) -> Iterator[None]:
    """Let errors of ours say something in other words."""
    try:
        yield
    except ContricaError as error:
        error.got, error.needed, error.remedy = (
            text.replace(old, new) for text in (error.got, error.needed, error.remedy)
        )
        raise


def _check_first_lines(foreground: str, fore: Data, background: str, back: Data) -> None:
    """Refuse tables without names whose first lines are the same: they look like a header."""
    bare = fore.columns is None and back.columns is None
    tables = isinstance(fore.values, np.ndarray) and isinstance(back.values, np.ndarray)
    if bare and tables and np.array_equal(fore.values[0], back.values[0]):
        raise DataError(
            "same-first-lines",
            f"the first lines of {foreground} and {background} are the same numbers",
            remedy="Pass --header if they name the columns, or --no-header if they are samples.",
            parameter="header",
        )
