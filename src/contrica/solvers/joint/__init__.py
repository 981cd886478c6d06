"""All patterns of all datasets fitted together."""

from contrica.solvers.joint.contrast import algorithm_2_starts, joint_contrast
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
from contrica.solvers.joint.whitened import JointProblem

__all__ = [
    "JointFit",
    "JointProblem",
    "PreferredStart",
    "algorithm_2_starts",
    "contrast_mask",
    "converge",
    "descend",
    "fit_weights",
    "joint_contrast",
    "joint_fit",
    "joint_search",
    "objective_and_gradient",
    "polish",
    "reduced_hessian",
    "removal_losses",
    "step_price",
]
