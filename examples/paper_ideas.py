"""The ideas of the paper in three pictures, every number in them computed here.

``htd_steps.png``: Algorithm 1 on the paper's 2 × 2 × 2 × 2 tensor. ``cica_steps.png``: the three steps
of Algorithm 2 on data in three dimensions. ``scree_ranks.png``: the ranks read from the eigenvalues of
both flattenings. `docs/ideas.md` explains them.

Run ``python examples/paper_ideas.py --out docs/images``.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke

from contrica import plots
from contrica.datasets import load_digits_on_photos, make_synthetic
from contrica.decompositions import Decomposition, htd
from contrica.metrics import match_patterns
from contrica.moments.eigen import eigenvalues, top_eigenpairs
from contrica.moments.fourth import Cumulants, cumulants
from contrica.moments.operators import RankOneSum, TensorOperator, as_operator
from contrica.moments.projection import common_basis, project_cumulants
from contrica.moments.symmetric import fix_signs, smat
from contrica.solvers.algorithm2 import Contrast, cica
from contrica.solvers.ranks import Ranks, Scree, choose_ranks, scree

BLUE, VERMILION, GREY = plots.COLOURS[0], plots.COLOURS[1], "0.55"
TERMS = (VERMILION, plots.COLOURS[2])


# --- Algorithm 1: hierarchical tensor decomposition -------------------------------------------------


class HTDSteps(NamedTuple):
    """What each line of Algorithm 1 computes: Mat(T), μ and M, β and b, and the output."""

    true: Decomposition
    flattening: np.ndarray  # p² × p², as the paper prints it
    values: np.ndarray
    matrices: np.ndarray
    fits: np.ndarray
    vectors: np.ndarray
    result: Decomposition


def htd_example() -> HTDSteps:
    """Algorithm 1, step by step, on Example 3.1 of the paper."""
    true = Decomposition(np.array([2.0, 1.0]), np.array([[1.0, 0.0998], [0.0, 0.995]]))
    tensor = np.einsum("k,ak,bk,ck,dk->abcd", true.weights, *[true.vectors] * 4)
    pairs = top_eigenpairs(as_operator(tensor), 2)
    matrices = smat(fix_signs(pairs.vectors).T)
    fits, axes = np.linalg.eigh(matrices)
    best = np.abs(fits).argmax(axis=1)
    each = np.arange(2)
    return HTDSteps(
        true,
        tensor.reshape(4, 4),
        pairs.values,
        matrices,
        fits[each, best],
        fix_signs(axes[each, :, best].T),
        htd(tensor, 2),
    )


def _heatmap(ax, matrix, digits):
    """Draw a small matrix with its entries written out."""
    ax.imshow(matrix, cmap="PuOr", vmin=-2.6, vmax=2.6)
    for (i, j), entry in np.ndenumerate(matrix):
        shade = "white" if abs(entry) > 1.7 else "black"
        text = f"{entry:.{digits}f}".replace("-", "−")
        ax.text(j, i, text, ha="center", va="center", color=shade, fontsize=9)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color="0.6", lw=0.8)


def _arrow(ax, tip, colour):
    ax.annotate(
        "", tip, (0, 0), arrowprops={"color": colour, "width": 1.6, "headwidth": 7, "headlength": 8}
    )


def _quadratic_form(ax, matrix, vector, colour):
    """The curve |uᵀMu| over all directions u; it is longest along the leading eigenvector."""
    angles = np.linspace(0, 2 * np.pi, 721)
    directions = np.array([np.cos(angles), np.sin(angles)])
    lengths = np.abs(np.einsum("ia,ij,ja->a", directions, matrix, directions))
    ax.fill(*(lengths * directions), color=colour, alpha=0.22, lw=0)
    ax.plot(*(lengths * directions), color=colour, lw=1)
    _arrow(ax, vector, colour)
    _cross(ax, 1.15)


def _cross(ax, limit):
    ax.axhline(0, color="0.8", lw=0.7, zorder=0)
    ax.axvline(0, color="0.8", lw=0.7, zorder=0)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=[], yticks=[])


def draw_htd(steps: HTDSteps) -> Figure:
    """Algorithm 1 from left to right: flattening, eigenmatrices, leading eigenvectors, result."""
    figure = Figure(figsize=(12.5, 5.3), layout="constrained")
    axes = figure.subplot_mosaic(
        [["T", "M0", "b0", "end"], ["T", "M1", "b1", "end"]], width_ratios=[1.6, 1, 1, 1.6]
    )
    for key, title in (
        ("T", "input: the tensor T,\nflattened to Mat(T)"),
        ("M0", "1, 2: eigenvectors of Mat(T),\nread as matrices M$_i$"),
        ("b0", "3: leading eigenvector b$_i$ of M$_i$\n(shaded: |uᵀM$_i$u| for all unit u)"),
        ("end", "output: vectors b$_i$,\nas long as their weights μ$_i$β$_i^2$"),
    ):
        axes[key].set_title(title, fontsize=10.5, pad=9)
    _heatmap(axes["T"], steps.flattening, 4)
    indices = ["11", "12", "21", "22"]
    axes["T"].set_yticks(range(4), indices, fontsize=9, color="0.4")
    axes["T"].set_xticks(range(4), indices, fontsize=9, color="0.4")
    axes["T"].tick_params(length=0)
    terms = zip(steps.true.weights, steps.true.vectors.T, strict=True)
    formula = "  +  ".join(f"{w:g} ({b[0]:g}, {b[1]:g})$^{{⊗4}}$" for w, b in terms)
    axes["T"].set_xlabel(f"T  =  {formula}", fontsize=10.5, labelpad=9)
    for i, colour in enumerate(TERMS):
        fit, vector = steps.fits[i], steps.vectors[:, i]
        _heatmap(axes[f"M{i}"], steps.matrices[i], 5)
        axes[f"M{i}"].set_xlabel(f"μ$_{i + 1}$ = {steps.values[i]:.5f}\n", fontsize=10.5)
        _quadratic_form(axes[f"b{i}"], steps.matrices[i], vector, colour)
        axes[f"b{i}"].set_xlabel(
            f"β$_{i + 1}$ = {fit:.5f}\nb$_{i + 1}$ = ({vector[0]:.5f}, {vector[1]:.5f})",
            fontsize=10.5,
        )
    _draw_terms(axes["end"], steps)
    for ax in axes.values():
        ax.set_anchor("N")  # one line of titles
    return figure


def _draw_terms(ax, steps):
    """Found vectors, as long as their weights, on top of the true ones."""
    for weight, vector in zip(steps.true.weights, steps.true.vectors.T, strict=True):
        ax.plot(*np.outer(vector, [0, weight]), color="0.8", lw=10, solid_capstyle="butt")
    ax.plot([], [], color="0.8", lw=10, label="the terms T was made of")
    for i, colour in enumerate(TERMS):
        weight, vector = steps.result.weights[i], steps.result.vectors[:, i]
        _arrow(ax, weight * vector, colour)
        label = f"{weight:.5f} ({vector[0]:.5f}, {vector[1]:.5f})$^{{⊗4}}$"
        ax.plot([], [], color=colour, lw=2, label=label)
    _cross(ax, 2.2)
    ax.set(xlim=(-0.3, 2.3), ylim=(-0.3, 2.3), xticks=[0, 1, 2], yticks=[0, 1, 2])
    ax.legend(fontsize=10, loc="upper right", frameon=False)


# --- Algorithm 2: contrastive ICA -------------------------------------------------------------------


class CICASteps(NamedTuple):
    """Data in three dimensions, their true patterns, and what Algorithm 2 makes of them."""

    background: np.ndarray
    foreground: np.ndarray
    groups: np.ndarray  # which of the salient source's two values each row has
    A: np.ndarray
    b: np.ndarray
    fore: Cumulants
    back: Cumulants
    found: Contrast
    rest: TensorOperator  # κ₄(x) − Σ λ′ᵢ aᵢ⊗⁴


def _unit_columns(*columns):
    matrix = np.array(columns, dtype=float).T
    return matrix / np.linalg.norm(matrix, axis=0)


def cica_example(n_samples: int = 50_000, random_state: int = 0) -> CICASteps:
    """Two heavy-tailed background patterns of changing strength, one two-valued foreground pattern."""
    rng = np.random.default_rng(random_state)
    A, b = _unit_columns([1, 0, 0], [0.35, 1, 0]), _unit_columns([0.6, 0.1, 0.8])
    noise = 0.1 * rng.standard_normal((2, n_samples, 3))
    background = (rng.laplace(size=(n_samples, 2)) * [1.0, 0.8]) @ A.T + noise[0]
    source = rng.choice([-1.5, 1.5], n_samples)
    foreground = (rng.laplace(size=(n_samples, 2)) * [0.8, 1.0]) @ A.T + noise[1]
    foreground = foreground + source[:, None] * b.T
    fore, back = cumulants(foreground), cumulants(background)
    found = cica(fore, back, 2, 1, rng=np.random.default_rng(0))
    rest = fore.fourth - RankOneSum(found.shared_weights, found.background.vectors)
    return CICASteps(background, foreground, source > 0, A, b, fore, back, found, rest)


# One camera for the clouds and for the maps of directions below them.
ELEVATION, AZIMUTH = 24.0, -62.0
REACH = 3.4  # of the clouds' axes


def _screen():
    """Right, up and towards the viewer, as rows."""
    e, a = np.radians(ELEVATION), np.radians(AZIMUTH)
    towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.array([right, np.cross(towards, right), towards])


def _cloud(ax, rows, colours):
    """Some rows in three dimensions, seen without perspective."""
    shown, limit = slice(0, 600), REACH
    inside = np.abs(rows[shown]).max(axis=1) < limit
    ax.scatter(*rows[shown][inside].T, s=5, c=colours[shown][inside], alpha=0.55, linewidths=0)
    ax.set_proj_type("ortho")
    ax.view_init(ELEVATION, AZIMUTH)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), zlim=(-limit, limit))
    ax.set_box_aspect((1, 1, 1), zoom=1.02)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_ticklabels([])
        axis.set_pane_color((0.98, 0.98, 0.98))


def _facing(true, found):
    """Pairs of a true and a found vector, both turned towards the viewer."""
    match = match_patterns(found, true)
    matched = found[:, match.order] * match.signs
    signs = np.where(_screen()[2] @ true < 0, -1.0, 1.0)
    return zip((true * signs).T, (matched * signs).T, strict=True)


def _directions(ax, true, found, colour, names):
    """True directions as broad pale lines, found ones as thin dark lines with their name."""
    for (truth, vector), name in zip(_facing(true, found), names, strict=True):
        ax.plot(*np.outer(truth, [-REACH, REACH]), color=colour, lw=7, alpha=0.3, zorder=5)
        ax.plot(*np.outer(vector, [-REACH, REACH]), color=colour, lw=1.6, zorder=6)
        ax.text(*(1.17 * REACH * vector), name, color=colour, fontsize=13, ha="center", va="center")


def _map(ax, tensor, limit):
    """T(u, u, u, u) over all directions u: the hemisphere that the camera sees."""
    grid = np.linspace(-1, 1, 201)
    x, y = np.meshgrid(grid, grid)
    # a little beyond the rim, which clips it
    depth = np.sqrt(np.maximum(1 - x**2 - y**2, 0))
    u = np.array([x, y, depth]).reshape(3, -1)
    values = tensor.coefficients(_screen().T @ (u / np.linalg.norm(u, axis=0))).reshape(x.shape)
    bands = ax.contourf(x, y, values, levels=np.linspace(-limit, limit, 20), cmap="PRGn")
    rim = Circle((0, 0), 1, fill=False, ec="0.5", lw=1)
    ax.add_patch(rim)
    bands.set_clip_path(rim)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.05, 1.05), aspect="equal")
    ax.set_axis_off()
    return bands


def _spots(ax, true, found, colour, names):
    """Where a direction meets the hemisphere: ring for the true one, dot for the found one."""
    for (truth, vector), name in zip(_facing(true, found), names, strict=True):
        screen = _screen() @ np.column_stack([truth, vector])
        ax.plot(*screen[:2, 0], "o", ms=12, mfc="none", mec=colour, mew=2.2)
        ax.plot(*screen[:2, 1], "o", ms=4.5, color=colour)
        ax.annotate(
            name,
            screen[:2, 1],
            (0, 13),
            textcoords="offset points",
            color=colour,
            fontsize=13,
            ha="center",
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )


def _bars(ax, tensor, rank, colours, name):
    """Eigenvalues by decreasing magnitude, the first ``rank`` of them in colour."""
    values = eigenvalues(tensor)
    ax.bar(np.arange(1, values.size + 1), values, color=[*colours, *["0.8"] * (values.size - rank)])
    ax.set_xticks(np.arange(1, values.size + 1))
    ax.axhline(0, color="0.4", lw=0.8)
    ax.set_xlabel(name)
    ax.spines[["top", "right"]].set_visible(False)


def _degrees_off(found, true):
    return np.degrees(np.arccos(np.minimum(match_patterns(found, true).cosines, 1.0)))


def draw_cica(steps: CICASteps) -> Figure:
    """One column for each step of Algorithm 2: data, cumulant by direction, eigenvalues."""
    figure = Figure(figsize=(9.8, 7.9), layout="constrained")
    grid = figure.add_gridspec(3, 3, height_ratios=[1.2, 1.05, 0.6])
    found, a_names, b_names = steps.found, ["a$_1$", "a$_2$"], ["b"]
    a_all = (steps.A, found.background.vectors, BLUE, a_names)
    b_all = (steps.b, found.foreground.vectors, VERMILION, b_names)
    plain = np.full(len(steps.foreground), GREY)
    two = np.where(steps.groups, plots.COLOURS[4], plots.COLOURS[3])
    off_a, off_b = (_degrees_off(f, t) for t, f, *_ in (a_all, b_all))
    strengths = match_patterns(found.background.vectors, steps.A).order
    before, after = found.background.weights[strengths], found.shared_weights[strengths]
    columns = (
        (
            f"Step 1: background patterns\noff the truth by {off_a[0]:.1f}° and {off_a[1]:.1f}°",
            (steps.background, plain, [a_all]),
            (steps.back.fourth, [a_all], "κ$_4$(y)(u, u, u, u)"),
            (2, [BLUE] * 2, "eigenvalues of Mat(κ$_4$(y)): r = 2"),
        ),
        (
            "Step 2: their weights in the foreground\n"
            f"λ → λ′: {before[0]:.1f} → {after[0]:.1f} and {before[1]:.1f} → {after[1]:.1f}",
            (steps.foreground, plain, [a_all]),
            (steps.fore.fourth, [a_all], "κ$_4$(x)(u, u, u, u)"),
            (3, [GREY] * 3, "eigenvalues of Mat(κ$_4$(x)): r + ℓ = 3"),
        ),
        (
            f"Step 3: foreground pattern\noff the truth by {off_b[0]:.1f}°",
            (steps.foreground, two, [b_all]),
            (steps.rest, [b_all], "what is left: κ$_4$(x) − Σ λ′$_i$ a$_i^{⊗4}$"),
            (1, [VERMILION], "eigenvalues of what is left: ℓ = 1"),
        ),
    )
    peak = max(np.abs(found.background.weights).max(), np.abs(found.shared_weights).max())
    maps, lowest = [], None
    for j, (title, (rows, colours, in_cloud), (tensor, in_map, name), bars) in enumerate(columns):
        cloud = figure.add_subplot(grid[0, j], projection="3d", computed_zorder=False)
        _cloud(cloud, rows, colours)
        cloud.set_title(title, fontsize=11)
        disc = figure.add_subplot(grid[1, j])
        shown = _map(disc, tensor, 1.05 * peak)
        disc.set_title(name, fontsize=10.5)
        for directions in in_cloud:
            _directions(cloud, *directions)
        for directions in in_map:
            _spots(disc, *directions)
        maps.append(disc)
        lowest = figure.add_subplot(grid[2, j], sharey=lowest)
        _bars(lowest, tensor, *bars)
        if j == 0:
            cloud.plot([], [], color=BLUE, lw=7, alpha=0.3, label="true")
            cloud.plot([], [], color=BLUE, lw=1.6, label="found")
            cloud.legend(loc="upper left", bbox_to_anchor=(-0.05, 0.12), fontsize=9, frameon=False)
    bar = figure.colorbar(shown, ax=maps, shrink=0.8, aspect=18, pad=0.01)
    bar.set_ticks([-10, -5, 0, 5, 10], labels=["−10", "−5", "0", "5", "10"])
    bar.set_label("two-peaked          heavy-tailed", fontsize=10)
    return figure


# --- Ranks -------------------------------------------------------------------------------------------


class RankExample(NamedTuple):
    """Both screes of one pair of datasets, and the ranks chosen from them."""

    title: str
    values: Scree
    ranks: Ranks


def rank_examples() -> tuple[RankExample, RankExample]:
    """A design whose ranks are known, and images whose ranks are not."""
    data = make_synthetic(8, n_background=4, random_state=0)
    r, l = data.A.shape[1], data.B.shape[1]  # noqa: E741 - the paper's ℓ
    synthetic = cumulants(data.foreground), cumulants(data.background)
    images = load_digits_on_photos()
    basis = common_basis([images.foreground, images.background])
    demo = tuple(project_cumulants(X, basis) for X in (images.foreground, images.background))
    titles = (
        f"synthetic, {len(data.foreground):,} rows of 8 variables\ntrue r = {r}, true r + l = {r + l}",
        f"digits on photographs, {len(images.foreground):,} rows of {basis.shape[1]} components\n"
        "true ranks unknown",
    )
    return tuple(
        RankExample(title, scree(*pair), choose_ranks(*pair))
        for title, pair in zip(titles, (synthetic, demo), strict=True)
    )


def draw_ranks(examples: tuple[RankExample, ...]) -> Figure:
    """The two screes side by side."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for ax, example in zip(figure.subplots(1, len(examples)), examples, strict=True):
        plots.scree(example.values, example.ranks, ax)
        ax.set_title(example.title, fontsize=11)
        ax.legend(loc="upper right")
        # eigenvalues that are zero to rounding would flatten the rest of the picture
        ax.set_ylim(bottom=np.abs(example.values.foreground).min() / 2)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(out: Path) -> None:
    """Write the three figures into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in (
        ("htd_steps", draw_htd(htd_example())),
        ("cica_steps", draw_cica(cica_example())),
        ("scree_ranks", draw_ranks(rank_examples())),
    ):
        figure.savefig(out / f"{name}.png", dpi=150, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    parser = ArgumentParser(description="Draw the ideas of the paper.")
    default = Path(__file__).parent.parent / "docs" / "images"
    parser.add_argument("--out", type=Path, default=default, help="folder for the figures")
    main(parser.parse_args().out)
