"""Whole random tokenizer.json files, compared with tokenizers in everything that it does.

``python tests/random_pipelines.py FIRST LAST`` compares the configurations of many seeds and prints what differs.
"""

from __future__ import annotations

import json
import random
import sys
from base64 import b64encode
from typing import Any

import random_configs
from random_configs import Block

import jittok
from jittok.build.charsmap import compile_charsmap
from jittok.errors import ArgumentError, FormatError, UnsupportedError

MAKERS = [
    random_configs.configuration,
    random_configs.wordpiece_configuration,
    random_configs.wordlevel_configuration,
    random_configs.unigram_configuration,
]
#: Normalizers that change white space.
CLEANS = ("'Bert", "'Replace", "'Nmt", "'NFK", "'ByteLevel", "'Precompiled")
STRATEGIES = {"longest_first": "longest_first", "only_first": "only_first", "only_second": "only_second"}


def decoder(rng: random.Random) -> Block:
    """One decoder."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    stop = rng.choice([0, 1, 2])
    pattern = rng.choice([{"Regex": "a+|b"}, {"Regex": "[ab]"}, {"String": "a"}, {"String": " "}, {"String": "\u2581"}])
    return rng.choice(
        [
            {"type": "Fuse"},
            {"type": "ByteFallback"},
            {"type": "BPEDecoder", "suffix": rng.choice(["</w>", "a", "_"])},
            {"type": "WordPiece", "prefix": rng.choice(["##", "a"]), "cleanup": rng.random() < 0.5},
            {
                "type": "Metaspace",
                "replacement": rng.choice(["\u2581", "a"]),
                "prepend_scheme": rng.choice(["always", "first", "never"]),
                "split": rng.random() < 0.5,
            },
            {
                "type": "CTC",
                "pad_token": rng.choice(["b", "<s>"]),
                "word_delimiter_token": "_",
                "cleanup": rng.random() < 0.5,
            },
            {"type": "Replace", "pattern": pattern, "content": rng.choice(["", "_", "ab", " "])},
            {"type": "Strip", "content": rng.choice([" ", "a"]), "start": rng.choice([0, 1, 2]), "stop": stop},
            byte_level,
        ]
    )


def decoders(rng: random.Random) -> Block | None:
    """No decoder, one, or a sequence of some."""
    steps = [decoder(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "decoders": steps}


def comparable(ours: Any, block: Block) -> bool:
    """Whether the reference does something that can be compared with; what it does else is in docs/differences.md."""
    contents = [ours.normalize(t["content"]) for t in block["added_tokens"] if t["normalized"]]
    if not all(contents):
        return False  # it reads outside its memory
    return len(set(contents)) == len(contents)  # else, which of equal ones counts changes from process to process


def charsmap(rng: random.Random) -> bytes:
    """Rules as SentencePiece has them, of characters and pairs of them that stand in the texts."""
    characters = random_configs.CHARACTERS
    lefts = {"".join(rng.choices(characters, k=rng.choice([1, 1, 1, 2]))) for _ in range(rng.choice([1, 5, 20]))}
    rights = ["", " ", "a", "ab", "\u2581", "e\u0301", "\u65e5"]
    return compile_charsmap({left: rng.choice(rights) for left in sorted(lefts) if "\0" not in left} or {"A": "a"})


def more(rng: random.Random, block: Block) -> None:
    """Put components into a configuration whose spans and masks the reference often has wrong."""
    if rng.random() < 0.2:
        step = {"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap(rng)).decode()}
        other = block["normalizer"]
        steps = [] if other is None else other.get("normalizers", [other])
        at = rng.randint(0, len(steps))
        block["normalizer"] = {"type": "Sequence", "normalizers": [*steps[:at], step, *steps[at:]]}
    if rng.random() < 0.3:
        vocab = block["model"]["vocab"]
        tokens = [(entry[0], number) for number, entry in enumerate(vocab)] if type(vocab) is list else list(vocab.items())
        block["post_processor"] = post_processor(rng, rng.choice(tokens), rng.choice(tokens))


def post_processor(rng: random.Random, start: tuple[str, int], end: tuple[str, int]) -> Block:
    """Post-processors one after another."""
    # Most other templates one after another are too much for the reference.
    several = [["Bert", "Template"], ["Roberta", "Template"], ["Roberta", "Bert"]]
    kinds = rng.choice([["Template"], ["Bert"], ["Bert"], *several])
    if len(kinds) > 1 and rng.random() < 0.3:
        kinds = kinds[::-1]
    kinds = rng.choice([["ByteLevel", *kinds], [*kinds, "ByteLevel"], kinds])
    steps = [one_post_processor(rng, kind, start, end) for kind in kinds]
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "processors": steps}


def one_post_processor(rng: random.Random, kind: str, start: tuple[str, int], end: tuple[str, int]) -> Block:
    """A post-processor of one kind, with two tokens of the vocabulary."""
    (first, first_id), (last, last_id) = start, end

    def token(name: str, type_id: int) -> Block:
        return {"SpecialToken": {"id": name, "type_id": type_id}}

    def sequence(name: str, type_id: int) -> Block:
        return {"Sequence": {"id": name, "type_id": type_id}}

    if kind == "ByteLevel":
        return random_configs.byte_level_block(rng)
    if kind == "Template":
        pair = [token(first, 0), sequence("A", 0), token(last, 0), sequence("B", 1), token(last, 1)]
        return {
            "type": "TemplateProcessing",
            "single": [token(first, 0), sequence("A", 0), token(last, rng.choice([0, 1]))],
            "pair": pair,
            "special_tokens": {
                name: {"id": name, "ids": [number], "tokens": [name]}
                for name, number in ((first, first_id), (last, last_id))
            },
        }
    ends: Block = {"sep": [first, first_id], "cls": [last, last_id]}
    if kind == "Bert":
        return {"type": "BertProcessing", **ends}
    trims = {"trim_offsets": rng.random() < 0.6, "add_prefix_space": rng.random() < 0.5}
    return {"type": "RobertaProcessing", **ends, **trims}


class Known:
    """Where the reference is known to be wrong with one configuration: fields that are not compared."""

    def __init__(self, ours: Any, block: Block) -> None:
        names = str(block["normalizer"])
        drops = ours._engine._drops
        byte_level = "'ByteLevel'" in str(block["pre_tokenizer"])
        tokens = block["added_tokens"]
        cleaned = bool(tokens) and any(name in names for name in CLEANS)
        model = block["model"]
        # It takes a blank that is put in front for one of the text, which begins with a token.
        in_front = bool(tokens) and "'prepend': ' '" in names
        trimmed = (cleaned or in_front) and "'trim_offsets': True" in str(block["post_processor"])
        # Of unknown characters in a row, the reference gives each byte the span of all.
        fallback = model["type"] == "Unigram" and model["byte_fallback"]
        # Behind a template in a sequence, the reference numbers the parts of the template.
        self.sequences = "'processors'" in str(block["post_processor"])
        # Tokens that one puts around a text are not special any more to the next.
        kinds = [step["type"] for step in (block["post_processor"] or {}).get("processors", [])]
        self.mask = sum(kind != "ByteLevel" for kind in kinds) > 1
        # Behind tokens that were put around a text, its first blank is not taken for one that was put in front.
        trimming = ("ByteLevel", "RobertaProcessing")
        behind = any(kind in trimming for kind in kinds[1:]) and kinds[0] in ("BertProcessing", "RobertaProcessing")
        moved = any(name in names for name in ("'NF", "'Replace", "'Precompiled"))
        self.spans = fallback or moved or (drops and byte_level) or trimmed or behind
        changed = any(ours.normalize(t["content"]) != t["content"] for t in tokens if t["normalized"])
        self.decoded = changed or any(t["content"] == "\u00e9" for t in tokens)


def row(encoding: Any, known: Known) -> Block:
    """One encoding of jittok's as a mapping."""
    result: Block = {
        "ids": encoding.ids.tolist(),
        "type ids": encoding.type_ids.tolist(),
        "words": [None if number < 0 else int(number) for number in encoding.word_ids],
    }
    if not known.mask:
        result["mask"] = encoding.special_tokens_mask.tolist()
    if not known.sequences:
        result["sequences"] = [None if number < 0 else int(number) for number in encoding.sequence_ids]
    if not known.spans:
        result["spans"] = encoding.spans.tolist()
    result["tokens"] = list(encoding.tokens)
    return result


