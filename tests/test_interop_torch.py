"""A DataLoader's workers encode as this process does; see docs/pytorch.md."""

import numpy as np
import pytest

import jittok

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'jittok[torch]'")

TEXTS = [f"text number {number} " * (number % 5) + "naïve 中文" for number in range(50)]


class Collate:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, texts):
        ids, mask = self.tokenizer.encode_batch(texts, max_length=12, threads=1).pad(multiple_of=4, pad_id=0)
        return torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(mask)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", [None, "fork", "spawn"])
def test_every_way_to_start_workers(start):
    tok = jittok.load_default()
    expected = [Collate(tok)(TEXTS[first : first + 8]) for first in range(0, len(TEXTS), 8)]
    loader = torch.utils.data.DataLoader(
        TEXTS,
        batch_size=8,
        num_workers=0 if start is None else 2,
        collate_fn=Collate(tok),
        multiprocessing_context=start,
    )
    batches = list(loader)
    assert len(batches) == len(expected)
    for (ids, mask), (expected_ids, expected_mask) in zip(batches, expected, strict=True):
        assert torch.equal(ids, expected_ids) and torch.equal(mask, expected_mask)
