"""What every constant of the solvers changes: each is set to other values, on several kinds of data.

``python benchmarks/ablations.py [--quick] [--only NAME ...] [--draws FACTOR] [--jobs N] [--out FOLDER]``
runs the study and keeps each result in FOLDER (default ``ablations/``), so that it can be stopped and
gone on with. ``--table`` prints the tables of what FOLDER holds, ``--write docs/ablations.md`` puts them
into that page, between its markers, and ``--check`` says whether the list in `ablation_list` is complete.
``--prepare`` only writes digits and real data (CONTRICA_DATA) to FOLDER/data: with them the study runs
where neither Pillow nor the datasets are.

A constant is changed in its module and restored. Every draw is fitted with each value and with the
default, one after the other in one process: changes of accuracy are paired, and times are ratios of CPU
seconds, or of wall seconds where threads matter.
"""

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from ablation_list import ABLATIONS, BY_KEY, MATHEMATICS, PLACES, SAME, check_complete, value_of

KINDS = ("designs", "digits", "biology")
# A change of accuracy counts from here, if it is so many standard errors: of a kind of data, of a case.
CHANGE, OF_KIND, OF_CASE = 0.002, 2.5, 3.0
# A ratio of times counts from here: over all cases, and of one.
TIME, TIME_OF_CASE = 1.1, 1.3
START, END = "<!-- tables of benchmarks/ablations.py -->", "<!-- end of tables -->"
TITLES = {
    "subspace": "Contrast subspace: permutation null, and weights of skewness",
    "negentropy": "Rotation: negentropy",
    "selection": "Ranks: significance of weights",
    "spm": "Subspace power method",
}


# --- running ---


def plan(only, quick, factor, data):
    """Every task: key of an ablation, study, case, seed."""
    from ablation_cases import STUDIES, prepared_file

    tasks = []
    for ablation in ABLATIONS:
        if only and not any(name in (ablation.key, *ablation.names) for name in only):
            continue
        for study, _, kind in (part.partition(":") for part in ablation.studies):
            for name, case in STUDIES[study].cases.items():
                draws = case.quick if quick else round(case.draws * factor)
                tasks += [
                    (ablation.key, study, name, seed)
                    for seed in range(draws if kind in ("", case.kind) else 0)
                    if case.prepared is None or prepared_file(case.prepared, seed, data).exists()
                ]
    return tasks


def price(task):
    """About what a task takes, in seconds."""
    from ablation_cases import STUDIES

    key, study, case, _ = task
    n_runs = STUDIES[study].rounds * (len(BY_KEY[key].tried) + 1)
    return STUDIES[study].cases[case].seconds * n_runs


def prepare_all(quick, factor, data, jobs):
    """Write the draws of digits and real data that are not there; say which cannot be had."""
    from ablation_cases import STUDIES, prepare

    data.mkdir(parents=True, exist_ok=True)
    n_draws = defaultdict(int)
    for study in STUDIES.values():
        for case in study.cases.values():
            draws = case.quick if quick else round(case.draws * factor)
            n_draws[case.prepared] = max(n_draws[case.prepared], draws)
    wanted = [(name, seed) for name, draws in n_draws.items() if name for seed in range(draws)]
    why_not = Parallel(n_jobs=jobs)(delayed(prepare)(name, seed, data) for name, seed in wanted)
    for reason in sorted(set(why_not) - {""}):
        print(f"left out: {reason}", file=sys.stderr)


def task_file(task, folder):
    text = "--".join(str(part) for part in task)
    return folder / ("".join(c if c.isalnum() or c in "-.+" else "_" for c in text) + ".json")


def is_done(task, folder):
    """Whether there is a result, with the values that are to be tried now."""
    path = task_file(task, folder)
    return path.exists() and [*json.loads(path.read_text())["tried"]] == [*BY_KEY[task[0]].tried]


def run(task, folder, data):
    from ablation_cases import STUDIES, measure

    _, study, case, _ = task
    kept = {"task": task, "kind": STUDIES[study].cases[case].kind} | measure(*task, data)
    path = task_file(task, folder)
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(kept))
    scratch.replace(path)


