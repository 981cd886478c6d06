import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, ProportionalContrastiveICA
from contrica.datasets import make_four_clusters, make_synthetic
from contrica.errors import DataError, IdentifiabilityWarning, ParameterError, PatternWarning
from contrica.experiments._pairs import contrast_by
from contrica.metrics import pattern_similarity
from contrica.moments.estimates import Cumulants
from contrica.moments.fourth import cumulants
from contrica.moments.operators import PackedTensor, RankOneSum, as_operator
from contrica.moments.symmetric import svec_outer
from contrica.solvers.algorithm2 import cica
from contrica.solvers.algorithm3 import estimate_scale, proportional_cica, scale_sweep
from contrica.solvers.deflation import DEFLATIONS, shared_weights
from contrica.solvers.proportionality import proportionality_test
from contrica.solvers.ratio import contrast_ratio
from tests import naive
from tests.said import raises, warns

EXACT = ["thin", "sequential", "sequential_thin", "closed_form"]


def population(p, r, l, seed, scale=None):  # noqa: E741 - the paper's ℓ
    """Cumulants of the cICA model itself, no samples involved."""
    rng = np.random.default_rng([p, r, l, seed])
    vectors = rng.standard_normal((p, r + l))
    vectors /= np.linalg.norm(vectors, axis=0)

    def weights(k):
        return rng.uniform(0.5, 2, k) * rng.choice([-1, 1], k)

    lam, shared, salient = weights(r), weights(r), weights(l)
    if scale is not None:
        shared = scale**4 * lam
    A, B = vectors[:, :r], vectors[:, r:]
    back = Cumulants(np.zeros(p), A @ A.T, RankOneSum(lam, A), 10**6)
    fore = Cumulants(
        np.zeros(p), vectors @ vectors.T, RankOneSum(np.r_[shared, salient], vectors), 10**6
    )
    return fore, back, A, B, lam, shared, salient


def rank_pairs(p):
    most, packed = p * (p - 1) // 2, p * (p + 1) // 2
    return [(p, p - 1), (p, packed - 1 - p), (most, packed - 1 - most)]


@pytest.mark.parametrize("deflation", EXACT)
@pytest.mark.parametrize("p", [5, 6, 8])
def test_shared_weights_are_exact_on_population_tensors(p, deflation):
    for r, l in rank_pairs(p):  # noqa: E741
        fore, _, A, _, _, shared, _ = population(p, r, l, 0)
        found = shared_weights(fore.fourth, A, r + l, deflation)
        assert_allclose(found, shared, rtol=1e-6)


@pytest.mark.parametrize("deflation", EXACT)
def test_algorithm_2_is_exact_up_to_step_3_on_population_tensors(deflation):
    for p in (5, 7):
        for r, l in rank_pairs(p):  # noqa: E741
            fore, back, A, _, lam, shared, _ = population(p, r, l, 1)
            found = cica(fore, back, r, l, rng=np.random.default_rng(0), deflation=deflation)
            order = np.abs(found.background.vectors.T @ A).argmax(axis=0)
            assert sorted(order) == list(range(r))
            assert_allclose(found.background.weights[order], lam, rtol=1e-6)
            assert_allclose(found.shared_weights[order], shared, rtol=1e-6)


@pytest.mark.parametrize("deflation", EXACT)
def test_a_background_pattern_absent_from_the_foreground_has_weight_zero(deflation):
    _, _, A, B, _, shared, salient = population(6, 5, 4, 0)
    shared[2] = 0.0
    exact = RankOneSum(np.r_[shared, salient], np.c_[A, B])
    found = shared_weights(exact, A, 9, deflation)
    assert_allclose(found, shared, rtol=1e-6, atol=1e-12)


def test_orthonormal_foreground_patterns_are_recovered_exactly():
    rng = np.random.default_rng(0)
    fore, back, A, _, _, shared, _ = population(6, 5, 1, 2)
    B = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    salient = np.array([3.0, 2.0, -1.5, 1.0])
    fore = Cumulants(fore.mean, np.eye(6), RankOneSum(np.r_[shared, salient], np.c_[A, B]), 10**6)
    found = cica(fore, back, 5, 4, rng=rng)
    assert pattern_similarity(found.foreground.vectors, B) > 1 - 1e-12
    assert_allclose(found.foreground.weights, salient, rtol=1e-9)
    assert found.residual < 1e-7  # the root of a difference that is rounding
    vectors = np.c_[found.background.vectors, found.foreground.vectors]
    again = RankOneSum(np.r_[found.shared_weights, found.foreground.weights], vectors)
    assert_allclose(again.flatten(), fore.fourth.flatten(), atol=1e-12)


