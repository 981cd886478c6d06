"""Datasets, fits and measures of benchmarks/ablations.py.

Generators of designs are seeded with ``[p, seed, 101]``, images with 300 and above: draws that no
constant was chosen on. Digits and real data are projected on 30 common principal axes once (`prepare`)
and kept in a folder, so that a machine with neither Pillow nor the datasets can run their cases too.
Labels and true patterns serve to evaluate only.
"""

import os
import time
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import silhouette_score
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from ablation_list import BY_KEY, SAME, patched, value_of
from accuracy import DESIGNS, both, similarity
from contrica import ContrastiveICA
from contrica.datasets import (
    load_corrupted_mnist,
    load_digits_on_photos,
    load_kang,
    load_mouse_protein,
    load_transplant_part,
    make_four_clusters,
    make_synthetic,
)
from contrica.moments.fourth import cumulants
from contrica.moments.operators import RankOneSum
from interferon_genes import INTERFERON

SEED, FIRST_IMAGES = 101, 300
N_PCS = {"mouse": 15}
BLAS_THREADS = 4


class Outcome(NamedTuple):
    """What one run of a study gave; None where it has no such measure.

    Attributes
    ----------
    patterns : ndarray, as columns
    accuracy : float
    counts : tuple of int
        Ranks, or the dimension.
    right : bool
        Whether the counts are the true ones; of the subspace power method, whether two generators agree.
    flagged : bool
        Whether the model says that a decision was near a tie.
    """

    patterns: np.ndarray | None = None
    accuracy: float | None = None
    counts: tuple[int, ...] | None = None
    right: bool | None = None
    flagged: bool | None = None


class Case(NamedTuple):
    """A dataset of a study.

    Attributes
    ----------
    kind : {"designs", "digits", "biology"}
    draws, quick : int
        Draws in the whole study and in a quick one.
    seconds : float
        About what a run takes, so that long ones are begun first.
    make : callable
        Of a seed and a folder of prepared data.
    prepared : str, optional
        Name of the prepared data.
    """

    kind: str
    draws: int
    quick: int
    seconds: float
    make: Callable[[int, Any], Any]
    prepared: str | None = None


class Study(NamedTuple):
    """How a draw is fitted, and on which ones.

    Attributes
    ----------
    run : callable
        Of a draw, an `Outcome`.
    rounds : int
        Runs of each value, in turn.
    on_wall : bool
        Whether threads make it quicker, so that it needs cores of its own.
    """

    run: Callable[[Any], Outcome]
    cases: dict[str, Case]
    rounds: int = 1
    on_wall: bool = False


# --- designs ---


def design(name, p, n, seed, folder=None):
    """A synthetic design of benchmarks/accuracy.py: all salient patterns are asked for."""
    options = dict(DESIGNS[name])
    if "n_background" in options:
        options["n_background"] = int(options["n_background"] * p)
    rng = np.random.default_rng([p, seed, SEED])
    data = make_synthetic(p, n_samples=n, random_state=rng, **options)
    return Bunch(
        X=data.foreground,
        Y=data.background,
        wanted=p - 1,
        n_pcs=None,
        truth=(data.A.shape[1], p - 1),
        accuracy=lambda model: similarity(model.components_.T, data.B),
        A=data.A,
    )


def few_salient(p, n, m, salient, strength, seed, folder=None):
    """Proportional backgrounds with few salient sources, or none: as many directions of contrast."""
    rng = np.random.default_rng([p, seed, SEED])
    data = make_synthetic(p, n_samples=max(n, m), proportional=True, random_state=rng)
    strengths = np.where(np.arange(p - 1) < salient, strength, 0.0)
    less = (data.salient_sources * (1 - strengths)) @ data.B.T
    return Bunch(
        X=(data.foreground - less)[:n],
        Y=data.background[:m],
        wanted=max(salient, 1),
        n_pcs=None,
        truth=(None, salient),
        accuracy=lambda model: None,
    )


def clusters(n, seed, folder=None):
    data = make_four_clusters(n, random_state=np.random.default_rng([n, seed, SEED]))
    labelled = partial(_silhouette, data.foreground, data.labels)
    return Bunch(
        X=data.foreground, Y=data.background, wanted=2, n_pcs=None, truth=None, accuracy=labelled
    )


