import gzip
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from contrica.errors import DelicateDataWarning, FileError, FileMissingError, ParameterError
from contrica.rows import read_table
from tests.said import raises, warns


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- reading ---


@pytest.fixture(params=["numpy", "pyarrow"])
def reader(request, monkeypatch):
    """Text files are read by numpy, or also small ones by pyarrow."""
    limit = np.inf if request.param == "numpy" else -1
    monkeypatch.setattr("contrica.rows.files.text.ARROW_BYTES", limit)


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
def test_csv_with_and_without_names(tmp_path, reader, text, columns, rows):
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
    ("name", "text", "code", "message"),
    [
        ("t.csv", "", "empty", "is empty"),
        ("t.csv", "\n\n", "empty", "is empty"),
        ("t.csv", "a,b\n", "no-rows", "a header but no rows"),
        ("t.csv", "a,b\n1,2\n3,oops\n", "not-numbers", "row 3, column 2 ('b') holds 'oops'"),
        ("t.csv", "id,a,b\nx,1,2\ny,,4\n", "not-numbers", "row 3, column 2 ('a') holds an empty"),
        ("t.csv", "1,2\n3,x\n", "not-numbers", "row 2, column 2 holds 'x'"),
        ("t.csv", 'a,b\n1,"2,5"\n3,"4,5"\n', "not-numbers", "row 2, column 2 ('b') holds '2,5'"),
        ("t.tsv", 'a\tb\n1\t"2\t5"\n', "not-numbers", "row 2, column 2 ('b') holds '2\\t5'"),
        ("t.csv", "a,b\n1,2\n3\n", "width", "row 3 has 1 cells where 2"),
        ("t.csv", "a,b\n1,2\n3,4,5\n", "width", "row 3 has 3 cells where 2"),
        ("t.csv", "a,a\n1,2\n3,4\n", "same-names", "more than one column called 'a'"),
        ("t.csv", "a,b\n1,2\nnan,4\n", "not-finite", "sample 2, variable 1 ('a') is nan"),
        ("t.csv", "1,inf\n3,4\n", "not-finite", "sample 1, variable 2 is inf"),
        ("t.txt", "1,2\n", "unknown-type", "unknown type '.txt'"),
        ("t.csv", "a,b\n1,1_0\n", "not-numbers", "row 2, column 2 ('b') holds '1_0'"),
        ("t.csv", "a,b\n1,2\n\n3,x\n", "not-numbers", "row 4, column 2"),
        ("t.csv", "a,b\n1," + "2" * 200_000 + "\n", "not-a-table", "is not a table of numbers"),
        ("t.npz", "PK", "damaged", "could not be read"),
        ("t.csv.gz", "not gzip", "damaged", "damaged gzip"),
        ("t", "1,2\n", "unknown-type", "unknown type"),
        ("t.npy", "not numpy", "damaged", "could not be read as a numpy file"),
    ],
)
def test_unreadable_files_say_where_and_why(tmp_path, reader, name, text, code, message):
    with raises(FileError, code) as caught:
        read_table(write(tmp_path / name, text))
    assert message in str(caught.value)
    assert name in str(caught.value)
    assert caught.value.remedy


ODD_CELLS = (
    *(
        "1",
        "-2.5",
        " 3 ",
        "+4",
        "1e5",
        "5.",
        ".5",
        "-0",
        "1e-320",
        "0.1",
        "1E+2",
        "123456789012345678",
    ),
    *('"4"', '" 5"', "1e400", "inf", "-Infinity", "nan", "NaN", "", " ", "x", "NA", "null", "true"),
    *(
        "1_0",
        "0x1",
        "1d2",
        '"1,5"',
        '"1\n2"',
        "1 2",
        "é",
        "１",
        "1e",
        "--1",
        "1;2",
        '"a""b"',
        'a"b',
    ),
)
NAMES = ["a", "b c", '"d, e"', '"f\ng"', '"h""i"', "é", "7", "", '"']


def outcome(path):
    """The table, or what is said instead."""
    try:
        table = read_table(path)
    except FileError as error:
        return error.code, str(error)
    names = [None if part is None else list(part) for part in (table.columns, table.rows)]
    return table.values.tobytes(), table.values.shape, *names


@st.composite
def texts(draw):
    """Mostly numbers, with odd cells, names, line ends and blank lines in between."""
    width, end = draw(st.integers(1, 4)), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    odd = draw(st.lists(st.sampled_from(ODD_CELLS), min_size=1, max_size=3))
    cells = st.one_of(st.floats(allow_nan=False).map(repr), st.sampled_from([*odd, "1", "2", "3"]))
    named = draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        row = [draw(cells) for _ in range(width + draw(st.sampled_from([0] * 30 + [1, -1])))]
        rows.append([draw(st.sampled_from(NAMES)), *row] if named else row)
        rows += draw(st.sampled_from([[], [], [], [[]]]))
    if draw(st.booleans()):
        rows.insert(0, ["index"] * named + [f"v{j}" for j in range(width)])
    start = draw(st.sampled_from(["", "", "\ufeff", end]))
    return start + end.join(map(",".join, rows)) + draw(st.sampled_from(["", end]))


