"""Files and folders that appear under their name only when they are complete.

They are written beside their place under a name of ours, and renamed. A folder that is overwritten is
written anew with links to what others have put there, and then both folders change places in one step;
so whenever a process is killed, the folder is the old one or the new one. What a killed process leaves
under a name of ours, the next one that writes there removes.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from contrica.errors import FoundFileError, unmarked

__all__ = ["output_file", "output_folder"]

# What is between the name of an output and the random part of a temporary name. A folder that was moved
# out of the way is under the second.
NEW, OLD = ".contrica-new-", ".contrica-old-"


@contextmanager
def output_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary file that becomes ``path`` only when the block ends without an error.

    Parameters
    ----------
    path : path
    overwrite : bool
        Whether a file of that name may be replaced; otherwise it is refused.

    Yields
    ------
    Path
        Of the temporary file.
    """
    path = Path(path)
    if path.is_dir():
        raise FoundFileError(
            "is-a-folder",
            f"{unmarked(path)} is a folder",
            remedy="Name a file for the output.",
            filename=path,
        )
    if path.exists() and not overwrite:
        raise _exists(path, "file")
    nearest = _nearest_folder(path)
    _remove_leftovers(nearest, path.name)
    name: str | None = None
    try:
        with _uninterrupted():
            handle, name = tempfile.mkstemp(
                prefix=f".{path.name}{NEW}", suffix=path.suffix, dir=nearest
            )
        with _in_use(handle):
            yield Path(name)
            os.chmod(name, 0o644)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(name, path)
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


