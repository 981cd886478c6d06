"""The experiments on single cells and on primate expression, on small made data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from contrica.datasets import load_human_primate, make_human_primate
from contrica.errors import FileMissingError
from contrica.experiments import Run, human_primate, reproduce, transplant
from contrica.moments.fourth import cumulants
from tests.said import raises
from tests.test_datasets_cells import SAMPLES, write_10x, write_primates

# Foreground patterns as the paper prints them, conserved genes first
PRINTED = np.reshape(
    [
        *(-0.04, -0.041, -0.09, -0.051, -0.12, 0.075, 0.01, -0.004, 0.002, 0.007),
        *(-0.07, -0.061, 0.95, 0.192, -0.009, -0.007, -0.002, -0.001, -0.076, -0.042),
        *(-0.008, -0.04, 0.005, -0.058, 0.012, -0.012, -0.05, -0.006, -0.046, -0.005),
        *(0.615, -0.166, 0.185, 0.119, 0.113, -0.099, -0.118, 0.011, 0.045, -0.025),
        *(0.098, 0.141, -0.482, -0.339, 0.054, 0.028, -0.005, 0.03, 0.247, -0.017),
        *(-0.031, 0.043, 0.012, 0.043, 0.015, 0.04, 0.025, 0.002, 0.236, -0.016),
    ],
    (2, 30),
)


@pytest.fixture
def short_sweeps(monkeypatch):
    """Few parameters and seeds, so that a run takes seconds."""
    for module in (human_primate, transplant):
        monkeypatch.setattr(module, "N_SEEDS_QUICK", 1)
        monkeypatch.setattr(module, "ALPHAS", np.array([0.0, 1.0, 3.0]))
        monkeypatch.setattr(module, "SCALES_4", np.linspace(0.0, 1.0, 10))
        monkeypatch.setattr(module, "gammas", lambda largest: np.linspace(0, largest, 3))
    with threadpool_limits(1):  # on a busy machine threads wait for each other
        yield


def test_the_printed_patterns_give_the_papers_numbers_of_genes():
    genes = human_primate.judge("cICA", PRINTED.T)
    assert (genes.first, genes.second, genes.misclassified) == (10, 13, 5)


def test_misclassified_genes_are_counted_once():
    vectors = np.zeros((30, 2))
    vectors[:13, :] = 1.0
    vectors[[20, 21], 0] = 1.0
    vectors[[21, 22], 1] = -1.0
    genes = human_primate.judge("", vectors)
    assert (genes.first, genes.second, genes.misclassified) == (13, 13, 3)


def found_genes(folder):
    data = load_human_primate(folder, n_cells=4000)
    pair = (cumulants(data.foreground), cumulants(data.background))
    ((genes, _),) = Run(folder).map(human_primate.separate, [(*pair, "cICA", 0)])
    return genes


@pytest.mark.slow
def test_planted_genes_are_found_and_a_wrong_list_is_not(tmp_path):
    data = make_human_primate(4000, random_state=1)
    shuffled = np.random.default_rng(0).permutation(data.gene_names)[: len(data.conserved)]
    for name, conserved in (("right", None), ("wrong", shuffled)):
        (tmp_path / name).mkdir()
        write_primates(tmp_path / name, data, conserved=conserved)
    right, wrong = found_genes(tmp_path / "right"), found_genes(tmp_path / "wrong")
    assert min(right.first, right.second) >= 14
    assert right.misclassified <= 2
    # a random list of half of the genes: 7.5 of 15 are expected
    assert max(wrong.first, wrong.second) <= 11
    assert wrong.misclassified >= 6


@pytest.mark.slow
@pytest.mark.usefixtures("short_sweeps")
def test_the_made_experiment_recovers_the_planted_genes_and_writes_its_files(tmp_path):
    steps = []
    (result,) = reproduce(
        ["human-primate-made"],
        tmp_path,
        quick=True,
        n_jobs=1,
        progress=lambda name, label, done, total: steps.append((done, total)),
    )
    rows = {row.quantity: row for row in result.rows}
    assert len(rows) == 7 * 3
    for method in human_primate.WAYS:
        assert rows[f"{method}, conserved genes in b₁"].verdict == "truth found"
        assert rows[f"{method}, misclassified genes"].quartiles[1] == 0
    assert rows["PCA, misclassified genes"].quartiles[1] > 3
    assert all(row.paper is None for row in result.rows)
    assert "chose the parameter" in rows["cPCA, misclassified genes"].note
    written = {path.name for path in (tmp_path / "human-primate-made").iterdir()}
    assert written == {
        *("genes.csv", "sweeps.csv", "patterns.csv"),
        *("patterns.png", "scree.png", "result.json"),
    }
    assert steps[-1][0] == steps[-1][1] == 2 + 1


@pytest.mark.slow
@pytest.mark.usefixtures("short_sweeps")
def test_the_human_primate_experiment_sets_the_papers_values_beside_ours(tmp_path):
    write_primates(tmp_path, make_human_primate(400, random_state=0))
    run = Run(tmp_path, quick=True, data=tmp_path)
    rows = {row.quantity: row for row in human_primate.run(run, n_cells=400)}
    assert rows["cICA, misclassified genes"].paper == 5
    assert rows["cPCA, conserved genes in b₂"].paper == 10
    assert len(rows["cICA, misclassified genes"].values) == 1
    assert rows["genes in the list of divergent ones"].verdict == "lower"
    assert rows["chosen genes that the paper chose"].values == [0.0]
    assert run.source.startswith("400 cells")


def test_a_missing_table_stops_the_experiment_with_its_name(tmp_path):
    with raises(FileMissingError, "data-missing") as said:
        human_primate.run(Run(tmp_path, data=tmp_path))
    assert "human_primate/human.csv" in str(said.value)
    with raises(FileMissingError, "data-missing") as said:
        transplant.run(Run(tmp_path, data=tmp_path))
    assert "transplant/aml027_pre" in str(said.value)


def test_the_background_direction_is_made_orthogonal(rng):
    b, a = rng.standard_normal((2, 30))
    b /= np.linalg.norm(b)
    axes = transplant.beside(b, a)
    assert_allclose(axes.T @ axes, np.eye(2), atol=1e-12)
    assert_allclose(axes[:, 0], b)
    # a lies in their plane
    assert_allclose(axes @ (axes.T @ a), a, atol=1e-12)


def test_pairs_of_components_are_paired_as_named(rng, tmp_path):
    fore, back = rng.standard_normal((50, 35)), rng.standard_normal((25, 35))
    fore, back = fore - fore.mean(axis=0), back - back.mean(axis=0)
    sweeps = transplant._covariance_sweeps(
        Run(tmp_path), [fore, back], [fore[:, :30], back[:, :30]]
    )
    scaled, plain = sweeps["PCPCA, normalised"], sweeps["PCPCA"]
    assert plain.pairs[:6] == ["1 and 2", "1 and 3", "1 and 4", "2 and 3", "2 and 4", "3 and 4"]
    assert plain.vectors.shape == (600, 35, 2)
    # γ′ runs up to 0.9 n/m, each value for six pairs
    assert_allclose(plain.parameters[[0, 5, 6, -1]], [0, 0, 0.9 * 2 / 99, 1.8], atol=1e-12)
    # γ′ = 0: components of the foreground's covariance
    axes = np.linalg.eigh(fore.T @ fore)[1][:, [-2, -4]]
    cosines = np.abs(np.sum(axes * plain.vectors[4], axis=0))
    assert_allclose(cosines, np.linalg.norm(plain.vectors[4], axis=0), rtol=1e-8)
    assert_allclose((fore @ scaled.vectors[4]).std(axis=0), 1.0, rtol=1e-8)


@pytest.fixture
def made_transplant(rng, tmp_path):
    """Counts of six samples: cells of three types, and a programme that the transplant changes."""
    n_genes = 520
    ids = [f"ENSG{i}" for i in range(n_genes)]
    types = rng.gamma(1.0, 1.0, size=(3, n_genes)) + 0.2
    programme = np.where(np.arange(n_genes) % 10 == 0, 4.0, 1.0)
    for name in SAMPLES:
        means = types[rng.integers(3, size=80)] * rng.gamma(4.0, 0.25, size=(80, 1))
        if name.endswith("post"):
            means = means * programme
        write_10x(tmp_path / "transplant" / name, rng.poisson(means), ids, gzipped=True)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("short_sweeps")
def test_the_transplant_experiment_runs_on_a_tree_of_10x_folders(
    made_transplant, tmp_path, monkeypatch
):
    # so few cells have no 116 patterns to find
    monkeypatch.setattr(transplant, "R", 4)
    monkeypatch.setattr(transplant, "TERMS", 10)
    steps = []
    (result,) = reproduce(
        ["transplant"],
        tmp_path / "out",
        quick=True,
        data=made_transplant,
        progress=lambda name, label, done, total: steps.append((done, total)),
    )
    rows = {row.quantity: row for row in result.rows}
    assert_array_equal(
        [rows[f"cells, {kind}"].values[0] for kind in transplant.CELLS], [160, 160, 160]
    )
    assert rows["silhouette, cPCA"].paper == 0.451
    # the planted programme separates the labels
    assert rows["silhouette, cPCA"].values[0] > 0.3
    assert len(rows["silhouette, cICA"].values) == 1
    assert "labels chose" in rows["silhouette, proportional cICA"].note
    assert "labels chose" not in rows["silhouette, cICA"].note
    assert isinstance(rows["smallest gap in the order of methods"].holds, bool)
    written = {path.name for path in (tmp_path / "out" / "transplant").iterdir()}
    assert written == {
        *("silhouettes.csv", "sweeps.csv", "scree.png"),
        *("projections.png", "comparison.png", "result.json"),
    }
    assert steps[-1] == (30, 30)
    assert result.data.startswith("bone marrow cells")


@pytest.mark.slow
@pytest.mark.usefixtures("short_sweeps")
@pytest.mark.parametrize("function", ["run_part", "run_kang"])
def test_stand_ins_separate_their_labels_and_compare_nothing(function, real_data, tmp_path):
    rows = getattr(transplant, function)(Run(tmp_path, quick=True, data=real_data))
    values = {row.quantity: row.quartiles[1] for row in rows}
    assert values["silhouette, cPCA"] > 0.2
    assert values["silhouette, cICA"] > 0.1
    assert all(row.paper is None and row.holds is None and row.note for row in rows)
