"""Loaders of single-cell counts and of primate expression, on small made files."""

import gzip
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.io import mmwrite

from contrica.datasets import (
    kang_anndata,
    load_human_primate,
    load_kang,
    load_transplant,
    load_transplant_part,
    make_human_primate,
    read_10x,
)
from contrica.errors import FileError, FileMissingError, ParameterError
from tests.said import raises

SAMPLES = ("aml027_pre", "aml035_pre", "aml027_post", "aml035_post", "healthy1", "healthy2")


def pack(path):
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def write_10x(folder, counts, ids, *, inside="", features=False, gzipped=False):
    """One sample, cells by genes, as 10x stores it: genes by cells."""
    place = folder / inside
    place.mkdir(parents=True)
    mmwrite(place / "matrix.mtx", sparse.coo_array(counts.T.astype(int)))
    more = "\tGene Expression" if features else ""
    lines = [f"{gene}\tname of {gene}{more}\n" for gene in ids]
    genes = place / ("features.tsv" if features else "genes.tsv")
    genes.write_text("".join(lines))
    barcodes = place / "barcodes.tsv"
    barcodes.write_text("".join(f"CELL{i}-1\n" for i in range(len(counts))))
    if gzipped:
        for path in (place / "matrix.mtx", genes, barcodes):
            pack(path)


@pytest.fixture
def ids():
    return np.array([f"ENSG{i:03d}" for i in range(40)])


@pytest.fixture
def six_samples(rng, ids, tmp_path):
    """Six samples under tmp_path/transplant, and their counts."""
    means = 0.7 + rng.gamma(1.0, 2.0, size=len(ids))
    counts = {name: rng.poisson(means, size=(8 + i, len(ids))) for i, name in enumerate(SAMPLES)}
    for name in SAMPLES:
        write_10x(tmp_path / "transplant" / name, counts[name], ids)
    return counts


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"gzipped": True, "features": True},
        {"inside": "filtered_matrices_mex/hg19"},
        {"inside": "filtered_gene_bc_matrices/hg19", "gzipped": True},
    ],
)
def test_10x_folders_of_every_layout_read_the_same(layout, rng, ids, tmp_path):
    counts = rng.poisson(1.0, size=(7, len(ids)))
    write_10x(tmp_path / "s", counts, ids, **layout)
    sample = read_10x(tmp_path / "s")
    assert_array_equal(sample.counts.toarray(), counts)
    assert_array_equal(sample.gene_ids, ids)
    assert sample.gene_names[3] == "name of ENSG003"
    assert sample.barcodes[6] == "CELL6-1"


def test_raw_counts_beside_the_filtered_ones_are_passed_over(rng, ids, tmp_path):
    few, many = (rng.poisson(1.0, size=(n, len(ids))) for n in (5, 9))
    write_10x(tmp_path, few, ids, inside="filtered_matrices_mex/hg19")
    write_10x(tmp_path, many, ids, inside="raw_matrices_mex/hg19")
    assert read_10x(tmp_path).counts.shape == (5, len(ids))


def test_two_matrices_in_one_sample_are_refused(rng, ids, tmp_path):
    for genome in ("hg19", "mm10"):
        write_10x(tmp_path, rng.poisson(1.0, size=(5, len(ids))), ids, inside=genome)
    with raises(FileError, "several-matrices") as said:
        read_10x(tmp_path)
    assert "(hg19, mm10)" in str(said.value)


def test_files_of_different_samples_are_refused(rng, ids, tmp_path):
    write_10x(tmp_path / "s", rng.poisson(1.0, size=(5, len(ids))), ids)
    (tmp_path / "s" / "barcodes.tsv").write_text("A\nB\n")
    with raises(FileError, "shape") as said:
        read_10x(tmp_path / "s")
    assert "40 genes and 5 cells" in said.value.got
    assert said.value.needed == "genes.tsv names 40 genes and barcodes.tsv 2 cells"


@pytest.mark.parametrize("count", [-1, np.nan])
def test_what_are_no_counts_are_refused(count, rng, ids, tmp_path):
    counts = rng.poisson(1.0, size=(5, len(ids)))
    write_10x(tmp_path / "s", counts, ids)
    changed = counts.T.astype(float)
    changed[3, 2] = count
    mmwrite(tmp_path / "s" / "matrix.mtx", sparse.coo_array(changed))
    with raises(FileError, "not-counts"):
        read_10x(tmp_path / "s")


def test_a_damaged_list_of_genes_is_named(rng, ids, tmp_path):
    write_10x(tmp_path / "s", rng.poisson(1.0, size=(5, len(ids))), ids)
    (tmp_path / "s" / "genes.tsv").write_bytes(b"\xff\xfe\n")
    with raises(FileError, "unreadable") as said:
        read_10x(tmp_path / "s")
    assert "genes.tsv could not be read" in str(said.value)


