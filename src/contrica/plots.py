"""Plots of a fit; each takes and returns matplotlib axes. Needs the extra ``plots``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contrica.errors import PackageMissingError
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.rank_report import RankReport
from contrica.solvers.ranks import Ranks, Scree

__all__ = ["images", "loadings", "rank_report", "scatter", "scores", "scree", "small_multiples"]

# Colours that stay apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Groups in one legend.
MAX_SHOWN = 24


def new_figure(**size: Any) -> Any:
    """A matplotlib figure that belongs to no display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "plots need matplotlib",
            remedy="Install it: pip install 'contrica[plots]'.",
        ) from error
    # not by pyplot, so that no global state is touched
    return Figure(layout="constrained", **size)


def _axes(ax: Any, **size: Any) -> Any:
    return new_figure(**size).subplots() if ax is None else ax


def scree(values: Scree | ContrastScree, ranks: Ranks | None = None, ax: Any = None) -> Any:
    """What the ranks were chosen by, with the chosen ones marked.

    Magnitudes of the eigenvalues of both flattened cumulants; or, of a contrast subspace, the contrast
    ratios of all directions, and two and four standard deviations above the mean of their permutation
    null.

    Parameters
    ----------
    values : Scree or ContrastScree
        ``scree_`` of a fitted model, or from `contrica.solvers.scree`.
    ranks : Ranks, optional
        Marked at r and r + ℓ.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax, figsize=(6, 4))
    if isinstance(values, ContrastScree):
        return _contrast_scree(values, ax)
    curves = [("foreground", values.foreground, COLOURS[1])]
    if values.background is not None:
        curves.append(("background", values.background, COLOURS[0]))
    for label, eigenvalues, colour in curves:
        sizes = np.abs(eigenvalues)
        ax.plot(np.arange(1, sizes.size + 1), sizes, ".-", color=colour, label=label)
    if ranks is not None:
        if ranks.n_background:
            ax.axvline(
                ranks.n_background, color=COLOURS[0], ls="--", label=f"r = {ranks.n_background}"
            )
        total = ranks.n_background + ranks.n_foreground
        ax.axvline(total, color=COLOURS[1], ls="--", label=f"r + l = {total}")
    if any(np.any(eigenvalues) for _, eigenvalues, _ in curves):
        ax.set_yscale("log")
    ax.set_xlabel("eigenvalue of the flattened fourth cumulant")
    ax.set_ylabel("magnitude")
    ax.legend()
    return ax


def _contrast_scree(values: ContrastScree, ax: Any) -> Any:
    order = np.arange(1, values.ratios.size + 1)
    ax.plot(order, values.ratios, ".-", color=COLOURS[1], label="contrast ratio")
    if np.isfinite(values.null_quantile):  # which earlier versions did not save
        ax.axhspan(
            *(values.null_mean, values.null_quantile),
            color=COLOURS[0],
            alpha=0.3,
            lw=0,
            label="permutation null, up to 95 %",
        )
        ax.axhline(values.null_mean, color=COLOURS[0], ls=":", label="permutation null, mean")
    ax.axvline(values.chosen + 0.5, color=COLOURS[1], ls="--", label=f"l = {values.chosen}")
    if (values.ratios > 0).all():
        ax.set_yscale("log")
    ax.set_xlabel("direction")
    ax.set_ylabel("foreground over background variance")
    ax.legend()
    return ax


def rank_report(report: RankReport, figure: Any = None) -> Any:
    """Eigenvalues and contrast ratios side by side, and by which rule a default fit counts patterns.

    Parameters
    ----------
    report : RankReport
        From `contrica.estimators.report_ranks`.
    figure : matplotlib Figure, optional

    Returns
    -------
    matplotlib Figure
    """
    if figure is None:
        figure = new_figure(figsize=(11, 4.5))
    left, right = figure.subplots(1, 2)
    scree(report.scree, report.chosen, left).set_title('eigenvalues, for solver "paper"')
    scree(report.contrast, ax=right).set_title('contrast ratios, for solver "subspace"')
    r, l = report.ranks  # noqa: E741 - the paper's ℓ
    counted = f"l = {l}" if report.solver == "subspace" else f"r = {r} and l = {l}"
    figure.suptitle(f'a default fit uses solver "{report.solver}": {counted} by {report.rule}')
    return figure


def scores(
    values: np.ndarray,
    labels: np.ndarray | None = None,
    *,
    background: np.ndarray | None = None,
    label_names: Sequence[str] | None = None,
    figure: Any = None,
) -> Any:
    """Scores of all patterns that were kept: one as a histogram, two as a scatter, more as a grid.

    A grid has histograms on its diagonal and scatters of every pair below it; at most the first five
    patterns are drawn.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_components)
        Scores of the foreground.
    labels, background, label_names
        As of `scatter`.
    figure : matplotlib Figure, optional

    Returns
    -------
    matplotlib Figure
    """
    count = min(values.shape[1], 5)
    options: Any = {"label_names": label_names}
    if count <= 2:
        figure = new_figure(figsize=(5, 5)) if figure is None else figure
        scatter(values, labels, background=background, ax=figure.subplots(), **options)
        return figure
    figure = new_figure(figsize=(2.6 * count, 2.6 * count)) if figure is None else figure
    axes = figure.subplots(count, count, squeeze=False)
    for i, j in np.ndindex(count, count):
        chosen = [j] if i == j else [j, i]
        if j > i:
            axes[i, j].set_axis_off()
            continue
        names = [f"pattern {k + 1}" for k in chosen]
        under = None if background is None else background[:, chosen]
        ax = scatter(
            values[:, chosen], labels, background=under, names=names, ax=axes[i, j], **options
        )
        _tidy_panel(ax, values[:, chosen], first=j == 0 or i == j)
    _common_legend(figure, axes.ravel())
    return figure


def scatter(
    scores: np.ndarray,
    labels: np.ndarray | None = None,
    *,
    background: np.ndarray | None = None,
    label_names: Sequence[str] | None = None,
    names: Sequence[str] = ("pattern 1", "pattern 2"),
    ax: Any = None,
) -> Any:
    """Rows by their scores on the first two patterns; one pattern alone is shown as a histogram.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_components)
        Of the foreground.
    labels : ndarray of shape (n_samples,), optional
        Colour the points by group.
    background : ndarray of shape (n_background_samples, n_components), optional
        Scores of the background, drawn in grey beneath.
    label_names : sequence of str, optional
        Legend of the sorted labels.
    names : sequence of str
        Axis labels.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax, figsize=(5, 5))
    groups = [("foreground", scores)]
    if labels is not None:
        values = np.unique(labels)
        shown = [str(value) for value in values] if label_names is None else label_names
        groups = [(str(s), scores[labels == v]) for v, s in zip(values, shown, strict=True)]
    if scores.shape[1] == 1:
        if background is not None:
            groups = [("background", background), *groups]
        edges = np.histogram_bin_edges(np.concatenate([part[:, 0] for _, part in groups]), bins=50)
        colours = ["0.75", *_cycle(len(groups))] if background is not None else _cycle(len(groups))
        for (label, points), colour in zip(groups, colours, strict=False):
            ax.hist(points[:, 0], edges, density=True, alpha=0.6, color=colour, label=label)
        ax.set_xlabel(names[0])
        ax.set_ylabel("density")
    else:
        if background is not None:
            ax.scatter(*background[:, :2].T, s=6, color="0.75", label="background", linewidths=0)
        for (label, points), colour in zip(groups, _cycle(len(groups)), strict=True):
            ax.scatter(*points[:, :2].T, s=6, color=colour, label=label, alpha=0.7, linewidths=0)
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1])
    ax.legend(markerscale=2.5)
    return ax


