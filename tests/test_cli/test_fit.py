import json
import os

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, load, plots
from contrica.cli import scoring
from contrica.datasets import make_four_clusters, make_synthetic
from contrica.errors import DataError, FeaturesError, FoundFileError, ParameterError
from contrica.rows import read_table
from contrica.solvers import paper_solver
from tests.test_cli.shell import FIT, cause, fit, refused, run, words


def test_fit_writes_its_files_and_prints_a_summary(fitted_once):
    folder, result = fitted_once
    out = folder / "out"
    assert sorted(os.listdir(out)) == [
        "background_scores.csv",
        "check.json",
        "metadata.csv",
        "model.npz",
        "patterns.csv",
        "report.html",
        "run.toml",
        "scatter.png",
        "scores.csv",
        "scree.png",
        "summary.txt",
    ]
    patterns, scores = read_table(out / "patterns.csv"), read_table(out / "scores.csv")
    assert list(patterns.rows) == ["alpha", "beta", "gamma", "delta", "eps"]
    assert list(patterns.columns) == ["pattern_1", "pattern_2"]
    assert list(scores.rows[:2]) == ["fore0", "fore1"]
    fore, back = read_table(folder / "fore.csv"), read_table(folder / "back.csv")
    with pytest.warns():  # the background is singular by design
        model = ContrastiveICA(
            2,
            n_background=3,
            n_foreground=2,
            solver="paper",
            deflation="least_squares",
            random_state=0,
        ).fit(fore.values, background=back.values)
    assert_allclose(patterns.values, model.components_.T)
    assert_allclose(scores.values, model.transform(fore.values))
    assert "contrast ratio k(b)" in result.output
    assert "kurtosis" in result.output
    assert "2 patterns kept, of l = 2 sought after r = 3 background patterns" in result.output
    assert "warning: the background covariance has rank 3" in result.output
    assert f"solver: {model.solver_} ({model.reason_})" in words(result)
    assert words(result).endswith(f"written to {out}")
    for name in ("scatter.png", "scree.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


def test_a_scree_of_what_is_not_written_out_is_left_out_and_that_is_said(files, monkeypatch):
    monkeypatch.setattr(paper_solver, "dense_scree", lambda *_: None)
    result = fit(files, *FIT)
    assert result.exit_code == 0, result.output
    assert "scree.png" not in os.listdir(files / "out")
    assert "scree.png is left out: 5 dimensions are too many for it" in words(result)


def test_a_scatter_of_many_rows_shows_some_and_says_so(files, monkeypatch):
    drawn = []
    whole = plots.scores

    def scores_of(scores, *more, background, **options):
        drawn.append((scores, background))
        return whole(scores, *more, background=background, **options)

    monkeypatch.setattr(scoring, "MAX_DRAWN", 50)
    monkeypatch.setattr(plots, "scores", scores_of)
    result = fit(files, *FIT)
    assert result.exit_code == 0, result.output
    said = "scatter.png shows a random sample: 50 of 300 foreground, 50 of 300 background rows"
    assert said in words(result)
    ((scores, background),) = drawn
    assert scores.shape == background.shape == (50, 2)
    all_scores = read_table(files / "out" / "scores.csv").values
    assert len(all_scores) == 300
    assert {tuple(row) for row in scores} <= {tuple(row) for row in all_scores}


@pytest.mark.usefixtures("no_figures")
def test_proportional_and_its_scale(files):
    scaled = ("--n-foreground", 2, "--proportional", "--background-scale", "0.8")
    result = fit(files, *scaled, "--projection", "filter")
    assert result.exit_code == 0, result.output
    model = load(files / "out" / "model.npz")
    assert (model.background_scale_, model.projection) == (0.8, "filter")
    assert "background scale 0.8" in result.output
    assert "solver:" not in result.output
    wrong = fit(files, *FIT, "--background-scale", "0.8", out="other")
    said = refused(wrong, ParameterError, "not-together", "background_scale")
    assert "--background-scale needs --proportional" in said


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("solver", ["joint", "paper", "subspace"])
def test_solvers_by_name(files, solver):
    ranks = ("--n-foreground", 2) + (() if solver == "subspace" else ("--n-background", 3))
    result = fit(files, *ranks, "--solver", solver)
    assert result.exit_code == 0, result.output
    model = load(files / "out" / "model.npz")
    assert (model.solver, model.solver_) == (solver, solver)
    assert f"solver: {solver} ({model.reason_})" in words(result)
    assert ("k(f)" in result.output) == (solver == "subspace")
    assert ("contrast subspace; l = 2 of 5" in words(result)) == (solver == "subspace")


def test_solvers_that_there_are_not(files):
    said = refused(
        fit(files, *FIT, "--solver", "magic"), ParameterError, "unknown-choice", "solver"
    )
    assert "--solver magic is not known" in said
    both = fit(files, *FIT, "--solver", "joint", "--proportional")
    assert "--solver is of cICA" in refused(both, ParameterError, "not-together", "solver")


@pytest.mark.usefixtures("no_figures")
def test_the_solver_is_chosen_and_the_choice_printed(tmp_path):
    data = make_synthetic(5, n_samples=20_000, random_state=0)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2, 500, 5)) * [3, 1, 1, 1, 1]
    for name, pair in (("model", (data.foreground, data.background)), ("noise", noise)):
        for kind, rows in zip(("fore", "back"), pair, strict=True):
            np.save(tmp_path / f"{name}_{kind}.npy", rows)
        call = (tmp_path / f"{name}_fore.npy", "--background", tmp_path / f"{name}_back.npy")
        result = run("fit", *call, "--out", tmp_path / name)
        assert result.exit_code == 0, result.output
        model = load(tmp_path / name / "model.npz")
        assert model.solver == "auto"
        assert model.solver_ == ("joint" if name == "model" else "subspace")
        assert f"solver: {model.solver_} ({model.reason_})" in words(result)
        assert (model.rank_choice_ is None) == (name == "noise")
        if model.rank_choice_ is not None:
            assert f"rank selection: {model.rank_choice_.description}" in words(result)
        assert words(result).count("near a tie: ") == len(model.near_ties_)
        assert ("k(f)" if name == "noise" else "k(b)") in result.output


