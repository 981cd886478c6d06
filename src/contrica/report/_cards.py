"""One card for each pattern: what it is made of, what its score does, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contrica.estimators import ranking_ratio
from contrica.estimators._ranking import SHIFT, shifted
from contrica.estimators._summary import leading_variables
from contrica.inference._patterns import Explanation, Feature, explain_scores, top_features
from contrica.inference._stability import Stability
from contrica.report._html import Html, element, png_source
from contrica.report._material import Material
from contrica.report._pictures import histogram_svg, pattern_png
from contrica.solvers.permutation_null import ContrastScree

__all__ = ["cards", "p_value"]

# Variables and groups that a card lists.
N_VARIABLES, N_GROUPS = 10, 8


def cards(material: Material) -> list[Html]:
    """All cards, in the order of the patterns.

    Parameters
    ----------
    material : Material

    Returns
    -------
    list of Html
    """
    return [_card(material, i) for i in range(len(material.model.components_))]


def p_value(model: Any, number: int) -> float | None:
    """The p of the direction that a pattern's number names, where the fit tested it.

    Parameters
    ----------
    model : estimator
        Fitted.
    number : int
        Of the pattern, from 0.

    Returns
    -------
    float or None
    """
    scree = _tested(model)
    if scree is None or number >= scree.p_values.size:
        return None
    return float(scree.p_values[number])


def _tested(model: Any) -> ContrastScree | None:
    """The permutation null, where the fit made one."""
    scree = getattr(model, "scree_", None)
    return scree if isinstance(scree, ContrastScree) and scree.n_assignments else None


def _card(material: Material, number: int) -> Html:
    model, repeated = material.model, material.stability
    known = repeated if isinstance(repeated, Stability) else None
    above = material.foreground.scores[:, number]
    below = material.background_scores[:, number]
    told = explain_scores(
        *(model, number, above, below),
        top_features(model, number, N_VARIABLES, known),
        material.groups,
    )
    beyond = None if told.stands_out else element("span", "does not stand out", class_="beyond")
    if shifted(model)[number]:
        beyond = element("span", SHIFT, class_="beyond")
    drawn = f"Densities of score {number + 1} in the foreground and in the background"
    return element(
        "article",
        element("h3", f"Pattern {number + 1} ", beyond),
        element(
            "div",
            _image(material, number),
            element("div", _variables(model, number, told.features), class_="part"),
            element(
                "div",
                element("figure", histogram_svg(above, below, drawn), _caption(told)),
                element("dl", *_numbers(model, number, told, repeated), class_="numbers"),
                class_="part wide",
            ),
            _groups(_shares(model, told)),
            class_="parts",
        ),
        class_="card" if told.stands_out else "card weak",
        id=f"pattern-{number + 1}",
    )


def _image(material: Material, number: int) -> Html | None:
    if material.image_shape is None:
        return None
    height, width = material.image_shape
    return element(
        "img",
        src=png_source(pattern_png(material.model.components_[number], (height, width))),
        alt=f"Pattern {number + 1} as an image of {height} by {width} pixels: vermilion above zero, "
        "blue below",
        class_="pattern",
        style=f"aspect-ratio: {width} / {height}",
    )


def _variables(model: Any, number: int, features: Sequence[Feature]) -> Html:
    """The leading variables: bars of effects, with whiskers where intervals are known."""
    effects = model.effects_
    order = leading_variables(model, number)[: len(features)]
    loadings = model.components_[number][order]
    values = loadings if effects is None else effects[number][order]
    with np.errstate(divide="ignore", invalid="ignore"):
        units = np.where(loadings == 0, 0.0, values / loadings)  # of an effect for one of a loading
    ends = np.array([[each.low, each.high] for each in features]) * units[:, None]
    reach = np.nan_to_num(np.column_stack([values, ends]))
    low, high = min(float(reach.min()), 0.0), max(float(reach.max()), 0.0)
    has_ends = not np.isnan(ends).all()
    heads = ["variable", "", "effect, sd" if effects is not None else "loading"]
    heads += ["90 % interval"] if has_ends else []
    rows = []
    for each, value, interval in zip(features, values, ends, strict=True):
        cells = [
            element("th", each.name, scope="row"),
            element("td", _bar(value, interval, low, (high - low) or 1.0)),
            element("td", _signed(value), title=f"loading {each.loading:+.3g}"),
        ]
        cells += [element("td", _interval(*interval))] if has_ends else []
        rows.append(element("tr", cells))
    widths = ("c-name", "c-track", "c-effect", "c-interval")[: len(heads)]
    return element(
        "table",
        element("caption", "Leading variables", class_="unseen"),
        element("colgroup", [element("col", class_=name) for name in widths]),
        element("thead", element("tr", [element("th", text, scope="col") for text in heads])),
        element("tbody", rows),
        class_="variables",
    )


def _interval(low: float, high: float) -> str:
    return "–" if np.isnan(low) else f"{_signed(low)} to {_signed(high)}"


def _signed(value: float) -> str:
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.2g}"


def _bar(value: float, interval: np.ndarray, low: float, reach: float) -> Html:
    """A bar from zero in a track that begins at ``low`` and is ``reach`` long, and its whisker."""

    def placed(tag: str, start: float, end: float, class_: str | None = None) -> Html:
        left, width = 100 * (start - low) / reach, 100 * (end - start) / reach
        return element(tag, style=f"left:{left:.1f}%;width:{width:.1f}%", class_=class_)

    kind = "plus" if value >= 0 else "minus"
    whisker = None
    if not np.isnan(interval).any():
        whisker = placed("i", float(interval.min()), float(interval.max()))
    bar = placed("b", min(value, 0.0), max(value, 0.0), kind)
    return element("div", bar, placed("u", 0, 0), whisker, class_="bar", aria_hidden="true")


def _caption(told: Explanation) -> Html:
    return element(
        "figcaption",
        "Its score: ",
        element("span", "foreground", class_="key fore"),
        " and ",
        element("span", "background", class_="key back"),
        f". {told.shape[:1].upper()}{told.shape[1:]}.",
    )


def _numbers(
    model: Any, number: int, told: Explanation, repeated: Stability | str
) -> list[tuple[Html, Html]]:
    symbol, ratios = ranking_ratio(model)
    fore, back = told.foreground, told.background
    lines = [(f"contrast ratio {symbol}", f"{ratios[number]:.3g}")]
    if isinstance(repeated, Stability) and repeated.ratio_intervals is not None:
        low, high = repeated.ratio_intervals[number]
        told_of = f"{low:.3g} to {high:.3g} (90 %, of rows that a resample left out)"
        lines.append(("k(f) of resamples", told_of))
    t_values = getattr(model, "pattern_t_values_", None)
    if t_values is not None and not np.isnan(t_values[number]):
        lines.append(("t of its weight", f"{t_values[number]:.1f}"))
    lines.append(("p", _p_in_words(model, number)))
    if np.isnan(back.mean):  # no scores of the background
        lines += [("skewness", _moment(fore.skewness)), ("kurtosis", _moment(fore.kurtosis))]
    else:
        lines += [
            ("mean shift", f"{_moment(told.shift)} sd of the background"),
            ("skewness", f"{_moment(fore.skewness)} (background {_moment(back.skewness)})"),
            ("kurtosis", f"{_moment(fore.kurtosis)} (background {_moment(back.kurtosis)})"),
        ]
    lines.append(("stability", _stability_in_words(repeated, number)))
    if told.nearest_background is not None:
        nearest, cosine = told.nearest_background
        lines.append(("nearest background pattern", f"{nearest + 1}, |cosine| {cosine:.2f}"))
    return [(element("dt", name), element("dd", text)) for name, text in lines]


def _moment(value: float) -> str:
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}"


def _p_in_words(model: Any, number: int) -> str:
    p, scree = p_value(model, number), _tested(model)
    if scree is None:
        return "not tested"
    if p is None:
        return "not tested: one before it did not stand out"
    smallest = 1 / scree.n_assignments
    unit = "groups permuted" if scree.unit == "groups" else "rows permuted, as if independent"
    smallest_told = ", the smallest possible" if p <= smallest * 1.001 else ""
    return f"{p:.2g}{smallest_told} ({unit})"


def _stability_in_words(repeated: Stability | str, number: int) -> str:
    if isinstance(repeated, str):
        return repeated.partition(";")[0]  # how it can be computed is said above
    if not repeated.n_resamples:
        return f"{repeated.index[number]:.2f} on average over fits without one group"
    found = f"returned in {repeated.n_found[number]} of {repeated.n_resamples} resamples"
    return f"{repeated.index[number]:.2f}, {found} of {repeated.unit}"


def _shares(model: Any, told: Explanation) -> dict[str, float]:
    """How much of the score every group has: as the fit found, or of groups that it did not know."""
    known = getattr(model, "group_share_", None)
    if known is None or model.groups_ is None:
        return told.group_share
    return dict(zip(map(str, model.groups_), map(float, known[told.pattern]), strict=True))


def _groups(shares: dict[str, float]) -> Html | None:
    if not shares:
        return None
    order = sorted(shares.items(), key=lambda pair: -pair[1])
    top = max(order[0][1], np.finfo(float).tiny)
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", _bar(share, np.array([np.nan]), 0.0, top), class_="track"),
            element("td", f"{share:.0%}"),
        )
        for name, share in order[:N_GROUPS]
    ]
    left = len(order) - N_GROUPS
    more = element("p", f"and {left} more groups", class_="note") if left > 0 else None
    head = element("summary", f"Share by group ({len(order)} groups)")
    table = element("table", element("tbody", rows))
    return element("details", head, table, more, open=True, class_="part")
