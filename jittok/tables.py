"""The arrays that kernels read: their meaning, unit, range and invariants.

Every table is a NamedTuple of read-only, C-contiguous arrays, built once by :mod:`jittok.build` from a
:class:`~jittok.spec.TokenizerSpec`, validated once, and saved and memory-mapped as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array C-contiguous and read-only, as all tables and inputs of kernels are.

    Both are part of a kernel's signature; one signature is compiled once.
    """
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


class CodepointClasses(NamedTuple):
    """A number below 256 for every codepoint, in two levels.

    ``class_of[(page_of[cp >> 7] << 7) | (cp & 127)]`` is the class of codepoint `cp`. Page 0 is that of
    ASCII, so ``class_of[cp]`` is right for ``cp < 128``.
    """

    page_of: NDArray[np.uint16]  # [8704], page number, < number of pages
    class_of: NDArray[np.uint8]  # [128 * number of pages]


class SplitAutomaton(NamedTuple):
    """A leftmost-first DFA over codepoint classes, equal to a split regex matched at one position.

    ``entry = transitions[state + class]``, where states are already multiplied by the row length. Bit 0 of
    an entry says that a match ends *before* the codepoint of that class; ``entry >> 1`` is the next state.
    State 0 is dead: the last match seen is the match. The last class, ``end_class``, stands for the end of
    the text. Look-ahead by one codepoint and ``$`` are resolved on the transition. The whole match is the
    one the regex's own engine prefers (leftmost-first), not the longest.
    """

    classes: CodepointClasses
    transitions: NDArray[np.uint32]  # [n_states << row_shift]
    start: int  # the start state, a multiple of 1 << row_shift
    row_shift: int  # log2 of the row length, which is at least end_class + 1
    end_class: int  # the class of the end of the text


class SplitTables(NamedTuple):
    """All that the split kernels read: the automaton, and the mask program that decides most boundaries at once.

    Whether a pre-token begins before a codepoint nearly always follows from the three codepoints before it,
    itself and the one after it. The program computes that for 512 places at a time, from one mask for each class:
    ``decided`` has a bit at each place that is a boundary, ``undecided`` at each where the automaton must be run.
    """

    page_of: NDArray[np.uint16]  # see CodepointClasses
    class_of: NDArray[np.uint8]
    transitions: NDArray[np.uint32]  # see SplitAutomaton
    entry_class: NDArray[np.uint8]  # [256] class of an entry of a chunk: ASCII, 0x80 | class for others, EDGE_BYTE
    program: NDArray[np.int32]  # [4 * operations] rows (MASK_* operation, result, operand, operand): numbers of masks
    numbers: NDArray[np.int64]  # see START and the others below


class Runs(NamedTuple):
    """What follows from whole runs of characters, where the neighbours of a place do not decide (build.split_runs)."""

    counted: frozenset[int]  # classes of whose runs every `period` are a pre-token; empty: there are none
    period: int
    run: frozenset[int]  # before such a run there is a boundary wherever that is undecided,
    hazards: frozenset[int]  # unless one of these follows the run


#: Positions in ``SplitTables.numbers``.
START = 0  # the start state
END_CLASS = 1  # the class of the end of a text; masks 0 to END_CLASS are those of the classes
DECIDED = 2  # mask of the boundaries
UNDECIDED = 3  # mask of the places where the automaton must be run
N_MASKS = 4
SPLIT_NUMBERS = 5

#: Operations of a mask program. Bit i of the result:
MASK_OR = 0
MASK_AND = 1
MASK_NOT = 2
MASK_BACK = 3  # bit i - k of the operand, k the second operand, from 1 to 3
MASK_AHEAD = 4  # bit i + 1 of the operand


#: A mask's first word, and the words from one mask to the next: 32 with bits and 8 of nothing, for shifts to read.
MASK_BASE = 8
MASK_STRIDE = 40
#: The byte that stands for the end of a text among its bytes: no UTF-8 has it.
EDGE_BYTE = 0xFF


