"""Cumulants in whitened coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from contrica.moments.estimates import Cumulants, pooled
from contrica.moments.operators import (
    Congruence,
    PackedTensor,
    TensorOperator,
)
from contrica.moments.projection import centred, whitening
from contrica.moments.third import SymmetricThird, ThirdCongruence, ThirdTensor
from contrica.solvers.joint.terms import Tensor, Term, Terms, as_terms

__all__ = ["JointProblem"]

# Share of a cumulant that is taken for more than noise at least: ten thousandths of the weight are left.
MIN_SHARE = 0.01
# Times its noise that a third cumulant must be, by squared norm, to be fitted: that of symmetric sources
# is up to about its noise.
MIN_SKEWED = 2.0


@dataclass(frozen=True)
class JointProblem:
    """Third and fourth cumulants of a foreground and its backgrounds in whitened coordinates.

    These are whitened by the mean of the foreground's covariance and that of the backgrounds, so
    that a fit does not depend on the units of the variables.

    Attributes
    ----------
    tensors : tuple of TensorOperator
        Fourth cumulants in whitened coordinates, the foreground's first.
    whiten, dewhiten : ndarray of shape (p, k)
        Rows times ``whiten`` are whitened; ``dewhiten`` times a vector brings it back.
    thirds : tuple of SymmetricThird
        Third cumulants, likewise; none where they are not fitted.
    noise : tuple of float
        ``E‖noise‖²`` of the fourth cumulants, and then of the third.
    """

    tensors: tuple[TensorOperator, ...]
    whiten: np.ndarray
    dewhiten: np.ndarray
    thirds: tuple[SymmetricThird, ...] = ()
    noise: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, fore: Cumulants, *backs: Cumulants, rows: Sequence[np.ndarray] | None = None
    ) -> JointProblem:
        """Whiten the cumulants of a foreground and of one or more backgrounds.

        Parameters
        ----------
        fore, *backs : Cumulants
        rows : sequence of ndarray of shape (n, p), optional
            Of every dataset: all rows, or a sample. They tell how noisy the cumulants are; without them
            fourth cumulants alone are fitted.

        Returns
        -------
        JointProblem
        """
        as_terms([part.fourth for part in (fore, *backs)]).check_nonzero()
        whiten, dewhiten = whitening((fore.covariance + pooled(backs).covariance) / 2)
        tensors = tuple(_in_coordinates(part.fourth, whiten) for part in (fore, *backs))
        thirds = [part.third for part in (fore, *backs) if part.third is not None]
        if rows is None or len(thirds) < len(tensors):
            return cls(tensors, whiten, dewhiten)
        inside = tuple(_third_in_coordinates(third, whiten) for third in thirds)
        counts = [part.n_samples for part in (fore, *backs)]
        whitened = [centred(part) @ whiten for part in rows]
        noise = [*map(_noise, whitened, tensors, counts), *map(_noise, whitened, inside, counts)]
        return cls(tensors, whiten, dewhiten, inside, tuple(noise))

    @cached_property
    def _norms(self) -> np.ndarray:
        tensors: list[Tensor] = [*self.tensors, *self.thirds]
        return np.array([tensor.squared_norm() for tensor in tensors])

    @property
    def is_skewed(self) -> bool:
        """Whether some third cumulant is clearly more than noise; those of symmetric sources are not."""
        count = len(self.tensors)
        return bool(np.any(self._norms[count:] > MIN_SKEWED * np.array(self.noise)[count:]))

    @cached_property
    def terms(self) -> Terms:
        """What a joint fit is fitted to: the fourth cumulants, the foreground's first, then the third.

        Denominators are the sampling noise over the squared share of the cumulant that is not noise. They
        have a factor by which the objective of no patterns at all is the number of datasets. Where third
        cumulants are nothing but noise, or nothing tells the noise, fourth cumulants alone are fitted,
        and denominators are their squared norms.
        """
        if not self.is_skewed:
            return as_terms(self.tensors)
        tensors: list[Tensor] = [*self.tensors, *self.thirds]
        count, norms = len(self.tensors), self._norms
        shares = np.maximum(
            1 - np.array(self.noise) / np.maximum(norms, min(self.noise)), MIN_SHARE
        )
        sizes = np.array(self.noise) / shares**2
        sizes *= np.sum(norms / sizes) / count
        whole = zip(tensors, sizes.tolist(), range(len(tensors)), strict=True)
        return Terms(Term(tensor, size, t % count) for tensor, size, t in whole)

    @property
    def background(self) -> TensorOperator:
        """κ₄ of the background; of several, the sum of each over its norm."""
        first, *others = self.tensors[1:]
        if not others:
            return first
        whole = first * (1 / np.sqrt(first.squared_norm()))
        for tensor in others:
            whole = whole + tensor * (1 / np.sqrt(tensor.squared_norm()))
        return whole


def _in_coordinates(tensor: TensorOperator, axes: np.ndarray) -> TensorOperator:
    moved = Congruence(tensor, axes)
    # written out once where the tensor is; contracted on demand where it is too large for that
    return (
        PackedTensor(moved.flatten(), axes.shape[1]) if isinstance(tensor, PackedTensor) else moved
    )


def _third_in_coordinates(tensor: SymmetricThird, axes: np.ndarray) -> SymmetricThird:
    if isinstance(tensor, ThirdTensor):
        return tensor.projected(axes)
    return ThirdCongruence(tensor, axes)


def _noise(rows: np.ndarray, tensor: Tensor, n_samples: int) -> float:
    """``(E‖x‖^{2k} − ‖κ_k‖²) / n``: the squared noise of a moment of order k, to leading order.

    ``rows`` are about their mean.
    """
    power = float(np.mean(np.einsum("ij,ij->i", rows, rows) ** tensor.order))
    # never less than a thousandth, for the few rows that are all alike
    return max(power - tensor.squared_norm(), 1e-3 * power) / n_samples
