"""Would I get it again? Patterns of resampled rows or groups, matched with those of the fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from contrica.errors import ContricaError, DataError, GroupsError, MemoryBudgetError
from contrica.inference._data import Part, Study
from contrica.inference._findings import joined
from contrica.metrics import match_patterns
from contrica.progress import check_verbose, steps
from contrica.validation import check_count, check_seed, generator

__all__ = ["SplitReliability", "Stability", "split_reliability", "stability"]

logger = logging.getLogger("contrica")

# Correlation of scores from which a pattern has come back, and from which it is that of the background.
FOUND, COPY = 0.8, 0.95
# Groups of a dataset below which there are no intervals, only fits without one group.
MIN_GROUPS = 10
# Rows of the foreground by whose scores patterns are compared.
COMPARED_ROWS = 2000
# Contrast ratio up to which a pattern is as strong in the background.
NOTHING_NEW = 1.1


class Returned(NamedTuple):
    """What one refit says of every pattern of the model; NaN where it has none for it.

    ``optimism`` is by how much k(f) of the refit's patterns is larger in the rows drawn than in all rows,
    in logarithms; ``ratios`` are k(f) of the model's own patterns in the rows that were not drawn.
    """

    similarity: np.ndarray
    patterns: np.ndarray
    optimism: np.ndarray
    ratios: np.ndarray


@dataclass(frozen=True)
class Stability:
    """How patterns come back when rows or groups are drawn anew.

    Attributes
    ----------
    index : ndarray of shape (n_components,)
        Mean |correlation| of a pattern's scores with those of the pattern that it was matched with. Where
        there are too few groups, over the fits without one of them.
    n_found : ndarray of int, shape (n_components,)
        Resamples with a |correlation| of at least .8.
    n_resamples : int
    intervals : ndarray of shape (n_components, n_features, 2) or None
        90 % intervals of the loadings, pointwise: of the resamples in which the pattern returned.
        ``None`` with fewer than ten groups in a dataset, or where no resample could be fitted.
    ratio_intervals : ndarray of shape (n_components, 2) or None
        90 % intervals of k(f) along the fit's filters, less the optimism of directions fitted to the same
        rows.
    similarity : ndarray of shape (n_resamples, n_components)
    left_out : tuple of str
        Groups, where rows have some.
    left_out_similarity : ndarray of shape (n_groups, n_components)
        Of the fits without each of them; NaN where there is none.
    copies : tuple of str
        Words on every pattern that is stable but not of the foreground alone.
    unit : {"rows", "groups"}
        What was drawn.
    n_failed : int
        Resamples that could not be fitted, and groups without which nothing could be.
    """

    index: np.ndarray
    n_found: np.ndarray
    n_resamples: int
    intervals: np.ndarray | None
    ratio_intervals: np.ndarray | None
    similarity: np.ndarray
    left_out: tuple[str, ...]
    left_out_similarity: np.ndarray
    copies: tuple[str, ...]
    unit: str
    n_failed: int = 0

    @property
    def matters_most(self) -> tuple[str, ...]:
        """The group without which each pattern changes most; empty where rows have none.

        Of those without which a fit was possible: the others (`not_left_out`) may matter more.
        """
        if not self.left_out:
            return ()
        return tuple(self.left_out[i] for i in np.nanargmin(self.left_out_similarity, axis=0))

    @property
    def not_left_out(self) -> tuple[str, ...]:
        """Groups without which nothing could be fitted."""
        failed = np.isnan(self.left_out_similarity).any(axis=1)
        return tuple(self.left_out[i] for i in np.flatnonzero(failed))

    def __str__(self) -> str:
        """A line for each pattern, in words."""
        lines = []
        for i, index in enumerate(self.index):
            told = f"pattern {i + 1}: scores of fits without one group correlate {index:.2f} on average"
            if self.n_resamples:
                told = f"pattern {i + 1}: stability {index:.2f}"
                told += f", returned in {self.n_found[i]} of {self.n_resamples} resamples of {self.unit}"
            if self.ratio_intervals is not None:
                low, high = self.ratio_intervals[i]
                told += f", k(f) {low:.3g} to {high:.3g} (90 %)"
            if self.left_out:
                least = np.nanmin(self.left_out_similarity[:, i])
                told += f"; without {self.matters_most[i]}, which matters most, {least:.2f}"
            lines.append(told)
        if self.not_left_out:
            lines.append(
                f"Without {joined(self.not_left_out)} nothing could be fitted: what matters most is "
                "said of the other groups."
            )
        n_resamples_failed = self.n_failed - len(self.not_left_out)
        if n_resamples_failed:
            lines.append(f"{n_resamples_failed} resamples could not be fitted.")
        elif self.intervals is None:
            lines.append(f"Fewer than {MIN_GROUPS} groups in a dataset: no intervals.")
        return "\n".join([*lines, *self.copies])


def stability(
    model: Any,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    n_resamples: int = 100,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Stability:
    """Fit resampled rows, or groups, and say how each pattern comes back.

    Rows of each dataset are drawn with replacement; groups, where given, with all of their rows, a paired
    group with both halves. Every resample is fitted anew, with the solver, the dimensions and the ranks
    of the model but from random starts of its own, and its patterns are matched with the model's by
    optimal assignment of the |correlation| of scores, which units of the variables do not change. Where
    rows have groups, each one is also left
    out once. With fewer than ten groups in a dataset that is all that is done.

    Intervals of loadings are pointwise, about those of the fit, by the standard deviation over the
    resamples in which the pattern returned. A ratio of variances along directions fitted to the same rows
    is biased upward: by as much as those of resamples are larger in the rows drawn than in all, which is
    subtracted. The interval is about what remains, and as wide as the ratio along the fit's direction
    varies between rows that were left out, scaled to the number of all. A stable pattern need not be of
    the foreground alone: copies of a background pattern are named.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted. It stays as it is, also when this is interrupted.
    X : array-like of shape (n_samples, n_features)
        Foreground, in memory.
    background : array-like of shape (n_background_samples, n_features) or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        As of ``fit``.
    n_resamples : int, default=100
    random_state : int, Generator, RandomState or None, default=None
        Draws the resamples; what comes out does not depend on ``n_jobs``.
    n_jobs : int or None, default=None
        Processes, as of joblib. Where the model works on a GPU, one is best: rows stay there, and each
        further process has to start torch.
    verbose : bool, default=False
        Whether to show a progress bar, in a terminal or a notebook; needs tqdm.

    Returns
    -------
    Stability
    """
    check_count("n_resamples", n_resamples, minimum=2)
    check_seed(random_state)
    check_verbose(verbose)
    study = Study(model, X, background, groups, background_groups)
    rng = generator(random_state)
    seed = int(rng.integers(2**32))
    few = study.groups is not None and min(len(part.names) for part in study.groups) < MIN_GROUPS
    parts = [] if few else [_drawn(study, rng) for _ in range(n_resamples)]
    without = [
        study.of_groups([name for name in study.names if name != left]) for left in study.names
    ]
    task = _Task.of(model, study)
    found = _run(task.resample, parts, seed, n_jobs, "resamples", verbose)
    left = _run(task.resample, without, seed + 1, n_jobs, "fits without a group", verbose)
    return _summed(model, task, found, left)


def _drawn(study: Study, rng: np.random.Generator) -> Part:
    """Rows or groups drawn with replacement, as many as there are."""
    if study.groups is None:
        return Part(*(rng.integers(n, size=n) for n in (study.fore.shape[0], study.back.shape[0])))
    # paired groups, those of the foreground alone and those of the background alone, each by itself
    fore, back = (set(part.names) for part in study.groups)
    names: list[str] = []
    for kind in (fore & back, fore - back, back - fore):
        own = sorted(kind)
        names += [own[i] for i in rng.integers(len(own), size=len(own))] if own else []
    return study.of_groups(names)


class _Scored(NamedTuple):
    """Scores of all sources of a model in all rows: products with rows take longest, and are taken once.

    Attributes
    ----------
    fore, back : ndarray of shape (n, k) and (m, k)
    own_means : bool
        Whether each is about its own mean, as of datasets that are divided by their own deviations.
    """

    fore: np.ndarray
    back: np.ndarray
    own_means: bool

    @classmethod
    def of(cls, model: Any, study: Study) -> _Scored:
        fore, back = study.scores((model._source_filters(), model._source_filters(0)))
        return cls(fore, back, model.background_spreads_ is not None)

    def ratios(self, part: Part) -> np.ndarray:
        """k(f) of every source in some rows, in the scale of the model."""
        if min(part.fore.size, part.back.size) < 2:
            return np.full(self.fore.shape[1], np.nan)
        above, below = self.fore[part.fore], self.back[part.back]
        centre = (above if self.own_means else below).mean(axis=0)
        spread = np.maximum(below.var(axis=0), np.finfo(float).tiny)
        return np.asarray(np.mean((above - centre) ** 2, axis=0) / spread)


class _Compared(NamedTuple):
    """What refits are compared with: patterns, and their scores of some rows of the foreground."""

    patterns: np.ndarray
    scores: np.ndarray
    some: np.ndarray

    @classmethod
    def of(cls, model: Any, scored: _Scored) -> _Compared:
        n = len(scored.fore)
        some = np.linspace(0, n - 1, min(n, COMPARED_ROWS)).astype(int)
        return cls(model.components_, _standardised(scored.fore[some]), some)

    def pairs(self, scores: np.ndarray) -> list[tuple[int, float]]:
        """For every pattern that of a refit it is matched with, by scores of these rows."""
        return _matched(_standardised(scores), self.scores)


class _Task(NamedTuple):
    """Fits of parts, which know nothing of the fit that they are compared with."""

    study: Study
    compared: _Compared
    scored: _Scored

    @classmethod
    def of(cls, model: Any, study: Study) -> _Task:
        scored = _Scored.of(model, study)
        return cls(study, _Compared.of(model, scored), scored)

    def resample(self, part: Part, seed: Sequence[int]) -> Returned:
        """Fit a part, and match its patterns."""
        study, fitted = self.study, self.compared.patterns
        count, p = fitted.shape
        missing = np.full(count, np.nan)
        ratios = self.scored.ratios(_not_drawn(study, part))
        found = Returned(np.zeros(count), np.full((count, p), np.nan), missing.copy(), ratios)
        try:
            model = study.fit(part, seed)
        except MemoryBudgetError:  # with fewer rows there is no more room
            raise
        except (ContricaError, ValueError, np.linalg.LinAlgError) as error:
            logger.info("a resample could not be fitted: %s", error)
            return found._replace(similarity=missing)
        scored = _Scored.of(model, study)
        drawn, whole = scored.ratios(part), scored.ratios(study.everything)
        for i, (j, similarity) in enumerate(self.compared.pairs(scored.fore[self.compared.some])):
            if j < 0:
                continue
            sign = np.sign(model.components_[j] @ fitted[i]) or 1.0
            found.similarity[i] = similarity
            found.patterns[i] = sign * model.components_[j]
            if min(drawn[j], whole[j]) > 0:
                found.optimism[i] = np.log(drawn[j] / whole[j])
        return found


def _standardised(scores: np.ndarray) -> np.ndarray:
    """Of unit length about their mean, so that products are correlations."""
    scores = scores - scores.mean(axis=0)
    return scores / np.maximum(np.linalg.norm(scores, axis=0), np.finfo(float).tiny)


def _matched(others: np.ndarray, own: np.ndarray) -> list[tuple[int, float]]:
    """For every pattern the one it is matched with, or −1, and the |correlation| of their scores."""
    if others.shape[1] >= own.shape[1]:
        match = match_patterns(others, own)
        return list(zip(match.order.tolist(), match.cosines.tolist(), strict=True))
    match = match_patterns(own, others)
    found = [(-1, 0.0)] * own.shape[1]
    for j, (i, cosine) in enumerate(zip(match.order, match.cosines, strict=True)):
        found[int(i)] = (j, float(cosine))
    return found


def _not_drawn(study: Study, part: Part) -> Part:
    return Part(
        *(
            np.setdiff1d(np.arange(rows.shape[0]), own)
            for rows, own in ((study.fore, part.fore), (study.back, part.back))
        )
    )


def _run(
    call: Callable[[Part, Sequence[int]], Any],
    parts: Sequence[Part],
    seed: int,
    n_jobs: int | None,
    what: str,
    verbose: bool = False,
) -> list[Any]:
    """Every part, by joblib; the same, in one order, whatever the number of processes."""
    if not parts:
        return []
    from joblib import Parallel, delayed

    logger.info("stability: %d %s", len(parts), what)
    calls = (delayed(call)(part, [seed, i]) for i, part in enumerate(parts))
    fits = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    return list(steps(fits, len(parts), "stability", what, verbose=verbose))


def _summed(
    model: Any, task: _Task, found: Sequence[Returned], left: Sequence[Returned]
) -> Stability:
    study, count = task.study, len(model.components_)
    failed = sum(bool(np.isnan(each.similarity).any()) for each in [*found, *left])
    found = [each for each in found if not np.isnan(each.similarity).any()]
    similarity = np.array([each.similarity for each in found]).reshape(len(found), count)
    without = np.array([each.similarity for each in left]).reshape(len(left), count)
    _check_fitted_again(study, found, without)
    index = np.nanmean(similarity if len(found) else without, axis=0)
    intervals = ratios = None
    if found:
        back = similarity >= FOUND
        intervals = _intervals(model.components_, np.array([each.patterns for each in found]), back)
        ratios = _ratio_intervals(
            task.scored.ratios(study.everything),
            np.where(back, [each.optimism for each in found], np.nan),
            np.array([each.ratios for each in found]),
            _share_left(study),
        )
    return Stability(
        index,
        np.sum(similarity >= FOUND, axis=0),
        len(found),
        intervals,
        ratios,
        similarity,
        tuple(study.names),
        without,
        tuple(_copies(model, index, ratios)),
        "rows" if study.groups is None else "groups",
        failed,
    )


def _check_fitted_again(study: Study, found: Sequence[Returned], without: np.ndarray) -> None:
    if study.groups is not None and np.isnan(without).all():
        sizes = " and ".join(str(len(part.names)) for part in study.groups)
        raise GroupsError(
            "none-left-out",
            f"with {sizes} groups in foreground and background, nothing could be fitted without any one",
            "two groups or more must remain in each dataset, with rows enough for a fit",
            "Add groups, or lower `n_pcs`.",
            "groups",
        )
    if study.groups is None and not found:
        raise DataError(
            "no-resample",
            "none of the resamples could be fitted",
            "a resample has about 63 % of the rows, some of them several times",
            "Lower `n_pcs`, or add rows.",
            "X",
        )


def _share_left(study: Study) -> float:
    """Units that a draw with replacement leaves out, on average."""
    sizes = [study.fore.shape[0], study.back.shape[0]]
    if study.groups is not None:
        sizes = [len(part.names) for part in study.groups]
    return float(np.mean([(1 - 1 / size) ** size for size in sizes]))


def _intervals(fitted: np.ndarray, patterns: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Of 90 %: about the loadings of the fit, by the standard deviation of those of resamples.

    Percentiles of the resamples would be about their centre, which has the fit's error and one more.
    """
    count, p = fitted.shape
    found = np.full((count, p, 2), np.nan)
    for i, own in enumerate(fitted):
        number = int(back[:, i].sum())
        if number > 1:
            reach = student.ppf(0.95, number - 1) * patterns[back[:, i], i].std(axis=0, ddof=1)
            found[i] = np.clip([own - reach, own + reach], -1, 1).T
    return found


