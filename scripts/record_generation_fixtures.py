"""Record what transformers' ``generate`` gives for two tiny models with random weights, for tests/test_generation.py.

Run it with a transformers that has what is to be recorded (diverse beams up to 4.56, all else with any):

    python scripts/record_generation_fixtures.py            # all but diverse beams
    python scripts/record_generation_fixtures.py --diverse
    python scripts/record_generation_fixtures.py --processors
    python scripts/record_generation_fixtures.py --prompts MODELS    # a folder with bbpe/gpt2 and others

The weights are random, drawn once, rounded to float16, and committed in tests/generation_fixtures; they are used again
where they are there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_models import FIXTURES

VOCAB = 61
PAD, END = 0, 2


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=64, n_embd=24, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None,
        pad_token_id=PAD,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config), 4


def bart():
    config = transformers.BartConfig(
        vocab_size=VOCAB, max_position_embeddings=48, d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        activation_function="relu", pad_token_id=PAD, bos_token_id=1, eos_token_id=END, decoder_start_token_id=END,
        forced_eos_token_id=None, forced_bos_token_id=None,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config), 2


def prepared(name, make):
    """The model with the weights of the fixture, which is made if it is not there."""
    torch.manual_seed(9)
    torch.set_num_threads(1)
    model, heads = make()
    model.eval()
    file = FIXTURES / f"{name}.npz"
    state = model.state_dict()
    if not file.exists():
        arrays, seen = {}, set()
        for key, tensor in state.items():
            if tensor.data_ptr() in seen or not tensor.is_floating_point() or key == "final_logits_bias":
                continue
            seen.add(tensor.data_ptr())
            spread = 20.0 if tensor.ndim == 2 else 1.0  # else all tokens would be about equally probable
            noise = torch.randn(tensor.shape) * (0.1 if tensor.ndim == 1 else 0.0)
            arrays[key] = (tensor * spread + noise).numpy().astype(np.float16)
        file.parent.mkdir(exist_ok=True)
        np.savez_compressed(file, heads=np.int64(heads), **arrays)
    with np.load(file) as arrays:
        stored = {key: torch.tensor(arrays[key].astype(np.float32)) for key in arrays.files if key != "heads"}
    for key in ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"):
        if key in state and key not in stored:
            stored[key] = stored["transformer.wte.weight" if name == "gpt2" else "model.shared.weight"]
    missing, unexpected = model.load_state_dict(stored, strict=False)
    assert not unexpected and set(missing) <= {"final_logits_bias"}, (missing, unexpected)
    return model


def cases(diverse):
    """Yield settings."""
    if diverse:
        every = itertools.product(
            ((4, 2), (6, 3), (3, 3)), (0.3, 1.5), (False, True, "never"), (0.0, 1.0, 2.0), (True, False)
        )
        for (beams, groups), penalty, early, power, end in itertools.islice(every, 0, None, 5):
            yield {
                "num_beams": beams, "num_beam_groups": groups, "diversity_penalty": penalty, "early_stopping": early,
                "length_penalty": power, "num_return_sequences": min(beams, 4) if early else 2, "max_new_tokens": 10,
            } | ({"eos_token_id": END} if end else {})  # fmt: skip
        return
    edits = [
        {}, {"repetition_penalty": 1.4}, {"no_repeat_ngram_size": 2}, {"bad_words_ids": [[5], [7, 9], [11, 12, 13], [2]]},
        {"min_new_tokens": 8}, {"forced_eos_token_id": END},
        {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "min_new_tokens": 5, "bad_words_ids": [[8], [3, 4]]},
    ]  # fmt: skip
    ends = [{}, {"eos_token_id": END}, {"eos_token_id": [END, 17, 33]}]
    for edit, end in itertools.product(edits, ends):
        if end or "min_new_tokens" not in edit:
            yield {"max_new_tokens": 16} | edit | end
    for beams, early, power, end in itertools.product((2, 3, 5), (False, True, "never"), (-1.0, 0.0, 1.0, 2.0), ends[1:]):
        if isinstance(end["eos_token_id"], int) == (beams != 3):
            yield {
                "num_beams": beams, "early_stopping": early, "length_penalty": power, "max_new_tokens": 14,
                "num_return_sequences": min(beams, 3),
            } | end  # fmt: skip
    yield {"num_beams": 3, "max_new_tokens": 12}
    for edit, end in itertools.product(edits[1:], ends[1:]):
        yield {"num_beams": 4, "num_return_sequences": 2, "max_new_tokens": 15} | edit | end


def outcome(model, settings, **inputs):
    """New tokens and scores of each sequence."""
    config = transformers.GenerationConfig(
        do_sample=False, pad_token_id=PAD, bos_token_id=None, output_scores=True, return_dict_in_generate=True,
        **{"eos_token_id": None} | settings,
    )  # fmt: skip
    if model.config.is_encoder_decoder:
        config.decoder_start_token_id = END
    model.generation_config = config
    with torch.no_grad():
        result = model.generate(**inputs)
    beams = getattr(result, "beam_indices", None)
    start = 1 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
    ids = result.sequences[:, start:].tolist()
    scores = None
    if "num_beam_groups" not in settings:  # for these transformers' own function fails
        scores = model.compute_transition_scores(
            result.sequences, result.scores, beams, normalize_logits=beams is None
        ).tolist()
    ends = settings.get("eos_token_id", [])
    ends = [ends] if isinstance(ends, int) else ends
    found = []
    for row, tokens in enumerate(ids):
        n = next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))
        entry = {"ids": tokens[:n]}
        if scores is not None:
            entry["token_scores"] = [round(score, 4) for score in scores[row][:n]]
        if beams is not None:
            entry["score"] = round(float(result.sequences_scores[row]), 5)
        found.append(entry)
    return found


def processed(logits, ids, least, logarithms, settings):
    """What transformers' processors make of logits, in the order of its ``generate``."""
    from transformers.generation import logits_process as parts

    end = torch.tensor([END])
    processors = parts.LogitsProcessorList()
    made = {
        "repetition_penalty": parts.RepetitionPenaltyLogitsProcessor,
        "no_repeat_ngram_size": parts.NoRepeatNGramLogitsProcessor,
        "bad_words_ids": lambda words: parts.NoBadWordsLogitsProcessor(words, end),
        "end_is_banned": lambda _: parts.MinLengthLogitsProcessor(1000, end),
        "forced_bos_token_id": lambda token: parts.ForcedBOSTokenLogitsProcessor(token),
        "forced_eos_token_id": lambda token: parts.ForcedEOSTokenLogitsProcessor(len(ids[0]) + 1, token),
        "temperature": parts.TemperatureLogitsWarper,
        "top_k": lambda k: parts.TopKLogitsWarper(k, min_tokens_to_keep=least),
        "top_p": lambda p: parts.TopPLogitsWarper(p, min_tokens_to_keep=least),
        "min_p": lambda p: parts.MinPLogitsWarper(p, min_tokens_to_keep=least),
        "typical_p": lambda p: parts.TypicalLogitsWarper(p, min_tokens_to_keep=least),
    }
    for name, make in made.items():
        if name in settings:
            processors.append(make(settings[name]))
    rows = torch.tensor(logits)
    return processors(torch.tensor(ids), torch.log_softmax(rows, -1) if logarithms else rows)


