"""``jittok bench``: the speed of jittok beside that of the libraries that are installed, on the user's own text."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jittok.cli import arguments
from jittok.cli.documents import add_documents, documents_of
from jittok.errors import ArgumentError, JittokError

#: Bytes of text that are measured unless --megabytes says otherwise.
MEGABYTES = 20
#: Libraries that take a second for a megabyte or more get less text: their speed does not depend on it.
SLOW = {"tokenizers": 2_000_000, "tiktoken": 6_000_000}


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "bench",
        help="speed on your text, beside other libraries",
        description=(
            "Encode the documents of the FILEs with jittok and with every installed library that reads the same tokenizer,"
            " in turns, and print megabytes of text a second (1,000,000 bytes of UTF-8): process time and wall time, of text"
            " not seen before and of the same text again, and whether the ids are equal."
        ),
    )
    parser.add_argument("tokenizer", metavar="X", help="tokenizer.json, SentencePiece model, rank file, ... or 'default'")
    add_documents(parser, MEGABYTES)
    arguments.add_tokenizer_details(parser)
    parser.add_argument(
        "--rounds", type=arguments.whole_number(1), default=3, metavar="N",
        help="rounds; the best of each counts (default: 3)"
    )
    parser.add_argument(
        "--threads", type=arguments.whole_number(1), default=1, metavar="N", help="threads of each library (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, and print what came out."""
    texts = list(documents_of(options))
    if not texts:
        raise ArgumentError("no documents in " + ", ".join(options.files))
    tokenizer = arguments.load_tokenizer(options)
    libraries = _libraries(options, tokenizer)
    rows = _measured(libraries, texts, options.rounds)
    size = sum(len(text.encode()) for text in texts)
    if options.json:
        print(json.dumps({"bytes": size, "documents": len(texts), "threads": options.threads, "libraries": rows}))
        return 0
    print(f"{size / 1e6:,.1f} MB, {len(texts):,} documents, {options.threads} thread(s), best of {options.rounds} rounds\n")
    print(f"{'MB/s':14}{'process time':>24}{'wall time':>24}")
    print(f"{'':14}{'unseen':>12}{'again':>12}{'unseen':>12}{'again':>12}  ids")
    for name, row in rows.items():
        if "error" in row:
            print(f"{name:14}  {row['error']}")
            continue
        cells = (row[key] for key in ("unseen_cpu", "again_cpu", "unseen_wall", "again_wall"))
        print(f"{name:14}" + "".join(f"{cell:12,.1f}" for cell in cells) + f"  {row['ids']}")
    return 0


def _libraries(options: argparse.Namespace, tokenizer: Any) -> dict[str, Callable[[], Any]]:
    """What makes each library that can be measured, jittok first, by name."""
    from jittok.interop.peers import ADAPTERS, LACKS, NEEDS, loaded

    def own() -> Any:
        tokenizer.clear_cache()
        return loaded(tokenizer, options.threads)

    kinds = {"tokenizer.json": "json", "sentencepiece": "model", "tiktoken": "ranks"}
    path = Path(options.tokenizer)
    if path.is_dir() and (path / "tokenizer.json").is_file():
        path = path / "tokenizer.json"
    kind = kinds.get(tokenizer.spec.source_format) if options.tokenizer != "default" else None
    found: dict[str, Callable[[], Any]] = {"jittok": own}
    if kind is None or not path.is_file():
        return found
    model = type(tokenizer.spec.model).__name__
    family = {"WordPieceModel": "WordPiece", "UnigramModel": "unigram", "SentencePieceModel": "SentencePiece BPE"}
    if model == "SentencePieceModel" and tokenizer.spec.model.algorithm == "unigram":
        family = {model: "unigram"}
    for name, adapter in ADAPTERS.items():
        module = {"sentencepiece": "sentencepiece"}.get(name, name)
        if name == "jittok" or importlib.util.find_spec(module) is None:
            continue
        if (NEEDS[name] and kind not in NEEDS[name]) or family.get(model, "BPE") in LACKS.get(name, ()):
            continue
        if name == "gigatoken" and kind == "model":
            continue
        found[name] = lambda adapter=adapter: adapter({kind: str(path)}, options.threads)  # type: ignore[misc]
    return found


def _measured(libraries: dict[str, Callable[[], Any]], texts: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """MB/s of each library, and whether its ids are jittok's; the libraries take turns."""
    import numpy as np

    sizes = np.cumsum([len(text.encode()) for text in texts])
    rows: dict[str, dict[str, Any]] = {name: {} for name in libraries}
    expected = None
    for _ in range(rounds):
        for name, make in libraries.items():
            row = rows[name]
            if "error" in row:
                continue
            count = int(np.searchsorted(sizes, SLOW.get(name, 1 << 62), side="left")) + 1
            taken = texts[:count]
            size = float(sizes[min(count, len(texts)) - 1])
            try:
                library = make()  # anew, so that no cache knows the text
                library.run(taken[0][:1000].split("\n"))
                for when in "unseen", "again":
                    cpu, wall, result = _timed(lambda library=library, taken=taken: library.run(taken))  # type: ignore[misc]
                    row[f"{when}_cpu"] = max(row.get(f"{when}_cpu", 0.0), size / 1e6 / cpu)
                    row[f"{when}_wall"] = max(row.get(f"{when}_wall", 0.0), size / 1e6 / wall)
                ids, indptr = library.arrays(result)
            except BaseException as error:  # a panic of a native library is no Exception
                if isinstance(error, KeyboardInterrupt | JittokError):
                    raise
                rows[name] = {"error": f"{type(error).__name__}: {str(error)[:100]}"}
                continue
            if expected is None:
                expected = ids, indptr
            if "ids" not in row:
                end = int(expected[1][len(indptr) - 1])
                equal = np.array_equal(indptr, expected[1][: len(indptr)]) and np.array_equal(ids, expected[0][:end])
                row["ids"] = "" if name == "jittok" else "equal" if equal else "differ"
    return rows


def _timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Process time of all threads and wall time, in seconds, and the result."""
    gc.collect()
    gc.disable()
    try:
        cpu, wall = time.process_time(), time.perf_counter()
        result = function()
        return max(time.process_time() - cpu, 1e-9), max(time.perf_counter() - wall, 1e-9), result
    finally:
        gc.enable()
