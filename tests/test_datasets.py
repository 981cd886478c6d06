import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kurtosis
from sklearn.metrics import silhouette_score

from contrica.datasets import load_digits_on_photos, make_four_clusters, make_synthetic
from contrica.errors import PackageMissingError, ParameterError
from tests.said import raises


def test_digits_on_photos_are_real_images_with_known_labels():
    data = load_digits_on_photos(1000)
    assert data.foreground.shape == data.background.shape == (1000, 64)
    assert_allclose(np.bincount(data.labels), 250)
    # what a digit adds to the mean image is that digit, up to the patches' own spread
    for bit, pattern in ((1, data.patterns[0]), (2, data.patterns[1])):
        with_, without = (
            data.foreground[(data.labels & bit > 0) == on].mean(axis=0) for on in (1, 0)
        )
        assert np.corrcoef(with_ - without, pattern)[0, 1] > 0.98
    for rows in (data.foreground, data.background, data.patterns):
        assert_allclose(rows.mean(axis=1), 0, atol=1e-12)


def test_no_patch_is_in_both_parts_and_the_draw_is_repeatable():
    data, again = load_digits_on_photos(500), load_digits_on_photos(500)
    assert np.array_equal(data.foreground, again.foreground)
    assert not np.array_equal(
        data.foreground, load_digits_on_photos(500, random_state=1).foreground
    )
    plain = data.foreground[data.labels == 0]
    distances = np.abs(plain[:, None, :8] - data.background[None, :, :8]).max(axis=2)
    assert distances.min() > 0


def test_continuous_digits_have_strengths_of_their_own():
    data = load_digits_on_photos(2000, design="continuous", digits=(2, 7))
    assert set(data.labels) == {3}
    assert data.label_names == ["none", "2", "7", "both"]
    assert_allclose(data.strengths.mean(axis=0), 0.5, atol=0.03)
    # what strength adds to the mean image is the digit
    slopes = np.linalg.lstsq(
        np.column_stack([np.ones(2000), data.strengths]), data.foreground, rcond=None
    )[0][1:]
    for slope, pattern in zip(slopes, data.patterns, strict=True):
        assert np.corrcoef(slope, pattern)[0, 1] > 0.95
    shown = load_digits_on_photos(200)
    assert_allclose(shown.strengths @ [1, 2], shown.labels)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"digits": (1, 1)}, "out-of-range"),
        ({"digits": (1, 10)}, "out-of-range"),
        ({"digits": (0, 1, 1)}, "out-of-range"),
        ({"digits": (1.0, 2.0)}, "out-of-range"),
        ({"design": "both"}, "unknown-choice"),
    ],
)
def test_impossible_digits_are_refused(options, code):
    with raises(ParameterError, code, *options):
        load_digits_on_photos(100, **options)


def test_more_patches_than_there_are_cannot_be_had():
    with raises(ParameterError, "too-large", "n_samples") as said:
        load_digits_on_photos(5000)
    assert "Ask for at most 4240" in str(said.value)


def test_missing_pillow_says_what_to_install(monkeypatch):
    import contrica.datasets._digits_on_photos as module

    def without_pillow():
        raise ImportError("no PIL")

    monkeypatch.setattr(module, "load_sample_images", without_pillow)
    with raises(PackageMissingError, "package-missing") as said:
        load_digits_on_photos(100)
    assert "pip install 'contrica[cli]'" in str(said.value)


@pytest.mark.parametrize("orthonormal", [True, False])
def test_the_papers_synthetic_design(orthonormal):
    data = make_synthetic(5, n_samples=200_000, orthonormal=orthonormal, random_state=0)
    assert data.A.shape == (5, 5)
    assert data.B.shape == (5, 4)
    assert_allclose(np.linalg.norm(np.c_[data.A, data.B], axis=0), 1)
    assert np.allclose(data.B.T @ data.B, np.eye(4)) == orthonormal
    # exponential sources of scale θ have variance θ²
    salient, shared, own = (
        np.array([2, 1.5, 2, 1.5]) ** 2,
        np.array([1, 4, 1, 4, 1]),
        np.array([4, 1, 4, 1, 4]),
    )
    fore = (data.A * shared) @ data.A.T + (data.B * salient) @ data.B.T
    assert_allclose(np.cov(data.foreground.T), fore, atol=0.15)
    assert_allclose(np.cov(data.background.T), (data.A * own) @ data.A.T, atol=0.15)


def test_the_proportional_design_shares_one_scale():
    data = make_synthetic(3, n_samples=200_000, n_background=4, proportional=True, random_state=0)
    assert_allclose(np.cov(data.background.T), data.A @ data.A.T, atol=0.05)


def test_four_clusters_score_as_in_the_figure_and_overlap_as_in_the_text():
    figure, text = [], []
    for seed in range(5):
        for scores, design in ((figure, "figure"), (text, "text")):
            data = make_four_clusters(400, design=design, random_state=seed)
            scores.append(silhouette_score(data.foreground @ data.B, data.labels))
    assert_allclose(np.mean(figure), 0.865, atol=0.02)
    assert np.mean(text) < 0.4
    with raises(ParameterError, "unknown-choice", "design"):
        make_four_clusters(design="other")


# Kurtosis, and what it may be off by at 200 000 draws: three to four standard errors.
KURTOSIS = {
    "exponential": (6.0, 0.6),
    "laplace": (3.0, 0.25),
    "uniform": (-1.2, 0.01),
    "gaussian": (0.0, 0.04),
}


@pytest.mark.parametrize("sources", [*KURTOSIS, "student_t", "mixed"])
def test_sources_have_their_scale_and_kurtosis(sources):
    data = make_synthetic(6, n_samples=200_000, sources=sources, random_state=0)
    S = data.salient_sources
    # Student's t with 5 degrees of freedom has a fourth moment and no more
    assert_allclose(S.std(axis=0), [2, 1.5, 2, 1.5, 2], rtol=0.02)
    names = [sources] * 5
    if sources == "mixed":
        names = ["exponential", "exponential", "uniform", "uniform", "exponential"]
    for column, name in zip(S.T, names, strict=True):
        if name == "student_t":
            assert kurtosis(column) > 2
        else:
            assert_allclose(kurtosis(column), KURTOSIS[name][0], atol=KURTOSIS[name][1])


def test_gaussian_salient_sources_lie_over_shared_ones_that_are_not():
    data = make_synthetic(4, n_samples=100_000, sources="gaussian", random_state=0)
    shared = (data.foreground - data.salient_sources @ data.B.T) @ np.linalg.inv(data.A).T
    assert_allclose(shared.std(axis=0), [1, 2, 1, 2], rtol=0.03)
    assert kurtosis(shared).min() > 5
    assert kurtosis(data.background @ np.linalg.inv(data.A).T).min() > 5


def test_the_default_draw_is_that_of_exponential_sources_and_others_are_refused():
    one, two = (
        make_synthetic(4, n_samples=50, random_state=0, **option)
        for option in ({}, {"sources": "exponential"})
    )
    assert np.array_equal(one.foreground, two.foreground)
    with raises(ParameterError, "unknown-choice", "sources") as said:
        make_synthetic(4, sources="cauchy")
    assert "'laplace'" in str(said.value)
