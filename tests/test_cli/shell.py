"""Commands run in this process, and what they answer."""

from typer.testing import CliRunner

from contrica.cli import app

runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})

# Ranks as they are: no search.
FIT = (
    *("--n-background", 3, "--n-foreground", 2),
    *("--solver", "paper", "--deflation", "least_squares"),
)


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def fit(folder, *more, out="out"):
    """Fit the csv files in a folder."""
    call = (folder / "fore.csv", "--background", folder / "back.csv", "--out", folder / out)
    return run("fit", *call, *more)


def words(result):
    return " ".join(result.output.split())


def cause(result):
    """The exception behind an answer of one sentence."""
    assert result.exit_code == 2, result.output
    assert "error: " in result.output
    assert "Traceback" not in result.output
    return result.exception.__context__.__cause__


def refused(result, cls, code, parameter=...):
    """An answer of one sentence, of an error of this class, code and parameter; its words."""
    error = cause(result)
    assert type(error) is cls, repr(error)
    assert error.code == code, str(error)
    if parameter is not ...:
        assert error.parameter == parameter, str(error)
    return words(result)
