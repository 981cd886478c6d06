import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import eigen
from contrica.cumulants import CumulantOperator, cumulants
from contrica.operators import RankOneSum, as_operator
from tests import naive


@pytest.fixture
def tensor(rng):
    return naive.symmetrise(rng.standard_normal((5, 5, 5, 5)))


def test_eigenpairs_equal_those_of_the_papers_flattening(tensor):
    pairs = eigen.top_eigenpairs(as_operator(tensor), 6)
    values, matrices = naive.eigenpairs(tensor, 6)
    assert_allclose(pairs.values, values, rtol=1e-10)
    for ours, theirs in zip(pairs.matrices(), matrices, strict=True):
        assert_allclose(ours * np.sign(np.sum(ours * theirs)), theirs, atol=1e-10)


def test_lanczos_equals_the_full_decomposition(monkeypatch, rng):
    X = rng.laplace(size=(200, 12)) * np.linspace(3, 1, 12)
    dense = eigen.top_eigenpairs(cumulants(X).fourth, 5)
    monkeypatch.setattr(eigen, "DENSE_SIZE", 10)
    for operator in (cumulants(X).fourth, CumulantOperator(X)):
        lanczos = eigen.top_eigenpairs(operator, 5)
        assert_allclose(lanczos.values, dense.values, rtol=1e-9)
        cosines = np.abs(np.sum(lanczos.vectors * dense.vectors, axis=0))
        assert_allclose(cosines, 1, atol=1e-8)
        assert_allclose(eigen.eigenvalues(operator, 5), dense.values, rtol=1e-9)


def test_lanczos_is_deterministic(monkeypatch, rng):
    monkeypatch.setattr(eigen, "DENSE_SIZE", 10)
    operator = CumulantOperator(rng.laplace(size=(100, 10)))
    first, second = (eigen.top_eigenpairs(operator, 4).vectors for _ in range(2))
    assert np.array_equal(first, second)


def test_eigenvalues_are_ordered_by_magnitude_and_cut(tensor):
    values = eigen.eigenvalues(as_operator(tensor))
    assert values.size == 15
    assert (np.diff(np.abs(values)) <= 0).all()
    assert_allclose(eigen.eigenvalues(as_operator(tensor), 3), values[:3])


def test_significant_drops_what_is_zero_to_rounding(unit_columns):
    pairs = eigen.top_eigenpairs(RankOneSum(np.array([2.0, -1.0]), unit_columns(4, 2)))
    assert pairs.values.size == 10
    assert pairs.significant().values.size == 2
    assert pairs.significant(0.99).values.size == 1


def test_containment_tells_components_from_others(unit_columns):
    vectors = unit_columns(4, 3)
    pairs = eigen.top_eigenpairs(RankOneSum(np.ones(2), vectors[:, :2]), 2)
    assert list(pairs.contain(vectors)) == [True, True, False]


def test_a_vector_without_share_in_the_tensor_has_weight_zero():
    pairs = eigen.top_eigenpairs(RankOneSum(np.ones(1), np.eye(3)[:, :1]), 1)
    assert_allclose(pairs.subtractable_weights(np.eye(3)[:, :2]), [1, 0])
