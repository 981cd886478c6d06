"""A question about rows that repeat, for those who gave no groups."""

import warnings

import numpy as np
import pandas as pd
import pytest

from contrica import ContrastiveICA
from contrica.errors import GroupWarning
from contrica.rows.repeats import hint_at_groups, lag_correlation, stems_of
from tests.said import warns
from tests.test_groups import grouped


def asked(rows, names=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = hint_at_groups(rows, None if names is None else np.array(names), "X")
    assert found == bool(caught)
    return [str(each.message) for each in caught]


def repeats(n_animals, n_rows, p=6, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    means = np.repeat(rng.standard_normal((n_animals, p)), n_rows, axis=0)
    return means + noise * rng.standard_normal(means.shape)


DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "lognormal": lambda rng, shape: np.exp(2 * rng.standard_normal(shape)),
    "counts": lambda rng, shape: rng.poisson(0.05, shape).astype(float),
    "clusters": lambda rng, shape: 5.0 * rng.integers(0, 3, (shape[0], 1)) + np.zeros(shape),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("shape", [(3, 2), (30, 1), (60, 4), (400, 12)])
def test_rows_in_random_order_are_never_asked_about(name, shape):
    rng = np.random.default_rng(0)
    names = [f"{i // 5}_{i % 5}" for i in range(shape[0])]
    for _ in range(200):
        rows = DISTRIBUTIONS[name](rng, shape)
        assert not asked(rows)
        assert not asked(rows, names)


def test_repeats_in_order_are_asked_about_and_shuffled_ones_are_not():
    rows = repeats(20, 15)
    (text,) = asked(rows)
    assert "lag-1 autocorrelation 0.8" in text or "lag-1 autocorrelation 0.9" in text
    assert "belong together, as repeats of one animal or stretches of time do?" in text
    order = np.random.default_rng(1).permutation(len(rows))
    assert not asked(rows[order])
    names = np.array([f"{300 + i // 15}_{i % 15 + 1}" for i in range(len(rows))])
    (text,) = asked(rows[order], names[order])
    assert "begin alike, such as 300" in text
    assert "there are 20 such beginnings" in text
    assert not asked(np.random.default_rng(2).permuted(rows, axis=0), names)


def test_a_time_series_is_asked_about_and_a_sorted_column_is_not():
    rng = np.random.default_rng(0)
    series = np.zeros((500, 4))
    for i in range(1, 500):
        series[i] = 0.8 * series[i - 1] + rng.standard_normal(4)
    assert asked(series)
    table = rng.standard_normal((500, 4))
    table[:, 0] = np.sort(10 * table[:, 0])
    assert not asked(table)
    assert lag_correlation(np.zeros((5, 2))) == 0


@pytest.mark.parametrize(
    "names",
    [
        [f"cell_{i}" for i in range(30)],
        [f"{'ACGT'[i % 4]}{'ACGT'[i // 4 % 4]}{i}A-1" for i in range(30)],
        [f"sample{i}" for i in range(30)],
        [str(i) for i in range(30)],
        [*(f"a_{i}" for i in range(29)), "last"],
        [*(f"cell{i}-1" for i in range(20)), *(f"cell{i}-2" for i in range(10))],
    ],
)
def test_running_numbers_and_barcodes_are_not_stems(names):
    assert stems_of(np.array(names)) is None


def test_numbers_behind_a_name_are_repeats_of_it():
    for between in ("_", "-", ".", " "):
        stems, codes = stems_of(np.array([f"m{i // 3}{between}{i % 3}" for i in range(30)]))
        assert stems[:2] == ["m0", "m1"]
        assert np.bincount(codes).tolist() == [3] * 10


@pytest.mark.filterwarnings("ignore::contrica.errors.PatternWarning")
def test_a_fit_asks_where_no_groups_are_given():
    X, Y = repeats(20, 15), repeats(10, 15, seed=1)
    with warns(GroupWarning, "repeated-rows"):
        ContrastiveICA(random_state=0).fit(X, background=Y)
    rng = np.random.default_rng(0)
    plain = rng.laplace(size=(300, 6))
    with warns(GroupWarning, "repeated-rows") as said:
        ContrastiveICA(random_state=0).fit(plain, background=Y)
    assert "background" in str(said[0].message)
    order = rng.permutation(300)
    frame = pd.DataFrame(X, index=[f"{i // 15}_{i % 15}" for i in range(300)])
    with warns(GroupWarning, "repeated-rows"):
        ContrastiveICA(random_state=0).fit(frame.iloc[order], background=plain)
    ContrastiveICA(random_state=0).fit(X[order], background=plain)
    labels = np.repeat(np.arange(20), 15), np.repeat(np.arange(100, 110), 15)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ContrastiveICA(random_state=0).fit(
            X, background=Y, groups=labels[0], background_groups=labels[1]
        )
    assert "repeated-rows" not in [getattr(each.message, "code", "") for each in caught]


@pytest.mark.parametrize("name", ["mouse", "demo", "mnist", "kang"])
def test_of_real_data_mice_are_asked_about(name, real_data):
    from contrica import datasets
    from contrica.moments import common_basis

    load = {
        "mouse": lambda: datasets.load_mouse_protein(real_data),
        "demo": datasets.load_digits_on_photos,
        "mnist": lambda: datasets.load_corrupted_mnist(real_data, random_state=0),
        "kang": lambda: datasets.load_kang(real_data, preprocessing="usual"),
    }
    data = load[name]()
    parts = data.foreground, data.background
    basis = common_basis(parts)
    assert [bool(asked(part @ basis)) for part in parts] == [name == "mouse"] * 2


def test_donors_in_order_are_not_near_duplicates():
    """Rows of a group that differ as much as others do are no reason to ask."""
    X, labels = grouped(10, 0, rows=50)
    assert not asked(X)
    assert not asked(X, [f"{label}_{i}" for i, label in enumerate(labels)])
