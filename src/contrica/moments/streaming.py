"""Everything a fit needs to know of one dataset, from one pass over its rows; mergeable, saveable.

Means, covariances and fourth cumulants are sums (`contrica.moments.Moments`). The choice of ranks and
the rotation in a contrast subspace also look at rows, for which a random sample of them is kept: every
row draws a number, and those with the smallest numbers stay, so that samples can be merged like sums.
"""

from __future__ import annotations

from copy import copy, deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrica.archive import FileKind, read_archive, write_archive
from contrica.errors import DataError, FileError, ParameterError, unmarked
from contrica.moments.estimates import Cumulants, Estimate
from contrica.moments.fourth import packed_bytes
from contrica.moments.packed import Moments, expanded_rows
from contrica.moments.projection import RowSurvey
from contrica.rows.containers import as_rows, column_names
from contrica.rows.memory import check_memory, memory_budget
from contrica.rows.products import projected
from contrica.rows.protocol import Rows, accumulate, width_of
from contrica.rows.summary import ColumnSummary, Summary, summed_columns
from contrica.validation import (
    as_basis,
    check_count,
    check_finite,
    check_n_variables,
    check_names,
    check_numbers,
    check_same_features,
    check_width,
    in_words,
)

__all__ = ["CheckedRows", "DataSums", "ReadRows", "same_basis"]

# Entries of the rows that are kept as a sample: 32 MB.
SAMPLE_ENTRIES = 2**22
MIN_KEPT = 2000
SUMS_FILE = FileKind(
    "contrica_sums",
    "not-sums",
    "a file of sums saved by contrica",
    "Give what DataSums.save wrote.",
)


class CheckedRows(NamedTuple):
    """Rows that can be added to sums.

    Attributes
    ----------
    rows : ndarray or Rows
    summary : ColumnSummary or None
        Of every variable; ``None`` where there is no row.
    columns : list of str or None
        Names of the variables.
    """

    rows: np.ndarray | Rows
    summary: ColumnSummary | None
    columns: list[str] | None


class ReadRows(NamedTuple):
    """Rows that were read as often as it takes: what is left to do cannot fail.

    Attributes
    ----------
    checked : CheckedRows
    moments : Moments or None
        Their moments; ``None`` of an array, whose rows are in memory.
    kept, keys : ndarray
        Those that the sample may keep, and the numbers that they drew.
    drawn : numpy.random.Generator
        What draws the next.
    """

    checked: CheckedRows
    moments: Moments | None
    kept: np.ndarray
    keys: np.ndarray
    drawn: np.random.Generator


