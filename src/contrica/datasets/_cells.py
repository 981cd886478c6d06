"""Loaders of single-cell counts: 10x folders of the transplant data, its part, and stimulated cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from contrica.datasets._folder import UNREADABLE, find_file
from contrica.datasets._real import standardised
from contrica.errors import FileError, FileMissingError, ParameterError, unmarked
from contrica.rows.files.mtx import read_10x
from contrica.rows.files.shared import optional_module
from contrica.validation import check_choice, check_count

__all__ = ["kang_anndata", "load_kang", "load_transplant", "load_transplant_part", "read_10x"]

BEFORE, AFTER = ("aml027_pre", "aml035_pre"), ("aml027_post", "aml035_post")
HEALTHY = ("healthy1", "healthy2")
_TRANSPLANT = "10x Genomics, the AML and frozen BMMC datasets of Zheng et al. 2017"
# Donors of the foreground; the control cells of the others are the background
STIMULATED_DONORS = ("101", "107", "1015", "1016")
DOUBLET = "DBL"
_KANG_NEEDS = (
    "It needs arrays data, indices, indptr, shape, gene, condition (ctrl, stim), donor and, with "
    "`preprocessing=usual` and of AnnData objects, total_umi."
)


def load_transplant(
    folder: str | Path | None = None, *, n_genes: int = 500, dispersion: str = "counts"
) -> Bunch:
    """Bone marrow cells of two leukaemia patients before and after a transplant (Zheng et al. 2017).

    Foreground: cells of patients AML027 and AML035, 7525 from before the stem-cell transplant and
    4874 from after it, the labels. Background: 4457 cells of two healthy donors. The ``n_genes`` genes
    with the largest dispersion are kept, variance over mean over all cells of foreground and background
    together; counts are taken as ``log(1 + count)``, without size factors; then each dataset is
    standardised per gene. The paper does not say what its "500 most variable genes" are variable in.

    Parameters
    ----------
    folder : path, optional
        Data folder that holds ``transplant`` with the folders ``aml027_pre``, ``aml027_post``,
        ``aml035_pre``, ``aml035_post``, ``healthy1`` and ``healthy2``, each as `read_10x` takes it; by
        default the one that CONTRICA_DATA names.
    n_genes : int
    dispersion : {"counts", "log"}
        Whether genes are chosen by the dispersion of the counts or of their logarithms.

    Returns
    -------
    Bunch
        ``foreground`` (n, n_genes), ``background`` (m, n_genes), ``labels`` (0 before, 1 after),
        ``label_names``, ``samples`` of the foreground's rows, ``feature_names``.

    References
    ----------
    Wang, Maraj and Seigal, Appendix `app: RNA`.
    """
    check_choice("dispersion", dispersion, ("counts", "log"))
    names = (*BEFORE, *AFTER, *HEALTHY)
    places = ", ".join(f"transplant/{name}" for name in names)
    what = "the transplant data"
    root = find_file(folder, "transplant", what=f"{what} ({places})", source=_TRANSPLANT)
    absent = [name for name in names if not (root / name).is_dir()]
    if absent:
        raise FileMissingError(
            "data-missing",
            f"{what}: of six samples {len(absent)} are missing",
            remedy=f"Put the folders {', '.join(absent)} into {unmarked(root)}, each with matrix.mtx, "
            f"genes.tsv and barcodes.tsv. They are available from {_TRANSPLANT}.",
            filename=root / absent[0],
        )
    samples = {name: read_10x(root / name) for name in names}
    shared = _shared_genes(samples)
    n_cells = {name: sample.counts.shape[0] for name, sample in samples.items()}
    origin = np.repeat(names, [n_cells[name] for name in names])
    counts = sparse.vstack([_columns(sample, shared) for sample in samples.values()], format="csr")
    healthy = np.isin(origin, HEALTHY)
    gene_names = _by_id(samples[names[0]], shared)
    return Bunch(
        **_recipe(counts, ~healthy, healthy, gene_names, n_genes, dispersion),
        labels=np.isin(origin, AFTER)[~healthy].astype(int),
        label_names=["before transplant", "after transplant"],
        samples=origin[~healthy],
    )


def _shared_genes(samples: dict[str, Bunch]) -> np.ndarray:
    """Identifiers that every sample has, in the order of the first."""
    for name, sample in samples.items():
        if len(set(sample.gene_ids)) < len(sample.gene_ids):
            raise FileError(
                "duplicate-genes",
                f"sample {name} names genes twice",
                "the first column of genes.tsv must be unique",
                "Copy the file anew, or make its names unique.",
            )
    first, *others = samples.values()
    shared = np.ones(len(first.gene_ids), dtype=bool)
    for other in others:
        shared &= np.isin(first.gene_ids, other.gene_ids)
    if not shared.any():
        raise FileError(
            "no-shared-genes",
            f"the samples {', '.join(samples)} share no gene",
            remedy="Their genes.tsv must be of one genome (hg19 in the paper).",
        )
    return first.gene_ids[shared]


def _columns(sample: Bunch, ids: np.ndarray) -> sparse.csr_array:
    if np.array_equal(sample.gene_ids, ids):
        return sample.counts
    place = {gene: i for i, gene in enumerate(sample.gene_ids)}
    return sample.counts[:, [place[gene] for gene in ids]]


def _by_id(sample: Bunch, ids: np.ndarray) -> np.ndarray:
    return sample.gene_names[np.isin(sample.gene_ids, ids)]


def _recipe(
    counts: sparse.csr_array,
    foreground: np.ndarray,
    background: np.ndarray,
    gene_names: np.ndarray,
    n_genes: int,
    dispersion: str = "counts",
) -> dict[str, np.ndarray]:
    """The paper's preprocessing of counts: most dispersed genes, log, standardised datasets."""
    check_count("n_genes", n_genes)
    counts = sparse.csr_array(counts, dtype=float)
    values = counts.log1p()
    ranked = counts if dispersion == "counts" else values
    kept = _most_dispersed(ranked[foreground | background], n_genes)
    fore, back = (
        standardised(values[rows][:, kept].toarray()) for rows in (foreground, background)
    )
    return {"foreground": fore, "background": back, "feature_names": gene_names[kept]}


