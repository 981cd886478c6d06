"""How many patterns: eigenvalues, contrast ratios and their null."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.estimators._ranking import ranking_ratio
from contrica.plots._canvas import grid, one_axes, saved
from contrica.plots._colours import COLOURS
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.rank_report import RankReport
from contrica.solvers.ranks import Ranks, Scree

__all__ = ["rank_report", "ratios", "scree"]


def scree(
    values: Scree | ContrastScree,
    ranks: Ranks | None = None,
    ax: Any = None,
    *,
    save: str | Path | None = None,
) -> Any:
    """What the ranks were chosen by, with the chosen ones marked.

    Magnitudes of the eigenvalues of both flattened cumulants; or, of a contrast subspace, the contrast
    ratios of all directions, with the mean of their permutation null and what 95 % of it stay below.

    Parameters
    ----------
    values : Scree or ContrastScree
        ``scree_`` of a fitted model, or from `contrica.solvers.scree`.
    ranks : Ranks, optional
        Marked at r and r + ℓ.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's, which a notebook shows.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    matplotlib Axes
    """
    ax = one_axes(ax, figsize=(6, 4))
    if isinstance(values, ContrastScree):
        return saved(_contrast_scree(values, ax), save)
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
    return saved(ax, save)


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


def rank_report(report: RankReport, axes: Any = None, *, save: str | Path | None = None) -> Any:
    """Eigenvalues and contrast ratios side by side, and by which rule a default fit counts patterns.

    Parameters
    ----------
    report : RankReport
        From `contrica.estimators.report_ranks`.
    axes : array of two Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    ndarray of Axes, shape (2,)
    """
    found = grid(axes, 2, panel=(5.5, 4.5))
    scree(report.scree, report.chosen, found[0]).set_title('eigenvalues, for solver "paper"')
    scree(report.contrast, ax=found[1]).set_title('contrast ratios, for solver "subspace"')
    r, l = report.ranks  # noqa: E741 - the paper's ℓ
    counted = f"l = {l}" if report.solver == "subspace" else f"r = {r} and l = {l}"
    title = f'a default fit uses solver "{report.solver}": {counted} by {report.rule}'
    found[0].figure.suptitle(title)
    return saved(found, save)


def ratios(
    values: Any,
    *,
    p_values: Any = None,
    n_foreground: int | None = None,
    intervals: Any = None,
    symbol: str | None = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
    save: str | Path | None = None,
) -> Any:
    """How many times more of every pattern the foreground has than the background.

    Patterns that stand out are filled, the others hollow. The line is at 1, where both have as much.

    Parameters
    ----------
    values : fitted estimator, or array-like of shape (n_patterns,)
        Of an estimator, the ratio that ranks its patterns, its p-values and its count.
    p_values : array-like, optional
        Written beside the patterns, as many as were tested; NaN for the others. Of an estimator with a
        permutation null they belong to directions of the contrast subspace.
    n_foreground : int, optional
        How many patterns stand out; all by default.
    intervals : array-like of shape (n_patterns, 2), optional
        Such as ``stability(…).ratio_intervals``.
    symbol : str, optional
        Of the ratio, "k(f)" or "k(b)".
    names : sequence of str, optional
        Of the patterns.
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's, which a notebook shows.
    save : path, optional
        File to write the figure to.

    Returns
    -------
    matplotlib Axes
    """
    if hasattr(values, "components_"):
        model = values
        own, values = ranking_ratio(model)
        symbol = own if symbol is None else symbol
        known = getattr(model, "scree_", None)
        if p_values is None and isinstance(known, ContrastScree):
            p_values = known.p_values[: len(values)]
        if n_foreground is None:
            n_foreground = getattr(model, "n_foreground_", None)
    sizes = np.asarray(values, dtype=float)
    count = sizes.size
    labels = [f"pattern {i + 1}" for i in range(count)] if names is None else list(map(str, names))
    _check_lengths(count, names=labels, intervals=intervals)
    tested = np.full(count, np.nan)
    if p_values is not None:
        given = np.asarray(p_values, dtype=float)[:count]
        tested[: given.size] = given
    ax = one_axes(ax, figsize=(5, 1.1 + 0.32 * count))
    places = np.arange(count)
    stands_out = places < (count if n_foreground is None else n_foreground)
    _lollipops(ax, sizes, places, stands_out)
    if intervals is not None:
        ax.hlines(places, *np.asarray(intervals, dtype=float).T, color="0.2", lw=1.5, zorder=1)
    ax.set_yticks(places, labels)
    ax.set_ylim(count - 0.5, -0.5)
    _p_column(ax, tested)
    what = "mean square" if symbol == "k(f)" else "variance"
    over = "variance in the background" if symbol == "k(f)" else "that in the background"
    ax.set_xlabel(f"{symbol or 'ratio'}: {what} in the foreground over {over}")
    return saved(ax, save)


def _lollipops(ax: Any, sizes: np.ndarray, places: np.ndarray, filled: np.ndarray) -> None:
    known = np.isfinite(sizes)
    if (sizes[known] > 0).all():
        ax.set_xscale("log")
        span = sizes[known].max() / sizes[known].min() if known.any() else 1
        if span < 30:  # powers of ten alone would leave an axis without numbers
            _plain_ticks(ax)
    ax.hlines(places[known], 1, sizes[known], color="0.7", lw=1, zorder=0)
    ax.axvline(1, color="0.4", lw=0.8, ls="--")
    for label, own, face in (
        ("stands out", filled & known, COLOURS[1]),
        ("does not stand out", ~filled & known, "white"),
    ):
        if own.any():
            ax.scatter(
                sizes[own], places[own], s=45, c=face, edgecolors=COLOURS[1], label=label, zorder=2
            )
    ax.spines[["top", "right"]].set_visible(False)
    if known.any() and not filled.all():
        ax.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)


def _plain_ticks(ax: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _p_column(ax: Any, tested: np.ndarray) -> None:
    """P at the right of each pattern that was tested."""
    for place, p in enumerate(tested):
        if np.isfinite(p):
            ax.annotate(
                f"p = {p:.2g}",
                (1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=8,
                annotation_clip=False,
            )


def _check_lengths(count: int, **given: Any) -> None:
    for parameter, values in given.items():
        if values is not None and len(values) != count:
            raise DataError(
                f"n-{parameter}",
                f"`{parameter}` has length {len(values)}",
                f"there are {count} patterns",
                "Give one for each pattern.",
                parameter,
            )
