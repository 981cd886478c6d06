"""`contrica.inference.group_effects`: which variables move with a pattern, group by group."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import pearsonr, ttest_1samp

from contrica import ContrastiveICA
from contrica.errors import GroupsError, GroupWarning
from contrica.inference import group_effects
from contrica.inference._group_effects import _moved
from tests import naive

DONORS, ROWS, NEW = 6, 60, 4


def two_datasets(rng, n_features=16, donors=DONORS):
    """Both with means of each donor; the first four variables of the foreground share a source."""
    labels = np.repeat([f"d{i}" for i in range(donors)], ROWS)
    X, Y = (
        rng.laplace(size=(labels.size, n_features))
        + 0.5 * rng.standard_normal((donors, n_features)).repeat(ROWS, axis=0)
        for _ in range(2)
    )
    X[:, :NEW] += 2 * rng.laplace(size=(labels.size, 1))
    return X, Y, {"groups": labels, "background_groups": labels}


@pytest.fixture(scope="module")
def fitted():
    X, Y, labels = two_datasets(np.random.default_rng(0))
    model = ContrastiveICA(1, random_state=0).fit(X, background=Y, **labels)
    return model, X, Y, labels, group_effects(model, X, background=Y, **labels, random_state=0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_a_variable_is_compared_with_the_score_of_the_others(kind):
    rng = np.random.default_rng(1)
    rows, axis = rng.laplace(size=(50, 7)) * (rng.random((50, 7)) < 0.5), rng.standard_normal(7)
    assert_allclose(_moved(kind(rows), axis), naive.moved_with_others(rows, axis), atol=1e-12)


def test_a_variable_that_does_not_vary_does_not_move():
    rows = np.random.default_rng(2).standard_normal((30, 3))
    rows[:, 1] = 2.0
    assert_allclose(_moved(rows, np.ones(3))[1], 0, atol=1e-12)


def test_variables_of_the_pattern_move_and_donors_agree(fitted):
    model, *_, found = fitted
    assert found.effects.shape == (1, DONORS, 16)
    assert_array_equal(found.n_groups, [DONORS])
    assert found.groups == tuple(f"d{i}" for i in range(DONORS))
    assert (found.q_values[0, :NEW] < 0.01).all()
    # the score of the others is a little less of the source than that of all
    assert_allclose(found.effects[0].mean(axis=0)[:NEW], model.effects_[0, :NEW], rtol=0.25)
    assert_allclose(found.p_values, ttest_1samp(found.effects, 0, axis=1).pvalue, rtol=1e-8)
    assert (found.q_values >= found.p_values).all()


def test_a_donor_has_the_effects_of_a_fit_without_it(fitted):
    model, X, Y, labels, found = fitted
    rest = labels["groups"] != "d2"
    rest_labels = {name: each[rest] for name, each in labels.items()}
    other = ContrastiveICA(1, solver="subspace", n_foreground=3, random_state=0)
    other.fit(X[rest], background=Y[rest], **rest_labels)
    sign = np.sign(other.components_[0] @ model.components_[0])
    moved = naive.moved_with_others(X[~rest], other.filters_[0])
    expected = sign * moved / model.background_deviations_
    # the dimension that is searched may differ by one, and with it the filter, a little
    assert_allclose(found.effects[0, 2], expected, atol=0.1)


def test_units_and_sparse_rows_change_nothing(fitted):
    _, X, Y, labels, found = fitted
    units = np.logspace(-1, 1, X.shape[1])
    model = ContrastiveICA(1, random_state=0, scale="pooled")
    plain = model.fit(X, background=Y, **labels)
    kept = group_effects(plain, X, background=Y, **labels, random_state=0)
    model = ContrastiveICA(1, random_state=0, scale="pooled")
    model.fit(X * units, background=Y * units, **labels)
    other = group_effects(
        model,
        sp.csr_matrix(X * units),
        background=sp.csr_matrix(Y * units),
        **labels,
        random_state=0,
    )
    assert_allclose(other.effects, kept.effects, atol=1e-6)
    assert_allclose(kept.effects.mean(axis=1), found.effects.mean(axis=1), atol=0.2)


def test_few_groups_have_effects_and_no_p_values():
    X, Y, labels = two_datasets(np.random.default_rng(3), donors=4)
    labels["groups"] = np.where(np.arange(240) < 5, "d9", labels["groups"])  # a group of five rows
    few = np.isin(labels["groups"], ["d9", "d0", "d1"])
    labels["groups"], X = labels["groups"][few], X[few]
    model = ContrastiveICA(1, n_foreground=1, solver="subspace", random_state=0)
    with pytest.warns(GroupWarning, match="smallest attainable p"):
        model.fit(X, background=Y, **labels)
    found = group_effects(model, X, background=Y, **labels, random_state=0)
    assert_array_equal(found.n_groups, [2])
    assert np.isnan(found.effects[0, found.groups.index("d9")]).all()
    assert np.isnan(found.p_values).all()
    assert np.isnan(found.q_values).all()


def test_groups_are_needed(fitted):
    model, X, Y, *_ = fitted
    ungrouped = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    for each in (model, ungrouped):
        with pytest.raises(GroupsError):
            group_effects(each, X, background=Y, groups=None, background_groups=None)


@pytest.mark.slow
def test_variables_that_have_no_part_are_significant_as_often_as_the_level_says():
    """Of 8 draws; a test over the rows that chose the pattern would find one in two significant."""
    tested, rows_tested = [], []
    for seed in range(8):
        X, Y, labels = two_datasets(np.random.default_rng(10 + seed), n_features=24)
        model = ContrastiveICA(1, random_state=0).fit(X, background=Y, **labels)
        found = group_effects(model, X, background=Y, **labels, random_state=0)
        tested.append(found.p_values[0, NEW:])
        scores = model.transform(X)[:, 0]
        rows_tested.append([pearsonr(scores, X[:, j]).pvalue for j in range(NEW, 24)])
    level = np.mean(np.concatenate(tested) < 0.05)
    assert level < 0.09
    assert np.mean(np.concatenate(rows_tested) < 0.05) > 2 * level
