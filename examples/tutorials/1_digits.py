"""
Digits on photographs: a first look
===================================

Two sets of small images. The background are patches of photographs. The foreground are other
patches, to which a handwritten 0, a 1, both or nothing was added. We look for what is new in the
foreground and use no labels. The data come with scikit-learn.
"""

# %%
# Prepare
# -------
# A row is an image, a column a pixel. `check` looks at both tables before a fit.

import matplotlib.pyplot as plt
import numpy as np

from contrica import ContrastiveICA, plots
from contrica.datasets import load_digits_on_photos
from contrica.inference import check, diagnose, explain, stability

data = load_digits_on_photos()
X, Y = data.foreground, data.background
print(check(X, background=Y))

# %%
# By eye there is little to see: the photographs are stronger than the digits.

figure, axes = plt.subplots(2, 8, figsize=(9, 2.6))
for row, images, name in zip(axes, (X, Y), ("foreground", "background"), strict=True):
    for ax, image in zip(row, images, strict=False):
        ax.imshow(image.reshape(data.image_shape), cmap="gray")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)

# %%
# Fit
# ---
# The data choose the solver and say how many patterns stand out. We keep two.

model = ContrastiveICA(2, random_state=0).fit(X, background=Y)
print(model.summary())

# %%
# Read
# ----
# A pattern has a value for each variable, here a pixel: it is an image itself.

figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
shown = [*data.patterns, *model.components_]
for ax, image, name in zip(
    axes, shown, ("mean 0", "mean 1", "pattern 1", "pattern 2"), strict=True
):
    ax.imshow(image.reshape(data.image_shape), cmap="RdBu_r")
    ax.set(xticks=[], yticks=[], title=name)

# %%
# Every image has a score on each pattern. The labels, which the fit has not used, show that the
# scores are the digits: images with a 0 lie to one side of the first axis, images with a 1 to one
# side of the second.

figure, ax = plt.subplots(figsize=(6, 5))
plots.scatter(
    model.transform(X),
    data.labels,
    background=model.transform(Y),
    label_names=data.label_names,
    ax=ax,
)
plt.show()

# %%
# Trust
# -----
# Would the patterns come again from other images? `stability` fits resampled rows.

again = stability(model, X, background=Y, n_resamples=10, random_state=0)
print(again)

# %%
# What is a pattern, in words, and what speaks against the fit?

print(explain(model, 0, X, background=Y, n_features=3, stability=again))
print(diagnose(model, X, background=Y))

# %%
# Nine patterns stand out, not two. A handwritten digit varies in shape as well as in strength,
# and each variation is a pattern of its own with a smaller ratio. These are the ratios of the
# first six.

ratios = ContrastiveICA(6, random_state=0).fit(X, background=Y).source_ratio_
print(np.round(ratios, 1))
