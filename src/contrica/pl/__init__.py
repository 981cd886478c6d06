"""Plots of what `contrica.tl` has left in an AnnData object. Needs the extra ``single-cell``.

::

    from contrica import pl, tl
    tl.cica(adata, groupby="condition", background="ctrl", groups="donor")
    pl.cica(adata, color=["cell_type", "ISG15"])
    pl.loadings(adata)

Each is thin over `contrica.plots`. Colours of a column are ``uns["<column>_colors"]``, as scanpy has
them. ``show`` and ``save`` work as in scanpy.
"""

from contrica.pl._cells import cica, groups, heatmap
from contrica.pl._patterns import loadings, ratios, stability

__all__ = ["cica", "groups", "heatmap", "loadings", "ratios", "stability"]
