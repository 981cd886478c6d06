"""Small data to explore: two clusters of rows along a direction that the background does not have."""

import numpy as np

from contrica.explorer import ExplorerData


def small_data(n=300, p=6, *, seed=0, n_patterns=2, **more):
    """Rows whose first patterns are known: groups of rows along the first variables."""
    rng = np.random.default_rng(seed)
    Y = rng.laplace(size=(n, p))
    X = rng.laplace(size=(n, p))
    kinds = rng.integers(2, size=(n, n_patterns))
    X[:, :n_patterns] += 6.0 * kinds
    metadata = {"kind": np.where(kinds[:, 0], "b", "a"), "age": rng.normal(size=n).round(3)}
    return ExplorerData.of(X, Y, metadata=metadata, **more)
