"""Findings: what a check or a diagnosis has to say, each with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Finding", "Report", "joined", "unusual"]

SEVERITIES = ("serious", "careful", "note")


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes
    ----------
    code : str
        What it is about: the same in every release.
    severity : {"serious", "careful", "note"}
        An answer not to rely on; one to read with care; what is good to know.
    words : str
    advice : str
        What to do.
    """

    code: str
    severity: str
    words: str
    advice: str = ""

    def __str__(self) -> str:
        """Severity, words and advice."""
        return f"{self.severity}: {self.words}." + (f" {self.advice}" if self.advice else "")


@dataclass(frozen=True)
class Report:
    """All that was found, the serious first.

    Attributes
    ----------
    findings : tuple of Finding
    about : str
        A line on what was checked.
    """

    findings: tuple[Finding, ...]
    about: str = ""

    @classmethod
    def of(cls, findings: Sequence[Finding], about: str) -> Report:
        """In order of severity.

        Parameters
        ----------
        findings : sequence of Finding
        about : str

        Returns
        -------
        Report
        """
        return cls(tuple(sorted(findings, key=lambda each: SEVERITIES.index(each.severity))), about)

    @property
    def codes(self) -> tuple[str, ...]:
        """Of all findings."""
        return tuple(each.code for each in self.findings)

    def __str__(self) -> str:
        """As text, a line for each finding."""
        lines = [str(each) for each in self.findings] or [
            "nothing was found that speaks against them"
        ]
        return "\n".join([*([self.about] if self.about else []), *lines])


def joined(names: Sequence[Any], limit: int = 5) -> str:
    """Names in a row, the first few of many.

    Parameters
    ----------
    names : sequence
    limit : int

    Returns
    -------
    str

    Examples
    --------
    >>> joined(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(str(name) for name in list(names)[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def unusual(values: np.ndarray, share: float) -> np.ndarray:
    """Numbers of the entries, largest first, that together make up a share of the sum.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Not negative.
    share : float

    Returns
    -------
    ndarray of int
    """
    order = np.argsort(-values, kind="stable")
    total = values.sum()
    if total <= 0:
        return order[:0]
    reached = np.cumsum(values[order]) / total
    return order[: int(np.searchsorted(reached, share)) + 1]