def _ratio_intervals(
    whole: np.ndarray, optimism: np.ndarray, ratios: np.ndarray, share: float
) -> np.ndarray:
    """Of 90 %, by logarithms: about the fit's ratio less the optimism of refits, as wide as it varies.

    Ratios are of the rows that were left out. These are a share q of all, drawn without replacement, so
    that their spread is √((1 − q)/q) times the standard error of all rows.
    """
    found = np.full((whole.size, 2), np.nan)
    for i, (own, ahead, varied) in enumerate(zip(whole, optimism.T, ratios.T, strict=True)):
        ahead, varied = ahead[~np.isnan(ahead)], np.log(varied[varied > 0])  # NaN is not above 0
        if ahead.size > 1 and varied.size > 1:
            # order statistics of rank q (n + 1), so that few resamples do not make intervals too short
            low, middle, high = np.quantile(varied, (0.05, 0.5, 0.95), method="weibull")
            reach = np.sqrt(share / (1 - share)) * (np.array([low, high]) - middle)
            found[i] = own * np.exp(reach - np.mean(ahead))
    return found


def _copies(model: Any, index: np.ndarray, ratios: np.ndarray | None) -> list[str]:
    known = model.background_components_
    found = []
    for i, pattern in enumerate(model.components_):
        cosines = np.abs(known @ pattern) if len(known) else np.zeros(1)
        ratio = model.source_ratio_[i] if ratios is None else ratios[i, 1]
        told = []
        if cosines.max() >= COPY:
            told.append(
                f"has |cosine| {cosines.max():.2f} to background pattern {np.argmax(cosines) + 1}"
            )
        if ratio <= NOTHING_NEW:
            told.append(
                f"varies no more in the foreground than in the background (k(f) {ratio:.2f})"
            )
        if told and index[i] >= FOUND:
            found.append(f"pattern {i + 1} is stable, but not new: it {' and '.join(told)}.")
    return found


