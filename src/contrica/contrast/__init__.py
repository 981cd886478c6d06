"""Algorithms 2 and 3 of the paper: patterns of a foreground that its background does not have."""

from contrica.contrast._algorithm2 import Contrast, contrast
from contrica.contrast._algorithm3 import (
    BackgroundScale,
    Proportional,
    Proportionality,
    ScaleSweep,
    background_scale,
    proportional_contrast,
    proportionality_test,
    scale_sweep,
)
from contrica.contrast._deflation import DEFLATIONS, shared_weights
from contrica.contrast._ratio import contrast_ratio

__all__ = [
    "DEFLATIONS",
    "BackgroundScale",
    "Contrast",
    "Proportional",
    "Proportionality",
    "ScaleSweep",
    "background_scale",
    "contrast",
    "contrast_ratio",
    "proportional_contrast",
    "proportionality_test",
    "scale_sweep",
    "shared_weights",
]
