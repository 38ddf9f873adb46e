"""Greedy search, sampling, and beam search in its forms, around a step that the user writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.encodings import whole_number
from jittok.errors import ArgumentError, ArgumentTypeError, GenerationError
from jittok.generation.beam_search import search
from jittok.generation.processors import seed_array
from jittok.generation.prompts import read_prompts
from jittok.generation.results import REASONS, FinishReason, Generated, GeneratedSequence
from jittok.generation.settings import GenerationSettings
from jittok.generation.steps import Model, Step, check_status
from jittok.generation.stop_strings import StopStrings, TextStream
from jittok.generation.task import END, FIRST_ROOM, LENGTH, STOP, Task, streams_of

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


@dataclass(frozen=True)
class Chunk:
    """What one step gave one sequence.

    Attributes
    ----------
    sequence
        Number of the sequence: ``prompt * num_return_sequences + i``.
    token_id, score
        The new token, and the logarithm of its probability after processing.
    text
        Text that is certain now; "" without a tokenizer.
    finish_reason
        None while the sequence goes on; then as in :class:`GeneratedSequence`.
    """

    sequence: int
    token_id: int
    score: float
    text: str
    finish_reason: FinishReason | None = None


def generate(
    step: Step,
    prompts: Any,
    *,
    state: Any = None,
    tokenizer: Tokenizer | None = None,
    skip_special_tokens: bool = True,
    threads: int = 1,
    on_text: Callable[[int, str], Any] | None = None,
    settings: GenerationSettings | None = None,
    **changes: Any,
) -> Generated:
    """Continue prompts with a language model.

    Parameters
    ----------
    step
        ``step(ids, state, beam_index) -> (logits, state)``. In the first call `ids` is int32[prompts, length], filled up on
        the left, and `beam_index` is None. Later `ids` is int32[rows, 1], the newest token of each row, and row i continues
        row ``beam_index[i]`` of the call before: so a state is put in order by ``state[beam_index]``. The number of rows
        changes: one for each prompt at first, then one for each sequence or beam that goes on. `logits` is
        float32[rows, vocab], or [rows, n, vocab], of which the last one counts. They are never changed.
    prompts
        A batch, what its ``pad(side="left")`` gives, an array int[n, length], a list of lists of ids, or, with `tokenizer`,
        a list of texts. For a decoder beside an encoder they are the start tokens; the encoder's output is part of `state`.
    state
        Given to the first call.
    tokenizer
        Encodes prompts that are text, and decodes.
    skip_special_tokens
        Leave special tokens out of texts.
    threads
        Threads that work on the logits.
    on_text
        Called as ``on_text(sequence, text)`` when text has become certain; not for beams, of which none is certain.
    settings
        Settings to begin with.
    **changes
        Fields of :class:`GenerationSettings`, which says what they mean.

    Returns
    -------
    Generated
        ``num_return_sequences`` for each prompt, best first.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        Settings or prompts cannot be.
    GenerationError
        The step raised (its exception is the cause) or gave something else than expected, logits are NaN or infinite, or
        all of a row are masked. ``error.partial`` has the sequences so far.
    """
    task = _task(step, prompts, state, tokenizer, skip_special_tokens, threads, settings, changes)
    if task.settings.num_beams > 1:
        if on_text is not None:
            raise ArgumentError("on_text with beam search: no text is certain before the end; expected num_beams=1")
        with task:
            return search(task)
    rows = _Rows(task)
    with task:
        for chunk in rows.run():
            if on_text is not None and chunk.text:
                on_text(chunk.sequence, chunk.text)
    return rows.generated()


def stream(
    step: Step,
    prompts: Any,
    *,
    state: Any = None,
    tokenizer: Tokenizer | None = None,
    skip_special_tokens: bool = True,
    threads: int = 1,
    settings: GenerationSettings | None = None,
    **changes: Any,
) -> Iterator[Chunk]:
    """Continue prompts with a language model, and yield each token and its text as they come.

    Parameters
    ----------
    step, prompts, state, tokenizer, skip_special_tokens, threads, settings, **changes
        As for :func:`generate`; no beam search.

    Yields
    ------
    Chunk
        One for each sequence that goes on and each step.

    Raises
    ------
    ArgumentError, ArgumentTypeError, GenerationError
        As :func:`generate`.
    """
    task = _task(step, prompts, state, tokenizer, skip_special_tokens, threads, settings, changes)
    if task.settings.num_beams > 1:
        raise ArgumentError("stream() with beam search: no text is certain before the end; expected num_beams=1")

    def run() -> Iterator[Chunk]:
        with task:
            yield from _Rows(task).run()

    return run()


def _task(
    step: Step,
    prompts: Any,
    state: Any,
    tokenizer: Tokenizer | None,
    skip_special_tokens: bool,
    threads: int,
    settings: GenerationSettings | None,
    changes: dict[str, Any],
) -> Task:
    unknown = [name for name in changes if name not in GenerationSettings.__dataclass_fields__]
    if unknown:
        raise ArgumentError(f"{unknown[0]}=: there is no such setting; GenerationSettings lists them")
    if settings is not None and not isinstance(settings, GenerationSettings):
        raise ArgumentTypeError(f"settings={settings!r}: expected GenerationSettings, or its fields as arguments")
    if tokenizer is not None and not hasattr(tokenizer, "decode_stream"):
        raise ArgumentTypeError(f"tokenizer={tokenizer!r}: expected a Tokenizer of jittok, as jittok.load gives it")
    checked = GenerationSettings(**changes) if settings is None else settings.with_(**changes)
    if checked.max_new_tokens is None and checked.max_length is None:
        raise ArgumentError("say how long the sequences may become: max_new_tokens= or max_length=")
    stops = StopStrings(checked.stop_strings)
    if stops.strings and tokenizer is None:
        raise ArgumentError("stop_strings are found in text: give the tokenizer= that makes it")
    threads = whole_number("threads", threads, 1)
    model = Model(step, state)
    seed = seed_array(checked.seed)
    read = read_prompts(prompts, checked.pad_token_id, tokenizer)
    limits = []
    for number, row in enumerate(read.rows):
        limit = checked.max_new_tokens or (checked.max_length or 0) - len(row)
        if limit < 1:
            raise ArgumentError(f"prompt {number} has {len(row)} tokens, and max_length={checked.max_length}: none is left")
        limits.append(limit)
    return Task(
        checked, model, read, np.array(limits, np.int64), stops, tokenizer, skip_special_tokens, threads, seed
    )


class _Rows:
    """Sequences that grow independently: greedy search and sampling.

    Parameters
    ----------
    task
        What is to do.
    """

    def __init__(self, task: Task) -> None:
        settings = task.settings
        self._task = task
        self._copies = settings.num_return_sequences
        rows = task.prompts.rows
        self._prompt = np.repeat(np.arange(len(rows)), self._copies)
        count = len(self._prompt)
        self._starts = np.array([len(rows[number]) for number in self._prompt], np.int64)
        self._limits = task.limits[self._prompt]
        first_limits = np.minimum(self._limits, FIRST_ROOM)
        room = int((self._starts + first_limits).max(initial=0))
        self._ids = np.zeros((count, room), np.int32)
        for row, number in enumerate(self._prompt):
            self._ids[row, : self._starts[row]] = rows[number]
        self._scores = np.zeros((count, int(first_limits.max(initial=0))), np.float32)
        self._made = np.zeros(count, np.int64)
        self._reasons = np.zeros(count, np.uint8)
        self._streams = streams_of(rows, self._copies)
        self._texts: list[TextStream] = []
        self._parts: list[list[str]] = [[] for _ in range(count)]
        if task.tokenizer is not None:
            of_prompt = [task.new_text(row) for row in rows]
            self._texts = [of_prompt[number].fork() for number in self._prompt]

    def run(self) -> Iterator[Chunk]:
        """Yield what each step gives."""
        try:
            yield from self._run()
        except GenerationError as error:
            error.partial = self.generated()
            raise

    def _run(self) -> Iterator[Chunk]:
        from jittok.kernels.logits import Rows, choose_tokens, new_work

        task, settings = self._task, self._task.settings
        live = np.arange(len(self._prompt))
        ids: NDArray[np.int32] = task.prompts.padded
        rules = settings.rules()
        call, beam_index, workers = 0, None, None
        while len(live):
            bits = task.model(ids, beam_index)
            if workers is None:
                settings.check_vocabulary(task.model.vocab_size)
                vocab_size = task.model.vocab_size
                workers = task.workers(partial(new_work, vocab_size))
                if self._copies > 1:
                    bits = np.repeat(bits, self._copies, axis=0)
                    bits.flags.writeable = False
                rows_before = self._prompt
            else:
                rows_before = np.arange(len(live))
            made, lengths = self._made[live], self._starts[live] + self._made[live]
            if lengths.max() >= self._ids.shape[1] or made.max() >= self._scores.shape[1]:
                self._ids = np.pad(self._ids, ((0, 0), (0, self._ids.shape[1])))
                self._scores = np.pad(self._scores, ((0, 0), (0, self._scores.shape[1])))
            behind = Rows(
                self._ids if len(live) == len(self._ids) else self._ids[live],
                lengths,
                task.flags(made, lengths, self._limits[live]),
                self._streams[live],
                np.zeros((len(live), 0), np.int32),
            )
            tokens, scores = np.zeros(len(live), np.int32), np.zeros(len(live), np.float32)

            def choose(
                first: int, last: int, work: Any, bits: Any = bits, behind: Any = behind, made: Any = made,
                tokens: Any = tokens, scores: Any = scores,
            ) -> int:  # fmt: skip
                return int(
                    choose_tokens(bits, rules, behind, task.seed, made, first, last, work, tokens, scores)
                )

            status = workers.run(choose, len(live))
            check_status(status, call)
            self._ids[live, lengths] = tokens
            self._scores[live, made] = scores
            self._made[live] += 1
            reasons = np.where(made + 1 >= self._limits[live], LENGTH, 0).astype(np.uint8)
            reasons[np.isin(tokens, np.array(settings.ends, np.int32))] = END
            chunks = []
            for place, row in enumerate(live.tolist()):
                text = self._text(row, int(tokens[place]), reasons, place)
                reason = REASONS[reasons[place]] if reasons[place] else None
                chunks.append(Chunk(row, int(tokens[place]), float(scores[place]), text, reason))
            self._reasons[live] = reasons
            yield from chunks
            goes_on = np.flatnonzero(reasons == 0)
            beam_index = np.asarray(rows_before[goes_on], np.int64)
            live, ids = live[goes_on], np.ascontiguousarray(tokens[goes_on, None])
            call += 1

    def _text(self, row: int, token: int, reasons: NDArray[np.uint8], place: int) -> str:
        """The text that a token makes certain; may find that a stop string ends the sequence."""
        if not self._texts:
            return ""
        text = self._texts[row].push(token)
        if reasons[place]:
            text += self._texts[row].finish()
        if self._texts[row].is_stopped and reasons[place] != END:
            reasons[place] = STOP
        self._parts[row].append(text)
        return text

    def generated(self) -> Generated:
        """All sequences as they are now."""
        found = []
        for row, prompt in enumerate(self._prompt.tolist()):
            start, made = int(self._starts[row]), int(self._made[row])
            scores = self._scores[row, :made].copy()
            text = None
            if self._texts:
                rest = "" if self._reasons[row] else self._texts[row].fork().finish()
                text = "".join(self._parts[row]) + rest
            found.append(
                GeneratedSequence(
                    prompt,
                    self._task.prompts.rows[prompt],
                    self._ids[row, start : start + made].copy(),
                    scores,
                    float(scores.sum(dtype=np.float64)),
                    REASONS[self._reasons[row]],
                    text,
                )
            )
        return Generated(found)
