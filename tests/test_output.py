"""Files and folders that are complete or not there."""

import contextlib
import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contrica.errors import FoundFileError
from contrica.output import output_file, output_folder
from tests.said import raises


def half(folder):
    (folder / "half").write_text("x")


def half_a_file(path):
    path.write_text("x")


@pytest.mark.parametrize(("output", "write"), [(output_folder, half), (output_file, half_a_file)])
def test_an_interrupted_one_leaves_nothing(tmp_path, output, write):
    def interrupted():
        with output(tmp_path / "deep" / "out") as path:
            write(path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_folders_are_refused_or_replaced_file_by_file(tmp_path):
    out = tmp_path / "deep" / "out"
    with output_folder(out) as folder:
        (folder / "a").write_text("1")
    with raises(FoundFileError, "exists", "overwrite") as caught, output_folder(out):
        pass
    assert "Name another folder, or pass overwrite." in str(caught.value)
    (out / "mine").write_text("kept")
    with output_folder(out, overwrite=True) as folder:
        (folder / "a").write_text("2")
    assert (out / "a").read_text() == "2"
    assert (out / "mine").read_text() == "kept"
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    for name in ("b", "c_1", "c_2"):
        (out / name).write_text("of an earlier run")
    with output_folder(out, overwrite=True, ours=("a", "b", "c_*", "d")) as folder:
        (folder / "c_2").write_text("3")
    assert sorted(path.name for path in out.iterdir()) == ["c_2", "mine"]
    assert (out / "c_2").read_text() == "3"
    with raises(FoundFileError, "is-a-file"), output_folder(out / "mine"):
        pass


def test_files_are_refused_or_replaced(tmp_path):
    out = tmp_path / "deep" / "out.csv"
    with output_file(out) as path:
        assert path.suffix == ".csv"  # what writes it may look
        path.write_text("1")
    with raises(FoundFileError, "exists", "overwrite") as caught, output_file(out):
        pass
    assert isinstance(caught.value, FileExistsError)
    with output_file(out, overwrite=True) as path:
        path.write_text("2")
        assert out.read_text() == "1"
    assert out.read_text() == "2"
    assert stat.S_IMODE(out.stat().st_mode) == 0o644  # and not a temporary file's
    assert [path.name for path in out.parent.iterdir()] == ["out.csv"]
    with raises(FoundFileError, "is-a-folder"), output_file(out.parent, overwrite=True):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("way", ["exchange", "renames"])
def test_a_process_killed_at_any_moment_leaves_the_old_folder_or_the_new_one(way):
    """And the next run removes what was left; with two renames the folder may be away until then."""
    script = Path(__file__).parent / "killed.py"
    found = subprocess.run(
        [sys.executable, script, way],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    outcomes = json.loads(found.stdout)
    assert len(outcomes) > 20
    states = {outcome[0] for outcome in outcomes}
    assert {"old", "new"} <= states <= {"old", "new"} | ({"absent"} if way == "renames" else set())
    assert {outcome[1] for outcome in outcomes} == {"next"}
    assert {tuple(outcome[2]) for outcome in outcomes} == {("out",)}


def test_files_of_others_stay_whatever_they_are(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with output_folder(out) as folder:
        (folder / "a").write_text("1")
    (out / "deep" / "er").mkdir(parents=True)
    (out / "deep" / "er" / "file").write_text("kept")
    (out / "link").symlink_to("deep/er/file")
    (out / "dangling").symlink_to("nowhere")
    (out / "a_1").mkdir()  # a folder is nobody's but the user's
    out.chmod(0o700)
    for copies in (False, True):
        if copies:
            monkeypatch.setattr(os, "link", lambda *a, **k: (_ for _ in ()).throw(OSError("none")))
        with output_folder(out, overwrite=True, ours=("a*",)) as folder:
            (folder / "b").write_text("2")
        assert sorted(file.name for file in out.iterdir()) == [
            *("a_1", "b", "dangling", "deep", "link")
        ]
        assert (out / "link").is_symlink()
        assert (out / "link").read_text() == "kept"
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
    (out / "c").mkdir()
    with raises(FoundFileError, "is-a-folder"), output_folder(out, overwrite=True) as folder:
        (folder / "c").write_text("3")
    assert (out / "c").is_dir()
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "mine").write_text("kept")
    (tmp_path / "out").symlink_to("real")
    with output_folder(tmp_path / "out", overwrite=True) as folder:
        (folder / "a").write_text("1")
    assert (tmp_path / "out").is_symlink()
    assert sorted(file.name for file in (tmp_path / "real").iterdir()) == ["a", "mine"]


def test_a_folder_that_cannot_be_renamed_is_written_file_by_file(tmp_path, monkeypatch):
    """Such as a mount point."""
    out = tmp_path / "out"
    with output_folder(out) as folder:
        (folder / "a").write_text("1")
    (out / "mine").write_text("kept")
    monkeypatch.setattr("contrica.output._exchanged", lambda one, other: False)
    rename = os.rename

    def busy(one, other):
        if Path(one) == out:
            raise OSError(errno.EBUSY, "busy")
        rename(one, other)

    monkeypatch.setattr(os, "rename", busy)
    with output_folder(out, overwrite=True, ours=("a",)) as folder:
        (folder / "b").write_text("2")
    assert sorted(file.name for file in out.iterdir()) == ["b", "mine"]
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_what_another_process_is_writing_stays(tmp_path):
    out = tmp_path / "out"
    with output_folder(out) as first:
        with output_folder(out) as second:
            (second / "a").write_text("2")
        assert first.exists()
        shutil.rmtree(out)
        (first / "a").write_text("1")
    assert (out / "a").read_text() == "1"
    file = tmp_path / "t.csv"
    with output_file(file) as one:
        with output_file(file) as two:
            two.write_text("2")
        one.write_text("1")
    assert file.read_text() == "1"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_old_folder_is_removed_waits_for_that(number, tmp_path, monkeypatch):
    class Ended(Exception):
        pass

    def end(*_):
        raise Ended

    out, remove = tmp_path / "out", shutil.rmtree

    def interrupted(path, **options):
        os.kill(os.getpid(), number)
        remove(path, **options)

    before = signal.signal(number, end)
    try:
        for name in ("a", "b"):
            monkeypatch.setattr(shutil, "rmtree", remove if name == "a" else interrupted)
            with (
                contextlib.suppress(Ended),
                output_folder(out, overwrite=True, ours=("a", "b")) as folder,
            ):
                (folder / name).write_text(name)
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)
    assert [file.name for file in out.iterdir()] == ["b"]
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
