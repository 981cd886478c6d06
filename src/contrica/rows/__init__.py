"""Rows of anything, block by block: arrays, sparse matrices, files, clusters, devices and streams."""

from contrica.errors import ClusterLostError
from contrica.rows.containers import as_rows
from contrica.rows.files import Names, Opened, Table, open_dask, open_rows, read_table
from contrica.rows.protocol import Rows
from contrica.rows.streams import Blocks

__all__ = [
    "Blocks",
    "ClusterLostError",
    "Names",
    "Opened",
    "Rows",
    "Table",
    "as_rows",
    "open_dask",
    "open_rows",
    "read_table",
]
