"""How well every solver, and every rival method, recovers patterns: designs, demo and real data.

``python benchmarks/accuracy.py [--quick] [--only BLOCK ...] [--draws N] [--jobs N] [--out FOLDER]`` runs
the study and keeps each result in FOLDER (default ``accuracy/``), so that it can be stopped and gone on
with; ``--write docs/accuracy.md`` puts the tables into that page, between its markers, from what FOLDER
holds. Real data are read from CONTRICA_DATA; without it their blocks are left out.

Values are means of |cosine| over the true patterns (a pattern that was not returned counts as 0), except
where a block says otherwise. Generators are seeded with ``[p or n, seed, 97]``; constants of the solvers
were mostly chosen on other draws (docs/accuracy.md says which were not). "oracle": the joint fit started
from the true vectors.
"""

import argparse
import json
import os
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import silhouette_score

from contrica import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
)
from contrica.datasets import (
    load_corrupted_mnist,
    load_digits_on_photos,
    load_kang,
    load_mouse_protein,
    load_transplant_part,
    make_four_clusters,
    make_synthetic,
)
from contrica.metrics import pattern_cosines
from contrica.moments.fourth import cumulants
from contrica.moments.operators import RankOneSum
from contrica.solvers.joint import JointProblem, contrast_mask, descend
from contrica.solvers.ranks import choose_ranks
from contrica.solvers.selection import choose_by_significance
from contrica.solvers.weights import RowGroups
from interferon_genes import IN_BLOOD, INTERFERON

SOLVERS = ("paper", "joint", "subspace", "auto")
RIVALS = ("cPCA", "PCPCA", "gcPCA", "ICA", "PCA")
AUTO_FIRST = ("auto", *SOLVERS[:-1])
# By which r and l are wrong, and as a factor.
WRONG = {
    "r - 2": (-2, 0, 1), "r - 1, l - 1": (-1, -1, 1), "r + 1, l + 1": (1, 1, 1),
    "r - 2, l - 2": (-2, -2, 1), "r + 2, l + 2": (2, 2, 1), "2 r, 2 l": (0, 0, 2),
}  # fmt: skip
DESIGNS = {
    "orthonormal B": {},
    "general B": {"orthonormal": False},
    "r = 1.5 p": {"n_background": 1.5},
    "Laplace": {"sources": "laplace"},
    "uniform": {"sources": "uniform"},
    "Student t(5)": {"sources": "student_t"},
    "mixed signs": {"sources": "mixed"},
    "proportional": {"proportional": True},
}
KANG_GENES = (500, 1000, 2000)
PAPER_RANKS = {"discrete": (51, 141), "continuous": (65, 65)}


def rival(name, n_components):
    return {
        "cPCA": lambda: ContrastivePCA(n_components, random_state=0),
        "PCPCA": lambda: ProbabilisticContrastivePCA(n_components),
        "gcPCA": lambda: GeneralizedContrastivePCA(n_components),
        "ICA": lambda: PlainICA(n_components),
        "PCA": lambda: PlainPCA(n_components),
    }[name]()


def similarity(found, true):
    """Mean |cosine| over the true patterns, columns; 0 for each that none was found for."""
    cosines = pattern_cosines(found, true)
    rows, columns = linear_sum_assignment(-cosines)
    return float(cosines[rows, columns].sum() / true.shape[1])


def both(components, patterns):
    """|Correlation| of the top two with the two true ones, in the better order: the worse of both."""
    found = np.abs(np.corrcoef(np.vstack([components[:2], patterns]))[:2, 2:])
    return float(max(np.diag(found).min(), np.diag(found[::-1]).min()))


def fitted(result, names, build, X, Y):
    """Every model that ``build`` makes of a name, fitted; its time, and what "auto" took, are noted.

    Where "auto" came before and took the joint fit, that of "joint" is the same to the last bit.
    """
    for name in names:
        if name == "joint" and result.get("took") == "joint":
            result[name] = result["auto"]
            continue
        model = build(name)
        start = time.perf_counter()
        model.fit(X, background=Y)
        result[f"{name} seconds"] = time.perf_counter() - start
        if name == "auto":
            result["took"] = model.solver_
        yield name, model


