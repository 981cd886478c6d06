"""``contrica demo``: handwritten digits on photographs, found without any file of one's own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from contrica import plots
from contrica.cli.console import print_line, progress
from contrica.cli.options import Folder, Overwrite, Seed
from contrica.cli.pair import Data, Pair
from contrica.cli.printing import print_fit
from contrica.cli.reporting import ReportOptions, report_of_folder
from contrica.cli.writing import FILES, write_figure, write_fit
from contrica.datasets import load_digits_on_photos
from contrica.estimators import ContrastiveICA, ranking_ratio
from contrica.metrics import pattern_cosines
from contrica.output import output_folder


def demo(
    output: Folder = Path("demo"),
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Find handwritten digits on photographs, from data that come with scikit-learn."""
    with (
        output_folder(output, overwrite=overwrite, ours=FILES) as folder,
        progress("loading digits and photographs"),
    ):
        data = load_digits_on_photos()
        height, width = data.image_shape
        pixels = np.array([f"pixel_{i}_{j}" for i in range(height) for j in range(width)])
        digits = np.array(data.label_names)[data.labels]
        fore = Data(data.foreground, pixels, None, labels=digits)
        back = Data(data.background, pixels, None)
        model = ContrastiveICA(2, random_state=seed)
        model.fit(fore.values, background=back.values)
        write_fit(folder, model, fore, [back])
        write_figure(_images(data, model), folder / "patterns.png")
        html = _report(folder, output, seed, Pair(fore, [back], ["foreground", "background"], []))
        (folder / "report.html").write_text(html, encoding="utf-8")
    print_fit(model, fore.names, *_correlations(data, model))
    print_line(f"written to {output}", wrap=False)


def _report(folder: Path, output: Path, seed: int, pair: Pair) -> str:
    told = {
        "title": "Handwritten digits on photographs",
        "command": shlex.join(["contrica", "demo", "--seed", str(seed), "--out", str(output)]),
    }
    return report_of_folder(folder, output, ReportOptions(image_shape="8x8"), pair=pair, more=told)[
        0
    ]


def _images(data: Any, model: ContrastiveICA) -> Any:
    """The mean digits, and the patterns that were found."""
    symbol, ratios = ranking_ratio(model)
    titles = [f"pattern {i}\n{symbol} = {ratio:.3g}" for i, ratio in enumerate(ratios, start=1)]
    with plots.without_pyplot():
        axes = plots.images(
            np.vstack([data.patterns, model.components_]),
            data.image_shape,
            ["mean 0", "mean 1", *titles],
        )
    return axes[0].figure


def _correlations(data: Any, model: ContrastiveICA) -> Iterator[str]:
    # all images have mean zero, so cosines are correlations
    cosines = pattern_cosines(model.components_.T, data.patterns.T)
    for i, (zero, one) in enumerate(cosines, start=1):
        yield f"pattern {i}: correlation {zero:.2f} with the mean 0, {one:.2f} with the mean 1"
