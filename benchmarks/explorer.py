"""How long a refit of the explorer takes, from sums that were taken once: by solver, 10⁴ rows each.

Data have as many Laplacian background sources as variables, of other strengths in the foreground, and
four new ones. Every refit is another request (ℓ, r, patterns kept, seed), so that none was made before.
Seconds on the wall are what a reader waits; seconds of the processor are what others do not change.
"""

import argparse
import json
import sys
import time

import numpy as np

from contrica.explorer import Explorer, ExplorerData, ViewState

N_NEW = 4
# Solvers, with ranks given where they are asked for; and "joint" where it has to choose them.
CASES = ["auto", "subspace", "paper", "joint", "joint-choosing"]


def drawn(n_rows: int, n_variables: int, seed: int) -> ExplorerData:
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_variables, n_variables))
    new = rng.normal(size=(n_variables, N_NEW))
    Y = rng.laplace(size=(n_rows, n_variables)) @ mixing.T
    X = (rng.laplace(size=(n_rows, n_variables)) * rng.uniform(0.8, 1.2, n_variables)) @ mixing.T
    X += 3 * rng.laplace(size=(n_rows, N_NEW)) @ new.T
    return ExplorerData.of(X, Y)


def requests(solver: str, n_refits: int) -> list[ViewState]:
    """Another state every time, as a reader who drags ℓ or r, or keeps more, would ask for it."""
    found = []
    for i in range(n_refits):
        if solver == "joint-choosing":
            found.append(ViewState("joint", n_components=2 + i % 3, random_state=i))
            continue
        if solver in ("auto", "subspace"):
            l = None if i % 4 == 3 else 2 + i % 7  # noqa: E741 - the paper's ℓ
            found.append(ViewState(solver, n_foreground=l, n_components=1 + i % 3, random_state=i))
        else:
            found.append(
                ViewState(solver, n_foreground=2 + i % 4, n_background=8 + i % 3, random_state=i)
            )
    return found


def timed(explorer: Explorer, states: list[ViewState]) -> tuple[list[float], list[float]]:
    wall, cpu = [], []
    for state in states:
        start = time.perf_counter(), time.process_time()
        explorer.fit(state)
        explorer.cards(state)
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--variables", type=int, default=30)
    parser.add_argument("--refits", type=int, default=12)
    parser.add_argument("--solvers", nargs="+", choices=CASES, default=CASES)
    options = parser.parse_args()
    explorer = Explorer(drawn(options.rows, options.variables, 0))
    told = {}
    for solver in options.solvers:
        first = ViewState(solver) if solver in ("auto", "subspace") else requests(solver, 1)[0]
        start = time.perf_counter()
        explorer.fit(first)
        explorer.how_many(first)
        opened = time.perf_counter() - start
        states = [each for each in requests(solver, options.refits) if each != first]
        wall, cpu = timed(explorer, states)
        told[solver] = {
            "first fit and how many": round(opened, 3),
            "refit and cards, median": round(float(np.median(wall)), 3),
            "largest": round(max(wall), 3),
            "median of the processor": round(float(np.median(cpu)), 3),
            "solver used": explorer.fit(states[0]).solver,
        }
        print(solver, json.dumps(told[solver]), file=sys.stderr, flush=True)
    size = f"{options.rows} + {options.rows} rows, {options.variables} variables"
    print(json.dumps({"size": size, "refits": options.refits, "seconds": told}, indent=1))


if __name__ == "__main__":
    main()
