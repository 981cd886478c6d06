"""cPCA, PCPCA, gcPCA and the plain methods: definitions, invariances, published figures."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from contrica import (
    Background,
    ContrastivePCA,
    DelicateDataWarning,
    GeneralizedContrastivePCA,
    PatternWarning,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
)
from contrica.datasets import make_synthetic
from contrica.decompositions import htd
from contrica.errors import DataError, ParameterError
from contrica.estimators import contrastive_pca_path, probabilistic_pca_path
from contrica.estimators._contrastive_pca import SWEEP, subspace_affinities
from contrica.moments import leading
from contrica.moments.fourth import cumulants
from contrica.solvers.ratio import contrast_ratio
from tests import naive
from tests.backed import WithBackground
from tests.said import raises, warns

CONTRASTIVE = [ContrastivePCA, ProbabilisticContrastivePCA, GeneralizedContrastivePCA]
PLAIN = [PlainPCA, PlainICA]
# Each with parameters that settle everything
SETTLED = [
    ContrastivePCA(2, alpha=1.5),
    ProbabilisticContrastivePCA(2, gamma=0.3),
    GeneralizedContrastivePCA(2),
    PlainPCA(2),
    PlainICA(2, rank=6),
]
EACH = pytest.mark.parametrize("model", SETTLED, ids=lambda model: type(model).__name__)
FEW_ROWS = pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
NEGATIVE_NOISE = pytest.mark.filterwarnings("ignore:noise_variance_:contrica.PatternWarning")


@pytest.fixture
def data(rng):
    """Foreground and background of unlike sizes, means and covariances in 5 variables."""
    X = rng.laplace(size=(400, 5)) @ rng.standard_normal((5, 5)) + 3.0
    Y = 0.5 * rng.laplace(size=(250, 5)) @ rng.standard_normal((5, 5)) - 1.0
    return X, Y


def hidden_groups(seed, n=400):
    """Four groups in variables 0-19, hidden by loud noise in 20-29; the background is as noisy."""
    rng = np.random.default_rng(seed)
    spread = np.repeat([1.0, 1.0, 10.0], 10)
    X = rng.standard_normal((n, 30)) * spread
    Y = rng.standard_normal((n, 30)) * np.repeat([3.0, 3.0, 10.0], 10)
    groups = np.arange(n) % 4
    X[:, :10] += np.where(groups % 2, 3.0, -3.0)[:, None]
    X[:, 10:20] += np.where(groups // 2, 3.0, -3.0)[:, None]
    return X, Y, groups


def assert_same_up_to_sign(rows, others, **tolerance):
    signs = np.sign(np.einsum("kp,kp->k", rows, others))
    assert_allclose(rows, others * signs[:, None], **tolerance)


# --- scikit-learn's contract ---


@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@parametrize_with_checks([estimator() for estimator in CONTRASTIVE + PLAIN])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class BackedContrastivePCA(WithBackground, ContrastivePCA):
    pass


class BackedProbabilistic(WithBackground, ProbabilisticContrastivePCA):
    pass


class BackedGeneralized(WithBackground, GeneralizedContrastivePCA):
    pass


class BackedPlainPCA(WithBackground, PlainPCA):
    pass


class BackedPlainICA(WithBackground, PlainICA):
    pass


@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@parametrize_with_checks(
    [
        BackedContrastivePCA(random_state=0),
        BackedProbabilistic(),
        BackedGeneralized(),
        BackedPlainPCA(),
        BackedPlainICA(),
    ]
)
def test_scikit_learn_checks_with_a_background(estimator, check):
    check(estimator)


@EACH
def test_all_learn_unit_rows_with_positive_largest_entries(model, data):
    X, Y = data
    model = clone(model).fit(X, background=Y)
    assert model.components_.shape == (2, 5)
    assert model.n_features_in_ == 5
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    largest = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(2), largest] > 0).all()
    assert_allclose(model.mean_, X.mean(axis=0))
    name = type(model).__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{name}0", f"{name}1"]


@EACH
def test_contrast_ratio_is_foreground_over_background_variance(model, data):
    X, Y = data
    model = clone(model).fit(X, background=Y)
    above, below = ((rows @ model.components_.T).var(axis=0) for rows in data)
    assert_allclose(model.contrast_ratio_, above / below, rtol=1e-9)


@EACH
def test_scores_survive_inverse_transform(model, data, rng):
    X, Y = data
    model = clone(model).fit(X, background=Y)
    scores = rng.standard_normal((10, 2))
    assert_allclose(model.transform(model.inverse_transform(scores)), scores, atol=1e-9)


@EACH
def test_names_of_both_datasets_are_compared(model, data):
    X, Y = (pd.DataFrame(rows, columns=list("abcde")) for rows in data)
    model = clone(model).fit(X, background=Y)
    assert list(model.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="another order"):
        clone(model).fit(X, background=Y[list("badce")])
    with pytest.raises(ValueError, match="background has 4 features but X has 5"):
        clone(model).fit(data[0], background=data[1][:, :4])


@EACH
def test_a_held_background_is_unwrapped(model, data):
    X, Y = data
    one, two = (clone(model).fit(X, background=b) for b in (Y, Background(Y)))
    assert_allclose(one.components_, two.components_)


@EACH
def test_means_of_the_datasets_do_not_matter(model, data):
    X, Y = data
    one = clone(model).fit(X, background=Y)
    two = clone(model).fit(X + 100.0, background=Y - 50.0)
    assert_allclose(two.components_, one.components_, atol=1e-8)
    assert_allclose(two.transform(X + 100.0), one.transform(X), atol=1e-7)


@EACH
def test_a_rotation_of_the_variables_rotates_the_components(model, data, rng):
    X, Y = data
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    one = clone(model).fit(X, background=Y)
    two = clone(model).fit(X @ Q, background=Y @ Q)
    assert_same_up_to_sign(two.components_, one.components_ @ Q, atol=1e-8)


@EACH
def test_signs_of_the_data_do_not_matter(model, data):
    X, Y = data
    one, two = clone(model).fit(X, background=Y), clone(model).fit(-X, background=-Y)
    assert_allclose(two.components_, one.components_, atol=1e-9)


@EACH
def test_a_constant_background_does_not_crash(model, data):
    with pytest.warns(DelicateDataWarning), pytest.warns(PatternWarning):
        model = clone(model).fit(data[0], background=np.ones((50, 5)))
    assert np.isfinite(model.transform(data[0])).all()


@pytest.mark.parametrize("estimator", [*CONTRASTIVE, PlainPCA])
def test_more_components_than_variables_warn_and_return_what_there_is(estimator, data):
    X, Y = data
    with pytest.warns(PatternWarning, match="n_components=7.*5 variable"):
        model = estimator(7).fit(X, background=Y)
    assert model.components_.shape == (5, 5)


@NEGATIVE_NOISE
@pytest.mark.parametrize("estimator", [*CONTRASTIVE, PlainPCA])
def test_none_keeps_all_components(estimator, data):
    X, Y = data
    assert estimator(None).fit(X, background=Y).components_.shape == (5, 5)


@pytest.mark.parametrize("estimator", CONTRASTIVE)
def test_a_forgotten_background_makes_pca_and_a_warning(estimator, data):
    with pytest.warns(DelicateDataWarning, match="no background.*PCA of X"):
        model = estimator(2).fit(data[0])
    assert_same_up_to_sign(model.components_, PCA(2).fit(data[0]).components_, atol=1e-9)
    assert np.isnan(model.contrast_ratio_).all()


@pytest.mark.parametrize("estimator", CONTRASTIVE)
def test_one_dimension_cannot_be_contrasted(estimator, rng):
    with pytest.raises(ValueError, match=r"1 feature\(s\), but a contrast needs at least 2"):
        estimator().fit(rng.random((9, 1)), background=rng.random((9, 1)))


# --- contrastive PCA ---


def test_cpca_is_the_eigenvectors_of_the_difference(data):
    X, Y = data
    model = ContrastivePCA(3, alpha=2.0).fit(X, background=Y)
    vectors = np.linalg.eigh(np.cov(X.T) - 2.0 * np.cov(Y.T))[1]
    assert_same_up_to_sign(model.components_, vectors[:, ::-1][:, :3].T, atol=1e-9)
    assert model.alpha_ == 2.0
    assert model.sweep_components_.shape == (1, 3, 5)
    assert_allclose(model.sweep_components_[0], model.components_)


def test_cpca_without_contrast_is_pca(data):
    X, Y = data
    model = ContrastivePCA(2, alpha=0).fit(X, background=Y)
    assert_same_up_to_sign(model.components_, PCA(2).fit(X).components_, atol=1e-9)


def test_the_path_is_its_points(data):
    S, T = (np.cov(rows.T) for rows in data)
    alphas = [0.0, 0.5, 3.0, 100.0]
    path = contrastive_pca_path(S, T, 2, alphas)
    assert path.shape == (4, 5, 2)
    for alpha, frame in zip(alphas, path, strict=True):
        expected = np.linalg.eigh(S - alpha * T)[1][:, :-3:-1]
        assert_same_up_to_sign(frame.T, expected.T, atol=1e-9)


def test_affinity_is_the_product_of_cosines_of_principal_angles(rng):
    frames = np.linalg.qr(rng.standard_normal((4, 6, 2)))[0]
    expected = [[np.prod(np.cos(subspace_angles(V, W))) for W in frames] for V in frames]
    assert_allclose(subspace_affinities(frames), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_automatic_alpha_finds_hidden_groups(seed):
    """PCA sees loud noise only; the choice, made without labels, separates the four groups."""
    X, Y, groups = hidden_groups(seed)
    model = ContrastivePCA(2, random_state=0)
    assert silhouette_score(model.fit_transform(X, background=Y), groups) > 0.8
    assert silhouette_score(PlainPCA(2).fit_transform(X), groups) < 0.05
    assert model.alpha_ in model.representative_alphas_
    assert len(model.representative_alphas_) == 3
    assert model.alphas_.shape == (41,)
    assert model.sweep_components_.shape == (41, 2, 30)


def test_the_automatic_alpha_does_not_hang_on_the_seed():
    X, Y, _ = hidden_groups(0)
    models = [ContrastivePCA(2, random_state=s).fit(X, background=Y) for s in range(4)]
    for model in models[1:]:
        assert model.alpha_ == models[0].alpha_
        assert_allclose(model.representative_alphas_, models[0].representative_alphas_)


def test_representatives_are_the_medoids_of_flat_stretches():
    """Diagonal covariances: the leading axis is 0, then 1, then 2, as α grows."""
    S, T = np.diag([9.0, 5.0, 1.0]), np.diag([8.0, 1.0, 0.001])
    X, Y = (np.linalg.cholesky(C) for C in (S, T))
    rows = np.sqrt(3) * np.r_[np.eye(3), -np.eye(3)]  # covariance of rows @ C is C Cᵀ
    model = ContrastivePCA(1, alpha=[0.1, 0.2, 0.3, 1, 2, 3, 10, 20, 30], random_state=0)
    model.fit(rows @ X.T, background=rows @ Y.T)
    assert_allclose(
        np.abs(model.sweep_components_[:, 0]), np.repeat(np.eye(3), 3, axis=0), atol=1e-9
    )
    assert_allclose(model.representative_alphas_, [0.1, 1, 10])
    assert model.alpha_ == 1  # neither of the foreground alone nor of the background alone


def test_few_alphas_represent_themselves(data):
    X, Y = data
    model = ContrastivePCA(2, alpha=(3.0, 1.0)).fit(X, background=Y)
    assert_allclose(model.alphas_, [1.0, 3.0])
    assert_allclose(model.representative_alphas_, [1.0, 3.0])


@pytest.mark.parametrize("alpha", [-1, np.nan, np.inf, "best", None, True, [], [1, -2], [[1.0]]])
def test_bad_alphas_are_refused(alpha, data):
    with raises(ParameterError, "out-of-range", "alpha"):
        ContrastivePCA(alpha=alpha).fit(data[0], background=data[1])


def test_paths_refuse_what_are_no_covariances():
    with raises(DataError, "shape") as said:
        contrastive_pca_path(np.eye(2), np.eye(3), 1, [0.0])
    assert "shapes (2, 2) and (3, 3)" in str(said.value)
    with raises(DataError, "not-finite"):
        contrastive_pca_path(np.eye(2), np.full((2, 2), np.nan), 1, [0.0])
    with raises(ParameterError, "too-large", "n_components") as said:
        probabilistic_pca_path(np.eye(2), np.eye(2), 3, [0.0])
    assert "n_components=3 is more than the 2 variables" in str(said.value)


# --- many variables, few rows ---


def wide_pair(rng, n=900, p=320):
    """Five sources in both datasets and five in the foreground, in noise that differs by variable."""
    A, B = rng.standard_normal((2, 5, p))
    noise = np.linspace(0.2, 2, p)
    X, Y = (rng.laplace(size=(n, 5)) @ A + rng.standard_normal((n, p)) * noise for _ in range(2))
    return X + 0.5 * rng.laplace(size=(n, 5)) @ B, Y


@pytest.mark.parametrize("count", [1, 3])
def test_the_path_over_many_variables_is_that_of_full_decompositions(rng, monkeypatch, count):
    """Its subspace, and no decomposition of the whole matrix."""
    fore, back = (np.cov(rows.T) for rows in wide_pair(rng))

    def refused(*_):
        raise AssertionError("the matrix was decomposed as a whole")

    monkeypatch.setattr(leading, "dense_eigenpairs", refused)
    found = contrastive_pca_path(fore, back, count, SWEEP)
    # largest angles are at large α: rounding of α C_y over the gap to the next eigenvalue
    assert_allclose(found, naive.contrastive_pca_path(fore, back, count, SWEEP), atol=1e-8)


def test_a_path_in_any_order_is_the_same(rng):
    fore, back = (np.cov(rows.T) for rows in wide_pair(rng))
    alphas = [100.0, 0.0, 3.0, 1000.0]
    found = contrastive_pca_path(fore, back, 2, alphas)
    assert_allclose(found, naive.contrastive_pca_path(fore, back, 2, alphas), atol=1e-8)


@pytest.mark.parametrize("kind", ["zero", "identity", "one tied pair", "huge alpha"])
def test_leading_eigenpairs_of_odd_matrices(rng, kind):
    """Where iterations tell nothing apart, or leave the range of numbers, the whole is decomposed."""
    p, alpha, back = 320, 0.0, np.eye(320)
    fore = {"zero": np.zeros((p, p)), "identity": np.eye(p)}.get(kind)
    if fore is None:
        axes = np.linalg.qr(rng.standard_normal((p, p)))[0]
        fore = axes * np.r_[5.0, 5.0, np.linspace(0, 4, p - 2)] @ axes.T
    if kind == "huge alpha":
        alpha, back = 1e308, 10 * np.diag(np.linspace(1, 2, p))
    values, vectors = leading.LeadingPairs(fore, back, 2).at(alpha)
    matrix = fore - alpha * back if alpha < 1 else fore / alpha - back
    assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-10)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[:-3:-1], atol=1e-10)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)


@pytest.fixture
def few(rng):
    """Rows of 60 variables; those of the foreground are combinations of the background's."""
    Y = 2.0 + rng.standard_normal((18, 60)) * np.linspace(1, 3, 60)
    return rng.standard_normal((12, 18)) @ naive.central(Y) + 5.0, Y


