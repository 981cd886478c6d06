"""Contrastive ICA by a joint fit that starts from Algorithm 2, and from third cumulants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from contrica.decompositions import Decomposition, htd, spm, third_power_method
from contrica.errors import ParameterError
from contrica.moments.estimates import Cumulants, pooled
from contrica.moments.operators import (
    RankOneSum,
    TensorOperator,
    relative_norm,
)
from contrica.moments.symmetric import fix_signs, n_packed
from contrica.moments.third import ThirdTensor
from contrica.rows.threads import few_threads
from contrica.solvers.algorithm2 import Contrast
from contrica.solvers.deflation import DEFLATIONS
from contrica.solvers.joint.objective import JointFit, contrast_mask, fit_weights
from contrica.solvers.joint.search import PreferredStart, joint_search
from contrica.solvers.joint.terms import Term, Terms, as_terms
from contrica.solvers.joint.twins import warn_twins, without_twins
from contrica.solvers.joint.whitened import JointProblem
from contrica.solvers.ranks import check_ranks
from contrica.solvers.ratio import contrast_ratio

__all__ = ["algorithm_2_starts", "contrast_of", "joint_contrast", "third_starts"]


def joint_contrast(
    fore: Cumulants,
    back: Cumulants | Sequence[Cumulants],
    n_background: int,
    n_foreground: int,
    *,
    rng: np.random.Generator,
    guess: np.ndarray | None = None,
    gain_t_value: Callable[[JointFit, JointFit], float] | None = None,
    known: np.ndarray | None = None,
    problem: JointProblem | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> Contrast:
    """Contrastive ICA with all patterns fitted together, started from Algorithm 2.

    Coordinates are whitened (`JointProblem`). The starts are those of Algorithm 2 there, for three
    estimators of its Step 2, and others from third cumulants; `joint_search` does the rest. The patterns
    of the foreground change those of the background as well, which Algorithm 2 finds from the background
    alone. With several backgrounds each has weights of its own for the patterns they share.

    Parameters
    ----------
    fore : Cumulants
    back : Cumulants or sequence of Cumulants
        Of the background, or of several.
    n_background, n_foreground : int
        r and ℓ.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.
    guess : ndarray of shape (p, m), optional
        Foreground patterns found by other means, such as `contrica.solvers.subspace_ica`: a start.
    gain_t_value : callable, optional
        As of `PreferredStart`; with it the guess is a preferred start (`joint_search`).
    known : ndarray of shape (k, m), optional
        Patterns of both datasets in whitened coordinates, the background's r first: a further start,
        which spares the subspace power method.
    problem : JointProblem, optional
        The same data in whitened coordinates, where that is known.
    max_iter, tol
        As of `joint_fit`.

    Returns
    -------
    Contrast
        The background's weights are those in the first background. Patterns that lay along others are
        merged with them, with a warning, so that there may be fewer than r or ℓ.

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.moments import cumulants
    >>> from contrica.datasets import make_synthetic
    >>> from contrica.metrics import pattern_similarity
    >>> data = make_synthetic(5, random_state=0)
    >>> fore, back = cumulants(data.foreground), cumulants(data.background)
    >>> found = joint_contrast(fore, back, 5, 4, rng=np.random.default_rng(0))
    >>> pattern_similarity(found.foreground.vectors, data.B) > 0.999
    True
    """
    check_ranks(n_background, n_foreground, fore.n_features)
    backs = (back,) if isinstance(back, Cumulants) else tuple(back)
    problem = JointProblem.of(fore, *backs) if problem is None else problem
    n_dimensions = problem.whiten.shape[1]
    if n_background + n_foreground > n_packed(n_dimensions):
        raise ParameterError(
            "rank-too-large",
            f"`n_background={n_background}` and `n_foreground={n_foreground}` patterns are too many: the "
            f"data vary in {n_dimensions} of {fore.n_features} directions only, which leaves room for "
            f"{n_packed(n_dimensions)}",
            remedy="Lower one of the two.",
            parameter="n_foreground",
        )
    x = problem.tensors[0]
    if known is None:
        shared = spm(problem.background, n_background, rng=rng).vectors
    else:
        shared = known[:, :n_background]
    r = shared.shape[1]  # a tensor of lower rank has fewer
    inside = None if guess is None else problem.whiten.T @ guess[:, :n_foreground]
    starts: Iterable[np.ndarray] = chain(
        third_starts(problem, r, n_foreground, inside, rng=rng), _starts(x, shared, n_foreground)
    )
    if known is not None:
        starts = chain([_filled(problem, known, r, r + n_foreground)], starts)
    preferred = None
    if inside is not None:
        start = _filled(problem, np.column_stack([shared, inside]), r, r + n_foreground)
        if gain_t_value is None:
            starts = chain([start], starts)
        else:
            preferred = PreferredStart(start, gain_t_value)
    mask = contrast_mask(r, n_foreground, len(backs))
    with few_threads(n_dimensions):
        fit = joint_search(
            problem.terms, starts, mask, preferred=preferred, max_iter=max_iter, tol=tol
        )
    return contrast_of(fit, mask, problem, fore, backs, max_iter=max_iter, tol=tol)


def contrast_of(
    fit: JointFit,
    mask: np.ndarray,
    problem: JointProblem,
    fore: Cumulants,
    backs: Sequence[Cumulants],
    *,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> Contrast:
    """A joint fit as a contrast in the variables, every pattern once.

    Parameters
    ----------
    fit : JointFit
        Of the problem's terms, the background's patterns first.
    mask : ndarray of bool, shape (n_datasets, r + l) or (n_terms, r + l)
        Under which it was fitted.
    problem : JointProblem
    fore : Cumulants
    backs : sequence of Cumulants
    max_iter, tol
        As of `joint_fit`, for what is fitted again where two patterns are one.

    Returns
    -------
    Contrast
    """
    with few_threads(problem.whiten.shape[1]):
        fit, kept = without_twins(problem.terms, fit, mask, max_iter, tol)
    if kept.shape[1] < mask.shape[1]:
        warn_twins(mask.shape[1] - kept.shape[1])
    r = int(problem.terms.allowed(kept)[len(backs)].sum())  # fourth cumulants come first
    dewhiten = problem.dewhiten
    vectors = dewhiten @ fit.vectors
    lengths = np.linalg.norm(vectors, axis=0)
    vectors = fix_signs(vectors / lengths)
    scaled = fit.weights * np.power.outer(lengths, problem.terms.orders).T
    weights, skewness = scaled[: 1 + len(backs)], scaled[1 + len(backs) :]
    first = np.argsort(-np.abs(weights[1, :r]), kind="stable")
    last = r + np.argsort(-np.abs(weights[0, r:]), kind="stable")
    background = Decomposition(weights[1, first], vectors[:, first], fit.n_iter)
    foreground = Decomposition(weights[0, last], vectors[:, last], fit.n_iter)
    ratio = contrast_ratio(foreground.vectors, fore, pooled(backs))
    residual = relative_norm(fore.fourth - RankOneSum(weights[0], vectors), fore.fourth)
    signs = np.sign(np.sum(vectors * (dewhiten @ fit.vectors), axis=0))
    return Contrast(
        *(background, weights[0, first], foreground, ratio, residual, fit.gain),
        skewness[0, last] * signs[last] if len(skewness) else None,
    )


def algorithm_2_starts(
    problem: JointProblem, n_background: int, n_foreground: int, *, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """All patterns that Algorithm 2 finds in whitened coordinates, for three estimators of Step 2.

    Parameters
    ----------
    problem : JointProblem
    n_background, n_foreground : int
        r and ℓ.
    rng : numpy.random.Generator
        Source of the subspace power method's starts.

    Yields
    ------
    ndarray of shape (k, r + l)
        The background's patterns first.
    """
    shared = spm(problem.background, n_background, rng=rng).vectors
    yield from _starts(problem.tensors[0], shared, n_foreground)


def third_starts(
    problem: JointProblem,
    n_background: int,
    n_foreground: int,
    guess: np.ndarray | None = None,
    *,
    rng: np.random.Generator,
) -> Iterator[np.ndarray]:
    """Algorithm 2 with third cumulants, which few rows tell better than fourth ones.

    Parameters
    ----------
    problem : JointProblem
    n_background, n_foreground : int
        r and ℓ.
    guess : ndarray of shape (k, m), optional
        Foreground patterns found by other means: a second start.
    rng : numpy.random.Generator
        Source of the power method's starts.

    Yields
    ------
    ndarray of shape (k, r + l)
        The background's patterns first.
    """
    thirds = [third for third in problem.thirds if isinstance(third, ThirdTensor)]
    if len(thirds) < len(problem.tensors) or not problem.is_skewed:
        return
    if min(third.squared_norm() for third in thirds) == 0:
        return
    fore, *backs = (third * (third.squared_norm() ** -0.5) for third in thirds)
    shared = third_power_method(sum(backs[1:], backs[0]), n_background, rng=rng)
    everywhere = np.ones((1, n_background), dtype=bool)
    weights = fit_weights(Terms([Term(fore, 1.0, 0)]), shared, everywhere)[0]
    rest = fore - ThirdTensor.of_terms(weights, shared)
    yield np.column_stack([shared, third_power_method(rest, n_foreground, rng=rng)])
    if guess is not None:
        both = np.column_stack([shared, guess])
        yield _filled(problem, both, n_background, n_background + n_foreground)


def _starts(
    fore: TensorOperator, background: np.ndarray, n_foreground: int
) -> Iterator[np.ndarray]:
    """Algorithm 2 in these coordinates, by estimators of Step 2 that fail on different data."""
    rank = background.shape[1] + n_foreground
    for deflation in ("least_squares", "thin", "sequential"):
        shared = DEFLATIONS[deflation](fore, background, rank)
        rest = fore - RankOneSum(shared, background)
        yield np.column_stack([background, htd(rest, n_foreground, tie_gap=0.0).vectors])


def _filled(problem: JointProblem, vectors: np.ndarray, r: int, count: int) -> np.ndarray:
    """Unit vectors, the first r of the background; what the foreground has left makes up the number."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    missing = count - vectors.shape[1]
    if missing <= 0:
        return vectors[:, :count]
    x = problem.tensors[0]
    weights = fit_weights(as_terms([x]), vectors, np.ones((1, vectors.shape[1]), dtype=bool))
    rest = x - RankOneSum(weights[0], vectors)
    return np.column_stack([vectors, htd(rest, missing, tie_gap=0.0).vectors])
