"""How many contrast directions stand out where rows come in groups: whole groups are permuted."""

from __future__ import annotations

import numpy as np

from contrica.solvers.contrast_directions import contrast_axes
from contrica.solvers.group_design import GroupDesign, split
from contrica.solvers.permutation_null import ContrastScree, largest_ratio
from contrica.solvers.rescaling import Rescaling

__all__ = ["count_by_groups"]

# Level of the test for each direction, and assignments of groups to make where not all are made.
LEVEL, N_ASSIGNMENTS = 0.05, 999


def count_by_groups(
    design: GroupDesign,
    *,
    rng: np.random.Generator,
    n_assignments: int = N_ASSIGNMENTS,
    rescaling: Rescaling | None = None,
) -> ContrastScree:
    """How many contrast directions stand out when whole groups change places.

    Groups of both datasets, each about its dataset's mean, are assigned anew to foreground and
    background; a group of both has its two halves swapped. Means, covariances and ρ are taken anew each
    time. The p-value of the first direction is the share of assignments, the observed one among them,
    whose largest ratio is at least the observed. For the next direction, the ones before are projected
    out of all groups. It counts while p is at most .05, and p never falls.

    Parameters
    ----------
    design : GroupDesign
    rng : numpy.random.Generator
        Draws assignments, where there are more than are made.
    n_assignments : int
        To make besides the observed one.
    rescaling : Rescaling, optional
        Where variables were divided by standard deviations: every assignment divides anew.

    Returns
    -------
    ContrastScree
    """
    masks = design.assignments(n_assignments, rng)
    splits = [split(design.groups, mask, rescaling) for mask in masks]
    ratios, axes = contrast_axes(splits[0].fore, splits[0].back, floor=splits[0].floor)
    p_values: list[float] = []
    null = np.empty(0)
    for first in range(len(ratios)):
        # orthonormal axes of what the directions before leave, in which ρ stays what it is
        inside = np.linalg.qr(axes[:, first:])[0]
        largest = np.array([
            largest_ratio(inside.T @ fore @ inside, inside.T @ back @ inside, floor)
            for fore, back, floor in splits
        ])  # fmt: skip
        null = largest[1:] if first == 0 else null
        # rounding must not decide between equals
        exceeding = float(np.mean(largest >= ratios[first] * (1 - 1e-9)))
        p_values.append(max([exceeding, *p_values[-1:]]))
        if p_values[-1] > LEVEL:
            break
    count = sum(value <= LEVEL for value in p_values)
    spread = float(null.std(ddof=1)) if null.size > 1 else float("nan")
    return ContrastScree(
        ratios,
        *(count, count, count),
        null_mean=float(null.mean()) if null.size else float("nan"),
        null_deviation=spread,
        p_values=np.array(p_values),
        n_assignments=len(masks),
    )
