"""Rows on disk: numpy, HDF5, AnnData, zarr and parquet files, read block by block and never whole.

`open_rows` reads what describes the rows, and each pass over them then reads blocks; `open_dask` opens
the same for the workers of a cluster. Packages that know a format are imported when such a file comes.
"""

from __future__ import annotations

import functools
import glob
import importlib
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from contrica.rows.blocks import Rows, as_rows, block_rows
from contrica.rows.tables import kind_of, read_table

__all__ = ["Names", "Opened", "computed", "open_dask", "open_rows"]

_HDF5, _PARQUET = (".h5", ".hdf5", ".h5ad"), (".parquet", ".parq", ".pq")
_TEXT = (".csv", ".tsv")
_KNOWN = "csv, tsv (also .gz), npy, npz, h5, h5ad, zarr or parquet"
# Working set of one piece of sparse rows, entries and indices.
PIECE_BYTES = 16 * 2**20
# A chunk of a file is read as one, even if it holds more rows than were asked for, up to this size.
CHUNK_BYTES = 128 * 2**20
# Pieces of a dask collection that are computed at the same time.
AT_ONCE = 16


class Opened(NamedTuple):
    """Rows that were opened, with what names came along.

    Attributes
    ----------
    rows : ndarray, Rows, dask array or dask frame
        What `fit` and `transform` take.
    columns : ndarray of str or None
        Names of the variables.
    row_names : ndarray of str, Names or None
        Names of the rows; numpy makes an array of either.
    """

    rows: Any
    columns: np.ndarray | None
    row_names: Any


class Names:
    """Names of rows that are read when they are iterated over, some at a time.

    Parameters
    ----------
    blocks : callable
        Returns an iterable of sequences of names; called for each pass.

    Examples
    --------
    >>> list(Names(lambda: [["a", "b"], ["c"]]))
    ['a', 'b', 'c']
    """

    def __init__(self, blocks: Callable[[], Iterable[Iterable[Any]]]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks():
            yield from (_text(name) for name in block)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(list(self), dtype=dtype)


def open_rows(path: str | Path, key: str | None = None, *, header: bool | None = None) -> Opened:
    """Open a file of rows; what is large in it is read later, block by block.

    Parameters
    ----------
    path : path
        By its ending: ``.npy`` (as a memory map), ``.npz`` (of `scipy.sparse.save_npz`, or of arrays),
        ``.h5``, ``.hdf5``, ``.h5ad``, ``.zarr`` (also AnnData's), ``.parquet`` (a file, a folder of
        them, or a pattern such as ``folder/*.parquet``), ``.csv``, ``.tsv``. Sparse rows in AnnData
        files stay sparse.
    key : str, optional
        Which array of a file with several; of AnnData files X by default, ``"layers/counts"`` for
        another.
    header : bool, optional
        Whether the first line of a text file names the columns; seen from the file by default.

    Returns
    -------
    Opened

    Raises
    ------
    ValueError
        If there is no table of numbers, or it is damaged.
    FileNotFoundError
    ImportError
        With what to install.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.zeros((5, 3)))
    ...     open_rows(f"{folder}/rows.npy").rows.shape
    (5, 3)
    """
    where = str(path)
    if _is_remote(where):
        raise ValueError(
            f"{where} is not on this machine, and such files are read by the workers of a cluster. Use "
            "open_dask, --scheduler ADDRESS in the shell, or copy it here."
        )
    kind = _kind(where)
    if kind != ".parquet" and kind not in _TEXT and Path(where).is_file():
        _refuse_empty(Path(where))
    if kind == ".npy":
        _refuse_key(where, key)
        return Opened(_memory_map(where), None, None)
    if kind == ".npz":
        if _is_sparse_npz(where):
            _refuse_key(where, key)
            return Opened(_sparse_npz(where), None, None)
        return Opened(read_table(where, key).values, None, None)
    if kind in _HDF5 or kind == ".zarr":
        return _open_store(where, key, kind)
    if kind == ".parquet":
        _refuse_key(where, key)
        return _open_parquet(where)
    table = read_table(where, key, header=header)
    return Opened(table.values, table.columns, table.rows)


# --- which kind ---


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(value)


def _is_remote(where: str) -> bool:
    return "://" in where


def _is_pattern(where: str) -> bool:
    return glob.has_magic(where) and not Path(where).exists()


def _kind(where: str) -> str:
    """The ending that tells the kind; of a folder by what is in it."""
    path = Path(where.rstrip("/"))
    suffix = path.suffix.lower()
    if _is_remote(where):
        return ".zarr" if suffix == ".zarr" else ".parquet" if suffix in ("", *_PARQUET) else suffix
    if _is_pattern(where):
        return ".parquet"
    if not path.exists():
        raise FileNotFoundError(f"{where} does not exist. Check the path.")
    if path.is_dir():
        marks = ("zarr.json", ".zgroup", ".zarray")
        if suffix == ".zarr" or any((path / mark).exists() for mark in marks):
            return ".zarr"
        return ".parquet"
    if suffix in _PARQUET:
        return ".parquet"
    kind = kind_of(path)
    if kind not in (*_HDF5, *_TEXT, ".npy", ".npz"):
        raise ValueError(f"{where} is of unknown type {kind or '(none)'!r}. Use {_KNOWN}.")
    return kind


def _refuse_key(where: str, key: str | None) -> None:
    if key is not None:
        raise ValueError(
            f"a key ({key!r}) was given for {where}, but only npz, h5, h5ad and zarr files have keys."
        )


def _refuse_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty. It needs one row per sample, one column per variable.")


def _check_table(where: str, shape: Sequence[int], dtype: np.dtype) -> None:
    if len(shape) != 2 or dtype.kind not in "fiub":
        raise ValueError(
            f"{where} holds an array of shape {tuple(shape)} and type {dtype}, but a two-dimensional "
            "array of real numbers is needed, one row per sample. Convert it, or name another by its key."
        )
    if 0 in shape:
        raise ValueError(
            f"{where} holds {shape[0]} rows of {shape[1]} variables. It needs some of both: was it "
            "written to its end?"
        )


def _needed(module: str, what: str, extra: str = "disk") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"{what} need {name}: pip install 'contrica[{extra}]'") from error


