"""What the page is given to draw: plain records of numbers and words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrica.explorer._state import Edit
from contrica.inference import ScoreMoments

__all__ = [
    "Association",
    "Card",
    "Colours",
    "Difference",
    "Differences",
    "FitView",
    "HowMany",
    "JobView",
    "Leading",
    "Match",
    "Nearest",
    "Points",
    "Why",
]


@dataclass(frozen=True)
class FitView:
    """A fit, as the page draws it.

    Attributes
    ----------
    key : str
        Of the fit, to ask for it again (`ViewState.fit_text`).
    n_kept : int
    scores_fore, scores_back : ndarray of shape (n_rows, n_kept)
        NaN in rows that have no value at all.
    components, filters : ndarray of shape (n_kept, n_features)
    ratios : ndarray of shape (n_kept,)
        What the patterns are ranked by, and its symbol ``ratio_symbol``, "k(b)" or "k(f)".
    p_values : ndarray of shape (n_kept,)
        Of the fit's own permutation null; NaN where it made none.
    solver, reason : str
        Which one was used, and why.
    n_foreground, n_background, dimension : int
        ℓ, r and the dimensions worked in, as they were chosen or given.
    warnings : tuple of str
    seconds : float
        That the fit took.
    model : estimator
    """

    key: str
    n_kept: int
    scores_fore: np.ndarray
    scores_back: np.ndarray
    components: np.ndarray
    filters: np.ndarray
    ratios: np.ndarray
    ratio_symbol: str
    p_values: np.ndarray
    solver: str
    reason: str
    n_foreground: int
    n_background: int
    dimension: int
    warnings: tuple[str, ...]
    seconds: float
    model: Any = None


@dataclass(frozen=True)
class Match:
    """A pattern of a new fit and the one of an old fit that is most like it.

    Attributes
    ----------
    new, old : int or None
        Numbers, from 0; ``None`` where there is none.
    cosine : float
        |cosine| of the two; 0 without a partner.
    """

    new: int | None
    old: int | None
    cosine: float


@dataclass(frozen=True)
class HowMany:
    """What the numbers of patterns can be read from.

    Attributes
    ----------
    ratios : ndarray
        Contrast ratios of all directions, decreasing; empty where the fit has none.
    null_quantile, null_mean : float
        Of the largest ratio of a permutation; NaN where nothing was permuted.
    p_values : ndarray
        Of the directions in turn, up to the first that does not stand out.
    foreground_eigenvalues, background_eigenvalues : ndarray
        Of both flattenings, by decreasing size; empty where they would take too long.
    variances : ndarray
        Of the principal components of both datasets together, decreasing, as shares of their sum.
    n_foreground, n_background, dimension : int
        As the fit has them: ℓ (of "subspace" the dimension of the contrast subspace), r, and the
        principal components worked in.
    is_automatic : dict of str to bool
        Whether the data chose each of the three.
    largest : dict of str to int
        How far each can be dragged.
    notes : tuple of str
        What is missing, and why.
    """

    ratios: np.ndarray
    null_quantile: float
    null_mean: float
    p_values: np.ndarray
    foreground_eigenvalues: np.ndarray
    background_eigenvalues: np.ndarray
    variances: np.ndarray
    n_foreground: int
    n_background: int
    dimension: int
    is_automatic: dict[str, bool]
    largest: dict[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leading:
    """A leading variable of a pattern.

    Attributes
    ----------
    name : str
    loading, effect : float
        Effect: standard deviations of the background that it moves with one of the source.
    low, high : float
        Ends of a 90 % interval of the effect; NaN until stability is known.
    """

    name: str
    loading: float
    effect: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Association:
    """How a column of metadata goes along with something, as an effect size.

    Attributes
    ----------
    column : str
    size : float
        From 0 to 1: of kinds the share of the score's variance between them (η²), of numbers the
        squared rank correlation.
    words : str
    n : int
        Rows with a value.
    """

    column: str
    size: float
    words: str
    n: int


@dataclass(frozen=True)
class Card:
    """All that is known of a pattern.

    Attributes
    ----------
    index : int
        Of the pattern in its fit, from 0.
    place : int
        On the page, from 0.
    edit : Edit
    leading : tuple of Leading
    pattern : ndarray of shape (n_features,)
        To be drawn as an image, where variables are pixels.
    ratio : float
    foreground, background : ScoreMoments
        Mean, variance, skewness and kurtosis of the score.
    p : float
        NaN where it is not known.
    p_words, stability_words : str
        What is said of each, also where it is not known.
    p_is_stale, stability_is_stale : bool
        Whether it was computed before the page was changed.
    stability : float
        NaN where it is not known.
    group_share : dict of str to float
    associations : tuple of Association
        The largest first.
    association_words : str
        What was left out, and why there is no p.
    stands_out : bool
    nearest_background : tuple of (int, float) or None
    shape : str
        What the kurtosis says, in words.
    only_shifted : bool
        Whether the pattern only shifts the mean, and is ranked last.
    """

    index: int
    place: int
    edit: Edit
    leading: tuple[Leading, ...]
    pattern: np.ndarray
    ratio: float
    foreground: ScoreMoments
    background: ScoreMoments
    p: float
    p_words: str
    p_is_stale: bool
    stability: float
    stability_words: str
    stability_is_stale: bool
    group_share: dict[str, float]
    associations: tuple[Association, ...]
    association_words: str
    stands_out: bool
    nearest_background: tuple[int, float] | None
    shape: str
    only_shifted: bool


@dataclass(frozen=True)
class Nearest:
    """What another method gives instead of a pattern.

    Attributes
    ----------
    method : str
    number : int
        Of its component, from 0.
    cosine : float
        |cosine| with the pattern.
    component : ndarray of shape (n_features,)
    words : str
    """

    method: str
    number: int
    cosine: float
    component: np.ndarray
    words: str


@dataclass(frozen=True)
class Why:
    """Why a pattern is not background.

    Attributes
    ----------
    index : int
    edges : ndarray of shape (n_bins + 1,)
    foreground, background : ndarray of shape (n_bins,)
        Densities of the score.
    groups : dict of str to ndarray of shape (n_bins,)
        Densities of the foreground's largest groups.
    share_in_background : float
        Variance of the score in the background, over that in both datasets together (each counted alike).
    nearest_background : tuple of (int, float) or None
        Number and |cosine| of the background pattern most like it.
    others : tuple of Nearest
    words : tuple of str
    """

    index: int
    edges: np.ndarray
    foreground: np.ndarray
    background: np.ndarray
    groups: dict[str, np.ndarray]
    share_in_background: float
    nearest_background: tuple[int, float] | None
    others: tuple[Nearest, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """How selected rows differ from the other rows in one variable or column.

    Attributes
    ----------
    name : str
    size : float
        Of variables and numbers: difference of the means in standard deviations, with its sign. Of kinds:
        difference of the shares.
    words : str
    """

    name: str
    size: float
    words: str


@dataclass(frozen=True)
class Differences:
    """In what selected rows differ.

    Attributes
    ----------
    n_rows, n_others : int
    variables, columns : tuple of Difference
        The largest first.
    words : str
        What was compared, and why there is no p.
    """

    n_rows: int
    n_others: int
    variables: tuple[Difference, ...]
    columns: tuple[Difference, ...]
    words: str


@dataclass(frozen=True)
class Points:
    """Rows to draw: all of them, or the same sample every time.

    Attributes
    ----------
    fore, back : ndarray of shape (n, 2)
        Scores along x and y.
    fore_rows, back_rows : ndarray of int
        Numbers of the rows in their dataset.
    fore_names, back_names : list of str
    is_thinned : bool
    words : str
        How many are drawn of how many.
    """

    fore: np.ndarray
    back: np.ndarray
    fore_rows: np.ndarray
    back_rows: np.ndarray
    fore_names: list[str]
    back_names: list[str]
    is_thinned: bool
    words: str


@dataclass(frozen=True)
class Colours:
    """What rows are coloured by.

    Attributes
    ----------
    label : str
    levels : tuple of str
        Kinds, at most ten, of which the last may be all others; empty of numbers.
    fore, back : ndarray
        Of all rows: the number of the kind, -1 without one; or a number, NaN without one.
    words : str
        What was merged or left out.
    """

    label: str
    levels: tuple[str, ...]
    fore: np.ndarray
    back: np.ndarray
    words: str = ""


@dataclass(frozen=True)
class JobView:
    """How far a computation in the background is.

    Attributes
    ----------
    id : str
    kind : {"significance", "stability"}
    fit_key : str
        Of the fit that it is about.
    status : {"waiting", "running", "done", "failed", "cancelled"}
    progress : float
        From 0 to 1.
    words : str
        Where it is, or why it ended.
    result : object
    """

    id: str
    kind: str
    fit_key: str
    status: str
    progress: float
    words: str
    result: Any = field(default=None, repr=False)

    @property
    def is_over(self) -> bool:
        """Whether it will not go on."""
        return self.status in ("done", "failed", "cancelled")
