"""The examples in README and docs run as they stand."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from contrica import ContrastiveICA
from contrica.cli import app
from contrica.datasets import make_synthetic
from contrica.files import write_table

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize(
    ("name", "code"),
    [(path.name, code) for path in DOCUMENTS for code in blocks(path, "python")],
    ids=lambda value: value if value.endswith(".md") else "",
)
def test_python_examples_run(name, code, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # doubts about small data are part of the examples
        exec(compile(code, name, "exec"), {})


NUMBER = r"-?\d+(?:\.\d+)?"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_outputs_shown_are_what_the_examples_print(path, capsys):
    """To a tenth, or one in the last digit shown; an example may print more than is shown."""
    text = path.read_text(encoding="utf-8")
    for code, shown in re.findall(r"```python\n([^`]*?)```\n\n```text\n(.*?)```", text, re.S):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            exec(compile(code, path.name, "exec"), {})
        expected_lines = shown.splitlines()
        lines = capsys.readouterr().out.splitlines()[: len(expected_lines)]
        for line, expected in zip(lines, expected_lines, strict=True):
            assert re.sub(NUMBER, "#", line) == re.sub(NUMBER, "#", expected)
            for value, wanted in zip(
                re.findall(NUMBER, line), re.findall(NUMBER, expected), strict=True
            ):
                unit = 10.0 ** -len(wanted.partition(".")[2])
                assert abs(float(value) - float(wanted)) <= max(
                    0.1 * abs(float(wanted)), 1.001 * unit * ("." in wanted)
                ), line


@pytest.mark.slow
def test_readme_shell_examples_run(tmp_path, monkeypatch):
    data = make_synthetic(5, n_samples=2000, random_state=0)
    files = {
        "patients.csv": data.foreground,
        "controls.csv": data.background,
        "new_patients.csv": data.foreground[:20],
    }
    for name, rows in files.items():
        write_table(tmp_path / name, rows, list("abcde"), [f"s{i}" for i in range(len(rows))])
    monkeypatch.chdir(tmp_path)
    (block,) = [code for code in blocks(ROOT / "README.md", "sh") if "contrica fit" in code]
    for line in block.strip().splitlines():
        result = CliRunner().invoke(app, line.split()[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    assert (tmp_path / "new_scores.csv").exists()


def test_pictures_and_links_exist():
    for path in DOCUMENTS:
        for target in re.findall(
            r"\]\(([^)#:]+)\)|src=\"([^\"]+)\"", path.read_text(encoding="utf-8")
        ):
            name = next(part for part in target if part)
            assert (path.parent / name).exists(), f"{path.name} points to {name}"


def test_readme_names_what_the_estimator_learns():
    data = make_synthetic(4, n_samples=5000, random_state=0)
    model = ContrastiveICA(2, random_state=0)
    model.fit(data.foreground, background=data.background)
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    table = guide[guide.index("## What is learnt") : guide.index("### Patterns and filters")]
    for name in re.findall(r"`(\w+_)`", table):
        if name != "background_scale_":
            assert hasattr(model, name), name
    assert np.isfinite(model.residual_)
