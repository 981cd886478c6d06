"""Contrast subspace first, then ICA inside it: a solver for data in which the model holds loosely.

On real data a fourth cumulant is often dominated by heavy-tailed background directions. The directions
in which the foreground differs most from the background need means and variances only: the leading
generalised eigenvectors of ``(Σ_x + δδᵀ, Σ_y + ρ I)``, with δ the difference of the means. Inside the
subspace they span, of few dimensions, independent sources are sought with a contrast that outliers do not
dominate (`contrica.solvers.negentropy`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.decompositions import Decomposition, canonical
from contrica.errors import ConvergenceWarning, DataError, ParameterError, PatternWarning, warn
from contrica.moments.estimates import Cumulants
from contrica.rows.protocol import block_rows, iterate_blocks
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.negentropy import N_STARTS, Rotation, farthest_from_gaussian
from contrica.solvers.ratio import source_ratio
from contrica.validation import check_count

__all__ = ["SubspaceFit", "subspace_ica"]


class SubspaceFit(NamedTuple):
    """Sources found inside a contrast subspace.

    Attributes
    ----------
    foreground : Decomposition
        Patterns ``Σ_x f / ‖Σ_x f‖`` of the filters f, and their weights in κ₄(x).
    ratio : ndarray of shape (d,)
        k(f) of each source (`contrica.solvers.ratio.source_ratio`).
    filters : ndarray of shape (p, d)
        The f; sources have variance 1.
    n_iter : int
    """

    foreground: Decomposition
    ratio: np.ndarray
    filters: np.ndarray
    n_iter: int


def subspace_ica(
    fore: Cumulants,
    back: Cumulants,
    X: np.ndarray,
    n_dimensions: int,
    *,
    rng: np.random.Generator,
    skip: int = 0,
    floor: float | None = None,
    quiet: bool = False,
    n_starts: int = N_STARTS,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> SubspaceFit:
    """Independent sources inside the subspace of largest contrast.

    The ``d`` leading axes of `contrast_axes`, by mean square about the background's mean over variance in
    the background as in k(f), are whitened by the foreground's covariance, and rotated until their
    sources are farthest from Gaussian (`contrica.solvers.negentropy`). A source found by the filter f
    appears in the variables as ``Σ_x f``, its pattern.

    Parameters
    ----------
    fore, back : Cumulants
    X : ndarray of shape (n, p)
        The foreground's rows, in the same coordinates.
    n_dimensions : int
        d, at most p.
    rng : numpy.random.Generator
        Source of the rotations to start from.
    skip : int
        Leading axes to leave out; sources along the others are not correlated with theirs.
    floor : float, optional
        ρ of `contrast_axes`; by default from the number of the background's rows.
    quiet : bool
        Whether to leave out warnings that the search has not converged, or that the foreground varies in
        fewer directions.
    n_starts, max_iter, tol
        As of `contrica.solvers.negentropy.farthest_from_gaussian`.

    Returns
    -------
    SubspaceFit
        d patterns, by decreasing weight.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import cumulants
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.laplace(size=(2000, 4))
    >>> X = rng.laplace(size=(2000, 4)) + 3 * rng.choice([-1, 1], (2000, 1)) * [1.0, 0, 0, 0]
    >>> found = subspace_ica(cumulants(X), cumulants(Y), X, 1, rng=rng)
    >>> bool(abs(found.foreground.vectors[0, 0]) > 0.99)
    True
    """
    d = check_count("n_dimensions", n_dimensions)
    if skip + d > fore.n_features:
        raise ParameterError(
            "too-large",
            f"`n_dimensions={d}` is more than the {fore.n_features - skip} dimensions there are",
            remedy="Lower it.",
            parameter="n_dimensions",
        )
    whiten = _whitened(fore, back, skip, d, floor, quiet)
    rows = _along(X, fore.mean, whiten)
    found = farthest_from_gaussian(rows, rng=rng, n_starts=n_starts, max_iter=max_iter, tol=tol)
    if not quiet and found.gradient_norm > tol and found.n_iter >= max_iter:
        _warn_of_steps(found, max_iter, tol)
    filters = whiten @ found.matrix
    ratio = source_ratio(filters, fore, back, quiet=quiet)
    weights = fore.fourth.coefficients(filters)
    patterns = fore.covariance @ filters
    # a source of unit variance with fourth cumulant c adds c · (Σf)^{⊗4}
    order = np.argsort(-np.abs(weights) * np.linalg.norm(patterns, axis=0) ** 4, kind="stable")
    foreground = canonical(weights[order], patterns[:, order], found.n_iter)
    return SubspaceFit(foreground, ratio[order], filters[:, order], found.n_iter)


def _whitened(
    fore: Cumulants, back: Cumulants, skip: int, d: int, floor: float | None, quiet: bool
) -> np.ndarray:
    """Uncorrelated directions of unit variance in the span of some contrast axes."""
    shift = fore.mean - back.mean
    energy = fore.covariance + np.outer(shift, shift)
    axes = contrast_axes(energy, back.covariance, back.n_samples, floor=floor, count=skip + d)[1]
    inside = axes[:, skip:]
    if skip:
        before = _unit_variance(fore.covariance, axes[:, :skip], quiet=True)
        inside = inside - before @ (before.T @ fore.covariance @ inside)
    return _unit_variance(fore.covariance, inside, quiet=quiet)


def _unit_variance(covariance: np.ndarray, axes: np.ndarray, *, quiet: bool) -> np.ndarray:
    inside = np.linalg.qr(axes)[0]
    values, rotation = np.linalg.eigh(inside.T @ covariance @ inside)
    varies = values > len(covariance) * np.finfo(float).eps * np.trace(covariance)
    _check_variation(varies, quiet)
    return np.asarray(inside @ (rotation[:, varies] / np.sqrt(values[varies])))


def _warn_of_steps(found: Rotation, max_iter: int, tol: float) -> None:
    warn(
        ConvergenceWarning(
            "not-converged",
            f"ICA in the contrast subspace stopped after {max_iter} steps with a gradient of "
            f"{found.gradient_norm:.2g} where {tol:.2g} was asked for",
            remedy="Set `n_foreground`, the dimension of the subspace, lower, or raise `max_iter`.",
            parameter="n_foreground",
        )
    )


def _check_variation(varies: np.ndarray, quiet: bool) -> None:
    if not varies.any():
        raise DataError(
            "constant",
            "the foreground does not vary",
            remedy="There is nothing to separate.",
            parameter="X",
        )
    if not varies.all() and not quiet:
        warn(
            PatternWarning(
                "fewer-directions",
                f"the foreground varies in {varies.sum()} directions of the contrast subspace only, so "
                f"that no more than {varies.sum()} patterns are sought",
                remedy="Lower `n_foreground`.",
                parameter="n_foreground",
            )
        )


def _along(rows: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """``(x − μ) · W`` of all rows, some at a time."""
    found = np.empty((len(rows), axes.shape[1]))
    start = 0
    for block in iterate_blocks(rows, block_rows(rows.shape[1])):
        np.matmul(block - mean, axes, out=found[start : start + len(block)])
        start += len(block)
    return found