@dataclass(frozen=True)
class SplitReliability:
    """Patterns of one half, judged by the other.

    Attributes
    ----------
    agreement : ndarray of shape (n_splits, n_components)
        |Correlation| of a pattern's scores with those of the pattern of half the data matched with it.
    ratios : ndarray of shape (n_splits, n_components)
        k(f) of the half that was not fitted.
    unit : {"rows", "groups"}
    """

    agreement: np.ndarray
    ratios: np.ndarray
    unit: str

    def __str__(self) -> str:
        """A line for each pattern, in words."""
        lines = []
        for i, (agreement, ratio) in enumerate(zip(self.agreement.T, self.ratios.T, strict=True)):
            lines.append(
                f"pattern {i + 1}: fitted on half of the {self.unit}, scores correlate "
                f"{_median(agreement):.2f} with those of all, and k(f) of the other half is "
                f"{_median(ratio):.3g} (medians of "
                f"{len(self.agreement)} splits)"
            )
        return "\n".join(lines)


def _median(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def split_reliability(
    model: Any,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    n_splits: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> SplitReliability:
    """Fit half of the groups, or of the rows, and score the other half.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted. It stays as it is.
    X : array-like of shape (n_samples, n_features)
        Foreground, in memory.
    background : array-like of shape (n_background_samples, n_features) or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        As of ``fit``; at least four in each dataset.
    n_splits : int, default=10
    random_state : int, Generator, RandomState or None, default=None
        Draws the halves.
    n_jobs : int or None, default=None
        Processes, as of joblib.
    verbose : bool, default=False
        Whether to show a progress bar, in a terminal or a notebook; needs tqdm.

    Returns
    -------
    SplitReliability
    """
    check_count("n_splits", n_splits)
    check_seed(random_state)
    check_verbose(verbose)
    study = Study(model, X, background, groups, background_groups)
    rng = generator(random_state)
    seed = int(rng.integers(2**32))
    parts = [_half(study, rng) for _ in range(n_splits)]
    task = _Task.of(model, study)
    found = _run(task.resample, parts, seed, n_jobs, "halves", verbose)
    return SplitReliability(
        np.array([each.similarity for each in found]),
        np.array([each.ratios for each in found]),
        "rows" if study.groups is None else "groups",
    )


def _half(study: Study, rng: np.random.Generator) -> Part:
    if study.groups is None:
        sizes = (study.fore.shape[0], study.back.shape[0])
        return Part(*(np.sort(rng.permutation(n)[: n // 2]) for n in sizes))
    fore, back = (set(part.names) for part in study.groups)
    names: list[str] = []
    for kind in (fore & back, fore - back, back - fore):
        own = sorted(kind)
        names += [own[i] for i in rng.permutation(len(own))[: (len(own) + 1) // 2]]
    return study.of_groups(names)