class MergeTables(NamedTuple):
    """Byte-pair merges over *symbols*.

    A word is first turned into initial symbols, one for each unit (a byte, or a codepoint). A merge joins two
    neighbouring symbols; merges are numbered by rank, and the lowest number present, leftmost first, is always
    done next. ``pair_slots`` is a hash table of ``left << 44 | right << 24 | merge number``, all ones where empty,
    in lines of eight slots that are used in order; where a line is full the search goes on in the next.

    *Ranked* tables (byte-level models): a token can only ever come from one pair, the last merge made when its
    own bytes are merged alone, because merges inside it do not depend on what is outside until it is formed.
    So one pair for each reachable token is enough, and merge `m` makes symbol ``256 + m``: number, priority
    and result are one number. Units are bytes, and initial symbols are the 256 byte values.

    *General* tables (anything else): all pairs, symbols are token ids, ``merge_result`` gives the result.
    """

    pair_slots: NDArray[np.uint64]  # [power of two, at least 8] in lines of eight, one of them not full
    byte_pair: NDArray[np.int32]  # [65536] merge number of two bytes (first | second << 8), NO_MERGE if none; ranked only
    merge_result: NDArray[np.int32]  # [n_merges] symbol that a merge makes
    symbol_token: NDArray[np.int32]  # [n_symbols] token id of a symbol
    unit_slots: NDArray[np.uint64]  # [power of two] general only: (variant << 21 | unit) << 32 | symbol; all ones empty
    fallback_symbol: NDArray[np.int32]  # [256] general only: symbol of a byte-fallback token, -1 if absent
    direct_slots: NDArray[np.uint64]  # [power of two] tokens looked up whole: hash tag << 32 | token id; all ones empty
    token_bytes: NDArray[np.uint8]  # bytes of all tokens, one after another (units of the model), 64 more at the end
    token_indptr: NDArray[np.int64]  # [vocabulary + 1] token i is token_bytes[token_indptr[i] : token_indptr[i + 1]]
    reachable: NDArray[np.uint8]  # [vocabulary] 1: merging the token's own bytes gives it; 2: see MISSING_UNKNOWN
    crossed: NDArray[np.uint64]  # bitmap of codepoint junctions that some token spans (see kernels.bpe)
    numbers: NDArray[np.int64]  # see MERGE_* below


#: Positions in ``MergeTables.numbers``.
MERGE_RANKED = 0  # 1: ranked tables, 0: general
MERGE_UNIT = 1  # 0: units are bytes, 1: codepoints
MERGE_UNKNOWN = 2  # symbol of the unknown token, -1: none
MERGE_FUSE_UNKNOWN = 3  # 1: neighbouring unknown units make one token
MERGE_BYTE_FALLBACK = 4  # 1: unknown codepoints become byte tokens
MERGE_DIRECT = 5  # number of tokens in direct_slots
MERGE_CUT = 6  # 1: long words may be cut at junctions that no token crosses
MERGE_VARIANTS = 7  # bit 0: units that are not first have a form of their own, bit 1: the last one has
MERGE_NUMBERS = 8

#: In ``MergeTables.reachable``: stands for an unknown token that the vocabulary lacks. It is the last token.
MISSING_UNKNOWN = 2


