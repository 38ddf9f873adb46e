"""SentencePiece model files (``.model``, ``.spm``), read as sentencepiece 0.2.3 reads them.

What makes that library refuse a file makes this reader refuse it too, with a message that says where. Beyond that,
scores that are not numbers, pieces that are not UTF-8 and charsmaps that are not sound are refused for all kinds of
models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Any, Literal

from jittok.errors import FormatError, UnsupportedError
from jittok.spec import (
    DecodeSentencePiece,
    PieceType,
    SentencePieceMessages,
    SentencePieceModel,
    SentencePieceNormalizer,
    TokenizerSpec,
)

#: A piece is shorter than so many bytes.
MAX_PIECE_BYTES = 8000
UNK_SURFACE = " \u2047 "

_KINDS: dict[int, Literal["unigram", "bpe", "char", "word"]] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_KIND_NUMBERS = {kind: number for number, kind in _KINDS.items()}
_OTHER_THAN_NORMAL = bytes(kind != PieceType.NORMAL for kind in range(256))
_RESERVED = bytes((PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE))
_HAS_SCORE, _HAS_TYPE, _IS_NORMAL = 1, 2, 4
_TAG_PIECES, _TAG_LENGTH_DELIMITED = 1, 2
_REMEDY = "get the file again from where it came from"


def read(data: bytes, where: str) -> TokenizerSpec:
    """Read a SentencePiece model.

    Parameters
    ----------
    data
        The whole file.
    where
        Its name, for messages.

    Returns
    -------
    TokenizerSpec
        With one normalizer and one decoder, no pre-tokenizers and no added tokens. About 1 us a piece.

    Raises
    ------
    FormatError
        The file is no such model, is cut short, or contradicts itself.
    """
    from google.protobuf.message import DecodeError

    from jittok.formats._sentencepiece_schema import CLASSES

    if not data:
        raise FormatError(f"{where}: the file is empty")
    message = CLASSES["Model"]()
    trainer, normalizer = CLASSES["TrainerSpec"](), CLASSES["NormalizerSpec"]()
    denormalizer = CLASSES["NormalizerSpec"]()
    parts: dict[str, bytes | None] = {}
    place = "the model"
    try:
        message.ParseFromString(data)
        for name in ("trainer_spec", "normalizer_spec", "self_test_data", "denormalizer_spec"):
            values = getattr(message, name)
            parts[name] = b"".join(values) if len(values) else None
            message.ClearField(name)
        for place, target in (
            ("trainer_spec", trainer), ("normalizer_spec", normalizer), ("denormalizer_spec", denormalizer),
        ):  # fmt: skip
            target.ParseFromString(parts[place] or b"")
    except DecodeError:
        raise FormatError(
            f"{where}: {place}: not a protobuf message of a SentencePiece model (is the file cut short?); {_REMEDY}"
        ) from None
    pieces, scores, types, presence = _pieces(message.pieces, bool(trainer.byte_fallback), where)
    message.ClearField("pieces")
    _check_charsmap(normalizer.precompiled_charsmap, f"{where}: normalizer_spec.precompiled_charsmap")
    _check_charsmap(denormalizer.precompiled_charsmap, f"{where}: denormalizer_spec.precompiled_charsmap")
    messages = SentencePieceMessages(**parts, presence=presence, others=message.SerializeToString())
    return _spec_of(pieces, scores, types, (trainer, normalizer, denormalizer), messages, where)


def spec_of_parts(
    pieces: tuple[str, ...],
    scores: tuple[float, ...],
    types: bytes,
    trainer_spec: bytes,
    normalizer_spec: bytes,
    denormalizer_spec: bytes | None,
) -> TokenizerSpec:
    """Make the spec of a file from its parts, as reading that file would.

    Parameters
    ----------
    pieces, scores, types
        String, score (a float32 value) and type of each, in order of id.
    trainer_spec, normalizer_spec, denormalizer_spec
        Serialized messages; their charsmaps must be sound.

    Returns
    -------
    TokenizerSpec

    Raises
    ------
    FormatError
        The pieces contradict each other.
    """
    from jittok.formats._sentencepiece_schema import CLASSES

    trainer, normalizer, denormalizer = CLASSES["TrainerSpec"](), CLASSES["NormalizerSpec"](), CLASSES["NormalizerSpec"]()
    trainer.ParseFromString(trainer_spec)
    normalizer.ParseFromString(normalizer_spec)
    denormalizer.ParseFromString(denormalizer_spec or b"")
    messages = SentencePieceMessages(trainer_spec, normalizer_spec, None, denormalizer_spec)
    return _spec_of(pieces, scores, types, (trainer, normalizer, denormalizer), messages, "the new model")


def _spec_of(
    pieces: tuple[str, ...],
    scores: tuple[float, ...],
    types: bytes,
    specs: tuple[Any, Any, Any],
    messages: SentencePieceMessages,
    where: str,
) -> TokenizerSpec:
    """Make the spec of a file that was taken apart; `specs` are the trainer's, normalizer's and denormalizer's."""
    trainer, normalizer, denormalizer = specs
    kind = _KINDS[trainer.model_type]
    check_pieces(kind, pieces, scores, types, bool(trainer.byte_fallback), where)
    model = SentencePieceModel(
        algorithm=kind,
        pieces=pieces,
        scores=scores,
        types=types,
        byte_fallback=trainer.byte_fallback,
        treat_whitespace_as_suffix=trainer.treat_whitespace_as_suffix,
        unk_surface=_text(trainer.unk_surface, f"{where}: trainer_spec.unk_surface")
        if trainer.HasField("unk_surface")
        else UNK_SURFACE,
        messages=messages,
        **_special_ids(trainer, pieces, types),
    )
    step = SentencePieceNormalizer(
        normalizer.precompiled_charsmap,
        normalizer.add_dummy_prefix,
        normalizer.remove_extra_whitespaces,
        normalizer.escape_whitespaces,
        trainer.treat_whitespace_as_suffix,
        tuple(pieces[i] for i in model.of_type(PieceType.USER_DEFINED)),
    )
    after = None
    if denormalizer.precompiled_charsmap:
        after = SentencePieceNormalizer(
            denormalizer.precompiled_charsmap,
            denormalizer.add_dummy_prefix,
            denormalizer.remove_extra_whitespaces,
            denormalizer.escape_whitespaces,
        )
    decoder = DecodeSentencePiece(
        drop_first=step.add_dummy_prefix or step.remove_extra_whitespaces,
        drop_leading=step.remove_extra_whitespaces,
        unk_surface=model.unk_surface,
        denormalizer=after,
    )
    return TokenizerSpec(
        model=model,
        normalizers=(step,),
        decoders=(decoder,),
        reference="sentencepiece",
        default_special="text",
        source_format="sentencepiece",
        extra={"normalizer": normalizer.name.decode("utf-8", "replace")},
    )


