"""The rules of the house, kept by tests: layers, docstrings, light imports, no hidden state."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import contrica

SOURCE = Path(contrica.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# What stands left may not import what stands right; names in one group may import each other.
LAYERS = [
    {"_version", "validation", "symmetric", "threads", "blocks", "memory"},
    {"tables", "stores"},
    {"metrics", "negentropy", "operators"},
    {"cumulants", "projection", "sums"},
    {"eigen"},
    {"decompositions"},
    {"ranks", "contrast", "joint", "subspace"},
    {"significance", "selection"},
    {"estimators"},
    {"datasets", "files"},
    {"compare"},
    {"plots"},
    {"experiments"},
    {"cli"},
]
LEVEL = {name: i for i, layer in enumerate(LAYERS) for name in layer}


def module_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_by(path):
    """Modules of contrica that a file imports, at any depth of its code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("contrica"):
            names = [node.module] if node.module != "contrica" else []
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("contrica.")]
        yield from (name.split(".")[1] for name in names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_inward(path):
    name = module_of(path)
    if name == "__init__":
        return
    assert name in LEVEL, f"say in which layer {name} belongs"
    for used in imported_by(path):
        assert LEVEL[used] <= LEVEL[name], f"{name} must not import {used}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_print_no_assert_no_global_randomness(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: raise an exception instead"
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            assert call != "print", f"line {node.lineno}: use logging"
            assert not re.fullmatch(
                r"np\.random\.(?!default_rng|Generator|RandomState)\w+", call
            ), f"line {node.lineno}: {call} draws from the global generator"


def public_objects():
    for info in pkgutil.walk_packages([str(SOURCE)], "contrica."):
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if getattr(thing, "__module__", None) == info.name and callable(thing):
                yield f"{info.name}.{name}", thing


@pytest.mark.parametrize(
    ("name", "thing"), list(public_objects()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_docstrings_name_the_parameters_of_the_signature(name, thing):
    doc = inspect.getdoc(thing)
    assert doc, f"{name} has no docstring"
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w[\w ]+\n-+\n|\Z)", doc, re.S)
    if section is None:
        return
    described = []
    for line in section.group(1).splitlines():
        if line and not line.startswith(" "):
            described += [part.strip(" *") for part in line.split(" : ")[0].split(",")]
    parameters = [
        key for key in inspect.signature(thing).parameters if key not in ("self", "args", "kwargs")
    ]
    assert described == parameters, name


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_contrica_loads_no_extra():
    """None beyond those that scikit-learn takes up by itself where they happen to be installed."""
    extras = {"matplotlib", "typer", "rich", "PIL", "pandas", "polars", "anndata", "torch", "dask"}
    extras |= {"distributed", "h5py", "pyarrow", "zarr"}
    code = "import sys, sklearn.decomposition, {}; print(*sys.modules)"
    ours, theirs = (extras & set(run(code.format(m)).split()) for m in ("contrica", "numpy"))
    assert ours == theirs
    assert "matplotlib" not in ours


@pytest.mark.timing
def test_importing_contrica_is_quick():
    """Under 1.5 times the import of sklearn.decomposition, the best of several tries of each."""

    def seconds(module):
        best = []
        for _ in range(4):
            start = time.perf_counter()
            run(f"import {module}")
            best.append(time.perf_counter() - start)
        return min(best)

    assert seconds("contrica") < 1.5 * seconds("sklearn.decomposition")


def test_at_most_fifteen_public_names():
    assert len(contrica.__all__) <= 15
    assert all(hasattr(contrica, name) for name in contrica.__all__)
