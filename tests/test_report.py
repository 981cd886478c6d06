"""The HTML report: true to the model, escaped, complete in itself, and refused where input is wrong."""

import base64
import json
import re
import struct
import zlib
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from contrica import Background, ContrastiveICA, PlainPCA, ProportionalContrastiveICA, __version__
from contrica.compare import compare_methods
from contrica.errors import DataError, FoundFileError, ParameterError, collected
from contrica.inference import diagnose, explain, stability
from contrica.report import _build, build
from contrica.report import _material as material
from contrica.report._html import Html, element, json_script
from contrica.report._material import Column, Material, Samples
from contrica.report._page import page as page_of
from contrica.report._pictures import histogram_svg, pattern_png, scatter_png
from contrica.report._points import points
from contrica.rows.groups import as_groups

EVIL = "</script><script>alert('x')</script>&amp;\u2028"


class Page(HTMLParser):
    """What a browser would read: elements, their attributes, and text without script and style."""

    VOID = ("meta", "img", "input", "br", "col")

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.words, self.scripts = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} ends what is not open"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    @property
    def points(self):
        return json.loads(self.scripts[0])


def decoded(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def pair(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X, Y = rng.laplace(size=(n, 6)), rng.laplace(size=(n + 50, 6))
    kind = rng.choice([-1, 1], n)
    X[:, :2] += 3 * kind[:, None]
    return X, Y, kind


@pytest.fixture(scope="module")
def fitted():
    X, Y, kind = pair(5)
    names = ["<b>CD3E</b>", "b", "c", "d", "e", "f"]
    X, Y = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=names)
    X.index, Y.index = [f"cell {i}" for i in range(len(X))], [f"rest {i}" for i in range(len(Y))]
    model = ContrastiveICA(2, solver="subspace", random_state=3).fit(X, background=Y)
    return model, X, Y, kind


# --- HTML ---


def test_text_is_escaped_and_html_is_not():
    assert element("p", EVIL, title='"<') == (
        '<p title="&quot;&lt;">&lt;/script&gt;&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;'
        "&amp;amp;\u2028</p>"
    )
    assert element("p", element("b", 1), [None, "<"]) == "<p><b>1</b>&lt;</p>"
    assert element("input", checked=True, id=None, hidden=False) == "<input checked>"
    assert isinstance(element("p"), Html)


def test_json_in_a_page_neither_ends_its_element_nor_changes():
    script = json_script("data", {EVIL: [EVIL]})
    inside = script.removeprefix('<script id="data" type="application/json">')
    inside = inside.removesuffix("</script>")
    assert not set("<>&\u2028") & set(inside)
    assert json.loads(inside) == {EVIL: [EVIL]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_script("data", float("nan"))


def test_no_user_string_becomes_markup(fitted):
    model, X, Y, kind = fitted
    html = build(
        *(model, X),
        background=Y,
        names=[EVIL] * len(X),
        metadata={EVIL: np.where(kind > 0, EVIL, "<i>plain</i>")},
        groups=np.where(np.arange(len(X)) % 5, "<u>", EVIL),
        background_groups=np.arange(len(Y)) % 7,
        title=EVIL,
        command=f"contrica fit {EVIL}",
        asked={EVIL: EVIL},
    )
    page = Page(html)
    assert len(page.scripts) == html.count("<script") == 2
    assert html.count("<u>") == html.count("<i>plain") == html.count("<b>CD3E") == 0
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert page.points["names"][0] == EVIL
    assert page.points["columns"][0]["levels"] == [EVIL.strip(), "<i>plain</i>"]
    assert "<b>CD3E</b>" in page.text
    assert page.open == []


def test_a_page_asks_nothing_of_other_files(fitted):
    model, X, Y, _ = fitted
    page = Page(build(model, X, background=Y, image_shape=(2, 3)))
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    outside = [link for link in links if not link.startswith("#")]
    assert outside == ["https://arxiv.org/abs/2407.02357"]
    sources = [attrs["src"] for _, attrs in page.elements if "src" in attrs]
    assert len(sources) == 3  # two patterns, and what is shown without a script
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "base")]
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "url(" not in build(model, X, background=Y)


