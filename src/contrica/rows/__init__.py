"""Rows of anything, block by block: arrays, sparse matrices, files, clusters, devices and streams."""

from contrica.rows.blocks import Blocks, ClusterLostError, Rows, as_rows
from contrica.rows.stores import Opened, open_dask, open_rows
from contrica.rows.tables import Table, read_table

__all__ = [
    "Blocks",
    "ClusterLostError",
    "Opened",
    "Rows",
    "Table",
    "as_rows",
    "open_dask",
    "open_rows",
    "read_table",
]
