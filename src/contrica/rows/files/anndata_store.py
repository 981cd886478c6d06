"""What AnnData stores in HDF5 files and zarr stores: compressed rows, and names of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.errors import FileError, unmarked
from contrica.rows.files.shared import (
    Names,
    as_text,
    bad_file,
    check_promise,
    check_table,
    reading,
    same_name,
    unknown_column,
)
from contrica.rows.protocol import Rows

__all__ = [
    "CompressedRows",
    "anndata_names",
    "is_anndata",
    "is_array",
    "n_stored",
    "observed_columns",
    "sparse_format",
    "used_variables",
]

# Working set of one piece of sparse rows, entries and indices.
PIECE_BYTES = 16 * 2**20
# Cells of ``obs`` that are read though nobody named their columns.
MAX_CELLS = 2 * 10**7


def is_array(node: Any) -> bool:
    """Whether a member of a store is an array, and not a group."""
    return hasattr(node, "dtype") and hasattr(node, "shape")


def n_stored(node: Any) -> int:
    """Bytes that are stored of an array, compressed or not."""
    found = node.id.get_storage_size() if hasattr(node, "id") else node.nbytes_stored()
    return int(found)


def _attribute(node: Any, *names: str) -> Any:
    for name in names:
        if name in node.attrs:
            return node.attrs[name]
    return None


def sparse_format(node: Any) -> str:
    """How AnnData says that a group is a sparse matrix: "csr", "csc", or "" where it is none."""
    said = as_text(_attribute(node, "encoding-type", "h5sparse_format") or "")[:3]
    return said if said in ("csr", "csc") else ""


def is_anndata(root: Any) -> bool:
    """Whether AnnData has written the store."""
    return "X" in root and "obs" in root and "var" in root


def anndata_names(
    where: str, opener: Callable[[], Any], root: Any, key: str, shape: tuple[int, int]
) -> tuple[np.ndarray | None, Names | None]:
    """Names of an AnnData file's variables and observations, where they belong to the table."""
    if is_array(root) or not is_anndata(root):
        return None, None
    columns = None
    var = "raw/var" if key.startswith("raw/") else "var"
    if key in ("X", "raw/X") or key.startswith("layers/"):
        stored = _index_of(root, var)
        if stored is not None:
            _check_count(where, var, stored.shape, shape[1])
            with reading(where, "an AnnData file"):
                columns = np.array([as_text(name) for name in _strings(stored)[:]])
            _check_apart(where, columns)
    stored = _index_of(root, "obs")
    if stored is None:
        return columns, None
    _check_count(where, "obs", stored.shape, shape[0])

    def names() -> Iterator[Sequence[Any]]:
        with opener() as again:
            index = _strings(_index_of(again, "obs"))
            for start in range(0, shape[0], 2**16):
                with reading(where, "an AnnData file"):
                    block = index[start : start + 2**16]
                yield block

    return columns, Names(names)


def observed_columns(
    where: str, root: Any, names: Sequence[str], *, all_metadata: bool = False
) -> dict[str, np.ndarray]:
    """Columns of an AnnData file's ``obs``, such as a donor, as text.

    Parameters
    ----------
    where : str
        What errors call the file.
    root : group
    names : sequence of str
    all_metadata : bool
        Whether the others are read as well, as far as they are columns and not too many cells.

    Returns
    -------
    dict of str to ndarray of str
        Empty text where a value is missing.
    """
    known = _columns_of(root, "obs")
    for name in names:
        if name not in known:
            raise unknown_column(where, name, known)
    if not known or not (names or all_metadata):
        return {}
    frame = root["obs"]
    with reading(where, "an AnnData file"):
        found = {name: _column_texts(frame, name) for name in names}
    if not all_metadata:
        return found
    stored = _index_of(root, "obs")
    n_rows = 0 if stored is None else stored.shape[0]
    for name in known if n_rows * len(known) <= MAX_CELLS else ():
        try:
            texts = found.get(name, _column_texts(frame, name))
        except (KeyError, TypeError, ValueError, IndexError):
            continue  # nobody asked for it by its name
        if stored is None or texts.shape == (n_rows,):
            found[name] = texts
    return found


