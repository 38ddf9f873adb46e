"""Texts made the same way everywhere, and the models to encode them with."""

from __future__ import annotations

import functools
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import jittok
from jittok import spec
from jittok.tokenizer import Tokenizer

#: Bytes of UTF-8, roughly, of each corpus.
SIZE = 1_000_000

KINDS = ("english", "code", "multi")

_FILES = {
    "gpt2": "bbpe/gpt2/tokenizer.json",
    "llama3": "bbpe/llama3/tokenizer.json",
    "qwen3": "bbpe/qwen3/tokenizer.json",
    "deepseek": "bbpe/deepseek-v4/tokenizer.json",
    "cl100k": "tiktoken/cl100k_base/cl100k_base.tiktoken",
    "o200k": "tiktoken/o200k_base/o200k_base.tiktoken",
    "bert": "wordpiece/bert-base-uncased/tokenizer.json",
    "bert-multilingual": "wordpiece/bert-base-multilingual-cased/tokenizer.json",
}


def model_path(family: str) -> Path | None:
    """The family's file, if JITTOK_TEST_DATA has it."""
    folder = os.environ.get("JITTOK_TEST_DATA")
    path = Path(folder, "models", _FILES[family]) if folder else None
    return path if path is not None and path.exists() else None


FAMILIES = ["default", "wordpiece", *(family for family in _FILES if model_path(family))]


def load(family: str) -> Any:
    """Load the family's tokenizer. "wordpiece" is BERT with a vocabulary made from Hamlet."""
    if family == "wordpiece":
        return Tokenizer(
            spec.TokenizerSpec(
                spec.WordPieceModel(word_pieces(), "[UNK]"),
                normalizers=(spec.BertNormalizer(),),
                pre_tokenizers=(spec.BertPreTokenizer(),),
                decoders=(spec.DecodeWordPiece(),),
            )
        )
    return jittok.load_default() if family == "default" else jittok.load(model_path(family))


@functools.cache
def hamlet() -> str:
    """The play."""
    return (Path(jittok.__file__).parent / "data" / "hamlet.txt").read_text(encoding="utf-8")


@functools.cache
def word_pieces() -> dict[str, int]:
    """Letters, the frequent words of Hamlet, and frequent parts of its words."""
    words = Counter(word.strip(".,;:!?'()[]-").lower() for word in hamlet().split())
    parts: Counter[str] = Counter()
    for word, n in words.items():
        for first in range(1, len(word)):
            for last in range(first + 1, min(first + 6, len(word)) + 1):
                parts[word[first:last]] += n
    letters = sorted({letter for word in words for letter in word})
    tokens = ["[UNK]", *letters, *(f"##{letter}" for letter in letters)]
    tokens += [word for word, _ in words.most_common(4000) if word]
    tokens += [f"##{part}" for part, _ in parts.most_common(4000)]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


@functools.cache
def documents(kind: str, size: int = SIZE, seed: int = 1) -> list[str]:
    """Documents of about 3 kB, `size` bytes in all; another seed gives other text of the same kind."""
    generator = random.Random(f"{kind} {seed}")
    make = {"english": _english, "code": _code, "multi": _multi}[kind]
    found: list[str] = []
    total = 0
    while total < size:
        document = make(generator)
        found.append(document)
        total += len(document.encode("utf-8"))
    return found


def _english(generator: random.Random) -> str:
    lines = hamlet().split("\n")
    start = generator.randrange(len(lines) - 80)
    chosen = lines[start : start + 80]
    generator.shuffle(chosen)
    return "\n".join(chosen)


@functools.cache
def _words() -> list[str]:
    return sorted({word.strip(".,;:!?'()[]-").lower() for word in hamlet().split()} - {""})


def _name(generator: random.Random) -> str:
    parts = [word for word in generator.sample(_words(), generator.randint(1, 3)) if word.isidentifier()] or [
        "item"
    ]
    style = generator.randrange(3)
    if style == 0:
        return "_".join(parts)
    return "".join(part.capitalize() for part in parts) if style == 1 else parts[0]


def _code(generator: random.Random) -> str:
    lines = []
    for _ in range(12):
        names = [_name(generator) for _ in range(6)]
        lines += [
            f"def {names[0]}({names[1]}, {names[2]}=None, *, size={generator.randrange(5000)}):",
            f'    """Return {" ".join(generator.sample(_words(), 5))}."""',
            f"    if {names[1]} is None or len({names[2]}) >= {generator.randrange(100)}:",
            f'        raise ValueError(f"{names[3]}: {{{names[1]}!r}} != 0x{generator.randrange(1 << 32):08x}")',
            f"    for i in range({generator.randrange(10)}, size):",
            f"        {names[4]}[i] += self.{names[5]}({names[1]}[i - 1]) * {generator.random():.4f}",
            f"    return {names[4]}\n\n",
        ]
    return "\n".join(lines)


_SCRIPTS = {
    "latin": (range(0x61, 0x7B), " "),
    "accented": ([*range(0x61, 0x7B), *range(0xE0, 0xFF)], " "),
    "greek": (range(0x3B1, 0x3CA), " "),
    "cyrillic": (range(0x430, 0x450), " "),
    "hebrew": (range(0x5D0, 0x5EB), " "),
    "arabic": (range(0x627, 0x64B), " "),
    "devanagari": ([*range(0x905, 0x93A), *range(0x93E, 0x94D)], " "),
    "thai": (range(0xE01, 0xE2F), ""),
    "hiragana": (range(0x3041, 0x3097), ""),
    "han": (range(0x4E00, 0x5200), ""),
    "hangul": (range(0xAC00, 0xB000), " "),
    "emoji": (range(0x1F600, 0x1F650), " "),
}


@functools.cache
def _lexicon(script: str) -> list[str]:
    """2,000 made-up words of the script."""
    generator = random.Random(script)
    letters = [chr(code) for code in _SCRIPTS[script][0]]
    return ["".join(generator.choices(letters, k=generator.randint(1, 9))) for _ in range(2000)]


def _multi(generator: random.Random) -> str:
    lines = []
    for script in generator.sample(sorted(_SCRIPTS), 4):
        lexicon, blank = _lexicon(script), _SCRIPTS[script][1]
        # a word's frequency falls with its rank, as in real text
        words = [lexicon[int(len(lexicon) * generator.random() ** 3)] for _ in range(80)]
        lines.append(blank.join(words) + ". ")
    return "\n".join(lines)


def hard_inputs() -> dict[str, str]:
    """Long texts without the boundaries that tokenizers hope for."""
    generator = random.Random(7)
    return {
        "one letter": "a" * 1_000_000,
        "random letters": "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=200_000)),
        "blanks": " " * 1_000_000,
    }
