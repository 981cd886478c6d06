import gzip
import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from contrica.cli import app
from contrica.datasets import (
    _folder,
    fetch,
    load_corrupted_mnist,
    load_mouse_protein,
    make_synthetic,
)
from contrica.errors import FileError, FileMissingError, FoundFileError, ParameterError
from contrica.experiments import (
    EXPERIMENTS,
    Result,
    Row,
    Run,
    four_clusters,
    markdown,
    mnist,
    mouse_protein,
    reproduce,
    synthetic,
)
from contrica.experiments._sweeps import some_rows, tune, tune_silhouette
from contrica.experiments._ways import WAYS, ranked_contrast
from contrica.moments.fourth import cumulants
from tests.said import raises

# single fits warn, as they should; the runner ignores it
pytestmark = pytest.mark.filterwarnings(
    "ignore::contrica.PatternWarning", "ignore::contrica.IdentifiabilityWarning"
)

# --- rows and reports ---


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("q", [0.6, 0.61], 0.604), "reproduced"),
        (Row("q", [0.599], 0.604), "reproduced"),  # at the tolerance
        (Row("q", [0.598], 0.604), "lower"),
        (Row("q", [0.1, 0.7, 0.7], 0.604), "higher"),  # the median decides
        (Row("q", [0.7], "above 0.9", holds=False), "does not hold"),
        (Row("q", np.linspace(0, 1, 100), 0.9, single=True), "within ours"),
        (Row("q", np.linspace(0, 1, 100), 0.99, single=True), "lower"),
        (Row("q", np.linspace(0, 1, 100), 0.01, single=True), "higher"),
        (Row("q", [0.95], "above 0.9", holds=True), "holds"),
        (Row("q", [0.95], "a range"), "–"),
        (Row("q", [0.95]), "–"),
        (Row("q", [], 0.5), "not run"),
        (Row("q", [np.nan, 0.5, 0.5], 0.5), "reproduced"),  # a failed run is left out
        (Row("q", [np.nan], 0.5), "no value"),
        (Row("q", [15.0], holds=True), "truth found"),
        (Row("q", [12.0], holds=False), "truth not found"),
    ],
)
def test_verdicts_follow_from_the_median(row, verdict):
    assert row.verdict == verdict


def result(name="mouse-protein", rows=(), **fields):
    defaults = {"title": "t", "quick": True, "version": "1", "seconds": 3.2, "data": "rows"}
    return Result(name, rows=list(rows), **{**defaults, **fields})


def test_results_survive_being_written():
    rows = [Row("a | b", np.array([0.1, 0.2]), 0.3, note="n"), Row("c", [1.0], "claim", holds=True)]
    again = Result.from_json(result(rows=rows).to_json())
    assert again.rows[0].values == [0.1, 0.2]
    assert again.rows[1] == rows[1]
    assert again.to_json() == result(rows=rows).to_json()
    for text in ("{}", "[1]", "no json"):
        with raises(FileError, "content"):
            Result.from_json(text)


def test_the_table_holds_every_row_and_what_was_not_run():
    rows = [Row("a|b", [0.1, 0.2, 0.3], 0.25, 0.02, note="why")]
    text = markdown([result(rows=rows), result("transplant", missing="put it there")])
    assert "| a\\|b | 0.25 | 0.200 [0.150, 0.250] | 3 | lower (±0.02) | why |" in text
    assert "## transplant" in text
    assert "Not run: put it there" in text


# --- running, resuming ---


@pytest.fixture
def counted(monkeypatch):
    """Two experiments replaced by quick ones that count their calls."""
    calls = []

    def fake(name, run):
        calls.append(name)
        run.plan(2)
        run.step("one")
        run.table("values.csv", ("a",), [(1,)])
        run.step("two")
        run.source = "nothing"
        return [Row(name, [float(run.quick)])]

    monkeypatch.setattr(four_clusters, "run", partial(fake, "four-clusters"))
    monkeypatch.setattr(synthetic, "run", partial(fake, "synthetic"))
    return calls


