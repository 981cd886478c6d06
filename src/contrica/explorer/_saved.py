"""Names, notes and verdicts on disk: one file for each reader, complete at every moment."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from contrica.errors import ContricaError
from contrica.explorer._data import ExplorerData
from contrica.explorer._state import Edit, ViewState
from contrica.output import output_file

__all__ = ["Places", "SavedNames", "fingerprint"]

# What a file is called, how many there may be, and earlier states that one keeps for their names.
NAME, MAX_FILES, MAX_EARLIER = "contrica-explorer", 64, 20


def fingerprint(data: ExplorerData) -> str:
    """What tells these data from others that are explored in the same folder.

    Parameters
    ----------
    data : ExplorerData

    Returns
    -------
    str
    """
    told = hashlib.sha256("\0".join(data.names).encode())
    for part in (data.fore, *data.backs):
        told.update(str(part.shape).encode())
        some = part[:: max(1, len(part) // 64)]
        told.update(np.ascontiguousarray(some).tobytes())
    return told.hexdigest()[:32]


class SavedNames:
    """The file of one reader.

    Parameters
    ----------
    path : Path
    data_key : str
        As of `fingerprint`.
    kept : bool
        Whether there is a file at all.

    Attributes
    ----------
    words : str
        Where names are kept, or why they cannot be.
    """

    def __init__(self, path: Path, data_key: str, *, kept: bool = True) -> None:
        self.path, self._key = path, data_key
        self._lock = threading.Lock()
        self._text = ""
        self._earlier: list[str] = []
        self._is_kept = kept
        self.words = f"Names go to {path.name}."
        if not kept:
            self.words = "Names and notes are not kept: too many files of the explorer are in use."

    def restored(self) -> ViewState | None:
        """The state that was saved last; ``None`` where there is none that can be read.

        Returns
        -------
        ViewState or None
        """
        known = _read(self.path) if self._is_kept else None
        if known is None or known.get("data") != self._key:
            return None
        earlier = known.get("earlier")
        self._earlier = [each for each in earlier or [] if isinstance(each, str)][-MAX_EARLIER:]
        try:
            self._text = str(known.get("state", ""))
            state = ViewState.decode(self._text)
        except ContricaError as error:
            self.words = f"{self.path.name} cannot be read: {error}"
            return None
        self.words = f"Names are kept in {self.path.name}."
        return state

    def save(self, state: ViewState) -> None:
        """Write the state; what cannot be written is said, and the page goes on.

        Parameters
        ----------
        state : ViewState
        """
        text = state.encode()
        with self._lock:
            if text == self._text or not self._is_kept:
                return
            if _loses(self._text, state):
                self._earlier = [*self._earlier, self._text][-MAX_EARLIER:]
            told = {
                "about": "Names, notes and verdicts of contrica explore; `contrica explore` reads them.",
                "data": self._key,
                "saved": time.strftime("%Y-%m-%dT%H:%M:%S"),
                "state": text,
                "earlier": self._earlier,
            }
            try:
                with output_file(self.path, overwrite=True) as file:
                    file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            except (OSError, ContricaError) as error:
                self.words = f"Names and notes cannot be kept in {self.path.name} ({error})."
                return
            self._text = text
            self.words = f"Names are kept in {self.path.name}."


class Places:
    """The files of a folder, each of which one reader has.

    Parameters
    ----------
    folder : Path
    data_key : str
    """

    def __init__(self, folder: Path, data_key: str) -> None:
        self.folder, self._key = folder, data_key
        self._lock = threading.Lock()
        self._taken: dict[Path, int] = {}

    def take(self) -> SavedNames:
        """The first file that is these data's, or new, and that nobody else has.

        Returns
        -------
        SavedNames
        """
        with self._lock:
            for number in range(1, MAX_FILES + 1):
                path = self.folder / (f"{NAME}.json" if number == 1 else f"{NAME}-{number}.json")
                if path in self._taken or not self._is_ours(path):
                    continue
                handle = _locked(path)
                if handle is not None:
                    self._taken[path] = handle
                    return SavedNames(path, self._key)
        return SavedNames(self.folder / f"{NAME}.json", self._key, kept=False)

    def close(self) -> None:
        """Let others have the files."""
        with self._lock:
            for path, handle in self._taken.items():
                if handle >= 0:
                    os.close(handle)
                    _lock_of(path).unlink(missing_ok=True)
            self._taken.clear()

    def _is_ours(self, path: Path) -> bool:
        """Whether it is not there, or is of these data: others' is never overwritten."""
        if not path.exists():
            return True
        known = _read(path)
        return known is not None and known.get("data") == self._key


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _loses(text: str, state: ViewState) -> bool:
    """Whether something that was said in a text is not said in a state."""
    try:
        before = ViewState.decode(text) if text else ViewState()
    except ContricaError:
        return True
    said = {(each.name, each.note, each.verdict) for each in state.edits}
    now = {(each.fit, each.index): each for each in state.edits}
    return any(
        (each.name, each.note, each.verdict) not in said
        and not _goes_on(each, now.get((each.fit, each.index)))
        for each in before.edits
    )


def _goes_on(old: Edit, new: Edit | None) -> bool:
    """Whether more was typed behind what was said."""
    if new is None or new.verdict != old.verdict:
        return False
    return new.name.startswith(old.name) and new.note.startswith(old.note)


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _locked(path: Path) -> int | None:
    """A lock that ends with the process; -1 where there are no locks, ``None`` where another has it."""
    try:
        import fcntl
    except ImportError:
        return -1
    try:
        handle = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # a folder that cannot be written: `save` will say so
        return -1
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