def _cycle(count: int) -> list[str]:
    return [COLOURS[(i + 1) % len(COLOURS)] for i in range(count)]


def loadings(
    pattern: np.ndarray, names: Sequence[str] | None = None, *, n_top: int = 15, ax: Any = None
) -> Any:
    """The largest entries of one pattern, by variable.

    Parameters
    ----------
    pattern : ndarray of shape (n_features,)
        A row of ``components_``.
    names : sequence of str, optional
        Variable names.
    n_top : int
        How many to show.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax, figsize=(4, 0.6 + 0.22 * min(n_top, len(pattern))))
    top = np.argsort(-np.abs(pattern), kind="stable")[:n_top][::-1]
    shown = [str(i) if names is None else str(names[i]) for i in top]
    ax.barh(shown, pattern[top], color=[COLOURS[1 if pattern[i] > 0 else 0] for i in top])
    ax.axvline(0, color="0.3", lw=0.8)
    ax.set_xlabel("loading")
    return ax


def images(
    patterns: np.ndarray,
    shape: tuple[int, int],
    titles: Sequence[str] | None = None,
    figure: Any = None,
) -> Any:
    """Patterns of image data as images, blue to red about zero.

    Parameters
    ----------
    patterns : ndarray of shape (n_patterns, height · width)
    shape : (height, width)
    titles : sequence of str, optional
    figure : matplotlib Figure, optional

    Returns
    -------
    matplotlib Figure
    """
    if figure is None:
        figure = new_figure(figsize=(1.9 * len(patterns), 2.6))
    axes = np.atleast_1d(figure.subplots(1, len(patterns)))
    for i, (ax, pattern) in enumerate(zip(axes, patterns, strict=True)):
        limit = np.abs(pattern).max()
        ax.imshow(pattern.reshape(shape), cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.set_axis_off()
        if titles is not None:
            ax.set_title(titles[i], fontsize=9)
    return figure


def small_multiples(
    scores: Sequence[np.ndarray | None],
    titles: Sequence[str],
    labels: np.ndarray | None = None,
    *,
    backgrounds: Sequence[np.ndarray | None] | None = None,
    label_names: Sequence[str] | None = None,
    figure: Any = None,
) -> Any:
    """The same rows by the scores of several methods, one panel each, with one legend.

    Axes differ between panels, as methods scale their scores differently. A panel's limits hold
    all foreground rows but, at either end, the outermost 0.2 %; so do not read extremes from it.

    Parameters
    ----------
    scores : sequence of ndarray of shape (n_samples, n_components) or None
        Of the foreground, one per method; ``None`` leaves the panel empty but for its title.
    titles : sequence of str
    labels : ndarray of int of shape (n_samples,), optional
        Colour the points by group; those below 0 belong to none.
    backgrounds : sequence of ndarray or None, optional
        Scores of the background, one per method, drawn in grey beneath.
    label_names : sequence of str, optional
        Legend of the groups 0, 1, ….
    figure : matplotlib Figure, optional

    Returns
    -------
    matplotlib Figure
    """
    n_columns = min(len(scores), 4)
    n_rows = -(-len(scores) // n_columns)
    if figure is None:
        figure = new_figure(figsize=(3.1 * n_columns, 3.3 * n_rows + 0.5))
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    beneath = [None] * len(scores) if backgrounds is None else backgrounds
    groups, names = _all_grouped(labels, label_names)
    for i, (points, under) in enumerate(zip(scores, beneath, strict=True)):
        ax = axes[i]
        ax.set_title(titles[i], fontsize=9)
        if points is None:
            ax.set_axis_off()
            continue
        scatter(points, groups, background=under, label_names=names, ax=ax)
        _tidy_panel(ax, points, first=i % n_columns == 0)
    for ax in axes[len(scores) :]:
        ax.set_axis_off()
    _common_legend(figure, axes)
    return figure


def _all_grouped(
    labels: np.ndarray | None, names: Sequence[str] | None
) -> tuple[np.ndarray | None, list[str] | None]:
    """Labels in which the rows without one are a group of their own, the last."""
    if labels is None:
        return None, None
    last = labels.max() + 1
    shown = [str(i) for i in range(last)] if names is None else list(names)
    if (labels < 0).any():
        return np.where(labels < 0, last, labels), [*shown, "no label"]
    return labels, shown


def _tidy_panel(ax: Any, points: np.ndarray, *, first: bool) -> None:
    """Small text, points by their number, no legend, and limits that a few far rows do not set."""
    ax.get_legend().remove()
    ax.tick_params(labelsize=7)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(8)
        axis.get_offset_text().set_size(7)
    if not first:
        ax.set_ylabel("")
    for collection in ax.collections:
        collection.set_sizes([np.clip(3000 / len(points), 3, 10)])
    if points.shape[1] > 1:
        low, high = np.quantile(points[:, :2], [0.002, 0.998], axis=0)
        margin = np.maximum(0.06 * (high - low), np.finfo(float).tiny)
        ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
        ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _common_legend(figure: Any, axes: Sequence[Any]) -> None:
    handles, shown = next(
        (found for found in (ax.get_legend_handles_labels() for ax in axes) if found[0]), ([], [])
    )
    if len(handles) > MAX_SHOWN:
        handles, shown = handles[:MAX_SHOWN], [*shown[: MAX_SHOWN - 1], "… and more"]
    if handles:
        figure.legend(
            *(handles, shown),
            loc="outside lower center",
            ncols=min(len(handles), 8),
            markerscale=4,
            fontsize=8,
            frameon=False,
        )