def test_finished_experiments_are_not_run_again(counted, tmp_path):
    names = ["four-clusters", "synthetic"]
    seen = []
    reproduce(names, tmp_path, quick=True, progress=lambda *step: seen.append(step))
    assert counted == names
    assert seen[:4] == [
        ("four-clusters", "", 0, 2),
        ("four-clusters", "one", 1, 2),
        ("four-clusters", "two", 2, 2),
        ("synthetic", "", 0, 2),
    ]
    assert (tmp_path / "synthetic" / "values.csv").read_text() == "a\n1\n"
    results = reproduce(names, tmp_path, quick=True)
    assert counted == names
    assert [each.name for each in results] == names
    assert "Not run: not asked for yet" in (tmp_path / "reproduction.md").read_text()
    reproduce("four-clusters", tmp_path, quick=True, overwrite=True)
    assert counted == [*names, "four-clusters"]


def test_files_of_an_earlier_run_do_not_stay_beside_those_of_another(tmp_path, monkeypatch):
    names = iter(["old.csv", "new.csv"])

    def written(run):
        run.table(next(names), ("a",), [(1,)])
        return [Row("q", [1.0])]

    monkeypatch.setattr(synthetic, "run", written)
    folder = tmp_path / "synthetic"
    reproduce("synthetic", tmp_path)
    (folder / "notes.txt").write_text("mine")
    reproduce("synthetic", tmp_path, overwrite=True)
    found = sorted(path.name for path in folder.iterdir())
    assert found == ["new.csv", "notes.txt", "result.json"]


def test_results_of_another_mode_are_neither_taken_nor_replaced(counted, tmp_path):
    reproduce(["four-clusters", "synthetic"], tmp_path)
    with raises(FoundFileError, "other-result", "overwrite") as said:
        reproduce(["synthetic"], tmp_path, quick=True)
    assert "synthetic has a result of another run (full" in str(said.value)
    assert counted == ["four-clusters", "synthetic"]
    reproduce(["synthetic"], tmp_path, quick=True, overwrite=True)
    text = (tmp_path / "synthetic" / "result.json").read_text()
    assert json.loads(text)["rows"][0]["values"] == [1.0]


def test_other_data_make_another_result_where_data_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(mouse_protein, "run", lambda run: [Row("q", [1.0])])
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "more.csv").write_text("1")
    reproduce("mouse-protein", tmp_path / "out", data=tmp_path / "one")
    with raises(FoundFileError, "other-result"):
        reproduce("mouse-protein", tmp_path / "out", data=tmp_path / "two")


def test_one_bad_dataset_does_not_stop_the_others(counted, tmp_path, monkeypatch):
    def bad(run):
        raise ValueError("file x is damaged")

    monkeypatch.setattr(four_clusters, "run", bad)
    for name in list(EXPERIMENTS):
        if name not in ("four-clusters", "synthetic"):
            monkeypatch.delitem(EXPERIMENTS, name)
    results = reproduce(["all", "synthetic"], tmp_path)
    assert [each.broken for each in results] == [True, False]
    assert counted == ["synthetic"]
    assert "Not run: file x is damaged" in (tmp_path / "reproduction.md").read_text()
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "four-clusters: file x is damaged" in " ".join(done.output.split())


