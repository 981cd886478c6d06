"""The permutation null of rows over many variables: largest ratios by Lanczos' iteration, from the rows.

With S the scatter of all rows and s their sum over the permuted foreground, whose covariance is C_x,
the largest ratio k of ``C_x`` to ``C_y + ρ I`` belongs to the largest eigenvalue θ of ``n C_x`` to
``n C_x + m (C_y + ρ I) = S + m ρ I − (1/n + 1/m) s sᵀ``: ``k = m θ / (n (1 − θ))``. One decomposition of
S whitens that for all permutations, and what is left are products ``n C_x v = Σ x (xᵀv) − s (sᵀv) / n``
(`contrica.solvers.permuted_scatter`): through the rows, for many permutations at a time. Where rows are
many, batches of them are permuted; every ``Σ x xᵀ`` is then a sum of those of batches, and if there is
room for them, products with these take less. They are kept in singles, in coordinates in which S is one
and so is every rounding; once directions with nearly all variance are left out, and ρ is that of the
others, they are added up anew in coordinates of that ρ.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs, dstemr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.permuted_scatter import ByMatrices, ByRows, blocks_of, n_entries, scatters
from contrica.solvers.row_design import RowBatches, RowDesign

__all__ = ["WideNull", "is_wide"]

# Fewer variables than this are decomposed as fast.
MIN_FEATURES = 150
# Products with the rows that the largest ratio of a permutation takes, about.
N_PRODUCTS = 32
# Residuals, relative to θ (1 − θ), at which the error of a ratio is a thousandth or less; and, relative
# to θ, at which rounding is left, of singles and of doubles.
ENOUGH, SINGLE, DOUBLE = 1e-2, 1e-5, 1e-10
# A ratio is not at a bound that is so many residuals above it. Products of ratio and ρ bound others that
# are smaller by this share.
RESIDUALS, MARGIN = 10, 0.02
# A start that has next to nothing of the leading eigenvector finds the next one first, with a small
# residual: one in a hundred does after 14 products, and still after 20. Of two starts both would have to.
STARTS, MIN_PRODUCTS, CHECKED_EVERY, MAX_PRODUCTS = 2, 12, 2, 300
# Rows of a larger condition, the trace of their scatter over its least eigenvalue, need doubles.
MAX_CONDITION = 1e8
# Entries, of rows or of matrices, that are kept in single precision, 256 MB of them, at most.
MAX_SINGLES = 2**26
# So many rows for each variable take longer than matrices and their sums.
ROWS_PER_FEATURE = 8
# Rounding of singles, relative to one, is in a ratio's θ by this factor at most.
MAX_GAIN = 100
# Beyond this θ the ratio has lost half of its digits, and the covariances are formed after all.
MAX_SHARE = 1 - 1e-7
# Directions whose shares in all rows are worked out at a time.
DIRECTIONS_AT_ONCE = 32


def is_wide(design: RowDesign, n_permutations: int) -> bool:
    """Whether products with rows or matrices take less than covariances and their decompositions.

    Parameters
    ----------
    design : RowDesign
    n_permutations : int
        Wanted.

    Returns
    -------
    bool
    """
    n_rows, p = design.shape
    by_covariances = design.n_fewer * p**2 + 20 * p**3
    by_rows = 8 * N_PRODUCTS * n_rows * p
    count = design.n_permutations(n_permutations)
    return p >= MIN_FEATURES and (
        by_covariances > by_rows or (_adds_up(design, count) and design.in_batches)
    )


def _adds_up(design: RowDesign, n_permutations: int) -> bool:
    """Whether there is room for the scatters of all permutations, and they take less than the rows."""
    n_rows, p = design.shape
    room = min(MAX_SINGLES, design.room / 4)
    return n_rows >= ROWS_PER_FEATURE * p and n_entries(n_permutations, p) <= room


class WideNull:
    """Largest ratios of the observed assignment of rows and of permutations of it.

    Parameters
    ----------
    design : RowDesign
    n_permutations : int
        Wanted.
    rng : numpy.random.Generator
        Permutes the rows, as for `RowDesign.splits`.

    Attributes
    ----------
    observed : Split
    """

    def __init__(self, design: RowDesign, n_permutations: int, rng: np.random.Generator) -> None:
        count = design.n_permutations(n_permutations)
        seed = int(rng.integers(2**63))
        self._design, self.observed = design, design.observed()
        self._assigned, self._batches = design.assigned(count, np.random.default_rng(seed))
        self._in_fore = self._assigned.T
        if self._batches is not None:
            self._in_fore = np.empty((design.shape[0], count), dtype=bool)
            for rows, own in zip(self._batches.rows, self._assigned.T, strict=True):
                self._in_fore[rows] = own
        n_fore = self._in_fore.sum(axis=0)
        self._sizes = np.array([n_fore, design.shape[0] - n_fore], dtype=float)
        self._scatter = design.scatter
        self._sums = np.zeros((count, design.shape[1]))
        squares = np.empty((design.shape[0], 1))
        for own, block in design.blocks():
            self._sums += self._in_fore[own].T.astype(float) @ block
            squares[own, 0] = np.einsum("ij,ij->i", block, block)
        shifts = np.sum(self._sums**2, axis=1, keepdims=True)
        self._energies = self._about_means(squares, shifts)[:, :, 0]
        self._largest_square = squares.max()
        self._singles: np.ndarray | None = None
        self._matrices: _Matrices | None = None
        self._left_axes, self._left_energies = np.empty((design.shape[1], 0)), np.empty((count, 0))
        self._products = np.full(count, np.inf)

    def __len__(self) -> int:
        return self._in_fore.shape[1] + 1

    def largest(self, ratios: np.ndarray) -> np.ndarray:
        """The largest ratio of the observed assignment, and those of all permutations.

        Parameters
        ----------
        ratios : ndarray of shape (p,)
            Of the observed assignment.

        Returns
        -------
        ndarray of shape (len(self),)
        """
        every = np.arange(len(self) - 1)
        floors = self._floors(self._energies[1], every)
        found = self._largest(every, floors, ratios[0], None)
        self._products = found * floors
        return np.concatenate([ratios[:1], found])

    def exceeding(self, ratios: np.ndarray, axes: np.ndarray, skip: int) -> np.ndarray:
        """Which assignments have a largest ratio of at least the observed one, leading axes left out.

        A ratio along some axes, where ρ is smaller, is at most that of all directions times how many
        times smaller it is.

        Parameters
        ----------
        ratios : ndarray of shape (p,)
            Of the observed assignment in all directions.
        axes : ndarray of shape (p, p)
            Their axes, from `contrica.solvers.contrast_directions.contrast_axes`.
        skip : int

        Returns
        -------
        ndarray of bool, shape (len(self),)
        """
        left_out, energies = self._left_out(axes, skip)
        within = np.maximum(self._energies[1] - energies, 0.0)
        # ρ without rounding's, which makes no ratio larger
        limits = self._products / np.maximum((1 - MARGIN) * within, np.finfo(float).tiny)
        limits *= self._sizes[1] ** 2
        found = np.zeros(len(self), dtype=bool)
        if limits.max() < ratios[skip]:  # which a smaller ρ makes no smaller
            return found
        bound = self._observed_ratio(ratios, axes, left_out) * (1 - 1e-9)
        close = np.flatnonzero(limits >= bound)
        if close.size:
            floors = self._floors(within[close], close)
            largest = self._largest(close, floors, bound, left_out)
            below = largest < bound
            found[1 + close[~below]] = True  # and how far they exceed it was not asked
            limits = np.minimum(self._products[close], largest * floors)
            self._products[close[below]] = limits[below]
        return found

    # --- what ρ needs ---

    def _about_means(self, squares: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Sums of squares of both sets about their means, from those of rows and of foregrounds' sums.

        The sum of all rows is zero, so that the sums of both sets are opposite.
        """
        above = self._over_foregrounds(squares)
        both = np.array([above, squares.sum(axis=0) - above])
        return np.asarray(np.maximum(both - shifts / self._sizes[:, :, None], 0.0))

    def _over_foregrounds(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows of every foreground, of some columns."""
        if self._batches is not None:
            values = np.array([values[rows].sum(axis=0) for rows in self._batches.rows])
        return np.asarray(self._assigned.astype(float) @ values)

    def _floors(self, energies: np.ndarray, which: np.ndarray) -> np.ndarray:
        """ρ as of `Split`, from sums of squares of the background in the directions that are left."""
        n, m = self._sizes[:, which]
        above, below = self._energies[:, which]
        whole = np.maximum(n / m, 1.0) * (above + below) / n
        rounding = len(self._scatter) * np.finfo(float).eps * np.maximum(whole, below / m)
        return np.maximum(energies / m**2, rounding)

    def _left_out(self, axes: np.ndarray, skip: int) -> tuple[np.ndarray, np.ndarray]:
        """Orthonormal axes of what is orthogonal to all but the leading axes, and energies along them."""
        if skip > self._left_axes.shape[1]:
            count = min(max(2 * skip, DIRECTIONS_AT_ONCE), len(axes))
            # with Aᵀ (C_y + ρ I) A = I, these are orthogonal to all further columns of A
            orthogonal = self.observed.back @ axes[:, :count]
            orthogonal += self.observed.floor * axes[:, :count]
            self._left_axes = np.linalg.qr(orthogonal)[0]
            along = np.empty((self._design.shape[0], count))
            for own, block in self._design.blocks():
                along[own] = block @ self._left_axes
            shifts = (self._sums @ self._left_axes) ** 2
            self._left_energies = np.cumsum(self._about_means(along**2, shifts)[1], axis=1)
        return self._left_axes[:, :skip], self._left_energies[:, skip - 1]

    # --- the observed assignment ---

    def _observed_ratio(self, ratios: np.ndarray, axes: np.ndarray, left_out: np.ndarray) -> float:
        """The largest ratio in what is orthogonal to the axes left out.

        With ``Aᵀ C_x A = diag(k)`` and ``Aᵀ (C_y + ρ I) A = I`` it is the largest of ``diag(k)`` to
        ``I − (ρ − ρ′) AᵀA`` on the columns of A that are left: ρ′ is that of fewer directions.
        """
        observed, skip = self.observed, left_out.shape[1]
        trace = observed.back.trace() - np.vdot(left_out, observed.back @ left_out)
        floor = max(trace / observed.n_back, observed.rounding)
        form = axes[:, skip:].T @ axes[:, skip:]
        form *= floor - observed.floor
        form.flat[:: len(form) + 1] += 1.0
        factor, info = dpotrf(form.T, lower=1, overwrite_a=1)
        if info:  # to rounding, the background does not vary along some of them
            inside = observed.inside(np.linalg.qr(axes[:, skip:])[0])
            return float(contrast_axes(inside.fore, inside.back, floor=inside.floor)[0][0])
        roots = np.sqrt(np.maximum(ratios[skip:], 0.0))

        def decomposed() -> float:
            whole = roots[:, None] * dpotrs(factor, np.diag(roots), lower=1)[0]
            return float(np.linalg.eigvalsh(whole)[-1])

        if roots.size < 3 or not roots.any():  # where nothing is left, no start has any of it
            return decomposed()

        def times(vector: np.ndarray) -> np.ndarray:
            return np.asarray(roots * dpotrs(factor, roots * vector.ravel(), lower=1)[0])

        operator = LinearOperator((roots.size,) * 2, matvec=times, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(roots.size)
        try:
            return float(eigsh(operator, 1, which="LA", v0=start, return_eigenvectors=False)[0])
        except ArpackNoConvergence:
            return decomposed()

    # --- permutations ---

    def _largest(
        self, which: np.ndarray, floors: np.ndarray, bound: float, left_out: np.ndarray | None
    ) -> np.ndarray:
        """Largest ratios of some permutations; of those far from a bound roughly."""
        n, m = self._sizes[:, which]
        whitened, limit = self._whitened(which, floors, left_out), bound * n / (m + bound * n)
        shares, open_ = np.empty(which.size), np.ones(which.size, dtype=bool)
        unresolved, is_enough = np.zeros(which.size, dtype=bool), left_out is not None
        quick = self._in_singles(which, floors, whitened)
        if quick is not None:
            shares, residuals = _lanczos(quick, limit, SINGLE, is_enough)
            beside = limit - shares
            open_ = (beside >= -SINGLE * limit) & (beside <= np.maximum(residuals, SINGLE * limit))
            open_ |= SINGLE * shares > ENOUGH * (1 - shares)
        if quick is not None and isinstance(quick.products, ByMatrices):
            unresolved = open_  # those of a few are formed in doubles
        elif open_.any():
            shares[open_], residuals = _lanczos(
                whitened.take(open_), limit[open_], DOUBLE, is_enough
            )
            unresolved[open_] = np.isinf(residuals)
        found = m * shares / (n * np.maximum(1 - shares, np.finfo(float).eps))
        for i in np.flatnonzero((shares > MAX_SHARE) | unresolved):
            found[i] = self._by_covariances(which[i], floors[i], left_out)
        return np.asarray(found)

    def _in_singles(
        self, which: np.ndarray, floors: np.ndarray, whitened: _Whitened
    ) -> _Whitened | None:
        """Products in single precision, which take half, where that is enough and there is room."""
        n_rows, p = self._design.shape
        room = min(MAX_SINGLES, self._design.room / 4)
        if self._batches is not None and _adds_up(self._design, len(self._assigned)):
            quick = self._by_matrices(which, floors, whitened, self._batches)
            if quick is not None:
                return quick
        # what is in the rows, whether left out or not, over the least that is left
        condition = self._scatter.trace() * whitened.scales.max() ** 2
        in_range = self._largest_square < np.finfo(np.float32).max
        if condition < MAX_CONDITION and n_rows * p <= room and in_range:
            if self._singles is None:
                self._singles = np.empty((n_rows, p), np.float32)
                for own, block in self._design.blocks():
                    self._singles[own] = block
            rows = ByRows(partial(blocks_of, self._singles), self._in_fore[:, which])
            return whitened._replace(products=rows, axes=whitened.axes.astype(np.float32))
        return None

    def _by_matrices(
        self, which: np.ndarray, floors: np.ndarray, whitened: _Whitened, batches: RowBatches
    ) -> _Whitened | None:
        """Products with sums of matrices; ``None`` where S is too near to having no inverse."""
        quick = self._turned(which, whitened)
        if quick is None:
            self._matrices = None  # so that there are never two
            floor = float(np.min(self._sizes[1, which] * floors))
            self._matrices = self._added_up(batches, floor)
            quick = self._turned(which, whitened)
        return quick

    def _turned(self, which: np.ndarray, whitened: _Whitened) -> _Whitened | None:
        """In the coordinates of the matrices, ``n C_x = L M Lᵀ``, so that axes v are Lᵀv there.

        ``None`` where there are none, or where their rounding would count.
        """
        if self._matrices is None:
            return None
        (factor, panels), axes = self._matrices, whitened.axes
        if whitened.left_out is not None:
            axes = _without(axes, whitened.left_out)
        axes = factor.T @ axes
        if np.max(np.linalg.norm(axes, axis=0) * whitened.scales.max(axis=1)) > MAX_GAIN:
            return None
        return whitened._replace(
            products=ByMatrices(panels, which),
            axes=axes.astype(np.float32),
            sums=dtrsm(1.0, factor, self._sums[which].T, lower=1).T,
            left_out=None,
        )

    def _added_up(self, batches: RowBatches, floor: float) -> _Matrices | None:
        """L of ``L Lᵀ = S + floor · I``, and what `scatters` adds up in its coordinates."""
        factor = self._scatter.copy(order="F")
        factor.flat[:: len(factor) + 1] += floor
        factor, info = dpotrf(factor, lower=1, overwrite_a=1)
        if info:
            return None
        return _Matrices(factor, scatters(self._design, batches, self._assigned, factor))

    def _whitened(
        self, which: np.ndarray, floors: np.ndarray, left_out: np.ndarray | None
    ) -> _Whitened:
        scatter, sums = self._scatter, self._sums[which]
        if left_out is not None:
            scatter = _without(_without(scatter, left_out).T, left_out)
            sums = _without(sums.T, left_out).T
        values, axes = eigh(scatter.T, overwrite_a=left_out is not None, driver="evd")
        n, m = self._sizes[:, which]
        scales = 1 / np.sqrt(np.maximum(values, 0.0)[:, None] + m * floors)
        turned = scales * (axes.T @ sums.T)
        lengths = np.sum(turned**2, axis=0)
        # (I − c t tᵀ)^{-½} = I + g t tᵀ
        inside = np.maximum(1 - (1 / n + 1 / m) * lengths, np.finfo(float).tiny)
        gains = np.divide(inside**-0.5 - 1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        products = ByRows(self._design.blocks, self._in_fore[:, which])
        return _Whitened(products, axes, scales, turned, gains, sums, n, left_out)

    def _by_covariances(self, number: int, floor: float, left_out: np.ndarray | None) -> float:
        own = self._in_fore[:, number]
        fore_is_smaller = self._design.n == self._design.n_fewer
        part = self._design.split_of(np.flatnonzero(own if fore_is_smaller else ~own))
        fore, back = part.fore, part.back
        if left_out is not None:
            fore, back = (_without(_without(C, left_out).T, left_out) for C in (fore, back))
        return float(contrast_axes(fore, back, floor=floor)[0][0])


class _Matrices(NamedTuple):
    """Scatters of all permutations in coordinates in which that of all rows is nearly one."""

    factor: np.ndarray
    panels: list[np.ndarray]


class _Whitened(NamedTuple):
    """``n C_x`` of several permutations in coordinates in which ``n C_x + m (C_y + ρ I)`` is one."""

    products: ByRows | ByMatrices
    axes: np.ndarray
    scales: np.ndarray
    turned: np.ndarray
    gains: np.ndarray
    sums: np.ndarray
    n: np.ndarray
    left_out: np.ndarray | None

    def take(self, which: np.ndarray) -> _Whitened:
        """Of some of the permutations."""
        return self._replace(
            products=self.products.take(which),
            scales=self.scales[:, which],
            turned=self.turned[:, which],
            gains=self.gains[which],
            sums=self.sums[which],
            n=self.n[which],
        )

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """A product with one vector for each permutation, as columns."""
        scaled = self.scales * self._shifted(vectors)
        inside = (self.axes @ scaled.astype(self.axes.dtype)).astype(float)
        if self.left_out is not None:
            inside = _without(inside, self.left_out)
        image = self.products.times(inside)
        image -= self.sums.T * (np.einsum("ij,ji->i", self.sums, inside) / self.n)
        if self.left_out is not None:
            image = _without(image, self.left_out)
        return self._shifted(self.scales * (self.axes.T @ image.astype(self.axes.dtype)))

    def _shifted(self, vectors: np.ndarray) -> np.ndarray:
        return vectors + self.turned * (self.gains * np.sum(self.turned * vectors, axis=0))


def _without(vectors: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """What of some columns is orthogonal to some orthonormal axes."""
    along = axes @ (axes.T @ vectors)
    return np.subtract(vectors, along, out=along)


def _lanczos(
    operator: _Whitened, bound: np.ndarray, smallest: float, is_enough: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of several operators, each between 0 and 1, from random starts; residuals.

    Near the bound residuals end small; elsewhere where the eigenvalue is known well enough or, if to be
    above the bound ``is_enough``, there. They are infinite where the products did not suffice. No start
    finds a value that is too large, so that the larger of what two find is kept.
    """
    count = operator.turned.shape[1]
    twice = np.tile(np.arange(count), STARTS)
    found, residuals = (
        part.reshape(STARTS, count)
        for part in _followed(operator.take(twice), bound[twice], smallest, is_enough)
    )
    best = found.argmax(axis=0), np.arange(count)
    return found[best], residuals[best]


def _followed(
    operator: _Whitened, bound: np.ndarray, smallest: float, is_enough: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The same from one start each.

    No vectors are kept: orthogonality that is lost makes copies of an eigenvalue, and not another one.
    """
    p, count = operator.turned.shape
    # a fixed generator: what is found is a function of the rows alone
    now = np.random.default_rng(0).standard_normal((p, count))
    now /= np.linalg.norm(now, axis=0)
    before, beta = np.zeros_like(now), np.zeros(count)
    diagonal, beside = np.empty((2, MAX_PRODUCTS, count))
    (found, residuals), going = np.zeros((2, count)), np.arange(count)
    for step in range(MAX_PRODUCTS):
        image = operator.times(now)
        alpha = np.sum(now * image, axis=0)
        image -= alpha * now + beta * before
        beta = np.linalg.norm(image, axis=0)
        diagonal[step, going], beside[step, going] = alpha, beta
        if (step + 1) % CHECKED_EVERY == 0 or not beta.all():
            done = np.zeros(going.size, dtype=bool)
            for i, own in enumerate(going):
                theta, residual = _ritz(diagonal[: step + 1, own], beside[: step + 1, own])
                found[own], residuals[own] = theta, residual
                far = (
                    residual <= ENOUGH * theta * (1 - theta)
                    and abs(theta - bound[own]) > RESIDUALS * residual
                )
                above = is_enough and theta > bound[own] * (1 + smallest)
                sure = step + 1 >= MIN_PRODUCTS and (far or residual <= smallest * theta)
                done[i] = sure or above or beta[i] == 0
            if done.all():
                break
            operator, going = operator.take(~done), going[~done]
            image, now, beta = image[:, ~done], now[:, ~done], beta[~done]
        before, now = now, image / beta
    else:
        residuals[going] = np.inf
    return found, residuals


def _ritz(diagonal: np.ndarray, beside: np.ndarray) -> tuple[float, float]:
    """The largest eigenvalue of a tridiagonal matrix, and how far the next row of it takes it."""
    last, by_index = diagonal.size, 2
    # LAPACK itself: around it scipy's checks take many times as long
    _, values, vectors, info = dstemr(diagonal, beside, by_index, 0.0, 0.0, last, last)
    if info:
        raise np.linalg.LinAlgError(f"no eigenvalue of a tridiagonal matrix was found ({info})")
    return float(values[0]), float(beside[-1] * abs(vectors[-1, 0]))
