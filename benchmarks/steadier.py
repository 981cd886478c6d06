"""Are patterns steadier if fits to resampled rows are combined, and what does that cost?

``python benchmarks/steadier.py [--resamplings N] [--fits N] [--jobs N]``. One fit of "auto" against the
mean of its fits to resampled rows, whose patterns are matched to the fit's and given its signs.
Agreement: |cosine| of the two leading patterns of resampled data with those of the data themselves, found
in the same way, as in `accuracy.py`. Where the truth is known (digits), the worse of the two
|correlations| with it. Real data are read from CONTRICA_DATA; without it only the embedded ones are used.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment

from contrica import ContrastiveICA
from contrica.datasets import (
    load_corrupted_mnist,
    load_digits_on_photos,
    load_kang,
    load_mouse_protein,
)
from contrica.metrics import pattern_cosines

DATA = {"demo": (load_digits_on_photos, {})}
REAL = {
    "MNIST discrete": (lambda: load_corrupted_mnist(design="discrete", random_state=0), {}),
    "MNIST continuous": (lambda: load_corrupted_mnist(design="continuous", random_state=0), {}),
    "Kang, 500 genes": (lambda: load_kang(design="condition", n_genes=500), {}),
    "Kang, 1000 genes": (lambda: load_kang(design="condition", n_genes=1000), {}),
    "mouse": (load_mouse_protein, {"n_pcs": 15}),
}
KEPT, SPARE = 2, 4


def resampled(pair, rng):
    return tuple(rows[rng.integers(len(rows), size=len(rows))] for rows in pair)


def patterns(pair, count, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(count, random_state=0, **options)
        return model.fit(pair[0], background=pair[1]).components_


def combined(pair, n_fits, options, rng):
    """The mean over fits to resampled rows of what is nearest to each pattern of the fit itself."""
    own = patterns(pair, KEPT, options)
    total = np.zeros_like(own)
    for _ in range(n_fits):
        found = patterns(resampled(pair, rng), SPARE, options)
        cosines = found @ own.T
        rows, columns = linear_sum_assignment(-np.abs(cosines))
        signs = np.sign(cosines[rows, columns])
        total[columns] += found[rows] * signs[:, None]
    return total / np.linalg.norm(total, axis=1, keepdims=True)


def both_ways(name, n_fits, seed):
    """Patterns of one fit and of combined ones; of the data themselves where the seed is 0."""
    load, options = (DATA | REAL)[name]
    data, rng = load(), np.random.default_rng([seed, 23])
    pair = data.foreground, data.background
    if seed:
        pair = resampled(pair, rng)
    return patterns(pair, KEPT, options), combined(pair, n_fits, options, rng)


def agreement(found, whole):
    values = []
    for one in found:
        cosines = pattern_cosines(one.T, whole.T)
        values.append(np.sort(cosines[linear_sum_assignment(-cosines)]))
    return np.median(values), np.percentile(np.array(values)[:, 0], 25)


def truth(found, true):
    """Median of the worse |correlation| of both patterns with the true ones, in the better order."""
    values = []
    for one in found:
        size = np.abs(np.corrcoef(np.vstack([one, true]))[:KEPT, KEPT:])
        values.append(max(np.diag(size).min(), np.diag(size[::-1]).min()))
    return np.median(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resamplings", type=int, default=20)
    parser.add_argument("--fits", type=int, default=10, help="fits that are combined")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    names = [*DATA, *(REAL if os.environ.get("CONTRICA_DATA") else ())]
    seeds = range(given.resamplings + 1)
    print(f"{given.resamplings} resamplings; {given.fits + 1} fits in place of one")
    for name in names:
        calls = (delayed(both_ways)(name, given.fits, seed) for seed in seeds)
        results = Parallel(given.jobs)(calls)
        true = getattr((DATA | REAL)[name][0](), "patterns", None)
        for kind, found in zip(("one fit", "combined"), zip(*results, strict=True), strict=True):
            median, low = agreement(found[1:], found[0])
            told = "" if true is None else f"; truth {truth(found[1:], true):.3f}"
            print(f"{name}, {kind}: agreement, median {median:.3f}, lower quartile of the worse "
                  f"pattern {low:.3f}{told}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
