"""All patterns of all datasets fitted together."""

from contrica.solvers.joint.contrast import (
    algorithm_2_starts,
    contrast_of,
    joint_contrast,
    third_starts,
)
from contrica.solvers.joint.descent import converge, descend, joint_fit, polish
from contrica.solvers.joint.objective import (
    JointFit,
    contrast_mask,
    fit_weights,
    objective_and_gradient,
    reduced_hessian,
    removal_losses,
)
from contrica.solvers.joint.search import PreferredStart, joint_search, step_price
from contrica.solvers.joint.terms import Term, Terms, as_terms
from contrica.solvers.joint.twins import nearest_pair, without_twins
from contrica.solvers.joint.whitened import JointProblem

__all__ = [
    "JointFit",
    "JointProblem",
    "PreferredStart",
    "Term",
    "Terms",
    "algorithm_2_starts",
    "as_terms",
    "contrast_mask",
    "contrast_of",
    "converge",
    "descend",
    "fit_weights",
    "joint_contrast",
    "joint_fit",
    "joint_search",
    "nearest_pair",
    "objective_and_gradient",
    "polish",
    "reduced_hessian",
    "removal_losses",
    "step_price",
    "third_starts",
    "without_twins",
]
