"""Files and folders that appear under their name only when they are complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from contrica.errors import FoundFileError, unmarked

__all__ = ["output_file", "output_folder"]


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
    handle, name = tempfile.mkstemp(
        prefix=f".{path.stem}-", suffix=path.suffix, dir=_nearest_folder(path)
    )
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(name, path)
    finally:
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
        Whether a folder of that name may be written to: files that were written anew replace those of
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
    if path.exists() and not overwrite:
        raise _exists(path, "folder")
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=_nearest_folder(path)))
    try:
        yield temporary
        if path.exists():
            written = {file.name for file in temporary.iterdir()}
            for name in written:
                os.replace(temporary / name, path / name)
            for file in [file for name in ours for file in path.glob(name)]:
                if file.name not in written:
                    file.unlink(missing_ok=True)
        else:
            temporary.chmod(0o755)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
