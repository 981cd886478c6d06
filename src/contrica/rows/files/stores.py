"""One table of an HDF5 file or a zarr store, found by its key and read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from contrica.errors import unmarked
from contrica.rows.files.anndata_store import (
    CompressedRows,
    anndata_names,
    is_anndata,
    is_array,
    n_stored,
    observed_columns,
    sparse_format,
    used_variables,
)
from contrica.rows.files.shared import (
    Opened,
    bad_file,
    changed,
    check_promise,
    check_table,
    reading,
    unused_key,
)
from contrica.rows.protocol import Rows
from contrica.rows.selected import SelectedRows

__all__ = ["GridRows", "find_table", "open_store"]

# A chunk of a file is read as one, even if it holds more rows than were asked for, up to this size.
CHUNK_BYTES = 128 * 2**20


def _tables(root: Any) -> list[str]:
    """Keys of what may be meant: two-dimensional arrays, and sparse matrices."""
    nodes: list[tuple[str, Any]] = []
    if hasattr(root, "visititems"):
        root.visititems(lambda name, node: nodes.append((name, node)))
    else:
        nodes = sorted(root.members(max_depth=None))
    return [
        name
        for name, node in nodes
        if (is_array(node) and len(node.shape or ()) == 2)
        or (not is_array(node) and sparse_format(node))
    ]


def find_table(where: str, root: Any, key: str | None) -> tuple[str, Any]:
    """What a key means, or the only thing there is."""
    if is_array(root):
        _check_no_inner_key(where, key)
        return "", root
    if key is None and is_anndata(root):
        key = "X"
    if key is not None:
        if key.strip("/") and key in root:
            return key, root[key]
        tables = ", ".join(_tables(root)) or "no table"
        raise bad_file(
            "unknown-key",
            where,
            f"has no {key!r}",
            remedy=f"It holds {unmarked(tables)}: say which by the `key`.",
            parameter="key",
        )
    keys = _tables(root)
    if len(keys) != 1:
        names = f" ({unmarked(', '.join(keys))})" if keys else ""
        raise bad_file(
            "several-tables" if keys else "not-a-table",
            where,
            f"holds {len(keys)} tables{names}",
            "one is needed",
            "Say which one by its `key`." if keys else "Store rows by variables in it.",
            "key" if keys else None,
        )
    return keys[0], root[keys[0]]


def _check_no_inner_key(where: str, key: str | None) -> None:
    if key is not None:
        raise unused_key(where, key, "it is one array")


def open_store(
    where: str,
    key: str | None,
    opener: Callable[[], AbstractContextManager[Any]],
    metadata: Sequence[str] = (),
    *,
    all_metadata: bool = False,
    mask_var: str | None = None,
) -> Opened:
    """Open a table of a file or store, with the names that AnnData gives it.

    Parameters
    ----------
    where : str
        What errors call the file.
    key : str or None
        Which table.
    opener : callable
        Returns a context with the root; called for each pass, and must be picklable for a cluster.
    metadata : sequence of str
        Columns of ``obs`` of an AnnData file.
    all_metadata : bool
        Whether all of its columns are read.
    mask_var : str, optional
        Column of its ``var`` that says which variables are used.

    Returns
    -------
    Opened
    """
    rows: GridRows | CompressedRows
    with opener() as root, reading(where, "a table"):
        key, node = find_table(where, root, key)
        if is_array(node):
            check_table(where, node.shape, node.dtype)
            check_promise(where, node.shape, node.dtype, partial(n_stored, node))
            rows = GridRows(where, opener, key, node)
        else:
            rows = CompressedRows(where, opener, key, node)
        columns, row_names = anndata_names(where, opener, root, key, rows.shape)
        taken = observed_columns(where, root, metadata, all_metadata=all_metadata)
        used = None if mask_var is None else used_variables(where, root, mask_var, rows.shape[1])
    rows.columns = columns
    if used is None:
        return Opened(rows, columns, row_names, taken)
    columns = None if columns is None else columns[used]
    return Opened(SelectedRows(rows, columns=used), columns, row_names, taken)


class GridRows(Rows):
    """A two-dimensional array in an HDF5 file or a zarr store, opened for each pass."""

    can_skip = True
    columns: np.ndarray | None = None

    def __init__(self, where: str, opener: Callable[[], Any], key: str, node: Any) -> None:
        self._where, self._opener, self._key = where, opener, key
        self.shape = (int(node.shape[0]), int(node.shape[1]))
        self._chunk = int(node.chunks[0]) if node.chunks else 1

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        step = _step(n_rows, self._chunk, self.shape[1])
        for part in self._parts([(start, start + step) for start in range(0, len(self), step)]):
            for first in range(0, len(part), n_rows):
                yield np.asarray(part[first : first + n_rows], dtype=np.float64)

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        """Rows from ``start`` to ``stop`` of each of the ``bounds``, as `Rows.spans` says."""
        return (np.asarray(part, dtype=np.float64) for part in self._parts(bounds))

    def _parts(self, bounds: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        with self._opener() as root:
            node = root[self._key] if self._key else root
            if tuple(node.shape) != self.shape:
                raise changed(self._where, tuple(node.shape), self.shape)
            for start, stop in bounds:
                with reading(self._where, "an array"):
                    part = np.asarray(node[start:stop])
                yield part


def _step(n_rows: int, chunk: int, n_columns: int) -> int:
    """Rows to read at a time, so that no chunk of the file is unpacked more often than need be."""
    if chunk <= n_rows:
        return n_rows - n_rows % chunk
    return chunk if 8 * chunk * n_columns <= CHUNK_BYTES else n_rows