@pytest.mark.usefixtures("no_figures")
def test_near_ties_are_printed(files, monkeypatch):
    whole = ContrastiveICA.fit

    def tied(self, *args, **kwargs):
        whole(self, *args, **kwargs).near_ties_ = ("one decision", "another [decision]")
        return self

    monkeypatch.setattr(ContrastiveICA, "fit", tied)
    assert "near a tie: one decision near a tie: another [decision]" in words(fit(files, *FIT))


@pytest.mark.usefixtures("no_figures")
def test_shifts_of_the_mean_are_marked_or_said_to_be_left_out(tmp_path):
    rng = np.random.default_rng(0)
    for name, shift, size in (("fore", 4, 2), ("back", 0, 1)):
        rows = rng.laplace(size=(1000, 4))
        rows[:, 0] += shift
        rows[:, 2] *= size
        pd.DataFrame(rows, columns=list("abcd")).to_csv(tmp_path / f"{name}.csv", index=False)
    result = fit(tmp_path, "--components", 3, "--no-report", "--json", out="json")
    found = json.loads(result.stdout)["patterns"]
    assert [each["only_shifted"] for each in found] == [False, False, True]
    told = words(fit(tmp_path, "--components", 3, "--no-report", out="all"))
    assert "Patterns by contrast ratio, shifts of the mean last" in told
    assert "* does not stand out; + a shift of the mean, ranked last" in told
    told = words(fit(tmp_path, "--no-report", out="one"))
    assert "Patterns by contrast ratio " in told
    assert "ranked last" not in told
    assert "left out: a shift of the mean, led by a +2.7 sd, " in told


@pytest.mark.usefixtures("no_figures")
def test_several_backgrounds(files):
    back = pd.read_csv(files / "back.csv", index_col=0)
    for name, rows in (("one", back[:150]), ("two", back[150:])):
        rows.to_csv(files / f"{name}.csv")
    both = ("--background", files / "one.csv", "--background", files / "two.csv")
    ranks = ("--n-background", 3, "--n-foreground", 2)
    result = run("fit", files / "fore.csv", *both, "--out", files / "out", *ranks)
    assert result.exit_code == 0, result.output
    assert "read 300 foreground and 150 + 150 background rows of 5 variables" in result.output
    parts = [read_table(files / f"{name}.csv").values for name in ("one", "two")]
    with pytest.warns():  # the background is singular by design
        model = ContrastiveICA(2, n_background=3, n_foreground=2, random_state=0).fit(
            read_table(files / "fore.csv").values, background=parts
        )
    assert_allclose(load(files / "out" / "model.npz").components_, model.components_)
    assert run("ranks", files / "fore.csv", *both).exit_code == 0
    for options in (("--solver", "paper"), ("--proportional",)):
        answer = run("fit", files / "fore.csv", *both, "--out", files / "no", *options)
        assert "2 backgrounds" in refused(answer, DataError, "several-backgrounds", "background")


