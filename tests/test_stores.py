"""Rows on disk give what the array gives, whatever the file, and bad files say what is wrong."""

import sys
import warnings
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica import ContrastiveICA
from contrica.errors import (
    DataError,
    FeaturesError,
    FileError,
    FileMissingError,
    PackageMissingError,
    ParameterError,
)
from contrica.rows.containers import as_rows
from contrica.rows.files.dask_store import open_dask
from contrica.rows.files.opening import open_rows
from contrica.rows.files.parquet import ADDED
from contrica.rows.files.shared import Names
from contrica.rows.files.stores import _step
from contrica.rows.products import gram_times, in_memory, rows_times
from contrica.rows.protocol import Rows
from contrica.rows.summary import column_summary
from tests.said import raises

GENES = np.array([f"g{j}" for j in range(40)])


def cells(X):
    return [f"c{i}" for i in range(len(X))]


def frame_of(X):
    return pd.DataFrame(X, columns=GENES[: X.shape[1]], index=cells(X))


def anndata(X, path, **layers):
    ad = pytest.importorskip("anndata")
    held = ad.AnnData(X, obs=frame_of(X.toarray() if sp.issparse(X) else X).iloc[:, :0])
    held.var_names = GENES[: X.shape[1]]
    for name, layer in layers.items():
        held.layers[name] = layer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats to come
        (held.write_zarr if path.suffix == ".zarr" else held.write_h5ad)(path)
    return path


def npy(X, path):
    np.save(path / "rows.npy", X)
    return path / "rows.npy"


def npz(X, path):
    np.savez(path / "rows.npz", X=X)
    return path / "rows.npz"


def sparse_npz(X, path):
    sp.save_npz(path / "rows.npz", sp.csc_matrix(X))
    return path / "rows.npz"


def hdf5(X, path):
    with h5py.File(path / "rows.h5", "w") as file:
        file.create_dataset("deep/rows", data=X, chunks=(70, 3), compression="gzip")
        file["deep/note"] = np.arange(3)
    return path / "rows.h5"


def zarr_array(X, path):
    array = zarr.create_array(path / "rows.zarr", shape=X.shape, chunks=(97, 11), dtype="f8")
    array[:] = X
    return path / "rows.zarr"


def zarr_group(X, path):
    group = zarr.open_group(path / "folder", mode="w")  # known by what is in it
    array = group.create_array("rows", shape=X.shape, chunks=(2000, 40), dtype="f8")
    array[:] = X
    return path / "folder"


def parquet(X, path):
    frame_of(X).to_parquet(path / "rows.parquet", row_group_size=83)
    return path / "rows.parquet"


def parquet_folder(X, path):
    (path / "many").mkdir()
    for i in range(12):  # part 10 after part 9
        part = frame_of(X).iloc[i * 80 : (i + 1) * 80 if i < 11 else None]
        part = part[part.columns[:: -1 if i == 3 else 1]]
        part.to_parquet(path / "many" / f"part.{i}.parquet", row_group_size=31)
    (path / "many" / "_metadata").write_text("a summary")
    return path / "many"


def csv(X, path):
    frame_of(X).to_csv(path / "rows.csv")
    return path / "rows.csv"


KINDS = {
    "npy": npy,
    "npz": npz,
    "sparse npz": sparse_npz,
    "hdf5": hdf5,
    "h5ad, dense": lambda X, path: anndata(X, path / "rows.h5ad"),
    "h5ad, sparse": lambda X, path: anndata(sp.csr_matrix(X), path / "rows.h5ad"),
    "zarr array": zarr_array,
    "zarr group": zarr_group,
    "zarr, AnnData": lambda X, path: anndata(X, path / "rows.zarr"),
    "zarr, AnnData, sparse": lambda X, path: anndata(sp.csr_matrix(X), path / "rows.zarr"),
    "parquet": parquet,
    "parquet folder": parquet_folder,
    "parquet pattern": lambda X, path: f"{parquet_folder(X, path)}/*.parquet",
    "csv": csv,
}
NAMED = [kind for kind in KINDS if kind.startswith(("h5ad", "zarr, ", "parquet", "csv"))]
SHARED = [kind for kind in KINDS if kind.startswith(("zarr", "parquet"))]


