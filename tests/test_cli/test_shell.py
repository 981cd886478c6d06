"""What all commands share: how they start, what they say, and how they end."""

import importlib
import runpy
import signal
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
import typer

import contrica.errors
from contrica.cli import console, main
from contrica.cli.console import plain_errors, progress, told
from contrica.errors import DelicateDataWarning, FoundFileError, ParameterError
from contrica.output import output_folder
from contrica.validation import check_choice, check_count, check_finite, check_rank, check_scale
from tests.said import raises
from tests.test_cli.shell import run

ROOT = Path(__file__).parents[2]
COMMANDS = ("fit", "transform", "ranks", "demo", "compare", "reproduce")


def test_usage_errors_and_help():
    assert run("fit").exit_code == 2
    for command in COMMANDS:
        result = run(command, "--help")
        assert result.exit_code == 0
        assert "--out" in result.output
    assert run("--version").output == f"{contrica.__version__}\n"


# --- words ---


def test_the_shell_speaks_of_options_not_of_parameters():
    for check, expected in (
        (lambda: check_count("n_background", 0), "--n-background 0 is too small."),
        (lambda: check_choice("deflation", "x", ("thin",)), "--deflation x is not known."),
        (lambda: check_scale("background_scale", -1), "--background-scale -1 is out of range."),
        (lambda: check_rank(99, 3, "n_foreground"), "Lower --n-foreground, or keep more"),
        (lambda: check_rank(99, 3, "n_foreground"), "principal components (--n-pcs)."),
    ):
        with pytest.raises(ParameterError) as caught:
            check()
        assert expected in told(caught.value)
        assert "--" not in str(caught.value)


def test_datasets_are_called_by_what_the_shell_knows_them_as():
    class Summary:
        low = high = np.array([0.0, np.nan])

    for name, called in (
        ("X", "the foreground"),
        ("background", "background"),
        ("/data/X/n_pcs.csv", "/data/X/n_pcs.csv"),
    ):
        with raises(contrica.errors.DataError, "not-finite", name) as caught:
            check_finite(Summary, name)
        assert told(caught.value).startswith(f"{called} contains NaN")
        assert str(caught.value).startswith(f"{name} contains NaN")


def test_only_parameters_become_options():
    told_error = ParameterError(
        "code", "column 'X' of n_pcs", "its fourth cumulant", "Use `deflation=thin` or `n_tries`."
    )
    assert (
        told(told_error)
        == "column 'X' of n_pcs, but its fourth cumulant. Use --deflation thin or n_tries."
    )


def test_what_other_packages_say_is_left_as_it_is():
    assert told(ValueError("n_pcs=3, and\n   X.")) == "n_pcs=3, and X."
    assert told("a text") == "a text"


def test_every_option_that_stands_for_a_parameter_is_one():
    given = {
        name
        for command in typer.main.get_command(contrica.cli.app).commands.values()
        for parameter in command.params
        for name in parameter.opts
    }
    assert {name for name in console.OPTIONS.values() if name.startswith("--")} <= given


def test_warnings_are_said_once_after_the_work(capsys):
    def warn_of(n, stacklevel=1):
        warnings.warn(
            DelicateDataWarning("code", f"`X` has {n} rows", remedy="Lower `n_pcs`."),
            stacklevel=stacklevel,
        )

    with progress("working"):
        warn_of(3)
        warn_of(3, stacklevel=2)  # from another line
        warn_of(4)
        warnings.warn("of another [package]", stacklevel=1)
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "warning: the foreground has 3 rows. Lower --n-pcs.",
        "warning: the foreground has 4 rows. Lower --n-pcs.",
        "warning: of another [package]",
    ]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FoundFileError("exists", "o exists", remedy="Pass `overwrite`."), "Pass --overwrite."),
        (contrica.errors.ClusterLostError("lost", "it is lost"), "error: it is lost."),
        (MemoryError("too large"), "error: too large"),
        (OSError("disk full"), "error: disk full"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(error, line, capsys):
    def command():
        raise error

    with pytest.raises(typer.Exit) as caught:
        plain_errors(command)()
    assert caught.value.exit_code == 2
    assert caught.value.__cause__ is error
    said = capsys.readouterr()
    assert said.out == ""
    assert line in said.err
    assert len(said.err.splitlines()) == 1


def test_other_errors_are_faults_of_ours_and_keep_their_traceback():
    def command():
        raise KeyError("fault")

    with pytest.raises(KeyError):
        plain_errors(command)()


# --- starting and ending ---


@pytest.fixture
def handlers(monkeypatch):
    """What `main` would do at signals, which these tests do not change."""
    caught = {}
    monkeypatch.setattr(signal, "signal", caught.__setitem__)
    return caught


def installed():
    """What pip makes the command of."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        module, function = tomllib.load(file)["project"]["scripts"]["contrica"].split(":")
    return getattr(importlib.import_module(module), function)


def as_module():
    sys.modules.pop("contrica.cli.__main__", None)  # which whoever walks over all modules leaves
    runpy.run_module("contrica.cli", run_name="__main__")


@pytest.mark.parametrize("start", [lambda: installed()(), as_module], ids=["installed", "module"])
def test_the_command_runs_and_answers_errors_on_stderr(
    start, tmp_path, monkeypatch, capsys, handlers
):
    monkeypatch.chdir(tmp_path)
    call = "contrica fit none.csv --background none.csv --out o"
    monkeypatch.setattr(sys, "argv", call.split())
    with pytest.raises(SystemExit) as caught:
        start()
    assert caught.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "none.csv does not exist" in " ".join(said.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_is_cancelled_cleans_up(tmp_path, monkeypatch, handlers, capsys):
    monkeypatch.setattr(sys, "argv", ["contrica", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.strip() == contrica.__version__

    def cancelled():
        with output_folder(tmp_path / "out") as folder:
            (folder / "half").write_text("x")
            handlers[signal.SIGTERM](signal.SIGTERM, None)

    with pytest.raises(SystemExit) as caught:
        cancelled()
    assert caught.value.code == 143
    assert list(tmp_path.iterdir()) == []


def process(*arguments, cwd):
    """What a new process of Python answers."""
    call = [sys.executable, *arguments]
    return subprocess.run(call, capture_output=True, text=True, cwd=cwd, check=False)


def test_a_process_of_its_own_answers(tmp_path):
    done = process("-m", "contrica.cli", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in COMMANDS)
    code = "import sys; sys.modules['typer'] = None; import contrica.cli"
    lacking = process("-c", code, cwd=tmp_path)
    assert lacking.returncode == 1
    assert lacking.stderr.strip() == "the command line needs typer: pip install 'contrica[cli]'"
    assert lacking.stdout == ""


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_extra_says_what_to_install(package, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("contrica.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as caught:
        importlib.import_module("contrica.cli")
    assert f"needs {package}: pip install 'contrica[cli]'" in caught.value.code
