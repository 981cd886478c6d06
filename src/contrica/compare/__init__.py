"""All contrastive methods side by side on one pair of datasets."""

from contrica.compare._methods import METHODS, compare_methods
from contrica.compare._results import Comparison, MethodResult

__all__ = ["METHODS", "Comparison", "MethodResult", "compare_methods"]
