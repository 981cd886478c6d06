"""report.html of a result folder: what the folder holds, and what only rows can tell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer

from contrica.cli.config import load_config, option_name
from contrica.cli.pair import Data, Pair, called_by_file
from contrica.cli.scoring import without_names
from contrica.errors import (
    ContricaError,
    DataError,
    MemoryBudgetError,
    ParameterError,
    collected,
)
from contrica.inference import check, stability
from contrica.inference._findings import Report
from contrica.inference._stability import Stability
from contrica.report._build import compare_with
from contrica.report._folder import material_of_folder, save_check
from contrica.report._material import Material, check_image_shape
from contrica.report._page import page
from contrica.rows.products import in_memory
from contrica.validation import check_count

__all__ = ["ReportOptions", "report_of_folder"]

# Numbers of both datasets up to which rows are read once more for a report, if need be into memory.
MAX_NUMBERS = 200_000_000
# Options that say which rows were asked for.
ASKED = ("data", "foreground", "background", "groupby", "groups", "labels", "drop", "mask-var")


@dataclass(frozen=True)
class ReportOptions:
    """What a report has beside what every one has."""

    panel: ClassVar[str] = "Report"
    title: Annotated[
        str | None, typer.Option(help="Title of the report.", show_default="the data's names")
    ] = None
    image_shape: Annotated[
        str | None,
        typer.Option(help="Height and width of patterns that are images, such as 28x28."),
    ] = None
    stability: Annotated[
        int | None,
        typer.Option(
            help="Fit so many resamples, and say in the report how patterns return, with intervals."
        ),
    ] = None
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Show all other methods in the report, which takes longer."),
    ] = False

    def check(self, n_features: int | None = None) -> None:
        """Refuse what cannot be meant, before anything takes long; once the width is known, again."""
        if self.title is not None and not self.title.strip():
            raise ParameterError(
                "empty", "`title` is empty", remedy="Leave it out.", parameter="title"
            )
        if self.stability is not None:
            check_count("stability", self.stability, minimum=2)
        shape = self.shape
        if n_features is not None:
            check_image_shape(shape, n_features)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Height and width as numbers."""
        if self.image_shape is None:
            return None
        parts = self.image_shape.lower().replace(",", "x").split("x")
        if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
            raise ParameterError(
                "image-shape",
                f"`image_shape={self.image_shape}` was given",
                "height and width are needed, such as 28x28",
                parameter="image_shape",
            )
        return tuple(map(int, parts))


def report_of_folder(
    folder: Path,
    name: Path,
    options: ReportOptions,
    *,
    pair: Pair | None = None,
    command: Any = None,
    more: Mapping[str, str] | None = None,
) -> tuple[str, list[str]]:
    """The page of a result folder.

    Parameters
    ----------
    folder : Path
    name : Path
        What users call the folder.
    options : ReportOptions
    pair : Pair, optional
        Its rows, for what needs them.
    command : click.Command, optional
        ``fit``, to write down how it was called.
    more : mapping of str to str, optional
        ``title`` and ``command`` of a folder without run.toml.

    Returns
    -------
    page : str
    notes : list of str
        What could not be computed.
    """
    material = material_of_folder(folder)
    shape = check_image_shape(options.shape, material.model.n_features_in_)
    path = folder / "run.toml"
    facts = load_config(path) if path.is_file() else {}
    told = {"title": _title(facts), "command": _command_line(command, facts, name), **(more or {})}
    how = f"not computed; contrica report {shlex.quote(str(name))} --stability 100 --overwrite adds it"
    material = replace(
        material,
        image_shape=shape,
        stability=how,
        title=options.title or told["title"],
        command=told["command"],
        asked={key: _words(facts[key]) for key in ASKED if key in facts},
    )
    notes: list[str] = []
    if pair is not None:
        _check_same_rows(material, pair)
        material, notes = _with_rows(material, folder, options, pair)
    return page(material), notes


