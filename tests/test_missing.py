"""Missing values: filled, or left out of moments; counted, named where refused, predicted in new rows."""

import re
import tempfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from contrica import ContrastiveICA, PlainPCA, ProportionalContrastiveICA, load, save
from contrica.datasets import make_synthetic
from contrica.errors import DataError, MemoryBudgetError, ParameterError
from contrica.metrics import pattern_similarity
from contrica.moments.fourth import cumulants
from contrica.moments.pairwise import pairwise_moments
from contrica.rows import Blocks, as_rows, open_rows
from contrica.rows import missing as filling
from contrica.rows.files import text
from contrica.rows.missing import Filled, filled, predicted
from contrica.rows.observed import observed_columns
from tests import naive
from tests.said import raises
from tests.test_passes import Counted

WAYS = ("impute", "pairwise")


def with_gaps(X, share, seed=0):
    """Values missing completely at random, but never a whole row."""
    gaps = np.random.default_rng(seed).random(X.shape) < share
    gaps[gaps.all(axis=1), 0] = False
    return np.where(gaps, np.nan, X)


def correlated(n, p, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).standard_normal((p, p))
    return 5 + scale * rng.exponential(size=(n, p)) @ mixing


def pair(n=400, p=5, share=0.1):
    """A foreground with two more sources than its background, both with gaps."""
    rng = np.random.default_rng(1)
    X, Y = correlated(n, p, 1), correlated(n, p, 2)
    X[:, :2] += 6 * rng.exponential(size=(n, 2))
    return with_gaps(X, share, 3), with_gaps(Y, share, 4)


# --- moments from observed entries ---


def test_moments_from_observed_entries_are_those_of_plain_loops():
    X = with_gaps(correlated(60, 3), 0.2)
    found = pairwise_moments(X, np.nanmean(X, axis=0)).cumulants("X")
    S, T, K = naive.pairwise_cumulants(X)
    assert_allclose(found.covariance, S, rtol=1e-10)
    assert_allclose(found.third.entries, T, rtol=1e-9, atol=1e-9)
    eye = np.eye(3)
    for i in range(3):
        for j in range(3):
            unit = (np.outer(eye[i], eye[j]) + np.outer(eye[j], eye[i])) / 2
            assert_allclose(found.fourth.apply(unit), K[i, j], rtol=1e-9, atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 70))
def test_moments_from_observed_entries_depend_neither_on_order_nor_on_blocks(seed, n_rows):
    X = with_gaps(correlated(70, 4, seed), 0.15, seed)
    mean = np.nanmean(X, axis=0)
    order = np.random.default_rng(seed).permutation(len(X))
    blocks = Blocks([X[order][i : i + n_rows] for i in range(0, len(X), n_rows)])
    one = pairwise_moments(X, mean).cumulants("X")
    two = pairwise_moments(as_rows(blocks), mean).cumulants("X")
    scale = np.abs(one.fourth.flatten()).max()
    assert_allclose(two.fourth.flatten(), one.fourth.flatten(), atol=1e-10 * scale)
    assert_allclose(two.covariance, one.covariance, rtol=1e-9)


def test_moments_of_complete_rows_are_the_ordinary_ones():
    X = correlated(200, 4)
    found, ordinary = pairwise_moments(X, X.mean(axis=0)).cumulants("X"), cumulants(X)
    assert_allclose(found.covariance, ordinary.covariance, rtol=1e-10)
    scale = np.abs(ordinary.fourth.flatten()).max()
    assert_allclose(found.fourth.flatten(), ordinary.fourth.flatten(), atol=1e-10 * scale)
    assert_allclose(found.third.entries, ordinary.third.entries, atol=1e-9 * scale**0.75)


def test_groups_of_observed_entries_add_up_to_all_of_them():
    X = correlated(120, 3)
    found = pairwise_moments(X, X.mean(axis=0), 4)
    groups = found.groups()
    assert [part.n_samples for part in groups] == [30] * 4
    whole = pairwise_moments(X, X.mean(axis=0)).groups()[0]
    assert_allclose(np.mean([part.second for part in groups], axis=0), whole.second, rtol=1e-10)
    flat = np.mean([part.fourth.flatten() for part in groups], axis=0)
    assert_allclose(flat, whole.fourth.flatten(), rtol=1e-9)
    # rows are assigned in turn, whatever the blocks
    again = pairwise_moments(as_rows(Blocks([X[:7], X[7:50], X[50:]])), X.mean(axis=0), 4).groups()
    for one, two in zip(groups, again, strict=True):
        assert_allclose(one.second, two.second, rtol=1e-10)