def reference_row(encoding: Any, known: Known) -> Block:
    """One encoding of the reference's as a mapping."""
    result: Block = {
        "ids": encoding.ids,
        "type ids": encoding.type_ids,
        "words": encoding.word_ids,
    }
    if not known.mask:
        result["mask"] = encoding.special_tokens_mask
    if not known.sequences:
        result["sequences"] = encoding.sequence_ids
    if not known.spans:
        result["spans"] = [list(span) for span in encoding.offsets]
    result["tokens"] = encoding.tokens
    return result


def unlike(actual: Block, expected: Block) -> list[Any]:
    """What differs."""
    return [(key, value, expected[key]) for key, value in actual.items() if value != expected[key]]


def refuses(call: Any) -> bool:
    """Whether jittok refuses a call."""
    try:
        call()
    except (ArgumentError, FormatError):
        return True
    return False


def collide(rng: random.Random, block: Block) -> None:
    """Give added tokens contents and ids of the vocabulary, and of each other."""
    vocab = block["model"]["vocab"]
    names = [entry[0] for entry in vocab] if type(vocab) is list else list(vocab)
    tokens = block["added_tokens"] or random_configs.added_tokens(rng)
    for token in tokens:
        if rng.random() < 0.35:
            token["content"] = rng.choice(names) or token["content"]
        kept, n = token["id"], len(names)
        token["id"] = rng.choice([kept, rng.randrange(n), n + rng.randrange(6), n])
    block["added_tokens"] = list({token["content"]: token for token in tokens}.values())