def _normalised(
    counts: sparse.csr_array,
    totals: np.ndarray,
    foreground: np.ndarray,
    background: np.ndarray,
    gene_names: np.ndarray,
    n_genes: int,
) -> dict[str, np.ndarray]:
    """Counts scaled to 10⁴ in a cell, logged; the genes of largest variance over all cells."""
    check_count("n_genes", n_genes)
    values = sparse.csr_array(counts.multiply(1e4 / totals[:, None])).log1p()
    used = values[foreground | background]
    mean = np.asarray(used.mean(axis=0)).ravel()
    variance = np.asarray((used**2).mean(axis=0)).ravel() - mean**2
    kept = np.argsort(-variance, kind="stable")[:n_genes]
    fore, back = (values[rows][:, kept].toarray() for rows in (foreground, background))
    return {"foreground": fore, "background": back, "feature_names": gene_names[kept]}


def _most_dispersed(values: sparse.csr_array, count: int) -> np.ndarray:
    """Columns of largest variance over mean, by decreasing dispersion."""
    mean = np.asarray(values.mean(axis=0)).ravel()
    expressed = int(np.sum(mean > 0))
    if expressed < count:
        raise ParameterError(
            "too-large",
            f"{count} genes are to be kept",
            f"only {expressed} are expressed in any cell",
            "Lower `n_genes`, or check the files.",
            "n_genes",
        )
    variance = np.asarray((values**2).mean(axis=0)).ravel() - mean**2
    dispersion = np.divide(variance, mean, out=np.full_like(mean, -1.0), where=mean > 0)
    return np.argsort(-dispersion, kind="stable")[:count]


