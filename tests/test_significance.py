import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student
from scipy.stats import trim_mean

from contrica.datasets import make_synthetic
from contrica.moments.fourth import cumulants
from contrica.rows.groups import Groups
from contrica.solvers import weights as significance
from contrica.solvers.joint import JointProblem, contrast_mask, descend
from contrica.solvers.weights import RowGroups, critical_t_value, gain_t_value, weight_t_values
from tests import naive


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


def scores_at_the_truth(X, Y, patterns):
    """Scores of a free fit that starts at the patterns, in whitened coordinates."""
    problem = JointProblem.of(cumulants(X), cumulants(Y), rows=(X, Y))
    groups = [RowGroups(rows, problem.whiten) for rows in (X, Y)]
    start = problem.whiten.T @ patterns
    fit = descend(problem.terms, start, np.ones((2, start.shape[1]), dtype=bool), 300, 1e-6)
    return weight_t_values(groups, problem.terms, fit.vectors, fit.weights).t_values


# --- the pieces, against their twins ---


@pytest.mark.parametrize("orders", [(4,), (4, 4), (4, 4, 4), (3,), (4, 4, 3, 3)])
def test_the_normal_equations_are_those_of_the_dense_model(orders, rng):
    vectors = unit(rng.standard_normal((3, 4)))
    weights = rng.uniform(0.5, 2, (len(orders), 4)) * rng.choice([-1, 1], (len(orders), 4))
    norms = rng.uniform(1, 5, len(orders))
    J = naive.model_jacobian(vectors, weights, norms, orders)
    expected = J.T @ J
    for j, u in enumerate(vectors.T):  # along itself a vector does not move
        expected[3 * j : 3 * j + 3, 3 * j : 3 * j + 3] += np.outer(u, u)
    found = significance._normal_equations(np.array(orders), norms, vectors, weights)
    # central differences with steps of 1e-6 have nine digits
    assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n_rows", [24, 48])  # groups are kept as rows, and as moments
