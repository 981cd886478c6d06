"""How many patterns: eigenvalue scree, a first choice of r and ℓ, and identifiability bounds.

In population ``rank Mat(κ₄(y)) = r`` and ``rank Mat(κ₄(x)) = r + ℓ`` (paper, Appendix
`app:r_and_l`). On data one looks for where the eigenvalues stop falling fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contrica.errors import IdentifiabilityWarning, ParameterError, warn
from contrica.moments.eigen import DENSE_SIZE, eigenvalues, top_eigenpairs
from contrica.moments.estimates import Cumulants
from contrica.moments.operators import TensorOperator
from contrica.moments.symmetric import n_packed, smat, svec
from contrica.validation import check_count, check_rank

__all__ = [
    "Ranks",
    "Scree",
    "Verdict",
    "algorithm_identifiable",
    "check_ranks",
    "check_room",
    "choose_ranks",
    "dense_scree",
    "elbow",
    "joint_identifiable",
    "proportional_identifiable",
    "scree",
    "spm_identifiable",
    "tensor_identifiable",
]


# Where only Lanczos can compute eigenvalues, nobody reads a scree further down than this.
MAX_SCREE = 200


class Scree(NamedTuple):
    """Eigenvalues of both flattenings by decreasing magnitude; ``background`` may be ``None``."""

    foreground: np.ndarray
    background: np.ndarray | None


class Ranks(NamedTuple):
    """The ranks r and ℓ; ``n_foreground`` may be 0, which means that nothing was found."""

    n_background: int
    n_foreground: int


def scree(fore: Cumulants, back: Cumulants | None = None, *, n_values: int | None = None) -> Scree:
    """Eigenvalues of ``Mat(κ₄(x))`` and ``Mat(κ₄(y))`` by decreasing magnitude.

    Parameters
    ----------
    fore, back : Cumulants
    n_values : int, optional
        Compute only so many, the largest; with more than 62 variables the default is 200.

    Returns
    -------
    Scree
    """
    if n_values is None and n_packed(fore.n_features) > DENSE_SIZE:
        n_values = MAX_SCREE
    return Scree(
        eigenvalues(fore.fourth, n_values),
        None if back is None else eigenvalues(back.fourth, n_values),
    )


def dense_scree(fore: Cumulants, back: Cumulants | None) -> Scree | None:
    """The whole `scree`, where the fourth cumulants are written out and it takes a moment.

    Parameters
    ----------
    fore, back : Cumulants
        ``back=None`` means one dataset.

    Returns
    -------
    Scree or None
    """
    tensors = [fore.fourth] if back is None else [fore.fourth, back.fourth]
    small = n_packed(fore.n_features) <= DENSE_SIZE
    return scree(fore, back) if small and all(tensor.is_written_out for tensor in tensors) else None


def elbow(values: np.ndarray) -> int:
    """How many leading values come before their decrease slows down.

    The point of the curve ``√|values|`` farthest below the chord from its first to its last point.
    The root keeps one dominant eigenvalue from hiding the bend of the others.

    Examples
    --------
    >>> import numpy as np
    >>> elbow(np.array([9.0, 8.0, 7.0, 0.3, 0.2, 0.1]))
    3
    """
    sizes = np.sqrt(np.sort(np.abs(values))[::-1])
    if sizes.size < 3 or sizes[0] <= sizes[-1]:
        return sizes.size if sizes.size and sizes[0] > 0 else 0
    position = np.linspace(0.0, 1.0, sizes.size)
    height = (sizes - sizes[-1]) / (sizes[0] - sizes[-1])
    return max(int(np.argmax(1 - position - height)), 1)


def choose_ranks(
    fore: Cumulants,
    back: Cumulants | None,
    n_background: int | None = None,
    n_foreground: int | None = None,
) -> Ranks:
    """A first choice of r and ℓ from the elbows of two screes; given ranks are kept.

    ``r`` is the elbow of the background's eigenvalues, at most ``p(p−1)/2``. In population the part
    of ``Mat(κ₄(x))`` outside the column space of ``Mat(κ₄(y))`` has rank ℓ, so ``ℓ`` is the elbow
    of *its* eigenvalues, rather than the difference of two elbows, and at most what leaves the joint
    decomposition unique. If its largest eigenvalue is no
    larger than the first one that the background's elbow calls noise, the answer is ℓ = 0: nothing
    found.

    Parameters
    ----------
    fore, back : Cumulants
        ``back=None`` means one dataset: r = 0, and ℓ is the elbow of the foreground's eigenvalues.
    n_background, n_foreground : int, optional
        Ranks that are known.

    Returns
    -------
    Ranks
    """
    p, size = fore.n_features, n_packed(fore.n_features)
    most = None if size <= DENSE_SIZE else max(MAX_SCREE, (n_background or 0) + 1)
    if back is None:
        return Ranks(
            0, elbow(eigenvalues(fore.fourth, most)) if n_foreground is None else n_foreground
        )
    if n_background is not None and n_foreground is not None:
        return Ranks(n_background, n_foreground)
    pairs = top_eigenpairs(back.fourth, most)
    if n_background is None:
        # at least one term is left to the foreground
        limit = min(max(p * (p - 1) // 2, 1), size - (n_foreground or 1))
        n_background = max(min(elbow(pairs.values), limit), 1)
    if n_foreground is None:
        outside = eigenvalues(_Outside(fore.fourth, pairs.vectors[:, :n_background]), most)
        noise = np.abs(pairs.values[n_background : n_background + 1]).max(initial=0.0)
        # rounding alone must not make a pattern of a background set against itself
        found = np.abs(outside).max(initial=0.0) > noise * (1 + 1e-6)
        n_foreground = min(elbow(outside), _room(n_background, p)) if found else 0
    return Ranks(n_background, n_foreground)


def _room(n_background: int, n_features: int) -> int:
    """Foreground patterns that leave the joint decomposition unique; at least one."""
    total = min(_unique_rank_bound(n_features), n_packed(n_features))
    if n_features == 4 and n_background < 8:
        total = 7  # r + l = 8 is the exception; a ninth pattern is not worth the trap
    return max(total - n_background, 1)


class _Outside(TensorOperator):
    """``P T P``, with P the projection off the span of given eigenvectors of another tensor."""

    def __init__(self, operator: TensorOperator, vectors: np.ndarray) -> None:
        self.operator, self.vectors = operator, vectors
        self.n_features = operator.n_features

    def _project(self, packed: np.ndarray) -> np.ndarray:
        return packed - (packed @ self.vectors) @ self.vectors.T

    def apply(self, matrices: np.ndarray) -> np.ndarray:
        inside = smat(self._project(svec(matrices)))
        return smat(self._project(svec(self.operator.apply(inside))))

    def flatten(self) -> np.ndarray:
        return self._project(self._project(self.operator.flatten()).T)


@dataclass(frozen=True)
class Verdict:
    """Whether ranks are identifiable, and by which statement of which source.

    Attributes
    ----------
    identifiable : bool
        True where the statement guarantees a unique answer for generic parameters.
    statement : str
        What gave the verdict.
    bound : str
        What the statement asks for, such as ``r + l ≤ 20``.
    value : str
        What there is, such as ``r + l = 11``.
    """

    identifiable: bool
    statement: str
    bound: str
    value: str

    def __bool__(self) -> bool:
        return bool(self.identifiable)


def _quartics(p: int) -> int:
    return math.comb(p + 3, 4)


def _unique_rank_bound(p: int) -> int:
    """Largest rank below the generic one (Alexander–Hirschowitz)."""
    if p == 4:
        return 9
    bound = -(-_quartics(p) // p)
    return bound if p in (3, 5) else bound - 1


def _below_generic_rank(rank: int, n_features: int, statement: str, symbol: str) -> Verdict:
    bound = _unique_rank_bound(n_features)
    good = rank <= bound and not (n_features == 4 and rank == 8)
    exception = f" and {symbol} ≠ 8" if n_features == 4 else ""
    return Verdict(good, statement, f"{symbol} ≤ {bound}{exception}", f"{symbol} = {rank}")


def tensor_identifiable(rank: int, n_features: int) -> Verdict:
    """Is a generic tensor ``Σ_{i≤q} λ_i a_i^{⊗4}`` decomposed uniquely? (`lem:rankq`).

    It is below the rank of a generic tensor, ``⌈C(p+3, 4)/p⌉`` but for p = 3, 4, 5.

    Examples
    --------
    >>> bool(tensor_identifiable(8, 4)), bool(tensor_identifiable(9, 4))
    (False, True)
    """
    return _below_generic_rank(rank, n_features, "Lemma 4.1 (lem:rankq)", "q")


def joint_identifiable(n_background: int, n_foreground: int, n_features: int) -> Verdict:
    """Is the joint decomposition of κ₄(y) and κ₄(x) unique? (`prop:iden_cica_tensor`).

    It is where that of κ₄(x), of rank r + ℓ, is.
    """
    statement = "Proposition 4.2 (prop:iden_cica_tensor)"
    return _below_generic_rank(n_background + n_foreground, n_features, statement, "r + l")


def proportional_identifiable(n_background: int, n_foreground: int, n_features: int) -> Verdict:
    """Is the joint decomposition unique when λ′ is proportional to λ? (`prop: new identifiability`).

    Holds when ``max{⌈r/ℓ⌉/p + ℓ, r} < C(p+3, 4)/p``: weaker than what two free sets of weights need.
    """
    r, l, p = n_background, max(n_foreground, 1), n_features  # noqa: E741 - the paper's names
    # both sides times p, to stay in whole numbers
    left, right = max(-(-r // l) + l * p, r * p), _quartics(p)
    return Verdict(
        left < right,
        "Proposition 4.3 (prop: new identifiability)",
        f"max(⌈r/l⌉ + l·p, r·p) < C(p+3, 4) = {right}",
        f"the maximum is {left}",
    )


def algorithm_identifiable(n_background: int, n_foreground: int, n_features: int) -> Verdict:
    """Does Algorithm 2 recover A, λ′ and B uniquely? (`prop:iden_alg2`).

    Holds when ``r + ℓ ≤ p(p+1)/2``; for p = 4 when ``r + ℓ ≤ 9`` and neither is 8.
    """
    total = n_background + n_foreground
    statement = "Proposition 4.5 (prop:iden_alg2)"
    if n_features == 4:
        good = total <= 9 and 8 not in (n_background, n_foreground)
        value = f"r = {n_background} and l = {n_foreground}"
        return Verdict(good, statement, "r + l ≤ 9, r ≠ 8 and l ≠ 8", value)
    most = n_packed(n_features)
    return Verdict(total <= most, statement, f"r + l ≤ p(p+1)/2 = {most}", f"r + l = {total}")


def spm_identifiable(n_background: int, n_features: int) -> Verdict:
    """Can the subspace power method tell r patterns apart? It can up to ``p(p−1)/2``.

    Beyond, the span of the ``a_i a_iᵀ`` holds further squares ``x xᵀ`` besides its own.
    """
    most = n_features * (n_features - 1) // 2
    return Verdict(
        n_background <= most,
        "subspace power method (Kileel and Pereira, arXiv:1912.04007)",
        f"r ≤ p(p−1)/2 = {most}",
        f"r = {n_background}",
    )


def check_room(n_background: int, n_foreground: int, n_features: int) -> None:
    """Refuse more patterns than a flattened cumulant has room for.

    Parameters
    ----------
    n_background, n_foreground, n_features : int
        r, ℓ and p.
    """
    if n_background + n_foreground <= n_packed(n_features):
        return
    check_rank(n_background, n_features, "n_background")
    check_rank(n_foreground, n_features, "n_foreground")
    raise ParameterError(
        "rank-too-large",
        f"`n_background={n_background}` and `n_foreground={n_foreground}` together exceed "
        f"p(p+1)/2 = {n_packed(n_features)}, the rank of a flattened cumulant of "
        f"{n_features} variables",
        remedy="Lower one of them, or keep more principal components (`n_pcs`).",
        parameter="n_foreground",
    )


def check_ranks(
    n_background: int, n_foreground: int, n_features: int, *, proportional: bool = False
) -> None:
    """Refuse ranks that cannot be computed; warn of ranks that may not be unique.

    Parameters
    ----------
    n_background, n_foreground, n_features : int
        r, ℓ and p.
    proportional : bool
        Whether λ′ is proportional to λ, for which a weaker bound suffices.

    Raises
    ------
    ValueError
        If r or ℓ is below 1, or r + ℓ above ``p(p+1)/2``.

    Warns
    -----
    IdentifiabilityWarning
        Naming each statement whose bound is exceeded.
    """
    n_background = check_count("n_background", n_background)
    n_foreground = check_count("n_foreground", n_foreground)
    check_room(n_background, n_foreground, n_features)
    verdicts = (
        spm_identifiable(n_background, n_features),
        algorithm_identifiable(n_background, n_foreground, n_features),
        (proportional_identifiable if proportional else joint_identifiable)(
            n_background, n_foreground, n_features
        ),
    )
    broken = "; ".join(f"{v.statement} needs {v.bound}, but {v.value}" for v in verdicts if not v)
    if broken:
        warn(
            IdentifiabilityWarning(
                "not-unique",
                f"the patterns may not be unique: {broken}",
                remedy="Lower `n_background` or `n_foreground`.",
            )
        )
