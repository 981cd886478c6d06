"""Parquet files: one, a folder of them, or all that match a pattern, read row group by row group."""

from __future__ import annotations

import functools
import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import FileMissingError, unmarked
from contrica.rows.files.shared import (
    KNOWN,
    PARQUET,
    Names,
    Opened,
    bad_file,
    changed,
    check_not_empty,
    optional_module,
    reading,
    same_name,
    unknown_column,
)
from contrica.rows.protocol import Rows

__all__ = ["ParquetRows", "open_parquet", "parquet_files", "sort_columns"]

# What is read of a column at a time.
READ_BYTES = 2**16
# Columns that pyarrow adds to those of a dataset.
ADDED = {"__filename", "__fragment_index", "__batch_index", "__last_in_fragment"}


def _natural(path: Path) -> list[Any]:
    """Order in which part.2 comes before part.10."""
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if part.isdigit() else part for part in parts]


def parquet_files(where: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, in the order of their numbers."""
    path = Path(where)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.suffix.lower() in PARQUET]
        # writers leave summaries and unfinished files under such names
        found = [each for each in found if each.is_file() and each.name[0] not in "._"]
        if not found:
            raise bad_file(
                "unknown-type",
                where,
                "is a folder without parquet files, and not a zarr store",
                remedy=f"Use {KNOWN}.",
            )
        return sorted(found, key=_natural)
    found = [Path(each) for each in glob.glob(where, recursive=True)]
    if not found:
        raise FileMissingError(
            "file-missing",
            f"no file matches {unmarked(where)}",
            remedy="Check the pattern, and quote it.",
            filename=where,
        )
    others = [each for each in found if each.suffix.lower() not in PARQUET]
    if others:
        raise bad_file(
            "unknown-type",
            where,
            f"also matches {unmarked(min(others))}",
            "only parquet files are read together",
            "Let the pattern end in .parquet, or name one file.",
        )
    return sorted(found, key=_natural)


class _Columns(NamedTuple):
    """Which columns of a parquet file are variables, which one names the rows, and which are neither."""

    numbers: list[str]
    names: str | None
    metadata: Sequence[str] = ()


def sort_columns(
    where: str,
    index: Sequence[str],
    text: Sequence[str],
    numbers: Sequence[str],
    rest: Sequence[str],
) -> _Columns:
    """One column of text, or the index, names the rows; what else is not a number is refused.

    An index in ``text`` counts as such only.
    """
    plain = [name for name in text if name not in index]
    named = [name for name in index if name in text]
    if len(index) > 1:
        rest = [*rest, *index]
    elif len(plain) > 1 or (plain and named):
        rest = [*rest, *plain]
    if rest:
        shown = ", ".join(map(repr, rest[:5])) + (" and more" if len(rest) > 5 else "")
        raise bad_file(
            "not-numbers",
            where,
            f"has columns that are not numbers: {unmarked(shown)}",
            remedy="One column of text, or the index, may name the rows; take the others out, with "
            f"`metadata={unmarked(','.join(map(str, rest)))}`, or turn them into numbers.",
        )
    variables = [name for name in numbers if name not in index]
    if not variables:
        raise bad_file(
            "not-numbers",
            where,
            "has no columns of numbers, one for each variable",
            remedy="Add them.",
        )
    return _Columns(variables, next(iter([*named, *plain, *index]), None))


def _parquet_columns(
    where: str, schema: Any, metadata: Sequence[str] = (), *, all_metadata: bool = False
) -> _Columns:
    types = optional_module("pyarrow", "parquet files").types
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise same_name(where, twice)
    for name in metadata:
        if name not in schema.names:
            raise unknown_column(where, name, schema.names)
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in told if isinstance(name, str) and name in schema.names]
    index = [name for name in index if name not in metadata]
    text: list[str] = []
    numbers: list[str] = []
    rest: list[str] = []
    for field in schema:
        if field.name in metadata:
            continue
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_string(kind) or types.is_large_string(kind):
            text.append(field.name)
        elif any(
            test(field.type)
            for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        ):
            numbers.append(field.name)
        elif field.name not in index:
            rest.append(field.name)
    others: list[str] = []
    if all_metadata:  # but for an index, which names the rows
        others = [name for name in [*text, *rest] if name not in index]
        text, rest = [name for name in text if name in index], []
    return sort_columns(where, index, text, numbers, rest)._replace(metadata=[*metadata, *others])


def open_parquet(where: str, metadata: Sequence[str] = (), *, all_metadata: bool = False) -> Opened:
    """Open parquet files, all of which must have the same columns; some may be no variables."""
    parquet = optional_module("pyarrow.parquet", "parquet files")
    files = parquet_files(where)
    counts: list[int] = []
    first: _Columns | None = None
    for path in files:
        check_not_empty(path)
        with reading(str(path), "a parquet file"):
            described = parquet.read_metadata(path)
            schema = described.schema.to_arrow_schema()
            # names, and what pandas wrote about them, are decoded only now
            own = _parquet_columns(str(path), schema, metadata, all_metadata=all_metadata)
        counts.append(described.num_rows)
        first = own if first is None else first
        if set(own.numbers) != set(first.numbers):
            absent = sorted(set(first.numbers) - set(own.numbers))[:5]
            extra = sorted(set(own.numbers) - set(first.numbers))[:5]
            lists = [unmarked(", ".join(names)) or "none" for names in (absent, extra)]
            raise bad_file(
                "different-columns",
                path,
                f"and {unmarked(files[0])} have different columns: missing from {unmarked(path)}: "
                f"{lists[0]}; only in it: {lists[1]}",
                remedy="All files must have the same variables.",
            )
        if own.names != first.names:
            raise bad_file(
                "different-columns",
                path,
                f"names its rows by {unmarked(repr(own.names))}",
                f"{unmarked(files[0])} by {unmarked(repr(first.names))}",
                "Write all files alike.",
            )
    if first is None or not sum(counts):
        raise bad_file(
            "no-rows", where, "has no rows", remedy="It needs one row per sample: was it written?"
        )
    rows = ParquetRows(where, files, counts, first.numbers)
    names = None if first.names is None else Names(functools.partial(rows.texts, first.names))
    taken = {
        name: np.asarray(Names(functools.partial(rows.texts, name))) for name in first.metadata
    }
    return Opened(rows, rows.columns, names, taken)


def _scan(
    path: Path, size: int, columns: list[str], chosen: np.ndarray | None = None
) -> Iterator[Any]:
    """Batches of a file in their order, one row group after another; of all groups or of some.

    pyarrow would else read sixteen groups ahead, and `pyarrow.parquet` keeps some 150 kB of each column.
    """
    dataset = optional_module("pyarrow.dataset", "parquet files")
    source = dataset.dataset(str(path), format="parquet")
    if ADDED.intersection(source.schema.names):
        parquet = optional_module("pyarrow.parquet", "parquet files")
        with parquet.ParquetFile(path) as file:
            groups = None if chosen is None else np.flatnonzero(chosen).tolist()
            yield from file.iter_batches(size, row_groups=groups, columns=columns)
        return
    options = dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=READ_BYTES, pre_buffer=False
    )
    (fragment,) = source.get_fragments()
    for own in _row_groups([group.num_rows for group in fragment.row_groups], size):
        ids = own if chosen is None else [number for number in own if chosen[number]]
        if not ids:
            continue
        yield from fragment.subset(row_group_ids=ids).to_batches(
            columns=columns,
            batch_size=size,
            batch_readahead=0,
            fragment_readahead=0,
            fragment_scan_options=options,
        )


def _row_groups(counts: Sequence[int], size: int) -> Iterator[list[int]]:
    """Numbers of consecutive row groups that hold at least ``size`` rows together."""
    ids, n_rows = [], 0
    for number, count in enumerate(counts):
        ids.append(number)
        n_rows += count
        if n_rows >= size:
            yield ids
            ids, n_rows = [], 0
    if ids:
        yield ids


class ParquetRows(Rows):
    """Parquet files one below the other, read row group by row group."""

    can_skip = True

    def __init__(
        self, where: str, files: list[Path], counts: list[int], columns: list[str]
    ) -> None:
        self._where, self._files, self._counts = where, files, counts
        self._numbers = columns
        self.columns = np.array(columns)
        self.shape = (sum(counts), len(columns))

    def _batches(self, size: int, columns: list[str]) -> Iterator[Any]:
        for path, count in zip(self._files, self._counts, strict=True):
            what, n_read = (str(path), "a parquet file"), 0
            with reading(*what):
                batches = _scan(path, size, columns)
            while True:
                with reading(*what):
                    batch = next(batches, None)
                if batch is None:
                    break
                n_read += batch.num_rows
                yield batch
            if n_read != count:
                raise changed(str(path), f"{n_read} rows", count)

    def texts(self, column: str) -> Iterator[list[Any]]:
        """The entries of one column, some at a time."""
        for batch in self._batches(2**16, [column]):
            with reading(self._where, "a parquet file"):
                cells = batch.column(column).to_pylist()
            yield cells

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        double = optional_module("pyarrow", "parquet files").float64()
        size = min(n_rows, len(self))
        block, filled = np.empty((self.shape[1], size)), 0
        for batch in self._batches(size, self._numbers):
            start = 0
            while start < batch.num_rows:
                part = batch.slice(start, size - filled)
                stop = filled + part.num_rows
                for row, name in zip(block, self._numbers, strict=True):
                    cells = part.column(name).cast(double, safe=False)
                    row[filled:stop] = cells.to_numpy(zero_copy_only=False)
                start, filled = start + part.num_rows, stop
                if filled == size:  # row groups may be small: blocks are filled across them
                    yield block.T
                    block, filled = np.empty((self.shape[1], size)), 0
        if filled:
            yield block[:, :filled].T

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        """Rows from ``start`` to ``stop`` of each of the ``bounds``, as `Rows.spans` says."""
        first = 0
        for path, count in zip(self._files, self._counts, strict=True):
            own = np.zeros(count, dtype=bool)
            for start, stop in bounds:
                own[max(start - first, 0) : max(stop - first, 0)] = True
            if own.any():
                yield from self._some(path, own)
            first += count

    def _some(self, path: Path, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Some rows of a file, for which the other row groups are not read."""
        parquet = optional_module("pyarrow.parquet", "parquet files")
        double = optional_module("pyarrow", "parquet files").float64()
        with reading(str(path), "a parquet file"):
            described = parquet.read_metadata(path)
            counts = [described.row_group(i).num_rows for i in range(described.num_row_groups)]
            if sum(counts) != rows.size:
                raise changed(str(path), f"{sum(counts)} rows", rows.size)
            parts = np.split(rows, np.cumsum(counts)[:-1])
            chosen = np.array([part.any() for part in parts])
            left = np.concatenate([part for part in parts if part.any()])
            for batch in _scan(path, 2**12, self._numbers, chosen):
                own, left = np.split(left, [batch.num_rows])
                if own.any():
                    cells = [batch.column(name).cast(double, safe=False) for name in self._numbers]
                    block = [each.to_numpy(zero_copy_only=False)[own] for each in cells]
                    yield np.column_stack(block)