class PieceTables(NamedTuple):
    """Merges of pieces whose units are characters: SentencePiece BPE, and its character and word models.

    A text is first cut into *symbols*: one for each character, or for the longest user-defined symbol that begins there.
    Symbol 0 is a character that no piece holds; from PIECE_FIRST on, symbol ``PIECE_FIRST + m`` is what merge `m` makes.
    Merges are numbered by falling score. The one with the best score, leftmost first, is done next: numbers decide, but
    those of equal score have one ``merge_rank``, and then only places decide.

    Any pair of neighbours whose joined text is a piece may merge, and yet one pair for each piece is enough. Say that
    `A` and `B` stand side by side at some time, and nothing was merged across either end of ``A B`` before. Then the
    merges inside were those of that text alone, in the same order, as which of them is next depends on nothing else. One
    merge makes one symbol less, so that there is one state only of the text alone that has two symbols. *Pruned* tables
    hold that pair for each piece, found by merging the piece's own text; pieces that it does not make are never made.
    Tables with *all pairs* are for sampling, where a merge may be left out.
    """

    page_of: NDArray[np.uint16]  # [8704], see CodepointClasses
    symbol_of: NDArray[np.int32]  # [128 * n_pages] symbol << 2 | UNIT_* bits
    unit_pair: NDArray[np.int32]  # [65536] merge number of two symbols below 256 (first | second << 8), NO_MERGE if none
    pair_slots: NDArray[np.uint64]  # as in MergeTables; with all pairs, several have the same merge number
    merge_rank: NDArray[np.int32]  # [n_merges] the least number of a merge with the same score
    symbol_token: NDArray[np.int32]  # [n_symbols] id of a symbol; -1: unknown; -2 - k: unused, see list k
    symbol_bytes: NDArray[np.int32]  # [n_symbols] bytes of text that a symbol stands for; 0 for symbol 0
    list_indptr: NDArray[np.int32]  # [n_lists + 1] what an unused piece is taken apart to: list k is
    list_symbols: NDArray[np.int32]  # list_symbols[list_indptr[k] : list_indptr[k + 1]]
    list_token: NDArray[np.int32]  # [n_lists] the id of the unused piece itself
    fallback_token: NDArray[np.int32]  # [256] id of each byte, -1 without byte fallback
    edge_slots: NDArray[np.uint64]  # [power of two] trie of user-defined symbols: (node << 8 | byte) << 32 | child; root: 0
    node_symbol: NDArray[np.int32]  # [n_nodes] symbol that ends at a node, -1: none
    direct_slots: NDArray[np.uint64]  # word models: as in MergeTables
    token_bytes: NDArray[np.uint8]  # as in MergeTables, as the text has them
    token_indptr: NDArray[np.int64]
    reachable: NDArray[np.uint8]  # [vocabulary] 1: the token's own bytes give this token alone
    crossed: NDArray[np.uint64]  # bitmap of character junctions that some symbol spans (see build.junctions)
    numbers: NDArray[np.int64]  # MERGE_* as in MergeTables (MERGE_RANKED is 1, MERGE_UNKNOWN an id), then PIECE_*


#: Positions in ``PieceTables.numbers``, after those of MergeTables.
PIECE_FIRST = MERGE_NUMBERS  # number of symbols that no merge makes
PIECE_TIED = MERGE_NUMBERS + 1  # the least merge number that shares its score
PIECE_MARK = MERGE_NUMBERS + 2  # 1: a blank in the text is U+2581
PIECE_ALL_PAIRS = MERGE_NUMBERS + 3  # 1: the tables are not pruned
PIECE_NUMBERS = MERGE_NUMBERS + 4

#: Bits of ``PieceTables.symbol_of``.
UNIT_UNKNOWN = 1  # alone, the character is unknown
UNIT_BEGINS = 2  # a user-defined symbol of several characters may begin with it


class WordPieceTables(NamedTuple):
    """A WordPiece vocabulary as a trie with failure links and failure pops (Fast WordPiece, arXiv 2012.15524).

    The trie holds every token as it is written, suffix indicator included. A *node* is four numbers in `units`, 16
    bytes, so that one step of the automaton is one load. It is known by the position of the first of them:

    - ``units[v]``: base of the parent, -1 where there is no node;
    - ``units[v + 1]``: base of the node itself, 0 for a leaf: its child for a character of code `c` is node
      ``base + c`` if that node's first number is ``base``. No two nodes that have children share a base;
    - ``units[v + 2]``: the failure link, a node below the suffix root or that itself; -1 where there is none;
    - ``units[v + 3]``: the failure pops: the id of the token that the node is, with the suffix root for a link; or
      ``-1 - list``, where list 0 is that of nodes without a link.

    Failure pops: list `k` is list ``pop_before[k]`` (none for 0) followed by the ids
    ``pop_ids[pop_indptr[k]:pop_indptr[k + 1]]``; ``pop_count[k]`` is their number. A node shares the list of its
    parent as the first part of its own, so that all lists together take no more room than the vocabulary.

    Memory is linear in the vocabulary's characters: `units` is nearly full but for the widest nodes.
    """

    page_of: NDArray[np.uint16]  # [8704], see CodepointClasses
    code_of: NDArray[np.uint32]  # [128 * n_pages] code | CHARACTER_*; codes are multiples of 4, 0: in no token
    units: NDArray[np.int32]  # [4 * n_units], after the last base there is room for the largest code: a step never leaves it
    pop_indptr: NDArray[np.int32]  # [n_lists + 1]
    pop_before: NDArray[np.int32]  # [n_lists], < its own position; 0: nothing goes before
    pop_count: NDArray[np.int32]  # [n_lists]
    pop_ids: NDArray[np.int32]
    pop_lengths: NDArray[np.int32]  # bytes of each token in `pop_ids`, without the suffix indicator if it begins with it
    token_lengths: NDArray[np.int32]  # by id, bytes as in `pop_lengths`; empty where tokens of one id have several lengths
    indicator: NDArray[np.uint8]  # the suffix indicator
    numbers: NDArray[np.int64]  # see WORDPIECE_* below


