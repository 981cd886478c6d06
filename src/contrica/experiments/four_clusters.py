"""Which decompositions serve Steps 1 and 3: four clusters in five dimensions (paper, Figures 3, 4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contrica.datasets import make_four_clusters
from contrica.experiments._pairs import SEPARATE, contrast_by
from contrica.experiments._report import Row
from contrica.experiments._runner import Run
from contrica.experiments._sweeps import silhouette
from contrica.moments.estimates import Cumulants
from contrica.moments.fourth import cumulants

__all__ = ["run"]

WITH_HTD = ("spm-htd", "jade-htd", "foobi-htd", "fastica-htd")
WITHOUT = ("spm-spm", "spm-jade", "jade-jade", "spm-foobi", "foobi-foobi")
METHODS = (*WITH_HTD, "htd-htd", *WITHOUT, SEPARATE)
# The paper's method with other estimators of Step 2; all the rest use the one its authors used.
STEP_2 = {"spm-htd, thin": "thin", "spm-htd, least squares": "least_squares"}
# nothing random in them: twenty runs are one
DETERMINISTIC = ("htd-htd", "jade-htd", "jade-jade")
Scores = Callable[..., np.ndarray]
DESIGNS = {
    "figure": "the design behind the figure",
    "text": "the design in the text, which overlaps",
}


def run(run: Run) -> list[Row]:
    """Silhouettes of eleven methods against the number of rows, single run and best of 20."""
    sizes = (100, 200, 1000) if run.quick else tuple(range(100, 1001, 100))
    n_draws, n_runs = (4, 4) if run.quick else (20, 20)
    tasks = [(d, n, i, n_runs) for d in DESIGNS for n in sizes for i in range(n_draws)]
    run.plan(len(tasks))
    run.source = f"{n_draws} draws of each design and size, {n_runs} runs on each"
    table: dict[tuple[str, int, int], dict[str, np.ndarray]] = {}
    for task, found in zip(tasks, run.map(draw, tasks, "draws"), strict=True):
        table[task[:3]] = found
    run.table(
        "silhouettes.csv",
        ("design", "n", "draw", "method", "run", "silhouette"),
        (
            (*key, method, i, score)
            for key, found in table.items()
            for method, scores in found.items()
            for i, score in enumerate(scores)
        ),
    )

    def scores(design: str, method: str, best: bool, n: int | None = None) -> np.ndarray:
        """One value per draw: of the first run, or of the best, averaged over n."""
        pick = np.nanmax if best else _first
        values = [
            [pick(table[design, size, i][method]) for size in ([n] if n else sizes)]
            for i in range(n_draws)
        ]
        return np.nanmean(values, axis=1)

    _figure(run, sizes, n_draws, scores)
    _clusters(run)
    return _rows(scores, {m: _failures(table, m) for m in (*METHODS, *STEP_2)})


def _first(scores: np.ndarray) -> float:
    return float(scores[0])


def draw(design: str, n: int, seed: int, n_runs: int) -> dict[str, np.ndarray]:
    """Silhouettes of every method on one draw, one per run; NaN where a method fails."""
    data = make_four_clusters(n, design=design, random_state=np.random.default_rng([n, seed]))
    fore, back = (cumulants(rows, "unbiased") for rows in (data.foreground, data.background))
    scores = {"true B": np.array([silhouette(data.foreground @ data.B, data.labels)])}
    for method in (*METHODS, *STEP_2):
        count = 1 if method in DETERMINISTIC else n_runs
        found = (_patterns(method, fore, back, data.background, [n, seed, i]) for i in range(count))
        scores[method] = np.array(
            [np.nan if B is None else silhouette(data.foreground @ B, data.labels) for B in found]
        )
    return scores


def _patterns(
    method: str, fore: Cumulants, back: Cumulants, rows: np.ndarray, seed: list[int]
) -> np.ndarray | None:
    """The two patterns a method finds, or none where it fails; failures are counted in the table."""
    try:
        found = contrast_by(
            *(fore, back, 3, 2, method.split(",")[0]),
            rng=np.random.default_rng(seed),
            deflation=STEP_2.get(method, "sequential"),
            background_rows=rows,
        )
    except (ValueError, np.linalg.LinAlgError):
        return None
    return found.foreground.vectors


def _failures(table: dict, method: str) -> int:
    return int(sum(np.isnan(found[method]).sum() for found in table.values()))


def _rows(scores: Scores, failures: dict[str, int]) -> list[Row]:
    rows = []
    for design, words in DESIGNS.items():
        truth = scores(design, "true B", False)
        rows.append(Row(f"{design}: silhouette of the true B", truth, note=words))
        for method in (*METHODS, *STEP_2):
            best = np.median(scores(design, method, True, 200))
            note = f"best of all runs, picked by silhouette: {best:.3f}"
            note += f"; {failures[method]} runs failed" if failures[method] else ""
            single = scores(design, method, False, 200)
            rows.append(Row(f"{design}, n = 200: {method}, single run", single, note=note))
        for method in ("spm-htd", *STEP_2):
            for n in (100, 1000):
                values = scores(design, method, False, n)
                rows.append(Row(f"{design}, n = {n}: {method}, single run", values))
        for best in (False, True):
            rows += _claims(design, best, scores)
    return rows


def _claims(design: str, best: bool, scores: Scores) -> list[Row]:
    """What the paper says of its figure, which shows the best of 20 runs; means over n and draws."""
    how = "best of all runs" if best else "single run"
    means = {m: float(np.nanmean(scores(design, m, best))) for m in METHODS}
    good = min(means[m] for m in WITH_HTD)
    rest = max(means[m] for m in (*WITHOUT, "htd-htd"))
    others = min(value for m, value in means.items() if m != SEPARATE)
    return [
        Row(
            f"{design}, {how}: worst of X-htd less the best other method",
            [good - rest],
            "all of SPM-, JADE-, FOOBI-, FastICA-HTD above all others" if best else None,
            holds=good > rest if best else None,
            note=f"{good:.3f} against {rest:.3f}, means over n; {SEPARATE} not counted",
        ),
        Row(
            f"{design}, {how}: worst other method less {SEPARATE}",
            [others - means[SEPARATE]],
            f"{SEPARATE} lowest" if best else None,
            holds=means[SEPARATE] < others if best else None,
            note=f"{others:.3f} against {means[SEPARATE]:.3f}, means over n",
        ),
    ]


def _figure(run: Run, sizes: tuple[int, ...], n_draws: int, scores: Scores) -> None:
    """Mean silhouette against n, a panel per design and protocol (paper, Figure 4)."""
    from contrica.plots import COLOURS, new_figure

    figure = new_figure(figsize=(11, 8))
    styles = {**dict.fromkeys(WITH_HTD, COLOURS[1]), "htd-htd": COLOURS[4]}
    styles = {**styles, **dict.fromkeys(WITHOUT, COLOURS[2]), SEPARATE: COLOURS[0]}
    styles = {**styles, **dict.fromkeys(STEP_2, COLOURS[6])}
    dashes = ("-", "--", "-.", ":", (0, (1, 3)))
    for row, design in enumerate(DESIGNS):
        for column, best in enumerate((False, True)):
            ax = figure.add_subplot(2, 2, 2 * row + column + 1)
            truth = [np.mean(scores(design, "true B", False, n)) for n in sizes]
            ax.plot(sizes, truth, color="0.6", lw=3, label="true B")
            used: dict[str, int] = {}
            for method, colour in styles.items():
                means = [np.nanmean(scores(design, method, best, n)) for n in sizes]
                dash = dashes[used.get(colour, 0)]
                used[colour] = used.get(colour, 0) + 1
                ax.plot(sizes, means, color=colour, ls=dash, marker=".", label=method)
            ax.set_title(f"{DESIGNS[design]}: {'best run' if best else 'single run'}", fontsize=10)
            ax.set_xlabel("rows of each dataset")
            ax.set_ylabel(f"mean silhouette, {n_draws} draws")
    figure.axes[1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    run.figure(figure, "silhouettes.png")


def _clusters(run: Run) -> None:
    """Projections of one draw of 200 rows (paper, Figure 3)."""
    from contrica.plots import new_figure, scatter

    data = make_four_clusters(200, random_state=np.random.default_rng([200, 0]))
    fore, back = (cumulants(rows, "unbiased") for rows in (data.foreground, data.background))
    axes = [("true B", data.B)]
    for method in METHODS:
        found = _patterns(method, fore, back, data.background, [200, 0, 0])
        if found is not None:
            axes.append((method, found))
    figure = new_figure(figsize=(12, 9))
    for i, (name, vectors) in enumerate(axes):
        ax = figure.add_subplot(3, 4, i + 1)
        points = data.foreground @ vectors
        scatter(points, data.labels, ax=ax, names=("", ""))
        ax.get_legend().remove()
        ax.set_title(f"{name}: {silhouette(points, data.labels):.2f}", fontsize=10)
    run.figure(figure, "clusters.png")
