"""What fuzzing found: each was a wrong answer without a word, a crash, a hang or another's exception."""

import json
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from contrica import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
    ProportionalContrastiveICA,
)
from contrica.errors import (
    DataError,
    DataTypeError,
    FeaturesError,
    FileError,
    ParameterError,
    collected,
)
from contrica.inference import check
from contrica.moments import DataSums, common_basis, cumulants
from contrica.rows import Blocks, as_rows, open_rows, read_table
from tests.said import raises

ESTIMATORS = [
    *(ContrastiveICA, ProportionalContrastiveICA, PlainICA, PlainPCA),
    *(ContrastivePCA, ProbabilisticContrastivePCA, GeneralizedContrastivePCA),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    return rng.laplace(size=(300, 4)) * [3, 1, 1, 1], rng.laplace(size=(200, 4))


def quietly(model, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **options)


# --- wrong answers ---


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a,b,c,d,e\n1,2,3,4\n5,6,7,8\n", "headings"),
        ("a,b\n1,2,3,4\n5,6,7,8\n", "headings"),
        ("a,b,c,\n1,2,3\n5,6,7\n", "headings"),
        ("# made by hand\na,b,c\n1,2,3\n5,6,7\n", "headings"),
        ("a,b,c\nNA,2,3\n5,6,7\n6,6,6\n", "not-numbers"),
        ("NA,2,3\n5,6,7\n6,6,6\n", "not-numbers"),
        ("1,NA,3\n5,6,7\n6,6,6\n", "not-numbers"),
        ("1,,3\n5,6,7\n6,6,6\n", "not-numbers"),
        (",2.5,3.5\n5,6,7\n6,6,6\n", "not-numbers"),
        ('a,b\n"1,5",2\n"1,6",3\n', "not-numbers"),
        ("a,b\n0x10,2\n3,4\n", "not-numbers"),
        ("a,b\n1_0,2\n3,4\n", "not-numbers"),
        ("a,b\nTrue,2\n3,4\n4,5\n", "not-numbers"),
    ],
)
def test_no_cell_is_taken_for_a_name_that_is_none(text, code, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with raises(FileError, code):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("a,b\nNA12878,2\nNA12879,4\n", ["b"], ["NA12878", "NA12879"]),
        (",0,1\n0,2,4\n1,4,5\n", ["0", "1"], ["0", "1"]),
        ("a,b\nu,1,2\nv,3,4\n", ["a", "b"], ["u", "v"]),
        ("a,NA\n1,2\n3,4\n", None, None),
        ("NA,b\n1,2\n3,4\n", ["NA", "b"], None),
    ],
)
def test_names_that_are_names_stay(text, columns, rows, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    if columns is None:  # it may be a header, or a row with an index
        assert list(read_table(tmp_path / "t.csv", header=True).columns) == ["a", "NA"]
        return
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == columns
    assert (None if table.rows is None else list(table.rows)) == rows


def stored_cells(path, change, X=None):
    ad, h5py = map(pytest.importorskip, ("anndata", "h5py"))
    X = np.arange(80.0).reshape(20, 4) ** 1.1 if X is None else X
    obs, var = (
        pd.DataFrame(index=[f"{c}{i}" for i in range(n)])
        for c, n in zip("cg", X.shape, strict=True)
    )
    ad.AnnData(X, obs=obs, var=var).write_h5ad(path)
    with h5py.File(path, "a") as file:
        change(file, h5py)
    return path


def replaced(frame, values):
    def change(file, h5py):
        name = file[frame].attrs["_index"]
        del file[frame][name]
        file[frame][name] = values

    return change


def with_x(values):
    def change(file, h5py):
        del file["X"]
        file["X"] = values(h5py)

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (replaced("var", [b"a", b"b", b"c"]), "damaged"),
        (replaced("obs", [b"a", b"b", b"c"]), "damaged"),
        (replaced("var", np.zeros((4, 2))), "damaged"),
        (replaced("var", [b"a", b"a", b"b", b"c"]), "same-names"),
        (replaced("var", np.array([b"\xff", b"b", b"c", b"d"])), "damaged"),
        (with_x(lambda h5py: h5py.Empty("f8")), "not-a-table"),
        (with_x(lambda h5py: np.arange(5.0)), "not-a-table"),
        (with_x(lambda h5py: 5.0), "not-a-table"),
        (with_x(lambda h5py: h5py.SoftLink("/nowhere")), "damaged"),
    ],
)
def test_an_annotated_file_whose_parts_disagree_is_refused(change, code, tmp_path):
    with raises(FileError, code):
        open_rows(stored_cells(tmp_path / "t.h5ad", change))


