"""Arrays and a header in one npz file with checksums: what models and sums are saved as; no pickle.

The header is json. It lists every array by dtype, shape and SHA-256 of its name and content, and an array
``seal`` has the SHA-256 of the header. So a flipped bit, a swapped, added or lost array shows. Files of
earlier versions have no checksums; there zip's own, and that sizes agree, are all that can be checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from contrica._version import __version__
from contrica.errors import FileError, FileMissingError, MemoryBudgetError, unmarked
from contrica.output import output_file

__all__ = ["SCHEMA", "Archive", "FileKind", "read_archive", "write_archive"]

# Number of the layout of these files; 1 had no checksums.
SCHEMA = 2
SEAL = "seal"
# Deflate makes at most so many bytes of one. Arrays larger than this together must not be made of much
# fewer bytes in the file: numbers that were measured do not shrink like that.
MAX_DEFLATED, LARGE_BYTES, MAX_RATIO = 1040, 2**28, 100
# Bytes of the header, and of the description in front of an array.
MAX_HEADER, MAX_DESCRIPTION = 2**26, 2**16


class FileKind(NamedTuple):
    """What a file is to hold, for errors.

    Attributes
    ----------
    header : str
        Name of the array that is the header.
    code : str
        Of the error for another file.
    what : str
        Such as "a model saved by contrica".
    remedy : str
        What to give instead.
    """

    header: str
    code: str
    what: str
    remedy: str


class Archive(NamedTuple):
    """What `read_archive` found.

    Attributes
    ----------
    header : dict
    arrays : dict of ndarray
    is_sealed : bool
        Whether there were checksums, all of which were right.
    """

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    is_sealed: bool


def write_archive(
    path: str | Path,
    kind: FileKind,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    compressed: bool = True,
) -> None:
    """Write a header and arrays with their checksums; the file is complete or not there.

    Parameters
    ----------
    path : path
    kind : FileKind
    header : mapping
        What json can write.
    arrays : mapping of ndarray
        Numbers or text, and no objects.
    compressed : bool
    """
    members = {
        name: [array.dtype.str, list(array.shape), _checksum(name, array)]
        for name, array in arrays.items()
    }
    about = {"schema": SCHEMA, "version": __version__, **header, "arrays": members}
    text = json.dumps(about)
    stored = {
        kind.header: np.array(text),
        SEAL: np.array(hashlib.sha256(text.encode()).hexdigest()),
        **arrays,
    }
    write: Any = np.savez_compressed if compressed else np.savez
    with output_file(path, overwrite=True) as temporary, open(temporary, "wb") as file:
        write(file, **stored)


def _checksum(name: str, array: np.ndarray) -> str:
    found = hashlib.sha256(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
    found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def read_archive(path: str | Path, kind: FileKind) -> Archive:
    """Read what `write_archive`, or an earlier version, wrote, and check it before it is used.

    Parameters
    ----------
    path : path
    kind : FileKind

    Returns
    -------
    Archive

    Raises
    ------
    FileError
        With the kind's code for another file, "damaged" for one that was changed since, and "newer" for
        one of a later version.
    FileMissingError
    MemoryBudgetError
        Where the arrays, which are there, are too large.
    """
    path = Path(path)
    if not path.is_file():
        raise _missing(path)
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as zipped:
            sizes = _checked_sizes(path, kind, zipped)
            header = _header(path, kind, zipped, sizes)
            arrays = {
                name: _array(zipped, info) for name, info in sizes.items() if name != kind.header
            }
    except (FileError, PermissionError):
        raise
    except MemoryError as error:
        raise MemoryBudgetError(
            "memory",
            f"{unmarked(path)} takes more memory than is free",
            remedy="Free some, or use a larger machine.",
            parameter="path",
        ) from error
    except Exception as error:  # whatever the readers of zip, npy and json make of other bytes
        raise _other(path, kind) from error
    return _unsealed(path, header, arrays)


def _missing(path: Path) -> FileMissingError:
    folder = path.is_dir()
    return FileMissingError(
        "is-a-folder" if folder else "missing",
        f"{unmarked(path)} {'is a folder' if folder else 'does not exist'}",
        remedy="Name the file in it." if folder else "Check the path.",
        parameter="path",
        filename=path,
    )


def _other(path: Path, kind: FileKind) -> FileError:
    return FileError(
        kind.code,
        f"{unmarked(path)} is not {kind.what}, or is damaged",
        remedy=kind.remedy,
        parameter="path",
    )


def _damaged(path: Path, why: str) -> FileError:
    return FileError(
        "damaged",
        f"{unmarked(path)} is damaged, or was changed since it was saved: {unmarked(why)}",
        remedy="Save it again, or copy it anew.",
        parameter="path",
    )


def _checked_sizes(
    path: Path, kind: FileKind, zipped: zipfile.ZipFile
) -> dict[str, zipfile.ZipInfo]:
    """Members by name, none of which promises more than the bytes of the file can hold."""
    infos = zipped.infolist()
    names = [info.filename.removesuffix(".npy") for info in infos]
    if kind.header not in names:
        raise _other(path, kind)
    if len(set(names)) < len(names):
        raise _damaged(path, "two of its arrays have one name")
    there = path.stat().st_size
    for name, info in zip(names, infos, strict=True):
        plain = info.compress_type == zipfile.ZIP_STORED
        known = plain or info.compress_type == zipfile.ZIP_DEFLATED
        most = info.compress_size if plain else MAX_DEFLATED * (info.compress_size + 1)
        if not known or info.compress_size > there or info.file_size > most:
            raise _damaged(path, f"{name!r} says that it is larger than it can be")
    total = sum(info.file_size for info in infos)
    if total > max(LARGE_BYTES, MAX_RATIO * there):
        raise _damaged(path, f"its {there} bytes would become {total}")
    return dict(zip(names, infos, strict=True))


def _header(
    path: Path, kind: FileKind, zipped: zipfile.ZipFile, sizes: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    if sizes[kind.header].file_size > MAX_HEADER:
        raise _damaged(path, "its header is too long")
    text = str(_array(zipped, sizes[kind.header]))
    about = json.loads(text)
    if not isinstance(about, dict):
        raise _other(path, kind)
    schema = about.get("schema", 1)
    if schema == 1:
        return about
    if isinstance(schema, int) and schema > SCHEMA:
        raise FileError(
            "newer",
            f"{unmarked(path)} was saved by contrica {unmarked(about.get('version'))}",
            f"this is contrica {__version__}, which does not know its layout",
            "Install that version or a later one.",
            "path",
        )
    seal = str(_array(zipped, sizes[SEAL])) if SEAL in sizes else ""
    if seal != hashlib.sha256(text.encode()).hexdigest():
        raise _damaged(path, "its header is not the one that was saved")
    return about


def _array(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """An array whose shape agrees with its bytes, for which no memory is taken before that is known."""
    stream: Any
    with zipped.open(info) as stream:
        version = npy.read_magic(stream)
        read: Any = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, order, dtype = read(stream, max_header_size=MAX_DESCRIPTION)
        n_bytes = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or stream.tell() + n_bytes != info.file_size:
            raise ValueError("another size than its shape says")
        content, filled = np.empty(n_bytes, dtype=np.uint8), 0
        while count := stream.readinto(content[filled:].data):
            filled += count
        if filled != n_bytes or stream.read(1):  # at the end zip compares its own checksum
            raise ValueError("cut short")
    return content.view(dtype).reshape(shape, order="F" if order else "C")


def _unsealed(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Archive:
    """Header and arrays without what was written to check them, once they are."""
    if header.get("schema", 1) == 1:
        return Archive(header, arrays, False)
    arrays = {name: array for name, array in arrays.items() if name != SEAL}
    members = header["arrays"]
    for name in members.keys() ^ arrays.keys():
        fate = "is missing" if name in members else "was added"
        raise _damaged(path, f"the array {name!r} {fate}")
    for name, array in arrays.items():
        found = [array.dtype.str, list(array.shape), _checksum(name, array)]
        if found != members[name]:
            raise _damaged(path, f"the array {name!r} is not the one that was saved")
    return Archive(header, arrays, True)
