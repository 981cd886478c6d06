"""The genes of each pattern, and whether donors agree on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.errors import GroupWarning, ParameterError, unmarked, warn
from contrica.inference._group_effects import MIN_TESTED, group_effects
from contrica.tl._evidence import fitted_of
from contrica.tl._storage import check_writable, entry_of, get_model, to_write
from contrica.validation import check_count

__all__ = ["rank_genes"]


def rank_genes(
    adata: Any,
    *,
    key: str = "cica",
    test: bool | None = None,
    n_genes: int | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Any:
    """Genes of each pattern by effect size, with p-values over donors where there are some.

    Effect sizes say how many standard deviations of the background a gene moves when the pattern's score
    moves by one of its own. There is no p-value per cell. Cells that chose a pattern cannot test it: the
    pattern fits their noise too, and with thousands of cells every gene would come out significant.
    Donors can test it: `contrica.inference.group_effects` leaves each donor out once, fits the others,
    and measures in the donor left out how each gene moves with the score of all other genes. Every donor
    counts once.

    Parameters
    ----------
    adata : AnnData
        After `cica`.
    key : str, default="cica"
    test : bool or None, default=None
        Whether to test over donors, which takes a fit for each; ``None``: if `cica` had ``groups``.
    n_genes : int or None, default=None
        Genes of each pattern to return; ``None``: all that were used.
    random_state : int, Generator, RandomState or None, default=0
    n_jobs : int or None, default=None
        Processes.

    Returns
    -------
    DataFrame
        A row for each pattern (from 1) and gene, largest effect first: ``pattern``, ``gene``, ``loading``
        and ``effect``; where donors were tested also ``donor_effect`` (mean over donors), ``n_donors``,
        ``p_value`` and ``q_value`` (adjusted for the number of genes). Also stored, all genes of it, as
        ``adata.uns[key]["genes"]``.
    """
    import pandas as pd

    entry = entry_of(adata, key)
    check_writable(adata, copy=False)
    if n_genes is not None:
        check_count("n_genes", n_genes)
    grouped = bool(str(entry["params"]["groups"]))
    if test and not grouped:
        raise ParameterError(
            "no-groups",
            f"`test=True` was given, and `key={unmarked(key)}` was fitted without groups",
            "donors are what is tested over",
            "Run contrica.tl.cica with `groups`, the column of adata.obs that names donors.",
            "test",
        )
    patterns, effects = get_model(adata, key).components_, np.asarray(entry["effects"])
    count, p = patterns.shape
    columns = {
        "pattern": np.repeat(np.arange(1, count + 1), p),
        "gene": np.tile(np.asarray(entry["variables"]).astype(str), count),
        "loading": patterns.ravel(),
        "effect": effects.ravel(),
    }
    if grouped and test is not False:
        columns |= _tested(adata, key, random_state, n_jobs)
    table = pd.DataFrame(columns)
    size = table["effect"].abs()
    table = table.iloc[np.lexsort((-size, table["pattern"]))]
    table.index = pd.RangeIndex(len(table)).astype(str)
    to_write(adata, copy=False).uns[key] = dict(adata.uns[key]) | {"genes": table}
    return table if n_genes is None else table.groupby("pattern").head(n_genes)


def _tested(adata: Any, key: str, random_state: Any, n_jobs: int | None) -> dict[str, np.ndarray]:
    model, fore, back, labels = fitted_of(adata, key)
    found = group_effects(
        model, fore, background=back, **labels, random_state=random_state, n_jobs=n_jobs
    )
    used = int(found.n_groups.min(initial=len(found.groups)))
    if used < MIN_TESTED:
        warn(
            GroupWarning(
                "few-groups",
                f"{used} of {len(found.groups)} donors could be tested",
                f"a test over donors needs {MIN_TESTED}",
                "Read the effect sizes only, or add donors.",
                "groups",
            )
        )
    counts = np.maximum(np.sum(~np.isnan(found.effects), axis=1), 1)
    return {
        "donor_effect": (np.nansum(found.effects, axis=1) / counts).ravel(),
        "n_donors": np.repeat(found.n_groups, found.p_values.shape[1]),
        "p_value": found.p_values.ravel(),
        "q_value": found.q_values.ravel(),
    }