def attribute(value):
    def change(file, h5py):
        del file["X"].attrs["shape"]
        if value is not None:
            file["X"].attrs["shape"] = value

    return change


def part(values):
    def change(file, h5py):
        before = file["X/data"][:]
        del file["X/data"]
        found = values(before)
        if found is None:
            file.create_group("X/data")
        else:
            file["X/data"] = found

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (attribute(None), "damaged"),
        (attribute([20]), "damaged"),
        (attribute("hello"), "damaged"),
        (attribute([-20, 4]), "no-rows"),
        (part(lambda before: before[:, None]), "damaged"),
        (part(lambda before: 5.0), "damaged"),
        (part(lambda before: None), "damaged"),
        (part(lambda before: [b"a"] * len(before)), "not-a-table"),
    ],
)
def test_compressed_rows_whose_parts_disagree_are_refused(change, code, tmp_path):
    X = sp.random(20, 4, 0.5, format="csr", random_state=0)
    with raises(FileError, code):
        open_rows(stored_cells(tmp_path / "t.h5ad", change, X))


@every_estimator
def test_masked_entries_are_missing_and_not_the_numbers_behind_the_mask(estimator, pair):
    X, Y = pair
    masked = np.ma.array(X.copy(), mask=np.zeros(X.shape, dtype=bool))
    expected = quietly(estimator(2), X, background=Y)
    assert_allclose(quietly(estimator(2), masked, background=Y).mean_, expected.mean_, rtol=1e-12)
    masked[0, 0] = 1e6
    masked[0, 0] = np.ma.masked
    with raises(DataError, "not-finite", "X"):
        estimator(2).fit(masked, background=Y)
    with raises(DataError, "not-finite", "background"):
        estimator(2).fit(X, background=masked)
    with pytest.raises(DataError):
        expected.transform(masked)


def test_masked_blocks_and_whole_numbers_are_missing_too(pair):
    masked = np.ma.array(np.arange(40).reshape(10, 4), mask=np.eye(10, 4, dtype=bool))
    with raises(DataError, "not-finite"):
        DataSums().update(masked)
    with raises(DataError, "not-finite", "X"):
        ContrastiveICA(2).fit(Blocks([masked]), background=pair[1])
    assert np.isnan(as_rows(masked)).sum() == 4
    with pytest.raises(DataError):
        cumulants(masked)
    with raises(DataError, "not-finite", "datasets[0]"):
        common_basis([masked, pair[1]], 2)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("exponent", [-50, -20, 30, 60])
def test_single_precision_does_not_depend_on_the_unit(exponent, sampled, pair, monkeypatch):
    if sampled:
        monkeypatch.setattr("contrica.moments.working.MAX_ENTRIES", 400)
        monkeypatch.setattr("contrica.moments.working.MANY_ROWS", 100)
    X, Y = pair
    unit = 2.0**exponent
    given = {"solver": "joint", "n_background": 4, "n_foreground": 2, "random_state": 0}
    one, other = (
        quietly(ContrastiveICA(2, dtype="float32", **given), a * X, background=a * Y)
        for a in (1.0, unit)
    )
    assert_allclose(other.components_, one.components_, atol=1e-6)
    assert_allclose(other.contrast_ratio_, one.contrast_ratio_, rtol=1e-6)
    assert_allclose(other.background_weights_, unit**4 * one.background_weights_, rtol=1e-5)
    assert_allclose(
        other.foreground_skewness_weights_, unit**3 * one.foreground_skewness_weights_, rtol=1e-4
    )


