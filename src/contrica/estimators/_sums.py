"""Rows that are read once: sums of them, and what a fit needs of the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError, FeaturesError, ParameterError
from contrica.moments.estimates import Cumulants, centred_cumulants
from contrica.moments.projection import basis_of_cumulants
from contrica.moments.streaming import CheckedRows, DataSums, same_basis
from contrica.moments.working import Workplace
from contrica.rows.containers import as_rows, column_names
from contrica.rows.moving import on_device
from contrica.rows.protocol import Rows, width_of
from contrica.validation import check_n_rows, check_width

__all__ = [
    "SummedRows",
    "add_blocks",
    "check_basis",
    "check_scalable",
    "check_summable",
    "check_sums",
    "from_sums",
    "gaps_refused",
    "sums_of",
]


class SummedRows(NamedTuple):
    """What a fit needs of sums: the axes to work in, and cumulants and rows of every dataset there."""

    basis: np.ndarray | None
    cumulants: list[Cumulants]
    rows: list[np.ndarray]


def check_summable(workplace: Workplace) -> None:
    """Refuse what cannot be worked out of sums, before any row is read.

    Parameters
    ----------
    workplace : Workplace
    """
    if workplace.cumulant == "robust":
        raise ParameterError(
            "robust-needs-rows",
            "`cumulant=robust` reads all rows several times",
            "rows that are summed are read once",
            "Use `cumulant=plugin`, or fit rows that can be read again.",
            "cumulant",
        )
    if workplace.dtype == "float32":
        raise ParameterError(
            "single-needs-mean",
            "`dtype=float32` needs the mean of all rows before the first is rounded",
            "rows that are summed are read once",
            "Use `dtype=float64`, or fit rows that can be read again.",
            "dtype",
        )


@contextmanager
def gaps_refused(fills: bool) -> Iterator[None]:
    """Say of gaps in what is read once that they cannot be filled, where the model is to fill gaps.

    Parameters
    ----------
    fills : bool
    """
    try:
        yield
    except DataError as error:
        if not fills or error.code != "not-finite":
            raise
        raise DataError(
            error.code,
            error.got,
            "rows that are read once cannot be filled",
            "Give rows that can be read again to `fit`, contrica.rows.Blocks of a list or of a function, "
            "or fill the gaps first.",
            error.parameter,
        ) from error


def sums_of(
    given: Mapping[str, Any], workplace: Workplace, check_parameters: Callable[[int], None]
) -> dict[str, DataSums]:
    """Sums of every dataset: as they are, or of rows, or of the blocks of an iterator.

    Parameters
    ----------
    given : mapping
        DataSums, iterators of blocks of rows, or rows, by the name that errors call them.
    workplace : Workplace
    check_parameters : callable
        Is told the number of variables when a first block is there, and may refuse it.

    Returns
    -------
    dict of DataSums
        By the same names, in the same order.
    """
    found = {name: part for name, part in given.items() if isinstance(part, DataSums)}
    for name, part in found.items():
        check_basis(part, name, workplace)
    for name, part in given.items():
        if name not in found:
            beside = next(((n, sums) for n, sums in found.items() if sums.n_samples), None)
            found[name] = _summed(part, name, beside, workplace, check_parameters)
    return {name: found[name] for name in given}


def check_basis(sums: DataSums, name: str, workplace: Workplace) -> None:
    """Refuse sums in other axes than those that are asked for.

    Parameters
    ----------
    sums : DataSums
    name : str
        What errors call them.
    workplace : Workplace
    """
    if workplace.basis is None or sums.n_samples == 0:
        return
    if not same_basis(workplace.given_basis(sums.n_features), sums.basis):
        axes = "no basis" if sums.basis is None else "another basis"
        raise ParameterError(
            "basis",
            f"the sums of `{name}` were taken in {axes}",
            "`basis` gives the axes to work in",
            "Sum the rows in that basis, DataSums(basis=...), or leave `basis` out.",
            "basis",
        )


def _summed(
    part: Any,
    name: str,
    beside: tuple[str, DataSums] | None,
    workplace: Workplace,
    check_parameters: Callable[[int], None],
) -> DataSums:
    """Sums of rows, over the variables and in the axes of the dataset beside them, if there is one."""
    whose, other = beside or ("", DataSums(basis=workplace.basis))
    sums = DataSums(basis=other.basis, memory_limit=workplace.budget)
    for block in part if isinstance(part, Iterator) else [part]:
        rows = as_rows(block, name)
        width = _width(rows)
        if width and other.n_samples:
            check_width(width, other.n_features, name)
            sums.compare_columns(column_names(block), name, other.columns, whose)
        if width and sums.n_samples == 0:
            check_parameters(width)
        sums.add(_checked_rows(sums, rows, block, name, workplace))
    if sums.n_samples == 0:
        raise DataError(
            "empty", f"{name} has no blocks of rows", remedy="Give at least one.", parameter=name
        )
    return sums


def add_blocks(
    sums: Sequence[DataSums],
    blocks: Sequence[Any],
    names: Sequence[str],
    workplace: Workplace,
    model: str,
) -> None:
    """Add a block to each of several sums, where there is one: all of them or, if one is refused, none.

    Parameters
    ----------
    sums : sequence of DataSums
        Over the same variables.
    blocks : sequence of rows, DataSums or None
    names : sequence of str
        What errors call them.
    workplace : Workplace
    model : str
        What errors call the model.
    """
    width = next((part.n_features for part in sums if part.n_features), 0)
    columns = next((part.columns for part in sums if part.columns), None)
    adding: list[tuple[DataSums, DataSums | CheckedRows]] = []
    for own, block, name in zip(sums, blocks, names, strict=True):
        check_basis(own, name, workplace)
        if block is None:
            continue
        rows = block if isinstance(block, DataSums) else as_rows(block, name)
        new_width = _width(rows)
        if width and new_width and new_width != width:
            raise FeaturesError(
                "width",
                f"{name} has {new_width} features",
                f"{model} is expecting {width} features as input, as earlier rows had",
                "All rows must measure the same variables in the same order.",
                name,
            )
        checked: DataSums | CheckedRows
        if isinstance(rows, DataSums):
            own.check_merge(rows)
            checked = rows
        else:
            checked = _checked_rows(own, rows, block, name, workplace)
        own.compare_columns(checked.columns, name, columns)
        width, columns = new_width or width, columns or checked.columns
        adding.append((own, checked))
    _add_all(adding)


def _add_all(adding: Sequence[tuple[DataSums, DataSums | CheckedRows]]) -> None:
    """Read all that has to be read again, which may fail, and only then change the sums."""
    ready = [
        (own, part if isinstance(part, DataSums) else own.read(part))
        for own, part in adding
        if isinstance(part, DataSums) or part.summary is not None
    ]
    for own, found in ready:
        own.merge(found) if isinstance(found, DataSums) else own.add_read(found)


def _width(rows: Any) -> int:
    """Variables of rows, or of sums; 0 for sums without rows, and for what is not a table."""
    if isinstance(rows, DataSums):
        return rows.n_features
    if isinstance(rows, Rows):
        return rows.n_columns
    shape = np.shape(rows)
    return int(shape[1]) if len(shape) == 2 else 0


def _checked_rows(
    own: DataSums, rows: Any, block: Any, name: str, workplace: Workplace
) -> CheckedRows:
    """Rows of a block that can be added to sums, on the device where one is asked for."""
    if isinstance(rows, np.ndarray | Rows) and getattr(rows, "ndim", 2) == 2:
        workplace.given_basis(width_of(rows))
        rows = on_device(rows, workplace.device)
    return own.check(rows, name, columns_of=block)


def check_sums(parts: dict[str, DataSums]) -> None:
    """Refuse sums of too few rows, or of other variables or axes than the first.

    Parameters
    ----------
    parts : dict of DataSums
        By the name that errors call them.
    """
    whose, first = next(iter(parts.items()))
    for name, sums in parts.items():
        check_n_rows(sums.n_samples, 2, name)
        if sums is not first:
            sums.check_beside(first, name, whose)


def check_scalable(scale: str, basis: Any) -> None:
    """Refuse to divide variables of sums that were taken in a basis, in which there are no variables.

    Parameters
    ----------
    scale : str
    basis : array-like or None
    """
    if scale != "none" and basis is not None:
        raise ParameterError(
            "scale-of-sums",
            f"`scale={scale}` was given with sums in a `basis`",
            "what is summed in a basis cannot be divided variable by variable",
            "Divide the rows before they are summed, or fit rows that can be read again.",
            "scale",
        )


def from_sums(
    sums: Sequence[DataSums], workplace: Workplace, scales: Sequence[np.ndarray] | None = None
) -> SummedRows:
    """Cumulants and sampled rows, in the axes of the sums or in common principal ones.

    Parameters
    ----------
    sums : sequence of DataSums
        Of every dataset, foreground first.
    workplace : Workplace
    scales : sequence of ndarray of shape (p,), optional
        What to divide the variables of each by; of sums without a basis.

    Returns
    -------
    SummedRows
    """
    estimate: Any = workplace.cumulant
    found = [part.cumulants(estimate) for part in sums]
    rows = [part.rows() for part in sums]
    if scales is not None:
        rows = [part / own for part, own in zip(rows, scales, strict=True)]
        found = [part.projected(np.diag(1 / own)) for part, own in zip(found, scales, strict=True)]
    if workplace.own_means:
        rows = [part - data.mean for part, data in zip(rows, found, strict=True)]
        found = [centred_cumulants(data) for data in found]
    basis = sums[0].basis
    if basis is not None:
        workplace.check_axes(basis)
        return SummedRows(basis, found, rows)
    basis = basis_of_cumulants(found, workplace.n_pcs)
    if basis is None:
        return SummedRows(None, found, rows)
    return SummedRows(
        basis, [part.projected(basis) for part in found], [part @ basis for part in rows]
    )