def compare(seed: int, colliding: bool = False) -> tuple[int, list[Any]]:
    """Compare one configuration; returns how many texts were compared, and what differs."""
    from tokenizers import Tokenizer

    rng = random.Random(seed)
    block = rng.choice(MAKERS)(rng)
    if rng.random() < 0.7 and not (
        "'ByteLevel'" in str(block["decoder"]) and block["model"]["type"] == "BPE" and rng.random() < 0.5
    ):
        block["decoder"] = decoders(rng)
    more(rng, block)
    if colliding:
        collide(rng, block)
    block |= stored(rng)
    content = json.dumps(block)
    try:
        ours = jittok.load_bytes(content.encode())
    except UnsupportedError as error:
        return 0, [] if "byte_fallback" in str(error) else [("refused", str(error), block)]
    if not comparable(ours, block):
        return 0, []
    reference = Tokenizer.from_str(content)
    known = Known(ours, block)
    found: list[Any] = compare_stored(rng, ours, reference, known)
    reference.no_truncation()
    reference.no_padding()
    compared = 1

    def check(what: str, given: Any, actual: Any, expected: Any) -> None:
        nonlocal compared
        compared += 1
        for item in unlike(actual, expected):
            found.append((what, given, *item))

    def both(what: str, text: Any, pair: Any, options: Block) -> None:
        given = text, pair, options
        split, special = options["is_split_into_words"], options["add_special_tokens"]

        def mine() -> Any:
            return ours.encode(text, pair, **options)

        try:
            expected = reference.encode(text, pair, is_pretokenized=split, add_special_tokens=special)
        except BaseException as error:  # panics are no Exceptions
            if isinstance(error, KeyboardInterrupt):
                raise
            if not ("bad split" in str(error) or refuses(mine)):
                found.append((what, given, "the reference fails", str(error), ""))
            return
        try:
            actual = mine()
        except (ArgumentError, FormatError) as error:
            found.append((what, given, "refused", str(error), ""))
            return
        check(what, given, row(actual, known), reference_row(expected, known))
        compare_windows(what, given, actual, expected)

    def compare_windows(what: str, given: Any, actual: Any, expected: Any) -> None:
        if len(actual.overflowing) != len(expected.overflowing):
            found.append((what, given, "windows", len(actual.overflowing), len(expected.overflowing)))
        for mine, theirs in zip(actual.overflowing, expected.overflowing, strict=False):
            windows = row(mine, known), reference_row(theirs, known)
            if "'RobertaProcessing'" in str(block["post_processor"]):
                # Without special tokens, the reference leaves type id 1 in further windows of a pair's second text.
                for window in windows:
                    del window["type ids"]
            check(what, given, *windows)

    def texts() -> tuple[Any, Any, bool]:
        split = rng.random() < 0.3
        make = (lambda: [random_configs.text(rng) for _ in range(rng.randint(0, 4))]) if split else (
            lambda: random_configs.text(rng)
        )
        return make(), make() if rng.random() < 0.3 else None, split

    for _ in range(5):
        text, pair, split = texts()
        special = rng.random() < 0.6
        options = {"add_special_tokens": special, "is_split_into_words": split}
        both("encode", text, pair, options)
    # Of post-processors one after another, the reference may count too few tokens, and rows become too long.
    miscounts = any(
        ours.num_special_tokens_to_add(pair) != reference.num_special_tokens_to_add(pair) for pair in (False, True)
    )
    for _ in range(0 if miscounts else 4):
        text, pair, split = texts()
        special = rng.random() < 0.6
        strategy, side = rng.choice(list(STRATEGIES)), rng.choice(["left", "right"])
        length, stride = rng.choice([1, 2, 3, 5, 8, 12]), rng.choice([0, 0, 1, 2])
        # The reference always takes the special tokens of single texts off when it is told the stride.
        added = max(ours.num_special_tokens_to_add(False), ours.num_special_tokens_to_add(pair is not None))
        if stride >= length - added or length <= added:
            continue
        if strategy == "only_second" and pair is None:
            continue  # an error only where the text is too long
        # Of a pair that is cut, the reference numbers the sequences as they were in a row of another length.
        sequences, known.sequences = known.sequences, True
        reference.enable_truncation(length, stride=stride, strategy=STRATEGIES[strategy], direction=side)
        options = {
            "add_special_tokens": special, "is_split_into_words": split, "max_length": length, "stride": stride,
            "truncation": strategy, "truncation_side": side,
        }  # fmt: skip
        both("truncate", text, pair, options)
        reference.no_truncation()
        known.sequences = sequences
    found += compare_batch(rng, ours, reference, known)
    compared += 1
    if not known.decoded:
        found += compare_decoding(rng, ours, reference)
        compared += 1
    return compared, [(seed, *item) for item in found]


