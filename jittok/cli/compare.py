"""``jittok compare`` and ``jittok verify``: where tokenizers differ on the user's own text."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jittok.cli import arguments
from jittok.cli.documents import add_documents, documents_of
from jittok.errors import ArgumentError, JittokError, MissingDependencyError, MissingFileError

#: Documents that are encoded at once.
BATCH = 512
#: Characters that are shown before and after a difference.
CONTEXT = 30
#: Libraries that can be compared with, as ``LIBRARY:PATH``.
LIBRARIES = ("tokenizers", "tiktoken", "sentencepiece")


@dataclass
class Side:
    """One of the tokenizers that are compared."""

    name: str
    encode: Callable[[list[str]], list[list[int]]]
    show: Callable[[int], str]
    spans: Callable[[list[str]], list[list[list[int]]]] | None = None


@dataclass
class Findings:
    """What was found."""

    documents: int = 0
    tokens: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    compared: bool = True  # with another tokenizer
    compared_spans: bool = False  # with those of another one; else they were only looked at
    first: list[dict[str, Any]] = field(default_factory=list)


def add(commands: Any) -> None:
    """Define the arguments of both commands."""
    compare = commands.add_parser(
        "compare",
        help="where two tokenizers differ on your text",
        description=(
            "Encode the documents of the FILEs with A and with B, without special tokens around them; print how many "
            "differ, and the first differences with the text around them. A and B are tokenizer files, 'default', or an "
            "installed library with a file: tokenizers:tokenizer.json, tiktoken:cl100k_base.tiktoken (with --pattern), "
            "sentencepiece:x.model. Exit code 0: all ids are equal; 1: some differ, or an error."
        ),
    )
    compare.add_argument("a", metavar="A", help="tokenizer file or directory, 'default', or LIBRARY:FILE")
    compare.add_argument("b", metavar="B", help="the same")
    _add_common(compare)
    compare.set_defaults(run=run_compare)
    verify = commands.add_parser(
        "verify",
        help="check a tokenizer against the library that its file was made for",
        description=(
            "Name the reference library of X's file; encode the documents of the FILEs with jittok and with it, if it is "
            "installed, and compare ids, and spans where the library gives any; check that spans lie in the text and rise, "
            "and say how many documents come back from decoding as they were. Exit code 0: nothing differs; 1: something "
            "does, the library cannot be asked, or an error."
        ),
    )
    verify.add_argument("tokenizer", metavar="X", help="tokenizer file or directory, or 'default'")
    _add_common(verify)
    verify.set_defaults(run=run_verify)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_documents(parser, 1000.0)
    arguments.add_tokenizer_details(parser)
    parser.add_argument(
        "--show", type=arguments.whole_number(0), default=5, metavar="N", help="differences to show (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def run_compare(options: argparse.Namespace) -> int:
    """Compare two tokenizers."""
    sides = [_side(name, options) for name in (options.a, options.b)]
    if sides[0].name == sides[1].name:
        raise ArgumentError("A and B are the same; name two tokenizers, or tokenizers:FILE for the library's own")
    found = Findings(differing={"ids": 0})
    for number, texts in _batches(options, found):
        a, b = (side.encode(texts) for side in sides)
        _compare_ids(found, options, sides, number, texts, a, b)
    return _report(options, found, {"a": sides[0].name, "b": sides[1].name}, [])


def run_verify(options: argparse.Namespace) -> int:
    """Check a tokenizer against its reference."""
    tokenizer = arguments.load_tokenizer(options)
    own = _own_side(options.tokenizer, tokenizer)
    reference, reason = None, ""
    try:
        reference = _reference_of(tokenizer, options)
    except (MissingDependencyError, ArgumentError) as error:
        reason = str(error)
    found = Findings(differing={"ids": 0, "spans": 0, "round trip": 0})
    for number, texts in _batches(options, found):
        batch = tokenizer.encode_batch(texts, spans=True, add_special_tokens=False, special="text")
        decoded = tokenizer.decode_batch(batch)
        ids = batch.to_lists()
        if reference is None:
            found.tokens += sum(map(len, ids))
        else:
            _compare_ids(found, options, [own, reference], number, texts, ids, reference.encode(texts))
        expected = None if reference is None or reference.spans is None else reference.spans(texts)
        for row, text in enumerate(texts):
            spans = batch[row].spans.tolist()
            valid = all(0 <= start <= end <= len(text) for start, end in spans)
            valid &= all(one[0] <= other[0] for one, other in zip(spans, spans[1:], strict=False))
            if not valid or (expected is not None and ids[row] and expected[row] != spans):
                found.differing["spans"] += 1
            found.differing["round trip"] += decoded[row] != text
    found.compared = reference is not None
    found.compared_spans = reference is not None and reference.spans is not None
    facts = {"tokenizer": options.tokenizer, "reference": tokenizer.spec.reference}
    notes = [f"not compared with {tokenizer.spec.reference}: {reason}"] if reference is None else []
    if found.differing["round trip"]:
        notes.append("a text may come back otherwise where the file says so: normalisation, unknown characters")
    return _report(options, found, facts, notes)


def _compare_ids(
    found: Findings,
    options: argparse.Namespace,
    sides: list[Side],
    number: int,
    texts: list[str],
    a: list[list[int]],
    b: list[list[int]],
) -> None:
    """Count the documents whose ids differ, and keep the first ones."""
    for row, (one, other) in enumerate(zip(a, b, strict=True)):
        found.tokens += len(one)
        if one == other:
            continue
        found.differing["ids"] += 1
        if len(found.first) < options.show:
            pairs = zip(one, other, strict=False)
            at = next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(one), len(other)))
            found.first.append({"document": number + row, "token": at, **_shown(sides, texts[row], one, other, at)})


def _shown(sides: list[Side], text: str, one: list[int], other: list[int], at: int) -> dict[str, Any]:
    """The tokens around a difference, and the text there if a side knows its spans."""
    result: dict[str, Any] = {}
    for key, side, ids in (("a", sides[0], one), ("b", sides[1], other)):
        result[key] = {"ids": ids[at : at + 4], "tokens": [side.show(number) for number in ids[at : at + 4]]}
    for side, ids in zip(sides, (one, other), strict=True):
        if side.spans is not None and at < len(ids):
            start = side.spans([text])[0][at][0]
            result["place"] = start
            result["text"] = text[max(start - CONTEXT, 0) : start] + "\u2038" + text[start : start + CONTEXT]
            break
    return result


def _report(options: argparse.Namespace, found: Findings, facts: dict[str, str], notes: list[str]) -> int:
    """Print what was found; the exit code, which is not 0 where nothing was compared either."""
    differs = found.differing["ids"] > 0 or found.differing.get("spans", 0) > 0 or not found.compared
    if options.json:
        differing = found.differing if found.compared else {**found.differing, "ids": None}
        everything = {**facts, "documents": found.documents, "tokens": found.tokens, "differing": differing}
        print(json.dumps({**everything, "first": found.first, "notes": notes, "equal": not differs}, ensure_ascii=False))
        return int(differs)
    for key, value in facts.items():
        print(f"{key + ':':<12}{value}")
    print(f"documents:  {found.documents:,}, {found.tokens:,} tokens")
    for key, count in found.differing.items():
        said = "equal"
        if key == "ids" and not found.compared:
            said = "not compared"
        elif key == "spans" and not found.compared_spans:
            said = "in the text, and rising"
        print(f"{key + ':':<12}{f'{count:,} documents differ' if count else said}")
    for item in found.first:
        place = f", character {item['place']}" if "place" in item else ""
        print(f"\ndocument {item['document']}, token {item['token']}{place}")
        if "text" in item:
            print(f"  text  {item['text']!r}")
        for key in ("a", "b"):
            print(f"  {key}     {item[key]['ids']}  {item[key]['tokens']}")
    for note in notes:
        print(f"note: {note}")
    return int(differs)


def _batches(options: argparse.Namespace, found: Findings) -> Iterator[tuple[int, list[str]]]:
    """The documents in batches, each with the number of its first; progress goes to a terminal's stderr."""
    shows = sys.stderr.isatty() and not options.quiet
    start = time.monotonic()
    texts: list[str] = []
    for text in documents_of(options):
        texts.append(text)
        if len(texts) == BATCH:
            yield found.documents, texts
            found.documents += len(texts)
            texts = []
            if shows:
                count = f"{found.documents:,} documents, {found.differing['ids']:,} differ"
                print(f"\r{count}, {time.monotonic() - start:.0f} s", end="", file=sys.stderr, flush=True)
    if texts:
        yield found.documents, texts
        found.documents += len(texts)
    if shows:
        print(file=sys.stderr)
    if not found.documents:
        raise ArgumentError(
            f"no documents in {', '.join(options.files)}; empty ones are left out, --separator says what ends one, and "
            "--field and --column where it is"
        )


