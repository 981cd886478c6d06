import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, plots
from contrica.compare import compare_methods
from contrica.datasets import load_digits_on_photos, make_synthetic
from contrica.errors import InputError, PackageMissingError, ParameterError, collected
from contrica.estimators import report_ranks
from contrica.inference import stability
from contrica.solvers.permutation_null import ContrastScree
from contrica.solvers.ranks import Ranks, Scree
from tests.said import raises


def texts(legend):
    return [text.get_text() for text in legend.texts]


def points(ax, label):
    """Where the points of one group are, as they were given: by the colour and marker of the legend."""
    (sample,) = [part for part in ax.collections if part.get_label() == label]
    if len(sample.get_offsets()):
        return np.asarray(sample.get_offsets())
    same = [
        (np.asarray(part.get_offsets())[i])
        for part in ax.collections
        if part.get_paths()[0].vertices.shape == sample.get_paths()[0].vertices.shape
        for i, colour in enumerate(part.get_facecolor())
        if len(part.get_offsets()) > i and np.allclose(colour[:3], sample.get_facecolor()[0, :3])
    ]
    return np.array(sorted(map(tuple, same)))


def in_order(values):
    return np.array(sorted(map(tuple, values)))


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
    left, right = plots.rank_report(report)
    figure = left.figure
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
    assert plots.rank_report(other)[0].figure.get_suptitle() == title


def test_scatter_groups_points_by_label(rng):
    scores = rng.standard_normal((30, 3))
    labels = np.arange(30) % 3
    ax = plots.scatter(scores, labels, background=scores[:5] + 1, label_names=["a", "b", "c"])
    assert_allclose(points(ax, "background"), scores[:5, :2] + 1)
    for i, name in enumerate("abc"):
        assert_allclose(points(ax, name), in_order(scores[labels == i, :2]))
    drawn = ax.collections[1].get_facecolor()[:, 0]
    assert len(np.unique(np.sign(np.diff(drawn)))) == 3  # in no order: no group hides the others
    assert [text.get_text() for text in ax.get_legend().texts] == ["background", "a", "b", "c"]


def test_scatter_of_one_pattern_is_a_histogram(rng):
    ax = plots.scatter(rng.standard_normal((40, 1)), background=rng.standard_normal((9, 1)))
    areas = [patch.get_height() * patch.get_width() for patch in ax.patches]
    assert_allclose([sum(areas[:10]), sum(areas[10:])], 1)  # of both datasets, on one axis
    assert [text.get_text() for text in ax.get_legend().texts] == ["background", "foreground"]


def test_scores_of_one_two_and_more_patterns(rng):
    values = rng.standard_normal((40, 6))
    one, two, more = (plots.scores(values[:, :k], background=values[:9, :k]) for k in (1, 2, 6))
    assert [axes.shape for axes in (one, two, more)] == [(1, 1), (1, 1), (5, 5)]
    assert one[0, 0].patches
    assert_allclose(points(two[0, 0], "foreground"), in_order(values[:, :2]))
    below = more[2, 1]
    assert_allclose(points(below, "foreground"), in_order(values[:, [1, 2]]))
    assert (below.get_xlabel(), more[0, 0].get_xlabel()) == ("pattern 2", "pattern 1")
    assert texts(more[0, 0].figure.legends[0]) == ["background", "foreground"]


def test_loadings_show_the_largest_by_name():
    ax = plots.loadings(np.array([0.1, -0.9, 0.5]), ["a", "b", "c"], n_top=2)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c", "b"]
    assert_allclose([bar.get_width() for bar in ax.patches], [0.5, -0.9])
    assert len({bar.get_facecolor() for bar in ax.patches}) == 2  # one colour for each sign


def test_images_show_each_pattern():
    axes = plots.images(np.arange(12.0).reshape(2, 6), (2, 3), ["one", "two"])
    assert len(axes) == 2
    shown = axes[1].images[0]
    assert_allclose(shown.get_array(), [[6, 7, 8], [9, 10, 11]])
    assert shown.get_clim() == (-11, 11)  # white is zero
    assert axes[0].get_title() == "one"


# --- labels in any form ---


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "a", None],
        np.array(["b", "a", "a", ""]),
        pd.Series(["b", "a", "a", np.nan], index=[7, 8, 9, 10]),
        pl.Series(["b", "a", "a", None]),
    ],
    ids=["list", "array", "Series", "polars"],
)
def test_groups_of_any_container_are_sorted_and_rows_without_one_are_grey(labels):
    scores = np.arange(8.0).reshape(4, 2)
    ax = plots.scatter(scores, labels)
    assert texts(ax.get_legend()) == ["a", "b", "no label"]
    assert_allclose(points(ax, "a"), scores[[1, 2]])
    assert_allclose(points(ax, "no label"), scores[[3]])
    assert_allclose(ax.collections[-1].get_facecolor()[0, :3], 0.5, atol=0.01)


