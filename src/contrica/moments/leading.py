"""Leading eigenpairs of one symmetric matrix or of a family: dense when small, a subspace when large."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

from contrica.moments.symmetric import fix_signs, largest_eigenpairs
from contrica.rows.threads import one_pool, one_thread, threads_for_matrix

__all__ = ["LeadingPairs", "largest_eigenvalue", "leading_eigenpairs"]

# Below this size, or for more than this share of all eigenvectors, a full decomposition is faster.
DENSE_SIZE, MAX_SHARE = 300, 1 / 20
# Eigenvectors sought beyond those asked for: what is next to them decides how fast they come.
GUARDS = 2
# An eigenvector is found to this much of an angle, unless rounding of the matrix is more.
ANGLE = 1e-11
# Columns of the subspace at most; then the leading ones and those of the next eigenvalues are kept.
MAX_COLUMNS, KEPT_COLUMNS = 120, 40
# Products before there is a factor, and with one factor; and factors, before a full decomposition.
FIRST_PRODUCTS, MAX_PRODUCTS, MAX_FACTORS = 8, 12, 6


def leading_eigenpairs(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues of a symmetric matrix, decreasing, and their eigenvectors.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
    count : int

    Returns
    -------
    values : ndarray of shape (count,)
    vectors : ndarray of shape (p, count)
        Unit columns, the largest entry of each positive.

    Examples
    --------
    >>> import numpy as np
    >>> leading_eigenpairs(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([3., 2.])
    """
    return LeadingPairs(matrix, None, count).at(0.0)


def largest_eigenvalue(matrix: np.ndarray) -> float:
    """The largest eigenvalue of a symmetric matrix.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)

    Returns
    -------
    float
    """
    return float(leading_eigenpairs(matrix, 1)[0][0])