def _side(name: str, options: argparse.Namespace) -> Side:
    """The tokenizer that an argument names."""
    library, colon, path = name.partition(":")
    if colon and library in LIBRARIES:
        return _library_side(library, path, options)
    if not Path(name).exists() and (library in LIBRARIES or (colon and library.isidentifier() and len(library) > 1)):
        known = ", ".join(f"{one}:FILE" for one in LIBRARIES)
        raise ArgumentError(f"{name}: neither a file nor a library with a file of it; expected one of {known}")
    options.tokenizer = name
    kept = options.pattern, options.special_tokens
    if not name.endswith(".tiktoken"):
        options.pattern = options.special_tokens = None  # of the other one
    try:
        return _own_side(name, arguments.load_tokenizer(options))
    finally:
        options.pattern, options.special_tokens = kept


def _own_side(name: str, tokenizer: Any) -> Side:
    settings = {"add_special_tokens": False, "special": "text"}
    return Side(
        name,
        lambda texts: tokenizer.encode_batch(texts, **settings).to_lists(),
        lambda number: str(tokenizer.id_to_token(number)),
        lambda texts: [tokenizer.encode(text, **settings).spans.tolist() for text in texts],
    )


def _reference_of(tokenizer: Any, options: argparse.Namespace) -> Side:
    """The reference library with the same file."""
    path = Path(options.tokenizer)
    if path.is_dir() and (path / "tokenizer.json").is_file():
        path = path / "tokenizer.json"
    library = tokenizer.spec.reference
    wanted = {"tokenizer.json": "tokenizers", "sentencepiece": "sentencepiece", "tiktoken": "tiktoken"}
    if wanted.get(tokenizer.spec.source_format) != library or not path.is_file():
        raise ArgumentError(f"it does not read {options.tokenizer} as it is")
    return _library_side(library, str(path), options)


