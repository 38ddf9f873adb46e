"""Run the benchmarks and make a static site of the results: asv_bench/.asv/html/index.html.

    python asv_bench/publish.py                      # all benchmarks, with the jittok that is installed here
    python asv_bench/publish.py --bench Decode       # some of them (a regular expression)
    python asv_bench/publish.py --quick              # each once: whether it works
    python asv_bench/publish.py v0.1.0..main         # several commits, each in an environment that asv makes for it
    python asv_bench/publish.py --no-run             # only the site, of the results that are there

Needs ``pip install ".[benchmark]"`` (and virtualenv for several commits). Results stay in asv_bench/.asv/results, so that
each run adds a point to the curves. The folder .asv/html can be put on any web server; ``asv preview`` in asv_bench
serves it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="?", metavar="RANGE", help="of commits, as `git log` takes it")
    parser.add_argument("--bench", default=".", metavar="REGEX", help="only these benchmarks")
    parser.add_argument("--quick", action="store_true", help="each benchmark once")
    parser.add_argument("--no-run", action="store_true", help="only the site")
    options = parser.parse_args()
    branch = git("rev-parse", "--abbrev-ref", "HEAD")
    if branch == "HEAD":  # a checkout of a commit: a site needs a branch
        branch = "main"
    # Paths of the settings are relative to their file, so a changed copy has to lie beside it.
    settings = (HERE / "asv.conf.json").read_text(encoding="utf-8")
    settings = re.sub(r'"branches": \[.*?\]', f'"branches": ["{branch}"]', settings)
    with tempfile.NamedTemporaryFile("w", dir=HERE, prefix=".asv-", suffix=".conf.json") as file:
        file.write(settings)
        file.flush()

        def asv(*arguments: str) -> None:
            command = [sys.executable, "-m", "asv", arguments[0], "--config", file.name, *arguments[1:]]
            print("$ asv", " ".join(arguments), flush=True)
            done = subprocess.run(command, cwd=HERE)
            if done.returncode:
                raise SystemExit(f"asv {arguments[0]} ended with {done.returncode}")

        asv("machine", "--yes")
        if not options.no_run:
            how = [options.commits] if options.commits else ["--python=same", "--set-commit-hash", git("rev-parse", "HEAD")]
            asv("run", "--show-stderr", "--bench", options.bench, *(["--quick"] if options.quick else []), *how)
        asv("publish")
    print(HERE / ".asv" / "html" / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
