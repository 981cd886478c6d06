import numpy as np
from numpy.testing import assert_allclose

from contrica import plots
from contrica.datasets import make_synthetic
from contrica.errors import PackageMissingError
from contrica.estimators import report_ranks
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.ranks import Ranks, Scree
from tests.said import raises


def heights(ax):
    """Where the first band of some axes begins and ends; it was a polygon before matplotlib 3.9."""
    band = ax.patches[0]
    ends = band.get_bbox().intervaly if hasattr(band, "get_bbox") else band.get_xy()[:, 1]
    return min(ends), max(ends)


def test_scree_draws_magnitudes_and_marks_ranks():
    ax = plots.scree(Scree(np.array([3.0, -2.0, 1.0]), np.array([5.0, 0.5, -0.1])), Ranks(1, 1))
    fore, back, r, total = ax.lines
    assert_allclose(fore.get_ydata(), [3, 2, 1])
    assert_allclose(back.get_ydata(), [5, 0.5, 0.1])
    assert_allclose(r.get_xdata(), 1)
    assert_allclose(total.get_xdata(), 2)
    assert [text.get_text() for text in ax.get_legend().texts] == [
        "foreground",
        "background",
        "r = 1",
        "r + l = 2",
    ]


def contrast_scree(ratios, chosen, null_mean=1.2, null_deviation=0.1):
    return ContrastScree(
        chosen=chosen,
        n_clear=chosen,
        n_possible=chosen,
        ratios=np.array(ratios),
        null_mean=null_mean,
        null_deviation=null_deviation,
        null_quantile=null_mean + 2 * null_deviation,
    )


def test_scree_of_a_contrast_subspace_draws_ratios_null_and_count():
    ax = plots.scree(contrast_scree([4.0, 2.0, 1.5, 0.9], 2))
    ratios, mean, count = ax.lines
    assert_allclose(ratios.get_xdata(), [1, 2, 3, 4])
    assert_allclose(ratios.get_ydata(), [4, 2, 1.5, 0.9])
    assert_allclose(mean.get_ydata(), 1.2)
    assert_allclose(count.get_xdata(), 2.5)
    assert_allclose(heights(ax), [1.2, 1.4])
    assert (ax.get_yscale(), ax.get_ylabel()) == ("log", "foreground over background variance")
    assert [text.get_text() for text in ax.get_legend().texts] == [
        "contrast ratio",
        "permutation null, up to 95 %",
        "permutation null, mean",
        "l = 2",
    ]


def test_scree_of_a_contrast_subspace_without_a_null():
    ax = plots.scree(contrast_scree([4.0, 0.0], 1, np.nan, np.nan))
    ratios, count = ax.lines
    assert_allclose(ratios.get_ydata(), [4, 0])
    assert_allclose(count.get_xdata(), 1.5)
    assert not ax.patches
    assert ax.get_yscale() == "linear"  # a logarithm would hide the zero


def test_scree_of_one_dataset():
    ax = plots.scree(Scree(np.array([3.0, 2.0]), None), Ranks(0, 1))
    assert len(ax.lines) == 2


def test_a_report_of_ranks_draws_both_screes_and_says_which_rule_counts():
    data = make_synthetic(4, n_samples=5000, random_state=0)
    report = report_ranks(data.foreground, data.background, rng=np.random.default_rng(0))
    figure = plots.rank_report(report)
    left, right = figure.axes
    assert_allclose(left.lines[0].get_ydata(), np.abs(report.scree.foreground))
    assert_allclose(right.lines[0].get_ydata(), report.contrast.ratios)
    low, high = heights(right)
    assert_allclose((low, high), (report.contrast.null_mean, report.contrast.null_quantile))
    assert f"l = {report.contrast.chosen}" in [text.get_text() for text in right.get_legend().texts]
    assert report.solver == "joint"
    counted = "r = {} and l = {} by significance".format(*report.ranks)
    assert figure.get_suptitle() == f'a default fit uses solver "joint": {counted}'
    other = report._replace(solver="subspace", ranks=Ranks(0, 2))
    title = 'a default fit uses solver "subspace": l = 2 by contrast ratio'
    assert plots.rank_report(other).get_suptitle() == title


def test_scatter_groups_points_by_label(rng):
    scores = rng.standard_normal((30, 3))
    labels = np.arange(30) % 3
    ax = plots.scatter(scores, labels, background=scores[:5] + 1, label_names=["a", "b", "c"])
    grey, *groups = ax.collections
    assert_allclose(grey.get_offsets(), scores[:5, :2] + 1)
    for i, group in enumerate(groups):
        assert_allclose(group.get_offsets(), scores[labels == i, :2])
    assert [text.get_text() for text in ax.get_legend().texts] == ["background", "a", "b", "c"]


def test_scatter_of_one_pattern_is_a_histogram(rng):
    ax = plots.scatter(rng.standard_normal((40, 1)), background=rng.standard_normal((9, 1)))
    areas = [patch.get_height() * patch.get_width() for patch in ax.patches]
    assert_allclose([sum(areas[:50]), sum(areas[50:])], 1)  # of both datasets, on one axis
    assert [text.get_text() for text in ax.get_legend().texts] == ["background", "foreground"]


def test_scores_of_one_two_and_more_patterns(rng):
    values = rng.standard_normal((40, 6))
    one, two, more = (plots.scores(values[:, :k], background=values[:9, :k]) for k in (1, 2, 6))
    assert [len(figure.axes) for figure in (one, two, more)] == [1, 1, 25]
    assert one.axes[0].patches
    assert_allclose(two.axes[0].collections[1].get_offsets(), values[:, :2])
    below = more.axes[2 * 5 + 1]  # third row, second column
    assert_allclose(below.collections[1].get_offsets(), values[:, [1, 2]])
    assert (below.get_xlabel(), more.axes[0].get_xlabel()) == ("pattern 2", "pattern 1")


def test_loadings_show_the_largest_by_name():
    ax = plots.loadings(np.array([0.1, -0.9, 0.5]), ["a", "b", "c"], n_top=2)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c", "b"]
    assert_allclose([bar.get_width() for bar in ax.patches], [0.5, -0.9])


def test_images_show_each_pattern():
    figure = plots.images(np.arange(12.0).reshape(2, 6), (2, 3), ["one", "two"])
    assert len(figure.axes) == 2
    assert_allclose(figure.axes[1].images[0].get_array(), [[6, 7, 8], [9, 10, 11]])
    assert figure.axes[0].get_title() == "one"


def test_given_axes_are_used():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert plots.loadings(np.ones(3), ax=ax) is ax


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def blocked(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked)
    with raises(PackageMissingError, "package-missing") as said:
        plots.loadings(np.ones(3))
    assert "pip install 'contrica[plots]'" in str(said.value)
