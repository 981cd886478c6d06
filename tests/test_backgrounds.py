"""Several backgrounds, and rows that lie outside."""

import warnings

import numpy as np
import pandas as pd
import pytest

from contrica import (
    Background,
    ContrastiveICA,
    ContrastivePCA,
    DelicateDataWarning,
    PatternWarning,
    PlainPCA,
    ProportionalContrastiveICA,
)
from contrica.datasets import make_synthetic
from contrica.errors import DataError
from contrica.metrics import pattern_similarity
from tests.said import raises


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


def with_backgrounds(n, seed, n_backgrounds=2, p=5):
    """One A with strengths of its own in every background, and two salient sources."""
    rng = np.random.default_rng(seed)
    A, B = unit(rng.standard_normal((p, p))), unit(rng.standard_normal((p, 2)))
    X = rng.exponential(size=(n, p)) @ A.T + 2 * rng.exponential(size=(n, 2)) @ B.T
    backgrounds = [
        (rng.exponential(size=(n, p)) * rng.uniform(0.5, 2, p)) @ A.T + 10 * i
        for i in range(n_backgrounds)
    ]
    return X, backgrounds, A, B


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "n_backgrounds"), [("auto", 2), ("joint", 2), ("auto", 3), ("subspace", 2)]
)
def test_several_backgrounds_share_their_patterns(solver, n_backgrounds):
    X, backgrounds, A, B = with_backgrounds(20_000, 0, n_backgrounds)
    model = ContrastiveICA(2, solver=solver, random_state=0).fit(X, background=backgrounds)
    assert pattern_similarity(model.components_.T, B) > 0.99
    if solver == "subspace":
        return
    assert model.solver_ == "joint"
    assert (model.n_background_, model.n_foreground_) == (5, 2)
    # of third and fourth cumulants of every dataset
    assert model.rank_choice_.t_values.shape == (2 * (1 + n_backgrounds), 7)
    assert pattern_similarity(model.background_components_.T, A) > 0.95


@pytest.mark.slow
def test_a_pattern_of_one_background_only_is_no_salient_one():
    """Which the other background, by itself, would have called so."""
    rng = np.random.default_rng(0)
    X, (Y, other), _, B = with_backgrounds(20_000, 0)
    extra = unit(rng.standard_normal((5, 1)))
    X = X + 4 * rng.exponential(size=(len(X), 1)) @ extra.T
    other = other + 2 * rng.exponential(size=(len(X), 1)) @ extra.T
    alone, both = (
        ContrastiveICA(None, random_state=0).fit(X, background=background)
        for background in (Y, [Y, other])
    )
    assert (alone.n_foreground_, both.n_foreground_) == (3, 2)
    assert pattern_similarity(alone.components_.T, np.column_stack([B, extra])) > 0.99
    assert pattern_similarity(both.components_.T, B) > 0.99


@pytest.mark.slow
def test_one_background_in_a_list_is_that_background():
    few = make_synthetic(6, n_samples=1000, random_state=1)
    plain = ContrastiveICA(2, random_state=0).fit(few.foreground, background=few.background)
    for background in ([few.background], Background((few.background,))):
        model = ContrastiveICA(2, random_state=0).fit(few.foreground, background=background)
        assert np.array_equal(model.components_, plain.components_)
    nested = ContrastiveICA(2, random_state=0)
    nested.fit(few.foreground.tolist(), background=few.background.tolist())
    assert np.array_equal(nested.components_, plain.components_)


def test_names_of_every_background_are_compared():
    X, (Y, other), _, _ = with_backgrounds(500, 0)
    X, Y, other = (pd.DataFrame(rows, columns=list("abcde")) for rows in (X, Y, other))
    model = ContrastiveICA(2, solver="subspace", random_state=0)
    model.fit(X, background=[Y, other])
    with pytest.raises(ValueError, match=r"background\[1\] has the features of X in another order"):
        model.fit(X, background=[Y, other[list("edcba")]])
    with pytest.raises(ValueError, match=r"missing from background\[1\]: e"):
        model.fit(X, background=[Y, other.rename(columns={"e": "f"})])
    with pytest.raises(ValueError, match="background is an empty list"):
        model.fit(X, background=[])
    with pytest.warns(DelicateDataWarning, match="X has feature names but"):
        model.fit(X, background=[Y, other.to_numpy()])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y: np.where(Y[3, 2] == Y, np.nan, Y), r"background\[1\] contains NaN"),
        (lambda Y: Y[:1], r"background\[1\] has 1 sample\(s\)"),
        (lambda Y: Y.astype(str), r"background\[1\] holds text"),
        (lambda Y: Y[:, :4], r"background\[1\] has 4 features but X has 5"),
    ],
)
def test_errors_name_the_background_they_are_about(change, message):
    X, (Y, other), _, _ = with_backgrounds(100, 0)
    with pytest.raises(ValueError, match=message):
        ContrastiveICA(random_state=0).fit(X, background=[Y, change(other)])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ContrastiveICA(solver="paper"), '2 backgrounds were given, but solver "paper" takes one'),
        (ProportionalContrastiveICA(), "but ProportionalContrastiveICA takes one. Stack them"),
        (ContrastivePCA(), "but ContrastivePCA takes one"),
        (PlainPCA(), "but PlainPCA takes one"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_methods_for_one_background_refuse_two(model, message):
    X, backgrounds, _, _ = with_backgrounds(100, 0)
    with raises(DataError, "several-backgrounds", "background") as told:
        model.fit(X, background=backgrounds)
    assert message in str(told.value)


# --- outliers ---


@pytest.mark.parametrize("solver", ["paper", "subspace"])
def test_one_wild_row_spoils_the_plain_cumulant_and_not_the_robust_one(solver):
    given = {"solver": solver, "n_foreground": 2}
    if solver == "paper":
        given |= {"n_background": 5, "deflation": "least_squares"}
    similarity = {"plugin": [], "robust": []}
    for seed in range(3):
        X, (Y, _), _, B = with_backgrounds(5000, seed)
        X[0] += 50 * np.random.default_rng(seed).standard_normal(5)
        for cumulant, values in similarity.items():
            model = ContrastiveICA(2, cumulant=cumulant, random_state=0, **given)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PatternWarning)
                model.fit(X, background=Y)
            values.append(pattern_similarity(model.components_.T, B))
    assert np.median(similarity["plugin"]) < 0.85
    assert np.median(similarity["robust"]) > 0.98


@pytest.mark.parametrize("second", [None, np.ones(5)], ids=["none", "a vector"])
def test_each_of_several_backgrounds_is_a_table(second, rng):
    X, Y = rng.laplace(size=(2, 60, 5))
    with pytest.raises(ValueError, match=r"background\[1\] has shape .* table of rows"):
        ContrastiveICA().fit(X, background=[Y, second])
    with pytest.raises(ValueError, match="empty list"):
        ContrastiveICA().fit(X, background=[])
