"""Blocks of rows that follow one another in an iterable, as one dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from contrica.errors import DataError, FeaturesError, IterationError, unmarked
from contrica.rows.protocol import Rows, iterate_blocks
from contrica.validation import in_words

__all__ = ["Blocks", "StreamRows", "columns_of", "is_stream", "stream_rows"]

SAME_VARIABLES = "All must measure the same variables in the same order."


class Blocks:
    """Several arrays, one below the other, as one dataset.

    Parameters
    ----------
    parts : sequence of array-like, or callable
        The blocks of rows in their order; or a function that returns an iterable of them, and is called
        for each pass.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.rows import as_rows
    >>> as_rows(Blocks([np.zeros((2, 3)), np.ones((4, 3))])).shape
    (6, 3)
    """

    def __init__(self, parts: Sequence[Any] | Callable[[], Iterable[Any]]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts() if callable(self._parts) else self._parts)


class StreamRows(Rows):
    """Arrays that follow one another and are made anew for each pass; the first pass counts them."""

    def __init__(
        self,
        parts: Callable[[], Iterable[Any]],
        n_columns: int,
        columns: list[Any] | None,
        as_rows: Callable[[Any, str], Any],
        name: str,
    ) -> None:
        self._parts, self._n_columns, self.columns = parts, n_columns, columns
        self._name = name
        self._n_rows: int | None = None
        self._as_rows = as_rows

    @property
    def n_columns(self) -> int:
        """Number of variables."""
        return self._n_columns

    @property
    def is_counted(self) -> bool:
        """Whether the number of rows is known."""
        return self._n_rows is not None

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows and variables; takes a pass if there was none yet."""
        if self._n_rows is None:
            for _ in self._tables():
                pass
        return self._n_rows or 0, self._n_columns

    def _tables(self) -> Iterator[Any]:
        """All parts, each as a table of the same variables; they are counted where they were not."""
        n_read = 0
        for part in self._parts():
            rows = _table(self._as_rows(part, self._name))
            _check_part(rows.shape, n_read, self._n_columns, self._name)
            found = columns_of(part)
            _same_columns(self.columns, found, self._name)
            self.columns = self.columns or found  # the first blocks may have none
            n_read += rows.shape[0]
            yield rows
        if self._n_rows is None:
            self._n_rows = n_read
        if n_read != self._n_rows:
            raise IterationError(
                "changed-rows",
                f"the blocks of `{self._name}` have {n_read} rows this time",
                f"had {self._n_rows} when first read",
                "Several passes are needed: give what can be read again from its beginning.",
                self._name,
            )

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for rows in self._tables():
            yield from iterate_blocks(rows, n_rows)


def _check_part(shape: tuple[int, ...], n_read: int, n_columns: int, name: str) -> None:
    if len(shape) != 2:
        raise DataError(
            "dimensions",
            f"a block of `{name}` has shape {shape} after row {n_read}",
            "blocks need rows and columns",
            "Reshape a single row to (1, n_features).",
            name,
        )
    if shape[1] != n_columns:
        raise FeaturesError(
            "width",
            f"a block of `{name}` has {shape[1]} columns after row {n_read}",
            f"the blocks before it have {n_columns}",
            SAME_VARIABLES,
            name,
        )


def is_stream(data: Any) -> bool:
    """Whether it is an iterable of matrices that is not a table itself."""
    if hasattr(data, "shape") or hasattr(data, "__array__") or hasattr(data, "__dataframe__"):
        return False
    # a list is a table written out, or several backgrounds
    return isinstance(data, Iterable) and not isinstance(data, Sequence | dict | set)


def stream_rows(data: Iterable[Any], name: str, as_rows: Callable[[Any, str], Any]) -> Rows:
    """Rows of an iterable of blocks, of which the first is read here.

    Parameters
    ----------
    data : iterable of array-like
        Must be readable more than once.
    name : str
        What errors call it.
    as_rows : callable
        What makes an array or `Rows` of a block: `contrica.rows.as_rows`.

    Returns
    -------
    StreamRows
    """
    if isinstance(data, Iterator):
        raise IterationError(
            "read-once",
            f"`{name}` is an iterator, which can be read once",
            "its rows are needed several times",
            "Give what can be read again from its beginning: contrica.rows.Blocks of a list of them, "
            "or of a function that starts anew. Or pass its blocks one by one, to partial_fit for a fit.",
            name,
        )
    for first in data:
        rows = _table(as_rows(first, name))
        _check_part(rows.shape, 0, rows.shape[-1] if len(rows.shape) else 0, name)
        return StreamRows(lambda: data, int(rows.shape[1]), columns_of(first), as_rows, name)
    raise DataError(
        "no-rows",
        f"`{name}` has no blocks of rows",
        remedy="Give at least one.",
        parameter=name,
    )


def _table(rows: Any) -> Any:
    """A block with a shape; rows written out as lists become one."""
    if hasattr(rows, "shape"):
        return rows
    with in_words("a block"):
        return np.asarray(rows, dtype=np.float64)


def columns_of(part: Any) -> list[Any] | None:
    """Labels of the columns that a table comes with."""
    columns = getattr(part, "columns", None)
    return None if columns is None else list(columns)


def _same_columns(known: list[Any] | None, found: list[Any] | None, name: str) -> None:
    if known is not None and found is not None and known != found and len(known) == len(found):
        raise FeaturesError(
            "order",
            f"blocks of `{name}` have other columns, or the same in another order, than the blocks "
            f"before them: {unmarked(found[:5])} after {unmarked(known[:5])}",
            remedy=SAME_VARIABLES,
            parameter=name,
        )
