"""A real browser on a real server, for tests of the explorer's page."""

import json
import shutil
from contextlib import contextmanager

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without a sandbox, which containers do not let it have, and without what it asks of its maker.
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
# Milliseconds that an answer may take, on a machine that does other things too.
PATIENCE = 60_000


@contextmanager
def a_browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield started
        started.close()


class Reader:
    """Who looks at the page: a browser of its own, and what it hears."""

    def __init__(self, context, server, width=1280, height=900):
        self.server, self.context = server, context
        context.clear_cookies()  # a session of its own
        self.page = context.new_page()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.set_default_timeout(PATIENCE)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, address=None):
        self.page.goto(address or self.server.address)
        self.settle()
        return self

    def settle(self):
        """Wait until everything that was asked for is drawn."""
        self.page.wait_for_timeout(30)  # what was clicked is sent by now
        self.page.wait_for_selector("html[data-ready]:not([data-busy])", timeout=PATIENCE)
        return self

    def do(self, **edit):
        """An edit, as elements of the page make them."""
        self.page.evaluate(f"contricaDesk.push({json.dumps(edit)})")
        return self.settle()

    def click(self, selector):
        self.page.click(selector)
        return self.settle()

    @property
    def known(self):
        """What the page knows of its state."""
        return self.page.evaluate("contricaDesk.state()")

    @property
    def names(self):
        """What the cards are called."""
        fields = self.page.locator(".card .top input")
        shown = [each.input_value() for each in fields.all()]
        return [name or fields.nth(i).get_attribute("placeholder") for i, name in enumerate(shown)]

    def leading(self, card=0):
        return self.page.locator(".card").nth(card).locator(".bars dt").all_inner_texts()

    def drag_line(self, row, to):
        """Take the line of ℓ, r or the dimension (rows 0 to 2) to a place of its axis."""
        self.page.click("#tab-how")
        self.page.locator("#how-many").scroll_into_view_if_needed()
        start, end, y = self.page.evaluate(
            """([row, to]) => {
              const plot = document.querySelector("#how-many .js-plotly-plot");
              const box = plot.getBoundingClientRect();
              const all = plot._fullLayout, end = row ? row + 1 : "";
              const x = all[`xaxis${end}`], y = all[`yaxis${end}`], from = all.shapes[row].x0;
              const at = (value) => box.left + x._offset + x.l2p(value);
              return [at(from), at(to), box.top + y._offset + 0.7 * y._length];
            }""",
            [row, to],
        )
        mouse = self.page.mouse
        mouse.move(start, y)
        mouse.down()
        mouse.move((start + end) / 2, y, steps=3)
        mouse.move(end, y, steps=3)
        mouse.up()
        return self.settle()

    def lasso(self, corners, *, closed=True):
        """Draw around rows; corners are shares of the plot's width and height, from its upper left."""
        self.page.locator("#stack").scroll_into_view_if_needed()
        box = self.page.locator("#scatter .nsewdrag").bounding_box()
        points = [(box["x"] + u * box["width"], box["y"] + v * box["height"]) for u, v in corners]
        mouse = self.page.mouse
        mouse.move(*points[0])
        mouse.down()
        for point in (*points[1:], *points[: int(closed)]):
            mouse.move(*point, steps=4)
        mouse.up()
        self.page.wait_for_selector("#tab-rows[aria-selected=true]")  # plotly takes its time
        return self.settle()

    def close(self):
        self.page.close()

    def heard_nothing(self):
        """No word on the console, and no request that leaves the machine."""
        assert "; ".join(self.said) == ""
        own = (self.server.origin, "data:", "blob:")
        assert [url for url in self.asked if not url.startswith(own)] == []


@contextmanager
def reading(context, server, **more):
    """A reader of the page, who at the end has heard nothing that a reader should not."""
    reader = Reader(context, server, **more)
    try:
        yield reader.open()
    finally:
        reader.close()
    reader.heard_nothing()
