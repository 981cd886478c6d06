import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from contrica import (
    Background,
    ContrastiveICA,
    DelicateDataWarning,
    IdentifiabilityWarning,
    PatternWarning,
    ProportionalContrastiveICA,
)
from contrica.datasets import load_digits_on_photos, make_four_clusters, make_synthetic
from contrica.errors import ParameterWarning
from contrica.metrics import pattern_similarity
from contrica.moments.fourth import cumulants
from contrica.moments.projection import common_basis
from contrica.solvers.deflation import DEFLATIONS, shared_weights
from tests.backed import WithBackground
from tests.said import warns

ESTIMATORS = [ContrastiveICA, ProportionalContrastiveICA]
LEARNT = [
    "components_",
    "filters_",
    "contrast_ratio_",
    "foreground_weights_",
    "background_components_",
    "background_weights_",
    "shared_weights_",
]

# Algorithm 2 with its steadiest Step 2: quick, and warns of nothing
MODEL = {
    "n_background": 6,
    "n_foreground": 5,
    "solver": "paper",
    "deflation": "least_squares",
    "random_state": 0,
}

# Step 2 by "thin" is noisy on samples of this size, and says so
NOISY_WEIGHTS = pytest.mark.filterwarnings("ignore:.*shared weights exceed:contrica.PatternWarning")


@pytest.fixture(scope="module")
def design():
    return make_synthetic(6, n_samples=20_000, random_state=1)


@pytest.fixture
def fitted(design):
    model = ContrastiveICA(3, n_background=6, n_foreground=5, solver="paper", random_state=0)
    return model.fit(design.foreground, background=design.background)


# --- scikit-learn's contract ---


@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings("ignore::contrica.IdentifiabilityWarning")
@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_scikit_learn_checks(estimator, check):
    """One check skips itself, check_array_api_input, which needs SCIPY_ARRAY_API in the environment."""
    check(estimator)


class Backed(WithBackground, ContrastiveICA):
    pass


class BackedProportional(WithBackground, ProportionalContrastiveICA):
    pass


