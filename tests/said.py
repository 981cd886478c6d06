"""Errors and warnings of contrica by class, code and parameter: their words may change, these may not."""

import warnings
from contextlib import contextmanager

import pytest


@contextmanager
def raises(cls, code, parameter=...):
    """An error of this class and code and, where one is given, about this parameter."""
    with pytest.raises(cls) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    if parameter is not ...:
        assert caught.value.parameter == parameter, str(caught.value)


@contextmanager
def warns(cls, code):
    """A warning of this class and code; others go on to whoever else waits for them."""
    with pytest.warns(cls) as caught:
        yield caught
    ours = [warning for warning in caught if issubclass(warning.category, cls)]
    codes = [getattr(warning.message, "code", None) for warning in ours]
    assert code in codes, [str(warning.message) for warning in ours]
    for warning, its_code in zip(ours, codes, strict=True):
        if its_code != code:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
