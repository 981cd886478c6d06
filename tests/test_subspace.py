import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from contrica import ContrastiveICA, PatternWarning
from contrica.datasets import load_digits_on_photos
from contrica.metrics import pattern_cosines, pattern_similarity
from contrica.moments.fourth import cumulants
from contrica.rows.groups import as_groups
from contrica.solvers import permutation_null, row_design, wide_null
from contrica.solvers.contrast_directions import contrast_axes, floor_of
from contrica.solvers.group_design import GroupDesign, GroupSums
from contrica.solvers.permutation_null import choose_dimension, count_directions
from contrica.solvers.problem import Problem
from contrica.solvers.row_design import RowDesign
from contrica.solvers.subspace import subspace_ica
from contrica.solvers.varying import only_shifted, varies_more
from tests import naive
from tests.said import warns


def simulated(n, p, seed, n_salient=2):
    """Heavy-tailed background in all directions, two-valued sources in the foreground alone."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p))
    B = rng.standard_normal((p, n_salient))
    sources = rng.choice([-1.0, 1.0], (n, n_salient)) * 3
    X = rng.standard_t(5, (n, p)) @ A.T + sources @ B.T
    return X, rng.standard_t(5, (n, p)) @ A.T, B / np.linalg.norm(B, axis=0)


def test_axes_are_those_oflargest_ratio(rng):
    X, Y = rng.standard_normal((300, 5)) * [4, 1, 1, 1, 2], rng.standard_normal((300, 5))
    fore, back = np.cov(X.T), np.cov(Y.T)
    ratios, axes = contrast_axes(fore, back, 300)
    damped = back + np.trace(back) / 300 * np.eye(5)
    assert np.all(np.diff(ratios) <= 0)
    assert_allclose(fore @ axes, damped @ axes * ratios, atol=1e-9)
    for _ in range(50):
        w = rng.standard_normal(5)
        assert w @ fore @ w / (w @ damped @ w) <= ratios[0] + 1e-9


def test_the_dimension_is_that_of_the_planted_contrast():
    X, Y, _ = simulated(3000, 8, 0)
    assert choose_dimension(X, Y, rng=np.random.default_rng(0)).chosen == 2


@pytest.mark.slow
def test_two_halves_of_one_dataset_have_no_contrast():
    """Over draws, at level 1/21; heavy tails make single draws unequal but exchangeable."""
    counts = []
    for seed in range(20):
        _, Y, _ = simulated(2000, 6, seed)
        counts.append(choose_dimension(Y[:1000], Y[1000:], rng=np.random.default_rng(seed)).chosen)
    assert np.sum(np.array(counts) > 0) <= 4  # 1 expected


def test_planted_sources_are_found_where_variances_only_find_their_plane():
    similarities = []
    for seed in range(10):
        X, Y, B = simulated(5000, 8, seed)
        fore, back = cumulants(X), cumulants(Y)
        found = subspace_ica(fore, back, X, 2, rng=np.random.default_rng(0))
        similarities.append(pattern_similarity(found.foreground.vectors, B))
        assert found.foreground.weights.max() < 0  # two-valued sources
    assert np.median(similarities) > 0.98


def test_patterns_and_filters_belong_together():
    X, Y, _ = simulated(3000, 6, 1)
    model = ContrastiveICA(None, solver="subspace", n_foreground=2).fit(X, background=Y)
    # the filter of a pattern recovers its source, which is uncorrelated with the other one
    scores = (X - X.mean(axis=0)) @ model.filters_.T
    correlation = np.corrcoef(scores.T)[0, 1]
    assert abs(correlation) < 1e-6
    assert_allclose(np.sum(model.filters_ * model.components_, axis=1), 1)


def test_the_answer_does_not_depend_on_units():
    X, Y, _ = simulated(4000, 5, 2)
    M = np.random.default_rng(9).standard_normal((5, 5))
    one, two = (
        subspace_ica(
            cumulants(a), cumulants(b), a, 2, rng=np.random.default_rng(0)
        ).foreground.vectors
        for a, b in ((X, Y), (X @ M.T, Y @ M.T))
    )
    back = np.linalg.solve(M, two)
    # the ridge, of the size of sampling error, is all that depends on them
    assert pattern_similarity(back / np.linalg.norm(back, axis=0), one) > 0.999


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_digits_are_found_in_the_demo(seed):
    """Where the paper's algorithm finds one; no labels involved."""
    data = load_digits_on_photos(random_state=seed)
    model = ContrastiveICA(2, solver="subspace", random_state=0)
    model.fit(data.foreground, background=data.background)
    cosines = pattern_cosines(model.components_.T, data.patterns.T)
    assert max(np.diag(cosines).min(), np.diag(cosines[::-1]).min()) > 0.95
    assert model.n_background_ == 0
    assert model.background_components_.shape == (0, 64)
    assert 2 <= model.n_foreground_ <= 30


