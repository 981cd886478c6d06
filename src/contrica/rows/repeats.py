"""Do rows repeat? A look at their order and their names, for those who gave no groups."""

from __future__ import annotations

import re

import numpy as np

from contrica.errors import GroupWarning, unmarked, warn
from contrica.rows.protocol import CACHED_ENTRIES

__all__ = ["hint_at_groups", "lag_correlation", "stems_of"]

# Share of the variance that neighbours, or rows of one stem, must have in common, and how many standard
# deviations that share must be from its mean in rows of random order. On real data it is .8 of mice, and
# below .2 of cells that are sorted by donor and of images that are sorted by digit.
MIN_SHARE, MIN_Z = 0.5, 5.0
# A name, and the number of a repeat behind it.
_NUMBERED = re.compile(r"^(.+?)[_.:\-\s]+\d+$")


def hint_at_groups(rows: np.ndarray, row_names: np.ndarray | None, name: str) -> bool:
    """Ask whether rows belong together: those of one stem are near-duplicates, or neighbours are alike.

    Rows of random order have no such thing, whatever their distribution. Rows that are sorted by what
    they show can have it, so that it is a question.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        All rows of a dataset in their order, or a sample of them.
    row_names : ndarray of str, shape (n,), or None
        Their names.
    name : str
        What the warning calls the dataset.

    Returns
    -------
    bool
        Whether it warned.
    """
    n = len(rows)
    threshold = max(MIN_SHARE, MIN_Z / np.sqrt(max(n, 1)))
    stems = None if row_names is None or len(row_names) != n else stems_of(row_names)
    if stems is not None:
        share = _common_share(rows, stems[1])
        if share > threshold:
            kinds = stems[0]
            _ask(
                f"rows of `{name}` whose names begin alike, such as {unmarked(kinds[0])}, have "
                f"{share:.0%} of the variance in common, and there are {len(kinds)} such beginnings"
            )
            return True
    share = lag_correlation(rows)
    if share > threshold:
        _ask(f"neighbouring rows of `{name}` are alike (lag-1 autocorrelation {share:.2f})")
        return True
    return False


def _ask(got: str) -> None:
    warn(
        GroupWarning(
            "repeated-rows",
            got,
            remedy="Do blocks of them belong together, as repeats of one animal or stretches of time do? "
            "If so, each block counts as one observation: pass them as `groups`.",
            parameter="groups",
        )
    )


def lag_correlation(rows: np.ndarray) -> float:
    """Correlation of a row with the next: of all variance together, or the mean of all coordinates.

    The smaller of the two counts: a table that is sorted by one variable has correlation in it, but its
    rows do not repeat.

    Parameters
    ----------
    rows : ndarray of shape (n, k)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> steps = np.random.default_rng(0).standard_normal((1000, 3))
    >>> lag_correlation(steps) < 0.1 < 0.9 < lag_correlation(np.cumsum(steps, axis=0))
    True
    """
    mean, (energy, along) = rows.mean(axis=0), np.zeros((2, rows.shape[1]))
    step = max(CACHED_ENTRIES // rows.shape[1], 1)
    for first in range(0, len(rows), step):
        centred = rows[first : first + step + 1] - mean  # and the row that comes next
        own = centred[:step]
        energy += np.einsum("ij,ij->j", own, own)
        along += np.einsum("ij,ij->j", centred[1:], centred[:-1])
    varies = energy > 0
    if len(rows) < 2 or not varies.any():
        return 0.0
    along, energy = along[varies], energy[varies]
    return float(min(along.sum() / energy.sum(), np.mean(along / energy)))


def stems_of(names: np.ndarray) -> tuple[list[str], np.ndarray] | None:
    """What names of rows begin with, before a number: 309 of 309_1 to 309_15.

    Parameters
    ----------
    names : ndarray of str

    Returns
    -------
    stems : list of str
    codes : ndarray of int, shape (n,)
        The stem of every row; ``None`` in place of both where names say nothing: not all end in a
        number, all begin alike (cell_1, cell_2, …), or most beginnings occur once (barcodes that end in
        -1).

    Examples
    --------
    >>> import numpy as np
    >>> stems_of(np.array(["309_1", "309_2", "311_1", "311_2"]))[0]
    ['309', '311']
    >>> stems_of(np.array(["cell_1", "cell_2"])), stems_of(np.array(["ACGT-1", "CCGT-1"]))
    (None, None)
    """
    found = [_NUMBERED.match(name) for name in names]
    if not found or not all(found):
        return None
    stems, codes, counts = np.unique(
        [each[1] for each in found if each], return_inverse=True, return_counts=True
    )
    if len(stems) < 2 or np.mean(counts >= 2) <= 0.5 or 2 * len(stems) > len(names):
        return None
    return [str(stem) for stem in stems], codes.ravel()


def _common_share(rows: np.ndarray, codes: np.ndarray) -> float:
    """One less the variance within stems over that of all rows; 0 where stems mean nothing."""
    counts = np.bincount(codes)
    sums = np.zeros((counts.size, rows.shape[1]))
    centred = rows - rows.mean(axis=0)
    np.add.at(sums, codes, centred)
    total = float(np.sum(centred**2))
    between = float(np.sum(sums**2 / counts[:, None]))
    n = len(rows)
    if total == 0 or n <= counts.size:
        return 0.0
    return 1 - (total - between) / (n - counts.size) * (n - 1) / total