def by_default(name, seed=0, **options):
    """Two components of a solver or a rival, everything else left to it."""
    if name in RIVALS:
        return rival(name, 2)
    return ContrastiveICA(2, solver=name, random_state=seed, **options)


def given_ranks(name, r, l):  # noqa: E741
    """The subspace has no background patterns."""
    return {"n_foreground": l} if name == "subspace" else {"n_background": r, "n_foreground": l}


def draw(design, p, n, seed):
    options = dict(DESIGNS[design])
    if "n_background" in options:
        options["n_background"] = int(options["n_background"] * p)
    return make_synthetic(
        p, n_samples=n, random_state=np.random.default_rng([p, seed, 97]), **options
    )


def oracle(data, design):
    """From the true vectors, and knowing which sources are symmetric."""
    rows = data.foreground, data.background
    problem = JointProblem.of(*map(cumulants, rows), rows=rows)
    r, l = data.A.shape[1], data.B.shape[1]  # noqa: E741
    truth = problem.whiten.T @ np.column_stack([data.A, data.B])
    skewed = np.concatenate([np.arange(r), np.arange(l)]) // 2 % 2 == 0
    if design != "mixed signs":
        skewed[:] = True
    mask = problem.terms.allowed(contrast_mask(r, l), skewed)
    fit = descend(problem.terms, truth, mask, 1000, 1e-6)
    return similarity(_unit(problem.dewhiten @ fit.vectors[:, r:]), data.B)


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=0)


# --- one task each: a dictionary of method -> value, and "seconds", "took", ... ---


def true_ranks(design, p, n, seed):
    data = draw(design, p, n, seed)
    X, Y, B = data.foreground, data.background, data.B
    r, l = data.A.shape[1], B.shape[1]  # noqa: E741
    result = {"oracle": oracle(data, design)}

    def build(name):
        options = given_ranks(name, r, l)
        return ContrastiveICA(l, solver=name, n_pcs=None, random_state=0, **options)

    for name, model in fitted(result, AUTO_FIRST, build, X, Y):
        result[name] = similarity(model.components_.T, B)
    return result


def automatic_ranks(design, p, n, seed):
    data = draw(design, p, n, seed)
    X, Y, B = data.foreground, data.background, data.B
    r, l = data.A.shape[1], B.shape[1]  # noqa: E741
    result = {}
    options = {"n_pcs": None, "random_state": 0}
    for name, model in fitted(
        result,
        AUTO_FIRST,
        lambda name: ContrastiveICA(l, solver=name, **options),
        X,
        Y,
    ):
        result[name] = similarity(model.components_.T, B)
    # the search by itself, which is not told l
    parts = [cumulants(rows) for rows in (X, Y)]
    problem = JointProblem.of(*parts, rows=(X, Y))
    groups = [RowGroups(rows, problem.whiten) for rows in (X, Y)]
    start = choose_ranks(*parts)
    found = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
    result["ranks"] = [found.n_background, found.n_foreground]
    result["true"] = [r, l]
    result["noise rule"] = noise_rule(data, design)
    return result


def noise_rule(data, design):
    """Ranks by eigenvalues above the norm of the noise itself, which nobody knows."""
    if design not in ("orthonormal B", "general B", "r = 1.5 p"):
        return None
    r, l = data.A.shape[1], data.B.shape[1]  # noqa: E741
    odd = np.arange(max(r, l)) % 2 == 0
    fore = 6 * np.concatenate([np.where(odd[:r], 1.0, 16.0), np.where(odd[:l], 16.0, 1.5**4)])
    counts = []
    for rows, weights, vectors in (
        (data.background, 6 * np.where(odd[:r], 16.0, 1.0), data.A),
        (data.foreground, fore, np.column_stack([data.A, data.B])),
    ):
        seen = cumulants(rows).fourth.flatten()
        noise = np.linalg.norm(seen - RankOneSum(weights, vectors).flatten(), 2)
        counts.append(int(np.sum(np.abs(np.linalg.eigvalsh(seen)) > noise)))
    return [counts[0], max(counts[1] - counts[0], 0)]


