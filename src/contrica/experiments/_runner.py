"""Run experiments by name: progress, parallel draws, files, and going on where a run was stopped."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from contrica._version import __version__
from contrica.datasets import MissingDataError
from contrica.experiments._report import Result, Row, markdown
from contrica.files import output_file, output_folder
from contrica.validation import (
    DelicateDataWarning,
    IdentifiabilityWarning,
    PatternWarning,
    check_choice,
)

__all__ = ["EXPERIMENTS", "Experiment", "Run", "reproduce"]


class Experiment(NamedTuple):
    """One experiment of the paper.

    Attributes
    ----------
    name : str
        As on the command line.
    title : str
    module : str
        Where its ``run(run) -> list of Row`` is found.
    function : str
        Its name there.
    """

    name: str
    title: str
    module: str
    function: str = "run"


_ALL = (
    Experiment("four-clusters", "which decompositions for Steps 1 and 3", "four_clusters"),
    Experiment("synthetic", "recovery of B, p = 4..12", "synthetic"),
    Experiment("synthetic-proportional", "recovery of B and γ", "synthetic", "run_proportional"),
    Experiment("mnist-continuous", "digits of continuous strength on photographs", "mnist"),
    Experiment(
        "mnist-discrete", "digits present or absent on photographs", "mnist", "run_discrete"
    ),
    Experiment("mouse-protein", "Down syndrome in mice after shock therapy", "mouse_protein"),
    Experiment("transplant", "leukaemia before and after a transplant", "transplant"),
    Experiment("transplant-part", "the recipe on a part of the cells", "transplant", "run_part"),
    Experiment("transplant-kang", "the recipe on stimulated cells", "transplant", "run_kang"),
    Experiment("human-primate", "genes of human evolution", "human_primate"),
    Experiment(
        "human-primate-made", "the recipe on made data, answer planted", "human_primate", "run_made"
    ),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}

# label, steps done and steps in all of the experiment under way
Progress = Callable[[str, int, int], None]


@dataclass
class Run:
    """What an experiment needs while it runs.

    Parameters
    ----------
    folder : Path
        Where its files go.
    quick : bool
        Fewer draws, for a first look.
    data : Path or None
        The folder of real datasets.
    n_jobs : int
        Processes that share the draws; the result does not depend on it.
    progress : callable, optional
        Called as ``progress(label, done, total)``.
    source : str
        Set by the experiment: what it was run on.
    """

    folder: Path
    quick: bool = False
    data: Path | None = None
    n_jobs: int = 1
    progress: Progress | None = None
    source: str = "made data"
    _steps: list[int] = field(default_factory=lambda: [0, 0], init=False)

    def plan(self, steps: int) -> None:
        """Say how many steps are to come in all."""
        self._steps = [0, steps]
        self._report("")

    def _report(self, label: str) -> None:
        if self.progress is not None:
            self.progress(label, *self._steps)

    def step(self, label: str = "") -> None:
        """One step is done."""
        self._steps[0] += 1
        self._report(label)

    def map(
        self, function: Callable[..., Any], tasks: Iterable[Sequence[Any]], label: str = ""
    ) -> Iterator[Any]:
        """``function(*task)`` of every task, in order; each is one step.

        Tasks are shared by ``n_jobs`` processes with one BLAS thread each. What the library warns
        of in a single draw is part of the experiment and not shown.
        """
        from joblib import Parallel, delayed, parallel_config

        with parallel_config("loky", n_jobs=self.n_jobs, inner_max_num_threads=1):
            pool = Parallel(return_as="generator")
            for result in pool(delayed(_quietly)(function, task) for task in tasks):
                self.step(label)
                yield result

    def table(self, name: str, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a csv file."""
        with open(self.folder / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(heading)
            writer.writerows(rows)

    def figure(self, figure: Any, name: str) -> None:
        """Write a figure."""
        figure.savefig(self.folder / name, dpi=150)


def _quietly(function: Callable[..., Any], task: Sequence[Any]) -> Any:
    from threadpoolctl import threadpool_limits

    # one thread also where a single process does the work, so that both give the same bits
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return function(*task)


def reproduce(
    names: Sequence[str],
    out: str | Path,
    *,
    quick: bool = False,
    data: str | Path | None = None,
    n_jobs: int = 1,
    overwrite: bool = False,
    progress: Callable[[str, str, int, int], None] | None = None,
) -> list[Result]:
    """Run experiments of the paper and write ``out/reproduction.md``.

    Each experiment gets a folder ``out/NAME`` with its figures, csv files and ``result.json``, moved
    there when it is complete; a later call with the same ``out``, version and ``quick`` skips it.

    Parameters
    ----------
    names : sequence of str
        Of `EXPERIMENTS`; ``["all"]`` for all. Named one by one, an experiment whose data are missing
        raises; among all, the table says so and the others run.
    out : path
        Folder.
    quick : bool
        Fewer draws and seeds.
    data : path, optional
        Folder of real datasets; by default the one that the environment variable CONTRICA_DATA names.
    n_jobs : int
        Processes that share the draws.
    overwrite : bool
        Run again what is finished already.
    progress : callable, optional
        Called as ``progress(name, label, done, total)``.

    Returns
    -------
    list of Result
        In the order of `EXPERIMENTS`, earlier finished ones in ``out`` included.
    """
    whole = list(names) == ["all"]
    for name in names:
        check_choice("experiment", name, ("all", *EXPERIMENTS))
    wanted = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} exists and is a file. Name a folder for the output.")
    absent: dict[str, Result] = {}
    for name in wanted:
        if not overwrite and (done := _finished(folder / name, quick)) is not None:
            if progress is not None:
                progress(name, "finished earlier", 1, 1)
            del done
            continue
        try:
            _run(EXPERIMENTS[name], folder / name, quick, data, n_jobs, progress)
        except MissingDataError as error:
            if not whole:
                raise
            title = EXPERIMENTS[name].title
            absent[name] = Result(name, title, quick, __version__, 0.0, missing=str(error))
            if progress is not None:
                progress(name, "no data", 1, 1)
        _write_report(folder, quick, absent)
    return _write_report(folder, quick, absent)


