"""Do p-values of groups hold their level, and what do they find? Simulated groups, animals and donors.

``python benchmarks/groups.py [--datasets N] [--jobs N] [--only simulated mouse kang ...]``. Simulated:
groups differ in mean and covariance, and have 20 to 500 rows. Under the null all groups are drawn alike;
otherwise a third of the foreground's groups have a pattern. Real: whole animals and donors are permuted.
Data from CONTRICA_DATA.
"""

import argparse
import warnings
from itertools import combinations

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import silhouette_score

from contrica import ContrastiveICA
from contrica.datasets import load_kang, load_mouse_protein

DESIGNS = {"4/4": (4, 4), "8/8": (8, 8), "18/9": (18, 9)}
P = 8
# Variance of the pattern's source, in the groups that have it, over that of a variable within groups.
# With 6 of 18 groups against 9, all 6 stay in the foreground in C(21, 12) / C(27, 18) = 6.3 % of the
# assignments, none of which differs from the observed one in kind: no effect is found in more than 80 %.
EFFECTS = (16.0, 64.0)
DONORS = ("101", "107", "1015", "1016")
# Standard deviations of the groups' means, and of the entries of their mixing matrices.
BETWEEN, MIXING = 0.5, 0.3


def simulated(n_fore, n_back, seed, effect=0.0):
    """Rows and groups of both datasets; a third of the foreground's groups have a pattern."""
    rng = np.random.default_rng([n_fore, n_back, seed, 15])
    pattern = rng.standard_normal(P)
    pattern /= np.linalg.norm(pattern)
    parts, labels = ([], []), ([], [])
    for group in range(n_fore + n_back):
        side, n = int(group >= n_fore), int(rng.integers(20, 501))
        mixing = np.eye(P) + MIXING * rng.standard_normal((P, P))
        rows = rng.laplace(size=(n, P)) / 2**0.5 @ mixing + BETWEEN * rng.standard_normal(P)
        source = rng.choice([-1.0, 1.0], n) * effect**0.5
        if side == 0 and group < -(-n_fore // 3):
            rows = rows + source[:, None] * pattern
        parts[side].append(rows)
        labels[side].extend([f"g{group}"] * n)
    return [np.vstack(part) for part in parts], [np.array(each) for each in labels], pattern


def fitted(rows, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(random_state=0, **options)
        return model.fit(rows[0], background=rows[1], groups=labels[0], background_groups=labels[1])


def one(n_fore, n_back, seed, effect):
    rows, labels, pattern = simulated(n_fore, n_back, seed, effect)
    model = fitted(rows, labels)
    found = abs(float(model.components_[0] @ pattern))
    return model.n_foreground_, model.scree_.p_values[0], found


def simulations(n_datasets, jobs):
    for name, (n_fore, n_back) in DESIGNS.items():
        for effect in (0.0, *EFFECTS):
            draws = Parallel(jobs)(
                delayed(one)(n_fore, n_back, seed, effect) for seed in range(n_datasets)
            )
            counts, p_values, cosines = map(np.array, zip(*draws, strict=True))
            what = f"effect {effect:g}" if effect else "null"
            print(
                f"{name}, {what}: l > 0 in {np.mean(counts > 0):.3f} of {n_datasets}; p <= .05 "
                f"{np.mean(p_values <= 0.05):.3f}, p <= .2 {np.mean(p_values <= 0.2):.3f}; "
                f"median |cos| of pattern 1 {np.median(cosines):.3f}",
                flush=True,
            )


def mouse(jobs, n_seeds=50, n_permuted=100):
    data = load_mouse_protein()
    X, Y, labels = data.foreground, data.background, (data.groups, data.background_groups)

    def by_seed(seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ContrastiveICA(random_state=seed)
            scores = model.fit_transform(
                X, background=Y, groups=labels[0], background_groups=labels[1]
            )
        return silhouette_score(scores[:, :1], data.labels), model.scree_.p_values[0]

    found = Parallel(jobs)(delayed(by_seed)(seed) for seed in range(n_seeds))
    silhouettes, p_values = zip(*found, strict=True)
    print(f"mouse: silhouette of the first score {min(silhouettes):.3f} to {max(silhouettes):.3f} over "
          f"{n_seeds} seeds; p = {p_values[0]:.3f}")  # fmt: skip

    def permuted(seed):
        whole, group = np.vstack([X, Y]), np.concatenate(labels)
        names = np.random.default_rng([seed, 15]).permutation(np.unique(group))
        fore = np.isin(group, names[: len(np.unique(labels[0]))])
        return fitted([whole[fore], whole[~fore]], [group[fore], group[~fore]]).n_foreground_

    counts = Parallel(jobs)(delayed(permuted)(seed) for seed in range(n_permuted))
    print(f"mouse, whole animals permuted: l = 0 in {counts.count(0)} of {n_permuted}", flush=True)


def kang(jobs):
    for n_genes in (500, 2000):
        data = load_kang(design="donors", n_genes=n_genes, preprocessing="usual")
        model = fitted([data.foreground, data.background], [data.groups, data.background_groups])
        some = np.random.default_rng(0).choice(len(data.labels), 4000, replace=False)
        score = model.transform(data.foreground)[some, :1]
        print(f"Kang donors, {n_genes} genes: silhouette of the first score "
              f"{silhouette_score(score, data.labels[some]):.3f}, l = {model.n_foreground_}, "
              f"p = {model.scree_.p_values[0]:.3f}")  # fmt: skip
        data = load_kang(design="condition", n_genes=n_genes)
        model = fitted([data.foreground, data.background], [data.groups, data.background_groups])
        print(f"Kang stim against ctrl, donors paired, {n_genes} genes: l = {model.n_foreground_}, "
              f"p = {model.scree_.p_values[0]:.4f}", flush=True)  # fmt: skip
    data = load_kang(design="condition", n_genes=500)
    rows, donors = data.background, data.background_groups
    names = np.unique(donors)

    def half(chosen):
        fore = np.isin(donors, chosen)
        return fitted([rows[fore], rows[~fore]], [donors[fore], donors[~fore]]).n_foreground_

    counts = Parallel(jobs)(delayed(half)(chosen) for chosen in combinations(names, 4))
    print(f"Kang controls, 4 donors against 4: l = 0 in {counts.count(0)} of {len(counts)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=("simulated", "mouse", "kang"))
    arguments = parser.parse_args()
    chosen = arguments.only or ("simulated", "mouse", "kang")
    if "simulated" in chosen:
        simulations(arguments.datasets, arguments.jobs)
    if "mouse" in chosen:
        mouse(arguments.jobs)
    if "kang" in chosen:
        kang(arguments.jobs)


if __name__ == "__main__":
    main()
