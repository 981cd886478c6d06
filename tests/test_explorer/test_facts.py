"""What the page is told of patterns and rows: against slow and obvious twins."""

from types import SimpleNamespace

import numpy as np
import pytest

from contrica import ContrastiveICA
from contrica.compare import compare_methods
from contrica.errors import ContricaError, DataError, ParameterError
from contrica.explorer import Explorer, ExplorerData, ViewState
from contrica.explorer._callbacks_cards import _cards, _order_words
from contrica.inference import top_features
from contrica.moments import cumulants
from contrica.solvers.ranks import scree
from tests.test_explorer.small import small_data


@pytest.fixture(scope="module")
def explorer():
    return Explorer(small_data())


@pytest.fixture(scope="module")
def grouped():
    data = small_data()
    names = np.repeat([f"animal {i}" for i in range(30)], 10)
    dose = np.repeat(np.arange(30.0), 10)
    return Explorer(
        ExplorerData.of(
            data.fore,
            data.backs[0],
            groups=names,
            background_groups=[f"other {each}" for each in names],
            metadata={"dose": dose, "kind": data.metadata[0]["kind"]},
        )
    )


def test_cards_say_what_scores_and_the_model_say(explorer):
    state = ViewState().edit(0, name="<script>alert(1)</script>")
    view, cards = explorer.fit(state), explorer.cards(state)
    assert [card.index for card in cards] == list(range(view.n_kept))
    for i, card in enumerate(cards):
        score = view.scores_fore[:, i]
        unit = (score - score.mean()) / score.std()
        assert card.foreground.skewness == pytest.approx(np.mean(unit**3))
        assert card.foreground.kurtosis == pytest.approx(np.mean(unit**4) - 3)
        assert card.background.variance == pytest.approx(view.scores_back[:, i].var())
        features = top_features(view.model, i)
        assert [each.name for each in card.leading] == [each.name for each in features]
        assert [each.loading for each in card.leading] == [each.loading for each in features]
        effects = [view.model.effects_[i][int(each.name[1:])] for each in card.leading]
        assert [each.effect for each in card.leading] == effects
        assert all(np.isnan([each.low, each.high]).all() for each in card.leading)
    assert cards[0].edit.name == "<script>alert(1)</script>"
    assert cards[0].ratio == view.ratios[0]
    assert cards[0].p == pytest.approx(view.p_values[0])


def adjusted(share, n):
    return max(1 - (1 - share) * (n - 1) / (n - 2), 0)


def test_cards_say_what_only_shifts_the_mean():
    data = small_data()
    shifted = data.fore.copy()
    shifted[:, 4] += 4
    explorer = Explorer(ExplorerData.of(shifted, data.backs[0]))
    state = ViewState(solver="subspace", n_components=3)
    told = [each.only_shifted for each in explorer.cards(state)]
    assert told == explorer.fit(state).model.only_shifted_.tolist() == [False, False, True]
    desk = SimpleNamespace(session=SimpleNamespace(explorer=explorer), state=state)
    shown = dict(_cards(desk))
    assert ["a shift of the mean, ranked last" in shown[name] for name in "012"] == told
    assert str(_order_words(desk)) == "By contrast ratio, shifts of the mean last."
    desk.state = ViewState(solver="subspace", n_components=1)
    assert str(_order_words(desk)) == "By contrast ratio."


def test_association_is_the_share_of_variance_between_kinds(explorer):
    state = ViewState()
    kind = explorer.data.metadata[0]["kind"]
    for i, card in enumerate(explorer.cards(state)):
        score = explorer.fit(state).scores_fore[:, i]
        means = {each: score[kind == each].mean() for each in ("a", "b")}
        between = np.var([means[each] for each in kind])
        found = {each.column: each for each in card.associations}["kind"]
        assert found.size == pytest.approx(adjusted(between / score.var(), score.size))
        assert "without a p" in card.association_words


def test_association_of_rows_in_groups_is_of_means_of_groups(grouped):
    state = ViewState()
    view = grouped.fit(state)
    for i, card in enumerate(grouped.cards(state)):
        means = view.scores_fore[:, i].reshape(30, 10).mean(axis=1)
        found = {each.column: each for each in card.associations}["dose"]
        assert found.n == 30
        share = np.corrcoef(means, np.arange(30.0))[0, 1] ** 2
        assert found.size == pytest.approx(adjusted(share, 30))
        assert sum(card.group_share.values()) == pytest.approx(1)


