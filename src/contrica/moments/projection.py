"""Common principal axes of datasets, without stacking them, and rows projected on them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import LinearOperator, eigsh

from contrica.errors import ParameterError
from contrica.moments.estimates import Cumulants, Estimate, Storage
from contrica.moments.fourth import MAX_PACKED_FEATURES, cumulants, fits_packed
from contrica.moments.grouped import GroupMoments
from contrica.moments.packed import BlockMoments, PointMoments, expanded_rows
from contrica.moments.scatter import Scatter
from contrica.moments.spectra import symmetric_spectrum, symmetric_values, varies_everywhere
from contrica.moments.symmetric import fix_signs, largest_eigenpairs
from contrica.rows.containers import as_rows
from contrica.rows.memory import memory_budget
from contrica.rows.products import Chosen, chosen_rows, gram_times, in_memory, projected, rows_times
from contrica.rows.protocol import Rows, accumulate, block_rows
from contrica.rows.summary import ColumnSummary, Summary, column_summary
from contrica.rows.threads import team
from contrica.validation import check_choice, check_count, check_finite

__all__ = [
    "CUMULANTS",
    "MAX_PCS",
    "VARIANCE_SHARE",
    "RowEstimate",
    "RowSurvey",
    "Surveyed",
    "axes_of",
    "basis_of_cumulants",
    "centred",
    "check_n_pcs",
    "common_basis",
    "estimate_of_rows",
    "n_axes",
    "project_cumulants",
    "project_rows",
    "rows_in",
    "sampled_index",
    "survey",
    "whitening",
    "winsorize_rows",
]

RowEstimate = Literal["plugin", "unbiased", "robust"]
CUMULANTS: tuple[RowEstimate, ...] = get_args(RowEstimate)

# The paper's rule (section `sec:ranking_bs`): 30 components or 90 % of variance, whichever first.
MAX_PCS = 30
VARIANCE_SHARE = 0.9
# Widest data that are not an array in memory whose scatter matrix is written out: one pass over the rows.
# Lanczos beyond, with a pass for each step, which costs little where rows are sparse.
SPARSE_SCATTER, DENSE_SCATTER = 300, 5000
# So many times more rows than variables span all directions, unless some have no variance.
SPANNING = 2
# The scatter matrix, a block's part of it and what its eigenvectors take.
SCATTER_COPIES = 5
# Rows nearer than this share of all rows are left as they are by `winsorize_rows`.
CORE = 0.99


def common_basis(
    datasets: Sequence[np.ndarray | Rows],
    n_pcs: int | str | None = "auto",
    *,
    memory_limit: int | None = None,
) -> np.ndarray | None:
    """Leading principal axes of the stacked rows of all datasets.

    The rows are centred about the mean of the stack, as scikit-learn's PCA would.

    Parameters
    ----------
    datasets : sequence of ndarray of shape (n_i, n_features), or of what `contrica.rows.as_rows` takes
    n_pcs : int, "auto" or None
        Number of axes; "auto" keeps all variables up to 30 of them and otherwise follows the
        paper, 30 axes or 90 % of the variance, whichever comes first; ``None`` keeps all variables, or,
        of more than 100 of them, all directions in which the rows vary, which loses nothing.
    memory_limit : int, optional
        Bytes; by default a quarter of what is free. What is larger is done by Lanczos iterations, which
        read the rows many times.

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
    parts = [as_rows(X) for X in datasets]
    if n_axes(n_pcs, parts[0].shape[1]) is None:
        return None
    summaries = list(map(column_summary, parts))
    for i, summary in enumerate(summaries):
        check_finite(summary, f"datasets[{i}]")
    return axes_of(parts, summaries, n_pcs, memory_budget(memory_limit))