@pytest.fixture(scope="module")
def counts():
    """Counts of 40 things in two samples; two groups of them go together in the first."""
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(0.4, (n, 40)).astype(float) for n in (900, 700))
    X[:, :8] += rng.choice([0, 2], (900, 1))
    X[:, 8:14] += rng.exponential(1, (900, 1)).round()
    return X, Y


def fresh():
    return ContrastiveICA(2, solver="subspace", random_state=0)


@pytest.fixture(scope="module")
def expected(counts):
    X, Y = counts
    return fresh().fit(X, background=Y)


def both(counts, tmp_path, make):
    paths = []
    for name, rows in zip(("fore", "back"), counts, strict=True):
        (tmp_path / name).mkdir()
        paths.append(make(rows, tmp_path / name))
    return paths


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_rows_the_names_and_the_fit_of_the_array(
    kind, counts, expected, tmp_path
):
    X, Y = (open_rows(path) for path in both(counts, tmp_path, KINDS[kind]))
    rows = as_rows(X.rows)
    assert rows.shape == counts[0].shape
    for _ in range(2):
        assert_allclose(in_memory(rows), counts[0], rtol=0, atol=0)
    assert (X.columns is None, X.row_names is None) == ((kind not in NAMED,) * 2)
    if kind in NAMED:
        assert list(X.columns) == list(GENES)
        assert list(X.row_names) == list(np.asarray(X.row_names)) == cells(counts[0])
    model = fresh().fit(X.rows, background=Y.rows)
    for name in ("components_", "filters_", "contrast_ratio_", "mean_"):
        # rotations end at a slope of 1e-7, which rows added in another order reach elsewhere
        assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-6, atol=1e-7)
    assert_allclose(model.transform(X.rows), expected.transform(counts[0]), atol=1e-5)
    if kind in NAMED and kind != "csv":
        assert list(model.feature_names_in_) == list(GENES)


@pytest.mark.parametrize("kind", SHARED)
def test_what_a_cluster_opens_is_the_same(kind, counts, expected, tmp_path):
    X, Y = (open_dask(path) for path in both(counts, tmp_path, KINDS[kind]))
    if kind in NAMED:
        assert list(X.columns) == list(GENES)
        assert list(X.row_names) == cells(counts[0])
    assert_allclose(np.asarray(X.rows), counts[0], rtol=0, atol=0)
    model = fresh().fit(X.rows, background=Y.rows)
    assert_allclose(model.components_, expected.components_, atol=1e-6)


@pytest.mark.parametrize("kind", ["npy", "hdf5", "h5ad, sparse", "csv"])
def test_what_workers_cannot_share_is_refused(kind, counts, tmp_path):
    with raises(FileError, "not-shared"):
        open_dask(KINDS[kind](counts[0], tmp_path))


