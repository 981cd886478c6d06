"""What is a pattern made of? Its leading variables, and what its score does in both datasets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import ParameterError
from contrica.estimators._summary import leading_variables
from contrica.inference._data import (
    check_model,
    check_pattern,
    feature_names,
    groups_of_scores,
    source_scores,
)
from contrica.inference._stability import Stability
from contrica.rows.groups import Groups
from contrica.validation import check_choice, check_count

__all__ = [
    "Explanation",
    "Feature",
    "ScoreMoments",
    "explain",
    "explain_scores",
    "group_squares",
    "score_shares",
    "top_features",
]


class Feature(NamedTuple):
    """A variable's part in a pattern.

    Attributes
    ----------
    name : str
    loading : float
    low, high : float
        Ends of a 90 % interval, pointwise; NaN where there is none.
    """

    name: str
    loading: float
    low: float = float("nan")
    high: float = float("nan")

    @property
    def sign(self) -> str:
        """Plus or minus, as a character."""
        return "+" if self.loading >= 0 else "−"

    def __str__(self) -> str:
        """Name, loading and interval."""
        interval = "" if np.isnan(self.low) else f" [{self.low:+.3f}, {self.high:+.3f}]"
        return f"{self.name} {self.loading:+.3f}{interval}"


def top_features(
    model: Any,
    pattern: int,
    n: int = 10,
    stability: Stability | None = None,
    *,
    by: str = "background",
) -> tuple[Feature, ...]:
    """Variables that lead a pattern: of largest loading, in size, for how much they vary anyway.

    Intervals are pointwise, and of variables that were selected for their loading: the largest ones
    are likely to be a little smaller.

    Parameters
    ----------
    model : estimator of contrica
        Fitted.
    pattern : int
        From 0.
    n : int, default=10
    stability : Stability, optional
        From `stability`, for intervals.
    by : {"background", "loading"}, default="background"
        What orders them: ``effects_`` of the model, which is the loading over the variable's standard
        deviation in the background, so that what is new comes before what varies most in any case; or the
        loading itself.

    Returns
    -------
    tuple of Feature
    """
    check_count("n", n)
    check_choice("by", by, ("background", "loading"))
    model._check_fitted()
    number = check_pattern(model, pattern)
    names, loadings = feature_names(model), model.components_[number]
    bounds = np.full((loadings.size, 2), np.nan)
    if stability is not None and stability.intervals is not None:
        if stability.intervals.shape[:2] != model.components_.shape:
            raise ParameterError(
                "other-model",
                f"`stability` is of {stability.intervals.shape[0]} patterns over "
                f"{stability.intervals.shape[1]} variables",
                "it must be of this model",
                parameter="stability",
            )
        bounds = stability.intervals[number]
    order = leading_variables(model, number, by)[:n]
    return tuple(Feature(names[j], float(loadings[j]), *map(float, bounds[j])) for j in order)


class ScoreMoments(NamedTuple):
    """Moments of a score in one dataset.

    Attributes
    ----------
    mean, variance : float
    skewness, kurtosis : float
        Without units: third and fourth cumulants over powers of the variance; 0 of a Gaussian.
    """

    mean: float
    variance: float
    skewness: float
    kurtosis: float

    @classmethod
    def of(cls, scores: np.ndarray) -> ScoreMoments:
        """Of the scores of some rows.

        Parameters
        ----------
        scores : ndarray of shape (n,)

        Returns
        -------
        ScoreMoments
        """
        if not scores.size:
            return cls(*[float("nan")] * 4)
        mean = float(scores.mean())
        centred = scores - mean
        variance = float(np.mean(centred**2))
        if variance <= 0:
            return cls(mean, 0.0, 0.0, 0.0)
        unit = centred / variance**0.5
        return cls(mean, variance, float(np.mean(unit**3)), float(np.mean(unit**4) - 3))


@dataclass(frozen=True)
class Explanation:
    """What a pattern is and does.

    Attributes
    ----------
    pattern : int
        From 0.
    features : tuple of Feature
        Of largest loading.
    foreground, background : ScoreMoments
        Of the score.
    shift : float
        Difference of the score's means, in standard deviations in the background.
    ratio : float
        Variance of the score in the foreground over that in the background.
    group_share : dict of str to float
        Share of every foreground group in the score's mean square beyond the background's variance;
        empty where rows have no groups.
    nearest_background : tuple of (int, float) or None
        Number of the background pattern of largest |cosine|, from 0, and that; ``None`` without any.
    stands_out : bool
        Whether it is among the ``n_foreground_`` that do.
    background_group_share : dict of str to float
        Share of every background group in the score's mean square about the background's mean, where
        each group counts the same; empty where these rows have no groups.
    """

    pattern: int
    features: tuple[Feature, ...]
    foreground: ScoreMoments
    background: ScoreMoments
    shift: float
    ratio: float
    group_share: dict[str, float]
    nearest_background: tuple[int, float] | None
    stands_out: bool
    background_group_share: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """In words."""
        beyond = "" if self.stands_out else " (does not stand out)"
        fore, back = self.foreground, self.background
        lines = [
            f"pattern {self.pattern + 1}{beyond}: {', '.join(map(str, self.features))}",
            f"variance of the score: {fore.variance:.4g} in the foreground, {back.variance:.4g} in the "
            f"background, ratio {self.ratio:.3g}; mean shifted by {self.shift:+.2f} standard deviations",
            f"skewness {fore.skewness:+.2f} and kurtosis {fore.kurtosis:+.2f} in the foreground, "
            f"{back.skewness:+.2f} and {back.kurtosis:+.2f} in the background ({self.shape})",
        ]
        if self.group_share:
            lines.append(f"carried by {_largest(self.group_share)}")
        if self.background_group_share:
            lines.append(f"in the background most in {_largest(self.background_group_share)}")
        if self.nearest_background is not None:
            number, cosine = self.nearest_background
            lines.append(f"nearest background pattern: {number + 1}, |cosine| {cosine:.2f}")
        return "\n".join(lines)

    @property
    def shape(self) -> str:
        """What the score's kurtosis in the foreground says, in words."""
        kurtosis = self.foreground.kurtosis
        if kurtosis < -0.5:
            return "flat or with two peaks: groups of samples"
        if kurtosis > 1.0:
            return "heavy tails: few samples have most of it"
        return "near Gaussian in its tails"


