"""What a joint fit is fitted to: cumulants of several orders and datasets, each with its denominator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

from contrica.errors import DataError
from contrica.moments.operators import PackedTensor, TensorOperator
from contrica.moments.symmetric import n_packed, pair_indices, smat, svec_outer
from contrica.moments.third import SymmetricThird, ThirdTensor
from contrica.rows.device import like, namespace, same_kind, to_numpy
from contrica.rows.moving import has_room_on_card, there

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

    def allowed(self, mask: np.ndarray, skewed: np.ndarray | None = None) -> np.ndarray:
        """Which vectors may have weight in every term.

        Parameters
        ----------
        mask : ndarray of bool, shape (n_datasets, k) or (n_terms, k)
            In every dataset, or in every term.
        skewed : ndarray of bool, shape (k,), optional
            Which vectors may have weight in third cumulants; all may by default.

        Returns
        -------
        ndarray of bool, shape (n_terms, k)
        """
        each = mask if len(mask) == len(self) else mask[self.datasets]
        return each if skewed is None else each & (skewed | (self.orders != 3)[:, None])

    @cached_property
    def members(self) -> dict[int, np.ndarray]:
        """Positions of the terms of every order."""
        return {int(order): np.flatnonzero(self.orders == order) for order in set(self.orders)}

    @cached_property
    def _stacks(self) -> dict[int, _Stack | _CardStack | None]:
        """The tensors of every order below each other, where all of one are written out."""
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
                found[own] = stack.images(vectors).reshape(own.size, *vectors.shape)
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


class _Stack:
    """Entries of tensors of one order below each other, a column for every monomial of an order less."""

    def __init__(self, entries: np.ndarray, order: int) -> None:
        self._entries, self._order = entries, order

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """The product with the monomials of every column."""
        twos = _twos(vectors)
        return self._entries @ (twos if self._order == 3 else _threes(vectors, twos))


class _CardStack:
    """As `_Stack`, on the card that a fit works on."""

    def __init__(self, entries: np.ndarray, order: int, p: int) -> None:
        self._entries = there(entries)
        xp = namespace(self._entries)
        kind = same_kind(self._entries, xp.int64)
        factors = _pairs(p) if order == 3 else (*_pairs(p), *_triples(p))
        self._factors = [xp.asarray(np.ascontiguousarray(part), **kind) for part in factors]

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """The product with the monomials of every column."""
        own = like(self._entries, vectors)
        take, (larger, smaller, *others) = namespace(own).take, self._factors
        products = take(own, larger, axis=0) * take(own, smaller, axis=0)
        if others:
            among, last = others
            products = take(products, among, axis=0) * take(own, last, axis=0)
        return to_numpy(self._entries @ products)


def _stacked(tensors: Sequence[Tensor]) -> _Stack | _CardStack | None:
    parts = []
    for tensor in tensors:
        if isinstance(tensor, PackedTensor):
            parts.append(_by_triples(tensor))
        elif isinstance(tensor, ThirdTensor):
            larger, smaller = _pairs(tensor.n_features)
            parts.append(tensor.entries[:, larger, smaller] * np.where(larger == smaller, 1.0, 2.0))
        else:
            return None
    whole, order = np.vstack(parts), tensors[0].order
    if has_room_on_card(whole.size):
        return _CardStack(whole, order, tensors[0].n_features)
    return _Stack(whole, order)


def _by_triples(tensor: PackedTensor) -> np.ndarray:
    """``T[i, j, k, l]``, columns as in `_threes`, times the number of arrangements of j, k, l."""
    p = tensor.n_features
    rows, columns, scale = pair_indices(p)
    position = np.empty((p, p), dtype=int)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    among, last = _triples(p)
    larger, smaller = (part[among] for part in _pairs(p))
    pairs, beside = position[larger, smaller], position[:, last]
    same = (larger == smaller).astype(int) + (larger == last)
    entries = tensor.flattening[beside, pairs] / scale[beside] / scale[pairs]
    return entries * np.array([6.0, 3.0, 1.0])[same]


@lru_cache(maxsize=32)
def _pairs(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of positions by the larger one, so that those up to any position come first."""
    return np.tril_indices(p)


@lru_cache(maxsize=32)
def _triples(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Of every three positions the place of the smaller two in `_pairs`, and the largest one."""
    sizes = [n_packed(largest + 1) for largest in range(p)]
    return np.concatenate([np.arange(size) for size in sizes]), np.repeat(range(p), sizes)


def _twos(vectors: np.ndarray) -> np.ndarray:
    """Products of two entries of every column, each once, in the order of `_pairs`."""
    larger, smaller = _pairs(len(vectors))
    return vectors[larger] * vectors[smaller]


def _threes(vectors: np.ndarray, twos: np.ndarray) -> np.ndarray:
    """Products of three, by the largest position: for each, products of two up to it times its entry."""
    found = np.empty((comb(len(vectors) + 2, 3), vectors.shape[1]))
    start = size = 0
    for largest, entry in enumerate(vectors, 1):
        size += largest
        np.multiply(twos[:size], entry, out=found[start : start + size])
        start += size
    return found
