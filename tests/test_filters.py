"""Filters where rows are few: shrunk covariances, by held-out rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ttest_1samp

from contrica import ContrastiveICA, load, save
from contrica.datasets import make_four_clusters
from contrica.rows.groups import Groups
from contrica.solvers.filters import AMOUNTS, choose_shrinkage, shrunk
from contrica.solvers.ratio import filters_of
from tests import naive


def noisy(p, n, seed=0):
    """Five sources in p variables with noise of their own, and the patterns of the first two."""
    rng = np.random.default_rng([p, n, seed])
    mixing = rng.standard_normal((p, 5))
    mixing /= np.linalg.norm(mixing, axis=0)
    sources = rng.laplace(size=(n, 5))
    return sources @ mixing.T + 0.3 * rng.standard_normal((n, p)), mixing[:, :2], sources[:, :2]


def naive_choice(rows, part, patterns):
    losses = naive.held_out_losses(rows, part, patterns, (0.0, *AMOUNTS))
    gains = losses[:, :1] - losses[:, 1:]
    best = gains.mean(axis=0).argmax()
    p_value = ttest_1samp(gains[:, best], 0.0, alternative="greater").pvalue
    return AMOUNTS[best] if p_value < 0.05 else 0.0


@pytest.mark.parametrize("n", [20, 40, 100])
def test_the_amount_is_that_of_the_definition(n):
    rows, patterns, _ = noisy(12, n)
    assert choose_shrinkage(rows, patterns) == naive_choice(rows, np.arange(n) % 5, patterns)


def test_whole_groups_are_held_out():
    rows, patterns, _ = noisy(12, 20)
    codes = np.repeat([6, 4, 3, 1, 0], 4)  # groups 2 and 5 have no rows here
    found = choose_shrinkage(rows, patterns, Groups(codes, tuple("abcdefg")))
    assert found == naive_choice(rows, np.repeat([4, 3, 2, 1, 0], 4), patterns) > 0
    assert choose_shrinkage(rows, patterns, Groups(np.zeros(20, dtype=int), ("a",))) == 0


def test_few_rows_are_shrunk_and_many_are_not_at_all():
    rows, patterns, _ = noisy(12, 18)
    assert choose_shrinkage(rows, patterns) > 0
    rows, patterns, _ = noisy(12, 1200)
    assert choose_shrinkage(rows, patterns) == 0
    covariance = np.cov(rows.T)
    assert shrunk(covariance, 0.0) is covariance


def test_units_of_the_variables_and_lengths_of_patterns_do_not_matter():
    rows, patterns, _ = noisy(12, 24)
    units = np.exp(np.random.default_rng(0).uniform(-3, 3, size=12))
    amount = choose_shrinkage(rows, patterns)
    assert amount > 0
    assert choose_shrinkage(rows * units, patterns * units[:, None] * 7) == amount
    filters, others = (
        filters_of(b, shrunk(np.cov(part.T), amount))
        for part, b in ((rows, patterns), (rows * units, patterns * units[:, None]))
    )
    assert_allclose(others * units[:, None], filters, rtol=1e-9)


def test_shrunk_filters_find_the_sources_of_new_rows_better():
    gains = []
    for seed in range(20):
        every, patterns, sources = noisy(12, 4018, seed)
        rows, new, sources = every[:18], every[18:], sources[18:]
        found = []
        for amount in (0.0, choose_shrinkage(rows, patterns)):
            filters = filters_of(patterns, shrunk(np.cov(rows.T), amount))
            scores = new @ filters
            found.append(np.mean([np.corrcoef(scores[:, j], sources[:, j])[0, 1] for j in (0, 1)]))
        gains.append(found[1] - found[0])
    assert np.median(gains) > 0.05


def test_strong_sources_are_spared():
    """All else is a small part of what filters let through: a little less of it says nothing."""
    spared = []
    for seed in range(20):
        data = make_four_clusters(100, random_state=np.random.default_rng([seed, 15]))
        spared.append(choose_shrinkage(data.foreground, data.B + 0.03) == 0)
    assert np.mean(spared) >= 0.75


def test_rows_that_are_all_alike_are_not_shrunk():
    assert choose_shrinkage(np.ones((20, 3)), np.eye(3)[:, :2]) == 0


def fitted(solver, n):
    rows, _, _ = noisy(10, n, 1)
    background, _, _ = noisy(10, n, 2)
    options = {} if solver == "subspace" else {"n_background": 3}
    model = ContrastiveICA(2, solver=solver, n_pcs=None, n_foreground=2, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, background=background), rows


def test_a_fit_says_how_much_and_has_unit_gain_on_its_patterns(tmp_path):
    model, rows = fitted("joint", 16)
    expected = choose_shrinkage(rows, model.components_.T)
    assert model.filter_shrinkage_ == expected > 0
    S = shrunk(np.cov(rows.T, bias=True), expected)
    assert_allclose(model.filters_, filters_of(model.components_.T, S).T, rtol=1e-6)
    assert_allclose(np.sum(model.filters_ * model.components_, axis=1), 1)
    assert f"filters: covariances shrunk by {expected:.1%}" in model.summary()
    save(model, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").filter_shrinkage_ == expected


@pytest.mark.parametrize(("solver", "n"), [("subspace", 16), ("joint", 1000)])
def test_the_subspace_and_fits_of_many_rows_stay_as_they_were(solver, n):
    model, rows = fitted(solver, n)
    assert model.filter_shrinkage_ == 0
    assert "filters:" not in model.summary()
    S = np.cov(rows.T, bias=True)
    assert_allclose(model.filters_, filters_of(model.components_.T, S).T, rtol=1e-6)