def axes_of(
    datasets: Sequence[np.ndarray | Rows],
    summaries: Sequence[ColumnSummary],
    n_pcs: int | str | None,
    budget: int,
    *,
    own_means: bool = False,
) -> np.ndarray | None:
    """`common_basis` of rows that were read once already.

    Parameters
    ----------
    datasets : sequence of ndarray or Rows
    summaries : sequence of ColumnSummary
        Of each.
    n_pcs : int, "auto" or None
    budget : int
        Bytes.
    own_means : bool
        Whether each dataset is centred about its own mean, and not about that of the stack.

    Returns
    -------
    ndarray of shape (n_features, k) or None
    """
    count = n_axes(n_pcs, datasets[0].shape[1])
    if count is None:
        return None
    stacked = Summary()
    for part in summaries:
        stacked.add(part._replace(mean=np.zeros_like(part.mean)) if own_means else part)
    whole = stacked.summary()
    means = [part.mean if own_means else whole.mean for part in summaries]
    centred = list(zip(datasets, means, strict=True))
    if n_pcs is None:
        return _span(centred, whole, budget)
    return _kept_axes(n_pcs, *_leading_axes(centred, whole, count, budget))


def n_axes(n_pcs: int | str | None, n_features: int) -> int | None:
    """How many principal axes to compute; ``None`` where all variables are kept as they are.

    Parameters
    ----------
    n_pcs : int, "auto" or None
    n_features : int

    Returns
    -------
    int or None
    """
    if n_pcs is None:
        return None if n_features <= MAX_PACKED_FEATURES else n_features
    if isinstance(n_pcs, str) and n_pcs == "auto":
        return None if n_features <= MAX_PCS else MAX_PCS
    check_n_pcs(n_pcs)
    count = int(n_pcs)
    if count > n_features:
        raise ParameterError(
            "too-large",
            f"`n_pcs={count}` is more than the {n_features} variables there are",
            remedy='Lower it, or use `n_pcs=None` to keep all variables or "auto" for the paper\'s rule.',
            parameter="n_pcs",
        )
    return count


def check_n_pcs(n_pcs: object) -> None:
    """Refuse what is neither a number of principal components, nor "auto", nor None.

    Parameters
    ----------
    n_pcs : object
    """
    if isinstance(n_pcs, str) and n_pcs != "auto":
        raise ParameterError(
            "unknown-choice",
            f"`n_pcs={n_pcs}` is not known",
            remedy='Give a whole number, "auto" or None (no PCA).',
            parameter="n_pcs",
        )
    if n_pcs is not None and not isinstance(n_pcs, str):
        check_count("n_pcs", n_pcs)


def basis_of_cumulants(
    datasets: Sequence[Cumulants], n_pcs: int | str | None = "auto"
) -> np.ndarray | None:
    """`common_basis` of the rows behind cumulants, from their means and covariances.

    Parameters
    ----------
    datasets : sequence of Cumulants
    n_pcs : int, "auto" or None

    Returns
    -------
    ndarray of shape (n_features, k) or None
    """
    p, total = datasets[0].n_features, sum(part.n_samples for part in datasets)
    count = n_axes(n_pcs, p)
    if n_pcs is None or count is None:
        return None
    mean = sum(part.mean * (part.n_samples / total) for part in datasets)
    scatter = np.zeros((p, p))
    for part in datasets:
        scatter += part.n_samples * (part.covariance + np.outer(part.mean - mean, part.mean - mean))
    values, axes = largest_eigenpairs(scatter, count)
    leading = np.maximum(values[::-1], 0.0)
    return _kept_axes(n_pcs, leading, axes[:, ::-1], float(np.trace(scatter)))


def _kept_axes(n_pcs: int | str, values: np.ndarray, axes: np.ndarray, trace: float) -> np.ndarray:
    """All of the axes, or, with "auto", as many as the share of variance asks for."""
    if isinstance(n_pcs, str):
        shares = np.cumsum(values) / max(trace, np.finfo(float).tiny)
        enough = int(np.searchsorted(shares, VARIANCE_SHARE)) + 1
        # one axis alone leaves nothing to contrast
        axes = axes[:, : min(max(enough, 2), MAX_PCS)]
    return fix_signs(axes)


