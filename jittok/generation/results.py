"""What generation gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

FinishReason = Literal["unfinished", "length", "end", "stop"]

#: By the numbers that kernels use.
REASONS: tuple[FinishReason, ...] = ("unfinished", "length", "end", "stop")


@dataclass(frozen=True)
class GeneratedSequence:
    """One continuation of a prompt.

    Attributes
    ----------
    prompt
        Number of the prompt.
    prompt_ids : int32[p]
        The prompt, without padding.
    ids : int32[n]
        The tokens that were generated: with the end token, or those that completed a stop string, if they did.
    token_scores : float32[n]
        Of each token: without beams, the logarithm of its probability after all processing; with beams, what it added to
        the score.
    score
        Without beams their sum; with beams their sum divided by ``n ** length_penalty``.
    finish_reason
        "length", "end" (an end token) or "stop" (a stop string); "unfinished" in what an exception has kept.
    text
        The text of `ids`, before the stop string if there is one; None without a tokenizer.
    """

    prompt: int
    prompt_ids: NDArray[np.int32]
    ids: NDArray[np.int32]
    token_scores: NDArray[np.float32]
    score: float
    finish_reason: FinishReason
    text: str | None = None

    @property
    def sequence(self) -> NDArray[np.int32]:
        """int32[p + n]: prompt and continuation."""
        return np.concatenate([self.prompt_ids, self.ids])


class Generated(Sequence[GeneratedSequence]):
    """The continuations of all prompts, in the order of the prompts, the best one of each first.

    Parameters
    ----------
    sequences
        All of them.

    Attributes
    ----------
    sequences
        The same, as a tuple.
    """

    def __init__(self, sequences: Sequence[GeneratedSequence]) -> None:
        self.sequences = tuple(sequences)

    def __len__(self) -> int:
        return len(self.sequences)

    @overload
    def __getitem__(self, index: int) -> GeneratedSequence: ...
    @overload
    def __getitem__(self, index: slice) -> Generated: ...
    def __getitem__(self, index: int | slice) -> GeneratedSequence | Generated:
        found = self.sequences[index]
        return Generated(found) if isinstance(found, tuple) else found

    def __repr__(self) -> str:
        return f"Generated({len(self)} sequences, {sum(len(sequence.ids) for sequence in self)} tokens)"

    def of_prompt(self, number: int) -> list[GeneratedSequence]:
        """The continuations of one prompt.

        Parameters
        ----------
        number
            Of the prompt.
        """
        return [sequence for sequence in self.sequences if sequence.prompt == number]

    @property
    def texts(self) -> list[str | None]:
        """The text of each."""
        return [sequence.text for sequence in self.sequences]

    @property
    def scores(self) -> NDArray[np.float32]:
        """float32[sequences]: the score of each."""
        return np.array([sequence.score for sequence in self.sequences], np.float32)
