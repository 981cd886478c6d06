"""Covariates of `diagnose`: what can be tested with so few groups, and how cells are read."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA
from contrica.errors import DataError, collected
from contrica.inference import diagnose
from contrica.inference._covariates import _basis, _tested, explained_share
from contrica.rows.groups import Groups
from tests.said import raises


class Fitted:
    """Groups of laplacian rows, of which some are shifted, and a model of one pattern."""

    def __init__(self, shifts, rows=40):
        rng = np.random.default_rng(0)
        count = len(shifts)
        self.X, self.Y = rng.laplace(size=(2, count * rows, 4))
        self.X[:, 0] += np.repeat(shifts, rows)
        self.groups = np.repeat([f"d{i:02}" for i in range(count)], rows)
        labels = {"groups": self.groups, "background_groups": np.char.add("b", self.groups)}
        with collected():
            self.model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
            self.model.fit(self.X, background=self.Y, **labels)

    def told(self, values, *, grouped=True):
        groups = self.groups if grouped else None
        covariates = {"this": values}
        found = diagnose(
            self.model, self.X, background=self.Y, groups=groups, covariates=covariates
        )
        return {each.code: each.words for each in found.findings if "this" in each.words}


@pytest.fixture(scope="module")
def six():
    return Fitted([9.0, 9, 9, -9, -9, -9])


@pytest.mark.parametrize(
    ("shifts", "values", "smallest"),
    [
        ([9.0, 9, 9, -9, -9, -9], list("fffmmm"), "0.1"),
        ([9.0, 9, -9, -9], list("ffmm"), "0.33"),
        ([-9.0, -3, 3, 9], [30, 40, 50, 60], "0.083"),
    ],
)
def test_few_groups_that_no_p_could_be_small_of_are_said_to_be_so(shifts, values, smallest):
    """Also where a covariate separates the score completely: silence would say it was tested."""
    found = Fitted(shifts).told(np.repeat(values, 40))
    assert set(found) - {"covariate-as-numbers"} == {"covariate-not-tested"}
    words = found["covariate-not-tested"]
    assert f"between {len(shifts)} groups" in words
    assert f"p cannot be below {smallest}" in words
    assert float(words.partition("%")[0].rpartition(" ")[2]) > 90


@pytest.mark.parametrize("others", [3, 19])
def test_the_smallest_p_that_is_enough_is_told_in_every_draw(others):
    """One of twenty groups: p is 1/20, not a random number about it. One of four cannot be tested."""
    found = Fitted([20.0] + [0.0] * others).told(np.repeat(["a"] + ["b"] * others, 40))
    assert set(found) == {"covariate" if others == 19 else "covariate-not-tested"}
    if others == 19:
        assert "p = 0.05" in found["covariate"]


@pytest.mark.parametrize(
    "columns",
    [
        np.eye(2)[[0, 0, 0, 1, 1, 1]],
        np.eye(3)[[0, 0, 1, 1, 2, 2]],
        np.array([[1.0], [2], [2], [3], [5], [8]]),
        np.array([[0.1, 0.9], [0.5, 0.5], [0.1, 0.9], [0.2, 0.8], [1, 0], [0, 1]]),
    ],
)
def test_p_of_few_groups_is_that_of_all_permutations(columns, rng):
    means = rng.standard_normal(6)
    means -= means.mean()
    full = np.column_stack([np.ones(6), columns])

    def share(values):
        left = values - full @ np.linalg.lstsq(full, values, rcond=None)[0]
        return 1 - left @ left / (values @ values)

    every = np.array([share(means[list(order)]) for order in permutations(range(6))])
    found = _tested(means, _basis(columns), rng)
    assert_allclose(found.p, np.mean(every >= share(means) - 1e-9))
    assert_allclose(found.smallest, np.mean(every >= every.max() - 1e-9))
    rank = np.linalg.matrix_rank(full) - 1
    assert_allclose(found.share, max(1 - (1 - share(means)) * 5 / (5 - rank), 0), atol=1e-12)


def test_many_groups_are_tested_by_random_permutations(rng):
    means, ages = rng.standard_normal((2, 30))
    means -= means.mean()
    assert _tested(means, _basis(ages[:, None]), rng).smallest == 0.001
    assert _tested(ages - ages.mean(), _basis(ages[:, None]), rng).p == 0.001


def test_kinds_of_nearly_every_row_explain_nothing_and_take_no_time(six):
    for grouped in (False, True):
        found = six.told([f"cell {i}" for i in range(240)], grouped=grouped)
        assert set(found) == {"covariate-not-tested"}
        assert "240 kinds in 240 rows" in found["covariate-not-tested"]
    wells = np.random.default_rng(1).integers(0, 60, 240).astype(str)  # a quarter by chance
    assert six.told(wells, grouped=False) == {}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("value", [3, 2.5, "here", True])
def test_a_covariate_that_is_the_same_everywhere_is_nothing_to_tell(six, value, grouped):
    assert six.told([value] * 240, grouped=grouped) == {}


DAYS = np.arange(240) * 10


@pytest.mark.parametrize(
    "dates",
    [
        np.datetime64("2020-01-01") + DAYS,
        pd.Series(np.datetime64("2020-01-01") + DAYS).astype("datetime64[ns]"),
        pd.Series(np.datetime64("2020-01-01") + DAYS).astype("datetime64[us]"),
        pd.Series(np.datetime64("2020-01-01") + DAYS).dt.tz_localize("Europe/Vienna"),
        pd.Series(np.datetime64("2020-01-01") + DAYS).dt.date,
        pd.Series(np.datetime64("2020-01-01") + DAYS).dt.to_period("D"),
        pd.to_timedelta(DAYS, unit="D"),
        pd.Series(pd.to_timedelta(DAYS, unit="D")).astype(object),
    ],
)
def test_dates_and_times_are_numbers_of_days(six, dates):
    """They were kinds, each row one of its own, which explains all of any score; or microseconds."""
    numbers, given = (six.told(each, grouped=False) for each in (DAYS, dates))
    assert numbers
    assert given == numbers
    assert six.told(dates).keys() == six.told(DAYS).keys()
    gaps = pd.Series(dates).where(np.arange(240) > 5)
    assert "(6 rows without a value left out)" in six.told(gaps, grouped=False)["covariate"]


def test_a_few_dates_are_said_to_be_taken_as_days(six):
    dates = np.datetime64("2020-01-01") + np.repeat([0, 3, 7, 90, 95, 400], 40)
    assert "6 different dates and was taken as days" in six.told(dates)["covariate-as-numbers"]


@pytest.mark.parametrize("cell", [[1, 2], (1, 2), {"a": 1}, np.arange(2)])
def test_cells_of_several_values_are_refused(six, cell):
    column = pd.Series([cell] * 239 + [[1]])
    for grouped in (False, True):
        with raises(DataError, "covariate-cells", "covariates"):
            six.told(column, grouped=grouped)
    with raises(DataError, "covariate-cells", "covariates"):
        six.told([[1, 2]] * 239 + [[1]])


def test_a_share_is_less_what_as_many_kinds_explain_by_chance(rng):
    shares = [
        explained_share(rng.standard_normal(60), rng.integers(0, 20, 60).astype(str), None)[0]
        for _ in range(200)
    ]
    assert np.mean(shares) < 0.1  # 20 kinds of 60 rows: R² is a third
    groups = Groups(np.repeat(np.arange(20), 3), tuple(map(str, range(20))))
    kinds = np.repeat(rng.integers(0, 8, 20), 3).astype(str)
    shares = [explained_share(rng.standard_normal(60), kinds, groups)[0] for _ in range(200)]
    assert np.mean(shares) < 0.15  # of 20 groups: it is .37
