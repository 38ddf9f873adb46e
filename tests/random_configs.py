"""Random tokenizer.json configurations and texts, for comparison with the reference.

Left out is what the reference itself cannot do: added tokens that become empty when normalised (it crashes), and
prefixes longer than the tokens they are cut from (it panics while it loads).
"""

from __future__ import annotations

import random
from typing import Any

from jittok.vocabulary import byte_alphabet

Block = dict[str, Any]

BYTES = [chr(codepoint) for codepoint in byte_alphabet()]
CHARACTERS = [
    *" abcdABC\u00e91\u00df\uff12\u0663\u00b7\u65e5\U0001f600\u2581_'.,-\n\t",
    *"\u0301\u0085\u2028\u3000\u0130\u2460\ufb01\0\u00a0\u302e\u0323\u200b",
    *"\uac00\u1100\u1161\u01c5est",
    "re",
]
TOKENS = ["<s>", "</s>", "<x>", "ab", "A", "<S>", "\u00e9", "e\u0301", " ", "\u65e5", "\u2581", "<x>y", "b c"]
SNIPPETS = [*TOKENS, "'s", "'RE", " don't", "12345", "<0x41>"]
REGEXES = [
    r"\s+", r"\d", r"\p{L}+", r"[^\s]+", r" ?\p{L}+|\s+(?!\S)|\s+", r"a*", r"ab|a", r"(?i:'s|'re)", r"\p{N}{1,3}",
    r"[\r\n]+|.", r"$", r"\w+", r"a*b|a",
]  # fmt: skip
STRINGS = [" ", "a", "ab", "aa", "\u2581", "\n", "."]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def text(rng: random.Random) -> str:
    """Runs of characters from many scripts and categories, with tokens and contractions among them."""
    size = rng.choice([0, 1, 2, 3, 5, 8, 13, 30])
    parts: list[str] = []
    while len(parts) < size:
        parts += [rng.choice(CHARACTERS)] * rng.choice([1, 1, 1, 1, 2, 3, 7])
    for _ in range(rng.choice([0, 0, 1, 2])):
        parts.insert(rng.randint(0, len(parts)), rng.choice(SNIPPETS))
    return "".join(parts)


def configuration(rng: random.Random) -> Block:
    """A whole tokenizer.json with a BPE model."""
    byte_level = rng.random() < 0.5
    return _around(rng, bpe(rng, byte_level), byte_level)


