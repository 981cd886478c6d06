"""One file is enough: rows chosen by columns, metadata, configuration, JSON, the example."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.io import mmwrite

from contrica import ContrastiveICA, load, tl
from contrica.cli import console
from contrica.cli.commands import EXAMPLES
from contrica.datasets import kang_anndata, make_four_clusters
from contrica.errors import DataError, DelicateDataWarning, FileError, ParameterError, collected
from contrica.estimators._ranking import kurtosis_of, p_values_of
from contrica.rows import open_rows, read_table
from tests.said import raises, warns
from tests.test_cli.shell import FIT, refused, run, runner, words

pytestmark = pytest.mark.usefixtures("no_figures")

EXAMPLES_FOLDER = Path(__file__).parents[2] / "examples"
VARIABLES = ["alpha", "beta", "gamma", "delta", "eps"]


@pytest.fixture
def table():
    """Rows of both datasets, mixed, with what is known of them."""
    data = make_four_clusters(120, random_state=0)
    rows = pd.DataFrame(np.vstack([data.foreground, data.background]), columns=VARIABLES)
    rows.insert(0, "cell", [f"c{i}_{i % 3}" for i in range(240)])
    rows["condition"] = np.repeat(["stim", "ctrl"], 120)
    rows["dose"] = np.tile([1.0, 2.0], 120)
    return rows.sample(frac=1, random_state=0).reset_index(drop=True)


def write(table, path):
    """The table in the format that the ending says."""
    kind = path.suffix
    if kind in (".csv", ".tsv"):
        table.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    elif kind == ".parquet":
        table.to_parquet(path)
    else:
        obs = table.set_index("cell")[["condition", "dose"]]
        var = pd.DataFrame({"used": [True, True, True, False, True]}, index=VARIABLES)
        found = anndata.AnnData(sp.csr_matrix(table[VARIABLES].to_numpy()), obs, var)
        found.layers["doubled"] = found.X * 2
        found.uns["nothing"] = None
        with warnings.catch_warnings():  # of another format in the next release
            warnings.simplefilter("ignore")
            found.write_h5ad(path) if kind == ".h5ad" else found.write_zarr(path)
    return path


def expected(table, **options):
    parts = [table[table["condition"] == name] for name in ("stim", "ctrl")]
    model = ContrastiveICA(
        "auto",
        n_background=3,
        n_foreground=2,
        solver="paper",
        deflation="least_squares",
        random_state=0,
        **options,
    )
    with collected():  # the background does not vary in all directions
        return model.fit(parts[0][VARIABLES].to_numpy(), background=parts[1][VARIABLES].to_numpy())


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "h5ad", "zarr"])
def test_rows_of_one_file_give_what_two_datasets_give(table, tmp_path, kind):
    path, out = write(table, tmp_path / f"all.{kind}"), tmp_path / "out"
    drop = ("--drop", "dose") if kind in ("csv", "tsv", "parquet") else ()
    result = run("fit", path, "--groupby", "condition", "-b", "ctrl", "-o", out, *drop, *FIT)
    assert result.exit_code == 0, result.output
    assert "foreground: 120 rows, all others; background: 120 rows with condition=ctrl" in words(
        result
    )
    patterns = read_table(out / "patterns.csv")
    assert patterns.rows.tolist() == VARIABLES
    model = expected(table)
    assert_allclose(patterns.values.T, model.components_, atol=1e-6)
    fore, back = (table[table["condition"] == name] for name in ("stim", "ctrl"))
    for name, own in (("scores", fore), ("background_scores", back)):
        scores = read_table(out / f"{name}.csv")
        assert scores.rows.tolist() == own["cell"].tolist()
        assert_allclose(scores.values, model.transform(own[VARIABLES].to_numpy()), atol=1e-6)
    metadata = pd.read_csv(out / "metadata.csv", dtype=str)
    assert metadata["dataset"].tolist() == ["foreground"] * 120 + ["background"] * 120
    assert metadata["sample"].tolist() == [*fore["cell"], *back["cell"]]
    assert metadata["condition"].tolist() == ["stim"] * 120 + ["ctrl"] * 120
    assert_allclose(metadata["dose"].astype(float), [*fore["dose"], *back["dose"]])


def test_layers_and_masks_choose_what_is_read(table, tmp_path):
    path = write(table, tmp_path / "all.h5ad")
    call = ("fit", path, "--groupby", "condition", "-b", "ctrl", *FIT, "-o", tmp_path / "out")
    result = run(*call, "--layer", "doubled", "--mask-var", "used")
    assert result.exit_code == 0, result.output
    used = [name for name in VARIABLES if name != "delta"]
    assert read_table(tmp_path / "out" / "patterns.csv").rows.tolist() == used
    opened = open_rows(path, "layers/doubled", mask_var="used")
    found = np.vstack(list(opened.rows.blocks(7)))
    assert_allclose(found, 2 * table[used].to_numpy())
    said = refused(
        run(*call, "--mask-var", "usd", "--overwrite"), FileError, "unknown-column", "mask_var"
    )
    assert "It has used." in said


def test_a_wrong_key_beside_null_entries_is_one_sentence(table, tmp_path):
    path = write(table, tmp_path / "all.h5ad")
    call = ("fit", path, "--groupby", "condition", "-b", "ctrl", "-o", tmp_path / "out")
    said = refused(run(*call, "--key", "layers/none"), FileError, "unknown-key", "key")
    assert "layers/doubled" in said
    assert not (tmp_path / "out").exists()


def test_groups_labels_and_conditions(table, tmp_path):
    path = write(table, tmp_path / "all.csv")
    result = run(
        *("fit", path, "--foreground", "condition=stim,dose=1|2", "--background", "condition=ctrl"),
        *(
            "--groups",
            "cell~_(.)$",
            "--labels",
            "dose",
            "-o",
            tmp_path / "out",
            "--n-foreground",
            1,
        ),
    )
    assert result.exit_code == 0, result.output
    assert "foreground: 120 rows with condition=stim, dose=1|2" in words(result)
    assert "groups: p = " in words(result)
    metadata = pd.read_csv(tmp_path / "out" / "metadata.csv", dtype=str)
    assert metadata["groups"].tolist() == metadata["sample"].str[-1].tolist()
    assert metadata["labels"].tolist() == metadata["dose"].tolist()
    scored = run(
        *("transform", tmp_path / "out" / "model.npz", path, "--drop", "dose"),
        *("--foreground", "condition=ctrl", "-o", tmp_path / "new.csv"),
    )
    assert scored.exit_code == 0, scored.output
    assert "columns of text, taken as metadata: " not in scored.output
    one, other = (tmp_path / name for name in ("new.csv", "out/background_scores.csv"))
    assert_allclose(read_table(one).values, read_table(other).values, atol=1e-9)


def test_columns_of_text_are_metadata_and_said_to_be(table, tmp_path):
    table["site"] = "north"
    path = write(table, tmp_path / "all.csv")
    call = ("-b", "condition=ctrl", "--drop", "dose", "-o", tmp_path / "out", *FIT)
    result = run("fit", path, *call)
    assert result.exit_code == 0, result.output
    assert "columns of text, taken as metadata: site" in words(result)
    # two files: an error that says what to add
    parts = [tmp_path / "fore.csv", tmp_path / "back.csv"]
    for name, part in zip(("stim", "ctrl"), parts, strict=True):
        write(table[table["condition"] == name], part)
    said = refused(
        run("fit", parts[0], "-b", parts[1], "-o", tmp_path / "two"), FileError, "not-numbers"
    )
    assert "with --drop condition,site." in said
    assert (
        run(
            "fit",
            parts[0],
            "-b",
            parts[1],
            "-o",
            tmp_path / "two",
            *FIT,
            "--drop",
            "condition,site,dose",
        ).exit_code
        == 0
    )
    assert_allclose(
        *(read_table(tmp_path / each / "patterns.csv").values for each in ("out", "two"))
    )


@pytest.mark.parametrize(
    ("options", "cls", "code", "said"),
    [
        (("-b", "condition=crtl"), DataError, "no-rows",
         "--background condition=crtl selects no rows. The values of condition are ctrl, stim. "
         "Did you mean ctrl?"),
        (("-b", "condition=ctrl,dose=3"), DataError, "no-rows", "The values of dose are 1.0, 2.0."),
        (("-b", "condition=ctrl,cell=c0_0"), DataError, "no-rows", "but no row has all"),
        (("-b", "condition=ctrl", "--foreground", "dose=1"), DataError, "overlap",
         "60 rows are in both --foreground dose=1 and --background condition=ctrl"),
        (("-b", "condition=ctrl|stim"), DataError, "no-rows", "leaves no foreground"),
        (("-b", "condishun=ctrl"), FileError, "unknown-column", "mean condition?"),
        (("-b", "ctrl", "--groupby", "condishun"), FileError, "unknown-column", "mean condition?"),
        (("-b", "condition=ctrl", "--foreground", "stim"), ParameterError, "not-a-selection",
         "--foreground stim does not say which rows"),
        (("-b", "condition=ctrl", "--groups", "cell~^x"), DataError, "no-match", "finds nothing in 'c"),
        (("-b", "condition=ctrl", "--labels", "dosis"), FileError, "unknown-column", "mean dose?"),
        ((), ParameterError, "no-data", "no background was given"),
    ],
)  # fmt: skip
def test_bad_selections_are_one_sentence(table, tmp_path, options, cls, code, said):
    path = write(table, tmp_path / "all.csv")
    result = run("fit", path, *options, "-o", tmp_path / "out")
    assert said in refused(result, cls, code)
    assert os.listdir(tmp_path) == ["all.csv"]


def test_a_10x_folder_is_read(tmp_path):
    counts = np.random.default_rng(0).poisson(3.0, (6, 9))  # genes by cells
    mmwrite(tmp_path / "matrix.mtx", sp.coo_matrix(counts))
    with gzip.open(tmp_path / "features.tsv.gz", "wt") as file:
        names = ["A", "B", "A", "C", "D", "E"]
        kinds = ["Gene Expression"] * 5 + ["Antibody Capture"]
        file.writelines(f"id{i}\t{names[i]}\t{kinds[i]}\n" for i in range(6))
    (tmp_path / "barcodes.tsv").write_text("".join(f"cell{i}\n" for i in range(9)))
    for path in (tmp_path, tmp_path / "matrix.mtx"):
        found = open_rows(path)
        assert found.columns.tolist() == ["id0", "B", "id2", "C", "D"]
        assert found.row_names.tolist() == [f"cell{i}" for i in range(9)]
        assert_allclose(found.rows.toarray(), counts[:5].T)
    (tmp_path / "barcodes.tsv").write_text("one\n")
    with raises(FileError, "shape"):
        open_rows(tmp_path)


@pytest.mark.parametrize("large", [False, True])
def test_semicolons_and_decimal_commas_are_read(table, tmp_path, monkeypatch, large):
    monkeypatch.setattr("contrica.rows.files.text.ARROW_BYTES", 0 if large else 2**30)
    table.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    found = open_rows(tmp_path / "t.csv", metadata=["dose"], all_metadata=True)
    assert_allclose(found.rows, table[VARIABLES])
    assert found.row_names.tolist() == table["cell"].tolist()
    assert found.metadata["condition"].tolist() == table["condition"].tolist()
    # which may be thousands
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n1.234;3\n")
    with raises(FileError, "not-numbers") as caught:
        read_table(tmp_path / "t.csv")
    assert "decimal commas" in str(caught.value)
    (tmp_path / "t.tsv").write_text("a\tb\n1,5\t2\n1\t3\n")
    assert read_table(tmp_path / "t.tsv").values.tolist() == [[1.5, 2], [1, 3]]


def test_whole_numbers_under_the_heading_of_an_id_are_warned_of(tmp_path):
    (tmp_path / "t.csv").write_text("patient_id,dose,valid\n7,1.5,1\n7,2.5,2\n9,1.0,3\n")
    with warns(DelicateDataWarning, "id-column"):
        read_table(tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", metadata="patient_id").columns.tolist() == [
        "dose",
        "valid",
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.npy", "t.npz", "t.h5ad", "t.parquet"])
@pytest.mark.parametrize(
    "start", [b"\x89HDF\r\n", b"PAR1", b"PK\x03\x04", b"\x1f\x8b\x08", b"a;b\n1;2\n"]
)
def test_files_that_are_not_what_their_name_says_are_one_sentence(tmp_path, name, start):
    path = tmp_path / name
    path.write_bytes(start + b"\x00\xff" * 40)
    result = run("fit", path, "-b", path, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert result.output.count("error: ") == 1
    assert os.listdir(tmp_path) == [name]


# --- configuration, JSON, progress ---


def test_a_run_is_repeated_from_its_configuration(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(table, tmp_path / "all.csv")
    call = ("all.csv", "-b", "condition=ctrl", "--groups", "cell~_(.)$", "--drop", "dose")
    assert run("fit", *call, "--n-foreground", 1, "--seed", 3, "-o", "one").exit_code == 0
    again = run("fit", "--config", "one/run.toml", "-o", "two")
    assert again.exit_code == 0, again.output
    for name in (
        "patterns.csv",
        "scores.csv",
        "background_scores.csv",
        "metadata.csv",
        "summary.txt",
    ):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    # the command line wins
    assert run("fit", "--config", "one/run.toml", "-o", "three", "--n-foreground", 2).exit_code == 0
    assert len(read_table("three/patterns.csv").columns) == 2
    assert "n-foreground = 2" in (tmp_path / "three" / "run.toml").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('scael = "each"', "'scael' is not an option of this command. Did you mean scale?"),
        ("scale = [1, 2]", "scale is a list, but one value is needed"),
        ("scale = ", "is not a TOML file"),
        ('config = "other.toml"', "'config' is not an option of this command"),
        ("seed = -1", "--seed -1 cannot seed"),
    ],
)
def test_bad_configurations_are_one_sentence(table, tmp_path, text, said):
    (tmp_path / "run.toml").write_text(text)
    path = write(table, tmp_path / "all.csv")
    call = ("-b", "condition=ctrl", "--drop", "dose", "--config", tmp_path / "run.toml")
    result = run("fit", path, *call, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert said in words(result)
    assert not (tmp_path / "out").exists()


def test_json_is_all_of_the_standard_output(table, tmp_path):
    path = write(table, tmp_path / "all.csv")
    rows = (path, "-b", "condition=ctrl", "--drop", "dose")
    calls = {
        "fit": (*rows, "-o", tmp_path / "out", *FIT),
        "transform": (
            tmp_path / "out" / "model.npz",
            path,
            "--drop",
            "dose",
            "-o",
            tmp_path / "s.csv",
        ),
        "ranks": rows,
        "compare": (*rows, "--methods", "pca,cpca"),
    }
    found = {}
    for command, call in calls.items():
        result = run(command, *call, "--json")
        assert result.exit_code == 0, result.output
        found[command] = json.loads(result.stdout)
        assert result.stderr
    patterns = read_table(tmp_path / "out" / "patterns.csv")
    assert len(found["fit"]["patterns"]) == len(patterns.columns)
    model = load(tmp_path / "out" / "model.npz")
    for key, values in (("p", p_values_of(model)), ("kurtosis", kurtosis_of(model))):
        told = [each[key] for each in found["fit"]["patterns"]]
        assert_allclose(np.array(told, dtype=float), values)  # None is NaN
    assert found["fit"]["rows"] == {"foreground": 120, "background": [120], "variables": 5}
    assert os.path.exists(found["fit"]["files"]["metadata.csv"])
    assert found["transform"]["rows"] == 240
    assert found["ranks"]["fit"]["solver"] in ("joint", "subspace")
    assert [each["method"] for each in found["compare"]["methods"]] == ["pca", "cpca"]


def test_progress_is_lines_where_there_is_no_terminal(monkeypatch, capfd):
    monkeypatch.setattr(console, "FIRST_LINE", 0.05)
    monkeypatch.setattr(console, "NEXT_LINE", 0.05)
    wait = console.threading.Event()
    with console.progress("reading"):
        wait.wait(0.4)
        console.logging.getLogger("contrica").info("working")
        wait.wait(0.4)
    assert [line.partition(": ")[2] for line in capfd.readouterr().err.splitlines()] == [
        "reading …",
        "working …",
    ]


# --- help, completion, example ---


def test_every_command_has_an_example_that_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command, line in EXAMPLES.items():
        first, name, *options = shlex.split(line)
        assert (first, name) == ("contrica", command.__name__)
        shown = runner.invoke(console_app(), [name, "--help"])
        assert f"Example: {line}" in words(shown)
        if name in ("demo", "compare", "reproduce"):  # slow ones, which others test
            continue
        if name == "explore":  # which would serve its page for ever
            options += ["--out", "explored"]
        result = run(name, *options)
        assert result.exit_code == 0, result.output
        if name == "example":
            monkeypatch.chdir(tmp_path / "example")


def console_app():
    from contrica.cli import app

    return app


def test_the_example_is_real_and_small(tmp_path):
    assert run("example", "-o", tmp_path / "e").exit_code == 0
    names = ["README.txt", "controls.csv", "new_patients.csv", "patients.csv", "samples.csv"]
    assert sorted(os.listdir(tmp_path / "e")) == names
    assert sum(path.stat().st_size for path in (tmp_path / "e").iterdir()) < 300_000
    whole = pd.read_csv(tmp_path / "e" / "samples.csv")
    parts = [pd.read_csv(tmp_path / "e" / f"{name}.csv") for name in ("patients", "controls")]
    kinds = [whole[whole["diagnosis"] == name] for name in ("malignant", "benign")]
    for part, own in zip(parts, kinds, strict=True):
        bare = own.drop(columns=["id", "diagnosis"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(part, bare)
    assert not set(pd.read_csv(tmp_path / "e" / "new_patients.csv")["sample"]) & set(
        whole["sample"]
    )
    assert run("example", "-o", tmp_path / "e").exit_code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a bash")
def test_the_shell_completes_commands_and_options():
    for line, completion in (("contrica tra", "transform"), ("contrica fit --mask", "--mask-var")):
        environment = {
            **os.environ,
            "_CONTRICA_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - 1),
        }
        code = "import sys; sys.argv[0] = 'contrica'; from contrica_shell import main; main()"
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert completion in found.stdout.split(), found.stderr


# --- real data ---


def needs_data():
    folder = os.environ.get("CONTRICA_DATA", "")
    return pytest.mark.skipif(not os.path.isdir(folder), reason="CONTRICA_DATA is not set")


@needs_data()
def test_mice_from_one_csv_and_one_line(tmp_path):
    with gzip.open(
        f"{os.environ['CONTRICA_DATA']}/mouse_protein/Data_Cortex_Nuclear.csv.gz"
    ) as file:
        (tmp_path / "data.csv").write_bytes(file.read())
    result = run(
        *("fit", tmp_path / "data.csv", "--foreground", "Behavior=S/C,Treatment=Saline"),
        *("--background", "class=c-CS-s", "--groups", "MouseID~^[^_]+", "--drop", "Genotype,class"),
        *(
            "--missing",
            "impute",
            "--scale",
            "each",
            "--labels",
            "Genotype",
            "--out",
            tmp_path / "r",
        ),
    )
    assert result.exit_code == 0, result.output
    summary = (tmp_path / "r" / "summary.txt").read_text()
    assert "in 270 rows of 18 groups" in summary
    assert "whole groups assigned" in summary
    scores = pd.read_csv(tmp_path / "r" / "scores.csv")
    metadata = pd.read_csv(tmp_path / "r" / "metadata.csv")
    metadata = metadata[metadata["dataset"] == "foreground"]
    assert metadata["sample"].tolist() == scores["sample"].tolist()
    animals = scores["pattern_1"].groupby(metadata["groups"].to_numpy()).mean()
    genotype = metadata.groupby("groups")["labels"].first()
    means = animals.groupby(genotype).agg(["mean", "std"])
    apart = abs(means["mean"].diff().iloc[1])
    assert apart > 2 * means["std"].mean()  # of nine animals each
    report = (tmp_path / "r" / "report.html").read_text()
    assert "The sample is 18 groups (MouseID), not 270 rows" in report
    assert re.search(
        r"Genotype explains \d\d% of the variance of score 1 between 18 groups", report
    )


@pytest.mark.slow
@needs_data()
def test_kang_by_the_shell_has_the_patterns_of_the_ten_lines_with_scanpy(tmp_path, monkeypatch):
    """The script of examples, without its map: all that makes patterns is there, and names them."""
    lines = (EXAMPLES_FOLDER / "kang_scanpy.py").read_text(encoding="utf-8").splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.startswith("adata = ")]
    (end,) = [i for i, line in enumerate(lines) if line.startswith("sc.pp.neighbors")]
    found = {"sc": pytest.importorskip("scanpy"), "tl": tl, "kang_anndata": kang_anndata}
    with collected():
        exec("\n".join(lines[start:end]), found)
    adata, genes = found["adata"], found["genes"].groupby("pattern")["gene"].agg(list)
    assert {"IFIT1", "IFIT3", "MX1", "RSAD2"} <= set(genes[1])  # what all cells do
    assert {"CXCL10", "CXCL11", "IDO1", "APOBEC3A"} <= set(genes[2])  # what monocytes do
    adata.write_h5ad(tmp_path / "kang.h5ad")
    call = ("--groupby", "condition", "--background", "ctrl", "--groups", "donor")
    more = ("--mask-var", "highly_variable", "--components", 4, "--no-report")
    result = run("fit", tmp_path / "kang.h5ad", *call, *more, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    patterns = pd.read_csv(tmp_path / "r" / "patterns.csv", index_col=0)
    used = adata.var["highly_variable"].to_numpy()
    assert list(patterns.index) == list(adata.var_names[used])
    assert_allclose(patterns.values, adata.varm["cica"][used], atol=1e-6)
