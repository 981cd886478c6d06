"""Missing values in a fit and in `transform`: what is checked, counted, taken and predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contrica.errors import ParameterError, unmarked
from contrica.moments.estimates import centred_cumulants
from contrica.moments.fourth import MAX_PACKED_FEATURES
from contrica.moments.pairwise import pairwise_bytes, pairwise_moments
from contrica.moments.working import Working
from contrica.rows.dataset import Dataset
from contrica.rows.device import to_numpy
from contrica.rows.memory import check_memory
from contrica.rows.missing import NOISE, predicted
from contrica.rows.observed import gaps_error
from contrica.rows.protocol import Rows, block_rows, iterate_blocks, width_of
from contrica.solvers.selection import searchable
from contrica.solvers.weights import n_groups_of
from contrica.validation import check_choice

__all__ = [
    "MISSING",
    "check_missing",
    "check_pairwise_budget",
    "describe_gaps",
    "factors_of",
    "from_observed",
    "missing_counts",
    "scores_of_observed",
]

MISSING = ("error", "impute", "pairwise")
# Factors from which `transform` predicts gaps, at most; the other axes count as noise.
MAX_LOADINGS = 60
# Rows in which any four variables must be observed for "impute" to take fourth cumulants from them.
MIN_OBSERVED = 30


def check_missing(missing: object, cumulant: str) -> None:
    """Refuse an unknown way with missing values, and one that does not go with the estimate.

    Parameters
    ----------
    missing : object
    cumulant : str
    """
    check_choice("missing", missing, MISSING)
    if missing == "pairwise" and cumulant != "plugin":
        raise ParameterError(
            "not-together",
            f"`cumulant={cumulant}` was given with `missing=pairwise`",
            "moments from observed values have the plug-in estimate only",
            "Use `missing=impute`, or leave `cumulant` out.",
            "missing",
        )


def check_pairwise_budget(n_features: int, budget: int) -> None:
    """Refuse moments from observed values of more variables than can be written out.

    Parameters
    ----------
    n_features : int
    budget : int
        Bytes.
    """
    remedy = "Use `missing=impute`, which has no such limit."
    if n_features > MAX_PACKED_FEATURES:
        raise ParameterError(
            "too-wide",
            f"`missing=pairwise` was given with {n_features} variables",
            f"fourth moments from observed values are written out, of {MAX_PACKED_FEATURES} at most",
            remedy,
            "missing",
        )
    what = f"fourth moments of the observed values of {n_features} variables"
    check_memory(pairwise_bytes(n_features), budget, what, f"{remedy} Or raise `memory_limit`.")


def missing_counts(datasets: Sequence[Dataset]) -> np.ndarray:
    """Missing values of every variable in every dataset.

    Parameters
    ----------
    datasets : sequence of Dataset

    Returns
    -------
    ndarray of int, shape (n_datasets, n_features)
    """
    none = np.zeros(datasets[0].n_features, dtype=np.int64)
    return np.array(
        [none if part.observed is None else part.observed.n_missing for part in datasets]
    )


def describe_gaps(counts: np.ndarray, names: np.ndarray | None, missing: str) -> str:
    """How many values were missing, and of which variable most, in words.

    Parameters
    ----------
    counts : ndarray of int, shape (n_datasets, n_features)
    names : ndarray of str or None
    missing : str

    Returns
    -------
    str

    Examples
    --------
    >>> describe_gaps(np.array([[3, 0], [0, 1]]), None, "impute")
    'missing values: 3 in the foreground, 1 in the background, most in x0 (3); missing="impute"'
    """
    most = int(counts.sum(axis=0).argmax())
    name = f"x{most}" if names is None else unmarked(names[most])
    fore, behind = counts[0].sum(), counts[1:].sum()
    return (
        f"missing values: {fore} in the foreground, {behind} in the background, most in {name} "
        f'({counts[:, most].sum()}); missing="{missing}"'
    )


def from_observed(
    datasets: Sequence[Dataset],
    basis: np.ndarray | None,
    taken: Working,
    missing: str,
    budget: int,
    *,
    own_means: bool = False,
) -> Working:
    """Cumulants from observed values, of datasets with gaps, in place of those of filled rows.

    With "impute" the covariance stays that of filled rows, which varies less. Fourth cumulants of filled
    rows are biased: a filled value depends on the others of its row as far as its prediction does only.
    They stay as well where observed values cannot give them: of too many variables, or of variables that
    are hardly observed together.

    Parameters
    ----------
    datasets : sequence of Dataset
    basis : ndarray of shape (n_features, k) or None
    taken : Working
    missing : {"impute", "pairwise"}
    budget : int
        Bytes.
    own_means : bool
        Whether every dataset is about its own mean (`contrica.moments.working.Workplace`).

    Returns
    -------
    Working
    """
    p, imputes = datasets[0].n_features, missing == "impute"
    if imputes and (p > MAX_PACKED_FEATURES or pairwise_bytes(p) > budget):
        return taken
    cumulants, grouped = list(taken.cumulants), list(taken.grouped)
    for i, part in enumerate(datasets):
        if part.observed is None or part.unfilled is None or not part.observed.n_missing.any():
            continue
        # groups for the standard errors of a joint fit; where variables are many, filled rows give them
        by_groups = searchable(p, n_datasets=len(datasets))
        found = pairwise_moments(
            part.unfilled, part.observed.mean, n_groups_of(len(part)) if by_groups else 1
        )
        if imputes and found.n_together < MIN_OBSERVED:
            return taken
        own = found.cumulants(part.name)
        own = own if basis is None else own.projected(basis)
        own = centred_cumulants(own) if own_means else own
        filled = taken.cumulants[i]
        cumulants[i] = (
            replace(own, mean=filled.mean, covariance=filled.covariance) if imputes else own
        )
        grouped[i] = [each.projected(basis) for each in found.groups()] if by_groups else None
    return taken._replace(cumulants=cumulants, grouped=grouped)


def factors_of(
    covariance: np.ndarray, basis: np.ndarray | None, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A covariance in the coordinates of a basis as loadings and noise of the variables.

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
    basis : ndarray of shape (n_features, k) or None
    variances : ndarray of shape (n_features,)
        Of the variables.

    Returns
    -------
    loadings : ndarray of shape (n_features, at most 60)
    noise : ndarray of shape (n_features,)
    """
    values, axes = np.linalg.eigh(covariance)
    loadings = (axes * np.sqrt(np.maximum(values, 0.0)))[:, -MAX_LOADINGS:]
    if basis is not None:
        loadings = basis @ loadings
    least = NOISE * np.where(variances > 0, variances, max(float(variances.max()), 1e-300))
    return loadings, np.maximum(variances - np.sum(loadings**2, axis=1), least)


def scores_of_observed(
    rows: np.ndarray | Rows,
    axes: np.ndarray,
    mean: np.ndarray,
    loadings: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """Scores of rows whose missing values are predicted from the observed ones.

    Parameters
    ----------
    rows : ndarray or Rows
    axes : ndarray of shape (n_components, n_features)
    mean : ndarray of shape (n_features,)
    loadings, noise : ndarray
        Of `factors_of`.

    Returns
    -------
    ndarray of shape (n, n_components)
        NaN for rows in which nothing was observed.
    """
    found = [np.empty((0, len(axes)))]
    for block in iterate_blocks(rows, block_rows(width_of(rows), rows)):
        if np.isinf(to_numpy(block)).any():
            raise gaps_error(rows, "X", None, "Infinity is not a missing value: write NaN.")
        centred = to_numpy(block) - mean
        observed = ~np.isnan(centred)
        gaps = np.flatnonzero(~observed.all(axis=1))
        known = np.where(observed[gaps], centred[gaps], 0.0)
        full = predicted(known, observed[gaps], loadings, noise)
        centred[gaps] = np.where(observed[gaps], known, full)
        scores = centred @ axes.T
        scores[~observed.any(axis=1)] = np.nan
        found.append(scores)
    return np.vstack(found)
