"""What the shell says of columns before a fit: raw counts, identifiers and copies, by name."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from contrica.cli.checking import warn_of_columns
from contrica.cli.pair import Data, Pair
from contrica.errors import collected
from contrica.rows import Rows, as_rows, open_rows
from contrica.rows.files import parquet
from contrica.rows.selected import SelectedRows
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
    parts = [part if isinstance(part, Data) else Data(part, None, None) for part in (fore, back)]
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


DONORS = np.repeat(["d1", "d2", "d3", "d4"], 50)


def test_a_column_of_donors_that_is_no_group_is_asked_about(tmp_path):
    for name, part in zip(("fore", "back"), frames(), strict=True):
        part.assign(**{"donor-id": DONORS}).to_csv(tmp_path / f"{name}.csv", index=False)
    more = ("--components", 1, "--no-report")
    call = ("fit", tmp_path / "fore.csv", "-b", tmp_path / "back.csv", *more, "-o")
    told = words(run(*call, tmp_path / "one", "--drop", "donor-id"))
    assert "--groups was not given, but there is a column donor-id with 4 values: rows" in told
    assert told[told.index("--groups was") :].split(".")[0].count(", but") == 1
    assert "Pass --groups donor-id if it names donors" in told
    told = words(run(*call, tmp_path / "two", "--groups", "donor-id"))
    assert "was not given" not in told


@pytest.mark.parametrize("numbers", [1, 10])
def test_of_donors_by_numbers_groups_are_advised_which_take_them_out(numbers, tmp_path):
    for name, part in zip(("fore", "back"), frames(), strict=True):
        donors = numbers * np.repeat([3, 7, 2, 5], 50)
        part.assign(donor=donors, batch=donors).to_csv(tmp_path / f"{name}.csv", index=False)
    call = ("ranks", tmp_path / "fore.csv", "-b", tmp_path / "back.csv", "--drop")
    told = words(run(*call, "batch"))
    assert (
        "If it names donors, pass --groups donor, which takes it out of the variables too" in told
    )
    assert "--drop donor" in told
    told = words(run(*call, "batch", "--groups", "donor"))
    assert "such a heading" not in told
    told = words(run(*call, "donor"))
    assert "take them out, with --drop batch" in told
    told = words(run("ranks", tmp_path / "fore.csv", "-b", tmp_path / "back.csv"))
    assert "pass --groups donor" in told
    assert "with --drop batch." in told


def test_donors_of_one_row_each_are_no_groups(tmp_path):
    for i, part in enumerate(frames()):
        part["donor"] = 1000 * i + np.random.default_rng(i).permutation(len(part))
        part.to_csv(tmp_path / f"{i}.csv", index=False)
    told = words(run("ranks", tmp_path / "0.csv", "-b", tmp_path / "1.csv"))
    assert "take them out, with --drop donor." in told
    assert "--groups" not in told


def test_donors_of_one_file_are_asked_about_unless_they_choose_its_rows(tmp_path):
    fore, back = frames()
    both = pd.concat([fore, back]).assign(
        kind=np.repeat(["new", "old"], 200), sample=np.tile(DONORS, 2)
    )
    both.to_csv(tmp_path / "all.csv", index=False)
    call = ("ranks", tmp_path / "all.csv")
    told = words(run(*call, "--background", "kind=old"))
    assert "there is a column sample with 4 values" in told
    told = words(run(*call, "--background", "sample=d1", "--drop", "kind"))
    assert "was not given" not in told


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


def test_of_first_rows_alone_it_is_said_that_they_are():
    rng = np.random.default_rng(0)
    rows = rng.laplace(size=(14000, 50))
    rows[:5000] = rng.poisson(3, (5000, 50))
    (told,) = found_in(Counted(rows), Counted(rows))
    assert told.code == "raw-counts"
    assert told.got.startswith("in the first 2000 rows the data look")


# --- on disk ---


def in_npy(frame, path):
    np.save(f"{path}.npy", frame.to_numpy())
    return f"{path}.npy"


def in_hdf5(frame, path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(f"{path}.h5", "w") as file:
        file.create_dataset("x", data=frame.to_numpy(), chunks=(700, 3))
    return f"{path}.h5"


def in_zarr(frame, path):
    zarr = pytest.importorskip("zarr")
    kind = {"shape": frame.shape, "chunks": (700, 3), "dtype": "f8"}
    zarr.open_group(f"{path}.zarr", mode="w").create_array("x", **kind)[:] = frame.to_numpy()
    return f"{path}.zarr"


def in_h5ad(frame, path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(sp.csr_matrix(frame.to_numpy()))
    cells.var_names = list(frame.columns)
    cells.write_h5ad(f"{path}.h5ad")
    return f"{path}.h5ad"


def in_npz(frame, path):
    sp.save_npz(f"{path}.npz", sp.csr_matrix(frame.to_numpy()))
    return f"{path}.npz"


def in_parquet(frame, path):
    frame.to_parquet(f"{path}.parquet")
    return f"{path}.parquet"


def in_row_groups(frame, path):
    frame.to_parquet(f"{path}.parquet", row_group_size=300)
    return f"{path}.parquet"


def in_parts(frame, path):
    path.mkdir()
    for i in range(0, len(frame), 2600):
        frame[i : i + 2600].to_parquet(path / f"part.{i}.parquet", row_group_size=1000)
    return path


def in_csv(frame, path):
    frame.to_csv(f"{path}.csv", index=False)
    return f"{path}.csv"


FORMATS = [
    *(in_npy, in_hdf5, in_zarr, in_h5ad, in_npz),
    *(in_parquet, in_row_groups, in_parts, in_csv),
]


def stored_pair(change, write, folder):
    found = []
    for i, name in enumerate(("fore", "back")):
        rng = np.random.default_rng(i)
        frame = pd.DataFrame(rng.laplace(size=(10000, 4)), columns=NAMES)
        change(frame, rng)
        opened = open_rows(write(frame, folder / name))
        found.append(Data(as_rows(opened.rows), np.array(frame.columns), None))
    return found


def sorted_by_site(frame, rng):
    for k in range(10):
        frame[f"site_{k}"] = (np.arange(len(frame)) * 10 // len(frame) == k).astype(float)


def by_the_minute(frame, rng):
    frame["minute"] = np.arange(len(frame)) % 5000
    frame["second"] = np.arange(len(frame)) % 7919


def rare_site(frame, rng):
    where = np.arange(len(frame))
    for k, (start, stop) in enumerate([(0, 5000), (5000, 9990), (9990, 10000)]):
        frame[f"site_{k}"] = ((where >= start) & (where < stop)).astype(float)


def counts_first(frame, rng):
    frame[:2500] = rng.poisson(3, (2500, 4))


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("change", [sorted_by_site, by_the_minute, rare_site, counts_first])
def test_of_sorted_rows_no_more_is_said_than_holds_in_all(change, write, tmp_path):
    assert found_in(*stored_pair(change, write, tmp_path)) == []


def late_copy(frame, rng):
    frame["early"] = np.r_[np.zeros(6000), rng.laplace(size=len(frame) - 6000)]
    frame["late"] = 2 * frame["early"]


def permuted_ids(frame, rng):
    frame["chip"] = 5 + rng.permutation(len(frame))


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize(
    ("change", "code"), [(late_copy, "duplicated-columns"), (permuted_ids, "looks-like-an-id")]
)
def test_what_holds_in_all_rows_is_said(change, code, write, tmp_path):
    assert [each.code for each in found_in(*stored_pair(change, write, tmp_path))] == [code]


@pytest.mark.parametrize("write", FORMATS[:-1])
def test_spans_are_the_rows_between(write, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).laplace(size=(10000, 4)), columns=NAMES)
    rows = as_rows(open_rows(write(frame, tmp_path / "rows")).rows)
    bounds = [(0, 3), (250, 1400), (2500, 2700), (9999, 10000)]
    wanted = np.vstack([frame[start:stop] for start, stop in bounds])
    assert_array_equal(np.vstack(list(rows.spans(bounds))), wanted)
    chosen = np.arange(10000) % 7 < 2
    some = SelectedRows(rows, chosen, np.array([2, 0]))
    bounds = [(0, 3), (250, 1400), (2855, 2858)]
    wanted = frame[chosen].iloc[:, [2, 0]]
    wanted = np.vstack([wanted[start:stop] for start, stop in bounds])
    assert_array_equal(np.vstack(list(some.spans(bounds))), wanted)


def test_few_row_groups_are_read_of_many(tmp_path, monkeypatch):
    frame = pd.DataFrame(np.random.default_rng(0).laplace(size=(10000, 4)), columns=NAMES)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    rows, scanned = open_rows(tmp_path / "rows.parquet").rows, []
    scan = parquet._scan

    def counted(*arguments):
        for batch in scan(*arguments):
            scanned.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(parquet, "_scan", counted)
    assert len(np.vstack(list(rows.spans([(60, 70), (5000, 5060)])))) == 70
    assert sum(scanned) == 150
