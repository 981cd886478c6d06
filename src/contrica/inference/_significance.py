"""Is there anything new at all? The permutation null of a fitted model's data, with a p per pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from contrica.errors import DataError, GroupsError
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.inference._data import check_model, read_problem
from contrica.progress import check_verbose, steps
from contrica.rows.moving import work_on
from contrica.solvers.group_design import GroupDesign
from contrica.solvers.permutation_null import LEVEL, N_PERMUTATIONS, ContrastScree
from contrica.solvers.problem import Problem
from contrica.solvers.subspace_solver import design_of, permutation_scree
from contrica.validation import check_count, check_seed, generator

__all__ = ["Significance", "significance"]


@dataclass(frozen=True)
class Significance:
    """What permutations say of a fitted model's patterns.

    Attributes
    ----------
    p_values : ndarray of shape (n_components,)
        Of each pattern in turn; NaN beyond the first above the level, where the test ends. They never
        fall. They test that both datasets are one distribution.
    statistics : ndarray of shape (n_features,)
        Contrast ratios of all directions, the first of which the patterns are compared by.
    n_significant : int
        Directions with p at most the level; there may be more of them than patterns were kept.
    n_permutations : int
        Assignments besides the observed one.
    smallest_p : float
        What p cannot be below.
    is_complete : bool
        Whether all assignments were made, not a random part.
    unit : {"rows", "groups"}
        What was permuted.
    level : float
    """

    p_values: np.ndarray
    statistics: np.ndarray
    n_significant: int
    n_permutations: int
    smallest_p: float
    is_complete: bool
    unit: str
    level: float = LEVEL

    def __str__(self) -> str:
        """What was tested, and with what result, in words."""
        if self.n_permutations == 0:
            return "The background does not vary, so that there is nothing to permute: no p-value."
        what = "whole groups" if self.unit == "groups" else "rows"
        how = "all assignments" if self.is_complete else f"{self.n_permutations} random assignments"
        tested = self.p_values[~np.isnan(self.p_values)]
        told = "; ".join(f"pattern {i}: p = {p:.2g}" for i, p in enumerate(tested, start=1))
        return (
            f"{self.n_significant} of {self.statistics.size} directions stand out at level "
            f"{self.level:g} ({what} permuted, {how}; p cannot be below {self.smallest_p:.2g}). {told}. "
            "The test asks whether both datasets are one distribution: a background pattern of another "
            "strength denies that as well as a new pattern does. p belongs to a direction of the "
            "contrast subspace; that of a pattern, which is rotated inside it, is no smaller."
        )


def significance(
    model: Any,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    strata: Any = None,
    n_permutations: int = 199,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Significance:
    """Test whether foreground and background are one distribution, pattern by pattern.

    Membership is permuted: of rows, of whole groups, or of the halves of paired groups, within strata
    where these are given. Each dataset is taken about its mean, so that a mere shift does not count.
    Means, covariances and ρ are taken anew in every permutation; principal axes are of all rows together,
    which no permutation changes. The statistic is the largest ratio of variances, foreground over
    background with ρ added (`contrica.solvers.count_directions`), in the coordinates that the model works
    in, and ``p = (1 + exceedances) / (1 + permutations)``. For the next pattern the directions before are
    projected out of both datasets.

    This is the null by which solver "subspace" counts its patterns: with ``random_state=None`` the
    permutations are those of the fit, and no fewer, so that the number of p-values at most .05 is
    ``n_foreground_``. The k-th p belongs to the k-th direction of the contrast subspace; patterns are
    rotated inside it and have no larger ratio, so that their own p would be no smaller: the p of the
    first says that something is new, and not that the first pattern is. With solver "joint" the same
    statistic is tested in the same way; of a single pattern the t-values speak (``pattern_t_values_``),
    which also tell a new pattern from a background pattern of another strength.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    background : array-like of shape (n_background_samples, n_features), list of such, or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        As of ``fit``.
    strata : sequence of array-like of shape (n_rows,), optional
        The stratum of every row, such as its batch: of the foreground, then of each background. Rows, or
        groups, change places within a stratum only; a paired group whose halves are in two stays.
    n_permutations : int, default=199
        To make, where not all assignments are few enough to be made.
    random_state : int, Generator, RandomState or None, default=None
        Draws the permutations. ``None``: those of a fit.
    n_jobs : int or None, default=None
        Processes, as of joblib, that share the permutations, which are the same ones, with the same
        p-values. They pay where each permutation takes long: of groups, of batches of rows or of divided
        rows over a hundred dimensions or more. Few rows over very many dimensions are multiplied with for
        all permutations at a time, by the threads of BLAS in one process; and what is on a card stays in
        one process.
    verbose : bool, default=False
        Whether to show a progress bar, in a terminal or a notebook; needs tqdm.

    Returns
    -------
    Significance

    Examples
    --------
    >>> import numpy as np
    >>> from contrica import ContrastiveICA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.laplace(size=(300, 20)), rng.laplace(size=(300, 20))
    >>> X[:, 0] *= 3
    >>> model = ContrastiveICA(random_state=0).fit(X, background=Y)
    >>> significance(model, X, background=Y).p_values
    array([0.001])
    """
    check_model(model, background)
    check_count("n_permutations", n_permutations, minimum=2)
    check_seed(random_state)
    check_verbose(verbose)
    problem = read_problem(model, X, background, groups, background_groups)
    rng = np.random.default_rng(0) if random_state is None else generator(random_state)
    if random_state is None and _counted_by_null(model):
        n_permutations = max(n_permutations, N_PERMUTATIONS)
    each = partial(_in_processes, n_jobs, verbose)
    with work_on(problem.device):
        design = design_of(problem, _strata(problem, strata))
    found = permutation_scree(problem, design, rng=rng, n_permutations=n_permutations, each=each)
    every = isinstance(design, GroupDesign) and found.n_assignments == design.n_assignments
    return _record(found, len(model.components_), every)


def _in_processes(
    n_jobs: int | None, verbose: bool, call: Callable[..., Any], parts: Any, *others: Any
) -> Iterator[Any]:
    """``map(call, parts, *others)`` by joblib, in one order; how far it is, is told."""
    from joblib import Parallel, delayed, effective_n_jobs

    if effective_n_jobs(n_jobs) == 1:
        found: Iterable[Any] = map(call, parts, *others)
    else:
        calls = (delayed(call)(*own) for own in zip(parts, *others, strict=True))
        # covariances go to the processes as they are: files shared between them would be one for each
        found = Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)(calls)
    return steps(found, len(parts), "significance", "assignments", verbose=verbose)


def _counted_by_null(model: Any) -> bool:
    chosen = isinstance(model, ContrastiveICA) and model.solver_ == "subspace"
    return chosen and model.n_foreground is None


def _record(found: ContrastScree, n_patterns: int, is_complete: bool) -> Significance:
    p_values = np.full(n_patterns, np.nan)
    tested = found.p_values[:n_patterns]
    p_values[: tested.size] = tested
    made = max(found.n_assignments - 1, 0)
    return Significance(
        p_values,
        found.ratios,
        found.chosen,
        made,
        1 / found.n_assignments if found.n_assignments else float("nan"),
        is_complete,
        found.unit,
    )


def _strata(problem: Problem, strata: Any) -> Sequence[np.ndarray]:
    """Numbers of the strata of all rows, one array for each dataset."""
    if strata is None:
        return ()
    sizes = [len(rows) for rows in problem.rows]
    if any(part.n_samples != size for part, size in zip(problem.datasets, sizes, strict=True)):
        raise DataError(
            "strata-of-sample",
            "the rows worked with are a random sample",
            "strata are of all rows",
            "Raise `memory_limit` of the model, or leave `strata` out.",
            "strata",
        )
    parts = [np.asarray(part).astype(str) for part in strata]
    if [part.shape for part in parts] != [(size,) for size in sizes]:
        raise GroupsError(
            "strata-length",
            f"`strata` has {len(parts)} parts of shapes {[part.shape for part in parts]}",
            f"one for each dataset is needed, of lengths {sizes}",
            "Give the foreground's strata, then the background's: `strata=(fore, back)`.",
            "strata",
        )
    if not np.isin(parts[0], np.concatenate(parts[1:])).any():
        raise GroupsError(
            "strata-apart",
            "no stratum has rows of both foreground and background",
            "rows or groups change places within strata, where there would be nothing to permute",
            "Leave `strata` out; what is new cannot then be told from what the strata do.",
            "strata",
        )
    codes = np.unique(np.concatenate(parts), return_inverse=True)[1]
    return np.split(codes, np.cumsum(sizes)[:-1])
