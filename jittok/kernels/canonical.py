"""Which merge makes each token: run once, when tables are built."""

from __future__ import annotations

from typing import Any

from jittok._jit import kernel
from jittok.kernels.bpe import merge_word
from jittok.kernels.merge import LAST_MERGE


@kernel
def find_last_merges(merges: Any, tokens: Any, scratch: Any, last_merge: Any) -> int:
    """Merge the bytes of each token alone, and note the last merge if they become the token.

    Parameters
    ----------
    merges : MergeTables
        General tables with all pairs; symbols are token ids.
    tokens : int64[n]
        Ids of tokens with at least two units.
    scratch : MergeScratch
        With room for the longest token.
    last_merge : int32[n]
        Output: number of the merge that makes the token, -1 if merging its bytes does not give it.

    Returns
    -------
    int
        Number of tokens that merging gives.
    """
    reached = 0
    for i in range(tokens.size):
        token = tokens[i]
        scratch.ranks[LAST_MERGE] = -1  # unknown characters may become a token without a merge
        n = merge_word(
            merges, merges.token_bytes, merges.token_indptr[token], merges.token_indptr[token + 1], scratch
        )
        if n == 1 and scratch.symbols[0] == token and scratch.ranks[LAST_MERGE] >= 0:
            last_merge[i] = scratch.ranks[LAST_MERGE]
            reached += 1
        else:
            last_merge[i] = -1
    return reached
