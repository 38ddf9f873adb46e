"""Damage small files of every format many times; print what is neither jittok's own exception nor a working tokenizer.

    python scripts/fuzz_readers.py --flips 10000 --types --truncations [--case NAME] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from reader_cases import cases, flipped, json_documents, other_documents, run, wrong_types

#: Slower than this is worth a look.
SLOW_SECONDS = 5.0


def contents(name, options):
    """Yield a description and the damaged content."""
    case = cases()[name]
    content = case.files[case.damaged]
    for seed in range(options.seed, options.seed + options.flips):
        yield f"flips, seed {seed}", flipped(content, random.Random(f"{name} {seed}"))
    if options.truncations:
        # Of long files every byte at the ends, and some in between.
        step = 1 if len(content) < 60_000 else 97
        for size in sorted({*range(0, len(content), step), *range(min(9000, len(content))), *range(len(content))[-3000:]}):
            yield f"cut to {size}", content[:size]
    if options.types and name in json_documents():
        for path, other, changed in wrong_types(json_documents()[name][0]):
            yield f"{other!r} at {path}", changed
    if options.types and name in other_documents():
        for path, other, changed in wrong_types(*other_documents()[name]):
            yield f"{other!r} at {path}", changed


def main() -> int:
    """Run; the exit code is the number of faults, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--types", action="store_true")
    parser.add_argument("--truncations", action="store_true")
    parser.add_argument("--case", action="append", help="name of a case, as printed; all by default")
    options = parser.parse_args()
    faults: Counter[str] = Counter()
    for name, case in cases().items():
        if options.case and name not in options.case:
            continue
        results: Counter[str] = Counter()
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            for what, content in contents(name, options):
                begun = time.process_time()
                try:
                    results["used" if run(case, content, Path(folder)) == "used" else "refused"] += 1
                except Exception as error:  # everything else is a fault, which is what this looks for
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    key = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
                    if not faults[key]:
                        print(f"{name}: {what}: {key}: {error}", flush=True)
                    faults[key] += 1
                    results["fault"] += 1
                if time.process_time() - begun > SLOW_SECONDS:
                    print(f"{name}: {what}: {time.process_time() - begun:.1f} s", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name}: {dict(results)}, {time.process_time() - start:.1f} s, peak {peak} MB", flush=True)
    for key, count in faults.most_common():
        print(f"{count:6} {key}")
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main())
