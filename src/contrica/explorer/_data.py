"""What is explored: rows of both datasets with all that is known of them, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrica.report._material import Column

__all__ = ["ExplorerData", "Source"]


@dataclass(frozen=True)
class Source:
    """Where data came from, so that a script and a command can read them again.

    Attributes
    ----------
    kind : {"demo", "files", "memory"}
    options : dict of str to object
        Of the command line, by the names of `contrica.cli.options.DataOptions`; of files only.
    folder : Path or None
        Where names and notes are kept: a result folder, or that of the first file.
    title : str
    missing : str
        As of the estimators.
    """

    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    title: str = ""
    missing: str = "error"


@dataclass(frozen=True)
class ExplorerData:
    """Rows of a foreground and its backgrounds, with all that is known of them.

    Attributes
    ----------
    fore : ndarray, sparse matrix or Rows of shape (n, p)
    backs : tuple of the same
    names : list of str
        Of the variables.
    metadata : tuple of dict of str to ndarray
        Columns of each dataset, the foreground's first.
    groups : tuple of (ndarray of str or None)
    row_names : tuple of (ndarray of str or None)
    image_shape : (int, int) or None
    source : Source
    parameters : dict of str to object
        Of `contrica.ContrastiveICA`, beyond those that the page sets.
    """

    fore: Any
    backs: tuple[Any, ...]
    names: list[str]
    metadata: tuple[dict[str, np.ndarray], ...]
    groups: tuple[np.ndarray | None, ...]
    row_names: tuple[np.ndarray | None, ...]
    image_shape: tuple[int, int] | None
    source: Source
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def n_fore(self) -> int:
        """Rows of the foreground."""
        return int(self.fore.shape[0])

    @property
    def n_back(self) -> int:
        """Rows of all backgrounds."""
        return sum(int(part.shape[0]) for part in self.backs)

    @property
    def has_groups(self) -> bool:
        """Whether rows come in groups."""
        return self.groups[0] is not None

    @property
    def columns(self) -> dict[str, Column]:
        """Columns of metadata to colour by, those of the foreground; kinds or numbers."""
        raise NotImplementedError

    @property
    def columns_left_out(self) -> str:
        """Which columns of metadata cannot be coloured by, in words; empty where all can."""
        raise NotImplementedError
