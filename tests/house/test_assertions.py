"""Tests that can fail: each asserts something, and no comparison is computed for nothing."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
FILES = sorted(TESTS.rglob("test_*.py"))
# Whatever is called so asserts: numpy's, pytest's or ours.
ASSERTING = ("assert", "raises", "warns")
# Functions that say whether something holds, and do nothing where it does not.
TELLING = {"all", "allclose", "any", "array_equal", "exists", "is_file", "isclose", "isfinite"}


def name_of(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def is_assertion(node):
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant | ast.Tuple)  # these always hold
    return isinstance(node, ast.Call) and name_of(node).startswith(ASSERTING)


def is_thrown_away(node):
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and name_of(node.value) in TELLING
    )


def is_check_of_scikit_learn(test, node):
    """Whether this calls the parameter ``check`` that ``parametrize_with_checks`` sets."""
    given = any(
        isinstance(each, ast.Call) and name_of(each) == "parametrize_with_checks"
        for each in test.decorator_list
    )
    return given and isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check"


def without_assertion(tree):
    """Names of the test functions of a file that assert nothing."""
    for node in ast.walk(tree):
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        if is_test and not any(
            is_assertion(inner) or is_check_of_scikit_learn(node, inner) for inner in ast.walk(node)
        ):
            yield node.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_asserts_something(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not list(without_assertion(tree))
    assert not [node.lineno for node in ast.walk(tree) if is_thrown_away(node)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("assert x == 1", False),
        ("assert_same(x, y)", False),
        ("with pytest.raises(ValueError): f()", False),
        ("check(estimator)", True),
        ("check_count('n', 3)", True),
        ("f(x)", True),
        ("np.allclose(x, y)", True),
        ("assert True", True),
    ],
)
def test_what_asserts_nothing_is_found(line, found):
    tree = ast.parse(f"def test_it():\n    {line}")
    assert bool(list(without_assertion(tree))) == found
    assert any(is_thrown_away(node) for node in ast.walk(tree)) == ("allclose" in line)


@pytest.mark.parametrize(("call", "found"), [("check(estimator)", False), ("checked(x)", True)])
def test_the_checks_of_scikit_learn_assert(call, found):
    head = "@parametrize_with_checks([Estimator()])\ndef test_it(estimator, check):"
    assert bool(list(without_assertion(ast.parse(f"{head}\n    {call}")))) == found
