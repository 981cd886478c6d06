"""A sample of benchmarks/fuzz.py: cases that no release was tried on by hand."""

import sys
from pathlib import Path

import pytest

FOLDER = str(Path(__file__).parent.parent / "benchmarks")
ALLOWED = {"right", "refused"}


@pytest.fixture(scope="module")
def fuzz():
    for package in ("typer", "pandas", "polars", "dask"):
        pytest.importorskip(package)
    before = list(sys.path)
    sys.path.insert(0, FOLDER)
    import fuzz

    yield fuzz
    sys.path[:] = before
    for name in ("fuzz", "fuzz_fits", "fuzz_files"):
        del sys.modules[name]


@pytest.fixture(scope="module")
def folder(fuzz, tmp_path_factory):
    place = tmp_path_factory.mktemp("fuzz")
    fuzz.prepare(place)
    return place


@pytest.mark.parametrize(("kind", "count"), [("fits", 25), ("files", 25), ("models", 100)])
def test_random_cases_end_as_they_may(kind, count, fuzz, folder):
    found = fuzz.run_chunk(kind, 1234, range(count), folder)
    assert not [outcome for outcome in found if outcome not in ALLOWED]
    assert set(found) == ALLOWED


def test_what_ends_otherwise_is_found(fuzz, monkeypatch, folder):
    """The harness can fail."""
    import contrica

    def broken(self, X):
        raise KeyError("no")

    monkeypatch.setattr(contrica.estimators._transformer.ContrastTransformer, "transform", broken)
    found = fuzz.run_chunk("fits", 1234, range(20), folder)
    assert any("KeyError" in outcome for outcome in found)
