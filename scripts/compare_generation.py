"""Time one step around a language model, jittok beside transformers: the same logits, alternating in one process.

    python scripts/compare_generation.py                          # 5 prompts x 5 beams x 50,257 tokens
    python scripts/compare_generation.py --grid --plot docs/img/generation.png

What is timed is everything between the logits of one step and the tokens, beams and finished sequences that it leads to:
logarithms of probabilities, processors, the choice among all beams, and the bookkeeping of beam search (of transformers:
its processors and the functions that its beam search consists of). The time of a model is in neither.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import GenerationMixin
from transformers.generation import logits_process, stopping_criteria

from jittok.generation.beam_search import _Search
from jittok.generation.routines import _task
from jittok.kernels.logits import new_pool, new_work

PARTS = {
    "sampling": {
        "do_sample": True, "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "seed": 1,
    },
    "beam search": {},
    "beam search with penalties": {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3},
}  # fmt: skip
#: Becquin 2020: whole pipelines, native code to Python, with the network.
ARTICLE = (2.0, 4.0)
LENGTH, ROOM, END = 48, 128, 50256


class Theirs:
    """One step of transformers' beam search, on the arrays that its loop keeps."""

    def __init__(self, logits, ids, prompts, beams, settings):
        self.mixin = object.__new__(GenerationMixin)
        self.logits, self.prompts, self.beams = logits, prompts, beams
        self.do_sample = settings.get("do_sample", False)
        self.sequences = torch.zeros((prompts, beams, ROOM), dtype=torch.int64)
        self.sequences[:, :, :LENGTH] = torch.tensor(ids).reshape(prompts, beams, LENGTH)
        self.scores = torch.arange(beams).mul(-0.1).repeat(prompts, 1)
        self.indices = torch.full((prompts, beams, ROOM - LENGTH + 16), -1, dtype=torch.int32)
        self.finished = torch.full((prompts, beams), -1e9)
        self.is_finished = torch.zeros((prompts, beams), dtype=torch.bool)
        self.open = torch.ones((prompts, 1), dtype=torch.bool)
        self.top = torch.arange(2 * beams) < beams
        processors = logits_process.LogitsProcessorList()
        if "repetition_penalty" in settings:
            processors.append(logits_process.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"]))
            processors.append(logits_process.NoRepeatNGramLogitsProcessor(settings["no_repeat_ngram_size"]))
        if self.do_sample:
            processors.append(logits_process.TopKLogitsWarper(settings["top_k"], min_tokens_to_keep=2))
            processors.append(logits_process.TopPLogitsWarper(settings["top_p"], min_tokens_to_keep=2))
        self.processors = processors
        self.stopping = stopping_criteria.StoppingCriteriaList([
            stopping_criteria.MaxLengthCriteria(ROOM),
            stopping_criteria.EosTokenCriteria(torch.tensor([min(END, logits.shape[1] - 1)])),
        ])  # fmt: skip

    def step(self):
        mixin, start = self.mixin, LENGTH - 16
        flat = self.sequences[:, :, :LENGTH].reshape(self.prompts * self.beams, LENGTH)
        found = self.logits.to(copy=True, dtype=torch.float32)
        found = self.processors(flat, torch.nn.functional.log_softmax(found, dim=-1))
        found = found.reshape(self.prompts, self.beams, -1) + self.scores[:, :, None]
        scores, sequences, indices = mixin._get_top_k_continuations(
            accumulated_log_probs=found.reshape(self.prompts, -1), running_sequences=self.sequences,
            running_beam_indices=self.indices, cur_len=LENGTH, decoder_prompt_len=start, do_sample=self.do_sample,
            beams_to_keep=2 * self.beams, num_beams=self.beams, vocab_size=found.shape[-1], batch_size=self.prompts,
        )  # fmt: skip
        hits = self.stopping(sequences[:, :, : LENGTH + 1].reshape(-1, LENGTH + 1), None).reshape(self.prompts, -1)
        running = mixin._get_running_beams_for_next_iteration(
            topk_log_probs=scores, topk_running_sequences=sequences, topk_running_beam_indices=indices,
            next_token_hits_stopping_criteria=hits, num_beams=self.beams,
        )  # fmt: skip
        finished = mixin._update_finished_beams(
            sequences=self.sequences, topk_running_sequences=sequences, beam_scores=self.finished, topk_log_probs=scores,
            beam_indices=self.indices, topk_running_beam_indices=indices,
            is_early_stop_heuristic_unsatisfied=self.open, is_sent_finished=self.is_finished,
            next_token_hits_stopping_criteria=hits, top_num_beam_mask=self.top, num_beams=self.beams, cur_len=LENGTH,
            decoder_prompt_len=start, length_penalty=1.0, early_stopping=False,
        )  # fmt: skip
        mixin._check_early_stop_heuristic(
            is_early_stop_heuristic_unsatisfied=self.open, running_beam_scores=running[1], beam_scores=finished[1],
            is_sent_finished=finished[3], cur_len=LENGTH + 1, max_length=ROOM, decoder_prompt_len=start,
            early_stopping=False, length_penalty=1.0,
        )  # fmt: skip
        return running[0][:, :, LENGTH], running[1]


class Ours:
    """The same step of jittok."""

    def __init__(self, logits, ids, prompts, beams, settings, threads):
        vocab = logits.shape[1]
        start = LENGTH - 16
        first = ids.reshape(prompts, beams, LENGTH)[:, 0, :start].copy()
        settings = settings | {"num_beams": beams, "max_length": ROOM, "eos_token_id": min(END, vocab - 1)}
        self.task = _task(lambda ids, state, index: (logits, None), first, None, None, True, threads, None, settings)
        self.search = _Search(self.task)
        self.group = self.search._groups[0]
        self.group.old.ids[:, :, :LENGTH] = ids.reshape(prompts, beams, LENGTH)
        self.group.old.scores[:] = np.arange(beams, dtype=np.float32) * np.float32(-0.1)
        self.search._made = 16
        self.rules = self.task.settings.rules(log_softmax=True)
        pool = vocab if self.task.settings.do_sample else 0
        found = self.group.candidates.scores.shape[1]
        self.workers = self.task.workers(
            lambda: (new_work(vocab, found), new_pool(beams, pool), np.zeros(beams, np.int64))
        )
        self.sources = np.arange(prompts * beams).reshape(prompts, beams)
        self.ids = np.zeros((prompts * beams, 1), np.int32)
        self.taken = np.zeros((prompts, 0), np.int32)

    def step(self):
        bits = self.task.model(self.ids, None)
        self.search._advance(self.group, bits, self.sources, self.rules, self.taken, self.workers)
        self.group.finished.done[:] = 0
        self.group.finished.counts[:] = 0
        return self.group.new.ids[:, :, LENGTH], self.group.new.scores


def compare(part, prompts, beams, vocab, rounds, threads):
    """Seconds of CPU and wall of each, best and median ratio."""
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 3, (prompts * beams, vocab)).astype(np.float32)
    ids = generator.integers(0, vocab, (prompts * beams, LENGTH))
    theirs = Theirs(torch.tensor(logits), ids, prompts, beams, PARTS[part])
    ours = Ours(logits, ids, prompts, beams, PARTS[part], threads)
    torch.set_num_threads(threads)
    first, second = theirs.step(), ours.step()
    if part != "sampling":  # draws differ, all else must not
        assert np.array_equal(first[0].numpy(), second[0]), part
        assert np.allclose(first[1].numpy(), second[1], atol=1e-4), part
    times = {"theirs": [], "ours": []}
    for _ in range(rounds):
        for name, side in (("theirs", theirs), ("ours", ours)):
            repeats = 1 if name == "theirs" else 3
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(repeats):
                side.step()
            times[name].append(((time.process_time() - cpu) / repeats, (time.perf_counter() - wall) / repeats))
    result = {}
    for kind, place in (("cpu", 0), ("wall", 1)):
        pairs = [(t[place], o[place]) for t, o in zip(times["theirs"], times["ours"], strict=True)]
        result[kind] = (
            min(t for t, _ in pairs), min(o for _, o in pairs), statistics.median(t / o for t, o in pairs),
        )  # fmt: skip
    return result


