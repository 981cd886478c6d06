"""A fitted model on the terminal: its patterns, the solver that was chosen and why, and the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from contrica.cli.console import print_line, print_table
from contrica.estimators import (
    ContrastiveICA,
    ProportionalContrastiveICA,
    evidence_lines,
    leading_in_words,
    ranking_ratio,
)
from contrica.estimators._ranking import SHIFT, kurtosis_of, order_in_words, p_values_of, shifted
from contrica.estimators._summary import leading_variables, left_out_lines, tested_by_groups
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.selection import RankChoice

__all__ = ["fit_lines", "fit_summary", "print_fit", "rank_selection"]


def print_fit(
    model: ContrastiveICA | ProportionalContrastiveICA, names: Sequence[str], *notes: str
) -> None:
    """Print what a fit found, and what that rests on.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    names : sequence of str
        Of the variables.
    notes : str
        Lines to print after the table.
    """
    print_table(_patterns(model, names))
    for line in fit_lines(model, *notes, names=names):
        print_line(line)


def fit_lines(
    model: ContrastiveICA | ProportionalContrastiveICA,
    *notes: str,
    names: Sequence[str] | None = None,
) -> list[str]:
    """What a fit chose, and on what evidence, in words.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    notes : str
        Lines to begin with.
    names : sequence of str, optional
        Of the variables.

    Returns
    -------
    list of str
    """
    lines = [*notes, _sizes(model), *model.gap_lines()]
    if isinstance(model, ContrastiveICA):
        lines.append(f"solver: {model.solver_} ({model.reason_})")
        lines += left_out_lines(model, names)
        if not tested_by_groups(model):  # of which the lines of groups tell
            lines += [f"evidence: {told}" for told in evidence_lines(model)]
        lines += model.group_lines()
        lines += rank_selection(model.rank_choice_, model.near_ties_)
    return lines


def fit_summary(
    model: ContrastiveICA | ProportionalContrastiveICA, names: Sequence[str]
) -> dict[str, Any]:
    """What a fit found, for programs.

    Parameters
    ----------
    model : ContrastiveICA or ProportionalContrastiveICA
        Fitted.
    names : sequence of str
        Of the variables.

    Returns
    -------
    dict
    """
    symbol, ratios = ranking_ratio(model)
    unit = "loading" if model.effects_ is None else "sd of the background"
    effects = model.components_ if model.effects_ is None else model.effects_
    shapes, p_values = kurtosis_of(model), p_values_of(model)
    t_values = getattr(model, "pattern_t_values_", np.full(len(ratios), np.nan))
    patterns = [
        {
            "pattern": i + 1,
            "ratio": ratio,
            "contrast_ratio": model.contrast_ratio_[i],
            "source_ratio": model.source_ratio_[i],
            "weight": model.foreground_weights_[i],
            "kurtosis": None if shapes is None else shapes[i],
            "p": p_values[i],
            "t": t_values[i],
            "stands_out": i < model.n_foreground_,
            "only_shifted": bool(shifted(model)[i]),
            "leading": [
                {"variable": names[j], "effect": effects[i, j]}
                for j in leading_variables(model, i)[:10]
            ],
        }
        for i, ratio in enumerate(ratios)
    ]
    found: dict[str, Any] = {"ranked_by": symbol, "effects_in": unit, "patterns": patterns}
    found |= {"n_foreground": model.n_foreground_, "n_background": model.n_background_}
    if isinstance(model, ContrastiveICA):
        found |= {"solver": model.solver_, "reason": model.reason_}
        if isinstance(model.scree_, ContrastScree):
            found |= {"p_values": model.scree_.p_values, "permuted": model.scree_.unit}
    return found


def rank_selection(choice: RankChoice | None, near_ties: Sequence[str]) -> Iterator[str]:
    """How near the ranks are to being others, and what else slightly other rows might turn.

    Parameters
    ----------
    choice : RankChoice or None
        ``None`` where ranks were not chosen by significance.
    near_ties : sequence of str

    Yields
    ------
    str
    """
    if choice is not None:
        yield f"rank selection: {choice.description}"
    yield from (f"near a tie: {tie}" for tie in near_ties)


def _patterns(model: Any, names: Sequence[str]) -> Table:
    table = Table(title=f"Patterns by {order_in_words(model)}")
    symbol, ratios = ranking_ratio(model)
    tested, values = ("p", p_values_of(model))
    if np.isnan(values).all():
        tested, values = ("t", getattr(model, "pattern_t_values_", values))
    shape, shapes = ("kurtosis", kurtosis_of(model))
    if shapes is None:
        shape, shapes = ("weight ν", model.foreground_weights_)
    for heading in ("pattern", f"contrast ratio {symbol}", shape, tested):
        table.add_column(heading, justify="right")
    unit = "" if model.effects_ is None else ", in sd of the background"
    table.add_column(f"leading variables{unit}")
    rows = zip(ratios, shapes, values, strict=True)
    for i, (ratio, own, evidence) in enumerate(rows, start=1):
        leading = leading_in_words(model, i - 1, 5, names)
        beyond = "" if i <= model.n_foreground_ else " *"
        beyond = " +" if shifted(model)[i - 1] else beyond
        told = (
            "" if np.isnan(evidence) else f"{evidence:.2g}" if tested == "p" else f"{evidence:.1f}"
        )
        table.add_row(f"{i}{beyond}", f"{ratio:.4g}", f"{own:.3g}", told, escape(leading))
    marks = {"* does not stand out": ~shifted(model)[model.n_foreground_ :]}
    marks[f"+ {SHIFT}"] = shifted(model)
    table.caption = "; ".join(words for words, which in marks.items() if which.any()) or None
    return table


def _sizes(model: Any) -> str:
    """How many patterns were kept, and of how many."""
    if getattr(model, "solver_", "") == "subspace":
        found = f"l = {model.n_foreground_} of {model.n_pcs_} directions"
        sought = f"from a contrast subspace; {found} stand out"
    else:  # the contrast subspace does not aim at the cumulant
        sought = (
            f"of l = {model.n_foreground_} sought after r = {model.n_background_} background patterns, "
            f"in {model.n_pcs_} dimensions; left unexplained: {model.residual_:.3g} of the foreground's "
            "fourth cumulant (norm)"
        )
    scale = getattr(model, "background_scale_", None)
    count = len(model.components_)
    return f"{count} pattern{'' if count == 1 else 's'} kept, {sought}" + (
        "" if scale is None else f"; background scale {scale:.4g}"
    )
