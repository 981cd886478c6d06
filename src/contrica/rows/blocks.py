"""Rows of a dataset, block by block: the one file that knows how data are held.

Sums over rows are all that means, covariances, principal axes and cumulants need, so everything
downstream is an *accumulator*: it is given blocks of rows, ``update(block)``, and two of them can be put
together, ``merge(other)``. `accumulate` brings an accumulator and the rows together: block by block for
what is read here, and for dask chunk by chunk where the chunks are, merged in a tree.

`as_rows` turns what users have into something with a shape that `accumulate`, `iterate_blocks` and
`rows_times` understand: numpy arrays stay arrays, and all else becomes `Rows`. Blocks come out as
float64, whatever the container's dtype, and where they live: those of a tensor on a GPU are tensors
there, and accumulators are written in the names of the array API, so that they work on both. A sparse
matrix is never written out beyond one block, and products with it are taken sparse.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from itertools import pairwise
from os import PathLike
from textwrap import shorten
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from contrica.rows.threads import Team, team

__all__ = [
    "Accumulator",
    "Blocks",
    "Chosen",
    "ClusterLostError",
    "ColumnSummary",
    "Rows",
    "Summary",
    "accumulate",
    "as_doubles",
    "as_rows",
    "block_rows",
    "chosen_rows",
    "column_names",
    "column_summary",
    "gram_times",
    "held_in_memory",
    "is_tensor",
    "iterate_blocks",
    "like",
    "namespace",
    "on_device",
    "projected",
    "rows_times",
    "same_kind",
    "short",
    "tensor_times",
    "to_numpy",
]

# Working set of one block. Large enough for BLAS to run at full speed, small enough to stay
# close to the cache and out of the memory budget.
BLOCK_BYTES = 16 * 2**20
# On a GPU a block must keep thousands of cores busy.
DEVICE_BLOCK_BYTES = 2**30
# Accumulators merged at a time by dask: the most that one worker holds.
FAN_IN = 4
# Data are kept on a device as a whole where they take at most this share of its free memory; while they
# are put together they are there twice.
DEVICE_SHARE = 0.3
# Rows of single precision that are summed by one product.
SINGLE_ROWS = 32_768


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
    # Whether reading them hundreds of times costs nothing but their products.
    at_hand: bool = False
    # Working set of one block.
    block_bytes: int | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, dense, float64."""

    def pieces(self) -> Iterator[Any]:
        """Consecutive blocks that know ``@``; sparse ones where the container is sparse."""
        return self.blocks(block_rows(self.shape[1], self))

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        """``empty(0)`` with all blocks added to it."""
        total = empty(0)
        for block in self.blocks(n_rows):
            total.update(block)
        return total


class ClusterLostError(RuntimeError):
    """The workers or the scheduler of a dask cluster were lost, and with them the sums so far."""


class Accumulator(Protocol):
    """A sum over rows: blocks can be added to it, and two of them put together."""

    def update(self, block: Any) -> Self:
        """Add a block of rows."""

    def merge(self, other: Self) -> Self:
        """Add what another one holds."""


def accumulate(X: np.ndarray | Rows, empty: Callable[[int], Any], n_rows: int | None = None) -> Any:
    """An accumulator that has been given all rows.

    Parameters
    ----------
    X : ndarray or Rows
    empty : callable
        Makes an accumulator without rows. It is told the number of the first row it will get, and must be
        picklable where X is a dask array on a cluster.
    n_rows : int, optional
        Rows in a block.

    Returns
    -------
    object
        What ``empty`` makes.

    Examples
    --------
    >>> import numpy as np
    >>> accumulate(np.array([[1.0], [3.0]]), Summary).summary().mean
    array([2.])
    """
    size = n_rows or block_rows(X.shape[1], X)
    if isinstance(X, Rows):
        return X.accumulate(empty, size)
    total = empty(0)
    for block in iterate_blocks(X, size):
        total.update(block)
    return total


# --- containers ---


