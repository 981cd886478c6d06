import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica.moments.symmetric import (
    fix_signs,
    largest_eigenpairs,
    n_packed,
    smat,
    svec,
    svec_outer,
)

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


@given(st.integers(1, 30), seeds, st.integers(0, 29), st.booleans())
def test_largest_eigenpairs_are_as_many_as_asked_for_also_among_ties(p, seed, others, overwrite):
    # all equal but some: LAPACK's subset alone loses a few of these in one of seventy matrices
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((p, p)))[0]
    spectrum = np.full(p, -1.0)
    spectrum[: others % p] += rng.random(others % p)
    matrix = np.asfortranarray((axes * spectrum) @ axes.T)
    matrix = np.asfortranarray(matrix + matrix.T) / 2
    count = int(rng.integers(1, p + 1))
    values, vectors = largest_eigenpairs(matrix.copy(order="F"), count, overwrite=overwrite)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[p - count :], atol=1e-12)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
    assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)


def test_largest_eigenpairs_of_a_matrix_of_which_the_subset_is_too_small(monkeypatch):
    matrix = np.asfortranarray(symmetric(6, 0)[0])
    whole = np.linalg.eigh(matrix)

    def too_few(given, *, overwrite_a, **_):
        given[np.tril_indices(6)] = np.nan  # as LAPACK leaves it
        return whole[0][:0], whole[1][:, :0]

    monkeypatch.setattr("contrica.moments.symmetric.eigh", too_few)
    values, vectors = largest_eigenpairs(matrix.copy(order="F"), 2, overwrite=True)
    assert_allclose(values, whole[0][4:], rtol=1e-12)
    assert_allclose(np.abs(np.sum(vectors * whole[1][:, 4:], axis=0)), 1, rtol=1e-12)
