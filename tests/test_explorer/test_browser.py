"""The explorer's page in a real browser: it does what is dragged, drawn around, named and exported."""

from contextlib import contextmanager

import numpy as np
import pytest

from contrica.datasets import load_digits_on_photos
from contrica.explorer import ExplorerData
from contrica.explorer._data import Source

pytest.importorskip("dash", reason="dash is not installed")

from contrica.explorer._server import Server
from tests.test_explorer.browsing import a_browser, reading


@pytest.fixture(scope="module")
def browser():
    with a_browser() as started:
        yield started


@pytest.fixture(scope="module")
def context(browser):
    """A browser that has loaded the scripts once."""
    found = browser.new_context(accept_downloads=True)
    yield found
    found.close()


@contextmanager
def served(data, folder):
    server = Server(data, port=0, folder=folder).start()
    try:
        yield server
    finally:
        server.stop()


def digits(n_rows=500, **more):
    data = load_digits_on_photos(n_rows)
    kinds = np.array(data.label_names, dtype=object)[data.labels]
    return ExplorerData.of(
        data.foreground,
        data.background,
        metadata={"digit": kinds},
        image_shape=data.image_shape,
        parameters={"n_pcs": 12, "solver": "subspace"},
        source=Source("demo", title="Digits"),
        **more,
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    with served(digits(), tmp_path_factory.mktemp("demo")) as server:
        yield server


def simulated(n_rows=120, width=5, **more):
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(n_rows, width)), rng.laplace(size=(n_rows, width))
    X[:, 0] += 6 * rng.choice([0, 1], n_rows)
    return ExplorerData.of(X, Y, parameters={"solver": "subspace"}, **more)


def test_a_reader_drags_draws_around_names_exports_and_comes_back(context, demo, tmp_path):
    with reading(context, demo) as reader:
        page = reader.page
        assert "token" not in page.url
        before = reader.names
        assert len(before) > 2
        first = reader.leading()

        reader.drag_line(0, 2.7)
        assert reader.known["values"]["n_foreground"] == 2
        assert len(reader.names) == 2
        assert reader.leading() != first
        assert page.locator("#matches").is_visible()  # old against new

        page.locator(".card .top input").first.fill("round <b>")
        page.keyboard.press("Enter")
        reader.settle()
        page.locator(".card textarea").first.fill("a note")
        reader.click(".card .accept >> nth=1")
        reader.do(do="set", field="colour", value="column:digit")
        assert page.locator("#legend button").all_inner_texts() == [
            "background",
            "0",
            "1",
            "both",
            "none",
        ]
        reader.lasso([(0.55, 0.05), (0.98, 0.05), (0.98, 0.95), (0.55, 0.95)])
        assert page.locator("#tab-rows").get_attribute("aria-selected") == "true"
        assert "rows selected" in page.inner_text("#rows h2")
        assert page.locator("#rows .bars dt").count() > 8

        for kind, name in (
            ("patterns", "patterns.csv"),
            ("png", "scores.png"),
            ("svg", "scores.svg"),
        ):
            page.click("summary.button")
            with page.expect_download() as download:
                page.click(f"[data-export={kind}]")
            path = tmp_path / name
            download.value.save_as(path)
            assert download.value.suggested_filename == name
            assert path.stat().st_size > 500
        assert "round <b>" in (tmp_path / "patterns.csv").read_text().splitlines()[0]

        state, cards, url = reader.known, page.inner_text("#cards"), page.url
        assert "token" not in url
        page.reload()
        reader.settle()
        assert page.url == url
        assert reader.known["values"] == state["values"]
        assert page.inner_text("#cards") == cards
        assert reader.names == ["round <b>", "Pattern 2"]
        assert page.locator(".card textarea").first.input_value() == "a note"
        assert page.locator(".card.accepted").count() == 1


