"""The report in a real browser: it loads, asks nothing of anybody, and does what is clicked."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from contrica import ContrastiveICA
from contrica.datasets import load_digits_on_photos
from contrica.report import build
from contrica.report._material import Material, Samples
from contrica.report._page import page as page_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without a sandbox, which containers do not let it have, and without what it asks of its maker.
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield started
        started.close()


@contextmanager
def opened(browser, path, **options):
    """A page, once its script is done; at the end nothing was said on the console, or asked for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if options.get("java_script_enabled", True):
        page.wait_for_selector("html[data-ready]")
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo finds, of fewer images."""
    data = load_digits_on_photos(1000)
    model = ContrastiveICA(3, random_state=0).fit(data.foreground, background=data.background)
    path = tmp_path_factory.mktemp("report") / "report.html"
    model.report(
        *(path, data.foreground),
        background=data.background,
        names=[f"image <{i}>" for i in range(len(data.foreground))],
        metadata={
            "digits": np.array(data.label_names)[data.labels],
            "spread": data.foreground.std(axis=1),
        },
        image_shape=data.image_shape,
    )
    return path, model.transform(data.foreground)


def picture(page):
    """All pixels of the plot, and how many of them are of the style's colours."""
    return page.evaluate(
        """() => {
          const canvas = document.getElementById("plot");
          const copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const context = copy.getContext("2d", {willReadFrequently: true});
          context.drawImage(canvas, 0, 0);
          const {data} = context.getImageData(0, 0, copy.width, copy.height);
          let grey = 0, coloured = 0;
          for (let i = 0; i < data.length; i += 4) {
            const spread = Math.max(data[i], data[i + 1], data[i + 2])
              - Math.min(data[i], data[i + 1], data[i + 2]);
            if (spread > 60) coloured += 1;
            else if (data[i] < 210 && data[i] > 140) grey += 1;  // grid lines are lighter
          }
          return {grey, coloured, corner: [...data.slice(0, 3)], url: copy.toDataURL()};
        }"""
    )


def in_view(page):
    """Where the plot is, once the page is scrolled so far."""
    page.locator("#plot").scroll_into_view_if_needed()
    return page.locator("#plot").bounding_box()


def test_hovering_shows_the_name_of_a_row(browser, demo):
    path, _ = demo
    with opened(browser, path) as page:
        box = in_view(page)
        tip = page.locator("#tip")
        assert tip.is_hidden()
        for x in np.linspace(0.2, 0.8, 25):
            page.mouse.move(box["x"] + x * box["width"], box["y"] + 0.55 * box["height"])
            if tip.is_visible() and "foreground" in tip.inner_text():
                break
        assert tip.inner_text().startswith("image <")
        assert "digits: " in tip.inner_text()
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        assert tip.is_hidden()


def test_the_background_can_be_hidden(browser, demo):
    path, _ = demo
    with opened(browser, path) as page:
        before = picture(page)
        assert "1000 background rows" in page.inner_text("#plot-status")
        page.click("#show-background")
        after = picture(page)
        assert after["grey"] < 0.5 * before["grey"]
        assert after["coloured"] > 0.5 * before["coloured"]
        assert page.inner_text("#plot-status") == "1000 foreground rows."
        page.click("#show-background")
        assert picture(page)["url"] == before["url"]


def test_colours_follow_the_column_that_is_chosen(browser, demo):
    path, _ = demo
    with opened(browser, path) as page:
        entries = page.locator("#legend button")
        assert sorted(entries.all_inner_texts()) == ["0", "1", "both", "none"]
        before = picture(page)["url"]
        page.select_option("#colour-by", label="spread")
        assert page.locator("#legend .ramp").count() == 1
        by_number = picture(page)["url"]
        page.select_option("#colour-by", label="nothing")
        assert entries.all_inner_texts() == ["foreground"]
        assert len({before, by_number, picture(page)["url"]}) == 3


def test_a_kind_can_be_hidden_from_the_legend(browser, demo):
    path, _ = demo
    with opened(browser, path) as page:
        page.click("#show-background")
        before = picture(page)["coloured"]
        both = page.get_by_role("button", name="both")
        both.click()
        assert both.get_attribute("aria-pressed") == "false"
        assert picture(page)["coloured"] < before
        both.click()
        assert picture(page)["coloured"] == before


