"""All contrastive methods side by side on one pair of datasets."""

from __future__ import annotations

import logging
import numbers
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.metrics import silhouette_score

from contrica.compare._results import Comparison, MethodResult, text_of
from contrica.compare._rows import CommonRows
from contrica.errors import ContricaError, DataError, ParameterError, collected
from contrica.estimators import (
    Background,
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
    ProportionalContrastiveICA,
)
from contrica.estimators._background import group_labels
from contrica.labels import numbered_groups
from contrica.rows.units import SCALES
from contrica.validation import check_choice, check_count, check_dataset, generator

__all__ = ["METHODS", "compare_methods", "forget_frames"]

logger = logging.getLogger("contrica")

# Distances between all pairs of more rows than this take minutes and tell nothing more.
SILHOUETTE_ROWS = 5000


class _Method(NamedTuple):
    """How one method is called, built and asked what it chose.

    Those that ``reads`` rows make axes, units and gaps their own business, in the way they are told to;
    the others are given rows in the common axes.
    """

    name: str
    build: Callable[[int, int], Any]
    choice: Callable[[Any], str]
    reads: bool = False


def _cica(solver: str) -> Callable[[int, int], Any]:
    return lambda k, seed: ContrastiveICA(k, solver=solver, random_state=seed)


def _ranks(model: Any) -> str:
    return f"r = {model.n_background_}, l = {model.n_foreground_}"


def _dimension(model: Any) -> str:
    return f"l = {model.n_foreground_}"


def _solver(model: Any) -> str:
    return f"{model.solver_}, {(_dimension if model.solver_ == 'subspace' else _ranks)(model)}"


METHODS: dict[str, _Method] = {
    "auto": _Method("cICA", _cica("auto"), _solver, True),
    "cica": _Method("cICA (paper)", _cica("paper"), _ranks, True),
    "joint": _Method("cICA (joint)", _cica("joint"), _ranks, True),
    "subspace": _Method("cICA (subspace)", _cica("subspace"), _dimension, True),
    "proportional": _Method(
        "proportional cICA",
        lambda k, seed: ProportionalContrastiveICA(k, random_state=seed),
        lambda model: f"scale {model.background_scale_:.3g}, {_ranks(model)}",
        True,
    ),
    "cpca": _Method(
        "cPCA",
        lambda k, seed: ContrastivePCA(k, random_state=seed),
        lambda model: f"α = {model.alpha_:.3g}",
    ),
    "pcpca": _Method(
        "PCPCA",
        lambda k, seed: ProbabilisticContrastivePCA(k),
        lambda model: f"γ = {model.gamma_:.3g}, {model.gamma_fraction_:.2g} n/m",
    ),
    "gcpca": _Method(
        "gcPCA", lambda k, seed: GeneralizedContrastivePCA(k), lambda model: "no parameter"
    ),
    "ica": _Method(
        "ICA", lambda k, seed: PlainICA(k, n_pcs=None), lambda model: f"rank {model.rank_}"
    ),
    "pca": _Method("PCA", lambda k, seed: PlainPCA(k), lambda model: "no parameter"),
}


