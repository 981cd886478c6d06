"""Arrays that are cut by ``data[start:stop]``: memory maps, HDF5 and zarr arrays, numpy's in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from contrica.rows.protocol import Rows

__all__ = ["SlicedRows", "numpy_doubles"]


class SlicedRows(Rows):
    """What is cut by ``data[start:stop]``, each slice made a block by a function."""

    can_skip = True

    def __init__(self, data: Any, block: Callable[[Any], Any]) -> None:
        self._data, self._block = data, block
        self.shape = (int(data.shape[0]), int(data.shape[1]))

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        starts = range(0, len(self), n_rows)
        return self.spans([(start, min(start + n_rows, len(self))) for start in starts])

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Rows from ``start`` to ``stop`` of each of the ``bounds``, as `Rows.spans` says."""
        for start, stop in bounds:
            yield self._block(self._cut(start, stop))

    def _cut(self, start: int, stop: int) -> Any:
        return self._data[start:stop, :]


def numpy_doubles(block: Any) -> np.ndarray:
    """A block as an array of numpy, float64."""
    return np.asarray(block, dtype=np.float64)