def wrong_ranks(change, p, n, seed):
    data = draw("orthonormal B", p, n, seed)
    dr, dl, factor = WRONG[change]
    r, l = factor * (p + dr), factor * (p - 1 + dl)  # noqa: E741
    result = {}
    options = {"n_background": r, "n_foreground": l, "n_pcs": None, "random_state": 0}
    kept = min(l, p - 1)
    for name, model in fitted(
        result,
        ("auto", "paper", "joint"),
        lambda name: ContrastiveICA(kept, solver=name, **options),
        data.foreground,
        data.background,
    ):
        result[name] = similarity(model.components_.T, data.B)
    return result


def no_signal(p, n, seed):
    """Both datasets hold the same sources: share of draws in which something is said to be found."""
    data = draw("proportional", p, n, seed)
    rng = np.random.default_rng([p, seed, 84])
    X = rng.exponential(size=(n, p)) @ data.A.T
    result = {}
    for name, model in fitted(
        result, SOLVERS, lambda name: by_default(name, n_pcs=None), X, data.background
    ):
        result[name] = float(model.n_foreground_ > 0)
    return result


def four_clusters(n, seed):
    data = make_four_clusters(n, random_state=np.random.default_rng([n, seed, 97]))
    result = {"oracle": float(silhouette_score(data.foreground @ data.B, data.labels))}
    return result | silhouettes(data)


def silhouettes(data):
    """Of two scores, by the labels, at the defaults."""
    result = {}
    for name, model in fitted(
        result, (*SOLVERS, *RIVALS), by_default, data.foreground, data.background
    ):
        result[name] = float(silhouette_score(model.transform(data.foreground), data.labels))
    return result


def demo(seed):
    return digits(load_digits_on_photos(random_state=seed), None)


def digit_pairs(design, pair):
    """Other digits on the demo's photographs: fans of many kinds. Rules were chosen on other draws."""
    data = load_digits_on_photos(design=design, digits=divmod(pair, 10), random_state=97)
    return digits(data, None, leave_out=("paper", "joint", *RIVALS))


def mnist(design, seed):
    # the slow ones on the first five only
    slow = ("paper", "joint") if seed >= 105 else ()
    data = load_corrupted_mnist(design=design, random_state=seed)
    return digits(data, PAPER_RANKS[design], leave_out=slow)


def digits(data, paper_ranks, leave_out=()):
    result = {}

    def build(name):
        if name == "paper" and paper_ranks:
            return by_default(name, n_pcs=30, **given_ranks(name, *paper_ranks))
        return by_default(name)

    names = [name for name in (*SOLVERS, *RIVALS) if name not in leave_out]
    for name, model in fitted(result, names, build, data.foreground, data.background):
        result[name] = both(model.components_, data.patterns)
    return result


def robust(design, p, n, seed):
    """The joint solver with true ranks, and the cumulants of rows winsorized or not."""
    data = draw(design, p, n, seed)
    r, l = data.A.shape[1], data.B.shape[1]  # noqa: E741
    result = {}
    for cumulant in ("plugin", "robust"):
        for name in ("joint", "subspace"):
            options = {"n_pcs": None, "random_state": 0, "cumulant": cumulant}
            model = ContrastiveICA(l, solver=name, **options, **given_ranks(name, r, l))
            model.fit(data.foreground, background=data.background)
            result[f"{name}, {cumulant}"] = similarity(model.components_.T, data.B)
    return result


