"""tiktoken's call signatures on a jittok tokenizer; tiktoken itself is not needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentTypeError, SpecialTokenError
from ..vocabulary import token_number, unknown_id

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

Tokens = Collection[str]


class TiktokenEncoding:
    """A tokenizer with the methods of ``tiktoken.Encoding``.

    Parameters
    ----------
    tokenizer
        Any jittok tokenizer; only the template of its file, if it has one, is never used here.
    name
        What :attr:`name` says.
    """

    def __init__(self, tokenizer: Tokenizer, name: str = "jittok") -> None:
        self._tokenizer = tokenizer
        self.name = name

    def __repr__(self) -> str:
        return f"<TiktokenEncoding {self.name!r}>"

    # ------------------------------------------------------------------------------------------------ encoding

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text`, special tokens in it being ordinary text."""
        ids: list[int] = self._ids(text, "text").tolist()
        return ids

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Tokens = frozenset(),
        disallowed_special: Literal["all"] | Tokens = "all",
    ) -> list[int]:
        """Return the ids of `text`.

        Parameters
        ----------
        text
            str.
        allowed_special
            Special tokens that become their ids; "all" of them.
        disallowed_special
            Special tokens whose presence is an error; "all" that are not allowed. Others are ordinary text.

        Raises
        ------
        SpecialTokenError
            `text` holds a disallowed special token.
        """
        ids: list[int] = self.encode_to_numpy(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special
        ).tolist()
        return ids

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Tokens = frozenset(),
        disallowed_special: Literal["all"] | Tokens = "all",
    ) -> NDArray[np.uint32]:
        """Return the ids of `text` as an array; see :meth:`encode`."""
        allowed = self._checked([text], allowed_special, disallowed_special)
        return self._ids(text, allowed)

    def encode_ordinary_batch(self, text: Sequence[str], *, num_threads: int = 8) -> list[list[int]]:
        """Return the ids of many texts, special tokens in them being ordinary text."""
        return self._batch(text, "text", num_threads)

    def encode_batch(
        self,
        text: Sequence[str],
        *,
        num_threads: int = 8,
        allowed_special: Literal["all"] | Tokens = frozenset(),
        disallowed_special: Literal["all"] | Tokens = "all",
    ) -> list[list[int]]:
        """Return the ids of many texts; see :meth:`encode`."""
        return self._batch(text, self._checked(text, allowed_special, disallowed_special), num_threads)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the id of one token, given as text or bytes.

        Raises
        ------
        KeyError
            There is no such token, as in tiktoken.
        """
        token_id = self._tokenizer.token_to_id(text_or_bytes)
        if token_id is None:
            raise KeyError(text_or_bytes)
        return token_id

    # ------------------------------------------------------------------------------------------------ decoding

    def decode_bytes(self, tokens: Any) -> bytes:
        """Return the bytes of a list of ids."""
        return self._tokenizer.decode_bytes(tokens)

    def decode(self, tokens: Any, errors: str = "replace") -> str:
        """Return the text of a list of ids; `errors` as for :meth:`bytes.decode`."""
        return self._tokenizer.decode_bytes(tokens).decode("utf-8", errors)

    def decode_batch(self, batch: Any, *, errors: str = "replace", num_threads: int = 8) -> list[str]:
        """Return the texts of many lists of ids."""
        if errors == "replace":
            return self._tokenizer.decode_batch(batch)
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(self, batch: Any, *, num_threads: int = 8) -> list[bytes]:
        """Return the bytes of many lists of ids."""
        return [self.decode_bytes(tokens) for tokens in batch]

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of one id.

        Raises
        ------
        TokenIdError
            There is no such token (tiktoken raises KeyError).
        """
        return self._tokenizer.decode_bytes([token_number(token)])

    def decode_tokens_bytes(self, tokens: Any) -> list[bytes]:
        """Return the bytes of each id."""
        return [self.decode_single_token_bytes(int(token)) for token in tokens]

    def decode_with_offsets(self, tokens: Any) -> tuple[str, list[int]]:
        """Return the text of a list of ids, and the character at which each token begins.

        A token that begins inside a character is said to begin at that character.

        Raises
        ------
        UnicodeDecodeError
            The ids do not stand for valid UTF-8, as in tiktoken.
        """
        pieces = self.decode_tokens_bytes(tokens)
        offsets = []
        length = 0
        for piece in pieces:
            starts_inside = piece[:1] and 0x80 <= piece[0] < 0xC0
            offsets.append(max(0, length - bool(starts_inside)))
            length += sum(not 0x80 <= byte < 0xC0 for byte in piece)
        return b"".join(pieces).decode("utf-8"), offsets

    # -------------------------------------------------------------------------------------------- vocabulary

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of all tokens that are not special, sorted."""
        special = set(self._tokenizer.special_tokens.values())
        vocabulary = self._tokenizer.decoder.vocabulary
        ids = (i for i in range(vocabulary.size) if vocabulary.contains_id(i) and i not in special)
        return sorted(map(vocabulary.bytes_of, ids))

    @property
    def n_vocab(self) -> int:
        """One more than the greatest id."""
        return self.max_token_value + 1

    @property
    def max_token_value(self) -> int:
        """The greatest id."""
        return self._tokenizer.decoder.vocabulary.size - 1

    @property
    def eot_token(self) -> int:
        """The id of <|endoftext|>.

        Raises
        ------
        KeyError
            There is no such special token.
        """
        return self._tokenizer.special_tokens["<|endoftext|>"]

    @property
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._tokenizer.special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Return whether an id is that of a special token.

        Raises
        ------
        TokenIdError
            The id is negative.
        """
        number = token_number(token)
        if number < 0:
            raise unknown_id(number, None, self.n_vocab)
        return number in self._tokenizer.special_tokens.values()

    # ------------------------------------------------------------------------------------------------- inside

    def _checked(
        self, texts: Iterable[str], allowed: Literal["all"] | Tokens, disallowed: Literal["all"] | Tokens
    ) -> frozenset[str]:
        """Return the special tokens to parse; raise if a text holds one that is disallowed."""
        special = self.special_tokens_set
        for name, value in (("allowed_special", allowed), ("disallowed_special", disallowed)):
            if value != "all" and isinstance(value, str):
                raise ArgumentTypeError(f"{name}={value!r}: expected 'all' or a set of special tokens")
        parsed = frozenset(special) if allowed == "all" else frozenset(allowed) & special
        refused = frozenset(special) - parsed if disallowed == "all" else frozenset(disallowed)
        if refused:
            for text in texts:
                found = [token for token in refused if token in text] if isinstance(text, str) else []
                if found:
                    first = min(found, key=text.index)
                    raise SpecialTokenError(
                        f"the text holds the special token {first!r}, which is disallowed; pass it in "
                        "allowed_special to parse it, or disallowed_special=() to treat it as ordinary text"
                    )
        return parsed

    def _ids(self, text: str, special: Any) -> NDArray[np.uint32]:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"text: expected str, got {type(text).__name__}")
        encoded = self._tokenizer.encode_batch([text], special=special, add_special_tokens=False)
        return encoded.ids.astype(np.uint32)

    def _batch(self, texts: Sequence[str], special: Any, num_threads: int) -> list[list[int]]:
        return self._tokenizer.encode_batch(
            texts, special=special, add_special_tokens=False, threads=num_threads
        ).to_lists()
