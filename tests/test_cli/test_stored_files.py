"""Commands on files that are read block by block."""

import os

import numpy as np
import pandas as pd
import pytest

from contrica import load
from contrica.errors import DataError, FeaturesError
from tests.test_cli.shell import FIT, refused, run, words
from tests.test_cli.stores import STORES, same_tables, stored

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.mark.parametrize("kind", STORES)
def test_other_files_give_what_csv_gives(fitted, kind):
    fore, back = stored(fitted, kind)
    result = run("fit", fore, "--background", back, "--out", fitted / kind, *FIT)
    assert result.exit_code == 0, result.output
    assert "read 300 foreground and 300 background rows of 5 variables" in result.output
    assert sorted(os.listdir(fitted / kind)) == sorted(os.listdir(fitted / "out"))
    named = kind in ("parquet", "h5ad")
    for table in ("patterns.csv", "scores.csv"):
        one, other = same_tables(fitted / kind / table, fitted / "out" / table, atol=1e-9)
        assert (list(one.rows) == list(other.rows)) == named
    assert hasattr(load(fitted / kind / "model.npz"), "feature_names_in_") == named
    scored = run("transform", fitted / kind / "model.npz", back, "--out", fitted / "one.csv")
    assert scored.exit_code == 0, scored.output
    assert "300 rows scored on 2 patterns" in words(scored)
    call = ("transform", fitted / "out" / "model.npz", fitted / "back.csv")
    assert run(*call, "--out", fitted / "two.csv").exit_code == 0
    same_tables(fitted / "one.csv", fitted / "two.csv", atol=1e-9)


@pytest.mark.parametrize("kind", STORES)
def test_ranks_and_comparisons_of_other_files(files, kind):
    fore, back = stored(files, kind)
    # eigenvalues that are zero differ
    one, two = (
        words(run("ranks", *pair)).partition("eigenvalues suggest")[2]
        for pair in (
            (files / "fore.csv", "--background", files / "back.csv"),
            (fore, "--background", back),
        )
    )
    assert one == two != ""
    compared = run("compare", fore, "--background", back, "--methods", "pca,cpca")
    assert compared.exit_code == 0, compared.output


def test_names_of_files_of_two_kinds_are_compared(files):
    fore, _ = stored(files, "parquet")
    frame = pd.read_csv(files / "back.csv", index_col=0)
    frame[frame.columns[::-1]].to_csv(files / "turned.csv")
    result = run("fit", fore, "--background", files / "turned.csv", "--out", files / "o", *FIT)
    assert "another order" in refused(result, FeaturesError, "order")
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


def test_missing_values_in_files_read_by_block_are_named(fitted):
    fore, back = stored(fitted, "npy")
    rows = np.load(fore)
    rows[7, 2] = np.nan
    np.save(fore, rows)
    answer = run("fit", fore, "--background", back, "--out", fitted / "o")
    said = refused(answer, DataError, "not-finite", "X")
    assert f"error: {fore} contains NaN or infinity, in 1 variable(s)" in said
    assert "is column 2" in said
    said = refused(run("ranks", fore, "--background", back), DataError, "not-finite", "X")
    assert f"error: {fore} contains NaN" in said
    call = ("transform", fitted / "out" / "model.npz", fore, "--out", fitted / "o.csv")
    assert "row 8 has no scores: it contains NaN" in refused(run(*call), DataError, "not-finite")
    assert not (fitted / "o.csv").exists()
    assert not (fitted / "o").exists()