@FEW_ROWS
def test_cpca_of_few_rows_is_that_of_all_variables(few):
    X, Y = few
    model = ContrastivePCA(2, random_state=0).fit(X, background=Y)
    axes = np.linalg.qr(naive.central(Y).T)[0][:, :17]  # 18 rows about their mean
    parts = [axes.T @ part @ axes for part in naive.covariances_of_variables(X, Y)]
    expected = axes @ naive.contrastive_pca_path(*parts, 2, SWEEP)
    for frame, own in zip(model.sweep_components_, expected, strict=True):
        assert_same_up_to_sign(frame, own.T, atol=1e-8)


@FEW_ROWS
def test_pcpca_of_few_rows_is_that_of_all_variables(few):
    """σ² is the mean over all variables, in most of which nothing varies."""
    X, Y = few
    model = ProbabilisticContrastivePCA(2, gamma=0.1, scaling="unit").fit(X, background=Y)
    fore, back = naive.covariances_of_variables(X, Y, ddof=0)
    expected = probabilistic_pca_path(fore, back, 2, [0.1])
    assert_same_up_to_sign(model.components_, expected.directions[0].T, atol=1e-9)
    assert_same_up_to_sign(model.loadings_.T, expected.loadings[0].T, atol=1e-9)
    assert_allclose(model.noise_variance_, expected.noise_variance[0], rtol=1e-9)