@pytest.mark.parametrize("shift", [1e7, 1e9])
def test_single_precision_does_not_depend_on_where_the_background_is(shift):
    """Both datasets were rounded about the foreground's mean; the proportional fit took minutes."""
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(3000, 4)) * [3, 1, 1, 1], rng.laplace(size=(3000, 4))
    given = {"solver": "joint", "n_background": 4, "n_foreground": 2, "random_state": 0}
    expected = quietly(ContrastiveICA(2, **given), X, background=Y)
    found = quietly(ContrastiveICA(2, dtype="float32", **given), X, background=Y + shift)
    # float32 has seven digits, float64 loses as many as the shift has, and a fit of more patterns than
    # there are may end in another minimum; the weights were wrong by a factor of thousands
    assert_allclose(found.background_weights_, expected.background_weights_, rtol=0.05)
    rng = np.random.default_rng(0)
    A, B = rng.laplace(size=(2, 60, 20))
    single = ProportionalContrastiveICA(2, dtype="float32", random_state=0)
    double = ProportionalContrastiveICA(2, random_state=0)
    assert_allclose(
        quietly(single, A, background=B + shift).contrast_ratio_,
        quietly(double, A, background=B).contrast_ratio_,
        rtol=1e-3,
    )


@pytest.mark.parametrize("scaling", ["posterior", "loadings", "standard", "unit"])
@pytest.mark.parametrize("alone", [False, True])
def test_probabilistic_pca_of_rank_one_has_scores(scaling, alone):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.laplace(size=(100, 1)) @ rng.standard_normal((1, 5))
        Y = None if alone else rng.laplace(size=(80, 5))
        model = quietly(ProbabilisticContrastivePCA(3, gamma=0.0, scaling=scaling), X, background=Y)
        scores = model.transform(X)
        assert np.isfinite(scores).all()
        assert model.noise_variance_ >= 0
        # what does not vary is not blown up to unit variance
        assert_allclose(scores[:, 1:], 0, atol=1e-6 * np.abs(scores[:, 0]).max())


def test_a_constant_far_away_does_not_vary(pair):
    """The mean of equal numbers, as it is rounded, is not always one of them."""
    for value in (0.1, 1e20, 1.1e44):
        found = DataSums().update(np.full((999, 3), value)).cumulants()
        assert_allclose(found.covariance, 0, atol=0)
    for estimator in ESTIMATORS:
        with raises(DataError, "range", "background"):
            estimator(2).fit(pair[0], background=np.full((200, 4), 1e160))


# --- crashes and hangs ---


def bad_index(matrix, value):
    matrix.indices[3] = value


def bad_pointer(matrix, value):
    matrix.indptr[3] = value


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("value", [10**8, -5])
@pytest.mark.parametrize("spoil", [bad_index, bad_pointer])
def test_indices_out_of_range_are_refused_before_they_are_followed(spoil, value, form, tmp_path):
    matrix = sp.random(20, 4, 0.5, format=form, random_state=0)
    spoil(matrix, value)
    with raises(DataError, "bad-indices"):
        as_rows(matrix)
    sp.save_npz(tmp_path / "t.npz", matrix)
    with raises(FileError, "damaged"):
        open_rows(tmp_path / "t.npz")


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_pointers_that_end_at_nothing_are_refused_before_the_others_are_followed(form, tmp_path):
    matrix = sp.random(20, 4, 0.5, format=form, random_state=0)
    matrix.indptr[-1] = 0
    with raises(DataError, "bad-indices"):
        as_rows(matrix)
    sp.save_npz(tmp_path / "t.npz", matrix)
    with raises(FileError, "damaged"):
        open_rows(tmp_path / "t.npz")


def test_other_sparse_forms_are_checked_and_read():
    matrix = sp.random(20, 4, 0.5, format="coo", random_state=0)
    for form in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil"):
        assert as_rows(matrix.asformat(form)).shape == (20, 4)
    assert as_rows(sp.csr_matrix((5, 3))).shape == (5, 3)
    matrix.col[0] = 99
    with raises(DataError, "bad-indices"):
        as_rows(matrix)


def promise_in_zarr(folder):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(store=str(folder), shape=(20, 4), chunks=(5, 4), dtype="f8")[:] = 1.5
    described = json.loads((folder / "zarr.json").read_text())
    described["shape"] = [6 * 10**13, 4]
    (folder / "zarr.json").write_text(json.dumps(described))


