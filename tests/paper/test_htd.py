"""Section 3 of the paper: hierarchical tensor decomposition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica.decompositions import htd, htd_error_bound
from contrica.errors import PatternWarning
from contrica.metrics import match_patterns
from contrica.moments.operators import PackedTensor, RankOneSum
from contrica.moments.symmetric import n_packed
from tests.said import warns


def test_example_with_two_variables():
    """Example 3.1: printed to five digits, of vectors themselves given to four."""
    T = RankOneSum(np.array([2.0, 1.0]), np.array([[1.0, 0.0998], [0.0, 0.995]]))
    found = htd(T, 2)
    assert_allclose(found.weights, [1.99999, 0.99937], atol=2e-5)
    assert_allclose(found.vectors[:, 0], [0.99999, 0.00099], atol=1e-4)
    assert_allclose(found.vectors[:, 1], [0.09787, 0.99519], atol=1e-4)


@pytest.mark.parametrize("p", [2, 5, 9])
def test_exact_for_orthonormal_vectors_with_distinct_weights(p):
    """Proposition 3.3 (prop:orthogonal_case)."""
    rng = np.random.default_rng(p)
    vectors = np.linalg.qr(rng.standard_normal((p, p)))[0]
    weights = np.linspace(3, 1, p) * rng.choice([-1, 1], p)
    found = htd(RankOneSum(weights, vectors), p)
    assert_allclose(found.weights, weights, rtol=1e-12)
    assert_allclose(match_patterns(found.vectors, vectors).cosines, 1, atol=1e-12)
    assert htd_error_bound(RankOneSum(weights, vectors), p) < 1e-6


def test_the_papers_own_design_ties_in_two_groups():
    """Exponential sources of scale 2 and 1.5 in turn: κ₄ = 6 θ⁴ takes two values, not distinct ones."""
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 5)))[0]
    weights = 6 * np.array([2, 1.5, 2, 1.5, 2]) ** 4
    with warns(PatternWarning, "tied") as said:
        htd(RankOneSum(weights, vectors), 5)
    assert ": 1, 2, 3; 4, 5. " in str(said[0].message)


def errors(epsilon, delta, seed, p=6, l=4):  # noqa: E741 - the paper's ℓ
    """Worst error of vectors and weights for vectors within ε of orthogonal, tensor within δ."""
    rng = np.random.default_rng(seed)
    orthonormal = np.linalg.qr(rng.standard_normal((p, p)))[0][:, :l]
    tilt = rng.standard_normal((l, l))
    # inner products between columns are ε · tilt + O(ε²)
    vectors = orthonormal + epsilon * orthonormal @ (tilt - np.diag(np.diag(tilt))) / 4
    vectors /= np.linalg.norm(vectors, axis=0)
    weights = np.array([4.0, 3.0, 2.0, 1.0])
    noise = rng.standard_normal((n_packed(p), n_packed(p)))
    noise = noise + noise.T
    noise *= delta / np.linalg.norm(noise)
    T = PackedTensor(RankOneSum(weights, vectors).flatten() + noise, p)
    found = htd(T, l, tie_gap=0)
    gaps = [
        min(np.linalg.norm(b - c), np.linalg.norm(b + c))
        for b, c in zip(vectors.T, found.vectors.T, strict=True)
    ]
    return max(gaps), np.abs(found.weights - weights).max()


def slope(sizes, values):
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def test_error_is_second_order_in_non_orthogonality():
    """Theorem 3.4 (thm:nearly_orthogonal): O(ε²) for distinct weights, seen as a log-log slope."""
    sizes = np.geomspace(1e-3, 1e-1, 7)
    for part in (0, 1):
        values = [np.median([errors(e, 0.0, s)[part] for s in range(5)]) for e in sizes]
        assert slope(sizes, values) > 1.9  # "at least 2" up to the higher orders of a finite ε


def test_error_is_first_order_in_the_noise():
    """Theorem 3.4: O(δ)."""
    sizes = np.geomspace(1e-6, 1e-3, 7)
    for part in (0, 1):
        values = [np.median([errors(0.0, d, s)[part] for s in range(5)]) for d in sizes]
        assert 0.9 < slope(sizes, values) < 1.1


def test_explicit_constants_of_the_theorem_hold():
    """Appendix, Theorem 2.4: |b − c| ≤ 2^{3/2} L ε² + 8 δ/ν, with generous constants K, L, ν."""
    weights, l = np.array([4.0, 3.0, 2.0, 1.0]), 4  # noqa: E741
    K = np.sqrt(8) * np.sum(weights * np.arange(l))
    gap = 1.0
    L = 2**1.5 * K / gap + 2 * l - 2
    for epsilon, delta in ((1e-2, 0.0), (0.0, 1e-3), (3e-3, 1e-4)):
        for seed in range(10):
            # |⟨b_i, b_j⟩| ≤ ε holds for tilts up to a factor; 3 bounds the draws used here
            vector_gap, weight_gap = errors(epsilon, delta, seed)
            size = 3 * epsilon
            assert vector_gap <= 2**1.5 * L * size**2 + 8 * delta / gap
            assert weight_gap <= (8 * L + K) * size**2 + (4 * 2**2.5 / gap + 1) * delta


def test_htd_takes_ranks_beyond_the_number_of_variables():
    """Unlike Jennrich's algorithm, up to p(p+1)/2 terms (the paper says p², counting the flattening)."""
    rng = np.random.default_rng(0)
    T = RankOneSum(rng.uniform(1, 2, 9), rng.standard_normal((4, 9)))
    assert htd(T, 9, tie_gap=0).weights.size == 9