def run_all(tasks, folder, data, jobs):
    """The long ones first; those that are timed by the wall clock last, on a quarter of the cores."""
    from ablation_cases import STUDIES

    tasks = sorted((task for task in tasks if not is_done(task, folder)), key=price, reverse=True)
    start, done = time.perf_counter(), 0
    print(f"{len(tasks)} tasks, about {sum(map(price, tasks)):.0f} s of one core", file=sys.stderr)
    for on_wall in (False, True):
        part = [task for task in tasks if STUDIES[task[1]].on_wall == on_wall]
        n_jobs = max(jobs // 4, 1) if on_wall else jobs
        work = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(
            delayed(run)(task, folder, data) for task in part
        )
        for _ in work:
            done += 1
            if done % 100 == 0 or done == len(tasks):
                spent = time.perf_counter() - start
                print(f"{done} of {len(tasks)}, {spent:.0f} s", file=sys.stderr, flush=True)


# --- results ---


class Changes:
    """All draws of one ablation with one value, against the default.

    Parameters
    ----------
    kept : list of dict
        Results of the ablation.
    label : str
        The value.
    """

    def __init__(self, kept, label):
        self.pairs = [
            (one["task"][2], one["kind"], one["default"], one["tried"][label]) for one in kept
        ]
        self.on_wall = any(one["task"][1] == "rotation" for one in kept)

    def accuracy(self, kind=None, case=None):
        """Paired changes of accuracy."""
        return np.array([
            after["accuracy"] - before["accuracy"]
            for own_case, own_kind, before, after in self.pairs
            if before["accuracy"] is not None and kind in (None, own_kind) and case in (None, own_case)
        ])  # fmt: skip

    def both(self, measure):
        """A measure that is true or false, with the default and with the value."""
        return np.array([
            (before[measure], after[measure])
            for _, _, before, after in self.pairs
            if before[measure] is not None and after[measure] is not None
        ], dtype=bool).reshape(-1, 2)  # fmt: skip

    def cases(self):
        """Their names."""
        return list(dict.fromkeys(case for case, *_ in self.pairs))

    def times(self):
        """Ratio of times in each case: the median of its draws."""
        clock = "wall" if self.on_wall else "cpu"
        ratios = defaultdict(list)
        for case, _, before, after in self.pairs:
            ratios[case].append(after[clock] / max(before[clock], 1e-9))
        return {case: float(np.median(values)) for case, values in ratios.items()}

    def errors(self):
        """What was raised with the value."""
        return [after["error"] for *_, after in self.pairs if after["error"]]

    def shares(self):
        """Share of draws with the same patterns, or counts, and how far the others are apart."""
        same = np.array([after["same"] for *_, after in self.pairs])
        return float(np.mean(same > SAME)), float(1 - same.min())

    def moved(self):
        """Cases, and kinds of data, in which accuracy changed by more than draws explain."""
        groups = [(f"all {kind}", self.accuracy(kind=kind), OF_KIND, 6) for kind in KINDS]
        groups += [(case, self.accuracy(case=case), OF_CASE, 3) for case in self.cases()]
        found = {}
        for name, changes, errors, min_draws in groups:
            if changes.size < min_draws:
                continue
            mean, error = changes.mean(), changes.std(ddof=1) / changes.size**0.5
            if abs(mean) > max(CHANGE, errors * error):
                found[name] = float(mean)
        return found

    def turned(self):
        """By how many draws more a count is right than before, where that is more than chance."""
        right = self.both("right")
        won, lost = np.sum(~right[:, 0] & right[:, 1]), np.sum(right[:, 0] & ~right[:, 1])
        return int(won - lost) if abs(won - lost) > 2 * (won + lost) ** 0.5 else 0

    def speed(self):
        """Ratio of times over all cases where that counts, or where it counts in one case; else 1."""
        times = self.times()
        over_all = float(np.exp(np.mean(np.log([*times.values()]))))
        farthest = max(times.values(), key=lambda ratio: abs(np.log(ratio)))
        if abs(np.log(over_all)) > np.log(TIME):
            return over_all
        return farthest if abs(np.log(farthest)) > np.log(TIME_OF_CASE) else 1.0

    def is_same(self):
        """Whether patterns, counts and accuracy are the default's in all draws."""
        right = self.both("right")
        return self.shares()[0] == 1.0 and bool((right[:, 0] == right[:, 1]).all())

    def verdict(self):
        """What the value does, in a word or two."""
        signs = {np.sign(change) for change in [*self.moved().values(), self.turned()]} - {0}
        said = {(): "no difference", (-1,): "worse", (1,): "better"}.get(
            tuple(sorted(signs)), "mixed"
        )
        flags = self.both("flagged")
        if self.errors():
            said = "fails"
        elif self.is_same():
            said = "same" if (flags[:, 0] == flags[:, 1]).all() else "same, other reports"
        speed = self.speed()
        return said if speed == 1.0 else f"{said}, {'slower' if speed > 1 else 'faster'}"


def summary(verdicts, meaning):
    """What all values of a constant together say of it."""
    said = {verdict.split(",")[0] for verdict in verdicts}
    if said & {"better", "mixed"}:
        return "Another value may be better"
    if said & {"worse", "fails"}:
        return "Earns its place: without it, or with another value, something is worse"
    if said != {"same"}:
        return "Changes patterns in some draws, but accuracy no more than chance"
    if any("reports" in verdict for verdict in verdicts):
        return "Changes what is reported, and no pattern"
    if "bounds memory" in meaning:
        return "Bounds memory; the same patterns"
    if any("," in verdict for verdict in verdicts):
        return "Changes speed only; the same patterns"
    return "Changes nothing"


# --- tables ---


def number(value):
    return "0" if abs(value) < 5e-4 else f"{value:+.3f}".replace("-", "−")


def accuracy_cell(changes):
    if changes.size == 0:
        return "–"
    if np.abs(changes).max() < 5e-4:
        return f"0 (of {changes.size})"
    error = changes.std(ddof=1) / changes.size**0.5 if changes.size > 1 else np.nan
    up, down = np.sum(changes > 0.01), np.sum(changes < -0.01)
    return f"{number(changes.mean())} ± {error:.3f} ({up} up, {down} down of {changes.size})"


def share_cell(both):
    if len(both) == 0:
        return "–"
    before, after = both.mean(axis=0)
    return f"{before:.0%} → {after:.0%} ({len(both)})"


def tie_cell(changes):
    """How many decisions are called near a tie, where they were wrong and where they were right."""
    flagged = [
        (after["right"], after["flagged"])
        for *_, after in changes.pairs
        if after["right"] is not None
    ]
    rates = [[flag for right, flag in flagged if right == wanted] for wanted in (False, True)]
    wrong, right = (f"{np.mean(part):.0%} of {len(part)}" if part else "–" for part in rates)
    return f"flags {wrong} wrong and {right} right ranks"


def moved_cell(moved):
    single = {name: mean for name, mean in moved.items() if not name.startswith("all ")}
    ends = sorted(single, key=single.get)
    shown = dict.fromkeys([*ends[:2], *ends[-2:]])
    return "; ".join(f"{name}: {number(single[name])}" for name in shown) or "–"


def time_cell(times):
    middle = np.exp(np.mean(np.log([*times.values()])))
    return f"{middle:.2f} ({min(times.values()):.2f}–{max(times.values()):.2f})"


def same_cell(changes):
    share, apart = changes.shares()
    return f"{share:.0%}" if apart > 1e-3 else f"{share:.0%}, to {max(apart, 1e-16):.0e}"


def default_of(ablation):
    values = [value_of(ablation.place, name) for name in ablation.names]
    return (
        ""
        if ablation.is_rule
        else ", ".join(f"{v:g}" if np.isscalar(v) else str(v) for v in values)
    )


def lines_of(ablation, kept):
    """A row for every value, and what all of them say together."""
    rows, verdicts = [], []
    for label in ablation.tried:
        changes = Changes(kept, label)
        verdicts.append(changes.verdict())
        named = f"`{', '.join(ablation.names)}`: {ablation.meaning}"
        right = tie_cell(changes) if "TIE" in ablation.names else share_cell(changes.both("right"))
        rows.append([
            named if label == next(iter(ablation.tried)) else "″", default_of(ablation), label,
            *(accuracy_cell(changes.accuracy(kind)) for kind in KINDS), moved_cell(changes.moved()),
            right, same_cell(changes), time_cell(changes.times()), verdicts[-1],
        ])  # fmt: skip
    return rows, summary(verdicts, ablation.meaning)


def table(heading, rows):
    rule = ["---"] * len(heading)
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [heading, rule, *rows])


