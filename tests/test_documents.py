"""The examples in README and docs run as they stand, and what they point to exists."""

import pkgutil
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from contrica import ContrastiveICA
from contrica.cli import app
from contrica.datasets import make_synthetic

ROOT = Path(__file__).parent.parent
README, INDEX, DOCS = ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs"
# what `make docs` writes is not ours to check
BUILT = [DOCS / name for name in ("_build", "api", "tutorials")]
DOCUMENTS = [
    README,
    *sorted(page for page in DOCS.rglob("*.md") if not any(map(page.is_relative_to, BUILT))),
]
PAGES = [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
NUMBER = r"-?\d+(?:\.\d+)?"


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


def examples():
    """Every block of Python, and the output that is shown below it, which may be none."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.S)
        for i, (code, shown) in enumerate(found):
            yield pytest.param(code, shown, id=f"{name_of(path)}-{i}")


@pytest.mark.parametrize(("code", "shown"), list(examples()))
def test_python_examples_run_and_print_what_is_shown(code, shown, capsys):
    """To a tenth, or one in the last digit shown; an example may print more than is shown."""
    with warnings.catch_warnings():
        # rank selection on small data warns, and the examples are small
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(code, "example", "exec"), {})
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
    monkeypatch.chdir(tmp_path)
    (block,) = [code for code in blocks(ROOT / "README.md", "sh") if "contrica fit" in code]
    for line in block.strip().splitlines():
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    assert (tmp_path / "new_scores.csv").exists()
    assert (tmp_path / "results" / "report.html").exists()


def commands(text):
    """Every line of shell, and every span of code, that calls contrica, from its first argument on."""
    block = re.compile(r"^ *```(\w*)\n(.*?)```", re.S | re.M)
    shell = [code for language, code in block.findall(text) if language != "python"]
    calls = re.compile(r"(?:^|[ (])contrica (\S[^\n]*)", re.M)
    for code in shell:
        yield from calls.findall(code.replace("\\\n", " "))
    yield from re.findall(r"`contrica (\S[^`]*)`", block.sub("", text))


def unknown(text):
    """Calls of commands, or with options, that there are not."""
    app_itself = get_command(app)
    for line in commands(text):
        first, *words = shlex.split(line.partition("#")[0])
        command = app_itself if first.startswith("-") else app_itself.commands.get(first)
        if command is None:
            yield line
            continue
        options = {name for each in command.params for name in each.opts + each.secondary_opts}
        given = {word.partition("=")[0] for word in [first, *words] if re.match("--?[a-z]", word)}
        if given - options - {"--help"}:
            yield line


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_commands_and_options_that_documents_name_exist(path):
    assert not list(unknown(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```sh\ncontrica fit f.csv -b b.csv --out o  # or --magic\n```", []),
        ("```sh\ncontrica magic f.csv\n```", ["magic f.csv"]),
        ("```\nCONTRICA_DATA=d contrica magic\n```", ["magic"]),
        ("```sh\ncontrica fit f.csv \\\n  --most 3\n```", ["fit f.csv    --most 3"]),
        ("`contrica fit --no-header` and `contrica --version`, as contrica has it", []),
        ("`contrica ranks --most 3`, `contrica magic`", ["ranks --most 3", "magic"]),
        ("```python\nfrom contrica import load\n```", []),
    ],
)
def test_commands_that_there_are_not_are_found(text, found):
    assert list(unknown(text)) == found


def missing_names(text):
    """Names of the package in spans of code that there are not."""
    for name in re.findall(r"`(contrica(?:\.[A-Za-z_]\w*)+)(?:\([^`]*)?`", text):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            yield name


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_names_of_the_package_that_documents_use_exist(path):
    assert not list(missing_names(path.read_text(encoding="utf-8")))


def test_names_that_there_are_not_are_found():
    text = "`contrica.solvers.cica`, `contrica.solvers.magic(2)` and `contrica.magic`"
    assert list(missing_names(text)) == ["contrica.solvers.magic", "contrica.magic"]


def anchors(path):
    """The headings of a page as GitHub names them in links."""
    for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_pictures_and_links_exist(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", text):
        link = next(part for part in target if part)
        if ":" in link:
            continue
        name, _, anchor = link.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), f"{name_of(path)} points to {link}"
        assert not anchor or anchor in anchors(there), f"{name_of(path)} points to {link}"


def test_the_index_names_every_page():
    named = {
        (DOCS / link).resolve() for link in re.findall(r"\]\(([^)#:]+)\)", INDEX.read_text("utf-8"))
    }
    assert {path.resolve() for path in DOCUMENTS[1:]} - {INDEX.resolve()} <= named


def test_the_sites_navigation_reaches_every_page():
    reached = {INDEX}
    for page in DOCUMENTS[1:]:
        for line in "\n".join(blocks(page, r"\{toctree\}")).splitlines():
            target = re.sub(r".*<(.*)>", r"\1", line)
            reached.add((page.parent / f"{target}.md").resolve())
    assert set(DOCUMENTS[1:]) <= reached


def test_readme_fits_two_screens():
    assert len(README.read_text("utf-8").splitlines()) < 120


def test_guide_names_what_the_estimator_learns():
    data = make_synthetic(4, n_samples=5000, random_state=0)
    model = ContrastiveICA(2, random_state=0)
    model.fit(data.foreground, background=data.background)
    page = (DOCS / "guide" / "numbers.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    names = [name for line in rows for name in re.findall(r"`(\w+_)`", line)]
    assert len(names) > 10
    for name in names:
        if name != "background_scale_":  # of ProportionalContrastiveICA
            assert hasattr(model, name), name
    assert np.isfinite(model.residual_)
