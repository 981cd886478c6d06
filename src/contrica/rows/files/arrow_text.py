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
    width: int,
    variables: Sequence[int],
    texts: Sequence[int],
    *,
    gzipped: bool,
    decimal_comma: bool = False,
    gaps: Sequence[str] = (),
) -> tuple[np.ndarray, dict[int, np.ndarray]] | None:
    """Values and texts; None where pyarrow is not installed, or finds a cell that is not a number.

    Parameters
    ----------
    path : path
    delimiter : str
    n_skipped : int
        Lines of the header.
    width : int
        Cells in a row.
    variables, texts : sequence of int
        Which columns hold numbers, and which text.
    gzipped : bool
    decimal_comma : bool
        Whether that is how numbers are written.
    gaps : sequence of str
        Cells, in small letters, that are read as NaN, in capital ones too.

    Returns
    -------
    tuple of ndarray and dict, or None
        The values, and the cells of the columns of text by their number.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(i) for i in range(width)]
    numbers = set(variables)
    kinds = [pa.float64() if place in numbers else pa.string() for place in range(width)]
    parse = csv.ParseOptions(delimiter=delimiter)
    # an empty cell is not a number
    missing = [*gaps, *(cell.upper() for cell in gaps), *(["NaN"] if gaps else [])]
    convert = csv.ConvertOptions(
        column_types=dict(zip(names, kinds, strict=True)),
        null_values=missing,
        decimal_point="," if decimal_comma else ".",
    )

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
        return _put_together(tables(), variables, texts)
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
    tables: Iterator[tuple[Any, float]], variables: Sequence[int], texts: Sequence[int]
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """The tables one below the other, in an array that grows in place."""
    width, filled = len(variables), 0
    values = np.empty((0, width))
    cells: dict[int, list[str]] = {place: [] for place in texts}
    for table, share in tables:
        stop = filled + table.num_rows
        if stop > len(values):
            # to what the rows so far let expect, for numpy writes zeros into what is new
            expected = int(1.01 * stop / share) + 1
            values.resize((expected, width), refcheck=False)
        for column, place in enumerate(variables):
            values[filled:stop, column] = table.column(place).to_numpy()
        for place, found in cells.items():
            found += table.column(place).to_pylist()
        filled = stop
        del table  # before the next one is parsed
    values.resize((filled, width), refcheck=False)
    return values, {place: np.array(found) for place, found in cells.items()}
