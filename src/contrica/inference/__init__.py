"""Can I rely on a pattern? Stability, significance, what it is made of, and what speaks against it.

Everything here takes a fitted model and data, and returns a record that prints as text; the model stays
as it is.
"""

from contrica.inference._check import check
from contrica.inference._diagnose import diagnose
from contrica.inference._findings import Finding, Report
from contrica.inference._group_effects import GroupEffects, group_effects
from contrica.inference._patterns import Explanation, Feature, ScoreMoments, explain, top_features
from contrica.inference._significance import Significance, significance
from contrica.inference._stability import SplitReliability, Stability, split_reliability, stability

__all__ = [
    "Explanation",
    "Feature",
    "Finding",
    "GroupEffects",
    "Report",
    "ScoreMoments",
    "Significance",
    "SplitReliability",
    "Stability",
    "check",
    "diagnose",
    "explain",
    "group_effects",
    "significance",
    "split_reliability",
    "stability",
    "top_features",
]
