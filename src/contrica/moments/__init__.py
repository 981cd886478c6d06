"""Sums over rows: covariances and fourth cumulants, as operators, in any coordinates, and mergeable."""

from contrica.moments.estimates import Cumulants, pooled
from contrica.moments.fourth import cumulants
from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.operators import PackedTensor, RankOneSum, TensorOperator, as_operator
from contrica.moments.packed import Moments
from contrica.moments.projection import common_basis, whitening
from contrica.moments.streaming import DataSums

__all__ = [
    "CumulantOperator",
    "Cumulants",
    "DataSums",
    "Moments",
    "PackedTensor",
    "RankOneSum",
    "TensorOperator",
    "as_operator",
    "common_basis",
    "cumulants",
    "pooled",
    "whitening",
]
