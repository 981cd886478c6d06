"""What methods found on one pair of datasets, as a table to print, to write and to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrica.markup import frame, table

__all__ = ["Comparison", "MethodResult", "text_of"]


@dataclass(frozen=True)
class MethodResult:
    """What one method found, or why it found nothing.

    Attributes
    ----------
    key, name : str
        Short name, as in ``methods=``, and the name to print.
    model : estimator or None
        Fitted; ``None``, like the arrays below, where the method failed.
    contrast_ratio : ndarray of shape (n_components,) or None
        k(b): variance along each pattern in the foreground over that in the background, whatever the
        method ranks its patterns by.
    source_ratio : ndarray of shape (n_components,) or None
        k(f): mean square of each source about the background's mean, over its variance in the background
        (`contrica.solvers.ratio.source_ratio`), which cannot be compared with k(b); ``None`` where a
        method has no filters.
    scores, background_scores : ndarray of shape (n_rows, n_components) or None
        Of the rows of both datasets.
    silhouette : float or None
        Of the foreground's scores by label; uses labels, and is ``None`` without them.
    seconds : float
        Wall time of the fit and the scores.
    choice : str
        What the method chose by itself: ranks, α, scale.
    warnings : tuple of ContricaWarning
        Each text once. Those of other packages are given as usual.
    error : Exception or None
    """

    key: str
    name: str
    model: Any
    contrast_ratio: np.ndarray | None
    source_ratio: np.ndarray | None
    scores: np.ndarray | None
    background_scores: np.ndarray | None
    silhouette: float | None
    seconds: float
    choice: str
    warnings: tuple[Warning, ...]
    error: Exception | None

    @property
    def title(self) -> str:
        """Method, choice and numbers in three short lines; a silhouette is marked as using labels."""
        if self.contrast_ratio is None:
            return f"{self.name}\nfailed"
        found = "k(b) " + ", ".join(f"{ratio:.3g}" for ratio in self.contrast_ratio[:2])
        if self.silhouette is not None:
            found += f"; silhouette {self.silhouette:.2f} (labels)"
        return f"{self.name}\n{self.choice}\n{found}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results of several methods on one pair of datasets, in the order they were run.

    Attributes
    ----------
    results : tuple of MethodResult
    groups : ndarray of shape (n_samples,) or None
        Number of each row's group, -1 for rows without a label; ``None`` without labels.
    group_names : tuple of str
    silhouette_rows : int
        Labelled rows that the silhouettes were computed on; 0 without labels.
    n_labelled : int
        Labelled rows in all; more than ``silhouette_rows`` where those are a sample.
    n_dimensions : int
        In which all methods worked: principal components of both datasets together, or all variables.
    """

    results: tuple[MethodResult, ...]
    groups: np.ndarray | None
    group_names: tuple[str, ...]
    silhouette_rows: int
    n_labelled: int
    n_dimensions: int

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, key: str) -> MethodResult:
        for result in self.results:
            if result.key == key:
                return result
        raise KeyError(f"{key!r} was not compared; there are {[r.key for r in self.results]}")

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Headings and one row per method, as they go into a csv file or a data frame.

        Returns
        -------
        columns : list of str
            ``contrast_ratio_1`` and so on are k(b) of every method, ``source_ratio_1`` and so on k(f) of
            those with filters. The silhouette's says that it uses labels; without labels it is not there.
        rows : list of list
            ``None`` where a method failed or returned fewer patterns.
        """
        names, along_patterns = _ratio_columns(self.results, "contrast_ratio")
        source_names, along_filters = _ratio_columns(self.results, "source_ratio")
        columns = ["method", *names, *source_names]
        columns += [] if self.groups is None else ["silhouette_uses_labels"]
        columns += ["seconds", "chose", "warnings", "error"]
        rows: list[list[Any]] = []
        for r, contrast, source in zip(self.results, along_patterns, along_filters, strict=True):
            row = [r.key, *contrast, *source]
            row += [] if self.groups is None else [r.silhouette]
            remarks = " | ".join(" ".join(str(warning).split()) for warning in r.warnings)
            error = None if r.error is None else text_of(r.error)
            rows.append([*row, round(r.seconds, 3), r.choice, remarks, error])
        return columns, rows

    def __repr__(self) -> str:
        """As a table of text, without what was noted."""
        headings, rows = self._shown()
        cells = [headings[:-1], *([_cell(each) for each in row[:-1]] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = (zip(row, widths, strict=True) for row in cells)
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in row).rstrip() for row in lines
        )

    def _repr_html_(self) -> str:
        """As a table, for a notebook: one row per method, with what was noted beside it."""
        return frame(table(*self._shown()))

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        """Headings and rows as a reader sees them."""
        names, along_patterns = _ratio_columns(self.results, "contrast_ratio")
        source_names, along_filters = _ratio_columns(self.results, "source_ratio")
        headings = ["method", *(f"k(b) {i + 1}" for i in range(len(names)))]
        headings += [f"k(f) {i + 1}" for i in range(len(source_names))]
        headings += [] if self.groups is None else ["silhouette (uses labels)"]
        rows = []
        for r, contrast, source in zip(self.results, along_patterns, along_filters, strict=True):
            row = [r.name, *contrast, *source]
            row += [] if self.groups is None else [r.silhouette]
            notes = [text_of(r.error)] if r.error is not None else list(map(str, r.warnings))
            rows.append([*row, float(r.seconds), r.choice, " ".join(notes)])
        return [*headings, "seconds", "chose", "notes"], rows


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


def _ratio_columns(
    results: Sequence[MethodResult], name: str
) -> tuple[list[str], list[list[float | None]]]:
    """Headings of one ratio and each method's cells, ``None`` where it has fewer patterns."""
    ratios = [getattr(result, name) for result in results]
    cells: list[list[float | None]] = [[] if found is None else found.tolist() for found in ratios]
    width = max(map(len, cells), default=0)
    headings = [f"{name}_{i + 1}" for i in range(width)]
    return headings, [row + [None] * (width - len(row)) for row in cells]


def text_of(failure: Exception) -> str:
    """What an error says, or its name if it says nothing.

    Parameters
    ----------
    failure : Exception

    Returns
    -------
    str
    """
    return str(failure) or type(failure).__name__
