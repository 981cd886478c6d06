"""What single columns say against a fit, by a few rows: counts, identifiers and copies."""

from __future__ import annotations

import numpy as np

from contrica.cli.pair import Data, Pair
from contrica.errors import DelicateDataWarning, unmarked, warn
from contrica.inference._check import column_findings
from contrica.inference._findings import Finding
from contrica.rows import Rows
from contrica.rows.files.table import ID

__all__ = ["warn_of_columns"]

# Rows and numbers of each dataset that are sampled, and rows that are enough of rows on disk.
ROWS, NUMBERS, ENOUGH = 2000, 2_000_000, 200
# Files whose variables --drop does not name.
WITH_VAR = (".h5ad", ".zarr")


def warn_of_columns(pair: Pair, *, images: bool = False) -> None:
    """Warn of raw counts, of identifiers among the variables, and of variables that are there twice.

    Parameters
    ----------
    pair : Pair
        At most 2000 rows of each dataset are sampled; none where a cluster reads them.
    images : bool
        Whether variables are pixels, which are whole numbers anyway.
    """
    datasets = (pair.fore, *pair.backs)
    if any(data.shared is not None for data in datasets):
        return
    parts = [_some_rows(data) for data in datasets]
    told = [_is_told_of(data, part) for data, part in zip(datasets, parts, strict=True)]
    kept = np.flatnonzero(~np.logical_or.reduce(told))
    names = np.array(pair.fore.names, dtype=object)[kept]
    can_drop = pair.fore.columns is not None and not pair.files[0].rstrip("/").endswith(WITH_VAR)
    for each in column_findings([part[:, kept] for part in parts], list(map(str, names))):
        if not (images and each.code == "raw-counts"):
            warn(_warning(each, can_drop=can_drop))


def _some_rows(data: Data) -> np.ndarray:
    """Rows from all over an array; of rows on disk the first ones. Gaps, and infinity, are NaN."""
    count = int(np.clip(NUMBERS // max(data.n_features, 1), 50, ROWS))
    if isinstance(data.values, Rows):
        blocks: list[np.ndarray] = []
        for block in data.values.blocks(count):
            blocks.append(np.asarray(block)[:count])
            if sum(map(len, blocks)) >= min(count, ENOUGH):
                break
        rows = np.vstack(blocks)[:count]
    else:
        rows = data.values[:: -(-len(data.values) // count) or 1]
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
    whole = np.isnan(rows) | (rows == np.round(rows))
    return found & whole.all(axis=0)


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
