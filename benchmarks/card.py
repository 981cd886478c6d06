"""Rows of ``speed.py gpu``: what fits take on a card, each told as soon as it is known.

The most important rows come first; one that fails is told and left out, and after ``--seconds`` no new
one is begun.
"""

import contextlib
import cProfile
import gc
import io
import os
import pstats
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import scipy.sparse as sp

from contrica import ContrastiveICA

CELLS, GENES, SHARE, BLOCK = 10**6, 2000, 0.05, 20_000
DEVICE, MOMENT_ROWS = "cuda", 10**6
MISSED = []


def tell(text):
    print(f"  {text}", flush=True)


def timed(call, path=None):
    """Seconds of a call and what it returns, everything on the card included; a profile to a file."""
    import torch

    gc.collect()
    profile = cProfile.Profile() if path else contextlib.nullcontext()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with warnings.catch_warnings(), profile:
        warnings.simplefilter("ignore")
        found = call()
        torch.cuda.synchronize()
    took = time.perf_counter() - start
    if path:
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(90)
        with open(path, "w") as file:
            file.write(text.getvalue())
    return took, found


def against(bar, what, times):
    """Tell times, of which the best counts: the first one includes what is set up once."""
    best = min(times)
    verdict = "" if best <= bar else " MISSED"
    if verdict:
        MISSED.append(what)
    told = ", ".join(f"{took:.2f}" for took in times)
    tell(f"{what}: {told} s (bar {bar:g}){verdict}")


def nearness(one, other):
    """1 − the smallest |cos| between patterns of two models of equal order."""
    count = min(len(one), len(other))
    return float(1 - np.abs(np.sum(one[:count] * other[:count], axis=1)).min())


# --- data, made here ---


def cell_block(seed, salient):
    """Counts of some cells, 5 % not zero; in the foreground two groups of genes go together."""
    rng = np.random.default_rng(seed)
    there = rng.random((BLOCK, GENES), dtype=np.float32) < SHARE
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))])
    columns = np.flatnonzero(there) % GENES
    found = sp.csr_matrix((rng.geometric(0.4, columns.size) * 1.0, columns, ends), there.shape)
    for first in (0, 30) if salient else ():
        on = np.repeat(np.flatnonzero(rng.random(BLOCK) < 0.5), 30)
        genes = first + np.arange(on.size) % 30
        added = rng.poisson(0.7, on.size) * 1.0
        found = found + sp.csr_matrix((added, (on, genes)), there.shape)
    found.eliminate_zeros()
    return found


