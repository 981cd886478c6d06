"""Numbers in csv and tsv files, also gzipped, with a header and row names where there are any."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from contrica.errors import FileError, unmarked
from contrica.rows.files.arrow_text import read_body_by_arrow
from contrica.rows.files.shared import Table, bad_file, same_name, unknown_column

__all__ = ["read_text"]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Files larger than this are read by pyarrow where it is installed; to import it takes longer than to read
# a smaller one without it.
ARROW_BYTES = 2**20
# Records that tell what the first column is.
N_PEEKED = 100
# What people and programs write for a number that is missing, in small letters.
GAPS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "-", "--", ".", "?")
# A number that is not written as one: with a decimal comma, with spaces, in hexadecimal digits. 309_1 is
# a name, such as that of an animal's first replicate.
NUMBER_LIKE = re.compile(r"[+-]?(\d[\d.,' ]*(e[+-]?\d+)?|\d{1,3}(_\d{3})+|0x[\da-f]+)j?", re.I)


class _Layout(NamedTuple):
    """What the first lines of a text file say of the others.

    ``first`` is the first record, ``n_lines`` the lines it takes if it is a header, ``start`` the column
    in which the numbers begin, and ``width`` the number of cells in a row; without those of the column
    number ``taken``, which is no variable.
    """

    path: Path
    delimiter: str
    first: list[str]
    has_header: bool
    n_lines: int
    start: int
    width: int
    taken: int | None = None
    gaps: bool = False


def read_text(
    path: Path,
    delimiter: str,
    header: bool | None,
    column: str | None = None,
    *,
    gaps: bool = False,
) -> Table:
    """Values and names of a text file; by default the first cells say whether there is a header.

    With ``gaps`` empty cells, NA and the like are read as NaN.
    """
    with _reading_text(path):
        layout = _read_layout(path, delimiter, header, column)._replace(gaps=gaps)
        body = None
        if path.stat().st_size > ARROW_BYTES and column is None:
            body = read_body_by_arrow(
                *(path, delimiter, layout.n_lines, layout.start, layout.width, _is_gzipped(path)),
                gaps=GAPS if gaps else (),
            )
        # What pyarrow does not read is read again, to say where the file is wrong.
        values, row_names = body or _read_body(layout)
        labels = None if layout.taken is None else _read_labels(layout, layout.taken)
    return Table(values, _column_names(layout), row_names, labels)


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


def _is_name(cell: str) -> bool:
    """Whether a cell is text, and not a number that is missing or oddly written."""
    text = cell.strip()
    return not _is_number(text) and not _is_gap(text) and NUMBER_LIKE.fullmatch(text) is None


# --- header and row names ---


def _read_layout(
    path: Path, delimiter: str, header: bool | None, column: str | None = None
) -> _Layout:
    with _open_text(path) as lines:
        found = list(islice(_records(lines, delimiter), N_PEEKED))
    rows = [record for _, record in found]
    if not rows:
        raise bad_file("empty", path, "is empty", remedy="It needs one row per sample.")
    taken = None if column is None else _place_of(path, rows, header, column)
    rows = [_without(record, taken, len(rows[-1])) for record in rows]
    first = rows[0]
    has_header = _looks_like_header(first) if header is None else header
    has_header |= taken is not None  # its heading was found
    if has_header and len(rows) == 1:
        raise bad_file(
            "no-rows", path, "has a header but no rows", remedy="It needs one row per sample."
        )
    body = rows[1:] if has_header else rows
    width = len(body[0])
    names = sum(_is_name(row[0]) for row in body)
    has_index = width > 1 and _is_name(body[0][0]) and 2 * names > len(body)
    if has_header:
        # R leaves the heading of the index out; pandas leaves it empty.
        has_index |= first[0].strip() == "" or width == len(first) + 1
        _check_headings(path, len(first), width, int(has_index))
    n_lines = found[0][0] if has_header else 0
    return _Layout(path, delimiter, first, has_header, n_lines, int(has_index), width, taken)


def _place_of(path: Path, rows: list[list[str]], header: bool | None, column: str) -> int:
    """Number, in the rows, of the column that a heading names."""
    first = rows[0]
    named = _looks_like_header(first) if header is None else header
    headings = [cell.strip() for cell in first] if named else []
    if column not in headings:
        raise unknown_column(path, column, [heading for heading in headings if heading])
    # R leaves the heading of the index out
    return headings.index(column) + max(len(rows[-1]) - len(first), 0)


def _without(record: list[str], taken: int | None, width: int) -> list[str]:
    """A record without a cell, whose number counts from the end of rows of so many cells."""
    if taken is None:
        return record
    place = taken - width + len(record)
    return record[:place] + record[place + 1 :]


def _check_headings(path: Path, n_headings: int, width: int, start: int) -> None:
    """Refuse more or fewer headings than columns, as names would be those of others."""
    if n_headings not in (width, width - start):
        raise FileError(
            "headings",
            f"{unmarked(path)} has {n_headings} headings over {width} columns",
            remedy="Give every column one. Is the first line a comment, or is the delimiter another? csv "
            "files need commas, tsv files tabs.",
        )


def _looks_like_header(first: list[str]) -> bool:
    """Whether a first line names columns: by text, or by the running numbers that pandas writes."""
    rest = first[1:] if len(first) > 1 else first
    if any(_is_name(cell) for cell in rest):
        return True
    if not all(_is_number(cell) for cell in rest):
        return False  # numbers that are missing, or badly written: the error will name one
    if first[0].strip() == "":  # above an index; but whole numbers only are names
        return all(float(cell).is_integer() for cell in rest)
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
    for count, (line, record) in enumerate(_records(lines, layout.delimiter)):
        if count or not layout.has_header:
            yield line, _without(record, layout.taken, len(record))


def _read_labels(layout: _Layout, place: int) -> np.ndarray:
    """Cells of the column that is taken out."""
    with _open_text(layout.path) as lines:
        records = islice(_records(lines, layout.delimiter), int(layout.has_header), None)
        return np.array([record[place].strip() for _, record in records])


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
                if not (_is_number(cell) or (layout.gaps and _is_gap(cell))):
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
    remedy = "Fix it; or, if the column is no variable, take it out, or give its name as `groups`."
    if _is_gap(cell):
        remedy = "Fix it, or fill or drop missing values first; fit does, with `missing=impute`."
    if layout.width == 1 or ";" in cell:
        remedy = "Is it the delimiter? csv files need commas, tsv files tabs."
    return FileError(
        "not-numbers",
        f"{unmarked(layout.path)}: row {line}, column {column + 1}{unmarked(_shortened(name))} holds "
        f"{unmarked(content)}, not a number",
        remedy=remedy,
    )


def _shortened(text: str, max_length: int = 40) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
