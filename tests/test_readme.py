"""The README's Python examples run as they are written, one after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
#: Blocks fenced as ```python; those that need files of the reader's are fenced as ```python notest.
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_examples(tmp_path, monkeypatch):
    pytest.importorskip("jittok.tokenizer", reason="the engine is not in this checkout")
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) >= 5
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, example {number + 1}", "exec"), names)


def test_links_lead_to_files():
    text = README.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", text)
    assert links
    missing = [link for link in links if not (README.parent / link).exists()]
    assert missing == []
