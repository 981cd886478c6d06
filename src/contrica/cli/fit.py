"""``contrica fit``: find the patterns of a foreground that its backgrounds do not have."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from contrica.cli.checking import warn_of_columns
from contrica.cli.cluster import connected
from contrica.cli.config import write_config
from contrica.cli.console import print_json, print_line, progress, results_as_json
from contrica.cli.options import (
    DataOptions,
    Estimate,
    Folder,
    MemoryLimit,
    Missing,
    Overwrite,
    Pcs,
    RunOptions,
    Scale,
    Scheduler,
    Seed,
    n_components_of,
    n_pcs_of,
)
from contrica.cli.pair import Pair, called_by_file, counts, several
from contrica.cli.printing import fit_lines, fit_summary, print_fit
from contrica.cli.reading import read_pair
from contrica.cli.reporting import ReportOptions, report_of_folder
from contrica.cli.writing import FILES, write_fit
from contrica.errors import ParameterError
from contrica.estimators import ContrastiveICA, ProportionalContrastiveICA
from contrica.output import output_folder
from contrica.rows.memory import memory_budget
from contrica.solvers.deflation import DEFLATIONS
from contrica.validation import check_choice

logger = logging.getLogger("contrica")


def fit(
    context: typer.Context,
    data: DataOptions,
    output: Folder,
    components: Annotated[
        str,
        typer.Option(
            help="Patterns to keep: a number, 'auto' (those that stand out) or 'none' (all)."
        ),
    ] = "auto",
    n_background: Annotated[int | None, typer.Option(help="r; chosen if left out.")] = None,
    n_foreground: Annotated[int | None, typer.Option(help="l; chosen if left out.")] = None,
    n_pcs: Pcs = "auto",
    proportional: Annotated[
        bool, typer.Option("--proportional", help="One common background scale (Algorithm 3).")
    ] = False,
    background_scale: Annotated[
        float | None, typer.Option(help="With --proportional: the scale; estimated if left out.")
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            help="'joint' (all patterns fitted together), 'subspace' (ICA where the contrast is "
            "largest), 'paper' (Algorithm 2) or 'auto' (joint where its patterns are significant, "
            "subspace where not)."
        ),
    ] = "auto",
    deflation: Annotated[
        str,
        typer.Option(
            help="With --solver paper or --proportional, how the background's share is estimated: "
            f"{', '.join(DEFLATIONS)}."
        ),
    ] = "thin",
    cumulant: Estimate = "plugin",
    scale: Scale = "none",
    projection: Annotated[
        str | None,
        typer.Option(
            help="Scores by 'filter' (the sources) or by 'pattern'.",
            show_default="filter; pattern with --solver paper and --proportional",
        ),
    ] = None,
    missing: Missing = "error",
    seed: Seed = 0,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where sums over rows are computed: 'cpu' or 'cuda'.", show_default="cpu"
        ),
    ] = None,
    overwrite: Overwrite = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html, one file to read.")
    ] = True,
    reported: ReportOptions = ReportOptions(),  # noqa: B008 - frozen
    run: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> None:
    """Find the patterns of a foreground that its background does not have.

    Writes report.html, which says all of it in one file, and patterns.csv, scores.csv,
    background_scores.csv, metadata.csv, model.npz, summary.txt, scree.png and scatter.png. run.toml
    repeats the run.

    Several backgrounds share their patterns, each with weights of its own; the scree pools them, and the
    scatter draws them together, at most 20 000 rows of each. Files other than csv, tsv and npz are read
    block by block and may be larger than the memory.
    """
    _check_together(proportional, background_scale, solver)
    reported.check()
    memory_budget(memory_limit)  # files may take long to read
    check_choice("missing", missing, ("error", "impute", "pairwise"))
    options: dict[str, Any] = {
        "n_background": n_background,
        "n_foreground": n_foreground,
        "n_pcs": n_pcs_of(n_pcs),
        "deflation": deflation,
        "cumulant": cumulant,
        "projection": projection,
        "scale": scale,
        "random_state": seed,
        "memory_limit": memory_limit,
        "device": device,
        "missing": missing,
    }
    model: Any
    kept = n_components_of(components)
    if proportional:
        model = ProportionalContrastiveICA(kept, background_scale=background_scale, **options)
    else:
        model = ContrastiveICA(kept, solver=solver, **options)
    with results_as_json(run.json):
        with (
            output_folder(output, overwrite=overwrite, ours=FILES) as folder,
            progress("reading") as warned,
            connected(scheduler) as shared,
        ):
            pair = read_pair(data, shared=shared, gaps=missing != "error")
            reported.check(pair.fore.n_features)
            warn_of_columns(pair, images=reported.shape is not None)
            with called_by_file(pair):
                model.fit(pair.fore.named, background=several(pair.backs), **pair.groups)
            logger.info("writing")
            notes = write_fit(folder, model, pair.fore, pair.backs)
            write_config(folder / "run.toml", context)
            read = [counts(pair), *pair.notes]
            (folder / "summary.txt").write_text(_summary(model, read), encoding="utf-8")
            if report:
                logger.info("report")
                notes += _write_report(folder, output, reported, pair, context)
        for line in read:
            print_line(line)
        print_fit(model, pair.fore.names, *notes)
        print_line(f"written to {output}", wrap=False)
        found = {"out": str(output), "rows": _counted(pair), **fit_summary(model, pair.fore.names)}
        print_json({**found, "files": _files(output), "warnings": warned})


def _write_report(
    folder: Path, output: Path, options: ReportOptions, pair: Pair, context: typer.Context
) -> list[str]:
    """Write report.html; what it could not say, in words."""
    html, notes = report_of_folder(folder, output, options, pair=pair, command=context.command)
    (folder / "report.html").write_text(html, encoding="utf-8")
    return notes


def _summary(model: Any, read: list[str]) -> str:
    """What summary.txt says."""
    told = fit_lines(model) if isinstance(model, ProportionalContrastiveICA) else [model.summary()]
    return "\n".join([*read, *told]) + "\n"


def _counted(pair: Pair) -> dict[str, Any]:
    return {
        "foreground": len(pair.fore.values),
        "background": [len(back.values) for back in pair.backs],
        "variables": pair.fore.n_features,
    }


def _files(folder: Path) -> dict[str, str]:
    """Paths of what was written, by name."""
    return {name: str(folder / name) for name in FILES if (folder / name).is_file()}


def _check_together(proportional: bool, background_scale: float | None, solver: str) -> None:
    """Refuse options of one of the two models where the other is fitted."""
    if background_scale is not None and not proportional:
        raise ParameterError(
            "not-together",
            "--background-scale needs --proportional",
            remedy="Add that, or drop the scale.",
            parameter="background_scale",
        )
    if proportional and solver != "auto":
        raise ParameterError(
            "not-together",
            "--solver is of cICA and not of --proportional",
            remedy="Drop one of the two.",
            parameter="solver",
        )
