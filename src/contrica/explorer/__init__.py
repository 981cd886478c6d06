"""The explorer: foreground against background in a browser, with the knobs of the fit beside them."""

from contrica.explorer._data import ExplorerData
from contrica.explorer._explorer import Explorer
from contrica.explorer._open import open_page
from contrica.explorer._state import History, ViewState

__all__ = ["Explorer", "ExplorerData", "History", "ViewState", "open_page"]
