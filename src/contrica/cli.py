"""The command line: ``contrica demo | fit | transform | ranks | compare | reproduce``."""

from __future__ import annotations

import functools
import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from contrica import __version__, load, plots, save
from contrica.compare import METHODS, Comparison, MethodResult, compare_methods, read_labels
from contrica.datasets import load_digits_on_photos
from contrica.estimators import ContrastiveICA, ProportionalContrastiveICA, ratio_name
from contrica.experiments import EXPERIMENTS
from contrica.experiments import reproduce as run_experiments
from contrica.files import output_file, output_folder, write_blocks, write_table
from contrica.metrics import pattern_cosines
from contrica.moments.fourth import cumulants, fits_packed, pooled
from contrica.moments.projection import common_basis, estimate_of_rows, project_cumulants, rows_in
from contrica.rows.blocks import ClusterLostError, Rows, as_rows, column_summary
from contrica.rows.memory import memory_budget
from contrica.rows.stores import computed, open_dask, open_rows
from contrica.solvers.deflation import DEFLATIONS
from contrica.solvers.joint import JointProblem
from contrica.solvers.ranks import (
    Ranks,
    algorithm_identifiable,
    choose_ranks,
    joint_identifiable,
    scree,
    spm_identifiable,
)
from contrica.solvers.selection import RankChoice, choose_by_significance, searchable
from contrica.solvers.weights import RowGroups
from contrica.validation import check_finite, check_same_features, generator

try:
    import typer
    from rich.console import Console
    from rich.table import Table as RichTable
except ImportError as error:
    raise SystemExit(f"the command line needs {error.name}: pip install 'contrica[cli]'") from error

app = typer.Typer(
    help="Contrastive ICA: the patterns of a foreground that its background does not have.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out, err = Console(), Console(stderr=True)

# Rows of each dataset that a scatter shows; more make a blot, and a large file.
MOST_DRAWN = 20_000
# Seconds that a scheduler has to answer.
PATIENCE = 10

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
        show_default="seen from the file",
    ),
]
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


def main() -> None:
    """Entry point of the shell command."""
    # A job that is cancelled cleans up like one that is interrupted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    app()


def _plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """One sentence and exit code 2 instead of a traceback, where the input is at fault."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            _say("[bold red]error:[/]", str(error))
            raise typer.Exit(2) from error

    return wrapped


# The library speaks of its parameters; the shell has options.
_OPTIONS = {
    "n_components": "--components",
    "n_background": "--n-background",
    "n_foreground": "--n-foreground",
    "n_pcs": "--n-pcs",
    "random_state": "--seed",
    "background_scale": "--background-scale",
    "deflation": "--deflation",
    "solver": "--solver",
    "cumulant": "--cumulant",
    "projection": "--projection",
    "methods": "--methods",
    "memory_limit": "--memory-limit",
    "device": "--device",
    "X": "the foreground",
}


def _in_shell_words(message: str) -> str:
    message = " ".join(message.split()).replace(
        ", e.g. background = background[X.columns] for data frames", ""
    )
    names = "|".join(_OPTIONS)
    message = re.sub(
        rf"\b({names})=(['\"]?)([\w.+-]+)\2", lambda m: f"{_OPTIONS[m[1]]} {m[3]}", message
    )
    # "cumulant" alone is a word, and X may stand in a path
    alone = "|".join(name for name in _OPTIONS if "_" in name or name == "X")
    return re.sub(
        rf"(?<![-\w'/.])({alone})(?=[\s:,;)]|\.?$|\. )", lambda m: _OPTIONS[m[1]], message
    )


def _say(label: str, message: str) -> None:
    err.print(f"{label} {_escape(_in_shell_words(message))}", soft_wrap=True, highlight=False)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


class _StatusHandler(logging.Handler):
    """Shows the library's log messages in a spinner."""

    def __init__(self, status: Any) -> None:
        super().__init__(logging.INFO)
        self.status = status

    def emit(self, record: logging.LogRecord) -> None:
        self.status.update(record.getMessage() + " …")


@contextmanager
def _progress(first: str) -> Iterator[None]:
    """A spinner that follows the library's log; warnings come out as single lines after it."""
    log = logging.getLogger("contrica")
    level = log.level
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with err.status(first + " …") as status:
            handler = _StatusHandler(status)
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            try:
                yield
            finally:
                log.removeHandler(handler)
                log.setLevel(level)
    for message in dict.fromkeys(str(w.message) for w in caught):
        _say("[bold yellow]warning:[/]", message)


