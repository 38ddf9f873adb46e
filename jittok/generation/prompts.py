"""Prompts as arrays, in whatever form they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.encodings import Batch, Encoding, PaddedBatch
from jittok.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


class Prompts(NamedTuple):
    """Prompts of different lengths.

    Attributes
    ----------
    rows : list of int32[length]
        The tokens of each.
    padded : int32[prompts, L]
        What the first step gets: filled up on the left.
    """

    rows: list[NDArray[np.int32]]
    padded: NDArray[np.int32]


def read_prompts(prompts: Any, pad_id: int, tokenizer: Tokenizer | None) -> Prompts:
    """Prompts in one of several forms.

    Parameters
    ----------
    prompts
        A batch, a padded batch, an array int[n, length], a list of texts (with a tokenizer), or of sequences of ids.
    pad_id
        What they are filled up with.
    tokenizer
        Encodes texts.

    Returns
    -------
    Prompts

    Raises
    ------
    ArgumentError, ArgumentTypeError
        They are something else, one is empty, one is padded on the right, or an id is no whole number from 0 up.
    """
    if isinstance(prompts, str | bytes | Encoding):
        raise ArgumentTypeError(f"prompts={prompts!r}: expected a list of prompts; give [prompt] for a single one")
    if isinstance(prompts, PaddedBatch):
        return _unpadded(prompts)
    if isinstance(prompts, np.ndarray):
        if prompts.ndim != 2:
            raise ArgumentError(f"prompts: an array of shape {prompts.shape}; expected two dimensions, prompts and tokens")
        prompts = list(prompts)
    elif not isinstance(prompts, Batch | Sequence):
        raise ArgumentTypeError(f"prompts: expected a batch, an array or a list, got {type(prompts).__name__}")
    elif len(prompts) and all(isinstance(prompt, str) for prompt in prompts):
        if tokenizer is None:
            raise ArgumentError("prompts are texts: give the tokenizer= that encodes them")
        prompts = tokenizer.encode_batch(list(prompts))
    rows = []
    for number, prompt in enumerate(prompts):
        if isinstance(prompt, int | np.integer):
            raise ArgumentTypeError("prompts: a list of ids; expected a list of prompts: give [ids] for a single one")
        try:
            row = np.asarray(prompt)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentTypeError(f"prompt {number}: expected a sequence of token ids, got {prompt!r}") from None
        if row.shape == (0,):
            raise ArgumentError(f"prompt {number} is empty; give at least a start token")
        rows.append(_ids(row, number))
    width = max(map(len, rows), default=0)
    padded = np.full((len(rows), width), pad_id, np.int32)
    for number, row in enumerate(rows):
        padded[number, width - len(row) :] = row
    return Prompts(rows, padded)


def _unpadded(batch: PaddedBatch) -> Prompts:
    ids, mask = np.asarray(batch.ids), np.asarray(batch.mask)
    counts = mask.sum(1)
    if len(ids) and not counts.all():
        raise ArgumentError(f"prompt {int(np.argmin(counts))} is empty; give at least a start token")
    if (mask != (np.arange(ids.shape[1]) >= ids.shape[1] - counts[:, None])).any():
        raise ArgumentError("prompts are padded on the right: the next token comes behind them, so pad(side='left')")
    return Prompts([_ids(row[keep], number) for number, (row, keep) in enumerate(zip(ids, mask, strict=True))], ids)


def _ids(row: NDArray[Any], number: int) -> NDArray[np.int32]:
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise ArgumentTypeError(f"prompt {number}: expected a sequence of token ids, got {row!r}")
    if len(row) and not 0 <= int(row.min()) <= int(row.max()) < 2**31:
        raise ArgumentError(f"prompt {number}: expected token ids from 0 up that fit in int32")
    return row.astype(np.int32)
