"""Where real datasets lie: a folder of the user's, or files fetched once and checked."""

from __future__ import annotations

import csv
import os
import zipfile
import zlib
from pathlib import Path

from contrica.errors import FileError, FileMissingError, PackageMissingError, unmarked

__all__ = ["UNREADABLE", "data_folder", "fetch", "find_file"]

# Public originals with a stable address: name, address, sha256.
PUBLIC = {
    "mnist.npz": (
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
        "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    ),
}


# What reading a file that is damaged, or another one than expected, can raise.
UNREADABLE = (
    *(KeyError, ValueError, IndexError, TypeError, OSError, EOFError),
    *(zipfile.BadZipFile, zlib.error, csv.Error),
)


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder of real datasets: the one given, or the one that CONTRICA_DATA names.

    Parameters
    ----------
    folder : path, optional

    Returns
    -------
    Path

    Raises
    ------
    FileMissingError
        If neither is there.
    """
    named = folder if folder is not None else os.environ.get("CONTRICA_DATA")
    if not named:
        raise FileMissingError(
            "no-data-folder",
            "no folder of datasets is known",
            remedy="Give its path as `data`, or set the environment variable CONTRICA_DATA.",
            parameter="data",
        )
    if not Path(named).is_dir():
        raise FileMissingError(
            "no-data-folder",
            f"the folder of datasets {unmarked(named)} does not exist",
            remedy="Check the path.",
            parameter="data",
            filename=named,
        )
    return Path(named)


def find_file(folder: str | Path | None, *places: str, what: str, source: str) -> Path:
    """The first of several places under the data folder where a file or folder exists.

    Parameters
    ----------
    folder : path, optional
        See `data_folder`.
    *places : str
        Relative paths, tried in order.
    what : str
        What is looked for, in words.
    source : str
        Where it can be had.

    Returns
    -------
    Path

    Raises
    ------
    FileMissingError
        Naming the file to put, and where.
    """
    try:
        root = data_folder(folder)
    except FileMissingError as error:
        raise FileMissingError(
            error.code,
            f"missing: {what}, since {error.got}",
            remedy=f"{error.remedy} In that folder, put {' or '.join(places)} ({source}).",
            parameter=error.parameter,
            filename=error.filename,
        ) from None
    for place in places:
        if (root / place).exists():
            return root / place
    raise FileMissingError(
        "data-missing",
        f"missing: {what}",
        remedy=f"Put {' or '.join(places)} into {unmarked(root)}; available from {source}.",
        filename=root / places[0],
    )


def fetch(name: str) -> Path:
    """Download a public file once, check it by its checksum, and keep it in the user's cache.

    Parameters
    ----------
    name : {"mnist.npz"}

    Returns
    -------
    Path

    Raises
    ------
    PackageMissingError
        Without pooch.
    FileMissingError
        Without network; the message says which file to put where.
    FileError
        If the file that was downloaded is not the one expected.
    """
    address, checksum = PUBLIC[name]
    try:
        import pooch
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "downloads need pooch",
            remedy="Install it: pip install 'contrica[data]'.",
        ) from error
    cache = Path(os.environ.get("CONTRICA_CACHE") or pooch.os_cache("contrica"))
    pooch.get_logger().setLevel("WARNING")
    try:
        found = pooch.retrieve(
            address, known_hash=f"sha256:{checksum}", fname=name, path=cache, progressbar=False
        )
    except ValueError as error:
        raise FileError(
            "checksum",
            f"what was downloaded from {address} is not the file expected: its sha256 is not {checksum}",
            remedy=f"Try again later, or put the right {name} into {cache}.",
        ) from error
    except OSError as error:  # requests' errors are
        raise FileMissingError(
            "data-missing",
            f"{address} could not be reached ({type(error).__name__})",
            remedy=f"Put {name} into {cache}, or into the folder mnist of your data folder.",
        ) from error
    return Path(found)