def test_no_contrast_is_said_and_candidates_are_returned():
    _, Y, _ = simulated(2000, 6, 3)
    with pytest.warns(
        PatternWarning, match="no direction has a larger contrast ratio than rows permuted"
    ):
        model = ContrastiveICA(2, solver="subspace", random_state=0).fit(
            Y[:1000], background=Y[1000:]
        )
    assert model.n_foreground_ == 0
    assert model.components_.shape == (2, 6)


def test_impossible_dimensions_are_refused(rng):
    data = cumulants(rng.laplace(size=(50, 3)))
    with pytest.raises(ValueError, match="n_dimensions=4 is more than the 3"):
        subspace_ica(data, data, rng.laplace(size=(50, 3)), 4, rng=rng)


def test_non_convergence_is_told(rng):
    X, Y, _ = simulated(500, 6, 4)
    with pytest.warns(ConvergenceWarning, match="n_foreground, the dimension"):
        subspace_ica(cumulants(X), cumulants(Y), X, 6, rng=rng, max_iter=1)


def test_fits_are_the_same_for_the_same_seed():
    X, Y, _ = simulated(1000, 5, 5)
    one, two = (
        ContrastiveICA(2, solver="subspace", random_state=1).fit(X, background=Y) for _ in range(2)
    )
    assert_allclose(one.components_, two.components_, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
def test_few_rows_and_constant_columns_leave_fewer_patterns(rng):
    X, Y = rng.laplace(size=(8, 20)), rng.laplace(size=(8, 20))
    with pytest.warns(PatternWarning, match="varies in 7 directions"):
        model = ContrastiveICA(None, solver="subspace", n_foreground=12, n_pcs=None)
        model.fit(X, background=Y)
    assert model.components_.shape == (7, 20)
    X, Y, _ = simulated(500, 5, 6)
    X[:, 2] = 1.0
    with pytest.warns(PatternWarning, match="varies in 4 directions"):
        model = ContrastiveICA(None, solver="subspace", n_foreground=5).fit(X, background=Y)
    assert np.isfinite(model.components_).all()


def test_a_background_that_does_not_vary_leaves_the_order_to_the_foreground():
    ratios, axes = contrast_axes(np.diag([1.0, 4.0]), np.zeros((2, 2)), 10)
    assert_allclose(np.abs(axes[:, 0] / np.linalg.norm(axes[:, 0])), [0, 1], atol=1e-12)
    assert ratios[0] > ratios[1] > 0


def test_one_source_comes_first_and_what_was_to_spare_after_it():
    X, Y, B = simulated(4000, 6, 7, n_salient=1)
    model = ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y)
    assert model.n_foreground_ == 1
    assert pattern_similarity(model.components_[:1].T, B) > 0.99
    assert model.source_ratio_[0] > 2 * model.source_ratio_[1]
    # two are sought at most, one of them to spare
    with pytest.warns(PatternWarning, match="n_components=2 .* only 1 can be returned"):
        ContrastiveICA(2, solver="subspace", n_foreground=1).fit(X, background=Y)


def test_the_ratio_is_that_of_the_filter_and_counts_a_shift_of_the_mean():
    X, Y, _ = simulated(2000, 5, 0)
    X += np.array([0.0, 3.0, 0.0, -1.0, 0.5])
    found = subspace_ica(cumulants(X), cumulants(Y), X, 3, rng=np.random.default_rng(0))
    for b, ratio in zip(found.foreground.vectors.T, found.ratio, strict=True):
        f = np.linalg.solve(np.cov(X.T), b)
        energy = np.mean((X @ f - np.mean(Y @ f)) ** 2)
        assert_allclose(ratio, energy / np.var(Y @ f), rtol=1e-6)


