"""Groups and labels of rows in the shell: columns of the datasets, or text files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contrica.errors import DataError, ParameterError, unmarked
from contrica.labels import read_labels, without_missing

__all__ = ["NamedGroups", "RowLabels"]

# What the name of a file with a label for each row may end in.
_FILES = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class RowLabels:
    """A label for each row: a column, a part of its cells, or a text file.

    Attributes
    ----------
    option : str
        Name of the parameter that gave it.
    column : str or None
        ``None`` for a file.
    pattern : re.Pattern or None
        What part of a cell is the label: the first group in it, or all that matches.
    file : Path or None
    """

    option: str
    column: str | None
    pattern: re.Pattern[str] | None
    file: Path | None

    @classmethod
    def of(cls, option: str, text: str | None) -> RowLabels | None:
        """Read ``column``, ``column~regular expression`` or a path.

        Parameters
        ----------
        option : str
        text : str or None

        Returns
        -------
        RowLabels or None
        """
        if text is None:
            return None
        path = Path(text)
        if path.is_file() or path.suffix.lower() in _FILES:
            return cls(option, None, None, path)
        column, tilde, expression = text.partition("~")
        try:
            pattern = re.compile(expression) if tilde else None
        except re.error as error:
            raise ParameterError(
                "not-an-expression",
                f"{unmarked(repr(expression))} in `{option}={unmarked(text)}` is not a regular "
                f"expression ({error})",
                remedy="Write column~expression, such as MouseID~^[^_]+ for what is before a _.",
                parameter=option,
            ) from error
        return cls(option, column.strip(), pattern, None)

    def read(
        self, metadata: Mapping[str, np.ndarray], n_rows: int, row_names: np.ndarray | None = None
    ) -> np.ndarray | None:
        """The label of each row, empty where it has none.

        Parameters
        ----------
        metadata : mapping of str to ndarray of str
            Of the dataset.
        n_rows : int
        row_names : ndarray of str, optional
            To compare with those in a file.

        Returns
        -------
        ndarray of str, or None where the dataset has no such column
        """
        if self.file is not None:
            return read_labels(self.file, n_rows, row_names)
        if self.column is None or self.column not in metadata:
            return None
        cells = without_missing(metadata[self.column].astype(str))
        if self.pattern is None:
            return cells
        known = {cell: self._part(cell) for cell in np.unique(cells)}
        return np.array([known[cell] for cell in cells])

    def _part(self, cell: str) -> str:
        found = None if self.pattern is None or not cell else self.pattern.search(cell)
        part = found and found.group(1 if found.re.groups else 0)
        if cell and not part:
            raise DataError(
                "no-match",
                f"the expression of `{self.option}` finds nothing in {unmarked(repr(str(cell)))} of "
                f"{unmarked(self.column)}",
                remedy="Give one that matches every cell.",
                parameter=self.option,
            )
        return part or ""


@dataclass(frozen=True)
class NamedGroups:
    """What --groups and --background-groups name, the foreground first.

    Attributes
    ----------
    each : tuple of RowLabels or None
        ``None`` where nothing was said.
    """

    each: tuple[RowLabels | None, ...]

    @classmethod
    def of(
        cls, groups: str | None, background_groups: Sequence[str] | None, n_backgrounds: int
    ) -> NamedGroups:
        """What was given, the foreground's column standing for those of backgrounds of which none was.

        Parameters
        ----------
        groups : str or None
        background_groups : sequence of str or None
        n_backgrounds : int

        Returns
        -------
        NamedGroups
        """
        given = [RowLabels.of("background_groups", each) for each in background_groups or ()]
        if given and len(given) != n_backgrounds:
            raise ParameterError(
                "groups-length",
                f"`background_groups` was given {len(given)} times for {n_backgrounds} backgrounds",
                remedy="Give it once for each.",
                parameter="background_groups",
            )
        first = RowLabels.of("groups", groups)
        same = first if first is not None and first.file is None else None
        return cls((first, *(given or [same] * n_backgrounds)))

    def columns(self, dataset: int) -> list[str]:
        """Columns that are to be taken out of a dataset, the foreground being number 0."""
        named = self.each[dataset]
        return [] if named is None or named.column is None else [named.column]
