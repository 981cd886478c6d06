"""Points for the page's script: scores, names and metadata of all rows, as compact JSON."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from contrica.report._material import Column, Samples

__all__ = ["MAX_AXES", "points"]

# Patterns to choose axes from.
MAX_AXES = 20


def points(
    parts: Sequence[Samples], group_columns: Collection[str] = frozenset()
) -> dict[str, Any]:
    """What the page's script draws.

    Parameters
    ----------
    parts : sequence of Samples
        The foreground first.
    group_columns : collection of str
        Columns that are the groups: their numbers are names, and one of them is enough.

    Returns
    -------
    dict
        ``scores``, one text of little-endian float32 in base64 for each pattern; ``dataset``, the number
        of each row's dataset; ``rows``, its number there; ``names`` or ``None``; ``columns`` of metadata.
        ``left_out``: names of columns in which nearly every row has a value of its own. A column has
        ``varies``: whether its values differ in the foreground.
    """
    scores = np.vstack([each.scores for each in parts])[:, :MAX_AXES]
    sizes = [len(each.scores) for each in parts]
    found, left_out = [], []
    for name in dict.fromkeys(key for each in parts for key in each.columns):
        values = [
            each.columns.get(name, np.full(size, None, dtype=object))
            for each, size in zip(parts, sizes, strict=True)
        ]
        column = Column.of(name, np.concatenate(values), named=name in group_columns)
        if name == "groups" and len(group_columns) > 1:
            continue
        if column is None:
            left_out.append(name)
        else:
            own = column.values[: sizes[0]]
            found.append(_coded(column) | {"varies": bool(np.unique(own).size > 1)})
    named = any(each.names is not None for each in parts)
    return {
        "n": sum(sizes),
        "first_background": sizes[0],
        "datasets": [each.name for each in parts],
        "dataset": _text(np.repeat(np.arange(len(parts)), sizes), "<u1"),
        "rows": _text(np.concatenate([each.rows for each in parts]), "<u4"),
        "names": [name for each in parts for name in _names(each)] if named else None,
        "scores": [_text(column, "<f4") for column in scores.T],
        "columns": found,
        "left_out": left_out,
    }


def _names(part: Samples) -> list[str]:
    return [f"row {i}" for i in part.rows] if part.names is None else list(map(str, part.names))


def _coded(column: Column) -> dict[str, Any]:
    # 65535 is a row without a value
    kind, values = "<f4", column.values
    if column.levels:
        kind, values = "<u2", np.where(values < 0, 65535, values)
    return {"name": column.name, "levels": list(column.levels), "values": _text(values, kind)}


def _text(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")
