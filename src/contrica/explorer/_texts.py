"""One sentence of help on every quantity of the page, and the page of the docs that says more."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["HELP", "Help"]


class Help(NamedTuple):
    """Help on a quantity.

    Attributes
    ----------
    title : str
    sentence : str
    page : str
        Of the docs, and the question that it answers.
    """

    title: str
    sentence: str
    page: str


NUMBERS = "docs/guide/numbers.md: What do the numbers mean?"
HOW_MANY = "docs/guide/how-many.md: How many patterns are there?"
TRUST = "docs/guide/trust.md: Can I rely on a pattern?"
SOLVER = "docs/guide/solver.md: Which solver was used, and why?"
EXPLORER = "docs/guide/explorer.md: How do I look around in it?"

HELP = {
    "score": Help(
        "score",
        "How much of a pattern a row has: 0 is the foreground's mean.",
        NUMBERS,
    ),
    "ratio": Help(
        "contrast ratio",
        "How many times more of the pattern the foreground has than the background; near 1 there is "
        "nothing new. k(b) compares variances along the pattern itself. k(f) takes the score's mean "
        "square about the background's mean, which a shift of the mean raises too.",
        NUMBERS,
    ),
    "p": Help(
        "p",
        "How often a ratio at least as large arises when rows or groups are assigned to the two "
        "datasets at random.",
        TRUST,
    ),
    "stability": Help(
        "stability",
        "Mean correlation of the score with that of the same pattern, when rows or groups are "
        "drawn anew and fitted again: 1 is the same every time. Stable is not new; what is new "
        "the ratio says.",
        TRUST,
    ),
    "kurtosis": Help(
        "kurtosis",
        "0 of a Gaussian score. Above 0 few rows have most of it; below 0 the score is flat, or "
        "there are two kinds of rows.",
        NUMBERS,
    ),
    "skewness": Help(
        "skewness",
        "0 of a symmetric score; its sign says on which side the long tail is.",
        NUMBERS,
    ),
    "shift": Help(
        "mean shift",
        "Difference of the score's means in the two datasets, in standard deviations of the background.",
        NUMBERS,
    ),
    "effect": Help(
        "leading variables",
        "How many standard deviations of the background a variable moves when the score moves by "
        "one of its own. Lines are 90 % intervals, once stability is computed; the largest "
        "variables were selected, and are likely smaller.",
        NUMBERS,
    ),
    "share": Help(
        "share by group",
        "How much of the score's spread beyond the background's each group of rows has.",
        "docs/guide/groups.md: My rows are not independent.",
    ),
    "association": Help(
        "goes along with",
        "How much of the score's variance a column of metadata explains, from 0 to 1. An effect "
        "size: rows need not be independent, so there is no p.",
        TRUST,
    ),
    "l": Help(
        "ℓ",
        "How many patterns the foreground has that the background lacks. With solver subspace it "
        "is the dimension of the contrast subspace.",
        HOW_MANY,
    ),
    "r": Help(
        "r",
        "How many patterns the background has. Solver subspace needs no such number.",
        HOW_MANY,
    ),
    "pcs": Help(
        "components",
        "How many principal components of both datasets together the fit works in.",
        HOW_MANY,
    ),
    "null": Help(
        "permutation null",
        "The grey band reaches to what 95 % of the permutations have their largest ratio below: "
        "directions above it stand out.",
        HOW_MANY,
    ),
    "eigenvalues": Help(
        "eigenvalues",
        "Of the flattened fourth cumulants of both datasets, by size: where they drop to noise "
        "the patterns end. ℓ and r of the solver of the paper are read from them.",
        HOW_MANY,
    ),
    "solver": Help(
        "solver",
        "What separates the patterns: auto chooses between joint, which fits all patterns "
        "together, and subspace, which looks for sources where the contrast is largest. paper is "
        "the paper's algorithm.",
        SOLVER,
    ),
    "scale": Help(
        "scaling",
        "Whether variables are divided by their standard deviation first: none, pooled over both "
        "datasets, or each dataset by its own.",
        "docs/guide/units.md: Are my variables on one scale?",
    ),
    "projection": Help(
        "scores by",
        "What makes scores: filters, which recover the sources, or the patterns themselves, as in "
        "the paper.",
        NUMBERS,
    ),
    "background-share": Help(
        "share in the background",
        "Variance of the score in the background over that in both datasets together, each "
        "counted alike: one half is nothing new, 0 is all new.",
        NUMBERS,
    ),
    "nearest": Help(
        "nearest background pattern",
        "The background pattern that points most in the same direction; |cosine| 1 is the same.",
        NUMBERS,
    ),
    "others": Help(
        "what other methods give",
        "The component of each method that is most like this pattern; |cosine| 1 is the same.",
        "docs/guide/methods.md: Is another method better for my data?",
    ),
    "differences": Help(
        "differences",
        "Of the selected rows from all other foreground rows: in standard deviations for numbers,"
        " as a difference of shares for kinds. There is no p: the scores that chose these rows "
        "are made of the same variables.",
        EXPLORER,
    ),
    "stale": Help(
        "stale",
        "Computed before something was dragged, rejected or reordered, and so of other patterns "
        "than these. Compute it again.",
        EXPLORER,
    ),
}
