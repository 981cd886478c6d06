"""What all estimators share: the border, where data are checked once, and scores of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from contrica.errors import DataError, DelicateDataWarning, ParameterError, PatternWarning, warn
from contrica.estimators._background import Background, GroupLabels
from contrica.estimators._notebook import NotebookRepr
from contrica.estimators._saving import save_model
from contrica.moments.estimates import Cumulants
from contrica.moments.fourth import cumulants
from contrica.moments.projection import n_axes
from contrica.moments.symmetric import fix_signs
from contrica.rows.containers import as_rows
from contrica.rows.dataset import Dataset, check_same_variables, names_of, read_datasets
from contrica.rows.device import has_gaps, is_tensor, like, tensor_times
from contrica.rows.observed import gaps_error
from contrica.rows.products import in_memory, rows_times
from contrica.rows.protocol import Rows
from contrica.rows.streams import is_stream
from contrica.rows.summary import ColumnSummary
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import (
    DROP_GAPS,
    check_count,
    check_names,
    check_numbers,
    check_same_features,
    check_variation,
    in_words,
    warn_delicate,
)

__all__ = [
    "ContrastTransformer",
    "CovarianceTransformer",
    "Covariances",
    "changed_parameters",
    "documented",
    "unchanged_on_error",
]

Fit = TypeVar("Fit", bound=Callable[..., Any])

FIT_DOCUMENTATION = """Find the patterns of ``X`` that ``background`` does not have.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Foreground; a data frame's column names are kept and compared. Of the methods that rest on
            fourth cumulants also an iterator of blocks of rows, or `contrica.moments.DataSums`.
        y : Ignored
            Present for scikit-learn's convention.
        background : array-like of shape (n_background_samples, n_features), list of such, or Background
            Background, over the same variables in the same order; several where the method takes
            them, each of which has the shared patterns with weights of its own. Without one, nothing is
            contrasted: the method's case of one dataset is run, with a warning where it is meant
            for two. In cross-validation wrap it as ``Background(Y)``, or a background
            with as many rows as ``X`` is cut along with it; in a `Pipeline`, earlier steps transform
            it only if built with ``transform_input=["background"]`` and metadata routing enabled.
        groups, background_groups : array-like of shape (n_rows,), lists of such for several backgrounds
            Which rows belong together, such as those of one animal or donor: names or numbers. What is
            said of chance then counts groups. A group of both datasets is *paired*. In cross-validation
            give those of the background as ``Background(Y, groups=...)``. Of the methods that rest on
            cumulants only.

        Returns
        -------
        self : object
        """


def documented(fit: Fit) -> Fit:
    """Give a ``fit`` the documentation that all of them share, and leave its type as it is."""
    fit.__doc__ = FIT_DOCUMENTATION
    return fit


@contextmanager
def unchanged_on_error(model: Any) -> Iterator[None]:
    """Leave a model as it was if what is done to it fails or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def changed_parameters(model: Any, names: Sequence[str]) -> list[str]:
    """Those of some parameters that are not at their defaults.

    Parameters
    ----------
    model : an estimator
    names : sequence of str

    Returns
    -------
    list of str
    """
    defaults = signature(type(model)).parameters
    return [name for name in names if getattr(model, name) != defaults[name].default]


def _is_table(part: Any) -> bool:
    """Whether one of a list is a dataset of its own, and not a row."""
    return is_stream(part) or len(getattr(part, "shape", ())) == 2


