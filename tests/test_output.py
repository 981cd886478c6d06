"""Files and folders that are complete or not there."""

import stat

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
