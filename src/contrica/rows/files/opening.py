"""`open_rows`: rows on disk by the ending of their name, read block by block and never whole.

It reads what describes the rows, and each pass over them then reads blocks. Packages that know a format
are imported when such a file is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from contrica.errors import ParameterError, unmarked
from contrica.rows.files.hdf5 import check_texts, hdf5_file
from contrica.rows.files.mtx import open_10x
from contrica.rows.files.npy import is_sparse_npz, memory_map, sparse_npz
from contrica.rows.files.parquet import open_parquet
from contrica.rows.files.shared import (
    HDF5,
    TEXT,
    Opened,
    bad_file,
    check_is_what_it_says,
    check_no_key,
    check_not_empty,
    is_remote,
    kind_of_store,
    names_in,
    unknown_column,
)
from contrica.rows.files.stores import open_store
from contrica.rows.files.table import read_table
from contrica.rows.files.zarr_store import zarr_root

__all__ = ["open_rows"]


def open_rows(
    path: str | Path,
    key: str | None = None,
    *,
    header: bool | None = None,
    metadata: str | Sequence[str] = (),
    all_metadata: bool = False,
    mask_var: str | None = None,
    gaps: bool = False,
) -> Opened:
    """Open a file of rows; what is large in it is read later, block by block.

    Parameters
    ----------
    path : path
        By its ending: ``.npy`` (as a memory map), ``.npz`` (of `scipy.sparse.save_npz`, or of arrays),
        ``.h5``, ``.hdf5``, ``.h5ad``, ``.zarr`` (also AnnData's), ``.parquet`` (a file, a folder of
        them, or a pattern such as ``folder/*.parquet``), ``.csv``, ``.tsv``, or the folder of a 10x
        matrix (``matrix.mtx``). Sparse rows stay sparse.
    key : str, optional
        Which array of a file with several; of AnnData files X by default, ``"layers/counts"`` for
        another.
    header : bool, optional
        Whether the first line of a text file names the columns; by default its cells decide.
    metadata : str or sequence of str
        Names of columns that are no variables, such as a donor: of a text or parquet file, or of ``obs``
        of an AnnData file; as one text with commas between.
    all_metadata : bool
        Whether what else is no variable is metadata as well: columns of text, all of ``obs``. Otherwise
        columns of text are an error.
    mask_var : str, optional
        Column of ``var`` of an AnnData file that says which variables are used, such as
        ``"highly_variable"``.
    gaps : bool
        Whether values may be missing in what is read here: NaN, and in text files empty cells and NA.
        Of files that are read block by block whoever reads them decides.

    Returns
    -------
    Opened

    Raises
    ------
    FileError
        If there is no table of numbers, or it is damaged.
    ParameterError
        If a key is given for a file without keys.
    FileMissingError
    PackageMissingError
        With what to install.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.zeros((5, 3)))
    ...     open_rows(f"{folder}/rows.npy").rows.shape
    (5, 3)
    """
    where = str(path)
    if is_remote(where):
        raise bad_file(
            "remote",
            where,
            "is not on this machine, and such files are read by the workers of a cluster",
            remedy="Use open_dask, --scheduler ADDRESS in the shell, or copy it here.",
        )
    kind = kind_of_store(where)
    if kind != ".parquet" and kind not in TEXT and Path(where).is_file():
        check_not_empty(Path(where))
        check_is_what_it_says(Path(where), kind)
    names = names_in(metadata)
    if kind in (".npy", ".npz", ".mtx") and names:
        raise unknown_column(where, names[0], ())
    if mask_var is not None and kind not in (".h5ad", ".zarr"):
        raise ParameterError(
            "no-var",
            f"`mask_var={unmarked(mask_var)}` was given for {unmarked(where)}",
            "only AnnData files (h5ad, zarr) have var",
            "Leave it out.",
            "mask_var",
        )
    if kind == ".mtx":
        check_no_key(where, key)
        return open_10x(where)
    if kind == ".npy":
        check_no_key(where, key)
        return Opened(memory_map(where), None, None)
    if kind == ".npz":
        if is_sparse_npz(where):
            check_no_key(where, key)
            return Opened(sparse_npz(where), None, None)
        return Opened(read_table(where, key, gaps=gaps).values, None, None)
    if kind in HDF5:
        check_texts(where)
    if kind in HDF5 or kind == ".zarr":
        opener = partial(hdf5_file if kind in HDF5 else zarr_root, where)
        return open_store(where, key, opener, names, all_metadata=all_metadata, mask_var=mask_var)
    if kind == ".parquet":
        check_no_key(where, key)
        return open_parquet(where, names, all_metadata=all_metadata)
    options: dict[str, Any] = {"metadata": names, "all_metadata": all_metadata, "gaps": gaps}
    return Opened(*read_table(where, key, header=header, **options))
