"""Models come back from files as they were saved."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from contrica import ContrastiveICA, ProportionalContrastiveICA, load, save
from contrica.datasets import make_synthetic
from contrica.errors import FileError, FileMissingError, ParameterError, collected
from contrica.estimators import (
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
)
from tests.said import raises


@pytest.fixture
def data():
    return make_synthetic(5, n_samples=3000, random_state=0)


def unsealed(path):
    """Header and arrays of a saved model as earlier versions wrote them, without checksums."""
    with np.load(path) as stored:
        arrays = {key: stored[key] for key in stored.files if key != "seal"}
    header = json.loads(str(arrays.pop("header")))
    del header["schema"], header["arrays"]
    return header, arrays


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        ContrastiveICA(
            2,
            n_background=np.int64(5),
            n_foreground=4,
            solver="paper",
            deflation="least_squares",
            random_state=0,
        ),
        ContrastiveICA(
            2,
            n_background=5,
            n_foreground=4,
            n_pcs=4,
            solver="paper",
            deflation="least_squares",
            projection="filter",
        ),
        ContrastiveICA(2, random_state=0),
        ContrastiveICA(2, n_foreground=3, solver="subspace", cumulant="robust"),
        ProportionalContrastiveICA(3, n_foreground=4, background_scale=0.9),
    ],
)
def test_models_come_back_as_they_were(tmp_path, data, model, names):
    X, Y = data.foreground, data.background
    if names:
        X, Y = (pd.DataFrame(rows, columns=list("vwxyz")) for rows in (X, Y))
    model.fit(X, background=Y)
    save(model, tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.transform(X), model.transform(X))
    learnt = {key for key in vars(model) if key.endswith("_")}
    assert learnt == {key for key in vars(again) if key.endswith("_")}
    if names:
        assert list(again.feature_names_in_) == list("vwxyz")
    if isinstance(model, ContrastiveICA):
        assert again.summary() == model.summary()
    assert os.listdir(tmp_path) == ["m.npz"]


@pytest.mark.parametrize(
    "model",
    [
        ContrastivePCA(2, alpha=[0.5, 2.0], random_state=0),
        ProbabilisticContrastivePCA(2, scaling="standard"),
        GeneralizedContrastivePCA(2),
        PlainICA(2, rank=5),
        PlainPCA(2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rivals_come_back_as_they_were_saved(tmp_path, rng, model):
    X, Y = rng.laplace(size=(300, 4)) * [3, 1, 1, 1], rng.laplace(size=(200, 4))
    model.fit(X, background=Y)
    save(model, tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert_allclose(again.transform(Y), model.transform(Y), rtol=0, atol=0)
    assert str(again.get_params()) == str(model.get_params())


def test_a_choice_of_ranks_comes_back_with_its_scores(tmp_path):
    data = make_synthetic(5, n_samples=20_000, random_state=0)
    model = ContrastiveICA(2, random_state=0).fit(data.foreground, background=data.background)
    assert model.rank_choice_ is not None
    save(model, tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert type(again.rank_choice_) is type(model.rank_choice_)
    for name, value in model.rank_choice_._asdict().items():
        assert np.array_equal(getattr(again.rank_choice_, name), value), name
    assert np.array_equal(again.pattern_t_values_, model.pattern_t_values_)
    assert (again.solver_, again.reason_) == (model.solver_, model.reason_)


def test_near_ties_come_back_and_files_without_them_are_read(tmp_path):
    data = make_synthetic(5, n_samples=20_000, random_state=0)
    model = ContrastiveICA(2, random_state=0).fit(data.foreground, background=data.background)
    model.near_ties_ = ("the weakest pattern",)
    model.rank_choice_ = model.rank_choice_._replace(near_ties=("the weakest pattern",))
    save(model, tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert again.near_ties_ == again.rank_choice_.near_ties == ("the weakest pattern",)
    assert "near a tie: the weakest pattern" in again.summary()
    header, arrays = unsealed(tmp_path / "m.npz")
    for name in ("near_ties_", "rank_choice_.near_ties"):
        del header["learnt"][name]
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    older = load(tmp_path / "old.npz")
    assert older.near_ties_ == older.rank_choice_.near_ties == ()


def test_shifts_come_back_and_files_without_them_are_read(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(2, 2000, 4))
    X[:, 0] += 4
    for count in (1, None):
        model = ContrastiveICA(count, solver="subspace", random_state=0)
        with collected():
            model.fit(X, background=Y)
        save(model, tmp_path / "m.npz")
        again = load(tmp_path / "m.npz")
        assert again.only_shifted_.tolist() == model.only_shifted_.tolist()
        assert again.only_shifted_.any() == (count is None)
        assert len(again.left_out_shifts_) == (count == 1)
        assert again.left_out_shifts_.tolist() == model.left_out_shifts_.tolist()
        assert again.summary() == model.summary()
    header, arrays = unsealed(tmp_path / "m.npz")
    del arrays["left_out_shifts_"], arrays["only_shifted_"]
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    older = load(tmp_path / "old.npz")
    assert older.only_shifted_.tolist() == [False] * len(older.components_)
    assert older.left_out_shifts_.shape == (0, 4)
    assert "left out" not in older.summary()


def test_t_values_are_read_by_the_name_they_had(tmp_path):
    data = make_synthetic(5, n_samples=20_000, random_state=0)
    model = ContrastiveICA(2, random_state=0).fit(data.foreground, background=data.background)
    save(model, tmp_path / "m.npz")
    header, arrays = unsealed(tmp_path / "m.npz")
    arrays["pattern_scores_"] = arrays.pop("pattern_t_values_")
    arrays["rank_choice_.scores"] = arrays.pop("rank_choice_.t_values")
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    again = load(tmp_path / "old.npz")
    assert np.array_equal(again.pattern_t_values_, model.pattern_t_values_)
    assert np.array_equal(again.rank_choice_.t_values, model.rank_choice_.t_values)


@pytest.mark.parametrize("solver", ["paper", "joint", None])
def test_models_of_earlier_versions_are_read(tmp_path, data, solver):
    """Without what a choice of solvers left, and, the oldest, without a solver at all."""
    model = ContrastiveICA(
        2,
        n_background=5,
        n_foreground=4,
        solver=solver or "paper",
        deflation="thin" if solver == "joint" else "least_squares",
        random_state=0,
    )
    save(model.fit(data.foreground, background=data.background), tmp_path / "m.npz")
    header, arrays = unsealed(tmp_path / "m.npz")
    del arrays["pattern_t_values_"]
    for name in ("solver_", "reason_", "rank_choice_"):
        del header["learnt"][name]
    if solver is None:
        del header["parameters"]["solver"]
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    again = load(tmp_path / "old.npz")
    assert again.solver == again.solver_ == (solver or "paper")
    assert np.array_equal(again.transform(data.foreground), model.transform(data.foreground))
    assert "earlier version" in again.summary()


def test_a_model_saved_after_partial_fit_can_go_on(tmp_path, data):
    model = ContrastiveICA(2, solver="subspace", random_state=0)
    model.partial_fit(data.foreground, background=data.background)
    with pytest.raises(NotFittedError, match="fit_sums"):
        save(model, tmp_path / "m.npz")
    save(model.fit_sums(), tmp_path / "m.npz")
    header, arrays = unsealed(tmp_path / "m.npz")
    assert "foreground_sums_" not in header["learnt"]
    # as earlier versions wrote it
    header["learnt"] |= {"foreground_sums_": None, "background_sums_": None}
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    for name in ("m.npz", "old.npz"):
        again = load(tmp_path / name)
        assert np.array_equal(again.transform(data.foreground), model.transform(data.foreground))
        again.partial_fit(data.foreground, background=data.background).fit_sums()
        assert_allclose(again.components_, model.components_, atol=1e-9)


def test_a_summary_does_not_need_what_earlier_versions_did_not_save(tmp_path, data):
    model = ContrastiveICA(2, solver="subspace", random_state=0)
    save(model.fit(data.foreground, background=data.background), tmp_path / "m.npz")
    header, arrays = unsealed(tmp_path / "m.npz")
    for name in ("n_rows_sampled_", "n_samples_"):
        del header["learnt"][name]
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    first, *others = load(tmp_path / "old.npz").summary().splitlines()
    assert others == model.summary().splitlines()[1:]
    assert "foreground" in first  # in place of its number of rows
    assert load(tmp_path / "m.npz").n_rows_sampled_ == model.n_rows_sampled_


def test_saved_models_hold_no_pickle(tmp_path, data):
    model = ContrastiveICA(
        2,
        n_background=5,
        n_foreground=4,
        solver="paper",
        deflation="least_squares",
        random_state=np.random.default_rng(0),
    )
    save(model.fit(data.foreground, background=data.background), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as stored:
        assert all(stored[key].dtype != object for key in stored.files)
    assert load(tmp_path / "m.npz").random_state is None  # a generator is not kept


def test_what_is_no_model_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2))
    (tmp_path / "t.txt").write_text("hello")
    for name in ("t.npz", "t.txt"):
        with raises(FileError, "not-a-model") as caught:
            load(tmp_path / name)
        assert f"{name} is not a model saved by contrica" in str(caught.value)
    with raises(FileMissingError, "missing") as caught:
        load(tmp_path / "none.npz")
    assert "none.npz does not exist" in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    with raises(FileMissingError, "is-a-folder") as caught:
        load(tmp_path)
    assert "Name the file in it." in str(caught.value)


def test_only_fitted_models_of_ours_are_saved(tmp_path):
    from sklearn.decomposition import PCA

    with pytest.raises(NotFittedError):
        save(ContrastiveICA(), tmp_path / "m.npz")
    with raises(ParameterError, "unknown-model", "model") as caught:
        save(PCA(), tmp_path / "m.npz")
    assert "a PCA cannot be saved" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