def test_links_labels_and_pictures_have_what_a_screen_reader_needs(fitted):
    model, X, Y, _ = fitted
    page = Page(build(model, X, background=Y, image_shape=(2, 3)))
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    targets = {a["href"][1:] for t, a in page.elements if t == "a" and a["href"][0] == "#"}
    assert targets <= ids
    assert all(attrs["alt"] for tag, attrs in page.elements if tag == "img")
    assert all(attrs["aria-label"] for tag, attrs in page.elements if attrs.get("role") == "img")
    assert len(ids) == sum("id" in attrs for _, attrs in page.elements), "an id is used twice"


# --- true to the model ---


def test_points_are_scores_of_all_rows(fitted):
    model, X, Y, kind = fitted
    metadata = pd.DataFrame({"kind": kind, "size": X["b"].abs().to_numpy()})
    html = build(model, X, background=Y, metadata=metadata, background_metadata={"kind": [1] * 450})
    data = Page(html).points
    for i, text in enumerate(data["scores"]):
        expected = np.concatenate([model.transform(X)[:, i], model.transform(Y)[:, i]])
        np.testing.assert_allclose(decoded(text, "<f4"), expected, rtol=1e-6, atol=1e-6)
    assert data["first_background"] == 400
    assert data["names"] == [*X.index, *Y.index]
    assert decoded(data["dataset"], "<u1").tolist() == [0] * 400 + [1] * 450
    first, second = data["columns"]
    assert (first["name"], first["levels"]) == ("kind", ["-1", "1"])
    assert decoded(first["values"], "<u2").tolist() == [*((kind + 1) // 2), *([1] * 450)]
    size = decoded(second["values"], "<f4")
    np.testing.assert_allclose(size[:400], X["b"].abs(), rtol=1e-6)
    assert np.isnan(size[400:]).all()


def test_numbers_on_the_cards_are_those_of_inference(fitted):
    model, X, Y, kind = fitted
    groups = np.where(kind > 0, "up", "down")
    back_groups = np.where(np.arange(len(Y)) % 2, "up", "down")
    page = Page(build(model, X, background=Y, groups=groups, background_groups=back_groups))
    told = explain(model, 0, X, background=Y, groups=groups)
    assert f"kurtosis {told.foreground.kurtosis:+.2f} (background" in page.text
    assert f"skewness {told.foreground.skewness:+.2f} (background" in page.text
    assert abs(told.shift) > 0.01
    assert f"mean shift {told.shift:+.2f} sd" in page.text
    assert f"contrast ratio k(f) {model.source_ratio_[0]:.3g}" in page.text
    assert f"p {model.scree_.p_values[0]:.2g}, the smallest possible" in page.text
    shares = told.group_share
    assert f"up {shares['up']:.0%}" in page.text
    leading = model.effects_[0, np.abs(model.effects_[0]).argmax()]
    assert f"{leading:+.2f}" in page.text


def test_what_was_found_and_what_to_be_careful_about_are_said(fitted):
    model, X, Y, kind = fitted
    text = Page(build(model, X, background=Y, metadata={"kind": kind})).text
    assert "1 pattern stands out from the background, in 400 rows" in text
    assert f"subspace ({model.reason_})" in text
    assert "rows were taken as independent of one another" in text
    assert "kind explains" in text
    assert "does not stand out" in text, "the second pattern is beyond the first"
    assert "stability=100" in text


def test_what_the_fit_takes_care_of_is_no_finding():
    X, Y, _ = pair(1)
    X, Y = X * 10.0 ** np.arange(6), Y * 10.0 ** np.arange(6)
    told = {}
    for scale in ("none", "pooled"):
        model = ContrastiveICA(1, solver="subspace", scale=scale, random_state=0)
        with collected():
            told[scale] = Page(build(model.fit(X, background=Y), X, background=Y)).text
    assert 'set scale="pooled"' in told["none"]
    assert 'set scale="pooled"' not in told["pooled"]


def test_stability_is_shown_as_it_was_computed(fitted):
    model, X, Y, _ = fitted
    found = stability(model, X, background=Y, n_resamples=8, random_state=0)
    by_count = build(model, X, background=Y, stability=8)
    assert by_count == build(model, X, background=Y, stability=found)
    page = Page(by_count)
    assert f"returned in {found.n_found[0]} of 8 resamples of rows" in page.text
    assert "fitting 8 bootstrap resamples of rows" in page.text
    order = np.argsort(-np.abs(model.effects_[0]))
    unit = model.effects_[0, order[0]] / model.components_[0, order[0]]
    low, high = found.intervals[0, order[0]] * unit
    assert f"{low:+.2f} to {high:+.2f}" in page.text


def test_rivals_stand_side_by_side(fitted):
    model, X, Y, _ = fitted
    compared = compare_methods(X, Y, methods=["subspace", "cpca", "pca"], random_state=0)
    page = Page(build(model, X, background=Y, comparison=compared))
    for each in compared:
        assert f"k(b) {each.contrast_ratio[0]:.3g}" in page.text
        alt = f"Scatter of the first two scores by {each.name}"
        assert alt in [attrs.get("alt") for _, attrs in page.elements]
    assert "Other methods" not in Page(build(model, X, background=Y)).text


def paragraph(model, X, Y, **options):
    text = Page(build(model, X, background=Y, **options)).text
    return text[text.index("We looked for patterns") : text.index("To repeat this", 900)]


def test_the_methods_paragraph_says_what_was_run(fitted):
    model, X, Y, _ = fitted
    told = paragraph(model, X, Y)
    assert "400 foreground samples that 450 background samples do not have, over 6 vari" in told
    assert f"contrica {__version__}" in told
    assert "assigned to the datasets 1000 times" in told
    assert "1 of 6 stands out; p = 0.001 for the first" in told
    assert "(random seed 3)" in told
    assert "Hyvärinen" in told
    assert "Kileel" not in told
    assert "principal components" not in told


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            ContrastiveICA(2, solver="paper", n_background=2, n_foreground=2, random_state=0),
            ("Algorithm 2", "Kileel", 'deflation "thin"', "into 2 patterns"),
        ),
        (
            ContrastiveICA(2, solver="joint", n_background=2, n_foreground=2, random_state=0),
            ("least squares", "Kileel", "2 background and 2 foreground"),
        ),
        (
            ProportionalContrastiveICA(
                2, background_scale=0.9, n_background=2, n_foreground=2, random_state=0
            ),
            ("Algorithm 3", "background scale of 0.9", "Kileel"),
        ),
        (
            ContrastiveICA(1, scale="each", solver="subspace", n_foreground=2, n_pcs=4),
            ("In each dataset by itself", "4 leading principal", "directions, 2, was given"),
        ),
    ],
    ids=["paper", "joint", "proportional", "each"],
)
@pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")
def test_other_solvers_have_paragraphs_of_their_own(model, words):
    X, Y, _ = pair(1)
    model.fit(X, background=Y)
    told = paragraph(model, X, Y)
    assert not [each for each in words if each not in told]