def test_a_covariance_of_few_observed_entries_is_made_positive_definite():
    rng = np.random.default_rng(3)
    X = with_gaps(rng.standard_normal((25, 1)) + 0.05 * rng.standard_normal((25, 6)), 0.4, 5)
    S = np.array([[naive.pairwise_moment(X, i, j) for j in range(6)] for i in range(6)])
    assert np.linalg.eigvalsh(S)[0] < 0
    together = np.isnan(X)
    X[together.sum(axis=1) > 2] = rng.standard_normal(6)  # so that any four are observed together
    found = pairwise_moments(X, np.nanmean(X, axis=0)).cumulants("X")
    assert np.linalg.eigvalsh(found.covariance)[0] > 0


def test_variables_that_are_never_observed_together_are_named():
    X = correlated(50, 4)
    X[:25, 1], X[25:, 3] = np.nan, np.nan
    with raises(DataError, "never-together", "X") as caught:
        pairwise_moments(X, np.nanmean(X, axis=0)).cumulants("X")
    assert "columns 1, 3" in str(caught.value)
    with raises(DataError, "never-together", "X"):
        ContrastiveICA(missing="pairwise").fit(X, background=correlated(50, 4, 1))


# --- rows that are filled ---


def test_predictions_are_conditional_means():
    p, rng = 4, np.random.default_rng(0)
    loadings, noise = rng.standard_normal((p, 2)), np.array([0.5, 1.0, 0.2, 2.0])
    X = with_gaps(rng.standard_normal((30, p)), 0.4)
    observed = ~np.isnan(X)
    found = predicted(np.where(observed, X, 0.0), observed, loadings, noise)
    S = loadings @ loadings.T + np.diag(noise)
    expected = naive.conditional_means(X, np.zeros(p), S)
    assert_allclose(found[~observed], expected[~observed], rtol=1e-9, atol=1e-12)


def test_filled_rows_keep_means_variances_and_covariances():
    """Also of the dataset that alone has gaps: it gets neither less nor more variance than the other."""
    X, Y = correlated(20_000, 5, 1), correlated(20_000, 5, 2)
    gappy = with_gaps(X, 0.2)
    one, two = filled([gappy, Y], [observed_columns(part, np.arange(5000)) for part in (gappy, Y)])
    assert two is Y
    assert_array_equal(one[~np.isnan(gappy)], gappy[~np.isnan(gappy)])
    S = np.cov(X.T)
    spread = np.sqrt(np.diag(S))
    # a tenth of the standard error of a covariance of 20 000 rows would be 0.001; filling adds to it
    assert np.abs((np.cov(one.T) - S) / np.outer(spread, spread)).max() < 0.02
    assert np.abs((one.mean(axis=0) - X.mean(axis=0)) / spread).max() < 0.01
    means = np.where(np.isnan(gappy), np.nanmean(gappy, axis=0), gappy)
    assert np.abs((np.cov(means.T) - S) / np.outer(spread, spread)).max() > 0.1


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 90), st.integers(0, 100))
def test_filled_rows_do_not_depend_on_blocks(n_rows, seed):
    X, Y = with_gaps(correlated(80, 4, seed), 0.2, seed), correlated(60, 4, 1)
    found = [observed_columns(part, np.arange(len(part))) for part in (X, Y)]
    one = filled([X, Y], found)[0]
    found = [observed_columns(part, np.arange(len(part))) for part in (X, Y)]
    blocks = as_rows(Blocks([X[i : i + n_rows] for i in range(0, len(X), n_rows)]))
    two = filled([blocks, Y], found)[0]
    assert isinstance(two, Filled)
    assert_allclose(np.vstack(list(two.blocks(n_rows))), one, rtol=1e-10)
    assert not np.isnan(one).any()


def test_large_arrays_are_filled_in_every_pass_and_in_the_same_way(monkeypatch):
    X, Y = pair()
    whole = ContrastiveICA(2, random_state=0, missing="impute").fit(X, background=Y)
    monkeypatch.setattr(filling, "MAX_FILLED", 0)
    parts = ContrastiveICA(2, random_state=0, missing="impute").fit(X, background=Y)
    assert_allclose(parts.components_, whole.components_, atol=1e-8)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 50))
