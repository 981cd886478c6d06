"""Scores of rows, block by block, and the sample of them that a scatter shows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from contrica.cli.pair import Data
from contrica.errors import DataError
from contrica.rows.files.dask_store import computed
from contrica.validation import generator

__all__ = ["Sample", "pattern_names", "scores_of", "takes_gaps", "without_names"]

# Rows of each dataset that a scatter shows; more make a blot, and a large file.
MAX_DRAWN = 20_000


def pattern_names(model: Any) -> list[str]:
    """Headings for the patterns of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted.

    Returns
    -------
    list of str
    """
    return [f"pattern_{i + 1}" for i in range(len(model.components_))]


def without_names(model: Any) -> Any:
    """The model without names of variables, which blocks of rows do not have to compare with.

    Parameters
    ----------
    model : estimator
        Fitted. It is not changed.

    Returns
    -------
    estimator
    """
    bare = copy.copy(model)
    vars(bare).pop("feature_names_in_", None)
    return bare


def takes_gaps(model: Any) -> bool:
    """Whether a fitted model scores rows with missing values.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    bool
    """
    return bool(getattr(model, "missing", "error") != "error")


def scores_of(model: Any, data: Data) -> Iterator[np.ndarray]:
    """Scores of the rows: of a table all at once, of others by block, of shared ones by the workers.

    Parameters
    ----------
    model : estimator
        Fitted, `without_names`.
    data : Data

    Yields
    ------
    ndarray of shape (n_rows, n_components)
    """
    start = 0
    for block in _score_blocks(model, data):
        bad = ~np.isfinite(block).all(axis=1)
        if bad.any() and not takes_gaps(model):  # a block knows its own rows only
            raise DataError(
                "not-finite",
                f"row {start + int(bad.argmax()) + 1} has no scores: it contains NaN or infinity",
                remedy="Leave such rows out, or fit with `missing=impute`.",
            )
        yield block
        start += len(block)


def _score_blocks(model: Any, data: Data) -> Iterable[np.ndarray]:
    if data.shared is not None:
        sizes = (data.shared.chunks[0], (len(model.components_),))
        scores = data.shared.map_blocks(
            _scored, model, chunks=sizes, dtype=np.float64, meta=np.empty((0, 0))
        )
        return computed(scores.to_delayed().ravel())
    pieces = [data.values] if isinstance(data.values, np.ndarray) else data.values.pieces()
    return (_scored(piece, model) for piece in pieces)


def _scored(block: Any, model: Any) -> np.ndarray:
    """Scores of a block's rows; if any holds NaN or infinity, NaN for those and 0 for the others."""
    if takes_gaps(model):
        return model.transform(block)
    width = block.shape[1]
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(block @ np.full(width, 1 / width))  # a mean, which does not overflow
    if usable.all():
        return model.transform(block)
    return np.where(usable[:, np.newaxis], 0.0, np.full(len(model.components_), np.nan))


class Sample:
    """The scores that a scatter shows: all, or those of a random sample of the rows.

    Parameters
    ----------
    n_rows : int
        Rows in all.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.rows = np.arange(min(n_rows, MAX_DRAWN))
        if n_rows > MAX_DRAWN:
            self.rows = np.sort(generator(0).choice(n_rows, MAX_DRAWN, replace=False))
        self._parts: list[np.ndarray] = []

    @property
    def is_all(self) -> bool:
        """Whether no row is left out."""
        return self.rows.size == self.n_rows

    def of(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The blocks, unchanged; rows of the sample are kept as they pass."""
        start = 0
        for block in blocks:
            first, last = np.searchsorted(self.rows, [start, start + len(block)])
            self._parts.append(block[self.rows[first:last] - start])
            start += len(block)
            yield block

    def scores(self) -> np.ndarray:
        """Of the rows in the sample, once all blocks have passed."""
        return np.vstack(self._parts)
