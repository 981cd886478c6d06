"""What a notebook shows of a fitted model: its patterns, with the variables that lead them."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.estimators._ranking import SHIFT, p_values_of, ranking_ratio, shifted
from contrica.estimators._summary import (
    carried_by,
    evidence_lines,
    found_in_words,
    leading_in_words,
    leading_variables,
)
from contrica.markup import Markup, bars, frame, table, text

__all__ = ["NotebookRepr", "model_html"]

# Patterns in the table, and bars of each.
MAX_PATTERNS, N_BARS = 20, 12


class NotebookRepr:
    """Shows a fitted model as a table of its patterns, and one that is not fitted as scikit-learn does.

    ``sklearn.set_config(display="text")`` turns both off.
    """

    def _repr_html_inner(self) -> str:
        diagram = super()._repr_html_inner()  # type: ignore[misc]
        return model_html(self, diagram) if hasattr(self, "components_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and hasattr(self, "components_"):
            bundle["text/html"] = model_html(self, bundle["text/html"])
        return bundle


def model_html(model: Any, diagram: str = "") -> str:
    """A fitted model as HTML.

    Parameters
    ----------
    model : an estimator of contrica
        Fitted.
    diagram : str
        HTML of its parameters, to be folded below.

    Returns
    -------
    str
    """
    count = len(model.components_)
    told = [f"<b>{text(type(model).__name__)}</b>: {text(_found(model, count))}"]
    if _has_summary(model):
        told += [f'<span class="faint">{text(line)}</span>' for line in evidence_lines(model)]
    columns = _columns(model, min(count, MAX_PATTERNS))
    rows = list(zip(*columns.values(), strict=True))
    lines = "".join(f"<p>{each}</p>" for each in told)
    more = f"<p>… and {count - MAX_PATTERNS} more patterns</p>" if count > MAX_PATTERNS else ""
    folded = f"<details><summary>parameters</summary>{diagram}</details>" if diagram else ""
    return frame(lines, table(list(columns), rows), more, folded)


def _has_summary(model: Any) -> bool:
    return hasattr(model, "summary")


def _found(model: Any, count: int) -> str:
    if _has_summary(model):
        return found_in_words(model)
    return f"{count} pattern{'' if count == 1 else 's'} over {model.n_features_in_} variables"


def _columns(model: Any, count: int) -> dict[str, list[Any]]:
    """Cells of the table by column; a column without anything in it is left out."""
    symbol, ratios = ranking_ratio(model)
    numbers = range(count)
    p_values = p_values_of(model)
    t_values = getattr(model, "pattern_t_values_", np.full(count, np.nan))
    unit = "loadings" if getattr(model, "effects_", None) is None else "sd of the background"
    columns: dict[str, list[Any]] = {
        "pattern": [i + 1 for i in numbers],
        f"leading variables ({unit})": [_bars(model, i) for i in numbers],
        "led by": [leading_in_words(model, i) for i in numbers],
        symbol: [float(ratios[i]) for i in numbers],
        "p": ["" if np.isnan(p_values[i]) else f"{p_values[i]:.2g}" for i in numbers],
        "t": [float(t_values[i]) for i in numbers],
        "groups": [", ".join(carried_by(model, i)) for i in numbers],
        "": [_stands_out(model, i) for i in numbers],
    }
    return {name: cells for name, cells in columns.items() if any(map(text, cells))}


def _stands_out(model: Any, number: int) -> Markup | str:
    if shifted(model)[number]:
        return Markup(f'<span class="faint">{SHIFT}</span>')
    known = getattr(model, "n_foreground_", None)
    if known is None or number < known or getattr(model, "solver_", "") == "plain":
        return ""
    return Markup('<span class="faint">does not stand out</span>')


def _bars(model: Any, number: int) -> Markup:
    effects = getattr(model, "effects_", None)
    values = (model.components_ if effects is None else effects)[number]
    top = leading_variables(model, number)[:N_BARS]
    top = top[np.argsort(-values[top], kind="stable")]
    known = getattr(model, "feature_names_in_", None)
    names = [f"x{i}" if known is None else str(known[i]) for i in top]
    return bars([float(values[i]) for i in top], names, [f"{values[i]:+.2g}" for i in top])
