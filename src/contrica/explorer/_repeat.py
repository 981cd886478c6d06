"""The Python script and the shell command that repeat a state."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from contrica.errors import DataError, ParameterError
from contrica.estimators import ContrastiveICA
from contrica.explorer._data import ExplorerData
from contrica.explorer._fits import Fits, model_of
from contrica.explorer._state import ViewState

__all__ = ["command_of", "script_of"]

# Types whose repr is what Python reads again.
_WRITTEN = (str, int, float, bool, type(None))


def script_of(fits: Fits, state: ViewState, order: Sequence[int], names: Sequence[str]) -> str:
    """A script that reads the data again, fits them, and has the patterns as the page does.

    Text from data stands in it as Python writes it, and so is text there too.

    Parameters
    ----------
    fits : Fits
    state : ViewState
    order : sequence of int
        Numbers of the patterns that are shown.
    names : sequence of str

    Returns
    -------
    str
    """
    data = fits.data
    lines = [
        "# Made by contrica explore: reads the same data, fits them, and has the patterns of the page.",
        f"# The state of the page was {state.encode()!a}",
        "from contrica import ContrastiveICA",
        *_READING[data.source.kind](data),
        "",
        f"model = ContrastiveICA({_arguments(model_of(data, state))})",
        "model.fit(X, background=Y, **groups)",
        "",
        "# as they are ordered and called on the page; rejected ones are left out",
        f"order = {[int(i) for i in order]}",
        f"names = {list(map(str, names))!a}",
        "patterns = model.components_[order]",
        "filters = model.filters_[order]",
        "scores = model.transform(X)[:, order]",
    ]
    if (
        state.scale != "each"
    ):  # where each dataset is divided by its own deviations, not this simply
        each = "Y" if len(data.backs) == 1 else "part"
        scored = f"model.transform({each})[:, order]"
        lines.append(
            f"background_scores = {scored if each == 'Y' else f'[{scored} for part in Y]'}"
        )
    return "\n".join(lines) + "\n"


def _arguments(model: ContrastiveICA) -> str:
    """Parameters that are not at their defaults, as Python writes them."""
    known = ContrastiveICA().get_params()
    parts = []
    for name, value in model.get_params().items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, _WRITTEN):
            raise ParameterError(
                "not-written",
                f"`{name}` is a {type(value).__name__}",
                "a script can have numbers and text only",
                f"Save the model in its place, or open the explorer without `{name}`.",
                name,
            )
        if plain != known[name] or name == "random_state":
            parts.append(f"{name}={plain!a}")
    return ", ".join(parts)


def _demo(data: ExplorerData) -> list[str]:
    return [
        "from contrica.datasets import load_digits_on_photos",
        "",
        "data = load_digits_on_photos()",
        "X, Y, groups = data.foreground, data.background, {}",
    ]


def _files(data: ExplorerData) -> list[str]:
    gaps = data.parameters.get("missing", "error") != "error"
    given = {name: value for name, value in data.source.options.items() if value not in (None, [])}
    options = [f"    {name}={value!a}," for name, value in given.items()]
    return [
        "from contrica.cli.options import DataOptions",
        "from contrica.cli.pair import several",
        "from contrica.cli.pair import several",
        "from contrica.cli.reading import read_pair",
        "",
        "# in the folder that the explorer was started in",
        *("options = DataOptions(", *options, ")"),
        f"pair = read_pair(options, gaps={gaps})",
        "X, Y, groups = pair.fore.named, several(pair.backs), pair.groups",
    ]


def _memory(data: ExplorerData) -> list[str]:
    shapes = ", ".join(f"{len(part)} rows" for part in data.backs)
    names = "X, Y" + (", groups" if data.has_groups else "")
    told = f"X ({data.n_fore} rows) and Y ({shapes}) of {len(data.names)} variables"
    lines = [
        "",
        f"# The data were arrays of a Python session: give {names} here, as to model.explore.",
        "try:",
        f"    {names}",
        "except NameError:",
        f"    raise SystemExit('give the arrays {told}') from None",
    ]
    return lines if data.has_groups else [*lines, "groups = {}"]


_READING = {"demo": _demo, "files": _files, "memory": _memory}


def command_of(data: ExplorerData, state: ViewState) -> str:
    """The shell command that writes all files of a state, and the one that opens it.

    Parameters
    ----------
    data : ExplorerData
    state : ViewState

    Returns
    -------
    str
    """
    if data.source.kind == "memory":
        raise DataError(
            "in-memory",
            "the data are arrays of a Python session",
            "a command reads files",
            "Export the script, or write the data to files and open those.",
        )
    words = ["contrica", "explore", *data.source.words, f"--state={state.encode()}"]
    return "\n".join(
        [
            "# In the folder that the explorer was started in: writes tables, model, report and script.",
            "# Without --out it opens the page.",
            shlex.join([*words, "--out", "explored"]),
            "",
        ]
    )
