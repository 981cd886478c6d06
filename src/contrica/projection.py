"""Common principal axes of datasets, without stacking them, and rows seen in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from contrica.blocks import (
    Rows,
    block_rows,
    column_summary,
    held_in_memory,
    iterate_blocks,
    rows_times,
    times_rows,
)
from contrica.cumulants import Cumulants, Estimate, cumulants
from contrica.symmetric import fix_signs
from contrica.validation import check_choice, check_count

__all__ = [
    "CUMULANTS",
    "MAX_PCS",
    "VARIANCE_SHARE",
    "common_basis",
    "draw_in",
    "estimate_of_rows",
    "project_cumulants",
    "project_rows",
    "whitening",
]

RowEstimate = Literal["plugin", "unbiased", "robust"]
CUMULANTS: tuple[RowEstimate, ...] = get_args(RowEstimate)

# The paper's rule (section `sec:ranking_bs`): 30 components or 90 % of variance, whichever first.
MAX_PCS = 30
VARIANCE_SHARE = 0.9
# Widest data that are not held as an array whose scatter matrix is written out: one pass over the rows.
# Lanczos beyond, with a pass for each step, which costs little where rows are sparse.
SPARSE_SCATTER, DENSE_SCATTER = 300, 5000
# Rows nearer than this share of all rows are left as they are by `draw_in`.
CORE = 0.99


def common_basis(
    datasets: Sequence[np.ndarray | Rows], n_pcs: int | str | None = "auto"
) -> np.ndarray | None:
    """Leading principal axes of the stacked rows of all datasets.

    The rows are centred about the mean of the stack, as scikit-learn's PCA would.

    Parameters
    ----------
    datasets : sequence of ndarray of shape (n_i, n_features), or of Rows
    n_pcs : int, "auto" or None
        Number of axes; "auto" keeps all variables up to 30 of them and otherwise follows the
        paper, 30 axes or 90 % of the variance, whichever comes first; ``None`` keeps all variables.

    Returns
    -------
    ndarray of shape (n_features, k) or None
        Orthonormal columns, the largest entry of each positive; ``None`` where no axis is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 40)) * np.arange(1, 41)
    >>> common_basis([X, X]).shape
    (40, 17)
    """
    p = datasets[0].shape[1]
    if n_pcs is None or (isinstance(n_pcs, str) and n_pcs == "auto" and p <= MAX_PCS):
        return None
    if isinstance(n_pcs, str):
        if n_pcs != "auto":
            raise ValueError(
                f'n_pcs={n_pcs!r} is not known. Give a whole number, "auto" or None (no PCA).'
            )
        values, axes, trace = _leading_axes(datasets, MAX_PCS)
        shares = np.cumsum(values) / max(trace, np.finfo(float).tiny)
        enough = int(np.searchsorted(shares, VARIANCE_SHARE)) + 1
        # one axis alone leaves nothing to contrast
        return fix_signs(axes[:, : min(max(enough, 2), MAX_PCS)])
    count = check_count("n_pcs", n_pcs)
    if count > p:
        raise ValueError(
            f"n_pcs={count} is more than the {p} variables there are. "
            'Lower it, or use n_pcs=None to keep all variables or "auto" for the paper\'s rule.'
        )
    return fix_signs(_leading_axes(datasets, count)[1])


def project_rows(
    rows: np.ndarray | Rows, basis: np.ndarray | None, estimate: RowEstimate = "plugin"
) -> np.ndarray:
    """The rows in the coordinates of a basis, ``rows · U``, as the estimate takes them.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), or Rows
    basis : ndarray of shape (n_features, k) or None
    estimate : {"plugin", "unbiased", "robust"}
        "robust" draws outlying rows in (`draw_in`).

    Returns
    -------
    ndarray of shape (n_samples, k)
    """
    check_choice("cumulant", estimate, CUMULANTS)
    seen = held_in_memory(rows) if basis is None else rows_times(rows, basis)
    return draw_in(seen) if estimate == "robust" else seen


def project_cumulants(
    rows: np.ndarray | Rows, basis: np.ndarray | None, estimate: RowEstimate = "plugin"
) -> Cumulants:
    """Cumulants of `project_rows`.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), or Rows
    basis : ndarray of shape (n_features, k) or None
    estimate : {"plugin", "unbiased", "robust"}
        "robust" is the plug-in estimate of rows of which the outlying ones were drawn in.

    Returns
    -------
    Cumulants
    """
    seen = project_rows(rows, basis, estimate)
    return cumulants(seen, estimate_of_rows(estimate))


def estimate_of_rows(estimate: RowEstimate) -> Estimate:
    """The estimate to take of what `project_rows` returns: rows drawn in have the plug-in one."""
    return "plugin" if estimate == "robust" else estimate


def draw_in(rows: np.ndarray) -> np.ndarray:
    """The rows, the farthest of them brought nearer to the mean.

    Distance is Mahalanobis', by the covariance of the rows. Those beyond its 99th percentile keep their
    direction and get that distance, so that no row has more than a bounded part in a fourth cumulant.
    Since the far rows have a part in the covariance as well, this is done three times over. Sources
    that were independent are then no longer quite so.

    Parameters
    ----------
    rows : ndarray of shape (n, p)

    Returns
    -------
    ndarray of shape (n, p)

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).standard_normal((1000, 2))
    >>> rows[0] = 1000.0
    >>> bool(np.abs(draw_in(rows)).max() < 200)
    True
    """
    for _ in range(3):
        mean = rows.mean(axis=0)
        whiten, _ = whitening(np.cov(rows.T, bias=True).reshape(rows.shape[1], -1))
        distances = np.linalg.norm((rows - mean) @ whiten, axis=1)
        most = np.quantile(distances, CORE)
        nearer = mean + (rows - mean) * (most / np.maximum(distances, most))[:, None]
        rows = np.where((distances > most)[:, None], nearer, rows)
    return rows


def whitening(covariance: np.ndarray, rank: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """``E D^{-1/2}`` and ``E D^{1/2}`` of ``Σ = E D Eᵀ``, of the leading directions with variance.

    The first maps rows to uncorrelated coordinates of unit variance, ``x ↦ D^{-1/2} Eᵀ x``; the
    second maps vectors there back.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
        Σ.
    rank : int, optional
        Most directions to keep; by default all that have variance.

    Returns
    -------
    whiten, colour : ndarray of shape (p, k)

    Examples
    --------
    >>> import numpy as np
    >>> whiten, colour = whitening(np.diag([4.0, 0.0, 9.0]))
    >>> bool(np.allclose(whiten.T @ colour, np.eye(2)))
    True
    """
    values, vectors = np.linalg.eigh(covariance)
    held = values > len(values) * np.finfo(float).eps * values[-1]
    if rank is not None:
        held[: max(len(values) - rank, 0)] = False
    scale = np.sqrt(values[held])
    return vectors[:, held] / scale, vectors[:, held] * scale


def _stacked_mean(datasets: Sequence[np.ndarray | Rows]) -> tuple[np.ndarray, float]:
    """Mean of all rows, and the sum of their squares about it."""
    parts = [column_summary(X) for X in datasets]
    n_rows = sum(part.n_rows for part in parts)
    first = parts[0].mean
    mean = first + sum((part.mean - first) * (part.n_rows / n_rows) for part in parts)
    energy = sum(part.energy + part.n_rows * (part.mean - mean) ** 2 for part in parts)
    return mean, float(np.sum(energy))


def _blocks(datasets: Sequence[np.ndarray | Rows]) -> Iterator[np.ndarray]:
    for X in datasets:
        yield from iterate_blocks(X, block_rows(X.shape[1]))


def _leading_axes(
    datasets: Sequence[np.ndarray | Rows], count: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Largest eigenvalues of the stacked scatter matrix, their axes as columns, and its trace."""
    mean, trace = _stacked_mean(datasets)
    p = mean.size
    rows = sum(len(X) for X in datasets)
    streams = [X for X in datasets if isinstance(X, Rows)]
    widest = SPARSE_SCATTER if any(X.sparse for X in streams) else DENSE_SCATTER
    if streams and p > widest and count < min(p, rows) - 1:
        return *_lanczos_axes(datasets, mean, count), trace
    if streams or p <= rows:
        scatter = sum((B - mean).T @ (B - mean) for B in _blocks(datasets))
        values, axes = eigh(scatter, subset_by_index=[max(p - count, 0), p - 1])
        return np.maximum(values[::-1], 0.0), axes[:, ::-1], trace
    # Fewer rows than variables: the right singular vectors of the rows themselves.
    centred = np.vstack([B - mean for B in _blocks(datasets)])
    _, singular, right = np.linalg.svd(centred, full_matrices=count > rows)
    values = np.zeros(count)
    values[: min(count, rows)] = singular[:count] ** 2
    return values, right[:count].T, trace


def _lanczos_axes(
    datasets: Sequence[np.ndarray | Rows], mean: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `_leading_axes`, from products with the rows, which are centred without being written out.

    ``Σ (x − μ)(x − μ)ᵀ v = Σ x (xᵀv) − N μ (μᵀv)`` about the mean μ of the N rows.
    """
    n_rows = sum(len(X) for X in datasets)

    def scatter_times(vector: np.ndarray) -> np.ndarray:
        seen = vector.reshape(-1, 1)
        total = -n_rows * np.outer(mean, mean @ seen)
        for X in datasets:
            total += times_rows(rows_times(X, seen).T, X).T
        return total.ravel()

    p = mean.size
    start = np.full(p, p**-0.5)  # the same for every fit
    operator = LinearOperator((p, p), matvec=scatter_times, dtype=np.float64)
    values, axes = eigsh(operator, count, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")
    return np.maximum(values[order], 0.0), axes[:, order]
