"""``contrica example``: a small real dataset to try the commands on."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.datasets import load_breast_cancer

from contrica.cli.console import print_json, print_line, results_as_json
from contrica.cli.options import Overwrite, RunOptions
from contrica.output import output_folder

FILES = ("patients.csv", "controls.csv", "new_patients.csv", "samples.csv", "README.txt")
# Patients that transform scores later.
N_NEW = 40
ABOUT = """Samples of breast tissue: 30 measurements of the cell nuclei in each, of malignant tumours
(patients) and of benign ones (controls).

patients.csv      172 malignant samples
controls.csv      357 benign samples
new_patients.csv  40 more malignant samples
samples.csv       patients and controls in one file, with the columns diagnosis and id

Wolberg, Mangasarian, Street and Street, Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning
Repository, CC BY 4.0; cut from the copy that comes with scikit-learn.
"""


def example(
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("example"),
    overwrite: Overwrite = False,
    run: RunOptions = RunOptions(),  # noqa: B008 - frozen
) -> None:
    """Write a small real dataset to try the commands on: tumours of patients and controls.

    As two files, patients.csv and controls.csv, and as one, samples.csv, with new_patients.csv to score.
    """
    with results_as_json(run.json):
        with output_folder(output, overwrite=overwrite, ours=FILES) as folder:
            _write(folder)
        print_line(f"written to {output}; README.txt says what it is", wrap=False)
        print_json({"out": str(output), "files": {name: str(output / name) for name in FILES}})


def _write(folder: Path) -> None:
    data = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    malignant, benign = (np.flatnonzero(data.target == i) for i in (0, 1))
    patients, new = malignant[:-N_NEW], malignant[-N_NEW:]
    parts = {"patients": patients, "controls": benign, "new_patients": new}
    for name, rows in parts.items():
        lines = ([f"tumour_{i}", *data.data[i].tolist()] for i in rows)
        _write_csv(folder / f"{name}.csv", ["sample", *names], lines)
    lines = (
        [f"tumour_{i}", i, str(data.target_names[data.target[i]]), *data.data[i].tolist()]
        for i in np.sort([*patients, *benign]).tolist()
    )
    _write_csv(folder / "samples.csv", ["sample", "id", "diagnosis", *names], lines)
    (folder / "README.txt").write_text(ABOUT, encoding="utf-8")


def _write_csv(path: Path, heading: list[str], lines: Iterable[list[object]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heading)
        writer.writerows(lines)
