"""Everything that a reader of the page can set, as one value that fits into an address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from contrica.errors import ParameterError, unmarked

__all__ = ["FIT_FIELDS", "Edit", "History", "ViewState"]

# Longest texts: of an address that is read, of a name and of a note.
MAX_ADDRESS, MAX_NAME, MAX_NOTE = 60_000, 80, 500
# States that can be gone back to.
MAX_HISTORY = 200
# Patterns that a page shows, and so the largest number of one.
MAX_PATTERNS = 1000

SOLVERS = ("auto", "joint", "subspace", "paper")
SCALES = ("none", "pooled", "each")
PROJECTIONS = ("auto", "filter", "pattern")
DRAWN = ("points", "density")
VERDICTS = ("", "accepted", "rejected")


@dataclass(frozen=True)
class Edit:
    """What a reader has said of a pattern.

    Attributes
    ----------
    index : int
        Of the pattern, from 0, in the fit that it was said of.
    name, note : str
    verdict : {"", "accepted", "rejected"}
    fit : str
        That fit, as `ViewState.fit_text` has it; empty for the state's own.
    """

    index: int
    name: str = ""
    note: str = ""
    verdict: str = ""
    fit: str = ""

    def __post_init__(self) -> None:
        _INDEX("pattern", self.index)
        for key, longest in (("name", MAX_NAME), ("note", MAX_NOTE)):
            size = len(getattr(self, key))
            if size > longest:
                raise ParameterError(
                    "text-length",
                    f"a {key} of {size} characters was given",
                    f"at most {longest} are kept",
                    "Shorten it.",
                    key,
                )
        _one_of(VERDICTS)("verdict", self.verdict)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not (self.name or self.note or self.verdict)


@dataclass(frozen=True)
class ViewState:
    """What is asked of the fit, what is drawn, and what a reader has said of the patterns.

    Attributes
    ----------
    solver : {"auto", "joint", "subspace", "paper"}
    scale : {"none", "pooled", "each"}
    projection : {"auto", "filter", "pattern"}
    n_foreground, n_background : int or None
        ℓ and r; ``None`` lets the data choose. With solver "subspace" ℓ is the dimension of the contrast
        subspace.
    dimension : int or None
        Principal components to work in; ``None`` is the library's rule.
    n_components : int or None
        Patterns to keep; ``None`` keeps those that stand out.
    random_state : int
    x, y : int
        Patterns on the axes, from 0; the same one twice is a histogram.
    card : int
        The pattern whose card is open.
    colour : str
        "dataset", "groups", "column:NAME" or "variable:NAME".
    background : bool
        Whether the background is drawn.
    drawn : {"points", "density"}
    order : tuple of int
        Numbers of the patterns as a reader has put them; empty for the fit's order.
    edits : tuple of Edit
    """

    solver: str = "auto"
    scale: str = "none"
    projection: str = "auto"
    n_foreground: int | None = None
    n_background: int | None = None
    dimension: int | None = None
    n_components: int | None = None
    random_state: int = 0
    x: int = 0
    y: int = 1
    card: int = 0
    colour: str = "dataset"
    background: bool = True
    drawn: str = "points"
    order: tuple[int, ...] = ()
    edits: tuple[Edit, ...] = field(default=())

    def __post_init__(self) -> None:
        for name, (key, check) in _CHECKS.items():
            check(key, getattr(self, name))
        if len(set(self.order)) != len(self.order):
            raise _refused(
                "order", ".".join(map(str, self.order)), "each pattern can be in it once"
            )

    # --- as text ---

    def encode(self) -> str:
        """As the query of an address: what is not at its default.

        Returns
        -------
        str
        """
        pairs = self._pairs([name for name in _CHECKS if name != "order"])
        if self.order:
            pairs.append(("order", ".".join(map(str, self.order))))
        for edit in self.edits:
            said = [
                (f"{key}{edit.index + 1}", getattr(edit, key))
                for key in _SAID
                if getattr(edit, key)
            ]
            pairs += [("was", f"{edit.fit}&{urlencode(said)}")] if edit.fit else said
        return urlencode(pairs)

    @property
    def fit_text(self) -> str:
        """The part of it that a fit depends on, as text; never empty."""
        return urlencode(self._pairs(FIT_FIELDS)) or "solver=auto"

    def _pairs(self, names: Any) -> list[tuple[str, str]]:
        return [
            (_CHECKS[name][0], _text(getattr(self, name)))
            for name in names
            if getattr(self, name) != _DEFAULTS[name]
        ]

    @classmethod
    def decode(cls, text: str) -> ViewState:
        """Read an address; what cannot be meant is refused in words.

        Parameters
        ----------
        text : str
            With or without the question mark before it.

        Returns
        -------
        ViewState

        Examples
        --------
        >>> state = ViewState(solver="subspace", n_foreground=3)
        >>> state.encode()
        'solver=subspace&l=3'
        >>> ViewState.decode(state.encode()) == state
        True
        """
        values: dict[str, Any] = {}
        said: dict[tuple[str, int], dict[str, str]] = {}
        for key, value in _parsed(text):
            if key in _FIELDS:
                if _FIELDS[key] in values:
                    raise _refused(key, value, "it can be given once")
                values[_FIELDS[key]] = _read(key, value)
            elif key == "was":
                fit, own = _past(value)
                for name, index, each in own:
                    said.setdefault((fit, index), {})[name] = each
            else:
                name, index = _said_key(key, value)
                said.setdefault(("", index), {})[name] = value
        edits = [Edit(index, fit=fit, **own) for (fit, index), own in said.items()]
        return cls(**values, edits=tuple(each for each in edits if not each.is_empty))

    # --- changed ---

    def edit(self, index: int, **said: Any) -> ViewState:
        """Say something of a pattern of this fit: its ``name``, ``note`` or ``verdict``.

        Parameters
        ----------
        index : int
        **said : str

        Returns
        -------
        ViewState
        """
        new = replace(self.edit_of(index), **said)
        rest = [each for each in self.edits if each.fit or each.index != index]
        return replace(self, edits=tuple([*rest, *([] if new.is_empty else [new])]))

    def edit_of(self, index: int) -> Edit:
        """What was said of a pattern of this fit; empty where nothing was.

        Parameters
        ----------
        index : int

        Returns
        -------
        Edit
        """
        own = [each for each in self.edits if not each.fit and each.index == index]
        return own[0] if own else Edit(index)

    def order_of(self, count: int) -> list[int]:
        """Numbers of so many patterns in the order of the page.

        Parameters
        ----------
        count : int

        Returns
        -------
        list of int
        """
        first = [i for i in self.order if i < count]
        return [*first, *(i for i in range(count) if i not in first)]

    def move(self, index: int, step: int, count: int) -> ViewState:
        """Put a pattern further up or down.

        Parameters
        ----------
        index, step, count : int
            Of the pattern, places to move it by, and of all patterns.

        Returns
        -------
        ViewState
        """
        order = self.order_of(count)
        place = order.index(index)
        order.insert(min(max(place + step, 0), count - 1), order.pop(place))
        return replace(self, order=() if order == list(range(count)) else tuple(order))


@dataclass(frozen=True)
class History:
    """States that were left, the present one, and those that were undone.

    Examples
    --------
    >>> history = History(ViewState()).then(ViewState(scale="pooled"))
    >>> history.undo().now.scale, history.undo().redo().now.scale
    ('none', 'pooled')
    """

    now: ViewState
    past: tuple[ViewState, ...] = ()
    future: tuple[ViewState, ...] = ()

    def then(self, state: ViewState) -> History:
        """Go on to a state; what was undone is given up."""
        if state == self.now:
            return self
        return History(state, (*self.past, self.now)[-MAX_HISTORY:])

    def undo(self) -> History:
        """The state before, where there is one."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.now, *self.future))

    def redo(self) -> History:
        """The state that was undone last, where there is one."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.now), self.future[1:])


# --- checks ---


def _refused(key: str, value: object, needed: str) -> ParameterError:
    shown = str(value) if len(str(value)) < 60 else f"{str(value)[:60]}…"
    return ParameterError(
        "address",
        f"the address says {unmarked(key)}={unmarked(shown)}",
        needed,
        "Open the page without it, or correct the address.",
        key,
    )


def _one_of(values: tuple[str, ...]) -> Callable[[str, Any], None]:
    def check(key: str, value: Any) -> None:
        if value not in values:
            raise _refused(key, value, f"it can be {', '.join(filter(None, values))}")

    return check


def _whole(low: int, high: int, *, automatic: bool = False) -> Callable[[str, Any], None]:
    def check(key: str, value: Any) -> None:
        if value is None and automatic:
            return
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _refused(key, value, f"a whole number from {low} to {high} is needed")

    return check


def _is_switch(key: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise _refused(key, value, "1 or 0 is needed")


def _is_colour(key: str, value: Any) -> None:
    kind, _, name = str(value).partition(":")
    if value not in ("dataset", "groups") and not (kind in ("column", "variable") and name):
        raise _refused(key, value, "dataset, groups, column:NAME or variable:NAME is needed")


def _is_order(key: str, value: Any) -> None:
    for each in value:
        _whole(0, MAX_PATTERNS)(key, each)


_COUNT = _whole(1, MAX_PATTERNS, automatic=True)
_INDEX = _whole(0, MAX_PATTERNS)
# What an address calls every field, and what it can be.
_CHECKS: dict[str, tuple[str, Callable[[str, Any], None]]] = {
    "solver": ("solver", _one_of(SOLVERS)),
    "scale": ("scale", _one_of(SCALES)),
    "projection": ("projection", _one_of(PROJECTIONS)),
    "n_foreground": ("l", _COUNT),
    "n_background": ("r", _COUNT),
    "dimension": ("pcs", _COUNT),
    "n_components": ("keep", _COUNT),
    "random_state": ("seed", _whole(0, 2**32 - 1)),
    "x": ("x", _INDEX),
    "y": ("y", _INDEX),
    "card": ("card", _INDEX),
    "colour": ("colour", _is_colour),
    "background": ("background", _is_switch),
    "drawn": ("drawn", _one_of(DRAWN)),
    "order": ("order", _is_order),
}
# What a fit depends on.
FIT_FIELDS = tuple(_CHECKS)[:8]
_FIELDS = {key: name for name, (key, _) in _CHECKS.items()}
_DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(ViewState)}
_SAID = ("name", "note", "verdict")


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parsed(text: str) -> list[tuple[str, str]]:
    text = text.removeprefix("?")
    if len(text) > MAX_ADDRESS:
        raise _refused("…", f"{len(text)} characters", f"at most {MAX_ADDRESS} are read")
    try:
        return parse_qsl(
            *(text, True), strict_parsing=bool(text), errors="strict", max_num_fields=4000
        )
    except ValueError as error:
        raise _refused("…", text, "key=value is needed, with & between") from error


def _read(key: str, value: str) -> Any:
    """A value as its field has it; what it can be is checked there."""
    name = _FIELDS[key]
    if name == "order":
        return tuple(_number(key, each) for each in value.split("."))
    if name == "background":
        if value not in ("0", "1"):
            raise _refused(key, value, "1 or 0 is needed")
        return value == "1"
    texts = ("solver", "scale", "projection", "colour", "drawn")
    return value if name in texts else _number(key, value)


def _number(key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 12):
        raise _refused(key, value, "a whole number is needed")
    return int(value)


def _said_key(key: str, value: str) -> tuple[str, int]:
    """Which of name, note and verdict, and the pattern's number from 0."""
    name = key.rstrip("0123456789")
    digits = key[len(name) :]
    if name not in _SAID or not digits or len(digits) > 4 or digits.startswith("0"):
        raise _refused(key, value, "there is nothing of that name to set")
    return name, int(digits) - 1


def _past(text: str) -> tuple[str, list[tuple[str, int, str]]]:
    """A fit that was left, and what was said of its patterns."""
    fit, said = [], []
    for key, value in _parsed(text):
        if key in _FIELDS and _FIELDS[key] in FIT_FIELDS:
            fit.append((key, value))
        else:
            name, index = _said_key(key, value)
            said.append((name, index, value))
    state = ViewState(**{_FIELDS[key]: _read(key, value) for key, value in fit})
    return state.fit_text, said
