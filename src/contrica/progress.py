"""Progress of long calls: lines of the log, and a bar of tqdm for who asks for one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from contrica.errors import PackageMissingError

__all__ = ["check_verbose", "counted", "steps", "watched"]

logger = logging.getLogger("contrica")

Item = TypeVar("Item")

# Who is told of every step; of each thread its own.
_watcher: ContextVar[Callable[[int, int, str], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(call: Callable[[int, int, str], None]) -> Iterator[None]:
    """Tell a function of every step that is made in a block; one that raises ends the work.

    Parameters
    ----------
    call : callable
        With the number of the step, from 1, how many there are, and of what.

    Examples
    --------
    >>> with watched(lambda number, count, what: print(f"{number} of {count} {what}")):
    ...     found = list(counted("ab", 2, "letters"))
    1 of 2 letters
    2 of 2 letters
    """
    token = _watcher.set(call)
    try:
        yield
    finally:
        _watcher.reset(token)


def counted(items: Iterable[Item], count: int, what: str) -> Iterator[Item]:
    """Items one by one, each of which is told to whoever watches and to nobody else.

    Parameters
    ----------
    items : iterable
    count : int
        How many there are.
    what : str

    Yields
    ------
    object
    """
    call = _watcher.get()
    for i, item in enumerate(items, start=1):
        yield item
        if call is not None:
            call(i, count, what)


def check_verbose(verbose: bool) -> None:
    """Refuse a bar that cannot be shown, before the work begins.

    Parameters
    ----------
    verbose : bool
    """
    if verbose:
        _bar()


def _bar() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "a progress bar needs tqdm",
            remedy="Install it: pip install tqdm. Or leave `verbose` out: the log has progress too.",
            parameter="verbose",
        ) from error
    return tqdm


def steps(
    items: Iterable[Item], count: int, task: str, what: str, *, verbose: bool = False
) -> Iterator[Item]:
    """Items one by one; every tenth part of them is a line in the log, such as "task: 10 of 100 what".

    Parameters
    ----------
    items : iterable
    count : int
        How many there are.
    task, what : str
        What is being done, and with what.
    verbose : bool
        Whether to show a bar of tqdm, in a terminal or a notebook.

    Yields
    ------
    object

    Examples
    --------
    >>> list(steps("ab", 2, "reading", "letters"))
    ['a', 'b']
    """
    shown = _bar()(items, total=count, desc=f"{task}, {what}") if verbose else items
    shown = counted(shown, count, what)
    for i, item in enumerate(shown, start=1):
        yield item
        if i % max(count // 10, 1) == 0:
            logger.info("%s: %d of %d %s", task, i, count, what)