def _n_pcs(text: str) -> int | str | None:
    if text.lower() == "none":
        return None
    if text.lower() == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"--n-pcs {text!r} is not known. Give a whole number, 'auto' or 'none' (no PCA)."
        ) from None


@contextmanager
def _cluster(address: str | None) -> Iterator[bool]:
    """A client of the scheduler, if there is to be one, for as long as the command runs."""
    if address is None:
        yield False
        return
    try:
        import dask
        from distributed import Client, KilledWorker
        from distributed.comm import CommClosedError
    except ImportError as error:
        raise ImportError(
            f"--scheduler needs {error.name}: pip install 'contrica[cluster]'"
        ) from error
    with _quiet("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"no dask scheduler answered at {address} within {PATIENCE} s ({error}). Start one "
                "with 'dask scheduler', and give the address that it prints."
            ) from error
        try:
            if not client.nthreads():
                _say("note:", f"the scheduler at {address} has no workers yet; waiting for some.")
            yield True
        except Exception as error:
            gone = (ClusterLostError, KilledWorker, CancelledError, CommClosedError, TimeoutError)
            if client.status == "running" and not isinstance(error, gone):
                raise  # not the cluster's fault
            raise ValueError(
                f"the cluster at {address} was lost on the way ({type(error).__name__}). See that its "
                "scheduler and workers run and have memory enough for a partition of the rows each, "
                "and run this again."
            ) from error
        finally:
            client.close(timeout=PATIENCE)
            dask.config.set(scheduler=None)  # a client that was lost does not take its name back


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Loggers that say nothing: what they would say, we do."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


class _Data(NamedTuple):
    """A dataset of the command line: rows, of which a table is an array, and what names came along."""

    values: Any
    columns: np.ndarray | None
    rows: Any
    # the rows as a dask array, where a cluster reads them
    shared: Any = None


def _read(path: str, key: str | None, header: bool | None = None, *, shared: bool = False) -> _Data:
    if shared:
        opened = open_dask(path, key)
        array = opened.rows
        if hasattr(array, "to_dask_array"):
            array = array.to_dask_array(lengths=True)
        array = array.rechunk({1: -1})  # whole rows
        values = as_rows(array, path)
    else:
        opened = open_rows(path, key, header=header)
        array, values = None, as_rows(opened.rows, path)
    if isinstance(values, Rows):
        values.columns = opened.columns  # type: ignore[attr-defined]
    return _Data(values, opened.columns, opened.row_names, array)


def _compare(foreground: str, fore: _Data, background: str, back: _Data, bare: bool) -> None:
    """Refuse a pair over other variables, or whose first lines look like a header."""
    bare &= fore.columns is None and back.columns is None and foreground != background
    tables = isinstance(fore.values, np.ndarray) and isinstance(back.values, np.ndarray)
    if bare and tables and np.array_equal(fore.values[0], back.values[0]):
        raise ValueError(
            f"the first lines of {foreground} and {background} are the same numbers. Pass --header if "
            "they name the columns, or --no-header if they are samples."
        )
    check_same_features(
        *(fore.columns, back.columns, fore.values.shape[1], back.values.shape[1]),
        name=foreground,
        other=background,
    )


def _read_all(
    foreground: str,
    backgrounds: Sequence[str],
    key: str | None,
    background_keys: Sequence[str | None] | None,
    header: bool | None,
    *,
    shared: bool = False,
) -> tuple[_Data, list[_Data]]:
    """The foreground and every background, each compared with it."""
    keys: list[str | None] = list(background_keys or ())
    if len(keys) < 2:
        keys = (keys or [None]) * len(backgrounds)
    if len(keys) != len(backgrounds):
        raise ValueError(
            f"{len(keys)} keys came for {len(backgrounds)} backgrounds. Give --background-key once, or "
            "once for each."
        )
    fore, backs = _read(foreground, key, header, shared=shared), []
    for path, own in zip(backgrounds, keys, strict=True):
        back = _read(path, own, header, shared=shared)
        _compare(foreground, fore, path, back, header is None)
        backs.append(back)
    return fore, backs


