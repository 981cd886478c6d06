"""What a user writes, as a strict type checker sees it; `make types` checks this, and nothing runs it."""

from typing import assert_type

import numpy as np

import contrica
from contrica import Background, ContrastiveICA, ContrastivePCA, ProportionalContrastiveICA, load
from contrica.compare import Comparison, compare_methods
from contrica.decompositions import Decomposition, htd
from contrica.inference import (
    Report,
    Significance,
    Stability,
    check,
    diagnose,
    significance,
    stability,
)
from contrica.metrics import pattern_similarity
from contrica.moments import Cumulants, RankOneSum, cumulants

X, Y = np.zeros((50, 4)), np.zeros((40, 4))

assert_type(contrica.__version__, str)

model = ContrastiveICA(2, solver="auto", random_state=0)
assert_type(model.fit(X, background=Y), ContrastiveICA)
assert_type(model.fit(X, background=Background(Y)), ContrastiveICA)
assert_type(model.components_, np.ndarray)
assert_type(model.summary(), str)
assert_type(model.n_foreground_, int)
scores = model.transform(X)
assert_type(ContrastivePCA(2).fit(X, background=Y), ContrastivePCA)
assert_type(ProportionalContrastiveICA(2).fit(X, background=[Y, Y]), ProportionalContrastiveICA)
model.save("model.npz")
again = load("model.npz")

assert_type(check(X, background=Y), Report)
assert_type(significance(model, X, background=Y), Significance)
assert_type(stability(model, X, background=Y), Stability)
assert_type(diagnose(model, X, background=Y), Report)
assert_type(compare_methods(X, Y, n_components=2), Comparison)

assert_type(cumulants(X), Cumulants)
assert_type(htd(RankOneSum(np.ones(2), np.eye(4)[:, :2]), 2), Decomposition)
assert_type(pattern_similarity(np.eye(4), np.eye(4)), float)
