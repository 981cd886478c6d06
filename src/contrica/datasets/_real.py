"""Loaders of the paper's real datasets, from a folder of the user's."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from contrica.datasets._folder import UNREADABLE, fetch, find_file
from contrica.errors import (
    FileError,
    FileMissingError,
    PackageMissingError,
    ParameterError,
    unmarked,
)
from contrica.validation import check_choice

__all__ = ["load_corrupted_mnist", "load_mouse_protein"]


def load_mouse_protein(folder: str | Path | None = None, *, gaps: bool = False) -> Bunch:
    """Protein expression in the cortex of mice after shock therapy (Higuera et al. 2015).

    Foreground: 270 rows of saline-treated mice that were shocked (S/C), half of them with Down
    syndrome (Ts65Dn), the labels. Background: 135 rows of control mice that were not (c-CS-s). Missing
    values are taken as 0 and each dataset is standardised per protein, as published. There are 15 rows
    for each mouse, so rows are not independent.

    Parameters
    ----------
    folder : path, optional
        Data folder that holds ``mouse_protein/Data_Cortex_Nuclear.csv``, also gzipped; by default
        the one that CONTRICA_DATA names.
    gaps : bool
        Whether missing values stay missing, NaN; each protein is then standardised by what was observed.

    Returns
    -------
    Bunch
        ``foreground`` (270, 77), ``background`` (135, 77), ``labels`` (0 Control, 1 Ts65Dn),
        ``label_names``, ``feature_names``; ``groups`` and ``background_groups``, the mice.
    """
    path = find_file(
        folder,
        "mouse_protein/Data_Cortex_Nuclear.csv.gz",
        "mouse_protein/Data_Cortex_Nuclear.csv",
        what="the mouse protein table",
        source="the UCI repository, dataset 342, saved as csv",
    )
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        names = [name for name in rows[0] if name.endswith("_N")]
        values = np.array([[float(row[name] or "nan") for name in names] for row in rows])
        if not gaps:
            values = np.nan_to_num(values, nan=0.0)
        behaviour, treatment, genotype, group = (
            np.array([row[name] for row in rows])
            for name in ("Behavior", "Treatment", "Genotype", "class")
        )
        # 309_1 to 309_15 are the rows of mouse 309
        mouse = np.array([row["MouseID"].partition("_")[0] for row in rows])
    except UNREADABLE as error:
        raise FileError(
            "content",
            f"{path} is not the mouse protein table: {type(error).__name__}, {error}",
            remedy="It needs columns of proteins ending in _N, and MouseID, Behavior, Treatment, "
            "Genotype and class.",
        ) from error
    chosen = (behaviour == "S/C") & (treatment == "Saline")
    parts = (values[chosen], values[group == "c-CS-s"])
    if min(len(part) for part in parts) < 4:
        raise FileError(
            "too-few-rows",
            f"{path} has {len(parts[0])} foreground rows (Behavior S/C, Treatment Saline) and "
            f"{len(parts[1])} background rows (class c-CS-s)",
            "at least 4 of each are needed",
            "Put the whole table there.",
        )
    foreground, background = (
        (_observed_standardised if gaps else standardised)(part) for part in parts
    )
    return Bunch(
        foreground=foreground,
        background=background,
        labels=(genotype[chosen] == "Ts65Dn").astype(int),
        label_names=["Control", "Ts65Dn"],
        feature_names=names,
        groups=mouse[chosen],
        background_groups=mouse[group == "c-CS-s"],
    )


def standardised(rows: np.ndarray) -> np.ndarray:
    """Zero mean and unit variance per column; constant columns become zero."""
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _observed_standardised(rows: np.ndarray) -> np.ndarray:
    """As `standardised`, by the values that are not missing."""
    spread = np.nanstd(rows, axis=0)
    return (rows - np.nanmean(rows, axis=0)) / np.where(spread > 0, spread, 1.0)


# Rows of the paper's design: background, foreground, and images of each kind in the discrete one
N_GRASS, N_CLOUD, N_BACKGROUND, N_DIGITS = 8000, 2000, 5000, 2500
STRENGTH = 0.25


def load_corrupted_mnist(
    folder: str | Path | None = None,
    *,
    design: str = "discrete",
    fraction: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Handwritten digits 0 and 1 on images of grass and clouds.

    Background: 5000 images of grass and 5000 of clouds. Foreground: 8000 other ones of grass and
    2000 of clouds, with digits added. "discrete": a quarter each with a 0, with a 1, with both and
    with none. "continuous": each has a 0 and a 1, with independent strengths from Uniform[0, 1].
    Pixels lie in [0, 1] and digits are added with factor 0.25.

    Parameters
    ----------
    folder : path, optional
        Data folder with ``mnist/mnist_0_1.npz`` (or Keras's ``mnist.npz``, which is fetched if
        missing) and ``natural_backgrounds/patches28.npz`` with arrays ``grass`` and ``cloud``
        (n, 28, 28), or folders ``natural_backgrounds/grass`` and ``cloud`` of images, cut to squares.
    design : {"discrete", "continuous"}
    fraction : float
        Of all counts above, for a smaller draw.
    random_state : int, Generator or None
        Chooses images and pairs them.

    Returns
    -------
    Bunch
        ``foreground``, ``background`` of shape (n, 784); ``labels``: 0 for a zero, 1 for a one, 2
        for both, 3 for none (discrete; all 2 in the continuous design); ``strengths`` (n, 2);
        ``patterns`` (2, 784), the mean 0 and the mean 1; ``image_shape``.
    """
    check_choice("design", design, ("discrete", "continuous"))
    if not 0 < fraction <= 1:
        raise ParameterError(
            "out-of-range",
            f"`fraction={fraction}` is out of range",
            remedy="It must be above 0 and at most 1.",
            parameter="fraction",
        )
    rng = np.random.default_rng(random_state)
    grass, cloud = _backgrounds(folder)  # first: these cannot be fetched
    zeros, ones = _digits(folder)
    n_grass, n_cloud, n_back, n_each = (
        max(round(count * fraction), 1) for count in (N_GRASS, N_CLOUD, N_BACKGROUND, N_DIGITS)
    )
    n = n_grass + n_cloud
    _check_enough("grass", grass, n_grass + n_back, fraction)
    _check_enough("cloud", cloud, n_cloud + n_back, fraction)
    _check_enough("digit 0", zeros, 2 * n_each, fraction)
    _check_enough("digit 1", ones, 2 * n_each, fraction)
    grass, cloud = (images[rng.permutation(len(images))] for images in (grass, cloud))
    scene = np.concatenate([grass[:n_grass], cloud[:n_cloud]])
    background = np.concatenate(
        [grass[n_grass : n_grass + n_back], cloud[n_cloud : n_cloud + n_back]]
    )
    scene = scene[rng.permutation(n)]
    if design == "discrete":
        labels = np.repeat([0, 1, 2, 3], [n_each, n_each, n_each, n - 3 * n_each])
        strengths = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=float)[labels]
    else:
        labels = np.full(n, 2)
        strengths = rng.uniform(size=(n, 2))
    # without replacement while images last: MNIST has fewer zeros than the continuous design rows
    chosen = [images[_spread(len(images), n, rng)] for images in (zeros, ones)]
    drawn = sum(strengths[:, [k]] * chosen[k] for k in range(2))
    shown = strengths > 0
    return Bunch(
        foreground=scene + STRENGTH * drawn,
        background=background,
        labels=labels,
        strengths=strengths,
        patterns=np.array([chosen[k][shown[:, k]].mean(axis=0) for k in range(2)]),
        image_shape=(28, 28),
        label_names=["0", "1", "both", "none"],
    )