@pytest.mark.parametrize("step_3", ["spm", "jade", "foobi", "jennrich", "orthogonal", "htd"])
@pytest.mark.parametrize("step_1", ["spm", "foobi", "jennrich"])
def test_any_pair_of_decompositions_serves(step_1, step_3):
    """Step 1 by methods exact for general vectors, Step 3 on orthonormal ones, where all are exact."""
    rng = np.random.default_rng(0)
    _, back, A, _, _, shared, _ = population(6, 5, 1, 2)
    B = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    salient = np.array([3.0, 2.0, -1.5, 1.0])
    whole = RankOneSum(np.r_[shared, salient], np.c_[A, B])
    fore = Cumulants(np.zeros(6), np.eye(6), whole, 10**6)
    found = contrast_by(fore, back, 5, 4, f"{step_1}-{step_3}", rng=rng)
    assert pattern_similarity(found.background.vectors, A) > 1 - 1e-9
    assert pattern_similarity(found.foreground.vectors, B) > 1 - 1e-9
    assert found.residual < 1e-6


def test_jade_in_step_1_whitens_by_the_background(rng):
    """General A, which orthonormal axes could not match; the covariance comes with the cumulants."""
    _, back, A, _, _, shared, _ = population(6, 5, 1, 2)
    back = Cumulants(back.mean, (A * rng.uniform(0.5, 2, 5)) @ A.T, back.fourth, 10**6)
    B = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    salient = np.array([3.0, 2.0, -1.5, 1.0])
    whole = RankOneSum(np.r_[shared, salient], np.c_[A, B])
    fore = Cumulants(np.zeros(6), np.eye(6), whole, 10**6)
    for step_3 in ("htd", "jade"):
        found = contrast_by(fore, back, 5, 4, f"jade-{step_3}", rng=rng)
        assert pattern_similarity(found.background.vectors, A) > 1 - 1e-9
        assert pattern_similarity(found.foreground.vectors, B) > 1 - 1e-9


def test_fastica_and_separate_decompositions_recover_the_four_clusters_patterns():
    data = make_four_clusters(20_000, random_state=0)
    fore, back = cumulants(data.foreground), cumulants(data.background)
    for method in ("fastica-htd", "spm-spm-separate"):
        found = contrast_by(
            *(fore, back, 3, 2, method),
            rng=np.random.default_rng(0),
            background_rows=data.background,
        )
        assert pattern_similarity(found.foreground.vectors, data.B) > 0.95, method
        assert pattern_similarity(found.background.vectors, data.A) > 0.95, method


def test_fastica_asks_for_the_rows(rng):
    data = cumulants(rng.laplace(size=(50, 3)))
    with raises(DataError, "no-rows", "background_rows"):
        contrast_by(data, data, 1, 1, "fastica-htd", rng=rng)
    with raises(DataError, "no-rows", "background_rows") as said:
        contrast_by(data, data, 1, 1, "fastica-htd", rng=rng, background_rows=np.ones((50, 2)))
    assert "of 2 variables, but FastICA works on rows" in str(said.value)


def test_separate_decompositions_need_more_terms_in_the_foreground():
    fore, back, *_ = population(4, 3, 2, 0)
    few = Cumulants(fore.mean, fore.covariance, RankOneSum(np.ones(2), np.eye(4)[:, :2]), 10**6)
    with (
        raises(ParameterError, "none-left", "n_background"),
        warns(PatternWarning, "rank-deficient"),
    ):
        contrast_by(few, back, 3, 2, "spm-spm-separate", rng=np.random.default_rng(0))


def test_the_papers_pair_is_algorithm_2():
    data = make_synthetic(5, n_samples=3000, random_state=0)
    fore, back = cumulants(data.foreground), cumulants(data.background)
    one = cica(fore, back, 5, 4, rng=np.random.default_rng(0), deflation="sequential")
    other = contrast_by(
        fore, back, 5, 4, "spm-htd", rng=np.random.default_rng(0), deflation="sequential"
    )
    assert np.array_equal(one.foreground.vectors, other.foreground.vectors)
    assert np.array_equal(one.shared_weights, other.shared_weights)
    assert one.residual == other.residual