@FEW_ROWS
def test_gcpca_of_few_rows_is_that_of_all_variables(few):
    X, Y = few
    model = GeneralizedContrastivePCA(2).fit(X, background=Y)
    fore, back = naive.covariances_of_variables(X, Y)
    inverse = np.linalg.pinv(fore + back, rcond=1e-10)
    values, vectors = np.linalg.eig(inverse @ (fore - back))
    top = np.argsort(-values.real)[:2]
    assert_allclose(model.contrast_, values.real[top], rtol=1e-9)
    expected = vectors.real[:, top].T
    lengths = np.linalg.norm(expected, axis=1)[:, None]
    assert_same_up_to_sign(model.components_, expected / lengths, atol=1e-7)


@FEW_ROWS
@pytest.mark.filterwarnings("ignore:the background does not vary:contrica.PatternWarning")
def test_pca_of_few_rows_fills_up_with_directions_of_no_variance(few):
    """29 rows of 12 about their mean have 11 directions; the others are orthonormal all the same."""
    X, Y = few
    model = PlainPCA(14).fit(X, background=Y)
    assert_allclose(model.components_ @ model.components_.T, np.eye(14), atol=1e-12)
    assert_allclose(model.explained_variance_[:11], PCA(11).fit(X).explained_variance_, rtol=1e-9)
    assert_allclose(model.explained_variance_[11:], 0, atol=1e-10)
    assert_allclose(naive.central(X) @ model.components_[11:].T, 0, atol=1e-9)


