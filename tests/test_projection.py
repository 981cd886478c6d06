import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from contrica.projection import common_basis


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
    ("n_pcs", "message"),
    [(0, "too small"), (41, "more than the 40"), ("all", "not known"), (2.5, "whole")],
)
def test_bad_numbers_of_axes_are_refused(pair, n_pcs, message):
    with pytest.raises(ValueError, match=message):
        common_basis(pair, n_pcs)
