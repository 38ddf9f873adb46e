"""The figures of the documentation are what ``scripts/draw_figures.py`` draws from the tables of now."""

import importlib.util
import xml.etree.ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("draw_figures", ROOT / "scripts" / "draw_figures.py")
draw_figures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw_figures)


@pytest.mark.parametrize("name", draw_figures.FIGURES)
def test_figure(name):
    drawn = str(draw_figures.FIGURES[name]())
    xml.etree.ElementTree.fromstring(drawn)
    path = ROOT / "docs" / "img" / f"{name}.svg"
    assert path.read_text(encoding="utf-8") == drawn, "run scripts/draw_figures.py"
    assert any(f"img/{name}.svg" in page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
