"""Handwritten digits on grass and clouds (paper, `sec:mixed corrupted mnist`, `app: mixed mnist`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.datasets import load_corrupted_mnist
from contrica.estimators import contrastive_pca_path, probabilistic_pca_path
from contrica.experiments._report import Row
from contrica.experiments._runner import Run
from contrica.experiments._sweeps import ALPHAS, gammas, silhouette, some_rows, tune_silhouette
from contrica.experiments._ways import AUTHORS, WAYS, range_note, ranked_contrast, ranked_ica
from contrica.moments.fourth import cumulants
from contrica.moments.projection import common_basis

__all__ = ["run", "run_discrete"]

N_PCS = 30
RANKS = {"discrete": (51, 141), "continuous": (65, 65)}
METHODS = (*WAYS, "ICA", "cPCA", "PCPCA")
# The paper's, in words: the photographs are others, so that equal numbers would say nothing.
OTHERS = "other photographs than the paper's"
SILHOUETTES = {"cICA": "0.61", AUTHORS: "0.61", "ICA": "0.30", "cPCA": "0.52", "PCPCA": "0.44"}
ACCURACIES = {
    "cICA": ("0.94", "0.93"),
    AUTHORS: ("0.94", "0.93"),
    "cPCA": ("0.71", "0.94"),
    "PCPCA": ("0.50", "0.94"),
}


def _correlations(images: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """Absolute correlation of each digit's mean image with the pattern that matches it better."""
    size = len(digits)
    table = np.abs(np.corrcoef(digits, images.T)[:size, size:])
    straight, crossed = np.diag(table), np.diag(table[:, ::-1])
    return straight if straight.sum() >= crossed.sum() else crossed


