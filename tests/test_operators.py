import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.operators import PackedTensor, RankOneSum, as_operator, relative_norm
from tests import naive


@pytest.fixture
def tensor(rng):
    return naive.symmetrise(rng.standard_normal((4, 4, 4, 4)))


@pytest.fixture
def matrices(rng):
    M = rng.standard_normal((3, 4, 4))
    return M + M.transpose(0, 2, 1)


@pytest.fixture
def terms(rng):
    return rng.standard_normal(3), rng.standard_normal((4, 3))


@pytest.fixture
def operators(tensor, terms, rng):
    """Every kind of operator with its dense twin."""
    X = rng.laplace(size=(30, 4))
    dense, sum_, data = tensor, naive.rank_one_sum(*terms), naive.fourth_cumulant(X)
    packed, terms_, free = as_operator(tensor), RankOneSum(*terms), CumulantOperator(X)
    return {
        "packed": (packed, dense),
        "sum": (terms_, sum_),
        "matrix-free": (free, data),
        "packed minus sum": (packed - terms_, dense - sum_),
        "matrix-free minus sum": (free - terms_, data - sum_),
        "sum plus sum": (terms_ + 2.0 * terms_, 3 * sum_),
        "scaled difference": ((free - packed) * 3.0, 3 * (data - dense)),
        "longer expression": (free - terms_ - packed, data - sum_ - dense),
    }


KINDS = [
    "packed",
    "sum",
    "matrix-free",
    "packed minus sum",
    "matrix-free minus sum",
    "sum plus sum",
    "scaled difference",
    "longer expression",
]


@pytest.mark.parametrize("kind", KINDS)
def test_operators_agree_with_plain_loops(operators, kind, matrices, rng):
    operator, dense = operators[kind]
    U = rng.standard_normal((4, 2))
    size = np.abs(dense).max()
    expected = np.array([naive.apply(dense, V) for V in matrices])
    assert_allclose(operator.apply(matrices), expected, rtol=1e-10, atol=1e-11 * size)
    assert_allclose(operator.apply(matrices[0]), expected[0], rtol=1e-10, atol=1e-11 * size)
    cubes = np.array([naive.apply_vector(dense, u) for u in U.T]).T
    assert_allclose(operator.apply_vectors(U), cubes, rtol=1e-10, atol=1e-11 * size)
    values = [u @ naive.apply_vector(dense, u) for u in U.T]
    assert_allclose(operator.coefficients(U), values, rtol=1e-9, atol=1e-10 * size)
    assert_allclose(operator.squared_norm(), np.sum(dense**2), rtol=1e-10)
    assert_allclose(operator.flatten(), as_operator(dense).flatten(), rtol=1e-9, atol=1e-11 * size)


def test_flattening_has_the_eigenvalues_of_the_papers_matrix(tensor):
    ours = np.linalg.eigvalsh(as_operator(tensor).flatten())
    theirs = np.linalg.eigvalsh(naive.mat(tensor))
    # p² − p(p+1)/2 = 6 of them vanish: antisymmetric matrices
    theirs = theirs[np.argsort(-np.abs(theirs))]
    assert_allclose(theirs[10:], 0, atol=1e-13)
    assert_allclose(np.sort(ours), np.sort(theirs[:10]), rtol=1e-10, atol=1e-13)


def test_as_operator_passes_operators_through(terms):
    operator = RankOneSum(*terms)
    assert as_operator(operator) is operator


def test_a_difference_of_written_out_tensors_is_written_out(tensor, terms):
    assert isinstance(as_operator(tensor) - RankOneSum(*terms), PackedTensor)


def test_relative_norm_of_nothing_is_nothing():
    zero = PackedTensor(np.zeros((3, 3)), 2)
    assert relative_norm(zero, zero) == 0.0


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((2, 2, 2, 3)), "shape"),
        (np.arange(16.0).reshape(2, 2, 2, 2), "not symmetric"),
        (np.full((2, 2, 2, 2), np.nan), "NaN"),
        (np.full((2, 2, 2, 2), 1j), "real"),
    ],
)
def test_as_operator_refuses_what_is_no_symmetric_tensor(array, message):
    with pytest.raises(ValueError, match=message):
        as_operator(array)


def test_tensors_of_different_formats_do_not_combine():
    with pytest.raises(ValueError, match="2 and 3 variables"):
        RankOneSum(np.ones(1), np.ones((2, 1))) - RankOneSum(np.ones(1), np.ones((3, 1)))