def load_transplant_part(folder: str | Path | None = None) -> Bunch:
    """A part of the transplant data: one patient before the transplant, and the healthy donors.

    Foreground: 3933 cells of AML027 before the transplant and 1985 of one healthy donor, the labels.
    Background: 2472 cells of the other donor. The file holds ``log(1 + count)`` of the 500 genes of
    largest dispersion of the counts; each dataset is standardised per gene.

    Parameters
    ----------
    folder : path, optional
        Data folder that holds ``scrna_aml_bmmc/aml027pre_healthy_log_top500.npz``, with arrays ``X``
        (n_cells, n_genes), ``sample`` and ``gene_symbol``.

    Returns
    -------
    Bunch
        As `load_transplant`, with labels 0 healthy, 1 leukaemia.
    """
    path = find_file(
        folder,
        "scrna_aml_bmmc/aml027pre_healthy_log_top500.npz",
        what="the part of the transplant data",
        source=f"{_TRANSPLANT}; the whole data work as well: see load_transplant",
    )
    needs = "It needs arrays X, sample (aml027_pre, healthy1, healthy2) and gene_symbol."
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            values, sample = stored["X"].astype(float), stored["sample"]
            names = stored["gene_symbol"]
        foreground = np.isin(sample, ("aml027_pre", "healthy1"))
        background = sample == "healthy2"
        fore, back = values[foreground], values[background]
        leukaemia = sample[foreground] == "aml027_pre"
    except UNREADABLE as error:
        raise FileError(
            "content",
            f"{path} is not the part of the transplant data: {error}",
            remedy=needs,
        ) from error
    _check_sizes(path, back, leukaemia, needs)
    return Bunch(
        foreground=standardised(fore),
        background=standardised(back),
        labels=leukaemia.astype(int),
        label_names=["healthy", "leukaemia"],
        samples=sample[foreground],
        feature_names=names,
    )


def load_kang(
    folder: str | Path | None = None,
    *,
    design: str = "donors",
    n_genes: int = 500,
    preprocessing: str | None = None,
) -> Bunch:
    """Blood cells of eight donors, with and without interferon-β (Kang et al. 2018).

    "donors": the foreground is control and stimulated cells of donors 101, 107, 1015 and 1016, with the
    condition as label, the background control cells of the other four donors. "condition": stimulated
    cells against control cells of all donors. Doublets are left out.

    Parameters
    ----------
    folder : path, optional
        Data folder that holds ``scrna_kang_ifnb/kang_hvg3000_counts.npz``: counts in compressed rows
        (``data``, ``indices``, ``indptr``, ``shape``), ``gene``, ``condition`` (ctrl, stim), ``donor``;
        for "usual" preprocessing also ``total_umi``, the counts of each cell over all genes.
    design : {"donors", "condition"}
    n_genes : int
    preprocessing : {"paper", "usual"}, optional
        "paper": as in `load_transplant`, the default of "donors". "usual": counts are scaled to 10⁴ in a
        cell and logged, the genes of largest variance are kept, and nothing is standardised; the default
        of "condition".

    Returns
    -------
    Bunch
        As `load_transplant`, with labels 0 control, 1 stimulated, and ``samples`` the donors; ``groups``
        and ``background_groups``, the donors of all rows.
    """
    check_choice("design", design, ("donors", "condition"))
    preprocessing = preprocessing or ("usual" if design == "condition" else "paper")
    check_choice("preprocessing", preprocessing, ("paper", "usual"))
    path, found = _kang_file(folder)
    try:
        counts, condition, donor = found["counts"], found["condition"], found["donor"]
        if preprocessing == "usual":
            totals = found["total_umi"].astype(float)
        chosen, single = np.isin(donor, STIMULATED_DONORS), donor != DOUBLET
        others = ~chosen & single & (condition == "ctrl")
        back, stimulated = counts[others], condition[chosen] == "stim"
    except UNREADABLE as error:
        raise _not_kang(path, error) from error
    _check_sizes(path, back, stimulated, _KANG_NEEDS)
    if design == "condition":
        chosen, others = single & (condition == "stim"), single & (condition == "ctrl")
    if preprocessing == "usual":
        rows = _normalised(counts, totals, chosen, others, found["gene"], n_genes)
    else:
        rows = _recipe(counts, chosen, others, found["gene"], n_genes)
    return Bunch(
        **rows,
        labels=(condition[chosen] == "stim").astype(int),
        label_names=["control", "stimulated"],
        samples=donor[chosen],
        groups=donor[chosen],
        background_groups=donor[others],
    )