@contextmanager
def _reading(where: str, what: str) -> Iterator[None]:
    """Whatever a reader of a format makes of a damaged file becomes one sentence."""
    try:
        yield
    except (ImportError, MemoryError, PermissionError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{where} could not be read as {what}: it is damaged, or something else ({reason[:200]}). "
            "Make or copy it anew."
        ) from error


def _changed(where: str, came: Any, before: Any) -> ValueError:
    return ValueError(
        f"{where} holds {came} this time, but held {before} when it was opened. Let nothing write to "
        "it while it is read."
    )


# --- numpy ---


def _memory_map(where: str) -> np.ndarray:
    with _reading(where, "a numpy file of numbers"):
        values = np.load(where, mmap_mode="r", allow_pickle=False)
    if not isinstance(values, np.ndarray):
        raise ValueError(f"{where} is an npz file by its content. Let its name end in .npz.")
    _check_table(where, values.shape, values.dtype)
    return values


def _is_sparse_npz(where: str) -> bool:
    try:
        with zipfile.ZipFile(where) as archive:
            return {"format.npy", "shape.npy", "data.npy"} <= set(archive.namelist())
    except zipfile.BadZipFile:
        return False  # read_table says what is wrong


def _sparse_npz(where: str) -> Any:
    with _reading(where, "a sparse matrix saved by scipy"):
        matrix = sp.load_npz(where)
        matrix = matrix.tocsr()
    _check_table(where, matrix.shape, matrix.dtype)
    return as_rows(matrix)


# --- HDF5 and zarr ---


@contextmanager
def _hdf5(where: str) -> Iterator[Any]:
    h5py = _needed("h5py", "HDF5 and AnnData files")
    with _reading(where, "an HDF5 file"):
        file = h5py.File(where, "r")
    try:
        yield file
    finally:
        file.close()


