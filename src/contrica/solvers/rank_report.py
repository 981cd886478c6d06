"""How many patterns there are by each of three rules, which of them a fit uses, and what is unique."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contrica.errors import collected
from contrica.solvers.auto import Choice, choose_solver
from contrica.solvers.joint import JointProblem
from contrica.solvers.joint_solver import JointTask, joint_ranks
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.problem import Problem, Request
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
from contrica.solvers.selection import RankChoice, searchable
from contrica.solvers.subspace_solver import contrast_scree

__all__ = ["RankReport"]

# What "joint" and "subspace", between which a default fit chooses, count patterns by.
RULES = {"joint": "significance", "subspace": "contrast ratio"}


class RankReport(NamedTuple):
    """How many patterns a foreground and its backgrounds have.

    Attributes
    ----------
    scree : Scree
        Eigenvalues of both flattened cumulants, the backgrounds pooled.
    chosen : Ranks
        What they suggest; solver "paper" uses it.
    significant : RankChoice or None
        Ranks by which patterns of a joint fit are significant; solver "joint" uses them. ``None`` where a
        joint fit cannot be searched for: too many dimensions, or a fourth cumulant that is zero; and
        where rows come in groups.
    contrast : ContrastScree
        Contrast ratios of all directions, and how many stand out from a permutation null; solver
        "subspace" uses it.
    solver, reason : str
        The solver that a fit takes by default, "joint" or "subspace", and why.
    ranks : Ranks
        r and ℓ of that fit.
    verdicts : tuple of Verdict
        Whether the ranks that the eigenvalues suggest are identifiable, by several statements.
    n_features : int
        Dimensions that the cumulants were taken in.
    """

    scree: Scree
    chosen: Ranks
    significant: RankChoice | None
    contrast: ContrastScree
    solver: str
    reason: str
    ranks: Ranks
    verdicts: tuple[Verdict, ...]
    n_features: int

    @property
    def rule(self) -> str:
        """By which of the answers a default fit counts: "significance" or "contrast ratio"."""
        return RULES[self.solver]

    @classmethod
    def of(cls, problem: Problem, request: Request, *, rng: np.random.Generator) -> RankReport:
        """Count the patterns of a problem.

        Parameters
        ----------
        problem : Problem
            With a background.
        request : Request
            What the fit would be asked for.
        rng : numpy.random.Generator
            Source of the random starts.

        Returns
        -------
        RankReport
        """
        chosen, p = choose_ranks(problem.fore, problem.back), problem.n_features
        # what it warns of are patterns, which are not reported
        with collected():
            # the fit itself, so that what is said of it holds
            fit = choose_solver(problem, request, rng=rng)
        return cls(
            scree=scree(problem.fore, problem.back),
            chosen=chosen,
            significant=_by_significance(problem, request, fit, rng),
            contrast=_by_contrast(problem, request, fit),
            solver=fit.solver,
            reason=fit.reason,
            ranks=fit.separation.ranks,
            verdicts=(
                spm_identifiable(chosen.n_background, p),
                algorithm_identifiable(*chosen, p),
                joint_identifiable(*chosen, p),
            ),
            n_features=p,
        )


def _by_significance(
    problem: Problem, request: Request, fit: Choice, rng: np.random.Generator
) -> RankChoice | None:
    """As the fit counted, or, where it did not try because of few rows, as "joint" would."""
    if fit.separation.rank_choice is not None:
        return fit.separation.rank_choice
    if problem.is_grouped or not searchable(problem.n_features, n_datasets=len(problem.datasets)):
        return None
    if min(part.fourth.squared_norm() for part in problem.datasets) == 0:
        return None
    task = JointTask.of(problem, JointProblem.of(*problem.datasets, rows=problem.rows))
    return joint_ranks(task, request, rng=rng).choice if task.n_dimensions > 1 else None


def _by_contrast(problem: Problem, request: Request, fit: Choice) -> ContrastScree:
    found = fit.separation.scree
    return found if isinstance(found, ContrastScree) else contrast_scree(problem, request)