def test_a_source_that_is_always_on_is_ranked_by_its_shift(rng):
    """It hardly varies more than the background does there, but is never at the background's mean."""
    n = 4000
    X, Y = rng.laplace(size=(n, 5)), rng.laplace(size=(n, 5))
    X[:, 0] += 5 + 1.5 * rng.choice([-1, 1], n)
    X[:, 1] += 3 * rng.choice([-1, 1], n)
    model = ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y)
    assert_allclose(np.abs(model.components_), np.eye(5)[:2], atol=0.1)
    still = ContrastiveICA(2, solver="subspace", random_state=0)
    still.fit(X - X.mean(axis=0), background=Y - Y.mean(axis=0))
    assert_allclose(np.abs(still.components_), np.eye(5)[[1, 0]], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.5, 0.7, 3.0])
def test_the_dimension_does_not_hang_on_the_permutations(strength):
    """One strong source and one that is weak, doubtful or strong; twenty generators."""
    rng = np.random.default_rng(3)
    X, Y = rng.laplace(size=(1000, 6)), rng.laplace(size=(1000, 6))
    X[:, :2] += rng.choice([-1.0, 1.0], (1000, 2)) * [6.0, strength]
    counts = {choose_dimension(X, Y, rng=np.random.default_rng(seed)).chosen for seed in range(20)}
    assert counts == ({2} if strength == 3.0 else {1})