def test_unknown_pairs_are_refused(rng):
    data = cumulants(rng.laplace(size=(50, 3)))
    with raises(ParameterError, "unknown-choice", "method"):
        contrast_by(data, data, 1, 1, "spm-magic", rng=rng)


def test_least_squares_is_biased_in_population_by_what_its_docstring_says():
    a, b = np.array([[1.0], [0.0]]), np.array([[0.6], [0.8]])
    fore = RankOneSum(np.array([1.0, 2.0]), np.c_[a, b])
    found = shared_weights(fore, a, 2, "least_squares")
    assert_allclose(found, 1 + 2 * 0.6**4)


def test_thin_equals_the_formula_on_the_papers_flattening(rng):
    T = naive.symmetrise(rng.standard_normal((4, 4, 4, 4)))
    a = rng.standard_normal((4, 2))
    a /= np.linalg.norm(a, axis=0)
    expected = [naive.thin_weight(T, 5, u) for u in a.T]
    assert_allclose(DEFLATIONS["thin"](as_operator(T), a, 5), expected, rtol=1e-8)


@pytest.mark.parametrize("deflation", ["sequential", "sequential_thin"])
@pytest.mark.parametrize(("p", "r", "l"), [(4, 5, 3), (6, 9, 6), (9, 20, 11)])
def test_following_eigenvalues_equals_decomposing_anew_for_every_pattern(p, r, l, deflation):  # noqa: E741
    """On an exact tensor of low rank, on one that lacks a pattern, and on samples."""
    fore, _, A, _, _, shared, salient = population(p, r, l, 1)
    lacking = RankOneSum(np.r_[0.0, shared[1:], salient], fore.fourth.vectors)
    rng = np.random.default_rng(p)
    sampled = cumulants(rng.laplace(size=(2000, p)) @ rng.standard_normal((p, p))).fourth
    size = p * (p + 1) // 2
    for tensor in (fore.fourth, lacking, sampled):
        found = DEFLATIONS[deflation](tensor, A, r + l)
        rank = size if deflation == "sequential" else r + l
        expected = naive.weights_one_after_another(tensor.flatten(), svec_outer(A), rank)
        assert_allclose(found, expected, rtol=1e-8, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("deflation", ["thin", "sequential", "sequential_thin"])
def test_wild_shared_weights_are_reported(deflation):
    # A vector outside the tensor's space but for rounding: the formula divides by almost nothing.
    fore = RankOneSum(np.array([1.0, -1.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    a = np.array([[1.0], [1.0 + 1e-6]]) / np.sqrt(2)
    if deflation == "sequential":  # M⁻¹ of full rank: a₁⁴ + a₁²a₂²/5 − a₂⁴ is next to zero
        fore = PackedTensor(np.diag([1.0, 10.0, -1.0]), 2)
        a = np.array([[1.0], [np.sqrt(0.1 + np.sqrt(1.01)) + 1e-6]])
        a /= np.linalg.norm(a)
    with warns(PatternWarning, "wild-weights") as said:
        shared_weights(fore, a, 2, deflation)
    assert str(said[0].message).startswith("1 of 1 shared weights exceed 3 times the norm")


def test_every_deflation_is_known_by_name():
    assert set(EXACT) | {"least_squares"} == set(DEFLATIONS)
    with raises(ParameterError, "unknown-choice", "deflation"):
        shared_weights(RankOneSum(np.ones(1), np.ones((2, 1))), np.ones((2, 1)), 1, "best")


# --- contrast ratio ---


def test_contrast_ratio_is_a_ratio_of_variances(rng):
    X, Y = rng.laplace(size=(200, 3)) * 3, rng.laplace(size=(100, 3))
    vectors = rng.standard_normal((3, 4))
    found = contrast_ratio(vectors, cumulants(X), cumulants(Y))
    assert_allclose(found, [naive.contrast_ratio(X, Y, b) for b in vectors.T], rtol=1e-10)


def test_a_silent_background_floors_the_ratio_and_orders_by_foreground_variance(rng):
    X = rng.laplace(size=(500, 4)) * np.array([1.0, 2.0, 3.0, 1.0])
    Y = rng.laplace(size=(100, 4)) * np.array([0.0, 0.0, 0.0, 1.0])
    with warns(PatternWarning, "unbounded-ratio") as said:
        found = contrast_ratio(np.eye(4), cumulants(X), cumulants(Y))
    assert "along 3 of 4 patterns" in str(said[0].message)
    assert np.isfinite(found).all()
    assert list(np.argsort(-found)) == [2, 1, 0, 3]
    largest = np.var(Y[:, 3])
    floor = max(100, 4) * np.finfo(float).eps * largest
    assert_allclose(found[:3], X[:, :3].var(axis=0) / floor, rtol=1e-6)


def test_a_constant_background_still_orders_by_foreground_variance(rng):
    X = rng.laplace(size=(500, 2)) * np.array([1.0, 2.0])
    with warns(PatternWarning, "unbounded-ratio") as said:
        found = contrast_ratio(np.eye(2), cumulants(X), cumulants(np.ones((50, 2))))
    assert "along 2 of 2 patterns" in str(said[0].message)
    assert found[1] > found[0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10))
def test_ratio_ignores_the_patterns_length_and_follows_the_foreground_scale(seed, scale):
    rng = np.random.default_rng(seed)
    X, Y, b = rng.laplace(size=(50, 3)), rng.laplace(size=(50, 3)), rng.standard_normal((3, 1))
    one = contrast_ratio(b, cumulants(X), cumulants(Y))
    two = contrast_ratio(7 * b, cumulants(scale * X), cumulants(Y))
    assert_allclose(two, scale**2 * one, rtol=1e-8)


# --- ranks ---


def test_ranks_beyond_the_statements_warn_and_name_them(rng):
    data = cumulants(rng.laplace(size=(400, 4)) @ rng.standard_normal((4, 4)))
    with pytest.warns() as caught:
        cica(data, data, 8, 2, rng=rng)
    text = " ".join(str(w.message) for w in caught if w.category is IdentifiabilityWarning)
    assert "p(p−1)/2 = 6" in text
    assert "prop:iden_alg2" in text
    assert "prop:iden_cica_tensor" in text


@pytest.mark.parametrize(
    ("r", "l", "message"),
    [
        (0, 2, "n_background=0"),
        (2, 0, "n_foreground=0"),
        (4, 3, "together exceed"),
        (7, 1, "n_background=7"),
    ],
)
def test_impossible_ranks_are_refused(rng, r, l, message):  # noqa: E741
    data = cumulants(rng.laplace(size=(50, 3)))
    with pytest.raises(ValueError, match=message):
        cica(data, data, r, l, rng=rng)


# --- Algorithm 3 ---


@pytest.mark.parametrize("deflation", EXACT)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
def test_the_scale_is_exact_on_population_tensors(scale, deflation):
    for p in (5, 7):
        for r, l in rank_pairs(p):  # noqa: E741
            fore, back, *_ = population(p, r, l, 0, scale)
            found = estimate_scale(
                fore, back, r, l, rng=np.random.default_rng(0), deflation=deflation
            )
            assert_allclose(found.scale, scale, rtol=1e-6)
            assert_allclose(found.estimates, scale, rtol=1e-6)
            assert found.spread < 1e-6


def test_proportional_cica_recovers_orthonormal_patterns():
    fore, back, A, _, lam, _, _ = population(6, 5, 1, 3)
    B = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 3)))[0]
    salient = np.array([3.0, -2.0, 1.0])
    whole = RankOneSum(np.r_[0.5**4 * lam, salient], np.c_[A, B])
    fore = Cumulants(fore.mean, np.eye(6), whole, 10**6)
    found = proportional_cica(fore, back, 5, 3, rng=np.random.default_rng(0), scale=0.5)
    assert pattern_similarity(found.foreground.vectors, B) > 1 - 1e-12
    assert_allclose(found.foreground.weights, salient, rtol=1e-9)


