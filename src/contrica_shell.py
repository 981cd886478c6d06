"""The shell command's first lines, before contrica and all it needs are imported, which takes a second.

They cannot be part of the package, whose own import is most of that second.
"""

from __future__ import annotations

import os
import signal
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Start the shell command; an interrupt while it is loaded ends it without a traceback."""

    def end(*_: Any) -> None:
        os._exit(130)  # nothing was begun that would have to be cleaned up

    before = signal.signal(signal.SIGINT, end)
    from contrica.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
