"""Run experiments by name: progress, parallel draws, files, and going on where a run was stopped."""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from contrica._version import __version__
from contrica.compare._methods import forget_frames
from contrica.datasets import data_folder
from contrica.errors import (
    DelicateDataWarning,
    FileMissingError,
    FoundFileError,
    IdentifiabilityWarning,
    PatternWarning,
    collected,
    unmarked,
)
from contrica.experiments._report import Result, Row, markdown
from contrica.output import output_file, output_folder
from contrica.validation import check_choice

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
    needs_data : bool
        Whether it reads the data folder.
    """

    name: str
    title: str
    module: str
    function: str = "run"
    needs_data: bool = False


_ALL = (
    Experiment("four-clusters", "which decompositions for Steps 1 and 3", "four_clusters"),
    Experiment("synthetic", "recovery of B, p = 4..12", "synthetic"),
    Experiment("synthetic-proportional", "recovery of B and γ", "synthetic", "run_proportional"),
    Experiment("mnist-continuous", "digits of continuous strength", "mnist", "run", True),
    Experiment("mnist-discrete", "digits present or absent", "mnist", "run_discrete", True),
    Experiment("mouse-protein", "Down syndrome in mice", "mouse_protein", "run", True),
    Experiment("transplant", "leukaemia before and after a transplant", "transplant", "run", True),
    Experiment("transplant-part", "on a part of the cells", "transplant", "run_part", True),
    Experiment("transplant-kang", "the recipe on other cells", "transplant", "run_kang", True),
    Experiment("human-primate", "genes of human evolution", "human_primate", "run", True),
    Experiment("human-primate-made", "simulated data, answer known", "human_primate", "run_made"),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}

NOT_ASKED = "not asked for yet."

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
    source: str = "simulated data"
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
    with collected(), threadpool_limits(1):
        return function(*task)


def reproduce(
    names: str | Sequence[str],
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
    there when it is complete; a later call skips it. A result made otherwise, in the other mode, by
    another version or from other data, is refused.

    Parameters
    ----------
    names : str or sequence of str
        Of `EXPERIMENTS`; "all" for all. Named one by one, an experiment that cannot be run, for want of
        data or because of them, raises; among all, the table says so and the others run.
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
        In the order of `EXPERIMENTS`, earlier finished ones in ``out`` included; ``missing`` says why
        one could not be run.
    """
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        check_choice("experiment", name, ("all", *EXPERIMENTS))
    whole = "all" in names
    wanted = [name for name in EXPERIMENTS if whole or name in names]
    folder = Path(out)
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise FoundFileError(
            "file-not-folder",
            f"{unmarked(nearest)} exists and is a file",
            remedy="Name a folder for the output.",
            parameter="out",
            filename=nearest,
        )
    if data is not None:
        data_folder(data)  # a path that is mistyped is said at once
    keys = {name: _key(EXPERIMENTS[name], quick, data) for name in wanted}
    if not overwrite:
        _check_others(folder, keys)
    failed: dict[str, Result] = {}
    for name in wanted:
        experiment = EXPERIMENTS[name]
        if not overwrite and _result_in(folder / name) is not None:
            if progress is not None:
                progress(name, "finished earlier", 1, 1)
            continue
        try:
            _run(experiment, keys[name], folder / name, quick, data, n_jobs, progress)
        except (ImportError, OSError, ValueError) as error:
            if not whole:
                raise
            forget_frames(error)
            failed[name] = Result(
                *(name, experiment.title, quick, __version__, 0.0),
                missing=str(error),
                broken=not isinstance(error, FileMissingError),
                error=error,
            )
            if progress is not None:
                progress(name, "could not be run", 1, 1)
        _write_report(folder, failed)
    return _write_report(folder, failed)


def _key(experiment: Experiment, quick: bool, data: str | Path | None) -> str:
    """What a result depends on: another mode, version, source text or data folder makes another one."""
    here = Path(__file__).parent
    texts = [
        (here / name).read_bytes()
        for name in (f"{experiment.module}.py", "_pairs.py", "_paper.py", "_sweeps.py", "_ways.py")
    ]
    digest = hashlib.sha256(b"".join(texts)).hexdigest()[:12]
    mode = "quick" if quick else "full"
    files = _fingerprint(data) if experiment.needs_data else "none"
    return f"{mode}, contrica {__version__}, source {digest}, data {files}"


def _fingerprint(data: str | Path | None) -> str:
    """Names and sizes of the files in the data folder, in short."""
    try:
        folder = data_folder(data)
    except FileMissingError:
        return "missing"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = "\n".join(f"{path.relative_to(folder)} {path.stat().st_size}" for path in files)
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


def _check_others(folder: Path, keys: dict[str, str]) -> None:
    """Results made otherwise are neither taken for those asked for, nor replaced unasked."""
    for name, key in keys.items():
        done = _result_in(folder / name)
        if done is not None and done.key != key:
            raise FoundFileError(
                "other-result",
                f"{unmarked(folder / name)} has a result of another run ({done.key}; asked for: {key})",
                remedy="Name another folder, or give `overwrite` to run it again.",
                parameter="overwrite",
                filename=folder / name,
            )


def _run(
    experiment: Experiment,
    key: str,
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
    earlier = _result_in(folder)
    ours = [] if earlier is None else earlier.files
    with (
        output_folder(folder, overwrite=True, ours=ours) as temporary,
        # what the library warns of in a single fit is part of the experiment
        collected(DelicateDataWarning, IdentifiabilityWarning, PatternWarning),
    ):
        run = Run(temporary, quick, None if data is None else Path(data), n_jobs, report)
        rows: list[Row] = function(run)
        files = sorted(file.name for file in temporary.iterdir())
        # from here on, until its files are in place, the experiment is not finished
        (folder / "result.json").unlink(missing_ok=True)
    seconds = time.perf_counter() - start
    name, title = experiment.name, experiment.title
    result = Result(
        *(name, title, quick, __version__, seconds, rows, run.source),
        key=key,
        n_jobs=n_jobs,
        files=files,
    )
    # last, when all else is in place: it is what says that the experiment is finished
    with output_file(folder / "result.json", overwrite=True) as path:
        path.write_text(result.to_json(), encoding="utf-8")


def _result_in(folder: Path) -> Result | None:
    """The result in an experiment's folder, if it is finished."""
    try:
        return Result.from_json((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_report(folder: Path, failed: dict[str, Result]) -> list[Result]:
    """The table of all that is finished, and a line for all that is not."""
    results = []
    for name, experiment in EXPERIMENTS.items():
        waiting = Result(name, experiment.title, False, __version__, 0.0, missing=NOT_ASKED)
        results.append(failed.get(name) or _result_in(folder / name) or waiting)
    versions = ", ".join(sorted({each.version for each in results if not each.missing}))
    how = f"Made by contrica {versions} with `contrica reproduce all --out FOLDER --data DATA`."
    if any(each.quick for each in results if not each.missing):
        how = how.replace("all", "all --quick")
    with output_file(folder / "reproduction.md", overwrite=True) as temporary:
        temporary.write_text(markdown(results, how), encoding="utf-8")
    return [each for each in results if each.missing != NOT_ASKED]
