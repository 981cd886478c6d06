"""The studies in benchmarks/, which run too long for tests, start: what they import is there."""

import os
import runpy
import sys
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if "__main__" in path.read_text("utf-8"))


def test_all_scripts_are_found_and_listed():
    assert len(SCRIPTS) > 10
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert not [path.name for path in FOLDER.glob("*.py") if path.name not in page]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_study_starts_and_explains_itself(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])  # as of a script that is started
    environment, modules = dict(os.environ), set(sys.modules)
    try:
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
    finally:
        os.environ.clear()
        os.environ.update(environment)
        for name in set(sys.modules) - modules:
            if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
    assert ended.value.code in (0, None)
    assert f"usage: {path.name}" in capsys.readouterr().out