@contextmanager
def _zarr(where: str) -> Iterator[Any]:
    zarr = _needed("zarr", "zarr folders")
    with _reading(where, "a zarr store"):
        root = zarr.open(where, mode="r")
    yield root


def _is_array(node: Any) -> bool:
    return hasattr(node, "dtype") and hasattr(node, "shape")


def _attribute(node: Any, *names: str) -> Any:
    for name in names:
        if name in node.attrs:
            return node.attrs[name]
    return None


def _sparse_format(node: Any) -> str:
    """How AnnData says that a group is a sparse matrix: "csr", "csc", or "" where it is none."""
    said = _text(_attribute(node, "encoding-type", "h5sparse_format") or "")[:3]
    return said if said in ("csr", "csc") else ""


def _tables(root: Any) -> list[str]:
    """Keys of what may be meant: two-dimensional arrays, and sparse matrices."""
    nodes: list[tuple[str, Any]] = []
    if hasattr(root, "visititems"):
        root.visititems(lambda name, node: nodes.append((name, node)))
    else:
        nodes = sorted(root.members(max_depth=None))
    return [
        name
        for name, node in nodes
        if (_is_array(node) and len(node.shape) == 2)
        or (not _is_array(node) and _sparse_format(node))
    ]


def _is_anndata(root: Any) -> bool:
    return "X" in root and "obs" in root and "var" in root


def _found(where: str, root: Any, key: str | None) -> tuple[str, Any]:
    """What a key means, or the only thing there is."""
    if _is_array(root):
        _refuse_inner_key(where, key)
        return "", root
    if key is None and _is_anndata(root):
        key = "X"
    if key is not None:
        if key.strip("/") and key in root:
            return key, root[key]
        held = ", ".join(_tables(root)) or "no table"
        raise ValueError(f"{where} has no {key!r}. It holds {held}: say which by the key.")
    keys = _tables(root)
    if len(keys) != 1:
        held = f" ({', '.join(keys)})" if keys else ""
        raise ValueError(
            f"{where} holds {len(keys)} tables{held}, but one is needed. "
            + ("Say which one by its key." if keys else "Store rows by variables in it.")
        )
    return keys[0], root[keys[0]]


def _refuse_inner_key(where: str, key: str | None) -> None:
    if key is not None:
        raise ValueError(
            f"a key ({key!r}) was given for {where}, which is one array. Drop the key."
        )


def _opener(where: str, kind: str) -> Callable[[], AbstractContextManager[Any]]:
    return functools.partial(_hdf5 if kind in _HDF5 else _zarr, where)


def _open_store(where: str, key: str | None, kind: str) -> Opened:
    opener = _opener(where, kind)
    rows: _Grid | _Compressed
    with opener() as root:
        key, node = _found(where, root, key)
        if _is_array(node):
            _check_table(where, node.shape, node.dtype)
            rows = _Grid(where, opener, key, node)
        else:
            rows = _Compressed(where, opener, key, node)
        columns, row_names = _anndata_names(where, opener, root, key, rows.shape)
    rows.columns = columns
    return Opened(rows, columns, row_names)


def _anndata_names(
    where: str, opener: Callable[[], Any], root: Any, key: str, shape: tuple[int, int]
) -> tuple[np.ndarray | None, Names | None]:
    """Names of an AnnData file's variables and observations, where they belong to the table."""
    if _is_array(root) or not _is_anndata(root):
        return None, None
    columns = None
    var = "raw/var" if key.startswith("raw/") else "var"
    if key in ("X", "raw/X") or key.startswith("layers/"):
        stored = _index_of(root, var)
        if stored is not None and stored.shape[0] == shape[1]:
            with _reading(where, "an AnnData file"):
                columns = np.array([_text(name) for name in _strings(stored)[:]])
    stored = _index_of(root, "obs")
    if stored is None or stored.shape[0] != shape[0]:
        return columns, None

    def names() -> Iterator[Sequence[Any]]:
        with opener() as again:
            index = _strings(_index_of(again, "obs"))
            for start in range(0, shape[0], 2**16):
                with _reading(where, "an AnnData file"):
                    block = index[start : start + 2**16]
                yield block

    return columns, Names(names)