class Blanks(NamedTuple):
    """Characters that a pre-token may begin with and its tokens do not stand for; empty arrays for none."""

    page_of: NDArray[np.uint16]  # those of WordPieceTables
    code_of: NDArray[np.uint32]


#: Parts of ``WordPieceTables.code_of``, and what the latter may be.
CHARACTER_CODE = ~3
CHARACTER_KIND = 3
CHARACTER_WORD = 0  # part of a word
CHARACTER_SPACE = 1  # between words; before a word, part of what is given for it
CHARACTER_ISOLATED = 2  # a word of its own

#: Positions in ``WordPieceTables.numbers``.
WORDPIECE_ROOT = 0  # the node of the empty string, whose base is
WORDPIECE_ROOT_BASE = 1  # this
WORDPIECE_SUFFIX_ROOT = 2  # the node of the suffix indicator; the root, if that is empty
WORDPIECE_SUFFIX_BASE = 3
WORDPIECE_UNKNOWN = 4  # id for a word that has no segmentation, or is too long
WORDPIECE_MAX_INPUT = 5  # longest word that is looked at
WORDPIECE_MAX_BYTES = 6  # 1: that is in bytes, 0: in characters
WORDPIECE_SKIP_SPACE = 7  # 1: a word may come with CHARACTER_SPACE characters before it
WORDPIECE_PREFIX_TOKEN = 8  # longest token that the suffix indicator begins with, -1: none
WORDPIECE_PREFIX_BYTES = 9  # its bytes
WORDPIECE_MISSING = 10  # 1: the unknown token is not in the vocabulary, and its id stands for an error
WORDPIECE_NUMBERS = 11


class UnigramTables(NamedTuple):
    """The pieces of a unigram model as a trie, with their scores.

    A *node* is four numbers in `units`, 16 bytes, so that one step is one load. It is known by the position of the
    first of them:

    - ``units[v]``: base of the parent, -1 where there is no node;
    - ``units[v + 1]``: base of the node itself, 0 for a leaf: its child for a character of code `c` is node
      ``base + c`` if that node's first number is ``base``. No two nodes that have children share a base;
    - ``units[v + 2]``: id of the piece that the node is, -1 for none;
    - ``units[v + 3]``: that piece's score, as the bits of a float32; minus infinity for none.

    A model takes its reference's arithmetic: see UNIGRAM_RULE. Scores are finite and below 1e30 in magnitude, so that
    sums of them stay finite, and minus infinity stands for what was not reached.
    """

    page_of: NDArray[np.uint16]  # [8704], see CodepointClasses
    code_of: NDArray[np.uint32]  # [128 * n_pages] codes are multiples of 4, 0: in no piece
    units: NDArray[np.int32]  # [4 * n_units], after the last base there is room for the largest code: a step never leaves it
    scores: NDArray[np.float64]  # [n_ids] score of each piece in a lattice
    byte_ids: NDArray[np.int32]  # [256] id of the piece of each byte, -1: none
    unknown_score: NDArray[np.float64]  # [1] score of a character that is no piece
    crossed: NDArray[np.uint64]  # [power of two] bitmap of hashes of pairs of codes that some piece has next to each other
    numbers: NDArray[np.int64]  # see UNIGRAM_* below


