"""Rows of a dataset, block by block: the one file that knows how data are held.

Sums over rows are all that means, covariances, principal axes and cumulants need, so everything
downstream asks for blocks and never for the whole. Blocks come out as float64, whatever the container's
dtype, so sums accumulate in double precision. A sparse matrix is never written out beyond one block, and
products with it are taken sparse.

`as_rows` turns what users have into something with a shape that `iterate_blocks`, `column_summary` and
`rows_times` understand: arrays stay arrays, and all else becomes `Rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = [
    "Blocks",
    "ColumnSummary",
    "Rows",
    "as_rows",
    "block_rows",
    "column_summary",
    "held_in_memory",
    "iterate_blocks",
    "rows_times",
    "times_rows",
]

# Working set of one block. Large enough for BLAS to run at full speed, small enough to stay
# close to the cache and out of the memory budget.
BLOCK_BYTES = 16 * 2**20


class Rows(ABC):
    """Rows that are read block by block, as often as asked.

    Attributes
    ----------
    shape : tuple of int
        Rows and variables.
    sparse : bool
        Whether products with the rows cost as much as their non-zero entries.
    """

    shape: tuple[int, int]
    sparse: bool = False

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, dense, float64."""

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks that know ``@``; sparse ones where the container is sparse."""
        return self.blocks(block_rows(self.shape[1]))


class _Sliced(Rows):
    """What is cut by ``data[start:stop]``: memory maps, HDF5 and zarr arrays, tensors."""

    def __init__(self, data: Any, dense: Callable[[Any], np.ndarray] = np.asarray) -> None:
        self._data, self._dense = data, dense
        self.shape = (int(data.shape[0]), int(data.shape[1]))

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        for start in range(0, len(self), n_rows):
            yield np.asarray(self._dense(self._data[start : start + n_rows]), dtype=np.float64)


class _Sparse(Rows):
    """A scipy matrix in compressed rows."""

    sparse = True

    def __init__(self, data: Any) -> None:
        self._data = data.tocsr()
        self.shape = self._data.shape

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        for start in range(0, len(self), n_rows):
            yield self._data[start : start + n_rows].toarray().astype(np.float64, copy=False)

    def pieces(self) -> Iterator[Any]:
        # a view of the whole: products with it need no block
        yield self._data


class _Parts(Rows):
    """Arrays that follow one another and are made anew for each pass."""

    def __init__(self, parts: Callable[[], Iterable[Any]], shape: tuple[int, int]) -> None:
        self._parts, self.shape = parts, shape

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        seen = 0
        for part in self._parts():
            rows = as_rows(part, "a block")
            if rows.shape[1] != self.shape[1]:
                raise ValueError(
                    f"a block of {rows.shape[1]} columns came after row {seen}, but the blocks before "
                    f"it have {self.shape[1]}. All must measure the same variables in the same order."
                )
            seen += rows.shape[0]
            yield from iterate_blocks(rows, n_rows)
        if seen != len(self):
            raise ValueError(
                f"the blocks hold {seen} rows this time, but held {len(self)} when first read. Several "
                "passes are needed: give what can be read again from its beginning."
            )


class Blocks:
    """Several arrays, one below the other, as one dataset.

    Parameters
    ----------
    parts : sequence of array-like, or callable
        The blocks of rows in their order; or a function that returns an iterable of them, and is called
        for each pass.

    Examples
    --------
    >>> import numpy as np
    >>> as_rows(Blocks([np.zeros((2, 3)), np.ones((4, 3))])).shape
    (6, 3)
    """

    def __init__(self, parts: Sequence[Any] | Callable[[], Iterable[Any]]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts() if callable(self._parts) else self._parts)


def as_rows(data: Any, name: str = "X") -> np.ndarray | Rows:
    """What users have, as an array or as `Rows`; nothing large is read.

    Parameters
    ----------
    data : array-like, sparse matrix, memory map, HDF5, zarr or dask array, dask frame, tensor, iterable
        An iterable of arrays, blocks of rows, must be readable more than once; it is read once here to
        count its rows.
    name : str
        What errors call it.

    Returns
    -------
    ndarray or Rows

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> as_rows(sp.eye(5, 3)).shape
    (5, 3)
    """
    if isinstance(data, Rows) or type(data) is np.ndarray:
        return data
    if sp.issparse(data):
        return _Sparse(data)
    if isinstance(data, np.memmap):
        return _Sliced(data) if data.ndim == 2 else np.asarray(data)
    maker = _module(data)
    if maker == "dask":
        return _dask_rows(data, name)
    if maker == "torch":
        return _Sliced(data.detach(), lambda block: block.cpu().numpy())
    if maker == "cupy":
        return _Sliced(data, lambda block: block.get())
    if maker in ("h5py", "zarr") and len(getattr(data, "shape", ())) == 2:
        return _Sliced(data)
    if _is_stream(data):
        return _stream(data, name)
    return data


def _module(data: Any) -> str:
    return type(data).__module__.split(".")[0]


def _is_stream(data: Any) -> bool:
    """Whether it is an iterable of matrices that is no table itself."""
    if hasattr(data, "shape") or hasattr(data, "__array__") or hasattr(data, "__dataframe__"):
        return False
    # a list is a table written out, or several backgrounds
    return isinstance(data, Iterable) and not isinstance(data, Sequence | dict | set)


def _stream(data: Iterable[Any], name: str) -> Rows:
    if isinstance(data, Iterator):
        raise ValueError(
            f"{name} is an iterator, which can be read once, but a fit reads its rows several times. "
            "Give what can be read again from its beginning: contrica.blocks.Blocks of a list of them, "
            "or of a function that starts anew."
        )
    shapes = [as_rows(part, name).shape for part in data]
    if not shapes:
        raise ValueError(f"{name} has no blocks of rows.")
    widths = {shape[1] for shape in shapes}
    if len(widths) > 1:
        raise ValueError(
            f"the blocks of {name} have {sorted(widths)} columns. All must measure the same variables "
            "in the same order."
        )
    return _Parts(lambda: data, (sum(shape[0] for shape in shapes), widths.pop()))


def _dask_rows(data: Any, name: str) -> Rows:
    """Chunks of a dask array or frame, computed on the caller's scheduler one after the other."""
    if hasattr(data, "to_dask_array"):
        data = data.to_dask_array(lengths=True)
    if data.ndim != 2:
        raise ValueError(
            f"{name} has {data.ndim} dimensions, but a table of rows by variables is needed."
        )
    if any(np.isnan(size) for size in data.chunks[0]):
        data = data.compute_chunk_sizes()
    data = data.rechunk({1: -1})  # whole rows

    def chunks() -> Iterator[Any]:
        for chunk in data.to_delayed().ravel():
            yield chunk.compute()

    return _Parts(chunks, (int(data.shape[0]), int(data.shape[1])))


