"""Kill a process at every call of the system by which a folder is overwritten.

``python tests/killed.py exchange`` or ``renames`` prints, as json, what was found after each kill, and
after the run that follows it.
"""

import json
import os
import signal
import sys
import tempfile
from itertools import count
from pathlib import Path

from contrica import output

EVENTS = ("os.", "open", "shutil.", "ctypes.dlsym")
OURS = ("a", "b", "c_*")


def write(place, content, names):
    with output.output_folder(place, overwrite=True, ours=OURS) as folder:
        for name in names:
            (folder / name).write_text(content)


def prepare(parent):
    place = parent / "out"
    write(place, "old", ["a", "c_1"])
    (place / "mine").write_text("kept")
    (place / "deep").mkdir()
    (place / "deep" / "er").write_text("kept")
    return place


def state(place):
    if not place.exists():
        return "absent"
    found = {file.name: file.read_text() for file in place.iterdir() if file.is_file()}
    foreign = found.pop("mine", None), (place / "deep" / "er").exists()
    if foreign != ("kept", True):
        return f"lost {foreign}"
    known = {
        str({"a": "old", "c_1": "old"}): "old",
        str({"a": "new", "b": "new"}): "new",
        str({"a": "next"}): "next",
    }
    return known.get(str(dict(sorted(found.items()))), f"mixed {found}")


def killed_at(number, place):
    """Whether a process that overwrites the folder got so far as to be killed."""
    child = os.fork()
    if child == 0:
        left = number

        def hook(event, args):
            nonlocal left
            if event.startswith(EVENTS) and event != "os.kill":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        write(place, "new", ["a", "b"])
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main(exchange):
    if not exchange:
        output._exchanged = lambda one, other: False
    outcomes = []
    for number in count():
        with tempfile.TemporaryDirectory() as folder:
            place = prepare(Path(folder))
            was_killed = killed_at(number, place)
            found = state(place)
            write(place, "next", ["a"])
            left = sorted(file.name for file in Path(folder).iterdir())
            outcomes.append([found, state(place), left])
        if not was_killed:
            break
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1] == "exchange")
