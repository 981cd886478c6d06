"""One HTML file that says what a fit found: to read, to look at, to print and to cite from."""

from contrica.report._build import build, write

__all__ = ["build", "write"]