def _index_of(root: Any, frame: str) -> Any:
    """Where a stored frame keeps its index; None in files too old to say."""
    if frame not in root or _is_array(root[frame]):
        return None
    name = _text(_attribute(root[frame], "_index") or "_index")
    if name not in root[frame]:
        return None
    index = root[frame][name]
    if _is_array(index):
        return index
    return index.get("values")  # with a mask beside them


def _strings(stored: Any) -> Any:
    is_text = hasattr(stored, "asstr") and stored.dtype.kind in "OS"
    return stored.asstr() if is_text else stored


class _Grid(Rows):
    """A two-dimensional array in an HDF5 file or a zarr store, opened for each pass."""

    columns: np.ndarray | None = None

    def __init__(self, where: str, opener: Callable[[], Any], key: str, node: Any) -> None:
        self._where, self._opener, self._key = where, opener, key
        self.shape = (int(node.shape[0]), int(node.shape[1]))
        self._chunk = int(node.chunks[0]) if node.chunks else 1

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        step = _step(n_rows, self._chunk, self.shape[1])
        with self._opener() as root:
            node = root[self._key] if self._key else root
            if tuple(node.shape) != self.shape:
                raise _changed(self._where, tuple(node.shape), self.shape)
            for start in range(0, len(self), step):
                with _reading(self._where, "an array"):
                    part = np.asarray(node[start : start + step])
                for first in range(0, len(part), n_rows):
                    yield np.asarray(part[first : first + n_rows], dtype=np.float64)


def _step(n_rows: int, chunk: int, n_columns: int) -> int:
    """Rows to read at a time, so that no chunk of the file is unpacked more often than need be."""
    if chunk <= n_rows:
        return n_rows - n_rows % chunk
    return chunk if 8 * chunk * n_columns <= CHUNK_BYTES else n_rows


class _Compressed(Rows):
    """Compressed rows as AnnData stores them, in an HDF5 file or a zarr store."""

    sparse = True
    columns: np.ndarray | None = None

    def __init__(self, where: str, opener: Callable[[], Any], key: str, node: Any) -> None:
        self._where, self._opener, self._key = where, opener, key
        layout = _sparse_format(node)
        if layout == "csc":
            raise ValueError(
                f"{key!r} of {where} is stored by columns (CSC), and its rows cannot be read block by "
                "block. Write it by rows: adata.X = adata.X.tocsr(), or so the layer, and save again."
            )
        parts = ("data", "indices", "indptr")
        if layout != "csr" or any(part not in node for part in parts):
            raise ValueError(
                f"{key!r} of {where} is a group, but a two-dimensional array or compressed rows (CSR) "
                f"are needed. It holds {', '.join(node) or 'nothing'}: say which by the key."
            )
        shape = _attribute(node, "shape", "h5sparse_shape")
        self.shape = (int(shape[0]), int(shape[1]))
        self._check_sizes(node)
        _check_table(where, self.shape, node["data"].dtype)
        # as many entries as fill a block, an index beside each
        per_row = max(node["data"].shape[0] / self.shape[0], 1.0)
        self._per_piece = max(int(PIECE_BYTES / (16 * per_row)), 1)

    def _check_sizes(self, node: Any) -> None:
        entries, indices, bounds = (node[k].shape[0] for k in ("data", "indices", "indptr"))
        last = int(node["indptr"][bounds - 1]) if bounds else -1
        if bounds != self.shape[0] + 1 or not entries == indices == last:
            raise ValueError(
                f"{self._key!r} of {self._where} is damaged: {self.shape[0]} rows need as many bounds "
                f"and one, of which the last counts the entries, but there are {bounds} bounds up to "
                f"{last}, {entries} entries and {indices} indices. Make or copy it anew."
            )

    def rows(self, start: int, stop: int) -> sp.csr_array:
        """Rows ``start`` to ``stop``, opened for this one reading."""
        with self._opener() as root:
            return self._cut(root[self._key], start, stop)

    def _cut(self, node: Any, start: int, stop: int) -> sp.csr_array:
        with _reading(self._where, "compressed rows"):
            bounds = np.asarray(node["indptr"][start : stop + 1]).astype(np.int64)
            span = slice(int(bounds[0]), int(bounds[-1]))
            entries = np.asarray(node["data"][span], dtype=np.float64)
            indices = np.asarray(node["indices"][span])
        wrong = indices.size and not 0 <= indices.min() <= indices.max() < self.shape[1]
        if wrong or (np.diff(bounds) < 0).any() or len(bounds) != stop - start + 1:
            raise ValueError(
                f"{self._key!r} of {self._where} is damaged: rows {start} to {stop} point to entries "
                "that are not there. Make or copy it anew."
            )
        shape = (stop - start, self.shape[1])
        return sp.csr_array((entries, indices, bounds - bounds[0]), shape=shape)

    def pieces(self) -> Iterator[Any]:
        with self._opener() as root:
            node = root[self._key]
            self._check_sizes(node)
            for start in range(0, len(self), self._per_piece):
                yield self._cut(node, start, min(start + self._per_piece, len(self)))

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        for piece in self.pieces():
            for start in range(0, piece.shape[0], n_rows):
                yield piece[start : start + n_rows].toarray()


