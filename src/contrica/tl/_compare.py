"""All contrastive methods side by side on the cells of one AnnData object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contrica.compare import compare_methods
from contrica.errors import DataError, unmarked
from contrica.tl._selection import check_adata, column_labels, find_cells, find_source
from contrica.tl._storage import check_writable, text, to_write

__all__ = ["compare"]


def compare(
    adata: Any,
    groupby: str,
    background: Any,
    foreground: Any = None,
    *,
    labels: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = None,
    n_comps: int = 2,
    methods: Sequence[str] | None = None,
    key_added: str = "compare",
    copy: bool = False,
    random_state: Any = 0,
) -> Any:
    """Fit every contrastive method, and plain ICA and PCA, to the same cells.

    `contrica.compare.compare_methods` says what each is. Labels choose nothing: they give the silhouette
    of the foreground's scores, afterwards.

    Parameters
    ----------
    adata : AnnData
    groupby, background, foreground : str, or list of str
        As of `cica`.
    labels : str or None, default=None
        Column of ``adata.obs``, for silhouettes.
    layer, use_rep, mask_var : object
        As of `cica`.
    n_comps : int, default=2
        Patterns of each method.
    methods : sequence of str, optional
        Short names, such as "auto", "cpca" or "pca"; all by default.
    key_added : str, default="compare"
    copy : bool, default=False
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    AnnData or None
        A copy, with ``copy=True``. In it, or in ``adata``, ``obsm["X_compare_<method>"]`` has the scores
        of foreground and background cells, NaN of all others, of each method that could be fitted, and
        ``uns["compare"]`` ``params`` and ``table``, a data frame with a row for each method.
    """
    import pandas as pd

    check_adata(adata)
    check_writable(adata, copy=copy)
    cells = find_cells(adata, groupby, background, foreground)
    source = find_source(adata, layer, use_rep, mask_var)
    own = None if labels is None else _labels(adata, labels, cells.fore)
    found = compare_methods(
        source.rows(cells.fore),
        source.rows(cells.back),
        labels=own,
        n_components=n_comps,
        methods=methods,
        random_state=random_state,
    )
    columns, rows = found.table()
    table = pd.DataFrame(rows, columns=columns)
    for name in ("chose", "warnings", "error"):  # text, which files take without None
        table[name] = [text(each) for each in table[name]]
    for name in table.columns.difference(["method", "chose", "warnings", "error"]):
        table[name] = pd.to_numeric(table[name])
    table.index = table.index.astype(str)
    adata = to_write(adata, copy=copy)
    for result in found:
        if result.scores is not None and result.background_scores is not None:
            scores = np.full((adata.n_obs, result.scores.shape[1]), np.nan)
            scores[cells.fore], scores[cells.back] = result.scores, result.background_scores
            adata.obsm[f"X_{key_added}_{result.key}"] = scores
    adata.uns[key_added] = {
        "params": {
            "groupby": groupby,
            "foreground": list(cells.foreground),
            "background": list(cells.background),
            "labels": text(labels),
            "layer": text(layer),
            "use_rep": text(use_rep),
            "mask_var": source.mask_var,
        },
        "table": table,
    }
    return adata if copy else None


def _labels(adata: Any, column: str, fore: np.ndarray) -> np.ndarray:
    found = column_labels(adata, column, "labels")
    own = np.array([*found.names, ""], dtype=object)[found.codes][fore]
    if not any(own):
        raise DataError(
            "labels-missing",
            f"no cell of the foreground has a value in `labels={unmarked(column)}`",
            "silhouettes need labels",
            "Name another column.",
            "labels",
        )
    return own
