"""How often a fit reads the rows: counted by a container that knows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, PlainICA, PlainPCA, ProportionalContrastiveICA
from contrica.errors import ContricaError, MemoryBudgetError
from contrica.estimators import report_ranks
from contrica.moments import cumulants, working
from contrica.rows import Blocks, Rows
from contrica.rows.dataset import Dataset
from contrica.solvers import RowGroups
from tests.said import raises


class Counted(Rows):
    """Rows that count how many of them were read."""

    def __init__(self, X, columns=None):
        self.X, self.shape, self.n_read = X, X.shape, 0
        if columns is not None:
            self.columns = columns

    def blocks(self, n_rows):
        for start in range(0, len(self.X), n_rows):
            block = self.X[start : start + n_rows]
            self.n_read += len(block)
            yield block

    @property
    def passes(self):
        return self.n_read / len(self.X)


def pair(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = rng.laplace(size=(2, n, p)) * np.linspace(2, 1, p)
    X[:, :2] += 3 * rng.exponential(size=(n, 2))
    return X, Y


FITS = {
    "auto": ({}, 8, 2),
    "joint": ({"solver": "joint", "n_background": 5, "n_foreground": 2}, 5, 2),
    "paper": ({"solver": "paper", "n_background": 4, "n_foreground": 2}, 5, 2),
    "subspace": ({"solver": "subspace"}, 8, 2),
    "robust": ({"cumulant": "robust", "solver": "subspace"}, 8, 2),
    "PCA": ({"n_pcs": 5}, 12, 3),
    "PCA of many": ({"n_pcs": "auto"}, 40, 3),
    "given axes": ({"basis": np.eye(12)[:, :5]}, 12, 2),
}


@pytest.mark.filterwarnings(
    "ignore::contrica.errors.PatternWarning"
)  # of patterns that were merged
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_reads_the_rows_twice_and_once_more_for_principal_axes(name, sampled, monkeypatch):
    options, p, expected = FITS[name]
    if sampled:  # as of rows that are too many for the memory
        monkeypatch.setattr(working, "MANY_ROWS", 2000)
        monkeypatch.setattr(working, "MAX_ENTRIES", 0)
    X, Y = (Counted(part) for part in pair(3000, p))
    model = ContrastiveICA(2, random_state=0, **options).fit(X, background=Y)
    assert model.n_rows_sampled_[0] == (1000 if sampled and name != "robust" else 3000)
    assert (X.passes, Y.passes) == (expected, expected)


def test_a_contrast_subspace_writes_no_fourth_cumulant_out(monkeypatch):
    X, Y = pair(3000, 20)
    kept = {"solver": "subspace", "n_foreground": 3, "random_state": 0}
    whole = ContrastiveICA(3, **kept).fit(X, background=Y)
    expected = cumulants(X, storage="packed").fourth.coefficients(whole.filters_.T)

    def interrupt(*_, **__):
        raise AssertionError

    monkeypatch.setattr("contrica.moments.fourth.packed_cumulants", interrupt)
    again = ContrastiveICA(3, **kept).fit(X, background=Y)
    assert_allclose(again.foreground_weights_, expected, rtol=1e-9)


def test_moments_and_groups_of_sampled_rows_are_those_of_all(monkeypatch):
    X, Y = pair(6000, 5)
    data = [Dataset(part, "X").read() for part in (X, Y)]
    workplace = working.Workplace("auto", None, "plugin", None, None, "float64")
    options = {"storage": "auto", "n_groups": [40, 40]}
    whole = workplace.take(data, None, **options)
    monkeypatch.setattr(working, "MANY_ROWS", 2000)
    monkeypatch.setattr(working, "MAX_ENTRIES", 0)
    some = workplace.take([Dataset(Counted(part), "X").read() for part in (X, Y)], None, **options)
    assert [len(rows) for rows in some.rows] == [1000, 1000]
    axes, vectors = np.random.default_rng(1).standard_normal((2, 5, 5))
    for one, two in zip(whole.cumulants, some.cumulants, strict=True):
        assert_allclose(one.fourth.flatten(), two.fourth.flatten(), atol=1e-9)
        assert_allclose(one.third.entries, two.third.entries, atol=1e-9)
    for rows, sums in zip((X, Y), some.grouped, strict=True):
        expected = RowGroups(rows, axes).influence(vectors)
        found = RowGroups.of(sums, axes).influence(vectors)
        assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ProportionalContrastiveICA(2, n_background=5, n_foreground=2, random_state=0), 2),
        (lambda: PlainICA(2), 2),
    ],
)
def test_other_estimators_read_as_often(make, expected):
    X, Y = (Counted(part) for part in pair(3000, 5))
    make().fit(X, background=Y)
    assert (X.passes, Y.passes) == (expected, expected)


def test_a_report_of_ranks_reads_the_rows_twice():
    X, Y = (Counted(part) for part in pair(3000, 5))
    report_ranks(X, [Y], rng=np.random.default_rng(0))
    assert (X.passes, Y.passes) == (2, 2)


def test_a_report_of_ranks_checks_the_memory_budget_before_it_reads():
    X, Y = (Counted(np.zeros((3, 1000))) for _ in range(2))
    with pytest.raises(MemoryBudgetError) as told:
        report_ranks(X, Y, rng=np.random.default_rng(0), n_pcs=1000, memory_limit="60MB")
    assert "working in 1000 dimensions" in str(told.value)
    assert X.n_read == Y.n_read == 0


def test_blocks_are_made_as_often_as_they_are_read():
    """What a function makes is counted in the first pass, not in one of its own."""
    made = []
    X, Y = pair(3000, 8)

    def blocks():
        for block in np.array_split(X, 4):
            made.append(len(block))
            yield block

    ContrastiveICA(2, random_state=0).fit(Blocks(blocks), background=Y)
    # and the first block, which says how wide it is
    assert sum(made) == 2 * len(X) + len(X) // 4
    made.clear()
    with pytest.raises(ContricaError):
        ContrastiveICA(2).fit(Blocks(blocks), background=Y[:, :5])
    assert made == [len(X) // 4]


def test_blocks_that_are_added_are_read_twice():
    made = []
    X, Y = pair(3000, 8)

    def blocks():
        for block in np.array_split(X, 4):
            made.append(len(block))
            yield block

    ContrastiveICA(2).partial_fit(Blocks(blocks), background=Y)
    assert len(made) == 2 * 4 + 1  # the first also says how wide it is
    made.clear()
    model = ContrastiveICA(2).partial_fit(Y)
    with pytest.raises(ContricaError):
        model.partial_fit(Blocks(lambda: (block[:, :5] for block in blocks())))
    assert len(made) == 1


@pytest.mark.parametrize("options", [{"n_pcs": 5}, {"basis": np.eye(12)[:, :5]}], ids=str)
def test_rows_that_do_not_fit_are_refused_before_principal_axes(options, monkeypatch):
    monkeypatch.setattr(working, "ROBUST_COPIES", 6000)
    X, Y = (Counted(part) for part in pair(300, 12))
    with raises(MemoryBudgetError, "memory", "memory_limit") as caught:
        ContrastiveICA(2, cumulant="robust", memory_limit="50MB", **options).fit(X, background=Y)
    assert "all 600 rows in 5 dimensions" in str(caught.value)
    assert (X.passes, Y.passes) == (1, 1)


WRONG = [
    {"n_components": 0},
    {"n_pcs": "all"},
    {"n_pcs": 0},
    {"n_pcs": 9},
    {"n_background": 0},
    {"n_background": 2.5},
    {"n_foreground": -1},
    {"n_foreground": 1000},
    {"n_foreground": 9, "solver": "subspace"},
    {"n_foreground": 6, "solver": "subspace", "n_pcs": 5},
    {"n_foreground": 4, "solver": "subspace", "basis": np.eye(8)[:, :3]},
    {"n_foreground": 20, "solver": "joint", "n_pcs": 5},
    {"n_background": 2, "solver": "subspace"},
    {"solver": "magic"},
    {"deflation": "magic"},
    {"cumulant": "magic"},
    {"projection": "magic"},
    {"max_iter": 0},
    {"tol": 0.0},
    {"random_state": -1},
    {"random_state": "x"},
    {"memory_limit": "little"},
    {"memory_limit": 1000},
    {"dtype": "int8"},
    {"basis": np.ones((8, 2))},
    {"basis": np.eye(7)},
    {"basis": np.eye(8)[:, :3], "n_pcs": 4},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_a_wrong_parameter_costs_no_pass(options):
    X, Y = (Counted(part) for part in pair(100, 8))
    with pytest.raises(ContricaError) as told:
        ContrastiveICA(**{"n_components": 2} | options).fit(X, background=Y)
    assert told.value.parameter in options
    assert X.n_read == Y.n_read == 0


@pytest.mark.parametrize(
    ("widths", "columns", "code"),
    [
        ((8, 7), (None, None), "width"),
        ((3, 3), ("abc", "acb"), "order"),
        ((3, 3), ("abc", "abz"), "names"),
    ],
)
@pytest.mark.parametrize("make", [ContrastiveICA, PlainPCA, PlainICA])
def test_other_variables_cost_no_pass(make, widths, columns, code):
    X, Y = (
        Counted(pair(100, width)[0], None if names is None else list(names))
        for width, names in zip(widths, columns, strict=True)
    )
    with pytest.raises(ContricaError) as told:
        make().fit(X, background=Y)
    assert told.value.code == code
    assert X.n_read == Y.n_read == 0
