"""Models of byte ranks as merges in the byte alphabet, and back.

In a word, a token is only ever made of one pair, whatever stands around it: what happens within its bytes does not depend
on the bytes beside them as long as nothing is merged across its ends (:func:`jittok.build.merge_tables.last_pairs`). So
ranks are the same model as these pairs in the order of the ranks of what they make, for every input, and a list of merges is
one of ranks exactly if its pairs are those of its ranks.
"""

from __future__ import annotations

from jittok.errors import UnsupportedError
from jittok.spec import (
    AddedToken,
    BPEModel,
    ByteLevel,
    DecodeByteLevel,
    PreTokenizer,
    RankModel,
    Split,
    Template,
    TokenizerSpec,
)


def from_ranks(spec: TokenizerSpec) -> TokenizerSpec:
    """Say with merges in the byte alphabet what byte ranks say.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.RankModel`.

    Returns
    -------
    TokenizerSpec
        With ``ignore_merges`` if there are tokens that no merge makes, which are only found as whole words. Special tokens
        are in the vocabulary, too, if their ids would not be kept otherwise.

    Raises
    ------
    UnsupportedError
        The message says what merges cannot hold.
    """
    from jittok.build.merge_tables import byte_alphabet, last_pairs

    model = spec.model
    assert isinstance(model, RankModel)
    if spec.normalizers or len(spec.pre_tokenizers) != 1 or not isinstance(spec.pre_tokenizers[0], Split):
        raise UnsupportedError("byte ranks with other steps than one split cannot be written as merges")
    letters = {byte: letter for letter, byte in byte_alphabet().items()}
    token_of = {rank: "".join(map(letters.__getitem__, token)) for token, rank in model.ranks.items()}
    made, left, right = last_pairs(model, byte_level=True)
    merges = tuple((token_of[a], token_of[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True))
    vocab = {token: rank for rank, token in token_of.items()}
    special = _in_vocabulary(tuple(spec.added_tokens), vocab)
    return TokenizerSpec(
        model=BPEModel({**vocab, **special}, merges, ignore_merges=len(made) + 256 < len(vocab)),
        added_tokens=spec.added_tokens,
        pre_tokenizers=_byte_level_steps(spec.pre_tokenizers[0]),
        decoders=(DecodeByteLevel(),),
    )


def _in_vocabulary(added: tuple[AddedToken, ...], vocab: dict[str, int]) -> dict[str, int]:
    """What the vocabulary must have besides, for added tokens to keep their ids."""
    from jittok.formats.tokenizer_json import assign_added_ids

    if assign_added_ids(added, vocab) == added:
        return {}
    ids: dict[int, str] = {}
    for token in added:
        if token.content in vocab:
            raise UnsupportedError(
                f"the special token {token.content!r} is another token in the byte alphabet; merges cannot hold both"
            )
        if token.id in ids:
            raise UnsupportedError(
                f"the special tokens {ids[token.id]!r} and {token.content!r} have the same id, {token.id}, which "
                "only a list of ranks can hold"
            )
        ids[token.id] = token.content
    return {content: token_id for token_id, content in ids.items()}


def _byte_level_steps(split: Split) -> tuple[PreTokenizer, ...]:
    from jittok.build.plan import GPT2_PATTERN
    from jittok.build.regex_automaton import compile_split
    from jittok.build.regex_translation import matches_everything, translate

    if not split.is_regex or split.behavior != "isolated" or split.invert:
        return (split, ByteLevel(add_prefix_space=False, use_regex=False))
    if not matches_everything(compile_split(split.pattern, split.dialect)):
        raise UnsupportedError(
            f"the pattern {split.pattern!r} leaves out some text, which tiktoken loses and tokenizers encodes; add a choice "
            r"such as [\s\S] to it"
        )
    pattern = translate(split.pattern, split.dialect, "oniguruma", (GPT2_PATTERN,))
    if pattern == GPT2_PATTERN:
        return (ByteLevel(add_prefix_space=False),)
    return (Split(pattern), ByteLevel(add_prefix_space=False, use_regex=False))


# ------------------------------------------------------------------------------------------------- to ranks


def to_ranks(spec: TokenizerSpec) -> TokenizerSpec:
    """Say with byte ranks what merges in the byte alphabet say, where that is the same for every text.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.BPEModel`.

    Returns
    -------
    TokenizerSpec
        All added tokens are special ones: tiktoken has no others, and finds them where they are allowed.

    Raises
    ------
    UnsupportedError
        The message names what ranks cannot hold.
    """
    model = spec.model
    assert isinstance(model, BPEModel)
    pattern = _pattern_of(spec)
    for token in spec.added_tokens:
        if token.single_word or token.lstrip or token.rstrip:
            raise UnsupportedError(
                f"a rank file cannot go with the added token {token.content!r} with single_word, lstrip or rstrip"
            )
    special = {token.content: token.id for token in spec.added_tokens}
    ranks = _ranks_of(model, special)
    _check_merges(model, ranks)
    added = tuple(AddedToken(i, content, special=True, normalized=False) for content, i in special.items())
    return TokenizerSpec(
        model=RankModel(ranks),
        added_tokens=tuple(sorted(added, key=lambda token: token.id)),
        pre_tokenizers=(Split(pattern, "isolated", dialect="rust"),),
        reference="tiktoken",
        default_special="raise",
        source_format="tiktoken",
    )


def _pattern_of(spec: TokenizerSpec) -> str:
    """The one pattern that texts are cut at, in the dialect of tiktoken."""
    from jittok.build.plan import GPT2_PATTERN
    from jittok.build.regex_automaton import compile_split
    from jittok.build.regex_translation import matches_everything, translate

    if spec.normalizers:
        names = ", ".join(type(step).__name__ for step in spec.normalizers)
        raise UnsupportedError(f"tiktoken has no normalizer such as {names}")
    if any(isinstance(step, Template) for step in spec.post_processors):
        raise UnsupportedError(
            "tiktoken puts no special tokens around texts, as the template does; leave it out (--no-template)"
        )
    steps = spec.pre_tokenizers
    last = steps[-1] if steps else None
    if not isinstance(last, ByteLevel):
        raise UnsupportedError(
            "only byte-level merges can be written as ranks, with ByteLevel as the last pre-tokenizer"
        )
    if last.add_prefix_space:
        raise UnsupportedError("tiktoken puts no blank in front (add_prefix_space)")
    if len(steps) == 1 and last.use_regex:
        pattern, dialect = GPT2_PATTERN, "oniguruma"
    elif len(steps) == 2 and isinstance(steps[0], Split) and not last.use_regex and steps[0].is_regex:
        pattern, dialect = steps[0].pattern, steps[0].dialect
        total = matches_everything(compile_split(pattern, steps[0].dialect))
        if not total or (steps[0].behavior, steps[0].invert) not in (("isolated", False), ("removed", True)):
            raise UnsupportedError(
                f"tiktoken only cuts out the matches of its pattern; Split with behavior {steps[0].behavior!r} of "
                f"{pattern!r} does something else"
            )
    else:
        raise UnsupportedError(
            "tiktoken cuts texts with one pattern, not with "
            f"{', '.join(type(step).__name__ for step in steps)}"
        )
    return translate(pattern, "rust" if dialect == "rust" else "oniguruma", "rust")


def _ranks_of(model: BPEModel, special: dict[str, int]) -> dict[bytes, int]:
    from jittok.build.merge_tables import byte_alphabet

    if model.continuing_subword_prefix or model.end_of_word_suffix:
        raise UnsupportedError("ranks cannot hold a subword prefix or suffix")
    alphabet = byte_alphabet()
    ranks: dict[bytes, int] = {}
    taken = set(special.values())
    for token, number in model.vocab.items():
        if token in special:
            continue
        try:
            ranks[bytes(map(alphabet.__getitem__, token))] = number
        except KeyError as error:
            raise UnsupportedError(
                f"ranks cannot hold the token {token!r}: {error.args[0]!r} is no letter of the byte alphabet, so no text "
                "has it"
            ) from None
        if number in taken or not token:
            raise UnsupportedError(f"ranks cannot hold the token {token!r}: it is empty, or its id {number} another token's")
    missing = next((byte for byte in range(256) if bytes((byte,)) not in ranks), None)
    if missing is not None:
        raise UnsupportedError(
            f"ranks need a token for each byte, and 0x{missing:02x} has none of its own"
        )
    return ranks


def _check_merges(model: BPEModel, ranks: dict[bytes, int]) -> None:
    """Refuse where ranks would merge otherwise than the model's list says."""
    from jittok.build.merge_tables import last_pairs

    wanted = list(zip(*(side.tolist() for side in last_pairs(model, byte_level=True)), strict=True))
    found = list(zip(*(side.tolist() for side in last_pairs(RankModel(ranks), byte_level=True)), strict=True))
    names = {number: token for token, number in ranks.items()}
    if wanted != found:
        if sorted(wanted) == sorted(found):
            place = next(i for i, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b)
            raise UnsupportedError(
                f"ranks cannot hold these merges: the one that makes {names[wanted[place][0]]!r} comes before that of "
                f"{names[found[place][0]]!r}, but its id is higher"
            )
        made, left, right = min(set(wanted) ^ set(found))
        raise UnsupportedError(
            f"ranks cannot hold these merges: they would make {names.get(made, made)!r} "
            f"{'not ' if (made, left, right) in wanted else ''}of {names.get(left, left)!r} and {names.get(right, right)!r}"
        )
    if not model.ignore_merges:
        reached = {made for made, _, _ in found}
        other = next((token for token, rank in ranks.items() if len(token) > 1 and rank not in reached), None)
        if other is not None:
            raise UnsupportedError(
                f"ranks cannot hold {other!r}, which no merge makes: tiktoken would find it whole"
            )
