"""What generation is to do, checked."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jittok.encodings import whole_number
from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.tables import read_only

if TYPE_CHECKING:
    from jittok.kernels.logits import Rules


@dataclass(frozen=True)
class GenerationSettings:
    """Settings of :func:`jittok.generation.generate`, by the names that transformers gives them.

    Attributes
    ----------
    max_new_tokens, max_length
        Tokens to generate at most; or tokens of prompt and continuation together. One of them must be given.
    min_new_tokens, min_length
        The same, at least: no end token comes before.
    do_sample
        Draw tokens; else the most probable ones are taken.
    temperature
        Logits are divided by it. This and the next four are for samples only, and applied in this order.
    top_k
        Only the so many most probable tokens stay, and those that are equal to the last of them.
    top_p
        Only the fewest most probable tokens stay whose probabilities add up to it.
    min_p
        Only tokens that have this share of the best one's probability stay.
    typical_p
        Only tokens stay whose information is nearest to the entropy, up to this mass.
    repetition_penalty
        The logits of tokens that were there already, in the prompt too, are divided by it, or multiplied where negative.
    no_repeat_ngram_size
        No sequence of so many tokens occurs twice; 0 for no such rule.
    bad_words_ids
        Sequences of tokens that never occur. One that is nothing but an end token is left out.
    forced_bos_token_id, forced_eos_token_id
        The first token that is generated; the last one, where the greatest length is reached.
    eos_token_id
        The tokens that end a sequence: none, one or several.
    pad_token_id
        What prompts are filled up with.
    num_beams
        Sequences that are followed at once for each prompt; 1 for no beam search.
    num_beam_groups, diversity_penalty
        Beams in so many groups, of which each pays this penalty for a token of a group before it.
    length_penalty
        Scores of finished beams are divided by their length to this power.
    early_stopping
        False: a prompt is done when its best beam, ended now, would not be better than its worst finished one; True: when it
        has as many finished ones as beams; "never": when no beam can become better.
    num_return_sequences
        Sequences for each prompt.
    stop_strings
        Texts that end a sequence, whose text is cut before them.
    seed
        Of the draws; the same seed gives the same tokens, whatever the order of the prompts and the number of threads.
        None: any.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        One of them cannot be, or two do not go together.
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int = 0
    min_length: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    bad_words_ids: Sequence[Sequence[int]] = ()
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    eos_token_id: int | Sequence[int] | None = None
    pad_token_id: int = 0
    num_beams: int = 1
    num_beam_groups: int = 1
    diversity_penalty: float = 0.0
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    num_return_sequences: int = 1
    stop_strings: str | Sequence[str] | None = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        for name, least in (
            ("max_new_tokens", 1), ("max_length", 1), ("min_new_tokens", 0), ("min_length", 0), ("top_k", 0),
            ("no_repeat_ngram_size", 0), ("forced_bos_token_id", 0), ("forced_eos_token_id", 0), ("pad_token_id", 0),
            ("num_beams", 1), ("num_beam_groups", 1), ("num_return_sequences", 1),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                value = whole_number(name, value, least)
                if value >= 2**31:
                    raise ArgumentError(f"{name}={value} does not fit in int32")
            elif name not in ("max_new_tokens", "max_length", "top_k", "forced_bos_token_id", "forced_eos_token_id"):
                raise ArgumentTypeError(f"{name}=None: expected a whole number")
            put(name, value)
        for name, least_, most, needs_more in (
            ("temperature", 0.0, math.inf, True), ("top_p", 0.0, 1.0, False), ("min_p", 0.0, 1.0, False),
            ("typical_p", 0.0, 1.0, True), ("repetition_penalty", 0.0, math.inf, True),
            ("diversity_penalty", 0.0, math.inf, False), ("length_penalty", -math.inf, math.inf, False),
        ):  # fmt: skip
            put(name, real_number(name, getattr(self, name), least_, most, needs_more))
        for name in ("temperature", "repetition_penalty"):  # of float32 rows
            if not 1e-37 < getattr(self, name) < 1e37:
                raise ArgumentError(f"{name}={getattr(self, name)!r}: expected a number between 1e-37 and 1e37")
        if self.max_new_tokens is not None and self.max_length is not None:
            raise ArgumentError(
                f"max_new_tokens={self.max_new_tokens} and max_length={self.max_length}: give one of them"
            )
        if not isinstance(self.early_stopping, str):
            put("early_stopping", truth("early_stopping", self.early_stopping, "True, False or 'never'"))
        elif self.early_stopping != "never":
            raise ArgumentError(f"early_stopping={self.early_stopping!r}: expected True, False or 'never'")
        put("do_sample", truth("do_sample", self.do_sample, "True or False"))
        ends: Any = () if self.eos_token_id is None else self.eos_token_id
        put("eos_token_id", token_ids("eos_token_id", [ends] if isinstance(ends, int | np.integer) else ends))
        if isinstance(self.bad_words_ids, str) or not isinstance(self.bad_words_ids, Iterable):
            raise ArgumentTypeError(f"bad_words_ids={self.bad_words_ids!r}: expected a list of lists of token ids")
        words = [token_ids("bad_words_ids", word) for word in self.bad_words_ids]
        if not all(words):
            raise ArgumentError("bad_words_ids: one of them is empty; expected one token or more in each")
        put("bad_words_ids", tuple(word for word in words if len(word) > 1 or word[0] not in self.ends))
        self._check_beams()

    def _check_beams(self) -> None:
        beams, groups = self.num_beams, self.num_beam_groups
        if beams % groups:
            raise ArgumentError(f"num_beams={beams} with num_beam_groups={groups}: expected a multiple")
        if groups == 1 and self.diversity_penalty:
            raise ArgumentError(f"diversity_penalty={self.diversity_penalty}: it is for num_beam_groups=2 or more")
        if groups > 1 and self.do_sample:
            raise ArgumentError("do_sample=True with num_beam_groups: diverse beams are not drawn")
        if self.num_return_sequences > beams and not (beams == 1 and self.do_sample):
            raise ArgumentError(
                f"num_return_sequences={self.num_return_sequences}: expected at most num_beams={beams}, "
                "or do_sample=True without beams"
            )
        if beams > 1024:
            raise ArgumentError(f"num_beams={beams}: expected at most 1024")

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a sequence."""
        return self.eos_token_id  # type: ignore[return-value]

    @property
    def least_kept(self) -> int:
        """Tokens that every filter keeps: in beam search one that is no end token must be among them."""
        return max(2, len(self.ends) + 1) if self.num_beams > 1 else 1

    def with_(self, **changes: Any) -> GenerationSettings:
        """Return settings that differ in some.

        Parameters
        ----------
        **changes
            By name.
        """
        return replace(self, **changes)

    def check_vocabulary(self, vocab_size: int) -> None:
        """Refuse tokens that the logits have no place for.

        Parameters
        ----------
        vocab_size
            Length of a row of logits.
        """
        for name in ("forced_bos_token_id", "forced_eos_token_id"):
            self._check_token(name, getattr(self, name) or 0, vocab_size)
        for token in self.ends:
            self._check_token("eos_token_id", token, vocab_size)
        for word in self.bad_words_ids:
            self._check_token("bad_words_ids", max(word), vocab_size)
        if self.num_beams * vocab_size >= 2**32:
            raise ArgumentError(f"num_beams={self.num_beams} for {vocab_size} tokens: expected fewer than 2**32 together")

    @staticmethod
    def _check_token(name: str, token: int, vocab_size: int) -> None:
        if token >= vocab_size:
            raise ArgumentError(f"{name}: token {token} is not among the {vocab_size} that the logits are for")

    def rules(self, *, log_softmax: bool = False) -> Rules:
        """The same for kernels.

        Parameters
        ----------
        log_softmax
            Whether rows become logarithms of probabilities first.
        """
        from jittok.kernels.logits import Rules

        words = self.bad_words_ids
        min_p = self.min_p or 0.0
        numbers = [
            self.temperature,
            1.0 if self.top_p is None else self.top_p,
            math.log(min_p) if min_p > 0 else -math.inf,
            1.0 if self.typical_p is None else self.typical_p,
            self.repetition_penalty,
            self.diversity_penalty,
        ]
        first, last = self.forced_bos_token_id, self.forced_eos_token_id
        sizes = [
            self.top_k or 0,
            self.no_repeat_ngram_size,
            self.least_kept,
            int(log_softmax),
            -1 if first is None else first,
            -1 if last is None else last,
            int(self.do_sample),
        ]
        flat = [token for word in words for token in word]
        return Rules(
            read_only(np.array(numbers, np.float64)),
            read_only(np.array(sizes, np.int64)),
            read_only(np.array(self.ends, np.int32)),
            read_only(np.array(flat, np.int32)),
            read_only(np.cumsum([0, *map(len, words)], dtype=np.int64)),
        )


def real_number(name: str, value: Any, least: float, most: float, excludes_least: bool) -> Any:
    """Return a number as a float, or raise naming the argument; None stays.

    Parameters
    ----------
    name
        Of the argument.
    value
        The number.
    least, most
        Its bounds.
    excludes_least
        Whether it must be above the lower one.
    """
    if value is None:
        if name in ("top_p", "min_p", "typical_p"):
            return None
        raise ArgumentTypeError(f"{name}=None: expected a number")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name}={value!r}: expected a number, got {type(value).__name__}") from None
    except OverflowError:
        raise ArgumentError(f"{name}: expected a number that fits in a float, got a larger one") from None
    if isinstance(value, bool | str) or not math.isfinite(number) or not least <= number <= most:
        raise ArgumentError(f"{name}={value!r}: expected a finite number from {least} to {most}")
    if excludes_least and number == least:
        raise ArgumentError(f"{name}={value!r}: expected a number above {least}")
    return number


def truth(name: str, value: Any, expected: str) -> bool:
    """Return whether something is to be, as a bool, or raise naming the argument.

    Parameters
    ----------
    name
        Of the argument.
    value
        A bool, of NumPy too, or 0 or 1.
    expected
        What may be given, for the message.
    """
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise ArgumentTypeError(f"{name}={value!r}: expected {expected}")


def token_ids(name: str, values: Any) -> tuple[int, ...]:
    """Return token ids as a tuple of int, or raise naming the argument.

    Parameters
    ----------
    name
        Of the argument.
    values
        Whole numbers from 0 up.
    """
    try:
        found = tuple(operator.index(value) for value in values)
    except TypeError:
        raise ArgumentTypeError(f"{name}={values!r}: expected token ids, which are whole numbers") from None
    for token in found:
        if not 0 <= token < 2**31:
            raise ArgumentError(f"{name}: {token} is no token id; expected a whole number from 0 up that fits in int32")
    return found
