"""``contrica transform``: score rows with a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from contrica.cli.cluster import connected
from contrica.cli.console import print_json, print_line, progress, results_as_json
from contrica.cli.options import OverwriteFile, RowOptions, RunOptions, Scheduler
from contrica.cli.pair import Data
from contrica.cli.reading import read, read_one
from contrica.cli.scoring import pattern_names, scores_of, takes_gaps, without_names
from contrica.cli.selection import Selection
from contrica.cli.writing import write_blocks
from contrica.errors import ParameterError, collected, unmarked, warn
from contrica.models import load
from contrica.output import output_file
from contrica.validation import check_has_features, check_same_features

# Warnings of columns that are taken for variables, which names of a model's variables settle.
NUMBERING = ("id-column", "donor-column", "counting-column")


def transform(
    model: Annotated[Path, typer.Argument(help="model.npz, as written by fit.")],
    data: Annotated[
        str,
        typer.Argument(
            help="Rows to score, with the variables of the foreground; files as for fit."
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="csv file to write.")],
    options: RowOptions,
    scheduler: Scheduler = None,
    overwrite: OverwriteFile = False,
    run: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> None:
    """Score new rows, or the background's, with a fitted model.

    Variables of the model are found by their names, in any order, and other columns are left out. Files
    other than csv, tsv and npz are read, and their scores written, block by block. Missing values are let
    pass if they were by fit (--missing); a row without any value has NaN for its scores.
    """
    if output.suffix.lower() not in ("", ".csv", ".txt"):
        raise ParameterError(
            "unknown-type",
            f"{output} is not the name of a csv file",
            remedy="Scores are written as csv: let it end in .csv.",
            parameter="output",
        )
    chosen = None
    if options.foreground is not None:
        chosen = Selection.of("foreground", options.foreground, options.groupby)
    elif options.groupby is not None:
        raise ParameterError(
            "not-together",
            "--groupby needs --foreground",
            remedy="Say which of its values.",
            parameter="groupby",
        )
    with results_as_json(run.json):
        with (
            output_file(output, overwrite=overwrite) as temporary,
            progress("reading") as warned,
            connected(scheduler) as shared,
        ):
            fitted = load(model)
            with collected() as said:
                rows, notes = _read(data, options, chosen, takes_gaps(fitted), shared)
                rows, more = _variables_of(fitted, rows, data, model)
            by_name = rows.columns is not None and hasattr(fitted, "feature_names_in_")
            for each in said:
                if not (by_name and each.code in NUMBERING):
                    warn(each)
            headings = pattern_names(fitted)
            write_blocks(temporary, scores_of(without_names(fitted), rows), headings, *rows.index)
        patterns = "1 pattern" if len(headings) == 1 else f"{len(headings)} patterns"
        told = f"{len(rows.values)} rows scored on {patterns}, written to {output}"
        for line in [*notes, *more, told]:
            print_line(line, wrap=False)
        found = {"out": str(output), "rows": len(rows.values), "patterns": headings}
        print_json({**found, "warnings": warned})


def _read(
    path: str, options: RowOptions, chosen: Selection | None, gaps: bool, shared: bool
) -> tuple[Data, list[str]]:
    """The rows to score: all of a file, or some."""
    if shared:
        named = [*options.dropped, *([] if chosen is None else chosen.columns)]
        more = {"metadata": named, "mask_var": options.mask_var}
        return read(path, options.table_key, options.header, shared=True, **more), []
    rows, notes = read_one(path, options, [] if chosen is None else chosen.columns, gaps=gaps)
    return (rows if chosen is None else rows.at(chosen.rows(rows.metadata))), notes


def _variables_of(fitted: Any, rows: Data, data: str, model: Path) -> tuple[Data, list[str]]:
    """The rows over the variables of a model, in its order; by name where both have names."""
    names = getattr(fitted, "feature_names_in_", None)
    foreground = f"the foreground of {unmarked(model)}"
    if names is None or rows.columns is None:
        check_same_features(
            *(names, rows.columns, fitted.n_features_in_, rows.n_features),
            name=foreground,
            other=unmarked(data),
        )
        return rows, []
    known = list(map(str, names))
    check_has_features(known, rows.names, name=foreground, other=unmarked(data))
    n_others = rows.n_features - len(known)
    if known == rows.names:
        return rows, []
    what = "1 column" if n_others == 1 else f"{n_others} columns"
    note = f"{what} of {data} left out: not among the {len(known)} variables of the model"
    return rows.over(known), [note] if n_others else []