def test_a_sample_without_one_of_its_files_says_which(rng, ids, tmp_path):
    write_10x(tmp_path / "s", rng.poisson(1.0, size=(5, len(ids))), ids)
    (tmp_path / "s" / "genes.tsv").unlink()
    with raises(FileMissingError, "data-missing") as said:
        read_10x(tmp_path / "s")
    assert str(said.value).startswith("genes.tsv or features.tsv")


def test_a_matrix_in_another_format_is_refused(rng, ids, tmp_path):
    write_10x(tmp_path / "s", rng.poisson(1.0, size=(5, len(ids))), ids)
    (tmp_path / "s" / "matrix.mtx").write_text("1,2,3\n")
    with raises(FileError, "unreadable") as said:
        read_10x(tmp_path / "s")
    assert "not a matrix in Matrix Market format" in str(said.value)


@pytest.mark.parametrize("dispersion", ["counts", "log"])
def test_the_transplant_recipe_equals_its_slow_twin(dispersion, six_samples, ids, tmp_path):
    data = load_transplant(tmp_path, n_genes=12, dispersion=dispersion)
    logs = {name: np.log(1.0 + counts) for name, counts in six_samples.items()}
    every = np.vstack(list((logs if dispersion == "log" else six_samples).values()))
    kept = np.argsort(-every.var(axis=0) / every.mean(axis=0))[:12]
    for found, names in ((data.foreground, SAMPLES[:4]), (data.background, SAMPLES[4:])):
        rows = np.vstack([logs[name][:, kept] for name in names])
        assert_allclose(found, (rows - rows.mean(axis=0)) / rows.std(axis=0), atol=1e-12)
    assert_array_equal(data.feature_names, [f"name of {gene}" for gene in ids[kept]])
    assert_array_equal(data.labels, [0] * (8 + 9) + [1] * (10 + 11))
    assert_array_equal(np.unique(data.samples), sorted(SAMPLES[:4]))


def test_samples_with_genes_in_another_order_are_aligned(six_samples, rng, ids, tmp_path):
    before = load_transplant(tmp_path, n_genes=12)
    order = rng.permutation(len(ids))
    write_10x(
        tmp_path / "other" / "transplant" / "healthy2",
        six_samples["healthy2"][:, order],
        ids[order],
    )
    for name in SAMPLES[:5]:
        write_10x(tmp_path / "other" / "transplant" / name, six_samples[name], ids)
    after = load_transplant(tmp_path / "other", n_genes=12)
    assert_allclose(after.background, before.background, atol=1e-12)


def test_missing_samples_are_named_with_their_place_and_source(six_samples, tmp_path):
    for name in ("aml035_post", "healthy1"):
        (tmp_path / "transplant" / name).rename(tmp_path / name)
    with raises(FileMissingError, "data-missing") as said:
        load_transplant(tmp_path)
    for words in ("2 are missing", "aml035_post, healthy1", "10x Genomics"):
        assert words in str(said.value)
    with raises(FileMissingError, "data-missing") as said:
        load_transplant(tmp_path / "transplant")
    for words in ("aml027_pre", "Zheng et al. 2017"):
        assert words in str(said.value)


def test_samples_of_different_genomes_are_refused(six_samples, ids, tmp_path):
    (tmp_path / "transplant" / "healthy2" / "genes.tsv").write_text(
        "".join(f"MOUSE{i}\n" for i in range(len(ids)))
    )
    with raises(FileError, "no-shared-genes"):
        load_transplant(tmp_path)
    (tmp_path / "transplant" / "healthy2" / "genes.tsv").write_text("same\n" * len(ids))
    with raises(FileError, "duplicate-genes"):
        load_transplant(tmp_path)


@pytest.mark.usefixtures("six_samples")
def test_more_genes_than_are_expressed_cannot_be_kept(tmp_path):
    with raises(ParameterError, "too-large", "n_genes"):
        load_transplant(tmp_path)


def write_part(folder, **changes):
    rng = np.random.default_rng(0)
    sample = np.repeat(["aml027_pre", "healthy1", "healthy2"], [6, 5, 7])
    arrays = {"X": rng.gamma(1.0, size=(18, 4)), "sample": sample, "gene_symbol": list("abcd")}
    (folder / "scrna_aml_bmmc").mkdir()
    arrays = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
    np.savez(folder / "scrna_aml_bmmc" / "aml027pre_healthy_log_top500.npz", **arrays)
    return arrays


