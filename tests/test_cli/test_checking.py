"""What the shell says of columns before a fit: raw counts, identifiers and copies, by name."""

import numpy as np
import pandas as pd
import pytest

from contrica.cli.checking import warn_of_columns
from contrica.cli.pair import Data, Pair
from contrica.errors import collected
from contrica.rows import Rows
from tests.test_cli.shell import run, words

pytestmark = pytest.mark.usefixtures("no_figures")

NAMES = ["alpha", "beta", "gamma", "delta"]


def frames(seed=0, n=200):
    rng = np.random.default_rng(seed)
    return [pd.DataFrame(rng.laplace(size=(n, 4)), columns=NAMES) for _ in range(2)]


def with_ids(parts, rng):
    for i, part in enumerate(parts):
        part["chip"] = 1000 * i + rng.permutation(len(part))


def with_ids_of_each(parts, rng):
    for part in parts:
        part["chip"] = 5 + rng.permutation(len(part))


def with_copies(parts, rng):
    for part in parts:
        part["again"] = 3 - 2 * part["beta"]


def with_counts(parts, rng):
    for part in parts:
        part[NAMES] = rng.poisson(3, (len(part), 4))


def with_gaps(parts, rng):
    for part in parts:
        part.iloc[::7, 1] = np.nan
    with_copies(parts, rng)


CASES = [
    (with_ids, "looks-like-an-id", "chip: whole numbers that are different in every row"),
    (with_ids_of_each, "looks-like-an-id", "chip: whole numbers that are different in every row"),
    (with_copies, "duplicated-columns", "the same up to scale: beta = again. Keep one of each"),
    (with_gaps, "duplicated-columns", "the same up to scale: beta = again. Keep one of each"),
    (with_counts, "raw-counts", "the data look like raw counts"),
    (lambda parts, rng: None, None, ""),
]


def found_in(fore, back, **options):
    parts = [Data(part, None, None) for part in (fore, back)]
    with collected() as found:
        warn_of_columns(Pair(parts[0], parts[1:], ["fore", "back"], []), **options)
    return found


@pytest.mark.parametrize(("change", "code", "said"), CASES)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fit_names_columns_that_speak_against_it(change, code, said, ending, tmp_path):
    parts = frames()
    change(parts, np.random.default_rng(1))
    for part, name in zip(parts, ("fore", "back"), strict=True):
        path = tmp_path / f"{name}.{ending}"
        part.to_csv(path, index=False) if ending == "csv" else part.to_parquet(path)
    call = (tmp_path / f"fore.{ending}", "-b", tmp_path / f"back.{ending}")
    more = ("--missing", "impute", "--n-foreground", 1, "--no-report", "-o", tmp_path / "out")
    result = run("fit", *call, *more)
    assert result.exit_code == 0, result.output
    told = words(result)
    assert said in told
    for _, other, other_words in CASES:
        assert other in (None, code) or other_words not in told
    if code in ("looks-like-an-id", "duplicated-columns"):
        assert "with --drop" in told


def test_a_heading_of_which_the_reader_warns_is_told_once(tmp_path):
    parts = frames()
    for i, part in enumerate(parts):
        part.insert(0, "sample id", 1000 * i + np.random.default_rng(i).permutation(len(part)))
        part.to_csv(tmp_path / f"{i}.csv", index=False)
    more = ("--n-foreground", 1, "--no-report", "-o", tmp_path / "out")
    told = words(run("fit", tmp_path / "0.csv", "-b", tmp_path / "1.csv", *more))
    assert "whole numbers under such a heading" in told
    assert "different in every row" not in told


def test_ranks_and_compare_say_it_too(tmp_path):
    parts = frames()
    with_copies(parts, None)
    for i, part in enumerate(parts):
        part.to_csv(tmp_path / f"{i}.csv", index=False)
    for command in (("ranks",), ("compare", "--methods", "pca")):
        told = words(run(*command, tmp_path / "0.csv", "-b", tmp_path / "1.csv"))
        assert "beta = again" in told


def test_pixels_are_no_counts():
    rng = np.random.default_rng(0)
    fore, back = rng.integers(0, 256, (2, 300, 16)).astype(float)
    assert [each.code for each in found_in(fore, back)] == ["raw-counts"]
    assert found_in(fore, back, images=True) == []


def test_rare_variables_that_agree_by_chance_are_no_copies():
    """Two genes that one and the same cell has are alike in all rows."""
    rng = np.random.default_rng(0)
    fore, back = rng.laplace(size=(2, 300, 6))
    fore[:, 4:], back[:, 4:] = 0, 0
    fore[3, 4:] = 1.5
    assert found_in(fore, back) == []
    fore[:40, 4:] = rng.laplace(size=(40, 1))
    assert [each.code for each in found_in(fore, back)] == ["duplicated-columns"]


class Counted(Rows):
    """Rows that count how many of them were read."""

    def __init__(self, rows):
        self._rows, self.shape, self.n_read = rows, rows.shape, 0

    def blocks(self, n_rows):
        for start in range(0, len(self._rows), n_rows):
            block = self._rows[start : start + n_rows]
            self.n_read += len(block)
            yield block


def test_few_rows_are_read_of_many():
    rows = Counted(np.random.default_rng(0).laplace(size=(14000, 50)))
    assert found_in(rows, rows) == []
    assert rows.n_read <= 4000
