"""Before a fit: are these data fit to be contrasted?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.estimators._background import Background, group_labels
from contrica.inference._findings import Finding, Report, joined, unusual
from contrica.rows.dataset import Dataset, check_same_variables, read_datasets
from contrica.rows.groups import Groups
from contrica.rows.protocol import Rows
from contrica.solvers.selection import searchable

__all__ = ["check"]

# Largest over smallest spread of the variables from which units differ; rows that are read closely.
UNEQUAL_UNITS, CLOSE_ROWS = 100.0, 20000
# Share of a fourth moment that few rows may have.
FEW_ROWS_SHARE = 0.5
# Dimensions that "auto" works in at most.
DIMENSIONS = 30


def check(
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    batches: Any = None,
    background_batches: Any = None,
) -> Report:
    """Look at data before a fit, and say what speaks against it.

    Sample sizes against dimensions, units, counts, columns that are numbers of rows or copies of one
    another, rows and groups that dominate, datasets that are swapped, batches that are confounded with
    the two datasets. Every finding says what to do. Nothing is fitted.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Foreground, in memory; of sparse rows and of very many the first 20 000 are read closely.
    background : array-like of shape (n_background_samples, n_features) or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        As of ``fit``.
    batches, background_batches : array-like of shape (n_rows,), optional
        In which batch, plate or run each row was measured.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(3.0, (500, 4))
    >>> check(X, background=X[::2]).codes
    ('raw-counts',)
    """
    if background is None:
        raise DataError(
            "no-background",
            "`background` is None",
            "what is new is measured against one",
            "Pass its rows.",
            "background",
        )
    labels = group_labels(background, groups, background_groups)
    background = background.data if isinstance(background, Background) else background
    datasets = [Dataset(X, "X"), Dataset(background, "background")]
    check_same_variables(datasets)
    read_datasets(datasets)
    if labels is not None:
        for part, (name, own) in zip(datasets, labels.of_each(1), strict=True):
            part.group(own, name)
    fore, back = (_some_rows(part) for part in datasets)
    given = datasets[0].names
    names = [f"x{i}" for i in range(fore.shape[1])] if given is None else list(map(str, given))
    sizes = (len(datasets[0]), len(datasets[1]))
    findings = [
        *_sizes(*sizes, fore.shape[1]),
        *_columns(fore, back, names),
        *_rows(fore, back),
        *_swapped(fore, back),
        *_group_sizes([part.groups for part in datasets]),
        *_batches(batches, background_batches, sizes),
    ]
    about = f"{sizes[0]} foreground and {sizes[1]} background rows over {fore.shape[1]} variables"
    return Report.of(findings, about)


def _some_rows(part: Dataset) -> np.ndarray:
    rows = part.rows
    if isinstance(rows, Rows):
        return np.asarray(next(iter(rows.blocks(min(len(rows), CLOSE_ROWS)))), dtype=float)
    return np.asarray(rows[:CLOSE_ROWS], dtype=float)


def _sizes(n: int, m: int, p: int) -> Iterator[Finding]:
    """The paper's N1 ~ p³ and N2 ~ p⁴, in the dimensions worked in."""
    d = min(p, DIMENSIONS)
    if min(n, m) <= d:
        yield Finding(
            "fewer-rows-than-dimensions",
            "serious",
            f"{min(n, m)} rows for {d} dimensions: covariances are singular, and contrast is not defined "
            "in all directions",
            f"Set n_pcs to at most {max(min(n, m) // 5, 2)}, or add rows.",
        )
    elif not searchable(d, n_datasets=2) or min(n, m) < comb(d + 3, 4):
        yield Finding(
            "few-rows-for-cumulants",
            "note",
            f"{n} foreground and {m} background rows in {d} dimensions are few for fourth cumulants, for "
            f"which the paper's error bounds ask about p³ = {d**3} and p⁴ = {d**4} rows",
            'The default takes solver "subspace", which needs far fewer; "joint" and "paper" need fewer '
            "dimensions (n_pcs) or more rows.",
        )


def _columns(fore: np.ndarray, back: np.ndarray, names: Sequence[str]) -> Iterator[Finding]:
    both = np.vstack([fore, back])
    spread = both.std(axis=0)
    whole = (both == np.round(both)).all(axis=0)
    ids = [int(j) for j in np.flatnonzero(whole & (spread > 0)) if _is_id(both[:, j])]
    if ids:
        yield Finding(
            "looks-like-an-id",
            "serious",
            f"{joined([names[j] for j in ids])}: whole numbers that are different in every row, as "
            "identifiers are",
            "Leave such columns out.",
        )
    rest = whole & (spread > 0)
    rest[ids] = False
    if (
        (both >= 0).all()
        and rest.sum() > 0.9 * max(np.sum(spread > 0) - len(ids), 1)
        and both.max() > 2
    ):
        yield Finding(
            "raw-counts",
            "serious",
            "the data look like raw counts: whole numbers, none negative",
            "Divide each row by its total, multiply by a common one, and take log1p.",
        )
    copies = _duplicates(both, spread, names)
    if copies:
        yield Finding(
            "duplicated-columns",
            "careful",
            f"columns that are the same up to scale: {joined(copies)}",
            "Keep one of each.",
        )
    spread[ids] = 0  # told of already
    known = spread[spread > 0]
    if known.size > 1 and known.max() / np.median(known) > UNEQUAL_UNITS:
        largest = [names[j] for j in np.argsort(-spread)[:3]]
        yield Finding(
            "unequal-units",
            "careful",
            f"the spread of {joined(largest)} is up to {known.max() / np.median(known):.2g} times that "
            "of the variable in the middle: principal components will be these",
            "Bring variables to one unit, or standardise both datasets by the background's spread.",
        )


