"""Common principal axes of datasets, without stacking them, and rows seen in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
from scipy.linalg import eigh

from contrica.blocks import block_rows, iterate_blocks
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
# Rows nearer than this share of all rows are left as they are by `draw_in`.
CORE = 0.99


def common_basis(
    datasets: Sequence[np.ndarray], n_pcs: int | str | None = "auto"
) -> np.ndarray | None:
    """Leading principal axes of the stacked rows of all datasets.

    The rows are centred about the mean of the stack, as scikit-learn's PCA would.

    Parameters
    ----------
    datasets : sequence of ndarray of shape (n_i, n_features)
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
        values, axes = _leading_axes(datasets, MAX_PCS)
        shares = np.cumsum(values) / max(_total_variance(datasets), np.finfo(float).tiny)
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
    rows: np.ndarray, basis: np.ndarray | None, estimate: RowEstimate = "plugin"
) -> np.ndarray:
    """The rows in the coordinates of a basis, ``rows · U``, as the estimate takes them.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
    basis : ndarray of shape (n_features, k) or None
    estimate : {"plugin", "unbiased", "robust"}
        "robust" draws outlying rows in (`draw_in`).

    Returns
    -------
    ndarray of shape (n_samples, k)
    """
    check_choice("cumulant", estimate, CUMULANTS)
    seen = rows if basis is None else rows @ basis
    return draw_in(seen) if estimate == "robust" else seen


def project_cumulants(
    rows: np.ndarray, basis: np.ndarray | None, estimate: RowEstimate = "plugin"
) -> Cumulants:
    """Cumulants of `project_rows`.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
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


def _stacked_mean(datasets: Sequence[np.ndarray]) -> np.ndarray:
    # About the first row before summing, so that a large mean costs no digits.
    origin = np.asarray(datasets[0][0], dtype=np.float64)
    rows = sum(len(X) for X in datasets)
    return origin + sum((B - origin).sum(axis=0) for B in _blocks(datasets)) / rows


def _blocks(datasets: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    for X in datasets:
        yield from iterate_blocks(X, block_rows(X.shape[1]))


def _total_variance(datasets: Sequence[np.ndarray]) -> float:
    mean = _stacked_mean(datasets)
    return float(sum(np.sum((B - mean) ** 2) for B in _blocks(datasets)))


def _leading_axes(datasets: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of the stacked scatter matrix, and their axes as columns."""
    mean = _stacked_mean(datasets)
    p = mean.size
    rows = sum(len(X) for X in datasets)
    if p <= rows:
        scatter = sum((B - mean).T @ (B - mean) for B in _blocks(datasets))
        values, axes = eigh(scatter, subset_by_index=[max(p - count, 0), p - 1])
        return np.maximum(values[::-1], 0.0), axes[:, ::-1]
    # Fewer rows than variables: the right singular vectors of the rows themselves.
    centred = np.vstack([B - mean for B in _blocks(datasets)])
    _, singular, right = np.linalg.svd(centred, full_matrices=count > rows)
    values = np.zeros(count)
    values[: min(count, rows)] = singular[:count] ** 2
    return values, right[:count].T