HEADING = [
    "constant", "default", "tried", "accuracy: designs", "digits", "biology", "by case",
    "right: default → tried", "same patterns", "time", "verdict",
]  # fmt: skip


def results(folder):
    found = defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        ablation = BY_KEY.get(kept["task"][0])
        if ablation is not None and [*kept["tried"]] == [*ablation.tried]:
            found[ablation.key].append(kept)
    return found


def case_table(found):
    """Every case: draws, and what the default reaches there."""
    cases = defaultdict(dict)
    for kept in (one for those in found.values() for one in those):
        _, study, case, seed = kept["task"]
        cases[study, kept["kind"], case][seed] = kept["default"]
    rows = []
    for (study, kind, case), draws in sorted(cases.items()):
        values = [each["accuracy"] for each in draws.values() if each["accuracy"] is not None]
        right = [each["right"] for each in draws.values() if each["right"] is not None]
        rows.append([
            study, kind, case, len(draws), f"{np.mean(values):.3f}" if values else "–",
            f"{np.mean(right):.0%}" if right else "–",
            f"{np.median([each['cpu'] for each in draws.values()]):.2f}",
        ])  # fmt: skip
    heading = ["study", "kind", "case", "draws", "mean accuracy", "right", "CPU, s"]
    return "### Cases, with the defaults\n\n" + table(heading, rows)