def project_rows(
    rows: np.ndarray | Rows, basis: np.ndarray | None, estimate: RowEstimate = "plugin"
) -> np.ndarray:
    """The rows in the coordinates of a basis, ``rows · U``, as the estimate takes them.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), or Rows
    basis : ndarray of shape (n_features, k) or None
    estimate : {"plugin", "unbiased", "robust"}
        "robust" winsorizes outlying rows (`winsorize_rows`).

    Returns
    -------
    ndarray of shape (n_samples, k)
    """
    check_choice("cumulant", estimate, CUMULANTS)
    found = in_memory(rows) if basis is None else rows_times(rows, basis)
    return winsorize_rows(found) if estimate == "robust" else found


def rows_in(
    rows: np.ndarray | Rows, basis: np.ndarray | None, estimate: RowEstimate = "plugin"
) -> np.ndarray | Rows:
    """As `project_rows`, made anew in each pass; only rows that are winsorized stay in memory."""
    check_choice("cumulant", estimate, CUMULANTS)
    return project_rows(rows, basis, estimate) if estimate == "robust" else projected(rows, basis)


class Surveyed(NamedTuple):
    """Cumulants of all rows, a sample of the rows, and moments of groups of them if asked for.

    Those are about the mean of all rows.
    """

    cumulants: Cumulants
    rows: np.ndarray
    grouped: list[PointMoments] | None


def sampled_index(n_rows: int, n_sampled: int) -> np.ndarray:
    """Numbers of the rows that `survey` samples: the same ones for every container.

    Parameters
    ----------
    n_rows, n_sampled : int

    Returns
    -------
    ndarray of int
    """
    chosen = np.random.default_rng(0).choice(n_rows, min(n_sampled, n_rows), replace=False)
    return np.sort(chosen)


def survey(
    rows: np.ndarray | Rows,
    estimate: Estimate,
    n_sampled: int,
    *,
    n_groups: int = 0,
    storage: Storage = "auto",
    memory_limit: int | None = None,
) -> Surveyed:
    """Cumulants of all rows, and a random sample of the rows; in one pass if cumulants are packed.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, k), or Rows
    estimate : {"plugin", "unbiased"}
    n_sampled : int
        Rows to sample, fewer than there are; the same ones of every container.
    n_groups : int
        Groups of rows whose moments to take as well, if cumulants are packed.
    storage, memory_limit
        As of `contrica.moments.fourth.cumulants`.

    Returns
    -------
    Surveyed
    """
    n, k = rows.shape
    index = sampled_index(n, n_sampled)
    packed = storage == "packed" or (storage == "auto" and fits_packed(k, memory_limit))
    if not packed:
        found = cumulants(rows, estimate, storage=storage, memory_limit=memory_limit)
        return Surveyed(found, chosen_rows(rows, index), None)
    step = expanded_rows(k, rows)
    if n_groups:  # each group has its share of a block
        step = max(min(step * n_groups, block_rows(k, rows)), step)
    both = accumulate(rows, partial(RowSurvey, k, index, n_groups), step)
    if both.grouped is None:
        return Surveyed(both.moments.cumulants(estimate, last=True), both.chosen.rows(k), None)
    total = both.grouped.total()
    grouped = both.grouped.about(total.mean())
    return Surveyed(total.cumulants(estimate, last=True), both.chosen.rows(k), grouped)


class RowSurvey:
    """Accumulator of moments that also keeps the rows of given numbers.

    Parameters
    ----------
    n_features : int
    index : ndarray of int
    n_groups : int
        Groups of rows whose moments are taken; 0 for those of all rows alone.
    start : int
        As of `contrica.rows.products.Chosen`.
    """

    def __init__(
        self, n_features: int, index: np.ndarray, n_groups: int = 0, start: int = 0
    ) -> None:
        self.chosen = Chosen(index, start)
        self.moments = BlockMoments(n_features)
        self.grouped = GroupMoments(n_features, n_groups, start) if n_groups else None

    def update(self, block: Any) -> RowSurvey:
        """Add a block of rows."""
        (self.moments if self.grouped is None else self.grouped).update(block)
        self.chosen.update(block)
        return self

    def merge(self, other: RowSurvey) -> RowSurvey:
        """Add what another one holds."""
        if self.grouped is None or other.grouped is None:
            self.moments.merge(other.moments)
        else:
            self.grouped.merge(other.grouped)
        self.chosen.merge(other.chosen)
        return self


