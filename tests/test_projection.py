import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from contrica.errors import ParameterError
from contrica.moments.fourth import cumulants
from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.operators import PackedTensor
from contrica.moments.projection import (
    common_basis,
    project_cumulants,
    project_rows,
    survey,
    winsorize_rows,
)
from contrica.rows.containers import as_rows
from contrica.rows.streams import Blocks
from tests import naive
from tests.said import raises


@pytest.fixture
def pair(rng):
    scales = 0.9 ** np.arange(40)
    return [rng.standard_normal((n, 40)) * scales + 5 for n in (120, 80)]


@pytest.mark.parametrize("k", [1, 5, 40])
def test_axes_are_those_of_scikit_learn_on_the_stacked_rows(pair, k):
    expected = PCA(k).fit(np.vstack(pair)).components_
    cosines = np.abs(np.sum(common_basis(pair, k).T * expected, axis=1))
    assert_allclose(cosines, 1, atol=1e-9)


def test_auto_keeps_all_of_thirty_variables_and_follows_the_paper_beyond(pair, rng):
    assert common_basis([rng.random((10, 30))], "auto") is None
    shares = np.cumsum(PCA().fit(np.vstack(pair)).explained_variance_ratio_)
    expected = int(np.argmax(shares >= 0.9)) + 1
    assert expected < 30
    assert common_basis(pair, "auto").shape == (40, expected)
    flat = [rng.standard_normal((300, 60)) for _ in range(2)]
    assert common_basis(flat, "auto").shape == (60, 30)


def test_none_means_no_pca(pair):
    assert common_basis(pair, None) is None


def test_fewer_rows_than_variables(rng):
    pair = [rng.standard_normal((6, 50)), rng.standard_normal((7, 50))]
    basis = common_basis(pair, 5)
    expected = PCA(5).fit(np.vstack(pair)).components_
    assert_allclose(np.abs(np.sum(basis.T * expected, axis=1)), 1, atol=1e-9)
    wide = common_basis(pair, 20)  # more axes than rows: completed orthonormally
    assert_allclose(wide.T @ wide, np.eye(20), atol=1e-12)


def test_axes_are_orthonormal_with_the_largest_entry_positive(pair):
    basis = common_basis(pair, 6)
    assert_allclose(basis.T @ basis, np.eye(6), atol=1e-12)
    assert (basis[np.abs(basis).argmax(axis=0), np.arange(6)] > 0).all()


def test_a_mean_of_a_million_does_not_turn_the_axes(pair):
    moved = common_basis([rows + 1e6 for rows in pair], 5)
    assert_allclose(np.abs(np.sum(moved * common_basis(pair, 5), axis=0)), 1, atol=1e-7)


@pytest.mark.parametrize(
    ("n_pcs", "code"),
    [(0, "too-small"), (41, "too-large"), ("all", "unknown-choice"), (2.5, "not-a-count")],
)
def test_bad_numbers_of_axes_are_refused(pair, n_pcs, code):
    with raises(ParameterError, code, "n_pcs"):
        common_basis(pair, n_pcs)


# --- outlying rows ---


def mahalanobis(rows, like):
    centred = rows - like.mean(axis=0)
    return np.sqrt(np.sum(centred @ np.linalg.inv(np.cov(like.T, bias=True)) * centred, axis=1))


def test_rows_are_winsorized_as_one_by_one(rng):
    X = rng.standard_t(3, size=(150, 3)) @ rng.standard_normal((3, 3)) + 4
    assert_allclose(winsorize_rows(X), naive.winsorized(X, 0.99), rtol=1e-9)


def test_the_farthest_rows_are_winsorized_and_all_others_left_as_they_are(rng):
    X = rng.standard_t(3, size=(1000, 4)) * [1, 10, 100, 1000]
    found = winsorize_rows(X)
    moved = (found != X).any(axis=1)  # the others to the last bit
    assert 10 <= moved.sum() <= 30
    before, after = mahalanobis(X, X), mahalanobis(found, X)
    assert moved[np.argsort(before)[-10:]].all()
    assert (after[moved] < before[moved]).all()
    assert after.max() <= np.quantile(before, 0.99) * 1.1


def test_a_change_of_coordinates_commutes_with_drawing_in(rng):
    X, M = rng.standard_t(3, size=(300, 3)), rng.standard_normal((3, 3))
    assert_allclose(winsorize_rows(X @ M + 7), winsorize_rows(X) @ M + 7, rtol=1e-9, atol=1e-9)


def test_constant_variables_and_one_variable_are_winsorized(rng):
    X = np.c_[rng.standard_t(2, size=500), np.full(500, 3.0)]
    assert_allclose(winsorize_rows(X)[:, 1], 3.0)
    assert np.ptp(winsorize_rows(X)[:, 0]) < np.ptp(X[:, 0])
    assert winsorize_rows(X[:, :1]).shape == (500, 1)


def test_a_wild_row_ends_no_farther_than_others(rng):
    X = rng.laplace(size=(5000, 5))
    wild = X.copy()
    wild[0] = 300.0
    assert mahalanobis(winsorize_rows(wild), X)[0] < 1.2 * mahalanobis(X, X).max()


def test_rows_are_projected_as_the_estimate_takes_them(pair):
    basis = common_basis(pair, 5)
    X = pair[0]
    assert project_rows(X, None) is X
    assert_allclose(project_rows(X, basis, "unbiased"), X @ basis)
    assert_allclose(project_rows(X, basis, "robust"), winsorize_rows(X @ basis))
    for estimate, rows, kind in (
        ("plugin", X @ basis, "plugin"),
        ("unbiased", X @ basis, "unbiased"),
        ("robust", winsorize_rows(X @ basis), "plugin"),
    ):
        found = project_cumulants(X, basis, estimate).fourth.flatten()
        assert_allclose(found, cumulants(rows, kind).fourth.flatten(), rtol=1e-12)
    with raises(ParameterError, "unknown-choice", "cumulant"):
        project_rows(X, basis, "biased")


@pytest.mark.parametrize("storage", ["auto", "packed", "matrix-free"])
def test_a_survey_is_of_all_rows_and_draws_the_same_of_every_container(storage, rng):
    X = rng.laplace(size=(300, 4))
    expected = cumulants(X, "unbiased")
    kind = CumulantOperator if storage == "matrix-free" else PackedTensor
    drawn = []
    for rows in (X, as_rows(Blocks(np.array_split(X, 7)))):
        found, some, _ = survey(rows, "unbiased", 50, storage=storage)
        assert isinstance(found.fourth, kind)
        assert_allclose(found.fourth.flatten(), expected.fourth.flatten(), atol=1e-12)
        assert_allclose(found.covariance, expected.covariance, atol=1e-12)
        assert some.shape == (50, 4)
        assert all((row == X).all(axis=1).any() for row in some)
        drawn.append(some)
    assert_allclose(*drawn, atol=0)
