"""``contrica report``: one HTML file of what a fit found."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from contrica.cli.config import load_config
from contrica.cli.console import print_json, print_line, progress, results_as_json
from contrica.cli.options import DataOptions, OverwriteFile, RunOptions
from contrica.cli.pair import Pair
from contrica.cli.reading import read_pair
from contrica.cli.reporting import ReportOptions, report_of_folder
from contrica.errors import FileMissingError, unmarked
from contrica.output import output_file


def report(
    context: typer.Context,
    result: Annotated[Path, typer.Argument(help="Folder that fit wrote.")],
    options: ReportOptions,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="HTML file to write.", show_default="RESULT/report.html"),
    ] = None,
    overwrite: OverwriteFile = False,
    run: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> None:
    """Write a report of a result folder as one HTML file, which fit does too.

    It is made of what the folder holds. --stability and --compare read the data again, as run.toml says,
    in the folder that fit was started in.
    """
    if not result.is_dir():
        raise FileMissingError(
            "not-a-result",
            f"{unmarked(result)} is not a folder",
            "one that contrica fit wrote is needed",
            filename=result,
        )
    options.check()
    target = result / "report.html" if output is None else output
    with results_as_json(run.json):
        with output_file(target, overwrite=overwrite) as file, progress("reading") as warned:
            again = options.stability is not None or options.compare
            pair = _read_again(result) if again else None
            fit = context.find_root().command.get_command(context, "fit")  # type: ignore[attr-defined]
            html, notes = report_of_folder(result, result, options, pair=pair, command=fit)
            file.write_text(html, encoding="utf-8")
        for line in [*notes, f"written to {target}"]:
            print_line(line, wrap=False)
        print_json({"out": str(target), "notes": notes, "warnings": warned})


def _read_again(folder: Path) -> Pair:
    """The rows of a fit, by the options that it wrote down."""
    path = folder / "run.toml"
    if not path.is_file():
        raise FileMissingError(
            "no-run",
            f"{unmarked(folder)} has no run.toml",
            "--stability and --compare read the data again, as it says",
            "Fit again, or leave both out.",
            filename=path,
        )
    facts = load_config(path)
    known: dict[str, Any] = {
        field.name: facts[key]
        for field in fields(DataOptions)
        if (key := field.name.replace("_", "-")) in facts
    }
    return read_pair(DataOptions(**known), gaps=facts.get("missing", "error") != "error")
