"""Decompositions by name, for algorithms that take any of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from contrica.decompositions._foobi import foobi
from contrica.decompositions._htd import htd
from contrica.decompositions._jade import jade
from contrica.decompositions._jennrich import jennrich
from contrica.decompositions._orthogonal import orthogonal
from contrica.decompositions._result import Decomposition
from contrica.decompositions._spm import spm
from contrica.moments.operators import TensorOperator
from contrica.validation import check_choice

__all__ = ["METHODS", "decompose"]

METHODS: dict[str, Callable[..., Decomposition]] = {
    function.__name__: function for function in (spm, htd, jade, foobi, jennrich, orthogonal)
}


def decompose(
    operator: TensorOperator,
    rank: int,
    method: str,
    *,
    rng: np.random.Generator,
    **options: Any,
) -> Decomposition:
    """Decompose by the method of that name, ``T ≈ Σ_i w_i u_i^{⊗4}``.

    Parameters
    ----------
    operator : TensorOperator
    rank : int
    method : {"spm", "htd", "jade", "foobi", "jennrich", "orthogonal"}
    rng : numpy.random.Generator
        Used by those methods that are random.
    **options
        Passed on to the method.

    Returns
    -------
    Decomposition
    """
    check_choice("method", method, tuple(METHODS))
    function = METHODS[method]
    if "rng" in inspect.signature(function).parameters:
        options["rng"] = rng
    return function(operator, rank, **options)
