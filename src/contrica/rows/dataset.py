"""A dataset that is checked once, where it enters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from contrica.rows.containers import as_rows
from contrica.rows.device import package_of
from contrica.rows.groups import Groups, as_groups
from contrica.rows.missing import filled, learnt_from
from contrica.rows.observed import Observed, check_observed, gaps_error, observed_columns
from contrica.rows.protocol import Rows, width_of
from contrica.rows.scaled import divided_rows
from contrica.rows.summary import ColumnSummary, summed_columns
from contrica.rows.units import divided_summary
from contrica.validation import (
    DROP_GAPS,
    check_dataset,
    check_n_rows,
    check_n_variables,
    check_names,
    check_same_features,
    in_words,
)

__all__ = ["Dataset", "check_same_variables", "names_of", "read_datasets", "row_names_of"]


class Dataset:
    """Rows of one dataset: their container, the names of their variables, and what one pass says.

    Opening it reads no rows, so that widths and names can be compared first; `read` does.

    Parameters
    ----------
    data : array-like, or any container that `contrica.rows.as_rows` knows
    name : str
        What errors call it.

    Attributes
    ----------
    name : str
    rows : ndarray or Rows
        Float64, and finite, after `read`.
    names : ndarray of object or None
        Of the variables, where the container has them; blocks may show them only in `read`.
    summary : ColumnSummary
        Mean, range and sum of squares of every variable; after `read`.
    groups : Groups or None
        Which rows belong together, where that was given (`group`).
    row_names : ndarray of str or None
        Where the container has them in memory, as a data frame's index.
    observed : Observed or None
        What is known of the gaps, where there are some and they were filled (`read_datasets`); and
        ``unfilled``, the rows that have them.
    to_device : callable or None
        Takes arrays and compressed rows to a device before they are read for the first time; ``moved``
        are then the rows there.

    Examples
    --------
    >>> import numpy as np
    >>> Dataset(np.array([[1.0, 5.0], [3.0, 5.0]]), "X").read().summary.mean
    array([2., 5.])
    """

    summary: ColumnSummary
    groups: Groups | None = None
    observed: Observed | None = None
    unfilled: np.ndarray | Rows | None = None
    to_device: Callable[[np.ndarray | Rows], np.ndarray | Rows] | None = None
    moved: np.ndarray | Rows | None = None

    def __init__(self, data: Any, name: str) -> None:
        self.name = name
        self.row_names = row_names_of(data)
        rows = as_rows(data, name)
        names = names_of(data)
        self.names = names_of(rows) if names is None else names
        check_names(self.names, name)
        if isinstance(rows, Rows):
            self.rows: np.ndarray | Rows = self._container(rows)
            return
        check_dataset(rows, name)
        shape = getattr(rows, "shape", ())
        # a table that is written out as lists, or not a table: in memory anyway
        self.rows = rows if len(shape) == 2 and 0 not in shape else self._array(rows)

    def _container(self, rows: Rows) -> Rows:
        check_n_variables(rows.n_columns, self.name)
        if rows.is_counted:
            check_dataset(rows, self.name)
            check_n_rows(len(rows), 2, self.name)
        return rows

    def _array(self, rows: Any) -> np.ndarray:
        # whether all are finite shows in the range of every variable
        with in_words(self.name, rows):
            found: np.ndarray = check_array(
                rows,
                dtype=np.float64,
                ensure_min_samples=2,
                ensure_all_finite=False,
                input_name=self.name,
            )
        return found

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return width_of(self.rows)

    def read(self, *, gaps: bool = False, remedy: str = DROP_GAPS) -> Dataset:
        """Pass over the rows once, and refuse what cannot be used; the dataset comes back.

        Parameters
        ----------
        gaps : bool
            Whether NaN and infinity are let pass; they show in the range (`has_gaps`).
        remedy : str
            What to do about gaps.

        Returns
        -------
        Dataset
        """
        if not isinstance(self.rows, Rows):
            self.rows = self._array(self.rows)
        if self.to_device is not None and (isinstance(self.rows, np.ndarray) or self.rows.sparse):
            self.moved = self.to_device(self.rows)
        total = summed_columns(self.rows if self.moved is None else self.moved)
        check_n_rows(total.n_rows, 2, self.name)
        self.summary = total.summary()
        if self.names is None:
            self.names = names_of(self.rows)
        if self.has_gaps and not gaps:
            raise gaps_error(self.rows, self.name, self.names, remedy)
        return self

    @property
    def has_gaps(self) -> bool:
        """Whether the range of a variable shows NaN or infinity."""
        low, high = self.summary.low, self.summary.high
        return not bool((np.isfinite(low) & np.isfinite(high)).all())

    def group(self, labels: Any, name: str) -> None:
        """Say which rows belong together; after `read`.

        Parameters
        ----------
        labels : array-like of shape (n_rows,) or None
        name : str
            What errors call them.
        """
        if labels is not None:
            self.groups = as_groups(labels, len(self), name, self.name)

    def divide(self, scale: np.ndarray) -> None:
        """Divide every variable by a number, rows as they are read; after `read`.

        Parameters
        ----------
        scale : ndarray of shape (p,)
        """
        if self.moved is None:
            self.rows = divided_rows(self.rows, scale)
        else:
            self.rows = self.moved = divided_rows(self.moved, scale)
        self.summary = divided_summary(self.summary, scale)
        if self.observed is not None and self.unfilled is not None:
            self.unfilled = divided_rows(self.unfilled, scale)
            self.observed = self.observed.divided(scale)


def read_datasets(
    datasets: Sequence[Dataset], *, fill: bool = False, remedy: str = DROP_GAPS
) -> None:
    """Pass over the rows of all datasets, and compare the names that were found on the way.

    Parameters
    ----------
    datasets : sequence of Dataset
        Those that `check_same_variables` has approved.
    fill : bool
        Whether gaps are filled by what all datasets have in common (`contrica.rows.missing`); that takes
        two more passes where there are some, and none where there are not.
    remedy : str
        What to do about gaps where they are not filled.
    """
    for part in datasets:
        part.read(gaps=fill, remedy=remedy)
    check_same_variables(datasets, are_read=True)
    if any(part.has_gaps for part in datasets):
        _fill(datasets)


def _fill(datasets: Sequence[Dataset]) -> None:
    for part in datasets:
        index = learnt_from(len(part), part.n_features, len(datasets))
        part.observed, part.unfilled = observed_columns(part.rows, index), part.rows
        check_observed(part.observed, part.name, part.names)
    found = [part.observed for part in datasets if part.observed is not None]
    for part, rows in zip(datasets, filled([part.rows for part in datasets], found), strict=True):
        if rows is not part.rows:
            part.rows = rows
            part.summary = summed_columns(rows).summary()


def check_same_variables(datasets: Sequence[Dataset], *, are_read: bool = False) -> None:
    """Refuse datasets that are not over the variables of the first, in its order; nothing is read.

    Parameters
    ----------
    datasets : sequence of Dataset
    are_read : bool
        That all names are known, so that it is warned of those that are missing.
    """
    first = datasets[0]
    for other in datasets[1:]:
        check_same_features(
            first.names,
            other.names,
            first.n_features,
            other.n_features,
            name=first.name,
            other=other.name,
            warns=are_read,
        )


def names_of(data: Any) -> np.ndarray | None:
    """Names of variables that a container has.

    Parameters
    ----------
    data : object

    Returns
    -------
    ndarray of object or None
    """
    columns = getattr(data, "columns", None)
    return None if columns is None or len(columns) == 0 else np.asarray(columns, dtype=object)


def row_names_of(data: Any) -> np.ndarray | None:
    """Names of rows that a container has in memory: a data frame's index of text, or ``row_names``.

    Parameters
    ----------
    data : object

    Returns
    -------
    ndarray of str or None
    """
    names = getattr(data, "row_names", None)
    if package_of(data) == "pandas":  # that of dask is not in memory
        names = np.asarray(getattr(data, "index", None))
    if not isinstance(names, np.ndarray) or names.ndim != 1 or names.dtype.kind not in "OU":
        return None
    return names.astype(str)
