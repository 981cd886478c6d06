"""Missing values in the shell: refused by default, read and filled with --missing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from contrica import ContrastiveICA, load
from contrica.errors import DataError, FileError, ParameterError
from tests.test_cli.shell import cause, fit, refused, run, words

pytestmark = pytest.mark.usefixtures("no_figures")
SUBSPACE = ("--solver", "subspace", "--n-foreground", 2, "--components", 2)


@pytest.fixture
def gappy(files):
    """fore.csv and back.csv with empty cells and NA, and the tables that are in them."""
    tables = []
    for name, seed, cell in (("fore", 0, ""), ("back", 1, "NA")):
        table = pd.read_csv(files / f"{name}.csv", index_col=0)
        table[np.random.default_rng(seed).random(table.shape) < 0.1] = np.nan
        table.to_csv(files / f"{name}.csv", na_rep=cell)
        tables.append(table)
    return files, *tables


@pytest.mark.parametrize("way", ["impute", "pairwise"])
def test_fit_gives_what_the_library_gives(gappy, way):
    files, fore, back = gappy
    result = fit(files, *SUBSPACE, "--missing", way)
    assert result.exit_code == 0, result.output
    assert f"missing values: {fore.isna().sum().sum()} in the foreground" in words(result)
    model = ContrastiveICA(2, n_foreground=2, solver="subspace", missing=way, random_state=0)
    model.fit(fore, background=back)
    stored = load(files / "out" / "model.npz")
    assert_allclose(stored.components_, model.components_, atol=1e-6)
    assert_array_equal(stored.n_missing_, [fore.isna().sum(), back.isna().sum()])
    scores = pd.read_csv(files / "out" / "scores.csv", index_col=0)
    assert_allclose(scores, model.transform(fore), atol=1e-4)


def test_transform_scores_rows_with_gaps_if_fit_let_them_pass(gappy):
    files, fore, _ = gappy
    assert fit(files, *SUBSPACE, "--missing", "impute").exit_code == 0
    fore.iloc[4] = np.nan
    fore.to_csv(files / "new.csv")
    call = ("transform", files / "out" / "model.npz", files / "new.csv", "--out", files / "s.csv")
    result = run(*call)
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(files / "s.csv", index_col=0)
    assert list(np.flatnonzero(scores.isna().all(axis=1))) == [4]
    assert scores.notna().sum().sum() == 2 * (len(fore) - 1)


def test_by_default_gaps_are_refused_and_the_option_is_named(gappy):
    files, fore, back = gappy
    result = fit(files, *SUBSPACE)
    assert cause(result).code == "not-numbers"
    assert isinstance(cause(result), FileError)
    assert "Add --missing impute, or fill or drop missing values first." in words(result)
    np.save(files / "fore.npy", fore.to_numpy())
    np.save(files / "back.npy", back.to_numpy())
    call = ("fit", files / "fore.npy", "--background", files / "back.npy", "--out", files / "o")
    said = refused(run(*call), DataError, "not-finite", "X")
    assert "fore.npy contains NaN" in said
    assert "--missing impute" in said
    assert run(*call, *SUBSPACE, "--missing", "impute").exit_code == 0
    said = refused(run(*call, "--missing", "drop"), ParameterError, "unknown-choice", "missing")
    assert "--missing drop" in said


NAMES = [
    (("--groupby", "state", "-b", "wlid"), DataError, "no-rows", "background"),
    (("--foreground", "state=sick", "-b", "state=wlid"), DataError, "no-rows", "background"),
    (("--groupby", "stat", "-b", "wild"), FileError, "unknown-column", "groupby"),
    (
        ("--groupby", "state", "-b", "wild", "--groups", "doner"),
        *(FileError, "unknown-column"),
        "groups",
    ),
    (
        ("--groupby", "state", "-b", "wild", "--groups", "donor~^x+"),
        *(DataError, "no-match"),
        "groups",
    ),
    (("--groupby", "state", "-b", "wild", "--groups", "donor"), FileError, "not-numbers", None),
]


@pytest.mark.parametrize(("options", "cls", "code", "parameter"), NAMES)
@pytest.mark.parametrize("command", ["fit", "ranks", "compare"])
def test_a_wrong_name_is_told_before_missing_values(
    command, options, cls, code, parameter, tmp_path
):
    rows = pd.DataFrame(np.random.default_rng(0).laplace(size=(60, 3)), columns=list("abc"))
    rows["state"], rows["donor"] = np.repeat(["sick", "wild"], 30), np.tile(["d1", "d2"], 30)
    rows.loc[4, "b"] = np.nan
    rows.to_csv(tmp_path / "all.csv", index=False)
    out = ("-o", tmp_path / "out") if command == "fit" else ()
    call = run(command, tmp_path / "all.csv", *options, *out)
    said = refused(call, cls, code, parameter)
    assert ("empty cell" in said) == (code == "not-numbers")


def test_a_wrong_name_in_the_background_is_told_before_gaps_of_the_foreground(gappy):
    files, *_ = gappy
    table = pd.read_csv(files / "fore.csv", index_col=0)
    table.assign(donor="d").to_csv(files / "fore.csv")
    said = refused(fit(files, "--groups", "donor"), FileError, "unknown-column", "groups")
    assert "back.csv has no column called 'donor'" in said