def test_the_same_address_shows_the_same_to_another_reader(browser, context, demo):
    elsewhere = browser.new_context()
    with reading(context, demo) as one, reading(elsewhere, demo) as other:
        one.do(do="say", index=0, field="name", value="mine")
        assert one.names[0] == "mine"
        other.page.reload()
        other.settle()
        assert other.names[0] == "Pattern 1"  # a session of its own
        other.page.goto("about:blank")
        other.page.goto(one.page.url)
        other.settle()
        assert other.names[0] == "mine"  # what the address says
        other.do(do="say", index=0, field="name", value="theirs")
        one.page.reload()
        one.settle()
        assert one.names[0] == "mine"


def test_edits_are_undone_and_done_again_by_the_keyboard(context, demo):
    with reading(context, demo) as reader:
        page = reader.page
        for key in ("j", "j", "k", "a", "j", "r"):
            page.keyboard.press(key)
            reader.settle()
        looks = [each.get_attribute("class") for each in page.locator(".card").all()]
        assert looks[1].split()[-1] == "accepted"
        assert looks[2].split()[-2:] == ["chosen", "rejected"] or "rejected" in looks[2].split()
        page.keyboard.press("Control+z")
        reader.settle()
        assert page.locator(".card.rejected").count() == 0
        page.keyboard.press("Control+Shift+z")
        reader.settle()
        assert page.locator(".card.rejected").count() == 1
        page.keyboard.press("n")
        page.keyboard.type("keyed")
        page.keyboard.press("Enter")
        reader.settle()
        assert reader.names[2] == "keyed"

        page.focus("#stack")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#tip:not([hidden])")
        assert "foreground" in page.inner_text("#tip") or "background" in page.inner_text("#tip")
        page.focus("#tab-how")
        page.keyboard.press("ArrowRight")
        assert page.locator("#why").is_visible()
        assert page.evaluate("document.activeElement.id") == "tab-why"

        page.click("#cards .help >> nth=0")
        assert "more of the pattern the foreground has" in page.inner_text("#help")
        page.keyboard.press("Escape")
        assert page.locator("#help").is_hidden()


def test_a_click_beside_everything_does_nothing(context, demo):
    with reading(context, demo) as reader:
        before = reader.known
        reader.click("#verdict")
        reader.page.mouse.click(3, 400)
        reader.settle()
        reader.page.click("#colour")
        reader.page.keyboard.press("Escape")
        reader.settle()
        assert reader.page.inner_text("#notices") == ""
        assert reader.known == before


def test_a_note_is_kept_before_its_field_is_left(context, demo):
    with reading(context, demo) as reader:
        page = reader.page
        page.locator(".card textarea").first.press_sequentially("half a ")
        page.wait_for_url(lambda url: "half" in url)
        reader.settle()
        page.keyboard.type("note")  # where the caret was
        assert page.locator(".card textarea").first.input_value() == "half a note"
        page.wait_for_url(lambda url: url.endswith("note1=half+a+note"))
        page.reload()
        reader.settle()
        assert page.locator(".card textarea").first.input_value() == "half a note"


def test_a_number_that_is_typed_is_as_good_as_a_line_that_is_dragged(context, demo):
    with reading(context, demo) as reader:
        reader.page.fill("#knob-pcs", "9")
        reader.page.keyboard.press("Enter")
        reader.settle()
        assert reader.known["values"]["dimension"] == 9
        line = reader.page.evaluate(
            "document.querySelector('#how-many .js-plotly-plot').layout.shapes[2].x0"
        )
        assert line == 9.5
        reader.click("#auto-pcs button")
        assert reader.known["values"]["dimension"] > 12
        assert "pcs" not in reader.page.url


def test_a_refit_that_fails_is_said_and_leaves_the_picture(context, demo):
    with reading(context, demo) as reader:
        page, cards, url = reader.page, reader.page.inner_text("#cards"), reader.page.url
        reader.do(do="set", field="n_foreground", value=999)
        assert "That did not work" in page.inner_text("#notices")
        assert page.inner_text("#cards") == cards
        assert page.url == url
        assert page.input_value("#knob-l") == str(reader.known["values"]["n_foreground"])
        reader.do(do="say", index=0, field="name", value="still here")
        assert page.inner_text("#notices") == ""
        assert reader.names[0] == "still here"
        page.goto(url.partition("#")[0] + "#solver=none")
        page.reload()
        reader.settle()
        assert "solver" in page.inner_text("#notices")
        assert reader.names[0] == "still here"