#: Positions in ``UnigramTables.numbers``.
UNIGRAM_ROOT_BASE = 0  # base of the node of the empty string
UNIGRAM_RULE = 1  # RULE_SENTENCEPIECE or RULE_TOKENIZERS
UNIGRAM_UNKNOWN = 2  # id of the unknown piece; with byte fallback there may be none, and it is -1
UNIGRAM_MISSING = 3  # 1: the unknown piece is not in the vocabulary, and its id stands for an error
UNIGRAM_BYTE_FALLBACK = 4  # 1: unknown characters become pieces of bytes
UNIGRAM_LONGEST = 5  # characters of the longest piece, at least 1
UNIGRAM_SPACE_FIRST = 6  # 1: U+2581 is a piece, and in others only ever the first character
UNIGRAM_NUMBERS = 7

#: What a pair of codes, first << 32 | second, is multiplied by: bits 32 and up of the product are the bit in ``crossed``.
CROSSED_FACTOR = 0x9E3779B97F4A7C15

#: The score of a path is a float32, added up over the whole text; unknown pieces that follow each other are joined.
RULE_SENTENCEPIECE = 0
#: It is a float64, from 0 for each pre-token; as above, but what is joined may be a piece again.
RULE_TOKENIZERS = 1


#: The tables of any model.
ModelTables = MergeTables | PieceTables | WordPieceTables | UnigramTables


class AddedTokenTables(NamedTuple):
    """The set of added tokens, to be found; see :func:`jittok.build.added_tokens.build_added_tokens`.

    As an automaton, where there are few kinds of endings or long tokens: a state is a suffix of some tokens. States are
    numbered breadth first from 0, the root, so that a state's children are neighbours.

    As a trie, where there are many kinds of endings: an edge is eight bytes, or up to eight at the end of a token. Nodes
    are numbered from 0, the root, in the order in which the tokens need them.
    """

    ids: NDArray[np.int32]  # [n_tokens], the id of each token
    lengths: NDArray[np.int32]  # [n_tokens], in bytes, > 0
    flags: NDArray[np.uint8]  # [n_tokens], TOKEN_* bits
    shorter: NDArray[np.int32]  # [n_tokens], the longest token that this one begins with, or -1; -1 if skipping
    child_start: NDArray[np.int32]  # [n_states + 1], children of s: child_start[s]..child_start[s + 1] - 1
    labels: NDArray[np.uint8]  # [n_states], the byte that leads to a state; children are sorted by it
    fallback: NDArray[np.int32]  # [n_states], the state of the longest proper suffix, < the state itself
    longest: NDArray[np.int32]  # [n_states], the longest token that starts where this state stands, or -1
    root_next: NDArray[np.int32]  # [256], the root's child for a byte, or 0
    endings: NDArray[np.uint8]  # [n, 3]: last byte, 1 if the one before counts, that one; none if too many
    # A bitmap of beginnings, power of two; of length 0 with endings. The first eight bytes of a token, little-endian, the
    # lower half under one mask, exclusive or the upper half under another one and moved up by 5 bits, times
    # PREFIX_FACTOR modulo 2**32, shifted down, give a bit; bit i is bit i & 31 of prefixes[i >> 5]. Where all tokens
    # have five bytes or more, they give the second bit of a pair, and what follows the first byte gives the first.
    prefixes: NDArray[np.uint32]
    # Another one, of more bytes: the first eight under a mask, times SEEN_FACTOR, shifted down; bit i is bit i & 63 of
    # beginnings[i >> 6].
    beginnings: NDArray[np.uint64]  # [power of two]
    # A bitmap of the tokens of up to eight bytes, and of the first eight of others: by the hash of the edge from the root,
    # shifted down, bit i is bit i & 63 of seen[i >> 6]. The hash of an edge of L bytes, the last in the highest place, is
    # these exclusive or L exclusive or the node times NODE_FACTOR, times SEEN_FACTOR.
    seen: NDArray[np.uint64]  # [power of two]
    # Edges as an open-addressing table by the highest bits of the hash: the bytes as there, and node << 4 | L, 0 if free.
    slots: NDArray[np.uint64]  # [2 * power of two]
    edge_tokens: NDArray[np.int32]  # [power of two], the token that ends with an edge, or -1
    edge_nodes: NDArray[np.int32]  # [power of two], the node that an edge of eight bytes leads to, or -1
    node_kinds: NDArray[np.uint8]  # [n_nodes], lengths of edges: bit L - 1 for L bytes
    word_page_of: NDArray[np.uint16]  # two levels as in CodepointClasses; class 1: a word character
    word_class_of: NDArray[np.uint8]
    numbers: NDArray[np.int64]  # see ADDED_TOKENS_* below


