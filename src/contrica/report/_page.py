"""The page: sections in the order in which a reader asks, put into the template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from contrica._version import __version__
from contrica.compare import Comparison
from contrica.estimators import ContrastiveICA
from contrica.estimators._ranking import order_in_words
from contrica.estimators._summary import summary_lines
from contrica.estimators._transformer import changed_parameters
from contrica.inference._findings import Finding
from contrica.inference._stability import Stability
from contrica.report._cards import cards
from contrica.report._html import Html, element, json_script, png_source
from contrica.report._material import Material, Samples
from contrica.report._methods import methods, versions
from contrica.report._pictures import scatter_png
from contrica.report._points import MAX_AXES, points

__all__ = ["page"]


def page(material: Material) -> str:
    """The whole file.

    Parameters
    ----------
    material : Material

    Returns
    -------
    str
        HTML that asks nothing of any other file or server.
    """
    static = files("contrica.report") / "static"
    read = {name: (static / name).read_text(encoding="utf-8") for name in STATIC}
    drawn = material.drawn()
    data = points(drawn, material.group_columns)
    sections = [
        _section("asked", "What was asked", _asked(material)),
        _section("found", "What was found", _found(material)),
        _section("check", "What to be careful about", _findings(material)),
        _section("scores", "Scores", _scores(material, drawn, data)),
        _section("patterns", "Patterns", _patterns(material)),
    ]
    if material.comparison is not None:
        sections.append(_section("methods-compared", "Other methods", _rivals(material.comparison)))
    sections += [
        _section("methods", "Methods paragraph", _methods(material)),
        _section("repeat", "To repeat this", _repeat(material)),
    ]
    title = material.title or "Contrastive ICA"
    return Template(read["page.html"]).substitute(
        title=element("title", f"{title} – contrica report"),
        heading=element("h1", title),
        style=Html(read["report.css"]),
        script=Html(read["report.js"]),
        data=json_script("points", data),
        navigation=element("ul", [element("li", link) for link, _ in sections]),
        sections=Html("\n".join(body for _, body in sections)),
        version=element("p", f"Made by contrica {__version__}.", class_="note"),
    )


STATIC = ("page.html", "report.css", "report.js")


def _section(name: str, title: str, inside: Iterable[Html | None]) -> tuple[Html, Html]:
    """A link to a section, and the section."""
    head = element("h2", title, id=f"{name}-title")
    body = element("section", head, list(inside), id=name, aria_labelledby=f"{name}-title")
    return element("a", title, href=f"#{name}"), body


def _pairs(lines: Iterable[tuple[str, Any]], class_: str = "pairs") -> Html:
    return element(
        "dl", [(element("dt", name), element("dd", text)) for name, text in lines], class_=class_
    )


def _note(*text: Any) -> Html:
    return element("p", *text, class_="note")


def _asked(material: Material) -> Iterator[Html]:
    model, fore = material.model, material.foreground
    rest = dict(material.asked)
    lines: list[tuple[str, Any]] = []
    for each in (fore, *material.backgrounds):
        which = rest.pop(each.name, "")
        lines.append((each.name, f"{each.n_rows} rows" + (f": {which}" if which else "")))
    lines.append(("variables", model.n_features_in_))
    if getattr(model, "groups_", None) is not None:
        by = rest.pop("groups", "")
        told = f"{len(model.groups_)} in the foreground" + (f", by {by}" if by else "")
        lines.append(("groups", told))
    lines += list(rest.items())
    lines += list(_options(model))
    yield element("p", "Which patterns does the foreground have that the background does not have?")
    yield _pairs(lines)


def _options(model: Any) -> Iterator[tuple[str, Any]]:
    names = [name for name in model.get_params() if name not in ("basis", "random_state")]
    for name in changed_parameters(model, names):
        yield name, getattr(model, name)
    if model.basis is not None:
        yield "basis", f"{model.n_pcs_} given axes"


def _found(material: Material) -> Iterator[Html]:
    model = material.model
    lines = []
    if isinstance(model, ContrastiveICA):
        for line in summary_lines(model):
            name, _, text = line.partition(": ")
            # those of patterns are on the cards, and ties are among the findings
            if not name.startswith("pattern ") and name != "near a tie":
                lines.append((name, text))
    else:
        kept = len(model.components_)
        lines.append(("found", f"{kept} patterns kept of {model.n_foreground_} sought, not tested"))
        lines.append(("background scale", f"{model.background_scale_:.4g}"))
        lines += [("gaps", line) for line in model.gap_lines()]
    found = next((text for name, text in lines if name == "found"), "")
    yield element("p", found[:1].upper() + found[1:] + ".", class_="lead")
    if getattr(model, "groups_", None) is not None:
        yield element("p", _counted_by_groups(material))
    yield _pairs(pair for pair in lines if pair[0] != "found")
    repeated = material.stability
    if isinstance(repeated, Stability):
        yield element("h3", "Stability")
        yield element("ul", [element("li", line) for line in str(repeated).splitlines()])
    else:
        yield _note(f"Stability: {repeated}.")


def _counted_by_groups(material: Material) -> str:
    """What the sample is where rows are repeated."""
    count, n_rows = len(material.model.groups_), material.foreground.n_rows
    column = material.asked.get("groups", "").partition("~")[0]
    of = f"{count} groups" + (f" ({column})" if column else "")
    return (
        f"The sample is {of}, not {n_rows} rows: rows of one group are not independent. Whatever is said "
        "of chance counts groups. More rows of the same groups would add little; more groups would."
    )


def _findings(material: Material) -> Iterator[Html]:
    before, after = material.check, material.diagnosis()
    yield element("h3", "Before the fit, of the data")
    if isinstance(before, str):
        yield _note(before)
    else:
        yield from _listed(list(_still_open(before.findings, material.model)), before.about)
    yield element("h3", "After the fit, of the patterns")
    if isinstance(after, str):
        yield _note(after)
        return
    related = [each for each in after.findings if each.code == "covariate"]
    others = [each for each in after.findings if each.code != "covariate"]
    yield from _listed(others, after.about)
    if related:
        yield element("h3", "Metadata that go along with a score")
        told = (each.words.removeprefix("covariate ") for each in related)
        yield element(
            "ul", [element("li", _words(words), ".") for words in told], class_="findings"
        )
        yield _note(RELATED)


RELATED = (
    "What goes along with a score may be what the pattern is: the effect that you look for, or something "
    "that goes along with it, such as a batch."
)


def _listed(findings: Sequence[Finding], about: str) -> Iterator[Html]:
    yield _note(about[:1].upper() + about[1:], ".")
    if not findings:
        yield element("p", "Nothing was found that speaks against them.")
        return
    items = [
        element(
            "li",
            element("strong", each.severity, class_=f"severity {each.severity}"),
            *(" ", _words(each.words), ". "),
            element("em", _words(each.advice)) if each.advice else None,
        )
        for each in findings
    ]
    yield element("ul", items, class_="findings")


def _still_open(findings: Iterable[Finding], model: Any) -> Iterator[Finding]:
    """What the fit has taken care of is no finding any more, or one without advice."""
    for each in findings:
        if each.code == "unequal-units" and model.scale != "none":
            continue
        filled = each.code == "missing-values" and model.missing != "error"
        yield replace(each, advice="") if filled else each


def _words(text: str) -> list[Any]:
    """Text in which names of parameters stand between backquotes."""
    parts = text.split("`")
    return [element("code", part) if i % 2 else part for i, part in enumerate(parts)]


def _select(name: str, label: str, options: Mapping[int, str], chosen: int) -> Html:
    listed = [
        element("option", text, value=str(i), selected=i == chosen) for i, text in options.items()
    ]
    return element("label", f"{label} ", element("select", listed, id=name))


def _scores(
    material: Material, drawn: Sequence[Samples], data: dict[str, Any]
) -> Iterator[Html | None]:
    count = min(len(material.model.components_), MAX_AXES)
    patterns = {i: f"pattern {i + 1}" for i in range(count)}
    # what is the same in the whole foreground colours nothing
    coloured = {i + 1: each["name"] for i, each in enumerate(data["columns"]) if each["varies"]}
    others = [i for i, name in coloured.items() if name not in material.group_columns]
    first = min(others or coloured, default=0)
    yield element(
        "form",
        _select("axis-x", "x:", patterns, 0),
        # the last choice of y is a histogram
        _select("axis-y", "y:", {**patterns, count: "histogram of x"}, 1 if count > 1 else count),
        _select("colour-by", "Colour by:", {0: "nothing", **coloured}, first),
        class_="controls",
        autocomplete="off",
    )
    checked = element("input", type="checkbox", id="show-background", checked=True)
    swatch = element("span", class_="dot", style="background: var(--back)")
    canvas = element(
        "canvas",
        id="plot",
        tabindex="0",
        role="img",
        aria_label="Rows by their scores. Arrow keys go from row to row, and Escape leaves.",
        aria_describedby="plot-status",
    )
    yield element(
        "figure",
        element("div", canvas, element("div", id="tip", hidden=True), class_="plot"),
        element(
            "div",
            element("div", id="legend", role="group", aria_label="Show or hide"),
            element("label", checked, swatch, "background"),
            class_="keys",
        ),
        element("figcaption", element("span", id="plot-status", role="status", aria_live="polite")),
        class_="interactive",
    )
    yield element("noscript", _still(material))
    shown = [(each.name, len(each.scores), each.n_rows) for each in drawn]
    if any(some < total for _, some, total in shown):
        told = ", ".join(f"{some} of {total} {name} rows" for name, some, total in shown)
        yield _note(f"Drawn: {told}, a random sample of those that have scores.")
    if data["left_out"]:
        names = ", ".join(data["left_out"])
        yield _note(f"No colour for {names}: nearly every row has a value of its own, or none has.")
    if len(material.model.components_) > count:
        yield _note(f"Axes are the first {count} patterns.")


def _still(material: Material) -> Html:
    """The first two scores as a picture, where no script runs."""
    fore, back = material.foreground.scores, material.background_scores
    if fore.shape[1] == 1:
        return _note("The score's histogram is on its card, below.")
    return element(
        "figure",
        element(
            "img",
            src=png_source(scatter_png(fore[:, :2], back[:, :2])),
            alt="Scatter of the scores on patterns 1 and 2: vermilion foreground on grey background",
        ),
        element("figcaption", "Patterns 1 (across) and 2 (up); background in grey."),
    )


def _patterns(material: Material) -> Iterator[Html]:
    model = material.model
    unit = "" if model.effects_ is None else EFFECT
    yield _note(f"By {order_in_words(model)}. {unit}")
    yield element("div", cards(material), class_="cards")
    yield element(
        "details",
        element("summary", "What do these numbers mean?"),
        _pairs(MEANINGS, class_="meanings"),
    )


EFFECT = (
    "Bars: how many standard deviations of the background a variable moves when the score moves by one "
    "of its own in the foreground."
)
MEANINGS = (
    (
        "contrast ratio",
        "How many times more of the pattern the foreground has than the background: k(b) by variance "
        "along the pattern itself, k(f) by the score's mean square about the background's mean, which a "
        "shift of the mean raises too.",
    ),
    (
        "p",
        "How often a ratio at least as large arises when rows or groups are assigned to the two datasets "
        "at random. It belongs to a direction of the contrast subspace; that of a pattern inside it is "
        "no smaller.",
    ),
    ("mean shift", "Difference of the score's means in the two datasets."),
    ("skewness", "0 of a symmetric score; its sign says on which side the long tail is."),
    (
        "kurtosis",
        "0 of a Gaussian score. Above: few rows have most of it. Below: flat, or two kinds of rows.",
    ),
    (
        "stability",
        "Mean correlation of the score with that of the same pattern when rows, or groups, are drawn "
        "anew and fitted again. Stable is not new: what is new the ratio says.",
    ),
    (
        "90 % interval",
        "Of each variable by itself. The largest were selected, and are likely smaller.",
    ),
    ("share by group", "How much of the score's spread beyond the background's each group has."),
)


def _rivals(comparison: Comparison) -> Iterator[Html]:
    yield _note(
        "The same rows by other methods, in the same units and principal components. k(b) can be "
        "compared between methods; scales of scores cannot. A silhouette uses labels, which no method "
        "was given: it chooses nothing."
    )
    panels = []
    for each in comparison:
        lines = each.title.splitlines()
        inside: Html = _note("failed")
        if each.scores is not None and each.background_scores is not None:
            inside = _panel(each.name, each.scores, each.background_scores, comparison.groups)
        notes = [_note(line) for line in lines[1:]]
        panels.append(element("figure", element("figcaption", each.name), inside, notes))
    yield element("div", panels, class_="panels")
    if comparison.groups is not None:
        shown = [
            *comparison.group_names[:6],
            *(["others"] if len(comparison.group_names) > 6 else []),
        ]
        yield _note(
            [
                (element("span", class_="dot", style=f"background: var(--c{i})"), f"{name} ")
                for i, name in enumerate(shown)
            ],
            element("span", class_="dot", style="background: var(--back)"),
            "background",
        )


def _panel(name: str, fore: np.ndarray, back: np.ndarray, groups: np.ndarray | None) -> Html:
    if fore.shape[1] == 1:
        rng = np.random.default_rng(0)  # heights that say nothing
        fore, back = (np.column_stack([each, rng.random(len(each))]) for each in (fore, back))
    return element(
        "img",
        src=png_source(scatter_png(fore[:, :2], back[:, :2], 200, 2, groups)),
        alt=f"Scatter of the first two scores by {name}",
    )


def _methods(material: Material) -> Iterator[Html]:
    written = methods(material)
    yield element("p", written.text, id="methods-text", class_="paragraph")
    yield element("button", "Copy", type="button", id="copy", hidden=True)
    yield element(
        "ol",
        [
            element(
                "li",
                element("a", each.text, href=each.address, rel="noreferrer")
                if each.address
                else each.text,
            )
            for each in written.references
        ],
        class_="references",
    )


def _repeat(material: Material) -> Iterator[Html]:
    model = material.model
    if material.command:
        yield element("pre", element("code", material.command), tabindex="0")
    seed = model.random_state
    told = str(seed) if isinstance(seed, int | np.integer) else "none was given"
    arguments = ", ".join(f"{name}={value!r}" for name, value in _options(model))
    yield _pairs(
        [
            ("seed", told),
            ("model", f"{type(model).__name__}({arguments})"),
            ("versions", ", ".join(f"{name} {text}" for name, text in versions().items())),
        ]
    )