def test_categories_keep_their_order_and_their_colours():
    labels = pd.Categorical(["low", "high", "low"], categories=["low", "none", "high"])
    for given in (labels, pd.Series(labels)):
        ax = plots.scatter(np.eye(3), given, colours=["#111111", "#222222", "#333333"])
        assert texts(ax.get_legend()) == ["low", "high"]
        assert_allclose(ax.collections[-1].get_facecolor()[0, :3], 0x33 / 255)


def test_numbers_on_a_scale_have_a_colour_bar_with_their_name():
    values = pd.Series([0.5, 1.5, np.nan, 2.5], name="age")
    ax = plots.scatter(np.arange(8.0).reshape(4, 2), values, background=np.zeros((2, 2)))
    under, missing, drawn = ax.collections
    assert_allclose(drawn.get_array(), [0.5, 1.5, 2.5])
    assert drawn.get_cmap().name == "viridis"
    assert (len(under.get_offsets()), len(missing.get_offsets())) == (2, 1)
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "age"


def test_few_whole_numbers_are_groups_and_many_are_a_scale(rng):
    scores = rng.standard_normal((60, 2))
    few = plots.scatter(scores, pd.Series(np.arange(60) % 3, dtype="Int64"))
    assert texts(few.get_legend()) == ["0", "1", "2"]
    assert plots.scatter(scores, np.arange(60)).collections[0].get_array() is not None


def test_colours_that_repeat_have_another_marker(rng):
    values, labels = rng.standard_normal((90, 2)), np.arange(90) % 9
    ax = plots.scatter(values, labels)
    first, eighth = (next(part for part in ax.collections if part.get_label() == n) for n in "07")
    assert_allclose(first.get_facecolor(), eighth.get_facecolor())
    for label in (0, 7):
        assert_allclose(points(ax, str(label)), in_order(values[labels == label]))


def test_names_of_axes_follow_the_columns_drawn(rng):
    values = rng.standard_normal((20, 4))
    ax = plots.scatter(values, components=(4, 2))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("pattern 4", "pattern 2")
    assert_allclose(points(ax, "foreground"), in_order(values[:, [3, 1]]))
    frame = pd.DataFrame(values, columns=list("pqrs"))
    axes = plots.scores(frame, components=(1, 3, 4))
    assert [axes[i, 0].get_xlabel() for i in range(3)] == ["p", "p", "p"]
    assert [axes[i, 0].get_ylabel() for i in range(1, 3)] == ["r", "s"]


# --- scores of both datasets ---


def test_histograms_of_both_datasets_have_the_same_area_and_far_rows_stay_in(rng):
    values, under = rng.standard_normal((400, 2)), rng.standard_normal((100, 2))
    values[0] = 1e6
    axes = plots.histograms(values, background=under)
    assert [ax.get_xlabel() for ax in axes] == ["pattern 1", "pattern 2"]
    bars = axes[0].patches
    half = len(bars) // 2
    areas = np.array([bar.get_height() * bar.get_width() for bar in bars])
    assert_allclose([areas[:half].sum(), areas[half:].sum()], 1)
    assert bars[-1].get_height() > 0  # the far row is in the last bar
    assert axes[0].get_xlim()[1] < 20
    assert texts(axes[0].figure.legends[0]) == ["background", "foreground"]


def test_scores_by_group_are_side_by_side_where_a_group_is_in_both_datasets(rng):
    fore, back = rng.standard_normal((60, 2)), rng.standard_normal((40, 2))
    donors = np.array(["d1", "d2", "d10"])
    ax = plots.groups(
        *(fore, donors[np.arange(60) % 3]),
        background=back,
        background_groups=donors[np.arange(40) % 2],
        component=2,
    )
    assert [label.get_text() for label in ax.get_xticklabels()] == ["d1", "d10", "d2"]
    assert ax.get_ylabel() == "pattern 2"
    assert len(ax.patches) == 5  # boxes
    medians = [line.get_ydata()[0] for line in ax.lines if line.get_color() == "black"]
    assert_allclose(medians[0], np.median(fore[::3, 1]))
    assert_allclose(medians[3], np.median(back[::2, 1]))
    assert texts(ax.get_legend()) == ["foreground", "background"]


def test_the_groups_are_named_in_the_order_of_categories(rng):
    donors = pd.Categorical(["b", "a"] * 10, categories=["b", "a"])
    ax = plots.groups(rng.standard_normal((20, 1)), donors)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a"]
    assert ax.get_legend() is None
    numbers = plots.groups(rng.standard_normal((60, 1)), np.arange(60) % 30)
    assert numbers.get_xticklabels()[10].get_text() == "10"  # not by the alphabet


