"""The contrast subspace as a solver: its dimension from the permutation null, then ICA inside it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from contrica.decompositions import Decomposition
from contrica.errors import (
    DataError,
    GroupsError,
    GroupWarning,
    ParameterError,
    PatternWarning,
    warn,
)
from contrica.rows.moving import work_on
from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.group_design import GroupDesign
from contrica.solvers.permutation_null import LEVEL, ContrastScree, count_directions
from contrica.solvers.problem import Problem, Request, Separation, nothing
from contrica.solvers.ranks import Ranks
from contrica.solvers.row_design import RowDesign
from contrica.solvers.subspace import SubspaceFit, subspace_ica
from contrica.solvers.varying import only_shifted
from contrica.validation import check_count

__all__ = ["check_dimension", "contrast_scree", "design_of", "permutation_scree", "solve_subspace"]

logger = logging.getLogger("contrica")

# Directions beyond those that exceed all permutations: one that just does not still has part of the
# patterns, and where it does not, a source of low contrast comes out that is ranked last. And how many at
# least. (Those of the level, some more, leave patterns a little worse: the rotation has more to turn.)
TO_SPARE, MIN_DIMENSION = 1, 3


def solve_subspace(problem: Problem, request: Request, *, rng: np.random.Generator) -> Separation:
    """Independent sources inside the subspace of largest contrast ratio.

    Parameters
    ----------
    problem : Problem
    request : Request
        ``n_foreground`` is the dimension of the subspace; there are no background patterns.
    rng : numpy.random.Generator
        Source of the rotations to start from.

    Returns
    -------
    Separation
    """
    logger.info("contrast subspace")
    scree = contrast_scree(problem, request)
    if scree.chosen == 0:
        _warn_nothing_stands_out(scree)
    p = problem.n_features
    dimension = min(max(scree.n_beyond + TO_SPARE, MIN_DIMENSION), p)
    if request.n_foreground is not None:
        dimension = scree.chosen
    search = partial(_search, problem, rng, request)
    found = search(dimension, 0)
    # a dimension that was given is kept to; otherwise what else stands out, or is asked for, is sought
    # beyond it
    wanted = min(max(request.n_components or 0, scree.chosen), p)
    more = 0 if request.n_foreground is not None else wanted - dimension
    parts = [found] if more <= 0 else [found, *_beyond(search, more, dimension)]
    shifted = only_shifted(problem, np.column_stack([part.filters for part in parts]))
    return Separation(
        foreground=Decomposition(
            np.concatenate([part.foreground.weights for part in parts]),
            np.column_stack([part.foreground.vectors for part in parts]),
        ),
        background=nothing(p),
        shared_weights=np.empty(0),
        ratio=np.concatenate([part.ratio for part in parts]),
        ranked_by="source_ratio",
        ranks=Ranks(0, scree.chosen),
        residual=float("nan"),
        n_iter=found.n_iter,
        significant=~shifted,
        only_shifted=shifted,
        near_ties=_near_ties(scree),
        scree=scree,
        tier=np.repeat(np.arange(len(parts)), [part.ratio.size for part in parts]),
    )


def _beyond(search: Callable[[int, int], SubspaceFit], more: int, skip: int) -> list[SubspaceFit]:
    """Sources along further contrast axes; none where the foreground varies along those before only."""
    try:
        return [search(more, skip)]
    except DataError as error:
        if error.code != "constant":
            raise
        return []


def _search(
    problem: Problem,
    rng: np.random.Generator,
    request: Request,
    dimension: int,
    skip: int,
) -> SubspaceFit:
    """Sources along some of the contrast axes."""
    floor = problem.design.floor if problem.is_grouped else None
    return subspace_ica(
        problem.fore,
        problem.back,
        problem.rows[0],
        dimension,
        rng=rng,
        skip=skip,
        floor=floor,
        **request.step_limit,
    )


def contrast_scree(problem: Problem, request: Request) -> ContrastScree:
    """Contrast ratios of all directions, and how many are asked for or stand out."""
    p = problem.n_features
    if request.n_foreground is not None:
        count = min(check_count("n_foreground", request.n_foreground), p)
        if count < request.n_foreground:
            _warn_of_room(request.n_foreground, p)
        if problem.is_grouped:  # the test says nothing of the number, but what it says is told
            return permutation_scree(problem)._replace(
                chosen=count, n_clear=count, n_possible=count
            )
        back = problem.back
        ratios = contrast_axes(problem.fore.covariance, back.covariance, back.n_samples)[0]
        return ContrastScree(ratios, chosen=count, n_clear=count, n_possible=count)
    return permutation_scree(problem)


def design_of(problem: Problem, strata: Sequence[np.ndarray] = ()) -> RowDesign | GroupDesign:
    """What is permuted: the groups of a problem where rows have some, its rows otherwise.

    Parameters
    ----------
    problem : Problem
        With a background.
    strata : sequence of ndarray of int, shape (n,)
        Of the rows of every dataset, within which rows or groups are permuted.

    Returns
    -------
    RowDesign or GroupDesign
    """
    if not problem.is_grouped:
        first, *backs = problem.rows
        codes = np.concatenate(strata) if strata else None
        sizes = zip(problem.datasets, problem.rows, strict=True)
        whole = all(part.n_samples == len(rows) for part, rows in sizes)
        covariances = [part.covariance for part in problem.datasets] if whole else None
        return RowDesign(first, backs, codes, covariances, problem.tensors, room=problem.room)
    design = problem.design
    return replace(design, strata=group_strata(problem, strata)) if strata else design


def permutation_scree(
    problem: Problem, design: RowDesign | GroupDesign | None = None, **options: Any
) -> ContrastScree:
    """The permutation null of a problem: of its groups where rows have some, of its rows otherwise.

    Parameters
    ----------
    problem : Problem
        With a background.
    design : RowDesign or GroupDesign, optional
        From `design_of`, where it has strata.
    options
        As of `contrica.solvers.permutation_null.count_directions`.

    Returns
    -------
    ContrastScree
    """
    with work_on(problem.device):
        return _permutation_scree(problem, design, options)


def _permutation_scree(
    problem: Problem, design: RowDesign | GroupDesign | None, options: dict[str, Any]
) -> ContrastScree:
    as_in_a_fit = design is None and not options
    # permutations of their own: near the level the count would otherwise change with random_state
    options = {"rng": np.random.default_rng(0), "rescaling": problem.rescaling} | options
    design = design_of(problem) if design is None else design
    if isinstance(design, GroupDesign):
        _warn_of_few(design)
    if not as_in_a_fit:
        return count_directions(design, **options)
    if "null" not in problem.known:
        problem.known["null"] = count_directions(design, **options)
    found: ContrastScree = problem.known["null"]
    return found


def group_strata(problem: Problem, strata: Sequence[np.ndarray]) -> np.ndarray:
    """The stratum of every group, of which all rows must be in one.

    Parameters
    ----------
    problem : Problem
    strata : sequence of ndarray of int, shape (n,)
        Of the rows of every dataset.

    Returns
    -------
    ndarray of int, shape (g,)
    """
    found = []
    for groups, codes in zip(problem.groups, strata, strict=True):
        if groups is None:
            continue
        for number in np.unique(groups.codes):
            own = np.unique(codes[groups.codes == number])
            if own.size > 1:
                raise GroupsError(
                    "strata-in-group",
                    f"rows of group {groups.names[number]} are in {own.size} strata",
                    "whole groups are permuted, so that each must be in one stratum",
                    "Leave `strata` out, or give the stratum of the group to all of its rows.",
                    "strata",
                )
            found.append(own[0])
    return np.array(found)


def _warn_of_few(design: GroupDesign) -> None:
    count = design.n_assignments
    if 1 / count > LEVEL:
        warn(
            GroupWarning(
                "too-few-groups",
                f"{len(design.groups.names)} groups can be assigned to foreground and background in "
                f"{count} ways, so that the smallest attainable p is {1 / count:.2g}: no pattern can be "
                f"significant at {LEVEL}",
                remedy="Add groups, or set `n_foreground`.",
                parameter="groups",
            )
        )


def check_dimension(request: Request, n_features: int) -> None:
    """Refuse a contrast subspace of more dimensions than there are.

    Parameters
    ----------
    request : Request
    n_features : int
    """
    if request.n_foreground is not None and request.n_foreground > n_features:
        raise ParameterError(
            "too-large",
            f"`n_foreground={request.n_foreground}` is more than the {n_features} dimensions there are",
            remedy="Lower it.",
            parameter="n_foreground",
        )


def _near_ties(scree: ContrastScree) -> tuple[str, ...]:
    """Directions whose p is near the level: what the permutations of a fit say could be otherwise."""
    tested = scree.p_values
    if scree.n_clear == scree.n_possible or tested.size == 0:
        return ()
    close = tested[scree.n_clear : scree.n_possible]
    near = ", ".join(f"{p:.2g}" for p in close) + (" is" if len(close) == 1 else " are")
    return (
        f"{scree.n_clear} to {scree.n_possible} directions stand out; {scree.chosen} were counted "
        f"(p = {near} near the level {LEVEL})",
    )


def _warn_of_room(n_foreground: int, n_features: int) -> None:
    warn(
        PatternWarning(
            "fewer-directions",
            f"`n_foreground={n_foreground}` is more than the {n_features} dimensions that a contrast "
            f"subspace can have: {n_features} are used",
            remedy="Lower `n_foreground`.",
            parameter="n_foreground",
        )
    )


def _warn_nothing_stands_out(scree: ContrastScree) -> None:
    p_value = f"p = {scree.p_values[0]:.2g}, " if scree.n_assignments else ""
    warn(
        PatternWarning(
            "nothing-found",
            f"no direction has a larger contrast ratio than {scree.unit} permuted between the datasets "
            f"have ({p_value}n_foreground_ = 0)",
            remedy="The strongest candidates are returned all the same, but these data do not show that "
            "they are new in the foreground: check them on other rows, or against what was not used.",
            parameter="n_foreground",
        )
    )