class _Sliced(Rows):
    """What is cut by ``data[start:stop]``: memory maps, HDF5 and zarr arrays, tensors."""

    def __init__(self, data: Any, block: Callable[[Any], Any]) -> None:
        self._data, self._block = data, block
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        if _device(data) not in (None, "cpu"):
            self.block_bytes = DEVICE_BLOCK_BYTES

    def blocks(self, n_rows: int) -> Iterator[Any]:
        for start in range(0, len(self), n_rows):
            yield self._block(self._cut(start, min(start + n_rows, len(self))))

    def _cut(self, start: int, stop: int) -> Any:
        return self._data[start:stop, :]


def _doubles(block: Any) -> np.ndarray:
    return np.asarray(block, dtype=np.float64)


def _written_out(block: Any) -> np.ndarray:
    return np.asarray(block.toarray(), dtype=np.float64)


def _compressed(kind: Any, shape: tuple[int, int], parts: tuple[np.ndarray, ...]) -> Any:
    """A sparse matrix of these very arrays: scipy's constructor copies what is part of a larger array."""
    matrix = kind(shape, dtype=parts[0].dtype)
    matrix.data, matrix.indices, matrix.indptr = parts
    return matrix


def _transposed(rows: Any) -> Any:
    """Compressed rows as columns of a matrix, without a copy."""
    n, p = rows.shape
    rows = rows.tocsr()
    return _compressed(sp.csc_matrix, (p, n), (rows.data, rows.indices, rows.indptr))