def _kang_file(folder: str | Path | None) -> tuple[Path, dict[str, Any]]:
    """The file of stimulated blood cells, its counts as one matrix."""
    path = find_file(
        folder,
        "scrna_kang_ifnb/kang_hvg3000_counts.npz",
        what="the file of stimulated blood cells",
        source="Gene Expression Omnibus, GSE96583, stored as compressed rows",
    )
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            parts = (stored["data"].astype(float), stored["indices"], stored["indptr"])
            counts = sparse.csr_array(parts, shape=tuple(stored["shape"]))
            needed = {name: stored[name] for name in ("gene", "condition", "donor")}
            more = ("total_umi", "barcode", "cell_type_published")
            others = {name: stored[name] for name in more if name in stored}
    except UNREADABLE as error:
        raise _not_kang(path, error) from error
    return path, {"counts": counts, **needed, **others}


def _not_kang(path: Path, error: Exception) -> FileError:
    return FileError(
        "content",
        f"{path} does not contain the stimulated blood cells: {error}",
        remedy=_KANG_NEEDS,
    )


def kang_anndata(folder: str | Path | None = None) -> Any:
    """Blood cells of eight donors with and without interferon-β, as an AnnData object (Kang et al. 2018).

    Counts are scaled to 10⁴ in a cell, by its counts over all genes, and logged. Doublets are left out.

    Parameters
    ----------
    folder : path, optional
        As of `load_kang`; the file must have ``total_umi``.

    Returns
    -------
    AnnData
        ``X`` of 3000 genes, sparse; ``layers["counts"]``; ``obs`` with ``condition`` (ctrl, stim),
        ``donor`` and, where it was published, ``cell_type``.
    """
    anndata = optional_module("anndata", "AnnData objects", "single-cell")
    pandas = optional_module("pandas", "AnnData objects", "single-cell")
    path, found = _kang_file(folder)
    try:
        single = found["donor"] != DOUBLET
        counts = sparse.csr_matrix(found["counts"])[single]
        totals = found["total_umi"].astype(float)[single]
        obs = {name: pandas.Categorical(found[name][single]) for name in ("condition", "donor")}
        if "cell_type_published" in found:
            types = found["cell_type_published"][single].astype(object)
            obs["cell_type"] = pandas.Categorical(np.where(types == "", None, types))
        names = found["barcode"][single] if "barcode" in found else np.arange(single.sum())
        scaled = sparse.csr_matrix(counts.multiply(1e4 / totals[:, None])).log1p()
        return anndata.AnnData(
            scaled.astype(np.float32),
            obs=pandas.DataFrame(obs, index=names.astype(str)),
            var=pandas.DataFrame(index=found["gene"].astype(str)),
            layers={"counts": counts.astype(np.float32)},
        )
    except UNREADABLE as error:
        raise _not_kang(path, error) from error


def _check_sizes(path: Path, back: np.ndarray, label: np.ndarray, needs: str) -> None:
    counts = (int(np.sum(~label)), int(np.sum(label)), back.shape[0])
    if min(counts) < 4:
        raise FileError(
            "too-few-rows",
            f"{path} has {counts[0]} and {counts[1]} foreground cells of the two labels and {counts[2]} "
            "background cells",
            "at least 4 of each are needed",
            needs,
        )
