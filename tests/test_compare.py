import csv
import os
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import silhouette_score
from typer.testing import CliRunner

from contrica import Background, ContrastiveICA, compare, plots
from contrica.cli import app
from contrica.compare import METHODS, compare_methods
from contrica.datasets import load_digits_on_photos, make_synthetic
from contrica.errors import (
    DataError,
    DelicateDataWarning,
    FeaturesError,
    FileError,
    FileMissingError,
    GroupsError,
    ParameterError,
    PatternWarning,
)
from contrica.labels import read_labels
from contrica.rows import read_table
from tests.said import raises, warns

runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})

# quick ones, enough where it does not matter which methods run
QUICK = ("cpca", "pca")


def run(*arguments):
    return runner.invoke(app, ["compare", *(str(argument) for argument in arguments)])


def said(result):
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def data():
    return load_digits_on_photos(600)


# Whole images have mean zero, and so a direction in which nothing varies; a part of them has none.
PART = slice(10, 40)


def compared(data, **options):
    options = {"n_pcs": 8, "random_state": 0, **options}
    return compare_methods(data.foreground[:, PART], data.background[:, PART], **options)


@pytest.fixture(scope="module")
def whole(data):
    return compared(data, labels=data.labels)


# --- the function ---


def test_every_method_is_run_in_order(whole):
    assert [result.key for result in whole] == list(METHODS)
    assert len(whole) == 10
    names = [METHODS[key].name for key in ("auto", "cica", "joint", "subspace")]
    assert names == ["cICA", "cICA (paper)", "cICA (joint)", "cICA (subspace)"]
    for result in whole:
        assert result.error is None, result.error
        assert result.choice
        assert result.seconds > 0
        assert result.scores.shape == result.background_scores.shape == (600, 2)


def test_a_comparison_prints_as_a_table(whole):
    heading, *lines = str(whole).splitlines()
    assert heading.split() == [
        "method",
        "k(b)",
        "1",
        "k(b)",
        "2",
        "k(f)",
        "1",
        "k(f)",
        "2",
        "silhouette",
        "(uses",
        "labels)",
        "seconds",
        "chose",
    ]
    assert len(lines) == len(whole)
    for line, result in zip(lines, whole, strict=True):
        assert line.startswith(f"{result.name} ")
        assert f" {result.contrast_ratio[0]:.3g} " in line
        assert line.endswith(result.choice)


def test_every_method_has_the_same_contrast_ratio_along_its_patterns(whole, data):
    """One definition of k(b) in the whole column, whatever the method optimises or ranks by."""
    X, Y = data.foreground[:, PART], data.background[:, PART]
    for result in whole:
        fore, back = (rows @ result.model.components_.T for rows in (X, Y))
        expected = fore.var(axis=0) / back.var(axis=0)
        assert_allclose(result.contrast_ratio, expected, rtol=1e-6, err_msg=result.name)
        assert f"k(b) {expected[0]:.3g}, {expected[1]:.3g}" in result.title


def test_source_ratios_are_of_the_filters_and_count_the_mean(whole, data):
    X, Y = data.foreground[:, PART], data.background[:, PART]
    found = [result for result in whole if result.source_ratio is not None]
    assert [r.key for r in found] == ["auto", "cica", "joint", "subspace", "proportional"]
    for result in found:
        fore, back = ((rows - Y.mean(axis=0)) @ result.model.filters_.T for rows in (X, Y))
        expected = np.mean(fore**2, axis=0) / back.var(axis=0)
        assert_allclose(result.source_ratio, expected, rtol=1e-6, err_msg=result.name)


def test_both_ratios_have_columns_of_their_own(whole, data):
    columns, rows = whole.table()
    assert columns[:5] == [
        "method",
        *(f"{x}_ratio_{i}" for x in ("contrast", "source") for i in (1, 2)),
    ]
    for row, result in zip(rows, whole, strict=True):
        source = [None, None] if result.source_ratio is None else result.source_ratio.tolist()
        assert row[:5] == [result.key, *result.contrast_ratio, *source]
    columns, _ = compared(data, methods=QUICK).table()
    assert not [name for name in columns if name.startswith("source_ratio")]