def promise_in_hdf5(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", shape=(6 * 10**13, 4), dtype="f8", chunks=(1000, 4))


@pytest.mark.parametrize(("name", "make"), [("t.zarr", promise_in_zarr), ("t.h5", promise_in_hdf5)])
def test_rows_that_are_promised_and_not_there_are_refused(name, make, tmp_path):
    make(tmp_path / name)
    start = time.perf_counter()
    with raises(FileError, "damaged"):
        open_rows(tmp_path / name)
    assert time.perf_counter() - start < 5  # it takes milliseconds; to read them, years


def test_few_rows_of_many_variables_take_no_square_matrix():
    """4 × 20 000 took 6.3 GB at `memory_limit="100MB"`."""
    code = """
import resource, warnings
import numpy as np
from contrica import ContrastiveICA
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(4, 20_000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ContrastiveICA(2, memory_limit="100MB", n_pcs=30, random_state=0).fit(X, background=X[::-1] + 1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) * 1024 < 150e6


@pytest.mark.parametrize("n_pcs", [3, 7, 10])
def test_axes_beyond_those_of_few_rows_are_orthonormal(n_pcs):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 3, 10))
    axes = common_basis([X, Y], n_pcs)
    assert_allclose(axes.T @ axes, np.eye(n_pcs), atol=1e-12)
    stacked = np.vstack([X, Y])
    centred = stacked - stacked.mean(axis=0)
    kept = centred @ axes @ axes.T
    rank = min(n_pcs, 5)
    values = np.linalg.svd(centred, compute_uv=False)
    assert_allclose(np.sum(kept**2), np.sum(values[:rank] ** 2), rtol=1e-10)


def test_units_of_the_variables_do_not_decide_whether_rows_are_few():
    """60 × 8 took 23 s by "joint"; 330 entries of a fourth cumulant need as many rows."""
    rng = np.random.default_rng(0)
    units = 10.0 ** np.linspace(-8, 8, 8)
    X, Y = rng.laplace(size=(2, 60, 8)) * units
    model = quietly(ContrastiveICA(2, random_state=0), X, background=Y)
    assert model.solver_ == "subspace"
    assert "60 rows are fewer than the 330 entries" in model.reason_


@every_estimator
def test_a_fit_that_fails_leaves_no_trace(estimator, pair):
    X, Y = pair
    model = quietly(estimator(2), X, background=Y)
    before = dict(vars(model))
    for rows, behind in ((X, Y * np.nan), (X * np.nan, Y), (X * 0, Y), (X, Y[:, :2])):
        with pytest.raises(DataError):
            model.fit(rows, background=behind)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        fresh = estimator(2)
        with pytest.raises(DataError):
            fresh.fit(rows, background=behind)
        assert not [name for name in vars(fresh) if name.endswith("_")]


@pytest.mark.parametrize(("n_back", "rank"), [(20, 1), (20, 2), (5, 1), (5, 2)])
def test_rows_along_a_line_are_permuted(n_back, rank):
    """What the first directions leave is rounding, of which no covariance is positive definite."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Y = (
            rng.standard_normal((n, k)) @ rng.standard_normal((k, 5))
            for n, k in ((60, rank), (n_back, 1))
        )
        model = quietly(ContrastiveICA(1, solver="subspace", random_state=0), X, background=Y)
        assert model.n_foreground_ <= rank
        assert np.isfinite(model.components_).all()


def test_a_constant_column_of_a_sparse_matrix_does_not_vary_by_rounding():
    """A hundred times 1e20, summed and divided by a hundred, is not 1e20."""
    X = np.random.default_rng(0).laplace(size=(200, 3))
    X[:, 0] = 1e20
    Y = np.random.default_rng(1).laplace(size=(60, 3))
    dense, sparse = (
        quietly(ContrastivePCA(2, alpha=1.0), rows, background=Y) for rows in (X, sp.csr_matrix(X))
    )
    assert sparse.mean_[0] == 1e20
    assert_allclose(sparse.contrast_ratio_, dense.contrast_ratio_)


