"""Pictures that need neither matplotlib nor a script: PNG files of a few kB, and histograms as SVG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np

from contrica.report._html import Html, element

__all__ = ["histogram_svg", "pattern_png", "scatter_png"]

# Blue and vermilion of Okabe and Ito, which colour-blind readers tell apart; grey is the background's.
BLUE, VERMILION, GREY, WHITE = (0, 114, 178), (213, 94, 0), (170, 170, 170), (255, 255, 255)
# Of groups, as --c0 to --c6 of the style sheet; the last one is of all others.
PALETTE = np.array(
    [VERMILION, BLUE, (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233), (60, 60, 64)]
)


def _png(pixels: np.ndarray) -> bytes:
    """Pixels of shape (height, width, 3) as a file."""
    height, width = pixels.shape[:2]
    lines = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each begins with its filter: none
    lines[:, 1:] = np.asarray(pixels, dtype=np.uint8).reshape(height, -1)
    parts = (
        (b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def pattern_png(pattern: np.ndarray, shape: Sequence[int]) -> bytes:
    """A pattern of image data: one pixel for each variable, blue below zero and vermilion above.

    Parameters
    ----------
    pattern : ndarray of shape (height · width,)
    shape : (height, width)

    Returns
    -------
    bytes
        Of a PNG file.
    """
    unit = pattern.reshape(tuple(shape)) / max(np.abs(pattern).max(), np.finfo(float).tiny)
    ends = np.where(unit[..., None] < 0, BLUE, VERMILION)
    return _png(np.rint(WHITE + (ends - np.array(WHITE)) * np.abs(unit)[..., None]))


def scatter_png(
    fore: np.ndarray,
    back: np.ndarray,
    side: int = 360,
    dot: int = 3,
    codes: np.ndarray | None = None,
) -> bytes:
    """Points of both datasets, the background's beneath; without axes, scales or a legend.

    The picture holds all points but, at either end of both axes, the outermost 0.2 % of the foreground's.

    Parameters
    ----------
    fore, back : ndarray of shape (n_rows, 2)
        Scores.
    side : int
        Width and height, in pixels.
    dot : int
        Width of a point.
    codes : ndarray of int, shape (n_rows,), optional
        Numbers of the foreground's groups, which have a colour each; below 0 of rows in none.

    Returns
    -------
    bytes
        Of a PNG file.
    """
    low, high = np.quantile(fore, [0.002, 0.998], axis=0)
    middle, reach = (low + high) / 2, np.maximum((high - low) * 0.53, np.finfo(float).tiny)
    pixels = np.full((side, side, 3), 255, dtype=np.uint8)
    numbers = np.zeros(len(fore), dtype=int) if codes is None else codes
    known = PALETTE[np.minimum(numbers, len(PALETTE) - 1)]
    of_fore = np.where(numbers[:, None] < 0, GREY, known)
    for points, colours in ((back, np.tile(GREY, (len(back), 1))), (fore, of_fore)):
        unit = (points - middle) / reach
        inside = (np.abs(unit) <= 1).all(axis=1)
        columns, rows = np.rint((unit[inside] * (1, -1) + 1) / 2 * (side - dot)).astype(int).T
        for i, j in np.ndindex(dot, dot):
            pixels[rows + i, columns + j] = colours[inside]
    return _png(pixels)


def histogram_svg(fore: np.ndarray, back: np.ndarray, label: str, n_bins: int = 48) -> Html:
    """Densities of a score in both datasets, without the outermost rows.

    Parameters
    ----------
    fore, back : ndarray of shape (n_rows,)
    label : str
        What a reader hears who cannot see it.
    n_bins : int

    Returns
    -------
    Html
        An ``svg``; colours are those of the style sheet.
    """
    width, height = 240, 60
    ends = [np.quantile(fore, [0.002, 0.998])]
    ends += [np.quantile(back, [0.02, 0.98])] if back.size else []
    low, high = np.min(ends), np.max(ends)
    edges = np.linspace(low, high if high > low else low + 1, n_bins + 1)
    counts = [np.histogram(part, edges)[0] / max(part.size, 1) for part in (back, fore)]
    top = max(float(part.max()) for part in counts) or 1.0
    paths = [
        element("path", d=_steps(part / top, width, height), class_=name)
        for part, name in zip(counts, ("back", "fore"), strict=True)
    ]
    return element(
        "svg",
        *paths,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
        class_="histogram",
        preserveAspectRatio="none",
    )


def _steps(heights: np.ndarray, width: int, height: int) -> str:
    step = width / heights.size
    tops = "".join(
        f"L{i * step:g} {height * (1 - value):.1f}h{step:g}" for i, value in enumerate(heights)
    )
    return f"M0 {height}{tops}V{height}Z"
