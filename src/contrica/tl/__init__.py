"""Contrastive ICA of cells: from an AnnData object, and into it.

::

    from contrica import tl
    tl.cica(adata, groupby="condition", background="ctrl", groups="donor")
"""

from contrica.tl._cica import cica, remove_background, score
from contrica.tl._compare import compare
from contrica.tl._evidence import significance, stability
from contrica.tl._genes import rank_genes
from contrica.tl._storage import get_model

__all__ = [
    "cica",
    "compare",
    "get_model",
    "rank_genes",
    "remove_background",
    "score",
    "significance",
    "stability",
]
