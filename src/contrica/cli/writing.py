"""Results out: tables as csv, figures, and the files of a fit."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from contrica import plots
from contrica.cli.pair import Data
from contrica.cli.scoring import Sample, pattern_names, scores_of, without_names
from contrica.estimators import ContrastiveICA, ProportionalContrastiveICA
from contrica.inference._data import source_scores
from contrica.labels import numbered_groups
from contrica.models import save
from contrica.solvers.ranks import Ranks

__all__ = [
    "FILES",
    "write_blocks",
    "write_figure",
    "write_fit",
    "write_metadata",
    "write_patterns",
    "write_table",
]

# Whatever fit, demo and compare may write to their folder.
FILES = (
    *("model.npz", "patterns.csv", "scores.csv", "scree.png", "scatter.png", "patterns.png"),
    *("background_scores.csv", "metadata.csv", "summary.txt", "run.toml", "report.html"),
    "check.json",
    *("comparison.csv", "comparison.png", "patterns_*.csv", "scores_*.csv"),
    "background_scores_*.csv",
)


def write_table(
    path: str | Path,
    values: np.ndarray,
    columns: Sequence[str],
    index: Iterable[Any],
    index_name: str = "",
) -> None:
    """Write a csv file with a header and a row index; floats as short as they read back.

    Parameters
    ----------
    path : path
    values : ndarray of shape (n_rows, n_columns)
    columns : sequence of str
    index : iterable
        Names of the rows.
    index_name : str
        Heading of the index.
    """
    write_blocks(path, [values], columns, index, index_name)


def write_blocks(
    path: str | Path,
    blocks: Iterable[np.ndarray],
    columns: Sequence[str],
    index: Iterable[Any],
    index_name: str = "",
) -> None:
    """Write what `write_table` would of the blocks one below the other, with one in memory at a time.

    Parameters
    ----------
    path : path
    blocks : iterable of ndarray of shape (n_rows, n_columns)
    columns : sequence of str
    index : iterable
        Names of the rows of all blocks.
    index_name : str
        Heading of the index.
    """
    rows = (row for block in blocks for row in block.tolist())
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([index_name, *columns])
        for name, row in zip(index, rows, strict=True):
            writer.writerow([name, *row])


def write_patterns(path: Path, model: Any, names: Sequence[str]) -> None:
    """Write the patterns of a fitted model, one in each column; of divided variables in two units.

    Parameters
    ----------
    path : Path
    model : estimator
        Fitted.
    names : sequence of str
        Of the variables.
    """
    write_table(path, model.components_.T, pattern_names(model), names, "variable")
    if getattr(model, "scale_", None) is not None:
        original = path.with_name(f"{path.stem}_in_original_units{path.suffix}")
        columns = model.original_components_.T
        write_table(original, columns, pattern_names(model), names, "variable")


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : Path
    """
    figure.savefig(path, dpi=150)


def write_fit(
    folder: Path,
    model: ContrastiveICA | ProportionalContrastiveICA,
    fore: Data,
    backs: Sequence[Data],
) -> list[str]:
    """Write the files of one fit: patterns, scores of both datasets, metadata, model and figures.

    Several backgrounds are one below the other, and are drawn together in the scatter. Labels of the
    foreground are the colours of the scatter.

    Parameters
    ----------
    folder : Path
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted; it gets the names of the variables.
    fore : Data
    backs : sequence of Data

    Returns
    -------
    list of str
        What the user should know of the files.
    """
    write_patterns(folder / "patterns.csv", model, fore.names)
    bare, names = without_names(model), pattern_names(model)
    shown, *behind = (Sample(len(data.values)) for data in (fore, *backs))
    write_blocks(folder / "scores.csv", shown.of(scores_of(bare, fore)), names, *fore.index)
    blocks = (
        block
        for i, (sample, back) in enumerate(zip(behind, backs, strict=True))
        for block in sample.of(_background_scores(bare, fore, backs, i))
    )
    indices, headings = zip(*(back.index for back in backs), strict=True)
    write_blocks(
        folder / "background_scores.csv", blocks, names, chain(*indices), min(headings, default="")
    )
    write_metadata(folder / "metadata.csv", fore, backs)
    notes = _write_scree(folder / "scree.png", model)
    labels, label_names = (None, None) if fore.labels is None else _coloured(fore)
    notes += _write_scatter(folder / "scatter.png", shown, behind, labels, label_names)
    if fore.columns is not None:
        model.feature_names_in_ = fore.columns.astype(object)
    save(model, folder / "model.npz")
    return notes