def _text(value: bytes, where: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise FormatError(f"{where}: expected UTF-8, got {value[:20]!r}; {_REMEDY}") from None


def _check_charsmap(blob: bytes, where: str) -> None:
    """Refuse a charsmap that is not sound."""
    if blob:
        from jittok.build.charsmap import parse_charsmap

        parse_charsmap(blob, where)


def _pieces(
    messages: Any, byte_fallback: bool, where: str
) -> tuple[tuple[str, ...], tuple[float, ...], bytes, bytes]:
    """Pieces, scores, types, and which of the latter are written in the file."""
    strings: list[str] = []
    scores: list[float] = []
    types = bytearray()
    presence = bytearray()
    for number, message in enumerate(messages):
        raw = message.piece
        try:
            strings.append(raw.decode())
        except UnicodeDecodeError:
            raise FormatError(f"{where}: pieces[{number}].piece: expected UTF-8, got {raw[:20]!r}; {_REMEDY}") from None
        scores.append(message.score)
        # As the library does with files that some converters write; it refuses those without byte fallback, but there
        # are such files, and no text needs the piece.
        is_nothing = raw == b"\0" and (byte_fallback or message.type == PieceType.NORMAL)
        types.append(PieceType.UNUSED if is_nothing else message.type)
        is_other = types[-1] != message.type and message.type == PieceType.NORMAL
        presence.append(
            _HAS_SCORE * message.HasField("score") + _HAS_TYPE * message.HasField("type") + _IS_NORMAL * is_other
        )
    usual = bytes(_HAS_SCORE + _HAS_TYPE * (kind != PieceType.NORMAL) for kind in types)
    return tuple(strings), tuple(scores), bytes(types), b"" if presence == usual else bytes(presence)


def check_pieces(
    kind: str, pieces: tuple[str, ...], scores: tuple[float, ...], types: bytes, byte_fallback: bool, where: str
) -> None:
    """Refuse what the library refuses.

    Parameters
    ----------
    kind, pieces, scores, types, byte_fallback
        As in :class:`~jittok.spec.SentencePieceModel`.
    where
        Name of the file, for messages.

    Raises
    ------
    FormatError
        The message names the piece.
    """

    def wrong(number: int, problem: str) -> FormatError:
        shown = repr(pieces[number][:40])
        return FormatError(f"{where}: pieces[{number}] ({shown}): {problem}; {_REMEDY}")

    numbers: Iterable[int] = range(len(pieces))
    different = set(pieces)
    if (
        len(different) == len(pieces)
        and "" not in different
        and max(map(len, pieces), default=0) <= MAX_PIECE_BYTES // 4
        and "\0" not in "".join(pieces)
        and all(map(math.isfinite, scores))
    ):
        # Nothing can be wrong with normal pieces.
        numbers = list(compress(range(len(types)), types.translate(_OTHER_THAN_NORMAL)))
    del different
    # Only for BPE pieces that stand for text and those that do not share one set of strings.
    taken: tuple[dict[str, int], dict[str, int]] = ({}, {})
    unknown = -1
    found_bytes = set()
    for number in numbers:
        piece = pieces[number]
        if not piece:
            raise wrong(number, "the piece is empty; expected at least one character")
        if len(piece) > MAX_PIECE_BYTES // 4 and len(piece.encode()) >= MAX_PIECE_BYTES:
            raise wrong(number, f"the piece is too long; expected fewer than {MAX_PIECE_BYTES} bytes")
        if not math.isfinite(scores[number]):
            raise wrong(number, f"the score is {scores[number]}; expected a finite number")
        piece_type = types[number]
        if "\0" in piece:
            if piece == "\0" and piece_type == PieceType.UNUSED:
                continue
            raise wrong(number, "the piece holds a NUL character")
        others = taken[kind != "bpe" and piece_type in _RESERVED]
        if others.setdefault(piece, number) != number:
            raise wrong(number, f"the same piece as pieces[{others[piece]}]; expected each once")
        if piece_type == PieceType.UNKNOWN:
            if unknown >= 0:
                raise wrong(number, f"a second unknown piece besides pieces[{unknown}]; expected one")
            unknown = number
        elif piece_type == PieceType.BYTE:
            if not byte_fallback:
                raise wrong(number, "a byte piece, but trainer_spec.byte_fallback is false")
            value = piece_byte(piece)
            if value is None:
                raise wrong(number, "not a byte piece; expected <0x00> to <0xFF>")
            found_bytes.add(value)
    if not byte_fallback and unknown < 0:
        raise FormatError(f"{where}: no piece has the type unknown; expected one (usually <unk>); {_REMEDY}")
    if byte_fallback and len(found_bytes) < 256:
        missing = next(f"<0x{value:02X}>" for value in range(256) if value not in found_bytes)
        raise FormatError(
            f"{where}: trainer_spec.byte_fallback is true, but the byte piece {missing} is missing; {_REMEDY}"
        )
    if kind == "unigram" and not any(
        piece_type not in _RESERVED and piece != "\0" for piece, piece_type in zip(pieces, types, strict=True)
    ):
        raise FormatError(f"{where}: no piece stands for text; expected normal or user-defined pieces; {_REMEDY}")


def piece_byte(piece: str) -> int | None:
    """The byte that a piece such as ``<0x0A>`` stands for (two upper-case digits), or None."""
    if len(piece) == 6 and piece.startswith("<0x") and piece[5] == ">":
        if all(digit in "0123456789ABCDEF" for digit in piece[3:5]):
            return int(piece[3:5], 16)
    return None


def _special_ids(trainer: Any, pieces: tuple[str, ...], types: bytes) -> dict[str, int]:
    """The ids of the special pieces: found by their strings, and only if they have the right type."""
    # An empty string in the file counts as if it were not there.
    strings: dict[str, bytes] = {
        name: getattr(trainer, f"{name}_piece") or trainer.DESCRIPTOR.fields_by_name[f"{name}_piece"].default_value
        for name in ("unk", "bos", "eos", "pad")
    }
    wanted_strings = {string.decode("utf-8", "surrogateescape") for string in strings.values()}
    reserved: dict[bytes, int] = {}
    others: dict[bytes, int] = {}
    for number in compress(range(len(pieces)), map(wanted_strings.__contains__, pieces)):
        (reserved if types[number] in _RESERVED else others).setdefault(pieces[number].encode(), number)
    unknown = types.find(PieceType.UNKNOWN)
    ids = {}
    for name, string in strings.items():
        number = reserved.get(string, others.get(string, unknown))
        wanted = PieceType.UNKNOWN if name == "unk" else PieceType.CONTROL
        ids[f"{name}_id"] = number if number >= 0 and types[number] == wanted else -1
    return ids


def facts(model: SentencePieceModel) -> dict[str, Any]:
    """All that the file's trainer and normalizer specs say, by field name; fields that are not set are left out.

    Parameters
    ----------
    model
        A model that was read from a file.

    Returns
    -------
    dict
        ``{"trainer_spec": {...}, "normalizer_spec": {...}, "denormalizer_spec": {...}}``; strings decoded, of the
        charsmap only its length.
    """
    from jittok.formats._sentencepiece_schema import CLASSES

    result: dict[str, Any] = {}
    for name in ("trainer_spec", "normalizer_spec", "denormalizer_spec"):
        message = CLASSES["TrainerSpec" if name == "trainer_spec" else "NormalizerSpec"]()
        message.ParseFromString(getattr(model.messages, name) or b"")
        result[name] = {field.name: _shown(field, value) for field, value in message.ListFields()}
    return result


def _shown(field: Any, value: Any) -> Any:
    if field.name == "precompiled_charsmap":
        return f"{len(value)} bytes"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int | float):
        return value
    return [item.decode("utf-8", "replace") for item in value]


