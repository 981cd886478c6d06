import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from contrica import ContrastiveICA, load
from contrica.cli import _in_shell_words, app
from contrica.datasets import make_four_clusters, make_synthetic
from contrica.files import read_table

runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def words(result):
    return " ".join(result.output.split())


@pytest.fixture
def files(tmp_path):
    data = make_four_clusters(300, random_state=0)
    names = ["alpha", "beta", "gamma", "delta", "eps"]
    for name, rows in (("fore", data.foreground), ("back", data.background)):
        index = [f"{name}{i}" for i in range(len(rows))]
        pd.DataFrame(rows, columns=names, index=index).to_csv(tmp_path / f"{name}.csv")
    return tmp_path


FIT = ("--n-background", 3, "--n-foreground", 2, "--deflation", "least_squares")


def fit(folder, *more, out="out"):
    return run(
        "fit",
        folder / "fore.csv",
        "--background",
        folder / "back.csv",
        "--out",
        folder / out,
        *more,
    )


def test_a_scree_of_what_is_not_written_out_is_left_out_and_that_is_said(files, monkeypatch):
    from contrica import cli

    monkeypatch.setattr(cli, "fits_packed", lambda *_: False)
    result = fit(files, *FIT)
    assert result.exit_code == 0, result.output
    assert "scree.png" not in os.listdir(files / "out")
    assert "scree.png is left out: 5 dimensions are too many for it" in words(result)


def test_fit_writes_its_files_and_prints_a_summary(files):
    result = fit(files, *FIT)
    assert result.exit_code == 0, result.output
    out = files / "out"
    assert sorted(os.listdir(out)) == [
        "model.npz",
        "patterns.csv",
        "scatter.png",
        "scores.csv",
        "scree.png",
    ]
    patterns, scores = read_table(out / "patterns.csv"), read_table(out / "scores.csv")
    assert list(patterns.rows) == ["alpha", "beta", "gamma", "delta", "eps"]
    assert list(patterns.columns) == ["pattern_1", "pattern_2"]
    assert list(scores.rows[:2]) == ["fore0", "fore1"]
    fore, back = read_table(files / "fore.csv"), read_table(files / "back.csv")
    with pytest.warns():  # the background is singular by design
        model = ContrastiveICA(
            2, n_background=3, n_foreground=2, deflation="least_squares", random_state=0
        ).fit(fore.values, background=back.values)
    assert_allclose(patterns.values, model.components_.T)
    assert_allclose(scores.values, model.transform(fore.values))
    assert "contrast ratio" in result.output
    assert "2 patterns kept, of l = 2 sought after r = 3 background patterns" in result.output
    assert "warning: the background covariance has rank 3" in result.output
    assert (out / "scatter.png").read_bytes().startswith(b"\x89PNG")


def test_a_fitted_model_scores_new_rows(files):
    fit(files, *FIT)
    result = run(
        "transform", files / "out" / "model.npz", files / "back.csv", "--out", files / "new.csv"
    )
    assert result.exit_code == 0, result.output
    scores = read_table(files / "new.csv")
    model = load(files / "out" / "model.npz")
    del model.feature_names_in_
    assert_allclose(scores.values, model.transform(read_table(files / "back.csv").values))
    assert list(scores.rows[:1]) == ["back0"]
    again = run(
        "transform", files / "out" / "model.npz", files / "back.csv", "--out", files / "new.csv"
    )
    assert again.exit_code == 2
    assert "--overwrite" in again.output


def test_transform_compares_names(files):
    fit(files, *FIT)
    frame = pd.read_csv(files / "back.csv", index_col=0)
    frame[frame.columns[::-1]].to_csv(files / "turned.csv")
    result = run(
        "transform", files / "out" / "model.npz", files / "turned.csv", "--out", files / "new.csv"
    )
    assert result.exit_code == 2
    assert "another order" in result.output
    assert not (files / "new.csv").exists()


