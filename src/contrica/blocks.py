"""Rows of a dataset, block by block: the one file that knows how data are held.

Sums over rows are all that the cumulants need, so everything downstream asks for blocks and never
for the whole array. Blocks come out as float64, whatever the container's dtype, so sums accumulate
in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["block_rows", "iterate_blocks"]

# Working set of one block. Large enough for BLAS to run at full speed, small enough to stay
# close to the cache and out of the memory budget.
BLOCK_BYTES = 16 * 2**20


def block_rows(n_columns: int) -> int:
    """Rows of float64 with ``n_columns`` entries that make up one block."""
    return max(256, BLOCK_BYTES // (8 * max(n_columns, 1)))


def iterate_blocks(X: np.ndarray, n_rows: int) -> Iterator[np.ndarray]:
    """Yield consecutive blocks of at most ``n_rows`` rows as float64 arrays."""
    for start in range(0, X.shape[0], n_rows):
        yield np.asarray(X[start : start + n_rows], dtype=np.float64)
