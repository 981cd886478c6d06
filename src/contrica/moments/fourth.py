"""Mean, covariance, third and fourth cumulant of data, as tensor operators.

Write ``m`` for central sample moments (division by n). The paper's plug-in estimate is
``κ₄ = m_ijkl − m_ij m_kl − m_ik m_jl − m_il m_jk``; the unbiased k-statistic, exact in expectation,
is ``n²/((n−1)(n−2)(n−3)) · [(n+1) m_ijkl − (n−1)(m_ij m_kl + m_ik m_jl + m_il m_jk)]``. Both are
``moment_factor · (fourth moment) − pairing_factor · (three pairings of the covariance)``.

Two ways to hold it: *packed*, the ``p(p+1)/2``-square flattening from one pass over the rows
(`Moments`), or *matrix-free*, contracted from the rows on demand (`CumulantOperator`).
"""

from __future__ import annotations

import numpy as np

from contrica.moments.estimates import Cumulants, Estimate, Storage
from contrica.moments.matrix_free import CumulantOperator, matrix_or_rows
from contrica.moments.packed import packed_cumulants
from contrica.moments.symmetric import n_packed
from contrica.rows.memory import memory_budget
from contrica.rows.protocol import Rows
from contrica.validation import check_choice

__all__ = ["cumulants", "fits_packed", "packed_bytes"]

# Widest data whose flattening is written out by default, 204 MB of it.
MAX_PACKED_FEATURES = 100
# Flattenings that a fit holds at a time: of both datasets, of the rest, and what eigenvectors take.
WORKING_COPIES = 10


def fits_packed(n_features: int, memory_limit: int | None = None) -> bool:
    """Whether the flattening of so many variables, and what a decomposition makes of it, fits."""
    if n_features > MAX_PACKED_FEATURES:
        return False
    return packed_bytes(n_features) <= memory_budget(memory_limit)


def packed_bytes(n_features: int) -> int:
    """Memory that a fit needs with both fourth cumulants written out."""
    return WORKING_COPIES * 8 * n_packed(n_features + 1) ** 2


def cumulants(
    X: np.ndarray | Rows,
    estimate: Estimate = "plugin",
    *,
    storage: Storage = "auto",
    n_rows: int | None = None,
    memory_limit: int | None = None,
    mean: np.ndarray | None = None,
) -> Cumulants:
    """Mean, covariance and fourth cumulant of the rows of ``X``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or Rows
        Data. Cumulants are central: taken about the data's own mean.
    estimate : {"plugin", "unbiased"}
        The paper's formula, which divides by n, or unbiased k-statistics.
    storage : {"auto", "packed", "matrix-free"}
        Write the flattening out, or contract the rows on demand. "auto" packs up to 100 variables, if
        what a decomposition makes of it fits the memory.
    n_rows : int, optional
        Rows taken at a time; the result does not depend on it, except by rounding.
    memory_limit : int, optional
        Bytes; by default a quarter of what is free.
    mean : ndarray of shape (n_features,), optional
        Of the rows, where it is known: contracting them on demand then takes a pass less.

    Returns
    -------
    Cumulants

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).laplace(size=(5000, 2))
    >>> cumulants(X).fourth.flatten().shape
    (3, 3)
    """
    X = matrix_or_rows(X)
    check_choice("storage", storage, ("auto", "packed", "matrix-free"))
    p = X.shape[1]
    if storage == "auto":
        storage = "packed" if fits_packed(p, memory_limit) else "matrix-free"
    if storage == "packed":
        return packed_cumulants(X, estimate, n_rows=n_rows)
    operator = CumulantOperator(X, estimate, n_rows=n_rows, memory_limit=memory_limit, mean=mean)
    return Cumulants(
        operator.mean, operator.covariance, operator, operator.n_samples, operator.third
    )
