"""Random calls, damaged files and killed processes: does anything end otherwise than it may?

A fit gives the right answer or an error of contrica in words. The shell reads a malformed file, or says
in one sentence and exit code 2 what is wrong with it. A saved model that was altered loads as it was, or
is refused. A command that is killed while it overwrites a folder leaves the old folder or the new one.

``python benchmarks/fuzz.py --fits 60000 --files 2000 --models 20000 --kills 200`` prints every case that
ended otherwise, with the seed and the number that draw it again, and counts; then exit code 1. With
``--log FILE`` each batch of a thousand cases is written down as it ends, and batches that are there are
not run again: a long run may be stopped and started anew.
"""

import argparse
import faulthandler
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

from fuzz_files import rows, run_file, run_model, write_all, write_models
from fuzz_fits import run_fit

# Cases that one process is given at a time; after a crash each is tried by itself.
CHUNK = 50
# Seconds after which a process in which no signal is answered is ended, however busy the machine is.
NO_SIGNAL = 900
# Cases between two lines of the log.
BATCH = 1000


def prepare(folder):
    """Good files and models to damage, and a model that scores rows."""
    from contrica import ContrastivePCA

    for name in ("good", "models"):
        (folder / name).mkdir()
    write_all(folder / "good")
    write_models(folder / "models")
    model = ContrastivePCA(2, alpha=1.0).fit(rows(), background=rows(20))
    model.save(folder / "model.npz")


def run_chunk(kind, seed, numbers, folder):
    """The outcomes of some cases."""
    return [run_one(kind, seed, number, folder) for number in numbers]


def run_one(kind, seed, number, folder):
    """One outcome; a call that no signal reaches, as in a compiled library, ends the process."""
    faulthandler.dump_traceback_later(NO_SIGNAL, exit=True)
    try:
        if kind == "fits":
            return run_fit(seed, number)
        return (run_file if kind == "files" else run_model)(seed, number, folder)
    finally:
        faulthandler.cancel_dump_traceback_later()


def outcomes(kind, seed, numbers, folder, jobs):
    """The outcomes of all cases; a process that crashes costs the case that it died of."""
    waiting = [numbers[i : i + CHUNK] for i in range(0, len(numbers), CHUNK)]
    while waiting:
        again = []
        with ProcessPoolExecutor(jobs) as pool:
            running = [(part, pool.submit(run_chunk, kind, seed, part, folder)) for part in waiting]
            for part, future in running:
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    if len(part) == 1:
                        again.append(part)
                    else:
                        again += [[number] for number in part]
        if again == waiting and jobs == 1:  # alone, and still: the first of them crashes
            yield f"{kind} {seed}:{again[0][0]}: the process crashed"
            again = again[1:]
        waiting, jobs = again, 1 if again else jobs


# --- kills ---


def contents(folder):
    """Files by name: of an archive its members, of a figure that it is there."""
    found = {}
    for file in sorted(folder.iterdir()):
        if file.suffix == ".npz":
            with zipfile.ZipFile(file) as zipped:
                found[file.name] = {name: zipped.read(name) for name in zipped.namelist()}
        else:
            found[file.name] = None if file.suffix == ".png" else file.read_bytes()
    return found


def command(folder, out, components):
    return [
        *("fit", str(folder / "fore.csv"), "-b", str(folder / "back.csv"), "-o", str(out)),
        *("--solver", "subspace", "--components", str(components), "--overwrite"),
    ]


