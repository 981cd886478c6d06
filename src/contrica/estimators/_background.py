"""A background that cross-validation leaves alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from contrica.errors import GroupsError
from contrica.rows.groups import split_groups

__all__ = ["Background", "GroupLabels", "group_labels"]


class Background:
    """Holds a background so that scikit-learn does not slice it along with ``X``.

    Cross-validation cuts every fit argument that has as many rows as ``X`` to the training rows. A
    background with, by chance, as many rows would lose some in silence. This holder has no length
    and no shape, so it passes whole.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_features), or list of such
    groups : array-like of shape (n_samples,), or list of such, optional
        Which rows belong together, such as those of one donor: ``background_groups`` of ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> Background(np.zeros((10, 3)))
    Background(10 × 3)
    """

    def __init__(self, data: Any, groups: Any = None) -> None:
        self.data = data
        self.groups = groups

    def __repr__(self) -> str:
        shape = getattr(self.data, "shape", None)
        return f"Background({' × '.join(map(str, shape))})" if shape else "Background(...)"


class GroupLabels(NamedTuple):
    """Labels of the groups of a foreground's rows, and of its backgrounds'."""

    fore: Any
    backs: Any

    def of_each(self, n_backgrounds: int) -> list[tuple[str, Any]]:
        """Labels of every dataset, by the name that errors call them."""
        parts = split_groups(self.backs, n_backgrounds)
        name = "background_groups"
        names = [name] if n_backgrounds == 1 else [f"{name}[{i}]" for i in range(n_backgrounds)]
        return [("groups", self.fore), *zip(names, parts, strict=True)]


def background_labels(background: Any, background_groups: Any) -> Any:
    """Labels of a background's groups, from where they were given.

    Parameters
    ----------
    background, background_groups : object
        As of ``fit``.

    Returns
    -------
    array-like, list of such, or None
    """
    if not isinstance(background, Background) or background.groups is None:
        return background_groups
    if background_groups is not None:
        raise GroupsError(
            "groups-twice",
            "`background_groups` was given, and so were groups in Background(...)",
            remedy="Leave one of them out.",
            parameter="background_groups",
        )
    return background.groups


def group_labels(background: Any, groups: Any, background_groups: Any) -> GroupLabels | None:
    """Labels of groups as ``fit`` was given them: of both datasets, or of neither.

    Parameters
    ----------
    background, groups, background_groups : object
        As of ``fit``.

    Returns
    -------
    GroupLabels or None
    """
    background_groups = background_labels(background, background_groups)
    if groups is None and background_groups is None:
        return None
    if background is None:
        raise GroupsError(
            "groups-alone",
            "`groups` was given without a background",
            remedy="Pass fit(X, background=..., groups=..., background_groups=...).",
            parameter="groups",
        )
    if groups is None or background_groups is None:
        missing = "groups" if groups is None else "background_groups"
        raise GroupsError(
            "groups-of-one",
            f"`{missing}` is missing",
            "chance is measured between groups of both datasets",
            f"Pass `{missing}` too.",
            missing,
        )
    return GroupLabels(groups, background_groups)
