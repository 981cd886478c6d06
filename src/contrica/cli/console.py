"""What the shell says while a command runs: results, progress, warnings, and errors as one sentence."""

from __future__ import annotations

import functools
import json
import logging
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from contrica.errors import ContricaError, Told

__all__ = [
    "OPTIONS",
    "WARNING",
    "end_with",
    "err",
    "plain_errors",
    "print_json",
    "print_line",
    "print_table",
    "progress",
    "results_as_json",
    "say",
    "told",
]

out, err = Console(), Console(stderr=True)
# Whether the standard output is for one JSON object.
_as_json: ContextVar[bool] = ContextVar("as_json", default=False)
# Seconds until the first line of progress, and from one to the next, where there is no terminal.
FIRST_LINE, NEXT_LINE = 2.0, 5.0

# The library speaks of its parameters; the shell has options.
OPTIONS = {
    "n_components": "--components",
    "groups": "--groups",
    "background_groups": "--background-groups",
    "n_background": "--n-background",
    "n_foreground": "--n-foreground",
    "n_pcs": "--n-pcs",
    "random_state": "--seed",
    "background_scale": "--background-scale",
    "deflation": "--deflation",
    "solver": "--solver",
    "cumulant": "--cumulant",
    "projection": "--projection",
    "scale": "--scale",
    "methods": "--methods",
    "memory_limit": "--memory-limit",
    "missing": "--missing",
    "image_shape": "--image-shape",
    "stability": "--stability",
    "n_resamples": "--stability",
    "device": "--device",
    "overwrite": "--overwrite",
    "key": "--key",
    "metadata": "--drop",
    "layer": "--layer",
    "mask_var": "--mask-var",
    "config": "--config",
    "background_key": "--background-key",
    "labels": "--labels",
    "data": "--data",
    "experiment": "experiment",
    "X": "the foreground",
}

WARNING = "[bold yellow]warning:[/]"


def told(what: object) -> str:
    """An error or a warning as one line, ours with the names of options for those of parameters.

    Parameters
    ----------
    what : object
        Of other packages its text is taken as it is.

    Returns
    -------
    str
    """
    text = what.text(OPTIONS) if isinstance(what, Told) else str(what)
    return " ".join(text.split())


def say(label: str, what: object) -> None:
    """Write one line to the standard error.

    Parameters
    ----------
    label : str
        What it is, with the markup of rich.
    what : object
        An error, a warning or a text.
    """
    err.print(f"{label} {escape(told(what))}".lstrip(), soft_wrap=True, highlight=False)


def print_line(text: str, *, wrap: bool = True) -> None:
    """Write a line of results to the standard output, as it is; beside JSON to the error.

    Parameters
    ----------
    text : str
    wrap : bool
        Whether to break it between words. A path is better left whole.
    """
    _results().print(text, highlight=False, markup=False, soft_wrap=not wrap)


def print_table(table: Any) -> None:
    """Write a table of results to the standard output; beside JSON to the error.

    Parameters
    ----------
    table : rich.table.Table
    """
    _results().print(table)


def _results() -> Console:
    return err if _as_json.get() else out


@contextmanager
def results_as_json(wanted: bool) -> Iterator[None]:
    """Keep the standard output for `print_json`, if that is wanted.

    Parameters
    ----------
    wanted : bool
    """
    token = _as_json.set(wanted)
    try:
        yield
    finally:
        _as_json.reset(token)


def print_json(found: Mapping[str, Any]) -> None:
    """Write one JSON object to the standard output, where --json asks for it.

    Parameters
    ----------
    found : mapping
        Arrays become lists, and numbers that JSON does not have null.
    """
    if _as_json.get():
        text = json.dumps(_plain(found), ensure_ascii=False, allow_nan=False, indent=1)
        out.print(text, highlight=False, markup=False, soft_wrap=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def end_with(error: BaseException) -> typer.Exit:
    """Say an error in one sentence; what ends the command with exit code 2.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    typer.Exit
    """
    say("[bold red]error:[/]", error)
    return typer.Exit(2)


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """One sentence and exit code 2 instead of a traceback, where the input is at fault.

    Parameters
    ----------
    command : callable

    Returns
    -------
    callable
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ContricaError, ValueError, OSError, ImportError, MemoryError) as error:
            raise end_with(error) from error

    return wrapped


class _Spinner(logging.Handler):
    """Shows the library's log messages in a spinner."""

    def __init__(self, status: Any) -> None:
        super().__init__(logging.INFO)
        self.status = status

    def emit(self, record: logging.LogRecord) -> None:
        self.status.update(record.getMessage() + " …")


class _Lines(logging.Handler):
    """Writes the latest log message every few seconds as a line, where nobody sees a spinner."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._latest, self._written = "", ""
        self._start = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        self._latest = record.getMessage()
        if getattr(record, "is_stage", False):
            self._say()

    def _say(self) -> None:
        if self._latest != self._written:
            self._written = self._latest
            say("", f"{time.monotonic() - self._start:.0f} s: {self._latest} …")

    def _write(self) -> None:
        wait = FIRST_LINE
        while not self._over.wait(wait):
            wait = NEXT_LINE
            self._say()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        super().close()


@contextmanager
def _following(first: str) -> Iterator[logging.Handler]:
    """What shows the log: a spinner on a terminal, lines elsewhere."""
    if err.is_terminal:
        with err.status(first + " …") as status:
            yield _Spinner(status)
        return
    handler = _Lines()
    handler.emit(logging.makeLogRecord({"msg": first}))
    try:
        yield handler
    finally:
        handler.close()


@contextmanager
def progress(first: str) -> Iterator[list[dict[str, str]]]:
    """Follow the library's log; warnings are said afterwards, each once.

    Parameters
    ----------
    first : str
        What to show before the library logs anything.

    Yields
    ------
    list of dict
        Code and text of every warning, once the block has ended.
    """
    log = logging.getLogger("contrica")
    level = log.level
    said: list[dict[str, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _following(first) as handler:
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            try:
                yield said
            finally:
                log.removeHandler(handler)
                log.setLevel(level)
    found = {told(each.message): getattr(each.message, "code", "") for each in caught}
    for text, code in found.items():
        said.append({"code": code, "text": text})
        say(WARNING, text)