READING = """
import sys
from contrica.errors import FileError
from contrica.rows import open_rows
try:
    open_rows(sys.argv[1])
except FileError as error:
    print(error.code)
"""


def first_heap(content):
    """Where the objects of an HDF5 file's first heap of texts begin: index, length, text."""
    return content.index(b"GCOL") + 16


@pytest.mark.parametrize(
    "no_space", [bytes(16), b"\1" + bytes(7) + (2**64 - 16).to_bytes(8, "little")]
)
def test_texts_without_an_end_do_not_stop_the_reader(no_space, tmp_path):
    """The HDF5 library goes round in them for ever, out of reach of signals: hence a process."""
    path = stored_cells(tmp_path / "t.h5ad", lambda file, h5py: None)
    content = bytearray(path.read_bytes())
    place = first_heap(content)
    content[place : place + 16] = no_space
    path.write_bytes(content)
    command = [sys.executable, "-c", READING, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (found.stdout, found.stderr) == ("damaged\n", "")


def test_numbers_that_look_like_texts_without_an_end_are_read(tmp_path):
    """What lies inside an array, in one piece or in chunks, is not looked at."""
    h5py = pytest.importorskip("h5py")
    X = np.arange(40.0).reshape(10, 4)
    X.view(np.uint8)[0, :16] = np.frombuffer(
        b"GCOL\1\0\0\0" + (4096).to_bytes(8, "little"), np.uint8
    )
    X[0, 2:] = 0.0
    X[1] = 0.0
    for options in ({}, {"chunks": (5, 4)}):
        with h5py.File(tmp_path / "t.h5", "w") as file:
            file.create_dataset("X", data=X, **options)
            file["names"] = ["a", "b"]
        found = np.vstack(list(open_rows(tmp_path / "t.h5", key="X").rows.blocks(10)))
        assert np.array_equal(found, X)


# --- exceptions of others ---


def test_two_variables_of_one_name_are_refused(pair):
    X, Y = (pd.DataFrame(part, columns=list("aabc")) for part in pair)
    for estimator in ESTIMATORS:
        with raises(FeaturesError, "same-names", "X"):
            estimator(2).fit(X, background=Y)
    with raises(FeaturesError, "same-names"):
        DataSums().update(X)
    model = ContrastivePCA(2, alpha=1.0).fit(pair[0], background=pair[1])
    with raises(FeaturesError, "same-names", "X"):
        model.transform(X)


def containers(pair):
    Y = pair[1]
    table = np.zeros(300, dtype=[("a", "f8"), ("b", "f8")])
    yield {1.0, 2.0}, Y, DataTypeError, "not-a-table"
    yield {"a": [1.0, 2.0]}, Y, DataTypeError, "not-a-table"
    yield table, Y, DataError, "structured"
    yield np.zeros((300, 4), dtype=[("a", "f8")]), Y, DataError, "structured"
    yield [["a", "b"], ["c", "d"]], Y, DataError, "not-a-table"
    yield [[1.0, 2.0], [1.0]], Y, DataError, "not-a-table"
    yield [[1.0, object()], [1.0, 2.0]], Y, DataTypeError, "not-a-table"
    yield np.zeros((300, 0)), np.zeros((200, 0)), DataError, "not-a-table"
    yield 5.0, Y, DataError, "not-a-table"


@every_estimator
def test_what_is_not_a_table_is_an_error_of_ours(estimator, pair):
    for X, Y, cls, code in containers(pair):
        with raises(cls, code):
            estimator(2).fit(X, background=Y)
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    empty = pd.DataFrame(index=range(300))
    with raises(DataError, "no-variables"):
        estimator(2).fit(empty, background=empty)
    with raises(DataTypeError, "lazy", "X"):
        estimator(2).fit(pl.DataFrame(pair[0]).lazy(), background=pair[1])
    with raises(DataTypeError, "lazy", "background"):
        estimator(2).fit(pair[0], background=pl.DataFrame(pair[1]).lazy())


@every_estimator
def test_a_dataset_without_rows_is_named(estimator, pair):
    X, Y = pair
    frames = [pytest.importorskip("pandas").DataFrame(part) for part in pair]
    for fore, back in ((X, Y), frames, [sp.csr_matrix(part) for part in pair]):
        with raises(DataError, "too-few-rows", "background") as caught:
            estimator(2).fit(fore, background=back[:0])
        assert "background has no rows" in str(caught.value)
        with raises(DataError, "too-few-rows", "X"):
            estimator(2).fit(fore[:0], background=back)


@every_estimator
def test_other_names_in_transform_are_said_without_a_lone_full_stop(estimator, pair):
    pd = pytest.importorskip("pandas")
    X, Y = (pd.DataFrame(part).add_prefix("v") for part in pair)
    with collected():
        model = estimator(2).fit(X, background=Y)
    for other in (X.rename(columns={"v0": "w"}), X[X.columns[::-1]]):
        with raises(DataError, "not-a-table", "X") as caught:
            model.transform(other)
        assert "\n." not in str(caught.value)


def test_several_backgrounds_may_be_blocks(pair):
    X, Y = pair
    given = {"solver": "subspace", "random_state": 0}
    blocks = [Blocks([Y[:100]]), Blocks([Y[100:]])]
    found = ContrastiveICA(2, **given).fit(X, background=blocks)
    expected = ContrastiveICA(2, **given).fit(X, background=[Y[:100], Y[100:]])
    assert_allclose(found.components_, expected.components_, atol=1e-8)
    with raises(DataError, "several-backgrounds", "background"):
        ContrastivePCA(2).fit(X, background=blocks)


ODD = [
    np.array([1.0, 2.0]),
    {},
    [1],
    1j,
    object(),
    "nonsense",
    float("nan"),
    b"x",
    np.zeros((2, 2)),
]


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "name",
    [
        *("memory_limit", "basis", "n_pcs", "device", "n_components", "solver", "dtype", "tol"),
        *("cumulant", "projection", "max_iter", "n_background", "n_foreground", "random_state"),
    ],
)
def test_parameters_of_no_use_are_refused_by_name(name, value, pair):
    X, Y = pair
    with pytest.raises(ParameterError) as caught:
        ContrastiveICA(**{name: value}).fit(X, background=Y)
    assert caught.value.parameter == name