@pytest.mark.parametrize("grouped", [False, True])
def test_p_values_are_those_of_the_slow_twin(grouped):
    """Every direction projected out of the rows themselves, and all eigenvalues of every permutation."""
    rng = np.random.default_rng(5)
    X, Y = rng.laplace(size=(60, 4)), rng.laplace(size=(48, 4))
    X[:, :2] *= [3.0, 1.6]
    design = RowDesign(X, [Y])
    if grouped:
        groups = [as_groups(np.arange(len(part)) // 12 + first, len(part), "groups", "X")
                  for part, first in ((X, 0), (Y, 5))]  # fmt: skip
        sums = [GroupSums.of(part, own) for part, own in zip((X, Y), groups, strict=True)]
        design = GroupDesign(GroupSums.stacked(sums), 5)
    found = count_directions(design, rng=np.random.default_rng(0), n_permutations=199)
    splits = list(design.splits(199, np.random.default_rng(0)))
    expected = naive.sequential_p_values(
        [(part.fore, part.back, part.floor_within) for part in splits], level=0.05
    )
    assert found.n_assignments == len(splits) == (126 if grouped else 200)
    assert_allclose(found.p_values, expected)
    assert len(found.p_values) >= 2
    assert found.chosen == np.sum(found.p_values <= 0.05)


def wide_design(kind):
    """Rows over 160 variables, of which 3 directions are new; as many as say the kind."""
    rng = np.random.default_rng(7)
    n, m = {"fewer in X": (150, 260), "few rows": (60, 50)}.get(kind, (300, 200))
    A, B = rng.standard_normal((3, 160)), rng.standard_normal((3, 160))
    X, Y = (rng.laplace(size=(k, 3)) @ A + rng.standard_normal((k, 160)) for k in (n, m))
    X += 2.0 * rng.laplace(size=(n, 3)) @ B + 5.0
    if kind == "beyond singles":
        X, Y = 1e25 * X, 1e25 * Y
    if kind == "wild row":
        X[0] *= 1e7
    codes = np.arange(n + m) % 3 if kind == "strata" else None
    covariances = [np.cov(part.T) for part in (X, Y)] if kind == "covariances known" else None
    return RowDesign(X, [Y], codes, covariances)


WIDE = [
    "plain",
    "fewer in X",
    "few rows",
    "strata",
    "beyond singles",
    "wild row",
    "covariances known",
]


@pytest.mark.parametrize("kind", WIDE)
def test_many_variables_have_the_null_of_their_covariances(kind, monkeypatch):
    """Lanczos' iteration through the rows, to the end, against all eigenvalues of every covariance."""
    design = wide_design(kind)
    assert wide_null.is_wide(design, 59)
    for name in ("ENOUGH", "SINGLE"):
        monkeypatch.setattr(wide_null, name, wide_null.DOUBLE)
    monkeypatch.setattr(wide_null, "MAX_SINGLES", 0)
    count = partial(count_directions, design, n_permutations=59)
    found = count(rng=np.random.default_rng(1))
    monkeypatch.setattr(permutation_null, "is_wide", lambda *given: False)
    expected = count(rng=np.random.default_rng(1))
    assert_allclose(found.p_values, expected.p_values)
    # a row that is 10⁷ others leaves half of the digits
    tolerance = 1e-3 if kind == "wild row" else 1e-7
    for own, other in zip(found[4:6] + found[9:], expected[4:6] + expected[9:], strict=True):
        assert_allclose(own, other, rtol=tolerance)
    assert_allclose(found.ratios, expected.ratios, rtol=1e-6)
    assert found.chosen == expected.chosen
    assert found.n_assignments == expected.n_assignments == 60


@pytest.mark.parametrize("kind", WIDE)
def test_many_variables_have_quick_p_values_and_a_null_within_its_error(kind, monkeypatch):
    """In single precision, and no longer than it takes to tell ratios from the observed one."""
    design = wide_design(kind)
    found = count_directions(design, rng=np.random.default_rng(1), n_permutations=199)
    monkeypatch.setattr(permutation_null, "is_wide", lambda *given: False)
    expected = count_directions(design, rng=np.random.default_rng(1), n_permutations=199)
    assert_allclose(found.p_values, expected.p_values)
    error = expected.null_deviation / np.sqrt(expected.n_assignments)
    assert_allclose(found.null_mean, expected.null_mean, atol=error / 2)
    assert_allclose(found.null_quantile, expected.null_quantile, rtol=0.01)


def test_no_permutation_has_its_second_ratio_taken_for_its_largest():
    """From a single random start one of these permutations, of 123, has a ratio 3 % too small."""
    rng = np.random.default_rng(0)
    design = RowDesign(rng.standard_normal((60, 200)), [rng.standard_normal((90, 200))])
    observed = np.array([3.3])  # beyond all permutations
    found = wide_null.WideNull(design, 150, np.random.default_rng(3)).largest(observed)
    splits = design.splits(150, np.random.default_rng(3))
    expected = permutation_null.CovarianceNull(splits).largest(np.zeros(200))
    assert expected[1:].max() < observed
    # what residuals of a hundredth leave, of ratios that are far from the observed one
    assert_allclose(found[1:], expected[1:], rtol=5e-3)


def test_permutations_that_products_do_not_resolve_have_their_covariances_formed(monkeypatch):
    design = wide_design("plain")
    expected = count_directions(design, rng=np.random.default_rng(1), n_permutations=59)
    monkeypatch.setattr(wide_null, "MAX_PRODUCTS", 4)
    found = count_directions(design, rng=np.random.default_rng(1), n_permutations=59)
    assert_allclose(found.p_values, expected.p_values)
    assert_allclose(found.null_mean, expected.null_mean, rtol=1e-3)


def test_a_split_takes_little_more_than_its_covariances():
    """Each is made in place: two covariances, two sums of products, and one matrix at a time."""
    p = 300
    X, Y = np.random.default_rng(0).standard_normal((2, 90, p))
    design = RowDesign(X, [Y])
    tracemalloc.start()
    try:
        design.observed()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # blocks of rows besides; with stacks of both it was more than eight matrices
    assert peak < 6 * 8 * p**2


def test_covariances_of_other_rows_are_not_taken_for_theirs(rng):
    X, Y = rng.laplace(size=(60, 5)), rng.laplace(size=(50, 5))
    other = [np.cov(part.T) * np.r_[1.1, np.ones(4)] for part in (X, Y)]
    own, known = RowDesign(X, [Y]).observed(), RowDesign(X, [Y], None, other).observed()
    assert_allclose(known.fore, own.fore)
    right = RowDesign(X, [Y], None, [np.cov(part.T) for part in (X, Y)]).observed()
    assert_allclose(right.fore, own.fore, atol=1e-12)
    assert_allclose(right.back, own.back, atol=1e-12)


def test_permuted_sets_are_taken_about_their_own_means(rng):
    """Their covariances are those of the rows assigned to each, recomputed by numpy."""
    X, Y = rng.laplace(size=(30, 3)) + 5, rng.laplace(size=(20, 3))
    design = RowDesign(X, [Y])
    rows = np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)])
    whole = rows.T @ rows
    for part in design.splits(20, np.random.default_rng(0)):
        # within both, and between their means: what is left of all rows' squares
        inside = 30 * part.fore + 20 * part.back
        shift = np.linalg.eigvalsh(whole - inside)
        assert_allclose(shift[:2], 0, atol=1e-9)
        assert shift[2] > -1e-9
    observed = next(iter(design.splits(2, np.random.default_rng(0))))
    assert_allclose(observed.fore, np.cov(X.T, ddof=0), atol=1e-12)
    assert_allclose(observed.back, np.cov(Y.T, ddof=0), atol=1e-12)


