"""Checks of parameters and of arrays, and what is said where they fail."""

from __future__ import annotations

import numbers
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_array

from contrica.errors import (
    ContricaError,
    DataError,
    DataTypeError,
    DelicateDataWarning,
    FeaturesError,
    ParameterError,
    unmarked,
    warn,
)

__all__ = [
    "DROP_GAPS",
    "as_basis",
    "check_choice",
    "check_count",
    "check_covariance_rank",
    "check_dataset",
    "check_finite",
    "check_has_features",
    "check_matrix",
    "check_n_rows",
    "check_n_variables",
    "check_names",
    "check_numbers",
    "check_patterns",
    "check_rank",
    "check_same_features",
    "check_scale",
    "check_seed",
    "check_symmetric_tensor",
    "check_variation",
    "check_width",
    "describe_columns",
    "generator",
    "in_words",
    "unmasked",
    "warn_delicate",
]


# What to do about gaps where no estimator can fill them.
DROP_GAPS = "Leave those rows or variables out, or fill the gaps in first."


def _listing(names: Iterable[Any], limit: int = 5) -> str:
    names = [unmarked(name) for name in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _written(value: object) -> str:
    """A parameter's value as messages have it between backquotes, where text needs no quotes."""
    return unmarked(value if isinstance(value, str) else repr(value))


def _quoted(name: str) -> str:
    """The name of a dataset, between backquotes where it is a parameter's and not a file's."""
    return f"`{name}`" if name.isidentifier() else name


def check_seed(random_state: object) -> None:
    """Refuse what `generator` cannot use; nothing is drawn from it."""
    known = (np.random.Generator, np.random.RandomState)
    whole = isinstance(random_state, numbers.Integral) and int(random_state) >= 0
    if not (random_state is None or whole or isinstance(random_state, known)):
        raise ParameterError(
            "bad-seed",
            f"`random_state={_written(random_state)}` cannot seed a generator",
            remedy="Give a whole number that is not negative, a numpy Generator or RandomState, or None.",
            parameter="random_state",
        )


def generator(random_state: Any) -> np.random.Generator:
    """Turn an estimator's ``random_state`` into the generator that everything below it uses."""
    check_seed(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(None if random_state is None else int(random_state))


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of the named choices."""
    if not (isinstance(value, str) and value in choices):
        options = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(
            "unknown-choice",
            f"`{name}={_written(value)}` is not known",
            remedy=f"Choose one of {options}.",
            parameter=name,
        )


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """A whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ParameterError(
            "not-a-count",
            f"`{name}` is {value!r}",
            f"must be a whole number of at least {minimum}",
            parameter=name,
        )
    if value < minimum:
        raise ParameterError(
            "too-small",
            f"`{name}={value}` is too small",
            remedy=f"It must be at least {minimum}.",
            parameter=name,
        )
    return int(value)


def check_scale(name: str, value: object) -> float:
    """A positive number whose fourth power, by which a fourth cumulant grows, is finite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(
            "not-a-number", f"`{name}` is {value!r}", "must be a positive number", parameter=name
        )
    number = float(value)
    if not 0 < number < np.finfo(float).max ** 0.25:
        raise ParameterError(
            "out-of-range",
            f"`{name}={value}` is out of range",
            remedy="It must be positive, and its fourth power finite.",
            parameter=name,
        )
    return number


def check_n_rows(n: int, minimum: int, what: str, *, hint: str = "Add rows") -> None:
    """Refuse fewer rows than an estimate is defined for."""
    if n < minimum:
        raise DataError(
            "too-few-rows",
            f"there are {n} rows",
            f"{_quoted(what)} needs at least {minimum} rows",
            f"{hint}.",
            what,
        )


def check_n_variables(n: int, name: str) -> None:
    """Refuse rows without columns."""
    if n == 0:
        raise DataError(
            "no-variables",
            f"{_quoted(name)} has no variables",
            "at least one is needed",
            "Rows are samples and columns are variables: transpose it if they are swapped.",
            name,
        )


def check_rank(rank: object, n_features: int, name: str = "rank") -> int:
    """A number of rank-one terms that a flattening of ``p(p+1)/2`` rows can hold."""
    count = check_count(name, rank)
    maximum = n_features * (n_features + 1) // 2
    if count > maximum:
        raise ParameterError(
            "rank-too-large",
            f"`{name}={count}` is too large: with {n_features} variables the flattened cumulant has "
            f"rank at most p(p+1)/2 = {maximum}",
            remedy=f"Lower `{name}`, or keep more principal components (`n_pcs`).",
            parameter=name,
        )
    return count


def unmasked(data: Any) -> Any:
    """Masked entries of numpy's masked arrays as NaN: the numbers behind a mask mean nothing."""
    if not isinstance(data, np.ma.MaskedArray):
        return data
    missing = bool(np.any(np.ma.getmaskarray(data)))
    return np.ma.filled(data.astype(np.float64), np.nan) if missing else data.data


@contextmanager
def in_words(name: str, data: Any = None) -> Iterator[None]:
    """What numpy and scikit-learn say of what is not a table of numbers, as an error of ours.

    Columns of a data frame that are no numbers are named.
    """
    try:
        yield
    except ContricaError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        text = _text_columns(data)
        if text:
            raise _not_numbers(text, name) from error
        kind = DataTypeError if isinstance(error, TypeError) else DataError
        # of a row alone numpy's words have all of its numbers
        said = re.sub(r"\s*array=.*?\]\.?\s+", " ", unmarked(error), flags=re.DOTALL)
        raise kind("not-a-table", said.rstrip(". \n"), parameter=name) from error


def _not_numbers(columns: Sequence[Any], name: str) -> DataError:
    return DataError(
        "text-columns",
        f"{_quoted(name)} has columns that are not numbers: {_listing(columns)}",
        remedy="Convert them, or drop those that are no measurements.",
        parameter=name,
    )


def _check_columns(data: Any, name: str) -> None:
    """Refuse columns of a data frame that numpy would take for numbers, or could not name in words."""
    types = zip(getattr(data, "columns", ()), getattr(data, "dtypes", ()), strict=False)
    # dates would be nanoseconds
    wrong = [
        f"{column} ({kind})"
        for column, kind in types
        if getattr(kind, "kind", "") in ("m", "M", "c")
    ]
    if wrong:
        raise _not_numbers(wrong, name)
    columns = list(getattr(data, "columns", ()))
    others = [column for column in columns if not isinstance(column, str)]
    if 0 < len(others) < len(columns):
        raise DataTypeError(
            "mixed-names",
            f"{_quoted(name)} has variables that are named by text, and others that are not: "
            f"{_listing(map(repr, others))}",
            "names are compared, and must be of one kind",
            f"Make all of them text: {name}.columns = {name}.columns.astype(str).",
            name,
        )


def _text_columns(data: Any) -> list[Any]:
    """Columns of a data frame that cannot be read as numbers."""
    found = []
    for column in dict.fromkeys(getattr(data, "columns", ()) if hasattr(data, "dtypes") else ()):
        try:
            np.asarray(data[column], dtype=float)
        except (ValueError, TypeError):
            found.append(column)
    return found


def check_names(names: Sequence[Any] | np.ndarray | None, name: str) -> None:
    """Refuse two variables of one name, which could not be told apart."""
    twice = [
        label
        for label, count in Counter(map(str, () if names is None else names)).items()
        if count > 1
    ]
    if twice:
        raise FeaturesError(
            "same-names",
            f"{_quoted(name)} has more than one variable called {_listing(twice)}",
            remedy="Rename them.",
            parameter=name,
        )


def check_matrix(X: object, name: str, *, n_features: int | None = None) -> np.ndarray:
    """A finite real matrix, rows by variables; float32 and float64 pass through uncopied."""
    with in_words(name):
        matrix = check_array(unmasked(X), dtype=[np.float64, np.float32], input_name=name)
    check_width(matrix.shape[1], n_features, name)
    return matrix


def check_width(width: int, n_features: int | None, name: str) -> None:
    """As many variables as are expected, where a number is."""
    if n_features is not None and width != n_features:
        raise FeaturesError(
            "width",
            f"{_quoted(name)} has {width} variables",
            f"{n_features} are expected",
            "All rows must measure the same variables in the same order.",
            name,
        )


def check_dataset(data: Any, name: str) -> None:
    """Refuse what no conversion to numbers should be tried on, and fewer than two rows, by name."""
    check_numbers(data, name)
    shape = getattr(data, "shape", None)
    if hasattr(data, "columns") and shape is not None and len(shape) == 2:
        check_n_variables(shape[1], name)
    if shape is not None and len(shape) == 2 and shape[0] in (0, 1) and shape[1] > 0:
        alone = shape[0] == 1
        raise DataError(
            "too-few-rows",
            f"{_quoted(name)} has {'1 sample(s)' if alone else 'no rows'}",
            "at least 2 rows are needed to see any variation",
            "Rows are samples and columns are variables: transpose it if they are swapped."
            if alone
            else "Check how its rows were chosen.",
            name,
        )


def check_numbers(data: Any, name: str) -> None:
    """Refuse what no conversion to numbers should be tried on, by the dataset's name."""
    if hasattr(data, "dtypes"):
        _check_columns(data, name)
    kind = getattr(getattr(data, "dtype", None), "kind", "f")
    if kind == "c":
        raise DataError(
            "complex",
            f"Complex data not supported: {_quoted(name)} holds complex numbers",
            remedy="Pass real ones, such as their real parts or magnitudes.",
            parameter=name,
        )
    if kind in "USMm":
        raise DataError(
            "not-numbers",
            f"{_quoted(name)} holds text or dates (dtype {data.dtype})",
            "numbers are needed",
            "Convert it first, or drop the columns that are not measurements.",
            name,
        )
    if getattr(getattr(data, "dtype", None), "names", None):
        raise DataError(
            "structured",
            f"{_quoted(name)} is a structured array with fields {_listing(data.dtype.names)}",
            "a table of rows by variables is needed",
            "Pass numpy.lib.recfunctions.structured_to_unstructured(data).",
            name,
        )


def check_symmetric_tensor(tensor: object) -> np.ndarray:
    """A ``p × p × p × p`` array that no permutation of its indices changes."""
    array = np.asarray(tensor)
    if array.ndim != 4 or len(set(array.shape)) != 1:
        raise DataError(
            "tensor-shape",
            f"the array has shape {array.shape}",
            "a symmetric order-4 tensor has shape (p, p, p, p)",
        )
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        holds = "" if array.dtype.kind not in "fiu" else " and it holds NaN or infinity"
        raise DataError(
            "tensor-values",
            f"the dtype of the tensor is {array.dtype}{holds}",
            "must hold finite real numbers",
        )
    array = array.astype(float)
    size = np.abs(array).max(initial=0.0)
    # Two transpositions and a rotation generate all 24 permutations of four indices.
    for axes in ((1, 0, 2, 3), (1, 2, 3, 0)):
        gap = np.abs(array - array.transpose(axes)).max(initial=0.0)
        if gap > 1e-8 * size:
            raise DataError(
                "tensor-symmetry",
                f"the tensor is not symmetric: permuting its indices by {axes} changes entries by "
                f"up to {gap:.2g}",
                remedy="Average it over all 24 permutations of the indices first.",
            )
    return array


def check_patterns(vectors: object, name: str) -> np.ndarray:
    """Patterns as the non-zero columns of a matrix, scaled to unit length."""
    array = check_array(vectors, dtype=np.float64, input_name=name)
    norms = np.linalg.norm(array, axis=0)
    if (norms == 0).any():
        raise DataError(
            "zero-pattern",
            f"column {int(np.flatnonzero(norms == 0)[0])} of {name} is zero",
            remedy="Patterns are the columns; leave empty ones out.",
            parameter=name,
        )
    return array / norms


def as_basis(basis: object) -> np.ndarray:
    """Axes as the columns of a matrix of finite numbers."""
    try:
        return check_array(basis, dtype=np.float64, input_name="basis")
    except (ValueError, TypeError, OverflowError) as error:
        raise ParameterError(
            "basis-shape",
            f"`basis` is not a matrix of numbers ({unmarked(' '.join(str(error).split())[:200])})",
            remedy="Give a row for each variable and a column for each axis.",
            parameter="basis",
        ) from error


def check_same_features(
    names: np.ndarray | None,
    other_names: np.ndarray | None,
    n_features: int,
    n_other: int,
    *,
    name: str = "X",
    other: str = "background",
    warns: bool = True,
) -> None:
    """Two datasets, or a model and a dataset, are over the same variables in the same order.

    Where one of them has no names a warning says so, unless that is not known yet.
    """
    if names is None or other_names is None:
        if n_features != n_other:
            raise FeaturesError(
                "width",
                f"{other} has {n_other} features but {name} has {n_features}",
                remedy="Both must measure the same variables in the same order; keep the common ones.",
                parameter=other,
            )
        given = other_names if names is None else names
        if warns and given is not None and isinstance(given[0], str):
            named, bare = (name, other) if other_names is None else (other, name)
            warn(
                DelicateDataWarning(
                    "names-missing",
                    f"{named} has feature names but {bare} has none, so their order could not be "
                    "compared",
                    remedy="Pass both with names, or both without.",
                    parameter=bare,
                )
            )
        return
    if list(names) == list(other_names):
        return
    if set(names) == set(other_names) and n_features == n_other:
        raise FeaturesError(
            "order",
            f"{other} has the features of {name} in another order",
            remedy="Reorder its columns to match.",
            parameter=other,
        )
    first, second = set(names), set(other_names)
    absent = _listing(label for label in names if label not in second)
    extra = _listing(label for label in other_names if label not in first)
    told = [f"missing from {other}: {absent}"] if absent else []
    told += [f"only in {other}: {extra}"] if extra else []
    raise FeaturesError(
        "names",
        f"{other} and {name} have different features: "
        f"{'; '.join(told) or 'some are there more than once'}",
        remedy="Keep the common ones, in one order.",
        parameter=other,
    )


def check_has_features(
    names: Sequence[str], other_names: Sequence[str], *, name: str, other: str
) -> None:
    """A dataset has all variables of a model, each once; in any order, and it may have more."""
    counts = Counter(other_names)
    absent = [label for label in names if label not in counts]
    if absent:
        raise FeaturesError(
            "names",
            f"{other} has {len(names) - len(absent)} of the {len(names)} variables of {name}: missing "
            f"from {other}: {_listing(absent)}",
            remedy="Score rows that have all of them, by these names.",
            parameter=other,
        )
    check_names([label for label in names for _ in range(counts[label])], other)


def check_variation(summaries: Mapping[str, Any]) -> None:
    """Refuse a foreground that does not vary, and numbers whose fourth powers leave floating point.

    Summaries by name, that of "X" first, have ``low`` and ``high``: the least and the largest value of
    every variable.
    """
    if not (summaries["X"].high - summaries["X"].low).any():
        raise DataError(
            "constant",
            "`X` does not vary: all its rows are equal",
            remedy="There is no pattern to be found.",
            parameter="X",
        )
    for name, part in summaries.items():
        size = float(np.maximum(np.abs(part.high), np.abs(part.low)).max())
        if size > 1e45:  # then what can vary by less than the limit below is constant
            raise DataError(
                "range",
                f"{_quoted(name)} holds numbers as large as {size:.0e}, and squares and fourth powers of "
                "such numbers leave the range of floating point",
                remedy="Is such a number a mark for a missing value? Else divide both datasets by one "
                "common factor.",
                parameter=name,
            )
        reach = float((part.high - part.low).max())
        if reach > 0 and not 1e-30 < reach < 1e30:
            raise DataError(
                "range",
                f"{_quoted(name)} varies over {reach:.0e}, and fourth cumulants of such numbers leave "
                "the range of floating point",
                remedy="Divide both datasets by one common factor of that size.",
                parameter=name,
            )


def check_finite(summary: Any, name: str, remedy: str = DROP_GAPS) -> None:
    """Refuse NaN and infinity, which show in the least and the largest values, by the variable."""
    bad = ~(np.isfinite(summary.low) & np.isfinite(summary.high))
    if bad.any():
        raise DataError(
            "not-finite",
            f"{_quoted(name)} contains NaN or infinity, in {describe_columns(bad.astype(int), None)}",
            remedy=remedy,
            parameter=name,
        )


def describe_columns(counts: np.ndarray, names: np.ndarray | None, limit: int = 5) -> str:
    """Variables with values that cannot be used, the first few with how many; counts of one go unsaid.

    Examples
    --------
    >>> describe_columns(np.array([0, 12, 3]), np.array(["age", "weight", "height"]))
    '2 variable(s): weight (12 values), height (3 values)'
    """
    index = np.flatnonzero(counts)
    told = []
    for i in index[:limit]:
        name = f"column {i}" if names is None else unmarked(names[i])
        told.append(name + (f" ({counts[i]} values)" if counts.max() > 1 else ""))
    more = f" and {index.size - limit} more" if index.size > limit else ""
    return f"{index.size} variable(s): {', '.join(told)}{more}"


def warn_delicate(
    X: Any, background: Any, names: np.ndarray | None, n_dimensions: int | None = None
) -> None:
    """Name what limits a fit of otherwise legitimate data, from summaries of both datasets.

    ``n_dimensions`` are worked in at most; all variables by default.
    """
    n, p = X.n_rows, X.low.size
    d = min(n_dimensions or p, p)
    labels = np.array([f"x{i}" for i in range(p)], dtype=object) if names is None else names
    still = X.high == X.low
    if still.any():
        _delicate(
            "constant-variables",
            f"{still.sum()} variable(s) are constant in `X` ({_listing(labels[still])}): they carry "
            "no foreground pattern",
        )
    if background is not None:
        silent = (background.high == background.low) & ~still
        if silent.any():
            _delicate(
                "constant-in-background",
                f"{silent.sum()} variable(s) vary in `X` but not in the background "
                f"({_listing(labels[silent])}): patterns on them have an unbounded contrast ratio",
            )
    for name, rows in (
        ("X", n),
        ("background", d + 1 if background is None else background.n_rows),
    ):
        if rows <= d:
            _delicate(
                "few-rows",
                f"`{name}` has {rows} rows in {d} dimensions: patterns follow so few rows closely",
                "More rows, or fewer principal components (`n_pcs`), make the fit steadier.",
            )


def check_covariance_rank(
    eigenvalues: np.ndarray, n_rows: int, n_explained: int, name: str
) -> None:
    """Warn of a rank-deficient covariance that no constant column or lack of rows explains."""
    p = eigenvalues.size
    floor = max(n_rows, p) * np.finfo(float).eps * max(eigenvalues.max(initial=0.0), 0.0)
    rank = int(np.sum(eigenvalues > floor))
    if rank < min(p - n_explained, n_rows - 1):
        _delicate(
            "singular-covariance",
            f"the {name} covariance has rank {rank} in {p} dimensions: there are directions in "
            f"which the {name} does not vary at all, and patterns along them have an unbounded "
            "contrast ratio",
        )


def _delicate(code: str, got: str, remedy: str = "") -> None:
    warn(DelicateDataWarning(code, got, remedy=remedy))
