"""
cICA and contrastive PCA on the same data
=========================================

Contrastive PCA looks for directions in which the foreground varies more. It has a parameter, α,
and it works with covariances. This tutorial shows on simulated data, where the truth is known,
what each of the two can and cannot do.
"""

# %%
# Two new sources of equal variance
# ---------------------------------
# Ten variables. Four strong sources are in both datasets, two further ones in the foreground
# only.

import matplotlib.pyplot as plt
import numpy as np

from contrica import ContrastiveICA, ContrastivePCA
from contrica.compare import compare_methods
from contrica.metrics import pattern_cosines

rng = np.random.default_rng(1)
n, p = 5000, 10
A = rng.standard_normal((4, p))
B = rng.standard_normal((2, p))
B /= np.linalg.norm(B, axis=1, keepdims=True)
Y = 2 * rng.laplace(size=(n, 4)) @ A + 0.3 * rng.standard_normal((n, p))
sources = rng.choice([-1.5, 1.5], (n, 2))
X = 2 * rng.laplace(size=(n, 4)) @ A + sources @ B + 0.3 * rng.standard_normal((n, p))

# %%
# Both methods keep two directions. A cosine of 1 means that a true pattern was found; for the
# PCA, the best α of forty is taken, which a user without the truth could not do.

cica = ContrastiveICA(2, random_state=0).fit(X, background=Y)
alphas = np.logspace(-1, 3, 40)
fits = [ContrastivePCA(2, alpha=alpha).fit(X, background=Y) for alpha in alphas]


def worst(model):
    """Smallest, over both true patterns, of the largest |cosine| with a pattern found."""
    return pattern_cosines(model.components_.T, B.T).max(axis=0).min()


curve = np.array([worst(model) for model in fits])
print("cICA:", worst(cica).round(3))
print("cPCA, best of forty α:", curve.max().round(3))

# %%
figure, ax = plt.subplots(figsize=(6, 3.5))
ax.semilogx(alphas, curve, label="cPCA")
ax.axhline(worst(cica), color="#D55E00", label="cICA, nothing to choose")
ax.set(xlabel="α", ylabel="|cosine| of the pattern that is found worse", ylim=(0, 1.02))
ax.legend()
plt.show()

# %%
# The plane is found by both; the axes in it are not
# --------------------------------------------------
# With a good α the PCA finds the *plane* of the two sources. Inside, all directions have the same
# variance, and a covariance cannot tell them apart. In the scores of cICA the four groups of rows
# lie along the axes.

best = fits[int(curve.argmax())]
figure, axes = plt.subplots(1, 2, figsize=(9, 4))
group = (sources > 0) @ [1, 2]
for ax, model, name in zip(axes, (best, cica), ("cPCA, best α", "cICA"), strict=True):
    scores = model.transform(X)[::5]
    ax.scatter(*scores.T, s=4, c=group[::5], cmap="viridis")
    ax.set(title=name, xlabel="score 1", ylabel="score 2")
plt.show()

# %%
# Where the PCA is enough, or better
# ----------------------------------
# With a few hundred rows the shape of a source is mostly noise, and a method that uses variances
# only loses less. Mind that its α is the best by the truth here.

for size in (100, 300, 1000, 5000):
    few = ContrastiveICA(2, random_state=0, n_foreground=2).fit(X[:size], background=Y[:size])
    other = [ContrastivePCA(2, alpha=a).fit(X[:size], background=Y[:size]) for a in alphas[::4]]
    print(size, "rows: cICA", worst(few).round(2), "cPCA", max(map(worst, other)).round(2))

# %%
# All methods at once
# -------------------
# `compare_methods` fits every method as it would choose for itself. The last number is the cosine
# from above. The shell has it as ``contrica compare``.

methods = ["auto", "cpca", "pcpca", "gcpca", "pca"]
for found in compare_methods(X, Y, methods=methods, random_state=0):
    ratios = found.contrast_ratio.round(1)
    print(f"{found.name:6} k(b) = {ratios}, chose {found.choice}, {worst(found.model):.2f}")
