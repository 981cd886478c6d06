"""Order-3 tensors taken apart by the power method."""

from __future__ import annotations

import numpy as np

from contrica.moments.third import ThirdTensor

__all__ = ["third_power_method"]

# Random vectors that every term is sought from, and power steps of each.
N_STARTS, POWER_STEPS = 60, 60


def third_power_method(tensor: ThirdTensor, rank: int, *, rng: np.random.Generator) -> np.ndarray:
    """Vectors of ``T ≈ Σ_i w_i u_i^{⊗3}``, the strongest first, each of what those before it leave.

    ``u ← T(u, u, ·) / ‖T(u, u, ·)‖`` from many random vectors; the one with the largest ``|T(u, u, u)|``
    is subtracted. Exact for orthogonal terms, else a start for a joint fit.

    Parameters
    ----------
    tensor : ThirdTensor
    rank : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (p, rank)
        Unit columns.

    Examples
    --------
    >>> import numpy as np
    >>> T = ThirdTensor.of_terms(np.array([3.0, -2.0]), np.eye(2))
    >>> np.abs(third_power_method(T, 2, rng=np.random.default_rng(0))).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    p, vectors = tensor.n_features, np.empty((tensor.n_features, rank))
    for i in range(rank):
        points = rng.standard_normal((p, N_STARTS))
        for _ in range(POWER_STEPS):
            points = tensor.apply_vectors(points / np.linalg.norm(points, axis=0))
            points += np.finfo(float).tiny ** 0.25  # what a zero tensor leaves has a direction too
        points /= np.linalg.norm(points, axis=0)
        heights = tensor.coefficients(points)
        best = np.abs(heights).argmax()
        vectors[:, i] = points[:, best]
        tensor = tensor - ThirdTensor.of_terms(heights[[best]], points[:, [best]])
    return vectors
