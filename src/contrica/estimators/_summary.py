"""What a fitted model has to say of itself: what was found, on what evidence, and then how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from contrica.estimators._ranking import SHIFT, kurtosis_of, ranking_ratio, shifted
from contrica.solvers.group_design import GroupShares
from contrica.solvers.permutation_null import LEVEL, ContrastScree

__all__ = [
    "carried_by",
    "evidence_lines",
    "found_in_words",
    "leading_in_words",
    "leading_variables",
    "left_out_lines",
    "summary_lines",
    "taken_as_pairs",
    "tested_by_groups",
]

# Variables that lead a pattern, as many as are named.
N_NAMED = 3


def summary_lines(model: Any) -> Iterator[str]:
    """What was found in plain words, a line for each pattern, and then what was chosen and why.

    Parameters
    ----------
    model : ContrastiveICA
        Fitted.

    Yields
    ------
    str
    """
    yield f"found: {found_in_words(model)}"
    yield from (f"evidence: {told}" for told in evidence_lines(model))
    yield from (_pattern(model, i) for i in range(len(model.components_)))
    yield from left_out_lines(model)
    yield f"solver: {model.solver_} ({model.reason_})"
    sizes = f"{_counted(model.n_foreground_, 'foreground pattern')}, in {model.n_pcs_} dimensions"
    if model.solver_ in ("paper", "joint"):
        sizes = f"{model.n_background_} background and {sizes}"
    yield f"ranks: {sizes}"
    sampled = next(iter(model.n_rows_sampled_), None)  # which earlier versions did not save
    if model.solver_ == "subspace" and sampled is not None and sampled < model.n_samples_:
        total = model.n_samples_
        yield f"rows: dimension and rotation from a sample of {sampled} of {total}"
    shrinkage = getattr(model, "filter_shrinkage_", 0.0)  # which earlier versions did not have
    if shrinkage > 0:
        yield f"filters: covariances shrunk by {shrinkage:.1%}, the share that does best on held-out rows"
    yield from model.gap_lines()
    if model.rank_choice_ is not None:
        yield f"rank selection: {model.rank_choice_.description}"
    yield from (f"near a tie: {tie}" for tie in model.near_ties_)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def found_in_words(model: Any) -> str:
    """How many patterns stand out, of which rows.

    Parameters
    ----------
    model : ContrastiveICA
        Fitted.

    Returns
    -------
    str
    """
    kept, count = len(model.components_), model.n_foreground_
    # earlier versions saved neither
    rows = f"{model.n_samples_} rows" if hasattr(model, "n_samples_") else "the foreground"
    if getattr(model, "groups_", None) is not None:
        rows += f" of {len(model.groups_)} groups"
    if model.solver_ == "plain":
        return f"{_counted(kept, 'pattern')} of {rows}; without a background nothing says which are new"
    if count == 0:
        candidates = "the pattern kept is the strongest candidate"
        if kept > 1:
            candidates = f"the {kept} patterns kept are the strongest candidates"
        return f"nothing in {rows} stands out from the background; {candidates}, and may be chance"
    if model.n_foreground is not None:
        return f"{_counted(count, 'pattern')}, as many as were asked for, in {rows}"
    if model.solver_ == "paper":
        return (
            f"{_counted(count, 'pattern')} by eigenvalues, which says little of chance, in {rows}"
        )
    verb = "stands" if count == 1 else "stand"
    told = f"{_counted(count, 'pattern')} {verb} out from the background, in {rows}"
    return told if kept >= count else f"{told}; the first {kept} are kept"


def evidence_lines(model: Any) -> Iterator[str]:
    """On what evidence patterns stand out, in words.

    Parameters
    ----------
    model : ContrastiveICA
        Fitted.

    Yields
    ------
    str
    """
    scree, choice = model.scree_, model.rank_choice_
    if isinstance(scree, ContrastScree) and scree.n_assignments:
        what = "whole groups" if scree.unit == "groups" else "rows, as if independent,"
        weakest, n_clear = "", int(np.sum(scree.p_values <= LEVEL))
        if n_clear > 1:
            weakest = f", at most {scree.p_values[n_clear - 1]:.2g} for the others that stand out"
        yield (
            f"p = {scree.p_values[0]:.2g} for the first{weakest}, if both datasets had one distribution "
            f"({what} assigned {scree.n_assignments} times; p cannot be below "
            f"{1 / scree.n_assignments:.2g}; level {LEVEL})"
        )
    elif choice is not None:
        tested = np.abs(model.pattern_t_values_[: model.n_foreground_])
        grouped = getattr(model, "groups_", None) is not None
        ending = "standard errors of whole groups" if grouped else "rows taken as independent"
        if not model.n_foreground_:
            yield (
                "no foreground pattern is significant by its weight, of which "
                f"{choice.critical:.1f} standard errors are asked for; {ending}"
            )
        elif tested.size and not np.isnan(tested).any():
            yield (
                f"every weight is at least {tested.min():.1f} standard errors from zero, where "
                f"{choice.critical:.1f} are asked for; {ending}"
            )
    elif model.solver_ != "plain":
        yield "not tested; contrica.inference has significance and stability"
    yield from taken_as_pairs(model)


def taken_as_pairs(model: Any) -> list[str]:
    """Which groups of both datasets a test took as pairs, in words; empty where none did.

    Groups are paired where they are permuted. Standard errors of "joint" take those of each dataset.

    Parameters
    ----------
    model : ContrastiveICA

    Returns
    -------
    list of str
    """
    paired = getattr(model, "paired_groups_", None)  # which earlier versions did not save
    permuted = isinstance(model.scree_, ContrastScree) and model.scree_.unit == "groups"
    if not permuted or paired is None or not len(paired) or model.groups_ is None:
        return []
    return [
        f"{len(paired)} of {len(model.groups_)} groups of the foreground have names of groups of the "
        f"background ({_some(paired)}), and are taken as pairs"
    ]


def _some(names: Any) -> str:
    return ", ".join(map(str, names[:3])) + (", ..." if len(names) > 3 else "")


def _pattern(model: Any, number: int) -> str:
    """One pattern: its ratio, kurtosis and t-value, the groups with it, the variables that lead it."""
    symbol, ratios = ranking_ratio(model)
    ratio, t_value = ratios[number], model.pattern_t_values_[number]
    told = [] if np.isnan(ratio) else [f"{symbol} = {ratio:.4g}"]
    kurtosis = kurtosis_of(model)
    weight = model.foreground_weights_[number]
    told.append(f"weight {weight:.4g}" if kurtosis is None else f"kurtosis {kurtosis[number]:+.2f}")
    told += [] if np.isnan(t_value) else [f"t = {t_value:.1f}"]
    told += carried_by(model, number)
    told.append(f"led by {leading_in_words(model, number)}")
    beyond = " (does not stand out)" if number >= model.n_foreground_ else ""
    beyond = f" ({SHIFT})" if shifted(model)[number] else beyond
    return f"pattern {number + 1}: {', '.join(told)}{beyond}"


def leading_variables(model: Any, number: int, by: str = "background") -> np.ndarray:
    """Numbers of the variables, those that lead a pattern first.

    Parameters
    ----------
    model : estimator of contrica
        Fitted.
    number : int
        Of the pattern.
    by : {"background", "loading"}
        By the size of ``effects_``, the loading over how much the variable varies in the background, or
        by the size of the loading. Without a background the latter.

    Returns
    -------
    ndarray of int, shape (n_features,)
    """
    effects = getattr(model, "effects_", None) if by == "background" else None
    sizes = model.components_ if effects is None else effects
    return np.argsort(-np.abs(sizes[number]), kind="stable")


def leading_in_words(
    model: Any, number: int, count: int = N_NAMED, names: Sequence[str] | None = None
) -> str:
    """Variables that lead a pattern, and how far they move in standard deviations of the background.

    Parameters
    ----------
    model : estimator of contrica
        Fitted.
    number : int
        Of the pattern.
    count : int
        How many.
    names : sequence of str, optional
        Of the variables; by default those of the fit.

    Returns
    -------
    str
        Without a background their loadings.
    """
    known = getattr(model, "feature_names_in_", None) if names is None else names
    effects = getattr(model, "effects_", None)
    unit, shown = ("", "+.2f") if effects is None else (" sd", "+.2g")
    values = (model.components_ if effects is None else effects)[number]
    return ", ".join(
        f"{f'x{j}' if known is None else known[j]} {values[j]:{shown}}{unit}"
        for j in leading_variables(model, number)[:count]
    )


def left_out_lines(model: Any, names: Sequence[str] | None = None) -> list[str]:
    """Shifts of the mean that were found and not kept, in words.

    Parameters
    ----------
    model : ContrastiveICA
    names : sequence of str, optional
        Of the variables; by default those of the fit.

    Returns
    -------
    list of str
    """
    known = getattr(model, "feature_names_in_", None) if names is None else names
    found = []
    for moved in getattr(model, "left_out_shifts_", ()):  # which earlier versions did not save
        leading = ", ".join(
            f"{f'x{j}' if known is None else known[j]} {moved[j]:+.2g} sd"
            for j in np.argsort(-np.abs(moved), kind="stable")[:N_NAMED]
        )
        found.append(
            f"left out: a shift of the mean, led by {leading}, which is not counted and not kept"
        )
    return found


def tested_by_groups(model: Any) -> list[str]:
    """The p-value of groups that were permuted, in words; empty where rows are independent.

    Parameters
    ----------
    model : ContrastiveICA

    Returns
    -------
    list of str
    """
    scree = model.scree_
    grouped = isinstance(scree, ContrastScree) and scree.unit == "groups" and scree.n_assignments
    if not grouped:
        return []
    return [
        f"groups: p = {scree.p_values[0]:.2g} for a first ratio this large if both datasets had one "
        f"distribution (whole groups assigned {scree.n_assignments} times; p cannot be below "
        f"{1 / scree.n_assignments:.2g})"
    ]


def carried_by(model: Any, number: int) -> list[str]:
    """By how many groups a pattern is carried, in words; empty where rows are independent.

    Parameters
    ----------
    model : ContrastiveICA
    number : int

    Returns
    -------
    list of str
    """
    if getattr(model, "group_share_", None) is None or model.groups_ is None:
        return []
    shares = GroupShares(tuple(model.groups_), model.group_share_)
    largest = int(np.argmax(model.group_share_[number]))
    return [
        f"carried by {shares.n_carrying[number]:.0f} of {len(model.groups_)} groups, "
        f"{model.group_share_[number, largest]:.0%} by {model.groups_[largest]}"
    ]
