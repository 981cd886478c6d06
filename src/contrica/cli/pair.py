"""A foreground and its backgrounds as the commands pass them on, with all their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.rows import Rows, as_rows
from contrica.rows.selected import SelectedRows, selected

__all__ = ["Data", "Pair", "called_by_file", "counts", "several"]


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

    def over(self, names: Sequence[str]) -> Data:
        """Some of the variables, in the order of the names given, each of which is there once."""
        place = {name: i for i, name in enumerate(self.names)}
        index = np.array([place[name] for name in names])
        columns = np.array(names, dtype=object)
        if not isinstance(self.values, Rows):
            return replace(self, values=self.values[:, index], columns=columns)
        shared = self.shared
        if shared is not None:
            shared = shared[:, index].rechunk({1: -1})  # whole rows
        values = SelectedRows(self.values, None, index)
        values.columns = columns
        return replace(self, values=values, columns=columns, shared=shared)


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
    chosen_by : tuple of str
        Columns by which rows of one file were chosen.
    """

    fore: Data
    backs: list[Data]
    files: list[str]
    notes: list[str]
    chosen_by: tuple[str, ...] = ()

    @property
    def groups(self) -> dict[str, Any]:
        """Groups as ``fit`` takes them; of several backgrounds a list."""
        given = [back.groups for back in self.backs if back.groups is not None]
        one = len(self.backs) == len(given) == 1
        return {
            "groups": self.fore.groups,
            "background_groups": given[0] if one else (given or None),
        }


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
