"""tiktoken's call signatures on a jittok tokenizer; tiktoken itself is not needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    MissingTokenError,
    SpecialTokenError,
    TokenIdError,
    UnsupportedError,
)
from ..spec import RankModel, Split
from ..vocabulary import WHITE_SPACE, token_number

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
        What :attr:`name` says; None: the name of a published encoding, or "jittok".

    Attributes
    ----------
    name
        The encoding's name.
    """

    def __init__(self, tokenizer: Tokenizer, name: str | None = None) -> None:
        self._tokenizer = tokenizer
        self.name = str(tokenizer.spec.extra.get("encoding", "jittok")) if name is None else name

    @classmethod
    def from_ranks(
        cls,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
        explicit_n_vocab: int | None = None,
    ) -> TiktokenEncoding:
        """Return an encoding made of the arguments of ``tiktoken.Encoding``.

        Parameters
        ----------
        name
            Its name.
        pat_str
            The regular expression that splits text.
        mergeable_ranks
            The bytes of tokens and their ranks.
        special_tokens
            Special tokens and their ids.
        explicit_n_vocab
            The number of all tokens, to be checked.

        Raises
        ------
        ArgumentError, FormatError, RegexError
            The arguments contradict each other or cannot be used.
        """
        from ..formats import tiktoken_file
        from ..tokenizer import Tokenizer

        tokenizer = Tokenizer(tiktoken_file.make_spec(mergeable_ranks, pat_str, special_tokens, name))
        result = cls(tokenizer, name)
        count = len(mergeable_ranks) + len(special_tokens)
        if explicit_n_vocab and not count == explicit_n_vocab == result.n_vocab:
            raise ArgumentError(
                f"explicit_n_vocab={explicit_n_vocab}, but there are {count} tokens with ids up to {result.n_vocab - 1}"
            )
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {"_tokenizer": self._tokenizer, "name": self.name}  # without what was made of it

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # ------------------------------------------------------------------------------------------------ encoding

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text`, special tokens in it being ordinary text."""
        return self._ids(text, "text").tolist()  # type: ignore[no-any-return]

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
        MissingTokenError
            There is no such token.
        """
        token_id = self._tokenizer.token_to_id(text_or_bytes)
        if token_id is None:
            raise MissingTokenError(f"there is no token {text_or_bytes!r}")
        return token_id

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Tokens = frozenset(),
        disallowed_special: Literal["all"] | Tokens = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """Return the ids of `text` that stay whatever follows it, and what its rest may become.

        Parameters
        ----------
        text, allowed_special, disallowed_special
            As those of :meth:`encode`.

        Returns
        -------
        stable : list of int
        completions : list of list of int
            Ids that may stand for the rest of the text, the last one for more than that; in no order that means
            anything, as in tiktoken, and found by its rules.

        Raises
        ------
        UnsupportedError
            The tokenizer is not from a rank file.
        SpecialTokenError
            As :meth:`encode`.
        """
        ranks = self._mergeable_ranks
        allowed = self._checked([text], allowed_special, disallowed_special)
        encoding = self._tokenizer.encode(text, special=allowed, add_special_tokens=False)
        ids, unstable_ids = self._stable(list(encoding), encoding.word_ids.tolist())
        rest = self.decode_bytes(unstable_ids)
        completions: set[tuple[int, ...]] = set()
        if rest:
            completions.update((ranks[token],) for token in self._tokens_beginning_with(rest))
        possible = [
            rest[:place] + token
            for place in range(1, len(rest))
            for token in self._tokens_beginning_with(rest[place:])
        ]
        for encoded in self._encoded_bytes(possible):
            length, taken = 0, 0
            while length < len(rest) and taken < len(encoded):
                length += len(self._bytes_of(encoded[taken]))
                taken += 1
            completions.add(tuple(encoded[:taken]))
        # White space at the end may be cut off from what is before it, once something follows.
        last = rest.decode("utf-8", "replace")[-1:]
        if last != "\ufffd" and last and ord(last) in WHITE_SPACE:
            split = len(rest) - len(last.encode())
            if split > 0:
                completions.add((*self._merged(rest[:split]), *self._merged(rest[split:])))
        return ids, [list(completion) for completion in completions]

    def _stable(self, ids: list[int], words: list[int]) -> tuple[list[int], list[int]]:
        """Ids before the last word of a text, and its own, to which white space right before it belongs."""
        if not ids or ids[-1] in self._special_ids:
            return ids, []
        first = len(ids) - 1
        while first > 0 and words[first - 1] == words[-1] and ids[first - 1] not in self._special_ids:
            first -= 1

        def is_blank(token: int) -> bool:
            return not self._bytes_of(token).strip(b" \n\t")

        if is_blank(ids[first]):
            while first > 0 and is_blank(ids[first - 1]):
                first -= 1
        return ids[:first], ids[first:]

    def _tokens_beginning_with(self, prefix: bytes) -> list[bytes]:
        tokens = self._sorted_tokens
        first = last = bisect_left(tokens, prefix)
        while last < len(tokens) and tokens[last].startswith(prefix):
            last += 1
        return tokens[first:last]

    def _encoded_bytes(self, texts: list[bytes]) -> list[list[int]]:
        """Ids of bytes: split where they are text, merged as a whole where they are not."""
        result: list[list[int]] = [[] for _ in texts]
        valid = []
        for number, text in enumerate(texts):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                result[number] = self._merged(text)
            else:
                valid.append(number)
        if valid:
            batch = self._tokenizer.encode_batch(
                [texts[number] for number in valid], special="text", add_special_tokens=False
            )
            for number, ids in zip(valid, batch.to_lists(), strict=True):
                result[number] = ids
        return result

    def _merged(self, piece: bytes) -> list[int]:
        """Return the ids of bytes that are not split."""
        return self._tokenizer.encode_piece(piece).tolist()  # type: ignore[no-any-return]

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """Return the ids of text or bytes that are not split."""
        return self._merged(text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes)

    def _encode_bytes(self, text: bytes) -> list[int]:
        """Return the ids of bytes that need not be UTF-8: from the word on where they are not, as a whole."""
        try:
            return self.encode_ordinary(text.decode("utf-8"))
        except UnicodeDecodeError as error:
            valid = text[: error.start].decode("utf-8")
        encoding = self._tokenizer.encode(valid, special="text", add_special_tokens=False)
        stable, unstable = self._stable(list(encoding), encoding.word_ids.tolist())
        return stable + self._merged(self.decode_bytes(unstable) + text[len(valid.encode()) :])

    # ------------------------------------------------------------------------------------------------ decoding

    def decode_bytes(self, tokens: Any) -> bytes:
        """Return the bytes of a list of ids.

        Raises
        ------
        MissingTokenError
            There is no such token.
        """
        try:
            return self._tokenizer.decode_bytes(tokens)
        except TokenIdError as error:
            raise MissingTokenError(str(error)) from None

    def decode(self, tokens: Any, errors: str = "replace") -> str:
        """Return the text of a list of ids; `errors` as for :meth:`bytes.decode`."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_batch(self, batch: Any, *, errors: str = "replace", num_threads: int = 8) -> list[str]:
        """Return the texts of many lists of ids."""
        if errors == "replace" and self._tokenizer.decoder.is_bytes:
            try:
                return self._tokenizer.decode_batch(batch)
            except TokenIdError as error:
                raise MissingTokenError(str(error)) from None
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(self, batch: Any, *, num_threads: int = 8) -> list[bytes]:
        """Return the bytes of many lists of ids."""
        return [self.decode_bytes(tokens) for tokens in batch]

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of one id.

        Raises
        ------
        MissingTokenError
            There is no such token.
        """
        return self._bytes_of(token_number(token))

    def _bytes_of(self, token: int) -> bytes:
        vocabulary = self._tokenizer.decoder.vocabulary
        if not vocabulary.contains_id(token):
            raise MissingTokenError(f"token id {token} is not in the vocabulary")
        return vocabulary.bytes_of(token)

    def decode_tokens_bytes(self, tokens: Any) -> list[bytes]:
        """Return the bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

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
        return list(self._sorted_tokens)

    @cached_property
    def _sorted_tokens(self) -> list[bytes]:
        vocabulary = self._tokenizer.decoder.vocabulary
        ids = (i for i in range(vocabulary.size) if vocabulary.contains_id(i) and i not in self._special_ids)
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
        MissingTokenError
            There is no such special token.
        """
        token_id = self._special_tokens.get("<|endoftext|>")
        if token_id is None:
            raise MissingTokenError("there is no special token <|endoftext|>")
        return token_id

    @property
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Return whether an id is that of a special token."""
        return token_number(token) in self._special_ids

    # What these hold has no other name in tiktoken either.

    @cached_property
    def _special_tokens(self) -> dict[str, int]:
        return self._tokenizer.special_tokens

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self._special_tokens.values())

    @property
    def _mergeable_ranks(self) -> Mapping[bytes, int]:
        model = self._tokenizer.spec.model
        if not isinstance(model, RankModel):
            raise UnsupportedError("this tokenizer is not from a rank file, so its tokens have no ranks")
        return model.ranks

    @property
    def _pat_str(self) -> str:
        for step in self._tokenizer.spec.pre_tokenizers:
            if isinstance(step, Split):
                return step.pattern
        raise UnsupportedError("this tokenizer does not split text by a pattern")

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
