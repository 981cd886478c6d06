"""The folder of a 10x matrix: counts in matrix.mtx, and the names of cells and genes beside it."""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread
from sklearn.utils import Bunch

from contrica.errors import FileError, FileMissingError, unmarked
from contrica.rows.files.shared import Opened, check_table

__all__ = ["open_10x", "read_10x"]

# Which of the features are genes, where others were counted as well.
GENES = "Gene Expression"
# What a damaged file raises.
UNREADABLE = (KeyError, ValueError, TypeError, OSError, EOFError, IndexError, zlib.error)


def open_10x(where: str) -> Opened:
    """Open the folder of a 10x matrix, whose columns are cells; it is read whole, as sparse rows.

    Parameters
    ----------
    where : str
        The folder, or the matrix in it.

    Returns
    -------
    Opened
        Genes are called by their names, and by their ids where two have one name. What else was counted,
        such as antibodies, has units of its own and is left out.
    """
    path = Path(where)
    found = read_10x(path if path.is_dir() else path.parent)
    genes = np.isin(found.gene_types, ("", GENES))
    genes = genes if genes.any() else np.ones_like(genes)
    cells, ids, names = found.counts[:, genes], found.gene_ids[genes], found.gene_names[genes]
    check_table(where, cells.shape, cells.dtype)
    _, places, counts = np.unique(names, return_inverse=True, return_counts=True)
    return Opened(cells, np.where(counts[places] > 1, ids, names), found.barcodes)


def read_10x(folder: str | Path) -> Bunch:
    """Counts of one sample in the format of 10x Genomics.

    Parameters
    ----------
    folder : path
        It, or one folder below it such as ``filtered_matrices_mex/hg19``, holds ``matrix.mtx`` (genes
        by cells), ``genes.tsv`` or ``features.tsv``, and ``barcodes.tsv``; each also gzipped. Folders
        named ``raw...`` are passed over.

    Returns
    -------
    Bunch
        ``counts``, sparse, of shape (n_cells, n_genes); ``gene_ids``, ``gene_names``, ``gene_types``
        (empty where the file does not say), ``barcodes``.

    Raises
    ------
    FileMissingError
        If one of the three files is not there.
    FileError
        If they do not fit together.
    """
    folder = Path(folder)
    matrices = [
        path
        for path in sorted(folder.rglob("matrix.mtx*"))
        if not any(part.startswith("raw") for part in path.relative_to(folder).parts)
    ]
    if len({path.parent for path in matrices}) > 1:
        places = ", ".join(str(path.parent.relative_to(folder)) for path in matrices)
        raise FileError(
            "several-matrices",
            f"{folder} has several count matrices ({places})",
            remedy="Leave one of them.",
        )
    inner = matrices[0].parent if matrices else folder
    matrix, genes, barcodes = (
        _one_of(inner, names)
        for names in (("matrix.mtx",), ("genes.tsv", "features.tsv"), ("barcodes.tsv",))
    )
    gene_rows, cells = _tsv(genes), _tsv(barcodes)
    try:
        counts = sp.csr_array(mmread(matrix).T)
    except UNREADABLE as error:
        raise FileError(
            "unreadable",
            f"{matrix} is not a matrix in Matrix Market format ({error})",
            remedy="Copy it anew.",
        ) from error
    if counts.shape != (len(cells), len(gene_rows)):
        raise FileError(
            "shape",
            f"{matrix} has {counts.shape[1]} genes and {counts.shape[0]} cells",
            f"{genes.name} names {len(gene_rows)} genes and {barcodes.name} {len(cells)} cells",
            "The three files must be of one sample.",
        )
    if counts.data.size and not (np.isfinite(counts.data) & (counts.data >= 0)).all():
        raise FileError(
            "not-counts",
            f"{matrix} contains negative numbers or NaN",
            "counts are needed",
            "Copy it anew, or undo what was done to the counts.",
        )
    return Bunch(
        counts=counts,
        gene_ids=np.array([row[0] for row in gene_rows]),
        gene_names=np.array([row[1] if len(row) > 1 else row[0] for row in gene_rows]),
        gene_types=np.array([row[2] if len(row) > 2 else "" for row in gene_rows]),
        barcodes=np.array([row[0] for row in cells]),
    )


def _one_of(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise FileMissingError(
        "data-missing",
        f"{' or '.join(names)} (or the same with .gz) is missing from {unmarked(folder)}",
        "a sample in 10x format has matrix.mtx, genes.tsv or features.tsv, and barcodes.tsv",
        "Put all three there.",
        filename=folder / names[0],
    )


def _tsv(path: Path) -> list[list[str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            return [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row]
    except (OSError, EOFError, ValueError) as error:
        raise FileError(
            "unreadable", f"{path} could not be read ({error})", remedy="Copy it anew."
        ) from error
