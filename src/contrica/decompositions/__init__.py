"""Symmetric tensor decompositions: one file per method, one signature ``f(operator, rank)``.

`fastica` alone takes rows in place of the operator, `third_power_method` a tensor of order 3.
"""

from contrica.decompositions._fastica import fastica
from contrica.decompositions._foobi import foobi
from contrica.decompositions._htd import htd, htd_error_bound
from contrica.decompositions._jade import jade
from contrica.decompositions._jennrich import jennrich
from contrica.decompositions._orthogonal import orthogonal
from contrica.decompositions._registry import METHODS, decompose
from contrica.decompositions._result import Decomposition, canonical
from contrica.decompositions._spm import spm
from contrica.decompositions._third import third_power_method

__all__ = [
    "METHODS",
    "Decomposition",
    "canonical",
    "decompose",
    "fastica",
    "foobi",
    "htd",
    "htd_error_bound",
    "jade",
    "jennrich",
    "orthogonal",
    "spm",
    "third_power_method",
]
