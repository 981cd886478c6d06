"""Single-cell data: two leukaemia patients before and after a transplant (paper, `app: RNA`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from contrica.datasets import load_kang, load_transplant, load_transplant_part
from contrica.estimators import contrastive_pca_path, probabilistic_pca_path
from contrica.experiments._report import Row
from contrica.experiments._runner import Run
from contrica.experiments._sweeps import (
    ALPHAS,
    SCALES_4,
    Tuned,
    gammas,
    silhouette,
    some_rows,
    tune,
)
from contrica.experiments._ways import AUTHORS, WAYS, ranked_contrast, ranked_ica
from contrica.moments.estimates import Cumulants
from contrica.moments.fourth import cumulants
from contrica.moments.projection import common_basis
from contrica.solvers.algorithm3 import scale_sweep
from contrica.solvers.ranks import Ranks, Scree, scree
from contrica.solvers.ratio import contrast_ratio

__all__ = ["run", "run_kang", "run_part"]

N_PCS = 30
R, TERMS = 53, 116  # r and r + ℓ
N_PCPCA = 4
N_SEEDS, N_SEEDS_QUICK = 20, 3
PROPORTIONAL, NORMALISED, SMALL_CPCA = "proportional cICA", "PCPCA, normalised", "cPCA in 30 PCs"
BESIDE = "top foreground and top background pattern"

# What the paper gives: silhouettes, chosen parameters, and eigenvalues by magnitude (counted from 1,
# from the plots of Figure `fig:RNA_r_l`, which count from 0)
SILHOUETTES = {
    "cICA": 0.344,
    AUTHORS: 0.344,
    "ICA": 0.202,
    PROPORTIONAL: 0.402,
    "cPCA": 0.451,
    "PCPCA": 0.164,
    NORMALISED: 0.184,
    SMALL_CPCA: 0.434,
    BESIDE: 0.428,
}
PARAMETERS = {PROPORTIONAL: ("γ⁴", 0.5), "cPCA": ("α", 3.5), "PCPCA": ("γ′", 0.41)}
EIGENVALUES = {
    "background": {26: 799.761, 54: 238.213, 80: 121.638},
    "foreground": {81: 118.033, 117: 54.5964, 150: 32.8571},
}
CELLS = {"before the transplant": 7525, "after the transplant": 4874, "healthy": 4457}
NOTES = {
    "cPCA": "0.457 in the paper's appendix",
    "PCPCA": "best pair of four components",
    NORMALISED: "best pair of four components, each divided by its standard deviation",
    BESIDE: "b of proportional cICA, whose γ labels chose; a of each seed",
}
TUNED = "labels chose the parameter, as in the paper"
OTHER_CELLS = "other cells than the paper's, nothing to compare"


def run(run: Run) -> list[Row]:
    """The paper's data: cells from before and after the transplant, against healthy donors."""
    data = load_transplant(run.data)
    run.source = "bone marrow cells of patients AML027 and AML035 against two healthy donors"
    counts = (np.sum(data.labels == 0), np.sum(data.labels == 1), len(data.background))
    cells = [
        Row(f"cells, {kind}", [float(count)], float(paper), tolerance=0)
        for (kind, paper), count in zip(CELLS.items(), counts, strict=True)
    ]
    rows = cells + _recipe(run, data, compare=True)
    other = load_transplant(run.data, dispersion="log")
    share = _share([other.foreground, other.background])
    note = "tells how the paper chose its genes; the other rows are by dispersion of counts"
    quantity = "variance in 30 principal components, genes by dispersion of logarithms"
    return [*rows, Row(quantity, [share], 0.545, note=note)]


def run_part(run: Run) -> list[Row]:
    """One patient before the transplant and a healthy donor, against another healthy donor."""
    data = load_transplant_part(run.data)
    run.source = (
        "a part of the paper's cells: AML027 before the transplant and one healthy donor against the "
        "other one, label leukaemia"
    )
    return _recipe(run, data, compare=False)