@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings("ignore::contrica.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::contrica.errors.GroupWarning")  # irises are sorted by species
@parametrize_with_checks(
    [
        *(Backed(solver=name, random_state=0) for name in ("auto", "paper", "joint", "subspace")),
        BackedProportional(random_state=0),
    ]
)
def test_scikit_learn_checks_with_a_background(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_init_only_stores_and_clone_works(estimator):
    model = estimator(n_components=-5, n_pcs="nonsense")  # judged by fit, not by __init__
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.transform(np.zeros((2, 2)))


def test_fit_keeps_nothing_of_the_size_of_the_data(fitted):
    assert all(
        value.shape[0] < 100 for value in vars(fitted).values() if isinstance(value, np.ndarray)
    )


# --- what is learnt ---


def test_shapes_order_and_normalisation(fitted):
    assert fitted.components_.shape == fitted.filters_.shape == (3, 6)
    assert_allclose(np.linalg.norm(fitted.components_, axis=1), 1)
    largest = np.abs(fitted.components_).argmax(axis=1)
    assert (fitted.components_[np.arange(3), largest] > 0).all()
    assert (np.diff(fitted.contrast_ratio_) <= 0).all()
    assert fitted.background_components_.shape == (6, 6)
    assert fitted.n_background_ == 6
    assert fitted.n_foreground_ == 5
    assert fitted.n_pcs_ == 6
    assert fitted.basis_ is None
    assert fitted.n_iter_ >= 1
    assert 0 <= fitted.residual_ < 1


def test_transform_is_the_papers_projection(design, fitted):
    scores = fitted.transform(design.foreground[:50])
    expected = (design.foreground[:50] - design.foreground.mean(axis=0)) @ fitted.components_.T
    assert_allclose(scores, expected, atol=1e-10)
    assert list(fitted.get_feature_names_out()) == [
        "contrastiveica0",
        "contrastiveica1",
        "contrastiveica2",
    ]


def test_filters_have_unit_gain_and_least_variance(design, fitted):
    gains = np.einsum("kp,kp->k", fitted.filters_, fitted.components_)
    assert_allclose(gains, 1, rtol=1e-9)
    S = np.cov(design.foreground.T, bias=True)
    for f, b in zip(fitted.filters_, fitted.components_, strict=True):
        expected = np.linalg.solve(S, b)
        assert_allclose(f, expected / (b @ expected), rtol=1e-6)
        for other in np.random.default_rng(0).standard_normal((20, 6)):
            other /= other @ b
            assert f @ S @ f <= other @ S @ other + 1e-12


def test_filters_unmix_exactly_when_all_patterns_are_independent(rng):
    """With A and B given and [A B] invertible, Σ⁻¹b/(bᵀΣ⁻¹b) is the row of [A B]⁻¹ for b."""
    from contrica.solvers.ratio import filters_of

    mixing = rng.standard_normal((4, 4))
    mixing /= np.linalg.norm(mixing, axis=0)
    S = (mixing * np.array([1.0, 2, 3, 4])) @ mixing.T
    assert_allclose(filters_of(mixing, S).T, np.linalg.inv(mixing), atol=1e-9)


@pytest.mark.parametrize("projection", ["pattern", "filter"])
def test_scores_survive_inverse_transform(design, projection, rng):
    model = ContrastiveICA(4, n_background=6, n_foreground=5, projection=projection, random_state=0)
    model.fit(design.foreground, background=design.background)
    scores = rng.standard_normal((10, 4))
    rows = model.inverse_transform(scores) - model.mean_
    if projection == "filter":  # sources, which appear as the patterns
        assert_allclose(rows, scores @ model.components_, atol=1e-12)
        assert_allclose(model.mixing_, model.components_.T)
        return
    assert_allclose(model.transform(model.inverse_transform(scores)), scores, atol=1e-9)
    # least squares: of all rows with these scores, the nearest to the mean
    assert_allclose(rows, np.linalg.lstsq(model.components_, scores.T, rcond=None)[0].T, atol=1e-9)


def test_inverse_transform_refuses_other_widths(fitted):
    with pytest.raises(ValueError, match=r"shape \(2, 5\).*3 components"):
        fitted.inverse_transform(np.zeros((2, 5)))


@pytest.mark.slow
@NOISY_WEIGHTS
def test_patterns_are_lifted_back_to_the_variables(rng):
    data = make_synthetic(5, n_samples=20_000, random_state=0)
    Q = np.linalg.qr(rng.standard_normal((40, 5)))[0]
    options = {"n_background": 5, "n_foreground": 4, "random_state": 0}
    low = ContrastiveICA(4, **options).fit(data.foreground, background=data.background)
    high = ContrastiveICA(4, n_pcs=5, **options)
    high.fit(data.foreground @ Q.T, background=data.background @ Q.T)
    assert high.basis_.shape == (40, 5)
    assert high.components_.shape == (4, 40)
    assert_allclose(np.linalg.norm(high.components_, axis=1), 1, rtol=1e-9)
    assert pattern_similarity(high.components_.T, Q @ low.components_.T) > 1 - 1e-6
    assert_allclose(high.contrast_ratio_, low.contrast_ratio_, rtol=1e-4)


@NOISY_WEIGHTS
def test_pca_is_that_of_the_stacked_rows(rng):
    X, Y = rng.laplace(size=(200, 35)), rng.laplace(size=(100, 35))
    model = ContrastiveICA(n_background=5, n_foreground=5, n_pcs=7, solver="paper", random_state=0)
    model.fit(X, background=Y)
    assert_allclose(model.basis_, common_basis([X, Y], 7))


@pytest.mark.slow
def test_recovery_improves_with_samples():
    medians = []
    for n in (1000, 100_000):
        similarity = []
        for seed in range(5):
            data = make_synthetic(5, n_samples=n, random_state=seed)
            model = ContrastiveICA(
                4, n_background=5, n_foreground=4, solver="paper", random_state=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PatternWarning)  # wild weights at n = 1000
                model.fit(data.foreground, background=data.background)
            similarity.append(pattern_similarity(model.components_.T, data.B))
        medians.append(np.median(similarity))
    assert medians[1] > medians[0]
    assert medians[1] > 0.95


@pytest.mark.parametrize(
    "deflation", ["thin", "sequential", "sequential_thin", "closed_form", "least_squares"]
)
@pytest.mark.parametrize("cumulant", ["plugin", "unbiased", "robust"])
def test_every_option_fits(design, deflation, cumulant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        model = ContrastiveICA(
            2,
            n_background=6,
            n_foreground=5,
            solver="paper",
            deflation=deflation,
            cumulant=cumulant,
            random_state=0,
        ).fit(design.foreground, background=design.background)
    assert np.isfinite(model.components_).all()


def test_every_deflation_is_the_one_asked_for(design):
    fore, back = design.foreground[:2000], design.background[:2000]
    for name in DEFLATIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            model = ContrastiveICA(
                2, n_background=6, n_foreground=5, solver="paper", deflation=name, random_state=0
            )
            model.fit(fore, background=back)
            expected = shared_weights(
                cumulants(fore).fourth, model.background_components_.T, 11, name
            )
        assert_allclose(model.shared_weights_, expected, rtol=1e-6)


def test_cumulants_are_the_ones_asked_for(design):
    fits = [
        ContrastiveICA(2, **{**MODEL, "cumulant": name})
        .fit(design.foreground[:2000], background=design.background[:2000])
        .foreground_weights_
        for name in ("plugin", "unbiased", "robust")
    ]
    assert np.abs(fits[0] / fits[1] - 1).max() > 1e-4
    assert np.abs(fits[2] / fits[0] - 1).max() > 0.05


# --- determinism ---


def fit_digits(X, Y, **options):
    given = {"n_background": 20, "n_foreground": 20, "solver": "paper", "random_state": 3}
    return ContrastiveICA(4, **{**given, **options}).fit(X, background=Y)


@pytest.fixture(scope="module")
def digits():
    data = load_digits_on_photos(1500)
    return data.foreground, data.background


def assert_same_fit(one, two, tolerance):
    for name in LEARNT:
        assert_allclose(
            getattr(one, name), getattr(two, name), rtol=tolerance, atol=tolerance, err_msg=name
        )


@NOISY_WEIGHTS
def test_the_same_seed_gives_the_same_numbers(digits):
    one, two = (fit_digits(*digits) for _ in range(2))
    assert_same_fit(one, two, 0)


@NOISY_WEIGHTS
def test_memory_order_and_threads_do_not_matter(digits):
    X, Y = digits
    reference = fit_digits(X, Y)
    with threadpool_limits(1):
        single = fit_digits(np.asfortranarray(X), np.asfortranarray(Y))
    with threadpool_limits(2):
        double = fit_digits(np.ascontiguousarray(X), np.ascontiguousarray(Y))
    # rounding differs, and eigenvectors carry it on divided by their gaps
    assert_same_fit(reference, single, 1e-6)
    assert_same_fit(reference, double, 1e-6)


@NOISY_WEIGHTS
def test_float32_is_fitted_as_the_float64_it_stands_for(digits):
    X, Y = (rows.astype(np.float32) for rows in digits)
    assert_same_fit(fit_digits(X, Y), fit_digits(X.astype(float), Y.astype(float)), 0)


@pytest.fixture
def starts_of(digits, monkeypatch):
    """Every start of the subspace power method in a fit with a ``random_state``."""
    from contrica.decompositions._spm_search import Subspace

    starts = []
    approach = Subspace.approach

    def spy(self, points, known):
        starts.append(points.copy())
        return approach(self, points, known)

    def fit(state, rank, n_pcs):
        starts.clear()
        options = {"solver": "paper", "n_background": rank, "n_foreground": rank, "n_pcs": n_pcs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            ContrastiveICA(random_state=state, **options).fit(digits[0], background=digits[1])
        return list(starts)

    monkeypatch.setattr(Subspace, "approach", spy)
    return fit


def test_random_state_reaches_every_start(starts_of):
    runs = [starts_of(seed, rank=8, n_pcs=10) for seed in (0, 0, 1)]
    assert len(runs[0]) > 1
    assert all(np.array_equal(a, b) for a, b in zip(runs[0], runs[1], strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(runs[0], runs[2], strict=False))


@pytest.mark.parametrize("state", [np.random.default_rng, np.random.RandomState, lambda seed: None])
def test_generators_seed_as_well(starts_of, state):
    first, again, other = (starts_of(state(seed), rank=3, n_pcs=5)[0] for seed in (0, 0, 1))
    assert np.array_equal(first, again) == (state(0) is not None)
    assert not np.array_equal(first, other)


def test_a_generator_goes_on_where_the_last_fit_left_it(starts_of):
    rng = np.random.default_rng(0)
    first, second = (starts_of(rng, rank=3, n_pcs=5)[0] for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.slow
@NOISY_WEIGHTS
def test_seeds_agree_on_this_draw_of_the_demo_data(digits):
    X, Y = digits
    fits = [
        ContrastiveICA(2, n_background=20, n_foreground=20, solver="paper", random_state=seed).fit(
            X, background=Y
        )
        for seed in range(4)
    ]
    for other in fits[1:]:
        assert pattern_similarity(other.components_.T, fits[0].components_.T) > 0.99
        similarity = pattern_similarity(
            other.background_components_.T, fits[0].background_components_.T
        )
        assert similarity > 0.99


# --- frames and names ---


@pytest.fixture
def frames(design):
    names = [f"gene{i}" for i in range(6)]
    return (
        pd.DataFrame(rows[:3000], columns=names) for rows in (design.foreground, design.background)
    )


def test_pandas_in_and_out(frames):
    X, Y = frames
    model = ContrastiveICA(2, **MODEL).set_output(transform="pandas")
    scores = model.fit_transform(X, background=Y)
    assert list(model.feature_names_in_) == list(X.columns)
    assert list(scores.columns) == ["contrastiveica0", "contrastiveica1"]
    assert scores.index.equals(X.index)


def test_variables_may_have_the_names_of_what_rows_have(rng):
    rows = rng.laplace(size=(2, 300, 5)) * [[[3.0, 1, 1, 1, 1]], [[1.0] * 5]]
    names = ["device", "block_bytes", "is_on_cluster", "sparse", "shape_"]
    X, Y = (pd.DataFrame(part, columns=names) for part in rows)
    model = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    plain = ContrastiveICA(1, random_state=0).fit(rows[0], background=rows[1])
    assert_allclose(model.components_, plain.components_)


def test_polars_in_and_out(frames):
    pl = pytest.importorskip("polars")
    X, Y = (pl.DataFrame(frame.to_numpy(), schema=list(frame.columns)) for frame in frames)
    model = ContrastiveICA(2, **MODEL).set_output(transform="polars")
    scores = model.fit_transform(X, background=Y)
    assert isinstance(scores, pl.DataFrame)
    assert list(model.feature_names_in_) == X.columns
    with pytest.raises(ValueError, match="another order"):
        model.fit(X, background=Y[:, ::-1])


def test_names_are_compared_with_the_backgrounds(frames):
    X, Y = frames
    model = ContrastiveICA(2, **MODEL)
    with pytest.raises(ValueError, match=r"background has the features of X in another order"):
        model.fit(X, background=Y[Y.columns[::-1]])
    with pytest.raises(
        ValueError, match=r"missing from background: gene0; only in background: other"
    ):
        model.fit(X, background=Y.rename(columns={"gene0": "other"}))
    with pytest.warns(DelicateDataWarning, match="X has feature names but background has none"):
        model.fit(X, background=Y.to_numpy())
    with pytest.warns(DelicateDataWarning, match="background has feature names but X has none"):
        model.fit(X.to_numpy(), background=Y)


def test_columns_that_are_no_strings_are_compared_too(design):
    X, Y = (
        pd.DataFrame(rows[:500], columns=[10, 20, 30, 40, 50, 60])
        for rows in (design.foreground, design.background)
    )
    with pytest.raises(ValueError, match="another order"):
        ContrastiveICA(2, **MODEL).fit(X, background=Y[Y.columns[::-1]])
    ContrastiveICA(2, **MODEL).fit(X, background=Y.to_numpy())  # numbered columns need no warning


# --- pipelines and cross-validation ---


def test_a_background_holder_is_not_cut_by_cross_validation(design):
    X, Y = design.foreground[:600], design.background[:600]
    seen = []

    class Recording(ContrastiveICA):
        def fit(self, X, y=None, *, background=None):
            seen.append(len(getattr(background, "data", background)))
            return super().fit(X, y, background=background)

        def score(self, X, y=None):
            return 0.0

    for background in (Y, Background(Y)):
        with sklearn.config_context(enable_metadata_routing=True):
            cross_validate(
                Recording(**MODEL).set_fit_request(background=True),
                X,
                cv=KFold(3),
                params={"background": background},
                error_score="raise",
            )
    assert seen == [400, 400, 400, 600, 600, 600]


def test_a_pipeline_transforms_the_background_where_it_is_told_to(design):
    X, Y = design.foreground[:2000], design.background[:2000]
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("scale", StandardScaler()),
                ("cica", ContrastiveICA(2, **MODEL).set_fit_request(background=True)),
            ],
            transform_input=["background"],
        )
        pipeline.fit(X, background=Y)
    scaler = StandardScaler().fit(X)
    alone = ContrastiveICA(2, **MODEL)
    alone.fit(scaler.transform(X), background=scaler.transform(Y))
    assert_allclose(pipeline["cica"].components_, alone.components_, atol=1e-9)


def test_the_holder_says_what_it_holds():
    assert repr(Background(np.zeros((3, 2)))) == "Background(3 × 2)"
    assert repr(Background([[1, 2]])) == "Background(...)"


# --- without a background ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_forgotten_background_does_not_pass_in_silence(estimator, rng):
    X = rng.laplace(size=(5000, 4)) * np.array([4.0, 3.0, 2.0, 1.0])
    with pytest.warns(DelicateDataWarning, match="no background"):
        model = estimator(2, n_foreground=4).fit(X)
    assert np.isnan(model.contrast_ratio_).all()
    assert model.background_components_.shape == (0, 4)
    # plain ICA by HTD: orthogonal sources by decreasing fourth cumulant
    assert_allclose(np.abs(model.components_), np.eye(4)[:2], atol=0.15)


# --- fewer patterns than asked for ---


@NOISY_WEIGHTS
def test_more_components_than_patterns_warn_and_return_what_there_is(design):
    with pytest.warns(
        PatternWarning, match="n_components=5 .* only 2 can be returned. Raise n_foreground"
    ):
        model = ContrastiveICA(
            5, n_background=6, n_foreground=2, solver="paper", random_state=0
        ).fit(design.foreground, background=design.background)
    assert model.components_.shape == (2, 6)
    assert model.transform(design.foreground[:3]).shape == (3, 2)


def test_none_keeps_all_patterns(design):
    model = ContrastiveICA(None, n_background=6, n_foreground=5, random_state=0)
    assert len(model.fit(design.foreground, background=design.background).components_) == 5


@NOISY_WEIGHTS
def test_nothing_found_still_returns_candidates_and_says_so(design):
    with pytest.warns(PatternWarning, match="n_foreground_ = 0"):
        model = ContrastiveICA(2, random_state=0).fit(
            design.background, background=design.background
        )
    assert model.n_foreground_ == 0
    assert model.components_.shape == (2, 6)


# --- proportional ---


def test_proportional_estimates_or_takes_its_scale():
    data = make_synthetic(5, proportional=True, random_state=0)
    options = {"n_background": 5, "n_foreground": 4, "random_state": 0}
    model = ProportionalContrastiveICA(4, **options)
    model.fit(data.foreground, background=data.background)
    assert 0.9 < model.background_scale_ < 1.15
    assert model.background_scale_estimates_.shape == (5,)
    assert pattern_similarity(model.components_.T, data.B) > 0.95
    scale = model.background_scale_
    with warns(ParameterWarning, "no-effect"):  # r was for the estimate
        ProportionalContrastiveICA(4, background_scale=scale, **options).fit(
            data.foreground, background=data.background
        )
    given = ProportionalContrastiveICA(4, background_scale=scale, n_foreground=4)
    given.fit(data.foreground, background=data.background)
    assert_allclose(given.components_, model.components_, atol=1e-9)
    assert given.background_scale_estimates_.size == 0
    assert given.n_background_ == 0


# --- delicate data ---


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "paper", "joint", "subspace"])
def test_constant_columns_are_fitted_and_named(design, solver):
    X, Y = (np.c_[rows[:2000], np.ones(2000)] for rows in (design.foreground, design.background))
    with pytest.warns(DelicateDataWarning, match=r"1 variable\(s\) are constant in X \(x6\)"):
        options = MODEL | {"n_background": 5}
        if solver != "paper":
            options = {"n_foreground": 5, "solver": solver, "random_state": 0}
        model = ContrastiveICA(2, **options).fit(X, background=Y)
    assert_allclose(model.components_[:, 6], 0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings("ignore::contrica.ParameterWarning")  # the subspace is chosen
def test_a_variable_silent_in_the_background_is_named(design):
    Y = design.background[:2000].copy()
    Y[:, 2] = 7.0
    with pytest.warns(DelicateDataWarning, match=r"vary in X but not in the background \(x2\)"):
        model = ContrastiveICA(2, n_background=5, n_foreground=5, random_state=0)
        model.fit(design.foreground[:2000], background=Y)
    assert np.isfinite(model.contrast_ratio_).all()


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_a_rank_deficient_background_is_named():
    data = make_four_clusters(300, random_state=0)
    with pytest.warns(
        DelicateDataWarning, match="background covariance has rank 3 in 5 dimensions"
    ):
        model = ContrastiveICA(2, n_background=3, n_foreground=2, random_state=0)
        model.fit(data.foreground, background=data.background)
    assert np.isfinite(model.contrast_ratio_).all()


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_fewer_rows_than_variables_are_fitted_with_a_warning(rng):
    X, Y = rng.laplace(size=(25, 50)), rng.laplace(size=(20, 50))
    with pytest.warns() as caught:
        model = ContrastiveICA(2, n_background=3, n_foreground=3, random_state=0).fit(
            X, background=Y
        )
    text = " ".join(str(w.message) for w in caught)
    assert "X has 25 rows in 30 dimensions" in text
    assert "background has 20 rows in 30 dimensions" in text
    assert np.isfinite(model.components_).all()


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
@pytest.mark.filterwarnings("ignore::contrica.ParameterWarning")  # the subspace is chosen
@pytest.mark.parametrize(
    "model",
    [
        ContrastiveICA(2, n_background=2, n_foreground=2, random_state=0),
        ContrastiveICA(2, random_state=0),
        ContrastiveICA(2, n_background=2, n_foreground=2, solver="paper", random_state=0),
        ContrastiveICA(2, n_foreground=2, solver="subspace", random_state=0),
        ProportionalContrastiveICA(2, n_background=2, n_foreground=2, random_state=0),
    ],
    ids=["ranks", "auto", "paper", "subspace", "proportional"],
)
def test_constant_data_do_not_crash(model, rng):
    X = rng.laplace(size=(100, 4))
    assert np.isfinite(model.fit(X, background=np.ones((50, 4))).transform(X)).all()


def test_a_foreground_that_does_not_vary_is_refused(rng):
    with pytest.raises(ValueError, match="X does not vary"):
        ContrastiveICA().fit(np.ones((50, 4)), background=rng.laplace(size=(50, 4)))


@pytest.mark.parametrize("factor", [1e40, 1e-40])
def test_numbers_beyond_fourth_powers_are_refused(design, factor):
    with pytest.raises(ValueError, match="range of floating point"):
        ContrastiveICA().fit(factor * design.foreground, background=factor * design.background)


@pytest.mark.slow
@NOISY_WEIGHTS
@pytest.mark.parametrize("factor", [1e20, 1e-20])
def test_the_scale_of_the_data_does_not_matter(design, factor):
    one, two = (
        ContrastiveICA(3, n_background=6, n_foreground=5, random_state=0).fit(
            f * design.foreground, background=f * design.background
        )
        for f in (1.0, factor)
    )
    assert_allclose(two.components_, one.components_, atol=1e-6)
    assert_allclose(two.contrast_ratio_, one.contrast_ratio_, rtol=1e-6)


# --- bad input ---


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_background": 0}, "n_background=0 is too small"),
        ({"n_foreground": 0}, "n_foreground=0 is too small"),
        ({"n_background": 22}, r"n_background=22 is too large.*p\(p\+1\)/2 = 21"),
        ({"n_foreground": 99}, "n_foreground=99 is too large"),
        ({"n_background": 15, "n_foreground": 7}, "together exceed"),
        ({"n_background": 2.5}, "whole number"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": "two"}, "n_components is 'two', but must be a whole number"),
        ({"n_pcs": 7}, "n_pcs=7 is more than the 6 variables"),
        ({"n_pcs": "most"}, 'n_pcs="most" is not known'),
        ({"solver": "magic"}, 'solver="magic"'),
        ({"deflation": "magic"}, 'deflation="magic"'),
        ({"cumulant": "magic"}, 'cumulant="magic"'),
        ({"projection": "magic"}, 'projection="magic"'),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"random_state": "dice"}, "dice.*cannot seed"),
    ],
)
def test_bad_parameters_get_one_clear_sentence(design, parameters, message):
    with pytest.raises(ValueError, match=message):
        ContrastiveICA(**{"random_state": 0, **parameters}).fit(
            design.foreground[:500], background=design.background[:500]
        )


