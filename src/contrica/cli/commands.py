"""The typer app with all its commands, and the entry point that the shell starts."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from contrica import __version__
from contrica.cli import compare, demo, fit, ranks, report, reproduce, transform
from contrica.cli.console import plain_errors, print_line
from contrica.cli.options import with_bundles

__all__ = ["app", "main"]

app = typer.Typer(
    help="Contrastive ICA: the patterns of a foreground that its background does not have.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for command in (
    *(fit.fit, transform.transform, report.report, ranks.ranks),
    *(demo.demo, compare.compare, reproduce.reproduce),
):
    app.command()(with_bundles(plain_errors(command)))


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print_line(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point of the shell command."""
    # A job that is cancelled cleans up like one that is interrupted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    app()
