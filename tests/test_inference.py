"""Inference and diagnostics: p-values, stability, what a pattern is made of, and findings."""

import logging
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from contrica import Background, ContrastiveICA, ContrastivePCA, ProportionalContrastiveICA
from contrica.datasets import make_synthetic
from contrica.errors import (
    DataError,
    GroupsError,
    MemoryBudgetError,
    ParameterError,
    collected,
)
from contrica.inference import (
    check,
    diagnose,
    explain,
    group_effects,
    significance,
    split_reliability,
    stability,
    top_features,
)
from contrica.inference._data import Part, Study
from contrica.inference._diagnose import _like_foreground
from contrica.inference._stability import _matched, _ratio_intervals, _Scored
from contrica.rows.groups import Groups
from contrica.solvers import subspace
from contrica.solvers.negentropy import N_STARTS
from tests import naive
from tests.said import raises

pytestmark = pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")


def planted(n=400, p=20, seed=0, strength=3.0):
    """One two-valued source in the first two of many variables."""
    rng = np.random.default_rng(seed)
    X, Y = rng.laplace(size=(n, p)), rng.laplace(size=(n, p))
    X[:, :2] += strength * rng.choice([-1.0, 1.0], (n, 1))
    return X, Y


def in_groups(n_groups, first, seed, rows=20, p=4):
    rng = np.random.default_rng(seed)
    parts = [rng.laplace(size=(rows, p)) + 0.3 * rng.standard_normal(p) for _ in range(n_groups)]
    return np.vstack(parts), np.repeat([f"g{first + i}" for i in range(n_groups)], rows)


@pytest.fixture(scope="module")
def pair():
    return planted()


@pytest.fixture(scope="module")
def model(pair):
    X, Y = pair
    with collected():
        return ContrastiveICA(2, random_state=0).fit(X, background=Y)


# --- significance ---


@pytest.mark.parametrize("n_permutations", [199, 1500])
def test_p_values_and_the_count_of_a_fit_are_one(pair, model, n_permutations):
    X, Y = pair
    found = significance(model, X, background=Y, n_permutations=n_permutations)
    assert found.n_significant == model.n_foreground_ == 1
    if n_permutations == 199:  # those of the fit, and no fewer
        assert found.n_permutations == 999
        tested = model.scree_.p_values[:2]
        assert_allclose(found.p_values[: tested.size], tested)
    assert_allclose(found.smallest_p, 1 / (found.n_permutations + 1))
    assert found.p_values[0] == found.smallest_p
    assert (np.diff(found.p_values[~np.isnan(found.p_values)]) >= 0).all()
    assert "one distribution" in str(found)


def test_a_seed_of_ones_own_draws_other_permutations(pair, model):
    X, Y = pair
    one, two, again = (
        significance(model, X, background=Y, n_permutations=99, random_state=seed)
        for seed in (1, 2, 1)
    )
    assert one.n_permutations == 99
    assert_allclose(one.p_values, again.p_values)
    assert_allclose(one.statistics, two.statistics)


@pytest.mark.parametrize("unit", ["rows", "groups", "rescaled"])
def test_p_values_do_not_depend_on_processes(unit, pair, monkeypatch):
    X, Y = pair
    labels, options = {}, {"n_permutations": 60, "random_state": 3}
    if unit == "groups":
        (X, groups), (Y, back_groups) = in_groups(6, 0, 0), in_groups(6, 6, 1)
        labels = {"groups": groups, "background_groups": back_groups}
    scale = "pooled" if unit == "rescaled" else "none"
    with collected():
        model = ContrastiveICA(2, scale=scale, random_state=0).fit(X, background=Y, **labels)
    # splits are formed anew for every direction, as where there are many variables
    monkeypatch.setattr("contrica.solvers.split.MAX_KEPT_ENTRIES", 0)
    one, two = (
        significance(model, X, background=Y, n_jobs=n_jobs, **labels, **options)
        for n_jobs in (None, 2)
    )
    assert np.array_equal(one.p_values, two.p_values, equal_nan=True)
    assert one.n_significant == two.n_significant
    assert_allclose(one.statistics, two.statistics)


def test_permutations_are_told_and_can_be_interrupted(pair, model, caplog, monkeypatch):
    X, Y = pair
    with caplog.at_level(logging.INFO, "contrica"):
        significance(model, X, background=Y, n_permutations=99, random_state=0)
    assert "significance: 100 of 100 assignments" in caplog.text
    components = model.components_.copy()
    made = []

    def interrupt(*covariances):
        made.append(covariances)
        if len(made) == 5:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr("contrica.solvers.permutation_null.largest_ratio", interrupt)
    with pytest.raises(KeyboardInterrupt):
        significance(model, X, background=Y, n_permutations=99)
    assert len(made) == 5
    assert_allclose(model.components_, components)


@pytest.mark.slow
def test_p_values_of_a_joint_fit_hold_their_level():
    """Both datasets drawn alike, forty times; p at most .2 in about eight."""
    p_values = []
    for seed in range(40):
        rows = np.random.default_rng(seed).laplace(size=(600, 4))
        with collected():
            model = ContrastiveICA(
                1, solver="joint", n_background=4, n_foreground=1, random_state=0
            )
            model.fit(rows[:300], background=rows[300:])
        p_values.append(significance(model, rows[:300], background=rows[300:]).p_values[0])
    assert 2 <= np.sum(np.array(p_values) <= 0.2) <= 16


def test_all_assignments_of_few_groups_are_made():
    X, groups = in_groups(4, 0, 0)
    Y, back_groups = in_groups(4, 4, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0).fit(X, background=Y, **labels)
    found = significance(model, X, background=Y, **labels)
    assert (found.n_permutations, found.unit, found.is_complete) == (69, "groups", True)
    assert_allclose(found.p_values[0], model.scree_.p_values[0])
    held = significance(model, X, background=Background(Y, groups=back_groups), groups=groups)
    assert_allclose(held.p_values, found.p_values)


def test_groups_change_places_within_strata():
    X, groups = in_groups(4, 0, 0)
    Y, back_groups = in_groups(4, 4, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0).fit(X, background=Y, **labels)
    strata = [np.repeat(["a", "a", "b", "b"], 20)] * 2
    found = significance(model, X, background=Y, strata=strata, **labels)
    assert found.n_permutations == 6 * 6 - 1
    with raises(GroupsError, "strata-in-group", "strata"):
        significance(model, X, background=Y, strata=[np.arange(80) % 2] * 2, **labels)
    with raises(GroupsError, "strata-length", "strata"):
        significance(model, X, background=Y, strata=[np.zeros(3)] * 2, **labels)


