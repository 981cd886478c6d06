"""Contrastive ICA: Algorithm 2 of the paper behind scikit-learn's interface."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from contrica.contrast import DEFLATIONS, contrast
from contrica.cumulants import Cumulants
from contrica.estimators._base import BaseContrastive, Separation
from contrica.joint import joint_contrast
from contrica.operators import relative_norm
from contrica.projection import common_basis, project_cumulants
from contrica.ranks import Ranks
from contrica.subspace import choose_dimension, subspace_ica
from contrica.validation import PatternWarning, check_choice, check_count, generator, warn_user

__all__ = ["ContrastiveICA"]

logger = logging.getLogger("contrica")

# the joint fit takes more steps than the subspace power method; max_iter counts where it is larger
JOINT_STEPS = 300


class ContrastiveICA(BaseContrastive):
    """Patterns of a foreground that its background does not have.

    The model is ``y = A z`` for the background and ``x = A z′ + B s`` for the foreground, with
    independent non-Gaussian sources. The columns of B are recovered from fourth cumulants, in which
    ``κ₄(y) = Σ λ_i a_i^{⊗4}`` and ``κ₄(x) = Σ λ′_i a_i^{⊗4} + Σ ν_j b_j^{⊗4}``, and ordered by contrast
    ratio ``k(b) = bᵀκ₂(x)b / bᵀκ₂(y)b``. There is no contrast parameter to tune.

    Parameters
    ----------
    n_components : int or None, default=2
        Patterns to keep, those of largest contrast ratio; ``None`` keeps all ``n_foreground_``.
    n_background : int or None, default=None
        r, the number of background patterns; ``None`` chooses it from the eigenvalues.
    n_foreground : int or None, default=None
        ℓ, the number of foreground patterns sought, of which the leading ones are kept; ``None``
        chooses it from the eigenvalues.
    n_pcs : int, "auto" or None, default="auto"
        Principal components of the stacked rows to work in. "auto": all variables up to 30 of them,
        otherwise the paper's rule, 30 components or 90 % of variance, whichever first. ``None``: no
        PCA.
    solver : {"paper", "joint", "subspace"}, default="paper"
        "paper" is Algorithm 2: subspace power method, deflation, hierarchical tensor decomposition.
        "joint" starts there, in whitened coordinates, and then fits all patterns and weights of both
        datasets together (`contrica.joint`): far more accurate where the model holds and the ranks
        are about right, slower, and no remedy where it does not hold. "subspace" looks for independent
        sources inside the subspace of largest contrast ratio (`contrica.subspace`), for data in which
        heavy-tailed background directions drown the salient ones; ``n_foreground`` is the dimension of
        that subspace, and there are no background patterns.
    deflation : str, default="thin"
        With solver "paper", the estimator of the λ′ in Step 2: "thin" (the paper's proof),
        "sequential" (as its authors ran it), "sequential_thin", "closed_form" or "least_squares"
        (steady, but biased).
    cumulant : {"plugin", "unbiased"}, default="plugin"
        The paper's formula, which divides by n, or k-statistics.
    projection : {"pattern", "filter"}, default="pattern"
        What `transform` multiplies by: the patterns, ``X · b`` as in the paper, or the filters,
        which undo the mixing.
    max_iter : int, default=200
        Most steps of one round of the subspace power method; with solver "joint", of the fit, where it
        is above 300.
    tol : float, default=1e-8
        Step length at which its iterates have converged.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starts of the subspace power method; with solver "subspace" the deals of rows that
        choose the dimension. Nothing else is random.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Patterns: how each salient source appears in the variables. Unit rows, the largest
        entry positive, by decreasing contrast ratio.
    filters_ : ndarray of shape (n_components, n_features)
        ``Σ_x⁺b / (bᵀΣ_x⁺b)``: the direction whose product with x recovers the source; exact when the
        columns of [A B] are independent, the best linear estimate otherwise.
    contrast_ratio_ : ndarray of shape (n_components,)
        k(b): variance along the pattern in the foreground over that in the background; with solver
        "subspace" along the filter, k(f). NaN without a background.
    foreground_weights_ : ndarray of shape (n_components,)
        ν, the fourth cumulants of the salient sources.
    background_components_ : ndarray of shape (n_background_, n_features)
        Background patterns ``a_i``, unit rows.
    background_weights_, shared_weights_ : ndarray of shape (n_background_,)
        λ and λ′: their weights in the background and in the foreground.
    n_background_, n_foreground_ : int
        The ranks r and ℓ. ``n_foreground_ = 0`` says that nothing was found.
    n_pcs_ : int
        Dimension in which the cumulants were taken.
    basis_ : ndarray of shape (n_features, n_pcs_) or None
        Principal axes; ``None`` where no PCA was done.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    residual_ : float
        Norm of what all patterns together leave of κ₄(x), over the norm of κ₄(x). Above 1 the
        subtraction of the background added more than it took away, and a warning says so.
    n_iter_ : int
        Steps of the subspace power method; 1 for plain ICA, which is direct.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X had string column names.

    See Also
    --------
    ProportionalContrastiveICA : for a background that enters the foreground at one common scale.

    References
    ----------
    K. Wang, A. Maraj and A. Seigal, "Contrastive independent component analysis".

    Examples
    --------
    >>> from contrica import ContrastiveICA
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(6, random_state=0)
    >>> model = ContrastiveICA(2, random_state=0)
    >>> model.fit_transform(data.foreground, background=data.background).shape
    (100000, 2)
    """

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        n_background: int | None = None,
        n_foreground: int | None = None,
        n_pcs: int | str | None = "auto",
        solver: str = "paper",
        deflation: str = "thin",
        cumulant: str = "plugin",
        projection: str = "pattern",
        max_iter: int = 200,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_background = n_background
        self.n_foreground = n_foreground
        self.n_pcs = n_pcs
        self.solver = solver
        self.deflation = deflation
        self.cumulant = cumulant
        self.projection = projection
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, ("paper", "joint", "subspace"))
        check_choice("deflation", self.deflation, tuple(DEFLATIONS))

    def _fit(self, X: np.ndarray, background: np.ndarray | None) -> None:
        if self.solver != "subspace" or background is None:
            super()._fit(X, background)
            return
        self.basis_ = common_basis([X, background], self.n_pcs)
        logger.info("covariances and cumulants")
        fore, back = (
            project_cumulants(rows, self.basis_, self.cumulant)  # type: ignore[arg-type]
            for rows in (X, background)
        )
        self.n_pcs_ = fore.n_features
        small = [rows if self.basis_ is None else rows @ self.basis_ for rows in (X, background)]
        logger.info("contrast subspace")
        dimension = self._dimension(*small)
        found = subspace_ica(fore, back, small[0], dimension)
        self.n_background_ = 0
        self.background_components_ = np.empty((0, self.n_features_in_))
        self.background_weights_ = self.shared_weights_ = np.empty(0)
        residual = relative_norm(fore.fourth - found.foreground.tensor(), fore.fourth)
        self._store(fore, Separation(found.foreground, found.ratio, residual, found.n_iter))

    def _dimension(self, X: np.ndarray, background: np.ndarray) -> int:
        """Of the contrast subspace: as asked for, or from the data, at least what is to be kept."""
        p = X.shape[1]
        if self.n_background is not None:
            raise ValueError(
                f'n_background={self.n_background} was given, but solver="subspace" looks for no '
                "background patterns. Leave it out, or use another solver."
            )
        if self.n_foreground is not None:
            self.n_foreground_ = check_count("n_foreground", self.n_foreground)
            if self.n_foreground_ > p:
                raise ValueError(
                    f"n_foreground={self.n_foreground_} is more than the {p} dimensions there are. "
                    "Lower it."
                )
            return self.n_foreground_
        rng = generator(self.random_state)
        self.n_foreground_ = choose_dimension(X, background, rng=rng)
        if self.n_foreground_ == 0:
            warn_user(
                "no direction varies more in the foreground than rows dealt out at random would "
                "(n_foreground_ = 0). The strongest candidates are returned all the same; treat them as "
                "noise, or set n_foreground.",
                PatternWarning,
            )
            return min(self.n_components or 1, p)
        return self.n_foreground_

    def _separate(self, fore: Cumulants, back: Cumulants, ranks: Ranks) -> Separation:
        rng = generator(self.random_state)
        if self.solver == "joint":
            steps = max(self.max_iter, JOINT_STEPS)
            found = joint_contrast(fore, back, *ranks, rng=rng, max_iter=steps)
        else:
            found = contrast(
                *(fore, back, *ranks),
                rng=rng,
                deflation=self.deflation,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self.background_components_ = self._lift_patterns(found.background.vectors)
        self.background_weights_ = found.background.weights
        self.n_background_ = found.background.weights.size  # a tensor of lower rank has fewer
        self.shared_weights_ = found.shared_weights
        return Separation(found.foreground, found.ratio, found.residual, found.background.n_iter)
