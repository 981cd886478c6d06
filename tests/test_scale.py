"""Variables in different units: what they are divided by, in every container and in every permutation."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from contrica import Background, ContrastiveICA, ProportionalContrastiveICA
from contrica.errors import DelicateDataWarning, ParameterError, PatternWarning, collected
from contrica.estimators import report_ranks
from contrica.models import load, save
from contrica.moments import working
from contrica.rows import Blocks, as_rows, scaled
from contrica.rows.scaled import ScaledRows, divided_rows
from contrica.rows.summary import column_summary
from contrica.rows.units import warn_of_units
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.group_design import split
from contrica.solvers.permutation_null import count_directions
from contrica.solvers.rescaling import Rescaling
from contrica.solvers.row_design import RowDesign
from tests import naive
from tests.said import raises, warns
from tests.test_groups import design_of, grouped, with_pattern
from tests.test_passes import Counted

QUIET = pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")


def pair(p=12, n=2000, seed=0):
    """Two datasets, the first with a source in the variables 1 and 2."""
    rng = np.random.default_rng(seed)
    X, Y = rng.laplace(size=(2, n, p))
    X[:, 1:3] += 2 * rng.choice([-1, 1], (n, 1))
    return X, Y[: n - 300]


def units(p=12, seed=1):
    """A factor for each variable, from a hundredth to a hundred."""
    return 10 ** np.random.default_rng(seed).uniform(-2, 2, p)


def fit(X, Y, **options):
    return ContrastiveICA(**{"random_state": 0} | options).fit(X, background=Y)


# --- what it is for ---


def test_a_variable_times_a_hundred_is_warned_of_and_pooled_scale_undoes_it():
    X, Y = pair()
    wrong = np.ones(12)
    wrong[5] = 100
    with pytest.warns(PatternWarning), warns(DelicateDataWarning, "units") as said:
        assert fit(X * wrong, Y * wrong).n_foreground_ == 0
    assert "x5 has a standard deviation of" in str(said[0].message)
    assert 'scale="pooled"' in str(said[0].message)
    plain = fit(X, Y)
    before, after = (fit(X * f, Y * f, scale="pooled") for f in (1.0, wrong))
    assert after.n_foreground_ == before.n_foreground_ == plain.n_foreground_ == 1
    assert_allclose(after.components_, before.components_, atol=1e-6)
    assert_allclose(after.scale_, before.scale_ * wrong)
    assert_allclose(after.transform(X * wrong), before.transform(X), atol=1e-5)


@QUIET
@pytest.mark.parametrize("scale", ["pooled", "each"])
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "joint", "n_background": 6, "n_foreground": 1},
        {"solver": "paper", "n_background": 6, "n_foreground": 2},
        {"solver": "subspace", "cumulant": "robust"},
        {"n_pcs": 4},
        {"basis": np.eye(6)[:, :4]},
    ],
    ids=str,
)
def test_patterns_do_not_depend_on_units(scale, options):
    X, Y = pair(6)
    factors = units(6)
    one, other = (fit(X * f, Y * f, scale=scale, **options) for f in (np.ones(6), factors))
    # a joint fit and a rotation end within their tolerance, not at one point
    assert_allclose(other.components_, one.components_, atol=1e-5)
    assert_allclose(other.contrast_ratio_, one.contrast_ratio_, rtol=1e-5)


def test_original_units_come_back():
    X, Y = pair(5)
    factors = units(5)
    model = fit(X * factors, Y * factors, scale="pooled", n_components=2, n_foreground=2)
    deviations = naive.pooled_deviations([X * factors, Y * factors])
    assert_allclose(model.scale_, deviations)
    assert_allclose(model.original_components_, model.components_ * deviations)
    scores = model.transform(X * factors)
    by_hand = ((X - X.mean(axis=0)) * factors / deviations) @ model.filters_.T
    assert_allclose(scores, by_hand, atol=1e-10)
    again = model.inverse_transform(scores)
    assert_allclose(again, model.mean_ + scores @ model.original_components_)
    assert_allclose(model.transform(again), scores, atol=1e-9)
    paper = fit(X * factors, Y * factors, scale="pooled", n_foreground=2, projection="pattern")
    scores = paper.transform(X * factors)
    assert_allclose(paper.transform(paper.inverse_transform(scores)), scores, atol=1e-9)
    bare = fit(X, Y)
    assert bare.scale_ is None
    assert bare.background_spreads_ is None
    assert_allclose(bare.original_components_, bare.components_)


def test_each_is_as_standardising_each_dataset_before():
    X, Y = pair(40)
    X, Y = X * units(40) + 50, Y * units(40, 2) - 20
    by_hand = [(part - part.mean(axis=0)) / part.std(axis=0) for part in (X, Y)]
    one, other = fit(X, Y, scale="each"), fit(*by_hand)
    assert one.n_pcs_ == other.n_pcs_ < 40
    assert_allclose(one.components_, other.components_, atol=1e-6)
    assert_allclose(one.source_ratio_, other.source_ratio_, rtol=1e-6)
    assert_allclose(one.scale_, X.std(axis=0))
    assert_allclose(one.background_spreads_, [Y.std(axis=0)])
    assert_allclose(one.transform(X), other.transform(by_hand[0]), atol=1e-6)


def test_mice_on_their_own_scale_are_the_published_preprocessing(real_data):
    from contrica.datasets import _real, load_mouse_protein

    data = load_mouse_protein(real_data)
    keep, _real.standardised = _real.standardised, lambda rows: rows
    try:
        raw = load_mouse_protein(real_data)
    finally:
        _real.standardised = keep
    labels = {"groups": data.groups, "background_groups": data.background_groups}
    with pytest.warns():
        one = ContrastiveICA(random_state=0).fit(
            data.foreground, background=data.background, **labels
        )
        other = ContrastiveICA(random_state=0, scale="each").fit(
            raw.foreground, background=raw.background, **labels
        )
    assert_allclose(other.components_, one.components_, atol=1e-6)
    assert_allclose(other.transform(raw.foreground), one.transform(data.foreground), atol=1e-6)
    # divided before, permuted mice keep the deviations of the dataset that they came from
    assert one.scree_.p_values[0] > 0.2
    assert other.scree_.p_values[0] <= 0.05
    assert other.n_foreground_ == 1


@QUIET
def test_several_backgrounds_are_pooled_or_have_their_own():
    X, Y = pair(5)
    parts = [Y[:700] * 3, Y[700:]]
    model = fit(X, parts, scale="pooled")
    assert_allclose(model.scale_, naive.pooled_deviations([X, *parts]))
    model = fit(X, parts, scale="each")
    assert_allclose(model.background_spreads_, [part.std(axis=0) for part in parts])


@QUIET
def test_constant_variables_are_divided_by_one():
    X, Y = pair(6)
    X[:, 3], Y[:, 3] = 7.0, 7.0
    X[:, 4] = 0.1
    for scale in ("pooled", "each"):
        model = fit(X, Y, scale=scale)
        assert model.scale_[3] == 1
        assert (model.scale_[4] == 1) == (scale == "each")
        assert np.isfinite(model.components_).all()


@QUIET
def test_a_proportional_model_and_one_without_a_background_are_divided_too():
    X, Y = pair(6)
    factors = units(6)
    made = [
        lambda: ProportionalContrastiveICA(
            2, n_background=6, n_foreground=2, scale="pooled", random_state=0
        ),
    ]
    for make in made:
        one, other = (make().fit(X * f, background=Y * f) for f in (np.ones(6), factors))
        assert_allclose(other.components_, one.components_, atol=1e-6)
    for scale in ("pooled", "each"):
        one, other = (
            ContrastiveICA(2, n_foreground=2, scale=scale).fit(X * f) for f in (1.0, factors)
        )
        assert_allclose(other.components_, one.components_, atol=1e-6)
        assert other.background_spreads_ is None


def test_rows_of_a_background_are_told_from_others():
    X, Y = pair(5)
    Y = Y * units(5)
    model = fit(X, Y, scale="each")
    model.transform(X)
    model.transform(Y[:50])  # some of them cannot be told
    for rows in (Y, sp.csr_matrix(Y)):
        with warns(DelicateDataWarning, "background-scale"):
            model.transform(rows)
    fit(X, Y, scale="pooled").transform(Y)


# --- containers ---


def as_dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(300, X.shape[1]))


def as_tensor(X):
    return pytest.importorskip("torch").as_tensor(X)


def as_strict(X):
    return pytest.importorskip("array_api_strict").asarray(X)


CONTAINERS = {
    "frame": pd.DataFrame,
    "sparse": sp.csr_matrix,
    "blocks": lambda X: Blocks([X[:100], X[100:]]),
    "single": lambda X: X.astype(np.float32),
    "rows": Counted,
    "dask": as_dask,
    "tensor": as_tensor,
    "array API": as_strict,
}


@QUIET
@pytest.mark.parametrize("scale", ["pooled", "each"])
@pytest.mark.parametrize("p", [5, 40])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_is_divided_alike(name, p, scale):
    rng = np.random.default_rng(0)
    X, Y = rng.poisson(0.7, (2, 900, p)) * np.arange(1.0, p + 1)
    X[:, :2] *= rng.choice([1, 3], (900, 1))
    expected = fit(X, Y[:800], scale=scale)
    found = fit(CONTAINERS[name](X), CONTAINERS[name](Y[:800]), scale=scale)
    assert_allclose(found.scale_, expected.scale_)
    assert_allclose(found.components_, expected.components_, atol=1e-7)
    scores = np.asarray(found.transform(CONTAINERS[name](X)))
    assert_allclose(scores, expected.transform(X), atol=1e-5)


@QUIET
@pytest.mark.parametrize("scale", ["pooled", "each"])
def test_single_precision_is_near(scale):
    X, Y = pair(6)
    X, Y = X * units(6) + 9, Y * units(6)
    one, other = (fit(X, Y, scale=scale, dtype=dtype) for dtype in ("float64", "float32"))
    assert_allclose(other.components_, one.components_, atol=1e-3)


@QUIET
@pytest.mark.parametrize("scale", ["pooled", "each"])
def test_large_arrays_and_sampled_rows_are_divided_as_they_are_read(scale, monkeypatch):
    X, Y = pair(40)
    X, Y = X * units(40), Y * units(40)
    expected = fit(X, Y, scale=scale)
    monkeypatch.setattr(scaled, "MAX_COPIED", 0)
    assert isinstance(divided_rows(X, np.ones(40)), ScaledRows)
    lazy = fit(X, Y, scale=scale)
    assert_allclose(lazy.components_, expected.components_, atol=1e-7)
    monkeypatch.setattr(working, "MANY_ROWS", 2000)
    monkeypatch.setattr(working, "MAX_ENTRIES", 0)
    some = fit(X, Y, scale=scale)
    assert some.n_rows_sampled_[0] < 1200
    # the rotation comes from half of the rows
    assert abs(some.components_[0] @ expected.components_[0]) > 0.98


def test_sparse_rows_stay_sparse_and_are_not_changed():
    X = sp.random(50, 6, 0.2, format="csr", random_state=0)
    before, scale = X.toarray(), units(6)
    found = divided_rows(as_rows(X), scale)
    assert found.sparse
    pieces = list(found.pieces())
    assert all(sp.issparse(piece) for piece in pieces)
    assert_allclose(sp.vstack(pieces).toarray(), before / scale)
    assert_allclose(X.toarray(), before)
    lazy = ScaledRows(as_rows(X), scale)
    assert_allclose(sp.vstack(list(lazy.pieces())).toarray(), before / scale)
    assert_allclose(np.vstack(list(lazy.blocks(7))), before / scale)


@QUIET
@pytest.mark.parametrize(("p", "expected"), [(8, 2), (40, 3)])
@pytest.mark.parametrize("scale", ["pooled", "each"])
def test_scaling_costs_no_pass(p, expected, scale):
    X, Y = (Counted(part) for part in pair(p))
    fit(X, Y, scale=scale)
    assert (X.passes, Y.passes) == (expected, expected)


def test_a_scale_that_there_is_not_costs_no_pass():
    X, Y = (Counted(part) for part in pair(8))
    with raises(ParameterError, "unknown-choice", "scale"):
        fit(X, Y, scale="both")
    assert X.n_read == 0


@QUIET
@pytest.mark.parametrize("scale", ["pooled", "each"])
@pytest.mark.parametrize("p", [6, 35])
def test_sums_are_divided_exactly(scale, p):
    X, Y = pair(p)
    X, Y = X * units(p) + 3, Y * units(p)
    whole = fit(X, Y, scale=scale)
    model = ContrastiveICA(random_state=0, scale=scale)
    for some in (slice(0, 900), slice(900, None)):
        model.partial_fit(X[some], background=Y[some])
    model.fit_sums()
    assert_allclose(model.scale_, whole.scale_)
    assert_allclose(model.components_, whole.components_, atol=1e-6)
    assert_allclose(model.transform(X), whole.transform(X), atol=1e-5)


def test_sums_in_a_basis_are_refused_before_a_row_is_added():
    X, Y = pair(8)
    model = ContrastiveICA(scale="pooled", basis=np.eye(8)[:, :3])
    with raises(ParameterError, "scale-of-sums", "scale"):
        model.partial_fit(X, background=Y)
    with raises(ParameterError, "scale-of-sums", "scale"):
        model.fit(iter([X]), background=Y)
    added = ContrastiveICA(basis=np.eye(8)[:, :3]).partial_fit(X, background=Y)
    with raises(ParameterError, "scale-of-sums", "scale"):
        ContrastiveICA(scale="each").fit(added.foreground_sums_, background=added.background_sums_)


def test_a_scale_survives_a_journey_to_a_file(tmp_path):
    X, Y = pair(5)
    for scale in ("none", "pooled", "each"):
        model = fit(X, Y, scale=scale)
        save(model, tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        assert again.scale == scale
        assert_allclose(again.transform(X[:9]), model.transform(X[:9]))
        assert (again.background_spreads_ is None) == (scale != "each")


# --- units ---


def told(X, Y=None, few=True, names=None):
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = [X] if Y is None else [X, Y]
        warn_of_units([column_summary(as_rows(part)) for part in parts], names, few=few)
    return [str(each.message) for each in caught]


def test_one_variable_in_other_units_is_named():
    X, Y = pair(12)
    for factor in (100, 0.01):
        factors = np.ones(12)
        factors[5] = factor
        (text,) = told(X * factors, Y * factors)
        assert "x5 has" in text
        names = np.array([*"abcdefghijkl"], dtype=object)
        assert "f has" in told(X * factors, Y * factors, names=names)[0]
    assert not told(X, Y)
    assert not told(X * np.r_[8.0, np.ones(11)], Y * np.r_[8.0, np.ones(11)])


def test_a_strong_pattern_of_the_foreground_alone_is_no_matter_of_units():
    X, Y = pair(12)
    X[:, 1] *= 200
    assert not told(X, Y)
    assert told(X)


def test_rare_and_constant_variables_are_no_matter_of_units(rng):
    X = rng.laplace(size=(20_000, 8))
    X[:, 3] = 5.0
    X[:, 4] = rng.random(20_000) < 0.0003  # a standard deviation of a sixtieth
    assert X[:, 4].std() < 1.4 / 60
    assert not told(X)
    counts = sp.csr_matrix(rng.poisson(10 ** rng.uniform(-3, 1.5, 500), (3000, 500)))
    assert not told(np.log1p(counts), few=False)


def test_of_many_variables_the_median_counts(rng):
    X = rng.laplace(size=(500, 100))
    X[:, :5] *= 0.001
    assert not told(X, few=False)
    X[:, 7] *= 100
    assert "x7 has" in told(X, few=False)[0]


@pytest.mark.parametrize("name", ["mouse", "demo", "mnist", "kang"])
def test_real_data_are_on_one_scale(name, real_data):
    from contrica import datasets

    load_data = {
        "mouse": lambda: datasets.load_mouse_protein(real_data),
        "demo": datasets.load_digits_on_photos,
        "mnist": lambda: datasets.load_corrupted_mnist(real_data, fraction=0.2, random_state=0),
        "kang": lambda: datasets.load_kang(real_data, preprocessing="usual"),
    }
    data = load_data[name]()
    assert not told(data.foreground, data.background, few=False)


# --- permutations ---


@pytest.mark.parametrize("scale", ["pooled", "each"])
@pytest.mark.parametrize("turned", [False, True])
def test_permuted_groups_are_divided_anew(scale, turned):
    """Against rows divided by the deviations of their new datasets; exact where no axis is cut."""
    X, groups = grouped(5, 0, rows=12, p=3)
    Y, back_groups = grouped(4, 1, rows=15, p=3, first=5)
    X = X * [1.0, 5.0, 0.2]
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0] if turned else None
    axes = np.eye(3) if basis is None else basis
    design = design_of(X @ axes, groups, Y @ axes, back_groups)
    mask = np.random.default_rng(2).permuted(design.observed())
    found = split(design.groups, mask).rescaled(Rescaling(scale, basis, np.zeros(3)))
    rows = np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)])
    names = np.concatenate([groups, back_groups])
    chosen = np.isin(names, np.array(design.groups.names)[mask])
    sets = naive.rescaled([rows[chosen], rows[~chosen]], scale)
    assert_allclose(found.fore, axes.T @ naive.covariance(sets[0]) @ axes, atol=1e-10)
    assert_allclose(found.back, axes.T @ naive.covariance(sets[1]) @ axes, atol=1e-10)
    again = design_of(sets[0] @ axes, names[chosen], sets[1] @ axes, names[~chosen])
    assert_allclose(found.floor, again.floor)


@pytest.mark.parametrize("seed", [2, 9, 11, 13, 17])
def test_rounding_is_as_much_larger_where_deviations_are_small(seed):
    """A permuted background of three rows, divided by its own: where nothing varies that is rounding."""
    rng = np.random.default_rng(seed)
    X = np.outer(rng.standard_t(2, 60), rng.standard_normal(5))
    Y = rng.standard_normal((3, 5))
    with collected():
        model = ContrastiveICA(None, scale="each", random_state=1).fit(X, background=Y)
    assert np.isfinite(model.components_).all()


def test_variance_outside_the_axes_is_that_of_all_rows():
    X, Y = pair(6, n=900)
    X, Y = (part / part.std(axis=0) for part in (X, Y))
    from contrica.moments import cumulants

    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((6, 4)))[0]
    redo = Rescaling.of("each", basis, np.ones(6), [cumulants(part @ basis) for part in (X, Y)])
    outside = [part - part @ basis @ basis.T for part in (X, Y)]
    crossed = [
        2 * np.mean((part @ basis @ basis.T - (part @ basis @ basis.T).mean(0)) * out, axis=0)
        for part, out in zip((X, Y), outside, strict=True)
    ]
    shares = np.array([len(X), len(Y)]) / (len(X) + len(Y))
    expected = sum(
        s * (out.var(axis=0) + c) for s, out, c in zip(shares, outside, crossed, strict=True)
    )
    assert_allclose(redo.outside, np.maximum(expected, 0), atol=1e-10)
    assert redo.price == 2 * 2 * 6 * 16


def test_the_null_of_rows_divides_anew():
    """The rows' own scale of each dataset takes variance, so that its largest ratio is smaller."""
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2, 60, 6))
    X, Y = (part / part.std(axis=0) for part in (X, Y))
    redo = Rescaling("each", None, np.zeros(6))
    kept, redone = (
        count_directions(RowDesign(X, [Y]), rng=np.random.default_rng(1), rescaling=each)
        for each in (None, redo)
    )
    assert_allclose(redone.ratios, kept.ratios)
    assert redone.null_mean < kept.null_mean
    pooled = count_directions(
        RowDesign(X, [Y]),
        rng=np.random.default_rng(1),
        rescaling=Rescaling("pooled", None, np.zeros(6)),
    )
    # permuted or not, both datasets together are the same rows, but for what their means differ by
    assert_allclose(pooled.null_mean, kept.null_mean, rtol=0.01)


