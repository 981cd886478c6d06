"""What is known of one dataset: mean, covariance, κ₃ and κ₄, and how they are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from contrica.moments.operators import Congruence, PackedTensor, TensorOperator
from contrica.moments.third import SymmetricThird, ThirdCongruence, ThirdTensor
from contrica.validation import check_choice, check_n_rows

__all__ = [
    "Cumulants",
    "Estimate",
    "Storage",
    "centred_cumulants",
    "factors",
    "pooled",
    "scaled_fourth",
    "third_factor",
]

Estimate = Literal["plugin", "unbiased"]


Storage = Literal["auto", "packed", "matrix-free"]


@dataclass(frozen=True)
class Cumulants:
    """First to fourth cumulant of one dataset.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        κ₂, division by n ("plugin") or n − 1 ("unbiased").
    fourth : TensorOperator
        κ₄.
    n_samples : int
    third : SymmetricThird or None
        κ₃, where it is known.
    """

    mean: np.ndarray
    covariance: np.ndarray
    fourth: TensorOperator
    n_samples: int
    third: SymmetricThird | None = None

    @property
    def n_features(self) -> int:
        """Number of variables, p."""
        return self.mean.shape[0]

    def in_unit(self, unit: float, origin: np.ndarray) -> Cumulants:
        """Cumulants of ``unit · x + origin``, κ₄ written out where it is.

        Parameters
        ----------
        unit : float
        origin : ndarray of shape (n_features,)

        Returns
        -------
        Cumulants
        """
        third: SymmetricThird | None = None
        if self.third is not None:
            axes = unit * np.eye(self.n_features)
            third = ThirdCongruence(self.third, axes)
            if isinstance(self.third, ThirdTensor):
                third = self.third * unit**3
        return Cumulants(
            unit * self.mean + origin,
            unit**2 * self.covariance,
            scaled_fourth(self.fourth, unit**4),
            self.n_samples,
            third,
        )

    def projected(self, axes: np.ndarray) -> Cumulants:
        """Cumulants of ``Uᵀx``, κ₃ and κ₄ written out; no rows are needed."""
        return Cumulants(
            axes.T @ self.mean,
            axes.T @ self.covariance @ axes,
            PackedTensor(Congruence(self.fourth, axes).flatten(), axes.shape[1]),
            self.n_samples,
            None if self.third is None else third_inside(self.third, axes),
        )


def centred_cumulants(data: Cumulants) -> Cumulants:
    """Cumulants of the same rows about their mean, which is then zero.

    Parameters
    ----------
    data : Cumulants

    Returns
    -------
    Cumulants
    """
    return replace(data, mean=np.zeros_like(data.mean))


def scaled_fourth(fourth: TensorOperator, factor: float) -> TensorOperator:
    """A multiple of κ₄, written out where it is.

    Parameters
    ----------
    fourth : TensorOperator
    factor : float

    Returns
    -------
    TensorOperator
    """
    if isinstance(fourth, PackedTensor):
        return PackedTensor(factor * fourth.flattening, fourth.n_features)
    return fourth if factor == 1 else fourth * factor


def third_inside(third: SymmetricThird, axes: np.ndarray) -> ThirdTensor:
    """κ₃ of ``Uᵀx``, written out.

    Parameters
    ----------
    third : SymmetricThird
    axes : ndarray of shape (p, k)

    Returns
    -------
    ThirdTensor
    """
    if isinstance(third, ThirdTensor):
        return third.projected(axes)
    return ThirdTensor(ThirdCongruence(third, axes).slices(np.eye(axes.shape[1])))


def pooled(datasets: Sequence[Cumulants]) -> Cumulants:
    """One dataset's cumulants to stand for several: the plain mean of each cumulant, without κ₃.

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


def third_factor(n: int, estimate: Estimate) -> float:
    """Factor of the third central moment; 1 where too few rows are left for the unbiased one."""
    return 1.0 if estimate == "plugin" or n < 3 else n**2 / ((n - 1) * (n - 2))
