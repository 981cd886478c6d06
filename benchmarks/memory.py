"""Does a fit keep to its memory_limit? Growth of the peak resident set, by rows and variables.

Each fit runs in a process of its own, on random numbers that are there before; what counts is the highest
resident set during ``fit`` less that just before, against ``memory_limit``. Exits with 1 where one takes
more than 1.2 times its limit.
"""

import argparse
import subprocess
import sys
import textwrap

GRID = [
    # rows in each dataset, variables, n_pcs ("none": no PCA)
    *((n, p, "none") for n in (2_000, 20_000, 200_000) for p in (10, 30, 60, 100)),
    *((n, p, "auto") for n in (2_000, 20_000, 100_000) for p in (100, 400)),
    *((n, p, "50") for n, p in ((20_000, 1000), (10_000, 2000), (400, 4000))),
    *((5_000, p, "none") for p in (300, 600)),
]
SCRIPT = textwrap.dedent("""
    import gc, sys, warnings
    import numpy as np
    from contrica import ContrastiveICA
    warnings.simplefilter("ignore")
    n, p, n_pcs, limit, solver = sys.argv[1:]
    n, p = int(n), int(p)
    n_pcs = {"none": None, "auto": "auto"}.get(n_pcs) if not n_pcs.isdigit() else int(n_pcs)
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((n, p)) for _ in range(2))
    X[:, :3] += 2 * rng.choice([-1, 1], (n, 1))
    ranks = {"n_background": 5, "n_foreground": 3} if solver == "paper" else {}
    ContrastiveICA(1, random_state=0).fit(X[:500, :4], background=Y[:500, :4])
    gc.collect()

    def held(field):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field)) * 1024

    before = held("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    model = ContrastiveICA(
        1, n_pcs=n_pcs, memory_limit=limit, solver=solver, random_state=0, **ranks
    )
    try:
        model.fit(X, background=Y)
        said = ""
    except MemoryError as error:
        said = "refused: " + str(error).split(",")[0]
    print((held("VmHWM") - before) / 1e6, said, sep="|")
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limits", type=int, nargs="+", default=[200, 500, 2000], help="in MB")
    parser.add_argument("--solvers", nargs="+", default=["auto", "paper"])
    arguments = parser.parse_args()
    worst = 0.0
    print("| rows | variables | n_pcs | solver | memory_limit | growth of the peak |")
    print("|---|---|---|---|---|---|")
    for n, p, n_pcs in GRID:
        for solver in arguments.solvers:
            for limit in arguments.limits:
                command = [
                    sys.executable,
                    "-c",
                    SCRIPT,
                    str(n),
                    str(p),
                    n_pcs,
                    f"{limit}MB",
                    solver,
                ]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr)
                grown, said = done.stdout.strip().split("|")
                worst = max(worst, float(grown) / limit)
                print(
                    f"| {n} | {p} | {n_pcs} | {solver} | {limit} MB | {float(grown):.0f} MB {said}|",
                    flush=True,
                )
    print(f"\nlargest share of its limit that a fit took: {worst:.2f} (bar 1.2)")
    sys.exit(int(worst > 1.2))


if __name__ == "__main__":
    main()
