import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica.moments import eigen
from contrica.moments.fourth import cumulants
from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.operators import RankOneSum, as_operator
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


KINDS = ["spread", "ties", "near ties", "low rank", "graded", "zero"]


@given(
    st.sampled_from(KINDS),
    st.integers(1, 40),
    st.sampled_from([1e-12, 0.5, 1e6]),
    st.booleans(),
    st.integers(0, 1000),
)
@settings(max_examples=150, deadline=None)
def test_a_rank_one_term_moves_eigenvalues_and_shares_as_a_new_decomposition(
    kind, q, size, negative, seed
):
    rng = np.random.default_rng(seed)
    d, Z = rng.standard_normal(q), rng.standard_normal((q, 3))
    few = np.arange(q) < max(q // 3, 1)
    if kind == "ties":
        d = np.round(d)
    elif kind == "near ties":
        d = np.round(d) + 1e-13 * rng.standard_normal(q)
    elif kind == "low rank":
        d, Z = np.where(few, d, 1e-17 * d), np.where(few[:, None], Z, 0.0)
    elif kind == "graded":
        d *= 10.0 ** -np.linspace(0, 12, q)
    elif kind == "zero":
        d = np.zeros(q)
    weight = -size if negative else size
    M = np.diag(d) + weight * np.outer(Z[:, 1], Z[:, 1])
    values, shares = eigen.add_rank_one(d, Z, 1, weight)
    scale = max(np.abs(M).max(), 1e-300)
    assert_allclose(np.sort(values), np.linalg.eigvalsh(M), atol=1e-13 * q * scale)
    # what functions of the matrix are between the vectors, which fixes all that is defined
    assert_allclose(shares.T @ shares, Z.T @ Z, atol=1e-12 * q)
    for power in (1, 3):
        ours = (shares.T * (values / scale) ** power) @ shares
        theirs = Z.T @ np.linalg.matrix_power(M / scale, power) @ Z
        assert_allclose(ours, theirs, atol=1e-12 * q * max(np.abs(theirs).max(), 1))


def test_a_table_of_differences_too_large_is_split(monkeypatch, rng):
    d, Z = rng.standard_normal(30), rng.standard_normal((30, 2))
    whole = eigen.add_rank_one(d, Z, 0, -1.0)
    monkeypatch.setattr(eigen, "MAX_DIFFERENCES", 100)
    for part, all_at_once in zip(eigen.add_rank_one(d, Z, 0, -1.0), whole, strict=True):
        assert_allclose(part, all_at_once, rtol=1e-10, atol=1e-12)


def test_nothing_added_changes_nothing(rng):
    d, Z = rng.standard_normal(4), np.zeros((4, 1))
    for weight in (0.0, 2.0):
        values, shares = eigen.add_rank_one(d, Z, 0, weight)
        assert values.tolist() == d.tolist()
        assert not shares.any()
