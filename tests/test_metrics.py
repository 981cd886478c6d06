import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica.errors import DataError
from contrica.metrics import (
    match_patterns,
    pattern_cosines,
    pattern_similarity,
    relative_frobenius_error,
)
from tests.said import raises


@given(st.integers(0, 2**32 - 1))
def test_order_sign_and_length_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    true = rng.standard_normal((6, 4))
    shuffled = true[:, rng.permutation(4)] * rng.choice([-3, 0.5], 4)
    for method in ("optimal", "greedy"):
        assert_allclose(pattern_similarity(shuffled, true, method), 1, atol=1e-12)
        assert relative_frobenius_error(shuffled, true, method) < 1e-7


def test_cosines_of_all_pairs():
    found = pattern_cosines(np.array([[3.0, 0.0], [4.0, -2.0]]), np.eye(2))
    assert_allclose(found, [[0.6, 0.8], [0.0, 1.0]])


def test_greedy_is_the_papers_and_can_be_worse_than_optimal():
    # the first true pattern takes the only estimated one that would have suited the second
    true = np.eye(3)[:, :2]
    estimated = np.array([[0.8, 0.6, 0.0], [0.6, 0.0, 0.8]]).T
    greedy, optimal = (match_patterns(estimated, true, m) for m in ("greedy", "optimal"))
    assert list(greedy.order) == [0, 1]
    assert_allclose(greedy.cosines, [0.8, 0.0], atol=1e-12)
    assert list(optimal.order) == [1, 0]
    assert_allclose(optimal.cosines, [0.6, 0.6])


def test_greedy_follows_the_true_order():
    true = np.eye(3)[:, :2]
    estimated = np.array([[0.8, 0.6], [0.6, -0.8], [0.0, 0.0]])
    match = match_patterns(estimated, true, "greedy")
    assert list(match.order) == [0, 1]
    assert list(match.signs) == [1, -1]
    assert_allclose(match.cosines, [0.8, 0.8])


def test_the_error_is_the_papers_formula():
    true, estimated = np.eye(2), np.array([[0.6, -0.8], [0.8, 0.6]])
    matched = np.array([[0.8, 0.6], [-0.6, 0.8]])  # signs and order as matched
    expected = np.sqrt(np.sum((matched - true) ** 2) / 2)
    assert_allclose(relative_frobenius_error(estimated, true), expected)


def test_extra_estimated_patterns_are_allowed_and_missing_ones_are_not():
    assert_allclose(pattern_similarity(np.eye(3), np.eye(3)[:, :2]), 1)
    with raises(DataError, "shape", "estimated"):
        pattern_similarity(np.eye(3)[:, :1], np.eye(3))
    with raises(DataError, "shape", "estimated"):
        pattern_similarity(np.eye(2), np.eye(3)[:, :1])
    with raises(DataError, "zero-pattern", "estimated") as said:
        pattern_similarity(np.diag([1.0, 0.0]), np.eye(2))
    assert "column 1 of estimated is zero" in str(said.value)
