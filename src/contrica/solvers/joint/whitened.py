"""Fourth cumulants in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrica.moments.estimates import Cumulants, pooled
from contrica.moments.operators import (
    Congruence,
    PackedTensor,
    TensorOperator,
)
from contrica.moments.projection import whitening
from contrica.solvers.joint.objective import check_nonzero

__all__ = ["JointProblem"]


@dataclass(frozen=True)
class JointProblem:
    """Fourth cumulants of a foreground and its backgrounds in whitened coordinates.

    These are whitened by the mean of the foreground's covariance and that of the backgrounds, so
    that a fit does not depend on the units of the variables.

    Attributes
    ----------
    tensors : tuple of TensorOperator
        Fourth cumulants in whitened coordinates, the foreground's first.
    whiten, dewhiten : ndarray of shape (p, k)
        Rows times ``whiten`` are whitened; ``dewhiten`` times a vector brings it back.
    """

    tensors: tuple[TensorOperator, ...]
    whiten: np.ndarray
    dewhiten: np.ndarray

    @classmethod
    def of(cls, fore: Cumulants, *backs: Cumulants) -> JointProblem:
        """Whiten the cumulants of a foreground and of one or more backgrounds."""
        check_nonzero([part.fourth for part in (fore, *backs)])
        whiten, dewhiten = whitening((fore.covariance + pooled(backs).covariance) / 2)
        tensors = tuple(_in_coordinates(part.fourth, whiten) for part in (fore, *backs))
        return cls(tensors, whiten, dewhiten)

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