def run_kang(run: Run) -> list[Row]:
    """Control and stimulated cells of four donors, against control cells of four others."""
    data = load_kang(run.data)
    run.source = (
        "a stand-in: blood cells of four donors with and without interferon-β against control cells "
        "of four others; log(1 + count) without size factors"
    )
    return _recipe(run, data, compare=False)


class Sweep(NamedTuple):
    """Pairs of directions for each value of a parameter, and the rows they belong to."""

    parameters: np.ndarray
    vectors: np.ndarray
    rows: np.ndarray
    pairs: Sequence[str]


def _recipe(run: Run, data: Bunch, *, compare: bool) -> list[Row]:
    """The paper's analysis of prepared cells."""
    n_seeds = N_SEEDS_QUICK if run.quick else N_SEEDS
    run.plan(5 * n_seeds + 25)
    datasets = [data.foreground, data.background]
    basis = common_basis(datasets, N_PCS)
    small = [rows @ basis for rows in datasets]
    separated, ica, proportional, eigenvalues = _separations(run, small, n_seeds)
    sweeps = {PROPORTIONAL: Sweep(SCALES_4, proportional, small[0], [""] * len(SCALES_4))}
    sweeps |= _covariance_sweeps(run, datasets, small)
    # silhouettes cost the square of the rows: a search looks at few, the winner is judged on all
    few = some_rows(data.labels, 500 if run.quick else 2000)
    searches = [(s.parameters, s.vectors, s.rows[few], data.labels[few]) for s in sweeps.values()]
    tuned = dict(zip(sweeps, run.map(search, searches, "sweeps"), strict=True))

    points = {name: [small[0] @ each.vectors for each in separated[name]] for name in WAYS}
    points["ICA"] = [small[0] @ ica]
    points |= {name: [sweeps[name].rows @ best.vectors] for name, best in tuned.items()}
    top = tuned[PROPORTIONAL].vectors[:, 0]
    points[BESIDE] = [small[0] @ beside(top, each.background) for each in separated["cICA"]]
    judged = some_rows(data.labels, 2000 if run.quick else len(data.labels))
    tasks = [(each, data.labels, judged) for values in points.values() for each in values]
    values = run.map(silhouette, tasks, "silhouettes")
    scores = {name: [next(values) for _ in each] for name, each in points.items()}

    _tables(run, scores, sweeps, tuned)
    _figures(run, data, points, scores, eigenvalues)
    rows = [Row("variance in 30 principal components", [_share(datasets)], 0.545)]
    rows += _eigenvalue_rows(eigenvalues)
    rows += _rows(scores, tuned, separated[AUTHORS])
    return rows if compare else _without_paper(rows)


def _separations(
    run: Run, small: Sequence[np.ndarray], n_seeds: int
) -> tuple[dict[str, list[Found]], np.ndarray, np.ndarray, Scree]:
    """Both variants of cICA for every seed, ICA, proportional cICA over its scales, eigenvalues."""
    plugin = [cumulants(rows) for rows in small]
    unbiased = [cumulants(rows, "unbiased") for rows in small]
    separated = {}
    for name, options in WAYS.items():
        pair = unbiased if options["estimate"] == "unbiased" else plugin
        tasks = [(*pair, name, seed) for seed in range(n_seeds)]
        separated[name] = list(run.map(separate, tasks, name))
    # these, and the eigenvalues, as the authors ran them
    (ica,) = run.map(ranked_ica, [(*unbiased, TERMS)], "ICA")
    tasks = [(*unbiased, part) for part in np.array_split(SCALES_4**0.25, 10)]
    proportional = np.concatenate(list(run.map(sweep, tasks, PROPORTIONAL)))
    return separated, ica[:, :2], proportional, scree(*unbiased)


def _share(datasets: Sequence[np.ndarray]) -> float:
    """Of the variance of the stacked rows, what 30 principal components hold."""
    basis = common_basis(datasets, N_PCS)
    kept, whole = (
        sum(np.sum(X**2) for X in rows) for rows in ([X @ basis for X in datasets], datasets)
    )
    return float(kept / whole)