def compare_methods(
    X: Any,
    background: Any,
    *,
    labels: Any = None,
    n_components: int = 2,
    methods: Sequence[str] | None = None,
    n_pcs: int | str | None = "auto",
    scale: str = "none",
    missing: str = "error",
    groups: Any = None,
    background_groups: Any = None,
    random_state: Any = None,
) -> Comparison:
    """Fit every contrastive method, and plain ICA and PCA, to one foreground and background.

    All methods are given the same rows: gaps are filled, variables divided and principal components
    taken once. Beyond that each runs with its own defaults and without labels. Labels, where given,
    serve one purpose: afterwards, the silhouette of the foreground's scores by group is reported. It
    chooses nothing, neither a method nor a parameter, and ranking methods by it is hindsight.

    A method that fails on these data does not lose the others: its result holds the error. If all
    fail, the input is at fault and the first error is raised.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Foreground.
    background : array-like of shape (n_background_samples, n_features)
        Background, over the same variables in the same order.
    labels : array-like of shape (n_samples,), optional
        Group of each foreground row; rows without one (None, NaN or empty) stay out of the
        silhouette. Above 5000 labelled rows a random sample of 5000, the same for all methods, is
        taken.
    n_components : int, default=2
        Patterns of each method to keep, and scores that the silhouette is computed on.
    methods : sequence of str, optional
        Short names, of "auto" (`ContrastiveICA` as it is), "cica" (its solver "paper", Algorithm 2),
        "joint", "subspace" (its other solvers), "proportional" (`ProportionalContrastiveICA`), "cpca"
        (`ContrastivePCA` with automatic α), "pcpca" (`ProbabilisticContrastivePCA`), "gcpca"
        (`GeneralizedContrastivePCA`), "ica" (`PlainICA`, by hierarchical tensor decomposition) and
        "pca" (`PlainPCA`); all by default.
    n_pcs : int, "auto" or None, default="auto"
        Principal components of both datasets together that all methods work in, as in `ContrastiveICA`;
        ``None`` for all variables.
    scale : {"none", "pooled", "each"}, default="none"
        What variables are divided by, as in `ContrastiveICA`.
    missing : {"error", "impute"}, default="error"
        Whether missing values are filled, as in `ContrastiveICA`.
    groups, background_groups : array-like of shape (n_rows,), optional
        Which rows belong together, as in `ContrastiveICA.fit`; the methods that are not cICA take rows
        as independent.
    random_state : int, Generator, RandomState or None, default=None
        Seeds every random method alike, and the sample for silhouettes.

    Returns
    -------
    Comparison
        Iterates over `MethodResult`; ``comparison["cica"]`` is one of them.

    Examples
    --------
    >>> from contrica.datasets import load_digits_on_photos
    >>> data = load_digits_on_photos(400)
    >>> comparison = compare_methods(data.foreground, data.background, methods=["cpca", "pca"])
    >>> [(result.name, result.contrast_ratio.shape) for result in comparison]
    [('cPCA', (2,)), ('PCA', (2,))]
    """
    check_count("n_components", n_components)
    keys = _check_methods(methods)
    if background is None:
        raise DataError(
            "no-background",
            "`background` is None",
            "a comparison needs one",
            "Pass the rows of one.",
            "background",
        )
    labelled = group_labels(background, groups, background_groups)
    if isinstance(background, Background):
        background = background.data
    check_choice("scale", scale, SCALES)
    check_choice("missing", missing, ("error", "impute"))
    check_dataset(X, "X")
    check_dataset(background, "background")
    _check_n_pcs(n_pcs, X)
    seed = _one_seed(random_state)
    numbers, names = (None, ()) if labels is None else numbered_groups(labels, _shape(X)[0])
    rows = None if numbers is None else _silhouette_rows(numbers, seed)
    logger.info("filling, dividing and projecting the rows")
    common = CommonRows.of(X, background, n_pcs, scale, missing, labelled)
    results = []
    for i, key in enumerate(keys, start=1):
        stage = {"is_stage": True}
        logger.info("%s, method %d of %d", METHODS[key].name, i, len(keys), extra=stage)
        model = METHODS[key].build(n_components, seed)
        results.append(_run(key, model, common, numbers, rows))
    errors = [result.error for result in results if result.error is not None]
    if len(errors) == len(results):
        _raise(errors[0])
    for error in errors:
        forget_frames(error)
    return Comparison(
        tuple(results),
        numbers,
        names,
        0 if rows is None else rows.size,
        0 if numbers is None else int(np.sum(numbers >= 0)),
        common.n_dimensions,
    )


