"""Patterns and filters: two answers to two questions.

A *pattern* says how a source appears in the variables; a *filter* says which combination of variables
recovers the source. They differ as soon as patterns are not orthogonal. Here one salient source lies
along b, at 40° to the only background source's direction a. Scores along the pattern, X · b, still mix in
the background; scores by the filter do not.

Writes ``docs/images/patterns_and_filters.png``.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from contrica import ContrastiveICA

rng = np.random.default_rng(0)
n = 4000
a = np.array([1.0, 0.0])
b = np.array([np.cos(np.radians(40)), np.sin(np.radians(40))])
salient = rng.choice([-1.0, 1.0], n) + 0.15 * rng.standard_normal(n)
background = np.outer(rng.laplace(size=n), a) + 0.02 * rng.standard_normal((n, 2))
foreground = np.outer(rng.laplace(size=n), a) + np.outer(salient, b)

model = ContrastiveICA(1, solver="paper", n_background=1, n_foreground=1, random_state=0)
model.fit(foreground, background=background)
pattern, unmixing = model.components_[0], model.filters_[0]

figure = Figure(figsize=(10, 3.4), layout="constrained")
plane, by_pattern, by_filter = figure.subplots(1, 3)
plane.scatter(*background.T, s=3, color="0.75", linewidths=0, label="background")
plane.scatter(*foreground.T, s=3, color="#0072B2", alpha=0.4, linewidths=0, label="foreground")
for vector, colour, name in ((pattern, "#D55E00", "pattern"), (unmixing, "#009E73", "filter")):
    tip = 3 * vector / np.linalg.norm(vector)
    plane.annotate("", tip, (0, 0), arrowprops={"color": colour, "width": 2, "headwidth": 8})
    plane.plot([], [], color=colour, label=name)
plane.set(xlim=(-5, 5), ylim=(-4, 4), aspect="equal", title="the data")
plane.legend(fontsize=8, markerscale=3)
centred = foreground - model.mean_
for ax, vector, colour, title in (
    (by_pattern, pattern, "#D55E00", "scores by the pattern, X · b"),
    (by_filter, unmixing, "#009E73", "scores by the filter"),
):
    ax.hist(centred @ vector, bins=80, range=(-4, 4), color=colour)
    ax.set(title=title, yticks=[])
figure.savefig(
    Path(__file__).parent.parent / "docs" / "images" / "patterns_and_filters.png", dpi=110
)
