"""What the estimators share: checking, projecting, storing, transforming."""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from contrica.blocks import ColumnSummary, Rows, as_rows, column_summary, rows_times
from contrica.contrast import contrast_ratio
from contrica.cumulants import Cumulants, cumulants
from contrica.decompositions import Decomposition, htd
from contrica.eigen import few_threads
from contrica.estimators._background import Background
from contrica.operators import relative_norm
from contrica.projection import CUMULANTS, common_basis, estimate_of_rows, project_rows
from contrica.ranks import Ranks, choose_ranks
from contrica.symmetric import fix_signs, n_packed
from contrica.validation import (
    DelicateDataWarning,
    PatternWarning,
    check_choice,
    check_count,
    check_covariance_rank,
    check_dataset,
    check_finite,
    check_n_rows,
    check_rank,
    check_same_features,
    check_scale,
    check_variation,
    warn_delicate,
    warn_user,
)

__all__ = [
    "BaseContrastive",
    "ContrastTransformer",
    "CovarianceTransformer",
    "Separation",
    "ratio_name",
]

logger = logging.getLogger("contrica")


def ratio_name(model: Any) -> str:
    """What a fitted model's contrast ratios are: "k(f)", along filters, in a contrast subspace."""
    return "k(f)" if getattr(model, "solver_", "") == "subspace" else "k(b)"


class Separation(NamedTuple):
    """What an algorithm hands back to the estimator, in projected coordinates."""

    foreground: Decomposition
    ratio: np.ndarray
    residual: float
    n_iter: int
    # whether the data are sure of a pattern, and its score, where that was asked; doubtful ones come last
    sure: np.ndarray | None = None
    scores: np.ndarray | None = None

    def order(self) -> np.ndarray:
        """Patterns by decreasing contrast ratio; NaN, no background, leaves the order by weight."""
        by_ratio = np.argsort(-self.ratio, kind="stable")
        if self.sure is None:
            return by_ratio
        return by_ratio[np.argsort(~self.sure[by_ratio], kind="stable")]


class ContrastTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Checks, fit, transform and inverse transform around any method that finds components."""

    n_components: int | None
    # What the method does without a background; None where it needs none, and so warns of nothing.
    _alone: ClassVar[str | None] = "plain ICA"
    # Whether it takes several backgrounds.
    _several: ClassVar[bool] = False

    @abstractmethod
    def _fit(self, X: np.ndarray | Rows, backgrounds: list[np.ndarray | Rows]) -> None:
        """Learn ``components_``, ``contrast_ratio_`` and what is the method's own."""

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Self:
        """Find the patterns of ``X`` that ``background`` does not have.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Foreground; a data frame's column names are kept and compared.
        y : Ignored
            Present for scikit-learn's convention.
        background : array-like of shape (n_background_samples, n_features), list of such, or Background
            Background, over the same variables in the same order; several where the method takes
            them, each of which has the shared patterns with weights of its own. Without one, nothing is
            contrasted: the method's case of one dataset is run, with a warning where it is meant
            for two. In cross-validation wrap it as ``Background(Y)``, or a background
            with as many rows as ``X`` is cut along with it; in a `Pipeline`, earlier steps transform
            it only if built with ``transform_input=["background"]`` and metadata routing enabled.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        X, backgrounds = self._check_data(X, background)
        shape: tuple[int, ...] = getattr(y, "shape", ())
        if len(shape) == 2 and shape[1] == X.shape[1] > 1:
            warn_user(
                f"the second argument, of shape {tuple(shape)}, was ignored. If it is the background, "
                "pass fit(X, background=...).",
                DelicateDataWarning,
            )
        self._fit(X, backgrounds)
        return self

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            check_count("n_components", self.n_components)

    def _check_data(
        self, X: Any, background: Any
    ) -> tuple[np.ndarray | Rows, list[np.ndarray | Rows]]:
        names = _column_names(X)
        X, summary = self._checked(X, "X")
        if isinstance(background, Background):
            background = background.data
        backgrounds = self._backgrounds(background)
        if not backgrounds and self._alone is not None:
            warn_user(
                f"no background was given, so nothing is contrasted: this is {self._alone} of X. "
                "Pass fit(X, background=...).",
                DelicateDataWarning,
            )
        checked: list[np.ndarray | Rows] = []
        summaries: list[ColumnSummary] = []
        for name, part in backgrounds.items():
            columns = _column_names(part)
            rows, summary_of_part = self._checked(part, name, reset=False)
            check_same_features(names, columns, X.shape[1], rows.shape[1], other=name)
            checked.append(rows)
            summaries.append(summary_of_part)
        if checked:
            self._check_dimensions(X.shape[1])
        check_variation({"X": summary} | dict(zip(backgrounds, summaries, strict=True)))
        warn_delicate(summary, summaries[0] if summaries else None, names)
        self.mean_ = summary.mean
        return X, checked

    def _checked(
        self, data: Any, name: str, *, reset: bool = True
    ) -> tuple[np.ndarray | Rows, ColumnSummary]:
        """Rows of finite numbers, as an array where that is what came, and their summary."""
        rows = as_rows(data, name)
        check_dataset(rows, name)
        if isinstance(rows, Rows):
            check_n_rows(len(rows), 2, name)
            if reset:
                self._remember(rows.shape[1], _column_names(data))
            summary = column_summary(rows)
            check_finite(summary, name)
            return rows, summary
        if reset:
            rows = validate_data(self, rows, dtype=np.float64, ensure_min_samples=2)
        else:
            rows = check_array(rows, dtype=np.float64, ensure_min_samples=2, input_name=name)
        return rows, column_summary(rows)

    def _remember(self, n_features: int, names: np.ndarray | None) -> None:
        """What scikit-learn keeps of the variables, for containers that it does not know."""
        self.n_features_in_ = n_features
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _backgrounds(self, background: Any) -> dict[str, Any]:
        """Backgrounds by the name that errors call them: none, one or several."""
        if background is None:
            return {}
        listed = isinstance(background, list | tuple)
        if listed and len(background) == 0:
            raise ValueError(
                "background is an empty list. Pass rows, or a list of several datasets."
            )
        tables = [len(getattr(part, "shape", ())) == 2 for part in background] if listed else []
        if not any(tables):
            return {"background": background}
        if not all(tables):
            wrong = tables.index(False)
            raise ValueError(
                f"background[{wrong}] has shape {np.shape(background[wrong])}, but each of several "
                "backgrounds must be a table of rows by variables."
            )
        if not self._several and len(background) > 1:
            raise ValueError(
                f"{len(background)} backgrounds came, but {type(self).__name__} takes one. Stack them, "
                'or use ContrastiveICA with solver "auto", "joint" or "subspace".'
            )
        return {f"background[{i}]": part for i, part in enumerate(background)}

    def _check_dimensions(self, n_features: int) -> None:
        n_pcs = getattr(self, "n_pcs", None)
        if self._alone is not None and (n_features < 2 or n_pcs == 1):
            working_in = f" and n_pcs={n_pcs!r}" if hasattr(self, "n_pcs") else ""
            raise ValueError(
                f"X and background have {n_features} feature(s){working_in}, but a contrast needs at "
                "least 2 dimensions: with one there is only one direction."
            )

    @property
    def _axes(self) -> np.ndarray:
        """What `transform` multiplies by, as rows."""
        return self.components_

    def transform(self, X: Any) -> np.ndarray:
        """Scores of the rows of ``X``: ``(X − mean_) @ components_.T``, or with the method's own axes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Foreground, background or new rows alike.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows = as_rows(X)
        if isinstance(rows, Rows):
            known = getattr(self, "feature_names_in_", None)
            names = _column_names(X)
            check_same_features(
                known, names, self.n_features_in_, rows.shape[1], name="what was fitted", other="X"
            )
            return rows_times(rows, self._axes.T) - self.mean_ @ self._axes.T
        rows = validate_data(self, rows, dtype=np.float64, reset=False)
        return (rows - self.mean_) @ self._axes.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows with the given scores, nearest to ``mean_``.

        The least-squares inverse of `transform`: scoring the result again gives the scores back,
        as long as the components are linearly independent.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64, input_name="scores")
        if scores.shape[1] != len(self.components_):
            raise ValueError(
                f"scores of shape {scores.shape} came, but there are {len(self.components_)} "
                "components: pass what transform returned, (n_samples, n_components)."
            )
        return self.mean_ + scores @ np.linalg.pinv(self._axes).T

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class CovarianceTransformer(ContrastTransformer):
    """A method that reads its components from the covariances of both datasets alone."""

    _alone: ClassVar[str | None] = "plain PCA"
    # Covariances divide by n − ddof, as the method was published.
    _ddof: ClassVar[int] = 1

    @abstractmethod
    def _directions(
        self, foreground: np.ndarray, background: np.ndarray | None, n_components: int
    ) -> np.ndarray:
        """Columns from the two covariances; also stores what is the method's own."""

    def _fit(self, X: np.ndarray | Rows, backgrounds: list[np.ndarray | Rows]) -> None:
        p = X.shape[1]
        wanted = p if self.n_components is None else self.n_components
        if wanted > p:
            warn_user(
                f"n_components={wanted} components were asked for, but {p} variable(s) have no more "
                f"than {p}: that many are returned.",
                PatternWarning,
            )
        # matrix-free: nothing of fourth order is computed
        fore, *others = (cumulants(rows, storage="matrix-free") for rows in (X, *backgrounds))
        back = others[0] if others else None
        vectors = self._directions(
            self._covariance(fore), None if back is None else self._covariance(back), min(wanted, p)
        )
        self.components_ = fix_signs(vectors / np.linalg.norm(vectors, axis=0)).T
        self.contrast_ratio_ = (
            np.full(len(self.components_), np.nan)
            if back is None
            else contrast_ratio(self.components_.T, fore, back)
        )

    def _covariance(self, data: Cumulants) -> np.ndarray:
        return data.covariance * (data.n_samples / (data.n_samples - self._ddof))


