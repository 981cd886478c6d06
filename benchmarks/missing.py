"""Missing values: are patterns found in spite of them, and do they make contrasts that are not there?

``python benchmarks/missing.py [--draws N] [--datasets N] [--jobs N] [--only recovery wide level ...]``.
*recovery*: the paper's design, p = 8, n = 10⁵, true ranks, 5 % missing completely at random. *wide*: 30
variables that five shared sources correlate, three salient ones, n = 10⁴, 10 % missing, so that 4 % of
the rows are complete. *level*: both datasets from one distribution, 15 % missing in one of them only; how
often is ℓ ≥ 1? *joint*: the same with solver "auto", which tries a joint fit. *mouse*: proteins of mice
with their own gaps; silhouette of the first score by genotype, which no fit knows. Data from
CONTRICA_DATA.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import silhouette_score

from contrica import ContrastiveICA
from contrica.datasets import load_mouse_protein, make_synthetic
from contrica.metrics import match_patterns

WAYS = ("no gaps", "impute", "pairwise", "rows deleted", "mean filled")
P_WIDE, N_WIDE, SHARED, SALIENT = 30, 10_000, 5, 3
P_LEVEL, N_LEVEL = 8, 2500
DISTRIBUTIONS = ("Gaussian", "exponential", "t(3)", "correlated Gaussian", "correlated exponential")


def with_gaps(X, share, rng):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def given(way, complete, gappy):
    """Datasets as a way of dealing with gaps gives them to `fit`, and its parameter."""
    if way == "no gaps":
        return complete, "error"
    if way == "rows deleted":
        return [part[~np.isnan(part).any(axis=1)] for part in gappy], "error"
    if way == "mean filled":
        means = [np.nanmean(part, axis=0) for part in gappy]
        return [
            np.where(np.isnan(part), mean, part) for part, mean in zip(gappy, means, strict=True)
        ], "error"
    return gappy, way


def fitted(way, complete, gappy, n_components="auto", **options):
    (X, Y), missing = given(way, complete, gappy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(n_components, missing=missing, random_state=0, **options)
        return model.fit(X, background=Y)


def cosines(model, B):
    return match_patterns(model.components_.T, B).cosines


def recovery(seed):
    data = make_synthetic(8, random_state=seed)
    complete, rng = (data.foreground, data.background), np.random.default_rng([seed, 16])
    gappy = [with_gaps(part, 0.05, rng) for part in complete]
    options = {"n_background": 8, "n_foreground": 7, "solver": "joint"}
    return [cosines(fitted(way, complete, gappy, 7, **options), data.B) for way in WAYS]


def wide(seed):
    rng = np.random.default_rng([seed, 30])
    A = 2 * rng.standard_normal((P_WIDE, SHARED))
    B = np.linalg.qr(rng.standard_normal((P_WIDE, SALIENT)))[0]
    X, Y = (
        rng.exponential(size=(N_WIDE, SHARED)) @ A.T + rng.standard_normal((N_WIDE, P_WIDE))
        for _ in range(2)
    )
    X += 1.5 * rng.exponential(size=(N_WIDE, SALIENT)) @ B.T
    gappy = [with_gaps(part, 0.1, rng) for part in (X, Y)]
    return [cosines(fitted(way, (X, Y), gappy, SALIENT), B) for way in WAYS]


def rows_of(name, rng, p, n):
    source = {"Gaussian": rng.standard_normal, "t(3)": lambda size: rng.standard_t(3, size)}
    draw = source.get(name.rpartition(" ")[2], lambda size: rng.exponential(size=size))
    mixing = rng.standard_normal((p, p)) if "correlated" in name else np.eye(p)
    return [draw((n, p)) @ mixing for _ in range(2)]


def false_contrast(name, seed, p, n, solver, ways):
    rng = np.random.default_rng([seed, 15])
    complete = rows_of(name, rng, p, n)
    gappy = [with_gaps(complete[0], 0.15, rng), complete[1]]
    return [fitted(way, complete, gappy, solver=solver).n_foreground_ > 0 for way in ways]


def levels(datasets, run, p, n, solver, names, ways):
    print(f"share of {datasets} null datasets with ℓ ≥ 1; p = {p}, n = {n}, solver {solver!r}")
    for name in names:
        found = run(
            delayed(false_contrast)(name, seed, p, n, solver, ways) for seed in range(datasets)
        )
        told = zip(ways, np.mean(found, axis=0), strict=True)
        print(f"  {name}: {', '.join(f'{way} {share:.3f}' for way, share in told)}", flush=True)


def mouse():
    print("mouse proteins, groups = animals: silhouette of the first score by genotype")
    for name, gaps, missing in (
        ("filled with 0", False, "error"),
        ("impute", True, "impute"),
        ("pairwise", True, "pairwise"),
    ):
        data = load_mouse_protein(gaps=gaps)
        groups = {"groups": data.groups, "background_groups": data.background_groups}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ContrastiveICA(2, missing=missing, random_state=0)
            model.fit(data.foreground, background=data.background, **groups)
        scores = model.transform(data.foreground)
        found = silhouette_score(scores[:, :1], data.labels)
        both = silhouette_score(scores, data.labels)
        n_missing = f"{model.n_missing_.sum()} values missing"
        print(
            f"  {name}: {found:.3f}, of two scores {both:.3f}; {n_missing}, ℓ = {model.n_foreground_}"
        )


def recovered(name, draw, draws, run):
    found = np.array(run(delayed(draw)(seed) for seed in range(draws)))
    print(f"{name}: |cosines| of {draws} draws")
    for way, values in zip(WAYS, found.transpose(1, 0, 2), strict=True):
        medians = np.median(values, axis=1)
        print(
            f"  {way}: median {np.median(values):.4f}, worst draw's median {medians.min():.4f}, "
            f"least {values.min():.4f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--only", nargs="+", default=["recovery", "wide", "level", "joint", "mouse"]
    )
    told = parser.parse_args()
    run = Parallel(n_jobs=told.jobs)
    if "recovery" in told.only:
        recovered("p = 8, n = 100000, 5 % missing", recovery, told.draws, run)
    if "wide" in told.only:
        recovered("p = 30, n = 10000, 10 % missing", wide, told.draws, run)
    if "level" in told.only:
        # the dimension of the subspace comes from filled rows, which "pairwise" shares with "impute"
        levels(told.datasets, run, P_LEVEL, N_LEVEL, "subspace", DISTRIBUTIONS, WAYS[:2])
    if "joint" in told.only:
        levels(told.datasets // 4, run, 5, 10_000, "auto", DISTRIBUTIONS[-1:], WAYS[:3])
    if "mouse" in told.only:
        mouse()


if __name__ == "__main__":
    main()
