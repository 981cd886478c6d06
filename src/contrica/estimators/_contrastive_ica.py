"""Contrastive ICA: Algorithm 2 of the paper, and better solvers, behind scikit-learn's interface."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from functools import partial
from math import comb
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from contrica.estimators._base import BaseContrastive, Separation, ratio_name
from contrica.moments.fourth import Cumulants, Storage, pooled
from contrica.moments.operators import relative_norm
from contrica.moments.symmetric import n_packed
from contrica.rows.blocks import Rows
from contrica.solvers.algorithm2 import Contrast, contrast
from contrica.solvers.deflation import DEFLATIONS
from contrica.solvers.joint import MIN_GAIN, JointProblem, fit_weights, joint_contrast
from contrica.solvers.ranks import Ranks, choose_ranks
from contrica.solvers.selection import (
    LEVEL,
    RankChoice,
    choose_by_significance,
    is_near,
    searchable,
)
from contrica.solvers.subspace import choose_dimension, subspace_ica
from contrica.solvers.weights import RowGroups, critical_t_value, gain_t_value, weight_t_values
from contrica.validation import PatternWarning, check_choice, check_count, generator, warn_user

__all__ = ["ContrastiveICA"]

logger = logging.getLogger("contrica")

# the joint fit takes more steps than the subspace power method; max_iter counts where it is larger
JOINT_STEPS = 300
# A joint fit that leaves more than this of a fourth cumulant, by squared norm, does not describe it.
MOST_LEFT = 0.5
# |cosine|, in whitened coordinates, above which two patterns are one.
TWINS = 0.98
# Entries of all vectors together for which t-values are worked out: the equations take half a gigabyte.
MOST_JUDGED = 5000


class ContrastiveICA(BaseContrastive):
    """Patterns of a foreground that its background does not have.

    The model is ``y = A z`` for the background and ``x = A z′ + B s`` for the foreground, with
    independent non-Gaussian sources. The columns of B are recovered from fourth cumulants, in which
    ``κ₄(y) = Σ λ_i a_i^{⊗4}`` and ``κ₄(x) = Σ λ′_i a_i^{⊗4} + Σ ν_j b_j^{⊗4}``, and ordered by contrast
    ratio ``k(b) = bᵀκ₂(x)b / bᵀκ₂(y)b``. There is no contrast parameter to tune. Both datasets should
    be on one scale.

    Parameters
    ----------
    n_components : int or None, default=2
        Patterns to keep, those of largest contrast ratio; ``None`` keeps all ``n_foreground_``.
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
        no background patterns. "auto" takes "joint" where a joint fit can be searched for (up to 18
        dimensions, fewer with several backgrounds, and as many rows as a fourth cumulant has entries),
        has half as many significant foreground patterns as are asked for, and two where two or more are,
        and leaves at most half of each fourth cumulant; with both ranks given, where half of the
        foreground patterns are significant. And "subspace" where not, with ranks that were given left
        aside. See ``solver_`` and `summary`.
    deflation : str, default="thin"
        With solver "paper", the estimator of the λ′ in Step 2: "thin" (the paper's proof),
        "sequential" (as its authors ran it), "sequential_thin", "closed_form" or "least_squares"
        (steady, but biased).
    cumulant : {"plugin", "unbiased", "robust"}, default="plugin"
        The paper's formula, which divides by n, or k-statistics; or the paper's formula after the
        farthest hundredth of the rows was winsorized
        (`contrica.moments.projection.winsorize_rows`).
    projection : {"pattern", "filter"}, default="pattern"
        What `transform` multiplies by: the patterns, ``X · b`` as in the paper, or the filters,
        which undo the mixing.
    max_iter : int, default=200
        Most steps of one round of the subspace power method; with solver "joint", of the fit, where it
        is above 300.
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
        Bytes, or text such as "2GB", that a fit may take beyond what is held before; ``None`` is a
        quarter of what is free. It decides whether cumulants are written out or contracted on demand,
        which gives the same patterns. Where it leaves no room for all rows in the dimensions worked in,
        or these are more than 100 000 rows and take more than 128 MB, the dimension of a contrast
        subspace and the rotation in it come from a random sample of the rows, the same in every fit;
        cumulants are of all rows always. What cannot fit is refused before it is computed.
    device : str or None, default=None
        Where sums over rows are taken: such as "cuda", for which torch or cupy is needed. ``None``: where
        the rows are, which for a tensor on a GPU is there. Sparse rows and dask's stay where they are.
        What is learnt comes back as numpy arrays; `transform` gives tensors for tensors.
    dtype : {"float64", "float32"}, default="float64"
        In which rows are multiplied. "float32" is faster, on most GPUs by far, and gives patterns to
        about four digits. The foreground's mean is taken off before rows are rounded, and sums over more
        than some thousand rows are taken in double precision. Not for `partial_fit`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Patterns: how each salient source appears in the variables. Unit rows, the largest entry
        positive, by decreasing contrast ratio; of "joint" those that are not significant come last.
    filters_ : ndarray of shape (n_components, n_features)
        ``Σ_x⁺b / (bᵀΣ_x⁺b)``: the direction whose product with x recovers the source; exact when the
        columns of [A B] are independent, the best linear estimate otherwise.
    contrast_ratio_ : ndarray of shape (n_components,)
        k(b): variance along the pattern in the foreground over that in the background. Of "subspace"
        k(f), along the filter, where a shift of the mean counts as well. NaN without a background.
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
        Why.
    rank_choice_ : RankChoice or None
        What the ranks rest on, where a joint fit chose them: `contrica.solvers.selection`.
    near_ties_ : tuple of str
        Choices of solver, ranks or minimum that slightly other rows might turn, in words.
    pattern_t_values_ : ndarray of shape (n_components,)
        Weight ν of each pattern over its standard error, with "joint" (`contrica.solvers.weights`); NaN
        otherwise.
    n_pcs_ : int
        Dimension in which the cumulants were taken.
    n_samples_ : int
        Rows of the foreground.
    n_rows_held_ : tuple of int
        Rows of the foreground and of every background that were looked at for the dimension of a
        contrast subspace and the rotation in it: all of them, or a sample (``memory_limit``).
    basis_ : ndarray of shape (n_features, n_pcs_) or None
        Principal axes; ``None`` where no PCA was done.
    mean_ : ndarray of shape (n_features,)
        Mean of the foreground.
    residual_ : float
        Norm of what all patterns together leave of κ₄(x), over the norm of κ₄(x). With "paper", above
        1 the subtraction of the background added more than it took away, and a warning says so.
    n_iter_ : int
        Steps of the subspace power method, of the joint fit's last descent, or of the rotation in
        the contrast subspace; 1 for plain ICA, which is direct.
    foreground_sums_, background_sums_ : DataSums
        What `partial_fit` has added up (`contrica.moments.streaming`); after it only.
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

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        n_background: int | None = None,
        n_foreground: int | None = None,
        n_pcs: int | str | None = "auto",
        solver: str = "auto",
        deflation: str = "thin",
        cumulant: str = "plugin",
        projection: str = "pattern",
        max_iter: int = 200,
        tol: float = 1e-8,
        random_state: Any = None,
        basis: Any = None,
        memory_limit: Any = None,
        device: str | None = None,
        dtype: str = "float64",
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
        self.basis = basis
        self.memory_limit = memory_limit
        self.device = device
        self.dtype = dtype

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, ("auto", "paper", "joint", "subspace"))
        check_choice("deflation", self.deflation, tuple(DEFLATIONS))
        if self.solver == "subspace" and self.n_background is not None:
            raise ValueError(
                f'n_background={self.n_background} was given, but solver="subspace" looks for no '
                "background patterns. Leave it out, or use another solver."
            )

    def _backgrounds(self, background: Any) -> dict[str, Any]:
        found = super()._backgrounds(background)
        if len(found) > 1 and self.solver == "paper":
            raise ValueError(
                f'{len(found)} backgrounds came, but solver="paper" takes one. Stack them, or use '
                'solver "auto", "joint" or "subspace".'
            )
        return found

    def _background_storage(self, n_features: int, n_datasets: int) -> Storage:
        # in the contrast subspace their covariances are enough
        certain = self.solver == "auto" and not searchable(n_features, n_datasets=n_datasets)
        return "matrix-free" if certain or self.solver == "subspace" else "auto"

    def _plain_ica(self, fore: Cumulants) -> Separation:
        self._chose("plain", "no background was given")
        return super()._plain_ica(fore)

    def _chose(self, solver: str, reason: str, ranks: RankChoice | None = None) -> None:
        self.solver_, self.reason_, self.rank_choice_ = solver, reason, ranks
        self.near_ties_: tuple[str, ...] = () if ranks is None else ranks.near_ties
        if ranks is not None and is_near(float(ranks.left.max()), MOST_LEFT):
            self.near_ties_ += (
                f"{ranks.left.max():.2f} of a fourth cumulant is left, above {MOST_LEFT} "
                '"subspace" is taken',
            )

    def _solve(
        self,
        fore: Cumulants,
        backs: list[Cumulants],
        rows: list[np.ndarray],
        seen: Sequence[np.ndarray | Rows],
    ) -> Separation:
        asked = f'solver="{self.solver}" was asked for'
        if self.solver == "paper":
            self._chose("paper", asked)
            return self._separate(fore, backs[0], self._choose_ranks(fore, backs[0]))
        rng, p = generator(self.random_state), fore.n_features

        def in_subspace(reason: str, choice: RankChoice | None = None) -> Separation:
            self._chose("subspace", reason, choice)
            return self._in_subspace(fore, backs, rows, rng)

        if self.solver == "subspace":
            return in_subspace(asked)
        if self.solver == "auto" and not searchable(p, n_datasets=len(rows)):
            return in_subspace(f"{p} dimensions are too many to search for a joint fit")
        norms = [part.fourth.squared_norm() for part in (fore, *backs)]
        if self.solver == "auto" and min(norms) == 0:
            return in_subspace("a fourth cumulant is zero")
        problem = JointProblem.of(fore, *backs)
        if problem.whiten.shape[1] < 2:
            if self.solver == "joint":
                raise ValueError(
                    "the data vary in one direction only, and a joint fit needs at least 2. Use solver "
                    '"subspace" or "paper", or add variables.'
                )
            return in_subspace("the data vary in one direction only")
        fewest = min(part.n_samples for part in (fore, *backs))
        entries = comb(problem.whiten.shape[1] + 3, 4)
        if self.solver == "auto" and fewest < entries:
            return in_subspace(
                f"{fewest} rows are fewer than the {entries} entries of a fourth cumulant"
            )
        groups = [
            RowGroups(part, problem.whiten, part_of.n_samples)
            for part, part_of in zip(seen, (fore, *backs), strict=True)
        ]
        # what it warns of concerns the user only if it is kept
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranks, choice = self._joint_ranks(problem, groups, rng)
            why_not = self._why_not_joint(choice) if self.solver == "auto" else ""
            found = None if why_not else self._jointly(problem, rows, groups, ranks, choice, rng)
        if found is None:
            return in_subspace(why_not, choice)
        t_values = self._joint_t_values(problem, groups, found)
        n_weights = len(rows) * sum(ranks)
        critical = critical_t_value(n_weights, min(part.n_groups for part in groups), LEVEL)
        significant = (np.abs(t_values) >= critical) & ~_cancelling(problem, found)
        if self.solver == "auto" and choice is None:
            why_not = (
                f"of {significant.size} foreground patterns in a joint fit {significant.sum()} are "
                "significant"
            )
            if 2 * significant.sum() < significant.size:
                return in_subspace(why_not)
            asked = why_not
        if choice is not None and self.solver == "auto":
            asked = (
                f"a joint fit has {choice.n_foreground} significant foreground patterns and leaves "
                f"{choice.left.max():.2g} of a fourth cumulant (squared norm)"
            )
        for warning in caught:
            warn_user(str(warning.message), warning.category)
        self._chose("joint", asked, choice)
        if is_near(found.gain, MIN_GAIN):
            self.near_ties_ += (
                f"another minimum is lower by {found.gain:.2f} standard errors, from {MIN_GAIN:.0f} on "
                "it is taken",
            )
        # where they were not worked out nothing is known to be insignificant
        known = None if np.isnan(t_values).any() else significant
        return self._keep_background(found)._replace(significant=known, t_values=t_values)

    def _joint_ranks(
        self, problem: JointProblem, groups: list[RowGroups], rng: np.random.Generator
    ) -> tuple[Ranks, RankChoice | None]:
        """The ranks, as given, or by significance, and then what the choice rests on."""
        p = problem.fore.n_features
        r, l = self._given_ranks(p)  # noqa: E741 - the paper's ℓ
        if r is not None and l is not None:
            self.n_background_, self.n_foreground_ = r, l
            return Ranks(r, l), None
        logger.info("choosing ranks")
        choice = choose_by_significance(
            problem,
            groups,
            choose_ranks(problem.fore, pooled(problem.backs), l, r),
            wanted=self.n_components if l is None else l,
            rng=rng,
        )
        total, room = choice.vectors.shape[1], n_packed(problem.whiten.shape[1])
        found = Ranks(choice.n_background, choice.n_foreground)
        if l is not None:
            found = found._replace(n_foreground=l)
        elif r is not None:  # patterns of the background that have no place there show in front
            found = Ranks(r, max(choice.n_foreground, total - r))
        self.n_background_, self.n_foreground_ = found
        # as many as are asked for are sought, whether they are significant or not; what was given
        # stays, and is refused later if there is no room for it
        least = 1 if self.n_components is None else min(self.n_components, room - 1)
        if l is None:
            l = min(max(found.n_foreground, least), max(room - (r or 1), 1))  # noqa: E741
        if r is None:
            r = min(max(found.n_background, 1), max(room - l, 1))
        return Ranks(r, l), choice

    def _why_not_joint(self, choice: RankChoice | None) -> str:
        """Why a joint fit should not be relied on; empty where it should."""
        if choice is None:
            return ""
        wanted = self.n_components or 1
        if not choice.complete:
            return "the search for a joint fit was cut short"
        if choice.n_foreground < max(-(-wanted // 2), min(wanted, 2)):
            return (
                f"asked for {wanted}, a joint fit has {choice.n_foreground} significant foreground "
                "patterns"
            )
        if choice.left.max() > MOST_LEFT:
            return (
                f"what is significant in a joint fit leaves {choice.left.max():.2g} of a fourth cumulant "
                "(squared norm)"
            )
        return ""

    def _jointly(
        self,
        problem: JointProblem,
        rows: list[np.ndarray],
        groups: list[RowGroups],
        ranks: Ranks,
        choice: RankChoice | None,
        rng: np.random.Generator,
    ) -> Contrast:
        logger.info("joint fit, r = %d and l = %d", *ranks)
        if self.n_foreground_ == 0:
            self._nothing_found(ranks, problem.fore.n_features)
        fore, dimension = problem.fore, min(ranks.n_foreground, problem.whiten.shape[1])
        guess = subspace_ica(fore, pooled(problem.backs), rows[0], dimension, rng=rng, warn=False)
        known = None
        if choice is not None and choice.n_background == ranks.n_background:
            known = choice.vectors
        return joint_contrast(
            *(fore, problem.backs, *ranks),
            rng=rng,
            guess=guess.foreground.vectors,
            gain_t_value=partial(gain_t_value, groups, [t.squared_norm() for t in problem.tensors]),
            known=known,
            problem=problem,
            max_iter=max(self.max_iter, JOINT_STEPS),
        )

    def _joint_t_values(
        self, problem: JointProblem, groups: list[RowGroups], found: Contrast
    ) -> np.ndarray:
        """Of every foreground pattern: its weight over its standard error."""
        vectors = np.column_stack([found.background.vectors, found.foreground.vectors])
        if vectors.size > MOST_JUDGED:
            return np.full(found.foreground.weights.size, np.nan)
        inside = problem.whiten.T @ vectors
        inside /= np.linalg.norm(inside, axis=0)
        free = np.ones((len(problem.tensors), inside.shape[1]), dtype=bool)
        weights = fit_weights(problem.tensors, inside, free)
        norms = [tensor.squared_norm() for tensor in problem.tensors]
        tested = weight_t_values(groups, inside, weights, norms)
        return tested.t_values[0, found.background.weights.size :]

    def _in_subspace(
        self,
        fore: Cumulants,
        backs: list[Cumulants],
        rows: list[np.ndarray],
        rng: np.random.Generator,
    ) -> Separation:
        logger.info("contrast subspace")
        dimension = self._dimension(rows)
        kept = self.n_components or max(self.n_foreground_, 1)
        found = subspace_ica(fore, pooled(backs), rows[0], dimension, rng=rng, n_kept=kept)
        self.n_background_ = 0
        self.background_components_ = np.empty((0, self.n_features_in_))
        self.background_weights_ = self.shared_weights_ = np.empty(0)
        residual = relative_norm(fore.fourth - found.foreground.tensor(), fore.fourth)
        return Separation(found.foreground, found.ratio, residual, found.n_iter)

    def _dimension(self, rows: list[np.ndarray]) -> int:
        """Of the contrast subspace: as asked for, or from the data, at least what is to be kept."""
        p = rows[0].shape[1]
        if self.n_foreground is not None:
            self.n_foreground_ = check_count("n_foreground", self.n_foreground)
            if self.n_foreground_ > p and self.solver == "subspace":
                raise ValueError(
                    f"n_foreground={self.n_foreground_} is more than the {p} dimensions there are. "
                    "Lower it."
                )
            self.n_foreground_ = min(self.n_foreground_, p)
            return self.n_foreground_
        background = rows[1]
        if len(rows) > 2:
            background = np.vstack([part - part.mean(axis=0) for part in rows[1:]])
        # permutations of their own: near the edge the dimension would otherwise change with random_state
        found = choose_dimension(rows[0], background, rng=np.random.default_rng(0))
        self.n_foreground_ = found.chosen
        if found.fewest < found.most:
            self.near_ties_ += (
                f"from {found.fewest} to {found.most} directions stand out, {found.chosen} were counted",
            )
        wanted = min(self.n_components or 1, p)
        if self.n_foreground_ == 0:
            warn_user(
                "no direction stands out from a permutation null of the contrast ratio "
                "(n_foreground_ = 0). The strongest candidates are returned all the same; treat them as "
                "noise, or set n_foreground.",
                PatternWarning,
            )
            return wanted
        # One to spare: a direction that just fails the test still holds part of the patterns, and where
        # it does not, a source of low contrast comes out that is ranked last.
        return min(max(self.n_foreground_ + 1, wanted), p)

    def _separate(self, fore: Cumulants, back: Cumulants, ranks: Ranks) -> Separation:
        found = contrast(
            *(fore, back, *ranks),
            rng=generator(self.random_state),
            deflation=self.deflation,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        return self._keep_background(found)

    def _keep_background(self, found: Contrast) -> Separation:
        self.background_components_ = self._lift_patterns(found.background.vectors)
        self.background_weights_ = found.background.weights
        self.n_background_ = found.background.weights.size  # a tensor of lower rank has fewer
        self.shared_weights_ = found.shared_weights
        return Separation(found.foreground, found.ratio, found.residual, found.background.n_iter)

    def _store(self, fore: Cumulants, found: Separation) -> None:
        super()._store(fore, found)
        kept = found.order()[: len(self.components_)]
        unknown = np.full(found.ratio.size, np.nan)
        self.pattern_t_values_ = (unknown if found.t_values is None else found.t_values)[kept]

    def summary(self) -> str:
        """What was chosen and why, and what was found, in a few lines of text.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        lines = [f"solver: {self.solver_} ({self.reason_})"]
        sizes = f"{self.n_foreground_} foreground patterns, in {self.n_pcs_} dimensions"
        if self.solver_ in ("paper", "joint"):
            sizes = f"{self.n_background_} background and {sizes}"
        lines.append(f"ranks: {sizes}")
        if self.solver_ == "subspace" and self.n_rows_held_[0] < self.n_samples_:
            held, total = self.n_rows_held_[0], self.n_samples_
            lines.append(f"rows: dimension and rotation from a sample of {held} of {total}")
        if self.rank_choice_ is not None:
            lines.append(f"rank selection: {self.rank_choice_.description}")
        lines += [f"near a tie: {tie}" for tie in self.near_ties_]
        along = ratio_name(self)
        for i, (ratio, weight, t_value) in enumerate(
            zip(
                self.contrast_ratio_, self.foreground_weights_, self.pattern_t_values_, strict=True
            ),
            start=1,
        ):
            line = f"pattern {i}: {along} = {ratio:.4g}, weight {weight:.4g}"
            lines.append(line if np.isnan(t_value) else f"{line}, t = {t_value:.1f}")
        return "\n".join(lines)


def _cancelling(problem: JointProblem, found: Contrast) -> np.ndarray:
    """Which foreground patterns lie along a background pattern of opposite weight that undoes them.

    Together the two are a change of the background's weight, and neither is a pattern by itself, however
    large the t-value of each.
    """
    inside, shared = (
        problem.whiten.T @ part.vectors for part in (found.foreground, found.background)
    )
    sizes, shared_sizes = (np.linalg.norm(vectors, axis=0) for vectors in (inside, shared))
    cosines = np.abs((inside / sizes).T @ (shared / shared_sizes))
    own = (found.foreground.weights * sizes**4)[:, None]
    theirs = (found.shared_weights * shared_sizes**4)[None, :]
    undone = np.abs(own + theirs) < 0.5 * np.minimum(np.abs(own), np.abs(theirs))
    return np.asarray(((cosines > TWINS) & undone).any(axis=1))
