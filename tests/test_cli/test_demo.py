import os
import re

from tests.test_cli.shell import cause, run, words


def test_the_demo_runs_and_prints_its_patterns(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert "patterns.png" in os.listdir(tmp_path / "demo")
    lines = [line for line in result.output.splitlines() if "correlation" in line]
    assert len(lines) == 2
    # each pattern is a digit; what a random one in the space of the leading components reaches one
    # time in a hundred is about 0.49
    for line in lines:
        assert max(float(value) for value in re.findall(r"([\d.]+) with", line)) > 0.95
    assert "solver: subspace (" in words(result)
    assert "k(f)" in result.output


def test_the_seed_is_passed_on(tmp_path, monkeypatch):
    def given(*_, random_state):
        raise ValueError(f"seed {random_state}")

    monkeypatch.setattr("contrica.cli.demo.ContrastiveICA", given)
    for options, seed in (((), 0), (("--seed", 7), 7)):
        assert str(cause(run("demo", "--out", tmp_path / "demo", *options))) == f"seed {seed}"
