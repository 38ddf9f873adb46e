"""``scripts/reproduce.py`` runs, and what is committed was made by it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
NAMES = ("bpe", "unigram", "wordpiece", "training", "peers")


@pytest.mark.parametrize("name", ["bpe", "training"])
def test_quick(name, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the plots and is not installed")
    environment = {key: value for key, value in os.environ.items() if key != "JITTOK_TEST_DATA"}
    command = [sys.executable, str(ROOT / "scripts" / "reproduce.py"), name, "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith("# ") and page.count("**") == 2 and "| " in page and f"]({name}.svg)" in page
    assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))


def test_unknown_names_and_missing_data(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the plots and is not installed")
    command = [sys.executable, str(ROOT / "scripts" / "reproduce.py"), "--out", str(tmp_path)]
    done = subprocess.run([*command, "other"], capture_output=True, text=True)
    assert done.returncode == 2 and "there are bpe, unigram" in done.stderr
    done = subprocess.run([*command, "unigram", "--data", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0 and "unigram: left out: needs models/" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_committed_results(name):
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert f"Made by `python scripts/reproduce.py {name}`" in page, "made with --quick, or by hand"
    assert (RESULTS / f"{name}.svg").is_file() and (RESULTS / f"{name}.json").is_file()
    assert f"]({name}.md)" in (RESULTS / "README.md").read_text(encoding="utf-8")
