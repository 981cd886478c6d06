"""Random fits: estimators × containers × parameters; what each may end in. Belongs to `fuzz.py`."""

import signal
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import contrica
from contrica.errors import ContricaError
from contrica.moments import DataSums
from contrica.rows import Blocks

# Seconds of computing that no fit of so few rows may take, however busy the machine is.
PATIENCE = 60
ESTIMATORS = [
    *("ContrastiveICA", "ContrastiveICA", "ContrastiveICA", "ProportionalContrastiveICA"),
    *("ContrastivePCA", "ProbabilisticContrastivePCA", "GeneralizedContrastivePCA"),
    *("PlainICA", "PlainPCA"),
]
ODD = [
    *(None, -1, 0, 1, 2, 3, 7, 2.5, "auto", "nonsense", "", [], [1, 2], {}, (1,), 1j, True),
    *(float("nan"), float("inf"), 1e308, 1e-308, np.array([1, 2]), np.eye(4), object(), b"x"),
    *(np.float32(2), np.int8(2), "100MB", "cuda", "cpu", "float32", 10**9),
]


class Hang(BaseException):
    """A call took longer than it may; not an Exception, so that nothing catches it on the way."""


def parameters(name, rng):
    """Some parameters of an estimator: mostly of use, now and then odd ones."""
    given = {}
    choices = {
        "n_components": [1, 2, 3, None, "auto", 9],
        "solver": ["auto", "paper", "joint", "subspace"],
        "n_pcs": ["auto", None, 2, 3, 30],
        "cumulant": ["plugin", "unbiased", "robust"],
        "projection": [None, "pattern", "filter"],
        "dtype": ["float64", "float32"],
        "deflation": ["thin", "sequential", "closed_form", "least_squares"],
        "n_background": [None, 1, 2, 5],
        "n_foreground": [None, 1, 2, 5],
        "max_iter": [None, 1, 50],
        "memory_limit": [None, "100MB", "1GB"],
        "alpha": ["auto", 0, 1.0, [0.5, 2.0], 1e308],
        "gamma": ["auto", 0.0, 0.5, 0.99],
        "scaling": ["posterior", "loadings", "standard", "unit"],
        "background_scale": [None, 1.0, 1e-5, 1e5],
        "rank": [None, 1, 3, 40],
        "random_state": [0, 1],
        "missing": ["error", "impute", "impute", "pairwise"],
        "scale": ["none", "pooled", "each"],
    }
    known = getattr(contrica, name)().get_params()
    for key in known:
        if key in choices and rng.random() < 0.3:
            given[key] = choices[key][rng.integers(len(choices[key]))]
        elif rng.random() < 0.01:
            given[key] = ODD[rng.integers(len(ODD))]
    return {"random_state": 0, **given} if "random_state" in known else given


def table(rng, p):
    """A table of doubles, plain or difficult."""
    n = int(rng.choice([1, 2, 3, 5, 20, 60, 200], p=[0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.3]))
    draw = [rng.standard_normal, rng.laplace, rng.standard_exponential][rng.integers(3)]
    X = draw(size=(n, p))
    twist = rng.integers(18)
    if twist == 0:
        X *= 2.0 ** rng.integers(-60, 60)
    elif twist == 1:
        X *= 10.0 ** rng.uniform(-6, 6, size=p)
    elif twist == 2:
        X += 10.0 ** rng.integers(0, 8)
    elif twist == 3 and p:
        X[:, rng.integers(p)] = rng.choice([0.0, 1.0, 1e20, 1e160])
    elif twist == 4 and p > 1:
        X[:, 0] = X[:, 1]
    elif twist == 5 and p:
        X = X[:, :1] @ rng.standard_normal((1, p))
    elif twist == 6:
        X = np.round(X)
    elif twist == 7 and X.size:
        X[rng.integers(n), rng.integers(p)] = rng.choice([np.nan, np.inf, -np.inf, 1e300])
    elif twist == 8:
        X[:] = X[:1]
    elif twist == 9:
        X[rng.random(X.shape) < rng.choice([0.02, 0.3, 0.9])] = np.nan
    return X


