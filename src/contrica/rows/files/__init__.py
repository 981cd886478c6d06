"""Files of rows: one module for each format, opened by `open_rows`, or by `open_dask` for a cluster."""

from contrica.rows.files.dask_store import open_dask
from contrica.rows.files.opening import open_rows
from contrica.rows.files.shared import Names, Opened, Table
from contrica.rows.files.table import read_table

__all__ = ["Names", "Opened", "Table", "open_dask", "open_rows", "read_table"]