def test_shifts_of_the_mean_are_said_to_be_ranked_last_or_left_out():
    X, Y, _ = pair(5)
    X[:, 4] += 4
    model = ContrastiveICA(None, solver="subspace", random_state=0).fit(X, background=Y)
    assert model.only_shifted_.tolist() == [False] * (len(model.components_) - 1) + [True]
    page = Page(build(model, X, background=Y)).text
    assert "By contrast ratio, shifts of the mean last." in page
    assert "a shift of the mean, ranked last" in page
    assert "; the one that only shifts the mean is ranked last." in paragraph(model, X, Y)
    model = ContrastiveICA(random_state=0).fit(X, background=Y)
    told = paragraph(model, X, Y)
    assert "ranked last" not in told
    assert "1 pattern that only shifts the mean of the foreground was not kept." in told
    assert "By contrast ratio." in Page(build(model, X, background=Y)).text


def test_scores_of_a_background_that_was_divided_by_its_own_are_on_its_scale():
    X, Y, _ = pair(2)
    model = ContrastiveICA(2, scale="each", solver="subspace", random_state=0)
    model.fit(X, background=5 * Y + 9)
    data = Page(build(model, X, background=5 * Y + 9)).points
    back = decoded(data["scores"][0], "<f4")[len(X) :]
    expected = (Y - Y.mean(axis=0)) / Y.std(axis=0) @ model.filters_[0]
    np.testing.assert_allclose(back, expected, rtol=1e-4, atol=1e-4)