class _Sparse(Rows):
    """A scipy matrix in compressed rows."""

    sparse = at_hand = True

    def __init__(self, data: Any) -> None:
        self._data = data.tocsr()
        self.shape = self._data.shape

    def _cut(self, start: int, stop: int) -> Any:
        """Some rows; their entries are views, which those of scipy's own slices are not."""
        X = self._data
        ends = X.indptr[start : stop + 1]
        own = slice(ends[0], ends[-1])
        return _compressed(
            sp.csr_matrix,
            (ends.size - 1, X.shape[1]),
            (X.data[own], X.indices[own], ends - ends[0]),
        )

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        for start in range(0, len(self), n_rows):
            yield _written_out(self._cut(start, min(start + n_rows, len(self))))

    def pieces(self) -> Iterator[Any]:
        return iter(self._pieces)

    @cached_property
    def _pieces(self) -> list[Any]:
        """As many entries in each as there are in a block, so that what is made of them is small."""
        if len(self) == 0:
            return []
        share = max(self._data.nnz / len(self), 1.0)
        count = -(-len(self) // max(int(BLOCK_BYTES / (8 * share)), 256))
        # of one size, and as many for each of two or four threads
        count = 4 * -(-count // 4) if count > 1 else 1
        ends = np.linspace(0, len(self), count + 1).astype(int)
        return [self._cut(start, stop) for start, stop in pairwise(ends)]


class _Parts(Rows):
    """Arrays that follow one another and are made anew for each pass."""

    def __init__(
        self, parts: Callable[[], Iterable[Any]], shape: tuple[int, int], columns: list[Any] | None
    ) -> None:
        self._parts, self.shape, self.columns = parts, shape, columns

    def blocks(self, n_rows: int) -> Iterator[Any]:
        seen = 0
        for part in self._parts():
            rows = _table(part, "a block")
            if rows.shape[1] != self.shape[1]:
                raise ValueError(
                    f"a block of {rows.shape[1]} columns came after row {seen}, but the blocks before "
                    f"it have {self.shape[1]}. All must measure the same variables in the same order."
                )
            _same_columns(self.columns, _columns(part), "a block")
            seen += rows.shape[0]
            yield from iterate_blocks(rows, n_rows)
        if seen != len(self):
            raise ValueError(
                f"the blocks hold {seen} rows this time, but held {len(self)} when first read. Several "
                "passes are needed: give what can be read again from its beginning."
            )


class _Dask(Rows):
    """Chunks of a dask array: sums are taken where the chunks are, on the caller's scheduler."""

    def __init__(self, data: Any) -> None:
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        self._chunks = data.to_delayed().ravel().tolist()
        self._starts = np.concatenate([[0], np.cumsum(data.chunks[0])[:-1]]).astype(int).tolist()

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Chunk after chunk, brought here."""
        for chunk in self._chunks:
            yield from iterate_blocks(as_rows(_computed(chunk), "a chunk"), n_rows)

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        import dask

        # one node of the graph, however large what it carries
        shared = dask.delayed(empty, traverse=False, pure=False)
        fill = dask.delayed(_filled, pure=False)
        parts = [
            fill(chunk, shared, start, n_rows)
            for chunk, start in zip(self._chunks, self._starts, strict=True)
        ]
        merge = dask.delayed(_merged, pure=False)
        while len(parts) > 1:
            parts = [merge(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return _computed(parts[0])


def _filled(chunk: Any, empty: Callable[[int], Any], start: int, n_rows: int) -> Any:
    """An accumulator of one chunk; runs on a worker."""
    total = empty(start)
    for block in iterate_blocks(as_rows(chunk, "a chunk"), n_rows):
        total.update(block)
    return total


def _merged(parts: list[Any]) -> Any:
    """All in one, the first of them made anew: dask's results must not be changed in place."""
    first, *others = parts
    if not others:
        return first
    from copy import deepcopy

    total = deepcopy(first)
    for part in others:
        total.merge(part)
    return total


def _computed(delayed: Any) -> Any:
    """The value; a cluster that is lost is said in words."""
    with _cluster():
        return delayed.compute()


@contextmanager
def _cluster() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] != "distributed" and not _is_gone():
            raise
        raise ClusterLostError(
            f"the dask cluster was lost while rows were summed ({type(error).__name__}: {error}). "
            "Nothing was fitted. Start the cluster, or give its workers more memory or smaller chunks, "
            "and fit again; with partial_fit the sums made so far can be saved."
        ) from error


def _is_gone() -> bool:
    """Whether there was a cluster, and it does not answer any more."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        return bool(distributed.default_client().status != "running")
    except ValueError:  # there is none
        return False


class _Projected(Rows):
    """Rows of others in the coordinates of a basis, made when they are asked for."""

    def __init__(self, rows: Rows, basis: np.ndarray) -> None:
        self._rows, self._basis = rows, basis
        self.shape = (len(rows), basis.shape[1])
        self.block_bytes = rows.block_bytes

    def blocks(self, n_rows: int) -> Iterator[Any]:
        for piece in self._rows.pieces():
            seen = piece @ like(piece, self._basis)
            for start in range(0, seen.shape[0], n_rows):
                yield seen[start : min(start + n_rows, seen.shape[0]), :]

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        if isinstance(self._rows, _Dask):
            inside = partial(_Seen, empty, self._basis)
            return self._rows.accumulate(inside, block_rows(len(self._basis))).inner
        return super().accumulate(empty, n_rows)


class _Seen:
    """An accumulator that is given rows in the coordinates of a basis."""

    def __init__(self, empty: Callable[[int], Any], basis: np.ndarray, start: int) -> None:
        self.inner, self._basis = empty(start), basis

    def update(self, block: Any) -> _Seen:
        self.inner.update(block @ like(block, self._basis))
        return self

    def merge(self, other: _Seen) -> _Seen:
        self.inner.merge(other.inner)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # sums that travel leave behind what they were made with
        return self.__dict__ | {"_basis": None}


def projected(X: np.ndarray | Rows, basis: np.ndarray | None) -> np.ndarray | Rows:
    """``X · U`` without writing it out; X itself without a basis."""
    if basis is None:
        return X
    return _Projected(X if isinstance(X, Rows) else _Sliced(X, _doubles), basis)


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
    if isinstance(data, Rows):
        return data
    _refuse_what_holds_rows(data, name)
    _refuse_complex(data, name)
    if type(data) is np.ndarray:
        # numbers that would be copied as a whole to be doubles are copied block by block instead
        large = data.ndim == 2 and data.size * 8 > BLOCK_BYTES
        cheap = data.dtype.kind in "fiub" and data.dtype != np.float64
        return _Sliced(data, _doubles) if large and cheap else data
    if sp.issparse(data):
        return _Sparse(data)
    if isinstance(data, np.memmap):
        return _Sliced(data, _doubles) if data.ndim == 2 else np.asarray(data)
    maker = _module(data)
    if maker == "dask":
        return _dask_rows(data, name)
    if is_tensor(data):
        return _tensor_rows(data, name)
    if maker in ("h5py", "zarr") and len(getattr(data, "shape", ())) == 2:
        return _Sliced(data, _doubles)
    if maker == "anndata" and hasattr(data, "format") and len(getattr(data, "shape", ())) == 2:
        return _backed_rows(data, name)
    if _is_stream(data):
        return _stream(data, name)
    if isinstance(data, list | tuple) and any(
        len(getattr(part, "shape", ())) == 2 for part in data
    ):
        raise ValueError(
            f"{name} is a list of matrices. If they are blocks of rows, pass contrica.rows.Blocks(...) "
            "of them."
        )
    return data


def _refuse_what_holds_rows(data: Any, name: str) -> None:
    """Say what to pass in place of a path, an AnnData object or what `open_rows` returns."""
    if isinstance(data, str | PathLike):
        raise ValueError(
            f"{name} is a path, {str(data)!r}. Open it: contrica.rows.open_rows(path).rows."
        )
    if hasattr(data, "row_names") and hasattr(data, "rows"):
        raise ValueError(f"{name} is what open_rows returned. Pass its .rows.")
    if _module(data) == "anndata" and hasattr(data, "obs") and hasattr(data, "X"):
        raise ValueError(f"{name} is an AnnData object. Pass its matrix, such as adata.X.")


def _refuse_complex(data: Any, name: str) -> None:
    kind = getattr(data, "dtype", None)
    if "complex" in str(kind):
        raise ValueError(
            f"{name} holds complex numbers ({kind}). Complex data not supported: pass real and imaginary "
            "parts as variables of their own."
        )


def _module(data: Any) -> str:
    return type(data).__module__.split(".")[0]


def _tensor_rows(data: Any, name: str) -> Rows:
    if data.ndim != 2:
        raise ValueError(
            f"{name} has {data.ndim} dimensions, but a table of rows by variables is needed."
        )
    if "strided" not in str(getattr(data, "layout", "strided")):
        raise ValueError(
            f"{name} is a sparse tensor ({data.layout}). Pass scipy's compressed rows, or its to_dense()."
        )
    return _Sliced(data.detach() if hasattr(data, "detach") else data, as_doubles)


class _BackedSparse(_Sliced):
    """Compressed rows in a file that anndata has open."""

    sparse = True

    def _cut(self, start: int, stop: int) -> Any:
        return self._data[start:stop]

    def pieces(self) -> Iterator[Any]:
        n_rows = block_rows(self.shape[1])
        for start in range(0, len(self), n_rows):
            yield self._cut(start, start + n_rows)


def _backed_rows(data: Any, name: str) -> Rows:
    if data.format != "csr":
        raise ValueError(
            f"{name} is held in a file by compressed columns ({data.format}), of which no block of rows "
            "can be read. Write it as csr: adata.X = adata.X.to_memory().tocsr()."
        )
    return _BackedSparse(data, _written_out)


def _is_stream(data: Any) -> bool:
    """Whether it is an iterable of matrices that is no table itself."""
    if hasattr(data, "shape") or hasattr(data, "__array__") or hasattr(data, "__dataframe__"):
        return False
    # a list is a table written out, or several backgrounds
    return isinstance(data, Iterable) and not isinstance(data, Sequence | dict | set)


def _stream(data: Iterable[Any], name: str) -> Rows:
    if isinstance(data, Iterator):
        raise ValueError(
            f"{name} is an iterator, which can be read once, but its rows are needed several times. "
            "Give what can be read again from its beginning: contrica.rows.Blocks of a list of them, "
            "or of a function that starts anew. Or pass its blocks one by one, to partial_fit for a fit."
        )
    shapes, columns = [], None
    for part in data:
        shapes.append(_table(part, name).shape)
        found = _columns(part)
        _same_columns(columns, found, name)
        columns = columns or found
    if not shapes:
        raise ValueError(f"{name} has no blocks of rows.")
    flat = next((shape for shape in shapes if len(shape) != 2), None)
    if flat is not None:
        raise ValueError(
            f"a block of {name} has shape {flat}, but blocks need rows and columns. Reshape a single row "
            "to (1, n_features)."
        )
    widths = {shape[1] for shape in shapes}
    if len(widths) > 1:
        raise ValueError(
            f"the blocks of {name} have {sorted(widths)} columns. All must measure the same variables "
            "in the same order."
        )
    return _Parts(lambda: data, (sum(shape[0] for shape in shapes), widths.pop()), columns)


def _table(part: Any, name: str) -> Any:
    """A block with a shape; rows written out as lists become one."""
    rows = as_rows(part, name)
    return rows if hasattr(rows, "shape") else np.asarray(rows, dtype=np.float64)


def _columns(part: Any) -> list[Any] | None:
    columns = getattr(part, "columns", None)
    return None if columns is None else list(columns)


def column_names(data: Any) -> list[str] | None:
    """Names of variables that a table comes with, if all are text."""
    columns = _columns(data)
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return [str(name) for name in columns]


def _same_columns(known: list[Any] | None, found: list[Any] | None, name: str) -> None:
    if known is not None and found is not None and known != found and len(known) == len(found):
        raise ValueError(
            f"blocks of {name} have other columns, or the same in another order, than the blocks before "
            f"them: {found[:5]} after {known[:5]}. All must measure the same variables in the same order."
        )


def _dask_rows(data: Any, name: str) -> Rows:
    """Chunks of a dask array or frame."""
    if hasattr(data, "to_dask_array"):
        with _cluster():
            data = data.to_dask_array(lengths=True)
    if data.ndim != 2:
        raise ValueError(
            f"{name} has {data.ndim} dimensions, but a table of rows by variables is needed."
        )
    if any(np.isnan(size) for size in data.chunks[0]):
        with _cluster():
            data = data.compute_chunk_sizes()
    return _Dask(data.rechunk({1: -1}))  # whole rows


# --- arrays of other kinds than numpy's ---


def namespace(array: Any) -> Any:
    """The module of array-API functions for an array: numpy, or array-api-compat's of torch and cupy."""
    if isinstance(array, np.ndarray):
        return np
    return _compat().array_namespace(array)


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            "tensors of torch and cupy need array-api-compat: pip install 'contrica[gpu]'"
        ) from error
    return array_api_compat