def record_processors():
    """Every processor alone, with two values, and random combinations."""
    generator = np.random.default_rng(3)
    values = {
        "repetition_penalty": [1.3, 0.6], "no_repeat_ngram_size": [1, 2, 3],
        "bad_words_ids": [[[3], [1, 4], [4, 1, 2], [2]]],
        "end_is_banned": [True], "forced_bos_token_id": [4], "forced_eos_token_id": [2], "temperature": [0.3, 1.7],
        "top_k": [1, 7, 300], "top_p": [0.1, 0.5, 0.95], "min_p": [0.02, 0.3], "typical_p": [0.2, 0.9],
    }  # fmt: skip
    chosen = [{name: value} for name, listed in values.items() for value in listed]
    for _ in range(60):
        chosen.append({
            name: listed[generator.integers(len(listed))]
            for name, listed in values.items() if generator.random() < (0.1 if name.startswith("forced") else 0.45)
        })  # fmt: skip
    recorded = []
    for number, settings in enumerate(chosen):
        length = 1 if "forced_bos_token_id" in settings else int(generator.integers(2, 20))
        ids = generator.integers(0, 8, (2, length)).tolist()
        logits = np.round(generator.normal(0, [1, 3, 8][number % 3], (2, 43)), 3).astype(np.float32)
        least, logarithms = 1 + number % 2, number % 5 == 4
        found = processed(logits, ids, least, logarithms, settings).numpy()
        kept = [{int(i): float(row[i]) for i in np.flatnonzero(np.isfinite(row))} for row in found]
        if all(kept):
            recorded.append({
                "settings": settings, "ids": ids, "logits": [[round(float(x), 3) for x in row] for row in logits],
                "least": least, "logarithms": logarithms, "kept": [[list(row), list(row.values())] for row in kept],
            })  # fmt: skip
    return recorded


