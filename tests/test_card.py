"""Whole fits by the way of a card, which "cpu:0" of torch takes too: the same answers, found there."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import contrica.inference
import contrica.moments.fourth
import contrica.moments.matrix_free
import contrica.moments.packed
import contrica.moments.spectra
import contrica.rows.moving
import contrica.solvers.permutation_null
from contrica import ContrastiveICA
from contrica.errors import MemoryBudgetError, ParameterError, collected
from contrica.inference import significance
from contrica.rows.containers import as_rows
from contrica.rows.device import package_of
from contrica.rows.groups import as_groups
from contrica.rows.moving import (
    card,
    check_one_device,
    fit_blocks,
    is_on_card,
    settle_on,
    there,
    work_on,
)
from contrica.rows.products import projected_there
from contrica.rows.scaled import divided_rows
from contrica.rows.selected import SelectedRows
from contrica.solvers.group_design import GroupSums, sums_pay_on_card
from contrica.solvers.joint.terms import as_terms
from contrica.solvers.rescaling import Rescaling
from contrica.solvers.weights import RowGroups
from tests.said import raises

# torch says once in a process that compressed rows are new
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")

# What tests take for a card: torch's own name for the CPU, which numpy's way does not have.
CARD = "cpu:0"


@pytest.fixture(autouse=True)
def torch():
    pytest.importorskip("array_api_compat")
    return pytest.importorskip("torch", reason="tensors of torch take the way of a card")


@pytest.fixture
def small(monkeypatch):
    """Small matrices and few rows pay there as well."""
    monkeypatch.setattr(contrica.moments.spectra, "MIN_CARD_SIZE", 2)
    monkeypatch.setattr(contrica.rows.moving, "MIN_CARD_ENTRIES", 1)


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 12))
    X, Y = (rng.laplace(size=(n, 12)) @ A for n in (960, 720))
    X += 5 * rng.choice([-1, 1], (960, 2)) @ rng.standard_normal((2, 12))
    return tuple(np.where(rng.random(part.shape) < 0.7, part, 0.0) for part in (X, Y))


GROUPS = {"groups": np.arange(960) % 12, "background_groups": 100 + np.arange(720) % 12}


def dense(torch, X):
    return torch.as_tensor(X)


def compressed(torch, X):
    X = sp.csr_matrix(X)
    parts = (torch.as_tensor(part) for part in (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=False)


def array(torch, X):
    return X


KINDS = {"array": array, "tensor": dense, "compressed tensor": compressed}


@pytest.fixture(params=KINDS)
def kind(request, torch):
    return lambda X: KINDS[request.param](torch, X)


def seen_by(monkeypatch, owner, name, argument):
    """Packages of an argument of a function, as calls come."""
    seen, whole = [], getattr(owner, name)

    def telling(*given, **options):
        seen.append(package_of(given[argument]))
        return whole(*given, **options)

    monkeypatch.setattr(owner, name, telling)
    return seen


# --- sums ---


@pytest.mark.parametrize("scale", ["none", "pooled", "each"])
@pytest.mark.parametrize("width", [4, None])
def test_cumulants_are_summed_where_rows_are(kind, scale, width, pair, small, monkeypatch):
    """The third as well as the fourth: nothing of it is in numpy's arrays."""
    X, Y = pair
    options = {"solver": "joint", "n_background": 3, "n_foreground": 2, "n_pcs": width}
    options |= {"scale": scale, "random_state": 0}
    expected = ContrastiveICA(2, **options).fit(X, background=Y)
    seen = seen_by(monkeypatch, contrica.moments.packed.BlockMoments, "_add_block", 1)
    model = ContrastiveICA(2, device=CARD, **options).fit(kind(X), background=kind(Y))
    assert set(seen) == {"torch"}
    assert_allclose(model.components_, expected.components_, atol=1e-7)
    assert_allclose(model.background_components_, expected.background_components_, atol=1e-7)


def test_matrix_free_cumulants_are_contracted_where_rows_are(kind, pair, monkeypatch):
    X, Y = pair
    monkeypatch.setattr(contrica.moments.fourth, "MAX_PACKED_FEATURES", 3)
    options = {"solver": "joint", "n_background": 2, "n_foreground": 2, "random_state": 0}
    expected = ContrastiveICA(2, n_pcs=4, **options).fit(X, background=Y)
    module = contrica.moments.matrix_free
    seen = seen_by(monkeypatch, module._Contractions, "_add", 1)
    slices = seen_by(monkeypatch, module._Slices, "_add", 1)
    model = ContrastiveICA(2, n_pcs=4, device=CARD, **options).fit(kind(X), background=kind(Y))
    assert set(seen) == set(slices) == {"torch"}
    assert_allclose(model.components_, expected.components_, atol=1e-6)


