"""Beam search, with samples or in diverse groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import GenerationError
from jittok.generation.results import REASONS, Generated, GeneratedSequence
from jittok.generation.steps import check_status
from jittok.generation.stop_strings import TextStream
from jittok.generation.task import END, FIRST_ROOM, LENGTH, STOP, Task, streams_of


def search(task: Task) -> Generated:
    """Follow the best sequences of each prompt.

    Parameters
    ----------
    task
        What is to do.
    """
    beams = _Search(task)
    try:
        beams.run()
    except GenerationError as error:
        error.partial = beams.generated()
        raise
    return beams.generated()


class _Group:
    """Beams that compete with each other: all of a prompt's, or one group of diverse ones."""

    def __init__(self, prompts: int, width: int, candidates: int, room: int) -> None:
        from jittok.kernels.beams import Beams, Candidates, Finished

        def beams() -> Any:
            return Beams(
                np.zeros((prompts, width, room), np.int32),
                np.zeros((prompts, width, room), np.float32),
                np.full((prompts, width), -np.inf, np.float32),
                np.zeros((prompts, width), np.int64),
            )

        self.old, self.new = beams(), beams()
        self.old.scores[:, 0] = 0
        self.finished: Any = Finished(
            np.zeros(prompts, np.int64),
            np.full((prompts, width), -np.inf, np.float32),
            np.zeros((prompts, width), np.int64),
            np.zeros((prompts, width, room), np.int32),
            np.zeros((prompts, width, room), np.float32),
            np.zeros((prompts, width), np.uint8),
            np.zeros(prompts, np.uint8),
        )
        self.candidates: Any = Candidates(
            np.zeros((prompts, candidates), np.float32),
            np.zeros((prompts, candidates), np.int32),
            np.zeros((prompts, candidates), np.int32),
            np.zeros(prompts, np.int64),
            np.zeros((prompts, candidates), np.uint8),
        )
        self.texts: list[list[TextStream]] = []

    def grow(self, room: int) -> None:
        """Make room for so many tokens."""

        def wider(arrays: Any) -> Any:
            more = ((0, 0), (0, 0), (0, room - arrays.ids.shape[2]))
            return arrays._replace(ids=np.pad(arrays.ids, more), token_scores=np.pad(arrays.token_scores, more))

        self.old, self.new, self.finished = wider(self.old), wider(self.new), wider(self.finished)

    def take(self, prompts: NDArray[np.int64]) -> None:
        """Keep only some prompts."""

        def part(arrays: Any) -> Any:
            return type(arrays)(*(np.ascontiguousarray(array[prompts]) for array in arrays))

        self.old, self.new, self.finished = part(self.old), part(self.new), part(self.finished)
        self.candidates = part(self.candidates)
        self.texts = [self.texts[prompt] for prompt in prompts] if self.texts else []


