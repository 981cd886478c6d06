import shutil

import pandas as pd
import pytest

from contrica.cli import writing
from contrica.datasets import make_four_clusters
from tests.test_cli.shell import FIT, fit


def write_pair(folder):
    data = make_four_clusters(300, random_state=0)
    names = ["alpha", "beta", "gamma", "delta", "eps"]
    for name, rows in (("fore", data.foreground), ("back", data.background)):
        index = [f"{name}{i}" for i in range(len(rows))]
        pd.DataFrame(rows, columns=names, index=index).to_csv(folder / f"{name}.csv")
    return folder


@pytest.fixture
def files(tmp_path):
    """A folder with fore.csv and back.csv."""
    return write_pair(tmp_path)


@pytest.fixture(scope="session")
def fitted_once(tmp_path_factory):
    folder = write_pair(tmp_path_factory.mktemp("fitted"))
    result = fit(folder, *FIT)
    assert result.exit_code == 0, result.output
    return folder, result


@pytest.fixture
def fitted(fitted_once, tmp_path):
    """A folder with fore.csv, back.csv, and what fit wrote of them, in out."""
    return shutil.copytree(fitted_once[0], tmp_path, dirs_exist_ok=True)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures of a fit are empty files: drawing takes longer than fitting."""
    monkeypatch.setattr(writing, "write_figure", lambda figure, path: path.touch())