@given(text=texts(), zipped=st.booleans(), n_bytes=st.sampled_from([1, 16, 2**20]))
@settings(max_examples=100)
def test_pyarrow_reads_what_numpy_reads(tmp_path_factory, text, zipped, n_bytes):
    path = tmp_path_factory.mktemp("text") / ("t.csv.gz" if zipped else "t.csv")
    content = text.encode()
    path.write_bytes(gzip.compress(content) if zipped else content)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", DelicateDataWarning)
        patch.setattr("contrica.rows.files.text.ARROW_BYTES", np.inf)
        expected = outcome(path)
        patch.setattr("contrica.rows.files.text.ARROW_BYTES", -1)
        patch.setattr("contrica.rows.files.arrow_text.PARSED_BYTES", n_bytes)
        patch.setattr("contrica.rows.files.arrow_text.PARSED_ROWS", 0)
        assert outcome(path) == expected


def test_pyarrow_reads_large_files_and_is_not_needed(tmp_path, rng, monkeypatch):
    X = rng.standard_normal((20_000, 7))
    frame = pd.DataFrame(X, columns=list("abcdefg"), index=[f"s{i}" for i in range(len(X))])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_csv(tmp_path / "t.csv.gz")
    frame.to_csv(tmp_path / "t.tsv", sep="\t")
    calls = []
    monkeypatch.setattr("contrica.rows.files.text._read_body", lambda *a: calls.append(a))
    for name in ("t.csv", "t.csv.gz", "t.tsv"):
        table = read_table(tmp_path / name)
        assert np.array_equal(table.values, X)
        assert table.values.flags.c_contiguous
        assert list(table.rows) == list(frame.index)
        assert list(table.columns) == list(frame.columns)
    assert not calls
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert np.array_equal(read_table(tmp_path / "t.csv").values, X)


def test_a_bad_cell_far_down_is_named_by_its_line(tmp_path, rng):
    X = rng.standard_normal((30_000, 4))
    pd.DataFrame(X, columns=list("abcd")).to_csv(tmp_path / "t.csv", index=False)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[25_000] = "1,2,what,4"
    with raises(FileError, "not-numbers") as caught:
        read_table(write(tmp_path / "t.csv", "\n".join(lines)))
    assert "row 25001, column 3 ('c') holds 'what'" in str(caught.value)


def test_a_column_that_counts_the_rows_is_doubted(tmp_path):
    with warns(DelicateDataWarning, "counting-column"):
        read_table(write(tmp_path / "t.csv", "n,a\n1,7\n2,5\n3,8\n"))


def test_backquotes_in_a_file_are_no_parameters(tmp_path):
    with raises(FileError, "not-numbers") as caught:
        read_table(write(tmp_path / "a`key=1`b.csv", "x,`key=2`\n1,`key=3`\n"))
    assert "a'key=1'b.csv" in str(caught.value)
    assert "key=3" in caught.value.text({"key": "--key"})


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
    with raises(FileError, "damaged"):
        read_table(tmp_path / "t.csv.gz")


def test_missing_files_folders_and_binary_text(tmp_path):
    with raises(FileMissingError, "file-missing"):
        read_table(tmp_path / "none.csv")
    with raises(FileMissingError, "file-missing") as caught:
        read_table(tmp_path)
    assert "is a folder" in str(caught.value)
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00\x01,2")
    with raises(FileError, "not-text"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("array", "code", "message"),
    [
        (np.zeros(3), "not-a-table", "shape (3,)"),
        (np.zeros((2, 2), dtype=complex), "not-a-table", "complex128"),
        (np.array([["a", "b"]]), "not-a-table", "real numbers"),
        (np.array([[None, 1]], dtype=object), "damaged", "could not be read"),
    ],
)
def test_numpy_files_must_hold_a_real_matrix(tmp_path, array, code, message):
    np.save(tmp_path / "t.npy", array, allow_pickle=True)
    with raises(FileError, code) as caught:
        read_table(tmp_path / "t.npy")
    assert message in str(caught.value)


def test_npz_keys(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.eye(2), b=np.eye(2))
    with raises(FileError, "several-tables", "key") as caught:
        read_table(tmp_path / "t.npz")
    assert "2 arrays (a, b)" in str(caught.value)
    with raises(FileError, "unknown-key", "key"):
        read_table(tmp_path / "t.npz", "c")
    with raises(ParameterError, "unused-key", "key"):
        read_table(write(tmp_path / "t.csv", "1,2\n"), "a")


def test_names_of_replicates_name_rows(tmp_path):
    """Numbers with an underscore were taken for numbers that are badly written."""
    names = [f"{animal}_{i}" for animal in (309, 3422) for i in range(1, 16)]
    lines = ["MouseID,a,b", *(f"{name},{1.5 * i},{i % 7}" for i, name in enumerate(names))]
    (tmp_path / "mice.csv").write_text("\n".join(lines))
    table = read_table(tmp_path / "mice.csv")
    assert list(table.rows) == names
    assert list(table.columns) == ["a", "b"]
