"""The calls of transformers' fast tokenizers, without chat templates; transformers itself is not needed."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..decoding import CLEANUP
from ..encodings import whole_number
from ..errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from ..spec import BPEModel

if TYPE_CHECKING:
    from .huggingface import HfEncoding, HfTokenizer

#: The special tokens that have names.
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
#: What stands for no length at all.
VERY_LARGE = int(1e30)
_LARGE = 10**20
_PADDING = ("longest", "max_length", "do_not_pad")
_TRUNCATION = ("longest_first", "only_first", "only_second", "do_not_truncate")


class CharSpan(NamedTuple):
    """A range of characters."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """A range of tokens."""

    start: int
    end: int


class HfBatch(MutableMapping[str, Any]):
    """What calling a tokenizer gives: lists or arrays by their names, as a ``BatchEncoding``.

    Parameters
    ----------
    data
        The lists.
    encodings
        What they were made of.
    tensor_type
        As that of :meth:`convert_to_tensors`.
    """

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        encodings: Sequence[HfEncoding] | None = None,
        tensor_type: str | None = None,
    ) -> None:
        self.data: dict[str, Any] = dict(data or {})
        self.encodings = None if encodings is None else list(encodings)
        self.convert_to_tensors(tensor_type)

    # --------------------------------------------------------------------------------------- as a dictionary

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            return self.data[item]
        if isinstance(item, slice):
            return {key: value[item] for key, value in self.data.items()}
        return self._encoding(item)

    def __setitem__(self, key: str, value: Any) -> None:
        self.data[key] = value

    def __delitem__(self, key: str) -> None:
        del self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "encodings": self.encodings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return repr(self.data)

    # ------------------------------------------------------------------------------------------------ encodings

    @property
    def is_fast(self) -> bool:
        """Whether there are encodings."""
        return self.encodings is not None

    @property
    def n_sequences(self) -> int | None:
        """The number of texts in each encoding: 2 for pairs."""
        return self.encodings[0].n_sequences if self.encodings else None

    def _encoding(self, number: int) -> HfEncoding:
        if self.encodings is None:
            raise ArgumentError("there are no encodings here: these lists were not made by calling a tokenizer")
        return self.encodings[number]

    def _of(self, first: int, second: int | None) -> tuple[HfEncoding, int]:
        """The encoding and the position that a call with one or two numbers means."""
        number, place = (0, first) if second is None else (first, second)
        encoding = self._encoding(number)
        return encoding, place + len(encoding) if place < 0 else place

    def tokens(self, batch_index: int = 0) -> list[str]:
        """Return the token strings of an encoding.

        Parameters
        ----------
        batch_index
            Which one.
        """
        return self._encoding(batch_index).tokens

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """Return for each token of an encoding the number of its text.

        Parameters
        ----------
        batch_index
            Which one.
        """
        return self._encoding(batch_index).sequence_ids

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """Return for each token of an encoding the number of its word.

        Parameters
        ----------
        batch_index
            Which one.
        """
        return self._encoding(batch_index).word_ids

    def token_to_sequence(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
        """Return the number of a token's text.

        Parameters
        ----------
        batch_or_token_index, token_index
            The encoding and the token; one number alone is a token of the first encoding.
        """
        encoding, place = self._of(batch_or_token_index, token_index)
        return encoding.token_to_sequence(place)

    def token_to_word(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
        """Return the number of a token's word.

        Parameters
        ----------
        batch_or_token_index, token_index
            As those of :meth:`token_to_sequence`.
        """
        encoding, place = self._of(batch_or_token_index, token_index)
        return encoding.token_to_word(place)

    def token_to_chars(self, batch_or_token_index: int, token_index: int | None = None) -> CharSpan | None:
        """Return the characters of a token; None for special tokens.

        Parameters
        ----------
        batch_or_token_index, token_index
            As those of :meth:`token_to_sequence`.
        """
        encoding, place = self._of(batch_or_token_index, token_index)
        span = encoding.token_to_chars(place)
        return None if span is None else CharSpan(*span)

    def word_to_tokens(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> TokenSpan | None:
        """Return the tokens of a word, or None.

        Parameters
        ----------
        batch_or_word_index, word_index
            The encoding and the word; one number alone is a word of the first encoding.
        sequence_index
            The text that it is of.
        """
        encoding, place = self._of(batch_or_word_index, word_index)
        span = encoding.word_to_tokens(place, sequence_index)
        return None if span is None else TokenSpan(*span)

    def word_to_chars(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> CharSpan | None:
        """Return the characters of a word, or None.

        Parameters
        ----------
        batch_or_word_index, word_index, sequence_index
            As those of :meth:`word_to_tokens`.
        """
        encoding, place = self._of(batch_or_word_index, word_index)
        span = encoding.word_to_chars(place, sequence_index)
        return None if span is None else CharSpan(*span)

    def char_to_token(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Return the token that a character is in, or None.

        Parameters
        ----------
        batch_or_char_index, char_index
            The encoding and the character; one number alone is a character of the first encoding.
        sequence_index
            The text that it is of.
        """
        encoding, place = self._of(batch_or_char_index, char_index)
        return encoding.char_to_token(place, sequence_index)

    def char_to_word(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Return the word that a character is in, or None.

        Parameters
        ----------
        batch_or_char_index, char_index, sequence_index
            As those of :meth:`char_to_token`.
        """
        encoding, place = self._of(batch_or_char_index, char_index)
        return encoding.char_to_word(place, sequence_index)

    # ------------------------------------------------------------------------------------------------- tensors

    def convert_to_tensors(self, tensor_type: str | None = None, prepend_batch_axis: bool = False) -> HfBatch:
        """Make arrays or tensors of the lists.

        Parameters
        ----------
        tensor_type
            "np" for NumPy, "pt" for PyTorch; None leaves all as it is.
        prepend_batch_axis
            Whether each list is to be one row.

        Raises
        ------
        ArgumentError
            Another type, or lists of different lengths for "pt"; for "np" these make an array of arrays.
        MissingDependencyError
            PyTorch is not installed.
        """
        if tensor_type is None:
            return self
        kind = str(getattr(tensor_type, "value", tensor_type))
        if kind not in ("np", "pt"):
            raise ArgumentError(f"return_tensors={tensor_type!r}: expected 'np' or 'pt'")
        torch: Any = None
        if kind == "pt":
            try:
                torch = importlib.import_module("torch")
            except ImportError:
                raise MissingDependencyError("return_tensors='pt' needs PyTorch: pip install torch") from None
        for key, value in self.data.items():
            if hasattr(value, "shape"):
                continue
            array = _as_array([value] if prepend_batch_axis else value)
            if torch is not None and array.dtype == object:
                raise ArgumentError(
                    f"{key}: the lists have different lengths, which no tensor can have; pass padding=True and "
                    "truncation=True"
                )
            self.data[key] = array if torch is None else torch.from_numpy(array)
        return self

    def to(self, device: Any, *, non_blocking: bool = False) -> HfBatch:
        """Move tensors to a device, and return this.

        Parameters
        ----------
        device, non_blocking
            As those of ``torch.Tensor.to``.
        """
        for key, value in self.data.items():
            if hasattr(value, "to"):
                self.data[key] = value.to(device=device, non_blocking=non_blocking)
        return self


class _TokenName:
    """An attribute that holds a special token."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: TransformersCalls, owner: type) -> str | None:
        return instance._named.get(self._name)

    def __set__(self, instance: TransformersCalls, value: Any) -> None:
        if value is not None and not isinstance(value, str) and not hasattr(value, "content"):
            raise ArgumentTypeError(f"{self._name}: expected str, got {type(value).__name__}")
        instance._named[self._name] = None if value is None else str(value)


class _TokenId:
    """An attribute that holds the id of a special token."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name.removesuffix("_id")

    def __get__(self, instance: TransformersCalls, owner: type) -> int | None:
        token = instance._named.get(self._name)
        return None if token is None else instance.convert_tokens_to_ids(token)

    def __set__(self, instance: TransformersCalls, value: int | None) -> None:
        instance._named[self._name] = None if value is None else instance._backend.id_to_token(value)


class TransformersCalls:
    """Methods that :class:`~jittok.interop.huggingface.HfTokenizer` has of transformers' fast tokenizers.

    Attributes
    ----------
    bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token
        Special tokens, or None; with `_id` behind the name their ids.
    padding_side, truncation_side
        "right" or "left".
    model_max_length
        The length that is meant where a call asks for none.
    model_input_names
        Names of the lists that calls return.
    pad_token_type_id
        The type of padding.
    clean_up_tokenization_spaces, split_special_tokens
        What calls do unless they say otherwise.
    """

    bos_token, bos_token_id = _TokenName(), _TokenId()
    eos_token, eos_token_id = _TokenName(), _TokenId()
    unk_token, unk_token_id = _TokenName(), _TokenId()
    sep_token, sep_token_id = _TokenName(), _TokenId()
    pad_token, pad_token_id = _TokenName(), _TokenId()
    cls_token, cls_token_id = _TokenName(), _TokenId()
    mask_token, mask_token_id = _TokenName(), _TokenId()
    is_fast = True

    def _set_up(self, options: Mapping[str, Any]) -> None:
        """Take the settings of transformers' fast tokenizers."""
        backend = self._backend
        self._named: dict[str, str | None] = dict.fromkeys(NAMED_TOKENS)
        self.padding_side = "right"
        self.truncation_side = "right"
        self.model_max_length = VERY_LARGE
        self.model_input_names = ["input_ids", "attention_mask"]
        self.pad_token_type_id = 0
        self.clean_up_tokenization_spaces = False
        self.split_special_tokens = False
        self.extra_special_tokens: list[str] = []
        if backend.padding is not None:
            self.pad_token = backend.padding["pad_token"]
            self.pad_token_type_id = backend.padding["pad_type_id"]
            self.padding_side = backend.padding["direction"]
        if backend.truncation is not None:
            self.truncation_side = backend.truncation["direction"]
        model = backend.tokenizer.spec.model
        unknown = getattr(model, "unk_token", None)
        if unknown is None and (number := getattr(model, "unk_id", None)) is not None:
            unknown = backend.id_to_token(number)
        if unknown is not None and backend.token_to_id(unknown) is not None:
            self.unk_token = unknown
        for name, value in options.items():
            if name not in NAMED_TOKENS and name not in _SETTINGS:
                raise ArgumentTypeError(f"{name}: expected one of {', '.join((*NAMED_TOKENS, *_SETTINGS))}")
            setattr(self, name, value)
        wanted = [options[name] for name in NAMED_TOKENS if options.get(name) is not None]
        wanted += options.get("extra_special_tokens") or []
        missing = [token for token in wanted if backend.token_to_id(str(token)) is None]
        if missing:
            backend.add_special_tokens(missing)

    def _take_settings(self, other: TransformersCalls, names: Mapping[str, str]) -> None:
        """Take the settings of another object; `names` are new names of special tokens."""
        for name in _SETTINGS:
            setattr(self, name, copy.copy(getattr(other, name)))
        self._named = {
            role: None if token is None else names.get(token, token) for role, token in other._named.items()
        }

    @property
    def _backend(self) -> HfTokenizer:
        from .huggingface import HfTokenizer

        assert isinstance(self, HfTokenizer)
        return self

    @property
    def backend_tokenizer(self) -> HfTokenizer:
        """The same object: it has the methods of the backend too."""
        return self._backend

    # ---------------------------------------------------------------------------------------------- vocabulary

    def __len__(self) -> int:
        return self._backend.get_vocab_size()

    def __bool__(self) -> bool:
        return True

    @property
    def vocab_size(self) -> int:
        """The number of tokens of the model, without added ones."""
        return self._backend.get_vocab_size(with_added_tokens=False)

    @property
    def vocab(self) -> dict[str, int]:
        """All token strings and their ids."""
        return self._backend.get_vocab()

    @property
    def added_tokens_encoder(self) -> dict[str, int]:
        """The ids of the added tokens by their text."""
        return {token.content: number for number, token in self._backend.get_added_tokens_decoder().items()}

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by their ids."""
        return dict(self._backend.get_added_tokens_decoder())

    def get_added_vocab(self) -> dict[str, int]:
        """Return the ids of the added tokens by their text."""
        return self.added_tokens_encoder

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """The special tokens that have names, by these."""
        return {name: token for name, token in self._named.items() if token is not None}

    @property
    def all_special_tokens(self) -> list[str]:
        """All special tokens that this object was told of."""
        return list(dict.fromkeys([*self.special_tokens_map.values(), *map(str, self.extra_special_tokens)]))

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of :attr:`all_special_tokens`."""
        return self.convert_tokens_to_ids(self.all_special_tokens)  # type: ignore[no-any-return]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Return the id of a token string, or of each of a list; that of the unknown token for other strings.

        Parameters
        ----------
        tokens
            A string or a list.
        """
        if isinstance(tokens, str):
            number = self._backend.token_to_id(tokens)
            if number is None and self.unk_token is not None and tokens != self.unk_token:
                return self.unk_token_id
            return number
        return [self.convert_tokens_to_ids(token) for token in tokens]

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Return the token string of an id, or of each of a list; None where there is none.

        Parameters
        ----------
        ids
            An id or a list.
        skip_special_tokens
            Leave out the ids of :attr:`all_special_tokens`.
        """
        if isinstance(ids, int | np.integer):
            return self._backend.id_to_token(int(ids))
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [self._backend.id_to_token(int(number)) for number in ids if int(number) not in skipped]

    def get_special_tokens_mask(
        self, token_ids_0: Iterable[int], token_ids_1: Iterable[int] | None = None, already_has_special_tokens: bool = False
    ) -> list[int]:
        """Return 1 for each id of a special token and 0 for others.

        Parameters
        ----------
        token_ids_0
            Ids with the special tokens of the template.
        token_ids_1
            Has to be None.
        already_has_special_tokens
            Has to be True.
        """
        if token_ids_1 is not None or not already_has_special_tokens:
            raise ArgumentError("get_special_tokens_mask is for ids that have their special tokens already")
        special = set(self.all_special_ids)
        return [int(int(number) in special) for number in token_ids_0]

    # ------------------------------------------------------------------------------------------------ encoding

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        add_special_tokens: bool = True,
        padding: Any = False,
        truncation: Any = None,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        split_special_tokens: bool | None = None,
        max_target_length: int | None = None,
    ) -> HfBatch:
        """Encode one text, or a list of texts, for a model.

        Parameters
        ----------
        text, text_pair
            A str, or a list of them; with `is_split_into_words` a list of words, or a list of such lists.
        text_target, text_pair_target
            The same, for `labels`.
        add_special_tokens
            Put the special tokens of the file's template around the texts.
        padding
            False or "do_not_pad"; True or "longest": to the longest text; "max_length".
        truncation
            False or "do_not_truncate"; True or "longest_first"; "only_first"; "only_second".
        max_length, max_target_length
            Tokens for `truncation` and `padding`; None for :attr:`model_max_length`.
        stride
            Tokens that a window repeats of the one before.
        is_split_into_words
            See `text`.
        pad_to_multiple_of
            Round the length of padded lists up to a multiple of this.
        padding_side
            None for :attr:`padding_side`.
        return_tensors
            "np" or "pt" for arrays or tensors instead of lists.
        return_token_type_ids, return_attention_mask
            None: if they are in :attr:`model_input_names`.
        return_overflowing_tokens
            Give the further windows of a text as rows of their own, and `overflow_to_sample_mapping`.
        return_special_tokens_mask, return_offsets_mapping, return_length
            Give these lists too.
        verbose
            Not used.
        split_special_tokens
            Whether special tokens in a text are ordinary text.

        Returns
        -------
        HfBatch

        Raises
        ------
        ArgumentError, ArgumentTypeError, TextError
            An argument or text cannot be used.
        """
        if text is None and text_target is None:
            raise ArgumentError("text and text_target: expected at least one of them")
        result = None
        for given, pair, length in ((text, text_pair, max_length), (text_target, text_pair_target, max_target_length)):
            if given is None:
                continue
            if result is not None and length is None:
                length = max_length
            one = self._call(
                given, pair, add_special_tokens, padding, truncation, length, stride, is_split_into_words,
                pad_to_multiple_of, padding_side, return_tensors, return_token_type_ids, return_attention_mask,
                return_overflowing_tokens, return_special_tokens_mask, return_offsets_mapping, return_length,
                split_special_tokens,
            )  # fmt: skip
            if result is None:
                result = one
            else:
                result["labels"] = one["input_ids"]
        assert result is not None
        return result

    def _call(
        self,
        text: Any,
        text_pair: Any,
        add_special_tokens: bool,
        padding: Any,
        truncation: Any,
        max_length: int | None,
        stride: int,
        is_split_into_words: bool,
        pad_to_multiple_of: int | None,
        padding_side: str | None,
        return_tensors: Any,
        return_token_type_ids: bool | None,
        return_attention_mask: bool | None,
        return_overflowing_tokens: bool,
        return_special_tokens_mask: bool,
        return_offsets_mapping: bool,
        return_length: bool,
        split_special_tokens: bool | None,
    ) -> HfBatch:
        strategy, cutting, max_length = self._strategies(padding, truncation, max_length, pad_to_multiple_of)
        is_list = isinstance(text, list | tuple)
        if not is_list and not isinstance(text, str):
            raise ArgumentError(f"text: expected a str or a list, got {type(text).__name__}")
        is_batch = is_list
        if is_split_into_words:
            is_batch = is_list and len(text) > 0 and isinstance(text[0], list | tuple)
        if not is_batch:
            given = [text] if not text_pair else [(text, text_pair)]
        elif text_pair is None:
            given = list(text)
        elif isinstance(text_pair, str):
            raise ArgumentTypeError("text_pair: expected as many texts as there are in text, got one str")
        elif len(text_pair) != len(text):
            raise ArgumentError(f"text_pair: expected {len(text)} texts, as in text, got {len(text_pair)}")
        else:
            given = list(zip(text, text_pair, strict=True))
        cut = None
        if cutting is not None:
            cut = {"max_length": max_length, "stride": stride, "strategy": cutting, "direction": self.truncation_side}
        pad = None
        if strategy != "do_not_pad":
            pad = {
                "length": max_length if strategy == "max_length" else None,
                "direction": self.padding_side if padding_side is None else padding_side,
                "pad_id": self.pad_token_id,
                "pad_token": self.pad_token,
                "pad_type_id": self.pad_token_type_id,
                "pad_to_multiple_of": pad_to_multiple_of,
            }
        split = self.split_special_tokens if split_special_tokens is None else split_special_tokens
        encodings = self._backend._many(given, is_split_into_words, add_special_tokens, cut, pad, split)
        windows = encodings
        if return_overflowing_tokens:
            windows = [window for encoding in encodings for window in (encoding, *encoding.overflowing)]
        if return_token_type_ids is None:
            return_token_type_ids = "token_type_ids" in self.model_input_names
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self.model_input_names
        data: dict[str, Any] = {"input_ids": [window.ids for window in windows]}
        for name, key, wanted in (
            ("token_type_ids", "type_ids", return_token_type_ids),
            ("attention_mask", "attention_mask", return_attention_mask),
            ("special_tokens_mask", "special_tokens_mask", return_special_tokens_mask),
            ("offset_mapping", "offsets", return_offsets_mapping),
        ):
            if wanted:
                data[name] = [getattr(window, key) for window in windows]
        if return_length:
            data["length"] = [len(window) for window in windows]
        if return_overflowing_tokens:
            counts = [1 + len(encoding.overflowing) for encoding in encodings]
            data["overflow_to_sample_mapping"] = np.repeat(np.arange(len(counts)), counts).tolist()
        if not is_batch and return_tensors is None and not return_overflowing_tokens:
            data = {key: value[0] if isinstance(value[0], list) else value for key, value in data.items()}
        return HfBatch(data, windows, return_tensors)

    def _strategies(
        self, padding: Any, truncation: Any, max_length: int | None, pad_to_multiple_of: int | None
    ) -> tuple[str, str | None, int | None]:
        """How to pad and to cut, by what a call says."""
        if max_length is not None and padding is False and truncation is None:
            truncation = "longest_first"
        strategy = {False: "do_not_pad", None: "do_not_pad", True: "longest"}.get(padding, padding)
        strategy = str(getattr(strategy, "value", strategy))
        if strategy not in _PADDING:
            raise ArgumentError(f"padding={padding!r}: expected a bool or one of {', '.join(_PADDING)}")
        cutting = {False: "do_not_truncate", None: "do_not_truncate", True: "longest_first"}.get(truncation, truncation)
        cutting = str(getattr(cutting, "value", cutting))
        if cutting not in _TRUNCATION:
            raise ArgumentError(f"truncation={truncation!r}: expected a bool or one of {', '.join(_TRUNCATION)}")
        if max_length is None:
            is_known = self.model_max_length <= _LARGE
            if strategy == "max_length" and not is_known:
                strategy = "do_not_pad"
            if cutting != "do_not_truncate" and not is_known:
                cutting = "do_not_truncate"
            if is_known and (strategy == "max_length" or cutting != "do_not_truncate"):
                max_length = self.model_max_length
        if strategy != "do_not_pad" and self.pad_token_id is None:
            raise ArgumentError("padding needs a padding token; set pad_token, as in tokenizer.pad_token = '[PAD]'")
        if (
            cutting != "do_not_truncate" and strategy != "do_not_pad" and pad_to_multiple_of and max_length is not None
            and max_length % pad_to_multiple_of
        ):  # fmt: skip
            raise ArgumentError(
                f"max_length={max_length}, to which texts are cut, is no multiple of pad_to_multiple_of={pad_to_multiple_of}"
            )
        return strategy, None if cutting == "do_not_truncate" else cutting, max_length

    def tokenize(self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any) -> list[str]:
        """Return the token strings of a text.

        Parameters
        ----------
        text, pair
            The text, and a second one.
        add_special_tokens
            Put the special tokens of the file's template around the texts.
        **kwargs
            As those of calling the tokenizer.
        """
        return self(text, pair, add_special_tokens=add_special_tokens, **kwargs).tokens()

    # ------------------------------------------------------------------------------------------------- padding

    def pad(
        self,
        encoded_inputs: Any,
        padding: Any = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: Any = None,
        verbose: bool = True,
    ) -> HfBatch:
        """Fill up lists of ids, and the lists that belong to them.

        Parameters
        ----------
        encoded_inputs
            What calling the tokenizer gave for one text or several, or a list of such for one text each.
        padding, max_length, pad_to_multiple_of, padding_side, return_attention_mask, return_tensors, verbose
            As those of calling the tokenizer.

        Returns
        -------
        HfBatch

        Raises
        ------
        ArgumentError, ArgumentTypeError
            There are no ids, or an argument cannot be used.
        """
        if isinstance(encoded_inputs, list | tuple) and encoded_inputs and isinstance(encoded_inputs[0], Mapping):
            encoded_inputs = {key: [one[key] for one in encoded_inputs] for key in encoded_inputs[0]}
        if not isinstance(encoded_inputs, Mapping):
            raise ArgumentTypeError(f"encoded_inputs: expected a dictionary of lists, got {type(encoded_inputs).__name__}")
        name = self.model_input_names[0]
        if name not in encoded_inputs:
            raise ArgumentError(f"encoded_inputs: expected a list {name!r}, got {', '.join(encoded_inputs) or 'nothing'}")
        if return_tensors is None and len(encoded_inputs[name]):
            kinds = [type(value).__module__.split(".")[0] for value in (encoded_inputs[name], encoded_inputs[name][0])]
            return_tensors = "pt" if "torch" in kinds else "np" if "numpy" in kinds else None
        data = {key: _as_lists(value) for key, value in encoded_inputs.items()}
        ids = data[name]
        if not ids:
            if return_attention_mask:
                data["attention_mask"] = []
            return HfBatch(data)
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self.model_input_names
        strategy, _, length = self._strategies(padding, None if max_length is None else False, max_length, None)
        is_one = not isinstance(ids[0], list)
        if is_one:
            data = {key: [value] for key, value in data.items()}
        rows = data[name]
        for key, value in data.items():
            if len(value) != len(rows):
                raise ArgumentError(f"{key}: expected {len(rows)} rows, as there are ids, got {len(value)}")
        if strategy == "longest":
            length = max(map(len, rows))
        if length is not None and pad_to_multiple_of:
            step = whole_number("pad_to_multiple_of", pad_to_multiple_of, 1)
            length = -(-length // step) * step
        side = self.padding_side if padding_side is None else padding_side
        if side not in ("left", "right"):
            raise ArgumentError(f"padding_side={side!r}: expected 'left' or 'right'")
        if return_attention_mask and "attention_mask" not in data:
            data["attention_mask"] = [[1] * len(row) for row in rows]
        fills = {"attention_mask": 0, "token_type_ids": self.pad_token_type_id, "special_tokens_mask": 1}
        fills[name] = self.pad_token_id if self.pad_token_id is not None else 0
        if strategy != "do_not_pad" and length is not None:
            missing = [length - len(row) for row in rows]
            for key in [key for key in fills if key in data]:
                data[key] = [
                    row + [fills[key]] * count if side == "right" else [fills[key]] * count + row
                    for row, count in zip(data[key], missing, strict=True)
                ]
        if is_one:
            data = {key: value[0] for key, value in data.items()}
        return HfBatch(data, tensor_type=return_tensors)

    # ------------------------------------------------------------------------------------------------ decoding

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Return the texts of many sequences of ids.

        Parameters
        ----------
        sequences
            Lists, an array of two dimensions, or what calling the tokenizer gave.
        skip_special_tokens
            Leave special tokens out: here not, unless it is asked for.
        clean_up_tokenization_spaces
            Take out the blanks before English punctuation; None for the attribute of that name. Not done for byte-pair
            models.
        **kwargs
            Not used.
        """
        if isinstance(sequences, Mapping):
            sequences = sequences["input_ids"]
        rows = _as_lists(sequences)
        rows = [row if isinstance(row, list) else [row] for row in rows]
        texts = self._backend.decode_batch(rows, skip_special_tokens)
        return [self._cleaned(text, clean_up_tokenization_spaces) for text in texts]

    def _cleaned(self, text: str, clean_up: bool | None) -> str:
        clean_up = self.clean_up_tokenization_spaces if clean_up is None else clean_up
        if not clean_up or isinstance(self._backend.tokenizer.spec.model, BPEModel):
            return text
        for pattern, content in CLEANUP:
            if pattern != " do not":  # which is not taken out here
                text = text.replace(pattern, content)
        return text

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Return the text of token strings that are all in the vocabulary.

        Parameters
        ----------
        tokens
            The strings.
        """
        ids = []
        for number, token in enumerate(tokens):
            found = self._backend.token_to_id(token)
            if found is None:
                raise ArgumentError(f"tokens[{number}]: {token!r} is not in the vocabulary")
            ids.append(found)
        return self._backend.decode(ids, skip_special_tokens=False)


_SETTINGS = (
    "padding_side",
    "truncation_side",
    "model_max_length",
    "model_input_names",
    "pad_token_type_id",
    "clean_up_tokenization_spaces",
    "split_special_tokens",
    "extra_special_tokens",
)


def _as_array(value: Any) -> NDArray[Any]:
    """An array from lists; one of arrays where their lengths differ."""
    if isinstance(value, list) and len({len(row) for row in value if isinstance(row, list)}) > 1:
        rows = np.empty(len(value), dtype=object)
        for number, row in enumerate(value):
            rows[number] = np.asarray(row)
        return rows
    array = np.asarray(value)
    return array if array.size else array.astype(np.int64)


def _as_lists(value: Any) -> Any:
    """Lists from lists, arrays or tensors."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_as_lists(item) if not isinstance(item, int | str) else item for item in value]
    return value
