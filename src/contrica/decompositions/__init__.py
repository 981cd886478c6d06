"""Symmetric tensor decompositions: one file per method, one signature ``f(operator, rank)``."""

from contrica.decompositions._htd import htd, htd_error_bound
from contrica.decompositions._result import Decomposition, canonical
from contrica.decompositions._spm import spm

__all__ = ["Decomposition", "canonical", "htd", "htd_error_bound", "spm"]
