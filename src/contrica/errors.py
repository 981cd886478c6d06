"""Every exception and every warning of contrica: classes with fields, and nothing else.

A message says what was given, what is needed and what to do: ``{got}, but {needed}. {remedy}``. Names of
parameters stand between backquotes, with a value where one belongs there: ``Lower `n_pcs`.`` or
``Use `deflation=thin`.`` As text the quotes go, ``deflation="thin"``; the shell puts its options in their
place, ``--deflation thin``, by `Told.text`. Text from elsewhere, such as a path, goes through `unmarked`.
Programs look at the class, at ``code`` and at ``parameter``.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import sklearn
from sklearn.exceptions import ConvergenceWarning as _NotConverged

__all__ = [
    "ClusterLostError",
    "ContricaError",
    "ContricaWarning",
    "ConvergenceWarning",
    "DataError",
    "DataTypeError",
    "DelicateDataWarning",
    "FeaturesError",
    "FileError",
    "FileMissingError",
    "FoundFileError",
    "GroupWarning",
    "GroupsError",
    "IdentifiabilityWarning",
    "InputError",
    "IterationError",
    "MemoryBudgetError",
    "PackageMissingError",
    "ParameterError",
    "ParameterWarning",
    "PatternWarning",
    "Told",
    "collected",
    "unmarked",
    "warn",
]


# Whether warnings are left out: of one thread, unlike the filters of `warnings`.
# What a shell writes for an empty text.
QUOTES = '""'


class Told:
    """What an exception or a warning says, in fields.

    Parameters
    ----------
    code : str
        What it is about, in a few words with hyphens: the same in every release.
    got : str
        What was given: the beginning of a sentence.
    needed : str
        What is needed, after "but"; empty where ``got`` says it.
    remedy : str
        What to do: sentences.
    parameter : str, optional
        Name of the parameter, or of the dataset, that it is about.

    Examples
    --------
    >>> told = ParameterError(
    ...     "too-large", "`n_pcs=9` is more than the 5 variables", remedy="Lower `n_pcs`."
    ... )
    >>> str(told)
    'n_pcs=9 is more than the 5 variables. Lower n_pcs.'
    >>> told.text({"n_pcs": "--n-pcs"})
    '--n-pcs 9 is more than the 5 variables. Lower --n-pcs.'
    """

    def __init__(
        self, code: str, got: str, needed: str = "", remedy: str = "", parameter: str | None = None
    ) -> None:
        self.code, self.parameter = code, parameter
        self.got, self.needed, self.remedy = got, needed, remedy
        # what pickle makes it of again
        super().__init__(code, got, needed, remedy, parameter)  # type: ignore[call-arg]

    def text(self, options: Mapping[str, str] | None = None) -> str:
        """The message, with the names that somebody else has for the parameters.

        Parameters
        ----------
        options : mapping, optional
            Names of parameters to names of options. The others stay as they are.

        Returns
        -------
        str
        """
        sentence = self.got + (f", but {self.needed}" if self.needed else "")
        parts = f"{sentence}. {self.remedy}".strip().split("`")
        # every other part stood between quotes
        parts[1::2] = [_named(part, options or {}) for part in parts[1::2]]
        return "".join(parts)

    def __str__(self) -> str:
        return self.text()


def _named(part: str, options: Mapping[str, str]) -> str:
    """``name`` or ``name=value`` as Python, or as the option of that name, writes it."""
    name, equals, value = part.partition("=")
    if name in options:
        return f"{options[name]} {value or QUOTES}" if equals else options[name]
    if not equals:
        return name
    return f"{name}={value}" if _is_plain(value) else f'{name}="{value}"'


def _is_plain(value: str) -> bool:
    """Whether Python writes a value without quotes: a number, a constant, a list or a tuple."""
    if value in ("None", "True", "False", "...") or value.startswith(("[", "(")):
        return True
    try:
        float(value)
    except ValueError:
        return False
    return True


def unmarked(text: object) -> str:
    """Text from elsewhere without backquotes, which mark parameters in messages.

    Parameters
    ----------
    text : object

    Returns
    -------
    str
    """
    return str(text).replace("`", "'")


class ContricaError(Told, Exception):
    """What all exceptions of contrica are."""


class InputError(ContricaError, ValueError):
    """Something that was passed cannot be used."""


class ParameterError(InputError):
    """A parameter has a value that it cannot have, or that does not go with the others."""


class DataError(InputError):
    """Rows cannot be used: their shape, their kind, or the numbers in them."""


class FeaturesError(DataError):
    """Two datasets, or a model and a dataset, are not over the same variables in the same order."""


class GroupsError(DataError):
    """Labels of groups do not fit the rows."""


class IterationError(DataError, TypeError):
    """Rows cannot be read as often as they are needed."""


class DataTypeError(DataError, TypeError):
    """Rows are of a type that no table can be made of."""


class FileError(InputError):
    """A file does not hold what it should, or holds what cannot be used."""


class _PathError(ContricaError, OSError):
    """An error about a path, with the fields that the system's own errors have.

    Parameters
    ----------
    code, got, needed, remedy, parameter
        As of `Told`.
    filename : path, optional
        The path, where there is one.
    """

    _number: ClassVar[int]

    def __init__(
        self,
        code: str,
        got: str,
        needed: str = "",
        remedy: str = "",
        parameter: str | None = None,
        filename: object = None,
    ) -> None:
        super().__init__(code, got, needed, remedy, parameter)
        # OSError takes the first of several arguments for its number, and the third for a path
        self.args = code, got, needed, remedy, parameter
        self.errno, self.strerror = self._number, os.strerror(self._number)
        self.filename = None if filename is None else str(filename)
        self.filename2 = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.filename), vars(self)


class FileMissingError(_PathError, FileNotFoundError):
    """There is no such file or folder."""

    _number = errno.ENOENT


class FoundFileError(_PathError, FileExistsError):
    """There is a file, or a folder, where one should be written."""

    _number = errno.EEXIST


class MemoryBudgetError(ContricaError, MemoryError):
    """What was asked for would take more memory than there is, or than ``memory_limit`` allows."""


class PackageMissingError(ContricaError, ImportError):
    """A package that only some of contrica needs is not installed."""


class ClusterLostError(ContricaError, RuntimeError):
    """The workers or the scheduler of a dask cluster were lost, and with them the sums so far."""


class ContricaWarning(Told, UserWarning):
    """What all warnings of contrica are."""


class IdentifiabilityWarning(ContricaWarning):
    """The ranks asked for exceed what the paper's statements guarantee to be unique."""


