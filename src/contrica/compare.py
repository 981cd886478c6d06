"""All contrastive methods side by side on one pair of datasets."""

from __future__ import annotations

import logging
import numbers
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.metrics import silhouette_score

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
from contrica.estimators._background import GroupLabels, group_labels
from contrica.labels import numbered_groups
from contrica.markup import frame, table
from contrica.moments.projection import axes_of, project_rows
from contrica.moments.symmetric import fix_signs
from contrica.rows.dataset import Dataset, check_same_variables, read_datasets
from contrica.rows.memory import memory_budget
from contrica.rows.units import SCALES, scales_of
from contrica.validation import check_choice, check_count, check_dataset, generator, warn_delicate

__all__ = [
    "METHODS",
    "Comparison",
    "MethodResult",
    "compare_methods",
]

logger = logging.getLogger("contrica")

# Distances between all pairs of more rows than this take minutes and tell nothing more.
SILHOUETTE_ROWS = 5000
GAPS = "Set `missing=impute` to fill them, or leave those rows or variables out."


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


@dataclass(frozen=True)
class MethodResult:
    """What one method found, or why it found nothing.

    Attributes
    ----------
    key, name : str
        Short name, as in ``methods=``, and the name to print.
    model : estimator or None
        Fitted; ``None``, like the arrays below, where the method failed.
    contrast_ratio : ndarray of shape (n_components,) or None
        k(b): variance along each pattern in the foreground over that in the background, whatever the
        method ranks its patterns by.
    source_ratio : ndarray of shape (n_components,) or None
        k(f): mean square of each source about the background's mean, over its variance in the background
        (`contrica.solvers.ratio.source_ratio`), which cannot be compared with k(b); ``None`` where a
        method has no filters.
    scores, background_scores : ndarray of shape (n_rows, n_components) or None
        Of the rows of both datasets.
    silhouette : float or None
        Of the foreground's scores by label; uses labels, and is ``None`` without them.
    seconds : float
        Wall time of the fit and the scores.
    choice : str
        What the method chose by itself: ranks, α, scale.
    warnings : tuple of ContricaWarning
        Each text once. Those of other packages are given as usual.
    error : Exception or None
    """

    key: str
    name: str
    model: Any
    contrast_ratio: np.ndarray | None
    source_ratio: np.ndarray | None
    scores: np.ndarray | None
    background_scores: np.ndarray | None
    silhouette: float | None
    seconds: float
    choice: str
    warnings: tuple[Warning, ...]
    error: Exception | None

    @property
    def title(self) -> str:
        """Method, choice and numbers in three short lines; a silhouette is marked as using labels."""
        if self.contrast_ratio is None:
            return f"{self.name}\nfailed"
        found = "k(b) " + ", ".join(f"{ratio:.3g}" for ratio in self.contrast_ratio[:2])
        if self.silhouette is not None:
            found += f"; silhouette {self.silhouette:.2f} (labels)"
        return f"{self.name}\n{self.choice}\n{found}"


@dataclass(frozen=True)
class Comparison:
    """Results of several methods on one pair of datasets, in the order they were run.

    Attributes
    ----------
    results : tuple of MethodResult
    groups : ndarray of shape (n_samples,) or None
        Number of each row's group, -1 for rows without a label; ``None`` without labels.
    group_names : tuple of str
    silhouette_rows : int
        Labelled rows that the silhouettes were computed on; 0 without labels.
    n_labelled : int
        Labelled rows in all; more than ``silhouette_rows`` where those are a sample.
    n_dimensions : int
        In which all methods worked: principal components of both datasets together, or all variables.
    """

    results: tuple[MethodResult, ...]
    groups: np.ndarray | None
    group_names: tuple[str, ...]
    silhouette_rows: int
    n_labelled: int
    n_dimensions: int

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, key: str) -> MethodResult:
        for result in self.results:
            if result.key == key:
                return result
        raise KeyError(f"{key!r} was not compared; there are {[r.key for r in self.results]}")

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Headings and one row per method, as they go into a csv file or a data frame.

        Returns
        -------
        columns : list of str
            ``contrast_ratio_1`` and so on are k(b) of every method, ``source_ratio_1`` and so on k(f) of
            those with filters. The silhouette's says that it uses labels; without labels it is not there.
        rows : list of list
            ``None`` where a method failed or returned fewer patterns.
        """
        names, along_patterns = _ratio_columns(self.results, "contrast_ratio")
        source_names, along_filters = _ratio_columns(self.results, "source_ratio")
        columns = ["method", *names, *source_names]
        columns += [] if self.groups is None else ["silhouette_uses_labels"]
        columns += ["seconds", "chose", "warnings", "error"]
        rows: list[list[Any]] = []
        for r, contrast, source in zip(self.results, along_patterns, along_filters, strict=True):
            row = [r.key, *contrast, *source]
            row += [] if self.groups is None else [r.silhouette]
            remarks = " | ".join(" ".join(str(warning).split()) for warning in r.warnings)
            error = None if r.error is None else str(r.error) or type(r.error).__name__
            rows.append([*row, round(r.seconds, 3), r.choice, remarks, error])
        return columns, rows

    def _repr_html_(self) -> str:
        """As a table, for a notebook: one row per method, with what was noted beside it."""
        names, along_patterns = _ratio_columns(self.results, "contrast_ratio")
        source_names, along_filters = _ratio_columns(self.results, "source_ratio")
        headings = ["method", *(f"k(b) {i + 1}" for i in range(len(names)))]
        headings += [f"k(f) {i + 1}" for i in range(len(source_names))]
        headings += [] if self.groups is None else ["silhouette (uses labels)"]
        rows = []
        for r, contrast, source in zip(self.results, along_patterns, along_filters, strict=True):
            row = [r.name, *contrast, *source]
            row += [] if self.groups is None else [r.silhouette]
            notes = [_text(r.error)] if r.error is not None else list(map(str, r.warnings))
            rows.append([*row, float(r.seconds), r.choice, " ".join(notes)])
        return frame(table([*headings, "seconds", "chose", "notes"], rows))


def _ratio_columns(
    results: Sequence[MethodResult], name: str
) -> tuple[list[str], list[list[float | None]]]:
    """Headings of one ratio and each method's cells, ``None`` where it has fewer patterns."""
    ratios = [getattr(result, name) for result in results]
    cells: list[list[float | None]] = [[] if found is None else found.tolist() for found in ratios]
    width = max(map(len, cells), default=0)
    headings = [f"{name}_{i + 1}" for i in range(width)]
    return headings, [row + [None] * (width - len(row)) for row in cells]


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
    common = _Common.of(X, background, n_pcs, scale, missing, labelled)
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


