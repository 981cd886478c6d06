"""Patterns of some cells that others do not have, from an AnnData object and into it."""

from __future__ import annotations

import numbers
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np

from contrica.errors import DelicateDataWarning, ParameterError, unmarked, warn
from contrica.estimators._base import BaseContrastive
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.inference._check import look_like_counts
from contrica.inference._donors import ask_for_donors, names_donors
from contrica.rows.device import to_numpy
from contrica.rows.memory import check_memory, memory_budget
from contrica.rows.products import rows_times
from contrica.rows.protocol import iterate_blocks
from contrica.tl._selection import (
    Cells,
    Source,
    check_adata,
    find_cells,
    find_source,
    group_labels_of,
)
from contrica.tl._storage import (
    check_key,
    check_writable,
    entry_of,
    get_model,
    result_of,
    text,
    to_write,
)

__all__ = ["cica", "remove_background", "score"]

# Cells by which raw counts are recognised.
CLOSE_CELLS = 500


def cica(
    adata: Any,
    groupby: str,
    background: Any,
    foreground: Any = None,
    *,
    groups: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = None,
    n_comps: int | str | None = "auto",
    key_added: str = "cica",
    copy: bool = False,
    random_state: Any = 0,
    **options: Any,
) -> Any:
    """Patterns of the foreground's cells that the background's do not have.

    Give logarithms of normalised counts, as ``sc.pp.normalize_total`` and ``sc.pp.log1p`` make them.
    The matrix may be dense or sparse, in memory, in a file (backed) or of dask.

    Parameters
    ----------
    adata : AnnData
    groupby : str
        Column of ``adata.obs`` that says which cells are background.
    background : str, or list of str
        Its level, or levels, that are the background. Cells of several are one background.
    foreground : str, list of str, or None, default=None
        Levels that are the foreground; ``None``: all others.
    groups : str or None, default=None
        Column of ``adata.obs`` with the donor, animal or sample of every cell. Cells of one donor are not
        independent: with groups, p-values count donors. A donor with cells in both datasets is paired.
    layer : str or None, default=None
        Layer to take in place of ``adata.X``.
    use_rep : str or None, default=None
        Entry of ``adata.obsm``, such as "X_pca", to take in place of genes.
    mask_var : str, array of bool, False or None, default=None
        Which variables to use: a column of ``adata.var``, or an array. ``None``: "highly_variable" where
        there is such a column, and all otherwise. ``False``: all.
    n_comps : int, "auto" or None, default="auto"
        Patterns to keep, ``n_components`` of `contrica.ContrastiveICA`. "auto": those that stand out.
    key_added : str, default="cica"
        Name under which results are stored.
    copy : bool, default=False
        Whether to return a copy with the results, in place of writing them into ``adata``.
    random_state : int, Generator, RandomState or None, default=0
    **options : object
        Other parameters of `contrica.ContrastiveICA`, such as ``solver``, ``n_pcs``, ``scale`` or
        ``missing``.

    Returns
    -------
    AnnData or None
        A copy, with ``copy=True``. In it, or in ``adata``, there are

        ``obsm["X_cica"]``
            Scores of all cells, background and others too, n_obs × k.
        ``varm["cica"]``
            Patterns, n_vars × k, 0 for variables that were not used; none with ``use_rep``, where
            ``uns["cica"]["patterns"]`` has them over its coordinates.
        ``uns["cica"]``
            ``params``; ``variables``, those used; of every pattern ``ratios`` k(f), ``contrast_ratios``
            k(b), ``p_values`` (NaN where not tested), ``t_values``, ``weights`` and ``effects`` (over
            ``variables``); ``n_foreground`` and ``n_background``, the ranks ℓ and r; ``n_cells`` of
            foreground and background; ``mean`` and ``filters``; ``groups`` and ``group_share`` where
            there are groups; ``summary`` in words; ``model``, of which `get_model` makes the fitted one.

    See Also
    --------
    rank_genes : the genes of each pattern.
    score : scores of other cells.
    stability, significance : whether to rely on a pattern.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from contrica import tl
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.laplace(size=(600, 20)))
    >>> adata.obs["condition"] = np.repeat(["ctrl", "stim"], 300)
    >>> adata.X[300:, 3] *= 4
    >>> tl.cica(adata, "condition", "ctrl")
    >>> adata.obsm["X_cica"].shape, int(np.argmax(adata.varm["cica"][:, 0]))
    ((600, 1), 3)
    """
    check_adata(adata)
    check_key(key_added)
    check_writable(adata, copy=copy)
    model = _model(n_comps, random_state, options)
    cells = find_cells(adata, groupby, background, foreground)
    source = find_source(adata, layer, use_rep, mask_var)
    labels = group_labels_of(adata, groups, cells)
    fore, back = source.rows(cells.fore), source.rows(cells.back)
    if use_rep is None:
        _warn_of_counts(source, cells)
    if groups is None:
        _ask_for_donors(adata, groupby, cells)
    model.fit(fore, background=back, **labels)
    scores = _scores_of_all(model, source, cells)
    seed = random_state if isinstance(random_state, numbers.Integral) else None
    params = {
        "groupby": groupby,
        "groups": text(groups),
        "layer": text(layer),
        "use_rep": text(use_rep),
        "n_comps": "all" if n_comps is None else n_comps,
        "random_state": "" if seed is None else int(seed),
    }
    result = result_of(model, source, cells, params)
    adata = to_write(adata, copy=copy)
    adata.obsm[f"X_{key_added}"] = scores
    if use_rep is None:
        patterns = np.zeros((adata.n_vars, len(model.components_)))
        patterns[source.columns] = model.components_.T
        adata.varm[key_added] = patterns
    adata.uns[key_added] = result
    return adata if copy else None


