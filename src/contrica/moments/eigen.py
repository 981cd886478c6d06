"""Largest-magnitude eigenpairs of a flattened tensor: dense when small, Lanczos when large."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from contrica.moments.operators import PackedTensor, TensorOperator
from contrica.moments.symmetric import n_packed, smat, svec, svec_outer
from contrica.validation import check_rank

__all__ = [
    "Eigenpairs",
    "add_rank_one",
    "eigenvalues",
    "n_significant",
    "top_eigenpairs",
]

# Below this size of the flattening a full decomposition is faster than Lanczos iterations.
DENSE_SIZE = 2000
# A vector of which this much, by squared length, lies in a span lies in it.
CONTAINED = 1 - 1e-8
# Entries of a table of differences of eigenvalues in memory at a time.
MAX_DIFFERENCES = 2**16
# Steps towards the roots of a secular equation; six or so suffice.
MAX_STEPS = 60


def n_significant(values: np.ndarray, size: int, tolerance: float | None = None) -> int:
    """How many eigenvalues of a matrix of some size are not zero to rounding, or to ``tolerance``."""
    sizes = np.abs(values)
    share = size * np.finfo(float).eps if tolerance is None else tolerance
    return int(np.sum(sizes > share * sizes.max(initial=0.0)))


class Eigenpairs(NamedTuple):
    """Eigenvalues by decreasing magnitude, and orthonormal eigenvectors in ``svec`` coordinates.

    Attributes
    ----------
    values : ndarray of shape (rank,)
    vectors : ndarray of shape (p(p+1)/2, rank)
    """

    values: np.ndarray
    vectors: np.ndarray

    def matrices(self) -> np.ndarray:
        """Eigenvectors read as symmetric matrices, shape ``(rank, p, p)``."""
        return smat(self.vectors.T)

    def significant(self, tolerance: float | None = None) -> Eigenpairs:
        """Those pairs whose eigenvalue is not zero to rounding, or to ``tolerance``, relatively."""
        count = n_significant(self.values, self.vectors.shape[0], tolerance)
        return Eigenpairs(self.values[:count], self.vectors[:, :count])

    def inverse_form(self, vectors: np.ndarray) -> np.ndarray:
        """``A_iᵀ V D⁻¹ Vᵀ A_j`` for all pairs of columns ``a`` of ``(p, k)``, with ``A = vec(a aᵀ)``."""
        inside = self.vectors.T @ svec_outer(vectors)
        return (inside.T / self.values) @ inside

    def contain(self, vectors: np.ndarray) -> np.ndarray:
        """Whether ``vec(a aᵀ)`` lies in the span of the eigenvectors, for every column ``a``."""
        return np.sum((self.vectors.T @ svec_outer(vectors)) ** 2, axis=0) > CONTAINED

    def subtractable_weights(self, vectors: np.ndarray) -> np.ndarray:
        """``1 / (Aᵀ V D⁻¹ Vᵀ A)``: the multiple of ``a^{⊗4}`` whose subtraction lowers the rank.

        Lemma `lem:unique_C` of the paper; 0 where the form vanishes.
        """
        form = np.diag(self.inverse_form(vectors))
        return np.divide(1.0, form, out=np.zeros_like(form), where=form != 0)


def top_eigenpairs(operator: TensorOperator, rank: int | None = None) -> Eigenpairs:
    """The ``rank`` eigenpairs of ``Mat(T)`` of largest magnitude; all of them without a rank.

    Parameters
    ----------
    operator : TensorOperator
    rank : int, optional
        At most ``p(p+1)/2``.

    Returns
    -------
    Eigenpairs
    """
    size = n_packed(operator.n_features)
    rank = size if rank is None else check_rank(rank, operator.n_features)
    written_out = isinstance(operator, PackedTensor)
    if size <= DENSE_SIZE or rank > size // 4:
        # scipy 1.12 has no room for a single number with driver "evd"
        driver = "evd" if size > 1 else "ev"
        values, vectors = eigh(operator.flatten(), check_finite=False, driver=driver)
    else:
        flat = operator.flatten() if written_out else _svec_operator(operator, size)
        values, vectors = eigsh(flat, k=rank, which="LM", v0=_start(operator.n_features))
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return Eigenpairs(values[order], vectors[:, order])


def add_rank_one(
    values: np.ndarray, coordinates: np.ndarray, column: int, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues after ``weight · A_c A_cᵀ`` was added, and all ``A_i`` in the new eigenvectors.

    With ``M = V D Vᵀ`` and ``Z = Vᵀ A``, the matrix ``M + w A_c A_cᵀ`` is ``V (D + w z zᵀ) Vᵀ`` for
    ``z = Z_c``. Its eigenvalues μ are the roots of ``1 + w Σ_k z_k² / (d_k − μ) = 0``, one between each
    two neighbours of D, its eigenvectors ``V (D − μ)⁻¹ z`` (Golub, 1973). For k vectors that takes
    O(q² k) time where a new decomposition takes O(q³). Differences ``d_k − μ`` keep full precision, by
    their distance to the nearer neighbour, and z is replaced by the one of which the roots found are
    exact (Gu and Eisenstat, 1994), so that the eigenvectors are orthogonal to rounding.

    Parameters
    ----------
    values : ndarray of shape (q,)
        D, in any order.
    coordinates : ndarray of shape (q, k)
        Z.
    column : int
        c.
    weight : float
        w.

    Returns
    -------
    values : ndarray of shape (q,)
    coordinates : ndarray of shape (q, k)

    Examples
    --------
    >>> import numpy as np
    >>> values, inside = add_rank_one(np.array([1.0, 2.0]), np.array([[1.0], [1.0]]), 0, 0.5)
    >>> bool(np.allclose(values, np.linalg.eigvalsh([[1.5, 0.5], [0.5, 2.5]])))
    True
    """
    sign = -1.0 if weight < 0 else 1.0
    order = np.argsort(sign * values, kind="stable")
    poles, Z = sign * values[order], coordinates[order].copy()
    length = float(np.linalg.norm(Z[:, column]))
    strength = abs(weight) * length**2
    largest = max(float(np.abs(poles).max(initial=0.0)), strength)
    if strength == 0.0:
        return values.copy(), coordinates.copy()
    tolerance = 8 * np.finfo(float).eps * largest
    moved = strength * np.abs(Z[:, column]) / length > tolerance
    _separate_ties(poles, Z, column, moved, tolerance)
    d, z = poles[moved], Z[moved, column] / length
    roots = _secular_roots(d, z**2, strength)
    exact = np.copysign(np.sqrt(_exact_squares(d, roots, strength)), z)
    inside, rows = Z[moved], np.empty((d.size, Z.shape[1]))
    for part in _chunks(d.size):
        vectors = exact / roots.differences(d, part)
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        rows[part] = vectors @ inside
    Z[moved], poles[moved] = rows, d[roots.nearest] + roots.shifts
    return sign * poles, Z


