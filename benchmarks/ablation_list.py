"""What benchmarks/ablations.py changes: every constant of the solvers, what it is and what is tried.

`PLACES` says in which modules the constants of a place are looked for. Where one is moved to another
module, that is the only line to edit; what is not found, or is found twice, is an error.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PLACES = {
    "subspace": (
        "contrica.solvers.subspace",
        "contrica.solvers.subspace_solver",
        "contrica.solvers.permutation_null",
        "contrica.solvers.row_design",
        "contrica.solvers.split",
        "contrica.solvers.contrast_directions",
    ),
    "negentropy": ("contrica.solvers.negentropy", "contrica.solvers.ascent"),
    "selection": (
        "contrica.solvers.selection",
        "contrica.solvers.residuals",
        "contrica.solvers.weights",
    ),
    "spm": ("contrica.decompositions._spm", "contrica.decompositions._spm_search"),
}
# Patterns with |cosines| above this are the same.
SAME = 1 - 1e-6
# Not chosen, but derived.
MATHEMATICS = {
    "negentropy": {
        "GAUSSIAN": "`E exp(−ν²/2)` of a standard normal ν",
        "TAIL_CONSTANT": "k₂ of Hyvärinen's approximation; only its ratio to `w k₁` matters, see "
        "`SKEWNESS_WEIGHT`",
        "SKEWNESS_CONSTANT": "k₁ of the same approximation",
        "ROUNDING": "share of J below which a gain is rounding",
    }
}


class Rule(NamedTuple):
    """Makes of a function another that takes its place."""

    change: Callable[[Any], Any]


class Ablation(NamedTuple):
    """Constants, or a rule, that are changed together.

    Attributes
    ----------
    place : str
        One of `PLACES`.
    names : tuple of str
    meaning : str
    tried : dict
        For each label one value for every name.
    studies : tuple of str
        Of `ablation_cases.STUDIES`; a colon and a kind, "subspace:digits", leaves out the other kinds.
    """

    place: str
    names: tuple[str, ...]
    meaning: str
    tried: dict[str, tuple]
    studies: tuple[str, ...]

    @property
    def key(self):
        """The place and the names."""
        return f"{self.place}.{'+'.join(self.names)}"

    @property
    def is_rule(self):
        """Whether a function is replaced."""
        return any(isinstance(value, Rule) for values in self.tried.values() for value in values)


def _one(place, name, meaning, tried, *studies):
    """One constant: a list of values, or a dictionary of labels and values."""
    labelled = tried if isinstance(tried, dict) else {f"{value:g}": value for value in tried}
    return Ablation(
        place, (name,), meaning, {label: (v,) for label, v in labelled.items()}, studies
    )


NEVER = 10**9
_null = partial(_one, "subspace")
_turn = partial(_one, "negentropy")
_rank = partial(_one, "selection")
_spm = partial(_one, "spm")
NULL = ("dimension", "subspace:digits", "subspace:biology")
SPM = ("spm",)

ABLATIONS = [
    # the permutation null
    _null("N_PERMUTATIONS", "permutations of the null that counts directions", [99, 3999], *NULL),
    _null("PERMUTED_AT_ONCE", "permutations in one product; bounds memory", [10, 1000], "dimension"),
    _null("PERMUTATION_BUDGET", "multiplications after which fewer permutations are made",
          [2e9, 2e11], *NULL),
    _null("MIN_PERMUTATIONS", "permutations made in any case", [10, 200], "dimension"),
    _null("FEW_ROWS", "rows of the smaller dataset up to which rows, not batches of them, are permuted",
          {"0": 0, "never in batches": NEVER}, *NULL),
    _null("BATCHES", "batches that many rows are put into", [200, 5000], *NULL),
    _null("MIN_PERMUTED", "batches that go to the smaller dataset, at least", [5, 500], "dimension"),
    _null("MAX_BATCH_ENTRIES", "entries of all batches' products above which rows are permuted",
          {"never in batches": 0, "always in batches": 10**12}, *NULL),
    _null("SAME_ROWS", "share by which variances of the same rows may differ; speed only",
          {"covariances are formed anew": -1.0}, "dimension"),
    _null("MIN_STRATUM", "batches of a stratum below which rows are permuted; a fit has no strata",
          [2, 50], "dimension"),
    # the dimension of the subspace
    _null("TO_SPARE", "dimensions beyond the directions that stand out", [0, 3], "subspace"),
    _null("MIN_DIMENSION", "dimensions at least", [1, 6], "subspace"),
    # the rotation
    _turn("SKEWNESS_WEIGHT", "w: how much skewness counts beside tails", [0.0, 0.25, 1.0], "subspace"),
    _turn("N_STARTS", "random rotations to start from", [1, 3, 24], "subspace"),
    _turn("SEARCH_ROWS", "rows on which all starts are followed", {"4000": 4000, "all": NEVER},
          "subspace"),
    _turn("ROUGHLY", "slope at which a start ends", [1e-2, 1e-6], "subspace"),
    _turn("REMEMBERED", "steps that tell of second derivatives", [3, 20], "subspace"),
    _turn("MIN_CURVATURE", "second derivative at least, as a share of the largest",
          {"0.01": 0.01, "0.2": 0.2, "all alike": 1.0}, "subspace"),
    _turn("MAX_ANGLE", "angle of the first step tried, at most", [0.1, 1.0], "subspace"),
    _turn("ENOUGH", "share of the promised gain that a step must have", [1e-8, 0.1], "subspace"),
    _turn("MAX_SHORTER", "shorter steps tried before the gradient is followed anew", [3, 30],
          "subspace"),
    # the rotation's speed
    _turn("TOGETHER", "entries of rotations that are followed together", {"one": 1, "all": NEVER},
          "rotation"),
    _turn("ROWS_IN_BLOCK", "rows in a block", {"250": 250, "4000": 4000, "all": NEVER}, "rotation"),
    _turn("THREADS", "threads of the search", [1, 4], "rotation"),
    _turn("THREADED_DIMENSIONS", "dimensions from which threads are used", {"10": 10, "never": NEVER},
          "rotation"),
    # ranks
    _rank("LEVEL", "level of a decision about patterns' weights", [0.001, 0.05], "ranks"),
    _rank("STEPS", "steps of each fit of the search", [30, 300], "ranks"),
    _rank("WORTHWHILE", "share by which a try must lower the objective", [0.0, 0.1], "ranks"),
    _rank("BUDGET", "multiplications of the whole search", [1e9, 2.5e10], "ranks"),
    _rank("TIE", "share of a threshold within which a decision is called near a tie", [0.01, 0.2],
          "ranks"),
    _rank("MAX_TURNS", "times that patterns are found to be symmetric, or not to be", [0, 20], "ranks"),
    _rank("N_OF_FOURTH", "directions compared of what is left of a fourth cumulant", [1, 30], "ranks"),
    _rank("N_OF_THIRD", "directions compared of what is left of a third cumulant", [1, 6], "ranks"),
    _rank("MAX_TESTED", "entries of all vectors that are tested together; bounds the start's ranks",
          [600, 5400], "ranks"),
    _rank("GROUPS", "groups of rows in the jackknife of weights", [20, 80], "ranks"),
    _rank("TRIM", "share of groups trimmed at either end", [0.0, 0.1, 0.3], "ranks"),
    _rank("SAME_OBJECTIVE", "objectives that differ by less are one minimum's", [0.0, 1e-6], "ranks"),
    _rank("RIDGE", "share of their diagonal added to the normal equations", [1e-12, 1e-5], "ranks"),
    # the subspace power method
    _spm("SAME_COSINE", "cosine above which two maximisers are one",
         {"1 − 1e-3": 1 - 1e-3, "1 − 1e-10": 1 - 1e-10}, *SPM),
    _spm("EXACT_GAP", "1 − f below which a maximiser's square is in the subspace",
         {"0 (no tensor is exact)": 0.0, "1e-9": 1e-9}, *SPM),
    _spm("CLASH", "cosine, in the form M⁺, above which two are not both components of an exact tensor",
         {"never": 2.0, "1e-6": 1e-6}, *SPM),
    _spm("MAX_EMPTY_ROUNDS", "rounds without a component before an exact tensor is called inexact",
         [2, 100], *SPM),
    _spm("STARTS_PER_VECTOR", "starts in a batch for each vector", [1, 10], *SPM),
    _spm("MIN_STARTS", "starts in a batch, at least", [20, 400], *SPM),
    _spm("POWER_STEPS", "power steps before Newton steps", [0, 15, 240], *SPM),
    _spm("MERGE_EVERY", "power steps between merges of starts", {"5": 5, "never": NEVER}, *SPM),
    _spm("NEAR_COSINE", "cosine above which starts are merged", [0.9, 0.95, 0.9999], *SPM),
    _spm("CLOSE_COSINE", "cosine to a known maximiser above which a Newton step is its",
         {"1 − 1e-2": 1 - 1e-2, "1 − 1e-6": 1 - 1e-6}, *SPM),
    _spm("FLAT", "smallest curvature that is believed", [1e-10, 1e-3], *SPM),
    _spm("SHORT_STEP", "Newton steps below this length are not compared with others",
         {"0 (all are compared)": 0.0, "10 (none is)": 10.0}, *SPM),
    _spm("WIDE_FEATURES", "variables above which terms are first sought in fewer dimensions",
         {"20": 20, "never": NEVER}, *SPM),
    _spm("WIDE", "dimensions for each term there", [1, 2, 6], *SPM),
    _spm("WIDE_ENTRIES", "numbers that are worked with at a time there; bounds memory",
         {"2^18": 2**18, "2^28": 2**28}, *SPM),
    _spm("LEVEL", "slope that is zero to rounding there", [1e-16, 1e-9], *SPM),
    _spm("MAX_BATCHES", "batches of starts in a round, at most", [2, 32], *SPM),
    _spm("QUIET_BATCHES", "batches made at once, which end a round if they add nothing", [1, 5],
         *SPM),
    # rules without a number of their own
    _null("LEVEL", "level of the test of each direction", [0.01, 0.2], *NULL),
    _null("NEAR_LEVEL", "factor of the level within which a count is near a tie", [1.2, 5.0],
          "dimension"),
    _null("MAX_KEPT_ENTRIES", "entries of permuted covariances that are kept; speed only", {"none": 0},
          "dimension"),
    _null("Split.floor_within", "ρ of the background is added in every permutation",
          {"ρ = 0, to rounding": Rule(lambda whole: lambda self, projector: 0.0)}, *NULL),
    _null("ContrastScree.n_beyond", "directions that exceed every permutation are worked in, not ℓ",
          {"ℓ": Rule(lambda whole: property(lambda self: self.chosen))}, *NULL),
    _null("floor_of", "ρ = tr(Σ_y) / m is added to the background's covariance",
          {"ρ = 0, to rounding": Rule(lambda whole: lambda fore, back, m: whole(fore, back, np.inf))},
          *NULL),
    _rank("_Search._larger_in_front", "a foreground pattern has a larger weight there than elsewhere",
          {"not asked": Rule(lambda whole: lambda self, judged: np.ones(judged.weights.shape[1], bool))},
          "ranks"),
    _spm("n_upper", "of a noisy round's maximisers the higher half is taken",
         {"all": Rule(lambda whole: lambda heights: heights.size),
          "the first": Rule(lambda whole: lambda heights: min(heights.size, 1))}, *SPM),
]  # fmt: skip
BY_KEY = {ablation.key: ablation for ablation in ABLATIONS}


# --- where constants are, and how they are changed ---


@lru_cache
def _tree(module_name):
    file = importlib.import_module(module_name).__file__
    return ast.parse(Path(file).read_text(encoding="utf-8"))


@lru_cache
def _assigned(module_name):
    """Names that a module itself gives a value, and the names that stand in that value."""
    found = {}
    for node in _tree(module_name).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if getattr(node, "value", None) is None or isinstance(node, ast.Expr):
            targets = []
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    within = {
                        part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)
                    }
                    found[each.id] = within
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = set()
    return found


def constants(place):
    """Names in capitals that the modules of a place give a value."""
    names = {name for module in PLACES[place] for name in _assigned(module)}
    return {name for name in names if name == name.upper() and not name.startswith("_")}


def module_of(place, name):
    """The one module of a place that has a constant, a function or a class."""
    first = name.split(".")[0]
    homes = [module for module in PLACES[place] if first in _assigned(module)]
    if len(homes) != 1:
        raise LookupError(
            f"{name} is in {len(homes)} of the modules {', '.join(PLACES[place])}. "
            "Edit PLACES, or the list of ablations, in benchmarks/ablation_list.py."
        )
    used = [other for other, within in _assigned(homes[0]).items() if first in within]
    if used:
        raise LookupError(
            f"{', '.join(used)} of {homes[0]} is made of {name} on import, so that changing the one does "
            "not change the other."
        )
    return homes[0]


def value_of(place, name):
    """What a constant is now."""
    found = importlib.import_module(module_of(place, name))
    for part in name.split("."):
        found = getattr(found, part)
    return found


def check_complete():
    """Raise unless every constant of the places is in the list, and all in the list are there."""
    for ablation in ABLATIONS:
        for name in ablation.names:
            value_of(ablation.place, name)
    for place in PLACES:
        listed = {name for each in ABLATIONS if each.place == place for name in each.names}
        missing = constants(place) - listed - MATHEMATICS.get(place, {}).keys()
        if missing:
            raise LookupError(
                f"no ablation for {', '.join(sorted(missing))} of {place}. Add a line to ABLATIONS."
            )


@contextmanager
def patched(ablation, values):
    """Other values for constants: in their module, where they are imported, and as defaults.

    Parameters
    ----------
    ablation : Ablation
    values : tuple
        One for every name.
    """
    with ExitStack() as undo:
        for name, value in zip(ablation.names, values, strict=True):
            home = importlib.import_module(module_of(ablation.place, name))
            before = value_of(ablation.place, name)
            after = value.change(before) if isinstance(value, Rule) else value
            *owner, attribute = name.split(".")
            places = [getattr(home, owner[0])] if owner else _holders(home, name, before)
            for place in places:
                setattr(place, attribute, after)
                undo.callback(setattr, place, attribute, before)
                for function, parameter in [] if owner else _defaults(place, name):
                    _set_default(function, parameter, after)
                    undo.callback(_set_default, function, parameter, before)
        yield


def _holders(home, name, value):
    """A constant's module and those that import the constant."""
    others = [
        module
        for module_name, module in sorted(sys.modules.items())
        if module_name.split(".")[0] == "contrica"
        and module is not home
        and vars(module).get(name) is value
        and name not in _assigned(module_name)
    ]
    return [home, *others]


def _defaults(module, name):
    """Functions of a module that have a constant as a default, and of which parameter."""
    tree = _tree(module.__name__)
    owners = [(module, tree.body)]
    owners += [
        (getattr(module, node.name), node.body)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
    for owner, body in owners:
        for node in body:
            if not isinstance(node, ast.FunctionDef):
                continue
            given, named = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
            pairs = [
                *zip(
                    given[len(given) - len(node.args.defaults) :], node.args.defaults, strict=True
                ),
                *zip(named, node.args.kw_defaults, strict=True),
            ]
            for parameter, default in pairs:
                if isinstance(default, ast.Name) and default.id == name:
                    yield getattr(owner, node.name), parameter.arg


def _set_default(function, parameter, value):
    if parameter in (function.__kwdefaults__ or {}):
        function.__kwdefaults__[parameter] = value
        return
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = list(function.__defaults__)
    defaults[names.index(parameter) - len(names)] = value
    function.__defaults__ = tuple(defaults)
