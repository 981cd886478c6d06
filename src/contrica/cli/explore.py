"""``contrica explore``: foreground against background in a browser, on this machine only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from contrica.cli.config import load_config
from contrica.cli.console import print_line, progress
from contrica.cli.options import DataOptions, Missing, Overwrite, Scale
from contrica.cli.pair import Data, Pair
from contrica.cli.reading import read_pair
from contrica.cli.reporting import ReportOptions
from contrica.errors import FileMissingError, ParameterError, unmarked
from contrica.estimators import ContrastiveICA
from contrica.explorer import Explorer, ExplorerData, ViewState
from contrica.explorer._data import Source, demo_data
from contrica.explorer._export import FILES
from contrica.explorer._server import serve
from contrica.models import load
from contrica.output import output_folder
from contrica.rows.products import in_memory
from contrica.rows.units import SCALES
from contrica.validation import check_choice

# What the page sets itself, and what is of one machine or one run.
OF_THE_PAGE = ("memory_limit", "device")


def explore(
    data: DataOptions,
    port: Annotated[
        int | None,
        typer.Option(help="Port of the page.", show_default="the first free one from 8150"),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to serve at; others than this machine's see it with the token."),
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    scale: Scale = "none",
    missing: Missing = "error",
    image_shape: Annotated[
        str | None,
        typer.Option(help="Height and width of patterns that are images, such as 28x28."),
    ] = None,
    state: Annotated[
        str,
        typer.Option(
            help="State to open the page with: what is behind the # of its address.",
            show_default=False,
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write all files of the state to a folder, and open no page."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Look at foreground against background in a browser, and turn the knobs of the fit while you look.

    DATA is as of fit: two files, one with rows of both, or the folder of a result, whose names and notes
    are kept in it. Without DATA it is the embedded demo. The page is served to this machine only, at an
    address with a token in it; Ctrl-C ends it. Names, notes and verdicts are kept in
    contrica-explorer.json at once.
    """
    check_choice("missing", missing, ("error", "impute", "pairwise"))
    asked = ViewState.decode(state) if state else None
    with progress("reading"):
        found = _data(data, missing, ReportOptions(image_shape=image_shape).shape)
        if scale != "none":  # which the page can change, as a state says
            check_choice("scale", scale, SCALES)
            found = replace(found, parameters={**found.parameters, "scale": scale})
    if output is not None:
        _write(found, asked, output, overwrite)
        return
    serve(
        found,
        host,
        port,
        open_browser=browser,
        start=asked,
        say=lambda line: print_line(line, wrap=False),
    )


def _data(options: DataOptions, missing: str, shape: tuple[int, ...] | None) -> ExplorerData:
    if options.data is None:
        if options.background:
            raise ParameterError(
                "no-data",
                "a background was given without DATA",
                remedy="Give both, or neither for the demo.",
                parameter="data",
            )
        return demo_data(Path())
    folder = Path(options.data)
    if (folder / "model.npz").is_file():
        return _of_result(folder, options, shape)
    words = _words(options)
    words += [f"--missing={missing}"] if missing != "error" else []
    words += [] if shape is None else [f"--image-shape={shape[0]}x{shape[1]}"]
    source = Source("files", _given(options), tuple(words), Path(), _title(options))
    pair = read_pair(options, gaps=missing != "error")
    return _of_pair(pair, source, shape, {"missing": missing} if missing != "error" else {})


def _of_result(folder: Path, options: DataOptions, shape: tuple[int, ...] | None) -> ExplorerData:
    """The rows and the parameters of a fit, by what it wrote down."""
    if options.background:
        raise ParameterError(
            "not-together",
            f"{unmarked(folder)} is a result, which knows its background",
            remedy="Leave --background out.",
            parameter="background",
        )
    path = folder / "run.toml"
    if not path.is_file():
        raise FileMissingError(
            "no-run",
            f"{unmarked(folder)} has no run.toml",
            "the explorer reads the data again, as it says",
            "Give the data in place of the folder.",
            filename=path,
        )
    facts = load_config(path)
    known: dict[str, Any] = {
        field.name: facts[key]
        for field in fields(DataOptions)
        if (key := field.name.replace("_", "-")) in facts
    }
    model = load(folder / "model.npz")
    if not isinstance(model, ContrastiveICA):
        raise ParameterError(
            "unknown-model",
            f"{unmarked(folder)} is the result of {type(model).__name__}",
            "the explorer fits ContrastiveICA",
            "Give the data in place of the folder.",
            "data",
        )
    again = DataOptions(**known)
    parameters = {
        name: value for name, value in model.get_params().items() if name not in OF_THE_PAGE
    }
    if shape is None and "image-shape" in facts:
        shape = ReportOptions(image_shape=str(facts["image-shape"])).shape
    source = Source("files", _given(again), (str(folder),), folder, _title(again))
    return _of_pair(
        read_pair(again, gaps=parameters["missing"] != "error"), source, shape, parameters
    )


def _of_pair(
    pair: Pair, source: Source, shape: tuple[int, ...] | None, parameters: Mapping[str, Any]
) -> ExplorerData:
    for note in pair.notes:
        print_line(note)
    parts = [pair.fore, *pair.backs]
    metadata = [_metadata(part) for part in parts]
    groups = pair.groups
    return ExplorerData.of(
        _in_memory(pair.fore),
        [_in_memory(part) for part in pair.backs],
        groups=groups["groups"],
        background_groups=groups["background_groups"],
        metadata=metadata[0],
        background_metadata=metadata[1] if len(metadata) == 2 else metadata[1:],
        names=pair.fore.names,
        row_names=[None if part.row_names is None else _texts(part) for part in parts],
        image_shape=shape,
        source=source,
        parameters={"random_state": 0, **parameters},
    )


def _in_memory(part: Data) -> np.ndarray:
    return np.asarray(in_memory(part.values))


def _texts(part: Data) -> list[str]:
    return [str(name) for name in part.row_names]


def _metadata(part: Data) -> dict[str, np.ndarray]:
    """Columns of a dataset, its labels first where no column has them."""
    found = dict(part.metadata)
    if part.labels is not None and not any(
        np.array_equal(part.labels, own) for own in found.values()
    ):
        found = {"labels": part.labels, **found}
    return found


def _given(options: DataOptions) -> dict[str, Any]:
    return {
        each.name: value
        for each in fields(options)
        if (value := getattr(options, each.name)) not in (None, [], ())
    }


def _words(options: DataOptions) -> list[str]:
    """Options as they stand behind the command."""
    given = _given(options)
    words = [str(given.pop("data"))]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if name == "header":
            words.append(option if value else "--no-header")
            continue
        words += [f"{option}={each}" for each in (value if isinstance(value, list) else [value])]
    return words


def _title(options: DataOptions) -> str:
    behind = " and ".join(Path(each).name for each in options.background or ())
    return f"{Path(str(options.data)).name} against {behind}"


def _write(data: ExplorerData, state: ViewState | None, output: Path, overwrite: bool) -> None:
    """All files of a state."""
    explorer = Explorer(data)
    asked = explorer.default_state() if state is None else state
    kinds = explorer.exports
    with (
        output_folder(output, overwrite=overwrite, ours=FILES) as folder,
        progress("fitting"),
    ):
        for kind in kinds:
            name, content = explorer.export(kind, asked)
            (folder / name).write_bytes(content)
    print_line(f"written to {output}", wrap=False)
