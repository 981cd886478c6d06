"""Rows taken to a device: as a whole where it has room, block by block where it has not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import (
    MemoryBudgetError,
    PackageMissingError,
    ParameterError,
    ParameterWarning,
    unmarked,
    warn,
)
from contrica.rows.compressed import CompressedParts, CompressedRows
from contrica.rows.device import (
    Rounding,
    TensorRows,
    namespace,
    single_precision,
)
from contrica.rows.memory import readable_bytes
from contrica.rows.protocol import MOVED_BLOCK_BYTES, Rows, block_rows, iterate_blocks, width_of
from contrica.rows.sparse import BackedSparseRows, SparseRows

__all__ = [
    "MovedCompressedRows",
    "MovedRows",
    "card",
    "check_device",
    "check_one_device",
    "copies_fit",
    "fit_blocks",
    "has_room_on_card",
    "is_on_card",
    "on_device",
    "room_on_card",
    "rows_pay_on_card",
    "settle_on",
    "there",
    "work_on",
]

# Data are kept on a device as a whole where they take at most this share of its free memory; while they
# are put together they are there twice.
DEVICE_SHARE = 0.3
# Blocks that there must be room for: two on their way, and what is made of them.
MIN_BLOCKS = 8
# Blocks of tensors that are on a card already are smaller where little of its memory is free, but not
# smaller than this.
MIN_BLOCK_BYTES = 2**25
# Entries of rows below which the CPU has gone through them before a card has begun.
MIN_CARD_ENTRIES = 100_000
# Names that torch has for devices with memory of their own, and numbers of them.
DEVICES = r"(cpu|cuda|mps|xpu|hip|xla|hpu)(:\d+)?"


class Device(NamedTuple):
    """How arrays get to a device.

    Attributes
    ----------
    move : callable
        Takes an array of numpy there, in its own precision or in the one given.
    move_beside : callable
        The same while other work goes on there, called in a thread of its own.
    free : float
        Bytes that are free there.
    """

    move: Callable[..., Any]
    move_beside: Callable[..., Any]
    free: float


class MovedRows(Rows):
    """Rows whose blocks are moved to a device, or to another precision, as they are read."""

    def __init__(self, rows: np.ndarray | Rows, move: Callable[[Any], Any], on_gpu: bool) -> None:
        self._rows, self._move, self._on_gpu = rows, move, on_gpu
        self.shape = (rows.shape[0], rows.shape[1])
        self.block_bytes = MOVED_BLOCK_BYTES if on_gpu else None

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        blocks = iterate_blocks(self._rows, n_rows)
        return _ahead(self._move, blocks) if self._on_gpu else map(self._move, blocks)


class MovedCompressedRows(Rows):
    """Compressed rows of the host that are moved to a device in parts, in each pass.

    Parameters
    ----------
    rows : SparseRows or BackedSparseRows
    move : callable
        Takes an array there.
    scale : ndarray of shape (p,), optional
        What the variables are divided by.
    """

    block_bytes = MOVED_BLOCK_BYTES

    def __init__(
        self,
        rows: SparseRows | BackedSparseRows,
        move: Callable[[Any], Any],
        scale: np.ndarray | None = None,
    ) -> None:
        self._rows, self._move, self._scale = rows, move, scale
        self.shape = (rows.shape[0], rows.shape[1])

    def _moved(self, n_rows: int) -> Iterator[CompressedRows]:
        """Some rows after others, on the device."""
        ends = pairwise([*range(0, len(self), n_rows), len(self)])
        cuts = (self._rows.cut(start, stop) for start, stop in ends)
        moved = _ahead(partial(_moved_parts, self._move), cuts)
        return moved if self._scale is None else (part.divided(self._scale) for part in moved)

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        for part in self._moved(n_rows):
            yield from part.blocks(n_rows)

    def pieces(self) -> Iterator[Any]:
        """Consecutive compressed blocks."""
        for part in self._moved(block_rows(self.shape[1], self)):
            yield from part.pieces()

    def pieces_both_ways(self) -> Iterator[tuple[Any, Any]]:
        """The pieces, each with its transpose in compressed rows."""
        for part in self._moved(block_rows(self.shape[1], self)):
            yield from part.pieces_both_ways()

    def divided(self, scale: np.ndarray) -> MovedCompressedRows:
        """The same with every variable divided by a number.

        Parameters
        ----------
        scale : ndarray of shape (p,)

        Returns
        -------
        MovedCompressedRows
        """
        whole = scale if self._scale is None else self._scale * scale
        return MovedCompressedRows(self._rows, self._move, whole)


def _moved_parts(move: Callable[[Any], Any], cut: Any) -> CompressedRows:
    parts = CompressedParts(*(move(part) for part in (cut.indptr, cut.indices, cut.data)))
    return CompressedRows(parts, cut.shape, cut.indptr)


def _ahead(move: Callable[[Any], Any], blocks: Iterator[Any]) -> Iterator[Any]:
    """Blocks on the device, the next one on its way while one is worked on."""
    with ThreadPoolExecutor(1, "contrica") as pool:
        coming = None
        for block in blocks:
            following = pool.submit(move, block)
            if coming is not None:
                yield coming.result()
            coming = following
        if coming is not None:
            yield coming.result()


def on_device(
    X: np.ndarray | Rows,
    device: str | None = None,
    dtype: str = "float64",
    rounding: Rounding | None = None,
) -> np.ndarray | Rows:
    """Rows whose blocks are taken to a device, in a precision.

    Parameters
    ----------
    X : ndarray or Rows
        Tensors stay where they are.
    device : str, optional
        Such as "cuda" or "cuda:1", of torch, or of cupy where there is no torch. Data that take at most
        a third of its free memory are kept there; others are moved block by block in each pass, the next
        one while one is worked on. Compressed rows stay compressed there.
    dtype : {"float64", "float32"}
        In which rows are multiplied. Sums over more than some thousand rows are taken in float64.
    rounding : Rounding, optional
        With "float32": what rows are taken about, and in which unit.

    Returns
    -------
    ndarray or Rows
    """
    is_host = device in (None, "cpu")
    if isinstance(X, SparseRows | BackedSparseRows) and not is_host:
        return _compressed_on(X, str(device))
    # what is compressed on the host is multiplied there, and so are dask's chunks
    if isinstance(X, Rows) and (X.sparse or X.is_on_cluster):
        return X
    rounded = partial(single_precision, rounding or Rounding(np.zeros(width_of(X)), 1.0))
    is_there = isinstance(X, Rows) and X.device is not None
    if is_there or is_host or isinstance(X, MovedCompressedRows):
        return X if dtype == "float64" else MovedRows(X, rounded, False)
    return _dense_on(X, str(device), dtype, rounded)


def _dense_on(X: np.ndarray | Rows, device: str, dtype: str, rounded: Callable[[Any], Any]) -> Rows:
    place = _device(device)
    size = X.shape[0] * X.shape[1] * (4 if dtype == "float32" else 8)
    fits = _fits(size, place, device)

    def move(block: Any) -> Any:
        own = place.move if fits else place.move_beside
        return own(block if dtype == "float64" else rounded(block), dtype)

    moved = MovedRows(X, move, True)
    if not fits:
        return moved
    blocks = list(moved.blocks(block_rows(X.shape[1], moved)))
    whole = blocks[0] if len(blocks) == 1 else namespace(blocks[0]).concat(blocks)
    return TensorRows(whole, lambda block: block)


def _compressed_on(X: SparseRows | BackedSparseRows, device: str) -> Rows:
    place = _device(device)
    if isinstance(X, BackedSparseRows):  # as many entries as there are is not known
        return MovedCompressedRows(X, place.move_beside)
    matrix = X.matrix
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    if _fits(size, place, device):
        return _moved_parts(place.move, matrix)
    return MovedCompressedRows(X, place.move_beside)


def _fits(size: int, place: Device, device: str) -> bool:
    """Whether data are kept on a device as a whole; said where not, and refused where no block fits."""
    if place.free < MIN_BLOCKS * MOVED_BLOCK_BYTES:
        raise MemoryBudgetError(
            "device-memory",
            f"`device={device}` has {readable_bytes(place.free)} of its memory free",
            f"blocks of rows need {readable_bytes(MIN_BLOCKS * MOVED_BLOCK_BYTES)} there",
            "Free some of it, use another device, or leave `device` out.",
            "device",
        )
    if size <= DEVICE_SHARE * place.free:
        return True
    warn(
        ParameterWarning(
            "device-memory",
            f"rows take {readable_bytes(size)}, and `device={device}` has {readable_bytes(place.free)} "
            "free: they are moved there block by block in every pass, which takes longer",
            remedy="Fewer rows or variables at a time fit; the answer is the same.",
            parameter="device",
        )
    )
    return False


def check_device(device: str | None) -> None:
    """Refuse a device that cannot be used, before anything is read.

    Parameters
    ----------
    device : str or None
    """
    if device is None or (isinstance(device, str) and device == "cpu"):
        return
    if not (isinstance(device, str) and re.fullmatch(DEVICES, device)):
        raise ParameterError(
            "unusable-device",
            f"`device={unmarked(device)}` is not a device",
            remedy='Give "cpu", "cuda", "cuda:1" and such, or None.',
            parameter="device",
        )
    _device(str(device))


def check_one_device(rows: Sequence[Any], names: Sequence[str], device: str | None) -> None:
    """Refuse tensors on several cards, or on another than the one asked for.

    Parameters
    ----------
    rows : sequence of ndarray or Rows
        Of every dataset.
    names : sequence of str
        What errors call them.
    device : str or None
    """
    # of rows of ours only: a data frame may have a variable of that name
    found = {
        name: _numbered(str(part.device))
        for part, name in zip(rows, names, strict=True)
        if isinstance(part, Rows) and not _is_host(part.device)
    }
    if not _is_host(device):
        found["device"] = _numbered(str(device))
    if len(set(found.values())) > 1:
        told = " and ".join(f"`{name}` on {place}" for name, place in found.items())
        raise ParameterError(
            "mixed-devices",
            f"there are several devices: {told}",
            "one fit works on one",
            "Move the data to one of them, X.to(device), or leave `device` out.",
            "device",
        )


def fit_blocks(rows: Sequence[Any], names: Sequence[str]) -> None:
    """Have tensors on a card read in smaller blocks where it has little memory free.

    Parameters
    ----------
    rows : sequence of ndarray or Rows
        Of every dataset.
    names : sequence of str
        What errors call them.
    """
    for part, name in zip(rows, names, strict=True):
        if not isinstance(part, Rows) or part.device is None or part.block_bytes is None:
            continue
        place, size = part.device, part.block_bytes
        free = _device(place).free
        needed = MIN_BLOCKS * min(MIN_BLOCK_BYTES, 8 * part.shape[0] * part.shape[1])
        if free < needed:
            raise MemoryBudgetError(
                "device-memory",
                f"`{name}` is on {place}, which has {readable_bytes(free)} of its memory free",
                f"sums over rows need {readable_bytes(needed)} there",
                "Free some of it, or pass the rows from the memory of the host, X.cpu().",
                name,
            )
        part.block_bytes = int(min(size, free // MIN_BLOCKS))


def copies_fit(rows: Sequence[np.ndarray], device: str, count: int) -> bool:
    """Whether a device has room for so many copies of some rows, beside what a fit needs.

    Parameters
    ----------
    rows : sequence of ndarray
    device : str
    count : int

    Returns
    -------
    bool
    """
    return count * 8 * sum(part.size for part in rows) <= DEVICE_SHARE * _device(device).free


def _is_host(device: str | None) -> bool:
    return device is None or device.split(":")[0] == "cpu"


def _numbered(device: str) -> str:
    return device if ":" in device else f"{device}:0"


# --- where large matrices of a fit are worked on ---

_card: ContextVar[str | None] = ContextVar("card", default=None)


@contextmanager
def work_on(device: str | None) -> Iterator[None]:
    """A context in which large matrices that are not rows are worked on by a device as well.

    Parameters
    ----------
    device : str or None
        ``None`` or "cpu": by numpy.
    """
    token = _card.set(None)
    try:
        settle_on([], device)
        yield
    except (RuntimeError, MemoryError) as error:
        if type(error).__name__ != "OutOfMemoryError":  # of torch, and of cupy
            raise
        raise MemoryBudgetError(
            "device-memory",
            f"{card() or 'a card'} has no memory left",
            "what was free when the rows were read is taken",
            "Free some of it, lower `n_pcs`, give fewer rows, or leave `device` out.",
            "device",
        ) from error
    finally:
        _card.reset(token)


def settle_on(rows: Sequence[Any], device: str | None) -> None:
    """Inside `work_on`: the device that was asked for, or the one that rows are on already.

    Parameters
    ----------
    rows : sequence of ndarray or Rows
    device : str or None
    """
    places = [device, *(getattr(part, "device", None) for part in rows)]
    # "cpu:0" is torch's own, with which tests take the way of a card
    _card.set(next((str(place) for place in places if place not in (None, "cpu")), None))


def card() -> str | None:
    """Where large matrices of the fit that goes on are worked on; ``None`` where by numpy."""
    return _card.get()


def is_on_card(rows: Any) -> bool:
    """Whether rows are tensors on the device of `card`, to which they need not be moved.

    Parameters
    ----------
    rows : ndarray or Rows

    Returns
    -------
    bool
    """
    place = card()
    if place is None or not isinstance(rows, Rows) or rows.device is None:
        return False
    own = rows.device
    return _numbered(own) == _numbered(place) or (_is_host(own) and _is_host(place))


def rows_pay_on_card(n_entries: int) -> bool:
    """Whether rows of so many entries that are gone through again and again are to be on a card.

    Parameters
    ----------
    n_entries : int

    Returns
    -------
    bool
    """
    return n_entries >= MIN_CARD_ENTRIES and card() is not None


def has_room_on_card(n_entries: int) -> bool:
    """Whether an array of so many doubles is gone through on a card: it pays, and there is room for two.

    Parameters
    ----------
    n_entries : int

    Returns
    -------
    bool
    """
    return rows_pay_on_card(n_entries) and 2 * 8 * n_entries <= room_on_card()


def there(array: np.ndarray) -> Any:
    """An array of numpy on the device of `card`, float64.

    Parameters
    ----------
    array : ndarray

    Returns
    -------
    array
    """
    return _device(str(card())).move(np.ascontiguousarray(array), "float64")


def room_on_card() -> float:
    """Bytes that rows and matrices of a fit may take on the device of `card`."""
    return DEVICE_SHARE * _device(str(card())).free


# --- packages ---


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _device(device: str) -> Device:
    """How arrays get to a device, which is refused where it cannot be used."""
    torch = _torch()
    return _of_cupy(device) if torch is None else _of_torch(torch, device)


def _of_torch(torch: Any, device: str) -> Device:
    try:
        where = torch.device(device)
        torch.empty(1, device=where)
        free = np.inf
        if where.type == "cuda":
            # what torch keeps for itself but does not use is free as well
            kept = torch.cuda.memory_reserved(where) - torch.cuda.memory_allocated(where)
            free = torch.cuda.mem_get_info(where)[0] + kept
    except (RuntimeError, AssertionError) as error:
        reason = unmarked(shorten(str(error), 100))
        raise ParameterError(
            "unusable-device",
            f"`device={device}` cannot be used ({reason})",
            remedy='Leave it out for the CPU; "cuda" needs a machine whose torch sees a GPU.',
            parameter="device",
        ) from error

    def move(array: Any, dtype: str | None = None) -> Any:
        return torch.as_tensor(array).to(where).to(getattr(torch, dtype or str(array.dtype)))

    if where.type != "cuda":
        return Device(move, move, free)
    working, copying = torch.cuda.current_stream(where), torch.cuda.Stream(where)

    def move_beside(array: Any, dtype: str | None = None) -> Any:
        with torch.cuda.stream(copying):
            own = torch.as_tensor(array).pin_memory().to(where, non_blocking=True)
            own = own.to(getattr(torch, dtype or str(array.dtype)))
        copying.synchronize()
        # its memory is not given to others before the work on it, in another stream, is done
        own.record_stream(working)
        return own

    return Device(move, move_beside, free)


def _of_cupy(device: str) -> Device:
    try:
        import cupy
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            f"`device={device}` needs torch or cupy",
            remedy="Install the one for your machine (such as pip install torch), and run pip install "
            "'contrica[gpu]'.",
            parameter="device",
        ) from error
    number = int(device.split(":")[1]) if ":" in device else 0
    with cupy.cuda.Device(number):
        free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()

    def move(array: Any, dtype: str | None = None) -> Any:
        with cupy.cuda.Device(number):
            return cupy.asarray(array, dtype=dtype)

    return Device(move, move, free)