def stored(rng: random.Random) -> Block:
    """What a file may say of truncation and padding."""
    truncation = {
        "direction": rng.choice(["Left", "Right"]), "max_length": rng.choice([6, 7, 9, 14]), "stride": rng.choice([0, 0, 1]),
        "strategy": rng.choice(["LongestFirst", "LongestFirst", "OnlyFirst"]),
    }  # fmt: skip
    padding = {
        "strategy": rng.choice(["BatchLongest", {"Fixed": rng.choice([0, 5, 20])}]),
        "direction": rng.choice(["Left", "Right"]), "pad_to_multiple_of": rng.choice([None, None, 4, 7]), "pad_id": 3,
        "pad_type_id": rng.choice([0, 1]), "pad_token": "p",
    }  # fmt: skip
    return {
        "truncation": truncation if rng.random() < 0.3 else None,
        "padding": padding if rng.random() < 0.3 else None,
    }


def compare_stored(rng: random.Random, ours: Any, reference: Any, known: Known) -> list[Any]:
    """What differs between the wrapper and the reference, which heed what a file says of truncation and padding."""
    wrapper = ours.as_hf()
    if (wrapper.truncation, wrapper.padding) != (reference.truncation, reference.padding):
        return [("stored", wrapper.truncation, wrapper.padding, reference.truncation, reference.padding)]
    found = []
    for number in range(3):
        texts = [random_configs.text(rng) for _ in range(rng.randint(1, 4))]
        given: list[Any] = list(zip(texts, texts[::-1], strict=True)) if number == 2 else texts
        special = rng.random() < 0.6
        try:
            expected = reference.encode_batch(given, add_special_tokens=special)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            continue  # as with texts that are cut
        added = max(ours.num_special_tokens_to_add(False), ours.num_special_tokens_to_add(number == 2))
        stored = wrapper.truncation
        if stored is not None and added != reference.num_special_tokens_to_add(number == 2):
            continue  # it may count too few
        if stored is not None and stored["stride"] >= stored["max_length"] - added:
            continue
        try:
            actual = wrapper.encode_batch(given, add_special_tokens=special)
        except ArgumentError as error:
            found.append(("stored", given, special, "refused", str(error)))
            continue
        for mine, theirs in zip(actual, expected, strict=True):
            fields = ["ids", "attention_mask", "type_ids", *["special_tokens_mask"] * (not known.mask)]
            fields += [*["offsets"] * (not known.spans), "tokens"]
            rows = [(mine, theirs)]
            if number < 2:  # of pairs that are cut, the reference repeats windows
                rows += zip(mine.overflowing, theirs.overflowing, strict=True)
            for one, other in rows:
                found += [
                    ("stored", given, name, getattr(one, name), getattr(other, name))
                    for name in fields
                    if getattr(one, name) != getattr(other, name)
                ]
    return found


