"""What all methods are given: rows in common axes and units, without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contrica.errors import collected
from contrica.estimators._background import GroupLabels
from contrica.moments.projection import axes_of, n_axes, project_rows
from contrica.moments.symmetric import fix_signs
from contrica.rows.dataset import Dataset, check_same_variables, read_datasets
from contrica.rows.memory import memory_budget
from contrica.rows.units import scales_of
from contrica.validation import warn_delicate

__all__ = ["CommonRows"]

GAPS = "Set `missing=impute` to fill them, or leave those rows or variables out."


@dataclass(frozen=True)
class CommonRows:
    """What all methods are given: rows in common axes and units, without gaps.

    ``rows`` are those of both datasets in the axes ``basis``, or all variables where it is ``None``;
    ``warnings`` are what methods that are given them cannot see any more.
    """

    X: Any
    background: Any
    rows: tuple[Any, Any]
    basis: np.ndarray | None
    mean: np.ndarray
    names: np.ndarray | None
    scale_: np.ndarray | None
    scale: str
    missing: str
    groups: dict[str, Any]
    warnings: list[Any]

    @classmethod
    def of(
        cls,
        X: Any,
        background: Any,
        n_pcs: Any,
        scale: str,
        missing: str,
        groups: GroupLabels | None,
    ) -> CommonRows:
        datasets = [Dataset(X, "X"), Dataset(background, "background")]
        check_same_variables(datasets)
        labels = dict(groups.of_each(1)) if groups else {}
        for part, (name, own) in zip(datasets, labels.items(), strict=bool(labels)):
            part.group(own, name)
        read_datasets(datasets, fill=missing == "impute", remedy=GAPS)
        fore = datasets[0]
        with collected() as warned:
            warn_delicate(
                fore.summary, datasets[1].summary, fore.names, n_axes(n_pcs, fore.n_features)
            )
        mean, scales = fore.summary.mean, scales_of(scale, [part.summary for part in datasets])
        for part, own in zip(datasets, scales or (), strict=scales is not None):
            part.divide(own)
        basis = axes_of(
            [part.rows for part in datasets],
            [part.summary for part in datasets],
            n_pcs,
            memory_budget(),
            own_means=scale == "each",
        )
        # as they are, where nothing was done to them: they know their names
        rows: Any = (X, background)
        is_same = basis is None and scales is None
        is_same &= all(part.observed is None for part in datasets)
        if basis is not None:
            rows = tuple(project_rows(part.rows, basis) for part in datasets)
        elif not is_same:
            rows = tuple(part.rows for part in datasets)
        return cls(
            *(X, background, rows, basis, mean, fore.names),
            None if scales is None else scales[0],
            *(scale, missing, labels, [] if is_same else warned),
        )

    @property
    def n_dimensions(self) -> int:
        """In which all methods work."""
        return self.mean.size if self.basis is None else self.basis.shape[1]

    def fit(self, model: Any, *, reads: bool) -> tuple[np.ndarray, np.ndarray]:
        """Fit a model, and score the rows of both datasets.

        Parameters
        ----------
        model : estimator
        reads : bool
            Whether it reads the rows as they were given, and is told what to do with them.

        Returns
        -------
        scores, background_scores : ndarray of shape (n_rows, n_components)
        """
        if reads:
            model.set_params(
                basis=self.basis, n_pcs=None, scale=self.scale, missing=self.missing
            ).fit(self.X, background=self.background, **self.groups)
            return model.transform(self.X), model.transform(self.background)
        model.fit(self.rows[0], background=self.rows[1])
        scores = [model.transform(rows) for rows in self.rows]
        signs = self._lift(model)
        return scores[0] * signs, scores[1] * signs

    def _lift(self, model: Any) -> np.ndarray:
        """Let a model that was fitted in the common axes be one over the variables; its signs."""
        if self.rows[0] is self.X:
            return np.ones(len(model.components_))
        basis = np.eye(self.mean.size) if self.basis is None else self.basis
        found = basis @ model.components_.T
        lifted = fix_signs(found)
        signs = np.where(np.sum(found * lifted, axis=0) < 0, -1.0, 1.0)
        model.components_, model.mean_, model.scale_ = lifted.T, self.mean, self.scale_
        if hasattr(model, "loadings_"):
            model.loadings_ = basis @ model.loadings_ * signs
        if hasattr(model, "sweep_components_"):
            frames = basis @ model.sweep_components_.transpose(0, 2, 1)
            model.sweep_components_ = np.stack([fix_signs(each).T for each in frames])
        if hasattr(model, "basis_"):
            model.basis_ = self.basis
        model.n_features_in_ = self.mean.size
        if self.names is not None and all(isinstance(name, str) for name in self.names):
            model.feature_names_in_ = self.names
        return signs