@contextmanager
def output_folder(
    path: str | Path, *, overwrite: bool = False, ours: Iterable[str] = ()
) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` only when the block ends without an error.

    Parameters
    ----------
    path : path
    overwrite : bool
        Whether a folder of that name may be replaced. What was written anew takes the place of files of
        the same name, and others stay, but for ``ours``. Otherwise it is refused.
    ours : iterable of str
        Names of files that an earlier run may have written, ``*`` for anything: those that are not
        written anew are removed, so that the folder never mixes two runs.

    Yields
    ------
    Path
        Of the temporary folder.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FoundFileError(
            "is-a-file",
            f"{unmarked(path)} exists and is a file",
            remedy="Name a folder for the output.",
            filename=path,
        )
    place = path.resolve()  # a link stays one
    nearest = _nearest_folder(place)
    _put_back(nearest, place)
    if path.exists() and not overwrite:
        raise _exists(path, "folder")
    _remove_leftovers(nearest, place.name)
    temporary: Path | None = None
    try:
        with _uninterrupted():
            temporary = Path(tempfile.mkdtemp(prefix=f".{place.name}{NEW}", dir=nearest))
        with _in_use(temporary):
            yield temporary
            if place.exists():
                _replace_folder(temporary, place, tuple(ours))
            else:
                temporary.chmod(0o755)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.rename(temporary, place)
    finally:
        if temporary is not None:
            with _uninterrupted():
                shutil.rmtree(temporary, ignore_errors=True)


# --- one folder in place of another ---


def _replace_folder(new: Path, place: Path, ours: tuple[str, ...]) -> None:
    """Let the new folder, with what others have put into the old one, change places with it."""
    written = {file.name for file in new.iterdir()}
    for name in written:
        if (place / name).is_dir() and not (place / name).is_symlink():
            raise FoundFileError(
                "is-a-folder",
                f"{unmarked(place / name)} is a folder",
                "a file of that name is to be written",
                "Move it, or name another folder for the output.",
                filename=place / name,
            )
    for file in _foreign(place, written, ours):
        _link(file, new / file.name)
    shutil.copymode(place, new)
    old = new if _exchanged(new, place) else _renamed(new, place)
    if old is None:
        _replace_files(new, place, written, ours)
        return
    # what others have written since
    for file in _foreign(old, {each.name for each in place.iterdir()}, ours):
        os.rename(file, place / file.name)
    with _uninterrupted():
        shutil.rmtree(old, ignore_errors=True)


def _foreign(folder: Path, written: set[str], ours: tuple[str, ...]) -> list[Path]:
    """What is in a folder and neither written anew nor by an earlier run."""
    return [
        file
        for file in folder.iterdir()
        if file.name not in written
        and (_is_folder(file) or not any(fnmatch(file.name, name) for name in ours))
    ]


def _is_folder(file: Path) -> bool:
    return file.is_dir() and not file.is_symlink()


def _link(file: Path, other: Path) -> None:
    """The same file under another name, or a copy where a file system knows no links."""
    if _is_folder(file):
        other.mkdir()
        for part in file.iterdir():
            _link(part, other / part.name)
        shutil.copystat(file, other)
        return
    try:
        os.link(file, other, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(file, other, follow_symlinks=False)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change places in one step of the system's; False where it cannot.

    Python has no call for it. Two renames one after the other leave a moment without a folder.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):  # another C library
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    names = (os.fsencode(path.absolute()) for path in (one, other))
    return bool(call(here, next(names), here, next(names), exchange) == 0)


def _renamed(new: Path, place: Path) -> Path | None:
    """By two renames; where the old folder is now. None where it cannot be renamed: a mount point."""
    old = new.with_name(new.name.replace(NEW, OLD))
    try:
        os.rename(place, old)
        os.rename(new, place)
    except BaseException as error:
        if old.exists() and not place.exists():
            os.rename(old, place)
        busy = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM)
        if isinstance(error, OSError) and error.errno in busy:
            return None
        raise
    return old


def _replace_files(new: Path, place: Path, written: set[str], ours: tuple[str, ...]) -> None:
    """File by file, where a folder cannot be renamed."""
    foreign = {file.name for file in _foreign(place, written, ours)}
    for name in written:
        shutil.move(new / name, place / name)
    for file in place.iterdir():
        if file.name not in written | foreign:
            file.unlink(missing_ok=True)


# --- what a killed process leaves ---


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put signals off that raise an exception, until the end of a block that takes a moment."""
    waiting: list[tuple[int, Any]] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM)
        handlers = {number: signal.getsignal(number) for number in numbers}
        handlers = {number: own for number, own in handlers.items() if callable(own)}
    try:
        for number in handlers:
            signal.signal(number, lambda *signalled: waiting.append(signalled))
        yield
    finally:
        for number, own in handlers.items():
            signal.signal(number, own)
    for number, frame in waiting[:1]:
        handlers[number](number, frame)


@contextmanager
def _in_use(file: int | Path) -> Iterator[None]:
    """Lock a file or a folder until the block, or the process, ends; where there are locks."""
    handle = file if isinstance(file, int) else _opened(file)
    if handle is not None and not _locked(handle):
        os.close(handle)  # Windows renames no file that is open
        handle = None
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return None


def _locked(handle: int) -> bool:
    """Lock what is open, if nobody else has; False where that, or locks at all, cannot be known."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _put_back(nearest: Path, place: Path) -> None:
    """A folder that was moved out of the way by a process that was killed then."""
    if not place.exists() and nearest == place.parent:
        for old in _ours(nearest, place.name, OLD):
            os.rename(old, place)
            return


def _remove_leftovers(nearest: Path, name: str) -> None:
    """What processes that were killed have left under a name of ours; nobody has it locked."""
    for path in (*_ours(nearest, name, NEW), *_ours(nearest, name, OLD)):
        handle = _opened(path)
        if handle is None:
            continue
        try:
            if _locked(handle):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError:
            pass  # another process was faster
        finally:
            os.close(handle)


def _ours(nearest: Path, name: str, infix: str) -> list[Path]:
    return sorted(nearest.glob(f".{glob.escape(name)}{infix}*"))


def _exists(path: Path, kind: str) -> FoundFileError:
    return FoundFileError(
        "exists",
        f"{unmarked(path)} exists already",
        remedy=f"Name another {kind}, or pass `overwrite`.",
        parameter="overwrite",
        filename=path,
    )


def _nearest_folder(path: Path) -> Path:
    """The nearest folder that exists: parents are made only once there is something to put there."""
    return next(parent for parent in path.absolute().parents if parent.is_dir())