@EACH
@FEW_ROWS
@NEGATIVE_NOISE
def test_few_rows_turn_with_the_variables(model, few, rng):
    X, Y = few
    turn = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    kept, turned = (
        clone(model).fit(rows @ by, background=others @ by)
        for by in (np.eye(60), turn)
        for rows, others in [(X, Y)]
    )
    assert_same_up_to_sign(kept.components_ @ turn, turned.components_, atol=1e-6)


# --- probabilistic contrastive PCA ---


def log_ratio(W, noise, X, Y, gamma):
    """log p(X) − γ log p(Y) under N(0, W Wᵀ + σ² I), constants left out."""
    C = W @ W.T + noise * np.eye(len(W))
    sizes = [
        len(rows) * np.linalg.slogdet(C)[1] + np.sum(rows @ np.linalg.inv(C) * rows)
        for rows in (X - X.mean(axis=0), Y - Y.mean(axis=0))
    ]
    return -0.5 * sizes[0] + 0.5 * gamma * sizes[1]


def test_pcpca_is_a_maximum_of_the_likelihood_ratio(data, rng):
    X, Y = data
    model = ProbabilisticContrastivePCA(2, gamma=0.2).fit(X, background=Y)
    assert model.noise_variance_ > 0
    assert_allclose(model.gamma_, 0.2 * 400 / 250)
    best = log_ratio(model.loadings_, model.noise_variance_, X, Y, model.gamma_)
    for step in (1e-3, 1e-2):
        for _ in range(50):
            W = model.loadings_ + step * rng.standard_normal((5, 2))
            noise = model.noise_variance_ * np.exp(step * rng.standard_normal())
            assert log_ratio(W, noise, X, Y, model.gamma_) < best


