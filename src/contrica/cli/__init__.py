"""The command line: ``contrica example | fit | transform | report | explore | ranks | …``."""

try:
    import rich  # noqa: F401 - as what is missing is better said here than by a traceback
    import typer  # noqa: F401
except ImportError as error:
    raise SystemExit(f"the command line needs {error.name}: pip install 'contrica[cli]'") from error

from contrica.cli.commands import app, main

__all__ = ["app", "main"]