# --- patterns ---


@pytest.fixture(scope="module")
def fitted():
    data = make_synthetic(5, n_samples=2000, random_state=0)
    both = data.foreground, data.background
    X, Y = (pd.DataFrame(rows, columns=list("abcde")) for rows in both)
    with collected():
        return ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y), X, Y


def test_patterns_of_a_model_show_effects_by_name_with_the_ratio(fitted):
    model, _, _ = fitted
    axes = plots.patterns(model, n_top=3)
    assert len(axes) == len(model.components_)
    for i, ax in enumerate(axes):
        widths = np.array([bar.get_width() for bar in ax.patches])
        names = [label.get_text() for label in ax.get_yticklabels()]
        expected = dict(zip(model.feature_names_in_, model.effects_[i], strict=True))
        assert_allclose(widths, [expected[name] for name in names])
        assert_allclose(sorted(np.abs(widths)), np.sort(np.abs(model.effects_[i]))[-3:])
        assert (np.diff(widths) >= 0).all()
        assert ax.get_xlabel() == "standard deviations of the background"
    symbol = "k(f)" if model.ranked_by_ == "source_ratio" else "k(b)"
    assert axes[0].get_title().startswith(f"pattern 1, {symbol} = ")


def test_patterns_with_intervals_are_loadings(fitted):
    model, _, _ = fitted
    spans = np.stack([model.components_ - 0.1, model.components_ + 0.2], axis=-1)
    (ax,) = plots.patterns(model, components=[2], intervals=spans)
    assert ax.get_xlabel() == "loading"
    ends = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
    widths = [bar.get_width() for bar in ax.patches]
    assert_allclose(ends, np.transpose([np.subtract(widths, 0.1), np.add(widths, 0.2)]))


def test_similarity_of_two_fits_is_the_cosine_without_its_sign():
    one = np.array([[1.0, 0, 0], [0, 2.0, 0]])
    other = np.array([[0, -1.0, 0], [3.0, 0, 4.0], [0, 0, 1.0]])
    ax = plots.similarity(one, other)
    assert_allclose(ax.images[0].get_array(), [[0, 0.6, 0], [1, 0, 0]], atol=1e-12)
    assert [text.get_text() for text in ax.texts][:3] == ["0.00", "0.60", "0.00"]
    assert len(ax.get_xticklabels()) == 3
    assert_allclose(np.diag(plots.similarity(one).images[0].get_array()), 1)


# --- evidence ---


def test_ratios_mark_what_stands_out_and_write_p(fitted):
    ax = plots.ratios([9.0, 4.0, 1.5], p_values=[0.001, 0.2], n_foreground=1, symbol="k(b)")
    _stems, clear, other = ax.collections
    assert_allclose(clear.get_offsets(), [[9, 0]])
    assert_allclose(other.get_offsets(), [[4, 1], [1.5, 2]])
    assert [text.get_text() for text in ax.texts] == ["p = 0.001", "p = 0.2"]
    assert ax.get_xlabel().startswith("k(b)")
    model, _, _ = fitted
    drawn = plots.ratios(model).collections[1].get_offsets()
    assert_allclose(
        drawn[:, 0],
        model.contrast_ratio_ if model.ranked_by_ == "contrast_ratio" else model.source_ratio_,
    )


def test_stability_draws_index_resamples_and_intervals(fitted):
    model, X, Y = fitted
    with collected():
        result = stability(model, X, background=Y, n_resamples=4, random_state=0)
    (ax,) = plots.patterns(model, components=[1], intervals=result)
    assert ax.get_xlabel() == "loading"
    assert len(ax.collections[0].get_paths()) == min(8, X.shape[1])
    left, right = plots.stability(result)
    dots, index = left.collections
    assert_allclose(dots.get_offsets()[:, 0], result.similarity.ravel())
    assert_allclose(index.get_offsets()[:, 0], result.index)
    ends = np.array([path.vertices[:, 0] for path in right.collections[0].get_paths()])
    assert_allclose(ends, result.ratio_intervals)


def test_stability_by_groups_names_the_one_that_matters_most():
    fields = {
        "index": [0.9, 0.7],
        "similarity": np.empty((0, 2)),
        "left_out": ["m1", "m2"],
        "left_out_similarity": [[0.95, 0.4], [0.85, 1.0]],
    }
    (ax,) = plots.stability(fields)
    assert [text.get_text() for text in ax.texts] == ["without m2", "without m1"]


def test_a_comparison_is_drawn_as_it_is():
    data = load_digits_on_photos(300)
    names = np.array(data.label_names)[data.labels]
    with collected():
        found = compare_methods(
            data.foreground, data.background, labels=names, methods=["gcpca", "pca"]
        )
    axes = plots.comparison(found)
    assert [ax.get_title() for ax in axes] == [result.title for result in found]
    assert texts(axes[0].figure.legends[0]) == ["background", *found.group_names]
    bare = plots.comparison(found, background=False)
    assert texts(bare[0].figure.legends[0]) == list(found.group_names)