def test_a_background_of_opposite_sign_has_no_scale_and_says_so():
    fore, back, A, B, lam, _, salient = population(5, 4, 2, 0)
    fore = Cumulants(fore.mean, fore.covariance, RankOneSum(np.r_[-lam, salient], np.c_[A, B]), 100)
    with warns(PatternWarning, "no-scale") as said:
        found = estimate_scale(fore, back, 4, 2, rng=np.random.default_rng(0))
    assert said[0].message.parameter == "background_scale"
    assert str(said[0].message).startswith("4 of 4 background patterns")
    assert found.scale == 0.0
    assert np.isnan(found.estimates).all()


def test_the_estimated_scale_is_near_one_in_the_papers_proportional_design():
    """The paper reports [0.94, 1.08] for its draws; these bounds are for ours."""
    for p in (4, 8):
        data = make_synthetic(p, proportional=True, random_state=p)
        fore, back = cumulants(data.foreground), cumulants(data.background)
        found = estimate_scale(fore, back, p, p - 1, rng=np.random.default_rng(0))
        assert 0.9 < found.scale < 1.15


def test_a_sweep_holds_each_scales_own_decomposition(rng):
    data = make_synthetic(4, n_samples=3000, random_state=0)
    fore, back = cumulants(data.foreground), cumulants(data.background)
    sweep = scale_sweep(fore, back, 3, [0.0, 0.7])
    assert sweep.vectors.shape == (2, 4, 3)
    single = proportional_cica(fore, back, 4, 3, rng=rng, scale=0.7)
    order = np.argsort(-single.ratio)
    assert_allclose(sweep.ratios[1], single.ratio[order], rtol=1e-10)
    assert_allclose(sweep.vectors[1], single.foreground.vectors[:, order], atol=1e-10)
    assert scale_sweep(fore, back, 2).scales.size == 21
    for scales in ([-1.0], [np.nan], []):
        with raises(ParameterError, "out-of-range", "scales"):
            scale_sweep(fore, back, 2, scales)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_proportionality_is_accepted_where_it_holds():
    """At level 0.1, of 40 draws at most 8 are rejected with probability 0.98 if the level holds."""
    rejected = 0
    for seed in range(40):
        data = make_synthetic(4, n_samples=5_000, proportional=True, random_state=[4, seed])
        rng = np.random.default_rng(seed)
        result = proportionality_test(
            data.foreground, data.background, 4, 3, rng=rng, n_simulations=9
        )
        assert result.null_redrawn.shape == result.null_simulated.shape == (9,)
        rejected += result.p_value <= 0.1
    assert rejected <= 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_proportionality_is_rejected_where_weights_swap():
    for seed in range(2):
        data = make_synthetic(6, n_samples=50_000, random_state=[6, seed])
        rng = np.random.default_rng(seed)
        result = proportionality_test(
            data.foreground, data.background, 6, 5, rng=rng, n_simulations=19
        )
        assert result.p_value == 1 / 20
        assert result.spread > max(result.null_redrawn.max(), result.null_simulated.max())