# -------------------------------------------------------------------------------------------------- writing


def write(spec: TokenizerSpec) -> bytes:
    """Write a spec as a SentencePiece model.

    Parameters
    ----------
    spec
        Its model must be a :class:`~jittok.spec.SentencePieceModel`.

    Returns
    -------
    bytes
        The file; of a spec that was read from one, the same bytes, if its fields were in order of their numbers, as
        they are in every file that a protobuf library wrote.

    Raises
    ------
    UnsupportedError
        The format cannot say what the spec says.
    """
    model = spec.model
    if not isinstance(model, SentencePieceModel):
        raise UnsupportedError(
            "a SentencePiece model can only be written from a SentencePiece model; save as tokenizer.json or jittok"
        )
    if spec.added_tokens:
        raise UnsupportedError(
            f"a SentencePiece model cannot hold the added token {spec.added_tokens[0].content!r}; save as jittok"
        )
    from jittok.formats._sentencepiece_schema import CLASSES

    messages = model.messages
    out = bytearray()
    make = CLASSES["Piece"]
    presence = messages.presence
    for number, (piece, score, kind) in enumerate(zip(model.pieces, model.scores, model.types, strict=True)):
        written = presence[number] if presence else _HAS_SCORE + _HAS_TYPE * (kind != PieceType.NORMAL)
        message = make(piece=piece.encode())
        if written & _HAS_SCORE:
            message.score = score
        if written & _HAS_TYPE:
            message.type = PieceType.NORMAL if written & _IS_NORMAL else kind
        encoded = message.SerializeToString()
        out += bytes((_TAG_PIECES << 3 | _TAG_LENGTH_DELIMITED,)) + _length(len(encoded)) + encoded
    stored = (
        messages.trainer_spec, messages.normalizer_spec, messages.self_test_data, messages.denormalizer_spec,
    )  # fmt: skip
    for tag, part in enumerate(stored, 2):
        if part is not None:
            out += bytes((tag << 3 | _TAG_LENGTH_DELIMITED,)) + _length(len(part)) + part
    return bytes(out + messages.others)


