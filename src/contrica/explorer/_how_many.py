"""What the numbers of patterns can be read from: contrast ratios with their null, and eigenvalues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils.extmath import randomized_svd

from contrica.errors import ContricaError, collected
from contrica.explorer._fits import Fits, model_of
from contrica.explorer._state import ViewState
from contrica.explorer._views import HowMany
from contrica.moments.symmetric import n_packed
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.problem import Problem
from contrica.solvers.ranks import Scree, dense_scree
from contrica.solvers.subspace_solver import permutation_scree

__all__ = ["how_many"]

# Principal components whose variances are shown.
MAX_PCS = 60


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
    variances = fits.beside(f"variances {state.scale}", lambda: _variances(fits, state))
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
            "dimension": variances.size,
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
    """Eigenvalues of both flattenings, for which rows are read as by a solver that asks for them."""
    asked = replace(state, solver="joint", n_foreground=None, n_background=None)
    try:
        with collected():
            problem = fits.read(model_of(fits.data, asked)).problem
        found = dense_scree(problem.fore, problem.back)
    except ContricaError as error:
        return None, [f"There are no eigenvalues: {error}"]
    if found is None:
        return None, [
            f"{problem.n_features} dimensions are too many for eigenvalues of flattenings."
        ]
    return found, []


def _variances(fits: Fits, state: ViewState) -> np.ndarray:
    """Of the principal components of both datasets together, in the state's units, as shares."""
    read = fits.read(model_of(fits.data, state))
    parts = (fits.data.fore, *fits.data.backs)
    spreads = read.reader.background_spreads_
    scales = [read.reader.scale_, *([read.reader.scale_] * len(fits.data.backs))]
    if spreads is not None:
        scales[1:] = list(spreads)
    rows = [part if own is None else part / own for part, own in zip(parts, scales, strict=True)]
    if state.scale == "each":
        rows = [part - np.nanmean(part, axis=0) for part in rows]
    both = np.nan_to_num(np.vstack(rows) - np.nanmean(np.vstack(rows), axis=0))
    side = both if both.shape[1] <= both.shape[0] else both.T
    if min(side.shape) > 1500:  # enough to choose from, and quick
        found = randomized_svd(both, MAX_PCS, random_state=0)[1] ** 2
        return np.asarray(found / np.sum(both**2))
    values = np.linalg.eigvalsh(side.T @ side)[::-1]
    kept = np.maximum(values, 0)
    return np.asarray(kept[:MAX_PCS] / max(kept.sum(), np.finfo(float).tiny))
