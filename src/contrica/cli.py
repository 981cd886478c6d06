"""The command line: ``contrica demo | fit | transform | ranks``. Needs the extra ``cli``."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from contrica import __version__, load, plots, save
from contrica.cumulants import cumulants
from contrica.datasets import load_digits_on_photos
from contrica.estimators import ContrastiveICA, ProportionalContrastiveICA
from contrica.files import Table, output_folder, read_table, write_table
from contrica.projection import common_basis
from contrica.ranks import (
    Ranks,
    Scree,
    algorithm_identifiable,
    choose_ranks,
    joint_identifiable,
    scree,
    spm_identifiable,
)
from contrica.validation import check_same_features

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

Foreground = Annotated[
    Path, typer.Argument(help="Foreground: csv, tsv, npy or npz, rows are samples.")
]
BackgroundFile = Annotated[
    Path, typer.Option("--background", "-b", help="Background, same columns.")
]
Key = Annotated[str | None, typer.Option(help="Array of a foreground npz with several.")]
BackgroundKey = Annotated[str | None, typer.Option(help="Array of a background npz with several.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files in an existing folder.")
]
Pcs = Annotated[str, typer.Option(help="Principal components: a number, 'auto' or 'none'.")]
Estimate = Annotated[str, typer.Option(help="'plugin' (the paper's) or 'unbiased' cumulants.")]


def main() -> None:
    """Entry point of the shell command."""
    app()


def _plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """One sentence and exit code 2 instead of a traceback, where the input is at fault."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError, ImportError) as error:
            message = " ".join(str(error).split())
            err.print(f"[bold red]error:[/] {_escape(message)}", soft_wrap=True, highlight=False)
            raise typer.Exit(2) from error

    return wrapped


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
        err.print(f"[bold yellow]warning:[/] {_escape(message)}", soft_wrap=True, highlight=False)


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


def _read_pair(
    foreground: Path, background: Path, key: str | None, background_key: str | None
) -> tuple[Table, Table]:
    fore, back = read_table(foreground, key), read_table(background, background_key)
    check_same_features(fore.columns, back.columns, fore.values.shape[1], back.values.shape[1])
    return fore, back


def _names(columns: np.ndarray | None, n_features: int) -> list[str]:
    return [f"x{i}" for i in range(n_features)] if columns is None else [str(c) for c in columns]


def _summary(model: ContrastiveICA | ProportionalContrastiveICA, names: Sequence[str]) -> RichTable:
    table = RichTable(title="Patterns by contrast ratio")
    for heading in ("pattern", "contrast ratio k(b)", "weight ν", "leading variables"):
        table.add_column(heading, justify="left" if heading == "leading variables" else "right")
    rows = zip(model.components_, model.contrast_ratio_, model.foreground_weights_, strict=True)
    for i, (pattern, ratio, weight) in enumerate(rows, start=1):
        top = np.argsort(-np.abs(pattern), kind="stable")[:5]
        leading = ", ".join(f"{names[j]} {pattern[j]:+.2f}" for j in top)
        table.add_row(str(i), f"{ratio:.4g}", f"{weight:.4g}", _escape(leading))
    return table


def _sizes(model: ContrastiveICA | ProportionalContrastiveICA) -> str:
    scale = getattr(model, "background_scale_", None)
    return (
        f"r = {model.n_background_} background and l = {model.n_foreground_} foreground patterns "
        f"in {model.n_pcs_} dimensions; relative residual {model.residual_:.3g}"
        + ("" if scale is None else f"; background scale {scale:.4g}")
    )


def _write_fit(
    folder: Path,
    model: ContrastiveICA | ProportionalContrastiveICA,
    fore: Table,
    back: Table,
    **scatter_options: Any,
) -> None:
    """The files of one fit: patterns, scores, model and figures."""
    names = _names(fore.columns, fore.values.shape[1])
    patterns = [f"pattern_{i + 1}" for i in range(len(model.components_))]
    scores = model.transform(fore.values)
    rows = range(len(scores)) if fore.rows is None else fore.rows
    write_table(folder / "patterns.csv", model.components_.T, patterns, names, "variable")
    write_table(folder / "scores.csv", scores, patterns, rows, "sample")
    ranks = Ranks(model.n_background_, model.n_foreground_)
    _savefig(plots.scree(_scree_of(model, fore, back), ranks).figure, folder / "scree.png")
    axes = plots.scatter(scores, background=model.transform(back.values), **scatter_options)
    _savefig(axes.figure, folder / "scatter.png")
    if fore.columns is not None:
        model.feature_names_in_ = fore.columns.astype(object)
    save(model, folder / "model.npz")


def _savefig(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150)


