"""
Single cells: what interferon does, with scanpy
===============================================

Blood cells of eight people were cultured twice, with interferon-β and without it (Kang et al.
2018). The stimulated cells are the foreground, the control cells the background. Differences
between cell types are in both. What is in the stimulated cells alone?

``contrica.tl`` works like scanpy's tools: it reads an AnnData object and writes into it.
"""

# %%
# Prepare
# -------
# The cells are read from the folder that ``CONTRICA_DATA`` names. Without it, cells are simulated:
# two kinds of cells and six donors, a response of all cells, and one of the first kind alone.

import os
import warnings
from pathlib import Path

import anndata
import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc

from contrica import pl, tl
from contrica.datasets import kang_anndata


def simulated_cells():
    """Counts of 200 genes in 3000 cells: genes 0 to 9 respond everywhere, 10 to 19 in monocytes."""
    rng = np.random.default_rng(0)
    n = 3000
    stim, monocyte = rng.random(n) < 0.5, rng.random(n) < 0.4
    donor = rng.integers(0, 6, n)
    rates = np.exp(rng.normal(0, 0.5, 200)) * np.ones((n, 1))
    rates[:, 20:40] *= np.where(monocyte, 6, 1)[:, None]
    strength = rng.gamma(4, 0.25, n) * (1 + 0.1 * donor)  # how much a cell responds
    rates[:, :10] *= 1 + 6 * (stim * strength)[:, None]
    rates[:, 10:20] *= 1 + 12 * (stim & monocyte)[:, None]
    cells = anndata.AnnData(rng.poisson(rates).astype(np.float32))
    cells.var_names = [f"gene{i}" for i in range(200)]
    cells.obs_names = [f"cell{i}" for i in range(n)]
    cells.obs["condition"] = np.where(stim, "stim", "ctrl")
    cells.obs["donor"] = [f"donor {i}" for i in donor]
    cells.obs["cell_type"] = np.where(monocyte, "monocyte", "lymphocyte")
    sc.pp.normalize_total(cells, target_sum=1e4)
    sc.pp.log1p(cells)
    return cells


is_real = (Path(os.environ.get("CONTRICA_DATA", "-")) / "scrna_kang_ifnb").exists()
adata = kang_anndata() if is_real else simulated_cells()
print("the published cells" if is_real else "simulated: CONTRICA_DATA names no folder with cells")
print(adata)

# %%
# Counts are normalised and logged already, which `tl.cica` asks for: raw counts would get a
# warning. Highly variable genes are used where ``adata.var`` marks them.

if is_real:
    sc.pp.highly_variable_genes(adata, n_top_genes=2000)
print(adata.obs.groupby("condition", observed=True)["donor"].value_counts().unstack())

# %%
# Fit
# ---
# Which cells are background? Which cells come from one donor? Each donor gave cells to both
# conditions. The permutation test swaps a donor's two halves and counts donors, not cells.
# Without ``groups="donor"`` thousands of cells would count as thousands of experiments.

tl.cica(adata, groupby="condition", background="ctrl", groups="donor", n_comps=3, random_state=0)
print(adata.uns["cica"]["summary"])

# %%
# We asked for three patterns. The summary says which of them stand out, and which do not: those
# are leads, and no findings. Donors are few, so p cannot be small.
#
# Read
# ----
# The scores are in ``adata.obsm["X_cica"]``, of control cells too. Colours are those that scanpy
# uses; the background is grey.

axes = pl.cica(adata, color=["donor", "cell_type"], show=False)
plt.show()

# %%
# The genes that lead each pattern. An effect says how many standard deviations of the background a
# gene moves when the score moves by one of its own.

axes = pl.loadings(adata, show=False)
plt.show()

# %%
# The strongest genes across cells, ordered by their score on the first pattern: this is what the
# numbers stand for.

axes = pl.heatmap(adata, show=False)
plt.show()

# %%
# scanpy goes on from the scores as from any other representation. In this map control cells are
# one cloud, whatever their type; stimulated cells are spread by how they respond.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of numba and umap, not of contrica
    sc.pp.neighbors(adata, use_rep="X_cica", transformer="sklearn")  # quick: four scores
    sc.tl.umap(adata)
figure = sc.pl.umap(adata, color=["condition", "cell_type"], wspace=0.4, return_fig=True)
plt.show()

# %%
# Trust
# -----
# Does every donor respond, or one of them? Medians of both conditions, a line for each donor.

axes = pl.groups(adata, show=False)
plt.show()

# %%
# Which genes move with a pattern? The cells that chose a pattern cannot test it: with thousands of
# cells every gene would be significant. `tl.rank_genes` leaves each donor out once, fits the
# others, and measures in the donor left out how each gene moves with the score of the others. One
# number for each donor remains, and a t-test over donors gives p; ``q_value`` allows for the number
# of genes. Genes that lead a pattern by noise alone have a large one.

genes = tl.rank_genes(adata, n_genes=5)
shown = genes[["pattern", "gene", "effect", "donor_effect", "n_donors", "q_value"]]
print(shown.to_string(index=False, float_format="{:.2g}".format))

# %%
# Go on
# -----
# Results survive h5ad and zarr files. New cells are scored by the names of their genes, and
# `tl.get_model` gives the fitted estimator, with all that it knows.

new = adata[adata.obs["donor"] == adata.obs["donor"].iloc[0]].copy()
del new.obsm["X_cica"], new.uns["cica"]
tl.score(new, adata)
print(np.abs(new.obsm["X_cica"] - adata[new.obs_names].obsm["X_cica"]).max() < 1e-5)
print(tl.get_model(adata))
