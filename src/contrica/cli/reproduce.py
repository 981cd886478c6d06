"""``contrica reproduce``: the paper's experiments, with our values beside the paper's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from contrica.cli.console import err, out, print_line, say, told
from contrica.cli.options import Folder
from contrica.experiments import EXPERIMENTS
from contrica.experiments import reproduce as run_experiments

_AGREE, _DIFFER = ("reproduced", "within ours", "holds"), ("higher", "lower", "does not hold")


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help=f"'all', or one or more of: {', '.join(EXPERIMENTS)}.", metavar="NAME…"
        ),
    ],
    output: Folder,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws, for a first look.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of real datasets.", show_default="what CONTRICA_DATA names"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that share the draws.", show_default="all cores", min=1),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Run finished experiments again.")
    ] = False,
) -> None:
    """Run the paper's experiments and put our values beside the paper's.

    Each writes a folder with figures and csv files, and its rows in reproduction.md. A run that was
    stopped goes on with the experiment it was at: finished ones are skipped. Among all, those that
    lack data are listed as not run.
    """
    try:
        with _bars() as show:
            results = run_experiments(
                names,
                output,
                quick=quick,
                data=data,
                n_jobs=jobs or os.cpu_count() or 1,
                overwrite=overwrite,
                progress=show,
            )
    except KeyboardInterrupt:
        say("[bold yellow]stopped:[/]", "finished experiments are kept; the same command goes on.")
        raise typer.Exit(130) from None
    out.print(_table(results))
    for result in results:
        if result.missing:
            say(
                "[bold yellow]not run:[/]", f"{result.name}: {told(result.error or result.missing)}"
            )
    print_line(f"written to {output / 'reproduction.md'}", wrap=False)
    if any(result.broken for result in results):
        raise typer.Exit(2)


def _table(results: Sequence[Any]) -> Table:
    table = Table(title="Experiments")
    table.add_column("experiment")
    for heading in ("rows", "as in the paper", "otherwise", "seconds"):
        table.add_column(heading, justify="right")
    for result in results:
        if result.missing:
            table.add_row(result.name, "not run", "", "", "")
            continue
        verdicts = [row.verdict for row in result.rows]
        agree, differ = (sum(each in words for each in verdicts) for words in (_AGREE, _DIFFER))
        counts = (len(verdicts), agree, differ, round(result.seconds))
        table.add_row(result.name, *map(str, counts))
    return table


@contextmanager
def _bars() -> Iterator[Callable[[str, str, int, int], None]]:
    """A progress bar for each experiment; without a terminal, a line when one begins."""
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[label]}"),
    )
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=err, disable=not err.is_terminal) as bars:

        def show(name: str, label: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total, label=label)
                if not err.is_terminal:
                    err.print(f"{name} …" if done < total else f"{name}: {label}", highlight=False)
            bars.update(tasks[name], completed=done, total=total, label=label)

        yield show