def plot(path, rows):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, part in zip(axes, ("sampling", "beam search"), strict=True):
        for vocab in sorted({row[2] for row in rows}):
            points = sorted((row[1], row[3]) for row in rows if row[0] == part and row[2] == vocab)
            axis.plot(*zip(*points, strict=True), marker="o", label=f"{vocab:,} tokens")
        axis.axhspan(*ARTICLE, color="0.85", zorder=0, label="Becquin 2020: whole pipelines")
        axis.set(xscale="log", yscale="log", title=part, xlabel="rows (prompts x 5 beams)")
        axis.set_xticks([5, 25, 100], ["5", "25", "100"], minor=False)
        axis.minorticks_off()
        axis.set_yticks([1, 2, 4, 10, 20, 40], ["1", "2", "4", "10", "20", "40"], minor=False)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("times faster than transformers\n(CPU time of one step, one thread)")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    Path(path).parent.mkdir(exist_ok=True, parents=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--vocab", type=int, default=50_257)
    parser.add_argument("--prompts", type=int, default=5)
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--grid", action="store_true", help="several batch sizes and vocabularies")
    parser.add_argument("--plot", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {options.threads} thread(s)")
    print(f"{'':28}{'rows':>5}{'vocab':>9}{'theirs ms':>11}{'jittok ms':>11}{'CPU ratio':>11}{'wall ratio':>11}")
    rows = []
    sizes = [(options.prompts, options.vocab)]
    if options.grid:
        sizes = [(prompts, vocab) for vocab in (8_000, 50_257, 151_936) for prompts in (1, 5, 20)]
    for part in PARTS:
        if options.grid and part.endswith("penalties"):
            continue
        for prompts, vocab in sizes:
            found = compare(part, prompts, options.beams, vocab, options.rounds, options.threads)
            theirs, ours, ratio = found["cpu"]
            count = prompts * options.beams
            print(
                f"{part:28}{count:5}{vocab:9,}{theirs * 1e3:11.2f}{ours * 1e3:11.2f}{ratio:11.1f}{found['wall'][2]:11.1f}",
                flush=True,
            )
            rows.append((part, count, vocab, ratio))
    if options.plot:
        plot(options.plot, rows)


if __name__ == "__main__":
    main()