def test_halves_of_paired_groups_stay_within_strata():
    X, groups = in_groups(8, 0, 0)
    Y, back_groups = in_groups(8, 0, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(X, background=Y, **labels)
    plates = np.repeat(list("aabbaabb"), 20)
    other = np.where(groups < "g4", plates, np.repeat(list("aabbbbaa"), 20))
    found = significance(model, X, background=Y, strata=(plates, other), **labels)
    assert (found.n_permutations, found.is_complete) == (2**4 - 1, True)
    for given in (labels, {}):
        with collected():
            model.fit(X, background=Y, **given)
        with raises(GroupsError, "strata-apart", "strata"):
            significance(model, X, background=Y, strata=(plates, np.full(160, "c")), **given)


@pytest.mark.parametrize(("asked", "made", "every"), [(255, 255, True), (254, 254, False)])
def test_all_assignments_are_told_from_as_many_random_ones(asked, made, every):
    X, groups = in_groups(8, 0, 0)
    Y, back_groups = in_groups(8, 0, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(X, background=Y, **labels)
    found = significance(model, X, background=Y, n_permutations=asked, **labels)
    assert (found.n_permutations, found.is_complete) == (made, every)


def test_strata_of_few_rows_are_permuted_row_by_row():
    """Many rows are permuted in batches; of a stratum of few rows these would all be one dataset's."""
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2100, 3)), rng.laplace(size=(2100, 3))
    X[:, 0] *= 2
    model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(X, background=Y)
    strata = [np.arange(2100) // 2] * 2
    found = significance(model, X, background=Y, strata=strata, n_permutations=19)
    assert (found.n_permutations, found.p_values[0]) == (19, 1 / 20)


def test_what_is_not_a_fitted_contrastive_ica_is_refused(pair, model):
    X, Y = pair
    with raises(ParameterError, "unknown-model", "model"):
        significance(ContrastivePCA(2).fit(X, background=Y), X, background=Y)
    with raises(DataError, "no-background", "background"):
        significance(model, X, background=None)
    with pytest.raises(ValueError, match="not fitted"):
        stability(ContrastiveICA(), X, background=Y)
    with raises(ParameterError, "too-small", "n_permutations"):
        significance(model, X, background=Y, n_permutations=0)


# --- stability ---


def test_a_planted_pattern_comes_back_and_a_spurious_one_does_not(pair, model):
    X, Y = pair
    before = {key: value.copy() for key, value in vars(model).items() if hasattr(value, "dtype")}
    found = stability(model, X, background=Y, n_resamples=12, random_state=0)
    assert found.n_found[0] == found.n_resamples == 12
    assert found.index[0] > 0.95 > found.index[1]
    low, high = found.intervals[0].T
    assert (low <= high).all()
    assert ((low > 0) == (np.arange(20) < 2))[:2].all()
    assert low[2:].max() < 0.3
    assert found.ratio_intervals[0, 0] > 2
    for key, value in before.items():
        assert np.array_equal(value, getattr(model, key), equal_nan=True), key


def test_stability_does_not_depend_on_processes_or_containers(pair, model):
    X, Y = pair
    options = {"n_resamples": 3, "random_state": 1}
    whole = stability(model, X, background=Y, **options)
    for other in (
        stability(model, X, background=Y, n_jobs=2, **options),
        stability(model, pd.DataFrame(X), background=pd.DataFrame(Y), **options),
        stability(model, sp.csr_matrix(X), background=sp.csr_matrix(Y), **options),
    ):
        assert_allclose(other.similarity, whole.similarity, atol=1e-6)
        assert_allclose(other.ratio_intervals, whole.ratio_intervals, rtol=1e-5)


@pytest.mark.parametrize("ask", [stability, split_reliability])
def test_refits_know_nothing_of_the_rotation_of_the_fit(ask, monkeypatch):
    """Of sources next to Gaussian, refits from it agree with it more than the rows do."""
    X, Y = np.random.default_rng(0).laplace(size=(2, 300, 6))
    X[:, :3] *= 3
    model = ContrastiveICA(3, solver="subspace", random_state=0).fit(X, background=Y)
    search, starts = subspace.farthest_from_gaussian, []

    def seen(rows, **options):
        starts.append(("start" in options, options["n_starts"]))
        return search(rows, **options)

    monkeypatch.setattr(subspace, "farthest_from_gaussian", seen)
    count = "n_resamples" if ask is stability else "n_splits"
    ask(model, X, background=Y, random_state=1, **{count: 2})
    assert set(starts) == {(False, N_STARTS)}


def test_progress_is_logged_and_an_interruption_leaves_the_model(pair, model, caplog, monkeypatch):
    X, Y = pair
    with caplog.at_level(logging.INFO, "contrica"):
        stability(model, X, background=Y, n_resamples=2, random_state=0)
    assert "stability: 2 of 2 resamples" in caplog.text
    components = model.components_.copy()

    def interrupt(self, *rows, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(ContrastiveICA, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stability(model, X, background=Y, n_resamples=2)
    assert_allclose(model.components_, components)


def test_few_groups_are_left_out_in_turn_and_have_no_intervals():
    X, groups = in_groups(6, 0, 0)
    Y, back_groups = in_groups(6, 6, 1)
    X[:20] += 6 * np.random.default_rng(2).choice([-1.0, 1.0], (20, 1)) * [1.0, 0, 0, 0]  # g0 alone
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0, n_foreground=1).fit(X, background=Y, **labels)
    found = stability(model, X, background=Y, random_state=0, **labels)
    assert found.n_resamples == 0
    assert found.intervals is None
    assert set(found.left_out) == {f"g{i}" for i in range(12)}
    assert found.left_out_similarity.shape == (12, 1)
    assert found.matters_most == ("g0",)
    assert "no intervals" in str(found)


def test_groups_without_which_nothing_can_be_fitted_are_named(monkeypatch):
    X, groups = in_groups(6, 0, 0)
    Y, back_groups = in_groups(6, 6, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0, n_foreground=1).fit(X, background=Y, **labels)
    fit = Study.fit

    def without_g3_it_fails(study, part, seed, **options):
        if not np.isin(np.flatnonzero(groups == "g3"), part.fore).all():
            raise np.linalg.LinAlgError
        return fit(study, part, seed, **options)

    monkeypatch.setattr(Study, "fit", without_g3_it_fails)
    found = stability(model, X, background=Y, random_state=0, **labels)
    assert (found.not_left_out, found.n_failed) == (("g3",), 1)
    assert found.matters_most[0] != "g3"
    assert np.isfinite(found.index).all()
    assert "Without g3 nothing could be fitted" in str(found)
    assert "Fewer than 10 groups" in str(found)


def test_where_nothing_can_be_fitted_again_that_is_an_error(pair, model, monkeypatch):
    X, groups = in_groups(2, 0, 0)
    Y, back_groups = in_groups(2, 2, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    grouped = ContrastiveICA(1, random_state=0, n_foreground=1).fit(X, background=Y, **labels)
    with raises(GroupsError, "none-left-out", "groups"):
        stability(grouped, X, background=Y, random_state=0, **labels)

    def fails(study, part, seed, **options):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(Study, "fit", fails)
    with raises(DataError, "no-resample", "X"):
        stability(model, pair[0], background=pair[1], n_resamples=2)


@pytest.mark.parametrize("ask", [stability, group_effects])
def test_a_device_without_memory_is_told_and_not_a_resample_that_failed(ask, monkeypatch):
    class OutOfMemoryError(RuntimeError):  # what torch raises is named so
        pass

    X, groups = in_groups(6, 0, 0)
    Y, back_groups = in_groups(6, 6, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0, n_foreground=1).fit(X, background=Y, **labels)

    def fails(model, *args, **options):
        raise OutOfMemoryError

    monkeypatch.setattr(ContrastiveICA, "fit", fails)
    with raises(MemoryBudgetError, "device-memory", "device"):
        ask(model, X, background=Y, random_state=0, **labels)


@pytest.mark.parametrize(
    ("ask", "few"), [(stability, {"n_resamples": 2}), (split_reliability, {"n_splits": 2})]
)
def test_refits_on_the_cpu_need_no_torch(ask, few, pair, model, monkeypatch):
    asked = {"background": pair[1], "random_state": 0} | few
    expected = ask(model, pair[0], **asked)
    on_cpu = ContrastiveICA(2, random_state=0, device="cpu").fit(pair[0], background=pair[1])
    monkeypatch.setitem(sys.modules, "torch", None)
    found = ask(on_cpu, pair[0], **asked)
    assert str(found) == str(expected)


def test_resamples_that_fail_are_told_apart_from_few_groups(monkeypatch):
    X, groups = in_groups(10, 0, 0)
    Y, back_groups = in_groups(10, 10, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0, n_foreground=1).fit(X, background=Y, **labels)
    fit = Study.fit

    def of_drawn_groups_it_fails(study, part, seed, **options):
        if len(np.unique(part.fore)) < 180:
            raise np.linalg.LinAlgError
        return fit(study, part, seed, **options)

    monkeypatch.setattr(Study, "fit", of_drawn_groups_it_fails)
    found = stability(model, X, background=Y, n_resamples=3, random_state=0, **labels)
    assert (found.intervals, found.n_failed) == (None, 3)
    assert "3 resamples could not be fitted" in str(found)
    assert "Fewer than" not in str(found)


def test_paired_groups_are_drawn_with_both_halves():
    X, groups = in_groups(12, 0, 0)
    Y, back_groups = in_groups(12, 0, 1)
    X[:, 0] *= 4
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, random_state=0).fit(X, background=Y, **labels)
    found = stability(model, X, background=Y, n_resamples=4, random_state=0, **labels)
    assert found.unit == "groups"
    assert len(found.left_out) == 12  # a pair is one
    assert found.n_found[0] == 4
    halves = split_reliability(model, X, background=Y, n_splits=2, random_state=0, **labels)
    assert halves.agreement.shape == (2, 1)
    assert halves.agreement.min() > 0.9
    assert halves.ratios.min() > 3


def test_stable_copies_of_a_background_pattern_are_named():
    """One source, of the background too and twice as strong in the foreground, among Gaussian noise."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    X, Y = (rng.standard_normal((3000, 4)) for _ in range(2))
    X[:, 0], Y[:, 0] = 2 * rng.laplace(size=3000), rng.laplace(size=3000)
    X, Y = X @ axes, Y @ axes
    model = ContrastiveICA(1, solver="joint", n_background=1, n_foreground=1, random_state=0)
    model.fit(X, background=Y)
    found = stability(model, X, background=Y, n_resamples=4, random_state=0)
    assert found.index[0] > 0.9
    assert [words.partition(":")[0] for words in found.copies] == [
        "pattern 1 is stable, but not new"
    ]
    assert "to background pattern 1" in str(found)
    assert "copy-of-background" in diagnose(model, X, background=Y).codes


def test_a_pattern_that_varies_no_more_is_not_called_new():
    Y = make_synthetic(4, n_samples=20000, random_state=0).background
    model = ContrastiveICA(1, solver="joint", n_background=3, n_foreground=1, random_state=0)
    model.fit(Y[:10000], background=Y[10000:])
    assert "not-new" in diagnose(model, Y[:10000], background=Y[10000:]).codes


@pytest.mark.slow
def test_intervals_cover_what_was_planted():
    """Of 90 %, pointwise, over 24 draws; neither far too narrow nor as wide as all loadings there are."""
    truth = np.array([1.0, 1, 0, 0, 0, 0]) / np.sqrt(2)
    inside, ratios, widths = [], [], []
    for seed in range(24):
        X, Y = planted(p=6, seed=seed, strength=1.5)
        model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
        model.fit(X, background=Y)
        found = stability(model, X, background=Y, n_resamples=40, random_state=seed)
        low, high = found.intervals[0].T
        inside.append((low <= truth) & (truth <= high))
        widths.append(high - low)
        low, high = found.ratio_intervals[0]
        ratios.append(low <= 1 + 1.5**2 <= high)
    assert 0.7 <= np.mean(inside) <= 1
    assert np.mean(widths) < 0.4
    assert 0.7 <= np.mean(ratios) <= 1


def test_patterns_are_matched_one_to_one_also_where_a_fit_has_fewer(rng):
    own = np.linalg.qr(rng.standard_normal((50, 3)))[0]
    assert [j for j, _ in _matched(own[:, [2, 0, 1]], own)] == [1, 2, 0]
    assert _matched(own[:, [2]], own)[:2] == [(-1, 0.0), (-1, 0.0)]
    assert_allclose(_matched(own[:, [2]], own)[2], (0, 1.0))


@pytest.mark.parametrize("scale", ["none", "each"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_ratios_in_some_rows_are_those_of_products_with_these_rows(pair, rng, scale, container):
    X, Y = pair
    model = ContrastiveICA(3, scale=scale, solver="subspace", random_state=0).fit(X, background=Y)
    study = Study(model, container(X), container(Y), None, None)
    part = Part(rng.integers(400, size=300), rng.integers(400, size=50))
    filters = model._source_filters(), model._source_filters(0)
    expected = naive.ratio_in_rows(X[part.fore], Y[part.back], *filters, scale == "each")
    scored = _Scored.of(model, study)
    assert_allclose(scored.ratios(part), expected, rtol=1e-10)
    assert np.isnan(scored.ratios(part._replace(back=np.array([3])))).all()


def test_ratio_intervals_are_less_the_optimism_of_refits():
    ratios = np.exp(np.linspace(-1, 1, 101))[:, None] * 7
    optimism = np.where(np.arange(101) < 90, np.log(1.2), np.nan)[:, None]  # ten did not return
    low, high = _ratio_intervals(np.array([6.0]), optimism, ratios, 0.2)[0]
    # the order statistic of rank .05 × 102 is the fifth and a tenth of the way to the sixth
    assert_allclose([low, high], 5 * np.exp([-0.459, 0.459]), rtol=1e-12)


def test_ratio_intervals_of_a_direction_that_does_not_vary_cover(rng):
    """Rows that draws leave out overlap: they vary less than samples of their own."""
    n, inside = 400, []
    for _ in range(300):
        above, below = 2 * rng.exponential(size=n), rng.exponential(size=n)
        ratios = []
        for _ in range(50):
            left = [np.setdiff1d(np.arange(n), rng.integers(n, size=n)) for _ in range(2)]
            x, y = above[left[0]], below[left[1]]
            ratios.append(np.mean((x - y.mean()) ** 2) / y.var())
        own, whole = np.array(ratios)[:, None], np.mean((above - below.mean()) ** 2) / below.var()
        share = (1 - 1 / n) ** n
        low, high = _ratio_intervals(np.array([whole]), np.zeros(own.shape), own, share)[0]
        inside.append(low <= 5 <= high)  # of the mean 2 and variance 4 against 1 and 1
    assert 0.84 <= np.mean(inside) <= 0.95  # of 300, four standard errors; by √q it was .80


@pytest.mark.parametrize("n", [19, 20, 100])
def test_an_interval_of_few_resamples_holds_nine_tenths_of_further_ones(n, rng):
    """Of draws of one distribution; ordinary quantiles of twenty hold .81 of further draws."""
    inside = []
    for _ in range(2000):
        own = rng.lognormal(size=(n + 1, 1))
        middle = np.median(own[:n], axis=0)
        low, high = _ratio_intervals(middle, np.zeros((n, 1)), own[:n], 0.5)[0]
        inside.append(low <= own[n, 0] <= high)
    assert abs(np.mean(inside) - 0.9) < 0.025  # of 2000 draws: nearly four standard errors


def test_a_proportional_fit_is_judged_too(pair):
    X, Y = pair
    with collected():
        model = ProportionalContrastiveICA(
            2, n_background=3, n_foreground=2, n_pcs=5, random_state=0
        )
        model.fit(X, background=Y)
    found = stability(model, X, background=Y, n_resamples=3, random_state=0)
    assert found.index.shape == (2,)
    assert (found.index > 0.3).all()
    assert significance(model, X, background=Y).p_values[0] == 0.005
    assert "rows-as-independent" in diagnose(model, X, background=Y).codes


def test_streams_cannot_be_resampled(pair, model):
    from contrica.rows import Blocks

    X, Y = pair
    with raises(DataError, "not-in-memory"):
        stability(model, Blocks([X[:200], X[200:]]), background=Y)
    with raises(DataError, "several-backgrounds"):
        stability(model, X, background=[Y, Y])


# --- what a pattern is ---


def test_top_features_are_the_largest_loadings_with_names_and_intervals(pair):
    X, Y = (pd.DataFrame(part, columns=[f"gene{i}" for i in range(20)]) for part in pair)
    with collected():
        model = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    found = top_features(model, 0, n=2)
    assert {each.name for each in found} == {"gene0", "gene1"}
    assert np.isnan(found[0].low)
    assert found[0].sign == "+"
    repeated = stability(model, X, background=Y, n_resamples=3, random_state=0)
    first = top_features(model, 0, 1, repeated)[0]
    own = repeated.intervals[0, int(first.name.removeprefix("gene"))]
    assert_allclose((first.low, first.high), own)
    assert 0.3 < first.low < first.high
    with raises(ParameterError, "no-such-pattern", "pattern"):
        top_features(model, 1)
    told = explain(model, 0, X, background=Y, n_features=2)
    scores = model.transform(X)[:, 0]
    assert_allclose(told.foreground.variance, scores.var())
    assert_allclose(told.ratio, scores.var() / model.transform(Y)[:, 0].var())
    assert told.foreground.kurtosis < -0.5
    assert "two peaks" in str(told)
    assert told.nearest_background is None


def test_shares_of_groups_add_up_and_a_background_pattern_is_named():
    data = make_synthetic(4, n_samples=5000, random_state=0)
    X, Y = data.foreground, data.background
    model = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    assert model.solver_ == "joint"
    groups = np.arange(len(X)) % 3
    found = explain(model, 1, X, background=Y, groups=groups)
    assert_allclose(sum(found.group_share.values()), 1)
    cosines = np.abs(model.background_components_ @ model.components_[1])
    assert found.nearest_background == (np.argmax(cosines), cosines.max())


def test_scores_are_of_sources_whatever_is_projected_on(pair):
    X, Y = pair
    options = {
        "solver": "paper",
        "n_background": 3,
        "n_foreground": 2,
        "n_pcs": 5,
        "random_state": 0,
    }
    with collected():
        by_pattern = ContrastiveICA(2, **options).fit(X, background=Y)
        by_filter = ContrastiveICA(2, projection="filter", **options).fit(X, background=Y)
    expected = by_filter.transform(X)[:, 0].var()
    for data in (X, pd.DataFrame(X), sp.csr_matrix(X)):
        found = explain(by_pattern, 0, data, background=Y)
        assert_allclose(found.foreground.variance, expected)


# --- check and diagnose ---


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda X, Y: (X, Y), None),
        (lambda X, Y: (np.round(np.exp(X)), np.round(np.exp(Y))), "raw-counts"),
        (
            lambda X, Y: (np.c_[X, np.arange(300)], np.c_[Y, 300 + np.arange(300)]),
            "looks-like-an-id",
        ),
        (lambda X, Y: (np.c_[X, 2 * X[:, 0]], np.c_[Y, 2 * Y[:, 0]]), "duplicated-columns"),
        (lambda X, Y: (X * [1e4, 1, 1, 1, 1], Y * [1e4, 1, 1, 1, 1]), "unequal-units"),
        (lambda X, Y: (X, 2 * Y), "swapped"),
        (lambda X, Y: (np.vstack([X, [50.0] * 5]), Y), "rows-dominate"),
        (lambda X, Y: (X[:4], Y), "fewer-rows-than-dimensions"),
    ],
)
def test_check_finds_what_is_wrong_and_nothing_else(change, code):
    rng = np.random.default_rng(0)
    X, Y = change(rng.standard_normal((300, 5)), rng.standard_normal((300, 5)))
    found = check(X, background=Y)
    assert found.codes == (() if code is None else (code,))
    assert all(each.words and each.advice for each in found.findings)


def volumes(rng, n):
    return np.rint(rng.normal(8000, 1500, (n, 12)))


def bulk_counts(rng, n):
    means = np.exp(np.random.default_rng(5).normal(6, 1.5, 300))
    return rng.poisson(means * rng.gamma(5, 0.2, (n, 300)))


def sorted_ranks(rng, n):
    return np.argsort(np.argsort(rng.standard_normal((n, 6)), axis=0), axis=0)


@pytest.mark.parametrize(("make", "n"), [(volumes, 60), (bulk_counts, 30), (sorted_ranks, 100)])
@pytest.mark.parametrize("seed", range(5))
def test_measurements_in_whole_numbers_are_no_identifiers(make, n, seed):
    rng = np.random.default_rng(seed)
    assert "looks-like-an-id" not in check(make(rng, n), background=make(rng, n)).codes


def test_units_of_volumes_are_judged():
    rng = np.random.default_rng(0)
    X, Y = volumes(rng, 60), volumes(rng, 60)
    X[:, 3], Y[:, 3] = np.rint(1000 * X[:, 3]), np.rint(1000 * Y[:, 3])
    assert "unequal-units" in check(X, background=Y).codes


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("chip", lambda rng, i, n: 5 + rng.permutation(n)),
        ("chip", lambda rng, i, n: 10 * (1000 * i + rng.permutation(n))),
        ("chip", lambda rng, i, n: np.cumsum(rng.integers(1, 10**6, n))),
        ("chip", lambda rng, i, n: -np.cumsum(rng.integers(1, 10**6, n))),
        ("subject id", lambda rng, i, n: rng.choice(10**9, n, replace=False)),
        ("subjectID", lambda rng, i, n: rng.choice(10**9, n, replace=False)),
    ],
)
def test_identifiers_are_found_among_volumes(name, ids):
    rng = np.random.default_rng(0)
    X, Y = (
        pd.DataFrame(volumes(rng, 60)).add_prefix("vol").assign(**{name: ids(rng, i, 60)})
        for i in range(2)
    )
    (told,) = [each for each in check(X, background=Y).findings if "-id" in each.code]
    assert told.words.startswith(f"{name}: whole numbers")


def test_findings_name_columns_and_rows():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 3)), rng.standard_normal((300, 3))
    X[7] = 40
    frames = [pd.DataFrame(np.c_[part, -part[:, 1]], columns=list("abcd")) for part in (X, Y)]
    said = str(check(frames[0], background=frames[1]))
    assert "b = d" in said
    assert "rows: number 7" in said
    assert said.startswith("300 foreground and 300 background rows over 4 variables")


@pytest.mark.parametrize(
    ("own", "other", "codes"),
    [
        (["a"] * 300, ["b"] * 300, ("confounded",)),
        (["a", "b"] * 150, ["b"] * 300, ("batches-of-one",)),
        (["a", "b"] * 150, ["a", "b"] * 150, ()),
    ],
)
def test_batches_that_are_confounded_are_told(own, other, codes):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 3)), rng.standard_normal((300, 3))
    assert check(X, background=Y, batches=own, background_batches=other).codes == codes
    with raises(DataError, "batches-length", "batches"):
        check(X, background=Y, batches=own[1:], background_batches=other)


def test_diagnose_says_that_nothing_was_found_and_what_is_swapped():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(300, 20)), rng.laplace(size=(300, 20))
    model = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    assert diagnose(model, X, background=Y).codes[0] == "nothing-found"
    model.fit(X, background=3 * Y)
    assert "swapped" in diagnose(model, X, background=3 * Y).codes


def test_rows_and_groups_that_make_a_pattern_are_named():
    X, Y = planted(seed=1)
    X[3, 5:8] += 60
    with collected():
        model = ContrastiveICA(2, solver="subspace", n_foreground=2, random_state=0)
        model.fit(X, background=Y)
    groups = np.repeat(["a", "b", "c", "d"], 100)
    found = diagnose(model, X, background=Y, groups=groups)
    words = " ".join(each.words for each in found.findings)
    assert {"rows-dominate", "group-dominates"} <= set(found.codes)
    assert "400 rows: number 3" in words
    assert "group a" in words


def test_a_group_of_many_rows_is_not_said_to_make_a_pattern(pair, model):
    """Seven tenths of the rows have seven tenths of the variance of any score."""
    X, Y = pair
    groups = np.where(
        np.arange(len(X)) % 10 < 7, "large", np.where(np.arange(len(X)) % 2, "b", "c")
    )
    assert "group-dominates" not in diagnose(model, X, background=Y, groups=groups).codes
    shares = explain(model, 0, X, background=Y, groups=groups).group_share
    assert_allclose(list(shares.values()), 1 / 3, atol=0.1)


def with_groups_in_both(carried_by):
    """Eight donors before and after; after, some of them have a two-valued source."""
    (X, groups), (Y, _) = in_groups(8, 0, 0), in_groups(8, 0, 1)
    X[np.isin(groups, [f"g{i}" for i in range(carried_by)]), 0] *= 6
    with collected():
        model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
        model.fit(X, background=Y)
    return model, X, Y, groups


def test_background_groups_that_have_the_pattern_are_named():
    model, X, Y, groups = with_groups_in_both(8)
    Y = Y.copy()
    others = np.char.replace(groups, "g", "h")
    given = {"background": Y, "groups": groups, "background_groups": others}
    assert "in-background-groups" not in diagnose(model, X, **given).codes
    Y[others == "h3", 0] *= 6  # as in every donor of the foreground
    found = diagnose(model, X, **given)
    told = [each.words for each in found.findings if each.code == "in-background-groups"]
    assert len(told) == 1
    assert "in h3 of the background is nearer to the foreground's" in told[0]
    labelled = Background(Y, groups=others)
    assert str(diagnose(model, X, background=labelled, groups=groups)) == str(found)
    alone = diagnose(model, X, background=Y, background_groups=others)
    assert "in-background-groups" in alone.codes
    shares = explain(model, 0, X, **given).background_group_share
    score = model.transform(Y)[:, 0]
    squares = [np.mean((score[others == name] - score.mean()) ** 2) for name in shares]
    assert_allclose(list(shares.values()), squares / np.sum(squares), rtol=1e-6)
    assert max(shares, key=shares.get) == "h3"
    assert "in the background most in h3" in str(explain(model, 0, X, **given))
    assert explain(model, 0, X, background=Y).background_group_share == {}
    with raises(GroupsError, "groups-twice", "background_groups"):
        diagnose(model, X, background=labelled, groups=groups, background_groups=others)
    with raises(GroupsError, "groups-length", "background_groups"):
        explain(model, 0, X, background=Y, background_groups=others[1:])


def of_donors(n_groups, carried_by, seed, rows=30):
    """Rows of donors, some of which have a two-valued source."""
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n_groups * rows, 5))
    groups = np.arange(len(X)) // rows
    X[:, :2] += 5 * rng.choice([-1, 1], (len(X), 1)) * np.isin(groups, carried_by)[:, None]
    return X, groups.astype(str)


@pytest.mark.parametrize("seed", range(8))
def test_a_background_group_with_the_pattern_of_the_foreground_is_named(seed):
    """Of the same strength: half of such were weaker than the foreground by chance, and not named."""
    (X, groups), (Y, others) = of_donors(12, range(12), seed), of_donors(8, [3], 100 + seed)
    with collected():
        model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
        model.fit(X, background=Y)
    for own in (groups, None):
        found = diagnose(model, X, background=Y, groups=own, background_groups=others)
        (told,) = [each.words for each in found.findings if each.code == "in-background-groups"]
        assert "in 3 of the background" in told
    # it is compared with what the other groups are: twice as many rows of it change nothing
    twice = np.r_[np.arange(len(Y)), np.flatnonzero(others == "3")]
    given = {"background": Y[twice], "background_groups": others[twice]}
    assert "in-background-groups" in diagnose(model, X, **given).codes


@pytest.mark.parametrize("rows", [3, 12])
@pytest.mark.parametrize("seed", range(3))
def test_background_groups_of_few_rows_are_not_named_for_their_noise(rows, seed):
    (X, groups), (Y, others) = of_donors(60, [], seed, rows), of_donors(60, [], 100 + seed, rows)
    X[:, :2] *= 2
    with collected():
        model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
        model.fit(X, background=Y)
    found = diagnose(model, X, background=Y, groups=groups, background_groups=others)
    assert "in-background-groups" not in found.codes


def test_levels_that_background_groups_are_compared_with_are_of_the_others(rng):
    sizes = rng.integers(10, 40, 7)
    behind = Groups(np.repeat(np.arange(7), sizes), tuple("abcdefg"))
    own = Groups(np.arange(90) // 30, tuple("xyz"))
    for _ in range(20):
        strengths = rng.choice([1.0, 1.5, 4], 7)
        below = 50 + np.repeat(strengths, sizes) * rng.choice([-1, 1], sizes.sum())
        below, above = below + rng.normal(size=below.size), 50 + 4 * rng.normal(size=90)
        for groups in (own, None):
            expected = naive.groups_like_foreground(above, below, groups, behind)
            assert _like_foreground(above, below, groups, behind).tolist() == expected


@pytest.mark.parametrize(("carried_by", "told"), [(8, False), (2, True)])
def test_pairs_that_do_not_agree_are_told(carried_by, told):
    model, X, Y, groups = with_groups_in_both(carried_by)
    Y = Y.copy()
    Y[~np.isin(groups, ["g0", "g1"]), 0] *= 3
    found = diagnose(model, X, background=Y, groups=groups, background_groups=groups)
    assert ("pairs-disagree" in found.codes) == told
    assert all("of 8 groups" in each.words for each in found.findings if "pairs" in each.code)
    # other donors are no pairs
    others = np.char.replace(groups, "g", "h")
    found = diagnose(model, X, background=Y, groups=groups, background_groups=others)
    assert "pairs-disagree" not in found.codes


def test_groups_without_usable_rows_count_neither_as_pairs_nor_in_a_mean():
    model, X, Y, groups = with_groups_in_both(2)
    X, Y = X.copy(), Y.copy()
    Y[~np.isin(groups, ["g0", "g1"]), 0] *= 3
    X[np.isin(groups, ["g2", "g3", "g4"])] = np.nan
    with collected():
        model.set_params(missing="impute").fit(X, background=Y)
    given = {"background": Y, "groups": groups}
    found = diagnose(model, X, **given, background_groups=groups)
    (told,) = [each.words for each in found.findings if each.code == "pairs-disagree"]
    assert "in 2 of 5 groups" in told
    few = np.where(np.isin(groups, ["g5", "g6"]), "h", groups)
    assert "pairs-disagree" not in diagnose(model, X, **given, background_groups=few).codes


def test_groups_without_usable_rows_do_not_lower_what_the_foreground_has():
    model, X, Y, groups = with_groups_in_both(8)
    X, Y, others = X.copy(), Y.copy(), np.char.replace(groups, "g", "h")
    X[~np.isin(groups, ["g0", "g1"])] = np.nan
    third = others == "h3"
    Y[third, 0] = 3 * np.where(np.arange(third.sum()) % 2, 1, -1)  # 9, between 2 and 72
    with collected():
        model.set_params(missing="impute").fit(X, background=Y)
    found = diagnose(model, X, background=Y, groups=groups, background_groups=others)
    assert "in-background-groups" not in found.codes
    Y[third, 0] *= 1.5
    found = diagnose(model, X, background=Y, groups=groups, background_groups=others)
    assert "in-background-groups" in found.codes


def test_groups_of_several_backgrounds_are_told_apart_by_name():
    model, X, Y, groups = with_groups_in_both(8)
    with collected():
        model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
        model.fit(X, background=[Y, Y])
    others = np.char.replace(groups, "g", "h")
    told = explain(model, 0, X, background=[Y, Y], background_groups=[groups, others])
    shares = told.background_group_share
    assert len(shares) == 16
    assert_allclose(
        [shares[f"g{i}"] for i in range(8)], [shares[f"h{i}"] for i in range(8)], rtol=1e-9
    )


def test_covariates_are_tested_between_groups_and_never_between_rows():
    """A covariate of groups, constant within each: rows would make chance significant."""
    X, groups = in_groups(16, 0, 0)
    Y, back_groups = in_groups(16, 16, 1)
    carriers = np.isin(groups, [f"g{i}" for i in range(8)])
    X[carriers, 0] += 5
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(X, background=Y, **labels)
    age = np.random.default_rng(3).permutation(16)[np.arange(320) // 20]  # by chance
    covariates = {"genotype": np.where(carriers, "a", "b"), "age": age}
    found = diagnose(model, X, background=Y, groups=groups, covariates=covariates)
    told = [each for each in found.findings if each.code == "covariate"]
    assert [("genotype" in each.words, "age" in each.words) for each in told] == [(True, False)]
    assert "between 16 groups" in told[0].words
    alone = diagnose(model, X, background=Y, covariates=covariates)
    told = [each for each in alone.findings if each.code == "covariate"]
    assert all("not tested" in each.words for each in told)
    assert told
    with raises(DataError, "covariate-length", "covariates"):
        diagnose(model, X, background=Y, covariates={"age": age[1:]})


def test_codes_are_numbers_and_said_to_be_unless_they_are_text_or_categories():
    """Kinds whose codes are in no order: a line through the codes misses them."""
    X, groups = in_groups(24, 0, 0)
    Y, back_groups = in_groups(24, 24, 1)
    codes = np.arange(480) // 20 % 8 + 1
    X[:, 0] += np.array([0, 6, 0, 6, 6, 0, 6, 0])[codes - 1]  # the line is flat
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(X, background=Y, **labels)

    def told(values, **more):
        found = diagnose(model, X, background=Y, groups=groups, covariates={"site": values}, **more)
        return {each.code: each.words for each in found.findings if "site" in each.words}

    assert (
        "8 different whole numbers and was taken as a number" in told(codes)["covariate-as-numbers"]
    )
    assert "covariate" not in told(codes)
    kinds = [codes.astype(str), pd.Categorical(codes), pd.Series(codes, dtype="category")]
    for values in kinds:
        found = told(values)
        assert set(found) == {"covariate"}
        assert "between 24 groups" in found["covariate"]
    with_gaps = pd.Categorical(np.where(np.arange(480) < 20, np.nan, codes))
    assert "(20 rows without a value left out)" in told(with_gaps)["covariate"]
    # measured numbers, and what is different in nearly every row, are no codes
    assert "covariate-as-numbers" not in told(codes + 0.5)
    assert "covariate-as-numbers" not in told(np.arange(480))


def test_kinds_that_tell_all_groups_apart_are_not_tested():
    X, groups = in_groups(8, 0, 0)
    Y, back_groups = in_groups(8, 8, 1)
    labels = {"groups": groups, "background_groups": back_groups}
    model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(X, background=Y, **labels)
    for values, expected in ((groups, True), (np.char.replace(groups, "g1", "g2"), False)):
        found = diagnose(model, X, background=Y, groups=groups, covariates={"donor": values})
        assert ("covariate-not-tested" in found.codes) == expected


# --- variables in other units, gaps and forgotten groups ---

UNITS = np.array([1.0, 1000.0, 1.0, 1.0, 1.0, 1000.0])


def stretched(seed=0, n=400):
    """The first of six variables varies three times as much in the foreground."""
    rng = np.random.default_rng(seed)
    X, Y = rng.laplace(size=(n, 6)), rng.laplace(size=(n, 6))
    X[:, 0] *= 3
    return X, Y


@pytest.mark.parametrize("scale", ["pooled", "each"])
@pytest.mark.parametrize("projection", ["pattern", "filter"])
def test_units_of_variables_change_nothing_where_variables_are_divided(scale, projection):
    X, Y = stretched()
    Y[:, :3] += Y[:, [3]]  # correlations, which are all that scale="each" leaves to contrast
    found = []
    for units in (np.ones(6), UNITS):
        model = ContrastiveICA(
            1, n_foreground=1, scale=scale, projection=projection, random_state=0
        )
        model.fit(X * units, background=Y * units)
        data = {"X": X * units, "background": Y * units}
        again = stability(model, **data, n_resamples=4, random_state=0)
        halves = split_reliability(model, **data, n_splits=2, random_state=0)
        told = explain(model, 0, **data)
        assert_allclose(told.ratio + told.shift**2, model.source_ratio_[0], rtol=1e-6)
        found.append((again.similarity, again.ratio_intervals, halves.ratios, told.foreground))
        low, high = again.ratio_intervals[0]
        assert low / 2 < model.source_ratio_[0] < 2 * high
    for own, other in zip(*found, strict=True):
        assert_allclose(own, other, rtol=1e-4, atol=1e-4)


def test_a_background_that_is_divided_by_its_own_deviations_is_scored_so():
    X, Y = stretched()
    X[:, 2] += 2 * X[:, 1]
    model = ContrastiveICA(1, n_foreground=1, scale="each", random_state=0)
    model.fit(5 * X + 7, background=Y)
    told = explain(model, 0, 5 * X + 7, background=Y)
    assert_allclose(told.ratio, model.source_ratio_[0], rtol=1e-6)
    assert_allclose([told.shift, told.foreground.mean, told.background.mean], 0, atol=1e-9)
    assert "swapped" not in diagnose(model, 5 * X + 7, background=Y).codes


@pytest.mark.parametrize("call", [significance, stability, split_reliability])
def test_groups_that_the_fit_had_cannot_be_forgotten(call):
    X, groups = in_groups(4, 0, 0)
    Y, back_groups = in_groups(4, 4, 1)
    model = ContrastiveICA(1, n_foreground=1, random_state=0)
    model.fit(X, background=Y, groups=groups, background_groups=back_groups)
    with raises(GroupsError, "groups-forgotten", "groups"):
        call(model, X, background=Y)


def test_scores_of_rows_with_gaps_vary_as_in_the_fit():
    X, Y = stretched(n=1000)
    Y[np.random.default_rng(1).random(Y.shape) < 0.4] = np.nan
    X[5], Y[7] = np.nan, np.nan  # without any value
    model = ContrastiveICA(1, n_foreground=1, missing="impute", random_state=0)
    model.fit(X, background=Y)
    groups = np.arange(1000) % 4
    told = explain(model, 0, X, background=Y, groups=groups)
    # the fit also has the two rows without a value
    assert_allclose(told.ratio + told.shift**2, model.source_ratio_[0], rtol=0.01)
    assert_allclose(sum(told.group_share.values()), 1)
    batch = np.where(groups == 0, "a", "b")
    found = diagnose(model, X, background=Y, groups=groups, covariates={"batch": batch})
    assert not {"swapped", "not-new"} & set(found.codes)


def test_rows_without_a_covariate_are_left_out_of_it():
    X, Y = planted()
    with collected():
        model = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    dose = model.transform(X)[:, 0].copy()
    dose[:7] = np.nan
    dose[3] = np.inf
    kinds = np.array([str(each > 0) if np.isfinite(each) else None for each in dose], dtype=object)
    nothing = np.full(len(X), np.nan)
    covariates = {"dose": dose, "kind": kinds, "nothing": nothing}
    groups = np.arange(len(X)) // 2 // 10
    for labels in (None, groups):
        found = diagnose(model, X, background=Y, covariates=covariates, groups=labels)
        told = [each.words for each in found.findings if each.code == "covariate"]
        assert ["dose (7 rows" in words or "kind (7 rows" in words for words in told] == [True] * 2


def test_gaps_are_filled_in_every_refit_and_told_before_a_fit():
    X, Y = stretched()
    gaps = np.random.default_rng(2)
    for part in (X, Y):
        part[gaps.random(part.shape) < 0.1] = np.nan
    model = ContrastiveICA(1, n_foreground=1, missing="impute", random_state=0)
    model.fit(X, background=Y)
    found = stability(model, X, background=Y, n_resamples=4, random_state=0)
    assert (found.n_failed, found.n_found[0]) == (0, 4)
    assert_allclose(np.log(found.ratio_intervals[0] / model.source_ratio_[0]), 0, atol=0.5)
    halves = split_reliability(model, X, background=Y, n_splits=2, random_state=0)
    assert halves.agreement.min() > 0.9
    told = check(X, background=Y)
    assert told.codes == ("missing-values",)
    counts = [np.isnan(part).sum() for part in (X, Y)]
    assert f"{counts[0]} in the foreground and {counts[1]} in the background" in str(told)
    assert 'missing="impute"' in str(told)
    with raises(DataError, "not-finite", "X"):
        stability(model.set_params(missing="error"), X, background=Y)


def test_counts_and_identifiers_with_gaps_are_known_as_such():
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(3.0, (300, 4)).astype(float) for _ in range(2))
    X, Y = np.c_[X, np.arange(300)], np.c_[Y, np.arange(300, 600)]
    X[::7, :] = np.nan
    Y[::5, 4] = np.nan
    assert set(check(X, background=Y).codes) == {
        "looks-like-an-id",
        "raw-counts",
        "missing-values",
    }


@pytest.mark.parametrize("way", ["partial_fit", "iterator"])
def test_gaps_of_rows_that_are_read_once_are_refused_by_name(way):
    X, Y = stretched()
    Y[3, 1] = np.nan
    model = ContrastiveICA(1, missing="impute")
    with raises(DataError, "not-finite", "background") as caught:
        if way == "partial_fit":
            model.partial_fit(X, background=Y)
        else:
            model.fit(iter([X]), background=iter([Y]))
    assert caught.value.needed == "rows that are read once cannot be filled"


@pytest.mark.parametrize("p", [6, 40])
@pytest.mark.parametrize("factor", [10.0, 50.0, 1e4])
def test_a_check_and_a_fit_agree_on_units(p, factor):
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((500, p)) for _ in range(2))
    X[:, 1] *= factor
    Y[:, 1] *= factor
    found = check(X, background=Y)
    with collected() as warned:
        ContrastiveICA(1, n_foreground=1, solver="subspace", random_state=0).fit(X, background=Y)
    words = [each.got for each in warned if each.code == "units"]
    told = [each for each in found.findings if each.code == "unequal-units"]
    assert [each.words for each in told] == words
    assert len(told) == (factor > 30)
    assert all('scale="pooled"' in each.advice for each in told)


def test_diagnose_says_where_a_pattern_is_all_shift_of_the_mean():
    rng = np.random.default_rng(1)
    X, Y = rng.laplace(size=(2, 2000, 6))
    X[:, 0] += 4
    X[:, 3] += 3 * rng.choice([-1, 1], 2000)
    model = ContrastiveICA(None, solver="subspace", random_state=0).fit(X, background=Y)
    last = len(model.components_)
    assert np.argmax(np.abs(model.components_[-1])) == 0
    found = [each for each in diagnose(model, X, background=Y).findings if each.code == "not-new"]
    (told,) = [each for each in found if f"pattern {last} varies" in each.words]
    assert "its mean is shifted by 2." in told.words
    assert "a shift of the mean" in told.advice


def test_covariates_may_be_a_data_frame():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2, 300, 20))
    X[:, 2] *= 4
    model = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    covariates = {"age": X[:, 2], "sex": rng.choice(["f", "m"], 300)}
    told = [
        str(diagnose(model, X, background=Y, covariates=each))
        for each in (covariates, pd.DataFrame(covariates))
    ]
    assert "covariate age" in told[0]
    assert told[0] == told[1]
    for other in ([X[:, 2]], pd.Series(X[:, 2])):
        with raises(ParameterError, "not-a-mapping", "covariates"):
            diagnose(model, X, background=Y, covariates=other)


def test_every_shift_of_the_mean_is_told_by_its_size():
    """Of 20 000 rows a shift of .46 deviations is no chance; only the advice has a threshold."""
    rng = np.random.default_rng(1)
    X, Y = rng.laplace(size=(2, 20000, 4))
    X[:, 0] += 0.45 * 2**0.5
    model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
    model.fit(X, background=Y)
    found = diagnose(model, X, background=Y).findings
    (told,) = [each for each in found if each.code == "not-new"]
    shift = abs(explain(model, 0, X, background=Y).shift)
    assert 0.4 < shift < 0.5
    assert f"its mean is shifted by {shift:.2f} standard deviations" in told.words
    assert told.advice == "Do not call it new."


def test_narrow_rows_that_are_elsewhere_are_not_taken_for_swapped_datasets():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2, 3000, 4))
    X[:, 0] = 0.6 * X[:, 0] + 4
    model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
    model.fit(X, background=Y)

    def severities(X, Y):
        found = diagnose(model.fit(X, background=Y), X, background=Y)
        return [each.severity for each in found.findings if each.code == "swapped"]

    assert severities(X, Y) == ["careful"]
    model.set_params(n_components=2, n_foreground=2)
    assert severities(X, Y) == []  # the second varies as much
    assert severities(0.3 * X, Y) == ["serious"]  # and here less, unshifted


def test_diagnose_without_the_groups_of_the_fit_says_what_it_does_not_say():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 20)
    X, Y = rng.laplace(size=(2, 240, 4))
    X[:, 0] *= 4
    model = ContrastiveICA(1, n_foreground=1, solver="subspace", random_state=0)
    model.fit(X, background=Y, groups=groups, background_groups=groups + 100)
    age = rng.normal(size=240)
    codes = diagnose(model, X, background=Y, covariates={"age": age}).codes
    assert {"groups-not-given", "covariates-not-tested"} <= set(codes)
    given = {"groups": groups, "background_groups": groups + 100}
    codes = diagnose(model, X, background=Y, covariates={"age": age}, **given).codes
    assert not {"groups-not-given", "covariates-not-tested"} & set(codes)