# --- parquet ---


def _natural(path: Path) -> list[Any]:
    """Order in which part.2 comes before part.10."""
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if part.isdigit() else part for part in parts]


def _parquet_files(where: str) -> list[Path]:
    path = Path(where)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.suffix.lower() in _PARQUET]
        # writers leave summaries and unfinished files under such names
        found = [each for each in found if each.is_file() and each.name[0] not in "._"]
        if not found:
            raise ValueError(
                f"{where} is a folder without parquet files, and no zarr store. Use {_KNOWN}."
            )
        return sorted(found, key=_natural)
    found = [Path(each) for each in glob.glob(where, recursive=True)]
    if not found:
        raise FileNotFoundError(f"no file matches {where}. Check the pattern, and quote it.")
    others = [each for each in found if each.suffix.lower() not in _PARQUET]
    if others:
        raise ValueError(
            f"{where} also matches {min(others)}, but only parquet files are read together. Let the "
            "pattern end in .parquet, or name one file."
        )
    return sorted(found, key=_natural)


class _Columns(NamedTuple):
    """Which columns of a parquet file are variables, and which one names the rows."""

    numbers: list[str]
    names: str | None


def _sorted_out(
    where: str,
    index: Sequence[str],
    text: Sequence[str],
    numbers: Sequence[str],
    rest: Sequence[str],
) -> _Columns:
    """One column of text, or the index, names the rows; what else is no number is refused.

    An index in ``text`` counts as such only.
    """
    plain = [name for name in text if name not in index]
    named = [name for name in index if name in text]
    if len(index) > 1:
        rest = [*rest, *index]
    elif len(plain) > 1 or (plain and named):
        rest = [*rest, *plain]
    if rest:
        shown = ", ".join(map(repr, rest[:5])) + (" and more" if len(rest) > 5 else "")
        raise ValueError(
            f"{where} has columns that are no numbers: {shown}. One column of text, or the index, may "
            "name the rows; drop the others, or turn them into numbers."
        )
    variables = [name for name in numbers if name not in index]
    if not variables:
        raise ValueError(f"{where} has no columns of numbers, one for each variable. Add them.")
    return _Columns(variables, next(iter([*named, *plain, *index]), None))


def _parquet_columns(where: str, schema: Any) -> _Columns:
    types = _needed("pyarrow", "parquet files").types
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise ValueError(f"{where} has more than one column called {twice!r}. Rename them.")
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in told if isinstance(name, str) and name in schema.names]
    text: list[str] = []
    numbers: list[str] = []
    rest: list[str] = []
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_string(kind) or types.is_large_string(kind):
            text.append(field.name)
        elif any(
            test(field.type)
            for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        ):
            numbers.append(field.name)
        elif field.name not in index:
            rest.append(field.name)
    return _sorted_out(where, index, text, numbers, rest)