class Found(NamedTuple):
    """What one run of Algorithm 2 is judged by.

    Attributes
    ----------
    vectors : ndarray of shape (p, 2)
        The two foreground patterns of largest contrast ratio.
    background : ndarray of shape (p,)
        The background pattern of largest contrast ratio.
    weight_ratios : ndarray of shape (r,)
        ``|λ′_i / λ_i|``.
    """

    vectors: np.ndarray
    background: np.ndarray
    weight_ratios: np.ndarray


def separate(fore: Cumulants, back: Cumulants, way: str, seed: int) -> Found:
    """Algorithm 2 with the paper's ranks."""
    found = ranked_contrast(fore, back, R, TERMS - R, way, seed)
    shared = int(np.argmax(contrast_ratio(found.background, fore, back)))
    return Found(found.vectors[:, :2], found.background[:, shared], found.cumulant_ratios)


def sweep(fore: Cumulants, back: Cumulants, scales: np.ndarray) -> np.ndarray:
    """The two leading patterns of proportional cICA for some scales, (n_scales, p, 2)."""
    return scale_sweep(fore, back, TERMS - R, scales).vectors[:, :, :2]


def search(
    parameters: np.ndarray, vectors: np.ndarray, rows: np.ndarray, labels: np.ndarray
) -> Tuned:
    """The parameter of best silhouette on some rows."""
    return tune(parameters, vectors, lambda each: silhouette(rows @ each, labels))


