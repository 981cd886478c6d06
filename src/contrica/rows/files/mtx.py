"""The folder of a 10x matrix: counts in matrix.mtx, and the names of cells and genes beside it."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

from contrica.rows.files.shared import (
    Opened,
    bad_file,
    check_not_empty,
    check_table,
    matrix_of,
    missing_file,
    reading,
)

__all__ = ["open_10x"]

# Which of the features are genes, where others were counted as well.
GENES = "Gene Expression"


def open_10x(where: str) -> Opened:
    """Open the folder of a 10x matrix, whose columns are cells; it is read whole, as sparse rows.

    Parameters
    ----------
    where : str
        The folder, or the matrix in it.

    Returns
    -------
    Opened
        Genes are called by their symbols, and by their ids where two have one symbol.
    """
    matrix = matrix_of(Path(where))
    if matrix is None:
        raise missing_file(where, "has no matrix.mtx")
    check_not_empty(matrix)
    with reading(str(matrix), "a Matrix Market file"):
        cells = sp.csr_array(mmread(matrix).T)
    check_table(str(matrix), cells.shape, cells.dtype)
    barcodes = _records(matrix.parent, "barcodes.tsv")
    features = _records(matrix.parent, "features.tsv", "genes.tsv")
    for count, names, what in zip(
        cells.shape, (barcodes, features), ("cells", "genes"), strict=True
    ):
        if len(names) != count:
            raise bad_file(
                "damaged",
                where,
                f"has {len(names)} names of {what}",
                f"its matrix has {count}",
                "Make or copy it anew.",
            )
    genes = np.array([len(each) < 3 or each[2] == GENES for each in features])
    if not genes.all() and genes.any():  # antibodies and the like have units of their own
        cells, features = cells[:, genes], [features[i] for i in np.flatnonzero(genes)]
    return Opened(cells, _symbols(features), np.array([each[0] for each in barcodes]))


def _records(folder: Path, *names: str) -> list[list[str]]:
    """Lines of the first of these files that is there, gzipped or not."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                opener = gzip.open if path.suffix == ".gz" else open
                with (
                    reading(str(path), "names"),
                    opener(path, "rt", encoding="utf-8", newline="") as lines,
                ):
                    return [each for each in csv.reader(lines, delimiter="\t") if each]
    raise missing_file(folder / names[0], "does not exist, also not gzipped")


def _symbols(features: list[list[str]]) -> np.ndarray:
    symbols = np.array([each[min(1, len(each) - 1)] for each in features])
    _, places, counts = np.unique(symbols, return_inverse=True, return_counts=True)
    return np.where(counts[places] > 1, [each[0] for each in features], symbols)