def test_axes_are_chosen_and_one_pattern_is_a_histogram(browser, demo):
    path, _ = demo
    with opened(browser, path) as page:
        pictures = [picture(page)["url"]]
        page.select_option("#axis-y", label="pattern 3")
        pictures.append(picture(page)["url"])
        page.select_option("#axis-y", label="histogram of x")
        pictures.append(picture(page)["url"])
        box = in_view(page)
        page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
        assert "foreground" in page.inner_text("#tip")
        assert " %" in page.inner_text("#tip")
        page.select_option("#axis-x", label="pattern 2")
        pictures.append(picture(page)["url"])
        assert len(set(pictures)) == 4


def test_rows_are_reached_by_the_keyboard_in_the_order_of_their_scores(browser, demo):
    path, scores = demo
    order = np.argsort(scores[:, 0])
    with opened(browser, path) as page:
        page.click("#show-background")
        for _ in range(30):  # from link to control to plot
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "plot":
                break
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#plot-status").startswith(f"image <{order[0]}> (foreground)")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#plot-status").startswith(f"image <{order[1]}> (foreground)")
        page.keyboard.press("Escape")
        assert page.locator("#tip").is_hidden()


def test_it_is_drawn_dark_on_a_dark_screen_and_light_on_paper(browser, demo):
    path, _ = demo
    with opened(browser, path, color_scheme="dark") as page:
        assert max(picture(page)["corner"]) < 60
        page.emulate_media(media="print", color_scheme="dark")
        page.wait_for_function("() => matchMedia('print').matches")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert min(picture(page)["corner"]) > 240
        assert page.locator("nav").is_hidden()
        assert page.locator(".controls").is_hidden()
        pdf = page.pdf(format="A4")
        assert pdf[:5] == b"%PDF-"


def test_without_scripts_there_is_a_picture(browser, demo):
    path, _ = demo
    with opened(browser, path, java_script_enabled=False) as page:
        still = page.locator("noscript img")
        assert still.is_visible()
        assert still.evaluate("each => each.naturalWidth") == 360


def test_nothing_is_wider_than_a_phone_or_a_tablet(browser, demo):
    path, _ = demo
    for width in (390, 820):
        with opened(browser, path) as page:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.timing
def test_a_hundred_thousand_points_are_there_within_two_seconds(browser, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(200, 5)), rng.laplace(size=(200, 5))
    X[:, 0] *= 3
    model = ContrastiveICA(5, solver="subspace", n_foreground=5, random_state=0)
    model.fit(X, background=Y)
    half = 50_000
    kinds = {"kind": rng.choice(["a", "b", "c"], half), "age": rng.normal(size=half)}
    fore, back = (
        Samples.of(name, rng.standard_t(5, (half, 5)), kinds, [f"cell_{i}" for i in range(half)])
        for name in ("foreground", "background")
    )
    path = tmp_path / "large.html"
    path.write_text(page_of(Material(model, fore, (back,))), encoding="utf-8")
    with opened(browser, path) as page:
        assert int(page.get_attribute("html", "data-ready")) < 2000
        assert "50000 foreground and 50000 background rows" in page.inner_text("#plot-status")


def test_user_strings_stay_text(browser, tmp_path):
    rng = np.random.default_rng(1)
    X, Y = rng.laplace(size=(60, 4)), rng.laplace(size=(60, 4))
    X[:, 0] *= 4
    evil = "</script><img src=x onerror=document.title='no'>"
    model = ContrastiveICA(1, solver="subspace", n_foreground=2, random_state=0)
    model.fit(X, background=Y)
    path = tmp_path / "evil.html"
    html = build(model, X, background=Y, metadata={evil: [evil, "b"] * 30}, title=evil)
    path.write_text(html, encoding="utf-8")
    with opened(browser, path) as page:
        assert page.title() == f"{evil} – contrica report"
        assert page.inner_text("h1") == evil
        assert sorted(page.locator("#legend button").all_inner_texts()) == [evil, "b"]
        assert page.locator("main img[src=x]").count() == 0
