"""Numbers in csv and tsv files, also gzipped, with a header and row names where there are any."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
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
# A number with a decimal comma, as programs write it where people do.
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.I)


class _Layout(NamedTuple):
    """What the first lines of a text file say of the others.

    ``first`` is the first record, ``n_lines`` the lines it takes if it is a header, ``width`` the number
    of cells in a row. Of these, ``variables`` are numbers, the one at ``names_at`` names the rows, and
    ``taken``, by name, are no variables. ``texts`` are the variables that look like text.
    """

    path: Path
    delimiter: str
    first: list[str]
    has_header: bool
    n_lines: int
    width: int
    variables: list[int]
    names_at: int | None
    taken: dict[str, int]
    texts: list[str]
    decimal_comma: bool
    gaps: bool = False

    def heading(self, place: int) -> str:
        """The heading over a cell; R leaves that of the index out."""
        place -= self.width - len(self.first)
        return self.first[place].strip() if self.has_header and place >= 0 else ""


class _Body(NamedTuple):
    """Values, and the cells of the columns that are no variables."""

    values: np.ndarray
    texts: dict[int, np.ndarray]


def read_text(
    path: Path,
    delimiter: str,
    header: bool | None,
    metadata: Sequence[str] = (),
    *,
    all_metadata: bool = False,
    gaps: bool = False,
) -> Table:
    """Values and names of a text file; by default the first cells say whether there is a header.

    Columns in ``metadata``, and with ``all_metadata`` those of text, are no variables. With ``gaps``
    empty cells, NA and the like are read as NaN.
    """
    with _reading_text(path):
        layout = _read_layout(path, delimiter, header, metadata, all_metadata)._replace(gaps=gaps)
        columns = _column_names(layout)
        body = None
        if path.stat().st_size > ARROW_BYTES:
            body = _read_by_arrow(layout)
        # What pyarrow does not read is read again, to say where the file is wrong.
        body = body or _read_body(layout)
    return Table(
        body.values,
        columns,
        None if layout.names_at is None else body.texts[layout.names_at],
        {
            name: np.char.strip(body.texts[place].astype(str))
            for name, place in layout.taken.items()
        },
    )


def _read_by_arrow(layout: _Layout) -> _Body | None:
    texts = [*([] if layout.names_at is None else [layout.names_at]), *layout.taken.values()]
    found = read_body_by_arrow(
        *(layout.path, layout.delimiter, layout.n_lines, layout.width, layout.variables, texts),
        gzipped=_is_gzipped(layout.path),
        decimal_comma=layout.decimal_comma,
        gaps=GAPS if layout.gaps else (),
    )
    return None if found is None else _Body(*found)


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
    path: Path,
    delimiter: str,
    header: bool | None,
    metadata: Sequence[str],
    all_metadata: bool,
) -> _Layout:
    delimiter = _delimiter_of(path, delimiter)
    with _open_text(path) as lines:
        found = list(islice(_records(lines, delimiter), N_PEEKED))
    rows = [record for _, record in found]
    if not rows:
        raise bad_file("empty", path, "is empty", remedy="It needs one row per sample.")
    first = rows[0]
    has_header = _looks_like_header(first) if header is None else header
    if has_header and len(rows) == 1:
        raise bad_file(
            "no-rows", path, "has a header but no rows", remedy="It needs one row per sample."
        )
    body = rows[1:] if has_header else rows
    n_lines, width = found[0][0] if has_header else 0, len(body[0])
    taken = _places_of(path, first if has_header else [], width, metadata)
    layout = _Layout(
        *(path, delimiter, first, has_header, n_lines, width),
        variables=[place for place in range(width) if place not in taken.values()],
        names_at=None,
        taken=taken,
        texts=[],
        decimal_comma=delimiter != "," and _has_decimal_commas(body),
    )
    return _without_names(layout, body, all_metadata)


def _without_names(layout: _Layout, body: list[list[str]], all_metadata: bool) -> _Layout:
    """The layout with what names the rows, and what is text, told apart from the variables."""
    path, variables, taken = layout.path, list(layout.variables), dict(layout.taken)
    index = variables[0] if variables and _is_index(layout, variables[0], body) else None
    if layout.has_header:
        _check_headings(path, len(layout.first), layout.width, int(index is not None))
    repeated = index is not None and len({row[index] for row in body if index < len(row)}) < len(
        body
    )
    if all_metadata and repeated and index is not None and layout.heading(index):
        index = None  # a condition or a donor, not a name
    variables = [place for place in variables if place != index]
    texts = [place for place in variables if _is_text(place, body) and layout.heading(place)]
    if all_metadata:
        taken |= {layout.heading(place): place for place in texts}
        text = set(texts)
        variables, texts = [place for place in variables if place not in text], []
    if not variables:
        raise bad_file(
            "not-numbers",
            path,
            "has no columns of numbers, one for each variable",
            remedy="Add them, or check its delimiter: csv files need commas or semicolons, tsv "
            "files tabs.",
        )
    named = [layout.heading(place) for place in texts]
    return layout._replace(variables=variables, names_at=index, taken=taken, texts=named)


def _is_index(layout: _Layout, place: int, body: list[list[str]]) -> bool:
    """Whether a column, the first one that is left, names the rows."""
    if layout.has_header:
        # R leaves the heading of the index out; pandas leaves it empty.
        if place == 0 and layout.width == len(layout.first) + 1:
            return True
        if layout.heading(place) == "":
            return True
    return len(layout.variables) > 1 and _is_name(body[0][place]) and _is_text(place, body)


def _is_text(place: int, body: list[list[str]]) -> bool:
    """Whether most cells of a column, but for those that are missing, are text."""
    cells = [row[place] for row in body if place < len(row) and not _is_gap(row[place])]
    return 2 * sum(map(_is_name, cells)) > len(cells)


def _delimiter_of(path: Path, delimiter: str) -> str:
    """That of the ending, or the semicolon where programs write commas into numbers."""
    if delimiter != ",":
        return delimiter
    with _open_text(path) as lines:
        head = list(islice(lines, 20))
    widths = [len(record) for record in csv.reader(head, delimiter=";") if record]
    regular = widths and min(widths) > 1 and max(widths) - min(widths) <= 1
    return ";" if regular else ","


def _has_decimal_commas(body: list[list[str]]) -> bool:
    return any(DECIMAL_COMMA.fullmatch(cell.strip()) for row in body for cell in row)


def _places_of(path: Path, first: list[str], width: int, names: Sequence[str]) -> dict[str, int]:
    """Numbers, in the rows, of the columns that headings name."""
    headings, places = [cell.strip() for cell in first], {}
    for name in names:
        if name not in headings:
            raise unknown_column(path, name, [heading for heading in headings if heading])
        if headings.count(name) > 1:
            raise same_name(path, name)
        # R leaves the heading of the index out
        places[name] = headings.index(name) + max(width - len(first), 0)
    return places


def _check_headings(path: Path, n_headings: int, width: int, start: int) -> None:
    """Refuse more or fewer headings than columns, as names would be those of others."""
    if n_headings not in (width, width - start):
        raise FileError(
            "headings",
            f"{unmarked(path)} has {n_headings} headings over {width} columns",
            remedy="Give every column one. Is the first line a comment, or is the delimiter another? csv "
            "files need commas or semicolons, tsv files tabs.",
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
    columns = np.array([layout.heading(place) for place in layout.variables])
    names, counts = np.unique(columns, return_counts=True)
    if counts.max() > 1:
        raise same_name(layout.path, str(names[counts.argmax()]))
    return columns


# --- the body, without pyarrow ---


def _body_records(layout: _Layout, lines: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Records below the header, with the number of their line."""
    return islice(_records(lines, layout.delimiter), int(layout.has_header), None)


