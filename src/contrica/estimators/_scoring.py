"""What a fitted estimator of cumulants does with rows: scores, their units, and missing values."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from contrica.errors import DelicateDataWarning, warn
from contrica.estimators._missing import describe_gaps, scores_of_observed
from contrica.estimators._transformer import ContrastTransformer
from contrica.rows.protocol import Rows
from contrica.rows.summary import column_summary
from contrica.rows.units import deviations_of

__all__ = ["ScoringContrastive"]


class ScoringContrastive(ContrastTransformer):
    """Scores of rows, and rows of scores."""

    missing: str

    @property
    def _fills_gaps(self) -> bool:
        return self.missing != "error"

    @property
    def _axes(self) -> np.ndarray:
        return self.components_ if self.projection_ == "pattern" else self.filters_

    def _source_filters(self, background: int | None = None) -> np.ndarray:
        """Filters of the sources in the variables' units, as rows; of a background, by its number."""
        scale = self.scale_
        if background is not None and self.background_spreads_ is not None:
            scale = self.background_spreads_[background]
        return self.filters_ if scale is None else self.filters_ / scale

    @property
    def mixing_(self) -> np.ndarray:
        """The patterns as columns, which scikit-learn's FastICA has under this name."""
        check_is_fitted(self)
        return self.components_.T

    @property
    def effects_(self) -> np.ndarray | None:
        """How far each variable moves with a source, in standard deviations of the background.

        ``b_v σ_s / √(σ²_v + ρ)`` for one standard deviation σ_s of the source in the foreground; ``None``
        without a background.
        """
        self._check_fitted()
        # earlier versions saved neither
        spread = vars(self).get("background_deviations_")
        sources = vars(self).get("source_deviations_")
        if spread is None or sources is None:
            return None
        return np.asarray(self.components_ * sources[:, None] / spread)

    def _check_scored(self, rows: Any) -> None:
        in_memory = isinstance(rows, np.ndarray) or rows.is_in_memory
        scale, others = self.scale_, self.background_spreads_
        if scale is None or others is None or not in_memory or not len(rows):
            return
        found = deviations_of([column_summary(rows)])
        alike = partial(np.allclose, found, rtol=1e-6, atol=0)
        if any(map(alike, others)) and not alike(scale):
            warn(
                DelicateDataWarning(
                    "background-scale",
                    "the rows to score are a background's, and are divided by the foreground's standard "
                    "deviations, where the fit divided them by their own (`scale=each`)",
                    remedy="Compare scores of both datasets with `scale=pooled`.",
                    parameter="scale",
                )
            )

    def _scores_of_observed(self, rows: np.ndarray | Rows) -> np.ndarray:
        # earlier versions did not save them
        loadings, noise = vars(self).get("gap_loadings_"), vars(self).get("gap_noise_")
        if not self._fills_gaps or loadings is None or noise is None:
            return super()._scores_of_observed(rows)
        return scores_of_observed(rows, self._projector, self.mean_, loadings, noise)

    def inverse_transform(self, X: Any) -> np.ndarray:
        scores = self._checked_scores(X)
        # where scores are sources, patterns are how they appear
        by_source = self.projection_ == "filter"
        rows = scores @ (self.components_ if by_source else np.linalg.pinv(self._axes).T)
        return np.asarray(self.mean_ + (rows if self.scale_ is None else rows * self.scale_))

    inverse_transform.__doc__ = """Rows with the given scores, in the units of the variables.

        Where scores are sources, ``mean_ + scores · original_components_``; where they are products with
        the patterns, the rows nearest to ``mean_`` that have them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """

    def report(
        self, path: str | Path, X: Any, *, background: Any, overwrite: bool = False, **options: Any
    ) -> None:
        """Write one HTML file that says what was found, to read, to look at and to print.

        Parameters
        ----------
        path : path
            Of the file. One that is there already is refused.
        X : array-like of shape (n_samples, n_features)
            Foreground.
        background : array-like of shape (n_background_samples, n_features), list of such, or Background
        overwrite : bool, default=False
            Whether a file of that name may be replaced.
        **options
            As of `contrica.report.build`: ``groups``, ``metadata``, ``names``, ``stability``,
            ``comparison``, ``image_shape`` and so on.
        """
        # a report stands outside of the estimators, and is loaded when one is asked for
        outside = import_module("contrica.report")
        outside.write(path, self, X, background=background, overwrite=overwrite, **options)

    def gap_lines(self) -> list[str]:
        """How many values were missing, and of which variable most, in words.

        Returns
        -------
        list of str
            Empty where none was.
        """
        self._check_fitted()
        found = vars(self).get("n_missing_")  # which earlier versions did not count
        if found is None or not found.any():
            return []
        return [describe_gaps(found, vars(self).get("feature_names_in_"), self.missing)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._fills_gaps
        return tags
