"""Patterns that `contrica.tl.cica` stored: leading genes, ratios, and how stable they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contrica import plots
from contrica.errors import ParameterError, unmarked
from contrica.pl._stored import finished
from contrica.tl._storage import entry_of, get_model

__all__ = ["loadings", "ratios", "stability"]


def loadings(
    adata: Any,
    *,
    key: str = "cica",
    components: Sequence[int] | None = None,
    n_genes: int = 10,
    axes: Any = None,
    show: bool | None = None,
    save: Any = None,
) -> Any:
    """The genes that lead each pattern, by standard deviations of the background that they move.

    Parameters
    ----------
    adata : AnnData
        After `contrica.tl.cica`.
    key : str, default="cica"
        What `contrica.tl.cica` was told as ``key_added``.
    components : sequence of int, optional
        Numbers of the patterns, from 1; all by default.
    n_genes : int, default=10
        Of each pattern, those of largest effect.
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    show : bool or None, default=None
        As in scanpy; where a figure is shown, nothing is returned.
    save : bool, str, path or None, default=None
        As in scanpy: text is the end of a file's name in ``sc.settings.figdir``. A path is a file.

    Returns
    -------
    ndarray of Axes, or None
    """
    names = [str(name) for name in entry_of(adata, key)["variables"]]
    found = plots.patterns(
        get_model(adata, key), names, n_top=n_genes, components=components, axes=axes
    )
    return finished(found, f"{key}_loadings", axes, show, save)


def ratios(
    adata: Any,
    *,
    key: str = "cica",
    ax: Any = None,
    show: bool | None = None,
    save: Any = None,
) -> Any:
    """How many times more of every pattern the foreground has than the background, with p-values.

    Parameters
    ----------
    adata : AnnData
        After `contrica.tl.cica`; after `contrica.tl.stability` with intervals too.
    key : str, default="cica"
    ax : matplotlib Axes, optional
        Without, a new figure of pyplot's.
    show, save
        As of `loadings`.

    Returns
    -------
    Axes or None
    """
    entry = entry_of(adata, key)
    spans = entry.get("stability", {}).get("ratio_intervals")
    found = plots.ratios(get_model(adata, key), intervals=spans, ax=ax)
    return finished(found, f"{key}_ratios", ax, show, save)


def stability(
    adata: Any,
    *,
    key: str = "cica",
    axes: Any = None,
    show: bool | None = None,
    save: Any = None,
) -> Any:
    """How the patterns come back when cells or donors are drawn anew.

    Parameters
    ----------
    adata : AnnData
        After `contrica.tl.stability`.
    key : str, default="cica"
    axes : array of Axes, Figure or SubFigure, optional
        Without, a new figure of pyplot's.
    show, save
        As of `loadings`.

    Returns
    -------
    ndarray of Axes, or None
    """
    entry = entry_of(adata, key)
    if "stability" not in entry:
        raise ParameterError(
            "no-stability",
            f"there is no stability of `key={unmarked(key)}`",
            remedy="Run contrica.tl.stability(adata) first.",
            parameter="key",
        )
    found = plots.stability(entry["stability"], axes=axes)
    return finished(found, f"{key}_stability", axes, show, save)
