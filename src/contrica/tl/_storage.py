"""What a fit leaves in an AnnData object, as plain arrays, text and numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from contrica._version import __version__
from contrica.errors import DataError, ParameterError, unmarked
from contrica.estimators._ranking import p_values_of
from contrica.estimators._saving import model_state
from contrica.models import model_of
from contrica.tl._selection import Cells, Source, check_adata

__all__ = ["check_key", "check_writable", "entry_of", "get_model", "result_of", "text", "to_write"]


def text(value: Any) -> Any:
    """Empty text for ``None``, which files of AnnData do not all have.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
    """
    return "" if value is None else value


def check_key(key_added: Any) -> None:
    """Refuse a name that files of AnnData cannot have.

    Parameters
    ----------
    key_added : object
    """
    if not isinstance(key_added, str) or not key_added.strip() or "/" in key_added:
        raise ParameterError(
            "bad-key",
            f"`key_added={unmarked(key_added)}` cannot be the name of a result",
            "text without a slash is needed",
            parameter="key_added",
        )


def check_writable(adata: Any, *, copy: bool) -> None:
    """Refuse what would have to copy a file to be written to, before anything is fitted.

    Parameters
    ----------
    adata : AnnData
    copy : bool
    """
    if adata.isbacked and (copy or adata.is_view):
        what = "`copy=True` was given" if copy else "`adata` is a view"
        raise ParameterError(
            "backed",
            f"{what}, and its matrix is in a file",
            "it would have to be copied to another file",
            "Call adata.to_memory(), or adata.copy(filename), first.",
            "copy" if copy else "adata",
        )


def to_write(adata: Any, *, copy: bool) -> Any:
    """The object that results are written to: a copy, or the object itself, which is then no view.

    Parameters
    ----------
    adata : AnnData
    copy : bool

    Returns
    -------
    AnnData
    """
    if copy:
        return adata.copy()
    if adata.is_view:  # as scanpy does
        adata._init_as_actual(adata.copy())
    return adata


def result_of(model: Any, source: Source, cells: Cells, params: dict[str, Any]) -> dict[str, Any]:
    """What is known of a fit, as ``uns`` can have it.

    Parameters
    ----------
    model : ContrastiveICA
    source : Source
    cells : Cells
    params : dict
        What was asked for.

    Returns
    -------
    dict
    """
    header, arrays = model_state(model)
    found = {
        "params": params
        | {
            "foreground": list(cells.foreground),
            "background": list(cells.background),
            "mask_var": source.mask_var,
            "solver": model.solver_,
            "version": __version__,
        },
        "variables": source.names.astype(str),
        "ratios": model.source_ratio_,
        "contrast_ratios": model.contrast_ratio_,
        "p_values": p_values_of(model),
        "t_values": model.pattern_t_values_,
        "weights": model.foreground_weights_,
        "n_foreground": int(model.n_foreground_),
        "n_background": int(model.n_background_),
        "n_cells": np.array([cells.fore.sum(), cells.back.sum()]),
        "mean": model.mean_,
        "filters": model.filters_,
        "effects": model.effects_,
        "summary": str(model.summary()),
        "model": {"header": json.dumps(header), "arrays": arrays},
    }
    if params["use_rep"]:
        found["patterns"] = model.components_
    if model.groups_ is not None:
        found |= {"groups": model.groups_.astype(str), "group_share": model.group_share_}
    return found


def entry_of(adata: Any, key: str) -> dict[str, Any]:
    """What `cica` left in ``uns``.

    Parameters
    ----------
    adata : AnnData
    key : str

    Returns
    -------
    dict
    """
    check_adata(adata)
    found = adata.uns.get(key)
    if _is_result(found):
        return dict(found)
    known = [name for name, each in adata.uns.items() if _is_result(each)]
    there = f"There are {unmarked(', '.join(known))}." if known else ""
    raise ParameterError(
        "no-result",
        f"`adata` has no result `key={unmarked(key)}`",
        remedy=f"{there} Run contrica.tl.cica first.".strip(),
        parameter="key",
    )


def _is_result(found: Any) -> bool:
    return hasattr(found, "keys") and {"model", "params", "variables"} <= set(found.keys())


def get_model(adata: Any, key: str = "cica") -> Any:
    """The fitted model that `cica` left in ``adata.uns``, ready for `contrica.inference`.

    Parameters
    ----------
    adata : AnnData
    key : str, default="cica"
        What `cica` was told as ``key_added``.

    Returns
    -------
    ContrastiveICA
    """
    state = entry_of(adata, key)["model"]
    try:
        arrays = {
            name: value.astype(str) if value.dtype == object else value
            for name, value in ((name, np.asarray(each)) for name, each in state["arrays"].items())
        }
        return model_of(json.loads(str(state["header"])), arrays)
    except Exception as error:  # whatever is made of entries that were changed
        raise DataError(
            "not-a-model",
            f"adata.uns[{unmarked(key)!r}] has no model that contrica {__version__} can read "
            f"({unmarked(error)})",
            remedy="Run contrica.tl.cica again.",
            parameter="key",
        ) from error