def test_auto_says_which_solver_it_took(whole):
    model = whole["auto"].model
    assert (model.solver, model.projection_) == ("auto", "filter")
    assert whole["auto"].choice == f"subspace, l = {model.n_foreground_}"
    synthetic = make_synthetic(5, n_samples=20_000, random_state=0)
    found = compare_methods(
        synthetic.foreground, synthetic.background, methods=["auto"], random_state=0
    )["auto"]
    assert found.choice.startswith("joint, r = ")


def test_silhouettes_are_those_of_the_scores(whole, data):
    for result in whole:
        assert result.silhouette == pytest.approx(silhouette_score(result.scores, data.labels))


def test_labels_change_nothing_but_the_silhouette(whole, data):
    without = compared(data)
    assert without.groups is None
    for one, other in zip(without, whole, strict=True):
        assert one.silhouette is None
        assert one.choice == other.choice
        assert_array_equal(one.scores, other.scores)


def test_a_row_is_the_fit_of_its_estimator_whatever_else_is_run(whole, data):
    alone = compared(data, methods=["cica"])
    model = ContrastiveICA(2, n_pcs=8, solver="paper", random_state=0)
    with pytest.warns(PatternWarning) as caught:
        model.fit(data.foreground[:, PART], background=data.background[:, PART])
    for result in (alone["cica"], whole["cica"]):
        assert_array_equal(result.model.components_, model.components_)
        said = [str(warning) for warning in result.warnings]
        assert said == [str(warning.message) for warning in caught]
        assert {type(warning) for warning in result.warnings} == {PatternWarning}


def test_a_generator_seeds_all_methods_alike(data):
    first, second = (
        compared(data, methods=["cica", "proportional"], random_state=np.random.default_rng(3))
        for _ in range(2)
    )
    seeds = {result.model.random_state for result in first}
    assert len(seeds) == 1
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one.scores, other.scores)


def test_one_method_failing_does_not_lose_the_others(data, monkeypatch):
    class Broken:
        def fit(self, X, background):
            try:
                raise AttributeError("first")
            except AttributeError as first:
                try:
                    raise ValueError("second") from first
                except ValueError:
                    raise np.linalg.LinAlgError("did not converge") from first

    monkeypatch.setitem(METHODS, "pca", METHODS["pca"]._replace(build=lambda *_: Broken()))
    found = compare_methods(data.foreground, data.background, labels=data.labels, methods=QUICK)
    assert isinstance(found["pca"].error, np.linalg.LinAlgError)
    last = found["pca"].error
    chain = (last, last.__cause__, last.__context__, last.__context__.__cause__)
    assert [str(each) for each in chain[2:]] == ["second", str(chain[1])]
    assert [each.__traceback__ for each in chain] == [None] * 4  # they would keep the data
    assert found["pca"].scores is None
    assert "failed" in found["pca"].title
    assert found["cpca"].error is None
    columns, rows = found.table()
    failed = dict(zip(columns, rows[1], strict=True))
    assert failed["contrast_ratio_1"] is None
    assert failed["error"] == "did not converge"
    with raises(DataError, "all-failed") as said:
        compare_methods(data.foreground, data.background, methods=["pca"])
    assert "did not converge. " in str(said.value)
    assert isinstance(said.value.__cause__, np.linalg.LinAlgError)


def test_warnings_stay_with_their_method(data):
    X = data.foreground.copy()
    X[:, 3] = 1.0
    found = compare_methods(X, data.background, methods=["gcpca", "pca"])
    for result in found:
        assert any("constant in X (x3)" in str(warning) for warning in result.warnings)


def test_rows_without_a_label_stay_out_of_the_silhouette(data):
    labels = [None if i % 7 == 0 else str(label) for i, label in enumerate(data.labels)]
    with warns(DelicateDataWarning, "unlabelled") as said:
        found = compare_methods(data.foreground, data.background, labels=labels, methods=["pca"])
    assert "86 of 600 rows" in str(said[0].message)
    kept = np.arange(600) % 7 != 0
    expected = silhouette_score(found["pca"].scores[kept], data.labels[kept])
    assert found["pca"].silhouette == pytest.approx(expected)
    assert found.silhouette_rows == found.n_labelled == 514


