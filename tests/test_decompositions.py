import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica.decompositions import _spm as module
from contrica.decompositions import (
    canonical,
    fastica,
    foobi,
    htd,
    htd_error_bound,
    jade,
    jennrich,
    orthogonal,
    spm,
    third_power_method,
)
from contrica.decompositions._spm_search import MixedSubspace, Subspace
from contrica.errors import ConvergenceWarning, ParameterError, PatternWarning
from contrica.metrics import match_patterns
from contrica.moments.eigen import top_eigenpairs
from contrica.moments.fourth import cumulants
from contrica.moments.operators import PackedTensor, RankOneSum, as_operator
from contrica.moments.third import ThirdTensor
from tests import naive
from tests.said import raises, warns


def draw(p, rank, signs, seed):
    rng = np.random.default_rng([p, rank, seed])
    vectors = rng.standard_normal((p, rank))
    weights = rng.uniform(0.5, 2, rank)
    weights *= {"positive": 1.0, "negative": -1.0, "mixed": rng.choice([-1, 1], rank)}[signs]
    return weights, vectors / np.linalg.norm(vectors, axis=0)


def assert_same_terms(found, weights, vectors, tolerance):
    """Every true vector is there, once, with its weight."""
    match = match_patterns(found.vectors, vectors)
    assert sorted(match.order) == list(range(weights.size))
    assert (match.cosines > 1 - tolerance).all(), match.cosines.min()
    assert_allclose(found.weights[match.order], weights, rtol=1e-6)


# --- canonical form ---


def test_canonical_orders_by_magnitude_and_absorbs_lengths():
    found = canonical(np.array([1.0, -3.0]), np.array([[2.0, 0.0], [0.0, -1.0]]))
    assert_allclose(found.weights, [16, -3])
    assert_allclose(found.vectors, np.eye(2))


# --- htd ---


def test_htd_equals_the_line_by_line_algorithm(rng):
    T = naive.symmetrise(rng.standard_normal((4, 4, 4, 4)))
    weights, vectors = naive.htd(T, 5)
    found, expected = htd(as_operator(T), 5), canonical(weights, vectors)
    assert_allclose(found.weights, expected.weights, rtol=1e-10)
    assert_allclose(found.vectors, expected.vectors, atol=1e-9)


def test_htd_takes_a_dense_array(rng):
    T = naive.symmetrise(rng.standard_normal((3, 3, 3, 3)))
    assert_allclose(htd(T, 2).weights, htd(as_operator(T), 2).weights)


def test_htd_handles_data_it_never_writes_out(rng):
    X = rng.laplace(size=(300, 5)) * np.arange(1, 6)
    packed, free = (htd(cumulants(X, storage=s).fourth, 4) for s in ("packed", "matrix-free"))
    assert_allclose(free.weights, packed.weights, rtol=1e-9)
    assert_allclose(free.vectors, packed.vectors, atol=1e-8)


def test_htd_names_tied_terms_and_stays_silent_without_ties():
    vectors = np.eye(5)
    with warns(PatternWarning, "tied") as said:
        htd(RankOneSum(np.array([3.0, 3.0, 2.0, -1.0, -1.0]), vectors), 5)
    assert "tie_gap=0.001, relatively): 1, 2; 4, 5. " in str(said[0].message)
    htd(RankOneSum(np.array([3.0, 2.9, 2.0, 1.0, -1.0]), vectors), 5)  # warnings are errors here


def test_htd_sees_a_tie_with_the_first_term_left_out():
    operator = RankOneSum(np.array([3.0, 1.0, 1.0, 1.0]), np.eye(4))
    with warns(PatternWarning, "tied") as said:
        htd(operator, 2)
    assert "2, the first one left out" in str(said[0].message)


