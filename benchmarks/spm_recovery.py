"""Does the subspace power method recover every component of exact tensors?

For p = 4..12, ranks p, 3p/2, 2p and p(p−1)/2 (none above it), weights of magnitude 0.5 to 2 that are
positive, negative or mixed: ``--draws`` random tensors each. A draw fails if a true vector is missing
(|cosine| ≤ 1 − 1e-6 to every found one), if two true vectors share a found one, or if two found ones
coincide. Prints a table and exits with 1 if any draw fails. About ten minutes with 100 draws.
"""

import argparse
import sys
import time

import numpy as np

from contrica.decompositions import spm
from contrica.metrics import match_patterns
from contrica.moments.operators import RankOneSum

SIGNS = ("positive", "negative", "mixed")


def draw(p, rank, signs, seed):
    rng = np.random.default_rng([p, rank, SIGNS.index(signs), seed])
    vectors = rng.standard_normal((p, rank))
    weights = rng.uniform(0.5, 2, rank)
    weights *= {"positive": 1.0, "negative": -1.0, "mixed": rng.choice([-1.0, 1.0], rank)}[signs]
    return RankOneSum(weights, vectors / np.linalg.norm(vectors, axis=0)), rng


def worst_of(p, rank, signs, seed):
    """Worst 1 − |cosine| of a draw, and whether two found vectors coincide."""
    tensor, rng = draw(p, rank, signs, seed)
    found = spm(tensor, rank, rng=rng)
    gram = np.abs(found.vectors.T @ found.vectors) - np.eye(rank)
    return 1 - match_patterns(found.vectors, tensor.vectors).cosines.min(), gram.max() > 1 - 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    n_failed = n_total = 0
    print("| p | rank | signs | draws | failed | duplicates | worst 1 − abs(cosine) | s per draw |")
    print("|---|---|---|---|---|---|---|---|")
    for p in range(4, 13):
        most = p * (p - 1) // 2
        for rank in sorted({p, min(3 * p // 2, most), min(2 * p, most), most}):
            for signs in SIGNS:
                start = time.perf_counter()
                gaps, twins = np.array([worst_of(p, rank, signs, s) for s in range(draws)]).T
                seconds = (time.perf_counter() - start) / draws
                failed = int(np.sum((gaps > 1e-6) | (twins > 0)))
                n_failed, n_total = n_failed + failed, n_total + draws
                print(
                    f"| {p} | {rank} | {signs} | {draws} | {failed} | {int(twins.sum())} "
                    f"| {gaps.max():.1e} | {seconds:.4f} |",
                    flush=True,
                )
    print(f"\n{n_failed} of {n_total} draws failed")
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
