"""Contrastive ICA: Algorithm 2 of the paper, and better solvers, behind scikit-learn's interface."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from contrica.errors import DataError, ParameterError, ParameterWarning, warn
from contrica.estimators._base import BaseContrastive
from contrica.estimators._summary import (
    carried_by,
    summary_lines,
    taken_as_pairs,
    tested_by_groups,
)
from contrica.estimators._transformer import changed_parameters
from contrica.markup import Summary
from contrica.moments.estimates import Storage
from contrica.solvers.auto import SOLVERS, Choice, background_storage, n_row_groups, solve
from contrica.solvers.deflation import DEFLATIONS, check_deflation_budget
from contrica.solvers.filters import filters_of
from contrica.solvers.paper_solver import solve_plain
from contrica.solvers.problem import Problem, Separation
from contrica.solvers.subspace_solver import check_dimension
from contrica.validation import check_choice

__all__ = ["ContrastiveICA"]


class ContrastiveICA(BaseContrastive):
    """Patterns of a foreground that its background does not have.

    The model is ``y = A z`` for the background and ``x = A z′ + B s`` for the foreground, with
    independent non-Gaussian sources. The columns of B are recovered from fourth cumulants, in which
    ``κ₄(y) = Σ λ_i a_i^{⊗4}`` and ``κ₄(x) = Σ λ′_i a_i^{⊗4} + Σ ν_j b_j^{⊗4}``, and ordered by contrast
    ratio ``k(b) = bᵀκ₂(x)b / bᵀκ₂(y)b``. There is no contrast parameter to tune. Both datasets should
    be on one scale.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Patterns to keep, by decreasing ratio. "auto": those that stand out, ``n_foreground_`` of them and
        at least one; two without a background and with solver "paper". ``None``: all that were sought.
        The first patterns do not depend on how many are kept.
    n_background : int or None, default=None
        r, the number of background patterns; ``None`` chooses it from the data.
    n_foreground : int or None, default=None
        ℓ, the number of foreground patterns sought, of which the leading ones are kept; ``None``
        chooses it from the data: with solver "joint" and "auto" by which patterns are significant
        (`contrica.solvers.selection`), with "paper" from the eigenvalues (`contrica.solvers.ranks`).
    n_pcs : int, "auto" or None, default="auto"
        Principal components of the stacked rows to work in. "auto": all variables up to 30 of them,
        otherwise the paper's rule, 30 components or 90 % of variance, whichever first. ``None``: no
        PCA.
    solver : {"auto", "paper", "joint", "subspace"}, default="auto"
        "paper" is Algorithm 2: subspace power method, deflation, hierarchical tensor decomposition.
        "joint" starts there, in whitened coordinates, and then fits all patterns and weights of both
        datasets together (`contrica.solvers.joint`): far more accurate where the model holds and rows are
        many. "subspace" looks for independent sources inside the subspace of largest contrast ratio
        (`contrica.solvers.subspace`), for data in which heavy-tailed background directions drown the
        salient ones, and for few rows; ``n_foreground`` is the dimension of that subspace, and there are
        no background patterns. "auto" uses "joint" if there are at most 18 dimensions (fewer with several
        backgrounds), each dataset has at least as many rows as a fourth cumulant has entries, two or more
        foreground patterns are significant, and the fit leaves at most half of each fourth cumulant by
        squared norm; with both ranks given and skewed sources also for fewer rows, if half of the
        patterns are significant. Otherwise, and where rows come in groups, it uses "subspace", and warns
        if ``n_background`` was given. See ``solver_`` and `summary`.
    deflation : str, default="thin"
        With solver "paper" only, the estimator of the λ′ in Step 2: "thin" (the paper's proof),
        "sequential" (as its authors ran it), "sequential_thin", "closed_form" or "least_squares"
        (steady, but biased).
    cumulant : {"plugin", "unbiased", "robust"}, default="plugin"
        The paper's formula, which divides by n, or k-statistics; or the paper's formula after the
        farthest hundredth of the rows was winsorized
        (`contrica.moments.projection.winsorize_rows`).
    projection : {"filter", "pattern"} or None, default=None
        What `transform` multiplies by: the filters, so that scores are the sources, as of scikit-learn's
        FastICA; or the patterns, ``X · b`` as in the paper. ``None``: filters, and patterns with solver
        "paper" and without a background.
    scale : {"none", "pooled", "each"}, default="none"
        What variables are divided by before anything else: nothing; "pooled", their standard deviations
        over all datasets together, each about its own mean, for variables in different units; or "each",
        every dataset's own, after its own mean is subtracted, so that only correlations and shapes can
        differ. Constant variables are divided by 1. `transform` divides any rows by ``scale_``; with
        "each" those are the foreground's, and a background's rows, for which a warning is given where
        they are known, are not on the scale that they were fitted on. Permutations divide anew
        (`contrica.solvers.rescaling`). A ``basis`` is one of the divided variables.
    max_iter : int or None, default=None
        Maximum number of iterations: of one round of the subspace power method, of a joint fit, or of the
        rotation in a contrast subspace. ``None``: 200, 300 and 500.
    tol : float, default=1e-8
        Step length at which the iterates of the subspace power method have converged; of "paper" only.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starts of the subspace power method and of the rotation in the contrast subspace. Rows
        that are permuted to choose its dimension are permuted the same way in every fit. Nothing else is
        random.
    basis : array-like of shape (n_features, k) or None, default=None
        Orthonormal axes to work in, in place of principal components. With them rows of many variables
        can be read in one pass (`partial_fit`).
    memory_limit : int, str or None, default=None
        Bytes, or text such as "2GB", that a fit may take beyond what is already in use; ``None`` is a
        quarter of what is free. It decides whether cumulants are written out or contracted on demand,
        which gives the same patterns. Where it leaves no room for all rows in the dimensions worked in,
        or these are more than 100 000 rows and take more than 128 MB, the dimension of a contrast
        subspace and the rotation in it come from a random sample of the rows, the same in every fit, and
        so do t-values of "joint" if moments of 40 groups of rows would take more than half of it;
        cumulants are of all rows always. What cannot fit is refused before it is computed.
    device : str or None, default=None
        Where sums over rows are taken: such as "cuda", for which torch or cupy is needed. ``None``: where
        the rows are, which for a tensor on a GPU, dense or sparse, is there. Large eigenproblems,
        permutations, rotations and large products of a joint fit follow. Dask's rows stay where they
        are. What is learnt comes back as numpy arrays; `transform` gives tensors for tensors.
    dtype : {"float64", "float32"}, default="float64"
        In which rows are multiplied. "float32" is faster, on most GPUs by far, and gives patterns to
        about four digits. The foreground's mean is subtracted before rows are rounded, and sums over more
        than some thousand rows are taken in double precision. Not for `partial_fit`.
    missing : {"error", "impute", "pairwise"}, default="error"
        What NaN means. "error" refuses it. "impute" fills a gap by what all datasets have in common: a
        prediction from the row's observed values, and what such a prediction leaves of another row
        (`contrica.rows.missing`), so that variances stay what they are and gaps make no contrast; third
        and fourth cumulants are taken from observed values, each entry over the rows in which its
        variables are all observed, of at most 100 variables. "pairwise" takes covariances from observed
        values too, and uses filled rows for all else; the plug-in estimate only.
        `transform` then predicts the gaps of new rows. See ``docs/guide/missing.md``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Patterns: how each salient source appears in the variables. Unit rows, the largest entry
        positive, by decreasing ratio; of "joint" those that are not significant come last, and of
        "subspace" those that only shift the mean.
    filters_ : ndarray of shape (n_components, n_features)
        ``Σ_x⁺b / (bᵀΣ_x⁺b)``: the direction whose product with x recovers the source; exact when the
        columns of [A B] are independent, the best linear estimate otherwise. With "joint" and "paper" and
        few rows Σ_x may be shrunk (``filter_shrinkage_``).
    filter_shrinkage_ : float
        Share of the covariances between variables, or principal axes, that filters do without, chosen
        by held-out rows or groups: 0 where rows are many, and with "subspace".
    contrast_ratio_ : ndarray of shape (n_components,)
        k(b): variance along the pattern in the foreground over that in the background. NaN without one.
    source_ratio_ : ndarray of shape (n_components,)
        k(f): mean square of the source in the foreground, about its mean in the background, over its
        variance in the background (`contrica.solvers.ratio.source_ratio`). NaN without a background.
    ranked_by_ : {"contrast_ratio", "source_ratio"}
        By which of the two patterns are ranked: k(f) of "subspace", k(b) of the others.
    only_shifted_ : ndarray of bool, shape (n_components,)
        With "subspace": which patterns shift the mean by more than the source's deviation, and vary no
        more in the foreground than chance gives. They are ranked last, whatever their ratio.
    left_out_shifts_ : ndarray of shape (n_left_out, n_features)
        Such patterns that were found and not kept: by how many standard deviations of the background the
        mean of every variable is shifted.
    scree_ : Scree, ContrastScree or None
        What to check the ranks by: eigenvalues of both fourth cumulants (`contrica.solvers.Scree`), or of
        "subspace" the contrast ratios of all directions and their permutation null
        (`contrica.solvers.ContrastScree`). ``None`` where they would take too long.
    mixing_ : ndarray of shape (n_features, n_components)
        ``components_`` as columns. (FastICA's ``components_`` are filters; here they are patterns.)
    projection_ : {"filter", "pattern"}
        What `transform` multiplies by.
    scale_ : ndarray of shape (n_features,) or None
        What `transform` divides variables by; ``components_``, ``filters_`` and ``basis_`` are of the
        divided ones. ``None`` with ``scale="none"``.
    background_spreads_ : ndarray of shape (n_backgrounds, n_features) or None
        With ``scale="each"``: what every background was divided by.
    original_components_ : ndarray of shape (n_components, n_features)
        ``components_ · scale_``: the patterns in the units of the variables. One unit of a score adds so
        much to each.
    groups_ : ndarray of str, shape (n_groups,), or None
        Names of the foreground's groups; ``None`` where rows are independent.
    paired_groups_ : ndarray of str, or None
        Groups of both datasets, by their names, whose halves change places where groups are permuted.
    group_share_ : ndarray of shape (n_components, n_groups) or None
        How much of each source every group carries: the mean square of the group's scores, less the
        variance in the background, over the sum of those of all groups.
    robust_ratio_ : ndarray of shape (n_components,) or None
        The ratio that patterns are ranked by where rows come in groups: without the two groups in which
        the source is strongest (one of fewer than seven groups, none of fewer than four).
    background_deviations_ : ndarray of shape (n_features,) or None
        How much every variable varies in the background, ``√(σ² + ρ)`` with ρ = tr(Σ_y)/m.
    source_deviations_ : ndarray of shape (n_components,)
        Standard deviation of each source in the foreground.
    effects_ : ndarray of shape (n_components, n_features) or None
        How many standard deviations of the background a variable moves when a source moves by one of its
        own: components_ · source_deviations_ / background_deviations_. What leads a pattern (`summary`,
        `contrica.inference.top_features`). ``None`` without a background.
    foreground_weights_ : ndarray of shape (n_components,)
        ν, the fourth cumulants of the salient sources.
    background_components_ : ndarray of shape (n_background_, n_features)
        Background patterns ``a_i``, unit rows.
    background_weights_, shared_weights_ : ndarray of shape (n_background_,)
        λ and λ′: their weights in the background and in the foreground.
    n_background_, n_foreground_ : int
        The ranks r and ℓ. ``n_foreground_ = 0`` says that nothing was found.
    solver_ : str
        The solver used; "plain" without a background.
    reason_ : str
        Why that solver was used.
    rank_choice_ : RankChoice or None
        What the ranks rest on, where a joint fit chose them (`contrica.solvers.selection`).
    near_ties_ : tuple of str
        Choices of solver, ranks or minimum that a slightly different sample could reverse, in words.
    pattern_t_values_ : ndarray of shape (n_components,)
        Weight of each pattern over its standard error, with "joint" (`contrica.solvers.weights`), in the
        foreground's fourth or third cumulant, whichever is larger; NaN otherwise.
    foreground_skewness_weights_ : ndarray of shape (n_components,)
        Third cumulants of the salient sources, with "joint"; NaN otherwise.
    n_pcs_ : int
        Dimension in which the cumulants were taken.
    n_samples_ : int
        Rows of the foreground.
    n_rows_sampled_ : tuple of int
        Rows of the foreground and of every background from which the dimension of a contrast subspace and
        the rotation in it come: all of them, or a random sample (``memory_limit``).
    basis_ : ndarray of shape (n_features, n_pcs_) or None
        Principal axes; ``None`` where no PCA was done.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    residual_ : float
        Norm of what all patterns together leave of κ₄(x), over the norm of κ₄(x); NaN with "subspace",
        which does not fit κ₄(x). With "paper" a warning says where it is above 1: the subtraction of the
        background then added more than it removed.
    n_missing_ : ndarray of int, shape (n_datasets, n_features)
        Missing values of every variable, in the foreground and in every background.
    gap_loadings_, gap_noise_ : ndarray of shape (n_features, k) and (n_features,), or None
        The foreground's covariance, ``L Lᵀ + diag(ψ)``, from which `transform` predicts missing values;
        ``None`` where it refuses them.
    n_iter_ : int
        Iterations of the subspace power method, of the joint fit, or of the rotation in the contrast
        subspace; 1 for plain ICA, which is direct.
    foreground_sums_, background_sums_ : DataSums
        What `partial_fit` has added up (`contrica.moments.DataSums`); after it only.
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

    _several: ClassVar[bool] = True
    _of_contrast: ClassVar[tuple[str, ...]] = ("solver", "n_background", "max_iter")

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        n_background: int | None = None,
        n_foreground: int | None = None,
        n_pcs: int | str | None = "auto",
        solver: str = "auto",
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
        self.solver = solver
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
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        check_choice("deflation", self.deflation, tuple(DEFLATIONS))
        if self.solver == "subspace" and self.n_background is not None:
            raise ParameterError(
                "no-effect",
                f"`n_background={self.n_background}` was given",
                'solver "subspace" looks for no background patterns',
                "Leave `n_background` out, or use another `solver`.",
                "n_background",
            )

    def _warn_of_no_effect(self) -> None:
        for name in changed_parameters(self, ("deflation", "tol")):
            if self.solver != "paper":
                warn(
                    ParameterWarning(
                        "no-effect",
                        f"`{name}={getattr(self, name)}` has no effect with solver {self.solver!r}",
                        remedy=f"Leave `{name}` out, or use `solver=paper`.",
                        parameter=name,
                    )
                )

    def _check_width(self, n_features: int, *, contrasted: bool) -> None:
        super()._check_width(n_features, contrasted=contrasted)
        if self.solver == "subspace" and contrasted:
            check_dimension(self._request, self._workplace.max_dimensions(n_features))

    def _check_budget(self, n_dimensions: int, n_rows: int) -> None:
        super()._check_budget(n_dimensions, n_rows)
        if self.solver == "paper":
            check_deflation_budget(self.deflation, n_dimensions, self._workplace.budget)

    def _backgrounds(self, background: Any) -> dict[str, Any]:
        found = super()._backgrounds(background)
        if len(found) > 1 and self.solver == "paper":
            raise DataError(
                "several-backgrounds",
                f"{len(found)} backgrounds were given",
                'solver "paper" takes one',
                'Stack them, or use solver "auto", "joint" or "subspace".',
                "background",
            )
        return found

    def _background_storage(self, n_features: int, n_datasets: int) -> Storage:
        return background_storage(self.solver, n_features, n_datasets)

    def _n_row_groups(self, n_rows: int, n_features: int) -> int:
        return n_row_groups(self.solver, n_rows, n_features)

    def _separate(self, problem: Problem, rng: np.random.Generator) -> Separation:
        request = self._request
        if problem.backs:
            choice = solve(problem, request, self.solver, rng=rng)
        else:
            choice = Choice("plain", "no background was given", solve_plain(problem, request))
        self.solver_, self.reason_, found = choice
        self.rank_choice_, self.near_ties_ = found.rank_choice, found.near_ties
        return found

    @property
    def _n_wanted(self) -> int | None:
        told_by_data = self.n_components == "auto" and self.solver != "paper"
        return None if told_by_data else super()._n_wanted

    def _default_projection(self, found: Separation) -> str:
        return "pattern" if self.solver_ in ("paper", "plain") else "filter"

    def _store(self, problem: Problem, found: Separation) -> None:
        super()._store(problem, found)
        kept = found.order()[: len(self.components_)]
        unknown = np.full(found.ratio.size, np.nan)
        self.pattern_t_values_ = (unknown if found.t_values is None else found.t_values)[kept]
        skewness = (unknown if found.skewness_weights is None else found.skewness_weights)[kept]
        # a third cumulant changes its sign with its pattern, which got one of its own here
        patterns = self._lift(found.foreground.vectors[:, kept])
        signs = np.sign(np.sum(patterns * self.components_, axis=1))
        self.foreground_skewness_weights_ = skewness * signs
        self._store_shifts(problem, found)

    def _store_shifts(self, problem: Problem, found: Separation) -> None:
        count, order = len(self.components_), found.order()
        shifted = found.only_shifted
        if shifted is None:
            shifted = np.zeros(order.size, dtype=bool)
        self.only_shifted_ = shifted[order[:count]]
        left = found.foreground.vectors[:, order[count:][shifted[order[count:]]]]
        self.left_out_shifts_ = np.empty((0, self.components_.shape[1]))
        if left.size:
            shift = problem.fore.mean - problem.back.mean
            moved = self._lift(left * (shift @ filters_of(left, problem.fore.covariance)))
            self.left_out_shifts_ = moved / self.background_deviations_

    def summary(self) -> str:
        """What was found, on what evidence, and what was chosen and why, in a few lines of text.

        Returns
        -------
        str
            A notebook shows it as a table.
        """
        self._check_fitted()
        return Summary("\n".join(summary_lines(self)))

    def explore(self, X: Any, *, background: Any, **options: Any) -> Any:
        """Open a page in which to look at foreground against background, and to turn the knobs.

        It opens with the parameters of this estimator, which need not be fitted and stays as it is. The
        page is served to this machine only, at an address with a token in it, until ``stop()`` or the end
        of Python; a notebook shows it in a frame. Needs ``pip install 'contrica[explorer]'``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Foreground.
        background : array-like of shape (n_background_samples, n_features), list of such, or Background
        **options
            As of `contrica.explorer.open_page`: ``groups``, ``metadata``, ``image_shape``, ``port`` and
            so on.

        Returns
        -------
        Server
            With ``address`` and ``stop()``.
        """
        # the explorer stands outside of the estimators, and is loaded when one is asked for
        outside = import_module("contrica.explorer")
        return outside.open_page(self, X, background=background, **options)

    def group_lines(self) -> list[str]:
        """What groups of rows say, in words: their p-value, pairs, and by how many patterns are carried.

        Returns
        -------
        list of str
            Empty where rows are independent.
        """
        self._check_fitted()
        carried = [
            f"pattern {i + 1} is {told}"
            for i in range(len(self.components_))
            for told in carried_by(self, i)
        ]
        return [*tested_by_groups(self), *taken_as_pairs(self), *carried]
