"""``.tiktoken`` rank files: one token a line, in base64, and its rank.

The file holds only the ranks. The split pattern and the special tokens come from the known encodings, which
are recognised by the SHA-256 of their file, or from the caller; they are never guessed. Special tokens may also stand
in a tokenizer_config.json beside the file.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jittok.errors import ArgumentTypeError, FormatError, UnsupportedError
from jittok.formats._json import MAX_TOKEN_ID
from jittok.spec import AddedToken, RankModel, Split, TokenizerSpec


class Encoding(NamedTuple):
    """What a published encoding adds to its rank file."""

    sha256: str  # of the rank file
    pattern: str  # in the Rust dialect
    special_tokens: Mapping[str, int] | None  # None: the file beside it must say


_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
    r"\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT_FORM = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT_FORM}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT_FORM}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
_NOT_HAN = r"&&[^\p{Han}]"
_KIMI = "|".join(
    (
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER[:-1]}{_NOT_HAN}]*{_LOWER[:-1]}{_NOT_HAN}]+{_SHORT_FORM}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER[:-1]}{_NOT_HAN}]+{_LOWER[:-1]}{_NOT_HAN}]*{_SHORT_FORM}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_R50K_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
_P50K_SHA256 = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_LLAMA3_SHA256 = "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55"
_KIMI_K2_SHA256 = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"
_LLAMA3_TOKENS = (
    "<|begin_of_text|>", "<|end_of_text|>", *(f"<|reserved_special_token_{number}|>" for number in range(4)),
    "<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>",
    *(f"<|reserved_special_token_{number}|>" for number in range(5, 251)),
)  # fmt: skip
_HARMONY = {
    "<|endoftext|>": 199999,
    "<|endofprompt|>": 200018,  # has another name too, below; the later one is what the id decodes to
    "<|startoftext|>": 199998,
    **{f"<|reserved_{token_id}|>": token_id for token_id in (200000, 200001, 200004, 200009, 200010, 200011)},
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
    **{f"<|reserved_{token_id}|>": token_id for token_id in range(200013, 201088)},
}

#: The published encodings. The first one with a file's hash is what that file means by itself.
ENCODINGS: dict[str, Encoding] = {
    "r50k_base": Encoding(_R50K_SHA256, _GPT2, {"<|endoftext|>": 50256}),
    "gpt2": Encoding(_R50K_SHA256, _GPT2, {"<|endoftext|>": 50256}),
    "p50k_base": Encoding(_P50K_SHA256, _GPT2, {"<|endoftext|>": 50256}),
    "p50k_edit": Encoding(
        _P50K_SHA256,
        _GPT2,
        {"<|endoftext|>": 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283},
    ),
    "cl100k_base": Encoding(
        _CL100K_SHA256,
        _CL100K,
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": Encoding(_O200K_SHA256, _O200K, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    "o200k_harmony": Encoding(_O200K_SHA256, _O200K, _HARMONY),
    "llama3": Encoding(
        _LLAMA3_SHA256, _LLAMA3, {token: 128_000 + number for number, token in enumerate(_LLAMA3_TOKENS)}
    ),
    # Its special tokens stand in the tokenizer_config.json that comes with it.
    "kimi_k2": Encoding(_KIMI_K2_SHA256, _KIMI, None),
}

_SHORT_NAMES = {"r50k": "r50k_base", "p50k": "p50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}
_FILE_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \r\n"
#: One line of a rank file.
LINE = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4}) [0-9]{1,8}")


def read(
    data: bytes,
    where: str,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> TokenizerSpec:
    """Read a rank file.

    Parameters
    ----------
    data
        The whole file.
    where
        Name of the file, for messages.
    pattern
        Split pattern: the name of a known encoding (a key of :data:`ENCODINGS`, or ``"cl100k"`` for
        ``"cl100k_base"`` and so on) or a regular expression. Needed where the file is not a known one.
    special_tokens
        From text to id. Needed where the file is not a known one; ``{}`` says that there are none. Of a file in a
        folder they are read from the ``added_tokens_decoder`` of a tokenizer_config.json beside it, if there is one.

    Returns
    -------
    TokenizerSpec
        Of the Rust regex dialect, with tiktoken's defaults: special tokens in a text raise.

    Raises
    ------
    FormatError
        The file is malformed, or is not a known encoding and something was not passed.
    """
    name = None if pattern is None else _SHORT_NAMES.get(pattern, pattern)
    digest = hashlib.sha256(data).hexdigest()
    if name is None:
        name = next((key for key, encoding in ENCODINGS.items() if encoding.sha256 == digest), None)
    ranks = parse_ranks(data, where)
    encoding = ENCODINGS.get(name) if name is not None else None
    if encoding is not None:
        regex = encoding.pattern
        if special_tokens is None and encoding.sha256 == digest:
            special_tokens = encoding.special_tokens
    elif name is not None:
        regex = name
    else:
        raise FormatError(
            f"{where}: this rank file is not one of {', '.join(ENCODINGS)}, and does not itself say how to split "
            "text; pass pattern= (one of these names, or a regular expression) and special_tokens= "
            "(a dict from text to id, {} for none)"
        )
    if special_tokens is None:
        raise FormatError(
            f"{where}: the special tokens of this rank file are not known; put its tokenizer_config.json beside it, or pass "
            "special_tokens= (a dict from text to id, {} for none)"
        )
    return _spec(ranks, regex, _special_tokens(special_tokens, ranks, where), name if encoding is not None else None)


def make_spec(
    ranks: Mapping[bytes, int], pattern: str, special_tokens: Mapping[str, int], name: str | None = None
) -> TokenizerSpec:
    """Return what a rank file and what is passed with it come to.

    Parameters
    ----------
    ranks
        The bytes of tokens and their ranks.
    pattern
        A regular expression.
    special_tokens
        From text to id.
    name
        The encoding's name.

    Raises
    ------
    FormatError, ArgumentTypeError
        An entry is malformed, or a rank or id comes twice.
    """
    for token, rank in ranks.items():
        if type(token) is not bytes or type(rank) is not int:
            raise ArgumentTypeError(f"ranks must be a dict from bytes to int; got the entry {token!r}: {rank!r}")
        if not token or not 0 <= rank < MAX_TOKEN_ID:
            raise FormatError(f"ranks: the token {token!r} has the rank {rank}; expected 0 to {MAX_TOKEN_ID - 1}")
    numbers = list(ranks.values())
    if len(set(numbers)) != len(numbers):
        raise FormatError(f"ranks: two tokens have the rank {_first_repeated(numbers)!r}; expected unique ranks")
    _check_single_bytes(ranks, "ranks")
    return _spec(dict(ranks), pattern, _special_tokens(special_tokens, ranks, "special_tokens"), name)


def _spec(
    ranks: Mapping[bytes, int], pattern: str, added_tokens: tuple[AddedToken, ...], name: str | None
) -> TokenizerSpec:
    return TokenizerSpec(
        model=RankModel(ranks),
        added_tokens=added_tokens,
        pre_tokenizers=(Split(pattern, "isolated", dialect="rust"),),
        reference="tiktoken",
        default_special="raise",
        source_format="tiktoken",
        extra={} if name is None else {"encoding": name},
    )


def parse_ranks(data: bytes, where: str) -> dict[bytes, int]:
    """Parse the lines of a rank file; about 0.1 s for 200,000."""
    foreign = data.translate(None, _FILE_CHARACTERS)
    if foreign:
        position = data.index(foreign[:1])
        line = data.count(b"\n", 0, position) + 1
        raise FormatError(
            f"{where}: line {line}: unexpected byte {foreign[:1]!r}; "
            "expected a token in base64, a blank and a rank"
        )
    if not data.strip():
        raise FormatError(f"{where}: no tokens; expected lines of a token in base64, a blank and a rank")
    lines = data
    if b"\r" in data or b"\n\n" in data or data[:1] == b"\n" or data[-1:] != b"\n":
        lines = b"\n".join([line for line in data.splitlines() if line]) + b"\n"
    numbers = _ranks_of_lines(lines)
    if numbers is None:
        raise _bad_line(data.splitlines(), where)
    tokens = list(map(binascii.a2b_base64, lines.split()[::2]))
    if max(numbers) >= MAX_TOKEN_ID:
        raise FormatError(f"{where}: rank {max(numbers)}; expected ranks below {MAX_TOKEN_ID}")
    ranks = dict(zip(tokens, numbers, strict=True))
    if len(ranks) != len(tokens):
        raise FormatError(f"{where}: the token {_first_repeated(tokens)!r} comes twice; expected each once")
    if len(set(numbers)) != len(numbers):
        raise FormatError(f"{where}: two tokens have the rank {_first_repeated(numbers)!r}; expected unique ranks")
    _check_single_bytes(ranks, where)
    return ranks


def _check_single_bytes(ranks: Mapping[bytes, int], where: str) -> None:
    missing = [value for value in range(256) if bytes((value,)) not in ranks]
    if missing:
        raise FormatError(
            f"{where}: {len(missing)} of the 256 single bytes are no tokens (the first is 0x{missing[0]:02x}), so "
            "some texts could not be encoded; is the file truncated?"
        )


def _ranks_of_lines(lines: bytes) -> list[int] | None:
    """Check the shape of all lines at once and return their ranks, or None where one is wrong.

    Every line must be a token in base64 of full length, padded only at its end, one blank, and 1 to 8 digits.
    """
    codes = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(codes <= ord(" "))
    if len(ends) % 2 or (codes[ends[::2]] != ord(" ")).any() or (codes[ends[1::2]] != ord("\n")).any():
        return None
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    token_ends, token_lengths = ends[::2], lengths[::2]
    digit_starts, digit_lengths = starts[1::2], lengths[1::2]
    if token_lengths.min() < 4 or (token_lengths % 4).any() or digit_lengths.min() < 1 or digit_lengths.max() > 8:
        return None
    padded = codes[token_ends - 1] == ord("=")
    padded_twice = padded & (codes[token_ends - 2] == ord("="))
    if np.count_nonzero(codes == ord("=")) != np.count_nonzero(padded) + np.count_nonzero(padded_twice):
        return None
    ranks = np.zeros(len(digit_starts), dtype=np.int64)
    for place in range(int(digit_lengths.max())):
        inside = digit_lengths > place
        digit = codes[digit_starts[inside] + place].astype(np.int64) - ord("0")
        if digit.min() < 0 or digit.max() > 9:
            return None
        ranks[inside] = ranks[inside] * 10 + digit
    return ranks.tolist()


def _bad_line(lines: list[bytes], where: str) -> FormatError:
    for number, line in enumerate(lines, 1):
        if line and not LINE.fullmatch(line):
            shown = line if len(line) <= 40 else line[:37] + b"..."
            return FormatError(
                f"{where}: line {number}: {shown!r} is not a token in base64, a blank and a rank; "
                "is the file truncated?"
            )
    return FormatError(f"{where}: expected lines of a token in base64, a blank and a rank")


def _first_repeated(values: list[bytes] | list[int]) -> bytes | int:
    seen: set[bytes | int] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    raise AssertionError("nothing repeated")  # the caller found something


def _special_tokens(
    special_tokens: Mapping[str, int], ranks: Mapping[bytes, int], where: str
) -> tuple[AddedToken, ...]:
    if not isinstance(special_tokens, Mapping):
        raise ArgumentTypeError(
            f"special_tokens must be a dict from text to id, got {type(special_tokens).__name__}"
        )
    taken = set(ranks.values())
    for content, token_id in special_tokens.items():
        if type(content) is not str or type(token_id) is not int:
            raise ArgumentTypeError(
                f"special_tokens must be a dict from text to id; got the entry {content!r}: {token_id!r}"
            )
        if not content:
            raise FormatError(f"{where}: a special token is the empty string; it would match everywhere")
        if not 0 <= token_id < MAX_TOKEN_ID:
            raise FormatError(
                f"{where}: special token {content!r} has id {token_id}; expected 0 to {MAX_TOKEN_ID - 1}"
            )
        if token_id in taken:
            raise FormatError(
                f"{where}: special token {content!r} has id {token_id}, which is also a rank; "
                "expected an id of its own"
            )
    # Two texts may share an id (o200k_harmony has such a pair): both are encoded to it.
    ordered = sorted(special_tokens.items(), key=lambda item: item[1])
    return tuple(AddedToken(token_id, content, special=True, normalized=False) for content, token_id in ordered)


def write(spec: TokenizerSpec) -> bytes:
    """Write the ranks of a spec as a rank file, in order of rank.

    The pattern and the special tokens have no place in this format: they must be passed when it is read.

    Raises
    ------
    UnsupportedError
        The model is not one of byte ranks.
    """
    if not isinstance(spec.model, RankModel):
        raise UnsupportedError("only a model of byte ranks can be saved as .tiktoken; save as tokenizer.json")
    ordered = sorted(spec.model.ranks.items(), key=lambda item: item[1])
    return b"".join(binascii.b2a_base64(token, newline=False) + b" %d\n" % rank for token, rank in ordered)