class ParameterWarning(ContricaWarning):
    """A parameter has no effect, given the others or given the data."""


class PatternWarning(ContricaWarning):
    """Patterns were found, but some are doubtful: tied, floored, fewer than asked or weak."""


class GroupWarning(ContricaWarning):
    """Groups of rows limit what can be said: too few of them, or one or two carry a pattern."""


class DelicateDataWarning(ContricaWarning):
    """The data can be fitted, but something about them limits what the fit can say."""


class ConvergenceWarning(ContricaWarning, _NotConverged):
    """A search ended before it had converged."""


def _forward(path: object) -> str:
    """A path with forward slashes, on Windows too."""
    return str(path).replace("\\", "/")


def _folder(file: object) -> str:
    """The folder of a file with a slash at its end, so that no other folder begins with it."""
    return _forward(file).rpartition("/")[0] + "/"


# Frames of these folders are never the user's.
_NOT_THE_USERS = (_folder(__file__), _folder(sklearn.__file__))


# Where warnings go instead of to the user; of each thread its own.
_collecting: ContextVar[tuple[tuple[type, ...], list[Any]] | None] = ContextVar(
    "collecting", default=None
)


@contextmanager
def collected(*kinds: type[ContricaWarning]) -> Iterator[list[Any]]:
    """Keep what contrica warns of in a block from the user, in a list.

    Filters of `warnings` belong to all threads: `warnings.catch_warnings` around a fit would change them
    for fits in other threads, and, where those overlap, for good.

    Parameters
    ----------
    *kinds : class of ContricaWarning
        Which ones; all by default. Others are given as usual.

    Yields
    ------
    list of ContricaWarning
        Those so far.

    Examples
    --------
    >>> with collected() as found:
    ...     warn(ParameterWarning("no-effect", "`tol` had no effect"))
    >>> found[0].code
    'no-effect'
    """
    found: list[Any] = []
    token = _collecting.set((kinds or (ContricaWarning,), found))
    try:
        yield found
    finally:
        _collecting.reset(token)


def warn(warning: ContricaWarning) -> None:
    """Warn at the line of the caller's own code, however deep in the library the warning arose.

    Parameters
    ----------
    warning : ContricaWarning
    """
    waiting = _collecting.get()
    if waiting is not None and isinstance(warning, waiting[0]):
        waiting[1].append(warning)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def _is_ours(filename: Any) -> bool:
    return _forward(filename).startswith(_NOT_THE_USERS)
