"""Commands whose rows the workers of a cluster read."""

import sys

import numpy as np
import pandas as pd
import pytest

from contrica import ContrastiveICA
from contrica.errors import ClusterLostError, DataError, PackageMissingError, ParameterError
from tests.test_cli.shell import FIT, cause, fit, refused, run
from tests.test_cli.stores import STORES, same_tables, stored

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as running:
        yield running


@pytest.mark.parametrize("kind", ["parquet", "zarr"])
def test_the_workers_of_a_cluster_read_the_rows(fitted, kind, cluster):
    fore, back = stored(fitted, kind)
    there = ("--scheduler", cluster.scheduler_address)
    result = run("fit", fore, "--background", back, "--out", fitted / "far", *FIT, *there)
    assert result.exit_code == 0, result.output
    for table in ("patterns.csv", "scores.csv"):
        one, other = same_tables(fitted / "far" / table, fitted / "out" / table, atol=1e-9)
        assert (list(one.rows) == list(other.rows)) == (kind == "parquet")
    call = ("transform", fitted / "far" / "model.npz", back, "--out", fitted / "new.csv", *there)
    assert run(*call).exit_code == 0
    run("transform", fitted / "out" / "model.npz", fitted / "back.csv", "--out", fitted / "b.csv")
    same_tables(fitted / "new.csv", fitted / "b.csv", atol=1e-9)
    assert run("ranks", fore, "--background", back, *there).exit_code == 0
    answer = run("ranks", fitted / "fore.csv", "--background", back, *there)
    assert "parquet or zarr" in str(cause(answer))


@pytest.mark.parametrize("kind", ["parquet", "zarr"])
def test_a_row_that_workers_cannot_score_is_counted_from_the_first_of_all(fitted, kind, cluster):
    frame = pd.read_csv(fitted / "fore.csv", index_col=0)
    frame.iloc[271, 1] = np.nan
    path = STORES[kind](frame, fitted)
    there = ("--scheduler", cluster.scheduler_address)
    call = ("transform", fitted / "out" / "model.npz", path, "--out", fitted / "o.csv", *there)
    assert "row 272 has no scores" in refused(run(*call), DataError, "not-finite")
    assert not (fitted / "o.csv").exists()


def test_a_scheduler_that_does_not_answer_is_one_sentence(files, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("contrica.cli.cluster.PATIENCE", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere"):
        result = fit(files, *FIT, "--scheduler", address)
        said = refused(result, ParameterError, "no-scheduler", "scheduler")
        assert f"error: no dask scheduler answered at {address} within 1 s" in said
        assert "'dask scheduler'" in said
        assert not (files / "out").exists()


def test_a_cluster_lost_on_the_way_is_one_sentence(files, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("contrica.cli.cluster.PATIENCE", 3)
    fore, back = stored(files, "zarr")
    running = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    whole = ContrastiveICA.fit

    def lost(self, *args, **kwargs):
        running.close()
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(ContrastiveICA, "fit", lost)
    there = ("--scheduler", running.scheduler_address)
    result = run("fit", fore, "--background", back, "--out", files / "out", *FIT, *there)
    said = refused(result, ClusterLostError, "cluster-lost", "scheduler")
    assert "was lost on the way" in said
    assert not (files / "out").exists()


def test_a_cluster_needs_its_packages(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    answer = fit(files, *FIT, "--scheduler", "tcp://127.0.0.1:9")
    said = refused(answer, PackageMissingError, "package-missing", "scheduler")
    assert "pip install 'contrica[cluster]'" in said