def _run(
    experiment: Experiment,
    folder: Path,
    quick: bool,
    data: str | Path | None,
    n_jobs: int,
    progress: Callable[[str, str, int, int], None] | None,
) -> None:
    start = time.perf_counter()
    report = None
    if progress is not None:

        def report(label: str, done: int, total: int) -> None:
            progress(experiment.name, label, done, total)

    function = getattr(
        import_module(f"contrica.experiments.{experiment.module}"), experiment.function
    )
    with output_folder(folder, overwrite=True) as temporary, warnings.catch_warnings():
        # what the library warns of in a single fit is part of the experiment
        for category in (DelicateDataWarning, IdentifiabilityWarning, PatternWarning):
            warnings.simplefilter("ignore", category)
        run = Run(temporary, quick, None if data is None else Path(data), n_jobs, report)
        rows: list[Row] = function(run)
        seconds = time.perf_counter() - start
        result = Result(
            experiment.name, experiment.title, quick, __version__, seconds, rows, run.source
        )
        (temporary / "result.json").write_text(result.to_json(), encoding="utf-8")


def _finished(folder: Path, quick: bool) -> Result | None:
    """The result in an experiment's folder, if it was made by this version in this mode."""
    try:
        result = Result.from_json((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if (result.quick, result.version) == (quick, __version__) else None


def _write_report(folder: Path, quick: bool, absent: dict[str, Result]) -> list[Result]:
    found = {name: _finished(folder / name, quick) or absent.get(name) for name in EXPERIMENTS}
    results = [result for result in found.values() if result is not None]
    flag = " --quick" if quick else ""
    command = f"contrica reproduce all{flag} --out FOLDER --data DATA"
    how = f"Made by contrica {__version__} with `{command}`, all at once or one by one."
    with output_file(folder / "reproduction.md", overwrite=True) as temporary:
        temporary.write_text(markdown(results, how), encoding="utf-8")
    return results