def test_projected_rows_stay_on_the_card(torch, pair, monkeypatch):
    X = pair[0]
    basis = np.linalg.qr(pair[1][:12, :5])[0]
    given = as_rows(torch.as_tensor(X))
    assert projected_there(given, basis) is None  # no card
    with work_on(CARD):
        assert projected_there(X, basis) is None
        assert projected_there(given, None) is given
        single = as_rows(torch.as_tensor(X, dtype=torch.float32))
        for rows in (given, as_rows(compressed(torch, X)), divided_rows(single, np.ones(12))):
            assert is_on_card(rows)
            for axes in (None, basis):
                expected = X if axes is None else X @ axes
                found = projected_there(rows, axes).tensor
                assert found.dtype == torch.float64
                assert_allclose(found.numpy(), expected, atol=1e-5)
        monkeypatch.setattr(contrica.rows.moving, "DEVICE_SHARE", 0.0)
        monkeypatch.setattr(contrica.rows.products, "room_on_card", lambda: 1000.0)
        assert projected_there(given, basis) is None  # no room


def test_rows_that_are_divided_or_picked_out_are_where_they_were(torch, pair):
    rows = as_rows(torch.as_tensor(pair[0]))
    rows.device = "cuda:1"
    some = SelectedRows(divided_rows(rows, np.ones(12)), np.arange(960) % 2 == 0)
    with work_on(None):
        settle_on([some], None)
        assert card() == "cuda:1"
    with raises(ParameterError, "mixed-devices", "device"):
        check_one_device([some], ["X"], "cuda")


# --- the permutation null ---


@pytest.mark.parametrize(
    ("unit", "scale", "width"),
    [
        ("rows", "pooled", 6),
        ("rows", "each", None),
        ("groups", "none", None),
        ("groups", "pooled", None),
        ("groups", "each", 6),
    ],
)
def test_the_null_of_a_card_is_that_of_numpy(kind, unit, scale, width, pair, small, monkeypatch):
    (X, Y), options = pair, GROUPS if unit == "groups" else {}
    chosen = {"solver": "subspace", "scale": scale, "n_pcs": width, "random_state": 0}
    expected = ContrastiveICA(2, **chosen).fit(X, background=Y, **options)
    seen = seen_by(monkeypatch, contrica.solvers.permutation_null, "largest_ratio", 0)
    model = ContrastiveICA(2, device=CARD, **chosen).fit(kind(X), background=kind(Y), **options)
    assert set(seen) == {"torch"}
    one, two = model.scree_, expected.scree_
    assert one.unit == two.unit == unit
    assert one.n_assignments == two.n_assignments
    assert_allclose(one.p_values, two.p_values)
    assert_allclose(one.ratios, two.ratios, rtol=1e-8)
    assert_allclose([one.null_mean, one.null_quantile], [two.null_mean, two.null_quantile])
    assert_allclose(model.components_, expected.components_, atol=1e-7)
    if options:
        assert_allclose(model.group_share_, expected.group_share_, atol=1e-8)
        assert_allclose(model.robust_ratio_, expected.robust_ratio_, rtol=1e-8)


def test_sums_over_groups_are_on_the_card_where_they_pay_and_fit(pair, small, monkeypatch):
    labels = as_groups(GROUPS["groups"], 960, "groups", "X")
    parts = [(pair[0], labels)]
    assert not sums_pay_on_card(parts)  # no card
    with work_on(CARD):
        assert sums_pay_on_card(parts)
        one, two = GroupSums.of(there(pair[0]), labels), GroupSums.of(pair[0], labels)
        assert_allclose(one.products.numpy(), two.products)
        assert_allclose(one.sums.numpy(), two.sums, atol=1e-10)
        whole = contrica.rows.moving._device
        monkeypatch.setattr(
            contrica.rows.moving, "_device", lambda name: whole(name)._replace(free=5e5)
        )
        assert not sums_pay_on_card(parts)