def _device(array: Any) -> str | None:
    """Where an array is, "cpu" or such as "cuda:0"; None for what is no tensor."""
    if _module(array) not in ("torch", "cupy"):
        return None
    found = _compat().device(array)
    return str(getattr(found, "type", found))


def like(block: Any, array: np.ndarray) -> Any:
    """A numpy array as one of the same kind, dtype and place as ``block``."""
    if isinstance(block, np.ndarray):
        return array.astype(block.dtype, copy=False)
    if sp.issparse(block):
        return array
    xp = namespace(block)
    array = np.ascontiguousarray(array)
    return xp.asarray(array, dtype=block.dtype, device=_compat().device(block))


def same_kind(block: Any, dtype: Any = None) -> dict[str, Any]:
    """Keywords with which a new array is of the dtype, or the one given, and place of ``block``."""
    kind = {"dtype": block.dtype if dtype is None else dtype}
    return kind if isinstance(block, np.ndarray) else kind | {"device": _compat().device(block)}


def as_doubles(array: Any) -> Any:
    """The same numbers in float64, where they are."""
    if isinstance(array, np.ndarray):
        return array.astype(np.float64, copy=False)
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def to_numpy(array: Any) -> np.ndarray:
    """An array of any kind as numpy's, float64."""
    if isinstance(array, np.ndarray):
        return np.asarray(array, dtype=np.float64)
    maker = _module(array)
    if maker == "torch":
        return np.asarray(array.cpu().numpy(), dtype=np.float64)
    if maker == "cupy":
        return np.asarray(array.get(), dtype=np.float64)
    return np.asarray(array, dtype=np.float64)


