"""What the estimators share: checking, projecting, storing, transforming."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from contrica.decompositions import Decomposition, htd
from contrica.estimators._background import Background
from contrica.moments.fourth import Cumulants, Storage, cumulants, packed_bytes
from contrica.moments.operators import PackedTensor, relative_norm
from contrica.moments.projection import (
    CUMULANTS,
    basis_of_cumulants,
    common_basis,
    estimate_of_rows,
    project_rows,
    survey,
)
from contrica.moments.streaming import CheckedRows, DataSums
from contrica.moments.symmetric import fix_signs, n_packed
from contrica.rows.blocks import (
    ColumnSummary,
    Rows,
    as_rows,
    column_summary,
    is_tensor,
    on_device,
    projected,
    rows_times,
    tensor_times,
)
from contrica.rows.memory import check_memory, memory_budget
from contrica.rows.threads import few_threads
from contrica.solvers.ranks import Ranks, choose_ranks
from contrica.solvers.ratio import contrast_ratio
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
    check_scores,
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

# Of more rows than this, and more entries than this, 128 MB of them, a random sample is held to choose
# ranks and to rotate sources. In memory, they are held so many times over.
MANY_ROWS, MOST_HELD, HELD_COPIES, FEWEST_HELD = 100_000, 2**24, 10, 2000
# Matrices of as many rows and columns as there are dimensions that a fit holds, and copies of the rows
# that winsorizing them takes.
MATRIX_COPIES, ROBUST_COPIES = 12, 6
# What `partial_fit` keeps from call to call.
_SUMS = ("foreground_sums_", "background_sums_")
_OF_SUMS = (*_SUMS, "n_features_in_", "feature_names_in_")


def ratio_name(model: Any) -> str:
    """What a fitted model's contrast ratios are: "k(f)", along filters, in a contrast subspace."""
    return "k(f)" if getattr(model, "solver_", "") == "subspace" else "k(b)"