def wordpiece_configuration(rng: random.Random) -> Block:
    """A whole tokenizer.json with a WordPiece model; every other one is BERT's in its other parts too."""
    block = _around(rng, wordpiece(rng), byte_level=False)
    if rng.random() < 0.5:
        block["normalizer"] = bert_normalizer(rng)
        block["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    return block


def wordlevel_configuration(rng: random.Random) -> Block:
    """A whole tokenizer.json with a WordLevel model, whose words are cut from random text."""
    words = {word for _ in range(30) for word in text(rng).replace(" ", "\n").split("\n")}
    words |= {"".join(rng.choices(CHARACTERS, k=rng.randint(1, 3))) for _ in range(60)}
    unknown = rng.choice(["[UNK]", "[UNK]", "a", "missing"])
    if unknown != "missing":
        words.add(unknown)
    order = sorted(words - {""})
    rng.shuffle(order)
    vocab = {word: number for number, word in enumerate(order)}
    return _around(rng, {"type": "WordLevel", "vocab": vocab, "unk_token": unknown}, byte_level=False)


def unigram_configuration(rng: random.Random) -> Block:
    """A whole tokenizer.json with a Unigram model of letters and pairs of them."""
    letters = [letter for letter in dict.fromkeys("".join(CHARACTERS)) if rng.random() < 0.7]
    pieces = [*letters, *("".join(rng.choices(letters, k=rng.randint(2, 4))) for _ in range(rng.choice([0, 10, 80])))]
    if rng.random() < 0.3:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ["<unk>", *dict.fromkeys(pieces)]
    vocab = [[piece, -round(9 * rng.random(), 3)] for piece in pieces]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": rng.random() < 0.3}
    named = dict(model, vocab={piece: number for number, piece in enumerate(pieces)})
    return _around(rng, named, byte_level=False) | {"model": model}


def _around(rng: random.Random, model: Block, byte_level: bool) -> Block:
    """A model's tokenizer.json with all other parts drawn at random."""
    byte_level_decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    other_decoders: list[Block | None] = [
        None,
        {"type": "Fuse"},
        {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "WordPiece", "prefix": rng.choice(["##", "a", ""]), "cleanup": rng.random() < 0.5},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        {"type": "CTC", "pad_token": "b", "word_delimiter_token": "_", "cleanup": rng.random() < 0.5},
        {"type": "Replace", "pattern": rng.choice([{"Regex": "a+|b"}, {"Regex": "a*"}, {"String": "a"}]), "content": "_"},
        {"type": "Strip", "content": "a", "start": 1, "stop": 0},  # others may crash the reference
        {
            "type": "Sequence",
            "decoders": [byte_level_decoder, {"type": "Replace", "pattern": {"Regex": "b|$"}, "content": "c"}],
        },
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(rng),
        "normalizer": normalizer(rng) if rng.random() < 0.6 else None,
        "pre_tokenizer": pre_tokenizer(rng, byte_level),
        "post_processor": post_processor(rng, model["vocab"]),
        "decoder": byte_level_decoder if byte_level else rng.choice(other_decoders),
        "model": model,
    }


def bpe(rng: random.Random, byte_level: bool) -> Block:
    """A model whose merges are drawn at random, with all of its options."""
    if byte_level:
        alphabet = list(BYTES)
        if rng.random() < 0.15:
            rng.shuffle(alphabet)
            alphabet = alphabet[: rng.randint(150, 255)]
    else:
        alphabet = [c for c in dict.fromkeys("".join(CHARACTERS)) if rng.random() < 0.8]
    prefix = rng.choice(["##", "@"]) if rng.random() < 0.2 else None
    suffix = rng.choice(["</w>", "_", "\u00e9"]) if rng.random() < 0.2 else None
    byte_fallback = rng.random() < 0.3
    if byte_fallback:
        prefix = suffix = None
    tokens: dict[str, int] = {}

    def add(token: str) -> str:
        tokens.setdefault(token, len(tokens))
        return token

    forms = [(a, b) for a in dict.fromkeys(("", prefix or "")) for b in dict.fromkeys(("", suffix or ""))]
    # Each is: whether it has the prefix, whether it has the suffix, the token.
    items = [
        (a != "", b != "", add(a + character + b))
        for character in alphabet
        for a, b in forms
        if len(forms) == 1 or rng.random() < 0.9
    ]
    frequent = (
        [item for item in items if any(c in item[2] for c in "ab\u0120cdABe\u00c3\u00a9\u00e8\u00b4")]
        if byte_level
        else list(items)
    )
    merges = []
    for _ in range(rng.choice([0, 3, 20, 80])):
        left, right = rng.choice(frequent), rng.choice(frequent)
        if left[1] or (prefix and not right[0]):
            continue
        result = left[2] + right[2][len(prefix or "") :]
        if len(result) <= 12:
            merges.append([left[2], right[2]])
            frequent.append((left[0], right[1], add(result)))
    if rng.random() < 0.15:
        rng.shuffle(merges)
    if rng.random() < 0.3:
        for _ in range(10):
            add("".join(rng.choice(alphabet) for _ in range(rng.randint(2, 4))))
    unknown = add(rng.choice(["<unk>", "a"])) if rng.random() < 0.4 else None
    if byte_fallback:
        for byte in range(256):
            if rng.random() < 0.97:
                add(f"<0x{byte:02X}>")
    if rng.random() < 0.5:
        order = list(tokens)
        rng.shuffle(order)
        tokens = {token: i for i, token in enumerate(order)}
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": rng.random() < 0.5,
        "byte_fallback": byte_fallback,
        "ignore_merges": rng.random() < 0.3,
        "vocab": tokens,
        "merges": merges,
    }


def wordpiece(rng: random.Random) -> Block:
    """A WordPiece model over a small alphabet, the suffix indicator and parts of it among its letters."""
    prefix = rng.choice(["##", "##", "##", "", "@", "a", "ab", "\u00e9", "\u65e5", " ", "aaa", "#"])
    letters = [*dict.fromkeys([*"abcdAB1_.', \n\u00e9e\u0301\u65e5\U0001f600\u00df\u0130#@", *prefix])]
    alphabet = [letter for letter in letters if rng.random() < 0.8]
    most = rng.choice([1, 2, 3, 8])
    tokens: list[str] = []
    for _ in range(rng.choice([0, 5, 30, 120])):
        token = "".join(rng.choices(alphabet or ["a"], k=rng.randint(1, most)))
        tokens.append(prefix * rng.choice([0, 1, 1]) + token)
    tokens += [prefix * rng.choice([0, 1]) + letter for letter in alphabet if rng.random() < 0.7]
    unknown = rng.choice(["[UNK]", "[UNK]", "a", prefix or "a", prefix + "b", "missing"])
    if rng.random() < 0.3:
        tokens.append(prefix)  # the indicator alone
    if rng.random() < 0.1:
        tokens.append("")
    if unknown != "missing":
        tokens.append(unknown)
    rng.shuffle(tokens)
    return {
        "type": "WordPiece",
        "unk_token": unknown,
        "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": rng.choice([0, 1, 3, 5, 100, 100, 100]),
        "vocab": {token: number for number, token in enumerate(dict.fromkeys(tokens or ["[PAD]"]))},
    }


def pattern(rng: random.Random) -> Block:
    return {"Regex": rng.choice(REGEXES)} if rng.random() < 0.65 else {"String": rng.choice(STRINGS)}


