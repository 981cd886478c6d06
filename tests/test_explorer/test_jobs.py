"""Computations in the background: progress, an end, and results that say what they are of."""

import threading
import time

import numpy as np
import pytest

from contrica import inference
from contrica.errors import ParameterError
from contrica.explorer import Explorer, ViewState
from contrica.explorer import _jobs as jobs
from contrica.explorer._jobs import Jobs
from contrica.progress import counted, watched
from tests.test_explorer.small import small_data

STATE = ViewState(solver="subspace", n_foreground=2)


def ended(explorer, job_id):
    for _ in range(3000):
        told = explorer.job(job_id)
        if told.is_over:
            return told
        time.sleep(0.02)
    raise TimeoutError(told.words)


@pytest.fixture
def explorer(monkeypatch):
    monkeypatch.setattr(jobs, "N_RESAMPLES", 3)
    pool = Jobs()
    yield Explorer(small_data(), jobs=pool)
    pool.close()


def test_stability_comes_with_intervals_and_goes_stale_with_a_drag_or_an_edit(explorer):
    before = explorer.cards(STATE)[0]
    assert (before.stability_words, before.stability_is_stale) == ("not computed", False)
    told = ended(explorer, explorer.start_job("stability", STATE))
    assert (told.status, told.progress) == ("done", 1)
    view, data = explorer.fit(STATE), explorer.data
    expected = inference.stability(
        view.model.fit(data.fore, background=data.backs[0]),
        data.fore,
        background=data.backs[0],
        n_resamples=3,
        random_state=0,
    )
    for i, card in enumerate(explorer.cards(STATE)):
        assert card.stability == pytest.approx(expected.index[i])
        assert not card.stability_is_stale
        unit = card.leading[0].effect / card.leading[0].loading
        j = int(card.leading[0].name[1:])
        ends = np.array([card.leading[0].low, card.leading[0].high]) / unit
        np.testing.assert_allclose(np.sort(ends), expected.intervals[i, j])
    for state in (STATE.edit(1, verdict="rejected"), STATE.move(0, 1, 2)):
        assert all(card.stability_is_stale for card in explorer.cards(state))
    assert not any(card.stability_is_stale for card in explorer.cards(STATE.edit(0, name="new")))
    dragged = explorer.change(STATE, n_foreground=3)
    matched = [card for card in explorer.cards(dragged) if not np.isnan(card.stability)]
    assert matched
    assert all(card.stability_is_stale for card in matched)
    assert not any(card.stability_is_stale for card in explorer.cards(STATE))  # undone


def test_significance_gives_every_pattern_its_p(explorer):
    state = STATE
    assert np.isnan(explorer.cards(state)[0].p)
    told = ended(explorer, explorer.start_job("significance", state))
    assert told.status == "done"
    card = explorer.cards(state)[0]
    assert card.p == told.result.p_values[0] == 0.001
    assert "999 permutations of rows" in card.p_words
    assert explorer.cards(state.edit(1, verdict="rejected"))[0].p_is_stale


def test_a_p_of_the_fit_itself_is_stale_after_a_rejection():
    explorer = Explorer(small_data())
    state = ViewState(solver="subspace")
    assert not explorer.cards(state)[0].p_is_stale
    assert explorer.cards(state.edit(0, verdict="rejected"))[0].p_is_stale
    assert not explorer.cards(state.edit(0, verdict="accepted"))[0].p_is_stale


def test_a_job_is_cancelled_at_its_next_step(explorer, monkeypatch):
    stopped, begun = threading.Event(), threading.Event()

    def endless(data, view):
        try:
            for _ in counted(iter(int, 1), 10**9, "steps"):
                begun.set()
                time.sleep(0.005)
        finally:
            stopped.set()

    monkeypatch.setitem(jobs.KINDS, "stability", endless)
    job_id = explorer.start_job("stability", STATE)
    assert begun.wait(20)
    explorer.cancel(job_id)
    assert explorer.job(job_id).status == "cancelled"
    assert stopped.wait(20)
    assert ended(explorer, job_id).status == "cancelled"
    assert explorer.cards(STATE)[0].stability_words == "not computed"


def test_a_job_that_fails_says_why_and_another_reader_cannot_ask_for_it(explorer, monkeypatch):
    def failing(data, view):
        raise ZeroDivisionError("nothing")

    monkeypatch.setitem(jobs.KINDS, "stability", failing)
    job_id = explorer.start_job("stability", STATE)
    told = ended(explorer, job_id)
    assert (told.status, told.words) == ("failed", "It failed: ZeroDivisionError: nothing")
    other = Explorer(explorer.data, explorer._fits, explorer._jobs)
    with pytest.raises(ParameterError, match="not known"):
        other.job(job_id)
    other.cancel(job_id)
    assert explorer.job(job_id).status == "failed"
    with pytest.raises(ParameterError, match="significance, stability"):
        explorer.start_job("theft", STATE)


def test_a_pool_ends_while_a_job_goes_on(monkeypatch):
    pool = Jobs()
    explorer = Explorer(small_data(), jobs=pool)
    begun = threading.Event()

    def endless(data, view):
        for _ in counted(iter(int, 1), 10**9, "steps"):
            begun.set()
            time.sleep(0.005)

    monkeypatch.setitem(jobs.KINDS, "stability", endless)
    job_id = explorer.start_job("stability", STATE)
    assert begun.wait(20)
    start = time.monotonic()
    pool.close()
    assert time.monotonic() - start < 10
    assert pool.view(job_id).status == "cancelled"


def test_steps_are_told_to_who_watches_in_the_same_thread_only():
    told, others = [], []
    with watched(lambda *step: told.append(step)):
        assert list(counted("ab", 2, "letters")) == ["a", "b"]
        thread = threading.Thread(target=lambda: others.extend(counted("cd", 2, "letters")))
        thread.start()
        thread.join()
    assert list(counted("e", 1, "letters")) == ["e"]
    assert told == [(1, 2, "letters"), (2, 2, "letters")]
    assert others == ["c", "d"]
