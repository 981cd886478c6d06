"""Contrast subspace first, then ICA inside it: a solver for data in which the model holds loosely.

On real data a fourth cumulant is often dominated by heavy-tailed background directions. The directions
in which the foreground varies most relative to the background need variances only: the leading
generalised eigenvectors of ``(Σ_x, Σ_y + ρ I)``. Inside the subspace they span, of few
dimensions, independent sources are sought with a contrast that outliers do not dominate
(`contrica.solvers.negentropy`).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from contrica.decompositions import Decomposition, canonical
from contrica.errors import ConvergenceWarning, DataError, ParameterError, PatternWarning
from contrica.errors import warn as told
from contrica.moments.estimates import Cumulants
from contrica.rows.protocol import block_rows, iterate_blocks
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.negentropy import SKEWNESS_WEIGHT, Rotation, farthest_from_gaussian
from contrica.solvers.ratio import source_ratio
from contrica.validation import check_count

__all__ = ["SubspaceFit", "subspace_ica"]

# Weights of skewness to try as well, where the mean is shifted.
OTHER_SKEWNESS_WEIGHTS = (0.0, 1.0)


class SubspaceFit(NamedTuple):
    """Sources found inside a contrast subspace.

    Attributes
    ----------
    foreground : Decomposition
        Patterns ``Σ_x f / ‖Σ_x f‖`` of the filters f, and their weights in κ₄(x).
    ratio : ndarray of shape (d,)
        k(f) of each source (`contrica.solvers.ratio.source_ratio`).
    n_iter : int
    """

    foreground: Decomposition
    ratio: np.ndarray
    n_iter: int


def subspace_ica(
    fore: Cumulants,
    back: Cumulants,
    X: np.ndarray,
    n_dimensions: int,
    *,
    rng: np.random.Generator,
    n_kept: int | None = None,
    warn: bool = True,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> SubspaceFit:
    """Independent sources inside the subspace of largest contrast.

    The leading ``d`` axes of `contrast_axes` are whitened by the foreground's covariance, and rotated
    until their sources are farthest from Gaussian (`contrica.solvers.negentropy`). A source found by the
    filter f appears in the variables as ``Σ_x f``, its pattern.

    Which moments separate the sources best depends on their kind. Where fewer are to be kept, three
    weights of skewness against tails are tried (`contrica.solvers.negentropy`), 1/4 first and the
    others also from where that leads. Another is taken if with it the kept source that is shifted least
    is shifted by more, by a standard error at least: things that are in the foreground alone shift its
    mean, and what shifts it should not lie in pieces.

    Parameters
    ----------
    fore, back : Cumulants
    X : ndarray of shape (n, p)
        The foreground's rows, in the same coordinates.
    n_dimensions : int
        d, at most p.
    rng : numpy.random.Generator
        Source of the rotations to start from.
    n_kept : int, optional
        Sources to keep, those of largest ratio; all d by default.
    warn : bool
        Whether to warn where the search has not converged, or the foreground varies in fewer directions.
    max_iter, tol
        As of `contrica.solvers.negentropy.farthest_from_gaussian`.

    Returns
    -------
    SubspaceFit
        d patterns, or ``n_kept``, by decreasing weight.

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
    if n_kept is not None:
        check_count("n_kept", n_kept)
    if d > fore.n_features:
        raise ParameterError(
            "too-large",
            f"`n_dimensions={d}` is more than the {fore.n_features} dimensions there are",
            remedy="Lower it.",
            parameter="n_dimensions",
        )
    inside = _Inside(fore, back, X, d, quiet=not warn)
    kept = min(n_kept or inside.n_dimensions, inside.n_dimensions)
    search = partial(farthest_from_gaussian, inside.whitened, rng=rng, max_iter=max_iter, tol=tol)
    filters, found = inside.sources(search(skewness_weight=SKEWNESS_WEIGHT), kept)
    if kept < inside.n_dimensions and inside.is_shifted():
        first = found.matrix
        for skewness_weight in OTHER_SKEWNESS_WEIGHTS:
            other = search(skewness_weight=skewness_weight, start=first)
            others, _ = inside.sources(other, kept)
            if inside.explains_the_shift_better(others, filters):
                filters, found = others, other
    if warn and found.gradient_norm > tol and found.n_iter >= max_iter:
        _warn_of_steps(found, max_iter, tol)
    ratio = source_ratio(filters, fore, back, quiet=not warn)
    weights = fore.fourth.coefficients(filters)
    patterns = fore.covariance @ filters
    # a source of unit variance with fourth cumulant c adds c · (Σf)^{⊗4}
    order = np.argsort(-np.abs(weights) * np.linalg.norm(patterns, axis=0) ** 4, kind="stable")
    foreground = canonical(weights[order], patterns[:, order], found.n_iter)
    return SubspaceFit(foreground, ratio[order], found.n_iter)


