"""As many threads as BLAS may use, on one level at a time."""

import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import contrica.solvers.negentropy as negentropy
from contrica.errors import DataError
from contrica.rows.containers import as_rows
from contrica.rows.products import gram_times
from contrica.rows.sparse import transposed
from contrica.rows.summary import column_summary
from contrica.rows.threads import (
    _blas,
    _is_scipys,
    few_threads,
    n_threads,
    one_pool,
    one_thread,
    team,
)
from tests.said import raises


@pytest.fixture
def two():
    with threadpool_limits(2, "blas"):
        if n_threads() < 2:
            pytest.skip("BLAS was built for one thread")
        yield


def test_a_team_is_as_large_as_blas_allows(two):
    with team() as threads:
        assert threads.size == 2
    with team(1) as threads:
        assert threads.size == 1
    with threadpool_limits(1, "blas"), team() as threads:
        assert threads.size == 1
    with few_threads(10), team() as threads:
        assert threads.size == 1


def test_threads_work_at_the_same_time_and_blas_alone_meanwhile(two):
    meeting = threading.Barrier(2, timeout=20)

    def meet(number):
        meeting.wait()  # passed by two at once, or not at all
        return number, n_threads()

    with team() as threads:
        assert threads.map(meet, range(6)) == [(number, 1) for number in range(6)]
    assert n_threads() == 2


def test_one_thread_ends(two):
    with one_thread():
        assert n_threads() == 1
    assert n_threads() == 2


def test_of_two_pools_scipys_is_held_to_one_thread(two):
    """Whichever way contexts overlap, in one thread or in several, the limits before come back."""
    pools = {_is_scipys(Path(pool.filepath)): pool for pool in _blas()}
    if len(pools) < 2:
        pytest.skip("numpy and scipy share one BLAS")

    def limits():
        return pools[True].num_threads, pools[False].num_threads

    outer, inner = one_pool(), one_thread()
    outer.__enter__()
    assert limits() == (1, 2)
    inner.__enter__()
    assert limits() == (1, 1)
    outer.__exit__()  # first, as a fit in another thread might
    assert limits() == (1, 1)
    inner.__exit__()
    assert limits() == (2, 2)
    with one_pool(), one_pool():
        assert limits() == (1, 2)
    assert limits() == (2, 2)


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("lib/site-packages/scipy.libs/libscipy_openblas-6c.so", True),
        ("lib/site-packages/scipy/.dylibs/libscipy_openblas.dylib", True),
        ("lib/site-packages/numpy.libs/libscipy_openblas64_-32.so", False),
        ("scipy/lib/libopenblas.so", False),
    ],
)
def test_the_blas_of_scipys_wheel_is_told_by_its_folder(path, own):
    assert _is_scipys(Path(path)) is own


def test_what_fails_in_a_thread_is_raised_and_leaves_blas_its_threads(two):
    with pytest.raises(ZeroDivisionError), team() as threads:
        threads.map(lambda number: 1 / number, [1, 0])
    assert n_threads() == 2


def test_teams_that_overlap_leave_blas_its_threads(two):
    entered, both, left = (threading.Event() for _ in range(3))

    def first():
        with team(2):
            entered.set()
            both.wait(20)
        left.set()

    def second():
        entered.wait(20)
        with team(2):
            both.set()
            left.wait(20)

    workers = [threading.Thread(target=work) for work in (first, second)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert n_threads() == 2


@pytest.mark.parametrize("n", [0, 3, 1000, 1001])
@pytest.mark.parametrize("columns", [1, 3])
def test_products_with_sparse_rows_in_threads(n, columns, rng, monkeypatch, two):
    monkeypatch.setattr("contrica.rows.sparse.BLOCK_BYTES", 2**13)
    X = sp.random(n, 7, 0.3, "csr", random_state=0)
    M, origin = rng.standard_normal((7, columns)), rng.standard_normal(7)
    centred = X.toarray() - origin
    rows = as_rows(X, "X")
    assert len(list(rows.pieces())) in ({0} if n == 0 else {1, 4, 8})
    assert_allclose(gram_times(rows, M, origin), centred.T @ centred @ M, atol=1e-9)


def test_pieces_and_their_transposes_are_views():
    X = sp.random(1000, 7, 0.3, "csr", random_state=0)
    rows = as_rows(X, "X").cut(10, 20)
    columns = transposed(rows)
    assert np.shares_memory(columns.data, X.data)
    assert_allclose(columns.toarray(), X[10:20].toarray().T)


def test_a_rotation_in_threads_is_that_of_one(rng, monkeypatch, two):
    monkeypatch.setattr(negentropy, "ROWS_IN_BLOCK", 300)
    monkeypatch.setattr(negentropy, "THREADED_DIMENSIONS", 2)
    rows, turns = rng.laplace(size=(3001, 4)), rng.standard_normal((2, 4, 4))
    with team() as threads:
        together, alone = negentropy._Rows(rows, threads), negentropy._Rows(rows)
        assert len(together._shares) == 2
        assert len(alone._shares) == 1
        each = (rows.heights(turns, 0.25) for rows in (together, alone))
        for one, other in zip(*each, strict=True):
            assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    rows = rows[:, :3] / rows[:, :3].std(axis=0)
    found = []
    for limit in (1, 2):
        with threadpool_limits(limit, "blas"):
            best = negentropy.farthest_from_gaussian(rows, rng=np.random.default_rng(0))
            found.append(best.matrix)
    assert_allclose(*found, atol=1e-10)


def test_sparse_rows_of_which_there_are_none():
    with raises(DataError, "no-rows"):
        column_summary(as_rows(sp.csr_matrix((0, 5)), "X"))
