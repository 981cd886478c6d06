"""The same code on arrays of numpy, torch and the array API's own; on a GPU where there is one."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import contrica.rows.moving
from contrica import ContrastiveICA, ProportionalContrastiveICA
from contrica.errors import DataError, PackageMissingError, ParameterError, collected
from contrica.moments.fourth import cumulants
from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.packed import BlockMoments, Moments
from contrica.moments.projection import common_basis
from contrica.rows.containers import as_rows
from contrica.rows.device import to_numpy
from contrica.rows.moving import on_device
from contrica.rows.products import chosen_rows, gram_times, projected, rows_times
from contrica.rows.protocol import iterate_blocks
from contrica.rows.summary import column_summary
from tests.said import raises


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
    import scipy.sparse as sp

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
