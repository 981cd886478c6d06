"""How much memory a fit may take, and an error in time where that is too little."""

from __future__ import annotations

import math
import numbers
import os
import re
from pathlib import Path

from contrica.errors import MemoryBudgetError, ParameterError, unmarked

__all__ = ["check_memory", "free_memory", "memory_budget", "readable_bytes"]

# Of free memory, what a fit may take if nothing is said.
SHARE = 1 / 4
# The minimum budget: below it no fit is tried.
MIN_BUDGET = 50 * 10**6
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def free_memory() -> int:
    """Bytes that this process could still take: of the machine, or of its container if that is less."""
    found = []
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found.append(int(re.search(r"MemAvailable:\s+(\d+) kB", text)[1]) * 1024)  # type: ignore[index]
    except (OSError, TypeError):
        pass
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            found.append(int(Path(limit).read_text("ascii")) - int(Path(used).read_text("ascii")))
        except (OSError, ValueError):  # no such container, or no limit
            continue
    if not found:
        try:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, ValueError, OSError):
            found.append(4 * 2**30)
    return max(min(found), 0)


def memory_budget(limit: int | float | str | None = None) -> int:
    """Bytes that a fit may take beyond what the process has.

    Parameters
    ----------
    limit : int, float or str, optional
        Bytes, or text such as "500MB" or "2 GB"; by default a quarter of what is free.

    Returns
    -------
    int

    Examples
    --------
    >>> memory_budget("1.5 GB")
    1500000000
    """
    if limit is None:
        return max(int(SHARE * free_memory()), MIN_BUDGET)
    if isinstance(limit, str):
        read = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)(i?)b?\s*", limit.lower())
        try:
            number = (
                float(read[1]) * (1024 if read[3] else 1000) ** _POWERS[read[2]] if read else None
            )
        except ValueError:
            number = None
    else:
        known = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
        number = float(limit) if known else None
    if number is None or not MIN_BUDGET <= number < math.inf:
        too_small = number is not None and 0 < number < MIN_BUDGET
        code = "too-small" if too_small else "unknown-size"
        trouble = "is too little to work in" if too_small else "is not known"
        raise ParameterError(
            code,
            f"`memory_limit={unmarked(limit)}` {trouble}",
            remedy='Give a number of bytes or text such as "500MB" or "2GB", at least '
            f"{readable_bytes(MIN_BUDGET)}; left out, it is a quarter of what is free.",
            parameter="memory_limit",
        )
    return int(number)


def readable_bytes(count: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> readable_bytes(1_500_000_000)
    '1.5 GB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def check_memory(needed: float, limit: int, what: str, remedy: str) -> None:
    """Check the memory budget, before any of it is allocated.

    Parameters
    ----------
    needed : float
        Bytes.
    limit : int
        Bytes.
    what : str
        What takes them.
    remedy : str
        Which parameters to change, between backquotes: sentences.

    Raises
    ------
    MemoryBudgetError
    """
    if needed > limit:
        raise MemoryBudgetError(
            "memory",
            f"{what} would take {readable_bytes(needed)}",
            f"`memory_limit` allows {readable_bytes(limit)}",
            remedy,
            "memory_limit",
        )
