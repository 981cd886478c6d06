"""Which rows belong together: rows of one animal, donor or photograph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import GroupsError

__all__ = ["Groups", "as_groups", "group_name", "is_missing", "split_groups"]


class Groups(NamedTuple):
    """The group of every row.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows,)
        Numbers of the groups.
    names : tuple of str
        Their names, by number.
    """

    codes: np.ndarray
    names: tuple[str, ...]

    def take(self, index: np.ndarray) -> Groups:
        """Groups of some of the rows; those without a row keep their number.

        Parameters
        ----------
        index : ndarray of int

        Returns
        -------
        Groups
        """
        return Groups(self.codes[index], self.names)


def as_groups(labels: Any, n_rows: int, name: str, rows_name: str) -> Groups:
    """Check labels of groups, one for every row.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Text or numbers.
    n_rows : int
    name, rows_name : str
        What errors call the labels and the rows.

    Returns
    -------
    Groups

    Examples
    --------
    >>> as_groups(["b", "a", "b", "b"], 4, "groups", "X")
    Groups(codes=array([1, 0, 1, 1]), names=('a', 'b'))
    """
    given = np.asarray(labels, dtype=object)
    if given.ndim != 1 or given.size != n_rows:
        raise GroupsError(
            "groups-length",
            f"`{name}` has shape {given.shape}",
            f"`{rows_name}` has {n_rows} rows, and each needs the name of its group",
            parameter=name,
        )
    missing = [i for i, label in enumerate(given) if is_missing(label)]
    if missing:
        raise GroupsError(
            "groups-missing",
            f"`{name}` has {len(missing)} missing values, the first in row {missing[0]}",
            "every row needs a group",
            "Give these rows a group of their own, or leave them out.",
            name,
        )
    names, codes = np.unique(np.array([group_name(label) for label in given]), return_inverse=True)
    _check_number(len(names), n_rows, name, rows_name)
    return Groups(codes.ravel(), tuple(str(each) for each in names))


def _check_number(n_groups: int, n_rows: int, name: str, rows_name: str) -> None:
    if n_groups == 1:
        raise GroupsError(
            "one-group",
            f"`{name}` has one group for all rows of `{rows_name}`",
            "chance is measured between groups, so that at least two are needed",
            f"Leave `{name}` out if rows are independent.",
            name,
        )
    if 2 * n_groups > n_rows:
        raise GroupsError(
            "many-groups",
            f"`{name}` has {n_groups} groups for {n_rows} rows of `{rows_name}`",
            "groups are for rows that belong together, two or more in most of them",
            f"Leave `{name}` out if rows are independent. If it names the rows, give the part that rows "
            "of one group share, such as 309 of 309_1 to 309_15.",
            name,
        )


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, NA or empty text.

    Parameters
    ----------
    label : object

    Returns
    -------
    bool

    Examples
    --------
    >>> [is_missing(label) for label in ("a", "", None, float("nan"), 0)]
    [False, True, True, True, False]
    """
    if label is None or (isinstance(label, str) and not label.strip()):
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas' NA has no truth
        return True


def group_name(label: Any) -> str:
    """A label as text: whole numbers are written as such, so that 101 and 101.0 are one group.

    Parameters
    ----------
    label : object

    Returns
    -------
    str
    """
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def split_groups(labels: Any, n_backgrounds: int) -> Sequence[Any]:
    """Labels of the groups of every background, one of them for each.

    Parameters
    ----------
    labels : array-like, or list of such for several backgrounds, or None
    n_backgrounds : int

    Returns
    -------
    sequence
    """
    if labels is None:
        return [None] * n_backgrounds
    if n_backgrounds == 1:
        nested = isinstance(labels, list | tuple) and len(labels) == 1 and np.ndim(labels[0]) == 1
        return [labels[0] if nested else labels]
    if not isinstance(labels, list | tuple) or len(labels) != n_backgrounds:
        raise GroupsError(
            "groups-length",
            f"`background_groups` is a {type(labels).__name__}",
            f"a list with the groups of each of the {n_backgrounds} backgrounds is needed",
            parameter="background_groups",
        )
    return labels