def test_a_device_that_is_none_does_not_ask_for_torch(pair):
    with raises(ParameterError, "unusable-device", "device"):
        ContrastiveICA(2, device="nonsense").fit(pair[0], background=pair[1])


@pytest.mark.parametrize("alpha", [1e308, [0.5, 1e308]])
def test_a_huge_alpha_leaves_the_background_s_least_axes(alpha, pair):
    X, Y = pair
    found = ContrastivePCA(2, alpha=alpha, random_state=0).fit(X, background=Y)
    assert np.isfinite(found.components_).all()
    if alpha == 1e308:
        vectors = np.linalg.eigh(np.cov(Y.T))[1]
        assert_allclose(np.abs(found.components_[0] @ vectors[:, 0]), 1, atol=1e-8)


def test_a_constant_far_from_zero_is_no_noise_of_a_joint_fit():
    rng = np.random.default_rng(3)
    X, Y = rng.exponential(size=(60, 3)), rng.exponential(size=(20, 3))
    Y[:, 1] = 1e20
    near = Y.copy()
    near[:, 1] = 1.0
    far, expected = (
        quietly(ContrastiveICA(1, solver="joint", random_state=0), X, background=part)
        for part in (Y, near)
    )
    assert_allclose(far.components_, expected.components_, atol=1e-6)
    assert_allclose(far.pattern_t_values_, expected.pattern_t_values_, rtol=1e-5)


def test_a_joint_fit_of_as_few_rows_as_dimensions_is_refused():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 20)), rng.standard_normal((60, 20))
    for given, background in ((X, Y), (Y, X)):
        with pytest.raises(DataError) as caught:
            quietly(ContrastiveICA(solver="joint", n_pcs=None), given, background=background)
        assert caught.value.code == "too-few-rows"


def test_a_scale_whose_fourth_power_overflows_is_refused(pair):
    X, Y = pair
    with pytest.raises(ParameterError) as caught:
        ProportionalContrastiveICA(background_scale=1e308).fit(X, background=Y)
    assert (caught.value.code, caught.value.parameter) == ("out-of-range", "background_scale")