def test_pcpca_follows_the_published_formula(data):
    """With γ, n and m as they stand in the paper, not as a fraction."""
    X, Y = data
    n, m = len(X), len(Y)
    model = ProbabilisticContrastivePCA(2, gamma=0.4).fit(X, background=Y)
    gamma = 0.4 * n / m
    S, T = (np.cov(rows.T, bias=True) for rows in data)
    values, U = np.linalg.eigh(n * S - gamma * m * T)
    values, U = values[::-1], U[:, ::-1]
    noise = values[2:].mean() / (n - gamma * m)
    W = U[:, :2] * np.sqrt(values[:2] / (n - gamma * m) - noise)
    assert_allclose(model.noise_variance_, noise, rtol=1e-9)
    assert_same_up_to_sign(model.loadings_.T, W.T, atol=1e-9)


def test_pcpca_without_contrast_is_pca(data):
    X, Y = data
    model = ProbabilisticContrastivePCA(2, gamma=0).fit(X, background=Y)
    reference = PCA(2).fit(X)
    assert_same_up_to_sign(model.components_, reference.components_, atol=1e-9)
    # scikit-learn divides by n − 1, the likelihood by n
    assert_allclose(model.noise_variance_, reference.noise_variance_ * 399 / 400, rtol=1e-9)


