"""What a notebook shows: models and comparisons as tables, figures as images, progress as a bar."""

import builtins
import logging
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrica
from contrica import ContrastiveICA, inference
from contrica.compare import compare_methods
from contrica.datasets import make_synthetic
from contrica.errors import PackageMissingError, collected
from contrica.markup import Summary, bars, table
from contrica.progress import steps
from tests.said import raises

ESTIMATORS = [
    contrica.ContrastiveICA(2, random_state=0),
    contrica.ContrastiveICA(2, solver="subspace", random_state=0),
    contrica.ProportionalContrastiveICA(2, random_state=0),
    contrica.ContrastivePCA(2, random_state=0),
    contrica.ProbabilisticContrastivePCA(2),
    contrica.GeneralizedContrastivePCA(2),
    contrica.PlainICA(2),
    contrica.PlainPCA(2),
]
EVIL = "<script>alert('&')</script>"


class Page(HTMLParser):
    """Texts of all cells, and whether every element is closed."""

    def __init__(self, html):
        super().__init__()
        self.cells, self.open, self.found = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th", "span", "b") and self.cells:
            self.cells[-1] += data


def ours(html):
    """Without the diagram of scikit-learn's, which is folded below."""
    return re.sub(r"<details>.*</details>", "", html, flags=re.S)


@pytest.fixture(scope="module")
def data():
    found = make_synthetic(5, n_samples=600, random_state=0)
    names = ["a", "b", "c", EVIL, "e"]
    return [pd.DataFrame(rows, columns=names) for rows in (found.foreground, found.background)]


def fit(estimator, data):
    X, Y = data
    with collected():
        return sklearn.clone(estimator).fit(X, background=Y)


# --- models ---


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: str(each)[:30])
def test_a_fitted_model_is_shown_as_a_table_of_its_patterns(estimator, data):
    model = fit(estimator, data)
    html = model._repr_html_()
    assert model._repr_mimebundle_()["text/html"].startswith(html[:200])
    page = Page(ours(html))
    assert not page.open
    assert page.cells[0] == "pattern"
    names = [attrs for tag, attrs in page.found if tag == "svg"]
    assert len(names) == 2
    # every variable is a bar, and one of the bars is named as the pattern is led
    assert [tag for tag, _ in page.found].count("rect") == 2 * 5
    ratio = model.source_ratio_ if getattr(model, "ranked_by_", "") == "source_ratio" else None
    first = (model.contrast_ratio_ if ratio is None else ratio)[0]
    assert f"{first:.3g}" in page.cells
    assert EVIL not in html
    assert "script" not in {tag for tag, _ in page.found}
    assert "http" not in ours(html)


def test_evidence_and_groups_are_in_the_table(data):
    X, Y = data
    groups = np.arange(600) // 60
    model = ContrastiveICA(3, solver="subspace", random_state=0)
    with collected():
        model.fit(X, background=Y, groups=groups, background_groups=groups + 100)
    page = Page(ours(model._repr_html_()))
    assert {"p", "groups"} <= set(page.cells)
    assert f"{model.scree_.p_values[0]:.2g}" in page.cells
    assert any(cell.startswith("carried by ") for cell in page.cells)
    stays = [cell for cell in page.cells if cell == "does not stand out"]
    assert len(stays) == max(0, 3 - model.n_foreground_)


def test_a_model_that_is_not_fitted_is_shown_as_scikit_learn_does():
    model = ContrastiveICA(2)
    assert "sk-" in model._repr_html_()
    assert "contrica" not in re.sub(r"https?://\S+", "", model._repr_html_()).split("<style>")[0]
    assert not model._repr_html_().startswith("<style>\n.contrica{")


def test_the_display_of_scikit_learn_as_text_turns_html_off(data):
    model = fit(ESTIMATORS[3], data)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}
    assert model._repr_mimebundle_()["text/plain"] == repr(model)


def test_a_pipeline_shows_its_own_diagram(data):
    pipeline = make_pipeline(StandardScaler(), fit(ESTIMATORS[3], data))
    assert "ContrastivePCA" in pipeline._repr_html_()


def test_a_model_that_was_loaded_is_shown(data, tmp_path):
    model = fit(ESTIMATORS[1], data)
    model.save(tmp_path / "m.npz")
    again = contrica.load(tmp_path / "m.npz")
    assert ours(again._repr_html_()) == ours(model._repr_html_())


def test_an_old_model_is_shown():
    from pathlib import Path

    model = contrica.load(Path(__file__).parent / "saved" / "model.npz")
    assert Page(ours(model._repr_html_())).cells[0] == "pattern"


# --- summaries, comparisons ---