def test_htd_ties_are_judged_by_the_gap_asked_for():
    operator = RankOneSum(np.array([2.0, 1.99]), np.eye(2))
    htd(operator, 2)  # warnings are errors here
    with warns(PatternWarning, "tied") as said:
        htd(operator, 2, tie_gap=0.01)
    assert ": 1, 2. " in str(said[0].message)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_htd_turns_with_the_basis(seed):
    rng = np.random.default_rng(seed)
    weights, vectors = np.array([3.0, -2.0, 1.0]), rng.standard_normal((4, 3))
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    here, there = (htd(RankOneSum(weights, v), 3, tie_gap=0) for v in (vectors, Q @ vectors))
    assert_allclose(there.weights, here.weights, rtol=1e-7)
    assert_allclose(np.abs(np.sum(there.vectors * (Q @ here.vectors), axis=0)), 1, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_htd_is_within_its_error_bound(seed, rank):
    rng = np.random.default_rng(seed)
    T = as_operator(naive.symmetrise(rng.standard_normal((3, 3, 3, 3))))
    error = np.sqrt((T - htd(T, rank, tie_gap=0).tensor()).squared_norm())
    assert error <= htd_error_bound(T, rank) * (1 + 1e-12)


def test_the_error_bound_equals_its_formula(rng):
    T = naive.symmetrise(rng.standard_normal((3, 3, 3, 3)))
    values, matrices = naive.eigenpairs(T, 6)
    bound = np.sqrt(np.sum(values[2:] ** 2))
    for mu, M in zip(values[:2], matrices[:2], strict=True):
        beta = np.sort(np.abs(np.linalg.eigvalsh((M + M.T) / 2)))[::-1]
        bound += abs(mu) * (1 + beta[0]) * np.sqrt(np.sum(beta[1:] ** 2))
    assert_allclose(htd_error_bound(as_operator(T), 2), bound, rtol=1e-10)


# --- spm ---


@pytest.mark.parametrize("signs", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("p", range(4, 13))
def test_spm_recovers_every_vector_of_exact_tensors(p, signs):
    """A sample of the study in benchmarks/spm_recovery.py."""
    most = p * (p - 1) // 2
    ranks = {p, min(2 * p, most)} | ({most} if p <= 8 else set())
    for rank in ranks:
        for seed in range(3):
            weights, vectors = draw(p, rank, signs, seed)
            found = spm(RankOneSum(weights, vectors), rank, rng=np.random.default_rng(seed))
            assert_same_terms(found, weights, vectors, 1e-6)


def test_spm_agrees_with_one_start_at_a_time():
    weights, vectors = draw(4, 5, "mixed", 0)
    T = naive.rank_one_sum(weights, vectors)
    slow = naive.subspace_power_method(T, 5, np.random.default_rng(1))
    found = spm(T, 5, rng=np.random.default_rng(2))
    assert_same_terms(found, slow[0], slow[1], 1e-6)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_spm_reads_the_rank_of_an_exact_tensor(rank):
    weights, vectors = draw(5, rank, "mixed", 3)
    found = spm(RankOneSum(weights, vectors), rng=np.random.default_rng(0))
    assert_same_terms(found, weights, vectors, 1e-6)


def test_spm_finds_no_false_component_at_the_limit_of_rank():
    """Here a false maximiser has 1 − f = 3e-14; it once took a component's place."""
    rng = np.random.default_rng([8, 28, 7, 0])
    vectors = rng.standard_normal((8, 35))
    vectors = (vectors / np.linalg.norm(vectors, axis=0))[:, :28]
    weights = rng.uniform(0.5, 2, 28) * rng.choice([-1, 1], 28)
    found = spm(RankOneSum(weights, vectors), 28, rng=rng)
    assert_same_terms(found, weights, vectors, 1e-6)


def test_spm_finds_the_same_vectors_of_a_small_noisy_tensor_with_other_generators(rng):
    X = rng.laplace(size=(3000, 12)) @ rng.standard_normal((12, 6))
    operator = cumulants(X).fourth
    first, *others = (spm(operator, 10, rng=np.random.default_rng(s)) for s in range(4))
    for other in others:
        # Newton steps end at 1e-8, where the squared step vanishes to rounding
        assert_allclose(match_patterns(other.vectors, first.vectors).cosines, 1, atol=1e-10)


def test_spm_is_repeatable_and_draws_from_its_generator_alone(rng):
    operator = cumulants(rng.laplace(size=(500, 5))).fourth
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator must rest
    first, second = (spm(operator, 5, rng=np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first.vectors, second.vectors)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


class CountingGenerator:
    """Hands out given starts and counts how many were asked for."""

    def __init__(self, seed):
        self.inner, self.drawn = np.random.default_rng(seed), 0

    def standard_normal(self, shape):
        self.drawn += shape[1]
        return self.inner.standard_normal(shape)


def test_every_start_comes_from_the_generator():
    weights, vectors = draw(5, 6, "positive", 0)
    generator = CountingGenerator(0)
    spm(RankOneSum(weights, vectors), 6, rng=generator, n_starts=40)
    assert generator.drawn > 0
    assert generator.drawn % 40 == 0


def test_spm_of_a_tensor_of_lower_rank_returns_fewer_terms_and_says_so():
    weights, vectors = draw(4, 2, "positive", 0)
    with warns(PatternWarning, "rank-deficient") as said:
        found = spm(RankOneSum(weights, vectors), 5, rng=np.random.default_rng(0))
    assert "rank 2 to rounding, so fewer than the 5 patterns" in str(said[0].message)
    assert_same_terms(found, weights, vectors, 1e-6)


def test_spm_of_a_zero_tensor_has_no_terms():
    zero = PackedTensor(np.zeros((6, 6)), 3)
    assert spm(zero, rng=np.random.default_rng(0)).weights.size == 0


def test_spm_says_when_it_has_not_converged(rng):
    operator = cumulants(rng.laplace(size=(200, 6))).fourth
    with warns(ConvergenceWarning, "not-converged") as said:
        spm(operator, 12, rng=np.random.default_rng(0), max_iter=1, tol=1e-14)
    assert "tol=1e-14 was asked for, after max_iter=1 steps" in str(said[0].message)


def test_newton_steps_of_spm_are_those_of_the_eigenvalues(rng):
    """At any point, where curvatures have both signs, and near a maximiser, where all are negative."""
    weights, vectors = draw(6, 9, "mixed", 1)
    pairs = top_eigenpairs(RankOneSum(weights, vectors), 9)
    subspace = Subspace(pairs.matrices())
    points = rng.standard_normal((8, 6))
    points[4:] = vectors.T[:4] + 1e-2 * rng.standard_normal((4, 6))
    points /= np.linalg.norm(points, axis=1)[:, None]
    here = subspace._evaluate(points)
    steps, below = subspace._ascent(here, here.gradients())
    for x, step, falls in zip(points, steps, below, strict=True):
        expected, curvatures = naive.ascent_on_the_sphere(list(pairs.matrices()), x)
        assert_allclose(step, expected, atol=1e-8)
        assert falls == (curvatures < 0).all()
    assert below[4:].all()
    assert not below[:4].all()


@pytest.mark.slow
@pytest.mark.parametrize("entries", [2**24, 1])
@pytest.mark.parametrize("signs", ["positive", "mixed"])
def test_spm_of_many_variables_is_that_of_the_few_they_come_from(signs, entries, monkeypatch):
    monkeypatch.setattr(module, "WIDE_ENTRIES", entries)
    weights, vectors = draw(60, 15, signs, 0)
    few = spm(RankOneSum(weights, vectors), 15, rng=np.random.default_rng(0))
    embedding = np.linalg.qr(np.random.default_rng(1).standard_normal((500, 60)))[0]
    many = spm(RankOneSum(weights, embedding @ vectors), 15, rng=np.random.default_rng(0))
    assert module._is_wide(500, 15)
    assert_same_terms(many, few.weights, embedding @ few.vectors, 1e-6)
    assert_same_terms(many, weights, embedding @ vectors, 1e-6)


def test_spm_of_many_variables_finds_what_it_finds_with_all_of_them_in_view(rng, monkeypatch):
    """On samples, where eigenmatrices fill all dimensions: after several rounds, the same vectors."""
    X = rng.laplace(size=(800, 5)) @ rng.standard_normal((5, 24))
    X += 0.5 * rng.standard_normal(X.shape)
    operator = cumulants(X, storage="matrix-free").fourth
    all_in_view = spm(operator, 7, rng=np.random.default_rng(0))
    monkeypatch.setattr(module, "WIDE_FEATURES", 20)
    found = spm(operator, 7, rng=np.random.default_rng(0))
    assert_same_terms(found, all_in_view.weights, all_in_view.vectors, 1e-8)


def test_steps_by_conjugate_gradients_are_newton_steps(rng):
    """Of mixed matrices, near a maximiser; far from one they lead up all the same."""
    X = rng.laplace(size=(800, 9)) @ rng.standard_normal((9, 9))
    pairs = top_eigenpairs(cumulants(X).fourth, 6)
    mixing = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    axes = np.linalg.qr(rng.standard_normal((9, 3)))[0]
    matrices = pairs.matrices()
    mixed = MixedSubspace(matrices, mixing, axes, axes.T @ matrices @ axes)
    written_out = Subspace(np.tensordot(mixing.T, matrices, 1))
    starts = rng.standard_normal((9, 5))
    starts /= np.linalg.norm(starts, axis=0)
    ends = written_out.climb(starts, 100, 1e-10)
    assert_allclose(mixed.climb(ends.points, 100, 1e-10).points, ends.points, atol=1e-8)
    near = ends.points.T + 1e-5 * rng.standard_normal((5, 9))
    near /= np.linalg.norm(near, axis=1)[:, None]
    here = written_out._evaluate(near)
    expected, below = written_out._ascent(here, here.gradients())
    here = mixed._evaluate(near)
    steps, also_below = mixed._ascent(here, here.gradients())
    assert below.all()
    assert also_below.all()
    assert_allclose(steps, expected, atol=1e-7)  # they stop at a share of the slope
    here = mixed._evaluate(starts.T)
    gradients = here.gradients()
    assert (np.einsum("ni,ni->n", mixed._ascent(here, gradients)[0], gradients) > 0).all()


# --- jade, orthogonal, jennrich, foobi ---


def orthonormal(p, rank, signs, seed):
    weights, vectors = draw(p, rank, signs, seed)
    return weights, np.linalg.qr(vectors)[0]


@pytest.mark.parametrize("signs", ["positive", "negative", "mixed"])
@pytest.mark.parametrize(("p", "rank"), [(2, 2), (4, 4), (8, 5), (12, 12)])
def test_jade_and_orthogonal_are_exact_on_orthonormal_vectors(p, rank, signs):
    for seed in range(3):
        weights, vectors = orthonormal(p, rank, signs, seed)
        if seed == 0:
            weights = np.full(rank, weights[0])  # ties, on which htd fails
        T = RankOneSum(weights, vectors)
        assert_same_terms(jade(T, rank), weights, vectors, 1e-10)
        found = orthogonal(T, rank, rng=np.random.default_rng(seed))
        assert_same_terms(found, weights, vectors, 1e-10)


@pytest.mark.parametrize(("p", "rank"), [(2, 2), (5, 3), (8, 8), (12, 12)])
def test_jennrich_is_exact_on_independent_vectors(p, rank):
    for seed in range(5):
        weights, vectors = draw(p, rank, "mixed", seed)
        found = jennrich(RankOneSum(weights, vectors), rank, rng=np.random.default_rng(seed))
        assert_same_terms(found, weights, vectors, 1e-6)


@pytest.mark.parametrize("signs", ["positive", "mixed"])
@pytest.mark.parametrize(("p", "rank"), [(4, 4), (4, 6), (6, 9), (8, 12), (10, 15)])
def test_foobi_is_exact_on_overcomplete_tensors(p, rank, signs):
    for seed in range(3):
        weights, vectors = draw(p, rank, signs, seed)
        found = foobi(RankOneSum(weights, vectors), rank, rng=np.random.default_rng(seed))
        assert_same_terms(found, weights, vectors, 1e-6)


def test_different_methods_agree_where_both_are_exact():
    weights, vectors = orthonormal(5, 4, "mixed", 1)
    T = RankOneSum(weights, vectors)
    for found in (htd(T, 4), jade(T, 4), spm(T, 4, rng=np.random.default_rng(0))):
        assert_same_terms(found, weights, vectors, 1e-6)


def test_jade_diagonalises_noisy_tensors_better_than_any_nearby_basis(rng):
    """A criterion at its optimum: no small rotation raises the diagonal energy of the eigenmatrices."""
    noise = naive.symmetrise(rng.standard_normal((4, 4, 4, 4)))
    T = naive.rank_one_sum([3.0, 2.0, -2.0, 1.0], np.eye(4)) + 0.1 * noise
    values, matrices = naive.eigenpairs(T, 4)

    def diagonal_energy(basis):
        return sum(
            np.sum(np.diag(basis.T @ (mu * M) @ basis) ** 2)
            for mu, M in zip(values, matrices, strict=True)
        )

    best = jade(T, 4).vectors
    assert_allclose(best.T @ best, np.eye(4), atol=1e-12)
    for _ in range(30):
        skew = rng.standard_normal((4, 4)) * 0.01
        turned = best @ np.linalg.qr(np.eye(4) + skew - skew.T)[0]
        assert diagonal_energy(turned) <= diagonal_energy(best) + 1e-12


def test_jade_says_when_it_has_not_converged():
    weights, vectors = orthonormal(6, 6, "mixed", 0)
    with warns(ConvergenceWarning, "not-converged") as said:
        jade(RankOneSum(weights, vectors), 6, max_iter=1)
    assert "max_iter=1 sweeps" in str(said[0].message)


@pytest.mark.parametrize(("p", "rank"), [(3, 3), (6, 4), (8, 8)])
def test_jade_recovers_general_vectors_by_whitening(p, rank):
    """Sources of any variance: the covariance is A diag(v) Aᵀ, the cumulant Σ λ a^{⊗4}."""
    for seed in range(3):
        weights, vectors = draw(p, rank, "mixed", seed)
        variances = np.random.default_rng(seed).uniform(0.5, 2, rank)
        covariance = (vectors * variances) @ vectors.T
        found = jade(RankOneSum(weights, vectors), rank, covariance=covariance)
        assert_same_terms(found, weights, vectors, 1e-9)


def test_jade_refuses_a_covariance_with_too_few_directions():
    with raises(ParameterError, "rank-above-covariance", "rank") as said:
        jade(PackedTensor(np.eye(6), 3), 3, covariance=np.diag([1.0, 1.0, 0.0]))
    assert "only 2 directions with variance" in str(said.value)


def test_fastica_finds_the_mixing_vectors_and_their_cumulants(rng):
    sources = rng.exponential(size=(100_000, 3)) * [1.0, 2.0, 0.5]
    A = draw(4, 3, "positive", 1)[1]
    found = fastica(sources @ A.T, 3, rng=rng)
    expected = (
        6.0 * np.array([1.0, 2.0, 0.5]) ** 4
    )  # κ₄ of an exponential variable of scale θ is 6θ⁴
    order = np.argsort(-expected)
    cosines = np.abs(np.sum(found.vectors * A[:, order], axis=0))
    assert cosines.min() > 0.999
    assert_allclose(
        found.weights, expected[order], rtol=0.15
    )  # fourth moments vary by some per cent


def test_fastica_warns_with_both_tolerances_in_its_words(rng):
    with warns(ConvergenceWarning, "not-converged") as said:
        fastica(rng.laplace(size=(300, 4)), 4, rng=rng, max_iter=1)
    assert "max_iter=1 steps were not enough to reach tol=0.0001" in str(said[0].message)


@pytest.mark.parametrize("method", [jade, orthogonal, jennrich])
def test_methods_for_few_terms_say_so(method):
    options = {} if method is jade else {"rng": np.random.default_rng(0)}
    with raises(ParameterError, "rank-too-large", "rank") as said:
        method(PackedTensor(np.eye(6), 3), 4, **options)
    assert "at most as many terms as there are variables, 3" in str(said.value)


@pytest.mark.parametrize("decompose", [htd, lambda T, r: spm(T, r, rng=np.random.default_rng(0))])
@pytest.mark.parametrize(
    ("rank", "code"),
    [(0, "too-small"), (-1, "too-small"), (7, "rank-too-large"), (1.5, "not-a-count")],
)
def test_ranks_out_of_range_are_refused(decompose, rank, code):
    with raises(ParameterError, code, "rank"):
        decompose(PackedTensor(np.eye(6), 3), rank)


@pytest.mark.parametrize("name", ["n_starts", "max_iter"])
def test_counts_of_spm_are_checked(name):
    with raises(ParameterError, "too-small", name):
        spm(PackedTensor(np.eye(6), 3), 2, rng=np.random.default_rng(0), **{name: 0})


def test_spm_says_when_it_finds_fewer_vectors_than_asked_for(monkeypatch):
    """As where false maximisers hide the last component: here the climb does not find it."""
    weights, vectors = draw(4, 3, "positive", 0)
    search = module.maximisers

    def without_the_third(*arguments):
        found = search(*arguments)
        return found.take(np.flatnonzero(np.abs(found.points.T @ vectors[:, 2]) < 0.999))

    monkeypatch.setattr(module, "maximisers", without_the_third)
    with warns(ConvergenceWarning, "fewer-patterns") as said:
        found = spm(RankOneSum(weights, vectors), 3, rng=np.random.default_rng(0), n_starts=5)
    assert "2 of 3 patterns were found; 40 rounds of 5 starts" in str(said[0].message)
    assert_same_terms(found, weights[:2], vectors[:, :2], 1e-6)


def test_third_order_terms_that_are_orthogonal_are_found_by_strength(rng):
    axes = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    weights = np.array([5.0, -4.0, 3.0, 2.0])
    tensor = ThirdTensor(naive.third_rank_one_sum(weights, axes[:, :4]))
    found = third_power_method(tensor, 4, rng=rng)
    assert_allclose(np.abs(np.sum(found * axes[:, :4], axis=0)), 1, atol=1e-9)
    nothing = third_power_method(tensor * 0.0, 2, rng=rng)
    assert_allclose(np.linalg.norm(nothing, axis=0), 1)