def test_several_backgrounds_and_gaps():
    X, Y, kind = pair(3)
    X[5] = np.nan
    X[7, 2] = np.nan
    model = ContrastiveICA(1, missing="impute", solver="subspace", random_state=0)
    model.fit(X, background=[Y[:200], Y[200:]])
    html = build(
        *(model, X),
        background=[Y[:200], Y[200:]],
        metadata={"kind": kind},
        background_metadata=[{"kind": [0] * 200}, {"kind": [0] * 250}],
    )
    data = Page(html).points
    assert data["datasets"] == ["foreground", "background 1", "background 2"]
    rows = decoded(data["rows"], "<u4")
    assert rows[:6].tolist() == [0, 1, 2, 3, 4, 6], "a row without any value has no point"
    assert "7 missing values were imputed" in Page(html).text
    assert "200 and 250 background samples" in Page(html).text


def test_many_rows_are_drawn_by_a_sample_and_the_page_says_so(fitted, monkeypatch):
    model, X, Y, _ = fitted
    monkeypatch.setattr(material, "MAX_POINTS", 100)
    html = build(model, X, background=Y)
    page = Page(html)
    assert page.points["n"] == 99
    assert "47 of 400 foreground rows, 52 of 450 background rows" in page.text
    assert html == build(model, X, background=Y)
    rows, names = decoded(page.points["rows"], "<u4"), page.points["names"]
    assert names[:47] == [f"cell {i}" for i in rows[:47]]


# --- columns and pictures ---


def test_columns_are_kinds_or_numbers_or_left_out():
    kinds = Column.of("a", np.array(["x", "y", None, "x", " ", float("nan")], dtype=object))
    assert kinds.levels == ("x", "y")
    assert kinds.values.tolist() == [0, 1, -1, 0, -1, -1]
    few = Column.of("b", np.array(["1", "2", "1", "2"], dtype=object))
    assert few.levels == ("1", "2")
    numbers = Column.of("c", np.array([*"012345678", ""], dtype=object))
    assert numbers.levels == ()
    np.testing.assert_array_equal(numbers.values, [*range(9), np.nan])
    assert Column.of("d", np.array([f"n{i}" for i in range(50)], dtype=object)) is None
    assert Column.of("e", np.array([None, ""], dtype=object)) is None
    assert Column.of("id", np.arange(50).astype(object)) is None
    assert Column.of("age", np.arange(50).repeat(2).astype(object)).levels == ()


def test_a_column_of_names_has_no_colour():
    names = np.array([f"n{i}" for i in range(50)], dtype=object)
    data = points([Samples.of("foreground", np.zeros((50, 1)), {"id": names})])
    assert data["left_out"] == ["id"]
    assert data["columns"] == []


def test_numbers_that_name_donors_are_names_and_no_covariate():
    """Donors 1 to 9 lie on no scale, and say of a row what its group says."""
    rng = np.random.default_rng(0)
    donors = np.repeat(np.arange(1, 10), 12)
    X, Y = rng.laplace(size=(2, 108, 4))
    X[:, 0] *= 4
    model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
    model.fit(X, background=Y, groups=donors, background_groups=donors + 100)
    metadata = {"site": ["here"] * 108, "donor": donors, "groups": donors}
    metadata["age"] = rng.normal(size=108)
    fore = Samples.of("foreground", model.transform(X), metadata)
    back = Samples.of("background", model.transform(Y))
    material = Material(model, fore, (back,), groups=as_groups(donors, 108, "groups", "X"))
    assert material.group_columns == {"donor", "groups"}
    assert not [each for each in material.diagnosis().findings if "donor" in each.words]
    html = page_of(material)
    page = Page(html)
    site, donor, age = page.points["columns"]  # one of the two columns of donors is enough
    assert (site["varies"], age["levels"]) == (False, [])
    assert sorted(donor["levels"]) == list("123456789")
    options = re.search(r'id="colour-by">(.*?)</select>', html).group(1)
    assert re.findall(r">(\w+)<", options) == ["nothing", "donor", "age"]
    assert re.search(r"selected>(\w+)<", options).group(1) == "age", "groups have colours of last"
    assert "The sample is 9 groups, not 108 rows" in page.text