def test_a_summary_is_text_and_a_table(data):
    told = fit(ESTIMATORS[1], data).summary()
    assert isinstance(told, str)
    assert str(told) == "\n".join(told.splitlines())
    assert pickle.loads(pickle.dumps(told)) == told
    page = Page(told._repr_html_())
    assert not page.open
    assert page.cells[0] == "found"
    assert " ".join(page.cells).replace("  ", " ").count("pattern 1") == 1
    assert EVIL not in told._repr_html_()
    assert Page(Summary("a line without a name")._repr_html_()).cells == [
        "",
        "a line without a name",
    ]


def test_a_comparison_is_a_table_with_what_was_noted(data):
    X, Y = data
    labels = np.where(np.arange(600) % 2, "a", "b")
    with collected():
        found = compare_methods(X, Y, labels=labels, methods=["subspace", "pca"], random_state=0)
    page = Page(found._repr_html_())
    assert not page.open
    assert {"method", "k(b) 1", "k(f) 2", "silhouette (uses labels)", "notes"} <= set(page.cells)
    assert [result.name for result in found if result.name in page.cells] == [r.name for r in found]
    assert f"{found['pca'].contrast_ratio[0]:.3g}" in page.cells


def test_a_method_that_failed_is_in_the_table_with_its_error(data, monkeypatch):
    X, Y = data

    def fail(*_, **__):
        raise ValueError(EVIL)

    monkeypatch.setattr(contrica.PlainPCA, "fit", fail)
    with collected():
        found = compare_methods(X, Y, methods=["gcpca", "pca"])
    html = found._repr_html_()
    assert EVIL in Page(html).cells  # as text
    assert EVIL not in html


def test_bars_grow_from_a_line_at_zero():
    html = bars([3.0, -1.0], ["up", "down"], ["+3", "-1"])
    (_, up), (_, down) = [each for each in Page(html).found if each[0] == "rect"]
    assert float(up["height"]) == pytest.approx(3 * float(down["height"]), rel=0.02)
    assert float(up["y"]) + float(up["height"]) == pytest.approx(float(down["y"]), abs=0.11)
    assert up["fill"] != down["fill"]
    assert 'aria-label="bars: up +3, down -1"' in html
    assert "nan" not in bars([0.0], ["none"], ["0"])


def test_cells_are_escaped_and_numbers_short():
    page = Page(table(["<b>"], [["a & b", 1 / 3, None, float("nan")]]))
    assert page.cells == ["<b>", "a & b", "0.333", "", ""]


# --- progress ---


def test_progress_is_logged_by_tenths(caplog):
    with caplog.at_level(logging.INFO, logger="contrica"):
        assert list(steps(range(30), 30, "reading", "rows")) == list(range(30))
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"reading: {i} of 30 rows" for i in range(3, 31, 3)]


def test_stability_shows_a_bar_where_asked(data, capsys):
    X, Y = data
    model = fit(ESTIMATORS[1], data)
    with collected():
        quiet = inference.stability(model, X, background=Y, n_resamples=2, random_state=0)
        assert "%" not in capsys.readouterr().err
        shown = inference.stability(
            model, X, background=Y, n_resamples=2, random_state=0, verbose=True
        )
    assert "stability, resamples: 100%" in capsys.readouterr().err
    np.testing.assert_array_equal(shown.index, quiet.index)


def test_a_bar_without_tqdm_is_refused_before_the_work_begins(data, monkeypatch):
    X, Y = data
    model = fit(ESTIMATORS[1], data)
    real = builtins.__import__

    def blocked(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked)
    for call in (inference.stability, inference.split_reliability):
        with raises(PackageMissingError, "package-missing", "verbose"):
            call(model, X, background=Y, verbose=True)


# --- a notebook that is executed ---

CELLS = [
    """
import warnings; warnings.simplefilter("ignore")
from contrica import ContrastiveICA, plots
from contrica.datasets import load_digits_on_photos
data = load_digits_on_photos(400)
model = ContrastiveICA(2, solver="subspace", random_state=0)
model.fit(data.foreground, background=data.background)
scores = model.transform(data.foreground)
model""",
    "model.summary()",
    "plots.scatter(scores, data.labels, label_names=data.label_names);",
    "plots.images(model, data.image_shape);",
    """
ax = plots.new_figure().subplots()
plots.scatter(scores, ax=ax);""",
]


@pytest.mark.slow
def test_an_executed_notebook_has_tables_and_images_in_its_outputs(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.delenv("MPLBACKEND")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    found = [{kind for out in cell.outputs for kind in out.get("data", {})} for cell in book.cells]
    assert "text/html" in found[0]
    assert "text/html" in found[1]
    assert "image/png" in found[2]
    assert "image/png" in found[3]
    assert "image/png" not in found[4]  # on axes of the caller's, which pyplot does not know
    (shown,) = [out for out in book.cells[0].outputs if "data" in out]
    assert "leading variables" in shown["data"]["text/html"]