TEXTS = ["Hello world", "The quick brown fox jumps over the lazy dog.", "naïve café 👩‍👩‍👧 don't", "x"]
TARGETS = ["Bonjour le monde", "Le renard brun rapide saute par-dessus le chien paresseux.", "l'été", "y"]
#: By name: the tokenizer's class, its folder, and what it is made with.
TOKENIZERS = {
    "gpt2": ("GPT2TokenizerFast", "bbpe/gpt2", {"pad_token": "<|endoftext|>"}),
    "bart": ("BartTokenizerFast", "bbpe/roberta-base", {}),
    "t5": ("T5TokenizerFast", "unigram/t5-small", {}),
    "marian": ("MarianTokenizer", "unigram/opus-mt-en-fr", {}),
}


def record_prompts(models):
    """Arrays for single texts and pairs."""
    recorded = []
    for name, (kind, folder, options) in TOKENIZERS.items():
        tokenizer = getattr(transformers, kind).from_pretrained(Path(models) / folder, **options)
        for side, padding, pairs in itertools.product(
            ("left", "right"), ({"padding": True}, {"padding": True, "pad_to_multiple_of": 8},
            {"padding": "max_length", "max_length": 48}), ("", "pairs", "target"),
        ):  # fmt: skip
            if pairs == "target" and (name != "marian" or side == "left"):
                continue
            tokenizer.padding_side = side
            texts = {"text_target": TARGETS} if pairs == "target" else {"text": TEXTS}
            if pairs == "pairs":
                texts["text_pair"] = TARGETS
            arrays = tokenizer(**texts, **padding, return_tensors="np")
            settings = {"multiple_of": padding.get("pad_to_multiple_of"), "max_length": padding.get("max_length")}
            recorded.append({
                "tokenizer": name, "folder": folder, "side": side, "texts": pairs, "pad": settings,
                "pad_id": tokenizer.pad_token_id, "arrays": {key: value.tolist() for key, value in arrays.items()},
            })  # fmt: skip
    return recorded


def write(name, recorded):
    file = FIXTURES / name
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in recorded)
    file.write_text(f'{{"transformers":"{transformers.__version__}","cases":[\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(recorded)} cases in {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diverse", action="store_true")
    parser.add_argument("--processors", action="store_true")
    parser.add_argument("--prompts", metavar="MODELS")
    options = parser.parse_args()
    if options.processors:
        write("processors.json", record_processors())
        return
    if options.prompts:
        write("prompts.json", record_prompts(options.prompts))
        return
    generator = np.random.default_rng(5)
    even = generator.integers(3, VOCAB, (3, 5)).tolist()
    uneven = [generator.integers(3, VOCAB, n).tolist() for n in (2, 6, 4)]
    recorded = []
    for name, make in (("gpt2", gpt2), ("bart", bart)):
        model = prepared(name, make)
        for number, settings in enumerate(cases(options.diverse)):
            # Older versions count padding among the tokens before, so rows that look back have no padding.
            looks_back = {"repetition_penalty", "no_repeat_ngram_size", "bad_words_ids"} & set(settings)
            prompts = uneven if number % 2 and (name == "bart" or not looks_back) else even
            width = max(map(len, prompts))
            side = "left" if name == "gpt2" else "right"
            ids = np.full((len(prompts), width), PAD)
            mask = np.zeros_like(ids)
            for row, prompt in enumerate(prompts):
                where = slice(width - len(prompt), None) if side == "left" else slice(len(prompt))
                ids[row, where], mask[row, where] = prompt, 1
            tensors = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
            found = outcome(model, settings, **tensors)
            recorded.append({"model": name, "prompts": prompts, "settings": settings, "expected": found})
    write("diverse.json" if options.diverse else "cases.json", recorded)


if __name__ == "__main__":
    main()