@pytest.mark.parametrize("scale", ["pooled", "each"])
def test_covariances_of_tensors_are_divided_as_arrays_are(scale, torch, rng):
    basis = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    for axes, p in ((basis, 4), (None, 9)):
        redo = Rescaling(scale, axes, np.zeros(9) if axes is None else rng.uniform(size=9))
        fore, back = (np.cov(rng.standard_normal((p, 30)), bias=True) for _ in range(2))
        back[0] = back[:, 0] = 0.0  # does not vary
        tensors = [torch.as_tensor(part) for part in (fore, back)]
        found = redo.beside(tensors[0]).covariances(*tensors, 30, 20)
        for one, two in zip(found, redo.covariances(fore, back, 30, 20), strict=True):
            assert_allclose(one.numpy(), two, atol=1e-12)


# --- inference ---


@pytest.mark.parametrize("options", [{}, GROUPS], ids=["rows", "groups"])
def test_significance_permutes_on_the_card(kind, options, pair, small, monkeypatch):
    (X, Y), scale = pair, "each" if options else "none"
    chosen = {"solver": "subspace", "scale": scale, "n_pcs": None, "random_state": 0}
    model = ContrastiveICA(2, **chosen).fit(X, background=Y, **options)
    strata = [np.arange(960) % 12 // 3, np.arange(720) % 12 // 3]
    moved = ContrastiveICA(2, device=CARD, **chosen).fit(kind(X), background=kind(Y), **options)
    for given in (None, strata):
        seen = seen_by(monkeypatch, contrica.solvers.permutation_null, "largest_ratio", 0)
        draw = {"n_permutations": 60, "random_state": 1, "strata": given}
        expected = significance(model, X, background=Y, **draw, **options)
        assert set(seen) == {"numpy"}
        seen.clear()
        found = significance(moved, kind(X), background=kind(Y), **draw, **options)
        assert set(seen) == {"torch"}
        assert_allclose(found.p_values, expected.p_values)
        assert_allclose(found.statistics, expected.statistics, rtol=1e-8)
    assert card() is None


@pytest.mark.parametrize("make", [dense, compressed])
def test_inference_takes_tensors(make, torch, pair):
    X, Y = (part[:480] for part in pair)
    few = {name: labels[:480] // 2 * 2 for name, labels in GROUPS.items()}
    options = {"solver": "subspace", "random_state": 0, "n_foreground": 2}
    plain = ContrastiveICA(2, **options).fit(X, background=Y)
    grouped = ContrastiveICA(2, **options).fit(X, background=Y, **few)

    def results(make):
        fore, own = make(X), {"background": make(Y)}
        again = own | {"random_state": 0}
        with collected():
            return {
                "stability": contrica.inference.stability(plain, fore, n_resamples=3, **again),
                "of groups": contrica.inference.split_reliability(
                    grouped, fore, n_splits=2, **again, **few
                ),
                "effects": contrica.inference.group_effects(
                    grouped, fore, random_state=0, **own, **few
                ),
                "diagnosis": contrica.inference.diagnose(plain, fore, **own),
            }

    found, expected = results(lambda part: make(torch, part)), results(lambda part: part)
    assert_allclose(found["stability"].similarity, expected["stability"].similarity, atol=1e-6)
    assert_allclose(found["stability"].intervals, expected["stability"].intervals, atol=1e-6)
    assert_allclose(found["of groups"].ratios, expected["of groups"].ratios, rtol=1e-6)
    assert_allclose(found["effects"].effects, expected["effects"].effects, atol=1e-6)
    assert str(found["diagnosis"]) == str(expected["diagnosis"])


def test_rows_of_a_tensor_are_taken_by_number(torch, pair):
    index = np.array([3, 3, 0, 959])
    for make in (dense, compressed):
        rows = as_rows(make(torch, pair[0]))
        found = np.vstack([part.numpy() for part in rows.selected(index).blocks(100)])
        assert_allclose(found, pair[0][index])


# --- the joint fit ---


def test_products_of_a_joint_fit_are_those_of_numpy(pair, small, rng):
    parts = [contrica.moments.fourth.cumulants(part) for part in pair]
    U = rng.standard_normal((12, 7))
    U /= np.linalg.norm(U, axis=0)
    for tensors in ([part.fourth for part in parts], [part.third for part in parts]):
        here = as_terms(tensors)
        expected = here.images(U)
        with work_on(CARD):
            moved = as_terms(tensors)
            found = moved.images(U)
        (stack,) = moved._stacks.values()
        assert package_of(stack._entries) == "torch"
        (stack,) = here._stacks.values()
        assert package_of(stack._entries) == "numpy"
        assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
        assert_allclose(expected[0], tensors[0].apply_vectors(U), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_rows", [400, 60_000], ids=["from rows", "from moments"])
@pytest.mark.parametrize("order", [3, 4])
def test_what_groups_of_rows_say_is_the_same(n_rows, order, small, rng, monkeypatch):
    rows, axes = rng.laplace(size=(n_rows, 5)), rng.standard_normal((5, 4))
    U = rng.standard_normal((4, 3))
    expected = RowGroups(rows, axes).influence(U, order)
    seen = seen_by(monkeypatch, contrica.moments.packed.BlockMoments, "_add_block", 1)
    with work_on(CARD):
        found = RowGroups(rows, axes).influence(U, order)
    assert set(seen) == (set() if n_rows == 400 else {"torch"})
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_joint_fit_on_a_card_is_that_of_numpy(kind, pair, small):
    X, Y = pair
    options = {"solver": "joint", "n_pcs": 5, "random_state": 0}
    for given in ({}, GROUPS):
        expected = ContrastiveICA(2, **options).fit(X, background=Y, **given)
        model = ContrastiveICA(2, device=CARD, **options).fit(kind(X), background=kind(Y), **given)
        assert_allclose(model.components_, expected.components_, atol=1e-6)
        assert_allclose(model.pattern_t_values_, expected.pattern_t_values_, rtol=1e-5)
        assert model.n_background_ == expected.n_background_


# --- bad input ---


@pytest.mark.parametrize("missing", ["error", "impute"])
def test_tensors_on_several_cards_are_refused_before_they_are_read(missing, torch, pair):
    X, *backs = (as_rows(torch.as_tensor(part)) for part in (*pair, pair[1]))
    X.device = backs[0].device = "cuda:0"
    backs[1].device = "cuda:1"
    with raises(ParameterError, "mixed-devices", "device") as caught:
        ContrastiveICA(2, missing=missing).fit(X, background=backs)
    assert "cuda:1" in str(caught.value)


def test_blocks_are_smaller_where_a_card_has_little_memory(torch, pair, monkeypatch):
    rows = as_rows(torch.as_tensor(pair[0]))
    rows.device, rows.block_bytes = "cuda:0", 2**30
    device = contrica.rows.moving.Device(None, None, 4e9)
    monkeypatch.setattr(contrica.rows.moving, "_device", lambda name: device)
    fit_blocks([rows, pair[1]], ["X", "background"])
    assert rows.block_bytes == 5 * 10**8
    device = device._replace(free=1e8)
    fit_blocks([rows], ["X"])  # few rows need little
    device = device._replace(free=4e5)
    with raises(MemoryBudgetError, "device-memory", "X") as caught:
        fit_blocks([rows], ["X"])
    assert "X.cpu()" in str(caught.value)


def test_a_card_that_runs_out_of_memory_is_named(pair, monkeypatch):
    class OutOfMemoryError(RuntimeError):
        """As of torch, which only a card raises."""

    def fail(*given):
        raise OutOfMemoryError("tried to allocate 20.00 GiB")

    X, Y = pair
    monkeypatch.setattr(contrica.moments.packed.BlockMoments, "_add_block", fail)
    with raises(MemoryBudgetError, "device-memory", "device") as caught:
        ContrastiveICA(2, device=CARD).fit(X, background=Y)
    assert "cpu:0 has no memory left" in str(caught.value)
    assert card() is None
    with pytest.raises(RuntimeError, match="another"), work_on(CARD):
        raise RuntimeError("another")


def test_a_card_without_room_leaves_it_to_numpy(kind, pair, small, monkeypatch):
    """Groups, rows of a joint fit and its products are then gone through on the host."""
    X, Y = pair
    whole = contrica.rows.moving._device
    monkeypatch.setattr(
        contrica.rows.moving, "_device", lambda name: whole(name)._replace(free=2.2e9)
    )
    monkeypatch.setattr(contrica.rows.moving, "DEVICE_SHARE", 1e-6)  # 2 kB
    for solver, given in (("subspace", GROUPS), ("joint", {})):
        options = {"solver": solver, "n_pcs": 4, "random_state": 0}
        expected = ContrastiveICA(2, **options).fit(X, background=Y, **given)
        with collected() as told:
            model = ContrastiveICA(2, device=CARD, **options).fit(
                kind(X), background=kind(Y), **given
            )
        assert {warning.code for warning in told} <= {"device-memory"}
        assert_allclose(model.components_, expected.components_, atol=1e-6)