@NEGATIVE_NOISE
def test_pcpca_directions_are_those_of_cpca(data):
    X, Y = data
    alpha = 0.8 * (250 / 249) ** -1 * (400 / 399)  # covariances by n and by n − 1
    one = ProbabilisticContrastivePCA(2, gamma=0.8).fit(X, background=Y)
    two = ContrastivePCA(2, alpha=alpha).fit(X, background=Y)
    assert_allclose(one.components_, two.components_, atol=1e-9)


def test_pcpca_scalings_stretch_the_same_scores(data):
    X, Y = data
    scores = {
        scaling: ProbabilisticContrastivePCA(2, gamma=0.2, scaling=scaling).fit_transform(
            X, background=Y
        )
        for scaling in ("unit", "loadings", "standard", "posterior")
    }
    model = ProbabilisticContrastivePCA(2, gamma=0.2).fit(X, background=Y)
    W, centred = model.loadings_, X - X.mean(axis=0)
    M = W.T @ W + model.noise_variance_ * np.eye(2)
    assert_allclose(scores["unit"], centred @ model.components_.T, atol=1e-9)
    assert_allclose(scores["loadings"], centred @ W, atol=1e-9)
    assert_allclose(scores["posterior"], centred @ W @ np.linalg.inv(M), atol=1e-9)
    assert_allclose(scores["standard"].std(axis=0), 1, rtol=1e-9)


def test_the_probabilistic_path_is_its_points(data):
    S, T = (np.cov(rows.T, bias=True) for rows in data)
    path = probabilistic_pca_path(S, T, 2, [0.0, 0.2, 0.3])
    assert path.loadings.shape == (3, 5, 2)
    for gamma, W, noise in zip([0.0, 0.2, 0.3], path.loadings, path.noise_variance, strict=True):
        model = ProbabilisticContrastivePCA(2, gamma=gamma).fit(data[0], background=data[1])
        assert_allclose(model.loadings_, W, atol=1e-9)
        assert_allclose(model.noise_variance_, noise, rtol=1e-9)


def test_a_negative_noise_variance_is_named(rng):
    X, Y = rng.standard_normal((300, 4)) * [3, 1, 1, 1], 1.2 * rng.standard_normal((300, 4))
    with warns(PatternWarning, "no-model") as said:
        ProbabilisticContrastivePCA(1, gamma=0.9).fit(X, background=Y)
    assert str(said[0].message).startswith("noise_variance_ = -")
    assert "is negative: at gamma=0.9" in str(said[0].message)


def test_automatic_gamma_is_the_largest_that_has_a_model(rng):
    X, Y = rng.standard_normal((300, 4)) * [3, 1, 1, 1], 1.2 * rng.standard_normal((200, 4))
    model = ProbabilisticContrastivePCA(1).fit(X, background=Y)
    assert model.noise_variance_ >= 0
    chosen = model.gamma_ * 200 / 300
    assert 0.5 < chosen < 0.9
    with warns(PatternWarning, "no-model"):
        ProbabilisticContrastivePCA(1, gamma=chosen + 0.01).fit(X, background=Y)
    # where every value has a model, the largest is taken
    assert_allclose(ProbabilisticContrastivePCA(1).fit(X, background=0.1 * Y).gamma_, 0.9 * 1.5)


def test_automatic_gamma_with_all_components_keeps_scores_that_vary(rng):
    X, Y = rng.standard_normal((300, 4)) * [3, 1, 1, 1], 1.2 * rng.standard_normal((200, 4))
    scores = ProbabilisticContrastivePCA(None).fit_transform(X, background=Y)
    assert scores.std(axis=0).min() > 0
    with warns(PatternWarning, "no-loading") as said:
        ProbabilisticContrastivePCA(None, gamma=0.9).fit(X, background=Y)
    assert "2 of 4 components have no loading at gamma=0.9" in str(said[0].message)


