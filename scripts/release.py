"""Release a version: check, build, try in a clean environment, tag, and say what is left to do by hand.

    python scripts/release.py 0.2.0 --dry-run    # everything but the tag; the tree is left as it is
    python scripts/release.py 0.2.0              # the same on a clean tree, then `git tag v0.2.0`

Steps, each of which ends the release if it fails:

1. The version is that of ``pyproject.toml``, ``jittok/__init__.py`` and ``CITATION.cff``; the changelog has a section for
   it, with a date; the tag is not there yet; nothing is uncommitted, and the branch is ``main``.
   A dry run says what of this does not hold and goes on.
2. A wheel and a source archive are built from the committed files alone (``git archive``), and ``twine check --strict``
   reads them. Both hold the files that they need (``py.typed``, tables, the built-in tokenizer), the archive also tests,
   scripts and documentation.
3. In a fresh environment with the wheel alone, ``jittok demo`` runs.
4. In another one, made from the unpacked source archive as a reader would, the README's two commands run:
   ``pip install . && jittok demo``, then ``pip install ".[test]" && pytest`` (``--tests`` chooses files for a quick try).
5. The tag is made. What is left: ``git push origin v0.2.0`` and ``twine upload dist/*``, which are printed, not done.

Needs ``pip install build twine``, git, and a package index.
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
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IN_WHEEL = [
    "jittok/py.typed",
    "jittok/data/default.jittok",
    "jittok/data/hamlet.txt",
    "jittok/unicode/classes.npz",
    "jittok/kernels/segments.py",
]
IN_ARCHIVE = [
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
    "tests/conftest.py",
    "docs/conf.py",
    "scripts/release.py",
]


class Failed(Exception):
    """A step that does not hold."""


def run(*command: str | Path, cwd: Path = ROOT, quiet: bool = False) -> str:
    """Run a program; its output."""
    print("$", " ".join(map(str, command)), flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode or not quiet:
        print("   ", "\n    ".join(done.stdout.rstrip().splitlines()[-12:]), flush=True)
    if done.returncode:
        raise Failed(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def state_faults(version: str) -> list[str]:
    """What of the repository's state is not that of a release."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        found.append(f"{version} is not a version such as 1.2.3 or 1.2.3rc1")
    for name, pattern in (
        ("pyproject.toml", r'^version = "(.*)"$'),
        ("jittok/__init__.py", r'^__version__ = "(.*)"$'),
        ("CITATION.cff", r'^version: "?([^"\n]*)"?$'),
    ):
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None or match[1] != version:
            found.append(f"{name} has version {match[1] if match else 'none'}, not {version}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        found.append(f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD'")
    if run("git", "tag", "--list", f"v{version}", quiet=True).strip():
        found.append(f"the tag v{version} is there already")
    if run("git", "status", "--porcelain", quiet=True).strip():
        found.append("there are changes that are not committed")
    branch = run("git", "rev-parse", "--abbrev-ref", "HEAD", quiet=True).strip()
    if branch != "main":
        found.append(f"the branch is {branch}, not main")
    return found


def build(folder: Path, version: str) -> tuple[Path, Path]:
    """Wheel and source archive, from the committed files."""
    source, dist = folder / "source", folder / "dist"
    source.mkdir()
    run("git", "archive", "--output", folder / "source.tar", "HEAD", quiet=True)
    with tarfile.open(folder / "source.tar") as archive:
        archive.extractall(source, filter="data")
    run(sys.executable, "-m", "build", "--outdir", dist, source)
    wheels, archives = list(dist.glob("*.whl")), list(dist.glob("*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        raise Failed(f"expected a wheel and a source archive in {dist}")
    if f"-{version}-" not in wheels[0].name:
        raise Failed(f"{wheels[0].name} is not of version {version}")
    run(sys.executable, "-m", "twine", "check", "--strict", wheels[0], archives[0])
    names = set(zipfile.ZipFile(wheels[0]).namelist())
    missing = [name for name in IN_WHEEL if name not in names]
    foreign = sorted(name for name in names if not name.startswith(("jittok/", "jittok-")))
    with tarfile.open(archives[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing += [name for name in [*IN_WHEEL, *IN_ARCHIVE] if name not in names]
    if missing or foreign:
        raise Failed(f"missing: {missing}; in the wheel but not of jittok: {foreign}")
    for path in (wheels[0], archives[0]):
        print(f"    {path.name} {path.stat().st_size:,} bytes")
    return wheels[0], archives[0]


def environment(folder: Path) -> Path:
    """The folder of programs of a fresh virtual environment."""
    run(sys.executable, "-m", "venv", folder, quiet=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def try_wheel(folder: Path, wheel: Path) -> None:
    programs = environment(folder / "wheel-venv")
    run(programs / "pip", "install", "--quiet", wheel, quiet=True)
    run(programs / "jittok", "demo", cwd=folder)


def try_archive(folder: Path, archive: Path, tests: list[str]) -> None:
    """The README's two commands, in the unpacked archive."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    source = folder / archive.name.removesuffix(".tar.gz")
    programs = environment(source / ".venv")
    run(programs / "pip", "install", "--quiet", ".", cwd=source, quiet=True)
    run(programs / "jittok", "demo", cwd=source)
    run(programs / "pip", "install", "--quiet", ".[test]", cwd=source, quiet=True)
    run(programs / "pytest", *tests, cwd=source)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="no tag; say what is not as it must be, and go on")
    parser.add_argument("--tests", nargs="*", default=[], help="run these test files only (for a dry run)")
    options = parser.parse_args()
    if options.tests and not options.dry_run:
        parser.error("--tests is for dry runs")
    begin = time.monotonic()
    try:
        faults = state_faults(options.version)
        for fault in faults:
            print("not ready:", fault)
        if faults and not options.dry_run:
            raise Failed("the repository is not in the state of a release")
        with tempfile.TemporaryDirectory(prefix="jittok-release-") as name:
            folder = Path(name)
            built = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
            wheel, archive = build(folder, built[1] if options.dry_run and built else options.version)
            try_wheel(folder, wheel)
            try_archive(folder, archive, options.tests)
            if not options.dry_run:
                dist = ROOT / "dist"
                dist.mkdir(exist_ok=True)
                for path in (wheel, archive):
                    shutil.copy(path, dist)
                run("git", "tag", "--annotate", f"v{options.version}", "--message", f"jittok {options.version}")
    except Failed as error:
        print(f"FAILED: {error}")
        return 1
    took = f"{(time.monotonic() - begin) / 60:.0f} minutes"
    if options.dry_run:
        print(f"dry run: all steps pass ({took}); {len(faults)} thing(s) to do before a release, see above")
    else:
        print(f"v{options.version} is tagged ({took}). What is left is yours:")
        print(f"git push origin v{options.version} && twine upload dist/*{options.version}*")
    return 0


if __name__ == "__main__":
    sys.exit(main())