@cache
def cells(n, salient):
    """So many cells, in blocks that threads make."""
    seeds = [[int(salient), i] for i in range(-(-n // BLOCK))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        blocks = list(pool.map(lambda seed: cell_block(seed, salient), seeds))
    return sp.vstack(blocks, format="csr")[:n]


@cache
def wide_pair(n, p, seed=0):
    """As `speed.wide_pair`, made on the card."""
    import torch

    torch.manual_seed(seed)
    kind = {"dtype": torch.float64, "device": DEVICE}

    def laplace(k):
        signs = torch.sign(torch.rand((n, k), **kind) - 0.5)
        return -torch.log(torch.rand((n, k), **kind)) * signs

    A, B = torch.randn((p, 10), **kind), torch.randn((p, 20), **kind)
    Y, X = (laplace(10) @ A.T + torch.randn((n, p), **kind) for _ in range(2))
    X += laplace(20) @ B.T
    B = B / torch.linalg.norm(B, dim=0)
    return X.cpu().numpy(), Y.cpu().numpy(), B.cpu().numpy()


def on_card(X):
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compressed rows are new to torch
        parts = (torch.as_tensor(part).to(DEVICE) for part in (X.indptr, X.indices, X.data))
        return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=False)


def cell_model(device):
    return ContrastiveICA(2, n_pcs=50, random_state=0, device=device)


def wide_model(device):
    return ContrastiveICA(20, n_pcs=None, random_state=0, device=device)


def fitted(model, pair, **labels):
    return model.fit(pair[0], background=pair[1], **labels)


def tensors(*parts):
    """Dense rows on the card."""
    import torch

    return [torch.as_tensor(part).to(DEVICE) for part in parts]


def labels_of(n, count):
    """So many groups of rows in each dataset, of equal size."""
    codes = np.arange(n) % count
    return {"groups": codes, "background_groups": count + codes}


def recovered(model, B):
    return float(np.median(np.abs(model.components_ @ B).max(axis=0)))


# --- rows ---


def warm_up(folder):
    """What a process sets up once: libraries of dense and of sparse products, and eigenvalues."""
    pair = [cells(BLOCK, salient)[:3000, :600] for salient in (True, False)]
    took, _ = timed(lambda: fitted(ContrastiveICA(2, n_pcs=20, device=DEVICE), pair))
    X, Y, _ = wide_pair(2000, 300)
    more, _ = timed(lambda: fitted(wide_model(DEVICE), (X, Y)))
    tell(f"set up once per process, in two small fits: {took + more:.1f} s")


def sparse_on_card(folder):
    start = time.perf_counter()
    pair = [cells(CELLS // 2, salient) for salient in (True, False)]
    tell(f"(cells were made in {time.perf_counter() - start:.1f} s)")
    moved = [on_card(part) for part in pair]
    runs = [timed(lambda: fitted(cell_model(None), moved)) for _ in range(2)]
    against(
        6, f"{CELLS} × {GENES} CSR, 50 components, rows on the card", [took for took, _ in runs]
    )
    timed(lambda: fitted(cell_model(None), moved), folder and f"{folder}/sparse_on_card.txt")


def sparse_from_host(folder):
    pair = [cells(CELLS // 2, salient) for salient in (True, False)]
    runs = [timed(lambda: fitted(cell_model(DEVICE), pair)) for _ in range(2)]
    against(
        15, f"{CELLS} × {GENES} CSR, 50 components, from host memory", [took for took, _ in runs]
    )


def wide(folder):
    X, Y, B = wide_pair(12_399, GENES)
    runs = [timed(lambda: fitted(wide_model(DEVICE), (X, Y))) for _ in range(2)]
    against(5, f"12399 × {GENES}, n_pcs=None, auto, from host memory", [took for took, _ in runs])
    tell(f"median |cos| to the true patterns {recovered(runs[0][1], B):.4f}")
    timed(lambda: fitted(wide_model(DEVICE), (X, Y)), folder and f"{folder}/wide.txt")


def refits(folder):
    from contrica.inference import significance, stability

    X, Y, _ = wide_pair(14_000, 500)
    model = fitted(ContrastiveICA(2, n_pcs=30, random_state=0, device=DEVICE), (X, Y))
    tested, _ = timed(
        lambda: significance(model, X, background=Y, n_permutations=199, random_state=0)
    )

    def again(count, jobs):
        return stability(model, X, background=Y, n_resamples=count, random_state=0, n_jobs=jobs)

    alone, _ = timed(lambda: again(5, None), folder and f"{folder}/refits.txt")
    tell(f"199 permutations {tested:.2f} s; 5 bootstrap fits one after another {alone:.2f} s")
    drawn, _ = timed(lambda: again(100, None))
    tell(f"100 bootstrap fits one after another: {drawn:.2f} s")
    against(
        20, "199 permutations and 100 bootstrap fits, 14000 × 500, 30 components", [tested + drawn]
    )


def sparse_as_on_cpu(folder):
    pair = [cells(CELLS // 2, salient)[: CELLS // 20] for salient in (True, False)]
    took, card = timed(lambda: fitted(cell_model(DEVICE), pair))
    slow, here = timed(lambda: fitted(cell_model(None), pair))
    away = nearness(card.components_, here.components_)
    tell(
        f"{CELLS // 10} cells: card {took:.2f} s, CPU {slow:.2f} s, 1 − |cos| of the patterns {away:.1e} "
        "(bar 1e-06)"
    )


def in_blocks(folder):
    from contrica.rows import moving

    pair = [cells(CELLS // 2, salient) for salient in (True, False)]
    share, moving.DEVICE_SHARE = moving.DEVICE_SHARE, 1e-4
    try:
        took, _ = timed(lambda: fitted(cell_model(DEVICE), pair))
    finally:
        moving.DEVICE_SHARE = share
    tell(f"{CELLS} × {GENES} CSR moved block by block in every pass: {took:.2f} s")


def packed(folder):
    import torch

    from contrica.moments.fourth import cumulants
    from contrica.moments.symmetric import n_packed
    from contrica.rows.containers import as_rows
    from contrica.rows.moving import on_device

    n, p = MOMENT_ROWS, 100
    for dtype in (torch.float64, torch.float32):
        X = torch.randn((n, p), dtype=dtype, device=DEVICE)
        block = torch.randn((20_000, n_packed(p)), dtype=dtype, device=DEVICE)
        rows = on_device(as_rows(X), dtype=str(dtype).split(".")[1])

        def product(block=block):
            total = torch.zeros((block.shape[1],) * 2, dtype=block.dtype, device=DEVICE)
            for _ in range(n // len(block)):
                total.addmm_(block.T, block)

        def ours(rows=rows):
            cumulants(rows, storage="packed")

        (ours_took, bare), *_ = sorted((timed(ours)[0], timed(product)[0]) for _ in range(2))
        tell(
            f"packed cumulants, {n} × {p}, {dtype}: {ours_took:.3f} s, {ours_took / bare:.2f} of a bare "
            "product"
        )
        del X, block, rows
        torch.cuda.empty_cache()


def paper(folder):
    X, Y, B = wide_pair(12_399, GENES)
    model = ContrastiveICA(
        *(20,),
        n_pcs=None,
        solver="paper",
        n_background=10,
        n_foreground=20,
        device=DEVICE,
        random_state=0,
    )
    took, model = timed(lambda: fitted(model, (X, Y)))
    tell(f"paper (10, 20), 12399 × {GENES}: {took:.1f} s, median |cos| {recovered(model, B):.3f}")


def wide_as_on_cpu(folder):
    X, Y, _ = wide_pair(12_399, GENES)
    _, card = timed(lambda: fitted(wide_model(DEVICE), (X, Y)))
    slow, here = timed(lambda: fitted(wide_model(None), (X, Y)))
    away = nearness(card.components_, here.components_)
    tell(
        f"12399 × {GENES} on the CPU: {slow:.1f} s, 1 − |cos| of the patterns {away:.1e} (bar 1e-06)"
    )


def as_on_cpu(what, make, pair, **labels):
    """A fit of tensors and that of arrays: seconds of both, and how near their patterns are."""
    moved = tensors(*pair)
    timed(lambda: fitted(make(), moved, **labels))
    took, card = timed(lambda: fitted(make(), moved, **labels))
    slow, here = timed(lambda: fitted(make(), pair, **labels))
    away = nearness(card.components_, here.components_)
    tell(f"{what}: tensors {took:.2f} s, CPU {slow:.2f} s, 1 − |cos| {away:.1e} (bar 1e-06)")


def groups_and_scale(folder):
    """Sums, projections and the permutation null of rows that come in groups, or are divided."""
    X, Y, _ = wide_pair(100_000, 200)
    for scale in ("none", "pooled", "each"):
        as_on_cpu(
            f"100000 × 200, 30 components, 24 groups in each, scale={scale}",
            lambda own=scale: ContrastiveICA(2, n_pcs=30, scale=own, random_state=0),
            (X, Y),
            **labels_of(len(X), 24),
        )
    X, Y, _ = wide_pair(4000, 300)
    for scale, labels in (("none", labels_of(4000, 24)), ("pooled", {}), ("each", {})):
        as_on_cpu(
            f"4000 × 300, n_pcs=None, {'24 groups' if labels else 'rows'}, scale={scale}",
            lambda own=scale: ContrastiveICA(5, n_pcs=None, scale=own, random_state=0),
            (X, Y),
            **labels,
        )


def wide_groups(folder):
    X, Y, _ = wide_pair(12_399, GENES)
    moved, labels = tensors(X, Y), labels_of(len(X), 12)
    took, model = timed(
        lambda: fitted(wide_model(None), moved, **labels), folder and f"{folder}/wide_groups.txt"
    )
    count = model.scree_.n_assignments
    tell(f"12399 × {GENES}, n_pcs=None, 12 groups in each, {count} assignments: {took:.2f} s")


def joint(folder):
    """Where moments of all rows, and products with tensors, are most of the work."""
    for n, p in ((100_000, 30), (50_000, 60)):
        X, Y, _ = wide_pair(n, p)
        as_on_cpu(
            f"joint (10, 20), {n} × {p}",
            lambda: ContrastiveICA(
                *(20,), solver="joint", n_background=10, n_foreground=20, n_pcs=None, random_state=0
            ),
            (X, Y),
        )


def tested(folder):
    """Permutations outside a fit."""
    for n, p, n_pcs, count in ((14_000, 500, 30, 0), (4000, 300, None, 0), (4000, 300, None, 24)):
        X, Y, _ = wide_pair(n, p)
        labels = labels_of(n, count) if count else {}
        model = ContrastiveICA(5, n_pcs=n_pcs, solver="subspace", n_foreground=5, random_state=0)
        moved = tensors(X, Y)
        fitted(model, moved, **labels)
        (took, card), (slow, here) = (permuted(model, pair, labels) for pair in (moved, (X, Y)))
        same = np.array_equal(card.p_values, here.p_values, equal_nan=True)
        tell(
            f"199 permutations, {n} × {p}, {n_pcs} components, {count or 'no'} groups: tensors "
            f"{took:.2f} s, CPU {slow:.2f} s, p-values {'the same' if same else 'DIFFER'}"
        )


def permuted(model, pair, labels):
    from contrica.inference import significance

    options = {"background": pair[1], "n_permutations": 199, "random_state": 0}
    return timed(lambda: significance(model, pair[0], **options, **labels))


def third(folder):
    """Third cumulants from the rows: of 100 variables written out, of 500 as twenty slices."""
    from contrica.moments.fourth import cumulants
    from contrica.rows.containers import as_rows

    def slices(rows, storage):
        U = np.linalg.qr(np.random.default_rng(0).standard_normal((rows.shape[1], 20)))[0]
        return timed(lambda: cumulants(rows, storage=storage).third.slices(U))

    for p, storage in ((100, "packed"), (500, "matrix-free")):
        X = wide_pair(20_000, p)[0]
        (took, card), (slow, here) = (slices(rows, storage) for rows in (as_rows(tensors(X)[0]), X))
        away = np.abs(card - here).max() / np.abs(here).max()
        tell(
            f"third cumulant, 20000 × {p}, {storage}: card {took:.2f} s, CPU {slow:.2f} s, {away:.0e} "
            "apart"
        )


ROWS = (
    warm_up,
    sparse_on_card,
    sparse_from_host,
    wide,
    refits,
    sparse_as_on_cpu,
    in_blocks,
    packed,
    wide_as_on_cpu,
    groups_and_scale,
    wide_groups,
    tested,
    joint,
    third,
    paper,
)


def run(limit, folder=None):
    """All rows; what is missed goes to `MISSED`."""
    import torch

    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}", flush=True)
    started = time.perf_counter()
    for row in ROWS:
        if time.perf_counter() - started > limit:
            tell(f"{row.__name__} was left out: {limit} s are over")
            continue
        try:
            row(folder)
        except Exception:
            MISSED.append(row.__name__)
            tell(f"{row.__name__} failed")
            print(traceback.format_exc(limit=-8), flush=True)
        torch.cuda.empty_cache()
        tell(f"[{row.__name__}: {time.perf_counter() - started:.0f} s so far]")
    return MISSED
