"""Scores of rows as they are drawn: some columns, with their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError, ParameterError

__all__ = ["Columns", "pattern_numbers"]


class Columns(NamedTuple):
    """Columns of scores that are drawn.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_drawn)
    names : tuple of str
    background : ndarray of shape (n_background_rows, n_drawn) or None
    """

    values: np.ndarray
    names: tuple[str, ...]
    background: np.ndarray | None

    @classmethod
    def of(
        cls,
        scores: Any,
        background: Any = None,
        components: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
    ) -> Columns:
        """Check scores, and take the columns that are drawn.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_components)
        background : array-like of shape (n_background_samples, n_components), optional
        components : sequence of int, optional
            Numbers of the patterns, from 1; all by default.
        names : sequence of str, optional
            Of the columns drawn; by default a data frame's own, or "pattern 1" and so on.

        Returns
        -------
        Columns
        """
        values = _table(scores, "scores")
        under = None if background is None else _table(background, "background")
        if under is not None and under.shape[1] != values.shape[1]:
            raise DataError(
                "n-patterns",
                f"the background's scores have {under.shape[1]} column(s)",
                f"those of the foreground have {values.shape[1]}",
                "Pass scores of one model.",
                "background",
            )
        drawn = pattern_numbers(components, values.shape[1])
        own = getattr(scores, "columns", None)
        if names is None:
            every = [f"pattern {i + 1}" for i in range(values.shape[1])] if own is None else own
            names = [str(every[i]) for i in drawn]
        elif len(names) < len(drawn):
            raise DataError(
                "n-names",
                f"`names` has {len(names)} name(s)",
                f"{len(drawn)} patterns are drawn",
                "Give one name per pattern drawn.",
                "names",
            )
        return cls(
            values[:, drawn], tuple(names[: len(drawn)]), None if under is None else under[:, drawn]
        )

    def some(self, *numbers: int) -> Columns:
        """A few of the columns, by number from 0."""
        chosen = list(numbers)
        under = None if self.background is None else self.background[:, chosen]
        return Columns(self.values[:, chosen], tuple(self.names[i] for i in chosen), under)


def _table(scores: Any, what: str) -> np.ndarray:
    values = np.asarray(scores)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.dtype.kind not in "iuf" or 0 in values.shape:
        raise DataError(
            "scores-shape",
            f"`{what}` has shape {values.shape} and type {values.dtype}",
            "scores are a table of numbers, rows by patterns",
            "Pass what transform returned.",
            what,
        )
    return values


def pattern_numbers(components: Sequence[int] | int | None, count: int) -> list[int]:
    """Numbers from 0 of the patterns asked for, which are counted from 1.

    Parameters
    ----------
    components : sequence of int, int or None
        None for all.
    count : int
        Patterns that there are.

    Returns
    -------
    list of int
    """
    if components is None:
        return list(range(count))
    asked = np.atleast_1d(np.asarray(components))
    if asked.ndim != 1 or asked.dtype.kind not in "iu" or asked.size == 0:
        raise ParameterError(
            "components",
            f"`components` is {components!r}",
            "numbers of patterns are needed, counted from 1",
            "Pass such as (1, 2).",
            "components",
        )
    if asked.min() < 1 or asked.max() > count:
        raise ParameterError(
            "components",
            f"`components` asks for pattern {asked.min() if asked.min() < 1 else asked.max()}",
            f"there are patterns 1 to {count}",
            "They are counted from 1.",
            "components",
        )
    return [int(number) - 1 for number in asked]