def used_variables(where: str, root: Any, name: str, n_columns: int) -> np.ndarray:
    """Which variables a column of an AnnData file's ``var`` says are used.

    Parameters
    ----------
    where : str
        What errors call the file.
    root : group
    name : str
    n_columns : int

    Returns
    -------
    ndarray of bool
    """
    known = _columns_of(root, "var")
    if name not in known:
        near = unmarked(
            ", ".join(get_close_matches(name, known, 5, 0.4) or known[:5]) or "no column"
        )
        raise bad_file(
            "unknown-column",
            where,
            f"has no column {unmarked(repr(name))} in var",
            remedy=f"It has {near}.",
            parameter="mask_var",
        )
    with reading(where, "an AnnData file"):
        texts = _column_texts(root["var"], name)
    used = np.isin(np.char.lower(texts.astype(str)), ("true", "1", "1.0"))
    if texts.shape != (n_columns,) or not used.any():
        raise bad_file(
            "no-variables",
            where,
            f"has a column {unmarked(repr(name))} of {texts.size} entries in var, {int(used.sum())} of "
            "them true",
            f"it must say which of {n_columns} variables are used",
            "Name another, or leave it out.",
            "mask_var",
        )
    return used


def _columns_of(root: Any, frame: str) -> list[str]:
    """Names of the columns of a stored frame; none where the file is not AnnData's."""
    if is_array(root) or not is_anndata(root) or is_array(root[frame]):
        return []
    index = as_text(_attribute(root[frame], "_index") or "_index")
    stored = [each for each in root[frame] if not each.startswith("__") and each != index]
    order = _attribute(root[frame], "column-order")
    said = [] if order is None else [as_text(each) for each in np.ravel(order)]
    return [
        *(each for each in said if each in stored),
        *(each for each in stored if each not in said),
    ]


def _column_texts(frame: Any, name: str) -> np.ndarray:
    """A column of a stored frame: an array, categories with codes, or values with a mask."""
    node = frame[name]
    if is_array(node):
        values = _strings(node)[:]
        if "__categories" in frame and name in frame["__categories"]:  # of earlier AnnData
            return _categories(_strings(frame["__categories"][name])[:], values)
    elif "categories" in node:
        return _categories(_strings(node["categories"])[:], node["codes"][:])
    else:
        values = _strings(node["values"])[:]
        if "mask" in node:
            return np.where(node["mask"][:], "", [as_text(value) for value in values])
    return np.array([as_text(value) for value in values])


def _categories(names: Any, codes: Any) -> np.ndarray:
    known = np.array([*(as_text(each) for each in names), ""])
    return known[np.asarray(codes)]  # the code of a missing value is -1


def _check_count(where: str, frame: str, shape: Any, count: int) -> None:
    """Refuse names that are not one for each row or column: they would be those of others, or none."""
    if tuple(shape or ()) != (count,):
        raise bad_file(
            "damaged",
            where,
            f"has names of shape {shape} in {frame!r}",
            f"its table has {count} {'rows' if frame == 'obs' else 'columns'}",
            "Make or copy it anew.",
        )


def _check_apart(where: str, columns: np.ndarray) -> None:
    names, counts = np.unique(columns, return_counts=True)
    if counts.max(initial=1) > 1:
        raise same_name(where, str(names[counts.argmax()]))


def _index_of(root: Any, frame: str) -> Any:
    """Where a stored frame keeps its index; None in files too old to say."""
    if frame not in root or is_array(root[frame]):
        return None
    name = as_text(_attribute(root[frame], "_index") or "_index")
    if name not in root[frame]:
        return None
    index = root[frame][name]
    if is_array(index):
        return index
    return index.get("values")  # with a mask beside them


def _strings(stored: Any) -> Any:
    is_text = hasattr(stored, "asstr") and stored.dtype.kind in "OS"
    return stored.asstr() if is_text else stored