def kang(n_genes, seed):
    """Interferon genes among the 20 that lead each of the first two patterns, in both orders.

    By effect, as `top_features` and `summary()` order them, and by loading; rivals have loadings only.
    Besides gene sets, those whose mean is larger in the stimulated cells of every donor.
    """
    data = load_kang(design="condition", n_genes=n_genes)
    names = np.asarray(data.feature_names, dtype=str)
    rising = names[_rises_in_every_donor(data)].tolist()
    result = {"rising": len(rising) / n_genes}
    methods = SOLVERS if seed > 0 else (*SOLVERS, *RIVALS)  # nothing in the rivals is random
    if n_genes != KANG_GENES[0]:
        methods = ("auto",)
    for name, model in fitted(
        result, methods, lambda name: by_default(name, seed), data.foreground, data.background
    ):
        for order in ("loading",) if name in RIVALS else ("loading", "effect"):
            rows = model.components_ if order == "loading" else model.effects_
            tops = names[np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :20]]
            result[f"{name} {order}"] = [
                [int(np.isin(top, sorted(genes)).sum()) for top in tops]
                for genes in (INTERFERON, IN_BLOOD, rising)
            ]
            result[f"{name} {order} genes"] = tops.tolist()
    return result


def _rises_in_every_donor(data):
    means = [
        {donor: rows[of == donor].mean(axis=0) for donor in set(of) - {"DBL"}}
        for rows, of in (
            (data.foreground, data.groups),
            (data.background, data.background_groups),
        )
    ]
    return np.all([means[0][donor] > means[1][donor] for donor in means[0]], axis=0)


def kang_again(n_genes, kind, seed):
    """All patterns of resampled cells, or of whole donors drawn with both conditions, as ranked."""
    data = load_kang(design="condition", n_genes=n_genes)
    X, Y = data.foreground, data.background
    rng = np.random.default_rng([seed, 81])
    if kind == "cells":
        X, Y = (rows[rng.integers(len(rows), size=len(rows))] for rows in (X, Y))
    if kind == "donors":
        drawn = rng.choice(np.unique(data.groups), np.unique(data.groups).size)
        X, Y = (
            np.concatenate([rows[of == donor] for donor in drawn])
            for rows, of in ((X, data.groups), (Y, data.background_groups))
        )
    model = ContrastiveICA(None, random_state=0).fit(X, background=Y)
    return {"patterns": model.components_.tolist(), "took": model.solver_}


def mouse(seed):
    data = load_mouse_protein()
    result = {}

    def build(name):
        options = given_ranks(name, 27, 26) if name == "paper" else {}
        return by_default(name, seed, n_pcs=15, **options)

    names = SOLVERS if seed > 0 else (*SOLVERS, *RIVALS)
    for name, model in fitted(result, names, build, data.foreground, data.background):
        scores = model.transform(data.foreground)
        result[name] = float(silhouette_score(scores, data.labels))
        if name in SOLVERS:
            filters = (data.foreground - model.mean_) @ model.filters_.T
            result[f"{name}, filters"] = float(silhouette_score(filters, data.labels))
    return result


def aml(seed):
    return silhouettes(load_transplant_part())


REAL = {
    "MNIST discrete": lambda: (load_corrupted_mnist(design="discrete", random_state=0), {}),
    "MNIST continuous": lambda: (load_corrupted_mnist(design="continuous", random_state=0), {}),
    "Kang": lambda: (load_kang(design="condition", n_genes=500), {}),
    "mouse": lambda: (load_mouse_protein(), {"n_pcs": 15}),
    "demo": lambda: (load_digits_on_photos(), {}),
}


def steadiness(dataset, kind, seed):
    """Patterns for another seed, or for rows drawn with replacement."""
    data, options = REAL[dataset]()
    X, Y = data.foreground, data.background
    if kind == "bootstrap":
        rng = np.random.default_rng([seed, 81])
        X, Y = (rows[rng.integers(len(rows), size=len(rows))] for rows in (X, Y))
        seed = 0
    model = ContrastiveICA(2, random_state=seed, **options).fit(X, background=Y)
    return {"patterns": model.components_.tolist(), "took": model.solver_}


