import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from contrica import load, save
from contrica.errors import (
    DataError,
    FeaturesError,
    FileError,
    FileMissingError,
    FoundFileError,
    ParameterError,
)
from contrica.rows import Rows, read_table
from contrica.validation import check_has_features
from tests.said import raises
from tests.test_cli.shell import cause, refused, run, words


def transform(folder, data, *more, out="new.csv"):
    return run("transform", folder / "out" / "model.npz", data, "--out", folder / out, *more)


def test_a_fitted_model_scores_new_rows(fitted):
    result = transform(fitted, fitted / "back.csv")
    assert result.exit_code == 0, result.output
    assert f"300 rows scored on 2 patterns, written to {fitted / 'new.csv'}" in words(result)
    scores = read_table(fitted / "new.csv")
    model = load(fitted / "out" / "model.npz")
    assert list(model.feature_names_in_) == ["alpha", "beta", "gamma", "delta", "eps"]
    del model.feature_names_in_
    assert_allclose(scores.values, model.transform(read_table(fitted / "back.csv").values))
    assert list(scores.rows[:1]) == ["back0"]
    again = transform(fitted, fitted / "back.csv")
    assert "pass --overwrite" in refused(again, FoundFileError, "exists", "overwrite")
    assert transform(fitted, fitted / "fore.csv", "--overwrite").exit_code == 0
    assert list(read_table(fitted / "new.csv").rows[:1]) == ["fore0"]


def test_the_array_that_key_names_is_scored(fitted):
    fore, back = (read_table(fitted / f"{name}.csv").values for name in ("fore", "back"))
    np.savez(fitted / "both.npz", fore=fore, back=back)
    with pytest.warns():  # the arrays have no names to compare
        model = load(fitted / "out" / "model.npz")
        for name, rows in (("fore", fore), ("back", back)):
            result = transform(fitted, fitted / "both.npz", "--key", name, out=f"{name}_scores.csv")
            assert result.exit_code == 0, result.output
            scores = read_table(fitted / f"{name}_scores.csv").values
            assert_allclose(scores, model.transform(rows))


def test_whether_there_is_a_header_can_be_said(fitted):
    rows = read_table(fitted / "back.csv").values[:10].round(1)
    np.savetxt(fitted / "bare.csv", rows, delimiter=",", fmt="%.1f")
    bare = load(fitted / "out" / "model.npz")
    del bare.feature_names_in_
    save(bare, fitted / "out" / "model.npz")
    for option, count in (("--no-header", 10), ("--header", 9)):
        result = transform(fitted, fitted / "bare.csv", option, out=f"{count}.csv")
        assert result.exit_code == 0, result.output
        assert f"{count} rows scored" in words(result)
        assert_allclose(read_table(fitted / f"{count}.csv").values, bare.transform(rows[-count:]))


def test_variables_are_found_by_their_names_and_other_columns_left_out(fitted):
    frame = pd.read_csv(fitted / "back.csv", index_col=0)
    assert transform(fitted, fitted / "back.csv").exit_code == 0
    expected = read_table(fitted / "new.csv")
    turned = frame[frame.columns[::-1]]
    turned.to_csv(fitted / "turned.csv")
    result = transform(fitted, fitted / "turned.csv", out="turned_scores.csv")
    assert result.exit_code == 0, result.output
    assert "left out" not in words(result)
    turned.insert(2, "donor", np.arange(len(frame)) % 7)
    turned.insert(0, "weight", 1e6)
    turned.to_csv(fitted / "more.csv")
    result = transform(fitted, fitted / "more.csv", out="more_scores.csv")
    assert result.exit_code == 0, result.output
    said = words(result)
    assert "2 columns of" in said
    assert "more.csv left out: not among the 5 variables of the model" in said
    assert "warning" not in said
    for name in ("turned", "more"):
        scores = read_table(fitted / f"{name}_scores.csv")
        assert_allclose(scores.values, expected.values)
        assert list(scores.rows) == list(expected.rows)


