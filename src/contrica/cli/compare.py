"""``contrica compare``: all contrastive methods, and plain ICA and PCA, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from contrica import plots
from contrica.cli.checking import warn_of_columns
from contrica.cli.config import write_config
from contrica.cli.console import (
    WARNING,
    print_json,
    print_line,
    print_table,
    progress,
    results_as_json,
    say,
    told,
)
from contrica.cli.options import DataOptions, Overwrite, Pcs, RunOptions, Scale, n_pcs_of
from contrica.cli.pair import Data, Pair, counts
from contrica.cli.reading import read_pair
from contrica.cli.scoring import pattern_names
from contrica.cli.writing import FILES, write_figure, write_metadata, write_patterns, write_table
from contrica.compare import METHODS, Comparison, compare_methods
from contrica.datasets import load_digits_on_photos
from contrica.errors import ParameterError
from contrica.output import output_folder


def compare(
    context: typer.Context,
    data: DataOptions,
    demo: Annotated[
        bool, typer.Option("--demo", help="Use the embedded digits on photographs, with labels.")
    ] = False,
    components: Annotated[int, typer.Option(help="Patterns of each method to keep.")] = 2,
    n_pcs: Pcs = "auto",
    scale: Scale = "none",
    missing: Annotated[
        str, typer.Option(help="Missing values: 'error' refuses them, 'impute' fills them.")
    ] = "error",
    methods: Annotated[
        str | None,
        typer.Option(
            help=f"Some of {', '.join(METHODS)}, with commas between.", show_default="all"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random method.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write; without it, none.")
    ] = None,
    overwrite: Overwrite = False,
    run: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> None:
    """Fit all contrastive methods, and plain ICA and PCA, and print one table of what they found.

    Every method runs at its defaults and without labels. With --out, writes comparison.csv,
    comparison.png (scores by method) and, of each method, patterns_METHOD.csv and scores_METHOD.csv.
    """
    if demo and data != DataOptions():
        raise ParameterError(
            "not-together",
            "--demo brings its own data and labels",
            remedy="Drop it, or the files and their options.",
            parameter="demo",
        )
    chosen = None if methods is None else methods.lower().replace(",", " ").split()
    folder_or_none = (
        nullcontext() if output is None else output_folder(output, overwrite=overwrite, ours=FILES)
    )
    with results_as_json(run.json):
        with folder_or_none as folder, progress("reading") as warned:
            pair = _demo_data() if demo else _read(data, gaps=missing != "error")
            comparison = compare_methods(
                pair.fore.named,
                pair.backs[0].named,
                labels=pair.fore.labels,
                n_components=components,
                methods=chosen,
                n_pcs=n_pcs_of(n_pcs),
                scale=scale,
                missing=missing,
                random_state=seed,
                **pair.groups,
            )
            if folder is not None:
                _write_comparison(folder, comparison, pair)
                write_config(folder / "run.toml", context)
        for line in [counts(pair), *pair.notes]:
            print_line(line)
        _print_comparison(comparison)
        if output is not None:
            print_line(f"written to {output}", wrap=False)
        columns, rows = comparison.table()
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"out": output, "methods": found, "warnings": warned})


def _read(data: DataOptions, *, gaps: bool) -> Pair:
    """Foreground and background, of which there is one."""
    backgrounds = data.background or []
    if len(backgrounds) > 1:
        raise ParameterError(
            "several-backgrounds",
            f"--background was given {len(backgrounds)} times",
            "only some of the methods compared take several backgrounds",
            "Give one, or put their rows into one file.",
            "background",
        )
    if data.data is None or not backgrounds:
        raise ParameterError(
            "no-data",
            "a comparison needs data",
            remedy="Give DATA and --background, or --demo for the embedded digits on photographs.",
        )
    pair = read_pair(data, gaps=gaps)
    warn_of_columns(pair)
    return pair


def _demo_data() -> Pair:
    data = load_digits_on_photos()
    fore = Data(data.foreground, None, None, labels=np.array(data.label_names)[data.labels])
    return Pair(fore, [Data(data.background, None, None)], ["the demo"] * 2, [])


def _write_comparison(folder: Path, comparison: Comparison, pair: Pair) -> None:
    columns, rows = comparison.table()
    cells = np.empty((len(rows), len(columns) - 1), dtype=object)
    cells[:] = [row[1:] for row in rows]
    write_table(folder / "comparison.csv", cells, columns[1:], [r[0] for r in rows], columns[0])
    for result in comparison:
        if result.scores is not None and result.background_scores is not None:
            names = pattern_names(result.model)
            write_patterns(folder / f"patterns_{result.key}.csv", result.model, pair.fore.names)
            write_table(folder / f"scores_{result.key}.csv", result.scores, names, *pair.fore.index)
            write_table(
                folder / f"background_scores_{result.key}.csv",
                *(result.background_scores, names, *pair.backs[0].index),
            )
    write_metadata(folder / "metadata.csv", pair.fore, pair.backs)
    with plots.without_pyplot():
        axes = plots.comparison(comparison)
    write_figure(axes[0].figure, folder / "comparison.png")


def _print_comparison(comparison: Comparison) -> None:
    methods: dict[str, list[str]] = {}
    for result in comparison:
        for message in dict.fromkeys(told(warning) for warning in result.warnings):
            methods.setdefault(message, []).append(result.name)
    for message, names in methods.items():
        say(WARNING, f"{', '.join(names)}: {message}")
    if any("--" in message for message in methods):
        say("note:", "options that compare does not have are those of contrica fit: try them.")
    print_table(_table(comparison))
    for note in _column_notes(comparison):
        print_line(note)


def _table(comparison: Comparison) -> Table:
    with_labels, with_filters = comparison.groups is not None, _has_filters(comparison)
    table = Table(title="Methods side by side")
    table.add_column("method", no_wrap=True)
    table.add_column("contrast ratio k(b),\nalong patterns", justify="right")
    if with_filters:
        table.add_column("source ratio k(f),\nalong filters", justify="right")
    if with_labels:
        table.add_column("silhouette (uses labels)", justify="right", max_width=10)
    table.add_column("seconds", justify="right")
    table.add_column("chose")
    for result in comparison:
        silhouette = "–" if result.silhouette is None else f"{result.silhouette:.3f}"
        last = result.choice if result.error is None else f"failed: {told(result.error)}"
        table.add_row(
            *(result.name, _ratios(result.contrast_ratio)),
            *([_ratios(result.source_ratio)] if with_filters else []),
            *([silhouette] if with_labels else []),
            *(f"{result.seconds:.2f}", escape(last)),
        )
    return table


def _has_filters(comparison: Comparison) -> bool:
    return any(result.source_ratio is not None for result in comparison)


def _ratios(values: np.ndarray | None) -> str:
    return "–" if values is None else ", ".join(f"{ratio:.3g}" for ratio in values)


def _column_notes(comparison: Comparison) -> Iterator[str]:
    """What all methods were given, and one sentence on each column of the table."""
    width = next(each.model.n_features_in_ for each in comparison if each.model is not None)
    count = comparison.n_dimensions
    which = f"all {width} variables"
    if count < width:
        which = f"{count} principal components of both datasets together; none needs all variables"
    yield f"all methods were given the same rows, in {which}."
    yield (
        "contrast ratio k(b): variance along each pattern in the foreground over that in the background, "
        "on the rows fitted. Some methods maximise it, so a larger one is not by itself a better find."
    )
    if _has_filters(comparison):
        yield (
            "source ratio k(f): mean square of each source, as its filter recovers it, about the "
            "background's mean, over its variance in the background; only methods with filters have it, "
            "and it cannot be compared with k(b). cICA ranks its patterns by k(f) where it works in a "
            "subspace, and by k(b) elsewhere."
        )
    if comparison.groups is not None:
        count, total = comparison.silhouette_rows, comparison.n_labelled
        which = "all" if count == total else f"a random sample of {count} of"
        yield (
            "silhouette (uses labels): how far apart the labelled groups lie in the scores, from -1 "
            f"to 1, on {which} {total} labelled rows; it was computed afterwards and chose nothing."
        )
    yield (
        "scores of cICA, but for its solver 'paper', are the sources: products with the filters, which "
        "undo the mixing. Those of all other methods are projections on the patterns."
    )
    yield "seconds: wall time of the fit and its scores."
    yield (
        "chose: what was set from the data or by default, without labels; cPCA's α and PCPCA's γ by a "
        "rule of this package, since their authors choose by eye or by labels."
    )
