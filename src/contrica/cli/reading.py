"""Data in: the foreground and its backgrounds, opened, compared, and passed on with their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrica.cli.grouping import NamedGroups
from contrica.errors import ContricaError, DataError, ParameterError, unmarked
from contrica.rows import Rows, as_rows, open_dask, open_rows
from contrica.validation import check_same_features

__all__ = ["Data", "called_by_file", "counts", "read", "read_all", "several"]


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
    labels : ndarray of str or None
        The column that names the groups of rows, where one was asked for.
    """

    values: Any
    columns: np.ndarray | None
    row_names: Any
    shared: Any = None
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
            return range(len(self.values)), ""
        return self.row_names, "sample"

    @property
    def named(self) -> Any:
        """The values, with ``columns`` and ``row_names``, so that warnings can name both."""
        if isinstance(self.values, Rows):
            return self.values
        array = self.values.view(_NamedArray)
        array.columns, array.row_names = self.columns, self.row_names
        return array


class _NamedArray(np.ndarray):
    """An array that knows its columns and the names of its rows."""

    columns: np.ndarray | None = None
    row_names: np.ndarray | None = None


def read(
    path: str,
    key: str | None,
    header: bool | None = None,
    *,
    shared: bool = False,
    column: str | None = None,
    gaps: bool = False,
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
    column : str or None
        Which column names the groups of rows, and is no variable.
    gaps : bool
        Whether values may be missing.

    Returns
    -------
    Data
    """
    if shared and column is not None:
        raise ParameterError(
            "column-on-cluster",
            f"`groups={unmarked(column)}` names a column",
            "the workers of a cluster read variables only",
            "Give a text file with the group of each row.",
            "groups",
        )
    if shared:
        opened = open_dask(path, key)
        array = opened.rows
        if hasattr(array, "to_dask_array"):
            array = array.to_dask_array(lengths=True)
        array = array.rechunk({1: -1})  # whole rows
        values = as_rows(array, path)
    else:
        opened = open_rows(path, key, header=header, column=column, gaps=gaps)
        array, values = None, as_rows(opened.rows, path)
    if isinstance(values, Rows):
        values.columns = opened.columns  # type: ignore[attr-defined]
    return Data(values, opened.columns, opened.row_names, array, opened.labels)


def read_all(
    foreground: str,
    backgrounds: Sequence[str],
    key: str | None,
    background_keys: Sequence[str | None] | None,
    header: bool | None,
    *,
    shared: bool = False,
    gaps: bool = False,
    groups: NamedGroups | None = None,
) -> tuple[Data, list[Data]]:
    """Open the foreground and every background, and compare each with it.

    Parameters
    ----------
    foreground : str
        Path.
    backgrounds : sequence of str
        Paths.
    key : str or None
        Of the foreground.
    background_keys : sequence of str, or None
        One for all backgrounds, or one for each.
    header : bool or None
    shared, gaps : bool
        As for `read`.
    groups : NamedGroups, optional
        Which columns name groups of rows, and are no variables.

    Returns
    -------
    foreground : Data
    backgrounds : list of Data
    """
    keys: list[str | None] = list(background_keys or ())
    if len(keys) < 2:
        keys = (keys or [None]) * len(backgrounds)
    if len(keys) != len(backgrounds):
        raise ParameterError(
            "number-of-keys",
            f"got {len(keys)} keys for {len(backgrounds)} backgrounds",
            remedy="Give --background-key once, or once for each.",
            parameter="background_key",
        )
    taken = groups or NamedGroups.of(None, None, len(backgrounds))
    options: dict[str, Any] = {"shared": shared, "gaps": gaps}
    fore, backs = read(foreground, key, header, column=taken.column(0), **options), []
    for i, (path, own) in enumerate(zip(backgrounds, keys, strict=True), start=1):
        with _other_words("`key", "`background_key"):
            back = read(path, own, header, column=taken.column(i), **options)
        if header is None and foreground != path:
            _check_first_lines(foreground, fore, path, back)
        check_same_features(
            *(fore.columns, back.columns, fore.n_features, back.n_features),
            name=foreground,
            other=path,
        )
        backs.append(back)
    return fore, backs


@contextmanager
def called_by_file(foreground: str, backgrounds: Sequence[str]) -> Iterator[None]:
    """Let errors about the numbers in a dataset say which file they are in.

    Parameters
    ----------
    foreground : str
        Path.
    backgrounds : sequence of str
        Paths.
    """
    names = ["background"]
    if len(backgrounds) > 1:
        names = [f"background[{i}]" for i in range(len(backgrounds))]
    files = {"X": foreground, **dict(zip(names, backgrounds, strict=True))}
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


def counts(foreground: Data, backgrounds: Sequence[Data]) -> str:
    """How many rows of how many variables were read, in words.

    Parameters
    ----------
    foreground : Data
    backgrounds : sequence of Data

    Returns
    -------
    str
    """
    behind = " + ".join(str(len(data.values)) for data in backgrounds)
    return (
        f"read {len(foreground.values)} foreground and {behind} background rows of "
        f"{foreground.n_features} variables"
    )