def test_p_and_stability_are_computed_behind_and_become_stale(context, demo):
    with reading(context, demo) as reader:
        page = reader.page
        reader.click("#jobs button >> text=Compute stability")
        page.wait_for_selector("#jobs progress")
        reader.click("#jobs button >> text=Cancel")
        page.wait_for_selector("#jobs button >> text=Compute stability")
        assert page.inner_text("[data-fact=stability] dd >> nth=0").startswith("–")
        reader.click("#jobs button >> text=Compute p")
        page.wait_for_selector("#jobs progress", state="detached")
        reader.settle()
        assert float(page.inner_text("[data-fact=p] dd >> nth=0").split()[0]) < 0.05
        assert page.locator(".stale").count() == 0
        reader.click(".card .reject >> nth=2")
        assert page.locator(".stale").count() > 0


def test_names_of_anything_stay_text(context, tmp_path):
    evil = "</script><img src=x onerror=document.title='no'>"
    rng = np.random.default_rng(0)
    data = simulated(
        names=[evil, "<b>bold</b>", "%{x}", "&lt;", "d"],
        metadata={evil: rng.choice([evil, "<i>b</i>"], 120)},
        groups=np.repeat([evil, "g<2>", "%{y}", "e", "f", "h"], 20),
        background_groups=np.repeat(["p", "q", "r", "s", "t", "u"], 20),
        row_names=[[f"<u>{i}" for i in range(120)], None],
        source=Source("memory", title=evil),
    )
    with served(data, tmp_path) as server, reading(context, server) as reader:
        page = reader.page
        reader.do(do="say", index=0, field="name", value=evil[:80])
        reader.do(do="say", index=0, field="note", value=evil)
        reader.do(do="set", field="colour", value=f"column:{evil}")
        reader.click("#tab-why")
        assert page.inner_text("h1") == evil
        assert page.title() == "contrica explorer"
        assert sorted(page.locator("#legend button").all_inner_texts())[0] == evil
        assert page.locator("img[src=x], .card b:text('bold'), svg b, svg i").count() == 0
        label = page.evaluate("document.querySelector('#scatter .g-xtitle').textContent")
        assert label == f"{evil[:33]}…"
        shown = page.evaluate(
            "[...document.querySelectorAll('#why-figure .ytick')].map((each) => each.textContent)"
        )
        assert "g<2>" in shown
        assert "%{y}" in [each.replace("\u200b", "") for each in shown]
        assert evil in reader.leading()
        reader.lasso([(0.4, 0.1), (0.9, 0.1), (0.9, 0.9), (0.4, 0.9)])
        assert page.title() == "contrica explorer"
        assert page.locator("img[src=x]").count() == 0


def test_one_pattern_missing_metadata_and_ten_thousand_columns(context, tmp_path):
    rng = np.random.default_rng(1)
    many = {f"column {i}": rng.choice(["a", "b"], 120) for i in range(10_000)}
    ages = np.where(rng.random(120) < 0.3, np.nan, rng.normal(size=120))
    data = simulated(metadata={"age": ages, **many})
    with served(data, tmp_path) as server, reading(context, server) as reader:
        page = reader.page
        reader.do(do="set", field="n_foreground", value=1)
        assert len(reader.names) == 1
        assert page.locator("#scatter .scatterlayer .fills path").count() > 0  # a histogram
        page.click("#tab-rows")
        assert "Drag across" in page.inner_text("#rows")
        page.click("#tab-how")
        reader.lasso([(0.6, 0.3), (0.99, 0.6)], closed=False)  # a range of it
        assert 20 < int(page.inner_text("#rows h2").split()[0]) < 100
        reader.do(do="undo")
        reader.do(do="set", field="colour", value="column:age")
        assert "no value" in page.inner_text("#legend")
        page.click("#colour")
        page.wait_for_selector(".dash-dropdown-search")
        page.fill(".dash-dropdown-search", "column 9876")
        option = page.locator(
            ".dash-dropdown-content .dash-options-list-option >> text=column 9876"
        )
        option.wait_for()
        offered = page.locator(".dash-dropdown-content .dash-options-list-option").count()
        assert offered <= 41
        option.click()
        reader.settle()
        assert reader.known["values"]["colour"] == "column:column 9876"
        assert sorted(page.locator("#legend button").all_inner_texts()) == ["a", "b", "background"]