@pytest.mark.parametrize("few", [0, 10**6])
def test_rows_are_permuted_within_strata(few, monkeypatch):
    """A stratum of the foreground alone stays there: its variance is in no permuted background."""
    monkeypatch.setattr(row_design, "FEW_ROWS", few)
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((300, 3)), rng.standard_normal((300, 3))
    X[200:, 0] *= 30
    strata = np.r_[np.zeros(200), np.ones(100), np.zeros(300)].astype(int)
    for codes, is_kept in ((strata, True), (None, False)):
        backs = [part.back[0, 0] for part in RowDesign(X, [Y], codes).splits(30, rng)]
        assert (max(backs) < 2) == is_kept


@pytest.mark.parametrize(("n", "m"), [(1500, 1000), (150, 3001), (3001, 150)])
def test_batches_of_rows_are_permuted_as_rows_are(n, m, monkeypatch):
    """The null is the same, whether rows are permuted or batches of them; sizes do not matter."""
    rng = np.random.default_rng(1)
    rows = rng.laplace(size=(n + m, 4))
    stacked = RowDesign(rows[:n], [rows[n:]])
    rows = stacked.take(np.arange(n + m))
    for part in (rows[:n], rows[n:]):
        assert_allclose(part.mean(axis=0), 0, atol=1e-12)
    chances = []
    for few in (0, 10**6):
        monkeypatch.setattr(row_design, "FEW_ROWS", few)
        monkeypatch.setattr(row_design, "BATCHES", 300)
        permuted = list(stacked.splits(1000, np.random.default_rng(2)))[1:]
        whole = rows.T @ rows
        chances.append(
            [permutation_null.largest_ratio(each.fore, each.back, 0.0) - 1 for each in permuted]
        )
        for each in permuted[:5]:
            assert_allclose(n * each.fore + m * each.back, whole, rtol=0.1, atol=50)
    batches, single = np.array(chances)
    assert_allclose(batches.mean(), single.mean(), rtol=0.08)  # one partition varies by 2 %
    assert_allclose(batches.std(), single.std(), rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "p"), [(999, 999, 8), (1000, 1000, 8), (100, 8000, 60)])
def test_no_contrast_is_found_whatever_the_sizes(n, m, p):
    found = []
    for seed in range(10):
        rows = np.random.default_rng(seed).laplace(size=(n + m, p))
        found.append(choose_dimension(rows[:n], rows[n:], rng=np.random.default_rng(0)).chosen)
    assert np.sum(np.array(found) > 0) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("strength", [5.0, 25.0])
@pytest.mark.parametrize(("n", "m"), [(400, 400), (600, 150), (100, 400), (150, 60)])
def test_a_strong_pattern_among_many_variables_is_one_pattern(strength, n, m):
    """However much of the variance it takes: the noise around it is what it was."""
    counts = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = rng.uniform(-1, 1, (n, 80)), rng.uniform(-1, 1, (m, 80))
        X += strength * rng.choice([-1.0, 1.0], (n, 1)) * (np.arange(80) < 10)
        counts.append(choose_dimension(X, Y, rng=rng, n_permutations=50).chosen)
    assert counts == [1] * 5


