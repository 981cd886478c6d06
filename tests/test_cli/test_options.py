"""Every option of every command: a wrong value is said with the name that the shell has for it."""

import inspect

import numpy as np
import pytest
from typer.main import get_command

from contrica import ContrastiveICA, ProportionalContrastiveICA, save
from contrica.cli import app
from contrica.cli.console import OPTIONS, told
from contrica.compare import compare_methods
from contrica.datasets import make_four_clusters
from contrica.errors import FileMissingError, MemoryBudgetError, ParameterError
from contrica.estimators import report_ranks
from contrica.experiments import EXPERIMENTS, reproduce
from contrica.solvers.deflation import check_deflation_budget
from tests.said import raises
from tests.test_cli.shell import cause, refused, run, words

COMMANDS = get_command(app).commands
PAIR = ("f.npz", "--key", "x", "--background", "f.npz", "--background-key", "y")
NEW = ("--out", "new")
SHARED = {
    ("--n-pcs", "many"): "--n-pcs many is not known",
    ("--n-pcs", "99"): "--n-pcs 99 is more than the 5 variables",
    ("--seed", "-1"): "--seed -1 cannot seed",
    ("--key", "z"): "say which by the --key.",
    ("--background-key", "z"): "say which by the --background-key.",
    ("--background", "none.npy"): "none.npy does not exist",
    ("--out", "f.npz"): "f.npz",
    ("--foreground", "a=b"): "f.npz is a file",
    ("--groupby", "a"): "--background-key is of a second file",
    ("--drop", "donor"): "has no column called 'donor'",
    ("--without", "donor"): "has no column called 'donor'",
    ("--layer", "z"): "--layer and --key both say which table",
    ("--mask-var", "z"): "--mask-var z was given for f.npz, but only AnnData files",
    ("--labels", "none.txt"): "none.txt",
    ("--config", "none.toml"): "none.toml does not exist",
    ("--config", "f.npz"): "f.npz is not a TOML file",
    ("--groups", "donor"): "has no column called 'donor'",
    ("--groups", "donor~("): "'(' in --groups donor~( is not a regular expression",
    ("--groups", "one.txt"): "--background-groups is missing",
    ("--background-groups", "one.txt"): "--groups is missing",
    ("--scale", "magic"): "--scale magic is not known",
    ("--missing", "magic"): "--missing magic is not known",
}
COMPONENTS = {("--components", "0"): "--components 0 is too small"}
REPORT = {
    ("--title", " "): "--title is empty",
    ("--stability", "1"): "--stability 1 is too small",
    ("--image-shape", "wide"): "--image-shape wide was given",
    ("--image-shape", "2x2"): "height times width must be the 5 variables",
}
ONLY_FIT = {
    **COMPONENTS,
    **REPORT,
    ("--n-background", "0"): "--n-background 0 is too small",
    ("--n-foreground", "0"): "--n-foreground 0 is too small",
    ("--proportional", "--background-scale", "-1"): "--background-scale -1.0 is out of range",
    ("--solver", "magic"): "--solver magic is not known",
    ("--deflation", "magic"): "--deflation magic is not known",
    ("--projection", "magic"): "--projection magic is not known",
    ("--device", "magic"): "--device magic",
}
READING = {
    ("--cumulant", "magic"): "--cumulant magic is not known",
    ("--memory-limit", "much"): "--memory-limit much is not known",
    ("--memory-limit", "1kB"): "--memory-limit 1kB is too little",
    ("--scheduler", "nowhere"): "no dask scheduler answered at nowhere",
}
WRONG = {
    "fit": (PAIR, NEW, {**SHARED, **READING, **ONLY_FIT}),
    "ranks": (
        PAIR,
        (),
        {
            **SHARED,
            **READING,
            ("--eigenvalues", "0"): "Invalid value for '--eigenvalues'",
            ("--out", "new.txt"): "new.txt is not a figure file",
        },
    ),
    "transform": (
        ("model.npz", "f.npz", "--key", "x"),
        ("--out", "new.csv"),
        {
            ("--key", "z"): "say which by the --key.",
            ("--scheduler", "nowhere"): "no dask scheduler answered at nowhere",
            ("--without", "donor"): "has no column called 'donor'",
            ("--drop", "donor"): "has no column called 'donor'",
            ("--foreground", "donor"): "--foreground donor does not say which rows",
            ("--foreground", "donor=1"): "has no column called 'donor'",
            ("--foreground", "1", "--groupby", "donor"): "has no column called 'donor'",
            ("--groupby", "donor"): "--groupby needs --foreground",
            ("--layer", "z"): "--layer and --key both say which table",
            ("--mask-var", "z"): "--mask-var z was given for f.npz, but only AnnData files",
            ("--config", "none.toml"): "none.toml does not exist",
            ("--out", "folder"): "folder is a folder",
        },
    ),
    "report": (
        ("result",),
        ("--out", "new.html"),
        {
            **REPORT,
            ("--out", "folder"): "folder is a folder",
            ("--config", "none.toml"): "none.toml does not exist",
        },
    ),
    "demo": (
        (),
        NEW,
        {
            ("--seed", "-1"): "--seed -1 cannot seed",
            ("--out", "f.npz"): "f.npz exists and is a file",
        },
    ),
    "example": (
        (),
        NEW,
        {
            ("--out", "f.npz"): "f.npz exists and is a file",
            ("--config", "none.toml"): "none.toml does not exist",
        },
    ),
    "explore": (
        (*PAIR, "--no-browser"),
        NEW,  # so that no page is served whatever happens
        {
            **{
                options: said
                for options, said in SHARED.items()
                if options[0] not in ("--n-pcs", "--seed", "--config")
            },
            ("--port", "8200"): "--port 8200 was given, but with --out no page is served",
            ("--host", "localhost"): "--host localhost was given, but with --out no page",
            ("--image-shape", "wide"): "--image-shape wide was given",
            ("--state", "=x"): "there is nothing of that name to set",
            ("--state", "solver=magic"): "it can be auto, joint, subspace, paper",
            ("--out", "f.npz"): "f.npz exists and is a file",
        },
    ),
    "compare": (
        PAIR,
        (),
        {
            **SHARED,
            **COMPONENTS,
            ("--methods", "magic"): "--methods magic is not known",
            ("--methods", ""): "--methods is empty",
            ("--methods", " , "): "--methods is empty",
            ("--labels", "one.txt"): "--labels name 1 group(s)",
        },
    ),
    "reproduce": (
        ("mouse-protein",),
        NEW,
        {
            ("--data", "nowhere"): "the folder of datasets nowhere does not exist",
            ("--jobs", "0"): "Invalid value for '--jobs'",
            ("--out", "f.npz"): "f.npz exists and is a file",
        },
    ),
}


