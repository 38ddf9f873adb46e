"""``jittok info``: what a tokenizer file says and what loading it makes."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterable
from typing import Any

from jittok.cli import arguments


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "info",
        help="what a tokenizer is made of",
        description="Load a tokenizer; print its model, sizes, special tokens, steps, stored settings and memory.",
    )
    parser.add_argument(
        "tokenizer", metavar="X", help="tokenizer file or directory, or 'default' for the built-in one"
    )
    arguments.add_tokenizer_details(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the facts."""
    start = time.perf_counter()
    tokenizer = arguments.load_tokenizer(options)
    seconds = time.perf_counter() - start
    for label, value in facts(tokenizer, options.tokenizer, seconds):
        lines = value if isinstance(value, list) else [value]
        for number, line in enumerate(lines):
            print(f"{label + ':' if number == 0 else '':<16}{line}")
    return 0


def facts(tokenizer: Any, name: str, seconds: float) -> Iterable[tuple[str, str | list[str]]]:
    """Yield each fact's label and text, one line or several."""
    yield "tokenizer", name
    spec = getattr(tokenizer, "spec", None)
    if spec is not None:
        yield "format", f"{spec.source_format}; ids as {spec.reference} gives them"
        yield "model", _model(spec.model)
        if spec.source_format in ("gguf", "marian"):
            yield "in the file", ", ".join(f"{key}={value!r}" for key, value in spec.extra.items())
    yield "vocabulary", f"{tokenizer.vocab_size:,} entries"
    yield "special tokens", _special_tokens(tokenizer.special_tokens)
    if spec is not None:
        ordinary = [token for token in spec.added_tokens if not token.special]
        if ordinary:
            yield "added tokens", f"{len(ordinary):,} that are not special"
        yield "in the text", f"special tokens are by default {_POLICIES[spec.default_special]}"
        for label, steps in (
            ("normalisation", spec.normalizers),
            ("split", spec.pre_tokenizers),
            ("template", spec.post_processors),
            ("decoding", spec.decoders),
        ):
            yield label, [_step(step) for step in steps] or "none"
        for label, stored in (("truncation", spec.stored_truncation), ("padding", spec.stored_padding)):
            yield label, f"{_step(stored)} (stored in the file; not applied)" if stored else "none stored"
    size = getattr(tokenizer, "nbytes", None)
    if size is not None:
        yield "memory", f"{size / 1e6:,.1f} MB of tables"
    yield "loaded in", f"{seconds * 1000:,.1f} ms"


_POLICIES = {"parse": "parsed to their ids", "text": "ordinary text", "raise": "an error"}


def _model(model: Any) -> str:
    parts = [type(model).__name__.removesuffix("Model")]
    for field in dataclasses.fields(model):
        value = getattr(model, field.name)
        if field.name in ("vocab", "merges", "ranks", "pieces"):
            parts.append(f"{len(value):,} {'entries' if field.name == 'vocab' else field.name}")
        elif field.name in ("scores", "types", "messages"):
            continue  # of each piece, and what is needed to write the file again
        elif value not in (None, False, ""):
            parts.append(field.name if value is True else f"{field.name}={value!r}")
    return ", ".join(parts)


def _special_tokens(tokens: Any, limit: int = 20) -> list[str]:
    pairs = list(tokens.items()) if hasattr(tokens, "items") else [(str(token), None) for token in tokens]
    lines = [content if number is None else f"{number:>7}  {content}" for content, number in pairs[:limit]]
    if len(pairs) > limit:
        lines.append(f"... and {len(pairs) - limit:,} more")
    return lines or ["none"]


def _step(step: Any) -> str:
    """One line for a dataclass or a mapping: its name and what it holds, long values shortened."""
    if hasattr(step, "items"):
        return ", ".join(f"{key}={value!r}" for key, value in step.items())
    if hasattr(step, "single"):
        return ", ".join(
            f"{name} {_template(pieces)}"
            for name, pieces in (("single", step.single), ("pair", step.pair))
            if pieces is not None
        )
    values = []
    for field in dataclasses.fields(step):
        text = repr(getattr(step, field.name))
        # a split pattern is what people look for here: never shortened
        values.append(
            f"{field.name}={text if field.name == 'pattern' or len(text) <= 120 else text[:117] + '...'}"
        )
    return f"{type(step).__name__}({', '.join(values)})"


def _template(pieces: Any) -> str:
    """A template as tokenizer.json's authors write it: ``[CLS]:0 $A:0 [SEP]:0``."""
    return " ".join(
        f"{'$' + piece.sequence if piece.sequence else ' '.join(piece.tokens)}:{piece.type_id}" for piece in pieces
    )
