"""What errors say, and what programs find in them."""

import copy
import errno
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from contrica import ContrastiveICA, errors, load
from contrica.datasets import make_synthetic
from contrica.errors import (
    FileMissingError,
    FoundFileError,
    ParameterError,
    ParameterWarning,
    PatternWarning,
    collected,
    warn,
)
from contrica.labels import read_labels
from contrica.moments.streaming import DataSums
from contrica.output import output_file
from contrica.rows.files.opening import open_rows
from contrica.rows.memory import memory_budget
from contrica.rows.moving import check_device
from contrica.validation import check_same_features, check_seed
from tests.said import raises, warns


@pytest.mark.parametrize(
    ("value", "python", "shell"),
    [
        ("3", "size=3", "--size 3"),
        ("-1e-8", "size=-1e-8", "--size -1e-8"),
        ("None", "size=None", "--size None"),
        ("[1, 2]", "size=[1, 2]", "--size [1, 2]"),
        ("10MB", 'size="10MB"', "--size 10MB"),
        ("auto", 'size="auto"', "--size auto"),
        ("", 'size=""', '--size ""'),
    ],
)
def test_values_that_are_text_stand_between_quotes(value, python, shell):
    told = ParameterError("unknown", f"`size={value}` is not known")
    assert str(told) == f"{python} is not known."
    assert told.text({"size": "--size"}) == f"{shell} is not known."


def test_text_is_quoted_once():
    one = np.ones((5, 1))
    for wrong, text in (
        (lambda: ContrastiveICA().fit(one, background=one), 'n_pcs="auto"'),
        (lambda: check_seed("x"), 'random_state="x"'),
        (lambda: memory_budget("10MB"), 'memory_limit="10MB"'),
        (lambda: check_device(""), 'device=""'),
    ):
        with pytest.raises(errors.ContricaError) as caught:
            wrong()
        assert text in str(caught.value)


def test_backquotes_of_the_users_mark_no_parameters(tmp_path):
    path = tmp_path / "n`pcs.csv"
    for read in (load, DataSums.load, open_rows, lambda path: read_labels(path, 3)):
        with pytest.raises(FileMissingError) as caught:
            read(path)
        assert f"{tmp_path}/n'pcs.csv does not exist" in str(caught.value)
    with pytest.raises(errors.FeaturesError) as caught:
        check_same_features(np.array(["n`pcs"], object), np.array(["b"], object), 1, 1)
    assert "missing from background: n'pcs; only in background: b. " in str(caught.value)


def test_errors_about_paths_have_the_fields_of_the_system(tmp_path):
    absent, present = tmp_path / "absent.npz", tmp_path / "present.npz"
    present.write_bytes(b"")
    with raises(FileMissingError, "missing", "path") as missing:
        load(absent)
    with raises(FoundFileError, "exists", "overwrite") as found, output_file(present):
        pass
    for error, number, path in (
        (missing.value, errno.ENOENT, absent),
        (found.value, errno.EEXIST, present),
    ):
        for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(same) is type(error)
            assert (same.errno, same.filename, same.filename2) == (number, str(path), None)
            for name in ("code", "parameter", "got", "needed", "remedy"):
                assert getattr(same, name) == getattr(error, name)
            assert str(same) == str(error)
    unknown = pickle.loads(pickle.dumps(FileMissingError("no-data-folder", "none is known")))
    assert (unknown.errno, unknown.filename, unknown.code) == (errno.ENOENT, None, "no-data-folder")


def test_frames_of_ours_are_told_from_the_users_on_windows_too(monkeypatch):
    site = r"C:\Python\Lib\site-packages"
    monkeypatch.setattr(errors, "_NOT_THE_USERS", (errors._folder(rf"{site}\contrica\errors.py"),))
    assert errors._is_ours(rf"{site}\contrica\rows\streams.py")
    assert not errors._is_ours(rf"{site}\contrica_plots\figure.py")
    assert not errors._is_ours(r"C:\work\contrica\fit.py")


def test_a_folder_that_begins_like_ours_is_the_users():
    ours = Path(errors.__file__).parent
    assert errors._is_ours(ours / "rows" / "streams.py")
    assert not errors._is_ours(ours.with_name("contrica-paper") / "fit.py")


def test_fits_in_threads_leave_the_filters_of_warnings_as_they_are():
    """And each hears of its own warnings only."""
    data = make_synthetic(4, n_samples=3000, random_state=0)
    X, Y = data.foreground, data.background
    before = list(warnings.filters)

    def fit(seed):
        with collected() as found:
            warn(ParameterWarning("no-effect", f"{seed}"))
            ContrastiveICA(2, random_state=seed).fit(X, background=Y)
            warn(ParameterWarning("no-effect", f"{seed}"))
        return [warning.got for warning in found if warning.code == "no-effect"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fit, range(8))) == [[str(i)] * 2 for i in range(8)]
    assert warnings.filters == before


def test_only_the_kinds_that_are_asked_for_are_collected():
    with warns(ParameterWarning, "no-effect"), collected(PatternWarning) as found:
        warn(ParameterWarning("no-effect", "this"))
        warn(PatternWarning("weak", "that"))
    assert [warning.code for warning in found] == ["weak"]
