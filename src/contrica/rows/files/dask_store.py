"""`open_dask`: parquet files and zarr stores for the workers of a dask cluster, who read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from contrica.rows.files.anndata_store import CompressedRows, anndata_names, is_array
from contrica.rows.files.parquet import open_parquet, parquet_files, sort_columns
from contrica.rows.files.shared import (
    Names,
    Opened,
    bad_file,
    check_no_key,
    check_table,
    is_remote,
    kind_of_store,
    optional_module,
    reading,
)
from contrica.rows.files.stores import find_table
from contrica.rows.files.zarr_store import zarr_root
from contrica.rows.protocol import block_rows

__all__ = ["computed", "open_dask"]

# Pieces of a dask collection that are computed at the same time.
AT_ONCE = 16


def open_dask(path: str | Path, key: str | None = None) -> Opened:
    """Open rows for the workers of a dask cluster, which read them where they are.

    Parameters
    ----------
    path : path or URL
        Parquet (a file, a folder or a pattern) or a zarr store, also AnnData's, at a place that every
        worker sees: a shared folder, or a URL that fsspec knows, such as ``s3://bucket/rows/*.parquet``.
    key : str, optional
        Which array of a zarr store with several.

    Returns
    -------
    Opened
        With a dask frame of a column for each variable (parquet), or a dask array (zarr).

    Raises
    ------
    FileError
        Also for kinds of files that workers cannot share.
    ParameterError
        If a key is given for a file without keys.
    FileMissingError
    PackageMissingError
        With what to install.
    """
    where = str(path)
    kind = kind_of_store(where)
    if kind == ".zarr":
        where = where if is_remote(where) else str(Path(where).absolute())
        return _dask_store(where, key)
    if kind != ".parquet":
        raise bad_file(
            "not-shared",
            where,
            f"is a {kind} file, which the workers of a cluster cannot share",
            remedy="Write the rows as parquet or zarr, or read it without a cluster.",
        )
    check_no_key(where, key)
    return _dask_parquet(where)


def _dask_store(where: str, key: str | None) -> Opened:
    array = optional_module("dask.array", "cluster runs", "cluster")
    opener = partial(zarr_root, where)
    with opener() as root:
        key, node = find_table(where, root, key)
        if is_array(node):
            check_table(where, node.shape, node.dtype)
            rows = array.from_zarr(where, component=key or None)
        else:
            rows = _dask_compressed(CompressedRows(where, opener, key, node))
        return Opened(rows, *anndata_names(where, opener, root, key, rows.shape))


def _dask_compressed(rows: CompressedRows) -> Any:
    """Compressed rows as a dask array whose chunks are written out, none larger than a block."""
    array = optional_module("dask.array", "cluster runs", "cluster")
    n, p = rows.shape
    size = min(block_rows(p), n)
    sizes = [min(size, n - start) for start in range(0, n, size)]
    return array.map_blocks(
        _written_out, rows, chunks=(tuple(sizes), (p,)), dtype=np.float64, meta=np.empty((0, 0))
    )


def _written_out(rows: CompressedRows, block_info: Any = None) -> np.ndarray:
    start, stop = block_info[None]["array-location"][0]
    return rows.rows(start, stop).toarray()


def _dask_parquet(where: str) -> Opened:
    optional_module("pyarrow", "parquet files")
    frames = optional_module("dask.dataframe", "cluster runs", "cluster")
    types = optional_module("pandas", "cluster runs", "cluster").api.types
    local = not is_remote(where)
    if local:
        # compares the columns of all files; dask would find a difference half-way through a fit
        open_parquet(where)
    source = [str(file.absolute()) for file in parquet_files(where)] if local else where
    with reading(where, "parquet files"):
        frame = frames.read_parquet(source)
    kinds: dict[str, list[str]] = {"numbers": [], "text": [], "rest": []}
    for name, dtype in frame.dtypes.items():
        is_text = types.is_string_dtype(dtype) or isinstance(dtype, types.CategoricalDtype)
        kinds["numbers" if types.is_numeric_dtype(dtype) else "text" if is_text else "rest"].append(
            str(name)
        )
    index = frame._meta.index
    counted = type(index).__name__ == "RangeIndex"
    # an index that is text takes the names, as in `_parquet_columns`
    own = [] if counted else ["the index"]
    if own and not types.is_numeric_dtype(index.dtype):
        kinds["text"].append(own[0])
    found = sort_columns(where, own, kinds["text"], kinds["numbers"], kinds["rest"])
    rows = frame[found.numbers].astype("float64")
    named = None
    if found.names is not None:
        series = frame.index if found.names in own else frame[found.names]
        named = Names(lambda: computed(series.to_delayed()))
    return Opened(rows, np.array(found.numbers), named)


def computed(parts: Iterable[Any]) -> Iterator[Any]:
    """What dask makes of delayed parts, in their order, some at the same time.

    Parameters
    ----------
    parts : iterable of dask.delayed.Delayed

    Yields
    ------
    object
        The value of each; a few are in memory at a time.
    """
    dask = optional_module("dask", "cluster runs", "cluster")
    waiting: list[Any] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) == AT_ONCE:
            yield from dask.compute(*waiting)
            waiting = []
    yield from dask.compute(*waiting)