@pytest.mark.parametrize("name", ["readme.txt", None])
def test_a_member_of_an_npz_file_that_is_not_an_array_is_refused(name, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "t.npz", "w") as zipped:
        zipped.writestr("readme.txt", "hello")
    with raises(FileError, "damaged"):
        open_rows(tmp_path / "t.npz", name)


@pytest.mark.parametrize("form", ["coo", "csc"])
def test_a_sparse_file_that_says_it_has_a_hundred_million_rows_is_refused_at_once(form, tmp_path):
    matrix = sp.random(30, 4, 0.5, format=form, random_state=0)
    sp.save_npz(tmp_path / "t.npz", matrix)
    parts = dict(np.load(tmp_path / "t.npz"))
    np.savez(tmp_path / "t.npz", **parts | {"shape": np.array([10**8, 4])})
    with raises(FileError, "damaged"):
        open_rows(tmp_path / "t.npz")


@pytest.mark.parametrize("about", [b"{\xe2", b"[1]", b"{", b'{"index_columns": 5}'])
def test_parquet_files_with_damaged_notes_of_pandas_are_refused(about, tmp_path):
    """What pandas wrote about a table is decoded when it is asked for, after the file was opened."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = pyarrow.table({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    parquet.write_table(columns.replace_schema_metadata({b"pandas": about}), tmp_path / "t.parquet")
    with raises(FileError, "damaged"):
        open_rows(tmp_path / "t.parquet")


def test_parquet_files_with_damaged_text_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    bad = pyarrow.array([b"x", b"\xe2"]).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "name": bad}), tmp_path / "t.parquet")
    with raises(FileError, "damaged"):
        list(open_rows(tmp_path / "t.parquet").row_names)


# --- interrupted ---

INTERRUPTED = """
import os, signal, threading, time, warnings
import numpy as np
from contrica import ContrastiveICA
from contrica.moments import DataSums
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, Y = rng.laplace(size=(2, 20_000, 12))
wide = rng.laplace(size=(20_000, 60))

def known(model):
    return {k: v for k, v in vars(model).items()}

def same(one, other):
    return one.keys() == other.keys() and all(one[k] is other[k] for k in one)

def interrupted(call, seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        call()
        time.sleep(60)
    except KeyboardInterrupt:
        return
    raise SystemExit("not interrupted")

model = ContrastiveICA(2, solver="subspace", random_state=0).fit(X[:500], background=Y[:500])
before = known(model)
model.set_params(solver="joint", n_components=2)
before["solver"] = "joint"
for seconds in (0.01, 0.05, 0.2):
    interrupted(lambda: [model.fit(X, background=Y) for _ in range(100)], seconds)
    assert sorted(vars(model)) == sorted(before), set(vars(model)) ^ set(before)
    if seconds < 0.05:
        assert same(known(model), before)
summed = ContrastiveICA(2).partial_fit(wide[:500], background=wide[500:900])
kept = {name: (part.n_samples, part.cumulants().covariance) for name, part in
        (("x", summed.foreground_sums_), ("y", summed.background_sums_))}
for seconds in (0.02, 0.1):
    interrupted(lambda: summed.partial_fit(wide, background=wide), seconds)
    for name, part in (("x", summed.foreground_sums_), ("y", summed.background_sums_)):
        assert part.n_samples == kept[name][0] == part.summary().n_rows
        assert np.array_equal(part.cumulants().covariance, kept[name][1])
sums = DataSums().update(wide[:500])
count = sums.n_samples
interrupted(lambda: sums.update(wide), 0.1)
assert sums.n_samples == count == sums.summary().n_rows
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")
def test_an_interrupt_leaves_models_and_sums_as_they_were():
    found = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


STARTING = """
import signal
install = signal.signal
def marked(*given):
    found = install(*given)
    print("installed", flush=True)
    return found
signal.signal = marked
from contrica_shell import main  # as the installed command does
main()
"""


HALF_MADE = """
import contrica.cli.commands as commands
class Parser:  # of another package, interrupted in its __init__
    def __del__(self):
        self.expr
def interrupted():
    half_made = Parser()
    raise KeyboardInterrupt
commands.app = interrupted
try:
    commands.main()
except KeyboardInterrupt:
    pass
"""


def test_what_an_interrupt_left_half_made_is_no_traceback():
    found = subprocess.run([sys.executable, "-c", HALF_MADE], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")
@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0])
def test_an_interrupt_while_the_shell_starts_is_no_traceback(seconds, tmp_path):
    command = [sys.executable, "-c", STARTING, "demo", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "installed\n"  # before that Python has its own traceback
    time.sleep(seconds)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120)[1]
    assert "Traceback" not in said
    assert running.returncode != 0
    assert list(tmp_path.iterdir()) == []