def _open_parquet(where: str) -> Opened:
    parquet = _needed("pyarrow.parquet", "parquet files")
    files = _parquet_files(where)
    counts: list[int] = []
    first: _Columns | None = None
    for path in files:
        _refuse_empty(path)
        with _reading(str(path), "a parquet file"):
            described = parquet.read_metadata(path)
            schema = described.schema.to_arrow_schema()
        counts.append(described.num_rows)
        own = _parquet_columns(str(path), schema)
        first = own if first is None else first
        if set(own.numbers) != set(first.numbers):
            absent = sorted(set(first.numbers) - set(own.numbers))[:5]
            extra = sorted(set(own.numbers) - set(first.numbers))[:5]
            raise ValueError(
                f"{path} and {files[0]} have different columns: missing from {path}: "
                f"{', '.join(absent) or 'none'}; only in it: {', '.join(extra) or 'none'}. All files "
                "must have the same variables."
            )
        if own.names != first.names:
            raise ValueError(
                f"{path} names its rows by {own.names!r}, but {files[0]} by {first.names!r}. Write all "
                "files alike."
            )
    if first is None or not sum(counts):
        raise ValueError(f"{where} has no rows. It needs one row per sample: was it written?")
    rows = _Parquet(where, files, counts, first.numbers)
    names = None if first.names is None else Names(functools.partial(rows.texts, first.names))
    return Opened(rows, rows.columns, names)


class _Parquet(Rows):
    """Parquet files one below the other, read row group by row group."""

    def __init__(
        self, where: str, files: list[Path], counts: list[int], columns: list[str]
    ) -> None:
        self._where, self._files, self._counts = where, files, counts
        self._numbers = columns
        self.columns = np.array(columns)
        self.shape = (sum(counts), len(columns))

    def _batches(self, size: int, columns: list[str]) -> Iterator[Any]:
        parquet = _needed("pyarrow.parquet", "parquet files")
        for path, count in zip(self._files, self._counts, strict=True):
            what, seen = (str(path), "a parquet file"), 0
            with _reading(*what):
                # read ahead, the file would come to lie in memory as a whole
                file = parquet.ParquetFile(path, pre_buffer=False)
            with file:
                with _reading(*what):
                    batches = file.iter_batches(batch_size=size, columns=columns)
                while True:
                    with _reading(*what):
                        batch = next(batches, None)
                    if batch is None:
                        break
                    seen += batch.num_rows
                    yield batch
            if seen != count:
                raise _changed(str(path), f"{seen} rows", count)

    def texts(self, column: str) -> Iterator[list[Any]]:
        """The entries of one column, some at a time."""
        for batch in self._batches(2**16, [column]):
            yield batch.column(column).to_pylist()

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        double = _needed("pyarrow", "parquet files").float64()
        size = min(n_rows, len(self))
        block, filled = np.empty((self.shape[1], size)), 0
        for batch in self._batches(size, self._numbers):
            start = 0
            while start < batch.num_rows:
                part = batch.slice(start, size - filled)
                stop = filled + part.num_rows
                for row, name in zip(block, self._numbers, strict=True):
                    cells = part.column(name).cast(double, safe=False)
                    row[filled:stop] = cells.to_numpy(zero_copy_only=False)
                start, filled = start + part.num_rows, stop
                if filled == size:  # row groups may be small: blocks are filled across them
                    yield block.T
                    block, filled = np.empty((self.shape[1], size)), 0
        if filled:
            yield block[:, :filled].T


# --- dask ---


