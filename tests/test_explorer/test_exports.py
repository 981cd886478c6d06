"""Files of a state: tables as the page has them, and a script and a command that repeat it."""

import csv
import io
import shlex
import subprocess
import sys
from dataclasses import fields, replace

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from contrica import ContrastiveICA
from contrica.cli.explore import _data
from contrica.cli.options import DataOptions
from contrica.errors import ContricaError, ParameterError, collected
from contrica.explorer import Explorer, ViewState
from contrica.explorer._data import demo_data
from contrica.explorer._export import shown
from contrica.models import load
from tests.test_cli.shell import run
from tests.test_explorer.small import small_data

NASTY = "</script>'''; import os\n\"`$(rm x)`"


@pytest.fixture(scope="module")
def explorer():
    return Explorer(small_data())


def edited(explorer):
    state = explorer.change(ViewState(n_components=3), scale="pooled")
    return state.edit(0, name=NASTY, note="a\nb").edit(1, verdict="rejected").move(2, -2, 3)


def table(content):
    head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    return head, rows


def test_tables_have_the_patterns_of_the_page(explorer):
    state = edited(explorer)
    view = explorer.fit(state)
    head, rows = table(explorer.export("patterns", state)[1])
    assert head == ["variable", "pattern 3", NASTY]
    assert np.array_equal(np.array([row[1:] for row in rows], float), view.components[[2, 0]].T)
    head, rows = table(explorer.export("scores", state)[1])
    both = np.vstack([view.scores_fore, view.scores_back])
    assert np.array_equal(np.array([row[2:] for row in rows], float), both[:, [2, 0]])
    assert [row[0] for row in rows] == ["foreground"] * 300 + ["background"] * 300
    head, rows = table(explorer.export("cards", state)[1])
    assert [row[:4] for row in rows] == [
        ["3", "", "", ""],
        ["1", NASTY, "", "a\nb"],
        ["2", "", "rejected", ""],
    ]


def test_names_that_are_alike_are_told_apart_and_something_must_be_left(explorer):
    state = ViewState(n_components=2).edit(0, name="same").edit(1, name="same")
    assert shown(explorer._fits, state)[1] == ["same (1)", "same (2)"]
    state = state.edit(0, verdict="rejected").edit(1, verdict="rejected")
    with pytest.raises(ContricaError, match="all patterns are rejected"):
        explorer.export("patterns", state)
    with pytest.raises(ParameterError, match="patterns, scores"):
        explorer.export("../../etc/passwd", state)


def test_the_model_and_the_report_are_of_the_fit(explorer, tmp_path):
    state = edited(explorer)
    name, content = explorer.export("model", state)
    (tmp_path / name).write_bytes(content)
    model = load(tmp_path / name)
    assert np.array_equal(model.components_, explorer.fit(state).components)
    page = explorer.export("report", state)[1].decode()
    assert page.startswith("<!DOCTYPE html>")
    assert "<dd>&lt;/script&gt;" in page or "&lt;/script&gt;'''" in page
    assert NASTY not in page


def repeated(script, **given):
    """What a script leaves, run as its reader would."""
    known = dict(given)
    with collected():  # what a fit warns of, the page says as well
        exec(compile(script, "repeat.py", "exec"), known)
    return known


STATES = [
    ViewState(),
    ViewState(solver="subspace", n_foreground=2, scale="each", random_state=7),
    ViewState(solver="paper", n_foreground=3, n_background=4, projection="filter"),
    ViewState(solver="joint", n_foreground=2, n_background=5, dimension=5, n_components=2),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.fit_text)
def test_the_script_repeats_a_state_of_arrays(explorer, state):
    state = state.edit(0, name=NASTY).move(0, 1, explorer.fit(state).n_kept)
    order, names = shown(explorer._fits, state)
    script = explorer.export("script", state)[1].decode()
    data, view = explorer.data, explorer.fit(state)
    with pytest.raises(SystemExit, match="give the arrays"):
        repeated(script)
    found = repeated(script, X=data.fore, Y=data.backs[0])
    assert found["names"] == names
    np.testing.assert_allclose(found["patterns"], view.components[order], atol=1e-6)
    np.testing.assert_allclose(found["scores"], view.scores_fore[:, order], atol=1e-6)
    if state.scale != "each":
        np.testing.assert_allclose(
            found["background_scores"], view.scores_back[:, order], atol=1e-6
        )
    with pytest.raises(ContricaError, match="a command reads files"):
        explorer.export("command", state)


def test_parameters_that_no_script_can_have_are_refused_in_words():
    data = replace(small_data(), parameters={"basis": np.eye(6)[:, :4]})
    with pytest.raises(ParameterError, match="basis is a ndarray"):
        Explorer(data).export("script", ViewState())


