"""cICA in two ways: Algorithm 2 as this package runs it, and as the paper's authors ran it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contrica.decompositions import htd
from contrica.moments.estimates import Cumulants
from contrica.moments.fourth import cumulants
from contrica.solvers.algorithm2 import cica
from contrica.solvers.ratio import contrast_ratio

__all__ = ["AUTHORS", "WAYS", "Ranked", "range_note", "ranked_contrast", "ranked_ica"]

AUTHORS = "cICA as its authors ran it"

# how Step 2 is done and how cumulants are estimated: all that differs
WAYS: dict[str, dict[str, Any]] = {
    "cICA": {"deflation": "thin", "estimate": "plugin"},
    AUTHORS: {"deflation": "sequential", "estimate": "unbiased"},
}


class Ranked(NamedTuple):
    """Patterns by decreasing contrast ratio, and what Step 2 found.

    Attributes
    ----------
    vectors : ndarray of shape (p, l)
    weights, ratio : ndarray of shape (l,)
        ν and k(b).
    background : ndarray of shape (p, r)
        The ``a_i``.
    cumulant_ratios : ndarray of shape (r,)
        ``|λ′_i / λ_i|``.
    shared_weights : ndarray of shape (r,)
        The ``λ′_i``.
    """

    vectors: np.ndarray
    weights: np.ndarray
    ratio: np.ndarray
    background: np.ndarray
    cumulant_ratios: np.ndarray
    shared_weights: np.ndarray


def ranked_contrast(
    X: np.ndarray | Cumulants,
    background: np.ndarray | Cumulants,
    n_background: int,
    n_foreground: int,
    way: str,
    seed: int,
) -> Ranked:
    """Algorithm 2 in one of the `WAYS`, patterns ranked by k(b).

    Parameters
    ----------
    X, background : ndarray of shape (n, p), or Cumulants
        In the coordinates to work in. Cumulants must be of the way's estimate.
    n_background, n_foreground : int
        r and ℓ.
    way : str
        A key of `WAYS`.
    seed : int
    """
    options = WAYS[way]
    fore, back = (
        part if isinstance(part, Cumulants) else cumulants(part, options["estimate"])
        for part in (X, background)
    )
    found = cica(
        *(fore, back, n_background, n_foreground),
        rng=np.random.default_rng(seed),
        deflation=options["deflation"],
    )
    order = np.argsort(-found.ratio, kind="stable")
    ratios = np.abs(found.shared_weights / found.background.weights)
    return Ranked(
        found.foreground.vectors[:, order],
        found.foreground.weights[order],
        found.ratio[order],
        found.background.vectors,
        ratios,
        found.shared_weights,
    )


def ranked_ica(fore: Cumulants, back: Cumulants, n_terms: int) -> np.ndarray:
    """The paper's ICA: vectors of HTD of the foreground alone, ranked by k(b), as columns."""
    vectors = htd(fore.fourth, n_terms, tie_gap=0.0).vectors
    return vectors[:, np.argsort(-contrast_ratio(vectors, fore, back), kind="stable")]


def range_note(values: np.ndarray) -> str:
    """Smallest and largest, as the paper quotes cumulant ratios."""
    return f"{np.min(values):.2g} to {np.max(values):.2g}"
