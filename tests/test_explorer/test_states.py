"""States of the page as values: into an address and back, and bad addresses in words."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrica.errors import ParameterError
from contrica.explorer import History, ViewState
from contrica.explorer._state import MAX_ADDRESS, PROJECTIONS, SCALES, SOLVERS, Edit

texts = st.text(max_size=40)
counts = st.none() | st.integers(1, 1000)
edits = st.lists(
    st.builds(
        Edit,
        st.integers(0, 50),
        texts,
        texts,
        st.sampled_from(["", "accepted", "rejected"]),
        st.sampled_from(["", ViewState(scale="pooled").fit_text, ViewState().fit_text]),
    ).filter(lambda each: not each.is_empty),
    max_size=5,
    unique_by=lambda each: (each.fit, each.index),
).map(tuple)
states = st.builds(
    ViewState,
    solver=st.sampled_from(SOLVERS),
    scale=st.sampled_from(SCALES),
    projection=st.sampled_from(PROJECTIONS),
    n_foreground=counts,
    n_background=counts,
    dimension=counts,
    n_components=counts,
    random_state=st.integers(0, 2**32 - 1),
    x=st.integers(0, 1000),
    y=st.integers(0, 1000),
    colour=st.sampled_from(["dataset", "groups"]) | texts.filter(bool).map("column:{}".format),
    background=st.booleans(),
    drawn=st.sampled_from(["points", "density"]),
    order=st.permutations(range(4)).map(tuple),
    edits=edits,
)


def as_sets(state):
    return {each: getattr(state, each) for each in vars(state) if each != "edits"}, set(state.edits)


@given(states)
def test_a_state_comes_back_from_its_address(state):
    text = state.encode()
    assert as_sets(ViewState.decode(text)) == as_sets(state)
    assert text.isascii()
    assert not set(text) & set(" \"'<>#\\")


@given(st.text(max_size=200))
def test_any_text_is_a_state_or_an_error_in_words(text):
    with suppress(ParameterError):
        assert ViewState.decode(ViewState.decode(text).encode()) == ViewState.decode(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("solver=magic", "auto, joint, subspace, paper"),
        ("l=0", "from 1 to"),
        ("l=two", "whole number"),
        ("l=3&l=4", "once"),
        ("x=-1", "whole number"),
        ("colour=red", "column:NAME"),
        ("order=0.0.1", "once"),
        ("token=abc", "nothing of that name"),
        ("name0=zero", "nothing of that name"),
        ("verdict1=maybe", "accepted, rejected"),
        ("name1=" + "a" * 81, "at most 80"),
        ("a", "key=value"),
        ("x=%ff", "key=value"),
        ("was=name1%3Da%26was%3Db", "nothing of that name"),
        ("x=" + "1" * MAX_ADDRESS, "at most"),
    ],
)
def test_bad_addresses_are_refused_in_words(text, told):
    with pytest.raises(ParameterError, match=told):
        ViewState.decode(text)


def test_edits_are_of_one_pattern_and_empty_ones_are_left_out():
    state = ViewState().edit(1, name="heart").edit(1, note="beats").edit(0, verdict="rejected")
    assert state.edit_of(1) == Edit(1, "heart", "beats")
    assert state.edit(1, name="", note="").edits == (Edit(0, verdict="rejected"),)


def test_patterns_move_up_and_down_and_stay_within_the_list():
    state = ViewState().move(2, -1, 3)
    assert state.order_of(3) == [0, 2, 1]
    assert state.move(2, 1, 3).order == ()
    assert state.move(0, -5, 3).order_of(3) == [0, 2, 1]
    assert state.order_of(5) == [0, 2, 1, 3, 4]  # a later fit has more patterns


def test_history_goes_back_and_forth_and_forgets_what_was_undone():
    first, second, third = ViewState(), ViewState(x=1), ViewState(x=2)
    history = History(first).then(second).then(second).then(third)
    assert [history.undo().now, history.undo().undo().now] == [second, first]
    assert history.undo().undo().undo().now == first
    assert history.undo().redo().redo().now == third
    assert history.undo().then(first).redo().now == first
    for i in range(300):
        history = history.then(ViewState(x=i % 7, y=i))
    assert len(history.past) == 200
