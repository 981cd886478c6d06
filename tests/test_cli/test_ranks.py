import re

import numpy as np
import pytest

from contrica.datasets import make_four_clusters
from contrica.errors import DelicateDataWarning, FoundFileError, ParameterError
from contrica.estimators import report_ranks
from contrica.rows import read_table
from tests.said import warns
from tests.test_cli.shell import cause, refused, run, words


def ranks(folder, *more):
    return run("ranks", folder / "fore.csv", "--background", folder / "back.csv", *more)


def test_ranks_prints_eigenvalues_a_choice_and_verdicts(files):
    result = ranks(files, "--out", files / "s.png", "--eigenvalues", 4)
    assert result.exit_code == 0, result.output
    said = words(result)
    assert re.search(r"eigenvalues suggest: r = \d+ background and l = \d+ foreground", said)
    assert re.search(r"significant: r = \d+ background and l = \d+ foreground patterns", said)
    assert "rank selection: threshold t = " in said
    for label in ("prop:iden_alg2", "prop:iden_cica_tensor", "subspace power method"):
        assert label in said
    assert (files / "s.png").read_bytes().startswith(b"\x89PNG")
    assert re.findall(r"│ +(\d+) │", result.output) == ["1", "2", "3", "4"]
    assert re.search(r"contrast ratio: l = \d of 5 directions stand out from the permutation", said)
    assert re.search(r"fit uses by default: r = 3 and l = 2 by significance \(solver joint: ", said)


def test_what_is_printed_is_what_the_library_says(files):
    fore, back = (read_table(files / f"{name}.csv").values for name in ("fore", "back"))
    with warns(DelicateDataWarning, "singular-covariance") as told:
        report = report_ranks(fore, back, rng=np.random.default_rng(0))
    said = words(ranks(files))
    assert str(told[0].message) in said
    assert report.n_features == 5
    r, l = report.chosen  # noqa: E741 - the paper's ℓ
    assert f"r = {r} background and l = {l} foreground patterns in 5 dimensions" in said
    found = report.significant
    assert f"significant: r = {found.n_background} background and l = {found.n_foreground}" in said
    assert f"rank selection: {found.description}" in said
    assert [verdict.value in said for verdict in report.verdicts] == [True] * 3
    assert f"{report.scree.foreground[0]:.4g}" in said
    assert f"{report.scree.background[0]:.4g}" in said
    contrast = report.contrast
    assert f"contrast ratio: l = {contrast.chosen} of 5 directions" in said
    assert f"permutations of rows have no ratio above {contrast.null_quantile:.4g}" in said
    for ratio in contrast.ratios:
        assert f"│ {ratio:.4g} │" in said
    for value in contrast.p_values:
        assert f"│ {value:.2g} │" in said
    assert f"by {report.rule} (solver {report.solver}: {report.reason})" in said


def test_what_fit_would_use_is_what_fit_prints(files, rng):
    np.save(files / "wide.npy", rng.laplace(size=(400, 20)) * np.r_[5, 4, np.ones(18)])
    np.save(files / "wide_back.npy", rng.laplace(size=(400, 20)))
    data = (files / "wide.npy", "--background", files / "wide_back.npy")
    said, fitted = words(run("ranks", *data)), words(run("fit", *data, "--out", files / "out"))
    told = re.search(
        r"fit uses by default: l = 2 by contrast ratio \(solver subspace: (.+)\)$", said
    )
    assert f"solver: subspace ({told[1]})" in fitted
    assert "l = 2 of 20 directions stand out" in fitted


def test_a_background_that_does_not_vary_has_no_null(files):
    np.save(files / "x.npy", np.random.default_rng(0).laplace(size=(50, 3)))
    np.save(files / "still.npy", np.ones((50, 3)))
    said = words(run("ranks", files / "x.npy", "--background", files / "still.npy"))
    assert "significant: not tested, " in said
    assert "l = 3 of 3 directions stand out; the background does not vary" in said
    assert "3 variable(s) vary in the foreground but not in the background (x0, x1, x2)" in said


def test_ranks_by_significance_are_looked_for_where_a_fit_would_look(files, rng):
    for name in ("wide", "wide_back"):
        np.save(files / f"{name}.npy", rng.laplace(size=(400, 20)))
    call = ("ranks", files / "wide.npy", "--background", files / "wide_back.npy")
    assert "not tested, 20 dimensions are too many" in words(run(*call))
    assert "not tested" not in words(run(*call, "--n-pcs", "5"))
    answer = run(*call, "--memory-limit", "much")
    said = refused(answer, ParameterError, "unknown-size", "memory_limit")
    assert "--memory-limit much is not known" in said


def test_seed_and_memory_limit_are_passed_on(files, monkeypatch):
    given = []

    def report(*_, rng, memory_limit, **__):
        given.append((rng.bit_generator.state, memory_limit))
        raise ValueError("asked")

    monkeypatch.setattr("contrica.cli.ranks.report_ranks", report)
    for options in ((), ("--seed", 7, "--memory-limit", "2GB")):
        assert str(cause(ranks(files, *options))) == "asked"
    states = [np.random.default_rng(seed).bit_generator.state for seed in (0, 7)]
    assert given == [(states[0], None), (states[1], "2GB")]


def test_every_background_has_its_key_or_all_have_one(files):
    data = make_four_clusters(100, random_state=0)
    np.savez(files / "f.npz", x=data.foreground, y=data.background[:50], z=data.background[50:])
    call = ("ranks", files / "f.npz", "--key", "x", *("--background", files / "f.npz") * 2)

    def with_keys(keys):
        return run(*call, *(part for key in keys for part in ("--background-key", key)))

    for keys in ("y", "yz"):
        assert with_keys(keys).exit_code == 0, keys
    said = refused(with_keys("yzy"), ParameterError, "number-of-keys", "background_key")
    assert "3 keys for 2 backgrounds" in said
    assert "3 arrays (x, y, z)" in str(cause(with_keys("")))


def test_robust_cumulants(files):
    assert ranks(files, "--cumulant", "robust").exit_code == 0
    wrong = ranks(files, "--cumulant", "magic")
    said = refused(wrong, ParameterError, "unknown-choice", "cumulant")
    assert "--cumulant magic is not known" in said


def test_ranks_does_not_replace_a_figure_unasked(files):
    (files / "s.png").write_text("mine")
    refused(ranks(files, "--out", files / "s.png"), FoundFileError, "exists", "overwrite")
    assert (files / "s.png").read_text() == "mine"
    assert ranks(files, "--out", files / "s.png", "--overwrite").exit_code == 0
    assert (files / "s.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["s.txt", "s"])
def test_a_figure_needs_the_name_of_one(files, name):
    said = refused(ranks(files, "--out", files / name), ParameterError, "unknown-type", "output")
    assert "Let its name end in .png" in said
