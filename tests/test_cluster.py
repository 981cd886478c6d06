"""Sums on a cluster of dask: the caller's scheduler, two workers, one of them killed."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA
from contrica.errors import ClusterLostError
from contrica.moments.fourth import cumulants
from contrica.moments.matrix_free import CumulantOperator
from contrica.rows.containers import as_rows
from contrica.rows.products import chosen_rows, gram_times, projected
from contrica.rows.summary import column_summary
from tests.said import raises

array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2, 4000, 6))
    X[:, :3] += 3 * rng.choice([-1, 1], (4000, 1))
    return X, Y


@pytest.fixture
def client():
    """Two processes, anew for each test; nothing of this process can be seen by them."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def slowly(block):
    time.sleep(0.2)
    return block


def test_sums_by_chunks_are_those_of_the_rows(pair):
    X = pair[0]
    for chunks in ((4000, 6), (500, 6), (333, 2), ((1, 0, 3999), (6,))):
        rows = as_rows(array.from_array(X, chunks=chunks))
        for one, two in zip(column_summary(rows), column_summary(X), strict=True):
            assert_allclose(one, two, rtol=1e-9)
        found, expected = cumulants(rows), cumulants(X)
        assert_allclose(found.covariance, expected.covariance, atol=1e-10)
        assert_allclose(found.fourth.flatten(), expected.fourth.flatten(), atol=1e-9)
        V = np.diag(np.arange(6.0))
        assert_allclose(CumulantOperator(rows).apply(V), CumulantOperator(X).apply(V), atol=1e-9)
        index = np.array([0, 1, 332, 333, 3999])
        assert_allclose(chosen_rows(rows, index), X[index])
        basis = np.eye(6)[:, [4, 0]]
        assert_allclose(chosen_rows(projected(rows, basis), index), X[index][:, [4, 0]])
        seen = cumulants(projected(rows, basis)).fourth.flatten()
        assert_allclose(seen, cumulants(X @ basis).fourth.flatten(), atol=1e-9)
        assert_allclose(gram_times(rows, basis), X.T @ X @ basis, rtol=1e-10)


@pytest.mark.slow
def test_workers_give_the_fit_of_one_process(client, pair):
    X, Y = pair
    expected = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    held = [array.from_array(part, chunks=(400, 6)) for part in (X, Y)]
    model = ContrastiveICA(1, random_state=0).fit(held[0], background=held[1])
    # as promised of containers: rotations end at a slope of 1e-7
    assert_allclose(model.components_, expected.components_, atol=1e-6)
    assert_allclose(model.transform(held[0]), expected.transform(X), atol=1e-5)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_time_only(client, pair):
    X, Y = pair
    expected = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    held = [
        array.from_array(part, chunks=(400, 6)).map_blocks(slowly, dtype=float) for part in (X, Y)
    ]
    pids = list(client.run(os.getpid).values())
    killer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    model = ContrastiveICA(1, random_state=0).fit(held[0], background=held[1])
    killer.join()
    assert pids[0] not in client.run(os.getpid).values()  # it is gone indeed
    assert_allclose(model.components_, expected.components_, atol=1e-6)


def test_a_lost_cluster_is_said_and_nothing_is_fitted(pair):
    X, Y = pair
    cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    model = ContrastiveICA(1)
    with distributed.Client(cluster, timeout=2):
        held = array.from_array(X, chunks=(400, 6)).map_blocks(slowly, dtype=float)
        ender = threading.Timer(0.5, cluster.close)
        ender.start()
        with raises(ClusterLostError, "cluster-lost"):
            model.fit(held, background=Y)
        ender.join()
    assert not hasattr(model, "components_")
