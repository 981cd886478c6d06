"""Rows of one file that are the foreground or a background: ``column=value``, several with commas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from contrica.errors import DataError, ParameterError, unmarked

__all__ = ["Selection", "is_selection", "split_rows"]

# Values of a column that an error lists.
N_LISTED = 10


def is_selection(text: str) -> bool:
    """Whether an option names rows by a column, and not a file.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool
    """
    return "=" in text and not Path(text).exists()


@dataclass(frozen=True)
class Selection:
    """Rows by the values of columns: all conditions hold, each with one of its values.

    Attributes
    ----------
    option : str
        Name of the parameter that gave it.
    text : str
        As it was given.
    conditions : tuple of (str, str)
        Column and value; several values stand between bars.
    """

    option: str
    text: str
    conditions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, option: str, text: str, groupby: str | None = None) -> Selection:
        """Read ``a=x,b=y|z``, or with ``groupby`` a value of that column.

        Parameters
        ----------
        option : str
        text : str
        groupby : str, optional

        Returns
        -------
        Selection
        """
        if groupby is not None:
            return cls(option, text, ((groupby, text),))
        parts: list[str] = []
        for part in text.split(","):
            if "=" in part or not parts:
                parts.append(part)
            else:  # a comma in a value
                parts[-1] += f",{part}"
        pairs = [part.partition("=") for part in parts]
        if any(not name.strip() or not equals for name, equals, _ in pairs):
            raise ParameterError(
                "not-a-selection",
                f"--{option} {unmarked(text)} does not say which rows",
                "one file was given, so that rows are chosen by columns",
                "Write column=value, several with commas between; or give --groupby column and a value.",
                option,
            )
        return cls(option, text, tuple((name.strip(), value.strip()) for name, _, value in pairs))

    @property
    def columns(self) -> list[str]:
        """Columns that it looks at."""
        return [name for name, _ in self.conditions]

    @property
    def words(self) -> str:
        """What the rows have, for people."""
        return ", ".join(f"{name}={value}" for name, value in self.conditions)

    def rows(self, metadata: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which rows it selects; an error if none.

        Parameters
        ----------
        metadata : mapping of str to ndarray of str

        Returns
        -------
        ndarray of bool
        """
        found = [_matches(metadata[name], value) for name, value in self.conditions]
        chosen: np.ndarray = np.logical_and.reduce(found)
        if not chosen.any():
            raise self._nothing(metadata, found)
        return chosen

    def _nothing(
        self, metadata: Mapping[str, np.ndarray], found: Sequence[np.ndarray]
    ) -> DataError:
        empty = [pair for pair, rows in zip(self.conditions, found, strict=True) if not rows.any()]
        told = [_values(name, metadata[name], value) for name, value in empty]
        remedy = " ".join(told) if empty else "Each of its conditions holds somewhere, but no two."
        if len(self.conditions) > 2 and not empty:
            remedy = "Each of its conditions holds in some rows, but no row has all."
        return DataError(
            "no-rows",
            f"--{self.option} {unmarked(self.text)} selects no rows",
            remedy=remedy,
            parameter=self.option,
        )


def _matches(cells: np.ndarray, value: str) -> np.ndarray:
    """Cells that are one of the values between bars, as text or as numbers."""
    texts = np.char.strip(cells.astype(str))
    whole = texts == value
    if whole.any():
        return whole
    wanted = [each.strip() for each in value.split("|")]
    chosen = np.isin(texts, wanted)
    numbers = [number for number in map(_number, wanted) if number is not None]
    if numbers:  # 1 and 1.0 are one dose
        known = {text: _number(text) in numbers for text in np.unique(texts[~chosen])}
        chosen |= np.array([known.get(text, False) for text in texts], dtype=bool)
    return chosen


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _values(name: str, cells: np.ndarray, wanted: str) -> str:
    values = np.unique(np.char.strip(cells.astype(str))).tolist()
    near = get_close_matches(wanted, values, 1, 0.6)
    listed = ", ".join(values[:N_LISTED]) + (", …" if len(values) > N_LISTED else "")
    hint = f" Did you mean {near[0]}?" if near else ""
    return unmarked(f"The values of {name} are {listed}.{hint}")


def split_rows(
    fore: Selection | None, backs: Sequence[Selection], metadata: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Which rows are the foreground and each background; no row is in two.

    Parameters
    ----------
    fore : Selection or None
        ``None`` takes all rows that are in no background.
    backs : sequence of Selection
    metadata : mapping of str to ndarray of str

    Returns
    -------
    list of ndarray of bool
    """
    behind = [each.rows(metadata) for each in backs]
    if fore is None:
        front = ~np.logical_or.reduce(behind)
        if not front.any():
            raise DataError(
                "no-rows",
                f"--background {unmarked(backs[0].text)} selects all rows, and leaves no foreground",
                remedy="Choose fewer.",
                parameter="background",
            )
        return [front, *behind]
    datasets = [(fore, fore.rows(metadata)), *zip(backs, behind, strict=True)]
    for i, (one, rows) in enumerate(datasets):
        for other, own in datasets[:i]:
            shared = int(np.sum(rows & own))
            if shared:
                raise DataError(
                    "overlap",
                    f"{shared} rows are in both --{other.option} {unmarked(other.text)} and "
                    f"--{one.option} {unmarked(one.text)}",
                    "a row is foreground or background",
                    "Add a condition to one of the two.",
                    one.option,
                )
    return [rows for _, rows in datasets]
