"""Which reader of a file is fastest, and which takes the least memory: contrica's or a package's own.

Each reading runs in a process of its own, with what it needs imported before: seconds, and the highest
resident set during the reading less that just before. All readers of a file must find the same sum of all
numbers. Text files are read whole, the others block by block.
"""

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

BLOCK_ROWS = 4096


# --- files ---


def text(path, megabytes, width, named=False):
    rng = np.random.default_rng(0)
    n_rows = max(int(megabytes * 1e6 / (19 * width)), 2)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as file:
        file.write(",".join(["cell"] * named + [f"g{j}" for j in range(width)]) + "\n")
        for start in range(0, n_rows, 1000):
            for i, row in enumerate(
                rng.standard_normal((min(1000, n_rows - start), width)).tolist()
            ):
                file.write(",".join([f"c{start + i}"] * named + [repr(x) for x in row]) + "\n")


def parquet(path, megabytes, width, n_files=1):
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    n_rows = int(megabytes * 1e6 / (8 * width * n_files))
    path.mkdir()
    for number in range(n_files):
        table = pa.table({f"g{j}": rng.standard_normal(n_rows) for j in range(width)})
        size = max(n_rows // 4, 1)
        parquet.write_table(table, path / f"part.{number}.parquet", row_group_size=size)


def sparse(path, megabytes, compression=None):
    import anndata

    n_rows = int(megabytes * 1e6 / (8 * 100))
    counts = sp.random(n_rows, 2000, 0.05, "csr", np.float32, 0)
    counts.data = np.ceil(9 * counts.data)
    adata = anndata.AnnData(counts)
    if path.suffix == ".zarr":
        adata.write_zarr(path)
    else:
        adata.write_h5ad(path, compression=compression)


# --- readers: each yields numpy or scipy matrices ---


def contrica_text(path):
    import pyarrow.csv  # noqa: F401

    return _table(path)


def plain_text(path):
    """Without pyarrow."""
    from contrica.rows.files import text as module

    module.ARROW_BYTES = float("inf")
    return _table(path)


def _table(path):
    from contrica.rows.files.table import read_table

    return lambda: [read_table(path).values]


def arrow_text(path):
    """The whole file by all threads, then put into one array."""
    from pyarrow import csv

    def read():
        table = csv.read_csv(path)
        names = [name for name in table.column_names if name != "cell"]
        return [np.column_stack([table[name].to_numpy() for name in names])]

    return read


def pandas_text(path):
    import pandas as pd

    def read():
        frame = pd.read_csv(path, float_precision="round_trip")
        return [frame[[name for name in frame.columns if name != "cell"]].to_numpy()]

    return read


def contrica_blocks(path):
    from contrica.rows import open_rows

    open_rows(path)  # imports what reads it
    return lambda: open_rows(path).rows.blocks(BLOCK_ROWS)


def _filled(batch):
    block = np.empty((batch.num_columns, batch.num_rows))
    for row, column in zip(block, batch.columns, strict=True):
        row[:] = column.to_numpy(zero_copy_only=False)
    return block.T


def file_blocks(path):
    """By `pyarrow.parquet`, without reading ahead."""
    from pyarrow import parquet

    def read():
        for part in sorted(path.iterdir()):
            with parquet.ParquetFile(part, pre_buffer=False) as file:
                yield from map(_filled, file.iter_batches(batch_size=BLOCK_ROWS))

    return read


def dataset_blocks(path):
    """By `pyarrow.dataset` as it is."""
    from pyarrow import dataset

    def read():
        files = sorted(str(part) for part in path.iterdir())
        return map(_filled, dataset.dataset(files).to_batches(batch_size=BLOCK_ROWS))

    return read


def contrica_pieces(path):
    from contrica.rows import open_rows

    open_rows(path)  # imports what reads it
    return lambda: open_rows(path).rows.pieces()


def _checked(piece):
    """As contrica checks and returns it."""
    indices = piece.indices
    if indices.size and not 0 <= indices.min() <= indices.max() < piece.shape[1]:
        raise ValueError("damaged")
    if (np.diff(piece.indptr) < 0).any():
        raise ValueError("damaged")
    return piece.astype(np.float64, copy=False)


def checked_anndata_pieces(path):
    """Those of anndata with the checks and in the precision of contrica's."""
    read = anndata_pieces(path)
    return lambda: map(_checked, read())


def anndata_pieces(path):
    """As many rows at a time as contrica reads."""
    from anndata.io import sparse_dataset

    from contrica.rows import open_rows

    size = open_rows(path).rows._per_piece

    def read():
        if path.suffix == ".zarr":
            import zarr

            root = zarr.open(path, mode="r")
        else:
            import h5py

            root = h5py.File(path)
        rows = sparse_dataset(root["X"])
        for start in range(0, rows.shape[0], size):
            yield rows[start : start + size]

    return read


TEXT = [plain_text, contrica_text, arrow_text, pandas_text]
PARQUET = [contrica_blocks, file_blocks, dataset_blocks]
SPARSE = [contrica_pieces, anndata_pieces, checked_anndata_pieces]
FILES = {
    "narrow.csv": (text, {"width": 20}, TEXT),
    "names.csv": (text, {"width": 20, "named": True}, TEXT),
    "wide.csv": (text, {"width": 2000}, TEXT),
    "narrow.csv.gz": (text, {"width": 20}, TEXT),
    "narrow.parquet": (parquet, {"width": 50}, PARQUET),
    "wide.parquet": (parquet, {"width": 2000}, PARQUET),
    "eight.parquet": (parquet, {"width": 50, "n_files": 8}, PARQUET),
    "plain.h5ad": (sparse, {}, SPARSE),
    "packed.h5ad": (sparse, {"compression": "gzip"}, SPARSE),
    "cells.zarr": (sparse, {}, SPARSE),
}


# --- measuring ---


def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) * 1024


def measure(reader, path):
    """Print seconds, MB and the sum of all numbers; in a process of its own."""
    read = globals()[reader](path)
    before, start, total = status("VmRSS"), time.perf_counter(), 0.0
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    for block in read():
        total += float(block.sum())
    print(time.perf_counter() - start, (status("VmHWM") - before) / 1e6, total)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=20, help="of each file, about")
    parser.add_argument("--repeats", type=int, default=3, help="of which the best counts")
    parser.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure[0], Path(arguments.measure[1]))
        return
    print("| file | reader | seconds | peak, MB |")
    print("|---|---|---|---|")
    for name in arguments.files:
        make, options, readers = FILES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            make(path, arguments.megabytes, **options)
            sums = []
            for reader in readers:
                command = [sys.executable, __file__, "--measure", reader.__name__, str(path)]
                runs = [
                    [float(x) for x in subprocess.check_output(command, text=True).split()]
                    for _ in range(arguments.repeats)
                ]
                seconds, peak, total = (min(column) for column in zip(*runs, strict=True))
                sums.append(total)
                print(f"| {name} | {reader.__name__} | {seconds:.2f} | {peak:.0f} |", flush=True)
        if not np.allclose(sums, sums[0], rtol=1e-9):
            sys.exit(f"readers of {name} disagree: {sums}")


if __name__ == "__main__":
    main()