def _warn_of_steps(found: Rotation, max_iter: int, tol: float) -> None:
    told(
        ConvergenceWarning(
            "not-converged",
            f"ICA in the contrast subspace stopped after {max_iter} steps with a gradient of "
            f"{found.gradient_norm:.2g} where {tol:.2g} was asked for",
            remedy="Set `n_foreground`, the dimension of the subspace, lower, or raise `max_iter`.",
            parameter="n_foreground",
        )
    )


class _Inside:
    """The subspace of largest contrast, whitened, and what its sources do to the mean."""

    def __init__(
        self, fore: Cumulants, back: Cumulants, X: np.ndarray, d: int, *, quiet: bool
    ) -> None:
        _, axes = contrast_axes(fore.covariance, back.covariance, back.n_samples)
        inside = np.linalg.qr(axes[:, :d])[0]
        values, rotation = np.linalg.eigh(inside.T @ fore.covariance @ inside)
        varies = values > fore.n_features * np.finfo(float).eps * np.trace(fore.covariance)
        _check_variation(varies, quiet)
        self.n_dimensions = int(varies.sum())
        self.whiten = inside @ (rotation[:, varies] / np.sqrt(values[varies]))
        self.whitened = _along(X, fore.mean, self.whiten)
        self.shift = fore.mean - back.mean
        self._energy = fore.covariance + np.outer(self.shift, self.shift)
        self._back = back

    def sources(self, found: Rotation, kept: int) -> tuple[np.ndarray, Rotation]:
        """Filters of the sources that are kept, and the rotation they come from."""
        filters = self.whiten @ found.matrix
        if kept == self.n_dimensions:
            return filters, found
        fronts, backs = (
            np.einsum("pk,pq,qk->k", filters, form, filters)
            for form in (self._energy, self._back.covariance)
        )
        # k(f), without a warning where the background does not vary
        ratios = fronts / np.maximum(backs, np.finfo(float).tiny)
        return filters[:, np.argsort(-ratios, kind="stable")[:kept]], found

    def _shift_variances(self, filters: np.ndarray) -> np.ndarray:
        """Variance of the shift of each source's mean, from the rows of both datasets."""
        backs = np.einsum("pk,pq,qk->k", filters, self._back.covariance, filters)
        return 1 / len(self.whitened) + backs / self._back.n_samples

    def is_shifted(self) -> bool:
        """Whether the squares of shifts add up to more than chance gives, by four standard deviations."""
        shift, variances = self.whiten.T @ self.shift, self._shift_variances(self.whiten)
        return bool(shift @ shift > variances.sum() + 4 * np.sqrt(2 * variances @ variances))

    def explains_the_shift_better(self, others: np.ndarray, filters: np.ndarray) -> bool:
        """Whether the least shifted of other sources is shifted by more, by a standard error."""
        shifts, other_shifts = (np.abs(each.T @ self.shift) for each in (filters, others))
        weakest = int(np.argmin(other_shifts))
        margin = np.sqrt(self._shift_variances(others)[weakest])
        return bool(other_shifts[weakest] > shifts.min() + margin)


def _check_variation(varies: np.ndarray, quiet: bool) -> None:
    if not varies.any():
        raise DataError(
            "constant",
            "the foreground does not vary",
            remedy="There is nothing to separate.",
            parameter="X",
        )
    if not varies.all() and not quiet:
        told(
            PatternWarning(
                "fewer-directions",
                f"the foreground varies in {varies.sum()} directions of the contrast subspace only, so "
                "that many patterns are sought",
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
