"""Run the Python tests of tokenizers, tiktoken and sentencepiece against jittok's wrappers.

    python scripts/run_peer_suites.py [tokenizers] [tiktoken] [sentencepiece] [--data DIR] [--markdown]

Their source archives, of the versions that the test extra pins, are downloaded with pip into a temporary folder. The
tests run there, with a pytest plugin (scripts/peer_suites) that puts the wrapper where the library has its own class;
all else, as trainers and the objects that tokenizers are built from, stays the library's. Files that a test would fetch
from a hub are taken from DIR (by default JITTOK_TEST_DATA), or the test is skipped.

Printed are, for each suite, how many tests passed that called the wrapper at all, how many did not, how many were
skipped, and each failure with its message.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: What pip asks before it keeps an archive is its metadata, which the real build systems would need compilers for.
_BUILD_SYSTEM = """
import os
from pathlib import Path

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name, version = os.environ["PEER_NAME"], os.environ["PEER_VERSION"]
    info = Path(folder, f"{name}-{version}.dist-info")
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    info.joinpath("WHEEL").write_text("Wheel-Version: 1.0\\nGenerator: none\\nRoot-Is-Purelib: true\\n")
    return info.name
"""


class Suite(NamedTuple):
    """Where the tests of a library lie in its source archive, and what they need besides pytest."""

    tests: str
    folder: str
    requirements: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


SUITES = {
    "tokenizers": Suite("tests", "bindings/python", ("pytest-asyncio", "pytest-timeout"), ("--timeout=300",)),
    "tiktoken": Suite("tests", "."),
    "sentencepiece": Suite("test", ".", (), ("-o", "python_files=*_test.py")),
}


class Result(NamedTuple):
    name: str
    outcome: str
    uses_wrapper: bool
    message: str


def pinned_version(name: str) -> str:
    """The version that the test extra of pyproject.toml asks for."""
    found = re.search(rf'"{name}==([^"]+)"', ROOT.joinpath("pyproject.toml").read_text())
    assert found is not None
    return found[1]


def fetch(name: str, version: str, folder: Path) -> Path:
    """Download and unpack a source archive."""
    stand_in = folder / "build_system"
    stand_in.joinpath("setuptools").mkdir(parents=True)
    stand_in.joinpath("setuptools", "__init__.py").touch()
    for file in ("maturin.py", "setuptools/build_meta.py"):
        stand_in.joinpath(file).write_text(_BUILD_SYSTEM)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    environment = {**os.environ, "PYTHONPATH": str(stand_in), "PEER_NAME": name, "PEER_VERSION": version}
    subprocess.run([*pip, f"{name}=={version}", "-d", str(folder)], check=True, env=environment)
    with tarfile.open(folder / f"{name}-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"{name}-{version}"


def run(name: str, folder: Path, data: str) -> list[Result]:
    """Run one suite."""
    suite = SUITES[name]
    source = fetch(name, pinned_version(name), folder)
    site = folder / "site"
    if suite.requirements:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), *suite.requirements]
        subprocess.run(pip, check=True)
    report = folder / "report.xml"
    path = [str(ROOT / "scripts" / "peer_suites"), str(ROOT), str(site), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(path), "PEER_DATA": data, "PYTHONDONTWRITEBYTECODE": "1",
        "RUST_BACKTRACE": "0",
    }  # fmt: skip
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", f"{name}_shim", "-p", "no:cacheprovider"]
    pytest.append("--continue-on-collection-errors")
    # Apart from the rest of the archive, whose package would else be imported instead of the installed one.
    where = folder / "suite" / "python"
    shutil.copytree(source / suite.folder / suite.tests, where / suite.tests)
    for other in ("conftest.py", "pytest.ini"):
        if source.joinpath(suite.folder, other).exists():
            shutil.copy(source / suite.folder / other, where)
    done = subprocess.run(
        [*pytest, *suite.arguments, f"--junitxml={report}", "--rootdir", str(where), suite.tests],
        cwd=where, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if not report.exists():
        raise SystemExit(f"{name}: pytest did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return list(results_of(report))


def results_of(report: Path):
    """Yield the result of each test of a JUnit report."""
    for case in ElementTree.parse(report).iter("testcase"):
        properties = {one.get("name"): one.get("value") for one in case.iter("property")}
        outcome, message = "passed", ""
        for kind in ("failure", "error", "skipped"):
            found = case.find(kind)
            if found is not None:
                outcome = "skipped" if kind == "skipped" else "failed"
                message = (found.get("message") or "").strip().split("\n")[0]
        name = f"{case.get('classname', '').removeprefix('tests.').removeprefix('test.')}.{case.get('name')}"
        yield Result(name, outcome, properties.get("wrapper") == "True", message)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which suites; all of them by default")
    parser.add_argument("--data", default=os.environ.get("JITTOK_TEST_DATA", ""), help="a folder that holds models/")
    arguments = parser.parse_args()
    for name in arguments.suites or SUITES:
        with tempfile.TemporaryDirectory() as folder:
            results = run(name, Path(folder), arguments.data)
        counts = Counter((result.outcome, result.uses_wrapper) for result in results)
        print(
            f"{name} {pinned_version(name)}: {len(results)} tests; "
            f"with the wrapper {counts['passed', True]} passed, {counts['failed', True]} failed; "
            f"without it {counts['passed', False]} passed, {counts['failed', False]} failed; "
            f"{counts['skipped', True] + counts['skipped', False]} skipped"
        )
        for result in results:
            if result.outcome == "failed":
                note = "" if result.uses_wrapper else " (wrapper not used)"
                print(f"  FAILED{note} {result.name}: {result.message[:300]}")
        for message, count in Counter(r.message for r in results if r.outcome == "skipped").most_common():
            print(f"  skipped {count}: {message[:200]}")


if __name__ == "__main__":
    main()