@pytest.mark.parametrize("kind", ["number", "date", "text of a date"])
def test_what_is_measured_once_for_each_group_is_a_covariate(kind):
    """It tells all groups apart, as their names do, and is no name; codes without gaps are."""
    rng = np.random.default_rng(0)
    donors = np.repeat(np.arange(12), 30)
    X, Y = rng.laplace(size=(2, 360, 4))
    X[:, 0] += donors * rng.choice([-1, 1], 360) + donors
    model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
    model.fit(X, background=Y, groups=donors, background_groups=donors + 100)
    days = np.datetime64("2024-01-01") + 3 * donors
    measured = {"number": 20 + 0.7 * donors, "date": days, "text of a date": days.astype(str)}
    metadata = {"bmi": measured[kind], "code": donors + 1, "same": donors.astype(str)}
    fore = Samples.of("foreground", model.transform(X), metadata)
    material = Material(
        model,
        fore,
        (Samples.of("background", model.transform(Y)),),
        groups=as_groups(donors, 360, "groups", "X"),
    )
    assert material.group_columns == {"bmi", "code", "same"}
    told = [each for each in material.diagnosis().findings if each.code.startswith("covariate")]
    assert "covariate" in [each.code for each in told]
    assert all("covariate bmi" in each.words for each in told)
    if kind != "number":
        assert any("12 different dates" in each.words for each in told)


