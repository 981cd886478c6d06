"""Six plots of one fit in one figure: every plot takes axes, or a part of a figure.

Writes ``docs/images/plots.png``.
"""

from pathlib import Path

import numpy as np

from contrica import ContrastiveICA, plots
from contrica.datasets import load_digits_on_photos

data = load_digits_on_photos()
model = ContrastiveICA(4, random_state=0).fit(data.foreground, background=data.background)
scores, behind = model.transform(data.foreground), model.transform(data.background)
half = ContrastiveICA(4, random_state=0)
half.fit(data.foreground[::2], background=data.background[::2])
digits = np.array(data.label_names)[data.labels]

figure = plots.new_figure(figsize=(11, 9))
above, middle, below = figure.subfigures(3, height_ratios=(1, 1.1, 1))
left, right = above.subfigures(1, 2)
plots.images(model, data.image_shape, axes=left)
plots.patterns(model, n_top=6, components=(1, 3), axes=right)
left, right = middle.subplots(1, 2)
plots.scatter(scores, digits, background=behind, legend="outside", ax=left)
plots.groups(scores, digits, background=behind, background_groups=["photo"] * len(behind), ax=right)
left, right = (part.subplots() for part in below.subfigures(1, 2))
plots.ratios(model, ax=left)
plots.similarity(model, half, ax=right)
figure.savefig(Path(__file__).parent.parent / "docs" / "images" / "plots.png", dpi=80)
