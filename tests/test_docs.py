"""The documentation: its examples run, its links lead somewhere, and the architecture page names every folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import jittok

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(jittok.__file__).parent
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("decisions/*.md"), *DOCS.glob("results/*.md")])
#: Blocks fenced as ```python; those that need files of the reader's are fenced as ```python notest.
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITH_EXAMPLES = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples(page, tmp_path, monkeypatch):
    """The blocks of a page, one after another, as a reader would run them."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(PACKAGE / "data" / "hamlet.txt", tmp_path)  # a text that pages may name
    source = page.read_text(encoding="utf-8")
    if "import pyarrow" in source:
        pytest.importorskip("pyarrow", reason="the page's examples use pyarrow, which is not installed")
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCK.findall(source)):
        exec(compile(block, f"{page.name}, example {number + 1}", "exec"), names)


def test_there_are_examples():
    assert len(WITH_EXAMPLES) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\((?!https?://)([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    made = {"reference/commands.md"}
    missing = [link for link in links if link not in made and not (page.parent / link).exists()]
    assert missing == []


def test_every_page_is_in_the_site():
    """Each page is in some table of contents."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    listed = set(re.findall(r"^([\w./-]+)$", text, re.MULTILINE))
    names = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"index"}
    names -= {name for name in names if name.startswith(("decisions/0", "results/")) and name != "results/README"}
    assert names <= listed, f"in no toctree: {sorted(names - listed)}"
    assert all((DOCS / "decisions" / "README.md").read_text().count(page.name) for page in DOCS.glob("decisions/0*.md"))


def test_architecture_names_every_folder_and_module():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.*")) and path.name[0] != "_"}
    named = set(re.findall(r"^\| `(\w+)/`", text, re.MULTILINE))
    assert named == folders
    modules = {path.name for path in PACKAGE.glob("*.py")}
    section = text[text.index("## Modules at the top") : text.index("## Rules")]
    assert set(re.findall(r"`(\w+\.py)`", section)) == modules
    for folder, first in re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE):
        for name in re.findall(r"`(\w+\.py)`", first):
            assert (PACKAGE / folder / name).is_file(), f"{folder}/{name}"


def test_differences_are_listed_once():
    rows = [
        tuple(cell.strip() for cell in line.split(" | ")[:2])
        for line in (DOCS / "differences.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    assert len(rows) > 20 and len(rows) == len(set(rows))