def test_options_that_the_solver_does_not_use_are_told(design):
    for name, options in (
        ("deflation", {"deflation": "sequential"}),
        ("tol", {"tol": 1e-4, "solver": "subspace"}),
    ):
        with warns(ParameterWarning, "no-effect") as told:
            ContrastiveICA(1, random_state=0, **options).fit(
                design.foreground[:500], background=design.background[:500]
            )
        assert [w.message.parameter for w in told if w.category is ParameterWarning] == [name]


@pytest.mark.parametrize("scale", [0, -1.0, np.inf, "one"])
def test_bad_scales_are_refused(design, scale):
    with pytest.raises(ValueError, match="background_scale"):
        ProportionalContrastiveICA(background_scale=scale).fit(
            design.foreground, background=design.background
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y: Y[:, :5], "background has 5 features but X has 6"),
        (lambda Y: np.where(Y[3, 2] == Y, np.nan, Y), "background contains NaN or infinity"),
        (lambda Y: np.where(Y[3, 2] == Y, np.inf, Y), "background contains NaN or infinity"),
        (lambda Y: Y[:1], r"background has 1 sample\(s\), but at least 2 rows"),
        (lambda Y: Y.astype(complex), "background holds complex numbers"),
        (lambda Y: np.full(Y.shape, "word"), "background holds text"),
        (lambda Y: Y.astype(str), "background holds text"),
        (lambda Y: Y[0], "2D array"),
    ],
)
def test_bad_backgrounds_get_one_clear_sentence(design, change, message):
    with pytest.raises(ValueError, match=message):
        ContrastiveICA().fit(design.foreground[:50], background=change(design.background[:50]))


