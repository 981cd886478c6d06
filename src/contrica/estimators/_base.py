"""What estimators of fourth cumulants share: from rows to a problem, from its solution to state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from contrica.errors import (
    DataError,
    GroupsError,
    GroupWarning,
    IterationError,
    PatternWarning,
    warn,
)
from contrica.estimators._background import Background, GroupLabels, group_labels
from contrica.estimators._missing import (
    check_missing,
    check_pairwise_budget,
    factors_of,
    from_observed,
    missing_counts,
)
from contrica.estimators._scoring import ScoringContrastive
from contrica.estimators._sums import (
    add_blocks,
    check_scalable,
    check_summable,
    check_sums,
    from_sums,
    gaps_refused,
    sums_of,
)
from contrica.estimators._transformer import ContrastTransformer, documented, unchanged_on_error
from contrica.moments.estimates import Cumulants, Storage
from contrica.moments.projection import CUMULANTS, check_n_pcs, n_axes
from contrica.moments.spectra import symmetric_values, varies_everywhere
from contrica.moments.streaming import DataSums
from contrica.moments.symmetric import fix_signs
from contrica.moments.working import Workplace
from contrica.rows.dataset import Dataset
from contrica.rows.groups import Groups
from contrica.rows.memory import memory_budget
from contrica.rows.moving import card, check_device, work_on
from contrica.rows.repeats import hint_at_groups
from contrica.rows.summary import ColumnSummary
from contrica.rows.threads import few_threads, one_pool
from contrica.rows.units import (
    SCALES,
    background_deviations,
    divided_summary,
    scales_of,
    warn_of_units,
)
from contrica.solvers.filters import choose_shrinkage, shrunk
from contrica.solvers.group_shares import rank_by_groups
from contrica.solvers.problem import Problem, Request, Separation
from contrica.solvers.ratio import contrast_ratio, filters_of, source_ratio
from contrica.solvers.rescaling import Rescaling
from contrica.validation import (
    check_choice,
    check_count,
    check_covariance_rank,
    check_scale,
    check_seed,
    generator,
)

__all__ = ["BaseContrastive"]

# What `partial_fit` keeps from call to call.
_SUMS = ("foreground_sums_", "background_sums_")
_ONLY_ADDED = (
    "Rows were added to this %(name)s instance, but it is not fitted yet. Call 'fit_sums' to work the "
    "patterns out."
)


class BaseContrastive(ScoringContrastive):
    """Fit around a solver of two fourth cumulants."""

    _counts_by_itself: ClassVar[bool] = True
    _gap_remedy: ClassVar[str] = (
        "Set `missing=impute` to fill the gaps by what all datasets have in common, or leave those rows "
        "or variables out."
    )
    n_background: int | None
    n_foreground: int | None
    n_pcs: int | str | None
    cumulant: str
    deflation: str
    projection: str | None
    scale: str
    max_iter: int | None
    tol: float
    random_state: Any
    basis: Any
    memory_limit: Any
    device: str | None
    dtype: str
    missing: str
    # while a fit goes on
    _workplace: Workplace

    @abstractmethod
    def _separate(self, problem: Problem, rng: np.random.Generator) -> Separation:
        """Call the solver, and store what is the method's own."""

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
        self._warn_of_no_effect()
        labels = group_labels(background, groups, background_groups)
        background = background.data if isinstance(background, Background) else background
        with self._at_work(), unchanged_on_error(self):
            rng = generator(self.random_state)
            summed = any(isinstance(part, Iterator | DataSums) for part in (X, background))
            if summed and labels is not None:
                _raise_groups_of_sums()
            problem = self._sum(X, background) if summed else self._read(X, y, background, labels)
            self._solve(problem, rng)
        return self

    def _solve(self, problem: Problem, rng: np.random.Generator) -> None:
        """Work the patterns out from a problem, and store them."""
        # a problem that was read before may be solved again
        with one_pool():
            with few_threads(problem.n_features), work_on(problem.device):
                found = self._separate(problem, rng)
                if problem.is_grouped:
                    found = rank_by_groups(problem, found)
            self._store(problem, found)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        if isinstance(X, Iterator | DataSums):
            what = "sums, in which no row is left"
            if isinstance(X, Iterator):
                what = "an iterator, which can be read once: nothing would be left"
            raise IterationError(
                "read-once",
                f"`X` is {what} to transform",
                remedy="Give what can be read again from its beginning, contrica.rows.Blocks of a list "
                "or of a function, or call fit, and then transform of other rows.",
                parameter="X",
            )
        return super().fit_transform(X, y, **fit_params)

    fit_transform.__doc__ = ContrastTransformer.fit_transform.__doc__

    # --- parameters ---

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("n_background", "n_foreground"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_n_pcs(self.n_pcs)
        check_choice("cumulant", self.cumulant, CUMULANTS)
        if self.projection is not None:
            check_choice("projection", self.projection, ("pattern", "filter"))
        check_choice("scale", self.scale, SCALES)
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_missing(self.missing, self.cumulant)
        if self.memory_limit is not None:
            memory_budget(self.memory_limit)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        check_scale("tol", self.tol)
        check_device(self.device)
        check_seed(self.random_state)

    def _warn_of_no_effect(self) -> None:
        """Warn of parameters that do nothing beside the others."""

    def _check_width(self, n_features: int, *, contrasted: bool) -> None:
        super()._check_width(n_features, contrasted=contrasted)
        self._request.ranks(self._workplace.max_dimensions(n_features))
        self._check_budget(self._workplace.dimensions(n_features) or 0, 0)
        if self.missing == "pairwise":
            check_pairwise_budget(n_features, self._workplace.budget)

    def _check_budget(self, n_dimensions: int, n_rows: int) -> None:
        """Refuse what will not fit the memory, before any of it is computed."""
        self._workplace.check_budget(n_dimensions, n_rows)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """One workplace for all of a fit, so that it has one memory budget."""
        estimate: Any = self.cumulant
        self._workplace = Workplace(
            *(self.n_pcs, self.basis, estimate, self.memory_limit, self.device, self.dtype),
            own_means=self.scale == "each",
        )
        try:
            with work_on(self.device):
                yield
        finally:
            del self._workplace

    def _place(self, datasets: Sequence[Dataset]) -> None:
        self._workplace.check_places(datasets)
        # gaps are filled where rows are on the host
        if not self._fills_gaps:
            self._workplace.read_there(datasets)

    @property
    def _request(self) -> Request:
        return Request(
            self._n_wanted,
            self.n_background,
            self.n_foreground,
            self.deflation,
            self.max_iter,
            self.tol,
        )

    # --- rows ---

    def _read(self, X: Any, y: Any, background: Any, labels: GroupLabels | None = None) -> Problem:
        """The problem from rows that can be read again: one pass, one for PCA, one for cumulants."""
        datasets, workplace = self._open(X, y, background, labels), self._workplace
        scales = self._learn_scales([part.summary for part in datasets])
        for part, own in zip(datasets, scales or (), strict=scales is not None):
            part.divide(own)
        n_features, n_rows = datasets[0].n_features, sum(map(len, datasets))
        self._check_budget(workplace.dimensions(n_features) or 0, n_rows)
        workplace.move(datasets)
        basis = workplace.axes(datasets)
        dimensions = n_features if basis is None else basis.shape[1]
        self._check_budget(dimensions, n_rows)
        storage = self._background_storage(dimensions, len(datasets))
        taken = workplace.take(
            datasets,
            basis,
            storage=storage,
            n_groups=[self._n_row_groups(len(part), dimensions) for part in datasets],
        )
        self.n_missing_ = missing_counts(datasets)
        # what is certain to be a contrast subspace asks for no fourth cumulants of the background
        asked = self._fills_gaps and storage == "auto" and self.cumulant == "plugin"
        if asked or self.missing == "pairwise":
            taken = from_observed(
                *(datasets, basis, taken, self.missing, workplace.budget),
                own_means=workplace.own_means,
            )
        self._remember_gaps(datasets[0].summary, basis, taken.cumulants[0].covariance)
        if labels is None and len(datasets) > 1:
            _hint_at_groups(datasets, taken.rows)
        summaries = [part.summary for part in datasets]
        self.background_deviations_ = background_deviations(summaries[1:])
        rescaling = self._rescaling(basis, summaries, taken.cumulants)
        return self._problem(basis, *taken, rescaling=rescaling)

    def _learn_scales(self, summaries: Sequence[ColumnSummary]) -> list[np.ndarray] | None:
        """What the variables of every dataset are divided by, from the pass that was made anyway."""
        scales = scales_of(self.scale, summaries)
        self.scale_ = None if scales is None else scales[0]
        own = self.scale == "each" and len(summaries) > 1
        self.background_spreads_ = np.array(scales[1:]) if own and scales is not None else None
        return scales

    def _rescaling(
        self,
        basis: np.ndarray | None,
        summaries: Sequence[ColumnSummary],
        cumulants: Sequence[Cumulants],
    ) -> Rescaling | None:
        """What divides permuted rows anew, from summaries after the first division."""
        if self.scale == "none":
            return None
        energy = np.sum([part.energy for part in summaries], axis=0)
        variances = energy / sum(part.n_rows for part in summaries)
        return Rescaling.of(self.scale, basis, variances, cumulants)

    def _check_summaries(
        self, summaries: dict[str, ColumnSummary], names: np.ndarray | None
    ) -> None:
        super()._check_summaries(summaries, names)
        if self.scale == "none":
            width = next(iter(summaries.values())).mean.size
            as_they_are = self.basis is None and n_axes(self.n_pcs, width) is None
            warn_of_units(list(summaries.values()), names, few=as_they_are)

    def _remember_gaps(
        self, summary: ColumnSummary, basis: np.ndarray | None, covariance: np.ndarray
    ) -> None:
        """What `transform` will predict missing values by, where it is to; in the variables' units."""
        self.gap_loadings_, self.gap_noise_ = None, None
        if self._fills_gaps:
            loadings, noise = factors_of(covariance, basis, summary.energy / summary.n_rows)
            units = np.ones(noise.size) if self.scale_ is None else self.scale_
            self.gap_loadings_, self.gap_noise_ = loadings * units[:, None], noise * units**2

    def _background_storage(self, n_features: int, n_datasets: int) -> Storage:
        """How to store the fourth cumulants of backgrounds."""
        return "auto"

    def _n_row_groups(self, n_rows: int, n_features: int) -> int:
        """Groups of rows whose moments the solver will ask for."""
        return 0

    def _problem(
        self,
        basis: np.ndarray | None,
        cumulants: Sequence[Cumulants],
        rows: Sequence[np.ndarray],
        grouped: Sequence[Any],
        groups: Sequence[Groups | None] = (),
        tensors: Sequence[Any] = (),
        *,
        rescaling: Rescaling | None = None,
    ) -> Problem:
        fore, *backs = cumulants
        self.basis_, self.n_pcs_, self.n_samples_ = basis, fore.n_features, fore.n_samples
        self.n_rows_sampled_ = tuple(len(part) for part in rows)
        for back, part in zip(backs, rows[1:], strict=True):
            if varies_everywhere(back.covariance, back.n_samples):
                continue
            still = int(np.sum(np.ptp(part, axis=0) == 0)) if basis is None else 0
            spectrum = symmetric_values(back.covariance)
            check_covariance_rank(spectrum, back.n_samples, still, "background")
        return Problem(
            *(fore, tuple(backs), tuple(rows), tuple(grouped), tuple(groups)),
            rescaling=rescaling,
            room=self._workplace.room(fore.n_features),
            tensors=tuple(tensors),
            device=card(),
        )

    # --- sums ---

    def _sum(self, X: Any, background: Any) -> Problem:
        """The problem from sums over rows, or from rows that are read once and summed here."""
        iterated = isinstance(background, Iterator | DataSums)
        if len(self._backgrounds(None if iterated else background)) > 1:
            raise DataError(
                "several-backgrounds",
                "several backgrounds were given with rows that can be read once, which are summed beside "
                "one background only",
                remedy="Stack them, or give what can be read again.",
                parameter="background",
            )
        workplace = self._workplace
        check_summable(workplace)
        check_scalable(self.scale, self.basis)
        given = {"X": X} | ({} if background is None else {"background": background})
        with gaps_refused(self._fills_gaps):
            parts = sums_of(given, workplace, partial(self._check_width, contrasted=len(given) > 1))
        if "background" not in parts or parts["background"].n_samples == 0:
            parts = {"X": parts["X"]}
            self._warn_alone()
        check_sums(parts)
        width = parts["X"].n_features
        self._check_width(width, contrasted=len(parts) > 1)
        columns = next((part.columns for part in parts.values() if part.columns), None)
        names = None if columns is None else np.array(columns, dtype=object)
        self._remember(width, names)
        check_scalable(self.scale, parts["X"].basis)
        summaries = {name: part.summary() for name, part in parts.items()}
        self._check_summaries(summaries, names)
        self.n_missing_ = np.zeros((len(parts), width), dtype=np.int64)
        scales = self._learn_scales(list(summaries.values()))
        summed = from_sums(list(parts.values()), workplace, scales)
        found = list(summaries.values())
        if scales is not None:
            found = [divided_summary(*pair) for pair in zip(found, scales, strict=True)]
        self._remember_gaps(found[0], summed.basis, summed.cumulants[0].covariance)
        self.background_deviations_ = background_deviations(found[1:])
        rescaling = self._rescaling(summed.basis, found, summed.cumulants)
        return self._problem(*summed, [None] * len(parts), rescaling=rescaling)

    def partial_fit(self, X: Any = None, y: Any = None, *, background: Any = None) -> Self:
        """Add blocks of rows, each of which is read once; `fit_sums` then works the patterns out.

        Blocks are added both or, if one is refused, neither. ``foreground_sums_`` and
        ``background_sums_`` are what was added; they can be saved at any time, merged with others, and
        passed here, or to `fit`, in place of rows. Patterns of an earlier fit are given up, and after
        a `fit` sums start anew.

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
        if isinstance(background, Background):
            background = background.data
        if not isinstance(background, DataSums) and len(self._backgrounds(background)) > 1:
            raise DataError(
                "several-backgrounds",
                "several backgrounds were given",
                "partial_fit takes one",
                "Stack them, or use fit.",
                "background",
            )
        # copies, which share what they hold until rows are added
        sums: list[DataSums] = [copy(vars(self)[name]) for name in _SUMS if name in vars(self)]
        if not sums:
            sums = [DataSums(basis=self.basis, memory_limit=self.memory_limit) for _ in _SUMS]
        name = type(self).__name__
        with self._at_work(), unchanged_on_error(self), gaps_refused(self._fills_gaps):
            check_summable(self._workplace)
            check_scalable(self.scale, self.basis)
            add_blocks(sums, (X, background), ("X", "background"), self._workplace, name)
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)
            self.foreground_sums_, self.background_sums_ = sums
            for part in sums:
                if part.n_features:
                    self.n_features_in_ = part.n_features
                if part.columns:
                    self.feature_names_in_ = np.array(part.columns, dtype=object)
        return self

    def fit_sums(self) -> Self:
        """Work the patterns out from all rows that `partial_fit` has added; more can be added later.

        Returns
        -------
        self : object
        """
        sums = {name: vars(self).get(name) for name in _SUMS}
        if sums["foreground_sums_"] is None:
            raise DataError(
                "no-sums",
                "no rows were added",
                remedy="Call partial_fit(X, background=...) first, or fit(X, background=...).",
            )
        with unchanged_on_error(self):
            self.fit(sums["foreground_sums_"], background=sums["background_sums_"])
            for name, part in sums.items():
                setattr(self, name, part)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "components_" in vars(self)

    def _check_fitted(self) -> None:
        added = any(name in vars(self) for name in _SUMS)
        check_is_fitted(self, msg=_ONLY_ADDED if added else None)

    # --- what was learnt ---

    def _store(self, problem: Problem, found: Separation) -> None:
        for name in _SUMS:  # of an earlier partial_fit
            if name in vars(self):
                delattr(self, name)
        keep = found.order()[: self._n_kept(found)]
        vectors = found.foreground.vectors[:, keep]
        self.filter_shrinkage_ = _filter_shrinkage(problem, found, vectors)
        filters = filters_of(vectors, shrunk(problem.fore.covariance, self.filter_shrinkage_))
        self.components_ = self._lift_patterns(vectors)
        self.filters_ = self._lift(filters)
        # a filter has a positive product with its pattern, whatever the pattern's sign
        gains = np.einsum("kp,kp->k", self.filters_, self.components_)
        self.filters_ *= np.where(gains < 0, -1.0, 1.0)[:, None]
        self.source_deviations_ = np.sqrt(
            np.einsum("pk,pq,qk->k", filters, problem.fore.covariance, filters, optimize=True)
        )
        self.ranked_by_ = found.ranked_by
        self.contrast_ratio_, self.source_ratio_ = self._ratios(
            problem, vectors, filters, found.ratio[keep]
        )
        self.foreground_weights_ = found.foreground.weights[keep]
        self.n_background_, self.n_foreground_ = found.ranks
        self.background_components_ = self._lift_patterns(found.background.vectors)
        self.background_weights_ = found.background.weights
        self.shared_weights_ = found.shared_weights
        self.residual_ = found.residual
        self.n_iter_ = max(found.n_iter, 1)
        self.scree_ = found.scree
        self.projection_ = self.projection or self._default_projection(found)
        self._store_groups(problem, found, keep)

    def _store_groups(self, problem: Problem, found: Separation, keep: np.ndarray) -> None:
        self.groups_, self.group_share_, self.robust_ratio_ = None, None, None
        self.paired_groups_: np.ndarray | None = None
        if found.shares is None or found.robust_ratio is None:
            return
        shares = found.shares.take(keep)
        self.groups_ = np.array(shares.names, dtype=object)
        self.group_share_, self.robust_ratio_ = shares.shares, found.robust_ratio[keep]
        design = problem.design
        paired = [design.groups.names[i] for i, _ in design.pairs]
        self.paired_groups_ = np.array(paired, dtype=object)
        for i in np.flatnonzero(shares.of_few):
            first = self.groups_[int(np.argmax(shares.shares[i]))]
            warn(
                GroupWarning(
                    "few-groups",
                    f"pattern {i + 1} is carried by one or two of {len(shares.names)} groups: "
                    f"{shares.shares[i].max():.0%} of it is in {first}",
                    remedy="Others may not have it; fit without them and compare.",
                    parameter="groups",
                )
            )

    def _default_projection(self, found: Separation) -> str:
        """What `transform` multiplies by where that is not given."""
        return "pattern"

    @property
    def _n_wanted(self) -> int | None:
        """Patterns that the user asks for; ``None`` where the data are to tell."""
        if self.n_components is None:
            return None
        return 2 if self.n_components == "auto" else int(self.n_components)

    def _n_standing_out(self, found: Separation) -> int:
        """Patterns that ``n_components="auto"`` keeps."""
        alone = bool(np.isnan(found.ratio).all())
        return 2 if alone else max(found.ranks.n_foreground, 1)

    def _n_kept(self, found: Separation) -> int:
        count, wanted = found.ratio.size, self._n_wanted
        if wanted is None:
            return count if self.n_components is None else min(self._n_standing_out(found), count)
        if wanted > count:
            more = "Lower" if self.n_foreground is None or count >= self.n_pcs_ else "Raise"
            name = "n_components" if more == "Lower" else "n_foreground"
            warn(
                PatternWarning(
                    "fewer-patterns",
                    f"`n_components={wanted}` patterns were asked for, but only {count} can be returned",
                    remedy=f"{more} `{name}`.",
                    parameter=name,
                )
            )
        return wanted

    def _ratios(
        self, problem: Problem, vectors: np.ndarray, filters: np.ndarray, ranked: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """k(b) and k(f), one of which the patterns were ranked by."""
        if not problem.backs:
            return ranked, ranked.copy()
        if self.ranked_by_ == "source_ratio":
            return contrast_ratio(vectors, problem.fore, problem.back, quiet=True), ranked
        return ranked, source_ratio(filters, problem.fore, problem.back, quiet=True)

    def _lift(self, vectors: np.ndarray) -> np.ndarray:
        """Columns in projected coordinates to rows over the variables."""
        return (vectors if self.basis_ is None else self.basis_ @ vectors).T

    def _lift_patterns(self, vectors: np.ndarray) -> np.ndarray:
        """As `_lift`, the largest entry over the variables positive."""
        return fix_signs(self._lift(vectors).T).T


def _filter_shrinkage(problem: Problem, found: Separation, vectors: np.ndarray) -> float:
    """By which share of the covariances filters do without, where rows are few."""
    rows = problem.rows[0] if problem.backs else None
    # a sample is of many rows; and sources are ranked as the filters of the subspace have them
    if rows is None or len(rows) < problem.fore.n_samples or found.ranked_by == "source_ratio":
        return 0.0
    return choose_shrinkage(rows, vectors, problem.groups[0] if problem.groups else None)


def _hint_at_groups(datasets: Sequence[Dataset], rows: Sequence[np.ndarray]) -> None:
    """Ask once whether rows belong together, of the first dataset that looks so."""
    for part, own in zip(datasets, rows, strict=True):
        if hint_at_groups(own, part.row_names, part.name):
            return


def _raise_groups_of_sums() -> None:
    raise GroupsError(
        "groups-of-sums",
        "`groups` was given with sums, or with rows that can be read once",
        "groups need rows that can be read again",
        "Leave `groups` out, or give contrica.rows.Blocks of a list or of a function.",
        "groups",
    )