@given(
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(0, 99),
)
@settings(max_examples=25)
def test_blocks_are_the_rows_whatever_their_sizes(tmp_path_factory, n, p, group, size, seed):
    """Row groups, chunks and pieces of any size, and blocks of another."""
    path = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, (n, p)).astype(float)
    pd.DataFrame(X, columns=GENES[:p]).to_parquet(path / "a.parquet", row_group_size=group)
    with h5py.File(path / "a.h5", "w") as file:
        file.create_dataset("rows", data=X, chunks=(min(group, n), 1))
        held = file.create_group("sparse")
        held.attrs["encoding-type"], held.attrs["shape"] = "csr_matrix", X.shape
        for part in ("data", "indices", "indptr"):
            held[part] = getattr(sp.csr_matrix(X), part)
    for opened in (
        open_rows(path / "a.parquet"),
        open_rows(path / "a.h5", "rows"),
        open_rows(path / "a.h5", "sparse"),
    ):
        rows = opened.rows
        rows._per_piece = group  # of sparse rows
        assert opened.row_names is None
        parts = list(rows.blocks(size))
        assert all(0 < len(part) <= size and part.dtype == np.float64 for part in parts)
        assert_allclose(np.vstack(parts), X, rtol=0)
        M = rng.standard_normal((p, 2))
        assert_allclose(rows_times(rows, M), X @ M, atol=1e-12)
        assert_allclose(gram_times(rows, M), X.T @ X @ M, atol=1e-9)
        for one, two in zip(column_summary(rows), column_summary(X), strict=True):
            assert_allclose(one, two, atol=1e-9)


def test_small_row_groups_are_put_together_and_large_ones_cut(tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    pd.DataFrame(X).rename(columns=str).to_parquet(tmp_path / "a.parquet", row_group_size=3)
    rows = open_rows(tmp_path / "a.parquet").rows
    assert [len(block) for block in rows.blocks(8)] == [8, 8, 4]
    assert [len(block) for block in rows.blocks(100)] == [20]


def test_parquet_files_are_not_read_ahead(tmp_path, rng):
    import pyarrow

    frame = pd.DataFrame(rng.standard_normal((100_000, 10)), columns=GENES[:10])
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=2000)
    rows, before = open_rows(tmp_path / "a.parquet").rows, pyarrow.total_allocated_bytes()
    most = max(pyarrow.total_allocated_bytes() - before for _ in rows.blocks(1000))
    assert most < frame.size * 8 / 5


def test_wide_parquet_files_take_a_row_group_of_memory(tmp_path, rng):
    import pyarrow

    frame = pd.DataFrame(rng.standard_normal((2000, 300))).rename(columns=lambda j: f"g.{j}")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=250)
    rows, before = open_rows(tmp_path / "a.parquet").rows, pyarrow.total_allocated_bytes()
    peak = max(pyarrow.total_allocated_bytes() - before for _ in rows.blocks(250))
    assert peak < frame.size * 8 / 2
    assert_allclose(np.vstack(list(rows.blocks(300))), frame, rtol=0)


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_sparse_rows_are_read_in_pieces_that_stay_sparse(suffix, tmp_path, monkeypatch):
    X = sp.random(3000, 40, 0.05, random_state=0, format="csr")
    monkeypatch.setattr("contrica.rows.files.anndata_store.PIECE_BYTES", 16 * 200)
    rows = open_rows(anndata(X, tmp_path / f"rows{suffix}")).rows
    assert rows.sparse
    pieces = list(rows.pieces())
    assert len(pieces) > 20
    assert all(sp.issparse(piece) and piece.nnz < 600 for piece in pieces)
    assert (sp.vstack(pieces) != X).nnz == 0


def test_a_chunk_is_unpacked_once_where_it_fits(tmp_path):
    assert _step(100, 30, 5) == 90
    assert _step(100, 1000, 5) == 1000
    assert _step(100, 10**9, 5) == 100


# --- keys, names, types ---


