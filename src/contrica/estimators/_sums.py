"""Rows that are read once: sums of them, and what a fit needs of the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError, FeaturesError, ParameterError
from contrica.estimators._background import Background
from contrica.moments.estimates import Cumulants
from contrica.moments.projection import basis_of_cumulants
from contrica.moments.streaming import CheckedRows, DataSums
from contrica.moments.working import Workplace
from contrica.rows.containers import as_rows
from contrica.rows.device import on_device
from contrica.rows.protocol import Rows
from contrica.validation import check_n_rows

__all__ = ["SummedRows", "add_blocks", "check_sums", "from_sums", "sums_of"]


class SummedRows(NamedTuple):
    """What a fit needs of sums: the axes to work in, and cumulants and rows of every dataset there."""

    basis: np.ndarray | None
    cumulants: list[Cumulants]
    rows: list[np.ndarray]


def sums_of(part: Any, name: str, workplace: Workplace) -> DataSums:
    """Sums as they are, or of rows, or of the blocks of an iterator.

    Parameters
    ----------
    part : DataSums, iterator of blocks of rows, or rows
    name : str
        What errors call it.
    workplace : Workplace

    Returns
    -------
    DataSums
    """
    part = part.data if isinstance(part, Background) else part
    if isinstance(part, DataSums):
        return part
    sums = DataSums(basis=workplace.basis, memory_limit=workplace.memory_limit)
    for block in part if isinstance(part, Iterator) else [part]:
        sums.add(_checked_rows(sums, block, name, workplace))
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
        if block is None:
            continue
        new_width = _width(block, name)
        if width and new_width and new_width != width:
            raise FeaturesError(
                "width",
                f"{name} has {new_width} features",
                f"{model} is expecting {width} features as input, as earlier rows had",
                "All rows must measure the same variables in the same order.",
                name,
            )
        checked: DataSums | CheckedRows
        if isinstance(block, DataSums):
            own.check_merge(block)
            checked = block
        else:
            checked = _checked_rows(own, block, name, workplace)
        own.compare_columns(checked.columns, name, columns)
        width, columns = new_width or width, columns or checked.columns
        adding.append((own, checked))
    for own, checked in adding:
        own.merge(checked) if isinstance(checked, DataSums) else own.add(checked)


def _width(block: Any, name: str) -> int:
    """Variables of rows, or of sums; 0 for sums without rows, and for what is not a table."""
    if isinstance(block, DataSums):
        return block.n_features
    rows = as_rows(block, name)
    shape = rows.shape if hasattr(rows, "shape") else np.shape(rows)
    return int(shape[1]) if len(shape) == 2 else 0


def _checked_rows(own: DataSums, block: Any, name: str, workplace: Workplace) -> CheckedRows:
    """A block of rows that can be added to sums, on the device where one is asked for."""
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
    rows = as_rows(block, name)
    if isinstance(rows, np.ndarray | Rows) and getattr(rows, "ndim", 2) == 2:
        rows = on_device(rows, workplace.device)
    checked = own.check(rows, name, columns_of=block)
    workplace.given_basis(checked.rows.shape[1])
    return checked


def check_sums(parts: dict[str, DataSums]) -> None:
    """Refuse sums of too few rows, or of other variables or axes than the first.

    Parameters
    ----------
    parts : dict of DataSums
        By the name that errors call them.
    """
    first = next(iter(parts.values()))
    for name, sums in parts.items():
        check_n_rows(sums.n_samples, 2, name)
        if sums is not first:
            sums.check_beside(first, name)


def from_sums(sums: Sequence[DataSums], workplace: Workplace) -> SummedRows:
    """Cumulants and sampled rows, in the axes of the sums or in common principal ones.

    Parameters
    ----------
    sums : sequence of DataSums
        Of every dataset, foreground first.
    workplace : Workplace

    Returns
    -------
    SummedRows
    """
    estimate: Any = workplace.cumulant
    found = [part.cumulants(estimate) for part in sums]
    rows = [part.rows() for part in sums]
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
