"""Gene expression of human and other primates, and simulated data of the same design."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
from sklearn.utils import Bunch

from contrica.datasets._folder import find_file
from contrica.errors import FileError
from contrica.validation import check_count

__all__ = ["load_human_primate", "make_human_primate"]

# Genes taken of each kind, cells of each species, and the ranks r and ℓ
N_GENES, N_CELLS = 15, 10_000
N_BACKGROUND, N_FOREGROUND = 22, 24
SPECIES = ("human", "chimp", "gorilla")
_SOURCE = "the authors of Suresh et al. 2023, Nature Ecology & Evolution"


def load_human_primate(
    folder: str | Path | None = None,
    *,
    n_cells: int = N_CELLS,
    random_state: int | np.random.Generator | None = 0,
) -> Bunch:
    """Gene expression of human cells, against chimp and gorilla (Suresh et al. 2023).

    Foreground: ``n_cells`` human cells. Background: as many of chimp and of gorilla each. Of the genes
    that differ between human and other primates (3383 in the paper), 15 are taken that are conserved
    in all other animals (a subset of 139), and 15 that are not: those of largest variance over all
    cells drawn, of the three species together. Values are taken as they are in the files.

    Parameters
    ----------
    folder : path, optional
        Data folder that holds ``human_primate/human.csv``, ``chimp.csv`` and ``gorilla.csv``, also
        gzipped: a header of gene names, then a row per cell, with or without its name in front; and
        ``human_primate/divergent_genes.txt`` and ``conserved_genes.txt``, a gene per line. By default the
        one that CONTRICA_DATA names.
    n_cells : int
        Of each species, drawn without replacement.
    random_state : int, Generator or None
        Draws the cells.

    Returns
    -------
    Bunch
        ``foreground`` (n_cells, 30), ``background`` (2 n_cells, 30), ``feature_names``, ``conserved``
        (True for the first 15), ``n_divergent`` and ``n_conserved`` genes listed.

    References
    ----------
    Wang, Maraj and Seigal, Appendix `app:monkey_and_human`.
    """
    n_cells = check_count("n_cells", n_cells, minimum=2)
    rng = np.random.default_rng(random_state)
    paths = {species: _find(folder, f"{species}.csv.gz", f"{species}.csv") for species in SPECIES}
    divergent, conserved = (
        _find(folder, f"{kind}_genes.txt") for kind in ("divergent", "conserved")
    )
    listed, chosen = _names(divergent), _names(conserved)
    strangers = [gene for gene in chosen if gene not in set(listed)]
    if strangers:
        raise FileError(
            "not-a-subset",
            f"{conserved} names {len(strangers)} genes that {divergent.name} does not, {strangers[0]!r} "
            "first",
            "the conserved genes must be a subset of the divergent ones",
            "Leave them out of the one list, or add them to the other.",
        )
    headers = {species: _header(path) for species, path in paths.items()}
    genes = [gene for gene in listed if all(gene in names for names in headers.values())]
    _check_genes(genes, chosen, listed)
    cells = [
        _draw(path, [headers[species].index(gene) for gene in genes], n_cells, rng)
        for species, path in paths.items()
    ]
    return Bunch(
        **_most_variable(cells, genes, chosen), n_divergent=len(listed), n_conserved=len(chosen)
    )


def _find(folder: str | Path | None, *names: str) -> Path:
    places = [f"human_primate/{name}" for name in names]
    return find_file(folder, *places, what="human and primate expression", source=_SOURCE)


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise FileError(
            "unreadable", f"{path} could not be read ({error})", remedy="Save it as csv in UTF-8."
        ) from error


def _names(path: Path) -> list[str]:
    with _text(path) as file:
        return list(dict.fromkeys(name for line in file if (name := line.strip())))


def _header(path: Path) -> list[str]:
    """Gene names as they stand over the columns."""
    with _text(path) as file:
        rows = csv.reader(file)
        first, second = next(rows, None), next(rows, None)
    if first is None or second is None:
        raise FileError(
            "too-short",
            f"{path} has fewer than two rows",
            "a header of gene names and a row per cell are needed",
            "Save the table anew.",
        )
    # R leaves the heading of the cell names out
    names = ["", *first] if len(second) == len(first) + 1 else first
    if len(names) != len(second):
        raise FileError(
            "headings",
            f"{path} has {len(first)} headings and {len(second)} values in its first row",
            "each gene needs a heading",
            "Save the table anew.",
        )
    return [name.strip() for name in names]


def _check_genes(genes: list[str], conserved: list[str], listed: list[str]) -> None:
    known = set(conserved)
    counts = (sum(gene in known for gene in genes), sum(gene not in known for gene in genes))
    if min(counts) < N_GENES:
        raise FileError(
            "too-few-genes",
            f"of {len(listed)} listed genes {counts[0]} conserved and {counts[1]} other ones are columns "
            "of all three files",
            f"{N_GENES} of each are needed",
            "Check that the lists and the headers name genes in the same way.",
        )


def _draw(path: Path, columns: list[int], n_cells: int, rng: np.random.Generator) -> np.ndarray:
    """Some rows of a table, without reading the others as numbers."""
    with _text(path) as file:
        available = sum(1 for line in file if line.strip()) - 1
    if available < n_cells:
        raise FileError(
            "too-few-rows",
            f"{path} has {available} cells",
            f"{n_cells} are needed",
            "Supply more, or lower `n_cells`.",
            "n_cells",
        )
    chosen = set(rng.choice(available, n_cells, replace=False).tolist())
    values = np.empty((n_cells, len(columns)), dtype=np.float32)
    with _text(path) as file:
        lines = (line for line in file if line.strip())
        next(lines)
        picked = (line for i, line in enumerate(lines) if i in chosen)
        for i, row in enumerate(csv.reader(picked)):
            try:
                values[i] = [float(row[k]) for k in columns]
            except (ValueError, IndexError) as error:
                name = row[0] if row else ""
                raise FileError(
                    "not-numbers",
                    f"{path}: the row that starts with {name!r} is not a row of numbers ({error})",
                    remedy="Fill or drop it first.",
                ) from error
    if not np.isfinite(values).all():
        raise FileError(
            "not-finite",
            f"{path} has missing or infinite values",
            remedy="Fill or drop them first.",
        )
    return values


def _most_variable(
    cells: Sequence[np.ndarray],
    genes: Sequence[str] | np.ndarray,
    conserved: Sequence[str] | np.ndarray,
) -> dict[str, np.ndarray]:
    """Foreground and background over the 15 most variable conserved genes, then as many others."""
    rows = np.vstack(list(cells))
    variance = rows.var(axis=0, dtype=float)
    names, known = np.asarray(genes), np.isin(genes, list(conserved))
    order = np.argsort(-variance, kind="stable")
    kept = np.concatenate([order[known[order]][:N_GENES], order[~known[order]][:N_GENES]])
    chosen = rows[:, kept].astype(float)
    n_human = len(cells[0])
    return {
        "foreground": chosen[:n_human],
        "background": chosen[n_human:],
        "feature_names": names[kept],
        "conserved": known[kept],
    }


def make_human_primate(
    n_cells: int = N_CELLS,
    *,
    n_quiet: int = 5,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Made expression of three species whose human patterns lie on known genes.

    The design of the paper's analysis, with an answer: ``y = A z`` for chimp and gorilla and
    ``x = A z′ + B s`` for human, over 15 conserved and 15 other genes. A has 22 random unit columns over
    all of them; their sources are exponential of scale 1, and of scales 1.5 and 0.7 in turn in human, so
    that no single scale takes the background away. B has 24 unit columns that load on the conserved
    genes alone: two orthogonal ones of scale 1.5, in which all 15 genes have a part, and 22 random ones
    of scale 0.3. Gaussian noise of deviation 0.1 is added. ``n_quiet`` further genes of each kind carry
    noise only and are not to be chosen.

    The two strong patterns make the answer one that can be found: were all 24 equally strong, which is
    more than the 15 dimensions they share, their mixtures would stay below it. The strengths were
    settled with that in view, so this checks the recipe and says nothing on which method is better.

    Parameters
    ----------
    n_cells : int
        Of each species.
    n_quiet : int
    random_state : int, Generator or None

    Returns
    -------
    Bunch
        ``human``, ``chimp``, ``gorilla`` of shape (n_cells, p) with p = 30 + 2 n_quiet; ``gene_names``,
        ``conserved`` (names); ``A`` (p, 22) and ``B`` (p, 24); ``foreground``, ``background`` and
        ``feature_names`` of the 30 genes chosen as in `load_human_primate`, conserved ones first.

    Examples
    --------
    >>> make_human_primate(50, random_state=0).background.shape
    (100, 30)
    """
    n = check_count("n_cells", n_cells, minimum=2)
    rng = np.random.default_rng(random_state)
    per_kind = N_GENES + check_count("n_quiet", n_quiet, minimum=0)
    names = np.array([f"{kind}{i + 1}" for kind in ("conserved", "other") for i in range(per_kind)])
    loud = np.concatenate([np.arange(N_GENES), per_kind + np.arange(N_GENES)])
    A = np.zeros((2 * per_kind, N_BACKGROUND))
    A[loud] = rng.standard_normal((2 * N_GENES, N_BACKGROUND))
    B = np.zeros((2 * per_kind, N_FOREGROUND))
    B[:N_GENES] = rng.standard_normal((N_GENES, N_FOREGROUND))
    modules = rng.choice([-1.0, 1.0], (2, N_GENES)) * rng.uniform(0.7, 1.3, (2, N_GENES))
    modules[1] -= modules[0] * (modules[0] @ modules[1]) / (modules[0] @ modules[0])
    B[:N_GENES, :2] = modules.T
    A, B = (M / np.linalg.norm(M, axis=0) for M in (A, B))
    strengths = np.where(np.arange(N_BACKGROUND) % 2, 0.7, 1.5)
    own = np.where(np.arange(N_FOREGROUND) < 2, 1.5, 0.3)

    def cells(mixing: np.ndarray) -> np.ndarray:
        noise = 0.1 * rng.standard_normal((n, len(names)))
        return rng.exponential(size=(n, mixing.shape[1])) @ mixing.T + noise

    human, chimp, gorilla = cells(np.hstack([A * strengths, B * own])), cells(A), cells(A)
    conserved = names[:per_kind]
    chosen = _most_variable([human, chimp, gorilla], names, conserved)
    del chosen["conserved"]
    return Bunch(
        human=human,
        chimp=chimp,
        gorilla=gorilla,
        gene_names=names,
        conserved=conserved,
        A=A,
        B=B,
        **chosen,
    )