def project_cumulants(
    rows: np.ndarray | Rows,
    basis: np.ndarray | None,
    estimate: RowEstimate = "plugin",
    *,
    memory_limit: int | None = None,
) -> Cumulants:
    """Cumulants of `project_rows`, which are not in memory as a whole.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), or Rows
    basis : ndarray of shape (n_features, k) or None
    estimate : {"plugin", "unbiased", "robust"}
        "robust" is the plug-in estimate of rows of which the outlying ones were winsorized, for which
        they are in memory after all.
    memory_limit : int, optional
        Bytes, as of `contrica.moments.fourth.cumulants`.

    Returns
    -------
    Cumulants
    """
    moved = rows_in(rows, basis, estimate)
    return cumulants(moved, estimate_of_rows(estimate), memory_limit=memory_limit)


def estimate_of_rows(estimate: RowEstimate) -> Estimate:
    """The estimate to take of what `project_rows` returns: winsorized rows have the plug-in one."""
    return "plugin" if estimate == "robust" else estimate


def winsorize_rows(rows: np.ndarray) -> np.ndarray:
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
    >>> bool(np.abs(winsorize_rows(rows)).max() < 200)
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


def centred(rows: np.ndarray) -> np.ndarray:
    """Rows about their mean, which of equal numbers is that number, however far from zero it is.

    Parameters
    ----------
    rows : ndarray of shape (n, p)

    Returns
    -------
    ndarray of shape (n, p)

    Examples
    --------
    >>> import numpy as np
    >>> float(np.abs(centred(np.full((60, 1), 1e20 / 3))).max())
    0.0
    """
    shifted = rows - rows[:1]
    shifted -= shifted.mean(axis=0)
    return shifted


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
    whiten, dewhiten : ndarray of shape (p, k)

    Examples
    --------
    >>> import numpy as np
    >>> whiten, dewhiten = whitening(np.diag([4.0, 0.0, 9.0]))
    >>> bool(np.allclose(whiten.T @ dewhiten, np.eye(2)))
    True
    """
    values, vectors = np.linalg.eigh(covariance)
    varies = values > len(values) * np.finfo(float).eps * values[-1]
    if rank is not None:
        varies[: max(len(values) - rank, 0)] = False
    scale = np.sqrt(values[varies])
    return vectors[:, varies] / scale, vectors[:, varies] * scale


# Rows of a dataset, and the point about which they are taken.
_Centred = tuple[np.ndarray | Rows, np.ndarray]


def _scatter(datasets: Sequence[_Centred]) -> np.ndarray:
    """``Σ (x − μ)(x − μ)ᵀ`` over the rows of all datasets."""
    first, *others = (accumulate(X, partial(Scatter, mean)) for X, mean in datasets)
    for other in others:
        first.merge(other)
    total: np.ndarray = first.matrix()
    return total


def _leading_axes(
    datasets: Sequence[_Centred], whole: ColumnSummary, count: int, budget: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Largest eigenvalues of the stacked scatter matrix, their axes as columns, and its trace."""
    p, trace = whole.mean.size, float(np.sum(whole.energy))
    rows = whole.n_rows
    if _by_scatter([X for X, _ in datasets], budget):
        values, axes = symmetric_spectrum(_scatter(datasets), min(count, p))
        return np.maximum(values[::-1], 0.0), axes[:, ::-1], trace
    sparse = any(isinstance(X, Rows) and X.sparse for X, _ in datasets)
    few = rows < p and not sparse and 4 * 8 * rows * p <= budget
    if few or count >= min(p, rows) - 1:
        # the right singular vectors of the rows themselves
        centred = np.vstack([in_memory(X) - mean for X, mean in datasets])
        _, singular, right = np.linalg.svd(centred, full_matrices=False)
        values = np.zeros(count)
        values[: min(count, rows)] = singular[:count] ** 2
        return values, _completed(right[:count].T, count), trace
    return *_lanczos_axes(datasets, count), trace