def test_one_dimension_cannot_be_contrasted(rng):
    with pytest.raises(ValueError, match="at least 2"):
        ContrastiveICA().fit(rng.random((9, 1)), background=rng.random((9, 1)))
    with pytest.raises(ValueError, match="n_pcs=1"):
        ContrastiveICA(n_pcs=1).fit(rng.random((9, 4)), background=rng.random((9, 4)))


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings(
    "ignore::contrica.IdentifiabilityWarning"
)  # two dimensions hold two patterns
def test_one_dominant_axis_does_not_stop_the_default_fit(rng):
    X, Y = (rng.laplace(size=(500, 40)) * np.r_[100.0, np.ones(39)] for _ in range(2))
    with warns(DelicateDataWarning, "units"):
        model = ContrastiveICA(random_state=0).fit(X, background=Y)
    assert model.n_pcs_ == 2


def test_warnings_point_at_the_callers_line(rng):
    with pytest.warns(DelicateDataWarning) as caught:
        ContrastiveICA(n_foreground=1, n_components=1).fit(rng.laplace(size=(50, 3)))
    assert caught[0].filename == __file__
    with pytest.warns(DelicateDataWarning) as caught:
        ContrastiveICA(n_foreground=1, n_components=1).fit_transform(rng.laplace(size=(50, 3)))
    assert caught[0].filename == __file__


