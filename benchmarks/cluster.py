"""Two workers with little memory, rows on disk that are larger: the same cumulants and the same patterns?

Writes ROWS × 40 numbers of a foreground and a background as zarr, starts a local cluster of two worker
processes with ``--worker-memory`` each, and compares packed cumulants and patterns of a fit there with
those of one process that reads the same files. Then the fit is repeated, and one worker is killed in the
middle.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from contrica import ContrastiveICA
from contrica.moments.fourth import cumulants
from contrica.rows.containers import as_rows

P, CHUNK = 40, 50_000


def write(path, n, salient):
    import zarr

    rng = np.random.default_rng([0, salient])
    A = np.random.default_rng(1).standard_normal((P, P))
    B = np.random.default_rng(2).standard_normal((P, 3))
    store = zarr.create_array(str(path), shape=(n, P), chunks=(CHUNK, P), dtype="float64")
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        rows = rng.laplace(size=(size, P)) @ A.T
        if salient:
            rows += 3 * rng.exponential(size=(size, 3)) @ B.T
        store[start : start + size] = rows


def timed(call):
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def fit(X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ContrastiveICA(3, random_state=0).fit(X, background=Y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**7, help="of both datasets together")
    parser.add_argument("--worker-memory", default="1GB")
    arguments = parser.parse_args()
    import dask.array
    import zarr
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("fore.zarr", "back.zarr")]
        for path, salient in zip(paths, (True, False), strict=True):
            write(path, arguments.rows // 2, salient)
        size = arguments.rows * P * 8 / 1e9
        print(f"{arguments.rows} × {P}, {size:.1f} GB, two workers of {arguments.worker_memory}")
        one = [zarr.open(str(path), mode="r") for path in paths]
        alone, took = timed(lambda: cumulants(as_rows(one[0])))
        print(f"  cumulants of the foreground, one process: {took:.0f} s", flush=True)
        model, took_fit = timed(lambda: fit(*one))
        print(f"  fit, one process: {took_fit:.0f} s; {model.solver_}", flush=True)
        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                memory_limit=arguments.worker_memory,
                dashboard_address=":0",
            ) as cluster,
            Client(cluster) as client,
        ):
            many = [dask.array.from_zarr(str(path)) for path in paths]
            there, took = timed(lambda: cumulants(as_rows(many[0])))
            expected = alone.fourth.flatten()
            apart = np.abs(there.fourth.flatten() - expected).max() / np.abs(expected).max()
            print(f"  cumulants, two workers: {took:.0f} s; differ by {apart:.1e}", flush=True)
            second, took = timed(lambda: fit(*many))
            differ = np.abs(second.components_ - model.components_).max()
            print(f"  fit, two workers: {took:.0f} s; patterns differ by {differ:.1e}", flush=True)
            pids = list(client.run(os.getpid).values())
            killer = threading.Timer(took / 2, os.kill, (pids[0], signal.SIGKILL))
            killer.start()
            third, took = timed(lambda: fit(*many))
            killer.join()
            gone = pids[0] not in client.run(os.getpid).values()
            lost = np.abs(third.components_ - model.components_).max()
            print(
                f"  fit, a worker killed half-way: {took:.0f} s; killed: {gone}; patterns differ by "
                f"{lost:.1e}"
            )
    sys.exit(int(not (apart < 1e-8 and differ < 1e-6 and lost < 1e-6 and gone)))


if __name__ == "__main__":
    main()