def is_tensor(data: Any) -> bool:
    """Whether it is an array of torch, of cupy, or of the array API's own."""
    return _module(data) in ("torch", "cupy", "array_api_strict")


def tensor_times(data: Any, matrix: np.ndarray, offset: np.ndarray) -> Any:
    """``X · M − offset`` of a tensor, where it is and in its precision; of whole numbers in doubles."""
    xp = namespace(data)
    tensor = data.detach() if hasattr(data, "detach") else data
    if not xp.isdtype(tensor.dtype, "real floating"):
        tensor = as_doubles(tensor)
    found = tensor @ like(tensor, matrix) - like(tensor, offset)
    if not bool(xp.all(xp.isfinite(found))):
        raise ValueError(
            "X contains NaN or infinity. Fill missing values in, or leave such rows out."
        )
    return found


class _Moved(Rows):
    """Rows whose blocks are moved to a device, or to another precision, as they are read."""

    def __init__(self, rows: np.ndarray | Rows, move: Callable[[Any], Any], on_gpu: bool) -> None:
        self._rows, self._move = rows, move
        self.shape = (rows.shape[0], rows.shape[1])
        self.block_bytes = DEVICE_BLOCK_BYTES if on_gpu else None

    def blocks(self, n_rows: int) -> Iterator[Any]:
        return map(self._move, iterate_blocks(self._rows, n_rows))


