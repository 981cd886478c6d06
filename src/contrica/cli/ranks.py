"""``contrica ranks``: how many patterns there are, by three rules, and which of them fit uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice, zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from contrica import plots
from contrica.cli.checking import warn_of_columns
from contrica.cli.cluster import connected
from contrica.cli.console import (
    print_json,
    print_line,
    print_table,
    progress,
    results_as_json,
)
from contrica.cli.options import (
    DataOptions,
    Estimate,
    MemoryLimit,
    Missing,
    OverwriteFile,
    Pcs,
    RunOptions,
    Scale,
    Scheduler,
    Seed,
    n_pcs_of,
)
from contrica.cli.pair import called_by_file, counts, several
from contrica.cli.printing import rank_selection
from contrica.cli.reading import read_pair
from contrica.cli.writing import write_figure
from contrica.errors import ParameterError
from contrica.estimators import report_ranks
from contrica.output import output_file
from contrica.rows.memory import memory_budget
from contrica.solvers import ContrastScree, RankReport
from contrica.solvers.permutation_null import LEVEL
from contrica.validation import check_choice, generator

_FIGURES = (".png", ".pdf", ".svg")


def ranks(
    data: DataOptions,
    n_pcs: Pcs = "auto",
    cumulant: Estimate = "plugin",
    scale: Scale = "none",
    missing: Missing = "error",
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also draw eigenvalues and contrast ratios here."),
    ] = None,
    n_printed: Annotated[
        int, typer.Option("--eigenvalues", help="Eigenvalues and contrast ratios to print.", min=1)
    ] = 20,
    seed: Seed = 0,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    overwrite: OverwriteFile = False,
    run: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> None:
    """Count patterns by three rules, and say which of them fit uses, and why.

    The rules are those of the three solvers: paper reads r and l from the eigenvalues of both
    flattened cumulants; joint counts the significant patterns of a joint fit, which can be searched
    for in up to 18 dimensions; subspace counts the directions whose contrast ratio stands out from a
    permutation null. By default fit takes joint or subspace, and so that fit is run here as well.
    Several backgrounds are pooled for eigenvalues and contrast ratios. With --groups whole groups are
    permuted, and fit takes subspace.
    """
    if output is not None and output.suffix.lower() not in _FIGURES:
        raise ParameterError(
            "unknown-type",
            f"{output} is not a figure file",
            remedy="Let its name end in .png, .pdf or .svg.",
            parameter="output",
        )
    check_choice("missing", missing, ("error", "impute", "pairwise"))
    memory_budget(memory_limit)  # files may take long to read
    figure_or_none = nullcontext() if output is None else output_file(output, overwrite=overwrite)
    with results_as_json(run.json):
        with (
            figure_or_none as figure,
            progress("reading") as warned,
            connected(scheduler) as shared,
        ):
            pair = read_pair(data, shared=shared, gaps=missing != "error")
            warn_of_columns(pair)
            with called_by_file(pair):
                report = report_ranks(
                    pair.fore.named,
                    several(pair.backs),
                    rng=generator(seed),
                    n_pcs=n_pcs_of(n_pcs),
                    cumulant=cumulant,
                    scale=scale,
                    memory_limit=memory_limit,
                    missing=missing,
                    **pair.groups,
                )
            if figure is not None:
                with plots.without_pyplot():
                    write_figure(plots.rank_report(report)[0].figure, figure)
        for line in [counts(pair), *pair.notes]:
            print_line(line)
        _print_report(report, n_printed)
        if output is not None:
            print_line(f"written to {output}", wrap=False)
        print_json({**_found(report), "warnings": warned})


def _found(report: RankReport) -> dict[str, Any]:
    """The report for programs."""
    significant = report.significant
    return {
        "eigenvalues": report.chosen._asdict(),
        "significant": None
        if significant is None
        else {"n_background": significant.n_background, "n_foreground": significant.n_foreground},
        "contrast_ratio": {
            "n_foreground": report.contrast.chosen,
            "ratios": report.contrast.ratios,
            "p_values": report.contrast.p_values,
        },
        "fit": {**report.ranks._asdict(), "solver": report.solver, "rule": report.rule},
    }


def _print_report(report: RankReport, n_printed: int) -> None:
    print_table(_table(report, n_printed))
    for line in (*_eigenvalues(report), *_significant(report), _contrast(report.contrast)):
        print_line(line)
    print_line(_default(report))


def _table(report: RankReport, n_printed: int) -> Table:
    table = Table(title="Eigenvalues by magnitude, and contrast ratios")
    for heading in ("", "foreground\neigenvalue", "background\neigenvalue", "contrast\nratio"):
        table.add_column(heading, justify="right")
    table.add_column("p", justify="right")
    columns = (report.scree.foreground, report.scree.background, report.contrast.ratios)
    shown = [[] if values is None else [f"{value:.4g}" for value in values] for values in columns]
    rows = zip_longest(*shown, [f"{p:.2g}" for p in report.contrast.p_values], fillvalue="")
    for i, row in enumerate(islice(rows, n_printed), start=1):
        table.add_row(str(i), *row)
    table.caption = (
        "These ratios are of the directions in which they are largest, with ρ added to the background's "
        "variance. k(b) and k(f), which fit and compare tell, are of patterns, and without ρ."
    )
    return table


def _eigenvalues(report: RankReport) -> Iterator[str]:
    """Ranks that eigenvalues suggest, and whether they are unique."""
    yield (
        f"eigenvalues suggest: r = {report.chosen.n_background} background and "
        f"l = {report.chosen.n_foreground} foreground patterns in {report.n_features} dimensions"
    )
    for verdict in report.verdicts:
        mark = "unique" if verdict else "not guaranteed to be unique"
        yield f"  {mark}: {verdict.value}, needs {verdict.bound}  [{verdict.statement}]"


def _significant(report: RankReport) -> Iterator[str]:
    """Ranks by significance, what they leave, and how far they are from being others."""
    choice = report.significant
    if choice is None:
        yield f"significant: not tested, {report.reason}"
        return
    left = ", ".join(f"{share:.2g}" for share in choice.left)
    yield (
        f"significant: r = {choice.n_background} background and l = {choice.n_foreground} foreground "
        f"patterns of a joint fit, which leaves {left} of the fourth cumulants (squared norms, "
        "foreground first)"
    )
    yield from rank_selection(choice, choice.near_ties)


def _contrast(contrast: ContrastScree) -> str:
    """How many directions stand out, and from what."""
    found = f"contrast ratio: l = {contrast.chosen} of {contrast.ratios.size} directions stand out"
    if contrast.n_assignments == 0:
        return f"{found}; the background does not vary, so that there is no permutation null"
    near = (
        ""
        if contrast.n_clear == contrast.n_possible
        else (f"; near a tie, {contrast.n_clear} to {contrast.n_possible}")
    )
    return (
        f"{found} from the permutation null (p at most {LEVEL}, if both datasets had one distribution; "
        f"95 % of {contrast.n_assignments - 1} permutations of {contrast.unit} have no ratio above "
        f"{contrast.null_quantile:.4g}){near}"
    )


def _default(report: RankReport) -> str:
    """Which of the answers a fit uses, and why."""
    ranks = f"l = {report.ranks.n_foreground}"
    if report.solver == "joint":
        ranks = f"r = {report.ranks.n_background} and {ranks}"
    return (
        f"fit uses by default: {ranks} by {report.rule} (solver {report.solver}: {report.reason})"
    )