def test_what_one_pass_says_of_gaps_does_not_depend_on_blocks(seed, n_rows):
    X = with_gaps(1e6 + correlated(50, 3, seed), 0.3, seed)
    blocks = as_rows(Blocks([X[i : i + n_rows] for i in range(0, len(X), n_rows)]))
    found = observed_columns(blocks, np.arange(0, 50, 2))
    assert_array_equal(found.n_missing, np.isnan(X).sum(axis=0))
    assert_allclose(found.mean, np.nanmean(X, axis=0), rtol=1e-13)
    counts = (~np.isnan(X)).sum(axis=0)
    assert_allclose(found.energy, counts * np.nanvar(X, axis=0), rtol=1e-7)
    assert_array_equal(found.chosen.rows(3), X[::2])
    first, second = observed_columns(X[:20]), observed_columns(X[20:])
    assert_allclose(first.merge(second).mean, np.nanmean(X, axis=0), rtol=1e-13)


# --- fits ---


@pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(WAYS), st.sampled_from(["subspace", "joint", "paper"]))
def test_without_gaps_nothing_changes(seed, way, solver):
    X, Y = correlated(150, 3, seed), correlated(150, 3, seed + 1)
    options = {"solver": solver, "n_foreground": 1, "random_state": 0}
    one = ContrastiveICA(1, **options).fit(X, background=Y)
    two = ContrastiveICA(1, missing=way, **options).fit(X, background=Y)
    assert_array_equal(one.components_, two.components_)
    assert_array_equal(one.transform(X), two.transform(X))
    assert not two.n_missing_.any()
    assert "missing" not in two.summary()


def test_gaps_cost_two_passes_more_and_their_absence_none():
    X, Y = pair(3000)
    for way in WAYS:
        rows = [Counted(np.nan_to_num(part)) for part in (X, Y)]
        ContrastiveICA(2, missing=way, solver="subspace").fit(rows[0], background=rows[1])
        assert [part.passes for part in rows] == [2, 2]
        rows = [Counted(X), Counted(np.nan_to_num(Y))]
        ContrastiveICA(2, missing=way, solver="subspace").fit(rows[0], background=rows[1])
        # the moments of observed entries have one of their own, where they are asked for
        assert [part.passes for part in rows] == [4 + (way == "pairwise"), 3]


