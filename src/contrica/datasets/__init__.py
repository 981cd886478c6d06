"""Data to try things on: the paper's synthetic designs, an embedded demo, loaders of real data."""

from contrica.datasets._cells import (
    kang_anndata,
    load_kang,
    load_transplant,
    load_transplant_part,
    read_10x,
)
from contrica.datasets._digits_on_photos import load_digits_on_photos
from contrica.datasets._expression import load_human_primate, make_human_primate
from contrica.datasets._folder import data_folder, fetch
from contrica.datasets._real import load_corrupted_mnist, load_mouse_protein
from contrica.datasets._synthetic import make_four_clusters, make_synthetic

__all__ = [
    "data_folder",
    "fetch",
    "kang_anndata",
    "load_corrupted_mnist",
    "load_digits_on_photos",
    "load_human_primate",
    "load_kang",
    "load_mouse_protein",
    "load_transplant",
    "load_transplant_part",
    "make_four_clusters",
    "make_human_primate",
    "make_synthetic",
    "read_10x",
]
