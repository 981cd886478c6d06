"""Section 4 and the appendices: the cICA model, its cumulants, its projections."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import silhouette_score

from contrica import ContrastiveICA
from contrica.datasets import make_four_clusters
from contrica.moments.fourth import cumulants
from contrica.moments.operators import RankOneSum
from contrica.solvers.ratio import contrast_ratio


def test_cumulants_of_the_model_are_sums_of_rank_one_terms():
    """Equation eqn:tensor_decomp; exponential sources of scale θ have κ₄ = 6 θ⁴."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((3, 2)), rng.standard_normal((3, 1))
    n = 2_000_000
    X = (rng.exponential(size=(n, 2)) * [1.0, 0.5]) @ A.T + rng.exponential(size=(n, 1)) @ B.T
    expected = RankOneSum(6 * np.array([1.0, 0.5**4, 1.0]), np.c_[A, B]).flatten()
    found = cumulants(X).fourth.flatten()
    assert (
        np.linalg.norm(found - expected) / np.linalg.norm(expected) < 0.05
    )  # error of order n^{-1/2}


def test_lemma_on_the_unique_coefficient():
    """Lemma 4.6 (lem:unique_C): rank(M − U C Vᵀ) ≥ n − d, with equality at C* = (Vᵀ M⁻¹ U)⁺ only."""
    rng = np.random.default_rng(0)
    n, k = 6, 2
    M, U, V = rng.standard_normal((n, n)), rng.standard_normal((n, k)), rng.standard_normal((n, k))
    best = np.linalg.pinv(V.T @ np.linalg.inv(M) @ U)

    def rank(C):
        return np.linalg.matrix_rank(M - U @ C @ V.T, tol=1e-9)

    assert rank(best) == n - k
    for _ in range(5):
        assert rank(best + 0.1 * rng.standard_normal((k, k))) > n - k


def test_scores_approximate_sources_to_first_order():
    """Proposition prop:visualization s_i: |s_i − b_iᵀx| ≤ (r C_z + (ℓ − 1) C_s) ε."""
    rng = np.random.default_rng(0)
    p, r, l, n = 8, 3, 3, 2000  # noqa: E741
    z, s = rng.uniform(-1, 1, (n, r)), rng.uniform(-1, 1, (n, l))
    base = np.linalg.qr(rng.standard_normal((p, p)))[0][:, : r + l]
    sizes = np.geomspace(1e-4, 1e-1, 6)
    worst = []
    for size in sizes:
        both = base + size * rng.standard_normal((p, r + l)) / 4
        both /= np.linalg.norm(both, axis=0)
        A, B = both[:, :r], both[:, r:]
        inner = np.abs(both.T @ both - np.eye(r + l)).max()
        x = z @ A.T + s @ B.T
        error = np.abs(s - x @ B).max()
        assert error <= (r * 1.0 + (l - 1) * 1.0) * inner + 1e-12
        worst.append(error)
    assert 0.9 < np.polyfit(np.log(sizes), np.log(worst), 1)[0] < 1.1


def test_when_shared_parts_of_two_scores_are_uncorrelated():
    """Proposition after prop:visualization s_i: for equal variances, iff ⟨bᵢᵀA, bⱼᵀA⟩ = 0."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 4))
    b = np.linalg.qr(rng.standard_normal((5, 1)))[0][:, 0]
    others = np.linalg.svd((A @ A.T @ b)[None, :])[2][1:]  # all c with ⟨bᵀA, cᵀA⟩ = 0
    variance = 2.0
    for c in others:
        assert_allclose(b @ (variance * A @ A.T) @ c, 0, atol=1e-12)
    assert abs(b @ (variance * A @ A.T) @ b) > 0.1


def test_the_ratio_tells_foreground_patterns_from_background_ones():
    """Appendix app:r_and_l: k(b) is large on foreground patterns, the power ratio on background ones."""
    rng = np.random.default_rng(0)
    A, B = np.eye(6)[:, :4], np.eye(6)[:, 4:]
    n = 20_000
    X = 2 * rng.laplace(size=(n, 4)) @ A.T + rng.laplace(size=(n, 2)) @ B.T
    Y = rng.laplace(size=(n, 4)) @ A.T + 0.01 * rng.standard_normal((n, 6))
    ratios = contrast_ratio(np.eye(6), cumulants(X), cumulants(Y))
    assert_allclose(ratios[:4], 4, rtol=0.1)
    assert (ratios[4:] > 1000).all()


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")  # singular background by design
def test_four_clusters_are_found_at_two_hundred_samples():
    """Section sec:SPM HTD best, one run per draw; the true B scores 0.865."""
    scores = []
    for seed in range(20):
        data = make_four_clusters(200, random_state=seed)
        model = ContrastiveICA(
            2,
            n_background=3,
            n_foreground=2,
            solver="paper",
            deflation="least_squares",
            random_state=0,
        )
        found = model.fit_transform(data.foreground, background=data.background)
        scores.append(silhouette_score(found, data.labels))
    assert np.median(scores) > 0.8