@pytest.mark.usefixtures("no_figures")
def test_robust_cumulants(files):
    assert fit(files, *FIT, "--cumulant", "robust").exit_code == 0
    assert load(files / "out" / "model.npz").cumulant == "robust"


@pytest.mark.usefixtures("no_figures")
def test_npz_with_several_arrays_needs_keys(files):
    data = make_four_clusters(100, random_state=0)
    np.savez(files / "both.npz", fore=data.foreground, back=data.background)
    both = (files / "both.npz", "--background", files / "both.npz", "--out", files / "out")
    without = run("fit", *both, *FIT)
    assert without.exit_code == 2
    assert "2 arrays (fore, back)" in without.output
    result = run("fit", *both, *FIT, "--key", "fore", "--background-key", "back")
    assert result.exit_code == 0, result.output
    assert list(read_table(files / "out" / "patterns.csv").rows)[:2] == ["x0", "x1"]


@pytest.mark.usefixtures("no_figures")
def test_an_existing_folder_is_refused_without_overwrite(fitted):
    before = (fitted / "out" / "patterns.csv").read_text()
    answer = fit(fitted, *FIT, "--components", "1")
    said = refused(answer, FoundFileError, "exists", "overwrite")
    assert "exists already. Name another folder, or pass --overwrite." in said
    assert (fitted / "out" / "patterns.csv").read_text() == before
    assert fit(fitted, *FIT, "--components", "1", "--overwrite").exit_code == 0
    assert list(read_table(fitted / "out" / "patterns.csv").columns) == ["pattern_1"]


@pytest.mark.usefixtures("no_figures")
def test_a_failing_fit_leaves_no_parent_folders(files):
    deep = files / "deep" / "er" / "out"
    call = (files / "none.csv", "--background", files / "back.csv", "--out", deep)
    assert run("fit", *call).exit_code == 2
    assert not (files / "deep").exists()
    assert fit(files, *FIT, out="deep/er/out").exit_code == 0
    assert (deep / "model.npz").exists()


@pytest.mark.usefixtures("no_figures")
def test_scores_of_unnamed_rows_read_back_as_scores(files):
    data = make_four_clusters(100, random_state=0)
    np.save(files / "f.npy", data.foreground)
    np.save(files / "b.npy", data.background)
    run("fit", files / "f.npy", "--background", files / "b.npy", "--out", files / "out", *FIT)
    scores = read_table(files / "out" / "scores.csv")
    assert list(scores.columns) == ["pattern_1", "pattern_2"]
    assert list(scores.rows[:3]) == ["0", "1", "2"]


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("first", [0, 2001])
def test_running_numbers_as_header_need_no_option_and_others_are_asked_about(files, first):
    data = make_four_clusters(100, random_state=0)
    header = list(range(first, first + 5))
    for name, rows in (("f", data.foreground), ("b", data.background)):
        pd.DataFrame(rows, columns=header).to_csv(files / f"{name}.csv", index=False)
    call = ("fit", files / "f.csv", "--background", files / "b.csv", *FIT)
    plain = run(*call, "--out", files / "plain")
    if first == 0:
        assert plain.exit_code == 0, plain.output
    else:
        assert "Pass --header" in refused(plain, DataError, "same-first-lines", "header")
    told = run(*call, "--out", files / "told", "--header")
    assert told.exit_code == 0, told.output
    patterns = pd.read_csv(files / "told" / "patterns.csv", index_col=0)
    assert list(patterns.index) == header


@pytest.mark.usefixtures("no_figures")
def test_warnings_name_columns_by_their_names_and_the_foreground_as_such(files):
    frame = pd.read_csv(files / "fore.csv", index_col=0)
    frame["gamma"] = 1.0
    frame.to_csv(files / "fore.csv")
    said = words(fit(files, *FIT))
    assert "warning: 1 variable(s) are constant in the foreground (gamma)" in said
    assert said.count("constant in the foreground") == 1


@pytest.mark.usefixtures("no_figures")
def test_an_index_taken_for_a_variable_is_named(files):
    for name in ("fore", "back"):
        frame = pd.read_csv(files / f"{name}.csv", index_col=0)
        frame.insert(0, "id", range(len(frame)))
        frame.to_csv(files / f"{name}.csv", index=False)
    assert "first column ('id')" in words(fit(files, *FIT))


