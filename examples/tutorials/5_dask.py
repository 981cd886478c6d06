"""
Large data: dask
================

A fit needs sums over the rows, and sums can be taken where the rows are. So data that are larger
than the memory, or spread over the machines of a cluster, are passed as they are: as dask arrays,
or as files that are read block by block.
"""

# %%
# Prepare
# -------
# Rows on disk, in parts. Here 200 000 × 20 numbers of each dataset are written to a temporary
# folder; real ones are there already. Parquet and zarr can be read by all machines of a cluster.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from contrica import ContrastiveICA
from contrica.rows import open_dask, open_rows

folder = Path(tempfile.mkdtemp())
n, p, part = 200_000, 20, 20_000
names = [f"sensor {i}" for i in range(p)]
mixing = np.eye(p) + 0.3 * np.random.default_rng(99).standard_normal((p, p))


def rows(seed, is_new):
    """Some rows; in the foreground two variables share a source with two values."""
    rng = np.random.default_rng(seed)
    values = rng.laplace(size=(part, p)) @ mixing
    if is_new:
        values[:, :2] += 2 * rng.choice([-1.0, 1.0], (part, 1))
    return pd.DataFrame(values, columns=names)


for name, is_new, first in (("fore", True, 0), ("back", False, 1000)):
    for i in range(n // part):
        rows(first + i, is_new).to_parquet(folder / f"{name}-{i}.parquet")

# %%
# A cluster
# ---------
# One line starts it, here on this machine; elsewhere an address such as
# ``Client("tcp://host:8786")`` is all that changes. `open_dask` reads the names of the variables,
# and no rows.

cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
client = Client(cluster)
fore, back = (open_dask(f"{folder}/{name}-*.parquet") for name in ("fore", "back"))
print(len(fore.columns), "variables in", fore.rows.npartitions, "parts")

# %%
# Fit
# ---
# Workers sum their own chunks; only sums travel. The result is that of the same rows in memory.

model = ContrastiveICA(random_state=0).fit(fore.rows, background=back.rows)
print(model.summary())

# %%
# One process that reads the same files block by block comes to the same patterns, and so would
# the rows in memory.

files = [open_rows(f"{folder}/{name}-*.parquet") for name in ("fore", "back")]
alone = ContrastiveICA(random_state=0).fit(files[0].rows, background=files[1].rows)
print("largest difference:", np.abs(model.components_ - alone.components_).max())

# %%
# Read
# ----
# Scores have a number for each row and pattern, so they fit in memory where the data do not.

figure, ax = plt.subplots(figsize=(6, 3.5))
for name, data, colour in (("foreground", fore, "#D55E00"), ("background", back, "#0072B2")):
    scores = model.transform(data.rows)[:, 0]
    ax.hist(scores, bins=np.linspace(-6, 6, 100), histtype="step", color=colour, label=name)
ax.set(xlabel="score on pattern 1", ylabel="rows")
ax.legend()
plt.show()

# %%
client.close()
cluster.close()

# %%
# What is large
# -------------
# Time grows with the rows, and memory does not. What a pass costs, and what was measured up to
# ten million rows, is in :doc:`/scaling` and :doc:`/performance`. Without a cluster,
# `contrica.rows.open_rows` reads files block by block in one process: :doc:`/guide/memory`.
