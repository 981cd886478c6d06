"""What single columns say against a fit, by a few rows: counts, identifiers and copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from contrica.cli.pair import Data, Pair
from contrica.errors import DelicateDataWarning, unmarked, warn
from contrica.inference._check import column_findings
from contrica.inference._donors import ask_for_donors
from contrica.inference._findings import Finding
from contrica.inference._identifiers import is_whole
from contrica.rows import Rows
from contrica.rows.files.table import ID
from contrica.rows.protocol import block_rows, iterate_blocks

__all__ = ["warn_of_columns"]

# Rows and numbers of each dataset that are sampled, and spans that they are in on disk; and rows that are
# enough where only the first can be read.
ROWS, NUMBERS, SPANS, ENOUGH = 2000, 2_000_000, 20, 200
# Numbers of single columns that are read at most, of rows at equal distances.
MANY = 20_000_000
# Files whose variables --drop does not name.
WITH_VAR = (".h5ad", ".zarr")


def warn_of_columns(pair: Pair, *, images: bool = False) -> None:
    """Warn of raw counts, of identifiers and copies among the variables, and of donors not in groups.

    Parameters
    ----------
    pair : Pair
        At most 2000 rows from all over each dataset are sampled; none where a cluster reads them. Columns
        that seem to be identifiers or copies are then read whole.
    images : bool
        Whether variables are pixels, which are whole numbers anyway.
    """
    datasets = (pair.fore, *pair.backs)
    if not any(data.groups is not None for data in datasets):
        _ask_for_donors(pair)
    if any(data.shared is not None for data in datasets):
        return
    parts = [_some_rows(data) for data in datasets]
    told = [_is_told_of(data, part) for data, part in zip(datasets, parts, strict=True)]
    kept = np.flatnonzero(~np.logical_or.reduce(told))
    names = np.array(pair.fore.names, dtype=object)[kept]
    can_drop = pair.fore.columns is not None and not pair.files[0].rstrip("/").endswith(WITH_VAR)
    found = column_findings(
        [part[:, kept] for part in parts],
        list(map(str, names)),
        [len(data.values) for data in datasets],
        _all_rows(datasets, kept),
    )
    n_first = [len(part) for data, part in zip(datasets, parts, strict=True) if not _can_skip(data)]
    where = f"in the first {min(n_first)} rows " if n_first else ""
    for each in found:
        if each.code != "raw-counts":
            warn(_warning(each, can_drop=can_drop))
        elif not images:
            warn(_warning(replace(each, words=where + each.words), can_drop=can_drop))


def _ask_for_donors(pair: Pair) -> None:
    """Ask about a column of the metadata that names donors, but for those by which rows were chosen."""
    columns = {
        name: [data.metadata[name] for data in (pair.fore, *pair.backs) if name in data.metadata]
        for name in pair.fore.metadata
        if name not in pair.chosen_by
    }
    ask_for_donors(columns, where="there is", rows="rows")


def _can_skip(data: Data) -> bool:
    return not isinstance(data.values, Rows) or data.values.can_skip


def _some_rows(data: Data) -> np.ndarray:
    """Rows from all over a dataset, or its first where it cannot skip any. Gaps and infinity are NaN."""
    n, rng = len(data.values), np.random.default_rng(0)
    count = int(np.clip(NUMBERS // max(data.n_features, 1), 50, ROWS))
    if not isinstance(data.values, Rows):
        return _with_gaps(data.values[np.sort(rng.choice(n, min(count, n), replace=False))])
    if _can_skip(data):
        return _with_gaps(np.vstack(list(data.values.spans(_places(n, count, rng)))))
    blocks: list[np.ndarray] = []
    for block in data.values.blocks(count):
        blocks.append(np.asarray(block)[:count])
        if sum(map(len, blocks)) >= min(count, ENOUGH):
            break
    return _with_gaps(np.vstack(blocks)[:count])


def _places(n_rows: int, count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Where to read so many rows: a short span in each of equal parts."""
    if n_rows <= count:
        return [(0, n_rows)]
    ends = np.linspace(0, n_rows, SPANS + 1).astype(int)
    size = max(count // SPANS, 1)
    starts = [int(rng.integers(a, max(b - size, a) + 1)) for a, b in pairwise(ends)]
    return [(start, min(start + size, n_rows)) for start in starts]


def _all_rows(
    datasets: Sequence[Data], kept: np.ndarray
) -> Callable[[Sequence[int]], list[np.ndarray]]:
    """What reads some of the ``kept`` columns of every dataset, whole up to many millions of rows."""

    def read(columns: Sequence[int]) -> list[np.ndarray]:
        own = kept[list(columns)]
        n_rows = sum(len(data.values) for data in datasets)
        step = -(-n_rows * own.size // MANY)
        return [_with_gaps(_every(data.values, step, own)) for data in datasets]

    return read


def _every(values: Any, step: int, columns: np.ndarray) -> np.ndarray:
    """Every so many rows of some columns."""
    found, start = [], 0
    for block in iterate_blocks(values, block_rows(values.shape[1])):
        found.append(np.asarray(block)[-start % step :: step, columns])
        start += len(block)
    return np.vstack(found)


def _with_gaps(rows: Any) -> np.ndarray:
    rows = np.asarray(rows, dtype=float)
    return np.where(np.isfinite(rows), rows, np.nan)


def _is_told_of(data: Data, rows: np.ndarray) -> np.ndarray:
    """Variables of which the reader of a table has warned, by their headings or as counting rows."""
    found = np.zeros(data.n_features, dtype=bool)
    if data.columns is None or isinstance(data.values, Rows):
        return found
    found[:] = [ID.search(str(name)) is not None for name in data.columns]
    first = data.values[:, 0] - (
        np.arange(len(data.values)) if data.numbers is None else data.numbers
    )
    found[0] |= bool(first[0] in (0, 1) and (first == first[0]).all())
    return found & is_whole(rows)


def _warning(found: Finding, *, can_drop: bool) -> DelicateDataWarning:
    """A finding as a warning, with what the shell can do about it."""
    remedy = found.advice
    if found.code == "raw-counts":
        remedy = (
            "If they are, divide each row by its total, multiply by a common one, and take log1p first; "
            "pixels and grades may stay."
        )
    elif can_drop:
        remedy = f"{found.advice[:-1]}, with `metadata`."
    return DelicateDataWarning(found.code, unmarked(found.words), remedy=remedy)
