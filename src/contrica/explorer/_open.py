"""The explorer from Python: a page of a model and arrays, in a notebook or beside a script."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import Any

from contrica.errors import ParameterError
from contrica.estimators import ContrastiveICA
from contrica.explorer._data import ExplorerData, Source
from contrica.explorer._server import Server

__all__ = ["open_page"]


def open_page(
    model: ContrastiveICA,
    X: Any,
    *,
    background: Any,
    groups: Any = None,
    background_groups: Any = None,
    metadata: Any = None,
    background_metadata: Any = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    folder: str | Path = ".",
    host: str = "127.0.0.1",
    port: int | None = None,
) -> Server:
    """Serve a page that opens with a model's parameters, and write its address.

    Parameters
    ----------
    model : ContrastiveICA
        Fitted or not; it stays as it is.
    X : array-like of shape (n_samples, n_features)
        Foreground.
    background : array-like of shape (n_background_samples, n_features), list of such, or Background
    groups, background_groups : array-like of shape (n_rows,), optional
        As of ``fit``.
    metadata, background_metadata : data frame or mapping of str to array-like, optional
        What else is known of the rows, to colour them by; of several backgrounds a list.
    image_shape : (int, int), optional
        Height and width, where patterns are images.
    title : str
    folder : path
        Where names, notes and verdicts are kept once there are some.
    host : str
        Another than this machine's own lets others reach the page.
    port : int, optional
        The next free one by default.

    Returns
    -------
    Server
        Which a notebook shows as the page. ``stop()`` ends it.
    """
    if not isinstance(model, ContrastiveICA):
        raise ParameterError(
            "unknown-model",
            f"`model` is a {type(model).__name__}",
            "the explorer fits ContrastiveICA",
            parameter="model",
        )
    data = ExplorerData.of(
        X,
        background,
        groups=groups,
        background_groups=background_groups,
        metadata=metadata,
        background_metadata=background_metadata,
        image_shape=image_shape,
        source=Source("memory", folder=Path(folder), title=title),
        parameters=model.get_params(),
    )
    server = Server(data, host, port, framed=True).start()
    atexit.register(server.stop)
    sys.stdout.write(f"contrica explorer: {server.address}\n")
    return server
