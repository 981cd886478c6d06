"""Which cells and which variables of an AnnData object are meant, checked before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import (
    DataError,
    DataTypeError,
    FeaturesError,
    GroupsError,
    ParameterError,
    unmarked,
)
from contrica.rows.groups import group_name, is_missing
from contrica.rows.protocol import Rows
from contrica.rows.selected import select

__all__ = [
    "MIN_CELLS",
    "Cells",
    "Source",
    "check_adata",
    "check_known",
    "column_labels",
    "find_cells",
    "find_source",
    "group_labels_of",
]

# Cells of a foreground or a background below which nothing is fitted.
MIN_CELLS = 30
# Names that an error lists.
N_LISTED = 10


def check_adata(adata: Any, name: str = "adata") -> None:
    """Refuse what is not an AnnData object, and one whose variables cannot be told apart.

    Parameters
    ----------
    adata : object
    name : str
        What errors call it.
    """
    if not all(hasattr(adata, each) for each in ("obs", "var", "obsm", "uns")):
        raise DataTypeError(
            "not-anndata",
            f"`{name}` is a {type(adata).__name__}",
            "an AnnData object is needed",
            "For arrays and data frames there is contrica.ContrastiveICA.",
            name,
        )
    if not adata.var_names.is_unique:
        twice = adata.var_names[adata.var_names.duplicated()].unique()
        raise FeaturesError(
            "same-names",
            f"`{name}` has more than one variable called {_listed(twice)}",
            remedy=f"Call {name}.var_names_make_unique() first.",
            parameter=name,
        )


def _listed(names: Iterable[Any]) -> str:
    names = [unmarked(each) for each in names]
    more = f" and {len(names) - N_LISTED} more" if len(names) > N_LISTED else ""
    return (", ".join(names[:N_LISTED]) or "none") + more


def check_known(parameter: str, value: Any, known: Iterable[Any], where: str) -> None:
    """Refuse a name that is not there, with what is, and with the nearest.

    Parameters
    ----------
    parameter : str
    value : object
    known : iterable of str
    where : str
        Such as "adata.obs".
    """
    names = [str(each) for each in known]
    if isinstance(value, str) and value in names:
        return
    near = get_close_matches(str(value), names, 1, 0.6)
    guess = f" Did you mean {unmarked(near[0])!r}?" if near else ""
    raise ParameterError(
        "not-there",
        f"`{parameter}={unmarked(value)}` is not in {where}",
        remedy=f"There are {_listed(names)}.{guess}",
        parameter=parameter,
    )


class Labels(NamedTuple):
    """The text in a column of ``obs``, by number; −1 where it is missing."""

    codes: np.ndarray
    names: tuple[str, ...]


def column_labels(adata: Any, column: Any, parameter: str) -> Labels:
    """The labels that a column of ``obs`` has.

    Parameters
    ----------
    adata : AnnData
    column : str
    parameter : str
        Which names the column.

    Returns
    -------
    Labels
    """
    import pandas as pd

    check_known(parameter, column, adata.obs.columns, "adata.obs")
    codes, found = pd.factorize(adata.obs[column])
    missing = np.array([is_missing(each) for each in found], dtype=bool)
    texts = [group_name(each) for each in found]
    names = tuple(dict.fromkeys(np.array(texts, dtype=object)[~missing]))
    number = {name: i for i, name in enumerate(names)}
    numbers = [-1 if gone else number[t] for t, gone in zip(texts, missing, strict=True)]
    return Labels(np.array([*numbers, -1], dtype=int)[codes], names)


class Cells(NamedTuple):
    """Cells of foreground and background.

    Attributes
    ----------
    fore, back : ndarray of bool, shape (n_obs,)
    foreground, background : tuple of str
        The levels.
    """

    fore: np.ndarray
    back: np.ndarray
    foreground: tuple[str, ...]
    background: tuple[str, ...]


def find_cells(adata: Any, groupby: Any, background: Any, foreground: Any) -> Cells:
    """Cells of foreground and background by the levels of a column of ``obs``.

    Parameters
    ----------
    adata : AnnData
    groupby : str
    background : str, or sequence of str
    foreground : str, sequence of str, or None
        ``None``: all others.

    Returns
    -------
    Cells
    """
    labels = column_labels(adata, groupby, "groupby")
    back = _levels(background, labels, "background", groupby)
    if foreground is None:
        n_missing = int(np.sum(labels.codes < 0))
        if n_missing:
            raise DataError(
                "labels-missing",
                f"{n_missing} cells have no value in `groupby={unmarked(groupby)}`",
                "without `foreground` all cells that are not background are the foreground",
                "Name the levels of the foreground, or leave these cells out.",
                "groupby",
            )
        fore = tuple(name for name in labels.names if name not in back)
    else:
        fore = _levels(foreground, labels, "foreground", groupby)
    both = [name for name in fore if name in back]
    if both:
        raise ParameterError(
            "overlap",
            f"{_listed(both)} is named in both `foreground` and `background`",
            "a cell can be in one of them only",
            "Leave it out of one.",
            "foreground",
        )
    number = {name: i for i, name in enumerate(labels.names)}
    masks = [np.isin(labels.codes, [number[name] for name in each]) for each in (fore, back)]
    for name, mask in zip(("foreground", "background"), masks, strict=True):
        if mask.sum() < MIN_CELLS:
            raise DataError(
                "few-cells",
                f"the {name} has {int(mask.sum())} cells",
                f"at least {MIN_CELLS} are needed, and hundreds to tell patterns from chance",
                f"Choose other levels of `groupby={unmarked(groupby)}`, or add cells.",
                name,
            )
    return Cells(masks[0], masks[1], fore, back)


def _levels(value: Any, labels: Labels, parameter: str, groupby: str) -> tuple[str, ...]:
    listed = isinstance(value, Sequence | np.ndarray | set) and not isinstance(value, str)
    given = list(value) if listed else [value]
    if not given:
        raise ParameterError(
            "empty", f"`{parameter}` is empty", "a level is needed", parameter=parameter
        )
    names = tuple(dict.fromkeys(group_name(each) for each in given))
    for name in names:
        check_known(parameter, name, labels.names, f"adata.obs[{unmarked(groupby)!r}]")
    return names


def group_labels_of(adata: Any, groups: str | None, cells: Cells) -> dict[str, Any]:
    """Labels of groups of both datasets, as ``fit`` takes them; empty without groups.

    Parameters
    ----------
    adata : AnnData
    groups : str or None
        Column of ``obs``.
    cells : Cells

    Returns
    -------
    dict
    """
    if groups is None:
        return {}
    labels = column_labels(adata, groups, "groups")
    names = np.array([*labels.names, ""], dtype=object)[labels.codes]
    n_missing = int(np.sum((labels.codes < 0) & (cells.fore | cells.back)))
    if n_missing:
        raise GroupsError(
            "groups-missing",
            f"{n_missing} cells of foreground or background have no value in "
            f"`groups={unmarked(groups)}`",
            "every cell needs a group",
            "Leave these cells out.",
            "groups",
        )
    found = {"groups": names[cells.fore], "background_groups": names[cells.back]}
    for part, own in zip(("foreground", "background"), found.values(), strict=True):
        if len(set(own)) == 1:
            raise GroupsError(
                "one-group",
                f"all cells of the {part} have one value in `groups={unmarked(groups)}`: "
                f"{unmarked(own[0])}",
                "chance is measured between groups, so that each of both needs at least two",
                "Leave `groups` out: what is found describes these, and others may differ.",
                "groups",
            )
    return found


class Source(NamedTuple):
    """The matrix that is meant, and its variables that are used.

    Attributes
    ----------
    data : object
        Any container of n_obs rows.
    names : ndarray of str
        Of the variables used.
    columns : ndarray of int
        Their numbers.
    mask_var : str
        Which variables were chosen, in a word.
    """

    data: Any
    names: np.ndarray
    columns: np.ndarray
    mask_var: str

    def rows(self, kept: np.ndarray, *, lazily: bool = False) -> Any:
        """Rows of some cells, with the names of the variables.

        Parameters
        ----------
        kept : ndarray of bool
        lazily : bool
            For one pass.

        Returns
        -------
        DataFrame or Rows
        """
        found = select(self.data, kept, self.columns, lazily=lazily)
        if isinstance(found, Rows):
            found.columns = self.names  # type: ignore[attr-defined]
            return found
        import pandas as pd

        return pd.DataFrame(found, columns=self.names)


def find_source(
    adata: Any, layer: str | None, use_rep: str | None, mask_var: Any, names: Any = None
) -> Source:
    """The matrix that is meant: ``X``, a layer, or a representation in ``obsm``.

    Parameters
    ----------
    adata : AnnData
    layer, use_rep : str or None
    mask_var : str, array of bool, False or None
    names : sequence of str, optional
        Variables to use, in this order, in place of ``mask_var``.

    Returns
    -------
    Source
    """
    if use_rep is not None:
        return _representation(adata, layer, use_rep, mask_var)
    if layer is not None:
        check_known("layer", layer, adata.layers, "adata.layers")
    data = adata.X if layer is None else adata.layers[layer]
    if data is None:
        raise DataError(
            "no-matrix",
            "`adata` has no X",
            remedy=f"Name a layer: `layer`. There are {_listed(adata.layers)}.",
            parameter="layer",
        )
    if names is not None:
        columns = _columns_of(adata, names)
        return Source(data, np.asarray(names, dtype=object), columns, "")
    mask, word = _mask(adata, mask_var)
    columns = np.flatnonzero(mask)
    return Source(data, np.asarray(adata.var_names, dtype=object)[columns], columns, word)


def _columns_of(adata: Any, names: Any) -> np.ndarray:
    columns = np.asarray(adata.var_names.get_indexer(names))
    if (columns < 0).any():
        absent = [name for name, at in zip(names, columns, strict=True) if at < 0]
        raise FeaturesError(
            "names",
            f"`adata` lacks {len(absent)} of the {len(columns)} variables that were fitted: "
            f"{_listed(absent)}",
            remedy="Use the same genes under the same names, or fit again to those in common.",
            parameter="adata",
        )
    return columns


def _mask(adata: Any, mask_var: Any) -> tuple[np.ndarray, str]:
    everything = np.ones(adata.n_vars, dtype=bool)
    if mask_var is None:
        mask_var = "highly_variable" if "highly_variable" in adata.var else False
    if mask_var is False:
        return everything, ""
    if isinstance(mask_var, str):
        check_known("mask_var", mask_var, adata.var.columns, "adata.var")
        mask, word = np.asarray(adata.var[mask_var]), mask_var
    else:
        mask, word = np.asarray(mask_var), "array"
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ParameterError(
            "not-a-mask",
            f"`mask_var` is of type {mask.dtype} and of shape {mask.shape}",
            f"True or False for each of the {adata.n_vars} variables is needed",
            "Name such a column of adata.var, give such an array, or False to use all.",
            "mask_var",
        )
    if mask.sum() < 2:
        raise ParameterError(
            "too-few-variables",
            f"`mask_var` leaves {int(mask.sum())} variables",
            "at least 2 are needed",
            parameter="mask_var",
        )
    return mask, word


def _representation(adata: Any, layer: str | None, use_rep: str, mask_var: Any) -> Source:
    if layer is not None or not (mask_var is None or mask_var is False):
        other = "layer" if layer is not None else "mask_var"
        raise ParameterError(
            "not-together",
            f"`{other}` was given with `use_rep={unmarked(use_rep)}`",
            "a representation has coordinates of its own",
            f"Leave `{other}` out.",
            other,
        )
    check_known("use_rep", use_rep, adata.obsm, "adata.obsm")
    data = adata.obsm[use_rep]
    data = data.to_numpy() if hasattr(data, "to_numpy") else data
    count = int(data.shape[1])
    names = np.array([f"{use_rep}_{i + 1}" for i in range(count)], dtype=object)
    return Source(data, names, np.arange(count), "")