#: Bits of ``AddedTokenTables.flags``.
TOKEN_SINGLE_WORD = 1
TOKEN_STRIP_LEFT = 2
TOKEN_STRIP_RIGHT = 4
TOKEN_NORMALIZED = 8  # looked for in normalised text
TOKEN_SPECIAL = 16

#: Positions in ``AddedTokenTables.numbers``.
ADDED_TOKENS_MAX_LENGTH = 0  # of a token, in bytes
ADDED_TOKENS_SKIPPING = 1  # 1: a token that is found but not wanted hides what it covers; 0: it does not
ADDED_TOKENS_ASCII_SPACE = 2  # 1: the white space that tokens take with them is that of ASCII only
ADDED_TOKENS_LOW_MASK = 3  # of ``prefixes``
ADDED_TOKENS_HIGH_MASK = 4
ADDED_TOKENS_PREFIX_SHIFT = 5
ADDED_TOKENS_PREFIX_PAIRS = 6  # 1: there are pairs of bits
ADDED_TOKENS_BEGINNING_MASK = 7  # of ``beginnings``
ADDED_TOKENS_BEGINNING_SHIFT = 8
ADDED_TOKENS_SEEN_SHIFT = 9
ADDED_TOKENS_SLOT_SHIFT = 10
ADDED_TOKENS_NUMBERS = 11

#: See ``AddedTokenTables``.
SEEN_FACTOR = 0x9E3779B97F4A7C15
NODE_FACTOR = 0xC2B2AE3D27D4EB4F
PREFIX_FACTOR = 0x9E3779B1


class SubstitutionTables(NamedTuple):
    """What each codepoint becomes by itself: a normalization form (with reordering), or lower case.

    The codepoints of a class behave alike; class 0 is left as it is. *Packed* codepoints carry their combining
    class in bits 21-28, and bit 30 where they may compose with what stands before them.
    """

    page_of: NDArray[np.uint16]  # [8704], see CodepointClasses
    class_of: NDArray[np.uint16]  # [128 * n_pages]
    combining: NDArray[np.uint8]  # [n_classes], canonical combining class
    flags: NDArray[np.uint8]  # [n_classes], SUBSTITUTION_* bits
    expansion_indptr: NDArray[np.int32]  # [n_classes + 1], what replaces the class if it expands
    expansion: NDArray[np.uint32]  # packed
    pairs: NDArray[np.int64]  # [n_pairs], ``first << 21 | second`` of codepoints that compose, sorted
    composed: NDArray[np.uint32]  # [n_pairs], what they compose to
    numbers: NDArray[np.int64]  # see SUBSTITUTION_* below


#: Bits of ``SubstitutionTables.flags``.
SUBSTITUTION_EXPANDS = 1  # replaced with its expansion
SUBSTITUTION_SECOND = 2  # may compose with what stands before it

#: Positions in ``SubstitutionTables.numbers``.
SUBSTITUTION_HANGUL = 0  # 1: Hangul syllables are taken apart
SUBSTITUTION_REORDERS = 1  # 1: combining marks are put into canonical order
SUBSTITUTION_COMPOSES = 2  # 1: neighbours compose at the end
SUBSTITUTION_NUMBERS = 3


class CleanUpTables(NamedTuple):
    """What BERT's clean-up makes of each codepoint, all of its steps at once.

    An *entry* is 0 where the codepoint stays as it is and is no combining mark. Else it says, from bit 0 on: 32 bits
    of content, 3 bits with the number of bytes, 5 with the number of codepoints, 8 with the combining class of the
    last codepoint before marks are left out, and the CLEAN_UP_* kind and flags.
    """

    page_of: NDArray[np.uint16]  # [8704], see CodepointClasses
    entry: NDArray[np.int64]  # [128 * n_pages]
    expansion: NDArray[np.uint8]  # UTF-8 of what does not fit in an entry
    numbers: NDArray[np.int64]  # see CLEAN_UP_LOWERS and the other below