@every_estimator
def test_a_count_of_any_integer_type_is_taken_as_a_plain_number(estimator):
    """Sums of few bits overflow where rows and components are added up."""
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(300, 60)), rng.laplace(size=(200, 60))
    small, plain = (
        quietly(
            estimator(kind(2), random_state=0) if has_seed else estimator(kind(2)), X, background=Y
        )
        for has_seed in ["random_state" in estimator().get_params()]
        for kind in (np.int8, int)
    )
    assert_array_equal(small.components_, plain.components_)


@every_estimator
def test_columns_of_text_are_named(estimator, pair):
    X, Y = (pd.DataFrame(part, columns=list("abcd")).assign(sex="m", batch="one") for part in pair)
    with raises(DataError, "text-columns", "X") as told:
        estimator(2).fit(X, background=Y)
    assert "sex, batch" in str(told.value)
    model = quietly(estimator(2), X[list("abcd")], background=Y[list("abcd")])
    with raises(DataError, "text-columns", "X"):
        model.transform(X[list("abcd")].assign(d="one"))


def dates(n):
    return pd.date_range("2020", periods=n)


@pytest.mark.parametrize(
    "column",
    [
        dates,
        lambda n: dates(n).tz_localize("UTC"),
        lambda n: dates(n) - dates(1)[0],
        lambda n: dates(n).to_period(),
        lambda n: np.full(n, 1 + 2j),
    ],
    ids=["date", "zone", "difference", "period", "complex"],
)
def test_columns_of_dates_and_complex_numbers_are_named(column, pair):
    X, Y = (
        pd.DataFrame(part, columns=list("abcd")).assign(when=column(len(part))) for part in pair
    )
    model = quietly(ContrastiveICA(2, random_state=0), X[list("abcd")], background=Y[list("abcd")])
    for call in (
        lambda: ContrastiveICA(2).fit(X, background=Y),
        lambda: ContrastiveICA(2).partial_fit(X, background=Y),
        lambda: check(X, background=Y),
        lambda: model.transform(X.drop(columns="d")[["a", "b", "c", "when"]]),
    ):
        with raises(DataError, "text-columns", "X") as told:
            call()
        assert "that are not numbers: when" in str(told.value)
        assert len(str(told.value)) < 250


def test_names_that_are_text_and_numbers_are_refused_in_our_words(pair):
    X, Y = (pd.DataFrame(part, columns=["a", "b", "c", 5]) for part in pair)
    model = quietly(ContrastiveICA(2, random_state=0), X.to_numpy(), background=Y.to_numpy())
    for call in (
        lambda: ContrastiveICA(2).fit(X, background=Y),
        lambda: ContrastiveICA(2).partial_fit(X, background=Y),
        lambda: model.transform(X),
    ):
        with raises(DataTypeError, "mixed-names", "X") as told:
            call()
        assert "not: 5" in str(told.value)


def test_durations_are_no_numbers():
    rows = np.zeros((30, 4), dtype="m8[s]")
    with raises(DataError, "not-numbers", "X"):
        ContrastiveICA(2).fit(rows, background=rows)


def test_a_row_alone_is_refused_without_its_numbers(pair):
    X, Y = pair
    with raises(DataError, "not-a-table", "X") as told:
        ContrastiveICA().fit(X[:, 0], background=Y)
    assert "Reshape your data" in str(told.value)
    assert len(str(told.value)) < 250
