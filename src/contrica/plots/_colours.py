"""Colours that stay apart for colour-blind readers, and labels of rows in any form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import DataError, unmarked
from contrica.labels import group_numbers

__all__ = [
    "BACKGROUND",
    "COLOURS",
    "CONTINUOUS",
    "DIVERGING",
    "FOREGROUND",
    "MAX_SHOWN",
    "NO_LABEL",
    "Labels",
    "colour_bar",
    "colour_cycle",
    "legend",
]

# Colours that stay apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FOREGROUND, BACKGROUND, NO_LABEL = COLOURS[1], "0.75", "0.5"
# Of numbers from low to high, and of signed numbers.
CONTINUOUS, DIVERGING = "viridis", "RdBu_r"
# Groups in one legend; integers with more values than these are a scale.
MAX_SHOWN = 24
# Groups with the same colour have another marker.
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


class Labels(NamedTuple):
    """Labels of rows: a group of each row, or a value of each.

    Attributes
    ----------
    numbers : ndarray of int, shape (n_rows,)
        Group of every row; −1 for none. Empty where labels are values.
    names : tuple of str
        Of the groups.
    values : ndarray of float, shape (n_rows,) or None
        Numbers on a scale, NaN where there is none.
    title : str
        What the labels are called.
    colours : tuple of str
        Of the groups.
    """

    numbers: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray | None = None
    title: str = ""
    colours: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        labels: Any,
        n_rows: int,
        names: Sequence[str] | None = None,
        *,
        colours: Sequence[str] | None = None,
        parameter: str = "labels",
    ) -> Labels | None:
        """Read labels of any form.

        Text, booleans, categories and few distinct whole numbers are groups; other numbers are values on
        a scale.

        Parameters
        ----------
        labels : list, array, Series or Categorical of length n_rows, Labels, or None
        n_rows : int
        names : sequence of str, optional
            Of the groups 0, 1, …, or of the sorted labels.
        colours : sequence of str, optional
            Of the groups.
        parameter : str
            What errors call the labels.

        Returns
        -------
        Labels or None
        """
        if labels is None or isinstance(labels, Labels):
            return labels
        if np.shape(labels) != (n_rows,):
            raise DataError(
                "n-labels",
                f"`{parameter}` has {_counted(labels)}",
                f"the scores have {n_rows} rows",
                "Give one label per row, in the same order.",
                parameter,
            )
        title = str(getattr(labels, "name", None) or "")
        numbers, found = _categories(labels)
        if numbers is None:
            values = _numeric(labels)
            if names is None and values is not None and _is_scale(values):
                return cls(np.empty(0, dtype=int), (), values, title)
            numbers, found = _groups(labels, values, names)
        if names is not None:
            found = _renamed(found, names, parameter)
        own = colour_cycle(len(found)) if colours is None else tuple(colours)
        return cls(numbers, found, None, title, own)

    def marker(self, number: int) -> str:
        """Of a group: another one each time that colours repeat."""
        before = self.colours[:number].count(self.colours[number])
        return MARKERS[before % len(MARKERS)]


def _counted(labels: Any) -> str:
    shape = np.shape(labels)
    return f"{shape[0]} labels" if len(shape) == 1 else f"shape {shape}"


def _categories(labels: Any) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Codes and names of what pandas calls categorical."""
    codes = getattr(getattr(labels, "cat", labels), "codes", None)
    categories = getattr(getattr(labels, "dtype", None), "categories", None)
    if codes is None or categories is None:
        return None, ()
    return np.asarray(codes, dtype=int), tuple(str(name) for name in categories)


def _numeric(labels: Any) -> np.ndarray | None:
    """As floats, NaN where there is none; None where they are not numbers."""
    kind = getattr(getattr(labels, "dtype", None), "kind", None)
    if hasattr(labels, "iloc") and kind in ("i", "u", "f"):  # pandas' own missing values
        return np.asarray(labels.to_numpy(dtype=float, na_value=np.nan))
    values = np.asarray(labels)
    return values.astype(float) if values.dtype.kind in "iuf" else None


def _is_scale(values: np.ndarray) -> bool:
    known = values[np.isfinite(values)]
    return bool((known != np.round(known)).any()) or np.unique(known).size > MAX_SHOWN


def _groups(
    labels: Any, values: np.ndarray | None, names: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    if values is None:
        return group_numbers(labels)
    known = np.isfinite(values)
    if names is not None and known.all() and (values < len(names)).all():
        whole = values.astype(int)
        if (whole == values).all():  # numbers of the names; below 0 there is none
            return np.where(whole < 0, -1, whole), tuple(str(i) for i in range(len(names)))
    distinct = np.unique(values[known])
    numbers = np.where(known, np.searchsorted(distinct, values), -1)
    return numbers, tuple(f"{value:.15g}" for value in distinct)


def _renamed(found: Sequence[str], names: Sequence[str], parameter: str) -> tuple[str, ...]:
    if len(names) != len(found):
        raise DataError(
            "label-names",
            f"{len(names)} names were given for the {len(found)} groups of `{parameter}`: "
            f"{unmarked(', '.join(found[:8]))}",
            remedy="Give one name per group, in sorted order.",
            parameter=parameter,
        )
    return tuple(str(name) for name in names)


def colour_cycle(count: int) -> tuple[str, ...]:
    """Colours of so many groups; from the eighth on they repeat.

    Parameters
    ----------
    count : int

    Returns
    -------
    tuple of str
    """
    return tuple(COLOURS[(i + 1) % len(COLOURS)] for i in range(count))


def colour_bar(ax: Any, mappable: Any, title: str, *, size: float = 8) -> Any:
    """The scale of continuous labels, beside some axes.

    Parameters
    ----------
    ax : Axes, or list of Axes
    mappable : what was drawn with a colour map
    title : str
    size : float
        Of the text.

    Returns
    -------
    matplotlib Colorbar
    """
    first = ax[0] if isinstance(ax, list) else ax
    bar = first.figure.colorbar(mappable, ax=ax, shrink=0.8, aspect=25)
    bar.solids.set_alpha(1)
    bar.set_label(title, size=size + 1)
    bar.ax.tick_params(labelsize=size)
    return bar


def legend(target: Any, axes: Sequence[Any], **where: Any) -> None:
    """One legend of what is drawn on the first of some axes that has anything to tell.

    Parameters
    ----------
    target : Axes or Figure
        Which has the legend.
    axes : sequence of Axes
    **where
        As of matplotlib's ``legend``.
    """
    handles, shown = next(
        (found for found in (ax.get_legend_handles_labels() for ax in axes) if found[0]), ([], [])
    )
    if len(handles) > MAX_SHOWN:
        handles, shown = handles[:MAX_SHOWN], [*shown[: MAX_SHOWN - 1], "… and more"]
    if handles:
        found = target.legend(handles, shown, frameon=False, **where)
        for handle in found.legend_handles:
            handle.set_alpha(1)
