"""What the numbers of patterns can be read from: contrast ratios with their null, and eigenvalues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contrica.errors import ContricaError, collected
from contrica.estimators import ReadOnce
from contrica.explorer._fits import Fits, model_of
from contrica.explorer._state import ViewState
from contrica.explorer._views import HowMany
from contrica.moments import cumulants
from contrica.moments.estimates import pooled
from contrica.moments.symmetric import n_packed
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.problem import Problem
from contrica.solvers.ranks import Scree, dense_scree
from contrica.solvers.subspace_solver import permutation_scree

__all__ = ["how_many"]

# Principal components whose variances are shown, and variables up to which all of them are worked out.
MAX_PCS, MAX_EXACT = 60, 300


def how_many(fits: Fits, state: ViewState) -> HowMany:
    """Contrast ratios, their null, and the eigenvalues of both flattenings.

    Parameters
    ----------
    fits : Fits
    state : ViewState

    Returns
    -------
    HowMany
    """
    view = fits.of(state)
    read = fits.read(model_of(fits.data, state))
    key = f"{state.scale} {state.dimension}"
    null, notes = fits.beside(f"null {key}", lambda: _null(read.problem))
    scree, more = fits.beside(f"scree {key}", lambda: _scree(fits, state))
    variances = fits.beside(
        f"variances {state.scale} {state.dimension}", lambda: _variances(fits, state)
    )
    p = view.dimension
    room = n_packed(p)
    is_subspace = view.solver == "subspace"
    return HowMany(
        ratios=np.empty(0) if null is None else null.ratios,
        null_quantile=float("nan") if null is None else null.null_quantile,
        null_mean=float("nan") if null is None else null.null_mean,
        p_values=np.empty(0) if null is None else null.p_values,
        foreground_eigenvalues=np.empty(0) if scree is None else scree.foreground,
        background_eigenvalues=_or_nothing(None if scree is None else scree.background),
        variances=variances,
        n_foreground=view.n_foreground,
        n_background=view.n_background,
        dimension=p,
        is_automatic={
            "n_foreground": state.n_foreground is None,
            "n_background": state.n_background is None,
            "dimension": state.dimension is None,
        },
        largest={
            "n_foreground": p if is_subspace else max(room - max(view.n_background, 1), 1),
            "n_background": 0 if is_subspace else max(room - max(view.n_foreground, 1), 1),
            "dimension": min(MAX_PCS, len(fits.data.names)),
        },
        notes=(*notes, *more),
    )


def _or_nothing(values: np.ndarray | None) -> np.ndarray:
    return np.empty(0) if values is None else values


def _null(problem: Problem) -> tuple[ContrastScree | None, list[str]]:
    try:
        with collected() as warned:
            return permutation_scree(problem), [str(each) for each in warned]
    except ContricaError as error:
        return None, [f"There are no contrast ratios: {error}"]


def _scree(fits: Fits, state: ViewState) -> tuple[Scree | None, list[str]]:
    """Eigenvalues of both flattenings: of the rows as they were read, where those are all there is."""
    model = model_of(fits.data, state)
    problem = fits.read(model).problem
    try:
        with collected():
            if not _are_all(problem) or model.cumulant != "plugin" or model.missing != "error":
                # read as by a solver that asks for fourth cumulants of every dataset
                asked = replace(state, solver="joint", n_foreground=None, n_background=None)
                problem = fits.read(model_of(fits.data, asked)).problem
                found = dense_scree(problem.fore, problem.back)
            else:
                fore, *backs = (cumulants(rows) for rows in problem.rows)
                found = dense_scree(fore, pooled(tuple(backs)))
    except ContricaError as error:
        return None, [f"There are no eigenvalues: {error}"]
    if found is None:
        return None, [
            f"{problem.n_features} dimensions are too many for eigenvalues of flattenings."
        ]
    return found, []


def _are_all(problem: Problem) -> bool:
    """Whether the rows of a problem are not a sample."""
    return all(
        part.n_samples == len(rows)
        for part, rows in zip(problem.datasets, problem.rows, strict=True)
    )


def _variances(fits: Fits, state: ViewState) -> np.ndarray:
    """Of the principal components of both datasets together, in the state's units, as shares.

    Of many variables only those components that are worked in.
    """
    read = fits.read(model_of(fits.data, state))
    rows = _divided(fits, read)
    total = np.sum([np.nansum(part**2, axis=0) for part in rows], axis=0)
    counts = np.sum([np.sum(~np.isnan(part), axis=0) for part in rows], axis=0)
    means = np.sum([np.nansum(part, axis=0) for part in rows], axis=0) / np.maximum(counts, 1)
    whole = max(float(np.sum(total - counts * means**2)), float(np.finfo(float).tiny))
    if means.size > MAX_EXACT:
        known = np.vstack(read.problem.rows)
        share = sum(map(len, rows)) / len(known)  # where the rows are a sample
        return np.asarray(np.sort(known.var(axis=0))[::-1] * len(known) * share / whole)
    scatter = np.zeros((means.size, means.size))
    for part in rows:
        centred = np.nan_to_num(part - means)
        scatter += centred.T @ centred
    return np.asarray(np.maximum(np.linalg.eigvalsh(scatter)[::-1], 0)[:MAX_PCS] / whole)


def _divided(fits: Fits, read: ReadOnce) -> list[np.ndarray]:
    """Rows of all datasets in the units of the fit, about their own means where it takes those."""
    data, own = fits.data, read.reader.background_spreads_
    scale = read.reader.scale_
    scales = [scale, *([scale] * len(data.backs) if own is None else own)]
    rows = [
        part if each is None else part / each
        for part, each in zip((data.fore, *data.backs), scales, strict=True)
    ]
    return rows if own is None else [part - np.nanmean(part, axis=0) for part in rows]
