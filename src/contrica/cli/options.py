"""Arguments and options that several commands share, alone and in bundles."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from contrica.cli.config import read_config
from contrica.cli.console import end_with
from contrica.errors import ContricaError, ParameterError

__all__ = [
    "DataOptions",
    "Estimate",
    "Folder",
    "MemoryLimit",
    "Missing",
    "Overwrite",
    "OverwriteFile",
    "Pcs",
    "RowOptions",
    "RunOptions",
    "Scale",
    "Scheduler",
    "Seed",
    "n_components_of",
    "n_pcs_of",
    "with_bundles",
]

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
Scale = Annotated[
    str,
    typer.Option(
        help="Divide variables by standard deviations: 'none', 'pooled' (of both datasets together, for "
        "variables in different units) or 'each' (of each dataset by itself)."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random starts.")]


def _config(context: typer.Context, path: Path | None) -> Path | None:
    try:
        return read_config(context, path)
    except ContricaError as error:
        raise end_with(error) from error


@dataclass(frozen=True)
class RunOptions:
    """How a command is told what to do, and how it tells what it did."""

    panel: ClassVar[str] = "How to run"
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with options, as fit writes run.toml; the command line wins.",
            callback=_config,
            is_eager=True,
        ),
    ] = None
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object to the standard output, all else to the error."
        ),
    ] = False


@dataclass(frozen=True)
class RowOptions:
    """Which rows and variables of a file are meant."""

    panel: ClassVar[str] = "Which rows and variables"
    foreground: Annotated[
        str | None,
        typer.Option(
            help="Rows of DATA, where it holds all: column=value, several with commas between (and), "
            "values with bars between (or); with --groupby a value.",
            show_default="rows in no background",
        ),
    ] = None
    groupby: Annotated[
        str | None,
        typer.Option(help="Column whose values --foreground and --background are."),
    ] = None
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop",
            "--without",
            help="Columns that are no variables, with commas between; fit keeps them in metadata.csv.",
        ),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            help="Array of an npz, h5 or zarr with several; of AnnData files 'layers/counts', say, "
            "where X is not meant."
        ),
    ] = None
    layer: Annotated[str | None, typer.Option(help="Layer of an AnnData file.")] = None
    mask_var: Annotated[
        str | None,
        typer.Option(help="Column of var of an AnnData file that says which variables are used."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether text files name their columns.",
            show_default="inferred from the file",
        ),
    ] = None

    @property
    def dropped(self) -> list[str]:
        """Columns that --drop names."""
        parts = (self.drop or "").split(",")
        return list(dict.fromkeys(part.strip() for part in parts if part.strip()))

    @property
    def table_key(self) -> str | None:
        """The key, which a layer is a short name for."""
        if self.layer is None:
            return self.key
        if self.key is not None:
            raise ParameterError(
                "not-together",
                "--layer and --key both say which table",
                remedy="Drop one of the two.",
                parameter="layer",
            )
        return f"layers/{self.layer}"


@dataclass(frozen=True)
class DataOptions(RowOptions):
    """Foreground and background: two files, or rows of one."""

    data: Annotated[
        str | None,
        typer.Argument(
            help="The foreground's file, or one file with all rows: csv, tsv, npy, npz, h5, h5ad, zarr, "
            "parquet (also a folder, or a quoted pattern such as 'fore/*.parquet') or a 10x folder. "
            "Rows are samples; in text files a first column with text, or without a heading, names "
            "them.",
            show_default=False,
        ),
    ] = None
    background: Annotated[
        list[str] | None,
        typer.Option(
            "--background",
            "-b",
            help="Background: a file with the same columns, or rows of DATA, as for --foreground. Once "
            "for each, if there are several.",
        ),
    ] = None
    background_key: Annotated[
        list[str] | None,
        typer.Option(help="As --key, of a background. Once for all backgrounds, or once for each."),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="Which rows belong together, such as those of one animal or donor: a column, "
            "which is then no variable, COLUMN~REGEX for a part of its cells, or a text file with the "
            "group of each row of the foreground. What is said of chance then counts groups; one of "
            "both datasets is paired."
        ),
    ] = None
    background_groups: Annotated[
        list[str] | None,
        typer.Option(
            help="As --groups, of the background; by default the same column. Once for each, if there "
            "are several."
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            help="A column, or a csv, tsv or txt with a label for each foreground row, after an "
            "optional column of row names. For colours, and for the silhouettes of compare and of "
            "reports with --compare; it chooses nothing."
        ),
    ] = None


def with_bundles(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take bundles of options: the fields of a dataclass are options of its own.

    Parameters
    ----------
    command : callable
        With a parameter whose annotation is a dataclass of this module.

    Returns
    -------
    callable
        With the signature that typer reads.
    """
    given = inspect.signature(command, eval_str=True).parameters
    bundles: dict[str, Any] = {
        name: each.annotation for name, each in given.items() if is_dataclass(each.annotation)
    }
    spread: list[inspect.Parameter] = []
    for name, parameter in given.items():
        if name not in bundles:
            spread.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(bundles[name], include_extras=True)
        for field in fields(bundles[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            spread.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=_in_panel(hints[field.name], bundles[name].panel),
                )
            )

    @functools.wraps(command)
    def called(**options: Any) -> None:
        made = {
            name: bundle(**{field.name: options.pop(field.name) for field in fields(bundle)})
            for name, bundle in bundles.items()
        }
        command(**made, **options)

    called.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in spread}
    return called


def _in_panel(annotation: Any, panel: str) -> Any:
    """An option that --help lists under a heading; arguments have one of their own."""
    kind, told = get_args(annotation)
    if isinstance(told, OptionInfo):
        told = copy.copy(told)
        told.rich_help_panel = panel
    return Annotated[kind, told]


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