class Separation(NamedTuple):
    """What an algorithm hands back to the estimator, in projected coordinates."""

    foreground: Decomposition
    ratio: np.ndarray
    residual: float
    n_iter: int
    # whether a pattern is significant, and its t-value, where that was asked; others come last
    significant: np.ndarray | None = None
    t_values: np.ndarray | None = None

    def order(self) -> np.ndarray:
        """Patterns by decreasing contrast ratio; NaN, no background, leaves the order by weight."""
        by_ratio = np.argsort(-self.ratio, kind="stable")
        if self.significant is None:
            return by_ratio
        return by_ratio[np.argsort(~self.significant[by_ratio], kind="stable")]


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
        X, names = _named_rows(X, "X")
        X, summary = self._checked(X, "X", names)
        if isinstance(background, Background):
            background = background.data
        backgrounds = self._backgrounds(background)
        if not backgrounds and self._alone is not None:
            self._warn_alone()
        checked: list[np.ndarray | Rows] = []
        summaries: list[ColumnSummary] = []
        for name, part in backgrounds.items():
            part, columns = _named_rows(part, name)
            rows, summary_of_part = self._checked(part, name, None, reset=False)
            check_same_features(names, columns, X.shape[1], rows.shape[1], other=name)
            checked.append(rows)
            summaries.append(summary_of_part)
        if checked:
            self._check_dimensions(X.shape[1])
        check_variation({"X": summary} | dict(zip(backgrounds, summaries, strict=True)))
        warn_delicate(summary, summaries[0] if summaries else None, names)
        self.mean_ = summary.mean
        return X, checked

    def _warn_alone(self) -> None:
        warn_user(
            f"no background was given, so nothing is contrasted: this is {self._alone} of X. "
            "Pass fit(X, background=...).",
            DelicateDataWarning,
        )

    def _checked(
        self, data: Any, name: str, names: np.ndarray | None, *, reset: bool = True
    ) -> tuple[np.ndarray | Rows, ColumnSummary]:
        """Rows of finite numbers, as an array where that is what came, and their summary."""
        rows = as_rows(data, name)
        check_dataset(rows, name)
        if isinstance(rows, Rows):
            check_n_rows(len(rows), 2, name)
            if reset:
                self._remember(rows.shape[1], names)
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
            A tensor on the same device for a tensor of torch or cupy.
        """
        check_is_fitted(self)
        rows, names = _named_rows(X, "X")
        if isinstance(rows, Rows):
            known = getattr(self, "feature_names_in_", None)
            check_same_features(
                known, names, self.n_features_in_, rows.shape[1], name="what was fitted", other="X"
            )
            offset = self.mean_ @ self._axes.T
            if is_tensor(X):
                return tensor_times(X, self._axes.T, offset)
            scores = rows_times(rows, self._axes.T) - offset
            check_scores(scores)
            return scores
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
    basis: Any
    foreground_sums_: DataSums
    background_sums_: DataSums
    memory_limit: Any
    device: str | None
    dtype: str

    @abstractmethod
    def _separate(self, fore: Cumulants, back: Cumulants, ranks: Ranks) -> Separation:
        """Run the algorithm on both cumulants and store what is its own."""

    def _lift(self, vectors: np.ndarray) -> np.ndarray:
        """Columns in projected coordinates to rows over the variables."""
        return (vectors if self.basis_ is None else self.basis_ @ vectors).T

    def _lift_patterns(self, vectors: np.ndarray) -> np.ndarray:
        """As `_lift`, the largest entry over the variables positive."""
        return fix_signs(self._lift(vectors).T).T

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Self:
        if isinstance(X, DataSums) or isinstance(background, DataSums):
            raise TypeError(
                "sums of rows came, but fit takes rows. Pass them to partial_fit(X, background=...)."
            )
        # sums of an earlier partial_fit are given up for a fit that succeeds only
        earlier = {name: vars(self)[name] for name in _SUMS if name in vars(self)}
        for name in earlier:
            delattr(self, name)
        try:
            if isinstance(X, Iterator) or isinstance(background, Iterator):
                return self._fit_stream(X, background)
            return super().fit(X, y, background=background)
        except BaseException:
            for name, sums in earlier.items():
                setattr(self, name, sums)
            raise

    fit.__doc__ = ContrastTransformer.fit.__doc__

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        if isinstance(X, Iterator):
            raise ValueError(
                "X is an iterator, which can be read once: after fit nothing would be left to transform. "
                "Give what can be read again from its beginning, contrica.rows.Blocks of a list or "
                "of a function, or call fit, and then transform of other rows."
            )
        return super().fit_transform(X, y, **fit_params)

    fit_transform.__doc__ = ContrastTransformer.fit_transform.__doc__

    def _fit(self, X: np.ndarray | Rows, backgrounds: list[np.ndarray | Rows]) -> None:
        budget = memory_budget(self.memory_limit)
        datasets = [on_device(part, self.device) for part in (X, *backgrounds)]
        self.basis_ = self._given_basis(X.shape[1])
        if isinstance(self.n_pcs, Integral):  # known before anything is read
            known = min(int(self.n_pcs), *datasets[0].shape)
            self._foresee(known, sum(map(len, datasets)), budget)
        if self.basis_ is None:
            self.basis_ = common_basis(datasets, self.n_pcs, memory_limit=budget)
        n_rows = [len(part) for part in datasets]
        k = X.shape[1] if self.basis_ is None else self.basis_.shape[1]
        self._foresee(k, sum(n_rows), budget)
        logger.info("cumulants of %s rows", " and ".join(map(str, n_rows)))
        estimate: Any = self.cumulant
        most = max(MOST_HELD // k, MANY_ROWS)
        if self.memory_limit is not None:  # free memory by itself decides nothing
            most = max(min(most, budget // (8 * HELD_COPIES * k)), FEWEST_HELD)
        taken = estimate_of_rows(estimate)
        others = self._background_storage(k, len(datasets))
        storages: list[Storage] = ["auto", *[others] * (len(datasets) - 1)]
        seen: Sequence[np.ndarray | Rows]
        origin = self.mean_ if self.basis_ is None else self.mean_ @ self.basis_
        if sum(n_rows) <= most or estimate == "robust":
            rows = [project_rows(part, self.basis_, estimate) for part in datasets]
            seen = [on_device(part, self.device, self.dtype, origin) for part in rows]
            found = [
                cumulants(part, taken, storage=storage, memory_limit=budget)
                for part, storage in zip(seen, storages, strict=True)
            ]
            whole: Sequence[np.ndarray | Rows] = rows
        else:
            whole = [projected(part, self.basis_) for part in datasets]
            seen = [on_device(part, None, self.dtype, origin) for part in whole]
            shares = [max(most * n // sum(n_rows), 2) for n in n_rows]
            logger.info("looking at a sample of %s rows", " and ".join(map(str, shares)))
            # what is read anew for every pass is written out: that takes one
            surveyed = [
                survey(
                    *(part, taken, share),
                    storage=storage if isinstance(data, np.ndarray) or data.at_hand else "auto",
                    memory_limit=budget,
                )
                for data, part, share, storage in zip(datasets, seen, shares, storages, strict=True)
            ]
            found, rows = (list(each) for each in zip(*surveyed, strict=True))
        if self.dtype == "float32":  # rows were rounded about the origin
            for i, part in enumerate(seen):
                if part is not whole[i]:
                    found[i] = replace(found[i], mean=found[i].mean + origin)
                    if rows is not whole:
                        rows[i] = rows[i] + origin
        self._fit_cumulants(found, rows, seen)

    def _background_storage(self, n_features: int, n_datasets: int) -> Storage:
        """How to hold the fourth cumulants of backgrounds."""
        return "auto"

    def _fit_cumulants(
        self, found: list[Cumulants], rows: list[np.ndarray], seen: Sequence[np.ndarray | Rows]
    ) -> None:
        """The fit from the cumulants of all datasets, all or some of their rows, and all of them."""
        fore, *backs = found
        self.n_pcs_ = fore.n_features
        self.n_samples_ = fore.n_samples
        self.n_rows_held_ = tuple(len(part) for part in rows)
        for back, part in zip(backs, rows[1:], strict=True):
            still = int(np.sum(np.ptp(part, axis=0) == 0)) if self.basis_ is None else 0
            spectrum = np.linalg.eigvalsh(back.covariance)
            check_covariance_rank(spectrum, back.n_samples, still, "background")
        with few_threads(fore.n_features):
            separated = self._solve(fore, backs, rows, seen) if backs else self._plain_ica(fore)
        self._store(fore, separated)

    def _given_basis(self, n_features: int) -> np.ndarray | None:
        if self.basis is None:
            return None
        basis = check_array(self.basis, dtype=np.float64, input_name="basis")
        if len(basis) != n_features or basis.shape[1] > n_features:
            raise ValueError(
                f"basis has shape {basis.shape}, but rows have {n_features} variables: it needs a row "
                "for each of them and a column for each axis."
            )
        self._check_axes(basis)
        if np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() > 1e-6:
            raise ValueError(
                "the columns of basis are not orthonormal. Pass numpy.linalg.qr(basis)[0], or principal "
                "axes as common_basis returns them."
            )
        return basis

    def _check_axes(self, basis: np.ndarray) -> None:
        if isinstance(self.n_pcs, Integral) and self.n_pcs != basis.shape[1]:
            raise ValueError(
                f"n_pcs={self.n_pcs}, but basis has {basis.shape[1]} axes to work in. Leave n_pcs out."
            )

    def _foresee(self, k: int, n_rows: int, budget: int) -> None:
        """Refuse what will not fit, before any of it is computed."""
        check_memory(
            MATRIX_COPIES * 8 * k**2,
            budget,
            f"working in {k} dimensions",
            "Lower n_pcs, or raise memory_limit.",
        )
        if self.deflation.startswith("sequential") and getattr(self, "solver", "paper") == "paper":
            check_memory(
                packed_bytes(k),
                budget,
                f'deflation="{self.deflation}", which writes the fourth cumulant of {k} variables out,',
                'Use deflation="thin", lower n_pcs, or raise memory_limit.',
            )
        if self.cumulant == "robust":
            check_memory(
                ROBUST_COPIES * 8 * k * n_rows,
                budget,
                f'cumulant="robust", which holds all {n_rows} rows in {k} dimensions,',
                'Use cumulant="plugin", lower n_pcs, or raise memory_limit.',
            )

    # --- rows that come in blocks ---

    def partial_fit(self, X: Any = None, y: Any = None, *, background: Any = None) -> Self:
        """Add blocks of rows, each of which is read once; the patterns are worked out when asked for.

        After a `fit` it starts anew. Blocks are added both or, if one is refused, neither. Any attribute
        of the fit, such as ``components_``, and `transform` work the patterns out from all
        rows so far. `foreground_sums_` and `background_sums_` hold what was added; they can be saved at
        any time, merged with others, and passed here in place of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), DataSums or None
            Rows of the foreground, in any container that `fit` takes.
        y : Ignored
            Present for scikit-learn's convention.
        background : array-like of shape (n_background_rows, n_features), DataSums or None
            Rows of the background, of which there is one.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        if self.cumulant == "robust":
            raise ValueError(
                'cumulant="robust" looks at all rows several times, which partial_fit cannot. Use '
                'cumulant="plugin", or fit.'
            )
        if isinstance(background, Background):
            background = background.data
        fresh = "foreground_sums_" not in vars(self)
        sums = (
            [DataSums(basis=self.basis, memory_limit=self.memory_limit) for _ in range(2)]
            if fresh
            else [self.foreground_sums_, self.background_sums_]
        )
        names = None if fresh else vars(self).get("feature_names_in_")
        given = None if isinstance(background, DataSums) else background
        if len(self._backgrounds(given)) > 1:
            raise ValueError(
                "several backgrounds came, but partial_fit takes one. Stack them, or use fit."
            )
        width = sums[0].n_features or sums[1].n_features
        # all is looked at before any of it is added
        adding: list[tuple[DataSums, DataSums | CheckedRows]] = []
        for own, part, name in zip(sums, (X, background), ("X", "background"), strict=True):
            if part is None:
                continue
            names = self._compare_names(part, name, names)
            came = _width(part, name)
            if width and came and came != width:
                raise ValueError(
                    f"{name} has {came} features, but {type(self).__name__} is expecting {width} "
                    "features as input, as earlier rows had."
                )
            width = came or width
            checked = self._checked_block(own, part, name)
            adding.append((own, checked))
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.foreground_sums_, self.background_sums_ = sums
        if width:
            self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = names
        for own, checked in adding:
            if isinstance(checked, DataSums):
                own.merge(checked)
            else:
                own.add(checked)
        return self

    def _checked_block(self, own: DataSums, part: Any, name: str) -> DataSums | CheckedRows:
        """What `partial_fit` can add."""
        if isinstance(part, DataSums):
            own.check_merge(part)
            return part
        rows = as_rows(part, name)
        if isinstance(rows, np.ndarray | Rows) and getattr(rows, "ndim", 2) == 2:
            if self.dtype == "float32":
                raise ValueError(
                    'dtype="float32" needs the mean of all rows before the first is rounded, which '
                    'partial_fit does not know. Use dtype="float64", or fit.'
                )
            rows = on_device(rows, self.device)
        checked = own.check(rows, name)
        self._given_basis(checked.rows.shape[1])
        return checked

    def _compare_names(self, part: Any, name: str, known: np.ndarray | None) -> np.ndarray | None:
        """Names of the variables, of earlier rows or of these."""
        names = _column_names(part)
        if names is None or not all(isinstance(each, str) for each in names):
            return known
        if known is not None:
            check_same_features(
                known, names, len(known), len(names), name="earlier rows", other=name
            )
        return names

    def __getattr__(self, name: str) -> Any:
        # called for what is not there: what a fit learns, of sums that wait for being fitted
        waits = name.endswith("_") and not name.startswith("_") and name not in _OF_SUMS
        if not waits or "components_" in vars(self) or not self._can_fit_sums():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._fit_sums()
        return object.__getattribute__(self, name)

    def _can_fit_sums(self) -> bool:
        sums = vars(self).get("foreground_sums_")
        return sums is not None and sums.n_samples > 1

    def __sklearn_is_fitted__(self) -> bool:
        return "components_" in vars(self) or self._can_fit_sums()

    def _fit_sums(self) -> None:
        """The fit from sums: their covariances give the axes, and nothing is read again."""
        parts = {"X": self.foreground_sums_, "background": self.background_sums_}
        if self.background_sums_.n_samples == 0:
            del parts["background"]
            self._warn_alone()
        for name, sums in parts.items():
            check_n_rows(sums.n_samples, 2, name)
        summaries = {name: sums.summary() for name, sums in parts.items()}
        check_variation(summaries)
        names = vars(self).get("feature_names_in_")
        warn_delicate(summaries["X"], summaries.get("background"), names)
        estimate: Any = self.cumulant
        found = [sums.cumulants(estimate) for sums in parts.values()]
        rows = [sums.rows() for sums in parts.values()]
        p = self.foreground_sums_.n_features
        basis = self.foreground_sums_.basis
        others = [sums.basis for sums in parts.values()]
        if any(
            (basis is None) != (other is None) or not np.array_equal(basis, other)  # type: ignore[arg-type]
            for other in others
        ):
            raise ValueError(
                "the sums of foreground and background were taken in different bases. Give both the "
                "same one."
            )
        if basis is not None:
            self._check_axes(basis)
        else:
            basis = basis_of_cumulants(found, self.n_pcs)
            if basis is not None:
                found = [part.seen_in(basis) for part in found]
                rows = [part @ basis for part in rows]
        if len(parts) > 1:
            self._check_dimensions(p)
        self.basis_, self.mean_ = basis, summaries["X"].mean
        self._fit_cumulants(found, rows, rows)

    def _fit_stream(self, X: Any, background: Any) -> Self:
        """Fit iterators of blocks, which can be read once."""
        if len(self._backgrounds(None if isinstance(background, Iterator) else background)) > 1:
            raise ValueError(
                "several backgrounds came with rows that can be read once, which are summed beside one "
                "background only. Stack them, or give what can be read again."
            )
        for name, part in (("X", X), ("background", background)):
            if isinstance(part, Iterator):
                for block in part:
                    self.partial_fit(**{name: block})
            elif part is not None:
                self.partial_fit(**{name: part})
        if "foreground_sums_" not in vars(self) or self.foreground_sums_.n_samples == 0:
            raise ValueError("X has no blocks of rows.")
        self._fit_sums()
        for name in _SUMS:
            delattr(self, name)
        return self

    def _solve(
        self,
        fore: Cumulants,
        backs: list[Cumulants],
        rows: list[np.ndarray],
        seen: Sequence[np.ndarray | Rows],
    ) -> Separation:
        """Choose ranks and separate; of the rows behind the cumulants some are held, all can be seen."""
        return self._separate(fore, backs[0], self._choose_ranks(fore, backs[0]))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("cumulant", self.cumulant, CUMULANTS)
        check_choice("projection", self.projection, ("pattern", "filter"))
        check_choice("dtype", self.dtype, ("float64", "float32"))
        memory_budget(self.memory_limit)
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
        sought = l is None or (r is None and back is not None)
        if sought and not isinstance(fore.fourth, PackedTensor):
            names = "n_foreground" if back is None else "n_background and n_foreground"
            warn_user(
                f"ranks are chosen from eigenvalues of fourth cumulants in {fore.n_features} dimensions, "
                "too many to write them out, and such eigenvalues take long to find. "
                f"Set {names}, or lower n_pcs.",
                PatternWarning,
            )
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


def _width(part: Any, name: str) -> int:
    """Variables of rows, or of sums; 0 for sums without rows."""
    if isinstance(part, DataSums):
        return part.n_features
    rows = as_rows(part, name)
    shape = rows.shape if hasattr(rows, "shape") else np.shape(rows)
    return int(shape[-1]) if len(shape) else 0


def _named_rows(data: Any, name: str) -> tuple[Any, np.ndarray | None]:
    """Rows as `as_rows` has them, and the names of their variables, of the container or of its blocks."""
    names, rows = _column_names(data), as_rows(data, name)
    return rows, _column_names(rows) if names is None else names


def _column_names(data: Any) -> np.ndarray | None:
    columns = getattr(data, "columns", None)
    return None if columns is None or len(columns) == 0 else np.asarray(columns, dtype=object)
