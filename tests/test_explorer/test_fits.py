"""Fits from sums that are taken once: the same as fits of rows, and shared by all states."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from contrica import ContrastiveICA
from contrica.errors import ContricaError, ParameterError, collected
from contrica.estimators import ReadOnce
from contrica.explorer import Explorer, ViewState
from contrica.explorer._data import MAX_COLUMNS, ExplorerData
from contrica.explorer._fits import Fits, model_of
from contrica.explorer._state import Edit
from contrica.metrics import match_patterns
from tests.test_explorer.small import small_data

STATES = [
    ViewState(),
    ViewState(solver="subspace", n_foreground=3),
    ViewState(solver="joint", n_foreground=2, n_background=6),
    ViewState(solver="paper", n_foreground=2, n_background=4),
    ViewState(scale="pooled", n_components=3),
    ViewState(scale="each", dimension=4, random_state=3),
    ViewState(solver="subspace", projection="pattern"),
]


@pytest.fixture(scope="module")
def explorer():
    return Explorer(small_data())


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.fit_text)
def test_a_fit_is_what_fitting_the_rows_gives(explorer, state):
    data, view = explorer.data, explorer.fit(state)
    with collected():
        model = model_of(data, state).fit(data.fore, background=data.backs[0])
        scores = model.transform(data.fore)
    assert np.array_equal(view.components, model.components_)
    assert np.array_equal(view.filters, model.filters_)
    assert np.array_equal(view.scores_fore, scores)
    assert (view.solver, view.n_foreground) == (model.solver_, model.n_foreground_)
    assert view.scores_back.shape == (data.n_back, view.n_kept)


def test_rows_are_read_once_for_all_numbers_of_patterns(monkeypatch):
    count = []
    own = ContrastiveICA._read
    monkeypatch.setattr(ContrastiveICA, "_read", lambda *args: count.append(1) or own(*args))
    explorer = Explorer(small_data())
    for number in (1, 2, 3, 4):
        explorer.fit(ViewState(solver="subspace", n_foreground=number))
        explorer.fit(ViewState(solver="subspace", n_components=number))
    assert len(count) == 1


def test_permutations_are_made_once_for_all_numbers_kept(monkeypatch):
    from contrica.solvers import subspace_solver

    count, own = [], subspace_solver.count_directions
    monkeypatch.setattr(
        subspace_solver,
        "count_directions",
        lambda *args, **more: count.append(1) or own(*args, **more),
    )
    explorer = Explorer(small_data())
    for number in (1, 2, 3):
        explorer.fit(ViewState(solver="subspace", n_components=number))
    assert len(count) == 1


def test_sums_serve_only_models_that_read_rows_alike():
    data = small_data()
    read = ReadOnce.of(ContrastiveICA(scale="pooled"), data.fore, background=data.backs[0])
    assert read.serves(ContrastiveICA(3, scale="pooled", n_foreground=2))
    with pytest.raises(ParameterError) as raised:
        read.fit(ContrastiveICA())
    assert raised.value.code == "read-otherwise"


def test_many_who_ask_at_once_wait_for_one_fit(monkeypatch):
    fits, count = Fits(small_data()), []
    own = fits._fit
    monkeypatch.setattr(fits, "_fit", lambda state: count.append(1) or own(state))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(fits.of(ViewState()))) for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(count) == 1
    assert len({id(view) for view in found}) == 1


def test_an_error_is_not_kept_and_leaves_others_alone(explorer):
    bad = ViewState(solver="subspace", dimension=50)
    for _ in range(2):
        with pytest.raises(ContricaError):
            explorer.fit(bad)
    assert explorer.fit(ViewState()).n_kept >= 1


def test_new_patterns_are_matched_with_old_ones(explorer):
    old, new = ViewState(n_components=2), ViewState(n_components=4)
    matches = explorer.compare(old, new)
    assert [each.new for each in matches] == [0, 1, 2, 3]
    views = explorer.fit(old), explorer.fit(new)
    expected = match_patterns(views[1].components.T, views[0].components.T)
    for each in matches:
        if each.old is not None:
            assert each.new == expected.order[each.old]
            assert each.cosine == pytest.approx(expected.cosines[each.old])
    back = explorer.compare(new, old)
    assert sorted(each.old for each in back) == [0, 1, 2, 3]
    assert [each.new for each in back[:2]] == [0, 1]
    assert all(each.new is None for each in back[2:])


def test_names_and_order_follow_their_patterns_and_wait_where_there_are_none(explorer):
    state = ViewState(n_components=3).edit(0, name="first").edit(2, name="last").move(1, -1, 3)
    few = explorer.change(state, n_components=1)
    assert [each.name for each in explorer.edits(few)[0]] == ["first"]
    assert [each.name for each in explorer.edits(few)[1]] == ["last"]
    decoded = ViewState.decode(few.encode())
    again = explorer.change(decoded, n_components=3)
    assert [each.name for each in explorer.edits(again)[0]] == ["first", "", "last"]
    assert explorer.edits(again)[1] == []


def test_names_follow_patterns_that_come_in_another_order():
    data = small_data()
    explorer = Explorer(data)
    state = explorer.default_state()
    components = explorer.fit(state).components
    said = replace(state, edits=tuple(Edit(i, f"pattern {i}") for i in range(len(components))))
    other = explorer.change(said, solver="joint", n_foreground=2, n_background=6)
    for edit, pattern in zip(explorer.edits(other)[0], explorer.fit(other).components, strict=True):
        if edit.name:
            cosines = np.abs(components @ pattern)
            assert edit.name == f"pattern {np.argmax(cosines)}"
            assert cosines.max() >= 0.8


def test_a_refit_that_fails_leaves_the_state(explorer):
    state = ViewState().edit(0, name="kept")
    with pytest.raises(ContricaError):
        explorer.change(state, dimension=50)
    assert explorer.edits(state)[0][0].name == "kept"


def test_solver_subspace_gives_up_the_number_of_background_patterns(explorer):
    state = ViewState(solver="joint", n_foreground=2, n_background=6)
    assert explorer.change(state, solver="subspace").n_background is None


def test_several_backgrounds_and_groups_are_fitted_as_they_are():
    data = small_data()
    groups = np.repeat([f"g{i}" for i in range(30)], 10)
    both = ExplorerData.of(
        data.fore,
        [data.backs[0][:150], data.backs[0][150:]],
        groups=groups,
        background_groups=[groups[:150], groups[150:]],
    )
    view = Explorer(both).fit(ViewState())
    model = ContrastiveICA(random_state=0).fit(
        data.fore,
        background=list(both.backs),
        groups=groups,
        background_groups=[groups[:150], groups[150:]],
    )
    assert np.array_equal(view.components, model.components_)
    assert view.scores_back.shape[0] == 300


def test_one_variable_pair_one_pattern_and_many_columns_are_told_of():
    rng = np.random.default_rng(0)
    metadata = {f"column {i}": rng.normal(size=60) for i in range(10_000)}
    metadata = {"empty": np.full(60, np.nan), **metadata}
    data = ExplorerData.of(
        rng.laplace(size=(60, 2)) * 4, rng.laplace(size=(50, 2)), metadata=metadata
    )
    explorer = Explorer(data)
    state = ViewState(n_components=1, y=5)
    assert explorer.fit(state).n_kept == 1
    assert explorer.axes(state) == (0, 0)
    assert len(explorer.cards(state)) == 1
    assert len(data.column_names) == MAX_COLUMNS
    assert "Of 10001 columns" in data.columns_left_out
    assert "empty" in data.columns_left_out
