"""Which variables move with a pattern in groups that had no part in finding it?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from contrica.errors import ContricaError, GroupsError, MemoryBudgetError
from contrica.inference._data import Part, Study
from contrica.inference._stability import _Compared, _run, _Scored
from contrica.validation import check_seed, generator

__all__ = ["GroupEffects", "group_effects"]

logger = logging.getLogger("contrica")

# Groups that a test over groups needs, and foreground rows that a group needs to have an effect.
MIN_TESTED, MIN_ROWS = 3, 10


@dataclass(frozen=True)
class GroupEffects:
    """How variables move with patterns, group by group.

    Attributes
    ----------
    groups : tuple of str
        Of the foreground.
    effects : ndarray of shape (n_components, n_groups, n_features)
        How many standard deviations of the background a variable moves in the group's foreground rows
        when the pattern's score, of all other variables, moves by one of its own. The pattern is that of
        a fit without the group. NaN of groups without which nothing could be fitted, or of fewer than ten
        rows.
    p_values : ndarray of shape (n_components, n_features)
        That the mean of these is zero: a t-test in which each group counts once. NaN with fewer than
        three groups, and of variables that do not vary.
    q_values : ndarray of shape (n_components, n_features)
        The same, adjusted for the number of variables (Benjamini and Hochberg).
    """

    groups: tuple[str, ...]
    effects: np.ndarray
    p_values: np.ndarray
    q_values: np.ndarray

    @property
    def n_groups(self) -> np.ndarray:
        """Number of groups that each pattern was tested in."""
        return np.asarray((~np.isnan(self.effects).all(axis=2)).sum(axis=1))


def group_effects(
    model: Any,
    X: Any,
    *,
    background: Any,
    groups: Any,
    background_groups: Any,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> GroupEffects:
    """Test which variables move with a pattern, in each group by a fit without it.

    Rows that chose a pattern cannot test it: its loadings fit their noise too, and with thousands of rows
    any loading would be significant. So every group is left out once, the others are fitted anew, at the
    ranks of the model, and patterns are matched by their scores. In the group that was left out each
    variable is compared with the score of all others, so that none is compared with itself. One number
    for each group remains, and a t-test over groups asks whether their mean is zero. Groups are the
    sample: more rows of the same groups do not make a p-value smaller for long.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted with groups. It stays as it is.
    X : array-like of shape (n_samples, n_features)
        Foreground, in memory.
    background : array-like of shape (n_background_samples, n_features) or Background
    groups, background_groups : array-like of shape (n_rows,)
        As of ``fit``.
    random_state : int, Generator, RandomState or None, default=None
    n_jobs : int or None, default=None
        Processes, as of joblib.

    Returns
    -------
    GroupEffects
    """
    check_seed(random_state)
    study = Study(model, X, background, groups, background_groups)
    if study.groups is None:
        raise GroupsError(
            "groups-missing",
            "`groups` is None",
            "groups are what is tested over",
            "Give the group of every row.",
            "groups",
        )
    names = study.groups[0].names
    seed = int(generator(random_state).integers(2**32))
    without = [study.of_groups([name for name in study.names if name != left]) for left in names]
    task = _Task(study, _Compared.of(model, _Scored.of(model, study)), _units(model))
    effects = np.array(_run(task.left_out, without, seed, n_jobs, "fits without a group", False))
    p_values = _p_values(effects)
    return GroupEffects(names, effects.transpose(1, 0, 2), p_values, _q_values(p_values))


def _units(model: Any) -> np.ndarray:
    """Standard deviations in the background, on the foreground's scale."""
    scale = 1.0 if model.scale_ is None else model.scale_
    return np.asarray(model.background_deviations_ * scale)


class _Task(NamedTuple):
    study: Study
    compared: _Compared
    units: np.ndarray

    def left_out(self, part: Part, seed: Sequence[int]) -> np.ndarray:
        """Effects in the rows that a part leaves out, of patterns of a fit to the part."""
        study, patterns = self.study, self.compared.patterns
        found = np.full(patterns.shape, np.nan)
        rows = np.setdiff1d(np.arange(study.fore.shape[0]), part.fore)
        if rows.size < MIN_ROWS:
            return found
        try:
            model = study.fit(part, seed)
        except MemoryBudgetError:  # with fewer rows there is no more room
            raise
        except (ContricaError, ValueError, np.linalg.LinAlgError) as error:
            logger.info("a group could not be left out: %s", error)
            return found
        filters = model._source_filters()
        own = study.host_rows(0, rows)
        scores = np.asarray(study.host_rows(0, self.compared.some) @ filters.T)
        for i, (j, _) in enumerate(self.compared.pairs(scores)):
            if j >= 0:
                sign = np.sign(model.components_[j] @ patterns[i]) or 1.0
                found[i] = sign * _moved(own, filters[j]) / self.units
        return found


def _moved(rows: Any, axis: np.ndarray) -> np.ndarray:
    """Covariance of each variable with the score of the others, over that score's deviation."""
    n = rows.shape[0]
    mean = np.asarray(rows.mean(axis=0)).ravel()
    squares = rows.multiply(rows) if hasattr(rows, "multiply") else rows**2
    variance = np.asarray(squares.mean(axis=0)).ravel() - mean**2
    scores = np.asarray(rows @ axis).ravel()
    scores = scores - scores.mean()
    covariance = np.asarray(scores @ rows).ravel() / n
    # without the variable itself
    spread = np.mean(scores**2) - 2 * axis * covariance + axis**2 * variance
    tiny = np.finfo(float).tiny
    return np.asarray((covariance - axis * variance) / np.sqrt(np.maximum(spread, tiny)))


def _p_values(effects: np.ndarray) -> np.ndarray:
    """Of t-tests over the first axis, NaN aside."""
    count = np.sum(~np.isnan(effects), axis=0)
    divisor = np.maximum(count, 1)
    mean = np.nansum(effects, axis=0) / divisor
    squares = np.nansum((effects - mean) ** 2, axis=0) / np.maximum(count - 1, 1)
    error = np.sqrt(squares / divisor)
    tested = (count >= MIN_TESTED) & (error > 0)
    t_values = np.divide(mean, error, out=np.full(mean.shape, np.nan), where=tested)
    return np.asarray(2 * student.sf(np.abs(t_values), np.maximum(count - 1, 1)))


def _q_values(p_values: np.ndarray) -> np.ndarray:
    found = np.full(p_values.shape, np.nan)
    for own, adjusted in zip(p_values, found, strict=True):
        tested = ~np.isnan(own)
        if tested.any():
            adjusted[tested] = false_discovery_control(own[tested])
    return found
