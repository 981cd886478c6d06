"""Groups of rows in the shell: columns of the datasets, or text files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrica.errors import ParameterError
from contrica.labels import read_labels, without_missing

__all__ = ["NamedGroups"]

# What the name of a file with the groups of rows may end in.
_FILES = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class NamedGroups:
    """What --groups and --background-groups name.

    Attributes
    ----------
    fore : str or None
        A column of the foreground, or a file.
    backs : tuple of str or None
        Of every background; ``None`` where nothing was said.
    """

    fore: str | None
    backs: tuple[str | None, ...]

    @classmethod
    def of(
        cls, groups: str | None, background_groups: Sequence[str] | None, n_backgrounds: int
    ) -> NamedGroups:
        """What was given, the foreground's column standing for those of backgrounds of which none was.

        Parameters
        ----------
        groups : str or None
        background_groups : sequence of str or None
        n_backgrounds : int

        Returns
        -------
        NamedGroups
        """
        given = list(background_groups or [])
        if given and len(given) != n_backgrounds:
            raise ParameterError(
                "groups-length",
                f"`background_groups` was given {len(given)} times for {n_backgrounds} backgrounds",
                remedy="Give it once for each.",
                parameter="background_groups",
            )
        same = groups if groups is not None and not _is_file(groups) else None
        return cls(groups, tuple(given or [same] * n_backgrounds))

    def column(self, dataset: int) -> str | None:
        """The column that is to be taken out of a dataset, the foreground being number 0."""
        name = self._of(dataset)
        return None if name is None or _is_file(name) else name

    def _of(self, dataset: int) -> str | None:
        return (self.fore, *self.backs)[dataset]

    def labels(self, fore: Any, backs: Sequence[Any]) -> dict[str, Any]:
        """Labels as ``fit`` takes them; of several backgrounds a list.

        Parameters
        ----------
        fore : Data
        backs : sequence of Data

        Returns
        -------
        dict
        """
        found = [self._labels(i, data) for i, data in enumerate((fore, *backs))]
        first, *others = found
        given = [each for each in others if each is not None]
        return {
            "groups": first,
            "background_groups": given[0] if len(backs) == len(given) == 1 else (given or None),
        }

    def _labels(self, dataset: int, data: Any) -> Any:
        name = self._of(dataset)
        if name is None:
            return None
        if _is_file(name):
            return read_labels(Path(name), len(data.values))
        return without_missing(data.labels)


def _is_file(name: str) -> bool:
    """Whether a name is a file's: there is one, or it ends as such names do."""
    path = Path(name)
    return path.is_file() or path.suffix.lower() in _FILES