def test_silhouettes_of_many_rows_are_sampled_with_the_seed(data, monkeypatch):
    monkeypatch.setattr(compare._methods, "SILHOUETTE_ROWS", 100)
    calls = [
        compare_methods(
            data.foreground, data.background, labels=data.labels, methods=QUICK, random_state=seed
        )
        for seed in (0, 0, 1)
    ]
    values = [found["pca"].silhouette for found in calls]
    assert calls[0].silhouette_rows == 100
    assert calls[0].n_labelled == 600
    assert values[0] == values[1] != values[2]


def test_groups_are_ordered_as_numbers_where_they_are(data):
    labels = np.arange(600) % 12
    found = compare_methods(data.foreground, data.background, labels=labels, methods=["pca"])
    assert found.group_names == tuple(str(i) for i in range(12))
    assert_array_equal(found.groups, labels)


@pytest.mark.parametrize(
    ("change", "cls", "code", "words"),
    [
        ({"labels": np.zeros(600)}, DataError, "groups", "1 group"),
        ({"labels": np.arange(600)}, DataError, "groups", "600 group"),
        ({"labels": np.arange(599) % 2}, DataError, "shape", "(599,), but there are 600"),
        ({"labels": [None] * 600}, DataError, "groups", "0 group"),
        ({"methods": ["umap"]}, ParameterError, "unknown-choice", 'methods="umap"'),
        ({"methods": []}, ParameterError, "empty", "gcpca"),
        ({"n_components": 0}, ParameterError, "too-small", "n_components=0"),
        ({"n_pcs": 99}, ParameterError, "too-large", "n_pcs=99 is more than the 64"),
        ({"n_pcs": "many"}, ParameterError, "unknown-choice", 'n_pcs="many"'),
        ({"random_state": -1}, ParameterError, "bad-seed", "random_state=-1"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_fitted(
    data, change, cls, code, words, monkeypatch
):
    monkeypatch.setattr(compare._methods, "_run", lambda *_: pytest.fail("a method was run"))
    with raises(cls, code, *change) as said:
        compare_methods(data.foreground, data.background, **change)
    assert words in str(said.value)


def test_bad_data_are_an_error_not_a_table_of_failures(data):
    holed = data.foreground.copy()
    holed[0, 0] = np.nan
    with pytest.raises(DataError, match="NaN"):
        compare_methods(holed, data.background)
    with raises(FeaturesError, "width", "background") as said:
        compare_methods(data.foreground, data.background[:, :63])
    assert "63" in str(said.value)
    assert "64" in str(said.value)
    with raises(DataError, "no-background", "background"):
        compare_methods(data.foreground, None)


# --- labels from files ---


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "a\nb\na\n"),
        ("l.csv", "group\na\nb\na\n"),
        ("l.txt", "a\nb\na\n\n"),
        ("l.csv", "r1,a\nr2,b\nr3,a\n"),
        ("l.csv", ",group\nr1,a\nr2,b\nr3,a\n"),
        ("l.tsv", "group\nr1\ta\nr2\tb\nr3\ta\n"),
    ],
)
def test_labels_are_read_with_and_without_headings_and_row_names(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    labels = read_labels(tmp_path / name, 3, np.array(["r1", "r2", "r3"]))
    assert list(labels) == ["a", "b", "a"]


def test_labels_that_are_not_available_are_empty(tmp_path):
    (tmp_path / "l.csv").write_text('a\nNA\n""\na\n')
    assert list(read_labels(tmp_path / "l.csv", 4)) == ["a", "", "", "a"]


def test_doubtful_labels_warn(tmp_path):
    (tmp_path / "l.csv").write_text("group\na\na\nb\nb\n")
    with warns(DelicateDataWarning, "heading") as said:
        read_labels(tmp_path / "l.csv", 5)
    assert "'group', occurs once only" in str(said[0].message)
    (tmp_path / "l.csv").write_text("r1,a\nr2,a\n")
    with warns(DelicateDataWarning, "names-missing"):
        read_labels(tmp_path / "l.csv", 2)


@pytest.mark.parametrize(
    ("name", "content", "cls", "code"),
    [
        ("l.xlsx", b"a\nb\n", FileError, "file-type"),
        ("l.csv", None, FileMissingError, "file-missing"),
        ("l.csv", b"\xff\xfe\x00", FileError, "unreadable"),
        ("l.csv", b"\n\n", FileError, "empty"),
        ("l.csv", b"r1,a,x\nr2,b,x\n", FileError, "columns"),
        ("l.csv", b"r1,a\nb\n", FileError, "columns"),
        ("l.csv", b"a\nb\na\nb\n", FileError, "n-labels"),
        ("l.csv", b"r2,a\nr1,b\n", FileError, "order"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(name, content, cls, code, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with raises(cls, code, "labels") as said:
        read_labels(path, 2, np.array(["r1", "r2"]))
    assert str(path) in str(said.value)


# --- the figure ---


def test_small_multiples_show_every_method_with_one_legend(rng):
    scores = [rng.standard_normal((40, 2)) for _ in range(5)]
    labels = np.arange(40) % 3 - 1
    panels = plots.small_multiples(
        [*scores, None],
        list("abcdef"),
        labels,
        backgrounds=[*(points[:7] for points in scores), None],
        label_names=["no", "yes"],
    )
    assert [ax.get_title() for ax in panels] == list("abcdef")
    for ax, points in zip(panels, scores, strict=False):
        under, drawn, *shown = ax.collections
        assert_allclose(under.get_offsets(), points[:7])
        order = [int(np.argmin(np.abs(points - at).sum(axis=1))) for at in drawn.get_offsets()]
        assert sorted(order) == list(range(40))
        colours = [shown[group].get_facecolor()[0, :3] for group in labels[order]]
        assert_allclose(drawn.get_facecolor()[:, :3], colours)
        assert ax.get_legend() is None
    assert not panels[-1].collections
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.texts] == ["background", "no", "yes", "no label"]


def test_far_rows_do_not_set_the_limits(rng):
    scores = rng.standard_normal((1000, 2))
    scores[0] = 1e6
    (ax,) = plots.small_multiples([scores], ["one"])
    assert ax.get_xlim()[1] < 10
    assert ax.get_ylim()[1] < 10


def test_small_multiples_of_one_pattern_are_histograms(rng):
    axes = plots.small_multiples([rng.standard_normal((40, 1))] * 2, ["a", "b"])
    assert len(axes) == 2
    for ax in axes:
        areas = [patch.get_height() * patch.get_width() for patch in ax.patches]
        assert sum(areas) == pytest.approx(1)


def test_a_legend_of_very_many_groups_is_cut(rng):
    (ax,) = plots.small_multiples([rng.standard_normal((90, 2))], ["a"], np.arange(90) % 45)
    texts = [text.get_text() for text in ax.figure.legends[0].texts]
    assert len(texts) == plots.MAX_SHOWN
    assert texts[-1] == "… and more"


# --- the shell ---


@pytest.fixture
def files(tmp_path, data):
    names = [f"p{i}" for i in range(12)]
    for name, rows in (("fore", data.foreground), ("back", data.background)):
        index = [f"{name}{i}" for i in range(300)]
        pd.DataFrame(rows[:300, 20:32], columns=names, index=index).to_csv(tmp_path / f"{name}.csv")
    groups = np.array(data.label_names)[data.labels[:300]]
    index = [f"fore{i}" for i in range(300)]
    pd.DataFrame({"digits": groups}, index=index).to_csv(tmp_path / "labels.csv")
    return tmp_path


def test_compare_prints_a_table_and_writes_nothing_without_a_folder(files, monkeypatch):
    before = sorted(os.listdir(files))
    monkeypatch.chdir(files)
    result = run("fore.csv", "--background", "back.csv", "--n-pcs", 6)
    assert result.exit_code == 0, result.output
    for method in METHODS.values():
        assert re.search(rf"│ {re.escape(method.name)} ", result.output), method.name
    assert "silhouette" not in result.output
    heads = [line.split("┃") for line in result.output.splitlines() if line.startswith("┃")]
    first, second = (" ".join(line[i].strip() for line in heads).strip() for i in (2, 3))
    assert (first, second) == (
        "contrast ratio k(b), along patterns",
        "source ratio k(f), along filters",
    )
    assert "contrast ratio k(b): variance along each pattern" in said(result)
    assert "source ratio k(f): mean square of each source" in said(result)
    assert sorted(os.listdir(files)) == before


def test_one_background_is_compared(files):
    twice = ("--background", files / "back.csv") * 2
    result = run(files / "fore.csv", *twice)
    assert result.exit_code != 0
    assert "--background was given 2 times" in said(result)


def test_compare_with_labels_says_so_and_writes_its_files(files):
    out = files / "out"
    result = run(
        files / "fore.csv",
        *("--background", files / "back.csv", "--labels", files / "labels.csv"),
        *("--methods", "cica, pca", "--n-pcs", 6, "--components", 2, "--seed", 3, "--out", out),
    )
    assert result.exit_code == 0, result.output
    assert "silhouette (uses labels): " in said(result)
    assert "on all 300 labelled rows" in said(result)
    written = [
        f"{name}_{key}.csv"
        for name in ("background_scores", "patterns", "scores")
        for key in ("cica", "pca")
    ]
    always = ["comparison.csv", "comparison.png", "metadata.csv", "run.toml"]
    assert sorted(os.listdir(out)) == sorted([*always, *written])
    with open(out / "comparison.csv", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    fore, back = (read_table(files / name).values for name in ("fore.csv", "back.csv"))
    labels = pd.read_csv(files / "labels.csv").digits
    expected = compare_methods(
        *(fore, back),
        labels=labels,
        methods=["cica", "pca"],
        n_pcs=6,
        random_state=3,
    )
    for row, found in zip(rows, expected, strict=True):
        assert row["method"] == found.key
        ratios = [float(row[f"contrast_ratio_{i}"]) for i in (1, 2)]
        assert_allclose(ratios, found.contrast_ratio)
        sources = [row[f"source_ratio_{i}"] for i in (1, 2)]
        if found.source_ratio is None:
            assert sources == ["", ""]
        else:
            assert_allclose([float(ratio) for ratio in sources], found.source_ratio)
        assert float(row["silhouette_uses_labels"]) == pytest.approx(found.silhouette)
        patterns = read_table(out / f"patterns_{found.key}.csv")
        assert_allclose(patterns.values, found.model.components_.T)
        assert patterns.rows[0] == "p0"
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_a_failing_method_has_a_row_that_says_why(files, monkeypatch):
    class Broken:
        def fit(self, X, background):
            raise ParameterError("unsuited", "`n_pcs=3` does not suit it")

    monkeypatch.setitem(METHODS, "pca", METHODS["pca"]._replace(build=lambda *_: Broken()))
    call = (files / "fore.csv", "--background", files / "back.csv", "--out", files / "out")
    result = run(*call, "--methods", "cpca,pca")
    assert result.exit_code == 0, result.output
    assert "failed: --n-pcs 3 does not suit" in said(result)
    assert not (files / "out" / "patterns_pca.csv").exists()


def test_an_existing_folder_is_refused_without_overwrite(files):
    (files / "out").mkdir()
    call = (files / "fore.csv", "--background", files / "back.csv", "--out", files / "out")
    refused = run(*call, "--methods", "pca")
    assert refused.exit_code == 2
    assert "exists already" in said(refused)
    (files / "out" / "notes.txt").write_text("mine")
    assert run(*call, "--methods", "pca,cpca", "--overwrite").exit_code == 0
    assert (files / "out" / "patterns_cpca.csv").exists()
    assert run(*call, "--methods", "pca", "--overwrite").exit_code == 0
    ours = ["comparison.csv", "comparison.png", "metadata.csv", "run.toml"]
    ours += ["patterns_pca.csv", "scores_pca.csv", "background_scores_pca.csv"]
    assert sorted(os.listdir(files / "out")) == sorted(["notes.txt", *ours])


def labels_file(text, name="l.csv"):
    def write(folder):
        (folder / name).write_text(text)
        return ("--labels", folder / name)

    return write


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (labels_file("a\nb\na\n"), "3 labels for 300 rows"),
        (labels_file("a\n" * 300), "1 group(s)"),
        (labels_file("NA\n" * 300), "0 group(s)"),
        (labels_file("a,b,c\n" * 300), "one column of labels is needed"),
        (labels_file("x,a\ny,b\n" * 150), "row 1 is called 'x', but 'fore0'"),
        (labels_file(""), "is empty"),
        (labels_file("a", "l.xlsx"), "unknown type '.xlsx'"),
        (lambda folder: ("--labels", folder / "none.csv"), "none.csv does not exist"),
        (lambda folder: ("--methods", "umap"), "--methods umap is not known"),
        (lambda folder: ("--n-pcs", 99), "--n-pcs 99 is more than the 12 variables"),
        (lambda folder: ("--components", 0), "--components 0 is too small"),
        (lambda folder: ("--seed", -1), "--seed -1"),
        (lambda folder: ("--demo",), "--demo brings its own data"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_no_folder(files, options, message):
    call = (files / "fore.csv", "--background", files / "back.csv", "--out", files / "out")
    result = run(*call, *options(files))
    assert result.exit_code == 2, result.output
    assert "error: " in result.output
    assert message in said(result)
    assert "Traceback" not in result.output
    assert not (files / "out").exists()


def test_data_are_needed(files):
    for call in ((), (files / "fore.csv",), ("--background", files / "back.csv")):
        result = run(*call)
        assert result.exit_code == 2
        assert "--demo" in said(result)


def test_the_demo_is_compared_with_its_labels():
    result = run("--demo", "--methods", "cpca,pca")
    assert result.exit_code == 0, result.output
    assert "read 4000 foreground and 4000 background rows" in result.output
    assert "uses labels" in result.output
    assert "k(f)" not in result.output  # neither has filters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("group\na\n\nb\nb\n", ["a", "", "b", "b"]),  # heading, and a row without a label
        ("a\n\nb\nb\n", ["a", "", "b", "b"]),
        ("a\na\nb\nb\n\n", ["a", "a", "b", "b"]),  # an empty line at the end
        ("group\na\na\nb\nb\n\n\n", ["a", "a", "b", "b"]),
        ("x,a\n\ny,a\nz,b\nw,b\n", ["a", "a", "b", "b"]),  # beside names an empty line is no row
    ],
)
@pytest.mark.filterwarnings("ignore::contrica.DelicateDataWarning")
def test_empty_lines_do_not_shift_labels(tmp_path, text, expected):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert read_labels(path, 4).tolist() == expected


def test_wrapped_backgrounds_and_missing_labels_are_taken(rng):
    X, Y = rng.laplace(size=(60, 3)) * [3, 1, 1], rng.laplace(size=(60, 3))
    labels = np.array(["a"] * 30 + ["b"] * 29 + ["NaN"])
    with warns(DelicateDataWarning, "unlabelled") as said:
        found = compare_methods(X, Background(Y), labels=labels, methods=["pca"])
    assert "1 of 60 rows" in str(said[0].message)
    assert found.group_names == ("a", "b")


def test_sparse_data_are_taken(rng):
    from scipy.sparse import csr_array

    X, Y, labels = rng.random((40, 3)), rng.random((40, 3)), np.arange(40) % 2
    options = {"labels": labels, "methods": ["pca", "auto"]}
    dense, sparse = (compare_methods(make(X), Y, **options) for make in (np.asarray, csr_array))
    for one, two in zip(dense.results, sparse.results, strict=True):
        assert_allclose(two.silhouette, one.silhouette, atol=1e-6)


def test_groups_reach_the_methods_that_use_them_and_are_checked_before_any_runs(rng):
    X, Y = rng.standard_normal((60, 3)) * (3, 1, 1), rng.standard_normal((50, 3))
    own, other = np.repeat(list("abcdef"), 10), np.repeat(list("uvwxy"), 10)
    options = {"methods": ("auto",), "n_components": 1, "random_state": 0}
    asked = ContrastiveICA(1, n_pcs=None, random_state=0).fit(
        X, background=Y, groups=own, background_groups=other
    )
    for background, more in (
        (Y, {"background_groups": other}),
        (Background(Y, groups=other), {}),
    ):
        (found,) = compare_methods(X, background, groups=own, **more, **options)
        assert found.error is None
        assert_array_equal(found.model.scree_.p_values, asked.scree_.p_values)
        assert found.model.scree_.unit == "groups"
    with raises(GroupsError, "groups-of-one", "background_groups"):
        compare_methods(X, Y, groups=own, **options)
