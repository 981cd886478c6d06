"""Foreground against background: the paper's algorithms, joint fit, contrast subspace, and ranks."""

from contrica.solvers.algorithm2 import Contrast, cica
from contrica.solvers.algorithm3 import (
    BackgroundScale,
    Proportional,
    ScaleSweep,
    estimate_scale,
    proportional_cica,
    scale_sweep,
)
from contrica.solvers.auto import Choice, choose_solver, solve
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.deflation import DEFLATIONS, shared_weights
from contrica.solvers.joint import JointFit, JointProblem, joint_contrast, joint_fit, joint_search
from contrica.solvers.negentropy import farthest_from_gaussian
from contrica.solvers.permutation_null import ContrastScree, choose_dimension, count_directions
from contrica.solvers.problem import Problem, Request, Separation
from contrica.solvers.proportionality import Proportionality, proportionality_test
from contrica.solvers.rank_report import RankReport
from contrica.solvers.ranks import Ranks, Scree, choose_ranks, scree
from contrica.solvers.ratio import contrast_ratio, source_ratio
from contrica.solvers.selection import RankChoice, choose_by_significance
from contrica.solvers.subspace import SubspaceFit, subspace_ica
from contrica.solvers.weights import RowGroups, weight_t_values

__all__ = [
    "DEFLATIONS",
    "BackgroundScale",
    "Choice",
    "Contrast",
    "ContrastScree",
    "JointFit",
    "JointProblem",
    "Problem",
    "Proportional",
    "Proportionality",
    "RankChoice",
    "RankReport",
    "Ranks",
    "Request",
    "RowGroups",
    "ScaleSweep",
    "Scree",
    "Separation",
    "SubspaceFit",
    "choose_by_significance",
    "choose_dimension",
    "choose_ranks",
    "choose_solver",
    "cica",
    "contrast_axes",
    "contrast_ratio",
    "count_directions",
    "estimate_scale",
    "farthest_from_gaussian",
    "joint_contrast",
    "joint_fit",
    "joint_search",
    "proportional_cica",
    "proportionality_test",
    "scale_sweep",
    "scree",
    "shared_weights",
    "solve",
    "source_ratio",
    "subspace_ica",
    "weight_t_values",
]