#: Fields of an entry of ``CleanUpTables.entry``: where their lowest bit is.
CLEAN_UP_BYTES = 32
CLEAN_UP_CODEPOINTS = 35
CLEAN_UP_COMBINING = 40
CLEAN_UP_KIND = 48  # 3 bits
#: Kinds.
CLEAN_UP_CONTENT = 1  # the content is UTF-8, at most four bytes, the first one lowest; none: left out
CLEAN_UP_EXPANSION = 2  # the content is where the bytes begin in ``expansion``
CLEAN_UP_SELF = 3  # as it is
CLEAN_UP_HANGUL = 4  # a syllable, to be taken apart
CLEAN_UP_REMOVED = 5  # left out before all other steps
#: Flags.
CLEAN_UP_MARK = 1 << 51  # begins with a combining mark, so belongs to what stands before it
CLEAN_UP_KEPT = 1 << 52  # has a combining mark that is not left out
CLEAN_UP_PADDED = 1 << 53  # gets a blank before and after; without a kind: and is as it was

#: Positions in ``CleanUpTables.numbers``.
CLEAN_UP_LOWERS = 0  # 1: letters A to Z become lower case
CLEAN_UP_CLEANS = 1  # 1: control characters are left out, and white space becomes blanks
CLEAN_UP_NUMBERS = 2


class SuspicionTables(NamedTuple):
    """Which texts some rewriting steps may change: a test that is quick and errs to the safe side."""

    page_of: NDArray[np.uint16]  # two levels as in CodepointClasses
    class_of: NDArray[np.uint8]  # SUSPICION_* of a codepoint
    numbers: NDArray[np.int64]  # see SUSPICION_* below


#: Values of ``SuspicionTables.class_of``.
SUSPICION_NONE = 0  # no step changes it
SUSPICION_CHANGES = 1  # a step changes it, or may
SUSPICION_CONTEXT = 2  # the normalization form changes it after certain codepoints

#: Positions in ``SuspicionTables.numbers``.
SUSPICION_ALWAYS = 0  # 1: every text that is not empty changes
SUSPICION_ASCII = 1  # 1: some ASCII codepoint is not SUSPICION_NONE
SUSPICION_STRIP_LEFT = 2  # 1: changes where white space is first
SUSPICION_STRIP_RIGHT = 3  # 1: changes where white space is last
SUSPICION_PREFIX = 4  # a codepoint: changes unless this one is first; -1
SUSPICION_PREFIX_2 = 5  # another one
SUSPICION_NUMBERS = 6


class LocalTables(NamedTuple):
    """What some rewriting steps, one after the other, make of each codepoint wherever it stands, or whether that matters.

    An *entry* of a codepoint is a kind, LOCAL_*, and from bit LOCAL_OFFSET on where in ``strings`` that begins which a
    LOCAL_MAPPED one becomes: its length, then UTF-8.
    """

    page_of: NDArray[np.uint16]  # two levels as in CodepointClasses
    entry: NDArray[np.uint32]
    strings: NDArray[np.uint8]
    stops: NDArray[np.int64]  # [n, 2] first byte and number: ranges that hold every byte of ASCII but of the kinds below
    pairs: NDArray[np.int64]  # the bytes of ASCII that are LOCAL_REPEATED; all others not in `stops` are LOCAL_KEPT
    numbers: NDArray[np.int64]  # see LOCAL_REACH below


#: Kinds of codepoints, in the lowest bits of ``LocalTables.entry``.
LOCAL_KIND = 7
LOCAL_KEPT = 0  # stays as it is, and nothing goes beyond it
LOCAL_MAPPED = 1  # becomes something else, unless a LOCAL_MARK follows: then that depends
LOCAL_MARK = 2  # stays as it is, but belongs to what stands before it
LOCAL_REPEATED = 3  # stays as it is, unless another one of this kind follows
LOCAL_OTHER = 4  # what becomes of it, or of what is next to it, is for the steps to say
#: Flag next to a kind: it may belong to what stands before it, after some codepoints.
LOCAL_JOINS = 8
LOCAL_OFFSET = 4

#: Positions in ``LocalTables.numbers``.
LOCAL_REACH = 0  # so many codepoints after one that is LOCAL_OTHER may change with it
LOCAL_NUMBERS = 1


#: Bits of :attr:`VocabularyTables.flags`.
PRESENT = 1  # the id has a token
ADDED = 2  # an added token
SPECIAL = 4  # a special token: left out by skip_special_tokens
STRIPS = 8  # an added token that takes white space around it into its match (lstrip or rstrip)
NORMALIZED = 16  # an added token looked for in the normalised text