class _Roots(NamedTuple):
    """Roots of a secular equation: index of the nearest pole, and how far beyond it they are."""

    nearest: np.ndarray
    shifts: np.ndarray

    def differences(self, poles: np.ndarray, part: slice) -> np.ndarray:
        """``d_k − μ_j``, for some of the roots as rows and all poles as columns."""
        return np.asarray((poles - poles[self.nearest[part], None]) - self.shifts[part][:, None])


def _chunks(size: int) -> list[slice]:
    step = max(MAX_DIFFERENCES // max(size, 1), 1)
    return [slice(start, start + step) for start in range(0, size, step)]


def _separate_ties(
    poles: np.ndarray, Z: np.ndarray, column: int, moved: np.ndarray, tolerance: float
) -> None:
    """Turn pairs of eigenvectors so that one only has a share in the vector; in place.

    Those of equal eigenvalues, and any for which the turn leaves next to nothing off the diagonal.
    """
    z = Z[:, column]
    left = np.flatnonzero(moved)
    ahead, behind = left[:-1], left[1:]
    # what a turn by the two shares would leave off the diagonal
    near = np.abs(z[ahead] * z[behind]) / (z[ahead] ** 2 + z[behind] ** 2)
    if not np.any((poles[behind] - poles[ahead]) * near <= tolerance):
        return
    last = left[0]
    for k in left[1:]:
        size = np.hypot(z[last], z[k])
        c, s = z[k] / size, z[last] / size
        if (poles[k] - poles[last]) * abs(c * s) <= tolerance:
            turn = np.array([[c, -s], [s, c]])
            Z[[last, k]] = turn @ Z[[last, k]]
            poles[[last, k]] = turn**2 @ poles[[last, k]]
            moved[last] = False
        last = k


def _secular_roots(d: np.ndarray, squares: np.ndarray, strength: float) -> _Roots:
    """Roots of ``1 + w Σ_k z_k² / (d_k − μ)`` for ``w > 0`` and poles d that increase.

    The sums over the poles on either side of a root are replaced by one pole each, that of the
    neighbour, with the same value and slope; the root of that is the next guess (Bunch, Nielsen and
    Sorensen, 1978). It cannot leave the bracket that signs have shown, or the bracket is halved.
    """
    q = d.size
    nearest, shifts = np.empty(q, dtype=int), np.empty(q)
    # after the last pole the root is at most w Σ z² away, with nothing beyond
    gaps = np.append(np.diff(d), strength * squares.sum())
    weights = strength * squares

    def sides(delta: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """Sums over the poles before and after the root, and their slopes.

        Terms before it are negative, and those after it positive.
        """
        inverse = np.reciprocal(delta - t[:, None])
        sizes = np.abs(inverse)
        total, apart = inverse @ weights, sizes @ weights
        inverse *= sizes
        sizes *= sizes
        slopes_apart, slopes = inverse @ weights, sizes @ weights
        return (
            (total - apart) / 2,
            (total + apart) / 2,
            (slopes - slopes_apart) / 2,
            (slopes + slopes_apart) / 2,
        )

    for part in _chunks(q):
        each, gap = np.arange(q)[part], gaps[part]
        left, right, *_ = sides(d - d[each, None], gap / 2)
        # a root in the upper half is written from the upper pole, but for the last
        upper = (1 + left + right < 0) & (each < q - 1)
        nearest[part] = each + upper
        delta = d - d[nearest[part], None]
        a, b = np.where(upper, -gap, 0.0), np.where(upper, 0.0, gap)
        t, low, high = (a + b) / 2, a, b
        for _ in range(MAX_STEPS):
            left, right, left_slope, right_slope = sides(delta, t)
            value = 1 + left + right
            low, high = np.where(value < 0, t, low), np.where(value < 0, high, t)
            Q, S = left_slope * (a - t) ** 2, right_slope * (b - t) ** 2
            c = 1 + left - left_slope * (a - t) + right - right_slope * (b - t)
            B, C = c * (a + b) + Q + S, c * a * b + Q * b + S * a
            root = np.sqrt(np.maximum(B**2 - 4 * c * C, 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                guess = np.where(B >= 0, 2 * C / (B + root), (B - root) / (2 * c))
            inside = (guess > low) & (guess < high)
            going = np.abs(value) > 4 * np.finfo(float).eps * (1 - left + right)
            t = np.where(inside, guess, (low + high) / 2) * going + t * ~going
            shifts[each] = t
            if not going.any():
                break
            each, delta, t = each[going], delta[going], t[going]
            a, b, low, high = a[going], b[going], low[going], high[going]
    return _Roots(nearest, shifts)


def _exact_squares(d: np.ndarray, roots: _Roots, strength: float) -> np.ndarray:
    """The z_k² of which the roots are exact: ``Π_j (μ_j − d_k) / (w Π_{j≠k} (d_j − d_k))``."""
    q = d.size
    product = np.ones(q)
    for part in _chunks(q):
        ratios = -roots.differences(d, part)
        each = np.arange(q)[part]
        poles = d[each, None] - d
        poles[np.arange(each.size), each] = strength
        ratios /= poles
        product *= np.prod(ratios, axis=0)
    return np.abs(product)


def eigenvalues(operator: TensorOperator, count: int | None = None) -> np.ndarray:
    """Eigenvalues of ``Mat(T)`` by decreasing magnitude, at most ``count`` of them."""
    size = n_packed(operator.n_features)
    if size <= DENSE_SIZE or (count is None and isinstance(operator, PackedTensor)):
        values = eigh(operator.flatten(), eigvals_only=True, check_finite=False)
        return values[np.argsort(-np.abs(values), kind="stable")][:count]
    return top_eigenpairs(operator, min(count or size, size)).values


def _svec_operator(operator: TensorOperator, size: int) -> LinearOperator:
    def product(vector: np.ndarray) -> np.ndarray:
        return svec(operator.apply(smat(vector.ravel())))

    return LinearOperator((size, size), matvec=product, rmatvec=product, dtype=np.float64)


def _start(n_features: int) -> np.ndarray:
    # Lanczos needs a start with a share in every eigenvector; a fixed generator keeps the
    # decomposition a function of the tensor alone.
    return np.random.default_rng(0).standard_normal(n_packed(n_features))
