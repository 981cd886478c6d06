"""How many patterns there are, in two ways, and whether they are unique: before any fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from contrica.moments.working import Workplace
from contrica.rows.dataset import Dataset, check_same_variables
from contrica.solvers.auto import n_row_groups
from contrica.solvers.joint import JointProblem
from contrica.solvers.problem import Problem
from contrica.solvers.ranks import (
    Ranks,
    Scree,
    Verdict,
    algorithm_identifiable,
    choose_ranks,
    joint_identifiable,
    scree,
    spm_identifiable,
)
from contrica.solvers.selection import RankChoice, choose_by_significance, searchable

__all__ = ["RankReport", "report_ranks"]


class RankReport(NamedTuple):
    """How many patterns a foreground and its backgrounds have.

    Attributes
    ----------
    scree : Scree
        Eigenvalues of both flattened cumulants, the backgrounds pooled.
    chosen : Ranks
        What they suggest.
    significant : RankChoice or None
        Ranks by which patterns of a joint fit are significant; ``None`` where the dimensions are too many
        to search for one.
    verdicts : tuple of Verdict
        Whether the chosen ranks are identifiable, by several statements.
    n_features : int
        Dimensions that the cumulants were taken in.
    """

    scree: Scree
    chosen: Ranks
    significant: RankChoice | None
    verdicts: tuple[Verdict, ...]
    n_features: int


def report_ranks(
    X: Any,
    backgrounds: Sequence[Any],
    *,
    rng: np.random.Generator,
    n_pcs: int | str | None = "auto",
    cumulant: Any = "plugin",
    memory_limit: Any = None,
) -> RankReport:
    """R and ℓ of a foreground and its backgrounds, by eigenvalues and by significance.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Foreground, in any container that `ContrastiveICA` takes.
    backgrounds : sequence of such
    rng : numpy.random.Generator
        Source of the random starts.
    n_pcs, cumulant, memory_limit
        As of `contrica.ContrastiveICA`.

    Returns
    -------
    RankReport

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(6, random_state=0)
    >>> report = report_ranks(data.foreground, [data.background], rng=np.random.default_rng(0))
    >>> report.significant.n_background, report.significant.n_foreground
    (6, 5)
    """
    names = (
        ["background"]
        if len(backgrounds) == 1
        else [f"background[{i}]" for i in range(len(backgrounds))]
    )
    datasets = [
        Dataset(data, name) for data, name in zip((X, *backgrounds), ("X", *names), strict=True)
    ]
    check_same_variables(datasets)
    for part in datasets:
        part.read()
    workplace = Workplace(n_pcs, None, cumulant, memory_limit, None, "float64")
    basis = workplace.axes(datasets)
    dimensions = datasets[0].n_features if basis is None else basis.shape[1]
    taken = workplace.take(
        datasets,
        basis,
        storage="auto",
        n_groups=[n_row_groups("auto", len(part), dimensions) for part in datasets],
    )
    fore, *backs = taken.cumulants
    problem = Problem(fore, tuple(backs), tuple(taken.rows), tuple(taken.grouped))
    chosen = choose_ranks(fore, problem.back)
    p = problem.n_features
    verdicts = (
        spm_identifiable(chosen.n_background, p),
        algorithm_identifiable(*chosen, p),
        joint_identifiable(*chosen, p),
    )
    significant = _by_significance(problem, chosen, rng)
    return RankReport(scree(fore, problem.back), chosen, significant, verdicts, p)


def _by_significance(problem: Problem, start: Ranks, rng: np.random.Generator) -> RankChoice | None:
    if not searchable(problem.n_features, n_datasets=len(problem.rows)):
        return None
    whitened = JointProblem.of(*problem.datasets)
    groups = problem.row_groups(whitened.whiten)
    return choose_by_significance(whitened, groups, start, rng=rng)