def open_dask(path: str | Path, key: str | None = None) -> Opened:
    """Open rows for the workers of a dask cluster, which read them where they are.

    Parameters
    ----------
    path : path or URL
        Parquet (a file, a folder or a pattern) or a zarr store, also AnnData's, at a place that every
        worker sees: a shared folder, or a URL that fsspec knows, such as ``s3://bucket/rows/*.parquet``.
    key : str, optional
        Which array of a zarr store with several.

    Returns
    -------
    Opened
        With a dask frame of a column for each variable (parquet), or a dask array (zarr).

    Raises
    ------
    ValueError
        Also for kinds of files that workers cannot share.
    FileNotFoundError
    ImportError
        With what to install.
    """
    where = str(path)
    kind = _kind(where)
    if kind == ".zarr":
        where = where if _is_remote(where) else str(Path(where).absolute())
        return _dask_store(where, key)
    if kind != ".parquet":
        raise ValueError(
            f"{where} is a {kind} file, which the workers of a cluster cannot share. Write the rows as "
            "parquet or zarr, or read it without a cluster."
        )
    _refuse_key(where, key)
    return _dask_parquet(where)


def _dask_store(where: str, key: str | None) -> Opened:
    array = _needed("dask.array", "cluster runs", "cluster")
    opener = _opener(where, ".zarr")
    with opener() as root:
        key, node = _found(where, root, key)
        if _is_array(node):
            _check_table(where, node.shape, node.dtype)
            rows = array.from_zarr(where, component=key or None)
        else:
            rows = _dask_compressed(_Compressed(where, opener, key, node))
        return Opened(rows, *_anndata_names(where, opener, root, key, rows.shape))


def _dask_compressed(rows: _Compressed) -> Any:
    """Compressed rows as a dask array whose chunks are written out, none larger than a block."""
    array = _needed("dask.array", "cluster runs", "cluster")
    n, p = rows.shape
    size = min(block_rows(p), n)
    sizes = [min(size, n - start) for start in range(0, n, size)]
    return array.map_blocks(
        _written_out, rows, chunks=(tuple(sizes), (p,)), dtype=np.float64, meta=np.empty((0, 0))
    )


def _written_out(rows: _Compressed, block_info: Any = None) -> np.ndarray:
    start, stop = block_info[None]["array-location"][0]
    return rows.rows(start, stop).toarray()


def _dask_parquet(where: str) -> Opened:
    _needed("pyarrow", "parquet files")
    frames = _needed("dask.dataframe", "cluster runs", "cluster")
    types = _needed("pandas", "cluster runs", "cluster").api.types
    local = not _is_remote(where)
    if local:
        # compares the columns of all files; dask would find a difference half-way through a fit
        _open_parquet(where)
    source = [str(file.absolute()) for file in _parquet_files(where)] if local else where
    with _reading(where, "parquet files"):
        frame = frames.read_parquet(source)
    kinds: dict[str, list[str]] = {"numbers": [], "text": [], "rest": []}
    for name, dtype in frame.dtypes.items():
        is_text = types.is_string_dtype(dtype) or isinstance(dtype, types.CategoricalDtype)
        kinds["numbers" if types.is_numeric_dtype(dtype) else "text" if is_text else "rest"].append(
            str(name)
        )
    index = frame._meta.index
    counted = type(index).__name__ == "RangeIndex"
    # an index that is text takes the names, as in `_parquet_columns`
    own = [] if counted else ["the index"]
    if own and not types.is_numeric_dtype(index.dtype):
        kinds["text"].append(own[0])
    found = _sorted_out(where, own, kinds["text"], kinds["numbers"], kinds["rest"])
    rows = frame[found.numbers].astype("float64")
    named = None
    if found.names is not None:
        series = frame.index if found.names in own else frame[found.names]
        named = Names(lambda: computed(series.to_delayed()))
    return Opened(rows, np.array(found.numbers), named)


def computed(parts: Iterable[Any]) -> Iterator[Any]:
    """What dask makes of delayed parts, in their order, some at the same time.

    Parameters
    ----------
    parts : iterable of dask.delayed.Delayed

    Yields
    ------
    object
        The value of each; a few are held at a time.
    """
    dask = _needed("dask", "cluster runs", "cluster")
    waiting: list[Any] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) == AT_ONCE:
            yield from dask.compute(*waiting)
            waiting = []
    yield from dask.compute(*waiting)
