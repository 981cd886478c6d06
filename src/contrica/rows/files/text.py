"""Numbers in csv and tsv files, also gzipped, with a header and row names where there are any."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from contrica.errors import FileError, unmarked
from contrica.rows.files.arrow_text import read_body_by_arrow
from contrica.rows.files.shared import Table, bad_file, same_name

__all__ = ["read_text"]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Files larger than this are read by pyarrow where it is installed; to import it takes longer than to read
# a smaller one without it.
ARROW_BYTES = 2**20
# Cells that say that a value is missing, in any case of letters.
GAPS = ("", "na", "nan", "n/a", "#n/a", "null")


class _Layout(NamedTuple):
    """What the first lines of a text file say of the others.

    ``first`` is the first record, ``n_lines`` the lines it takes if it is a header, ``start`` the column
    in which the numbers begin, and ``width`` the number of cells in a row.
    """

    path: Path
    delimiter: str
    first: list[str]
    has_header: bool
    n_lines: int
    start: int
    width: int
    gaps: bool = False


def read_text(path: Path, delimiter: str, header: bool | None, *, gaps: bool = False) -> Table:
    """Values and names of a text file; by default the first cells say whether there is a header.

    With ``gaps`` empty cells and NA are read as NaN.
    """
    with _reading_text(path):
        layout = _read_layout(path, delimiter, header, gaps)
        body = None
        if path.stat().st_size > ARROW_BYTES:
            body = read_body_by_arrow(
                *(path, delimiter, layout.n_lines, layout.start, layout.width, _is_gzipped(path)),
                gaps=GAPS if gaps else (),
            )
        # What pyarrow does not read is read again, to say where the file is wrong.
        values, row_names = body or _read_body(layout)
    return Table(values, _column_names(layout), row_names)


def _is_gzipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if _is_gzipped(path) else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


@contextmanager
def _reading_text(path: Path) -> Iterator[None]:
    """What is wrong with the bytes of a text file becomes one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise bad_file(
            "not-text", path, "is not a text file in UTF-8", remedy="Save it as csv in UTF-8."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise bad_file(
            "damaged", path, f"is a damaged gzip file ({error})", remedy="Make or copy it anew."
        ) from error
    except csv.Error as error:
        raise bad_file(
            "not-a-table",
            path,
            f"is not a table of numbers ({error})",
            remedy="Check its delimiter.",
        ) from error


def _records(lines: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Non-empty records with the number of their line."""
    reader = csv.reader(lines, delimiter=delimiter)
    for record in reader:
        if record:
            yield reader.line_num, record


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, numpy and people do not


def _is_gap(cell: str) -> bool:
    return cell.strip().lower() in GAPS


def _is_value(cell: str, gaps: bool) -> bool:
    return _is_number(cell) or (gaps and _is_gap(cell))


# --- header and row names ---


def _read_layout(path: Path, delimiter: str, header: bool | None, gaps: bool) -> _Layout:
    with _open_text(path) as lines:
        found = [pair for pair, _ in zip(_records(lines, delimiter), range(2), strict=False)]
    rows = [record for _, record in found]
    if not rows:
        raise bad_file("empty", path, "is empty", remedy="It needs one row per sample.")
    first = rows[0]
    has_header = _looks_like_header(first, gaps) if header is None else header
    if has_header and len(rows) == 1:
        raise bad_file(
            "no-rows", path, "has a header but no rows", remedy="It needs one row per sample."
        )
    body = rows[1] if has_header else first
    has_index = not _is_value(body[0], gaps) and body[0].strip() != "" and len(body) > 1
    if has_header:
        # R leaves the heading of the index out; pandas leaves it empty.
        has_index |= first[0].strip() == "" or len(body) == len(first) + 1
    n_lines = found[0][0] if has_header else 0
    return _Layout(path, delimiter, first, has_header, n_lines, int(has_index), len(body), gaps)


def _looks_like_header(first: list[str], gaps: bool) -> bool:
    """Whether a first line names columns: by text, or by the running numbers that pandas writes."""
    rest = first[1:] if len(first) > 1 else first
    if first[0].strip() == "" or not all(_is_value(cell, gaps) for cell in rest):
        return True
    # 0,1,2,… over all columns, or running numbers behind a heading of the row names
    if _is_number(first[0]):
        return len(first) > 2 and [cell.strip() for cell in first] == _counted(0, len(first))
    counted = (_counted(0, len(rest)), _counted(1, len(rest)))
    return len(rest) > 2 and [cell.strip() for cell in rest] in counted


def _counted(start: int, count: int) -> list[str]:
    return [str(i) for i in range(start, start + count)]


def _column_names(layout: _Layout) -> np.ndarray | None:
    if not layout.has_header:
        return None
    first = layout.first
    columns = np.array(
        [cell.strip() for cell in first[len(first) - (layout.width - layout.start) :]]
    )
    names, counts = np.unique(columns, return_counts=True)
    if counts.max() > 1:
        raise same_name(layout.path, str(names[counts.argmax()]))
    return columns


# --- the body, without pyarrow ---


def _body_records(layout: _Layout, lines: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Records below the header, with the number of their line."""
    for count, pair in enumerate(_records(lines, layout.delimiter)):
        if count or not layout.has_header:
            yield pair


def _read_body(layout: _Layout) -> tuple[np.ndarray, np.ndarray | None]:
    """Values and row names, the records checked for width on the way."""
    names: list[str] = []

    def numbers(lines: TextIO) -> Iterator[str]:
        for line, record in _body_records(layout, lines):
            if len(record) != layout.width:
                raise _uneven(layout, line, record)
            if layout.start:
                names.append(record[0])
            body = record[layout.start :]
            if layout.gaps:
                body = ["nan" if _is_gap(cell) else cell for cell in body]
            cells = layout.delimiter.join(body)
            if cells.count(layout.delimiter) >= layout.width - layout.start:  # in a quoted cell
                raise _bad_cell(layout)
            yield cells

    try:
        with _open_text(layout.path) as lines:
            values = np.loadtxt(numbers(lines), delimiter=layout.delimiter, comments=None, ndmin=2)
    except FileError:
        raise
    except ValueError as error:
        raise _bad_cell(layout) from error
    return values, np.array(names) if layout.start else None


def _uneven(layout: _Layout, line: int, record: list[str]) -> FileError:
    return FileError(
        "width",
        f"{unmarked(layout.path)}: row {line} has {len(record)} cells where {layout.width} are "
        "expected",
        remedy="Fix the row.",
    )


def _bad_cell(layout: _Layout) -> FileError:
    """The error that says where the file stops being a matrix of numbers."""
    with _open_text(layout.path) as lines:
        for line, record in _body_records(layout, lines):
            for column, cell in enumerate(record[layout.start :], start=layout.start):
                if not _is_value(cell, layout.gaps):
                    return _not_a_number(layout, line, column, cell)
    return bad_file(
        "not-numbers",
        layout.path,
        "could not be read as a matrix of numbers",
        remedy="Check its delimiter and its cells.",
    )


def _not_a_number(layout: _Layout, line: int, column: int, cell: str) -> FileError:
    place = column - (layout.width - len(layout.first))
    known = layout.has_header and 0 <= place < len(layout.first)
    heading = layout.first[place] if known else ""
    name = f" ({heading!r})" if heading else ""
    content = repr(_shortened(cell)) if cell.strip() else "an empty cell"
    is_delimiter = layout.width == 1 or ";" in cell
    return FileError(
        "not-numbers",
        f"{unmarked(layout.path)}: row {line}, column {column + 1}{unmarked(_shortened(name))} holds "
        f"{unmarked(content)}, not a number",
        remedy="Is it the delimiter? csv files need commas, tsv files tabs."
        if is_delimiter
        else "Fix it, or fill or drop missing values first; fit does, with `missing=impute`.",
    )


def _shortened(text: str, max_length: int = 40) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
