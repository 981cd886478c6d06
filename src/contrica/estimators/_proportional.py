"""Proportional contrastive ICA: Algorithm 3 of the paper behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from contrica.errors import ParameterWarning, warn
from contrica.estimators._base import BaseContrastive
from contrica.estimators._transformer import changed_parameters
from contrica.solvers.deflation import DEFLATIONS, check_deflation_budget
from contrica.solvers.paper_solver import solve_plain, solve_proportional
from contrica.solvers.problem import Problem, Separation
from contrica.validation import check_choice, check_scale

__all__ = ["ProportionalContrastiveICA"]


class ProportionalContrastiveICA(BaseContrastive):
    """Contrastive ICA where the background enters the foreground at one common scale, z′ = γ z.

    Decomposes ``κ₄(x) − γ⁴ κ₄(y)`` by hierarchical tensor decomposition. γ is given, or follows in
    closed form from the background patterns (which needs r as well as ℓ). Whether one γ fits all
    patterns is tested by `contrica.solvers.proportionality_test`; a range of γ is tried by
    `contrica.solvers.scale_sweep`.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Patterns to keep, those of largest contrast ratio; "auto" keeps two, ``None`` all
        ``n_foreground_``.
    n_background : int or None, default=None
        r, used to estimate γ only; ``None`` chooses it from the eigenvalues.
    n_foreground : int or None, default=None
        ℓ, the number of foreground patterns sought; ``None`` chooses it from the eigenvalues.
    n_pcs : int, "auto" or None, default="auto"
        As in `ContrastiveICA`.
    background_scale : float or None, default=None
        γ itself, not its fourth power; ``None`` estimates it.
    deflation : str, default="thin"
        Estimator of the λ′ from which γ follows, as in `ContrastiveICA`.
    cumulant : {"plugin", "unbiased", "robust"}, default="plugin"
        As in `ContrastiveICA`.
    projection : {"filter", "pattern"} or None, default=None
        What `transform` multiplies by; ``None``: the patterns, as in the paper.
    scale : {"none", "pooled", "each"}, default="none"
        What variables are divided by, as in `ContrastiveICA`.
    max_iter, tol
        Of the subspace power method, as in `ContrastiveICA`.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the subspace power method's starts; unused where γ is given.
    basis, memory_limit, device, dtype, missing
        As in `ContrastiveICA`.

    Attributes
    ----------
    background_scale_ : float
        γ.
    background_scale_estimates_ : ndarray of shape (n_background_,)
        Each background pattern's own estimate of γ; NaN where its weights differ in sign. Empty
        where γ was given.
    components_, filters_, filter_shrinkage_, contrast_ratio_, source_ratio_, ranked_by_, \
    foreground_weights_, scree_, projection_, scale_, background_spreads_, original_components_, \
    groups_, paired_groups_, group_share_, robust_ratio_
        The foreground patterns, as in `ContrastiveICA`.
    background_components_, background_weights_, shared_weights_ : ndarray
        The background patterns, as in `ContrastiveICA`; empty, and ``n_background_`` 0, where γ was
        given.
    n_background_, n_foreground_, n_pcs_, n_samples_, n_rows_sampled_, basis_, mean_, residual_, \
    n_iter_, n_missing_, gap_loadings_, gap_noise_
        As in `ContrastiveICA`.

    See Also
    --------
    ContrastiveICA : where each background pattern has a weight of its own in the foreground.

    References
    ----------
    K. Wang, A. Maraj and A. Seigal, "Contrastive independent component analysis", Algorithm 3.

    Examples
    --------
    >>> from contrica import ProportionalContrastiveICA
    >>> from contrica.datasets import make_synthetic
    >>> data = make_synthetic(5, proportional=True, random_state=0)
    >>> model = ProportionalContrastiveICA(4, n_background=5, n_foreground=4, random_state=0)
    >>> round(model.fit(data.foreground, background=data.background).background_scale_, 1)
    1.0
    """

    _of_contrast: ClassVar[tuple[str, ...]] = (
        "background_scale",
        "n_background",
        "deflation",
        "tol",
        "max_iter",
    )

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        n_background: int | None = None,
        n_foreground: int | None = None,
        n_pcs: int | str | None = "auto",
        background_scale: float | None = None,
        deflation: str = "thin",
        cumulant: str = "plugin",
        projection: str | None = None,
        scale: str = "none",
        max_iter: int | None = None,
        tol: float = 1e-8,
        random_state: Any = None,
        basis: Any = None,
        memory_limit: Any = None,
        device: str | None = None,
        dtype: str = "float64",
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.n_background = n_background
        self.n_foreground = n_foreground
        self.n_pcs = n_pcs
        self.background_scale = background_scale
        self.deflation = deflation
        self.cumulant = cumulant
        self.projection = projection
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.basis = basis
        self.memory_limit = memory_limit
        self.device = device
        self.dtype = dtype
        self.missing = missing

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("deflation", self.deflation, tuple(DEFLATIONS))
        if self.background_scale is not None:
            check_scale("background_scale", self.background_scale)

    def _warn_of_no_effect(self) -> None:
        for name in changed_parameters(self, ("n_background", "deflation", "tol", "max_iter")):
            if self.background_scale is not None:
                warn(
                    ParameterWarning(
                        "no-effect",
                        f"`{name}={getattr(self, name)}` has no effect where `background_scale` is given",
                        remedy="Leave one of the two out.",
                        parameter=name,
                    )
                )

    def _check_budget(self, n_dimensions: int, n_rows: int) -> None:
        super()._check_budget(n_dimensions, n_rows)
        if self.background_scale is None:
            check_deflation_budget(self.deflation, n_dimensions, self._workplace.budget)

    def _separate(self, problem: Problem, rng: np.random.Generator) -> Separation:
        if not problem.backs:
            self.background_scale_, self.background_scale_estimates_ = 0.0, np.empty(0)
            return solve_plain(problem, self._request)
        found = solve_proportional(problem, self._request, self.background_scale, rng=rng)
        self.background_scale_ = float(found.scale)
        self.background_scale_estimates_ = found.scale_estimates
        return found