def beside(foreground: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Directions b and ``a − ⟨a, b⟩ b``, both of unit length, (p, 2)."""
    rest = background - (background @ foreground) * foreground
    return np.column_stack([foreground, rest / np.linalg.norm(rest)])


def _covariance_sweeps(
    run: Run, datasets: Sequence[np.ndarray], small: Sequence[np.ndarray]
) -> dict[str, Sweep]:
    """The rivals of the paper, which need covariances only."""
    whole, in_30 = (
        [np.cov(X, rowvar=False, bias=True) for X in each] for each in (datasets, small)
    )
    tasks = [(*pair, 2, ALPHAS) for pair in (whole, in_30)]
    cpca, small_cpca = run.map(contrastive_pca_path, tasks, "cPCA")
    fractions = gammas(0.9)
    (path,) = run.map(probabilistic_pca_path, [(*whole, N_PCPCA, fractions)], "PCPCA")
    axes = path.directions
    spread = np.sqrt(np.einsum("gpk,pq,gqk->gk", axes, whole[0], axes, optimize=True))
    pairs = list(combinations(range(N_PCPCA), 2))
    # the paper's γ′ itself, not a fraction of n/m
    values = np.repeat(fractions * len(datasets[0]) / len(datasets[1]), len(pairs))
    names = [f"{i + 1} and {j + 1}" for i, j in pairs] * len(fractions)

    def paired(vectors: np.ndarray) -> np.ndarray:
        picked = vectors[:, :, pairs]  # (γ, p, pair, 2)
        return np.moveaxis(picked, 2, 1).reshape(-1, vectors.shape[1], 2)

    none = [""] * len(ALPHAS)
    return {
        "cPCA": Sweep(ALPHAS, cpca, datasets[0], none),
        "PCPCA": Sweep(values, paired(path.loadings), datasets[0], names),
        NORMALISED: Sweep(values, paired(axes / spread[:, None]), datasets[0], names),
        SMALL_CPCA: Sweep(ALPHAS, small_cpca, small[0], none),
    }


def _rows(scores: dict[str, list[float]], tuned: dict[str, Tuned], found: list[Found]) -> list[Row]:
    rows = []
    for name, paper in SILHOUETTES.items():
        told = (NOTES.get(name), TUNED if name in tuned else None)
        note = "; ".join(filter(None, told))
        rows.append(Row(f"silhouette, {name}", scores[name], paper, tolerance=0.01, note=note))
    for name, (symbol, value) in PARAMETERS.items():
        best = [tuned[name].parameter]
        rows.append(Row(f"chosen {symbol}, {name}", best, value, tolerance=0.2 * value, note=TUNED))
    for word, pick, value in (("smallest", np.min, 1.5e-4), ("largest", np.max, 564.0)):
        ratios = [float(pick(each.weight_ratios)) for each in found]
        rows.append(Row(f"{word} |λ′/λ|, {AUTHORS}", ratios, value, tolerance=0.1 * value))
    medians = [np.median(scores[name]) for name in ("cPCA", PROPORTIONAL, "cICA", "PCPCA")]
    gap = float(np.min(-np.diff(medians)))
    claim = "cPCA above proportional cICA above cICA above PCPCA"
    return [*rows, Row("smallest gap in the order of methods", [gap], claim, holds=gap > 0)]


def _eigenvalue_rows(eigenvalues: Scree) -> list[Row]:
    rows = []
    for name, known in EIGENVALUES.items():
        values = np.abs(getattr(eigenvalues, name))
        rows += [
            Row(f"eigenvalue {k} of Mat κ₄, {name}", [float(values[k - 1])], paper, 0.02 * paper)
            for k, paper in known.items()
        ]
    return rows


def _without_paper(rows: Sequence[Row]) -> list[Row]:
    """The same values with nothing to compare them to; what is told of the paper's values is dropped."""
    kept = [row for row in rows if not row.quantity.startswith("eigenvalue") and row.holds is None]
    about_paper = f"{NOTES['cPCA']}; "
    return [
        Row(row.quantity, row.values, note=row.note.removeprefix(about_paper) or OTHER_CELLS)
        for row in kept
    ]


def _tables(
    run: Run, scores: dict[str, list[float]], sweeps: dict[str, Sweep], tuned: dict[str, Tuned]
) -> None:
    run.table(
        "silhouettes.csv",
        ("method", "seed", "silhouette"),
        ((name, seed, value) for name, each in scores.items() for seed, value in enumerate(each)),
    )
    run.table(
        "sweeps.csv",
        ("method", "parameter", "components", "silhouette"),
        (
            (name, *row)
            for name, best in tuned.items()
            for row in zip(sweeps[name].parameters, sweeps[name].pairs, best.scores, strict=True)
        ),
    )


def _figures(
    run: Run,
    data: Bunch,
    points: dict[str, list[np.ndarray]],
    scores: dict[str, list[float]],
    eigenvalues: Scree,
) -> None:
    """The paper's figures; of methods with seeds, the first one is shown."""
    from contrica.plots import scree as scree_plot
    from contrica.plots import without_pyplot

    with without_pyplot():
        axes = scree_plot(eigenvalues, Ranks(R, TERMS - R))
    run.figure(axes.figure, "scree.png")
    shown = {name: (points[name][0], scores[name][0]) for name in SILHOUETTES}
    compared = {name: shown.pop(name) for name in (SMALL_CPCA, BESIDE)}
    del shown[NORMALISED]
    _panels(run, data, shown, 3, "projections.png")
    _panels(run, data, compared, 2, "comparison.png")


def _panels(
    run: Run,
    data: Bunch,
    shown: dict[str, tuple[np.ndarray, float]],
    n_columns: int,
    name: str,
) -> None:
    from contrica.plots import new_figure, scatter

    n_rows = -(-len(shown) // n_columns)
    figure = new_figure(figsize=(4 * n_columns, 3.8 * n_rows))
    # one class drawn over the other would hide it: draw a few rows of each
    drawn = some_rows(data.labels, 3000)
    for i, (title, (scores, score)) in enumerate(shown.items()):
        ax = figure.add_subplot(n_rows, n_columns, i + 1)
        scatter(
            scores[drawn], data.labels[drawn], label_names=data.label_names, names=("", ""), ax=ax
        )
        ax.set_title(f"{title}: {score:.3f}", fontsize=10)
        if i:
            ax.get_legend().remove()
    run.figure(figure, name)
