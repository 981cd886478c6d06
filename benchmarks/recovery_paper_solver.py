"""How well does Algorithm 2 recover B in the paper's synthetic design, by estimator of Step 2?

p = 4..12, n rows in each dataset, true ranks, one run per draw: mean |cosine| of matched patterns, its
median and quartiles over all draws, and the largest difference between two seeds on one draw.
About two minutes with the defaults on two cores.
"""

import argparse
import warnings

import numpy as np

from contrica.datasets import make_synthetic
from contrica.metrics import pattern_similarity
from contrica.moments.fourth import cumulants
from contrica.solvers.algorithm2 import cica
from contrica.solvers.deflation import DEFLATIONS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5, help="draws for each p")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument(
        "--general", action="store_true", help="B with random, not orthonormal, columns"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {name: [] for name in DEFLATIONS}
    for p in range(4, 13):
        for draw in range(arguments.draws):
            data = make_synthetic(
                p,
                n_samples=arguments.rows,
                orthonormal=not arguments.general,
                random_state=[p, draw],
            )
            fore, back = cumulants(data.foreground), cumulants(data.background)
            for name, values in found.items():
                fits = [
                    cica(fore, back, p, p - 1, rng=np.random.default_rng(seed), deflation=name)
                    for seed in range(2)
                ]
                values.append([pattern_similarity(fit.foreground.vectors, data.B) for fit in fits])
    print(f"n = {arguments.rows}, {'general' if arguments.general else 'orthonormal'} B, ", end="")
    print(f"{9 * arguments.draws} draws\n")
    print(
        "| Step 2 | mean | median | quartiles | largest gap between seeds |\n|---|---|---|---|---|"
    )
    for name, values in found.items():
        first, second = np.array(values).T
        low, middle, high = np.quantile(first, [0.25, 0.5, 0.75])
        gap = np.abs(first - second).max()
        print(f"| {name} | {first.mean():.3f} | {middle:.3f} | {low:.3f}–{high:.3f} | {gap:.4f} |")


if __name__ == "__main__":
    main()