def compare_batch(rng: random.Random, ours: Any, reference: Any, known: Known) -> list[Any]:
    """What differs in a batch with padding."""
    split = rng.random() < 0.3
    texts = [
        [random_configs.text(rng) for _ in range(rng.randint(0, 3))] if split else random_configs.text(rng)
        for _ in range(rng.randint(1, 6))
    ]
    pairs = texts[::-1] if rng.random() < 0.3 else None
    special = rng.random() < 0.6
    given = texts if pairs is None else list(zip(texts, pairs, strict=True))
    side, multiple = rng.choice(["left", "right"]), rng.choice([None, None, 4, 7])
    try:
        expected = reference.encode_batch(given, is_pretokenized=split, add_special_tokens=special)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return []  # as with single texts
    options = {"spans": True, "add_special_tokens": special, "is_split_into_words": split}
    batch = ours.encode_batch(texts, pairs, **options)
    found = []
    for number, encoding in enumerate(expected):
        found += [("batch", given, *item) for item in unlike(row(batch[number], known), reference_row(encoding, known))]
    plain = ours.encode_batch(texts, pairs, **(options | {"spans": False}))
    if plain.to_lists() != batch.to_lists():
        found.append(("batch without spans", given, plain.to_lists(), batch.to_lists(), ""))
    reference.enable_padding(direction=side, pad_id=7, pad_token="p", pad_to_multiple_of=multiple)
    expected = reference.encode_batch(given, is_pretokenized=split, add_special_tokens=special)
    reference.no_padding()
    ids, mask = batch.pad(multiple_of=multiple, side=side, pad_id=7)
    if ids.tolist() != [e.ids for e in expected] or mask.tolist() != [e.attention_mask for e in expected]:
        found.append(("padding", given, ids.tolist(), [e.ids for e in expected], (side, multiple)))
    return found


def compare_decoding(rng: random.Random, ours: Any, reference: Any) -> list[Any]:
    """What differs when random ids are decoded, at once or one by one."""
    known = [number for token, number in reference.get_vocab().items() if ours.id_to_token(number) == token]
    fallback = [number for number in known if ours.id_to_token(number).startswith("<0x")]
    found = []
    for _ in range(6):
        size = rng.choice([0, 1, 2, 5, 12])
        ids = [rng.choice(fallback if fallback and rng.random() < 0.5 else known) for _ in range(size)]
        ids = [number for number in ids for _ in range(rng.choice([1, 1, 1, 2]))]
        skip = rng.random() < 0.5
        actual = ours.decode(ids, skip_special_tokens=skip)
        try:
            expected = reference.decode(ids, skip_special_tokens=skip)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            expected = actual  # it panics where decoders strip more than there is
        if actual != expected:
            found.append(("decode", ids, [ours.id_to_token(i) for i in ids], actual, expected))
        stream = ours.decode_stream(skip_special_tokens=skip)
        streamed = "".join(stream.push(number) for number in ids) + stream.finish()
        if streamed != actual:
            found.append(("stream", ids, [ours.id_to_token(i) for i in ids], streamed, actual))
    return found


def main(first: int, last: int) -> None:
    """Compare the configurations of a range of seeds."""
    total = 0
    for seed in range(first, last):
        try:
            compared, found = compare(seed)
        except Exception as error:
            compared, found = 0, [(seed, "crash", repr(error))]
        total += compared
        for item in found[:3]:
            print(*map(repr, item), flush=True)
    print(f"{total} comparisons of seeds {first} to {last}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