def test_why_not_background_tells_of_both_datasets_and_of_other_methods(explorer):
    state = ViewState(scale="pooled")
    view, why = explorer.fit(state), explorer.why(state, 0)
    above, below = view.scores_fore[:, 0].var(), view.scores_back[:, 0].var()
    assert why.share_in_background == pytest.approx(below / (above + below))
    width = np.diff(why.edges)
    for density in (why.foreground, why.background):
        assert 0.98 <= density @ width <= 1
    assert why.groups == {}
    cpca, ica = why.others
    other = compare_methods(
        *(explorer.data.fore, explorer.data.backs[0]),
        methods=["cpca"],
        n_components=6,
        scale="pooled",
        random_state=0,
    )["cpca"].model
    unit = other.components_ / np.linalg.norm(other.components_, axis=1, keepdims=True)
    cosines = np.abs(unit @ view.components[0])
    assert (cpca.method, cpca.number) == ("cPCA", np.argmax(cosines))
    assert cpca.cosine == pytest.approx(cosines.max())
    assert ica.method == "ICA"
    assert cpca.component @ view.components[0] == pytest.approx(cpca.cosine)


def test_why_not_background_names_the_nearest_background_pattern():
    explorer = Explorer(small_data())
    state = ViewState(solver="joint", n_foreground=2, n_background=6)
    view, why = explorer.fit(state), explorer.why(state, 1)
    cosines = np.abs(view.model.background_components_ @ view.components[1])
    assert why.nearest_background == (np.argmax(cosines), pytest.approx(cosines.max()))
    with pytest.raises(ParameterError) as raised:
        explorer.why(state, 9)
    assert raised.value.code == "no-such-pattern"


def test_densities_by_group_are_of_the_largest_groups(grouped):
    why = grouped.why(ViewState(), 0)
    assert len(why.groups) == 6
    score = grouped.fit(ViewState()).scores_fore[:, 0]
    own = score[grouped.data.groups[0] == next(iter(why.groups))]
    counts = np.histogram(own, why.edges)[0] / own.size / np.diff(why.edges)
    assert np.array_equal(next(iter(why.groups.values())), counts)


def test_how_many_has_the_null_and_both_flattenings(explorer):
    state = ViewState(solver="subspace")
    told, data = explorer.how_many(state), explorer.data
    model = ContrastiveICA(solver="subspace", random_state=0).fit(
        data.fore, background=data.backs[0]
    )
    assert np.array_equal(told.ratios, model.scree_.ratios)
    assert told.null_quantile == model.scree_.null_quantile
    expected = scree(*(cumulants(part) for part in (data.fore, data.backs[0])))
    np.testing.assert_allclose(told.foreground_eigenvalues, expected.foreground, rtol=1e-9)
    np.testing.assert_allclose(told.background_eigenvalues, expected.background, rtol=1e-9)
    both = np.vstack([data.fore, data.backs[0]])
    variances = np.sort(np.linalg.eigvalsh(np.cov(both.T)))[::-1]
    np.testing.assert_allclose(told.variances, variances / variances.sum(), rtol=1e-9)
    assert told.is_automatic == {"n_foreground": True, "n_background": True, "dimension": True}
    assert told.largest["dimension"] == 6