def _library_side(library: str, path: str, options: argparse.Namespace) -> Side:
    """An installed library with a file."""
    import importlib.util

    if importlib.util.find_spec(library) is None:
        raise MissingDependencyError(f"{library} is not installed; pip install {library}")
    if not Path(path).is_file():
        raise MissingFileError(f"{library}:{path}: there is no such file")
    name = f"{library}:{path}"
    try:
        if library == "tokenizers":
            side = _tokenizers_side(name, path)
        elif library == "sentencepiece":
            side = _sentencepiece_side(name, path)
        else:
            side = _tiktoken_side(name, path, options)
    except JittokError:
        raise
    except Exception as error:
        raise ArgumentError(f"{name}: the library does not load the file: {error}") from None
    return replace(side, encode=_told(name, side.encode), spans=None if side.spans is None else _told(name, side.spans))


def _told(name: str, ask: Callable[[list[str]], list[Any]]) -> Callable[[list[str]], list[Any]]:
    """A library's function whose failures are told as errors; a panic of Rust code is not even an Exception."""

    def call(texts: list[str]) -> list[Any]:
        try:
            return ask(texts)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise ArgumentError(
                f"{name}: the library fails on {len(texts)} documents, of which the first is {texts[0][:50]!r}: {error}"
            ) from None

    return call


def _tokenizers_side(name: str, path: str) -> Side:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return Side(
        name,
        lambda texts: [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)],
        lambda number: str(tokenizer.id_to_token(number)),
        lambda texts: [
            [list(span) for span in e.offsets] for e in tokenizer.encode_batch(texts, add_special_tokens=False)
        ],
    )


def _sentencepiece_side(name: str, path: str) -> Side:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=path)
    return Side(name, lambda texts: [processor.encode(text) for text in texts], processor.id_to_piece)


def _tiktoken_side(name: str, path: str, options: argparse.Namespace) -> Side:
    import tiktoken

    from jittok.formats.detect import read_spec
    from jittok.spec import RankModel, Split

    # A known file says its pattern itself.
    special: dict[str, int] | None = {} if options.pattern is not None else None
    spec = read_spec(path, format="tiktoken", pattern=options.pattern, special_tokens=special)
    step = spec.pre_tokenizers[0]
    assert isinstance(spec.model, RankModel) and isinstance(step, Split)
    ranks = dict(spec.model.ranks)
    encoding = tiktoken.Encoding("compared", pat_str=step.pattern, mergeable_ranks=ranks, special_tokens={})
    return Side(
        name,
        lambda texts: encoding.encode_ordinary_batch(texts),
        lambda number: encoding.decode_single_token_bytes(number).decode("utf-8", "replace"),
    )