def _backgrounds(tables: Sequence[_Data]) -> Any:
    """What fit takes: one background as it is, several as a list."""
    arrays = [_named(table) for table in tables]
    return arrays[0] if len(arrays) == 1 else arrays


def _rows_read(fore: _Data, backs: Sequence[_Data]) -> str:
    counts = " + ".join(str(len(back.values)) for back in backs)
    return (
        f"read {len(fore.values)} foreground and {counts} background rows of "
        f"{fore.values.shape[1]} variables"
    )


class _NamedArray(np.ndarray):
    """An array that knows its columns, so that warnings can name them."""

    columns: np.ndarray | None = None


def _named(table: _Data) -> Any:
    if isinstance(table.values, Rows):
        return table.values
    array = table.values.view(_NamedArray)
    array.columns = table.columns
    return array


def _names(columns: np.ndarray | None, n_features: int) -> list[str]:
    return [f"x{i}" for i in range(n_features)] if columns is None else [str(c) for c in columns]


def _row_names(table: _Data) -> tuple[Iterable[Any], str]:
    """Row names and their heading; bare numbers have none, so that they are read as an index."""
    return (range(len(table.values)), "") if table.rows is None else (table.rows, "sample")


def _summary(model: ContrastiveICA | ProportionalContrastiveICA, names: Sequence[str]) -> RichTable:
    table = RichTable(title="Patterns by contrast ratio")
    for heading in (
        "pattern",
        f"contrast ratio {ratio_name(model)}",
        "weight ν",
        "leading variables",
    ):
        table.add_column(heading, justify="left" if heading == "leading variables" else "right")
    rows = zip(model.components_, model.contrast_ratio_, model.foreground_weights_, strict=True)
    for i, (pattern, ratio, weight) in enumerate(rows, start=1):
        top = np.argsort(-np.abs(pattern), kind="stable")[:5]
        leading = ", ".join(f"{names[j]} {pattern[j]:+.2f}" for j in top)
        table.add_row(str(i), f"{ratio:.4g}", f"{weight:.4g}", _escape(leading))
    return table


def _sizes(model: ContrastiveICA | ProportionalContrastiveICA) -> str:
    scale = getattr(model, "background_scale_", None)
    sought = (
        f"of l = {model.n_foreground_} sought after r = {model.n_background_} background patterns, in "
        f"{model.n_pcs_} dimensions"
    )
    if ratio_name(model) == "k(f)":
        found = f"l = {model.n_foreground_} of {model.n_pcs_} directions"
        sought = f"from a contrast subspace; {found} stand out"
    else:  # the contrast subspace does not aim at the cumulant
        sought += (
            f"; left unexplained: {model.residual_:.3g} of the foreground's fourth cumulant (norm)"
        )
    return f"{len(model.components_)} patterns kept, {sought}" + (
        "" if scale is None else f"; background scale {scale:.4g}"
    )


def _print_fit(
    model: ContrastiveICA | ProportionalContrastiveICA, names: Sequence[str], *notes: str
) -> None:
    """Patterns, the solver that was chosen and why, and what the ranks rest on."""
    out.print(_summary(model, names))
    lines = [*notes, _sizes(model)]
    if isinstance(model, ContrastiveICA):
        said = model.summary().splitlines()
        lines += [
            line for line in said if line.startswith(("solver:", "rank selection:", "near a tie:"))
        ]
    for line in lines:
        out.print(line, highlight=False, markup=False)


def _marked_ranks(model: ContrastiveICA | ProportionalContrastiveICA) -> Ranks | None:
    """The ranks that a scree should show; a contrast subspace has a dimension, which is none."""
    if ratio_name(model) == "k(b)":
        return Ranks(model.n_background_, model.n_foreground_)
    choice: RankChoice | None = getattr(model, "rank_choice_", None)
    return None if choice is None else Ranks(choice.n_background, choice.n_foreground)


def _scored(block: Any, model: Any) -> np.ndarray:
    """Scores of a block's rows; NaN for rows that hold one, if any does."""
    width = block.shape[1]
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(block @ np.full(width, 1 / width))  # a mean, which does not overflow
    if usable.all():
        return model.transform(block)
    return np.where(usable[:, np.newaxis], 0.0, np.full(len(model.components_), np.nan))


