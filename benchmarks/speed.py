"""How long things take, as ratios to what must be done anyway or to what others take, in one run.

Sections, all but the last two by default: ``packed`` (fourth cumulants against a BLAS update of the
same shape, and against index loops), ``solvers`` (a fit against FastICA and Picard), ``sparse`` (a fit
of sparse counts against PCA and IncrementalPCA of the stacked matrix; ``--cells``), ``wide`` (no PCA at
1000 variables; "paper" as well with ``--paper``), ``rivals`` (cPCA and its relatives of few rows, and of
2000 variables, in seconds, and its sweep against one eigendecomposition for each α), ``inference``
(permutations and resamples against single fits), ``threads`` (parts of fits, two threads against one),
``growth`` (seconds by rows, variables and ranks; ``--figure`` draws them), ``gpu`` (on a card). What is
compared is run in turn, and medians are taken. ``--check`` exits with 1 where a bar is missed.
"""

import argparse
import contextlib
import ctypes
import gc
import os
import platform
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk
from sklearn.decomposition import PCA, FastICA, IncrementalPCA
from threadpoolctl import threadpool_info, threadpool_limits

from contrica import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainPCA,
    ProbabilisticContrastivePCA,
)
from contrica.estimators import contrastive_pca_path
from contrica.estimators._contrastive_pca import SWEEP
from contrica.inference import significance, stability
from contrica.moments.fourth import cumulants
from contrica.moments.leading import dense_eigenpairs
from contrica.moments.symmetric import n_packed
from contrica.solvers.permutation_null import choose_dimension

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive

MISSED = []


def seconds(call):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    return time.perf_counter() - start


def medians(calls, repeats):
    """Of several calls, run in turn; the first round warms up."""
    times = np.array([[seconds(call) for call in calls.values()] for _ in range(repeats + 1)])
    return dict(zip(calls, np.median(times[1:], axis=0), strict=True))


def report(what, ours, theirs, bar=None, at_least=False):
    ratio = ours / theirs
    text = "" if bar is None else f" (bar {bar:g})"
    if bar is not None and (ratio < bar if at_least else ratio > bar):
        MISSED.append(what)
        text += " MISSED"
    print(f"  {what:58s} {ours:9.3f} s / {theirs:9.3f} s = {ratio:8.2f}{text}", flush=True)


class Growth:
    """GiB that the process holds at most inside, beyond what it held before."""

    def __enter__(self):
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # what was freed is given back, lest it be used again
        self.gib, self._before = float("nan"), self._now("VmRSS")
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        except OSError:
            self._before = float("nan")
        return self

    def __exit__(self, *_):
        self.gib = self._now("VmHWM") - self._before

    def _now(self, field):
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 2**20


# --- fourth cumulants ---


def packed(arguments):
    print("packed fourth cumulants")
    rng = np.random.default_rng(0)
    for n, p in ((20_000, 60), (10_000, 30), (20_000, 100)):
        X, q = rng.laplace(size=(n, p)), n_packed(p)
        products = rng.standard_normal((n, q))
        calls = {
            "ours": lambda X=X: cumulants(X, storage="packed"),
            "update": lambda E=products: dsyrk(1.0, E.T, lower=1),
        }
        found = medians(calls, arguments.repeats)
        bar = 1.3 if p == 60 else None
        report(f"{n} × {p} over a symmetric BLAS update", found["ours"], found["update"], bar)
    X = rng.laplace(size=(500, 10))
    loops = seconds(lambda: naive.fourth_cumulant(X))
    ours = medians({"ours": lambda: cumulants(X, storage="packed")}, 20)["ours"]
    report("index loops over ours, 500 × 10", loops, ours, 1000, at_least=True)


# --- solvers ---


def mixed(design, n=10_000, p=30, seed=0):
    """Mixed Laplace sources: as many as variables, or more."""
    rng = np.random.default_rng(seed)
    shared, salient = {"complete": (20, 10), "overcomplete": (53, 63)}[design]
    own = p - shared if design == "complete" else 0  # of the background alone, to fill its space
    A, B, C = (rng.standard_normal((p, k)) for k in (shared, salient, own))
    foreground = rng.laplace(size=(n, shared)) @ A.T + rng.laplace(size=(n, salient)) @ B.T
    return foreground, rng.laplace(size=(n, shared)) @ A.T + rng.laplace(size=(n, own)) @ C.T


