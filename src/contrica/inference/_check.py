"""Before a fit: are these data fit to be contrasted?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.estimators._background import Background, group_labels
from contrica.estimators._missing import missing_counts
from contrica.inference._findings import Finding, Report, joined, unusual
from contrica.inference._identifiers import identifiers, is_whole
from contrica.moments.projection import n_axes
from contrica.rows.dataset import Dataset, check_same_variables, read_datasets
from contrica.rows.groups import Groups
from contrica.rows.protocol import Rows
from contrica.rows.summary import ColumnSummary
from contrica.rows.units import unequal_units
from contrica.solvers.selection import searchable
from contrica.validation import describe_columns

__all__ = ["check", "column_findings", "look_like_counts"]

# Rows that are read closely.
CLOSE_ROWS = 20000
# Share of a fourth moment that few rows may have.
FEW_ROWS_SHARE = 0.5
# Dimensions that "auto" works in at most.
DIMENSIONS = 30
# Rows in which a column differs from its middle, from which another one like it is no chance.
TELLING_ROWS = 10
# Copies that a sample shows of which all rows are compared.
MAX_COPIES = 20


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

    Sample sizes against dimensions, gaps, units, counts, columns that are numbers of rows or copies of
    one another, rows and groups that dominate, datasets that are swapped, batches that are confounded
    with the two datasets. Every finding says what to do. Nothing is fitted.

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
    read_datasets(datasets, fill=True)
    if labels is not None:
        for part, (name, own) in zip(datasets, labels.of_each(1), strict=True):
            part.group(own, name)
    fore, back = (_some_rows(part) for part in datasets)
    given = datasets[0].names
    names = [f"x{i}" for i in range(fore.shape[1])] if given is None else list(map(str, given))
    ids = identifiers([fore, back], names)
    both = np.vstack([fore, back])
    sizes = (len(datasets[0]), len(datasets[1]))
    findings = [
        *_sizes(*sizes, fore.shape[1]),
        *_gaps(datasets),
        *_columns(both, ids, _duplicates(both), names),
        *_units([part.summary for part in datasets], ids, names),
        *_rows(fore, back),
        *_swapped(fore, back),
        *_group_sizes([part.groups for part in datasets]),
        *_batches(batches, background_batches, sizes),
    ]
    about = f"{sizes[0]} foreground and {sizes[1]} background rows over {fore.shape[1]} variables"
    return Report.of(findings, about)


def _some_rows(part: Dataset) -> np.ndarray:
    rows = part.rows if part.unfilled is None else part.unfilled
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


def _gaps(datasets: Sequence[Dataset]) -> Iterator[Finding]:
    counts = missing_counts(datasets)
    if counts.any():
        yield Finding(
            "missing-values",
            "note",
            f"values are missing, {counts[0].sum()} in the foreground and {counts[1].sum()} in the "
            f"background, in {describe_columns(counts.sum(axis=0), datasets[0].names)}",
            'Set missing="impute" to fill them by what both datasets have in common, or leave those rows '
            "or variables out.",
        )


def _units(
    summaries: Sequence[ColumnSummary], ids: Sequence[int], names: Sequence[str]
) -> Iterator[Finding]:
    """As a fit warns of them, of columns that are not identifiers."""
    kept = np.setdiff1d(np.arange(len(names)), ids)
    own = [ColumnSummary(part.n_rows, *(each[kept] for each in part[1:])) for part in summaries]
    found = unequal_units(own, few=n_axes("auto", len(names)) is None) if kept.size else None
    if found is not None:
        yield Finding(
            "unequal-units",
            "careful",
            found.words(np.array(names, dtype=object)[kept]),
            'If they are in different units, set scale="pooled", which divides each by its standard '
            "deviation.",
        )


def look_like_counts(rows: np.ndarray, ids: Sequence[int] = ()) -> bool:
    """Whether rows look like raw counts: whole numbers, none negative, some above 2.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        Gaps aside.
    ids : sequence of int
        Columns that are identifiers.

    Returns
    -------
    bool
    """
    varies = np.fmax.reduce(rows, axis=0) > np.fmin.reduce(rows, axis=0)
    rest = is_whole(rows) & varies
    rest[list(ids)] = False
    return bool(
        not (rows < 0).any()
        and rest.sum() > 0.9 * max(np.sum(varies) - len(ids), 1)
        and np.nanmax(rows) > 2
    )


def column_findings(
    parts: Sequence[np.ndarray],
    names: Sequence[str],
    n_rows: Sequence[int] | None = None,
    whole: Callable[[Sequence[int]], Sequence[np.ndarray]] | None = None,
) -> list[Finding]:
    """What `check` says of single columns: raw counts, identifiers, copies of one another.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n, p)
        Rows of each dataset; a few thousand are enough. Gaps are NaN.
    names : sequence of str
        Of the columns.
    n_rows : sequence of int, optional
        Rows of each dataset, of which ``parts`` are a sample.
    whole : callable, optional
        All rows of some columns, by their numbers: what a sample says of these is said if they do.

    Returns
    -------
    list of Finding
    """
    ids = identifiers(parts, names, n_rows)
    both = np.vstack(parts)
    copies = _duplicates(both)
    if whole is not None and (ids or copies):
        ids, copies = _in_all_rows(ids, copies[:MAX_COPIES], names, whole)
    return list(_columns(both, ids, copies, names))


def _in_all_rows(
    ids: Sequence[int],
    copies: Sequence[tuple[int, int]],
    names: Sequence[str],
    whole: Callable[[Sequence[int]], Sequence[np.ndarray]],
) -> tuple[list[int], list[tuple[int, int]]]:
    """Those identifiers and copies that are it in all rows, of which one pass reads their columns."""
    columns = sorted({*ids, *(j for pair in copies for j in pair)})
    parts, place = whole(columns), {j: k for k, j in enumerate(columns)}
    both = np.vstack(parts)

    def is_id(j: int) -> bool:
        return bool(identifiers([part[:, [place[j]]] for part in parts], [names[j]]))

    return (
        [j for j in ids if is_id(j)],
        [(i, j) for i, j in copies if _are_one(both[:, [place[i], place[j]]])],
    )


def _columns(
    both: np.ndarray,
    ids: Sequence[int],
    copies: Sequence[tuple[int, int]],
    names: Sequence[str],
) -> Iterator[Finding]:
    if ids:
        yield Finding(
            "looks-like-an-id",
            "serious",
            f"{joined([names[j] for j in ids])}: whole numbers that are different in every row, as "
            "identifiers are",
            "Leave such columns out.",
        )
    if look_like_counts(both, ids):
        yield Finding(
            "raw-counts",
            "serious",
            "the data look like raw counts: whole numbers, none negative",
            "Divide each row by its total, multiply by a common one, and take log1p.",
        )
    if copies:
        yield Finding(
            "duplicated-columns",
            "careful",
            "columns that are the same up to scale: "
            f"{joined([f'{names[i]} = {names[j]}' for i, j in copies])}",
            "Keep one of each.",
        )


def _duplicates(both: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of columns that are one column, up to shift and scale."""
    varying = np.flatnonzero(np.fmax.reduce(both, axis=0) > np.fmin.reduce(both, axis=0))
    unit, kept = _unit_columns(both[:: max(len(both) // 500, 1), :][:, varying])
    varying = varying[kept]
    # a hash of each column finds equals among many; all rows say whether they are
    known: dict[bytes, int] = {}
    found = []
    for j, column in zip(varying, np.round(unit, 8).T + 0.0, strict=True):
        first = known.setdefault(column.tobytes(), int(j))
        if first != j and _are_one(both[:, [first, j]]):
            found.append((first, int(j)))
    return found


def _unit_columns(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns about their means, of unit length and with a sign of their own, and which have any."""
    counts = np.maximum(np.sum(~np.isnan(some), axis=0), 1)
    some = np.nan_to_num(some - np.nansum(some, axis=0) / counts)
    norms = np.linalg.norm(some, axis=0)
    kept = norms > 0
    unit = some[:, kept] / norms[kept]
    return unit * np.sign(unit[np.argmax(np.abs(unit), axis=0), np.arange(unit.shape[1])]), kept


def _are_one(pair: np.ndarray) -> bool:
    """Whether two columns are one in all rows, and differ from their middle in more than a few."""
    if not np.array_equal(*np.isnan(pair).T):
        return False
    unit, kept = _unit_columns(pair)
    known = pair[~np.isnan(pair[:, 0]), 0]
    telling = np.sum(known != np.median(known))
    # the sign is that of the largest entry, of which two may be equally large
    same = min(np.abs(unit @ [1, sign]).max() for sign in (1, -1)) if kept.all() else 1
    return bool(same < 1e-7 and telling >= min(TELLING_ROWS, known.size / 2))


def _rows(fore: np.ndarray, back: np.ndarray) -> Iterator[Finding]:
    for rows, name in ((fore, "foreground"), (back, "background")):
        centred = rows - np.nanmedian(rows, axis=0)
        spread = np.nanstd(rows, axis=0)
        powers = np.nansum((centred / np.where(spread > 0, spread, 1)) ** 2, axis=1) ** 2
        few = unusual(powers, FEW_ROWS_SHARE)
        if len(rows) > 50 and few.size <= max(len(rows) // 200, 1):
            yield Finding(
                "rows-dominate",
                "careful",
                f"half of all fourth powers is in {few.size} of {len(rows)} {name} rows: number "
                f"{joined(few.tolist())}",
                'Look at them; cumulant="robust" bounds their weight.',
            )


def _swapped(fore: np.ndarray, back: np.ndarray) -> Iterator[Finding]:
    above, below = np.nanvar(fore, axis=0), np.nanvar(back, axis=0)
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
