"""The same code on arrays of numpy, torch and the array API's own; on a GPU where there is one."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.linalg import eigh

import contrica.moments.projection
import contrica.rows.moving
import contrica.rows.summary
import contrica.solvers.permutation_null
from contrica import ContrastiveICA, ProportionalContrastiveICA
from contrica.errors import (
    DataError,
    MemoryBudgetError,
    PackageMissingError,
    ParameterError,
    collected,
)
from contrica.inference import stability
from contrica.inference._data import Study
from contrica.moments import spectra
from contrica.moments.fourth import cumulants
from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.packed import BlockMoments, Moments
from contrica.moments.projection import common_basis
from contrica.rows.compressed import CompressedRows
from contrica.rows.containers import as_rows
from contrica.rows.device import TensorRows, to_numpy
from contrica.rows.moving import check_one_device, on_device, work_on
from contrica.rows.products import chosen_rows, gram_times, in_memory, projected, rows_times
from contrica.rows.protocol import iterate_blocks
from contrica.rows.scaled import divided_rows
from contrica.rows.selected import select
from contrica.rows.summary import column_summary
from contrica.solvers import negentropy
from tests.said import raises

# torch says once in a process that compressed rows are new
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")


def strict(X):
    return pytest.importorskip("array_api_strict").asarray(X)


def _torch():
    """The module, with what its tensors need, or a skip."""
    pytest.importorskip("array_api_compat")
    return pytest.importorskip("torch")


def torch_on(device):
    def make(X):
        torch = _torch()
        if device == "cuda" and not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
        return torch.as_tensor(X).to(device)

    return make


def cupy(X):
    module = pytest.importorskip("cupy")
    try:
        return module.asarray(X)
    except module.cuda.runtime.CUDARuntimeError:
        pytest.skip("cupy sees no GPU")


KINDS = {
    "array-api-strict": strict,
    "torch": torch_on("cpu"),
    "torch cuda": torch_on("cuda"),
    "cupy": cupy,
}


@pytest.fixture(params=KINDS)
def make(request):
    pytest.importorskip("array_api_compat")
    return KINDS[request.param]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 8))
    X, Y = (rng.laplace(size=(n, 8)) @ A for n in (1500, 1200))
    X += 3 * rng.choice([-1, 1], (1500, 1)) * rng.standard_normal(8)
    return X, Y


def test_sums_of_tensors_are_those_of_arrays(make, pair):
    X = pair[0]
    rows = as_rows(make(X))
    assert rows.shape == X.shape
    block = next(iterate_blocks(rows, 100))
    assert type(block) is type(make(X[:1]))  # where it was
    assert_allclose(np.vstack([to_numpy(part) for part in iterate_blocks(rows, 700)]), X)
    for one, two in zip(column_summary(rows), column_summary(X), strict=True):
        assert_allclose(one, two, rtol=1e-10)
    M = pair[1][:8, :3].copy()
    assert_allclose(rows_times(rows, M), X @ M, rtol=1e-10)
    assert_allclose(gram_times(rows, M), X.T @ X @ M, rtol=1e-10)
    assert_allclose(chosen_rows(rows, np.array([3, 1400])), X[[3, 1400]])
    for found, expected in ((rows, X), (projected(rows, M), X @ M)):
        one, two = cumulants(found), cumulants(expected)
        assert_allclose(one.mean, two.mean, rtol=1e-10, atol=1e-12)
        assert_allclose(one.covariance, two.covariance, rtol=1e-10)
        scale = np.abs(two.fourth.flatten()).max()
        assert_allclose(one.fourth.flatten(), two.fourth.flatten(), atol=1e-9 * scale)
        assert_allclose(one.third.entries, two.third.entries, atol=1e-9 * scale)


def test_contractions_of_tensors_are_those_of_arrays(make, pair):
    X = pair[0]
    one, two = CumulantOperator(as_rows(make(X))), CumulantOperator(X)
    rng = np.random.default_rng(1)
    V = rng.standard_normal((3, 8, 8))
    V = V + V.transpose(0, 2, 1)
    U = rng.standard_normal((8, 4))
    assert_allclose(one.apply(V), two.apply(V), rtol=1e-9)
    assert_allclose(one.apply_vectors(U), two.apply_vectors(U), rtol=1e-9)
    assert_allclose(one.squared_norm(), two.squared_norm(), rtol=1e-9)
    assert_allclose(one.third.apply_vectors(U), two.third.apply_vectors(U), rtol=1e-8)
    assert_allclose(one.third.slices(U), two.third.slices(U), rtol=1e-8, atol=1e-9)
    assert_allclose(one.third.squared_norm(), two.third.squared_norm(), rtol=1e-8)


def test_axes_of_tensors_are_those_of_arrays(make, pair):
    found = common_basis([as_rows(make(part)) for part in pair], 4)
    assert_allclose(found, common_basis(pair, 4), atol=1e-9)


def torch_csr(device):
    def make(X):
        torch = _torch()
        if device == "cuda" and not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
        X = sp.csr_matrix(X)
        parts = (torch.as_tensor(part).to(device) for part in (X.indptr, X.indices, X.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compressed rows are new to torch
            return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=False)

    return make


def torch_coo(X):
    return torch_csr("cpu")(X).to_sparse_coo()


def cupy_csr(X):
    cupy(X)  # skips
    return pytest.importorskip("cupyx.scipy.sparse").csr_matrix(sp.csr_matrix(X))


def moved(device, share):
    """Compressed rows of scipy, taken to a device as a whole or in blocks."""

    def make(X):
        torch = _torch()
        if device == "cuda" and not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
        before = contrica.rows.moving.DEVICE_SHARE
        contrica.rows.moving.DEVICE_SHARE = share
        try:
            with collected():
                return on_device(as_rows(sp.csr_matrix(X)), device)
        finally:
            contrica.rows.moving.DEVICE_SHARE = before

    return make


COMPRESSED = {
    "torch csr": torch_csr("cpu"),
    "torch coo": torch_coo,
    "torch csr cuda": torch_csr("cuda"),
    "cupyx csr": cupy_csr,
    "scipy moved": moved("cpu:0", 0.3),
    "scipy moved in blocks": moved("cpu:0", 0.0),
    "scipy moved to cuda": moved("cuda", 0.3),
    "scipy moved to cuda in blocks": moved("cuda", 0.0),
}


@pytest.fixture(params=COMPRESSED)
def make_compressed(request):
    pytest.importorskip("array_api_compat")
    return COMPRESSED[request.param]


@pytest.fixture(scope="module")
def sparse_pair(pair):
    rng = np.random.default_rng(2)
    return [np.where(rng.random(part.shape) < 0.4, part, 0.0) for part in pair]


def test_sums_of_compressed_rows_are_those_of_arrays(make_compressed, sparse_pair, monkeypatch):
    X, Y = sparse_pair
    for n_pieces in (1, 5):
        rows = as_rows(make_compressed(X))
        if n_pieces == 5:  # of 300 rows, by their variables or as if they had 128 entries
            width = 128 if isinstance(rows, CompressedRows) else 8
            monkeypatch.setattr(rows, "block_bytes", 8 * 300 * width)
        assert rows.shape == X.shape
        found = [to_numpy(part) for part in iterate_blocks(rows, 700)]
        assert len(found) == 3
        assert_allclose(np.vstack(found), X)
        assert len(list(rows.pieces())) == n_pieces
        for one, two in zip(column_summary(rows), column_summary(X), strict=True):
            assert_allclose(one, two, rtol=1e-10)
        M, mean = Y[:8, :3].copy(), X.mean(axis=0)
        assert_allclose(rows_times(rows, M), X @ M, rtol=1e-10, atol=1e-12)
        assert_allclose(gram_times(rows, M, mean), (X - mean).T @ (X - mean) @ M, rtol=1e-10)
        assert_allclose(chosen_rows(rows, np.array([3, 1400])), X[[3, 1400]])
        scale = np.arange(1.0, 9.0)
        divided = divided_rows(divided_rows(rows, scale), scale)
        assert_allclose(rows_times(divided, M), X / scale**2 @ M, rtol=1e-10, atol=1e-12)
        one, two = cumulants(projected(rows, M)), cumulants(X @ M)
        assert_allclose(one.fourth.flatten(), two.fourth.flatten(), rtol=1e-8)


def test_axes_of_compressed_rows_are_those_of_arrays(make_compressed, sparse_pair, monkeypatch):
    expected = common_basis(sparse_pair, 3)
    parts = [make_compressed(part) for part in sparse_pair]
    assert_allclose(common_basis(parts, 3), expected, atol=1e-9)
    # of too many variables for a scatter matrix, from products
    monkeypatch.setattr(contrica.moments.projection, "DENSE_SCATTER", 4)
    assert_allclose(common_basis(parts, 3), expected, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"scale": "pooled"}, {"dtype": "float32"}], ids=str)
def test_a_fit_of_compressed_rows_is_that_of_arrays(make_compressed, options, sparse_pair):
    X, Y = sparse_pair
    options = options | {"solver": "subspace"}
    expected = ContrastiveICA(2, random_state=0, **options).fit(X, background=Y)
    given = make_compressed(X)
    model = ContrastiveICA(2, random_state=0, **options).fit(given, background=make_compressed(Y))
    tolerance = 1e-3 if "dtype" in options else 1e-6  # four digits of single precision
    assert_allclose(model.components_, expected.components_, atol=tolerance)
    scores = model.transform(given)
    assert type(scores).__module__.split(".")[0] in ("numpy", "torch", "cupy")
    assert_allclose(to_numpy(scores), model.transform(X), atol=1e-9)


def test_compressed_rows_of_scipy_are_moved_before_they_are_read(sparse_pair, monkeypatch):
    _torch()
    X, Y = map(sp.csr_matrix, sparse_pair)
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    monkeypatch.setattr(contrica.rows.summary, "_sparse_summary", None)  # the CPU's sums
    model = ContrastiveICA(2, random_state=0, device="cpu:0").fit(X, background=Y)
    assert_allclose(model.components_, expected.components_, atol=1e-6)


def test_entries_in_parts_and_small_types_are_summed_as_doubles():
    torch = _torch()
    parts = ([0, 2, 3], [1, 1, 0], [1, 2, 4])
    tensors = [torch.tensor(part) for part in parts]
    for dtype in (torch.float32, torch.int16, torch.bool):
        rows = torch.sparse_csr_tensor(
            *tensors[:2], tensors[2].to(dtype), size=(2, 3), check_invariants=False
        )
        found = to_numpy(next(iterate_blocks(as_rows(rows), 10)))
        expected = [[0, 2, 0], [1, 0, 0]] if dtype == torch.bool else [[0, 3, 0], [4, 0, 0]]
        assert found.dtype == np.float64
        assert_allclose(found, expected)


@pytest.mark.parametrize(
    "parts",
    [([0, 1, 2], [0, 3]), ([0, 1, 2], [-1, 0]), ([0, 2, 1], [0, 1]), ([1, 1, 2], [0, 1])],
    ids=["column beyond", "column before", "rows backwards", "first row begins late"],
)
def test_damaged_compressed_tensors_are_refused(parts):
    torch = _torch()
    ends, columns = (torch.tensor(part) for part in parts)
    entries = torch.ones(2, dtype=torch.float64)
    rows = torch.sparse_csr_tensor(ends, columns, entries, size=(2, 3), check_invariants=False)
    with raises(DataError, "bad-indices", "X"):
        as_rows(rows)


def test_gaps_in_compressed_tensors_are_named(sparse_pair):
    X, Y = (part.copy() for part in sparse_pair)
    X[3, 2] = np.nan
    for device, kind in ((None, torch_csr("cpu")), ("cpu:0", sp.csr_matrix)):
        _torch()
        with raises(DataError, "not-finite", "X") as caught:
            ContrastiveICA(2, device=device).fit(kind(X), background=kind(Y))
        assert "column 2" in str(caught.value)


def test_some_rows_and_variables_of_compressed_tensors(make_compressed, sparse_pair):
    X = sparse_pair[0]
    data = make_compressed(X)
    rows, columns = np.arange(len(X)) % 3 == 1, np.array([5, 0, 2])
    for lazily in (False, True):
        found = select(data, rows, columns, lazily=lazily)
        assert_allclose(in_memory(found), X[rows][:, columns])
        assert_allclose(rows_times(found, np.eye(3)), X[rows][:, columns])


def test_large_matrices_are_worked_on_where_rows_are(rng, monkeypatch):
    _torch()
    monkeypatch.setattr(contrica.moments.spectra, "MIN_CARD_SIZE", 2)
    monkeypatch.setattr(contrica.moments.projection, "MAX_PACKED_FEATURES", 10)
    monkeypatch.setattr(contrica.rows.moving, "MIN_CARD_ENTRIES", 1)
    A = rng.standard_normal((40, 40))
    X, Y = (rng.laplace(size=(n, 40)) @ A for n in (900, 700))
    X += 9 * rng.choice([-1, 1], (900, 2)) @ rng.standard_normal((2, 40))
    seen = []
    whole = contrica.solvers.permutation_null.top_ratio
    monkeypatch.setattr(
        contrica.solvers.permutation_null,
        "top_ratio",
        lambda fore, back: seen.append(type(fore).__module__) or whole(fore, back),
    )
    found = [
        ContrastiveICA(3, n_pcs=None, random_state=0, solver="subspace", device=device).fit(
            X, background=Y
        )
        for device in (None, "cpu:0")
    ]
    assert set(seen) == {"torch"}  # of the second one only
    one, two = (model.scree_ for model in found)
    assert_allclose(one.p_values, two.p_values)
    assert_allclose(one.ratios, two.ratios, rtol=1e-9)
    assert_allclose(one.null_mean, two.null_mean, rtol=1e-9)
    assert_allclose(found[0].components_, found[1].components_, atol=1e-6)
    assert_allclose(found[0].contrast_ratio_, found[1].contrast_ratio_, rtol=1e-6)


@pytest.mark.parametrize("device", ["cpu:0", "cuda"])
def test_spectra_of_a_card_are_those_of_lapack(device, rng, monkeypatch):
    torch = _torch()
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    monkeypatch.setattr(contrica.moments.spectra, "MIN_CARD_SIZE", 2)
    rows = rng.standard_normal((90, 60))
    fore, back = rows.T @ rows, np.diag(rng.uniform(1, 2, 60))
    flat = fore.copy()
    flat[:, 5] = flat[5, :] = 0.0  # of lower rank
    columns = rng.standard_normal((60, 3))
    with work_on(device):
        assert spectra.is_worked_on_card(60)
        pair = spectra.there(fore), spectra.there(back)
        assert_allclose(spectra.top_ratio(*pair), eigh(fore, back)[0][-1], rtol=1e-10)
        assert_allclose(spectra.top_value(fore), np.linalg.eigvalsh(fore)[-1], rtol=1e-10)
        assert_allclose(spectra.symmetric_values(fore), np.linalg.eigvalsh(fore), rtol=1e-9)
        values, vectors = spectra.symmetric_spectrum(fore.copy(), 4)
        assert_allclose(fore @ vectors, vectors * values, atol=1e-9 * values[-1])
        ratios, axes = spectra.contrast_spectrum(fore, back)
        assert_allclose(ratios, eigh(fore, back)[0], rtol=1e-9)
        assert_allclose(axes.T @ back @ axes, np.eye(60), atol=1e-10)
        assert spectra.varies_everywhere(fore)
        assert not spectra.varies_everywhere(flat)
        assert not spectra.is_positive_definite(spectra.there(-fore))
        for matrix in (fore, flat):
            expected = np.linalg.pinv(matrix, rcond=1e-13, hermitian=True) @ columns
            assert_allclose(spectra.pseudo_solve(matrix, columns), expected, atol=1e-9)
        Q = spectra.orthonormal(columns)
        assert_allclose(Q @ (Q.T @ columns), columns, atol=1e-12)


@pytest.mark.parametrize("device", ["cpu:0", "cuda"])
@pytest.mark.parametrize("repeated", [False, True])
def test_negentropy_and_its_slope_on_a_card_are_those_of_numpy(device, repeated, rng):
    torch = _torch()
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    rows, turns = rng.laplace(size=(2300, 6)), np.linalg.qr(rng.standard_normal((3, 6, 6)))[0]
    if repeated:
        rows = rows[rng.integers(2300, size=2300)]
    with work_on(device):
        card = negentropy._CardRows(rows)
        here = negentropy._Rows(rows)
        for one, two in zip(card.heights(turns, 0.3), here.heights(turns, 0.3), strict=True):
            assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_resamples_stay_on_the_device_of_the_model(pair, container):
    _torch()
    X, Y = map(container, pair)
    options = {"n_resamples": 3, "random_state": 0}
    found, kept = [], {"solver": "subspace", "random_state": 0}
    for device, n_jobs in ((None, None), ("cpu:0", None), ("cpu:0", 2)):
        model = ContrastiveICA(2, device=device, **kept).fit(X, background=Y)
        found.append(stability(model, X, background=Y, n_jobs=n_jobs, **options))
    for other in found[1:]:
        assert_allclose(other.similarity, found[0].similarity, atol=1e-6)
        assert_allclose(other.ratio_intervals, found[0].ratio_intervals, rtol=1e-6)
    study = Study(model, X, Y, None, None)
    assert {isinstance(part, TensorRows) for part in study.placed} == {not sp.issparse(X)}
    assert study.placed is study.placed  # once
    assert "placed" not in pickle.loads(pickle.dumps(study)).__dict__


def test_little_memory_on_a_card_is_said_before(pair, monkeypatch):
    _torch()
    X, Y = pair
    whole = contrica.rows.moving._device

    def with_free(size):
        monkeypatch.setattr(
            contrica.rows.moving, "_device", lambda name: whole(name)._replace(free=size)
        )

    with_free(3e9)  # room for blocks, and for these rows
    ContrastiveICA(2, random_state=0, device="cpu:0").fit(X, background=Y)
    with_free(1e9)
    with raises(MemoryBudgetError, "device-memory", "device") as caught:
        ContrastiveICA(2, random_state=0, device="cpu:0").fit(X, background=Y)
    assert "1 GB" in str(caught.value)


def test_tensors_on_several_cards_are_refused(pair):
    torch = _torch()
    X, Y = (as_rows(torch.as_tensor(part)) for part in pair)
    X.device, Y.device = "cuda:1", "cuda:0"
    with raises(ParameterError, "mixed-devices", "device") as caught:
        ContrastiveICA(2).fit(X, background=Y)
    assert "X on cuda:1 and background on cuda:0" in str(caught.value)
    check_one_device([X], ["X"], "cuda:1")
    check_one_device([X, pair[1]], ["X", "background"], "cpu")
    with raises(ParameterError, "mixed-devices", "device"):
        check_one_device([X], ["X"], "cuda")


def test_no_more_than_two_blocks_are_on_their_way():
    moved, read = [], []

    def blocks():
        for i in range(5):
            read.append(i)
            yield i

    for i in contrica.rows.moving._ahead(lambda block: moved.append(block) or block, blocks()):
        assert len(read) <= i + 2
    assert moved == read == list(range(5))


@pytest.mark.parametrize("method", [ContrastiveICA, ProportionalContrastiveICA])
def test_a_fit_of_tensors_is_that_of_arrays(method, make, pair):
    X, Y = pair
    expected = method(2, random_state=0).fit(X, background=Y)
    held = make(X)
    model = method(2, random_state=0).fit(held, background=make(Y))
    assert isinstance(model.components_, np.ndarray)
    assert_allclose(model.components_, expected.components_, atol=1e-6)
    scores = model.transform(held)
    assert type(scores) is type(held)
    assert getattr(scores, "device", None) == getattr(held, "device", None)
    assert_allclose(to_numpy(scores), expected.transform(X), atol=1e-6)


def test_tensors_of_single_precision_and_of_whole_numbers(pair):
    torch = _torch()
    X, Y = (np.round(part) for part in pair)
    expected = ContrastiveICA(1, random_state=0).fit(X, background=Y)
    for dtype in (torch.float32, torch.int16):
        held = [torch.as_tensor(part).to(dtype) for part in (X, Y)]
        model = ContrastiveICA(1, random_state=0).fit(held[0], background=held[1])
        assert_allclose(model.components_, expected.components_, atol=1e-6)
        scores = model.transform(held[0])
        assert scores.dtype == (torch.float64 if dtype == torch.int16 else torch.float32)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("share", [0.5, 0.0], ids=["held there", "moved block by block"])
def test_numpy_rows_are_moved_to_a_device(device, share, pair, monkeypatch):
    torch = _torch()
    pytest.importorskip("array_api_compat")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    monkeypatch.setattr(contrica.rows.moving, "DEVICE_SHARE", share)
    where = "cpu:0" if device == "cpu" else device  # not the plain "cpu", which stays with numpy
    with collected():
        moved = on_device(pair[0], where)
    assert isinstance(next(iterate_blocks(moved, 50)), torch.Tensor)
    X, Y = pair
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    with collected() as told:
        model = ContrastiveICA(2, random_state=0, device=where).fit(X, background=Y)
    assert {warning.code for warning in told} == ({"device-memory"} if share == 0 else set())
    assert_allclose(model.components_, expected.components_, atol=1e-6)
    assert isinstance(model.transform(X), np.ndarray)


@pytest.mark.parametrize("device", [None, "cpu:0", "cuda"])
def test_single_precision_keeps_four_digits(device, pair):
    if device is not None:
        torch = _torch()
        if device == "cuda" and not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
    X, Y = pair
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    model = ContrastiveICA(2, random_state=0, device=device, dtype="float32").fit(X, background=Y)
    assert_allclose(model.components_, expected.components_, atol=1e-4)
    assert np.abs(model.components_ - expected.components_).max() > 1e-12  # it was single indeed
    rows = on_device(X, device, "float32")
    one, two = cumulants(rows).fourth.flatten(), cumulants(X).fourth.flatten()
    assert np.abs(one - two).max() < 1e-5 * np.abs(two).max()


@pytest.mark.parametrize("device", [None, "cpu:0"])
def test_single_precision_does_not_mind_a_large_mean(device, pair):
    if device is not None:
        _torch()
    X, Y = (part + 1e6 for part in pair)
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    model = ContrastiveICA(2, random_state=0, device=device, dtype="float32").fit(X, background=Y)
    assert_allclose(model.components_, expected.components_, atol=1e-4)
    assert_allclose(model.mean_, expected.mean_)


def test_single_precision_is_right_for_every_container(pair):
    array = pytest.importorskip("dask.array")
    X, Y = (part + 5 for part in pair)
    Y = Y + 1
    expected = ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y)
    kinds = (np.asarray, sp.csr_matrix, lambda rows: array.from_array(rows, chunks=(400, 8)))
    for fore in kinds:
        for back in kinds:
            model = ContrastiveICA(2, solver="subspace", random_state=0, dtype="float32")
            model.fit(fore(X), background=back(Y))
            assert_allclose(model.components_, expected.components_, atol=1e-3)
            assert_allclose(model.contrast_ratio_, expected.contrast_ratio_, rtol=1e-3)


def test_single_precision_of_a_sample_of_rows(pair, monkeypatch):
    from contrica.moments import working

    X, Y = (part + 1000 for part in pair)
    monkeypatch.setattr(working, "MANY_ROWS", 2000)
    monkeypatch.setattr(working, "MAX_ENTRIES", 0)
    found = [
        ContrastiveICA(2, solver="subspace", random_state=0, dtype=dtype).fit(X, background=Y)
        for dtype in ("float64", "float32")
    ]
    assert found[0].n_rows_sampled_[0] < len(X)
    assert_allclose(found[1].components_, found[0].components_, atol=1e-3)
    assert_allclose(found[1].contrast_ratio_, found[0].contrast_ratio_, rtol=1e-3)


def test_single_precision_is_used_where_the_work_is(pair, monkeypatch):
    from contrica.moments import packed as module

    seen = []
    whole = module._add_product
    monkeypatch.setattr(
        module, "_add_product", lambda panel, rows: (seen.append(rows.dtype), whole(panel, rows))
    )
    ContrastiveICA(2, random_state=0, dtype="float32").fit(pair[0], background=pair[1])
    assert set(seen) == {np.dtype("float32")}


def test_what_is_not_there_is_said(pair, monkeypatch):
    X, Y = pair
    with pytest.raises(ValueError, match='dtype="half"'):
        ContrastiveICA(2, dtype="half").fit(X, background=Y)
    torch = _torch()
    if not torch.cuda.is_available():
        with raises(ParameterError, "unusable-device", "device"):
            ContrastiveICA(2, device="cuda").fit(X, background=Y)
    with raises(ParameterError, "unusable-device", "device") as caught:
        ContrastiveICA(2, device="abacus").fit(X, background=Y)
    assert 'device="abacus" is not a device' in str(caught.value)
    with raises(DataError, "dimensions", "X"):
        ContrastiveICA(2).fit(torch.zeros((2, 3, 4)), background=Y)
    monkeypatch.setattr(contrica.rows.moving, "_torch", lambda: None)
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with raises(PackageMissingError, "package-missing", "device") as caught:
        ContrastiveICA(2, device="cuda").fit(X, background=Y)
    assert "pip install 'contrica[gpu]'" in str(caught.value)
    monkeypatch.setitem(__import__("sys").modules, "array_api_compat", None)
    with raises(PackageMissingError, "package-missing") as caught:
        Moments(8).update(torch.as_tensor(X))
    assert "need array-api-compat" in str(caught.value)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_moments_of_tensors_go_on_with_rows_after_a_journey(make, p, rng):
    A, B = rng.laplace(size=(50, p)), rng.laplace(size=(30, p))
    moments = pickle.loads(pickle.dumps(BlockMoments(p).update(make(A)))).update(B)
    found, expected = moments.cumulants(), cumulants(np.vstack([A, B]), storage="packed")
    assert_allclose(found.fourth.flatten(), expected.fourth.flatten(), atol=1e-10)


def test_blocks_of_two_kinds_are_all_counted(make, rng):
    X = rng.laplace(size=(90, 3))
    expected = cumulants(X).fourth.flatten()
    for first, second in ((make, np.asarray), (np.asarray, make)):
        moments = (
            BlockMoments(3).update(first(X[:40])).update(second(X[40:70])).update(first(X[70:]))
        )
        assert moments.n_samples == 90
        assert_allclose(moments.cumulants().fourth.flatten(), expected, atol=1e-11)


class OnCard:
    """An AnnData object whose matrix is elsewhere, as of rapids-singlecell."""

    def __init__(self, adata, X):
        vars(self).update(_adata=adata, X=X)

    def __getattr__(self, name):
        return getattr(self._adata, name)


@pytest.mark.parametrize("kind", ["torch csr", "torch csr cuda", "cupyx csr"])
def test_cells_of_a_matrix_on_a_card(kind, rng):
    anndata = pytest.importorskip("anndata")
    from contrica import tl

    X = np.where(rng.random((600, 20)) < 0.5, rng.laplace(size=(600, 20)), 0.0)
    X[300:, 3] *= 4
    given = COMPRESSED[kind](X)
    cells = [anndata.AnnData(sp.csr_matrix(X)) for _ in range(2)]
    for adata in cells:
        adata.obs["condition"] = np.repeat(["ctrl", "stim"], 300)
    tl.cica(cells[0], "condition", "ctrl", solver="subspace")
    tl.cica(OnCard(cells[1], given), "condition", "ctrl", solver="subspace")
    for name in ("obsm", "varm"):
        key = "cica" if name == "varm" else "X_cica"
        one, two = (getattr(adata, name)[key] for adata in cells)
        assert_allclose(one, two, atol=1e-8)