class ContrastTransformer(
    NotebookRepr, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Checks, fit, transform and inverse transform around any method that finds components."""

    n_components: Any
    # What the method does without a background; None where it needs none, and so warns of nothing.
    _alone: ClassVar[str | None] = "plain ICA"
    # Whether it takes several backgrounds.
    _several: ClassVar[bool] = False
    # Whether n_components="auto" is known.
    _counts_by_itself: ClassVar[bool] = False
    # Parameters that do nothing without a background.
    _of_contrast: ClassVar[tuple[str, ...]] = ()
    # What to do about missing values.
    _gap_remedy: ClassVar[str] = DROP_GAPS

    @property
    def _fills_gaps(self) -> bool:
        """Whether missing values are let pass."""
        return False

    def _check_parameters(self) -> None:
        named = isinstance(self.n_components, str) and self.n_components == "auto"
        auto = self._counts_by_itself and named
        if self.n_components is not None and not auto:
            check_count("n_components", self.n_components)

    def _check_width(self, n_features: int, *, contrasted: bool) -> None:
        """Refuse parameters that do not go with so many variables; no row was read."""
        n_pcs = getattr(self, "n_pcs", None)
        if contrasted and self._alone is not None and (n_features < 2 or n_pcs == 1):
            working_in = f" and `n_pcs={n_pcs}`" if hasattr(self, "n_pcs") else ""
            raise DataError(
                "one-direction",
                f"`X` and background have {n_features} feature(s){working_in}",
                "a contrast needs at least 2 dimensions: with one there is only one direction",
            )

    def _open(
        self, X: Any, y: Any, background: Any, labels: GroupLabels | None = None
    ) -> list[Dataset]:
        """The border: containers, widths and names, parameters against them, and then one pass."""
        foreground = Dataset(X, "X")
        others = [Dataset(data, name) for name, data in self._backgrounds(background).items()]
        datasets = [foreground, *others]
        check_same_variables(datasets)
        self._check_width(foreground.n_features, contrasted=bool(others))
        self._place(datasets)
        read_datasets(datasets, fill=self._fills_gaps, remedy=self._gap_remedy)
        if labels is not None:
            for part, (name, own) in zip(datasets, labels.of_each(len(others)), strict=True):
                part.group(own, name)
        if isinstance(foreground.rows, Rows):
            self._remember(foreground.n_features, foreground.names)
        else:
            validate_data(self, X, skip_check_array=True)
        self._warn_of_second_argument(y, foreground.n_features)
        if not others:
            self._warn_alone()
        self._check_summaries({part.name: part.summary for part in datasets}, foreground.names)
        return datasets

    def _place(self, datasets: Sequence[Dataset]) -> None:
        """Where datasets are read, and what does not go together there is refused."""

    def _check_summaries(
        self, summaries: dict[str, ColumnSummary], names: np.ndarray | None
    ) -> None:
        """Refuse, or warn of, what the ranges of the variables show; the mean is kept."""
        check_variation(summaries)
        first, *others = summaries.values()
        warn_delicate(
            first, others[0] if others else None, names, self._n_worked_in(first.low.size)
        )
        self.mean_ = first.mean

    def _n_worked_in(self, n_features: int) -> int | None:
        """Dimensions at most, of estimators that work in principal axes; ``None`` for all variables."""
        basis: Any = getattr(self, "basis", None)
        if np.ndim(basis) == 2:
            return int(np.shape(basis)[1])
        return n_axes(getattr(self, "n_pcs", None), n_features)

    def _warn_of_second_argument(self, y: Any, n_features: int) -> None:
        shape: tuple[int, ...] = getattr(y, "shape", ())
        if len(shape) == 2 and shape[1] == n_features > 1:
            warn(
                DelicateDataWarning(
                    "second-argument",
                    f"the second argument, of shape {tuple(shape)}, was ignored",
                    remedy="If it is the background, pass fit(X, background=...).",
                    parameter="background",
                )
            )

    def _warn_alone(self) -> None:
        if self._alone is not None:
            ignored = ", ".join(f"`{name}`" for name in changed_parameters(self, self._of_contrast))
            without = f", and {ignored} had no effect" if ignored else ""
            warn(
                DelicateDataWarning(
                    "no-background",
                    f"no background was given, so nothing is contrasted: this is {self._alone} of "
                    f"`X`{without}",
                    remedy="Pass fit(X, background=...).",
                    parameter="background",
                )
            )

    def _remember(self, n_features: int, names: np.ndarray | None) -> None:
        """What scikit-learn keeps of the variables, for containers that it does not know."""
        self.n_features_in_ = n_features
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _backgrounds(self, background: Any) -> dict[str, Any]:
        """Backgrounds by the name that errors call them: none, one or several."""
        if isinstance(background, Background):
            background = background.data
        if background is None:
            return {}
        listed = isinstance(background, list | tuple)
        if listed and len(background) == 0:
            raise DataError(
                "empty",
                "background is an empty list",
                remedy="Pass rows, or a list of several datasets.",
                parameter="background",
            )
        tables = [_is_table(part) for part in background] if listed else []
        if not any(tables):
            return {"background": background}
        self._check_list(background, tables)
        return {f"background[{i}]": part for i, part in enumerate(background)}

    def _check_list(self, background: Sequence[Any], tables: Sequence[bool]) -> None:
        if not all(tables):
            wrong = tables.index(False)
            raise DataError(
                "not-a-table",
                f"background[{wrong}] has shape {np.shape(background[wrong])}",
                "each of several backgrounds must be a table of rows by variables",
                parameter=f"background[{wrong}]",
            )
        if not self._several and len(background) > 1:
            raise DataError(
                "several-backgrounds",
                f"{len(background)} backgrounds were given",
                f"{type(self).__name__} takes one",
                'Stack them, or use ContrastiveICA with solver "auto", "joint" or "subspace".',
                "background",
            )

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    @property
    def _axes(self) -> np.ndarray:
        """What `transform` multiplies by, as rows."""
        return self.components_

    @property
    def _projector(self) -> np.ndarray:
        """What `transform` multiplies rows by as they come, as rows: the axes in the variables' units."""
        scale = vars(self).get("scale_")
        return self._axes if scale is None else self._axes / scale

    @property
    def original_components_(self) -> np.ndarray:
        """The patterns in the units of the variables: what one unit of a score adds to each of them."""
        self._check_fitted()
        scale = vars(self).get("scale_")
        return self.components_ if scale is None else self.components_ * scale

    def _check_scored(self, rows: Any) -> None:
        """Warn of rows that are not what the model takes them for."""

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
        self._check_fitted()
        rows = as_rows(X, "X")
        if not isinstance(rows, Rows):
            check_numbers(rows, "X")
            check_names(names_of(X), "X")
            with in_words("X", X):
                rows = validate_data(
                    self, rows, dtype=np.float64, reset=False, ensure_all_finite=False
                )
            if not np.isfinite(rows).all():
                return self._scores_of_observed(rows)
            self._check_scored(rows)
            return (rows - self.mean_) @ self._projector.T
        are_read = rows.is_counted
        self._check_features(X, rows, are_read=are_read)
        self._check_scored(rows)
        offset = self.mean_ @ self._projector.T
        if is_tensor(X):
            found = tensor_times(X, self._projector.T, offset)
            return like(found, self._scores_of_observed(rows)) if has_gaps(found) else found
        scores = rows_times(rows, self._projector.T) - offset
        if not are_read:  # later blocks may have had names
            self._check_features(X, rows, are_read=True)
        return scores if np.isfinite(scores).all() else self._scores_of_observed(rows)

    def _scores_of_observed(self, rows: np.ndarray | Rows) -> np.ndarray:
        """Scores of rows with gaps; refused, by the variables, where the method has none."""
        names = getattr(self, "feature_names_in_", None)
        raise gaps_error(rows, "X", names, self._gap_remedy)

    def _check_features(self, X: Any, rows: Rows, *, are_read: bool) -> None:
        """Refuse rows over other variables than those fitted."""
        names = names_of(X)
        check_same_features(
            getattr(self, "feature_names_in_", None),
            names_of(rows) if names is None else names,
            self.n_features_in_,
            rows.n_columns,
            name="what was fitted",
            other="X",
            warns=are_read,
        )

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
        rows = self._checked_scores(X) @ np.linalg.pinv(self._axes).T
        scale = vars(self).get("scale_")
        return np.asarray(self.mean_ + (rows if scale is None else rows * scale))

    def _checked_scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        with in_words("X"):
            scores: np.ndarray = check_array(X, dtype=np.float64, input_name="scores")
        if scores.shape[1] != len(self.components_):
            raise DataError(
                "scores-shape",
                f"the scores have shape {scores.shape}",
                f"there are {len(self.components_)} components",
                "Pass what transform returned, (n_samples, n_components).",
                "X",
            )
        return scores

    def save(self, path: str | Path) -> None:
        """Save the fitted model as an npz file with checksums, for `contrica.load`; no pickle.

        A ``random_state`` that is a generator, not a number, is not kept, nor are the sums of
        `partial_fit`, which `contrica.moments.DataSums.save` saves.

        Parameters
        ----------
        path : path
            Written under a temporary name and then renamed.
        """
        save_model(self, path)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class Covariances(NamedTuple):
    """Covariances of both datasets: over the variables or, of fewer rows, in the span of these.

    Attributes
    ----------
    foreground : ndarray of shape (k, k)
    background : ndarray of shape (k, k) or None
    axes : ndarray of shape (n_features, k) or None
        Orthonormal columns that all centred rows are combinations of, and as many more as there are
        components wanted, along which nothing varies; ``None`` for the variables themselves.
    n_features : int
        Variables.
    """

    foreground: np.ndarray
    background: np.ndarray | None
    axes: np.ndarray | None
    n_features: int

    def lift(self, vectors: np.ndarray) -> np.ndarray:
        """Columns in these coordinates as columns over the variables."""
        return vectors if self.axes is None else np.asarray(self.axes @ vectors)

    @property
    def rounding(self) -> float:
        """Relative to the largest eigenvalue, what a variance that is none may come to."""
        return float(self.n_features * np.finfo(float).eps)


class CovarianceTransformer(ContrastTransformer):
    """A method that reads its components from the covariances of both datasets alone."""

    _alone: ClassVar[str | None] = "plain PCA"
    # Covariances divide by n − ddof, as the method was published.
    _ddof: ClassVar[int] = 1

    @abstractmethod
    def _directions(self, given: Covariances, n_components: int) -> np.ndarray:
        """Columns in the coordinates of the covariances; also stores what is the method's own."""

    @documented
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        background_groups: Any = None,
    ) -> Self:
        self._check_parameters()
        if (
            groups is not None
            or background_groups is not None
            or getattr(background, "groups", None) is not None
        ):
            raise ParameterError(
                "no-groups",
                "`groups` was given",
                f"{type(self).__name__} takes rows as independent",
                "Leave it out, or use ContrastiveICA.",
                "groups",
            )
        with unchanged_on_error(self):
            self._fit(self._open(X, y, background))
        return self

    def _fit(self, datasets: Sequence[Dataset]) -> None:
        """Find the components from the covariances, and store them."""
        p = datasets[0].n_features
        wanted = p if self.n_components is None else int(self.n_components)
        if wanted > p:
            warn(
                PatternWarning(
                    "fewer-components",
                    f"`n_components={wanted}` components were asked for, but {p} variable(s) have no "
                    f"more than {p}: that many are returned",
                    parameter="n_components",
                )
            )
        axes, fore, back = _moments(datasets, min(wanted, p))
        background = None if back is None else self._covariance(back)
        given = Covariances(self._covariance(fore), background, axes, p)
        vectors = self._directions(given, min(wanted, p))
        vectors = vectors / np.linalg.norm(vectors, axis=0)
        self.components_ = fix_signs(given.lift(vectors)).T
        self.contrast_ratio_ = (
            np.full(len(self.components_), np.nan)
            if back is None
            else contrast_ratio(vectors, fore, back, n_features=p)
        )
        self._finish(fore, back)

    def _finish(self, fore: Cumulants, back: Cumulants | None) -> None:
        """Store what also needs the numbers of rows."""

    def _covariance(self, data: Cumulants) -> np.ndarray:
        return data.covariance * (data.n_samples / (data.n_samples - self._ddof))


def _moments(
    datasets: Sequence[Dataset], n_components: int
) -> tuple[np.ndarray | None, Cumulants, Cumulants | None]:
    """Means and covariances, and the axes they are in: those of the rows' span, where rows are few."""
    axes, rows = None, [part.rows for part in datasets]
    n_rows, p = sum(map(len, datasets)), datasets[0].n_features
    if n_rows + n_components < p:
        centred = [in_memory(part.rows) - part.summary.mean for part in datasets]
        beside = np.random.default_rng(0).standard_normal((p, n_components))
        axes, coordinates = np.linalg.qr(np.hstack([*(part.T for part in centred), beside]))
        ends = np.cumsum([len(part) for part in datasets])
        rows = [coordinates[:, start:end].T for start, end in zip([0, *ends], ends, strict=False)]
    # matrix-free: nothing of fourth order is computed
    fore, *others = (cumulants(part, storage="matrix-free") for part in rows)
    return axes, fore, others[0] if others else None
