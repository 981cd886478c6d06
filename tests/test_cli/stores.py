"""The same two datasets in files of other kinds."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from contrica.rows import read_table


def as_npy(frame, path):
    np.save(path / "rows.npy", frame.to_numpy())
    return path / "rows.npy"


def as_parquet(frame, path):
    for i in range(3):
        frame[i * 100 : (i + 1) * 100].to_parquet(path / f"part.{i}.parquet", row_group_size=30)
    return f"{path}/*.parquet"


def as_zarr(frame, path):
    import zarr

    group = zarr.open_group(path / "rows.zarr", mode="w")
    group.create_array("rows", shape=frame.shape, chunks=(70, 5), dtype="f8")[:] = frame.to_numpy()
    return path / "rows.zarr"


def as_h5ad(frame, path):
    import anndata
    import scipy.sparse as sp

    cells = anndata.AnnData(sp.csr_matrix(frame.to_numpy()), obs=frame.iloc[:, :0])
    cells.var_names = list(frame.columns)
    cells.write_h5ad(path / "rows.h5ad")
    return path / "rows.h5ad"


STORES = {"npy": as_npy, "parquet": as_parquet, "zarr": as_zarr, "h5ad": as_h5ad}


def stored(files, kind):
    """The paths of fore.csv and back.csv, written again."""
    paths = []
    for name in ("fore", "back"):
        folder = files / f"{kind}_{name}"
        folder.mkdir()
        paths.append(STORES[kind](pd.read_csv(files / f"{name}.csv", index_col=0), folder))
    return paths


def same_tables(one, other, **tolerance):
    one, other = read_table(one), read_table(other)
    assert_allclose(one.values, other.values, **tolerance)
    return one, other
