import numpy as np
import pytest

from contrica.cli.scoring import Sample
from contrica.cli.writing import write_blocks, write_table
from contrica.rows import read_table


def test_written_tables_read_back_exactly(tmp_path, rng):
    X = rng.standard_normal((4, 2)) * 1e-7
    write_table(tmp_path / "t.csv", X, ["p", "q"], list("wxyz"), "sample")
    table = read_table(tmp_path / "t.csv")
    assert np.array_equal(table.values, X)
    assert list(table.rows) == list("wxyz")
    write_blocks(tmp_path / "b.csv", [X[:1], X[1:]], ["p", "q"], list("wxyz"), "sample")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()


def test_fewer_rows_than_names_are_not_written_as_if_all_were_there(tmp_path):
    with pytest.raises(ValueError, match="shorter"):
        write_blocks(tmp_path / "b.csv", [np.eye(2)], ["p", "q"], list("wxyz"))


@pytest.mark.parametrize("sizes", [(10,), (3, 0, 7), (1,) * 10])
def test_a_sample_of_blocks_is_that_of_all_rows(monkeypatch, sizes):
    monkeypatch.setattr("contrica.cli.scoring.MAX_DRAWN", 4)
    X = np.arange(20.0).reshape(10, 2)
    sample = Sample(10)
    passed = list(sample.of(np.split(X, np.cumsum(sizes)[:-1])))
    assert np.array_equal(np.vstack(passed), X)
    assert not sample.is_all
    assert np.array_equal(sample.scores(), X[sample.rows])
    assert len(set(sample.rows)) == 4
