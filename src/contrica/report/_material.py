"""What a report is made of: a model, the scores of both datasets, and what is known of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrica.compare import Comparison
from contrica.errors import DataError, ParameterError
from contrica.inference._data import SourceScores
from contrica.inference._diagnose import diagnose_scores
from contrica.inference._findings import Report
from contrica.inference._stability import Stability
from contrica.rows.groups import Groups, is_missing
from contrica.validation import generator

__all__ = ["MAX_POINTS", "Column", "Material", "Samples", "as_columns", "check_image_shape"]

# Points that a page draws, of all datasets together.
MAX_POINTS = 100_000
# Values up to which a column of numbers is one of kinds: as many as there are colours.
FEW_VALUES = 8
# Kinds up to which a column is tested along with a score.
MAX_KINDS = 20


@dataclass(frozen=True)
class Samples:
    """Rows of one dataset, by their scores.

    Attributes
    ----------
    name : str
        Of the dataset.
    scores : ndarray of shape (n, n_components)
    columns : dict of str to ndarray of shape (n,)
        What else is known of each row.
    names : ndarray of shape (n,) or None
        Of the rows.
    n_rows : int
        Of the dataset; more than ``n`` where these are a sample.
    rows : ndarray of int, shape (n,)
        Their numbers in the dataset, from 0.
    """

    name: str
    scores: np.ndarray
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    names: np.ndarray | None = None
    n_rows: int = 0
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))

    @classmethod
    def of(
        cls,
        name: str,
        scores: np.ndarray,
        columns: Mapping[str, Any] | None = None,
        names: Any = None,
    ) -> Samples:
        """All rows of a dataset; those without scores, which have no value at all, are left out.

        Parameters
        ----------
        name : str
        scores : ndarray of shape (n, n_components)
        columns : mapping of str to array-like of shape (n,), optional
        names : array-like of shape (n,), optional

        Returns
        -------
        Samples
        """
        count = len(scores)
        named = None if names is None else np.asarray(names, dtype=object).astype(str)
        if named is not None and named.shape != (count,):
            raise DataError(
                "names-length",
                f"{named.size} names of the {name}'s rows were given",
                f"there are {count} rows",
                parameter="names",
            )
        own = as_columns(columns, count, name)
        return cls(name, scores, own, named, count, np.arange(count)).take(
            np.flatnonzero(~np.isnan(scores).any(axis=1))
        )

    def take(self, rows: np.ndarray) -> Samples:
        """Some of the rows, by number.

        Parameters
        ----------
        rows : ndarray of int

        Returns
        -------
        Samples
        """
        return Samples(
            self.name,
            self.scores[rows],
            {key: values[rows] for key, values in self.columns.items()},
            None if self.names is None else self.names[rows],
            self.n_rows,
            self.rows[rows],
        )


def as_columns(metadata: Any, n_rows: int, name: str) -> dict[str, np.ndarray]:
    """Columns of metadata, a data frame's or a mapping's, one entry for each row.

    Parameters
    ----------
    metadata : data frame, mapping of str to array-like of shape (n_rows,), or None
    n_rows : int
    name : str
        Of the dataset.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
    """
    if metadata is None:
        return {}
    if not hasattr(metadata, "keys"):
        raise ParameterError(
            "not-columns",
            f"`metadata` is a {type(metadata).__name__}",
            "it must be a data frame, or a mapping of names to columns",
            parameter="metadata",
        )
    found = {}
    for key in metadata.keys():  # noqa: SIM118 - a data frame iterates over names too, polars not
        column = np.asarray(metadata[key], dtype=object)
        if column.shape != (n_rows,):
            raise DataError(
                "metadata-length",
                f"column {key} of the {name}'s metadata has {column.shape[0] if column.ndim else 0} "
                "entries",
                f"there are {n_rows} rows",
                "Give one value for each row, in the same order.",
                "metadata",
            )
        found[str(key)] = column
    return found


@dataclass(frozen=True)
class Column:
    """What is known of every row, as numbers.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Kinds; empty where the column is of numbers.
    values : ndarray of shape (n,)
        The number of each row's kind, -1 without one; or numbers, NaN without one.
    """

    name: str
    levels: tuple[str, ...]
    values: np.ndarray

    @classmethod
    def of(cls, name: str, values: np.ndarray, *, named: bool = False) -> Column | None:
        """A column of numbers or kinds; ``None`` where nearly every row has a value of its own.

        Parameters
        ----------
        name : str
        values : ndarray of object, shape (n,)
        named : bool
            Whether numbers are names, such as those of donors.

        Returns
        -------
        Column or None
        """
        known = np.array([not is_missing(each) and str(each).strip() != "" for each in values])
        texts = np.array([str(each).strip() for each in values[known]])
        kinds, codes = np.unique(texts, return_inverse=True)
        if not kinds.size:
            return None
        numbers = None if named else _numbers(texts)
        if numbers is not None and kinds.size > FEW_VALUES:
            if kinds.size == texts.size > MAX_KINDS and (numbers == np.rint(numbers)).all():
                return None  # rows are numbered
            filled = np.full(values.size, np.nan)
            filled[known] = numbers
            return cls(name, (), filled)
        if kinds.size > max(0.5 * texts.size, MAX_KINDS):
            return None
        filled = np.full(values.size, -1)
        filled[known] = codes
        return cls(name, tuple(map(str, kinds)), filled)

    @property
    def cells(self) -> np.ndarray:
        """Numbers, or the texts of kinds, None without one: numbers of few values are texts too."""
        if not self.levels:
            return self.values
        return np.array([*self.levels, None], dtype=object)[self.values]  # -1 is the last


def _numbers(texts: np.ndarray) -> np.ndarray | None:
    try:
        found = texts.astype(float)
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _measured(values: np.ndarray, groups: Groups) -> np.ndarray | None:
    """Numbers or dates of a column with one value for each group; ``None`` where these are names.

    Numbers without gaps, such as 1 to 8, are names as well.
    """
    texts = np.array([str(each).strip() for each in values])
    if set(texts) == set(map(str, groups.names)):
        return None
    numbers = _numbers(texts)
    if numbers is None:
        try:
            days = texts.astype("datetime64[s]")
        except ValueError:
            return None
        return None if np.isnat(days).any() else days.astype(object)
    whole = bool((numbers == np.rint(numbers)).all())
    counted = whole and np.ptp(numbers) + 1 == np.unique(numbers).size
    return None if counted else numbers


def check_image_shape(shape: Any, n_features: int) -> tuple[int, int] | None:
    """Height and width of patterns that are images.

    Parameters
    ----------
    shape : (int, int) or None
    n_features : int

    Returns
    -------
    (int, int) or None
    """
    if shape is None:
        return None
    found = tuple(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else ()
    whole = len(found) == 2 and all(isinstance(each, int | np.integer) for each in found)
    if not whole or min(found) < 1 or found[0] * found[1] != n_features:
        raise ParameterError(
            "image-shape",
            f"`image_shape={shape}` was given",
            f"height times width must be the {n_features} variables",
            parameter="image_shape",
        )
    return int(found[0]), int(found[1])


@dataclass(frozen=True)
class Material:
    """All that a page says.

    Attributes
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    foreground : Samples
    backgrounds : tuple of Samples
        None where a folder of an earlier version has no scores of them.
    groups, background_groups : Groups or None
        Of the foreground's rows, and of those of all backgrounds, one below the other.
    check : Report or str
        Of the data before the fit; or why there is none.
    stability : Stability or str
        Or how it can be computed.
    comparison : Comparison or None
    image_shape : (int, int) or None
    title, command : str
    asked : dict of str to str
        What was asked, in addition to what the model knows.
    """

    model: Any
    foreground: Samples
    backgrounds: tuple[Samples, ...]
    groups: Groups | None = None
    background_groups: Groups | None = None
    check: Report | str = ""
    stability: Stability | str = ""
    comparison: Comparison | None = None
    image_shape: tuple[int, int] | None = None
    title: str = ""
    command: str = ""
    asked: dict[str, str] = field(default_factory=dict)

    @property
    def background_scores(self) -> np.ndarray:
        """Of all backgrounds, one below the other."""
        nothing = np.empty((0, self.foreground.scores.shape[1]))
        return np.vstack([nothing, *(each.scores for each in self.backgrounds)])

    @property
    def group_columns(self) -> frozenset[str]:
        """Columns that say of the foreground's rows what the groups say."""
        if self.groups is None:
            return frozenset()
        count, found = len(self.groups.names), set()
        for name, values in self.foreground.columns.items():
            codes = np.unique(values.astype(str), return_inverse=True)[1]
            pairs = np.unique(np.column_stack([codes, self.groups.codes]), axis=0)
            if len(pairs) == codes.max() + 1 == count:
                found.add(name)
        return frozenset(found)

    def diagnosis(self) -> Report | str:
        """What speaks against the patterns, columns of metadata as covariates; or why nothing is said."""
        fore = self.foreground
        if not self.backgrounds:
            return "Not made: there are no scores of the background."
        told = {}
        for name, values in fore.columns.items():
            cells = self._covariate(name, values)
            if cells is not None:
                told[name] = np.full(fore.n_rows, None, dtype=object)
                told[name][fore.rows] = cells
        scores = SourceScores(fore.scores, self.background_scores, fore.rows, fore.n_rows)
        return diagnose_scores(
            self.model, scores, self.groups, told, self.background_groups, rng=generator(0)
        )

    def _covariate(self, name: str, values: np.ndarray) -> np.ndarray | None:
        """A column as a covariate; ``None`` of one that names rows or groups, or has very many kinds."""
        if self.groups is not None and name in self.group_columns:
            return _measured(values, self.groups)
        column = Column.of(name, values)
        return None if column is None or len(column.levels) > MAX_KINDS else column.cells

    def drawn(self) -> list[Samples]:
        """The datasets as they are drawn: all rows, or a random sample that is the same every time."""
        parts = [self.foreground, *self.backgrounds]
        total = sum(len(each.scores) for each in parts)
        if total <= MAX_POINTS:
            return parts
        rng, kept = generator(0), []
        for each in parts:
            size = max(1, len(each.scores) * MAX_POINTS // total)
            kept.append(each.take(np.sort(rng.choice(len(each.scores), size, replace=False))))
        return kept