def _check_enough(name: str, images: np.ndarray, needed: int, fraction: float) -> None:
    if len(images) < needed:
        raise FileError(
            "too-few-images",
            f"there are {len(images)} images of {name}",
            f"the design takes {needed}",
            f"Supply more, or lower `fraction` to at most {fraction * len(images) / needed:.3g}.",
            "fraction",
        )


def _spread(available: int, wanted: int, rng: np.random.Generator) -> np.ndarray:
    rounds = -(-wanted // available)
    return np.concatenate([rng.permutation(available) for _ in range(rounds)])[:wanted]


def _digits(folder: str | Path | None) -> tuple[np.ndarray, np.ndarray]:
    try:
        path = find_file(
            *(folder, "mnist/mnist_0_1.npz", "mnist/mnist.npz"),
            what="MNIST",
            source="the Keras project, mnist.npz",
        )
    except FileMissingError:
        path = fetch("mnist.npz")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            images, labels = stored["x_train"], stored["y_train"]
        zeros, ones = (images[labels == k].reshape(-1, 784) / 255.0 for k in (0, 1))
    except UNREADABLE as error:
        raise FileError(
            "content",
            f"{path} is not MNIST: {error}",
            remedy="It needs arrays x_train (n, 28, 28) and y_train.",
        ) from error
    return zeros, ones


def _backgrounds(folder: str | Path | None) -> tuple[np.ndarray, np.ndarray]:
    path = find_file(
        *(folder, "natural_backgrounds/patches28.npz", "natural_backgrounds/grass"),
        what="the images of grass and clouds",
        source="ImageNet, or any photographs of grass and clouds",
    )
    if path.is_dir():
        return _images_in(path), _images_in(path.with_name("cloud"))
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            grass, cloud = (stored[name].reshape(-1, 784) / 255.0 for name in ("grass", "cloud"))
    except UNREADABLE as error:
        raise FileError(
            "content",
            f"{path} has no images as needed: {error}",
            remedy="It needs arrays grass and cloud, (n, 28, 28), values 0 to 255.",
        ) from error
    return grass, cloud


def _images_in(folder: Path) -> np.ndarray:
    """All images of a folder in grey, the largest square in the middle at 28 by 28 pixels."""
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "images need Pillow",
            remedy="Install it: pip install 'contrica[cli]'.",
        ) from error
    if not folder.is_dir():
        raise FileMissingError(
            "data-missing",
            f"the folder of images {unmarked(folder)} is missing",
            remedy="Put photographs there.",
            filename=folder,
        )
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
    if not files:
        raise FileMissingError(
            "data-missing",
            f"{unmarked(folder)} has no png or jpg images",
            remedy="Put photographs there.",
            filename=folder,
        )
    found = []
    for file in files:
        try:
            with Image.open(file) as image:
                small = ImageOps.fit(ImageOps.grayscale(image), (28, 28))
        except OSError as error:
            raise FileError(
                "unreadable",
                f"{file} could not be read as an image: {error}",
                remedy="Remove it, or save it anew.",
            ) from error
        found.append(np.asarray(small, dtype=float).ravel() / 255.0)
    return np.array(found)
