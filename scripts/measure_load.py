"""CPU time of loading every tokenizer.json of a folder, against tokenizers: the file alone, and to the ids of a first text.

    python scripts/measure_load.py MODELS [--rounds 7] [--only NAME] [--largest MB]

Both load in turns in one process that has loaded and encoded before; the least of all rounds counts.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path

import tokenizers

import jittok
from jittok.errors import JittokError


def main() -> None:
    """Measure and print a line a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only")
    parser.add_argument("--largest", type=float, default=float("inf"), help="leave out files of more MB")
    options = parser.parse_args()
    print("file | kB | load: jittok ms | tokenizers ms | ratio | with a first text: jittok ms | tokenizers ms | ratio")
    print("---|---|---|---|---|---|---|---")
    for path in sorted(options.models.rglob("*.json")):
        if path.name in ("tekken.json", "vocab.json") or path.name.endswith(("_config.json", "_map.json")):
            continue
        name = str(path.relative_to(options.models))
        if (options.only and options.only not in name) or path.stat().st_size > 1e6 * options.largest:
            continue
        try:
            jittok.load(path).encode("a first text")
            tokenizers.Tokenizer.from_file(str(path)).encode("a first text")
        except JittokError as error:
            print(f"{name}: {str(error)[:100]}")
            continue
        except Exception as error:  # tokenizers has no class of its own
            print(f"{name}: tokenizers: {str(error)[:100]}")
            continue
        best = [[float("inf")] * 2, [float("inf")] * 2]
        for _ in range(options.rounds):
            for number, load in enumerate((jittok.load, lambda file: tokenizers.Tokenizer.from_file(str(file)))):
                gc.collect()
                start = time.process_time()
                tokenizer = load(path)
                loaded = time.process_time()
                tokenizer.encode("a first text")
                times = loaded - start, time.process_time() - start
                best[number] = list(map(min, best[number], times))
                del tokenizer
        columns = []
        for ours, theirs in zip(*best, strict=True):
            columns.append(f"{1000 * ours:.2f} | {1000 * theirs:.2f} | {ours / theirs:.2f}")
        print(f"{name} | {path.stat().st_size / 1e3:.1f} | {' | '.join(columns)}", flush=True)


if __name__ == "__main__":
    main()
