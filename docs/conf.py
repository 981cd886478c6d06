"""The documentation site: `make docs` builds it into docs/_build/html, with warnings as errors."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import contrica

# Figures and fits of the tutorials run on few cores, beside one another in one process.
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "contrica"
author = "The contrica developers"
copyright = "the contrica developers"
version = release = contrica.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "**/*.ipynb", "tutorials/*.py", "tutorials/*.json"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = False

# Pages are plain markdown that reads well in a repository too; headings have GitHub's anchors.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/tutorials"],
    "gallery_dirs": ["tutorials"],
    "filename_pattern": r"/\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 10_000,
    "abort_on_example_error": False,  # all of them are told; a failed one fails the build
    "reset_modules": ("matplotlib",),
    "doc_module": ("contrica",),
    "backreferences_dir": None,
}

html_theme = "pydata_sphinx_theme"
html_title = "contrica"
html_static_path = ["_static"]
html_css_files = ["contrica.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}

# What Sphinx itself says of callables in its settings; nothing of ours is hidden by it.
suppress_warnings = ["config.cache"]
# Tutorials show the warnings of a fit as text where they matter.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def _documented_name(text: str) -> str | None:
    """The full name of what a span of code names, if it is of contrica and public."""
    name = text.removesuffix("()")
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    if "." not in name:
        return f"contrica.{name}" if name in contrica.__all__ else None
    if not name.startswith("contrica."):
        return None
    module, _, last = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), last, None)
    except ImportError:
        return None
    return None if found is None else name


class LinkedCode(SphinxPostTransform):
    """Spans of code that name something documented link to it, so that pages need no markup for it."""

    default_priority = 5  # before references are resolved

    def run(self, **_: Any) -> None:
        """Wrap every such span of the page in a reference that may stay unresolved."""
        for span in list(self.document.findall(nodes.literal)):
            inside = isinstance(span.parent, pending_xref | nodes.reference | nodes.title)
            name = None if inside else _documented_name(span.astext())
            if name is None:
                continue
            link = pending_xref(
                refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=False
            )
            link["refdoc"] = self.env.docname
            span.replace_self(link)
            link += span


def _escape(
    app: Sphinx, what: str, name: str, found: object, options: object, lines: list[str]
) -> None:
    """Bars and trailing underscores of docstrings are what they are, and no markup, outside of code."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = re.split(r"(`+[^`]*`+)", line)
        parts[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what this file adds."""
    app.add_post_transform(LinkedCode)
    app.connect("autodoc-process-docstring", _escape, priority=400)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