@dataclass(frozen=True)
class _Common:
    """What all methods are given: rows in common axes and units, without gaps.

    ``rows`` are those of both datasets in the axes ``basis``, or all variables where it is ``None``;
    ``warnings`` are what methods that are given them cannot see any more.
    """

    X: Any
    background: Any
    rows: tuple[Any, Any]
    basis: np.ndarray | None
    mean: np.ndarray
    names: np.ndarray | None
    scale_: np.ndarray | None
    scale: str
    missing: str
    groups: dict[str, Any]
    warnings: list[Any]

    @classmethod
    def of(
        cls,
        X: Any,
        background: Any,
        n_pcs: Any,
        scale: str,
        missing: str,
        groups: GroupLabels | None,
    ) -> _Common:
        datasets = [Dataset(X, "X"), Dataset(background, "background")]
        check_same_variables(datasets)
        labels = dict(groups.of_each(1)) if groups else {}
        for part, (name, own) in zip(datasets, labels.items(), strict=bool(labels)):
            part.group(own, name)
        read_datasets(datasets, fill=missing == "impute", remedy=GAPS)
        fore = datasets[0]
        with collected() as warned:
            warn_delicate(fore.summary, datasets[1].summary, fore.names)
        mean, scales = fore.summary.mean, scales_of(scale, [part.summary for part in datasets])
        for part, own in zip(datasets, scales or (), strict=scales is not None):
            part.divide(own)
        basis = axes_of(
            [part.rows for part in datasets],
            [part.summary for part in datasets],
            n_pcs,
            memory_budget(),
            own_means=scale == "each",
        )
        # as they are, where nothing was done to them: they know their names
        rows: Any = (X, background)
        is_same = basis is None and scales is None
        is_same &= all(part.observed is None for part in datasets)
        if basis is not None:
            rows = tuple(project_rows(part.rows, basis) for part in datasets)
        elif not is_same:
            rows = tuple(part.rows for part in datasets)
        return cls(
            *(X, background, rows, basis, mean, fore.names),
            None if scales is None else scales[0],
            *(scale, missing, labels, [] if is_same else warned),
        )

    @property
    def n_dimensions(self) -> int:
        """In which all methods work."""
        return self.mean.size if self.basis is None else self.basis.shape[1]

    def fit(self, method: _Method, model: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fit a model, and score the rows of both datasets."""
        if method.reads:
            model.set_params(
                basis=self.basis, n_pcs=None, scale=self.scale, missing=self.missing
            ).fit(self.X, background=self.background, **self.groups)
            return model.transform(self.X), model.transform(self.background)
        model.fit(self.rows[0], background=self.rows[1])
        scores = [model.transform(rows) for rows in self.rows]
        signs = self._lift(model)
        return scores[0] * signs, scores[1] * signs

    def _lift(self, model: Any) -> np.ndarray:
        """Let a model that was fitted in the common axes be one over the variables; its signs."""
        if self.rows[0] is self.X:
            return np.ones(len(model.components_))
        basis = np.eye(self.mean.size) if self.basis is None else self.basis
        found = basis @ model.components_.T
        lifted = fix_signs(found)
        signs = np.where(np.sum(found * lifted, axis=0) < 0, -1.0, 1.0)
        model.components_, model.mean_, model.scale_ = lifted.T, self.mean, self.scale_
        if hasattr(model, "loadings_"):
            model.loadings_ = basis @ model.loadings_ * signs
        if hasattr(model, "sweep_components_"):
            frames = basis @ model.sweep_components_.transpose(0, 2, 1)
            model.sweep_components_ = np.stack([fix_signs(each).T for each in frames])
        if hasattr(model, "basis_"):
            model.basis_ = self.basis
        model.n_features_in_ = self.mean.size
        if self.names is not None and all(isinstance(name, str) for name in self.names):
            model.feature_names_in_ = self.names
        return signs


def _run(
    key: str,
    model: Any,
    common: _Common,
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
            scores, background_scores = common.fit(METHODS[key], model)
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


def _text(failure: Exception) -> str:
    return str(failure) or type(failure).__name__


def _raise(failure: Exception) -> NoReturn:
    """What every method failed of."""
    if isinstance(failure, ContricaError):
        raise failure
    raise DataError(
        "all-failed",
        f"no method could be fitted, the first because of this: {_text(failure).rstrip('.')}",
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
