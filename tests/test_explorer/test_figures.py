"""Figures, points, cards and edits of the page, without a browser: drawn is what the records say."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest

from contrica.errors import ContricaError, ParameterError
from contrica.explorer import Explorer, ExplorerData, ViewState
from contrica.explorer._desk import Desk, inside
from contrica.explorer._state import History
from contrica.explorer._views import Colours, HowMany, Match, Points, Why

pytest.importorskip("dash", reason="dash is not installed")

from plotly import graph_objects

from contrica.explorer import _figures as figures
from contrica.explorer._callbacks_cards import _cards as cards_of
from contrica.explorer._callbacks_edit import keys_of, notice
from contrica.explorer._callbacks_scatter import _row_told, colour_options
from contrica.explorer._dots import kinds, packed, ramp
from contrica.explorer._pieces import joined, names_of, track
from contrica.explorer._still import still
from contrica.explorer._texts import HELP

EVIL = "</script><img src=x onerror=alert(1)>"


def valid(figure):
    """The figure, once plotly has checked all its attributes."""
    graph_objects.Figure(figure)
    return figure


@pytest.fixture(scope="module")
def explorer():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(200, 5)), rng.laplace(size=(150, 5))
    kind = rng.choice(["a", EVIL], 200)
    X[kind == "a", 0] += 8
    X[:, 1] *= 4
    data = ExplorerData.of(
        *(X, Y),
        names=["one", "two", EVIL, "four", "five"],
        metadata={"kind": kind, "age": np.where(rng.random(200) < 0.2, np.nan, X[:, 0])},
        row_names=[[f"row {i}" for i in range(200)], None],
        parameters={"solver": "subspace", "n_foreground": 2, "n_components": 2},
    )
    return Explorer(data)


class Kept:
    """A session whose names are kept in memory."""

    saved_words = "kept"

    def __init__(self, explorer):
        self.explorer, self.saved = explorer, []
        self.history = History(explorer.default_state())

    def save(self, state):
        self.saved.append(state)


@pytest.fixture
def desk(explorer):
    return Desk(Kept(explorer))


def some_points(n=60):
    rng = np.random.default_rng(1)
    rows, names = np.arange(n), [f"r{i}" for i in range(n)]
    return Points(
        rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rows, rows, names, names, False, ""
    )


GROUPS = Colours("kind", ("a", "b"), np.arange(60) % 3 - 1, np.full(60, -1))
DATASET = Colours("dataset", ("foreground", "background"), np.zeros(60, int), np.ones(60, int))
VALUES = Colours(
    "age", (), np.where(np.arange(60) == 7, np.nan, np.arange(60.0)), np.full(60, np.nan)
)


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


# --- figures ---


@pytest.mark.parametrize("colours", [GROUPS, DATASET, VALUES], ids=lambda each: each.label)
@pytest.mark.parametrize("drawn", ["points", "density"])
def test_the_scores_frame_is_valid_and_holds_both_datasets(colours, drawn):
    points = some_points()
    figure = valid(figures.scatter(points, colours, ("x", "y"), drawn=drawn, background=True))
    for axis, j in (("xaxis", 0), ("yaxis", 1)):
        low, high = figure["layout"][axis]["range"]
        both = np.concatenate([points.fore[:, j], points.back[:, j]])
        assert np.mean((both > low) & (both < high)) >= 0.99
    bare = figures.scatter(points, colours, ("x", "y"), drawn=drawn, background=False)
    drawn_back = drawn == "density"
    assert len(figure["data"]) - len(bare["data"]) == drawn_back


def test_a_density_is_highest_where_most_rows_are():
    points = some_points(4000)
    points.fore[:] = np.random.default_rng(0).normal(3, 0.1, points.fore.shape)
    every = Colours(
        "dataset", ("foreground", "background"), np.zeros(4000, int), np.ones(4000, int)
    )
    figure = figures.scatter(points, every, ("x", "y"), drawn="density", background=False)
    trace = figure["data"][1]
    row, column = np.unravel_index(np.argmax(trace["z"]), np.shape(trace["z"]))
    # a cell is the width of all rows over 96
    assert trace["x"][column] == pytest.approx(3, abs=0.15)
    assert trace["y"][row] == pytest.approx(3, abs=0.15)


def test_a_histogram_has_no_line_of_a_kind_without_rows():
    kept = {"drawn": "points", "background": True, "histogram": True}
    found = valid(figures.scatter(some_points(), DATASET, ("x", "x"), **kept))
    assert [each["name"] for each in found["data"]] == ["background", "foreground"]
    assert all(sum(each["y"]) > 0 for each in found["data"])


def test_a_histogram_has_the_shares_of_all_rows_of_the_dataset():
    points = some_points()
    figure = valid(
        figures.scatter(points, GROUPS, ("x", "x"), drawn="points", background=True, histogram=True)
    )
    back, *groups = figure["data"]
    assert sum(back["y"]) == pytest.approx(1, abs=0.02)  # but for the outermost rows
    # a third of the rows is in neither group
    assert sum(map(sum, (each["y"] for each in groups))) == pytest.approx(2 / 3, abs=0.05)


def how_many(**more):
    found = HowMany(
        ratios=np.array([9.0, 4.0, 1.2, 1.0]),
        null_quantile=1.8,
        null_mean=1.5,
        p_values=np.array([0.001, 0.01, 0.6]),
        foreground_eigenvalues=np.array([3.0, 1.0, -0.5, 0.1]),
        background_eigenvalues=np.array([1.0, 0.2, 0.1, 1e-12]),
        variances=np.array([0.5, 0.3, 0.2]),
        n_foreground=2,
        n_background=3,
        dimension=3,
        is_automatic={"n_foreground": True, "n_background": True, "dimension": True},
        largest={"n_foreground": 4, "n_background": 4, "dimension": 3},
    )
    return replace(found, **more)


def test_the_lines_that_are_dragged_stand_right_of_their_number():
    layout = valid(figures.how_many(how_many()))["layout"]
    assert [each["x0"] for each in layout["shapes"][:3]] == [2.5, 3.5, 3.5]
    assert all(each["editable"] and each["x0"] == each["x1"] for each in layout["shapes"][:3])
    band = layout["shapes"][3]
    assert (band["y0"], band["y1"], band["editable"]) == (1.5, 1.8, False)
    for shape, axis in zip(layout["shapes"], ("xaxis", "xaxis2", "xaxis3"), strict=False):
        low, high = layout[axis]["range"]
        assert low < shape["x0"] < high


def test_what_was_not_computed_is_not_drawn():
    nan, none = float("nan"), np.empty(0)
    empty = {"ratios": none, "p_values": none, "null_quantile": nan, "null_mean": nan}
    empty |= {"foreground_eigenvalues": none, "background_eigenvalues": none, "n_foreground": 0}
    figure = valid(figures.how_many(how_many(**empty)))
    assert len(figure["layout"]["shapes"]) == 3
    assert [len(each["x"]) for each in figure["data"]] == [0, 0, 0, 3]


def test_only_directions_up_to_the_line_are_filled():
    marker = figures.how_many(how_many())["data"][0]["marker"]
    assert [each == figures.FORE for each in marker["color"]] == [True, True, False, False]


def test_matches_are_lines_from_old_to_new():
    found = [Match(0, 1, 0.99), Match(1, 0, 0.5), Match(None, 2, 0.0)]
    names = {0: "a", 1: EVIL, 2: "c"}
    *lines, left, right = valid(figures.matches(found, names, names))["data"]
    assert [each["y"] for each in lines] == [[1, 0], [0, 1]]
    assert lines[0]["line"]["width"] > lines[1]["line"]["width"]
    assert (len(left["text"]), len(right["text"])) == (3, 2)
    assert "<" not in left["text"][1]


def test_why_draws_every_group_on_a_floor_of_its_own():
    density = np.array([0.0, 1.0, 2.0, 0.0])
    groups = {"g<1>": density, "h": 3 * density}
    found = Why(0, np.arange(5.0), density, density, groups, 0.1, None, (), ())
    figure = valid(figures.why(found, "name"))
    assert figure["layout"]["yaxis"]["ticktext"] == ["background", "foreground", "g&lt;1&gt;", "h"]
    floors = [each["y"][0] for each in figure["data"][::2]]
    assert floors == [3, 2, 1, 0]
    for floor, curve in zip(floors, figure["data"][1::2], strict=True):
        assert floor <= min(curve["y"])
        assert max(curve["y"]) < floor + 1


@pytest.mark.parametrize(
    "name", [EVIL, "<b>x</b>", "&lt;", "%{x}", "a\nb", "<a href='http://x'>y</a>"]
)
def test_plotly_is_given_nothing_to_interpret(name):
    shown = figures.plain(name)
    assert "<" not in shown
    assert "%{" not in shown
    assert "\n" not in shown
    assert "&lt;" not in shown or shown.count("&") >= name.count("<")
    assert len(figures.plain("x" * 500)) == 34


# --- points ---


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("colours", [GROUPS, DATASET, VALUES], ids=lambda each: each.label)
def test_points_are_packed_with_the_colour_of_their_row(colours, background):
    points = some_points()
    found = packed(
        *(points, colours),
        key="k",
        axes="a",
        shown=True,
        histogram=False,
        background=background,
    )
    x, y = unpacked(found["x"], "<f4"), unpacked(found["y"], "<f4")
    rows, kind = unpacked(found["row"], "<u4"), unpacked(found["kind"], "<u2")
    back = found["n_back"]
    assert back == (60 if background else 0)
    assert sorted(rows[back:]) == list(range(60))
    np.testing.assert_allclose(np.column_stack([x, y])[back:], points.fore[rows[back:]], rtol=1e-6)
    names = {each.number: each for each in kinds(colours, background=True)}
    for number, row in zip(kind[back:], rows[back:], strict=True):
        own = colours.fore[row]
        if colours is VALUES:
            expected = "no value" if np.isnan(own) else None
        else:
            expected = colours.levels[int(own)] if own >= 0 else "no value"
        if expected:
            assert names[number].name == expected
            assert found["palette"][number] == names[number].colour
        else:
            assert found["palette"][number] in ramp(64)


def test_larger_numbers_have_later_tones():
    found = packed(
        some_points(), VALUES, key="", axes="", shown=True, histogram=False, background=False
    )
    rows, kind = unpacked(found["row"], "<u4"), unpacked(found["kind"], "<u2")
    known = rows != 7
    order = np.argsort(rows[known])
    assert (np.diff(kind[known][order].astype(int)) >= 0).all()


def test_a_point_is_inside_a_polygon_as_matplotlib_says():
    path = pytest.importorskip("matplotlib.path")
    rng = np.random.default_rng(0)
    corners, points = rng.normal(size=(9, 2)), rng.normal(size=(500, 2))
    points[3] = np.nan
    # even-odd, as plotly draws: matplotlib counts windings, so a star without crossings
    angle = np.argsort(np.arctan2(*corners.T))
    found = inside(points, corners[angle])
    np.testing.assert_array_equal(
        found, path.Path(corners[angle]).contains_points(points) & ~np.isnan(points[:, 0])
    )
    assert 0 < found.sum() < 500


# --- HTML ---


def test_cards_escape_what_users_named(desk):
    state = desk.state.edit(0, name=EVIL, note=EVIL, verdict="rejected")
    desk.go(state)
    (number, first), _ = cards_of(desk)
    assert number == "0"
    assert EVIL not in first
    assert "&lt;/script&gt;&lt;img" in first
    assert 'class="card rejected"' in first or "rejected" in first.split(">")[0]
    assert joined(EVIL) == "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"


def test_a_bar_begins_at_zero():
    bar = track(-1.0, -2.0, 4.0, (-1.5, -0.5))
    assert 'style="left:25.0%;width:25.0%" class="minus"' in bar
    assert '<i style="left:12.5%;width:25.0%">' in bar
    assert "<i" not in track(1.0, 0.0, 2.0)


def test_errors_are_said_in_words_and_bugs_without_their_innards(caplog):
    assert "a whole number" in notice(_error(lambda: ViewState.decode("l=x")))
    said = notice(ZeroDivisionError("secret"))
    assert "ZeroDivisionError" in said
    assert "secret" not in said
    assert "could not do" in caplog.text


def _error(call):
    with pytest.raises(ContricaError) as found:
        call()
    return found.value


def test_every_quantity_has_one_sentence_and_its_page():
    for key, told in HELP.items():
        assert told.sentence.endswith("."), key
        assert told.page.startswith("docs/guide/"), key


def test_colours_are_searched_among_columns_and_variables(explorer):
    every = [each["value"] for each in colour_options(explorer, "dataset")]
    assert every[:3] == ["dataset", "column:kind", "column:age"]
    data = explorer.data
    own = {**data.metadata[0], "row": np.array([f"r{i}" for i in range(data.n_fore)], dtype=object)}
    named = Explorer(replace(data, metadata=(own, *data.metadata[1:])))
    assert "row" in named.data.columns_left_out
    assert [each["value"] for each in colour_options(named, "dataset")] == every
    assert [each["value"] for each in colour_options(explorer, "dataset", "FOU")] == [
        *("variable:four", "dataset")
    ]


def test_a_row_tells_its_name_scores_and_what_is_known(explorer):
    words = _row_told(explorer, explorer.default_state(), False, 4).splitlines()
    assert words[0] == "row 4 (foreground)"
    assert words[1].startswith("pattern 1: ")
    assert any(each.startswith("kind: ") for each in words)
    assert _row_told(explorer, explorer.default_state(), True, 2).startswith("row 2 (background)")


@pytest.mark.parametrize("colour", ["dataset", "column:kind", "column:age"])
@pytest.mark.parametrize("y", [0, 1])
def test_figures_are_written_as_png_and_svg(explorer, colour, y):
    state = replace(explorer.default_state(), colour=colour, y=y)
    names = [f"$x_{i}$ <b>" for i in range(2)]
    name, content = still(explorer, state, "png", names)
    assert name == "scores.png"
    assert content[:4] == b"\x89PNG"
    _, drawing = still(explorer, state, "svg", names)
    assert io.BytesIO(drawing).read(5) == b"<?xml"
    with pytest.raises(ParameterError, match="pdf"):
        still(explorer, state, "pdf", names)


# --- edits ---


def test_an_edit_that_comes_twice_is_made_once(desk):
    for _ in range(2):
        desk.make({"do": "move", "index": 0, "step": 1, "tab": "t", "id": 1})
    assert desk.state.order == (1, 0)
    desk.make({"do": "move", "index": 0, "step": -1, "tab": "other", "id": 1})
    assert desk.state.order == ()


def test_what_is_said_is_kept_and_undone(desk):
    desk.make({"do": "say", "index": 1, "field": "name", "value": "  a name "})
    assert desk.state.edit_of(1).name == "a name"
    assert desk.session.saved[-1] == desk.state
    desk.make({"do": "undo"})
    assert desk.state.edits == ()
    assert desk.session.saved[-1] == desk.state
    desk.make({"do": "redo"})
    assert names_of(desk.session.explorer, desk.state)[1] == "a name"


def test_typing_is_kept_at_every_pause_and_undone_in_one_step(desk):
    def types(value, field="note", **more):
        desk.make({"do": "say", "index": 0, "field": field, "value": value, **more})

    types("first")
    for part in ("first ", "first and", "first and more"):
        types(part, typing=True)
    types("first and more.")  # the field is left
    assert [each.edits[0].note for each in desk.session.saved] == [
        *("first", "first and", "first and more", "first and more.")
    ]
    types("another", typing=True)
    types("", typing=True)
    desk.make({"do": "undo"})
    assert desk.state.edits[0].note == "first and more."
    desk.make({"do": "undo"})
    assert desk.state.edits[0].note == "first"
    types("first", typing=True)  # nothing new
    types("one", "name", typing=True)
    types("two", "name", typing=True)
    types("first", typing=True)
    desk.make({"do": "undo"})
    assert (desk.state.edits[0].note, desk.state.edits[0].name) == ("first", "")


def test_a_line_is_dragged_to_the_number_left_of_it_and_no_further_than_there_is(desk):
    desk.make({"do": "line", "name": "l", "at": 3.9})
    assert desk.state.n_foreground == 3
    desk.make({"do": "line", "name": "l", "at": -7})
    assert desk.state.n_foreground == 1
    desk.make({"do": "line", "name": "l", "at": 1e9})
    largest = desk.session.explorer.how_many(desk.state).largest["n_foreground"]
    assert desk.state.n_foreground == largest
    assert desk.before.n_foreground == 1


def test_a_selection_is_of_all_rows_inside_and_ends_with_its_axes(desk):
    scores = desk.session.explorer.fit(desk.state).scores_fore[:, :2]
    low, high = scores.min(axis=0) - 1, np.median(scores, axis=0)
    path = [[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]]
    desk.make({"do": "lasso", "path": path})
    np.testing.assert_array_equal(desk.selected(), np.flatnonzero((scores < high).all(axis=1)))
    desk.make({"do": "set", "field": "colour", "value": "column:kind"})
    assert desk.selected().size
    desk.make({"do": "set", "field": "x", "value": 1})
    assert not desk.selected().size


@pytest.mark.parametrize(
    "edit",
    [
        {"do": "nothing"},
        {"do": ["set"]},
        {},
        {"do": "set", "field": "edits", "value": []},
        {"do": "set", "field": "x", "value": 99},
        {"do": "set", "field": "x", "value": "0"},
        {"do": "set", "field": "solver", "value": "none"},
        {"do": "set", "field": "n_foreground", "value": 5000},
        {"do": "set", "field": "colour", "value": 3},
        {"do": "say", "index": 7, "field": "name", "value": "x"},
        {"do": "say", "index": 0, "field": "index", "value": "x"},
        {"do": "say", "index": 0, "field": "name", "value": {"a": 1}},
        {"do": "line", "name": "l", "at": float("nan")},
        {"do": "line", "name": "q", "at": 2},
        {"do": "lasso", "path": [[0, "x"]]},
        {"do": "lasso", "path": [[0, 1, 2]]},
        {"do": "job", "kind": "mine"},
        {"do": "open", "text": "x=%"},
    ],
    ids=str,
)
def test_edits_that_cannot_be_meant_are_refused_and_change_nothing(desk, edit):
    before, keys = desk.state, keys_of(desk)
    with pytest.raises(ContricaError):
        desk.make(edit)
    assert desk.state == before
    assert keys_of(desk) == keys


def test_views_are_drawn_anew_only_where_they_change(desk):
    def changed(edit):
        before = keys_of(desk)
        desk.make(edit)
        after = keys_of(desk)
        return {name for name in after if after[name] != before[name]}

    assert changed({"do": "say", "index": 0, "field": "verdict", "value": "accepted"}) == {
        *("cards", "controls")
    }
    assert changed({"do": "set", "field": "colour", "value": "column:age"}) == {
        "scatter",
        "controls",
    }
    assert changed({"do": "lasso", "path": [[0, 0], [1, 0], [1, 1]]}) == {"rows"}
    assert "fit" in changed({"do": "set", "field": "dimension", "value": 4})
