"""``contrica transform``: score rows with a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrica.cli.cluster import connected
from contrica.cli.console import print_line, progress
from contrica.cli.options import Header, OverwriteFile, Scheduler
from contrica.cli.reading import read
from contrica.cli.scoring import pattern_names, scores_of, takes_gaps, without_names
from contrica.cli.writing import write_blocks
from contrica.models import load
from contrica.output import output_file
from contrica.validation import check_same_features


def transform(
    model: Annotated[Path, typer.Argument(help="model.npz, as written by fit.")],
    data: Annotated[
        str, typer.Argument(help="Rows to score, same columns as the foreground; files as for fit.")
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="csv file to write.")],
    key: Annotated[
        str | None, typer.Option(help="Array of an npz, h5 or zarr with several, as for fit.")
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(
            help="Column that is no variable, such as the one that --groups of fit named."
        ),
    ] = None,
    header: Header = None,
    scheduler: Scheduler = None,
    overwrite: OverwriteFile = False,
) -> None:
    """Score new rows, or the background's, with a fitted model.

    Files other than csv, tsv and npz are read, and their scores written, block by block. Missing values
    are let pass if they were by fit (--missing); a row without any value has NaN for its scores.
    """
    with (
        output_file(output, overwrite=overwrite) as temporary,
        progress("reading"),
        connected(scheduler) as shared,
    ):
        fitted = load(model)
        gaps = takes_gaps(fitted)
        rows = read(data, key, header, shared=shared, column=without, gaps=gaps)
        names = getattr(fitted, "feature_names_in_", None)
        check_same_features(
            *(names, rows.columns, fitted.n_features_in_, rows.n_features),
            name=f"the foreground of {model}",
            other=data,
        )
        headings = pattern_names(fitted)
        write_blocks(temporary, scores_of(without_names(fitted), rows), headings, *rows.index)
    print_line(
        f"{len(rows.values)} rows scored on {len(headings)} patterns, written to {output}",
        wrap=False,
    )
