"""What other tests say of simulations, beside ours: is anything new in the foreground, and how much?

``python benchmarks/rival_tests.py [--draws N] [--jobs N] [--log FILE]`` prints a line for each. The
rivals are written anew from what is said of them:

- the contrastive dimension estimator (Hawke, Ma and Li, "Contrastive dimension reduction: when and how?",
  NeurIPS 2024). d₁ and d₂ are intrinsic dimensions (method of moments), V₁ and V₂ as many principal axes
  of foreground and background. The dimension is the number of singular values of V₁ᵀV₂ below 1 − ε,
  ε = .1, plus max(d₁ − d₂, 0). The test's statistic is the smallest of them. Under its null the
  foreground is resampled from itself and the background from both datasets together; p is the share of
  resamples with a smaller statistic.
- the shuffle of generalized contrastive PCA (de Oliveira et al., PLOS Computational Biology 2025).
  Variables have mean 0 and one norm in each dataset, and the largest value of (A − B)/(A + B) is compared
  with that of shuffled data. Its documentation does not say what is shuffled, so that two readings are
  here: every variable by itself in each dataset, and rows between the datasets.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from sklearn.neighbors import NearestNeighbors

from contrica.solvers import choose_dimension
from inference import run

N, M, P = 400, 300, 10
N_SHARED, NOISE, STRONGER = 3, 0.3, 1.5
N_PERMUTED, N_NEIGHBOURS, EPSILON, LEVEL = 199, 100, 0.1, 0.05


# --- designs: a foreground and a background, and how many directions are new ---


def mixed(rng, new=0.0, strength=1.0):
    """As many exponential sources as variables; the first may be stronger, one may be added."""
    A, b = rng.standard_normal((P, P)), rng.standard_normal(P)
    X, Y = rng.exponential(size=(N, P)), rng.exponential(size=(M, P))
    X[:, 0] *= strength
    return X @ A.T + new * rng.choice([-1.0, 1.0], (N, 1)) * b, Y @ A.T


def few(rng, new=0.0):
    """Three shared directions and noise; one more may be added, at right angles."""
    axes = np.linalg.qr(rng.standard_normal((P, N_SHARED + 1)))[0]
    X, Y = (rng.laplace(size=(n, N_SHARED)) @ axes[:, :-1].T for n in (N, M))
    X += new * rng.laplace(size=(N, 1)) * axes[:, -1]
    return X + NOISE * rng.standard_normal((N, P)), Y + NOISE * rng.standard_normal((M, P))


DESIGNS = {
    "nothing new, 10 sources": (mixed, {}, 0),
    "nothing new, 3 sources and noise": (few, {}, 0),
    "one source 1.5 times as strong": (mixed, {"strength": STRONGER}, 0),
    "one new source beside 10": (mixed, {"new": 2.0}, 1),
    "one new source beside 3, and noise": (few, {"new": 1.0}, 1),
}


# --- tests ---


def ours(X, Y, rng):
    found = choose_dimension(X, Y, rng=rng, n_permutations=N_PERMUTED)
    return found.p_values[0], found.chosen


def intrinsic_dimension(rows):
    """Mean over rows of μ/(w − μ), w the distance to the last neighbour and μ the mean distance."""
    neighbours = NearestNeighbors(n_neighbors=N_NEIGHBOURS).fit(rows)
    distances = neighbours.kneighbors()[0]
    mean, last = distances.mean(axis=1), distances[:, -1]
    return int(np.clip(round(float(np.mean(mean / (last - mean)))), 1, rows.shape[1]))


def principal_axes(rows, count):
    return np.linalg.eigh(np.cov(rows, rowvar=False))[1][:, ::-1][:, :count]


def cosines(X, Y, dimensions):
    one, other = (principal_axes(*each) for each in zip((X, Y), dimensions, strict=True))
    return np.linalg.svd(one.T @ other, compute_uv=False)


def dimension_estimator(X, Y, rng):
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    dimensions = intrinsic_dimension(X), intrinsic_dimension(Y)
    observed, both = cosines(X, Y, dimensions), np.vstack([X, Y])
    resampled = [
        cosines(
            X[rng.integers(len(X), size=len(X))],
            both[rng.integers(len(both), size=len(Y))],
            dimensions,
        ).min()
        for _ in range(N_PERMUTED)
    ]
    count = np.sum(observed < 1 - EPSILON) + max(dimensions[0] - dimensions[1], 0)
    return np.mean(np.array(resampled) < observed.min()), count


def normed(rows):
    rows = rows - rows.mean(axis=0)
    return rows / np.linalg.norm(rows, axis=0)


def largest_value(X, Y):
    A, B = (rows.T @ rows for rows in (normed(X), normed(Y)))
    return eigh(A - B, A + B, eigvals_only=True, subset_by_index=[P - 1, P - 1])[0]


def shuffled_variables(X, Y, rng):
    return _shuffled(X, Y, lambda: (rng.permuted(X, axis=0), rng.permuted(Y, axis=0)))


def shuffled_rows(X, Y, rng):
    both = np.vstack([X, Y])
    return _shuffled(X, Y, lambda: np.split(rng.permutation(both), [len(X)]))


def _shuffled(X, Y, shuffle):
    null = np.array([largest_value(*shuffle()) for _ in range(N_PERMUTED)])
    return (1 + np.sum(null >= largest_value(X, Y))) / (1 + N_PERMUTED), np.nan


TESTS = {
    "ours": ours,
    "dimension estimator": dimension_estimator,
    "gcPCA, variables shuffled": shuffled_variables,
    "gcPCA, rows shuffled": shuffled_rows,
}


def all_tests(design, seed):
    """Of one draw, p and the dimension by every test."""
    make, options, _ = DESIGNS[design]
    X, Y = make(np.random.default_rng([seed, list(DESIGNS).index(design), 20]), **options)
    return np.array(
        [test(X, Y, np.random.default_rng([seed, 21])) for test in TESTS.values()], dtype=float
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, help="file of draws that have been made")
    arguments = parser.parse_args()
    print(f"of {arguments.draws} draws, n = {N} and {M}, p = {P}: p <= {LEVEL}; mean dimension")
    for design, (_, _, new) in DESIGNS.items():
        found = np.array(run(all_tests, arguments, design))
        told = []
        for i, name in enumerate(TESTS):
            dimension = found[:, i, 1].mean()
            size = "" if np.isnan(dimension) else f"; {dimension:.2f}"
            told.append(f"{name} {np.mean(found[:, i, 0] <= LEVEL):.3f}{size}")
        print(f"{design} ({new} new): {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
