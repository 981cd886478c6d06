"""Zarr stores, opened for each pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contrica.rows.files.shared import optional_module, reading

__all__ = ["zarr_root"]


@contextmanager
def zarr_root(where: str) -> Iterator[Any]:
    """A context with the root of a zarr store."""
    zarr = optional_module("zarr", "zarr folders")
    with reading(where, "a zarr store"):
        root = zarr.open(where, mode="r")
    yield root