def on_device(
    X: np.ndarray | Rows,
    device: str | None = None,
    dtype: str = "float64",
    origin: np.ndarray | None = None,
) -> np.ndarray | Rows:
    """Rows whose blocks are taken to a device, in a precision.

    Parameters
    ----------
    X : ndarray or Rows
        Tensors stay where they are.
    device : str, optional
        Such as "cuda" or "cuda:1", of torch, or of cupy where there is no torch. Data that take at most
        a third of its free memory are kept there; others are moved block by block in each pass.
    dtype : {"float64", "float32"}
        In which rows are multiplied. Sums over more than some thousand rows are taken in float64.
    origin : ndarray of shape (p,), optional
        With "float32": taken off every row before it is rounded, lest a large mean leave no digits.

    Returns
    -------
    ndarray or Rows
    """
    rounded = partial(_single, np.zeros(X.shape[1]) if origin is None else origin)
    # products with compressed rows stay where they are, and so do dask's chunks
    if isinstance(X, Rows) and (X.sparse or isinstance(getattr(X, "_rows", X), _Dask)):
        return X
    if isinstance(X, _Sliced) and _device(X._data) is not None:
        return X if dtype == "float64" else _Moved(X, rounded, X.block_bytes is not None)
    if device in (None, "cpu"):
        return X if dtype == "float64" else _Moved(X, rounded, False)
    move, free = _mover(str(device), dtype)
    itemsize = 4 if dtype == "float32" else 8
    moved = _Moved(X, move if dtype == "float64" else lambda block: move(rounded(block)), True)
    if X.shape[0] * X.shape[1] * itemsize > DEVICE_SHARE * free:
        return moved
    blocks = list(moved.blocks(block_rows(X.shape[1], moved)))
    return _Sliced(namespace(blocks[0]).concat(blocks), lambda block: block)


def _single(origin: np.ndarray, block: Any) -> Any:
    block = block - like(block, origin)
    xp = namespace(block)
    return xp.astype(block, xp.float32, copy=False) if xp is not np else block.astype(np.float32)


def short(block: Any) -> Iterator[Any]:
    """The block, or some thousand rows of it at a time, for which single precision can sum."""
    size = block.shape[0]
    step = size if str(block.dtype).endswith("float64") else SINGLE_ROWS
    return (block[start : min(start + step, size), :] for start in range(0, size, max(step, 1)))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _mover(device: str, dtype: str) -> tuple[Callable[[Any], Any], float]:
    """What takes a numpy block to the device, and the bytes free there."""
    torch = _torch()
    if torch is not None:
        try:
            where = torch.device(device)
            torch.empty(1, device=where)
            free = torch.cuda.mem_get_info(where)[0] if where.type == "cuda" else np.inf
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device={device!r} cannot be used ({shorten(str(error), 100)}). Leave it out for the "
                'CPU; "cuda" needs a machine whose torch sees a GPU.'
            ) from error
        kind = getattr(torch, dtype)
        return lambda block: torch.as_tensor(block).to(where, kind), free
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch or cupy, the one for your machine (such as pip install "
            "torch), and pip install 'contrica[gpu]'."
        ) from error
    number = int(device.split(":")[1]) if ":" in device else 0
    with cupy.cuda.Device(number):
        free = cupy.cuda.runtime.memGetInfo()[0]

    def move(block: Any) -> Any:
        with cupy.cuda.Device(number):
            return cupy.asarray(block, dtype=dtype)

    return move, free