def test_the_script_and_the_command_repeat_the_demo(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    explorer = Explorer(demo_data())
    state = explorer.change(ViewState(n_components=2), n_foreground=4).edit(0, name=NASTY)
    state = state.move(1, -1, 2)
    order, _ = shown(explorer._fits, state)
    view = explorer.fit(state)
    found = repeated(explorer.export("script", state)[1].decode())
    np.testing.assert_allclose(found["patterns"], view.components[order], atol=1e-6)
    check_command(explorer, state)


def check_command(explorer, state):
    """The command, without a shell around it, writes what the page exports."""
    text = explorer.export("command", state)[1].decode()
    first, *words = shlex.split(text, comments=True)
    assert first == "contrica"
    result = run(*words)
    assert result.exit_code == 0, result.output
    for kind in ("patterns", "scores", "cards"):
        name, content = explorer.export(kind, state)
        with open(f"explored/{name}", "rb") as file:
            again = table(file.read())
        head, rows = table(content)
        assert again[0] == head
        for row, other in zip(rows, again[1], strict=True):
            for cell, own in zip(row, other, strict=True):
                try:
                    assert float(own) == pytest.approx(float(cell), abs=1e-6)
                except ValueError:
                    assert own == cell


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = small_data()
    both = pd.DataFrame(np.vstack([data.fore, data.backs[0]]), columns=[f"v {i}" for i in range(6)])
    both.insert(0, "id", [f"r{i}" for i in range(600)])
    both["kind of row"] = ["case"] * 300 + ["it's a control"] * 300
    both["animal"] = [f"a{i // 10}" for i in range(600)]
    both.to_csv("all rows.csv", index=False)
    both[:300].drop(columns=["kind of row", "animal"]).to_csv("fore.csv", index=False)
    both[300:].drop(columns=["kind of row", "animal"]).to_csv("back.csv", index=False)
    np.save("fore.npy", data.fore.astype(np.float32))
    np.save("wide.npy", np.eye(9))
    np.save("back.npy", data.backs[0].astype(np.float32))
    cells = anndata.AnnData(
        scipy.sparse.csr_matrix(both.iloc[:, 1:7].to_numpy().round(1)),
        obs=both[["kind of row", "animal"]].set_index(both["id"]),
    )
    cells.write_h5ad("cells.h5ad")
    return tmp_path


SOURCES = [
    {"data": "fore.csv", "background": ["back.csv"]},
    {"data": "fore.npy", "background": ["back.npy"]},
    {
        "data": "all rows.csv",
        "groupby": "kind of row",
        "background": ["it's a control"],
        "groups": "animal",
        "drop": "id",
    },
    {
        "data": "cells.h5ad",
        "foreground": "kind of row=case",
        "background": ["kind of row=it's a control"],
        "groups": "animal",
    },
]


@pytest.mark.parametrize("given", SOURCES, ids=lambda given: given["data"])
def test_the_script_and_the_command_repeat_files(folder, given):
    explorer = Explorer(_data(DataOptions(**given), "error", None))
    state = explorer.change(ViewState(), scale="pooled", n_components=2).edit(1, note=NASTY)
    state = state.move(1, -1, 2)
    order, _ = shown(explorer._fits, state)
    found = repeated(explorer.export("script", state)[1].decode())
    view = explorer.fit(state)
    np.testing.assert_allclose(found["patterns"], view.components[order], atol=1e-6)
    np.testing.assert_allclose(found["scores"], view.scores_fore[:, order], atol=1e-6)
    check_command(explorer, state)


def test_a_result_folder_opens_with_the_parameters_of_its_fit(folder):
    fitted = run(
        *(
            "fit",
            "fore.csv",
            "--background",
            "back.csv",
            "--scale",
            "pooled",
            "--solver",
            "subspace",
        ),
        *(
            "--n-foreground",
            "3",
            "--cumulant",
            "unbiased",
            "--seed",
            "5",
            "--out",
            "result",
            "--no-report",
        ),
    )
    assert fitted.exit_code == 0, fitted.output
    data = _data(DataOptions(data="result"), "error", None)
    explorer = Explorer(data)
    state = explorer.default_state()
    assert (state.solver, state.scale, state.n_foreground, state.random_state) == (
        *("subspace", "pooled"),
        *(3, 5),
    )
    model = load("result/model.npz")
    assert isinstance(model, ContrastiveICA)
    np.testing.assert_allclose(explorer.fit(state).components, model.components_, atol=1e-9)
    assert data.source.folder.name == "result"
    check_command(explorer, state.edit(0, name="kept"))


def test_a_scale_is_that_of_the_opening_state_unless_a_state_is_given(folder):
    call = ("explore", "fore.csv", "--background", "back.csv", "--scale", "pooled", "--out")
    assert run(*call, "one").exit_code == 0
    assert "scale='pooled'" in (folder / "one" / "repeat.py").read_text()
    assert run(*call, "two", "--state", "keep=1").exit_code == 0
    assert "scale" not in (folder / "two" / "repeat.py").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fore.csv", "--background", "back.csv", "--scale", "odd"], "scale"),
        (["missing.csv", "--background", "back.csv"], "missing.csv"),
        (["--background", "back.csv"], "without DATA"),
        (["fore.csv"], "no background"),
        (["fore.csv", "--background", "back.csv", "--state", "l=many"], "whole number"),
        (["fore.npy", "--background", "wide.npy"], "wide.npy"),
        (["fore.csv", "--background", "back.csv", "--image-shape", "3x3"], "height"),
        (["fore.csv", "--background", "back.csv", "--port", "99999"], "65535"),
        (["fore.csv", "--background", "back.csv", "--out", "fore.csv"], "is a file"),
    ],
)
def test_bad_input_is_told_in_one_sentence(folder, words, told):
    result = run("explore", *words, "--no-browser")
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output


def test_every_option_of_the_data_can_be_repeated():
    from contrica.cli.explore import _words

    for each in fields(DataOptions):
        value = (
            ["b"] if each.name.startswith("background") else True if each.name == "header" else "b"
        )
        words = _words(DataOptions(**{"data": "a", each.name: value}))
        assert any(each.name.replace("_", "-") in word for word in words) or each.name == "data"


def test_the_shell_starts_without_dash_and_says_what_is_missing(tmp_path):
    code = (
        "import sys; sys.modules['dash'] = None\n"
        "from contrica.cli import main\n"
        "sys.argv = ['contrica', 'explore', '--no-browser']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "pip install 'contrica[explorer]'" in " ".join(done.stderr.split())
