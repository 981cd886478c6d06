"""HDF5 files, opened for each pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from contrica.rows.files.shared import bad_file, optional_module, reading

__all__ = ["check_texts", "hdf5_file"]

# How a heap of texts (a "global heap collection") begins: a signature, version 1, three zeros.
HEAP = b"GCOL\x01\x00\x00\x00"
# Bytes to search at a time, and bytes of a heap to read; one is 4096 bytes, or as long as one long text.
WINDOW, MAX_HEAP = 2**22, 2**26


@contextmanager
def hdf5_file(where: str) -> Iterator[Any]:
    """A context with the root of an HDF5 file."""
    h5py = optional_module("h5py", "HDF5 and AnnData files")
    with reading(where, "an HDF5 file"):
        file = h5py.File(where, "r")
    try:
        yield file
    finally:
        file.close()


def check_texts(where: str) -> None:
    """Refuse a file over whose texts the HDF5 library would not end.

    Texts lie in heaps, each after its length. Where free space has length 0, the library stays at that
    place for ever, and nothing can interrupt it. Heaps lie between the arrays, which are not searched.

    Parameters
    ----------
    where : str
    """
    with hdf5_file(where) as file:
        n_bytes = file.id.get_create_plist().get_sizes()[1]
        extents = _extents(file)
    with open(where, "rb") as stream:
        for start, stop in _between(extents, Path(where).stat().st_size):
            for place in _heaps(stream, start, stop):
                if _is_endless(stream, place, n_bytes):
                    raise bad_file(
                        "damaged",
                        where,
                        f"is damaged at byte {place}: its texts have no end",
                        remedy="Make or copy it anew.",
                    )


def _extents(file: Any) -> list[tuple[int, int]]:
    """First and last bytes of the arrays in a file, as far as they can be found."""
    found: list[tuple[int, int]] = []

    def visit(_: str, node: Any) -> None:
        if not hasattr(node, "chunks"):
            return
        if node.chunks is None:
            start = node.id.get_offset()
            if start is not None:
                found.append((start, start + node.id.get_storage_size()))
        elif hasattr(node.id, "chunk_iter"):  # not with HDF5 libraries before 1.12.3
            node.id.chunk_iter(
                lambda chunk: found.append((chunk.byte_offset, chunk.byte_offset + chunk.size))
            )

    with suppress(Exception):  # what is damaged here is told where it is read, or not needed
        file.visititems(visit)
    return found


def _between(extents: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """What is left of a file outside of some parts of it."""
    place = 0
    for start, stop in sorted(extents):
        if place < start:
            yield place, min(start, size)
        place = max(place, stop)
    if place < size:
        yield place, size


def _heaps(stream: BinaryIO, start: int, stop: int) -> Iterator[int]:
    """Where heaps begin in a part of a file."""
    while start < stop:
        stream.seek(start)
        part = stream.read(min(WINDOW, stop - start))
        found = part.find(HEAP)
        while found >= 0:
            yield start + found
            found = part.find(HEAP, found + 1)
        if len(part) <= len(HEAP):
            return
        start += len(part) - len(HEAP) + 1  # one may begin in this part and end in the next


def _is_endless(stream: BinaryIO, place: int, n_bytes: int) -> bool:
    """Whether an object of a heap takes no space, so that the next one is itself."""
    stream.seek(place + len(HEAP))
    size = int.from_bytes(stream.read(n_bytes), "little")
    stream.seek(place)
    heap = stream.read(min(size, MAX_HEAP))
    head = 8 + n_bytes  # an index, a count of references, four zeros, and the length
    position = head
    while position + head <= len(heap):
        index = heap[position : position + 2]
        length = int.from_bytes(heap[position + 8 : position + head], "little")
        # free space has index 0 and counts its own head
        step = length if index == b"\0\0" else head + -(-length // 8) * 8
        if step % 2 ** (8 * n_bytes) == 0:
            return True
        position += step
    return False