def _scores(model: Any, data: _Data) -> Iterator[np.ndarray]:
    """Scores of the rows, block by block: those of a table at once, shared ones by the workers."""
    blocks: Iterable[np.ndarray]
    if data.shared is not None:
        sizes = (data.shared.chunks[0], (len(model.components_),))
        scores = data.shared.map_blocks(
            _scored, model, chunks=sizes, dtype=np.float64, meta=np.empty((0, 0))
        )
        blocks = computed(scores.to_delayed().ravel())
    else:
        pieces = [data.values] if isinstance(data.values, np.ndarray) else data.values.pieces()
        blocks = (_scored(piece, model) for piece in pieces)
    start = 0
    for block in blocks:
        bad = ~np.isfinite(block).all(axis=1)
        if bad.any():
            # a block knows its own rows only
            raise ValueError(
                f"row {start + int(bad.argmax()) + 1} has no scores: it contains NaN or infinity. Fill "
                "missing values in, or leave such rows out."
            )
        yield block
        start += len(block)


class _Sample:
    """The scores that a scatter shows: all, or a random choice of so many rows."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.rows = np.arange(min(n_rows, MOST_DRAWN))
        if n_rows > MOST_DRAWN:
            self.rows = np.sort(generator(0).choice(n_rows, MOST_DRAWN, replace=False))
        self._parts: list[np.ndarray] = []

    def of(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The blocks, unchanged; rows of the sample are kept as they go by."""
        start = 0
        for block in blocks:
            first, last = np.searchsorted(self.rows, [start, start + len(block)])
            self._parts.append(block[self.rows[first:last] - start])
            start += len(block)
            yield block

    def scores(self) -> np.ndarray:
        return np.vstack(self._parts)


def _write_fit(
    folder: Path,
    model: ContrastiveICA | ProportionalContrastiveICA,
    fore: _Data,
    backs: Sequence[_Data],
    labels: np.ndarray | None = None,
    **scatter_options: Any,
) -> list[str]:
    """The files of one fit: patterns, scores, model and figures; returns what is to be said of them.

    Several backgrounds are pooled in the scree, and drawn together in the scatter.
    """
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # compared before; blocks have none to compare again
    names = _names(fore.columns, fore.values.shape[1])
    patterns = [f"pattern_{i + 1}" for i in range(len(model.components_))]
    write_table(folder / "patterns.csv", model.components_.T, patterns, names, "variable")
    shown, *beneath = (_Sample(len(part.values)) for part in (fore, *backs))
    blocks = shown.of(_scores(model, fore))
    write_blocks(folder / "scores.csv", blocks, patterns, *_row_names(fore))
    notes, budget = [], memory_budget(model.memory_limit)
    estimate: Any = model.cumulant
    if fits_packed(model.n_pcs_, budget):
        first, *others = (
            project_cumulants(part.values, model.basis_, estimate, memory_limit=budget)
            for part in (fore, *backs)
        )
        figure = plots.scree(scree(first, pooled(others)), _marked_ranks(model)).figure
        _savefig(figure, folder / "scree.png")
    else:  # hundreds of eigenvalues, for each of which the rows are read again and again
        notes.append(f"scree.png is left out: {model.n_pcs_} dimensions are too many for it")
    for sample, back in zip(beneath, backs, strict=True):
        for _ in sample.of(_scores(model, back)):
            pass  # the sample keeps what it needs
    axes = plots.scatter(
        shown.scores(),
        None if labels is None else labels[shown.rows],
        background=np.vstack([sample.scores() for sample in beneath]),
        **scatter_options,
    )
    if any(sample.n_rows > MOST_DRAWN for sample in (shown, *beneath)):
        drawn = sum(sample.rows.size for sample in beneath)
        total = sum(sample.n_rows for sample in beneath)
        said = f"{shown.rows.size} of {shown.n_rows} foreground, {drawn} of {total} background rows"
        axes.set_title(said, fontsize=8)
        notes.append(f"scatter.png shows a random choice: {said}")
    _savefig(axes.figure, folder / "scatter.png")
    if fore.columns is not None:
        model.feature_names_in_ = fore.columns.astype(object)
    save(model, folder / "model.npz")
    return notes


