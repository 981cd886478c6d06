"""``--config run.toml``: options from a file, and the file that repeats a run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from contrica import __version__
from contrica.errors import ContricaError, FileError, FileMissingError, unmarked

__all__ = ["load_config", "option_name", "read_config", "write_config"]

# What such a file also says, which is no option.
FACTS = ("command", "version")
# Options of one run, which another does not repeat.
PASSING = ("config", "out", "overwrite", "json", "help")


def option_name(parameter: Any) -> str:
    """What a file calls a parameter: the long name of the option, without its dashes.

    Parameters
    ----------
    parameter : click.Parameter

    Returns
    -------
    str
    """
    long = [name for name in parameter.opts if name.startswith("--")]
    return long[0].removeprefix("--") if long else str(parameter.name)


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take what is not on the command line from a file.

    Parameters
    ----------
    context : typer.Context
        Of the command; its defaults are replaced.
    path : Path or None

    Returns
    -------
    Path or None
    """
    if path is None:
        return None
    known: dict[str, Any] = {}
    for parameter in context.command.params:
        names = [name.removeprefix("--") for name in parameter.opts if name.startswith("--")]
        for name in names or [str(parameter.name)]:
            known[name] = parameter
    found: dict[str, Any] = {}
    for key, value in load_config(path).items():
        name = key.replace("_", "-")
        if key in FACTS:
            continue
        if name not in known or name == "config":
            raise _unknown(path, key, [*known, *FACTS])
        parameter = known[name]
        several = getattr(parameter, "multiple", False)
        if isinstance(value, dict) or (isinstance(value, list) and not several):
            raise FileError(
                "config",
                f"{unmarked(path)}: {unmarked(key)} is a {type(value).__name__}",
                "one value is needed",
                parameter="config",
            )
        found[str(parameter.name)] = [value] if several and not isinstance(value, list) else value
    context.default_map = found
    return path


def load_config(path: Path) -> dict[str, Any]:
    """What a file says, whatever its keys are.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict
    """
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError as error:
        raise FileMissingError(
            "file-missing",
            f"{unmarked(path)} does not exist",
            remedy="Check the path.",
            parameter="config",
            filename=path,
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise FileError(
            "config",
            f"{unmarked(path)} is not a TOML file ({unmarked(error)})",
            remedy='Write lines such as scale = "each".',
            parameter="config",
        ) from error


def _unknown(path: Path, key: str, known: Iterable[str]) -> ContricaError:
    near = get_close_matches(key.replace("_", "-"), list(known), 1, 0.5)
    return FileError(
        "unknown-option",
        f"{unmarked(path)}: {unmarked(repr(key))} is not an option of this command",
        remedy=f"Did you mean {near[0]}?" if near else "Its --help lists them.",
        parameter="config",
    )


def write_config(path: Path, context: typer.Context) -> None:
    """Write the options of a run, so that --config repeats it.

    Parameters
    ----------
    path : Path
    context : typer.Context
        Of the command.
    """
    command = context.info_name
    keys = {parameter.name: option_name(parameter) for parameter in context.command.params}
    values = {keys[name]: value for name, value in context.params.items() if name in keys}
    values = {"data": None, "background": None, **values}  # what a reader looks for comes first
    lines = [
        "# Repeat this run, in the folder that it was started in:",
        f"# contrica {command} --config {Path(values.get('out') or '') / path.name} --out NEW",
        *_lines({"command": command, "version": __version__}),
        *_lines({key: value for key, value in values.items() if key not in PASSING}),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = {_toml(value)}" for key, value in values.items() if value not in (None, [], ())
    ]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # strings of TOML are escaped as those of JSON are
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