# --- reading and multiplying ---


def block_rows(n_columns: int, X: Any = None) -> int:
    """Rows of float64 with ``n_columns`` entries that make up one block of X."""
    size = getattr(X, "block_bytes", None) or BLOCK_BYTES
    return max(256, size // (8 * max(n_columns, 1)))


def iterate_blocks(X: np.ndarray | Rows, n_rows: int) -> Iterator[Any]:
    """Yield consecutive blocks of at most ``n_rows`` rows as float64 arrays, where they live."""
    if isinstance(X, Rows):
        yield from X.blocks(n_rows)
        return
    for start in range(0, X.shape[0], n_rows):
        yield np.asarray(X[start : start + n_rows], dtype=np.float64)


def held_in_memory(rows: np.ndarray | Rows) -> np.ndarray:
    """All rows as one float64 array of numpy."""
    if isinstance(rows, np.ndarray):
        return rows
    return chosen_rows(rows, np.arange(len(rows)))


def chosen_rows(X: np.ndarray | Rows, index: np.ndarray) -> np.ndarray:
    """Rows of given numbers, increasing, as an array of numpy; one pass."""
    if isinstance(X, np.ndarray):
        return X[index]
    found: np.ndarray = accumulate(X, partial(Chosen, index)).rows(X.shape[1])
    return found


class Chosen:
    """Accumulator that keeps the rows of given numbers.

    Parameters
    ----------
    index : ndarray of int
        The numbers, increasing.
    start : int
        Number of the first row that will come.
    """

    def __init__(self, index: np.ndarray, start: int) -> None:
        self._index, self._start, self._next = index, start, start
        self._kept: list[tuple[int, np.ndarray]] = []

    def update(self, block: Any) -> Chosen:
        """Keep those of the block's rows that are asked for."""
        stop = self._next + block.shape[0]
        first, last = np.searchsorted(self._index, [self._next, stop])
        if last > first:
            wanted = self._index[first:last] - self._next
            own = to_numpy(block)
            # a copy also of all rows: the block may be part of something larger
            self._kept.append((self._next, own[wanted]))
        self._next = stop
        return self

    def merge(self, other: Chosen) -> Chosen:
        """Add what another one has kept."""
        self._kept += other._kept
        return self

    def __getstate__(self) -> dict[str, Any]:
        # what a worker sends back needs no list of what it might have kept
        return self.__dict__ | ({"_index": None} if self._kept else {})

    def rows(self, n_columns: int) -> np.ndarray:
        """What was kept, in the order of the numbers; it is let go of here."""
        kept = [rows for _, rows in sorted(self._kept, key=lambda part: part[0])]
        total = np.empty((sum(map(len, kept)), n_columns))
        start = 0
        self._kept = []
        while kept:  # each is let go of once it is written
            rows = kept.pop(0)
            total[start : start + len(rows)] = rows
            start += len(rows)
        return total


def rows_times(X: np.ndarray | Rows, matrix: np.ndarray) -> np.ndarray:
    """``X · M``, block by block, sparse where X is."""
    if isinstance(X, np.ndarray):
        return X @ matrix
    return held_in_memory(_Projected(X, matrix))


def gram_times(
    X: np.ndarray | Rows,
    matrix: np.ndarray,
    origin: np.ndarray | None = None,
    threads: Team | None = None,
) -> np.ndarray:
    """``Σ (x − μ)(x − μ)ᵀ · M`` over the rows, block by block, sparse where X is; one pass.

    Sparse rows are not centred; ``(Σ x xᵀ − μ (Σx)ᵀ − (Σx) μᵀ + n μ μᵀ) M`` is taken of them. Where
    they are in memory that is done by ``threads``, or by new ones.
    """
    origin = np.zeros(X.shape[1]) if origin is None else origin
    if isinstance(X, _Dask):
        make = partial(_GramTimes, matrix, origin)
        found: np.ndarray = X.accumulate(make, block_rows(X.shape[1])).total
        return found
    if isinstance(X, _Sparse):
        return _gram_times_sparse(X, matrix, origin, threads)
    total = _GramTimes(matrix, origin)
    for piece in X.pieces() if isinstance(X, Rows) else iterate_blocks(X, block_rows(X.shape[1])):
        total.update(piece)
    return total.total


def _gram_times_sparse(
    X: _Sparse, matrix: np.ndarray, origin: np.ndarray, threads: Team | None
) -> np.ndarray:
    """As `gram_times`, in threads: scipy's products with what is sparse use one each."""
    pieces = list(X.pieces())

    def sum_over(share: np.ndarray) -> _GramTimes:
        total = _GramTimes(matrix, origin)
        for number in share:
            total.update(pieces[number])
        return total

    with nullcontext(threads) if threads else team(len(pieces)) as own:
        first, *others = own.map(sum_over, np.array_split(np.arange(len(pieces)), own.size))
    for other in others:
        first.merge(other)
    found: np.ndarray = first.total
    return found


class _GramTimes:
    def __init__(self, matrix: np.ndarray, origin: np.ndarray, start: int = 0) -> None:
        self._matrix, self._origin, self.total = matrix, origin, np.zeros(matrix.shape)

    def update(self, piece: Any) -> _GramTimes:
        if sp.issparse(piece):
            along = piece @ self._matrix - self._origin @ self._matrix
            self.total += _transposed(piece) @ along - np.outer(self._origin, along.sum(axis=0))
        else:
            centred = piece - like(piece, self._origin)
            self.total += to_numpy(centred.T @ (centred @ like(piece, self._matrix)))
        return self

    def merge(self, other: _GramTimes) -> _GramTimes:
        self.total += other.total
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_matrix": None, "_origin": None}


# --- variables ---


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


class Summary:
    """Accumulator of a `ColumnSummary`: each block's, put together about their common mean."""

    def __init__(self, start: int = 0) -> None:
        self._found: ColumnSummary | None = None

    def update(self, block: Any) -> Summary:
        """Add the rows of a block."""
        n = block.shape[0]
        if n:
            block = as_doubles(block)
            xp = namespace(block)
            # about the first row, so that a large mean costs no digits
            origin = block[0, :] + 0.0
            low, high = xp.min(block, axis=0), xp.max(block, axis=0)
            with np.errstate(invalid="ignore"):  # infinity shows in the range
                block = block - origin
                shift = xp.sum(block, axis=0) / n
                block -= shift
                energy = xp.sum(block**2, axis=0)
            self.add(ColumnSummary(n, *map(to_numpy, (origin + shift, low, high, energy))))
        return self

    def merge(self, other: Summary) -> Summary:
        """Add the rows of another one."""
        if other._found is not None:
            self.add(other._found)
        return self

    def add(self, new: ColumnSummary) -> None:
        """Add the rows of which this is the summary."""
        old = self._found
        if old is None:
            self._found = new
            return
        n = old.n_rows + new.n_rows
        apart = new.mean - old.mean
        self._found = ColumnSummary(
            n,
            old.mean + apart * (new.n_rows / n),
            np.minimum(old.low, new.low),
            np.maximum(old.high, new.high),
            old.energy + new.energy + apart**2 * (old.n_rows * new.n_rows / n),
        )

    def summary(self) -> ColumnSummary:
        """Of all rows so far; there must be one."""
        if self._found is None:
            raise ValueError("no rows came. At least one is needed.")
        return self._found


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
    if isinstance(X, Rows) and X.sparse:
        total = Summary()
        for piece in X.pieces():
            total.add(_sparse_summary(piece))
        return total.summary()
    found: ColumnSummary = accumulate(X, Summary).summary()
    return found


def _sparse_summary(X: Any) -> ColumnSummary:
    n = X.shape[0]
    if not X.has_canonical_format:  # an entry in several parts is their sum
        X = X.copy()
        X.sum_duplicates()
    entries = X.data.astype(np.float64)
    mean = np.bincount(X.indices, entries, minlength=X.shape[1]) / n
    low, high = (
        np.asarray(extreme.toarray(), dtype=np.float64).ravel()
        for extreme in (X.min(axis=0), X.max(axis=0))
    )
    squares = np.bincount(X.indices, entries**2, minlength=X.shape[1])
    return ColumnSummary(n, mean, low, high, np.maximum(squares - n * mean**2, 0.0))