@pytest.mark.parametrize(("n", "m", "wild"), [(4000, 4, 1e9), (2000, 8, 1e9)])
def test_an_outlying_row_is_no_pattern(n, m, wild):
    """Nearly every permutation has it in the foreground too; rounding errors are larger than the data."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, 10)), rng.standard_normal((m, 10))
    X[0] *= wild
    found = choose_dimension(X, Y, rng=np.random.default_rng(0))
    assert found.chosen == 0
    assert found.p_values[0] > 0.1


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_background_that_does_not_vary_leaves_all_directions_of_the_foreground(rng, offset):
    X = rng.standard_cauchy((50, 12)) @ rng.standard_normal((12, 30))
    assert choose_dimension(X, np.full((50, 30), offset), rng=rng).chosen == 12


def test_thelargest_ratio_is_the_first_of_all(rng):
    fore, back = np.cov(rng.laplace(size=(50, 4)).T), np.cov(rng.laplace(size=(60, 4)).T)
    floor = floor_of(fore, back, 60)
    assert_allclose(
        permutation_null.largest_ratio(fore, back, floor), contrast_axes(fore, back, 60)[0][0]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_background": 3}, "looks for no background patterns"),
        ({"n_foreground": 7}, "n_foreground=7 is more than the 5 dimensions"),
    ],
)
def test_parameters_without_meaning_are_refused(options, message):
    X, Y, _ = simulated(300, 5, 8)
    with pytest.raises(ValueError, match=message):
        ContrastiveICA(2, solver="subspace", **options).fit(X, background=Y)


def fan(n, seed):
    """Two things that vary in strength and in shape, in noise; the middle of each is its pattern."""
    rng = np.random.default_rng(seed)
    p = 12
    noise = rng.laplace(size=(2 * n, p)) @ rng.standard_normal((p, p)).T / 4
    X, Y, middles = noise[:n].copy(), noise[n:], []
    for first in (0, 6):
        edges = np.zeros((3, p))
        edges[:, first : first + 6] = rng.uniform(0.5, 3, (3, 6))
        shapes = rng.dirichlet([0.5, 0.5, 0.5], n)
        X += rng.uniform(0, 3, (n, 1)) * (shapes @ edges)
        middles.append(edges.mean(axis=0))
    return X, Y, np.array(middles)


def test_equal_means_leave_the_patterns_to_the_rotation():
    rng = np.random.default_rng(4)
    X, Y = rng.laplace(size=(2, 5000, 8))
    X[:, :3] += 3 * rng.choice([-1.0, 1.0], (5000, 3)) * np.exp(rng.standard_normal((5000, 1)) / 2)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    one, two = (
        ContrastiveICA(2, solver="subspace", random_state=0).fit(rows, background=Y)
        for rows in (X, X + 1e-12)
    )
    assert pattern_similarity(one.components_.T, two.components_.T) > 1 - 1e-6


def test_first_patterns_do_not_depend_on_how_many_are_kept():
    X, Y, _ = fan(4000, 1)
    fits = {
        kept: ContrastiveICA(kept, solver="subspace", random_state=0).fit(X, background=Y)
        for kept in ("auto", None, 1, 3, 9)
    }
    count = fits["auto"].n_foreground_
    assert len(fits["auto"].components_) == count
    assert count <= len(fits[None].components_) <= count + 1  # one to spare, beside the clearest
    whole = fits[9]
    assert len(whole.components_) == 9
    for model in fits.values():
        n = min(len(model.components_), 9)
        assert_allclose(model.components_, whole.components_[:n], atol=1e-9)
    scores = whole.transform(X)
    assert np.abs(np.corrcoef(scores.T) - np.eye(9)).max() < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_shift_of_the_mean_does_not_come_before_the_pattern_that_was_tested(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.laplace(size=(2, 2000, 20))
    X[:, 0] += 4
    X[:, 5] += 2 * rng.choice([-1, 1], 2000)
    model = ContrastiveICA(None, solver="subspace", random_state=0).fit(X, background=Y)
    assert model.n_foreground_ == 1
    leading = np.abs(model.components_).argmax(axis=1)
    assert (leading[0], leading[-1]) == (5, 0)
    assert model.source_ratio_[-1] > model.source_ratio_[0] > 2
    assert_array_equal(np.flatnonzero(model.only_shifted_), [len(leading) - 1])
    lines = [line for line in model.summary().splitlines() if line.startswith("pattern ")]
    told = [line.endswith(" (a shift of the mean, ranked last)") for line in lines]
    assert_array_equal(told, model.only_shifted_)
    assert model.left_out_shifts_.shape == (0, 20)
    assert "left out" not in model.summary()


def test_a_shift_that_is_not_kept_is_told():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2, 2000, 4))
    X[:, 0] += 4
    X[:, 2] += 2 * rng.choice([-1, 1], 2000)
    names = ["alpha", "beta", "gamma", "delta"]
    X, Y = (pd.DataFrame(rows, columns=names) for rows in (X, Y))
    model = ContrastiveICA(random_state=0).fit(X, background=Y)
    assert model.only_shifted_.tolist() == [False]
    shifts = (X.mean() - Y.mean()) / Y.std()
    # the filter also picks up what chance shifts the other variables by
    assert_allclose(model.left_out_shifts_, shifts.to_numpy()[None], atol=0.1)
    (told,) = [line for line in model.summary().splitlines() if line.startswith("left out")]
    assert told.startswith(f"left out: a shift of the mean, led by alpha +{shifts['alpha']:.1f} sd")
    other = ContrastiveICA(random_state=0).fit(X.to_numpy()[:, 1:], background=Y.to_numpy()[:, 1:])
    assert other.left_out_shifts_.size == 0


def problem_of(X, Y, labels=None):
    """What a solver is given, in the coordinates that the rows are in."""
    groups = (None, None)
    if labels is not None:
        groups = tuple(
            as_groups(own, len(rows), "groups", "X")
            for own, rows in zip(labels, (X, Y), strict=True)
        )
    return Problem(cumulants(X), (cumulants(Y),), (X, Y), (None, None), groups)


@pytest.mark.parametrize("tails", ["laplace", "normal"])
def test_what_varies_more_is_what_permuted_rows_say(tails):
    rng = np.random.default_rng(0)
    strengths = np.linspace(0.9, 1.35, 10)
    X = getattr(rng, tails)(size=(600, 10)) * strengths + 3
    Y = getattr(rng, tails)(size=(400, 10))
    told = varies_more(problem_of(X, Y), 7 * np.eye(10))
    both = np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)])
    own = np.arange(1000) < 600
    masks = [own, *(rng.permutation(own) for _ in range(999))]
    p_values = np.array([naive.ratio_p_value(scores, masks) for scores in both.T])
    clear = (p_values < 0.03) | (p_values > 0.08)
    assert clear.sum() >= 8
    assert 2 <= told.sum() <= 8
    assert_array_equal(told[clear], p_values[clear] < 0.05)


@pytest.mark.parametrize("sizes", [(20,), (400, 20), (20, 20, 20)])
def test_as_many_vary_more_by_chance_as_the_level_says(sizes):
    """Several backgrounds count by their rows, and few rows leave few degrees of freedom."""
    rng = np.random.default_rng(0)
    X, *backs = (rng.standard_normal((n, 400)) for n in (600, *sizes))
    none = (None,) * (1 + len(backs))
    problem = Problem(cumulants(X), tuple(map(cumulants, backs)), (X, *backs), none)
    assert 0.01 <= varies_more(problem, np.eye(400)).mean() <= 0.09


@pytest.mark.parametrize("paired", [False, True])
def test_what_varies_more_is_what_permuted_groups_say(paired):
    rng = np.random.default_rng(1)
    labels = [np.repeat(np.arange(6) + (0 if paired else 10 * i), 30) for i in range(2)]
    X, Y = rng.laplace(size=(2, 180, 8))
    X *= np.linspace(0.8, 1.4, 8)
    X += rng.standard_normal((6, 8))[labels[0] % 10]
    Y += rng.standard_normal((6, 8))[labels[1] % 10]
    problem = problem_of(X, Y, labels)
    told = varies_more(problem, np.eye(8))
    both = np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)])
    of_row = np.concatenate([labels[0] % 10, 6 + labels[1] % 10])
    masks = [mask[of_row] for mask in problem.design.assignments(999, rng)]
    assert len(masks) == (64 if paired else 924)
    p_values = np.array([naive.ratio_p_value(scores, masks) for scores in both.T])
    assert_array_equal(told, p_values <= 0.05)
    assert 0 < told.sum() < 8
    # of these only what is shifted by more than its own deviation is nothing but a shift
    shifted = (X.mean(axis=0) - Y.mean(axis=0)) ** 2 > X.var(axis=0)
    assert_array_equal(only_shifted(problem, 3 * np.eye(8)), shifted & ~told)
    assert (~shifted & ~told).any()


@pytest.mark.parametrize("paired", [False, True])
def test_what_too_few_groups_cannot_test_is_not_called_a_shift(paired):
    """With 2 groups against 2, or 4 pairs, no p-value reaches the level; the largest ratio is told."""
    rng = np.random.default_rng(0)
    n_groups = 4 if paired else 2
    own = np.repeat(np.arange(n_groups), 200)
    labels = [own, own + (0 if paired else 10)]
    X, Y = rng.laplace(size=(2, own.size, 6))
    X[:, 2] += 8 * rng.standard_normal(own.size) + 12
    X[:, 4] = 0.5 * X[:, 4] + 6
    problem = problem_of(X, Y, labels)
    assert 1 / len(problem.design.assignments(999, rng)) > 0.05
    assert only_shifted(problem, np.eye(6)).tolist() == [False] * 4 + [True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ContrastiveICA(1, random_state=0).fit(
            X, background=Y, groups=labels[0], background_groups=labels[1]
        )
    assert abs(model.components_[0, 2]) > 0.9


@pytest.mark.parametrize("sizes", [(30, 1000), (300, 30), (2000, 2000)])
def test_light_tails_leave_no_more_degrees_of_freedom_than_they_have(sizes):
    """Of two values the variance has next to no sampling error but that of its mean."""
    rng = np.random.default_rng(0)
    X, Y = (rng.choice([-1.0, 1.0], (n, 400)) for n in sizes)
    assert varies_more(problem_of(X, Y), np.eye(400)).mean() <= 0.1


def test_more_patterns_than_the_foreground_has_directions_are_not_sought():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(500, 3)) @ rng.normal(size=(3, 10)), rng.laplace(size=(500, 10))
    with warns(PatternWarning, "fewer-patterns"):
        model = ContrastiveICA(5, solver="subspace", random_state=0).fit(X, background=Y)
    assert model.components_.shape == (3, 10)


def test_a_constant_background_with_groups_has_finite_ratios():
    rng = np.random.default_rng(0)
    X, labels = rng.laplace(size=(500, 4)) + 5, np.repeat(np.arange(10), 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ContrastiveICA(2, random_state=0).fit(
            X, background=np.ones((500, 4)), groups=labels, background_groups=labels + 10
        )
    assert np.isfinite(model.robust_ratio_).all()


def test_a_pattern_of_few_groups_keeps_its_place():
    """Both groups that have it stay in the foreground in a fifth of the assignments: that is no shift."""
    first = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        parts = []
        for group in range(8):
            mixing = np.eye(6) + 0.3 * rng.standard_normal((6, 6))
            rows = rng.laplace(size=(150, 6)) @ mixing + 0.5 * rng.standard_normal(6)
            if group < 2:
                rows[:, 2] += 5 * rng.choice([-1, 1], 150)
            parts.append(rows)
        X, Y = np.vstack(parts[:4]), np.vstack(parts[4:])
        of_row = np.repeat(range(8), 150)
        labels = {"groups": of_row[:600], "background_groups": of_row[600:]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few groups show nothing, and two have it
            model = ContrastiveICA(None, random_state=0).fit(X, background=Y, **labels)
        first.append(np.abs(model.components_[:, 2]).argmax() == 0)
    assert np.mean(first) >= 0.9