def containers(X, folder):
    np.save(folder / "rows.npy", X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    yield "blocks", Blocks([X[:100], X[100:]])
    yield "data frame", frame
    yield "memory map", open_rows(folder / "rows.npy").rows
    yield "csv", open_rows(folder / "rows.csv", gaps=True).rows
    yield "parquet", open_rows(folder / "rows.parquet").rows
    yield "float32", X.astype(np.float32).astype(np.float64)
    yield "sparse", sp.csr_matrix(X)


@pytest.mark.filterwarnings("ignore::contrica.errors.DelicateDataWarning")  # of names
@pytest.mark.parametrize("way", WAYS)
def test_every_container_gives_what_an_array_gives(way, tmp_path):
    pytest.importorskip("pyarrow")
    X, Y = pair()
    expected = ContrastiveICA(2, missing=way, solver="subspace", random_state=0)
    expected.fit(X, background=Y)
    scores = expected.transform(X)
    for name, rows in containers(X, tmp_path):
        model = ContrastiveICA(2, missing=way, solver="subspace", random_state=0)
        model.fit(rows, background=Y)
        # sums in another order, and a rotation that ends at a tolerance of its own
        tolerance = 1e-4 if name == "float32" else 1e-6
        assert_allclose(model.components_, expected.components_, atol=tolerance, err_msg=name)
        assert_array_equal(model.n_missing_, expected.n_missing_)
        assert_allclose(model.transform(rows), scores, atol=1e3 * tolerance, err_msg=name)


def test_chunks_of_dask_give_what_an_array_gives():
    dask_array = pytest.importorskip("dask.array")
    X, Y = pair()
    options = {"missing": "impute", "solver": "subspace", "random_state": 0}
    one = ContrastiveICA(2, **options).fit(X, background=Y)
    two = ContrastiveICA(2, **options).fit(dask_array.from_array(X, chunks=(90, 5)), background=Y)
    # a rotation ends within this of its maximum, wherever sums are taken
    assert_allclose(two.components_, one.components_, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_patterns_are_found_in_spite_of_gaps(way):
    data = make_synthetic(4, n_samples=20_000, random_state=0)
    X, Y = with_gaps(data.foreground, 0.05, 1), with_gaps(data.background, 0.05, 2)
    options = {"n_background": 4, "n_foreground": 3, "solver": "joint", "random_state": 0}
    model = ContrastiveICA(3, missing=way, **options).fit(X, background=Y)
    assert pattern_similarity(model.components_.T, data.B) > 0.99


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")
def test_other_parameters_go_with_gaps(way):
    X, Y = pair()
    groups = np.repeat(np.arange(20), 20)
    several = ContrastiveICA(2, missing=way).fit(X, background=[Y, Y[:200]])
    assert several.n_missing_.shape == (3, 5)
    ContrastiveICA(2, missing=way).fit(
        X, background=Y, groups=groups, background_groups=groups + 50
    )
    ContrastiveICA(2, missing=way, n_pcs=3).fit(X, background=Y)
    ContrastiveICA(2, missing=way).fit(X)
    model = ProportionalContrastiveICA(2, missing=way, n_foreground=2, background_scale=1.0)
    assert np.isfinite(model.fit(X, background=Y).transform(X)).all()


@pytest.mark.filterwarnings(
    "ignore::contrica.errors.PatternWarning"
)  # nothing is found, as it should be
def test_gaps_in_the_foreground_alone_are_not_taken_for_contrast():
    """A sample of the study in benchmarks/missing.py."""
    found = 0
    for seed in range(8):
        X, Y = correlated(400, 4, seed), correlated(400, 4, seed + 100)
        model = ContrastiveICA(missing="impute", solver="subspace", random_state=0)
        model.fit(with_gaps(X, 0.15, seed), background=Y)
        found += model.n_foreground_ > 0
    assert found <= 2


# --- new rows ---


def test_scores_of_rows_with_gaps_are_those_of_their_conditional_means():
    X, Y = pair()
    model = ContrastiveICA(2, missing="impute", solver="subspace", random_state=0)
    model.fit(X, background=Y)
    S = model.gap_loadings_ @ model.gap_loadings_.T + np.diag(model.gap_noise_)
    expected = (naive.conditional_means(X, model.mean_, S) - model.mean_) @ model.filters_.T
    assert_allclose(model.transform(X), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    complete = X[~np.isnan(X).any(axis=1)]
    assert_array_equal(model.transform(complete), (complete - model.mean_) @ model.filters_.T)


def test_a_model_of_complete_rows_scores_rows_with_gaps():
    X, Y = (np.where(np.isnan(part), 5.0, part) for part in pair())
    model = ContrastiveICA(2, missing="impute", solver="subspace", random_state=0)
    model.fit(X, background=Y)
    scores, some = model.transform(X), model.transform(with_gaps(X, 0.1))
    assert np.corrcoef(scores[:, 0], some[:, 0])[0, 1] > 0.9


def test_a_row_without_any_value_has_no_scores():
    X, Y = pair()
    model = ContrastiveICA(2, missing="impute", solver="subspace", random_state=0)
    model.fit(X, background=Y)
    rows = X[:5].copy()
    rows[2] = np.nan
    again = ContrastiveICA(2, missing="impute", solver="subspace", random_state=0)
    again.fit(np.vstack([X, rows[2:3]]), background=Y)  # but does no harm
    assert pattern_similarity(again.components_.T, model.components_.T) > 0.99
    scores = model.transform(rows)
    assert_array_equal(np.isnan(scores).all(axis=1), [False, False, True, False, False])
    rows[3, 1] = np.inf
    with raises(DataError, "not-finite", "X"):
        model.transform(rows)


# --- what is refused, counted and kept ---


@pytest.mark.filterwarnings("ignore::contrica.errors.PatternWarning")  # of one common scale
@pytest.mark.parametrize("make", [ContrastiveICA, ProportionalContrastiveICA, PlainPCA])
def test_gaps_are_refused_by_default_and_the_variables_named(make):
    X, Y = (np.where(np.isnan(part), 5.0, part) for part in pair())
    frame = pd.DataFrame(X, columns=["ash", "birch", "cedar", "elm", "fir"])
    gappy = frame.copy()
    gappy.loc[:2, "birch"], gappy.loc[7, "fir"] = np.nan, np.nan
    back = pd.DataFrame(Y, columns=frame.columns)
    with raises(DataError, "not-finite", "X") as caught:
        make(2).fit(gappy, background=back)
    assert "2 variable(s): birch (3 values), fir (1 values)" in str(caught.value)
    can = make is not PlainPCA
    assert ('missing="impute"' in str(caught.value)) == can
    model = make(2).fit(frame, background=back)
    with raises(DataError, "not-finite", "X") as again:
        model.transform(gappy)
    for told in (caught, again):
        assert "birch (3 values)" in str(told.value)
        assert not re.search("sklearn|estimator|HistGradient|Imputer", str(told.value))


def test_what_cannot_be_filled_is_refused():
    X, Y = pair()
    bad = X.copy()
    bad[3, 1] = np.inf
    for way in WAYS:
        with raises(DataError, "not-finite", "X") as caught:
            ContrastiveICA(missing=way).fit(bad, background=Y)
        assert "column 1" in str(caught.value)
        blank = Y.copy()
        blank[:, 2] = np.nan
        with raises(DataError, "nothing-observed", "background") as caught:
            ContrastiveICA(missing=way).fit(X, background=blank)
        assert "column 2" in str(caught.value)
    with raises(DataError, "not-finite", "X"):
        ContrastiveICA(missing="impute").partial_fit(X, background=Y)


def test_parameters_that_do_not_go_together_are_refused_before_rows_are_read():
    rows = [Counted(part) for part in pair()]
    for cumulant in ("unbiased", "robust"):
        with raises(ParameterError, "not-together", "missing"):
            ContrastiveICA(missing="pairwise", cumulant=cumulant).fit(rows[0], background=rows[1])
    with raises(ParameterError, "unknown-choice", "missing"):
        ContrastiveICA(missing="drop").fit(rows[0], background=rows[1])
    wide = Counted(np.zeros((3, 101)))
    with raises(ParameterError, "too-wide", "missing"):
        ContrastiveICA(missing="pairwise").fit(wide, background=wide)
    wide = Counted(np.zeros((3, 90)))
    with raises(MemoryBudgetError, "memory", "memory_limit"):
        ContrastiveICA(missing="pairwise", memory_limit="60MB").fit(wide, background=wide)
    assert [part.n_read for part in (*rows, wide)] == [0, 0, 0]


def test_gaps_are_counted_told_and_saved():
    X, Y = pair()
    model = ContrastiveICA(2, missing="impute", solver="subspace", random_state=0)
    model.fit(X, background=Y)
    assert_array_equal(model.n_missing_, [np.isnan(part).sum(axis=0) for part in (X, Y)])
    counts = [int(np.isnan(part).sum()) for part in (X, Y)]
    told = f"missing values: {counts[0]} in the foreground, {counts[1]} in the background"
    assert told in model.summary()
    with tempfile.TemporaryDirectory() as folder:
        save(model, f"{folder}/model.npz")
        again = load(f"{folder}/model.npz")
    assert again.missing == "impute"
    assert_array_equal(again.n_missing_, model.n_missing_)
    assert_array_equal(again.transform(X), model.transform(X))
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert not ContrastiveICA().__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("by_arrow", [False, True])
def test_empty_cells_and_na_are_missing_values_where_they_may_be(by_arrow, tmp_path, monkeypatch):
    if by_arrow:
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(text, "ARROW_BYTES", 0)
    path = tmp_path / "t.csv"
    expected = np.array([[np.nan, 2, 3], [4, np.nan, 6], [7, 8, np.nan], [np.nan, np.nan, 1.5]])
    cells = "NA,2,3\n4,,6\n7,8,nan\nn/a,NULL,1.5\n"
    for header, first in (("a,b,c\n", False), ("", False), (",a,b,c\n", True)):
        body = cells
        if first:
            body = "".join(f"row {i},{line}\n" for i, line in enumerate(cells.splitlines()))
        path.write_text(header + body)
        table = open_rows(path, gaps=True)
        assert_array_equal(table.rows, expected)
        assert (table.columns is not None) == bool(header)
        assert (table.row_names is not None) == first
    path.write_text("a,b,c\n1,2,oak\n1,2,3\n")
    with pytest.raises(Exception, match="oak"):
        open_rows(path, gaps=True)