def _silhouette(rows, labels, model):
    """Of the sources that the filters give; of a thousand rows at most."""
    sources = (rows - model.mean_) @ model.filters_.T
    return float(
        silhouette_score(sources, labels, sample_size=min(len(rows), 1000), random_state=0)
    )


# --- digits and real data, projected ---


def _photos(kind, seed):
    rng = np.random.default_rng([seed, SEED])
    digits = (0, 1) if seed == 0 else tuple(int(d) for d in rng.choice(10, 2, replace=False))
    data = load_digits_on_photos(design=kind, digits=digits, random_state=FIRST_IMAGES + seed)
    return data.foreground, data.background, {"patterns": data.patterns}


def _mnist(kind, seed):
    data = load_corrupted_mnist(design=kind, random_state=FIRST_IMAGES + seed)
    return data.foreground, data.background, {"patterns": data.patterns}


def _biology(load, seed):
    """All rows, and then four fifths of them at random."""
    data = load()
    X, Y = data.foreground, data.background
    labels = np.asarray(data.labels)
    if seed > 0:
        rng = np.random.default_rng([seed, SEED])
        chosen, others = (
            np.sort(rng.permutation(len(part))[: len(part) * 4 // 5]) for part in (X, Y)
        )
        X, Y, labels = X[chosen], Y[others], labels[chosen]
    if len(set(labels.tolist())) > 1:
        return X, Y, {"labels": labels}
    return X, Y, {"genes": np.isin(np.asarray(data.feature_names, dtype=str), sorted(INTERFERON))}


SOURCES = {
    "photos, discrete": partial(_photos, "discrete"),
    "photos, continuous": partial(_photos, "continuous"),
    "MNIST, discrete": partial(_mnist, "discrete"),
    "MNIST, continuous": partial(_mnist, "continuous"),
    "Kang": partial(_biology, lambda: load_kang(design="condition", n_genes=500)),
    "mouse": partial(_biology, load_mouse_protein),
    "AML": partial(_biology, load_transplant_part),
}


def prepared_file(name, seed, folder):
    return folder / f"{name.replace(', ', '-').lower()}-{seed}.npz"


def prepare(name, seed, folder):
    """Write one draw of digits or real data, projected; why not, where it cannot be had."""
    path = prepared_file(name, seed, folder)
    if path.exists():
        return ""
    if not name.startswith("photos") and not os.environ.get("CONTRICA_DATA"):
        return f"{name}: CONTRICA_DATA is not set"
    try:
        X, Y, truth = SOURCES[name](seed)
    except (ImportError, FileNotFoundError) as error:
        return f"{name}: {error}"
    k = N_PCS.get(name, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ContrastiveICA(2, solver="subspace", n_pcs=k, random_state=0).fit(X, background=Y)
    parts = {"X": (X - model.mean_) @ model.basis_, "Y": (Y - model.mean_) @ model.basis_}
    parts = {
        key: value.astype(np.float32) for key, value in (parts | {"basis": model.basis_}).items()
    }
    scratch = path.with_suffix(".part")
    with open(scratch, "wb") as file:
        np.savez_compressed(file, **parts, **truth)
    scratch.replace(path)
    return ""


def projected(name, n_pcs, seed, folder):
    with np.load(prepared_file(name, seed, folder)) as stored:
        kept = dict(stored)
    X, Y, basis = (kept[key].astype(float) for key in ("X", "Y", "basis"))

    def accuracy(model):
        if "labels" in kept:
            return _silhouette(X, kept["labels"], model)
        patterns = model.components_ @ basis.T
        if "patterns" in kept:
            return both(patterns, kept["patterns"])
        tops = np.argsort(-np.abs(patterns), axis=1, kind="stable")[:, :20]
        return float(kept["genes"][tops].mean())  # interferon genes among the top 20

    return Bunch(X=X, Y=Y, wanted=2, n_pcs=n_pcs, truth=None, accuracy=accuracy)


# --- tensors ---


def exact_tensor(p, rank, seed, folder=None):
    rng = np.random.default_rng([p, seed, SEED])
    vectors = rng.standard_normal((p, rank))
    weights = rng.uniform(0.5, 2, rank) * rng.choice([-1.0, 1.0], rank)
    true = vectors / np.linalg.norm(vectors, axis=0)
    return Bunch(tensor=RankOneSum(weights, true), rank=rank, true=true, exact=True)


def sample_tensor(name, p, n, seed, folder=None):
    data = design(name, p, n, seed)
    return Bunch(tensor=cumulants(data.Y).fourth, rank=data.A.shape[1], true=data.A, exact=False)


def wide_tensor(p, rank, n, seed, folder=None):
    """Few sources in many variables, and noise."""
    rng = np.random.default_rng([p, seed, SEED])
    A = rng.standard_normal((p, rank))
    A /= np.linalg.norm(A, axis=0)
    rows = rng.laplace(size=(n, rank)) @ A.T + 0.1 * rng.standard_normal((n, p))
    return Bunch(tensor=cumulants(rows).fourth, rank=rank, true=A, exact=False)


def background_tensor(name, k, rank, seed, folder):
    rows = projected(name, None, seed, folder).Y[:, :k]
    return Bunch(tensor=cumulants(rows).fourth, rank=rank, true=None, exact=False)


# --- studies ---


def fit(solver, draw):
    options = {"n_pcs": draw.n_pcs, "random_state": 0, "solver": draw.get("solver", solver)}
    wanted = draw.wanted if solver == "subspace" or draw.truth is None else None
    model = ContrastiveICA(wanted, **options).fit(draw.X, background=draw.Y)
    counts = (int(model.n_background_), int(model.n_foreground_))
    return Outcome(
        model.components_.T,
        draw.accuracy(model),
        counts,
        None if solver == "subspace" else _is_right(counts, draw.truth),
        bool(model.near_ties_),
    )


def _is_right(counts, truth):
    if truth is None:
        return None
    return all(known in (None, count) for count, known in zip(counts, truth, strict=True))


def dimension(draw):
    choose = value_of("subspace", "choose_dimension")
    chosen = int(choose(draw.X, draw.Y, rng=np.random.default_rng(0)).chosen)
    return Outcome(counts=(chosen,), right=_is_right((chosen,), draw.truth[1:]))


def power_method(draw):
    """Two generators' vectors; the first ones against the truth, where it is known."""
    spm = value_of("spm", "spm")
    first, second = (
        spm(draw.tensor, draw.rank, rng=np.random.default_rng(seed)).vectors for seed in (0, 1)
    )
    agreement = _agreement(first, second)
    if draw.exact:
        twins = np.abs(first.T @ first) - np.eye(first.shape[1])
        accuracy = float(_agreement(first, draw.true) > SAME and twins.max() < SAME)
    elif draw.true is None:
        accuracy = similarity(second, first)
    else:
        accuracy = similarity(first, draw.true)
    return Outcome(first, accuracy, (first.shape[1],), agreement > 0.99)


def whitened(d, n, seed, folder=None):
    rng = np.random.default_rng([d, seed, SEED])
    rows = rng.laplace(size=(n, d)) @ rng.standard_normal((d, d))
    rows -= rows.mean(axis=0)
    values, axes = np.linalg.eigh(rows.T @ rows / n)
    return rows @ (axes / np.sqrt(values))


def rotation(rows):
    search = value_of("negentropy", "farthest_from_gaussian")
    with threadpool_limits(BLAS_THREADS, user_api="blas"):
        found = search(rows, rng=np.random.default_rng(0), n_starts=2, max_iter=60)
    return Outcome(found.matrix)


def _drawn(draws, quick, seconds, make, *arguments):
    return Case("designs", draws, quick, seconds, partial(make, *arguments))


def _prepared(name, kind, draws, quick, seconds, n_pcs=None):
    return Case(kind, draws, quick, seconds, partial(projected, name, n_pcs), name)


def _background(name, kind, draws, quick, seconds, k, rank):
    return Case(kind, draws, quick, seconds, partial(background_tensor, name, k, rank), name)


def _joint(make):
    """The same draws, but fitted jointly, whatever "auto" would take."""
    return lambda seed, folder: Bunch(**make(seed, folder), solver="joint")


# strengths with which the default is right in some draws and wrong in others
DIMENSION = {
    "3 of 10, n = 300": _drawn(30, 2, 0.08, few_salient, 10, 300, 300, 3, 0.7),
    "3 of 10, n = 3000": _drawn(30, 1, 0.06, few_salient, 10, 3000, 3000, 3, 0.25),
    "3 of 10, n = 30000": _drawn(20, 0, 0.1, few_salient, 10, 30_000, 30_000, 3, 0.14),
    "3 of 6, n = 80000, m = 2500": _drawn(20, 1, 0.1, few_salient, 6, 80_000, 2500, 3, 0.3),
    "none of 10, n = 300": _drawn(30, 1, 0.08, few_salient, 10, 300, 300, 0, 0.0),
    "none of 10, n = 3000": _drawn(30, 0, 0.06, few_salient, 10, 3000, 3000, 0, 0.0),
    "3 of 110, n = 2500": _drawn(6, 0, 0.9, few_salient, 110, 2500, 2500, 3, 0.28),
    "3 of 300, n = 1000": _drawn(6, 0, 0.4, few_salient, 300, 1000, 1000, 3, 0.75),
}  # fmt: skip
SUBSPACE = {
    "orthonormal B, p = 8, n = 1e3": _drawn(12, 2, 0.2, design, "orthonormal B", 8, 1000),
    "orthonormal B, p = 12, n = 1e4": _drawn(8, 0, 0.3, design, "orthonormal B", 12, 10**4),
    "orthonormal B, p = 8, n = 1e5": _drawn(4, 0, 0.4, design, "orthonormal B", 8, 10**5),
    "general B, p = 8, n = 1e4": _drawn(8, 0, 0.2, design, "general B", 8, 10**4),
    "uniform, p = 8, n = 1e4": _drawn(8, 0, 0.2, design, "uniform", 8, 10**4),
    "Student t(5), p = 8, n = 1e4": _drawn(8, 0, 0.2, design, "Student t(5)", 8, 10**4),
    "four clusters, n = 200": _drawn(10, 1, 0.12, clusters, 200),
    "photos, discrete": _prepared("photos, discrete", "digits", 6, 1, 0.6),
    "photos, continuous": _prepared("photos, continuous", "digits", 8, 0, 0.4),
    "MNIST, discrete": _prepared("MNIST, discrete", "digits", 3, 0, 1.3),
    "MNIST, continuous": _prepared("MNIST, continuous", "digits", 3, 0, 0.9),
    "Kang": _prepared("Kang", "biology", 3, 0, 1.0),
    "mouse": _prepared("mouse", "biology", 8, 1, 0.1),
    "AML": _prepared("AML", "biology", 4, 0, 0.3),
}  # fmt: skip
RANKS = {
    "orthonormal B, p = 4, n = 1e4": _drawn(10, 2, 0.5, design, "orthonormal B", 4, 10**4),
    "orthonormal B, p = 6, n = 1e5": _drawn(6, 0, 1.1, design, "orthonormal B", 6, 10**5),
    "orthonormal B, p = 8, n = 1e4": _drawn(6, 0, 1.2, design, "orthonormal B", 8, 10**4),
    "general B, p = 6, n = 1e5": _drawn(5, 0, 1.0, design, "general B", 6, 10**5),
    "mixed signs, p = 6, n = 1e5": _drawn(5, 0, 1.2, design, "mixed signs", 6, 10**5),
    "orthonormal B, p = 12, n = 1e4": _drawn(1, 0, 3.2, design, "orthonormal B", 12, 10**4),
    "nothing, p = 6, n = 1e4": _drawn(6, 1, 0.6, few_salient, 6, 10**4, 10**4, 0, 0.0),
    "four clusters, n = 200": _drawn(5, 0, 0.4, clusters, 200),
    "photos, 8 axes": _prepared("photos, discrete", "digits", 3, 0, 0.7, 8),
    "photos, joint fit": Case("digits", 1, 0, 2.0, _joint(partial(projected, "photos, discrete", None)),
                              "photos, discrete"),
    "mouse, 6 axes": _prepared("mouse", "biology", 6, 1, 0.3, 6),
    "Kang, 8 axes": _prepared("Kang", "biology", 2, 0, 1.2, 8),
    "AML, 8 axes": _prepared("AML", "biology", 2, 0, 1.2, 8),
}  # fmt: skip
TENSORS = {
    "exact, p = 6, rank 15": _drawn(12, 2, 0.07, exact_tensor, 6, 15),
    "exact, p = 8, rank 12": _drawn(20, 0, 0.02, exact_tensor, 8, 12),
    "exact, p = 10, rank 45": _drawn(4, 0, 0.4, exact_tensor, 10, 45),
    "exact, p = 120, rank 12": _drawn(4, 1, 0.1, exact_tensor, 120, 12),
    "exact, p = 120, rank 30": _drawn(4, 0, 0.3, exact_tensor, 120, 30),
    "sample, p = 8, r = 8, n = 1e4": _drawn(12, 1, 0.1, sample_tensor, "orthonormal B", 8, 10**4),
    "sample, p = 12, r = 12, n = 1e5": _drawn(6, 0, 0.1, sample_tensor, "orthonormal B", 12, 10**5),
    "sample, p = 8, r = 12, n = 1e5": _drawn(8, 0, 0.1, sample_tensor, "r = 1.5 p", 8, 10**5),
    "sample, p = 120, r = 15, n = 2e3": _drawn(3, 0, 1.4, wide_tensor, 120, 15, 2000),
    "photos, 30 axes, rank 40": _background("photos, discrete", "digits", 3, 0, 0.9, 30, 40),
    "MNIST, 30 axes, rank 20": _background("MNIST, discrete", "digits", 3, 0, 0.6, 30, 20),
    "Kang, 15 axes, rank 20": _background("Kang", "biology", 3, 0, 0.3, 15, 20),
    "mouse, 15 axes, rank 27": _background("mouse", "biology", 4, 0, 0.5, 15, 27),
}  # fmt: skip
ROTATION = {
    "10 dimensions, n = 30000": _drawn(1, 1, 0.12, whitened, 10, 30_000),
    "30 dimensions, n = 30000": _drawn(1, 0, 0.3, whitened, 30, 30_000),
    "60 dimensions, n = 10000": _drawn(1, 0, 1.3, whitened, 60, 10_000),
}
STUDIES = {
    "dimension": Study(dimension, DIMENSION),
    "subspace": Study(partial(fit, "subspace"), SUBSPACE),
    "ranks": Study(partial(fit, "auto"), RANKS),
    "spm": Study(power_method, TENSORS),
    "rotation": Study(rotation, ROTATION, rounds=4, on_wall=True),
}


# --- one task ---

_WARM = set()


@lru_cache(maxsize=3)
def _draw(study, case, seed, folder):
    return STUDIES[study].cases[case].make(seed, folder)


def _agreement(found, reference):
    """The least |cosine| of a reference's pattern with the one that goes with it; 0 for missing ones."""
    if found.shape[1] != reference.shape[1]:
        return 0.0
    found, reference = (part / np.linalg.norm(part, axis=0) for part in (found, reference))
    cosines = np.abs(reference.T @ found)
    best = cosines.argmax(axis=1)
    return float(cosines.max(axis=1).min()) if len(set(best.tolist())) == len(best) else 0.0


def _timed(study, draw):
    """An outcome, or what was raised, with CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    error = ""
    try:
        outcome = STUDIES[study].run(draw)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError) as raised:
        outcome, error = Outcome(accuracy=0.0, right=False), f"{type(raised).__name__}: {raised}"
    return outcome, error, time.process_time() - cpu, time.perf_counter() - wall


def _record(runs, reference):
    outcome, error = runs[0][:2]
    kept = outcome._asdict() | {"patterns": None, "error": error}
    if error or reference.patterns is None:
        kept["same"] = float(not error and outcome.counts == reference.counts)
    else:
        kept["same"] = _agreement(outcome.patterns, reference.patterns)
    return kept | {
        "cpu": float(np.median([run[2] for run in runs])),
        "wall": float(np.median([run[3] for run in runs])),
    }


def measure(key, study, case, seed, folder):
    """Every value of an ablation on one draw, in turn with the default.

    Parameters
    ----------
    key, study, case : str
    seed : int
    folder : Path
        Of prepared data.

    Returns
    -------
    dict
        "default", and every label under "tried".
    """
    ablation = BY_KEY[key]
    draw = _draw(study, case, seed, folder)
    runs = {label: [] for label in (None, *ablation.tried)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if study not in _WARM:
            _timed(study, draw)  # whatever a process does once
            _WARM.add(study)
        for _ in range(STUDIES[study].rounds):
            runs[None].append(_timed(study, draw))
            for label, values in ablation.tried.items():
                with patched(ablation, values):
                    runs[label].append(_timed(study, draw))
    default = runs.pop(None)
    reference = default[0][0]
    return {
        "default": _record(default, reference),
        "tried": {label: _record(those, reference) for label, those in runs.items()},
    }