def test_keys_pick_a_table(counts, tmp_path):
    X = counts[0]
    path = anndata(X, tmp_path / "a.h5ad", twice=sp.csr_matrix(2 * X), columnwise=sp.csc_matrix(X))
    layer = open_rows(path, "layers/twice")
    assert_allclose(in_memory(layer.rows), 2 * X)
    assert list(layer.columns) == list(GENES)
    with raises(FileError, "stored-by-columns", "key") as caught:
        open_rows(path, "layers/columnwise")
    assert "tocsr" in caught.value.remedy
    with raises(FileError, "unknown-key", "key") as caught:
        open_rows(path, "layers/none")
    assert "no 'layers/none'. It holds X, layers/columnwise" in str(caught.value)
    with raises(FileError, "not-a-table", "key"):
        open_rows(path, "obs")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = X, 2 * X
    with raises(FileError, "several-tables", "key") as caught:
        open_rows(tmp_path / "two.h5")
    assert "holds 2 tables (a, b), but one is needed" in str(caught.value)
    assert_allclose(in_memory(open_rows(tmp_path / "two.h5", "b").rows), 2 * X)
    assert in_memory(open_rows(hdf5(X, tmp_path)).rows).shape == X.shape
    with raises(ParameterError, "unused-key", "key"):
        open_rows(zarr_array(X, tmp_path), "a")
    for path in (npy(X, tmp_path), parquet(X, tmp_path), sparse_npz(X, tmp_path)):
        with raises(ParameterError, "unused-key", "key"):
            open_rows(path, "a")


def table(**columns):
    return pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4], **columns})


@pytest.mark.parametrize("opener", [open_rows, open_dask])
@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (table(), None),
        (table(cell=["x", "y"]), ["x", "y"]),
        (table(cell=pd.Categorical(["x", "y"])), ["x", "y"]),
        (table(cell=["x", "y"]).set_index("cell"), ["x", "y"]),
        (table(cell=[7, 9]).set_index("cell"), ["7", "9"]),
        (table(cell=["x", "y"], n=[7, 9]).set_index("n"), ["x", "y"]),
        (table()[["a", "b"]].set_axis([3, 9]), ["3", "9"]),
    ],
)
def test_a_column_of_text_or_the_index_names_the_rows(tmp_path, opener, frame, names):
    frame.to_parquet(tmp_path / "a.parquet")
    opened = opener(tmp_path / "a.parquet")
    assert list(opened.columns) == ["a", "b"]
    assert (None if opened.row_names is None else list(opened.row_names)) == names
    assert_allclose(in_memory(as_rows(opened.rows)), [[1, 3], [2, 4]])


@pytest.mark.parametrize("opener", [open_rows, open_dask])
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (table(c=["x", "y"], d=["x", "y"]), "not numbers: 'c', 'd'. One column of text"),
        (table(when=pd.to_datetime(["2020", "2021"])), "not numbers: 'when'"),
        (table(c=["x", "y"]).set_axis(["p", "q"]), "not numbers: 'c'"),
        (table(c=["x", "y"])[["c"]], "no columns of numbers"),
    ],
)
def test_other_columns_are_refused_by_name(tmp_path, opener, frame, message):
    frame.to_parquet(tmp_path / "a.parquet")
    with raises(FileError, "not-numbers") as caught:
        opener(tmp_path / "a.parquet")
    assert message in str(caught.value)


@pytest.mark.parametrize("opener", [open_rows, open_dask])
def test_files_that_are_read_together_have_the_same_columns(tmp_path, opener):
    table().to_parquet(tmp_path / "1.parquet")
    table().rename(columns={"b": "z"}).to_parquet(tmp_path / "2.parquet")
    with raises(FileError, "different-columns") as caught:
        opener(tmp_path)
    assert "2.parquet: b; only in it: z" in str(caught.value)


def test_integers_booleans_and_gaps_become_floats(tmp_path):
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 2**60], dtype="Int64"),
            "f": np.array([0.5, np.nan, 1], dtype=np.float32),
            "b": [True, False, True],
        }
    )
    frame.to_parquet(tmp_path / "a.parquet")
    wanted = [[1, 0.5, 1], [np.nan, np.nan, 0], [2.0**60, 1, 1]]
    rows = open_rows(tmp_path / "a.parquet").rows
    assert_allclose(in_memory(rows), wanted)
    assert_allclose(np.asarray(open_dask(tmp_path / "a.parquet").rows), wanted)
    with raises(DataError, "not-finite", "X"):
        ContrastiveICA(2).fit(rows)