def plan(quick, draws):
    """Every task of the study: block, arguments."""
    tasks = []
    few = min(draws, 4) if quick else draws
    less = max(few // 2, 1)  # of what is beside the point
    wide, one = ((6, 7), (6,)) if quick else ((8, 12), (8,))
    for design, n, ps in (
        ("orthonormal B", 100_000, (4, *wide)), ("orthonormal B", 10_000, wide),
        ("orthonormal B", 1_000, wide), ("general B", 100_000, one), ("general B", 10_000, wide),
        ("general B", 1_000, wide), ("r = 1.5 p", 100_000, one), ("r = 1.5 p", 10_000, one),
        ("mixed signs", 100_000, one), ("mixed signs", 10_000, one), ("Laplace", 100_000, one),
        ("Laplace", 10_000, one), ("uniform", 100_000, one), ("uniform", 10_000, one),
        ("Student t(5)", 10_000, one), ("proportional", 10_000, one),
    ):  # fmt: skip
        count = few if design in ("orthonormal B", "general B") else less
        tasks += [("true_ranks", design, p, n, s) for p in ps for s in range(count)]
    for design, n, ps in (
        ("orthonormal B", 100_000, (4, *wide)), ("orthonormal B", 10_000, one),
        ("orthonormal B", 1_000, one), ("general B", 100_000, one), ("general B", 10_000, one),
        ("mixed signs", 100_000, one), ("mixed signs", 10_000, one),
    ):  # fmt: skip
        tasks += [("automatic_ranks", design, p, n, s) for p in ps for s in range(less)]
    tasks += [("wrong_ranks", change, 8, 100_000, s) for change in WRONG for s in range(less)]
    tasks += [("no_signal", 8, n, s) for n in (1_000, 100_000) for s in range(less)]
    tasks += [("four_clusters", n, s) for n in (100, 200, 1_000) for s in range(few)]
    for design, n in (
        ("Student t(5)", 10_000),
        ("orthonormal B", 1_000),
        ("orthonormal B", 100_000),
    ):
        tasks += [("robust", design, 8, n, s) for s in range(less)]
    tasks += [("demo", 100 + s) for s in range(2 if quick else 20)]
    pairs = [(0, 1)] if quick else list(combinations(range(10), 2))
    for design in ("discrete", "continuous"):
        tasks += [("digit_pairs", design, 10 * first + second) for first, second in pairs]
    tasks += [("steadiness", "demo", kind, s) for kind in KINDS for s in range(2 if quick else 20)]
    if os.environ.get("CONTRICA_DATA"):
        for design in PAPER_RANKS:
            tasks += [("mnist", design, 100 + s) for s in range(1 if quick else 20)]
        for genes in (500,) if quick else KANG_GENES:
            tasks += [("kang", genes, s) for s in range(2 if quick or genes > 500 else 10)]
            tasks += [("kang_again", genes, "whole", 0)]
            tasks += [
                ("kang_again", genes, kind, s)
                for kind in ("cells", "donors")
                for s in range(2 if quick else 20)
            ]
        tasks += [("mouse", s) for s in range(2 if quick else 50)]
        for name in ("MNIST discrete", "MNIST continuous", "Kang", "mouse"):
            for kind in KINDS:
                tasks += [("steadiness", name, kind, s) for s in range(2 if quick else 20)]
        tasks += [] if quick else [("aml", 0)]
    return tasks


KINDS = ("seeds", "bootstrap")
TASKS = {
    task.__name__: task
    for task in (
        true_ranks, automatic_ranks, wrong_ranks, no_signal, four_clusters, robust, demo, digit_pairs,
        mnist, kang, kang_again, mouse, steadiness, aml,
    )
}  # fmt: skip


def run(task, folder):
    path = folder / (
        "_".join(str(part) for part in task).replace(" ", "").replace("/", "-") + ".json"
    )
    if path.exists():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = TASKS[task[0]](*task[1:])
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps({"task": task, "result": result}))
    scratch.replace(path)


# --- tables ---