def test_observed_rows_that_are_divided_stay_as_they_are():
    X, Y = pair(5, n=800)
    deviations = naive.pooled_deviations([X, Y])
    X, Y = X / deviations, Y / deviations
    fore, back = (np.cov(part.T, bias=True) for part in (X, Y))
    again = Rescaling("pooled", None, np.zeros(5)).covariances(fore, back, len(X), len(Y))
    assert_allclose(again, [fore, back], atol=1e-12)
    assert_allclose(contrast_axes(*again, 100)[0], contrast_axes(fore, back, 100)[0])


@QUIET
def test_a_report_of_ranks_is_of_the_divided_rows():
    X, Y = pair(12)
    wrong = np.r_[np.ones(11), 100.0]
    options = {"rng": np.random.default_rng(0)}
    assert report_ranks(X * wrong, Y * wrong, **options).ranks.n_foreground == 0
    assert report_ranks(X * wrong, Y * wrong, scale="pooled", **options).ranks.n_foreground == 1


def null_rate(n_draws, *, p, n_pcs=None, by_groups=False, scale="each"):
    """How often something stands out where both datasets have one distribution, up to units."""
    found = 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        mixing = np.random.default_rng(7).standard_normal((p, p)) / p**0.5 + np.eye(p)
        options = {}
        if by_groups:
            rows = [
                np.repeat(0.7 * rng.standard_normal((count, p)), 15, axis=0)
                + 0.7 * rng.standard_normal((15 * count, p))
                for count in (10, 8)
            ]
            options = {
                "groups": np.repeat(np.arange(10), 15),
                "background_groups": np.repeat(np.arange(100, 108), 15),
            }
        else:
            rows = [rng.laplace(size=(count, p)) for count in (150, 120)]
        X, Y = (part @ mixing for part in rows)
        Y = Y * units(p)
        X = X if scale == "each" else X * units(p)
        background = Background(Y, groups=options.pop("background_groups", None))
        model = ContrastiveICA(1, solver="subspace", scale=scale, n_pcs=n_pcs, random_state=0)
        found += model.fit(X, background=background, **options).n_foreground_ > 0
    return found / n_draws


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize(
    "options",
    [
        {"p": 8, "by_groups": True},
        {"p": 30, "n_pcs": 8, "by_groups": True},
        {"p": 8, "by_groups": True, "scale": "pooled"},
        {"p": 10},
    ],
    ids=str,
)
def test_the_level_is_kept(options, monkeypatch):
    """Of 100 draws .05 are 5, with a standard deviation of 2.2.

    A permutation test has its level with any number of permutations: 199 of them are five times as quick.
    """
    quick = partial(count_directions, n_permutations=199)
    monkeypatch.setattr("contrica.solvers.subspace_solver.count_directions", quick)
    assert null_rate(100, **options) <= 0.12


