"""The default solver: which it takes, why, and what it says."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import silhouette_score

from contrica import (
    ContrastiveICA,
    DelicateDataWarning,
    PatternWarning,
    load,
    save,
)
from contrica.datasets import load_digits_on_photos, make_four_clusters, make_synthetic
from contrica.errors import ConvergenceWarning, ParameterWarning, warn
from contrica.metrics import pattern_cosines, pattern_similarity
from contrica.moments.fourth import cumulants
from contrica.solvers import joint_solver, subspace_solver
from contrica.solvers.joint import JointProblem, fit_weights, joint_contrast
from contrica.solvers.joint_solver import JointTask, _symmetry
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.selection import RankChoice, choose_by_significance
from contrica.solvers.weights import RowGroups, critical_t_value, weight_t_values
from tests.said import warns


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


@pytest.fixture(scope="module")
def many():
    """Rows enough for a joint fit."""
    return make_synthetic(6, random_state=1)


@pytest.fixture(scope="module")
def few():
    return make_synthetic(6, n_samples=300, random_state=1)


def fit(data, n_components=5, **options):
    model = ContrastiveICA(n_components, **{"random_state": 0, **options})
    return model.fit(data.foreground, background=data.background)


@pytest.fixture(scope="module")
def joint(many):
    return fit(many)


@pytest.fixture(scope="module")
def subspace(few):
    return fit(few)


# --- which solver ---


@pytest.mark.slow
@pytest.mark.parametrize(("p", "seed"), [(6, 0), (8, 0)])
def test_many_rows_of_the_model_are_fitted_jointly(p, seed):
    data = make_synthetic(p, random_state=seed)
    model = fit(data, p - 1)
    assert model.solver_ == "joint"
    assert (model.n_background_, model.n_foreground_) == (p, p - 1)
    assert pattern_similarity(model.components_.T, data.B) > 0.99


@pytest.mark.slow
def test_with_few_rows_auto_beats_algorithm_2_that_is_told_the_ranks():
    auto, paper = [], []
    for seed in range(5):
        data = make_synthetic(6, n_samples=1000, random_state=seed)
        model = fit(data)
        auto.append(pattern_similarity(model.components_.T, data.B))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            given = fit(data, solver="paper", n_background=6, n_foreground=5)
        paper.append(pattern_similarity(given.components_.T, data.B))
    assert np.median(auto) > 0.85
    assert np.median(auto) > np.median(paper) + 0.05


@pytest.mark.parametrize("seed", [0, 1])
def test_both_digits_of_the_demo_are_found_by_default(seed):
    data = load_digits_on_photos(random_state=seed)
    model = fit(data, 2)
    assert model.solver_ == "subspace"
    cosines = pattern_cosines(model.components_.T, data.patterns.T)
    assert max(np.diag(cosines).min(), np.diag(cosines[::-1]).min()) > 0.9


@pytest.mark.slow
def test_four_clusters_come_apart_by_default():
    """Two hundred rows; median over draws. The true patterns reach 0.865."""
    scores = []
    for seed in range(7):
        data = make_four_clusters(200, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DelicateDataWarning)  # the background has rank three
            model = fit(data, 2)
        scores.append(silhouette_score(model.transform(data.foreground), data.labels))
    assert np.median(scores) >= 0.82


def test_what_the_joint_fit_leaves_is_a_reason_against_it(many, joint, monkeypatch):
    from contrica.solvers import auto as module

    left = joint.rank_choice_.left.max()
    assert left < module.MAX_LEFT
    monkeypatch.setattr(module, "MAX_LEFT", 0.9 * left)
    model = fit(many)
    assert model.solver_ == "subspace"
    assert f"leaves {left:.2g} of a fourth cumulant" in model.reason_


def test_too_many_dimensions_are_not_searched(rng, monkeypatch):
    monkeypatch.setattr(
        joint_solver, "choose_by_significance", lambda *a, **k: pytest.fail("searched")
    )
    X, Y = rng.laplace(size=(400, 20)), rng.laplace(size=(400, 20))
    X[:, :2] += 4 * rng.choice([-1, 1], (400, 2))
    model = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    assert model.solver_ == "subspace"
    assert "20 dimensions" in model.reason_
    assert pattern_similarity(model.components_.T, np.eye(20)[:, :2]) > 0.95


@pytest.mark.parametrize("solver", ["paper", "joint", "subspace"])
def test_a_solver_that_is_asked_for_is_taken(many, solver):
    model = fit(many, 2, solver=solver)
    assert model.solver_ == solver
    assert "asked for" in model.reason_
    assert (model.rank_choice_ is None) == (solver != "joint")


def test_without_a_background_it_is_plain(rng):
    X = rng.laplace(size=(2000, 3)) * [3.0, 2.0, 1.0]
    with pytest.warns(DelicateDataWarning, match="no background"):
        model = ContrastiveICA(2, random_state=0).fit(X)
    assert model.solver_ == "plain"
    assert model.rank_choice_ is None
    assert np.isnan(model.pattern_t_values_).all()
    assert "solver: plain (no background was given)" in model.summary()
    assert model.summary().startswith("found: ")


# --- ranks ---


def test_ranks_that_are_given_are_kept(many, few):
    given = {"n_background": 6, "n_foreground": 5}
    model = fit(many, 3, **given)
    assert (model.solver_, model.n_background_, model.n_foreground_) == ("joint", 6, 5)
    assert model.rank_choice_ is None
    assert "5 of 5 foreground patterns are significant in a joint fit" in model.reason_
    assert model.components_.shape == (3, 6)
    # with rows of noise none is significant
    rng = np.random.default_rng(0)
    with warns(ParameterWarning, "no-effect") as told:
        model = ContrastiveICA(3, random_state=0, **given).fit(
            rng.standard_normal((400, 6)), background=rng.standard_normal((400, 6))
        )
    assert "n_background=6 was not used" in str(told[0].message)
    assert model.solver_ == "subspace"
    assert "significant" in model.reason_
    assert model.n_foreground_ == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "ranks"),
    [
        ({"n_background": 6}, (6, 5)),
        ({"n_foreground": 5}, (6, 5)),
        ({"n_background": 5, "solver": "joint"}, (5, 6)),
        ({"n_foreground": 4, "solver": "joint"}, (6, 4)),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of the wrong ones
def test_one_rank_that_is_given_is_kept_and_the_other_is_chosen(many, given, ranks):
    model = fit(many, 4, **given)
    assert model.solver_ == "joint"
    assert (model.n_background_, model.n_foreground_) == ranks
    assert isinstance(model.rank_choice_, RankChoice)
    if ranks == (6, 5):
        assert pattern_cosines(model.components_.T, many.B).max(axis=1).min() > 0.99


@pytest.mark.slow
def test_a_joint_fit_that_is_sure_of_nothing_says_so():
    data = make_synthetic(6, sources="gaussian", random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(data, 2, solver="joint")
    assert "n_foreground_ = 0" in " ".join(str(w.message) for w in caught)
    assert model.n_foreground_ == 0
    assert model.n_background_ == 6
    assert model.components_.shape == (2, 6)
    # whereas what varies more is not nothing
    other = fit(data, 2)
    assert other.solver_ == "subspace"
    assert other.n_foreground_ > 0


def test_warnings_of_a_joint_fit_that_is_dropped_are_dropped_too(monkeypatch):
    def complaining(*arguments, **options):
        warn(ConvergenceWarning("not-converged", "not there yet"))
        return joint_contrast(*arguments, **options)

    monkeypatch.setattr(joint_solver, "joint_contrast", complaining)
    given = {"n_background": 6, "n_foreground": 5, "max_iter": 5000}
    noise = np.random.default_rng(0).standard_normal((2, 400, 6))
    with pytest.warns() as said:
        ContrastiveICA(solver="joint", random_state=0, **given).fit(noise[0], background=noise[1])
    assert "not there yet." in [str(each.message) for each in said]
    with warns(ParameterWarning, "no-effect"):  # and no other: warnings are errors
        model = ContrastiveICA(random_state=0, **given).fit(noise[0], background=noise[1])
    assert model.solver_ == "subspace"


# --- what it says ---


def test_the_summary_of_a_joint_fit(joint):
    lines = joint.summary().splitlines()
    assert (
        lines[0] == f"found: 5 patterns stand out from the background, in {joint.n_samples_} rows"
    )
    weakest = np.abs(joint.pattern_t_values_).min()
    assert lines[1].startswith(f"evidence: every weight is at least {weakest:.1f} standard errors")
    leading = np.argmax(np.abs(joint.effects_[0]))
    kurtosis = joint.foreground_weights_[0] / joint.source_deviations_[0] ** 4
    assert lines[2].startswith(
        f"pattern 1: k(b) = {joint.contrast_ratio_[0]:.4g}, kurtosis {kurtosis:+.2f}, "
        f"t = {joint.pattern_t_values_[0]:.1f}, led by x{leading} {joint.effects_[0, leading]:+.2g} sd, "
    )
    assert lines[7] == f"solver: joint ({joint.reason_})"
    assert "5 foreground patterns are significant in a joint fit" in joint.reason_
    assert lines[8] == "ranks: 6 background and 5 foreground patterns, in 6 dimensions"
    assert lines[9].startswith("rank selection: threshold t = 4.4")
    assert f"rejected {joint.rank_choice_.rejected:.1f}" in lines[9]
    assert len(lines) == 10 + len(joint.near_ties_)


def test_the_summary_of_a_contrast_subspace(subspace):
    lines = subspace.summary().splitlines()
    count = subspace.n_foreground_
    assert lines[0].startswith(f"found: {count} patterns stand out from the background")
    assert f"evidence: p = {subspace.scree_.p_values[0]:.2g} for the first" in lines[1]
    assert "if both datasets had one distribution" in lines[1]
    kurtosis = subspace.foreground_weights_[0] / subspace.source_deviations_[0] ** 4
    assert lines[2].startswith(
        f"pattern 1: k(f) = {subspace.source_ratio_[0]:.4g}, kurtosis {kurtosis:+.2f}, led by x"
    )
    assert [("does not stand out" in line) for line in lines[2:7]] == [i >= count for i in range(5)]
    assert lines[7] == f"solver: subspace ({subspace.reason_})"
    assert subspace.reason_ == "1 foreground pattern is significant in a joint fit, fewer than 2"
    assert subspace.rank_choice_ is None
    assert lines[8] == f"ranks: {count} foreground patterns, in 6 dimensions"
    assert np.isnan(subspace.pattern_t_values_).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gain", "left", "told"),
    [
        (
            0.49,
            0.1,
            ["another minimum is lower by 0.49 standard errors; 0.5 would make it the answer"],
        ),
        (np.nan, 0.49, ['0.49 of a fourth cumulant is left; above 0.5 solver "subspace" is used']),
        (
            np.nan,
            0.51,
            [
                "in the joint fit that was rejected, 0.51 of a fourth cumulant is left; above 0.5 solver "
                '"subspace" is used'
            ],
        ),
        (5.0, 0.1, []),
        (-np.inf, 0.1, []),
    ],
)
def test_choices_near_a_tie_are_told_whichever_way_they_went(gain, left, told, many, monkeypatch):
    def choose(*arguments, **options):
        choice = choose_by_significance(*arguments, **options)
        return choice._replace(left=np.array([left, 0.0]), near_ties=())

    def contrasted(*arguments, **options):
        return joint_contrast(*arguments, **options)._replace(gain=gain)

    monkeypatch.setattr(joint_solver, "choose_by_significance", choose)
    monkeypatch.setattr(joint_solver, "joint_contrast", contrasted)
    model = fit(many)
    assert model.solver_ == ("subspace" if left > 0.5 else "joint")
    assert [tie for tie in model.near_ties_ if "directions" not in tie] == told
    assert [line for line in model.summary().splitlines() if "near a tie" in line][: len(told)] == [
        f"near a tie: {tie}" for tie in told
    ]


def test_a_dimension_in_question_is_near_a_tie(few, monkeypatch):
    p_values = np.array([0.001, 0.04, 0.07])
    found = ContrastScree(
        np.arange(6.0)[::-1], 2, 1, 3, p_values=p_values, n_assignments=1000, unit="rows"
    )
    monkeypatch.setattr(subspace_solver, "count_directions", lambda design, **options: found)
    model = fit(few, 2, solver="subspace")
    assert model.near_ties_ == (
        "1 to 3 directions stand out; 2 were counted (p = 0.04, 0.07 are near the level 0.05)",
    )


def test_the_summary_needs_a_fit_and_tells_of_no_selection_where_none_was_asked(many):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ContrastiveICA().summary()
    text = fit(many, 2, solver="paper").summary()
    assert 'solver: paper (solver="paper" was asked for)' in text.splitlines()
    assert "rank selection" not in text


def test_skewness_weights_are_third_cumulants_of_the_sources(many, joint):
    """An exponential of scale s has the third cumulant 2 s³; the sign is that of the pattern."""
    match = np.argmax(np.abs(joint.components_ @ many.B), axis=1)
    signs = np.sign(np.sum(joint.components_ * many.B.T[match], axis=1))
    expected = 2 * np.where(match % 2 == 0, 2.0, 1.5) ** 3
    assert_allclose(joint.foreground_skewness_weights_ * signs, expected, rtol=0.1)
    inside = ContrastiveICA(5, solver="joint", n_background=6, n_foreground=5, random_state=0)
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    inside.set_params(basis=axes).fit(many.foreground, background=many.background)
    match = np.argmax(np.abs(inside.components_ @ many.B), axis=1)
    signs = np.sign(np.sum(inside.components_ * many.B.T[match], axis=1))
    assert (inside.foreground_skewness_weights_ * signs > 0).all()


def test_t_values_belong_to_their_patterns(many, joint):
    """Worked out again from the patterns as they stand in the fitted model."""
    rows = [many.foreground, many.background]
    problem = JointProblem.of(*map(cumulants, rows), rows=rows)
    patterns = np.vstack([joint.background_components_, joint.components_])
    vectors = unit(problem.whiten.T @ patterns.T)
    weights = fit_weights(problem.terms, vectors, np.ones((2, 11), dtype=bool))
    groups = [RowGroups(part, problem.whiten) for part in rows]
    judged = weight_t_values(groups, problem.terms, vectors, weights)
    own = judged.t_values[problem.terms.datasets == 0, 6:]
    expected = np.copysign(np.abs(own).max(axis=0), own[0])
    assert_allclose(joint.pattern_t_values_, expected, rtol=1e-6)
    assert np.abs(np.diff(joint.pattern_t_values_)).min() > 0.01  # so that their order counts
    assert np.abs(joint.pattern_t_values_).min() > critical_t_value(22, 40, 0.01)


@pytest.mark.slow
def test_patterns_that_are_not_significant_come_last(few):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(few, solver="joint", n_background=4, n_foreground=8, n_components=8)
    sure = np.abs(model.pattern_t_values_) >= critical_t_value(24, 40, 0.01)
    assert (np.diff(sure.astype(int)) <= 0).all()
    for part in (model.contrast_ratio_[sure], model.contrast_ratio_[~sure]):
        assert (np.diff(part) <= 0).all()


# --- the same again ---


@pytest.mark.parametrize("data", ["many", "few"])
def test_the_same_seed_gives_the_same_bits(data, joint, subspace, request):
    model = {"many": joint, "few": subspace}[data]
    again = fit(request.getfixturevalue(data))
    for name in ("components_", "filters_", "contrast_ratio_", "pattern_t_values_", "mean_"):
        assert np.array_equal(getattr(again, name), getattr(model, name), equal_nan=True), name
    assert again.summary() == model.summary()


@pytest.mark.slow
def test_row_order_in_memory_and_float32_do_not_matter(many, joint):
    X, Y = np.asfortranarray(many.foreground), np.asfortranarray(many.background)
    other = ContrastiveICA(5, random_state=0).fit(X, background=Y)
    assert_allclose(other.components_, joint.components_, atol=3e-5)
    single, double = (
        ContrastiveICA(2, random_state=0).fit(
            many.foreground[:2000].astype(np.float32).astype(kind),
            background=many.background[:2000].astype(np.float32).astype(kind),
        )
        for kind in (np.float32, np.float64)
    )
    assert np.array_equal(single.components_, double.components_)


@pytest.mark.parametrize("data", ["joint", "subspace"])
def test_a_saved_model_keeps_what_was_chosen(data, tmp_path, request):
    model = request.getfixturevalue(data)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.solver_ == model.solver_ == data
    assert again.reason_ == model.reason_
    assert again.summary() == model.summary()
    assert isinstance(again.rank_choice_, RankChoice if data == "joint" else type(None))
    for one, two in zip(again.rank_choice_ or (), model.rank_choice_ or (), strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(again.pattern_t_values_, model.pattern_t_values_, equal_nan=True)


def test_data_of_one_direction_go_to_the_subspace(rng):
    X, Y = (rng.laplace(size=(200, 1)) * [1.0, 2.0] for _ in range(2))
    with pytest.warns(DelicateDataWarning, match="rank 1 in 2"):
        model = ContrastiveICA(1, n_foreground=1, random_state=0).fit(9 * X, background=Y)
    assert model.solver_ == "subspace"
    assert model.reason_ == "the data vary in one direction only"
    with (
        pytest.warns(DelicateDataWarning, match="rank 1 in 2"),
        pytest.raises(ValueError, match="one direction only"),
    ):
        ContrastiveICA(1, solver="joint").fit(9 * X, background=Y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of wrong ranks
def test_ranks_beyond_what_there_is_are_merged_and_that_is_said(many):
    with pytest.warns(PatternWarning, match="3 of the patterns of the joint fit lay along others"):
        model = fit(many, 2, solver="joint", n_background=9)
    assert 6 <= model.n_background_ < 9
    with pytest.warns(PatternWarning, match="n_components=3 .* only 1 can be returned"):
        model = fit(many, 3, solver="joint", n_foreground=1)
    assert model.n_foreground_ == 1
    assert model.components_.shape == (1, 6)


def test_all_patterns_of_a_subspace_are_those_that_pass():
    data = load_digits_on_photos(1000)
    model = ContrastiveICA(random_state=0).fit(data.foreground, background=data.background)
    assert model.solver_ == "subspace"
    assert len(model.components_) == model.n_foreground_ > 1
    assert "does not stand out" not in model.summary()


def test_t_values_too_many_to_work_out_are_left_out(many, monkeypatch):
    monkeypatch.setattr(joint_solver, "MAX_TESTED_ENTRIES", 10)
    model = fit(many, solver="joint", n_background=6, n_foreground=5)
    assert np.isnan(model.pattern_t_values_).all()
    assert (np.diff(model.contrast_ratio_) <= 0).all()


def test_more_patterns_than_there_are_says_what_to_do(few):
    for options, advice in (
        ({"n_components": 9, "solver": "subspace"}, "Lower n_components"),
        ({"n_components": 3, "n_foreground": 2, "solver": "subspace"}, "Raise n_foreground"),
    ):
        with pytest.warns(PatternWarning, match=advice):
            fit(few, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("sources", "solver"), [("exponential", "joint"), ("uniform", "subspace")])
def test_with_given_ranks_fewer_rows_do_where_third_cumulants_carry_the_fit(sources, solver):
    """Of 12 variables a fourth cumulant has 1365 entries, a third one 364."""
    data = make_synthetic(12, n_samples=1000, sources=sources, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(11, n_background=12, n_foreground=11, random_state=0)
        model.fit(data.foreground, background=data.background)
        chosen = ContrastiveICA(11, random_state=0).fit(data.foreground, background=data.background)
    assert model.solver_ == solver
    assert chosen.solver_ == "subspace"
    assert "entries of a fourth cumulant" in chosen.reason_


# --- symmetric patterns beside skewed ones ---


def mixed(p, seed, n_samples):
    """Exponential and uniform sources, two and two."""
    rng = np.random.default_rng([p, seed, 97])
    return make_synthetic(p, n_samples=n_samples, sources="mixed", random_state=rng)


def test_symmetric_patterns_are_fitted_without_third_cumulants():
    """With third ones, which weigh most, patterns that have none end on noise: .86 in this draw."""
    data = mixed(8, 508, 10_000)
    options = {"n_pcs": None, "n_background": 8, "n_foreground": 7, "random_state": 0}
    model = fit(data, 7, solver="joint", **options)
    cosines = pattern_cosines(model.components_.T, data.B)
    assert pattern_similarity(model.components_.T, data.B) > 0.99
    uniform = np.arange(7) // 2 % 2 == 1
    symmetric = model.foreground_skewness_weights_ == 0
    assert (symmetric == uniform[cosines.argmax(axis=1)]).all()


def test_a_joint_fit_that_misses_symmetric_patterns_says_so_and_auto_leaves_it():
    data = mixed(8, 604, 1000)
    options = {"n_pcs": None, "n_background": 8, "n_foreground": 7, "random_state": 0}
    with warns(PatternWarning, "symmetric"):
        asked = fit(data, 7, solver="joint", **options)
    with warns(ParameterWarning, "no-effect"):
        chosen = fit(data, 7, **options)
    assert chosen.solver_ == "subspace"
    assert "some pattern is symmetric" in chosen.reason_
    one, other = (pattern_similarity(model.components_.T, data.B) for model in (asked, chosen))
    assert one + 0.1 < other


@pytest.mark.parametrize(
    ("third", "fourth", "told"),
    [
        ([9.0, 8.0, 7.0], [5.0, 6.0, 7.0], False),  # every pattern has a third one
        ([9.0, 8.0, 0.5], [5.0, 6.0, 7.0], True),
        ([9.0, 8.0, 0.5], [5.0, 6.0, 0.7], False),  # the last is noise in both
        ([9.0, 8.0, 0.0], [5.0, 6.0, 7.0], True),
        ([9.0, 8.0, 4.0], [5.0, 6.0, 7.0], False),  # few rows: not among so many, but by itself
    ],
)
def test_a_pattern_is_symmetric_by_a_fourth_cumulant_without_a_third(third, fourth, told):
    rows = [np.random.default_rng(seed).exponential(size=(1000, 3)) for seed in (0, 1)]
    whitened = JointProblem.of(*map(cumulants, rows), rows=rows)
    task = JointTask(None, whitened, [RowGroups(part, whitened.whiten) for part in rows])
    small = np.zeros(3)
    assert (_symmetry(task, np.array([fourth, small, third, small])) > 1) is told
    alone = replace(task, whitened=JointProblem.of(*map(cumulants, rows)))
    assert _symmetry(alone, np.array([fourth, small])) == 0


@pytest.mark.slow
def test_a_symmetric_pattern_in_too_few_rows_for_fourth_cumulants_leads_to_the_subspace():
    data = mixed(12, 502, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(11, n_pcs=None, n_background=12, n_foreground=11, random_state=0)
        model.fit(data.foreground, background=data.background)
    assert model.solver_ == "subspace"
    assert "some pattern is symmetric" in model.reason_