def _read_body(layout: _Layout) -> _Body:
    """Values and texts, the records checked for width on the way."""
    places = [*([] if layout.names_at is None else [layout.names_at]), *layout.taken.values()]
    texts: dict[int, list[str]] = {place: [] for place in places}

    def numbers(lines: TextIO) -> Iterator[str]:
        for line, record in _body_records(layout, lines):
            if len(record) != layout.width:
                raise _uneven(layout, line, record)
            for place, cells in texts.items():
                cells.append(record[place])
            body = [_number(layout, record[place]) for place in layout.variables]
            row = layout.delimiter.join(body)
            if row.count(layout.delimiter) >= len(body):  # in a quoted cell
                raise _bad_cell(layout)
            yield row

    try:
        with _open_text(layout.path) as lines:
            values = np.loadtxt(numbers(lines), delimiter=layout.delimiter, comments=None, ndmin=2)
    except FileError:
        raise
    except ValueError as error:
        raise _bad_cell(layout) from error
    return _Body(values, {place: np.array(cells) for place, cells in texts.items()})


def _number(layout: _Layout, cell: str) -> str:
    """A cell as numpy reads it; what is not a number in this file is none for numpy either."""
    if layout.gaps and _is_gap(cell):
        return "nan"
    if layout.decimal_comma:
        return "." if "." in cell else cell.replace(",", ".")  # 1.234 may be a thousand
    return cell


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
            for place in layout.variables:
                if place < len(record) and not _is_number(_number(layout, record[place])):
                    return _not_a_number(layout, line, place, record[place])
    return bad_file(
        "not-numbers",
        layout.path,
        "could not be read as a matrix of numbers",
        remedy="Check its delimiter and its cells.",
    )


def _not_a_number(layout: _Layout, line: int, place: int, cell: str) -> FileError:
    heading = layout.heading(place)
    name = f" ({heading!r})" if heading else ""
    content = repr(_shortened(cell)) if cell.strip() else "an empty cell"
    remedy = "Fix it; or, if the column is no variable, take it out"
    remedy += f", with `metadata={unmarked(heading)}`." if heading else "."
    if layout.texts:
        texts = unmarked(",".join(layout.texts))
        remedy = f"Columns of text are no variables: take them out, with `metadata={texts}`."
    if _is_gap(cell):
        remedy = "Add `missing=impute` to a fit, or fill or drop missing values first."
    if layout.decimal_comma and "." in cell:
        remedy = "The numbers of this file have decimal commas: write this one so too."
    if layout.width == 1 or (";" in cell and layout.delimiter != ";"):
        remedy = "Is it the delimiter? csv files need commas or semicolons, tsv files tabs."
    return FileError(
        "not-numbers",
        f"{unmarked(layout.path)}: row {line}, column {place + 1}{unmarked(_shortened(name))} holds "
        f"{unmarked(content)}, not a number",
        remedy=remedy,
    )


def _shortened(text: str, max_length: int = 40) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