def test_who_leaves_while_something_is_computed_finds_the_page_alive(context, tmp_path):
    with served(simulated(), tmp_path) as server:
        with reading(context, server) as reader:
            url = reader.page.url
            reader.page.click("#jobs button >> text=Compute stability")
            reader.page.evaluate("contricaDesk.push({do: 'set', field: 'dimension', value: 3})")
            reader.page.goto("about:blank")
            reader.page.goto(url)
            reader.settle()
            assert reader.page.locator(".card").count() > 0
        # and says it when the server goes
        reader = None
        with a_reader_of(context, server) as reader:
            server.stop()
            reader.page.click(".card .accept >> nth=0")
            reader.page.wait_for_selector("#offline:not([hidden])")
            assert "does not answer" in reader.page.inner_text("#offline")


@contextmanager
def a_reader_of(context, server):
    """A reader who may hear that the server is gone."""
    from tests.test_explorer.browsing import Reader

    reader = Reader(context, server)
    try:
        yield reader.open()
    finally:
        reader.close()


def test_nothing_is_wider_than_the_screen_of_a_tablet(context, demo):
    with reading(context, demo) as reader:
        for width in (1280, 820, 768):
            reader.page.set_viewport_size({"width": width, "height": 900})
            reader.settle()
            assert reader.page.evaluate("document.documentElement.scrollWidth") <= width


# Frames per second while the plot is moved by hand for two seconds.
FRAMES = """([x, y]) => new Promise((done) => {
  const cover = document.querySelector(".dragcover"), times = [];
  const step = (now) => {
    times.push(now);
    const i = times.length;
    const clientX = x + 60 * Math.sin(i / 9), clientY = y + 50 * Math.cos(i / 7);
    cover.dispatchEvent(new MouseEvent("mousemove", {clientX, clientY, bubbles: true}));
    if (now - times[0] < 2000) requestAnimationFrame(step);
    else done((1000 * (times.length - 1)) / (now - times[0]));
  };
  requestAnimationFrame(step);
})
"""


@pytest.mark.timing
def test_two_hundred_thousand_points_move_at_more_than_twenty_frames_per_second(context, tmp_path):
    rng = np.random.default_rng(0)
    n = 100_000
    X, Y = rng.laplace(size=(n, 6)), rng.laplace(size=(n, 6))
    X[:, :2] += 5 * rng.choice([0, 1], (n, 2))
    data = ExplorerData.of(X, Y, parameters={"solver": "subspace"})
    with served(data, tmp_path) as server, reading(context, server) as reader:
        page = reader.page
        assert "All 200,000 rows are drawn" in page.inner_text("#scatter-words")
        assert int(page.get_attribute("#dots", "data-count")) == 2 * n
        page.click("[data-mode=pan]")
        box = page.locator("#scatter .nsewdrag").bounding_box()
        x, y = box["x"] + 200, box["y"] + 200
        page.mouse.move(x, y)
        page.mouse.down()
        # the best of three: other programs of the machine take their share
        frames = max(page.evaluate(FRAMES, [x, y]) for _ in range(3))
        page.mouse.up()
        assert frames > 20
        page.wait_for_timeout(400)
        assert int(page.get_attribute("#dots", "data-count")) == 2 * n  # all again, at rest