def _largest(shares: dict[str, float]) -> str:
    first = sorted(shares.items(), key=lambda pair: -pair[1])[:3]
    return ", ".join(f"{name} {share:.0%}" for name, share in first)


def explain(
    model: Any,
    pattern: int,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    n_features: int = 10,
    stability: Stability | None = None,
) -> Explanation:
    """Say what a pattern is made of, and what its score does in both datasets.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    pattern : int
        From 0.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    background : array-like of shape (n_background_samples, n_features) or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        Of the foreground's rows and of the background's, each for the shares of its groups.
    n_features : int, default=10
        Variables to name.
    stability : Stability, optional
        For intervals.

    Returns
    -------
    Explanation
    """
    check_model(model, background)
    number = check_pattern(model, pattern)
    features = top_features(model, number, n_features, stability)
    scores = source_scores(model, X, background)
    own = groups_of_scores(scores, background, groups, background_groups)
    return explain_scores(
        model, number, scores.fore[:, number], scores.back[:, number], features, *own
    )


def explain_scores(
    model: Any,
    number: int,
    above: np.ndarray,
    below: np.ndarray,
    features: tuple[Feature, ...] = (),
    groups: Groups | None = None,
    background_groups: Groups | None = None,
) -> Explanation:
    """What `explain` says, of scores that are known already.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    number : int
        Of the pattern, from 0.
    above, below : ndarray of shape (n_rows,)
        Its scores in the foreground and in the background.
    features : tuple of Feature
        Variables that lead it.
    groups, background_groups : Groups, optional
        Of the rows of each dataset.

    Returns
    -------
    Explanation
    """
    fore, back = ScoreMoments.of(above), ScoreMoments.of(below)
    tiny = np.finfo(float).tiny
    shares: dict[str, float] = {}
    if groups is not None:
        parts = score_shares(above, back, groups)
        shares = dict(zip(groups.names, map(float, parts), strict=True))
    behind: dict[str, float] = {}
    if background_groups is not None:
        squares = group_squares(below, back.mean, background_groups)
        parts = squares / max(squares.sum(), tiny)
        behind = dict(zip(background_groups.names, map(float, parts), strict=True))
    known = model.background_components_
    nearest = None
    if len(known):
        cosines = np.abs(known @ model.components_[number])
        nearest = int(np.argmax(cosines)), float(cosines.max())
    return Explanation(
        number,
        features,
        fore,
        back,
        (fore.mean - back.mean) / max(back.variance, tiny) ** 0.5,
        fore.variance / max(back.variance, tiny),
        shares,
        nearest,
        number < model.n_foreground_,
        behind,
    )


def score_shares(above: np.ndarray, back: ScoreMoments, groups: Groups) -> np.ndarray:
    """What each group has of a score, beyond what the background has: each counts the same.

    Parameters
    ----------
    above : ndarray of shape (n_rows,)
        Scores of the foreground.
    back : ScoreMoments
        Of the background.
    groups : Groups
        Of the foreground's rows.

    Returns
    -------
    ndarray of shape (n_groups,)
        Of a group's mean square about the background's mean, less the background's variance, the share
        in those of all groups; zeros where no group has more.
    """
    excess = np.maximum(group_squares(above, back.mean, groups) - back.variance, 0)
    return np.asarray(excess / max(excess.sum(), np.finfo(float).tiny))


def group_squares(scores: np.ndarray, mean: float, groups: Groups) -> np.ndarray:
    """Mean square of a score in each group.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
    mean : float
        What it is about.
    groups : Groups

    Returns
    -------
    ndarray of shape (n_groups,)
    """
    sizes = np.bincount(groups.codes, minlength=len(groups.names))
    sums = np.bincount(groups.codes, (scores - mean) ** 2, len(groups.names))
    return np.asarray(sums / np.maximum(sizes, 1))
