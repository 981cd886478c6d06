"""The experiments of the paper, each with the paper's own numbers beside ours.

One module per experiment, each a function ``run(run) -> list of Row``; `reproduce` runs them by name.
"""

from contrica.experiments._report import Result, Row, markdown
from contrica.experiments._runner import EXPERIMENTS, Experiment, Run, reproduce

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Result",
    "Row",
    "Run",
    "markdown",
    "reproduce",
]
