"""Time and memory of a fit on sparse counts, beside scikit-learn's PCA of the stacked matrix, in one run.

Random counts of CELLS cells × 2000 genes, 5 % of them not zero, half foreground and half background, with
two groups of genes that go together in the foreground. ``ContrastiveICA(2, n_pcs=50)`` against
``PCA(50, svd_solver="arpack")``; peak memory is what the process held beyond the data.
"""

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from contrica import ContrastiveICA

GENES, SHARE = 2000, 0.05


def cells(n, rng, salient):
    """Rows in pieces, so that nothing larger than the result is held for long."""
    parts = []
    for size in np.diff(np.append(np.arange(0, n, 20_000), n)):
        part = sp.random(
            size,
            GENES,
            SHARE,
            format="csr",
            random_state=rng,
            data_rvs=lambda k: rng.geometric(0.4, k),
        )
        if salient:
            for first in (0, 30):
                on = np.flatnonzero(rng.random(size) < 0.5)
                rows = np.repeat(on, 30)
                columns = np.tile(np.arange(first, first + 30), on.size)
                added = rng.poisson(0.7, rows.size)
                part = part + sp.csr_matrix((added, (rows, columns)), shape=part.shape)
        parts.append(part.astype(np.float64))
    return sp.vstack(parts, format="csr")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100_000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X, Y = (cells(arguments.cells // 2, rng, salient) for salient in (True, False))
    held = peak()
    start = time.perf_counter()
    model = ContrastiveICA(2, n_pcs=50, random_state=0).fit(X, background=Y)
    ours, used = time.perf_counter() - start, peak() - held
    for pattern in model.components_:
        print("leading genes:", np.sort(np.argsort(-np.abs(pattern))[:30]))
    stacked = sp.vstack([X, Y], format="csr")
    start = time.perf_counter()
    PCA(50, svd_solver="arpack", random_state=0).fit(stacked)
    theirs = time.perf_counter() - start
    print(
        f"{arguments.cells} cells: fit {ours:.1f} s, PCA {theirs:.1f} s, ratio {ours / theirs:.2f}; "
        f"{used:.2f} GiB beyond the data"
    )


if __name__ == "__main__":
    main()
