"""CPU time of loading every tokenizer.json of a folder, against tokenizers: from the file to the ids of a first text.

    python scripts/measure_load.py MODELS [--rounds 7] [--only NAME]

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
    options = parser.parse_args()
    print("file | MB | jittok ms | tokenizers ms | ratio\n---|---|---|---|---")
    for path in sorted(options.models.rglob("*.json")):
        if path.name in ("tekken.json", "vocab.json") or path.name.endswith(("_config.json", "_map.json")):
            continue
        name = str(path.relative_to(options.models))
        if options.only and options.only not in name:
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
        best = [float("inf"), float("inf")]
        for _ in range(options.rounds):
            for number, load in enumerate((jittok.load, lambda file: tokenizers.Tokenizer.from_file(str(file)))):
                gc.collect()
                start = time.process_time()
                tokenizer = load(path)
                tokenizer.encode("a first text")
                best[number] = min(best[number], time.process_time() - start)
                del tokenizer
        ours, theirs = (1000 * seconds for seconds in best)
        print(f"{name} | {path.stat().st_size / 1e6:.2f} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