@EACH
def test_a_background_in_the_place_of_y_is_noticed(model, data):
    X, Y = data
    with pytest.warns(DelicateDataWarning, match=r"second argument, .* was ignored"):
        clone(model).fit(X, Y, background=Y)


def test_cpca_leaves_out_directions_in_which_nothing_varies(rng):
    """At large α their eigenvalue, 0, would be the largest."""
    axes = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    scales = ([3, 1, 1, 1], [1, 1, 2, 1])
    X, Y = (rng.standard_normal((200, 4)) * scale @ axes.T for scale in scales)
    model = ContrastivePCA(2, alpha=100).fit(X, background=Y)
    assert_allclose(axes @ (axes.T @ model.components_.T), model.components_.T, atol=1e-9)
    assert model.contrast_ratio_.min() > 0.1
    assert_allclose(model.sweep_components_[0], model.components_, atol=1e-12)


@pytest.mark.parametrize("gamma", [-0.1, 1, 1.5, np.nan, "best", None, True])
def test_bad_gammas_are_refused(gamma, data):
    with raises(ParameterError, "out-of-range", "gamma"):
        ProbabilisticContrastivePCA(gamma=gamma).fit(data[0], background=data[1])


def test_bad_scalings_are_refused(data):
    with raises(ParameterError, "unknown-choice", "scaling"):
        ProbabilisticContrastivePCA(scaling="large").fit(data[0], background=data[1])


# --- generalized contrastive PCA ---


def test_gcpca_is_stationary_and_uncorrelated(data):
    X, Y = data
    model = GeneralizedContrastivePCA(None).fit(X, background=Y)
    S, T = (np.cov(rows.T) for rows in data)
    W = model.components_.T
    assert (np.diff(model.contrast_) <= 0).all()
    assert (np.abs(model.contrast_) <= 1).all()
    # (S − T) w = contrast (S + T) w
    assert_allclose((S - T) @ W, (S + T) @ W * model.contrast_, atol=1e-9)
    products = W.T @ (S + T) @ W
    assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)


def test_gcpca_is_symmetric_in_its_datasets(data):
    X, Y = data
    one = GeneralizedContrastivePCA(None).fit(X, background=Y)
    two = GeneralizedContrastivePCA(None).fit(Y, background=X)
    assert_allclose(two.contrast_, -one.contrast_[::-1], atol=1e-12)
    assert_same_up_to_sign(two.components_, one.components_[::-1], atol=1e-8)


def test_gcpca_contrasts_do_not_hang_on_the_units(data, rng):
    """Any invertible map of the variables leaves the relative differences of variances alone."""
    X, Y = data
    L = rng.standard_normal((5, 5))
    one = GeneralizedContrastivePCA(None).fit(X, background=Y)
    two = GeneralizedContrastivePCA(None).fit(X @ L, background=Y @ L)
    assert_allclose(two.contrast_, one.contrast_, atol=1e-9)


def test_gcpca_works_where_covariances_are_singular(data, rng):
    X, Y = data
    Q = np.linalg.qr(rng.standard_normal((8, 5)))[0]
    low = GeneralizedContrastivePCA(2).fit(X, background=Y)
    high = GeneralizedContrastivePCA(2).fit(X @ Q.T, background=Y @ Q.T)
    assert_allclose(high.contrast_, low.contrast_, atol=1e-9)
    assert_same_up_to_sign(high.components_, low.components_ @ Q.T, atol=1e-8)
    with warns(PatternWarning, "fewer-patterns") as said:
        model = GeneralizedContrastivePCA(None).fit(X @ Q.T, background=Y @ Q.T)
    assert "vary in 5 directions" in str(said[0].message)
    assert model.components_.shape == (5, 8)


@pytest.mark.filterwarnings("ignore:.*does not vary along:contrica.PatternWarning")
def test_gcpca_finds_what_only_the_foreground_has(rng):
    X, Y = (
        rng.standard_normal((300, 4)) * [1, 2, 9, 9],
        rng.standard_normal((200, 4)) * [1, 0, 9, 9],
    )
    with pytest.warns(DelicateDataWarning, match="vary in X but not in the background"):
        model = GeneralizedContrastivePCA(1).fit(X, background=Y)
    assert_allclose(model.components_[0], [0, 1, 0, 0], atol=0.2)
    assert_allclose(model.contrast_, 1, atol=1e-9)