def _run(
    key: str,
    model: Any,
    common: CommonRows,
    groups: np.ndarray | None,
    rows: np.ndarray | None,
) -> MethodResult:
    """Fit and score one method; what goes wrong, or is doubtful, becomes part of the result."""
    contrast = source = scores = background_scores = silhouette = None
    error: Exception | None = None
    choice = ""
    with collected() as caught:
        start = time.perf_counter()
        try:
            scores, background_scores = common.fit(model, reads=METHODS[key].reads)
            seconds = time.perf_counter() - start
            contrast, source = model.contrast_ratio_, getattr(model, "source_ratio_", None)
            choice = METHODS[key].choice(model)
            if groups is not None:
                silhouette = float(silhouette_score(scores[rows], groups[rows]))
        except Exception as failure:  # whatever it is, the other methods go on
            seconds = time.perf_counter() - start
            contrast = source = scores = background_scores = model = None
            error = failure
    return MethodResult(
        *(key, METHODS[key].name, model, contrast, source, scores, background_scores, silhouette),
        seconds,
        choice,
        _by_text(caught if METHODS[key].reads else [*common.warnings, *caught]),
        error,
    )


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error and of all that led to it: their frames hold the data.

    Parameters
    ----------
    error : BaseException
        It is changed.
    """
    waiting: list[BaseException | None] = [error]
    done: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in done:
            done.add(id(each))
            each.__traceback__ = None
            waiting += [each.__cause__, each.__context__]


def _raise(failure: Exception) -> NoReturn:
    """What every method failed of."""
    if isinstance(failure, ContricaError):
        raise failure
    raise DataError(
        "all-failed",
        f"no method could be fitted, the first because of this: {text_of(failure).rstrip('.')}",
        remedy="Check both datasets.",
    ) from failure


def _by_text(messages: Iterable[Any]) -> tuple[Warning, ...]:
    """The warnings, each text once."""
    return tuple({str(message): message for message in messages}.values())


def _check_methods(methods: Sequence[str] | None) -> list[str]:
    if methods is None:
        return list(METHODS)
    keys = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    if not keys:
        raise ParameterError(
            "empty",
            "`methods` is empty",
            remedy=f"Name some of {', '.join(METHODS)}, or leave it out.",
            parameter="methods",
        )
    for key in keys:
        check_choice("methods", key, tuple(METHODS))
    return keys


def _check_n_pcs(n_pcs: object, X: Any) -> None:
    """Refuse what the ICA methods would each refuse while the others ran."""
    if n_pcs is None:
        return
    if isinstance(n_pcs, str):
        check_choice("n_pcs", n_pcs, ("auto",))
        return
    count, shape = check_count("n_pcs", n_pcs, minimum=2), _shape(X)
    if len(shape) == 2 and count > shape[1]:
        raise ParameterError(
            "too-large",
            f"`n_pcs={count}` is more than the {shape[1]} variables there are",
            remedy="Lower it, or use `n_pcs=auto` for the paper's rule.",
            parameter="n_pcs",
        )


def _shape(X: Any) -> tuple[int, ...]:
    return tuple(X.shape) if hasattr(X, "shape") else np.shape(X)


def _one_seed(random_state: Any) -> int:
    """One number for all methods, so that a result does not depend on which others are run."""
    rng = generator(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(rng.integers(2**31))


def _silhouette_rows(groups: np.ndarray, seed: int) -> np.ndarray:
    """Labelled rows, or a sample of them where all pairwise distances would take too long."""
    rows = np.flatnonzero(groups >= 0)
    if rows.size <= SILHOUETTE_ROWS:
        return rows
    rows = np.sort(generator(seed).choice(rows, SILHOUETTE_ROWS, replace=False))
    if not 2 <= np.unique(groups[rows]).size < rows.size:
        raise DataError(
            "groups",
            f"a sample of {SILHOUETTE_ROWS} labelled rows, which silhouettes of so many rows are "
            "computed on, does not have two groups and fewer groups than rows",
            remedy="Leave the labels out, or merge groups.",
            parameter="labels",
        )
    return rows
