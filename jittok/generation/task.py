"""What both routines share: what is to do, with what."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.generation.prompts import Prompts
from jittok.generation.settings import GenerationSettings
from jittok.generation.steps import Model, Workers
from jittok.generation.stop_strings import StopStrings, TextStream

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

#: Why a sequence ended; places of :data:`jittok.generation.results.REASONS`.
LENGTH, END, STOP = 1, 2, 3
#: Tokens that there is room for at first; more is made when it is needed.
FIRST_ROOM = 256


class Task:
    """One call of ``generate``.

    Parameters
    ----------
    settings
        What is to do.
    model
        The step.
    prompts
        What is continued.
    limits : int64[prompts]
        Tokens that may be generated for each.
    stops
        Stop strings.
    tokenizer, skip_special_tokens
        For texts.
    threads
        Threads that work on the logits.
    seed : uint64[1]
        Of the draws.
    """

    def __init__(
        self,
        settings: GenerationSettings,
        model: Model,
        prompts: Prompts,
        limits: NDArray[np.int64],
        stops: StopStrings,
        tokenizer: Tokenizer | None,
        skip_special_tokens: bool,
        threads: int,
        seed: NDArray[np.uint64],
    ) -> None:
        self.settings, self.model, self.prompts, self.limits = settings, model, prompts, limits
        self.stops, self.tokenizer, self.seed = stops, tokenizer, seed
        self._skip_special_tokens = skip_special_tokens
        self._threads = threads
        self._workers: Workers | None = None

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *error: object) -> None:
        if self._workers is not None:
            self._workers.close()

    def workers(self, new_scratch: Callable[[], Any]) -> Workers:
        """The threads, which end with the task.

        Parameters
        ----------
        new_scratch
            Makes the scratch of one.
        """
        rows = len(self.prompts.rows) * self.settings.num_return_sequences
        self._workers = Workers(max(1, min(self._threads, rows)), new_scratch)  # more would only need memory
        return self._workers

    def new_text(self, prompt: NDArray[np.int32]) -> TextStream:
        """A stream for what follows a prompt.

        Parameters
        ----------
        prompt : int32[n]
            Its tokens.
        """
        assert self.tokenizer is not None
        return TextStream(self.tokenizer, prompt, self.stops, self._skip_special_tokens)

    def flags(self, made: Any, lengths: Any, limits: Any) -> NDArray[np.uint8]:
        """What is special about each row's next token, for kernels.

        Parameters
        ----------
        made, lengths, limits : int64[rows]
            Tokens generated, tokens with the prompt, tokens that may be generated.
        """
        from jittok.kernels.logits import IS_FIRST, IS_LAST, NO_END

        settings = self.settings
        flags = np.where((made < settings.min_new_tokens) | (lengths < settings.min_length), NO_END, 0)
        flags |= np.where(made == 0, IS_FIRST, 0) | np.where(made + 1 >= limits, IS_LAST, 0)
        return flags.astype(np.uint8)


def streams_of(rows: list[NDArray[np.int32]], copies: int) -> NDArray[np.uint64]:
    """A number for each sequence that depends on its prompt, not on its place: what it draws with.

    Of equal prompts, and of several sequences for one prompt, each gets another number.

    Parameters
    ----------
    rows
        The prompts.
    copies
        Sequences for each.

    Returns
    -------
    uint64[prompts * copies]
    """
    occurrences: dict[bytes, int] = {}
    numbers = []
    for row in rows:
        content = row.astype("<i4").tobytes()
        for _ in range(copies):
            count = occurrences[content] = occurrences.get(content, -1) + 1
            digest = hashlib.blake2b(content + count.to_bytes(8, "little"), digest_size=8).digest()
            numbers.append(int.from_bytes(digest, "little"))
    return np.array(numbers, np.uint64)
