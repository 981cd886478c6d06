"""A column that names donors, of whom each has several rows, and that was not given as groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contrica.errors import GroupWarning, unmarked, warn

__all__ = ["ask_for_donors", "names_donors"]

# What a column of donors is called; and what may follow.
DONORS = (
    *("donor", "patient", "subject", "individual", "participant", "animal", "mouse", "sample"),
    *("replicate", "library", "origident"),
)
ENDINGS = re.compile(r"(ids?|names?|nr|no|number|code)$")


def names_donors(heading: Any) -> bool:
    """Whether a column is called as donors, animals or samples are: donor, Mouse-ID, sample names.

    Parameters
    ----------
    heading : object

    Returns
    -------
    bool

    Examples
    --------
    >>> names_donors("Patient_IDs"), names_donors("sample size")
    (True, False)
    """
    plain = re.sub(r"[\W_]+", "", str(heading)).lower()
    return any(each.removesuffix("s") in DONORS for each in (plain, ENDINGS.sub("", plain)))


def ask_for_donors(columns: Mapping[Any, Sequence[Any]], *, where: str, rows: str) -> None:
    """Warn of the first column that names donors, animals or samples, of which each has several rows.

    Parameters
    ----------
    columns : mapping
        The values of each column in the foreground, and in every background; an empty text is none.
    where : str
        Whose columns they are.
    rows : str
        What rows are called.
    """
    for name, parts in columns.items():
        if not names_donors(name):
            continue
        known = [set(map(str, part)) - {""} for part in parts]
        if len(set.union(*known)) < 3 or any(
            2 * len(own) > len(part) for own, part in zip(known, parts, strict=True)
        ):
            continue
        n_missing = sum(int(np.sum(np.asarray(part).astype(str) == "")) for part in parts)
        warn(
            GroupWarning(
                "donors-not-given",
                f"`groups` was not given, but {where} a column {unmarked(name)} with "
                f"{len(set.union(*known))} values: {rows} of one donor are not independent, so that "
                "p-values are too small and too many patterns stand out",
                remedy=_remedy(unmarked(name), min(map(len, known)), n_missing, rows),
                parameter="groups",
            )
        )
        return


def _remedy(name: str, n_fewest: int, n_missing: int, rows: str) -> str:
    """What to do: groups need two donors in each dataset, and one for every row."""
    if n_fewest < 2:
        return (
            f"If it names donors, animals or samples, no test between them is possible: one dataset has "
            f"{n_fewest or 'none'} of them. What is found describes these, and others may differ."
        )
    first = f"Leave out {n_missing} {rows} without one, and pass" if n_missing else "Pass"
    return (
        f"{first} `groups={name}` if it names donors, animals or samples; a name in both datasets is "
        "taken as one donor, and as a pair."
    )
