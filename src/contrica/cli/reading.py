"""Data in: the foreground and its backgrounds, opened, compared, and passed on with their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from contrica.cli.grouping import NamedGroups, RowLabels
from contrica.cli.options import DataOptions, RowOptions
from contrica.cli.selection import Selection, is_selection, split_rows
from contrica.errors import ContricaError, DataError, FileError, ParameterError, unmarked
from contrica.rows import Rows, as_rows, open_dask, open_rows
from contrica.rows.selected import selected
from contrica.validation import check_same_features

__all__ = ["Data", "Pair", "called_by_file", "counts", "read_one", "read_pair", "several"]


@dataclass(frozen=True)
class Data:
    """A dataset of the command line.

    Attributes
    ----------
    values : ndarray or Rows
        An array where the file was a table that was read whole.
    columns : ndarray of str or None
        Names of the variables.
    row_names : iterable of str or None
        Names of the rows.
    shared : dask array or None
        The rows again, where the workers of a cluster read them.
    metadata : dict of str to ndarray of str
        Columns that are no variables.
    numbers : ndarray of int or None
        Which rows of the file they are, where not all.
    groups, labels : ndarray of str or None
        Of the rows, where they were asked for.
    """

    values: Any
    columns: np.ndarray | None
    row_names: Any
    shared: Any = None
    metadata: dict[str, np.ndarray] = field(default_factory=dict)
    numbers: np.ndarray | None = None
    groups: np.ndarray | None = None
    labels: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return int(self.values.shape[1])

    @property
    def names(self) -> list[str]:
        """Names of the variables: x0, x1 and so on where the file has none."""
        if self.columns is None:
            return [f"x{i}" for i in range(self.n_features)]
        return [str(name) for name in self.columns]

    @property
    def index(self) -> tuple[Iterable[Any], str]:
        """Names of the rows and their heading; running numbers have none, and are read as an index."""
        if self.row_names is None:
            return range(len(self.values)) if self.numbers is None else self.numbers.tolist(), ""
        return self.row_names, "sample"

    @property
    def named(self) -> Any:
        """The values, with ``columns`` and ``row_names``, so that warnings can name both."""
        if isinstance(self.values, Rows):
            return self.values
        array = self.values.view(_NamedArray)
        array.columns, array.row_names = self.columns, self.row_names
        return array

    def at(self, rows: np.ndarray) -> Data:
        """Some of the rows."""
        names = None if self.row_names is None else np.asarray(self.row_names)[rows]
        values = as_rows(selected(self.values, rows))
        if isinstance(values, Rows):
            values.columns = self.columns  # type: ignore[attr-defined]
        return replace(
            self,
            values=values,
            row_names=names,
            metadata={name: cells[rows] for name, cells in self.metadata.items()},
            numbers=np.flatnonzero(rows),
        )


class _NamedArray(np.ndarray):
    """An array that knows its columns and the names of its rows."""

    columns: np.ndarray | None = None
    row_names: np.ndarray | None = None


@dataclass(frozen=True)
class Pair:
    """A foreground and its backgrounds.

    Attributes
    ----------
    fore : Data
    backs : list of Data
    files : list of str
        What errors call them.
    notes : list of str
        What the user should know of how they were read.
    """

    fore: Data
    backs: list[Data]
    files: list[str]
    notes: list[str]

    @property
    def groups(self) -> dict[str, Any]:
        """Groups as ``fit`` takes them; of several backgrounds a list."""
        given = [back.groups for back in self.backs if back.groups is not None]
        one = len(self.backs) == len(given) == 1
        return {
            "groups": self.fore.groups,
            "background_groups": given[0] if one else (given or None),
        }


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
    return Pair(first, others, [path] * len(rows), notes)


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
        opened = open_rows(path, key, header=header, **more)
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
def called_by_file(pair: Pair) -> Iterator[None]:
    """Let errors about the numbers in a dataset say which file they are in.

    Parameters
    ----------
    pair : Pair
    """
    names = ["background"]
    if len(pair.backs) > 1:
        names = [f"background[{i}]" for i in range(len(pair.backs))]
    files = dict(zip(["X", *names], pair.files, strict=True))
    try:
        yield
    except DataError as error:
        if error.code == "not-finite" and error.parameter in files:
            file = files[error.parameter].replace("`", "'")
            error.got = re.sub(
                rf"^`?{re.escape(error.parameter)}`?(?= )", lambda _: file, error.got
            )
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


def several(backgrounds: Sequence[Data]) -> Any:
    """What `fit` takes: one background as it is, several as a list.

    Parameters
    ----------
    backgrounds : sequence of Data

    Returns
    -------
    ndarray, Rows or list of them
    """
    arrays = [data.named for data in backgrounds]
    return arrays[0] if len(arrays) == 1 else arrays


def counts(pair: Pair) -> str:
    """How many rows of how many variables were read, in words.

    Parameters
    ----------
    pair : Pair

    Returns
    -------
    str
    """
    behind = " + ".join(str(len(data.values)) for data in pair.backs)
    return (
        f"read {len(pair.fore.values)} foreground and {behind} background rows of "
        f"{pair.fore.n_features} variables"
    )