@pytest.mark.parametrize("opener", [open_rows, open_dask])
@pytest.mark.parametrize("name", sorted(ADDED))
def test_columns_may_have_the_names_that_pyarrow_adds(tmp_path, opener, name):
    X = np.arange(40.0).reshape(20, 2)
    frame = pd.DataFrame(X, columns=[name, "b"], index=[f"c{i}" for i in range(20)])
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=3)
    opened = opener(tmp_path / "a.parquet")
    assert list(opened.columns) == [name, "b"]
    assert list(opened.row_names) == list(frame.index)
    assert_allclose(np.vstack(list(as_rows(opened.rows).blocks(8))), X)


def test_names_are_read_when_asked_for():
    asked = []
    names = Names(lambda: asked.append(1) or [[b"a", "b"], [None, 3]])
    assert not asked
    assert list(names) == ["a", "b", "", "3"]
    assert np.asarray(names).shape == (4,)


def test_columns_of_two_files_are_compared(counts, tmp_path):
    X = open_rows(parquet(counts[0], tmp_path)).rows
    frame_of(counts[1]).iloc[:, ::-1].to_parquet(tmp_path / "back.parquet")
    with raises(FeaturesError, "order", "background"):
        ContrastiveICA(2).fit(X, background=open_rows(tmp_path / "back.parquet").rows)


# --- bad files ---


def broken(name):
    def make(path):
        (path / name).write_bytes(b"PAR1 is not all that it takes")
        return path / name

    return make


def cut(make):
    """Written by ``make``, and then only half there."""

    def half(path):
        file = make(np.ones((500, 4)), path)
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        return file

    return half


def empty(name):
    def make(path):
        (path / name).write_bytes(b"")
        return path / name

    return make


def without_rows(make):
    return lambda path: make(np.empty((0, 4)), path)


def plain_hdf5(values):
    def make(path):
        with h5py.File(path / "a.h5", "w") as file:
            if values is not None:
                file["a"] = values
        return path / "a.h5"

    return make


def odd_files(path):
    table().to_parquet(path / "a.parquet")
    table(c=[1, 2]).to_parquet(path / "b.parquet")
    return f"{path}/*.parquet"


def oddly_named(path):
    table(c=["x", "y"]).to_parquet(path / "a.parquet")
    table(d=["x", "y"]).to_parquet(path / "b.parquet")
    return path


def with_text(path):
    table().to_parquet(path / "a.parquet")
    (path / "a.txt").write_text("a note")
    return f"{path}/*"


def damaged_csr(part, values):
    def make(path):
        X = sp.csr_matrix(np.ones((3, 2)))
        file = anndata(X, path / "a.h5ad")
        with h5py.File(file, "a") as held:
            del held[f"X/{part}"]
            held[f"X/{part}"] = values
        return file

    return make


