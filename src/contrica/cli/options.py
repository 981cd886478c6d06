"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrica.errors import ParameterError

__all__ = [
    "BackgroundFiles",
    "BackgroundGroups",
    "BackgroundKey",
    "BackgroundKeys",
    "Estimate",
    "Folder",
    "Foreground",
    "Groups",
    "Header",
    "Key",
    "MemoryLimit",
    "Missing",
    "Overwrite",
    "OverwriteFile",
    "Pcs",
    "Scale",
    "Scheduler",
    "Seed",
    "n_components_of",
    "n_pcs_of",
]

Foreground = Annotated[
    str,
    typer.Argument(
        help="Foreground: csv, tsv, npy, npz, h5, h5ad, zarr or parquet; of parquet also a folder, or "
        "a quoted pattern such as 'fore/*.parquet'. Rows are samples; in text files a first column "
        "with text, or without a heading, names them."
    ),
]
BackgroundFiles = Annotated[
    list[str],
    typer.Option(
        "--background", "-b", help="Background, same columns. Once for each, if there are several."
    ),
]
BackgroundKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--background-key",
        help="As --key, of a background. Once for all backgrounds, or once for each.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        help="Array of a foreground npz, h5 or zarr with several; of AnnData files 'layers/counts', "
        "say, where X is not meant."
    ),
]
BackgroundKey = Annotated[str | None, typer.Option(help="As --key, of the background.")]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        help="Most memory to take, such as 2GB or 500MB.", show_default="a quarter of what is free"
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        help="Missing values, which in text files are empty cells or NA: 'error' refuses them, 'impute' "
        "fills them by what all datasets have in common, 'pairwise' takes cumulants from observed values."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a dask scheduler, such as tcp://host:8786, whose workers read the rows: "
        "parquet or zarr where all of them see it, also by URL (s3://…)."
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether text files name their columns.",
        show_default="inferred from the file",
    ),
]
Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files in an existing folder.")
]
OverwriteFile = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Pcs = Annotated[str, typer.Option(help="Principal components: a number, 'auto' or 'none'.")]
Estimate = Annotated[
    str,
    typer.Option(
        help="'plugin' (the paper's), 'unbiased' or 'robust' (outlying rows winsorized) cumulants."
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="Which rows belong together, such as those of one animal or donor: a column of the "
        "foreground (csv, tsv, parquet; of h5ad in obs), which is then no variable, or a text file "
        "with the group of each row, one a line. What is said of chance then counts groups; one of "
        "both datasets is paired."
    ),
]
BackgroundGroups = Annotated[
    list[str] | None,
    typer.Option(
        help="As --groups, of the background; by default the same column. Once for each, if there are "
        "several."
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        help="Divide variables by standard deviations: 'none', 'pooled' (of both datasets together, for "
        "variables in different units) or 'each' (of each dataset by itself)."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random starts.")]


def n_components_of(text: str) -> int | str | None:
    """What --components says, as the library's ``n_components``.

    Parameters
    ----------
    text : str

    Returns
    -------
    int, "auto" or None
    """
    return _count_or_word(text, "n_components", "'auto' (those that stand out) or 'none' (all)")


def _count_or_word(text: str, name: str, words: str) -> int | str | None:
    if text.lower() in ("auto", "none"):
        return {"auto": "auto", "none": None}[text.lower()]
    try:
        return int(text)
    except ValueError:
        raise ParameterError(
            "unknown-choice",
            f"`{name}={text}` is not known",
            remedy=f"Give a whole number, {words}.",
            parameter=name,
        ) from None


def n_pcs_of(text: str) -> int | str | None:
    """What --n-pcs says, as the library's ``n_pcs``.

    Parameters
    ----------
    text : str

    Returns
    -------
    int, "auto" or None
    """
    return _count_or_word(text, "n_pcs", "'auto' or 'none' (no PCA)")