def _check_same_rows(material: Material, pair: Pair) -> None:
    """Refuse data that have changed since the fit."""
    known = [(material.foreground.n_rows, len(pair.fore.values))]
    known += [
        (each.n_rows, len(data.values))
        for each, data in zip(material.backgrounds, pair.backs, strict=False)
    ]
    for before, now in known:
        if before != now:
            raise DataError(
                "other-data",
                f"the data have {now} rows",
                f"the result is of {before}",
                "Give the data that it was fitted to, or fit again.",
            )


def _with_rows(
    material: Material, folder: Path, options: ReportOptions, pair: Pair
) -> tuple[Material, list[str]]:
    """Add what only rows can tell; what fails does not lose the rest."""
    notes: list[str] = []

    @contextmanager
    def told(what: str) -> Iterator[None]:
        try:
            with called_by_file(pair), collected():
                yield
        except ContricaError as error:
            notes.append(f"report.html has no {what}: {error}")

    if isinstance(material.check, str):
        with told("data check"):
            found = _checked(pair)
            save_check(found, folder)
            material = replace(material, check=found)
    if options.stability is not None:
        with told("stability"):
            found_again = _stability(material.model, options.stability, pair)
            material = replace(material, stability=found_again)
    if options.compare:
        with told("other methods"):
            fore, *backs = _rows(pair)
            model, labels = without_names(material.model), pair.fore.labels
            compared = compare_with(model, fore, backs, pair.groups, labels)
            material = replace(material, comparison=compared)
    return material, notes


def _checked(pair: Pair) -> Report:
    """What the data check finds, of several backgrounds against each."""
    fore, *backs = _rows(pair)
    labels = pair.groups if len(backs) == 1 else {}
    found = [check(fore, background=back, **labels) for back in backs]
    unique = {str(each): each for report in found for each in report.findings}
    return Report.of(list(unique.values()), "; ".join(report.about for report in found))


def _stability(model: Any, n_resamples: int, pair: Pair) -> Stability:
    fore, *backs = _rows(pair)
    return stability(
        *(without_names(model), fore),
        background=backs[0] if len(backs) == 1 else backs,
        **pair.groups,
        n_resamples=n_resamples,
        random_state=0,
    )


def _rows(pair: Pair) -> Iterator[Any]:
    """Rows in memory, with the names of their variables."""
    parts = (pair.fore, *pair.backs)
    count = sum(len(data.values) for data in parts) * pair.fore.n_features
    if count > MAX_NUMBERS:
        raise MemoryBudgetError(
            "too-many-rows",
            f"there are {count:.2g} numbers",
            f"a report reads at most {MAX_NUMBERS:.2g} into memory",
        )
    return (_in_memory(data).named for data in parts)


def _in_memory(data: Data) -> Data:
    return replace(data, values=np.asarray(in_memory(data.values)))


def _words(value: Any) -> str:
    """An option's value, with spaces where a line may break."""
    parts = value if isinstance(value, list) else [value]
    return ", ".join(re.sub(r",(?=\S)", ", ", str(each)) for each in parts)


def _title(facts: Mapping[str, Any]) -> str:
    """What was contrasted, by the names of files or of rows."""
    if "data" not in facts or "background" not in facts:
        return ""
    files = [Path(text).name for text in facts["background"] if Path(text).suffix]
    behind = " and ".join(files or facts["background"])
    name = Path(str(facts["data"])).name
    if files and "foreground" not in facts and "groupby" not in facts:
        return f"{name} against {behind}"
    by = f" by {facts['groupby']}" if "groupby" in facts else ""
    return f"{name}{by}: {_words(facts.get('foreground', 'all other rows'))} against {behind}"


def _command_line(command: Any, facts: Mapping[str, Any], name: Path) -> str:
    """The call that made a folder: options that are not at their defaults."""
    if command is None or not facts:
        return ""
    words = ["contrica", str(command.name)]
    for parameter in sorted(command.params, key=lambda each: each.param_type_name != "argument"):
        value = facts.get(option_name(parameter))
        if value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [parameter.opts[0], str(each)]
    return shlex.join([*words, "--out", str(name)])
