"""HDF5 files, opened for each pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contrica.rows.files.shared import optional_module, reading

__all__ = ["hdf5_file"]


@contextmanager
def hdf5_file(where: str) -> Iterator[Any]:
    """A context with the root of an HDF5 file."""
    h5py = optional_module("h5py", "HDF5 and AnnData files")
    with reading(where, "an HDF5 file"):
        file = h5py.File(where, "r")
    try:
        yield file
    finally:
        file.close()