def test_a_singular_background_is_named_after_pca_too(rng):
    mixing = rng.standard_normal((12, 40))
    X, Y = rng.laplace(size=(400, 40)), rng.laplace(size=(300, 12)) @ mixing
    X[:, :10] = Y[:, :10] = 0.0
    with pytest.warns() as caught:
        model = ContrastiveICA(
            2, n_background=3, n_foreground=3, n_pcs=25, solver="paper", deflation="least_squares"
        )
        model.fit(X, background=Y)
    assert any("background covariance has rank 12 in 25" in str(w.message) for w in caught)


@pytest.mark.slow
@NOISY_WEIGHTS
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # flat beyond the limit
@pytest.mark.parametrize("solver", ["paper", "joint"])
def test_an_excessive_rank_warns_by_statement(design, solver):
    with pytest.warns() as said:
        ContrastiveICA(2, n_background=16, n_foreground=3, solver=solver, random_state=0).fit(
            design.foreground, background=design.background
        )
    told = [str(each.message) for each in said if each.category is IdentifiabilityWarning]
    assert any("needs r ≤ p(p−1)/2 = 15, but r = 16" in text for text in told)


@pytest.mark.slow
def test_ranks_that_take_long_to_find_are_announced(design, monkeypatch):
    for module in ("projection", "fourth"):
        monkeypatch.setattr(f"contrica.moments.{module}.fits_packed", lambda *_: False)
    X, Y = design.foreground, design.background
    options = {"n_pcs": None, "solver": "paper", "random_state": 0}
    with pytest.warns(PatternWarning, match="6 dimensions.* Set n_background and n_foreground, or"):
        ContrastiveICA(2, **options, n_background=3).fit(X, background=Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ContrastiveICA(2, **options, n_background=3, n_foreground=2).fit(X, background=Y)
    assert not [each for each in caught if "take long" in str(each.message)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.parametrize(
    "options",
    [{}, {"solver": "paper", "n_background": 3, "n_foreground": 2}],
    ids=["auto", "paper"],
)
def test_variables_rotated_into_many_give_rotated_patterns(options, rng):
    """Sixty variables in a thousand: no PCA, and the patterns of the packed fit of the sixty."""
    X, Y = rng.laplace(size=(2, 1500, 60)) * np.linspace(3, 1, 60)
    X[:, :4] += 5 * rng.choice([-1, 1], (1500, 1))
    X[:, 4:6] += 5 * rng.exponential(size=(1500, 1))
    turn = np.linalg.qr(rng.standard_normal((1000, 60)))[0]
    few = ContrastiveICA(2, n_pcs=None, random_state=0, **options).fit(X, background=Y)
    many = ContrastiveICA(2, n_pcs=None, random_state=0, **options)
    many.fit(X @ turn.T, background=Y @ turn.T)
    assert many.n_pcs_ == 60
    expected = few.components_ @ turn.T
    signs = np.sign(np.sum(many.components_ * expected, axis=1))[:, None]
    assert_allclose(many.components_ * signs, expected, atol=1e-6)
    assert_allclose(many.contrast_ratio_, few.contrast_ratio_, rtol=1e-6)
