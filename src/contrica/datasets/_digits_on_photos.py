"""Embedded demo: handwritten digits on patches of photographs, all shipped with scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, load_sample_images
from sklearn.utils import Bunch

from contrica.errors import PackageMissingError, ParameterError
from contrica.validation import check_choice, check_count, check_scale

__all__ = ["load_digits_on_photos"]

SIDE = 8


def load_digits_on_photos(
    n_samples: int = 4000,
    *,
    design: str = "discrete",
    digits: tuple[int, int] = (0, 1),
    strength: float = 0.25,
    random_state: int | None = 0,
) -> Bunch:
    """Handwritten 0s and 1s on photograph patches, against other patches without digits.

    A small sibling of the paper's corrupted-MNIST design (Section `app: mixed mnist`) that needs no
    download: scikit-learn's 8 × 8 digits on 8 × 8 grey patches of its two sample photographs. In the
    "discrete" design a quarter each of the foreground shows nothing, a 0, a 1 or both; in the
    "continuous" one every image shows both, each with a strength of its own, uniform from none to
    full. The two digits are the salient patterns. No patch is used twice. Every image has its mean
    grey removed, as brightness would otherwise be nearly all of the variance.

    Parameters
    ----------
    n_samples : int
        Rows of the foreground and of the background each, at most 4240.
    design : {"discrete", "continuous"}
    digits : tuple of two int
        Which two of the ten digits are shown.
    strength : float
        Grey value of full ink, where the photographs span 0 to 1.
    random_state : int or None
        Chooses patches and digits.

    Returns
    -------
    Bunch
        ``foreground``, ``background`` of shape ``(n_samples, 64)``; ``labels`` of shape
        ``(n_samples,)``, one of 0 (no digit), 1 (a 0), 2 (a 1), 3 (both; all are in the continuous
        design), with ``label_names``; ``strengths`` of shape ``(n_samples, 2)``; ``patterns`` of shape
        ``(2, 64)``, the mean 0 and the mean 1; ``image_shape``.

    Examples
    --------
    >>> data = load_digits_on_photos(400)
    >>> data.foreground.shape, data.background.shape
    ((400, 64), (400, 64))
    """
    n = check_count("n_samples", n_samples, minimum=8)
    check_choice("design", design, ("discrete", "continuous"))
    if (
        len(digits) != 2
        or digits[0] == digits[1]
        or not all(isinstance(digit, int | np.integer) and 0 <= digit <= 9 for digit in digits)
    ):
        raise ParameterError(
            "out-of-range",
            f"`digits` is {digits!r}",
            "must be two different ones of 0 to 9",
            parameter="digits",
        )
    strength = check_scale("strength", strength)
    rng = np.random.default_rng(random_state)
    patches = np.concatenate([_patches(photo) for photo in _photos()])
    if 2 * n > len(patches):
        raise ParameterError(
            "too-large",
            f"`n_samples={n}` needs {2 * n} patches",
            f"the two photographs have {len(patches)}",
            f"Ask for at most {len(patches) // 2}.",
            "n_samples",
        )
    patches = patches[rng.permutation(len(patches))[: 2 * n]]
    ink = load_digits()
    first, second = (ink.data[ink.target == digit] / 16.0 for digit in digits)
    if design == "discrete":
        labels = rng.permutation(np.arange(n) % 4)
        strengths = np.column_stack([labels & 1 > 0, labels & 2 > 0]).astype(float)
    else:
        labels = np.full(n, 3)
        strengths = rng.random((n, 2))
    shown = sum(
        strengths[:, [j]] * images[rng.integers(len(images), size=n)]
        for j, images in enumerate((first, second))
    )
    return Bunch(
        foreground=_without_mean(patches[:n] + strength * shown),
        background=_without_mean(patches[n:]),
        labels=labels,
        label_names=["none", *map(str, digits), "both"],
        strengths=strengths,
        patterns=_without_mean(np.array([first.mean(axis=0), second.mean(axis=0)])),
        image_shape=(SIDE, SIDE),
    )


def _without_mean(images: np.ndarray) -> np.ndarray:
    return images - images.mean(axis=1, keepdims=True)


def _photos() -> list[np.ndarray]:
    try:
        photos = load_sample_images().images
    except ImportError as error:
        raise PackageMissingError(
            "package-missing",
            "the demo photographs are JPEG files, which need Pillow",
            remedy="Install it: pip install 'contrica[cli]'.",
        ) from error
    return [photo.mean(axis=2) / 255.0 for photo in photos]


def _patches(photo: np.ndarray) -> np.ndarray:
    """All non-overlapping patches of one grey photograph, as rows."""
    height, width = (size // SIDE for size in photo.shape)
    tiles = photo[: height * SIDE, : width * SIDE].reshape(height, SIDE, width, SIDE)
    return tiles.transpose(0, 2, 1, 3).reshape(-1, SIDE * SIDE)
