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
from tests.house.graph import functions_of, graph_of, in_cycles, longest_chain, report

SOURCE = Path(contrica.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# The rooms, from the inside out: none may import from one that stands further right.
ROOMS = [
    {"_version", "errors"},
    {"archive", "markup", "output", "progress", "validation"},
    {"rows"},
    {"metrics", "moments"},
    {"decompositions"},
    {"solvers"},
    {"estimators"},
    {"inference"},
    {"datasets", "labels", "models"},
    {"compare"},
    {"tl"},
    {"plots"},
    {"pl", "report"},
    {"experiments"},
    {"explorer"},
    {"cli"},
]
LEVEL = {name: i for i, room in enumerate(ROOMS) for name in room}


GRAPH = graph_of(SOURCE)


@pytest.mark.parametrize("name", [name for name in GRAPH if name != "__init__"])
def test_imports_point_inward(name):
    room = name.split(".")[0]
    assert room in LEVEL, f"say among which rooms {room} belongs"
    for used in GRAPH[name]:
        assert LEVEL[used.split(".")[0]] <= LEVEL[room], f"{name} must not import {used}"


def test_no_module_imports_itself_by_way_of_others():
    assert not in_cycles(GRAPH)


def test_a_cycle_of_imports_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"e"}, "e": {"d"}, "f": {"d"}}
    assert in_cycles(graph) == {"d", "e", "f"}
    assert longest_chain({name: graph[name] for name in "abc"}) == ["a", "b", "c"]


def test_files_and_functions_are_short():
    """No file above 600 lines; bodies above 50 lines, and many parameters, are a handful."""
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES) <= 600
    functions = list(functions_of(SOURCE))
    assert sum(n_lines > 50 for _, n_lines, _ in functions) <= 3
    assert len(list(report(SOURCE))) > len(ROOMS)


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


# The shell has its process to itself; scikit-learn's FastICA warns in no other way.
CATCHING = {"cli/console.py", "decompositions/_fastica.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_filters_of_warnings_which_all_threads_share_are_left_alone(path):
    text = path.read_text(encoding="utf-8")
    changes = re.search(r"warnings\.(catch_warnings\(|simplefilter|filterwarnings)", text)
    assert changes is None or path.relative_to(SOURCE).as_posix() in CATCHING
