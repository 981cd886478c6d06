"""The paper's synthetic designs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.utils import Bunch

from contrica.validation import check_choice, check_count

__all__ = ["make_four_clusters", "make_synthetic"]


SOURCES = ("exponential", "laplace", "uniform", "student_t", "mixed", "gaussian")


def _unit_columns(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.norm(matrix, axis=0)


def make_synthetic(
    n_features: int = 8,
    *,
    n_samples: int = 100_000,
    n_background: int | None = None,
    orthonormal: bool = True,
    proportional: bool = False,
    sources: str = "exponential",
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """The paper's design for the recovery of B (Appendix `app: synthetic`).

    ``A`` has random unit columns, ``B`` has ``p − 1`` columns, orthonormal by default. All sources
    are exponential: of scale 2 and 1.5 in turn for s; 2 and 1 in turn for z, 1 and 2 in turn for z′
    (the strengths swap between background and foreground). With ``proportional`` all z and z′ have
    scale 1. Other distributions of the sources have variance 1 before they are scaled, as the
    exponential has.

    Parameters
    ----------
    n_features : int
        p.
    n_samples : int
        Rows of the foreground and of the background each.
    n_background : int, optional
        r, default p.
    orthonormal : bool
        Whether the columns of B are orthonormal, or random unit vectors.
    proportional : bool
        z′ distributed as z, so that γ = 1.
    sources : {"exponential", "laplace", "uniform", "student_t", "mixed", "gaussian"}
        Their distribution. "student_t" has 5 degrees of freedom: its eighth moment, and so the variance
        of a fourth cumulant, is infinite. "mixed" alternates exponential and uniform sources, of
        kurtosis 6 and -1.2. With "gaussian" only the salient sources are Gaussian and everything
        else is exponential: they vary, but κ₄ does not see them.
    random_state : int, Generator or None

    Returns
    -------
    Bunch
        ``foreground``, ``background`` of shape ``(n_samples, p)``; ``A`` of shape ``(p, r)``; ``B`` of
        shape ``(p, p − 1)``; ``salient_sources`` of shape ``(n_samples, p − 1)``.

    Examples
    --------
    >>> make_synthetic(4, n_samples=10, random_state=0).B.shape
    (4, 3)
    """
    check_choice("sources", sources, SOURCES)
    rng = np.random.default_rng(random_state)
    p = check_count("n_features", n_features, minimum=2)
    n = check_count("n_samples", n_samples)
    r = p if n_background is None else check_count("n_background", n_background)
    A = _unit_columns(rng.standard_normal((p, r)))
    B = rng.standard_normal((p, p - 1))
    B = np.linalg.qr(B)[0] if orthonormal else _unit_columns(B)
    # "odd" in the paper counts from one
    odd = np.arange(max(r, p)) % 2 == 0
    z_scale = np.ones(r) if proportional else np.where(odd[:r], 2.0, 1.0)
    shared_scale = np.ones(r) if proportional else np.where(odd[:r], 1.0, 2.0)
    salient = _draw(rng, sources, (n, p - 1)) * np.where(odd[: p - 1], 2.0, 1.5)
    shared = "exponential" if sources == "gaussian" else sources
    foreground = (_draw(rng, shared, (n, r)) * shared_scale) @ A.T + salient @ B.T
    background = (_draw(rng, shared, (n, r)) * z_scale) @ A.T
    return Bunch(foreground=foreground, background=background, A=A, B=B, salient_sources=salient)


def _draw(rng: np.random.Generator, sources: str, shape: tuple[int, int]) -> np.ndarray:
    """Independent sources of variance one."""
    if sources == "mixed":
        first, second = _draw(rng, "exponential", shape), _draw(rng, "uniform", shape)
        # in pairs, since the scales alternate one by one
        return np.where(np.arange(shape[1]) // 2 % 2 == 0, first, second)
    draws: dict[str, Callable[[], np.ndarray]] = {
        "exponential": lambda: rng.exponential(size=shape),
        "laplace": lambda: rng.laplace(scale=0.5**0.5, size=shape),
        "uniform": lambda: rng.uniform(-(3**0.5), 3**0.5, size=shape),
        "student_t": lambda: rng.standard_t(5, size=shape) * 0.6**0.5,
        "gaussian": lambda: rng.standard_normal(shape),
    }
    return draws[sources]()


# Appendix `app: algorithm choice`
_FOUR_CLUSTERS_A = np.array(
    [
        [0.74280923, 0.91366784, 0.52707773],
        [-0.61857537, 0.32868577, 0.83815881],
        [0.23109269, -0.2120887, -0.08650875],
        [-0.0153426, 0.07115626, -0.07315634],
        [0.10936053, 0.08445063, 0.08272407],
    ]
)


def make_four_clusters(
    n_samples: int = 200,
    *,
    design: str = "figure",
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Two salient sources that make four clusters, over three shared ones (Section `sec:SPM HTD best`).

    Parameters
    ----------
    n_samples : int
        Rows of the foreground and of the background each.
    design : {"figure", "text"}
        "figure": each salient source is 1.2 times Beta(2, 5) or Uniform(4, 5), with equal odds, and
        the shared uniform sources are scaled by 5, 6, 7 in the foreground and 9, 8, 7 in the
        background; this makes the four clusters that the paper shows. "text": Beta(2, 5) or
        Beta(5, 4), unscaled, as the paper's text says; there the clusters overlap.
    random_state : int, Generator or None

    Returns
    -------
    Bunch
        ``foreground``, ``background`` of shape ``(n_samples, 5)``; ``labels``, 0 to 3, from which
        salient sources are above their mean; ``A`` of shape ``(5, 3)``; ``B`` of shape ``(5, 2)``.

    Examples
    --------
    >>> sorted(set(make_four_clusters(100, random_state=0).labels.tolist()))
    [0, 1, 2, 3]
    """
    check_choice("design", design, ("figure", "text"))
    rng = np.random.default_rng(random_state)
    n = check_count("n_samples", n_samples)
    low = rng.beta(2, 5, size=(n, 2))
    if design == "figure":
        factor, high = 1.2, rng.uniform(4, 5, size=(n, 2))
        fore_scale, back_scale = np.array([5.0, 6.0, 7.0]), np.array([9.0, 8.0, 7.0])
    else:
        factor, high = 1.0, rng.beta(5, 4, size=(n, 2))
        fore_scale = back_scale = np.ones(3)
    sources = factor * np.where(rng.random((n, 2)) < 0.5, low, high)
    A, B = _FOUR_CLUSTERS_A, np.eye(5)[:, 3:]
    foreground = (rng.random((n, 3)) * fore_scale) @ A.T + sources @ B.T
    background = (rng.random((n, 3)) * back_scale) @ A.T
    above = sources > sources.mean(axis=0)
    return Bunch(
        foreground=foreground,
        background=background,
        labels=2 * above[:, 0] + above[:, 1],
        A=A,
        B=B,
        salient_sources=sources,
    )
