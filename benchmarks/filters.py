"""Whether filters are better from a foreground covariance that is shrunk where rows are few.

``python benchmarks/filters.py [--draws N] [--only WORD]`` fits patterns b, makes filters of them with
(1 − α) Σₓ + α T, and correlates their scores of 4000 new rows with the true sources, which are matched.
T is the mean variance times the identity, or the diagonal of Σₓ. α is 0; that of
`contrica.solvers.filters` (by the variance of filters on held-out rows, diagonal T), used with every
solver here, though the library spares "subspace"; that of least variance on held-out rows, without the
standard error; or the best by the truth, which no rule can beat. Means over draws and sources.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import linear_sum_assignment

from contrica import ContrastiveICA
from contrica.datasets import make_synthetic
from contrica.solvers.filters import AMOUNTS, FOLDS, choose_shrinkage
from contrica.solvers.ratio import filters_of

GRID = (0.0, *AMOUNTS)
N_NEW = 4000
TARGETS = {
    "identity": lambda C: np.eye(len(C)) * np.trace(C) / len(C),
    "diagonal": lambda C: np.diag(np.diag(C)),
}
# Solver, variables, rows, dimensions; variables with noise of their own unless "square".
DESIGNS = (
    ("subspace", 20, 30, None), ("subspace", 20, 200, None), ("subspace", 20, 2000, None),
    ("subspace", 50, 75, None), ("subspace", 50, 75, "auto"), ("subspace", 200, 60, "auto"),
    ("joint", 12, 18, None), ("joint", 12, 60, None), ("joint", 12, 300, None), ("joint", 12, 3000, None),
    ("paper", 12, 18, None), ("paper", 12, 60, None), ("paper", 12, 300, None), ("paper", 12, 3000, None),
    ("square", 8, 12, None), ("square", 8, 50, None), ("square", 8, 300, None),
)  # fmt: skip


def factors(p, rng):
    """Three background sources and two of the foreground in p variables, each with noise of its own."""
    A, B = (rng.standard_normal((p, count)) for count in (3, 2))
    A, B = A / np.linalg.norm(A, axis=0), B / np.linalg.norm(B, axis=0)
    noise = 0.3 * np.exp(0.5 * rng.standard_normal(p))

    def background(n):
        return rng.laplace(size=(n, 3)) @ A.T + rng.standard_normal((n, p)) * noise

    def foreground(n):
        sources = 2 * (rng.exponential(size=(n, 2)) - 1)
        return background(n) + sources @ B.T, sources

    return foreground, background


def square(p, rng):
    """The paper's design, with p background sources and p − 1 of the foreground, and no noise."""
    n_most = 300
    data = make_synthetic(p, n_samples=n_most + N_NEW, random_state=rng)
    place = iter((0, n_most))

    def foreground(n):
        first = next(place)
        return data.foreground[first : first + n], data.salient_sources[first : first + n]

    return foreground, lambda n: data.background[:n]


def correlation(filters, rows, sources):
    """Mean |correlation| of scores with the sources, in the best order."""
    count = filters.shape[1]
    found = np.corrcoef((rows @ filters).T, sources.T)[:count, count:]
    found = np.nan_to_num(np.abs(found))
    first, second = linear_sum_assignment(-found)
    return found[first, second].sum() / sources.shape[1]


def shrunk(rows, alpha, target):
    covariance = np.cov(rows.T, bias=True)
    return (1 - alpha) * covariance + alpha * TARGETS[target](covariance)


def held_out(rows, patterns, target):
    """Position in the grid at which the variance on held-out rows is least."""
    fold = np.arange(len(rows)) % FOLDS
    losses = np.zeros(len(GRID))
    for k in range(FOLDS):
        train, test = rows[fold != k], rows[fold == k] - rows[fold != k].mean(axis=0)
        for i, alpha in enumerate(GRID):
            filters = filters_of(patterns, shrunk(train, alpha, target))
            losses[i] += np.log(np.mean((test @ filters) ** 2, axis=0)).mean()
    return int(losses.argmin())


def one(name, p, n, n_pcs, seed):
    rng = np.random.default_rng([p, n, seed, 97])
    foreground, background = (square if name == "square" else factors)(p, rng)
    rows, _ = foreground(n)
    ranks = (p, p - 1) if name == "square" else (3, 2)
    solver = "joint" if name == "square" else name
    options = {"n_foreground": ranks[1]}
    if solver != "subspace":
        options["n_background"] = ranks[0]
    model = ContrastiveICA(
        ranks[1], solver=solver, n_pcs=n_pcs, projection="filter", random_state=0, **options
    )
    model.fit(rows, background=background(n))
    new, sources = foreground(N_NEW)
    axes = np.eye(p) if model.basis_ is None else model.basis_
    inside, patterns = (rows - model.mean_) @ axes, axes.T @ model.components_.T
    result = {}
    for target in TARGETS:
        every = [
            correlation(axes @ filters_of(patterns, shrunk(inside, alpha, target)), new, sources)
            for alpha in GRID
        ]
        if target == "diagonal":
            result["α = 0"] = every[0]
            amount = choose_shrinkage(inside, patterns)
            result["chosen"], result["mean α"] = every[GRID.index(amount)], amount
        chosen = held_out(inside, patterns, target)
        result[f"{target}: held out"], result[f"{target}: best"] = every[chosen], max(every)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", help="designs of this name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [design for design in DESIGNS if options.only in (None, design[0])]
    for n_design, (name, p, n, n_pcs) in enumerate(chosen):
        found = [one(name, p, n, n_pcs, seed) for seed in range(options.draws)]
        if n_design == 0:
            print("| design | p | n | n_pcs |", " | ".join(found[0]), "|")
        means = [f"{np.mean([result[key] for result in found]):.3f}" for key in found[0]]
        print(f"| {name} | {p} | {n} | {n_pcs} |", " | ".join(means), "|", flush=True)


if __name__ == "__main__":
    main()