def of_donors():
    """Twelve donors with a pattern and eight without, but for one, over three sites that are numbered."""
    rng = np.random.default_rng(0)
    X, Y = (
        pd.DataFrame(rng.laplace(size=(count * 30, 4)), columns=list("abcd")) for count in (12, 8)
    )
    Y["donor"], X["donor"] = (np.arange(len(part)) // 30 + 10 for part in (Y, X))
    Y["donor"] += 40
    X["site"], Y["site"] = np.array([2, 1, 3])[X["donor"] % 3], 1
    signs = rng.choice([-1, 1], len(X))
    X["a"] += np.where(X["site"] == 2, 14 + signs, 5 * signs)  # which no line through 1, 2, 3 fits
    Y.loc[Y["donor"] == 53, "a"] += 10 * rng.choice([-1, 1], 30)
    return X, Y


@pytest.mark.parametrize("given", ["apart", "Background", "several"])
def test_a_report_finds_what_diagnose_finds(given, monkeypatch):
    monkeypatch.setattr(_build, "page", lambda material: material)
    X, Y = of_donors()
    rows, back = X[list("abcd")], Y[list("abcd")]
    labels = {"groups": X["donor"], "background_groups": Y["donor"]}
    if given == "Background":
        back = Background(back, groups=labels.pop("background_groups"))
    if given == "several":
        back = [back[:120], back[120:]]
        labels["background_groups"] = [Y["donor"][:120], Y["donor"][120:]]
    model = ContrastiveICA(1, solver="subspace", n_foreground=1, random_state=0)
    model.fit(rows, background=back, **labels)
    metadata = {"site": X["site"].astype(str)}
    expected = diagnose(model, rows, background=back, covariates=metadata, **labels)
    assert {"in-background-groups", "covariate"} <= set(expected.codes)
    for own in (metadata, {"site": X["site"]}, {"site": pd.Categorical(X["site"])}):
        material = build(model, rows, background=back, metadata=own, **labels)
        assert str(material.diagnosis()) == str(expected), (
            "few whole numbers are kinds, as in the shell"
        )


def pixels(png):
    """Of a PNG file without filters, read by the letter of the format."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size]) == (
            zlib.crc32(kind + data),
        )
        found[kind] = data
        at += 12 + size
    width, height = struct.unpack(">2I", found[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), dtype=np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_a_pattern_is_vermilion_above_zero_and_blue_below():
    drawn = pixels(pattern_png(np.array([2.0, -2.0, 0.0, 1.0, 0.0, -1.0]), (2, 3)))
    assert drawn.shape == (2, 3, 3)
    assert drawn[0].tolist() == [[213, 94, 0], [0, 114, 178], [255, 255, 255]]
    assert drawn[1, 0].tolist() == [234, 174, 128]
    assert pixels(pattern_png(np.zeros(4), (2, 2))).min() == 255


def test_a_scatter_has_the_foreground_on_top_and_up_is_up():
    fore = np.array([[0.0, 0.0], [1.0, 1.0]])
    drawn = pixels(scatter_png(fore, np.array([[0.0, 0.0], [1.0, 0.0]]), 50, 3))
    vermilion = (drawn == (213, 94, 0)).all(axis=2)
    grey = (drawn == (170, 170, 170)).all(axis=2)
    assert vermilion[:25, 25:].any()
    assert vermilion[25:, :25].any()
    assert not vermilion[:25, :25].any()
    assert grey[25:, 25:].any()
    assert not grey[25:, :25].any(), "the foreground lies on it"
    assert not grey[:25].any()


def test_groups_have_colours_of_their_own_and_rows_without_one_are_grey():
    fore = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    drawn = pixels(scatter_png(fore, np.empty((0, 2)), 50, 3, np.array([0, 1, -1])))
    assert drawn[40:, :10].reshape(-1, 3).min(axis=0).tolist() == [213, 94, 0]
    assert drawn[:10, 40:].reshape(-1, 3).min(axis=0).tolist() == [0, 114, 178]
    assert drawn[:10, :10].reshape(-1, 3).min(axis=0).tolist() == [170, 170, 170]


def test_a_histogram_is_drawn_of_constant_scores_too():
    svg = histogram_svg(np.zeros(5), np.zeros(5), "a <label>")
    assert "nan" not in svg
    assert "a &lt;label&gt;" in svg


# --- bad input ---


def test_what_cannot_be_used_is_refused_in_one_sentence(fitted, tmp_path):
    model, X, Y, kind = fitted
    for code, kind_of, options in (
        ("metadata-length", DataError, {"metadata": {"kind": kind[:-1]}}),
        ("metadata-length", DataError, {"background_metadata": {"kind": kind}}),
        ("not-columns", ParameterError, {"metadata": kind}),
        ("names-length", DataError, {"names": ["a", "b"]}),
        ("image-shape", ParameterError, {"image_shape": (2, 2)}),
        ("image-shape", ParameterError, {"image_shape": "2x3"}),
        ("too-small", ParameterError, {"stability": 1}),
    ):
        with pytest.raises(kind_of) as caught:
            model.report(tmp_path / "report.html", X, background=Y, **options)
        assert caught.value.code == code
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ParameterError) as caught:
        build(PlainPCA(1).fit(X), X, background=Y)
    assert caught.value.code == "unknown-model"


def test_a_report_is_written_and_never_over_another_file(fitted, tmp_path):
    model, X, Y, _ = fitted
    path = tmp_path / "report.html"
    model.report(path, X, background=Y)
    assert path.read_text(encoding="utf-8") == build(model, X, background=Y)
    with pytest.raises(FoundFileError):
        model.report(path, X, background=Y, title="other")
    model.report(path, X, background=Y, title="other", overwrite=True)
    assert re.search(r"<title>other – contrica report</title>", path.read_text(encoding="utf-8"))


def test_the_script_stays_short():
    from contrica.report._page import STATIC, files

    static = files("contrica.report") / "static"
    lengths = {name: len((static / name).read_text("utf-8").splitlines()) for name in STATIC}
    assert lengths["report.js"] <= 400
    assert lengths["report.css"] <= 200