def _model(n_comps: Any, random_state: Any, options: dict[str, Any]) -> ContrastiveICA:
    known = signature(ContrastiveICA).parameters
    for name in options:
        if name == "n_components":
            raise ParameterError(
                "other-name", f"`{name}` was given", "here it is `n_comps`", parameter=name
            )
        if name not in known:
            near = get_close_matches(name, known, 1, 0.6)
            raise ParameterError(
                "unknown-option",
                f"`{unmarked(name)}` is a parameter neither of tl.cica nor of ContrastiveICA",
                remedy=f"Did you mean `{near[0]}`?" if near else "Leave it out.",
                parameter=name,
            )
    model = ContrastiveICA(n_comps, random_state=random_state, **options)
    model._check_parameters()
    return model


def _ask_for_donors(adata: Any, groupby: str, cells: Cells) -> None:
    """Warn of a column that names donors, of whom each has several cells, and that was not given."""
    columns = {}
    for i, name in enumerate(adata.obs.columns):
        if names_donors(name) and name != groupby:
            column = adata.obs.iloc[:, i]
            labels = np.where(column.isna(), "", column.astype(str))
            columns[name] = [labels[cells.fore], labels[cells.back]]
    ask_for_donors(columns, where="adata.obs has", rows="cells")


def _warn_of_counts(source: Source, cells: Cells) -> None:
    """Warn of raw counts, as a few cells show them; gaps aside."""
    some = np.zeros_like(cells.fore)
    some[np.flatnonzero(cells.fore | cells.back)[:CLOSE_CELLS]] = True
    rows = source.rows(some, lazily=True)
    both = np.vstack([to_numpy(block) for block in iterate_blocks(rows, CLOSE_CELLS)])
    if look_like_counts(both):
        warn(
            DelicateDataWarning(
                "raw-counts",
                "the matrix looks like raw counts: whole numbers, none negative",
                "patterns would then be those of sequencing depth",
                "Run sc.pp.normalize_total(adata) and sc.pp.log1p(adata) first, or name a normalised "
                "`layer`.",
                "layer",
            )
        )


