"""
Mice: rows that are replicates
==============================

Proteins were measured in the cortex of mice, fifteen times in each mouse. The foreground are mice
that got a shock before they saw the cage, half of them with a model of Down syndrome (Ts65Dn);
the background are control mice that saw the cage first. Do the genotypes show in the foreground,
if nobody tells us which mouse has which?

Fifteen measurements of one mouse are not fifteen mice. This tutorial shows what goes wrong if one
forgets.
"""

# %%
# Prepare
# -------
# The table is that of Higuera, Gardiner and Cios (2015), which the paper uses too. It is read
# from the folder that ``CONTRICA_DATA`` names. Without it, animals are simulated: as many, and a
# difference between two halves of them.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from contrica import ContrastiveICA
from contrica.errors import GroupWarning
from contrica.inference import diagnose, stability


def simulated_mice():
    """Eighteen animals and nine, fifteen rows each; half of the first differ in five proteins."""
    rng = np.random.default_rng(0)
    mouse = np.repeat(np.arange(27), 15)
    values = 0.7 * rng.standard_normal((27, 30))[mouse] + 0.3 * rng.laplace(size=(405, 30))
    is_fore, is_down = mouse < 18, mouse % 2 == 1
    values[:, :5] += 4 * (is_fore & is_down)[:, None]
    table = pd.DataFrame(values, columns=[f"protein{i}_N" for i in range(30)])
    table["MouseID"] = [f"{300 + i}_{k % 15 + 1}" for k, i in enumerate(mouse)]
    table["Genotype"] = np.where(is_fore & is_down, "Ts65Dn", "Control")
    table["Treatment"] = "Saline"
    table["Behavior"] = np.where(is_fore, "S/C", "C/S")
    table["class"] = np.where(is_fore, np.where(is_down, "t-SC-s", "c-SC-s"), "c-CS-s")
    return table


path = Path(os.environ.get("CONTRICA_DATA", "-")) / "mouse_protein/Data_Cortex_Nuclear.csv.gz"
table = pd.read_csv(path) if path.exists() else simulated_mice()
print(
    "the published table" if path.exists() else "simulated: CONTRICA_DATA names no folder with mice"
)

# %%
# Rows of one table become two. Proteins end in ``_N``; 309_1 to 309_15 are the rows of mouse 309.

proteins = [name for name in table if name.endswith("_N")]
mouse = table["MouseID"].str.partition("_")[0]
is_fore = (table["Behavior"] == "S/C") & (table["Treatment"] == "Saline")
is_back = table["class"] == "c-CS-s"
X, Y = table.loc[is_fore, proteins], table.loc[is_back, proteins]
groups, background_groups = mouse[is_fore].to_numpy(), mouse[is_back].to_numpy()
print(
    X.shape,
    "rows of",
    np.unique(groups).size,
    "mice, against",
    Y.shape,
    "of",
    np.unique(background_groups).size,
)
print(int(X.isna().sum().sum() + Y.isna().sum().sum()), "values are missing")

# %%
# Fit, without groups
# -------------------
# Every row counts as an observation of its own. A warning asks whether rows belong together.

options = {"scale": "each", "missing": "impute", "random_state": 0}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    wrong = ContrastiveICA(**options).fit(X, background=Y)
print(wrong.n_foreground_, "patterns stand out, p =", wrong.scree_.p_values[0])
print(*(each.message for each in said if each.category is GroupWarning), sep="\n")

# %%
# Fit, with groups
# ----------------
# Whole mice are permuted between foreground and background. Fewer patterns stand out, and p is
# larger: the evidence is that of 27 mice, not of hundreds of rows. ``scale="each"`` divides each
# dataset by its own standard deviations, *inside* the fit, so that permuted mice are divided
# anew.

labels = {"groups": groups, "background_groups": background_groups}
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    model = ContrastiveICA(**options).fit(X, background=Y, **labels)
print(model.summary())

# %%
# Read
# ----
# One dot is one measurement, one column one mouse. The colours are the genotypes, which the fit
# has not used.

scores = model.transform(X)[:, 0]
by_mouse = pd.DataFrame(
    {"mouse": groups, "score": scores, "genotype": table["Genotype"][is_fore].to_numpy()}
)
medians = by_mouse.groupby(["genotype", "mouse"])["score"].median().sort_index(level=0)
colours = {"Control": "#0072B2", "Ts65Dn": "#D55E00"}
figure, ax = plt.subplots(figsize=(9, 3.5))
for genotype, colour in colours.items():
    own = medians[genotype].sort_values().index
    places = {
        name: i + (genotype == "Ts65Dn") * len(medians["Control"]) for i, name in enumerate(own)
    }
    part = by_mouse[by_mouse["genotype"] == genotype]
    ax.scatter(part["mouse"].map(places), part["score"], s=8, color=colour, label=genotype)
ax.set(xlabel="mouse", ylabel="score on pattern 1", xticks=[])
ax.legend()
plt.show()

# %%
# Which proteins? Effects are in standard deviations of the background.

print(
    pd.Series(model.effects_[0], proteins)
    .sort_values(key=abs, ascending=False)
    .head(6)
    .round(2)
    .to_string()
)

# %%
# Trust
# -----
# Mice are left out one at a time, and resampled as wholes.

again = stability(model, X, background=Y, random_state=0, **labels)
print(again)
print(diagnose(model, X, background=Y, groups=groups))

# %%
# What to write
# -------------
# That a score splits the mice is a finding about these mice. The p-value says whether the
# foreground varies more than the background does, as one would see if mice were assigned by
# chance. Whether the split is the genotype, labels that the fit has not used can tell; and the
# test is between mice, never between rows.

first, second = (medians[genotype].to_numpy() for genotype in colours)
apart = max(np.mean(first[:, None] > second), np.mean(first[:, None] < second))
print(f"pairs of mice, one of each genotype, in the same order: {apart:.0%}")