def pre_tokenizer(rng: random.Random, byte_level: bool) -> Block | None:
    """A pre-tokenizer or a sequence of some, a Metaspace anywhere among them; ByteLevel last if `byte_level`."""
    choices = [
        *[lambda: {"type": "Split", "pattern": pattern(rng), "behavior": behavior(), "invert": rng.random() < 0.3}]
        * 3,
        lambda: {"type": "Digits", "individual_digits": rng.random() < 0.5},
        lambda: {"type": "Whitespace"},
        lambda: {"type": "WhitespaceSplit"},
        lambda: {"type": "Punctuation", "behavior": behavior()},
        lambda: {"type": "CharDelimiterSplit", "delimiter": rng.choice([" ", "a", "\u65e5"])},
        lambda: {"type": "BertPreTokenizer"},
        lambda: {"type": "FixedLength", "length": rng.choice([1, 2, 5])},
        lambda: {"type": "UnicodeScripts"},
        lambda: byte_level_block(rng),
    ]

    def behavior() -> str:
        return rng.choice(BEHAVIORS)

    steps: list[Block] = [rng.choice(choices)() for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
    if byte_level:
        steps.append(byte_level_block(rng))
    elif rng.random() < 0.4:
        step = {
            "type": "Metaspace",
            "replacement": rng.choice(["\u2581", "_"]),
            "prepend_scheme": rng.choice(["always", "first", "never"]),
            "split": rng.random() < 0.6,
        }
        steps.insert(rng.randint(0, len(steps)), step)
    if not steps:
        return None
    return steps[0] if len(steps) == 1 and rng.random() < 0.5 else {"type": "Sequence", "pretokenizers": steps}


def byte_level_block(rng: random.Random) -> Block:
    return {
        "type": "ByteLevel",
        "add_prefix_space": rng.random() < 0.5,
        "trim_offsets": rng.random() < 0.5,
        "use_regex": rng.random() < 0.6,
    }


def normalizer(rng: random.Random) -> Block | None:
    replaced = [{"Regex": p} for p in (r"\s+", r"\d", r"\p{L}+", " {2,}", "a|b")] + [
        {"String": s} for s in STRINGS
    ]
    choices = [
        lambda: {"type": rng.choice(["NFC", "NFD", "NFKC", "NFKD"])},
        lambda: {"type": "Lowercase"},
        lambda: {
            "type": "Replace",
            "pattern": rng.choice(replaced),
            "content": rng.choice(["", "\u2581", "x", "ab", " "]),
        },
        lambda: {"type": "Prepend", "prepend": rng.choice(["\u2581", " ", "ab"])},
        lambda: {"type": "Strip", "strip_left": rng.random() < 0.5, "strip_right": rng.random() < 0.5},
        lambda: {"type": "StripAccents"},
        lambda: {"type": "Nmt"},
        lambda: {"type": "ByteLevel"},
        *[lambda: bert_normalizer(rng)] * 2,
    ]
    steps: list[Block] = [rng.choice(choices)() for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "normalizers": steps}


def bert_normalizer(rng: random.Random) -> Block:
    return {
        "type": "BertNormalizer",
        "clean_text": rng.random() < 0.7,
        "handle_chinese_chars": rng.random() < 0.7,
        "strip_accents": rng.choice([None, True, False]),
        "lowercase": rng.random() < 0.5,
    }


def added_tokens(rng: random.Random) -> list[Block]:
    return [
        {
            "id": 1000 + i,
            "content": content,
            "single_word": rng.random() < 0.3,
            "lstrip": rng.random() < 0.3,
            "rstrip": rng.random() < 0.3,
            "normalized": rng.random() < 0.5,
            "special": rng.random() < 0.5,
        }
        for i, content in enumerate(rng.sample(TOKENS, rng.choice([0, 0, 1, 2, 4])))
    ]


def post_processor(rng: random.Random, vocab: dict[str, int]) -> Block | None:
    kind = rng.choice([None, None, "ByteLevel", "Template", "Roberta", "Sequence"])
    (first, first_id), (last, last_id) = rng.choice(list(vocab.items())), rng.choice(list(vocab.items()))
    trim = byte_level_block(rng)

    def token(name: str, type_id: int) -> Block:
        return {"SpecialToken": {"id": name, "type_id": type_id}}

    def sequence(name: str, type_id: int) -> Block:
        return {"Sequence": {"id": name, "type_id": type_id}}

    pair = [token(first, 0), sequence("A", 0), token(last, 0), sequence("B", 1), token(last, 1)]
    template = {
        "type": "TemplateProcessing",
        "single": [token(first, 0), sequence("A", 0), token(last, rng.choice([0, 1]))],
        "pair": pair,
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]}
            for name, number in ((first, first_id), (last, last_id))
        },
    }
    if kind is None:
        return None
    if kind == "ByteLevel":
        return trim
    if kind == "Template":
        return template
    if kind == "Roberta":
        return {
            "type": "RobertaProcessing",
            "sep": [first, first_id],
            "cls": [last, last_id],
            "trim_offsets": rng.random() < 0.6,
            "add_prefix_space": rng.random() < 0.5,
        }
    steps = [trim, template]
    rng.shuffle(steps)
    return {"type": "Sequence", "processors": steps}
