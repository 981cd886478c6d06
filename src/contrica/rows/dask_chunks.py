"""Chunks of dask arrays and frames, summed by the workers that have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from contrica.errors import ClusterLostError, DataError
from contrica.rows.protocol import Rows, iterate_blocks

__all__ = ["DaskRows", "dask_rows"]

# Accumulators merged at a time by dask: what one worker has in memory of them.
MERGED_AT_ONCE = 4


class DaskRows(Rows):
    """Chunks of a dask array: sums are taken where the chunks are, on the caller's scheduler."""

    is_on_cluster = True

    def __init__(self, data: Any, as_rows: Callable[[Any, str], Any]) -> None:
        self._as_rows = as_rows
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        self._chunks = data.to_delayed().ravel().tolist()
        self._starts = np.concatenate([[0], np.cumsum(data.chunks[0])[:-1]]).astype(int).tolist()

    def blocks(self, n_rows: int) -> Iterator[Any]:
        """Chunk after chunk, brought here."""
        for chunk in self._chunks:
            yield from iterate_blocks(self._as_rows(_computed(chunk), "a chunk"), n_rows)

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        """``empty`` filled by the workers, chunk by chunk, and merged in a tree."""
        import dask

        # one node of the graph, however large what it carries
        shared = dask.delayed(empty, traverse=False, pure=False)
        fill = dask.delayed(_filled, pure=False)
        parts = [
            fill(chunk, self._as_rows, shared, start, n_rows)
            for chunk, start in zip(self._chunks, self._starts, strict=True)
        ]
        merge = dask.delayed(_merged, pure=False)
        while len(parts) > 1:
            parts = [
                merge(parts[i : i + MERGED_AT_ONCE]) for i in range(0, len(parts), MERGED_AT_ONCE)
            ]
        return _computed(parts[0])


def _filled(
    chunk: Any,
    as_rows: Callable[[Any, str], Any],
    empty: Callable[[int], Any],
    start: int,
    n_rows: int,
) -> Any:
    """An accumulator of one chunk; runs on a worker."""
    total = empty(start)
    for block in iterate_blocks(as_rows(chunk, "a chunk"), n_rows):
        total.update(block)
    return total


def _merged(parts: list[Any]) -> Any:
    """All in one, the first of them made anew: dask's results must not be changed in place."""
    first, *others = parts
    if not others:
        return first
    from copy import deepcopy

    total = deepcopy(first)
    for part in others:
        total.merge(part)
    return total


def _computed(delayed: Any) -> Any:
    """The value; a cluster that is lost is said in words."""
    with _cluster():
        return delayed.compute()


@contextmanager
def _cluster() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] != "distributed" and not _is_gone():
            raise
        raise ClusterLostError(
            "cluster-lost",
            f"the dask cluster was lost while rows were summed ({type(error).__name__}: {error}). "
            "Nothing was fitted",
            remedy="Start the cluster, or give its workers more memory or smaller chunks, and fit again; "
            "with partial_fit the sums made so far can be saved.",
        ) from error


def _is_gone() -> bool:
    """Whether there was a cluster, and it does not answer any more."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        return bool(distributed.default_client().status != "running")
    except ValueError:  # there is none
        return False


def dask_rows(data: Any, name: str, as_rows: Callable[[Any, str], Any]) -> Rows:
    """Chunks of a dask array or frame.

    Parameters
    ----------
    data : dask array or frame
    name : str
        What errors call it.
    as_rows : callable
        What makes an array or `Rows` of a chunk: `contrica.rows.as_rows`, which must be picklable.

    Returns
    -------
    DaskRows
    """
    if hasattr(data, "to_dask_array"):
        with _cluster():
            data = data.to_dask_array(lengths=True)
    if data.ndim != 2:
        raise DataError(
            "dimensions",
            f"`{name}` has {data.ndim} dimensions",
            "a table of rows by variables is needed",
            "Reshape it.",
            name,
        )
    if any(np.isnan(size) for size in data.chunks[0]):
        with _cluster():
            data = data.compute_chunk_sizes()
    return DaskRows(data.rechunk({1: -1}), as_rows)  # whole rows