def test_memory_and_device_are_passed_on(files, monkeypatch):
    def seen(*_, **options):
        raise ValueError(str({key: options[key] for key in ("memory_limit", "device")}))

    monkeypatch.setattr("contrica.cli.fit.ContrastiveICA", seen)
    for text in ("2GB", "500 mb"):
        said = words(fit(files, "--memory-limit", text))
        assert f"'memory_limit': '{text}', 'device': None" in said
    said = words(fit(files, "--memory-limit", "1.5GiB", "--device", "cuda"))
    assert "'memory_limit': '1.5GiB', 'device': 'cuda'" in said
    assert "'memory_limit': None, 'device': None" in words(fit(files))


def test_labels_are_colours_and_no_silhouette_is_spoken_of(files, no_figures):
    (files / "labels.txt").write_text("a\nb\n\n" * 100)
    result = fit(files, *FIT, "--no-report", "--labels", files / "labels.txt")
    assert result.exit_code == 0, result.output
    assert "100 of 300 rows have no label: they are fitted like all others" in words(result)
    assert "silhouette" not in words(result)
    (files / "labels.txt").write_text("a\n" * 300)
    result = fit(files, *FIT, "--labels", files / "labels.txt", "--overwrite")
    assert "colours need at least two groups" in refused(result, DataError, "groups", "labels")


# --- bad input ---


def broken(text):
    """A background of this text."""

    def write(folder):
        (folder / "b.csv").write_text(text)
        return folder / "b.csv"

    return write


NAMES = "alpha,beta,gamma,delta,eps\n"


@pytest.mark.parametrize(
    ("make", "cls", "code", "message"),
    [
        (lambda folder: folder / "none.csv", OSError, None, "none.csv does not exist"),
        (broken(""), ValueError, None, "is empty"),
        (broken(f"{NAMES}1,2,x,4,5\n"), ValueError, None, "row 2, column 3 ('gamma') holds 'x'"),
        (broken(f"{NAMES}1,nan,3,4,5\n1,2,3,4,5\n"), ValueError, None, "is nan"),
        (broken("alpha,beta\n1,2\n3,4\n"), FeaturesError, "names", "missing from"),
        (
            broken("a,b,c,d,e\n1,2,3,4,5\n1,2,3,4,5\n"),
            FeaturesError,
            "names",
            "different features",
        ),
        (
            broken("beta,alpha,gamma,delta,eps\n1,2,3,4,5\n2,3,4,5,6\n"),
            FeaturesError,
            "order",
            "another order",
        ),
        (
            broken(f"{NAMES}1,2,3,4,5\n"),
            DataError,
            "too-few-rows",
            "background has 1 sample(s), but at least 2 rows",
        ),
    ],
)
def test_a_bad_background_is_one_sentence_and_leaves_no_folder(files, make, cls, code, message):
    call = (files / "fore.csv", "--background", make(files), "--out", files / "out")
    result = run("fit", *call)
    error = cause(result)
    assert isinstance(error, cls)
    assert code is None or error.code == code
    assert message in words(result)
    assert not (files / "out").exists()
    assert not [path for path in files.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("options", "code", "parameter", "message"),
    [
        (("--n-background", "0"), "too-small", "n_background", "--n-background 0 is too small"),
        (
            ("--n-foreground", "99"),
            "rank-too-large",
            "n_foreground",
            "--n-foreground 99 is too large",
        ),
        (("--n-pcs", "many"), "unknown-choice", "n_pcs", "--n-pcs many is not known"),
        (
            ("--deflation", "magic"),
            "unknown-choice",
            "deflation",
            "--deflation magic is not known",
        ),
        (("--components", "0"), "too-small", "n_components", "--components 0 is too small"),
        (("--seed", "-1"), "bad-seed", "random_state", "--seed -1 cannot seed"),
    ],
)
def test_a_bad_option_is_one_sentence_and_leaves_no_folder(
    files, options, code, parameter, message
):
    assert message in refused(fit(files, *options), ParameterError, code, parameter)
    assert not (files / "out").exists()
    assert not [path for path in files.iterdir() if path.name.startswith(".")]


def test_a_foreground_is_called_the_foreground(files):
    frame = pd.read_csv(files / "fore.csv", index_col=0)
    frame[:1].to_csv(files / "fore.csv")
    said = refused(fit(files), DataError, "too-few-rows", "X")
    assert "error: the foreground has 1 sample(s)" in said


def test_a_limit_that_is_none_is_refused(files):
    answer = fit(files, "--memory-limit", "much")
    said = refused(answer, ParameterError, "unknown-size", "memory_limit")
    assert "--memory-limit much is not known" in said
