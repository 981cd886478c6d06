"""``contrica ranks``: how many patterns there are, in two ways, and whether they are unique."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from contrica import plots
from contrica.cli.cluster import connected
from contrica.cli.console import out, print_line, progress
from contrica.cli.options import (
    BackgroundFiles,
    BackgroundKeys,
    Estimate,
    Foreground,
    Header,
    Key,
    MemoryLimit,
    OverwriteFile,
    Pcs,
    Scheduler,
    Seed,
    n_pcs_of,
)
from contrica.cli.printing import rank_selection
from contrica.cli.reading import read_all
from contrica.cli.writing import write_figure
from contrica.errors import ParameterError
from contrica.output import output_file
from contrica.solvers import RankChoice, RankReport, Scree, report_ranks
from contrica.validation import generator

_FIGURES = (".png", ".pdf", ".svg")


def ranks(
    foreground: Foreground,
    background: BackgroundFiles,
    n_pcs: Pcs = "auto",
    cumulant: Estimate = "plugin",
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also draw the scree here.")
    ] = None,
    n_printed: Annotated[
        int, typer.Option("--eigenvalues", help="Eigenvalues to print.", min=1)
    ] = 20,
    seed: Seed = 0,
    key: Key = None,
    background_key: BackgroundKeys = None,
    header: Header = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    overwrite: OverwriteFile = False,
) -> None:
    """Show the eigenvalues of both flattened cumulants, two choices of r and l, and what is unique.

    One choice reads the eigenvalues, as --solver paper does; the other counts the significant patterns
    of a joint fit, as --solver joint and auto do, in no more dimensions than auto tries. Several
    backgrounds are pooled for the eigenvalues.
    """
    if output is not None and output.suffix.lower() not in _FIGURES:
        raise ParameterError(
            "unknown-type",
            f"{output} is not a figure file",
            remedy="Let its name end in .png, .pdf or .svg.",
            parameter="output",
        )
    figure_or_none = nullcontext() if output is None else output_file(output, overwrite=overwrite)
    with figure_or_none as figure, progress("reading"), connected(scheduler) as shared:
        fore, backs = read_all(foreground, background, key, background_key, header, shared=shared)
        report = report_ranks(
            fore.values,
            [data.values for data in backs],
            rng=generator(seed),
            n_pcs=n_pcs_of(n_pcs),
            cumulant=cumulant,
            memory_limit=memory_limit,
        )
        if figure is not None:
            write_figure(plots.scree(report.scree, report.chosen).figure, figure)
    _print_report(report, n_printed)
    if output is not None:
        print_line(f"written to {output}", wrap=False)


def _print_report(report: RankReport, n_printed: int) -> None:
    out.print(_eigenvalues(report.scree, n_printed))
    chosen = report.chosen
    print_line(
        f"eigenvalues suggest: r = {chosen.n_background} background and l = {chosen.n_foreground} "
        f"foreground patterns in {report.n_features} dimensions"
    )
    for verdict in report.verdicts:
        mark = "unique" if verdict else "not guaranteed to be unique"
        print_line(f"  {mark}: {verdict.value}, needs {verdict.bound}  [{verdict.statement}]")
    for line in _significant(report.significant, report.n_features):
        print_line(line)


def _eigenvalues(values: Scree, n_printed: int) -> Table:
    table = Table(title="Eigenvalues by magnitude")
    for heading in ("", "foreground", "background"):
        table.add_column(heading, justify="right")
    behind = np.empty(0) if values.background is None else values.background
    for i, (one, other) in enumerate(
        zip(values.foreground[:n_printed], behind, strict=False), start=1
    ):
        table.add_row(str(i), f"{one:.4g}", f"{other:.4g}")
    return table


def _significant(choice: RankChoice | None, n_features: int) -> Iterator[str]:
    """Ranks by significance, what they leave, and how far they are from being others."""
    if choice is None:
        yield (
            f"significant: not tested, {n_features} dimensions are too many to search for a joint "
            "fit. Lower --n-pcs."
        )
        return
    left = ", ".join(f"{share:.2g}" for share in choice.left)
    yield (
        f"significant: r = {choice.n_background} background and l = {choice.n_foreground} foreground "
        f"patterns of a joint fit, which leaves {left} of the fourth cumulants (squared norms, "
        "foreground first)"
    )
    yield from rank_selection(choice, choice.near_ties)