def _scores_of_all(model: Any, source: Source, cells: Cells) -> np.ndarray:
    """Scores of all cells; the background's on the scale that they were fitted on."""
    everything = np.ones(cells.fore.size, dtype=bool)
    own = model.background_spreads_
    if own is None:
        return np.asarray(model.transform(source.rows(everything, lazily=True)))
    scores = np.empty((everything.size, len(model.components_)))
    scores[~cells.back] = model.transform(source.rows(~cells.back, lazily=True))
    behind = rows_times(source.rows(cells.back, lazily=True), (model._axes / own[0]).T)
    scores[cells.back] = behind - np.nanmean(behind, axis=0)
    return scores


def score(
    adata: Any,
    reference: Any,
    *,
    key: str = "cica",
    layer: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """Scores of new cells on patterns that were found before.

    Variables are found by their names, in any order; more may be there. Normalise the new cells as the
    old ones.

    Parameters
    ----------
    adata : AnnData
        The new cells.
    reference : AnnData or estimator
        What `cica` has written to, or a fitted model of contrica.
    key : str, default="cica"
        Of the reference.
    layer : str or None, default=None
        Of the new cells; ``None``: that of the reference.
    key_added : str or None, default=None
        Scores go to ``obsm["X_<key_added>"]``; ``None``: as ``key``.
    copy : bool, default=False

    Returns
    -------
    AnnData or None
        A copy, with ``copy=True``.
    """
    check_adata(adata)
    check_writable(adata, copy=copy)
    model, rep = reference, None
    if not isinstance(reference, BaseContrastive):
        params = entry_of(reference, key)["params"]
        model, rep = get_model(reference, key), str(params["use_rep"]) or None
        layer = layer if layer is not None else str(params["layer"]) or None
    model._check_fitted()
    names = getattr(model, "feature_names_in_", None)
    source = find_source(adata, None if rep else layer, rep, False, None if rep else names)
    scores = model.transform(source.rows(np.ones(adata.n_obs, dtype=bool), lazily=True))
    adata = to_write(adata, copy=copy)
    adata.obsm[f"X_{key_added or key}"] = np.asarray(scores)
    return adata if copy else None


def remove_background(
    adata: Any, *, key: str = "cica", layer_added: str | None = None, copy: bool = False
) -> Any:
    """Expression as the patterns alone give it, as a layer: what the background has too is left out.

    The layer is the foreground's mean plus scores times patterns. All other variation, the background's
    and noise, is gone; so do not test for differences in it.

    Parameters
    ----------
    adata : AnnData
        After `cica`, over genes.
    key : str, default="cica"
    layer_added : str or None, default=None
        Name of the layer; ``None``: as ``key``. Variables that the fit did not use are NaN.
    copy : bool, default=False

    Returns
    -------
    AnnData or None
        A copy, with ``copy=True``.
    """
    entry, model = entry_of(adata, key), get_model(adata, key)
    check_writable(adata, copy=copy)
    if str(entry["params"]["use_rep"]):
        raise ParameterError(
            "no-genes",
            f"`key={unmarked(key)}` was fitted to {unmarked(entry['params']['use_rep'])}, not to genes",
            "a layer is over genes",
            "Run contrica.tl.cica without `use_rep`.",
            "key",
        )
    source = find_source(adata, None, None, False, list(map(str, entry["variables"])))
    scores = adata.obsm[f"X_{key}"]
    needed = 4 * adata.n_obs * adata.n_vars + 8 * adata.n_obs * len(source.columns)
    check_memory(
        needed, memory_budget(), "the layer", "Keep the variables that were used, in a copy, first."
    )
    adata = to_write(adata, copy=copy)
    layer = np.full(adata.shape, np.nan, dtype=np.float32)
    layer[:, source.columns] = model.inverse_transform(scores)
    adata.layers[layer_added or key] = layer
    return adata if copy else None