def test_variances_of_many_variables_are_those_of_the_components_worked_in():
    data = small_data(n=200, p=310)
    found = Explorer(data).how_many(ViewState(dimension=5)).variances
    both = np.vstack([data.fore, data.backs[0]])
    values = np.linalg.svd(both - both.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(found, values[:5] / values.sum(), rtol=1e-6)


@pytest.mark.parametrize("scale", ["pooled", "each"])
def test_variances_are_in_the_units_of_the_fit(explorer, scale):
    parts = [part - part.mean(axis=0) for part in (explorer.data.fore, explorer.data.backs[0])]
    own = [np.sqrt(np.mean(part**2, axis=0)) for part in parts]
    spread = np.sqrt(np.mean(np.vstack(parts) ** 2, axis=0))
    if scale == "pooled":
        rows = [part / spread for part in (explorer.data.fore, explorer.data.backs[0])]
    else:
        rows = [part / each for part, each in zip(parts, own, strict=True)]
    values = np.linalg.eigvalsh(np.cov(np.vstack(rows).T))[::-1]
    found = explorer.how_many(ViewState(scale=scale)).variances
    np.testing.assert_allclose(found, values / values.sum(), rtol=1e-9)


@pytest.mark.parametrize("solver", ["subspace", "joint", "paper"])
def test_every_number_within_the_largest_can_be_fitted(explorer, solver):
    state = explorer.change(ViewState(dimension=4), solver=solver)
    largest = explorer.how_many(state).largest
    assert explorer.fit(explorer.change(state, dimension=largest["dimension"])).dimension == 6
    dragged = explorer.change(state, n_foreground=largest["n_foreground"])
    assert explorer.fit(dragged).n_kept >= 1


def test_differences_are_effect_sizes_without_a_p(explorer):
    data = explorer.data
    rows = np.flatnonzero(data.metadata[0]["kind"] == "b")
    told = explorer.differences(ViewState(), rows)
    inside, outside = data.fore[rows], np.delete(data.fore, rows, axis=0)
    n, m = len(inside), len(outside)
    within = np.sqrt((n * inside.var(axis=0) + m * outside.var(axis=0)) / (n + m))
    sizes = (inside.mean(axis=0) - outside.mean(axis=0)) / within
    first = told.variables[0]
    assert first.name == f"x{np.argmax(np.abs(sizes))}" == "x0"
    assert first.size == pytest.approx(sizes[0])
    assert told.columns[0].name in ("kind = a", "kind = b")
    assert abs(told.columns[0].size) == 1
    assert "Effect sizes only" in told.words
    assert (told.n_rows, told.n_others) == (n, m)


@pytest.mark.parametrize("rows", [[], range(300), [300], [-1], [0.5], [[1]], ["a"]])
def test_selections_that_cannot_be_compared_are_refused(explorer, rows):
    with pytest.raises(DataError):
        explorer.differences(ViewState(), rows)


def test_points_are_all_rows_or_the_same_sample_every_time(explorer):
    state = ViewState()
    view, points = explorer.fit(state), explorer.points(state)
    assert np.array_equal(points.fore, view.scores_fore[:, [0, 1]])
    assert not points.is_thinned
    assert points.words == "All 600 rows are drawn."
    few, again = (explorer.points(state, 100) for _ in range(2))
    assert np.array_equal(few.fore_rows, again.fore_rows)
    assert few.fore_rows.size == few.back_rows.size == 50
    assert "100 of 600 rows are drawn" in few.words
    assert np.array_equal(few.fore, view.scores_fore[few.fore_rows][:, [0, 1]])
    assert few.fore_names == [f"row {i}" for i in few.fore_rows]


def test_rows_are_coloured_by_dataset_column_variable_and_group(explorer, grouped):
    data = explorer.data
    found = explorer.colours(ViewState())
    assert found.levels == ("foreground", "background")
    assert set(found.fore), set(found.back) == ({0}, {1})
    kinds = explorer.colours(ViewState(colour="column:kind"))
    assert [kinds.levels[i] for i in kinds.fore] == data.metadata[0]["kind"].tolist()
    assert set(kinds.back) == {-1}  # the background does not have the column
    assert np.array_equal(
        explorer.colours(ViewState(colour="variable:x2")).back, data.backs[0][:, 2]
    )
    groups = grouped.colours(ViewState(colour="groups"))
    assert groups.levels[-1] == "all others"
    assert len(groups.levels) == 10
    assert "9 largest of 60" in groups.words
    for state in (ViewState(colour="column:nothing"), ViewState(colour="variable:nothing")):
        with pytest.raises(ContricaError, match="there is no"):
            explorer.colours(state)
    with pytest.raises(ContricaError, match="have none"):
        explorer.colours(ViewState(colour="groups"))


def test_metadata_without_values_and_names_like_markup_are_text(explorer):
    data = small_data()
    metadata = {
        "<img src=x onerror=alert(1)>": np.where(np.arange(300) % 2, "<b>", None),
        "gaps": np.where(np.arange(300) % 3, np.nan, np.arange(300) * 0.37),
    }
    names = ["</script><script>alert(1)</script>", *"abcde"]
    told = ExplorerData.of(data.fore, data.backs[0], metadata=metadata, names=names)
    explorer = Explorer(told)
    assert names[0] in [each.name for card in explorer.cards(ViewState()) for each in card.leading]
    found = explorer.colours(ViewState(colour="column:<img src=x onerror=alert(1)>"))
    assert found.levels == ("<b>",)
    assert np.isnan(explorer.colours(ViewState(colour="column:gaps")).fore).sum() == 200
    assert explorer.differences(ViewState(), range(20)).columns
