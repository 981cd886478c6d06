"""Names on disk: complete at every moment, one file for each reader, and none of others overwritten."""

import json
from dataclasses import replace

import numpy as np
import pytest

from contrica.explorer import Explorer, History, ViewState
from contrica.explorer import _session as session_module
from contrica.explorer._saved import Places, SavedNames, fingerprint
from contrica.explorer._session import Sessions
from tests.test_explorer.small import small_data

NAMED = ViewState(n_components=2).edit(0, name="heart", note="beats", verdict="accepted")


@pytest.fixture(scope="module")
def data():
    return small_data()


def opened(data, folder):
    """The only session of a new server."""
    sessions = Sessions(data, folder)
    return sessions, sessions._of("")


def test_what_was_named_is_there_after_a_restart(data, tmp_path):
    sessions, session = opened(data, tmp_path)
    assert not list(tmp_path.glob("*.json"))  # nothing is written before something is said
    session.save(NAMED)
    sessions.close()
    sessions, session = opened(data, tmp_path)
    assert session.history.now == NAMED
    assert "contrica-explorer.json" in session.saved_words
    sessions.close()
    assert [path.name for path in tmp_path.iterdir()] == ["contrica-explorer.json"]


def test_two_readers_have_two_files(data, tmp_path):
    sessions = Sessions(data, tmp_path)
    one, other = sessions._of(""), sessions._of("")
    one.save(NAMED)
    other.save(ViewState().edit(1, name="other"))
    assert sessions._of(one.id) is one
    sessions.close()
    states = [json.loads(path.read_text())["state"] for path in sorted(tmp_path.glob("*.json"))]
    assert sorted(states) == sorted([NAMED.encode(), "name2=other"])


def test_two_servers_have_two_files(data, tmp_path):
    pytest.importorskip("fcntl")
    first, one = opened(data, tmp_path)
    one.save(NAMED)
    second, other = opened(data, tmp_path)
    assert other.history.now == ViewState()
    assert one._saved.path != other._saved.path
    first.close()
    second.close()


def test_names_of_other_data_and_foreign_files_are_left_alone(data, tmp_path):
    sessions, session = opened(data, tmp_path)
    session.save(NAMED)
    sessions.close()
    (tmp_path / "contrica-explorer-2.json").write_text("{ not ours")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    others = replace(data, fore=data.fore + 1)
    assert fingerprint(others) != fingerprint(data)
    sessions, session = opened(others, tmp_path)
    assert session.history.now == ViewState()
    session.save(NAMED)
    sessions.close()
    assert session._saved.path.name == "contrica-explorer-3.json"
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items())


def test_names_that_a_bookmark_does_not_have_are_kept_beside_the_new_ones(data, tmp_path):
    saved = SavedNames(tmp_path / "names.json", "key")
    for state in (NAMED, NAMED.edit(1, name="lung"), ViewState(scale="pooled").edit(0, name="new")):
        saved.save(state)
    told = json.loads((tmp_path / "names.json").read_text())
    assert told["state"] == "scale=pooled&name1=new"
    assert told["earlier"] == [NAMED.edit(1, name="lung").encode()]


def test_what_is_typed_on_does_not_crowd_out_what_was_lost(tmp_path):
    saved = SavedNames(tmp_path / "names.json", "key")
    for name in ("a", "al", "alp", "beta", "bet"):
        saved.save(ViewState().edit(0, name=name))
    told = json.loads((tmp_path / "names.json").read_text())
    assert told["earlier"] == ["name1=alp", "name1=beta"]


def test_a_folder_that_cannot_be_written_is_told_of(data, tmp_path):
    folder = tmp_path / "file"
    folder.write_text("")
    saved = SavedNames(folder / "names.json", "key")
    saved.save(NAMED)
    assert "cannot be kept" in saved.words


def test_damaged_states_are_told_of(data, tmp_path):
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"data": "key", "state": "solver=magic"}))
    saved = SavedNames(path, "key")
    assert saved.restored() is None
    assert "cannot be read" in saved.words


def test_no_file_is_shared_where_all_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("contrica.explorer._saved.MAX_FILES", 1)
    places = Places(tmp_path, "key")
    first, second = places.take(), places.take()
    first.save(NAMED)
    second.save(ViewState().edit(0, name="other"))
    assert "not kept" in second.words
    assert second.restored() is None
    places.close()
    assert json.loads((tmp_path / "contrica-explorer.json").read_text())["state"] == NAMED.encode()


def test_who_has_to_make_room_finds_everything_again(data, tmp_path, monkeypatch):
    monkeypatch.setattr(session_module, "MAX_SESSIONS", 2)
    sessions = Sessions(data, tmp_path)
    first = sessions._of("")
    first.history = first.history.then(NAMED)
    others = [sessions._of("") for _ in range(3)]
    assert len(sessions._known) == 2
    again = sessions._of(first.id)
    assert again.history == History(NAMED, (ViewState(),))
    assert again._saved is first._saved
    assert json.loads(first._saved.path.read_text())["state"] == NAMED.encode()
    assert {each.history.now for each in others} == {ViewState()}
    sessions.close()


def test_fits_are_shared_and_what_was_computed_is_not(data, tmp_path):
    sessions = Sessions(data, tmp_path)
    one, other = sessions._of("").explorer, sessions._of("").explorer
    assert one.fit(ViewState()) is other.fit(ViewState())
    assert np.array_equal(
        one.fit(ViewState()).components, Explorer(data).fit(ViewState()).components
    )
    assert one._evidence is not other._evidence
    sessions.close()