def _savefig(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        out.print(__version__, highlight=False)
        raise typer.Exit


@app.command()
@_plain_errors
def fit(
    foreground: Foreground,
    background: BackgroundFiles,
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    components: Annotated[int, typer.Option(help="Patterns to keep.")] = 2,
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
    projection: Annotated[
        str, typer.Option(help="Scores by 'pattern' or by 'filter'.")
    ] = "pattern",
    seed: Annotated[int, typer.Option(help="Seed of the random starts.")] = 0,
    key: Key = None,
    background_key: BackgroundKeys = None,
    header: Header = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where sums over rows are computed: 'cpu' or 'cuda'.", show_default="cpu"
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the patterns of FOREGROUND that the background does not have.

    Writes patterns.csv, scores.csv, model.npz, scree.png and scatter.png to the output folder.
    Several backgrounds share their patterns, each with weights of its own; the scree pools them, and
    the scatter draws them together, at most 20 000 rows of each. Files other than csv, tsv and npz are
    read block by block and may be larger than the memory.
    """
    if background_scale is not None and not proportional:
        raise ValueError("--background-scale needs --proportional. Add that, or drop the scale.")
    if proportional and solver != "auto":
        raise ValueError("--solver is of cICA and not of --proportional. Drop one of the two.")
    options: dict[str, Any] = {
        "n_background": n_background,
        "n_foreground": n_foreground,
        "n_pcs": _n_pcs(n_pcs),
        "deflation": deflation,
        "cumulant": cumulant,
        "projection": projection,
        "random_state": seed,
    }
    if memory_limit is not None:
        options["memory_limit"] = memory_limit
    if device is not None:
        options["device"] = device
    if proportional:
        model: Any = ProportionalContrastiveICA(
            components, background_scale=background_scale, **options
        )
    else:
        model = ContrastiveICA(components, solver=solver, **options)
    with (
        output_folder(output, overwrite=overwrite) as folder,
        _progress("reading"),
        _cluster(scheduler) as shared,
    ):
        fore, backs = _read_all(foreground, background, key, background_key, header, shared=shared)
        model.fit(_named(fore), background=_backgrounds(backs))
        logging.getLogger("contrica").info("writing")
        notes = _write_fit(folder, model, fore, backs)
    out.print(_rows_read(fore, backs), highlight=False)
    _print_fit(model, _names(fore.columns, fore.values.shape[1]), *notes)
    out.print(f"written to {output}", highlight=False)


@app.command()
@_plain_errors
def transform(
    model: Annotated[Path, typer.Argument(help="model.npz, as written by fit.")],
    data: Annotated[
        str, typer.Argument(help="Rows to score, same columns as the foreground; files as for fit.")
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="csv file to write.")],
    key: Annotated[
        str | None, typer.Option(help="Array of an npz, h5 or zarr with several, as for fit.")
    ] = None,
    header: Header = None,
    scheduler: Scheduler = None,
    overwrite: OverwriteFile = False,
) -> None:
    """Score new rows, or the background's, with a fitted model.

    Files other than csv, tsv and npz are read, and their scores written, block by block.
    """
    with (
        output_file(output, overwrite=overwrite) as temporary,
        _progress("reading"),
        _cluster(scheduler) as shared,
    ):
        fitted = load(model)
        table = _read(data, key, header, shared=shared)
        names = getattr(fitted, "feature_names_in_", None)
        check_same_features(
            *(names, table.columns, fitted.n_features_in_, table.values.shape[1]),
            name=f"the foreground of {model}",
            other=data,
        )
        if names is not None:
            del fitted.feature_names_in_  # compared above; an array has none to compare again
        columns = [f"pattern_{i + 1}" for i in range(len(fitted.components_))]
        write_blocks(temporary, _scores(fitted, table), columns, *_row_names(table))
    out.print(f"{len(table.values)} rows scored on {len(columns)} patterns, written to {output}")


def _significant(choice: RankChoice | None, n_features: int) -> Iterator[str]:
    """Ranks by significance, what they leave, and how far they are from being others."""
    if choice is None:
        yield (
            f"significant: not looked for, {n_features} dimensions are too many to search for a joint "
            "fit. Lower --n-pcs."
        )
        return
    left = ", ".join(f"{share:.2g}" for share in choice.left)
    yield (
        f"significant: r = {choice.n_background} background and l = {choice.n_foreground} foreground "
        f"patterns of a joint fit, which leaves {left} of the fourth cumulants (squared norms, "
        "foreground first)"
    )
    yield f"rank selection: {choice.description}"
    yield from (f"near a tie: {tie}" for tie in choice.near_ties)


@app.command()
@_plain_errors
def ranks(
    foreground: Foreground,
    background: BackgroundFiles,
    n_pcs: Pcs = "auto",
    cumulant: Estimate = "plugin",
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also draw the scree here.")
    ] = None,
    most: Annotated[int, typer.Option(help="Eigenvalues to print.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random starts.")] = 0,
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
    if output is not None and output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"{output} is no figure file. Let its name end in .png, .pdf or .svg.")
    budget = memory_budget(memory_limit)
    with _progress("reading"), _cluster(scheduler) as shared:
        fore, backs = _read_all(foreground, background, key, background_key, header, shared=shared)
        tables = [fore, *backs]
        for name, part in zip((foreground, *background), tables, strict=True):
            if isinstance(part.values, Rows):  # of a table it was seen when it was read
                check_finite(column_summary(part.values), name)
        basis = common_basis([part.values for part in tables], _n_pcs(n_pcs), memory_limit=budget)
        estimate: Any = cumulant
        rows = [rows_in(part.values, basis, estimate) for part in tables]
        first, *others = (
            cumulants(part, estimate_of_rows(estimate), memory_limit=budget) for part in rows
        )
        values = scree(first, pooled(others))
        chosen = choose_ranks(first, pooled(others))
        p, significant = first.n_features, None
        if searchable(p, n_datasets=len(rows)):
            problem = JointProblem.of(first, *others)
            groups = [RowGroups(part, problem.whiten) for part in rows]
            significant = choose_by_significance(problem, groups, chosen, rng=generator(seed))
    table = RichTable(title="Eigenvalues by magnitude")
    for heading in ("", "foreground", "background"):
        table.add_column(heading, justify="right")
    background_values = np.empty(0) if values.background is None else values.background
    for i in range(min(most, values.foreground.size)):
        table.add_row(str(i + 1), f"{values.foreground[i]:.4g}", f"{background_values[i]:.4g}")
    out.print(table)
    out.print(
        f"eigenvalues suggest: r = {chosen.n_background} background and l = {chosen.n_foreground} "
        f"foreground patterns in {p} dimensions",
        highlight=False,
    )
    for verdict in (
        spm_identifiable(chosen.n_background, p),
        algorithm_identifiable(*chosen, p),
        joint_identifiable(*chosen, p),
    ):
        mark = "unique" if verdict else "not guaranteed to be unique"
        out.print(
            f"  {mark}: {verdict.value}, needs {verdict.bound}  [{verdict.statement}]",
            highlight=False,
            markup=False,
        )
    for line in _significant(significant, p):
        out.print(line, highlight=False, markup=False)
    if output is not None:
        with output_file(output, overwrite=overwrite) as temporary:
            _savefig(plots.scree(values, chosen).figure, temporary)
        out.print(f"written to {output}", highlight=False)


@app.command()
@_plain_errors
def demo(
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the random starts.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Find handwritten digits on photographs, from data that come with scikit-learn."""
    with (
        output_folder(output, overwrite=overwrite) as folder,
        _progress("loading digits and photographs"),
    ):
        data = load_digits_on_photos()
        pixels = np.array([f"pixel_{i // 8}_{i % 8}" for i in range(64)])
        fore, back = _Data(data.foreground, pixels, None), _Data(data.background, pixels, None)
        model = ContrastiveICA(2, random_state=seed)
        model.fit(fore.values, background=back.values)
        _write_fit(folder, model, fore, [back], labels=data.labels, label_names=data.label_names)
        images = plots.images(
            np.vstack([data.patterns, model.components_]),
            data.image_shape,
            ["mean 0", "mean 1"]
            + [
                f"pattern {i + 1}\n{ratio_name(model)} = {ratio:.3g}"
                for i, ratio in enumerate(model.contrast_ratio_)
            ],
        )
        _savefig(images, folder / "patterns.png")
    # all images have mean zero, so cosines are correlations
    cosines = pattern_cosines(model.components_.T, data.patterns.T)
    found = [
        f"pattern {i}: correlation {zero:.2f} with the mean 0, {one:.2f} with the mean 1"
        for i, (zero, one) in enumerate(cosines, start=1)
    ]
    _print_fit(model, list(pixels), *found)
    out.print(f"written to {output}", highlight=False)


def _ratios(result: MethodResult) -> str:
    if result.contrast_ratio is None:
        return "–"
    return ", ".join(f"{ratio:.3g}" for ratio in result.contrast_ratio)


def _comparison_table(comparison: Comparison) -> RichTable:
    with_labels = comparison.groups is not None
    table = RichTable(title="Methods side by side")
    table.add_column("method", no_wrap=True)
    table.add_column("contrast ratio k(b)", justify="right")
    if with_labels:
        table.add_column("silhouette (uses labels)", justify="right", max_width=10)
    table.add_column("seconds", justify="right")
    table.add_column("chose")
    for result in comparison:
        silhouette = "–" if result.silhouette is None else f"{result.silhouette:.3f}"
        last = result.choice
        if result.error is not None:
            last = f"failed: {_in_shell_words(result.error)}"
        table.add_row(
            *(result.name, _ratios(result)),
            *([silhouette] if with_labels else []),
            *(f"{result.seconds:.2f}", _escape(last)),
        )
    return table


def _column_notes(comparison: Comparison) -> list[str]:
    """One sentence on each column of the table."""
    notes = [
        "contrast ratio k(b): variance along each pattern in the foreground over that in the background, "
        "on the rows fitted; where cICA works in a subspace, k(f), along each filter and with a shift of "
        "the mean counted. Some methods maximise it, so a larger one is not by itself a better find.",
    ]
    if comparison.groups is not None:
        count, total = comparison.silhouette_rows, comparison.n_labelled
        which = (
            f"all {total} labelled rows"
            if count == total
            else f"a random sample of {count} of {total} labelled rows"
        )
        notes.append(
            "silhouette (uses labels): how far apart the labelled groups lie in the scores, from -1 "
            f"to 1, on {which}; it was computed afterwards and chose nothing."
        )
    return [
        *notes,
        "scores are projections on the patterns, of 'cICA, subspace' on its filters, which undo the "
        "mixing; contrica fit --projection filter gives those of the other cICA solvers.",
        "seconds: wall time of the fit.",
        "chose: what was set from the data or by default, without labels; cPCA's α and PCPCA's γ by a "
        "rule of this package, since their authors choose by eye or by labels.",
    ]


def _print_comparison(comparison: Comparison) -> None:
    said: dict[str, list[str]] = {}
    for result in comparison:
        for message in result.warnings:
            said.setdefault(message, []).append(result.name)
    for message, names in said.items():
        _say("[bold yellow]warning:[/]", f"{', '.join(names)}: {message}")
    if any("--" in _in_shell_words(message) for message in said):
        _say("note:", "options that compare does not have are those of contrica fit: try them.")
    out.print(_comparison_table(comparison))
    for note in _column_notes(comparison):
        out.print(note, highlight=False, markup=False)


def _write_comparison(folder: Path, comparison: Comparison, fore: _Data) -> None:
    columns, rows = comparison.table()
    cells = np.empty((len(rows), len(columns) - 1), dtype=object)
    cells[:] = [row[1:] for row in rows]
    write_table(folder / "comparison.csv", cells, columns[1:], [r[0] for r in rows], columns[0])
    names = _names(fore.columns, fore.values.shape[1])
    for result in comparison:
        if result.model is not None:
            patterns = result.model.components_.T
            headings = [f"pattern_{i + 1}" for i in range(patterns.shape[1])]
            path = folder / f"patterns_{result.key}.csv"
            write_table(path, patterns, headings, names, "variable")
    figure = plots.small_multiples(
        [result.scores for result in comparison],
        [result.title for result in comparison],
        comparison.groups,
        backgrounds=[result.background_scores for result in comparison],
        label_names=comparison.group_names,
    )
    _savefig(figure, folder / "comparison.png")


def _comparison_data(
    foreground: str | None,
    background: str | None,
    labels: Path | None,
    keys: tuple[str | None, str | None],
    header: bool | None,
) -> tuple[_Data, _Data, np.ndarray | None]:
    if foreground is None or background is None:
        raise ValueError(
            "a comparison needs data. Give FOREGROUND and --background, or --demo for the embedded "
            "digits on photographs."
        )
    fore, (back,) = _read_all(foreground, [background], keys[0], [keys[1]], header)
    if labels is None:
        return fore, back, None
    names = None if fore.rows is None else np.asarray(fore.rows)
    return fore, back, read_labels(labels, len(fore.values), names)


def _demo_data() -> tuple[_Data, _Data, np.ndarray]:
    data = load_digits_on_photos()
    groups = np.array(data.label_names)[data.labels]
    return _Data(data.foreground, None, None), _Data(data.background, None, None), groups


@app.command()
@_plain_errors
def compare(
    foreground: Annotated[
        str | None,
        typer.Argument(
            help="Foreground, as for fit: csv, tsv, npy, npz, h5, h5ad, zarr or parquet.",
            show_default=False,
        ),
    ] = None,
    background: Annotated[
        list[str] | None,
        typer.Option("--background", "-b", help="Background, same columns; one only."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="csv, tsv or txt with a group for each foreground row, after an optional column of "
            "row names. Used for the silhouette and the colours only."
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Use the embedded digits on photographs, with labels.")
    ] = False,
    components: Annotated[int, typer.Option(help="Patterns of each method to keep.")] = 2,
    n_pcs: Annotated[
        str,
        typer.Option(help="Principal components of the ICA methods: a number, 'auto' or 'none'."),
    ] = "auto",
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
    key: Key = None,
    background_key: BackgroundKey = None,
    header: Header = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit all contrastive methods, and plain ICA and PCA, and print one table of what they found.

    Every method runs at its defaults and without labels. With --out, writes comparison.csv,
    comparison.png (scores by method) and patterns_METHOD.csv.
    """
    given = (foreground, background or None, labels, key, background_key, header)
    if background is not None and len(background) > 1:
        raise ValueError(
            f"--background was given {len(background)} times, but only some of the methods compared take "
            "several backgrounds. Give one, or put their rows into one file."
        )
    if demo and any(option is not None for option in given):
        raise ValueError("--demo brings its own data and labels. Drop it, or the files and keys.")
    chosen = None if methods is None else [name.strip().lower() for name in methods.split(",")]
    folder_or_none = nullcontext() if output is None else output_folder(output, overwrite=overwrite)
    with folder_or_none as folder, _progress("reading"):
        fore, back, groups = (
            _demo_data()
            if demo
            else _comparison_data(
                foreground,
                background[0] if background else None,
                labels,
                (key, background_key),
                header,
            )
        )
        comparison = compare_methods(
            _named(fore),
            _named(back),
            labels=groups,
            n_components=components,
            methods=chosen,
            n_pcs=_n_pcs(n_pcs),
            random_state=seed,
        )
        if folder is not None:
            _write_comparison(folder, comparison, fore)
    out.print(_rows_read(fore, [back]), highlight=False)
    _print_comparison(comparison)
    if output is not None:
        out.print(f"written to {output}", highlight=False)


@app.command()
@_plain_errors
def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help=f"'all', or one or more of: {', '.join(EXPERIMENTS)}.", metavar="NAME…"
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
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
        with _experiment_bars() as show:
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
        _say("[bold yellow]stopped:[/]", "finished experiments are kept; the same command goes on.")
        raise typer.Exit(130) from None
    table = RichTable(title="Experiments")
    for heading in ("experiment", "rows", "as in the paper", "otherwise", "seconds"):
        table.add_column(heading, justify="left" if heading == "experiment" else "right")
    for result in results:
        if result.missing:
            table.add_row(result.name, "not run", "", "", "")
            continue
        verdicts = [row.verdict for row in result.rows]
        agree, differ = (
            sum(verdict in words for verdict in verdicts)
            for words in (
                ("reproduced", "within ours", "holds"),
                ("higher", "lower", "does not hold"),
            )
        )
        counts = (len(verdicts), agree, differ, round(result.seconds))
        table.add_row(result.name, *map(str, counts))
    out.print(table)
    for result in results:
        if result.missing:
            _say("[bold yellow]not run:[/]", f"{result.name}: {result.missing}")
    out.print(f"written to {output / 'reproduction.md'}", highlight=False, soft_wrap=True)
    if any(result.broken for result in results):
        raise typer.Exit(2)


@contextmanager
def _experiment_bars() -> Iterator[Callable[[str, str, int, int], None]]:
    """A progress bar for each experiment; without a terminal, a line when one begins."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

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


if __name__ == "__main__":
    main()