def read(path):
    for _ in open_rows(path).rows.blocks(100):
        pass


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (lambda path: path / "none.parquet", "file-missing", "does not exist"),
        (lambda path: f"{path}/*.parquet", "file-missing", "Check the pattern"),
        (lambda path: path, "unknown-type", "folder without parquet files"),
        (empty("a.txt"), "unknown-type", "'.txt'. Use csv, tsv"),
        (lambda path: "s3://bucket/rows.parquet", "remote", "--scheduler"),
        *(
            (empty(f"a.{kind}"), "empty", "one row per sample")
            for kind in ("npy", "npz", "h5", "h5ad", "parquet", "csv")
        ),
        (broken("a.parquet"), "damaged", "could not be read as"),
        *(
            (broken(f"a.{kind}"), "not-what-it-says", "is a parquet file, whatever its name says")
            for kind in ("npy", "npz", "h5", "h5ad", "csv")
        ),
        *(
            (cut(make), "damaged", "could not be read as")
            for make in (npy, npz, sparse_npz, hdf5, parquet)
        ),
        (lambda path: (path / "a.zarr").mkdir() or path / "a.zarr", "damaged", "as a zarr store"),
        (without_rows(npy), "no-rows", "holds 0 rows of 4 variables"),
        (without_rows(parquet), "no-rows", "has no rows"),
        (without_rows(zarr_array), "no-rows", "holds 0 rows of 4 variables"),
        (lambda path: npy(np.ones(3), path), "not-a-table", "shape (3,)"),
        (lambda path: npy(np.ones((3, 3), dtype=complex), path), "not-a-table", "complex128"),
        (plain_hdf5(np.ones(3)), "not-a-table", "holds 0 tables, but one is needed"),
        (plain_hdf5(np.ones((3, 2), dtype="S3")), "not-a-table", "array of real numbers"),
        (plain_hdf5(None), "not-a-table", "holds 0 tables"),
        (odd_files, "different-columns", "b.parquet: none; only in it: c."),
        (oddly_named, "different-columns", "names its rows by 'd', but "),
        (with_text, "unknown-type", "a.txt, but only parquet files are read together"),
        (damaged_csr("indptr", [0, 2, 4]), "damaged", "is damaged at 'X': 3 rows need"),
        (damaged_csr("indptr", [0, 4, 2, 6]), "damaged", "'X': rows 0 to 3 point to"),
        (damaged_csr("indices", [0, 1, 0, 1, 0, 7]), "damaged", "'X': rows 0 to 3 point to"),
        (damaged_csr("data", [1.0]), "damaged", "is damaged at 'X': 3 rows need"),
    ],
)
def test_bad_files_say_what_they_hold_and_what_to_do(make, code, message, tmp_path):
    path = make(tmp_path)
    cls = FileMissingError if code == "file-missing" else FileError
    with raises(cls, code) as caught:
        read(path)
    assert message in str(caught.value)
    assert str(Path(path).name if code == "remote" else tmp_path) in str(caught.value)
    assert caught.value.remedy


def test_files_that_change_between_passes_are_named(counts, tmp_path):
    X = counts[0]
    for make in (hdf5, parquet):
        rows = open_rows(make(X, tmp_path)).rows
        make(X[:500], tmp_path)
        with raises(FileError, "changed"):
            in_memory(rows)


def test_damage_that_shows_while_reading_is_named(counts, tmp_path):
    """Footers are whole, so the file opens; a chunk is not."""
    path = zarr_array(counts[0], tmp_path)
    chunk = next(file for file in sorted(path.rglob("c/3/*")) if file.is_file())
    chunk.write_bytes(b"what is this")
    rows = open_rows(path).rows
    with raises(FileError, "damaged") as caught:
        in_memory(rows)
    assert "rows.zarr could not be read as an array" in str(caught.value)
    whole = bytearray(parquet(counts[0], tmp_path).read_bytes())
    whole[1000:3000] = bytes(2000)
    (tmp_path / "rows.parquet").write_bytes(whole)
    with raises(FileError, "damaged") as caught:
        in_memory(open_rows(tmp_path / "rows.parquet").rows)
    assert "rows.parquet could not be read as a parquet file" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "module"), [("hdf5", "h5py"), ("zarr array", "zarr"), ("parquet", "pyarrow.parquet")]
)
def test_a_missing_package_says_what_to_install(kind, module, counts, tmp_path, monkeypatch):
    path = KINDS[kind](counts[0], tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with raises(PackageMissingError, "package-missing") as caught:
        open_rows(path)
    assert f"need {module.partition('.')[0]}. " in str(caught.value)
    assert "pip install 'contrica[disk]'" in str(caught.value)


def test_rows_of_ours_are_rows(counts, tmp_path):
    assert isinstance(open_rows(parquet(counts[0], tmp_path)).rows, Rows)
    assert isinstance(open_rows(npy(counts[0], tmp_path)).rows, np.memmap)