class VocabularyTables(NamedTuple):
    """Every token by id, and every id by token.

    Ids without a token (holes) have empty strings and no ``PRESENT`` bit. Strings are UTF-8, in the byte
    alphabet where the file is byte-level; only a rank file's tokens may be any bytes. ``token_bytes`` and
    ``strings`` are the same arrays where a token stands for its own string.
    """

    strings: NDArray[np.uint8]  # the token strings, one after another in order of id
    string_indptr: NDArray[np.int64]  # [size + 1], token i is strings[string_indptr[i]:string_indptr[i + 1]]
    token_bytes: NDArray[np.uint8]  # the bytes of text that each token stands for
    bytes_indptr: NDArray[np.int64]  # [size + 1]
    flags: NDArray[np.uint8]  # [size], see PRESENT, ADDED, ...
    hashes: NDArray[np.uint32]  # [n tokens], CRC-32 of the strings, rising
    hash_ids: NDArray[np.int32]  # [n tokens], the id of each hash


class CharsmapTables(NamedTuple):
    """Normalization rules of SentencePiece, and user-defined symbols, which go before them.

    An *entry* of a codepoint has CHARSMAP_* flags, and from bit CHARSMAP_OFFSET on where in ``strings`` that begins
    which the codepoint alone becomes. Both double arrays are in the form of Darts-clone: a unit has a label in its
    lowest 8 bits and bit 31, bit 8 if a value follows, and from bit 10 on an offset, which is to be multiplied by 256
    if bit 9 is set. The child of unit `i` for byte `b` is ``i ^ offset ^ b`` if its label is `b`; the value is in unit
    ``i ^ offset``. All offsets have been checked to stay inside, and keys to be whole codepoints.
    """

    page_of: NDArray[np.uint16]  # [8704], see CodepointClasses
    entry: NDArray[np.uint32]  # [128 * n_pages]
    strings: NDArray[np.uint8]  # UTF-8, each ends with a NUL byte
    rules: NDArray[np.uint32]  # double array: values are places in ``strings``
    symbols: NDArray[np.uint32]  # double array
    stops: NDArray[np.int64]  # [n, 2] first byte and number: ranges that hold every byte that is not just copied
    numbers: NDArray[np.int64]  # see CHARSMAP_* below


#: Flags of ``CharsmapTables.entry``.
CHARSMAP_MAPPED = 1  # there is a rule for this codepoint alone
CHARSMAP_SYMBOL = 2  # this codepoint alone is a symbol
CHARSMAP_LONGER = 4  # a longer rule or symbol begins with it
CHARSMAP_CONTINUES = 8  # is second in some rule or symbol
CHARSMAP_OFFSET = 4  # where the offset begins

#: Positions in ``CharsmapTables.numbers``.
CHARSMAP_PREFIX = 0  # 1: a blank before each text that is not empty
CHARSMAP_SUFFIX = 1  # 1: a blank behind it
CHARSMAP_REMOVES = 2  # 1: extra blanks are left out
CHARSMAP_BLANK = 3  # bytes of what stands for a blank: 1 (U+0020) or 3 (U+2581)
CHARSMAP_COMPACT = 4  # 1: U+2581 becomes U+0020 too
CHARSMAP_HAS_SYMBOLS = 5
CHARSMAP_NEWLINE = 6  # 1: U+000A becomes a blank whatever follows
#: 1: U+2581 of the text stays at the end, nothing but blanks gets none in front, and a blank at the end of what a rule
#: gives comes from what follows.
CHARSMAP_LLAMA_CPP = 7
CHARSMAP_NUMBERS = 8


class PrecompiledTables(NamedTuple):
    """A charsmap, and where grapheme clusters end; see :class:`CharsmapTables`."""

    page_of: NDArray[np.uint16]  # two levels as in CodepointClasses
    entry: NDArray[np.uint32]  # as in CharsmapTables
    break_page_of: NDArray[np.uint16]
    break_class: NDArray[np.uint8]  # see jittok.unicode.graphemes
    strings: NDArray[np.uint8]
    rules: NDArray[np.uint32]
