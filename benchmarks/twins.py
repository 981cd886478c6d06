"""Does a joint fit of heavy-tailed rows return one pattern twice, with weights that cancel?

``python benchmarks/twins.py [--draws N] [--jobs N]``. Student's t(3), 14 variables, 8000 rows of each
dataset, five rows of the foreground thirty times as far away. Ranks are chosen from the data, and given:
14 background and 5 foreground patterns.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

from contrica import ContrastiveICA
from contrica.moments.fourth import cumulants
from contrica.solvers.joint import JointProblem, nearest_pair

RANKS = {"chosen": {}, "given": {"n_background": 14, "n_foreground": 5}}


def wild(seed, n=8000, p=14):
    rng = np.random.default_rng([p, seed, 111])
    X, Y = (rng.standard_t(3, size=(n, p)) @ rng.standard_normal((p, p)) for _ in range(2))
    X[:5] *= 30
    return X, Y


def largest_cosine(seed, ranks):
    """Of any two patterns in whitened coordinates, and whether they count as one."""
    X, Y = wild(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(None, solver="joint", random_state=0, **RANKS[ranks])
        model.fit(X, background=Y)
    problem = JointProblem.of(cumulants(X), cumulants(Y))
    inside = problem.whiten.T @ np.vstack([model.components_, model.background_components_]).T
    inside /= np.linalg.norm(inside, axis=0)
    cosines = np.triu(np.abs(inside.T @ inside), 1)
    return float(cosines.max()), nearest_pair(inside) is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    for ranks in RANKS:
        found = Parallel(arguments.jobs)(
            delayed(largest_cosine)(seed, ranks) for seed in range(arguments.draws)
        )
        cosines, twins = zip(*found, strict=True)
        print(
            f"ranks {ranks}: twins in {sum(twins)} of {arguments.draws} draws; largest |cosine| of two "
            f"patterns {max(cosines):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