def held_in_memory(rows: np.ndarray | Rows) -> np.ndarray:
    """All rows as one float64 array."""
    if isinstance(rows, np.ndarray):
        return rows
    whole = np.empty(rows.shape)
    start = 0
    for block in rows.blocks(block_rows(rows.shape[1])):
        whole[start : start + len(block)] = block
        start += len(block)
    return whole


def block_rows(n_columns: int) -> int:
    """Rows of float64 with ``n_columns`` entries that make up one block."""
    return max(256, BLOCK_BYTES // (8 * max(n_columns, 1)))


def iterate_blocks(X: np.ndarray | Rows, n_rows: int) -> Iterator[np.ndarray]:
    """Yield consecutive blocks of at most ``n_rows`` rows as float64 arrays."""
    if isinstance(X, Rows):
        yield from X.blocks(n_rows)
        return
    for start in range(0, X.shape[0], n_rows):
        yield np.asarray(X[start : start + n_rows], dtype=np.float64)


def rows_times(X: np.ndarray | Rows, matrix: np.ndarray) -> np.ndarray:
    """``X · M``, block by block, sparse where X is."""
    if isinstance(X, np.ndarray):
        return X @ matrix
    product = np.empty((len(X), matrix.shape[1]))
    start = 0
    for piece in X.pieces():
        stop = start + piece.shape[0]
        product[start:stop] = piece @ matrix
        start = stop
    return product


def times_rows(matrix: np.ndarray, X: np.ndarray | Rows) -> np.ndarray:
    """``M · X`` for M with a column for each row of X, block by block, sparse where X is."""
    if isinstance(X, np.ndarray):
        return matrix @ X
    total = np.zeros((matrix.shape[0], X.shape[1]))
    start = 0
    for piece in X.pieces():
        stop = start + piece.shape[0]
        total += (piece.T @ matrix[:, start:stop].T).T
        start = stop
    return total


class ColumnSummary(NamedTuple):
    """What one pass says of every variable.

    Attributes
    ----------
    n_rows : int
    mean, low, high : ndarray of shape (n_features,)
    energy : ndarray of shape (n_features,)
        Sum of squares about the mean.
    """

    n_rows: int
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    energy: np.ndarray


def column_summary(X: np.ndarray | Rows) -> ColumnSummary:
    """Mean, least, largest value and sum of squares of every variable, in one pass.

    Parameters
    ----------
    X : ndarray or Rows

    Returns
    -------
    ColumnSummary
        NaN and infinity show in ``low`` and ``high``.
    """
    if isinstance(X, _Sparse):
        return _sparse_summary(X._data)
    blocks = iterate_blocks(X, block_rows(X.shape[1]))
    n, p = 0, X.shape[1]
    origin, total, squares = np.zeros(p), np.zeros(p), np.zeros(p)
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    for block in blocks:
        if n == 0:  # about the first row, so that a large mean costs no digits
            origin = block[0].copy()
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
        block = block - origin
        total += block.sum(axis=0)
        squares += np.einsum("ti,ti->i", block, block)
        n += len(block)
    shift = total / n
    return ColumnSummary(n, origin + shift, low, high, np.maximum(squares - n * shift**2, 0.0))


def _sparse_summary(X: Any) -> ColumnSummary:
    n = X.shape[0]
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    low, high = (
        np.asarray(extreme.toarray(), dtype=np.float64).ravel()
        for extreme in (X.min(axis=0), X.max(axis=0))
    )
    squares = np.asarray(X.multiply(X).sum(axis=0), dtype=np.float64).ravel()
    return ColumnSummary(n, mean, low, high, np.maximum(squares - n * mean**2, 0.0))