def _background_scores(
    model: Any, fore: Data, backs: Sequence[Data], number: int
) -> Iterable[np.ndarray]:
    """Scores of a background; with --scale each on the scale on which it was fitted."""
    back = backs[number]
    if model.background_spreads_ is None or model.projection_ != "filter":
        return scores_of(model, back)
    sizes = [len(data.values) for data in backs]
    found = source_scores(model, fore.values, [data.values for data in backs]).back
    if len(found) != sum(sizes):  # rows without any value have no scores
        return scores_of(model, back)
    start = sum(sizes[:number])
    return [found[start : start + sizes[number]]]


def _coloured(data: Data) -> tuple[np.ndarray | None, Sequence[str] | None]:
    """Numbers of the labels, and their names."""
    return numbered_groups(data.labels, len(data.values), colours=True)


def write_metadata(path: Path, fore: Data, backs: Sequence[Data]) -> None:
    """Write what is known of every row that was used: dataset, sample, group, label and the rest.

    Parameters
    ----------
    path : Path
    fore : Data
    backs : sequence of Data
    """
    datasets = {"foreground": fore} | {
        "background" if len(backs) == 1 else f"background_{i}": back
        for i, back in enumerate(backs, start=1)
    }
    own = ["dataset", "sample"]
    own += [
        name
        for name in ("groups", "labels")
        if any(getattr(data, name) is not None for data in datasets.values())
    ]
    others = dict.fromkeys(name for data in datasets.values() for name in data.metadata)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*own, *(f"{name}_column" if name in own else name for name in others)])
        for name, data in datasets.items():
            cells: list[Iterable[Any]] = [repeat(name), data.index[0]]
            cells += [_cells(getattr(data, kind)) for kind in own[2:]]
            cells += [_cells(data.metadata.get(other)) for other in others]
            writer.writerows(islice(zip(*cells, strict=False), len(data.values)))


def _cells(values: np.ndarray | None) -> Iterable[Any]:
    return repeat("") if values is None else values


def _write_scree(path: Path, model: ContrastiveICA | ProportionalContrastiveICA) -> list[str]:
    if model.scree_ is None:
        return [f"{path.name} is left out: {model.n_pcs_} dimensions are too many for it"]
    ranks = Ranks(model.n_background_, model.n_foreground_)
    with plots.without_pyplot():
        write_figure(plots.scree(model.scree_, ranks).figure, path)
    return []


def _write_scatter(
    path: Path,
    shown: Sample,
    behind: Sequence[Sample],
    labels: np.ndarray | None,
    label_names: Sequence[str] | None,
) -> list[str]:
    notes = []
    fore, back = shown.scores(), np.vstack([sample.scores() for sample in behind])
    known = ~np.isnan(fore).any(axis=1)  # a row without any value has no scores
    with plots.without_pyplot():
        axes = plots.scores(
            fore[known],
            None if labels is None else labels[shown.rows][known],
            background=back[~np.isnan(back).any(axis=1)],
            label_names=label_names,
        )
    figure = axes[0, 0].figure
    if not all(sample.is_all for sample in (shown, *behind)):
        drawn = sum(sample.rows.size for sample in behind)
        total = sum(sample.n_rows for sample in behind)
        rows = f"{shown.rows.size} of {shown.n_rows} foreground, {drawn} of {total} background rows"
        figure.suptitle(rows, fontsize=8)
        notes.append(f"{path.name} shows a random sample: {rows}")
    write_figure(figure, path)
    return notes
