import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica.moments.symmetric import fix_signs, n_packed, smat, svec, svec_outer

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)


def symmetric(p, seed, count=3):
    M = np.random.default_rng(seed).standard_normal((count, p, p))
    return M + M.transpose(0, 2, 1)


@given(sizes, seeds)
def test_svec_and_smat_are_inverse(p, seed):
    M = symmetric(p, seed)
    assert svec(M).shape == (3, n_packed(p))
    assert_allclose(smat(svec(M)), M, rtol=1e-15, atol=1e-15)


@given(sizes, seeds)
def test_svec_keeps_inner_products(p, seed):
    M, N, _ = symmetric(p, seed)
    assert_allclose(svec(M) @ svec(N), np.trace(M @ N), rtol=1e-12, atol=1e-12)


@given(sizes, seeds)
def test_svec_outer_packs_the_square_of_each_column(p, seed):
    U = np.random.default_rng(seed).standard_normal((p, 4))
    expected = [svec(np.outer(u, u)) for u in U.T]
    assert_allclose(svec_outer(U), np.array(expected).T, rtol=1e-14, atol=1e-14)


def test_fix_signs_makes_the_largest_entry_positive_and_leaves_no_negative_zero():
    fixed = fix_signs(np.array([[-3.0, 0.0], [2.0, -1.0]]))
    assert_allclose(fixed, [[3, 0], [-2, 1]])
    assert not np.signbit(fixed[0, 1])
