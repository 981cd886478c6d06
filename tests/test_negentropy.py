import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

from contrica.metrics import pattern_similarity
from contrica.solvers import negentropy as module
from contrica.solvers.negentropy import farthest_from_gaussian, negentropy
from tests import naive


def whitened(n, d, seed, kind="mixed"):
    rng = np.random.default_rng(seed)
    sources = {
        "laplace": rng.laplace(size=(n, d)),
        "uniform": rng.uniform(-1, 1, (n, d)),
        "exponential": rng.exponential(size=(n, d)),
        "binary": rng.choice([-1.0, 1.0], (n, d)),
    }
    if kind == "mixed":
        parts = list(sources.values())
        drawn = np.column_stack([parts[j % 4][:, j] for j in range(d)])
    else:
        drawn = sources[kind]
    rows = drawn @ rng.standard_normal((d, d)).T
    rows -= rows.mean(axis=0)
    values, axes = np.linalg.eigh(rows.T @ rows / n)
    whiten = axes / np.sqrt(values)
    return rows @ whiten, drawn


@given(st.integers(1, 5), st.floats(0, 2), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_negentropy_is_that_of_the_formula(d, skewness_weight, seed):
    rows = np.random.default_rng(seed).laplace(size=(50, d))
    assert_allclose(
        negentropy(rows, skewness_weight), naive.negentropy(rows, skewness_weight), rtol=1e-12
    )


@pytest.mark.parametrize("n", [1, 7, 40, 41, 103])
@pytest.mark.parametrize("skewness_weight", [0.0, 0.25, 1.0])
def test_blocks_of_rows_give_the_value_and_the_slope_of_all(n, skewness_weight, monkeypatch):
    """Blocks that do and do not divide the rows, and a matrix that is no rotation."""
    monkeypatch.setattr(module, "ROWS_IN_BLOCK", 20)
    rng = np.random.default_rng(n)
    rows, turn = rng.laplace(size=(n, 3)), rng.standard_normal((3, 3))
    blocks = module._Rows(rows)
    expected = naive.negentropy(rows @ turn, skewness_weight)
    assert_allclose(blocks.value(turn, skewness_weight), expected, rtol=1e-12)
    value, slope = blocks.slope(turn, skewness_weight)
    assert_allclose(value, expected, rtol=1e-12)
    assert_allclose(slope, naive.negentropy_slope(rows, turn, skewness_weight), atol=1e-6)


def test_starts_are_followed_on_few_rows_and_the_best_on_all(monkeypatch):
    rows, _ = whitened(12_000, 3, 0, "laplace")
    followed = []
    ascend = module._ascend

    def recorded(some, *rest):
        found = ascend(some, *rest)
        followed.append((some.n, found.negentropy, rest[0]))
        return found

    monkeypatch.setattr(module, "_ascend", recorded)
    farthest_from_gaussian(rows, rng=np.random.default_rng(0))
    *starts, last = followed
    assert [n for n, *_ in starts] == [module.SEARCH_ROWS] * module.N_STARTS
    assert last[0] == 12_000
    some = module._Rows(module._drawn(rows, module.SEARCH_ROWS))
    highest = max(value for _, value, _ in starts)
    assert_allclose(some.value(last[2], module.SKEWNESS_WEIGHT), highest, rtol=1e-9)


def test_moments_of_a_gaussian_give_zero():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    mean = weights / weights.sum()
    assert abs(mean @ np.exp(-(nodes**2) / 2) - module.GAUSSIAN) < 1e-12
    assert negentropy(np.array([[1e100], [-1e100]])) > 1  # without overflow
    # k of the approximation: 1 / (variance of what a Gaussian's mean and variance leave of the moment)
    kernel, skewed = np.exp(-(nodes**2) / 2), nodes * np.exp(-(nodes**2) / 2)
    for moment, others, constant in (
        (kernel, [nodes**0, (nodes**2 - 1) / 2**0.5], module.TAIL_CONSTANT),
        (skewed, [nodes], module.SKEWNESS_CONSTANT),
    ):
        left = moment - sum((mean @ (moment * other)) * other for other in others)
        assert_allclose(1 / (2 * (mean @ left**2)), constant, rtol=1e-9)


@given(st.integers(2, 6), st.sampled_from([0.0, 0.25, 1.0]), st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_the_search_follows_the_gradient(d, skewness_weight, seed):
    """Where it ends no rotation in a plane raises J."""
    rows, _ = whitened(400, d, seed)
    found = module._ascend(module._Rows(rows), np.eye(d), skewness_weight, 500, 1e-7)
    assert_allclose(found.matrix.T @ found.matrix, np.eye(d), atol=1e-10)
    assert_allclose(found.negentropy, negentropy(rows @ found.matrix, skewness_weight), rtol=1e-10)

    def turned(angles):
        skew = np.zeros((d, d))
        skew[np.triu_indices(d, 1)] = angles
        skew -= skew.T
        rotation = np.linalg.solve(np.eye(d) - skew / 2, np.eye(d) + skew / 2)
        return negentropy(rows @ found.matrix @ rotation, skewness_weight)

    slope = approx_fprime(np.zeros(d * (d - 1) // 2), turned, 1e-6)
    assert np.abs(slope).max() < 1e-4 * found.negentropy
    assert found.negentropy >= negentropy(rows, skewness_weight) * (1 - 1e-12)


@pytest.mark.parametrize("kind", ["laplace", "uniform", "exponential", "binary", "mixed"])
def test_independent_sources_are_separated(kind):
    similarities = []
    for seed in range(5):
        rows, sources = whitened(5000, 5, seed, kind)
        found = farthest_from_gaussian(rows, rng=np.random.default_rng(seed))
        scores = rows @ found.matrix
        mixed = np.corrcoef(scores.T, sources.T)[:5, 5:]
        similarities.append(np.abs(mixed).max(axis=0).min())
    assert np.median(similarities) > 0.98


def test_every_seed_leads_to_one_rotation():
    rows, _ = whitened(6000, 6, 3)
    one, *others = (
        farthest_from_gaussian(rows, rng=np.random.default_rng(seed)).matrix for seed in range(6)
    )
    for other in others:
        assert pattern_similarity(other, one) > 0.9999


def test_a_tolerance_beyond_rounding_ends_all_the_same():
    rows, _ = whitened(2000, 4, 0, "laplace")
    found = farthest_from_gaussian(rows, rng=np.random.default_rng(0), tol=1e-15)
    assert found.n_iter < 1000


def test_many_rows_are_searched_on_some_of_them():
    rows, sources = whitened(30000, 4, 1)
    found = farthest_from_gaussian(rows, rng=np.random.default_rng(0))
    mixed = np.abs(np.corrcoef((rows @ found.matrix).T, sources.T)[:4, 4:])
    assert mixed.max(axis=0).min() > 0.99


@pytest.mark.parametrize("skewness_weight", [0.0, 1.0])
def test_the_gradient_is_that_of_the_objective_far_from_the_base(skewness_weight, monkeypatch):
    """As the optimiser is given it, at a large turn."""
    rows, _ = whitened(300, 4, 2)
    seen = {}

    def caught(function, start, **options):
        seen["function"] = function
        return module_minimize(function, start, **options)

    module_minimize = module.minimize
    monkeypatch.setattr(module, "minimize", caught)
    module._ascend(module._Rows(rows), np.eye(4), skewness_weight, 1, 1e-3)
    point = np.random.default_rng(3).standard_normal(6)
    value, gradient = seen["function"](point)
    numeric = approx_fprime(point, lambda x: seen["function"](x)[0], 1e-7)
    assert_allclose(gradient, numeric, atol=1e-4 * abs(value))


def test_one_dimension_needs_no_rotation(rng):
    rows = rng.laplace(size=(100, 1))
    found = farthest_from_gaussian(rows, rng=rng)
    assert found.matrix.tolist() == [[1.0]]
    assert found.negentropy == negentropy(rows)


@pytest.mark.parametrize("options", [{"n_starts": 0}, {"max_iter": 0}, {"tol": -1.0}])
def test_impossible_settings_are_refused(options, rng):
    with pytest.raises(ValueError, match=next(iter(options))):
        farthest_from_gaussian(rng.laplace(size=(100, 2)), rng=rng, **options)