def tables(found):
    """All tables, as text."""
    out, verdicts = [], defaultdict(list)
    for place, title in TITLES.items():
        rows = []
        for rules in (False, True):
            for ablation in ABLATIONS:
                kept = found.get(ablation.key)
                if ablation.place == place and ablation.is_rule == rules and kept:
                    lines, verdict = lines_of(ablation, kept)
                    rows += lines
                    verdicts[verdict].append(f"`{', '.join(ablation.names)}` ({place})")
        fixed = [f"`{name}`: {text}" for name, text in MATHEMATICS.get(place, {}).items()]
        out += [f"### {title}", f"In {', '.join(f'`{name}`' for name in PLACES[place])}."]
        out += [table(HEADING, rows)] if rows else []
        out += ["Not chosen, but derived: " + "; ".join(fixed) + "."] if fixed else []
    told = [f"- {verdict}: {', '.join(names)}" for verdict, names in sorted(verdicts.items())]
    return "\n\n".join(["### What follows", "\n".join(told), *out, case_table(found)])


def write(page, text):
    before, rest = page.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    page.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws of few datasets, minutes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="LEVEL, or spm.LEVEL")
    parser.add_argument(
        "--draws", type=float, default=1.0, metavar="FACTOR", help="more draws, or fewer"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("ablations"))
    parser.add_argument("--check", action="store_true", help="whether the list is complete, no run")
    parser.add_argument("--prepare", action="store_true", help="write digits and real data, no run")
    parser.add_argument("--plan", action="store_true", help="say how long it would take, no run")
    parser.add_argument("--table", action="store_true", help="tables of what was run, no run")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="page to put the tables into, no run"
    )
    arguments = parser.parse_args()
    check_complete()
    unknown = set(arguments.only or []) - {n for a in ABLATIONS for n in (a.key, *a.names)}
    if unknown:
        parser.error(f"no ablation of {', '.join(sorted(unknown))}")
    if arguments.check:
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers
    data = arguments.out / "data"
    # other settings, which must not mix with those of the study
    folder = arguments.out / ("quick" if arguments.quick else "full")
    folder.mkdir(parents=True, exist_ok=True)
    if not arguments.table and not arguments.write:
        chosen = (arguments.quick, arguments.draws, data)
        prepare_all(*chosen, arguments.jobs)
        tasks = [] if arguments.prepare else plan(arguments.only, *chosen)
        if arguments.plan:
            print(f"{len(tasks)} tasks, about {sum(map(price, tasks)):.0f} s of one core")
            return 0
        run_all(tasks, folder, data, arguments.jobs)
        if arguments.prepare:
            return 0
    text = tables(results(folder))
    if arguments.write:
        write(arguments.write, text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
