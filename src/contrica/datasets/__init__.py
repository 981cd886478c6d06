"""Data to try things on: the paper's synthetic designs and an embedded demo of real images."""

from contrica.datasets._digits_on_photos import load_digits_on_photos
from contrica.datasets._synthetic import make_four_clusters, make_synthetic

__all__ = ["load_digits_on_photos", "make_four_clusters", "make_synthetic"]
