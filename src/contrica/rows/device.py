"""Arrays of torch and cupy beside numpy's, and rows whose blocks are moved to a device."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from contrica.errors import DataError, PackageMissingError, ParameterError, unmarked
from contrica.rows.arrays import SlicedRows
from contrica.rows.protocol import (
    DEVICE_BLOCK_BYTES,
    Rows,
    block_rows,
    iterate_blocks,
    width_of,
)

__all__ = [
    "MovedRows",
    "Rounding",
    "TensorRows",
    "as_doubles",
    "check_device",
    "has_gaps",
    "is_tensor",
    "like",
    "namespace",
    "on_device",
    "package_of",
    "same_kind",
    "single_precision_parts",
    "tensor_rows",
    "tensor_times",
    "to_numpy",
]

# Data are kept on a device as a whole where they take at most this share of its free memory; while they
# are put together they are there twice.
DEVICE_SHARE = 0.3
# Rows of single precision that are summed by one product.
SINGLE_ROWS = 32_768
# Names that torch has for devices with memory of their own, and numbers of them.
DEVICES = r"(cpu|cuda|mps|xpu|hip|xla|hpu)(:\d+)?"


def package_of(data: Any) -> str:
    """Name of the package that an object's class comes from."""
    return type(data).__module__.split(".")[0]


class TensorRows(SlicedRows):
    """A tensor, cut where it is."""

    def __init__(self, data: Any, block: Callable[[Any], Any]) -> None:
        super().__init__(data, block)
        self.device = _device(data)
        if self.device not in (None, "cpu"):
            self.block_bytes = DEVICE_BLOCK_BYTES


def tensor_rows(data: Any, name: str) -> Rows:
    """Rows of a tensor; it must be a dense matrix."""
    if data.ndim != 2:
        raise DataError(
            "dimensions",
            f"`{name}` has {data.ndim} dimensions",
            "a table of rows by variables is needed",
            "Reshape it.",
            name,
        )
    if "strided" not in str(getattr(data, "layout", "strided")):
        raise DataError(
            "sparse-tensor",
            f"`{name}` is a sparse tensor ({data.layout})",
            remedy="Pass scipy's compressed rows, or its to_dense().",
            parameter=name,
        )
    return TensorRows(data.detach() if hasattr(data, "detach") else data, as_doubles)


def namespace(array: Any) -> Any:
    """The module of array-API functions for an array: numpy, or array-api-compat's of torch and cupy."""
    if isinstance(array, np.ndarray):
        return np
    return _compat().array_namespace(array)


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "tensors of torch and cupy need array-api-compat",
            remedy="Install it: pip install 'contrica[gpu]'.",
        ) from error
    return array_api_compat


def _device(array: Any) -> str | None:
    """Where an array is, "cpu" or such as "cuda:0"; None for what is not a tensor."""
    if package_of(array) not in ("torch", "cupy"):
        return None
    found = _compat().device(array)
    return str(getattr(found, "type", found))


def like(block: Any, array: np.ndarray) -> Any:
    """A numpy array as one of the same kind, dtype and place as ``block``."""
    if isinstance(block, np.ndarray):
        return array.astype(block.dtype, copy=False)
    if sp.issparse(block):
        return array
    xp = namespace(block)
    array = np.ascontiguousarray(array)
    return xp.asarray(array, dtype=block.dtype, device=_compat().device(block))


def same_kind(block: Any, dtype: Any = None) -> dict[str, Any]:
    """Keywords with which a new array is of the dtype, or the one given, and place of ``block``."""
    kind = {"dtype": block.dtype if dtype is None else dtype}
    return kind if isinstance(block, np.ndarray) else kind | {"device": _compat().device(block)}


def as_doubles(array: Any) -> Any:
    """The same numbers in float64, where they are."""
    if isinstance(array, np.ndarray):
        return array.astype(np.float64, copy=False)
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def to_numpy(array: Any) -> np.ndarray:
    """An array of any kind as numpy's, float64."""
    if isinstance(array, np.ndarray):
        return np.asarray(array, dtype=np.float64)
    maker = package_of(array)
    if maker == "torch":
        return np.asarray(array.cpu().numpy(), dtype=np.float64)
    if maker == "cupy":
        return np.asarray(array.get(), dtype=np.float64)
    return np.asarray(array, dtype=np.float64)


def is_tensor(data: Any) -> bool:
    """Whether it is an array of torch, of cupy, or of the array API's own."""
    return package_of(data) in ("torch", "cupy", "array_api_strict")


def tensor_times(data: Any, matrix: np.ndarray, offset: np.ndarray) -> Any:
    """``X · M − offset`` of a tensor, where it is and in its precision; of whole numbers in doubles."""
    xp = namespace(data)
    tensor = data.detach() if hasattr(data, "detach") else data
    if not xp.isdtype(tensor.dtype, "real floating"):
        tensor = as_doubles(tensor)
    return tensor @ like(tensor, matrix) - like(tensor, offset)