def solvers(arguments):
    print('fits of 10⁴ × 30 over FastICA of the foreground; "paper" with r = 53 and l = 63')
    for design in ("overcomplete", "complete"):
        X, Y = mixed(design)

        def fit(solver, X=X, Y=Y):
            ranks = {"n_background": 53, "n_foreground": 63} if solver == "paper" else {}
            ContrastiveICA(solver=solver, random_state=0, **ranks).fit(X, background=Y)

        calls = {
            solver: lambda solver=solver: fit(solver) for solver in ("paper", "auto", "subspace")
        }
        calls["FastICA"] = lambda X=X: FastICA(30, random_state=0).fit(X)
        try:
            from picard import picard
        except ImportError:
            picard = None
        if picard is not None:
            calls["Picard"] = partial(picard, X.T.copy(), random_state=0, max_iter=200)
        if arguments.joint:
            calls["joint"] = lambda: fit("joint")
        found = medians(calls, arguments.repeats)
        bars = {"paper": 4, "auto": 12} if design == "overcomplete" else {"paper": 4}
        for name, value in found.items():
            if name != "FastICA":
                report(f"{name}, {design}", value, found["FastICA"], bars.get(name))


# --- sparse counts ---

GENES, SHARE = 2000, 0.05


def cells(n, rng, salient):
    """Random counts, 5 % not zero; in the foreground two groups of genes go together."""
    parts = []
    for size in np.diff(np.append(np.arange(0, n, 20_000), n)):
        part = sp.random(
            *(size, GENES, SHARE),
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


def sparse(arguments):
    n = arguments.cells
    print(f"{n} cells × {GENES} genes, 5 % not zero, 50 components")
    rng = np.random.default_rng(0)
    X, Y = (cells(n // 2, rng, salient) for salient in (True, False))
    model = ContrastiveICA(2, n_pcs=50, random_state=0)
    with Growth() as growth:
        ours = seconds(lambda: model.fit(X, background=Y))
    print(f"  beyond the data: {growth.gib:.2f} GiB (bar 1.4, which is 1.5 GB)")
    if growth.gib > 1.4:
        MISSED.append("memory of sparse counts")
    groups = [set(np.argsort(-np.abs(pattern))[:30]) for pattern in model.components_]
    right = sum(max(len(group & set(range(a, a + 30))) for a in (0, 30)) for group in groups)
    print(f"  of the 60 genes of both groups, {right} lead a pattern")
    stacked = sp.vstack([X, Y], format="csr")
    theirs = seconds(lambda: PCA(50, svd_solver="arpack", random_state=0).fit(stacked))
    report("ContrastiveICA over PCA(arpack)", ours, theirs, 3)
    if arguments.incremental:
        other = seconds(lambda: IncrementalPCA(50, batch_size=2000).fit(stacked))
        report("ContrastiveICA over IncrementalPCA", ours, other)


# --- many variables ---


def wide_pair(n, p, rng):
    """Background of p sources, ten of which are large; twenty more in the foreground."""
    A, B = rng.standard_normal((p, 10)), rng.standard_normal((p, 20))
    Y, X = (rng.laplace(size=(n, 10)) @ A.T + rng.standard_normal((n, p)) for _ in range(2))
    X += rng.laplace(size=(n, 20)) @ B.T
    return X, Y, B / np.linalg.norm(B, axis=0)


def recovered(model, B):
    return float(np.median(np.abs(model.components_ @ B).max(axis=0)))


def wide(arguments):
    print("n_pcs=None at 2·10⁴ × 1000, 20 patterns")
    X, Y, B = wide_pair(20_000, 1000, np.random.default_rng(0))
    pca = partial(PCA(30, svd_solver="randomized", random_state=0).fit, X)
    theirs = medians({"theirs": pca}, 3)["theirs"]
    solvers = [("auto", {}, 5)]
    if arguments.paper:
        solvers.append(("paper", {"n_background": 10, "n_foreground": 20}, None))
    for solver, options, bar in solvers:
        model = ContrastiveICA(20, n_pcs=None, solver=solver, random_state=0, **options)
        with Growth() as growth:
            ours = seconds(lambda model=model: model.fit(X, background=Y))
        report(f"{solver} over PCA(30, randomized) of the foreground", ours, theirs, bar)
        print(
            f"  median |cos| to the true patterns {recovered(model, B):.3f}; {growth.gib:.2f} GiB "
            "beyond the data (bar 0.93, which is 1 GB)"
        )
        if growth.gib > 0.93:
            MISSED.append(f"memory of many variables, {solver}")


# --- rivals ---


def rivals(arguments):
    print("cPCA and its relatives, seconds")
    limits = {"ContrastivePCA": 2.0}
    for n, m, p in ((95, 49, 7912), (49, 49, 7912), (7000, 7000, 2000)):
        rng = np.random.default_rng(0)
        X, Y = (wide_pair(k, p, rng)[i] for i, k in enumerate((n, m)))
        models = [ContrastivePCA(random_state=0), ProbabilisticContrastivePCA(), PlainPCA()]
        if n > p:
            models.append(GeneralizedContrastivePCA())
            limits = {"ContrastivePCA": 10.0}
        for model in models:
            name = type(model).__name__
            took = seconds(lambda model=model, X=X, Y=Y: model.fit(X, background=Y))
            report_seconds(f"{name}, {n} and {m} × {p}", took, limits.get(name))
    fore, back = np.cov(X.T), np.cov(Y.T)
    path = seconds(lambda: contrastive_pca_path(fore, back, 2, SWEEP))
    one = medians({"one": lambda: dense_eigenpairs(fore - back, 2)}, 1)["one"]
    report("a sweep of 41 α over one eigendecomposition, 2000 variables", path, one, 20)
    found = contrastive_pca_path(fore, back, 2, SWEEP[::20])
    expected = naive.contrastive_pca_path(fore, back, 2, SWEEP[::20])
    print(
        f"  largest difference from three full decompositions {np.abs(found - expected).max():.1e}"
    )


def report_seconds(what, took, bar=None):
    text = "" if bar is None else f" (bar {bar:g})"
    if bar is not None and took > bar:
        MISSED.append(what)
        text += " MISSED"
    print(f"  {what:58s} {took:9.3f} s{text}", flush=True)


# --- inference ---


def inference(arguments):
    print(
        f"inference of 14 000 × 500, 30 components, {arguments.jobs} processes, over a single fit"
    )
    X, Y, _ = wide_pair(7000, 500, np.random.default_rng(0))
    model = ContrastiveICA(n_pcs=30, random_state=0)
    one = medians({"fit": lambda: model.fit(X, background=Y)}, 3)["fit"]
    options = {"background": Y, "random_state": 0, "n_jobs": arguments.jobs}
    permuted = seconds(lambda: significance(model, X, n_permutations=199, **options))
    resampled = seconds(lambda: stability(model, X, n_resamples=100, **options))
    report("199 permutations", permuted, one)
    report("100 bootstrap fits", resampled, one)
    report("both", permuted + resampled, one, 60)


# --- threads ---


def threads(arguments):
    print("one thread over two (below 1, two are slower; bar 0.9)")
    rng = np.random.default_rng(0)
    X, Y = mixed("complete")
    wide_X, wide_Y, _ = wide_pair(4000, 600, rng)
    fore, back = (np.cov(rows.T) for rows in (wide_X, wide_Y))
    ranks = {"n_background": 53, "n_foreground": 63}
    calls = {
        "packed cumulants, 10⁴ × 30": lambda: cumulants(X),
        "packed cumulants, 4000 × 80": lambda: cumulants(wide_X[:, :80], storage="packed"),
        'fit "paper", 10⁴ × 30': lambda: fit_of(X, Y, solver="paper", **ranks),
        'fit "subspace", 10⁴ × 30': lambda: fit_of(X, Y, solver="subspace"),
        "fit with PCA, 4000 × 600": lambda: fit_of(wide_X, wide_Y, n_pcs=30),
        "fit without PCA, 4000 × 600": lambda: fit_of(wide_X, wide_Y, n_pcs=None),
        "permutation null, 4000 × 600": lambda: choose_dimension(wide_X, wide_Y, rng=rng),
        "sweep of cPCA, 600 variables": lambda: contrastive_pca_path(fore, back, 2, SWEEP),
    }
    for name, call in calls.items():
        times = {}
        for number in (1, 2) * (1 + arguments.repeats // 2):
            with threadpool_limits(number):
                times.setdefault(number, []).append(seconds(call))
        one, two = (float(np.median(times[number][1:])) for number in (1, 2))
        report(name, one, two, 0.9, at_least=True)


def fit_of(X, Y, **options):
    return ContrastiveICA(random_state=0, **options).fit(X, background=Y)


# --- growth ---


def growth(arguments):
    print("seconds of a fit (paper, r = 10, l = 5 where not said) and of packed cumulants")
    rng = np.random.default_rng(0)

    def fit(n, p, r=10, l=5):  # noqa: E741
        X, Y = (rng.laplace(size=(n, p)) for _ in range(2))
        model = ContrastiveICA(
            *(2,),
            solver="paper",
            n_background=r,
            n_foreground=l,
            n_pcs=None,
            random_state=0,
        )
        return seconds(lambda: model.fit(X, background=Y))

    fit(1000, 10)
    rows = {
        "rows n (p = 30)": [(n, fit(n, 30)) for n in (10**3, 10**4, 10**5, 10**6)],
        "variables p (n = 10⁴)": [(p, fit(10_000, p)) for p in (10, 20, 40, 80, 160, 320)],
        "background rank r (p = 30, n = 10⁴)": [(r, fit(10_000, 30, r)) for r in (5, 20, 80, 160)],
        "foreground rank l (p = 30, n = 10⁴)": [
            (l, fit(10_000, 30, 10, l))
            for l in (5, 20, 80, 160)  # noqa: E741
        ],
    }
    for name, points in rows.items():
        print(f"  {name}: " + ", ".join(f"{x:g}: {y:.2f} s" for x, y in points), flush=True)
    if arguments.figure is not None:
        draw(rows, arguments.figure)


def draw(rows, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(rows), figsize=(12.4, 2.9), sharey=True, layout="constrained"
    )
    for ax, (name, points) in zip(axes, rows.items(), strict=True):
        x, y = zip(*points, strict=True)
        ax.loglog(x, y, "o-")
        ax.set_xlabel(name)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("seconds of a fit")
    figure.savefig(path, dpi=120)


# --- on a card ---


def gpu(arguments):
    import card

    MISSED.extend(card.run(arguments.seconds, arguments.profiles))


SECTIONS = {
    "packed": packed,
    "solvers": solvers,
    "sparse": sparse,
    "wide": wide,
    "rivals": rivals,
    "inference": inference,
    "threads": threads,
    "growth": growth,
    "gpu": gpu,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None, help="BLAS threads; default all")
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--incremental", action="store_true", help="IncrementalPCA as well")
    parser.add_argument("--joint", action="store_true", help='solver "joint" as well')
    parser.add_argument("--paper", action="store_true", help='"wide" with solver "paper" as well')
    parser.add_argument("--jobs", type=int, default=2, help='processes of "inference"')
    parser.add_argument("--figure", type=Path, default=None, help="file for the plot of growth")
    parser.add_argument(
        "--seconds", type=float, default=200, help="after which no row of gpu is begun"
    )
    parser.add_argument("--profiles", type=Path, default=None, help="folder for profiles of gpu")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed")
    arguments = parser.parse_args()
    chosen = arguments.sections or [name for name in SECTIONS if name not in ("growth", "gpu")]
    unknown = set(chosen) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}. There are {', '.join(SECTIONS)}.")
    with threadpool_limits(arguments.threads):
        threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
        print(
            f"{platform.machine()}, {os.cpu_count()} cores, {threads} BLAS threads, numpy "
            f"{np.__version__}, medians of {arguments.repeats}"
        )
        for name in chosen:
            SECTIONS[name](arguments)
    sys.exit(int(arguments.check and bool(MISSED)))


if __name__ == "__main__":
    main()
