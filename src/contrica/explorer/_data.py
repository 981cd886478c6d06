"""What is explored: rows of both datasets with all that is known of them, and where they are from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from contrica.datasets import load_digits_on_photos
from contrica.errors import DataError, MemoryBudgetError
from contrica.estimators import Background
from contrica.estimators._background import group_labels
from contrica.report._material import Column, as_columns, check_image_shape
from contrica.rows.dataset import Dataset, check_same_variables
from contrica.rows.groups import split_groups
from contrica.rows.products import in_memory
from contrica.rows.protocol import Rows

__all__ = ["MAX_COLUMNS", "ExplorerData", "Source", "demo_data"]

# Numbers of all datasets that are kept in memory, and columns of metadata that are offered.
MAX_NUMBERS, MAX_COLUMNS = 200_000_000, 200


@dataclass(frozen=True)
class Source:
    """Where data are from, so that a script and a command can read them again.

    Attributes
    ----------
    kind : {"demo", "files", "memory"}
    options : dict of str to object
        Of the command line, by the names of `contrica.cli.options.DataOptions`; of files only.
    words : tuple of str
        What stands behind ``contrica explore`` to open the same data.
    folder : Path or None
        Where names and notes are kept: a result folder, or the one that the explorer was started in.
    title : str
    """

    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    folder: Path | None = None
    title: str = ""


@dataclass(frozen=True)
class ExplorerData:
    """Rows of a foreground and its backgrounds, with all that is known of them.

    Attributes
    ----------
    fore : ndarray of shape (n, p)
    backs : tuple of ndarray of shape (m, p)
    names : tuple of str
        Of the variables.
    metadata : tuple of dict of str to ndarray
        Columns of each dataset, the foreground's first.
    groups : tuple of (ndarray of str or None)
    row_names : tuple of (ndarray of str or None)
    image_shape : (int, int) or None
    source : Source
    parameters : dict of str to object
        Of `contrica.ContrastiveICA`, as the page opens with them.
    """

    fore: np.ndarray
    backs: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    metadata: tuple[dict[str, np.ndarray], ...]
    groups: tuple[np.ndarray | None, ...]
    row_names: tuple[np.ndarray | None, ...]
    image_shape: tuple[int, int] | None = None
    source: Source = field(default_factory=lambda: Source("memory"))
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        X: Any,
        background: Any,
        *,
        groups: Any = None,
        background_groups: Any = None,
        metadata: Any = None,
        background_metadata: Any = None,
        names: Any = None,
        row_names: Sequence[Any] | None = None,
        **more: Any,
    ) -> ExplorerData:
        """Rows of any container, which are read into memory.

        Parameters
        ----------
        X : array-like of shape (n, p)
        background : array-like of shape (m, p), list of such, or Background
        groups, background_groups : array-like of shape (n_rows,), optional
            As of ``fit``.
        metadata, background_metadata : data frame or mapping of str to array-like, optional
            Of several backgrounds a list.
        names : sequence of str, optional
            Of the variables, where the container has none.
        row_names : sequence of (array-like or None), optional
            Of each dataset, where the containers have none.
        **more : dict
            ``image_shape``, ``source`` and ``parameters``.

        Returns
        -------
        ExplorerData

        Examples
        --------
        >>> import numpy as np
        >>> data = ExplorerData.of(np.zeros((5, 2)), np.ones((4, 2)), metadata={"age": range(5)})
        >>> data.n_fore, data.n_back, data.names, data.column_names
        (5, 4, ('x0', 'x1'), ['age'])
        """
        group_labels(background, groups, background_groups)  # of both datasets, or of neither
        if isinstance(background, Background):
            if background_groups is None:
                background_groups = background.groups
            background = background.data
        behind = list(background) if _is_several(background) else [background]
        called = ["background"] if len(behind) == 1 else [f"background[{i}]" for i in range(99)]
        datasets = [Dataset(X, "X"), *map(Dataset, behind, called)]
        check_same_variables(datasets)
        _check_size(datasets)
        width = datasets[0].n_features
        known = names if names is not None else datasets[0].names
        given = [metadata, *split_groups(background_metadata, len(behind))]
        labels = [groups, *split_groups(background_groups, len(behind))]
        own_names = [each.row_names for each in datasets] if row_names is None else list(row_names)
        return cls(
            _array(datasets[0]),
            tuple(map(_array, datasets[1:])),
            tuple(f"x{i}" for i in range(width)) if known is None else tuple(map(str, known)),
            tuple(
                as_columns(own, len(part), part.name)
                for own, part in zip(given, datasets, strict=True)
            ),
            tuple(
                None if own is None else _labels(own, part)
                for own, part in zip(labels, datasets, strict=True)
            ),
            tuple(None if own is None else np.asarray(own).astype(str) for own in own_names),
            check_image_shape(more.pop("image_shape", None), width),
            **more,
        )

    @property
    def n_fore(self) -> int:
        """Rows of the foreground."""
        return len(self.fore)

    @property
    def n_back(self) -> int:
        """Rows of all backgrounds."""
        return sum(map(len, self.backs))

    @property
    def background(self) -> Any:
        """What ``fit`` takes: one background, or a list."""
        return self.backs[0] if len(self.backs) == 1 else list(self.backs)

    @property
    def has_groups(self) -> bool:
        """Whether rows come in groups."""
        return self.groups[0] is not None

    @property
    def fit_groups(self) -> dict[str, Any]:
        """Groups as ``fit`` takes them."""
        if not self.has_groups:
            return {}
        behind = self.groups[1:]
        return {
            "groups": self.groups[0],
            "background_groups": behind[0] if len(behind) == 1 else list(behind),
        }

    @property
    def column_names(self) -> list[str]:
        """Columns of metadata that are offered: at most `MAX_COLUMNS`, of the foreground."""
        return list(self.metadata[0])[:MAX_COLUMNS]

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns that can be coloured by: kinds or numbers, of the foreground's rows."""
        found = {name: Column.of(name, self.metadata[0][name]) for name in self.column_names}
        return {name: column for name, column in found.items() if column is not None}

    @property
    def columns_left_out(self) -> str:
        """Which columns of metadata are not offered, in words; empty where all are."""
        told = []
        count = len(self.metadata[0])
        if count > MAX_COLUMNS:
            told.append(f"Of {count} columns of metadata the first {MAX_COLUMNS} are offered.")
        names = [name for name in self.column_names if name not in self.columns]
        if names:
            listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
            told.append(f"No colours, as nearly every row has its own value or none: {listed}.")
        return " ".join(told)


