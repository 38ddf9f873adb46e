"""Settings of the documentation site.

    pip install ".[docs]" && sphinx-build -W --keep-going -b html docs build/docs

Pages are Markdown (MyST); the reference comes from the docstrings (numpydoc).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import jittok  # noqa: E402
from jittok import cli  # noqa: E402

project = "jittok"
author = "The jittok developers"
copyright = "The jittok developers, Apache License 2.0"
version = release = jittok.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_generated", "notebooks/*.ipynb", "notebooks/.ipynb_checkpoints"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
#: Sections of numpydoc are no headings; classes list their members themselves.
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False, "inherited-members": False}
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "jittok"
html_static_path = ["_static"]
html_css_files = ["jittok.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "start": []}


def write_commands(folder: Path) -> None:
    """What ``jittok COMMAND --help`` prints, as a page, so that it cannot grow old."""
    os.environ["COLUMNS"] = "100"
    parser = cli._parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    short = {action.dest: action.help or "" for action in commands._choices_actions}
    lines = ["# Command line", "", "What `jittok --help` and `jittok COMMAND --help` print.", ""]
    lines += ["```text", parser.format_help().rstrip(), "```", ""]
    for name, command in commands.choices.items():
        lines += [f"## jittok {name}", "", short.get(name, ""), "", "```text", command.format_help().rstrip(), "```", ""]
    text = "\n".join(lines)
    path = folder / "commands.md"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


write_commands(HERE / "reference")