def forked(arguments, log):
    """Start the shell in a copy of this process, which has all imported; its number."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.argv = ["contrica", *arguments]
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from contrica.cli import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the command is over
        gc.collect()  # as at the end of any process: what was interrupted on its way is closed
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def run_kills(seed, count):
    """What every kill left: "old", "new", or what is wrong with it."""
    import contrica.cli  # noqa: F401 - before the process is copied
    from contrica import plots  # noqa: F401

    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for which, n in (("fore", 300), ("back", 200)):
            np.savetxt(
                folder / f"{which}.csv", rows(n), delimiter=",", header="a,b,c,d", comments=""
            )
        out, log = folder / "out", folder / "log"
        seconds, known = [], {}
        for components in (2, 1):
            start = time.perf_counter()
            os.waitpid(forked(command(folder, out, components), log), 0)
            seconds.append(time.perf_counter() - start)
            known[components] = {k: v for k, v in contents(out).items() if k != "mine.txt"}
            (out / "mine.txt").write_text("kept")
        for number in range(count):
            yield one_kill(draw, folder, number, known, 1.3 * max(seconds))


def one_kill(draw, folder, number, known, longest):
    out, log = folder / "out", folder / "log"
    (out / "mine.txt").write_text("kept")
    before = contents(out)
    earlier = {file.name for file in folder.iterdir() if "contrica-" in file.name}
    components = draw.choice([1, 2])
    how = draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
    child = forked(command(folder, out, components), log)
    time.sleep(draw.uniform(0, longest))
    os.kill(child, how)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = f"kill {number} by {how.name}, which ended with {status}"
    if not out.exists():
        return f"{told}: the folder is gone"
    found = contents(out)
    if found.pop("mine.txt", None) != b"kept":
        return f"{told}: a file of another was lost"
    before.pop("mine.txt")
    if "Traceback" in log.read_text():
        return f"{told}: {log.read_text().partition('Traceback')[2][-1000:]}"
    left = {file.name for file in folder.iterdir() if "contrica-" in file.name}
    if how != signal.SIGKILL and left - earlier:
        return f"{told}: {left - earlier} was left"
    if found == before:
        return "old"
    return (
        "new" if found == known[components] else f"{told}: {sorted(found)} is neither old nor new"
    )


# --- all together ---


def counted(found):
    """How many outcomes there are of each kind; those that may not be are printed, and are "other"."""
    counts = Counter()
    for outcome in found:
        short = outcome in ("right", "refused", "old", "new")
        counts[outcome if short else "other"] += 1
        if not short:
            print(outcome, flush=True)
    return counts


def report(kind, counts):
    """Print counts; how many cases ended otherwise than they may."""
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{kind}: {sum(counts.values())} ({told or 'none'})", flush=True)
    return counts["other"]


def in_batches(kind, numbers, folder, given):
    """Counts of all cases, batch by batch; batches that the log has are taken from there."""
    total = Counter()
    for first in range(0, len(numbers), BATCH):
        part = numbers[first : first + BATCH]
        about = {"kind": kind, "seed": given.seed, "first": part[0], "count": len(part)}
        found = logged(given.log, about)
        if found is None:
            start = time.perf_counter()
            found = counted(outcomes(kind, given.seed, part, folder, given.jobs))
            about |= {"outcomes": found, "seconds": round(time.perf_counter() - start)}
            if given.log:
                with given.log.open("a") as file:
                    file.write(json.dumps(about) + "\n")
        total.update(found)
    return total


def logged(log, about):
    """Outcomes of a batch that was run before; None where it was not."""
    lines = log.read_text().splitlines() if log and log.exists() else []
    for line in map(json.loads, lines):
        if about.items() <= line.items():
            return line["outcomes"]
    return None


def main():
    parser = argparse.ArgumentParser(
        prog="fuzz.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for kind in ("fits", "files", "models", "kills"):
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first case of each kind"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--log", type=Path, help="file of batches that have been run")
    given = parser.parse_args()
    bad = 0
    if given.kills:  # before there are other processes
        bad += report("kills", counted(run_kills(given.seed, given.kills)))
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for kind in ("models", "files", "fits"):
            numbers = list(range(given.first, given.first + getattr(given, kind)))
            if numbers:
                bad += report(kind, in_batches(kind, numbers, Path(name), given))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
