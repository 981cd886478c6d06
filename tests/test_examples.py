"""The figures of the ideas show what is true: the paper's numbers, the data's own patterns."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.testing import assert_allclose

from contrica.datasets import make_synthetic
from contrica.errors import collected
from contrica.metrics import match_patterns
from contrica.moments.eigen import eigenvalues
from contrica.moments.fourth import cumulants
from contrica.solvers.ranks import choose_ranks

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent.parent / "examples" / "paper_ideas.py"


@pytest.fixture(scope="module")
def ideas():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def ranks(ideas):
    return ideas["rank_examples"]()


def texts(figure):
    """Every piece of text a figure shows."""
    return " ".join(
        text.get_text()
        for ax in figure.axes
        for text in [
            *ax.texts,
            ax.title,
            ax.xaxis.label,
            *(ax.get_legend().texts if ax.get_legend() else []),
        ]
    )


def test_the_command_writes_three_figures(ideas, tmp_path):
    ideas["main"](tmp_path / "new")
    for name in ("htd_steps", "cica_steps", "scree_ranks"):
        path = tmp_path / "new" / f"{name}.png"
        assert path.stat().st_size < 300_000
        assert np.ptp(imread(path)[..., :3]) == 1  # not blank


def test_htd_steps_are_the_papers_numbers(ideas):
    """Example 3.1; the paper cuts its digits off where we round, hence one unit of the last."""
    steps = ideas["htd_example"]()
    assert_allclose(
        steps.flattening,
        [
            [2.0001, 0.0010, 0.0010, 0.0099],
            [0.0010, 0.0099, 0.0099, 0.0983],
            [0.0010, 0.0099, 0.0099, 0.0983],
            [0.0099, 0.0983, 0.0983, 0.9801],
        ],
        atol=1e-4,
    )
    assert_allclose(steps.values, [2.00019, 0.99977], atol=1e-5)
    assert_allclose(
        steps.matrices.reshape(2, 4),
        [[0.99995, 0.00098, 0.00098, 0.00985], [-0.00995, 0.0993, 0.0993, 0.99003]],
        atol=1.1e-5,
    )
    assert_allclose(steps.fits, [0.99995, 0.9998], atol=1e-5)
    assert_allclose(steps.vectors.T, [[0.99999, 0.00099], [0.09787, 0.99519]], atol=1e-5)
    # the printed weights are products of printed factors, each already cut off
    assert_allclose(steps.result.weights, [1.99999, 0.99937], atol=1.5e-5)


def test_htd_steps_lead_to_what_htd_returns_and_are_written_in_the_figure(ideas):
    steps = ideas["htd_example"]()
    assert_allclose(steps.values * steps.fits**2, steps.result.weights, rtol=1e-12)
    assert_allclose(steps.vectors, steps.result.vectors, atol=1e-12)
    shown = texts(ideas["draw_htd"](steps))
    numbers = [*steps.values, *steps.fits, *steps.vectors.ravel(), *steps.result.weights]
    for number in [*numbers, *np.abs(steps.matrices.ravel())]:
        assert f"{number:.5f}" in shown


def test_cica_steps_find_the_patterns_and_empty_the_cumulant(ideas):
    steps = ideas["cica_example"]()
    background, foreground = steps.found.background, steps.found.foreground
    assert_allclose(match_patterns(background.vectors, steps.A).cosines, 1, atol=1e-4)
    assert_allclose(match_patterns(foreground.vectors, steps.b).cosines, 1, atol=1e-3)
    # weights: 12 times the fourth power of a Laplace scale; −2 times that of ±1.5
    order = match_patterns(background.vectors, steps.A).order
    assert_allclose(background.weights[order], [12, 12 * 0.8**4], rtol=0.15)
    assert_allclose(steps.found.shared_weights[order], [12 * 0.8**4, 12], rtol=0.15)
    assert_allclose(foreground.weights, [-2 * 1.5**4], rtol=0.05)
    # ranks r, r + ℓ and ℓ, up to sampling noise
    for tensor, rank in ((steps.back.fourth, 2), (steps.fore.fourth, 3), (steps.rest, 1)):
        sizes = np.abs(eigenvalues(tensor))
        assert sizes[rank] < 0.1 * sizes[rank - 1]


def test_cica_figure_tells_how_far_off_and_how_strong(ideas):
    steps = ideas["cica_example"]()
    shown = texts(ideas["draw_cica"](steps))
    order = match_patterns(steps.found.background.vectors, steps.A).order
    before, after = steps.found.background.weights[order], steps.found.shared_weights[order]
    for i in range(2):
        assert f"{before[i]:.1f} → {after[i]:.1f}" in shown
    cosine = match_patterns(steps.found.foreground.vectors, steps.b).cosines[0]
    assert f"truth by {np.degrees(np.arccos(cosine)):.1f}°" in shown


def test_cica_example_is_no_lucky_draw(ideas):
    worst = []
    for seed in range(10):
        steps = ideas["cica_example"](random_state=seed)
        worst.append(match_patterns(steps.found.foreground.vectors, steps.b).cosines.min())
    assert np.median(worst) > 0.999
    assert min(worst) > 0.99


def test_known_ranks_are_the_ones_marked(ideas, ranks):
    synthetic, demo = ranks
    assert synthetic.ranks == (4, 7)
    assert "true r = 4, true r + l = 11" in synthetic.title
    figure = ideas["draw_ranks"](ranks)
    for ax, example in zip(figure.axes, ranks, strict=True):
        total = sum(example.ranks)
        shown = [text.get_text() for text in ax.get_legend().texts]
        assert shown[2:] == [f"r = {example.ranks.n_background}", f"r + l = {total}"]
        assert_allclose(ax.lines[0].get_ydata(), np.abs(example.values.foreground))
    assert demo.values.foreground.size == 30 * 31 // 2


@pytest.mark.parametrize(("r", "right", "worst"), [(4, 6, 1), (8, 3, 4)])
def test_the_page_says_how_often_ranks_are_right(r, right, worst):
    """The counts in docs/ideas.md, over the draws it names."""
    draws = [make_synthetic(8, n_background=r, random_state=seed) for seed in range(10)]
    chosen = [choose_ranks(cumulants(d.foreground), cumulants(d.background)) for d in draws]
    off = np.abs(np.array(chosen) - [r, 7]).max(axis=1)
    assert np.sum(off == 0) == right
    assert off.max() == worst


def test_the_figure_of_plots_has_six_of_them(monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: drawn.append((figure, path)))
    with collected():
        runpy.run_path(str(SCRIPT.parent / "plots.py"))
    ((figure, path),) = drawn
    assert path.name == "plots.png"
    assert path.exists()
    assert len(figure.axes) == 4 + 2 + 2 + 2 + 1  # images, bars, scores, evidence, a colour bar
    assert "k(f): mean square in the foreground" in texts(figure)
