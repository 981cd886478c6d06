"""Arrays of torch and cupy beside numpy's: what they are, where they are, and rows made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from contrica.errors import DataError, PackageMissingError
from contrica.rows.arrays import SlicedRows
from contrica.rows.protocol import DEVICE_BLOCK_BYTES, Rows

__all__ = [
    "Rounding",
    "TensorRows",
    "as_doubles",
    "has_gaps",
    "is_compressed",
    "is_tensor",
    "like",
    "namespace",
    "package_of",
    "picked",
    "place_of",
    "plus_diagonal",
    "same_kind",
    "single_precision",
    "single_precision_parts",
    "tensor_rows",
    "tensor_times",
    "to_numpy",
]

# Rows of single precision that are summed by one product.
SINGLE_ROWS = 32_768


def package_of(data: Any) -> str:
    """Name of the package that an object's class comes from."""
    return type(data).__module__.split(".")[0]


class TensorRows(SlicedRows):
    """A tensor, cut where it is."""

    def __init__(self, data: Any, block: Callable[[Any], Any]) -> None:
        super().__init__(data, block)
        self.device = place_of(data)
        if self.device not in (None, "cpu"):
            self.block_bytes = DEVICE_BLOCK_BYTES

    @property
    def tensor(self) -> Any:
        """The rows as one tensor."""
        return self._block(self._data)

    def selected(self, rows: np.ndarray, columns: np.ndarray | None = None) -> TensorRows:
        """Some rows and variables, in their order.

        Parameters
        ----------
        rows : ndarray of bool or int
        columns : ndarray of bool or int, optional
        """
        return TensorRows(picked(self._data, rows, columns), self._block)

    @property
    def is_of_doubles(self) -> bool:
        """Whether the tensor is of float64, so that it takes no memory of its own."""
        return str(self._data.dtype).endswith("float64")


def tensor_rows(data: Any, name: str) -> Rows:
    """Rows of a dense tensor; it must be a matrix."""
    if data.ndim != 2:
        raise DataError(
            "dimensions",
            f"`{name}` has {data.ndim} dimensions",
            "a table of rows by variables is needed",
            "Reshape it.",
            name,
        )
    return TensorRows(data.detach() if hasattr(data, "detach") else data, as_doubles)


def namespace(array: Any) -> Any:
    """The module of array-API functions for an array: numpy, or array-api-compat's of torch and cupy."""
    if isinstance(array, np.ndarray):
        return np
    return _compat().array_namespace(_entries(array))


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


def place_of(array: Any) -> str | None:
    """Where an array is, such as "cpu" or "cuda:0"; None for what is not a tensor of torch or cupy."""
    maker = package_of(array)
    if maker == "torch":
        return str(array.device)
    if maker in ("cupy", "cupyx"):
        return f"cuda:{_entries(array).device.id}"
    return None


def is_compressed(block: Any) -> bool:
    """Whether it is sparse: a matrix of scipy or cupyx, or a sparse tensor of torch."""
    maker = package_of(block)
    if maker == "torch":
        return "sparse" in str(block.layout)
    return maker == "cupyx" or sp.issparse(block)


def _entries(array: Any) -> Any:
    """An array itself, and of compressed rows the array of their entries."""
    if not is_compressed(array):
        return array
    return array.values() if package_of(array) == "torch" else array.data


def like(block: Any, array: np.ndarray) -> Any:
    """A numpy array as one of the same kind, dtype and place as ``block``."""
    if isinstance(block, np.ndarray):
        return array.astype(block.dtype, copy=False)
    if sp.issparse(block):
        return array
    block = _entries(block)
    xp = namespace(block)
    array = np.ascontiguousarray(array)
    return xp.asarray(array, dtype=block.dtype, device=_compat().device(block))


def same_kind(block: Any, dtype: Any = None) -> dict[str, Any]:
    """Keywords with which a new array is of the dtype, or the one given, and place of ``block``."""
    kind = {"dtype": block.dtype if dtype is None else dtype}
    return kind if isinstance(block, np.ndarray) else kind | {"device": _compat().device(block)}


def plus_diagonal(matrix: Any, value: float) -> Any:
    """``M + v I`` of a square matrix, made where it is: an identity would take as long to get there.

    Parameters
    ----------
    matrix : ndarray or tensor of shape (p, p)
    value : float

    Returns
    -------
    ndarray or tensor of shape (p, p)
    """
    if isinstance(matrix, np.ndarray):
        found = matrix.copy()
        found.flat[:: len(found) + 1] += value
        return found
    return matrix + value * namespace(matrix).eye(matrix.shape[0], **same_kind(matrix))


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
    """Whether it is an array of torch, of cupy, or of the array API's own; a sparse one too."""
    return package_of(data) in ("torch", "cupy", "cupyx", "array_api_strict")


def picked(block: Any, rows: np.ndarray | None, columns: np.ndarray | None = None) -> Any:
    """Some rows and columns of a dense or sparse block of any kind, where it is.

    Parameters
    ----------
    block : array
    rows, columns : ndarray of bool or int, or None
        ``None`` takes all.
    """
    for axis, chosen in enumerate((rows, columns)):
        if chosen is None:
            continue
        if isinstance(block, np.ndarray) or is_compressed(block):
            block = block[chosen] if axis == 0 else block[:, chosen]
            continue
        xp = namespace(block)
        numbers = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        where = same_kind(block, xp.int64)
        block = xp.take(block, xp.asarray(np.ascontiguousarray(numbers), **where), axis=axis)
    return block


def tensor_times(data: Any, matrix: np.ndarray, offset: np.ndarray) -> Any:
    """``X · M − offset`` of a tensor, where it is and in its precision; of whole numbers in doubles."""
    xp = namespace(data)
    tensor = data.detach() if hasattr(data, "detach") else data
    if not xp.isdtype(tensor.dtype, "real floating"):
        tensor = tensor.astype(np.float64) if package_of(data) == "cupyx" else as_doubles(tensor)
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


def single_precision(rounding: Rounding, block: Any) -> Any:
    """A block in single precision, about the origin and in the unit of a rounding."""
    block = (block - like(block, rounding.origin)) / rounding.unit
    xp = namespace(block)
    return xp.astype(block, xp.float32, copy=False) if xp is not np else block.astype(np.float32)


def single_precision_parts(block: Any) -> Iterator[Any]:
    """The block, or some thousand rows of it at a time, for which single precision can sum."""
    size = block.shape[0]
    step = size if str(block.dtype).endswith("float64") else SINGLE_ROWS
    return (block[start : min(start + step, size), :] for start in range(0, size, max(step, 1)))
