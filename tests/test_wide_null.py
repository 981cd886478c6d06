"""The permutation null of many rows of many variables: batches of rows, whose products are added up."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica.solvers import permutation_null, row_design, wide_null
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.permutation_null import LEVEL, count_directions, largest_ratio
from contrica.solvers.permuted_scatter import n_entries, scatters
from contrica.solvers.row_design import RowDesign
from contrica.solvers.wide_null import WideNull
from tests import naive

SIZES = {"fewer in X": (600, 800), "fewer in Y": (800, 700)}
KINDS = ["plain", *SIZES, "strata", "tiny", "huge", "large and small variances", "one direction"]


@pytest.fixture(autouse=True)
def batches(monkeypatch):
    """Rows from a hundred on are permuted in batches."""
    monkeypatch.setattr(row_design, "FEW_ROWS", 100)


def many_rows(kind, **options):
    """Rows over 150 variables, of which 2 directions are new."""
    rng = np.random.default_rng(11)
    n, m = SIZES.get(kind, (700, 700))
    A, B = rng.standard_normal((2, 3, 150))
    X, Y = (rng.laplace(size=(k, 3)) @ A + rng.standard_normal((k, 150)) for k in (n, m))
    X += 2.0 * rng.laplace(size=(n, 2)) @ B[:2] + 5.0
    if kind == "one direction":  # with nearly all variance, left out when it has been accepted
        X, Y = (
            part + factor * rng.standard_normal((len(part), 1)) * B[2]
            for part, factor in ((X, 200.0), (Y, 100.0))
        )
    unit = {"tiny": 1e-25, "huge": 1e25}.get(kind, 1.0)
    if kind == "large and small variances":
        unit = np.logspace(0, 1.5, 150)
    codes = np.arange(n + m) % 3 if kind == "strata" else None
    return RowDesign(unit * X, [unit * Y], codes, **options)


def splits_of(design, count, seed):
    """The observed split and those of the same permutations, of single rows."""
    seed = int(np.random.default_rng(seed).integers(2**63))
    in_fore, drawn = design.assigned(count, np.random.default_rng(seed))
    rows = design.take(np.arange(design.shape[0]))
    yield design.observed()
    for assigned in in_fore:
        own = np.zeros(len(rows), dtype=bool)
        own[np.concatenate([drawn.rows[i] for i in np.flatnonzero(assigned)])] = True
        fore, back = (np.cov(rows[part].T, ddof=0) for part in (own, ~own))
        counts = np.array([own.sum(), (~own).sum()], dtype=float)
        yield row_design.Split(fore, back, *counts, rows.var(axis=0) * len(rows) / counts.min())


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_batches_are_those_of_their_rows(kind):
    design = many_rows(kind)
    in_fore, drawn = design.assigned(9, np.random.default_rng(1))
    assert sorted(np.concatenate(drawn.rows)) == list(range(design.shape[0]))
    factor = np.linalg.cholesky(design.scatter)
    panels = scatters(design, drawn, in_fore, np.asfortranarray(factor))
    assert sum(panel.size for panel in panels) < n_entries(9, 150)
    products = wide_null.ByMatrices(panels, np.array([4, 7, 4]))
    vectors = np.random.default_rng(2).standard_normal((150, 3))
    found = products.times(vectors)
    for number, vector, image in zip(products.which, vectors.T, found.T, strict=True):
        index = np.concatenate([drawn.rows[i] for i in np.flatnonzero(in_fore[number])])
        rows = np.linalg.solve(factor, design.take(index).T).T
        expected = rows.T @ (rows @ vector)
        assert_allclose(image, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_the_largest_ratios_of_their_covariances(kind, monkeypatch):
    design = many_rows(kind)
    assert wide_null.is_wide(design, 39)
    null = WideNull(design, 39, np.random.default_rng(1))
    observed = null.observed
    ratios = contrast_axes(observed.fore, observed.back, floor=observed.floor)[0]
    added = []
    monkeypatch.setattr(
        wide_null, "scatters", lambda *given: added.append(given) or scatters(*given)
    )
    found = null.largest(ratios)
    splits = list(splits_of(design, 39, 1))
    expected = [largest_ratio(part.fore, part.back, part.floor) for part in splits]
    assert_allclose(found, expected, rtol=1e-3)
    assert len(added) == 1


def test_variables_that_say_the_same_leave_the_ratios_as_they_are():
    """The scatter of all rows has no inverse then."""
    rng = np.random.default_rng(3)
    X, Y = (rng.laplace(size=(700, 150)) for _ in range(2))
    for rows in (X, Y):
        rows[:, 100:] = rows[:, :100] @ np.full((100, 50), 0.1)
    design = RowDesign(X, [Y])
    null = WideNull(design, 39, np.random.default_rng(1))
    observed = null.observed
    ratios = contrast_axes(observed.fore, observed.back, floor=observed.floor)[0]
    expected = [
        largest_ratio(part.fore, part.back, part.floor) for part in splits_of(design, 39, 1)
    ]
    assert_allclose(null.largest(ratios), expected, rtol=1e-3)


@pytest.mark.parametrize("kind", ["plain", "fewer in X", "strata", "one direction"])
def test_p_values_of_batches_are_those_of_the_slow_twin(kind):
    design = many_rows(kind)
    found = count_directions(design, rng=np.random.default_rng(3), n_permutations=39)
    splits = list(splits_of(design, 39, 3))
    expected = naive.sequential_p_values(
        [(part.fore, part.back, part.floor_within) for part in splits], LEVEL
    )
    assert_allclose(found.p_values, expected)
    assert found.chosen == 2 + (kind == "one direction")


@pytest.mark.parametrize("kind", ["plain", "fewer in X"])
def test_how_products_are_taken_changes_no_p_value(kind):
    """By matrices, through the rows in singles where these have no room, or through them in doubles."""
    counts = []
    for room in (np.inf, 8 * 150 * 1400, 0):
        count = partial(count_directions, many_rows(kind, room=room), n_permutations=39)
        counts.append(count(rng=np.random.default_rng(0)))
    for other in counts[1:]:
        assert_allclose(other.p_values, counts[0].p_values)
        assert_allclose(other[4:6], counts[0][4:6], rtol=1e-2)


@pytest.mark.parametrize("factor", [1.0, 1e3, 1e4])
def test_what_is_left_beside_large_variances_has_its_p_values(factor, monkeypatch):
    """In the coordinates of all directions singles have no digits of the others."""
    rng = np.random.default_rng(1)
    wild, new = rng.standard_normal((3, 150)), np.linalg.qr(rng.standard_normal((150, 2)))[0].T
    X, Y = (rng.standard_normal((1500, 150)) for _ in range(2))
    X += 1.2 * rng.laplace(size=(1500, 2)) @ new
    for rows, size in ((X, 2 * factor), (Y, factor)):
        rows += size * rng.standard_normal((1500, 3)) @ wild
    design, added = RowDesign(X, [Y]), []
    monkeypatch.setattr(
        wide_null, "scatters", lambda *given: added.append(given) or scatters(*given)
    )
    found = count_directions(design, rng=np.random.default_rng(0), n_permutations=39)
    n_added = len(added)
    # through the rows, which single precision would not do for either
    monkeypatch.setattr(permutation_null, "is_wide", lambda *given: True)
    monkeypatch.setattr(wide_null, "ROWS_PER_FEATURE", np.inf)
    monkeypatch.setattr(wide_null, "MAX_SINGLES", 0)
    expected = count_directions(design, rng=np.random.default_rng(0), n_permutations=39)
    assert_allclose(found.p_values, expected.p_values)
    assert found.chosen == 5
    assert n_added == (2 if factor > 1 else 1)


@pytest.mark.parametrize("n", [300, 700])
def test_nothing_new_beside_variables_that_only_the_foreground_has(n):
    """What is left of the foreground, once they are accepted, does not vary at all."""
    rng = np.random.default_rng(0)
    X, Y = np.zeros((2, n, 160))
    X[:, :3], Y[:, 3:] = 5 * rng.laplace(size=(n, 3)), rng.standard_normal((n, 157))
    found = count_directions(RowDesign(X, [Y]), rng=np.random.default_rng(0), n_permutations=39)
    assert found.chosen == 3
    assert found.p_values[3] == 1


def test_batches_of_rows_over_many_variables_are_permuted_as_rows_are(monkeypatch):
    """Largest ratios have the mean and the spread that they have where single rows are permuted."""
    rng = np.random.default_rng(1)
    X, Y = rng.laplace(size=(2, 800, 150))
    found = []
    for few in (100, 10**6):
        monkeypatch.setattr(row_design, "FEW_ROWS", few)
        found.append(count_directions(RowDesign(X, [Y]), rng=np.random.default_rng(2)))
    batches, single = found
    assert batches.n_assignments == single.n_assignments > 200
    error = single.null_deviation * np.sqrt(2 / single.n_assignments)
    assert_allclose(batches.null_mean, single.null_mean, atol=3 * error)
    assert_allclose(batches.null_deviation, single.null_deviation, rtol=0.2)


def test_ratios_at_the_observed_one_have_their_covariances_formed(monkeypatch):
    """In single precision they cannot be told from it."""
    design = many_rows("plain")
    null = WideNull(design, 9, np.random.default_rng(1))
    one = null.largest(np.array([100.0]))[4]
    formed = []
    by_covariances = WideNull._by_covariances
    monkeypatch.setattr(
        WideNull,
        "_by_covariances",
        lambda self, number, *rest: formed.append(number) or by_covariances(self, number, *rest),
    )
    part = list(splits_of(design, 9, 1))[4]
    exact = largest_ratio(part.fore, part.back, part.floor)
    assert_allclose(one, exact, rtol=1e-3)
    assert_allclose(null.largest(np.array([exact]))[4], exact, rtol=1e-10)
    assert 3 in formed
    assert len(formed) < 5
