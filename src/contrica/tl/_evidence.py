"""Whether to rely on a pattern: `contrica.inference` on the cells of a fit, stored beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from contrica import inference
from contrica.errors import DataError, unmarked
from contrica.rows.memory import check_memory, memory_budget
from contrica.rows.products import in_memory
from contrica.rows.protocol import Rows
from contrica.rows.sparse import SparseRows
from contrica.tl._selection import find_cells, find_source, group_labels_of
from contrica.tl._storage import check_writable, entry_of, get_model, to_write

__all__ = ["Fitted", "fitted_of", "significance", "stability"]


class Fitted(NamedTuple):
    """A model and the cells that it was fitted to, in memory.

    Attributes
    ----------
    model : ContrastiveICA
    fore, back : DataFrame or SparseRows
    labels : dict
        Groups of both, as ``fit`` takes them; empty without groups.
    """

    model: Any
    fore: Any
    back: Any
    labels: dict[str, Any]


def fitted_of(adata: Any, key: str) -> Fitted:
    """The model under a key with its cells, which must still be there.

    Parameters
    ----------
    adata : AnnData
    key : str

    Returns
    -------
    Fitted
    """
    entry = entry_of(adata, key)
    asked = entry["params"]
    cells = find_cells(
        adata,
        str(asked["groupby"]),
        *(list(map(str, asked[k])) for k in ("background", "foreground")),
    )
    found, known = [int(cells.fore.sum()), int(cells.back.sum())], np.asarray(entry["n_cells"])
    if found != known.tolist():
        raise DataError(
            "other-cells",
            f"foreground and background have {found[0]} and {found[1]} cells",
            f"`key={unmarked(key)}` was fitted to {known[0]} and {known[1]}",
            "Run contrica.tl.cica again.",
            "adata",
        )
    rep, names = str(asked["use_rep"]) or None, list(map(str, entry["variables"]))
    source = find_source(adata, str(asked["layer"]) or None, rep, False, None if rep else names)
    labels = group_labels_of(adata, str(asked["groups"]) or None, cells)
    fore, back = (_loaded(source.rows(mask)) for mask in (cells.fore, cells.back))
    return Fitted(get_model(adata, key), fore, back, labels)


def _loaded(rows: Any) -> Any:
    """Rows in memory, for what takes them by number; sparse ones stay so."""
    if not isinstance(rows, Rows) or isinstance(rows, SparseRows):
        return rows
    names = rows.columns  # type: ignore[attr-defined]
    if rows.sparse:
        found = SparseRows(sp.vstack(list(rows.pieces()), format="csr"))
        found.columns = names  # type: ignore[attr-defined]
        return found
    import pandas as pd

    check_memory(
        8 * rows.shape[0] * rows.shape[1],
        memory_budget(),
        "the cells in memory",
        "Use fewer variables (`mask_var`), or a sample of the cells.",
    )
    return pd.DataFrame(in_memory(rows), columns=names)


def stability(
    adata: Any,
    *,
    key: str = "cica",
    n_resamples: int = 100,
    random_state: Any = 0,
    n_jobs: int | None = None,
    copy: bool = False,
) -> Any:
    """Fit resampled cells, or donors, and store how each pattern comes back.

    `contrica.inference.stability` of the cells that `cica` was fitted to; with ``groups`` whole donors
    are drawn, and each one is left out once.

    Parameters
    ----------
    adata : AnnData
        After `cica`.
    key : str, default="cica"
    n_resamples : int, default=100
    random_state : int, Generator, RandomState or None, default=0
    n_jobs : int or None, default=None
        Processes.
    copy : bool, default=False

    Returns
    -------
    AnnData or None
        A copy, with ``copy=True``. In it, or in ``adata``, ``uns[key]["stability"]`` has of every pattern
        ``index`` (mean |correlation| of its scores with those of refits) and ``returned``, the number of
        ``n_resamples`` in which it was found; ``similarity`` by resample; ``intervals`` (90 %, of the
        loadings of ``variables``) and ``ratio_intervals`` where there are; ``left_out`` and
        ``left_out_similarity`` by donor; ``unit``; ``summary`` in words.
    """
    model, fore, back, labels = fitted_of(adata, key)
    check_writable(adata, copy=copy)
    found = inference.stability(
        model,
        fore,
        background=back,
        **labels,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    stored = {
        "index": found.index,
        "returned": found.n_found,
        "n_resamples": found.n_resamples,
        "n_failed": found.n_failed,
        "similarity": found.similarity,
        "left_out": np.array(found.left_out, dtype=str),
        "left_out_similarity": found.left_out_similarity,
        "unit": found.unit,
        "summary": str(found),
    }
    if found.intervals is not None:
        stored["intervals"] = found.intervals
    if found.ratio_intervals is not None:
        stored["ratio_intervals"] = found.ratio_intervals
    return _store(adata, key, "stability", stored, copy=copy)


def significance(
    adata: Any,
    *,
    key: str = "cica",
    n_permutations: int = 199,
    random_state: Any = None,
    n_jobs: int | None = None,
    copy: bool = False,
) -> Any:
    """Test whether foreground and background are one distribution, and store the p-values.

    `contrica.inference.significance` of the cells that `cica` was fitted to; with ``groups`` whole donors
    are permuted. Without them cells are, as if they were independent, which those of one donor are not:
    p-values are then too small.

    Parameters
    ----------
    adata : AnnData
        After `cica`.
    key : str, default="cica"
    n_permutations : int, default=199
    random_state : int, Generator, RandomState or None, default=None
        ``None``: permutations of the fit.
    n_jobs : int or None, default=None
        Processes.
    copy : bool, default=False

    Returns
    -------
    AnnData or None
        A copy, with ``copy=True``. In it, or in ``adata``, ``uns[key]["significance"]`` has ``p_values``
        of the patterns in turn, ``statistics``, ``n_significant``, ``n_permutations``, ``smallest_p``,
        ``is_complete``, ``unit``, ``level``, and ``summary`` in words.
    """
    model, fore, back, labels = fitted_of(adata, key)
    check_writable(adata, copy=copy)
    found = inference.significance(
        model,
        fore,
        background=back,
        **labels,
        n_permutations=n_permutations,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return _store(adata, key, "significance", vars(found) | {"summary": str(found)}, copy=copy)


def _store(adata: Any, key: str, name: str, found: dict[str, Any], *, copy: bool) -> Any:
    adata = to_write(adata, copy=copy)
    adata.uns[key] = dict(adata.uns[key]) | {name: found}
    return adata if copy else None
