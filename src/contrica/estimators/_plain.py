"""PCA and ICA of the foreground alone, behind the interface of the contrastive methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from contrica.decompositions import htd
from contrica.errors import PatternWarning, warn
from contrica.estimators._transformer import (
    ContrastTransformer,
    Covariances,
    CovarianceTransformer,
    documented,
    unchanged_on_error,
)
from contrica.moments.estimates import Cumulants
from contrica.moments.leading import leading_eigenpairs
from contrica.moments.projection import (
    CUMULANTS,
    axes_of,
    check_n_pcs,
    n_axes,
    project_cumulants,
)
from contrica.moments.symmetric import fix_signs, n_packed
from contrica.rows.dataset import Dataset
from contrica.rows.memory import memory_budget
from contrica.solvers.ranks import choose_ranks
from contrica.solvers.ratio import contrast_ratio
from contrica.validation import check_choice, check_rank

__all__ = ["PlainICA", "PlainPCA"]


class PlainPCA(CovarianceTransformer):
    """Principal component analysis of the foreground; the background changes nothing.

    For comparison with the contrastive methods: the same interface, signs and contrast ratios.

    Parameters
    ----------
    n_components : int or None, default=2
        Components to keep; ``None`` keeps all.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows by decreasing variance, the largest entry of each positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the foreground along each; division by n − 1.
    contrast_ratio_ : ndarray of shape (n_components,)
        Variance along each in the foreground over that in the background; NaN without one.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had string column names.

    Examples
    --------
    >>> from contrica import PlainPCA
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(5, random_state=0)
    >>> PlainPCA(2).fit(data.foreground).components_.shape
    (2, 5)
    """

    _alone: ClassVar[str | None] = None

    def __init__(self, n_components: int | None = 2) -> None:
        self.n_components = n_components

    def _directions(self, given: Covariances, n_components: int) -> np.ndarray:
        values, vectors = leading_eigenpairs(given.foreground, n_components)
        self.explained_variance_ = np.maximum(values, 0.0)
        return vectors


class PlainICA(ContrastTransformer):
    """Independent component analysis of the foreground by HTD (Algorithm 1).

    The fourth cumulant ``κ₄(x) = Σ ν_j b_j^{⊗4}`` of the foreground alone is decomposed. A background,
    where there is one, only ranks the patterns: by contrast ratio ``k(b)``, as the paper ranks those of
    ICA for comparison.

    Parameters
    ----------
    n_components : int or None, default=2
        Patterns to keep: those of largest contrast ratio, or of largest weight without a background.
        ``None`` keeps all.
    rank : int or None, default=None
        Terms sought, r + ℓ in the paper; ``None`` chooses them from the eigenvalues as
        `ContrastiveICA` does.
    n_pcs : int, "auto" or None, default="auto"
        Principal components of the stacked rows to work in, as in `ContrastiveICA`.
    cumulant : {"plugin", "unbiased", "robust"}, default="plugin"
        As in `ContrastiveICA`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Patterns: unit rows, the largest entry of each positive.
    contrast_ratio_ : ndarray of shape (n_components,)
        k(b), decreasing; NaN without a background.
    weights_ : ndarray of shape (n_components,)
        ν, the fourth cumulants of the sources.
    rank_ : int
        Terms sought.
    n_pcs_ : int
        Dimension in which the cumulant was taken.
    basis_ : ndarray of shape (n_features, n_pcs_) or None
        Principal axes; ``None`` where no PCA was done.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had string column names.

    References
    ----------
    K. Wang, A. Maraj and A. Seigal, "Contrastive independent component analysis", Algorithm 1.

    Examples
    --------
    >>> from contrica import PlainICA
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(5, random_state=0)
    >>> model = PlainICA(2, rank=9).fit(data.foreground, background=data.background)
    >>> model.components_.shape
    (2, 5)
    """

    _alone: ClassVar[str | None] = None

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        rank: int | None = None,
        n_pcs: int | str | None = "auto",
        cumulant: str = "plugin",
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.n_pcs = n_pcs
        self.cumulant = cumulant

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("cumulant", self.cumulant, CUMULANTS)
        check_n_pcs(self.n_pcs)

    def _check_width(self, n_features: int, *, contrasted: bool) -> None:
        super()._check_width(n_features, contrasted=contrasted)
        n_axes(self.n_pcs, n_features)
        if self.rank is not None:
            check_rank(self.rank, n_features)

    @documented
    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Self:
        self._check_parameters()
        with unchanged_on_error(self):
            self._fit(self._open(X, y, background))
        return self

    def _fit(self, datasets: Sequence[Dataset]) -> None:
        """Find the patterns, and store them."""
        rows = [part.rows for part in datasets]
        summaries = [part.summary for part in datasets]
        self.basis_ = axes_of(rows, summaries, self.n_pcs, memory_budget())
        fore, *others = (
            project_cumulants(part, self.basis_, self.cumulant)  # type: ignore[arg-type]
            for part in rows
        )
        back = others[0] if others else None
        self.n_pcs_ = fore.n_features
        self.rank_ = self._choose_rank(fore, back)
        found = htd(fore.fourth, self.rank_)
        ratio = (
            np.full(self.rank_, np.nan)
            if back is None
            else contrast_ratio(found.vectors, fore, back)
        )
        # NaN sorts last and stably: without a background the order by weight remains.
        keep = np.argsort(-ratio, kind="stable")[: self._wanted()]
        vectors = found.vectors[:, keep]
        lifted = vectors if self.basis_ is None else self.basis_ @ vectors
        self.components_ = fix_signs(lifted).T
        self.contrast_ratio_ = ratio[keep]
        self.weights_ = found.weights[keep]

    def _choose_rank(self, fore: Cumulants, back: Cumulants | None) -> int:
        p = fore.n_features
        if self.rank is not None:
            return check_rank(self.rank, p)
        return max(min(sum(choose_ranks(fore, back)), n_packed(p)), 1)

    def _wanted(self) -> int:
        wanted = self.rank_ if self.n_components is None else int(self.n_components)
        if wanted > self.rank_:
            warn(
                PatternWarning(
                    "fewer-patterns",
                    f"`n_components={wanted}` patterns were asked for, but `rank={self.rank_}` were "
                    "sought: that many are returned",
                    remedy="Raise `rank`.",
                    parameter="rank",
                )
            )
        return wanted