def taken(command):
    """Names of the options of a command that take a value; the others are on or off."""
    return {
        name
        for option in COMMANDS[command].params
        if not getattr(option, "is_flag", False)
        for name in option.opts
        if name.startswith("--")
    }


def with_value(arguments, options):
    """The arguments with these options, each in place of the same one."""
    kept = list(arguments)
    if options[0] in kept and options[0] in ("--out", "--key", "--background-key", "--background"):
        kept[kept.index(options[0]) + 1] = options[1]
        return kept
    return [*kept, *options]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in with both datasets in one file, and what else the commands are to refuse."""
    data = make_four_clusters(60, random_state=0)
    np.savez(tmp_path / "f.npz", x=data.foreground, y=data.background)
    (tmp_path / "one.txt").write_text("a\n" * 60)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("contrica.cli.cluster.PATIENCE", 1)
    return tmp_path


CASES = [
    pytest.param(command, options, said, id=f"{command} {' '.join(options)}")
    for command, (_, _, wrong) in WRONG.items()
    for options, said in wrong.items()
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("command", "options", "said"), CASES)
def test_a_wrong_value_is_said_with_its_option(here, command, options, said):
    if command in ("transform", "report"):
        arrays = np.load("f.npz")
        model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
        model.fit(arrays["x"], background=arrays["y"])
        save(model, "model.npz")
        (here / "result").mkdir()
        save(model, here / "result" / "model.npz")
        lines = [f"{i},{score}" for i, score in enumerate(model.transform(arrays["x"])[:, 0])]
        (here / "result" / "scores.csv").write_text("\n".join([",pattern_1", *lines]))
    if "--scheduler" in options:
        pytest.importorskip("distributed")
    start, end, _ = WRONG[command]
    before = sorted(here.iterdir())
    result = run(command, *with_value((*start, *end), options))
    assert result.exit_code == 2, result.output
    assert said in words(result)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_tried_with_a_wrong_value(command):
    tried = {word for options in WRONG[command][2] for word in options if word.startswith("--")}
    assert taken(command) <= tried


def test_every_parameter_that_an_option_sets_has_its_name():
    """An option that is called as a parameter of the library, but for hyphens, sets that one."""
    functions = (
        ContrastiveICA,
        ProportionalContrastiveICA,
        compare_methods,
        report_ranks,
        reproduce,
    )
    parameters = {name for each in functions for name in inspect.signature(each).parameters}
    for command in COMMANDS:
        for name in taken(command):
            parameter = name.removeprefix("--").replace("-", "_")
            if parameter in parameters - {"background", "out"}:  # a dataset, and a path
                assert OPTIONS[parameter] == name


def test_a_memory_limit_is_refused_before_files_are_read(here):
    for command, more in (("fit", NEW), ("ranks", ())):
        call = (command, "none.csv", "--background", "none.csv", *more, "--memory-limit", "much")
        said = refused(run(*call), ParameterError, "unknown-size", "memory_limit")
        assert "--memory-limit much is not known" in said


def test_memory_that_a_deflation_would_take_is_said_with_its_option():
    with raises(MemoryBudgetError, "memory", "memory_limit") as caught:
        check_deflation_budget("sequential", 50, 1000)
    assert told(caught.value).startswith("--deflation sequential, which writes the fourth cumulant")
    assert str(caught.value).startswith('deflation="sequential", which writes the fourth cumulant')


def test_experiments_without_data_name_the_option(here, monkeypatch):
    monkeypatch.delenv("CONTRICA_DATA", raising=False)
    wanted = "Give its path as --data, or set the environment variable CONTRICA_DATA."
    named = run("reproduce", "mouse-protein", *NEW)
    assert wanted in refused(named, FileMissingError, "no-data-folder", "data")
    only = {name: each for name, each in EXPERIMENTS.items() if name == "mouse-protein"}
    monkeypatch.setattr("contrica.experiments._runner.EXPERIMENTS", only)
    among_all = run("reproduce", "all", *NEW)
    assert among_all.exit_code == 0, among_all.output
    assert "not run: mouse-protein: missing: " in words(among_all)
    assert wanted in words(among_all)


def test_an_experiment_that_there_is_not_is_named(here):
    said = refused(run("reproduce", "nosuch", *NEW), ParameterError, "unknown-choice", "experiment")
    assert "error: experiment nosuch is not known. Choose one of 'all', 'four-clusters'" in said


def test_the_file_with_missing_values_is_named(here):
    arrays = dict(np.load("f.npz"))
    for name, rows in arrays.items():
        np.save(f"{name}.npy", rows)
        rows[3, 1] = np.nan
        np.save(f"{name}_nan.npy", rows)
    for fore, backs, file in (
        ("x_nan.npy", ["y.npy"], "x_nan.npy"),
        ("x.npy", ["y_nan.npy"], "y_nan.npy"),
        ("x.npy", ["y.npy", "y_nan.npy"], "y_nan.npy"),
    ):
        behind = [part for back in backs for part in ("--background", back)]
        for command, more in (("ranks", ()), ("fit", NEW)):
            result = run(command, fore, *behind, *more)
            assert cause(result).code == "not-finite"
            assert f"error: {file} contains NaN or infinity, in 1 variable(s)" in words(result)
