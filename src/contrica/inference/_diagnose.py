"""After a fit: what speaks against its patterns?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from contrica.errors import ParameterError
from contrica.inference._covariates import covariate_findings, with_rows
from contrica.inference._data import (
    SourceScores,
    check_model,
    groups_of_scores,
    source_scores,
)
from contrica.inference._findings import Finding, Report, joined, unusual
from contrica.inference._patterns import ScoreMoments, group_squares, score_shares
from contrica.rows.groups import Groups
from contrica.solvers.ranks import joint_identifiable
from contrica.validation import generator

__all__ = ["diagnose", "diagnose_scores"]

# Cosine to a background pattern from which a pattern is a copy; ratio up to which it is not new.
COPY, NOTHING_NEW = 0.95, 1.1
# Standard deviations beyond which a shift of the mean is told to be what the pattern is.
SHIFTED = 0.5
# Share of a fourth moment that few rows may have, and of a pattern that one group may.
FEW_ROWS_SHARE, GROUP_SHARE = 0.5, 0.5
# Groups of both datasets from which it is told that few of them agree.
MIN_PAIRS = 4
# Rows of a background group from which its mean square is compared, and by how many standard errors.
MIN_GROUP_ROWS, N_ERRORS = 10, 2.0


def diagnose(
    model: Any,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    covariates: Mapping[str, Any] | None = None,
    random_state: Any = 0,
) -> Report:
    """Look at a fitted model and its data, and say what speaks against its patterns.

    Whether anything was found; patterns that are copies of background patterns, or vary no more in the
    foreground; sources that are near Gaussian, and so are not unique; ranks that are not identifiable;
    rows and groups that make a pattern; choices near a tie; and covariates, such as age or batch, that go
    along with a score. Every finding says what to do.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    background : array-like of shape (n_background_samples, n_features) or Background
    groups : array-like of shape (n_samples,), optional
        Of the foreground's rows.
    background_groups : array-like of shape (n_background_samples,), optional
        Of the background's rows: says in which of its groups, of ten rows or more, a pattern is nearer to
        the foreground's strength than to the other groups', and, with ``groups``, whether groups of both
        datasets agree.
    covariates : mapping of str to array-like of shape (n_samples,), or DataFrame, optional
        Of the foreground's rows. Three or more different numbers are a number, to which a straight line
        is fitted, as are dates and times, as days; text, categories of pandas and what has two values
        are kinds. So donors that are coded as 1, 2, 3 must be given as text, or as categories: a note
        says which numbers may be such codes. What they explain is an adjusted R²: less what as many kinds
        explain by chance. A p-value is given where ``groups`` are, over the means of groups; without them
        the effect size only, since rows need not be independent. Kinds that tell all groups apart cannot
        be tested, nor what so few groups give no small p for: a note says so, and what they explain.
    random_state : int, Generator, RandomState or None, default=0
        Permutes groups' values of covariates.

    Returns
    -------
    Report
    """
    check_model(model, background)
    scores = source_scores(model, X, background)
    own, behind = groups_of_scores(scores, background, groups, background_groups)
    rng = generator(random_state)
    return diagnose_scores(model, scores, own, _named(covariates), behind, rng=rng)


def _named(covariates: Any) -> dict[Any, Any]:
    """Covariates by name, of a mapping or of a data frame."""
    if covariates is None:
        return {}
    columns = getattr(
        covariates, "columns", covariates if isinstance(covariates, Mapping) else None
    )
    if columns is None:
        raise ParameterError(
            "not-a-mapping",
            f"`covariates` is a {type(covariates).__name__}",
            "must have a name for each",
            "Pass a data frame, or a dict such as {'age': ages}.",
            "covariates",
        )
    return {name: covariates[name] for name in columns}


def diagnose_scores(
    model: Any,
    scores: SourceScores,
    own: Groups | None,
    covariates: Mapping[str, Any],
    behind: Groups | None = None,
    *,
    rng: np.random.Generator,
) -> Report:
    """What `diagnose` says, of scores that are known already.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    scores : SourceScores
    own : Groups or None
        Of the foreground's rows that have scores.
    covariates : mapping of str to array-like of shape (n_samples,)
    behind : Groups, optional
        Of the background's rows that have scores.
    rng : numpy.random.Generator
        Permutes groups' values of covariates.

    Returns
    -------
    Report
    """
    count, (above, below) = len(model.components_), scores[:2]
    own, behind = (None if each is None else with_rows(each) for each in (own, behind))
    findings = [
        *_found(model),
        *_copies(model, above, below),
        *_shapes(above),
        *_dominating(model, scores, own),
        *_background_groups(model, scores, own, behind),
        *_identifiable(model),
        *_ties(model),
        *_independence(model, own),
        *_of_covariates(scores, own, covariates, rng),
    ]
    kept = "1 pattern was kept" if count == 1 else f"{count} patterns were kept"
    out = "1 stands" if model.n_foreground_ == 1 else f"{model.n_foreground_} stand"
    about = f"{kept}, {out} out; solver {getattr(model, 'solver_', 'paper')}"
    return Report.of(findings, about)


def _found(model: Any) -> Iterator[Finding]:
    if model.n_foreground_ == 0:
        yield Finding(
            "nothing-found",
            "serious",
            "nothing stands out: these data do not show that the foreground has anything new",
            "Treat the patterns as candidates; test them on other samples.",
        )
    elif len(model.components_) > model.n_foreground_:
        yield Finding(
            "beyond",
            "careful",
            f"patterns from {model.n_foreground_ + 1} on do not stand out",
            "Read the first ones only.",
        )
    if np.nan_to_num(model.residual_) > 1:
        yield Finding(
            "poor-fit",
            "serious",
            f"the patterns leave {model.residual_:.2g} of the foreground's fourth cumulant, in norm",
            'Do not trust them; use solver "auto".',
        )


def _copies(model: Any, above: np.ndarray, below: np.ndarray) -> Iterator[Finding]:
    known = model.background_components_
    ratios = above.var(axis=0) / np.maximum(below.var(axis=0), np.finfo(float).tiny)
    shifts = np.abs(above.mean(axis=0) - below.mean(axis=0)) / np.maximum(below.std(axis=0), 1e-300)
    yield from _swapped(ratios, shifts)
    for i, pattern in enumerate(model.components_):
        cosines = np.abs(known @ pattern) if len(known) else np.zeros(1)
        if cosines.max() >= COPY:
            yield Finding(
                "copy-of-background",
                "careful",
                f"pattern {i + 1} has |cosine| {cosines.max():.2f} to background pattern "
                f"{np.argmax(cosines) + 1}: it is one of the background's, of another strength",
                "Do not call it new.",
            )
        elif ratios[i] <= NOTHING_NEW:
            yield Finding(
                "not-new",
                "careful",
                f"the score of pattern {i + 1} varies {ratios[i]:.2f} times as much in the foreground as "
                f"in the background, and its mean is shifted by {shifts[i]:.2f} standard deviations",
                "Call it a shift of the mean, which every batch has; compare means of rows or groups "
                "that were not fitted."
                if shifts[i] > SHIFTED
                else "Do not call it new.",
            )


def _swapped(ratios: np.ndarray, shifts: np.ndarray) -> Iterator[Finding]:
    """Ask it where every pattern varies less: in earnest only if not all of them are shifted.

    New rows that are alike make a pattern that is shifted and narrow, which is no sign of it.
    """
    if (ratios >= 1 / NOTHING_NEW).any():
        return
    if (shifts <= SHIFTED).any():
        yield Finding(
            "swapped",
            "serious",
            "every pattern varies less in the foreground than in the background",
            "Are foreground and background swapped, or on different scales?",
        )
    else:
        yield Finding(
            "swapped",
            "careful",
            "every pattern varies less in the foreground than in the background, and its mean is shifted",
            "Rows that are alike and elsewhere look so. If datasets are swapped, `check` says so by all "
            "variables.",
        )


def _shapes(above: np.ndarray) -> Iterator[Finding]:
    n = len(above)
    moments = [ScoreMoments.of(scores) for scores in above.T]
    gaussian = [
        i + 1
        for i, each in enumerate(moments)
        if abs(each.kurtosis) < 2 * (24 / n) ** 0.5 and abs(each.skewness) < 2 * (6 / n) ** 0.5
    ]
    if gaussian:
        plural = len(gaussian) > 1
        yield Finding(
            "near-gaussian",
            "careful",
            f"{'scores' if plural else 'the score'} of pattern{'s' if plural else ''} {joined(gaussian)} "
            "cannot be told from Gaussian",
            "Any rotation among several Gaussian sources fits as well: read the subspace they span, not "
            "each."
            if plural
            else "Its direction rests on variances alone.",
        )


def _dominating(model: Any, found: SourceScores, groups: Groups | None) -> Iterator[Finding]:
    n = len(found.fore)
    for i, scores in enumerate(found.fore.T):
        powers = (scores - scores.mean()) ** 4
        few = unusual(powers, FEW_ROWS_SHARE)
        if n > 50 and few.size <= max(n // 200, 1):
            yield Finding(
                "rows-dominate",
                "careful",
                f"half of the fourth power of score {i + 1} is in {few.size} of {n} rows: number "
                f"{joined(found.rows[few].tolist())}",
                'Look at them; fit without them, or with cumulant="robust", and compare.',
            )
        if groups is None or i >= max(model.n_foreground_, 1):
            continue
        # by group and not by row: one with most of the rows has most of the variance in any case
        back = ScoreMoments.of(found.back[:, i])
        shares = score_shares(scores, back, groups)
        largest = int(np.argmax(shares))
        if shares[largest] > GROUP_SHARE and len(groups.names) > 2:
            yield Finding(
                "group-dominates",
                "careful",
                f"group {groups.names[largest]} carries {shares[largest]:.0%} of score {i + 1}, where "
                "each group counts the same",
                "Fit without it and compare.",
            )


def _background_groups(
    model: Any, found: SourceScores, own: Groups | None, behind: Groups | None
) -> Iterator[Finding]:
    """Groups of the background that have a pattern too, and pairs that do not agree."""
    if behind is None:
        return
    for i in range(min(max(model.n_foreground_, 1), len(model.components_))):
        above, below = found.fore[:, i], found.back[:, i]
        with_it = [behind.names[j] for j in _like_foreground(above, below, own, behind)]
        if with_it:
            yield Finding(
                "in-background-groups",
                "careful",
                f"the mean square of score {i + 1} in {joined(with_it)} of the background is nearer to "
                "the foreground's than to the rest of the background's, by more than its standard errors",
                "If those rows do belong there, the pattern is not the foreground's alone.",
            )
        yield from _pairs(i, above, below, own, behind)


def _like_foreground(
    above: np.ndarray, below: np.ndarray, own: Groups | None, behind: Groups
) -> np.ndarray:
    """Numbers of the background's groups that have a score as the foreground does, and not as the others.

    Means and mean squares that a group is compared with are of the others: its own rows would hide what
    they differ by.
    """
    codes, count = behind.codes, len(behind.names)
    if count < 2:
        return np.empty(0, dtype=int)
    sizes, shift = np.bincount(codes), below.mean()
    above, below = above - shift, below - shift
    means = -np.bincount(codes, below) / (below.size - sizes)  # of all rows but the group's
    squares = (below - means[codes]) ** 2
    size = np.bincount(codes, squares) / sizes
    spread = np.bincount(codes, (squares - size[codes]) ** 2) / sizes
    firsts, seconds = np.bincount(codes, below) / sizes, group_squares(below, 0.0, behind)
    first, second = ((each.sum() - each) / (count - 1) for each in (firsts, seconds))
    level = second - 2 * means * first + means**2
    first, second = above.mean(), np.mean(above**2)
    if own is not None:
        first = np.mean(np.bincount(own.codes, above) / np.bincount(own.codes))
        second = group_squares(above, 0.0, own).mean()
    beyond = np.maximum(second - 2 * means * first + means**2, level)
    least = size - N_ERRORS * np.sqrt(spread / np.maximum(sizes - 1, 1))
    return np.flatnonzero((sizes >= MIN_GROUP_ROWS) & (least > np.sqrt(level * beyond)))


def _pairs(
    i: int, above: np.ndarray, below: np.ndarray, own: Groups | None, behind: Groups
) -> Iterator[Finding]:
    """In how many groups of both datasets the foreground's half has more of a score."""
    if own is None:
        return
    more = []
    for name in set(own.names) & set(behind.names):
        fore = above[own.codes == own.names.index(name)]
        back = below[behind.codes == behind.names.index(name)]
        if back.size > 1:  # one row has no variance
            more.append(bool(np.mean((fore - back.mean()) ** 2) > back.var()))
    if len(more) >= MIN_PAIRS and 2 * sum(more) <= len(more):
        yield Finding(
            "pairs-disagree",
            "careful",
            f"in {sum(more)} of {len(more)} groups that both datasets have, the foreground's half has "
            f"more of score {i + 1} than the background's",
            "The pattern may be of few groups: look at each pair.",
        )