def test_variables_of_the_model_that_are_missing_are_named(fitted):
    frame = pd.read_csv(fitted / "back.csv", index_col=0)
    frame.rename(columns={"gamma": "other"}).to_csv(fitted / "less.csv")
    said = refused(transform(fitted, fitted / "less.csv"), FeaturesError, "names")
    assert "has 4 of the 5 variables" in said
    assert said.count("gamma") == 1
    assert "other" not in said
    np.save(fitted / "wide.npy", np.zeros((9, 7)))
    refused(transform(fitted, fitted / "wide.npy"), FeaturesError, "width")
    assert not (fitted / "new.csv").exists()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_of_genes_those_of_the_mask_are_scored(kind, fitted):
    anndata = pytest.importorskip("anndata")
    frame = pd.read_csv(fitted / "back.csv", index_col=0)
    assert transform(fitted, fitted / "back.csv").exit_code == 0
    wide = frame.assign(**{f"gene{i}": 1.0 for i in range(20)})[
        ["gene3", *frame.columns[::-1], *(f"gene{i}" for i in range(20) if i != 3)]
    ]
    cells = anndata.AnnData(kind(wide.to_numpy()))
    cells.obs_names, cells.var_names = list(frame.index), list(wide.columns)
    cells.write_h5ad(fitted / "all.h5ad")
    result = transform(fitted, fitted / "all.h5ad", out="all.csv")
    assert result.exit_code == 0, result.output
    assert "20 columns of" in words(result)
    assert_allclose(
        read_table(fitted / "all.csv").values, read_table(fitted / "new.csv").values, atol=1e-12
    )


def test_a_variable_that_is_there_twice_is_refused():
    with raises(FeaturesError, "same-names", "new"):
        check_has_features(["a", "b"], ["c", "a", "b", "a"], name="model", other="new")
    check_has_features(["a", "b"], ["c", "b", "a", "c"], name="model", other="new")


def test_what_is_no_model_is_one_sentence(files):
    (files / "bad.npz").write_bytes(b"PK\x03\x04 and then nothing of use")
    call = (files / "back.csv", "--out", files / "o.csv")
    assert "is not a model" in refused(
        run("transform", files / "bad.npz", *call), FileError, "not-a-model"
    )
    assert "Check the path" in refused(
        run("transform", files / "none.npz", *call), FileMissingError, "missing"
    )
    assert "Name the file in it" in refused(
        run("transform", files, *call), FileMissingError, "is-a-folder"
    )
    damaged = run(
        "fit", files / "bad.npz", "--background", files / "back.csv", "--out", files / "o"
    )
    assert "bad.npz" in str(cause(damaged))
    assert sorted(path.name for path in files.iterdir()) == ["back.csv", "bad.npz", "fore.csv"]


@pytest.mark.parametrize("rows_in_block", [100, 300])
def test_the_row_that_cannot_be_scored_is_counted_from_the_first_of_the_file(
    fitted, monkeypatch, rows_in_block
):
    rows = read_table(fitted / "fore.csv").values
    rows[207, 2], rows[250, 0] = np.inf, np.nan
    np.save(fitted / "rows.npy", rows)
    read = []

    def pieces(self):
        for block in self.blocks(rows_in_block):
            read.append(len(block))
            yield block

    monkeypatch.setattr(Rows, "pieces", pieces)
    result = transform(fitted, fitted / "rows.npy")
    assert "row 208 has no scores" in refused(result, DataError, "not-finite")
    assert read == [rows_in_block] * (3 if rows_in_block == 100 else 1)
    assert not (fitted / "new.csv").exists()


def test_scores_are_written_as_csv_and_under_no_other_name(fitted):
    for name in ("new.parquet", "new.npy", "new.tsv", "new.csv.gz"):
        refused(transform(fitted, fitted / "back.csv", out=name), ParameterError, "unknown-type")
        assert not (fitted / name).exists()
    assert transform(fitted, fitted / "back.csv", out="NEW.CSV").exit_code == 0
