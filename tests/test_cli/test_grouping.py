"""Groups as columns of the files, and units, in the shell."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, load
from contrica.errors import FileError, FileMissingError, GroupsError, ParameterError
from contrica.rows import open_rows, read_table
from contrica.rows.files import text
from tests.test_cli.shell import refused, run, words
from tests.test_groups import grouped, with_pattern

pytestmark = pytest.mark.usefixtures("no_figures")


def tables():
    """Two frames with a column of donors in their midst."""
    X, groups = grouped(8, 0)
    Y, back_groups = grouped(8, 1, first=8)
    X = with_pattern(X, groups, np.unique(groups))
    frames = []
    for rows, labels in ((X, groups), (Y, back_groups)):
        frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
        frame.insert(2, "donor", labels)
        frames.append(frame)
    return frames


def write_csv(frame, path):
    frame.to_csv(path, index=False)


def write_indexed_csv(frame, path):
    frame.set_axis([f"row {chr(97 + i % 26)}{i}" for i in range(len(frame))]).to_csv(path)


def write_first(frame, path):
    """The donors come first, as names of rows do."""
    frame[["donor", "a", "b", "c", "d"]].to_csv(path, index=False)


def write_tsv(frame, path):
    frame.to_csv(path, index=False, sep="\t")


def write_parquet(frame, path):
    pytest.importorskip("pyarrow")
    frame.to_parquet(path)


def write_h5ad(frame, path):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"donor": pd.Categorical(frame["donor"])})
    obs.index = [f"cell{i}" for i in range(len(frame))]
    values = frame.drop(columns="donor")
    anndata.AnnData(values.to_numpy(), obs=obs, var=pd.DataFrame(index=values.columns)).write_h5ad(
        path
    )


FORMATS = {
    "csv": (write_csv, ".csv"),
    "indexed": (write_indexed_csv, ".csv"),
    "first": (write_first, ".csv"),
    "tsv": (write_tsv, ".tsv"),
    "parquet": (write_parquet, ".parquet"),
    "h5ad": (write_h5ad, ".h5ad"),
}


def write_pair(folder, name):
    write, ending = FORMATS[name]
    paths = folder / f"fore{ending}", folder / f"back{ending}"
    for frame, path in zip(tables(), paths, strict=True):
        write(frame, path)
    return paths


@pytest.mark.parametrize("name", FORMATS)
def test_a_column_of_the_foreground_names_the_groups_of_both(name, tmp_path):
    fore, back = write_pair(tmp_path, name)
    result = run(
        *("fit", fore, "--background", back, "--groups", "donor", "--out", tmp_path / "out")
    )
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "out" / "model.npz")
    assert model.groups_.tolist() == [f"g{i}" for i in range(8)]
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    frames = tables()
    expected = ContrastiveICA(random_state=0).fit(
        frames[0].drop(columns="donor"),
        background=frames[1].drop(columns="donor"),
        groups=frames[0]["donor"],
        background_groups=frames[1]["donor"],
    )
    assert_allclose(model.components_, expected.components_, atol=1e-7)
    assert "groups: p = 0.001" in words(result)
    scored = tmp_path / "scored.csv"
    result = run(
        *("transform", tmp_path / "out" / "model.npz", fore, "--without", "donor", "--out", scored)
    )
    assert result.exit_code == 0, result.output
    scores = expected.transform(frames[0].drop(columns="donor"))
    assert_allclose(read_table(scored).values, scores, atol=1e-6)


def test_columns_of_numbers_and_large_files_are_taken_out_too(tmp_path, monkeypatch):
    frame = tables()[0]
    frame["donor"] = frame["donor"].str[1:].astype(int) + 100
    write_csv(frame, tmp_path / "t.csv")
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    found = open_rows(tmp_path / "t.csv", metadata="donor")
    assert found.columns.tolist() == ["a", "b", "c", "d"]
    assert found.metadata["donor"].tolist() == [str(each) for each in frame["donor"]]
    assert_allclose(found.rows, frame.drop(columns="donor"))
    # R leaves the heading of the names of rows out
    (tmp_path / "r.csv").write_text("x,donor,y\nr1,1,A,2\nr2,3,B,4\n")
    found = read_table(tmp_path / "r.csv", metadata="donor")
    assert found.metadata["donor"].tolist() == ["A", "B"]
    assert found.rows.tolist() == ["r1", "r2"]
    assert found.columns.tolist() == ["x", "y"]
    assert found.values.tolist() == [[1, 2], [3, 4]]


def test_numbers_of_donors_are_no_variables_in_any_command(tmp_path):
    """And --without leaves another column of numbers out, in each."""
    paths = tmp_path / "fore.csv", tmp_path / "back.csv"
    for i, (frame, path) in enumerate(zip(tables(), paths, strict=True)):
        frame["donor"] = frame["donor"].str[1:].astype(int)
        frame["weight"] = 1e6 + np.arange(len(frame)) * (i + 1)
        write_csv(frame, path)
    data = (paths[0], "--background", paths[1], "--groups", "donor", "--without", "weight")
    fits = ("fit", "--no-report", "--out", tmp_path / "out"), ("compare", "--methods", "cica")
    for command, *more in (*fits, ("ranks",)):
        result = run(command, *data, *more, "--scale", "pooled")
        assert result.exit_code == 0, result.output
        assert "rows of 4 variables" in words(result)
    assert load(tmp_path / "out" / "model.npz").feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_names_of_both_datasets_are_said_to_be_pairs(tmp_path):
    paths = tmp_path / "fore.csv", tmp_path / "back.csv"
    for frame, path in zip(tables(), paths, strict=True):
        frame["donor"] = np.sort(np.arange(len(frame)) % 8)
        write_csv(frame, path)
    data = (paths[0], "--background", paths[1], "--groups", "donor", "--out", tmp_path / "out")
    told = "8 of 8 groups of the foreground have names of groups of the background (0, 1, 2, ...)"
    result = run("fit", *data, "--no-report", "--n-foreground", 1)
    assert result.exit_code == 0, result.output
    assert told in words(result)
    assert told in (tmp_path / "out" / "summary.txt").read_text()


def test_names_that_are_not_there_bring_near_ones(tmp_path):
    for name in ("csv", "parquet", "h5ad"):
        fore, back = write_pair(tmp_path, name)
        call = ("fit", fore, "--background", back, "--out", tmp_path / "out")
        said = refused(run(*call, "--groups", "doner"), FileError, "unknown-column", "groups")
        assert "has no column called 'doner'. Did you mean donor?" in said
    np.save(tmp_path / "rows.npy", np.zeros((9, 3)))
    said = refused(
        run("fit", tmp_path / "rows.npy", "-b", back, "--groups", "donor", "-o", tmp_path / "out"),
        *(FileError, "unknown-column"),
    )
    assert "no names" in said


def test_a_background_may_have_a_column_or_a_file_of_its_own(tmp_path):
    fore, back = write_pair(tmp_path, "csv")
    frame = tables()[1].rename(columns={"donor": "animal"})
    write_csv(frame, back)
    (tmp_path / "back.txt").write_text("\n".join(frame["animal"]) + "\n")
    call = ("fit", fore, "--background", back, "--groups", "donor", "--out", tmp_path / "out")
    refused(run(*call), FileError, "unknown-column")
    result = run(*call, "--background-groups", "animal")
    assert result.exit_code == 0, result.output
    write_csv(frame.drop(columns="animal"), back)
    result = run(*call, "--background-groups", tmp_path / "back.txt", "--overwrite")
    assert result.exit_code == 0, result.output
    gone = run(*call, "--overwrite", "--background-groups", "no.txt")
    refused(gone, FileMissingError, "file-missing")
    twice = ("--background-groups", "a", "--background-groups", "b")
    refused(run(*call, "--overwrite", *twice), ParameterError, "groups-length")


def test_missing_values_of_a_column_are_refused(tmp_path):
    fore, back = write_pair(tmp_path, "csv")
    frame = tables()[0]
    frame.loc[3, "donor"] = "NA"
    write_csv(frame, fore)
    call = ("fit", fore, "--background", back, "--groups", "donor", "--out", tmp_path / "out")
    said = refused(run(*call), GroupsError, "groups-missing", "groups")
    assert "the first in row 3" in said


def test_ranks_are_counted_by_groups(tmp_path):
    fore, back = write_pair(tmp_path, "csv")
    result = run("ranks", fore, "--background", back, "--groups", "donor")
    assert result.exit_code == 0, result.output
    said = words(result)
    assert "significant: not tested, rows come in groups" in said
    assert "l = 1 of 4 directions stand out from the permutation null" in said
    assert "95 % of 999 permutations of groups have no ratio above" in said
    assert "fit uses by default: l = 1 by contrast ratio" in said


def test_a_number_that_is_given_does_not_silence_the_p_value(tmp_path):
    fore, back = write_pair(tmp_path, "csv")
    result = run(
        *("fit", fore, "--background", back, "--groups", "donor", "--out", tmp_path / "out"),
        *("--n-foreground", 2, "--components", 2),
    )
    assert result.exit_code == 0, result.output
    assert "groups: p = 0.001" in words(result)
    model = load(tmp_path / "out" / "model.npz")
    assert model.n_foreground_ == len(model.components_) == 2
    assert model.scree_.chosen == 2


def test_units_are_undone_in_the_shell_and_patterns_written_in_both(tmp_path):
    fore, back = write_pair(tmp_path, "csv")
    for frame, path in zip(tables(), (fore, back), strict=True):
        frame["d"] *= 1000
        write_csv(frame.drop(columns="donor"), path)
    call = ("fit", fore, "--background", back, "--out", tmp_path / "out")
    result = run(*call)
    assert "warning: spreads of variables differ" in words(result)
    assert "set --scale pooled" in words(result)
    result = run(*call, "--scale", "pooled", "--overwrite")
    assert result.exit_code == 0, result.output
    assert "spreads" not in words(result)
    model = load(tmp_path / "out" / "model.npz")
    assert model.scale == "pooled"
    patterns, original = (
        read_table(tmp_path / "out" / f"patterns{end}.csv") for end in ("", "_in_original_units")
    )
    assert_allclose(patterns.values.T, model.components_)
    assert_allclose(original.values.T, model.original_components_)
    said = refused(
        run(*call, "--scale", "both", "--overwrite"), ParameterError, "unknown-choice", "scale"
    )
    assert "--scale both is not known" in said
    result = run("ranks", fore, "--background", back, "--scale", "pooled")
    assert result.exit_code == 0, result.output


def test_mice_by_their_names_are_asked_about(tmp_path):
    """Rows in random order, so that only their names tell."""
    rng = np.random.default_rng(0)
    for name, count in (("fore", 20), ("back", 10)):
        rows = np.repeat(rng.standard_normal((count, 4)), 15, axis=0)
        rows += 0.3 * rng.standard_normal(rows.shape)
        index = [f"{300 + i // 15}_{i % 15 + 1}" for i in range(len(rows))]
        frame = pd.DataFrame(rows, columns=[*"abcd"], index=index)
        frame.sample(frac=1, random_state=0).to_csv(tmp_path / f"{name}.csv")
    result = run(
        *("fit", tmp_path / "fore.csv", "-b", tmp_path / "back.csv", "-o", tmp_path / "out")
    )
    assert result.exit_code == 0, result.output
    assert "whose names begin alike, such as 300" in words(result)
    assert "pass them as --groups" in words(result)
