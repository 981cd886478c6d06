"""Time of ContrastiveICA as a ratio to scikit-learn's FastICA, in one run.

10⁴ × 30 data of mixed Laplace sources; FastICA with 30 components and defaults on the same foreground.
Two designs: "complete", 30 sources in each dataset, where FastICA converges in a few steps, and
"overcomplete", 53 in the background and 63 more in the foreground. ``--solver paper`` is asked for r = 53
and l = 63, the others choose their ranks. Both methods are run in turn, the median of several is
taken, and the script exits with 1 if either ratio exceeds ``--bar``: 10 for "paper", 20 for the others.
"""

import argparse
import platform
import sys
import time
import warnings

import numpy as np
from sklearn.decomposition import FastICA
from threadpoolctl import threadpool_info, threadpool_limits

from contrica import ContrastiveICA


def data(design, n=10_000, p=30, seed=0):
    rng = np.random.default_rng(seed)
    shared, salient = {"complete": (20, 10), "overcomplete": (53, 63)}[design]
    own = p - shared if design == "complete" else 0  # of the background alone, to fill its space
    A, B, C = (rng.standard_normal((p, k)) for k in (shared, salient, own))
    foreground = rng.laplace(size=(n, shared)) @ A.T + rng.laplace(size=(n, salient)) @ B.T
    return foreground, rng.laplace(size=(n, shared)) @ A.T + rng.laplace(size=(n, own)) @ C.T


def seconds(call):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    return time.perf_counter() - start


def medians(design, solver, repeats):
    X, Y = data(design)
    ranks = {"n_background": 53, "n_foreground": 63} if solver == "paper" else {}
    ours = ContrastiveICA(solver=solver, random_state=0, **ranks)
    theirs = FastICA(30, random_state=0)
    calls = (lambda: ours.fit(X, background=Y), lambda: theirs.fit(X))
    times = np.array([[seconds(call) for call in calls] for _ in range(repeats + 1)])
    return np.median(times[1:], axis=0)  # the first round warms up


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solver", choices=("paper", "joint", "subspace", "auto"), default="paper")
    parser.add_argument("--bar", type=float, default=None)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None, help="BLAS threads; default all")
    arguments = parser.parse_args()
    bar = arguments.bar or (10.0 if arguments.solver == "paper" else 20.0)
    worst = 0.0
    with threadpool_limits(arguments.threads):
        threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
        print(f"{platform.machine()}, {threads} BLAS threads, median of {arguments.repeats}")
        for design in ("complete", "overcomplete"):
            ours, theirs = medians(design, arguments.solver, arguments.repeats)
            worst = max(worst, ours / theirs)
            print(
                f"{design:12s} ContrastiveICA {ours:.3f} s, FastICA {theirs:.3f} s, "
                f"ratio {ours / theirs:.2f} (bar {bar:g})"
            )
    sys.exit(int(worst > bar))


if __name__ == "__main__":
    main()
