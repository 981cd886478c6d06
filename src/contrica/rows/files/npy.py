"""Arrays in npy and npz files, and the sparse matrices that scipy saves as npz."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrica.errors import FileError, unmarked
from contrica.rows.containers import as_rows
from contrica.rows.files.shared import MAX_RATIO, bad_file, check_table, reading
from contrica.rows.sparse import check_indices

__all__ = ["is_sparse_npz", "memory_map", "read_numpy", "sparse_npz"]

# Rows that an empty sparse matrix may have.
MANY_ROWS = 10**6


def read_numpy(path: Path, key: str | None) -> np.ndarray:
    """The matrix of an npy file, or one of an npz file."""
    try:
        with open(path, "rb") as file:
            stored = np.load(file, allow_pickle=False)
            single = isinstance(stored, np.ndarray)
            values = stored if single else stored[_pick(path, stored.files, key)]
            if not isinstance(values, np.ndarray):  # numpy gives other members as bytes
                raise ValueError("not an array")
    except (FileError, PermissionError, MemoryError):
        raise
    except Exception as error:  # whatever the readers of zip and npy make of other bytes
        raise bad_file(
            "damaged",
            path,
            "could not be read as a numpy file of numbers: it is damaged, or holds objects",
            remedy="Save it with numpy.save or numpy.savez.",
        ) from error
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise bad_file(
            "not-a-table",
            path,
            f"holds an array of shape {values.shape} and type {values.dtype}",
            "a two-dimensional array of real numbers is needed, one row per sample",
            "Convert it, or name another by its `key`.",
        )
    return values


def _pick(path: Path, names: list[str], key: str | None) -> str:
    if key is None:
        if len(names) != 1:
            raise bad_file(
                "several-tables",
                path,
                f"holds {len(names)} arrays ({unmarked(', '.join(names))})",
                remedy="Say which one by its `key`.",
                parameter="key",
            )
        return names[0]
    if key not in names:
        raise bad_file(
            "unknown-key",
            path,
            f"has no array {key!r}",
            remedy=f"It holds {unmarked(', '.join(names))}: say which by the `key`.",
            parameter="key",
        )
    return key


def memory_map(where: str) -> np.ndarray:
    """The matrix of an npy file, read when it is sliced."""
    with reading(where, "a numpy file of numbers"):
        values = np.load(where, mmap_mode="r", allow_pickle=False)
    if not isinstance(values, np.ndarray):
        raise bad_file(
            "unknown-type",
            where,
            "is an npz file by its content",
            remedy="Let its name end in .npz.",
        )
    check_table(where, values.shape, values.dtype)
    return values


def is_sparse_npz(where: str) -> bool:
    """Whether it was written by `scipy.sparse.save_npz`."""
    try:
        with zipfile.ZipFile(where) as archive:
            return {"format.npy", "shape.npy", "data.npy"} <= set(archive.namelist())
    except Exception:
        return False  # read_table says what is wrong


def sparse_npz(where: str) -> Any:
    """Rows of a matrix that `scipy.sparse.save_npz` has written."""
    with reading(where, "a sparse matrix saved by scipy"):
        matrix = sp.load_npz(where)
        _check_rows_are_there(where, matrix)
        check_indices(matrix)
        matrix = matrix.tocsr()
    check_table(where, matrix.shape, matrix.dtype)
    return as_rows(matrix)


def _check_rows_are_there(where: str, matrix: Any) -> None:
    """Refuse a number of rows that next to nothing is stored of: most formats only tell it."""
    n_rows, n_entries = matrix.shape[0], matrix.data.size
    if n_rows > MANY_ROWS and n_rows > MAX_RATIO * max(n_entries, 1):
        raise bad_file(
            "damaged",
            where,
            f"says that it holds {n_rows} rows",
            f"only {n_entries} entries of them are there",
            "Make or copy it anew.",
        )