def test_proportional_and_its_scale(files):
    result = fit(
        files, *FIT, "--proportional", "--background-scale", "0.8", "--projection", "filter"
    )
    assert result.exit_code == 0, result.output
    assert load(files / "out" / "model.npz").background_scale_ == 0.8
    assert "background scale 0.8" in result.output
    wrong = fit(files, *FIT, "--background-scale", "0.8", out="other")
    assert wrong.exit_code == 2
    assert "--proportional" in wrong.output


def test_solvers_by_name(files):
    for solver, options in (("joint", FIT), ("paper", FIT), ("subspace", ("--n-foreground", 2))):
        result = fit(files, *options, "--solver", solver, out=solver)
        assert result.exit_code == 0, result.output
        model = load(files / solver / "model.npz")
        assert (model.solver, model.solver_) == (solver, solver)
        assert f"solver: {solver} (" in words(result)
        assert ("k(f)" in result.output) == (solver == "subspace")
        assert ("contrast subspace; l = 2 of 5" in words(result)) == (solver == "subspace")
    for options, message in (
        (("--solver", "magic"), "--solver magic is not known"),
        (("--solver", "joint", "--proportional"), "--solver is of cICA"),
    ):
        wrong = fit(files, *FIT, *options, out="other")
        assert wrong.exit_code == 2
        assert message in " ".join(wrong.output.split())


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
        for line in model.summary().splitlines():
            if line.startswith(("solver", "rank selection")):
                assert line in words(result)
        assert ("k(f)" if name == "noise" else "k(b)") in result.output


def test_several_backgrounds(files):
    back = pd.read_csv(files / "back.csv", index_col=0)
    for name, rows in (("one", back[:150]), ("two", back[150:])):
        rows.to_csv(files / f"{name}.csv")
    both = ("--background", files / "one.csv", "--background", files / "two.csv")
    result = run("fit", files / "fore.csv", *both, "--out", files / "out", *FIT)
    assert result.exit_code == 0, result.output
    assert "read 300 foreground and 150 + 150 background rows of 5 variables" in result.output
    parts = [read_table(files / f"{name}.csv").values for name in ("one", "two")]
    with pytest.warns():  # the background is singular by design
        model = ContrastiveICA(2, n_background=3, n_foreground=2, random_state=0).fit(
            read_table(files / "fore.csv").values, background=parts
        )
    assert_allclose(load(files / "out" / "model.npz").components_, model.components_)
    assert run("ranks", files / "fore.csv", *both).exit_code == 0
    for options, message in (
        (("--solver", "paper"), "2 backgrounds came, but --solver paper takes one"),
        (("--proportional",), "2 backgrounds came"),
    ):
        refused = run("fit", files / "fore.csv", *both, "--out", files / "no", *FIT, *options)
        assert refused.exit_code == 2
        assert message in words(refused)


def test_every_background_has_its_key_or_all_have_one(files):
    data = make_four_clusters(100, random_state=0)
    np.savez(files / "f.npz", x=data.foreground, y=data.background[:50], z=data.background[50:])
    call = ("ranks", files / "f.npz", "--key", "x", *("--background", files / "f.npz") * 2)
    for keys, code in (("y", 0), ("yz", 0), ("yzy", 2), ("", 2)):
        result = run(*call, *(part for key in keys for part in ("--background-key", key)))
        assert result.exit_code == code, result.output
        if len(keys) == 3:
            assert "3 keys came for 2 backgrounds" in words(result)


def test_robust_cumulants(files):
    assert fit(files, *FIT, "--cumulant", "robust").exit_code == 0
    assert load(files / "out" / "model.npz").cumulant == "robust"
    call = ("ranks", files / "fore.csv", "--background", files / "back.csv")
    assert run(*call, "--cumulant", "robust").exit_code == 0
    wrong = run(*call, "--cumulant", "magic")
    assert wrong.exit_code == 2
    assert "--cumulant magic is not known" in words(wrong)


