"""What sentencepiece calls a SentencePieceText: a text with its pieces, as a protobuf message or as plain objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..formats._sentencepiece_schema import Field, message_classes

_PIECE = (
    Field(1, "piece", "string"),
    Field(2, "id", "uint32"),
    Field(3, "surface", "string"),
    Field(4, "begin", "uint32"),
    Field(5, "end", "uint32"),
)
_TEXT = (
    Field(1, "text", "string"),
    Field(2, "pieces", "SentencePiece", repeated=True),
    Field(3, "score", "float"),
)
_CLASSES = message_classes(
    "jittok/sentencepiece_text.proto",
    "jittok.sentencepiece_text",
    {
        "SentencePiece": _PIECE,
        "SentencePieceText": _TEXT,
        "NBestSentencePieceText": (Field(1, "nbests", "SentencePieceText", repeated=True),),
    },
    {},
)
#: The message classes, with the fields that those of sentencepiece have.
SentencePieceText: Any = _CLASSES["SentencePieceText"]
NBestSentencePieceText: Any = _CLASSES["NBestSentencePieceText"]


@dataclass(frozen=True)
class ImmutablePiece:
    """One piece: its string and id, and the part of the text that it stands for, which is [begin, end)."""

    piece: str
    id: int
    surface: str
    begin: int
    end: int


@dataclass(frozen=True)
class ImmutableText:
    """A text and its pieces.

    Attributes
    ----------
    text
        The text.
    pieces
        Its pieces; `begin` and `end` count characters.
    score
        The score of the segmentation, 0 where there is none.
    bare
        Positions of pieces whose surface is not set in the message, where it is "".
    counted
        The text that positions count in, where it is not `text`: decoded text before a denormalizer changed it.
    """

    text: str
    pieces: tuple[ImmutablePiece, ...]
    score: float = 0.0
    bare: frozenset[int] = field(default=frozenset(), repr=False, compare=False)
    counted: str | None = field(default=None, repr=False, compare=False)

    def SerializeAsString(self) -> bytes:
        """Return the message as bytes; there, positions count bytes."""
        return message(self).SerializeToString()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ImmutableNBest:
    """The best segmentations of a text."""

    nbests: tuple[ImmutableText, ...]

    def SerializeAsString(self) -> bytes:
        """Return the message as bytes."""
        return nbest_message(self.nbests).SerializeToString()  # type: ignore[no-any-return]


def message(text: ImmutableText, has_score: bool = False) -> Any:
    """Return a text as a protobuf message.

    Parameters
    ----------
    text
        The text.
    has_score
        Whether its score is written.

    Returns
    -------
    SentencePieceText
        Positions count bytes of UTF-8.
    """
    from ..encodings import utf8_positions

    positions = utf8_positions(text.text if text.counted is None else text.counted).tolist()
    result = SentencePieceText(text=text.text)
    for number, piece in enumerate(text.pieces):
        made = result.pieces.add(piece=piece.piece, id=piece.id, begin=positions[piece.begin], end=positions[piece.end])
        if number not in text.bare:
            made.surface = piece.surface
    if has_score:
        result.score = text.score
    return result


def nbest_message(texts: Iterable[ImmutableText]) -> Any:
    """Return segmentations as one protobuf message.

    Parameters
    ----------
    texts
        The segmentations.
    """
    result = NBestSentencePieceText()
    result.nbests.extend([message(text, has_score=True) for text in texts])
    return result