def _identifiable(model: Any) -> Iterator[Finding]:
    if not model.n_background_ or not model.n_foreground_:
        return
    verdict = joint_identifiable(model.n_background_, model.n_foreground_, model.n_pcs_)
    if not verdict:
        yield Finding(
            "not-identifiable",
            "careful",
            f"{model.n_background_} background and {model.n_foreground_} foreground patterns in "
            f"{model.n_pcs_} dimensions are not guaranteed to be unique ({verdict.value}, needs "
            f"{verdict.bound})",
            "Lower the ranks, or raise n_pcs.",
        )


def _ties(model: Any) -> Iterator[Finding]:
    for tie in getattr(model, "near_ties_", ()):
        yield Finding("near-tie", "note", tie, "Slightly other rows could turn this choice.")


def _of_covariates(
    scores: SourceScores,
    own: Groups | None,
    covariates: Mapping[str, Any],
    rng: np.random.Generator,
) -> list[Finding]:
    """Findings about covariates; where there are none without groups, that nothing was tested."""
    found = list(covariate_findings(scores, own, covariates, rng))
    if covariates and own is None and not found:
        found = [
            Finding(
                "covariates-not-tested",
                "note",
                "no covariate explains a tenth of the variance of a score over rows; none was tested, "
                "since rows need not be independent",
                "Give `groups` for tests.",
            )
        ]
    return found


def _independence(model: Any, own: Groups | None) -> Iterator[Finding]:
    if getattr(model, "groups_", None) is not None:
        if own is None:
            yield Finding(
                "groups-not-given",
                "careful",
                "the model was fitted with groups, and none were given here: nothing is said of them",
                "Give `groups` as to `fit`.",
            )
    else:
        yield Finding(
            "rows-as-independent",
            "note",
            "rows were taken as independent of one another",
            "If several come from one animal, donor or plate, give `groups` to the fit: far fewer "
            "patterns may then stand out.",
        )
