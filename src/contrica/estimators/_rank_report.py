"""How many patterns there are: data pass the border of a fit, and the rules of all solvers count."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrica.errors import DataError
from contrica.estimators._background import GroupLabels, group_labels
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.moments.estimates import Storage
from contrica.rows.threads import few_threads
from contrica.solvers.rank_report import RankReport

__all__ = ["report_ranks"]


class _Counted(ContrastiveICA):
    """A default fit as far as its border, behind which eigenvalues of all fourth cumulants are needed."""

    def _background_storage(self, n_features: int, n_datasets: int) -> Storage:
        return "auto"

    def count(
        self, X: Any, background: Any, labels: GroupLabels | None, rng: np.random.Generator
    ) -> RankReport:
        self._check_parameters()
        with self._at_work():
            problem = self._read(X, None, background, labels)
        with few_threads(problem.n_features):
            return RankReport.of(problem, self._request, rng=rng)


def report_ranks(
    X: Any,
    background: Any,
    *,
    rng: np.random.Generator,
    n_pcs: int | str | None = "auto",
    cumulant: str = "plugin",
    scale: str = "none",
    memory_limit: Any = None,
    missing: str = "error",
    groups: Any = None,
    background_groups: Any = None,
) -> RankReport:
    """The ranks r and ℓ by eigenvalues, significance and contrast ratio, and which of them a fit uses.

    A fit with these parameters is run as well: what is said of it is what `ContrastiveICA` does.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Foreground, in any container that `ContrastiveICA` takes and that can be read again.
    background : array-like of shape (n_background_samples, n_features), list of such, or Background
    rng : numpy.random.Generator
        Source of the random starts.
    n_pcs, cumulant, scale, memory_limit, missing
        As of `contrica.ContrastiveICA`.
    groups, background_groups : array-like of shape (n_rows,), lists of such for several backgrounds
        As of its ``fit``: which rows belong together. Nothing is then counted by significance.

    Returns
    -------
    RankReport

    Examples
    --------
    >>> import numpy as np
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(6, random_state=0)
    >>> report = report_ranks(data.foreground, data.background, rng=np.random.default_rng(0))
    >>> report.significant.n_background, report.significant.n_foreground, report.contrast.chosen
    (6, 5, 5)
    >>> report.solver, report.rule
    ('joint', 'significance')
    """
    if background is None:
        raise DataError(
            "no-background",
            "`background` is None",
            "patterns are counted against one",
            "Pass the rows of one.",
            "background",
        )
    labels = group_labels(background, groups, background_groups)
    model = _Counted(
        n_pcs=n_pcs, cumulant=cumulant, scale=scale, memory_limit=memory_limit, missing=missing
    )
    return model.count(X, background, labels, rng)