def test_influence_is_the_derivative_of_the_cumulant_in_a_groups_weight(n_rows, monkeypatch, rng):
    monkeypatch.setattr(significance, "GROUPS", 4)
    X = rng.exponential(size=(n_rows, 3)) @ rng.standard_normal((3, 3)) + 5
    # mirrored rows have no third moment, through which alone a group's mean would count
    X = np.vstack([X[: n_rows // 2], 10 - X[: n_rows // 2]])
    groups = RowGroups(X)
    assert groups.n_groups == 4
    vectors = rng.standard_normal((3, 2))
    found = groups.influence(vectors)
    dealt = [np.arange(n_rows)[i::4] for i in range(4)]
    for k, u in enumerate(vectors.T):
        expected = naive.group_influence(X, dealt, u)
        assert_allclose(found[:, :, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("n_rows", [24, 48])
def test_influence_on_the_third_cumulant_follows_the_mean(n_rows, monkeypatch, rng):
    monkeypatch.setattr(significance, "GROUPS", 4)
    X = rng.exponential(size=(n_rows, 3)) @ rng.standard_normal((3, 3)) + 5
    vectors = rng.standard_normal((3, 2))
    found = RowGroups(X).influence(vectors, 3)
    dealt = [np.arange(n_rows)[i::4] for i in range(4)]
    for k, u in enumerate(vectors.T):
        expected = naive.group_influence(X, dealt, u, order=3)
        # the covariance is the mean of the groups', about the mean of all
        assert_allclose(found[:, :, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_groups_of_given_rows_count_by_their_rows(rng):
    X = rng.exponential(size=(60, 3)) @ rng.standard_normal((3, 3)) + 5
    X = np.vstack([X, 10 - X])  # no third moment
    codes = np.repeat([0, 1, 2, 3, 0, 1, 2, 3], [10, 5, 15, 30] * 2)
    groups = RowGroups(X, labels=Groups(codes, ("a", "b", "c", "d")))
    vectors = rng.standard_normal((3, 2))
    found = groups.influence(vectors)
    members = [np.flatnonzero(codes == i) for i in range(4)]
    # what the cumulant changes by when a group counts more, times four, so that the mean is the change
    shares = np.array([len(part) / len(X) for part in members])
    for k, u in enumerate(vectors.T):
        own = naive.group_influence(X, members, u)
        expected = (own - shares @ own) * shares[:, None] * 4
        assert_allclose(found[:, :, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert_allclose(groups._counts, shares * 4, rtol=1e-12)


def test_equal_groups_in_turn_are_those_that_rows_are_assigned_to(monkeypatch, rng):
    monkeypatch.setattr(significance, "GROUPS", 4)
    X, vectors = rng.exponential(size=(24, 3)), rng.standard_normal((3, 2))
    labelled = RowGroups(X, labels=Groups(np.arange(24) % 4, tuple("abcd")))
    for order in (3, 4):
        expected = RowGroups(X).influence(vectors, order)
        assert_allclose(labelled.influence(vectors, order), expected, rtol=1e-10, atol=1e-12)


def test_rows_that_are_repeated_do_not_make_a_weight_more_significant():
    data = make_synthetic(4, n_samples=2000, random_state=0)
    X, Y = data.foreground, data.background
    many, codes = [np.repeat(rows, 9, axis=0) for rows in (X, Y)], np.arange(18_000) // 9
    vectors = np.column_stack([data.A, data.B])

    def t_values(rows, groups):
        problem = JointProblem.of(*map(cumulants, rows), rows=rows)
        found = [RowGroups(part, problem.whiten, labels=groups) for part in rows]
        start = problem.whiten.T @ vectors
        fit = descend(problem.terms, start, np.ones((2, start.shape[1]), dtype=bool), 300, 1e-6)
        return np.abs(weight_t_values(found, problem.terms, fit.vectors, fit.weights).t_values)

    once = np.median(t_values((X, Y), None))
    repeated = np.median(t_values(tuple(many), Groups(codes, tuple(map(str, range(2000))))))
    naively = np.median(t_values(tuple(many), None))
    assert repeated < 1.5 * once  # other groups of rows, so the same to within chance
    assert naively > 2 * once  # √9 where rows are taken for independent


def test_groups_kept_as_moments_and_as_rows_have_the_same_influence(monkeypatch, rng):
    monkeypatch.setattr(significance, "GROUPS", 4)  # of so few none is trimmed
    X, axes = rng.exponential(size=(200, 4)), rng.standard_normal((4, 3))
    vectors = rng.standard_normal((3, 6))
    packed, plain = RowGroups(X, axes), RowGroups(X, axes)
    assert "images" in packed._moments[4].__qualname__
    seen = (X - X.mean(axis=0)) @ axes
    plain._moments = significance._moments_of_rows([seen[i::4] for i in range(4)])
    for order in (3, 4):
        found, expected = (part.influence(vectors, order) for part in (packed, plain))
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert_allclose(found.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize(("n", "count"), [(3, 2), (10, 5), (80, 40), (1000, 40)])
def test_every_group_has_a_row_and_there_are_at_most_forty(n, count, rng):
    groups = RowGroups(rng.laplace(size=(n, 2)))
    assert groups.n_groups == count
    assert np.isfinite(groups.influence(np.eye(2))).all()


@pytest.mark.parametrize("count", [2, 4, 9, 10, 40])
def test_means_and_errors_are_trimmed_ones(count, rng):
    values = rng.standard_t(2, size=(3, count))
    centre, error = significance._trimmed(values)
    assert_allclose(centre, trim_mean(values, significance.TRIM, axis=1), rtol=1e-12)
    for row, mean, square in zip(values, centre, error, strict=True):
        expected = naive.trimmed_mean_and_error(list(row), significance.TRIM)
        assert_allclose((mean, square), expected, rtol=1e-12)


def test_the_critical_t_value_is_exceeded_as_often_as_it_says(rng):
    """By the trimmed means of normal groups, of 20 000 weights; Student's t is Yuen's approximation."""
    centre, error = significance._trimmed(rng.standard_normal((20_000, 40)))
    for level in (0.2, 0.05, 0.01):
        beyond = np.mean(np.abs(centre / np.sqrt(error)) > critical_t_value(1, 40, level))
        assert 0.8 * level < beyond < 1.4 * level


def test_more_weights_and_fewer_groups_ask_for_more():
    assert (
        critical_t_value(1, 40, 0.05)
        < critical_t_value(10, 40, 0.05)
        < critical_t_value(10, 8, 0.05)
    )
    assert critical_t_value(10, 40, 0.01) > critical_t_value(10, 40, 0.05)
    assert_allclose(2 * 10 * student.sf(critical_t_value(10, 40, 0.05), 40 - 16 - 1), 0.05)
    assert np.isfinite(critical_t_value(4, 2, 0.01))  # two groups leave one degree of freedom


# --- scores ---


@pytest.mark.slow
def test_scores_are_standard_for_zero_weights_and_large_for_patterns():
    """Weights of salient patterns in the background are zero, all others are not."""
    zeros, others = [], []
    for seed in range(12):
        data = make_synthetic(5, n_samples=30_000, random_state=seed)
        scores = scores_at_the_truth(
            data.foreground, data.background, np.column_stack([data.A, data.B])
        )
        zeros.extend(scores[1, 5:])
        others.append(np.abs(scores).max(axis=0))
    zeros = np.array(zeros)
    assert zeros.size == 48
    # a standard deviation from 48 numbers is off by a tenth
    assert 0.7 < zeros.std() < 1.4
    assert np.abs(zeros).max() < critical_t_value(zeros.size, 40, 0.01)
    assert np.median(others) > 2 * critical_t_value(18, 40, 0.01)
    assert np.mean(np.array(others) > critical_t_value(18, 40, 0.01)) > 0.95


def test_one_wild_row_does_not_hide_a_pattern(monkeypatch):
    data = make_synthetic(4, n_samples=50_000, random_state=0)
    patterns = np.column_stack([data.A, data.B])
    needed = critical_t_value(14, 40, 0.01)
    salient = 5  # the second column of B
    clean = scores_at_the_truth(data.foreground, data.background, patterns)
    assert clean[0, salient] > 2 * needed
    X = data.foreground.copy()
    X[7] = X.mean(axis=0) + 60 * data.B[:, 1]
    wild = scores_at_the_truth(X, data.background, patterns)
    assert_allclose(wild[0, 4:], clean[0, 4:], rtol=0.2)
    # without trimming, that row is most of the weight and all of its error
    monkeypatch.setattr(significance, "TRIM", 0.0)
    assert scores_at_the_truth(X, data.background, patterns)[0, salient] < 2


def test_the_units_of_the_variables_do_not_change_scores(rng):
    data = make_synthetic(4, n_samples=20_000, random_state=0)
    patterns = np.column_stack([data.A, data.B])
    plain, scaled = (
        scores_at_the_truth(data.foreground * s, data.background * s, s[:, None] * patterns)
        for s in (np.ones(4), np.array([1e3, 0.02, 5.0, 1.0]))
    )
    assert_allclose(scaled, plain, rtol=1e-4)


def test_scores_grow_with_the_root_of_the_rows():
    ratios = []
    for seed in range(5):
        data = make_synthetic(4, n_samples=80_000, random_state=seed)
        patterns = np.column_stack([data.A, data.B])
        few, many = (
            scores_at_the_truth(data.foreground[:n], data.background[:n], patterns)
            for n in (20_000, 80_000)
        )
        ratios.append(np.median(np.abs(many[0] / few[0])))
    assert 1.6 < np.median(ratios) < 2.5


def minima(X, Y, patterns, others):
    """The fits that two sets of vectors lead to, the groups and the terms."""
    problem = JointProblem.of(cumulants(X), cumulants(Y), rows=(X, Y))
    groups = [RowGroups(rows, problem.whiten) for rows in (X, Y)]
    mask = contrast_mask(4, 3)
    fits = [
        descend(problem.terms, problem.whiten.T @ start, mask, 2000, 1e-9)
        for start in (patterns, others)
    ]
    return groups, problem.terms, fits


@pytest.mark.slow
def test_the_standard_error_of_a_gain_is_that_of_new_rows():
    """Over fresh samples the gain of one minimum over another varies as the rows of one say."""
    gains, errors = [], []
    for seed in range(60):
        data = make_synthetic(4, n_samples=20000, random_state=np.random.default_rng(0))
        rng = np.random.default_rng(seed)
        X, Y = (
            rows[rng.integers(len(rows), size=len(rows))]
            for rows in (data.foreground, data.background)
        )
        truth = np.column_stack([data.A, data.B])
        swapped = truth[:, [0, 1, 2, 4, 3, 5, 6]]
        groups, terms, (first, second) = minima(X, Y, swapped, truth)
        gain = first.objective - second.objective
        gains.append(gain)
        errors.append(gain / gain_t_value(groups, terms, first, second))
    assert 0.7 < np.median(errors) / np.std(gains, ddof=1) < 1.4


def test_two_equal_fits_have_no_gain():
    data = make_synthetic(4, n_samples=2000, random_state=0)
    truth = np.column_stack([data.A, data.B])
    groups, terms, (first, second) = minima(data.foreground, data.background, truth, truth)
    assert gain_t_value(groups, terms, first, second) == 0
