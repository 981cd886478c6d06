"""``contrica report``, and the report that fit and demo write."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from contrica import load
from contrica.cli import reporting
from contrica.inference import diagnose
from contrica.report import _build, _folder
from tests.test_cli.shell import cause, fit, run, words
from tests.test_report import Page, decoded, of_donors

QUICK = ("--solver", "subspace", "--n-foreground", 2)


def page_of(path):
    return Page(path.read_text(encoding="utf-8"))


def write_one_file(folder):
    """One file with groups, labels and a text column that tries to be more than text."""
    rng = np.random.default_rng(4)
    rows = rng.laplace(size=(240, 5))
    rows[:120, :2] += 3 * rng.choice([-1, 1], 120)[:, None]
    table = pd.DataFrame(rows, columns=list("abcde"))
    table.insert(0, "id", [f"s<{i}>" for i in range(240)])
    table["condition"] = ["case"] * 120 + ["control"] * 120
    table["donor"] = [f"{kind}{i % 12}" for kind in "xy" for i in range(120)]
    table["kind"] = np.where(rows[:, 0] > 0, "<b>up</b>", "down")
    table.to_csv(folder / "all.csv", index=False)
    return (
        *("fit", folder / "all.csv", "--groupby", "condition", "--background", "control"),
        *("--groups", "donor", "--labels", "kind", *QUICK),
    )


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A result of one file, and what its folder is called."""
    folder = tmp_path_factory.mktemp("report")
    result = run(*write_one_file(folder), "--out", folder / "out")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def result(one, tmp_path):
    """A copy of it, which may be changed."""
    return shutil.copytree(one / "out", tmp_path / "out")


def test_fit_writes_a_report_of_its_folder(one):
    page = page_of(one / "out" / "report.html")
    model = load(one / "out" / "model.npz")
    scores = pd.read_csv(one / "out" / "scores.csv", index_col=0)
    data = page.points
    found = decoded(data["scores"][0], "<f4")
    np.testing.assert_allclose(found[:120], scores["pattern_1"], rtol=1e-6)
    assert data["names"][:2] == ["s<0>", "s<1>"]
    assert [column["name"] for column in data["columns"]] == ["kind", "condition", "donor"]
    assert data["columns"][0]["levels"] == ["<b>up</b>", "down"]
    assert "all.csv by condition: all other rows against control" in page.text
    assert "not 120 rows: rows of one group are not independent" in page.text
    assert "120 rows: control" in page.text
    assert f"contrast ratio k(f) {model.source_ratio_[0]:.3g}" in page.text
    assert f"Share by group ({len(model.groups_)} groups)" in page.text
    assert "120 foreground and 120 background rows over 5 variables" in page.text, "the data check"
    assert "kind explains" in page.text
    assert not re.search("(groups|donor) explains", page.text), "which groups always do"
    assert re.search(r"not computed; contrica report \S+out --stability 100", page.text)


def test_the_command_in_a_report_makes_the_same_result(one, tmp_path):
    page = page_of(one / "out" / "report.html")
    text = page.text[page.text.rindex("To repeat this") :]
    command = text[text.index("contrica fit") : text.index(" seed 0")].split()
    assert command[:2] == ["contrica", "fit"]
    assert command[-2:] == ["--out", str(one / "out")]
    again = run(*command[1:-1], tmp_path / "again")
    assert again.exit_code == 0, again.output
    first, second = (load(path / "model.npz") for path in (one / "out", tmp_path / "again"))
    np.testing.assert_array_equal(first.components_, second.components_)


def test_a_report_of_a_folder_is_that_of_its_fit(result):
    before = (result / "report.html").read_text(encoding="utf-8")
    assert cause(run("report", result)).code == "exists"
    assert run("report", result, "--overwrite").exit_code == 0
    again = (result / "report.html").read_text(encoding="utf-8")
    other = again.replace(str(result), "OUT")
    assert other == re.sub(r"/\S+/report\d*/out", "OUT", before)


