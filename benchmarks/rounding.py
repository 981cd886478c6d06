"""Does rounding decide? One dataset, read and multiplied in ways that differ by rounding only.

Random designs (4 to 8 variables, 3000 to 20 000 rows, ranks and solver automatic) are fitted as an array,
with rows in reverse, and as a stream, by one thread and by two, with several of OpenBLAS's kernels
(in numpy's wheels that for Zen is Haswell's).
Printed: in how many designs the solver or the ranks differ from those of the last kernel's array, and the
largest difference of an entry of a pattern where they agree. All ways take 20 minutes of two cores.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KERNELS = ("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
CONTAINERS = ("rows", "reversed", "stream")
KINDS = ("exponential", "laplace", "uniform", "student_t", "mixed")
BAR = 1e-6


def design(seed):
    """Foreground and background: a random A and B, few or many patterns, one kind of source."""
    import numpy as np

    rng = np.random.default_rng([seed, 13])
    p, n = int(rng.integers(4, 9)), int(rng.integers(3000, 20_001))
    r, n_salient = int(rng.integers(2, p + 1)), int(rng.integers(1, p))
    kind = KINDS[seed % len(KINDS)]

    def sources(rows, count):
        draws = {
            "exponential": rng.exponential(size=(rows, count)),
            "laplace": rng.laplace(size=(rows, count)) / 2**0.5,
            "uniform": rng.uniform(-(3**0.5), 3**0.5, (rows, count)),
            "student_t": rng.standard_t(5, (rows, count)) * 0.6**0.5,
        }
        if kind != "mixed":
            return draws[kind]
        return np.where(np.arange(count) % 2 == 0, draws["exponential"], draws["uniform"])

    A, B = rng.standard_normal((p, r)), rng.standard_normal((p, n_salient))
    m = int(rng.integers(3000, 20_001))
    background = sources(m, r) @ A.T + 0.1 * rng.standard_normal((m, p))
    shared = sources(n, r) * rng.uniform(0.5, 2, r)
    foreground = shared @ A.T + 2 * sources(n, n_salient) @ B.T + 0.1 * rng.standard_normal((n, p))
    return foreground, background


def fit(seed, container):
    from contrica import ContrastiveICA

    X, Y = design(seed)
    model = ContrastiveICA(2, random_state=0)
    if container == "stream":
        for i in range(0, len(X), 700):
            model.partial_fit(X[i : i + 700])
        for i in range(0, len(Y), 900):
            model.partial_fit(background=Y[i : i + 900])
        model.fit_sums()
    elif container == "reversed":
        model.fit(X[::-1], background=Y[::-1])
    else:
        model.fit(X, background=Y)
    return (model.solver_, model.n_background_, model.n_foreground_), model.components_


def work(first, designs, path):
    warnings.simplefilter("ignore")
    found = {(s, c): fit(s, c) for s in range(first, first + designs) for c in CONTAINERS}
    Path(path).write_bytes(pickle.dumps(found))


def run_way(kernel, threads, arguments, folder):
    """All designs in a process of their own: kernels and threads are chosen when BLAS is loaded."""
    path = Path(folder) / f"{kernel}-{threads}.pickle"
    environment = os.environ | {
        "OPENBLAS_CORETYPE": kernel,
        "OPENBLAS_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }
    command = [sys.executable, __file__, "--work", str(path)]
    command += ["--first", str(arguments.first), "--designs", str(arguments.designs)]
    subprocess.run(command, env=environment, check=True)
    return pickle.loads(path.read_bytes())


def difference(one, other):
    """Largest difference of two sets of patterns, or None if the choices differ."""
    import numpy as np

    if one[0] != other[0] or one[1].shape != other[1].shape:
        return None
    largest = float(np.abs(one[1] - other[1]).max())
    return largest if np.isfinite(largest) else float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--designs", type=int, default=100)
    parser.add_argument("--kernels", nargs="+", default=KERNELS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="ways that run at the same time")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(arguments.first, arguments.designs, arguments.work)
    ways = [(kernel, threads) for kernel in arguments.kernels for threads in arguments.threads]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        found = dict(
            zip(ways, pool.map(lambda way: run_way(*way, arguments, folder), ways), strict=True)
        )
    seeds = range(arguments.first, arguments.first + arguments.designs)
    reference = {s: found[ways[-1]][s, "rows"] for s in seeds}
    solvers = [reference[s][0][0] for s in seeds]
    print(f"{', '.join(f'{solvers.count(s)} {s}' for s in sorted(set(solvers)))}\n")
    print("| kernel, threads, rows as | choices differ in | largest difference elsewhere |")
    print("|---|---|---|")
    ever, worst = set(), 0.0
    for way in ways:
        for container in CONTAINERS:
            apart = {s: difference(reference[s], found[way][s, container]) for s in seeds}
            other = [s for s in seeds if apart[s] is None]
            largest = max((v for v in apart.values() if v is not None), default=0.0)
            far = [s for s in seeds if apart[s] is not None and apart[s] > BAR]
            ever.update(other)
            worst = max(worst, largest)
            note = f" (designs {', '.join(map(str, far))})" if far else ""
            which = f" ({', '.join(map(str, other))})" if other else ""
            print(
                f"| {way[0]}, {way[1]}, {container} | {len(other)}{which} | {largest:.1e}{note} |"
            )
    print(
        f"\nSome way differs in {len(ever)} of {arguments.designs} designs; elsewhere by {worst:.1e}"
    )
    return 0 if not ever and worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