def _accuracy(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Share of images told apart by the sign of each score, either way round."""
    right = np.mean((scores > 0) == (labels == 1)[:, None], axis=0)
    return np.maximum(right, 1 - right)


def draw(
    design: str, seed: int, folder: str | None, fraction: float, n_seeds: int
) -> dict[str, Any]:
    """All methods on one resampling of images; cICA with several seeds."""
    data = load_corrupted_mnist(folder, design=design, fraction=fraction, random_state=seed)
    X = data.foreground - data.foreground.mean(axis=0)
    Y = data.background - data.background.mean(axis=0)
    basis = np.asarray(common_basis([X, Y], N_PCS))
    single = data.labels < 2
    rows, labels = X[single], data.labels[single]
    found = _cica(X @ basis, Y @ basis, basis, *RANKS[design], n_seeds)
    found |= _rivals(design, X.T @ X / len(X), Y.T @ Y / len(Y), rows, labels)
    patterns = {m: found.pop(m) for m in METHODS}
    found["images"] = {m: patterns[m][0].T for m in METHODS}
    found["correlations"] = {
        m: [_correlations(v, data.patterns) for v in patterns[m]] for m in METHODS
    }
    if design == "discrete":
        found |= _told_apart(patterns, rows, labels)
    found["means"] = data.patterns
    found["examples"] = (data.foreground[::97][:8], data.background[::97][:8])
    found["explained"] = float(
        np.sum((np.vstack([X, Y]) @ basis) ** 2) / (np.sum(X**2) + np.sum(Y**2))
    )
    return found


def _cica(
    X: np.ndarray,
    Y: np.ndarray,
    basis: np.ndarray,
    n_background: int,
    n_foreground: int,
    n_seeds: int,
) -> dict[str, Any]:
    """Patterns of cICA in all ways, for each seed, and of ICA; data in the coordinates of the basis."""
    found: dict[str, Any] = {}
    for way, options in WAYS.items():
        fore, back = (cumulants(rows, options["estimate"]) for rows in (X, Y))
        runs = [
            ranked_contrast(fore, back, n_background, n_foreground, way, i) for i in range(n_seeds)
        ]
        found[way] = [basis @ each.vectors[:, :2] for each in runs]
        found[f"ratios, {way}"] = runs[0].cumulant_ratios
    fore, back = (cumulants(rows, "unbiased") for rows in (X, Y))
    found["ICA"] = [basis @ ranked_ica(fore, back, n_background + n_foreground)[:, :2]]
    return found


def _rivals(
    design: str, fore: np.ndarray, back: np.ndarray, rows: np.ndarray, labels: np.ndarray
) -> dict[str, Any]:
    """Patterns of cPCA and PCPCA, by covariances; "discrete" chooses their parameters by the labels."""
    if design != "discrete":
        return {
            "cPCA": [contrastive_pca_path(fore, back, 2, [1.0])[0]],
            "PCPCA": [probabilistic_pca_path(fore, back, 2, [0.9]).loadings[0]],
        }
    best = tune_silhouette(ALPHAS, contrastive_pca_path(fore, back, 2, ALPHAS), rows, labels)
    grid = gammas(0.9)
    second = tune_silhouette(
        grid, probabilistic_pca_path(fore, back, 2, grid).loadings, rows, labels
    )
    return {
        "chosen": {"cPCA": best.parameter, "PCPCA": second.parameter},
        "cPCA": [best.vectors],
        "PCPCA": [second.vectors],
    }


def _told_apart(
    patterns: dict[str, list[np.ndarray]], rows: np.ndarray, labels: np.ndarray
) -> dict[str, Any]:
    """How well scores tell images of a 0 from those of a 1, and some points to draw."""
    scores = {m: [rows @ v for v in patterns[m]] for m in METHODS}
    shown = some_rows(labels, 1500)
    return {
        "silhouette": {m: [silhouette(each, labels) for each in scores[m]] for m in METHODS},
        "accuracy": {m: [_accuracy(each, labels) for each in scores[m]] for m in METHODS},
        "points": {m: rows[shown] @ patterns[m][0] for m in METHODS},
        "point labels": labels[shown],
    }


def _draws(run: Run, design: str) -> list[dict[str, Any]]:
    n_draws, n_seeds, fraction = (2, 2, 0.4) if run.quick else (20, 3, 1.0)
    folder = None if run.data is None else str(run.data)
    tasks = [(design, seed, folder, fraction, n_seeds) for seed in range(n_draws)]
    # say what is missing before anything is started
    load_corrupted_mnist(folder, design=design, fraction=fraction, random_state=0)
    run.plan(n_draws)
    run.source = (
        f"MNIST on photographs that stand in for the paper's ImageNet images; {n_draws} resamplings of "
        f"{int(10000 * fraction)} rows each"
    )
    found = list(run.map(draw, tasks, design))
    _images(run, found[0])
    return found


def _over(found: list[dict[str, Any]], key: str, method: str) -> np.ndarray:
    """One value, or row of values, for each draw: of the first seed."""
    return np.array([each[key][method][0] for each in found])


def _seed_rows(found: list[dict[str, Any]], key: str, words: str) -> list[Row]:
    """How far a value moves with the seed of cICA on the same draw."""
    rows = []
    for way in WAYS:
        ranges = [np.ptp(each[key][way], axis=0).max() for each in found]
        count = len(found[0][key][way])
        note = f"more than 0.01 in {np.sum(np.array(ranges) > 0.01)} of {len(found)} draws"
        rows.append(Row(f"range of the {words} over {count} seeds, {way}", ranges, note=note))
    return rows


def _correlation_rows(found: list[dict[str, Any]], design: str) -> list[Row]:
    rows = []
    for method in METHODS:
        values = _over(found, "correlations", method)
        note = _rival_note(found, method)
        rows += [
            Row(f"|correlation| with the mean {digit}, {method}", values[:, digit], note=note)
            for digit in (0, 1)
        ]
    if design == "discrete":
        return rows
    both = {m: float(np.median(_over(found, "correlations", m).min(axis=1))) for m in METHODS}
    rivals = max(both["cPCA"], both["PCPCA"])
    for way in WAYS:
        rows.append(
            Row(
                f"|correlation| of the worse of both digits, {way}",
                _over(found, "correlations", way).min(axis=1),
                "cICA nearest to both mean digits",
                holds=both[way] > rivals,
                note=f"cPCA {both['cPCA']:.3f}, PCPCA {both['PCPCA']:.3f}; {OTHERS}",
            )
        )
    return rows


def _rival_note(found: list[dict[str, Any]], method: str) -> str:
    """Whether labels chose the parameter of a rival."""
    if method in found[0].get("chosen", {}):
        chosen = np.median([each["chosen"][method] for each in found])
        return f"parameter chosen by labels, median {chosen:.3g}"
    return ""


def _ratio_rows(found: list[dict[str, Any]], paper: str) -> list[Row]:
    return [
        Row(
            f"median of |λ′/λ| of the background patterns, {way}",
            [np.median(each[f"ratios, {way}"]) for each in found],
            paper,
            note=f"from {range_note(np.concatenate([e[f'ratios, {way}'] for e in found]))}; {OTHERS}",
        )
        for way in WAYS
    ]


def _variance_row(found: list[dict[str, Any]]) -> Row:
    return Row("variance in 30 components", [e["explained"] for e in found], "0.85", note=OTHERS)


def run(run: Run) -> list[Row]:
    """Continuous strength: do the two leading patterns look like a 0 and a 1?"""
    found = _draws(run, "continuous")
    run.table(
        "correlations.csv",
        ("method", "draw", "seed", "with 0", "with 1"),
        (
            (m, i, seed, *pair)
            for m in METHODS
            for i, each in enumerate(found)
            for seed, pair in enumerate(each["correlations"][m])
        ),
    )
    return [
        _variance_row(found),
        *_correlation_rows(found, "continuous"),
        *_seed_rows(found, "correlations", "correlations"),
        *_ratio_rows(found, "7.2e-3 to 91"),
    ]


def run_discrete(run: Run) -> list[Row]:
    """Discrete strength: silhouettes and accuracies on the images with a single digit."""
    found = _draws(run, "discrete")
    measures = ("silhouette", "accuracy", "correlations")
    run.table(
        "scores.csv",
        (
            *("method", "draw", "seed", "silhouette", "accuracy of the first", "of the second"),
            *("correlation with 0", "with 1"),
        ),
        (
            (m, i, seed, *np.hstack([each[key][m][seed] for key in measures]))
            for m in METHODS
            for i, each in enumerate(found)
            for seed in range(len(each["silhouette"][m]))
        ),
    )
    rows = [_variance_row(found)]
    for method in METHODS:
        note = "; ".join(filter(None, [OTHERS, _rival_note(found, method)]))
        values = _over(found, "silhouette", method)
        rows.append(Row(f"silhouette, {method}", values, SILHOUETTES[method], note=note))
    for method, paper in ACCURACIES.items():
        note = "; ".join(filter(None, [OTHERS, _rival_note(found, method)]))
        values = _over(found, "accuracy", method)
        for k, word in enumerate(("first", "second")):
            quantity = f"accuracy of the {word} pattern, {method}"
            rows.append(Row(quantity, values[:, k], paper[k], note=note))
    _scatter(run, found[0])
    return [
        *rows,
        *_correlation_rows(found, "discrete"),
        *_seed_rows(found, "silhouette", "silhouette"),
        *_ratio_rows(found, "6.7e-3 to 16"),
    ]


def _images(run: Run, one: dict[str, Any]) -> None:
    """Mean digits beside the patterns of every method, and examples of both datasets."""
    from contrica.plots import images, new_figure

    names = [method.replace(AUTHORS, "cICA, authors'") for method in METHODS]
    figure = new_figure(figsize=(11, 4.6))
    for k, (part, word) in enumerate(zip(figure.subfigures(2), ("first", "second"), strict=True)):
        shown = np.vstack([one["means"][k], *(one["images"][method][k] for method in METHODS)])
        images(shown, (28, 28), [f"mean {k}", *(f"{name}, {word}" for name in names)], part)
    run.figure(figure, "patterns.png")
    figure = new_figure(figsize=(8, 2.4))
    for row, rows in enumerate(one["examples"]):
        for column, image in enumerate(rows):
            ax = figure.add_subplot(2, 8, 8 * row + column + 1)
            ax.imshow(image.reshape(28, 28), cmap="gray", vmin=0, vmax=1)
            ax.set_axis_off()
    figure.suptitle("foreground above, background below", fontsize=9)
    run.figure(figure, "examples.png")


def _scatter(run: Run, one: dict[str, Any]) -> None:
    from contrica.plots import new_figure, scatter

    figure = new_figure(figsize=(12, 7.5))
    for i, method in enumerate(METHODS):
        ax = figure.add_subplot(2, 3, i + 1)
        points = one["points"][method]
        scatter(
            points, one["point labels"], label_names=["0", "1"], ax=ax, names=("first", "second")
        )
        ax.set_title(f"{method}: {one['silhouette'][method][0]:.3f}", fontsize=10)
    run.figure(figure, "projections.png")
