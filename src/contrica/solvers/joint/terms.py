"""What a joint fit is fitted to: cumulants of several orders and datasets, each with its denominator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from contrica.errors import DataError
from contrica.moments.operators import PackedTensor, TensorOperator
from contrica.moments.symmetric import pair_indices, smat, svec_outer
from contrica.moments.third import SymmetricThird, ThirdTensor

__all__ = ["Term", "Terms", "as_terms"]

Tensor = TensorOperator | SymmetricThird


class Term(NamedTuple):
    """One tensor, what its squared residual is divided by, and whose it is.

    Attributes
    ----------
    tensor : TensorOperator or SymmetricThird
        A cumulant of order 4 or 3.
    denominator : float
    dataset : int
        Row of the mask that says which vectors it may be made of.
    """

    tensor: Tensor
    denominator: float
    dataset: int


class Terms:
    """All terms of an objective, contracted with vectors together.

    Parameters
    ----------
    terms : iterable of Term
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        self._terms = tuple(terms)
        self.tensors = [term.tensor for term in self._terms]
        self.orders = np.array([term.tensor.order for term in self._terms])
        self.denominators = np.array([term.denominator for term in self._terms])
        self.datasets = np.array([term.dataset for term in self._terms])
        self.n_features = self.tensors[0].n_features

    def __len__(self) -> int:
        return len(self._terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self._terms)

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """Of every tensor."""
        return np.array([tensor.squared_norm() for tensor in self.tensors])

    @property
    def n_datasets(self) -> int:
        """How many rows the mask needs."""
        return int(self.datasets.max()) + 1

    @cached_property
    def members(self) -> dict[int, np.ndarray]:
        """Positions of the terms of every order."""
        return {int(order): np.flatnonzero(self.orders == order) for order in set(self.orders)}

    @cached_property
    def _stacks(self) -> dict[int, np.ndarray | None]:
        """Entries of the tensors of one order below each other, where all of them are written out."""
        return {
            order: _stacked([self.tensors[t] for t in own]) for order, own in self.members.items()
        }

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """``κ(u, …, u, ·)`` of every term for every column u.

        Parameters
        ----------
        vectors : ndarray of shape (p, k)

        Returns
        -------
        ndarray of shape (n_terms, p, k)
        """
        found = np.empty((len(self), *vectors.shape))
        for order, own in self.members.items():
            stack = self._stacks[order]
            if stack is None:
                found[own] = [self.tensors[t].apply_vectors(vectors) for t in own]
            else:
                product = stack @ _monomials(vectors, order - 1)
                found[own] = product.reshape(own.size, *vectors.shape)
        return found

    def slices(self, vectors: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """``Σ_t factors[t, i] κ_t(u_i, …, u_i, ·, ·)`` for every column ``u_i``.

        Parameters
        ----------
        vectors : ndarray of shape (p, k)
        factors : ndarray of shape (n_terms, k)

        Returns
        -------
        ndarray of shape (k, p, p)
        """
        p, k = vectors.shape
        found, packed = np.zeros((k, p, p)), None
        for tensor, own in zip(self.tensors, factors, strict=True):
            if isinstance(tensor, PackedTensor):
                part = tensor.flattening @ (svec_outer(vectors) * own)
                packed = part if packed is None else packed + part
            elif isinstance(tensor, ThirdTensor):
                found += tensor.slices(vectors * own)
            else:
                found += tensor.slices(vectors) * own[:, None, None]
        return found if packed is None else found + smat(packed.T)

    def check_nonzero(self) -> None:
        """Refuse a fourth cumulant that is zero."""
        if self.squared_norms[self.orders == 4].min(initial=np.inf) == 0:
            raise DataError(
                "zero-cumulant",
                "a dataset's fourth cumulant is zero, so nothing can be fitted to it",
                remedy="Leave the dataset out.",
            )


def as_terms(tensors: Terms | Sequence[TensorOperator]) -> Terms:
    """Terms as they are; of tensors, one of every dataset, each over its own squared norm.

    Parameters
    ----------
    tensors : Terms or sequence of TensorOperator

    Returns
    -------
    Terms
    """
    if isinstance(tensors, Terms):
        return tensors
    return Terms(Term(tensor, tensor.squared_norm(), d) for d, tensor in enumerate(tensors))


def _stacked(tensors: Sequence[Tensor]) -> np.ndarray | None:
    parts = []
    for tensor in tensors:
        if isinstance(tensor, PackedTensor):
            parts.append(_by_triples(tensor))
        elif isinstance(tensor, ThirdTensor):
            rows, columns, scale = pair_indices(tensor.n_features)
            parts.append(tensor.entries[:, rows, columns] * scale**2)
        else:
            return None
    return np.vstack(parts)


def _by_triples(tensor: PackedTensor) -> np.ndarray:
    """``T[i, j, k, l]`` for j ≤ k ≤ l, times the number of arrangements of these three."""
    p = tensor.n_features
    pairs, last, count = _triples(p)
    rows, columns, scale = pair_indices(p)
    position = np.empty((p, p), dtype=int)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    beside = position[:, last]
    entries = tensor.flattening[beside, pairs] / scale[beside] / scale[pairs]
    return entries * count


@lru_cache(maxsize=32)
def _triples(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every j ≤ k ≤ l: the position of (j, k) among pairs, l, and the number of arrangements."""
    rows, columns, _ = pair_indices(p)
    pairs, last = np.nonzero(columns[:, None] <= np.arange(p))
    same = (rows == columns)[pairs].astype(int) + (columns[pairs] == last)
    return pairs, last, np.array([6.0, 3.0, 1.0])[same]


def _monomials(vectors: np.ndarray, degree: int) -> np.ndarray:
    """Products of two or three entries of every column, those with falling positions left out."""
    rows, columns, _ = pair_indices(len(vectors))
    products = vectors[rows] * vectors[columns]
    if degree == 2:
        return products
    pairs, last, _ = _triples(len(vectors))
    return products[pairs] * vectors[last]