def test_the_part_of_the_transplant_data_splits_by_sample(tmp_path):
    X = write_part(tmp_path)["X"]
    data = load_transplant_part(tmp_path)
    assert_array_equal(data.labels, [1] * 6 + [0] * 5)
    rows = X[11:]
    assert_allclose(data.background, (rows - rows.mean(axis=0)) / rows.std(axis=0), atol=1e-12)
    assert_allclose(data.foreground.std(axis=0), 1.0)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"sample": None}, "content"),
        ({"sample": np.repeat("healthy2", 18)}, "too-few-rows"),
        ({"sample": ["x"] * 3}, "content"),
    ],
)
def test_a_wrong_file_is_not_taken_for_the_part(changes, code, tmp_path):
    write_part(tmp_path, **changes)
    with raises(FileError, code) as said:
        load_transplant_part(tmp_path)
    assert "aml027pre_healthy_log_top500.npz" in str(said.value)
    assert "It needs arrays X, sample" in str(said.value)


def write_kang(folder, **changes):
    rng = np.random.default_rng(0)
    donor = np.repeat(["101", "1039", "DBL", "107", "1256"], 12)
    condition = np.tile(["ctrl", "stim"], 30)
    counts = sparse.csr_array(rng.poisson(2.0, size=(60, 6)))
    parts = {name: getattr(counts, name) for name in ("data", "indices", "indptr", "shape")}
    arrays = {**parts, "gene": list("abcdef"), "condition": condition, "donor": donor, **changes}
    (folder / "scrna_kang_ifnb").mkdir()
    np.savez(folder / "scrna_kang_ifnb" / "kang_hvg3000_counts.npz", **arrays)
    return counts.toarray()


def test_stimulated_cells_split_by_donor_and_condition(tmp_path):
    counts = write_kang(tmp_path)
    data = load_kang(tmp_path, n_genes=6)
    assert_array_equal(data.labels, np.tile([0, 1], 12))
    assert set(data.samples) == {"101", "107"}
    # control cells of 1039 and 1256, no doublets
    rows = np.log(1.0 + counts)[np.r_[12:24:2, 48:60:2]]
    columns = ["abcdef".index(gene) for gene in data.feature_names]
    expected = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    assert_allclose(data.background, expected[:, columns], atol=1e-12)


def test_stimulated_cells_as_anndata_are_normalised_by_all_counts(tmp_path):
    totals = np.arange(100, 160)
    counts = write_kang(tmp_path, total_umi=totals, cell_type_published=["B", ""] * 30)
    adata = kang_anndata(tmp_path)
    single = np.repeat([True, True, False, True, True], 12)
    assert_allclose(adata.X.toarray(), np.log1p(1e4 * counts / totals[:, None])[single], rtol=1e-6)
    assert_array_equal(adata.layers["counts"].toarray(), counts[single])
    assert list(adata.var_names) == list("abcdef")
    assert set(adata.obs["donor"]) == {"101", "1039", "107", "1256"}
    assert adata.obs["cell_type"].isna().sum() == 24


def test_stimulated_cells_as_anndata_need_all_counts(tmp_path):
    write_kang(tmp_path)
    with raises(FileError, "content") as said:
        kang_anndata(tmp_path)
    assert "total_umi" in str(said.value)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"condition": ["ctrl"] * 60}, "too-few-rows"), ({"shape": [3, 3]}, "content")],
)
def test_a_wrong_file_is_not_taken_for_stimulated_cells(changes, code, tmp_path):
    write_kang(tmp_path, **changes)
    with raises(FileError, code) as said:
        load_kang(tmp_path)
    assert "kang_hvg3000_counts.npz" in str(said.value)
    assert "It needs arrays data, indices" in str(said.value)


@pytest.mark.parametrize("load", [load_transplant, load_transplant_part, load_kang])
def test_a_missing_dataset_says_what_to_put_where(load, tmp_path):
    with raises(FileMissingError, "data-missing") as said:
        load(tmp_path)
    assert re.search(r"missing: .*Put (transplant|scrna_).*available from", str(said.value))


# --- primate expression ---


def write_primates(folder, data, *, layout="plain", conserved=None):
    """The three tables and two lists of `load_human_primate` from made data."""
    place = folder / "human_primate"
    place.mkdir()
    for species in ("human", "chimp", "gorilla"):
        heading = {"plain": [], "named": ["cell"], "R": []}[layout]
        lines = [",".join([*heading, *data.gene_names])]
        for i, row in enumerate(data[species]):
            name = [] if layout == "plain" else [f'"{species}, cell {i}"']
            lines.append(",".join([*name, *(repr(float(value)) for value in row)]))
        (place / f"{species}.csv").write_text("\n".join(lines) + "\n")
        if layout == "R":
            pack(place / f"{species}.csv")
    (place / "divergent_genes.txt").write_text("\n".join(data.gene_names) + "\n")
    listed = data.conserved if conserved is None else conserved
    (place / "conserved_genes.txt").write_text("\n".join(listed) + "\n")
    return place


@pytest.fixture
def primates():
    return make_human_primate(30, random_state=0)