@pytest.mark.parametrize("several", [False, True])
def test_a_report_of_a_folder_finds_what_diagnose_finds(several, tmp_path):
    X, Y = of_donors()
    X.to_csv(tmp_path / "fore.csv", index=False)
    parts = [Y[:120], Y[120:]] if several else [Y]
    files = []
    for i, part in enumerate(parts):
        part.to_csv(tmp_path / f"back{i}.csv", index=False)
        files += ["--background", tmp_path / f"back{i}.csv"]
    options = ("--groups", "donor", "--drop", "site", *QUICK, "--out", tmp_path / "out")
    answer = run("fit", tmp_path / "fore.csv", *files, *options)
    assert answer.exit_code == 0, answer.output
    behind, donors = [part[list("abcd")] for part in parts], [part["donor"] for part in parts]
    expected = diagnose(
        *(load(tmp_path / "out" / "model.npz"), X[list("abcd")]),
        background=behind if several else behind[0],
        groups=X["donor"],
        background_groups=donors if several else donors[0],
        covariates={"site": X["site"].astype(str)},
    )
    assert {"in-background-groups", "covariate"} <= set(expected.codes)
    found = _folder.material_of_folder(tmp_path / "out").diagnosis()
    assert found.codes == expected.codes
    assert "in 53 of the background" in str(found)


def test_titles_and_images_are_chosen(one, tmp_path):
    out = tmp_path / "mine.html"
    answer = run(
        "report", one / "out", "--out", out, "--title", "A <title>", "--image-shape", "1x5"
    )
    assert answer.exit_code == 0, answer.output
    page = page_of(out)
    assert page.text.startswith("A <title> – contrica report")
    assert sum("Pattern" in attrs.get("alt", "") for _, attrs in page.elements) == 2


def test_stability_and_other_methods_read_the_data_again(tmp_path, monkeypatch):
    call = write_one_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    alone = [each for each in call if each not in ("--groups", "donor")]
    folder = tmp_path / "out"
    assert run(*alone, "--drop", "donor", "--no-report", "--out", folder).exit_code == 0
    methods = _build.compare_methods

    def fewer(X, background, **options):
        return methods(X, background, methods=["pca", "gcpca"], **options)

    monkeypatch.setattr(_build, "compare_methods", fewer)
    answer = run("report", folder, "--stability", 3, "--compare", "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["out"] == str(folder / "report.html")
    text = page_of(folder / "report.html").text
    assert "of 3 resamples of rows" in text
    assert "90 % interval" in text
    assert "gcPCA" in text
    assert "silhouette" in text
    assert "120 foreground and 120 background rows over 5 variables" in text, "the data check"


def test_what_fails_does_not_lose_the_rest(one, tmp_path, monkeypatch):
    monkeypatch.setattr(reporting, "MAX_NUMBERS", 10)
    call = list(write_one_file(tmp_path))
    answer = run(*call, "--stability", 3, "--out", tmp_path / "out")
    assert answer.exit_code == 0, answer.output
    assert "report.html has no data check: there are 1.2e+03 numbers" in words(answer)
    assert "report.html has no stability" in words(answer)
    page = page_of(tmp_path / "out" / "report.html")
    assert "The data check reads the rows, which this folder does not hold" in page.text
    assert not (tmp_path / "out" / "check.json").exists()


def test_no_report_is_written_where_none_is_wanted(files):
    assert fit(files, *QUICK, "--no-report").exit_code == 0
    assert not (files / "out" / "report.html").exists()
    assert not (files / "out" / "check.json").exists()
    assert (files / "out" / "model.npz").exists()


def test_folders_of_earlier_versions_have_a_report_too(result):
    for name in ("metadata.csv", "background_scores.csv", "run.toml", "check.json", "summary.txt"):
        (result / name).unlink()
    answer = run("report", result, "--out", result / "old.html")
    assert answer.exit_code == 0, answer.output
    page = page_of(result / "old.html")
    assert page.points["n"] == 120
    assert "there are no scores of the background" in page.text
    assert "mean shift" not in page.text.partition("What do these numbers mean?")[0]
    assert "nan" not in page.text.lower()
    assert "Share by group" in page.text, "which the model knows"


def test_several_backgrounds_are_told_apart(files):
    call = ("--background", files / "back.csv", "--out", files / "two", *QUICK)
    answer = run("fit", files / "fore.csv", "--background", files / "back.csv", *call)
    assert answer.exit_code == 0, answer.output
    page = page_of(files / "two" / "report.html")
    assert page.points["datasets"] == ["foreground", "background 1", "background 2"]
    assert np.bincount(decoded(page.points["dataset"], "<u1")).tolist() == [300, 300, 300]
    assert "300 and 300 background samples" in page.text


def test_background_scores_are_on_the_scale_that_they_were_fitted_on(files):
    assert fit(files, *QUICK, "--scale", "each").exit_code == 0
    model = load(files / "out" / "model.npz")
    back = pd.read_csv(files / "back.csv", index_col=0).to_numpy()
    unit = (back - back.mean(axis=0)) / back.std(axis=0)
    written = pd.read_csv(files / "out" / "background_scores.csv", index_col=0)
    np.testing.assert_allclose(written, unit @ model.filters_.T, rtol=1e-6, atol=1e-8)


def test_of_very_many_rows_a_sample_is_read(one, monkeypatch):
    monkeypatch.setattr(_folder, "MAX_POINTS", 50)
    material = _folder.material_of_folder(one / "out")
    scores = pd.read_csv(one / "out" / "scores.csv", index_col=0)
    kinds = pd.read_csv(one / "out" / "metadata.csv")["kind"].to_numpy()
    for part, start in ((material.foreground, 0), (material.backgrounds[0], 120)):
        assert len(part.scores) == 50
        assert part.n_rows == 120
        numbers = [int(name[2:-1]) for name in part.names]
        assert part.columns["kind"].tolist() == kinds[numbers].tolist()
        assert min(numbers) >= start
    numbers = [int(name[2:-1]) for name in material.foreground.names]
    np.testing.assert_allclose(material.foreground.scores, scores.to_numpy()[numbers], rtol=1e-12)


def _cut(path, n_lines):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:n_lines]), encoding="utf-8")