def labels(sizes, rng):
    """Groups of the rows of both datasets, as for ``fit``: mostly none, now and then odd ones."""
    if rng.random() > 0.2:
        return {}
    found = []
    most = int(rng.integers(2, 9))
    for n in sizes:
        names = np.array([f"g{i}" for i in range(rng.integers(1, most), 9)])
        count = len(names)
        found.append(names[np.sort(rng.integers(count, size=n))])
    if rng.random() < 0.1:
        odd = [None, found[0][:-1], "g", 5, np.ones(sizes[0]), [[1]], np.full(sizes[0], np.nan)]
        found[rng.integers(2)] = odd[rng.integers(len(odd))]
    return dict(zip(("groups", "background_groups"), found, strict=True))


def masked(X, rng):
    return np.ma.array(np.where(rng.random(X.shape) < 0.02, 1e6, X), mask=rng.random(X.shape) < 0)


def structured(X, rng):
    return np.zeros(len(X), dtype=[("a", "f8"), ("b", "f8")])


def frame(X, rng):
    import pandas as pd

    names = [f"v{i}" for i in range(X.shape[1])]
    if rng.random() < 0.1:
        names = ["v0"] * len(names)
    return pd.DataFrame(X, columns=names)


def polars_frame(X, rng):
    import polars as pl

    found = pl.DataFrame({f"v{i}": column for i, column in enumerate(X.T)})
    return found.lazy() if rng.random() < 0.1 else found


