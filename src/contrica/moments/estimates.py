"""What is known of one dataset: mean, covariance and fourth cumulant, and how they are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contrica.moments.operators import Congruence, PackedTensor, TensorOperator
from contrica.validation import check_choice, check_n_rows

__all__ = ["Cumulants", "Estimate", "Storage", "factors", "pooled"]

Estimate = Literal["plugin", "unbiased"]


Storage = Literal["auto", "packed", "matrix-free"]


@dataclass(frozen=True)
class Cumulants:
    """First, second and fourth cumulant of one dataset.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        κ₂, division by n ("plugin") or n − 1 ("unbiased").
    fourth : TensorOperator
        κ₄.
    n_samples : int
    """

    mean: np.ndarray
    covariance: np.ndarray
    fourth: TensorOperator
    n_samples: int

    @property
    def n_features(self) -> int:
        """Number of variables, p."""
        return self.mean.shape[0]

    def projected(self, axes: np.ndarray) -> Cumulants:
        """Cumulants of ``Uᵀx``, κ₄ written out; no rows are needed."""
        return Cumulants(
            axes.T @ self.mean,
            axes.T @ self.covariance @ axes,
            PackedTensor(Congruence(self.fourth, axes).flatten(), axes.shape[1]),
            self.n_samples,
        )


def pooled(datasets: Sequence[Cumulants]) -> Cumulants:
    """One dataset's cumulants to stand for several: the plain mean of each cumulant.

    Every dataset counts the same, whatever its number of rows, and differences between their means
    are not counted as variation.

    Parameters
    ----------
    datasets : sequence of Cumulants

    Returns
    -------
    Cumulants
        With the rows of all.
    """
    if len(datasets) == 1:
        return datasets[0]
    share = 1 / len(datasets)
    fourth = datasets[0].fourth * share
    for part in datasets[1:]:
        fourth = fourth + part.fourth * share
    return Cumulants(
        np.mean([part.mean for part in datasets], axis=0),
        np.mean([part.covariance for part in datasets], axis=0),
        fourth,
        sum(part.n_samples for part in datasets),
    )


def factors(n: int, estimate: Estimate) -> tuple[float, float, float]:
    """Factors of the covariance, the fourth moment and the covariance pairings."""
    check_choice("cumulant", estimate, ("plugin", "unbiased"))
    if estimate == "plugin":
        check_n_rows(n, 2, "a fourth cumulant")
        return 1.0, 1.0, 1.0
    check_n_rows(n, 4, "an unbiased fourth cumulant", hint="Use `cumulant=plugin` instead")
    pairing = n**2 / ((n - 2) * (n - 3))
    return n / (n - 1), pairing * (n + 1) / (n - 1), pairing
