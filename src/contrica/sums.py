"""Everything a fit needs to know of one dataset, from one pass over its rows; mergeable, saveable.

Means, covariances and fourth cumulants are sums (`contrica.cumulants.Moments`). The choice of ranks and
the rotation in a contrast subspace also look at rows, for which a random sample of them is kept: every
row draws a number, and those with the smallest numbers stay, so that samples can be merged like sums.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from contrica.blocks import (
    ColumnSummary,
    Rows,
    Summary,
    as_rows,
    block_rows,
    iterate_blocks,
    to_numpy,
)
from contrica.cumulants import Cumulants, Estimate, Moments, packed_bytes
from contrica.memory import check_memory, memory_budget
from contrica.validation import check_finite, check_width

__all__ = ["DataSums"]

# Entries of the rows that are kept as a sample: 32 MB.
SAMPLE_ENTRIES = 2**22
FEWEST_KEPT = 2000


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
        self.basis = None if basis is None else np.asarray(basis, dtype=float)
        self.memory_limit, self.n_kept = memory_limit, n_kept
        self.n_samples = self.n_features = 0
        self._columns = Summary()
        self._moments: Moments | None = None
        self._rows = self._keys = np.empty(0)
        self._drawn = np.random.default_rng(0)

    def update(self, X: Any) -> DataSums:
        """Add a block of rows, of any container; refused as a whole if one of them cannot be used."""
        rows = as_rows(X, "a block")
        if not isinstance(rows, Rows):
            rows = np.atleast_2d(np.asarray(rows, dtype=float))
        if len(rows) == 0:
            return self
        if self.n_samples:
            check_width(rows.shape[1], self.n_features, "a block")
        else:
            self._begin(rows.shape[1])
        columns = Summary()
        blocks = list(iterate_blocks(rows, block_rows(rows.shape[1], rows)))
        for block in blocks:
            columns.update(block)
        check_finite(columns.summary(), "a block")
        self._columns.merge(columns)
        for block in blocks:
            seen = to_numpy(block) if self.basis is None else to_numpy(block) @ self.basis
            self._moments.update(seen)  # type: ignore[union-attr]
            self._sample(seen)
            self.n_samples += len(seen)
        return self

    def _begin(self, n_features: int) -> None:
        """Make room, or say before any row is added that there is none."""
        width = n_features
        if self.basis is not None:
            if self.basis.ndim != 2 or len(self.basis) != n_features:
                raise ValueError(
                    f"basis has shape {self.basis.shape}, but rows have {n_features} variables: it needs "
                    "a row for each of them and a column for each axis."
                )
            width = self.basis.shape[1]
        check_memory(
            packed_bytes(width),
            memory_budget(self.memory_limit),
            f"the fourth moments of {width} variables, which a single pass needs,",
            "Rows that are read in one pass only need a basis: pass basis=, axes of the variables to "
            "work in, such as contrica.projection.common_basis gives of a part of the rows. Or fit what "
            "can be read twice (a file, contrica.blocks.Blocks of a function), or raise memory_limit.",
        )
        self.n_features = n_features
        self._moments = Moments(width)
        most = max(SAMPLE_ENTRIES // width, FEWEST_KEPT)
        self.n_kept = most if self.n_kept is None else self.n_kept
        self._rows, self._keys = np.empty((0, width)), np.empty(0)

    def _sample(self, rows: np.ndarray) -> None:
        keys = self._drawn.random(len(rows))
        full = len(self._keys) >= self.n_kept  # type: ignore[operator]
        worth = keys < self._keys.max() if full else np.ones(len(rows), dtype=bool)
        self._keep(rows[worth], keys[worth])

    def _keep(self, rows: np.ndarray, keys: np.ndarray) -> None:
        """Those with the smallest keys, in the order in which they came."""
        rows, keys = np.vstack([self._rows, rows]), np.concatenate([self._keys, keys])
        if len(keys) > self.n_kept:  # type: ignore[operator]
            stay = np.sort(np.argpartition(keys, self.n_kept)[: self.n_kept])  # type: ignore[arg-type]
            rows, keys = rows[stay], keys[stay]
        self._rows, self._keys = rows, keys

    def merge(self, other: DataSums) -> DataSums:
        """Add the rows of another; both must have the same variables and basis."""
        if other.n_samples == 0:
            return self
        if self.n_samples == 0:
            self.basis = other.basis
            self._begin(other.n_features)
        check_width(other.n_features, self.n_features, "what is merged")
        mine, theirs = self.basis, other.basis
        if (mine is None) != (theirs is None) or (
            mine is not None and theirs is not None and not np.array_equal(mine, theirs)
        ):
            raise ValueError(
                "cannot merge sums that were taken in different bases. Give all of them the same one."
            )
        self._columns.merge(other._columns)
        self._moments.merge(other._moments)  # type: ignore[union-attr, arg-type]
        self._keep(other._rows, other._keys)
        self.n_samples += other.n_samples
        return self

    def summary(self) -> ColumnSummary:
        """Of every variable: mean, least and largest value, spread."""
        return self._columns.summary()

    def cumulants(self, estimate: Estimate = "plugin") -> Cumulants:
        """Cumulants of all rows so far, in the basis if there is one."""
        if self._moments is None:
            raise ValueError("no rows came. At least two are needed.")
        return self._moments.cumulants(estimate)

    def rows(self) -> np.ndarray:
        """The rows kept, all or a random sample, in the basis if there is one."""
        return self._rows

    def save(self, path: str | Path) -> None:
        """Write all sums to an npz file, under another name first, so that it is whole or not there."""
        path = Path(path)
        found = self._columns.summary() if self.n_samples else None
        arrays = {
            "contrica_sums": np.array([self.n_samples, self.n_features, self.n_kept or 0]),
            "rows": self._rows,
            "keys": self._keys,
        }
        if self.basis is not None:
            arrays["basis"] = self.basis
        if found is not None and self._moments is not None:
            arrays |= {
                f"column_{name}": np.asarray(value) for name, value in found._asdict().items()
            }
            arrays |= {f"moment_{name}": value for name, value in self._moments.state().items()}
        part = path.with_name(f".{path.name}.part")
        try:
            with open(part, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> DataSums:
        """Read what `save` wrote, to go on adding rows or to fit.

        Parameters
        ----------
        path : path

        Returns
        -------
        DataSums
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
            n_samples, n_features, n_kept = state["contrica_sums"].tolist()
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} does not exist. Check the path.") from None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(
                f"{path} does not hold saved sums, or is damaged. Give what DataSums.save wrote."
            ) from error
        made = cls(basis=state.get("basis"), n_kept=n_kept or None)
        if n_samples:
            made.n_samples, made.n_features = n_samples, n_features
            columns = {name: state[f"column_{name}"] for name in ColumnSummary._fields}
            columns["n_rows"] = int(columns["n_rows"])
            made._columns.add(ColumnSummary(**columns))
            moments = {
                name[7:]: value for name, value in state.items() if name.startswith("moment_")
            }
            made._moments = Moments.from_state(moments)
            made._rows, made._keys = state["rows"], state["keys"]
            # each row drew one number: go on behind them
            made._drawn.bit_generator.advance(n_samples)  # type: ignore[attr-defined]
        return made