def test_npz_with_several_arrays_needs_keys(files):
    data = make_four_clusters(100, random_state=0)
    np.savez(files / "both.npz", fore=data.foreground, back=data.background)
    common = (
        "fit",
        files / "both.npz",
        "--background",
        files / "both.npz",
        "--out",
        files / "out",
        *FIT,
    )
    without = run(*common)
    assert without.exit_code == 2
    assert "2 arrays (fore, back)" in without.output
    result = run(*common, "--key", "fore", "--background-key", "back")
    assert result.exit_code == 0, result.output
    assert list(read_table(files / "out" / "patterns.csv").rows)[:2] == ["x0", "x1"]


def test_an_existing_folder_is_refused_without_overwrite(files):
    assert fit(files, *FIT).exit_code == 0
    before = (files / "out" / "patterns.csv").read_text()
    refused = fit(files, *FIT, "--components", "1")
    assert refused.exit_code == 2
    assert "exists already" in refused.output
    assert (files / "out" / "patterns.csv").read_text() == before
    assert fit(files, *FIT, "--components", "1", "--overwrite").exit_code == 0
    assert list(read_table(files / "out" / "patterns.csv").columns) == ["pattern_1"]


def test_ranks_prints_eigenvalues_a_choice_and_verdicts(files):
    result = run(
        "ranks", files / "fore.csv", "--background", files / "back.csv", "--out", files / "s.png"
    )
    assert result.exit_code == 0, result.output
    assert "eigenvalues suggest: r = " in result.output
    said = words(result)
    assert re.search(r"significant: r = \d+ background and l = \d+ foreground patterns", said)
    assert "rank selection: threshold t = " in said
    for label in ("prop:iden_alg2", "prop:iden_cica_tensor", "subspace power method"):
        assert label in result.output
    assert (files / "s.png").exists()


def test_ranks_by_significance_are_looked_for_where_a_fit_would_look(files, rng):
    for name in ("wide", "wide_back"):
        np.save(files / f"{name}.npy", rng.laplace(size=(400, 20)))
    call = ("ranks", files / "wide.npy", "--background", files / "wide_back.npy")
    assert "not looked for, 20 dimensions are too many" in words(run(*call))
    assert "not looked for" not in words(run(*call, "--n-pcs", "5"))
    refused = run(*call, "--memory-limit", "much")
    assert refused.exit_code == 2
    assert "--memory-limit" in words(refused)


