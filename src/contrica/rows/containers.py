"""`as_rows`, the one function that knows all containers of rows.

Numpy arrays stay arrays, and all else becomes `Rows`, with a shape, for `accumulate`, `iterate_blocks`
and the products.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.errors import DataError, DataTypeError, unmarked
from contrica.rows.arrays import SlicedRows, numpy_doubles
from contrica.rows.compressed import compressed_rows
from contrica.rows.dask_chunks import dask_rows
from contrica.rows.device import is_compressed, is_tensor, package_of, tensor_rows
from contrica.rows.protocol import BLOCK_BYTES, Rows
from contrica.rows.sparse import SparseRows, backed_rows
from contrica.rows.streams import columns_of, is_stream, stream_rows
from contrica.validation import unmasked

__all__ = ["as_rows", "column_names"]


def as_rows(data: Any, name: str = "X") -> np.ndarray | Rows:
    """What users have, as an array or as `Rows`; nothing large is read.

    Parameters
    ----------
    data : array-like, sparse matrix, memory map, HDF5, zarr or dask array, dask frame, tensor, iterable
        An iterable of arrays, blocks of rows, must be readable more than once; its first block is read
        here.
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
    _check_is_a_table(data, name)
    _check_is_not_a_holder(data, name)
    data = unmasked(data)
    _check_is_real(data, name)
    if type(data) is np.ndarray:
        # numbers that would be copied as a whole to be doubles are copied block by block instead
        large = data.ndim == 2 and data.size * 8 > BLOCK_BYTES
        cheap = data.dtype.kind in "fiub" and data.dtype != np.float64
        return SlicedRows(data, numpy_doubles) if large and cheap else data
    if sp.issparse(data):
        return SparseRows(data)
    if isinstance(data, np.memmap):
        return SlicedRows(data, numpy_doubles) if data.ndim == 2 else np.asarray(data)
    maker = package_of(data)
    if maker == "dask":
        return dask_rows(data, name, as_rows)
    if is_tensor(data):
        return compressed_rows(data, name) if is_compressed(data) else tensor_rows(data, name)
    if maker in ("h5py", "zarr") and len(getattr(data, "shape", ())) == 2:
        return SlicedRows(data, numpy_doubles)
    if maker == "anndata" and hasattr(data, "format") and len(getattr(data, "shape", ())) == 2:
        return backed_rows(data, name)
    if is_stream(data):
        return stream_rows(data, name, as_rows)
    if isinstance(data, list | tuple) and any(
        len(getattr(part, "shape", ())) == 2 for part in data
    ):
        raise DataError(
            "list-of-matrices",
            f"`{name}` is a list of matrices",
            remedy="If they are blocks of rows, pass contrica.rows.Blocks(...) of them.",
            parameter=name,
        )
    return data


def _check_is_a_table(data: Any, name: str) -> None:
    """Say what to pass in place of what has no rows in an order, or has not been computed."""
    if isinstance(data, Mapping | Set) and not sp.issparse(data):  # one of scipy's is a dict
        raise DataTypeError(
            "not-a-table",
            f"`{name}` is a {type(data).__name__}",
            "a table of rows by variables is needed",
            "Pass an array or a data frame.",
            name,
        )
    if package_of(data) == "polars" and hasattr(data, "collect"):
        raise DataTypeError(
            "lazy",
            f"`{name}` is a LazyFrame, of which no row was computed yet",
            remedy="Pass its collect().",
            parameter=name,
        )


def _check_is_not_a_holder(data: Any, name: str) -> None:
    """Say what to pass in place of a path, an AnnData object or what `open_rows` returns."""
    if isinstance(data, str | PathLike):
        raise DataError(
            "path",
            f"`{name}` is a path, {unmarked(repr(str(data)))}",
            remedy="Open it: contrica.rows.open_rows(path).rows.",
            parameter=name,
        )
    if hasattr(data, "row_names") and hasattr(data, "rows"):
        raise DataError(
            "opened",
            f"`{name}` is what open_rows returned",
            remedy="Pass its .rows.",
            parameter=name,
        )
    if _is_sums(data) or (isinstance(data, list | tuple) and any(map(_is_sums, data))):
        raise DataError(
            "sums",
            f"`{name}` is sums over rows (DataSums)",
            "the rows themselves are needed",
            "Only fit and partial_fit of ContrastiveICA and ProportionalContrastiveICA take sums, of one "
            "foreground and one background.",
            name,
        )
    if package_of(data) == "anndata" and hasattr(data, "obs") and hasattr(data, "X"):
        raise DataError(
            "anndata",
            f"`{name}` is an AnnData object",
            remedy="Use contrica.tl.cica(adata, groupby, background), or pass its matrix, adata.X.",
            parameter=name,
        )


def _is_sums(data: Any) -> bool:
    return type(data).__name__ == "DataSums"


def _check_is_real(data: Any, name: str) -> None:
    kind = getattr(data, "dtype", None)
    if "complex" in str(kind):
        raise DataError(
            "complex",
            f"`{name}` holds complex numbers ({kind})",
            remedy="Complex data not supported: pass real and imaginary parts as variables of their own.",
            parameter=name,
        )


def column_names(data: Any) -> list[str] | None:
    """Names of variables that a table comes with, if all are text."""
    columns = columns_of(data)
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return [str(name) for name in columns]