def dense_eigenpairs(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`leading_eigenpairs` by LAPACK's full reduction."""
    p = len(matrix)
    with threads_for_matrix(p):
        values, vectors = largest_eigenpairs(matrix, count)
    return values[::-1], fix_signs(vectors[:, ::-1])


class LeadingPairs:
    """Leading eigenpairs of ``F − αG`` for one α after another.

    One subspace serves all α. In it the eigenvectors are those of a small matrix; the residuals of
    these, solved by a Cholesky factor of ``σI − F + αG`` of this α or a former one, extend it
    (generalised Davidson), until they vanish. With its own factor this is the Lanczos iteration with
    shift and invert, which tells eigenvalues apart however wide the spectrum is below them; a factor
    exists if σ is above all eigenvalues, so that none is overlooked above it. Where many factors do not
    suffice, the matrix is decomposed as a whole.

    Parameters
    ----------
    first : ndarray of shape (p, p)
        F, symmetric.
    second : ndarray of shape (p, p) or None
        G, symmetric and positive semidefinite; ``None`` for zero.
    count : int
        Eigenpairs.
    """

    def __init__(self, first: np.ndarray, second: np.ndarray | None, count: int) -> None:
        self.first, self.second, self.count = first, second, count
        p = len(first)
        self.is_dense = p < DENSE_SIZE or count > MAX_SHARE * p
        self._factor: np.ndarray | None = None
        if self.is_dense:
            return
        # what rounding of a product is measured by
        self._sizes = [float(np.linalg.norm(part)) for part in (first, second) if part is not None]
        self._columns = np.empty((p, 0))
        self._images = [np.empty((p, 0)) for _ in self._sizes]
        self._inner = [np.empty((0, 0)) for _ in self._sizes]
        # a fixed generator: what is found is a function of the matrices alone
        self._extend(np.random.default_rng(0).standard_normal((p, count + GUARDS)))

    def at(self, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Of ``F − αG``, or, where that leaves the range of numbers, of the same over α.

        Parameters
        ----------
        alpha : float
            At least 0.

        Returns
        -------
        values : ndarray of shape (count,)
        vectors : ndarray of shape (p, count)
            As of `leading_eigenpairs`.
        """
        found = None
        if not self.is_dense and np.isfinite(alpha * max(self._sizes)) and min(self._sizes[:1]) > 0:
            with one_pool():
                found = self._iterated(alpha)
        if found is None:
            return dense_eigenpairs(self._matrix(alpha), self.count)
        return found[0], fix_signs(found[1])

    def _matrix(self, alpha: float) -> np.ndarray:
        if self.second is None:
            return self.first
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.first - alpha * self.second
        return found if np.isfinite(found).all() else self.first / alpha - self.second

    def _iterated(self, alpha: float) -> tuple[np.ndarray, np.ndarray] | None:
        """By the subspace; ``None`` where it does not get there."""
        rounding = np.finfo(float).eps * sum(
            size * weight for size, weight in zip(self._sizes, (1.0, alpha), strict=False)
        )
        if self._factor is None:
            for _ in range(FIRST_PRODUCTS):  # as Lanczos' iteration would
                self._extend(self._residuals(alpha)[2])
        for i in range(MAX_FACTORS):
            if self._factor is None or i > 0:
                self._factorise(alpha, rounding)
            for _ in range(MAX_PRODUCTS):
                values, vectors, residuals = self._residuals(alpha)
                lengths = np.linalg.norm(residuals, axis=0)[: self.count]
                gap = np.maximum(values[: self.count] - values[self.count], 0.0)
                if (lengths <= np.maximum(ANGLE * gap, 2 * rounding)).all():
                    return values[: self.count], vectors[:, : self.count]
                self._extend(self._solved(residuals))
        return None

    def _residuals(self, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues inside the subspace, their vectors there, and what the matrix makes beside them."""
        inner = self._sum(self._inner, alpha)
        if len(inner) > MAX_COLUMNS:
            self._keep(eigh(inner)[1][:, -KEPT_COLUMNS:])
            inner = self._sum(self._inner, alpha)
        with one_thread():
            values, turns = eigh(inner)
        values, turns = (part[..., ::-1][..., : self.count + GUARDS] for part in (values, turns))
        vectors = self._columns @ turns
        images = self._sum([part @ turns for part in self._images], alpha)
        return values, vectors, images - vectors * values

    def _sum(self, parts: list[np.ndarray], alpha: float) -> np.ndarray:
        return parts[0] if len(parts) == 1 else parts[0] - alpha * parts[1]

    def _keep(self, turns: np.ndarray) -> None:
        self._columns = self._columns @ turns
        self._images = [part @ turns for part in self._images]
        self._inner = [turns.T @ part @ turns for part in self._inner]

    def _extend(self, vectors: np.ndarray) -> None:
        """Add to the subspace what of some vectors is not in it."""
        lengths = np.linalg.norm(vectors, axis=0)
        vectors = vectors[:, lengths > 0] / lengths[lengths > 0]
        for _ in range(2):  # twice is enough
            vectors = vectors - self._columns @ (self._columns.T @ vectors)
            vectors = np.linalg.qr(vectors)[0]
        parts = [self.first] if self.second is None else [self.first, self.second]
        for i, part in enumerate(parts):
            images = part @ vectors
            beside, own = self._columns.T @ images, vectors.T @ images
            self._images[i] = np.hstack([self._images[i], images])
            self._inner[i] = np.block([[self._inner[i], beside], [beside.T, (own + own.T) / 2]])
        self._columns = np.hstack([self._columns, vectors])

    def _factorise(self, alpha: float, rounding: float) -> None:
        """Cholesky factor of ``σI − F + αG``, with σ above all eigenvalues and near the first."""
        values, _, residuals = self._residuals(alpha)
        lengths = np.linalg.norm(residuals, axis=0)
        above = max(float(lengths.max()), 0.1 * float(values[0] - values[-1]), 100 * rounding)
        while True:
            shifted = -self._matrix(alpha)
            shifted.flat[:: len(shifted) + 1] += values[0] + above
            factor, info = dpotrf(shifted.T, lower=1, overwrite_a=1, clean=0)
            if info == 0:
                self._factor = factor
                return
            above *= 4

    def _solved(self, vectors: np.ndarray) -> np.ndarray:
        return np.asarray(dpotrs(self._factor, vectors, lower=1)[0])
