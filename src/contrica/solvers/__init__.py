"""Foreground against background: the paper's algorithms, joint fit, contrast subspace, and ranks."""

from contrica.solvers.algorithm2 import Contrast, contrast
from contrica.solvers.algorithm3 import (
    BackgroundScale,
    Proportional,
    Proportionality,
    ScaleSweep,
    background_scale,
    proportional_contrast,
    proportionality_test,
    scale_sweep,
)
from contrica.solvers.deflation import DEFLATIONS, shared_weights
from contrica.solvers.joint import JointFit, JointProblem, joint_contrast, joint_fit, joint_search
from contrica.solvers.negentropy import farthest_from_gaussian
from contrica.solvers.ranks import Ranks, Scree, choose_ranks, scree
from contrica.solvers.ratio import contrast_ratio
from contrica.solvers.selection import RankChoice, choose_by_significance
from contrica.solvers.subspace import (
    Dimension,
    SubspaceFit,
    choose_dimension,
    contrast_axes,
    subspace_ica,
)
from contrica.solvers.weights import RowGroups, weight_t_values

__all__ = [
    "DEFLATIONS",
    "BackgroundScale",
    "Contrast",
    "Dimension",
    "JointFit",
    "JointProblem",
    "Proportional",
    "Proportionality",
    "RankChoice",
    "Ranks",
    "RowGroups",
    "ScaleSweep",
    "Scree",
    "SubspaceFit",
    "background_scale",
    "choose_by_significance",
    "choose_dimension",
    "choose_ranks",
    "contrast",
    "contrast_axes",
    "contrast_ratio",
    "farthest_from_gaussian",
    "joint_contrast",
    "joint_fit",
    "joint_search",
    "proportional_contrast",
    "proportionality_test",
    "scale_sweep",
    "scree",
    "shared_weights",
    "subspace_ica",
    "weight_t_values",
]