def _without_metadata(folder, scores):
    (folder / "metadata.csv").unlink()
    (folder / "scores.csv").write_text(scores, encoding="utf-8")


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda folder: (folder / "model.npz").unlink(), "not-a-result"),
        (lambda folder: (folder / "scores.csv").unlink(), "not-a-result"),
        (lambda folder: _cut(folder / "scores.csv", 1), "not-a-result"),
        (lambda folder: _cut(folder / "scores.csv", 100), "metadata-length"),
        (lambda folder: _cut(folder / "metadata.csv", 100), "metadata-length"),
        (lambda folder: _without_metadata(folder, "a,b\nx,1\n"), "not-a-result"),
        (lambda folder: _without_metadata(folder, "a,b,c\nx,y,z\n"), "not-a-result"),
        (lambda folder: (folder / "scores.csv").write_text("a,b\nx\n"), "not-a-result"),
        (lambda folder: (folder / "check.json").write_text("{"), "not-a-result"),
        (lambda folder: (folder / "run.toml").write_text("="), "config"),
        (lambda folder: (folder / "model.npz").write_text("no"), "not-a-model"),
    ],
)
def test_a_folder_that_is_not_a_result_is_refused_in_one_sentence(result, harm, code):
    (result / "report.html").unlink()
    harm(result)
    answer = run("report", result)
    assert cause(answer).code == code
    assert not (result / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--image-shape", "2x2"), "image-shape"),
        (("--image-shape", "wide"), "image-shape"),
    ],
)
def test_options_that_do_not_fit_are_refused(one, tmp_path, options, code):
    answer = run("report", one / "out", "--out", tmp_path / "new.html", *options)
    assert cause(answer).code == code
    assert "--image-shape" in answer.output
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_said(one, result, tmp_path, monkeypatch):
    assert cause(run("report", tmp_path / "none")).code == "not-a-result"
    (result / "run.toml").unlink()
    answer = run("report", result, "--stability", 3, "--overwrite")
    assert cause(answer).code == "no-run"


def test_data_that_have_changed_are_refused(one, result, tmp_path):
    lines = (one / "all.csv").read_text(encoding="utf-8").splitlines()
    changed = tmp_path / "all.csv"
    changed.write_text("\n".join(lines[:-5]) + "\n", encoding="utf-8")
    config = (result / "run.toml").read_text(encoding="utf-8")
    config = config.replace(str(one / "all.csv"), str(changed))
    (result / "run.toml").write_text(config, encoding="utf-8")
    answer = run("report", result, "--stability", 3, "--overwrite")
    assert cause(answer).code == "other-data"