def _is_id(column: np.ndarray) -> bool:
    return column.size > 20 and np.unique(column).size > 0.999 * column.size


def _duplicates(both: np.ndarray, spread: np.ndarray, names: Sequence[str]) -> list[str]:
    """Pairs of columns that are one column, up to shift and scale."""
    varying = np.flatnonzero(spread > 0)
    some = both[:: max(len(both) // 500, 1), :][:, varying]
    some = some - some.mean(axis=0)
    norms = np.linalg.norm(some, axis=0)
    kept = norms > 0
    unit, varying = some[:, kept] / norms[kept], varying[kept]
    # a hash of each column, with the sign of its largest entry, finds equals among many
    unit = unit * np.sign(unit[np.argmax(np.abs(unit), axis=0), np.arange(unit.shape[1])])
    known: dict[bytes, int] = {}
    found = []
    for j, column in zip(varying, np.round(unit, 8).T + 0.0, strict=True):
        first = known.setdefault(column.tobytes(), int(j))
        if first != j:
            found.append(f"{names[first]} = {names[j]}")
    return found


def _rows(fore: np.ndarray, back: np.ndarray) -> Iterator[Finding]:
    for rows, name in ((fore, "foreground"), (back, "background")):
        centred = rows - np.median(rows, axis=0)
        spread = rows.std(axis=0)
        powers = np.sum((centred / np.where(spread > 0, spread, 1)) ** 2, axis=1) ** 2
        few = unusual(powers, FEW_ROWS_SHARE)
        if len(rows) > 50 and few.size <= max(len(rows) // 200, 1):
            yield Finding(
                "rows-dominate",
                "careful",
                f"{few.size} of {len(rows)} {name} rows have half of all fourth powers: rows "
                f"{joined(few.tolist())}",
                'Look at them; cumulant="robust" bounds their weight.',
            )


def _swapped(fore: np.ndarray, back: np.ndarray) -> Iterator[Finding]:
    above, below = fore.var(axis=0), back.var(axis=0)
    larger = np.mean(above < below)
    if below.sum() > 1.5 * above.sum() and larger > 0.9:
        yield Finding(
            "swapped",
            "serious",
            f"the background varies more than the foreground in {larger:.0%} of the variables, "
            f"{below.sum() / max(above.sum(), 1e-300):.2g} times as much in all",
            "Are foreground and background swapped, or on different scales?",
        )


def _group_sizes(groups: Sequence[Groups | None]) -> Iterator[Finding]:
    for part, name in zip(groups, ("foreground", "background"), strict=True):
        if part is None:
            continue
        counts = np.bincount(part.codes, minlength=len(part.names))
        if len(part.names) < 4:
            yield Finding(
                "few-groups",
                "careful",
                f"the {name} has {len(part.names)} groups",
                "With so few, chance cannot be told from a pattern: add groups.",
            )
        if counts.max() > 0.5 * counts.sum() and len(part.names) > 2:
            yield Finding(
                "group-dominates",
                "careful",
                f"{part.names[int(np.argmax(counts))]} has {counts.max() / counts.sum():.0%} of the "
                f"{name}'s rows",
                "Groups are not weighted: take as many rows of each.",
            )


def _batches(batches: Any, background_batches: Any, sizes: Sequence[int]) -> Iterator[Finding]:
    if batches is None or background_batches is None:
        return
    parts = [np.asarray(each).astype(str).ravel() for each in (batches, background_batches)]
    for part, size, name in zip(parts, sizes, ("batches", "background_batches"), strict=True):
        if part.size != size:
            raise DataError(
                "batches-length",
                f"`{name}` has {part.size} entries",
                f"there are {size} rows",
                parameter=name,
            )
    fore, back = (set(part) for part in parts)
    if not fore & back:
        yield Finding(
            "confounded",
            "serious",
            f"no batch is in both datasets (foreground: {joined(sorted(fore))}; background: "
            f"{joined(sorted(back))}): what is new in the foreground cannot be told from what "
            "its batches do, by this or any other method",
            "No analysis repairs this; measure both kinds of samples in one batch.",
        )
    elif fore != back:
        own = sorted(fore ^ back)
        yield Finding(
            "batches-of-one",
            "careful",
            f"batches {joined(own)} are in one dataset only",
            "Fit without them too and compare; permute within batches (strata of significance).",
        )