# --- four clusters ---


@pytest.mark.filterwarnings(
    "ignore::contrica.PatternWarning"
)  # the background is singular by design
def test_algorithm_2_finds_the_salient_plane_of_the_four_clusters():
    """Mean cosine over draws; FINDINGS has least squares recovering the clusters at every n."""
    similarity = []
    for seed in range(10):
        data = make_four_clusters(1000, random_state=seed)
        fore, back = cumulants(data.foreground), cumulants(data.background)
        found = cica(fore, back, 3, 2, rng=np.random.default_rng(0), deflation="least_squares")
        similarity.append(pattern_similarity(found.foreground.vectors, data.B))
    assert np.median(similarity) > 0.95


@pytest.mark.parametrize("solver", ["paper", "proportional"])
def test_a_residual_above_one_is_told(solver):
    data = make_synthetic(6, n_samples=4000, random_state=0)
    model = ProportionalContrastiveICA(2, background_scale=3.0, n_foreground=3)
    if solver == "paper":
        data = make_synthetic(4, n_samples=200, random_state=2)
        model = ContrastiveICA(2, solver="paper", n_background=5, n_foreground=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        with pytest.warns(PatternWarning) as said:
            model.fit(data.foreground, background=data.background)
    assert model.residual_ > 1
    told = [each.message for each in said if each.message.code == "residual"]
    assert len(told) == 1
    assert f"residual_ = {model.residual_:.3g}" in str(told[0])
