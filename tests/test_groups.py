"""Rows that come in groups: labels, permutation of whole groups, ranking and shares."""

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica import Background, ContrastiveICA, ContrastivePCA, ProportionalContrastiveICA
from contrica.cli.printing import fit_lines
from contrica.errors import GroupsError, GroupWarning, ParameterError, PatternWarning
from contrica.estimators._ranking import order_in_words
from contrica.models import load, save
from contrica.moments import DataSums, working
from contrica.rows.groups import as_groups
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.group_design import GroupDesign, GroupSums, split
from contrica.solvers.permutation_null import count_directions
from contrica.solvers.split import group_floor
from tests.said import raises, warns


def grouped(n_groups, seed, *, rows=30, p=4, first=0, between=0.4):
    """Rows of several groups, each with a mean of its own, and the name of every row's group."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.laplace(size=(rows, p)) + between * rng.standard_normal(p) for _ in range(n_groups)
    ]
    return np.vstack(parts), np.repeat([f"g{first + i}" for i in range(n_groups)], rows)


def with_pattern(X, labels, carriers, size=4.0, seed=0):
    """A source along the first two variables in some of the groups."""
    source = size * np.random.default_rng(seed).choice([-1.0, 1.0], len(X))
    source[~np.isin(labels, carriers)] = 0
    return X + source[:, None] * np.array([1.0, 1.0, *[0.0] * (X.shape[1] - 2)])


def design_of(X, labels, Y, back_labels):
    parts = [
        GroupSums.of(rows, as_groups(names, len(rows), "groups", "X"))
        for rows, names in ((X, labels), (Y, back_labels))
    ]
    return GroupDesign(GroupSums.stacked(parts), len(parts[0].names))


# --- labels ---


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (["a", "b", "a"], "groups-length"),
        ([["a"] * 6], "groups-length"),
        (["a", None, "b", "b", "a", "a"], "groups-missing"),
        (["a", np.nan, "b", "b", "a", "a"], "groups-missing"),
        (["a", pd.NA, "b", "b", "a", "a"], "groups-missing"),
        (["a", " ", "b", "b", "a", "a"], "groups-missing"),
        (["a"] * 6, "one-group"),
        (list("abcdef"), "many-groups"),
        (list("abcdda"), "many-groups"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, code):
    with raises(GroupsError, code) as told:
        as_groups(labels, 6, "groups", "X")
    assert told.value.parameter == "groups"


def test_numbers_and_text_name_the_same_groups():
    for labels in (
        [101, 102, 101, 102],
        [101.0, 102.0, 101.0, 102.0],
        ["101", "102", "101", "102"],
    ):
        found = as_groups(pd.Series(labels), 4, "groups", "X")
        assert found.names == ("101", "102")
        assert found.codes.tolist() == [0, 1, 0, 1]


def fit(X, Y, **options):
    return ContrastiveICA(random_state=0, solver="subspace").fit(X, background=Y, **options)


@pytest.fixture
def pair():
    X, groups = grouped(8, 0)
    Y, back_groups = grouped(8, 1, first=8)
    return X, groups, Y, back_groups


def test_groups_are_given_for_both_datasets_or_for_none(pair):
    X, groups, Y, back_groups = pair
    for options, code in (
        ({"groups": groups}, "groups-of-one"),
        ({"background_groups": back_groups}, "groups-of-one"),
        ({"groups": groups, "background_groups": back_groups[:-1]}, "groups-length"),
    ):
        with raises(GroupsError, code):
            fit(X, Y, **options)
    with raises(GroupsError, "groups-alone"):
        ContrastiveICA().fit(X, groups=groups)
    with raises(GroupsError, "groups-twice"):
        fit(X, Background(Y, groups=back_groups), groups=groups, background_groups=back_groups)
    with raises(GroupsError, "groups-of-sums"):
        fit(
            DataSums().update(X), DataSums().update(Y), groups=groups, background_groups=back_groups
        )
    with raises(GroupsError, "groups-length"):
        fit(X, [Y, Y], groups=groups, background_groups=back_groups)
    with raises(ParameterError, "no-groups"):
        ContrastivePCA().fit(X, background=Y, groups=groups, background_groups=back_groups)


@pytest.mark.filterwarnings("ignore::contrica.errors.PatternWarning")
def test_a_holder_of_the_background_brings_its_groups(pair):
    X, groups, Y, back_groups = pair
    one = fit(X, Y, groups=groups, background_groups=back_groups)
    two = fit(X, Background(Y, groups=back_groups), groups=groups)
    assert_allclose(one.components_, two.components_)
    assert_allclose(one.scree_.p_values, two.scree_.p_values)
    both = [back_groups[:120], back_groups[120:]]
    several = fit(X, [Y[:120], Y[120:]], groups=groups, background_groups=both)
    assert several.scree_.n_assignments == one.scree_.n_assignments == 1000


# --- assignments ---


def test_all_assignments_are_made_where_they_are_few():
    X, groups = grouped(4, 0)
    Y, back_groups = grouped(4, 1, first=4)
    design = design_of(X, groups, Y, back_groups)
    masks = design.assignments(999, np.random.default_rng(0))
    assert masks.shape == (70, 8) == (design.n_assignments, 8)
    assert masks[0].tolist() == [True] * 4 + [False] * 4
    assert {tuple(np.flatnonzero(mask)) for mask in masks} == set(combinations(range(8), 4))
    some = design.assignments(20, np.random.default_rng(0))
    assert some.shape == (21, 8)
    assert (some.sum(axis=1) == 4).all()


def test_halves_of_a_paired_group_are_swapped_and_others_change_places():
    X, groups = grouped(5, 0)  # g0 to g4
    Y, back_groups = grouped(4, 1, first=3)  # g3 to g6: two pairs
    design = design_of(X, groups, Y, back_groups)
    assert design.pairs == [(3, 5), (4, 6)]
    masks = design.assignments(999, np.random.default_rng(0))
    assert len(masks) == design.n_assignments == 2**2 * 10
    assert len({tuple(mask) for mask in masks}) == 40
    assert (masks[:, 3] != masks[:, 5]).all()
    assert (masks[:, 4] != masks[:, 6]).all()
    assert (masks.sum(axis=1) == 5).all()


def test_a_pair_whose_halves_are_in_two_strata_stays_as_it_is():
    X, groups = grouped(5, 0)  # g0 to g4
    Y, back_groups = grouped(4, 1, first=3)  # g3 to g6: two pairs, (3, 5) and (4, 6)
    whole = design_of(X, groups, Y, back_groups)
    design = replace(whole, strata=np.array([0, 0, 0, 0, 1, 1, 1, 0, 0]))
    every = design.assignments(999, np.random.default_rng(0))
    assert len(every) == design.n_assignments == 2 * 10
    for masks in (every, design.assignments(5, np.random.default_rng(0))):
        assert masks[:, 3].all()
        assert not masks[:, 5].any()
    assert set(every[:, 4]) == {True, False}


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_split_of_sums_is_that_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    X, groups = grouped(5, seed, rows=7, p=3)
    Y, back_groups = grouped(4, seed + 1, rows=9, p=3, first=5)
    design = design_of(X, groups, Y, back_groups)
    mask = rng.permuted(design.observed())
    found = split(design.groups, mask)
    rows = np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)])
    names = np.concatenate([groups, back_groups])
    chosen = np.isin(names, np.array(design.groups.names)[mask])
    assert_allclose(found.fore, np.cov(rows[chosen].T, bias=True), atol=1e-12)
    assert_allclose(found.back, np.cov(rows[~chosen].T, bias=True), atol=1e-12)
    # variance components by hand
    back, own = rows[~chosen], names[~chosen]
    means = {name: back[own == name].mean(axis=0) for name in np.unique(own)}
    within = sum(((back[own == name] - mean) ** 2).sum() for name, mean in means.items())
    within /= len(back) - len(means)
    spread = sum(
        np.sum(own == name) * ((mean - back.mean(axis=0)) ** 2).sum()
        for name, mean in means.items()
    )
    between = max(spread / (len(means) - 1) - within, 0) * len(means) / len(back)
    assert_allclose(found.floor, between / len(means) + within / len(back), rtol=1e-9)


def test_groups_that_do_not_differ_leave_the_floor_of_independent_rows():
    assert_allclose(group_floor(1000, 10, 5000.0, 0.0), 5000 / 990 / 1000)
    # all of it between groups: as many rows as groups
    assert_allclose(group_floor(1000, 10, 5000.0, 5000.0), 5000 / 9 / 1000)


def test_p_is_the_rank_among_all_assignments():
    X, groups = grouped(4, 3)
    Y, back_groups = grouped(4, 4, first=4)
    design = design_of(X, groups, Y, back_groups)
    largest = []
    for mask in design.assignments(999, np.random.default_rng(0)):
        found = split(design.groups, mask)
        largest.append(contrast_axes(found.fore, found.back, floor=found.floor)[0][0])
    found = count_directions(design, rng=np.random.default_rng(0))
    assert_allclose(found.p_values[0], np.mean(np.array(largest) >= largest[0] - 1e-12))
    assert_allclose(found.ratios[0], largest[0])
    assert found.n_assignments == 70


def test_strong_patterns_are_counted_one_after_the_other():
    X, groups = grouped(8, 0)
    Y, back_groups = grouped(8, 1, first=8)
    one = with_pattern(X, groups, np.unique(groups))
    two = one + 5 * np.random.default_rng(9).choice([-1.0, 1.0], (len(X), 1)) * [0, 0, 1.0, 0]
    for rows, count in ((X, 0), (one, 1), (two, 2)):
        found = count_directions(
            design_of(rows, groups, Y, back_groups), rng=np.random.default_rng(0)
        )
        assert found.chosen == count
        assert len(found.p_values) == count + 1
        assert (np.diff(found.p_values) >= 0).all()


# --- ranking and shares ---


def test_a_pattern_of_one_group_ranks_behind_one_of_a_third():
    X, groups = grouped(18, 0, p=5)
    Y, back_groups = grouped(9, 1, p=5, first=18)
    X = with_pattern(X, groups, [f"g{i}" for i in range(6)], size=3.0)
    own = groups == "g7"
    X[own] += 14 * np.random.default_rng(5).choice([-1.0, 1.0], (own.sum(), 1)) * [0, 0, 1.0, 1, 0]
    with pytest.warns() as said:
        model = ContrastiveICA(3, random_state=0).fit(
            X, background=Y, groups=groups, background_groups=back_groups
        )
    assert model.solver_ == "subspace"
    assert np.abs(model.components_[0, :2]).min() > 0.6
    assert model.group_share_.shape == (3, 18)
    assert_allclose(model.group_share_.sum(axis=1), 1)
    own = int(np.argmax(model.group_share_[:, list(model.groups_).index("g7")]))
    assert own > 0
    assert model.group_share_[own].max() > 0.8
    assert np.abs(model.components_[own, 2:4]).min() > 0.6
    assert model.source_ratio_[own] > model.source_ratio_[0]
    assert (np.diff(model.robust_ratio_) <= 0).all()
    told = [str(each.message) for each in said if getattr(each.message, "code", "") == "few-groups"]
    assert [text for text in told if text.startswith(f"pattern {own + 1} is") and "in g7" in text]
    assert not [text for text in told if text.startswith("pattern 1 ")]
    lines = model.summary().splitlines()
    assert "carried by 6 of 18 groups" in next(
        line for line in lines if line.startswith("pattern 1")
    )
    assert lines[0].startswith("found: ")
    assert any(
        line.startswith("evidence: p = ") and "whole groups assigned" in line for line in lines
    )


@pytest.mark.filterwarnings("ignore::contrica.errors.PatternWarning")
def test_order_of_rows_and_names_of_groups_do_not_matter(pair):
    X, groups, Y, back_groups = pair
    X = with_pattern(X, groups, ["g0", "g1", "g2"])
    whole = fit(X, Y, groups=groups, background_groups=back_groups)
    order = np.random.default_rng(0).permutation(len(X))
    other = fit(X[order], Y, groups=groups[order], background_groups=back_groups)
    assert_allclose(other.scree_.p_values, whole.scree_.p_values)
    assert_allclose(other.group_share_, whole.group_share_, atol=1e-6)
    renamed = fit(X, Y, groups=[f"a{g}" for g in groups], background_groups=back_groups)
    assert_allclose(renamed.group_share_, whole.group_share_)


def test_too_few_groups_are_told_with_the_smallest_p():
    X, groups = grouped(2, 0)
    Y, back_groups = grouped(2, 1, first=2)
    with warns(GroupWarning, "too-few-groups") as said, pytest.warns(PatternWarning):
        model = fit(X, Y, groups=groups, background_groups=back_groups)
    assert "smallest attainable p is 0.17" in str(said[0].message)
    assert model.n_foreground_ == 0
    assert len(model.components_) == 1


@pytest.mark.filterwarnings("ignore::contrica.errors.PatternWarning")
def test_groups_of_sampled_rows_are_those_of_the_rows(monkeypatch):
    X, groups = grouped(8, 0, rows=500)
    Y, back_groups = grouped(8, 1, rows=500, first=8)
    X = with_pattern(X, groups, ["g0", "g1", "g2", "g3"], size=6.0)
    whole = fit(X, Y, groups=groups, background_groups=back_groups)
    monkeypatch.setattr(working, "MANY_ROWS", 3000)
    monkeypatch.setattr(working, "MAX_ENTRIES", 0)
    some = fit(X, Y, groups=groups, background_groups=back_groups)
    assert some.n_rows_sampled_ == (1500, 1500)
    assert_allclose(some.group_share_, whole.group_share_, atol=0.05)


@pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")
def test_groups_survive_a_journey_to_a_file(pair, tmp_path):
    X, groups, Y, back_groups = pair
    model = fit(X, Y, groups=groups, background_groups=back_groups)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.summary() == model.summary()
    assert again.groups_.tolist() == model.groups_.tolist()
    proportional = ProportionalContrastiveICA(2, n_background=3, n_foreground=2, random_state=0)
    proportional.fit(X, background=Y, groups=groups, background_groups=back_groups)
    assert proportional.group_share_.shape == (2, 8)


def test_mice_have_genotype_first(real_data):
    from sklearn.metrics import silhouette_score

    from contrica.datasets import load_mouse_protein

    data = load_mouse_protein(real_data)
    with pytest.warns(PatternWarning):
        model = ContrastiveICA(random_state=0).fit(
            data.foreground,
            background=data.background,
            groups=data.groups,
            background_groups=data.background_groups,
        )
    assert len(set(data.groups)) == 18
    assert len(set(data.background_groups)) == 9
    scores = model.transform(data.foreground)
    assert scores.shape[1] == 1
    assert silhouette_score(scores, data.labels) > 0.7
    assert model.n_foreground_ == 0


def test_donors_have_interferon_first(real_data):
    from contrica.datasets import load_kang

    data = load_kang(real_data, design="donors", preprocessing="usual")
    model = ContrastiveICA(random_state=0).fit(
        data.foreground,
        background=data.background,
        groups=data.groups,
        background_groups=data.background_groups,
    )
    assert_allclose(model.scree_.p_values[0], 1 / 70)
    assert model.n_foreground_ >= 1
    score = model.transform(data.foreground)[:, 0]
    apart = abs(score[data.labels == 1].mean() - score[data.labels == 0].mean()) / score.std()
    assert apart > 1.7


def test_the_shell_takes_groups_from_files(tmp_path):
    from tests.test_cli.shell import run, words

    X, groups = grouped(8, 0)
    Y, back_groups = grouped(8, 1, first=8)
    X = with_pattern(X, groups, np.unique(groups))
    for name, rows, labels in (("fore", X, groups), ("back", Y, back_groups)):
        np.save(tmp_path / f"{name}.npy", rows)
        (tmp_path / f"{name}.txt").write_text("\n".join(labels) + "\n")
    result = run(
        *("fit", tmp_path / "fore.npy", "--background", tmp_path / "back.npy"),
        *("--groups", tmp_path / "fore.txt", "--background-groups", tmp_path / "back.txt"),
        *("--out", tmp_path / "out"),
    )
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "out" / "model.npz")
    assert model.n_foreground_ == len(model.components_) == 1
    assert model.groups_.tolist() == [f"g{i}" for i in range(8)]
    assert "groups: p = 0.001 for a first ratio this large" in words(result)
    assert "pattern 1 is carried by 8 of 8 groups" in words(result)
    result = run(
        *("fit", tmp_path / "fore.npy", "--background", tmp_path / "back.npy"),
        *("--groups", tmp_path / "fore.txt", "--out", tmp_path / "other"),
    )
    assert result.exit_code == 2
    assert "--background-groups is missing" in words(result)


def test_a_number_of_patterns_that_is_given_is_summed_up_with_few_p_values(rng):
    X, Y = rng.laplace(size=(2, 600, 6))
    groups = np.repeat(np.arange(20), 30)
    model = ContrastiveICA(solver="subspace", n_foreground=4, random_state=0)
    model.fit(X, background=Y, groups=groups, background_groups=groups + 20)
    assert model.scree_.p_values.size < 4
    assert f"p = {model.scree_.p_values[0]:.2g} for the first" in model.summary()


@pytest.mark.parametrize("solver", ["joint", "paper", "subspace"])
@pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")
def test_the_summary_says_what_was_tested_and_of_what(solver):
    rng = np.random.default_rng(0)
    X, Y = rng.exponential(size=(2, 3000, 4))
    groups = np.repeat(np.arange(60), 50)
    signal = X + 3 * rng.choice([-1, 1], (3000, 1)) * [1, 1, 0, 0]
    for rows, labels in ((signal, None), (signal, groups), (X, groups)):
        model = ContrastiveICA(2, solver=solver, random_state=0)
        model.fit(rows, background=Y, groups=labels, background_groups=labels)
        evidence = [line for line in model.summary().splitlines() if line.startswith("evidence")]
        told = " ".join(evidence)
        assert ("are taken as pairs" in told) == (solver == "subspace" and labels is not None)
        assert ("not tested" in told) == (solver == "paper")
        assert ("whole groups" in told) == (solver != "paper" and labels is not None)
        assert ("independent" in told) == (solver != "paper" and labels is None)
        shown = " ".join(fit_lines(model))
        assert ("standard errors of whole groups" in shown) == (
            solver == "joint" and labels is not None
        )
        assert shown.count("are taken as pairs") == told.count("are taken as pairs")
        if solver == "joint" and rows is signal:
            assert model.n_foreground_ == 1
            assert order_in_words(model) == "contrast ratio, those that do not stand out last"
        if solver == "joint" and rows is X:
            assert model.n_foreground_ == 0
            assert "no foreground pattern is significant by its weight" in told


def test_the_summary_says_which_groups_are_taken_as_pairs(tmp_path):
    rng = np.random.default_rng(0)
    rows, others = rng.standard_normal((2, 60, 4))
    fore, back = np.repeat(list("abcdef"), 10), np.repeat(list("cdefgh"), 10)
    model = ContrastiveICA(1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, background=others, groups=fore, background_groups=back)
    assert model.paired_groups_.tolist() == ["c", "d", "e", "f"]
    told = "4 of 6 groups of the foreground have names of groups of the background (c, d, e, ...)"
    assert told in model.summary()
    save(model, tmp_path / "model.npz")
    assert told in load(tmp_path / "model.npz").summary()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, background=others, groups=fore, background_groups=np.char.add("y", back))
    assert model.paired_groups_.size == 0
    assert "pairs" not in model.summary()