# --- plain methods ---


def test_plain_pca_is_pca(data):
    X, Y = data
    model, reference = PlainPCA(3).fit(X, background=Y), PCA(3).fit(X)
    assert_same_up_to_sign(model.components_, reference.components_, atol=1e-9)
    assert_allclose(model.explained_variance_, reference.explained_variance_)
    alone = PlainPCA(3).fit(X)  # without a warning: it needs no background
    assert_allclose(alone.components_, model.components_)
    assert np.isnan(alone.contrast_ratio_).all()


def test_plain_ica_is_htd_ranked_by_contrast(data):
    X, Y = data
    model = PlainICA(3, rank=6).fit(X, background=Y)
    fore, back = cumulants(X), cumulants(Y)
    found = htd(fore.fourth, 6)
    ratio = contrast_ratio(found.vectors, fore, back)
    order = np.argsort(-ratio)[:3]
    assert_same_up_to_sign(model.components_, found.vectors[:, order].T, atol=1e-9)
    assert_allclose(model.weights_, found.weights[order])
    assert (np.diff(model.contrast_ratio_) <= 0).all()


def test_plain_ica_alone_ranks_by_weight(rng):
    X = rng.laplace(size=(20_000, 4)) * np.array([4.0, 3.0, 2.0, 1.0])
    model = PlainICA(2, rank=4).fit(X)
    assert_allclose(model.components_, np.eye(4)[:2], atol=0.1)
    assert (np.diff(model.weights_) <= 0).all()
    assert np.isnan(model.contrast_ratio_).all()


def test_plain_ica_chooses_its_rank():
    from contrica.solvers.ranks import choose_ranks

    design = make_synthetic(6, n_samples=20_000, random_state=1)
    X, Y = design.foreground, design.background
    model = PlainICA(2).fit(X, background=Y)
    assert model.rank_ == sum(choose_ranks(cumulants(X), cumulants(Y)))


def test_plain_ica_works_in_the_stacked_principal_axes(rng):
    from contrica.moments.projection import common_basis

    X, Y = rng.laplace(size=(200, 35)), rng.laplace(size=(100, 35))
    model = PlainICA(2, rank=5, n_pcs=7).fit(X, background=Y)
    assert_allclose(model.basis_, common_basis([X, Y], 7))
    assert_allclose(model.components_ @ model.basis_ @ model.basis_.T, model.components_, atol=1e-9)
    assert model.n_pcs_ == 7


def test_plain_ica_returns_what_was_sought(data):
    with pytest.warns(PatternWarning, match="n_components=4.*rank=3"):
        assert len(PlainICA(4, rank=3).fit(data[0]).components_) == 3
    with pytest.raises(ValueError, match="rank=16 is too large"):
        PlainICA(rank=16).fit(data[0])


# --- published figures ---


@NEGATIVE_NOISE
@pytest.mark.filterwarnings("ignore:HTD terms:contrica.PatternWarning")
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (ContrastivePCA(2, alpha=26.2), 0.421),
        (ProbabilisticContrastivePCA(2, gamma=0.9, scaling="loadings"), 0.220),
        (ProbabilisticContrastivePCA(2, gamma=0.9, scaling="standard"), 0.450),
        (PlainICA(2, rank=53, n_pcs=15, cumulant="unbiased"), 0.604),
    ],
    ids=["cPCA", "PCPCA", "PCPCA scaled", "ICA"],
)
def test_silhouettes_of_the_mice_are_those_the_paper_reports(mouse, model, expected):
    X, Y, genotype = mouse
    score = silhouette_score(clone(model).fit_transform(X, background=Y), genotype)
    assert_allclose(score, expected, atol=0.005)


def test_the_papers_gamma_for_the_mice_leaves_no_gaussian_model(mouse):
    """Its best γ′, 0.9 n/m, is beyond where the noise variance is positive."""
    X, Y, _ = mouse
    with warns(PatternWarning, "no-model") as said:
        ProbabilisticContrastivePCA(2, gamma=0.9).fit(X, background=Y)
    assert "noise_variance_ = -2.3" in str(said[0].message)