def test_a_pattern_stands_out_on_each_scale():
    X, groups = grouped(10, 0, p=5)
    Y, back_groups = grouped(8, 1, p=5, first=10)
    X = with_pattern(X, groups, np.unique(groups))
    for scale in ("pooled", "each"):
        model = ContrastiveICA(random_state=0, scale=scale).fit(
            X * units(5), background=Y * units(5), groups=groups, background_groups=back_groups
        )
        # what is in two variables raises their variance, which "each" takes away
        assert model.n_foreground_ >= 1
        assert set(np.argsort(-np.abs(model.components_[0]))[:2]) == {0, 1}


@pytest.mark.parametrize("scale", ["pooled", "each"])
def test_rows_with_gaps_are_scored_in_the_units_of_the_fit(scale, rng):
    X, Y = rng.laplace(size=(400, 5)), rng.laplace(size=(300, 5))
    X[:, :2] += 3 * rng.choice([-1, 1], (400, 1))
    units = np.array([1.0, 100.0, 0.01, 5.0, 1.0])
    model = ContrastiveICA(1, scale=scale, missing="impute", solver="subspace", random_state=0)
    model.fit(X * units, background=Y * units)
    rows = X * units
    whole = model.transform(rows)
    rows[::2, 1] = np.nan  # the first variable tells most of it
    found = model.transform(rows)
    assert_allclose(found[1::2], whole[1::2], rtol=1e-10)
    assert np.corrcoef(found[::2, 0], whole[::2, 0])[0, 1] > 0.9


def test_means_of_rows_with_gaps_do_not_come_back_where_each_dataset_has_its_own(rng):
    X, Y = rng.laplace(size=(600, 4)) + 100, rng.laplace(size=(600, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    ratios = []
    for missing in ("impute", "pairwise"):
        model = ContrastiveICA(
            1, scale="each", missing=missing, solver="subspace", n_foreground=2, random_state=0
        )
        ratios.append(model.fit(X, background=Y).source_ratio_[0])
    assert_allclose(ratios[1], ratios[0], rtol=0.2)  # two estimates of one covariance
