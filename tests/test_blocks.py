"""Every container gives what an array gives."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica import (
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    ProportionalContrastiveICA,
)
from contrica.errors import DataError, DelicateDataWarning, FeaturesError, IterationError
from contrica.moments import projection
from contrica.moments.fourth import cumulants
from contrica.moments.projection import common_basis
from contrica.rows.containers import as_rows
from contrica.rows.products import gram_times, in_memory, rows_times
from contrica.rows.protocol import Rows, iterate_blocks
from contrica.rows.streams import Blocks
from contrica.rows.summary import column_summary
from tests.said import raises, warns


class Again:
    """An iterable that can be read again, and counts how often it is."""

    def __init__(self, X, size=97):
        self.X, self.size, self.passes = X, size, 0

    def __iter__(self):
        self.passes += 1
        return (self.X[i : i + self.size] for i in range(0, len(self.X), self.size))


def memmap(X, folder):
    path = folder / f"{id(X)}.dat"
    held = np.memmap(path, dtype=X.dtype, mode="w+", shape=X.shape)
    held[:] = X
    return held


def hdf5(X, folder):
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / f"{id(X)}.h5", "w").create_dataset("rows", data=X)


def dask_array(X, folder):
    array = pytest.importorskip("dask.array")
    return array.from_array(X, chunks=(211, 7))


def dask_frame(X, folder):
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])])
    return frame.from_pandas(table, npartitions=3)


def tensor(X, folder):
    return pytest.importorskip("torch").from_numpy(X.copy())


CONTAINERS = {
    "csr": lambda X, folder: sp.csr_matrix(X),
    "csc": lambda X, folder: sp.csc_array(X),
    "memory map": memmap,
    "hdf5": hdf5,
    "dask array": dask_array,
    "dask frame": dask_frame,
    "torch": tensor,
    "blocks": lambda X, folder: Blocks([X[:100], sp.csr_matrix(X[100:150]), X[150:]]),
    "function": lambda X, folder: Blocks(lambda: (X[i : i + 64] for i in range(0, len(X), 64))),
    "iterable": lambda X, folder: Again(X),
}


@pytest.fixture(scope="module")
def counts():
    """Counts of 40 things in two samples; two groups of them go together in the first."""
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(0.4, (n, 40)).astype(float) for n in (900, 700))
    X[:, :8] += rng.choice([0, 2], (900, 1))
    X[:, 8:14] += rng.exponential(1, (900, 1)).round()
    return X, Y


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_fit_does_not_depend_on_the_container(kind, counts, tmp_path):
    X, Y = counts
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    held = [CONTAINERS[kind](rows, tmp_path) for rows in (X, Y)]
    model = ContrastiveICA(2, random_state=0).fit(held[0], background=held[1])
    assert model.solver_ == expected.solver_
    for name in ("components_", "filters_", "contrast_ratio_", "mean_"):
        # rotations end at a slope of 1e-7, which chunks of other sizes reach elsewhere
        assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-6, atol=1e-6)
    assert_allclose(model.transform(held[0]), expected.transform(X), rtol=1e-6, atol=1e-5)
    assert isinstance(model.transform(held[0]), type(held[0]) if kind == "torch" else np.ndarray)


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("storage", ["packed", "matrix-free"])
def test_third_cumulants_do_not_depend_on_the_container(kind, storage, counts, tmp_path):
    X = counts[0][:, :12]
    rows, vectors = as_rows(CONTAINERS[kind](X.copy(), tmp_path)), np.eye(12)[:, :3]
    expected = cumulants(X, storage="packed").third.slices(vectors)
    found = cumulants(rows, storage=storage).third
    assert_allclose(found.slices(vectors), expected, atol=1e-10)
    assert_allclose(
        found.apply_vectors(np.eye(12)),
        np.einsum("iij->ji", cumulants(X).third.entries),
        atol=1e-10,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [ProportionalContrastiveICA, ContrastivePCA, GeneralizedContrastivePCA, PlainICA]
)
def test_other_methods_take_sparse_rows_too(method, counts):
    X, Y = counts
    options = {"random_state": 0} if "random_state" in method().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = method(2, **options).fit(X, background=Y)
        model = method(2, **options).fit(sp.csr_matrix(X), background=sp.csr_matrix(Y))
    assert_allclose(model.components_, expected.components_, atol=1e-6)


def test_few_variables_are_not_projected(rng):
    X, Y = rng.laplace(size=(2, 500, 5))
    X[:, 0] *= 3
    expected = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    model = ContrastiveICA(1, random_state=0).fit(sp.csr_matrix(X), background=sp.csr_matrix(Y))
    assert_allclose(model.components_, expected.components_, atol=1e-8)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 50), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_blocks_put_together_are_the_rows(n, p, size, seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, (n, p)).astype(float)
    cut = rng.integers(0, n + 1)
    for held in (sp.csr_matrix(X), Blocks([X[:cut], X[cut:]]), Again(X, size)):
        rows = as_rows(held)
        assert rows.shape == (n, p) == (len(rows), p)
        parts = list(iterate_blocks(rows, size))
        assert all(
            0 < len(part) <= size and part.dtype == np.float64 for part in parts if len(part)
        )
        assert_allclose(np.vstack(parts), X)
        assert_allclose(in_memory(rows), X)
        M = rng.standard_normal((p, 2))
        assert_allclose(rows_times(rows, M), X @ M, atol=1e-12)
        assert_allclose(gram_times(rows, M), X.T @ X @ M, atol=1e-9)
        summary, expected = column_summary(rows), column_summary(X)
        for one, two in zip(summary, expected, strict=True):
            assert_allclose(one, two, atol=1e-9)
    assert_allclose(expected.mean, X.mean(axis=0))
    assert_allclose(expected.energy, ((X - X.mean(axis=0)) ** 2).sum(axis=0), atol=1e-9)
    assert_allclose(expected.low, X.min(axis=0))
    assert_allclose(expected.high, X.max(axis=0))


def test_a_large_mean_costs_no_digits(rng):
    X = 1e8 + rng.laplace(size=(1000, 3))
    summary = column_summary(as_rows(Blocks([X[:10], X[10:]])))
    assert_allclose(summary.energy, 1000 * X.var(axis=0), rtol=1e-6)


def test_cumulants_of_blocks_are_those_of_the_rows(counts):
    X = counts[0][:, :6]
    for storage in ("packed", "matrix-free"):
        found = cumulants(as_rows(sp.csr_matrix(X)), storage=storage)
        expected = cumulants(X, storage=storage)
        assert_allclose(found.mean, expected.mean)
        assert_allclose(found.covariance, expected.covariance)
        V = np.eye(6)
        assert_allclose(found.fourth.apply(V), expected.fourth.apply(V), atol=1e-9)


@pytest.mark.parametrize("n_pcs", ["auto", 5])
def test_axes_by_lanczos_are_those_of_the_scatter_matrix(n_pcs, counts, monkeypatch):
    expected = common_basis(counts, n_pcs)
    for limit in ("SPARSE_SCATTER", "DENSE_SCATTER"):
        monkeypatch.setattr(projection, limit, 10)
    for make in (sp.csr_matrix, Again):
        found = common_basis([as_rows(make(rows)) for rows in counts], n_pcs)
        assert_allclose(found, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_sparse_rows_are_not_written_out(monkeypatch):
    """No more of them at a time than a block, however many rows there are."""
    written = []
    whole = sp.csr_matrix.toarray

    def spy(self, *args, **kwargs):
        written.append(self.shape[0])
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(sp.csr_matrix, "toarray", spy)
    X, Y = (sp.random(20_000, 500, 0.01, random_state=seed, format="csr") for seed in (0, 1))
    ContrastiveICA(2, n_pcs=10, random_state=0, solver="subspace").fit(X, background=Y).transform(X)
    assert written == []  # projections are sparse products
    X, Y = X[:3000, :60], Y[:3000, :60]
    monkeypatch.setattr("contrica.rows.protocol.BLOCK_BYTES", 8 * 60 * 300)
    ContrastiveICA(2, n_pcs=None, random_state=0, solver="subspace").fit(X, background=Y)
    assert max(written) == 300


def test_what_can_be_read_once_only_is_refused(counts):
    X, Y = counts
    with raises(IterationError, "read-once", "X") as caught:
        ContrastivePCA(2).fit((X[i : i + 9] for i in range(0, 900, 9)), background=Y)
    assert "partial_fit" in str(caught.value)
    used_up = iter([X[:400], X[400:]])
    with raises(IterationError, "changed-rows") as caught:
        ContrastiveICA(2).fit(Blocks(lambda: used_up), background=Y)
    assert "have 0 rows this time, but had 500" in str(caught.value)


def test_blocks_of_other_widths_are_refused(counts):
    X, Y = counts
    with raises(FeaturesError, "width", "X") as caught:
        ContrastiveICA(2).fit(Blocks([X[:400], X[400:, :39]]), background=Y)
    assert "39 columns after row 400, but the blocks before it have 40" in str(caught.value)
    with raises(FeaturesError, "width", "background"):
        ContrastiveICA(2).fit(X, background=sp.csr_matrix(Y[:, :39]))
    with raises(DataError, "no-rows", "X"):
        ContrastiveICA(2).fit(Blocks([]), background=Y)


@pytest.mark.parametrize("kind", ["csr", "blocks", "memory map"])
def test_missing_values_are_named(kind, counts, tmp_path):
    X, Y = counts[0].copy(), counts[1]
    X[50, 3] = np.nan
    with raises(DataError, "not-finite", "X") as caught:
        ContrastiveICA(2).fit(CONTAINERS[kind](X, tmp_path), background=Y)
    assert "column 3" in str(caught.value)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_infinity_in_two_blocks_is_an_error_and_no_warning(make, counts):
    X, Y = counts[0].copy(), counts[1]
    X[[50, 500], 3] = np.inf
    with raises(DataError, "not-finite", "X"):
        ContrastiveICA(2).fit(Blocks([make(X[:300]), make(X[300:])]), background=Y)
    with raises(DataError, "not-finite", "X"):
        ContrastiveICA(2).fit(make(X), background=Y)


def test_names_of_a_dask_frame_are_kept_and_compared(counts, tmp_path):
    X, Y = (dask_frame(rows, tmp_path) for rows in counts)
    model = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    assert model.feature_names_in_[3] == "v3"
    assert_allclose(model.transform(X), model.transform(X.compute()), atol=1e-9)
    with raises(FeaturesError, "order", "X"):
        model.transform(X[X.columns[::-1]])
    with raises(FeaturesError, "width", "X"):
        model.transform(sp.csr_matrix(counts[0][:, :39]))
    again = model.fit(sp.csr_matrix(counts[0]), background=sp.csr_matrix(counts[1]))
    assert not hasattr(again, "feature_names_in_")
    with raises(FeaturesError, "order", "background"):
        ContrastiveICA(2).fit(X, background=Y[Y.columns[::-1]])


def test_sparse_sums_are_double_and_see_entries_in_parts(rng):
    X = sp.random(20_000, 3, 0.5, format="csr", random_state=0, dtype=np.float32)
    X.data[:] = rng.random(X.nnz) + 1000
    expected = X.toarray().astype(np.float64)
    assert_allclose(column_summary(as_rows(X)).mean, expected.mean(axis=0), rtol=1e-12)
    order = np.argsort(np.tile(np.repeat(np.arange(20_000), np.diff(X.indptr)), 2), kind="stable")
    twice = sp.csr_matrix(X.shape)
    twice.data, twice.indices = np.tile(X.data / 2, 2)[order], np.tile(X.indices, 2)[order]
    twice.indptr = 2 * X.indptr
    assert not twice.has_canonical_format
    for one, two in zip(column_summary(as_rows(twice)), column_summary(expected), strict=True):
        assert_allclose(one, two, rtol=1e-6)
    assert twice.nnz == 2 * X.nnz  # left as it was


def test_columns_of_frames_in_blocks_are_compared(counts):
    pd = pytest.importorskip("pandas")
    names = [f"v{j}" for j in range(40)]
    X, Y = (pd.DataFrame(part, columns=names) for part in counts)
    model = ContrastiveICA(2, random_state=0).fit(Blocks([X[:300], X[300:]]), background=Y)
    assert list(model.feature_names_in_) == names
    with raises(FeaturesError, "order", "X"):
        ContrastiveICA(2).fit(Blocks([X[:300], X[300:][names[::-1]]]), background=Y)
    with raises(FeaturesError, "order", "X"):
        model.transform(Blocks([X[names[::-1]]]))


@pytest.fixture
def frames(counts):
    pd = pytest.importorskip("pandas")
    names = [f"v{j}" for j in range(40)]
    return [pd.DataFrame(part, columns=names) for part in counts], names[::-1]


def test_names_that_a_later_block_has_are_kept_and_compared(counts, frames):
    (X, Y), other = frames
    late = Blocks([counts[0][:300], X[300:]])
    options = {"solver": "subspace", "random_state": 0}
    model = ContrastiveICA(2, **options).fit(
        late, background=Y
    )  # and nothing is said to be missing
    assert list(model.feature_names_in_) == list(X)
    assert_allclose(model.transform(late), model.transform(X), atol=1e-9)
    for wrong in ([counts[0][:300], X[300:600], X[600:][other]], [counts[0][:300], X[300:][other]]):
        with raises(FeaturesError, "order"):
            ContrastiveICA(2).fit(Blocks(wrong), background=Y)
        with raises(FeaturesError, "order", "X"):
            model.transform(Blocks(wrong))
        with raises(FeaturesError, "order"):
            ContrastiveICA(2).fit(X, background=Blocks(wrong))
    with warns(DelicateDataWarning, "names-missing"):
        ContrastiveICA(2, **options).fit(Blocks([counts[0]]), background=Y)


def test_blocks_of_other_variables_are_not_read_to_be_scored(counts):
    X, Y = counts
    model = ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y)
    read = []

    def parts(width):
        for i in range(0, 900, 300):
            read.append(i)
            yield X[i : i + 300, :width]

    with raises(FeaturesError, "width", "X"):
        model.transform(Blocks(lambda: parts(39)))
    assert read == [0]
    read.clear()
    scores = model.transform(Blocks(lambda: parts(40)))
    assert read == [0, 0, 300, 600]  # the first also says how wide they are
    assert_allclose(scores, model.transform(X), atol=1e-9)


EMPTY = {
    "csr": lambda X, folder: sp.csr_matrix(X),
    "hdf5": hdf5,
    "dask array": lambda X, folder: pytest.importorskip("dask.array").from_array(X),
    "array API": lambda X, folder: pytest.importorskip("array_api_strict").asarray(X),
    "blocks": lambda X, folder: Blocks([X]),
    "sparse blocks": lambda X, folder: Blocks([sp.csr_matrix(X)]),
}


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize(("shape", "code"), [((0, 40), "too-few-rows"), ((9, 0), "no-variables")])
def test_rows_of_which_there_are_none_are_refused_by_name(kind, shape, code, counts, tmp_path):
    nothing = EMPTY[kind](np.zeros(shape), tmp_path)
    with raises(DataError, code, "X"):
        ContrastiveICA(2).fit(nothing, background=counts[1])
    with raises(DataError, code, "background"):
        ContrastivePCA(2).fit(counts[0], background=nothing)


def test_complex_numbers_are_refused(counts):
    X, Y = counts
    for make in (sp.csr_matrix, lambda rows: Blocks([rows])):
        with raises(DataError, "complex"):
            ContrastiveICA(2).fit(make(X + 1j * X), background=Y)


def test_what_holds_rows_is_named(counts, tmp_path):
    X, Y = counts
    np.save(tmp_path / "rows.npy", X)
    from contrica.rows.files.opening import open_rows

    anndata = pytest.importorskip("anndata")
    for wrong, code, advice in (
        (str(tmp_path / "rows.npy"), "path", "open_rows"),
        (tmp_path / "rows.npy", "path", "open_rows"),
        (open_rows(tmp_path / "rows.npy"), "opened", "Pass its .rows"),
        (anndata.AnnData(X), "anndata", "adata.X"),
    ):
        with raises(DataError, code, "X") as caught:
            ContrastiveICA(2).fit(wrong, background=Y)
        assert advice in caught.value.remedy


def test_one_dense_dataset_is_not_read_for_each_step(rng):
    """Lanczos iterations are for what can be read as often as one likes."""
    X, Y = rng.laplace(size=(2, 400, 350))
    rows = Again(X)
    ContrastiveICA(1, solver="subspace", n_foreground=1, n_pcs=5, random_state=0).fit(
        rows, background=sp.csr_matrix(Y)
    )
    assert rows.passes < 12


def test_missing_values_have_no_scores(counts):
    X, Y = counts
    model = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    bad = X.copy()
    bad[5, 0] = np.nan
    torch = pytest.importorskip("torch")
    for held in (sp.csr_matrix(bad), torch.as_tensor(bad)):
        with raises(DataError, "not-finite", "X"):
            model.transform(held)


def test_rows_far_from_zero_have_the_same_axes(counts, monkeypatch):
    """Dense rows are centred before they are multiplied, by Lanczos too."""
    expected = common_basis(counts, 5)
    monkeypatch.setattr(projection, "DENSE_SCATTER", 10)
    far = [as_rows(Again(rows + 1e6)) for rows in counts]
    assert_allclose(common_basis(far, 5), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_samples_are_said(monkeypatch, rng):
    from contrica.moments import working

    X, Y = rng.laplace(size=(2, 3000, 20))
    X[:, :3] += 3 * rng.choice([-1, 1], (3000, 1))
    whole = ContrastiveICA(1, solver="subspace", random_state=0).fit(X, background=Y)
    assert whole.n_rows_sampled_ == (3000, 3000)
    assert "sample" not in whole.summary()
    monkeypatch.setattr(working, "MANY_ROWS", 0)
    monkeypatch.setattr(working, "MAX_ENTRIES", 20 * 4000)
    found = []
    for make in (np.asarray, sp.csr_matrix, Again):
        held = make(X), make(Y)
        model = ContrastiveICA(1, solver="subspace", random_state=0).fit(
            held[0], background=held[1]
        )
        assert model.n_rows_sampled_ == (2000, 2000)
        assert "a sample of 2000 of 3000" in model.summary()
        found.append(model.components_)
    # a rotation may end a step earlier where rounding differs
    assert_allclose(found[1], found[0], atol=1e-6)
    assert_allclose(found[2], found[0], atol=1e-6)
    assert abs(found[0] @ whole.components_.T).item() > 0.99


def test_arrays_stay_arrays(counts):
    assert as_rows(counts[0]) is counts[0]
    assert not isinstance(as_rows([[1.0, 2.0], [3.0, 4.0]]), Rows)


def test_flat_blocks_and_lists_of_matrices_are_refused_in_words(counts):
    X, Y = (np.asarray(part, dtype=float) for part in counts)
    with raises(DataError, "dimensions", "X"):
        ContrastiveICA(1).fit(Blocks([X, X[0]]), background=Y)
    with raises(DataError, "list-of-matrices", "X"):
        ContrastiveICA(1).fit([X, X], background=Y)