def _completed(axes: np.ndarray, count: int) -> np.ndarray:
    """Orthonormal columns, with others that make them so many; never p × p numbers."""
    p, known = axes.shape
    if known >= count:
        return axes
    # beside the variables that have the least part in those there are
    leverage = np.einsum("ij,ij->i", axes, axes)
    others = np.zeros((p, count - known))
    others[np.argsort(leverage, kind="stable")[: count - known], np.arange(count - known)] = 1.0
    full, _ = np.linalg.qr(np.hstack([axes, others]))
    return np.hstack([axes, full[:, known:]])


def _by_scatter(datasets: Sequence[np.ndarray | Rows], budget: int) -> bool:
    """Whether the p × p scatter matrix is written out: one pass, and exact.

    Not where products with all of the rows are cheap and can be had often, or rows are few, or the
    matrix is large.
    """
    p = datasets[0].shape[1]
    if all(isinstance(X, Rows) and X.is_in_memory for X in datasets):
        return p <= SPARSE_SCATTER
    if SCATTER_COPIES * 8 * p**2 > budget or p > DENSE_SCATTER:
        return False
    return p <= sum(len(X) for X in datasets) or any(isinstance(X, Rows) for X in datasets)


def _lanczos_axes(datasets: Sequence[_Centred], count: int) -> tuple[np.ndarray, np.ndarray]:
    """As `_leading_axes`, from products with the rows."""
    p = datasets[0][1].size
    start = np.full(p, p**-0.5)  # the same for every fit
    sparse = all(isinstance(X, Rows) and X.sparse and X.is_in_memory for X, _ in datasets)
    # one team for all products; where rows are dense, BLAS has threads of its own
    with team() if sparse else nullcontext(None) as threads:

        def scatter_times(vector: np.ndarray) -> np.ndarray:
            column = vector.reshape(-1, 1)
            return np.ravel(sum(gram_times(X, column, mean, threads) for X, mean in datasets))

        operator = LinearOperator((p, p), matvec=scatter_times, dtype=np.float64)
        values, axes = eigsh(operator, count, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")
    return np.maximum(values[order], 0.0), axes[:, order]


def _span(datasets: Sequence[_Centred], whole: ColumnSummary, budget: int) -> np.ndarray | None:
    """Axes of the space in which the rows vary, where that is smaller than the space of all variables."""
    p, rows = whole.mean.size, whole.n_rows
    if rows > p:
        by_scatter = _by_scatter([X for X, _ in datasets], budget)
        if not by_scatter or _vary_everywhere(datasets, whole):
            return None
        scatter = _scatter(datasets)
        # which says whether axes are needed
        rank = p if varies_everywhere(scatter) else _rank(symmetric_values(scatter)[::-1])
        axes = None if rank == p else symmetric_spectrum(scatter, rank)[1][:, ::-1]
    else:
        values, found, _ = _leading_axes(datasets, whole, rows, budget)
        axes = found[:, :rank] if (rank := _rank(values, p)) < p else None
    return None if axes is None else fix_signs(axes)


def _rank(values: np.ndarray, n_features: int | None = None) -> int:
    """How many of some decreasing eigenvalues are more than rounding; at least one."""
    p = n_features or values.size
    return max(int(np.sum(values > p * np.finfo(float).eps * values[0])), 1)


def _vary_everywhere(datasets: Sequence[_Centred], whole: ColumnSummary) -> bool:
    """Whether some of very many rows vary in all directions, to more than rounding of the whole trace."""
    p, every = whole.mean.size, max(whole.n_rows // (SPANNING * whole.mean.size), 1)
    some = [X[::every] - mean for X, mean in datasets if isinstance(X, np.ndarray)]
    if every < 2 or len(some) < len(datasets):
        return False
    scatter = np.sum([part.T @ part for part in some], axis=0)
    scatter.flat[:: p + 1] -= 4 * p * np.finfo(float).eps * float(np.sum(whole.energy))
    return bool(dpotrf(scatter, overwrite_a=1)[1] == 0)
