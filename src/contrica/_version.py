"""The version that was installed, which comes from the repository's tags."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("contrica")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.1.0.dev0"
