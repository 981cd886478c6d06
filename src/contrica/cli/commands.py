"""The typer app with all its commands, and the entry point that the shell starts."""

from __future__ import annotations

import inspect
import logging
import signal
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from contrica import __version__
from contrica.cli import compare, demo, example, explore, fit, ranks, report, reproduce, transform
from contrica.cli.console import plain_errors, print_line
from contrica.cli.options import with_bundles

__all__ = ["EXAMPLES", "app", "main"]

logger = logging.getLogger(__name__)

app = typer.Typer(
    help="Contrastive ICA: the patterns of a foreground that its background does not have.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
# An example of each; those that read files run on what ``contrica example`` writes.
EXAMPLES: dict[Callable[..., None], str] = {
    example.example: "contrica example --out example",
    fit.fit: "contrica fit samples.csv --groupby diagnosis --background benign --drop id "
    "--scale pooled --out results",
    transform.transform: "contrica transform results/model.npz new_patients.csv --out scores.csv",
    report.report: "contrica report results --stability 100 --overwrite",
    explore.explore: "contrica explore samples.csv --groupby diagnosis --background benign --drop id",
    ranks.ranks: "contrica ranks patients.csv --background controls.csv --scale pooled",
    demo.demo: "contrica demo --out demo",
    compare.compare: "contrica compare patients.csv --background controls.csv --scale pooled "
    "--out comparison",
    reproduce.reproduce: "contrica reproduce mouse-protein --data FOLDER --out reproduced",
}


def _about(command: Callable[..., None]) -> str:
    """The docstring, with lines as wide as the terminal; only paragraphs end them."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


for command, line in EXAMPLES.items():
    app.command(help=_about(command), epilog=f"Example: {line}")(
        with_bundles(plain_errors(command))
    )


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print_line(__version__)
        raise typer.Exit


def _log_unraisable(about: sys.UnraisableHookArgs) -> None:
    """Log what an interrupt left half made in another package, which is no traceback for a user."""
    logger.debug("%s: %r", about.err_msg or "while something was freed", about.exc_value)


def main() -> None:
    """Entry point of the shell command."""
    sys.unraisablehook = _log_unraisable
    # A job that is cancelled cleans up like one that is interrupted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    app()