def _length(number: int) -> bytes:
    """A varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def make_spec(
    kind: Literal["unigram", "bpe", "char", "word"],
    pieces: list[tuple[str, float, PieceType]],
    *,
    normalizer: SentencePieceNormalizer | None = None,
    normalizer_name: str = "",
    trainer: Mapping[str, Any] | None = None,
) -> TokenizerSpec:
    """Make the spec of a new SentencePiece model, checked as one that is read.

    Parameters
    ----------
    kind
        The algorithm.
    pieces
        String, score and type of each, in order of id.
    normalizer
        What goes before the model; its symbols follow from `pieces`. None: the defaults, without rules.
    normalizer_name
        What the rules are called in the file, for example "nmt_nfkc".
    trainer
        Fields of the trainer spec, by name: ``byte_fallback``, ``unk_surface``, ``bos_piece`` and so on.

    Returns
    -------
    TokenizerSpec

    Raises
    ------
    FormatError
        The pieces contradict each other, or the charsmap is not sound.
    """
    from jittok.formats._sentencepiece_schema import CLASSES

    step = SentencePieceNormalizer() if normalizer is None else normalizer
    fields = {key: value.encode() if isinstance(value, str) else value for key, value in (trainer or {}).items()}
    fields["model_type"] = _KIND_NUMBERS[kind]
    fields.setdefault("vocab_size", len(pieces))
    if step.treat_whitespace_as_suffix:
        fields["treat_whitespace_as_suffix"] = True
    message = CLASSES["Model"]()
    for piece, score, piece_type in pieces:
        added = message.pieces.add(piece=piece.encode(), score=score)
        if piece_type != PieceType.NORMAL:
            added.type = int(piece_type)
    message.trainer_spec.append(CLASSES["TrainerSpec"](**fields).SerializeToString())
    message.normalizer_spec.append(
        CLASSES["NormalizerSpec"](
            name=normalizer_name.encode(),
            precompiled_charsmap=step.charsmap,
            add_dummy_prefix=step.add_dummy_prefix,
            remove_extra_whitespaces=step.remove_extra_whitespaces,
            escape_whitespaces=step.escape_whitespaces,
        ).SerializeToString()
    )
    return read(message.SerializeToString(), "the new model")