def dask_array(X, rng):
    import dask.array as da

    return da.from_array(X, chunks=(max(len(X) // 2, 1), max(X.shape[1], 1)))


CONTAINERS = {
    "array": lambda X, rng: X,
    "fortran": lambda X, rng: np.asfortranarray(X),
    "list": lambda X, rng: X.tolist(),
    "single": lambda X, rng: X.astype(np.float32),
    "whole": lambda X, rng: np.nan_to_num(X, posinf=0, neginf=0).clip(-1e9, 1e9).astype(int),
    "bool": lambda X, rng: X > 0,
    "object": lambda X, rng: X.astype(object),
    "text": lambda X, rng: X.astype(str),
    "complex": lambda X, rng: X * 1j,
    "csr": lambda X, rng: sp.csr_matrix(X),
    "csc": lambda X, rng: sp.csc_array(X),
    "coo": lambda X, rng: sp.coo_matrix(X),
    "blocks": lambda X, rng: Blocks([X[: len(X) // 2], X[len(X) // 2 :]]),
    "list of blocks": lambda X, rng: [Blocks([X]), Blocks([X])],
    "several": lambda X, rng: [X, X + 0.5],
    "iterator": lambda X, rng: iter([X[: len(X) // 2], X[len(X) // 2 :]]),
    "sums": lambda X, rng: DataSums().update(X),
    "masked": masked,
    "structured": structured,
    "pandas": frame,
    "polars": polars_frame,
    "dask": dask_array,
    "set": lambda X, rng: {1.0, 2.0},
    "dict": lambda X, rng: {"a": [1.0, 2.0]},
    "flat": lambda X, rng: X.ravel(),
    "deep": lambda X, rng: X[None],
    "number": lambda X, rng: 5.0,
    "none": lambda X, rng: None,
    "path": lambda X, rng: "rows.csv",
}
# What the numbers behind it are known of, and so what a fit of them must give.
PLAIN = {"array", "fortran", "list", "csr", "csc", "coo", "blocks", "pandas", "polars", "dask"}
USUAL = ["array", "array", "array", "csr", "blocks", "pandas", "fortran", "single", "masked"]


def draw(seed, number):
    """A case: the estimator's name, its parameters, both datasets with their containers, their groups."""
    rng = np.random.default_rng([seed, number])
    name = ESTIMATORS[rng.integers(len(ESTIMATORS))]
    given = parameters(name, rng)
    p = int(rng.choice([0, 1, 2, 3, 5, 8, 20], p=[0.01, 0.04, 0.15, 0.25, 0.3, 0.2, 0.05]))
    kinds, data, plain = [], [], []
    for _ in range(2):
        own = p if rng.random() > 0.02 else p + 1
        X = table(rng, own)
        kind = USUAL[rng.integers(len(USUAL))]
        if rng.random() < 0.25:
            kind = list(CONTAINERS)[rng.integers(len(CONTAINERS))]
        kinds.append(kind)
        plain.append(X)
        try:
            data.append(CONTAINERS[kind](X, rng))
        except ContricaError:  # sums refuse what cannot be summed
            data.append(X)
            kinds[-1] = "array"
    contrastive = name.endswith("ContrastiveICA")
    if contrastive and any(np.isnan(part).any() for part in plain):
        given["missing"] = ["error", "impute", "pairwise"][rng.integers(3)]
    grouped = contrastive or (name != "PlainICA" and rng.random() < 0.02)
    groups = labels([len(part) for part in plain], rng) if grouped else {}
    return name, given, kinds, data, plain, groups


def run_fit(seed, number):
    """What is wrong with the outcome of one case; "refused" or "right" where nothing is."""
    with np.errstate(all="ignore"):
        name, given, kinds, data, plain, groups = draw(seed, number)
    told = f"fit {seed}:{number} {name}({given}) of {kinds} {[X.shape for X in plain]}"
    told += " in groups" if groups else ""

    def hang(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = getattr(contrica, name)(**given)
            known = dict(vars(model))
            try:
                model.fit(data[0], background=data[1], **groups)
                scores = None if kinds[0] in ("iterator", "sums") else model.transform(data[0])
            except (ContricaError, NotFittedError) as error:
                if not str(error).strip():
                    return f"{told}: an error without words"
                same = vars(model).keys() == known.keys() or "components_" in vars(model)
                return "refused" if same else f"{told}: a failed fit changed the model"
            trouble = wrong(name, given, kinds, model, scores, plain)
            return f"{told}: {trouble}" if trouble else "right"
    except Hang:
        return f"{told}: more than {PATIENCE} s of computing"
    except Exception as error:
        return f"{told}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def wrong(name, given, kinds, model, scores, plain):
    """What a fit gave that is not so; empty where nothing is."""
    B = model.components_
    if not np.isfinite(B).all() or not np.allclose(np.linalg.norm(B, axis=1), 1, atol=1e-8):
        return "components_ are not unit vectors"
    X = plain[0]
    if kinds[0] not in PLAIN:
        return ""
    if np.isnan(X).any():  # filled: by what, tests say
        whole = scores is None or np.isfinite(scores).all() or np.isnan(X).all(axis=1).any()
        return "" if whole else "scores are not numbers"
    size = np.abs(X).max()
    if not np.allclose(model.mean_, mean_of(X), rtol=1e-9, atol=1e-9 * size):
        return f"mean_ is {model.mean_} and not {mean_of(X)}"
    axes, scale = model._projector, getattr(model, "scale_", None)
    expected = (X - mean_of(X)) @ axes.T
    spread = (np.abs(axes) * np.maximum(np.abs(X).max(axis=0), np.ptp(X, axis=0))).sum(axis=1).max()
    if not np.allclose(scores, expected, rtol=1e-7, atol=1e-9 * spread):
        return "scores are not those of the rows"
    if kinds[1] not in PLAIN or given.get("cumulant") == "robust" or np.isnan(plain[1]).any():
        return ""
    Y = plain[1]
    if scale is not None:
        own = model.background_spreads_
        X, Y = X / scale, Y / (scale if own is None else own[0])
    return wrong_ratio(given, model, X, Y)


def mean_of(X):
    """About the first row: the mean of equal numbers is that number."""
    return X[0] + (X - X[0]).mean(axis=0)


def wrong_ratio(given, model, X, Y):
    """Ratios of variances along the patterns, worked out anew, wherever rounding leaves digits."""
    along = [(part - mean_of(part)) @ model.components_.T for part in (X, Y)]
    fore, back = (np.mean(part**2, axis=0) for part in along)
    if given.get("cumulant") == "unbiased":
        fore, back = fore * len(X) / (len(X) - 1), back * len(Y) / (len(Y) - 1)
    elif type(model).__name__ == "GeneralizedContrastivePCA":
        return ""
    # of what the whole background varies by, what rounding may add, also of a large mean
    single = given.get("dtype") == "float32"
    digits = 1e-5 if single else 1e-10
    total = (
        np.sum((Y - mean_of(Y)) ** 2) / len(Y)
        + (1e-6 if not single else 1e-2) * np.mean(Y**2) * 1e-6
    )
    whole = np.sum((X - mean_of(X)) ** 2) / len(X)
    clear = (back > digits * total) & (fore > digits * whole)
    found = model.contrast_ratio_
    if not np.isfinite(found).all():
        return "contrast_ratio_ is not a number"
    if not np.allclose(found[clear], (fore / np.maximum(back, 1e-300))[clear], rtol=1e-2):
        return f"contrast_ratio_ is {found} and not {fore / back}"
    return ""
