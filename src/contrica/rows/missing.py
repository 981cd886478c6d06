"""Missing values: the structure that datasets have in common, and rows whose gaps it fills.

The structure is a factor model of the standardised variables, ``x = L z + e``: the leading principal axes
of rows of all datasets, each about its own mean, shrunk as far as so few rows ask for (Ledoit and Wolf),
and a variance of its own for every variable. It gives the best linear prediction ``B x_O`` of missing
entries from observed ones. Predictions alone vary too little, and a dataset with more gaps than another
would look different for that reason. So a gap gets what is left of another row as well: with a *donor*
d, a row drawn at random from all datasets, ``x_M = d_M + B (x_O − d_O)``. Means and covariances
come out right, whatever the distribution, and no row knows of which dataset its donor is. A row without
any value becomes its donor. What is lost is dependence beyond the linear one, and so part of fourth
cumulants; these are taken from observed values instead (`contrica.moments.pairwise`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from contrica.rows.device import to_numpy
from contrica.rows.observed import Observed
from contrica.rows.products import in_memory
from contrica.rows.protocol import Rows, iterate_blocks

__all__ = ["Filled", "Structure", "common_structure", "filled", "learnt_from", "predicted"]

# Factors, at most: as many as there are principal components at most (`n_pcs="auto"`), and fewer where
# their products would be more numbers than these.
MAX_FACTORS, MAX_PRODUCTS = 30, 2**22
# Rows from which the structure is learnt, and multiplications that each round may cost.
MAX_ROWS, ROUND_BUDGET, MIN_ROWS = 10_000, 10**10, 500
# Entries of an array whose filled copy is kept, 128 MB of it; larger ones are filled in every pass.
MAX_FILLED = 2**24
# Rounds of filling and learning, and the root mean square change of what is filled, in standard
# deviations, at which they end. Each leaves about the share of missing information of the error.
MAX_ROUNDS, SETTLED = 15, 5e-3
# Least variance of a variable that factors do not share, of its own.
NOISE = 1e-6
# Numbers in the matrices of factors that are solved for at a time.
SOLVED_ENTRIES = 2**21


class Structure(NamedTuple):
    """What datasets have in common, by which gaps are filled.

    Attributes
    ----------
    means : ndarray of shape (n_datasets, p)
        Of each dataset, its own.
    scale : ndarray of shape (p,)
    loadings : ndarray of shape (p, q)
        Of the standardised variables.
    noise : ndarray of shape (p,)
    donors : ndarray of shape (n, p)
        Standardised rows of all datasets, complete.
    """

    means: np.ndarray
    scale: np.ndarray
    loadings: np.ndarray
    noise: np.ndarray
    donors: np.ndarray

    def fill(self, block: np.ndarray, dataset: int, start: int) -> np.ndarray:
        """Rows without gaps; those that have none are returned as they are.

        Parameters
        ----------
        block : ndarray of shape (n, p)
        dataset : int
            Number of the dataset.
        start : int
            Number of the first row, which decides its donor.

        Returns
        -------
        ndarray of shape (n, p)
        """
        index = np.flatnonzero(np.isnan(block).any(axis=1))
        if not index.size:
            return block
        rows = (block[index] - self.means[dataset]) / self.scale
        chosen = self.donors[donors_of(start + index, len(self.donors), dataset)]
        observed = ~np.isnan(rows)
        apart = np.where(observed, rows - chosen, 0.0)
        full = chosen + predicted(apart, observed, self.loadings, self.noise)
        filled = block.copy()
        filled[index] = np.where(observed, block[index], self.means[dataset] + full * self.scale)
        return filled


def donors_of(numbers: np.ndarray, n_donors: int, dataset: int = 0) -> np.ndarray:
    """The donor of each of some rows: a random one, the same always, and all in turn.

    In turn, for a donor with an outlying value must not be one of many rows.

    Parameters
    ----------
    numbers : ndarray of int
        Of the rows.
    n_donors : int
    dataset : int
        Number of the dataset.

    Returns
    -------
    ndarray of int
    """
    order = np.random.default_rng(dataset).permutation(n_donors)
    return order[numbers % n_donors]


def predicted(
    rows: np.ndarray, observed: np.ndarray, loadings: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Best linear prediction of all entries from the observed ones: regularised least squares.

    The factors of a row are ``(I + L_Oᵀ Ψ_O⁻¹ L_O)⁻¹ L_Oᵀ Ψ_O⁻¹ x_O``.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        About the mean, 0 where nothing was observed.
    observed : ndarray of bool, shape (n, p)
    loadings : ndarray of shape (p, q)
    noise : ndarray of shape (p,)
        Ψ.

    Returns
    -------
    ndarray of shape (n, p)
    """
    (p, q), found = loadings.shape, np.zeros_like(rows)
    if q == 0:
        return found
    products = (loadings[:, :, None] * loadings[:, None, :]).reshape(p, q * q) / noise[:, None]
    weighted = loadings / noise[:, None]
    step = max(SOLVED_ENTRIES // (q * q), 1)
    for begin in range(0, len(rows), step):
        own = slice(begin, begin + step)
        normal = (observed[own].astype(np.float64) @ products).reshape(-1, q, q) + np.eye(q)
        factors = np.linalg.solve(normal, (rows[own] @ weighted)[:, :, None])[:, :, 0]
        found[own] = factors @ loadings.T
    return found


def common_structure(
    samples: Sequence[np.ndarray], means: np.ndarray, scale: np.ndarray
) -> Structure:
    """The structure that rows of several datasets have in common.

    Gaps are filled, the structure is learnt from the filled rows, and gaps are filled by it, in turn.

    Parameters
    ----------
    samples : sequence of ndarray of shape (n, p)
        Rows of every dataset, NaN where a value is missing.
    means : ndarray of shape (n_datasets, p)
        Of what was observed in all rows of each.
    scale : ndarray of shape (p,)
        Its standard deviation, of all datasets together.

    Returns
    -------
    Structure
    """
    number = np.repeat(np.arange(len(samples)), [len(part) for part in samples])
    stacked = np.concatenate(
        [(part - mean) / scale for part, mean in zip(samples, means, strict=True)]
    )
    observed = ~np.isnan(stacked)
    rows = _drawn(stacked, observed)
    gaps = np.flatnonzero(~observed.all(axis=1))
    known, given, own = observed[gaps], np.where(observed, stacked, 0.0)[gaps], number[gaps]
    donor = donors_of(np.arange(gaps.size), len(rows))
    start = _centres(np.where(observed, rows, np.nan), number)
    shift = np.zeros_like(means)
    factors = _factors(rows - start[number])
    for _ in range(MAX_ROUNDS):
        centre = start + shift
        chosen = (rows - centre[number])[donor]
        apart = np.where(known, given - centre[own] - chosen, 0.0)
        full = chosen + predicted(apart, known, *factors)
        new = np.where(known, given, centre[own] + full)
        change = float(np.sqrt(np.sum((new - rows[gaps]) ** 2) / max(np.sum(~known), 1)))
        rows[gaps] = new
        shift = _centres(rows, number) - start
        factors = _factors(rows - (start + shift)[number])
        if change < SETTLED:
            break
    return Structure(means + shift * scale, scale, *factors, rows - (start + shift)[number])


def _centres(rows: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Mean of the rows of every dataset, without gaps; 0 where nothing was observed."""
    found = np.zeros((number[-1] + 1, rows.shape[1]))
    for i in range(len(found)):
        own = rows[number == i]
        counts = np.maximum(np.sum(~np.isnan(own), axis=0), 1)
        found[i] = np.nansum(own, axis=0) / counts
    return found


def _drawn(rows: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Gaps filled with values of the same variable that were observed elsewhere."""
    rng = np.random.default_rng(0)
    rows = rows.copy()
    for j in np.flatnonzero(~observed.all(axis=0)):
        missing = ~observed[:, j]
        values = rows[~missing, j] if not missing.all() else np.zeros(1)
        rows[missing, j] = rng.choice(values, int(missing.sum()))
    return rows


def _factors(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loadings and noise of complete rows about their mean."""
    n, p = rows.shape
    if p <= n:
        values, axes = np.linalg.eigh(rows.T @ rows / n)
    else:
        values, left = np.linalg.eigh(rows @ rows.T / n)
        axes = rows.T @ left / np.sqrt(n * np.maximum(values, np.finfo(float).tiny))
    shrink = _shrinkage(rows, values)
    q = min(p, n, MAX_FACTORS, int((MAX_PRODUCTS / p) ** 0.5) + 1)
    leading = np.maximum(values[::-1][:q], 0.0)
    loadings = axes[:, ::-1][:, :q] * np.sqrt((1 - shrink) * leading)
    total = np.mean(rows**2, axis=0)
    noise = np.maximum(total - np.sum(loadings**2, axis=1), NOISE * np.where(total > 0, total, 1.0))
    return loadings, noise


def _shrinkage(rows: np.ndarray, values: np.ndarray) -> float:
    """How far a covariance is to be drawn towards its diagonal mean, by the rule of Ledoit and Wolf."""
    n, p = rows.shape
    square = float(np.sum(values**2))
    apart = square - float(np.sum(values)) ** 2 / p
    error = (float(np.mean(np.sum(rows**2, axis=1) ** 2)) - square) / n
    return 1.0 if apart <= error else error / apart


class Filled(Rows):
    """Rows of others, their gaps filled when they are asked for: in the same way in every pass.

    Parameters
    ----------
    rows : ndarray or Rows
    structure : Structure
    dataset : int
        Number of the dataset.
    """

    def __init__(self, rows: np.ndarray | Rows, structure: Structure, dataset: int) -> None:
        self._rows, self._structure, self._dataset = rows, structure, dataset
        self.shape = (int(rows.shape[0]), int(rows.shape[1]))
        self.is_on_cluster = isinstance(rows, Rows) and rows.is_on_cluster

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Consecutive blocks of at most ``n_rows`` rows, as `Rows.blocks` says."""
        start = 0
        for block in iterate_blocks(self._rows, n_rows):
            yield self._structure.fill(to_numpy(block), self._dataset, start)
            start += block.shape[0]

    def accumulate(self, empty: Callable[[int], Any], n_rows: int) -> Any:
        """``empty(0)`` with all blocks added to it."""
        if not (isinstance(self._rows, Rows) and self.is_on_cluster):
            return super().accumulate(empty, n_rows)
        inside = partial(_FilledAccumulator, empty, self._structure, self._dataset)
        return self._rows.accumulate(inside, n_rows).inner


class _FilledAccumulator:
    """An accumulator that is given rows whose gaps are filled."""

    def __init__(
        self, empty: Callable[[int], Any], structure: Structure, dataset: int, start: int
    ) -> None:
        self.inner, self._structure, self._dataset = empty(start), structure, dataset
        self._next = start

    def update(self, block: Any) -> _FilledAccumulator:
        self.inner.update(self._structure.fill(to_numpy(block), self._dataset, self._next))
        self._next += block.shape[0]
        return self

    def merge(self, other: _FilledAccumulator) -> _FilledAccumulator:
        self.inner.merge(other.inner)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # sums that travel leave behind what they were made with
        return self.__dict__ | {"_structure": None}


def filled(datasets: Sequence[np.ndarray | Rows], found: Sequence[Observed]) -> list[Any]:
    """Rows of every dataset without gaps; those of small arrays are filled at once.

    Parameters
    ----------
    datasets : sequence of ndarray or Rows
    found : sequence of Observed
        What one pass said of each; the rows that it kept are let go of.

    Returns
    -------
    list of ndarray or Rows
    """
    width = found[0].mean.size
    counts = np.sum([part.n_rows - part.n_missing for part in found], axis=0)
    spread = np.sqrt(np.sum([part.energy for part in found], axis=0) / np.maximum(counts, 1))
    structure = common_structure(
        [part.chosen.rows(width) for part in found],
        np.array([part.mean for part in found]),
        np.where(spread > 0, spread, 1.0),
    )
    rows: list[Any] = []
    for i, (part, own) in enumerate(zip(datasets, found, strict=True)):
        if not own.n_missing.any():
            rows.append(part)
            continue
        new = Filled(part, structure, i)
        at_once = isinstance(part, np.ndarray) and part.size <= MAX_FILLED
        rows.append(in_memory(new) if at_once else new)
    return rows


def learnt_from(n_rows: int, n_features: int, n_datasets: int) -> np.ndarray:
    """Numbers of the rows of a dataset from which the structure is learnt: a sample, or all.

    Parameters
    ----------
    n_rows, n_features, n_datasets : int

    Returns
    -------
    ndarray of int
    """
    most = max(ROUND_BUDGET // n_features**2, int((ROUND_BUDGET / n_features) ** 0.5), MIN_ROWS)
    share = min(min(most, MAX_ROWS) // n_datasets, n_rows)
    chosen = np.random.default_rng(0).choice(n_rows, max(share, 2), replace=False)
    return np.sort(chosen)