def broken(files, name, text):
    (files / name).write_text(text)
    return files / name


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda f: f / "none.csv", (), "does not exist"),
        (lambda f: broken(f, "b.csv", ""), (), "is empty"),
        (lambda f: broken(f, "b.csv", "alpha,beta\n1,2\n3,4\n"), (), "missing from"),
        (
            lambda f: broken(f, "b.csv", "a,b,c,d,e\n1,2,3,4,5\n1,2,3,4,5\n"),
            (),
            "different features",
        ),
        (
            lambda f: broken(f, "b.csv", "beta,alpha,gamma,delta,eps\n1,2,3,4,5\n2,3,4,5,6\n"),
            (),
            "another order",
        ),
        (
            lambda f: broken(f, "b.csv", "alpha,beta,gamma,delta,eps\n1,2,x,4,5\n"),
            (),
            r"row 2, column 3 ('gamma') holds 'x'",
        ),
        (
            lambda f: broken(f, "b.csv", "alpha,beta,gamma,delta,eps\n1,2,3,4,5\n"),
            (),
            "background has 1 sample(s), but at least 2 rows",
        ),
        (
            lambda f: broken(f, "b.csv", "alpha,beta,gamma,delta,eps\n1,nan,3,4,5\n1,2,3,4,5\n"),
            (),
            "is nan",
        ),
        (lambda f: f / "back.csv", ("--n-background", "0"), "--n-background 0 is too small"),
        (lambda f: f / "back.csv", ("--n-foreground", "99"), "--n-foreground 99 is too large"),
        (lambda f: f / "back.csv", ("--n-pcs", "many"), "--n-pcs 'many'"),
        (lambda f: f / "back.csv", ("--deflation", "magic"), "--deflation magic is not known"),
        (lambda f: f / "back.csv", ("--components", "0"), "--components 0 is too small"),
        (lambda f: f / "back.csv", ("--seed", "-1"), "--seed -1"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_no_folder(files, make, options, message):
    background = make(files)
    result = run(
        "fit", files / "fore.csv", "--background", background, "--out", files / "out", *options
    )
    assert result.exit_code == 2, result.output
    assert "error: " in result.output
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not (files / "out").exists()
    assert not [path for path in files.iterdir() if path.name.startswith(".")]


def test_a_failing_fit_leaves_no_parent_folders(files):
    result = run(
        "fit",
        files / "none.csv",
        "--background",
        files / "back.csv",
        "--out",
        files / "deep" / "er" / "out",
    )
    assert result.exit_code == 2
    assert not (files / "deep").exists()
    assert fit(files, *FIT, out="deep/er/out").exit_code == 0
    assert (files / "deep" / "er" / "out" / "model.npz").exists()


def test_scores_of_unnamed_rows_read_back_as_scores(files):
    data = make_four_clusters(100, random_state=0)
    np.save(files / "f.npy", data.foreground)
    np.save(files / "b.npy", data.background)
    run("fit", files / "f.npy", "--background", files / "b.npy", "--out", files / "out", *FIT)
    scores = read_table(files / "out" / "scores.csv")
    assert list(scores.columns) == ["pattern_1", "pattern_2"]
    assert list(scores.rows[:3]) == ["0", "1", "2"]


def test_a_damaged_model_or_file_is_one_sentence(files):
    (files / "bad.npz").write_bytes(b"PK\x03\x04 and then nothing of use")
    for arguments in (
        ("transform", files / "bad.npz", files / "back.csv", "--out", files / "o.csv"),
        ("fit", files / "bad.npz", "--background", files / "back.csv", "--out", files / "out"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert "error: " in result.output


def test_ranks_does_not_replace_a_figure_unasked(files):
    (files / "s.png").write_text("mine")
    call = (
        "ranks",
        files / "fore.csv",
        "--background",
        files / "back.csv",
        "--out",
        files / "s.png",
    )
    assert run(*call).exit_code == 2
    assert (files / "s.png").read_text() == "mine"
    assert run(*call, "--overwrite").exit_code == 0


def test_running_numbers_as_header_need_no_option_and_others_are_asked_about(files):
    data = make_four_clusters(100, random_state=0)
    for header in (range(5), range(2001, 2006)):
        for name, rows in (("f", data.foreground), ("b", data.background)):
            pd.DataFrame(rows, columns=list(header)).to_csv(files / f"{name}.csv", index=False)
        call = ("fit", files / "f.csv", "--background", files / "b.csv", "--overwrite", *FIT)
        plain = run(*call, "--out", files / "plain")
        assert plain.exit_code == (0 if header[0] == 0 else 2), plain.output
        told = run(*call, "--out", files / "told", "--header")
        assert told.exit_code == 0, told.output
        patterns = pd.read_csv(files / "told" / "patterns.csv", index_col=0)
        assert list(patterns.index) == list(header)
    assert "--header" in plain.output


def test_warnings_name_columns_by_their_names(files):
    frame = pd.read_csv(files / "fore.csv", index_col=0)
    frame["gamma"] = 1.0
    frame.to_csv(files / "fore.csv")
    assert "constant in the foreground (gamma)" in " ".join(fit(files, *FIT).output.split())


def test_an_index_taken_for_a_variable_is_named(files):
    for name in ("fore", "back"):
        frame = pd.read_csv(files / f"{name}.csv", index_col=0)
        frame.insert(0, "id", range(len(frame)))
        frame.to_csv(files / f"{name}.csv", index=False)
    assert "first column ('id')" in " ".join(fit(files, *FIT).output.split())


def test_the_shell_speaks_of_options_not_of_parameters():
    words = _in_shell_words  # not those of a result
    assert words("n_background=0 is too small.") == "--n-background 0 is too small."
    assert words('use deflation="least_squares".') == "use --deflation least_squares."
    assert (
        words("constant in X (a): lower n_pcs") == "constant in the foreground (a): lower --n-pcs"
    )
    assert words("column 'X' of n_backgrounds") == "column 'X' of n_backgrounds"
    for plain in ("its fourth cumulant stands out", "/data/X/n_pcs.csv does not exist."):
        assert words(plain) == plain
    assert (
        words("Lower the rank (n_background) or X.")
        == "Lower the rank (--n-background) or the foreground."
    )


def test_usage_errors_and_help():
    assert run("fit").exit_code == 2
    for command in ("fit", "transform", "ranks", "demo"):
        result = run(command, "--help")
        assert result.exit_code == 0
        assert "--out" in result.output
    assert run("--version").output.strip().startswith("0.")


def test_the_demo_runs_and_prints_its_patterns(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert "patterns.png" in os.listdir(tmp_path / "demo")
    lines = [line for line in result.output.splitlines() if "correlation" in line]
    assert len(lines) == 2
    # each pattern is a digit; what a random one in the space of the leading components reaches one
    # time in a hundred is about 0.49
    for line in lines:
        assert max(float(value) for value in re.findall(r"([\d.]+) with", line)) > 0.95
    assert "solver: subspace (" in words(result)
    assert "k(f)" in result.output


def test_the_installed_command_runs_and_answers_errors_on_stderr(tmp_path):
    call = [
        sys.executable,
        "-m",
        "contrica.cli",
        "fit",
        "none.csv",
        "--background",
        "none.csv",
        "--out",
        "o",
    ]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "none.csv does not exist" in done.stderr


def test_a_missing_extra_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['typer'] = None; import contrica.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install 'contrica[cli]'" in done.stderr


# --- files that are read block by block ---


def as_npy(frame, path):
    np.save(path / "rows.npy", frame.to_numpy())
    return path / "rows.npy"


def as_parquet(frame, path):
    for i in range(3):
        frame[i * 100 : (i + 1) * 100].to_parquet(path / f"part.{i}.parquet", row_group_size=30)
    return f"{path}/*.parquet"


def as_zarr(frame, path):
    import zarr

    group = zarr.open_group(path / "rows.zarr", mode="w")
    group.create_array("rows", shape=frame.shape, chunks=(70, 5), dtype="f8")[:] = frame.to_numpy()
    return path / "rows.zarr"


def as_h5ad(frame, path):
    import anndata
    import scipy.sparse as sp

    held = anndata.AnnData(sp.csr_matrix(frame.to_numpy()), obs=frame.iloc[:, :0])
    held.var_names = list(frame.columns)
    held.write_h5ad(path / "rows.h5ad")
    return path / "rows.h5ad"


STORES = {"npy": as_npy, "parquet": as_parquet, "zarr": as_zarr, "h5ad": as_h5ad}


def stored(files, kind):
    """The two datasets in files of another kind."""
    paths = []
    for name in ("fore", "back"):
        folder = files / f"{kind}_{name}"
        folder.mkdir()
        paths.append(STORES[kind](pd.read_csv(files / f"{name}.csv", index_col=0), folder))
    return paths


def same_tables(one, other, **tolerance):
    one, other = read_table(one), read_table(other)
    assert_allclose(one.values, other.values, **tolerance)
    return one, other


@pytest.mark.parametrize("kind", STORES)
def test_other_files_give_what_csv_gives(files, kind):
    assert fit(files, *FIT).exit_code == 0
    fore, back = stored(files, kind)
    result = run("fit", fore, "--background", back, "--out", files / kind, *FIT)
    assert result.exit_code == 0, result.output
    assert "read 300 foreground and 300 background rows of 5 variables" in result.output
    assert sorted(os.listdir(files / kind)) == sorted(os.listdir(files / "out"))
    assert os.listdir(files / kind).count("scree.png") == 1
    named = kind in ("parquet", "h5ad")
    for table in ("patterns.csv", "scores.csv"):
        one, other = same_tables(files / kind / table, files / "out" / table, atol=1e-9)
        assert (list(one.rows) == list(other.rows)) == named
    assert hasattr(load(files / kind / "model.npz"), "feature_names_in_") == named
    scored = run("transform", files / kind / "model.npz", back, "--out", files / "one.csv")
    assert scored.exit_code == 0, scored.output
    assert "300 rows scored on 2 patterns" in words(scored)
    run("transform", files / "out" / "model.npz", files / "back.csv", "--out", files / "two.csv")
    same_tables(files / "one.csv", files / "two.csv", atol=1e-9)
    plain, other = (
        run("ranks", *pair)
        for pair in (
            (files / "fore.csv", "--background", files / "back.csv"),
            (fore, "--background", back),
        )
    )
    # eigenvalues that are zero differ
    one, two = (words(each).partition("eigenvalues suggest")[2] for each in (plain, other))
    assert one == two != ""
    call = ("--methods", "pca,cpca", "--out", files / "compared")
    compared = run("compare", fore, "--background", back, *call)
    assert compared.exit_code == 0, compared.output


def test_names_of_files_of_two_kinds_are_compared(files):
    fore, _ = stored(files, "parquet")
    frame = pd.read_csv(files / "back.csv", index_col=0)
    frame[frame.columns[::-1]].to_csv(files / "turned.csv")
    result = run("fit", fore, "--background", files / "turned.csv", "--out", files / "o", *FIT)
    assert result.exit_code == 2
    assert "another order" in result.output
    mixed = run("fit", fore, "--background", files / "back.csv", "--out", files / "o", *FIT)
    assert mixed.exit_code == 0, mixed.output


def test_compare_takes_labels_by_the_names_in_the_file(files):
    fore, back = stored(files, "parquet")
    lines = "".join(f"fore{i},{'ab'[i % 2]}\n" for i in range(300))
    (files / "labels.csv").write_text(lines)
    call = ("compare", fore, "--background", back, "--methods", "pca", "--labels")
    result = run(*call, files / "labels.csv")
    assert result.exit_code == 0, result.output
    assert "silhouette" in result.output


def test_missing_values_in_files_read_by_block_are_named(files):
    fore, back = stored(files, "npy")
    assert run("fit", fore, "--background", back, "--out", files / "out", *FIT).exit_code == 0
    rows = np.load(fore)
    rows[7, 2] = np.nan
    np.save(fore, rows)
    for call in (
        ("fit", fore, "--background", back, "--out", files / "o"),
        ("ranks", fore, "--background", back),
        ("transform", files / "out" / "model.npz", fore, "--out", files / "o.csv"),
    ):
        result = run(*call)
        assert result.exit_code == 2, result.output
        assert "NaN" in result.output
    assert "row 8 has no scores" in result.output
    assert not (files / "o.csv").exists()


def test_the_row_that_cannot_be_scored_is_counted_from_the_first_of_the_file(files, monkeypatch):
    fore, back = stored(files, "npy")
    assert run("fit", fore, "--background", back, "--out", files / "out", *FIT).exit_code == 0
    rows = np.load(fore)
    rows[207, 2], rows[250, 0] = np.inf, np.nan
    np.save(fore, rows)
    monkeypatch.setattr("contrica.rows.blocks.block_rows", lambda *_: 100)
    result = run("transform", files / "out" / "model.npz", fore, "--out", files / "o.csv")
    assert result.exit_code == 2, result.output
    assert "row 208 has no scores" in result.output


def test_a_scatter_of_many_rows_shows_some_and_says_so(files, monkeypatch):
    import contrica.cli
    from contrica import plots

    drawn = []
    whole = plots.scatter
    monkeypatch.setattr(contrica.cli, "MOST_DRAWN", 50)
    monkeypatch.setattr(
        plots,
        "scatter",
        lambda scores, *a, background, **k: (
            drawn.append((scores, background)) or whole(scores, *a, background=background, **k)
        ),
    )
    result = fit(files, *FIT)
    assert result.exit_code == 0, result.output
    said = "scatter.png shows a random choice: 50 of 300 foreground, 50 of 300 background rows"
    assert said in words(result)
    ((scores, background),) = drawn
    assert scores.shape == background.shape == (50, 2)
    all_scores = read_table(files / "out" / "scores.csv").values
    assert len(all_scores) == 300
    assert {tuple(row) for row in scores} <= {tuple(row) for row in all_scores}


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as running:
        yield running


@pytest.mark.parametrize("kind", ["parquet", "zarr"])
def test_the_workers_of_a_cluster_read_the_rows(files, kind, cluster):
    fore, back = stored(files, kind)
    there = ("--scheduler", cluster.scheduler_address)
    assert fit(files, *FIT).exit_code == 0
    result = run("fit", fore, "--background", back, "--out", files / "far", *FIT, *there)
    assert result.exit_code == 0, result.output
    for table in ("patterns.csv", "scores.csv"):
        one, other = same_tables(files / "far" / table, files / "out" / table, atol=1e-9)
        assert (list(one.rows) == list(other.rows)) == (kind == "parquet")
    call = ("transform", files / "far" / "model.npz", back, "--out", files / "new.csv", *there)
    assert run(*call).exit_code == 0
    assert len(read_table(files / "new.csv").values) == 300
    assert run("ranks", fore, "--background", back, *there).exit_code == 0
    refused = run("ranks", files / "fore.csv", "--background", back, *there)
    assert refused.exit_code == 2
    assert "cannot share. Write the rows as parquet or zarr" in words(refused)


@pytest.mark.parametrize("kind", ["parquet", "zarr"])
def test_a_row_that_workers_cannot_score_is_counted_from_the_first_of_all(files, kind, cluster):
    assert fit(files, *FIT).exit_code == 0
    frame = pd.read_csv(files / "fore.csv", index_col=0)
    frame.iloc[271, 1] = np.nan
    path = STORES[kind](frame, files)
    there = ("--scheduler", cluster.scheduler_address)
    call = ("transform", files / "out" / "model.npz", path, "--out", files / "o.csv", *there)
    result = run(*call)
    assert result.exit_code == 2, result.output
    assert "row 272 has no scores" in words(result)
    assert not (files / "o.csv").exists()


def test_a_scheduler_that_does_not_answer_is_one_sentence(files, monkeypatch):
    import contrica.cli

    monkeypatch.setattr(contrica.cli, "PATIENCE", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere"):
        result = fit(files, *FIT, "--scheduler", address)
        assert result.exit_code == 2, result.output
        assert f"error: no dask scheduler answered at {address} within 1 s" in words(result)
        assert "'dask scheduler'" in words(result)
        assert not (files / "out").exists()


def test_a_cluster_lost_on_the_way_is_one_sentence(files, monkeypatch):
    import contrica.cli

    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(contrica.cli, "PATIENCE", 3)
    fore, back = stored(files, "zarr")
    running = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    whole = ContrastiveICA.fit

    def lost(self, *args, **kwargs):
        running.close()
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(ContrastiveICA, "fit", lost)
    there = ("--scheduler", running.scheduler_address)
    result = run("fit", fore, "--background", back, "--out", files / "out", *FIT, *there)
    assert result.exit_code == 2, result.output
    assert "was lost on the way" in words(result)
    assert not (files / "out").exists()


def test_memory_and_device_are_passed_on_only_when_given(files, monkeypatch):
    import contrica.cli

    def seen(*_, **options):
        raise ValueError(str({key: options.get(key) for key in ("memory_limit", "device")}))

    monkeypatch.setattr(contrica.cli, "ContrastiveICA", seen)
    for text in ("2GB", "500 mb"):
        said = words(fit(files, "--memory-limit", text))
        assert f"'memory_limit': '{text}', 'device': None" in said
    said = words(fit(files, "--memory-limit", "1.5GiB", "--device", "cuda"))
    assert "'memory_limit': '1.5GiB', 'device': 'cuda'" in said
    assert "'memory_limit': None, 'device': None" in words(fit(files))


def test_a_limit_that_is_none_is_said_in_shell_words(files):
    assert "--memory-limit much is not known" in words(fit(files, "--memory-limit", "much"))
