"""Would second cumulants help a joint fit, and what do they do where there is noise?

``python benchmarks/second_cumulants.py [--draws N] [--jobs N]``. The joint fit of third and fourth
cumulants against the same with the two covariances as further terms, each divided by its sampling noise
as the others are. Both start from the truth, so that no search is in the way. Noise: Gaussian, of the
stated share of a variable's variance, independent between variables and alike in both datasets; the model
has none. Medians over draws of the mean |cosine| to B, p = 8.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

from accuracy import draw
from contrica.metrics import pattern_similarity
from contrica.moments import cumulants
from contrica.solvers.joint import JointProblem, contrast_mask, descend
from contrica.solvers.joint.terms import Term, Terms
from contrica.solvers.joint.whitened import MIN_SHARE

P = 8


class Covariance:
    """What a joint fit asks of a term, of an order-2 tensor."""

    order = 2

    def __init__(self, entries):
        self.entries, self.n_features = entries, len(entries)

    def apply_vectors(self, vectors):
        """``κ(u, ·)`` of every column u."""
        return self.entries @ vectors

    def slices(self, vectors):
        """``κ`` once for every column."""
        return np.repeat(self.entries[None], vectors.shape[1], axis=0)

    def squared_norm(self):
        """Sum of squared entries."""
        return float(np.sum(self.entries**2))


def noise_of(rows, tensor):
    """``E‖noise‖²`` of a covariance of these rows."""
    energy = np.einsum("ij,ij->i", rows, rows)
    return (np.mean(energy**2) - tensor.squared_norm()) / len(rows)


def with_second(problem, rows):
    """The terms of a problem and a covariance of each dataset, over noise by the same rule."""
    terms, count = problem.terms, len(rows)
    whitened = [(part - part.mean(axis=0)) @ problem.whiten for part in rows]
    found = list(terms)
    # what the problem's denominators are times noise over squared share, of the first term
    share = max(1 - problem.noise[0] / terms.squared_norms[0], MIN_SHARE)
    unit = terms.denominators[0] * share**2 / problem.noise[0]
    for d, part in enumerate(whitened):
        tensor = Covariance(part.T @ part / len(part))
        noise = noise_of(part, tensor)
        share = max(1 - noise / tensor.squared_norm(), MIN_SHARE)
        found.append(Term(tensor, noise / share**2 * unit, d % count))
    return Terms(found)


def both(design, n, share, seed):
    """Mean |cosine| to B without and with second cumulants."""
    data = draw(design, P, n, seed + 900)
    rng = np.random.default_rng([seed, 24])
    scale = np.sqrt(share / (1 - share)) * data.background.std(axis=0)
    rows = [
        part + scale * rng.standard_normal(part.shape)
        for part in (data.foreground, data.background)
    ]
    problem = JointProblem.of(*map(cumulants, rows), rows=rows)
    truth = problem.whiten.T @ np.column_stack([data.A, data.B])
    r, mask = data.A.shape[1], contrast_mask(data.A.shape[1], data.B.shape[1])
    found = []
    for terms in (problem.terms, with_second(problem, rows)):
        vectors = problem.dewhiten @ descend(terms, truth, mask, 1000, 1e-6).vectors[:, r:]
        found.append(pattern_similarity(vectors / np.linalg.norm(vectors, axis=0), data.B))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print("design, n, share of noise: κ₃ and κ₄; κ₂, κ₃ and κ₄")
    for design in ("orthonormal B", "general B"):
        for n in (10**3, 10**4):
            for share in (0.0, 0.05, 0.2):
                calls = (delayed(both)(design, n, share, seed) for seed in range(given.draws))
                without, second = np.median(Parallel(given.jobs)(calls), axis=0)
                print(f"{design}, {n}, {share}: {without:.4f}; {second:.4f}", flush=True)


if __name__ == "__main__":
    main()
