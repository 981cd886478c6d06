"""What is drawn of an AnnData object: stored scores, cells by dataset, and columns with their colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrica.errors import ParameterError, unmarked
from contrica.plots._canvas import saved
from contrica.plots._colours import COLOURS, Labels, colour_cycle
from contrica.tl._selection import check_known, column_labels
from contrica.tl._storage import entry_of

__all__ = ["Stored", "as_numbers", "coloured_by", "column_of", "expression_of", "finished"]

# Backends that write files and show nothing.
SILENT = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


class Stored(NamedTuple):
    """Scores that `contrica.tl.cica` stored, and which cells are which.

    Attributes
    ----------
    entry : dict
        What is in ``uns``.
    scores : ndarray of shape (n_obs, n_components)
    names : list of str
        Of the patterns.
    fore, back : ndarray of bool, shape (n_obs,)
    """

    entry: dict[str, Any]
    scores: np.ndarray
    names: list[str]
    fore: np.ndarray
    back: np.ndarray

    @classmethod
    def of(cls, adata: Any, key: str) -> Stored:
        """Read what is stored under a key."""
        entry = entry_of(adata, key)
        check_known("key", f"X_{key}", adata.obsm, "adata.obsm")
        scores = np.asarray(adata.obsm[f"X_{key}"], dtype=float)
        asked = entry["params"]
        labels = column_labels(adata, str(asked["groupby"]), "key")
        names = np.array([*labels.names, ""], dtype=object)[labels.codes]
        fore, back = (
            np.isin(names, [str(level) for level in asked[part]])
            for part in ("foreground", "background")
        )
        titles = [f"{key} {i + 1}" for i in range(scores.shape[1])]
        return cls(entry, scores, titles, fore, back)


def as_numbers(components: Any, count: int) -> list[int]:
    """Numbers of two patterns: ``(1, 2)`` or, as in scanpy, ``"1,2"``; fewer where there is one only.

    Parameters
    ----------
    components : sequence of int, or str
    count : int
        Patterns that there are.

    Returns
    -------
    list of int
    """
    if components is None:
        return [1, 2][:count]
    if not isinstance(components, str):
        return list(np.atleast_1d(components))
    try:
        return [int(part) for part in components.split(",")]
    except ValueError as error:
        raise ParameterError(
            "components",
            f"`components={unmarked(components)}` does not name patterns",
            'two numbers are needed, counted from 1, such as (1, 2) or "1,2"',
            parameter="components",
        ) from error


def coloured_by(adata: Any, name: str, layer: str | None) -> Labels:
    """Labels of all cells by a column of ``obs`` or by the expression of a gene.

    Parameters
    ----------
    adata : AnnData
    name : str
        Column of ``obs``; or else a variable.
    layer : str or None
        Of the gene.

    Returns
    -------
    Labels
    """
    if isinstance(name, str) and name in adata.obs:
        return column_of(adata, name)
    check_known(
        "color", name, [*adata.obs.columns, *adata.var_names], "adata.obs or adata.var_names"
    )
    values = expression_of(adata, [name], layer)[:, 0]
    return Labels(np.empty(0, dtype=int), (), values, name)


def expression_of(adata: Any, genes: Sequence[str], layer: str | None) -> np.ndarray:
    """Expression of a few genes, of all cells.

    Parameters
    ----------
    adata : AnnData
    genes : sequence of str
    layer : str or None

    Returns
    -------
    ndarray of shape (n_obs, n_genes)
    """
    if layer is not None:
        check_known("layer", layer, adata.layers, "adata.layers")
    part = adata[:, list(genes)]
    values = part.X if layer is None else part.layers[layer]
    values = values.compute() if hasattr(values, "compute") else values
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)


def column_of(adata: Any, column: str) -> Labels:
    """A column of ``obs``, with its colours in ``uns``, which are stored where there are none.

    Parameters
    ----------
    adata : AnnData
    column : str

    Returns
    -------
    Labels
    """
    values = adata.obs[column]
    found = Labels.of(values, adata.n_obs)
    if found is None or found.values is not None:
        return found or Labels(np.empty(0, dtype=int), ())
    place = f"{column}_colors"
    stored = _colours_in(adata.uns.get(place), len(found.names))
    if stored is not None:
        return found._replace(title=column, colours=stored)
    own = _palette(len(found.names))
    # as scanpy does; a view would have to be copied for it
    if hasattr(values, "cat") and not adata.is_view:
        adata.uns[place] = list(own)
    return found._replace(title=column, colours=own)


def _colours_in(stored: Any, count: int) -> tuple[str, ...] | None:
    """Colours as hex text; None where there are too few, or where they are not colours."""
    if stored is None or len(stored) < count:
        return None
    from matplotlib.colors import to_hex

    try:
        return tuple(to_hex(each) for each in list(stored)[:count])
    except ValueError:
        return None


def _palette(count: int) -> tuple[str, ...]:
    """Colours for colour-blind readers, as long as there are enough; then those of scanpy."""
    if count <= len(COLOURS):
        return colour_cycle(count)
    try:
        from scanpy.plotting import palettes
    except ImportError:
        return colour_cycle(count)
    known = (palettes.default_20, palettes.default_28, palettes.default_102)
    enough = next((each for each in known if len(each) >= count), None)
    return colour_cycle(count) if enough is None else tuple(enough[:count])


# --- shown and saved as scanpy does ---


def finished(axes: Any, name: str, given: Any, show: bool | None, save: Any) -> Any:
    """Save and show a figure; its axes, unless it was shown.

    Parameters
    ----------
    axes : Axes or array of Axes
    name : str
        Of the plot, with which names of files begin.
    given : object
        Axes that the caller gave, or None.
    show : bool or None
        ``None``: where the caller gave no axes, as ``sc.settings.autoshow`` says.
    save : bool, str, path or None
        Text is the end of a file's name in ``sc.settings.figdir``, and a path a file.

    Returns
    -------
    Axes, array of Axes, or None
    """
    if save is not None and save is not False:
        saved(axes, _file(name, save))
    from matplotlib import get_backend

    settings = getattr(sys.modules.get("scanpy"), "settings", None)
    if show is None:
        can = get_backend().lower() not in SILENT
        show = given is None and can and bool(getattr(settings, "autoshow", True))
    if not show:
        return axes
    from matplotlib import pyplot

    pyplot.show()
    return None


def _file(name: str, save: Any) -> Path:
    if isinstance(save, os.PathLike):
        return Path(save)
    settings = getattr(sys.modules.get("scanpy"), "settings", None)
    folder = Path(getattr(settings, "figdir", "figures"))
    kind = getattr(settings, "file_format_figs", "pdf")
    ending = f".{kind}" if save is True else str(save)
    return folder / (f"{name}{ending}" if Path(f"x{ending}").suffix else f"{name}{ending}.{kind}")