def results(folder):
    """Every kept result by block and setting: a list over seeds."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        block, *setting, _ = kept["task"]
        found.setdefault(block, {}).setdefault(tuple(setting), []).append(kept["result"])
    return found


def column(rows, name):
    return np.array([row[name] for row in rows if name in row], dtype=float)


def number(values):
    return "–" if len(values) == 0 else f"{np.median(values):.3f}"


def spread(values):
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.4f} [{low:.4f}, {high:.4f}]; {values.min():.3f}"


def took(rows):
    kinds = [row["took"] for row in rows]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))


def table(heading, lines):
    rule = ["---", *["---:"] * (len(heading) - 1)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [heading, rule, *lines])


def sort_key(setting):
    return tuple((isinstance(part, str), part) for part in setting)


def tables(found):
    out = []
    order = [*DESIGNS]
    kept = found.get("true_ranks", {})
    if kept:
        heading = ["design", "n", "p", "paper", "joint", "subspace",
                   "auto: median [quartiles]; worst", "oracle", "auto within .005 of oracle",
                   "auto took", "auto, s", "draws"]  # fmt: skip
        lines = []
        for (design, p, n), rows in sorted(
            kept.items(), key=lambda item: (order.index(item[0][0]), -item[0][2], item[0][1])
        ):
            auto, best = column(rows, "auto"), column(rows, "oracle")
            lines.append([
                design, f"{n:.0e}".replace("e+0", "e"), p,
                *(number(column(rows, name)) for name in ("paper", "joint", "subspace")),
                spread(auto), f"{np.median(best):.4f}", f"{np.mean(auto > best - 0.005):.0%}",
                took(rows), f"{np.median(column(rows, 'auto seconds')):.2f}", len(rows),
            ])  # fmt: skip
        out += ["### True ranks given", table(heading, lines)]
    kept = found.get("automatic_ranks", {})
    if kept:
        heading = ["design", "n", "p", "paper", "joint", "subspace", "auto: median [quartiles]; worst",
                   "auto took", "(r, l) exact", "within one", "noise rule exact", "within one",
                   "auto, s", "draws"]  # fmt: skip
        lines = []
        for (design, p, n), rows in sorted(
            kept.items(), key=lambda item: (order.index(item[0][0]), -item[0][2], item[0][1])
        ):
            off = [np.abs(np.subtract(row["ranks"], row["true"])).max() for row in rows]
            known = [np.abs(np.subtract(row["noise rule"], row["true"])).max()
                     for row in rows if row["noise rule"]]  # fmt: skip
            hits = [f"{np.mean(np.array(off) <= most):.0%}" for most in (0, 1)]
            best = [f"{np.mean(np.array(known) <= m):.0%}" if known else "–" for m in (0, 1)]
            lines.append([
                design, f"{n:.0e}".replace("e+0", "e"), p,
                *(number(column(rows, name)) for name in ("paper", "joint", "subspace")),
                spread(column(rows, "auto")), took(rows), *hits, *best,
                f"{np.median(column(rows, 'auto seconds')):.2f}", len(rows),
            ])  # fmt: skip
        out += ["### Ranks chosen automatically", table(heading, lines)]
    plain = {
        "wrong_ranks": ("### Wrong ranks given (p = 8, n = 1e5)", "change", ("paper", "joint", "auto")),
        "no_signal": ("### No signal: share of draws in which something is found", "p, n", SOLVERS),
        "four_clusters": (
            "### Four clusters: silhouette of two scores, `pattern` projection (oracle: true B)",
            "n", (*SOLVERS, "oracle", *RIVALS),
        ),
        "robust": (
            "### Robust cumulants (p = 8, true ranks)", "design, p, n",
            ("joint, plugin", "joint, robust", "subspace, plugin", "subspace, robust"),
        ),
        "demo": (
            "### Digits on photographs (embedded): worse of the two |correlations| of the top two",
            "", (*SOLVERS, *RIVALS),
        ),
        "digit_pairs": (
            "### All pairs of digits on photographs: worse of the two |correlations| of the top two",
            "design", ("subspace", "auto"),
        ),
        "mnist": (
            "### Corrupted MNIST: worse of the two |correlations| of the top two", "design",
            (*SOLVERS, *RIVALS),
        ),
        "mouse": (
            "### Mouse: silhouette of two scores, over seeds", "",
            (*SOLVERS, *RIVALS, *(f"{name}, filters" for name in SOLVERS)),
        ),
        "aml": ("### AML (at the end): silhouette of two scores", "", (*SOLVERS, *RIVALS)),
    }  # fmt: skip
    for block, (title, first, columns) in plain.items():
        kept = found.get(block, {})
        if not kept:
            continue
        lines = []
        for setting, rows in sorted(kept.items(), key=lambda item: sort_key(item[0])):
            cells = []
            for name in columns:
                values = column(rows, name)
                cells.append(
                    "–" if len(values) == 0 else f"{np.mean(values):.2f}" if block == "no_signal"
                    else number(values) if len(values) == 1
                    else f"{np.median(values):.3f} ({values.min():.3f}–{values.max():.3f})"
                )  # fmt: skip
            text = ", ".join(f"{part:g}" if not isinstance(part, str) else part for part in setting)
            extra = took(rows) if "took" in rows[0] else "–"
            if block == "mnist":
                bar = 0.97 if setting == ("discrete",) else 0.93
                extra += (
                    f"; {int(np.sum(column(rows, 'auto') >= bar))} of {len(rows)} at {bar} or more"
                )
            lines.append([text, *cells, extra, len(rows)])
        head = [first, *columns, "auto took", "draws"]
        note = "" if block == "no_signal" else " Median (lowest–highest)."
        if block == "four_clusters":
            means = {s[0]: np.mean(column(r, "auto")) for s, r in sorted(kept.items())}
            note += (
                " Mean of auto: " + ", ".join(f"{m:.3f} at n = {n}" for n, m in means.items()) + "."
            )
        out += [title, note.strip(), table(head, lines)]
    out += kang_tables(found.get("kang", {})) + kang_again_tables(found.get("kang_again", {}))
    out += steady_tables(found.get("steadiness", {}))
    return "\n\n".join(part for part in out if part)


def kang_tables(kept):
    if not kept:
        return []
    lines = []
    for (n_genes,), rows in sorted(kept.items()):
        for name in (*SOLVERS, *RIVALS):
            for order in ("effect", "loading"):
                key = f"{name} {order}"
                own = [row for row in rows if key in row]
                if own:
                    same = all(row[f"{key} genes"] == own[0][f"{key} genes"] for row in own)
                    lines.append([n_genes, name, order, *_counts(own, key), len(own),
                                  "yes" if same else "no"])  # fmt: skip
    heading = ["variables", "method", "order", "Hallmark sets", "and blood modules",
               "more in every donor", "seeds", "same genes for all seeds"]  # fmt: skip
    shares = [f"{rows[0]['rising']:.0%} of {n}" for (n,), rows in sorted(kept.items())]
    first = next(row for row in kept[KANG_GENES[:1]] if "auto effect genes" in row)
    told = [
        f"auto, {KANG_GENES[0]} variables, by {order}, pattern {i + 1}: {', '.join(genes)}."
        for order in ("effect", "loading")
        for i, genes in enumerate(first[f"auto {order} genes"])
    ]
    return [
        "### Kang, stimulated against control: interferon genes among the top 20 of patterns 1, 2",
        table(heading, lines),
        "More in the stimulated cells of every donor than in its control cells are "
        + ", ".join(shares)
        + " genes.",
        *told,
    ]


def _counts(rows, key):
    """Of each gene set: counts in patterns 1 and 2, those that differ between seeds beside each other."""
    return ["; ".join(sorted({f"{a}, {b}" for a, b in (row[key][of] for row in rows)}))
            for of in (0, 1, 2)]  # fmt: skip


def kang_again_tables(kept):
    """Agreement of the first two patterns with those of resampled data: the first two, and any."""
    lines = []
    for n_genes in KANG_GENES:
        whole = kept.get((n_genes, "whole"))
        for kind in ("cells", "donors"):
            again = kept.get((n_genes, kind))
            if not whole or not again:
                continue
            own = np.array(whole[0]["patterns"][:2]).T
            line = [n_genes, kind]
            for count in (2, None):
                others = (np.array(row["patterns"][:count]).T for row in again)
                agree = np.array([_matched(pattern_cosines(own, other)) for other in others])
                line += [f"{m:.3f}" for m in (np.median(agree), *np.median(agree, axis=0))]
            lines.append([*line, len(again)])
    if not lines:
        return []
    heading = ["variables", "resampled", "with the first two: both", "the first", "the second",
               "with any: both", "the first", "the second", "resamplings"]  # fmt: skip
    return ["### Kang: median abs(cosine) of the first two patterns with those of resampled cells",
            table(heading, lines)]  # fmt: skip


def steady_tables(kept):
    if not kept:
        return []
    lines = []
    for dataset in REAL:
        seeds, again = (kept.get((dataset, kind)) for kind in KINDS)
        if not seeds or not again:
            continue
        whole = [np.array(row["patterns"]) for row in seeds]
        pairs = [
            np.abs(np.sum(a * b, axis=1)).min() for i, a in enumerate(whole) for b in whole[:i]
        ]
        drawn = [pattern_cosines(np.array(row["patterns"]).T, whole[0].T) for row in again]
        agree = np.array([np.sort(_matched(cosines)) for cosines in drawn])
        lines.append([dataset, took(seeds), f"{min(pairs):.4f}", f"{np.median(agree):.3f}",
                      f"{np.percentile(agree.min(axis=1), 25):.3f}", len(seeds), len(again)])  # fmt: skip
    heading = ["dataset", "auto took", "seeds: least abs(cosine) of any pair",
               "bootstrap: median abs(cosine) with the whole", "lower quartile of the worse pattern",
               "seeds", "bootstraps"]  # fmt: skip
    return ["### Seeds and resampled rows (auto, two patterns)", table(heading, lines)]


def _matched(cosines):
    rows, columns = linear_sum_assignment(-cosines)
    return cosines[rows, columns]


def below_the_bars(found):
    """What fell short of what is asked of the default; 0 where nothing did."""
    short = [
        f"orthonormal B, p = {p}: median of auto below .999"
        for (design, p, n), rows in found.get("true_ranks", {}).items()
        if (design, n) == ("orthonormal B", 100_000) and np.median(column(rows, "auto")) < 0.999
    ]
    short += [
        f"demo: a digit below .9 in {int(np.sum(column(rows, 'auto') < 0.9))} draw(s)"
        for rows in found.get("demo", {}).values()
        if column(rows, "auto").min() < 0.9
    ]
    return "; ".join(short) or 0


START, END = "<!-- tables of benchmarks/accuracy.py -->", "<!-- end of tables -->"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few draws of each, minutes")
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=None)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("accuracy"))
    parser.add_argument("--write", type=Path, default=None, help="page to put the tables into")
    arguments = parser.parse_args()
    if arguments.quick:  # other settings, which must not mix with those of the study
        arguments.out = arguments.out / "quick"
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.write is None:
        tasks = plan(arguments.quick, arguments.draws)
        wanted = [task for task in tasks if arguments.only is None or task[0] in arguments.only]
        # by draw, so that a study that is stopped has about as many draws of everything
        wanted.sort(key=lambda task: task[-1] % 100)
        work = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(
            delayed(run)(task, arguments.out) for task in wanted
        )
        start = time.perf_counter()
        for i, _ in enumerate(work, start=1):
            if i % 50 == 0 or i == len(wanted):
                spent = time.perf_counter() - start
                print(f"{i} of {len(wanted)}, {spent:.0f} s", file=sys.stderr, flush=True)
    text = tables(results(arguments.out))
    if arguments.write is None:
        print(text)
        return below_the_bars(results(arguments.out))
    page = arguments.write.read_text()
    before, rest = page.split(START)
    _, after = rest.split(END)
    arguments.write.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
