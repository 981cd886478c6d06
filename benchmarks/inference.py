"""Do p-values hold their level, intervals cover, and stability tell true patterns from spurious ones?

``python benchmarks/inference.py [--only level power groups intervals fixed index t-values speed]
[--draws N] [--resamples N] [--jobs N] [--log FILE]``. Level: both datasets are drawn alike. Power: one
planted pattern. Intervals: loadings and ratios of a joint fit, p = 8 and n = 10⁴, against the truth.
Fixed: ratios along a filter that does not vary. Index: ranks asked for are three too many. Speed: 199
permutations of Kang beside single fits. Data are from CONTRICA_DATA. What ``--log FILE`` has of earlier
draws is not drawn again, so that a long run may be stopped and started anew. `rival_tests.py` has other
methods' tests beside ours.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import roc_auc_score

from contrica import ContrastiveICA
from contrica.datasets import load_digits_on_photos, load_kang, make_synthetic
from contrica.inference import significance, stability
from contrica.inference._stability import _ratio_intervals
from contrica.solvers import choose_dimension

SIZES = ((400, 300, 10), (1000, 1000, 30))
KINDS = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "t(3)": lambda rng, shape: rng.standard_t(3, shape),
}
P, N = 8, 10**4
# Below this |cosine| to the truth a draw's intervals are counted apart; below the other it is spurious.
NEAR, SPURIOUS = 0.95, 0.9
TOO_MANY = 3
KINDS_OF_PATTERNS = {2: "true patterns", 1: "second copies of one", 0: "spurious patterns"}


def first_p(X, Y):
    return choose_dimension(X, Y, rng=np.random.default_rng(0), n_permutations=199).p_values


def null_p(kind, n, m, p, seed):
    rows = KINDS[kind](np.random.default_rng([n, p, seed, 16]), (n + m, p))
    return first_p(rows[:n], rows[n:])[0]


def shares(found):
    few, some = (np.mean(found <= limit) for limit in (0.05, 0.2))
    return f"p <= .05 in {few:.3f}, p <= .2 in {some:.3f} of {len(found)}"


def level(arguments):
    for n, m, p in SIZES:
        for kind in KINDS:
            found = np.array(run(null_p, arguments, kind, n, m, p))
            print(f"level, {kind} rows, n = {n} and {m}, p = {p}: {shares(found)}", flush=True)
    data = load_kang(design="condition", n_genes=500)

    def halves(seed):
        rows = np.random.default_rng([seed, 16]).permutation(data.background)
        X, Y = rows[:2000], rows[2000:4000]
        model = quiet_fit(X, Y, n_components=1)
        return significance(model, X, background=Y, random_state=seed).p_values[0]

    found = np.array(run(halves, arguments))
    print(f"level, Kang controls, 2000 cells against 2000: {shares(found)}", flush=True)


def quiet_fit(X, Y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ContrastiveICA(**{"random_state": 0, **options}).fit(X, background=Y)


def planted_p(seed):
    rng = np.random.default_rng([seed, 17])
    A, b = rng.standard_normal((P, P)), rng.standard_normal(P)
    X = rng.laplace(size=(N, P)) @ A.T + rng.choice([-1.0, 1.0], (N, 1)) * b
    found = first_p(X, rng.laplace(size=(N, P)) @ A.T)
    return found[0], found[1] if len(found) > 1 else 1.0


def power(arguments):
    found = np.array(run(planted_p, arguments))
    print(f"power, one planted pattern, p = {P}, n = {N}, first p: {shares(found[:, 0])}")
    print(f"power, one planted pattern, p = {P}, n = {N}, second p: {shares(found[:, 1])}")
    data = load_digits_on_photos()
    model = quiet_fit(data.foreground, data.background, n_components=2)
    print("power, demo:", significance(model, data.foreground, background=data.background).p_values)


def groups(arguments):
    data = load_kang(design="donors", n_genes=500, preprocessing="usual")
    labels = {"groups": data.groups, "background_groups": data.background_groups}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(2, random_state=0)
        model.fit(data.foreground, background=data.background, **labels)
    print(significance(model, data.foreground, background=data.background, **labels))


def one_interval(n_resamples, seed):
    rng_seed = np.random.default_rng([seed, 18])
    whole = make_synthetic(P, n_samples=N + 5 * 10**5, random_state=rng_seed)
    X, Y = whole.foreground[:N], whole.background[:N]
    r, l = whole.A.shape[1], whole.B.shape[1]  # noqa: E741
    model = quiet_fit(X, Y, solver="joint", n_components=None, n_background=r, n_foreground=l)
    found = stability(model, X, background=Y, n_resamples=n_resamples, random_state=seed)
    others = whole.foreground[N:], whole.background[N:]
    inside, ratios, near = [], [], []
    for i, pattern in enumerate(model.components_):
        cosines = pattern @ whole.B
        true = whole.B[:, np.argmax(np.abs(cosines))] * np.sign(cosines[np.argmax(np.abs(cosines))])
        low, high = found.intervals[i].T
        inside.append(np.mean((low <= true) & (true <= high)))
        above, below = (rows @ model.filters_[i] for rows in others)
        ratio = np.mean((above - below.mean()) ** 2) / below.var()
        ratios.append(found.ratio_intervals[i, 0] <= ratio <= found.ratio_intervals[i, 1])
        near.append(np.abs(cosines).max() >= NEAR)
    return np.array([inside, ratios, near], dtype=float)


def intervals(arguments):
    found = np.concatenate(run(one_interval, arguments, arguments.resamples), axis=1)
    near = found[2] == 1
    for name, own in (("|cos| >= .95", near), ("below", ~near)):
        if own.any():
            loadings, ratios = found[0, own].mean(), found[1, own].mean()
            print(f"intervals of 90 %, patterns with {name} ({own.sum()}): loadings covered in "
                  f"{loadings:.3f}, k(f) in {ratios:.3f}", flush=True)  # fmt: skip


def one_fixed(n_resamples, seed):
    """Whether an interval of k(f) holds the truth, of a filter that is the same in all resamples."""
    rng, n, ratios = np.random.default_rng([seed, 20]), 2000, []
    above, below = 2 * rng.exponential(size=n), rng.exponential(size=n)
    for _ in range(n_resamples):
        x, y = (
            part[np.setdiff1d(np.arange(n), rng.integers(n, size=n))] for part in (above, below)
        )
        ratios.append(np.mean((x - y.mean()) ** 2) / y.var())
    found = np.array(ratios)[:, None]
    low, high = _ratio_intervals(found, found, (1 - 1 / n) ** n)[0]
    return low <= 5.0 <= high  # of the mean 2 and variance 4 against 1 and 1


def fixed(arguments):
    found = np.mean(run(one_fixed, arguments, arguments.resamples))
    print(f"intervals of 90 %, a filter that does not vary: k(f) covered in {found:.3f}")


def over_asked(n, seed):
    """A joint fit of the paper's design with three foreground patterns too many, and what each is.

    2 where a pattern is matched, one to one, with a true one of |cosine| at least .9; 1 for another of
    such a cosine to some true pattern, a second copy; 0 for a spurious one.
    """
    data = make_synthetic(P, n_samples=n, random_state=np.random.default_rng([seed, 19]))
    r, l = data.A.shape[1], data.B.shape[1] + TOO_MANY  # noqa: E741
    X, Y = data.foreground, data.background
    model = quiet_fit(X, Y, solver="joint", n_components=None, n_background=r, n_foreground=l)
    cosines = np.abs(model.components_ @ data.B)
    kinds = (cosines.max(axis=1) >= SPURIOUS).astype(int)
    rows, columns = linear_sum_assignment(-cosines)
    kinds[rows[cosines[rows, columns] >= SPURIOUS]] = 2
    return X, Y, model, kinds


def one_index(n, n_resamples, seed):
    X, Y, model, kinds = over_asked(n, seed)
    found = stability(model, X, background=Y, n_resamples=n_resamples, random_state=seed)
    return np.array([kinds, found.index, np.abs(model.pattern_t_values_)], dtype=float)


def index(arguments):
    for n in (10**5, 10**4):
        found = np.concatenate(run(one_index, arguments, n, arguments.resamples), axis=1)
        of_kind = {name: found[1, found[0] == kind] for kind, name in KINDS_OF_PATTERNS.items()}
        told = ", ".join(
            f"{own.size} {name} (median index {np.median(own):.2f})"
            for name, own in of_kind.items()
            if own.size
        )
        print(f"index, n = {n}, {arguments.draws} draws: {told}", flush=True)
        for name, kept in (("", found), (", without second copies", found[:, found[0] != 1])):
            true = kept[0] >= 1
            if not true.all() and true.any():
                print(f"  AUC{name}: {roc_auc_score(true, kept[1]):.3f} of stability, "
                      f"{roc_auc_score(true, kept[2]):.3f} of |t|", flush=True)  # fmt: skip


def one_tested(n, seed):
    *_, model, kinds = over_asked(n, seed)
    return np.array([kinds, np.abs(model.pattern_t_values_)], dtype=float)


def t_values(arguments):
    found = np.concatenate(run(one_tested, arguments, 10**5), axis=1)
    for kind, name in KINDS_OF_PATTERNS.items():
        own = found[1, found[0] == kind]
        if own.size:
            large = [np.mean(own >= limit) for limit in (3.0, 4.5)]
            print(f"t-values, n = 10^5, l over-asked by {TOO_MANY}, {own.size} {name}: "
                  f"|t| >= 3 in {large[0]:.3f}, >= 4.5 in {large[1]:.3f}")  # fmt: skip


def speed(arguments):
    data = load_kang(design="condition", n_genes=500)
    start = time.perf_counter()
    model = quiet_fit(data.foreground, data.background, n_components=2)
    fit = time.perf_counter() - start
    start = time.perf_counter()
    significance(
        model, data.foreground, background=data.background, n_permutations=199, random_state=0
    )
    took = time.perf_counter() - start
    cells = len(data.foreground) + len(data.background)
    print(
        f"Kang, {cells} cells, 500 genes: 199 permutations take {took:.2f} s, {took / fit:.1f} fits"
    )


STUDIES = {
    "level": level,
    "power": power,
    "groups": groups,
    "intervals": intervals,
    "fixed": fixed,
    "index": index,
    "t-values": t_values,
    "speed": speed,
}


def run(call, arguments, *options):
    """A call for every draw, the draw's number last; what the log has is taken from there."""
    name = [getattr(call, "__name__", "call"), *options]
    known = logged(arguments.log, name)
    missing = [seed for seed in range(arguments.draws) if seed not in known]
    calls = (delayed(call)(*options, seed) for seed in missing)
    results = Parallel(arguments.jobs, return_as="generator")(calls)
    for seed, found in zip(missing, results, strict=True):
        known[seed] = found
        if arguments.log:
            line = {"call": name, "draw": seed, "found": np.asarray(found).tolist()}
            with arguments.log.open("a") as file:
                file.write(json.dumps(line) + "\n")
    return [known[seed] for seed in range(arguments.draws)]


def logged(log, name):
    """Results of earlier draws, by number."""
    lines = log.read_text().splitlines() if log and log.exists() else []
    found = (line for line in map(json.loads, lines) if line["call"] == name)
    return {line["draw"]: np.array(line["found"]) for line in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tuple(STUDIES))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, help="file of draws that have been made")
    arguments = parser.parse_args()
    for name in arguments.only or STUDIES:
        STUDIES[name](arguments)


if __name__ == "__main__":
    main()