class _Search:
    """The state of a search.

    Parameters
    ----------
    task
        What is to do.
    """

    def __init__(self, task: Task) -> None:
        settings = task.settings
        rows = task.prompts.rows
        self._task = task
        self._groups: list[_Group] = []
        width = settings.num_beams // settings.num_beam_groups
        count = max(2, 1 + len(settings.ends)) * width
        self._starts = np.array([len(row) for row in rows], np.int64)
        self._live = np.arange(len(rows))  # the prompts that are not done
        # Room for some tokens: the limit may be there for form's sake only.
        room = int((self._starts + np.minimum(task.limits, FIRST_ROOM)).max(initial=1))
        # By prompt, what is finished: filled when a prompt is done.
        self._results: list[list[GeneratedSequence]] = [[] for _ in rows]
        for _ in range(settings.num_beam_groups):
            group = _Group(len(rows), width, count, room)
            for number, row in enumerate(rows):
                group.old.ids[number, :, : len(row)] = row
            if task.stops.strings:
                group.texts = [[task.new_text(row)] * width for row in rows]
            self._groups.append(group)
        self._made = 0
        self._streams = streams_of(rows, 1)

    def run(self) -> None:
        """Search until all prompts are done."""
        from jittok.kernels.logits import new_pool, new_work

        task, settings = self._task, self._task.settings
        rules = settings.rules(log_softmax=True)
        width = settings.num_beams // settings.num_beam_groups
        ids: NDArray[np.int32] = task.prompts.padded
        beam_index, workers = None, None
        sources = np.repeat(np.arange(len(self._live))[:, None], width, axis=1)
        group_sources = [sources] * len(self._groups)
        while len(self._live):
            bits = task.model(ids, beam_index)
            if workers is None:
                vocab_size = task.model.vocab_size
                settings.check_vocabulary(vocab_size)
                pool_size = vocab_size if settings.do_sample else 0
                candidates = min(self._groups[0].candidates.scores.shape[1], width * vocab_size)

                def new_scratch(
                    vocab_size: int = vocab_size, pool_size: int = pool_size, candidates: int = candidates
                ) -> Any:
                    return new_work(vocab_size, candidates), new_pool(width, pool_size), np.zeros(width, np.int64)

                workers = task.workers(new_scratch)
            longest = int(self._starts[self._live].max()) + self._made
            if longest >= self._groups[0].old.ids.shape[2]:
                for group in self._groups:
                    group.grow(2 * longest)
            taken = np.zeros((len(self._live), 0), np.int32)
            for number, group in enumerate(self._groups):
                was_done = group.finished.done != 0
                self._advance(group, bits, group_sources[number], rules, taken, workers)
                if len(self._groups) > 1:
                    # A beam that there is not takes nothing; a group that was done before the pad token, as in transformers.
                    length = self._starts[self._live] + self._made
                    last = group.new.ids[np.arange(len(self._live))[:, None], np.arange(width), length[:, None]]
                    last = np.where(np.isfinite(group.new.scores), last, -1)
                    last = np.where(was_done[:, None], settings.pad_token_id, last)
                    taken = np.ascontiguousarray(np.concatenate([taken, last], axis=1), np.int32)
            self._made += 1
            for group in self._groups:
                group.old, group.new = group.new, group.old
            ids, beam_index, group_sources = self._continue(group_sources)

    def _advance(
        self, group: _Group, bits: Any, sources: NDArray[np.int64], rules: Any, taken: NDArray[np.int32], workers: Any
    ) -> None:
        """One step of one group."""
        from jittok.kernels.beams import advance_beams
        from jittok.kernels.logits import Rows, best_continuations

        task, settings = self._task, self._task.settings
        count, width = group.old.scores.shape
        lengths = self._starts[self._live] + self._made
        limits = task.limits[self._live]
        made = np.full(count * width, self._made)
        every_length = np.repeat(lengths, width)
        behind = Rows(
            group.old.ids.reshape(count * width, -1),
            every_length,
            task.flags(made, every_length, np.repeat(limits, width)),
            np.repeat(self._streams[self._live], width),
            np.repeat(taken, width, axis=0),
        )
        found = group.candidates
        done = group.finished.done != 0
        scores = group.old.scores
        found.counts[:] = 0

        def find(first: int, last: int, scratch: Any) -> int:
            work, pool, ends = scratch
            return int(
                best_continuations(
                    bits, sources, rules, behind, scores, task.seed, self._made, first, last, work, pool, ends,
                    found.scores, found.beams, found.tokens, found.counts, group.finished.done,
                )
            )  # fmt: skip

        check_status(workers.run(find, count), self._made)
        found.marks[:] = np.where(np.isin(found.tokens, np.array(settings.ends, np.int32)), END, 0)
        forks: dict[tuple[int, int], TextStream] = {}
        if group.texts:
            forks = self._find_stops(group, done)
        advance_beams(
            found,
            group.old,
            group.new,
            group.finished,
            lengths,
            limits,
            self._divisors(limits),
            self._made,
            int(settings.early_stopping is True),
            int(len(self._groups) > 1),
        )
        if group.texts:
            positions = np.arange(count)[:, None]
            tokens = group.new.ids[positions, np.arange(width), lengths[:, None]]
            for prompt in range(count):
                old = group.texts[prompt]
                group.texts[prompt] = [
                    forks.get((prompt, int(group.new.parents[prompt, beam]) << 32 | int(tokens[prompt, beam])), old[0])
                    for beam in range(width)
                ]

    def _divisors(self, limits: NDArray[np.int64]) -> NDArray[np.float64]:
        """What scores are divided by: now, and for the best sequence that may come for each prompt."""
        settings = self._task.settings
        lengths = np.full(1 + len(limits), self._made + 1, np.float64)
        if settings.early_stopping == "never" and settings.length_penalty > 0:
            lengths[1:] = limits
        divisors: NDArray[np.float64] = _power(lengths, settings.length_penalty)
        return divisors

    def _find_stops(self, group: _Group, done: NDArray[np.bool_]) -> dict[tuple[int, int], TextStream]:
        """Mark candidates that complete a stop string; returns the text of each, by prompt, beam and token."""
        found = group.candidates
        forks = {}
        for prompt in np.flatnonzero(~done).tolist():
            for rank in range(int(found.counts[prompt])):
                beam, token = int(found.beams[prompt, rank]), int(found.tokens[prompt, rank])
                text = group.texts[prompt][beam].fork()
                text.push(token)
                forks[prompt, beam << 32 | token] = text
                if text.is_stopped and not found.marks[prompt, rank]:
                    found.marks[prompt, rank] = STOP
        return forks

    def _continue(
        self, group_sources: list[NDArray[np.int64]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], list[NDArray[np.int64]]]:
        """Drop prompts that are done; returns what the next step gets, and which of its rows each beam will have."""
        done = np.all([group.finished.done != 0 for group in self._groups], axis=0)
        for place in np.flatnonzero(done).tolist():
            self._results[self._live[place]] = self._sequences(place)
        rows_before = [
            np.take_along_axis(sources, group.old.parents, axis=1)
            for sources, group in zip(group_sources, self._groups, strict=True)
        ]
        if done.any():
            kept = np.flatnonzero(~done)
            self._live = self._live[kept]
            rows_before = [rows[kept] for rows in rows_before]
            for group in self._groups:
                group.take(kept)
        count, width = len(self._live), self._groups[0].old.scores.shape[1]
        positions = np.arange(count)[:, None]
        last = (self._starts[self._live] + self._made - 1)[:, None]
        ids, index, sources = [], [], []
        for group, rows in zip(self._groups, rows_before, strict=True):
            alive = np.isfinite(group.old.scores) & (group.finished.done == 0)[:, None]
            ids.append(np.where(alive, group.old.ids[positions, np.arange(width), last], self._task.settings.pad_token_id))
            index.append(rows)
        # Rows of the next call: prompt by prompt, group by group. Dead beams keep a row, so that the shape is regular.
        all_ids = np.concatenate(ids, axis=1) if ids else np.zeros((0, 0), np.int32)
        all_index = np.concatenate(index, axis=1)
        total = width * len(self._groups)
        for number in range(len(self._groups)):
            sources.append(positions * total + number * width + np.arange(width))
        return (
            np.ascontiguousarray(all_ids.reshape(-1, 1), np.int32),
            np.ascontiguousarray(all_index.reshape(-1), np.int64),
            sources,
        )

    def _sequences(self, place: int) -> list[GeneratedSequence]:
        """The best finished sequences of the prompt at some place among those that are not done."""
        found = []
        number = int(self._live[place])
        for group in self._groups:
            finished = group.finished
            for i in range(int(finished.counts[place])):
                found.append((
                    float(finished.scores[place, i]), int(finished.reasons[place, i]),
                    finished.ids[place, i, : int(finished.lengths[place, i])],
                    finished.token_scores[place, i, : int(finished.lengths[place, i])],
                ))  # fmt: skip
        found.sort(key=lambda item: -item[0])
        count = self._task.settings.num_return_sequences
        return [self._sequence(number, *item) for item in found[:count]]

    def _sequence(
        self, number: int, score: float, reason: int, ids: NDArray[np.int32], token_scores: NDArray[np.float32]
    ) -> GeneratedSequence:
        task = self._task
        start = int(self._starts[number])
        made = ids[start:].copy()
        text = None
        if task.tokenizer is not None:
            stream = task.new_text(task.prompts.rows[number])
            text = "".join([*map(stream.push, made.tolist()), stream.finish()])
            if stream.is_stopped and reason == LENGTH:
                reason = STOP
        return GeneratedSequence(
            number, task.prompts.rows[number], made, token_scores[start:].copy(), score, REASONS[reason], text
        )

    def generated(self) -> Generated:
        """All sequences; of prompts that are not done what is finished, and then the beams."""
        result = []
        places = {int(number): place for place, number in enumerate(self._live)}
        for number, done in enumerate(self._results):
            found = done
            if number in places:
                place = places[number]
                found = self._sequences(place)
                length = int(self._starts[number]) + self._made
                running = [
                    (float(group.old.scores[place, beam]), group, beam)
                    for group in self._groups
                    for beam in range(group.old.scores.shape[1])
                    if np.isfinite(group.old.scores[place, beam])
                ]
                running.sort(key=lambda item: -item[0])
                for score, group, beam in running[: self._task.settings.num_return_sequences - len(found)]:
                    divided = score / float(_power(float(max(self._made, 1)), self._task.settings.length_penalty))
                    ids, scores = group.old.ids[place, beam, :length], group.old.token_scores[place, beam, :length]
                    found.append(self._sequence(number, divided, 0, ids, scores))
            result += found
        return Generated(result)


def _power(lengths: Any, penalty: float) -> Any:
    """Lengths to the power of the penalty, away from zero and infinity, with which nothing could be compared."""
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.power(lengths, penalty), 1e-30, 1e30)
