"""Sums of rows that come in blocks: one pass, merged, saved, fitted."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from contrica import Background, ContrastiveICA, ContrastivePCA, ProportionalContrastiveICA
from contrica.errors import (
    DataError,
    FeaturesError,
    FileError,
    IterationError,
    MemoryBudgetError,
    ParameterError,
)
from contrica.moments.projection import common_basis
from contrica.moments.streaming import DataSums
from contrica.rows.streams import Blocks
from tests.said import raises


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((6, 6)), rng.standard_normal((6, 2))
    Y = rng.laplace(size=(4000, 6)) @ A.T
    X = rng.laplace(size=(5000, 6)) @ A.T + 2 * rng.exponential(size=(5000, 2)) @ B.T
    return X, Y


def blocks(X, size):
    return (X[i : i + size] for i in range(0, len(X), size))


@given(st.integers(2, 60), st.integers(1, 4), st.integers(1, 25), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_sums_do_not_depend_on_how_rows_are_cut(n, p, size, seed):
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n, p)) + 50
    cut = int(rng.integers(0, n + 1))
    whole = DataSums().update(X)
    parts = DataSums()
    for block in blocks(X[:cut], size):
        parts.update(block)
    parts.merge(DataSums().update(X[cut:]))
    assert parts.n_samples == n
    for one, two in zip(parts.summary(), whole.summary(), strict=True):
        assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    one, two = parts.cumulants(), whole.cumulants()
    assert_allclose(one.covariance, two.covariance, atol=1e-9)
    assert_allclose(one.fourth.flatten(), two.fourth.flatten(), atol=1e-7)
    assert_allclose(parts.rows(), X)


@pytest.mark.parametrize("solver", ["auto", "paper", "joint", "subspace"])
def test_a_stream_gives_the_fit_of_its_rows(solver, pair):
    X, Y = pair
    expected = ContrastiveICA(2, solver=solver, random_state=0).fit(X, background=Y)
    model = ContrastiveICA(2, solver=solver, random_state=0)
    for x in blocks(X, 700):
        model.partial_fit(x)
    for y in blocks(Y, 900):
        model.partial_fit(background=sp.csr_matrix(y))
    assert model.fit_sums() is model
    assert model.solver_ == expected.solver_
    for name in ("components_", "filters_", "contrast_ratio_", "mean_"):
        assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-6, atol=1e-7)
    assert_allclose(model.transform(X), expected.transform(X), atol=1e-5)
    once = ContrastiveICA(2, solver=solver, random_state=0).fit(blocks(X, 99), background=Y)
    assert_allclose(once.components_, expected.components_, atol=1e-6)


def test_patterns_follow_the_rows_that_are_added(pair):
    X, Y = pair
    model = ContrastiveICA(2, random_state=0).partial_fit(X[:2500], background=Y)
    for ask in (lambda: model.transform(X), lambda: model.inverse_transform(X), model.summary):
        with pytest.raises(NotFittedError, match="Call 'fit_sums'"):  # not in silence
            ask()
    first = model.fit_sums().components_
    assert model.partial_fit(X[2500:]) is model
    assert not hasattr(model, "components_")  # they would be those of fewer rows
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    assert_allclose(model.fit_sums().components_, expected.components_, atol=1e-7)
    assert np.abs(first - model.components_).max() > 1e-6
    again = pickle.loads(pickle.dumps(model.partial_fit(X[:10])))
    assert_allclose(again.fit_sums().components_, model.fit_sums().components_)
    model.fit(X[:1000], background=Y)
    assert not hasattr(model, "foreground_sums_")


def test_many_variables_are_projected_without_a_second_pass(rng):
    X, Y = rng.laplace(size=(2, 3000, 40)) * np.linspace(3, 1, 40)
    X[:, :5] += 4 * rng.choice([-1, 1], (3000, 1))
    expected = ContrastiveICA(1, n_pcs=12, solver="subspace", random_state=0).fit(X, background=Y)
    model = ContrastiveICA(1, n_pcs=12, solver="subspace", random_state=0)
    model.partial_fit(X, background=Y).fit_sums()
    assert_allclose(np.abs(model.basis_.T @ expected.basis_).diagonal(), 1, atol=1e-9)
    assert_allclose(model.components_, expected.components_, atol=1e-6)


def test_a_basis_lets_any_width_be_read_once(rng):
    X, Y = rng.laplace(size=(2, 500, 400))
    X[:, :50] += 3 * rng.choice([-1, 1], (500, 1))
    basis = common_basis([X[:200], Y[:200]], 10)
    model = ContrastiveICA(1, basis=basis, solver="subspace", random_state=0)
    expected = ContrastiveICA(1, basis=basis, solver="subspace", random_state=0)
    expected.fit(X, background=Y)
    for x, y in zip(blocks(X, 100), blocks(Y, 100), strict=True):
        model.partial_fit(x, background=y)
    model.fit_sums()
    assert_allclose(model.basis_, basis)
    assert_allclose(model.components_, expected.components_, atol=1e-6)


def test_a_wide_stream_is_refused_before_it_is_read(rng):
    read = []

    def stream():
        for _ in range(3):
            read.append(1)
            yield rng.standard_normal((50, 2000))

    with pytest.raises(MemoryBudgetError, match=r"2000 variables.*pass basis.*read twice.*memory"):
        ContrastiveICA(2).fit(stream(), background=rng.standard_normal((50, 2000)))
    assert len(read) == 1


def test_sums_are_saved_and_resumed(pair, tmp_path):
    X, Y = pair
    path = tmp_path / "fore.npz"
    DataSums(n_kept=300).update(X[:3000]).save(path)
    resumed = DataSums.load(path).update(X[3000:])
    straight = DataSums(n_kept=300).update(X)
    assert_allclose(resumed.cumulants().fourth.flatten(), straight.cumulants().fourth.flatten())
    assert_allclose(resumed.rows(), straight.rows())
    assert len(resumed.rows()) == 300
    # on two machines
    DataSums().update(X[:3000]).save(path)
    model = ContrastiveICA(2, random_state=0).partial_fit(DataSums.load(path))
    model.partial_fit(DataSums().update(X[3000:]), background=DataSums().update(Y)).fit_sums()
    expected = ContrastiveICA(2, random_state=0).fit(X, background=Y)
    assert_allclose(model.components_, expected.components_, atol=1e-6)
    assert [file.name for file in tmp_path.iterdir()] == ["fore.npz"]
    DataSums().save(path)
    assert DataSums.load(path).n_samples == 0


def test_the_sample_is_fair():
    kept = np.concatenate(
        [
            DataSums(n_kept=200).update(np.arange(k, k + 2000.0)[:, None]).rows().ravel() - k
            for k in (0, 9)
        ]
    )
    assert len(kept) == 400
    assert 900 < kept.mean() < 1100
    assert 0.2 < np.mean(kept < 500) < 0.3


def test_samples_of_merged_sums_are_fair():
    """Files that are sorted alike do not give the same few places each."""
    sums = DataSums(n_kept=200)
    for _ in range(100):
        sums.merge(DataSums(n_kept=200).update(np.arange(100.0)[:, None]))
    assert len(np.unique(sums.rows())) > 70
    assert 40 < sums.rows().mean() < 60
    # of two that kept different numbers of rows each has its share
    for first, second in ((2000, 200), (200, 2000)):
        one, two = DataSums(n_kept=first), DataSums(n_kept=second)
        one.update(np.zeros((10_000, 1))).merge(two.update(np.ones((10_000, 1))))
        assert 0.35 < one.rows().mean() < 0.65
        assert len(one.rows()) >= 200
        one.update(np.full((10_000, 1), 2.0))
        assert 0.2 < np.mean(one.rows() == 2) < 0.47


def test_bad_blocks_leave_the_sums_as_they_were(pair):
    X, Y = pair
    model = ContrastiveICA(2).partial_fit(X, background=Y)
    before = model.foreground_sums_.cumulants().covariance
    bad = X[:10].copy()
    bad[3, 2] = np.nan
    with raises(DataError, "not-finite", "X"):
        model.partial_fit(bad)
    with raises(FeaturesError, "width", "X"):
        model.partial_fit(X[:, :5])
    with raises(FeaturesError, "width", "background"):
        model.partial_fit(background=X[:, :5])
    with raises(DataError, "not-finite", "background"):
        model.partial_fit(X[:20], background=bad)  # neither is added
    with raises(DataError, "not-a-table"):
        model.foreground_sums_.update(np.zeros((4, 5, 6)))
    assert_allclose(model.foreground_sums_.cumulants().covariance, before, rtol=0, atol=0)
    assert model.foreground_sums_.n_samples == model.foreground_sums_.summary().n_rows == len(X)
    fresh = ContrastiveICA(2)
    with raises(DataError, "not-finite", "X"):
        fresh.partial_fit(bad)
    assert not hasattr(fresh, "foreground_sums_")
    fresh.partial_fit(X[:, :5], background=Y[:, :5])


def test_sums_outlive_a_fit_that_fails(pair):
    X, Y = pair
    model = ContrastiveICA(2, random_state=0).partial_fit(X, background=Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X * np.nan, background=Y)
    assert model.foreground_sums_.n_samples == len(X)
    model.fit(X, background=Y)
    assert not hasattr(model, "foreground_sums_")
    model.partial_fit(X[:100])  # anew
    assert model.foreground_sums_.n_samples == 100
    assert model.background_sums_.n_samples == 0
    fresh = ContrastiveICA(2).partial_fit(background=Y)
    assert not hasattr(fresh, "components_")
    with pytest.raises(NotFittedError):
        fresh.transform(X)


def test_containers_are_summed_block_by_block(pair):
    X, Y = pair
    # not by "auto": where ranks are near, the search for them follows the rounding
    options = {"solver": "subspace", "random_state": 0}
    expected = ContrastiveICA(2, **options).fit(X, background=Y).components_
    array = pytest.importorskip("dask.array")
    for rows in (
        Blocks([X[:100], X[100:]]),
        array.from_array(X, chunks=(900, 6)),
        sp.csr_matrix(X),
    ):
        model = ContrastiveICA(2, **options).partial_fit(rows, background=Y)
        model.partial_fit(DataSums()).fit_sums()
        assert_allclose(model.components_, expected, atol=1e-6)


def test_a_basis_of_sums_is_the_fit_s(pair):
    X, Y = pair
    B = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 3)))[0]
    sums = [DataSums(basis=B).update(part) for part in (X, Y)]
    model = ContrastiveICA(1, random_state=0).partial_fit(sums[0], background=sums[1])
    model.fit_sums()
    expected = ContrastiveICA(1, basis=B, random_state=0).fit(X, background=Y)
    assert_allclose(model.components_, expected.components_, atol=1e-7)
    with pytest.raises(ValueError, match="different bases"):
        ContrastiveICA(1, basis=B).partial_fit(DataSums().update(X))
    model = ContrastiveICA(1).partial_fit(sums[0], background=Y)
    with pytest.raises(ValueError, match="different bases"):
        model.fit_sums()


def test_names_of_frames_are_compared(pair, tmp_path):
    pd = pytest.importorskip("pandas")
    X, Y = (pd.DataFrame(part, columns=list("abcdef")) for part in pair)
    model = ContrastiveICA(2).partial_fit(X, background=Y)
    assert list(model.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="in another order"):
        model.partial_fit(X[list("fedcba")])
    # sums remember them, on disk too
    model.foreground_sums_.save(tmp_path / "sums.npz")
    sums = DataSums.load(tmp_path / "sums.npz")
    assert sums.columns == list("abcdef")
    with pytest.raises(ValueError, match="in another order"):
        sums.update(X[list("fedcba")])
    with pytest.raises(ValueError, match="in another order"):
        sums.merge(DataSums().update(X[list("fedcba")]))
    again = ContrastiveICA(2).partial_fit(sums)
    assert list(again.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="in another order"):
        again.partial_fit(background=Y[list("fedcba")])


def test_what_cannot_be_summed_is_refused(pair, tmp_path):
    X, Y = pair
    with raises(ParameterError, "robust-needs-rows", "cumulant"):
        ContrastiveICA(2, cumulant="robust").partial_fit(X, background=Y)
    with pytest.raises(ValueError, match="no blocks of rows"):
        ContrastiveICA(2).fit(iter([]), background=Y)
    sums = DataSums(basis=np.eye(6)[:, :2]).update(X)
    with pytest.raises(ValueError, match="different bases"):
        sums.merge(DataSums().update(X))
    with pytest.raises(ValueError, match=r"basis has shape \(5, 5\)"):
        DataSums(basis=np.eye(5)).update(X)
    with pytest.raises(ValueError, match="not orthonormal"):
        ContrastiveICA(2, basis=np.ones((6, 2))).fit(X, background=Y)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        DataSums.load(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", a=1)
    with raises(FileError, "not-sums", "path"):
        DataSums.load(tmp_path / "other.npz")
    with raises(DataError, "too-few-rows"):
        DataSums().cumulants()
    with pytest.raises(ValueError, match="n_kept"):
        DataSums(n_kept=0)
    with raises(DataError, "several-backgrounds"):
        ContrastiveICA(2).fit(iter([X]), background=[Y, Y])
    with raises(DataError, "several-backgrounds"):
        ContrastiveICA(2).partial_fit(X, background=[Y, Y])
    with pytest.raises(ValueError, match="1 dimensions"):
        ContrastiveICA(2).partial_fit(X[0])
    with pytest.raises(ValueError, match="float32"):
        ContrastiveICA(2, dtype="float32").partial_fit(X)
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"cuda.* cannot be used"):
            ContrastiveICA(2, device="cuda").partial_fit(X)


def test_proportional_ica_takes_streams_too(pair):
    X, Y = pair
    expected = ProportionalContrastiveICA(2, n_background=6, n_foreground=2, random_state=0)
    expected.fit(X, background=Y)
    model = ProportionalContrastiveICA(2, n_background=6, n_foreground=2, random_state=0)
    model.partial_fit(X, background=Y).fit_sums()
    assert_allclose(model.background_scale_, expected.background_scale_, rtol=1e-8)
    with pytest.warns(UserWarning, match="no background was given"):
        ProportionalContrastiveICA(2).partial_fit(X).fit_sums()


def test_fit_takes_sums_in_place_of_rows_and_leaves_them_as_they_are(pair):
    X, Y = pair
    options = {"solver": "subspace", "random_state": 0}
    fore, back = DataSums().update(X), DataSums().update(Y)
    expected = ContrastiveICA(2, **options).fit(X, background=Y).components_
    for x, y in ((fore, back), (fore, Y), (X, back), (fore, Background(Y))):
        model = ContrastiveICA(2, **options).fit(x, background=y)
        assert_allclose(model.components_, expected, atol=1e-6)
        assert not hasattr(model, "foreground_sums_")
    assert (fore.n_samples, back.n_samples) == (len(X), len(Y))
    with raises(DataError, "no-sums"):
        ContrastiveICA(2).fit_sums()


def test_a_basis_and_another_number_of_components_contradict(pair):
    X, Y = pair
    basis = np.eye(X.shape[1])[:, :3]
    with raises(ParameterError, "basis-and-n_pcs", "n_pcs"):
        ContrastiveICA(2, n_pcs=np.int64(2), basis=basis).fit(X, background=Y)
    sums = ContrastiveICA(2, basis=basis).partial_fit(X, background=Y)
    other = ContrastiveICA(2, n_pcs=2)
    other.partial_fit(sums.foreground_sums_, background=sums.background_sums_)
    with raises(ParameterError, "basis-and-n_pcs", "n_pcs"):
        other.fit_sums()
    assert ContrastiveICA(2, n_pcs=3, basis=basis).fit(X, background=Y).n_pcs_ == 3


def test_sums_that_are_refused_leave_both_as_they_were(pair):
    X, Y = pair
    model = ContrastiveICA(1, random_state=0).partial_fit(X, background=Y)
    other = DataSums(basis=np.eye(X.shape[1])[:, :2]).update(Y)
    with pytest.raises(ValueError, match="different bases"):
        model.partial_fit(X, background=other)
    assert model.foreground_sums_.n_samples == len(X)
    assert model.background_sums_.n_samples == len(Y)


def test_an_iterator_has_nothing_left_to_transform(pair):
    X, Y = pair
    stream = iter([X])
    with pytest.raises(ValueError, match="nothing would be left"):
        ContrastiveICA(1).fit_transform(stream, background=Y)
    assert next(stream) is X


@pytest.mark.parametrize("taken_in", [None, np.eye(6)[:, 3:]], ids=["all", "others"])
def test_sums_in_other_axes_than_the_basis_are_refused(taken_in, pair):
    X, Y = pair
    basis = np.eye(6)[:, :3]
    sums = DataSums(basis=taken_in).update(X)
    for data in ((sums, Y), (Y, sums), (sums, sums)):
        with raises(ParameterError, "basis", "basis"):
            ContrastiveICA(1, basis=basis).fit(data[0], background=data[1])
    model = ContrastiveICA(1, basis=taken_in).partial_fit(X, background=Y)
    model.set_params(basis=basis)
    with raises(ParameterError, "basis", "basis"):
        model.fit_sums()
    with raises(ParameterError, "basis", "basis"):
        model.partial_fit(X)
    assert model.foreground_sums_.n_samples == len(X)


def test_rows_are_summed_in_the_axes_of_the_sums_beside_them(pair):
    X, Y = pair
    basis = np.eye(6)[:, :3]
    options = {"solver": "subspace", "random_state": 0}
    expected = ContrastiveICA(1, basis=basis, **options).fit(X, background=Y)
    for x, y in ((DataSums(basis=basis).update(X), Y), (X, DataSums(basis=basis).update(Y))):
        model = ContrastiveICA(1, **options).fit(x, background=y)
        assert_allclose(model.basis_, basis)
        assert_allclose(model.components_, expected.components_, atol=1e-7)


class Read:
    """An iterator over blocks that counts those it has given."""

    def __init__(self, blocks):
        self.blocks, self.n_read = iter(blocks), 0

    def __iter__(self):
        return self

    def __next__(self):
        block = next(self.blocks)
        self.n_read += 1
        return block


def test_a_stream_over_other_variables_is_refused_by_its_first_block(pair):
    pd = pytest.importorskip("pandas")
    X, Y = (pd.DataFrame(part, columns=list("abcdef")) for part in pair)
    for wrong, code in (
        (Y[list("abcde")], "width"),
        (Y[list("bacdef")], "order"),
        (Y.rename(columns={"a": "z"}), "names"),
    ):
        for fore in (blocks(X, 900), DataSums().update(X)):
            stream = Read(blocks(wrong, 500))
            with raises(FeaturesError, code, "background"):
                ContrastiveICA(2).fit(fore, background=stream)
            assert stream.n_read == 1
        stream = Read(blocks(wrong, 500))
        with raises(FeaturesError, code, "X"):
            ContrastiveICA(2).fit(stream, background=DataSums().update(X))
        assert stream.n_read == 1


@pytest.mark.parametrize(
    "options",
    [{"n_pcs": 7}, {"n_foreground": 7, "solver": "subspace"}, {"basis": np.eye(5)}],
    ids=str,
)
def test_parameters_are_checked_against_the_first_block(options, pair):
    stream, other = Read(blocks(pair[0], 500)), Read(blocks(pair[1], 500))
    with pytest.raises(ParameterError) as caught:
        ContrastiveICA(2, **options).fit(stream, background=other)
    assert caught.value.parameter in options
    assert (stream.n_read, other.n_read) == (1, 0)


def test_names_that_differ_are_those_of_the_dataset_that_has_them(pair):
    pd = pytest.importorskip("pandas")
    X, Y = (pd.DataFrame(part, columns=list("abcdef")) for part in pair)
    Y = Y.rename(columns={"a": "z"})
    said = "missing from background: a; only in background: z"
    for fore, back in (
        (DataSums().update(X), DataSums().update(Y)),
        (iter([X]), iter([Y])),
        (X, Y),
    ):
        with raises(FeaturesError, "names", "background") as caught:
            ContrastiveICA(2).fit(fore, background=back)
        assert said in str(caught.value)
    with raises(FeaturesError, "order", "background") as caught:
        back = DataSums().update(X[list("bacdef")])
        ContrastiveICA(2).fit(DataSums().update(X), background=back)
    assert "background has the features of X in another order" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "code"),
    [({"cumulant": "robust"}, "robust-needs-rows"), ({"dtype": "float32"}, "single-needs-mean")],
    ids=["robust", "single"],
)
def test_what_sums_cannot_give_is_refused_before_rows_are_read(options, code, pair):
    X, Y = pair
    parameter = next(iter(options))
    for fore, back in (
        (DataSums().update(X), DataSums().update(Y)),
        (DataSums().update(X), Y),
        (Read([X]), Y),
    ):
        with raises(ParameterError, code, parameter):
            ContrastiveICA(2, **options).fit(fore, background=back)
        assert getattr(fore, "n_read", 0) == 0
    with raises(ParameterError, code, parameter):
        ContrastiveICA(2, **options).partial_fit(DataSums().update(X))
    model = ContrastiveICA(2).partial_fit(X, background=Y).set_params(**options)
    with raises(ParameterError, code, parameter):
        model.fit_sums()


def test_sums_are_refused_by_name_where_rows_are_needed(pair):
    X, Y = pair
    fore, back = DataSums().update(X), DataSums().update(Y)
    model = ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y)
    with raises(DataError, "sums", "X"):
        model.transform(fore)
    with raises(IterationError, "read-once", "X"):
        ContrastiveICA(2).fit_transform(fore, background=back)
    for method in (ContrastivePCA(2), ContrastiveICA(2)):
        with raises(DataError, "sums", "background"):
            method.fit(X, background=[back, back])
    with raises(DataError, "sums", "X"):
        ContrastivePCA(2).fit(fore, background=Y)
    wrapped = ContrastiveICA(2, solver="subspace", random_state=0)
    wrapped.fit(X, background=Background(back))
    assert_allclose(wrapped.components_, model.components_, atol=1e-6)


class Torn:
    """Blocks that cannot be read to their end another time."""

    def __init__(self, X):
        self.X, self.passes = X, 0

    def __iter__(self):
        self.passes += 1
        yield self.X[:1000]
        if self.passes > 2:  # after the first block, and the first pass
            raise OSError("the disk is gone")
        yield self.X[1000:]


def test_rows_that_cannot_be_read_again_leave_the_sums_as_they_were(pair):
    X, Y = pair
    sums, other = DataSums(n_kept=300).update(X), DataSums(n_kept=300).update(X)
    with pytest.raises(OSError, match="disk is gone"):
        sums.update(Torn(X))
    assert sums.n_samples == sums.summary().n_rows == len(X)
    fresh = DataSums()
    with pytest.raises(OSError, match="disk is gone"):
        fresh.update(Torn(X))
    assert (fresh.n_samples, fresh.n_features, fresh.columns) == (0, 0, None)
    # and what is drawn next is what would have been drawn
    for one, two in zip(sums.update(Y).summary(), other.update(Y).summary(), strict=True):
        assert_allclose(one, two, rtol=0, atol=0)
    assert_allclose(sums.rows(), other.rows(), rtol=0, atol=0)
    model = ContrastiveICA(2).partial_fit(X, background=Y)
    with pytest.raises(OSError, match="disk is gone"):
        model.partial_fit(Y, background=Torn(X))
    assert model.foreground_sums_.n_samples == len(X)
    assert model.background_sums_.n_samples == len(Y)


def test_blocks_without_variables_are_not_added():
    with raises(DataError, "no-variables", "X"):
        ContrastiveICA(2).partial_fit(sp.csr_matrix((5, 0)), background=np.eye(5))
