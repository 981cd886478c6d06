import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, ProportionalContrastiveICA, load, save
from contrica.datasets import make_synthetic
from contrica.estimators import (
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
)
from contrica.files import output_folder, read_table, write_table


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- reading ---


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("1,2\n3,4\n", None, None),
        ("a,b\n1,2\n3,4\n", ["a", "b"], None),
        ("cell,a,b\nc1,1,2\nc2,3,4\n", ["a", "b"], ["c1", "c2"]),
        (",a,b\n0,1,2\n1,3,4\n", ["a", "b"], ["0", "1"]),  # as pandas writes it
        ("a,b\nc1,1,2\nc2,3,4\n", ["a", "b"], ["c1", "c2"]),  # as R writes it
        ("c1,1,2\nc2,3,4\n", None, ["c1", "c2"]),
        ('"x, y",b\n1,2\n3,4\n', ["x, y", "b"], None),
        ("a,b\n1,2\n\n3,4\n", ["a", "b"], None),
        ("\ufeffa,b\n1,2\n3,4\n", ["a", "b"], None),  # with a byte order mark
        ("\n\na,b\n1,2\n3,4\n", ["a", "b"], None),  # after empty lines
    ],
)
def test_csv_with_and_without_names(tmp_path, text, columns, rows):
    table = read_table(write(tmp_path / "t.csv", text))
    assert_allclose(table.values, [[1, 2], [3, 4]])
    assert (None if table.columns is None else list(table.columns)) == columns
    assert (None if table.rows is None else list(table.rows)) == rows


def test_tsv_gzip_npy_and_npz(tmp_path, rng):
    X = rng.random((5, 3))
    write(
        tmp_path / "t.tsv", "a\tb\tc\n" + "\n".join("\t".join(map(repr, map(float, r))) for r in X)
    )
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("\n".join(",".join(map(repr, map(float, r))) for r in X))
    np.save(tmp_path / "t.npy", X)
    np.savez(tmp_path / "one.npz", X=X)
    np.savez(tmp_path / "two.npz", X=X, Y=2 * X)
    for name in ("t.tsv", "t.csv.gz", "t.npy", "one.npz"):
        assert_allclose(read_table(tmp_path / name).values, X, rtol=0, err_msg=name)
    assert_allclose(read_table(tmp_path / "two.npz", "Y").values, 2 * X, rtol=0)


def test_what_pandas_writes_is_read_back_exactly(tmp_path, rng):
    frame = pd.DataFrame(
        rng.standard_normal((6, 3)), columns=list("abc"), index=[f"s{i}" for i in range(6)]
    )
    frame.to_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")
    assert np.array_equal(table.values, frame.to_numpy())
    assert list(table.rows) == list(frame.index)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n\n", "is empty"),
        ("t.csv", "a,b\n", "a header but no rows"),
        ("t.csv", "a,b\n1,2\n3,oops\n", r"row 3, column 2 \('b'\) holds 'oops'"),
        ("t.csv", "id,a,b\nx,1,2\ny,,4\n", r"row 3, column 2 \('a'\) holds an empty cell"),
        ("t.csv", "1,2\n3,x\n", "row 2, column 2 holds 'x'"),
        ("t.csv", "a,b\n1,2\n3\n", "row 3 has 1 cells where 2"),
        ("t.csv", "a,b\n1,2\n3,4,5\n", "row 3 has 3 cells where 2"),
        ("t.csv", "a,a\n1,2\n3,4\n", "more than one column called 'a'"),
        ("t.csv", "a,b\n1,2\nnan,4\n", r"sample 2, variable 1 \('a'\) is nan"),
        ("t.csv", "1,inf\n3,4\n", "sample 1, variable 2 is inf"),
        ("t.txt", "1,2\n", "unknown type '.txt'"),
        ("t.csv", "a,b\n1,1_0\n", r"row 2, column 2 \('b'\) holds '1_0'"),
        ("t.csv", "a,b\n1,2\n\n3,x\n", "row 4, column 2"),
        ("t.csv", "a,b\n1," + "2" * 200_000 + "\n", "no table of numbers"),
        ("t.npz", "PK", "could not be read"),
        ("t.csv.gz", "not gzip", "damaged gzip"),
        ("t", "1,2\n", "unknown type"),
        ("t.npy", "not numpy", "could not be read as a numpy file"),
    ],
)
def test_unreadable_files_say_where_and_why(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / name, text))


def test_running_numbers_behind_a_heading_are_a_header_and_can_be_told_otherwise(tmp_path):
    path = write(tmp_path / "t.csv", "sample,1,2,3\nc1,4,5,6\n")
    assert list(read_table(path).columns) == ["1", "2", "3"]
    assert list(read_table(path, header=False).rows) == ["sample", "c1"]
    assert list(read_table(write(tmp_path / "u.csv", "7,8\n1,2\n"), header=True).columns) == [
        "7",
        "8",
    ]


def test_the_running_numbers_that_pandas_writes_are_a_header(tmp_path, rng):
    frame = pd.DataFrame(rng.standard_normal((4, 3)))
    for index in (True, False):
        frame.to_csv(tmp_path / "t.csv", index=index)
        table = read_table(tmp_path / "t.csv")
        assert np.array_equal(table.values, frame.to_numpy())
        assert list(table.columns) == ["0", "1", "2"]


