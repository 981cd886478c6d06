"""Somebody clicks and types without a plan: no error, no word on the console, no edit that is lost."""

import random

import numpy as np
import pytest

from contrica.explorer import ExplorerData

pytest.importorskip("dash", reason="dash is not installed")

from contrica.explorer._server import Server
from contrica.explorer._state import ViewState
from tests.test_explorer.browsing import a_browser, reading

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

# What is clicked: everything that can be, but what leaves the page.
CLICKABLE = (
    ".panel button:not([disabled]), .card button:not([disabled]), .head button:not([disabled]), summary, "
    "#jobs button"
)


def data():
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(size=(150, 6)), rng.laplace(size=(150, 6))
    X[:, :3] += 6 * rng.choice([0, 1], (150, 3))
    kinds = {"kind": rng.choice(["a", "<b>"], 150), "age": rng.normal(size=150)}
    return ExplorerData.of(X, Y, metadata=kinds, parameters={"solver": "subspace"})


class Monkey:
    """Makes things at random, and knows what it said of each pattern."""

    def __init__(self, reader, seed):
        self.reader, self.page, self.chance = reader, reader.page, random.Random(seed)
        self.done = []

    def step(self):
        actions = [
            *([self.click] * 5),
            *(self.name, self.note, self.pick, self.number, self.key, self.drag, self.lasso),
        ]
        action = self.chance.choice(actions)
        self.done.append(action.__name__)
        action()

    def click(self):
        found = [each for each in self.page.query_selector_all(CLICKABLE) if each.is_visible()]
        at = self.chance.choice(found)
        self.done[-1] += " " + (at.get_attribute("data-edit") or at.inner_text())
        if at.get_attribute("data-export") is not None:
            return
        try:
            at.click(timeout=10_000)
        except playwright.Error:
            # an answer that was on its way has taken it off the page
            if at.is_visible():
                raise

    def _said(self, what, selector):
        # an answer on its way, of an undo say, would change the field under the keys
        self.reader.settle()
        cards = self.page.locator(f".card {selector}")
        i, words = self.chance.randrange(cards.count()), f"{what} {len(self.done)} <i>"
        cards.nth(i).fill(words)
        if self.chance.random() < 0.5:
            self.page.keyboard.press("Tab")
        else:
            self.page.click("h1")
        self.done[-1] += f" {i}"
        # settled here, so that the next click does not undo it before it is looked for
        self.reader.settle()
        shown = [each.input_value() for each in self.page.locator(f".card {selector}").all()]
        assert words in shown, (words, shown, self.done[-5:])
        assert any(words in (each.name, each.note) for each in self.state.edits)

    @property
    def state(self):
        return ViewState.decode(self.reader.known["address"])

    def name(self):
        self._said("name", "[data-key=name]")

    def note(self):
        self._said("note", "[data-key=note]")

    def pick(self):
        field, value = self.chance.choice(
            [
                *(("scale", each) for each in ("none", "pooled", "each")),
                *(("projection", each) for each in ("auto", "filter", "pattern")),
                *(("solver", each) for each in ("subspace", "auto", "paper")),
                *(("colour", each) for each in ("column:kind", "column:age", "variable:x1")),
            ]
        )
        self.done[-1] += f" {field} {value}"
        self.reader.do(do="set", field=field, value=value)

    def number(self):
        knob, value = self.chance.choice(["l", "r", "pcs"]), self.chance.choice([0, 1, 2, 3, 5, 99])
        for last in (False, False, True):
            self.page.click("#tab-how")
            try:
                self.page.fill(f"#knob-{knob}", str(value), timeout=5_000)
                break
            except playwright.Error:  # a lasso that was drawn before has just opened its own tab
                if last:
                    raise
        self.page.keyboard.press("Enter")

    def key(self):
        self.page.click("h1")
        self.page.keyboard.press(
            self.chance.choice(["j", "k", "a", "r", "Control+z", "Control+Shift+z"])
        )

    def drag(self):
        self.reader.drag_line(self.chance.randrange(3), self.chance.uniform(0.5, 6.5))

    def lasso(self):
        box = self.page.locator("#scatter .nsewdrag").bounding_box()
        self.page.mouse.move(box["x"] + 20, max(box["y"] + 20, 70))
        self.page.mouse.down()
        for u, v in ((200, 30), (260, 200), (40, 160)):
            self.page.mouse.move(box["x"] + u, box["y"] + v, steps=2)
        self.page.mouse.up()


def wander(server, context, n_steps, seed):
    """What the page shows at the end, and what it shows once it is loaded again."""
    with reading(context, server) as reader:
        monkey = Monkey(reader, seed)
        for i in range(n_steps):
            monkey.step()
            # now and then several things are asked for before the first is answered
            if i % 3 == 2:
                reader.settle()
                assert reader.page.locator(".card").count() > 0, monkey.done[-5:]
                assert "Something went wrong" not in reader.page.inner_text("#notices"), monkey.done
        reader.settle()
        before = (reader.known["values"], reader.names, monkey.state)
        reader.page.reload()
        reader.settle()
        return before, (reader.known["values"], reader.names, monkey.state)


@pytest.fixture(scope="module")
def context():
    with a_browser() as browser:
        found = browser.new_context()
        yield found
        found.close()


@pytest.fixture
def server(tmp_path):
    started = Server(data(), port=0, folder=tmp_path).start()
    yield started
    started.stop()


def test_thirty_random_clicks_and_edits_lose_nothing(server, context):
    before, again = wander(server, context, 30, seed=0)
    assert again == before


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_hundred_random_clicks_and_edits_lose_nothing(server, context, seed):
    before, again = wander(server, context, 100, seed)
    assert again == before