class CompressedRows(Rows):
    """Compressed rows as AnnData stores them, in an HDF5 file or a zarr store."""

    sparse = can_skip = True
    columns: np.ndarray | None = None

    def __init__(self, where: str, opener: Callable[[], Any], key: str, node: Any) -> None:
        self._where, self._opener, self._key = where, opener, key
        layout = sparse_format(node)
        if layout == "csc":
            raise bad_file(
                "stored-by-columns",
                where,
                f"stores {key!r} by columns (CSC), and its rows cannot be read block by block",
                remedy="Write it by rows: adata.X = adata.X.tocsr(), or so the layer, and save again.",
                parameter="key",
            )
        parts = ("data", "indices", "indptr")
        if layout != "csr" or any(part not in node for part in parts):
            raise bad_file(
                "not-a-table",
                where,
                f"has a group {key!r}",
                "a two-dimensional array or compressed rows (CSR) are needed",
                f"It holds {unmarked(', '.join(node)) or 'nothing'}: say which by the `key`.",
                "key",
            )
        for part in parts:
            if not is_array(node[part]) or len(node[part].shape or ()) != 1:
                raise self._damaged(f"its {part!r} is not a list of numbers")
            stored = partial(n_stored, node[part])
            check_promise(where, node[part].shape, node[part].dtype, stored)
        shape = _attribute(node, "shape", "h5sparse_shape")
        if np.shape(shape) != (2,):
            raise self._damaged(f"it says that its shape is {shape}")
        self.shape = (int(shape[0]), int(shape[1]))
        check_table(where, self.shape, node["data"].dtype)
        self._check_sizes(node)
        # as many entries as fill a block, an index beside each
        per_row = max(node["data"].shape[0] / self.shape[0], 1.0)
        self._per_piece = max(int(PIECE_BYTES / (16 * per_row)), 1)

    def _damaged(self, why: str) -> FileError:
        return bad_file(
            "damaged",
            self._where,
            f"is damaged at {self._key!r}: {unmarked(why)}",
            remedy="Make or copy it anew.",
        )

    def _check_sizes(self, node: Any) -> None:
        entries, indices, bounds = (node[k].shape[0] for k in ("data", "indices", "indptr"))
        last = int(node["indptr"][bounds - 1]) if bounds else -1
        if bounds != self.shape[0] + 1 or not entries == indices == last:
            raise bad_file(
                "damaged",
                self._where,
                f"is damaged at {self._key!r}: {self.shape[0]} rows need as many bounds and one, of "
                "which the last counts the entries",
                f"there are {bounds} bounds up to {last}, {entries} entries and {indices} indices",
                "Make or copy it anew.",
            )

    def rows(self, start: int, stop: int) -> sp.csr_array:
        """Rows ``start`` to ``stop``, opened for this one reading."""
        with self._opener() as root:
            return self._cut(root[self._key], start, stop)

    def _cut(self, node: Any, start: int, stop: int) -> sp.csr_array:
        with reading(self._where, "compressed rows"):
            bounds = np.asarray(node["indptr"][start : stop + 1]).astype(np.int64)
            span = slice(int(bounds[0]), int(bounds[-1]))
            entries = np.asarray(node["data"][span], dtype=np.float64)
            indices = np.asarray(node["indices"][span])
        wrong = indices.size and not 0 <= indices.min() <= indices.max() < self.shape[1]
        if wrong or (np.diff(bounds) < 0).any() or len(bounds) != stop - start + 1:
            raise bad_file(
                "damaged",
                self._where,
                f"is damaged at {self._key!r}: rows {start} to {stop} point to entries that are not "
                "there",
                remedy="Make or copy it anew.",
            )
        shape = (stop - start, self.shape[1])
        return sp.csr_array((entries, indices, bounds - bounds[0]), shape=shape)

    def pieces(self) -> Iterator[Any]:
        """Consecutive sparse blocks."""
        with self._opener() as root:
            node = root[self._key]
            self._check_sizes(node)
            for start in range(0, len(self), self._per_piece):
                yield self._cut(node, start, min(start + self._per_piece, len(self)))

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for piece in self.pieces():
            for start in range(0, piece.shape[0], n_rows):
                yield piece[start : start + n_rows].toarray()

    def spans(self, bounds: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        """Rows from ``start`` to ``stop`` of each of the ``bounds``, as `Rows.spans` says."""
        return (self.rows(start, stop).toarray() for start, stop in bounds)