# --- figures ---


def test_given_axes_are_used_and_pyplot_is_left_alone(rng):
    from matplotlib import pyplot

    values = rng.standard_normal((30, 3))
    figure = plots.new_figure()
    axes = figure.subplots(3, 3)
    assert plots.loadings(np.ones(3), ax=axes[0, 0]) is axes[0, 0]
    assert (plots.histograms(values, axes=axes[0]) == axes[0]).all()
    assert (plots.scores(values, axes=axes) == axes).all()
    assert plots.images(np.ones((2, 6)), (2, 3), axes=plots.new_figure()).shape == (2,)
    with plots.without_pyplot():
        plots.scatter(values)
    assert not pyplot.get_fignums()
    ax = plots.scatter(values)
    assert pyplot.get_fignums() == [ax.figure.number]


def test_a_callers_figure_without_a_layout_has_the_legend_on_its_axes(rng):
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)
    plots.histograms(rng.standard_normal((30, 2)), background=np.ones((5, 2)), axes=axes)
    assert texts(axes[0].get_legend()) == ["background", "foreground"]
    assert not axes[0].figure.legends


def test_figures_are_saved_whole_or_not_at_all(tmp_path, rng):
    plots.scatter(rng.standard_normal((9, 2)), save=tmp_path / "new" / "a.png")
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    part = plots.new_figure().subfigures(2)[0]
    plots.images(np.ones((1, 6)), (2, 3), axes=part, save=tmp_path / "part.pdf")
    assert (tmp_path / "part.pdf").read_bytes().startswith(b"%PDF")
    with raises(ParameterError, "file-type", "save"):
        plots.scatter(rng.standard_normal((9, 2)), save=tmp_path / "a.xyz")
    assert not (tmp_path / "a.xyz").exists()


VALUES = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("draw", "code", "parameter"),
    [
        (lambda: plots.scatter(VALUES, ["a"] * 5), "n-labels", "labels"),
        (lambda: plots.scatter(VALUES, [0, 1] * 3, label_names=["a"]), "label-names", "labels"),
        (lambda: plots.scatter(VALUES, background=VALUES[:, :1]), "n-patterns", "background"),
        (lambda: plots.scatter(VALUES, components=(1, 3)), "components", "components"),
        (lambda: plots.scatter(VALUES, components=(0, 1)), "components", "components"),
        (lambda: plots.scatter(VALUES, components="1,2"), "components", "components"),
        (lambda: plots.scatter(VALUES, names=["x"]), "n-names", "names"),
        (lambda: plots.scatter(VALUES, ax=3), "not-axes", "ax"),
        (lambda: plots.scatter([["a", "b"]]), "scores-shape", "scores"),
        (lambda: plots.histograms(VALUES, axes=[3]), "n-axes", "axes"),
        (lambda: plots.histograms(VALUES, np.arange(6) / 4), "labels-scale", "labels"),
        (lambda: plots.small_multiples([VALUES], ["a", "b"]), "n-methods", "scores"),
        (lambda: plots.groups(VALUES, ["a"] * 5), "n-labels", "groups"),
        (lambda: plots.groups(VALUES, ["a"] * 5 + [""]), "no-group", "groups"),
        (
            lambda: plots.groups(VALUES, ["a"] * 6, background=VALUES),
            "no-groups",
            "background_groups",
        ),
        (lambda: plots.loadings(VALUES), "pattern-shape", "pattern"),
        (lambda: plots.loadings(VALUES[0], ["a"]), "n-names", "names"),
        (lambda: plots.loadings(VALUES[0], intervals=VALUES), "intervals-shape", "intervals"),
        (lambda: plots.patterns(VALUES, intervals=[None]), "n-intervals", "intervals"),
        (lambda: plots.images(VALUES, (2, 2)), "image-shape", "shape"),
        (lambda: plots.images(VALUES, (1, 2), ["a"]), "n-titles", "titles"),
        (lambda: plots.similarity(VALUES, VALUES[:, :1]), "n-variables", "other"),
        (lambda: plots.similarity(VALUES, names=(["a"], ["b"])), "n-names", "names"),
        (lambda: plots.ratios([1.0, 2.0], intervals=[[1, 2]]), "n-intervals", "intervals"),
        (lambda: plots.stability({}), "no-index", "result"),
    ],
)
def test_what_does_not_fit_is_told_in_words_and_leaves_no_figure(draw, code, parameter):
    from matplotlib import pyplot

    with raises(InputError, code, parameter) as said:
        draw()
    assert str(said.value).endswith(".")
    assert not pyplot.get_fignums()


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
