"""The rows of a text file read by pyarrow, several times as fast as by numpy."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

__all__ = ["read_body_by_arrow"]

# What pyarrow parses at a time: at least so many bytes, and rows, of which a cell takes about 20 bytes.
PARSED_BYTES = 2**20
PARSED_ROWS = 64
CELL_BYTES = 20


def read_body_by_arrow(
    path: Path,
    delimiter: str,
    n_skipped: int,
    start: int,
    width: int,
    gzipped: bool,
    *,
    gaps: Sequence[str] = (),
) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Values and row names; None where pyarrow is not installed, or finds a cell that is not a number.

    Parameters
    ----------
    path : path
    delimiter : str
    n_skipped : int
        Lines of the header.
    start : int
        Column in which the numbers begin: 1 where the first one names the rows, else 0.
    width : int
        Cells in a row.
    gzipped : bool
    gaps : sequence of str
        Cells, in small letters, that are read as NaN, in capital ones too.

    Returns
    -------
    tuple of ndarray, or None
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(i) for i in range(width)]
    kinds = [pa.string()] * start + [pa.float64()] * (width - start)
    parse = csv.ParseOptions(delimiter=delimiter)
    # an empty cell is not a number
    missing = [*gaps, *(cell.upper() for cell in gaps), *(["NaN"] if gaps else [])]
    types = dict(zip(names, kinds, strict=True))
    convert = csv.ConvertOptions(column_types=types, null_values=missing)

    def tables() -> Iterator[tuple[Any, float]]:
        skipped = n_skipped
        size = max(PARSED_BYTES, PARSED_ROWS * CELL_BYTES * width)
        for lines, share in _line_chunks(path, gzipped, size):
            options = csv.ReadOptions(
                use_threads=False, block_size=len(lines), skip_rows=skipped, column_names=names
            )
            yield csv.read_csv(pa.BufferReader(lines), options, parse, convert), share
            skipped = 0

    try:
        return _put_together(tables(), start, width)
    except (pa.ArrowException, ValueError, OSError, EOFError, zlib.error):
        return None


def _line_chunks(path: Path, gzipped: bool, size: int) -> Iterator[tuple[bytes, float]]:
    """Whole lines of about ``size`` bytes together, and the share of the file that is read with them.

    A row whose name has a line break in it may be cut in two; the first part then has too few cells.
    """
    n_bytes = path.stat().st_size
    with open(path, "rb") as raw, cast(BinaryIO, gzip.open(raw) if gzipped else raw) as file:
        while lines := file.read(size) + file.readline():
            yield lines, raw.tell() / n_bytes


def _put_together(
    tables: Iterator[tuple[Any, float]], start: int, width: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """The tables one below the other, in an array that grows in place."""
    values, filled = np.empty((0, width - start)), 0
    names: list[str] = []
    for table, share in tables:
        stop = filled + table.num_rows
        if stop > len(values):
            # to what the rows so far let expect, for numpy writes zeros into what is new
            expected = int(1.01 * stop / share) + 1
            values.resize((expected, width - start), refcheck=False)
        for column in range(start, width):
            values[filled:stop, column - start] = table.column(column).to_numpy()
        if start:
            names += table.column(0).to_pylist()
        filled = stop
        del table  # before the next one is parsed
    values.resize((filled, width - start), refcheck=False)
    return values, np.array(names) if start else None