def _scree_of(model: Any, fore: Table, back: Table) -> Scree:
    basis = model.basis_
    parts = [
        cumulants(rows if basis is None else rows @ basis, model.cumulant)
        for rows in (fore.values, back.values)
    ]
    return scree(*parts)


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
    background: BackgroundFile,
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
    deflation: Annotated[str, typer.Option(help="Estimator of Step 2.")] = "thin",
    cumulant: Estimate = "plugin",
    projection: Annotated[
        str, typer.Option(help="Scores by 'pattern' or by 'filter'.")
    ] = "pattern",
    seed: Annotated[int, typer.Option(help="Seed of the random starts.")] = 0,
    key: Key = None,
    background_key: BackgroundKey = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the patterns of FOREGROUND that the background does not have.

    Writes patterns.csv, scores.csv, model.npz, scree.png and scatter.png to the output folder.
    """
    if background_scale is not None and not proportional:
        raise ValueError("--background-scale goes with --proportional only. Add it, or drop this.")
    options: dict[str, Any] = {
        "n_background": n_background,
        "n_foreground": n_foreground,
        "n_pcs": _n_pcs(n_pcs),
        "deflation": deflation,
        "cumulant": cumulant,
        "projection": projection,
        "random_state": seed,
    }
    if proportional:
        model: Any = ProportionalContrastiveICA(
            components, background_scale=background_scale, **options
        )
    else:
        model = ContrastiveICA(components, **options)
    with output_folder(output, overwrite=overwrite) as folder, _progress("reading"):
        fore, back = _read_pair(foreground, background, key, background_key)
        model.fit(fore.values, background=back.values)
        _write_fit(folder, model, fore, back)
    out.print(_summary(model, _names(fore.columns, fore.values.shape[1])))
    out.print(_sizes(model), highlight=False)
    out.print(f"written to {output}", highlight=False)


@app.command()
@_plain_errors
def transform(
    model: Annotated[Path, typer.Argument(help="model.npz, as written by fit.")],
    data: Annotated[Path, typer.Argument(help="Rows to score, same columns as the foreground.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="csv file to write.")],
    key: Annotated[str | None, typer.Option(help="Array of an npz with several.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
) -> None:
    """Score new rows, or the background's, with a fitted model."""
    if output.exists() and not overwrite:
        raise FileExistsError(f"{output} exists already. Name another file, or pass --overwrite.")
    fitted = load(model)
    table = read_table(data, key)
    names = getattr(fitted, "feature_names_in_", None)
    check_same_features(names, table.columns, fitted.n_features_in_, table.values.shape[1])
    if names is not None:
        del fitted.feature_names_in_  # compared above; an array has none to compare again
    scores = fitted.transform(table.values)
    rows = range(len(scores)) if table.rows is None else table.rows
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        columns = [f"pattern_{i + 1}" for i in range(scores.shape[1])]
        write_table(temporary, scores, columns, rows, "sample")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    out.print(f"{len(scores)} rows scored on {scores.shape[1]} patterns, written to {output}")


@app.command()
@_plain_errors
def ranks(
    foreground: Foreground,
    background: BackgroundFile,
    n_pcs: Pcs = "auto",
    cumulant: Estimate = "plugin",
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also draw the scree here.")
    ] = None,
    most: Annotated[int, typer.Option(help="Eigenvalues to print.")] = 20,
    key: Key = None,
    background_key: BackgroundKey = None,
) -> None:
    """Show the eigenvalues of both flattened cumulants, a choice of r and l, and what is unique."""
    with _progress("reading"):
        fore, back = _read_pair(foreground, background, key, background_key)
        basis = common_basis([fore.values, back.values], _n_pcs(n_pcs))
        parts = [
            cumulants(rows if basis is None else rows @ basis, cumulant)  # type: ignore[arg-type]
            for rows in (fore.values, back.values)
        ]
        values, chosen = scree(*parts), choose_ranks(parts[0], parts[1])
    table = RichTable(title="Eigenvalues by magnitude")
    for heading in ("", "foreground", "background"):
        table.add_column(heading, justify="right")
    background_values = np.empty(0) if values.background is None else values.background
    for i in range(min(most, values.foreground.size)):
        table.add_row(str(i + 1), f"{values.foreground[i]:.4g}", f"{background_values[i]:.4g}")
    out.print(table)
    p = parts[0].n_features
    out.print(
        f"suggested: r = {chosen.n_background} background and l = {chosen.n_foreground} foreground "
        f"patterns in {p} dimensions",
        highlight=False,
    )
    for verdict in (
        spm_identifiable(chosen.n_background, p),
        algorithm_identifiable(*chosen, p),
        joint_identifiable(*chosen, p),
    ):
        mark = "unique" if verdict else "not guaranteed to be unique"
        out.print(
            f"  {mark}: {verdict.bound}  [{verdict.statement}]", highlight=False, markup=False
        )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        _savefig(plots.scree(values, chosen).figure, output)


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
        fore, back = Table(data.foreground, pixels, None), Table(data.background, pixels, None)
        model = ContrastiveICA(2, random_state=seed)
        model.fit(fore.values, background=back.values)
        _write_fit(folder, model, fore, back, labels=data.labels, label_names=data.label_names)
        images = plots.images(
            np.vstack([data.patterns, model.components_]),
            data.image_shape,
            ["mean 0", "mean 1"]
            + [f"pattern {i + 1}\nk(b) = {k:.3g}" for i, k in enumerate(model.contrast_ratio_)],
        )
        _savefig(images, folder / "patterns.png")
    cosines = np.abs(np.corrcoef(np.vstack([model.components_, data.patterns])))[:-2, -2:]
    out.print(_summary(model, list(pixels)))
    for i, (zero, one) in enumerate(cosines, start=1):
        out.print(
            f"pattern {i}: correlation {zero:.2f} with the mean 0, {one:.2f} with the mean 1",
            highlight=False,
        )
    out.print(_sizes(model), highlight=False)
    out.print(f"written to {output}", highlight=False)


if __name__ == "__main__":
    main()
