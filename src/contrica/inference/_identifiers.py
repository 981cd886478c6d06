"""Columns that number or name the rows, and measure nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from contrica.rows.files.table import ID

__all__ = ["identifiers", "is_whole"]

# Rows from which on a column can be called an identifier, and columns that can be one at a time.
MIN_ROWS, MAX_COLUMNS = 21, 3
# Rows of one number that chance would give, where one with different numbers in all rows is none of it.
CHANCE_REPEATS = 8
# Headings such as sampleID, which ID does not know.
JOINED_ID = re.compile(r"[a-z](ID|Id|Nr|No)$")
# Whole numbers that doubles tell apart.
EXACT = 2.0**53


def is_whole(rows: np.ndarray) -> np.ndarray:
    """Which columns are of whole numbers, gaps aside.

    Parameters
    ----------
    rows : ndarray of shape (n, p)

    Returns
    -------
    ndarray of bool, shape (p,)
    """
    return np.asarray(((rows == np.round(rows)) | np.isnan(rows)).all(axis=0))


def identifiers(
    parts: Sequence[np.ndarray], names: Sequence[str], n_rows: Sequence[int] | None = None
) -> list[int]:
    """Columns of whole numbers that are different in every row, of all or of each, and number them.

    That they are different is no evidence, for so are volumes and large counts. They also have a heading
    that says so, or follow one another, or are so dense that chance would have repeated some. Where more
    than a few columns are like that it is what such data are like.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n, p)
        Rows of each dataset, in their order. Gaps are NaN.
    names : sequence of str
        Of the columns.
    n_rows : sequence of int, optional
        Rows of each dataset, of which ``parts`` are a sample.

    Returns
    -------
    list of int
    """
    both = np.vstack(parts)
    sizes = [len(part) for part in parts] if n_rows is None else list(n_rows)
    found = [
        j
        for j in map(int, np.flatnonzero(is_whole(both)))
        if _is_id(both[:, j], names[j], sum(sizes))
        or all(_is_id(part[:, j], names[j], n) for part, n in zip(parts, sizes, strict=True))
    ]
    n_varying = int(np.sum(np.fmax.reduce(both, axis=0) > np.fmin.reduce(both, axis=0)))
    return found if len(found) <= min(MAX_COLUMNS, max(n_varying // 2, 1)) else []


def _is_id(column: np.ndarray, name: str, n_rows: int) -> bool:
    column = column[~np.isnan(column)]
    repeats = column.size - np.unique(column).size
    if column.size < MIN_ROWS or repeats >= 0.001 * column.size:
        return False
    steps = np.diff(column)
    if ID.search(name) or JOINED_ID.search(name) or (steps > 0).all() or (steps < 0).all():
        return True
    # of n whole numbers among R possible ones n²/2R pairs are equal by chance, or more
    return n_rows**2 / (2 * _n_possible(column)) >= CHANCE_REPEATS * (1 + repeats)


def _n_possible(column: np.ndarray) -> float:
    """How many numbers there are from the least to the largest one, in their common step."""
    reach = float(np.ptp(column))
    if np.abs(column).max() >= EXACT:
        return reach + 1
    step = int(np.gcd.reduce((column - column.min()).astype(np.int64)))
    return reach / max(step, 1) + 1