def demo_data(folder: Path | None = None) -> ExplorerData:
    """Handwritten digits on patches of photographs, which come with scikit-learn.

    Parameters
    ----------
    folder : Path, optional
        Where names and notes are kept.

    Returns
    -------
    ExplorerData
    """
    data = load_digits_on_photos()
    height, width = data.image_shape
    digits = np.array(data.label_names, dtype=object)[data.labels]
    return ExplorerData.of(
        data.foreground,
        data.background,
        metadata={"digit": digits},
        names=[f"pixel_{i}_{j}" for i in range(height) for j in range(width)],
        image_shape=data.image_shape,
        source=Source("demo", folder=folder, title="Handwritten digits on photographs"),
    )


def _is_several(background: Any) -> bool:
    return isinstance(background, list | tuple) and any(
        len(getattr(part, "shape", ())) == 2 for part in background
    )


def _check_size(datasets: Sequence[Dataset]) -> None:
    count = sum(len(each) for each in datasets) * datasets[0].n_features
    if count > MAX_NUMBERS:
        raise MemoryBudgetError(
            "too-many-rows",
            f"there are {count:.2g} numbers",
            f"the explorer keeps at most {MAX_NUMBERS:.2g} in memory",
            "Give it fewer rows or variables, such as a random sample or the variable genes.",
        )


def _array(part: Dataset) -> np.ndarray:
    rows = in_memory(part.rows) if isinstance(part.rows, Rows) else part.rows
    return np.asarray(rows, dtype=np.float64)


def _labels(labels: Any, part: Dataset) -> np.ndarray:
    found = np.asarray(labels, dtype=object)
    if found.shape != (len(part),):
        raise DataError(
            "groups-length",
            f"groups of shape {found.shape} were given for the {len(part)} rows of {part.name}",
            "each row needs the name of its group",
            parameter="groups",
        )
    return found


def metadata_of(columns: Mapping[str, Any], **labels: Any) -> dict[str, Any]:
    """Columns of metadata with labels before them, each once.

    Parameters
    ----------
    columns : mapping of str to array-like
    **labels : array-like or None

    Returns
    -------
    dict
    """
    found = {name: values for name, values in labels.items() if values is not None}
    same = [
        name
        for name, values in found.items()
        if any(np.array_equal(np.asarray(values), np.asarray(own)) for own in columns.values())
    ]
    return {**{name: found[name] for name in found if name not in same}, **columns}