def test_an_interrupted_run_goes_on_where_it_was(counted, tmp_path, monkeypatch):
    def interrupted(run):
        run.table("values.csv", ("a",), [(1,)])
        raise KeyboardInterrupt

    whole = synthetic.run
    monkeypatch.setattr(synthetic, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["four-clusters", "synthetic"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["four-clusters", "reproduction.md"]
    monkeypatch.setattr(synthetic, "run", whole)
    reproduce(["four-clusters", "synthetic"], tmp_path)
    assert counted == ["four-clusters", "synthetic"]
    assert "## synthetic" in (tmp_path / "reproduction.md").read_text()


def test_a_damaged_result_is_made_again(counted, tmp_path):
    reproduce(["synthetic"], tmp_path)
    (tmp_path / "synthetic" / "result.json").write_text("{")
    reproduce(["synthetic"], tmp_path)
    assert counted == ["synthetic", "synthetic"]


def test_missing_data_stop_a_named_experiment_but_not_all(counted, tmp_path, monkeypatch):
    monkeypatch.delenv("CONTRICA_DATA", raising=False)
    with raises(FileMissingError, "no-data-folder", "data") as said:
        reproduce(["mouse-protein"], tmp_path / "one")
    assert "mouse_protein/Data_Cortex_Nuclear.csv" in str(said.value)
    assert "CONTRICA_DATA" in str(said.value)
    assert not (tmp_path / "one").exists()
    for name in list(EXPERIMENTS):
        if name not in ("four-clusters", "synthetic", "mouse-protein"):
            monkeypatch.delitem(EXPERIMENTS, name)
    results = reproduce(["all"], tmp_path / "all")
    assert [bool(each.missing) for each in results] == [False, False, True]
    assert not any(each.broken for each in results)
    assert (
        "Not run: missing: the mouse protein table"
        in (tmp_path / "all" / "reproduction.md").read_text()
    )


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(tmp_path):
    tasks = [(4, seed, 3000) for seed in range(3)]
    one, two = (list(Run(tmp_path, n_jobs=n).map(synthetic.draw, tasks)) for n in (1, 2))
    assert one == two


# --- sweeps and ways ---


def test_tuning_finds_the_parameter_that_separates(rng):
    labels = np.repeat([0, 1], [300, 100])
    X = rng.standard_normal((400, 2)) + 6 * labels[:, None] * [0, 1]
    vectors = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
    best = tune_silhouette(np.array([3.0, 7.0]), vectors, X, labels, n_rows=80)
    assert best.parameter == 7.0
    assert best.score > 0.7 > 0.1 > best.scores[0]
    assert tune(np.array([1.0, 2.0]), vectors, lambda v: np.nan if v[0] else 0.5).parameter == 2.0


def test_some_rows_keep_the_classes_in_proportion():
    labels = np.repeat([0, 1, 2], [700, 200, 100])
    rows = some_rows(labels, 100)
    assert len(np.unique(rows)) == 100
    assert_allclose(np.bincount(labels[rows]), [70, 20, 10], atol=1)
    assert_allclose(some_rows(labels, 5000), np.arange(1000))


@pytest.mark.parametrize("way", WAYS)
def test_patterns_are_ranked_by_contrast_ratio(way):
    data = make_synthetic(5, n_samples=20_000, random_state=1)
    found = ranked_contrast(data.foreground, data.background, 5, 4, way, 0)
    assert np.all(np.diff(found.ratio) <= 0)
    fore, back = (np.cov(rows.T) for rows in (data.foreground, data.background))
    b = found.vectors[:, 0]
    assert_allclose(found.ratio[0], (b @ fore @ b) / (b @ back @ b), rtol=1e-3)
    given = [cumulants(rows, WAYS[way]["estimate"]) for rows in (data.foreground, data.background)]
    assert_allclose(ranked_contrast(*given, 5, 4, way, 0).vectors, found.vectors)


# --- the experiments themselves ---


def test_every_registered_experiment_has_its_function():
    from importlib import import_module

    for experiment in EXPERIMENTS.values():
        module = import_module(f"contrica.experiments.{experiment.module}")
        assert callable(getattr(module, experiment.function))


def test_four_clusters_draws_score_every_method():
    scores = four_clusters.draw("figure", 1000, 0, 2)
    assert set(scores) == {"true B", *four_clusters.METHODS, *four_clusters.STEP_2}
    assert len(scores["spm-htd"]) == 2
    assert len(scores["jade-htd"]) == 1
    assert scores["true B"][0] > 0.8
    assert scores["spm-htd, least squares"][0] > 0.8
    assert len(four_clusters.METHODS) == 11


@pytest.mark.slow
def test_four_clusters_writes_its_rows_and_figures(tmp_path, monkeypatch):
    def fake(design, n, seed, n_runs):
        names = ("true B", *four_clusters.METHODS, *four_clusters.STEP_2)
        # X-htd at .8, others at .5, one failure
        scores = {name: np.full(n_runs, 0.8 if name.endswith("-htd") else 0.5) for name in names}
        scores["htd-htd"] = np.array([0.4, np.nan])
        return scores

    monkeypatch.setattr(four_clusters, "draw", fake)
    rows = four_clusters.run(Run(tmp_path, quick=True))
    named = {row.quantity: row for row in rows}
    claim = named["figure, best of all runs: worst of X-htd less the best other method"]
    assert claim.holds
    assert_allclose(claim.values, [0.3])
    other = "worst other method less spm-spm-separate"
    assert not named[f"figure, best of all runs: {other}"].holds
    assert named[f"figure, single run: {other}"].verdict == "–"  # claimed of the best run only
    failed = next(row for row in rows if "n = 200: htd-htd" in row.quantity)
    assert "24 runs failed" in failed.note
    assert {path.name for path in tmp_path.iterdir()} == {
        *("silhouettes.csv", "silhouettes.png", "clusters.png")
    }


def test_synthetic_draws_recover_b_better_than_rivals_tuned_on_the_truth():
    found = synthetic.draw(6, 0, 50_000)
    assert found["cICA"][0] > 0.95
    for rival in synthetic.RIVALS:
        assert found[rival][0] < found["cICA"][0]
        assert found[rival][1] > found["cICA"][1]


def faked(cosines, scale=1.0):
    """A draw whose methods have the cosines given, as a function of p and seed."""

    def fake(p, seed, n_samples):
        values = {name: (value(p, seed), 1 - value(p, seed)) for name, value in cosines.items()}
        return {**values, "scale": scale} if scale is not None else values

    return fake


def test_synthetic_claims_are_of_the_draws_in_the_middle(tmp_path, monkeypatch):
    cosines = {
        "cICA": lambda p, seed: 0.95 if seed else 0.5,  # one bad draw of four
        "cICA, sequential": lambda p, seed: 0.95 if p < 12 else 0.85,
        "cPCA": lambda p, seed: 0.8,
        "PCPCA": lambda p, seed: 0.7,
    }
    monkeypatch.setattr(synthetic, "draw", faked(cosines, None))
    monkeypatch.setattr(synthetic, "seeds_on_one_draw", lambda p, n_seeds, n: [0.9, 0.9 + p / 1000])
    rows = {row.quantity: row for row in synthetic.run(Run(tmp_path, quick=True))}
    best = "median over draws of its cosine, each p"
    assert rows[f"cICA: {best}"].verdict == "holds"
    assert "75% to 75% of draws are above 0.9" in rows[f"cICA: {best}"].note
    assert rows[f"cICA, sequential: {best}"].verdict == "does not hold"
    margin = "lower quartile over draws of its cosine less the better rival's, each p"
    assert_allclose(rows[f"cICA: {margin}"].values, 0.0375)  # a quarter of the way from -.3 to .15
    assert_allclose(rows[f"cICA, sequential: {margin}"].values[-1], 0.05)
    assert "cPCA 0.800" in rows["p = 5: mean cosine, cICA"].note
    seeds = rows["range of the cosine over 3 seeds on one draw, each p"]
    assert_allclose(seeds.values, np.arange(4, 13) / 1000)
    written = (tmp_path / "draws.csv").read_text().splitlines()
    assert len(written) == 1 + 9 * 4 * 4
    assert written[1] == "4,0,cICA,0.5,0.5"


def test_the_papers_single_draw_is_looked_for_among_ours(tmp_path, monkeypatch):
    cosines = {
        "prop cICA": lambda p, seed: 0.999,
        "cPCA": lambda p, seed: 0.6 + 0.1 * seed,  # 0.6 to 0.9
        "PCPCA": lambda p, seed: 0.1,
    }
    monkeypatch.setattr(synthetic, "draw_proportional", faked(cosines, 1.05))
    rows = {row.quantity: row for row in synthetic.run_proportional(Run(tmp_path, quick=True))}
    assert rows["p = 4: mean cosine, prop cICA"].verdict == "higher"
    assert rows["p = 8: mean cosine, cPCA"].verdict == "within ours"
    assert rows["p = 4: mean cosine, PCPCA"].verdict == "lower"
    assert rows["γ, true 1"].verdict == "–"
    assert "100% of draws inside" in rows["γ, true 1"].note
    assert "0% of draws inside" in rows["γ⁴, true 1"].note


def test_the_proportional_design_gives_its_scale_back():
    found = synthetic.draw_proportional(5, 0, 100_000)
    assert_allclose(found["scale"], 1, atol=0.1)
    assert found["prop cICA"][0] > 0.99


@pytest.mark.slow
def test_mouse_numbers_are_the_papers(real_data, tmp_path):
    rows = {row.quantity: row for row in mouse_protein.run(Run(tmp_path, True, real_data))}
    for quantity in (
        "silhouette, ICA",
        "silhouette, cPCA at α = 26.2",
        "silhouette, PCPCA at γ′ = 0.9 n/m",
        "silhouette, PCPCA scaled, at γ′ = 0.9 n/m",
    ):
        assert rows[quantity].verdict == "reproduced", quantity
        assert rows[quantity].tolerance == 0.005
    plotted = [row for name, row in rows.items() if "plotted eigenvalues" in name]
    assert len(plotted) == 2
    assert all(row.holds and row.values[0] < 5e-4 for row in plotted)
    assert (tmp_path / "projections.png").stat().st_size > 10_000


@pytest.mark.slow
def test_digits_on_photographs_are_compared_with_their_means(real_data, monkeypatch):
    monkeypatch.setitem(mnist.RANKS, "continuous", (10, 10))  # the paper's take a minute
    found = mnist.draw("continuous", 0, str(real_data), 0.1, 1)
    assert set(found["correlations"]) == set(mnist.METHODS)
    values = np.array([found["correlations"][m][0] for m in mnist.METHODS])
    assert np.all((values >= 0) & (values <= 1))
    assert found["correlations"]["cPCA"][0][0] > 0.8  # the 0 has much more variance than the 1
    assert found["images"]["cICA"].shape == (2, 784)


@pytest.mark.slow
def test_digits_are_reported_one_value_for_each_draw(tmp_path, monkeypatch, rng):
    def fake(design, seed, folder, fraction, n_seeds):
        each = {m: n_seeds if m in WAYS else 1 for m in mnist.METHODS}
        base = {"cPCA": 0.7, "PCPCA": 0.6}
        return {
            "correlations": {
                m: [np.array([base.get(m, 0.4), 0.5]) + 0.1 * k for k in range(n)]
                for m, n in each.items()
            },
            "silhouette": {m: [0.3 + 0.2 * k for k in range(n)] for m, n in each.items()},
            "accuracy": {m: [np.array([0.9, 0.8])] * n for m, n in each.items()},
            "images": {m: rng.random((2, 784)) for m in mnist.METHODS},
            "means": rng.random((2, 784)),
            "examples": (rng.random((8, 784)), rng.random((8, 784))),
            "explained": 0.77,
            "chosen": {"cPCA": 5.0, "PCPCA": 0.9} if design == "discrete" else {},
            "points": {m: rng.random((20, 2)) for m in mnist.METHODS},
            "point labels": np.arange(20) % 2,
            **{f"ratios, {way}": np.array([0.1, 2.0]) for way in WAYS},
        }

    monkeypatch.setattr(mnist, "draw", fake)
    monkeypatch.setattr(mnist, "load_corrupted_mnist", lambda *args, **kwargs: None)
    rows = {row.quantity: row for row in mnist.run_discrete(Run(tmp_path, quick=True))}
    assert_allclose(rows["silhouette, cICA"].values, [0.3, 0.3])  # first seeds of two draws
    assert rows["silhouette, cICA"].verdict == "–"  # other photographs
    assert "parameter chosen by labels" in rows["accuracy of the first pattern, cPCA"].note
    assert_allclose(rows["range of the silhouette over 2 seeds, cICA"].values, 0.2)
    assert "2 of 2 draws" in rows["range of the silhouette over 2 seeds, cICA"].note
    assert not any("worse of both" in name for name in rows)  # claimed of the other design only
    rows = {row.quantity: row for row in mnist.run(Run(tmp_path, quick=True))}
    claim = rows["|correlation| of the worse of both digits, cICA"]
    assert claim.verdict == "does not hold"
    assert_allclose(claim.values, 0.4)
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 1 + 2 * (2 * 2 + 3)


def test_patterns_are_paired_with_digits_by_the_better_total():
    zero, one = np.eye(2).repeat(2, axis=1)
    digits = np.array([zero + np.array([0.1, 0, 0, 0]), one])
    assert_allclose(mnist._correlations(np.array([one, zero]).T, digits)[1], 1)
    labels = np.array([0, 0, 1, 1])
    scores = np.array([[1.0, -1.0], [2.0, 1.0], [-1.0, 1.0], [-3.0, -1.0]])
    assert_allclose(mnist._accuracy(scores, labels), [1.0, 0.5])


# --- data ---


def test_a_wrong_mouse_table_is_said_to_be_one(tmp_path):
    (tmp_path / "mouse_protein").mkdir()
    path = tmp_path / "mouse_protein" / "Data_Cortex_Nuclear.csv"
    path.write_text("a,b\n1,2\n")
    with raises(FileError, "content"):
        load_mouse_protein(tmp_path)
    path.write_text(
        "A_N,MouseID,Behavior,Treatment,Genotype,class\n1,309_1,S/C,Saline,Control,c-SC-s\n"
    )
    with raises(FileError, "too-few-rows") as said:
        load_mouse_protein(tmp_path)
    assert "has 1 foreground rows" in str(said.value)


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "mouse_protein").mkdir()
    path = tmp_path / "mouse_protein" / "Data_Cortex_Nuclear.csv.gz"
    whole = gzip.compress(b"A_N,Behavior,Treatment,Genotype,class\n" * 50)
    path.write_bytes(whole[:20] + b"\x00\xff" * 8 + whole[36:])
    with raises(FileError, "content") as said:
        load_mouse_protein(tmp_path)
    assert "is not the mouse protein table" in str(said.value)
    (tmp_path / "natural_backgrounds").mkdir()
    np.savez(tmp_path / "natural_backgrounds" / "patches28.npz", grass=np.zeros(3))
    path = tmp_path / "natural_backgrounds" / "patches28.npz"
    path.write_bytes(path.read_bytes()[:100])
    with raises(FileError, "content") as said:
        load_corrupted_mnist(tmp_path)
    assert "has no images as needed" in str(said.value)


def made_images(folder, rng, n_photos=40, n_digits=20):
    from PIL import Image

    for name in ("grass", "cloud"):
        (folder / "natural_backgrounds" / name).mkdir(parents=True)
        for i in range(n_photos):
            pixels = rng.integers(0, 256, (40, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "natural_backgrounds" / name / f"{i}.png")
    (folder / "mnist").mkdir()
    digits = rng.integers(0, 256, (2 * n_digits, 28, 28), dtype=np.uint8)
    labels = np.repeat([0, 1], n_digits)
    np.savez(folder / "mnist" / "mnist.npz", x_train=digits, y_train=labels)


@pytest.mark.parametrize("design", ["discrete", "continuous"])
def test_images_of_the_user_serve(tmp_path, rng, design):
    made_images(tmp_path, rng)
    data = load_corrupted_mnist(tmp_path, design=design, fraction=0.002, random_state=0)
    assert data.foreground.shape == (20, 784)
    assert data.background.shape == (20, 784)
    assert data.patterns.shape == (2, 784)
    assert 0 <= data.background.min() <= data.background.max() <= 1
    again = load_corrupted_mnist(tmp_path, design=design, fraction=0.002, random_state=0)
    assert_allclose(again.foreground, data.foreground, rtol=0, atol=0)
    if design == "discrete":
        assert np.bincount(data.labels).tolist() == [5, 5, 5, 5]
        assert_allclose(data.strengths[data.labels == 0], np.tile([1, 0], (5, 1)))
    with raises(FileError, "too-few-images", "fraction") as said:
        load_corrupted_mnist(tmp_path, design=design, fraction=0.1)
    assert "40 images of grass, but the design takes 1300" in str(said.value)


def test_no_image_serves_in_foreground_and_background_both(tmp_path, rng):
    made_images(tmp_path, rng)
    data = load_corrupted_mnist(tmp_path, fraction=0.002, random_state=0)
    plain = data.foreground[data.labels == 3]
    distances = np.abs(plain[:, None] - data.background[None]).max(axis=2)
    assert distances.min() > 0.1


def test_missing_and_wrong_images_are_named(tmp_path, rng):
    made_images(tmp_path, rng)
    with raises(ParameterError, "out-of-range", "fraction"):
        load_corrupted_mnist(tmp_path, fraction=2)
    np.savez(tmp_path / "mnist" / "mnist.npz", other=np.zeros(3))
    with raises(FileError, "content") as said:
        load_corrupted_mnist(tmp_path, fraction=0.002)
    assert "is not MNIST" in str(said.value)
    clouds = tmp_path / "natural_backgrounds" / "cloud"
    for path in clouds.iterdir():
        path.unlink()
    with raises(FileMissingError, "data-missing"):
        load_corrupted_mnist(tmp_path, fraction=0.002)
    (clouds / "a.png").write_text("no image")
    with raises(FileError, "unreadable"):
        load_corrupted_mnist(tmp_path, fraction=0.002)
    np.savez(tmp_path / "natural_backgrounds" / "patches28.npz", grass=np.zeros((3, 28, 28)))
    with raises(FileError, "content") as said:
        load_corrupted_mnist(tmp_path, fraction=0.002)
    assert "cloud" in said.value.got


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A web server on this machine in place of the public one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setenv("CONTRICA_CACHE", str(tmp_path / "cache"))
        yield f"http://127.0.0.1:{running.server_port}/mnist.npz"
        running.shutdown()


HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def test_downloads_are_checked_and_kept(server, monkeypatch, tmp_path):
    monkeypatch.setitem(_folder.PUBLIC, "mnist.npz", (server, HELLO))
    path = fetch("mnist.npz")
    assert path.read_bytes() == b"hello"
    assert path.parent == tmp_path / "cache"


def test_another_file_than_expected_is_refused_and_not_kept(server, monkeypatch, tmp_path):
    monkeypatch.setitem(_folder.PUBLIC, "mnist.npz", (server, "0" * 64))
    with raises(FileError, "checksum"):
        fetch("mnist.npz")
    assert not (tmp_path / "cache" / "mnist.npz").exists()


def test_without_network_the_error_says_which_file_to_put_where(monkeypatch, tmp_path):
    monkeypatch.setenv("CONTRICA_CACHE", str(tmp_path / "cache"))
    address = "http://127.0.0.1:9/mnist.npz"  # the discard port: nothing listens
    monkeypatch.setitem(_folder.PUBLIC, "mnist.npz", (address, HELLO))
    with raises(FileMissingError, "data-missing") as said:
        fetch("mnist.npz")
    assert f"Put mnist.npz into {tmp_path / 'cache'}" in str(said.value)


# --- shell ---


def test_a_file_in_the_way_is_noticed_before_any_work(counted, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below"):
        with raises(FoundFileError, "file-not-folder", "out"):
            reproduce("synthetic", tmp_path / place)
    assert counted == []


def test_a_stopped_run_says_how_to_go_on(counted, tmp_path, monkeypatch):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(synthetic, "run", interrupted)
    done = CliRunner().invoke(app, ["reproduce", "synthetic", "--out", str(tmp_path / "o")])
    assert done.exit_code == 130
    assert "the same command goes on" in done.output


def test_reproduce_in_the_shell(counted, tmp_path):
    done = CliRunner().invoke(
        app, ["reproduce", "four-clusters", "synthetic", "--quick", "--out", str(tmp_path / "o")]
    )
    assert done.exit_code == 0, done.output
    assert "reproduction.md" in done.output
    written = json.loads((tmp_path / "o" / "synthetic" / "result.json").read_text())
    assert written["quick"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["magic"], "error: experiment magic is not known. Choose one of 'all', 'four-clusters'"),
        (["mouse-protein", "--data", "/nowhere"], "/nowhere does not exist"),
        (["all", "--data", "/nowhere"], "/nowhere does not exist"),
        (["transplant", "--data", "/nowhere"], "/nowhere does not exist"),
        (["human-primate", "--data", "/nowhere"], "/nowhere does not exist"),
        (["mnist-discrete", "--data", "/nowhere"], "/nowhere does not exist"),
    ],
)
def test_bad_requests_are_one_sentence_and_exit_code_2(arguments, message, tmp_path, monkeypatch):
    # no download is tried
    monkeypatch.setitem(_folder.PUBLIC, "mnist.npz", ("http://127.0.0.1:9/mnist.npz", HELLO))
    done = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path / "o")])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert not (tmp_path / "o").exists()
