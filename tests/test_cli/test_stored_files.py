"""Commands on files that are read block by block."""

import os
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from contrica import load
from contrica.errors import DataError, FeaturesError
from tests.test_cli.conftest import write_pair
from tests.test_cli.shell import FIT, fit, refused, run, words
from tests.test_cli.stores import STORES, same_tables, stored

pytestmark = pytest.mark.usefixtures("no_figures")
NUMBER = r"-?\d+\.?\d*(?:e[-+]\d+)?"


@pytest.fixture(scope="module")
def default_fit(tmp_path_factory):
    """A folder with fore.csv, back.csv, what a fit without any option wrote of them, and what it said."""
    folder = write_pair(tmp_path_factory.mktemp("default"))
    result = fit(folder)
    assert result.exit_code == 0, result.output
    return folder, words(result)


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
    tables = (files / "fore.csv", "--background", files / "back.csv")
    fore, back = stored(files, kind)
    pairs = (tables, (fore, "--background", back))
    one, two = (words(run("ranks", *pair)) for pair in pairs)
    numbers = [re.findall(NUMBER, said) for said in (one, two)]
    assert len(numbers[0]) > 40
    # five eigenvalues are zero, but for rounding
    assert_allclose(*(np.array(each, dtype=float) for each in numbers), rtol=2e-3, atol=1e-6)
    assert re.sub(NUMBER, "#", one) == re.sub(NUMBER, "#", two)
    for name, pair in zip(("one", "two"), pairs, strict=True):
        compared = run("compare", *pair, "--methods", "pca,cpca", "--out", files / name)
        assert compared.exit_code == 0, compared.output
    assert sorted(os.listdir(files / "two")) == sorted(os.listdir(files / "one"))
    for method in ("pca", "cpca"):
        table = f"patterns_{method}.csv"
        patterns, _ = same_tables(files / "two" / table, files / "one" / table, atol=1e-9)
        named = kind in ("parquet", "h5ad")
        assert list(patterns.rows)[:2] == (["alpha", "beta"] if named else ["x0", "x1"])
    ratios = ["contrast_ratio_1", "contrast_ratio_2"]
    found, expected = (pd.read_csv(files / name / "comparison.csv") for name in ("two", "one"))
    assert list(found.method) == ["pca", "cpca"]
    assert_allclose(found[ratios], expected[ratios], rtol=1e-6)


@pytest.mark.parametrize("kind", STORES)
def test_default_fits_of_other_files_find_what_those_of_csv_find(default_fit, kind):
    folder, said = default_fit
    fore, back = stored(folder, kind)
    result = run("fit", fore, "--background", back, "--out", folder / kind)
    assert result.exit_code == 0, result.output
    one, two = (load(folder / name / "model.npz") for name in (kind, "out"))
    assert (one.solver, one.solver_, two.solver_) == ("auto", "joint", "joint")
    assert (one.n_background_, one.n_foreground_) == (two.n_background_, two.n_foreground_)
    for table in ("patterns.csv", "scores.csv"):
        same_tables(folder / kind / table, folder / "out" / table, atol=1e-6)
    chosen = f"solver: joint ({two.reason_})"
    assert chosen in said
    assert chosen in words(result)


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
    assert "column 2" in said
    said = refused(run("ranks", fore, "--background", back), DataError, "not-finite", "X")
    assert f"error: {fore} contains NaN" in said
    call = ("transform", fitted / "out" / "model.npz", fore, "--out", fitted / "o.csv")
    assert "row 8 has no scores: it contains NaN" in refused(run(*call), DataError, "not-finite")
    assert not (fitted / "o.csv").exists()
    assert not (fitted / "o").exists()
