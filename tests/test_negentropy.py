from functools import partial

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


def climbed(rows, starts, skewness_weight=0.01, tol=1e-7, max_iter=500):
    measure = partial(module._Rows(rows).heights, skewness_weight=skewness_weight)
    return module.climb(measure, starts, max_iter=max_iter, tol=tol)


@given(st.integers(1, 5), st.floats(0, 2), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_negentropy_is_that_of_the_formula(d, skewness_weight, seed):
    rows = np.random.default_rng(seed).laplace(size=(50, d))
    assert_allclose(
        negentropy(rows, skewness_weight), naive.negentropy(rows, skewness_weight), rtol=1e-12
    )


@pytest.mark.parametrize("n", [1, 7, 40, 41, 103])
@pytest.mark.parametrize("skewness_weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("repeated", [False, True])
def test_blocks_of_rows_give_the_value_and_the_slope_of_all(
    n, skewness_weight, repeated, monkeypatch
):
    """Blocks that do and do not divide the rows, copies of rows, and matrices that are no rotations."""
    monkeypatch.setattr(module, "ROWS_IN_BLOCK", 20)
    rng = np.random.default_rng(n)
    rows, turns = rng.laplace(size=(n, 3)), rng.standard_normal((2, 3, 3))
    if repeated:
        rows = rows[rng.integers(n, size=n)]
    found = module._Rows(rows).heights(turns, skewness_weight)
    for turn, value, slope in zip(turns, found.values, found.slopes, strict=True):
        expected = naive.negentropy(rows @ turn, skewness_weight)
        assert_allclose(value, expected, rtol=1e-12)
        expected = turn.T @ naive.negentropy_slope(rows, turn, skewness_weight)
        assert_allclose(slope, expected, atol=2e-6)


@pytest.mark.parametrize("skewness_weight", [0.0, 0.25, 1.0])
def test_of_independent_sources_second_derivatives_are_sums_of_two(skewness_weight):
    """All pairs of values of two sources, each of mean 0 and variance 1: they are independent exactly."""
    one, other = np.array([-0.5, -0.5, -0.5, -0.5, 2.0]), np.array([-1.0, 1.0, 3.0])
    parts = [(part - part.mean()) / part.std() for part in (one, other)]
    rows = np.array([(a, b) for a in parts[0] for b in parts[1]])
    curvatures = module._Rows(rows).heights(np.eye(2)[None], skewness_weight).curvatures[0]

    def turned(angle):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        return negentropy(rows @ turn, skewness_weight)

    second = (turned(1e-4) - 2 * turned(0.0) + turned(-1e-4)) / 1e-8
    assert_allclose(curvatures.sum(), second, rtol=1e-4)


def test_copies_of_rows_are_counted(rng):
    rows = rng.laplace(size=(50, 3))
    rows[7, 0] = rows[8, 0]  # agree in the first column only
    assert module._repeated(rows)[1] is None
    drawn = rows[rng.integers(50, size=50)]
    distinct, counts = module._repeated(drawn)
    expected = np.unique(drawn, axis=0, return_counts=True)
    order = np.lexsort(distinct.T[::-1])
    assert_allclose(distinct[order], expected[0], rtol=0)
    assert (counts[order] == expected[1]).all()


def test_starts_are_followed_on_few_rows_and_the_best_on_all(monkeypatch):
    rows, _ = whitened(12_000, 3, 0, "laplace")
    followed = []
    climb = module.climb

    def recorded(measure, starts, **options):
        tops = climb(measure, starts, **options)
        followed.append((measure.func.__self__.n, starts, [top.value for top in tops]))
        return tops

    monkeypatch.setattr(module, "climb", recorded)
    farthest_from_gaussian(rows, rng=np.random.default_rng(0))
    (n, starts, values), (n_last, last, _) = followed
    assert (n, len(starts)) == (module.SEARCH_ROWS, module.N_STARTS)
    assert n_last == 12_000
    some = module._drawn(rows, module.SEARCH_ROWS)
    assert_allclose(negentropy(some @ last[0]), max(values), rtol=1e-9)


def test_a_search_of_many_dimensions_follows_starts_one_after_another(monkeypatch):
    rows, _ = whitened(900, 4, 0, "laplace")
    found = farthest_from_gaussian(rows, rng=np.random.default_rng(0))
    climb, followed = module.climb, []
    monkeypatch.setattr(
        module, "climb", lambda *given, **rest: followed.append(given[1]) or climb(*given, **rest)
    )
    monkeypatch.setattr(module, "TOGETHER", 1)
    again = farthest_from_gaussian(rows, rng=np.random.default_rng(0))
    assert_allclose(again.matrix, found.matrix, atol=1e-10)
    assert [len(starts) for starts in followed] == [1] * (module.N_STARTS + 1)


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
    found = climbed(rows, np.eye(d)[None], skewness_weight)[0]
    assert_allclose(found.turn.T @ found.turn, np.eye(d), atol=1e-10)
    assert_allclose(found.value, negentropy(rows @ found.turn, skewness_weight), rtol=1e-10)

    def turned(angles):
        skew = np.zeros((d, d))
        skew[np.triu_indices(d, 1)] = angles
        skew -= skew.T
        rotation = np.linalg.solve(np.eye(d) - skew / 2, np.eye(d) + skew / 2)
        return negentropy(rows @ found.turn @ rotation, skewness_weight)

    slope = approx_fprime(np.zeros(d * (d - 1) // 2), turned, 1e-6)
    assert np.abs(slope).max() < 1e-4 * found.value
    assert found.value >= negentropy(rows, skewness_weight) * (1 - 1e-12)


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


def test_one_dimension_needs_no_rotation(rng):
    rows = rng.laplace(size=(100, 1))
    found = farthest_from_gaussian(rows, rng=rng)
    assert found.matrix.tolist() == [[1.0]]
    assert found.negentropy == negentropy(rows)


@pytest.mark.parametrize("options", [{"n_starts": 0}, {"max_iter": 0}, {"tol": -1.0}])
def test_impossible_settings_are_refused(options, rng):
    with pytest.raises(ValueError, match=next(iter(options))):
        farthest_from_gaussian(rng.laplace(size=(100, 2)), rng=rng, **options)
