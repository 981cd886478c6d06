"""How much memory a fit may take, and a word in time where that is too little."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

__all__ = ["check_memory", "free_memory", "memory_budget", "readable_bytes"]

# Of free memory, what a fit may take if nothing is said.
SHARE = 1 / 4
# Below this not even small fits fit.
LEAST = 50 * 10**6
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def free_memory() -> int:
    """Bytes that this process could still take: of the machine, or of its container if that is less."""
    found = []
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found.append(int(re.search(r"MemAvailable:\s+(\d+) kB", text)[1]) * 1024)  # type: ignore[index]
    except (OSError, TypeError):
        pass
    for most, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            found.append(int(Path(most).read_text("ascii")) - int(Path(used).read_text("ascii")))
        except (OSError, ValueError):  # no such container, or no limit
            continue
    if not found:
        try:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, ValueError, OSError):
            found.append(4 * 2**30)
    return max(min(found), 0)


def memory_budget(limit: int | float | str | None = None) -> int:
    """Bytes that a fit may take beyond what the process holds.

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
        return max(int(SHARE * free_memory()), LEAST)
    if isinstance(limit, str):
        read = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)(i?)b?\s*", limit.lower())
        try:
            number = (
                float(read[1]) * (1024 if read[3] else 1000) ** _POWERS[read[2]] if read else None
            )
        except ValueError:
            number = None
    else:
        number = None if isinstance(limit, bool) else float(limit)
    if number is None or not LEAST <= number < math.inf:
        trouble = "is too little to work in" if number and number < LEAST else "is not known"
        raise ValueError(
            f'memory_limit={limit!r} {trouble}. Give a number of bytes or text such as "500MB" or '
            f'"2GB", at least {readable_bytes(LEAST)}; left out, it is a quarter of what is free.'
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


def check_memory(needed: float, limit: int, what: str, advice: str) -> None:
    """Refuse what would not fit, before any of it is allocated.

    Parameters
    ----------
    needed : float
        Bytes.
    limit : int
        Bytes.
    what : str
        What takes them.
    advice : str
        Which parameter to change.

    Raises
    ------
    MemoryError
    """
    if needed > limit:
        raise MemoryError(
            f"{what} would take {readable_bytes(needed)}, and memory_limit allows "
            f"{readable_bytes(limit)}. {advice}"
        )
