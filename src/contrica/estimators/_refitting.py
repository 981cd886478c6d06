"""Data read once and fitted many times: the sums over rows stay, and another request asks them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from contrica.errors import ContricaWarning, ParameterError, collected, warn
from contrica.estimators._background import Background, group_labels
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.solvers.auto import background_storage, n_row_groups
from contrica.solvers.problem import Problem
from contrica.validation import generator

__all__ = ["ReadOnce"]

# Parameters that say how rows are read.
_READ_BY = ("n_pcs", "basis", "cumulant", "scale", "memory_limit", "device", "dtype", "missing")


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and np.array_equal(one, other))


@dataclass(frozen=True)
class ReadOnce:
    """What a fit works out of rows before any solver starts.

    Attributes
    ----------
    problem : Problem
    reader : ContrastiveICA
        With what reading taught it; not fitted.
    warned : tuple of ContricaWarning
        While rows were read.
    """

    problem: Problem
    reader: ContrastiveICA
    warned: tuple[ContricaWarning, ...]

    @classmethod
    def of(
        cls,
        model: ContrastiveICA,
        X: Any,
        *,
        background: Any,
        groups: Any = None,
        background_groups: Any = None,
    ) -> ReadOnce:
        """Read rows as a fit of a model would.

        Parameters
        ----------
        model : ContrastiveICA
            Its parameters are used; it stays as it is.
        X, background, groups, background_groups : object
            As of ``fit``; there must be a background.

        Returns
        -------
        ReadOnce
        """
        reader = clone(model)
        reader._check_parameters()
        labels = group_labels(background, groups, background_groups)
        own = background.data if isinstance(background, Background) else background
        with reader._at_work(), collected() as warned:
            problem = reader._read(X, None, own, labels)
        return cls(problem, reader, tuple(warned))

    def serves(self, model: ContrastiveICA) -> bool:
        """Whether a fit of a model would read these rows in the same way.

        Parameters
        ----------
        model : ContrastiveICA

        Returns
        -------
        bool
        """
        own, other = (each.get_params() for each in (self.reader, model))
        if not all(_is_same(own[name], other[name]) for name in _READ_BY):
            return False
        return self._taken(self.reader.solver) == self._taken(model.solver)

    def _taken(self, solver: str) -> tuple[Any, ...]:
        """What a solver asks to be taken of the rows."""
        problem, p = self.problem, self.problem.n_features
        return (
            background_storage(solver, p, len(problem.datasets)),
            *(n_row_groups(solver, part.n_samples, p) for part in problem.datasets),
        )

    def fit(self, model: ContrastiveICA) -> ContrastiveICA:
        """Fit a model to the rows, as ``fit`` would with them.

        Parameters
        ----------
        model : ContrastiveICA
            One that these rows serve; it stays as it is.

        Returns
        -------
        ContrastiveICA
            Fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from contrica.datasets import load_digits_on_photos
        >>> data = load_digits_on_photos(400)
        >>> X, Y = data.foreground, data.background
        >>> model = ContrastiveICA(2, solver="subspace", random_state=0)
        >>> again = ReadOnce.of(model, X, background=Y).fit(model)
        >>> np.array_equal(again.components_, model.fit(X, background=Y).components_)
        True
        """
        if not self.serves(model):
            raise ParameterError(
                "read-otherwise",
                "the model reads rows in another way than these were read",
                remedy=f"Read them again; that depends on {', '.join(_READ_BY)} and the solver.",
                parameter="model",
            )
        found = clone(model)
        found._check_parameters()
        found._warn_of_no_effect()
        for name, value in vars(self.reader).items():
            if name.endswith("_"):
                setattr(found, name, value)
        with found._at_work():
            with collected():  # what it says of the rows was said when they were read
                found._check_width(found.n_features_in_, contrasted=True)
            found._solve(self.problem, generator(found.random_state))
        for each in self.warned:
            warn(each)
        return found
