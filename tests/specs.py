"""Small specs for tests of single parts, made without jittok's readers."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from jittok import spec

DATA = os.environ.get("JITTOK_TEST_DATA")
CASES = os.environ.get("JITTOK_TEST_CASES")

DECODERS = {
    "ByteLevel": lambda d: (spec.DecodeByteLevel(),),
    "Fuse": lambda d: (spec.DecodeFuse(),),
    "ByteFallback": lambda d: (spec.DecodeByteFallback(),),
    "Replace": lambda d: (spec.DecodeReplace(d["pattern"]["String"], d["content"]),),
    "Strip": lambda d: (spec.DecodeStrip(d["content"], d["start"], d["stop"]),),
    "Metaspace": lambda d: (spec.DecodeMetaspace(d["replacement"], d.get("prepend_scheme", "always")),),
    "BPEDecoder": lambda d: (spec.DecodeBPE(d["suffix"]),),
    "WordPiece": lambda d: (spec.DecodeWordPiece(d["prefix"], d["cleanup"]),),
    # An empty Sequence joins tokens without blanks, which no decoder at all does not.
    "Sequence": lambda d: tuple(step for part in d["decoders"] for step in decoders(part)) or (spec.DecodeFuse(),),
}


def decoders(block):
    return () if block is None else DECODERS[block["type"]](block)


def post_processors(block):
    if block is None:
        return ()
    kind = block["type"]
    if kind == "Sequence":
        return tuple(step for part in block["processors"] for step in post_processors(part))
    if kind == "ByteLevel":
        return (spec.TrimOffsets(block["add_prefix_space"]),) if block["trim_offsets"] else ()
    if kind == "RobertaProcessing":
        (sep, sep_id), (cls, cls_id) = block["sep"], block["cls"]
        a, b = spec.TemplatePiece(0, "A"), spec.TemplatePiece(0, "B")
        cls, sep = spec.TemplatePiece(0, None, (cls_id,), (cls,)), spec.TemplatePiece(0, None, (sep_id,), (sep,))
        template = spec.Template((cls, a, sep), (cls, a, sep, sep, b, sep))
        return (template, spec.TrimOffsets(block["add_prefix_space"])) if block["trim_offsets"] else (template,)
    assert kind == "TemplateProcessing"

    def piece(item):
        if "Sequence" in item:
            return spec.TemplatePiece(item["Sequence"]["type_id"], item["Sequence"]["id"])
        special = block["special_tokens"][item["SpecialToken"]["id"]]
        return spec.TemplatePiece(
            item["SpecialToken"]["type_id"], None, tuple(special["ids"]), tuple(special["tokens"])
        )

    return (spec.Template(tuple(map(piece, block["single"])), tuple(map(piece, block["pair"]))),)


def spec_of(block):
    """Return what these tests need of a tokenizer.json: tokens, decoders and post-processors."""
    model = block["model"]
    pre = json.dumps(block["pre_tokenizer"])
    merges = tuple(tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model.get("merges", ()))
    added = []
    for token in block["added_tokens"]:
        # The reference keeps the model's id, else takes the next free one, whatever the file says.
        following = max([len(model["vocab"]), *(t.id + 1 for t in added)])
        added.append(spec.AddedToken(**{**token, "id": model["vocab"].get(token["content"], following)}))
    return spec.TokenizerSpec(
        model=spec.BPEModel(model["vocab"], merges) if "merges" in model else spec.WordPieceModel(model["vocab"]),
        added_tokens=tuple(sorted(added, key=lambda token: token.id)),
        pre_tokenizers=(spec.ByteLevel(),) if '"ByteLevel"' in pre else (),
        decoders=decoders(block["decoder"]),
        post_processors=post_processors(block["post_processor"]),
    )


def model_path(name):
    if DATA is None:
        pytest.skip("set JITTOK_TEST_DATA to a folder that holds models/ to test with real vocabularies")
    path = Path(DATA) / "models" / name
    if not path.exists():
        pytest.skip(f"{name} is not among the models in JITTOK_TEST_DATA")
    return path


def corpus_path(name):
    if DATA is None:
        pytest.skip("set JITTOK_TEST_DATA to a folder that holds corpora/ to test with real texts")
    path = Path(DATA) / "corpora" / name
    if not path.exists():
        pytest.skip(f"{name} is not among the corpora in JITTOK_TEST_DATA")
    return path


def real(name):
    """Return (spec, reference tokenizer) of a real tokenizer.json."""
    from tokenizers import Tokenizer

    path = model_path(name)
    reference = Tokenizer.from_file(str(path))
    reference.no_padding()
    reference.no_truncation()
    return spec_of(json.loads(path.read_text())), reference


def rank_spec(name, special=()):
    ranks = {}
    for line in model_path(name).read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    added = tuple(spec.AddedToken(number, content, special=True) for content, number in special)
    return spec.TokenizerSpec(model=spec.RankModel(ranks), added_tokens=added, reference="tiktoken")