class BaseContrastive(ContrastTransformer):
    """Fit around an algorithm that separates two fourth cumulants."""

    n_background: int | None
    n_foreground: int | None
    n_pcs: int | str | None
    cumulant: str
    deflation: str
    projection: str
    max_iter: int
    tol: float
    random_state: Any

    @abstractmethod
    def _separate(self, fore: Cumulants, back: Cumulants, ranks: Ranks) -> Separation:
        """Run the algorithm on both cumulants and store what is its own."""

    def _lift(self, vectors: np.ndarray) -> np.ndarray:
        """Columns in projected coordinates to rows over the variables."""
        return (vectors if self.basis_ is None else self.basis_ @ vectors).T

    def _lift_patterns(self, vectors: np.ndarray) -> np.ndarray:
        """As `_lift`, the largest entry over the variables positive."""
        return fix_signs(self._lift(vectors).T).T

    def _fit(self, X: np.ndarray | Rows, backgrounds: list[np.ndarray | Rows]) -> None:
        datasets = [X, *backgrounds]
        self.basis_ = common_basis(datasets, self.n_pcs)
        logger.info("cumulants of %s rows", " and ".join(str(len(part)) for part in datasets))
        estimate: Any = self.cumulant
        rows = [project_rows(part, self.basis_, estimate) for part in datasets]
        fore, *backs = (cumulants(part, estimate_of_rows(estimate)) for part in rows)
        self.n_pcs_ = fore.n_features
        for back, part in zip(backs, rows[1:], strict=True):
            still = int(np.sum(np.ptp(part, axis=0) == 0)) if self.basis_ is None else 0
            spectrum = np.linalg.eigvalsh(back.covariance)
            check_covariance_rank(spectrum, back.n_samples, still, "background")
        with few_threads(fore.n_features):
            found = self._solve(fore, backs, rows) if backs else self._plain_ica(fore)
        self._store(fore, found)

    def _solve(self, fore: Cumulants, backs: list[Cumulants], rows: list[np.ndarray]) -> Separation:
        """Choose ranks and separate; ``rows`` are those behind the cumulants, the foreground's first."""
        return self._separate(fore, backs[0], self._choose_ranks(fore, backs[0]))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("cumulant", self.cumulant, CUMULANTS)
        check_choice("projection", self.projection, ("pattern", "filter"))
        check_count("max_iter", self.max_iter)
        check_scale("tol", self.tol)

    def _given_ranks(self, n_features: int) -> tuple[int | None, int | None]:
        """R and ℓ as the user gave them."""
        r, l = (  # noqa: E741 - the paper's ℓ
            None if value is None else check_rank(value, n_features, name)
            for name, value in (
                ("n_background", self.n_background),
                ("n_foreground", self.n_foreground),
            )
        )
        return r, l

    def _choose_ranks(self, fore: Cumulants, back: Cumulants | None) -> Ranks:
        logger.info("choosing ranks")
        r, l = self._given_ranks(fore.n_features)  # noqa: E741
        ranks = choose_ranks(fore, back, l, r)
        self.n_background_, self.n_foreground_ = ranks
        logger.info("separating patterns, r = %d and l = %d", *ranks)
        return ranks if ranks.n_foreground > 0 else self._nothing_found(ranks, fore.n_features)

    def _nothing_found(self, ranks: Ranks, n_features: int) -> Ranks:
        """Warn, and look for what was asked for all the same."""
        warn_user(
            "nothing in the foreground's fourth cumulant stands out from the background's "
            "(n_foreground_ = 0). The strongest candidates are returned all the same; treat them as "
            "noise, or set n_foreground.",
            PatternWarning,
        )
        room = n_packed(n_features) - ranks.n_background
        return ranks._replace(n_foreground=max(min(self.n_components or n_features, room), 1))

    def _plain_ica(self, fore: Cumulants) -> Separation:
        found = htd(fore.fourth, self._choose_ranks(fore, None).n_foreground)
        self.background_components_ = np.empty((0, self.n_features_in_))
        self.background_weights_ = self.shared_weights_ = np.empty(0)
        residual = relative_norm(fore.fourth - found.tensor(), fore.fourth)
        return Separation(found, np.full(found.weights.size, np.nan), residual, 1)

    def _more_patterns(self, found: int) -> str:
        """What to do to get more patterns than were found."""
        if self.n_foreground is None or found >= self.n_pcs_:
            return "Lower n_components."
        return "Raise n_foreground."

    def _store(self, fore: Cumulants, found: Separation) -> None:
        count = found.ratio.size
        wanted = count if self.n_components is None else self.n_components
        if wanted > count:
            warn_user(
                f"n_components={wanted} patterns were asked for, but n_foreground={count} were "
                f"sought: that many are returned. {self._more_patterns(count)}",
                PatternWarning,
            )
        keep = found.order()[:wanted]
        vectors = found.foreground.vectors[:, keep]
        self.components_ = self._lift_patterns(vectors)
        filters = self._lift(_filters(vectors, fore.covariance))
        # a filter has a positive product with its pattern, whatever the pattern's sign
        gains = np.einsum("kp,kp->k", filters, self.components_)
        self.filters_ = filters * np.where(gains < 0, -1.0, 1.0)[:, None]
        self.contrast_ratio_ = found.ratio[keep]
        self.foreground_weights_ = found.foreground.weights[keep]
        self.residual_ = found.residual
        # the other solvers subtract nothing from this tensor as it stands
        if found.residual > 1 and getattr(self, "solver_", "paper") == "paper":
            warn_user(
                f"the patterns leave more of the foreground's fourth cumulant than there was (residual_ "
                f"= {found.residual:.3g}): what was subtracted for the background was not there. Do not "
                'trust this fit; lower n_background, or use deflation="least_squares".',
                PatternWarning,
            )
        self.n_iter_ = max(found.n_iter, 1)

    @property
    def _axes(self) -> np.ndarray:
        return self.components_ if self.projection == "pattern" else self.filters_


def _filters(vectors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """``Σ⁺b / (bᵀΣ⁺b)``: unit gain on b, least variance from everything else."""
    inverse = np.linalg.pinv(covariance, hermitian=True)
    solved = inverse @ vectors
    gains = np.einsum("ik,ik->k", vectors, solved)
    # A pattern along which the foreground does not vary has no filter but itself.
    return np.where(gains > 0, solved / np.where(gains > 0, gains, 1.0), vectors)


def _column_names(data: Any) -> np.ndarray | None:
    columns = getattr(data, "columns", None)
    return None if columns is None or len(columns) == 0 else np.asarray(columns, dtype=object)