@pytest.mark.parametrize("layout", ["plain", "named", "R"])
def test_tables_of_every_layout_give_the_chosen_genes(layout, primates, tmp_path):
    write_primates(tmp_path, primates, layout=layout)
    data = load_human_primate(tmp_path, n_cells=30)
    assert_array_equal(data.feature_names, primates.feature_names)
    # all cells are drawn, in the order of the files; stored in single precision
    assert_allclose(data.foreground, primates.foreground, rtol=1e-6)
    assert_allclose(data.background, primates.background, rtol=1e-6)
    assert_array_equal(data.conserved, np.arange(30) < 15)
    assert (data.n_divergent, data.n_conserved) == (40, 20)


def test_cells_are_drawn_by_the_seed_without_repeats(primates, tmp_path):
    write_primates(tmp_path, primates)
    first, again, other = (
        load_human_primate(tmp_path, n_cells=20, random_state=seed).foreground for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert len(np.unique(first, axis=0)) == 20
    assert not np.array_equal(np.sort(first[:, 0]), np.sort(other[:, 0]))


def test_quiet_genes_are_not_chosen(primates):
    quiet = {f"{kind}{i}" for kind in ("conserved", "other") for i in range(16, 21)}
    assert not quiet & set(primates.feature_names)


def test_human_patterns_of_made_data_lie_on_conserved_genes(primates):
    conserved = np.isin(primates.gene_names, primates.conserved)
    assert_allclose(primates.B[~conserved], 0.0, atol=0)
    assert_allclose(np.linalg.norm(primates.B, axis=0), 1.0)
    assert_allclose(primates.B[:, 0] @ primates.B[:, 1], 0.0, atol=1e-12)


def test_too_few_cells_say_how_many_are_needed(primates, tmp_path):
    write_primates(tmp_path, primates)
    with raises(FileError, "too-few-rows", "n_cells") as said:
        load_human_primate(tmp_path)
    assert "has 30 cells, but 10000 are needed" in str(said.value)


def test_too_few_listed_genes_are_refused(primates, tmp_path):
    place = write_primates(tmp_path, primates)
    (place / "conserved_genes.txt").write_text("conserved1\nconserved2\n")
    with raises(FileError, "too-few-genes") as said:
        load_human_primate(tmp_path, n_cells=30)
    assert "2 conserved and 38 other ones" in str(said.value)


def test_conserved_genes_must_be_divergent_ones(primates, tmp_path):
    write_primates(tmp_path, primates, conserved=["stranger", *primates.conserved])
    with raises(FileError, "not-a-subset") as said:
        load_human_primate(tmp_path, n_cells=30)
    assert "names 1 genes that divergent_genes.txt does not, 'stranger'" in str(said.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "too-short"),
        ("a,b\n1,2,3,4\n", "headings"),
        ("a,b\n\xff", "unreadable"),
    ],
)
def test_a_table_without_a_fitting_header_is_refused(text, code, primates, tmp_path):
    place = write_primates(tmp_path, primates)
    (place / "chimp.csv").write_bytes(text.encode("latin-1"))
    with raises(FileError, code) as said:
        load_human_primate(tmp_path, n_cells=30)
    assert "chimp.csv" in str(said.value)


@pytest.mark.parametrize(
    ("cell", "code"), [("n/a", "not-numbers"), ("nan", "not-finite"), ("", "not-numbers")]
)
def test_a_cell_that_is_no_number_is_refused(cell, code, primates, tmp_path):
    place = write_primates(tmp_path, primates)
    lines = (place / "gorilla.csv").read_text().splitlines()
    lines[4] = ",".join([cell, *lines[4].split(",")[1:]])
    (place / "gorilla.csv").write_text("\n".join(lines))
    with raises(FileError, code) as said:
        load_human_primate(tmp_path, n_cells=30)
    assert "gorilla.csv" in str(said.value)


@pytest.mark.parametrize("name", ["gorilla.csv", "divergent_genes.txt", "conserved_genes.txt"])
def test_a_missing_file_is_named(name, primates, tmp_path):
    (write_primates(tmp_path, primates) / name).unlink()
    with raises(FileMissingError, "data-missing") as said:
        load_human_primate(tmp_path, n_cells=30)
    assert f"human_primate/{name}" in str(said.value)
    assert "Suresh et al. 2023" in str(said.value)


# --- real data ---


def test_real_parts_have_the_cells_they_should(real_data):
    part, kang = load_transplant_part(real_data), load_kang(real_data)
    assert part.foreground.shape == (5918, 500)
    assert part.background.shape == (2472, 500)
    assert_array_equal(np.bincount(part.labels), [1985, 3933])
    assert kang.foreground.shape[1] == 500
    assert "CXCL10" in kang.feature_names
    assert_allclose(kang.foreground.std(axis=0), 1.0)