class DataSums:
    """Sums over the rows of one dataset that comes in blocks, each of which is read once.

    Parameters
    ----------
    basis : ndarray of shape (n_features, k), optional
        Axes in which fourth moments are taken; by default in all variables, of which there can be about
        a hundred: the moments of p variables take p⁴/4 numbers.
    memory_limit : int, optional
        Bytes that the moments, and a fit from them, may take; by default a quarter of what is free.
    n_kept : int, optional
        Rows kept as a sample; by default as many as make 4 million numbers, and at least 2000.

    Attributes
    ----------
    n_samples, n_features : int
        Rows so far, and their variables; 0 before the first block.
    columns : list of str or None
        Names of the variables, where rows have them; blocks, and sums that are merged, are compared.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).laplace(size=(1000, 3))
    >>> sums = DataSums().update(X[:400]).merge(DataSums().update(X[400:]))
    >>> sums.n_samples, sums.cumulants().covariance.shape
    (1000, (3, 3))
    """

    def __init__(
        self,
        *,
        basis: np.ndarray | None = None,
        memory_limit: int | None = None,
        n_kept: int | None = None,
    ) -> None:
        self.basis = None if basis is None else as_basis(basis)
        self.memory_limit = memory_limit
        self.n_kept = None if n_kept is None else check_count("n_kept", n_kept)
        self.n_samples = self.n_features = 0
        self.columns: list[str] | None = None
        self._columns = Summary()
        self._moments: Moments | None = None
        self._rows, self._keys = np.empty((0, 0)), np.empty(0)
        self._drawn = np.random.default_rng(0)
        # rows with a key above this were not kept
        self._limit = np.inf

    def update(self, X: Any) -> DataSums:
        """Add a block of rows, of any container; refused as a whole if one of them cannot be used."""
        return self.add(self.check(X))

    def check(self, X: Any, name: str = "a block", *, columns_of: Any = None) -> CheckedRows:
        """Rows that can be added, or an error; nothing is added yet.

        Parameters
        ----------
        X : array-like, or any container that `contrica.rows.as_rows` knows
        name : str
            What errors call it.
        columns_of : object, optional
            The table whose column names these rows have, if not X.

        Returns
        -------
        CheckedRows
        """
        rows = as_rows(X, name)
        if not isinstance(rows, Rows):
            check_numbers(rows, name)
            with in_words(name, rows):
                rows = np.asarray(rows, dtype=float)
            if rows.ndim != 2:
                raise DataError(
                    "not-a-table",
                    f"{name} has {rows.ndim} dimensions",
                    "a table of rows by variables is needed",
                    "A single row is row.reshape(1, -1).",
                    name,
                )
        width, table = width_of(rows), X if columns_of is None else columns_of
        check_n_variables(width, name)
        self._check_room(width, name)
        check_names(column_names(table), name)
        self.compare_columns(column_names(table) or column_names(rows), name)
        total = summed_columns(rows)
        summary = total.summary() if total.n_rows else None
        if summary is not None:
            check_finite(summary, name)
        # of a stream a later block may have had names
        columns = column_names(table) or column_names(rows)
        self.compare_columns(columns, name)
        return CheckedRows(rows, summary, columns)

    def compare_columns(
        self,
        columns: list[str] | None,
        name: str,
        known: list[str] | None = None,
        whose: str = "earlier rows",
    ) -> None:
        """Refuse other variables, or the same in another order, where both have names.

        Parameters
        ----------
        columns : list of str or None
        name : str
            What errors call the rows that have them.
        known : list of str, optional
            What to compare with; the names of the rows so far by default.
        whose : str
            What errors call the rows that have those.
        """
        earlier = known or self.columns
        if earlier is not None and columns is not None:
            before, now = (np.asarray(each, dtype=object) for each in (earlier, columns))
            check_same_features(before, now, before.size, now.size, name=whose, other=name)

    def check_beside(self, other: DataSums, name: str, whose: str) -> None:
        """Refuse sums over other variables, or in another basis, than those of another dataset.

        Parameters
        ----------
        other : DataSums
        name, whose : str
            What errors call these, and the others.
        """
        check_width(self.n_features, other.n_features, name)
        self.compare_columns(self.columns, name, other.columns, whose)
        if not same_basis(self.basis, other.basis):
            raise ParameterError(
                "basis",
                "the sums of foreground and background were taken in different bases",
                remedy="Give both the same one.",
                parameter="basis",
            )

    def add(self, checked: CheckedRows) -> DataSums:
        """Add what `check` has approved; for rows that can be read again a second pass."""
        return self if checked.summary is None else self.add_read(self.read(checked))

    def read(self, checked: CheckedRows) -> ReadRows:
        """Read rows that `check` has approved as often as it takes to add them; nothing is added yet.

        Parameters
        ----------
        checked : CheckedRows
            Of at least one row.

        Returns
        -------
        ReadRows
        """
        rows, drawn = checked.rows, deepcopy(self._drawn)
        width = rows.shape[1] if self.basis is None else self.basis.shape[1]
        keys = drawn.random(len(rows))
        index = np.flatnonzero(keys < self._limit)
        most = self._max_kept(width)
        if index.size > most:
            index = np.sort(index[np.argpartition(keys[index], most)[:most]])
        inside = projected(rows, self.basis)
        if not isinstance(inside, Rows):
            return ReadRows(checked, None, inside[index], keys[index], drawn)
        found = accumulate(
            inside, partial(RowSurvey, width, index, 0), expanded_rows(width, inside)
        )
        return ReadRows(checked, found.moments, found.chosen.rows(width), keys[index], drawn)

    def add_read(self, found: ReadRows) -> DataSums:
        """Add what `read` returned; nothing may have been added since.

        Parameters
        ----------
        found : ReadRows

        Returns
        -------
        DataSums
        """
        rows, summary, columns = found.checked
        new = self._apart()
        if new._moments is None:
            new._begin(rows.shape[1])
        if found.moments is None:
            new._moments.update(rows)  # type: ignore[union-attr]
        else:
            new._moments.merge(found.moments)  # type: ignore[union-attr]
        new._columns.add(summary)  # type: ignore[arg-type]
        new._keep(found.kept, found.keys)
        new._drawn, new.columns = found.drawn, new.columns or columns
        new.n_samples += len(rows)
        return self._become(new)

    def _apart(self) -> DataSums:
        """A copy that rows can be added to: interrupted, that leaves these sums as they were."""
        new = copy(self)
        new._columns, new._drawn = copy(self._columns), deepcopy(self._drawn)
        new._moments = deepcopy(self._moments)
        return new

    def _become(self, other: DataSums) -> DataSums:
        """Take over what a copy has, in one step that no interrupt divides."""
        vars(self).update(vars(other))
        return self

    def _max_kept(self, width: int) -> int:
        """Rows of so many variables, or axes, to keep at most."""
        return (
            max(SAMPLE_ENTRIES // max(width, 1), MIN_KEPT) if self.n_kept is None else self.n_kept
        )

    def _check_room(self, n_features: int, name: str) -> None:
        """Say before any row is added that rows are of another width, or that there is no room."""
        if self.n_samples:
            check_width(n_features, self.n_features, name)
            return
        width = n_features
        if self.basis is not None:
            if self.basis.ndim != 2 or len(self.basis) != n_features:
                raise ParameterError(
                    "basis-shape",
                    f"`basis` has shape {self.basis.shape}",
                    f"rows have {n_features} variables: it needs a row for each of them and a column for "
                    "each axis",
                    parameter="basis",
                )
            width = self.basis.shape[1]
        what = f"{width} variables" if self.basis is None else f"{width} axes"
        advice = (
            "Rows that are read in one pass only need a basis: pass `basis`, axes of the variables to "
            "work in, such as contrica.moments.common_basis gives of a part of the rows. Or fit what "
            "can be read twice (a file, contrica.rows.Blocks of a function), or raise `memory_limit`."
        )
        check_memory(
            packed_bytes(width),
            memory_budget(self.memory_limit),
            f"the fourth moments of {what}, which a single pass needs,",
            advice
            if self.basis is None
            else "Give a `basis` of fewer axes, or raise `memory_limit`.",
        )

    def _begin(self, n_features: int) -> None:
        self.n_features = n_features
        width = n_features if self.basis is None else self.basis.shape[1]
        self._moments = Moments(width)
        self._rows = np.empty((0, width))

    def _keep(self, rows: np.ndarray, keys: np.ndarray) -> None:
        """Those with the smallest keys, in the order in which they were read."""
        rows, keys = np.vstack([self._rows, rows]), np.concatenate([self._keys, keys])
        stay, most = np.flatnonzero(keys <= self._limit), self._max_kept(rows.shape[1])
        if stay.size > most:
            stay = np.sort(stay[np.argpartition(keys[stay], most)[:most]])
            self._limit = float(keys[stay].max())
        self._rows, self._keys = rows[stay], keys[stay]

    def merge(self, other: DataSums) -> DataSums:
        """Add the rows of another, of the same variables and basis, to this one, which is returned."""
        if other.n_samples == 0:
            return self
        basis, new = self.check_merge(other), self._apart()
        new.basis, new.columns = basis, self.columns or other.columns
        if new._moments is None:
            new._begin(other.n_features)
        new._columns.merge(other._columns)
        new._moments.merge(other._moments)  # type: ignore[union-attr, arg-type]
        # Drawn anew: the i-th rows of several files would otherwise stay together, or go together.
        keys = new._smallest_keys(other.n_samples, len(other._keys))
        if len(keys) < other.n_samples:  # of the other's rows none above these are known
            new._limit = min(new._limit, float(keys.max()))
        new._keep(other._rows, keys)
        new.n_samples += other.n_samples
        return self._become(new)

    def check_merge(self, other: DataSums) -> np.ndarray | None:
        """Refuse what `merge` would refuse; the basis that both would have comes back."""
        mine, theirs = self.basis, other.basis
        if other.n_samples == 0:
            return mine
        if self.n_samples == 0 and mine is None:
            mine = theirs
        if not same_basis(mine, theirs):
            raise ParameterError(
                "basis",
                "cannot merge sums that were taken in different bases",
                remedy="Give all of them the same one.",
                parameter="basis",
            )
        self._check_room(other.n_features, "what is merged")
        self.compare_columns(other.columns, "what is merged")
        return mine

    def _smallest_keys(self, total: int, count: int) -> np.ndarray:
        """The ``count`` smallest of so many uniform numbers, in random order."""
        steps = self._drawn.exponential(size=count)
        rest = self._drawn.gamma(total - count + 1)
        keys = np.cumsum(steps) / (steps.sum() + rest)
        return self._drawn.permutation(keys)

    def summary(self) -> ColumnSummary:
        """Of every variable: mean, least and largest value, spread."""
        return self._columns.summary()

    def cumulants(self, estimate: Estimate = "plugin") -> Cumulants:
        """Cumulants of all rows so far, in the basis if there is one."""
        if self._moments is None:
            raise DataError("too-few-rows", "there are no rows", "at least two are needed")
        return self._moments.cumulants(estimate)

    def rows(self) -> np.ndarray:
        """The rows kept, all or a random sample, in the basis if there is one."""
        return self._rows

    def save(self, path: str | Path) -> None:
        """Write all sums to an npz file with checksums; it is complete or not there.

        Parameters
        ----------
        path : path
        """
        about = {
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "n_kept": self.n_kept,
            "columns": self.columns,
            "memory_limit": self.memory_limit,
            "limit": None if np.isinf(self._limit) else self._limit,
            "drawn": self._drawn.bit_generator.state,
        }
        arrays = {"rows": self._rows, "keys": self._keys}
        if self.basis is not None:
            arrays["basis"] = self.basis
        if self._moments is not None:
            found = self._columns.summary()
            arrays |= {
                f"column_{name}": np.asarray(value) for name, value in found._asdict().items()
            }
            arrays |= {f"moment_{name}": value for name, value in self._moments.state().items()}
        write_archive(path, SUMS_FILE, about, arrays, compressed=False)

    @classmethod
    def load(cls, path: str | Path) -> DataSums:
        """Read what `save` wrote, to go on adding rows or to fit; checksums and sizes are compared.

        Parameters
        ----------
        path : path

        Returns
        -------
        DataSums

        Raises
        ------
        FileError
            If the file does not hold sums, or is damaged.
        FileMissingError
        """
        about, state, _ = read_archive(path, SUMS_FILE)
        try:
            return cls._of_state(about, state)
        except Exception as error:  # whatever is made of numbers that do not belong together
            raise FileError(
                SUMS_FILE.code,
                f"{unmarked(path)} does not hold saved sums, or is damaged",
                remedy=SUMS_FILE.remedy,
                parameter="path",
            ) from error

    @classmethod
    def _of_state(cls, about: dict[str, Any], state: dict[str, np.ndarray]) -> DataSums:
        """The sums that had this state; a ValueError, or another error, where there are none such."""
        made = cls(
            basis=state.get("basis"), memory_limit=about["memory_limit"], n_kept=about["n_kept"]
        )
        made.columns = about["columns"]
        made._drawn.bit_generator.state = about["drawn"]
        if about["n_samples"]:
            made.n_samples, made.n_features = about["n_samples"], about["n_features"]
            made._limit = np.inf if about["limit"] is None else about["limit"]
            columns = [state[f"column_{name}"] for name in ColumnSummary._fields]
            made._columns.add(ColumnSummary(int(columns[0]), *columns[1:]))
            made._moments = Moments.from_state(
                {name[7:]: part for name, part in state.items() if name.startswith("moment_")}
            )
            made._rows, made._keys = state["rows"], state["keys"]
            made._check_whole()
        return made

    def _check_whole(self) -> None:
        """Refuse parts that were not saved together, as far as their sizes show it."""
        summary, moments, p = self.summary(), self._moments, self.n_features
        width = p if self.basis is None else self.basis.shape[1]
        fits = (
            moments is not None
            and (self.n_samples == summary.n_rows == moments.n_samples)
            and all(part.shape == (p,) for part in summary[1:])
            and (self.basis is None or self.basis.shape == (p, width))
            and moments.n_features == width
            and moments.counts_its_rows()
            and self._rows.shape == (len(self._keys), width)
            and len(self._keys) <= self.n_samples
            and (self.columns is None or len(self.columns) == p)
            and all(np.isfinite(part).all() for part in (*summary[1:], self._rows, self._keys))
        )
        if not fits:
            raise ValueError("its parts do not belong together")


def same_basis(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Whether two bases are one, or there is none of either.

    Parameters
    ----------
    one, other : ndarray of shape (n_features, k) or None

    Returns
    -------
    bool
    """
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
