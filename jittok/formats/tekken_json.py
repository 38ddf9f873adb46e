"""``tekken.json`` of Mistral: byte ranks, a split pattern and special tokens in one file.

Ids of special tokens come first, so the id of a token is its rank and their number. The reference is mistral_common.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from jittok.formats._json import MAX_TOKEN_ID, Node, parse_json
from jittok.spec import AddedToken, RankModel, Split, TokenizerSpec

#: The special tokens, from id 0 on, of files that name none.
_OLD_SPECIAL_TOKENS = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip

#: The versions of files that may leave their special tokens out.
_OLD_VERSIONS = ("v1", "v2", "v3", "v7")


def read(data: bytes, where: str) -> TokenizerSpec:
    """Read a tekken.json.

    Parameters
    ----------
    data
        The whole file.
    where
        Name of the file, for messages.

    Returns
    -------
    TokenizerSpec
        Special tokens in a text are text by default, as for mistral_common's ``Tekkenizer.encode``, which puts none
        around it either unless asked to.

    Raises
    ------
    FormatError
        The file is malformed, or contradicts itself; the message names the place.

    Notes
    -----
    Of the vocabulary as many entries count as ``default_vocab_size`` leaves beside the special tokens, the others are
    for larger tokenizers.
    """
    root = parse_json(data, where)
    config = root.child("config")
    pattern = config.child("pattern").string()
    size = config.child("default_vocab_size").integer(limit=MAX_TOKEN_ID)
    n_special = config.child("default_num_special_tokens").integer(limit=MAX_TOKEN_ID)
    special = _special_tokens(root, config, n_special)
    entries = list(root.child("vocab").items())
    n_ranks = size - n_special
    if not 256 <= n_ranks <= len(entries):
        raise config.child("default_vocab_size").error(
            f"{size} entries with {n_special} special tokens need {n_ranks} of the vocabulary, which has "
            f"{len(entries)}; expected at least 256, and no more than there are"
        )
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(entries[:n_ranks]):
        if entry.child("rank").value != rank:
            raise entry.child("rank").wrong(f"the rank {rank}, as ranks rise one by one from 0")
        try:
            token = b64decode(entry.child("token_bytes").string(), validate=True)
        except (binascii.Error, ValueError):
            raise entry.child("token_bytes").wrong("a token in base64") from None
        if rank < 256 and token != bytes((rank,)):
            raise entry.child("token_bytes").wrong(f"the byte 0x{rank:02x}, as the first 256 ranks are those of the bytes")
        if ranks.setdefault(token, n_special + rank) != n_special + rank:
            raise entry.error(f"the token {token!r} has the rank {ranks[token] - n_special} too; expected each token once")
    return TokenizerSpec(
        model=RankModel(ranks),
        added_tokens=special,
        pre_tokenizers=(Split(pattern, "isolated", dialect="rust"),),
        reference="mistral_common",
        default_special="text",
        source_format="tekken",
    )


def _special_tokens(root: Node, config: Node, n_special: int) -> tuple[AddedToken, ...]:
    """All special tokens: those that the file names, and others to fill their number up."""
    listed = root.optional("special_tokens")
    if listed is None:
        version = config.child("version").string()
        if version not in _OLD_VERSIONS:
            raise root.error(f"no special_tokens; files of version {version} must name them")
        names = list(_OLD_SPECIAL_TOKENS)
        if len(names) > n_special:
            raise config.child("default_num_special_tokens").wrong(f"room for {len(names)} special tokens")
    else:
        names = []
        for number, item in enumerate(listed.items()):
            if item.child("rank").value != number:
                raise item.child("rank").wrong(f"the rank {number}, as ranks rise one by one from 0")
            names.append(item.child("token_str").string())
            if not names[-1]:
                raise item.child("token_str").wrong("a token that is not empty")
        if len(names) > n_special:
            raise listed.error(f"{len(names)} special tokens; expected at most {n_special}, as config says")
    names += [f"<SPECIAL_{number}>" for number in range(len(names), n_special)]
    if len(set(names)) < len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise (listed or config).error(f"the special token {twice!r} comes twice; expected each once")
    return tuple(AddedToken(number, name, special=True, normalized=False) for number, name in enumerate(names))
