"""Files of a state."""

from __future__ import annotations

EXPORTS: tuple[str, ...] = ()


def exported(explorer, kind, state):  # type: ignore
    raise NotImplementedError