def test_a_truncated_gzip_file_is_named(tmp_path):
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("1,2\n" * 5000)
    whole = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged gzip"):
        read_table(tmp_path / "t.csv.gz")


def test_missing_files_folders_and_binary_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        read_table(tmp_path)
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00\x01,2")
    with pytest.raises(ValueError, match="UTF-8"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((2, 2), dtype=complex), "complex128"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[None, 1]], dtype=object), "could not be read"),
    ],
)
def test_numpy_files_must_hold_a_real_matrix(tmp_path, array, message):
    np.save(tmp_path / "t.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.npy")


def test_npz_keys(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.eye(2), b=np.eye(2))
    with pytest.raises(ValueError, match=r"2 arrays \(a, b\)"):
        read_table(tmp_path / "t.npz")
    with pytest.raises(ValueError, match="no array 'c'"):
        read_table(tmp_path / "t.npz", "c")
    with pytest.raises(ValueError, match="only npz files have keys"):
        read_table(write(tmp_path / "t.csv", "1,2\n"), "a")


def test_written_tables_read_back_exactly(tmp_path, rng):
    X = rng.standard_normal((4, 2)) * 1e-7
    write_table(tmp_path / "t.csv", X, ["p", "q"], list("wxyz"), "sample")
    table = read_table(tmp_path / "t.csv")
    assert np.array_equal(table.values, X)
    assert list(table.rows) == list("wxyz")


# --- folders ---


def test_an_interrupted_folder_leaves_nothing(tmp_path):
    def interrupted():
        with output_folder(tmp_path / "out") as folder:
            (folder / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_folders_are_refused_or_replaced_file_by_file(tmp_path):
    out = tmp_path / "deep" / "out"
    with output_folder(out) as folder:
        (folder / "a").write_text("1")
    with pytest.raises(FileExistsError, match="--overwrite"), output_folder(out):
        pass
    (out / "mine").write_text("kept")
    with output_folder(out, overwrite=True) as folder:
        (folder / "a").write_text("2")
    assert (out / "a").read_text() == "2"
    assert (out / "mine").read_text() == "kept"
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    with pytest.raises(FileExistsError, match="is a file"), output_folder(out / "mine"):
        pass


# --- models ---


@pytest.fixture
def data():
    return make_synthetic(5, n_samples=3000, random_state=0)


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        ContrastiveICA(
            2, n_background=np.int64(5), n_foreground=4, deflation="least_squares", random_state=0
        ),
        ContrastiveICA(
            2,
            n_background=5,
            n_foreground=4,
            n_pcs=4,
            deflation="least_squares",
            projection="filter",
        ),
        ContrastiveICA(2, random_state=0),
        ContrastiveICA(2, n_foreground=3, solver="subspace", cumulant="robust"),
        ProportionalContrastiveICA(3, n_background=5, n_foreground=4, background_scale=0.9),
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
    with np.load(tmp_path / "m.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    header = json.loads(str(arrays["header"]))
    for name in ("near_ties_", "rank_choice_.near_ties"):
        del header["learnt"][name]
    np.savez(tmp_path / "old.npz", **{**arrays, "header": np.array(json.dumps(header))})
    older = load(tmp_path / "old.npz")
    assert older.near_ties_ == older.rank_choice_.near_ties == ()


def test_t_values_are_read_by_the_name_they_had(tmp_path):
    data = make_synthetic(5, n_samples=20_000, random_state=0)
    model = ContrastiveICA(2, random_state=0).fit(data.foreground, background=data.background)
    save(model, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    arrays["pattern_scores_"] = arrays.pop("pattern_t_values_")
    arrays["rank_choice_.scores"] = arrays.pop("rank_choice_.t_values")
    np.savez(tmp_path / "old.npz", **arrays)
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
        deflation="least_squares",
        random_state=0,
    )
    save(model.fit(data.foreground, background=data.background), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        arrays = {key: stored[key] for key in stored.files if key != "pattern_t_values_"}
    header = json.loads(str(arrays["header"]))
    for name in ("solver_", "reason_", "rank_choice_"):
        del header["learnt"][name]
    if solver is None:
        del header["parameters"]["solver"]
    np.savez(tmp_path / "old.npz", **{**arrays, "header": np.array(json.dumps(header))})
    again = load(tmp_path / "old.npz")
    assert again.solver == again.solver_ == (solver or "paper")
    assert np.array_equal(again.transform(data.foreground), model.transform(data.foreground))
    assert "earlier version" in again.summary()


def test_saved_models_hold_no_pickle(tmp_path, data):
    model = ContrastiveICA(
        2,
        n_background=5,
        n_foreground=4,
        deflation="least_squares",
        random_state=np.random.default_rng(0),
    )
    save(model.fit(data.foreground, background=data.background), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as stored:
        assert all(stored[key].dtype != object for key in stored.files)
    assert load(tmp_path / "m.npz").random_state is None  # a generator is not kept


def test_what_is_no_model_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2))
    with pytest.raises(ValueError, match="not a model saved by contrica"):
        load(tmp_path / "t.npz")
    with pytest.raises(ValueError, match="not a model"):
        load(write(tmp_path / "t.txt", "hello"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(tmp_path / "none.npz")


def test_only_fitted_models_of_ours_are_saved(tmp_path):
    from sklearn.decomposition import PCA
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(ContrastiveICA(), tmp_path / "m.npz")
    with pytest.raises(ValueError, match="PCA cannot be saved"):
        save(PCA(), tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []
