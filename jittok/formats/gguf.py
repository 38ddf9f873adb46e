"""GGUF files: the vocabulary of a language model in llama.cpp's form, with the ids that llama.cpp gives.

A model file of any size will do: only its metadata is read. What llama.cpp decides by the texts of tokens, because files
do not say it (which of them are control tokens, and which take white space with them), is decided here in the same way.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from jittok.errors import FormatError, MissingFileError, UnsupportedError
from jittok.formats.gguf_metadata import Metadata
from jittok.formats.gguf_patterns import names, pre_tokenization
from jittok.spec import (
    AddedToken,
    BPEModel,
    ByteLevel,
    DecodeLlamaCpp,
    LlamaCppCleanUp,
    LlamaCppNormalizer,
    MapBytes,
    PieceType,
    Replace,
    SentencePieceModel,
    SentencePieceNormalizer,
    Split,
    Template,
    TemplatePiece,
    TokenizerSpec,
    WhitespaceSplit,
    WordPieceModel,
)
from jittok.vocabulary import unescaped

_MARK = "\u2581"
#: Ids of special tokens that hold where a file does not say others: beginning, end, unknown, separator.
_DEFAULTS = {
    "llama": (1, 2, 0, None), "bert": (101, None, 100, 102), "gpt2": (11, 11, None, None), "t5": (None, 1, 2, None),
    "rwkv": (None, None, None, None), "gemma4": (None, None, None, None), "whitespace": (11, 11, None, None),
}  # fmt: skip
#: What is known not to be read, and why.
_REFUSED = {
    "plamo2": "the segmentation of PLaMo 2",
    "no_vocab": "a model without a vocabulary",
    "none": "a model without a vocabulary",
    "test": "llama.cpp's own tests",
}
#: Tokens that llama.cpp takes for control tokens whatever the file says, because they end a generation.
_ENDINGS = frozenset((
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>",
    "<eos>", "<turn|>", "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~[",
))  # fmt: skip
#: The same for tokens of infilling: one of each row, unless the file names another.
_INFILLING = {
    "fim_pre": ("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<\uff5cfim\u2581begin\uff5c>", "<PRE>", "\u2581<PRE>",
                "<|code_prefix|>", "<|prefix|>"),
    "fim_suf": ("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<\uff5cfim\u2581hole\uff5c>", "<SUF>", "\u2581<SUF>",
                "<|code_suffix|>", "<|suffix|>"),
    "fim_mid": ("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<\uff5cfim\u2581end\uff5c>", "<MID>", "\u2581<MID>",
                "<|code_middle|>", "<|middle|>"),
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}  # fmt: skip
_OLD_NAMES = {"fim_pre": "prefix", "fim_suf": "suffix", "fim_mid": "middle"}
#: Tokens that llama.cpp always shows.
_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")

_PREFIX = "tokenizer.ggml."
_WANTED = ("general.architecture", "general.name", _PREFIX + "*")
#: Longer than any word.
_MOST_INPUT = (1 << 31) - 1
#: Bytes of the longest token.
_LONGEST_TOKEN = 8000
_UNKNOWN, _CONTROL, _HIDDEN = PieceType.UNKNOWN, PieceType.CONTROL, 0
_HELD_BACK = bytes((PieceType.UNKNOWN, PieceType.CONTROL))


def read_file(file: Path) -> TokenizerSpec:
    """Read the vocabulary of a GGUF file, of which only the metadata is looked at.

    Parameters
    ----------
    file
        The file.

    Raises
    ------
    MissingFileError
        It cannot be opened.
    FormatError, UnsupportedError
        As :func:`read`.
    """
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return read(data, str(file))
    except ValueError as error:
        if isinstance(error, FormatError | UnsupportedError):
            raise
        raise FormatError(f"{file}: the file is empty") from None
    except OSError as error:
        raise MissingFileError(f"{file}: cannot be read: {error.strerror or error}") from None


def read(data: bytes | mmap.mmap, where: str) -> TokenizerSpec:
    """Read the vocabulary of a GGUF file.

    Parameters
    ----------
    data
        The file, or its beginning with all of the metadata.
    where
        Its name, for messages.

    Returns
    -------
    TokenizerSpec
        Special tokens in a text are text by default, as for llama.cpp's Python package. About 1 us a token or merge.

    Raises
    ------
    FormatError
        The file is cut short or contradicts itself; the message names the place.
    UnsupportedError
        It is of a kind that is not read, which the message names.
    """
    return _Reader(Metadata(data, where, _WANTED)).spec()


class _Tokens(NamedTuple):
    """The tokens of a file."""

    texts: list[str]
    ids: dict[str, int]
    scores: list[float]
    types: bytes  # as the file has them
    final: bytes  # as llama.cpp corrects them afterwards


class _Reader:
    """Makes a specification of metadata."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.where = metadata.where
        self.kind = metadata.string(_PREFIX + "model")
        self.pre = metadata.string(_PREFIX + "pre", "")
        if self.kind == "gemma4":
            self.pre = "gemma4"
        if self.kind in _REFUSED:
            raise UnsupportedError(f"{self.where}: tokenizer.ggml.model is {self.kind!r}, {_REFUSED[self.kind]}; not read")
        if self.kind not in (*_DEFAULTS, "hybriddna"):
            raise UnsupportedError(
                f"{self.where}: tokenizer.ggml.model is {self.kind!r}; read are {', '.join(_DEFAULTS)}"
            )

    def fail(self, problem: str) -> NoReturn:
        raise FormatError(f"{self.where}: {problem}")

    def spec(self) -> TokenizerSpec:
        """The specification."""
        self.tokens = self._tokens()
        if self.kind == "hybriddna":
            if {"<dna>", "</dna>", "<oov>"} <= self.tokens.ids.keys():
                raise UnsupportedError(f"{self.where}: tokenizer.ggml.model is 'hybriddna', tokens of DNA; not read")
            self.kind = "gpt2"
        bos, eos, unknown, separator = _DEFAULTS[self.kind]
        if not self._has_bos:
            bos = None
        self.bos = self._special_id("bos_token_id", bos)
        self.eos = self._special_id("eos_token_id", eos)
        self.unknown = self._special_id("unknown_token_id", unknown)
        self.separator = self._special_id("seperator_token_id", separator)
        self.tokens = self.tokens._replace(final=self._final_types())
        build: Mapping[str, Callable[[], TokenizerSpec]] = {
            "llama": self._pieces, "bert": self._words, "gpt2": self._merges, "gemma4": self._merges,
            "whitespace": self._merges, "t5": self._unigram, "rwkv": self._trie,
        }  # fmt: skip
        return build[self.kind]()

    # --------------------------------------------------------------------------------------------- the vocabulary

    def _tokens(self) -> _Tokens:
        metadata = self.metadata
        raw = metadata.strings(_PREFIX + "tokens")
        n = len(raw)
        if not n:
            self.fail("tokenizer.ggml.tokens is empty")
        texts = []
        for number, token in enumerate(raw):
            if len(token) > _LONGEST_TOKEN:
                self.fail(f"tokens[{number}] has {len(token)} bytes; expected at most {_LONGEST_TOKEN}")
            texts.append(metadata.text(token, f"tokens[{number}]") or f"[EMPTY_{number}]")
        ids = {text: number for number, text in enumerate(texts)}
        if len(ids) < n:
            twice = next(number for number, text in enumerate(texts) if ids[text] != number)
            self.fail(f"tokens[{twice}] and tokens[{ids[texts[twice]]}] are both {texts[twice]!r}; expected each once")
        given = metadata.numbers(_PREFIX + "scores", "f4 i4", n)
        scores = [0.0] * n if given is None else (given[:n].astype(np.float32) + np.float32(0)).astype(float).tolist()
        for number, score in enumerate(scores):
            if not math.isfinite(score):
                self.fail(f"scores[{number}] is {score}; expected a finite number")
        kinds = metadata.numbers(_PREFIX + "token_type", "i4", n)
        if kinds is None:
            types = bytes([PieceType.NORMAL]) * n
        else:
            types = np.where((kinds[:n] >= 0) & (kinds[:n] <= max(PieceType)), kinds[:n], _HIDDEN).astype(np.uint8).tobytes()
        return _Tokens(texts, ids, scores, types, types)

    def _special_id(self, name: str, default: int | None = None) -> int | None:
        """The id of a special token: what the file says if there is such a token, else the default if there is."""
        n = len(self.tokens.texts)
        found = self.metadata.number(_PREFIX + name)
        if found is not None and 0 <= found < n:
            return found
        return default if default is not None and default < n else None

    def _final_types(self) -> bytes:
        """Types of tokens after what llama.cpp finds out by their texts."""
        texts, ids = self.tokens.texts, self.tokens.ids
        types = bytearray(self.tokens.types)
        ending = {ids[text] for text in _ENDINGS if text in ids}
        for name, candidates in _INFILLING.items():
            named = self._special_id(f"{name}_token_id")
            if name in _OLD_NAMES and self._special_id(f"{_OLD_NAMES[name]}_token_id") is not None:
                named = self._special_id(f"{_OLD_NAMES[name]}_token_id")
            # Of several candidates it takes the first in the order of a hash table; here, the first of the list.
            found = [ids[text] for text in candidates if text in ids][:1]
            if named is None:
                for token_id in found:
                    types[token_id] = _CONTROL
        for token_id in ending:
            types[token_id] = _CONTROL
        for text in _ALWAYS_SHOWN:
            if text in ids:
                types[ids[text]] = PieceType.USER_DEFINED
        ending |= {number for number in (self.eos, self._special_id("eot_token_id")) if number is not None}
        has = {texts[token_id] for token_id in ending}
        calls = "<|call|>" in has or "<|calls|>" in has
        if calls and "<|end|>" in has and not {"<|return|>", "<|flush|>"}.isdisjoint(has):
            types[ids["<|end|>"]] = PieceType.USER_DEFINED
        if "</s>" in has and not {"<|tool_response>", "<|plamo:eos|>"}.isdisjoint(has):
            types[ids["</s>"]] = PieceType.NORMAL
        return bytes(types)

    def _added_tokens(self, extra: Sequence[int] = ()) -> tuple[AddedToken, ...]:
        """The tokens that are looked for in text, in the order of their ids."""
        texts, types = self.tokens.texts, self.tokens.final
        chosen = {number for number, kind in enumerate(types) if kind in (_UNKNOWN, _CONTROL, PieceType.USER_DEFINED)}
        chosen.update(extra)
        left, right = self._stripping()
        return tuple(
            AddedToken(
                number,
                texts[number],
                special=types[number] in _HELD_BACK,
                lstrip=texts[number] in left,
                rstrip=right is not None and texts[number] not in right,
                normalized=False,
            )
            for number in sorted(chosen)
        )

    def _stripping(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """Tokens that take white space before them, and those that do not take it after them (None: none does)."""
        architecture = self.metadata.string("general.architecture", "")
        name = self.metadata.string("general.name", "").lower()
        if any(part in self.pre for part in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or any(
            part in architecture for part in ("nomic-bert-moe", "jina-bert-v3")
        ):
            return ("<mask>",), None
        if "phi-3" in name or "phi3" in name:
            return (), ("<unk>", "<s>", "<|endoftext|>")
        return (("[MASK]",), None) if "modern-bert" in name else ((), None)

    # ---------------------------------------------------------------------------------------------- the models

    @property
    def _has_bos(self) -> bool:
        known = pre_tokenization(self.pre) if self.kind in ("gpt2", "whitespace") else None
        return known is None or known.has_bos

    def _template(self, before: Sequence[int | None], after: Sequence[int | None]) -> tuple[Template, ...]:
        """What is put around a text; tokens that there are not are left out."""

        def pieces(ids: Sequence[int | None]) -> tuple[TemplatePiece, ...]:
            known = [number for number in ids if number is not None]
            return tuple(TemplatePiece(0, None, (number,), (self.tokens.texts[number],)) for number in known)

        first, last = pieces(before), pieces(after)
        return (Template((*first, TemplatePiece(0, "A"), *last), None),) if first or last else ()

    def _ends(self, add_bos: bool, add_eos: bool, *, always_bos: bool = False) -> tuple[Template, ...]:
        """The template of models that may put a token at the beginning and at the end."""
        add_bos = self.metadata.flag(_PREFIX + "add_bos_token", add_bos) or always_bos
        add_eos = self.metadata.flag(_PREFIX + "add_eos_token", add_eos)
        return self._template([self.bos] if add_bos else [], [self.eos] if add_eos else [])

    def _finished(self, style: Literal["pieces", "alphabet", "escaped"], **parts: Any) -> TokenizerSpec:
        facts = {"model": self.kind, "pre": self.pre, "name": self.metadata.string("general.name", "")}
        added = parts.pop("added_tokens", None)
        types = self.tokens.final
        if style == "escaped":  # then there are no tokens without text
            types = bytes(kind if kind in (*_HELD_BACK, PieceType.USER_DEFINED) else PieceType.NORMAL for kind in types)
        return TokenizerSpec(
            added_tokens=self._added_tokens() if added is None else added,
            decoders=(DecodeLlamaCpp(style, types),),
            reference="llama.cpp",
            default_special="text",
            source_format="gguf",
            extra={name: value for name, value in facts.items() if value},
            **parts,
        )

    def _pieces(self) -> TokenizerSpec:
        """SPM: pieces that are merged by their scores, whatever their types."""
        texts, ids = self.tokens.texts, self.tokens.ids
        types = bytearray([PieceType.NORMAL]) * len(texts)
        named = [ids.get(f"<0x{byte:02X}>", -1) for byte in range(256)]
        unknown = -1
        if min(named) >= 0:
            for number in named:
                self._check_not_made(number)
                types[number] = PieceType.BYTE
        elif max(named) >= 0:
            missing = named.index(-1)
            self.fail(f"there are tokens of bytes, but not <0x{missing:02X}>; expected all 256, or none")
        elif self.unknown is None:
            self.fail("there are neither tokens of bytes nor an unknown token")
        else:
            unknown = self.unknown
            self._check_not_made(unknown)
            types[unknown] = PieceType.UNKNOWN
        model = SentencePieceModel(
            "bpe",
            tuple(texts),
            tuple(self.tokens.scores),
            bytes(types),
            byte_fallback=unknown < 0,
            unk_id=unknown,
            bos_id=-1 if self.bos is None else self.bos,
            eos_id=-1 if self.eos is None else self.eos,
        )
        adds_blank = self.metadata.flag(_PREFIX + "add_space_prefix", True)
        return self._finished(
            "pieces",
            model=model,
            normalizers=(SentencePieceNormalizer(b"", adds_blank, remove_extra_whitespaces=False),),
            post_processors=self._ends(True, False),
        )

    def _check_not_made(self, number: int) -> None:
        """Refuse a model that can make the token of a byte, or the unknown one, of the text that it is written as."""
        text, ids = self.tokens.texts[number], self.tokens.ids
        for cut in range(1, len(text)):
            if all(len(part) == 1 or part in ids for part in (text[:cut], text[cut:])):
                raise UnsupportedError(
                    f"{self.where}: text may be merged to the token {text!r}, which stands for something else; not supported"
                )

    def _merges(self) -> TokenizerSpec:
        """BPE: merges in the order of their ranks."""
        known = pre_tokenization(self.pre)
        if known is None:
            raise UnsupportedError(
                f"{self.where}: tokenizer.ggml.pre is {self.pre!r}, which is not known; expected one of {', '.join(names())}"
            )
        added = self._added_tokens()
        model = BPEModel(
            self.tokens.ids,
            self._merge_list(),
            byte_fallback=not known.is_bytes,
            ignore_merges=known.ignores_merges,
        )
        always_bos = self.pre in ("gemma4", "granite-embed-multi-311m")
        byte_level = ByteLevel(add_prefix_space=False, use_regex=False, trim_offsets=False)
        steps = known.steps
        if self.kind == "whitespace":
            if self.metadata.flag(_PREFIX + "normalizer.lowercase", self.pre != "whitespace"):
                raise UnsupportedError(f"{self.where}: tokenizer.ggml.model is 'whitespace', in lower case; not read")
            steps = (WhitespaceSplit(), *steps)
        return self._finished(
            "pieces" if known.has_marks else "alphabet",
            model=model,
            added_tokens=added,
            normalizers=(Replace(" ", _MARK),) if known.has_marks else (),
            pre_tokenizers=(*steps, byte_level) if known.is_bytes else steps,
            post_processors=self._ends(known.adds_bos, False, always_bos=always_bos),
        )

    def _merge_list(self) -> tuple[tuple[str, str], ...]:
        """Merges in order of rank; those that no text can bring about are left out."""
        name = _PREFIX + "merges"
        if name not in self.metadata and self.pre == "kimi-k2":
            return ()
        vocab = self.tokens.ids
        listed: dict[tuple[str, str], None] = {}
        others: list[tuple[int, str, str]] = []
        for number, raw in enumerate(self.metadata.strings(name)):
            text = self.metadata.text(raw, f"merges[{number}]")
            cut = text.find(" ", 1)
            left, right = text[:cut], text[cut + 1 :]
            if cut < 0 or not right:
                continue
            if left in vocab and right in vocab and left + right in vocab:
                listed[left, right] = None
            else:
                others.append((number, left, right))
        if others:
            made = {left + right for left, right in listed} | {left + right for _, left, right in others}
            for number, left, right in others:
                if all(len(part) == 1 or part in made for part in (left, right)):
                    missing = next(part for part in (left, right, left + right) if part not in vocab)
                    raise UnsupportedError(
                        f"{self.where}: merges[{number}] needs {missing!r}, which is no token; such merges are not supported"
                    )
        return tuple(listed)

    def _words(self) -> TokenizerSpec:
        """WPM: WordPiece, in which what begins a word has U+2581 in front."""
        texts = self.tokens.texts
        lowercase = self.metadata.flag(_PREFIX + "normalizer.lowercase", True)
        strips = self.metadata.flag(_PREFIX + "normalizer.strip_accents", lowercase)
        unknown = "" if self.unknown is None else texts[self.unknown]
        return self._finished(
            "pieces",
            model=WordPieceModel(self.tokens.ids, unknown, "", _MOST_INPUT),
            normalizers=(LlamaCppCleanUp(lowercase, strips),),
            pre_tokenizers=(Split(f"{_MARK}[^{_MARK}]*", dialect="llama.cpp"),),
            post_processors=self._template([self.bos], [self.separator]),
        )

    def _unigram(self) -> TokenizerSpec:
        """UGM: a unigram model, whose normalization SentencePiece compiled."""
        texts, given = self.tokens.texts, self.tokens.types
        used = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
        types = bytearray(kind if kind in used else _CONTROL for kind in given)
        if self.unknown is None:
            self.fail("there is no unknown token")
        if given[self.unknown] in used:
            raise UnsupportedError(
                f"{self.where}: the unknown token {texts[self.unknown]!r} is used for text too; this is not supported"
            )
        types[self.unknown] = PieceType.UNKNOWN
        if not any(kind in used for kind in given):
            self.fail("no token stands for text; expected normal or user-defined ones")
        charsmap = self.metadata.numbers(_PREFIX + "precompiled_charsmap", "i1 u1")
        rules = b"" if charsmap is None else charsmap.tobytes()
        if rules:
            from jittok.build.charsmap import parse_charsmap

            parse_charsmap(rules, f"{self.where}: tokenizer.ggml.precompiled_charsmap")
        removes = self.metadata.flag(_PREFIX + "remove_extra_whitespaces", False)
        adds_blank = self.metadata.flag(_PREFIX + "add_space_prefix", False)
        defined = [text for text, kind in zip(texts, given, strict=True) if kind == PieceType.USER_DEFINED]
        # As llama.cpp looks for them, what such a token begins with counts too.
        symbols = {text[:end] for text in defined for end in range(1, len(text) + 1)}
        return self._finished(
            "pieces",
            model=SentencePieceModel(
                "unigram", tuple(texts), tuple(self.tokens.scores), bytes(types), unk_id=self.unknown,
                bos_id=-1 if self.bos is None else self.bos, eos_id=-1 if self.eos is None else self.eos,
            ),
            normalizers=(
                LlamaCppNormalizer(
                    rules, adds_blank or removes, remove_extra_whitespaces=removes, symbols=tuple(sorted(symbols))
                ),
            ),
            post_processors=self._ends(False, True),
        )  # fmt: skip

    def _trie(self) -> TokenizerSpec:
        """RWKV: the longest token at each place. Tokens are bytes, some of them escaped, and become WordPiece's."""
        from jittok.build.merge_tables import byte_alphabet

        letter = {byte: character for character, byte in byte_alphabet().items()}
        vocab: dict[str, int] = {}
        for number, text in enumerate(self.tokens.texts):
            key = "".join(letter[byte] for byte in unescaped(text.encode()))
            if not key:
                key = text  # it stands for nothing: its own text, with a character that is none of the alphabet
            if vocab.setdefault(key, number) != number:
                self.fail(f"tokens[{number}] and tokens[{vocab[key]}] are the same bytes; expected each once")
        missing = [character for character in letter.values() if character not in vocab]
        unknown = ""
        if self.unknown is not None:
            unknown = next(key for key, number in vocab.items() if number == self.unknown)
            # A byte that is no token is an unknown one.
            vocab = {**dict.fromkeys(missing, self.unknown), **vocab}
        return self._finished(
            "escaped",
            model=WordPieceModel(vocab, unknown, "", _MOST_INPUT),
            normalizers=(MapBytes(),),
        )
