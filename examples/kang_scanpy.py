"""Interferon programmes of blood cells, with scanpy: what stimulated cells have and control cells do not.

Needs ``pip install 'contrica[single-cell]'`` and the data of Kang et al. 2018 in the folder that
CONTRICA_DATA names. Prints the leading genes of each pattern, and writes
``docs/images/kang_umap.png``.
"""

from pathlib import Path

import scanpy as sc

from contrica import tl
from contrica.datasets import kang_anndata

adata = kang_anndata()
sc.pp.highly_variable_genes(adata, n_top_genes=2000)
tl.cica(adata, groupby="condition", background="ctrl", groups="donor", n_comps=4, random_state=0)
genes = tl.rank_genes(adata, test=False, n_genes=8)
print(adata.uns["cica"]["summary"])
for pattern, own in genes.groupby("pattern"):
    print(pattern, *own["gene"])
sc.pp.neighbors(adata, use_rep="X_cica", transformer="sklearn")  # exact, and quick of four scores
sc.tl.umap(adata)
figure = sc.pl.umap(adata, color=["condition", "IFIT1", "CXCL11"], ncols=3, return_fig=True)
images = Path(__file__).parent.parent / "docs" / "images"
figure.savefig(images / "kang_umap.png", dpi=50, bbox_inches="tight")