def has_gaps(tensor: Any) -> bool:
    """Whether there is NaN or infinity in a tensor."""
    xp = namespace(tensor)
    return not bool(xp.all(xp.isfinite(tensor)))


class Rounding(NamedTuple):
    """How rows become single precision: ``(x − origin) / unit``.

    A large mean would leave no digits, and fourth powers of large or small numbers leave its range.

    Attributes
    ----------
    origin : ndarray of shape (p,)
    unit : float
        A power of two, which rounds nothing.
    """

    origin: np.ndarray
    unit: float

    @classmethod
    def of(cls, summary: Any, basis: np.ndarray | None) -> Rounding:
        """About the mean of a dataset in the coordinates of a basis, in units of its spread.

        Parameters
        ----------
        summary : ColumnSummary
        basis : ndarray of shape (p, k) or None

        Returns
        -------
        Rounding
        """
        spread = float(np.sqrt(np.sum(summary.energy) / summary.n_rows))
        origin = summary.mean if basis is None else summary.mean @ basis
        return cls(origin, 2.0 ** round(math.log2(spread)) if 0 < spread < math.inf else 1.0)


class MovedRows(Rows):
    """Rows whose blocks are moved to a device, or to another precision, as they are read."""

    def __init__(self, rows: np.ndarray | Rows, move: Callable[[Any], Any], on_gpu: bool) -> None:
        self._rows, self._move = rows, move
        self.shape = (rows.shape[0], rows.shape[1])
        self.block_bytes = DEVICE_BLOCK_BYTES if on_gpu else None

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        return map(self._move, iterate_blocks(self._rows, n_rows))


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
        a third of its free memory are kept there; others are moved block by block in each pass.
    dtype : {"float64", "float32"}
        In which rows are multiplied. Sums over more than some thousand rows are taken in float64.
    rounding : Rounding, optional
        With "float32": what rows are taken about, and in which unit.

    Returns
    -------
    ndarray or Rows
    """
    rounded = partial(_single, rounding or Rounding(np.zeros(width_of(X)), 1.0))
    # products with compressed rows stay where they are, and so do dask's chunks
    if isinstance(X, Rows) and (X.sparse or X.is_on_cluster):
        return X
    if isinstance(X, TensorRows) and X.device is not None:
        return X if dtype == "float64" else MovedRows(X, rounded, X.block_bytes is not None)
    if device in (None, "cpu"):
        return X if dtype == "float64" else MovedRows(X, rounded, False)
    move, free = _mover(str(device), dtype)
    itemsize = 4 if dtype == "float32" else 8
    moved = MovedRows(X, move if dtype == "float64" else lambda block: move(rounded(block)), True)
    if X.shape[0] * X.shape[1] * itemsize > DEVICE_SHARE * free:
        return moved
    blocks = list(moved.blocks(block_rows(X.shape[1], moved)))
    return TensorRows(namespace(blocks[0]).concat(blocks), lambda block: block)


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
    _mover(str(device), "float64")


def _single(rounding: Rounding, block: Any) -> Any:
    block = (block - like(block, rounding.origin)) / rounding.unit
    xp = namespace(block)
    return xp.astype(block, xp.float32, copy=False) if xp is not np else block.astype(np.float32)


def single_precision_parts(block: Any) -> Iterator[Any]:
    """The block, or some thousand rows of it at a time, for which single precision can sum."""
    size = block.shape[0]
    step = size if str(block.dtype).endswith("float64") else SINGLE_ROWS
    return (block[start : min(start + step, size), :] for start in range(0, size, max(step, 1)))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _mover(device: str, dtype: str) -> tuple[Callable[[Any], Any], float]:
    """What takes a numpy block to the device, and the bytes free there."""
    torch = _torch()
    if torch is not None:
        try:
            where = torch.device(device)
            torch.empty(1, device=where)
            free = torch.cuda.mem_get_info(where)[0] if where.type == "cuda" else np.inf
        except (RuntimeError, AssertionError) as error:
            reason = unmarked(shorten(str(error), 100))
            raise ParameterError(
                "unusable-device",
                f"`device={device}` cannot be used ({reason})",
                remedy='Leave it out for the CPU; "cuda" needs a machine whose torch sees a GPU.',
                parameter="device",
            ) from error
        kind = getattr(torch, dtype)
        return lambda block: torch.as_tensor(block).to(where, kind), free
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
        free = cupy.cuda.runtime.memGetInfo()[0]

    def move(block: Any) -> Any:
        with cupy.cuda.Device(number):
            return cupy.asarray(block, dtype=dtype)

    return move, free
