"""Plots of a fit. Needs the extra ``plots``.

Each takes matplotlib axes and returns them. Without axes a plot makes a figure of pyplot's, which a
notebook shows; with axes nothing of pyplot is touched. ``save="figure.png"`` also writes the figure.
"""

from contrica.plots._canvas import new_figure, without_pyplot
from contrica.plots._colours import COLOURS, MAX_SHOWN
from contrica.plots._groups import groups
from contrica.plots._patterns import images, loadings, patterns, similarity
from contrica.plots._ranks import rank_report, ratios, scree
from contrica.plots._scatter import comparison, histograms, scatter, scores, small_multiples
from contrica.plots._stability import stability

__all__ = [
    "COLOURS",
    "MAX_SHOWN",
    "comparison",
    "groups",
    "histograms",
    "images",
    "loadings",
    "new_figure",
    "patterns",
    "rank_report",
    "ratios",
    "scatter",
    "scores",
    "scree",
    "similarity",
    "small_multiples",
    "stability",
    "without_pyplot",
]
